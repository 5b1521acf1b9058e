// Room: lower. The list of indices of x[i, None, j]: what it reaches and in which order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/lower/builder.h"

namespace pallascope::lower {

/// An index value where negatives count from the end, as Python does; checked.
index::Expression wrapped(NestBuilder& nest, int value, std::int64_t extent);

/// Whether indices wrap and are checked, or are moved into range.
enum class IndexUse : std::uint8_t { checked, clamped };

/// Advanced indexing of `x`. The broadcast index dimensions stand where the first index was if the indices are
/// neighbours, else in front.
///
/// Worked example, x of [4,5,6] at [i, None, j] with i of [3,1] and j of [2]: the indices are no neighbours, so the result
/// is [3,2,5], and its element (a, b, c) is x[i[a,0], c, j[b]].
struct IndexList {
  std::vector<std::optional<Tensor>> indices;  ///< one a dimension of x; none where the dimension is taken whole
  Sizes sizes;                                 ///< of the result
  std::size_t place = 0;                       ///< where the index dimensions begin in the result
  std::size_t rank = 0;                        ///< and how many they are
  IndexUse use = IndexUse::checked;
  std::string declined;                        ///< not empty: why no kernel can do it

  /// The position in `x` of the element that `at` names in the result.
  [[nodiscard]] Index position(NestBuilder& nest, const Tensor& x, const Index& at) const;
};

/// The list in an argument of `call`. Masks decline: the result's size depends on their values.
IndexList index_list(const Call& call, const Tensor& x, std::size_t argument = 1, IndexUse use = IndexUse::checked);

/// A mask among the indices of argument 1 with nothing else but None beside it.
struct MaskIndex {
  Tensor mask;
  std::size_t first = 0;  ///< the dimension of x that the mask's first dimension stands for
};
std::optional<MaskIndex> lone_mask(const Call& call);

}  // namespace pallascope::lower
