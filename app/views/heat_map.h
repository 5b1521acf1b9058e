// Room: views. Grids of small cells: where they lie, which one the pointer is over, their colours, hatching, scales.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "app/views/context.h"

namespace pallascope::views {

/// Of the one sequential map for magnitudes. `share` 0 to 1, held within it. Lightness runs one way only: upwards on a
/// dark panel, downwards on a light one, so that the largest values stand out in both. No red, no grey: those say NaN
/// and zero.
ImU32 sequential_color(const Theme& theme, float share);
/// From the dark to the light end of one colour; `share` 0 to 1.
ImU32 shade(const Theme& theme, ImU32 color, float share);

/// Diagonal lines over a rectangle, inside of it.
void hatch(ImDrawList& draw, ImVec2 low, ImVec2 high, ImU32 color, float step, float thickness);

/// Where the cells of a grid lie: whole pixels, as large as there is room, not larger than `most` points.
struct CellPlace {
  ImVec2 at;                             ///< the first cell's upper left corner
  float width = 1, height = 1, gap = 0;  ///< of one cell with its gap
  int rows = 0, columns = 0;

  [[nodiscard]] ImVec2 low(int row, int column) const;
  [[nodiscard]] ImVec2 high(int row, int column) const;
  [[nodiscard]] ImVec2 size() const {
    return {width * static_cast<float>(columns), height * static_cast<float>(rows)};
  }
  /// Row and column at a position, if it is over a cell.
  [[nodiscard]] std::optional<std::pair<int, int>> hit(ImVec2 position) const;
};
/// Fits a grid into `room` pixels at `at`. Cells are at most three times as wide as high, or as high as wide.
CellPlace place_cells(const Context& context, ImVec2 at, ImVec2 room, int rows, int columns, float most = 16);

/// Numbers along the edges of a grid: what the first cell of a row or column is. Labels that would touch are left out.
/// `row_label` and `column_label` give the text of a row or column; both drawn in the small mono font.
template <class RowLabel, class ColumnLabel>
void edge_labels(const Context& context, const CellPlace& place, RowLabel row_label,
                 ColumnLabel column_label);
/// Room in pixels that the labels take: to the left for a text as wide as `longest`, and above.
ImVec2 edge_room(const Context& context, const std::string& longest);

/// The size of the fonts of labels.
inline constexpr float label_size = 11;

template <class RowLabel, class ColumnLabel>
void edge_labels(const Context& context, const CellPlace& place, RowLabel row_label,
                 ColumnLabel column_label) {
  const FontScope font(context.fonts.mono, label_size);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float line = ImGui::GetTextLineHeight(), gap = context.px(5);
  int step = 1;
  while (static_cast<float>(step) * place.height < line + context.px(3)) step *= 2;
  for (int row = 0; row < place.rows; row += step) {
    const std::string label = row_label(row);
    const float middle = place.low(row, 0).y + (place.height - place.gap) / 2;
    draw.AddText(ImVec2(place.at.x - gap - ImGui::CalcTextSize(label.c_str()).x, middle - line / 2),
                 context.theme.text_faint, label.c_str());
  }
  const float widest = ImGui::CalcTextSize(std::string(column_label(place.columns - 1)).c_str()).x;
  for (step = 1; static_cast<float>(step) * place.width < widest + context.px(10);) step *= 2;
  for (int column = 0; column < place.columns; column += step) {
    const std::string label = column_label(column);
    const float left = place.low(0, column).x;
    if (column > 0 &&
        left + ImGui::CalcTextSize(label.c_str()).x > place.at.x + place.size().x + context.px(8))
      break;
    draw.AddText(ImVec2(left, place.at.y - line - context.px(3)), context.theme.text_faint, label.c_str());
  }
}

}  // namespace pallascope::views
