// Family: activations and their gradients, by the formulas of ATen's CPU kernels.
#include <cmath>

#include "core/lower/activation.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;

/// What eager's library for f32 and bf16 gives for more than one element: NaN for +inf, by infinity times 0.
bool by_library(const Call& call) {
  const trace::TensorMeta& meta = call.meta();
  return (meta.dtype == DType::f32 || meta.dtype == DType::bf16) && meta.numel() > 1;
}

Lowered gelu(Call& call) {
  const bool tanh = call.text(99, "approximate", call.text(1, "approximate", "none")) == "tanh";
  return over(call, {"self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    if (tanh) return n.mul(scale(n, v[0], 0.5), plus(n, n.op(ComputeOp::tanh, gelu_inner(n, v[0])), 1));
    const int twice = plus(n, n.op(ComputeOp::erf, scale(n, v[0], kSqrtHalf)), 1);
    if (!by_library(call)) return n.mul(scale(n, v[0], 0.5), twice);
    return n.where(equals(n, v[0], INFINITY), n.number(NAN, v[0]), scale(n, n.mul(v[0], twice), 0.5));
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

/// Numbers within lambda of 0 become 0.
Lowered hardshrink(Call& call) {
  const double lambda = call.number(1, "lambd", 0.5);
  return over(call, {"self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    return n.where(both(n, at_least(n, v[0], -lambda), at_most(n, v[0], lambda)), n.number(0, v[0]), v[0]);
  });
}

Lowered softshrink(Call& call) {
  const double lambda = call.number(1, "lambd", 0.5);
  return over(call, {"self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    // Times 0 in between: -0 and NaN stay.
    const int within = n.where(less(n, v[0], -lambda), plus(n, v[0], lambda), scale(n, v[0], 0));
    return n.where(greater(n, v[0], lambda), plus(n, v[0], -lambda), within);
  });
}

Lowered threshold(Call& call) {
  const Operand bound = operand(call, 1, "threshold"), fill = operand(call, 2, "value");
  return over(call, {"self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    const int below = n.compare(ComputeOp::le, v[0], value(n, bound, n.dtype(v[0])));
    return n.where(below, value(n, fill, n.dtype(v[0])), v[0]);
  });
}

Lowered selu(Call& call) {
  constexpr double kAlpha = 1.6732632423543772848170429916717, kScale = 1.0507009873554804934193349852946;
  return over(call, {"self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    return n.where(greater(n, v[0], 0), scale(n, v[0], kScale), scale(n, n.op(ComputeOp::expm1, v[0]), kAlpha * kScale));
  });
}

Lowered celu(Call& call) {
  const double alpha = call.number(1, "alpha", 1);
  return over(call, {"self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    const int negative = scale(n, n.op(ComputeOp::expm1, scale(n, v[0], 1 / alpha)), alpha);
    return n.where(greater(n, v[0], 0), v[0], negative);
  });
}

int mish_gate(NestBuilder& n, int x) { return n.op(ComputeOp::tanh, n.op(ComputeOp::log1p, n.op(ComputeOp::exp, x))); }

Lowered mish(Call& call) {
  return over(call, {"self"}, [](NestBuilder& n, const std::vector<int>& v) { return n.mul(v[0], mish_gate(n, v[0])); });
}

/// In training the slopes are drawn at random.
Lowered rrelu(Call& call) {
  const bool with_noise = call.node.target.starts_with("aten.rrelu_with_noise");
  const std::size_t first = with_noise ? 2 : 1;
  if (call.boolean(first + 2, "training", false)) return declined("random slopes");
  const double slope = (call.number(first, "lower", 0.125) + call.number(first + 1, "upper", 1.0 / 3)) / 2;
  // The functional form gives the noise back, which only training changes.
  if (call.wanted(1)) call.define(call.tensor(1, "noise"), 1);
  return over(call, {"self"}, [&](NestBuilder& n, const std::vector<int>& v) {
    return n.where(greater(n, v[0], 0), v[0], scale(n, v[0], slope));
  });
}

Lowered prelu(Call& call) {
  const Tensor x = call.tensor(0, "self"), weight = call.tensor(1, "weight");
  if (!kernel_operands(call)) return declined_dtype();
  const DType c = compute_dtype(call.meta().dtype);
  return emit(call, [&](NestBuilder& n) {
    const int v = n.cast(n.load(x), c);
    return n.where(greater(n, v, 0), v, n.mul(prelu_weight(call.builder, n, weight, x, c), v));
  });
}

/// The first half times the sigmoid of the second.
Lowered glu(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!kernel_operands(call)) return declined_dtype();
  if (x.rank() == 0) throw MalformedNode{"halves of a scalar"};
  const std::size_t d = Call::dim(call.integer(1, "dim", -1), x.rank());
  if (x.sizes[d] % 2 != 0) throw MalformedNode{"halves of an odd extent"};
  const auto [left, right] = halves(call.builder, x, d);
  const DType c = compute_dtype(x.dtype);
  return emit(call, [&, a = left, b = right](NestBuilder& n) {
    const int first = n.cast(n.load(a), c);
    return n.mul(first, sigmoid(n, n.cast(n.load(b), c)));
  });
}

}  // namespace

std::vector<Entry> activation_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f, Takes takes = Takes::of_family) { rows.push_back({op, "activation", f, takes}); };
  add("aten.gelu.default", gelu);
  add("aten.relu.default", relu, Takes::numbers);
  add("aten.relu6.default", relu6, Takes::numbers);
  add("aten.hardtanh.default", hardtanh, Takes::numbers);
  add("aten.silu.default", silu);
  add("aten.leaky_relu.default", leaky_relu);
  add("aten.elu.default", elu);
  add("aten.softplus.default", softplus);
  add("aten.hardsigmoid.default", hardsigmoid);
  add("aten.hardswish.default", hardswish);
  add("aten.log_sigmoid.default", log_sigmoid);
  add("aten.hardshrink.default", hardshrink);
  add("aten.softshrink.default", softshrink);
  add("aten.threshold.default", threshold);
  add("aten.selu.default", selu);
  add("aten.celu.default", celu);
  add("aten.mish.default", mish);
  for (std::string_view op : {"aten.rrelu.default", "aten.rrelu_with_noise.default", "aten.rrelu_with_noise_functional.default"})
    add(op, rrelu);
  for (std::string_view op : {"aten.prelu.default", "aten._prelu_kernel.default"}) add(op, prelu);
  add("aten.glu.default", glu);
  return rows;
}

}  // namespace pallascope::lower
