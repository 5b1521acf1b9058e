// Room: model. The decision strip: all decisions as ticks in a row of pixels.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "app/model/decision_rows.h"

namespace pallascope::model {

/// One tick. It stands for decisions first .. last (numbers, inclusive), most of the time one.
struct Tick {
  float x = 0, width = 0;  ///< pixels from the strip's left edge
  std::size_t first = 0, last = 0;
  Notability notability = Notability::small;  ///< of the most notable one
  std::size_t notable = 0;                ///< the first decision that is that notable: what a click selects
  std::size_t refused = 0, accepted = 0;  ///< how many of them are notable so
};

/// Ticks of all decisions in `width` pixels. With fewer decisions than pixels, each has its own tick; with more, those
/// that fall into one pixel share one, and the most notable speaks for them: a refusal is never lost among thousands.
/// A position between decisions (how many hold) lies at the right edge of the last one that holds.
class Strip {
 public:
  Strip() = default;
  /// `marks`: one a decision, in order. `width` in pixels; nothing is drawn below 1.
  Strip(const std::vector<Notability>& marks, float width);
  static Strip of(const DecisionIndex& index, float width);

  [[nodiscard]] const std::vector<Tick>& ticks() const { return ticks_; }
  [[nodiscard]] float width() const { return width_; }
  [[nodiscard]] std::size_t decisions() const { return decisions_; }
  /// What a click selects: the tick's most notable decision. Nothing outside of the strip or without decisions.
  [[nodiscard]] std::optional<std::size_t> decision_at(float x) const;
  [[nodiscard]] const Tick* tick_at(float x) const;
  /// For dragging: how many decisions hold with the marker at x, 0 .. decisions(). Outside of the strip, its ends.
  [[nodiscard]] std::size_t position_at(float x) const;
  /// Where the marker of `position` stands; the centre of a decision's tick.
  [[nodiscard]] float x_of_position(std::size_t position) const;
  [[nodiscard]] float x_of_decision(std::size_t decision) const;

 private:
  std::vector<Tick> ticks_;
  std::size_t decisions_ = 0;
  float width_ = 0;
};

}  // namespace pallascope::model
