#include "app/views/difference_view.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/views/heat_map.h"
#include "core/report/format.h"

namespace pallascope::views {
namespace {

using Cell = model::DifferencePicture::Cell;

ImU32 exact_color(const Theme& theme) {
  return mixed(theme.raised, theme.border, theme.dark ? 0.35F : 0.55F);
}

void draw_mismatch(const Theme& theme, ImDrawList& draw, ImVec2 low, ImVec2 high) {
  draw.AddRectFilled(low, high, theme.error);
  const float size = std::min(high.x - low.x, high.y - low.y);
  if (size < 4) return;
  draw.PushClipRect(low, high, true);
  hatch(draw, low, high, theme.dark ? IM_COL32(30, 0, 0, 220) : IM_COL32(255, 255, 255, 220),
        std::max(3.0F, size / 2.5F), 1);
  draw.PopClipRect();
}

void draw_both(const Theme& theme, ImDrawList& draw, ImVec2 low, ImVec2 high) {
  draw.AddRectFilled(low, high, exact_color(theme));
  draw.PushClipRect(low, high, true);
  hatch(draw, low, high, theme.text_faint, std::max(3.0F, (high.x - low.x) / 2), 1);
  draw.PopClipRect();
}

std::string decade_text(int exponent) { return exponent == 0 ? "1" : fmt::format("1e{}", exponent); }

std::string range_text(std::pair<std::int64_t, std::int64_t> range) {
  return range.first == range.second
             ? report::count_text(range.first)
             : fmt::format("{} .. {}", report::count_text(range.first), report::count_text(range.second));
}

/// The sequential map from bottom to top with a label a decade.
void draw_scale(const Context& context, const model::DifferencePicture& picture, ImVec2 at, ImVec2 size) {
  const Theme& theme = context.theme;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  constexpr int parts = 48;
  for (int k = 0; k < parts; ++k) {
    const float low = at.y + size.y * static_cast<float>(k) / parts,
                high = at.y + size.y * static_cast<float>(k + 1) / parts;
    draw.AddRectFilled(ImVec2(at.x, low), ImVec2(at.x + size.x, high),
                       sequential_color(theme, 1 - (static_cast<float>(k) + 0.5F) / parts));
  }
  draw.AddRect(at, ImVec2(at.x + size.x, at.y + size.y), theme.border_strong);
  const FontScope font(context.fonts.mono, label_size);
  const float line = ImGui::GetTextLineHeight();
  const int decades = picture.high_decade - picture.low_decade;
  int step = 1;
  while (decades > 0 && size.y / static_cast<float>(decades) * static_cast<float>(step) < line + 2) ++step;
  for (int k = 0; k <= decades; k += step) {
    const float y = at.y + size.y * (1 - static_cast<float>(k) / static_cast<float>(std::max(1, decades)));
    draw.AddLine(ImVec2(at.x + size.x, y), ImVec2(at.x + size.x + context.px(3), y), theme.border_strong);
    const float place = std::clamp(y - line / 2, at.y - line / 2, at.y + size.y - line / 2);
    draw.AddText(ImVec2(at.x + size.x + context.px(5), place), theme.text_dim,
                 decade_text(picture.low_decade + k).c_str());
  }
}

/// A swatch and what it means; false when there is no more room.
template <class Draw>
void legend(const Context& context, ImVec2& at, float end, const char* meaning, Draw draw_swatch) {
  const float line = ImGui::GetTextLineHeight(), side = context.px(9), y = at.y + (line - side) / 2;
  const float width = ImGui::CalcTextSize(meaning).x;
  if (at.x + side + context.px(5) + width > end) return;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw_swatch(draw, ImVec2(at.x, y), ImVec2(at.x + side, y + side));
  draw.AddRect(ImVec2(at.x, y), ImVec2(at.x + side, y + side), context.theme.border_strong);
  draw.AddText(ImVec2(at.x + side + context.px(5), at.y), context.theme.text_dim, meaning);
  at.x += side + context.px(17) + width;
}

}  // namespace

void draw_picture(const Context& context, const model::DifferencePicture& picture, ImVec2 room) {
  const Theme& theme = context.theme;
  const FontScope small(context.fonts.ui, context.fonts.small_size);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 start = ImGui::GetCursorScreenPos();
  const float line = ImGui::GetTextLineHeight();
  const ImVec2 edge = edge_room(context, report::count_text(picture.row_range(picture.rows - 1).first));
  const bool scaled = picture.differing > 0;
  const float bar = scaled ? context.px(58) : 0;
  const ImVec2 space(std::max(10.0F, room.x - edge.x - bar),
                     std::max(10.0F, room.y - edge.y - line - context.px(6)));
  const CellPlace place = place_cells(context, ImVec2(start.x + edge.x, start.y + edge.y), space,
                                      picture.rows, picture.columns, 22);
  edge_labels(
      context, place, [&](int r) { return report::count_text(picture.row_range(r).first); },
      [&](int c) { return report::count_text(picture.column_range(c).first); });
  const ImVec2 end(place.at.x + place.size().x - place.gap, place.at.y + place.size().y - place.gap);
  draw.AddRectFilled(place.at, end, theme.field);
  const ImU32 exact = exact_color(theme);
  for (int r = 0; r < picture.rows; ++r) {
    for (int c = 0; c < picture.columns; ++c) {
      const std::size_t at = picture.at(r, c);
      const ImVec2 low = place.low(r, c), high = place.high(r, c);
      switch (picture.cells[at]) {
        case Cell::exact:
          draw.AddRectFilled(low, high, exact);
          break;
        case Cell::differs:
          draw.AddRectFilled(low, high, sequential_color(theme, picture.share(picture.values[at])));
          break;
        case Cell::mismatch:
          draw_mismatch(theme, draw, low, high);
          break;
        case Cell::both_nan:
          draw_both(theme, draw, low, high);
          break;
      }
    }
  }
  draw.AddRect(ImVec2(place.at.x - 1, place.at.y - 1), ImVec2(end.x + 1, end.y + 1), theme.border_strong);
  if (scaled)
    draw_scale(context, picture, ImVec2(end.x + context.px(10), place.at.y),
               ImVec2(context.px(10), std::max(context.px(30), end.y - place.at.y)));
  ImGui::InvisibleButton("##picture",
                         ImVec2(std::max(1.0F, end.x - start.x), std::max(1.0F, end.y - start.y)));
  const auto hit = ImGui::IsItemHovered() ? place.hit(ImGui::GetMousePos()) : std::nullopt;
  if (hit) {
    const auto [r, c] = *hit;
    draw.AddRect(ImVec2(place.low(r, c).x - 1, place.low(r, c).y - 1),
                 ImVec2(place.high(r, c).x + 1, place.high(r, c).y + 1), theme.text);
    const std::size_t at = picture.at(r, c);
    const char* said = picture.cells[at] == Cell::exact      ? "every element is equal"
                       : picture.cells[at] == Cell::mismatch ? "NaN or infinity on one side only"
                       : picture.cells[at] == Cell::both_nan ? "NaN on both sides, the rest is equal"
                                                             : nullptr;
    const std::string value =
        said != nullptr ? said : fmt::format("largest |ours - eager| {:.4g}", picture.values[at]);
    ImGui::SetTooltip("rows %s   columns %s\n%s", range_text(picture.row_range(r)).c_str(),
                      range_text(picture.column_range(c)).c_str(), value.c_str());
  }
  ImVec2 at(place.at.x, end.y + context.px(5));
  const float right = start.x + room.x;
  legend(context, at, right, "equal",
         [&](ImDrawList& d, ImVec2 a, ImVec2 b) { d.AddRectFilled(a, b, exact); });
  if (picture.mismatching > 0)
    legend(context, at, right, "NaN, inf on one side",
           [&](ImDrawList& d, ImVec2 a, ImVec2 b) { draw_mismatch(theme, d, a, b); });
  if (picture.nan > 0)
    legend(context, at, right, "NaN on both",
           [&](ImDrawList& d, ImVec2 a, ImVec2 b) { draw_both(theme, d, a, b); });
}

void draw_histogram(const Context& context, const model::DifferenceHistogram& histogram,
                    const model::DifferencePicture* picture, ImVec2 room) {
  const Theme& theme = context.theme;
  struct Bar {
    std::string label, meaning;
    std::int64_t count;
    ImU32 color;
    bool hatched;
  };
  std::vector<Bar> bars;
  bars.push_back({"0", "equal", histogram.exact, exact_color(theme), false});
  for (std::size_t k = 0; k < histogram.counts.size(); ++k) {
    const int exponent = histogram.first_exponent + static_cast<int>(k);
    const float share = picture != nullptr && picture->differing > 0
                            ? picture->share(std::pow(10.0, exponent + 0.5))
                            : static_cast<float>(k + 1) / static_cast<float>(histogram.counts.size() + 1);
    bars.push_back({decade_text(exponent),
                    fmt::format("{} ≤ |ours - eager| < {}", decade_text(exponent), decade_text(exponent + 1)),
                    histogram.counts[k], sequential_color(theme, share), false});
  }
  if (histogram.both_nan > 0)
    bars.push_back({"both", "NaN on both sides", histogram.both_nan, exact_color(theme), false});
  if (histogram.nan > 0)
    bars.push_back({"NaN", "NaN or infinity on one side only", histogram.nan, theme.error, true});
  std::int64_t most = 1;
  for (const Bar& b : bars) most = std::max(most, b.count);

  const FontScope font(context.fonts.mono, label_size);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 start = ImGui::GetCursorScreenPos();
  const float line = ImGui::GetTextLineHeight(), axis = line + context.px(4), above = line + context.px(3);
  const float height = std::max(10.0F, room.y - axis - above), base = start.y + above + height;
  const float step = std::min(context.px(44), room.x / static_cast<float>(bars.size()));
  const float width = std::max(2.0F, std::floor(step - std::min(context.px(4), step * 0.2F)));
  ImGui::InvisibleButton("##histogram",
                         ImVec2(std::max(1.0F, step * static_cast<float>(bars.size())), room.y));
  const bool over = ImGui::IsItemHovered();
  float next_label = start.x - 1, next_count = start.x - 1;
  for (std::size_t k = 0; k < bars.size(); ++k) {
    const Bar& b = bars[k];
    const float x = std::floor(start.x + step * static_cast<float>(k));
    // Few elements are still to be seen beside many.
    const float high =
        b.count == 0
            ? 0
            : std::max(context.px(2),
                       height * static_cast<float>(static_cast<double>(b.count) / static_cast<double>(most)));
    const ImVec2 low(x, base - high), end(x + width, base);
    if (b.hatched && high > 0)
      draw_mismatch(theme, draw, low, end);
    else if (high > 0)
      draw.AddRectFilled(low, end, b.color, 1);
    if (k == 0 && high > 0) draw.AddRect(low, end, theme.border_strong, 1);
    const auto centred = [&](const std::string& value, float y, ImU32 color, float& next) {
      const float wide = ImGui::CalcTextSize(value.c_str()).x;
      const float left = std::max(start.x, x + (width - wide) / 2);
      if (left < next) return;
      draw.AddText(ImVec2(left, y), color, value.c_str());
      next = left + wide + context.px(4);
    };
    if (b.count > 0) centred(report::count_text(b.count), low.y - line - 1, theme.text_dim, next_count);
    centred(b.label, base + context.px(3), b.hatched ? theme.error : theme.text_faint, next_label);
    const ImVec2 mouse = ImGui::GetMousePos();
    if (over && mouse.x >= x && mouse.x < x + step) {
      draw.AddRectFilled(ImVec2(x, start.y), ImVec2(x + width, base), theme.hover);
      ImGui::SetTooltip("%s\n%s, %.3g %%", b.meaning.c_str(), report::plural(b.count, "element").c_str(),
                        100.0 * static_cast<double>(b.count) /
                            static_cast<double>(std::max<std::int64_t>(1, histogram.total)));
    }
  }
  draw.AddLine(ImVec2(start.x, base), ImVec2(start.x + step * static_cast<float>(bars.size()), base),
               theme.border_strong);
}

}  // namespace pallascope::views
