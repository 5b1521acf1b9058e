// Room: model. Go to anything: a fuzzy search over nodes, kernels, buffers, decisions, source lines, commands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/model/selection.h"
#include "core/session/compilation.h"

namespace pallascope::model {

/// In the order that breaks ties.
enum class SearchKind : std::uint8_t { node, group, kernel, decision, buffer, line, command };
std::string_view search_kind_name(SearchKind kind);

struct SearchItem {
  SearchKind kind = SearchKind::node;
  std::string text;      ///< what is matched and shown: `sum_2`, `k4 pallas_fused_add_…`, `model.py:42  x = x + 1`
  std::string detail;    ///< shown beside it, not matched
  Selection selection;   ///< where it leads; empty for a command
};

struct SearchHit {
  std::size_t item = 0;
  int score = 0;
  std::vector<std::uint32_t> positions;  ///< bytes of the text that matched, ascending, for emphasis
};

/// Items with what makes matching quick. Immutable.
class SearchIndex {
 public:
  explicit SearchIndex(std::vector<SearchItem> items);

  [[nodiscard]] const std::vector<SearchItem>& items() const { return items_; }
  /// The best `limit` items whose text holds the letters of each word of `query` in order (case does not matter).
  /// Whole matches rank first, then those at the start of a word (after `_`, `.`, a blank, a digit that begins), then
  /// letters side by side; shorter texts before longer ones, then the order of kinds and of the items. An empty query
  /// gives the first items in their order.
  [[nodiscard]] std::vector<SearchHit> find(std::string_view query, std::size_t limit) const;

 private:
  std::vector<SearchItem> items_;
  std::vector<std::string> lower_;
  std::vector<std::uint64_t> letters_;  ///< which of a-z, 0-9 and the rest a text has: most misses end here
};

/// Everything in a snapshot that has a name, and `commands` (whole lines to run or names, as the caller wants them).
std::vector<SearchItem> search_items(const session::Compilation& compilation, const session::Snapshot& snapshot,
                                     const std::vector<std::string>& commands);

}  // namespace pallascope::model
