#include "app/views/graph_draw.h"

#include <algorithm>
#include <cmath>

namespace pallascope::views {
namespace {

using model::BoxKind;
using model::BoxMark;
using model::PlacedBox;

constexpr float least_text = 6;             // pixels: smaller text is not drawn
constexpr float least_sublabel = 7.5F;      // pixels
constexpr float plain_edges_below = 0.26F;  // of scale: edges are thin straight lines, boxes plain blocks

/// Lines of one pixel without smoothing, thousands of them.
class LineBatch {
 public:
  LineBatch(ImDrawList* draw, ImU32 color)
      : draw_(draw), color_(color), uv_(ImGui::GetFontTexUvWhitePixel()) {}
  ~LineBatch() { close(); }
  LineBatch(const LineBatch&) = delete;
  LineBatch& operator=(const LineBatch&) = delete;

  void line(ImVec2 a, ImVec2 b) {
    if (left_ == 0) {
      close();
      draw_->PrimReserve(block * 6, block * 4);
      left_ = block;
      open_ = true;
    }
    const float dx = b.x - a.x, dy = b.y - a.y;
    // Half a pixel to each side of its longer axis: exact enough at this width.
    const float nx = std::abs(dy) >= std::abs(dx) ? 0.5F : 0.0F, ny = 0.5F - nx;
    const auto first = static_cast<ImDrawIdx>(draw_->_VtxCurrentIdx);
    for (const int offset : {0, 1, 2, 0, 2, 3}) draw_->PrimWriteIdx(static_cast<ImDrawIdx>(first + offset));
    draw_->PrimWriteVtx(ImVec2(a.x - nx, a.y - ny), uv_, color_);
    draw_->PrimWriteVtx(ImVec2(b.x - nx, b.y - ny), uv_, color_);
    draw_->PrimWriteVtx(ImVec2(b.x + nx, b.y + ny), uv_, color_);
    draw_->PrimWriteVtx(ImVec2(a.x + nx, a.y + ny), uv_, color_);
    --left_;
  }

 private:
  static constexpr int block = 512;
  void close() {
    if (open_ && left_ > 0) draw_->PrimUnreserve(left_ * 6, left_ * 4);
    open_ = false;
    left_ = 0;
  }
  ImDrawList* draw_;
  ImU32 color_;
  ImVec2 uv_;
  int left_ = 0;
  bool open_ = false;
};

void dashed_line(ImDrawList* draw, ImVec2 a, ImVec2 b, ImU32 color, float width, float dash, float space) {
  const float dx = b.x - a.x, dy = b.y - a.y, length = std::sqrt(dx * dx + dy * dy);
  if (length <= 0) return;
  for (float at = 0; at < length; at += dash + space) {
    const float end = std::min(at + dash, length);
    draw->AddLine(ImVec2(a.x + dx * at / length, a.y + dy * at / length),
                  ImVec2(a.x + dx * end / length, a.y + dy * end / length), color, width);
  }
}

}  // namespace

model::LayoutMetrics graph_metrics(const Fonts& fonts) {
  model::LayoutMetrics metrics;
  ImFontBaked* label = fonts.bold->GetFontBaked(graph_label_size);
  ImFontBaked* sublabel = fonts.ui->GetFontBaked(graph_sublabel_size);
  for (unsigned c = 32; c < 127; ++c) {
    metrics.label_advance[c] = label->GetCharAdvance(static_cast<ImWchar>(c));
    metrics.sublabel_advance[c] = sublabel->GetCharAdvance(static_cast<ImWchar>(c));
  }
  metrics.label_char = label->GetCharAdvance(L'…');
  metrics.sublabel_char = sublabel->GetCharAdvance(L'…');
  metrics.label_height = 16;
  metrics.sublabel_height = 14;
  metrics.box_padding_x = 9;
  metrics.box_padding_y = 5;
  metrics.container_padding = 10;
  metrics.least_width = 44;
  metrics.most_text = 190;
  metrics.title_sign = 15;
  metrics.layered.gap_x = 18;
  metrics.layered.gap_y = 24;
  metrics.layered.port_gap = 10;
  metrics.layered.line_gap = 10;
  return metrics;
}

float stepped_size(float size) { return size < 20 ? std::floor(size * 2) / 2 : std::floor(size / 2) * 2; }

model::Rectangle GraphCamera::window(float more) const {
  const model::Point low = layout(at), high = layout(ImVec2(at.x + size.x, at.y + size.y));
  return {low.x - more, low.y - more, high.x + more, high.y + more};
}

const PlacedBox& GraphPainter::place(std::size_t box) const {
  return picture_->moving != nullptr ? (*picture_->moving)[box] : picture_->graph.layout.boxes[box];
}

/// What the selection is not about steps back.
float GraphPainter::fade_of(std::size_t box) const {
  return dim_ && picture_->marks.boxes[box] == BoxMark::none ? 0.55F : 1.0F;
}

GraphPainter::Colors GraphPainter::colors_of(const model::Box& box) const {
  const Theme& t = context_->theme;
  switch (box.kind) {
    case BoxKind::input:
    case BoxKind::output:
      return {t.input_box, mixed(t.input_box, t.access('S'), 0.55F), t.text, t.text_dim};
    case BoxKind::group:
      return {mixed(t.canvas, t.box, 0.85F), t.border_strong, t.text, t.text_dim};
    case BoxKind::kernel:
      return {t.kernel, t.kernel_border, t.text, t.text_dim};
    case BoxKind::node:
      break;
  }
  if (box.outcome == "view") return {t.view_box, t.box_border, t.text_dim, t.text_faint};
  if (box.outcome == "library")
    return {t.library_box, mixed(t.library_box, t.access('P'), 0.6F), t.text, t.text_dim};
  if (box.outcome == "torch") return {t.torch_box, mixed(t.torch_box, t.removed, 0.6F), t.text, t.text_dim};
  return {t.box, t.box_border, t.text, t.text_dim};
}

void GraphPainter::draw_text(ImFont* font, float size, ImVec2 at, ImU32 color, const std::string& value) {
  draw_->AddText(font, size, ImVec2(std::floor(at.x), std::floor(at.y)), color, value.data(),
                 value.data() + value.size());
}

/// The size of a label: its own, or where sublabels have gone, as large as their room lets it be.
float GraphPainter::label_room(float width, float height, float label_width) const {
  const float own = graph_label_size * scale_;
  if (sublabels_ || label_width <= 0) return stepped_size(own);
  const float size =
      std::min({12 * pixel_, graph_label_size * width * scale_ / label_width, height * scale_ * 0.85F});
  return stepped_size(std::max(own, size));
}

void GraphPainter::draw_title(std::size_t k, float fade) {
  const model::Box& box = picture_->graph.graph.boxes[k];
  const PlacedBox& p = place(k);
  const Colors colors = colors_of(box);
  const float width = box.container ? p.title_width : p.width - 18,
              height = box.container ? p.title_height : p.height - 8;
  const float sign = box.kind == BoxKind::group ? 15 : 0;
  const float label_size = label_room(width - sign, height, p.label_width),
              sub_size = stepped_size(graph_sublabel_size * scale_);
  if (!labels_ || label_size < least_text) return;
  float x = p.title_x, y = p.title_y;
  if (!box.container) {  // a closed group
    x = p.x + 9;
    y = p.y + 5;
  }
  if (box.kind == BoxKind::group) {
    // A triangle: to the right when closed, down when open.
    const ImVec2 c = picture_->camera.screen(x + 5, sublabels_ || box.container ? y + 8 : p.y + p.height / 2);
    const float r = 3.6F * scale_;
    const ImU32 color = faded(context_->theme.text_dim, fade);
    if (box.container) {
      draw_->AddTriangleFilled(ImVec2(c.x - r, c.y - r * 0.6F), ImVec2(c.x + r, c.y - r * 0.6F),
                               ImVec2(c.x, c.y + r * 0.8F), color);
    } else {
      draw_->AddTriangleFilled(ImVec2(c.x - r * 0.6F, c.y - r), ImVec2(c.x + r * 0.8F, c.y),
                               ImVec2(c.x - r * 0.6F, c.y + r), color);
    }
    x += 15;
  }
  const ImU32 label = box.kind == BoxKind::kernel
                          ? mixed(context_->theme.kernel_border, context_->theme.accepted, 0.8F)
                          : colors.text;
  ImVec2 at = picture_->camera.screen(x, y);
  if (!sublabels_ && !box.container)
    at.y = picture_->camera.screen(x, p.y + p.height / 2).y - label_size * 0.58F;
  draw_text(context_->fonts.bold, label_size, at, faded(label, fade), p.label);
  if (!sublabels_) return;
  if (!p.name.empty())
    draw_text(context_->fonts.ui, sub_size, picture_->camera.screen(x + p.label_width + 6, y + 2),
              faded(colors.sublabel, fade), p.name);
  if (!p.sublabel.empty()) {
    const float left = box.container ? p.title_x : p.x + 9;
    draw_text(context_->fonts.ui, sub_size, picture_->camera.screen(left, y + 16),
              faded(colors.sublabel, fade), p.sublabel);
  }
}

void GraphPainter::draw_container(std::size_t k) {
  const Theme& t = context_->theme;
  const model::Box& box = picture_->graph.graph.boxes[k];
  const PlacedBox& p = place(k);
  const ImVec2 low = picture_->camera.screen(p.x, p.y),
               high = picture_->camera.screen(p.x + p.width, p.y + p.height);
  if (high.x - low.x < 2 && high.y - low.y < 2) return;
  const bool kernel = box.kind == BoxKind::kernel;
  const float rounding = std::min((kernel ? 7 : 9) * scale_, 12.0F), fade = fade_of(k);
  const bool plain = scale_ < plain_edges_below;
  draw_->AddRectFilled(low, high, faded(kernel ? t.kernel : t.group, fade), plain ? 0 : rounding);
  draw_->AddRect(low, high, faded(kernel ? t.kernel_border : t.group_border, fade * (plain ? 0.7F : 1)),
                 plain ? 0 : rounding, pixel_);
  if (!plain || p.title_width * scale_ > 40) draw_title(k, fade);
}

void GraphPainter::draw_leaf(std::size_t k) {
  const model::Box& box = picture_->graph.graph.boxes[k];
  const PlacedBox& p = place(k);
  const ImVec2 low = picture_->camera.screen(p.x, p.y),
               high = picture_->camera.screen(p.x + p.width, p.y + p.height);
  const Colors colors = colors_of(box);
  const float fade = fade_of(k);
  if (scale_ < plain_edges_below) {
    const ImU32 block = mixed(colors.fill, colors.border, 0.75F);
    draw_->AddRectFilled(low, ImVec2(std::max(high.x, low.x + 1), std::max(high.y, low.y + 1)),
                         faded(block, fade));
    return;
  }
  const bool pill = box.kind == BoxKind::input || box.kind == BoxKind::output, view = box.outcome == "view";
  const float rounding = pill ? (high.y - low.y) / 2 : 5 * scale_;
  const ImU32 fill = fade < 1 ? mixed(colors.fill, context_->theme.canvas, 0.5F) : colors.fill;
  const ImU32 border = faded(colors.border, fade);
  draw_->AddRectFilled(low, high, fill, rounding);
  if (view && scale_ > 0.5F) {
    dashed_outline(low, high, border, pixel_);
  } else {
    draw_->AddRect(low, high, border, rounding, pixel_);
  }
  if (box.kind == BoxKind::group) {
    // A second edge below: there is more in it.
    draw_->AddLine(ImVec2(low.x + rounding, high.y + 2.5F * scale_),
                   ImVec2(high.x - rounding, high.y + 2.5F * scale_), border, pixel_);
    draw_title(k, fade);
    return;
  }
  if (box.outcome == "library" || box.outcome == "torch") {
    const float band = std::max(2.0F, 3.5F * scale_);
    draw_->AddRectFilled(low, ImVec2(low.x + band, high.y), faded(colors.border, fade), rounding,
                         ImDrawFlags_RoundCornersLeft);
    if (box.outcome == "torch") {
      // A corner that is cut: this one leaves the program.
      const float c = 9 * scale_;
      draw_->AddTriangleFilled(ImVec2(high.x - c, low.y), ImVec2(high.x, low.y), ImVec2(high.x, low.y + c),
                               faded(context_->theme.removed, fade));
    }
  }
  if (!labels_) return;
  float label_size = label_room(p.width - 10, p.height - 6, p.label_width);
  if (!sublabels_) {
    const std::string* label = &p.label;
    float width = p.label_width * label_size / graph_label_size;
    const float least = std::min(stepped_size(7.5F * pixel_), stepped_size(p.height * scale_ * 0.85F));
    if (least < least_text) return;
    if (label_size < least) {
      // What there is room for; the whole stands in the tooltip.
      label_size = least;
      const float whole = p.label_width * least / graph_label_size,
                  room = (p.width - 6) * scale_ - least * 0.9F;
      const auto kept =
          static_cast<std::size_t>(std::max(static_cast<float>(p.label.size()) * room / whole, 1.0F));
      cut_.assign(p.label, 0, std::min(kept, p.label.size()));
      while (!cut_.empty() && (static_cast<unsigned char>(cut_.back()) & 0x80U) != 0) cut_.pop_back();
      cut_ += "…";
      label = &cut_;
      width =
          context_->fonts.bold->CalcTextSizeA(label_size, 1e9F, 0, cut_.data(), cut_.data() + cut_.size()).x;
    }
    draw_text(context_->fonts.bold, label_size,
              ImVec2((low.x + high.x - width) / 2, (low.y + high.y) / 2 - label_size * 0.58F),
              faded(colors.text, fade), *label);
    return;
  }
  const float sub_size = stepped_size(graph_sublabel_size * scale_);
  const auto middle = [&](float width, float y) {
    return picture_->camera.screen(p.x + (p.width - width) / 2, p.y + y);
  };
  const float down = p.sublabel.empty() ? (p.height - 16) / 2 : 5;
  const float whole = p.label_width + (p.name.empty() ? 0 : 6 + p.name_width);
  draw_text(context_->fonts.bold, label_size, middle(whole, down), faded(colors.text, fade), p.label);
  if (!p.name.empty()) {
    const ImU32 tag = box.outcome == "kernel"
                          ? mixed(context_->theme.kernel_border, context_->theme.accepted, 0.8F)
                          : mixed(colors.border, context_->theme.text, 0.35F);
    const ImVec2 at = middle(whole, down);
    draw_text(context_->fonts.ui, sub_size, ImVec2(at.x + (p.label_width + 6) * scale_, at.y + 2 * scale_),
              faded(tag, fade), p.name);
  }
  if (!p.sublabel.empty())
    draw_text(context_->fonts.ui, sub_size, middle(p.sublabel_width, 21), faded(colors.sublabel, fade),
              p.sublabel);
}

/// Curves in the gaps between layers, straight lines along boxes, rounded corners where an edge goes around.
void GraphPainter::draw_edge(std::size_t k, ImU32 color, float width, bool arrow) {
  const auto& points = picture_->graph.layout.edges[k].points;
  if (points.size() < 2) return;
  const GraphCamera& camera = picture_->camera;
  const auto curved = [](model::Point a, model::Point b) {
    return std::abs(a.x - b.x) > 0.01F && b.y - a.y > 0.5F;
  };
  const float radius = 8 * scale_;
  draw_->PathClear();
  ImVec2 last = camera.screen(points[0].x, points[0].y);
  draw_->PathLineTo(last);
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const ImVec2 next = camera.screen(points[i + 1].x, points[i + 1].y);
    if (curved(points[i], points[i + 1])) {
      const float middle = (last.y + next.y) / 2;
      draw_->PathBezierCubicCurveTo(ImVec2(last.x, middle), ImVec2(next.x, middle), next,
                                    scale_ < 0.5F ? 6 : 12);
    } else if (i + 2 < points.size() && !curved(points[i + 1], points[i + 2])) {
      const ImVec2 after = camera.screen(points[i + 2].x, points[i + 2].y);
      const float in = std::hypot(next.x - last.x, next.y - last.y),
                  out = std::hypot(after.x - next.x, after.y - next.y);
      const float r = std::min({radius, in / 2, out / 2});
      if (r > 0.5F && in > 0 && out > 0) {
        draw_->PathLineTo(ImVec2(next.x - (next.x - last.x) / in * r, next.y - (next.y - last.y) / in * r));
        draw_->PathBezierQuadraticCurveTo(
            next, ImVec2(next.x + (after.x - next.x) / out * r, next.y + (after.y - next.y) / out * r), 5);
      } else {
        draw_->PathLineTo(next);
      }
    } else {
      draw_->PathLineTo(next);
    }
    last = next;
  }
  draw_->PathStroke(color, width);
  if (!arrow) return;
  const float length = std::max(5.5F * scale_, 3.5F) + width, half = length * 0.52F;
  draw_->AddTriangleFilled(ImVec2(last.x, last.y), ImVec2(last.x - half, last.y - length),
                           ImVec2(last.x + half, last.y - length), color);
}

void GraphPainter::draw_edges() {
  const Theme& t = context_->theme;
  edges_.clear();
  picture_->graph.layout.edge_grid.find(picture_->camera.window(8), edges_);
  const float alpha = picture_->edges_alpha * (dim_ ? 0.5F : 1.0F);
  if (alpha <= 0.02F) return;
  if (scale_ >= plain_edges_below) {
    const float width = std::clamp(1.3F * scale_, 0.9F * pixel_, 2.0F * pixel_);
    for (const std::uint32_t k : edges_) draw_edge(k, faded(t.edge, alpha), width, true);
    return;
  }
  LineBatch lines(draw_, faded(t.edge, alpha * std::clamp(scale_ / plain_edges_below, 0.35F, 0.8F)));
  const GraphCamera& camera = picture_->camera;
  for (const std::uint32_t k : edges_) {
    const auto& points = picture_->graph.layout.edges[k].points;
    if (points.size() < 2) continue;
    ImVec2 last = camera.screen(points[0].x, points[0].y);
    const std::size_t end = points.size() - 1;
    for (std::size_t i = 1; i <= end; ++i) {
      const ImVec2 next = camera.screen(points[i].x, points[i].y);
      const float far = std::abs(next.x - last.x) + std::abs(next.y - last.y);
      if (far < (i == end ? 0.7F : 2.0F)) continue;  // too near to be seen
      lines.line(last, next);
      last = next;
    }
  }
}

void GraphPainter::outline(std::size_t k, ImU32 color, float width, float away, bool dashed) {
  const model::Box& box = picture_->graph.graph.boxes[k];
  const PlacedBox& p = place(k);
  ImVec2 low = picture_->camera.screen(p.x, p.y),
         high = picture_->camera.screen(p.x + p.width, p.y + p.height);
  low = ImVec2(low.x - away, low.y - away);
  high = ImVec2(std::max(high.x, low.x + 3) + away, std::max(high.y, low.y + 3) + away);
  const bool pill = box.kind == BoxKind::input || box.kind == BoxKind::output;
  const float rounding =
      pill ? (high.y - low.y) / 2 : (box.container ? 8 : 5) * std::min(scale_, 1.5F) + away;
  if (dashed) {
    dashed_outline(low, high, color, width);
  } else {
    draw_->AddRect(low, high, color, rounding, width);
  }
}

void GraphPainter::dashed_outline(ImVec2 low, ImVec2 high, ImU32 color, float width) {
  const float r = std::min(4 * scale_, 6.0F), dash = std::max(4 * scale_, 3.0F), space = dash * 0.75F;
  dashed_line(draw_, ImVec2(low.x + r, low.y), ImVec2(high.x - r, low.y), color, width, dash, space);
  dashed_line(draw_, ImVec2(low.x + r, high.y), ImVec2(high.x - r, high.y), color, width, dash, space);
  dashed_line(draw_, ImVec2(low.x, low.y + r), ImVec2(low.x, high.y - r), color, width, dash, space);
  dashed_line(draw_, ImVec2(high.x, low.y + r), ImVec2(high.x, high.y - r), color, width, dash, space);
}

void GraphPainter::draw_hovered_edges() {
  const int hovered = picture_->hovered;
  if (hovered < 0 || picture_->edges_alpha < 1) return;
  const Theme& t = context_->theme;
  outline(static_cast<std::size_t>(hovered), t.edge_strong, 1.3F * pixel_, 0);
  const auto& graph = picture_->graph.graph;
  if (graph.boxes[static_cast<std::size_t>(hovered)].container) return;
  const float width = std::clamp(2 * scale_, 1.5F * pixel_, 2.6F * pixel_);
  for (std::size_t k = 0; k < graph.edges.size(); ++k) {
    if (graph.edges[k].to == hovered) draw_edge(k, t.edge_strong, width, true);
    if (graph.edges[k].from == hovered) draw_edge(k, t.changed, width, true);
  }
}

void GraphPainter::draw(const Context& context, ImDrawList* draw, const GraphPicture& picture) {
  context_ = &context;
  draw_ = draw;
  picture_ = &picture;
  scale_ = picture.camera.scale;
  pixel_ = context.px(1);
  labels_ = scale_ >= plain_edges_below;
  sublabels_ = graph_sublabel_size * scale_ >= least_sublabel * pixel_;
  dim_ = picture.marks.pair;
  boxes_.clear();
  containers_.clear();
  picture.graph.layout.box_grid.find(picture.camera.window(12), boxes_);
  const auto leaf = [&](std::uint32_t k) { return !picture.graph.graph.boxes[k].container; };
  const auto leaves = std::partition(boxes_.begin(), boxes_.end(), leaf);
  containers_.assign(leaves, boxes_.end());
  boxes_.erase(leaves, boxes_.end());
  std::sort(containers_.begin(), containers_.end());  // outer ones stand first
  for (const std::uint32_t k : containers_) draw_container(k);
  draw_edges();
  for (const std::uint32_t k : boxes_) draw_leaf(k);
  draw_hovered_edges();
  draw_marks();
}

}  // namespace pallascope::views
