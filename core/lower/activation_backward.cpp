// Family: gradients of activations, by the formulas of ATen's CPU kernels.
#include <cmath>

#include "core/lower/activation.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;

Lowered gelu_backward(Call& call) {
  const bool tanh = call.text(99, "approximate", "none") == "tanh";
  return over(call, {"grad_output", "self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    const int grad = v[0], x = v[1];
    if (tanh) {
      const int t = n.op(ComputeOp::tanh, gelu_inner(n, x));
      const int left = scale(n, x, 0.5), right = plus(n, t, 1);
      const int sech2 = n.sub(n.number(1, t), n.mul(t, t));
      const int inner = scale(n, plus(n, scale(n, n.mul(x, x), 3 * kGeluCubic), 1), kSqrt2 * kTwoOverSqrtPi * 0.5);
      return n.mul(grad, n.add(scale(n, right, 0.5), n.mul(n.mul(left, sech2), inner)));
    }
    const int cdf = scale(n, plus(n, n.op(ComputeOp::erf, scale(n, x, kSqrtHalf)), 1), 0.5);
    const int pdf = scale(n, n.op(ComputeOp::exp, scale(n, n.mul(x, x), -0.5)), kTwoOverSqrtPi * kSqrtHalf * 0.5);
    return n.mul(grad, n.add(cdf, n.mul(x, pdf)));
  });
}

Lowered silu_backward(Call& call) {
  return over(call, {"grad_output", "self"}, [](NestBuilder& n, const std::vector<int>& v) {
    const int s = sigmoid(n, v[1]);
    const int one_minus = n.sub(n.number(1, s), s);
    return n.mul(n.mul(v[0], s), plus(n, n.mul(v[1], one_minus), 1));
  });
}

Lowered prelu_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_output"), x = call.tensor(1, "self"), weight = call.tensor(2, "weight");
  if (!kernel_operands(call)) return declined_dtype();
  const DType c = compute_dtype(call.meta().dtype);
  emit(call, [&](NestBuilder& n) {
    const int g = n.cast(n.load(grad), c), v = n.cast(n.load(x), c);
    return n.where(greater(n, v, 0), g, n.mul(prelu_weight(call.builder, n, weight, x, c), g));
  });
  if (!call.wanted(1)) return as_kernel();
  return emit(
      call,
      [&](NestBuilder& n) {
        const int g = n.cast(n.load(grad), c), v = n.cast(n.load(x), c);
        return n.where(greater(n, v, 0), n.number(0, v), n.mul(v, g));
      },
      1);
}

/// threshold_backward(grad, x, t): grad where x > t, else 0.
Lowered threshold_backward(Call& call) {
  const double threshold = call.number(2, "threshold", 0);
  return over(call, {"grad_output", "self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    const int below = n.compare(ComputeOp::le, v[1], n.constant(to_scalar(threshold, n.dtype(v[1])), n.dtype(v[1])));
    return n.where(below, n.constant(to_scalar(0, n.dtype(v[0])), n.dtype(v[0])), v[0]);
  });
}

Lowered tanh_backward(Call& call) {
  return over(call, {"grad_output", "output"}, [](NestBuilder& n, const std::vector<int>& v) {
    return n.mul(v[0], n.sub(n.number(1, v[1]), n.mul(v[1], v[1])));
  });
}

Lowered sigmoid_backward(Call& call) {
  return over(call, {"grad_output", "output"}, [](NestBuilder& n, const std::vector<int>& v) {
    return n.mul(v[0], n.mul(n.sub(n.number(1, v[1]), v[1]), v[1]));
  });
}

/// native_dropout_backward(grad, mask, scale): grad * mask * scale. The mask was drawn by PyTorch.
Lowered dropout_backward(Call& call) {
  const double factor = call.number(2, "scale", 1);
  return over(call, {"grad_output", "mask"},
              [&](NestBuilder& n, const std::vector<int>& v) { return scale(n, n.mul(v[0], v[1]), factor); });
}

/// A gradient that passes where `passes` holds of the activation's argument, and is 0 elsewhere.
Lowered gate(Call& call, const std::function<int(NestBuilder&, int)>& passes) {
  return over(call, {"grad_output", "self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    return n.where(passes(n, v[1]), v[0], n.number(0, v[0]));
  });
}

/// elu_backward(grad, alpha, scale, input_scale, is_result, self_or_result)
Lowered elu_backward(Call& call) {
  const double alpha = call.number(1, "alpha", 1), outer = call.number(2, "scale", 1), inner = call.number(3, "input_scale", 1);
  const bool is_result = call.boolean(4, "is_result");
  if (!kernel_operands(call)) return declined_dtype();
  const DType c = compute_dtype(call.meta().dtype);
  return emit(call, [&](NestBuilder& n) {
    const int grad = n.cast(n.load(call.tensor(0, "grad_output")), c);
    const int x = n.cast(n.load(call.tensor(5, "self_or_result")), c);
    const int slope = is_result ? scale(n, plus(n, x, alpha * outer), inner)
                                : scale(n, n.op(ComputeOp::exp, scale(n, x, inner)), inner * alpha * outer);
    return n.where(greater(n, x, 0), scale(n, grad, outer), n.mul(grad, slope));
  });
}

Lowered leaky_relu_backward(Call& call) {
  const double slope = call.number(2, "negative_slope", 0.01);
  return over(call, {"grad_output", "self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    return n.where(greater(n, v[1], 0), v[0], scale(n, v[0], slope));
  });
}

/// rrelu_with_noise_backward(grad, self, noise, lower, upper, training, self_is_result)
Lowered rrelu_backward(Call& call) {
  const double lower = call.number(3, "lower", 0.125), upper = call.number(4, "upper", 1.0 / 3);
  if (call.boolean(5, "training") && upper - lower > 1e-6) {
    if (!kernel_operands(call)) return declined_dtype();
    const DType c = compute_dtype(call.meta().dtype);
    return emit(call, [&](NestBuilder& n) {
      const int grad = n.cast(n.load(call.tensor(0, "grad_output")), c);
      return n.mul(grad, n.cast(n.load(call.tensor(2, "noise")), c));
    });
  }
  return over(call, {"grad_output", "self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    return n.where(greater(n, v[1], 0), v[0], scale(n, v[0], (lower + upper) / 2));
  });
}

Lowered hardtanh_backward(Call& call) {
  const double low = call.number(2, "min_val", -1), high = call.number(3, "max_val", 1);
  return gate(call, [&](NestBuilder& n, int x) { return both(n, greater(n, x, low), less(n, x, high)); });
}

Lowered hardsigmoid_backward(Call& call) {
  return over(call, {"grad_output", "self"}, [](NestBuilder& n, const std::vector<int>& v) {
    const int inside = both(n, greater(n, v[1], -3), less(n, v[1], 3));
    return n.where(inside, scale(n, v[0], 1.0 / 6), n.number(0, v[0]));
  });
}

Lowered hardswish_backward(Call& call) {
  return over(call, {"grad_output", "self"}, [](NestBuilder& n, const std::vector<int>& v) {
    const int middle = n.mul(v[0], plus(n, n.div(v[1], n.number(3, v[1])), 0.5));
    const int upper = n.where(at_least(n, v[1], 3), v[0], middle);
    return n.where(at_most(n, v[1], -3), n.number(0, v[0]), upper);
  });
}

Lowered hardshrink_backward(Call& call) {
  const double lambda = call.number(2, "lambd", 0.5);
  return gate(call, [&](NestBuilder& n, int x) { return either(n, less(n, x, -lambda), greater(n, x, lambda)); });
}

Lowered softplus_backward(Call& call) {
  const double beta = call.number(2, "beta", 1), threshold = call.number(3, "threshold", 20);
  return over(call, {"grad_output", "self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    const int scaled = scale(n, v[1], beta), e = n.op(ComputeOp::exp, scaled);
    return n.where(greater(n, scaled, threshold), v[0], n.div(n.mul(v[0], e), plus(n, e, 1)));
  });
}

/// log_sigmoid_forward gives what its gradient needs besides: exp(-|x|).
Lowered log_sigmoid_forward(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!kernel_operands(call)) return declined_dtype();
  const DType c = compute_dtype(x.dtype);
  const auto tail = [&](NestBuilder& n, int v) { return n.op(ComputeOp::exp, n.op(ComputeOp::neg, n.op(ComputeOp::abs, v))); };
  emit(call, [&](NestBuilder& n) {
    const int v = n.cast(n.load(x), c);
    return n.sub(minimum(n, v, 0), n.op(ComputeOp::log1p, tail(n, v)));
  });
  if (!call.wanted(1)) return as_kernel();
  return emit(call, [&](NestBuilder& n) { return tail(n, n.cast(n.load(x), c)); }, 1);
}

Lowered log_sigmoid_backward(Call& call) {
  return over(call, {"grad_output", "self", "buffer"}, [](NestBuilder& n, const std::vector<int>& v) {
    const int part = n.div(v[2], plus(n, v[2], 1)), one = n.number(1, v[1]);
    return n.mul(v[0], n.where(less(n, v[1], 0), n.sub(one, part), part));
  });
}

Lowered mish_backward(Call& call) {
  return over(call, {"grad_output", "self"}, [](NestBuilder& n, const std::vector<int>& v) {
    const int t = n.op(ComputeOp::tanh, n.op(ComputeOp::log1p, n.op(ComputeOp::exp, v[1])));
    const int slope = n.mul(n.mul(v[1], sigmoid(n, v[1])), n.sub(n.number(1, t), n.mul(t, t)));
    return n.mul(v[0], n.add(t, slope));
  });
}

Lowered glu_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_output"), x = call.tensor(1, "self");
  if (!kernel_operands(call)) return declined_dtype();
  if (x.rank() == 0) throw MalformedNode{"halves of a scalar"};
  const std::size_t d = Call::dim(call.integer(2, "dim", -1), x.rank());
  const DType c = compute_dtype(x.dtype);
  Builder& builder = call.builder;
  const auto [left, right] = halves(builder, x, d);
  // One buffer, a nest a half.
  const loop::BufferId buffer = builder.add_buffer(call.meta().dtype, x.sizes);
  for (const bool second : {false, true}) {
    NestBuilder n(builder, call.node.name, grad.sizes);
    // The sigmoid is a tensor of its own in ATen.
    const int gated = n.cast(n.cast(sigmoid(n, n.cast(n.load(right), c)), x.dtype), c);
    const int g = n.cast(n.load(grad), c);
    int made = n.mul(gated, g);
    if (second) {
      const int slope = n.mul(n.sub(n.number(1, gated), gated), gated);
      made = n.mul(n.mul(slope, g), n.cast(n.load(left), c));
    }
    Index at = n.index();
    if (second) at[d] = builder.context().add(at[d], builder.context().constant(grad.sizes[d]));
    n.store_into(buffer, loop::flatten(builder.context(), at, x.sizes), n.cast(made, call.meta().dtype));
  }
  call.define(builder.row_major(buffer, x.sizes));
  return as_kernel();
}

}  // namespace

std::vector<Entry> activation_backward_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f, Takes takes = Takes::of_family) { rows.push_back({op, "activation", f, takes}); };
  add("aten.gelu_backward.default", gelu_backward);
  add("aten.silu_backward.default", silu_backward);
  add("aten.threshold_backward.default", threshold_backward, Takes::numbers);
  add("aten.tanh_backward.default", tanh_backward);
  add("aten.sigmoid_backward.default", sigmoid_backward);
  add("aten.native_dropout_backward.default", dropout_backward, Takes::kernel);
  add("aten._prelu_kernel_backward.default", prelu_backward);
  add("aten.elu_backward.default", elu_backward);
  add("aten.leaky_relu_backward.default", leaky_relu_backward);
  add("aten.rrelu_with_noise_backward.default", rrelu_backward);
  add("aten.hardtanh_backward.default", hardtanh_backward);
  add("aten.hardsigmoid_backward.default", hardsigmoid_backward);
  add("aten.hardswish_backward.default", hardswish_backward);
  for (std::string_view op : {"aten.hardshrink_backward.default", "aten.softshrink_backward.default"}) add(op, hardshrink_backward);
  add("aten.softplus_backward.default", softplus_backward);
  add("aten.log_sigmoid_forward.default", log_sigmoid_forward);
  add("aten.log_sigmoid_backward.default", log_sigmoid_backward);
  add("aten.mish_backward.default", mish_backward);
  add("aten.glu_backward.default", glu_backward);
  return rows;
}

}  // namespace pallascope::lower
