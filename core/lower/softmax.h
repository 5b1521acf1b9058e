// Room: lower. What log_softmax and the losses made of it share.
#pragma once

#include "core/lower/builder.h"

namespace pallascope::lower {

/// log(total) as ATen subtracts it. Its kernel along the last dimension keeps the sums of a chunk of rows, and then their
/// logarithms, in the result's dtype: of a 16-bit row whose maximum outweighs the rest, the logarithm is 0. The kernel
/// along any other dimension keeps both in f32.
inline int log_of_sum(NestBuilder& nest, int total, DType result, bool along_last) {
  const DType computed = nest.dtype(total);
  if (!along_last || result == computed) return nest.op(loop::ComputeOp::log, total);
  const auto rounded = [&](int value) { return nest.cast(nest.cast(value, result), computed); };
  return rounded(nest.op(loop::ComputeOp::log, rounded(total)));
}

}  // namespace pallascope::lower
