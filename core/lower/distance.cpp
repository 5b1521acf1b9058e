// Family: distances and similarities of vectors.
#include <algorithm>
#include <cmath>

#include "core/lower/library.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;
using loop::ReduceOp;

/// A value rounded to `dtype` as an ATen operator's result is, and taken on in the compute dtype.
int rounded(NestBuilder& nest, int value, DType dtype) { return nest.cast(nest.cast(value, dtype), compute_dtype(dtype)); }

Sizes broadcast(const Sizes& a, const Sizes& b) {
  Sizes sizes(std::max(a.size(), b.size()), 1);
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const std::int64_t m = k < a.size() ? a[a.size() - 1 - k] : 1, n = k < b.size() ? b[b.size() - 1 - k] : 1;
    if (m != n && m != 1 && n != 1) throw MalformedNode{"extents that do not broadcast"};
    sizes[sizes.size() - 1 - k] = m == 1 ? n : m;
  }
  return sizes;
}

/// The p-norm of `body` over dimension `d`, which stays with extent 1, rounded to `dtype`.
Tensor norm(Builder& builder, const std::string& name, const Sizes& sizes, std::size_t d, double p, DType dtype,
            const std::function<int(NestBuilder&)>& body) {
  const DType c = compute_dtype(dtype);
  if (sizes.at(d) == 0) {
    Sizes outer = sizes;
    outer[d] = 1;
    return filled(builder, name, outer, dtype, 0);
  }
  return builder.reduction(
      name, sizes, {d}, std::isinf(p) ? ReduceOp::max : ReduceOp::sum, c, dtype, true,
      [&](NestBuilder& nest) {
        const int v = body(nest);
        if (p == 2) return nest.mul(v, v);
        const int size = nest.op(ComputeOp::abs, v);
        if (p == 1 || std::isinf(p)) return size;
        if (p == 0) return nest.cast(nest.compare(ComputeOp::ne, v, nest.number(0, v)), c);
        return nest.op(ComputeOp::pow, size, nest.number(p, v));
      },
      [&](NestBuilder& nest, int total) {
        if (p == 2) return nest.op(ComputeOp::sqrt, total);
        if (p == 1 || p == 0 || std::isinf(p)) return total;
        return nest.op(ComputeOp::pow, total, nest.number(1 / p, total));
      });
}

/// Both operands have the result's dtype, and it is a float: promotion is left to PyTorch.
bool same_floats(const Call& call, const Tensor& x, const Tensor& y) {
  const DType dtype = call.meta().dtype;
  return is_kernel_dtype(dtype) && is_float(dtype) && x.dtype == dtype && y.dtype == dtype;
}

/// linalg_vecdot(x, y, *, dim): products, then their sum; two vectors are one product of the library.
Lowered vecdot(Call& call) {
  const trace::TensorMeta& meta = call.meta();
  Builder& builder = call.builder;
  const Tensor x = call.tensor(0, "x"), y = call.tensor(1, "y");
  if (!same_floats(call, x, y)) return declined_dtype();
  if (x.rank() == 1 && y.rank() == 1) {
    call.define(builder.reshape(product(call, builder.reshape(x, {1, x.sizes[0]}), builder.reshape(y, {y.sizes[0], 1}), meta.dtype), meta.sizes));
    return as_made(call);
  }
  const Sizes sizes = broadcast(x.sizes, y.sizes);
  const std::size_t d = Call::dim(call.integer(99, "dim", -1), static_cast<std::int64_t>(sizes.size()));
  const DType c = compute_dtype(meta.dtype);
  call.define(builder.reduction(call.node.name, sizes, {d}, ReduceOp::sum, c, meta.dtype, false, [&](NestBuilder& nest) {
    return rounded(nest, nest.mul(nest.cast(nest.load(x), c), nest.cast(nest.load(y), c)), meta.dtype);
  }));
  return as_kernel();
}

/// cosine_similarity(x1, x2, dim, eps): the sum of x1 / max(|x1|, eps) * x2 / max(|x2|, eps).
Lowered cosine_similarity(Call& call) {
  const trace::TensorMeta& meta = call.meta();
  Builder& builder = call.builder;
  const Tensor x = call.tensor(0, "x1"), y = call.tensor(1, "x2");
  if (!same_floats(call, x, y)) return declined_dtype();
  const Sizes sizes = broadcast(x.sizes, y.sizes);
  if (sizes.empty()) return declined("the similarity of two numbers");
  const std::size_t d = Call::dim(call.integer(2, "dim", 1), static_cast<std::int64_t>(sizes.size()));
  const double eps = call.number(3, "eps", 1e-8);
  const DType dtype = meta.dtype, c = compute_dtype(dtype);
  const auto length = [&](const Tensor& v, const char* which) {
    return norm(builder, call.node.name + which, sizes, d, 2, dtype, [&](NestBuilder& nest) { return nest.cast(nest.load(v), c); });
  };
  const Tensor x_length = length(x, ".x1"), y_length = length(y, ".x2");
  const auto unit = [&](NestBuilder& nest, const Tensor& v, const Tensor& size) {
    const int n = nest.cast(nest.load(size), c);
    const int held = rounded(nest, nest.op(ComputeOp::maximum, n, nest.number(eps, n)), dtype);
    return rounded(nest, nest.div(nest.cast(nest.load(v), c), held), dtype);
  };
  call.define(builder.reduction(call.node.name, sizes, {d}, ReduceOp::sum, c, dtype, false, [&](NestBuilder& nest) {
    return rounded(nest, nest.mul(unit(nest, x, x_length), unit(nest, y, y_length)), dtype);
  }));
  return as_kernel();
}

/// pairwise_distance(x1, x2, p, eps, keepdim): the norm of x1 - x2 + eps over the last dimension.
Lowered pairwise_distance(Call& call) {
  const trace::TensorMeta& meta = call.meta();
  const Tensor x = call.tensor(0, "x1"), y = call.tensor(1, "x2");
  if (!same_floats(call, x, y)) return declined_dtype();
  const Sizes sizes = broadcast(x.sizes, y.sizes);
  if (sizes.empty()) return declined("the distance of two numbers");
  const double p = call.number(2, "p", 2), eps = call.number(3, "eps", 1e-6);
  if (p < 0) return declined("a negative power");
  const DType dtype = meta.dtype, c = compute_dtype(dtype);
  const Tensor found = norm(call.builder, call.node.name, sizes, sizes.size() - 1, p, dtype, [&](NestBuilder& nest) {
    const int difference = rounded(nest, nest.sub(nest.cast(nest.load(x), c), nest.cast(nest.load(y), c)), dtype);
    return rounded(nest, nest.add(difference, nest.number(eps, difference)), dtype);
  });
  call.define(call.builder.reshape(found, meta.sizes));
  return as_kernel();
}

/// cdist(x1[.., p, m], x2[.., r, m], p, compute_mode): the distance of each row of x1 to each of x2. As eager does, a
/// Euclidean one of more than 25 rows goes through a product: |x|^2 + |y|^2 - 2 x.y, which is quicker and less exact.
Lowered cdist(Call& call) {
  const trace::TensorMeta& meta = call.meta();
  if (!is_float(meta.dtype) || !is_kernel_dtype(meta.dtype)) return declined_dtype();
  Builder& builder = call.builder;
  const Tensor x = call.tensor(0, "x1"), y = call.tensor(1, "x2");
  if (x.rank() < 2 || y.rank() < 2) throw MalformedNode{"distances of something that is no matrix"};
  const double p = call.number(2, "p", 2);
  const std::int64_t mode = call.has(3, "compute_mode") ? call.integer(3, "compute_mode") : 0;
  const std::size_t rank = meta.sizes.size();
  const std::int64_t m = x.sizes.back(), rows = meta.sizes[rank - 2], columns = meta.sizes[rank - 1];
  const DType dtype = meta.dtype;
  const std::string& name = call.node.name;
  Sizes left = meta.sizes, right = meta.sizes;
  left[rank - 1] = m;
  right[rank - 2] = columns;
  right[rank - 1] = m;
  const Tensor a = builder.expand(x, left), b = builder.expand(y, right);
  if (p == 2 && m > 0 && meta.numel() > 0 && (mode == 1 || (mode == 0 && (rows > 25 || columns > 25)))) {
    // [-2x, |x|^2, 1] @ [y, 1, |y|^2].T: the squares are added up with the rest.
    const auto extended = [&](const Tensor& v, bool first) {
      Sizes sizes = v.sizes;
      const Tensor squares = builder.reduction(name + ".squares", v.sizes, {rank - 1}, ReduceOp::sum, dtype, dtype, true, [&](NestBuilder& nest) {
        const int one = nest.load(v);
        return nest.mul(one, one);
      });
      sizes[rank - 1] = m + 2;
      const loop::BufferId buffer = builder.add_buffer(dtype, sizes);
      const auto fill = [&](std::int64_t start, std::int64_t count, const std::function<int(NestBuilder&)>& body) {
        Sizes part = sizes;
        part[rank - 1] = count;
        NestBuilder nest(builder, name + ".extended", part);
        Index where = nest.index();
        where[rank - 1] = builder.context().add(where[rank - 1], builder.context().constant(start));
        const int value = body(nest);
        nest.store_into(buffer, loop::flatten(builder.context(), where, sizes), value);
      };
      fill(0, m, [&](NestBuilder& nest) {
        const int value = nest.load(v);
        return first ? nest.mul(value, nest.number(-2, value)) : value;
      });
      fill(m, 1, [&](NestBuilder& nest) { return first ? nest.load(squares) : nest.constant(1.0, dtype); });
      fill(m + 1, 1, [&](NestBuilder& nest) { return first ? nest.constant(1.0, dtype) : nest.load(squares); });
      return builder.row_major(buffer, sizes);
    };
    const Tensor squares = product(call, extended(a, true), transposed(builder, extended(b, false)), dtype);
    call.define(builder.pointwise(name, meta.sizes, dtype, [&](NestBuilder& nest) {
      const int value = nest.load(squares);
      return nest.op(ComputeOp::sqrt, nest.op(ComputeOp::maximum, value, nest.number(0, value)));
    }));
    return as_made(call);
  }
  Sizes sizes = meta.sizes;
  sizes.push_back(m);
  const Tensor found = norm(builder, name, sizes, rank, p, dtype, [&](NestBuilder& nest) {
    Index at = nest.index(), row(at.begin(), at.end() - 3), column = row;
    row.insert(row.end(), {at[rank - 2], at[rank]});
    column.insert(column.end(), {at[rank - 1], at[rank]});
    return nest.sub(nest.load_at(a, row), nest.load_at(b, column));
  });
  call.define(builder.reshape(found, meta.sizes));
  return as_kernel();
}

}  // namespace

std::vector<Entry> distance_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "library", f}); };
  add("aten.linalg_vecdot.default", vecdot);
  add("aten.cosine_similarity.default", cosine_similarity);
  add("aten.pairwise_distance.default", pairwise_distance);
  for (std::string_view op : {"aten.cdist.default", "aten._cdist_forward.default", "aten._euclidean_dist.default"}) add(op, cdist);
  return rows;
}

}  // namespace pallascope::lower
