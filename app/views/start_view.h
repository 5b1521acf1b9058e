// Room: views. The empty state; what was dropped.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/views/command_field.h"
#include "app/views/context.h"

namespace pallascope::views {

class StartView {
 public:
  /// Draws into the current ImGui window.
  void draw(Context& context);
  /// The question about a dropped .py, as a dialog over everything; nothing while none waits.
  void draw_question(Context& context);

 private:
  struct Row {  ///< of the recent files, as it is drawn
    std::string name, where;
  };
  void draw_title(Context& context, float width);
  void draw_examples(Context& context, float width);
  void draw_recent(Context& context, float width);
  void draw_drop(Context& context, float width);
  void open_typed(Context& context, std::string typed);

  CommandField path_;
  int shown_in_frame_ = -1;  ///< the last frame in which it was drawn
  std::vector<Row> rows_;    ///< made of recent_of_
  std::vector<workspace::RecentFile> recent_of_;
  // The question.
  std::string asked_;  ///< the file that it is about; empty while it is closed
  std::string function_, specs_;
  std::shared_ptr<const workspace::PythonFile> definitions_;
};

/// The first word of `specs` that is not a dtype with sizes (`f32[8,128]`, `i64[]`); empty when all are.
std::string_view wrong_spec(std::string_view specs);

}  // namespace pallascope::views
