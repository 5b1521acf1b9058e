// Room: lower. What the losses share.
#pragma once

#include <functional>

#include "core/lower/operand.h"

namespace pallascope::lower {

using LossBody = std::function<int(NestBuilder&)>;

/// The losses `body` over `sizes`: themselves (reduction 0), their mean (1) or their sum (2). Each is rounded to the
/// result's dtype first, as ATen stores them. The mean divides by `divisor`, if that is not negative.
Lowered reduced_loss(Call& call, const Sizes& sizes, std::int64_t reduction, const LossBody& body, double divisor = -1);

}  // namespace pallascope::lower
