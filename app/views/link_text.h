// Room: views. Text that is clicked: links to what is named, cut text, rows that flow over several lines.
#pragma once

#include <string_view>

#include "app/views/context.h"

namespace pallascope::views {

/// How many bytes of `value` fit into `width` pixels in the current font, never in the middle of a character.
std::size_t fitting(std::string_view value, float width);

/// One-line text as an item with an ID. With a selection it is a link: a click selects, the pointer over it marks what
/// it names in the other panels. Cut with `…` beyond `width` (whole on hover). True if it was clicked.
bool link(Context& context, const char* id, std::string_view value, const model::Selection& selection,
          ImU32 color, float width);

/// Text on a rounded field, as an item with an ID; a link as above. `outline`: a border in the text's colour.
bool chip(Context& context, const char* id, std::string_view value, const model::Selection& selection,
          ImU32 color, ImU32 fill, ImU32 outline, float width);
/// How wide `chip` makes it.
float chip_width(Context& context, std::string_view value);

/// Goes on at `at`, as if an item ended there: the cursor alone may not be moved beyond the last item.
void go_on_at(ImVec2 at);

/// Places pieces one after the other, in a new line where the next one does not fit.
class Flow {
 public:
  /// Begins at the cursor; lines are `width` pixels wide.
  explicit Flow(float width, float gap = 0, float line_gap = 2);
  /// Moves the cursor to where a piece of this width goes. False if it went to a new line.
  bool next(float width);
  /// What is left of the line, for a piece that may be cut.
  [[nodiscard]] float room() const;
  [[nodiscard]] float width() const { return width_; }

 private:
  ImVec2 start_;
  float x_ = 0, y_ = 0, width_ = 0, gap_ = 0, line_gap_ = 0, height_ = 0;
  bool first_ = true;
};

}  // namespace pallascope::views
