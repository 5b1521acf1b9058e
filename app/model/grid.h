// Room: model. Which of many rectangles lie in a window, without looking at all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pallascope::model {

struct Rectangle {
  float left = 0, top = 0, right = 0, bottom = 0;
  /// Also when they only share a border: edges of a graph may have no width.
  [[nodiscard]] bool touches(const Rectangle& other) const {
    return left <= other.right && other.left <= right && top <= other.bottom && other.top <= bottom;
  }
};

/// Immutable once made; made with the layout, asked once a frame.
class RectangleGrid {
 public:
  RectangleGrid() = default;
  explicit RectangleGrid(std::vector<Rectangle> items);

  /// Appends the numbers of the items that touch `window`, each once, in no order.
  void find(const Rectangle& window, std::vector<std::uint32_t>& found) const;
  [[nodiscard]] const Rectangle& item(std::size_t k) const { return items_[k]; }
  [[nodiscard]] std::size_t size() const { return items_.size(); }

 private:
  struct Cells {
    std::size_t left = 0, top = 0, right = 0, bottom = 0;  ///< the last ones included
  };
  [[nodiscard]] Cells cells_of(const Rectangle& r) const;

  std::vector<Rectangle> items_;
  Rectangle bounds_;
  std::size_t columns_ = 0, rows_ = 0;
  std::vector<std::uint32_t> starts_;  ///< per cell, where its items begin in `content_`; one more at the end
  std::vector<std::uint32_t> content_;
};

}  // namespace pallascope::model
