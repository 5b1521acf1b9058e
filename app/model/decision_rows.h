// Room: model. The Decisions list: rows made once, filtered and sorted as a person types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/session/compilation.h"

namespace pallascope::model {

/// How much a decision asks for attention; a later one wins where several share a place.
enum class Notability : std::uint8_t {
  small,     ///< an operator lowered, a producer kept: hidden until asked for
  accepted,  ///< inlined or fused
  refused,   ///< a fusion refused, an operator left to PyTorch
};
Notability notability(const schedule::Decision& decision);

/// One row. Sides are short: `sum_2`, `sum_2 (+3)`; `right` is empty for an operator lowered.
struct DecisionRow {
  schedule::DecisionId id;
  schedule::DecisionKind kind = schedule::DecisionKind::lower;
  schedule::Reason reason = schedule::Reason::lowered_to_kernel;
  bool accepted = false;
  Notability notability = Notability::small;
  /// A refused fusion whose sides did not come together by another way, and that would have saved bytes. Never one at
  /// a library or torch call: nobody can do anything about that.
  bool missed = false;
  bool boundary = false;  ///< a fusion refused because one side is a library or torch call
  std::int64_t bytes_saved = 0;
  std::string left, right;

  /// `✓`, `✗`.
  [[nodiscard]] std::string_view glyph() const { return accepted ? "✓" : "✗"; }
  /// `×` between the sides of a fusion, `→` from a producer to its consumers; empty for an operator lowered.
  [[nodiscard]] std::string_view sign() const;
  /// `common grid`.
  [[nodiscard]] std::string reason_text() const;
  /// `add (+2) × add_1`.
  [[nodiscard]] std::string subject() const;
};

/// How many decisions were given a reason: for picking one.
struct ReasonRows {
  schedule::Reason reason = schedule::Reason::lowered_to_kernel;
  schedule::DecisionKind kind = schedule::DecisionKind::lower;
  bool accepted = false;
  std::size_t count = 0;
};
/// Where the decisions of one pass stand: first .. last, inclusive.
struct PassRows {
  schedule::DecisionKind kind = schedule::DecisionKind::lower;
  std::size_t first = 0, last = 0;
};

/// All rows of a log with what filtering needs. Immutable: a worker makes it, views share it.
class DecisionIndex {
 public:
  /// Rows of `compilation`, whose decisions are also asked for the nodes that they name.
  explicit DecisionIndex(std::shared_ptr<const session::Compilation> compilation);
  /// Rows that came from elsewhere; they name no nodes. Row k must be decision k.
  explicit DecisionIndex(std::vector<DecisionRow> rows);

  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] const DecisionRow& operator[](schedule::DecisionId id) const { return rows_.at(id.index()); }
  [[nodiscard]] const std::vector<DecisionRow>& rows() const { return rows_; }
  /// Missed fusions by bytes, refusals at library and torch calls by bytes, other refusals by bytes, what was accepted
  /// by bytes, small ones; then by number.
  [[nodiscard]] const std::vector<std::uint32_t>& by_missed() const { return by_missed_; }
  /// Every reason that was given: by pass, refused ones first, the most frequent first.
  [[nodiscard]] const std::vector<ReasonRows>& reasons() const { return reasons_; }
  /// Runs of decisions of one kind, in order; most programs have each pass once.
  [[nodiscard]] const std::vector<PassRows>& passes() const { return passes_; }
  /// Whether either side of a decision holds `node`.
  [[nodiscard]] bool names(schedule::DecisionId id, trace::NodeId node) const;
  /// For each row, whether its text (id, kind, verdict, sides, reason; not case-sensitive) holds every word of `text`.
  [[nodiscard]] std::vector<bool> matches(std::string_view text) const;
  [[nodiscard]] bool matches(schedule::DecisionId id, std::string_view lower_case_word) const;

 private:
  void finish();
  std::vector<DecisionRow> rows_;
  std::shared_ptr<const session::Compilation> compilation_;
  std::vector<std::uint32_t> by_missed_;
  std::vector<ReasonRows> reasons_;
  std::vector<PassRows> passes_;
  std::string text_;  ///< the rows' texts, lower case, one a line: one search finds all that match
  std::vector<std::size_t> starts_;  ///< where each row's text begins; one more than rows
};

enum class DecisionOrder : std::uint8_t { missed, number };

struct DecisionFilter {
  std::string text;  ///< words, all of which must be there
  std::optional<schedule::DecisionKind> kind;
  std::optional<schedule::Reason> reason;
  std::optional<trace::NodeId> node;
  std::optional<bool> accepted;
  bool small = false;  ///< small ones too; asking for a kind, reason or node shows them as well
  DecisionOrder order = DecisionOrder::missed;
  friend bool operator==(const DecisionFilter&, const DecisionFilter&) = default;
};

/// What the list shows: positions 0 .. size()-1, each a decision.
class DecisionList {
 public:
  explicit DecisionList(std::shared_ptr<const DecisionIndex> index, DecisionFilter filter = {});

  /// Filters anew; a text that only grew looks at the rows that are shown.
  void set_filter(DecisionFilter filter);
  [[nodiscard]] const DecisionFilter& filter() const { return filter_; }
  [[nodiscard]] const DecisionIndex& index() const { return *index_; }
  [[nodiscard]] std::size_t size() const { return shown_.size(); }
  [[nodiscard]] const DecisionRow& row(std::size_t position) const {
    return index_->rows()[shown_.at(position)];
  }
  [[nodiscard]] schedule::DecisionId id(std::size_t position) const { return row(position).id; }
  /// Ordered by number: how many of the rows shown hold when `position` decisions do. Meaningless in another order.
  [[nodiscard]] std::size_t rows_before(std::size_t position) const;
  /// Where a decision is shown, if it is.
  [[nodiscard]] std::optional<std::size_t> position(schedule::DecisionId id) const;
  /// The decision to select after the filter changed: `id` if it is shown, else the next shown one with a higher
  /// number, else the last; nothing in an empty list.
  [[nodiscard]] std::optional<schedule::DecisionId> nearest(schedule::DecisionId id) const;

 private:
  std::shared_ptr<const DecisionIndex> index_;
  DecisionFilter filter_;
  std::vector<std::uint32_t> shown_;
  std::vector<std::uint32_t> position_of_;  ///< one a decision; `hidden` where it is not shown
};

}  // namespace pallascope::model
