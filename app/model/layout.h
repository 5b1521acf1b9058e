// Room: model. Places for the boxes and edges of a graph model: a layered layout of our own, level within level.
#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/model/graph_model.h"
#include "app/model/layered.h"

namespace pallascope::model {

/// Sizes in pixels (or any unit: results are in the same). Text is measured by the views; without a measure, as if
/// each character were as wide as the widest common one of a proportional font.
struct LayoutMetrics {
  float label_char = 8, sublabel_char = 7;   ///< widths of a character
  float label_height = 18, sublabel_height = 15;
  float box_padding_x = 10, box_padding_y = 6;
  float container_padding = 12;
  float least_width = 56;
  LayeredOptions layered;
};

struct PlacedBox {
  float x = 0, y = 0, width = 0, height = 0;
  /// Of a container: where its label has room, and the sublabel under it, that no edge crosses.
  float title_x = 0, title_y = 0, title_width = 0, title_height = 0;
};

struct PlacedEdge {
  std::vector<Point> points;  ///< from the bottom of the one box to the top of the other
  bool upward = false;        ///< closes a cycle between visible boxes (a closed group that feeds itself through others)
};

struct Layout {
  std::vector<PlacedBox> boxes;   ///< one a box of the model
  std::vector<PlacedEdge> edges;  ///< one an edge of the model
  float x = 0, y = 0, width = 0, height = 0;  ///< what holds everything

  /// The innermost box at a point.
  [[nodiscard]] std::optional<std::size_t> box_at(float at_x, float at_y) const;
};

/// Where boxes were, by key: the centre.
using LayoutHints = std::map<std::string, Point, std::less<>>;
LayoutHints hints_of(const GraphModel& graph, const Layout& layout);

/// Lays out `graph`: each open container on its own, then as one box in what is around it. An edge that leaves a
/// container goes through a port in its bottom, one for each box that it starts from, and enters another by a port in
/// its top. Boxes never overlap, containers enclose what they hold, edges point down (but for those that close a cycle)
/// and cross neither boxes nor titles.
///
/// With `hints` for at least half of a level's boxes, these keep their order from left to right where layers allow, and
/// the whole is moved so that boxes stay where they were as nearly as they can (the median at the top level). Nothing
/// if stopped.
std::optional<Layout> lay_out(const GraphModel& graph, const LayoutMetrics& metrics = {}, const LayoutHints& hints = {},
                              std::stop_token stop = {});

}  // namespace pallascope::model
