// Room: model. Places for the boxes and edges of a graph model: a layered layout of our own, level within level.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "app/model/graph_model.h"
#include "app/model/grid.h"
#include "app/model/layered.h"

namespace pallascope::model {

/// Sizes in pixels (or any unit: results are in the same). Text is measured by the views; without a measure, as if
/// each character were as wide as the widest common one of a proportional font.
struct LayoutMetrics {
  float label_char = 8, sublabel_char = 7;   ///< widths of a character, where the tables below have none
  std::array<float, 128> label_advance{}, sublabel_advance{};  ///< widths of the ASCII characters; 0: not measured
  float most_text = 1e9F;      ///< wider texts are cut, with `…`
  float title_sign = 0;        ///< room left of a group's label, for the sign that opens and closes it
  float name_gap = 6;          ///< between a kernel's label and its name
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
  std::string label, name, sublabel;  ///< of the box, cut where they are too wide
  float label_width = 0, name_width = 0, sublabel_width = 0;
};

struct PlacedEdge {
  std::vector<Point> points;  ///< from the bottom of the one box to the top of the other
  bool upward = false;        ///< closes a cycle between visible boxes (a closed group that feeds itself through others)
};

struct Layout {
  std::vector<PlacedBox> boxes;   ///< one a box of the model
  std::vector<PlacedEdge> edges;  ///< one an edge of the model
  float x = 0, y = 0, width = 0, height = 0;  ///< what holds everything
  RectangleGrid box_grid, edge_grid;          ///< which boxes and edges are in a window

  /// The innermost box at a point.
  [[nodiscard]] std::optional<std::size_t> box_at(float at_x, float at_y) const;
};

/// The width of UTF-8 `text`; `advance` holds the widths of ASCII characters, `other` that of all that it has 0 for.
float text_width(std::string_view text, const std::array<float, 128>& advance, float other);
/// `text`, or as much of its start as is `most` wide with `…` after it.
std::string cut_text(std::string_view text, float most, const std::array<float, 128>& advance, float other);

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
