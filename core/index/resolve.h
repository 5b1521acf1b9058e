// Room: index. An expression made affine by splitting and merging its axes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/index/expression.h"

namespace pallascope::index {

/// An axis of the resolved expression: `stride * axis`, 0 <= axis < extent. The stride is in elements and may be 0.
struct SubAxis {
  std::int64_t stride = 0, extent = 1;
  friend bool operator==(const SubAxis&, const SubAxis&) = default;
};

/// One loop axis, or several neighbouring ones merged, as the sub-axes that it was split into, outermost first.
struct AxisGroup {
  std::vector<std::size_t> positions;  ///< of the loop axes, ascending
  std::vector<SubAxis> parts;
};

/// constant + sum of stride * sub-axis over a box, which equals the expression at every point of the loop axes.
struct Walk {
  std::int64_t constant = 0;
  std::vector<AxisGroup> groups;  ///< in the order of the loop axes; axes of extent 1 are in none
};

/// Makes `expression` affine: splits an axis where a floor-division or modulus asks for it, and merges neighbouring
/// axes first where that is what it asks for. nullopt if neither gets rid of every floor-division and modulus.
///
/// Worked example, axes i < 8, j < 3, a (4,6) buffer transposed and then viewed as (8,3): the element is
/// 6*((3i+j)%4) + (3i+j)//4. No extent of i or j is cut by 4, but merged, t = 3i+j < 24, and t = 4*a + b with a < 6,
/// b < 4 gives 6*b + a: one group of positions {0, 1} with parts (1, 6), (6, 4).
std::optional<Walk> resolve(Context& context, Expression expression, const std::vector<AxisId>& axes);

/// Neighbouring parts (outermost first) joined where they walk like one: (24, 4), (8, 3) is (8, 12).
std::vector<SubAxis> coalesce(const std::vector<SubAxis>& parts);

}  // namespace pallascope::index
