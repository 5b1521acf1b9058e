// Room: index. Plans: a walk over strides as reshape, slice, transpose, reshape of a contiguous buffer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/index/access.h"
#include "core/index/resolve.h"

namespace pallascope::index {

/// What a plan has to read. `lowest` is the least address touched, `origin` the one at the first point.
struct PlanRequest {
  std::vector<SubAxis> pieces;  ///< in the order of the result, outermost first; stride 0 is a broadcast
  std::vector<std::int64_t> result_shape;  ///< its product is that of the pieces' extents
  std::int64_t lowest = 0, origin = 0;
  std::vector<std::int64_t> buffer_sizes;  ///< the hint
  std::int64_t numel = 0;
};

/// The plainest plan found, or nullopt. Tries, in this order and taking the cheapest of a stage:
/// 1. the buffer's own sizes as they are, and with dimensions split or merged as the pieces ask;
/// 2. the factorisation that the strides alone give;
/// 3. the same with neighbouring pieces that walk like one joined;
/// 4. the same with a slice that is split after it was taken (`split_shape`).
///
/// Worked example: a (9,16) buffer, pieces (48, 3) and (2, 8) from 16 on, which is x[1::3, ::2]. In the view {9, 16}
/// (weights 16, 1) 48 is 3 steps of the first dimension, 2 is 2 steps of the second, and 16 is digit 1, digit 0:
/// slices 1:8:3 and 0:15:2, no transposition, result {3, 8}.
///
/// For the strides alone, the weight of a piece's dimension is the greatest common divisor of its stride and the
/// weight of the dimension above: no other choice leaves more room to the pieces below, so if any view can hold each
/// piece in a dimension of its own, this one can.
std::optional<Plan> make_plan(const PlanRequest& request);

/// Whether `plan` reads, at every point of the pieces, the address origin + sum of stride * piece. Computed from the
/// plan's steps alone.
bool plan_is_proved(const Plan& plan, const PlanRequest& request);

}  // namespace pallascope::index
