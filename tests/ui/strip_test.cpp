// The strip of decisions: ticks are clicked, dragging scrubs, both ends hold.
#include "app/model/strip.h"

#include <gtest/gtest.h>

#include "tests/ui/places.h"
#include "tests/ui/support.h"

namespace pallascope::testing {
namespace {

using model::Selection;

constexpr const char* strip_item = "//##strip/##strip";

struct Place {
  ImRect area;
  model::Strip strip;
  [[nodiscard]] ImVec2 at(float x) const { return {area.Min.x + x, area.GetCenter().y}; }
  [[nodiscard]] ImVec2 tick(std::size_t decision) const { return at(strip.x_of_decision(decision)); }
};

Place place(ImGuiTestContext* context, const Window& window) {
  const ImRect area = place_of(context, strip_item);
  return {area, model::Strip::of(*window.workspace->scene()->decisions, area.GetWidth())};
}

TEST(Strip, AClickOnATickGoesToItsDecision) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const Place strip = place(context, window);
    for (const std::size_t k : {std::size_t{40}, std::size_t{0}, window.workspace->scene()->total() - 1}) {
      context->MouseMoveToPos(strip.tick(k));
      context->MouseClick();
      IM_CHECK(window.quiet(context));
      IM_CHECK_EQ(window.workspace->scene()->position, k + 1);
      IM_CHECK(window.shell->state().selection == Selection(schedule::DecisionId(k)));
    }
  });
}

TEST(Strip, DraggingScrubsBothWaysAndOneStepBackUndoesIt) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const Place strip = place(context, window);
    const std::size_t total = window.workspace->scene()->total();
    context->MouseMoveToPos(strip.tick(60));
    context->MouseDown();
    for (const std::size_t to : {std::size_t{50}, std::size_t{12}, std::size_t{55}}) {
      context->MouseMoveToPos(strip.at(strip.strip.x_of_position(to)));
      context->Yield(2);
      IM_CHECK_EQ(window.position(), to);
      IM_CHECK(window.shell->state().selection == Selection(schedule::DecisionId(to - 1)));
    }
    // The pointer may leave the strip while it is held, up and down and beyond both ends.
    context->MouseMoveToPos(ImVec2(strip.area.Min.x - 40, strip.area.Max.y + 300));
    context->Yield(2);
    IM_CHECK_EQ(window.position(), 0U);
    IM_CHECK(model::is_empty(window.shell->state().selection));
    context->MouseMoveToPos(ImVec2(strip.area.Max.x + 40, strip.area.Max.y + 300));
    context->Yield(2);
    IM_CHECK_EQ(window.position(), total);
    context->MouseMoveToPos(strip.at(strip.strip.x_of_position(20)));
    context->MouseUp();
    IM_CHECK(window.quiet(context));
    IM_CHECK_EQ(window.workspace->scene()->position, 20U);
    // Releasing is no click on the tick there.
    IM_CHECK(window.shell->state().selection == Selection(schedule::DecisionId(19)));
    context->KeyPress(ImGuiMod_Alt | ImGuiKey_LeftArrow);
    IM_CHECK(window.quiet(context));
    IM_CHECK_EQ(window.position(), total);
  });
}

TEST(Strip, ButtonsStepAndRestAtTheEnds) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const std::size_t total = window.workspace->scene()->total();
    const auto disabled = [&](const char* item) {
      return (context->ItemInfo(item).ItemFlags & ImGuiItemFlags_Disabled) != 0;
    };
    IM_CHECK(disabled("//##strip/forward") && !disabled("//##strip/back"));
    context->ItemClick("//##strip/back");
    IM_CHECK(window.quiet(context));
    IM_CHECK_EQ(window.workspace->scene()->position, total - 1);
    context->ItemClick("//##strip/forward");
    IM_CHECK(window.quiet(context));
    IM_CHECK_EQ(window.workspace->scene()->position, total);
    IM_CHECK(window.shell->state().selection == Selection(schedule::DecisionId(total - 1)));
    window.workspace->move_to(1);
    IM_CHECK(window.quiet(context));
    context->ItemClick("//##strip/back");
    IM_CHECK(window.quiet(context));
    IM_CHECK_EQ(window.workspace->scene()->position, 0U);
    IM_CHECK(model::is_empty(window.shell->state().selection));
    IM_CHECK(disabled("//##strip/back") && !disabled("//##strip/forward"));
  });
}

TEST(Strip, WhatItsPointerIsOverIsKnownToAllPanels) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const Place strip = place(context, window);
    context->MouseMoveToPos(strip.tick(33));
    context->Yield(2);
    IM_CHECK(window.shell->state().hovered == Selection(schedule::DecisionId(std::size_t{33})));
  });
}

}  // namespace
}  // namespace pallascope::testing
