// The REPL: what is typed runs, is completed and recalled, and never steers the window.
#include <gtest/gtest.h>

#include "tests/ui/panels.h"

namespace pallascope::testing {
namespace {

using model::Selection;

constexpr const char* input = "//REPL/##input";

schedule::DecisionId decision(std::size_t k) { return schedule::DecisionId(k); }

/// The text in the prompt. A field of many lines is a child window whose item has the field's own ID.
std::string prompt(ImGuiTestContext*) {
  const ImGuiWindow* window = ImGui::FindWindowByName("REPL");
  const ImGuiID id = const_cast<ImGuiWindow*>(window)->GetID("##input");
  const ImGuiInputTextState* state = ImGui::GetInputTextState(id);
  return state != nullptr && ImGui::GetActiveID() == id ? std::string(state->TextA.Data)
                                                        : std::string("(not typing)");
}

bool typing() { return prompt(nullptr) != "(not typing)"; }

void open_prompt(ImGuiTestContext* context) {
  context->KeyPress(ImGuiKey_GraveAccent);
  context->Yield(3);
  IM_CHECK(in_front("REPL"));
  IM_CHECK(typing());
}

void enter(ImGuiTestContext* context, const char* line) {
  context->KeyChars(line);
  context->KeyPress(ImGuiKey_Enter);
  context->Yield(2);
}

bool candidates_shown() {
  const ImGuiWindow* window = ImGui::FindWindowByName("##candidates");
  return window != nullptr && window->Active;
}

TEST(Repl, ATypedCommandRunsAndSelects) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    open_prompt(context);
    IM_CHECK_STR_EQ(prompt(context).c_str(), "");  // the key that opened it is not in it
    enter(context, "why d50");
    IM_CHECK(
        Window::wait(context, [&] { return window.shell->state().selection == Selection(decision(50)); }));
    IM_CHECK(typing());
    IM_CHECK_STR_EQ(prompt(context).c_str(), "");
    enter(context, "goto d40");
    IM_CHECK(Window::wait(context, [&] { return window.workspace->scene()->position == 41; }));
    IM_CHECK(in_front("REPL"));  // what is typed in stays in front
  });
  EXPECT_TRUE(window.said("library boundary"));
}

TEST(Repl, LettersAndArrowsInThePromptAreNoShortcuts) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const std::size_t position = window.position();
    const bool difference = window.shell->state().difference;
    open_prompt(context);
    for (const ImGuiKey key :
         {ImGuiKey_W, ImGuiKey_X, ImGuiKey_D, ImGuiKey_P, ImGuiKey_Q, ImGuiKey_F, ImGuiKey_Space,
          ImGuiKey_LeftBracket, ImGuiKey_LeftArrow, ImGuiKey_GraveAccent, ImGuiKey_Slash})
      context->KeyPress(key);
    context->KeyChars("wxdpqf[] ?`");
    context->KeyPress(ImGuiKey_LeftArrow);
    context->Yield(3);
    IM_CHECK_STR_EQ(prompt(context).c_str(), "wxdpqf[] ?`");
    IM_CHECK_EQ(window.position(), position);
    IM_CHECK_EQ(window.shell->state().difference, difference);
    IM_CHECK(in_front("REPL"));
    IM_CHECK(!any_popup());
    // Esc leaves the field and what is in it; then a letter is a shortcut again.
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(2);
    IM_CHECK(!typing());
    context->KeyPress(ImGuiKey_LeftArrow);
    IM_CHECK_EQ(window.position(), position - 1);
    context->KeyPress(ImGuiKey_GraveAccent);
    context->Yield(3);
    IM_CHECK_STR_EQ(prompt(context).c_str(), "wxdpqf[] ?`");
  });
}

TEST(Repl, ArrowsRecallWhatWasTyped) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    open_prompt(context);
    enter(context, "why d50");
    enter(context, "show n21");
    IM_CHECK(window.quiet(context));
    context->KeyChars("ls");
    context->KeyPress(ImGuiKey_UpArrow);
    IM_CHECK_STR_EQ(prompt(context).c_str(), "show n21");
    context->KeyPress(ImGuiKey_UpArrow);
    IM_CHECK_STR_EQ(prompt(context).c_str(), "why d50");
    context->KeyPress(ImGuiKey_UpArrow);  // there is no older one
    IM_CHECK_STR_EQ(prompt(context).c_str(), "why d50");
    context->KeyPress(ImGuiKey_DownArrow);
    IM_CHECK_STR_EQ(prompt(context).c_str(), "show n21");
    context->KeyPress(ImGuiKey_DownArrow);
    IM_CHECK_STR_EQ(prompt(context).c_str(), "ls");  // what was being typed is back
    context->KeyPress(ImGuiKey_UpArrow, 2);
    context->KeyPress(ImGuiKey_Enter);
    IM_CHECK(
        Window::wait(context, [&] { return window.shell->state().selection == Selection(decision(50)); }));
  });
}

TEST(Repl, TabCompletesAndOffersCandidates) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    open_prompt(context);
    context->KeyChars("wh");
    context->KeyPress(ImGuiKey_Tab);
    context->Yield(2);
    IM_CHECK(candidates_shown());  // why, why-not, whatif …
    IM_CHECK(typing());
    const std::string before = prompt(context);
    IM_CHECK(before.starts_with("wh"));
    context->KeyPress(ImGuiKey_Tab);
    context->Yield(2);
    const std::string first = prompt(context);
    IM_CHECK(first.starts_with("why"));
    context->KeyPress(ImGuiKey_DownArrow);
    context->Yield(2);
    IM_CHECK(prompt(context) != first);
    context->KeyPress(ImGuiKey_UpArrow);
    context->Yield(2);
    IM_CHECK_STR_EQ(prompt(context).c_str(), first.c_str());
    // Esc takes the list away and what was chosen with it, and one goes on to type.
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(3);
    IM_CHECK(!candidates_shown());
    IM_CHECK(typing());
    IM_CHECK_STR_EQ(prompt(context).c_str(), before.c_str());
    // Typing closes the list as well.
    context->KeyPress(ImGuiKey_Tab);
    context->Yield(2);
    IM_CHECK(candidates_shown());
    context->KeyChars(" ");
    context->Yield(2);
    IM_CHECK(!candidates_shown());
  });
}

TEST(Repl, TabCompletesIdsAndACandidateCanBeClicked) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    open_prompt(context);
    context->KeyChars("why d5");
    context->KeyPress(ImGuiKey_Tab);
    context->Yield(2);
    IM_CHECK(candidates_shown());
    context->SetRef(context->WindowInfo("//##candidates/##list").ID);
    context->ItemClick("$$1/##candidate");
    context->Yield(4);
    IM_CHECK(!candidates_shown());
    IM_CHECK(typing());
    IM_CHECK_STR_EQ(prompt(context).c_str(), "why d50");
    context->KeyPress(ImGuiKey_Enter);
    IM_CHECK(
        Window::wait(context, [&] { return window.shell->state().selection == Selection(decision(50)); }));
    // The only one that is left is put in, with the blank behind it.
    context->KeyChars("summ");
    context->KeyPress(ImGuiKey_Tab);
    context->Yield(2);
    IM_CHECK_STR_EQ(prompt(context).c_str(), "summary ");
    IM_CHECK(!candidates_shown());
  });
}

TEST(Repl, APythonBlockGoesOnToAnEmptyLine) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    open_prompt(context);
    enter(context, "def f(x):");
    IM_CHECK_STR_EQ(prompt(context).c_str(), "def f(x):\n    ");
    IM_CHECK(window.host().requests().empty());
    enter(context, "return x + 1");
    IM_CHECK(window.host().requests().empty());
    context->KeyPress(ImGuiKey_Enter);
    IM_CHECK(Window::wait(context,
                          [&] { return !window.host().requests().empty() && !window.workspace->busy(); }));
    IM_CHECK_STR_EQ(prompt(context).c_str(), "");
  });
  const auto requests = window.host().requests();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_NE(requests[0].dump().find("def f(x):\\n    return x + 1"), std::string::npos) << requests[0].dump();
}

TEST(Repl, CtrlLClearsTheViewAndKeepsTheLine) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    open_prompt(context);
    enter(context, "ls nodes");
    IM_CHECK(window.quiet(context));
    context->Yield(3);
    const auto height = [&] {
      context->SetRef(context->WindowInfo("//REPL/##transcript").ID);
      return context->ItemInfo("##rows").RectFull.GetHeight();
    };
    const float full = height();
    context->KeyChars("why");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_L);
    context->Yield(3);
    IM_CHECK_LT(height(), full);
    IM_CHECK_STR_EQ(prompt(context).c_str(), "why");
    // What comes next is shown.
    enter(context, " d50");
    IM_CHECK(
        Window::wait(context, [&] { return window.shell->state().selection == Selection(decision(50)); }));
  });
}

TEST(Repl, ACommandTypedWhileTheHostWorksRunsAfterIt) {
  Window window({.open = gpt2_block});
  window.host().hold();
  window.run([&](ImGuiTestContext* context) {
    open_prompt(context);
    enter(context, "check");
    IM_CHECK(Window::wait(context, [&] { return window.workspace->busy().has_value(); }));
    IM_CHECK(context->ItemExists("//REPL/Cancel"));
    enter(context, "why d50");
    context->Yield(5);
    IM_CHECK_EQ(window.workspace->typed_waiting(), 1U);
    IM_CHECK(window.shell->state().selection != Selection(decision(50)));
    window.host().release();
    IM_CHECK(
        Window::wait(context, [&] { return window.shell->state().selection == Selection(decision(50)); }));
    IM_CHECK(window.workspace->check() != nullptr);
    IM_CHECK(!context->ItemExists("//REPL/Cancel"));
    // Cancelled, what waits for it is forgotten.
    window.host().hold();
    enter(context, "check");
    IM_CHECK(Window::wait(context, [&] { return window.workspace->busy().has_value(); }));
    enter(context, "goto d5");
    context->ItemClick("//REPL/Cancel");
    IM_CHECK(Window::wait(context, [&] { return !window.workspace->busy(); }));
    context->Yield(5);
    IM_CHECK(window.position() != 6U);
  });
  EXPECT_TRUE(window.said("cancelled"));
}

TEST(Repl, AWrongCommandIsAnErrorInTheTranscriptOnly) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    open_prompt(context);
    enter(context, "whyy d50");
    IM_CHECK(Window::wait(context, [&] { return !window.workspace->loading(); }));
    IM_CHECK(window.workspace->transcript().back().kind == workspace::TranscriptEntry::Kind::error);
    IM_CHECK(window.workspace->problem().empty());
    IM_CHECK(typing());
  });
}

}  // namespace
}  // namespace pallascope::testing
