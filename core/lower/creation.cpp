// Family: tensors made from nothing (fills, ranges, triangles).
#include <cmath>

#include "core/lower/builder.h"

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

/// linspace counts from the nearer end, so that both ends are exact (ATen, RangeFactories).
Lowered linspace(Call& call) {
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype) || !is_float(meta.dtype)) return declined("linspace of integers");
  if (call.is_tensor(0, "start") || call.is_tensor(1, "end")) return declined("linspace between tensors");
  const double start = call.number(0, "start"), end = call.number(1, "end");
  const std::int64_t steps = meta.sizes.at(0);
  const DType c = compute_dtype(meta.dtype);
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    if (steps == 1) return nest.constant(start, c);
    const double step = (end - start) / static_cast<double>(steps - 1);
    index::Context& context = call.builder.context();
    const int i = nest.cast(nest.index_value(nest.index(0), DType::i64), c);
    const int back = nest.cast(
        nest.index_value(context.subtract(context.constant(steps - 1), nest.index(0)), DType::i64), c);
    const int by = nest.constant(step, c);
    const int low = nest.add(nest.constant(start, c), nest.mul(by, i));
    const int high = nest.sub(nest.constant(end, c), nest.mul(by, back));
    return nest.where(nest.compare(ComputeOp::lt, i, nest.constant(static_cast<double>(steps / 2), c)), low, high);
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
  for (std::string_view op : {"aten.ones.default", "aten.ones_like.default", "aten.new_ones.default"}) add(op, constant<1>);
  for (std::string_view op : {"aten.arange.default", "aten.arange.start", "aten.arange.start_step"}) add(op, arange);
  add("prims.iota.default", iota);
  add("aten.linspace.default", linspace, Takes::floats);
  for (std::string_view op : {"aten.eye.default", "aten.eye.m"}) add(op, eye);
  add("aten.tril.default", triangle<true>);
  add("aten.triu.default", triangle<false>);
  return rows;
}

}  // namespace pallascope::lower
