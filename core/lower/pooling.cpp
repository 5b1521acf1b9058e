// Family: pooling. A window of few elements is unrolled: each of its elements is a strided slice of the (padded)
// tensor. A larger one is reduced, or pooled dimension by dimension.
#include <algorithm>
#include <limits>
#include <numeric>

#include "core/lower/builder.h"
#include "core/lower/regions.h"
#include "core/lower/windows.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;
using loop::ReduceOp;

constexpr std::int64_t kUnrolled = 25;      ///< taps of a window that are written out
constexpr std::int64_t kUnrolledLine = 32;  ///< the same along a single dimension

/// The least value of a dtype, which wins no comparison.
loop::Scalar lowest(DType d) {
  switch (d) {
    case DType::u8:
    case DType::b8: return std::int64_t{0};
    case DType::i8: return std::int64_t{std::numeric_limits<std::int8_t>::min()};
    case DType::i16: return std::int64_t{std::numeric_limits<std::int16_t>::min()};
    case DType::i32: return std::int64_t{std::numeric_limits<std::int32_t>::min()};
    case DType::i64: return std::numeric_limits<std::int64_t>::min();
    default: return -std::numeric_limits<double>::infinity();
  }
}

bool tile(const std::vector<Window>& windows) {
  return std::all_of(windows.begin(), windows.end(), [](const Window& w) { return w.tiles(); });
}

bool whole_axes(const std::vector<Window>& windows) {
  return tile(windows) && std::all_of(windows.begin(), windows.end(), [](const Window& w) { return w.out == 1; });
}

/// `x` with the elements that windows reach beyond its ends, so that window o starts at o*stride.
Tensor with_edges(Builder& builder, const std::string& name, const Tensor& x, const std::vector<Window>& windows,
                  const loop::Scalar& value, const std::vector<std::size_t>& order) {
  Sizes before(x.sizes.size(), 0), sizes = x.sizes;
  bool needed = false;
  for (const Window& w : windows) {
    needed = needed || !w.inside();
    before[w.dim] = w.before;
    sizes[w.dim] = std::max(w.extent(), w.before + w.in);
  }
  return needed ? padded(builder, name, x, before, sizes, value, order) : x;
}

Sizes pooled_sizes(Sizes sizes, const std::vector<Window>& windows) {
  for (const Window& w : windows) sizes[w.dim] = w.out;
  return sizes;
}

/// The windows' steps: all at once where few elements are written out or nothing overlaps, else a dimension at a time.
std::vector<std::vector<Window>> steps_of(const std::vector<Window>& windows) {
  if (taps_of(windows) <= kUnrolled || tile(windows)) return {windows};
  std::vector<std::vector<Window>> steps;
  for (std::size_t k = windows.size(); k-- > 0;)
    if (windows[k].size > 1 || windows[k].stride > 1 || !windows[k].inside() || windows[k].in != windows[k].out)
      steps.push_back({windows[k]});
  return steps;
}

bool unrolls(const std::vector<Window>& windows) {
  const std::int64_t most = windows.size() == 1 ? kUnrolledLine : kUnrolled;
  return taps_of(windows) <= most && !whole_axes(windows);
}

/// Positions of the source (which with_edges made) for the windows of `base`; tap k is `tap[k]`.
Index tap_position(index::Context& context, const Index& base, const std::vector<Window>& windows,
                   const std::vector<index::Expression>& tap) {
  Index position(base.begin(), base.end());
  for (std::size_t k = 0; k < windows.size(); ++k)
    position[windows[k].dim] = context.add(context.multiply(base[windows[k].dim], windows[k].stride),
                                           context.multiply(tap[k], windows[k].dilation));
  return position;
}

/// Pools one step: `value` of each tap, joined by `join` or reduced by `op`, and `after` of the result.
struct Step {
  std::function<int(NestBuilder&, const Index&)> value;
  std::function<int(NestBuilder&, int, int)> join;
  ReduceOp op;
  DType c;
  std::function<int(NestBuilder&, int, const Index&)> after;
};

Tensor pool_step(Builder& builder, const std::string& name, const Sizes& source, const std::vector<Window>& windows, DType result,
                 const std::vector<std::size_t>& order, const Step& step) {
  const Sizes sizes = pooled_sizes(source, windows);
  const Canvas canvas = blank(builder, result, sizes, order);
  const bool unrolled = unrolls(windows);
  Sizes reduced;
  if (!unrolled)
    for (const Window& w : windows) reduced.push_back(w.size);
  fill(
      builder, name, canvas, whole(sizes),
      [&](NestBuilder& nest, const Index& base) {
        index::Context& context = builder.context();
        int total = -1;
        if (unrolled) {
          for_each_tap(windows, [&](const Sizes& tap) {
            std::vector<index::Expression> at;
            for (std::int64_t t : tap) at.push_back(context.constant(t));
            const int value = step.value(nest, tap_position(context, base, windows, at));
            total = total < 0 ? value : step.join(nest, total, value);
          });
        } else {
          std::vector<index::Expression> at;
          for (std::size_t k = 0; k < windows.size(); ++k) at.push_back(nest.index(sizes.size() + k));
          total = nest.reduce(step.op, step.value(nest, tap_position(context, base, windows, at)), step.c);
        }
        return step.after ? step.after(nest, total, base) : total;
      },
      reduced);
  return canvas.tensor;
}

// ------------------------------------------------------------------------------------------------- averages

Tensor average_windows(Call& call, const Tensor& x, const std::vector<Window>& windows, const Divisor& divisor) {
  Builder& builder = call.builder;
  const trace::TensorMeta& meta = call.meta();
  const DType c = compute_dtype(meta.dtype);
  const std::vector<std::size_t> order = memory_order(meta);
  Tensor sum = x;
  std::vector<std::vector<Window>> steps = steps_of(windows);
  if (steps.empty()) steps.push_back(windows);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const Tensor source = with_edges(builder, call.node.name, sum, steps[s], to_scalar(0, sum.dtype), order);
    Step step;
    step.value = [&](NestBuilder& nest, const Index& at) { return nest.cast(nest.load_at(source, at), c); };
    step.join = [](NestBuilder& nest, int a, int b) { return nest.add(a, b); };
    step.op = ReduceOp::sum;
    step.c = c;
    const bool last = s + 1 == steps.size();
    if (last)
      step.after = [&](NestBuilder& nest, int total, const Index& base) {
        Index at;
        for (const Window& w : windows) at.push_back(base[w.dim]);
        return divided(nest, total, divisor_value(nest, builder, windows, at, divisor, c));
      };
    sum = pool_step(builder, call.node.name, sum.sizes, steps[s], last ? meta.dtype : c, order, step);
  }
  return sum;
}

bool poolable(const Call& call, const Tensor& x) { return is_kernel_dtype(x.dtype) && !is_bool(x.dtype) && x.dtype == call.meta().dtype; }

template <int n>
Lowered avg_pool(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!poolable(call, x)) return declined_dtype();
  const Sizes kernel = per_dimension(call, 1, "kernel_size", n, Sizes(n, 1));
  const std::vector<Window> windows =
      windows_over(x.sizes, call.meta().sizes, kernel, per_dimension(call, 2, "stride", n, kernel),
                   per_dimension(call, 3, "padding", n, Sizes(n, 0)), Sizes(n, 1));
  Divisor divisor;
  divisor.with_padding = call.boolean(5, "count_include_pad", true);
  if (n > 1 && call.has(6, "divisor_override")) divisor.fixed = call.integer(6, "divisor_override");
  call.define(average_windows(call, x, windows, divisor));
  return as_kernel();
}

// -------------------------------------------------------------------------------------------------- maxima

/// Values and where they are, as numbers row-major over the pooled dimensions; the positions are absent where unused.
struct Maxima {
  Tensor values;
  std::optional<Tensor> positions;
};

/// Whether `value` takes the place of `best`: greater, or not a number.
int beats(NestBuilder& nest, int value, int best) {
  const int greater = nest.compare(ComputeOp::gt, value, best);
  if (!is_float(nest.dtype(value))) return greater;
  return nest.compare(ComputeOp::logical_or, greater, nest.compute(ComputeOp::isnan, DType::b8, {value}));
}

/// The position of the maximum `m` of a reduced `value` whose position is `at`: the first that equals it, the last NaN
/// if it is none. `valid` (if not -1) says which values exist.
int position_of(NestBuilder& nest, int value, int m, int at, int valid) {
  int hit = nest.compare(ComputeOp::eq, value, m);
  if (valid >= 0) hit = nest.compare(ComputeOp::logical_and, hit, valid);
  const int none = nest.constant(std::int64_t{std::numeric_limits<std::int32_t>::max()}, DType::i32);
  const int first = nest.reduce(ReduceOp::min, nest.where(hit, at, none), DType::i32);
  if (!is_float(nest.dtype(value))) return first;
  const int no_number = nest.compute(ComputeOp::isnan, DType::b8, {value});
  const int last = nest.reduce(ReduceOp::max, nest.where(no_number, at, nest.constant(std::int64_t{-1}, DType::i32)), DType::i32);
  return nest.where(nest.compute(ComputeOp::isnan, DType::b8, {m}), last, first);
}

/// Which places of an axis of one of `windows` stand in the padding.
int exists(NestBuilder& nest, const Window& w, int at) {
  int valid = -1;
  if (w.before > 0) valid = nest.compare(ComputeOp::ge, at, nest.constant(std::int64_t{0}, DType::i32));
  if (w.extent() > w.before + w.in) {
    const int below = nest.compare(ComputeOp::lt, at, nest.constant(w.in, DType::i32));
    valid = valid < 0 ? below : nest.compare(ComputeOp::logical_and, valid, below);
  }
  return valid;
}

/// Positions for one step. `before` are the positions that earlier steps found, `stride` what one position along each
/// window's dimension counts in the result's numbers.
Tensor positions_step(Builder& builder, const std::string& name, const Tensor& source, const std::optional<Tensor>& before,
                      const std::vector<Window>& windows, const Sizes& stride, const std::vector<std::size_t>& order) {
  const Sizes sizes = pooled_sizes(source.sizes, windows);
  const Canvas canvas = blank(builder, DType::i32, sizes, order);
  index::Context& context = builder.context();
  const bool unrolled = unrolls(windows);
  // Where an element of `source` lies along window k's dimension of the tensor.
  const auto along = [&](const Index& at, std::size_t k) {
    return context.add(at[windows[k].dim], context.constant(-windows[k].before));
  };
  const auto number = [&](NestBuilder& nest, const Index& at) {
    index::Expression flat = context.constant(0);
    for (std::size_t k = 0; k < windows.size(); ++k) flat = context.add(flat, context.multiply(along(at, k), stride[k]));
    const int here = nest.index_value(flat, DType::i32);
    return before ? nest.add(here, nest.load_at(*before, at)) : here;
  };
  Sizes reduced;
  if (!unrolled)
    for (const Window& w : windows) reduced.push_back(w.size);
  fill(
      builder, name + ".indices", canvas, whole(sizes),
      [&](NestBuilder& nest, const Index& base) {
        std::vector<index::Expression> taps;
        if (!unrolled) {
          for (std::size_t k = 0; k < windows.size(); ++k) taps.push_back(nest.index(sizes.size() + k));
          const Index at = tap_position(context, base, windows, taps);
          const int value = nest.load_at(source, at);
          int valid = -1;
          for (std::size_t k = 0; k < windows.size(); ++k) {
            const int one = exists(nest, windows[k], nest.index_value(along(at, k), DType::i32));
            if (one >= 0) valid = valid < 0 ? one : nest.compare(ComputeOp::logical_and, valid, one);
          }
          return position_of(nest, value, nest.reduce(ReduceOp::max, value, nest.dtype(value)), number(nest, at), valid);
        }
        int best = -1, place = -1;
        for_each_tap(windows, [&](const Sizes& tap) {
          taps.clear();
          for (std::int64_t t : tap) taps.push_back(context.constant(t));
          const Index at = tap_position(context, base, windows, taps);
          const int value = nest.load_at(source, at), here = number(nest, at);
          if (best < 0) {
            best = value;
            place = here;
            return;
          }
          int wins = beats(nest, value, best);
          // Where the window's first elements stand in the padding, the first that exists starts it: it may be as low.
          bool may_start = true;
          for (std::size_t k = 0; k < windows.size(); ++k)
            may_start = may_start && (tap[k] == 0 || (tap[k] - 1) * windows[k].dilation < windows[k].before);
          int starts = -1;
          for (std::size_t k = 0; may_start && k < windows.size(); ++k) {
            const auto require = [&](ComputeOp op, std::int64_t shift) {
              const int place_here = nest.index_value(context.add(along(at, k), context.constant(shift)), DType::i32);
              const int holds = nest.compare(op, place_here, nest.constant(std::int64_t{0}, DType::i32));
              starts = starts < 0 ? holds : nest.compare(ComputeOp::logical_and, starts, holds);
            };
            if (windows[k].before == 0) continue;
            require(ComputeOp::ge, 0);
            if (tap[k] > 0) require(ComputeOp::lt, -windows[k].dilation);
          }
          if (starts >= 0) wins = nest.compare(ComputeOp::logical_or, wins, starts);
          place = nest.where(wins, here, place);
          best = nest.where(wins, value, best);
        });
        return place;
      },
      reduced);
  return canvas.tensor;
}

Maxima maximum_windows(Call& call, const Tensor& x, const std::vector<Window>& windows, bool with_positions) {
  Builder& builder = call.builder;
  const std::vector<std::size_t> order = memory_order(call.meta());
  Sizes strides(windows.size(), 1);
  for (std::size_t k = windows.size(); k-- > 1;) strides[k - 1] = strides[k] * windows[k].in;
  Maxima found{x, std::nullopt};
  std::vector<std::vector<Window>> steps = steps_of(windows);
  if (steps.empty()) steps.push_back(windows);
  for (const std::vector<Window>& step_windows : steps) {
    const Tensor source = with_edges(builder, call.node.name, found.values, step_windows, lowest(x.dtype), order);
    Step step;
    step.value = [&](NestBuilder& nest, const Index& at) { return nest.load_at(source, at); };
    step.join = [](NestBuilder& nest, int a, int b) { return nest.op(ComputeOp::maximum, a, b); };
    step.op = ReduceOp::max;
    step.c = x.dtype;
    if (with_positions) {
      std::optional<Tensor> before = found.positions;
      if (before) *before = with_edges(builder, call.node.name + ".indices", *before, step_windows, std::int64_t{0}, order);
      Sizes stride;
      for (const Window& w : step_windows) stride.push_back(strides[w.dim - windows[0].dim]);
      // The first step passes over the last dimension; what it does not pool is counted by later steps.
      found.positions = positions_step(builder, call.node.name, source, before, step_windows, stride, order);
    }
    found.values = pool_step(builder, call.node.name, found.values.sizes, step_windows, x.dtype, order, step);
  }
  if (with_positions && steps.size() < windows.size() && steps[0].size() == 1) {
    // A dimension that no step pooled counts by its own position.
    std::vector<Window> rest;
    for (const Window& w : windows)
      if (std::none_of(steps.begin(), steps.end(), [&](const auto& s) { return s[0].dim == w.dim; })) rest.push_back(w);
    const Tensor partial = *found.positions;
    const Canvas canvas = blank(builder, DType::i32, partial.sizes, order);
    fill(builder, call.node.name + ".indices", canvas, whole(partial.sizes), [&](NestBuilder& nest, const Index& base) {
      index::Expression flat = builder.context().constant(0);
      for (const Window& w : rest)
        flat = builder.context().add(flat, builder.context().multiply(base[w.dim], strides[w.dim - windows[0].dim]));
      return nest.add(nest.load_at(partial, base), nest.index_value(flat, DType::i32));
    });
    found.positions = canvas.tensor;
  }
  return found;
}

/// Whether anything in the graph reads output `output` of the node.
bool read(const Call& call, std::size_t output) {
  if (!call.wanted(output)) return false;
  const trace::ValueId value = call.node.outputs[output];
  const trace::Graph& graph = call.builder.graph();
  const std::function<bool(const trace::Argument&)> names = [&](const trace::Argument& a) {
    if (const auto* v = a.get<trace::ValueId>()) return *v == value;
    const auto* list = a.get<trace::ArgumentList>();
    return list != nullptr && std::any_of(list->begin(), list->end(), names);
  };
  for (const trace::Output& o : graph.outputs)
    if (o.value == value) return true;
  for (std::size_t k = call.builder.current.index() + 1; k < graph.nodes.size(); ++k) {
    const trace::Node& node = graph.nodes[trace::NodeId(k)];
    if (std::any_of(node.args.begin(), node.args.end(), names)) return true;
    if (std::any_of(node.kwargs.begin(), node.kwargs.end(), [&](const auto& a) { return names(a.second); })) return true;
  }
  return false;
}

Lowered give(Call& call, const Maxima& found) {
  call.define(found.values, 0);
  if (found.positions) {
    const Tensor positions = *found.positions;
    const trace::TensorMeta& meta = call.meta(1);
    call.define(call.builder.pointwise(
                    call.node.name + ".indices", positions.sizes, DType::i64, [&](NestBuilder& nest) { return nest.load(positions); },
                    &meta),
                1);
  } else if (call.wanted(1)) {
    // Nobody reads the positions.
    const trace::TensorMeta& meta = call.meta(1);
    call.define(blank(call.builder, DType::i64, meta.sizes, memory_order(meta)).tensor, 1);
  }
  return as_kernel();
}

template <int n>
Lowered max_pool(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!poolable(call, x)) return declined_dtype();
  const Sizes kernel = per_dimension(call, 1, "kernel_size", n, Sizes(n, 1));
  const std::vector<Window> windows =
      windows_over(x.sizes, call.meta().sizes, kernel, per_dimension(call, 2, "stride", n, kernel),
                   per_dimension(call, 3, "padding", n, Sizes(n, 0)), per_dimension(call, 4, "dilation", n, Sizes(n, 1)));
  return give(call, maximum_windows(call, x, windows, read(call, 1)));
}

// ------------------------------------------------------------------------------------------------ adaptive

std::int64_t adaptive_start(std::int64_t o, std::int64_t in, std::int64_t out) { return o * in / out; }
std::int64_t adaptive_end(std::int64_t o, std::int64_t in, std::int64_t out) { return ((o + 1) * in + out - 1) / out; }

/// Windows of one size, where the extents divide.
std::optional<std::vector<Window>> even_windows(const Sizes& sizes, const Sizes& result, std::size_t n) {
  std::vector<Window> windows;
  for (std::size_t d = sizes.size() - n; d < sizes.size(); ++d) {
    if (result[d] == 0 || sizes[d] % result[d] != 0) return std::nullopt;
    const std::int64_t size = sizes[d] / result[d];
    windows.push_back({d, sizes[d], result[d], size, size, 1, 0});
  }
  return windows;
}

Lists adaptive_lists(std::int64_t in, std::int64_t out) {
  Lists lists;
  for (std::int64_t o = 0; o < out; ++o) {
    Sizes list(static_cast<std::size_t>(adaptive_end(o, in, out) - adaptive_start(o, in, out)));
    std::iota(list.begin(), list.end(), adaptive_start(o, in, out));
    lists.push_back(std::move(list));
  }
  return lists;
}

template <int n>
Lowered adaptive_avg(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!poolable(call, x) || !is_float(x.dtype)) return declined_dtype();
  if (meta.rank() != x.rank() || x.rank() < n) throw MalformedNode{"a pooling that changes the rank"};
  if (x.sizes != meta.sizes && meta.numel() > 0 && std::count(x.sizes.begin(), x.sizes.end(), 0) > 0) return declined("pooling of nothing");
  if (const auto windows = even_windows(x.sizes, meta.sizes, n)) {
    call.define(average_windows(call, x, *windows, {}));
    return as_kernel();
  }
  Tensor sum = x;
  for (std::size_t d = x.sizes.size(); d-- > x.sizes.size() - n && meta.numel() > 0;)
    if (x.sizes[d] != meta.sizes[d])
      sum = summed(call.builder, call.node.name, sum, d, adaptive_lists(x.sizes[d], meta.sizes[d]), compute_dtype(x.dtype), true,
                   memory_order(meta));
  if (meta.numel() == 0) sum = blank(call.builder, meta.dtype, meta.sizes).tensor;
  call.define(call.builder.pointwise(
      call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) { return nest.load(sum); }, &meta));
  return as_kernel();
}

/// One dimension of an adaptive maximum: values, and positions on top of those found before.
Maxima maximum_lists(Builder& builder, const std::string& name, const Maxima& from, std::size_t d, const Lists& lists,
                     std::int64_t stride, bool with_positions, const std::vector<std::size_t>& order) {
  Sizes sizes = from.values.sizes;
  sizes[d] = static_cast<std::int64_t>(lists.size());
  index::Context& context = builder.context();
  const auto make = [&](bool positions) {
    const Canvas canvas = blank(builder, positions ? DType::i32 : from.values.dtype, sizes, order);
    fill_pieces(builder, positions ? name + ".indices" : name, canvas, d, lists,
                [&](NestBuilder& nest, const Index& base, const Taps& taps, const Piece&) {
                  int best = -1, place = -1;
                  for (index::Expression tap : taps.at) {
                    Index at = base;
                    at[d] = tap;
                    const int value = nest.load_at(from.values, at);
                    if (!positions) {
                      best = best < 0 ? value : nest.op(ComputeOp::maximum, best, value);
                      continue;
                    }
                    int here = nest.index_value(context.multiply(tap, stride), DType::i32);
                    if (from.positions) here = nest.add(here, nest.load_at(*from.positions, at));
                    if (best < 0) {
                      best = value;
                      place = here;
                    } else {
                      const int wins = beats(nest, value, best);
                      best = nest.where(wins, value, best);
                      place = nest.where(wins, here, place);
                    }
                  }
                  if (!taps.reduced) return positions ? place : best;
                  const int m = nest.reduce(ReduceOp::max, best, nest.dtype(best));
                  return positions ? position_of(nest, best, m, place, -1) : m;
                });
    return canvas.tensor;
  };
  Maxima found{from.values, std::nullopt};
  if (with_positions) found.positions = make(true);
  found.values = make(false);
  return found;
}

template <int n>
Lowered adaptive_max(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!poolable(call, x)) return declined_dtype();
  if (meta.rank() != x.rank() || x.rank() < n) throw MalformedNode{"a pooling that changes the rank"};
  const bool with_positions = read(call, 1);
  if (const auto windows = even_windows(x.sizes, meta.sizes, n)) return give(call, maximum_windows(call, x, *windows, with_positions));
  Maxima found{x, std::nullopt};
  std::int64_t stride = 1;
  for (std::size_t d = x.sizes.size(); d-- > x.sizes.size() - n && meta.numel() > 0;) {
    found = maximum_lists(call.builder, call.node.name, found, d, adaptive_lists(x.sizes[d], meta.sizes[d]), stride, with_positions,
                          memory_order(meta));
    stride *= x.sizes[d];
  }
  if (meta.numel() == 0) found.values = blank(call.builder, meta.dtype, meta.sizes).tensor;
  return give(call, found);
}

}  // namespace

std::vector<Entry> pooling_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "pooling", f}); };
  add("aten.avg_pool1d.default", avg_pool<1>);
  add("aten.avg_pool2d.default", avg_pool<2>);
  add("aten.avg_pool3d.default", avg_pool<3>);
  for (std::string_view op : {"aten.max_pool1d.default", "aten.max_pool1d_with_indices.default"}) add(op, max_pool<1>);
  for (std::string_view op : {"aten.max_pool2d.default", "aten.max_pool2d_with_indices.default"}) add(op, max_pool<2>);
  for (std::string_view op : {"aten.max_pool3d.default", "aten.max_pool3d_with_indices.default"}) add(op, max_pool<3>);
  add("aten.adaptive_avg_pool1d.default", adaptive_avg<1>);
  for (std::string_view op : {"aten.adaptive_avg_pool2d.default", "aten._adaptive_avg_pool2d.default"}) add(op, adaptive_avg<2>);
  for (std::string_view op : {"aten.adaptive_avg_pool3d.default", "aten._adaptive_avg_pool3d.default"}) add(op, adaptive_avg<3>);
  add("aten.adaptive_max_pool1d.default", adaptive_max<1>);
  add("aten.adaptive_max_pool2d.default", adaptive_max<2>);
  add("aten.adaptive_max_pool3d.default", adaptive_max<3>);
  return rows;
}

}  // namespace pallascope::lower
