// How the rows of a column look.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "app/views/access_tip.h"
#include "app/views/code_view.h"

namespace pallascope::views {
namespace {

/// Text in the small size of the interface, from the middle of the row on. Gives where it ends.
float small_text(ImDrawList& draw, ImFont* font, float size, float x, float y, float height, ImU32 color,
                 std::string_view text) {
  const ImVec2 extent = font->CalcTextSizeA(size, 1e30F, 0, text.data(), text.data() + text.size());
  draw.AddText(font, size, ImVec2(x, std::floor(y + (height - extent.y) / 2)), color, text.data(),
               text.data() + text.size());
  return x + extent.x;
}

}  // namespace

void CodeView::draw_background(const Look& l, const CodeMarks& marks, const VisibleRow& row) const {
  const ImVec2 from(l.min.x, row.y), to(l.max.x, row.y + l.mono.line_height);
  const std::size_t line = row.row.line;
  if (row.row.fold >= 0) {
    l.draw.AddRectFilled(from, to, mixed(l.theme.panel, l.theme.raised, row.hovered ? 1.0F : 0.55F));
    return;
  }
  const model::SourceLine& source = column().lines[line];
  if (source.kind == model::LineKind::file) l.draw.AddRectFilled(from, to, l.theme.raised);
  const model::LinkedLines* links = linked(marks);
  if (marks.difference && source.flag != model::LineFlag::same)
    l.draw.AddRectFilled(
        from, to, faded(source.flag == model::LineFlag::added ? l.theme.added : l.theme.changed, 0.09F));
  if (links != nullptr && links->contains(line)) {
    l.draw.AddRectFilled(from, to, l.theme.linked);
    // The line that the others point to is the strongest.
    if (links->focus == line) l.draw.AddRectFilled(from, to, l.theme.linked);
  } else if (marks.preview != nullptr && marks.preview->contains(line)) {
    l.draw.AddRectFilled(from, to, faded(l.theme.linked, 0.62F));
  }
  if (const auto [first, last] = range(); last > first && line >= first && line <= last)
    l.draw.AddRectFilled(from, to, l.theme.accent_soft);
  if (row.hovered && source.kind == model::LineKind::code) l.draw.AddRectFilled(from, to, l.theme.hover);
  // A kernel begins here.
  if (kind_ != model::ColumnKind::model && line > 0) {
    const model::Section* section = model::section_at(outline(), line);
    if (section != nullptr && section->first == line)
      l.draw.AddLine(ImVec2(from.x, from.y), ImVec2(to.x, from.y), l.theme.border_strong);
  }
}

void CodeView::draw_text_of(const Look& l, const CodeMarks& marks, const VisibleRow& row) {
  const std::size_t line = row.row.line;
  const float y = std::floor(row.y + (l.mono.line_height - l.mono.size) / 2);
  const float x = l.gutter_right - l.scrolled;
  if (row.row.fold >= 0) {
    draw_fold(l, row);
    return;
  }
  const model::SourceLine& source = column().lines[line];
  if (source.kind == model::LineKind::file) {
    draw_file(l, row);
    return;
  }
  if (source.kind == model::LineKind::gap) {
    draw_gap(l, row);
    return;
  }
  if (!marks.needle.empty()) {
    for (std::size_t at = model::find_lower(source.text, marks.needle); at != std::string::npos;
         at = model::find_lower(source.text, marks.needle, at + marks.needle.size())) {
      const float from = x + text_offset(l.mono, source.text, at);
      const float to = x + text_offset(l.mono, source.text, at + marks.needle.size());
      const ImVec2 min(from - 1, row.y + l.unit), max(to + 1, row.y + l.mono.line_height - l.unit);
      const bool here = marks.match != nullptr && marks.match->line == line && marks.match->begin == at;
      l.draw.AddRectFilled(min, max, faded(l.theme.warning, here ? 0.50F : 0.24F), 2);
      if (here) l.draw.AddRect(min, max, l.theme.warning, 2);
    }
  }
  draw_code(l.draw, l.mono, l.theme, ImVec2(x, y), l.max.x, source.text, spans_.line(line));
}

void CodeView::draw_gutter(const Look& l, const CodeMarks& marks, const VisibleRow& row) const {
  const float bottom = row.y + l.mono.line_height;
  const std::size_t line = row.row.line;
  const model::SourceLine& source = column().lines[line];
  const bool head = row.row.fold >= 0;
  const model::LinkedLines* links = linked(marks);
  const bool is_linked = !head && links != nullptr && links->contains(line);
  if (is_linked)
    l.draw.AddRectFilled(ImVec2(l.min.x, row.y), ImVec2(l.min.x + std::max(2.0F, l.unit * 3), bottom),
                         l.theme.accent);
  if (source.number > 0 && (!head || !row.row.open)) {
    char number[16];
    const auto end = fmt::format_to_n(number, sizeof number, "{}", source.number).out;
    const float width = static_cast<float>(end - number) * l.mono.advance;
    const bool made = !source.nodes.empty() || source.nest.valid() || source.kernel.valid();
    const ImU32 color = is_linked ? l.theme.text : made && !head ? l.theme.text_dim : l.theme.text_faint;
    l.draw.AddText(
        l.mono.font, l.mono.size,
        ImVec2(l.numbers_right - width, std::floor(row.y + (l.mono.line_height - l.mono.size) / 2)),
        faded(color, is_linked ? 1.0F : 0.85F), number, end);
  }
  if (!head && has_tags() && source.letter != ' ') {
    draw_access_tag(l.draw, l.mono, l.theme, ImVec2(l.tag_left, row.y + l.unit * 1.5F),
                    ImVec2(l.tag_right, bottom - l.unit * 1.5F),
                    {source.letter, source.store, source.on_value, row.tag_hovered});
  }
  if (!marks.difference) return;
  const float bar_right = l.bar + std::max(2.0F, l.unit * 3);
  if (head) {
    const model::Fold& fold = outline().folds[static_cast<std::size_t>(row.row.fold)];
    if (!row.row.open && fold.added + fold.removed > 0)
      l.draw.AddRectFilled(ImVec2(l.bar, row.y), ImVec2(bar_right, bottom),
                           fold.added > 0 ? l.theme.changed : l.theme.removed);
    return;
  }
  if (source.flag != model::LineFlag::same)
    l.draw.AddRectFilled(ImVec2(l.bar, row.y), ImVec2(bar_right, bottom),
                         source.flag == model::LineFlag::added ? l.theme.added : l.theme.changed);
  const auto notch = [&](float y) {
    const float size = std::floor(l.mono.line_height * 0.28F);
    l.draw.AddTriangleFilled(ImVec2(l.bar, y - size), ImVec2(l.bar, y + size), ImVec2(l.bar + size * 1.3F, y),
                             l.theme.removed);
  };
  if (source.removed_before > 0 && model::only_removed_before(column(), line) > 0) notch(row.y);
  if (line + 1 == column().lines.size() && column().removed_at_end > 0) notch(bottom);
}

void CodeView::draw_fold(const Look& l, const VisibleRow& row) const {
  const model::Fold& fold = outline().folds[static_cast<std::size_t>(row.row.fold)];
  const float size = l.mono.size, height = l.mono.line_height;
  const float middle = std::floor(row.y + height / 2), half = std::floor(size * 0.27F);
  float x = l.gutter_right;
  const ImU32 color = row.hovered ? l.theme.text : l.theme.text_dim;
  if (row.row.open) {
    l.draw.AddTriangleFilled(ImVec2(x, middle - half * 0.6F), ImVec2(x + half * 2, middle - half * 0.6F),
                             ImVec2(x + half, middle + half * 0.8F), color);
  } else {
    l.draw.AddTriangleFilled(ImVec2(x + half * 0.3F, middle - half), ImVec2(x + half * 1.7F, middle),
                             ImVec2(x + half * 0.3F, middle + half), color);
  }
  x += half * 2 + l.unit * 6;
  const float small = size * 0.95F;
  ImFont* ui = l.fonts.ui;
  char count[32];
  const auto end = fmt::format_to_n(count, sizeof count, "{} lines", fold.end - fold.first).out;
  x = small_text(l.draw, ui, small, x, row.y, height, color, {count, static_cast<std::size_t>(end - count)}) +
      l.unit * 8;
  x = small_text(l.draw, ui, small, x, row.y, height, row.hovered ? l.theme.text_dim : l.theme.text_faint,
                 fold.title) +
      l.unit * 10;
  if (!row.row.open && fold.added + fold.removed > 0) {
    char part[24];
    auto stop = fmt::format_to_n(part, sizeof part, "+{}", fold.added).out;
    x = small_text(l.draw, ui, small, x, row.y, height, l.theme.added,
                   {part, static_cast<std::size_t>(stop - part)}) +
        l.unit * 5;
    stop = fmt::format_to_n(part, sizeof part, "−{}", fold.removed).out;
    small_text(l.draw, ui, small, x, row.y, height, l.theme.removed,
               {part, static_cast<std::size_t>(stop - part)});
  }
}

void CodeView::draw_file(const Look& l, const VisibleRow& row) const {
  const std::string_view path = column().lines[row.row.line].text;
  const std::size_t slash = path.find_last_of('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const float x = small_text(l.draw, l.fonts.bold, l.mono.size, l.gutter_right, row.y, l.mono.line_height,
                             l.theme.text, name) +
                  l.unit * 8;
  if (slash != std::string_view::npos)
    small_text(l.draw, l.fonts.ui, l.mono.size * 0.95F, x, row.y, l.mono.line_height, l.theme.text_faint,
               path.substr(0, slash));
}

void CodeView::draw_gap(const Look& l, const VisibleRow& row) const {
  const float middle = std::floor(row.y + l.mono.line_height / 2);
  const float dash = l.unit * 4;
  for (float x = l.gutter_right; x < l.max.x - l.unit * 10; x += dash * 2)
    l.draw.AddLine(ImVec2(x, middle), ImVec2(x + dash, middle), l.theme.border_strong);
}

void CodeView::draw_scroll_marks(const Look& l, const CodeMarks& marks) const {
  ImGuiWindow* window = ImGui::GetCurrentWindow();
  if (!window->ScrollbarY || rows_.size() == 0) return;
  const ImRect bar = ImGui::GetWindowScrollbarRect(window, ImGuiAxis_Y);
  l.draw.PushClipRect(bar.Min, bar.Max, false);
  const float per_row = (bar.Max.y - bar.Min.y) / static_cast<float>(rows_.size());
  const float thick = std::max(2.0F, std::min(per_row, l.unit * 3));
  // Of many lines, one a few pixels is enough.
  const auto mark = [&, last = -1e9F](std::size_t line, ImU32 color, float from, float to) mutable {
    const std::size_t row = rows_.row_of(line);
    if (row >= rows_.size()) return;
    const float y = std::floor(bar.Min.y + static_cast<float>(row) * per_row);
    if (std::abs(y - last) < thick) return;
    last = y;
    const float width = bar.Max.x - bar.Min.x;
    l.draw.AddRectFilled(ImVec2(bar.Min.x + width * from, y), ImVec2(bar.Min.x + width * to, y + thick),
                         color);
  };
  constexpr std::size_t most = 1'000;
  const auto stride = [](std::size_t count) { return count / most + 1; };
  if (const model::LinkedLines* links = linked(marks); links != nullptr) {
    auto m = mark;
    for (std::size_t k = 0; k < links->lines.size(); k += stride(links->lines.size()))
      m(links->lines[k], faded(l.theme.accent, 0.8F), 0.0F, 0.36F);
  }
  if (marks.difference) {
    auto m = mark;
    for (std::size_t k = 0; k < changes_.size(); k += stride(changes_.size())) {
      const model::LineFlag flag = column().lines[changes_[k]].flag;
      m(changes_[k],
        flag == model::LineFlag::added     ? l.theme.added
        : flag == model::LineFlag::changed ? l.theme.changed
                                           : l.theme.removed,
        0.36F, 0.68F);
    }
  }
  if (marks.matches != nullptr && !marks.needle.empty()) {
    auto m = mark;
    for (std::size_t k = 0; k < marks.matches->size(); k += stride(marks.matches->size())) {
      if ((*marks.matches)[k].column == kind_) m((*marks.matches)[k].line, l.theme.warning, 0.68F, 1.0F);
    }
  }
  l.draw.PopClipRect();
}

}  // namespace pallascope::views
