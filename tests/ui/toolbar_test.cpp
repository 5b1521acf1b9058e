// The toolbar: run and cancel, the open popup, the pickers, colours and help.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "core/report/json.h"
#include "tests/ui/places.h"
#include "tests/ui/support.h"

namespace pallascope::testing {
namespace {

const std::string softmax = PALLASCOPE_TEST_DATA "/golden/data/softmax.json";

/// A program of two graphs: sin_add's, and a copy of it that is called another name.
std::string two_graphs() {
  std::ifstream file(PALLASCOPE_TEST_DATA "/golden/data/sin_add.json");
  report::Json trace = report::Json::parse(file);
  report::Json other = trace["graphs"][0];
  other["name"] = "g";
  other["nodes"].erase(1);
  other["outputs"][0]["value"] = "sin";
  trace["graphs"].push_back(other);
  const auto path = std::filesystem::path(::testing::TempDir()) / "pallascope_two_graphs.json";
  std::ofstream(path) << trace.dump();
  return path.string();
}

TEST(Toolbar, RunsShowsProgressAndCancels) {
  Window window({.open = gpt2_block});
  window.host().hold();
  window.run([&](ImGuiTestContext* context) {
    IM_CHECK(!context->ItemExists("//##toolbar/cancel"));
    context->ItemClick("//##toolbar/run");
    IM_CHECK(Window::wait(
        context, [&] { return window.workspace->busy() && window.workspace->busy()->fraction > 0; }));
    IM_CHECK(!context->ItemExists("//##toolbar/run"));
    context->ItemClick("//##toolbar/cancel");
    IM_CHECK(Window::wait(context, [&] { return !window.workspace->busy(); }));
    IM_CHECK(context->ItemExists("//##toolbar/run"));
    IM_CHECK(window.workspace->check() == nullptr);
    window.host().release();
    context->ItemClick("//##toolbar/run");
    IM_CHECK(Window::wait(context, [&] { return window.workspace->check() != nullptr; }));
  });
  EXPECT_TRUE(window.workspace->check()->passed);
  EXPECT_TRUE(window.said("cancelled"));
}

TEST(Toolbar, ColoursAndHelp) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    IM_CHECK(window.shell->state().dark);
    const ImU32 before = ImGui::GetColorU32(ImGuiCol_WindowBg);
    context->ItemClick("//##toolbar/theme");
    context->Yield(2);
    IM_CHECK(!window.shell->state().dark);
    IM_CHECK(ImGui::GetColorU32(ImGuiCol_WindowBg) != before);
    context->ItemClick("//##toolbar/theme");
    context->Yield(2);
    IM_CHECK(window.shell->state().dark);
    IM_CHECK_EQ(ImGui::GetColorU32(ImGuiCol_WindowBg), before);
    IM_CHECK_EQ(popups(), 0);
    context->ItemClick("//##toolbar/help");
    context->Yield(2);
    IM_CHECK_EQ(popups(), 1);
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(2);
    IM_CHECK_EQ(popups(), 0);
  });
}

TEST(Toolbar, OpensATypedPath) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const auto before = window.workspace->scene()->program;
    context->ItemClick("//##toolbar/open");
    context->Yield(2);
    IM_CHECK_EQ(popups(), 1);
    IM_CHECK(context->UiContext->IO.WantTextInput);  // one can type at once
    context->KeyCharsReplaceEnter(softmax.c_str());
    IM_CHECK(Window::wait(context, [&] { return window.workspace->scene()->program != before; }));
    IM_CHECK_EQ(popups(), 0);
    IM_CHECK_STR_EQ(window.workspace->scene()->path.c_str(), softmax.c_str());
  });
  EXPECT_TRUE(window.said("open " + softmax));
}

TEST(Toolbar, OpensAFileOfTheListAndTabCompletes) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const auto before = window.workspace->scene()->program;
    context->ItemClick("//##toolbar/open");
    context->Yield(2);
    context->KeyCharsReplace(softmax.substr(0, softmax.size() - 8).c_str());  // …/soft
    context->KeyPress(ImGuiKey_Tab);
    context->Yield(2);
    context->KeyPress(ImGuiKey_Enter);
    IM_CHECK(Window::wait(context, [&] { return window.workspace->scene()->program != before; }));
    IM_CHECK_STR_EQ(window.workspace->scene()->path.c_str(), softmax.c_str());
    // And by a click on what the folder holds.
    context->ItemClick("//##toolbar/open");
    context->Yield(2);
    context->KeyCharsReplace((softmax.substr(0, softmax.size() - 12) + "sin").c_str());
    context->Yield(2);
    context->ItemClick(id_in(context, "//$FOCUSED/candidates", "$$0/##candidate"));
    IM_CHECK(
        Window::wait(context, [&] { return window.workspace->scene()->path.ends_with("sin_add.json"); }));
    IM_CHECK_EQ(popups(), 0);
  });
}

TEST(Toolbar, PicksAmongSeveralGraphs) {
  Window window({.open = two_graphs()});
  ASSERT_EQ(window.workspace->scene()->program->graphs.size(), 2U) << window.workspace->problem();
  window.run([&](ImGuiTestContext* context) {
    IM_CHECK_EQ(window.workspace->scene()->compilation->graph_index(), 0U);
    context->ItemClick("//##toolbar/graph");
    IM_CHECK_EQ(popups(), 1);
    choose(context, "1  g##graph1");
    IM_CHECK(
        Window::wait(context, [&] { return window.workspace->scene()->compilation->graph_index() == 1; }));
    IM_CHECK(window.workspace->scene()->compilation->graph().name == "g");
    IM_CHECK_EQ(popups(), 0);
    // The one that is there already is no command.
    const auto scene = window.workspace->scene();
    context->ItemClick("//##toolbar/graph");
    choose(context, "1  g##graph1");
    context->Yield(4);
    IM_CHECK(window.workspace->scene() == scene);
  });
  EXPECT_TRUE(window.said("use 1"));
}

TEST(Toolbar, AProgramOfOneGraphHasNoPicker) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) { IM_CHECK(!context->ItemExists("//##toolbar/graph")); });
}

TEST(Toolbar, HostAndTargetSayWhatTheyAre) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    context->ItemClick("//##toolbar/target");
    IM_CHECK_EQ(popups(), 1);
    choose(context, "interpret");
    IM_CHECK_EQ(popups(), 0);
    context->ItemClick("//##toolbar/host");
    IM_CHECK_EQ(popups(), 1);
    choose(context, "host_log");
    context->Yield(2);
    IM_CHECK_EQ(popups(), 0);
    IM_CHECK(in_front("Log"));
    context->ItemClick("//##toolbar/host");
    choose(context, "restart");
    IM_CHECK_EQ(popups(), 0);
    IM_CHECK(Window::wait(context, [&] { return window.workspace->host().starts == 2; }));
  });
}

TEST(Toolbar, ADeadHostIsRestartedFromTheToolbar) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    IM_CHECK(!context->ItemExists("//##toolbar/restart_now"));
    window.host().die();
    IM_CHECK(Window::wait(context,
                          [&] { return window.workspace->host().state == repl::HostStatus::State::died; }));
    context->ItemClick("//##toolbar/restart_now");
    IM_CHECK(Window::wait(context,
                          [&] { return window.workspace->host().state == repl::HostStatus::State::ready; }));
    context->Yield(2);
    IM_CHECK(!context->ItemExists("//##toolbar/restart_now"));
  });
}

}  // namespace
}  // namespace pallascope::testing
