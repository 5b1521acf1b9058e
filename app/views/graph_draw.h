// Room: views. How the nested graph looks: boxes, edges, marks of a selection; at any zoom, only what is in view.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/model/graph_marks.h"
#include "app/views/context.h"

namespace pallascope::views {

/// Sizes of text in the graph, in the layout's unit: a point at 100 %.
inline constexpr float graph_label_size = 13, graph_sublabel_size = 11;

/// What texts measure and what space boxes get. Measured with the fonts, independent of the display's scale.
model::LayoutMetrics graph_metrics(const Fonts& fonts);

/// Text sizes in steps: each size of a font fills a part of a texture.
float stepped_size(float size);

/// From the layout to the screen.
struct GraphCamera {
  ImVec2 middle;  ///< of the canvas, on the screen
  ImVec2 at;      ///< the canvas
  ImVec2 size;
  model::Point centre;  ///< what is in the middle, in the layout
  float scale = 1;      ///< pixels a unit of the layout

  [[nodiscard]] ImVec2 screen(float x, float y) const {
    return {middle.x + (x - centre.x) * scale, middle.y + (y - centre.y) * scale};
  }
  [[nodiscard]] model::Point layout(ImVec2 p) const {
    return {centre.x + (p.x - middle.x) / scale, centre.y + (p.y - middle.y) / scale};
  }
  /// What the canvas shows, `more` units larger on each side.
  [[nodiscard]] model::Rectangle window(float more = 0) const;
};

/// What is drawn in one frame. Everything outlives the call.
struct GraphPicture {
  const workspace::GraphScene& graph;
  const GraphCamera& camera;
  const std::vector<model::PlacedBox>* moving = nullptr;  ///< where boxes are while they move; null at rest
  float edges_alpha = 1;                                  ///< edges appear once boxes have moved
  const model::GraphMarks& marks;
  int hovered = -1;                           ///< the box under the pointer
  const std::vector<std::uint32_t>& hinted;   ///< boxes of what another panel's pointer is over
  const std::vector<std::uint32_t>& matches;  ///< boxes that a search found
  int match = -1;                             ///< the current one of them
};

/// Draws pictures; keeps nothing but room for lists.
class GraphPainter {
 public:
  void draw(const Context& context, ImDrawList* draw, const GraphPicture& picture);

 private:
  struct Colors {
    ImU32 fill, border, text, sublabel;
  };
  [[nodiscard]] const model::PlacedBox& place(std::size_t box) const;
  [[nodiscard]] Colors colors_of(const model::Box& box) const;
  void draw_container(std::size_t k);
  void draw_leaf(std::size_t k);
  void draw_title(std::size_t k, float fade);
  void draw_text(ImFont* font, float size, ImVec2 at, ImU32 color, const std::string& value);
  void draw_edges();
  void draw_edge(std::size_t k, ImU32 color, float width, bool arrow);
  void draw_hovered_edges();
  void draw_marks();
  void outline(std::size_t k, ImU32 color, float width, float away, bool dashed = false);
  void dashed_outline(ImVec2 low, ImVec2 high, ImU32 color, float width);
  void draw_side(const model::Side& side, ImU32 color, const char* letter);
  void draw_flag(std::size_t box, ImU32 color, const std::string& value, float move, bool apart);
  void place_connector();
  void draw_connector();
  [[nodiscard]] float label_room(float width, float height, float label_width) const;
  [[nodiscard]] float fade_of(std::size_t box) const;

  // Of the frame that is drawn.
  const Context* context_ = nullptr;
  ImDrawList* draw_ = nullptr;
  const GraphPicture* picture_ = nullptr;
  float scale_ = 1, pixel_ = 1;
  bool labels_ = true, sublabels_ = true, dim_ = false;
  bool connector_left_ = false;  ///< the dashed line runs left of what it goes around
  float connector_x_ = 0;        ///< how far out, in the layout
  std::vector<std::uint32_t> boxes_, edges_, containers_;
  std::string cut_;
};

/// The colours of the two sides of a decision.
ImU32 side_color(const Theme& theme, bool left);
/// The box that the outline and the flag of a side go around: its speaker, or the kernel that is all of it.
int side_anchor(const model::GraphModel& graph, const model::Side& side);

}  // namespace pallascope::views
