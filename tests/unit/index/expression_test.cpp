// Single rules of the simplification, and the text, by hand.
#include "core/index/expression.h"

#include <gtest/gtest.h>

#include "core/index/access.h"
#include "tests/unit/index/support.h"

namespace pallascope::index {
namespace {

using namespace testing;

/// i < 8, j < 3, k < 4, one < 1, and short ways to write expressions of them.
class Expressions : public ::testing::Test {
 protected:
  Expression sum(std::initializer_list<std::pair<std::int64_t, Expression>> parts,
                 std::int64_t constant = 0) {
    Expression total = context.constant(constant);
    for (const auto& [factor, part] : parts) total = context.add(total, context.multiply(part, factor));
    return total;
  }
  [[nodiscard]] std::string text(Expression e) const { return context.to_string(e); }

  Context context;
  AxisId i_axis = context.add_axis("i", 8), j_axis = context.add_axis("j", 3),
         k_axis = context.add_axis("k", 4);
  AxisId one_axis = context.add_axis("one", 1);
  Expression i = context.of(i_axis), j = context.of(j_axis), k = context.of(k_axis);
};

TEST_F(Expressions, AreEqualExactlyIfTheirIdsAre) {
  EXPECT_EQ(sum({{3, i}, {1, j}}), sum({{1, j}, {2, i}, {1, i}}));
  EXPECT_NE(sum({{3, i}, {1, j}}), sum({{3, i}, {1, k}}));
  EXPECT_EQ(sum({{3, i}, {-3, i}}, 4), context.constant(4));
  EXPECT_EQ(context.subtract(sum({{3, i}}, 1), sum({{2, i}}, 1)), i);
  EXPECT_EQ(context.multiply(i, 0), context.constant(0));
  const std::vector<Expression> index{i, j};
  const std::vector<std::int64_t> strides{3, 1};
  EXPECT_EQ(context.linear(index, strides, 7), sum({{3, i}, {1, j}}, 7));
}

TEST_F(Expressions, AnAxisOfExtentOneIsZero) { EXPECT_EQ(context.as_constant(context.of(one_axis)), 0); }

TEST_F(Expressions, KnowTheirRange) {
  EXPECT_EQ(context.range(sum({{3, i}, {-1, j}}, 5)), (Range{3, 26}));
  EXPECT_EQ(context.range(context.floor_div(sum({{3, i}, {1, j}}), 5)), (Range{0, 4}));
  EXPECT_EQ(context.range(context.mod(sum({{3, i}, {1, j}}), 5)), (Range{0, 4}));
  EXPECT_EQ(context.range(context.constant(-3)), (Range{-3, -3}));
}

TEST_F(Expressions, AViewOfAViewRecombines) {
  // (6,4) seen as (8,3).
  const Expression flat = sum({{3, i}, {1, j}});
  EXPECT_EQ(sum({{4, context.floor_div(flat, 4)}, {1, context.mod(flat, 4)}}), flat);
  // Three digits: (2,3,4) seen as 24.
  const AxisId t_axis = context.add_axis("t", 24);
  const Expression t = context.of(t_axis);
  const Expression digits = sum(
      {{12, context.floor_div(t, 12)}, {4, context.mod(context.floor_div(t, 4), 3)}, {1, context.mod(t, 4)}});
  EXPECT_EQ(digits, t);
  // The lower two of them.
  EXPECT_EQ(text(sum({{4, context.mod(context.floor_div(t, 4), 3)}, {1, context.mod(t, 4)}})), "t % 12");
  // Strides that do not fit together stay.
  EXPECT_EQ(text(sum({{8, context.floor_div(t, 4)}, {1, context.mod(t, 4)}})), "8*(t//4) + t % 4");
}

TEST_F(Expressions, DivideExactly) {
  EXPECT_EQ(context.floor_div(sum({{12, i}}), 4), sum({{3, i}}));
  EXPECT_EQ(context.mod(sum({{12, i}}, 5), 4), context.constant(1));
  EXPECT_EQ(text(context.floor_div(sum({{6, i}}), 4)), "i + i//2");
  EXPECT_EQ(text(context.mod(sum({{6, i}}), 4)), "2*(i % 2)");
  EXPECT_EQ(context.floor_div(i, 1), i);
  EXPECT_EQ(context.mod(i, 1), context.constant(0));
}

TEST_F(Expressions, UseTheRange) {
  // (d*q + r)//d with 0 <= r < d.
  EXPECT_EQ(context.floor_div(sum({{4, i}, {1, k}}), 4), i);
  EXPECT_EQ(context.mod(sum({{4, i}, {1, k}}), 4), k);
  // The same under a larger divisor: 4*i + k over 16.
  EXPECT_EQ(text(context.floor_div(sum({{4, i}, {1, k}}), 16)), "i//4");
  EXPECT_EQ(text(context.mod(sum({{4, i}, {1, k}}), 16)), "k + 4*(i % 4)");
  EXPECT_EQ(context.as_constant(context.floor_div(i, 8)), 0);
  EXPECT_EQ(context.mod(i, 8), i);
  EXPECT_EQ(context.floor_div(sum({{1, k}}, -4), 4), context.constant(-1));
  // 5*i = 4*i + i, and i stays below 4.
  EXPECT_EQ(context.floor_div(sum({{5, k}}, 8), 4), sum({{1, k}}, 2));
  EXPECT_EQ(context.floor_div(sum({{-3, k}}), 4), sum({{-1, k}}));
}

TEST_F(Expressions, NestedDivisionsAndModuli) {
  EXPECT_EQ(context.floor_div(context.floor_div(i, 2), 2), context.floor_div(i, 4));
  EXPECT_EQ(context.mod(context.mod(i, 4), 2), context.mod(i, 2));
  EXPECT_EQ(text(context.floor_div(context.mod(i, 4), 2)), "(i//2) % 2");
  EXPECT_EQ(context.floor_div(sum({{1, context.floor_div(i, 2)}}, 1), 2),
            context.floor_div(sum({{1, i}}, 2), 4));
}

TEST_F(Expressions, AFlipGoesThroughADivision) {
  EXPECT_EQ(text(context.floor_div(sum({{-1, i}}, 7), 4)), "1 - i//4");
  EXPECT_EQ(text(context.mod(sum({{-1, i}}, 7), 4)), "3 - i % 4");
}

TEST_F(Expressions, SubstituteReplacesAxes) {
  const Expression e = sum({{16, context.floor_div(i, 4)}, {1, context.mod(i, 4)}, {100, j}});
  const auto [outer, inner] = context.split_axis(i_axis, 4);
  const Expression split = sum({{4, context.of(outer)}, {1, context.of(inner)}});
  EXPECT_EQ(text(context.substitute(e, {{i_axis, split}})), "100*j + 16*i_outer + i_inner");
  EXPECT_EQ(context.substitute(e, {{k_axis, i}}), e);
  EXPECT_EQ(context.split_axis(i_axis, 4), std::pair(outer, inner));
  const AxisId merged = context.merge_axes({i_axis, j_axis});
  EXPECT_EQ(context.axis(merged).extent, 24);
  EXPECT_EQ(context.merge_axes({i_axis, j_axis}), merged);
}

TEST_F(Expressions, KnowTheirAxesAndSymbols) {
  const SymbolId symbol = context.add_symbol({"tmp3", 3, 0, 99});
  const Expression e = sum({{8, context.of(symbol)}, {1, context.mod(sum({{5, i}, {1, j}}), 4)}, {2, k}});
  EXPECT_EQ(context.axes(e), (std::vector<AxisId>{i_axis, j_axis, k_axis}));
  EXPECT_TRUE(context.has_symbol(e));
  EXPECT_TRUE(context.has_symbol(context.floor_div(e, 7)));
  EXPECT_FALSE(context.has_symbol(sum({{1, i}})));
  EXPECT_EQ(context.as_axis(i), i_axis);
  EXPECT_FALSE(context.as_axis(sum({{2, i}})));
  EXPECT_FALSE(context.as_axis(sum({{1, i}}, 1)));
  EXPECT_FALSE(context.as_axis(context.of(symbol)));
  EXPECT_TRUE(context.is_affine(sum({{2, i}}, 1)));
  EXPECT_FALSE(context.is_affine(e));
  const auto value = context.evaluate(
      e, [&](AxisId axis) { return axis == i_axis   ? 7
                                   : axis == j_axis ? 2
                                                    : 1; },
      [](SymbolId) { return 10; });
  EXPECT_EQ(value, 8 * 10 + (5 * 7 + 2) % 4 + 2 * 1);
}

TEST_F(Expressions, ASymbolIsTheSameOnlyIfItIsTheSameLoad) {
  const Expression a = context.of(context.add_symbol({"tmp3", 3, 0, 99})),
                   b = context.of(context.add_symbol({"tmp3", 4, 0, 99}));
  EXPECT_NE(a, b);
  EXPECT_EQ(context.as_constant(context.subtract(a, a)), 0);
  EXPECT_FALSE(context.as_constant(context.subtract(a, b)));
  // A range as wide as the type does not overflow, and a value in range is simplified like an axis.
  const Expression wide = context.of(context.add_symbol({"w", 5, INT64_MIN, INT64_MAX}));
  EXPECT_EQ(context.range(sum({{4, wide}})), (Range{INT64_MIN, INT64_MAX}));
  EXPECT_EQ(context.mod(a, 100), a);
}

TEST_F(Expressions, TextIsPython) {
  EXPECT_EQ(text(sum({{16, i}, {1, j}})), "16*i + j");
  EXPECT_EQ(text(sum({{-1, i}, {-2, j}}, 7)), "7 - i - 2*j");
  EXPECT_EQ(text(sum({{1, i}, {-2, j}}, -7)), "i - 2*j - 7");
  EXPECT_EQ(text(sum({{-3, i}})), "-3*i");
  EXPECT_EQ(text(context.mod(sum({{1, i}}, 1), 8)), "(i + 1) % 8");
  EXPECT_EQ(text(context.floor_div(sum({{3, i}, {1, j}}), 4)), "(3*i + j)//4");
  EXPECT_EQ(text(sum({{-1, context.floor_div(i, 3)}})), "-(i//3)");
  EXPECT_EQ(text(sum({{2, context.floor_div(i, 3)}, {1, j}, {-1, context.mod(i, 5)}})),
            "j + 2*(i//3) - i % 5");
  EXPECT_EQ(text(context.constant(-2)), "-2");
  EXPECT_EQ(text(context.mod(context.floor_div(i, 2), 3)), "(i//2) % 3");
}

TEST_F(Expressions, AlignPutsTermsSideBySide) {
  const auto rows = align(context, sum({{16, i}, {1, j}}, 3), sum({{16, i}, {1, context.mod(i, 5)}}));
  ASSERT_EQ(rows.size(), 4U);
  const auto row = [&](std::size_t k) { return rows[k].term + "|" + rows[k].left + "|" + rows[k].right; };
  EXPECT_EQ(row(0), "i|16|16");
  EXPECT_EQ(row(1), "j|1|");
  EXPECT_EQ(row(2), "i % 5||1");
  EXPECT_EQ(row(3), "1|3|");
  EXPECT_TRUE(align(context, context.constant(0), context.constant(0)).empty());
}

TEST(ExpressionDeath, OverflowIsOurBug) {
  Context context;
  const Expression i = context.of(context.add_axis("i", 8));
  EXPECT_DEATH(context.multiply(context.multiply(i, std::int64_t{1} << 40), std::int64_t{1} << 40),
               "overflows");
}

}  // namespace
}  // namespace pallascope::index
