#include "app/views/link_text.h"

#include <algorithm>

#include "app/views/bar_controls.h"

namespace pallascope::views {
std::size_t fitting(std::string_view value, float width) {
  if (width <= 0) return 0;
  const char* end = value.data() + value.size();
  const char* rest = value.data();
  ImGui::GetFont()->CalcTextSizeA(ImGui::GetFontSize(), width, 0.0F, value.data(), end, &rest);
  return static_cast<std::size_t>(rest - value.data());
}

bool link(Context& context, const char* id, std::string_view value, const model::Selection& selection,
          ImU32 color, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float shown = std::max(1.0F, std::min(width, text_width(value)));
  const float height = ImGui::GetTextLineHeight();
  const bool clicked = ImGui::InvisibleButton(id, ImVec2(shown, height));
  const bool target = !model::is_empty(selection);
  const bool over = ImGui::IsItemHovered();
  if (target && over) {
    context.hover(selection);
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    ImGui::GetWindowDrawList()->AddLine(ImVec2(at.x, at.y + height), ImVec2(at.x + shown, at.y + height),
                                        color);
  }
  const bool cut = draw_cut(*ImGui::GetWindowDrawList(), at, color, value, width + 0.5F);
  if (cut && over) ImGui::SetTooltip("%.*s", static_cast<int>(value.size()), value.data());
  if (clicked && target) context.select(selection);
  return clicked && target;
}

float chip_width(Context& context, std::string_view value) { return text_width(value) + context.px(14); }

bool chip(Context& context, const char* id, std::string_view value, const model::Selection& selection,
          ImU32 color, ImU32 fill, ImU32 outline, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float shown = std::min(width, chip_width(context, value));
  const float height = ImGui::GetTextLineHeight() + context.px(4);
  const bool clicked = ImGui::InvisibleButton(id, ImVec2(std::max(1.0F, shown), height));
  const bool target = !model::is_empty(selection);
  const bool over = ImGui::IsItemHovered();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 end(at.x + shown, at.y + height);
  draw->AddRectFilled(at, end, fill, context.px(4));
  if (target && over) {
    context.hover(selection);
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    draw->AddRectFilled(at, end, context.theme.hover, context.px(4));
  }
  if ((outline & IM_COL32_A_MASK) != 0) draw->AddRect(at, end, outline, context.px(4));
  const bool cut =
      draw_cut(*ImGui::GetWindowDrawList(), ImVec2(at.x + context.px(7), at.y + context.px(2)), color, value,
               shown - context.px(14) + 0.5F);
  if (cut && over) ImGui::SetTooltip("%.*s", static_cast<int>(value.size()), value.data());
  if (clicked && target) context.select(selection);
  return clicked && target;
}

void go_on_at(ImVec2 at) {
  ImGui::SetCursorScreenPos(ImVec2(at.x, at.y - ImGui::GetStyle().ItemSpacing.y));
  ImGui::Dummy(ImVec2(0, 0));
}

Flow::Flow(float width, float gap, float line_gap)
    : start_(ImGui::GetCursorScreenPos()), width_(width), gap_(gap), line_gap_(line_gap) {}

bool Flow::next(float width) {
  if (!first_) height_ = std::max(height_, ImGui::GetItemRectSize().y);
  const float from = first_ ? 0 : x_ + gap_;
  const bool fits = first_ || from + width <= width_ + 0.5F;
  if (fits) {
    x_ = from;
  } else {
    x_ = 0;
    y_ += height_ + line_gap_;
  }
  ImGui::SetCursorScreenPos(ImVec2(start_.x + x_, start_.y + y_));
  x_ += width;
  first_ = false;
  return fits;
}

float Flow::room() const { return width_ - (first_ ? 0 : x_ + gap_); }

}  // namespace pallascope::views
