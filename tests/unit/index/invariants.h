// The claims of an Access, tested by looking at every point.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/index/support.h"

namespace pallascope::index::testing {

/// The sizes of the dimensions that an index depends on, by looking: those along which some value changes.
inline std::vector<bool> moving_axes(const Array& index) {
  std::vector<bool> moves(index.shape.size(), false);
  for_each_point(index.shape, [&](const Shape& point) {
    for (std::size_t k = 0; k < point.size(); ++k) {
      Shape first = point;
      first[k] = 0;
      if (index.at(first) != index.at(point)) moves[k] = true;
    }
  });
  return moves;
}

/// Checks each field of `found` against `index`, the element touched at each point of the loop.
inline void expect_claims_hold(const Access& found, const Array& index, std::int64_t numel,
                               const std::string& where) {
  SCOPED_TRACE(where + " is " + found.words);
  const std::set<std::int64_t> touched(index.data.begin(), index.data.end());
  const auto points = static_cast<std::int64_t>(index.data.size());
  const auto distinct = static_cast<std::int64_t>(touched.size());
  EXPECT_FALSE(found.words.empty());
  if (points == 0) {
    EXPECT_EQ(found.access_class, AccessClass::contiguous);
    EXPECT_EQ(found.distinct_elements, 0);
    EXPECT_TRUE(found.in_bounds && found.injective && found.distinct_exact && found.plan);
    if (found.plan) {
      EXPECT_EQ(run_plan(*found.plan, numel).shape, index.shape);
    }
    return;
  }
  EXPECT_LE(found.bounds.low, *touched.begin());
  EXPECT_GE(found.bounds.high, *touched.rbegin());
  if (found.affine || found.plan) {
    EXPECT_EQ(found.bounds, (Range{*touched.begin(), *touched.rbegin()}));
  }
  if (found.in_bounds) {
    EXPECT_TRUE(*touched.begin() >= 0 && *touched.rbegin() < numel);
  }
  if (found.injective) {
    EXPECT_EQ(distinct, points);
  }
  EXPECT_GE(found.distinct_elements, distinct);
  if (found.distinct_exact) {
    EXPECT_EQ(found.distinct_elements, distinct);
  }

  if (found.plan) {
    const Plan& plan = *found.plan;
    const std::vector<bool> moves = moving_axes(index);
    ASSERT_EQ(plan.result_shape.size(), index.shape.size());
    for (std::size_t k = 0; k < moves.size(); ++k) {
      EXPECT_EQ(plan.result_shape[k], moves[k] ? index.shape[k] : 1) << "dimension " << k;
    }
    Array read;
    ASSERT_NO_THROW(read = read_over_axes(plan, numel, index.shape));
    EXPECT_EQ(read.data, index.data);
    if (plan.is_identity()) {
      EXPECT_EQ(distinct, numel);
    }
  }

  const bool broadcast_axis = [&] {
    const std::vector<bool> moves = moving_axes(index);
    for (std::size_t k = 0; k < moves.size(); ++k) {
      if (!moves[k] && index.shape[k] > 1) return true;
    }
    return false;
  }();
  const auto steps = [&](auto wanted) {
    for (std::size_t k = 1; k < index.data.size(); ++k) {
      if (!wanted(index.data[k] - index.data[k - 1])) return false;
    }
    return true;
  };
  switch (found.access_class) {
    case AccessClass::contiguous:
      EXPECT_TRUE(steps([](std::int64_t step) { return step == 1; }));
      EXPECT_EQ(*touched.begin(), 0);
      EXPECT_EQ(distinct, numel);
      EXPECT_TRUE(found.plan && found.plan->is_identity());
      break;
    case AccessClass::broadcast:
      EXPECT_EQ(distinct, numel);
      EXPECT_LT(distinct, points);
      EXPECT_TRUE(found.plan);
      break;
    case AccessClass::sliced:
      EXPECT_LT(distinct, numel);
      if (!broadcast_axis && found.affine) {
        EXPECT_TRUE(steps([](std::int64_t step) { return step >= 1; }));
      }
      EXPECT_TRUE(found.plan);
      break;
    case AccessClass::strided:
      if (!broadcast_axis && found.affine) {
        EXPECT_TRUE(steps([](std::int64_t step) { return step >= 1; }));
      }
      if (found.affine) {
        for (const std::int64_t stride : found.axis_strides) EXPECT_NE(stride, 1);
      }
      EXPECT_TRUE(found.plan);
      break;
    case AccessClass::permuted:
      if (!broadcast_axis) {
        EXPECT_FALSE(steps([](std::int64_t step) { return step >= 0; }));
      }
      EXPECT_TRUE(found.plan);
      break;
    case AccessClass::reversed:
      EXPECT_FALSE(steps([](std::int64_t step) { return step >= 0; }));
      EXPECT_TRUE(found.plan);
      break;
    case AccessClass::overlapping:
      EXPECT_LT(distinct, points);
      EXPECT_FALSE(found.plan);
      break;
    case AccessClass::gather:
    case AccessClass::general:
      EXPECT_FALSE(found.plan);
      break;
  }
}

}  // namespace pallascope::index::testing
