#include "core/report/format.h"

#include <gtest/gtest.h>

#include "core/report/alignment.h"
#include "core/report/check.h"
#include "core/report/diff.h"

namespace pallascope::report {
namespace {

TEST(Format, Bytes) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(65536), "64 KiB");
  EXPECT_EQ(bytes_text(1536 * 1024), "1.5 MiB");
  EXPECT_EQ(bytes_text(std::int64_t{5} << 50), "5120 TiB");
}

TEST(Format, Counts) {
  EXPECT_EQ(count_text(7), "7");
  EXPECT_EQ(count_text(1940), "1,940");
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(count_text(-1234), "-1,234");
  EXPECT_EQ(plural(1, "kernel"), "1 kernel");
  EXPECT_EQ(plural(0, "kernel"), "0 kernels");
}

TEST(Format, TableAlignsByCodePointsAndDropsEmptyColumns) {
  Table table;
  table.add({"✓", "", "a"});
  table.add({"no", "", "b", "c"});
  EXPECT_EQ(table.text(), "✓   a\nno  b  c\n");
}

TEST(Format, Figures) {
  EXPECT_EQ(figure_text(4.8e-07), "4.8e-07");
  EXPECT_EQ(figure_text(0.0), "0");
  EXPECT_EQ(figure_text("inf"), "inf");
  EXPECT_EQ(figure_text(nullptr), "–");
  EXPECT_EQ(figure_text(3), "3");
}

class Alignment : public ::testing::Test {
 protected:
  std::vector<TermPair> rows(index::Expression left, const std::vector<index::AxisId>& left_axes,
                             index::Expression right, const std::vector<index::AxisId>& right_axes) {
    return aligned_terms(context, left, left_axes, right, right_axes);
  }
  index::Context context;
};

TEST_F(Alignment, AxesOfDifferentNestsCorrespond) {
  const auto i0 = context.add_axis("i0", 4), i1 = context.add_axis("i1", 16);
  const auto j0 = context.add_axis("i0", 4), r1 = context.add_axis("r1", 8);
  const std::vector<index::Expression> left = {context.of(i0), context.of(i1)},
                                       right = {context.of(j0), context.of(r1)};
  const std::vector<std::int64_t> strides = {16, 1}, apart = {16, 2};
  const auto found = rows(context.linear(left, strides), {i0, i1}, context.linear(right, apart, 1), {j0, r1});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].term, "i0");
  EXPECT_TRUE(found[0].same);
  EXPECT_EQ(found[1].term, "i1 / r1");
  EXPECT_EQ(found[1].left, "1");
  EXPECT_EQ(found[1].right, "2");
  EXPECT_FALSE(found[1].same);
  EXPECT_EQ(found[2].left, "");
  EXPECT_EQ(found[2].right, "1");
}

TEST_F(Alignment, TransposedAxesCorrespondByStride) {
  const auto i0 = context.add_axis("i0", 4), i1 = context.add_axis("i1", 8);
  const auto j0 = context.add_axis("i0", 8), j1 = context.add_axis("i1", 4);
  const std::vector<index::Expression> left = {context.of(i0), context.of(i1)},
                                       right = {context.of(j0), context.of(j1)};
  const std::vector<std::int64_t> strides = {8, 1}, turned = {1, 8};
  const auto found = rows(context.linear(left, strides), {i0, i1}, context.linear(right, turned), {j0, j1});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].term, "i0 / i1");
  EXPECT_TRUE(found[0].same);
  EXPECT_EQ(found[1].term, "i1 / i0");
  EXPECT_TRUE(found[1].same);
}

TEST_F(Alignment, OtherTermsCorrespondWhenTheyReadTheSame) {
  const auto i0 = context.add_axis("i0", 12), j0 = context.add_axis("r0", 12);
  const auto quotient = [&](index::AxisId axis) {
    return context.multiply(context.floor_div(context.of(axis), 5), 7);
  };
  const auto found =
      rows(context.add(context.of(i0), quotient(i0)), {i0}, context.add(context.of(j0), quotient(j0)), {j0});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_TRUE(found[0].same && found[1].same);
}

std::string applied(const std::vector<DiffLine>& lines, bool after) {
  std::string text;
  for (const DiffLine& line : lines) {
    if (line.change != (after ? LineChange::removed : LineChange::added)) text += line.text + "\n";
  }
  return text;
}

TEST(Diff, IsTheShortestEdit) {
  const auto lines = diff_lines("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n");
  EXPECT_EQ(applied(lines, false), "a\nb\nc\na\nb\nb\na\n");
  EXPECT_EQ(applied(lines, true), "c\nb\na\nb\na\nc\n");
  const auto changes = std::count_if(lines.begin(), lines.end(),
                                     [](const DiffLine& l) { return l.change != LineChange::same; });
  EXPECT_EQ(changes, 5);  // the example of Myers' paper
}

TEST(Diff, GivesBothSidesBack) {
  const std::vector<std::string> texts = {
      "", "a\n", "b\n", "a\nb\n", "a\nb\nc\nd\n", "a\nx\nc\nd\n", "d\nc\nb\na\n", "a\na\na\n"};
  for (const std::string& before : texts) {
    for (const std::string& after : texts) {
      const auto lines = diff_lines(before, after);
      EXPECT_EQ(applied(lines, false), before);
      EXPECT_EQ(applied(lines, true), after);
      EXPECT_EQ(unified_diff(lines, "b", "a").empty(), before == after);
    }
  }
}

TEST(Diff, UnifiedHunksHavePlacesAndContext) {
  std::string before, after;
  for (int k = 1; k <= 20; ++k) {
    before += "line " + std::to_string(k) + "\n";
    after += k == 5 ? "changed\n" : "line " + std::to_string(k) + "\n";
  }
  after += "line 21\n";
  EXPECT_EQ(unified_diff(diff_lines(before, after), "before", "after"),
            "--- before\n+++ after\n@@ -2,7 +2,7 @@\n line 2\n line 3\n line 4\n-line 5\n+changed\n line 6\n "
            "line 7\n line 8\n"
            "@@ -18,3 +18,4 @@\n line 18\n line 19\n line 20\n+line 21\n");
}

TEST(Diff, TextsThatShareNothingAreReplaced) {
  std::string before, after;
  for (int k = 0; k < 3000; ++k) {
    before += "a" + std::to_string(k) + "\n";
    after += "b" + std::to_string(k) + "\n";
  }
  const auto lines = diff_lines(before, after);
  EXPECT_EQ(lines.size(), 6000U);
  EXPECT_EQ(applied(lines, true), after);
}

TEST(Check, FailedOutputsSayWhy) {
  const Json result = Json::parse(
      R"({"verdict": "failed", "seconds": 1.26, "platform": "cpu", "jax": "0.10.2", "interpret": true,
    "float64": "an operator has no float64", "outputs": [
    {"name": "add", "kind": "output", "index": 0, "dtype": "f32", "sizes": [4], "verdict": "failed", "worst_mode": "steady",
     "modes": {"debug": {"max_abs": 0.0}, "steady": {"max_abs": 1.5, "max_rel": "inf", "reasons": ["2 of 4 elements differ"]}}}]})");
  const std::string text = check_text(result, 1412, false);
  EXPECT_NE(text.find("out0 add  f32[4]  max abs 1.5  max rel inf  ✗"), std::string::npos) << text;
  EXPECT_NE(text.find("steady: 2 of 4 elements differ"), std::string::npos) << text;
  EXPECT_NE(text.find("no float64 reference: an operator has no float64"), std::string::npos) << text;
  EXPECT_NE(text.find("failed at decision 1,412 on local (cpu, jax 0.10.2, interpret) in 1.3 s"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace pallascope::report
