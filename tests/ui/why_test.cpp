// The Why panel: what it says of a refusal, and that its steps, sides and arrows lead on.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/ui/panels.h"

namespace pallascope::testing {
namespace {

using model::Selection;

schedule::DecisionId decision(std::size_t k) { return schedule::DecisionId(k); }

/// The decision of the block that is refused for a cycle: d63.
Selection refused() { return decision(63); }

TEST(Why, SaysTheVerdictAndTheConditionsInOrder) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    select(window, context, refused());
    const auto why = window.workspace->detail()->why;
    IM_CHECK(why != nullptr);
    IM_CHECK_EQ(why->id.index(), 63U);
    IM_CHECK(!why->accepted);
    IM_CHECK(why->verdict.starts_with("refused: "));
    IM_CHECK_EQ(why->conditions.size(), 4U);
    // One under the other; what decided is the first that fails, and nothing behind it was looked at.
    float y = 0;
    bool failed = false;
    for (std::size_t k = 0; k < 4; ++k) {
      const auto item = context->ItemInfo(("//Why/##condition" + std::to_string(k)).c_str());
      IM_CHECK(item.ID != 0);
      IM_CHECK_GT(item.RectFull.Min.y, y);
      y = item.RectFull.Min.y;
      const auto state = why->conditions[k].state;
      if (failed) IM_CHECK(state == schedule::ConditionState::not_reached);
      failed = failed || state == schedule::ConditionState::fails;
    }
    IM_CHECK(failed);
    IM_CHECK(!context->ItemExists("//Why/##condition4"));
  });
}

TEST(Why, AStepOfThePathSelectsItsNode) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    select(window, context, refused());
    const auto why = window.workspace->detail()->why;
    const model::WhyCondition* with_path = nullptr;
    for (const auto& condition : why->conditions)
      if (!condition.path.empty()) with_path = &condition;
    IM_CHECK(with_path != nullptr);
    for (const std::size_t k : {std::size_t{1}, with_path->path.size() - 1}) {
      select(window, context, refused());
      context->ItemClick(("//Why/##step" + std::to_string(k)).c_str());
      IM_CHECK(window.shell->state().selection == with_path->path[k].selection);
      IM_CHECK(std::holds_alternative<trace::NodeId>(window.shell->state().selection));
    }
  });
}

TEST(Why, ANodeOfASideIsSelected) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    select(window, context, refused());
    const auto why = window.workspace->detail()->why;
    IM_CHECK_EQ(why->sides.size(), 2U);
    for (const model::WhySide& side : why->sides) {
      select(window, context, refused());
      const model::WhyNode& node = side.nodes.front();
      const std::string path = "//Why/" + side.title + "/" + node.id;
      context->MouseMove(path.c_str());
      IM_CHECK(window.shell->state().hovered == Selection(node.node));
      context->ItemClick(path.c_str());
      IM_CHECK(window.shell->state().selection == Selection(node.node));
    }
  });
  EXPECT_TRUE(window.said("show n"));  // what was clicked is echoed as a command
}

TEST(Why, TheChooserGoesThroughTheDecisionsAboutANode) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    // A node with several decisions about it.
    Selection chosen;
    const auto& nodes = window.workspace->scene()->compilation->graph().nodes;
    for (std::size_t k = 0; k < nodes.size() && model::is_empty(chosen); ++k) {
      select(window, context, trace::NodeId(k));
      const auto why = window.workspace->detail()->why;
      if (why && why->choices.size() >= 3) chosen = trace::NodeId(k);
    }
    IM_CHECK(!model::is_empty(chosen));
    const auto choices = window.workspace->detail()->why->choices;
    const auto at = [&] {
      const auto shown = window.workspace->detail()->why;
      return static_cast<std::size_t>(std::find(choices.begin(), choices.end(), shown->id) - choices.begin());
    };
    // To the first one, whichever was shown.
    while (at() > 0) {
      const std::size_t before = at();
      context->ItemClick("//Why/##previous");
      IM_CHECK(window.quiet(context));
      IM_CHECK_EQ(at(), before - 1);
      IM_CHECK(window.shell->state().selection == Selection(choices[before - 1]));
    }
    // Choosing made each the selection, and the choices stayed those about the node.
    for (std::size_t k = 1; k < choices.size(); ++k) {
      context->ItemClick("//Why/##next");
      IM_CHECK(window.quiet(context));
      IM_CHECK(window.shell->state().selection == Selection(choices[k]));
    }
    IM_CHECK((context->ItemInfo("//Why/##next").ItemFlags & ImGuiItemFlags_Disabled) != 0);
    IM_CHECK((context->ItemInfo("//Why/##previous").ItemFlags & ImGuiItemFlags_Disabled) == 0);
    // The list has all of them.
    context->ItemClick("//Why/##list");
    IM_CHECK(any_popup());
    context->ItemClick(("//$FOCUSED/##" + report::id_text(choices[1])).c_str());
    IM_CHECK(window.quiet(context));
    IM_CHECK(!any_popup());
    IM_CHECK(window.shell->state().selection == Selection(choices[1]));
    IM_CHECK_EQ(at(), 1U);
  });
}

TEST(Why, WithoutADecisionItSaysSoAndEveryDecisionDraws) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_Escape);
    IM_CHECK(window.quiet(context));
    IM_CHECK(window.workspace->detail()->why == nullptr);
    IM_CHECK(!context->ItemExists("//Why/##condition0"));
    for (std::size_t k = 0; k < window.workspace->scene()->total(); ++k) {
      select(window, context, decision(k));
      IM_CHECK_EQ(window.workspace->detail()->why->id.index(), k);
    }
  });
}

}  // namespace
}  // namespace pallascope::testing
