// Room: views. The first look: verdict, counts, missed fusions, wasteful accesses.
#pragma once

#include <string_view>

#include "app/views/context.h"

namespace pallascope::views {

class SummaryPanel {
 public:
  /// Draws into the current ImGui window.
  void draw(Context& context);

 private:
  void draw_head(Context& context, const model::SummaryView& view);
  void draw_figures(Context& context, const model::SummaryView& view);
  void draw_missed(Context& context, const model::SummaryView& view);
  void draw_accesses(Context& context, const model::SummaryView& view);
  void draw_rest(Context& context, const model::SummaryView& view);
  /// A row that says how many more there are, and shows those of `listed` when clicked. `rest`: where the others are.
  void draw_more(Context& context, const char* id, std::size_t listed, std::size_t count, std::size_t folded,
                 bool& all, std::string_view rest);

  const void* shown_ = nullptr;  ///< the program of the last frame: another one starts folded
  bool all_missed_ = false, all_wasteful_ = false, all_copies_ = false;
};

}  // namespace pallascope::views
