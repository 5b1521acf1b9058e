#include "core/lower/promotion.h"

#include <algorithm>
#include <utility>

namespace pallascope::lower {

int category(DType d) {
  if (is_complex(d)) return 3;
  if (is_float(d)) return 2;
  return is_bool(d) ? 0 : 1;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (is_float(a)) {
    // f16 and bf16 have no common 16-bit type; every other pair is ordered by the enumeration.
    if (dtype_bytes(a) == 2 && dtype_bytes(b) == 2) return DType::f32;
    return std::max(a, b);
  }
  if (a == DType::u8 || b == DType::u8) {
    const DType other = a == DType::u8 ? b : a;
    return other == DType::i8 ? DType::i16 : other;
  }
  return std::max(a, b);
}

DType result_type(PromotionOperand a, PromotionOperand b) {
  if (a.priority == b.priority) return promote(a.dtype, b.dtype);
  if (a.priority < b.priority) std::swap(a, b);
  // The operand of lower priority matters only if it is of a higher category.
  if (category(a.dtype) >= category(b.dtype)) return a.dtype;
  return promote(a.dtype, b.dtype);
}

}  // namespace pallascope::lower
