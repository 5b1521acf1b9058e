// Family: norms of vectors and matrices, and what is scaled by them.
#include <algorithm>
#include <cmath>

#include "core/lower/operand.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;
using loop::ReduceOp;

/// The `ord`-norm of `body`'s values over `dims`, which stay with extent 1.
Tensor norm_of(Builder& builder, std::string name, const Sizes& sizes, const std::vector<std::size_t>& dims, double ord, DType c, DType result,
               const std::function<int(NestBuilder&)>& body) {
  const ReduceOp op = !std::isinf(ord) ? ReduceOp::sum : ord > 0 ? ReduceOp::max : ReduceOp::min;
  return builder.reduction(
      std::move(name), sizes, dims, op, c, result, true,
      [&](NestBuilder& nest) {
        const int v = body(nest);
        if (ord == 2) return nest.mul(v, v);
        if (ord == 0) return nest.cast(nest.compare(ComputeOp::ne, v, nest.number(0, v)), c);
        const int magnitude = nest.op(ComputeOp::abs, v);
        return ord == 1 || std::isinf(ord) ? magnitude : nest.op(ComputeOp::pow, magnitude, nest.number(ord, v));
      },
      [&](NestBuilder& nest, int total) {
        if (ord == 2) return nest.op(ComputeOp::sqrt, total);
        if (ord == 1 || ord == 0 || std::isinf(ord)) return total;
        return nest.op(ComputeOp::pow, total, nest.number(1 / ord, total));
      });
}

Lowered vector_norm_over(Call& call, double ord, const std::vector<std::size_t>& dims) {
  const Tensor x = call.tensor(0, "self");
  const DType result = call.meta().dtype, c = compute_dtype(result);
  if (!is_kernel_dtype(x.dtype) || !is_kernel_dtype(result) || !is_float(x.dtype)) return declined_dtype();
  if ((std::isinf(ord) || ord < 0) && points(x.sizes, dims) == 0) return declined("a norm without an identity of an empty axis");
  const Tensor made = norm_of(call.builder, call.node.name, x.sizes, dims, ord, c, result,
                              [&](NestBuilder& nest) { return nest.cast(nest.load(x), c); });
  call.define(call.builder.reshape(made, call.meta().sizes));
  return as_kernel();
}

/// (self, ord, dim) in these places, and in norm's overloads.
Lowered vector_norm(Call& call) {
  const Tensor x = call.tensor(0, "self");
  return vector_norm_over(call, call.has(1, "ord") ? call.number(1, "ord", 2) : 2, call.dims(2, "dim", x.rank()));
}

Lowered frobenius(Call& call) { return vector_norm_over(call, 2, call.dims(1, "dim", call.tensor(0, "self").rank())); }

/// A matrix norm of the two `dims` (row, column); nothing for one that needs singular values.
Lowered matrix_norm_over(Call& call, double ord, const std::vector<std::size_t>& dims) {
  const Tensor x = call.tensor(0, "self");
  const DType result = call.meta().dtype, c = compute_dtype(result);
  if (!is_kernel_dtype(x.dtype) || !is_kernel_dtype(result) || !is_float(x.dtype)) return declined_dtype();
  if (std::abs(ord) != 1 && !std::isinf(ord)) return declined("a matrix norm by singular values");
  const std::size_t summed = std::isinf(ord) ? dims.at(1) : dims.at(0), other = std::isinf(ord) ? dims.at(0) : dims.at(1);
  if (x.sizes[other] == 0) return declined("a matrix norm without an identity of an empty axis");
  Builder& builder = call.builder;
  const Tensor sums = builder.reduction(call.node.name + ".sums", x.sizes, {summed}, ReduceOp::sum, c, c, true, [&](NestBuilder& nest) {
    return nest.op(ComputeOp::abs, nest.cast(nest.load(x), c));
  });
  const Tensor made = builder.reduction(call.node.name, sums.sizes, {other}, ord > 0 ? ReduceOp::max : ReduceOp::min, c, result, true,
                                        [&](NestBuilder& nest) { return nest.load(sums); });
  call.define(builder.reshape(made, call.meta().sizes));
  return as_kernel();
}

/// The dimensions of a matrix as they were given: row, column.
std::vector<std::size_t> matrix_dims(const Call& call, std::size_t place, std::int64_t rank) {
  Sizes given = call.integers(place, "dim");
  if (given.empty()) given = {-2, -1};
  std::vector<std::size_t> dims;
  for (std::int64_t d : given) dims.push_back(Call::dim(d, rank));
  if (dims.size() != 2 || dims[0] == dims[1] || rank < 2) throw MalformedNode{"a matrix norm over what is no matrix"};
  return dims;
}

Lowered matrix_norm(Call& call) {
  const std::vector<std::size_t> dims = matrix_dims(call, 2, call.tensor(0, "self").rank());
  if (!call.node.target.ends_with(".str_ord")) return matrix_norm_over(call, call.number(1, "ord"), dims);
  if (call.text(1, "ord", "fro") != "fro") return declined("a matrix norm by singular values");
  return vector_norm_over(call, 2, {std::min(dims[0], dims[1]), std::max(dims[0], dims[1])});
}

/// linalg_norm(self, ord, dim, keepdim): of all elements, of vectors, or of matrices.
Lowered linalg_norm(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const std::vector<std::size_t> dims = call.dims(2, "dim", x.rank());
  if (!call.has(1, "ord")) return vector_norm_over(call, 2, dims);
  if (!call.has(2, "dim") ? x.rank() < 2 : dims.size() == 1) return vector_norm_over(call, call.number(1, "ord"), dims);
  return matrix_norm_over(call, call.number(1, "ord"), matrix_dims(call, 2, x.rank()));
}

/// dist(self, other, p): the norm of the difference.
Lowered dist(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Tensor a = call.tensor(0, "self"), b = call.tensor(1, "other");
  const double p = call.number(2, "p", 2);
  const DType d = call.meta().dtype, c = compute_dtype(d);
  const Sizes sizes = broadcast(a.sizes, b.sizes);
  std::vector<std::size_t> all(sizes.size());
  for (std::size_t k = 0; k < all.size(); ++k) all[k] = k;
  if ((std::isinf(p) || p < 0) && points(sizes, all) == 0) return declined("a norm without an identity of an empty axis");
  const Tensor made = norm_of(call.builder, call.node.name, sizes, all, p, c, d, [&](NestBuilder& nest) {
    const int left = nest.cast(nest.load(a), c);
    return Rounding(nest, d)(nest.sub(left, nest.cast(nest.load(b), c)));
  });
  call.define(call.builder.reshape(made, {}));
  return as_kernel();
}

std::vector<std::size_t> all_but(std::int64_t rank, std::size_t kept) {
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < static_cast<std::size_t>(rank); ++d)
    if (d != kept) dims.push_back(d);
  return dims;
}

/// renorm(self, p, dim, maxnorm): slices along `dim` are scaled down to the norm.
Lowered renorm(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!kernel_operands(call)) return declined_dtype();
  const double p = call.number(1, "p", 2), most = call.number(3, "maxnorm");
  const std::size_t kept = Call::dim(call.integer(2, "dim"), x.rank());
  const DType d = x.dtype, c = compute_dtype(d);
  if (call.meta().numel() == 0) return declined("renorm of no element");
  const Tensor norms = norm_of(call.builder, call.node.name + ".norm", x.sizes, all_but(x.rank(), kept), p, c, c,
                               [&](NestBuilder& nest) { return nest.cast(nest.load(x), c); });
  return emit(call, [&](NestBuilder& nest) {
    const int norm = nest.load(norms), v = nest.cast(nest.load(x), c);
    const int factor = nest.where(greater(nest, norm, most), nest.div(nest.number(most, norm), plus(nest, norm, 1e-7)), nest.number(1, norm));
    return nest.mul(v, Rounding(nest, d)(factor));
  });
}

/// _weight_norm_interface(v, g, dim) -> v * g / norm, norm; the norm is over all dimensions but `dim`.
Lowered weight_norm(Call& call) {
  const Tensor v = call.tensor(0, "v"), g = call.tensor(1, "g");
  if (!kernel_operands(call)) return declined_dtype();
  const std::int64_t given = call.integer(2, "dim", 0);
  if (given == -1 && call.node.target.starts_with("aten._weight_norm.")) return declined("a norm of the whole weight");
  const std::size_t kept = Call::dim(given, v.rank());
  const DType d = v.dtype, c = compute_dtype(d);
  const DType saved = call.wanted(1) ? call.meta(1).dtype : c;
  const Tensor norms = norm_of(call.builder, call.node.name + ".norm", v.sizes, all_but(v.rank(), kept), 2, c, saved,
                               [&](NestBuilder& nest) { return nest.cast(nest.load(v), c); });
  emit(call, [&](NestBuilder& nest) {
    const int factor = nest.div(nest.cast(nest.load(g), c), nest.cast(nest.load(norms), c));
    return nest.mul(nest.cast(nest.load(v), c), factor);
  });
  if (call.wanted(1)) call.define(call.builder.reshape(norms, call.meta(1).sizes), 1);
  return as_kernel();
}

/// _weight_norm_interface_backward(grad, v, g, norm, dim) -> grads of v and g.
Lowered weight_norm_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_w"), v = call.tensor(1, "saved_v"), g = call.tensor(2, "saved_g"), norm = call.tensor(3, "saved_norms");
  if (!kernel_operands(call)) return declined_dtype();
  const std::size_t kept = Call::dim(call.integer(4, "dim", 0), v.rank());
  const DType c = compute_dtype(v.dtype);
  const auto at = [&](NestBuilder& nest, const Tensor& t) { return nest.cast(nest.load(t), c); };
  const Tensor along = call.builder.reduction(call.node.name + ".along", v.sizes, all_but(v.rank(), kept), ReduceOp::sum, c, c, true,
                                              [&](NestBuilder& nest) { return nest.mul(at(nest, grad), at(nest, v)); });
  emit(call, [&](NestBuilder& nest) {
    const int n = at(nest, norm), factor = nest.div(at(nest, g), n);
    const int share = nest.div(nest.load(along), nest.mul(n, n));
    return nest.mul(factor, nest.sub(at(nest, grad), nest.mul(at(nest, v), share)));
  });
  if (!call.wanted(1)) return as_kernel();
  return emit(call, [&](NestBuilder& nest) { return nest.div(nest.load(along), at(nest, norm)); }, 1);
}

}  // namespace

std::vector<Entry> norm_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "norm", f}); };
  for (std::string_view op : {"aten.linalg_vector_norm.default", "aten.norm.Scalar", "aten.norm.ScalarOpt_dtype", "aten.norm.ScalarOpt_dim",
                              "aten.norm.ScalarOpt_dim_dtype"})
    add(op, vector_norm);
  add("aten.frobenius_norm.dim", frobenius);
  for (std::string_view op : {"aten.linalg_matrix_norm.default", "aten.linalg_matrix_norm.str_ord"}) add(op, matrix_norm);
  add("aten.linalg_norm.default", linalg_norm);
  add("aten.dist.default", dist);
  add("aten.renorm.default", renorm);
  for (std::string_view op : {"aten._weight_norm.default", "aten._weight_norm_interface.default"}) add(op, weight_norm);
  add("aten._weight_norm_interface_backward.default", weight_norm_backward);
  return rows;
}

}  // namespace pallascope::lower
