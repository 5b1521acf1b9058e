#include "core/index/strides.h"

#include <algorithm>
#include <bit>

#include "core/index/arithmetic.h"

namespace pallascope::index {
namespace {

/// A set of small numbers that can be shifted onto itself.
class Bits {
 public:
  explicit Bits(std::int64_t size) : words_((static_cast<std::size_t>(size) + 63) / 64, 0) {}
  void set_first() { words_[0] |= 1U; }
  /// Adds every member plus `distance`.
  void add_shifted(std::int64_t distance) {
    const auto words = static_cast<std::size_t>(distance / 64);
    const auto bits = static_cast<unsigned>(distance % 64);
    for (std::size_t k = words_.size(); k-- > words;) {
      std::uint64_t moved = words_[k - words] << bits;
      if (bits != 0 && k > words) moved |= words_[k - words - 1] >> (64 - bits);
      words_[k] |= moved;
    }
  }
  [[nodiscard]] std::int64_t count() const {
    std::int64_t total = 0;
    for (const std::uint64_t word : words_) total += std::popcount(word);
    return total;
  }

 private:
  std::vector<std::uint64_t> words_;
};

std::int64_t span_of(const std::vector<SubAxis>& parts, std::size_t first, std::size_t last) {
  std::int64_t span = 0;
  for (std::size_t k = first; k < last; ++k) {
    span = saturating_add(span, saturating_multiply(parts[k].stride, parts[k].extent - 1));
  }
  return span;
}

std::int64_t points_of(const std::vector<SubAxis>& parts) {
  std::int64_t points = 1;
  for (const SubAxis& part : parts) points = saturating_multiply(points, part.extent);
  return points;
}

/// Values of a set that does not fall apart. Strides positive, ascending.
std::pair<std::int64_t, bool> count_entangled(std::vector<SubAxis> parts) {
  std::int64_t common = 0;
  for (const SubAxis& part : parts) common = gcd(common, part.stride);
  for (SubAxis& part : parts) part.stride /= common;

  // Without a hole: each stride reaches at most one past what the smaller ones cover.
  std::int64_t covered = 0;
  bool dense = true;
  for (const SubAxis& part : parts) {
    dense = dense && part.stride <= covered + 1;
    covered = saturating_add(covered, saturating_multiply(part.stride, part.extent - 1));
  }
  const std::int64_t positions = saturating_add(covered, 1);
  if (dense) return {positions, true};

  // Two strides s < t, gcd 1: (x, y) and (x - t, y + s) are one value, so a value's first point is one that has no
  // predecessor in the box.
  if (parts.size() == 2) {
    const std::int64_t repeated =
        saturating_multiply(std::max<std::int64_t>(parts[0].extent - parts[1].stride, 0),
                            std::max<std::int64_t>(parts[1].extent - parts[0].stride, 0));
    return {points_of(parts) - repeated, true};
  }

  // Few positions: mark them. 2^16 positions are 8 KiB; the limit bounds the work and was not measured.
  constexpr std::int64_t most_positions = std::int64_t{1} << 16;
  if (positions <= most_positions) {
    Bits touched(positions);
    touched.set_first();
    for (const SubAxis& part : parts) {
      // Doubling: with x < done covered, one shift by done*stride covers x < 2*done.
      std::int64_t done = 1;
      while (done < part.extent) {
        const std::int64_t step = std::min(done, part.extent - done);
        touched.add_shifted(step * part.stride);
        done += step;
      }
    }
    return {touched.count(), true};
  }
  return {std::min(positions, points_of(parts)), false};
}

}  // namespace

Touched count_touched(std::vector<SubAxis> parts) {
  for (SubAxis& part : parts) part.stride = magnitude(part.stride);
  std::sort(parts.begin(), parts.end(),
            [](const SubAxis& a, const SubAxis& b) { return a.stride < b.stride; });
  Touched result;
  result.points = points_of(parts);
  const auto multiply = [&](std::pair<std::int64_t, bool> more) {
    result.distinct = saturating_multiply(result.distinct, more.first);
    result.exact = result.exact && more.second;
  };
  while (!parts.empty()) {
    // A stride beyond the span of all smaller ones: each of its steps touches its own elements.
    const std::size_t count = parts.size();
    if (parts.back().stride > span_of(parts, 0, count - 1)) {
      multiply({parts.back().extent, true});
      parts.pop_back();
      continue;
    }
    // The larger strides are all multiples of a number beyond the span of the smaller ones: they fall apart there.
    std::size_t cut = 0;
    std::int64_t common = 0;
    for (std::size_t k = count; k-- > 1;) {
      common = gcd(common, parts[k].stride);
      if (common > span_of(parts, 0, k)) {
        cut = k;
        break;
      }
    }
    multiply(count_entangled({parts.begin() + static_cast<std::ptrdiff_t>(cut), parts.end()}));
    parts.resize(cut);
  }
  return result;
}

}  // namespace pallascope::index
