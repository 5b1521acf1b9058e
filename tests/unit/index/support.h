// What the tests of the index room share: a seeded generator, a reference evaluation that knows no simplification, an
// array with the operations of a plan, and views of it built next to their index expressions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/index/access.h"
#include "core/index/expression.h"

namespace pallascope::index::testing {

using Shape = std::vector<std::int64_t>;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  /// 0 <= result < n.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n));
  }
  /// low <= result <= high.
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<std::int64_t>(from.size())))];
  }

 private:
  std::mt19937_64 engine_;
};

inline std::int64_t product(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

inline Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t k = shape.size(); k-- > 1;) strides[k - 1] = strides[k] * shape[k];
  return strides;
}

/// Calls f(point) for each point of the box, in row-major order.
template <class F>
void for_each_point(const Shape& extents, F f) {
  const std::int64_t points = product(extents);
  Shape point(extents.size(), 0);
  for (std::int64_t n = 0; n < points; ++n) {
    f(point);
    for (std::size_t k = extents.size(); k-- > 0;) {
      if (++point[k] < extents[k]) break;
      point[k] = 0;
    }
  }
}

/// Axes named i, j, k, ... with these extents.
inline std::vector<AxisId> add_axes(Context& context, const Shape& extents) {
  std::vector<AxisId> axes;
  for (std::size_t k = 0; k < extents.size(); ++k) {
    axes.push_back(
        context.add_axis(std::string(1, static_cast<char>('i' + static_cast<char>(k))), extents[k]));
  }
  return axes;
}

/// The value of an expression of `axes` at `point`.
inline std::int64_t value_at(const Context& context, Expression e, const std::vector<AxisId>& axes,
                             const Shape& point) {
  return context.evaluate(e, [&](AxisId axis) {
    const auto place = std::find(axes.begin(), axes.end(), axis);
    if (place == axes.end()) throw std::logic_error("an axis that was not given");
    return point[static_cast<std::size_t>(place - axes.begin())];
  });
}

/// A tree that is evaluated as it was written.
struct Tree {
  enum class Kind { constant, axis, add, subtract, multiply, floor_div, mod };
  Kind kind = Kind::constant;
  std::int64_t value = 0;  ///< the constant, factor or divisor
  std::size_t axis = 0;
  std::unique_ptr<Tree> left, right;

  [[nodiscard]] std::int64_t at(const Shape& point) const {
    switch (kind) {
      case Kind::constant:
        return value;
      case Kind::axis:
        return point[axis];
      case Kind::add:
        return left->at(point) + right->at(point);
      case Kind::subtract:
        return left->at(point) - right->at(point);
      case Kind::multiply:
        return left->at(point) * value;
      case Kind::floor_div:
        return floored(left->at(point));
      case Kind::mod:
        return left->at(point) - value * floored(left->at(point));
    }
    return 0;
  }

 private:
  [[nodiscard]] std::int64_t floored(std::int64_t a) const {
    std::int64_t q = a / value;
    while (q * value > a) --q;
    return q;
  }
};

inline std::unique_ptr<Tree> leaf(Tree::Kind kind, std::int64_t value, std::size_t axis) {
  auto tree = std::make_unique<Tree>();
  tree->kind = kind;
  tree->value = value;
  tree->axis = axis;
  return tree;
}

/// A random tree over axes of these extents, `depth` operators deep at most. Its factors and divisors like the
/// extents and their products, as the indices of views do.
inline std::unique_ptr<Tree> random_tree(Random& random, const Shape& extents, int depth) {
  using Kind = Tree::Kind;
  if (depth == 0 || random.chance(10)) {
    if (extents.empty() || random.chance(15)) return leaf(Kind::constant, random.between(-9, 9), 0);
    return leaf(Kind::axis, 0,
                static_cast<std::size_t>(random.below(static_cast<std::int64_t>(extents.size()))));
  }
  const auto size = [&] {
    std::int64_t n = random.between(1, 8);
    if (!extents.empty() && random.chance(60)) n = std::max<std::int64_t>(random.pick(extents), 1);
    if (!extents.empty() && random.chance(30)) n *= std::max<std::int64_t>(random.pick(extents), 1);
    return n;
  };
  auto tree = std::make_unique<Tree>();
  tree->left = random_tree(random, extents, depth - 1);
  const std::int64_t which = random.below(10);
  if (which < 4) {
    tree->kind = which < 3 ? Kind::add : Kind::subtract;
    tree->right = random_tree(random, extents, depth - 1);
  } else if (which < 6) {
    tree->kind = Kind::multiply;
    tree->value = random.chance(25) ? -size() : size();
  } else {
    tree->kind = which < 8 ? Kind::floor_div : Kind::mod;
    tree->value = size();
  }
  return tree;
}

inline Expression build(Context& context, const Tree& tree, const std::vector<AxisId>& axes) {
  using Kind = Tree::Kind;
  switch (tree.kind) {
    case Kind::constant:
      return context.constant(tree.value);
    case Kind::axis:
      return context.of(axes[tree.axis]);
    case Kind::add:
      return context.add(build(context, *tree.left, axes), build(context, *tree.right, axes));
    case Kind::subtract:
      return context.subtract(build(context, *tree.left, axes), build(context, *tree.right, axes));
    case Kind::multiply:
      return context.multiply(build(context, *tree.left, axes), tree.value);
    case Kind::floor_div:
      return context.floor_div(build(context, *tree.left, axes), tree.value);
    case Kind::mod:
      return context.mod(build(context, *tree.left, axes), tree.value);
  }
  return {};
}

/// A small array in row-major order, with the operations of NumPy that the tests need.
struct Array {
  Shape shape;
  std::vector<std::int64_t> data;

  [[nodiscard]] std::int64_t at(const Shape& point) const {
    const Shape strides = row_major_strides(shape);
    return data.at(static_cast<std::size_t>(
        std::inner_product(point.begin(), point.end(), strides.begin(), std::int64_t{0})));
  }
  /// The array of `new_shape` whose element at a point is this one's at source(point).
  template <class F>
  [[nodiscard]] Array pick(const Shape& new_shape, F source) const {
    Array result{new_shape, {}};
    for_each_point(new_shape, [&](const Shape& point) { result.data.push_back(at(source(point))); });
    return result;
  }
  [[nodiscard]] Array reshape(const Shape& new_shape) const {
    if (product(new_shape) != product(shape)) throw std::logic_error("reshape to another number of elements");
    return {new_shape, data};
  }
  [[nodiscard]] Array transpose(const std::vector<int>& permutation) const {
    if (permutation.size() != shape.size())
      throw std::logic_error("transpose by a permutation of another rank");
    Shape new_shape;
    for (const int k : permutation) new_shape.push_back(shape.at(static_cast<std::size_t>(k)));
    return pick(new_shape, [&](const Shape& point) {
      Shape source(point.size());
      for (std::size_t k = 0; k < point.size(); ++k)
        source[static_cast<std::size_t>(permutation[k])] = point[k];
      return source;
    });
  }
  [[nodiscard]] Array slice(const std::vector<Slice>& slices) const {
    if (slices.size() != shape.size()) throw std::logic_error("one slice a dimension");
    Shape new_shape;
    for (std::size_t k = 0; k < slices.size(); ++k) {
      const Slice& s = slices[k];
      const std::int64_t last = s.start + s.step * (s.count - 1);
      if (s.step == 0 || s.count < 0) throw std::logic_error("a slice without a direction");
      if (s.count > 0 && (std::min(s.start, last) < 0 || std::max(s.start, last) >= shape[k])) {
        throw std::logic_error("a slice outside of its dimension");
      }
      new_shape.push_back(s.count);
    }
    return pick(new_shape, [&](Shape point) {
      for (std::size_t k = 0; k < point.size(); ++k) point[k] = slices[k].start + slices[k].step * point[k];
      return point;
    });
  }
  [[nodiscard]] Array broadcast(const Shape& new_shape) const {
    if (new_shape.size() != shape.size()) throw std::logic_error("broadcast to another rank");
    for (std::size_t k = 0; k < shape.size(); ++k) {
      if (shape[k] != new_shape[k] && shape[k] != 1)
        throw std::logic_error("broadcast of a dimension that is not 1");
    }
    return pick(new_shape, [&](Shape point) {
      for (std::size_t k = 0; k < point.size(); ++k) point[k] = shape[k] == 1 ? 0 : point[k];
      return point;
    });
  }
};

inline Array iota(const Shape& shape) {
  Array array{shape, std::vector<std::int64_t>(static_cast<std::size_t>(product(shape)))};
  std::iota(array.data.begin(), array.data.end(), std::int64_t{0});
  return array;
}

/// Runs the steps of a plan on a buffer that holds its own element numbers.
inline Array run_plan(const Plan& plan, std::int64_t numel) {
  Array array = iota({numel}).reshape(plan.view_shape).slice(plan.slices);
  if (!plan.split_shape.empty()) array = array.reshape(plan.split_shape);
  array = array.transpose(plan.permutation);
  if (array.shape != plan.shape_before_result() && plan.expand_shape.empty())
    throw std::logic_error("shape_before_result");
  if (!plan.expand_shape.empty()) array = array.broadcast(plan.expand_shape);
  return array.reshape(plan.result_shape);
}

/// A view: the elements that it shows, and the index expression of its axes.
struct View {
  Array array;
  std::vector<AxisId> axes;
  Expression index;
  Shape buffer_sizes;
  std::string history;
};

inline View whole_buffer(Context& context, const Shape& sizes) {
  View view;
  view.array = iota(sizes);
  view.buffer_sizes = sizes;
  view.axes = add_axes(context, sizes);
  std::vector<Expression> index;
  for (const AxisId axis : view.axes) index.push_back(context.of(axis));
  view.index = context.linear(index, row_major_strides(sizes));
  return view;
}

inline std::string to_text(const Shape& shape) {
  std::string text = "(";
  for (const std::int64_t n : shape) text += std::to_string(n) + ",";
  return text + ")";
}

/// `view` seen through new axes of `shape`: old axis k is source(new axes)[k].
template <class F>
void through(Context& context, View& view, const Shape& shape, F source) {
  const std::vector<AxisId> axes = add_axes(context, shape);
  std::vector<Expression> index;
  for (const AxisId axis : axes) index.push_back(context.of(axis));
  const std::vector<Expression> old = source(index);
  std::map<AxisId, Expression> replacements;
  for (std::size_t k = 0; k < view.axes.size(); ++k) replacements[view.axes[k]] = old[k];
  view.index = context.substitute(view.index, replacements);
  view.axes = axes;
}

inline void permute(Context& context, View& view, const std::vector<int>& permutation) {
  view.array = view.array.transpose(permutation);
  view.history += " permute" + to_text(Shape(permutation.begin(), permutation.end()));
  through(context, view, view.array.shape, [&](const std::vector<Expression>& index) {
    std::vector<Expression> old(index.size());
    for (std::size_t k = 0; k < index.size(); ++k) old[static_cast<std::size_t>(permutation[k])] = index[k];
    return old;
  });
}

inline void reshape(Context& context, View& view, const Shape& shape) {
  const Shape from = view.array.shape;
  view.array = view.array.reshape(shape);
  view.history += " reshape" + to_text(shape);
  through(context, view, shape, [&](const std::vector<Expression>& index) {
    const Expression flat = context.linear(index, row_major_strides(shape));
    const Shape strides = row_major_strides(from);
    std::vector<Expression> old;
    for (std::size_t k = 0; k < from.size(); ++k) {
      if (from[k] == 0 || strides[k] == 0) {
        old.push_back(context.constant(0));
      } else {
        old.push_back(context.mod(context.floor_div(flat, strides[k]), from[k]));
      }
    }
    return old;
  });
}

/// Slices with steps of either sign: narrow, step, flip and select with the dimension kept.
inline void slice(Context& context, View& view, const std::vector<Slice>& slices) {
  view.array = view.array.slice(slices);
  view.history += " slice";
  for (const Slice& s : slices) view.history += to_text({s.start, s.step, s.count});
  through(context, view, view.array.shape, [&](const std::vector<Expression>& index) {
    std::vector<Expression> old;
    for (std::size_t k = 0; k < index.size(); ++k) {
      old.push_back(
          context.add(context.multiply(index[k], slices[k].step), context.constant(slices[k].start)));
    }
    return old;
  });
}

/// Dimensions of 1 become those of `shape`.
inline void expand(Context& context, View& view, const Shape& shape) {
  const Shape from = view.array.shape;
  view.array = view.array.broadcast(shape);
  view.history += " expand" + to_text(shape);
  through(context, view, shape, [&](const std::vector<Expression>& index) {
    std::vector<Expression> old;
    for (std::size_t k = 0; k < from.size(); ++k)
      old.push_back(from[k] == 1 ? context.constant(0) : index[k]);
    return old;
  });
}

/// Every step of a plan.
constexpr AccessOptions all_steps{.split_slices = true, .expand_within_axes = true};

/// What the plan reads at each point of the axes; throws if its result has a dimension that does not broadcast.
inline Array read_over_axes(const Plan& plan, std::int64_t numel, const Shape& extents) {
  return run_plan(plan, numel).broadcast(extents);
}

}  // namespace pallascope::index::testing
