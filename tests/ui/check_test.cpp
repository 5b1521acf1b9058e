// The Check panel on answers as the host gives them: pictures of outputs, rows of buffers, and no host at all.
#include <gtest/gtest.h>

#include "tests/ui/panels.h"

namespace pallascope::testing {
namespace {

using model::Selection;
using report::Json;

Json figures(bool failed) {
  return {{"verdict", failed ? "failed" : "passed"},
          {"reasons", failed ? Json{"3 of 2,048 elements are outside the tolerance"} : Json::array()},
          {"dtype", "f32"},
          {"expected_dtype", "f32"},
          {"sizes", {2, 16, 64}},
          {"expected_sizes", {2, 16, 64}},
          {"strides", {1024, 64, 1}},
          {"strides_equal", true},
          {"elements", 2048},
          {"max_abs", failed ? 2.5 : 4.76837158203125e-07},
          {"max_rel", 3.1e-05},
          {"max_ulp", 512.0},
          {"rmse", 8.5e-08},
          {"rmse_eager", 7.5e-08},
          {"as_close_as_eager", !failed},
          {"mismatched", failed ? 3 : 0},
          {"nan", 0},
          {"nan_eager", 0},
          {"inf", 0},
          {"inf_eager", 0},
          {"flushed", 0},
          {"tolerance", {{"atol", 1e-05}, {"rtol", 1.3e-06}}},
          {"first", failed ? Json{{"index", {0, 1, 2}}, {"ours", 1.5}, {"eager", 1.25}} : Json(nullptr)},
          {"worst", {{"index", {0, 10, 25}}, {"ours", 1.2023968696594238}, {"eager", 1.202397346496582}}}};
}

Json picture() {
  Json cells = Json::array();
  for (int k = 0; k < 32 * 64; ++k) cells.push_back(k % 7 == 0 ? 0.0 : 1e-9 * (k + 1));
  return {{"rows", 32},
          {"cols", 64},
          {"of_rows", 32},
          {"of_cols", 64},
          {"axes", "rows: axes 0-1 (2x16), columns: axis 2 (64)"},
          {"cells", cells},
          {"nan", {5, 70}},
          {"both_nan", {7}}};
}

Json histogram() {
  return {{"zero", 697}, {"nan", 2}, {"both_nan", 1}, {"first_exponent", -9}, {"counts", {5, 762, 584}}};
}

Json buffer(const char* id, const char* node, const char* name, const char* kernel, const char* call,
            bool failed) {
  Json row = figures(failed);
  row.update({{"buffer", id},
              {"node", node},
              {"node_name", name},
              {"output", 0},
              {"value", name},
              {"variable", "t_buf"},
              {"kernel", kernel == nullptr ? Json(nullptr) : Json(kernel)},
              {"call", call == nullptr ? Json(nullptr) : Json(call)}});
  return row;
}

/// What `check --picture --buffers` gives of the block. Of the buffers the first that differs alone has a picture.
Json answer(bool failed, bool detail = true) {
  Json debug = figures(failed), steady = figures(false);
  if (detail) {
    debug.update({{"picture", picture()}, {"histogram", histogram()}});
    steady.update({{"picture", nullptr}, {"histogram", nullptr}});
  }
  Json buffers = {buffer("b15", "n0", "layer_norm", "k0", nullptr, false),
                  buffer("b17", "n1", "linear", "k1", nullptr, failed),
                  buffer("b18", "n8", "matmul", nullptr, "aten.matmul.default", failed)};
  if (failed) buffers[1].update({{"picture", picture()}, {"histogram", histogram()}});
  Json result = {{"verdict", failed ? "failed" : "passed"},
                 {"platform", "cpu"},
                 {"jax", "0.10.2"},
                 {"python", "3.11.2"},
                 {"torch", "2.13.0+cpu"},
                 {"interpret", true},
                 {"seconds", 2.8},
                 {"seconds_by_mode", {{"debug", 1.9}, {"steady", 0.7}}},
                 {"seconds_eager", 0.02},
                 {"float64", nullptr},
                 {"notes", Json::array()},
                 {"inputs_made", "1 random (seed 0), 12 given"},
                 {"outputs", Json::array({{{"index", 0},
                                           {"kind", "output"},
                                           {"name", "add_1"},
                                           {"dtype", "f32"},
                                           {"sizes", {2, 16, 64}},
                                           {"verdict", failed ? "failed" : "passed"},
                                           {"worst_mode", "debug"},
                                           {"modes", {{"debug", debug}, {"steady", steady}}}}})}};
  if (detail) {
    result["buffers"] = buffers;
    result["first_divergence"] = failed ? buffers[1] : Json(nullptr);
  }
  return result;
}

/// A row of the table, whose ID holds how many columns there is room for.
std::string row(ImGuiTestContext* context, int k) {
  const auto item =
      context->ItemInfo(("//Check/**/##check" + std::to_string(k)).c_str(), ImGuiTestOpFlags_NoError);
  return item.ID == 0 ? std::string() : "//Check/**/##check" + std::to_string(k);
}

void check(Window& window, ImGuiTestContext* context) {
  const auto before = window.workspace->check();
  context->KeyPress(ImGuiKey_F5);
  IM_CHECK(Window::wait(context, [&] { return window.workspace->check() != before; }));
  IM_CHECK(window.quiet(context));
  context->Yield(3);
}

trace::NodeId named(const Window& window, const char* name) {
  return *window.workspace->scene()->compilation->graph().find_node(name);
}

TEST(Check, TheButtonRunsAndAPassedCheckShowsWhatTheHostGave) {
  Window window({.open = gpt2_block});
  window.host().set_answer([](const Json&) { return answer(false); });
  window.run([&](ImGuiTestContext* context) {
    IM_CHECK(context->ItemExists("//Check/Run & compare"));
    context->ItemClick("//Check/Run & compare");
    IM_CHECK(Window::wait(context, [&] { return window.workspace->check() != nullptr; }));
    IM_CHECK(window.quiet(context));
    context->Yield(3);
    IM_CHECK(!context->ItemExists("//Check/Run & compare"));
    // One output and three buffers; the picture and the histogram of the output.
    for (int k = 0; k < 4; ++k) IM_CHECK(!row(context, k).empty());
    IM_CHECK(row(context, 4).empty());
    const auto drawn = context->ItemInfo("//Check/##picture"),
               bars = context->ItemInfo("//Check/##histogram");
    IM_CHECK_GT(drawn.RectFull.GetWidth(), 60.0F);
    IM_CHECK_GT(drawn.RectFull.GetHeight(), 30.0F);
    IM_CHECK_GT(bars.RectFull.GetHeight(), 30.0F);
    IM_CHECK_LE(drawn.RectFull.Max.x, bars.RectFull.Min.x);
    // The other mode has no picture.
    context->ItemClick("//Check/steady##modesteady");
    context->Yield(3);
    IM_CHECK(!context->ItemExists("//Check/##picture"));
    context->ItemClick("//Check/debug##modedebug");
    context->Yield(3);
    IM_CHECK(context->ItemExists("//Check/##picture"));
    // A buffer that does not differ has none, and is what a click on it selects.
    context->ItemClick(row(context, 2).c_str());
    context->Yield(3);
    IM_CHECK(window.shell->state().selection == Selection(named(window, "linear")));
    IM_CHECK(!context->ItemExists("//Check/##picture"));
    IM_CHECK(!context->ItemExists("//Check/debug##modedebug"));
    // A node that is selected elsewhere chooses its row.
    select(window, context, named(window, "add_1"));
    IM_CHECK(context->ItemExists("//Check/##picture"));
  });
  const auto requests = window.host().requests();
  ASSERT_EQ(requests_named(window.host(), "check"), 1U);
  EXPECT_TRUE(requests.back().value("picture", false));
  EXPECT_TRUE(window.said("check --picture --buffers"));
}

TEST(Check, AFailedCheckStartsWithTheFirstDivergence) {
  Window window({.open = gpt2_block});
  window.host().set_answer([](const Json&) { return answer(true); });
  window.run([&](ImGuiTestContext* context) {
    check(window, context);
    IM_CHECK(!window.workspace->check()->passed);
    // Chosen from the start, with its picture; a click selects the node that diverges, the next one the output.
    IM_CHECK(context->ItemExists("//Check/##picture"));
    IM_CHECK(context->ItemExists("//Check/##histogram"));
    IM_CHECK(!context->ItemExists("//Check/debug##modedebug"));  // a buffer is compared in one way
    context->ItemClick(row(context, 0).c_str());
    IM_CHECK(window.shell->state().selection == Selection(named(window, "linear")));
    context->ItemClick(row(context, 1).c_str());
    IM_CHECK(window.shell->state().selection == Selection(named(window, "add_1")));
    context->Yield(3);
    IM_CHECK(context->ItemExists("//Check/debug##modedebug"));
    context->ItemClick(row(context, 3).c_str());
    IM_CHECK(window.shell->state().selection == Selection(named(window, "layer_norm")));
  });
}

TEST(Check, GreysOutWhenTheProgramMovesAndRunsAgain) {
  Window window({.open = gpt2_block});
  window.host().set_answer([](const Json&) { return answer(false); });
  window.run([&](ImGuiTestContext* context) {
    check(window, context);
    IM_CHECK(!context->ItemExists("//Check/Run again"));
    context->KeyPress(ImGuiKey_LeftArrow);
    IM_CHECK(window.quiet(context));
    context->Yield(2);
    IM_CHECK(!window.workspace->check_is_current());
    IM_CHECK(!row(context, 0).empty());  // what it found stays in sight
    const auto before = window.workspace->check();
    context->ItemClick("//Check/Run again");
    IM_CHECK(Window::wait(context, [&] { return window.workspace->check() != before; }));
    IM_CHECK(window.quiet(context));
    IM_CHECK(window.workspace->check_is_current());
    context->Yield(2);
    IM_CHECK(!context->ItemExists("//Check/Run again"));
    // Back where the older one was made it is not that one's turn again: the newest result counts.
    IM_CHECK_EQ(window.workspace->check()->decision, window.position());
  });
  EXPECT_EQ(requests_named(window.host(), "check"), 2U);
}

TEST(Check, WithoutPicturesOrBuffersItShowsTheFigures) {
  Window window({.open = gpt2_block});
  window.host().set_answer([](const Json&) { return answer(false, false); });
  window.run([&](ImGuiTestContext* context) {
    check(window, context);
    IM_CHECK(!row(context, 0).empty());
    IM_CHECK(row(context, 1).empty());
    IM_CHECK(!context->ItemExists("//Check/##picture"));
    IM_CHECK(context->ItemExists("//Check/debug##modedebug"));
  });
}

TEST(Check, AHostThatDiedIsStartedAgain) {
  Window window({.open = gpt2_block});
  window.host().set_answer([](const Json&) { return answer(false); });
  window.host().hold();
  window.run([&](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_F5);
    IM_CHECK(Window::wait(
        context, [&] { return window.workspace->busy() && window.workspace->busy()->fraction > 0; }));
    IM_CHECK(!context->ItemExists("//Check/Restart Python"));
    window.host().die();
    IM_CHECK(Window::wait(context, [&] { return !window.workspace->busy(); }));
    window.host().release();
    context->Yield(2);
    context->ItemClick("//Check/Restart Python");
    context->Yield(2);
    IM_CHECK(window.workspace->host().state == repl::HostStatus::State::ready);
    IM_CHECK(!context->ItemExists("//Check/Restart Python"));
    context->ItemClick("//Check/Run & compare");
    IM_CHECK(Window::wait(context, [&] { return window.workspace->check() != nullptr; }));
    IM_CHECK(window.workspace->check()->passed);
  });
}

TEST(Check, ShowsHowFarItIsAndCancels) {
  Window window({.open = gpt2_block});
  window.host().hold();
  window.run([&](ImGuiTestContext* context) {
    context->ItemClick("//Check/Run & compare");
    IM_CHECK(Window::wait(
        context, [&] { return window.workspace->busy() && window.workspace->busy()->fraction > 0; }));
    IM_CHECK(!context->ItemExists("//Check/Run & compare"));
    context->ItemClick("//Check/Cancel");
    IM_CHECK(Window::wait(context, [&] { return !window.workspace->busy(); }));
    context->Yield(2);
    IM_CHECK(window.workspace->check() == nullptr);
    IM_CHECK(context->ItemExists("//Check/Run & compare"));
    window.host().release();
    context->ItemClick("//Check/Run & compare");
    IM_CHECK(Window::wait(context, [&] { return window.workspace->check() != nullptr; }));
  });
}

}  // namespace
}  // namespace pallascope::testing
