// Room: model. What a view of the linked columns needs besides their lines: kernels and files, folds, widths, counts.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "app/model/source_columns.h"

namespace pallascope::model {

/// Lines first .. end (exclusive) of a column that have a name: a kernel with all that calls it, a file, a function.
struct Section {
  std::size_t first = 0, end = 0;
  std::string name;           ///< `pallas_fused_add_6438b9d3`; of a file its path
  std::string ids;            ///< `k3`, or `k3, k7` where equal kernels share one text; empty for no kernel
  schedule::KernelId kernel;  ///< the first of them
  bool whole = true;          ///< of a file: the trace holds its text, not only lines out of stack traces
};

/// Lines first .. end (exclusive) that are folded at first: they are the same in every program, or follow from a kernel.
struct Fold {
  std::size_t first = 0, end = 0;
  std::string key;             ///< the same for the same lines after a step
  std::string title;           ///< `imports and helpers`, `_call, _jit, _main`
  int added = 0, removed = 0;  ///< lines in it that a step added (or changed), and removed
};

struct ColumnOutline {
  std::vector<Section> sections;  ///< ascending and apart
  std::vector<Fold> folds;        ///< ascending and apart
  std::size_t widest = 0;         ///< code points of the longest line
  int last_number = 0;            ///< the greatest line number
  int added = 0, removed = 0;     ///< as a diff counts them: a changed line is one of each
  std::optional<std::size_t>
      first_change;  ///< the first line that is flagged, or before which lines are gone
};

struct SourceOutline {
  std::array<ColumnOutline, 3> columns;  ///< in the order of ColumnKind
  std::string letters;  ///< access classes that occur in the columns, in the order of the classes
  bool stores = false,
       on_value = false;  ///< whether a store occurs, and a load of a value made in the same kernel
  [[nodiscard]] const ColumnOutline& operator[](ColumnKind kind) const {
    return columns[static_cast<std::size_t>(kind)];
  }
};

/// `columns` must be of `snapshot`, with its changes marked.
SourceOutline source_outline(const session::Compilation& compilation, const session::Snapshot& snapshot,
                             const SourceColumns& columns);

/// The section that holds `line`, or null.
const Section* section_at(const ColumnOutline& outline, std::size_t line);

/// Where line `old` of the text before a step is now, or the line that stands where it stood. `after` is marked
/// against that text.
std::size_t line_after(const Column& after, std::size_t old);
/// Where line `now` of a marked column was before the step, or where it would have stood.
std::size_t line_before(const Column& after, std::size_t now);

/// How many lines were removed before `line` without another in their place.
int only_removed_before(const Column& column, std::size_t line);

/// What stands on a row: a line, or the head of a fold.
struct FoldedRow {
  std::size_t line = 0;  ///< of a head, the first line of its fold
  int fold = -1;         ///< position in the folds, of a head only
  bool open = false;     ///< of a head: its lines are below it
};

/// Rows of a text some of whose folds are closed. Each fold has a head, whether open or closed.
class FoldedRows {
 public:
  /// `open`: one entry a fold.
  void set(std::size_t lines, const std::vector<Fold>& folds, const std::vector<bool>& open);
  [[nodiscard]] std::size_t size() const { return rows_; }
  /// `row` < size().
  [[nodiscard]] FoldedRow at(std::size_t row) const;
  /// The row of a line, or of the head of the closed fold that holds it. size() for a line beyond the text.
  [[nodiscard]] std::size_t row_of(std::size_t line) const;

 private:
  struct Run {
    std::size_t row = 0, line = 0,
                lines = 0;  ///< rows row .. row + lines - 1; of a head lines = lines of the fold
    int fold = -1;
    bool open = false;
  };
  std::vector<Run> runs_;
  std::size_t rows_ = 0, lines_ = 0;
};

}  // namespace pallascope::model
