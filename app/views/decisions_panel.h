// Room: views. The list of decisions, filtered and sorted.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "app/model/decision_rows.h"
#include "app/views/context.h"

namespace pallascope::views {

class DecisionsPanel {
 public:
  /// Draws into the current ImGui window, whose padding is 0.
  void draw(Context& context);

 private:
  void follow(Context& context, const workspace::Scene& scene);
  void draw_search(Context& context);
  void draw_filters(Context& context);
  void draw_node_filter(Context& context);
  void draw_list(Context& context);
  void draw_row(Context& context, std::size_t position, float height, float id_width);
  void draw_nothing(Context& context);
  void keys(Context& context, bool from_field);
  void show_tip(Context& context, const model::DecisionRow& row);
  [[nodiscard]] std::optional<std::size_t> selected_position(const Context& context) const;
  void select_position(Context& context, std::size_t position);
  void clear_filter();

  std::shared_ptr<const model::DecisionIndex> index_;
  std::optional<model::DecisionList> list_;
  model::DecisionFilter filter_;
  std::array<char, 128> text_{};
  std::uint64_t selection_number_ = 0;
  std::size_t shown_position_ = 0;  ///< where the program stood in the last frame
  bool reveal_ = true;              ///< the selected row must come into view
  std::size_t page_ = 10;           ///< rows in view, for Page up and down
};

}  // namespace pallascope::views
