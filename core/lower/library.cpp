// Family: matrix products. The product itself is a library call; what surrounds it (bias, scaling, masks) is nests.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/index/access.h"
#include "core/lower/builder.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;
using loop::ReduceOp;

/// An operand that JAX views can take from its buffer; else a copy that is.
Tensor operand(Builder& builder, const Tensor& x, std::string_view name) {
  const loop::Buffer& buffer = builder.program().buffers[x.view.buffer];
  const index::Access access = index::access(builder.context(), x.view.index, x.view.axes, buffer.dims);
  if (access.plan) return x;
  return builder.materialise(x, name);
}

/// lhs[batch.., m, k] @ rhs[batch.., k, n], batch dimensions broadcast.
Tensor product(Call& call, Tensor lhs, Tensor rhs) {
  Builder& builder = call.builder;
  if (lhs.rank() < 2 || rhs.rank() < 2) throw MalformedNode{"a matrix product of something that is no matrix"};
  Sizes batch;
  const std::size_t lhs_batch = lhs.sizes.size() - 2, rhs_batch = rhs.sizes.size() - 2;
  for (std::size_t k = 0; k < std::max(lhs_batch, rhs_batch); ++k) {
    const std::size_t from_end = std::max(lhs_batch, rhs_batch) - k;
    const std::int64_t a = from_end <= lhs_batch ? lhs.sizes[lhs_batch - from_end] : 1;
    const std::int64_t b = from_end <= rhs_batch ? rhs.sizes[rhs_batch - from_end] : 1;
    batch.push_back(a == 1 ? b : a);
  }
  const std::int64_t m = lhs.sizes[lhs_batch], k = lhs.sizes[lhs_batch + 1], n = rhs.sizes[rhs_batch + 1];
  const auto with = [&](std::int64_t rows, std::int64_t columns) {
    Sizes sizes = batch;
    sizes.push_back(rows);
    sizes.push_back(columns);
    return sizes;
  };
  const Sizes sizes = with(m, n);
  const DType dtype = lhs.dtype;
  if (k == 0)
    return builder.pointwise(call.node.name, sizes, dtype,
                             [&](NestBuilder& nest) { return nest.constant(to_scalar(0, dtype), dtype); });
  lhs = operand(builder, builder.expand(lhs, with(m, k)), call.node.name + ".lhs");
  rhs = operand(builder, builder.expand(rhs, with(k, n)), call.node.name + ".rhs");
  loop::LibraryCall library;
  library.origin = builder.current;
  library.op = call.node.target;
  library.lhs = lhs.view;
  library.rhs = rhs.view;
  library.output = builder.add_buffer(dtype, sizes);
  const Tensor result = builder.row_major(library.output, sizes);
  if (trace::TensorMeta{dtype, sizes, {}, 0, "cpu", false}.numel() > 0) builder.add_step({library});
  return result;
}

Tensor transposed(Builder& builder, const Tensor& x) {
  if (x.rank() < 2) throw MalformedNode{"a transposition of something that is no matrix"};
  std::vector<std::size_t> order(x.sizes.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return builder.permute(x, order);
}

/// x[.., k] as a matrix [rows, k].
Tensor as_matrix(Builder& builder, const Tensor& x) {
  if (x.rank() == 0) throw MalformedNode{"a matrix product of a scalar"};
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < x.sizes.size(); ++d) rows *= x.sizes[d];
  return builder.reshape(x, {rows, x.sizes.back()});
}

bool in_kernel(const Call& call) { return is_kernel_dtype(call.meta().dtype); }

Lowered mm(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  call.define(product(call, call.tensor(0, "self"), call.tensor(1, "mat2")));
  return as_library();
}

/// beta * self + alpha * (a @ b); the sum is a nest, so that what follows can fuse with it.
Lowered add_product(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  const loop::Scalar beta = call.scalar(99, "beta", std::int64_t{1}), alpha = call.scalar(99, "alpha", std::int64_t{1});
  const Tensor self = call.tensor(0, "self");
  Tensor lhs = call.tensor(1, "mat1"), rhs = call.tensor(2, "mat2");
  const trace::TensorMeta& meta = call.meta();
  Tensor dot;
  if (call.node.target == "aten.addmv.default") {
    rhs = call.builder.reshape(rhs, {rhs.sizes.at(0), 1});
    dot = call.builder.reshape(product(call, lhs, rhs), meta.sizes);
  } else {
    dot = product(call, lhs, rhs);
  }
  const DType c = compute_dtype(meta.dtype);
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    const auto scaled = [&](int value, const loop::Scalar& by) {
      return as_double(by) == 1 ? value : nest.mul(value, nest.constant(to_scalar(as_double(by), c), c));
    };
    const int right = scaled(nest.cast(nest.load(dot), c), alpha);
    // beta 0 means that self is not read, NaN included.
    if (as_double(beta) == 0) return right;
    return nest.add(right, scaled(nest.cast(nest.load(self), c), beta));
  }));
  return as_library();
}

/// torch.matmul: vectors become matrices for the product and lose the extra dimension again.
Lowered matmul(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  Tensor lhs = call.tensor(0, "self"), rhs = call.tensor(1, call.node.target == "aten.dot.default" ? "tensor" : "other");
  Builder& builder = call.builder;
  if (lhs.rank() == 1) lhs = builder.reshape(lhs, {1, lhs.sizes[0]});
  if (rhs.rank() == 1) rhs = builder.reshape(rhs, {rhs.sizes[0], 1});
  if (rhs.rank() == 2 && lhs.rank() > 2) lhs = as_matrix(builder, lhs);
  call.define(builder.reshape(product(call, lhs, rhs), call.meta().sizes));
  return as_library();
}

/// linear(x, weight, bias) = x @ weight.T + bias
Lowered linear(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  const Tensor x = call.tensor(0, "input"), weight = call.tensor(1, "weight");
  const std::optional<Tensor> bias = call.optional_tensor(2, "bias");
  Builder& builder = call.builder;
  if (weight.rank() != 2) return declined("a weight that is no matrix");
  const trace::TensorMeta& meta = call.meta();
  const Tensor matrix = x.rank() == 1 ? builder.reshape(x, {1, x.sizes[0]}) : as_matrix(builder, x);
  const Tensor dot = builder.reshape(product(call, matrix, transposed(builder, weight)), meta.sizes);
  if (!bias) {
    call.define(dot);
    return as_library();
  }
  const DType c = compute_dtype(meta.dtype);
  call.define(builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    const int left = nest.cast(nest.load(dot), c);
    return nest.add(left, nest.cast(nest.load(*bias), c));
  }));
  return as_library();
}

/// Where the overloads of attention keep their arguments (99: by name only).
struct AttentionForm {
  std::size_t mask = 3, dropout = 4, causal = 5, scale = 6, gqa = 7;
};

/// The formula of scaled_dot_product_attention's documentation; a row that is masked everywhere gives 0.
Lowered attention_of(Call& call, const AttentionForm& form) {
  if (!in_kernel(call)) return declined_dtype();
  if (call.number(form.dropout, "dropout_p", 0) != 0)
    return declined("attention with dropout: random values are drawn by PyTorch");
  const Tensor q = call.tensor(0, "query");
  Tensor k = call.tensor(1, "key"), v = call.tensor(2, "value");
  const std::optional<Tensor> mask = call.optional_tensor(form.mask, "attn_mask");
  const bool causal = call.boolean(form.causal, "is_causal", false);
  const trace::TensorMeta& meta = call.meta();
  const DType c = compute_dtype(meta.dtype);
  Builder& builder = call.builder;
  if (q.rank() < 2 || meta.numel() == 0) return declined("attention over an empty tensor");
  const double scale =
      call.has(form.scale, "scale") ? call.number(form.scale, "scale", 1) : 1 / std::sqrt(static_cast<double>(q.sizes.back()));
  if (call.boolean(form.gqa, "enable_gqa", false) && q.rank() >= 3) {
    const auto repeat_heads = [&](const Tensor& x) {
      const std::size_t h = x.sizes.size() - 3;
      if (x.rank() < 3 || x.sizes[h] == 0) throw MalformedNode{"grouped attention without heads"};
      const std::int64_t group = q.sizes[static_cast<std::size_t>(q.rank()) - 3] / x.sizes[h];
      Sizes sizes = x.sizes;
      sizes[h] *= group;
      return builder.reindex(x, sizes, [&](const Index& position) {
        Index source = position;
        source[h] = builder.context().floor_div(position[h], group);
        return source;
      });
    };
    k = repeat_heads(k);
    v = repeat_heads(v);
  }
  const Tensor scores = product(call, q, transposed(builder, k));
  const std::size_t rows = scores.sizes.size() - 2, columns = rows + 1;
  const auto score = [&](NestBuilder& nest) {
    int s = nest.cast(nest.load(scores), c);
    s = nest.mul(s, nest.number(scale, s));
    const auto masked = [&](int kept) { return nest.where(kept, s, nest.number(-INFINITY, s)); };
    if (causal)
      s = masked(nest.compare(ComputeOp::le, nest.index_value(nest.index(columns), DType::i32),
                              nest.index_value(nest.index(rows), DType::i32)));
    if (mask && is_bool(mask->dtype)) s = masked(nest.load(*mask));
    if (mask && !is_bool(mask->dtype)) s = nest.add(s, nest.cast(nest.load(*mask), c));
    return s;
  };
  const Tensor scaled = builder.pointwise(call.node.name + ".scores", scores.sizes, c, score);
  const Tensor top = builder.reduction(call.node.name + ".max", scores.sizes, {columns}, ReduceOp::max, c, c, true,
                                       [&](NestBuilder& nest) { return nest.load(scaled); });
  const Tensor exponential = builder.pointwise(call.node.name + ".exp", scores.sizes, c, [&](NestBuilder& nest) {
    return nest.op(ComputeOp::exp, nest.below(nest.load(scaled), nest.load(top)));
  });
  const Tensor total = builder.reduction(call.node.name + ".sum", scores.sizes, {columns}, ReduceOp::sum, c, c, true,
                                         [&](NestBuilder& nest) { return nest.load(exponential); });
  const Tensor weights = builder.pointwise(call.node.name + ".softmax", scores.sizes, meta.dtype, [&](NestBuilder& nest) {
    const int m = nest.load(top);
    const int ratio = nest.div(nest.load(exponential), nest.load(total));
    return nest.where(nest.compare(ComputeOp::eq, m, nest.number(-INFINITY, m)), nest.number(0, ratio), ratio);
  });
  call.define(builder.reshape(product(call, weights, v), meta.sizes));
  if (call.wanted(1)) {
    // The logarithm of each row's sum, for the gradient.
    const Tensor rows_sum = builder.pointwise(call.node.name + ".logsumexp", total.sizes, call.meta(1).dtype, [&](NestBuilder& nest) {
      const int log_total = nest.op(ComputeOp::log, nest.load(total));
      return nest.add(log_total, nest.load(top));
    });
    call.define(builder.reshape(rows_sum, call.meta(1).sizes), 1);
  }
  return as_library();
}

/// scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal, *, scale, enable_gqa)
Lowered attention(Call& call) { return attention_of(call, {}); }

/// _scaled_dot_product_flash_attention_for_cpu(q, k, v, dropout_p, is_causal, *, attn_mask, scale) -> out, logsumexp
Lowered flash_attention(Call& call) { return attention_of(call, {99, 3, 4, 99, 99}); }

}  // namespace

std::vector<Entry> library_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f, Takes takes = Takes::of_family) { rows.push_back({op, "library", f, takes}); };
  for (std::string_view op : {"aten.mm.default", "aten.bmm.default"}) add(op, mm);
  for (std::string_view op : {"aten.addmm.default", "aten.baddbmm.default", "aten.addmv.default"}) add(op, add_product);
  for (std::string_view op : {"aten.matmul.default", "aten.mv.default", "aten.dot.default"}) add(op, matmul);
  add("aten.linear.default", linear);
  add("aten.scaled_dot_product_attention.default", attention, Takes::floats);
  add("aten._scaled_dot_product_flash_attention_for_cpu.default", flash_attention, Takes::floats);
  return rows;
}

}  // namespace pallascope::lower
