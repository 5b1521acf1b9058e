// Room: views. Figures of a comparison, and the picture of the difference.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "app/model/check_view.h"
#include "app/views/context.h"

namespace pallascope::views {

class CheckPanel {
 public:
  /// Draws into the current ImGui window.
  void draw(Context& context);

 private:
  static constexpr std::size_t column_count = 9;

  void take(const std::shared_ptr<const workspace::CheckRun>& run);
  void choose(int row, int mode);
  void follow(const Context& context);
  void measure(const Context& context);
  void draw_busy(Context& context) const;
  void draw_verdict(Context& context, bool current) const;
  void draw_table(Context& context, bool current, float height);
  void draw_row(Context& context, int index, bool current, const std::array<bool, column_count>& shown);
  void draw_chosen(Context& context, bool current);
  void draw_facts(Context& context, const model::CheckRow& row, const model::CheckFigures& figures,
                  bool current);
  void select_thing(Context& context, const model::CheckRow& row);

  std::shared_ptr<const workspace::CheckRun> run_;  ///< what the rest was made of
  model::CheckView view_;
  int row_ = -1, mode_ = 0;  ///< chosen: positions in `view_`
  std::optional<model::DifferencePicture> picture_;
  std::optional<model::DifferenceHistogram> histogram_;
  std::uint64_t followed_ = 0;                ///< the selection that the chosen row followed
  bool scroll_ = false;                       ///< to the chosen row, in the next frame
  float measured_ = 0;                        ///< the size of text that `widths_` is for
  std::array<float, column_count> widths_{};  ///< of the columns' widest texts, pixels
};

}  // namespace pallascope::views
