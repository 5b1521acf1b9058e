// Room: model. The linked columns: the model's Python, the loops, the Pallas module; line by line, with origins.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
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

/// The nodes of a line, ascending; a view of what the column holds.
struct LineNodes : std::span<const trace::NodeId> {
  using std::span<const trace::NodeId>::span;
  friend bool operator==(const LineNodes& a, const LineNodes& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
  friend bool operator==(const LineNodes& a, const std::vector<trace::NodeId>& b) { return a == LineNodes(b); }
};

/// A line as a column gives it; `text` and `nodes` are good as long as the column's lines.
struct SourceLine {
  LineKind kind = LineKind::code;
  int number = 0;        ///< in its file (model), module (pallas) or the column (loops); 0 for none
  std::string_view text;
  char letter = ' ';     ///< access class of the load or store on the line: C B P S s R O G X
  bool store = false;
  bool on_value = false; ///< the load reads a value made in the same kernel, so no memory
  // What made the line. Invalid where it does not apply.
  schedule::KernelId kernel = {};
  loop::NestId nest = {};
  int statement = -1;
  int access = -1;       ///< in Module::accesses
  LineNodes nodes = {};       ///< a model line makes several
  LineFlag flag = LineFlag::same;
  int removed_before = 0;  ///< lines of the other snapshot that stood before this one and are gone
};

/// The lines of a column: chunks that the columns of neighbouring decisions share (the model's source, a nest, a kernel
/// of the module), each with what is this decision's own: where it stands, its kernel's number, its accesses.
class Lines {
 public:
  /// Lines of the model or of the loops.
  struct Row {
    LineKind kind = LineKind::code;
    int number = 0;  ///< of a model line
    std::string text;
    char letter = ' ';
    bool store = false;
    loop::NestId nest;
    int statement = -1;
    trace::NodeId node;               ///< of a loops line
    std::vector<trace::NodeId> nodes; ///< of a model line
  };
  struct Block {
    std::vector<Row> rows;
    std::uint64_t hash = 0;  ///< of the texts
    bool is_head = false;    ///< `k12:`, the head of a kernel of the loops
    bool is_model = false;   ///< whose rows have numbers of their own
  };
  struct Chunk {
    std::size_t first = 0;                         ///< number of lines before it
    std::shared_ptr<const Block> block;            ///< one of these two
    std::shared_ptr<const codegen::Piece> piece;
    schedule::KernelId kernel;
    std::shared_ptr<const codegen::KernelPiece> source;  ///< whose accesses the lines are; may be none
    int first_access = 0;
    std::uint32_t first_statement = 0;             ///< of a nest's block, in source->access_of
    /// Whose lines all of a block are; invalid for anything else.
    [[nodiscard]] loop::NestId nest() const { return block && !block->rows.empty() ? block->rows.front().nest : loop::NestId(); }
    [[nodiscard]] std::size_t size() const { return block ? block->rows.size() : piece->size(); }
    [[nodiscard]] std::uint64_t hash() const { return block ? block->hash : piece->hash; }
    [[nodiscard]] std::string_view text(std::size_t k) const { return block ? std::string_view(block->rows[k].text) : piece->line(k); }
    [[nodiscard]] SourceLine line(std::size_t k) const;
  };
  /// What sets a line apart from the other snapshot's.
  struct Mark {
    std::size_t line = 0;
    LineFlag flag = LineFlag::same;
    int removed_before = 0;
  };

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// O(log chunks).
  [[nodiscard]] SourceLine operator[](std::size_t line) const;
  [[nodiscard]] SourceLine at(std::size_t line) const {
    if (line >= size_) throw std::out_of_range("Lines");
    return (*this)[line];
  }

  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = SourceLine;
    using reference = SourceLine;
    using pointer = void;
    using iterator_category = std::input_iterator_tag;
    Iterator(const Lines* lines, std::size_t line) : lines_(lines), line_(line) {}
    SourceLine operator*() const { return (*lines_)[line_]; }
    Iterator& operator++() {
      ++line_;
      return *this;
    }
    Iterator operator++(int) { return {lines_, line_++}; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const Lines* lines_;
    std::size_t line_;
  };
  [[nodiscard]] Iterator begin() const { return {this, 0}; }
  [[nodiscard]] Iterator end() const { return {this, size_}; }

  [[nodiscard]] const std::vector<Chunk>& chunks() const { return chunks_; }
  [[nodiscard]] const std::vector<Mark>& marks() const { return marks_; }
  void add(Chunk chunk);
  /// Ascending by line.
  void set_marks(std::vector<Mark> marks) { marks_ = std::move(marks); }

 private:
  std::vector<Chunk> chunks_;
  std::vector<Mark> marks_;
  std::size_t size_ = 0;
};

struct Column {
  ColumnKind kind = ColumnKind::model;
  Lines lines;
  int removed_at_end = 0;
};

/// Blocks that columns of one compilation have made, for the next ones.
struct ColumnCache;

struct SourceColumns {
  std::array<Column, 3> columns;  ///< in the order of ColumnKind
  std::shared_ptr<const loop::Program> program;  ///< whose accesses the lines name: columns may outlive their snapshot
  std::shared_ptr<ColumnCache> cache;
  [[nodiscard]] const Column& operator[](ColumnKind kind) const { return columns[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] Column& operator[](ColumnKind kind) { return columns[static_cast<std::size_t>(kind)]; }
};

/// All three columns of a snapshot. The model's lines come from the sources that the trace holds; of a file without
/// text, from the frames of the nodes, with gaps between. A node belongs to the line of its innermost frame outside
/// torch.
///
/// Every load and store of the loops column has its class, also one that the kernel does not make (a value that stays
/// in the kernel, a load that another nest has made). That asks the index analysis, which is not thread-safe: make
/// columns on the thread that makes snapshots, or while none is made. What comes out may be read anywhere.
///
/// With `previous` (columns of any snapshot of the same compilation) what both share is not made again; the result is
/// the same. Columns that come from one another share a cache: make them on one thread.
SourceColumns source_columns(const session::Compilation& compilation, const session::Snapshot& snapshot,
                             const SourceColumns* previous = nullptr);

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
///
/// Chunks are matched first, then the lines of those that found no match. Worked example, of the loops: k3 [mul] and
/// k4 [add] become k3 [mul add], and every later kernel's number falls by one. All nests match and so do all heads but
/// one, for a head matches any head; `k4:` before [add] is removed, and the heads whose numbers fell are changed.
void mark_changes(SourceColumns& after, const SourceColumns& before);

}  // namespace pallascope::model
