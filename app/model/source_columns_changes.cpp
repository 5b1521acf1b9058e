// What changed between the columns of two snapshots: chunks are matched first, then the lines of the rest.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>

#include "app/model/source_columns.h"
#include "core/report/diff.h"

namespace pallascope::model {
namespace {

using Keys = std::vector<std::uint64_t>;
/// Which places of two sequences are the same, ascending in both.
using Matches = std::vector<std::pair<std::size_t, std::size_t>>;

/// Edits that the search goes through before it gives up and finds nothing more: 1,000 rows of up to 2,001 numbers are
/// 4 MB and about 3 ms. Keys that only one side has are left out before, so that steps need a few dozen.
constexpr std::ptrdiff_t edit_limit = 1000;

/// Matches of what is left after equal ends and one-sided keys are gone: places `a` of `before` and `b` of `after`.
/// Leaving out a key that the other side lacks changes no longest common subsequence.
void search(const Keys& before, const Keys& after, const std::vector<std::size_t>& a, const std::vector<std::size_t>& b, Matches& found) {
  Keys left, right;
  for (const std::size_t place : a) left.push_back(before[place]);
  for (const std::size_t place : b) right.push_back(after[place]);
  for (const auto& [x, y] : report::common_subsequence(left, right, edit_limit)) found.emplace_back(a[x], b[y]);
}

Matches match(const Keys& before, const Keys& after) {
  Matches found;
  const std::size_t most = std::min(before.size(), after.size());
  std::size_t head = 0, tail = 0;
  while (head < most && before[head] == after[head]) ++head;
  while (tail < most - head && before[before.size() - 1 - tail] == after[after.size() - 1 - tail]) ++tail;
  for (std::size_t k = 0; k < head; ++k) found.emplace_back(k, k);
  std::unordered_map<std::uint64_t, unsigned> sides;  // bit 0: in `before`, bit 1: in `after`
  for (std::size_t k = head; k < before.size() - tail; ++k) sides[before[k]] |= 1U;
  for (std::size_t k = head; k < after.size() - tail; ++k) sides[after[k]] |= 2U;
  std::vector<std::size_t> a, b;
  for (std::size_t k = head; k < before.size() - tail; ++k)
    if (sides[before[k]] == 3U) a.push_back(k);
  for (std::size_t k = head; k < after.size() - tail; ++k)
    if (sides[after[k]] == 3U) b.push_back(k);
  search(before, after, a, b, found);
  for (std::size_t k = tail; k-- > 0;) found.emplace_back(before.size() - 1 - k, after.size() - 1 - k);
  return found;
}

/// Goes through both sides in order and notes what is not the same.
class Marker {
 public:
  void same(std::size_t line) {
    if (removed_ > 0) marks_.push_back({line, LineFlag::same, removed_});
    removed_ = changeable_ = 0;
  }
  void removed(std::size_t lines) {
    removed_ += static_cast<int>(lines);
    changeable_ += static_cast<int>(lines);
  }
  void added(std::size_t line) {
    marks_.push_back({line, changeable_ > 0 ? LineFlag::changed : LineFlag::added, std::exchange(removed_, 0)});
    changeable_ = std::max(0, changeable_ - 1);
  }
  [[nodiscard]] bool is_clear() const { return removed_ == 0 && changeable_ == 0; }
  [[nodiscard]] int left() const { return removed_; }
  std::vector<Lines::Mark> take() { return std::move(marks_); }

 private:
  std::vector<Lines::Mark> marks_;
  int removed_ = 0, changeable_ = 0;
};

using Chunks = std::vector<Lines::Chunk>;

Keys chunk_keys(const Chunks& chunks) {
  Keys keys;
  for (const Lines::Chunk& c : chunks) keys.push_back(c.block && c.block->is_head ? 0 : c.hash());
  return keys;
}

Keys line_keys(const Chunks& chunks, std::size_t first, std::size_t end) {
  Keys keys;
  for (std::size_t c = first; c < end; ++c)
    for (std::size_t k = 0; k < chunks[c].size(); ++k) keys.push_back(std::hash<std::string_view>{}(chunks[c].text(k)));
  return keys;
}

/// Chunks first .. end of each side, of which no chunk has a match.
void mark_run(const Chunks& before, std::size_t old_first, std::size_t old_end, const Chunks& after, std::size_t first,
              std::size_t end, Marker& marker) {
  const Keys old_keys = line_keys(before, old_first, old_end), keys = line_keys(after, first, end);
  const std::size_t base = first < end ? after[first].first : 0;
  std::size_t i = 0, j = 0;
  const auto up_to = [&](std::size_t old_line, std::size_t line) {
    marker.removed(old_line - i);
    for (; j < line; ++j) marker.added(base + j);
    i = old_line;
  };
  for (const auto& [old_line, line] : match(old_keys, keys)) {
    up_to(old_line, line);
    marker.same(base + line);
    i = old_line + 1;
    j = line + 1;
  }
  up_to(old_keys.size(), keys.size());
}

}  // namespace

void mark_changes(SourceColumns& after, const SourceColumns& before) {
  for (const ColumnKind kind : column_kinds) {
    const Chunks &old_chunks = before[kind].lines.chunks(), &chunks = after[kind].lines.chunks();
    Marker marker;
    std::size_t i = 0, j = 0;
    for (const auto& [old_chunk, chunk] : match(chunk_keys(old_chunks), chunk_keys(chunks))) {
      if (i < old_chunk || j < chunk) mark_run(old_chunks, i, old_chunk, chunks, j, chunk, marker);
      if (old_chunks[old_chunk].hash() == chunks[chunk].hash()) {
        // What stood before the chunk is said of its first line; the others have nothing to say.
        if (!marker.is_clear() && chunks[chunk].size() > 0) marker.same(chunks[chunk].first);
      } else {
        marker.removed(1);  // a kernel's head with another number
        marker.added(chunks[chunk].first);
      }
      i = old_chunk + 1;
      j = chunk + 1;
    }
    mark_run(old_chunks, i, old_chunks.size(), chunks, j, chunks.size(), marker);
    after[kind].removed_at_end = marker.left();
    after[kind].lines.set_marks(marker.take());
  }
}

}  // namespace pallascope::model
