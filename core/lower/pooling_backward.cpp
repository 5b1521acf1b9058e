// Family: gradients of pooling. An element takes from every window that it may stand in: with position h = q*stride + r
// of the padded axis, these are windows q, q-1, .. whose number does not depend on r, so that all reads are slices.
#include <algorithm>
#include <functional>

#include "core/lower/builder.h"
#include "core/lower/regions.h"
#include "core/lower/windows.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;
using loop::ReduceOp;

/// How many windows an element may stand in along one dimension.
std::int64_t reach(const Window& w) { return ((w.size - 1) * w.dilation) / w.stride + 1; }
/// How many strides the padded axis has.
std::int64_t strides_in(const Window& w) { return (w.in + w.before + w.stride - 1) / w.stride; }

/// `x`, one element a window, with `value` where no window is: window o stands at o + reach - 1.
Tensor between(Builder& builder, const std::string& name, const Tensor& x, const std::vector<Window>& windows, const loop::Scalar& value) {
  Sizes before(x.sizes.size(), 0), sizes = x.sizes;
  bool needed = false;
  for (const Window& w : windows) {
    before[w.dim] = reach(w) - 1;
    sizes[w.dim] = std::max(strides_in(w), w.out) + reach(w) - 1;
    needed = needed || sizes[w.dim] != x.sizes[w.dim];
  }
  return needed ? padded(builder, name, x, before, sizes, value) : x;
}

/// A nest with two axes, strides and the rest, for each dimension of `windows`. `body` gets the positions of the strides
/// in q (and of other dimensions), and the rests r; the result is seen with the sizes `sizes` of the tensor.
Tensor scattered(Builder& builder, const std::string& name, const Sizes& sizes, const std::vector<Window>& windows, DType dtype,
                 const Sizes& reduced, const std::function<int(NestBuilder&, const Index&, const Index&)>& body) {
  Sizes axes;
  std::vector<std::size_t> place(sizes.size());
  std::vector<const Window*> of(sizes.size(), nullptr);
  for (const Window& w : windows) of[w.dim] = &w;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    place[d] = axes.size();
    axes.push_back(of[d] == nullptr ? sizes[d] : strides_in(*of[d]));
    if (of[d] != nullptr) axes.push_back(of[d]->stride);
  }
  const std::size_t stored = axes.size();
  std::vector<std::size_t> over;
  for (std::int64_t n : reduced) {
    over.push_back(axes.size());
    axes.push_back(n);
  }
  NestBuilder nest(builder, name, axes, over);
  Index q, r;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    q.push_back(nest.index(place[d]));
    r.push_back(of[d] == nullptr ? builder.context().constant(0) : nest.index(place[d] + 1));
  }
  for (std::size_t k = stored; k < axes.size(); ++k) q.push_back(nest.index(k));
  const Tensor made = nest.store(body(nest, q, r), dtype);
  return builder.reindex(made, sizes, [&](const Index& position) {
    index::Context& context = builder.context();
    Index at;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (of[d] == nullptr) {
        at.push_back(position[d]);
        continue;
      }
      const index::Expression h = context.add(position[d], context.constant(of[d]->before));
      at.push_back(context.floor_div(h, of[d]->stride));
      at.push_back(context.mod(h, of[d]->stride));
    }
    return at;
  });
}

/// Sums of one value a window (`x`) over the windows that each element stands in, from the first window on, each rounded
/// to `rounds`.
Tensor window_sums(Builder& builder, const std::string& name, const Tensor& x, const std::vector<Window>& windows, DType c, DType rounds) {
  const Tensor source = between(builder, name, x, windows, to_scalar(0, x.dtype));
  Sizes sizes = x.sizes;
  std::vector<Window> steps = windows;
  for (Window& w : steps) {
    sizes[w.dim] = w.in;
    w.size = reach(w);  // from here: the windows' numbers
  }
  return scattered(builder, name, sizes, windows, c, {}, [&](NestBuilder& nest, const Index& q, const Index& r) {
    index::Context& context = builder.context();
    int total = -1;
    for_each_tap(steps, [&](const Sizes& tap) {
      Index at = q;
      int inside = -1;
      for (std::size_t k = 0; k < windows.size(); ++k) {
        const Window& w = windows[k];
        const std::int64_t back = steps[k].size - 1 - tap[k];
        at[w.dim] = context.add(q[w.dim], context.constant(tap[k]));
        if ((back + 1) * w.stride <= w.size) continue;
        const int one = nest.compare(ComputeOp::lt, nest.index_value(r[w.dim], DType::i32),
                                     nest.constant(w.size - back * w.stride, DType::i32));
        inside = inside < 0 ? one : nest.compare(ComputeOp::logical_and, inside, one);
      }
      int value = nest.cast(nest.load_at(source, at), c);
      if (inside >= 0) value = nest.where(inside, value, nest.constant(to_scalar(0, c), c));
      total = total < 0 ? value : added(nest, total, value, rounds);
    });
    return total;
  });
}

constexpr std::int64_t kUnrolled = 25;

std::int64_t window_numbers(const std::vector<Window>& windows) {
  std::int64_t n = 1;
  for (const Window& w : windows) n *= reach(w);
  return n;
}

template <int n>
Lowered avg_pool_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_output"), x = call.tensor(1, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype) || is_bool(meta.dtype)) return declined_dtype();
  const Sizes kernel = per_dimension(call, 2, "kernel_size", n, Sizes(n, 1));
  const std::vector<Window> windows = windows_over(x.sizes, grad.sizes, kernel, per_dimension(call, 3, "stride", n, kernel),
                                                   per_dimension(call, 4, "padding", n, Sizes(n, 0)), Sizes(n, 1));
  Divisor divisor;
  divisor.with_padding = call.boolean(6, "count_include_pad", true);
  if (call.has(7, "divisor_override")) divisor.fixed = call.integer(7, "divisor_override");
  const DType c = compute_dtype(meta.dtype);
  Builder& builder = call.builder;
  Tensor sum = builder.pointwise(call.node.name + ".shares", grad.sizes, c, [&](NestBuilder& nest) {
    Index at;
    for (const Window& w : windows) at.push_back(nest.index(w.dim));
    const int share = divided(nest, nest.cast(nest.load(grad), c), divisor_value(nest, builder, windows, at, divisor, c));
    return nest.cast(nest.cast(share, meta.dtype), c);
  });
  if (window_numbers(windows) <= kUnrolled) {
    sum = window_sums(builder, call.node.name, sum, windows, c, meta.dtype);
  } else {
    for (const Window& w : windows) {
      if (reach(w) > 2 * kUnrolled) return declined("the gradient of windows that overlap so often");
    }
    for (const Window& w : windows) sum = window_sums(builder, call.node.name, sum, {w}, c, c);
  }
  call.define(builder.pointwise(
      call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) { return nest.load(sum); }, &meta));
  return as_kernel();
}

/// Each element takes the gradients of the windows whose position it is.
Tensor chosen_sums(Builder& builder, const std::string& name, const Tensor& grad, const Tensor& positions, const std::vector<Window>& windows,
                   DType c) {
  const Tensor from = between(builder, name, grad, windows, to_scalar(0, grad.dtype));
  const Tensor at_most = between(builder, name + ".indices", positions, windows, std::int64_t{-1});
  Sizes sizes = grad.sizes, reduced;
  std::vector<Window> steps = windows;
  for (Window& w : steps) {
    sizes[w.dim] = w.in;
    w.size = reach(w);
  }
  const bool unrolled = window_numbers(windows) <= kUnrolled;
  if (!unrolled)
    for (const Window& w : steps) reduced.push_back(w.size);
  index::Context& context = builder.context();
  return scattered(builder, name, sizes, windows, c, reduced, [&](NestBuilder& nest, const Index& q, const Index& r) {
    index::Expression flat = context.constant(0);
    for (const Window& w : windows) {
      const index::Expression h = context.add(context.add(context.multiply(q[w.dim], w.stride), r[w.dim]), context.constant(-w.before));
      flat = context.add(context.multiply(flat, w.in), h);
    }
    const int here = nest.index_value(flat, DType::i64);
    // `from_first` counts the windows from the first that may hold the element.
    const auto share = [&](const std::vector<index::Expression>& from_first) {
      Index at(q.begin(), q.begin() + static_cast<std::ptrdiff_t>(sizes.size()));
      for (std::size_t k = 0; k < windows.size(); ++k)
        at[windows[k].dim] = context.add(at[windows[k].dim], from_first[k]);
      const int hit = nest.compare(ComputeOp::eq, nest.cast(nest.load_at(at_most, at), DType::i64), here);
      return nest.where(hit, nest.cast(nest.load_at(from, at), c), nest.constant(to_scalar(0, c), c));
    };
    std::vector<index::Expression> back;
    if (!unrolled) {
      for (std::size_t k = 0; k < windows.size(); ++k) back.push_back(q[sizes.size() + k]);
      return nest.reduce(ReduceOp::sum, share(back), c);
    }
    int total = -1;
    for_each_tap(steps, [&](const Sizes& tap) {
      back.clear();
      for (std::int64_t t : tap) back.push_back(context.constant(t));
      const int value = share(back);
      total = total < 0 ? value : added(nest, total, value, grad.dtype);
    });
    return total;
  });
}

template <int n>
Lowered max_pool_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_output"), x = call.tensor(1, "self"), positions = call.tensor(7, "indices");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype) || is_bool(meta.dtype)) return declined_dtype();
  const Sizes kernel = per_dimension(call, 2, "kernel_size", n, Sizes(n, 1));
  const std::vector<Window> windows =
      windows_over(x.sizes, grad.sizes, kernel, per_dimension(call, 3, "stride", n, kernel), per_dimension(call, 4, "padding", n, Sizes(n, 0)),
                   per_dimension(call, 5, "dilation", n, Sizes(n, 1)));
  const Tensor sum = chosen_sums(call.builder, call.node.name, grad, positions, windows, compute_dtype(meta.dtype));
  call.define(call.builder.pointwise(
      call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) { return nest.load(sum); }, &meta));
  return as_kernel();
}

// ------------------------------------------------------------------------------------------------ adaptive

/// The windows of adaptive pooling that position h stands in, by their distance from h*out/in.
struct Nearby {
  std::int64_t low = 0, high = 0;
};
std::int64_t window_start(std::int64_t o, std::int64_t in, std::int64_t out) { return o * in / out; }
std::int64_t window_end(std::int64_t o, std::int64_t in, std::int64_t out) { return ((o + 1) * in + out - 1) / out; }
Nearby nearby(std::int64_t in, std::int64_t out) {
  Nearby found;
  for (std::int64_t o = 0; o < out; ++o)
    for (std::int64_t h : {window_start(o, in, out), window_end(o, in, out) - 1}) {
      found.low = std::min(found.low, o - h * out / in);
      found.high = std::max(found.high, o - h * out / in);
    }
  return found;
}

Lists windows_of_each(std::int64_t in, std::int64_t out) {
  Lists lists(static_cast<std::size_t>(in));
  for (std::int64_t o = 0; o < out; ++o)
    for (std::int64_t h = window_start(o, in, out); h < window_end(o, in, out); ++h) lists[static_cast<std::size_t>(h)].push_back(o);
  return lists;
}

template <int n>
Lowered adaptive_avg_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_output");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype) || !is_float(meta.dtype)) return declined_dtype();
  if (meta.rank() != grad.rank() || meta.rank() < n) throw MalformedNode{"a pooling that changes the rank"};
  Builder& builder = call.builder;
  const DType c = compute_dtype(meta.dtype);
  Tensor sum = grad;
  for (std::size_t d = meta.sizes.size() - n; d < meta.sizes.size() && meta.numel() > 0 && grad.sizes[d] > 0; ++d) {
    const std::int64_t in = meta.sizes[d], out = grad.sizes[d];
    if (in == out) continue;
    const Tensor before = sum;
    // Each window's share, then the shares of all windows that an element stands in.
    const Tensor shares = builder.pointwise(call.node.name + ".shares", before.sizes, c, [&](NestBuilder& nest) {
      const int value = nest.cast(nest.load(before), c);
      if (in % out == 0) return nest.exact_div(value, nest.number(static_cast<double>(in / out), value));
      index::Context& context = builder.context();
      const index::Expression o = nest.index(d);
      const index::Expression start = context.floor_div(context.multiply(o, in), out);
      const index::Expression end = context.floor_div(context.add(context.multiply(o, in), context.constant(in + out - 1)), out);
      return nest.exact_div(value, nest.cast(nest.index_value(context.subtract(end, start), DType::i32), c));
    });
    if (in % out == 0) {
      // Windows side by side: an axis pair, as for repetitions.
      Window w{d, in, out, in / out, in / out, 1, 0};
      sum = window_sums(builder, call.node.name, shares, {w}, c, c);
    } else {
      sum = summed(builder, call.node.name, shares, d, windows_of_each(in, out), c);
    }
  }
  call.define(builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        if (sum.sizes != meta.sizes) return nest.constant(to_scalar(0, meta.dtype), meta.dtype);
        return nest.load(sum);
      },
      &meta));
  return as_kernel();
}

template <int n>
Lowered adaptive_max_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_output"), positions = call.tensor(2, "indices");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype) || !is_float(meta.dtype)) return declined_dtype();
  if (meta.rank() != grad.rank() || meta.rank() < n) throw MalformedNode{"a pooling that changes the rank"};
  Builder& builder = call.builder;
  index::Context& context = builder.context();
  const DType c = compute_dtype(meta.dtype);
  // Windows that an element may stand in are counted from the one that its place falls into; beside the result stand
  // windows without gradient.
  const std::size_t lead = meta.sizes.size() - n;
  Sizes before(meta.sizes.size(), 0), sizes = grad.sizes;
  std::vector<Window> steps;
  for (std::size_t d = lead; d < meta.sizes.size(); ++d) {
    if (grad.sizes[d] == 0 || meta.sizes[d] == 0) return declined("the gradient of nothing");
    const Nearby range = nearby(meta.sizes[d], grad.sizes[d]);
    before[d] = -range.low;
    sizes[d] = grad.sizes[d] + range.high - range.low;
    steps.push_back({d, meta.sizes[d], grad.sizes[d], range.high - range.low + 1, 1, 1, 0});
  }
  if (taps_of(steps) > 8 * kUnrolled) return declined("the gradient of windows that overlap so often");
  const bool alone = sizes == grad.sizes;
  const Tensor from = alone ? grad : padded(builder, call.node.name, grad, before, sizes, to_scalar(0, grad.dtype));
  const Tensor at_most = alone ? positions : padded(builder, call.node.name + ".indices", positions, before, sizes, std::int64_t{-1});
  call.define(builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        index::Expression flat = context.constant(0);
        for (const Window& w : steps) flat = context.add(context.multiply(flat, w.in), nest.index(w.dim));
        const int here = nest.index_value(flat, DType::i64);
        int total = -1;
        for_each_tap(steps, [&](const Sizes& tap) {
          Index at = nest.index();
          for (std::size_t k = 0; k < steps.size(); ++k) {
            const index::Expression near = context.floor_div(context.multiply(at[steps[k].dim], steps[k].out), steps[k].in);
            at[steps[k].dim] = context.add(near, context.constant(tap[k]));
          }
          const int hit = nest.compare(ComputeOp::eq, nest.load_at(at_most, at), here);
          const int value = nest.where(hit, nest.cast(nest.load_at(from, at), c), nest.constant(to_scalar(0, c), c));
          total = total < 0 ? value : nest.add(total, value);
        });
        return total;
      },
      &meta));
  return as_kernel();
}

}  // namespace

std::vector<Entry> pooling_backward_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "pooling", f}); };
  add("aten.avg_pool2d_backward.default", avg_pool_backward<2>);
  add("aten.avg_pool3d_backward.default", avg_pool_backward<3>);
  add("aten.max_pool2d_with_indices_backward.default", max_pool_backward<2>);
  add("aten.max_pool3d_with_indices_backward.default", max_pool_backward<3>);
  add("aten._adaptive_avg_pool2d_backward.default", adaptive_avg_backward<2>);
  add("aten._adaptive_avg_pool3d_backward.default", adaptive_avg_backward<3>);
  add("aten.adaptive_max_pool2d_backward.default", adaptive_max_backward<2>);
  add("aten.adaptive_max_pool3d_backward.default", adaptive_max_backward<3>);
  return rows;
}

}  // namespace pallascope::lower
