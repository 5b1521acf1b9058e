// Room: codegen. The Python module: one Pallas kernel a schedule kernel, the calls between them, the source map.
// Takes: a graph, its loop program and a schedule state.
// Gives: Module (text, source map, kernel list) to the session, the host and torch.compile.
// May use: base, trace, index, loop, target, schedule.
// Never: decides anything that the log does not hold, matches text to find what made a line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/index/access.h"
#include "core/loop/program.h"
#include "core/schedule/schedule.h"
#include "core/trace/graph.h"

namespace pallascope::codegen {

/// What one generated line came from. Invalid ids where it does not apply.
struct LineOrigin {
  schedule::KernelId kernel;
  loop::NestId nest;
  int statement = -1;        ///< position in the nest's body
  trace::NodeId node;        ///< of the functional graph
  int access = -1;           ///< index in Module::accesses for a line that loads or stores
};

/// A stretch of generated text that modules of one program share: a kernel, a call, the prelude. Its origins are
/// relative, so that it need not be written again where it stands after other kernels: any valid `kernel` stands for
/// the place's, and `access` counts from the place's first access.
struct Piece {
  std::string text;                 ///< the lines, each with its newline
  std::vector<std::uint32_t> ends;  ///< where each line ends in `text`, its newline included
  std::vector<LineOrigin> origins;  ///< one a line
  std::uint64_t hash = 0;           ///< of the text: equal texts have equal ones

  [[nodiscard]] std::size_t size() const { return ends.size(); }
  /// Line `k` without its newline.
  [[nodiscard]] std::string_view line(std::size_t k) const {
    const std::size_t first = k == 0 ? 0 : ends[k - 1];
    return std::string_view(text).substr(first, ends[k] - first - 1);
  }
};

/// A piece in a module. Worked example: kernels A, B, C are written on lines 101, 141 and 181. A decision merges A and
/// B; then C is kernel 1 instead of 2 and stands on line 151, and only its place is new.
struct Place {
  std::shared_ptr<const Piece> piece;
  int first_line = 1;           ///< 1-based line of the module
  schedule::KernelId kernel;    ///< what relative kernels stand for
  int first_access = 0;

  /// What line `k` of the piece came from, in this module.
  [[nodiscard]] LineOrigin origin(std::size_t k) const {
    LineOrigin o = piece->origins[k];
    if (o.kernel.valid()) o.kernel = kernel;
    if (o.access >= 0) o.access += first_access;
    return o;
  }
};

/// One load or store of a kernel, as an AccessList gives it. The references are good as long as the module and the
/// program that it was generated from.
struct KernelAccess {
  schedule::KernelId kernel;
  loop::NestId nest;
  int statement = -1;
  bool store = false;
  bool on_value = false;     ///< reads a value made in the same kernel, not a ref
  loop::BufferId buffer;
  const std::string& parameter;  ///< `in_ptr0`, `out_ptr0`, or the variable for a value
  const std::string& source;     ///< the expression in the kernel, e.g. `in_ptr0[:, ::2]`
  index::Expression index;
  const std::vector<index::AxisId>& axes;
  const index::Access& access;
  int line = 0;              ///< 1-based line of the module; 0 if the load has no line of its own
};

/// The same without where the kernel stands: what a kernel's modules share.
struct AccessText {
  loop::NestId nest;
  int statement = -1;
  bool store = false, on_value = false;
  loop::BufferId buffer;
  std::string parameter, source;
  index::Expression index;
  const std::vector<index::AxisId>* axes = nullptr;  ///< the nest's
  const index::Access* access = nullptr;             ///< the program's
  int line = 0;              ///< counted within the kernel's body, from 1; 0 if it has none
};

/// What a kernel of given nests and results is, wherever it stands.
struct KernelPiece {
  std::vector<loop::NestId> nests;      ///< with `results`, all that decides the rest
  std::vector<loop::BufferId> results;  ///< schedule::Kernel::outputs
  std::string name;
  std::vector<loop::BufferId> inputs;   ///< distinct, in order of the parameters
  std::vector<loop::BufferId> outputs;  ///< those that the caller keeps (no scratch, no check)
  std::set<std::string_view> helpers;   ///< functions of the prelude that it calls
  std::vector<std::string> checks;      ///< `IndexError, "..."`, one a flag that the kernel gives after its results
  std::vector<AccessText> accesses;
  /// Where in `accesses` the load or store `statement` of nest number `n` is: access_of[nest_starts[n] + statement];
  /// -1 for what is no access.
  std::vector<std::int32_t> access_of;
  std::vector<std::uint32_t> nest_starts;
  int body_lines = 0;                   ///< of the kernel function, its head left out
  std::shared_ptr<const Piece> call;    ///< the line of a segment; none if there are checks, which are numbered there
  std::shared_ptr<const Piece> debug;   ///< the lines of `_call_debug`
};

/// All loads and stores of a module: a list of kernels, each with its own.
class AccessList {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// By position; O(log kernels).
  [[nodiscard]] KernelAccess operator[](std::size_t position) const;
  [[nodiscard]] KernelAccess at(std::size_t position) const {
    if (position >= size_) throw std::out_of_range("AccessList");
    return (*this)[position];
  }

  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = KernelAccess;
    using reference = KernelAccess;
    using pointer = void;
    using iterator_category = std::input_iterator_tag;
    Iterator(const AccessList* list, std::size_t position) : list_(list), position_(position) {}
    KernelAccess operator*() const { return (*list_)[position_]; }
    Iterator& operator++() {
      ++position_;
      return *this;
    }
    Iterator operator++(int) { return {list_, position_++}; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const AccessList* list_;
    std::size_t position_;
  };
  [[nodiscard]] Iterator begin() const { return {this, 0}; }
  [[nodiscard]] Iterator end() const { return {this, size_}; }

  struct Run {
    std::shared_ptr<const KernelPiece> piece;
    int head_line = 0;      ///< of the kernel function
    std::size_t first = 0;  ///< position of its first access
  };
  /// One a kernel, indexed by KernelId.
  [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }
  void add(std::shared_ptr<const KernelPiece> piece, int head_line) {
    const std::size_t first = size_;
    size_ += piece->accesses.size();
    runs_.push_back({std::move(piece), head_line, first});
  }

 private:
  std::vector<Run> runs_;
  std::size_t size_ = 0;
};

struct KernelSource {
  std::string name;          ///< `pallas_fused_add_sin_1f0c9a2b`
  int first_line = 0, last_line = 0;            ///< 1-based, the kernel function and its _call and _main
  int kernel_first = 0, kernel_last = 0;        ///< the kernel function alone
};

struct Module {
  std::string source;
  std::vector<LineOrigin> lines;            ///< one a line of `source`, index 0 is line 1
  std::vector<KernelSource> kernels;        ///< indexed by KernelId; equal kernels share text
  AccessList accesses;
  std::vector<Place> pieces;                ///< what `source` and `lines` are made of, in order

  /// The text of lines first..last (1-based, inclusive).
  [[nodiscard]] std::string text(int first, int last) const;
};

struct Options {
  bool reference = true;  ///< emit `reference(args)` and the self-check under `__main__`
};

/// Writes the modules of one program, at any state of its schedule. Modules share the pieces that are equal in both:
/// what a decision does not touch is neither written nor copied again. A piece lives as long as a module that holds it.
///
/// A module depends on the state alone, never on what was generated before. Not thread-safe, and it asks the program's
/// index analysis, which is not either; the modules are immutable and may be read anywhere.
class Generator {
 public:
  /// `original` is the graph as traced (for `reference`), `graph` the functional one that the program was lowered from.
  /// All three must outlive the generator and its modules.
  Generator(const trace::Graph& original, const trace::Graph& graph, const loop::Program& program, const Options& options);
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  [[nodiscard]] Module generate(const schedule::State& state);
  /// For a program that holds several lowerings (see lower::Prefixes): with the results of one of them.
  [[nodiscard]] Module generate(const schedule::State& state, const std::vector<loop::OutputValue>& outputs);

 private:
  std::unique_ptr<class ModuleWriter> writer_;
};

/// One module; who wants several of a program keeps a Generator.
Module generate(const trace::Graph& original, const trace::Graph& graph, const loop::Program& program,
                const schedule::State& state, const Options& options);

}  // namespace pallascope::codegen
