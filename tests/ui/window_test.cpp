// Opening, stepping, running, losing the host: what every panel leans on.
#include <gtest/gtest.h>

#include "tests/ui/support.h"

namespace pallascope::testing {
namespace {

using model::Selection;

schedule::DecisionId decision(std::size_t k) { return schedule::DecisionId(k); }

TEST(Window, OpensAtTheLargestMissedFusion) {
  Window window({.start_at_refusal = true, .open = gpt2_block});
  const auto scene = window.workspace->scene();
  const auto* selected = std::get_if<schedule::DecisionId>(&window.shell->state().selection);
  ASSERT_NE(selected, nullptr);
  const schedule::Decision& chosen = scene->compilation->decisions()[selected->index()];
  EXPECT_FALSE(chosen.accepted);
  EXPECT_EQ(chosen.kind, schedule::DecisionKind::fuse);
  EXPECT_NE(chosen.reason, schedule::Reason::library_boundary);
  EXPECT_EQ(scene->position, selected->index() + 1);
  EXPECT_TRUE(window.said("goto " + report::id_text(*selected)));
}

TEST(Window, ArrowsStepAndTheSelectionIsTheDecision) {
  Window window({.open = gpt2_block});
  const std::size_t total = window.workspace->scene()->total();
  window.run([&](ImGuiTestContext* context) {
    IM_CHECK_EQ(window.position(), total);
    context->KeyPress(ImGuiKey_LeftArrow);
    IM_CHECK(window.quiet(context));
    IM_CHECK_EQ(window.workspace->scene()->position, total - 1);
    IM_CHECK(window.shell->state().selection == Selection(decision(total - 2)));
    context->KeyPress(ImGuiKey_LeftArrow);
    context->KeyPress(ImGuiKey_LeftArrow);
    IM_CHECK(window.quiet(context));
    IM_CHECK_EQ(window.workspace->scene()->position, total - 3);
    context->KeyPress(ImGuiKey_RightArrow);
    IM_CHECK(window.quiet(context));
    IM_CHECK_EQ(window.workspace->scene()->position, total - 2);
    IM_CHECK(window.shell->state().selection == Selection(decision(total - 3)));
  });
  // Many steps are one line of the transcript: where one is, not how one came there.
  EXPECT_TRUE(window.said("goto " + report::id_text(decision(total - 3))));
  EXPECT_FALSE(window.said("goto " + report::id_text(decision(total - 2))));
}

TEST(Window, ArrowsStopAtBothEnds) {
  Window window({.open = gpt2_block});
  const std::size_t total = window.workspace->scene()->total();
  window.run([&](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_RightArrow);
    IM_CHECK_EQ(window.position(), total);
    window.workspace->move_to(0);
    IM_CHECK(window.quiet(context));
    context->KeyPress(ImGuiKey_LeftArrow);
    context->Yield(2);
    IM_CHECK_EQ(window.position(), 0U);
  });
}

TEST(Window, SourceShowsWhatTheStepChanged) {
  Window window({.open = gpt2_block});
  const auto& decisions = window.workspace->scene()->compilation->decisions();
  std::size_t fused = decisions.size(), refused = decisions.size();
  for (std::size_t k = 0; k < decisions.size(); ++k) {
    if (decisions[k].kind != schedule::DecisionKind::fuse) continue;
    (decisions[k].accepted ? fused : refused) = k;
  }
  const auto changed_lines = [&] {
    std::size_t count = 0;
    for (const auto& line : (*window.workspace->scene()->columns)[model::ColumnKind::pallas].lines)
      count += line.flag != model::LineFlag::same || line.removed_before > 0 ? 1 : 0;
    return count;
  };
  window.workspace->move_to(fused + 1);
  window.settle();
  EXPECT_GT(changed_lines(), 0U);
  window.workspace->move_to(refused + 1);
  window.settle();
  EXPECT_EQ(changed_lines(), 0U);  // a refusal changes nothing
}

TEST(Window, BracketsMoveByPass) {
  Window window({.open = gpt2_block});
  const auto& decisions = window.workspace->scene()->compilation->decisions();
  window.run([&](ImGuiTestContext* context) {
    window.workspace->move_to(3);
    IM_CHECK(window.quiet(context));
    context->KeyPress(ImGuiKey_RightBracket);
    IM_CHECK(window.quiet(context));
    const std::size_t k = window.position() - 1;
    IM_CHECK(decisions[k].kind == schedule::DecisionKind::inline_producer);
    IM_CHECK(decisions[k - 1].kind == schedule::DecisionKind::lower);
    context->KeyPress(ImGuiKey_LeftBracket);
    IM_CHECK(window.quiet(context));
    IM_CHECK_EQ(window.position(), 1U);
  });
}

TEST(Window, BackAndForwardReturnToSelectionAndPlace) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const std::size_t total = window.position();
    for (int k = 0; k < 3; ++k) {
      context->KeyPress(ImGuiKey_LeftArrow);
      IM_CHECK(window.quiet(context));
    }
    context->KeyPress(ImGuiMod_Alt | ImGuiKey_LeftArrow);
    IM_CHECK(window.quiet(context));
    IM_CHECK_EQ(window.position(), total - 2);
    context->KeyPress(ImGuiMod_Alt | ImGuiKey_RightArrow);
    IM_CHECK(window.quiet(context));
    IM_CHECK_EQ(window.position(), total - 3);
  });
}

TEST(Window, RunAndCompareKeepsItsPlaceAndGreysOut) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_F5);
    IM_CHECK(Window::wait(context, [&] { return window.workspace->check() != nullptr; }));
    IM_CHECK(window.workspace->check()->passed);
    IM_CHECK(window.workspace->check_is_current());
    const std::size_t at = window.workspace->check()->decision;
    context->KeyPress(ImGuiKey_LeftArrow);
    IM_CHECK(window.quiet(context));
    IM_CHECK(!window.workspace->check_is_current());
    IM_CHECK_EQ(window.workspace->check()->decision, at);
  });
  EXPECT_TRUE(window.said("check"));
}

TEST(Window, StepsWhileTheHostWorksAndCancels) {
  Window window({.open = gpt2_block});
  window.host().hold();
  window.run([&](ImGuiTestContext* context) {
    const std::size_t total = window.position();
    context->KeyPress(ImGuiKey_F5);
    IM_CHECK(Window::wait(context, [&] { return window.workspace->busy() && window.workspace->busy()->fraction > 0; }));
    IM_CHECK_STR_EQ(window.workspace->busy()->text.c_str(), "running kernel 3 of 9");
    context->KeyPress(ImGuiKey_LeftArrow);
    IM_CHECK(Window::wait(context, [&] { return window.workspace->scene()->position == total - 1; }));
    IM_CHECK(window.workspace->busy().has_value());
    window.workspace->cancel();
    IM_CHECK(Window::wait(context, [&] { return !window.workspace->busy(); }));
  });
  EXPECT_EQ(window.workspace->check(), nullptr);
  EXPECT_TRUE(window.said("cancelled"));
}

TEST(Window, LosesTheHostAndGetsItBack) {
  Window window({.open = gpt2_block});
  window.host().hold();
  window.run([&](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_F5);
    IM_CHECK(Window::wait(context, [&] { return window.workspace->busy() && window.workspace->busy()->fraction > 0; }));
    window.host().die();
    IM_CHECK(Window::wait(context, [&] { return !window.workspace->busy(); }));
    IM_CHECK(window.workspace->host().state == repl::HostStatus::State::died);
    IM_CHECK(window.workspace->problem().find("signal 11") != std::string::npos);
    // What is open is unharmed, and looking goes on.
    context->KeyPress(ImGuiKey_LeftArrow);
    IM_CHECK(window.quiet(context));
    window.host().release();
    window.workspace->restart_host();
    context->KeyPress(ImGuiKey_F5);
    IM_CHECK(Window::wait(context, [&] { return window.workspace->check() != nullptr; }));
  });
  EXPECT_TRUE(window.workspace->check_is_current());
}

TEST(Window, TypedCommandsSelectInThePanels) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    window.workspace->type("why d63");
    IM_CHECK(Window::wait(context, [&] { return window.shell->state().selection == Selection(decision(63)); }));
    IM_CHECK(window.quiet(context));
    window.workspace->type("show n21");
    IM_CHECK(Window::wait(context, [&] { return window.shell->state().selection == Selection(trace::NodeId(std::size_t{21})); }));
    window.workspace->type("goto d40");
    IM_CHECK(Window::wait(context, [&] { return window.workspace->scene()->position == 41; }));
    IM_CHECK(window.shell->state().selection == Selection(decision(40)));
  });
  EXPECT_TRUE(window.said("common grid"));  // the output of a typed command is in the transcript
}

TEST(Window, ABadFileIsAProblemAndNothingIsLost) {
  Window window({.open = gpt2_block});
  const auto before = window.workspace->scene();
  window.shell->drop({"/nonexistent/model.pt2"});
  window.settle();
  EXPECT_NE(window.workspace->problem().find("there is no file"), std::string::npos);
  EXPECT_EQ(window.workspace->scene(), before);
  window.run([&](ImGuiTestContext* context) {
    context->ItemClick("//Problem/Close");
    IM_CHECK(window.workspace->problem().empty());
  });
}

TEST(Window, APythonFileIsNotRunBecauseItWasDropped) {
  Window window;
  window.shell->drop({PALLASCOPE_ASSETS_DIR "/examples/sin_add.py"});
  window.settle();
  EXPECT_TRUE(window.host().requests().empty());
  EXPECT_FALSE(window.shell->state().dropped.empty());
}

TEST(Window, KeepsColoursAndScaleForTheNextRun) {
  const auto folder = std::filesystem::temp_directory_path() / "pallascope_ui_look";
  std::filesystem::remove_all(folder);
  {
    Window window({.open = gpt2_block, .state_folder = folder});
    EXPECT_FALSE(std::filesystem::exists(folder / "look.json"));  // nothing was chosen
    window.run([&](ImGuiTestContext* context) {
      context->ItemClick("//##toolbar/theme");
      IM_CHECK(!window.shell->state().dark);
      context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Equal);
      context->Yield(2);
    });
    window.settle();
  }
  const workspace::Look look = workspace::load_look(folder / "look.json");
  EXPECT_FALSE(look.dark);
  EXPECT_FLOAT_EQ(look.scale, 1.1F);
  std::filesystem::remove_all(folder);
}

TEST(Window, EverySizeAndThemeDraws) {
  for (const bool dark : {true, false}) {
    for (const auto& [width, height] : {std::pair{1280.0F, 720.0F}, {1600.0F, 1000.0F}, {640.0F, 400.0F}, {3840.0F, 2160.0F}}) {
      Window window({.width = width, .height = height, .dark = dark, .start_at_refusal = true, .open = gpt2_block});
      EXPECT_GT(ImGui::GetDrawData()->TotalVtxCount, 1000);
    }
  }
}

}  // namespace
}  // namespace pallascope::testing
