// Family: matrix products. The product itself is a library call; what surrounds it (bias, scaling) is nests. 16-bit
// sums stay in f32 until the operator's end, as eager's do.
#include <algorithm>

#include "core/lower/library.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;

/// Sums of booleans are left to PyTorch, which refuses most of them.
bool in_kernel(const Call& call) { return is_kernel_dtype(call.meta().dtype) && !is_bool(call.meta().dtype); }

/// A number in a compute dtype; an integer stays exact.
int factor(NestBuilder& nest, const loop::Scalar& by, DType c) {
  if (is_integer(c) && std::holds_alternative<std::int64_t>(by)) return nest.constant(by, c);
  return nest.constant(to_scalar(as_double(by), c), c);
}

Lowered mm(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  call.define(product(call, call.tensor(0, "self"), call.tensor(1, "mat2"), call.meta().dtype));
  return as_made(call);
}

/// beta * self + alpha * (a @ b); the sum is a nest, so that what follows can fuse with it.
Lowered add_product(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  Builder& builder = call.builder;
  const std::string& op = call.node.target;
  const Tensor self = call.tensor(0, "self");
  Tensor lhs = call.tensor(1, "mat1"), rhs = call.tensor(2, "mat2");
  const trace::TensorMeta& meta = call.meta();
  if (op == "aten.addmv.default") rhs = builder.reshape(rhs, {rhs.sizes.at(0), 1});
  if (op == "aten.addbmm.default") {
    // The sum over the batch is a longer inner dimension.
    if (lhs.rank() != 3 || rhs.rank() != 3) throw MalformedNode{"addbmm of something that is no batch of matrices"};
    lhs = builder.permute(lhs, {1, 0, 2});
    lhs = builder.reshape(lhs, {lhs.sizes[0], lhs.sizes[1] * lhs.sizes[2]});
    rhs = builder.reshape(rhs, {rhs.sizes[0] * rhs.sizes[1], rhs.sizes[2]});
  }
  const DType c = compute_dtype(meta.dtype);
  const Tensor dot = builder.reshape(product(call, lhs, rhs, c), meta.sizes);
  const loop::Scalar beta = call.scalar(99, "beta", std::int64_t{1}), alpha = call.scalar(99, "alpha", std::int64_t{1});
  call.define(builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        const auto scaled = [&](int v, const loop::Scalar& by) { return as_double(by) == 1 ? v : nest.mul(v, factor(nest, by, c)); };
        const int right = scaled(nest.load(dot), alpha);
        // beta 0 means that self is not read, NaN included.
        if (as_double(beta) == 0) return right;
        return nest.add(right, scaled(nest.cast(nest.load(self), c), beta));
      },
      &meta));
  return as_made(call);
}

/// beta * self + alpha * outer(vec1, vec2): nothing is added up, so it is a nest. Eager computes it in the dtype itself:
/// alpha * vec1 first, and 16-bit numbers (also alpha and beta) are rounded at each step.
Lowered addr(Call& call) {
  if (!is_kernel_dtype(call.meta().dtype)) return declined_dtype();
  const Tensor self = call.tensor(0, "self"), column = call.tensor(1, "vec1"), row = call.tensor(2, "vec2");
  const trace::TensorMeta& meta = call.meta();
  const DType dtype = meta.dtype, c = compute_dtype(dtype);
  const loop::Scalar beta = call.scalar(99, "beta", std::int64_t{1}), alpha = call.scalar(99, "alpha", std::int64_t{1});
  call.define(call.builder.pointwise(
      call.node.name, meta.sizes, dtype,
      [&](NestBuilder& nest) {
        const auto rounded = [&](int v) { return nest.cast(nest.cast(v, dtype), c); };
        const auto times = [&](int a, int b) {
          return rounded(is_bool(c) ? nest.op(ComputeOp::logical_and, a, b) : nest.mul(a, b));
        };
        const auto scaled = [&](int v, const loop::Scalar& by) {
          return as_double(by) == 1 ? v : times(v, rounded(factor(nest, by, c)));
        };
        const int x = nest.cast(nest.load_at(column, {nest.index(0)}), c), y = nest.cast(nest.load_at(row, {nest.index(1)}), c);
        const int right = times(scaled(x, alpha), y);
        if (as_double(beta) == 0) return right;
        const int left = scaled(nest.cast(nest.load(self), c), beta);
        return is_bool(c) ? nest.op(ComputeOp::logical_or, left, right) : nest.add(left, right);
      },
      &meta));
  return as_kernel();
}

Lowered outer(Call& call) {
  if (!is_kernel_dtype(call.meta().dtype)) return declined_dtype();
  const Tensor column = call.tensor(0, "self"), row = call.tensor(1, "vec2");
  const trace::TensorMeta& meta = call.meta();
  const DType c = compute_dtype(meta.dtype);
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    const int x = nest.cast(nest.load_at(column, {nest.index(0)}), c), y = nest.cast(nest.load_at(row, {nest.index(1)}), c);
    return is_bool(c) ? nest.op(ComputeOp::logical_and, x, y) : nest.mul(x, y);
  }));
  return as_kernel();
}

/// torch.matmul: vectors become matrices for the product and lose the extra dimension again.
Lowered matmul(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  Tensor lhs = call.tensor(0, "self"), rhs = call.tensor(1, call.node.target == "aten.dot.default" ? "tensor" : "other");
  Builder& builder = call.builder;
  if (lhs.rank() == 1) lhs = builder.reshape(lhs, {1, lhs.sizes[0]});
  if (rhs.rank() == 1) rhs = builder.reshape(rhs, {rhs.sizes[0], 1});
  if (rhs.rank() == 2 && lhs.rank() > 2) lhs = as_matrix(builder, lhs);
  call.define(builder.reshape(product(call, lhs, rhs, call.meta().dtype), call.meta().sizes));
  return as_made(call);
}

/// linear(x, weight, bias) = x @ weight.T + bias; a weight of one dimension is one row.
Lowered linear(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  const Tensor x = call.tensor(0, "input"), weight = call.tensor(1, "weight");
  const std::optional<Tensor> bias = call.optional_tensor(2, "bias");
  Builder& builder = call.builder;
  const trace::TensorMeta& meta = call.meta();
  if (weight.rank() < 1 || weight.rank() > 2) throw MalformedNode{"a weight that is no matrix"};
  const Tensor matrix = as_matrix(builder, x);
  const Tensor rows = weight.rank() == 1 ? builder.reshape(weight, {weight.sizes[0], 1}) : transposed(builder, weight);
  const DType c = compute_dtype(meta.dtype);
  const Tensor dot = builder.reshape(product(call, matrix, rows, bias ? c : meta.dtype), meta.sizes);
  if (!bias) {
    call.define(dot);
    return as_made(call);
  }
  call.define(builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        const int left = nest.load(dot);
        return nest.add(left, nest.cast(nest.load(*bias), c));
      },
      &meta));
  return as_made(call);
}

}  // namespace

std::vector<Entry> product_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "library", f}); };
  for (std::string_view op : {"aten.mm.default", "aten.bmm.default", "aten._int_mm.default"}) add(op, mm);
  for (std::string_view op : {"aten.addmm.default", "aten.baddbmm.default", "aten.addmv.default", "aten.addbmm.default"})
    add(op, add_product);
  for (std::string_view op : {"aten.matmul.default", "aten.mv.default", "aten.dot.default", "aten.vdot.default"})
    add(op, matmul);
  for (std::string_view op : {"aten.outer.default", "aten.ger.default"}) add(op, outer);
  add("aten.addr.default", addr);
  add("aten.linear.default", linear);
  return rows;
}

}  // namespace pallascope::lower
