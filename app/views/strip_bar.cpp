#include "app/views/strip_bar.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/views/bar_controls.h"
#include "core/report/format.h"

namespace pallascope::views {
namespace {

using model::Notability;

std::string number(std::size_t value) { return report::count_text(static_cast<std::int64_t>(value)); }

}  // namespace

void StripBar::draw(Context& context) {
  const workspace::Scene* scene = context.scene();
  if (scene == nullptr || !scene->decisions) return;
  const Theme& theme = context.theme;
  const FontScope font(context.fonts.ui, context.fonts.small_size);
  const std::size_t position = context.workspace.wanted_position(), total = scene->total();

  // Right: where the program stands, one back, one on.
  const std::string place = position == 0 ? "start" : report::id_text(schedule::DecisionId(position - 1));
  const std::string of = fmt::format("decision {} of {}", number(position), number(total));
  // As wide as the widest that can come, so that the strip does not breathe while one scrubs.
  float place_width = 0;
  {
    const FontScope bold(context.fonts.bold, context.fonts.small_size);
    place_width =
        std::max(text_width("start"), text_width("d" + std::string(std::to_string(total).size(), '0')));
  }
  std::string widest = number(total);
  std::replace_if(widest.begin(), widest.end(), [](char c) { return c >= '0' && c <= '9'; }, '0');
  const float of_width = text_width(fmt::format("decision {} of {}", widest, number(total))) + 1;
  const float button = chip_height(context), gap = context.px(8);
  const float right = place_width + gap + of_width + gap + 2 * button + context.px(3);
  const float width =
      std::floor(std::max(context.px(60), ImGui::GetContentRegionAvail().x - right - context.px(14)));
  const float height = ImGui::GetContentRegionAvail().y;
  const ImVec2 at = ImGui::GetCursorScreenPos();

  if (index_ != scene->decisions || std::abs(strip_.width() - width) > 0.5F) {
    index_ = scene->decisions;
    strip_ = model::Strip::of(*index_, width);
  }
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled(ImVec2(at.x - context.px(3), at.y),
                     ImVec2(at.x + strip_.width() + context.px(3), at.y + height), theme.panel,
                     context.px(4));
  ImGui::InvisibleButton("##strip", ImVec2(strip_.width(), height));
  draw_ticks(context, draw, at, height);
  act(context, ImGui::GetIO().MousePos.x - at.x);
  draw_marks(context, draw, at, height);

  ImGui::SameLine(0, context.px(14));
  float x = ImGui::GetCursorScreenPos().x;
  const float y = at.y + std::floor((height - ImGui::GetFontSize()) / 2);
  {
    const FontScope bold(context.fonts.bold, context.fonts.small_size);
    draw_right(draw, x + place_width, y, theme.text, place);
  }
  x += place_width + gap;
  draw_cut(draw, ImVec2(x, y), theme.text_dim, of, of_width + 1);
  ImGui::SetCursorScreenPos(ImVec2(x - place_width - gap, at.y));
  ImGui::Dummy(ImVec2(place_width + gap + of_width, height));
  tip(context,
      fmt::format("{} of {} decisions hold; the last one is {}", number(position), number(total), place));
  x += of_width + gap;
  const float top = at.y + std::floor((height - button) / 2);
  ChipLook look;
  look.enabled = position > 0;
  ImGui::SetCursorScreenPos(ImVec2(x, top));
  if (chip(context, "back", "◀", look, button)) step(context, false);
  tip(context, "Previous decision (←)");
  ImGui::SetCursorScreenPos(ImVec2(x + button + context.px(3), top));
  look.enabled = position < total;
  if (chip(context, "forward", "▶", look, button)) step(context, true);
  tip(context, "Next decision (→)");
}

void StripBar::draw_ticks(const Context& context, ImDrawList& draw, ImVec2 at, float height) const {
  const Theme& theme = context.theme;
  const float base = at.y + height - context.px(3), most = height - context.px(13);
  const std::size_t position = context.workspace.wanted_position();
  const bool room = !strip_.ticks().empty() && strip_.ticks().front().width > context.px(4);
  const float between = room ? context.px(1) : 0;
  // Passes: a thin line where one ends, its name in the corner, above the ticks that are small.
  const FontScope font(context.fonts.ui, 10.5F);
  for (const model::PassRows& pass : index_->passes()) {
    const float from = strip_.x_of_position(pass.first), to = strip_.x_of_position(pass.last + 1);
    if (pass.first > 0)
      draw.AddLine(ImVec2(at.x + from, at.y + context.px(2)), ImVec2(at.x + from, base), theme.border_strong);
    const std::string_view name = schedule::kind_name(pass.kind);
    if (to - from > text_width(name) + context.px(8))
      draw.AddText(ImVec2(at.x + from + context.px(4), at.y + context.px(1)), theme.text_faint, name.data(),
                   name.data() + name.size());
  }
  for (const model::Tick& tick : strip_.ticks()) {
    const std::size_t count = tick.last - tick.first + 1;
    float share = 0.26F;
    ImU32 color = theme.small;
    if (tick.notability == Notability::accepted) {
      share = 0.55F, color = theme.accepted;
    } else if (tick.notability == Notability::refused) {
      // Where many share a pixel the height says how many of them were refused.
      share =
          count == 1 ? 1.0F : 0.65F + 0.35F * static_cast<float>(tick.refused) / static_cast<float>(count);
      color = theme.refused;
      const model::DecisionRow& row = index_->rows()[tick.notable];
      if (count == 1 && row.boundary) share = 0.78F, color = mixed(theme.refused, theme.panel, 0.35F);
    }
    if (tick.first >= position) color = faded(color, 0.32F);
    const float left = at.x + tick.x + between,
                end = std::max(left + 1, at.x + tick.x + tick.width - between);
    draw.AddRectFilled(ImVec2(left, base - most * share), ImVec2(end, base), color,
                       room ? context.px(1.5F) : 0);
    if (tick.notability == Notability::refused && tick.accepted > 0) {
      // Below the refused ones, the part that was accepted: a column of thousands is no single colour.
      const float part =
          most * share * static_cast<float>(tick.accepted) / static_cast<float>(tick.accepted + tick.refused);
      draw.AddRectFilled(ImVec2(left, base - part), ImVec2(end, base),
                         faded(theme.accepted, tick.first >= position ? 0.32F : 1.0F));
    }
  }
}

void StripBar::draw_marks(const Context& context, ImDrawList& draw, ImVec2 at, float height) const {
  const Theme& theme = context.theme;
  const auto outline = [&](std::size_t decision, ImU32 color) {
    if (strip_.ticks().empty() || decision >= strip_.decisions()) return;
    const model::Tick* tick = strip_.tick_at(strip_.x_of_decision(decision));
    if (tick == nullptr) return;
    const float grow = std::max(0.0F, (context.px(5) - tick->width) / 2);
    draw.AddRect(ImVec2(at.x + tick->x - grow, at.y + context.px(1)),
                 ImVec2(at.x + tick->x + tick->width + grow, at.y + height - context.px(1)), color,
                 context.px(2), 0, context.px(1.5F));
  };
  if (const auto* selected = std::get_if<schedule::DecisionId>(&context.state.selection))
    outline(selected->index(), theme.text);
  const float x = std::round(at.x + strip_.x_of_position(context.workspace.wanted_position()));
  const float half = context.px(5), thick = context.px(1);
  draw.AddRectFilled(ImVec2(x - thick, at.y), ImVec2(x + thick, at.y + height), theme.accent);
  draw.AddTriangleFilled(ImVec2(x - half, at.y), ImVec2(x + half, at.y), ImVec2(x, at.y + half * 1.3F),
                         theme.accent);
}

void StripBar::act(Context& context, float x) {
  const bool hovered = ImGui::IsItemHovered(), active = ImGui::IsItemActive();
  if (ImGui::IsItemActivated()) dragging_ = false;
  if (active) {
    if (!dragging_ && ImGui::IsMouseDragging(ImGuiMouseButton_Left, context.px(4))) {
      dragging_ = true;
      // One step back returns to where the drag began.
      context.state.back.push_back({context.state.selection, context.workspace.wanted_position()});
      context.state.forward.clear();
    }
    const std::size_t to = strip_.position_at(x);
    if (dragging_ && to != context.workspace.wanted_position()) {
      context.workspace.move_to(to);
      context.select_silently(to == 0 ? model::Selection{} : model::Selection(schedule::DecisionId(to - 1)));
    }
  } else if (ImGui::IsItemDeactivated() && !dragging_ && hovered) {
    if (const auto decision = strip_.decision_at(x)) context.go_to_decision(schedule::DecisionId(*decision));
  }
  if (!active) dragging_ = false;
  if (dragging_) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
    return;
  }
  const model::Tick* tick = hovered ? strip_.tick_at(x) : nullptr;
  if (tick == nullptr) return;
  const ImVec2 from = ImGui::GetItemRectMin(), to = ImGui::GetItemRectMax();
  ImGui::GetWindowDrawList()->AddRectFilled(
      ImVec2(from.x + tick->x, from.y), ImVec2(from.x + tick->x + tick->width, to.y), context.theme.hover);
  context.hover(schedule::DecisionId(tick->notable));
  show_tip(context, *tick);
}

void StripBar::show_tip(const Context& context, const model::Tick& tick) const {
  const Theme& theme = context.theme;
  const model::DecisionRow& row = index_->rows()[tick.notable];
  begin_tip(context);
  decision_line(context, row.id, row.accepted,
                row.notability == Notability::small ? theme.text_dim
                : row.accepted                      ? theme.accepted
                                                    : theme.refused,
                row.subject());
  ImGui::SameLine(0, context.px(5));
  text(theme.text_dim, fmt::format("· {}{}{}", row.reason_text(), row.bytes_saved > 0 ? " · " : "",
                                   row.bytes_saved > 0 ? report::bytes_text(row.bytes_saved) : ""));
  if (tick.last > tick.first)
    text(theme.text_dim, fmt::format("the most notable of d{} … d{}, of which {} refused", tick.first,
                                     tick.last, number(tick.refused)));
  ImGui::EndTooltip();
}

void StripBar::step(Context& context, bool forward) {
  const std::size_t position = context.workspace.wanted_position(), total = context.scene()->total();
  if (forward && position < total) context.go_to_decision(schedule::DecisionId(position));
  if (forward || position == 0) return;
  if (position > 1) {
    context.go_to_decision(schedule::DecisionId(position - 2));
  } else {
    context.workspace.move_to(0);
    context.select_silently({});
  }
}

}  // namespace pallascope::views
