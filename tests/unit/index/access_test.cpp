// Worked examples: the class, the plan and the words of one access each.
#include "core/index/access.h"

#include <gtest/gtest.h>

#include "tests/unit/index/invariants.h"

namespace pallascope::index {
namespace {

using namespace testing;

std::vector<Slice> whole(const Shape& shape) {
  std::vector<Slice> slices;
  for (const std::int64_t size : shape) slices.push_back({0, 1, size});
  return slices;
}

class AccessExamples : public ::testing::Test {
 protected:
  /// The access of a view, with all its claims checked by enumeration.
  Access look(const View& view) {
    const Access found = access(context, view.index, view.axes, view.buffer_sizes, all_steps);
    expect_claims_hold(found, view.array, product(view.buffer_sizes), view.history);
    return found;
  }
  static void expect_plan(const Access& found, const Plan& wanted) {
    ASSERT_TRUE(found.plan) << found.words;
    EXPECT_EQ(found.plan->view_shape, wanted.view_shape);
    EXPECT_EQ(found.plan->slices, wanted.slices);
    EXPECT_EQ(found.plan->split_shape, wanted.split_shape);
    EXPECT_EQ(found.plan->permutation, wanted.permutation);
    EXPECT_EQ(found.plan->expand_shape, wanted.expand_shape);
    EXPECT_EQ(found.plan->result_shape, wanted.result_shape);
  }
  View buffer(const Shape& sizes) { return whole_buffer(context, sizes); }

  Context context;
};

TEST_F(AccessExamples, WholeBufferIsContiguous) {
  const Access found = look(buffer({8, 16}));
  EXPECT_EQ(found.access_class, AccessClass::contiguous);
  EXPECT_EQ(found.words, "contiguous");
  EXPECT_EQ(found.axis_strides, (Shape{16, 1}));
  EXPECT_TRUE(found.affine && found.in_bounds && found.injective);
  EXPECT_EQ(found.bounds, (Range{0, 127}));
  EXPECT_EQ(found.distinct_elements, 128);
  expect_plan(found, {{8, 16}, whole({8, 16}), {}, {0, 1}, {}, {8, 16}});
  EXPECT_TRUE(found.plan->is_identity());
}

TEST_F(AccessExamples, ContiguousWhateverTheSizesOfTheBuffer) {
  View view = buffer({4, 2, 16});
  reshape(context, view, {8, 1, 16});
  expect_plan(look(view), {{8, 1, 16}, whole({8, 1, 16}), {}, {0, 1, 2}, {}, {8, 1, 16}});
}

TEST_F(AccessExamples, RowBiasIsABroadcastOfTheIdentity) {
  View view = buffer({16});
  reshape(context, view, {1, 16});
  expand(context, view, {8, 16});
  const Access found = look(view);
  EXPECT_EQ(found.access_class, AccessClass::broadcast);
  EXPECT_EQ(found.words, "broadcast along i: each element is used 8 times");
  EXPECT_FALSE(found.injective);
  EXPECT_EQ(found.distinct_elements, 16);
  expect_plan(found, {{1, 16}, whole({1, 16}), {}, {0, 1}, {}, {1, 16}});
}

TEST_F(AccessExamples, ColumnBiasAndScalar) {
  View column = buffer({8});
  reshape(context, column, {8, 1});
  expand(context, column, {8, 16});
  expect_plan(look(column), {{8, 1}, whole({8, 1}), {}, {0, 1}, {}, {8, 1}});
  View scalar = buffer({});
  EXPECT_EQ(look(scalar).access_class, AccessClass::contiguous);
  expect_plan(look(scalar), {{}, {}, {}, {}, {}, {}});
  reshape(context, scalar, {1, 1});
  expand(context, scalar, {3, 4});
  EXPECT_EQ(look(scalar).access_class, AccessClass::broadcast);
  expect_plan(look(scalar), {{1, 1}, whole({1, 1}), {}, {0, 1}, {}, {1, 1}});
}

TEST_F(AccessExamples, TransposedMatrixIsPermuted) {
  View view = buffer({8, 16});
  permute(context, view, {1, 0});
  const Access found = look(view);
  EXPECT_EQ(found.access_class, AccessClass::permuted);
  EXPECT_EQ(found.words, "permuted: in memory the order is j, i");
  expect_plan(found, {{8, 16}, whole({8, 16}), {}, {1, 0}, {}, {16, 8}});
  EXPECT_TRUE(found.plan->slices_nothing());
  EXPECT_FALSE(found.plan->permutes_nothing());
}

TEST_F(AccessExamples, EverySecondColumnIsStrided) {
  View view = buffer({8, 16});
  slice(context, view, {{0, 1, 8}, {0, 2, 8}});
  const Access found = look(view);
  EXPECT_EQ(found.access_class, AccessClass::strided);
  EXPECT_EQ(found.words, "strided by 2 elements: 1 of 2 used");
  expect_plan(found, {{8, 16}, {{0, 1, 8}, {0, 2, 8}}, {}, {0, 1}, {}, {8, 8}});
}

TEST_F(AccessExamples, SlicesWithStartAndStep) {
  View view = buffer({9, 16});
  slice(context, view, {{1, 3, 3}, {1, 2, 8}});
  const Access found = look(view);
  EXPECT_EQ(found.access_class, AccessClass::strided);
  EXPECT_EQ(found.words, "strided by 2 elements: 24 of 111 used");
  expect_plan(found, {{9, 16}, {{1, 3, 3}, {1, 2, 8}}, {}, {0, 1}, {}, {3, 8}});
}

TEST_F(AccessExamples, OneRowAndOneColumn) {
  View row = buffer({8, 16});
  slice(context, row, {{3, 1, 1}, {0, 1, 16}});
  reshape(context, row, {16});
  EXPECT_EQ(look(row).access_class, AccessClass::sliced);
  EXPECT_EQ(look(row).words, "sliced: 16 of 128 elements, from element 48");
  expect_plan(look(row), {{8, 16}, {{3, 1, 1}, {0, 1, 16}}, {}, {0, 1}, {}, {16}});
  View column = buffer({8, 16});
  slice(context, column, {{0, 1, 8}, {3, 1, 1}});
  reshape(context, column, {8});
  EXPECT_EQ(look(column).access_class, AccessClass::strided);
  EXPECT_EQ(look(column).words, "strided by 16 elements: 1 of 16 used");
  expect_plan(look(column), {{8, 16}, {{0, 1, 8}, {3, 1, 1}}, {}, {0, 1}, {}, {8}});
}

TEST_F(AccessExamples, FlipHasANegativeStep) {
  View view = buffer({8, 16});
  slice(context, view, {{0, 1, 8}, {15, -1, 16}});
  const Access found = look(view);
  EXPECT_EQ(found.access_class, AccessClass::reversed);
  EXPECT_EQ(found.words, "reversed along j");
  expect_plan(found, {{8, 16}, {{0, 1, 8}, {15, -1, 16}}, {}, {0, 1}, {}, {8, 16}});
}

TEST_F(AccessExamples, AttentionHeads) {
  // One third of a fused projection, split into heads: the slice is of whole heads.
  View view = buffer({8, 24});
  slice(context, view, {{0, 1, 8}, {8, 1, 8}});
  reshape(context, view, {2, 4, 4, 2});
  permute(context, view, {0, 2, 1, 3});
  const Access found = look(view);
  EXPECT_EQ(found.access_class, AccessClass::permuted);
  expect_plan(
      found,
      {{2, 4, 12, 2}, {{0, 1, 2}, {0, 1, 4}, {4, 1, 4}, {0, 1, 2}}, {}, {0, 2, 1, 3}, {}, {2, 4, 4, 2}});
  // And back: the last axis is two in memory.
  View merged = buffer({2, 4, 4, 2});
  permute(context, merged, {0, 2, 1, 3});
  reshape(context, merged, {2, 4, 8});
  EXPECT_EQ(look(merged).words, "permuted: in memory the order is i, part of k, j, part of k");
  expect_plan(look(merged), {{2, 4, 4, 2}, whole({2, 4, 4, 2}), {}, {0, 2, 1, 3}, {}, {2, 4, 8}});
}

TEST_F(AccessExamples, NeighbouringAxesMerge) {
  View view = buffer({4, 6});
  permute(context, view, {1, 0});
  reshape(context, view, {8, 3});
  const Access found = look(view);
  EXPECT_FALSE(found.affine);
  EXPECT_EQ(context.to_string(view.index), "(3*i + j)//4 + 6*((3*i + j) % 4)");
  expect_plan(found, {{4, 6}, whole({4, 6}), {}, {1, 0}, {}, {8, 3}});
}

TEST_F(AccessExamples, DimensionsMergeWhereAnAxisSpansThem) {
  View view = buffer({4, 8, 16});
  permute(context, view, {2, 0, 1});
  reshape(context, view, {16, 32});
  expect_plan(look(view), {{32, 16}, whole({32, 16}), {}, {1, 0}, {}, {16, 32}});
}

TEST_F(AccessExamples, ASliceThatIsSplitAfterwards) {
  View view = buffer({100});
  slice(context, view, {{2, 1, 96}});
  reshape(context, view, {4, 24});
  permute(context, view, {1, 0});
  expect_plan(look(view), {{100}, {{2, 1, 96}}, {4, 24}, {1, 0}, {}, {24, 4}});
  const Access plain = access(context, view.index, view.axes, view.buffer_sizes);
  EXPECT_EQ(plain.access_class, AccessClass::general);
  EXPECT_TRUE(plain.in_bounds && plain.injective);
  EXPECT_EQ(plain.words, "general: a slice of the buffer would have to be split before it is transposed");
}

TEST_F(AccessExamples, GroupedQueriesExpandWithinAnAxis) {
  View view = buffer({2, 4, 3, 2});
  reshape(context, view, {2, 4, 1, 3, 2});
  expand(context, view, {2, 4, 2, 3, 2});
  reshape(context, view, {2, 8, 3, 2});
  const Access found = look(view);
  EXPECT_EQ(found.access_class, AccessClass::broadcast);
  EXPECT_EQ(found.words, "broadcast along j: each element is used 2 times");
  expect_plan(found,
              {{2, 4, 1, 3, 2}, whole({2, 4, 1, 3, 2}), {}, {0, 1, 2, 3, 4}, {2, 4, 2, 3, 2}, {2, 8, 3, 2}});
  const Access plain = access(context, view.index, view.axes, view.buffer_sizes);
  EXPECT_EQ(plain.access_class, AccessClass::general);
  EXPECT_EQ(plain.words, "general: each element would have to be repeated within an axis");
}

TEST_F(AccessExamples, AConstantDimensionStandsWhereTheResultHasAOne) {
  View view = buffer({8, 4, 16});
  slice(context, view, {{0, 1, 8}, {2, 1, 1}, {0, 1, 16}});
  permute(context, view, {2, 1, 0});
  expect_plan(look(view), {{8, 4, 16}, {{0, 1, 8}, {2, 1, 1}, {0, 1, 16}}, {}, {2, 1, 0}, {}, {16, 1, 8}});
}

TEST_F(AccessExamples, WindowsOverlap) {
  const std::vector<AxisId> axes = add_axes(context, {8, 3});
  const Expression e = context.add(context.of(axes[0]), context.of(axes[1]));
  const Access found = access(context, e, axes, {10});
  EXPECT_EQ(found.access_class, AccessClass::overlapping);
  EXPECT_EQ(found.words, "overlapping: 10 elements for 24 points");
  EXPECT_FALSE(found.plan || found.injective);
  EXPECT_TRUE(found.in_bounds && found.distinct_exact);
  EXPECT_EQ(found.distinct_elements, 10);
}

TEST_F(AccessExamples, ASymbolIsAGather) {
  const std::vector<AxisId> axes = add_axes(context, {8, 16});
  const Expression row = context.of(context.add_symbol({"tmp2", 2, 0, 99}));
  const Expression e = context.add(context.multiply(row, 16), context.of(axes[1]));
  const Access found = access(context, e, axes, {100, 16});
  EXPECT_EQ(found.access_class, AccessClass::gather);
  EXPECT_EQ(found.words, "gather: the element is given by the value of tmp2");
  EXPECT_FALSE(found.plan || found.injective || found.distinct_exact);
  EXPECT_TRUE(found.in_bounds);
  EXPECT_EQ(found.bounds, (Range{0, 1599}));
  EXPECT_EQ(found.distinct_elements, 128);
  EXPECT_FALSE(access(context, e, axes, {99, 16}).in_bounds);
}

TEST_F(AccessExamples, WhatIsNotProvedIsGeneral) {
  const std::vector<AxisId> axes = add_axes(context, {8});
  const Expression i = context.of(axes[0]);
  const Access rolled = access(context, context.mod(context.add(i, context.constant(3)), 8), axes, {8});
  EXPECT_EQ(rolled.access_class, AccessClass::general);
  EXPECT_EQ(rolled.words, "general: (i + 3) % 8 is not a sum of strides");
  EXPECT_TRUE(rolled.in_bounds && rolled.injective && rolled.distinct_exact);
  const Access outside = access(context, context.add(i, context.constant(-1)), axes, {8});
  EXPECT_EQ(outside.access_class, AccessClass::general);
  EXPECT_EQ(outside.words, "general: reaches from element -1 to 6, the buffer has 8 elements");
  EXPECT_FALSE(outside.in_bounds || outside.plan);
  EXPECT_TRUE(outside.affine);
  // Larger than what is enumerated: bounds and count are safe estimates.
  const std::vector<AxisId> large{context.add_axis("n", 100'000)};
  const Access periodic = access(context, context.mod(context.of(large[0]), 7), large, {7});
  EXPECT_EQ(periodic.access_class, AccessClass::general);
  EXPECT_TRUE(periodic.in_bounds);
  EXPECT_FALSE(periodic.injective || periodic.distinct_exact);
  EXPECT_EQ(periodic.distinct_elements, 7);
}

TEST_F(AccessExamples, ValuesThatAreASumOfStridesAreOne) {
  const std::vector<AxisId> axes = add_axes(context, {5});
  const Expression i = context.of(axes[0]);
  const Expression crossing = context.floor_div(context.add(i, context.constant(9)), 12);
  const Expression within = context.mod(context.add(i, context.constant(3)), 6);
  const Access found = access(context, context.add(context.multiply(crossing, 6), within), axes, {24});
  EXPECT_FALSE(found.affine);
  EXPECT_EQ(found.words, "sliced: 5 of 24 elements, from element 3");
  expect_plan(found, {{24}, {{3, 1, 5}}, {}, {0}, {}, {5}});
}

TEST_F(AccessExamples, AnExtentOfZeroTouchesNothing) {
  for (const Shape& sizes : {Shape{10}, Shape{0}, Shape{0, 10}}) {
    const std::vector<AxisId> axes = add_axes(context, {0, 10});
    const Access found = access(context, context.of(axes[1]), axes, sizes);
    EXPECT_EQ(found.access_class, AccessClass::contiguous);
    EXPECT_TRUE(found.in_bounds && found.injective && found.plan);
    EXPECT_EQ(run_plan(*found.plan, product(sizes)).shape, (Shape{0, 10}));
  }
}

TEST(AccessNames, AreOnePerClass) {
  EXPECT_EQ(access_class_name(AccessClass::strided), "strided");
  std::string letters;
  for (int k = 0; k < 9; ++k) letters += access_class_letter(static_cast<AccessClass>(k));
  EXPECT_EQ(letters, "CBPSsROGX");
}

}  // namespace
}  // namespace pallascope::index
