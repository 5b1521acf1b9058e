// The start page, and the question before a Python file is executed.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/ui/panels.h"
#include "tests/unit/support/graph_text.h"

namespace pallascope::testing {
namespace {

const std::string softmax = PALLASCOPE_ASSETS_DIR "/examples/softmax.py";

std::string on_page(ImGuiTestContext* context, const std::string& item) {
  context->SetRef(context->WindowInfo("//##start/##page").ID);
  return item;
}

/// What the host answers to `trace`: nothing that can be opened, which is enough to see that it was asked.
Result<report::Json> no_trace(const report::Json&) {
  return Diagnostic{DiagnosticKind::host_error, "scripted", "", ""};
}

void drop(Window& window, ImGuiTestContext* context, const std::string& path) {
  window.shell->drop({path});
  IM_CHECK(Window::wait(context, [&] { return any_popup(); }));
  IM_CHECK(Window::wait(context, [&] { return window.workspace->python_file() != nullptr; }));
  context->Yield(2);
}

constexpr const char* question = "//Execute this file?###question";

std::string ask(const char* item) { return std::string(question) + "/" + item; }

TEST(Start, AnExampleOpens) {
  Window window;
  window.run([&](ImGuiTestContext* context) {
    IM_CHECK(window.workspace->scene() == nullptr);
    context->ItemClick(on_page(context, "##example_gpt2_block.pt2").c_str());
    IM_CHECK(Window::wait(context, [&] { return window.workspace->scene() != nullptr; }));
    IM_CHECK(window.quiet(context));
    IM_CHECK(in_front("Decisions"));
  });
  EXPECT_TRUE(window.said("open "));
}

TEST(Start, ATypedPathOpensAndAWrongOneSaysSo) {
  Window window;
  window.run([&](ImGuiTestContext* context) {
    IM_CHECK((context->ItemInfo(on_page(context, "Open").c_str()).ItemFlags & ImGuiItemFlags_Disabled) != 0);
    context->ItemClick(on_page(context, "##path").c_str());
    context->KeyChars("/nonexistent/model.pt2");
    context->Yield(2);
    context->ItemClick(on_page(context, "Open").c_str());
    IM_CHECK(Window::wait(context, [&] { return !window.workspace->problem().empty(); }));
    IM_CHECK(window.workspace->scene() == nullptr);
    context->ItemClick(on_page(context, "##path").c_str());
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    context->KeyChars(gpt2_block.c_str());
    context->KeyPress(ImGuiKey_Enter);
    IM_CHECK(Window::wait(context, [&] { return window.workspace->scene() != nullptr; }));
  });
}

TEST(Start, NothingRunsBeforeTheAnswer) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    drop(window, context, softmax);
    IM_CHECK(window.host().requests().empty());
    // Keys of the window do nothing behind the question.
    const std::size_t position = window.position();
    context->KeyPress(ImGuiKey_LeftArrow);
    IM_CHECK_EQ(window.position(), position);
    context->ItemClick(ask("Do not open").c_str());
    context->Yield(3);
    IM_CHECK(!any_popup());
    IM_CHECK(window.shell->state().dropped.empty());
  });
  EXPECT_TRUE(window.host().requests().empty());
}

TEST(Start, EnterAndEscapeDoNotOpen) {
  for (const ImGuiKey key : {ImGuiKey_Enter, ImGuiKey_KeypadEnter, ImGuiKey_Escape, ImGuiKey_Space}) {
    Window window({.open = gpt2_block});
    window.run([&](ImGuiTestContext* context) {
      drop(window, context, softmax);
      context->KeyPress(key);
      context->Yield(3);
      IM_CHECK(!any_popup());
      IM_CHECK(window.shell->state().dropped.empty());
    });
    EXPECT_TRUE(window.host().requests().empty()) << ImGui::GetKeyName(key);
  }
}

TEST(Start, KeysInAFieldOfTheQuestionNeverRunTheFile) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    drop(window, context, softmax);
    context->ItemClick(ask("##specs").c_str());
    context->KeyChars("f32[64,256]");
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(3);
    IM_CHECK(window.host().requests().empty());
    IM_CHECK(any_popup());  // what was typed is not lost to a slip
    context->ItemClick(ask("##specs").c_str());
    context->KeyPress(ImGuiKey_Escape);  // leaves the field, or the question; runs nothing
    context->Yield(3);
    IM_CHECK(window.host().requests().empty());
    if (any_popup()) context->KeyPress(ImGuiKey_Escape);
    context->Yield(3);
    IM_CHECK(!any_popup());
  });
  EXPECT_TRUE(window.host().requests().empty());
}

TEST(Start, AWrongInputCannotBeRun) {
  Window window;
  window.run([&](ImGuiTestContext* context) {
    drop(window, context, softmax);
    context->ItemClick(ask("##specs").c_str());
    context->KeyChars("f32[64 256]");
    context->Yield(3);
    IM_CHECK((context->ItemInfo(ask("Run it").c_str()).ItemFlags & ImGuiItemFlags_Disabled) != 0);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    context->KeyChars("f32[64,256]");
    context->Yield(3);
    IM_CHECK((context->ItemInfo(ask("Run it").c_str()).ItemFlags & ImGuiItemFlags_Disabled) == 0);
    // A function has to be named.
    context->ItemClick(ask("##function").c_str());
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    context->KeyPress(ImGuiKey_Delete);
    context->Yield(3);
    IM_CHECK((context->ItemInfo(ask("Run it").c_str()).ItemFlags & ImGuiItemFlags_Disabled) != 0);
  });
  EXPECT_TRUE(window.host().requests().empty());
}

TEST(Start, RunItAsksTheHostForThatFunctionWithThoseInputs) {
  Window window;
  window.host().set_answer(no_trace);
  window.run([&](ImGuiTestContext* context) {
    drop(window, context, softmax);
    context->ItemClick(ask("##specs").c_str());
    context->KeyChars("f32[64,256]");
    context->Yield(2);
    context->ItemClick(ask("Run it").c_str());
    IM_CHECK(Window::wait(context,
                          [&] { return !window.host().requests().empty() && !window.workspace->busy(); }));
    context->Yield(2);
    IM_CHECK(!any_popup());
    IM_CHECK(!window.workspace->problem().empty());  // the scripted host has no graph to give
  });
  const auto requests = window.host().requests();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].value("request", ""), "trace");
  const std::string text = requests[0].dump();
  EXPECT_NE(text.find("softmax.py"), std::string::npos) << text;
  EXPECT_NE(text.find("\"f\""), std::string::npos) << text;
  EXPECT_NE(text.find("64"), std::string::npos) << text;
  EXPECT_TRUE(window.said("trace ") && window.said("softmax.py:f f32[64,256]")) << window.transcript();
}

TEST(Start, CtrlOShowsThePageOverAProgramAndEscapeCloses) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const auto scene = window.workspace->scene();
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
    context->Yield(3);
    IM_CHECK(window.shell->state().start_page);
    IM_CHECK(!in_front("Decisions"));
    context->KeyChars("w");  // one goes on to type a path at once
    context->Yield(2);
    IM_CHECK((context->ItemInfo(on_page(context, "Open").c_str()).ItemFlags & ImGuiItemFlags_Disabled) == 0);
    context->KeyPress(ImGuiKey_Backspace);
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(3);
    IM_CHECK(!window.shell->state().start_page);
    IM_CHECK(in_front("Decisions"));
    IM_CHECK(window.workspace->scene() == scene);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
    context->Yield(3);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
    context->Yield(3);
    IM_CHECK(!window.shell->state().start_page);
    // By the button, too; and what is opened there takes the page away.
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
    context->Yield(3);
    context->SetRef(context->WindowInfo("//##start/##close").ID);
    context->ItemClick("✕ Close");
    context->Yield(2);
    IM_CHECK(!window.shell->state().start_page);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
    context->Yield(3);
    context->ItemClick(on_page(context, "##example_gpt2_block.pt2").c_str());
    IM_CHECK(Window::wait(context, [&] { return window.workspace->scene() != scene; }));
    IM_CHECK(window.quiet(context));
    IM_CHECK(!window.shell->state().start_page);
  });
}

TEST(Start, RecentFilesAreListedAndOpen) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "pallascope_ui_recent";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string path = (folder / "rows.json").string(), gone = (folder / "gone.json").string();
  for (const std::string& each : {path, gone}) std::ofstream(each) << softmax_rows(8, 32).json();
  {
    Window window({.open = path, .state_folder = folder});
  }
  {
    Window window({.open = gone, .state_folder = folder});
  }
  fs::remove(gone);
  Window window({.state_folder = folder});
  window.settle();
  window.run([&](ImGuiTestContext* context) {
    IM_CHECK_EQ(window.workspace->recent().size(), 2U);
    // The newest first; it is no longer there, so that a click does nothing.
    context->ItemClick(on_page(context, "##recent0").c_str());
    context->Yield(5);
    IM_CHECK(window.workspace->problem().empty());
    IM_CHECK(!window.workspace->loading());
    context->ItemClick(on_page(context, "##recent1").c_str());
    IM_CHECK(Window::wait(context, [&] { return window.workspace->scene() != nullptr; }));
    IM_CHECK_STR_EQ(window.workspace->scene()->path.c_str(), path.c_str());
  });
  fs::remove_all(folder);
}

}  // namespace
}  // namespace pallascope::testing
