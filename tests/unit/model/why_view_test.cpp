// The Why panel: the sentence, the conditions in order, the terms side by side, the decisions to choose from.
#include "app/model/why_view.h"

#include <algorithm>

#include "core/report/decision.h"
#include "core/report/format.h"
#include "core/report/lookup.h"
#include "tests/unit/model/support.h"

namespace pallascope::model {
namespace {

using schedule::Condition;
using schedule::ConditionState;
using schedule::Decision;
using schedule::DecisionKind;
using schedule::Reason;

/// The first decision with this reason.
schedule::DecisionId first(const session::Compilation& compilation, Reason reason) {
  for (const Decision& decision : compilation.decisions()) {
    if (decision.reason == reason) return decision.id;
  }
  ADD_FAILURE() << "no decision is " << schedule::reason_name(reason);
  return schedule::DecisionId(std::size_t{0});
}

WhyView why(const session::Compilation& compilation, schedule::DecisionId id, const Selection& about = {}) {
  return why_view(compilation, *compilation.last(), id, about);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// softmax over rows and over columns of an array that does not fit on chip.
testing::GraphText both_ways() {
  return testing::GraphText()
      .in("x", "f32[4096,4096]")
      .op("a", "aten.softmax.int", "%x, 1", "f32[4096,4096]")
      .op("b", "aten.softmax.int", "%x, 0", "f32[4096,4096]")
      .out("a")
      .out("b");
}

TEST(WhyView, ARefusedCycleSaysWhichStepsStandBetween) {
  const auto& compilation = *gpt2();
  const WhyView view = why(compilation, first(compilation, Reason::cycle));
  EXPECT_FALSE(view.accepted);
  EXPECT_EQ(view.sign(), "✗");
  EXPECT_EQ(view.title, "add (+2) × add_1");
  EXPECT_EQ(view.verdict, "refused: cycle");
  EXPECT_EQ(view.sentence,
            "add and add_1 share buf31. They cannot be one kernel: linear_2 (library), linear_2, linear_3 "
            "(library) and linear_3 "
            "need the result of the left side and feed the right side.");
  EXPECT_TRUE(has(view.legal_if, "linear_2 (library)")) << view.legal_if;
  ASSERT_EQ(view.conditions.size(), 4U);
  EXPECT_EQ(view.conditions[0].condition, Condition::order_and_aliasing);
  EXPECT_EQ(view.conditions[0].sign(), "✗");
  for (std::size_t k = 1; k < 4; ++k) {
    EXPECT_EQ(view.conditions[k].sign(), "–");
    EXPECT_EQ(view.conditions[k].words, "not reached");
  }
  // The path: from a side through calls and nests to the other side, each a node to click.
  const auto& path = view.conditions[0].path;
  ASSERT_EQ(path.size(), 6U);
  EXPECT_EQ(path.front().role, WhyStep::Role::first);
  EXPECT_EQ(path.back().role, WhyStep::Role::last);
  EXPECT_EQ(path.back().text, "add_1");
  EXPECT_EQ(path.back().selection, Selection(node(compilation, "add_1")));
  EXPECT_TRUE(path[1].call);
  EXPECT_FALSE(path[2].call);
  for (const WhyStep& step : path) EXPECT_FALSE(is_empty(step.selection)) << step.text;
  ASSERT_EQ(view.sides.size(), 2U);
  EXPECT_EQ(view.sides[0].nodes.size(), 3U);
  EXPECT_EQ(view.sides[1].nodes[0].name, "add_1");
  EXPECT_EQ(view.sides[1].nodes[0].target, "aten.add.Tensor");
  EXPECT_TRUE(has(view.sides[1].nodes[0].place, "make_gpt2_block.py:"));
}

TEST(WhyView, TermsStandSideBySide) {
  const auto& compilation = *gpt2();
  const WhyView view = why(compilation, first(compilation, Reason::cycle));
  ASSERT_EQ(view.indices.size(), 1U);
  const WhyIndices& indices = view.indices[0];
  EXPECT_EQ(indices.buffer, "buf31");
  EXPECT_EQ(indices.shape, "f32[2,16,64]");
  EXPECT_EQ(indices.left.verb, "writes");
  EXPECT_EQ(indices.right.verb, "reads");
  EXPECT_EQ(indices.right.name, "add_1");
  EXPECT_EQ(indices.left.expression, "1024*i0 + 64*i1 + i2");
  EXPECT_EQ(indices.left.letter, 'C');
  EXPECT_EQ(indices.differing, 0U);
  ASSERT_EQ(indices.terms.size(), 3U);
  EXPECT_EQ(indices.terms[0].name, "i0");
  EXPECT_EQ(indices.terms[0].left, "1024");
  EXPECT_EQ(indices.terms[0].right, "1024");
  EXPECT_EQ(indices.terms[0].range, "i0 < 2");
  EXPECT_EQ(indices.terms[2].range, "i2 < 64");
  EXPECT_TRUE(indices.terms[2].same);
  EXPECT_TRUE(std::holds_alternative<loop::BufferId>(indices.selection));
}

TEST(WhyView, TermsThatDifferAreCounted) {
  // `add` reads every second column of what `sin` makes.
  const auto compilation =
      compile(testing::GraphText()
                  .in("x", "f32[8,16]")
                  .in("y", "f32[8,8]")
                  .op("sin", "aten.sin.default", "%x", "f32[8,16]")
                  .op("part", "aten.slice.Tensor", "%sin, 1, 0, 16, 2", "f32[8,8]@[16,2]")
                  .op("add", "aten.add.Tensor", "%part, %y", "f32[8,8]")
                  .out("add"));
  const WhyView view = why(*compilation, first(*compilation, Reason::inlined_index));
  EXPECT_TRUE(view.accepted);
  EXPECT_EQ(
      view.sentence,
      "add reads only a part of sin, or reads it out of order, so it is computed there from its own inputs.");
  ASSERT_EQ(view.indices.size(), 1U);
  const WhyIndices& indices = view.indices[0];
  EXPECT_EQ(indices.differing, 1U);
  EXPECT_EQ(indices.verdict, "1 term differs");
  ASSERT_EQ(indices.terms.size(), 2U);
  EXPECT_TRUE(indices.terms[0].same);
  EXPECT_FALSE(indices.terms[1].same);
  EXPECT_EQ(indices.terms[1].left, "1");
  EXPECT_EQ(indices.terms[1].right, "2");
  EXPECT_TRUE(has(indices.terms[1].range, "< 16")) << indices.terms[1].range;
  EXPECT_TRUE(has(indices.terms[1].range, "< 8")) << indices.terms[1].range;
  EXPECT_EQ(indices.right.letter, 's');
}

TEST(WhyView, AnAcceptedFusionSaysWhatItSaves) {
  const auto& compilation = *gpt2();
  const WhyView view = why(compilation, first(compilation, Reason::fused_vertical));
  const Decision& decision = compilation.decisions()[view.id.index()];
  EXPECT_TRUE(view.accepted);
  EXPECT_TRUE(view.legal_if.empty());
  EXPECT_TRUE(has(view.sentence, report::bytes_text(decision.evidence.bytes_saved))) << view.sentence;
  ASSERT_EQ(view.conditions.size(), 4U);
  for (const WhyCondition& condition : view.conditions) {
    EXPECT_EQ(condition.state, ConditionState::holds);
    EXPECT_EQ(condition.sign(), "✓");
    EXPECT_FALSE(condition.words.empty());
  }
  EXPECT_GT(view.conditions[2].filled, 0);
  EXPECT_LT(view.conditions[2].filled, 1);
  ASSERT_FALSE(view.figures.empty());
  EXPECT_EQ(view.figures[0].label, "Saves");
}

TEST(WhyView, ARefusedGridNamesTheAxisAndWhoReducesIt) {
  const auto compilation = compile(both_ways());
  const WhyView view = why(*compilation, first(*compilation, Reason::common_grid));
  const Decision& decision = compilation->decisions()[view.id.index()];
  ASSERT_TRUE(decision.evidence.axis.has_value());
  const std::string axis = compilation->schedule().program->context->axis(*decision.evidence.axis).name;
  ASSERT_EQ(view.conditions.size(), 4U);
  EXPECT_EQ(view.conditions[1].state, ConditionState::fails);
  EXPECT_TRUE(has(view.conditions[1].words, "axis " + axis + " (4096) is")) << view.conditions[1].words;
  EXPECT_TRUE(has(view.sentence, "axis " + axis + " (extent 4,096)")) << view.sentence;
  EXPECT_TRUE(has(view.sentence, report::bytes_text(decision.evidence.working_set))) << view.sentence;
  EXPECT_TRUE(std::any_of(view.figures.begin(), view.figures.end(),
                          [](const WhyFigure& f) { return f.label == "Working set"; }));
}

TEST(WhyView, ACallIsNoPartOfAKernel) {
  const auto compilation = compile(rows());
  const WhyView view = why(*compilation, first(*compilation, Reason::library_boundary));
  EXPECT_TRUE(has(view.sentence, "mm is a matrix product that jax.lax computes")) << view.sentence;
  ASSERT_EQ(view.conditions.size(), 4U);
  EXPECT_EQ(view.conditions[3].state, ConditionState::fails);
  EXPECT_TRUE(has(view.conditions[3].words, "mm (library)"));
  EXPECT_TRUE(view.indices.empty());
}

TEST(WhyView, LoweringSaysWhatTheOperatorBecame) {
  const auto& compilation = *gpt2();
  const WhyView norm = why(compilation, first(compilation, Reason::lowered_to_kernel));
  EXPECT_EQ(norm.kind, DecisionKind::lower);
  EXPECT_TRUE(norm.conditions.empty());
  ASSERT_EQ(norm.became.size(), 3U);
  EXPECT_EQ(norm.became[0].text, "layer_norm.mean");
  EXPECT_EQ(norm.sides.size(), 1U);
  const WhyView product = why(compilation, first(compilation, Reason::left_to_library));
  EXPECT_TRUE(has(product.sentence, "is a matrix product")) << product.sentence;
  ASSERT_FALSE(product.became.empty());
  EXPECT_TRUE(product.became[0].call);
}

TEST(WhyView, AProducerThatIsKeptSaysWhy) {
  const auto& compilation = *gpt2();
  const WhyView view = why(compilation, first(compilation, Reason::kept_reduction));
  EXPECT_FALSE(view.accepted);
  EXPECT_EQ(view.sentence,
            "layer_norm.mean is kept: it reduces, and layer_norm.rstd and layer_norm would repeat the whole "
            "reduction for every element.");
  ASSERT_EQ(view.sides.size(), 2U);
  EXPECT_EQ(view.sides[0].title, "Producer");
  EXPECT_EQ(view.sides[1].title, "Consumers");
}

TEST(WhyView, ChoicesAreTheDecisionsAboutWhatIsSelected) {
  const auto& compilation = *gpt2();
  const schedule::DecisionId id = first(compilation, Reason::cycle);
  const trace::NodeId add = node(compilation, "add");
  const WhyView about = why(compilation, id, add);
  EXPECT_TRUE(about.about_selection);
  EXPECT_EQ(about.about, "add");
  EXPECT_EQ(about.choices, report::decisions_of(compilation, add));
  // Without a selection: the tries of this pair. `add` and `add_1` were tried twice.
  const WhyView alone = why(compilation, id);
  EXPECT_FALSE(alone.about_selection);
  ASSERT_EQ(alone.choices.size(), 2U);
  EXPECT_EQ(alone.choices[0], id);
  EXPECT_EQ(compilation.decisions()[alone.choices[1].index()].reason, Reason::cycle);
  const auto kernel = report::kernels_in_order(*compilation.last()).front();
  EXPECT_EQ(why(compilation, id, kernel).about, report::id_text(kernel));
}

TEST(WhyView, EveryDecisionHasASentenceAndNoEmptyWords) {
  for (const auto& compilation : {gpt2(), compile(rows()), compile(both_ways())}) {
    for (const Decision& decision : compilation->decisions()) {
      const WhyView view = why(*compilation, decision.id);
      EXPECT_TRUE(view.sentence.ends_with(".")) << view.id_text << " " << view.sentence;
      EXPECT_FALSE(has(view.sentence, "..")) << view.sentence;
      EXPECT_FALSE(has(view.sentence, "  ")) << view.sentence;
      EXPECT_FALSE(view.sides.empty());
      EXPECT_TRUE(std::find(view.choices.begin(), view.choices.end(), decision.id) != view.choices.end())
          << view.id_text;
      for (const WhyCondition& condition : view.conditions) {
        EXPECT_FALSE(condition.words.empty());
        EXPECT_FALSE(condition.asks.empty());
      }
      for (const WhyIndices& indices : view.indices) EXPECT_FALSE(indices.right.expression.empty());
    }
  }
}

TEST(WhyView, BuffersOfAnEarlierProgramAreNoLinks) {
  const auto& compilation = *gpt2();
  const auto early = compilation.at(3);
  ASSERT_NE(early->program, compilation.schedule().program);
  const WhyView view = why_view(compilation, *early, first(compilation, Reason::cycle));
  EXPECT_TRUE(is_empty(view.indices.at(0).selection));
}

}  // namespace
}  // namespace pallascope::model
