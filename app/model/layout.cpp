#include "app/model/layout.h"

#include <algorithm>
#include <tuple>

#include "core/report/format.h"

namespace pallascope::model {
namespace {

/// A container's inside, or the top.
struct Inside {
  Level level;
  std::vector<int> box_of_item;  ///< -1 for a title or a port
  std::map<int, std::size_t> in_ports, out_ports;  ///< by the box that the edge starts from
  std::map<std::tuple<std::size_t, std::size_t, int>, std::size_t> edges;
  float content_x = 0, content_y = 0;  ///< the level's corner, from the container's
};

class GraphLayout {
 public:
  GraphLayout(const GraphModel& graph, const LayoutMetrics& metrics, const LayoutHints& hints, std::stop_token stop)
      : graph_(graph), metrics_(metrics), hints_(hints), stop_(std::move(stop)) {}

  std::optional<Layout> run() {
    layout_.boxes.resize(graph_.boxes.size());
    layout_.edges.resize(graph_.edges.size());
    inside_.resize(graph_.boxes.size() + 1);
    item_of_.resize(graph_.boxes.size());
    steps_.resize(graph_.edges.size());
    make_items();
    for (std::size_t k = 0; k < graph_.edges.size(); ++k) make_steps(k);
    // Inner containers first: they give their size to what is around them.
    for (std::size_t k = graph_.boxes.size(); k-- > 0;) {
      if (graph_.boxes[k].container && !lay_out_inside(static_cast<int>(k))) return std::nullopt;
    }
    if (!lay_out_inside(-1)) return std::nullopt;
    place_all();
    return std::move(layout_);
  }

 private:
  [[nodiscard]] const Box& box(int id) const { return graph_.boxes[static_cast<std::size_t>(id)]; }
  [[nodiscard]] PlacedBox& placed(int id) { return layout_.boxes[static_cast<std::size_t>(id)]; }
  [[nodiscard]] Inside& inside(int container) { return inside_[static_cast<std::size_t>(container + 1)]; }
  [[nodiscard]] float label_width(std::string_view text) const {
    return text_width(text, metrics_.label_advance, metrics_.label_char);
  }
  [[nodiscard]] float sublabel_width(std::string_view text) const {
    return text_width(text, metrics_.sublabel_advance, metrics_.sublabel_char);
  }

  /// Cuts the texts of a box; gives the width that they need.
  float measure(const Box& b, PlacedBox& p) const {
    const float sign = b.kind == BoxKind::group ? metrics_.title_sign : 0;
    p.label = cut_text(b.label, metrics_.most_text, metrics_.label_advance, metrics_.label_char);
    p.label_width = label_width(p.label);
    if (!b.name.empty()) {
      p.name = cut_text(b.name, metrics_.most_text, metrics_.sublabel_advance, metrics_.sublabel_char);
      p.name_width = sublabel_width(p.name);
    }
    p.sublabel = cut_text(b.sublabel, metrics_.most_text, metrics_.sublabel_advance, metrics_.sublabel_char);
    p.sublabel_width = sublabel_width(p.sublabel);
    return std::max(sign + p.label_width + (p.name.empty() ? 0 : metrics_.name_gap + p.name_width), p.sublabel_width);
  }

  void make_items() {
    for (std::size_t k = 0; k < graph_.boxes.size(); ++k) {
      const Box& b = graph_.boxes[k];
      LayeredItem item;
      item.order = b.position;
      if (const auto hint = hints_.find(b.key); hint != hints_.end()) {
        item.hinted = true;
        item.hint = hint->second.x;
      }
      if (!b.container) {
        item.width = std::max(metrics_.least_width, measure(b, layout_.boxes[k]) + 2 * metrics_.box_padding_x);
        item.height = metrics_.label_height + (b.sublabel.empty() ? 0 : metrics_.sublabel_height) + 2 * metrics_.box_padding_y;
      }
      Inside& around = inside(b.parent);
      item_of_[k] = around.level.items.size();
      around.level.items.push_back(item);
      around.box_of_item.push_back(static_cast<int>(k));
      if (!b.container) continue;
      LayeredItem title;
      title.role = LayeredItem::Role::title;
      title.width = measure(b, layout_.boxes[k]);
      title.height = metrics_.label_height + (b.sublabel.empty() ? 0 : metrics_.sublabel_height);
      Inside& own = inside(static_cast<int>(k));
      own.level.items.push_back(title);
      own.box_of_item.push_back(-1);
    }
  }

  std::size_t port(Inside& level, bool in, int source) {
    auto& ports = in ? level.in_ports : level.out_ports;
    const auto [at, is_new] = ports.emplace(source, level.level.items.size());
    if (is_new) {
      LayeredItem item;
      item.role = in ? LayeredItem::Role::in_port : LayeredItem::Role::out_port;
      item.order = box(source).position;
      level.level.items.push_back(item);
      level.box_of_item.push_back(-1);
    }
    return at->second;
  }

  void add_step(std::size_t edge, int container, std::size_t from, std::size_t to, int source) {
    Inside& level = inside(container);
    const auto [at, is_new] = level.edges.emplace(std::tuple(from, to, source), level.level.edges.size());
    if (is_new) {
      LayeredEdge made;
      made.from = from;
      made.to = to;
      made.source = static_cast<std::size_t>(source);
      level.level.edges.push_back(made);
    }
    steps_[edge].emplace_back(container, at->second);
  }

  /// An edge in the levels that it passes: up to where both ends are inside, then down.
  void make_steps(std::size_t k) {
    const Edge& edge = graph_.edges[k];
    const auto chain = [this](int id) {
      std::vector<int> above;  // the box, then its containers from the inside out
      for (int at = id; at >= 0; at = box(at).parent) above.push_back(at);
      return above;
    };
    const std::vector<int> from = chain(edge.from), to = chain(edge.to);
    std::size_t shared = 0;  // containers that both are in
    while (shared < from.size() && shared < to.size() && from[from.size() - 1 - shared] == to[to.size() - 1 - shared]) ++shared;
    const std::size_t from_top = from.size() - 1 - shared, to_top = to.size() - 1 - shared;
    for (std::size_t i = 0; i < from_top; ++i) {
      const int container = from[i + 1];
      add_step(k, container, item_of_[static_cast<std::size_t>(from[i])], port(inside(container), false, edge.from), edge.from);
    }
    add_step(k, shared == 0 ? -1 : from[from.size() - shared], item_of_[static_cast<std::size_t>(from[from_top])],
             item_of_[static_cast<std::size_t>(to[to_top])], edge.from);
    for (std::size_t i = to_top; i-- > 0;) {
      const int container = to[i + 1];
      add_step(k, container, port(inside(container), true, edge.from), item_of_[static_cast<std::size_t>(to[i])], edge.from);
    }
  }

  bool lay_out_inside(int container) {
    Inside& own = inside(container);
    for (LayeredEdge& edge : own.level.edges) {
      const int from = own.box_of_item[edge.from], to = own.box_of_item[edge.to], source = static_cast<int>(edge.source);
      if (from >= 0 && box(from).container) edge.from_x = port_x(from, false, source);
      if (to >= 0 && box(to).container) edge.to_x = port_x(to, true, source);
    }
    if (!lay_out_level(own.level, metrics_.layered, stop_)) return false;
    if (container < 0) return true;
    own.content_x = own.content_y = metrics_.container_padding;
    LayeredItem& around = inside(box(container).parent).level.items[item_of_[static_cast<std::size_t>(container)]];
    around.width = own.level.width + 2 * metrics_.container_padding;
    around.height = own.level.height + 2 * metrics_.container_padding;
    return true;
  }

  float port_x(int container, bool in, int source) {
    Inside& own = inside(container);
    const std::size_t item = (in ? own.in_ports : own.out_ports).at(source);
    return own.content_x + own.level.items[item].x;
  }

  /// A container stands before what it holds, so its corner is known when its boxes are placed.
  void place_all() {
    const Point moved = shift();
    const auto corner = [&](int container) {
      if (container < 0) return moved;
      const PlacedBox& p = placed(container);
      return Point{p.x + inside(container).content_x, p.y + inside(container).content_y};
    };
    for (std::size_t k = 0; k < graph_.boxes.size(); ++k) {
      const Box& b = graph_.boxes[k];
      const LayeredItem& item = inside(b.parent).level.items[item_of_[k]];
      const Point origin = corner(b.parent);
      PlacedBox& p = layout_.boxes[k];
      p.x = origin.x + item.x;
      p.y = origin.y + item.y;
      p.width = item.width;
      p.height = item.height;
      if (!b.container) continue;
      const LayeredItem& title = inside(static_cast<int>(k)).level.items.front();
      const Point inner = corner(static_cast<int>(k));
      p.title_x = inner.x + title.x;
      p.title_y = inner.y + title.y;
      p.title_width = title.width;
      p.title_height = title.height;
    }
    for (std::size_t k = 0; k < graph_.edges.size(); ++k) {
      PlacedEdge& edge = layout_.edges[k];
      for (const auto& [container, step] : steps_[k]) {
        const LayeredEdge& part = inside(container).level.edges[step];
        const Point origin = corner(container);
        edge.upward = edge.upward || part.upward;
        for (const Point& point : part.points) edge.points.push_back({origin.x + point.x, origin.y + point.y});
      }
      simplify(edge.points);
    }
    layout_.x = moved.x;
    layout_.y = moved.y;
    layout_.width = inside(-1).level.width;
    layout_.height = inside(-1).level.height;
    make_grids();
  }

  void make_grids() {
    std::vector<Rectangle> boxes, edges;
    for (const PlacedBox& b : layout_.boxes) boxes.push_back({b.x, b.y, b.x + b.width, b.y + b.height});
    for (const PlacedEdge& edge : layout_.edges) {
      Rectangle bounds;
      for (std::size_t k = 0; k < edge.points.size(); ++k) {
        const Point& p = edge.points[k];
        bounds = k == 0 ? Rectangle{p.x, p.y, p.x, p.y}
                        : Rectangle{std::min(bounds.left, p.x), std::min(bounds.top, p.y), std::max(bounds.right, p.x),
                                    std::max(bounds.bottom, p.y)};
      }
      edges.push_back(bounds);
    }
    layout_.box_grid = RectangleGrid(std::move(boxes));
    layout_.edge_grid = RectangleGrid(std::move(edges));
  }

  /// Points on a vertical line between their neighbours say nothing.
  static void simplify(std::vector<Point>& points) {
    std::vector<Point> kept;
    for (const Point& point : points) {
      if (!kept.empty() && kept.back() == point) continue;
      while (kept.size() >= 2 && kept.back().x == point.x && kept[kept.size() - 2].x == point.x &&
             (kept.back().y - kept[kept.size() - 2].y) * (point.y - kept.back().y) >= 0)
        kept.pop_back();
      kept.push_back(point);
    }
    points = std::move(kept);
  }

  /// How far the whole is moved so that boxes stay where they were.
  Point shift() {
    std::vector<float> xs, ys;
    for (std::size_t k = 0; k < graph_.boxes.size(); ++k) {
      const auto hint = hints_.find(graph_.boxes[k].key);
      if (graph_.boxes[k].parent >= 0 || hint == hints_.end()) continue;
      const LayeredItem& item = inside(-1).level.items[item_of_[k]];
      xs.push_back(hint->second.x - item.x - item.width / 2);
      ys.push_back(hint->second.y - item.y - item.height / 2);
    }
    const auto median = [](std::vector<float>& values) {
      if (values.empty()) return 0.0F;
      const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
      std::nth_element(values.begin(), middle, values.end());
      return *middle;
    };
    return {median(xs), median(ys)};
  }

  const GraphModel& graph_;
  const LayoutMetrics& metrics_;
  const LayoutHints& hints_;
  std::stop_token stop_;
  Layout layout_;
  std::vector<Inside> inside_;        ///< the top, then one a box
  std::vector<std::size_t> item_of_;  ///< per box, its item in the level around it
  std::vector<std::vector<std::pair<int, std::size_t>>> steps_;  ///< per edge: container and edge of its level
};

}  // namespace

std::optional<std::size_t> Layout::box_at(float at_x, float at_y) const {
  for (std::size_t k = boxes.size(); k-- > 0;) {  // what is inside stands later
    const PlacedBox& b = boxes[k];
    if (at_x >= b.x && at_x < b.x + b.width && at_y >= b.y && at_y < b.y + b.height) return k;
  }
  return std::nullopt;
}

float text_width(std::string_view text, const std::array<float, 128>& advance, float other) {
  float width = 0;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if ((code & 0xC0U) == 0x80U) continue;  // goes on a code point
    width += code < 128 && advance[code] > 0 ? advance[code] : other;
  }
  return width;
}

std::string cut_text(std::string_view text, float most, const std::array<float, 128>& advance, float other) {
  if (text_width(text, advance, other) <= most) return std::string(text);
  std::size_t end = 0;
  float width = other;  // of the sign
  for (std::size_t k = 0; k < text.size();) {
    std::size_t next = k + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0U) == 0x80U) ++next;
    width += text_width(text.substr(k, next - k), advance, other);
    if (width > most) break;
    end = k = next;
  }
  return std::string(text.substr(0, end)) + "…";
}

LayoutHints hints_of(const GraphModel& graph, const Layout& layout) {
  LayoutHints hints;
  for (std::size_t k = 0; k < graph.boxes.size() && k < layout.boxes.size(); ++k) {
    const PlacedBox& b = layout.boxes[k];
    hints[graph.boxes[k].key] = {b.x + b.width / 2, b.y + b.height / 2};
  }
  return hints;
}

std::optional<Layout> lay_out(const GraphModel& graph, const LayoutMetrics& metrics, const LayoutHints& hints, std::stop_token stop) {
  return GraphLayout(graph, metrics, hints, std::move(stop)).run();
}

}  // namespace pallascope::model
