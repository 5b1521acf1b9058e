// What lies over the graph: its toolbar with the search, the key of its colours, tooltips.
#include <algorithm>

#include <fmt/format.h>

#include "app/model/find_lines.h"
#include "app/views/graph_panel.h"
#include "core/report/format.h"
#include "core/report/lookup.h"

namespace pallascope::views {
namespace {

/// A square button with a drawing in it; `on` for one that stays pressed.
template <class Draw>
bool icon_button(const Context& context, const char* id, const char* words, bool on, const Draw& icon) {
  const float side = ImGui::GetFrameHeight();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool pressed = ImGui::InvisibleButton(id, ImVec2(side, side));
  const bool hovered = ImGui::IsItemHovered();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 end(at.x + side, at.y + side);
  if (on) draw->AddRectFilled(at, end, context.theme.accent_soft, context.px(4));
  if (hovered) draw->AddRectFilled(at, end, context.theme.hover, context.px(4));
  const ImU32 color = hovered || on ? context.theme.text : context.theme.text_dim;
  icon(draw, ImVec2(at.x + side / 2, at.y + side / 2), context.px(1), color);
  if (hovered) ImGui::SetTooltip("%s", words);
  return pressed;
}

void fit_icon(ImDrawList* draw, ImVec2 c, float u, ImU32 color) {
  const float r = 5.5F * u, l = 3.5F * u;
  for (const float x : {-1.0F, 1.0F}) {
    for (const float y : {-1.0F, 1.0F}) {
      const ImVec2 corner(c.x + x * r, c.y + y * r);
      draw->AddLine(corner, ImVec2(corner.x - x * l, corner.y), color, 1.5F * u);
      draw->AddLine(corner, ImVec2(corner.x, corner.y - y * l), color, 1.5F * u);
    }
  }
}

void kernels_icon(ImDrawList* draw, ImVec2 c, float u, ImU32 color) {
  draw->AddRect(ImVec2(c.x - 6.5F * u, c.y - 6.5F * u), ImVec2(c.x + 6.5F * u, c.y + 6.5F * u), color,
                2.5F * u, 1.3F * u);
  draw->AddRectFilled(ImVec2(c.x - 3.5F * u, c.y - 4 * u), ImVec2(c.x + 3.5F * u, c.y - 1 * u), color, 1 * u);
  draw->AddRectFilled(ImVec2(c.x - 3.5F * u, c.y + 1 * u), ImVec2(c.x + 3.5F * u, c.y + 4 * u), color, 1 * u);
}

void nested_icon(ImDrawList* draw, ImVec2 c, float u, ImU32 color, bool plus) {
  draw->AddRect(ImVec2(c.x - 6 * u, c.y - 6 * u), ImVec2(c.x + 6 * u, c.y + 6 * u), color, 2 * u, 1.3F * u);
  draw->AddLine(ImVec2(c.x - 3 * u, c.y), ImVec2(c.x + 3 * u, c.y), color, 1.5F * u);
  if (plus) draw->AddLine(ImVec2(c.x, c.y - 3 * u), ImVec2(c.x, c.y + 3 * u), color, 1.5F * u);
}

}  // namespace

void GraphPanel::search(Context& context) {
  const std::string wanted(text_.data());
  if (wanted != searched_) {
    searched_ = wanted;
    found_.clear();
    match_ = -1;
    matches_of_ = nullptr;
    const trace::Graph& graph = context.scene()->compilation->graph();
    const std::string needle = model::lower(wanted);
    for (std::size_t k = 0; !needle.empty() && k < graph.nodes.size(); ++k) {
      if (model::find_lower(graph.nodes[trace::NodeId(k)].name, needle) != std::string_view::npos)
        found_.push_back(trace::NodeId(k));
    }
  }
  if (!graph_ || matches_of_ == graph_) return;
  matches_of_ = graph_;
  matches_.clear();
  for (const trace::NodeId node : found_) {
    const int box = graph_->graph.box_of_node[node.index()];
    if (box >= 0 && (matches_.empty() || matches_.back() != static_cast<std::uint32_t>(box)))
      matches_.push_back(static_cast<std::uint32_t>(box));
  }
}

void GraphPanel::go_to_match(Context& context, int step) {
  const auto count = static_cast<int>(found_.size());
  if (count == 0) return;
  match_ = match_ < 0 ? (step > 0 ? 0 : count - 1) : (match_ + step + count) % count;
  context.select(found_[static_cast<std::size_t>(match_)]);
}

void GraphPanel::draw_toolbar(Context& context) {
  const float padding = context.px(6);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, height = ImGui::GetFrameHeight() + 2 * context.px(4);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), context.theme.panel);
  draw->AddLine(ImVec2(at.x, at.y + height - 1), ImVec2(at.x + width, at.y + height - 1),
                context.theme.border);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(context.px(2), 0));
  ImGui::SetCursorScreenPos(ImVec2(at.x + padding, at.y + context.px(4)));
  if (icon_button(context, "##fit", "Show everything (Space)", false, fit_icon)) fit(true);
  ImGui::SameLine();
  {
    // The zoom, a button that sets it to 100 %.
    const FontScope font(context.fonts.ui, context.fonts.small_size);
    const std::string percent = fmt::format("{:.0f} %", zoom() * 100);
    const ImVec2 size(context.px(46), ImGui::GetFrameHeight());
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    if (ImGui::InvisibleButton("##zoom", ImVec2(size.x, height - 2 * context.px(4))) && graph_)
      move_view(view_->centre, 1, true);
    const bool hovered = ImGui::IsItemHovered();
    const ImVec2 end = ImGui::GetItemRectMax();
    if (hovered) {
      draw->AddRectFilled(corner, end, context.theme.hover, context.px(4));
      ImGui::SetTooltip("Zoom to 100 %%\nThe wheel zooms at the pointer, dragging moves");
    }
    const ImVec2 text_size = ImGui::CalcTextSize(percent.c_str());
    draw->AddText(ImVec2((corner.x + end.x - text_size.x) / 2, (corner.y + end.y - text_size.y) / 2),
                  context.theme.text_dim, percent.c_str());
  }
  ImGui::SameLine(0, context.px(4));
  if (icon_button(context, "##kernels",
                  kernels_ ? "Kernels as frames: shown" : "Kernels as frames: not shown", kernels_,
                  kernels_icon))
    kernels_ = !kernels_;
  ImGui::SameLine(0, context.px(4));
  const auto plus = [](ImDrawList* d, ImVec2 c, float u, ImU32 color) { nested_icon(d, c, u, color, true); };
  const auto minus = [](ImDrawList* d, ImVec2 c, float u, ImU32 color) {
    nested_icon(d, c, u, color, false);
  };
  if (icon_button(context, "##open_all", "Open all modules", false, plus)) open_all(true);
  ImGui::SameLine();
  if (icon_button(context, "##close_all", "Close all modules", false, minus)) open_all(false);
  ImGui::SameLine(0, context.px(8));

  // Search: Enter goes to the next, with Shift to the one before.
  const FontScope font(context.fonts.ui, context.fonts.small_size);
  ImGui::PushStyleVarY(ImGuiStyleVar_FramePadding, (height - 2 * context.px(4) - ImGui::GetFontSize()) / 2);
  std::string count;
  if (text_[0] != 0) {
    count = found_.empty() ? "none"
            : match_ >= 0  ? fmt::format("{}/{}", match_ + 1, found_.size())
                           : fmt::format("{}", found_.size());
  }
  const float count_width = count.empty() ? 0 : ImGui::CalcTextSize(count.c_str()).x + context.px(8);
  const float left = at.x + width - padding - ImGui::GetCursorScreenPos().x - count_width;
  if (left > context.px(40)) {
    if (context.state.find && context.state.active == PanelId::graph) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(std::min(left, context.px(240)));
    const bool entered =
        ImGui::InputTextWithHint("##find", "Find a node", text_.data(), text_.size(),
                                 ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
    if (entered) {
      search(context);
      go_to_match(context, ImGui::GetIO().KeyShift ? -1 : 1);
      ImGui::SetKeyboardFocusHere(-1);
    }
    if (!count.empty()) {
      ImGui::SameLine(0, context.px(6));
      ImGui::AlignTextToFramePadding();
      text(found_.empty() ? context.theme.warning : context.theme.text_dim, count);
    }
  }
  ImGui::PopStyleVar(2);
  search(context);
  ImGui::SetCursorScreenPos(ImVec2(at.x, at.y + height));
}

void GraphPanel::draw_key(Context& context) {
  const Theme& t = context.theme;
  const FontScope font(context.fonts.ui, 11.5F);
  struct Entry {
    const char* words;
    ImU32 fill, border;
    enum Shape { box, dashed, band, corner, pill, frame, mark } shape;
  };
  const std::array<Entry, 7> entries{
      {{"computed in a kernel", t.box, t.box_border, Entry::box},
       {"view, no work", t.view_box, t.box_border, Entry::dashed},
       {"library call", t.library_box, mixed(t.library_box, t.access('P'), 0.6F), Entry::band},
       {"left to PyTorch", t.torch_box, mixed(t.torch_box, t.removed, 0.6F), Entry::corner},
       {"input, output", t.input_box, mixed(t.input_box, t.access('S'), 0.55F), Entry::pill},
       {"kernel", t.kernel, t.kernel_border, Entry::frame},
       {"changed by the last decision", 0, t.changed, Entry::mark}}};
  const float line = ImGui::GetTextLineHeight() + context.px(4), margin = context.px(8),
              swatch = context.px(20);
  const float title_width = ImGui::CalcTextSize("Key").x + context.px(28);
  float width = title_width, height = line + context.px(4);
  if (key_open_) {
    for (const Entry& entry : entries)
      width = std::max(width, ImGui::CalcTextSize(entry.words).x + swatch + context.px(26));
    height += static_cast<float>(entries.size()) * line + context.px(4);
  }
  if (size_.x < width + 2 * margin || size_.y < height + 2 * margin) return;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 low(at_.x + margin, at_.y + size_.y - margin - height), high(low.x + width, low.y + height);
  draw->AddRectFilled(low, high, t.panel, context.px(5));
  draw->AddRect(low, high, t.border, context.px(5));
  ImGui::SetCursorScreenPos(low);
  if (ImGui::InvisibleButton("##key", ImVec2(width, line + context.px(4)))) key_open_ = !key_open_;
  const bool hovered = ImGui::IsItemHovered();
  const ImU32 color = hovered ? t.text : t.text_dim;
  const float u = context.px(1);
  const ImVec2 c(low.x + 11 * u, low.y + (line + 4 * u) / 2);
  if (key_open_) {
    draw->AddTriangleFilled(ImVec2(c.x - 3.5F * u, c.y - 2 * u), ImVec2(c.x + 3.5F * u, c.y - 2 * u),
                            ImVec2(c.x, c.y + 3 * u), color);
  } else {
    draw->AddTriangleFilled(ImVec2(c.x - 2 * u, c.y - 3.5F * u), ImVec2(c.x + 3 * u, c.y),
                            ImVec2(c.x - 2 * u, c.y + 3.5F * u), color);
  }
  draw->AddText(ImVec2(low.x + 19 * u, low.y + 4 * u), color, "Key");
  if (!key_open_) return;
  float y = low.y + line + 4 * u;
  for (const Entry& entry : entries) {
    const ImVec2 a(low.x + 8 * u, y + 2 * u), b(a.x + swatch, y + line - 3 * u);
    const float rounding = entry.shape == Entry::pill ? (b.y - a.y) / 2 : 3 * u;
    if (entry.fill != 0) draw->AddRectFilled(a, b, entry.fill, rounding);
    if (entry.shape == Entry::dashed) {
      for (float x = a.x; x < b.x; x += 5 * u) {
        draw->AddLine(ImVec2(x, a.y), ImVec2(std::min(x + 3 * u, b.x), a.y), entry.border);
        draw->AddLine(ImVec2(x, b.y), ImVec2(std::min(x + 3 * u, b.x), b.y), entry.border);
      }
    } else {
      draw->AddRect(a, b, entry.border, rounding, (entry.shape == Entry::mark ? 1.5F : 1.0F) * u);
    }
    if (entry.shape == Entry::band || entry.shape == Entry::corner)
      draw->AddRectFilled(a, ImVec2(a.x + 3 * u, b.y), entry.border, rounding, ImDrawFlags_RoundCornersLeft);
    if (entry.shape == Entry::corner || entry.shape == Entry::mark)
      draw->AddTriangleFilled(ImVec2(b.x - 6 * u, a.y), ImVec2(b.x, a.y), ImVec2(b.x, a.y + 6 * u),
                              entry.shape == Entry::mark ? t.changed : t.removed);
    draw->AddText(ImVec2(b.x + 8 * u, y), t.text_dim, entry.words);
    y += line;
  }
}

void GraphPanel::draw_tooltip(Context& context, std::size_t k) {
  const Theme& t = context.theme;
  const model::Box& box = graph_->graph.boxes[k];
  const trace::Graph& graph = context.scene()->compilation->graph();
  const session::Snapshot& snapshot = *context.scene()->snapshot;
  if (!ImGui::BeginTooltip()) return;
  ImGui::PushFont(context.fonts.ui, context.fonts.small_size);
  const auto dim = [&](const std::string& words) {
    if (!words.empty()) text(t.text_dim, words);
  };
  {
    const FontScope font(context.fonts.bold, context.fonts.ui_size);
    text(t.text, box.name.empty() ? box.label : box.label + "  " + box.name);
  }
  if (box.kind == model::BoxKind::node && box.node.index() < graph.nodes.size()) {
    const trace::Node& node = graph.nodes[box.node];
    std::size_t reads = 0, feeds = 0;
    for (const model::Edge& edge : graph_->graph.edges) {
      reads += edge.to == static_cast<int>(k) ? 1 : 0;
      feeds += edge.from == static_cast<int>(k) ? 1 : 0;
    }
    dim(node.target);
    dim(report::outputs_text(graph, node));
    std::string place = box.outcome == "kernel"    ? "computed in a kernel"
                        : box.outcome == "view"    ? "a view: no work of its own"
                        : box.outcome == "library" ? "a library call"
                        : box.outcome == "torch"   ? "left to PyTorch"
                                                   : "";
    if (graph_->scene == context.scene()->number) {
      const auto kernels = report::kernels_of(snapshot, box.node);
      std::vector<std::string> names;
      for (const schedule::KernelId id : kernels) names.push_back(report::id_text(id));
      if (!names.empty()) place += " · " + report::join(names, ", ");
    }
    dim(place);
    const std::string line = report::place_text(node);
    dim(line.empty() ? node.module_path : node.module_path.empty() ? line : line + " · " + node.module_path);
    text(t.edge_strong, fmt::format("reads {}", reads));
    ImGui::SameLine();
    text(t.changed, fmt::format("read by {}", feeds));
  } else {
    if (box.kind != model::BoxKind::group) dim(box.sublabel);
    dim(box.detail);
    if (box.kind == model::BoxKind::group) dim(box.path);
    if (box.kind == model::BoxKind::group)
      text(t.text_faint, box.container ? "double click closes it" : "double click opens it");
  }
  if (box.changed) text(t.changed, "changed by the last decision");
  ImGui::PopFont();
  ImGui::EndTooltip();
}

}  // namespace pallascope::views
