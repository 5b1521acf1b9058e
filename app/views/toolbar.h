// Room: views. Graph picker, host, target, Run & compare, progress.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "app/views/context.h"

namespace pallascope::views {

class Toolbar {
 public:
  /// Draws into the current ImGui window.
  void draw(Context& context);

 private:
  /// How much is left out, from 0 (nothing), where the window is narrow.
  struct Labels {
    std::string host, target, run;
  };
  [[nodiscard]] static Labels labels(const Context& context, int level);
  [[nodiscard]] static float right_width(const Context& context, const Labels& labels);
  void draw_left(Context& context, float width);
  void draw_graphs(Context& context, float width);
  void draw_open(Context& context, ImVec2 at);
  void draw_host(Context& context, const std::string& label);
  void draw_target(Context& context, const std::string& label);
  void draw_run(Context& context, const std::string& label, float height);
  void draw_progress(Context& context, float height);

  std::array<char, 1024> path_{};
  std::vector<std::string> candidates_;  ///< of the path typed, unquoted
  bool complete_ = false;                ///< `candidates_` must be made anew
  bool focus_path_ = false;
};

}  // namespace pallascope::views
