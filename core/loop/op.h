// Room: loop. The scalar operations that a loop nest can hold: one table, read by lowering, targets and codegen.
#pragma once

#include <cstdint>
#include <string_view>

namespace pallascope::loop {

// name, arity, the JAX expression with {0}, {1}, {2} for the operands
#define PALLASCOPE_COMPUTE_OPS(X)                                   \
  X(neg, 1, "-{0}")                                                 \
  X(abs, 1, "jnp.abs({0})")                                         \
  X(sign, 1, "jnp.sign({0})")                                       \
  X(sin, 1, "jnp.sin({0})")                                         \
  X(cos, 1, "jnp.cos({0})")                                         \
  X(tan, 1, "jnp.tan({0})")                                         \
  X(asin, 1, "jnp.arcsin({0})")                                     \
  X(acos, 1, "jnp.arccos({0})")                                     \
  X(atan, 1, "jnp.arctan({0})")                                     \
  X(sinh, 1, "_sinh({0})")                                          \
  X(cosh, 1, "_cosh({0})")                                          \
  X(tanh, 1, "jnp.tanh({0})")                                       \
  X(asinh, 1, "jnp.arcsinh({0})")                                   \
  X(acosh, 1, "jnp.arccosh({0})")                                   \
  X(atanh, 1, "jnp.arctanh({0})")                                   \
  X(exp, 1, "jnp.exp({0})")                                         \
  X(exp2, 1, "_exp2({0})")                                          \
  X(expm1, 1, "jnp.expm1({0})")                                     \
  X(log, 1, "jnp.log({0})")                                         \
  X(log2, 1, "jnp.log2({0})")                                       \
  X(log10, 1, "jnp.log10({0})")                                     \
  X(log1p, 1, "jnp.log1p({0})")                                     \
  X(sqrt, 1, "jnp.sqrt({0})")                                       \
  X(rsqrt, 1, "lax.rsqrt({0})")                                     \
  X(floor, 1, "jnp.floor({0})")                                     \
  X(ceil, 1, "jnp.ceil({0})")                                       \
  X(trunc, 1, "jnp.trunc({0})")                                     \
  X(round, 1, "jnp.round({0})")                                     \
  X(erf, 1, "lax.erf({0})")                                         \
  X(erfc, 1, "lax.erfc({0})")                                       \
  X(erfinv, 1, "lax.erf_inv({0})")                                  \
  X(lgamma, 1, "lax.lgamma({0})")                                   \
  X(digamma, 1, "_digamma({0})")                                    \
  X(sigmoid, 1, "jax.nn.sigmoid({0})")                              \
  X(frexp_mantissa, 1, "jnp.frexp({0})[0]")                         \
  X(frexp_exponent, 1, "jnp.frexp({0})[1]")                         \
  X(erfcx, 1, "_erfcx({0})")                                        \
  X(ndtri, 1, "_ndtri({0})")                                        \
  X(log_ndtr, 1, "_log_ndtr({0})")                                  \
  X(i0e, 1, "lax.bessel_i0e({0})")                                  \
  X(i1e, 1, "lax.bessel_i1e({0})")                                  \
  X(isnan, 1, "jnp.isnan({0})")                                     \
  X(isinf, 1, "jnp.isinf({0})")                                     \
  X(isfinite, 1, "jnp.isfinite({0})")                               \
  X(signbit, 1, "jnp.signbit({0})")                                 \
  X(logical_not, 1, "jnp.logical_not({0})")                         \
  X(bitwise_not, 1, "jnp.bitwise_not({0})")                         \
  X(cast, 1, "{0}.astype(jnp.{dtype})")                             \
  X(bitcast, 1, "lax.bitcast_convert_type({0}, jnp.{dtype})")         \
  X(add, 2, "{0} + {1}")                                            \
  X(sub, 2, "{0} - {1}")                                            \
  X(mul, 2, "{0} * {1}")                                            \
  X(div, 2, "{0} / {1}")                                            \
  X(exact_div, 2, "{0} / {1}")                                      \
  X(integer_div_trunc, 2, "lax.div({0}, {1})")                      \
  X(integer_div_floor, 2, "jnp.floor_divide({0}, {1})")             \
  X(rem_trunc, 2, "lax.rem({0}, {1})")                              \
  X(rem_floor, 2, "jnp.remainder({0}, {1})")                        \
  X(pow, 2, "jnp.power({0}, {1})")                                  \
  X(maximum, 2, "jnp.maximum({0}, {1})")                            \
  X(minimum, 2, "jnp.minimum({0}, {1})")                            \
  X(atan2, 2, "jnp.arctan2({0}, {1})")                              \
  X(hypot, 2, "jnp.hypot({0}, {1})")                                \
  X(copysign, 2, "jnp.copysign({0}, {1})")                          \
  X(nextafter, 2, "jnp.nextafter({0}, {1})")                        \
  X(integer_pow, 2, "_integer_pow({0}, {1})")                       \
  X(ldexp, 2, "jnp.ldexp({0}, {1})")                                \
  X(gcd, 2, "_gcd({0}, {1})")                                       \
  X(igamma, 2, "lax.igamma({0}, {1})")                              \
  X(igammac, 2, "lax.igammac({0}, {1})")                            \
  X(zeta, 2, "lax.zeta({0}, {1})")                                  \
  X(eq, 2, "{0} == {1}")                                            \
  X(ne, 2, "{0} != {1}")                                            \
  X(lt, 2, "{0} < {1}")                                             \
  X(le, 2, "{0} <= {1}")                                            \
  X(gt, 2, "{0} > {1}")                                             \
  X(ge, 2, "{0} >= {1}")                                            \
  X(logical_and, 2, "jnp.logical_and({0}, {1})")                    \
  X(logical_or, 2, "jnp.logical_or({0}, {1})")                      \
  X(logical_xor, 2, "jnp.logical_xor({0}, {1})")                    \
  X(bitwise_and, 2, "jnp.bitwise_and({0}, {1})")                    \
  X(bitwise_or, 2, "jnp.bitwise_or({0}, {1})")                      \
  X(bitwise_xor, 2, "jnp.bitwise_xor({0}, {1})")                    \
  X(shift_left, 2, "jnp.left_shift({0}, {1})")                      \
  X(shift_right, 2, "jnp.right_shift({0}, {1})")                    \
  X(where, 3, "jnp.where({0}, {1}, {2})")

enum class ComputeOp : std::uint8_t {
#define PALLASCOPE_OP_ENUM(name, arity, text) name,
  PALLASCOPE_COMPUTE_OPS(PALLASCOPE_OP_ENUM)
#undef PALLASCOPE_OP_ENUM
};

struct ComputeOpInfo {
  std::string_view name;
  int arity;
  std::string_view jax;  ///< the JAX expression with {0}, {1}, {2} for operands and {dtype} for the result dtype
};
const ComputeOpInfo& info(ComputeOp op);

enum class ReduceOp : std::uint8_t { sum, prod, max, min, any, all, argmax, argmin };
/// `sum`, `max`, ...
std::string_view reduce_name(ReduceOp op);

/// What a scan keeps up to and with each element.
enum class ScanOp : std::uint8_t { sum, prod, max, min, logsumexp };
/// `sum`, `max`, ...
std::string_view scan_name(ScanOp op);

/// How a store meets what its buffer holds. `plain` fills elements that nothing else fills, through slices. The others
/// go through computed indices, point after point in the order of the nest, into a buffer that is filled already: two
/// points may name one element.
enum class StoreMode : std::uint8_t { plain, set, add, mul, max, min };
/// `plain`, `add`, ...
std::string_view store_mode_name(StoreMode mode);

}  // namespace pallascope::loop
