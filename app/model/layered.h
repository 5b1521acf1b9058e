// Room: model. One level of a layered layout: boxes of given sizes and edges between them get layers and places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <vector>

namespace pallascope::model {

struct Point {
  float x = 0, y = 0;
  friend bool operator==(const Point&, const Point&) = default;
};

/// A box of the level, a port (where edges enter the container around it at the top, or leave it at the bottom), or the
/// container's title: it stands first beside the in-ports, so that no edge runs through it.
struct LayeredItem {
  enum class Role : std::uint8_t { box, in_port, out_port, title };
  Role role = Role::box;
  float width = 0, height = 0;
  std::size_t order = 0;   ///< what no edge orders stands in this order
  bool hinted = false;
  float hint = 0;          ///< where its centre was; only the order of hints within a layer matters
  // Results, relative to the level's top left corner:
  float x = 0, y = 0;
  std::size_t layer = 0;
};

struct LayeredEdge {
  std::size_t from = 0, to = 0;
  std::size_t source = 0;        ///< edges of one source share their way as far as it is the same
  float from_x = -1, to_x = -1;  ///< where it leaves and enters, from the box's left edge; -1: the middle of the bottom, a place of its own at the top
  // Results:
  bool upward = false;           ///< closes a cycle: it goes around the right side
  std::vector<Point> points;
};

struct LayeredOptions {
  float gap_x = 24, gap_y = 32;      ///< between boxes of a layer, between layers
  float port_gap = 14;               ///< between ports or title and the first or last boxes
  float line_gap = 10;               ///< between two edges, or an edge and a box
  float least_wide = 1200;           ///< a layer wider than this (and than a block of all boxes) goes on in the next
  std::size_t sweeps = 6;            ///< of ordering and of placing. Not measured beyond: more hardly changes a picture
  std::size_t most_bends = 40'000;   ///< places for long edges (0.4 s of layout); beyond, the longest go around the side
};

struct Level {
  std::vector<LayeredItem> items;
  std::vector<LayeredEdge> edges;  ///< from != to
  float width = 0, height = 0;     ///< result: what holds all items and edges
};

/// Lays a level out; false if it was stopped, and then the results mean nothing.
///
/// After K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system structures", 1981:
/// 1. cycles are cut within strongly connected parts, by `order`; all other edges point down;
/// 2. each box stands one layer below the lowest of what it reads, or lower where that layer is full, and moves down when
///    that shortens its edges;
/// 3. an edge over several layers gets a place in each layer between (one way a source, however many read it);
/// 4. layers are ordered by the mean of their neighbours, up and down, the order with the fewest crossings kept;
/// 5. places: each box wants to be where its edges are straight, long edges most of all. With the order given, the
///    places nearest to the wishes (least squares) are found exactly by pooling neighbours that push each other.
/// Boxes of a layer share its top. Lines run straight down within a layer and slant only in the gap below it, so no line
/// crosses a box.
bool lay_out_level(Level& level, const LayeredOptions& options, std::stop_token stop = {});

}  // namespace pallascope::model
