// Room: views. The REPL of the terminal: what was said, and the line to type into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "app/views/command_field.h"
#include "app/views/context.h"
#include "app/views/text_rows.h"

namespace pallascope::views {

class ReplPanel {
 public:
  /// Draws into the current ImGui window.
  void draw(Context& context);

 private:
  void take_transcript(Context& context, float width);
  void draw_prompt(Context& context);
  void draw_find(Context& context);
  float draw_busy(Context& context, float right);

  TextRows rows_;
  CommandField field_;
  bool find_open_ = false, find_focus_ = false, find_active_ = false;
  std::string find_;
  std::size_t found_ = 0;  ///< rows, when the transcript was at counted_number_
  std::uint64_t counted_number_ = 0;
  std::uint64_t taken_number_ = 0;  ///< of the transcript, as it is in rows_
  std::uint64_t taken_end_ = 0;     ///< entries below are in rows_
  std::uint64_t cleared_ = 0;       ///< entries below are not shown any more
};

}  // namespace pallascope::views
