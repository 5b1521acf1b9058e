#include <algorithm>
#include <cstdio>
#include <vector>

#include "app/views/link_text.h"
#include "app/views/why_panel.h"

// The half of the Why panel that sets index expressions side by side.
namespace pallascope::views {

void WhyPanel::draw_indices(Context& context, const model::WhyIndices& indices, std::size_t number,
                            float width) {
  const Theme& theme = context.theme;
  ImGui::PushID(static_cast<int>(number));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool alike = indices.differing == 0;
  {
    const FontScope font(context.fonts.mono_bold, context.fonts.small_size);
    link(context, "##buffer", indices.buffer, indices.selection,
         model::is_empty(indices.selection) ? theme.text : theme.accent, width * 0.4F);
    ImGui::SameLine(0, context.px(8));
  }
  {
    const FontScope font(context.fonts.mono, context.fonts.small_size);
    text(theme.text_dim, indices.shape);
    ImGui::SameLine(0, context.px(8));
  }
  {
    const FontScope font(context.fonts.ui, context.fonts.small_size);
    text(theme.text_faint, indices.bytes);
    char verdict[96];
    std::snprintf(verdict, sizeof verdict, "%s %s", alike ? "=" : "≠", indices.verdict.c_str());
    const float after = ImGui::GetItemRectMax().x + context.px(12);
    ImGui::SetCursorScreenPos(ImVec2(std::max(after, at.x + width - text_width(verdict)), at.y));
    link(context, "##verdict", verdict, {}, alike ? theme.text_dim : theme.refused, at.x + width - after);
  }
  // Who does what, and the whole expression.
  float names = 0;
  const auto who = [&](const model::WhyAccess& access) {
    const FontScope font(context.fonts.ui, context.fonts.small_size);
    return text_width(access.name) + text_width(access.verb) + context.px(5);
  };
  names = std::min(std::max(who(indices.left), who(indices.right)), width * 0.45F);
  const auto line = [&](const model::WhyAccess& access, const char* id) {
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const FontScope font(context.fonts.ui, context.fonts.small_size);
    float x = from.x;
    if (access.letter != ' ') {
      access_badge(context, access.letter);
      if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", access.words.c_str());
    }
    x += ImGui::GetTextLineHeight() * 0.95F + context.px(7);
    ImGui::SetCursorScreenPos(ImVec2(x, from.y));
    const float verb = text_width(access.verb);
    ImGui::PushID(id);
    link(context, "##name", access.name, access.selection, theme.accent, names - verb - context.px(5));
    ImGui::SameLine(0, context.px(5));
    text(theme.text_dim, access.verb);
    x += names + context.px(12);
    ImGui::SetCursorScreenPos(ImVec2(x, from.y));
    {
      const FontScope mono(context.fonts.mono, context.fonts.small_size);
      link(context, "##expression", access.expression, {}, theme.text, from.x + width - x);
      if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s\n%s", access.expression.c_str(), access.axes.c_str());
    }
    ImGui::PopID();
    go_on_at(ImVec2(from.x, from.y + ImGui::GetTextLineHeight() + context.px(3)));
  };
  line(indices.left, "left");
  line(indices.right, "right");
  draw_terms(context, indices, number, width);
  ImGui::PopID();
}

void WhyPanel::draw_terms(Context& context, const model::WhyIndices& indices, std::size_t number,
                          float width) {
  if (indices.terms.empty()) return;
  const Theme& theme = context.theme;
  const FontScope font(context.fonts.mono, context.fonts.small_size);
  const int columns = static_cast<int>(indices.terms.size()) + 1;
  const float padding = context.px(10);
  float total = 0;
  std::vector<float> widths;
  widths.reserve(indices.terms.size());
  for (const model::WhyTerm& term : indices.terms) {
    const float wide = std::max({text_width(term.name) + context.px(18), text_width(term.left),
                                 text_width(term.right), text_width(term.range), context.px(36)});
    widths.push_back(wide);
    total += wide + 2 * padding;
  }
  const float row_height = ImGui::GetTextLineHeight() + context.px(4);
  const float head =
      std::min(std::max({text_width(indices.left.name), text_width(indices.right.name), context.px(60)}),
               width * 0.3F);
  total += head + 2 * padding;
  const bool scrolls = total > width;
  const ImGuiTableFlags flags = ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_BordersInnerV |
                                ImGuiTableFlags_BordersOuter | ImGuiTableFlags_NoHostExtendX |
                                ImGuiTableFlags_NoSavedSettings | (scrolls ? ImGuiTableFlags_ScrollX : 0);
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(padding, context.px(2)));
  const ImVec2 size(scrolls ? width : 0, scrolls ? row_height * 4 + ImGui::GetStyle().ScrollbarSize + 4 : 0);
  char id[32];
  std::snprintf(id, sizeof id, "##terms%zu", number);
  if (ImGui::BeginTable(id, columns, flags, size)) {
    if (scrolls) ImGui::TableSetupScrollFreeze(1, 0);
    ImGui::TableSetupColumn("##head", ImGuiTableColumnFlags_WidthFixed, head);
    for (int k = 1; k < columns; ++k)
      ImGui::TableSetupColumn(nullptr, ImGuiTableColumnFlags_WidthFixed,
                              widths[static_cast<std::size_t>(k - 1)]);
    const auto cell = [&](std::size_t k, std::string_view value, ImU32 color, bool tint) {
      ImGui::TableNextColumn();
      if (tint) ImGui::TableSetBgColor(ImGuiTableBgTarget_CellBg, faded(theme.refused, 0.16F));
      const float wide = text_width(value);
      ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0F, (widths[k] - wide) / 2));
      text(color, value);
    };
    const auto head_cell = [&](std::string_view value, ImU32 color) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      const FontScope ui(context.fonts.ui, context.fonts.small_size);
      text_cut(color, value, head);
    };
    head_cell("term", theme.text_faint);
    ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg0, theme.raised);
    for (std::size_t k = 0; k < indices.terms.size(); ++k) {
      const model::WhyTerm& term = indices.terms[k];
      const FontScope bold(context.fonts.mono_bold, context.fonts.small_size);
      char name[160];
      std::snprintf(name, sizeof name, "%s %s", term.name.c_str(), term.same ? "=" : "≠");
      cell(k, name, term.same ? theme.text : theme.refused, !term.same);
    }
    head_cell(indices.left.name, theme.text_dim);
    for (std::size_t k = 0; k < indices.terms.size(); ++k) {
      const model::WhyTerm& term = indices.terms[k];
      cell(k, term.left.empty() ? "·" : term.left, term.same ? theme.text : theme.refused, !term.same);
    }
    head_cell(indices.right.name == indices.left.name ? "the reader" : std::string_view(indices.right.name),
              theme.text_dim);
    for (std::size_t k = 0; k < indices.terms.size(); ++k) {
      const model::WhyTerm& term = indices.terms[k];
      cell(k, term.right.empty() ? "·" : term.right, term.same ? theme.text : theme.refused, !term.same);
    }
    head_cell("range", theme.text_faint);
    for (std::size_t k = 0; k < indices.terms.size(); ++k) {
      const model::WhyTerm& term = indices.terms[k];
      cell(k, term.range, term.same ? theme.text_faint : theme.text_dim, !term.same);
    }
    ImGui::EndTable();
  }
  ImGui::PopStyleVar();
  ImGui::Dummy(ImVec2(1, context.px(2)));
}

}  // namespace pallascope::views
