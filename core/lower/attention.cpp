// Family: attention. Two library products with a softmax between them that is nests; the gradient is five products.
#include <cmath>
#include <optional>

#include "core/lower/library.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;
using loop::ReduceOp;

/// Where the overloads of attention keep their arguments (99: by name only).
struct AttentionForm {
  std::size_t mask = 3, dropout = 4, causal = 5, scale = 6, gqa = 7;
};

/// Each head `group` times, where queries have more heads than keys.
Tensor repeated_heads(Builder& builder, const Tensor& x, std::int64_t group) {
  if (group == 1) return x;
  const std::size_t h = x.sizes.size() - 3;
  Sizes sizes = x.sizes;
  sizes[h] *= group;
  return builder.reindex(x, sizes, [&](const Index& position) {
    Index source = position;
    source[h] = builder.context().floor_div(position[h], group);
    return source;
  });
}

std::int64_t heads_a_key(const Tensor& q, const Tensor& k) {
  if (q.rank() < 3 || k.rank() != q.rank()) return 1;
  const std::int64_t heads = q.sizes[q.sizes.size() - 3], own = k.sizes[k.sizes.size() - 3];
  if (own == heads || own <= 0) return 1;
  return heads % own == 0 ? heads / own : 1;
}

bool innermost_is_dense(const Call& call, std::size_t index, std::string_view name) {
  const trace::TensorMeta& meta = *call.builder.graph().values[*call.argument(index, name)->get<trace::ValueId>()].tensor;
  return meta.strides.empty() || meta.sizes.back() <= 1 || meta.strides.back() == 1;
}

/// Whether eager runs its flash kernel for scaled_dot_product_attention on a CPU. It shows in 16-bit results alone: that
/// kernel rounds the exponentials, the plain formula works in f32 to the end.
bool is_flash(const Call& call, const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask, bool grouped) {
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) return false;
  if (q.sizes[0] != k.sizes[0] || q.sizes[0] != v.sizes[0] || (!grouped && (q.sizes[1] != k.sizes[1] || q.sizes[1] != v.sizes[1])))
    return false;
  if (q.sizes[3] != k.sizes[3] || q.sizes[3] != v.sizes[3]) return false;
  if (mask && mask->rank() != 2 && mask->rank() != 4) return false;
  return innermost_is_dense(call, 0, "query") && innermost_is_dense(call, 1, "key") && innermost_is_dense(call, 2, "value");
}

/// The scaled and masked score of `scores` in the compute dtype.
struct Scores {
  const Tensor& products;
  double scale = 1;
  bool causal = false;
  const std::optional<Tensor>& mask;

  int operator()(NestBuilder& nest) const {
    const std::size_t rows = products.sizes.size() - 2, columns = rows + 1;
    int s = nest.load(products);
    s = nest.mul(s, nest.number(scale, s));
    const auto masked = [&](int kept) { return nest.where(kept, s, nest.number(-INFINITY, s)); };
    if (causal)
      s = masked(nest.compare(ComputeOp::le, nest.index_value(nest.index(columns), DType::i32),
                              nest.index_value(nest.index(rows), DType::i32)));
    if (mask && is_bool(mask->dtype)) s = masked(nest.load(*mask));
    if (mask && !is_bool(mask->dtype)) s = nest.add(s, nest.cast(nest.load(*mask), nest.dtype(s)));
    return s;
  }
};

double scale_of(const Call& call, std::size_t index, const Tensor& q) {
  return call.has(index, "scale") ? call.number(index, "scale", 1) : 1 / std::sqrt(static_cast<double>(q.sizes.back()));
}

Tensor empty_result(Builder& builder, const trace::TensorMeta& meta) {
  return builder.row_major(builder.add_buffer(meta.dtype, meta.sizes), meta.sizes);
}

enum class Variant { chosen, flash, math };

/// The formula of scaled_dot_product_attention's documentation; a row that is masked everywhere gives 0.
Lowered attention_of(Call& call, const AttentionForm& form, Variant variant) {
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype) || !is_float(meta.dtype)) return declined_dtype();
  if (call.number(form.dropout, "dropout_p", 0) != 0)
    return declined("attention with dropout: random values are drawn by PyTorch");
  const Tensor q = call.tensor(0, "query");
  Tensor k = call.tensor(1, "key"), v = call.tensor(2, "value");
  const std::optional<Tensor> mask = call.optional_tensor(form.mask, "attn_mask");
  const DType c = compute_dtype(meta.dtype);
  Builder& builder = call.builder;
  if (q.rank() < 2 || k.rank() < 2 || v.rank() < 2) throw MalformedNode{"attention over something that is no matrix"};
  if (meta.numel() == 0) {
    for (std::size_t output = 0; output < call.outputs(); ++output)
      if (call.wanted(output)) call.define(filled(builder, call.node.name, call.meta(output).sizes, call.meta(output).dtype, 0), output);
    return as_kernel();
  }
  const bool grouped = variant == Variant::flash || call.boolean(form.gqa, "enable_gqa", false);
  const bool flash = variant == Variant::flash || (variant == Variant::chosen && is_flash(call, q, k, v, mask, grouped));
  if (grouped) {
    k = repeated_heads(builder, k, heads_a_key(q, k));
    v = repeated_heads(builder, v, heads_a_key(q, v));
  }
  const Tensor products = product(call, q, transposed(builder, k), c);
  const std::size_t columns = products.sizes.size() - 1;
  if (products.sizes[columns] == 0) {
    call.define(filled(builder, call.node.name, meta.sizes, meta.dtype, 0));
    if (call.wanted(1)) call.define(empty_result(builder, call.meta(1)), 1);
    return as_kernel();
  }
  const Scores score{products, scale_of(call, form.scale, q), call.boolean(form.causal, "is_causal", false), mask};
  const Tensor scaled = builder.pointwise(call.node.name + ".scores", products.sizes, c, score);
  const Tensor top = builder.reduction(call.node.name + ".max", products.sizes, {columns}, ReduceOp::max, c, c, true,
                                       [&](NestBuilder& nest) { return nest.load(scaled); });
  const Tensor exponential = builder.pointwise(call.node.name + ".exp", products.sizes, c, [&](NestBuilder& nest) {
    return nest.op(ComputeOp::exp, nest.below(nest.load(scaled), nest.load(top)));
  });
  const Tensor total = builder.reduction(call.node.name + ".sum", products.sizes, {columns}, ReduceOp::sum, c, c, true,
                                         [&](NestBuilder& nest) { return nest.load(exponential); });
  const auto or_zero = [&](NestBuilder& nest, int value) {
    const int m = nest.load(top);
    return nest.where(nest.compare(ComputeOp::eq, m, nest.number(-INFINITY, m)), nest.number(0, value), value);
  };
  // Divided after the product: that is one quotient an element of the result, not one a score.
  const DType rounded = flash ? meta.dtype : c;
  const Tensor weights = cast_tensor(builder, exponential, rounded, call.node.name + ".rounded");
  const Tensor sums = product(call, weights, cast_tensor(builder, v, rounded, call.node.name + ".value"), c);
  const Tensor result = builder.pointwise(
      call.node.name, sums.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        const int sum = nest.load(sums);
        return or_zero(nest, nest.div(sum, nest.load(total)));
      },
      meta.sizes.size() == sums.sizes.size() ? &meta : nullptr);
  call.define(builder.reshape(result, meta.sizes));
  if (!call.wanted(1)) return as_made(call);
  if (variant == Variant::math) {
    call.define(builder.pointwise(call.node.name + ".softmax", products.sizes, call.meta(1).dtype,
                                  [&](NestBuilder& nest) {
                                    const int value = nest.load(exponential);
                                    return or_zero(nest, nest.div(value, nest.load(total)));
                                  }),
                1);
    return as_made(call);
  }
  // The logarithm of each row's sum, for the gradient; 0 for a row that is masked everywhere.
  const Tensor rows_sum = builder.pointwise(call.node.name + ".logsumexp", total.sizes, call.meta(1).dtype, [&](NestBuilder& nest) {
    return or_zero(nest, nest.add(nest.op(ComputeOp::log, nest.load(total)), nest.load(top)));
  });
  call.define(builder.reshape(rows_sum, call.meta(1).sizes), 1);
  return as_made(call);
}

/// scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal, *, scale, enable_gqa)
Lowered attention(Call& call) { return attention_of(call, {3, 4, 5, 99, 99}, Variant::chosen); }

/// _scaled_dot_product_flash_attention_for_cpu(q, k, v, dropout_p, is_causal, *, attn_mask, scale) -> out, logsumexp
Lowered flash_attention(Call& call) { return attention_of(call, {99, 3, 4, 99, 99}, Variant::flash); }

/// _scaled_dot_product_attention_math(q, k, v, attn_mask, dropout_p, is_causal, dropout_mask, *, scale, enable_gqa)
/// -> out, weights
Lowered math_attention(Call& call) {
  if (call.has(6, "dropout_mask")) return declined("attention with dropout: random values are drawn by PyTorch");
  return attention_of(call, {3, 4, 5, 99, 99}, Variant::math);
}

/// _scaled_dot_product_flash_attention_for_cpu_backward(grad_out, q, k, v, out, logsumexp, dropout_p, is_causal, *,
/// attn_mask, scale) -> gradients of q, k, v. With weights P and D = sum(grad_out * out) of each row: the scores' gradient
/// is P * (grad_out @ v.T - D).
Lowered flash_attention_backward(Call& call) {
  Builder& builder = call.builder;
  const Tensor gradient = call.tensor(0, "grad_out"), q = call.tensor(1, "query"), out = call.tensor(4, "out");
  if (!is_kernel_dtype(q.dtype)) return declined_dtype();
  if (call.number(6, "dropout_p", 0) != 0) return declined("attention with dropout: random values are drawn by PyTorch");
  const Tensor own_k = call.tensor(2, "key"), own_v = call.tensor(3, "value");
  if (q.rank() != 4 || own_k.rank() != 4 || own_v.rank() != 4) throw MalformedNode{"flash attention of another rank than 4"};
  if (numel(q.sizes) == 0 || numel(own_k.sizes) == 0) {
    for (std::size_t output = 0; output < call.outputs(); ++output)
      if (call.wanted(output)) call.define(filled(builder, call.node.name, call.meta(output).sizes, call.meta(output).dtype, 0), output);
    return as_kernel();
  }
  const std::int64_t group = heads_a_key(q, own_k);
  const Tensor k = repeated_heads(builder, own_k, group), v = repeated_heads(builder, own_v, group);
  const std::optional<Tensor> mask = call.optional_tensor(99, "attn_mask");
  const DType c = compute_dtype(q.dtype), narrow = q.dtype;
  const double scale = scale_of(call, 99, q);
  const std::string& name = call.node.name;
  const Tensor products = product(call, q, transposed(builder, k), c);
  const Tensor rows = builder.reshape(call.tensor(5, "logsumexp"), {q.sizes[0], q.sizes[1], q.sizes[2], 1});
  const Scores score{products, scale, call.boolean(7, "is_causal"), mask};
  const Tensor weights = builder.pointwise(name + ".weights", products.sizes, c, [&](NestBuilder& nest) {
    return nest.op(ComputeOp::exp, nest.sub(score(nest), nest.cast(nest.load(rows), c)));
  });
  const Tensor inner = builder.reduction(name + ".inner", out.sizes, {3}, ReduceOp::sum, c, c, true, [&](NestBuilder& nest) {
    return nest.mul(nest.cast(nest.load(gradient), c), nest.cast(nest.load(out), c));
  });
  const Tensor outer = product(call, gradient, transposed(builder, v), c);
  const Tensor scores_gradient = builder.pointwise(name + ".scores", products.sizes, narrow, [&](NestBuilder& nest) {
    return nest.cast(nest.mul(nest.load(weights), nest.sub(nest.load(outer), nest.load(inner))), narrow);
  });
  const auto finish = [&](const Tensor& sums, double factor, std::int64_t heads, std::size_t output) {
    const trace::TensorMeta& meta = call.meta(output);
    const auto scaled = [&](NestBuilder& nest, int value) { return factor == 1 ? value : nest.mul(value, nest.number(factor, value)); };
    if (heads == 1) {
      call.define(builder.pointwise(name, meta.sizes, meta.dtype, [&](NestBuilder& nest) { return scaled(nest, nest.load(sums)); }, &meta),
                  output);
      return;
    }
    const Sizes& s = sums.sizes;
    const Tensor split = builder.reshape(sums, {s[0], s[1] / heads, heads, s[2], s[3]});
    call.define(builder.reduction(
                    name, split.sizes, {2}, ReduceOp::sum, c, meta.dtype, false, [&](NestBuilder& nest) { return nest.load(split); },
                    [&](NestBuilder& nest, int total) { return scaled(nest, total); }),
                output);
  };
  if (call.wanted(0)) finish(product(call, scores_gradient, k, c), scale, 1, 0);
  if (call.wanted(1)) finish(product(call, transposed(builder, scores_gradient), q, c), scale, group, 1);
  if (call.wanted(2)) {
    const Tensor rounded = cast_tensor(builder, weights, narrow, name + ".rounded");
    finish(product(call, transposed(builder, rounded), gradient, c), 1, group, 2);
  }
  return as_made(call);
}

}  // namespace

std::vector<Entry> attention_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "library", f}); };
  add("aten.scaled_dot_product_attention.default", attention);
  add("aten._scaled_dot_product_flash_attention_for_cpu.default", flash_attention);
  add("aten._scaled_dot_product_attention_math.default", math_attention);
  add("aten._scaled_dot_product_flash_attention_for_cpu_backward.default", flash_attention_backward);
  return rows;
}

}  // namespace pallascope::lower
