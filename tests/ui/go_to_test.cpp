// Go to, the palette and the page of keys: opened by a key, done with by another.
#include <gtest/gtest.h>

#include "tests/ui/panels.h"

namespace pallascope::testing {
namespace {

using model::Selection;

constexpr const char* query = "//$FOCUSED/##query";

/// Opens a picker and waits until it has something to find in.
void open_picker(Window& window, ImGuiTestContext* context, ImGuiKeyChord key) {
  context->KeyPress(key);
  IM_CHECK(Window::wait(context, [] { return any_popup(); }));
  IM_CHECK(Window::wait(context, [&] {
    return window.workspace->search() != nullptr || window.workspace->scene() == nullptr ||
           key != (ImGuiMod_Ctrl | ImGuiKey_P);
  }));
  context->Yield(4);
  IM_CHECK(typing_in(context, query));
}

TEST(GoTo, ANodeIsFoundByItsNameAndEnterSelectsIt) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const std::size_t position = window.position();
    open_picker(window, context, ImGuiMod_Ctrl | ImGuiKey_P);
    context->KeyChars("layer_norm_1");
    context->Yield(3);
    context->KeyPress(ImGuiKey_Enter);
    IM_CHECK(window.quiet(context));
    IM_CHECK(!any_popup());
    const auto node = window.workspace->scene()->compilation->graph().find_node("layer_norm_1");
    IM_CHECK(node.has_value());
    IM_CHECK(window.shell->state().selection == Selection(*node));
    IM_CHECK_EQ(window.position(), position);
  });
  EXPECT_TRUE(window.said("show n"));
}

TEST(GoTo, ADecisionIsGoneTo) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    open_picker(window, context, ImGuiMod_Ctrl | ImGuiKey_P);
    context->KeyChars("d40");
    context->Yield(3);
    context->KeyPress(ImGuiKey_Enter);
    IM_CHECK(window.quiet(context));
    IM_CHECK(window.shell->state().selection == Selection(schedule::DecisionId(std::size_t{40})));
    IM_CHECK_EQ(window.workspace->scene()->position, 41U);
    context->KeyPress(ImGuiMod_Alt | ImGuiKey_LeftArrow);
    IM_CHECK(window.quiet(context));
    IM_CHECK_EQ(window.position(), window.workspace->scene()->total());
  });
}

TEST(GoTo, ArrowsAndClicksChooseARowAndEscapeDoesNothing) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_Escape);
    const Selection before = window.shell->state().selection;
    open_picker(window, context, ImGuiMod_Ctrl | ImGuiKey_P);
    context->KeyChars("linear");
    context->Yield(3);
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(3);
    IM_CHECK(!any_popup());
    IM_CHECK(window.shell->state().selection == before);
    // The second row by the arrow, then by the pointer: the same thing.
    open_picker(window, context, ImGuiMod_Ctrl | ImGuiKey_P);
    context->KeyChars("linear");
    context->Yield(3);
    context->KeyPress(ImGuiKey_DownArrow);
    context->KeyPress(ImGuiKey_Enter);
    IM_CHECK(window.quiet(context));
    IM_CHECK(!any_popup());
    const Selection second = window.shell->state().selection;
    IM_CHECK(!model::is_empty(second));
    IM_CHECK(second != before);
    context->KeyPress(ImGuiKey_Escape);
    open_picker(window, context, ImGuiMod_Ctrl | ImGuiKey_P);
    context->KeyChars("linear");
    context->Yield(3);
    context->SetRef(context->WindowInfo("//$FOCUSED/##rows").ID);
    context->ItemClick("##row1");
    IM_CHECK(window.quiet(context));
    IM_CHECK(!any_popup());
    IM_CHECK(window.shell->state().selection == second);
  });
}

TEST(GoTo, NothingFoundStaysOpen) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    open_picker(window, context, ImGuiMod_Ctrl | ImGuiKey_P);
    context->KeyChars("qqqqzzzz");
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(4);
    IM_CHECK(any_popup());
    IM_CHECK(typing_in(context, query));
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    context->KeyChars("gelu");
    context->Yield(3);
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(3);
    IM_CHECK(!any_popup());
  });
}

TEST(Palette, RunsAnAction) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    IM_CHECK(window.shell->state().dark);
    open_picker(window, context, ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P);
    context->KeyChars("light or dark");
    context->Yield(3);
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(3);
    IM_CHECK(!any_popup());
    IM_CHECK(!window.shell->state().dark);
    // A command that needs words goes to the prompt; one that needs none runs.
    open_picker(window, context, ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P);
    context->KeyChars("why-not");
    context->Yield(3);
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(6);
    IM_CHECK(in_front("REPL"));
    const ImGuiInputTextState* state = ImGui::GetInputTextState(ImGui::GetActiveID());
    IM_CHECK(state != nullptr);
    IM_CHECK_STR_EQ(state->TextA.Data, "why-not ");
    IM_CHECK_EQ(state->GetCursorPos(), 8);
    IM_CHECK(!state->HasSelection());
    context->KeyChars("add add_1");
    context->KeyPress(ImGuiKey_Enter);
    IM_CHECK(Window::wait(context, [&] { return window.said("cycle"); }));
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(2);
    open_picker(window, context, ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P);
    context->KeyChars("reasons");
    context->Yield(3);
    context->KeyPress(ImGuiKey_Enter);
    IM_CHECK(Window::wait(context, [&] { return window.said("reasons"); }));
  });
}

TEST(Palette, BringsAPanelToTheFrontAlsoOutOfAClosedDrawer) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const auto show = [&](const char* action) {
      open_picker(window, context, ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P);
      context->KeyChars(action);
      context->Yield(3);
      context->KeyPress(ImGuiKey_Enter);
      context->Yield(4);
    };
    show("show index");
    IM_CHECK(in_front("Index"));
    context->KeyPress(ImGuiKey_Q);
    context->Yield(3);
    IM_CHECK(!in_front("Index"));
    show("show the host's log");
    IM_CHECK(in_front("Log"));
    IM_CHECK(!in_front("Why"));
  });
}

TEST(Palette, WhatCannotBeDoneIsNotDone) {
  Window window;
  window.run([&](ImGuiTestContext* context) {
    open_picker(window, context, ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P);
    context->KeyChars("run and compare");
    context->Yield(3);
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(3);
    IM_CHECK(any_popup());
    IM_CHECK(window.host().requests().empty());
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(2);
    IM_CHECK(!any_popup());
  });
}

TEST(Help, OpensByAQuestionMarkAndEscapeCloses) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const Selection before = window.shell->state().selection;
    for (const ImGuiKeyChord key : {ImGuiMod_Shift | ImGuiKey_Slash, static_cast<int>(ImGuiKey_F1)}) {
      context->KeyPress(key);
      context->Yield(3);
      IM_CHECK(any_popup());
      IM_CHECK(context->ItemExists("//$FOCUSED/Close"));
      const std::size_t position = window.position();
      context->KeyPress(ImGuiKey_LeftArrow);
      IM_CHECK_EQ(window.position(), position);  // what it tells of does not happen behind it
      context->KeyPress(ImGuiKey_Escape);
      context->Yield(3);
      IM_CHECK(!any_popup());
      IM_CHECK(window.shell->state().selection == before);  // Esc closed the page and nothing else
    }
  });
}

}  // namespace
}  // namespace pallascope::testing
