// Rows of the Decisions list and the strip: what is shown, in which order, and the way back to a decision.
#include "app/model/decision_rows.h"

#include <algorithm>

#include "app/model/strip.h"
#include "core/report/decision.h"
#include "tests/unit/model/support.h"

namespace pallascope::model {
namespace {

using schedule::DecisionId;
using schedule::DecisionKind;
using schedule::Reason;

DecisionRow row(std::size_t number, DecisionKind kind, bool accepted, Notability notability,
                std::int64_t bytes, bool missed, const std::string& left) {
  DecisionRow made;
  made.id = DecisionId(number);
  made.kind = kind;
  made.accepted = accepted;
  made.notability = notability;
  made.reason = kind == DecisionKind::lower ? Reason::lowered_to_kernel
                : accepted                  ? Reason::fused_vertical
                                            : Reason::common_grid;
  made.bytes_saved = bytes;
  made.missed = missed;
  made.left = left;
  made.right = kind == DecisionKind::lower ? "" : "Target";
  return made;
}

std::shared_ptr<const DecisionIndex> five() {
  return std::make_shared<const DecisionIndex>(std::vector<DecisionRow>{
      row(0, DecisionKind::lower, true, Notability::small, 0, false, "alpha"),
      row(1, DecisionKind::fuse, false, Notability::refused, 64, true, "beta"),
      row(2, DecisionKind::fuse, true, Notability::accepted, 500, false, "gamma"),
      row(3, DecisionKind::fuse, false, Notability::refused, 900, false, "delta"),
      row(4, DecisionKind::fuse, false, Notability::refused, 128, true, "Alphabet"),
  });
}

std::vector<std::int32_t> shown(const DecisionList& list) {
  std::vector<std::int32_t> ids;
  for (std::size_t k = 0; k < list.size(); ++k) ids.push_back(list.id(k).value);
  return ids;
}
using Ids = std::vector<std::int32_t>;

TEST(DecisionList, OpensOnMissedFusionsByBytesWithoutSmallOnes) {
  const DecisionList list(five());
  EXPECT_EQ(shown(list), (Ids{4, 1, 3, 2}));
}

TEST(DecisionList, BoundariesComeAfterWhatWasReallyMissed) {
  auto at_call = [](std::size_t number, Reason reason, std::int64_t bytes) {
    DecisionRow made = row(number, DecisionKind::fuse, false, Notability::refused, bytes, false, "call");
    made.reason = reason;
    made.boundary = true;
    return made;
  };
  const auto index = std::make_shared<const DecisionIndex>(std::vector<DecisionRow>{
      at_call(0, Reason::library_boundary, 1000),
      row(1, DecisionKind::fuse, false, Notability::refused, 9000, false, "came together by another way"),
      row(2, DecisionKind::fuse, false, Notability::refused, 8, true, "missed a little"),
      at_call(3, Reason::torch_boundary, 2000),
      row(4, DecisionKind::fuse, true, Notability::accepted, 5000, false, "fused"),
      row(5, DecisionKind::fuse, false, Notability::refused, 16, true, "missed more"),
  });
  EXPECT_EQ(shown(DecisionList(index)), (Ids{5, 2, 3, 0, 1, 4}));
}

TEST(DecisionList, ByNumberKnowsHowManyRowsHold) {
  DecisionFilter filter;
  filter.order = DecisionOrder::number;
  filter.accepted = false;
  const DecisionList list(five(), filter);
  ASSERT_EQ(shown(list), (Ids{1, 3, 4}));
  EXPECT_EQ(list.rows_before(0), 0U);
  EXPECT_EQ(list.rows_before(1), 0U);  // only d0 holds
  EXPECT_EQ(list.rows_before(2), 1U);
  EXPECT_EQ(list.rows_before(4), 2U);
  EXPECT_EQ(list.rows_before(5), 3U);
  EXPECT_EQ(list.rows_before(99), 3U);
}

TEST(DecisionIndex, CountsReasonsByPassAndKnowsThePasses) {
  const auto index = five();
  const auto& reasons = index->reasons();
  ASSERT_EQ(reasons.size(), 3U);
  EXPECT_EQ(reasons[0].kind, DecisionKind::lower);
  EXPECT_EQ(reasons[1].reason, Reason::common_grid);  // refused before accepted
  EXPECT_EQ(reasons[1].count, 3U);
  EXPECT_FALSE(reasons[1].accepted);
  EXPECT_EQ(reasons[2].reason, Reason::fused_vertical);
  EXPECT_EQ(reasons[2].count, 1U);
  ASSERT_EQ(index->passes().size(), 2U);
  EXPECT_EQ(index->passes()[0].last, 0U);
  EXPECT_EQ(index->passes()[1].first, 1U);
  EXPECT_EQ(index->passes()[1].last, 4U);
}

TEST(DecisionIndex, RowsSayTheirSubject) {
  EXPECT_EQ(five()->rows()[0].subject(), "alpha");
  EXPECT_EQ(five()->rows()[1].subject(), "beta × Target");
}

TEST(DecisionList, SmallOnesComeWhenAskedFor) {
  DecisionList list(five());
  DecisionFilter filter;
  filter.small = true;
  filter.order = DecisionOrder::number;
  list.set_filter(filter);
  EXPECT_EQ(shown(list), (Ids{0, 1, 2, 3, 4}));
  filter = {};
  filter.kind = DecisionKind::lower;
  list.set_filter(filter);
  EXPECT_EQ(shown(list), (Ids{0}));
}

TEST(DecisionList, FiltersByTextReasonAndVerdict) {
  DecisionList list(five());
  DecisionFilter filter;
  filter.text = "ALPHA";
  list.set_filter(filter);
  EXPECT_EQ(shown(list), (Ids{4}));
  filter.text = "grid refused";
  list.set_filter(filter);
  EXPECT_EQ(shown(list), (Ids{4, 1, 3}));
  filter.text = "d3";
  list.set_filter(filter);
  EXPECT_EQ(shown(list), (Ids{3}));
  filter = {};
  filter.reason = Reason::fused_vertical;
  list.set_filter(filter);
  EXPECT_EQ(shown(list), (Ids{2}));
  filter = {};
  filter.accepted = false;
  filter.small = true;
  list.set_filter(filter);
  EXPECT_EQ(shown(list), (Ids{4, 1, 3}));
  filter.text = "nothing of the kind";
  list.set_filter(filter);
  EXPECT_EQ(list.size(), 0U);
}

TEST(DecisionList, TypingOnGivesWhatTypingAnewGives) {
  DecisionList typed(five());
  DecisionFilter filter;
  for (const char c : std::string("target d")) {
    filter.text += c;
    typed.set_filter(filter);
    EXPECT_EQ(shown(typed), shown(DecisionList(five(), filter))) << filter.text;
  }
  filter.text = "t";
  typed.set_filter(filter);
  EXPECT_EQ(shown(typed), (Ids{4, 1, 3, 2}));
}

TEST(DecisionList, RowsAndDecisionsFindEachOther) {
  DecisionList list(five());
  for (std::size_t k = 0; k < list.size(); ++k) EXPECT_EQ(list.position(list.id(k)), k);
  EXPECT_FALSE(list.position(DecisionId(0)).has_value());
  EXPECT_FALSE(list.position(DecisionId()).has_value());
  EXPECT_FALSE(list.position(DecisionId(99)).has_value());
  EXPECT_EQ(list.nearest(DecisionId(0)), DecisionId(1));
  EXPECT_EQ(list.nearest(DecisionId(4)), DecisionId(4));
  EXPECT_EQ(list.nearest(DecisionId(99)), DecisionId(4));
  DecisionFilter none;
  none.text = "nothing";
  list.set_filter(none);
  EXPECT_FALSE(list.nearest(DecisionId(1)).has_value());
}

TEST(DecisionList, AnEmptyLogIsAnEmptyList) {
  const DecisionList list(std::make_shared<const DecisionIndex>(std::vector<DecisionRow>{}));
  EXPECT_EQ(list.size(), 0U);
  EXPECT_TRUE(Strip::of(list.index(), 100).ticks().empty());
}

TEST(DecisionRows, OfGpt2SayWhatTheLogSays) {
  const auto index = std::make_shared<const DecisionIndex>(gpt2());
  const auto& decisions = gpt2()->decisions();
  ASSERT_EQ(index->size(), decisions.size());
  for (const schedule::Decision& decision : decisions) {
    const DecisionRow& made = (*index)[decision.id];
    EXPECT_EQ(made.accepted, decision.accepted);
    EXPECT_EQ(made.bytes_saved, decision.evidence.bytes_saved);
    EXPECT_FALSE(made.left.empty());
    EXPECT_EQ(made.right.empty(), decision.kind == DecisionKind::lower || decision.right.empty())
        << made.left;
    EXPECT_LT(made.left.size() + made.right.size(), 120U) << made.left << " " << made.right;
  }
  // The list opens on what `summary` calls the largest missed fusion.
  const DecisionList list(index);
  const auto refused = report::missed_fusions(*gpt2(), *gpt2()->last());
  std::vector<DecisionId> expected;
  for (const bool boundary : {false, true}) {
    for (const DecisionId id : refused) {
      if (report::is_boundary(decisions[id.index()].reason) == boundary) expected.push_back(id);
    }
  }
  ASSERT_FALSE(expected.empty());
  ASSERT_TRUE((*index)[expected.front()].missed);
  std::size_t missed = 0;
  for (const DecisionRow& made : index->rows()) {
    EXPECT_FALSE(made.missed && made.boundary);
    missed += made.missed ? 1 : 0;
  }
  EXPECT_LT(missed, expected.size());  // there are matrix products: some stand at their boundaries
  for (std::size_t k = 0; k < missed; ++k) EXPECT_EQ(list.id(k), expected[k]);
  EXPECT_TRUE(list.row(missed).boundary);
  EXPECT_EQ(list.row(0).glyph(), "✗");
  EXPECT_EQ(list.row(0).sign(), "×");
}

TEST(DecisionRows, FilterByNodeFindsItsDecisions) {
  const CompilationPointer compilation = compile(rows());
  DecisionFilter filter;
  filter.node = node(*compilation, "div");
  const DecisionList list(std::make_shared<const DecisionIndex>(compilation), filter);
  EXPECT_GE(list.size(), 2U);
  for (std::size_t k = 0; k < list.size(); ++k) EXPECT_TRUE(list.index().names(list.id(k), *filter.node));
}

TEST(DecisionRows, OfAHundredThousand) {
  std::vector<DecisionRow> many;
  for (std::size_t k = 0; k < 100'000; ++k) {
    const bool lower = k % 3 == 0, accepted = k % 3 == 1;
    many.push_back(row(k, lower ? DecisionKind::lower : DecisionKind::fuse, lower || accepted,
                       lower      ? Notability::small
                       : accepted ? Notability::accepted
                                  : Notability::refused,
                       static_cast<std::int64_t>(k * 7919 % 100'003), k % 6 == 2,
                       "mul_" + std::to_string(k)));
  }
  std::shared_ptr<const DecisionIndex> index;
  print_time("index of 100,000 decisions",
             [&] { index = std::make_shared<const DecisionIndex>(std::move(many)); });
  std::unique_ptr<DecisionList> list;
  print_time("list of them", [&] { list = std::make_unique<DecisionList>(index); });
  DecisionFilter filter;
  for (const char c : std::string("mul_77")) {
    filter.text += c;
    print_time("filter `" + filter.text + "`", [&] { list->set_filter(filter); });
  }
  EXPECT_GT(list->size(), 0U);
  for (std::size_t k = 0; k < list->size(); ++k) EXPECT_TRUE(list->row(k).left.starts_with("mul_77"));
  filter.text.clear();
  filter.order = DecisionOrder::number;
  print_time("back to all, by number", [&] { list->set_filter(filter); });
  const Ids all = shown(*list);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  Strip strip;
  print_time("strip in 1600 pixels", [&] { strip = Strip::of(*index, 1600); });
  EXPECT_EQ(strip.ticks().size(), 1600U);
}

TEST(Strip, HasATickForEachDecisionWhereThereIsRoom) {
  const Strip strip(std::vector<Notability>{Notability::small, Notability::refused, Notability::accepted},
                    300);
  ASSERT_EQ(strip.ticks().size(), 3U);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(strip.ticks()[k].first, k);
    EXPECT_EQ(strip.ticks()[k].last, k);
    EXPECT_EQ(strip.decision_at(strip.x_of_decision(k)), k);
  }
  EXPECT_FALSE(strip.decision_at(-1).has_value());
  EXPECT_FALSE(strip.decision_at(300).has_value());
}

TEST(Strip, TheMostNotableSpeaksForItsPixel) {
  std::vector<Notability> marks(10'000, Notability::small);
  marks[4242] = Notability::refused;
  marks[4243] = Notability::accepted;
  marks[9999] = Notability::accepted;
  const Strip strip(marks, 100.5F);
  ASSERT_EQ(strip.ticks().size(), 100U);
  std::size_t covered = 0;
  for (const Tick& tick : strip.ticks()) {
    EXPECT_EQ(tick.first, covered);
    covered = tick.last + 1;
  }
  EXPECT_EQ(covered, marks.size());
  const Tick* tick = strip.tick_at(strip.x_of_decision(4200));
  ASSERT_NE(tick, nullptr);
  EXPECT_EQ(tick->notability, Notability::refused);
  EXPECT_EQ(tick->notable, 4242U);
  EXPECT_EQ(tick->refused, 1U);
  EXPECT_EQ(tick->accepted, 1U);
  EXPECT_EQ(strip.decision_at(strip.x_of_decision(9999)), 9999U);
}

TEST(Strip, PositionsRunFromNoneToAll) {
  const Strip strip(std::vector<Notability>(40, Notability::small), 400);
  for (std::size_t k = 0; k <= 40; ++k) EXPECT_EQ(strip.position_at(strip.x_of_position(k)), k);
  EXPECT_EQ(strip.position_at(-5), 0U);
  EXPECT_EQ(strip.position_at(1e6F), 40U);
  EXPECT_TRUE(Strip(std::vector<Notability>(3, Notability::small), 0).ticks().empty());
}

}  // namespace
}  // namespace pallascope::model
