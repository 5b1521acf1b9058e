// Room: model. What the layered layout needs of graphs and of places on a line.
#pragma once

#include <cstddef>
#include <vector>

namespace pallascope::model {

/// The strongly connected part of each vertex, by number; `next` lists what each vertex leads to (R. Tarjan, 1972).
/// Without recursion: graphs are thousands of nodes deep.
std::vector<std::size_t> strong_parts(const std::vector<std::vector<std::size_t>>& next);

/// The places that are nearest to `wish` (least squares, weighted) among those where box k stands at least
/// `offset[k] - offset[k - 1]` to the right of the one before it: with each box's distance from the first one taken off,
/// places must not decrease, and pooling adjacent violators (M. Ayer et al., 1955) finds the best such sequence.
std::vector<float> nearest_places(const std::vector<double>& offset, const std::vector<float>& wish, const std::vector<float>& weight);

}  // namespace pallascope::model
