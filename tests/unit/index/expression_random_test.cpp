// Simplification, ranges, substitution and text of random expressions, against the tree as it was written.
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/unit/index/support.h"

namespace pallascope::index {
namespace {

using namespace testing;

Shape random_extents(Random& random) {
  Shape extents(static_cast<std::size_t>(random.below(4)));
  for (std::int64_t& extent : extents) {
    extent = random.chance(5)    ? 0
             : random.chance(30) ? random.between(1, 2)
                                 : random.pick<std::int64_t>({2, 3, 4, 4, 6, 8, 9});
  }
  if (extents.size() > 1 && random.chance(30)) extents[1] = extents[0];
  return extents;
}

TEST(RandomExpression, KeepsItsValueAndItsRange) {
  Random random(1);
  std::int64_t affine = 0, shrunk = 0;
  for (int round = 0; round < 30'000; ++round) {
    Context context;
    const Shape extents = random_extents(random);
    const std::vector<AxisId> axes = add_axes(context, extents);
    const auto tree = random_tree(random, extents, static_cast<int>(random.between(1, 5)));
    const Expression e = build(context, *tree, axes);
    const Range range = context.range(e);
    std::int64_t low = std::numeric_limits<std::int64_t>::max(),
                 high = std::numeric_limits<std::int64_t>::min();
    for_each_point(extents, [&](const Shape& point) {
      const std::int64_t wanted = tree->at(point);
      ASSERT_EQ(value_at(context, e, axes, point), wanted)
          << "round " << round << ": " << context.to_string(e);
      low = std::min(low, wanted);
      high = std::max(high, wanted);
    });
    if (HasFatalFailure()) return;
    if (product(extents) == 0) continue;
    ASSERT_LE(range.low, low) << context.to_string(e);
    ASSERT_GE(range.high, high) << context.to_string(e);
    if (context.is_affine(e)) {
      ++affine;
      ASSERT_EQ(range, (Range{low, high})) << context.to_string(e);
    }
    if (low == high) shrunk += context.as_constant(e).has_value() ? 1 : 0;
  }
  RecordProperty("affine", static_cast<int>(affine));
  RecordProperty("constant", static_cast<int>(shrunk));
  EXPECT_GT(affine, 10'000);
}

TEST(RandomExpression, QuotientAndRemainderGiveTheWholeBack) {
  Random random(2);
  int lost = 0;
  for (int round = 0; round < 10'000; ++round) {
    Context context;
    const Shape extents = random_extents(random);
    const std::vector<AxisId> axes = add_axes(context, extents);
    const Expression e = build(context, *random_tree(random, extents, 3), axes);
    const std::int64_t divisor = random.between(1, 24), factor = random.between(-3, 3);
    const Expression back = context.add(context.multiply(context.floor_div(e, divisor), divisor * factor),
                                        context.multiply(context.mod(e, divisor), factor));
    const Expression wanted = context.multiply(e, factor);
    for_each_point(extents, [&](const Shape& point) {
      ASSERT_EQ(value_at(context, back, axes, point), value_at(context, wanted, axes, point));
    });
    if (HasFatalFailure()) return;
    if (back != wanted) ++lost;
  }
  RecordProperty("lost", lost);
  EXPECT_LT(lost,
            100);  // a few sums whose terms cancel before they can be found; the value is right all the same
}

TEST(RandomExpression, SubstitutionIsComposition) {
  Random random(3);
  for (int round = 0; round < 10'000; ++round) {
    Context context;
    // i = (a + b) with a < m, b < n and i < m + n - 1: every replacement stays within the axis.
    const Shape parts{random.between(1, 5), random.between(1, 5), random.between(1, 6)};
    const Shape extents{parts[0] + parts[1] - 1, parts[2]};
    const std::vector<AxisId> old = add_axes(context, extents);
    const std::vector<AxisId> axes = add_axes(context, parts);
    const auto tree = random_tree(random, extents, 4);
    const Expression e = build(context, *tree, old);
    const Expression composed = context.substitute(
        e, {{old[0], context.add(context.of(axes[0]), context.of(axes[1]))}, {old[1], context.of(axes[2])}});
    for_each_point(parts, [&](const Shape& point) {
      ASSERT_EQ(value_at(context, composed, axes, point), tree->at({point[0] + point[1], point[2]}));
    });
    if (HasFatalFailure()) return;
    for (const AxisId axis : context.axes(composed))
      ASSERT_NE(std::find(axes.begin(), axes.end(), axis), axes.end());
  }
}

/// Reads the text as Python would: `*`, `//` and `%` from left to right before `+` and `-`; a sign before its product.
class Reader {
 public:
  Reader(const std::string& text, const Shape& values) : text_(text), values_(values) {}
  std::int64_t sum() {
    std::int64_t total = product();
    while (true) {
      skip();
      if (take("+")) {
        total += product();
      } else if (take("-")) {
        total -= product();
      } else {
        return total;
      }
    }
  }
  [[nodiscard]] bool ended() const { return place_ == text_.size(); }

 private:
  void skip() {
    while (place_ < text_.size() && text_[place_] == ' ') ++place_;
  }
  bool take(const std::string& token) {
    skip();
    if (text_.compare(place_, token.size(), token) != 0) return false;
    place_ += token.size();
    return true;
  }
  std::int64_t floored(std::int64_t a, std::int64_t b) { return (a - ((a % b) + b) % b) / b; }
  std::int64_t product() {
    std::int64_t value = unary();
    while (true) {
      if (take("//")) {
        value = floored(value, unary());
      } else if (take("*")) {
        value *= unary();
      } else if (take("%")) {
        const std::int64_t b = unary();
        value -= b * floored(value, b);
      } else {
        return value;
      }
    }
  }
  std::int64_t unary() {
    if (take("-")) return -unary();
    skip();
    if (take("(")) {
      const std::int64_t value = sum();
      take(")");
      return value;
    }
    if (text_[place_] >= 'i') return values_.at(static_cast<std::size_t>(text_[place_++] - 'i'));
    std::int64_t value = 0;
    while (place_ < text_.size() && text_[place_] >= '0' && text_[place_] <= '9')
      value = value * 10 + (text_[place_++] - '0');
    return value;
  }

  const std::string& text_;
  const Shape& values_;
  std::size_t place_ = 0;
};

TEST(RandomExpression, TextIsPythonOfTheSameValue) {
  Random random(4);
  for (int round = 0; round < 5'000; ++round) {
    Context context;
    const Shape extents = random_extents(random);
    const std::vector<AxisId> axes = add_axes(context, extents);
    const auto tree = random_tree(random, extents, 4);
    const Expression e = build(context, *tree, axes);
    const std::string text = context.to_string(e);
    for_each_point(extents, [&](const Shape& point) {
      Reader reader(text, point);
      ASSERT_EQ(reader.sum(), tree->at(point)) << text;
      ASSERT_TRUE(reader.ended()) << text;
    });
    if (HasFatalFailure()) return;
    Context again;
    const std::vector<AxisId> other = add_axes(again, extents);
    ASSERT_EQ(again.to_string(build(again, *tree, other)), text);
  }
}

TEST(RandomExpression, FloorDivisionsNest) {
  EXPECT_TRUE(rc::check("(e//a)//b and (e % (a*b))//b, by rapidcheck", [] {
    const auto extent = *rc::gen::inRange<std::int64_t>(1, 40);
    const auto factor = *rc::gen::inRange<std::int64_t>(-5, 6);
    const auto offset = *rc::gen::inRange<std::int64_t>(-50, 50);
    const auto a = *rc::gen::inRange<std::int64_t>(1, 9);
    const auto b = *rc::gen::inRange<std::int64_t>(1, 9);
    Context context;
    const AxisId axis = context.add_axis("i", extent);
    const Expression e = context.add(context.multiply(context.of(axis), factor), context.constant(offset));
    // By value: where the range allows several forms, which one is found depends on the order of building.
    const Expression twice = context.floor_div(context.floor_div(e, a), b),
                     once = context.floor_div(e, a * b);
    const Expression low = context.mod(context.mod(e, a * b), b);
    const Expression digits =
        context.add(context.multiply(context.mod(context.floor_div(e, b), a), b), context.mod(e, b));
    for (std::int64_t i = 0; i < extent; ++i) {
      const std::int64_t value = factor * i + offset;
      const std::int64_t wanted = ((value % (a * b)) + a * b) % (a * b);
      RC_ASSERT(value_at(context, digits, {axis}, {i}) == wanted);
      RC_ASSERT(value_at(context, low, {axis}, {i}) == wanted % b);
      RC_ASSERT(value_at(context, twice, {axis}, {i}) == value_at(context, once, {axis}, {i}));
      RC_ASSERT(value_at(context, once, {axis}, {i}) * a * b + wanted == value);
      RC_ASSERT(value_at(context, context.floor_div(context.mod(e, a * b), b), {axis}, {i}) == wanted / b);
    }
  }));
}

}  // namespace
}  // namespace pallascope::index
