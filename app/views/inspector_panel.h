// Room: views. Everything about the selected thing.
#pragma once

#include <map>
#include <string>

#include "app/views/context.h"

namespace pallascope::views {

/// Sections fold; folds are kept by the section's title. A row is the item `##row:<label>` in the ID of its section's
/// title; `##copy` copies the name.
class InspectorPanel {
 public:
  /// Draws into the current ImGui window.
  void draw(Context& context);

 private:
  void draw_head(Context& context, const model::Inspector& inspector);
  bool draw_section_title(Context& context, const model::InspectorSection& section);
  void draw_row(Context& context, const model::InspectorRow& row, float label_width);
  void draw_list(Context& context, const model::InspectorSection& section);
  void draw_list_row(Context& context, const model::InspectorRow& row, float label_width, float width);

  std::map<std::string, bool, std::less<>> folded_;  ///< what a person folded or opened
  model::Selection shown_;                           ///< what stood here in the last frame
};

}  // namespace pallascope::views
