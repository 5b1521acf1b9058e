// Family: activations and their gradients, by the formulas of ATen's CPU kernels.
#include <cmath>

#include "core/lower/builder.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;

constexpr double kSqrtHalf = 0.70710678118654752440;       // 1/sqrt(2)
constexpr double kTwoOverSqrtPi = 1.12837916709551257390;  // 2/sqrt(pi)
constexpr double kSqrt2 = 1.41421356237309504880;
constexpr double kGeluCubic = 0.044715;

using Body = std::function<int(NestBuilder&, const std::vector<int>&)>;

/// A pointwise nest over tensor arguments `names`, each cast to the compute dtype of the result.
Lowered over(Call& call, const std::vector<std::string_view>& names, const Body& body) {
  const trace::TensorMeta& meta = call.meta();
  std::vector<Tensor> tensors;
  for (std::size_t k = 0; k < names.size(); ++k) {
    tensors.push_back(call.tensor(k, names[k]));
    if (!is_kernel_dtype(tensors.back().dtype) || !is_kernel_dtype(meta.dtype))
      return declined_dtype();
  }
  const DType c = compute_dtype(meta.dtype);
  call.define(call.builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        std::vector<int> values;
        for (const Tensor& t : tensors) values.push_back(nest.cast(nest.load(t), c));
        return body(nest, values);
      },
      &meta));
  return as_kernel();
}

int greater(NestBuilder& n, int a, double b) { return n.compare(ComputeOp::gt, a, n.number(b, a)); }
int maximum(NestBuilder& n, int a, double b) { return n.op(ComputeOp::maximum, a, n.number(b, a)); }
int minimum(NestBuilder& n, int a, double b) { return n.op(ComputeOp::minimum, a, n.number(b, a)); }
int scale(NestBuilder& n, int a, double by) { return n.mul(a, n.number(by, a)); }
int plus(NestBuilder& n, int a, double b) { return n.add(a, n.number(b, a)); }
int sigmoid(NestBuilder& n, int a) { return n.op(ComputeOp::sigmoid, a); }

/// sqrt(2/pi) * (x + 0.044715 x^3), the argument of the tanh.
int gelu_inner(NestBuilder& n, int x) {
  const int cube = n.mul(n.mul(x, x), x);
  return scale(n, n.add(x, scale(n, cube, kGeluCubic)), kSqrt2 * kTwoOverSqrtPi * 0.5);
}

Lowered gelu(Call& call) {
  const bool tanh = call.text(99, "approximate", call.text(1, "approximate", "none")) == "tanh";
  return over(call, {"self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    if (tanh) return n.mul(scale(n, v[0], 0.5), plus(n, n.op(ComputeOp::tanh, gelu_inner(n, v[0])), 1));
    return n.mul(scale(n, v[0], 0.5), plus(n, n.op(ComputeOp::erf, scale(n, v[0], kSqrtHalf)), 1));
  });
}

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

Lowered relu(Call& call) {
  return over(call, {"self"}, [](NestBuilder& n, const std::vector<int>& v) {
    return n.op(ComputeOp::maximum, v[0], n.constant(to_scalar(0, n.dtype(v[0])), n.dtype(v[0])));
  });
}

Lowered relu6(Call& call) {
  return over(call, {"self"}, [](NestBuilder& n, const std::vector<int>& v) { return minimum(n, maximum(n, v[0], 0), 6); });
}

Lowered hardtanh(Call& call) {
  const double low = call.number(1, "min_val", -1), high = call.number(2, "max_val", 1);
  return over(call, {"self"}, [&](NestBuilder& n, const std::vector<int>& v) { return minimum(n, maximum(n, v[0], low), high); });
}

Lowered silu(Call& call) {
  return over(call, {"self"}, [](NestBuilder& n, const std::vector<int>& v) {
    return n.div(v[0], plus(n, n.op(ComputeOp::exp, n.op(ComputeOp::neg, v[0])), 1));
  });
}

Lowered silu_backward(Call& call) {
  return over(call, {"grad_output", "self"}, [](NestBuilder& n, const std::vector<int>& v) {
    const int s = sigmoid(n, v[1]);
    const int one_minus = n.sub(n.number(1, s), s);
    return n.mul(n.mul(v[0], s), plus(n, n.mul(v[1], one_minus), 1));
  });
}

Lowered leaky_relu(Call& call) {
  const double slope = call.number(1, "negative_slope", 0.01);
  return over(call, {"self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    return n.where(greater(n, v[0], 0), v[0], scale(n, v[0], slope));
  });
}

Lowered elu(Call& call) {
  const double alpha = call.number(1, "alpha", 1), outer = call.number(2, "scale", 1), inner = call.number(3, "input_scale", 1);
  return over(call, {"self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    const int negative = scale(n, n.op(ComputeOp::expm1, scale(n, v[0], inner)), alpha * outer);
    return n.where(greater(n, v[0], 0), scale(n, v[0], outer), negative);
  });
}

Lowered softplus(Call& call) {
  const double beta = call.number(1, "beta", 1), threshold = call.number(2, "threshold", 20);
  return over(call, {"self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    const int scaled = scale(n, v[0], beta);
    const int soft = n.div(n.op(ComputeOp::log1p, n.op(ComputeOp::exp, scaled)), n.number(beta, scaled));
    return n.where(greater(n, scaled, threshold), v[0], soft);
  });
}

int hard_gate(NestBuilder& n, int x) { return minimum(n, maximum(n, plus(n, x, 3), 0), 6); }

Lowered hardsigmoid(Call& call) {
  return over(call, {"self"}, [](NestBuilder& n, const std::vector<int>& v) {
    return n.div(hard_gate(n, v[0]), n.number(6, v[0]));
  });
}

Lowered hardswish(Call& call) {
  return over(call, {"self"}, [](NestBuilder& n, const std::vector<int>& v) {
    return n.div(n.mul(v[0], hard_gate(n, v[0])), n.number(6, v[0]));
  });
}

Lowered log_sigmoid(Call& call) {
  return over(call, {"self"}, [](NestBuilder& n, const std::vector<int>& v) {
    const int low = minimum(n, v[0], 0);
    const int tail = n.op(ComputeOp::log1p, n.op(ComputeOp::exp, n.op(ComputeOp::neg, n.op(ComputeOp::abs, v[0]))));
    return n.sub(low, tail);
  });
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

}  // namespace

std::vector<Entry> activation_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f, Takes takes = Takes::of_family) { rows.push_back({op, "activation", f, takes}); };
  add("aten.gelu.default", gelu);
  add("aten.gelu_backward.default", gelu_backward);
  add("aten.relu.default", relu, Takes::numbers);
  add("aten.relu6.default", relu6, Takes::numbers);
  add("aten.hardtanh.default", hardtanh, Takes::numbers);
  add("aten.silu.default", silu);
  add("aten.silu_backward.default", silu_backward);
  add("aten.leaky_relu.default", leaky_relu);
  add("aten.elu.default", elu);
  add("aten.softplus.default", softplus);
  add("aten.hardsigmoid.default", hardsigmoid);
  add("aten.hardswish.default", hardswish);
  add("aten.log_sigmoid.default", log_sigmoid);
  add("aten.threshold_backward.default", threshold_backward, Takes::numbers);
  add("aten.tanh_backward.default", tanh_backward);
  add("aten.sigmoid_backward.default", sigmoid_backward);
  add("aten.native_dropout_backward.default", dropout_backward, Takes::kernel);
  return rows;
}

}  // namespace pallascope::lower
