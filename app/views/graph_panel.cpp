#include "app/views/graph_panel.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>
#include <imgui_internal.h>

namespace pallascope::views {
namespace {

constexpr float least_zoom = 0.05F, most_zoom = 3;
constexpr float readable = 0.6F;           // zoom at which names can be read
constexpr double motion = 0.18;            // seconds
constexpr std::size_t most_moving = 1500;  // boxes that move; more appear where they are
constexpr std::size_t most_opened = 6;     // groups that a selection opens by itself

float eased(double part) {
  const auto t = static_cast<float>(std::clamp(part, 0.0, 1.0));
  return 1 - (1 - t) * (1 - t) * (1 - t);
}

}  // namespace

GraphCamera GraphPanel::camera() const {
  GraphCamera camera;
  camera.at = at_;
  camera.size = size_;
  camera.middle = ImVec2(at_.x + size_.x / 2, at_.y + size_.y / 2);
  camera.centre = view_->centre;
  camera.scale = view_->zoom * unit_;
  return camera;
}

void GraphPanel::follow_program(Context& context) {
  const workspace::Scene& scene = *context.scene();
  if (compilation_ == scene.compilation) return;
  compilation_ = scene.compilation;
  const std::string key = fmt::format("{}#{}", scene.path, scene.compilation->graph_index());
  view_ = &views_[key];
  graph_ = nullptr;
  marks_ = {};
  marks_of_ = nullptr;
  request_ = 0;
  hovered_ = -1;
  view_since_ = boxes_since_ = -1;
  anchor_.clear();
  searched_.clear();
  found_.clear();
  matches_.clear();
  matches_of_ = nullptr;
  match_ = -1;
  first_reveal_ = true;
}

void GraphPanel::ask_for_layout(Context& context) {
  if (!metrics_) metrics_ = graph_metrics(context.fonts);
  const workspace::Scene& scene = *context.scene();
  if (request_ != 0 && asked_scene_ == scene.number && asked_open_ == view_->open &&
      asked_kernels_ == kernels_)
    return;
  model::GraphOptions options;
  options.open = view_->open;
  options.choose = !view_->chosen;
  options.kernels = kernels_;
  request_ = context.workspace.request_graph(std::move(options), *metrics_);
  asked_scene_ = scene.number;
  asked_open_ = view_->open;
  asked_kernels_ = kernels_;
  asked_at_ = ImGui::GetTime();
}

void GraphPanel::take_layout(Context& context) {
  const auto& made = context.workspace.graph();
  if (!made || made == graph_ || made->request < request_) return;
  const auto before = std::exchange(graph_, made);
  if (!view_->chosen) {
    view_->chosen = true;
    view_->open = asked_open_ = made->graph.open;
  }
  hovered_ = -1;
  if (!view_->placed) {
    fit(false, readable);
    view_->placed = true;
  } else if (before) {
    keep_boxes_in_place(*before);
  }
}

/// Moves the view so that what is looked at stays where it is, and lets boxes glide to their new places.
void GraphPanel::keep_boxes_in_place(const workspace::GraphScene& before) {
  std::unordered_map<std::string_view, std::size_t> known;
  for (std::size_t k = 0; k < before.graph.boxes.size(); ++k) known.emplace(before.graph.boxes[k].key, k);
  const model::Rectangle window = camera().window();
  std::vector<float> dx, dy;
  const auto& boxes = graph_->graph.boxes;
  bool anchored = false;
  for (std::size_t k = 0; k < boxes.size() && !anchored; ++k) {
    const auto old = known.find(boxes[k].key);
    if (old == known.end()) continue;
    const model::PlacedBox &a = before.layout.boxes[old->second], &b = graph_->layout.boxes[k];
    if (boxes[k].key == anchor_) {
      // The corner with the sign that was clicked.
      dx = {b.x - a.x};
      dy = {b.y - a.y};
      anchored = true;
    } else if (!boxes[k].container && window.touches({a.x, a.y, a.x + a.width, a.y + a.height})) {
      dx.push_back(b.x + b.width / 2 - a.x - a.width / 2);
      dy.push_back(b.y - a.y);
    }
  }
  anchor_.clear();
  const auto median = [](std::vector<float>& values) {
    if (values.empty()) return 0.0F;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  };
  float x = median(dx);
  const float y = median(dy);
  if (const float half = size_.x / unit_ / view_->zoom / 2; anchored && graph_->layout.width <= 2 * half) {
    // The rest shall not be off the canvas when there is room for all of it.
    const float left = graph_->layout.x, right = left + graph_->layout.width, centre = view_->centre.x + x;
    x += std::clamp(centre, right - half, left + half) - centre;
  }
  view_->centre.x += x;
  view_->centre.y += y;
  for (model::Point* point : {&view_from_, &view_to_}) {
    point->x += x;
    point->y += y;
  }
  boxes_since_ = -1;
  if (boxes.size() > most_moving) return;
  from_ = graph_->layout.boxes;
  bool moves = false;
  for (std::size_t k = 0; k < boxes.size(); ++k) {
    const auto old = known.find(boxes[k].key);
    if (old == known.end()) continue;
    const model::PlacedBox& a = before.layout.boxes[old->second];
    from_[k].x = a.x + x;
    from_[k].y = a.y + y;
    from_[k].width = a.width;
    from_[k].height = a.height;
    const model::PlacedBox& b = graph_->layout.boxes[k];
    moves = moves || std::abs(from_[k].x - b.x) + std::abs(from_[k].y - b.y) + std::abs(a.width - b.width) +
                             std::abs(a.height - b.height) >
                         0.5F;
  }
  if (moves) boxes_since_ = ImGui::GetTime();
}

void GraphPanel::advance(double now) {
  moving_ = false;
  if (view_since_ >= 0) {
    const float part = eased((now - view_since_) / motion);
    // The zoom changes by equal factors, and the centre with it, so that what is aimed at comes straight.
    view_->zoom = zoom_from_ * std::pow(zoom_to_ / zoom_from_, part);
    view_->centre = {view_from_.x + (view_to_.x - view_from_.x) * part,
                     view_from_.y + (view_to_.y - view_from_.y) * part};
    moving_ = part < 1;
    if (part >= 1) view_since_ = -1;
  }
  if (boxes_since_ < 0) return;
  const float part = eased((now - boxes_since_) / motion);
  if (part >= 1 || from_.size() != graph_->layout.boxes.size()) {
    boxes_since_ = -1;
    return;
  }
  moving_ = true;
  moved_ = graph_->layout.boxes;
  for (std::size_t k = 0; k < moved_.size(); ++k) {
    const auto between = [part](float a, float b) { return a + (b - a) * part; };
    model::PlacedBox& box = moved_[k];
    const model::PlacedBox& old = from_[k];
    const float x = between(old.x, box.x), y = between(old.y, box.y);
    box.title_x += x - box.x;
    box.title_y += y - box.y;
    box.x = x;
    box.y = y;
    box.width = between(old.width, box.width);
    box.height = between(old.height, box.height);
  }
}

// ---------------------------------------------------------------------------------------------- the view

void GraphPanel::undo_move() {
  if (view_->past.empty()) return;
  const auto [centre, zoom] = view_->past.back();
  view_->past.pop_back();
  move_view(centre, zoom, true, false);
}

void GraphPanel::move_view(model::Point centre, float zoom, bool animate, bool remember) {
  zoom = std::clamp(zoom, least_zoom, most_zoom);
  if (remember && view_->placed) {
    constexpr double gesture = 0.4;  // seconds between moves that a person takes for one; not measured
    constexpr std::size_t most_past = 100;
    const double now = ImGui::GetTime();
    if (view_moved_at_ < 0 || now - view_moved_at_ > gesture) {
      const bool gliding = view_since_ >= 0;
      view_->past.emplace_back(gliding ? view_to_ : view_->centre, gliding ? zoom_to_ : view_->zoom);
      if (view_->past.size() > most_past) view_->past.erase(view_->past.begin());
    }
    view_moved_at_ = now;
  }
  if (!animate) {
    view_->centre = centre;
    view_->zoom = zoom;
    view_since_ = -1;
    return;
  }
  view_from_ = view_->centre;
  zoom_from_ = view_->zoom;
  view_to_ = centre;
  zoom_to_ = zoom;
  view_since_ = ImGui::GetTime();
}

void GraphPanel::show(const model::Rectangle& area, float zoom, bool animate) {
  move_view({(area.left + area.right) / 2, (area.top + area.bottom) / 2}, zoom, animate);
}

/// All of it; if names could not be read then (`least`), its upper end.
void GraphPanel::fit(bool animate, float least) {
  if (!graph_) return;
  const model::Layout& layout = graph_->layout;
  constexpr float margin = 24;  // pixels of an unscaled display
  const float width = std::max(size_.x / unit_ - 2 * margin, 1.0F),
              height = std::max(size_.y / unit_ - 2 * margin, 1.0F);
  const float whole =
      std::min({width / std::max(layout.width, 1.0F), height / std::max(layout.height, 1.0F), 1.25F});
  if (whole >= least) {
    show({layout.x, layout.y, layout.x + layout.width, layout.y + layout.height}, whole, animate);
    return;
  }
  const float zoom = std::clamp(width / std::max(layout.width, 1.0F), least, 1.0F);
  const float shown = size_.y / unit_ / zoom;
  // What is wider than the canvas is shown around its uppermost box.
  float middle = layout.x + layout.width / 2;
  if (layout.width * zoom > width) {
    float top = 0;
    bool first = true;
    for (std::size_t k = 0; k < layout.boxes.size(); ++k) {
      const model::PlacedBox& b = layout.boxes[k];
      if (graph_->graph.boxes[k].container || (!first && b.y >= top)) continue;
      top = b.y;
      middle = b.x + b.width / 2;
      first = false;
    }
  }
  move_view({middle, layout.y + std::min(layout.height / 2, shown / 2 - margin / zoom)}, zoom, animate);
}

std::optional<model::Rectangle> GraphPanel::bounds_of_marks() const {
  std::optional<model::Rectangle> bounds;
  for (const std::uint32_t k : marks_.marked) {
    const model::PlacedBox& b = graph_->layout.boxes[k];
    if (!bounds) bounds = model::Rectangle{b.x, b.y, b.x + b.width, b.y + b.height};
    bounds->left = std::min(bounds->left, b.x);
    bounds->top = std::min(bounds->top, b.y);
    bounds->right = std::max(bounds->right, b.x + b.width);
    bounds->bottom = std::max(bounds->bottom, b.y + b.height);
  }
  return bounds;
}

/// Brings what is marked into view; without changing the zoom where it fits.
void GraphPanel::reveal(bool centre) {
  const auto bounds = bounds_of_marks();
  if (!bounds) return;
  const bool first = std::exchange(first_reveal_, false);
  model::Rectangle area = *bounds;
  // Flags stand above boxes, the sign of a verdict beside them: of a size on the screen.
  const float zoom_now = view_since_ >= 0 ? zoom_to_ : view_->zoom;
  const auto padded = [&](float zoom) {
    const float side = (marks_.pair ? 100.0F : 16.0F) / zoom, above = (marks_.pair ? 30.0F : 16.0F) / zoom;
    return model::Rectangle{area.left - side, area.top - above, area.right + side, area.bottom + 16 / zoom};
  };
  const float width = size_.x / unit_, height = size_.y / unit_;
  const model::Rectangle now = padded(zoom_now);
  const bool fits = (now.right - now.left) * zoom_now <= width && (now.bottom - now.top) * zoom_now <= height;
  // The margins are of the screen, so the room for the boxes is what is left of it.
  const float room_x = std::max(width - (marks_.pair ? 200 : 32), 40.0F),
              room_y = std::max(height - (marks_.pair ? 46 : 32), 40.0F);
  const float best = std::min({room_x / std::max(area.right - area.left, 1.0F),
                               room_y / std::max(area.bottom - area.top, 1.0F), 1.0F});
  const model::Rectangle window = camera().window();
  const bool seen = view_since_ < 0 && now.left >= window.left && now.right <= window.right &&
                    now.top >= window.top && now.bottom <= window.bottom;
  if (first && marks_.pair) {
    show(padded(best), best, false);
  } else if (!fits || (marks_.pair && zoom_now < 0.4F)) {
    show(padded(best), best, !first);
  } else if (centre || first) {
    show(now, zoom_now, !first);
  } else if (!seen) {
    // As little as brings it in.
    const auto moved = [](float low, float high, float from, float to) {
      return low < from ? low - from : high > to ? high - to : 0.0F;
    };
    move_view({view_->centre.x + moved(now.left, now.right, window.left, window.right),
               view_->centre.y + moved(now.top, now.bottom, window.top, window.bottom)},
              zoom_now, true);
  }
}

// --------------------------------------------------------------------------------------------- selection

void GraphPanel::follow_selection(Context& context) {
  const workspace::Scene& scene = *context.scene();
  const UiState& state = context.state;
  const bool current = graph_->scene == scene.number && graph_->request >= request_;
  // Kernels and buffers are of one snapshot: while the graph is of an older one, their marks wait.
  const bool of_snapshot = !std::holds_alternative<trace::NodeId>(state.selection) &&
                           !std::holds_alternative<model::GroupRef>(state.selection) &&
                           !std::holds_alternative<schedule::DecisionId>(state.selection);
  if (marks_of_ != graph_ || marked_ != state.selection || marks_at_ != scene.snapshot) {
    if (!of_snapshot || graph_->scene == scene.number) {
      marks_ = model::graph_marks(graph_->graph, *scene.compilation, *scene.snapshot, state.selection);
      marked_ = state.selection;
      marks_at_ = scene.snapshot;
    } else {
      marks_ = model::graph_marks(graph_->graph, *scene.compilation, *scene.snapshot, {});
      marked_ = {};
    }
    marks_of_ = graph_;
    hinted_selection_ = {};
    hinted_.clear();
  }
  if (!current || revealed_ == state.selection_number) return;
  if (opened_for_ != state.selection_number) {
    opened_for_ = state.selection_number;
    const auto closed =
        model::groups_to_open(graph_->graph, *scene.compilation, *scene.snapshot, state.selection);
    if (!closed.empty() && closed.size() <= most_opened) {
      view_->open.insert(closed.begin(), closed.end());
      return;  // with the next layout
    }
  }
  revealed_ = state.selection_number;
  if (!marks_.marked.empty()) reveal(false);
}

void GraphPanel::toggle(std::size_t box) {
  const model::Box& b = graph_->graph.boxes[box];
  anchor_ = b.key;
  if (view_->open.erase(b.path) == 0) view_->open.insert(b.path);
}

void GraphPanel::open_all(bool open) {
  view_->open.clear();
  if (!open || !graph_) return;
  for (const model::Group& group : graph_->graph.groups) {
    if (!group.path.empty()) view_->open.insert(group.path);
  }
}

std::optional<ImVec2> GraphPanel::screen_centre(std::string_view box_key) const {
  if (!graph_ || view_ == nullptr) return std::nullopt;
  const auto k = graph_->graph.find(box_key);
  if (!k) return std::nullopt;
  const model::PlacedBox& b = graph_->layout.boxes[*k];
  const ImVec2 p = graph_->graph.boxes[*k].container
                       ? camera().screen(b.title_x + b.title_width / 2, b.title_y + b.title_height / 2)
                       : camera().screen(b.x + b.width / 2, b.y + b.height / 2);
  if (p.x < at_.x || p.y < at_.y || p.x >= at_.x + size_.x || p.y >= at_.y + size_.y) return std::nullopt;
  return p;
}

// ------------------------------------------------------------------------------------------------ canvas

void GraphPanel::handle_mouse(Context& context, bool hovered, bool active, bool released) {
  const ImGuiIO& io = ImGui::GetIO();
  hovered_ = -1;
  const GraphCamera now = camera();
  if (hovered && !dragged_) {
    const model::Point p = now.layout(io.MousePos);
    if (const auto box = graph_->layout.box_at(p.x, p.y)) hovered_ = static_cast<int>(*box);
  }
  if (hovered && (io.MouseWheel != 0 || io.MouseWheelH != 0)) {
    // What is under the pointer stays there.
    const model::Point p = now.layout(io.MousePos);
    const float zoom = std::clamp(view_->zoom * std::pow(1.15F, io.MouseWheel), least_zoom, most_zoom);
    const float kept = 1 - view_->zoom / zoom;
    move_view({view_->centre.x + (p.x - view_->centre.x) * kept - io.MouseWheelH * 40 / now.scale,
               view_->centre.y + (p.y - view_->centre.y) * kept},
              zoom, false);
  }
  const bool drags = active && (ImGui::IsMouseDragging(ImGuiMouseButton_Left, 4) ||
                                ImGui::IsMouseDragging(ImGuiMouseButton_Middle, 0));
  if (drags) {
    dragged_ = true;
    move_view({view_->centre.x - io.MouseDelta.x / now.scale, view_->centre.y - io.MouseDelta.y / now.scale},
              view_->zoom, false);
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeAll);
  }
  if (hovered && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
    if (hovered_ < 0) {
      fit(true);
    } else if (graph_->graph.boxes[static_cast<std::size_t>(hovered_)].kind == model::BoxKind::group) {
      toggle(static_cast<std::size_t>(hovered_));
    }
  } else if (hovered && released && hovered_ >= 0 && !dragged_ &&
             ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
             io.MouseClickedLastCount[ImGuiMouseButton_Left] == 1) {
    const auto box = static_cast<std::size_t>(hovered_);
    const model::Box& b = graph_->graph.boxes[box];
    const model::PlacedBox& place = graph_->layout.boxes[box];
    const model::Point p = now.layout(io.MousePos);
    const float sign_x = b.container ? place.title_x : place.x + 9,
                sign_y = b.container ? place.title_y : place.y + 5;
    const bool on_sign = b.kind == model::BoxKind::group && p.x >= sign_x - 4 && p.x <= sign_x + 14 &&
                         p.y >= sign_y - 2 && p.y <= sign_y + 18;
    if (on_sign) {
      toggle(box);
    } else if (const model::Selection selection = model::selection_of(b, *context.scene()->snapshot);
               !model::is_empty(selection)) {
      revealed_ = opened_for_ = context.state.selection_number + 1;  // it is seen: it was clicked
      context.select(selection);
    }
  }
  if (!ImGui::IsMouseDown(ImGuiMouseButton_Left) && !ImGui::IsMouseDown(ImGuiMouseButton_Middle))
    dragged_ = false;
}

void GraphPanel::draw_canvas(Context& context) {
  at_ = ImGui::GetCursorScreenPos();
  size_ = ImGui::GetContentRegionAvail();
  size_ = ImVec2(std::max(size_.x, 16.0F), std::max(size_.y, 16.0F));
  unit_ = context.px(1);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 end(at_.x + size_.x, at_.y + size_.y);
  draw->AddRectFilled(at_, end, context.theme.canvas);
  take_layout(context);
  ImGui::SetNextItemAllowOverlap();
  ImGui::InvisibleButton("##canvas", size_,
                         ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonMiddle);
  const bool hovered = ImGui::IsItemHovered(), active = ImGui::IsItemActive(),
             released = ImGui::IsItemDeactivated();
  if (hovered) ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY);
  if (!graph_) {
    const char* words = "laying out…";
    const ImVec2 size = ImGui::CalcTextSize(words);
    draw->AddText(ImVec2((at_.x + end.x - size.x) / 2, (at_.y + end.y - size.y) / 2),
                  context.theme.text_faint, words);
    moving_ = true;
    return;
  }
  follow_selection(context);
  if (context.state.fit) fit(true);
  if (context.state.centre) reveal(true);
  if (context.state.view_back) undo_move();
  handle_mouse(context, hovered, active, released);
  advance(ImGui::GetTime());

  const model::Selection over =
      hovered_ >= 0 ? model::selection_of(graph_->graph.boxes[static_cast<std::size_t>(hovered_)],
                                          *context.scene()->snapshot)
                    : model::Selection();
  if (hovered_ < 0 && context.state.hovered != hinted_selection_) {
    // Another panel's pointer is over something of the graph.
    hinted_selection_ = context.state.hovered;
    hinted_.clear();
    if (!model::is_empty(hinted_selection_)) {
      for (const std::size_t k : model::boxes_of(graph_->graph, *context.scene()->compilation,
                                                 *context.scene()->snapshot, hinted_selection_))
        hinted_.push_back(static_cast<std::uint32_t>(k));
    }
  } else if (hovered_ >= 0) {
    hinted_selection_ = {};
    hinted_.clear();
    context.hover(over);
  }

  const GraphCamera now = camera();
  const bool moves = boxes_since_ >= 0;
  const GraphPicture picture{
      *graph_,
      now,
      moves ? &moved_ : nullptr,
      moves ? static_cast<float>(std::clamp((ImGui::GetTime() - boxes_since_) / motion, 0.0, 0.999)) : 1.0F,
      marks_,
      hovered_,
      hinted_,
      matches_,
      match_ >= 0 && static_cast<std::size_t>(match_) < found_.size()
          ? graph_->graph.box_of_node[found_[static_cast<std::size_t>(match_)].index()]
          : -1};
  draw->PushClipRect(at_, end, true);
  painter_.draw(context, draw, picture);
  if (graph_->request < request_ && ImGui::GetTime() - asked_at_ > 0.2) {
    const char* words = "laying out…";
    const ImVec2 size = ImGui::CalcTextSize(words);
    draw->AddText(ImVec2(end.x - size.x - context.px(10), end.y - size.y - context.px(8)),
                  context.theme.text_dim, words);
  }
  draw->PopClipRect();
  draw_key(context);
  if (hovered && hovered_ >= 0 && !dragged_) draw_tooltip(context, static_cast<std::size_t>(hovered_));
}

void GraphPanel::draw(Context& context) {
  if (context.scene() == nullptr) return;
  follow_program(context);
  ask_for_layout(context);
  draw_toolbar(context);
  draw_canvas(context);
}

}  // namespace pallascope::views
