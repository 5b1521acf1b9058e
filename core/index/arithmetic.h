// Room: index. Integer arithmetic of index expressions: floored division, and products that never wrap silently.
#pragma once

#include <cstdint>
#include <limits>
#include <numeric>

#include "core/base/diagnostic.h"

namespace pallascope::index {

/// floor(a / divisor), divisor > 0: floor_quotient(-1, 8) is -1.
constexpr std::int64_t floor_quotient(std::int64_t a, std::int64_t divisor) {
  const std::int64_t q = a / divisor;
  return a % divisor < 0 ? q - 1 : q;
}

/// a - divisor * floor(a / divisor), divisor > 0: floor_remainder(-1, 8) is 7.
constexpr std::int64_t floor_remainder(std::int64_t a, std::int64_t divisor) {
  const std::int64_t r = a % divisor;
  return r < 0 ? r + divisor : r;
}

/// Whether a * b fits; the product goes to `result`.
inline bool try_multiply(std::int64_t a, std::int64_t b, std::int64_t& result) {
  return !__builtin_mul_overflow(a, b, &result);
}
inline bool try_add(std::int64_t a, std::int64_t b, std::int64_t& result) {
  return !__builtin_add_overflow(a, b, &result);
}

/// a * b; an overflow is our own bug, since sizes are checked at intake.
inline std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  PALLASCOPE_CHECK(try_multiply(a, b, result), "index arithmetic overflows 64 bits");
  return result;
}
/// a + b, checked like `checked_multiply`.
inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  PALLASCOPE_CHECK(try_add(a, b, result), "index arithmetic overflows 64 bits");
  return result;
}

/// |a|; the one value without a magnitude cannot be a coefficient of a real buffer.
inline std::int64_t magnitude(std::int64_t a) { return a < 0 ? checked_multiply(a, -1) : a; }

/// Greatest common divisor of magnitudes; gcd(0, d) is d.
inline std::int64_t gcd(std::int64_t a, std::int64_t b) { return std::gcd(a, b); }

/// a * b and a + b, held within 64 bits. For ranges only: the values themselves fit, so a held bound is a true one.
inline std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (try_multiply(a, b, result)) return result;
  return (a < 0) == (b < 0) ? std::numeric_limits<std::int64_t>::max()
                            : std::numeric_limits<std::int64_t>::min();
}
inline std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (try_add(a, b, result)) return result;
  return a > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

}  // namespace pallascope::index
