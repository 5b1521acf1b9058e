// Family: losses of elements and of rows. ATen's losses are a tensor of losses that is then summed or averaged.
#include <cmath>

#include "core/lower/loss.h"

namespace pallascope::lower {

using loop::ComputeOp;
using loop::ReduceOp;

Lowered reduced_loss(Call& call, const Sizes& sizes, std::int64_t reduction, const LossBody& body, double divisor) {
  const trace::TensorMeta& meta = call.meta();
  const DType d = meta.dtype, c = compute_dtype(d);
  if (reduction == 0) {
    call.define(call.builder.pointwise(call.node.name, sizes, d, body, sizes == meta.sizes ? &meta : nullptr));
    return as_kernel();
  }
  std::vector<std::size_t> all;
  double count = 1;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    all.push_back(k);
    count *= static_cast<double>(sizes[k]);
  }
  if (divisor >= 0) count = divisor;
  const Tensor total = call.builder.reduction(
      call.node.name, sizes, all, ReduceOp::sum, c, d, false, [&](NestBuilder& n) { return Rounding(n, d)(body(n)); },
      [&](NestBuilder& n, int sum) { return reduction == 1 ? n.exact_div(sum, n.number(count, sum)) : sum; });
  call.define(call.builder.reshape(total, meta.sizes));
  return as_kernel();
}

namespace {

/// The tensor arguments of a loss, loaded in the compute dtype.
struct Loaded {
  NestBuilder& n;
  DType c;
  int operator()(const Tensor& t) const { return n.cast(n.load(t), c); }
};

using PairBody = std::function<int(NestBuilder&, int, int)>;

/// A loss of input and target element by element; `reduction` is argument number `place`.
Lowered pair_loss(Call& call, std::size_t place, const PairBody& body) {
  if (!kernel_operands(call)) return declined_dtype();
  const Tensor x = call.tensor(0, "self"), y = call.tensor(1, "target");
  const DType c = compute_dtype(call.meta().dtype);
  return reduced_loss(call, broadcast(x.sizes, y.sizes), call.integer(place, "reduction", 1), [&](NestBuilder& n) {
    const Loaded load{n, c};
    const int input = load(x);
    return body(n, input, load(y));
  });
}

/// grad_input of a loss of elements: `body` gives the slope for (input, target).
Lowered pair_gradient(Call& call, std::size_t place, double factor, const PairBody& body) {
  if (!kernel_operands(call)) return declined_dtype();
  const Tensor grad = call.tensor(0, "grad_output"), x = call.tensor(1, "self"), y = call.tensor(2, "target");
  const trace::TensorMeta& meta = call.meta();
  const DType c = compute_dtype(meta.dtype);
  const bool mean = call.integer(place, "reduction", 1) == 1;
  return emit(call, [&](NestBuilder& n) {
    const Loaded load{n, c};
    const int g = load(grad), input = load(x);
    const int slope = body(n, input, load(y));
    return n.mul(scale(n, slope, mean ? factor / static_cast<double>(meta.numel()) : factor), g);
  });
}

Lowered mse(Call& call) {
  const DType d = call.meta().dtype;
  return pair_loss(call, 2, [d](NestBuilder& n, int x, int y) {
    const int difference = Rounding(n, d)(n.sub(x, y));
    return n.mul(difference, difference);
  });
}
Lowered mse_backward(Call& call) {
  return pair_gradient(call, 3, 2, [](NestBuilder& n, int x, int y) { return n.sub(x, y); });
}

Lowered l1(Call& call) {
  const DType d = call.meta().dtype;
  return pair_loss(call, 2, [d](NestBuilder& n, int x, int y) { return n.op(ComputeOp::abs, Rounding(n, d)(n.sub(x, y))); });
}

Lowered smooth_l1(Call& call) {
  const double beta = call.number(3, "beta", 1);
  return pair_loss(call, 2, [beta](NestBuilder& n, int x, int y) {
    const int z = n.op(ComputeOp::abs, n.sub(x, y));
    if (beta == 0) return z;
    return n.where(less(n, z, beta), n.div(n.mul(scale(n, z, 0.5), z), n.number(beta, z)), plus(n, z, -0.5 * beta));
  });
}
Lowered smooth_l1_backward(Call& call) {
  if (!is_float(call.meta().dtype)) return declined_dtype();
  const double beta = call.number(4, "beta", 1);
  return pair_gradient(call, 3, 1, [beta](NestBuilder& n, int x, int y) {
    const int z = n.sub(x, y), one = n.number(1, z);
    const int inside = beta == 0 ? n.number(0, z) : n.div(z, n.number(beta, z));
    return n.where(at_most(n, z, -beta), n.number(-1, z), n.where(at_least(n, z, beta), one, inside));
  });
}

Lowered huber(Call& call) {
  const double delta = call.number(3, "delta", 1);
  return pair_loss(call, 2, [delta](NestBuilder& n, int x, int y) {
    const int z = n.op(ComputeOp::abs, n.sub(x, y));
    return n.where(at_most(n, z, delta), n.mul(scale(n, z, 0.5), z), scale(n, plus(n, z, -0.5 * delta), delta));
  });
}
Lowered huber_backward(Call& call) {
  const double delta = call.number(4, "delta", 1);
  return pair_gradient(call, 3, 1, [delta](NestBuilder& n, int x, int y) {
    const int z = n.sub(x, y);
    return n.where(at_most(n, z, -delta), n.number(-delta, z), n.where(at_least(n, z, delta), n.number(delta, z), z));
  });
}

Lowered soft_margin(Call& call) {
  const DType d = call.meta().dtype;
  return pair_loss(call, 2, [d](NestBuilder& n, int x, int y) {
    const Rounding round(n, d);
    return n.op(ComputeOp::log1p, round(n.op(ComputeOp::exp, round(n.mul(n.op(ComputeOp::neg, x), y)))));
  });
}
Lowered soft_margin_backward(Call& call) {
  return pair_gradient(call, 3, -1, [](NestBuilder& n, int x, int y) {
    const int z = n.op(ComputeOp::exp, n.mul(n.op(ComputeOp::neg, y), x));
    return n.div(n.mul(y, z), plus(n, z, 1));
  });
}

/// binary_cross_entropy(input, target, weight, reduction): logarithms are held at -100.
Lowered cross_entropy_of_two(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Tensor x = call.tensor(0, "self"), y = call.tensor(1, "target");
  const std::optional<Tensor> weight = call.optional_tensor(2, "weight");
  const DType d = call.meta().dtype, c = compute_dtype(d);
  return reduced_loss(call, x.sizes, call.integer(3, "reduction", 1), [&](NestBuilder& n) {
    const Loaded load{n, c};
    const int p = load(x), t = load(y);
    n.check(both(n, at_least(n, p, 0), at_most(n, p, 1)), "all elements of input should be between 0 and 1");
    const Rounding round(n, d);
    const int right = maximum(n, round(n.op(ComputeOp::log, p)), -100);
    const int wrong = maximum(n, round(n.op(ComputeOp::log1p, n.op(ComputeOp::neg, p))), -100);
    const int first = round(n.mul(round(plus(n, t, -1)), wrong));
    const int loss = n.sub(first, round(n.mul(t, right)));
    return weight ? n.mul(round(loss), load(*weight)) : loss;
  });
}
Lowered cross_entropy_of_two_backward(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Tensor grad = call.tensor(0, "grad_output"), x = call.tensor(1, "self"), y = call.tensor(2, "target");
  const std::optional<Tensor> weight = call.optional_tensor(3, "weight");
  const trace::TensorMeta& meta = call.meta();
  const DType d = meta.dtype, c = compute_dtype(d);
  const bool mean = call.integer(4, "reduction", 1) == 1;
  return emit(call, [&](NestBuilder& n) {
    const Loaded load{n, c};
    const Rounding round(n, d);
    const int g = load(grad), p = load(x), t = load(y);
    const int below = maximum(n, n.mul(n.sub(n.number(1, p), p), p), 1e-12);
    int made = n.div(n.mul(g, n.sub(p, t)), below);
    if (weight) made = n.mul(round(made), load(*weight));
    return mean ? n.div(round(made), n.number(static_cast<double>(meta.numel()), made)) : made;
  });
}

int log_sigmoid_of(NestBuilder& n, int x) {
  const int tail = n.op(ComputeOp::exp, n.op(ComputeOp::neg, n.op(ComputeOp::abs, x)));
  return n.sub(minimum(n, x, 0), n.op(ComputeOp::log1p, tail));
}

/// binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction), rounded operator by operator.
Lowered cross_entropy_of_logits(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Tensor x = call.tensor(0, "self"), y = call.tensor(1, "target");
  const std::optional<Tensor> weight = call.optional_tensor(2, "weight"), positive = call.optional_tensor(3, "pos_weight");
  const DType d = call.meta().dtype, c = compute_dtype(d);
  Sizes sizes = broadcast(x.sizes, y.sizes);
  if (weight) sizes = broadcast(sizes, weight->sizes);
  if (positive) sizes = broadcast(sizes, positive->sizes);
  return reduced_loss(call, sizes, call.integer(4, "reduction", 1), [&](NestBuilder& n) {
    const Loaded load{n, c};
    const Rounding round(n, d);
    const int logit = load(x), t = load(y);
    int gain = round(log_sigmoid_of(n, logit));
    if (positive) gain = round(n.mul(round(plus(n, round(n.mul(round(plus(n, load(*positive), -1)), t)), 1)), gain));
    const int loss = n.sub(round(n.mul(round(n.sub(n.number(1, t), t)), logit)), gain);
    return weight ? n.mul(round(loss), load(*weight)) : loss;
  });
}

/// kl_div(input, target, reduction, log_target)
Lowered kl_div(Call& call) {
  const bool log_target = call.boolean(99, "log_target", call.boolean(3, "log_target"));
  const DType d = call.meta().dtype;
  return pair_loss(call, 2, [=](NestBuilder& n, int x, int y) {
    const Rounding round(n, d);
    if (log_target) return n.mul(round(n.op(ComputeOp::exp, y)), round(n.sub(y, x)));
    const int self = n.where(equals(n, y, 0), n.number(0, y), n.mul(y, round(n.op(ComputeOp::log, y))));
    return n.sub(round(n.where(is_nan(n, y), y, self)), round(n.mul(y, x)));
  });
}

/// hinge_embedding_loss(input, target, margin, reduction)
Lowered hinge_embedding(Call& call) {
  const double margin = call.number(2, "margin", 1);
  const DType d = call.meta().dtype;
  return pair_loss(call, 3, [=](NestBuilder& n, int x, int y) {
    const Rounding round(n, d);
    const int zero = n.number(0, x);
    const int apart = maximum(n, round(n.sub(n.number(rounded(margin, d), x), x)), 0);
    return n.add(n.where(equals(n, y, 1), zero, apart), n.where(equals(n, y, -1), zero, x));
  });
}

/// margin_ranking_loss(input1, input2, target, margin, reduction)
Lowered margin_ranking(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Tensor a = call.tensor(0, "input1"), b = call.tensor(1, "input2"), y = call.tensor(2, "target");
  const double margin = call.number(3, "margin", 0);
  const DType d = call.meta().dtype, c = compute_dtype(d);
  return reduced_loss(call, broadcast(broadcast(a.sizes, b.sizes), y.sizes), call.integer(4, "reduction", 1), [&](NestBuilder& n) {
    const Loaded load{n, c};
    const Rounding round(n, d);
    const int left = load(a), apart = round(n.sub(left, load(b)));
    const int against = round(n.mul(n.op(ComputeOp::neg, load(y)), apart));
    return maximum(n, round(plus(n, against, rounded(margin, d))), 0);
  });
}

/// poisson_nll_loss(input, target, log_input, full, eps, reduction)
Lowered poisson_nll(Call& call) {
  const bool log_input = call.boolean(2, "log_input", true), full = call.boolean(3, "full");
  const double eps = call.number(4, "eps", 1e-8);
  const DType d = call.meta().dtype;
  return pair_loss(call, 5, [=](NestBuilder& n, int x, int y) {
    const Rounding round(n, d);
    int loss = 0;
    if (log_input) {
      loss = round(n.sub(round(n.op(ComputeOp::exp, x)), round(n.mul(y, x))));
    } else {
      const int log = round(n.op(ComputeOp::log, round(plus(n, x, rounded(eps, d)))));
      loss = round(n.sub(x, round(n.mul(y, log))));
    }
    if (!full) return loss;
    const int first = round(n.sub(round(n.mul(y, round(n.op(ComputeOp::log, y)))), y));
    const int circle = round(n.op(ComputeOp::log, round(scale(n, y, 2 * 3.14159265358979323846))));
    const int stirling = round(n.add(first, round(scale(n, circle, 0.5))));
    return n.add(loss, n.where(at_most(n, y, 1), n.number(0, y), stirling));
  });
}

/// A sum over the last dimension of a row of `body`, in the compute dtype, rounded to `d`.
Tensor row_sum(Call& call, std::string_view name, const Sizes& sizes, DType d, const LossBody& body) {
  if (sizes.empty()) throw MalformedNode{"rows of a scalar"};
  const DType c = compute_dtype(d);
  return call.builder.reduction(call.node.name + std::string(name), sizes, {sizes.size() - 1}, ReduceOp::sum, c, d, false,
                                [&](NestBuilder& n) { return n.cast(body(n), c); });
}

/// cosine_embedding_loss(input1, input2, target, margin, reduction)
Lowered cosine_embedding(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Tensor a = call.tensor(0, "input1"), b = call.tensor(1, "input2"), y = call.tensor(2, "target");
  const double margin = call.number(3, "margin", 0);
  const DType d = call.meta().dtype, c = compute_dtype(d);
  const Sizes sizes = broadcast(a.sizes, b.sizes);
  const auto product = [&](std::string_view name, const Tensor& left, const Tensor& right) {
    return row_sum(call, name, sizes, d, [&](NestBuilder& n) {
      const Loaded load{n, c};
      const int first = load(left);
      return Rounding(n, d)(n.mul(first, load(right)));
    });
  };
  const Tensor ab = product(".ab", a, b), aa = product(".aa", a, a), bb = product(".bb", b, b);
  return reduced_loss(call, broadcast(ab.sizes, y.sizes), call.integer(4, "reduction", 1), [&](NestBuilder& n) {
    const Loaded load{n, c};
    const Rounding round(n, d);
    const int t = load(y), left = round(plus(n, load(aa), 1e-12)), right = round(plus(n, load(bb), 1e-12));
    const int length = round(n.op(ComputeOp::sqrt, round(n.mul(left, right))));
    const int cosine = round(n.div(load(ab), length)), zero = n.number(0, length);
    const int apart = maximum(n, round(plus(n, cosine, -rounded(margin, d))), 0);
    const int same = n.where(equals(n, t, 1), round(n.sub(n.number(1, cosine), cosine)), zero);
    return n.add(same, n.where(equals(n, t, -1), apart, zero));
  });
}

/// The p-norm of a - b + eps along the last dimension.
Tensor distance(Call& call, std::string_view name, const Tensor& a, const Tensor& b, double p, double eps, DType d) {
  const DType c = compute_dtype(d);
  const Sizes sizes = broadcast(a.sizes, b.sizes);
  if (sizes.empty()) throw MalformedNode{"a distance of scalars"};
  const bool infinite = std::isinf(p);
  return call.builder.reduction(
      call.node.name + std::string(name), sizes, {sizes.size() - 1}, infinite ? p > 0 ? ReduceOp::max : ReduceOp::min : ReduceOp::sum, c, d,
      false,
      [&](NestBuilder& n) {
        const Loaded load{n, c};
        const Rounding round(n, d);
        const int left = load(a);
        const int apart = n.op(ComputeOp::abs, round(plus(n, round(n.sub(left, load(b))), rounded(eps, d))));
        if (infinite || p == 1) return apart;
        if (p == 0) return n.cast(n.compare(ComputeOp::ne, apart, n.number(0, apart)), c);
        return p == 2 ? n.mul(apart, apart) : n.op(ComputeOp::pow, apart, n.number(p, apart));
      },
      [&](NestBuilder& n, int sum) {
        if (infinite || p == 1 || p == 0) return sum;
        return p == 2 ? n.op(ComputeOp::sqrt, sum) : n.op(ComputeOp::pow, sum, n.number(1 / p, sum));
      });
}

/// triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)
Lowered triplet_margin(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Tensor anchor = call.tensor(0, "anchor"), positive = call.tensor(1, "positive"), negative = call.tensor(2, "negative");
  const double margin = call.number(3, "margin", 1), p = call.number(4, "p", 2), eps = call.number(5, "eps", 1e-6);
  const DType d = call.meta().dtype, c = compute_dtype(d);
  const Tensor near = distance(call, ".positive", anchor, positive, p, eps, d);
  const Tensor far = distance(call, ".negative", anchor, negative, p, eps, d);
  std::optional<Tensor> swapped;
  if (call.boolean(6, "swap")) swapped = distance(call, ".swapped", positive, negative, p, eps, d);
  return reduced_loss(call, broadcast(near.sizes, far.sizes), call.integer(7, "reduction", 1), [&](NestBuilder& n) {
    const Loaded load{n, c};
    const Rounding round(n, d);
    const int close = load(near);
    int apart = load(far);
    if (swapped) apart = n.op(ComputeOp::minimum, apart, load(*swapped));
    return maximum(n, round(n.sub(round(plus(n, close, rounded(margin, d))), apart)), 0);
  });
}

}  // namespace

std::vector<Entry> loss_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "loss", f}); };
  add("aten.mse_loss.default", mse);
  add("aten.mse_loss_backward.default", mse_backward);
  add("aten.l1_loss.default", l1);
  add("aten.smooth_l1_loss.default", smooth_l1);
  add("aten.smooth_l1_loss_backward.default", smooth_l1_backward);
  add("aten.huber_loss.default", huber);
  add("aten.huber_loss_backward.default", huber_backward);
  add("aten.soft_margin_loss.default", soft_margin);
  add("aten.soft_margin_loss_backward.default", soft_margin_backward);
  add("aten.binary_cross_entropy.default", cross_entropy_of_two);
  add("aten.binary_cross_entropy_backward.default", cross_entropy_of_two_backward);
  add("aten.binary_cross_entropy_with_logits.default", cross_entropy_of_logits);
  add("aten.kl_div.default", kl_div);
  add("aten.hinge_embedding_loss.default", hinge_embedding);
  add("aten.margin_ranking_loss.default", margin_ranking);
  add("aten.poisson_nll_loss.default", poisson_nll);
  add("aten.cosine_embedding_loss.default", cosine_embedding);
  add("aten.triplet_margin_loss.default", triplet_margin);
  return rows;
}

}  // namespace pallascope::lower
