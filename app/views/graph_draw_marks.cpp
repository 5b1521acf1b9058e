// What a selection draws over the graph: outlines, the sides of a decision with their flags, the path, the verdict.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "app/views/graph_draw.h"

namespace pallascope::views {
namespace {

using model::BoxKind;
using model::BoxMark;
using model::PlacedBox;

ImVec2 on_curve(const std::array<ImVec2, 4>& c, float t) {
  const float u = 1 - t, a = u * u * u, b = 3 * u * u * t, d = 3 * u * t * t, e = t * t * t;
  return {a * c[0].x + b * c[1].x + d * c[2].x + e * c[3].x,
          a * c[0].y + b * c[1].y + d * c[2].y + e * c[3].y};
}

float verdict_width(const Context& context, const std::string& verdict) {
  const float pixel = context.px(1);
  return context.fonts.bold
             ->CalcTextSizeA(stepped_size(12 * pixel), 1e9F, 0, verdict.data(),
                             verdict.data() + verdict.size())
             .x +
         16 * pixel;
}

}  // namespace

ImU32 side_color(const Theme& theme, bool left) { return theme.access(left ? 'B' : 'R'); }

int side_anchor(const model::GraphModel& graph, const model::Side& side) {
  if (side.speaker < 0) return side.boxes.empty() ? -1 : static_cast<int>(side.boxes.front());
  const int parent = graph.boxes[static_cast<std::size_t>(side.speaker)].parent;
  const bool whole = parent >= 0 && std::find(side.boxes.begin(), side.boxes.end(),
                                              static_cast<std::size_t>(parent)) != side.boxes.end();
  return whole ? parent : side.speaker;
}

void GraphPainter::draw_flag(std::size_t box, ImU32 color, const std::string& value, float move, bool apart) {
  const PlacedBox& p = place(box);
  const ImVec2 low = picture_->camera.screen(p.x, p.y);
  const float size = stepped_size(11 * pixel_), height = size + 5 * pixel_;
  const float width =
      context_->fonts.bold->CalcTextSizeA(size, 1e9F, 0, value.data(), value.data() + value.size()).x;
  // Beside the box, where the connector is not, if that covers no other; else above it.
  const ImVec2 high = picture_->camera.screen(p.x + p.width, p.y + p.height);
  const float whole = width + 12 * pixel_;
  ImVec2 at(connector_left_ ? high.x + 4 * pixel_ : low.x - whole - 4 * pixel_,
            picture_->graph.graph.boxes[box].container ? low.y : (low.y + high.y - height) / 2);
  const auto covers = [&](float x) {
    const model::Point point = picture_->camera.layout(ImVec2(x, at.y + height / 2));
    const auto other = picture_->graph.layout.box_at(point.x, point.y);
    return other.has_value() && !picture_->graph.graph.boxes[*other].container;
  };
  const bool outside =
      at.x < picture_->camera.at.x || at.x + whole > picture_->camera.at.x + picture_->camera.size.x;
  const bool above = apart || outside || covers(at.x) || covers(at.x + whole / 2) || covers(at.x + whole);
  if (above) at = ImVec2(low.x - 2 * pixel_ + move, low.y - height - 1 * pixel_);
  draw_->AddRectFilled(at, ImVec2(at.x + whole, at.y + height), color, 4 * pixel_,
                       above ? ImDrawFlags_RoundCornersTop : ImDrawFlags_RoundCornersAll);
  draw_text(context_->fonts.bold, size, ImVec2(at.x + 6 * pixel_, at.y + 2 * pixel_),
            context_->theme.dark ? context_->theme.backdrop : context_->theme.text_on_accent, value);
}

void GraphPainter::draw_side(const model::Side& side, ImU32 color, const char* letter) {
  const int anchor = side_anchor(picture_->graph.graph, side);
  for (const std::size_t box : side.boxes) {
    const model::Box& b = picture_->graph.graph.boxes[box];
    const bool inside = b.parent >= 0 && std::find(side.boxes.begin(), side.boxes.end(),
                                                   static_cast<std::size_t>(b.parent)) != side.boxes.end();
    const PlacedBox& p = place(box);
    const ImVec2 low = picture_->camera.screen(p.x, p.y),
                 high = picture_->camera.screen(p.x + p.width, p.y + p.height);
    if (inside) {
      outline(box, faded(color, 0.8F), 1.2F * pixel_, 0);
      continue;
    }
    draw_->AddRectFilled(low, high, faded(color, 0.10F), 6 * scale_);
    // A box of both sides gets both outlines, one around the other.
    const bool second = picture_->marks.boxes[box] == BoxMark::both && *letter == 'R';
    if (!second) outline(box, faded(color, 0.25F), 5 * pixel_, 2 * pixel_);
    outline(box, color, 2.2F * pixel_, second ? 3.5F * pixel_ : 1 * pixel_);
  }
  const bool both = anchor >= 0 && picture_->marks.boxes[static_cast<std::size_t>(anchor)] == BoxMark::both;
  if (anchor >= 0 && !both)
    draw_flag(static_cast<std::size_t>(anchor), color, fmt::format("{}  {}", letter, side.name), 0, false);
}

/// On the side where it is nearer, and where the sign covers nothing if there is the choice.
void GraphPainter::place_connector() {
  const auto& graph = picture_->graph.graph;
  const model::GraphMarks& marks = picture_->marks;
  const int from = side_anchor(graph, marks.left), to = side_anchor(graph, marks.right);
  if (from < 0 || to < 0) return;
  const PlacedBox &a = place(static_cast<std::size_t>(from)), &b = place(static_cast<std::size_t>(to));
  float left = std::min(a.x, b.x), right = std::max(a.x + a.width, b.x + b.width);
  for (const std::size_t box : marks.between) {
    left = std::min(left, place(box).x);
    right = std::max(right, place(box).x + place(box).width);
  }
  const float out = (verdict_width(*context_, "✗  " + marks.verdict) / 2 + 12 * pixel_) / scale_;
  const float middle = (a.y + a.height / 2 + b.y + b.height / 2) / 2;
  const auto covered = [&](float x) {
    const auto box = picture_->graph.layout.box_at(x, middle);
    return box.has_value() && !graph.boxes[*box].container;
  };
  const float by_left = a.x + b.x - 2 * left, by_right = 2 * right - a.x - a.width - b.x - b.width;
  connector_left_ = by_left < by_right;
  if (covered(connector_left_ ? left - out : right + out) &&
      !covered(connector_left_ ? right + out : left - out))
    connector_left_ = !connector_left_;
  connector_x_ = connector_left_ ? left - out : right + out;
}

/// The dashed line from the left side to the right side with the verdict on it. It goes around what is between.
void GraphPainter::draw_connector() {
  const auto& graph = picture_->graph.graph;
  const model::GraphMarks& marks = picture_->marks;
  const Theme& t = context_->theme;
  const int from = side_anchor(graph, marks.left), to = side_anchor(graph, marks.right);
  if (from < 0 || to < 0) return;
  const ImU32 color = marks.accepted ? t.accepted : t.refused;
  const PlacedBox &a = place(static_cast<std::size_t>(from)), &b = place(static_cast<std::size_t>(to));
  const std::string verdict = (marks.accepted ? "✓  " : "✗  ") + marks.verdict;
  const float size = stepped_size(12 * pixel_);
  const float width = verdict_width(*context_, verdict);
  const float height = size + 8 * pixel_;
  ImVec2 badge;
  if (from == to) {
    const std::string left = "L  " + marks.left.name;
    draw_flag(static_cast<std::size_t>(from), side_color(t, true), left, 0, true);
    const float first =
        context_->fonts.bold->CalcTextSizeA(stepped_size(11 * pixel_), 1e9F, 0, left.c_str()).x + 15 * pixel_;
    draw_flag(static_cast<std::size_t>(from), side_color(t, false), "R  " + marks.right.name, first, true);
    const ImVec2 low = picture_->camera.screen(a.x + a.width, a.y + a.height / 2);
    badge = ImVec2(low.x + 10 * pixel_ + width / 2, low.y);
    draw_->AddLine(low, ImVec2(low.x + 10 * pixel_, low.y), color, 1.6F * pixel_);
  } else {
    const bool go_left = connector_left_;
    const float bulge = connector_x_;
    const float ax = go_left ? a.x : a.x + a.width, bx = go_left ? b.x : b.x + b.width;
    const auto control = [bulge](float x) { return (bulge - x * 0.25F) / 0.75F; };
    const std::array<ImVec2, 4> curve{picture_->camera.screen(ax, a.y + a.height / 2),
                                      picture_->camera.screen(control(ax), a.y + a.height / 2),
                                      picture_->camera.screen(control(bx), b.y + b.height / 2),
                                      picture_->camera.screen(bx, b.y + b.height / 2)};
    constexpr int steps = 44;
    for (int k = 0; k < steps; k += 2)
      draw_->AddLine(on_curve(curve, static_cast<float>(k) / steps),
                     on_curve(curve, (static_cast<float>(k) + 1.15F) / steps), color, 2 * pixel_);
    draw_->AddCircleFilled(curve[0], 3.5F * pixel_, color);
    draw_->AddCircleFilled(curve[3], 3.5F * pixel_, color);
    badge = on_curve(curve, 0.5F);
  }
  const ImVec2 low(badge.x - width / 2, badge.y - height / 2),
      high(badge.x + width / 2, badge.y + height / 2);
  draw_->AddRectFilled(low, high, mixed(t.panel, color, 0.16F), height / 2);
  draw_->AddRect(low, high, color, height / 2, 1.5F * pixel_);
  draw_text(context_->fonts.bold, size, ImVec2(low.x + 8 * pixel_, low.y + 3.5F * pixel_), color, verdict);
}

void GraphPainter::draw_marks() {
  const Theme& t = context_->theme;
  const model::GraphMarks& marks = picture_->marks;
  // What the last decision changed: an outline with a corner.
  if (!dim_) {
    for (const auto& list : {containers_, boxes_}) {
      for (const std::uint32_t k : list) {
        const model::Box& box = picture_->graph.graph.boxes[k];
        if (!box.changed || marks.boxes[k] != BoxMark::none || (box.kind == BoxKind::group && box.container))
          continue;
        outline(k, t.changed, 1.5F * pixel_, 1 * pixel_);
        const PlacedBox& p = place(k);
        const ImVec2 corner = picture_->camera.screen(p.x + p.width, p.y);
        const float c = std::min(7 * scale_, 9.0F);
        draw_->AddTriangleFilled(ImVec2(corner.x - c, corner.y), corner, ImVec2(corner.x, corner.y + c),
                                 t.changed);
      }
    }
  }
  for (const std::uint32_t k : picture_->hinted)
    outline(k, faded(t.edge_strong, 0.7F), 1.5F * pixel_, 1 * pixel_, true);
  for (const std::uint32_t k : marks.marked) {
    if (marks.boxes[k] == BoxMark::between) outline(k, t.refused, 2 * pixel_, 1 * pixel_);
    if (marks.boxes[k] != BoxMark::selected) continue;
    outline(k, t.accent_soft, 5 * pixel_, 2 * pixel_);
    outline(k, t.accent, 2 * pixel_, 1 * pixel_);
  }
  if (marks.pair) {
    const float width = std::clamp(3.2F * scale_, 2.4F * pixel_, 4 * pixel_);
    place_connector();
    if (picture_->edges_alpha >= 1) {
      for (const std::size_t k : marks.direct)
        draw_edge(k, t.text_dim, std::clamp(1.6F * scale_, 1.2F * pixel_, 2.4F * pixel_), true);
      for (const std::size_t k : marks.chain) draw_edge(k, t.refused, width, true);
    }
    draw_side(marks.left, side_color(t, true), "L");
    draw_side(marks.right, side_color(t, false), "R");
    draw_connector();
  }
  for (const std::uint32_t k : picture_->matches) outline(k, t.changed, 1.6F * pixel_, 3 * pixel_);
  if (picture_->match >= 0)
    outline(static_cast<std::size_t>(picture_->match), t.changed, 3 * pixel_, 3 * pixel_);
}

}  // namespace pallascope::views
