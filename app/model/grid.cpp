#include "app/model/grid.h"

#include <algorithm>
#include <cmath>

namespace pallascope::model {
namespace {

/// In which of `count` cells from `low` to `high` a coordinate lies; those outside in the nearest one.
std::size_t cell(float at, float low, float high, std::size_t count) {
  if (!(high > low)) return 0;
  const float part = (at - low) / (high - low) * static_cast<float>(count);
  return part <= 0 ? 0 : std::min(count - 1, static_cast<std::size_t>(part));
}

}  // namespace

RectangleGrid::RectangleGrid(std::vector<Rectangle> items) : items_(std::move(items)) {
  if (items_.empty()) return;
  bounds_ = items_.front();
  for (const Rectangle& r : items_) {
    bounds_.left = std::min(bounds_.left, r.left);
    bounds_.top = std::min(bounds_.top, r.top);
    bounds_.right = std::max(bounds_.right, r.right);
    bounds_.bottom = std::max(bounds_.bottom, r.bottom);
  }
  // About as many cells as items, and these about square. A long edge lies in many: bounded by the number of rows.
  const float width = std::max(bounds_.right - bounds_.left, 1.0F),
              height = std::max(bounds_.bottom - bounds_.top, 1.0F);
  const auto wanted = static_cast<float>(std::min<std::size_t>(items_.size(), 4096));
  columns_ = std::clamp<std::size_t>(static_cast<std::size_t>(std::sqrt(wanted * width / height)), 1, 256);
  rows_ = std::clamp<std::size_t>(static_cast<std::size_t>(wanted / static_cast<float>(columns_)), 1, 256);
  starts_.assign(columns_ * rows_ + 1, 0);
  const auto visit = [this](const Cells& cells, auto&& each) {
    for (std::size_t y = cells.top; y <= cells.bottom; ++y) {
      for (std::size_t x = cells.left; x <= cells.right; ++x) each(y * columns_ + x);
    }
  };
  for (const Rectangle& r : items_) visit(cells_of(r), [this](std::size_t at) { ++starts_[at + 1]; });
  for (std::size_t k = 1; k < starts_.size(); ++k) starts_[k] += starts_[k - 1];
  content_.resize(starts_.back());
  std::vector<std::uint32_t> next(starts_.begin(), starts_.end() - 1);
  for (std::size_t k = 0; k < items_.size(); ++k)
    visit(cells_of(items_[k]), [&](std::size_t at) { content_[next[at]++] = static_cast<std::uint32_t>(k); });
}

RectangleGrid::Cells RectangleGrid::cells_of(const Rectangle& r) const {
  return {cell(r.left, bounds_.left, bounds_.right, columns_),
          cell(r.top, bounds_.top, bounds_.bottom, rows_),
          cell(r.right, bounds_.left, bounds_.right, columns_),
          cell(r.bottom, bounds_.top, bounds_.bottom, rows_)};
}

void RectangleGrid::find(const Rectangle& window, std::vector<std::uint32_t>& found) const {
  if (items_.empty() || !window.touches(bounds_)) return;
  if (window.left <= bounds_.left && window.top <= bounds_.top && window.right >= bounds_.right &&
      window.bottom >= bounds_.bottom) {
    for (std::size_t k = 0; k < items_.size(); ++k) found.push_back(static_cast<std::uint32_t>(k));
    return;
  }
  const Cells seen = cells_of(window);
  for (std::size_t y = seen.top; y <= seen.bottom; ++y) {
    for (std::size_t x = seen.left; x <= seen.right; ++x) {
      const std::size_t at = y * columns_ + x;
      for (std::uint32_t k = starts_[at]; k < starts_[at + 1]; ++k) {
        const std::uint32_t item = content_[k];
        if (!items_[item].touches(window)) continue;
        // An item of several cells is named by the first of them that is seen.
        const Cells own = cells_of(items_[item]);
        if (std::max(own.left, seen.left) == x && std::max(own.top, seen.top) == y) found.push_back(item);
      }
    }
  }
}

}  // namespace pallascope::model
