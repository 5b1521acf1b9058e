// Room: views. The tag of a load or store in a gutter, and what it says on hover.
#pragma once

#include "app/model/source_columns.h"
#include "app/views/code_text.h"
#include "app/views/context.h"

namespace pallascope::views {

/// How a tag looks. A load is a rounded field; a store points to the right; a load of a value made in the same kernel
/// is an outline, since it reads no memory.
struct AccessTag {
  char letter = ' ';
  bool store = false, on_value = false;
  bool strong = false;  ///< under the pointer
};
/// Draws a tag that fills `min` .. `max`.
void draw_access_tag(ImDrawList& draw, const MonoMetrics& mono, const Theme& theme, ImVec2 min, ImVec2 max,
                     AccessTag tag);

/// A tooltip with the class, the index expression and its axes, strides and bytes of the access on a line of the scene.
void access_tooltip(const Context& context, const model::SourceLine& line);

}  // namespace pallascope::views
