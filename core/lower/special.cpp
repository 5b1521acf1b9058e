// Family: the rarer mathematical functions, by composition where ATen's own formula is short.
#include <cmath>
#include <limits>

#include "core/lower/operand.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;

constexpr double kPi = 3.14159265358979323846;
constexpr double kSqrtHalf = 0.70710678118654752440;

/// One float value of `self`, in the compute dtype of the result, through `formula`.
template <int (*formula)(NestBuilder&, int)>
Lowered unary(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  if (!is_float(call.meta().dtype)) return declined("a function of floats whose result is none");
  return emit(call, [&](NestBuilder& n) {
    return formula(n, n.cast(n.load(call.tensor(0, "self")), compute_dtype(call.meta().dtype)));
  });
}

/// Two operands (tensors or numbers) in the compute dtype of the result through `formula`.
template <int (*formula)(NestBuilder&, int, int)>
Lowered binary(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Operand a = operand(call, 0, "self"), b = operand(call, 1, "other");
  return emit(call, [&](NestBuilder& n) {
    const auto [left, right] = values(n, a, b, compute_dtype(call.meta().dtype));
    return formula(n, left, right);
  });
}

template <ComputeOp op>
int plain(NestBuilder& n, int x) {
  return n.op(op, x);
}
template <ComputeOp op>
int plain2(NestBuilder& n, int a, int b) {
  return n.op(op, a, b);
}

int angle(NestBuilder& n, int x) {
  return n.where(is_nan(n, x), x, n.where(less(n, x, 0), n.number(kPi, x), n.number(0, x)));
}
int to_radians(NestBuilder& n, int x) { return scale(n, x, kPi / 180); }
int to_degrees(NestBuilder& n, int x) { return scale(n, x, 180 / kPi); }

int sinc(NestBuilder& n, int x) {
  const int product = scale(n, x, kPi);
  return n.where(equals(n, x, 0), n.number(1, x), n.div(n.op(ComputeOp::sin, product), product));
}

int i0(NestBuilder& n, int x) { return n.mul(n.op(ComputeOp::exp, n.op(ComputeOp::abs, x)), n.op(ComputeOp::i0e, x)); }
int i1(NestBuilder& n, int x) { return n.mul(n.op(ComputeOp::exp, n.op(ComputeOp::abs, x)), n.op(ComputeOp::i1e, x)); }

/// The operators of ndtr round one by one.
Lowered ndtr(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const DType d = call.meta().dtype, c = compute_dtype(d);
  return emit(call, [&](NestBuilder& n) {
    const auto round = [&](int v) { return n.cast(n.cast(v, d), c); };
    const int x = round(scale(n, n.cast(n.load(call.tensor(0, "self")), c), kSqrtHalf));
    return scale(n, round(plus(n, round(n.op(ComputeOp::erf, x)), 1)), 0.5);
  });
}

int entr(NestBuilder& n, int x) {
  const int inside = n.op(ComputeOp::neg, n.mul(x, n.op(ComputeOp::log, x)));
  const int outside = n.where(equals(n, x, 0), n.number(0, x), n.number(-INFINITY, x));
  return n.where(is_nan(n, x), x, n.where(greater(n, x, 0), inside, outside));
}

/// x * f(y), 0 where x is 0 and y is a number; the logarithm is rounded to the dtype.
template <ComputeOp f>
Lowered times_log(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Operand a = operand(call, 0, "self"), b = operand(call, 1, "other");
  const DType d = call.meta().dtype;
  return emit(call, [&](NestBuilder& n) {
    const auto [x, y] = values(n, a, b, compute_dtype(d));
    const int product = n.mul(x, Rounding(n, d)(n.op(f, y)));
    return n.where(is_nan(n, y), y, n.where(equals(n, x, 0), n.number(0, x), product));
  });
}

/// fmax and fmin: NaN counts only where both are.
template <ComputeOp op>
int ignoring_nan(NestBuilder& n, int a, int b) {
  if (!is_float(n.dtype(a))) return n.op(op, a, b);
  return n.where(is_nan(n, a), b, n.where(is_nan(n, b), a, n.op(op, a, b)));
}

int heaviside(NestBuilder& n, int x, int at_zero) {
  const DType d = n.dtype(x);
  const int zero = n.constant(to_scalar(0, d), d), one = n.constant(to_scalar(1, d), d);
  return n.where(n.compare(ComputeOp::eq, x, zero), at_zero, n.where(n.compare(ComputeOp::gt, x, zero), one, zero));
}

int logaddexp(NestBuilder& n, int a, int b) {
  const int top = n.op(ComputeOp::maximum, a, b);
  const int sum = n.add(top, n.op(ComputeOp::log1p, n.op(ComputeOp::exp, n.op(ComputeOp::neg, n.op(ComputeOp::abs, n.sub(a, b))))));
  return n.where(both(n, is_infinite(n, a), n.compare(ComputeOp::eq, a, b)), a, sum);
}

int logaddexp2(NestBuilder& n, int a, int b) {
  const int top = n.op(ComputeOp::maximum, a, b);
  const int tail = n.op(ComputeOp::log1p, n.op(ComputeOp::exp2, n.op(ComputeOp::neg, n.op(ComputeOp::abs, n.sub(a, b)))));
  return n.where(both(n, is_infinite(n, a), n.compare(ComputeOp::eq, a, b)), a, n.add(top, scale(n, tail, 1.44269504088896340736)));
}

/// The incomplete gamma functions; `lower` says what they give at the ends of their range.
template <ComputeOp op, bool lower>
int incomplete_gamma(NestBuilder& n, int a, int x) {
  const double full = lower ? 1 : 0;
  const int one_or_zero = n.number(full, x), other = n.number(1 - full, x), nothing = n.number(NAN, x);
  // In f64: the logarithms of the terms are large and nearly cancel.
  int result = n.cast(n.op(op, n.cast(a, DType::f64), n.cast(x, DType::f64)), n.dtype(x));
  result = n.where(is_infinite(n, x), one_or_zero, result);
  result = n.where(is_infinite(n, a), n.where(is_infinite(n, x), nothing, other), result);
  result = n.where(equals(n, x, 0), other, result);
  result = n.where(equals(n, a, 0), n.where(greater(n, x, 0), one_or_zero, nothing), result);
  return n.where(either(n, less(n, x, 0), less(n, a, 0)), nothing, result);
}

int lcm(NestBuilder& n, int a, int b) {
  const DType d = n.dtype(a), wide = dtype_bytes(d) < 4 ? DType::i32 : d;  // C computes in int at least
  const int common = n.op(ComputeOp::gcd, a, b), zero = n.constant(std::int64_t{0}, d), one = n.constant(std::int64_t{1}, d);
  const int none = n.compare(ComputeOp::eq, common, zero);
  const int part = n.cast(n.op(ComputeOp::integer_div_trunc, a, n.where(none, one, common)), wide);
  const int product = n.op(ComputeOp::abs, n.mul(part, n.cast(b, wide)));
  return n.where(none, zero, n.cast(product, d));
}

/// A question about a float; `otherwise` is the answer for integers.
template <int (*question)(NestBuilder&, int), bool otherwise>
Lowered ask(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  return emit(call, [&](NestBuilder& n) {
    const int x = n.load(call.tensor(0, "self"));
    return is_float(n.dtype(x)) ? question(n, x) : n.constant(otherwise, DType::b8);
  });
}
int is_negative_infinity(NestBuilder& n, int x) { return equals(n, x, -INFINITY); }
int is_positive_infinity(NestBuilder& n, int x) { return equals(n, x, INFINITY); }

Lowered always_true(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  return emit(call, [&](NestBuilder& n) { return n.constant(true, DType::b8); });
}

Lowered signbit(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  return emit(call, [&](NestBuilder& n) {
    const int x = n.load(call.tensor(0, "self"));
    if (is_float(n.dtype(x))) return n.compute(ComputeOp::signbit, DType::b8, {x});
    if (!is_signed_integer(n.dtype(x))) return n.constant(false, DType::b8);
    return n.compare(ComputeOp::lt, x, n.constant(std::int64_t{0}, n.dtype(x)));
  });
}

/// Operators that give their argument itself where it is real.
Lowered itself(Call& call) {
  if (is_complex(call.tensor(0, "self").dtype)) return declined_dtype();
  call.define(call.tensor(0, "self"));
  return as_view();
}

Lowered frexp(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Tensor x = call.tensor(0, "self");
  // The answers for what has no exponent are those of the C library: the value itself and 0.
  const auto finite = [&](NestBuilder& n) {
    const int v = n.cast(n.load(x), compute_dtype(x.dtype));
    return std::pair(v, is_finite(n, v));
  };
  emit(call, [&](NestBuilder& n) {
    const auto [v, usual] = finite(n);
    return n.where(usual, n.op(ComputeOp::frexp_mantissa, v), v);
  });
  if (!call.wanted(1)) return as_kernel();
  return emit(
      call,
      [&](NestBuilder& n) {
        const auto [v, usual] = finite(n);
        return n.where(usual, n.compute(ComputeOp::frexp_exponent, DType::i32, {v}), n.constant(std::int64_t{0}, DType::i32));
      },
      1);
}

/// ldexp(x, n) is x * 2**n, the power rounded to the dtype that pow(2., n) has.
Lowered ldexp(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Tensor x = call.tensor(0, "self"), by = call.tensor(1, "other");
  const DType result = call.meta().dtype, c = compute_dtype(result);
  const DType power = is_float(by.dtype) ? by.dtype : DType::f32;
  return emit(call, [&](NestBuilder& n) {
    const int left = n.cast(n.load(x), c);
    const int exponent = n.load(by);
    int right = 0;
    if (is_float(by.dtype)) {
      right = n.op(ComputeOp::exp2, n.cast(exponent, compute_dtype(power)));
    } else {
      // Far beyond the range of the power's exponents.
      int held = n.cast(exponent, DType::i64);
      held = n.op(ComputeOp::maximum, held, n.constant(std::int64_t{-400}, DType::i64));
      held = n.op(ComputeOp::minimum, held, n.constant(std::int64_t{400}, DType::i64));
      right = n.compute(ComputeOp::ldexp, power, {n.constant(1.0, power), n.cast(held, DType::i32)});
    }
    return n.mul(left, n.cast(n.cast(right, power), c));
  });
}

Lowered nextafter(Call& call) {
  // In the dtype itself: the neighbour of a 16-bit number is 16-bit.
  if (!kernel_operands(call)) return declined_dtype();
  const Operand a = operand(call, 0, "self"), b = operand(call, 1, "other");
  return emit(call, [&](NestBuilder& n) {
    const auto [left, right] = values(n, a, b, call.meta().dtype);
    const int equal = n.compare(ComputeOp::eq, left, right);
    return n.where(equal, right, n.op(ComputeOp::nextafter, left, right));
  });
}

Lowered round_decimals(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const std::int64_t decimals = call.integer(99, "decimals");
  const DType c = compute_dtype(call.meta().dtype);
  if (!is_float(c) && decimals != 0) return declined("round of integers to decimals");
  return emit(call, [&](NestBuilder& n) {
    const int x = n.cast(n.load(call.tensor(0, "self")), c);
    if (!is_float(c)) return x;
    if (decimals == 0) return n.op(ComputeOp::round, x);
    const int ten = n.number(std::pow(10.0, static_cast<double>(std::abs(decimals))), x);
    if (decimals > 0) return n.exact_div(n.op(ComputeOp::round, n.mul(x, ten)), ten);
    return n.mul(n.op(ComputeOp::round, n.exact_div(x, ten)), ten);
  });
}

Lowered nan_to_num(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const DType d = call.meta().dtype;
  const double top = d == DType::f64   ? std::numeric_limits<double>::max()
                     : d == DType::f32 ? static_cast<double>(std::numeric_limits<float>::max())
                     : d == DType::f16 ? 65504.0
                                       : 3.3895313892515355e38;
  return emit(call, [&](NestBuilder& n) {
    const int x = n.load(call.tensor(0, "self"));
    if (!is_float(d)) return x;
    const auto number = [&](std::size_t place, std::string_view name, double otherwise) {
      return n.number(rounded(call.has(place, name) ? call.number(place, name) : otherwise, d), x);
    };
    const int high = n.where(is_positive_infinity(n, x), number(2, "posinf", top), x);
    const int low = n.where(is_negative_infinity(n, x), number(3, "neginf", -top), high);
    return n.where(is_nan(n, x), number(1, "nan", 0), low);
  });
}

/// isclose(a, b, rtol, atol, equal_nan), rounding where ATen's operators round.
Lowered isclose(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Tensor a = call.tensor(0, "self"), b = call.tensor(1, "other");
  const double rtol = call.number(2, "rtol", 1e-5), atol = call.number(3, "atol", 1e-8);
  const bool equal_nan = call.boolean(4, "equal_nan", false);
  if (a.dtype != b.dtype) throw MalformedNode{"isclose of two dtypes"};
  return emit(call, [&](NestBuilder& n) {
    const int left = n.load(a), right = n.load(b);
    int close = n.compare(ComputeOp::eq, left, right);
    if (equal_nan && is_float(a.dtype)) close = either(n, close, both(n, is_nan(n, left), is_nan(n, right)));
    if (rtol == 0 && atol == 0) return close;
    const DType d = is_float(a.dtype) ? a.dtype : DType::f32, c = compute_dtype(d);
    const auto round = [&](int v) { return n.cast(n.cast(v, d), c); };
    const int other = n.cast(n.cast(right, d), c);
    const int allowed = round(plus(n, n.op(ComputeOp::abs, round(scale(n, other, rtol))), rounded(atol, d)));
    // Integers are subtracted as integers where both are.
    const int mine = n.cast(n.cast(left, d), c);
    const int apart = n.op(ComputeOp::abs, round(n.sub(mine, other)));
    return either(n, close, both(n, is_finite(n, apart), n.compare(ComputeOp::le, apart, allowed)));
  });
}

int held(NestBuilder& n, int x, double eps) {
  return n.where(less(n, x, eps), n.number(eps, x), n.where(greater(n, x, 1 - eps), n.number(1 - eps, x), x));
}

Lowered logit(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const bool clamped = call.has(1, "eps");
  const double eps = clamped ? call.number(1, "eps") : -1;
  return emit(call, [&](NestBuilder& n) {
    int x = n.cast(n.load(call.tensor(0, "self")), compute_dtype(call.meta().dtype));
    if (clamped && eps >= 0) x = held(n, x, eps);
    // ATen's kernel computes in the dtype itself.
    const DType d = call.meta().dtype, c = n.dtype(x);
    const int rest = n.cast(n.cast(n.sub(n.number(1, x), x), d), c);
    return n.op(ComputeOp::log, n.cast(n.cast(n.div(x, rest), d), c));
  });
}

Lowered logit_backward(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const double eps = call.has(2, "eps") ? call.number(2, "eps") : -1;
  return emit(call, [&](NestBuilder& n) {
    const DType c = compute_dtype(call.meta().dtype);
    const int grad = n.cast(n.load(call.tensor(0, "grad_output")), c), x = n.cast(n.load(call.tensor(1, "self")), c);
    const int slope = n.div(grad, n.mul(x, n.sub(n.number(1, x), x)));
    const double low = eps < 0 ? 0 : eps, high = eps < 0 ? 1 : 1 - eps;
    return n.where(both(n, at_least(n, x, low), at_most(n, x, high)), slope, n.number(eps < 0 ? NAN : 0, x));
  });
}

/// float_power computes in f64, whatever the operands are.
Lowered float_power(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const Operand a = operand(call, 0, "self"), b = operand(call, 1, "exponent");
  return emit(call, [&](NestBuilder& n) {
    const int x = value(n, a, DType::f64);
    if (!b.tensor) return power_of(n, x, as_double(b.scalar));
    return n.op(ComputeOp::pow, x, value(n, b, DType::f64));
  });
}

/// polygamma(n, x)
Lowered polygamma(Call& call) {
  if (!call.is_tensor(1, "self")) throw MalformedNode{"polygamma without a tensor"};
  const std::int64_t order = call.integer(0, "n");
  const Tensor x = call.tensor(1, "self");
  if (!is_kernel_dtype(x.dtype) || !is_kernel_dtype(call.meta().dtype)) return declined_dtype();
  if (order == 1) return declined("trigamma, whose reflection for negative numbers is not lowered");
  return emit(call, [&](NestBuilder& n) {
    const int v = n.cast(n.load(x), compute_dtype(call.meta().dtype));
    if (order == 0) return n.op(ComputeOp::digamma, v);
    const double factor = std::tgamma(static_cast<double>(order + 1)) * (order % 2 == 0 ? -1 : 1);
    return scale(n, n.op(ComputeOp::zeta, n.number(static_cast<double>(order + 1), v), v), factor);
  });
}

/// mvlgamma(x, p): the sum of lgamma(x - k/2), k < p, and p(p-1)/4 log(pi).
Lowered mvlgamma(Call& call) {
  if (!kernel_operands(call)) return declined_dtype();
  const std::int64_t p = call.integer(1, "p");
  if (p > 64) return declined("a multivariate gamma function of more than 64 dimensions");
  const DType d = call.meta().dtype, c = compute_dtype(d);
  return emit(call, [&](NestBuilder& n) {
    const int x = n.cast(n.load(call.tensor(0, "self")), c);
    const auto round = [&](int v) { return n.cast(n.cast(v, d), c); };
    int total = -1;
    for (std::int64_t k = p; k-- > 0;) {
      const int term = round(n.op(ComputeOp::lgamma, round(plus(n, x, -0.5 * static_cast<double>(k)))));
      total = total < 0 ? term : n.add(total, term);
    }
    const double rest = static_cast<double>(p * (p - 1)) * std::log(kPi) / 4;
    return plus(n, round(total), rounded(rest, d));
  });
}

}  // namespace

std::vector<Entry> special_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "special", f}); };
  add("aten.angle.default", unary<angle>);
  add("aten.deg2rad.default", unary<to_radians>);
  add("aten.rad2deg.default", unary<to_degrees>);
  add("aten.sinc.default", unary<sinc>);
  add("aten.i0.default", unary<i0>);
  add("aten.special_i1.default", unary<i1>);
  add("aten.special_i0e.default", unary<plain<ComputeOp::i0e>>);
  add("aten.special_i1e.default", unary<plain<ComputeOp::i1e>>);
  add("aten.special_erfcx.default", unary<plain<ComputeOp::erfcx>>);
  add("aten.special_ndtri.default", unary<plain<ComputeOp::ndtri>>);
  add("aten.special_ndtr.default", ndtr);
  add("aten.special_log_ndtr.default", unary<plain<ComputeOp::log_ndtr>>);
  add("aten.special_entr.default", unary<entr>);
  for (std::string_view op : {"aten.xlogy.Tensor", "aten.xlogy.Scalar_Other", "aten.xlogy.Scalar_Self"})
    add(op, times_log<ComputeOp::log>);
  for (std::string_view op : {"aten.special_xlog1py.default", "aten.special_xlog1py.other_scalar", "aten.special_xlog1py.self_scalar"})
    add(op, times_log<ComputeOp::log1p>);
  add("aten.igamma.default", binary<incomplete_gamma<ComputeOp::igamma, true>>);
  add("aten.igammac.default", binary<incomplete_gamma<ComputeOp::igammac, false>>);
  add("aten.polygamma.default", polygamma);
  add("aten.mvlgamma.default", mvlgamma);
  add("aten.fmax.default", binary<ignoring_nan<ComputeOp::maximum>>);
  add("aten.fmin.default", binary<ignoring_nan<ComputeOp::minimum>>);
  add("aten.heaviside.default", binary<heaviside>);
  add("aten.logaddexp.default", binary<logaddexp>);
  add("aten.logaddexp2.default", binary<logaddexp2>);
  add("aten.gcd.default", binary<plain2<ComputeOp::gcd>>);
  add("aten.lcm.default", binary<lcm>);
  add("aten.isneginf.default", ask<is_negative_infinity, false>);
  add("aten.isposinf.default", ask<is_positive_infinity, false>);
  add("aten.isreal.default", always_true);
  add("aten.signbit.default", signbit);
  for (std::string_view op : {"aten.positive.default", "aten.real.default", "aten.conj.default", "aten._conj.default",
                              "aten.conj_physical.default", "aten.resolve_conj.default", "aten.resolve_neg.default"})
    add(op, itself);
  add("aten.frexp.Tensor", frexp);
  add("aten.ldexp.Tensor", ldexp);
  add("aten.nextafter.default", nextafter);
  add("aten.round.decimals", round_decimals);
  add("aten.nan_to_num.default", nan_to_num);
  add("aten.isclose.default", isclose);
  add("aten.logit.default", logit);
  add("aten.logit_backward.default", logit_backward);
  for (std::string_view op : {"aten.float_power.Tensor_Tensor", "aten.float_power.Tensor_Scalar", "aten.float_power.Scalar"})
    add(op, float_power);
  return rows;
}

}  // namespace pallascope::lower
