// Family: pointwise arithmetic, math, comparisons, logic, where.
#include <cmath>
#include <limits>

#include "core/lower/operand.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;

/// Math on floats; integers and bools are computed in the default float.
template <ComputeOp op>
Lowered float_unary(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  if (!is_float(call.meta().dtype)) return declined("a function of floats whose result is none");
  return emit(call, [&](NestBuilder& nest) {
    return nest.op(op, nest.cast(nest.load(call.tensor(0, "self")), compute_dtype(call.meta().dtype)));
  });
}

/// Keeps the dtype; `float_only` operators are the identity on integers.
template <ComputeOp op, bool float_only>
Lowered same_unary(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  return emit(call, [&](NestBuilder& nest) {
    const int x = nest.load(call.tensor(0, "self"));
    if (float_only && !is_float(nest.dtype(x))) return x;
    return nest.op(op, nest.cast(x, compute_dtype(nest.dtype(x))));
  });
}

template <ComputeOp op>
Lowered predicate(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  return emit(call, [&](NestBuilder& nest) {
    const int x = nest.load(call.tensor(0, "self"));
    if (!is_float(nest.dtype(x))) return nest.constant(op == ComputeOp::isfinite, DType::b8);
    return nest.compute(op, DType::b8, {x});
  });
}

template <bool subtract, bool reverse>
Lowered add_sub(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  Operand a = operand(call, 0, "self"), b = operand(call, 1, "other");
  const loop::Scalar alpha = call.scalar(2, "alpha", std::int64_t{1});
  if (reverse) std::swap(a, b);
  const DType result = call.meta().dtype, c = compute_dtype(result);
  return emit(call, [&](NestBuilder& nest) {
    // rsub(self, other, alpha) is other - alpha * self: after the swap the scaled side is always the right one.
    const int left = rounded_value(nest, a, c, result);
    int right = rounded_value(nest, b, c, result);
    if (as_double(alpha) != 1) right = nest.mul(right, nest.constant(convert(alpha, c), c));
    return subtract ? nest.sub(left, right) : nest.add(left, right);
  });
}

template <ComputeOp op>
Lowered arithmetic(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  if (op == ComputeOp::atan2 && !is_float(call.meta().dtype)) return declined("a function of floats whose result is none");
  const Operand a = operand(call, 0, "self"), b = operand(call, 1, "other");
  const DType c = compute_dtype(call.meta().dtype);
  return emit(call, [&](NestBuilder& nest) {
    const auto [left, right] = values(nest, a, b, c);
    return nest.op(op, left, right);
  });
}

int floor_divide(NestBuilder& nest, int a, int b) {
  // PyTorch's float floor division: (a - fmod(a, b)) / b, corrected by one where the signs differ, then rounded
  // to the nearest integer; dividing by zero gives a / b. (ATen, BinaryOps: div_floor_floating.)
  const int zero = nest.number(0, a), one = nest.number(1, a), half = nest.number(0.5, a);
  const int mod = nest.op(ComputeOp::rem_trunc, a, b);
  int quotient = nest.exact_div(nest.sub(a, mod), b);
  const int signs_differ = nest.compute(
      ComputeOp::logical_and, DType::b8,
      {nest.compare(ComputeOp::ne, mod, zero),
       nest.compare(ComputeOp::ne, nest.compare(ComputeOp::lt, b, zero), nest.compare(ComputeOp::lt, mod, zero))});
  quotient = nest.where(signs_differ, nest.sub(quotient, one), quotient);
  const int floored = nest.op(ComputeOp::floor, quotient);
  const int adjusted =
      nest.where(nest.compare(ComputeOp::gt, nest.sub(quotient, floored), half), nest.add(floored, one), floored);
  const int exact = nest.exact_div(a, b);
  const int rounded = nest.where(nest.compare(ComputeOp::eq, quotient, zero), nest.op(ComputeOp::copysign, zero, exact), adjusted);
  return nest.where(nest.compare(ComputeOp::eq, b, zero), exact, rounded);
}

/// An integer division by the number 0 raises in eager whatever the data is, unless there is none.
std::optional<Lowered> refuse_zero(const Call& call, const Operand& divisor) {
  if (divisor.tensor || !is_integer(call.meta().dtype) || call.meta().numel() == 0 ||
      as_double(convert(divisor.scalar, call.meta().dtype)) != 0)
    return std::nullopt;
  Lowered bad = declined("");
  bad.diagnostic = Diagnostic{DiagnosticKind::invalid_argument, std::string(call.node.target) + " divides integers by 0",
                              call.node.name, "a divisor that is not 0, or a float dividend"};
  return bad;
}

Lowered divide(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Operand a = operand(call, 0, "self"), b = operand(call, 1, "other");
  const std::string mode = call.node.target == "aten.floor_divide.default" ||
                                   call.node.target == "aten.floor_divide.Scalar"
                               ? "floor"
                               : call.text(2, "rounding_mode");
  if (!mode.empty())
    if (std::optional<Lowered> bad = refuse_zero(call, b)) return *bad;
  const DType result = call.meta().dtype, c = compute_dtype(result);
  return emit(call, [&](NestBuilder& nest) {
    const auto [left, right] = values(nest, a, b, c);
    if (mode.empty()) return nest.exact_div(left, right);
    if (is_integer(c)) {
      nest.check_nonzero(right);
      return nest.op(mode == "floor" ? ComputeOp::integer_div_floor : ComputeOp::integer_div_trunc, left, right);
    }
    if (mode == "floor") return floor_divide(nest, left, right);
    return nest.op(ComputeOp::trunc, nest.exact_div(left, right));
  });
}

/// remainder (the divisor's sign) and fmod (the dividend's).
template <ComputeOp op>
Lowered remainder(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Operand a = operand(call, 0, "self"), b = operand(call, 1, "other");
  if (std::optional<Lowered> bad = refuse_zero(call, b)) return *bad;
  const DType c = compute_dtype(call.meta().dtype);
  return emit(call, [&](NestBuilder& nest) {
    const auto [left, right] = values(nest, a, b, c);
    if (is_integer(c)) nest.check_nonzero(right);
    return nest.op(op, left, right);
  });
}

Lowered power(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Operand a = operand(call, 0, "self"), b = operand(call, 1, "exponent");
  const DType result = call.meta().dtype, c = compute_dtype(result);
  if (is_bool(result)) return declined("pow of bools");
  return emit(call, [&](NestBuilder& nest) {
    const int x = value(nest, a, c);
    if (!b.tensor) {
      const double e = as_double(b.scalar);
      // Eager's f16 has no roots of its own here: it gives pow(-inf, 0.5) = inf where a root gives NaN.
      const bool root = std::abs(e) == 0.5 && result == DType::f16;
      if (is_float(c) && !root) return power_of(nest, x, e);
      if (!is_float(c) && e >= 0 && e <= 3) return power_of(nest, x, e);
    }
    if (is_integer(c)) return nest.op(ComputeOp::integer_pow, x, value(nest, b, c));
    return nest.op(ComputeOp::pow, x, value(nest, b, c));
  });
}

template <ComputeOp op>
Lowered comparison(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Operand a = operand(call, 0, "self"), b = operand(call, 1, "other");
  const DType common = common_dtype(a, b);
  return emit(call, [&](NestBuilder& nest) {
    const int left = rounded_value(nest, a, compute_dtype(common), common);
    return nest.compare(op, left, rounded_value(nest, b, compute_dtype(common), common));
  });
}

template <ComputeOp op>
Lowered logical(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  return emit(call, [&](NestBuilder& nest) {
    const int left = nest.cast(nest.load(call.tensor(0, "self")), DType::b8);
    return nest.compare(op, left, nest.cast(nest.load(call.tensor(1, "other")), DType::b8));
  });
}

Lowered logical_not(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  return emit(call, [&](NestBuilder& nest) {
    return nest.compute(ComputeOp::logical_not, DType::b8, {nest.cast(nest.load(call.tensor(0, "self")), DType::b8)});
  });
}

template <ComputeOp op>
Lowered bitwise(Call& call) {
  const Operand a = operand(call, 0, "self"), b = operand(call, 1, "other");
  const DType c = call.meta().dtype;
  return emit(call, [&](NestBuilder& nest) {
    const auto [left, right] = values(nest, a, b, c);
    return nest.op(op, left, right);
  });
}

Lowered bitwise_not(Call& call) {
  return emit(call, [&](NestBuilder& nest) {
    const int x = nest.load(call.tensor(0, "self"));
    return nest.op(is_bool(nest.dtype(x)) ? ComputeOp::logical_not : ComputeOp::bitwise_not, x);
  });
}

Lowered reciprocal(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  if (!is_float(call.meta().dtype)) return declined("a function of floats whose result is none");
  return emit(call, [&](NestBuilder& nest) {
    const int x = nest.cast(nest.load(call.tensor(0, "self")), compute_dtype(call.meta().dtype));
    return nest.div(nest.number(1, x), x);
  });
}

Lowered sign(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  return emit(call, [&](NestBuilder& nest) {
    const int x = nest.load(call.tensor(0, "self"));
    if (is_bool(nest.dtype(x))) return x;
    const int c = nest.cast(x, compute_dtype(nest.dtype(x)));
    if (!is_float(nest.dtype(c))) return nest.op(ComputeOp::sign, c);
    // Of -0 and NaN it is 0, where jnp.sign gives them back.
    const int below = nest.where(less(nest, c, 0), nest.number(-1, c), nest.number(0, c));
    return nest.where(greater(nest, c, 0), nest.number(1, c), below);
  });
}

Lowered frac(Call& call) {
  return emit(call, [&](NestBuilder& nest) {
    const int x = nest.cast(nest.load(call.tensor(0, "self")), compute_dtype(call.meta().dtype));
    return nest.sub(x, nest.op(ComputeOp::trunc, x));
  });
}

Lowered square(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  return emit(call, [&](NestBuilder& nest) {
    const int x = nest.cast(nest.load(call.tensor(0, "self")), compute_dtype(call.meta().dtype));
    return nest.mul(x, x);
  });
}

Lowered clamp(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const bool only_max = call.node.target.starts_with("aten.clamp_max");
  const bool only_min = call.node.target.starts_with("aten.clamp_min");
  std::optional<Operand> low, high;
  if (!only_max && call.has(1, "min")) low = operand(call, 1, "min");
  if (only_max) {
    high = operand(call, 1, "max");
  } else if (!only_min && call.has(2, "max")) {
    high = operand(call, 2, "max");
  }
  const DType c = compute_dtype(call.meta().dtype);
  return emit(call, [&](NestBuilder& nest) {
    int x = nest.cast(nest.load(call.tensor(0, "self")), c);
    if (low) x = nest.op(ComputeOp::maximum, x, value(nest, *low, c));
    if (high) x = nest.op(ComputeOp::minimum, x, value(nest, *high, c));
    return x;
  });
}

Lowered where(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Operand a = operand(call, 1, "self"), b = operand(call, 2, "other");
  const DType result = call.meta().dtype;
  return emit(call, [&](NestBuilder& nest) {
    const int condition = nest.cast(nest.load(call.tensor(0, "condition")), DType::b8);
    const auto [kept, other] = values(nest, a, b, result);
    return nest.where(condition, kept, other);
  });
}

Lowered masked_fill(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Operand fill = operand(call, 2, "value");
  const DType result = call.meta().dtype;
  return emit(call, [&](NestBuilder& nest) {
    const int x = nest.cast(nest.load(call.tensor(0, "self")), result);
    const int mask = nest.cast(nest.load(call.tensor(1, "mask")), DType::b8);
    return nest.where(mask, value(nest, fill, result), x);
  });
}

template <bool divide_by>
Lowered addc(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const DType c = compute_dtype(call.meta().dtype);
  const loop::Scalar factor = call.scalar(3, "value", std::int64_t{1});
  return emit(call, [&](NestBuilder& nest) {
    const int x = nest.cast(nest.load(call.tensor(0, "self")), c);
    const int a = nest.cast(nest.load(call.tensor(1, "tensor1")), c);
    const int b = nest.cast(nest.load(call.tensor(2, "tensor2")), c);
    int scaled = as_double(factor) == 1 ? a : nest.mul(nest.constant(convert(factor, c), c), a);
    return nest.add(x, divide_by ? nest.exact_div(scaled, b) : nest.mul(scaled, b));
  });
}

/// fma(a, b, c) is a*b + c with one rounding: the product of two floats is exact in twice their width.
Lowered multiply_add(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const std::vector<Operand> operands = {operand(call, 0, "a"), operand(call, 1, "b"), operand(call, 2, "c")};
  const DType result = call.meta().dtype, own = compute_dtype(result);
  const DType wide = result == DType::f32 ? DType::f64 : own;
  return emit(call, [&](NestBuilder& nest) {
    const auto load = [&](std::size_t k) { return nest.cast(value(nest, operands[k], own), wide); };
    const int product = nest.mul(load(0), load(1));
    return nest.add(product, load(2));
  });
}

Lowered lerp(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Operand weight = operand(call, 2, "weight");
  const DType c = compute_dtype(call.meta().dtype);
  return emit(call, [&](NestBuilder& nest) {
    // ATen: from the nearer end, so that weight 1 gives `end` exactly.
    const int a = nest.cast(nest.load(call.tensor(0, "self")), c);
    const int b = nest.cast(nest.load(call.tensor(1, "end")), c);
    const int w = value(nest, weight, c);
    const int one = nest.number(1, a), difference = nest.sub(b, a);
    const int near_start = nest.add(a, nest.mul(w, difference));
    const int near_end = nest.sub(b, nest.mul(difference, nest.sub(one, w)));
    const int small = nest.compare(ComputeOp::lt, nest.op(ComputeOp::abs, w), nest.number(0.5, w));
    return nest.where(small, near_start, near_end);
  });
}

}  // namespace

std::vector<Entry> pointwise_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f, Takes takes = Takes::of_family) { rows.push_back({op, "pointwise", f, takes}); };
  add("aten.sin.default", float_unary<ComputeOp::sin>);
  add("aten.cos.default", float_unary<ComputeOp::cos>);
  add("aten.tan.default", float_unary<ComputeOp::tan>);
  add("aten.asin.default", float_unary<ComputeOp::asin>);
  add("aten.acos.default", float_unary<ComputeOp::acos>);
  add("aten.atan.default", float_unary<ComputeOp::atan>);
  add("aten.sinh.default", float_unary<ComputeOp::sinh>);
  add("aten.cosh.default", float_unary<ComputeOp::cosh>);
  add("aten.tanh.default", float_unary<ComputeOp::tanh>);
  add("aten.asinh.default", float_unary<ComputeOp::asinh>);
  add("aten.acosh.default", float_unary<ComputeOp::acosh>);
  add("aten.atanh.default", float_unary<ComputeOp::atanh>);
  add("aten.exp.default", float_unary<ComputeOp::exp>);
  add("aten.exp2.default", float_unary<ComputeOp::exp2>);
  add("aten.expm1.default", float_unary<ComputeOp::expm1>);
  add("aten.log.default", float_unary<ComputeOp::log>);
  add("aten.log2.default", float_unary<ComputeOp::log2>);
  add("aten.log10.default", float_unary<ComputeOp::log10>);
  add("aten.log1p.default", float_unary<ComputeOp::log1p>);
  add("aten.sqrt.default", float_unary<ComputeOp::sqrt>);
  add("aten.rsqrt.default", float_unary<ComputeOp::rsqrt>);
  add("aten.erf.default", float_unary<ComputeOp::erf>);
  add("aten.erfc.default", float_unary<ComputeOp::erfc>);
  add("aten.erfinv.default", float_unary<ComputeOp::erfinv>);
  add("aten.lgamma.default", float_unary<ComputeOp::lgamma>);
  add("aten.digamma.default", float_unary<ComputeOp::digamma>);
  add("aten.sigmoid.default", float_unary<ComputeOp::sigmoid>);
  add("aten.reciprocal.default", reciprocal);
  add("aten.neg.default", same_unary<ComputeOp::neg, false>, Takes::numbers);
  add("aten.abs.default", same_unary<ComputeOp::abs, false>, Takes::numbers);
  add("aten.floor.default", same_unary<ComputeOp::floor, true>);
  add("aten.ceil.default", same_unary<ComputeOp::ceil, true>, Takes::numbers);
  add("aten.trunc.default", same_unary<ComputeOp::trunc, true>, Takes::numbers);
  add("aten.round.default", same_unary<ComputeOp::round, true>, Takes::numbers);
  add("aten.sign.default", sign);
  add("aten.sgn.default", sign);
  add("aten.frac.default", frac);
  add("aten.square.default", square);
  add("aten.isnan.default", predicate<ComputeOp::isnan>);
  add("aten.isinf.default", predicate<ComputeOp::isinf>);
  add("aten.isfinite.default", predicate<ComputeOp::isfinite>);
  for (std::string_view op : {"aten.add.Tensor", "aten.add.Scalar"}) add(op, add_sub<false, false>);
  for (std::string_view op : {"aten.sub.Tensor", "aten.sub.Scalar"}) add(op, add_sub<true, false>, Takes::numbers);
  for (std::string_view op : {"aten.rsub.Tensor", "aten.rsub.Scalar"}) add(op, add_sub<true, true>, Takes::numbers);
  for (std::string_view op : {"aten.mul.Tensor", "aten.mul.Scalar"}) add(op, arithmetic<ComputeOp::mul>);
  for (std::string_view op : {"aten.div.Tensor", "aten.div.Scalar", "aten.div.Tensor_mode", "aten.div.Scalar_mode",
                              "aten.true_divide.Tensor", "aten.floor_divide.default", "aten.floor_divide.Scalar"})
    add(op, divide);
  for (std::string_view op : {"aten.maximum.default", "aten.max.other"}) add(op, arithmetic<ComputeOp::maximum>);
  for (std::string_view op : {"aten.minimum.default", "aten.min.other"}) add(op, arithmetic<ComputeOp::minimum>);
  add("aten.atan2.default", arithmetic<ComputeOp::atan2>);
  add("aten.hypot.default", arithmetic<ComputeOp::hypot>, Takes::floats);
  add("aten.copysign.Tensor", arithmetic<ComputeOp::copysign>);
  add("aten.copysign.Scalar", arithmetic<ComputeOp::copysign>);
  for (std::string_view op : {"aten.fmod.Tensor", "aten.fmod.Scalar"}) add(op, remainder<ComputeOp::rem_trunc>);
  for (std::string_view op : {"aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor"})
    add(op, remainder<ComputeOp::rem_floor>, op.ends_with(".Scalar") ? Takes::of_family : Takes::numbers);
  for (std::string_view op : {"aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor", "aten.pow.Scalar"}) add(op, power, op.ends_with(".Tensor_Tensor") ? Takes::numbers : Takes::of_family);
  for (std::string_view op : {"aten.eq.Tensor", "aten.eq.Scalar"}) add(op, comparison<ComputeOp::eq>);
  for (std::string_view op : {"aten.ne.Tensor", "aten.ne.Scalar"}) add(op, comparison<ComputeOp::ne>);
  for (std::string_view op : {"aten.lt.Tensor", "aten.lt.Scalar"}) add(op, comparison<ComputeOp::lt>);
  for (std::string_view op : {"aten.le.Tensor", "aten.le.Scalar"}) add(op, comparison<ComputeOp::le>);
  for (std::string_view op : {"aten.gt.Tensor", "aten.gt.Scalar"}) add(op, comparison<ComputeOp::gt>);
  for (std::string_view op : {"aten.ge.Tensor", "aten.ge.Scalar"}) add(op, comparison<ComputeOp::ge>);
  add("aten.logical_and.default", logical<ComputeOp::logical_and>);
  add("aten.logical_or.default", logical<ComputeOp::logical_or>);
  add("aten.logical_xor.default", logical<ComputeOp::logical_xor>);
  add("aten.logical_not.default", logical_not);
  for (std::string_view op : {"aten.bitwise_and.Tensor", "aten.bitwise_and.Scalar", "aten.bitwise_and.Scalar_Tensor",
                              "aten.__and__.Tensor", "aten.__and__.Scalar"})
    add(op, bitwise<ComputeOp::bitwise_and>, Takes::integral);
  for (std::string_view op : {"aten.bitwise_or.Tensor", "aten.bitwise_or.Scalar", "aten.bitwise_or.Scalar_Tensor",
                              "aten.__or__.Tensor", "aten.__or__.Scalar"})
    add(op, bitwise<ComputeOp::bitwise_or>, Takes::integral);
  for (std::string_view op : {"aten.bitwise_xor.Tensor", "aten.bitwise_xor.Scalar", "aten.bitwise_xor.Scalar_Tensor",
                              "aten.__xor__.Tensor", "aten.__xor__.Scalar"})
    add(op, bitwise<ComputeOp::bitwise_xor>, Takes::integral);
  for (std::string_view op : {"aten.bitwise_left_shift.Tensor", "aten.bitwise_left_shift.Tensor_Scalar",
                              "aten.bitwise_left_shift.Scalar_Tensor",
                              "aten.__lshift__.Tensor", "aten.__lshift__.Scalar"})
    add(op, bitwise<ComputeOp::shift_left>, op.ends_with(".Tensor") ? Takes::integers : Takes::integral);
  for (std::string_view op : {"aten.bitwise_right_shift.Tensor", "aten.bitwise_right_shift.Tensor_Scalar",
                              "aten.bitwise_right_shift.Scalar_Tensor",
                              "aten.__rshift__.Tensor", "aten.__rshift__.Scalar"})
    add(op, bitwise<ComputeOp::shift_right>, op.ends_with(".Tensor") ? Takes::integers : Takes::integral);
  add("aten.bitwise_not.default", bitwise_not, Takes::integral);
  for (std::string_view op : {"aten.clamp.default", "aten.clamp.Tensor", "aten.clamp_min.default", "aten.clamp_min.Tensor",
                              "aten.clamp_max.default", "aten.clamp_max.Tensor"})
    add(op, clamp);
  for (std::string_view op : {"aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar"})
    add(op, where);
  for (std::string_view op : {"aten.masked_fill.Scalar", "aten.masked_fill.Tensor"}) add(op, masked_fill);
  add("aten.addcmul.default", addc<false>, Takes::numbers);
  add("aten.addcdiv.default", addc<true>, Takes::floats);
  add("prims.fma.default", multiply_add, Takes::floats);
  for (std::string_view op : {"aten.lerp.Scalar", "aten.lerp.Tensor"}) add(op, lerp, Takes::floats);
  return rows;
}

}  // namespace pallascope::lower
