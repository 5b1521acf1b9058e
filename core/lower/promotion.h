// Room: lower. PyTorch's type promotion.
#pragma once

#include "core/base/dtype.h"

namespace pallascope::lower {

/// The dtype in which PyTorch's CPU kernels compute: f32 for the 16-bit floats, the dtype itself otherwise.
constexpr DType compute_dtype(DType d) { return d == DType::f16 || d == DType::bf16 ? DType::f32 : d; }

/// torch.promote_types for kernel dtypes.
DType promote(DType a, DType b);
/// 0 bool, 1 integer, 2 float, 3 complex.
int category(DType d);

/// One operand as torch.result_type sees it.
struct PromotionOperand {
  DType dtype;
  int priority;  ///< 2: a tensor with dimensions, 1: a tensor of rank 0, 0: a Python number
};
/// torch.result_type of two operands (a number counts as i64, f32 (the default dtype) or bool).
DType result_type(PromotionOperand a, PromotionOperand b);

}  // namespace pallascope::lower
