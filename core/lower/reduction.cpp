// Family: reductions over any axes.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "core/lower/builder.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;
using loop::ReduceOp;

/// Reduces to the sizes of output `output` (which say whether dimensions were kept).
Tensor to_result(Call& call, const Tensor& reduced, std::size_t output = 0) {
  return call.builder.reshape(reduced, call.meta(output).sizes);
}

bool in_kernel(const Call& call, const Tensor& x) { return is_kernel_dtype(x.dtype) && is_kernel_dtype(call.meta().dtype); }
Lowered sum(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!in_kernel(call, x)) return declined_dtype();
  const DType result = call.meta().dtype, accumulate = compute_dtype(result);
  const std::vector<std::size_t> dims =
      call.node.target == "aten.sum.default" ? call.dims(99, "", x.rank()) : call.dims(1, "dim", x.rank());
  const Tensor reduced =
      call.builder.reduction(call.node.name, x.sizes, dims, ReduceOp::sum, accumulate, result, true,
                             [&](NestBuilder& nest) { return nest.cast(nest.cast(nest.load(x), result), accumulate); });
  call.define(to_result(call, reduced));
  return as_kernel();
}

Lowered mean(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!in_kernel(call, x)) return declined_dtype();
  const DType result = call.meta().dtype, accumulate = compute_dtype(result);
  const std::vector<std::size_t> dims =
      call.node.target == "aten.mean.default" ? call.dims(99, "", x.rank()) : call.dims(1, "dim", x.rank());
  const double count = static_cast<double>(points(x.sizes, dims));
  const Tensor reduced = call.builder.reduction(
      call.node.name, x.sizes, dims, ReduceOp::sum, accumulate, result, true,
      [&](NestBuilder& nest) { return nest.cast(nest.load(x), accumulate); },
      [&](NestBuilder& nest, int total) { return nest.exact_div(total, nest.number(count, total)); });
  call.define(to_result(call, reduced));
  return as_kernel();
}

Lowered prod(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!in_kernel(call, x)) return declined_dtype();
  // PyTorch rounds a product of 16-bit floats after every factor, where it adds up in f32.
  const DType result = call.meta().dtype, accumulate = result;
  std::vector<std::size_t> dims = call.dims(99, "", x.rank());
  if (call.node.target == "aten.prod.dim_int" && x.rank() > 0) dims = {Call::dim(call.integer(1, "dim"), x.rank())};
  const Tensor reduced =
      call.builder.reduction(call.node.name, x.sizes, dims, ReduceOp::prod, accumulate, result, true,
                             [&](NestBuilder& nest) { return nest.cast(nest.load(x), accumulate); });
  call.define(to_result(call, reduced));
  return as_kernel();
}

/// Reductions without an identity: an empty axis is the graph's mistake.
std::optional<Lowered> refuse_empty(const Call& call, const Tensor& x, const std::vector<std::size_t>& dims) {
  if (points(x.sizes, dims) != 0 || call.meta().numel() == 0) return std::nullopt;
  Lowered bad = declined("");
  bad.diagnostic = Diagnostic{DiagnosticKind::invalid_argument,
                              fmt::format("{} reduces an axis of extent 0, and has no identity", call.node.target),
                              call.node.name, "an axis with at least one element"};
  return bad;
}

template <ReduceOp op>
Lowered extremum(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!in_kernel(call, x)) return declined_dtype();
  const bool all = call.node.target == "aten.max.default" || call.node.target == "aten.min.default";
  const std::vector<std::size_t> dims = all ? call.dims(99, "", x.rank()) : call.dims(1, "dim", x.rank());
  if (auto bad = refuse_empty(call, x, dims)) return *bad;
  const Tensor reduced = call.builder.reduction(call.node.name, x.sizes, dims, op, x.dtype, x.dtype, true,
                                                [&](NestBuilder& nest) { return nest.load(x); });
  call.define(to_result(call, reduced));
  return as_kernel();
}

/// Positions of the extremum along `dims`, as i64, the first of equals; NaN counts as the extremum.
Tensor arg(Call& call, const Tensor& x, const std::vector<std::size_t>& dims, ReduceOp op) {
  return call.builder.reduction(call.node.name, x.sizes, dims, op, DType::i64, DType::i64, true, [&](NestBuilder& nest) {
    const int value = nest.load(x);
    return is_bool(x.dtype) ? nest.cast(value, DType::i32) : value;
  });
}

template <ReduceOp op>
Lowered arg_extremum(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!in_kernel(call, x)) return declined_dtype();
  std::vector<std::size_t> dims = call.dims(99, "", x.rank());
  if (call.has(1, "dim") && x.rank() > 0) dims = {Call::dim(call.integer(1, "dim"), x.rank())};
  if (auto bad = refuse_empty(call, x, dims)) return *bad;
  call.define(to_result(call, arg(call, x, dims, op)));
  return as_kernel();
}

/// max(x, dim): values and positions.
template <ReduceOp value_op, ReduceOp arg_op>
Lowered extremum_with_index(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!in_kernel(call, x)) return declined_dtype();
  const std::vector<std::size_t> dims = x.rank() == 0 ? std::vector<std::size_t>{}
                                                       : std::vector<std::size_t>{Call::dim(call.integer(1, "dim"), x.rank())};
  if (auto bad = refuse_empty(call, x, dims)) return *bad;
  const Tensor reduced = call.builder.reduction(call.node.name, x.sizes, dims, value_op, x.dtype, x.dtype, true,
                                                [&](NestBuilder& nest) { return nest.load(x); });
  call.define(to_result(call, reduced), 0);
  if (call.wanted(1)) call.define(to_result(call, arg(call, x, dims, arg_op), 1), 1);
  return as_kernel();
}

template <ReduceOp op>
Lowered any_all(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!in_kernel(call, x)) return declined_dtype();
  const DType result = call.meta().dtype;
  const std::string& target = call.node.target;
  const bool all = target == "aten.any.default" || target == "aten.all.default";
  std::vector<std::size_t> dims = all ? call.dims(99, "", x.rank()) : call.dims(1, "dim", x.rank());
  // Of all reductions these alone take an empty list of dimensions by its word.
  if (!all && call.has(1, "dim") && call.integers(1, "dim").empty()) dims.clear();
  const Tensor reduced = call.builder.reduction(call.node.name, x.sizes, dims, op, DType::b8, result, true,
                                                [&](NestBuilder& nest) { return nest.cast(nest.load(x), DType::b8); });
  call.define(to_result(call, reduced));
  return as_kernel();
}

/// The correction and dimensions of var, std and their relatives in their several overloads.
struct VarianceArguments {
  std::vector<std::size_t> dims;
  double correction = 1;
};
VarianceArguments variance_arguments(const Call& call, std::int64_t rank) {
  VarianceArguments found;
  const std::string& target = call.node.target;
  if (target.ends_with(".correction")) {
    found.dims = call.dims(1, "dim", rank);
    if (call.has(99, "correction")) found.correction = call.number(99, "correction", 1);
  } else if (target.ends_with(".dim")) {
    found.dims = call.dims(1, "dim", rank);
    found.correction = call.boolean(2, "unbiased", true) ? 1 : 0;
  } else {
    found.dims = call.dims(99, "", rank);
    found.correction = call.boolean(1, "unbiased", true) ? 1 : 0;
  }
  return found;
}

template <bool root, bool with_mean>
Lowered variance(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!in_kernel(call, x) || !is_float(x.dtype)) return declined_dtype();
  const VarianceArguments arguments = variance_arguments(call, x.rank());
  const DType c = compute_dtype(x.dtype), result = call.meta().dtype;
  const double count = static_cast<double>(points(x.sizes, arguments.dims));
  const double divisor = std::max(0.0, count - arguments.correction);
  Builder& builder = call.builder;
  // Two passes, as ATen's Welford is as exact: the mean first, then squares of the distances from it.
  const Tensor mean = builder.reduction(
      call.node.name + ".mean", x.sizes, arguments.dims, ReduceOp::sum, c, c, true,
      [&](NestBuilder& nest) { return nest.cast(nest.load(x), c); },
      [&](NestBuilder& nest, int total) { return nest.div(total, nest.number(count, total)); });
  const Tensor spread = builder.reduction(
      call.node.name, x.sizes, arguments.dims, ReduceOp::sum, c, result, true,
      [&](NestBuilder& nest) {
        const int distance = nest.sub(nest.cast(nest.load(x), c), nest.load(mean));
        return nest.mul(distance, distance);
      },
      [&](NestBuilder& nest, int total) {
        const int v = nest.div(total, nest.number(divisor, total));
        return root ? nest.op(ComputeOp::sqrt, v) : v;
      });
  call.define(to_result(call, spread), 0);
  if (with_mean && call.wanted(1)) {
    const Tensor cast = c == result ? mean
                                    : builder.pointwise(call.node.name + ".mean", mean.sizes, result,
                                                        [&](NestBuilder& nest) { return nest.load(mean); });
    call.define(to_result(call, cast, 1), 1);
  }
  return as_kernel();
}

Lowered logsumexp(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!in_kernel(call, x)) return declined_dtype();
  const std::vector<std::size_t> dims = call.dims(1, "dim", x.rank());
  const DType result = call.meta().dtype, c = compute_dtype(result);
  Builder& builder = call.builder;
  if (points(x.sizes, dims) == 0) {
    const Sizes& sizes = call.meta().sizes;
    call.define(builder.pointwise(call.node.name, sizes, result, [&](NestBuilder& nest) { return nest.constant(-INFINITY, c); }));
    return as_kernel();
  }
  const Tensor top = builder.reduction(
      call.node.name + ".max", x.sizes, dims, ReduceOp::max, c, c, true,
      [&](NestBuilder& nest) { return nest.cast(nest.load(x), c); },
      [&](NestBuilder& nest, int m) {
        // An infinite maximum would make inf - inf below.
        const int infinite = nest.compute(ComputeOp::isinf, DType::b8, {m});
        return nest.where(infinite, nest.number(0, m), m);
      });
  const Tensor total = builder.reduction(
      call.node.name, x.sizes, dims, ReduceOp::sum, c, result, true,
      [&](NestBuilder& nest) {
        return nest.op(ComputeOp::exp, nest.sub(nest.cast(nest.load(x), c), nest.load(top)));
      },
      [&](NestBuilder& nest, int s) { return nest.add(nest.op(ComputeOp::log, s), nest.load(top)); });
  call.define(to_result(call, total));
  return as_kernel();
}

/// Minimum and maximum over one dimension, or over all.
Lowered aminmax(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!in_kernel(call, x)) return declined_dtype();
  std::vector<std::size_t> dims = call.dims(99, "", x.rank());
  if (call.has(99, "dim") && x.rank() > 0) dims = {Call::dim(call.integer(99, "dim"), x.rank())};
  if (auto bad = refuse_empty(call, x, dims)) return *bad;
  for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
    if (!call.wanted(k)) continue;
    const Tensor reduced = call.builder.reduction(call.node.name + (k == 0 ? ".min" : ".max"), x.sizes, dims,
                                                  k == 0 ? ReduceOp::min : ReduceOp::max, x.dtype, x.dtype, true,
                                                  [&](NestBuilder& nest) { return nest.load(x); });
    call.define(to_result(call, reduced, k), k);
  }
  return as_kernel();
}

Lowered count_nonzero(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!in_kernel(call, x)) return declined_dtype();
  const Tensor reduced = call.builder.reduction(
      call.node.name, x.sizes, call.dims(1, "dim", x.rank()), ReduceOp::sum, DType::i64, DType::i64, true,
      [&](NestBuilder& nest) { return nest.cast(nest.cast(nest.load(x), DType::b8), DType::i64); });
  call.define(to_result(call, reduced));
  return as_kernel();
}

/// The sum, or the mean, of what is no NaN.
template <bool mean>
Lowered without_nan(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!in_kernel(call, x)) return declined_dtype();
  const DType result = call.meta().dtype, c = compute_dtype(result);
  const std::vector<std::size_t> dims = call.dims(1, "dim", x.rank());
  const Tensor total = call.builder.reduction(call.node.name, x.sizes, dims, ReduceOp::sum, c, mean ? c : result, true, [&](NestBuilder& nest) {
    const int v = nest.load(x), wide = nest.cast(nest.cast(v, result), c);
    return is_float(x.dtype) ? nest.where(nest.compute(ComputeOp::isnan, DType::b8, {v}), nest.constant(to_scalar(0, c), c), wide) : wide;
  });
  if (!mean) {
    call.define(to_result(call, total));
    return as_kernel();
  }
  const Tensor count = call.builder.reduction(call.node.name + ".count", x.sizes, dims, ReduceOp::sum, c, c, true, [&](NestBuilder& nest) {
    const int v = nest.load(x);
    return nest.where(nest.compute(ComputeOp::isnan, DType::b8, {v}), nest.constant(0.0, c), nest.constant(1.0, c));
  });
  call.define(to_result(call, call.builder.pointwise(call.node.name + ".mean", total.sizes, result, [&](NestBuilder& nest) {
    const int above = nest.cast(nest.cast(nest.load(total), result), c);
    return nest.exact_div(above, nest.load(count));
  })));
  return as_kernel();
}

}  // namespace

std::vector<Entry> reduction_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f, Takes takes = Takes::of_family) { rows.push_back({op, "reduction", f, takes}); };
  for (std::string_view op : {"aten.sum.default", "aten.sum.dim_IntList"}) add(op, sum);
  for (std::string_view op : {"aten.mean.default", "aten.mean.dim"}) add(op, mean, Takes::floats);
  for (std::string_view op : {"aten.prod.default", "aten.prod.dim_int"}) add(op, prod);
  for (std::string_view op : {"aten.amax.default", "aten.max.default"}) add(op, extremum<ReduceOp::max>);
  for (std::string_view op : {"aten.amin.default", "aten.min.default"}) add(op, extremum<ReduceOp::min>);
  add("aten.max.dim", extremum_with_index<ReduceOp::max, ReduceOp::argmax>);
  add("aten.min.dim", extremum_with_index<ReduceOp::min, ReduceOp::argmin>);
  add("aten.argmax.default", arg_extremum<ReduceOp::argmax>, Takes::numbers);
  add("aten.argmin.default", arg_extremum<ReduceOp::argmin>, Takes::numbers);
  for (std::string_view op : {"aten.any.default", "aten.any.dim", "aten.any.dims"}) add(op, any_all<ReduceOp::any>);
  for (std::string_view op : {"aten.all.default", "aten.all.dim", "aten.all.dims"}) add(op, any_all<ReduceOp::all>);
  for (std::string_view op : {"aten.var.default", "aten.var.dim", "aten.var.correction"}) add(op, variance<false, false>, Takes::floats);
  for (std::string_view op : {"aten.std.default", "aten.std.dim", "aten.std.correction"}) add(op, variance<true, false>, Takes::floats);
  for (std::string_view op : {"aten.var_mean.default", "aten.var_mean.dim", "aten.var_mean.correction"})
    add(op, variance<false, true>, Takes::floats);
  for (std::string_view op : {"aten.std_mean.default", "aten.std_mean.dim", "aten.std_mean.correction"})
    add(op, variance<true, true>);
  add("aten.logsumexp.default", logsumexp);
  add("aten.aminmax.default", aminmax);
  for (std::string_view op : {"aten.count_nonzero.default", "aten.count_nonzero.dim_IntList"}) add(op, count_nonzero);
  add("aten.nansum.default", without_nan<false>);
  add("aten.nanmean.default", without_nan<true>);
  return rows;
}

}  // namespace pallascope::lower
