#include "app/model/strip.h"

#include <algorithm>
#include <cmath>

namespace pallascope::model {

Strip::Strip(const std::vector<Notability>& marks, float width)
    : decisions_(marks.size()), width_(std::max(width, 0.0F)) {
  if (marks.empty() || width_ < 1) return;
  const auto pixels = static_cast<std::size_t>(width_);
  const std::size_t slots = std::min(pixels, marks.size());
  const double slot_width = static_cast<double>(width_) / static_cast<double>(slots);
  ticks_.reserve(slots);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    Tick tick;
    tick.x = static_cast<float>(slot_width * static_cast<double>(slot));
    tick.width = static_cast<float>(slot_width);
    tick.first = slot * marks.size() / slots;
    tick.last = (slot + 1) * marks.size() / slots - 1;
    tick.notable = tick.first;
    tick.notability = marks[tick.first];
    for (std::size_t k = tick.first; k <= tick.last; ++k) {
      if (marks[k] == Notability::refused) ++tick.refused;
      if (marks[k] == Notability::accepted) ++tick.accepted;
      if (marks[k] <= tick.notability) continue;
      tick.notability = marks[k];
      tick.notable = k;
    }
    ticks_.push_back(tick);
  }
}

Strip Strip::of(const DecisionIndex& index, float width) {
  std::vector<Notability> marks;
  marks.reserve(index.size());
  for (const DecisionRow& row : index.rows()) marks.push_back(row.notability);
  return {marks, width};
}

const Tick* Strip::tick_at(float x) const {
  if (ticks_.empty() || x < 0 || x >= width_) return nullptr;
  const auto slot = static_cast<std::size_t>(static_cast<double>(x) / static_cast<double>(width_) *
                                             static_cast<double>(ticks_.size()));
  return &ticks_[std::min(slot, ticks_.size() - 1)];
}

std::optional<std::size_t> Strip::decision_at(float x) const {
  const Tick* tick = tick_at(x);
  return tick == nullptr ? std::nullopt : std::optional(tick->notable);
}

std::size_t Strip::position_at(float x) const {
  if (width_ < 1) return decisions_;
  const double part = std::clamp(static_cast<double>(x) / static_cast<double>(width_), 0.0, 1.0);
  return static_cast<std::size_t>(std::lround(part * static_cast<double>(decisions_)));
}

float Strip::x_of_position(std::size_t position) const {
  if (decisions_ == 0) return 0;
  return static_cast<float>(static_cast<double>(width_) *
                            static_cast<double>(std::min(position, decisions_)) /
                            static_cast<double>(decisions_));
}

float Strip::x_of_decision(std::size_t decision) const {
  for (auto low = ticks_.begin(), high = ticks_.end(); low != high;) {
    const auto middle = low + (high - low) / 2;
    if (decision < middle->first) {
      high = middle;
    } else if (decision > middle->last) {
      low = middle + 1;
    } else {
      return middle->x + middle->width / 2;
    }
  }
  return width_;
}

}  // namespace pallascope::model
