// Strides decide what is a view; the decisions are compared with enumeration of every element.
#include "core/functional/view.h"

#include <algorithm>
#include <random>
#include <set>

#include "tests/unit/functional/support.h"

namespace pallascope::functional {
namespace {

using trace::TensorMeta;
using Ints = std::vector<std::int64_t>;

TensorMeta meta(Ints sizes, Ints strides, std::int64_t offset = 0) {
  TensorMeta made;
  made.sizes = std::move(sizes);
  made.strides = std::move(strides);
  made.storage_offset = offset;
  return made;
}

/// Where each element lies, in row-major order of the indices.
Ints places(const Ints& sizes, const Ints& strides) {
  Ints all = {0};
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    Ints next;
    for (const std::int64_t place : all)
      for (std::int64_t i = 0; i < sizes[axis]; ++i) next.push_back(place + i * strides[axis]);
    all = std::move(next);
  }
  return all;
}

/// The definition: some strides put the elements of `sizes` where those of the base are, in the same order.
bool viewable_by_enumeration(const TensorMeta& base, const Ints& sizes) {
  const Ints wanted = places(base.sizes, base.strides);
  if (wanted.empty()) return base.numel() == TensorMeta{DType::f32, sizes, {}, 0, "cpu", false}.numel();
  Ints strides(sizes.size(), 0);
  std::size_t inner = 1;
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    if (sizes[axis] > 1 && inner < wanted.size()) strides[axis] = wanted[inner] - wanted[0];
    inner *= static_cast<std::size_t>(sizes[axis]);
  }
  return places(sizes, strides) == wanted;
}

TEST(Viewable, WorkedExample) {
  const TensorMeta gap = meta({2, 3, 4}, {24, 4, 1});
  EXPECT_TRUE(viewable(gap, {2, 12}));
  EXPECT_FALSE(viewable(gap, {6, 4}));
  EXPECT_TRUE(viewable(gap, {2, 1, 3, 2, 2}));
  EXPECT_TRUE(viewable(meta({4, 6}, {1, 4}), {4, 6}));
  EXPECT_FALSE(viewable(meta({4, 6}, {1, 4}), {24}));
  EXPECT_TRUE(viewable(meta({}, {}), {1, 1}));
  EXPECT_TRUE(viewable(meta({0, 3}, {3, 1}), {3, 0}));
  EXPECT_FALSE(viewable(meta({2, 3}, {3, 1}), {5}));
}

TEST(Viewable, AgreesWithEnumeration) {
  std::mt19937 random(5);
  const Ints extents = {1, 1, 2, 3, 4};
  int views = 0, copies = 0;
  for (int round = 0; round < 20000; ++round) {
    Ints sizes(random() % 5);
    for (std::int64_t& size : sizes) size = extents[random() % extents.size()];
    TensorMeta base = meta(sizes, trace::contiguous_strides(sizes));
    // Distort: swap two axes, stretch or drop a stride.
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::size_t other = random() % sizes.size();
      switch (random() % 6) {
        case 0:
          std::swap(base.sizes[i], base.sizes[other]);
          std::swap(base.strides[i], base.strides[other]);
          break;
        case 1:
          base.strides[i] *= 2;
          break;
        case 2:
          base.strides[i] = 0;
          break;
        default:
          break;
      }
    }
    // Wanted sizes: the prime factors in another grouping, with ones strewn in.
    Ints wanted = {1};
    for (const std::int64_t size : base.sizes) {
      if (random() % 3 == 0) wanted.push_back(1);
      if (random() % 2 == 0)
        wanted.back() *= size;
      else if (size == 4 && random() % 2 == 0)
        wanted.insert(wanted.end(), {2, 2});
      else
        wanted.push_back(size);
    }
    const bool expected = viewable_by_enumeration(base, wanted);
    ASSERT_EQ(viewable(base, wanted), expected) << round;
    ++(expected ? views : copies);
  }
  EXPECT_GT(views, 2000);
  EXPECT_GT(copies, 1000);
}

TEST(OverlapsItself, NeverMissesAnOverlap) {
  std::mt19937 random(6);
  int overlapping = 0;
  for (int round = 0; round < 20000; ++round) {
    Ints sizes(1 + random() % 3), strides(sizes.size());
    for (std::int64_t& size : sizes) size = static_cast<std::int64_t>(random() % 4);
    for (std::int64_t& stride : strides) stride = static_cast<std::int64_t>(random() % 9);
    const Ints all = places(sizes, strides);
    const bool distinct = std::set<std::int64_t>(all.begin(), all.end()).size() == all.size();
    const bool claimed = overlaps_itself(meta(sizes, strides));
    if (!distinct) {
      ASSERT_TRUE(claimed) << round;
      ++overlapping;
    }
  }
  EXPECT_GT(overlapping, 1000);
  EXPECT_FALSE(overlaps_itself(meta({4, 6}, {1, 4})));
  EXPECT_FALSE(overlaps_itself(meta({4, 1}, {1, 0})));
  EXPECT_FALSE(overlaps_itself(meta({4, 2}, {16, 3})));
}

TEST(DenseLike, KeepsTheOrderOfAxes) {
  EXPECT_EQ(dense_like(meta({4, 2}, {1, 8}, 3)), meta({4, 2}, {1, 4}));
  EXPECT_EQ(dense_like(meta({5, 2}, {8, 1}, 2)), meta({5, 2}, {2, 1}));
  EXPECT_EQ(dense_like(meta({2, 3, 4}, {96, 1, 24})), meta({2, 3, 4}, {12, 1, 3}));
  EXPECT_EQ(dense_like(meta({}, {})), meta({}, {}));
}

TEST(Targets, TheirParts) {
  EXPECT_EQ(operator_namespace("aten.add_.Tensor"), "aten");
  EXPECT_EQ(operator_name("aten.add_.Tensor"), "add_");
  EXPECT_EQ(overload_name("aten.add_.Tensor"), "Tensor");
  EXPECT_EQ(operator_name("aten.add"), "add");
  EXPECT_EQ(overload_name("aten.add"), "");
  EXPECT_EQ(operator_name("add"), "add");
}

}  // namespace
}  // namespace pallascope::functional
