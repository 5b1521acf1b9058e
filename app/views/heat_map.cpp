#include "app/views/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace pallascope::views {
namespace {

constexpr ImU32 rgb(std::uint32_t hex) {
  return IM_COL32((hex >> 16) & 255, (hex >> 8) & 255, hex & 255, 255);
}

// Indigo, blue, teal, mint: lightness rises in about equal steps, also for those who see no red or no green.
constexpr std::array<ImU32, 9> stops{rgb(0x352a66), rgb(0x3c4590), rgb(0x3765a6),
                                     rgb(0x3383ae), rgb(0x379fb3), rgb(0x4dbab0),
                                     rgb(0x7fd1b0), rgb(0xb5e5c4), rgb(0xe8f8e4)};

ImU32 between(float place) {
  const auto low = static_cast<std::size_t>(std::clamp(place, 0.0F, static_cast<float>(stops.size() - 2)));
  return mixed(stops[low], stops[low + 1], std::clamp(place - static_cast<float>(low), 0.0F, 1.0F));
}

}  // namespace

ImU32 sequential_color(const Theme& theme, float share) {
  share = std::clamp(std::isnan(share) ? 0.0F : share, 0.0F, 1.0F);
  // The ends that would not stand out from the panel are left out.
  return theme.dark ? between(0.4F + share * 7.6F) : between(7.2F - share * 7.2F);
}

ImU32 shade(const Theme& theme, ImU32 color, float share) {
  share = std::clamp(share, 0.0F, 1.0F);
  const ImU32 black = IM_COL32(0, 0, 0, 255), white = IM_COL32(255, 255, 255, 255);
  const ImU32 low = mixed(color, black, theme.dark ? 0.58F : 0.50F),
              high = mixed(color, white, theme.dark ? 0.55F : 0.68F);
  return share < 0.5F ? mixed(low, color, share * 2) : mixed(color, high, share * 2 - 1);
}

void hatch(ImDrawList& draw, ImVec2 low, ImVec2 high, ImU32 color, float step, float thickness) {
  const float width = high.x - low.x, height = high.y - low.y;
  if (width <= 0 || height <= 0 || step <= 0) return;
  // Lines x + y = along, each cut off at the sides of the rectangle.
  for (float along = step / 2; along < width + height; along += step) {
    const float x1 = std::min(along, width), y1 = along - x1, y2 = std::min(along, height), x2 = along - y2;
    draw.AddLine(ImVec2(low.x + x1, low.y + y1), ImVec2(low.x + x2, low.y + y2), color, thickness);
  }
}

ImVec2 CellPlace::low(int row, int column) const {
  return {at.x + static_cast<float>(column) * width, at.y + static_cast<float>(row) * height};
}

ImVec2 CellPlace::high(int row, int column) const {
  const ImVec2 corner = low(row, column);
  return {corner.x + width - gap, corner.y + height - gap};
}

std::optional<std::pair<int, int>> CellPlace::hit(ImVec2 position) const {
  if (position.x < at.x || position.y < at.y) return std::nullopt;
  const int row = static_cast<int>((position.y - at.y) / height),
            column = static_cast<int>((position.x - at.x) / width);
  if (row >= rows || column >= columns) return std::nullopt;
  return std::pair(row, column);
}

CellPlace place_cells(const Context& context, ImVec2 at, ImVec2 room, int rows, int columns, float most) {
  CellPlace place;
  place.at = ImVec2(std::floor(at.x), std::floor(at.y));
  place.rows = std::max(rows, 1), place.columns = std::max(columns, 1);
  const float largest = std::floor(context.px(most));
  const float height = std::floor(room.y / static_cast<float>(place.rows));
  const float width = std::floor(room.x / static_cast<float>(place.columns));
  place.height = std::clamp(height, 2.0F, std::max(2.0F, largest));
  place.width = std::clamp(width, 2.0F, std::max(2.0F, largest));
  place.width = std::min(place.width, place.height * 3),
  place.height = std::min(place.height, place.width * 3);
  place.gap = std::min(place.width, place.height) >= 5 ? 1.0F : 0.0F;
  return place;
}

ImVec2 edge_room(const Context& context, const std::string& longest) {
  const FontScope font(context.fonts.mono, label_size);
  return {ImGui::CalcTextSize(longest.c_str()).x + context.px(7), ImGui::GetTextLineHeight() + context.px(3)};
}

}  // namespace pallascope::views
