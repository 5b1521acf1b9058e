// Every claim of `access` on random expressions and random chains of views, by enumeration.
#include <array>

#include <gtest/gtest.h>

#include "tests/unit/index/invariants.h"

namespace pallascope::index {
namespace {

using namespace testing;

Array values_of(const Context& context, Expression e, const std::vector<AxisId>& axes, const Shape& extents) {
  Array values{extents, {}};
  for_each_point(extents,
                 [&](const Shape& point) { values.data.push_back(value_at(context, e, axes, point)); });
  return values;
}

/// Sizes whose product is `numel`.
Shape random_factorisation(Random& random, std::int64_t numel) {
  Shape shape;
  while (numel > 1 && shape.size() < 4 && !random.chance(25)) {
    Shape divisors;
    for (std::int64_t d = 1; d <= numel; ++d) {
      if (numel % d == 0) divisors.push_back(d);
    }
    shape.push_back(random.pick(divisors));
    numel /= shape.back();
  }
  shape.push_back(numel);
  return shape;
}

TEST(RandomAccess, ClaimsOfAffineExpressionsHold) {
  Random random(11);
  std::array<int, 9> classes{};
  for (int round = 0; round < 20'000; ++round) {
    Context context;
    Shape extents(static_cast<std::size_t>(random.below(4)));
    for (std::int64_t& extent : extents) extent = random.chance(2) ? 0 : random.between(1, 6);
    const std::vector<AxisId> axes = add_axes(context, extents);
    std::vector<Expression> index;
    Shape strides;
    std::int64_t low = 0, high = 0;
    for (const AxisId axis : axes) {
      const std::int64_t extent = context.axis(axis).extent;
      index.push_back(context.of(axis));
      // Mostly products of extents, so that the classes with a plan are common; sometimes anything.
      std::int64_t stride = random.chance(25) ? random.below(9) : 1;
      for (const std::int64_t other : extents) {
        if (random.chance(40)) stride *= std::max<std::int64_t>(other, 1);
      }
      if (random.chance(15)) stride = -stride;
      strides.push_back(stride);
      if (extent > 0) (stride > 0 ? high : low) += stride * (extent - 1);
    }
    const std::int64_t offset = random.chance(60) ? -low : random.between(-3, 8) - low;
    const Expression e = context.linear(index, strides, offset);
    const std::int64_t most = high - low + offset + 1;
    // Round sizes leave room at the end; sometimes the buffer is too small.
    std::int64_t numel = std::max<std::int64_t>(most + random.between(-1, 2), 1);
    if (random.chance(50)) {
      numel = 1;
      for (const std::int64_t extent : extents)
        numel *= std::max<std::int64_t>(extent, 1) * (random.chance(20) ? 2 : 1);
    }
    const Shape sizes = random_factorisation(random, numel);
    const Access found = access(context, e, axes, sizes, all_steps);
    expect_claims_hold(found, values_of(context, e, axes, extents), product(sizes),
                       context.to_string(e) + " over " + to_text(extents) + " of " + to_text(sizes));
    if (HasFailure()) return;
    ++classes[static_cast<std::size_t>(found.access_class)];
    ASSERT_TRUE(found.affine);
  }
  for (const AccessClass c :
       {AccessClass::contiguous, AccessClass::broadcast, AccessClass::permuted, AccessClass::sliced,
        AccessClass::strided, AccessClass::reversed, AccessClass::overlapping, AccessClass::general}) {
    EXPECT_GT(classes[static_cast<std::size_t>(c)], 20) << access_class_name(c);
  }
}

TEST(RandomAccess, ClaimsOfAnyExpressionHold) {
  Random random(12);
  for (int round = 0; round < 20'000; ++round) {
    Context context;
    Shape extents(static_cast<std::size_t>(random.between(1, 3)));
    for (std::int64_t& extent : extents)
      extent = random.chance(2) ? 0 : random.pick<std::int64_t>({1, 2, 2, 3, 4, 4, 6, 8, 12});
    const std::vector<AxisId> axes = add_axes(context, extents);
    const Expression e =
        build(context, *random_tree(random, extents, static_cast<int>(random.between(1, 4))), axes);
    const Array values = values_of(context, e, axes, extents);
    const std::int64_t most =
        values.data.empty() ? 3 : *std::max_element(values.data.begin(), values.data.end()) + 1;
    const Shape sizes = random_factorisation(random, std::max<std::int64_t>(most + random.between(-1, 3), 1));
    expect_claims_hold(access(context, e, axes, sizes, all_steps), values, product(sizes),
                       context.to_string(e) + " over " + to_text(extents) + " of " + to_text(sizes));
    if (HasFailure()) return;
  }
}

Slice random_slice(Random& random, std::int64_t size) {
  if (size == 0) return {0, 1, 0};
  if (random.chance(50)) return {0, 1, size};
  if (random.chance(15)) return {size - 1, -1, size};
  std::int64_t step = random.chance(60) ? 1 : random.between(2, 3);
  const std::int64_t start = random.below(size);
  if (random.chance(20)) return {start, -step, random.between(1, start / step + 1)};
  return {start, step, random.between(1, (size - 1 - start) / step + 1)};
}

void random_permutation(Random& random, Context& context, View& view) {
  std::vector<int> permutation(view.array.shape.size());
  std::iota(permutation.begin(), permutation.end(), 0);
  for (std::size_t k = permutation.size(); k > 1; --k) {
    std::swap(permutation[k - 1],
              permutation[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(k)))]);
  }
  permute(context, view, permutation);
}

/// One random operation on a view: permute, slice (with flips and selections), merge or split, unsqueeze and expand,
/// or any reshape.
void random_operation(Random& random, Context& context, View& view) {
  const Shape& shape = view.array.shape;
  switch (random.below(5)) {
    case 0:
      random_permutation(random, context, view);
      break;
    case 1: {
      std::vector<Slice> slices;
      for (const std::int64_t size : shape) slices.push_back(random_slice(random, size));
      slice(context, view, slices);
      break;
    }
    case 2: {  // merge two neighbours, or split one
      Shape next = shape;
      if (next.size() > 1 && random.chance(50)) {
        const auto k = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(next.size()) - 1));
        next[k] *= next[k + 1];
        next.erase(next.begin() + static_cast<std::ptrdiff_t>(k) + 1);
      } else if (!next.empty()) {
        const auto k = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(next.size())));
        const Shape parts = random_factorisation(random, std::max<std::int64_t>(next[k], 1));
        if (next[k] > 0) {
          next.erase(next.begin() + static_cast<std::ptrdiff_t>(k));
          next.insert(next.begin() + static_cast<std::ptrdiff_t>(k), parts.begin(), parts.end());
        }
      }
      if (next.size() <= 5) reshape(context, view, next);
      break;
    }
    case 3: {  // unsqueeze, then expand it
      Shape next = shape;
      if (next.size() > 3 || product(shape) > 400) return;
      const auto k = static_cast<std::ptrdiff_t>(random.below(static_cast<std::int64_t>(next.size()) + 1));
      next.insert(next.begin() + k, 1);
      reshape(context, view, next);
      if (random.chance(50)) {
        next[static_cast<std::size_t>(k)] = random.between(1, 4);
        expand(context, view, next);
      }
      break;
    }
    default: {
      const std::int64_t numel = product(shape);
      if (numel > 0) reshape(context, view, random_factorisation(random, numel));
      break;
    }
  }
}

/// A random buffer of few dimensions with equal, square and unit sizes among them.
Shape random_sizes(Random& random) {
  Shape sizes(static_cast<std::size_t>(random.between(1, 4)));
  for (std::int64_t& size : sizes) size = random.pick<std::int64_t>({1, 2, 2, 3, 4, 4, 5, 6, 8});
  if (random.chance(3)) sizes[0] = 0;
  return sizes;
}

/// Whether the view has strides of its own, so that PyTorch would not copy: values are constant + sum of stride * axis.
bool has_strides(const Array& array) {
  const std::int64_t origin = array.data.empty() ? 0 : array.data[0];
  Shape strides;
  for (std::size_t k = 0; k < array.shape.size(); ++k) {
    Shape point(array.shape.size(), 0);
    point[k] = 1;
    strides.push_back(array.shape[k] > 1 ? array.at(point) - origin : 0);
  }
  bool same = true;
  for_each_point(array.shape, [&](const Shape& point) {
    same = same && array.at(point) == std::inner_product(point.begin(), point.end(), strides.begin(), origin);
  });
  return same;
}

/// The shares are properties of the test, and printed with --gtest_output. At the time of writing, of 20,000 chains
/// 17,483 have strides of their own: all of these are affine, and 17,478 have a plan. The rest are slices of slices
/// with a reshape between them, where no view of the whole buffer has the strides.
TEST(RandomAccess, ChainsOfViewsAreClassifiedAndPlanned) {
  Random random(13);
  int chains = 0, planned = 0, plain_planned = 0, strided = 0, strided_affine = 0, strided_planned = 0;
  for (int round = 0; round < 20'000; ++round) {
    Context context;
    View view = whole_buffer(context, random_sizes(random));
    const std::int64_t numel = product(view.buffer_sizes);
    for (std::int64_t n = random.between(1, 5); n > 0; --n) random_operation(random, context, view);
    const std::string where =
        to_text(view.buffer_sizes) + view.history + " reads " + context.to_string(view.index);
    const Array& array = view.array;
    for_each_point(array.shape, [&](const Shape& point) {
      ASSERT_EQ(value_at(context, view.index, view.axes, point), array.at(point)) << where;
    });
    if (HasFatalFailure()) return;
    const Access found = access(context, view.index, view.axes, view.buffer_sizes, all_steps);
    expect_claims_hold(found, array, numel, where);
    EXPECT_TRUE(found.in_bounds) << where;
    const Access plain = access(context, view.index, view.axes, view.buffer_sizes);
    expect_claims_hold(plain, array, numel, where);
    if (found.plan && found.plan->split_shape.empty() && found.plan->expand_shape.empty()) {
      EXPECT_EQ(plain.plan, found.plan) << where;
    } else {
      EXPECT_FALSE(plain.plan) << where;
    }
    if (HasFailure()) return;
    ++chains;
    planned += found.plan ? 1 : 0;
    plain_planned += plain.plan ? 1 : 0;
    if (product(array.shape) > 0 && has_strides(array)) {
      ++strided;
      strided_affine += found.affine ? 1 : 0;
      strided_planned += found.plan ? 1 : 0;
    }
  }
  RecordProperty("chains", chains);
  RecordProperty("chains_planned", planned);
  RecordProperty("chains_planned_without_rare_steps", plain_planned);
  RecordProperty("strided", strided);
  RecordProperty("strided_affine", strided_affine);
  RecordProperty("strided_planned", strided_planned);
  EXPECT_GE(planned * 1000, chains * 990);
  EXPECT_GE(strided_affine * 1000, strided * 999);
  EXPECT_GE(strided_planned * 1000, strided * 999);
}

/// Without slices a view of the whole buffer has every stride, and neighbours can always be merged: permute, reshape by
/// merging or splitting dimensions, and expand.
TEST(RandomAccess, PermutationsAndSplitsAlwaysHaveAPlan) {
  Random random(14);
  for (int round = 0; round < 10'000; ++round) {
    Context context;
    View view = whole_buffer(context, random_sizes(random));
    const std::int64_t numel = product(view.buffer_sizes);
    random_permutation(random, context, view);
    if (numel > 0) reshape(context, view, random_factorisation(random, numel));
    const std::string where =
        to_text(view.buffer_sizes) + view.history + " reads " + context.to_string(view.index);
    const Access found = access(context, view.index, view.axes, view.buffer_sizes, all_steps);
    ASSERT_TRUE(found.plan) << where << ": " << found.words;
    ASSERT_TRUE(found.injective && found.in_bounds) << where;
    expect_claims_hold(found, view.array, numel, where);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace pallascope::index
