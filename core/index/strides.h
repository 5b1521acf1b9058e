// Room: index. How many elements a box of strides touches.
#pragma once

#include <cstdint>
#include <vector>

#include "core/index/resolve.h"

namespace pallascope::index {

/// The elements that { sum of stride[k] * x[k] : 0 <= x[k] < extent[k] } touches.
struct Touched {
  std::int64_t points = 1;    ///< product of the extents
  std::int64_t distinct = 1;  ///< number of different values; an upper bound unless `exact`
  bool exact = true;
  [[nodiscard]] bool injective() const { return exact && distinct == points; }
};

/// Counts the values of a box. Strides are not 0 (their signs do not matter), extents above 1.
///
/// Worked example, strides 100, 2, 1 with extents 4, 8, 3: 100 is more than the span 2*7 + 1*2 = 16 of the others, so
/// the count is 4 times theirs; of 2, 1 the smaller covers 0..2 without a hole and each next stride is at most one
/// more than what is covered, so they cover 0..16 without a hole: 17 values for 24 points. 68 in all, overlapping.
Touched count_touched(std::vector<SubAxis> parts);

}  // namespace pallascope::index
