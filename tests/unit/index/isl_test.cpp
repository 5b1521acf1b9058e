// A second oracle for constant sizes: isl decides bounds, number of elements and injectivity of the same index map.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <isl/ctx.h>
#include <isl/map.h>
#include <isl/options.h>
#include <isl/point.h>
#include <isl/set.h>
#include <isl/val.h>

#include "tests/unit/index/support.h"

namespace pallascope::index {
namespace {

using namespace testing;

struct Verdict {
  Range bounds;
  std::int64_t distinct = 0;
  bool injective = false;
};

std::int64_t take_integer(isl_val* value) {
  const std::int64_t result = isl_val_get_num_si(value);
  isl_val_free(value);
  return result;
}

/// The only coordinate of a set of one point.
std::int64_t take_point(isl_set* set) {
  isl_point* point = isl_set_sample_point(set);
  const std::int64_t result = take_integer(isl_point_get_coordinate_val(point, isl_dim_set, 0));
  isl_point_free(point);
  return result;
}

class Isl {
 public:
  Isl() : context_(isl_ctx_alloc()) { isl_options_set_on_error(context_, ISL_ON_ERROR_ABORT); }
  ~Isl() { isl_ctx_free(context_); }
  Isl(const Isl&) = delete;
  Isl& operator=(const Isl&) = delete;

  /// What isl says of `[i, j, ...] -> [expression]` over the box of `extents`.
  Verdict judge(const std::string& expression, const Shape& extents) {
    std::string names, box;
    for (std::size_t k = 0; k < extents.size(); ++k) {
      const std::string name(1, static_cast<char>('i' + static_cast<char>(k)));
      names += (k == 0 ? "" : ",") + name;
      box += (k == 0 ? " : " : " and ") + ("0 <= " + name) + " < " + std::to_string(extents[k]);
    }
    isl_map* map =
        isl_map_read_from_str(context_, ("{ [" + names + "] -> [" + expression + "]" + box + " }").c_str());
    Verdict verdict;
    verdict.injective = isl_map_is_injective(map) == isl_bool_true;
    isl_set* range = isl_map_range(map);
    verdict.distinct = take_integer(isl_set_count_val(range));
    verdict.bounds = {take_point(isl_set_lexmin(isl_set_copy(range))),
                      take_point(isl_set_lexmax(isl_set_copy(range)))};
    isl_set_free(range);
    return verdict;
  }

 private:
  isl_ctx* context_;
};

/// The tree as it was written, in isl's notation.
std::string isl_text(const Tree& tree) {
  using Kind = Tree::Kind;
  const std::string value = std::to_string(tree.value);
  switch (tree.kind) {
    case Kind::constant:
      return "(" + value + ")";
    case Kind::axis:
      return std::string(1, static_cast<char>('i' + static_cast<char>(tree.axis)));
    case Kind::add:
      return "(" + isl_text(*tree.left) + " + " + isl_text(*tree.right) + ")";
    case Kind::subtract:
      return "(" + isl_text(*tree.left) + " - " + isl_text(*tree.right) + ")";
    case Kind::multiply:
      return "(" + value + " * " + isl_text(*tree.left) + ")";
    case Kind::floor_div:
      return "floor(" + isl_text(*tree.left) + "/" + value + ")";
    case Kind::mod:
      return "(" + isl_text(*tree.left) + " mod " + value + ")";
  }
  return {};
}

TEST(Isl, AgreesOnBoundsCountAndInjectivity) {
  Isl isl;
  Random random(21);
  int resolved = 0, rounds = 0;
  for (int round = 0; round < 1'500; ++round) {
    Context context;
    Shape extents(static_cast<std::size_t>(random.between(1, 3)));
    for (std::int64_t& extent : extents) extent = random.pick<std::int64_t>({1, 2, 3, 4, 4, 6, 8, 12});
    const std::vector<AxisId> axes = add_axes(context, extents);
    const auto tree = random_tree(random, extents, static_cast<int>(random.between(1, 3)));
    const Expression e = build(context, *tree, axes);
    const Verdict verdict = isl.judge(isl_text(*tree), extents);
    const std::int64_t numel = std::max<std::int64_t>(verdict.bounds.high + 1, 1);
    const Access found = access(context, e, axes, {numel});
    SCOPED_TRACE(isl_text(*tree) + " over " + to_text(extents) + ", " + found.words);
    ++rounds;
    EXPECT_LE(found.bounds.low, verdict.bounds.low);
    EXPECT_GE(found.bounds.high, verdict.bounds.high);
    EXPECT_GE(found.distinct_elements, verdict.distinct);
    if (found.distinct_exact) {
      ++resolved;
      EXPECT_EQ(found.bounds, verdict.bounds);
      EXPECT_EQ(found.distinct_elements, verdict.distinct);
      EXPECT_EQ(found.injective, verdict.injective);
      EXPECT_EQ(found.in_bounds, verdict.bounds.low >= 0);
    } else {
      EXPECT_FALSE(found.injective);
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(resolved, rounds);  // boxes this small are always decided
}

/// Sizes that enumeration would not reach: isl works on the constraints, we on the strides.
TEST(Isl, AgreesOnLargeBoxesOfStrides) {
  Isl isl;
  Random random(22);
  for (int round = 0; round < 400; ++round) {
    Context context;
    const Shape extents{random.between(2, 2000), random.between(2, 2000)};
    const std::vector<AxisId> axes = add_axes(context, extents);
    const Shape strides{random.chance(30) ? extents[1] : random.between(1, 3000), random.between(1, 40)};
    const std::vector<Expression> index{context.of(axes[0]), context.of(axes[1])};
    const Expression e = context.linear(index, strides, 5);
    const std::int64_t high = 5 + strides[0] * (extents[0] - 1) + strides[1] * (extents[1] - 1);
    const Access found = access(context, e, axes, {high + 1});
    SCOPED_TRACE(context.to_string(e) + " over " + to_text(extents) + ", " + found.words);
    EXPECT_TRUE(found.distinct_exact && found.in_bounds);
    EXPECT_EQ(found.bounds, (Range{5, high}));
    const std::string text = std::to_string(strides[0]) + "*i + " + std::to_string(strides[1]) + "*j + 5";
    const Verdict verdict = isl.judge(text, extents);
    EXPECT_EQ(found.injective, verdict.injective);
    EXPECT_EQ(found.bounds, verdict.bounds);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace pallascope::index
