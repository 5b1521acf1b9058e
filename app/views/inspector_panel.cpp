#include "app/views/inspector_panel.h"

#include <algorithm>
#include <cstdio>

#include <imgui_internal.h>

#include "app/views/bar_controls.h"
#include "app/views/link_text.h"

namespace pallascope::views {
namespace {

using Tone = model::InspectorPiece::Tone;

ImU32 color_of(const Theme& theme, Tone tone) {
  switch (tone) {
    case Tone::normal:
    case Tone::code:
      return theme.text;
    case Tone::dim:
      return theme.text_dim;
    case Tone::good:
      return theme.accepted;
    case Tone::bad:
      return theme.refused;
  }
  return theme.text;
}

/// `##row:<label>`; cut where a label is absurdly long.
struct RowId {
  char text[160];
  explicit RowId(std::string_view label) {
    std::snprintf(text, sizeof text, "##row:%.*s", static_cast<int>(std::min<std::size_t>(label.size(), 140)),
                  label.data());
  }
};

/// For the last item, also where a link lies on it.
void copy_menu(const model::InspectorRow& row) {
  const ImGuiID id = ImGui::GetItemID();
  if (ImGui::IsMouseReleased(ImGuiMouseButton_Right) && ImGui::IsWindowHovered() &&
      ImGui::IsMouseHoveringRect(ImGui::GetItemRectMin(), ImGui::GetItemRectMax()))
    ImGui::OpenPopup(id);
  if (!ImGui::BeginPopupEx(id, ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoTitleBar |
                                   ImGuiWindowFlags_NoSavedSettings))
    return;
  const std::string value = row.text();
  if (ImGui::MenuItem("Copy value")) ImGui::SetClipboardText(value.c_str());
  if (ImGui::MenuItem("Copy label and value")) ImGui::SetClipboardText((row.label + ": " + value).c_str());
  ImGui::EndPopup();
}

/// Two sheets, one over the other.
void draw_copy_sign(const Context& context, ImVec2 centre, ImU32 color) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float s = context.px(4);
  draw->AddRect(ImVec2(centre.x - s - 1, centre.y - s - 1), ImVec2(centre.x + s - 3, centre.y + s - 1),
                faded(color, 0.6F), 1.5F);
  draw->AddRectFilled(ImVec2(centre.x - s + 2, centre.y - s + 2), ImVec2(centre.x + s, centre.y + s + 2),
                      context.theme.panel, 1.5F);
  draw->AddRect(ImVec2(centre.x - s + 2, centre.y - s + 2), ImVec2(centre.x + s, centre.y + s + 2), color,
                1.5F);
}

}  // namespace

void InspectorPanel::draw(Context& context) {
  const workspace::Detail* detail = context.stale_detail();
  if (detail == nullptr || context.scene() == nullptr) {
    text(context.theme.text_faint, "…");
    return;
  }
  const model::Inspector& inspector = detail->inspector;
  const FontScope base(context.fonts.ui, context.fonts.ui_size);
  draw_head(context, inspector);
  if (!ImGui::BeginChild("##rows", ImVec2(0, 0), ImGuiChildFlags_None, ImGuiWindowFlags_None)) {
    ImGui::EndChild();
    return;
  }
  if (shown_ != detail->selection) {
    shown_ = detail->selection;
    ImGui::SetScrollY(0);
  }
  // One edge for the values of all sections.
  float label_width = context.px(58);
  for (const model::InspectorSection& section : inspector.sections) {
    if (section.list) continue;
    const FontScope font(context.fonts.ui, context.fonts.small_size);
    for (const model::InspectorRow& row : section.rows)
      label_width = std::max(label_width, text_width(row.label) + context.px(10));
  }
  label_width = std::min(label_width, ImGui::GetContentRegionAvail().x * 0.4F);
  for (const model::InspectorSection& section : inspector.sections) {
    ImGui::PushID(section.title.c_str());
    if (draw_section_title(context, section)) {
      const FontScope font(context.fonts.ui, context.fonts.small_size);
      if (section.list) {
        draw_list(context, section);
      } else {
        for (const model::InspectorRow& row : section.rows) draw_row(context, row, label_width);
      }
      ImGui::Dummy(ImVec2(1, context.px(4)));
    }
    ImGui::PopID();
  }
  if (!inspector.hints.empty()) {
    const FontScope font(context.fonts.ui, context.fonts.small_size);
    ImGui::Dummy(ImVec2(1, context.px(2)));
    ImGui::PushTextWrapPos(0);
    for (const std::string& hint : inspector.hints) text(context.theme.text_dim, hint);
    ImGui::PopTextWrapPos();
  }
  ImGui::EndChild();
}

void InspectorPanel::draw_head(Context& context, const model::Inspector& inspector) {
  const Theme& theme = context.theme;
  const float width = ImGui::GetContentRegionAvail().x, button = context.px(22);
  {
    const FontScope font(context.fonts.ui, context.fonts.small_size);
    text(theme.text_faint, inspector.kind);
    if (!inspector.id.empty()) {
      ImGui::SameLine(0, context.px(6));
      const FontScope mono(context.fonts.mono_bold, context.fonts.small_size);
      text(theme.accent, inspector.id);
    }
  }
  const ImVec2 at = ImGui::GetCursorScreenPos();
  {
    const FontScope font(context.fonts.bold, context.fonts.title_size);
    link(context, "##title", inspector.title, {}, theme.text, width - button - context.px(6));
  }
  const float line = ImGui::GetItemRectSize().y;
  ImGui::SetCursorScreenPos(ImVec2(at.x + width - button, at.y + (line - button) / 2));
  if (ImGui::InvisibleButton("##copy", ImVec2(button, button)))
    ImGui::SetClipboardText(inspector.title.c_str());
  const bool over = ImGui::IsItemHovered();
  if (over) {
    ImGui::GetWindowDrawList()->AddRectFilled(ImGui::GetItemRectMin(), ImGui::GetItemRectMax(), theme.hover,
                                              context.px(4));
    ImGui::SetTooltip("Copy the name");
  }
  draw_copy_sign(context, ImVec2(at.x + width - button / 2, at.y + line / 2),
                 over ? theme.text : theme.text_faint);
  go_on_at(ImVec2(at.x, at.y + line + context.px(2)));
  if (!inspector.subtitle.empty()) {
    const FontScope font(context.fonts.mono, context.fonts.small_size);
    link(context, "##subtitle", inspector.subtitle, {}, theme.text_dim, width);
  }
  ImGui::Dummy(ImVec2(1, context.px(1)));
}

bool InspectorPanel::draw_section_title(Context& context, const model::InspectorSection& section) {
  const Theme& theme = context.theme;
  const auto known = folded_.find(section.title);
  const bool folded = known == folded_.end() ? section.folded : known->second;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, height = context.px(21);
  if (ImGui::InvisibleButton("##section", ImVec2(width, height))) folded_[section.title] = !folded;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), theme.raised, context.px(3));
  if (ImGui::IsItemHovered())
    draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), theme.hover, context.px(3));
  const ImVec2 c(at.x + context.px(10), at.y + height / 2);
  const float s = context.px(3.2F);
  if (folded) {
    draw->AddTriangleFilled(ImVec2(c.x - s * 0.7F, c.y - s), ImVec2(c.x + s, c.y),
                            ImVec2(c.x - s * 0.7F, c.y + s), theme.text_faint);
  } else {
    draw->AddTriangleFilled(ImVec2(c.x - s, c.y - s * 0.7F), ImVec2(c.x + s, c.y - s * 0.7F),
                            ImVec2(c.x, c.y + s), theme.text_faint);
  }
  const FontScope font(context.fonts.bold, context.fonts.small_size);
  const float y = at.y + (height - ImGui::GetTextLineHeight()) / 2;
  draw->AddText(ImVec2(at.x + context.px(20), y), theme.text_dim, section.title.c_str());
  if (section.list || folded) {
    char count[24];
    std::snprintf(count, sizeof count, "%zu", section.rows.size());
    draw->AddText(ImVec2(at.x + width - text_width(count) - context.px(8), y), theme.text_faint, count);
  }
  return !folded;
}

void InspectorPanel::draw_row(Context& context, const model::InspectorRow& row, float label_width) {
  const Theme& theme = context.theme;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, indent = context.px(8);
  const float value_width = width - label_width - indent;
  ImGui::PushID(row.label.c_str());
  ImGui::BeginGroup();
  ImGui::SetCursorScreenPos(ImVec2(at.x + indent, at.y));
  link(context, "##label", row.label, {}, theme.text_faint, label_width - context.px(6));
  ImGui::SetCursorScreenPos(ImVec2(at.x + indent + label_width, at.y));
  bool linked = false;
  for (const model::InspectorPiece& piece : row.pieces) linked = linked || !model::is_empty(piece.selection);
  if (row.pieces.size() == 1 && !linked && row.letter == ' ') {
    // Plain text is wrapped; code too, since its end matters as much as its beginning.
    const model::InspectorPiece& piece = row.pieces[0];
    const FontScope font(piece.tone == Tone::code ? context.fonts.mono : context.fonts.ui,
                         context.fonts.small_size);
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + value_width);
    text(color_of(theme, piece.tone), piece.text);
    ImGui::PopTextWrapPos();
  } else {
    Flow flow(value_width);
    if (row.letter != ' ') {
      flow.next(ImGui::GetTextLineHeight() * 0.95F + context.px(6));
      access_badge(context, row.letter);
    }
    for (std::size_t k = 0; k < row.pieces.size(); ++k) {
      const model::InspectorPiece& piece = row.pieces[k];
      const FontScope font(piece.tone == Tone::code ? context.fonts.mono : context.fonts.ui,
                           context.fonts.small_size);
      const bool target = !model::is_empty(piece.selection);
      std::string_view shown = piece.text;
      // Blanks that part two pieces are nothing at the start of a line.
      if (!flow.next(std::min(text_width(shown), value_width)))
        shown.remove_prefix(std::min(shown.find_first_not_of(' '), shown.size()));
      ImGui::PushID(static_cast<int>(k));
      link(context, "##piece", shown, piece.selection, target ? theme.accent : color_of(theme, piece.tone),
           value_width);
      ImGui::PopID();
    }
  }
  ImGui::EndGroup();
  ImGui::PopID();
  const float height = std::max(ImGui::GetItemRectMax().y - at.y, ImGui::GetTextLineHeight());
  const float next = at.y + height + context.px(3);
  ImGui::SetCursorScreenPos(at);
  ImGui::InvisibleButton(RowId(row.label).text, ImVec2(width, height));
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayNormal) && !row.hint.empty())
    ImGui::SetTooltip("%s", row.hint.c_str());
  copy_menu(row);
  go_on_at(ImVec2(at.x, next));
}

void InspectorPanel::draw_list(Context& context, const model::InspectorSection& section) {
  const float width = ImGui::GetContentRegionAvail().x;
  // As wide as the widest label of the first screenfuls: ids of one kind, which differ by a digit at most.
  float label_width = context.px(34);
  {
    const FontScope mono(context.fonts.mono, context.fonts.small_size);
    const std::size_t looked = std::min<std::size_t>(section.rows.size(), 60);
    for (std::size_t k = 0; k < looked; ++k)
      label_width = std::max(label_width, text_width(section.rows[k].label) + context.px(8));
    if (!section.rows.empty())
      label_width = std::max(label_width, text_width(section.rows.back().label) + context.px(8));
  }
  label_width = std::min(label_width, width * 0.45F);
  ImGuiListClipper clipper;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, 0));
  clipper.Begin(static_cast<int>(section.rows.size()), ImGui::GetTextLineHeight() + context.px(5));
  while (clipper.Step()) {
    for (int k = clipper.DisplayStart; k < clipper.DisplayEnd; ++k)
      draw_list_row(context, section.rows[static_cast<std::size_t>(k)], label_width, width);
  }
  ImGui::PopStyleVar();
}

void InspectorPanel::draw_list_row(Context& context, const model::InspectorRow& row, float label_width,
                                   float width) {
  const Theme& theme = context.theme;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = ImGui::GetTextLineHeight() + context.px(5), indent = context.px(8);
  const bool target = !model::is_empty(row.selection);
  const bool clicked = ImGui::InvisibleButton(RowId(row.label).text, ImVec2(width, height));
  const bool over = ImGui::IsItemHovered(), over_long = ImGui::IsItemHovered(ImGuiHoveredFlags_DelayNormal);
  copy_menu(row);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 end(at.x + width, at.y + height);
  if (target && row.selection == context.state.selection) {
    draw->AddRectFilled(at, end, theme.accent_soft, context.px(3));
  } else if (target && row.selection == context.state.hovered) {
    draw->AddRectFilled(at, end, theme.linked, context.px(3));
  }
  if (target && over) {
    draw->AddRectFilled(at, end, theme.hover, context.px(3));
    context.hover(row.selection);
  }
  const ImVec2 next = ImGui::GetCursorScreenPos();
  const float y = at.y + context.px(2.5F);
  float x = at.x + indent;
  const auto put = [&](std::string_view value, ImU32 color, float room) {
    if (room <= 0) return;
    draw_cut(*draw, ImVec2(x, y), color, value, room + 0.5F);
  };
  {
    const FontScope mono(context.fonts.mono, context.fonts.small_size);
    put(row.label, target ? theme.accent : theme.text_faint, label_width - context.px(4));
  }
  x += label_width;
  if (row.letter != ' ') {
    ImGui::SetCursorScreenPos(ImVec2(x, y));
    access_badge(context, row.letter);
    x += ImGui::GetTextLineHeight() * 0.95F + context.px(6);
  }
  // The value has the first claim on the room; what stands aside is left out where little would be seen of it.
  float value = 0;
  for (const model::InspectorPiece& piece : row.pieces) value += text_width(piece.text);
  const float right = end.x - context.px(6),
              aside = row.aside.empty() ? 0 : text_width(row.aside) + context.px(10);
  const bool both = aside > 0 && x + value + aside <= right;
  const bool cut_value = x + value > right;
  for (const model::InspectorPiece& piece : row.pieces) {
    const FontScope font(piece.tone == Tone::code ? context.fonts.mono : context.fonts.ui,
                         context.fonts.small_size);
    put(piece.text, color_of(theme, piece.tone), right - x);
    x += std::min(text_width(piece.text), std::max(0.0F, right - x));
  }
  if (both) {
    x = right - text_width(row.aside);
    put(row.aside, theme.text_faint, right - x + 1);
  }
  if (over_long && (cut_value || (!both && aside > 0) || !row.hint.empty())) {
    const std::string whole = row.text();
    ImGui::SetTooltip("%s%s%s%s%s", whole.c_str(), row.aside.empty() ? "" : "\n", row.aside.c_str(),
                      row.hint.empty() ? "" : "\n", row.hint.c_str());
  }
  ImGui::SetCursorScreenPos(next);
  if (clicked && target) context.select(row.selection);
}

}  // namespace pallascope::views
