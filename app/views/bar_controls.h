// Room: views. Small controls that the bars and the left panels share: chips, clickable rows, cut text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "app/views/context.h"

namespace pallascope::views {

/// How a chip looks. `ink`: the colour of its text; 0 is the theme's.
struct ChipLook {
  bool on = false;       ///< chosen: accented
  bool menu = false;     ///< with a ▾ at its end
  bool primary = false;  ///< the one button that matters
  bool tight = false;    ///< with less room around its text
  bool plain = false;    ///< without a border until the pointer is over it
  bool enabled = true;
  ImU32 ink = 0;
};
/// Pixels that a chip takes with the current font.
float chip_width(const Context& context, std::string_view label, const ChipLook& look = {});
float chip_height(const Context& context);
/// A small button. `width`: 0 for as wide as it must be; a label that does not fit is cut. True when it was clicked.
bool chip(const Context& context, const char* id, std::string_view label, const ChipLook& look = {},
          float width = 0);

/// A row across the content that can be clicked, with what the pointer and the selection put behind it. Draw onto it with
/// `draw_cut` from `GetItemRectMin()` on. True when it was clicked.
bool row_button(const Context& context, const char* id, float height, bool selected);

/// Begins the popup `id`, if it is open, under a chip that began at `chip` and is `width` wide: at its left edge, in the right half of
/// the window at its right edge. As ImGui::BeginPopup.
bool begin_menu(const Context& context, const char* id, ImVec2 chip, float width);

/// Draws one line of text at `at`, cut to `width` pixels with `…`. True when it was cut: show the whole on hover.
bool draw_cut(ImDrawList& draw, ImVec2 at, ImU32 color, std::string_view value, float width);
/// As draw_cut, but the text ends at `right`. Never cut.
void draw_right(ImDrawList& draw, float right, float y, ImU32 color, std::string_view value);
/// ✓ or ✗, drawn rather than written, so that both are crisp and equally large; as high as a small letter's line.
void draw_verdict(const Context& context, ImDrawList& draw, ImVec2 centre, ImU32 color, bool accepted);

/// The window's tooltip for the last item, wrapped; nothing for an empty text.
void tip(const Context& context, std::string_view value);
/// A line of a tooltip: `d63 ✗ add (+2) × add_1`.
void decision_line(const Context& context, schedule::DecisionId id, bool accepted, ImU32 color,
                   std::string_view subject);
/// Whether the last item is to show its tooltip.
bool wants_tip();
/// Begins a wrapped tooltip; end it with ImGui::EndTooltip.
void begin_tip(const Context& context);

/// A heading within a panel: small and dim, a value at its right end, a thin line under it.
void heading(const Context& context, std::string_view title, std::string_view value = {});
/// Puts the next item beside the last one if `width` pixels are left there, else on a new line.
void flow(float width, float gap);

/// `the start` or `d63`: the last decision that holds when `position` do.
std::string place_text(std::size_t position);

}  // namespace pallascope::views
