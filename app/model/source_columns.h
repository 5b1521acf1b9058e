// Room: model. The linked columns: the model's Python, the loops, the Pallas module; line by line, with origins.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/model/selection.h"
#include "core/session/compilation.h"

namespace pallascope::model {

enum class ColumnKind : std::uint8_t { model, loops, pallas };
inline constexpr std::array<ColumnKind, 3> column_kinds{ColumnKind::model, ColumnKind::loops, ColumnKind::pallas};
/// `model`, `loops`, `pallas`.
std::string_view column_name(ColumnKind kind);

enum class LineKind : std::uint8_t {
  code,
  file,  ///< the name of the file that the next lines are of
  gap,   ///< lines that the trace does not hold
};
/// Against another snapshot. `changed`: stands where another line stood; `added`: stands where none did.
enum class LineFlag : std::uint8_t { same, added, changed };

struct SourceLine {
  LineKind kind = LineKind::code;
  int number = 0;        ///< in its file (model), module (pallas) or the column (loops); 0 for none
  std::string text;
  char letter = ' ';     ///< access class of the load or store on the line: C B P S s R O G X
  bool store = false;
  bool on_value = false; ///< the load reads a value made in the same kernel, so no memory
  // What made the line. Invalid where it does not apply.
  schedule::KernelId kernel;
  loop::NestId nest;
  int statement = -1;
  int access = -1;       ///< in Module::accesses
  std::vector<trace::NodeId> nodes;  ///< ascending; a model line makes several
  LineFlag flag = LineFlag::same;
  int removed_before = 0;  ///< lines of the other snapshot that stood before this one and are gone
};

struct Column {
  ColumnKind kind = ColumnKind::model;
  std::vector<SourceLine> lines;
  int removed_at_end = 0;
};

struct SourceColumns {
  std::array<Column, 3> columns;  ///< in the order of ColumnKind
  [[nodiscard]] const Column& operator[](ColumnKind kind) const { return columns[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] Column& operator[](ColumnKind kind) { return columns[static_cast<std::size_t>(kind)]; }
};

/// All three columns of a snapshot. The model's lines come from the sources that the trace holds; of a file without
/// text, from the frames of the nodes, with gaps between. A node belongs to the line of its innermost frame outside
/// torch.
///
/// Every load and store of the loops column has its class, also one that the kernel does not make (a value that stays
/// in the kernel, a load that another nest has made). That asks the index analysis, which is not thread-safe: make
/// columns on the thread that makes snapshots, or while none is made.
SourceColumns source_columns(const session::Compilation& compilation, const session::Snapshot& snapshot);

/// Lines of one column that belong to a selection, ascending, and the one to scroll to.
struct LinkedLines {
  std::vector<std::size_t> lines;
  std::optional<std::size_t> focus;
  [[nodiscard]] bool contains(std::size_t line) const;
};
struct LinkedColumns {
  std::array<LinkedLines, 3> columns;
  [[nodiscard]] const LinkedLines& operator[](ColumnKind kind) const { return columns[static_cast<std::size_t>(kind)]; }
};

/// The lines in every column that a selection belongs to. `columns` must be of `snapshot`.
///
/// A kernel whose text another one shares (equal kernels are written once) is linked to that text. A decision is
/// linked to the lines of the nodes on both sides; it scrolls to the load or store whose index expression it compared.
LinkedColumns linked(const session::Compilation& compilation, const session::Snapshot& snapshot, const SourceColumns& columns,
                     const Selection& selection);

/// What a click on a line selects: its access, else its statement or nest, else its node, else its kernel.
Selection selection_of(const SourceLine& line);

/// Flags the lines of `after` that are not in `before` (the same columns of another snapshot). Within one change, as
/// many lines as were removed count as changed, the rest as added.
void mark_changes(SourceColumns& after, const SourceColumns& before);

}  // namespace pallascope::model
