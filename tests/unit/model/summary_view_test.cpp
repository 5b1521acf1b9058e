// The first look as rows: the same figures that the log, the snapshot and the text have, with links that lead there.
#include "app/model/summary_view.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>

#include "app/model/decision_rows.h"
#include "core/report/accesses.h"
#include "core/report/decision.h"
#include "core/report/format.h"
#include "core/report/summary.h"
#include "tests/unit/model/support.h"

namespace pallascope::model {
namespace {

TEST(SummaryView, OfGpt2HasTheFiguresOfItsSummary) {
  const session::Compilation& compilation = *gpt2();
  const session::Snapshot& snapshot = *compilation.last();
  const SummaryView view = summary_view(compilation, snapshot);
  const report::Json json = report::summary_json(compilation, snapshot, {});
  EXPECT_EQ(view.title, "gpt2_block.pt2");
  EXPECT_TRUE(view.graph.empty());
  ASSERT_EQ(view.figures.size(), 5U);
  const char* keys[] = {"nodes", "nests", "kernels", "library_calls", "torch_calls"};
  for (std::size_t k = 0; k < 5; ++k) EXPECT_EQ(view.figures[k].count, json[keys[k]].dump()) << keys[k];
  EXPECT_EQ(view.figures[0].noun, "nodes");
  EXPECT_EQ(view.bytes_moved, report::bytes_text(json["bytes_moved"].get<std::int64_t>()));
  EXPECT_TRUE(view.time.ends_with(" ms")) << view.time;
  EXPECT_TRUE(view.time_parts.starts_with("functional ")) << view.time_parts;
}

TEST(SummaryView, MissedFusionsAndBoundariesAreAllOfThemAndApart) {
  const session::Compilation& compilation = *gpt2();
  const session::Snapshot& snapshot = *compilation.last();
  const SummaryView view = summary_view(compilation, snapshot);
  const report::Summary summary = report::summarize(compilation, snapshot);
  const auto all = report::missed_fusions(compilation, snapshot);
  EXPECT_EQ(summary.missed.size() + summary.boundaries.size(), all.size());
  ASSERT_EQ(view.missed.size(), summary.missed.size());
  ASSERT_FALSE(view.missed.empty());
  std::int64_t before = std::numeric_limits<std::int64_t>::max(), sum = 0;
  for (const SummaryMissed& row : view.missed) {
    const schedule::Decision& decision = compilation.decisions()[row.id.index()];
    EXPECT_FALSE(report::is_boundary(decision.reason));
    EXPECT_FALSE(decision.accepted);
    EXPECT_EQ(row.name, report::id_text(row.id));
    EXPECT_EQ(row.bytes, report::bytes_text(decision.evidence.bytes_saved));
    EXPECT_LE(decision.evidence.bytes_saved, before);
    before = decision.evidence.bytes_saved;
    sum += before;
  }
  EXPECT_EQ(sum, summary.missed_bytes);
  EXPECT_NE(view.missed_total.find(report::bytes_text(sum)), std::string::npos) << view.missed_total;
  EXPECT_TRUE(view.boundaries.starts_with(std::to_string(summary.boundaries.size()) + " at "))
      << view.boundaries;
}

TEST(SummaryView, AccessClassesAddUp) {
  const session::Compilation& compilation = *gpt2();
  const session::Snapshot& snapshot = *compilation.last();
  const SummaryView view = summary_view(compilation, snapshot);
  std::size_t memory = 0;
  for (const codegen::KernelAccess& access : snapshot.module.accesses) memory += access.on_value ? 0 : 1;
  EXPECT_EQ(view.accesses, memory);
  float share = 0;
  std::size_t count = 0;
  std::set<char> letters;
  for (const SummaryClass& part : view.classes) {
    share += part.share, count += part.count;
    letters.insert(part.letter);
    EXPECT_GT(part.count, 0U);
  }
  EXPECT_EQ(count, view.accesses);
  EXPECT_NEAR(share, 1, 1e-5);
  EXPECT_EQ(letters.size(), view.classes.size());
  EXPECT_TRUE(letters.contains('C'));
}

TEST(SummaryView, WastefulAccessesLeadToThemselves) {
  // Every second column: half of what is spanned is used.
  const CompilationPointer compilation =
      compile(testing::GraphText()
                  .in("x", "f32[64,64]")
                  .op("slice_1", "aten.slice.Tensor", "%x, 1, 0, 64, 2", "f32[64,32]@[64,2]")
                  .op("sin", "aten.sin.default", "%slice_1", "f32[64,32]")
                  .out("sin"));
  const session::Snapshot& snapshot = *compilation->last();
  const SummaryView view = summary_view(*compilation, snapshot);
  ASSERT_EQ(view.wasteful.size(), 1U);
  const SummaryWaste& row = view.wasteful.front();
  ASSERT_GE(row.access.access, 0);
  ASSERT_LT(static_cast<std::size_t>(row.access.access), snapshot.module.accesses.size());
  const codegen::KernelAccess& access = snapshot.module.accesses[static_cast<std::size_t>(row.access.access)];
  EXPECT_FALSE(access.store);
  EXPECT_EQ(row.letter, index::access_class_letter(access.access.access_class));
  EXPECT_EQ(row.used, "8 KiB");
  EXPECT_NEAR(row.share, 0.5, 0.01);
  EXPECT_EQ(row.where, report::id_text(access.buffer) + " in k0");
}

TEST(SummaryView, TwoSidesThatWereRefusedTwiceMissedOneFusion) {
  const session::Compilation& compilation = *gpt2();
  // d63 and d67 refuse the same two kernels, the second time after one of them grew; both would save as much.
  const schedule::DecisionId first(std::size_t{63}), again(std::size_t{67});
  const auto& decisions = compilation.decisions();
  ASSERT_EQ(decisions[63].evidence.bytes_saved, decisions[67].evidence.bytes_saved);
  const auto names = [](const std::vector<schedule::DecisionId>& ids, schedule::DecisionId id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  const auto missed = report::missed_fusions(compilation, *compilation.last());
  EXPECT_TRUE(names(missed, first));
  EXPECT_FALSE(names(missed, again));
  const DecisionIndex index(gpt2());
  EXPECT_TRUE(index[first].missed);
  EXPECT_FALSE(index[again].missed);
  for (std::size_t k = 1; k < missed.size(); ++k) {
    const auto a = decisions[missed[k - 1].index()].evidence.bytes_saved, b = decisions[missed[k].index()].evidence.bytes_saved;
    EXPECT_TRUE(a > b || (a == b && missed[k - 1] < missed[k]));
  }
  // Before the second refusal the first stands already.
  EXPECT_TRUE(names(report::missed_fusions(compilation, *compilation.at(64)), first));
}

TEST(SummaryView, AtTheStartNothingIsFusedOrMissedYet) {
  const SummaryView view = summary_view(*gpt2(), *gpt2()->at(0));
  EXPECT_TRUE(view.missed.empty());
  EXPECT_TRUE(view.missed_total.empty());
  EXPECT_TRUE(view.boundaries.empty());
  EXPECT_TRUE(view.decisions.starts_with("0 decisions")) << view.decisions;
}

TEST(SummaryView, OperatorsOutsideOfKernelsAreNamedWithWhy) {
  const SummaryView view = summary_view(*gpt2(), *gpt2()->last());
  ASSERT_FALSE(view.operators.empty());
  bool library = false;
  for (const SummaryOperator& calls : view.operators) {
    EXPECT_TRUE(calls.count.starts_with("× ")) << calls.count;
    EXPECT_FALSE(calls.torch && library) << "torch's come first";
    library = library || !calls.torch;
    EXPECT_EQ(calls.torch, !calls.why.empty()) << calls.name;
  }
}

}  // namespace
}  // namespace pallascope::model
