// Room: views. Accesses in words and as a coloured grid.
#pragma once

#include <cstdint>

#include "app/views/context.h"

namespace pallascope::views {

class IndexPanel {
 public:
  /// Draws into the current ImGui window.
  void draw(Context& context);

 private:
  void draw_list(Context& context, const model::IndexView& view);
  void draw_detail(Context& context, const model::AccessRow& row, const model::AccessDetail& detail);
  void draw_axes(Context& context, const model::AccessDetail& detail);
  void draw_grid(Context& context, const model::AccessRow& row, const model::AccessDetail& detail);

  bool by_uses_ = false;                      ///< cells are shaded by how often, not by when they are touched
  const workspace::Detail* shown_ = nullptr;  ///< whose `operand_` is
  int operand_ = -1;            ///< the row that was clicked, where it is no access that can be selected
  std::uint64_t scrolled_ = 0;  ///< the selection that the list was scrolled to
};

}  // namespace pallascope::views
