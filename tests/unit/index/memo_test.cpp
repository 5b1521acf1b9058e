// AccessMemo: what it remembers is what `access` finds, for every question that shares its memory.
#include <gtest/gtest.h>

#include "tests/unit/index/invariants.h"

namespace pallascope::index {
namespace {

using namespace testing;

void expect_same(const Access& a, const Access& b, const std::string& what) {
  EXPECT_EQ(a.access_class, b.access_class) << what;
  EXPECT_EQ(a.plan, b.plan) << what;
  EXPECT_EQ(a.axis_strides, b.axis_strides) << what;
  EXPECT_EQ(a.affine, b.affine) << what;
  EXPECT_EQ(a.offset, b.offset) << what;
  EXPECT_EQ(a.bounds, b.bounds) << what;
  EXPECT_EQ(a.in_bounds, b.in_bounds) << what;
  EXPECT_EQ(a.injective, b.injective) << what;
  EXPECT_EQ(a.distinct_elements, b.distinct_elements) << what;
  EXPECT_EQ(a.distinct_exact, b.distinct_exact) << what;
  EXPECT_EQ(a.words, b.words) << what;
}

TEST(AccessMemo, AnswersAsAccessDoes) {
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    Context context;
    AccessMemo memo;
    int shared = 0;
    const Shape extents = {random.between(1, 3), random.between(1, 3), random.between(1, 4)};
    for (int question = 0; question < 40; ++question) {
      // New axes each time, of few extents and few expressions: most questions were asked before in other axes.
      const std::vector<AxisId> axes = add_axes(context, extents);
      Random choice(static_cast<std::uint64_t>(random.below(6)) + 1);
      const Expression e = build(context, *random_tree(choice, extents, 3), axes);
      const Shape sizes = {random.between(1, 3), 8};
      const auto found = memo.of(context, e, axes, sizes);
      expect_same(*found, access(context, e, axes, sizes), context.to_string(e) + " of " + to_text(sizes));
      if (memo.of(context, e, axes, sizes) == found) ++shared;
      if (HasFailure()) return;
    }
    ASSERT_EQ(shared, 40);
  }
}

TEST(AccessMemo, RemembersWhatOtherAxesOfTheSameNamesAsked) {
  Context context;
  AccessMemo memo;
  const auto ask = [&](const char* outer) {
    const std::vector<AxisId> axes = {context.add_axis(outer, 4), context.add_axis("j", 3)};
    const Expression e = context.linear(std::vector<Expression>{context.of(axes[0]), context.of(axes[1])},
                                        std::vector<std::int64_t>{3, 1});
    return memo.of(context, e, axes, {4, 3});
  };
  const auto first = ask("i");
  EXPECT_EQ(ask("i"), first);
  EXPECT_NE(ask("k"), first) << "the words of an access name its axes";
}

TEST(AccessMemo, ASymbolIsNeverShared) {
  Context context;
  AccessMemo memo;
  const auto ask = [&](const char* name) {
    const std::vector<AxisId> axes = {context.add_axis("i", 4)};
    Symbol symbol;
    symbol.name = name;
    symbol.low = 0;
    symbol.high = 3;
    return memo.of(context, context.of(context.add_symbol(symbol)), axes, {4});
  };
  EXPECT_EQ(ask("a")->words, "gather: the element is given by the value of a");
  EXPECT_EQ(ask("b")->words, "gather: the element is given by the value of b");
}

}  // namespace
}  // namespace pallascope::index
