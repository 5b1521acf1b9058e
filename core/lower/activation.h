// Room: lower. What activations and their gradients share.
#pragma once

#include <utility>

#include "core/lower/operand.h"

namespace pallascope::lower {

inline constexpr double kSqrtHalf = 0.70710678118654752440;       // 1/sqrt(2)
inline constexpr double kTwoOverSqrtPi = 1.12837916709551257390;  // 2/sqrt(pi)
inline constexpr double kSqrt2 = 1.41421356237309504880;
inline constexpr double kGeluCubic = 0.044715;

inline int sigmoid(NestBuilder& n, int a) { return n.op(loop::ComputeOp::sigmoid, a); }

/// sqrt(2/pi) * (x + 0.044715 x^3), the argument of the tanh.
inline int gelu_inner(NestBuilder& n, int x) {
  const int cube = n.mul(n.mul(x, x), x);
  return scale(n, n.add(x, scale(n, cube, kGeluCubic)), kSqrt2 * kTwoOverSqrtPi * 0.5);
}

/// The weight of prelu: one for all, or one a channel (dimension 1); of _prelu_kernel, one an element.
inline int prelu_weight(Builder& builder, NestBuilder& n, const Tensor& weight, const Tensor& x, DType c) {
  if (weight.sizes == x.sizes || weight.rank() == x.rank()) return n.cast(n.load(weight), c);
  if (weight.rank() != 1) return n.cast(n.load_at(weight, {}), c);
  const bool channels = weight.sizes[0] != 1 && x.rank() > 1;
  return n.cast(n.load_at(weight, {channels ? n.index(1) : builder.context().constant(0)}), c);
}

/// The halves of `x` along dimension `d`.
inline std::pair<Tensor, Tensor> halves(Builder& builder, const Tensor& x, std::size_t d) {
  Sizes half = x.sizes;
  half[d] /= 2;
  const auto part = [&](std::int64_t start) {
    return builder.reindex(x, half, [&](const Index& at) {
      Index moved = at;
      moved[d] = builder.context().add(at[d], builder.context().constant(start));
      return moved;
    });
  };
  return {part(0), part(half[d])};
}

}  // namespace pallascope::lower
