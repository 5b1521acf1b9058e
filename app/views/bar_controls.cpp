#include "app/views/bar_controls.h"

#include <algorithm>
#include <cmath>

#include "core/report/format.h"

namespace pallascope::views {
namespace {

constexpr float chip_padding = 8, tight_padding = 6, arrow_room = 13;

void draw_arrow(const Context& context, ImDrawList& draw, ImVec2 centre, ImU32 color) {
  const float half = context.px(3.5F);
  draw.AddTriangleFilled(ImVec2(centre.x - half, centre.y - half * 0.5F),
                         ImVec2(centre.x + half, centre.y - half * 0.5F),
                         ImVec2(centre.x, centre.y + half * 0.7F), color);
}

}  // namespace

float chip_height(const Context& context) { return ImGui::GetFontSize() + context.px(9); }

float chip_width(const Context& context, std::string_view label, const ChipLook& look) {
  return std::max(look.tight ? 0 : chip_height(context),
                  text_width(label) + context.px(2 * (look.tight ? tight_padding : chip_padding)) +
                      (look.menu ? context.px(arrow_room - 2) : 0));
}

bool chip(const Context& context, const char* id, std::string_view label, const ChipLook& look, float width) {
  const Theme& theme = context.theme;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size(width > 0 ? width : chip_width(context, label, look), chip_height(context));
  ImGui::BeginDisabled(!look.enabled);
  const bool clicked = ImGui::InvisibleButton(id, size);
  const bool hovered = ImGui::IsItemHovered(), held = ImGui::IsItemActive();
  ImGui::EndDisabled();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 end(at.x + size.x, at.y + size.y);
  const float rounding = context.px(4);
  ImU32 back = look.plain ? 0 : theme.raised, border = look.plain ? 0 : theme.border, ink = look.ink;
  if (look.primary) {
    back = border = theme.accent;
    if (hovered) back = border = mixed(theme.accent, theme.text, 0.15F);
    if (ink == 0) ink = theme.text_on_accent;
  } else {
    if (look.on) {
      back = theme.accent_soft, border = theme.accent;
    }
    if (hovered)
      back = mixed(look.on ? mixed(theme.panel, theme.accent, 0.28F) : theme.raised, theme.accent,
                   held ? 0.3F : 0.16F);
    if (ink == 0) ink = look.on || hovered ? theme.text : theme.text_dim;
  }
  if (!look.enabled) {
    back = look.primary ? theme.raised : back, border = theme.border, ink = theme.text_faint;
  }
  if (back != 0) draw.AddRectFilled(at, end, back, rounding);
  if (border != 0) draw.AddRect(at, end, border, rounding);
  const float arrow = look.menu ? context.px(arrow_room - 2) : 0;
  const float room = size.x - arrow - context.px(6);
  const float text = std::min(text_width(label), room);
  draw_cut(draw,
           ImVec2(std::floor(at.x + (size.x - arrow - text) / 2),
                  std::floor(at.y + (size.y - ImGui::GetFontSize()) / 2)),
           ink, label, room + 1);
  if (look.menu)
    draw_arrow(context, draw, ImVec2(end.x - context.px(arrow_room - 2), at.y + size.y / 2 + 0.5F),
               faded(ink, 0.8F));
  return clicked;
}

bool row_button(const Context& context, const char* id, float height, bool selected) {
  const float width = std::max(1.0F, ImGui::GetContentRegionAvail().x);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool clicked = ImGui::InvisibleButton(id, ImVec2(width, height));
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float reach = context.px(4);
  const ImVec2 from(at.x - reach, at.y), to(at.x + width + reach, at.y + height);
  if (selected) draw.AddRectFilled(from, to, context.theme.accent_soft, context.px(3));
  if (ImGui::IsItemHovered()) {
    draw.AddRectFilled(from, to, context.theme.hover, context.px(3));
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  }
  return clicked;
}

bool begin_menu(const Context& context, const char* id, ImVec2 chip, float width) {
  if (!ImGui::IsPopupOpen(id)) return false;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const bool right = chip.x > viewport->WorkPos.x + viewport->WorkSize.x / 2;
  ImGui::SetNextWindowPos(
      ImVec2(right ? chip.x + width : chip.x, chip.y + chip_height(context) + context.px(3)),
      ImGuiCond_Always, ImVec2(right ? 1.0F : 0.0F, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(context.px(10), context.px(8)));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(context.px(8), context.px(5)));
  const bool shown = ImGui::BeginPopup(id);
  ImGui::PopStyleVar(2);
  return shown;
}

bool draw_cut(ImDrawList& draw, ImVec2 at, ImU32 color, std::string_view value, float width) {
  const char* begin = value.data();
  const char* end = begin + value.size();
  if (width <= 0 || value.empty()) return !value.empty();
  ImFont* font = ImGui::GetFont();
  const float size = ImGui::GetFontSize();
  if (text_width(value) <= width) {
    draw.AddText(font, size, at, color, begin, end);
    return false;
  }
  constexpr std::string_view dots = "…";
  const float room = width - text_width(dots);
  const char* rest = begin;
  float used = 0;
  if (room > 0) used = font->CalcTextSizeA(size, room, 0, begin, end, &rest).x;
  // A blank before the dots would look like a gap.
  while (rest > begin && rest[-1] == ' ') --rest;
  if (rest > begin) {
    used = font->CalcTextSizeA(size, width, 0, begin, rest).x;
    draw.AddText(font, size, at, color, begin, rest);
  }
  draw.AddText(font, size, ImVec2(at.x + used, at.y), color, dots.data(), dots.data() + dots.size());
  return true;
}

void draw_right(ImDrawList& draw, float right, float y, ImU32 color, std::string_view value) {
  draw.AddText(ImVec2(right - text_width(value), y), color, value.data(), value.data() + value.size());
}

void draw_verdict(const Context& context, ImDrawList& draw, ImVec2 centre, ImU32 color, bool accepted) {
  const float r = context.px(3.5F), thick = context.px(1.6F);
  const auto at = [&](float x, float y) { return ImVec2(centre.x + r * x, centre.y + r * y); };
  if (accepted) {
    const ImVec2 points[] = {at(-1.15F, 0.1F), at(-0.35F, 0.9F), at(1.2F, -0.95F)};
    draw.AddPolyline(points, 3, color, 0, thick);
  } else {
    draw.AddLine(at(-0.9F, -0.9F), at(0.9F, 0.9F), color, thick);
    draw.AddLine(at(-0.9F, 0.9F), at(0.9F, -0.9F), color, thick);
  }
}

void decision_line(const Context& context, schedule::DecisionId id, bool accepted, ImU32 color,
                   std::string_view subject) {
  text(context.theme.text, report::id_text(id));
  ImGui::SameLine(0, context.px(6));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = ImGui::GetTextLineHeight();
  ImGui::Dummy(ImVec2(context.px(10), height));
  draw_verdict(context, *ImGui::GetWindowDrawList(), ImVec2(at.x + context.px(5), at.y + height / 2), color,
               accepted);
  ImGui::SameLine(0, context.px(6));
  text(context.theme.text, subject);
}

bool wants_tip() {
  return ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip | ImGuiHoveredFlags_AllowWhenDisabled);
}

void begin_tip(const Context& context) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(context.px(10), context.px(7)));
  ImGui::BeginTooltip();
  ImGui::PopStyleVar();
}

void tip(const Context& context, std::string_view value) {
  if (value.empty() || !wants_tip()) return;
  begin_tip(context);
  ImGui::PushTextWrapPos(context.px(420));
  text(context.theme.text, value);
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

void heading(const Context& context, std::string_view title, std::string_view value) {
  const FontScope font(context.fonts.bold, context.fonts.small_size - 0.5F);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, height = ImGui::GetFontSize();
  const float value_width = value.empty() ? 0 : text_width(value) + context.px(8);
  draw_cut(draw, at, context.theme.text_dim, title, width - value_width);
  if (!value.empty()) draw_right(draw, at.x + width, at.y, context.theme.text_dim, value);
  draw.AddLine(ImVec2(at.x, at.y + height + context.px(2.5F)),
               ImVec2(at.x + width, at.y + height + context.px(2.5F)), context.theme.border);
  ImGui::Dummy(ImVec2(width, height + context.px(3)));
}

void flow(float width, float gap) {
  ImGui::SameLine(0, gap);
  if (ImGui::GetContentRegionAvail().x < width) ImGui::NewLine();
}

std::string place_text(std::size_t position) {
  return position == 0 ? "the start" : report::id_text(schedule::DecisionId(position - 1));
}

}  // namespace pallascope::views
