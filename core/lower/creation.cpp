// Family: tensors made from nothing (fills, ranges, windows, triangles).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/lower/builder.h"
#include "core/lower/regions.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;

Lowered filled(Call& call, const loop::Scalar& value) {
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype)) return declined_dtype();
  loop::Scalar converted = to_scalar(as_double(value), meta.dtype);
  if (is_integer(meta.dtype) && std::holds_alternative<std::int64_t>(value)) converted = value;
  call.define(call.builder.pointwise(
      call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) { return nest.constant(converted, meta.dtype); }, &meta));
  return as_kernel();
}

/// The fill value is argument `position`; a tensor of rank 0 may stand for it.
template <int position>
Lowered fill(Call& call) {
  const char* name = position == 0 ? "s" : position == 1 ? (call.node.target == "aten.fill.Scalar" ? "value" : "fill_value") : "fill_value";
  return filled(call, call.scalar(position, name));
}

template <int value>
Lowered constant(Call& call) {
  return filled(call, std::int64_t{value});
}

Lowered fill_tensor(Call& call) {
  const Tensor value = call.tensor(1, "value");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype) || !is_kernel_dtype(value.dtype)) return declined_dtype();
  call.define(call.builder.pointwise(
      call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) { return nest.load(value); }, &meta));
  return as_kernel();
}

/// start + step * i, in i64 for whole numbers (exact in every result dtype that can hold them), else in f64 as ATen
/// accumulates.
int ramp(NestBuilder& nest, index::Context& context, const loop::Scalar& start, const loop::Scalar& step, std::size_t dim) {
  const bool whole = !std::holds_alternative<double>(start) && !std::holds_alternative<double>(step);
  if (whole) {
    const auto first = static_cast<std::int64_t>(as_double(start)), by = static_cast<std::int64_t>(as_double(step));
    return nest.index_value(context.add(context.multiply(nest.index(dim), by), context.constant(first)), DType::i64);
  }
  const int i = nest.cast(nest.index_value(nest.index(dim), DType::i64), DType::f64);
  return nest.add(nest.mul(i, nest.constant(as_double(step), DType::f64)), nest.constant(as_double(start), DType::f64));
}

Lowered arange(Call& call) {
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype)) return declined_dtype();
  const std::string& target = call.node.target;
  const bool only_end = target == "aten.arange.default";
  const loop::Scalar start = only_end ? loop::Scalar{std::int64_t{0}} : call.scalar(0, "start");
  const loop::Scalar step = target == "aten.arange.start_step" ? call.scalar(2, "step", std::int64_t{1}) : loop::Scalar{std::int64_t{1}};
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    return ramp(nest, call.builder.context(), start, step, 0);
  }));
  return as_kernel();
}

/// prims.iota(length, start, step)
Lowered iota(Call& call) {
  const trace::TensorMeta& meta = call.meta();
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    return ramp(nest, call.builder.context(), call.scalar(1, "start"), call.scalar(2, "step", std::int64_t{1}), 0);
  }));
  return as_kernel();
}

/// `steps` numbers from start to end, counted from the nearer end, so that both ends are exact (ATen, RangeFactories).
/// In the dtype `c`; `after` of each number.
void even_steps(Call& call, DType c, const std::function<int(NestBuilder&, int)>& after) {
  const trace::TensorMeta& meta = call.meta();
  const double start = call.number(0, "start"), end = call.number(1, "end");
  const std::int64_t steps = meta.sizes.at(0);
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    if (steps == 1) return after(nest, nest.constant(start, c));
    index::Context& context = call.builder.context();
    // Each operation is rounded to the result's dtype where that is shorter than `c`.
    const bool rounds = dtype_bytes(meta.dtype) < dtype_bytes(c) && is_float(meta.dtype) && c == DType::f32;
    const auto rounded = [&](int value) { return rounds ? nest.cast(nest.cast(value, meta.dtype), c) : value; };
    const int first = rounded(nest.constant(start, c)), last = rounded(nest.constant(end, c));
    const int by = rounded(nest.div(rounded(nest.sub(last, first)), nest.constant(static_cast<double>(steps - 1), c)));
    const int i = nest.cast(nest.index_value(nest.index(0), DType::i64), c);
    const int back = nest.cast(
        nest.index_value(context.subtract(context.constant(steps - 1), nest.index(0)), DType::i64), c);
    // A product that is chosen is rounded before it is added: whole numbers are cut off after this.
    const auto product = [&](int count) {
      const int made = rounded(nest.mul(by, rounded(count)));
      return nest.where(nest.compare(ComputeOp::eq, made, made), made, nest.constant(0.0, c));
    };
    const int low = nest.add(first, product(i)), high = nest.sub(last, product(back));
    return after(nest, nest.where(nest.compare(ComputeOp::lt, i, nest.constant(static_cast<double>(steps / 2), c)), low, high));
  }));
}

Lowered linspace(Call& call) {
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype) || is_bool(meta.dtype)) return declined_dtype();
  if (call.is_tensor(0, "start") || call.is_tensor(1, "end")) return declined("linspace between tensors");
  const DType c = is_float(meta.dtype) ? compute_dtype(meta.dtype) : DType::f64;
  even_steps(call, c, [](NestBuilder&, int value) { return value; });
  return as_kernel();
}

/// logspace: base to the power of even steps.
Lowered logspace(Call& call) {
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype) || is_bool(meta.dtype)) return declined_dtype();
  if (call.is_tensor(0, "start") || call.is_tensor(1, "end")) return declined("logspace between tensors");
  if (!is_float(meta.dtype)) return declined("logspace of integers");
  const double base = call.number(3, "base", 10);
  even_steps(call, DType::f64, [&](NestBuilder& nest, int value) {
    return nest.op(ComputeOp::pow, nest.constant(base, DType::f64), value);
  });
  return as_kernel();
}

/// The rows and columns of a triangle's elements, in row order: a rectangle of whole rows, and rows that grow (tril) or
/// shrink (triu) by one. In the latter, element t stands in the row whose start is the last not above t: the root of a
/// quadratic, which is put right by one where its rounding misses.
template <bool lower_side>
Lowered triangle_indices(Call& call) {
  const trace::TensorMeta& meta = call.meta();
  if (!is_integer(meta.dtype) || !is_kernel_dtype(meta.dtype)) return declined_dtype();
  const std::int64_t rows = call.integer(0, "row"), columns = call.integer(1, "col"), offset = call.integer(2, "offset", 0);
  Builder& builder = call.builder;
  index::Context& context = builder.context();
  const Canvas canvas = blank(builder, meta.dtype, meta.sizes);
  const auto length = [&](std::int64_t r) {
    return lower_side ? std::clamp<std::int64_t>(r + offset + 1, 0, columns) : std::clamp<std::int64_t>(columns - r - offset, 0, columns);
  };
  // Rows `first` .. `last` - 1 differ from each other by one; whole rows follow them (tril) or come before them (triu).
  std::int64_t first = 0, last = 0, whole_first = 0, whole_rows = 0, slanted = 0;
  if (lower_side) {
    while (first < rows && length(first) == 0) ++first;
    last = first;
    while (last < rows && length(last) < columns) ++last;
    whole_first = last;
    whole_rows = rows - last;
  } else {
    while (whole_rows < rows && length(whole_rows) == columns) ++whole_rows;
    first = last = whole_rows;
    while (last < rows && length(last) > 0) ++last;
  }
  if (columns == 0) last = first, whole_rows = 0;
  for (std::int64_t r = first; r < last; ++r) slanted += length(r);
  const std::int64_t slanted_at = lower_side ? 0 : whole_rows * columns, whole_at = lower_side ? slanted : 0;
  if (slanted + whole_rows * columns != meta.sizes.at(1)) throw MalformedNode{"a triangle of another size"};
  for (std::int64_t side = 0; side < 2; ++side) {
    fill(builder, call.node.name, canvas, {{side, whole_at}, {1, 1}, {1, whole_rows * columns}}, [&](NestBuilder& nest, const Index&) {
      const index::Expression t = nest.index(1);
      return nest.index_value(side == 0 ? context.add(context.floor_div(t, columns), context.constant(whole_first)) : context.mod(t, columns),
                              DType::i64);
    });
    fill(builder, call.node.name, canvas, {{side, slanted_at}, {1, 1}, {1, slanted}}, [&](NestBuilder& nest, const Index&) {
      const auto whole = [&](std::int64_t n) { return nest.constant(n, DType::i64); };
      const std::int64_t a = length(first), twice = lower_side ? 2 * a - 1 : 2 * a + 1;
      const int t = nest.index_value(nest.index(1), DType::i64);
      // Row k starts at k*a + k*(k-1)/2, or k*a - k*(k-1)/2 where rows shrink.
      const auto start = [&](int k) {
        const int pairs = nest.op(ComputeOp::integer_div_trunc, nest.mul(k, nest.sub(k, whole(1))), whole(2));
        return lower_side ? nest.add(nest.mul(k, whole(a)), pairs) : nest.sub(nest.mul(k, whole(a)), pairs);
      };
      const auto real = [&](double n) { return nest.constant(n, DType::f64); };
      const double square = static_cast<double>(twice) * static_cast<double>(twice);
      const int eight = nest.mul(real(8), nest.cast(t, DType::f64));
      int k = -1;
      if (lower_side) {
        k = nest.sub(nest.op(ComputeOp::sqrt, nest.add(real(square), eight)), real(static_cast<double>(twice)));
      } else {
        const int root = nest.op(ComputeOp::sqrt, nest.op(ComputeOp::maximum, nest.sub(real(square), eight), real(0)));
        k = nest.sub(real(static_cast<double>(twice)), root);
      }
      k = nest.cast(nest.op(ComputeOp::floor, nest.mul(k, real(0.5))), DType::i64);
      const int too_far = nest.compare(ComputeOp::gt, start(k), t);
      k = nest.where(too_far, nest.sub(k, whole(1)), k);
      const int next = nest.add(k, whole(1));
      k = nest.where(nest.compare(ComputeOp::le, start(next), t), next, k);
      if (side == 0) return nest.add(k, whole(first));
      const int column = nest.sub(t, start(k));
      return lower_side ? column : nest.add(column, nest.add(k, whole(first + offset)));
    });
  }
  call.define(canvas.tensor);
  return as_kernel();
}

enum class Window : std::uint8_t { cosine, blackman, triangle };

/// hann_window(n, periodic) and its relatives: `alpha - beta * cos(2 pi i / m)`, Blackman's sum of two, Bartlett's
/// triangle; m is n where the window is periodic, else n - 1. 16-bit floats are rounded at each of eager's steps.
template <Window kind, bool hamming = false>
Lowered window(Call& call) {
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype) || !is_float(meta.dtype)) return declined_dtype();
  const std::int64_t n = meta.sizes.at(0);
  const bool periodic = call.node.target.find(".periodic") == std::string::npos || call.boolean(1, "periodic", true);
  const double alpha = hamming ? call.number(2, "alpha", 0.54) : 0.5, beta = hamming ? call.number(3, "beta", 0.46) : 0.5;
  const double period = static_cast<double>(periodic ? n : n - 1);
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    const DType c = compute_dtype(meta.dtype);
    const auto real = [&](double value) { return nest.constant(value, c); };
    const auto rounded = [&](int value) { return nest.cast(nest.cast(value, meta.dtype), c); };
    if (n == 1) return nest.constant(1.0, meta.dtype);
    const int i = rounded(nest.cast(nest.index_value(nest.index(0), DType::i64), c));
    const auto wave = [&](int angle, double height) { return rounded(nest.mul(rounded(nest.op(ComputeOp::cos, angle)), real(height))); };
    constexpr double pi = std::numbers::pi;
    if constexpr (kind == Window::cosine) {
      return nest.add(wave(rounded(nest.mul(i, real(2 * pi / period))), -beta), real(alpha));
    } else if constexpr (kind == Window::blackman) {
      const int step = rounded(nest.mul(i, real(pi / period)));
      const int fast = wave(rounded(nest.mul(step, real(4))), 0.08), slow = wave(rounded(nest.mul(step, real(2))), 0.5);
      return nest.add(rounded(nest.sub(fast, slow)), real(0.42));
    } else {
      const int up = rounded(nest.mul(i, real(2 / period)));
      // The first half is the longer one, and counts the period's own length.
      const std::int64_t half = (static_cast<std::int64_t>(period) >> 1) + 1;
      const int first = nest.compare(ComputeOp::lt, nest.index_value(nest.index(0), DType::i64), nest.constant(half, DType::i64));
      return nest.where(first, up, nest.sub(real(2), up));
    }
  }));
  return as_kernel();
}

Lowered eye(Call& call) {
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype)) return declined_dtype();
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    const int same = nest.compare(ComputeOp::eq, nest.index_value(nest.index(0), DType::i32),
                                  nest.index_value(nest.index(1), DType::i32));
    return nest.where(same, nest.constant(to_scalar(1, meta.dtype), meta.dtype),
                      nest.constant(to_scalar(0, meta.dtype), meta.dtype));
  }));
  return as_kernel();
}

/// tril keeps column - row <= diagonal, triu the other side.
template <bool lower_side>
Lowered triangle(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype)) return declined_dtype();
  const std::int64_t diagonal = call.integer(1, "diagonal", 0);
  if (meta.rank() < 2) throw MalformedNode{"a triangle of something that is no matrix"};
  const std::size_t row = meta.sizes.size() - 2, column = row + 1;
  call.define(call.builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        index::Context& context = call.builder.context();
        const int r = nest.index_value(context.add(nest.index(row), context.constant(diagonal)), DType::i32);
        const int c = nest.index_value(nest.index(column), DType::i32);
        const int kept = nest.compare(lower_side ? ComputeOp::le : ComputeOp::ge, c, r);
        return nest.where(kept, nest.load(x), nest.constant(to_scalar(0, meta.dtype), meta.dtype));
      },
      &meta));
  return as_kernel();
}

}  // namespace

std::vector<Entry> creation_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f, Takes takes = Takes::of_family) { rows.push_back({op, "creation", f, takes}); };
  add("aten.full.default", fill<1>);
  add("aten.full_like.default", fill<1>);
  add("aten.fill.Scalar", fill<1>);
  add("aten.fill.Tensor", fill_tensor);
  add("aten.new_full.default", fill<2>);
  add("aten.scalar_tensor.default", fill<0>);
  for (std::string_view op : {"aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default", "aten.zero.default"})
    add(op, constant<0>);
  // Eager leaves the values of these undefined: any are right, and zeros are the same in every run.
  for (std::string_view op : {"aten.empty.memory_format", "aten.empty_like.default", "aten.empty_strided.default", "aten.new_empty.default",
                              "aten.new_empty_strided.default", "aten.empty_permuted.default"})
    add(op, constant<0>);
  for (std::string_view op : {"aten.ones.default", "aten.ones_like.default", "aten.new_ones.default"}) add(op, constant<1>);
  for (std::string_view op : {"aten.arange.default", "aten.arange.start", "aten.arange.start_step"}) add(op, arange);
  add("prims.iota.default", iota);
  add("aten.linspace.default", linspace);
  add("aten.logspace.default", logspace);
  add("aten.tril_indices.default", triangle_indices<true>);
  add("aten.triu_indices.default", triangle_indices<false>);
  for (std::string_view op : {"aten.eye.default", "aten.eye.m"}) add(op, eye);
  for (std::string_view op : {"aten.hann_window.default", "aten.hann_window.periodic"}) add(op, window<Window::cosine>);
  for (std::string_view op : {"aten.hamming_window.default", "aten.hamming_window.periodic", "aten.hamming_window.periodic_alpha",
                              "aten.hamming_window.periodic_alpha_beta"})
    add(op, window<Window::cosine, true>);
  for (std::string_view op : {"aten.blackman_window.default", "aten.blackman_window.periodic"}) add(op, window<Window::blackman>);
  for (std::string_view op : {"aten.bartlett_window.default", "aten.bartlett_window.periodic"}) add(op, window<Window::triangle>);
  add("aten.tril.default", triangle<true>);
  add("aten.triu.default", triangle<false>);
  return rows;
}

}  // namespace pallascope::lower
