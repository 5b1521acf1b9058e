// The proof of a plan refuses wrong plans, and counting boxes of strides is exact where it says so.
#include "core/index/plan.h"

#include <set>

#include <gtest/gtest.h>

#include "core/index/resolve.h"
#include "core/index/strides.h"
#include "tests/unit/index/support.h"

namespace pallascope::index {
namespace {

using namespace testing;

TEST(PlanProof, RefusesEveryChangeOfAPlan) {
  // x[1::3, ::2] of (9,16), transposed.
  PlanRequest request;
  request.pieces = {{2, 8}, {48, 3}};
  request.result_shape = {8, 3};
  request.lowest = request.origin = 16;
  request.buffer_sizes = {9, 16};
  request.numel = 144;
  const std::optional<Plan> plan = make_plan(request);
  ASSERT_TRUE(plan);
  ASSERT_TRUE(plan_is_proved(*plan, request));
  const auto refused = [&](auto change) {
    Plan wrong = *plan;
    change(wrong);
    return !plan_is_proved(wrong, request);
  };
  EXPECT_TRUE(refused([](Plan& p) { p.permutation = {0, 1}; }));
  EXPECT_TRUE(refused([](Plan& p) { p.permutation = {0, 0}; }));
  EXPECT_TRUE(refused([](Plan& p) { p.permutation = {1}; }));
  EXPECT_TRUE(refused([](Plan& p) { p.slices[0].start = 0; }));
  EXPECT_TRUE(refused([](Plan& p) { p.slices[0].step = 2; }));
  EXPECT_TRUE(refused([](Plan& p) { p.slices[0].step = 4; }));
  EXPECT_TRUE(refused([](Plan& p) { p.slices[1].step = 0; }));
  EXPECT_TRUE(refused([](Plan& p) { p.slices[1].count = 7; }));
  EXPECT_TRUE(refused([](Plan& p) { p.slices[1].count = 9; }));
  EXPECT_TRUE(refused([](Plan& p) { p.slices.pop_back(); }));
  EXPECT_TRUE(refused([](Plan& p) { p.view_shape = {18, 8}; }));
  EXPECT_TRUE(refused([](Plan& p) { p.view_shape = {9, 15}; }));
  EXPECT_TRUE(refused([](Plan& p) { p.result_shape = {8, 4}; }));
  EXPECT_TRUE(refused([](Plan& p) { p.split_shape = {3, 4}; }));
  EXPECT_TRUE(refused([](Plan& p) { p.split_shape = {3, 8, 1}; }));
  EXPECT_TRUE(refused([](Plan& p) { p.expand_shape = {8, 6}; }));
  EXPECT_TRUE(refused([](Plan& p) { p.expand_shape = {8}; }));
  EXPECT_FALSE(refused([](Plan& p) { p.split_shape = {3, 8}; }));  // changes nothing
}

TEST(Plans, DoNotExistForStridesThatNoViewHas) {
  PlanRequest request;
  request.pieces = {{6, 2}, {1, 3}};  // 6 does not divide 10
  request.result_shape = {2, 3};
  request.buffer_sizes = {10};
  request.numel = 10;
  EXPECT_FALSE(make_plan(request));
  request.numel = 12;
  request.buffer_sizes = {12};
  EXPECT_TRUE(make_plan(request));
}

/// The factorisation from the strides is complete: whenever some view has each piece as a slice of a dimension of its
/// own, a plan is found. Tried against every divisor chain of the buffer.
TEST(Plans, AreFoundWheneverSomeViewHasTheStrides) {
  Random random(31);
  int possible = 0;
  for (int round = 0; round < 3'000; ++round) {
    PlanRequest request;
    request.numel = random.pick<std::int64_t>({12, 16, 24, 30, 36, 48, 60, 72, 96});
    request.buffer_sizes = {request.numel};
    request.lowest = request.origin = random.below(8);
    std::int64_t high = request.lowest;
    for (std::int64_t k = random.between(1, 3); k > 0; --k) {
      const SubAxis piece{random.between(1, 24), random.between(2, 4)};
      request.pieces.push_back(piece);
      request.result_shape.push_back(piece.extent);
      high += piece.stride * (piece.extent - 1);
    }
    if (high >= request.numel || !count_touched(request.pieces).injective()) continue;
    // Every chain 1 | w1 | w2 | numel with at most three proper weights, by trying each set of divisors.
    Shape divisors;
    for (std::int64_t d = 2; d < request.numel; ++d) {
      if (request.numel % d == 0) divisors.push_back(d);
    }
    bool exists = false;
    const auto holds = [&](const Shape& weights) {  // descending, ends in 1
      std::vector<bool> taken(weights.size(), false);
      for (const SubAxis& piece : request.pieces) {
        bool placed = false;
        for (std::size_t d = 0; d < weights.size() && !placed; ++d) {
          const std::int64_t above = d == 0 ? request.numel : weights[d - 1];
          if (taken[d] || piece.stride % weights[d] != 0 || piece.stride >= above) continue;
          if (request.lowest % above / weights[d] + piece.stride / weights[d] * (piece.extent - 1) >=
              above / weights[d])
            continue;
          taken[d] = placed = true;
        }
        if (!placed) return false;
      }
      return true;
    };
    exists = holds({1});
    for (const std::int64_t a : divisors) {
      exists = exists || holds({a, 1});
      for (const std::int64_t b : divisors) {
        if (a % b != 0 || a == b) continue;
        exists = exists || holds({a, b, 1});
        for (const std::int64_t c : divisors) {
          if (b % c == 0 && b != c) exists = exists || holds({a, b, c, 1});
        }
      }
    }
    possible += exists ? 1 : 0;
    const std::optional<Plan> plan = make_plan(request);
    ASSERT_TRUE(plan || !exists) << "round " << round;
    ASSERT_TRUE(!plan || plan_is_proved(*plan, request));
  }
  EXPECT_GT(possible, 300);
}

TEST(Strides, CountsAreExact) {
  Random random(32);
  int exact = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<SubAxis> parts;
    for (std::int64_t k = random.between(0, 4); k > 0; --k) {
      const std::int64_t stride = random.chance(50) ? random.between(1, 9) : random.between(1, 60);
      parts.push_back({random.chance(20) ? -stride : stride, random.between(2, 6)});
    }
    std::set<std::int64_t> values{0};
    std::int64_t points = 1;
    for (const SubAxis& part : parts) {
      std::set<std::int64_t> next;
      for (const std::int64_t v : values) {
        for (std::int64_t x = 0; x < part.extent; ++x) next.insert(v + x * part.stride);
      }
      values = std::move(next);
      points *= part.extent;
    }
    const Touched touched = count_touched(parts);
    ASSERT_EQ(touched.points, points);
    ASSERT_TRUE(touched.exact);
    ASSERT_EQ(touched.distinct, static_cast<std::int64_t>(values.size())) << "round " << round;
    exact += touched.injective() ? 1 : 0;
  }
  EXPECT_GT(exact, 5'000);
}

TEST(Strides, AnEstimateIsAnUpperBoundAndSaysSo) {
  // Three entangled strides over far more positions than are marked one by one.
  const Touched touched = count_touched({{99'991, 1000}, {70'001, 1000}, {1'009, 1000}});
  EXPECT_FALSE(touched.exact);
  EXPECT_FALSE(touched.injective());
  EXPECT_LE(touched.distinct, touched.points);
}

TEST(Resolve, SplitsAndMerges) {
  Context context;
  const std::vector<AxisId> axes = add_axes(context, {8, 3});
  const Expression t = context.add(context.multiply(context.of(axes[0]), 3), context.of(axes[1]));
  const Expression e = context.add(context.multiply(context.mod(t, 4), 6), context.floor_div(t, 4));
  const std::optional<Walk> walk = resolve(context, e, axes);
  ASSERT_TRUE(walk);
  ASSERT_EQ(walk->groups.size(), 1U);
  EXPECT_EQ(walk->groups[0].positions, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(walk->groups[0].parts, (std::vector<SubAxis>{{1, 6}, {6, 4}}));
  EXPECT_FALSE(resolve(context, context.mod(context.of(axes[0]), 3), axes));
}

TEST(Resolve, CoalescesWhatWalksLikeOne) {
  EXPECT_EQ(coalesce({{24, 4}, {8, 3}}), (std::vector<SubAxis>{{8, 12}}));
  EXPECT_EQ(coalesce({{24, 4}, {5, 1}, {8, 3}, {1, 8}}), (std::vector<SubAxis>{{1, 96}}));
  EXPECT_EQ(coalesce({{-24, 4}, {8, 3}}), (std::vector<SubAxis>{{-24, 4}, {8, 3}}));
  EXPECT_EQ(coalesce({{0, 4}, {0, 3}}), (std::vector<SubAxis>{{0, 12}}));
}

}  // namespace
}  // namespace pallascope::index
