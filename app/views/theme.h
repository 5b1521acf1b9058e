// Room: views. Colours, fonts and measures: every panel takes them from here, none has its own.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <imgui.h>

#include "app/model/highlight.h"

namespace pallascope::views {

/// One palette. Colours are as ImGui takes them. Signs and shapes say the same as colours everywhere.
struct Theme {
  bool dark = true;
  // Surfaces, from the back.
  ImU32 backdrop = 0, panel = 0, raised = 0, field = 0, border = 0, border_strong = 0;
  // Text.
  ImU32 text = 0, text_dim = 0, text_faint = 0, text_on_accent = 0;
  // State.
  ImU32 accent = 0, accent_soft = 0;  ///< the selection, the primary button; behind selected text
  ImU32 hover = 0;                    ///< behind what the pointer is over
  ImU32 linked = 0;                   ///< behind lines that belong to the selection
  ImU32 accepted = 0, refused = 0, small = 0, changed = 0, added = 0, removed = 0;
  ImU32 passed = 0, warning = 0, error = 0;
  ImU32 error_soft = 0, warning_soft = 0, passed_soft = 0;  ///< behind text
  // Graph.
  ImU32 canvas = 0, box = 0, box_border = 0, view_box = 0, library_box = 0, torch_box = 0, input_box = 0;
  ImU32 group = 0, group_border = 0, kernel = 0, kernel_border = 0, edge = 0, edge_strong = 0;

  /// Of an access class by its letter (C B P S s R O G X); `text_faint` for another.
  [[nodiscard]] ImU32 access(char letter) const;
  [[nodiscard]] ImU32 syntax(model::SyntaxKind kind) const;

  std::array<ImU32, 9> access_colors{};
  std::array<ImU32, 16> syntax_colors{};
};

Theme dark_theme();
Theme light_theme();
/// `color` with `alpha` (0 to 1) times its own.
ImU32 faded(ImU32 color, float alpha);
/// Between two colours, channel by channel.
ImU32 mixed(ImU32 from, ImU32 to, float share);

/// Fonts of the context; sizes in points of an unscaled display.
struct Fonts {
  ImFont* ui = nullptr;
  ImFont* bold = nullptr;
  ImFont* mono = nullptr;
  ImFont* mono_bold = nullptr;
  float ui_size = 14, small_size = 12.5F, title_size = 16, mono_size = 13;
};

/// Loads the fonts that CMake found, or ImGui's own where a file is gone (see `problem`). Once a context.
Fonts load_fonts();
/// Which font files could not be read, as a sentence; empty when all could.
std::string_view font_problem();
/// Sets ImGui's and ImPlot's style. `scale`: 1 for a display of 96 dots an inch.
void apply_style(const Theme& theme, float scale);

}  // namespace pallascope::views
