// Room: codegen. Writes modules: kernels (module.cpp), library calls (library.cpp), the calls between them (calls.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/codegen/indexing.h"
#include "core/codegen/kernel.h"
#include "core/codegen/module.h"
#include "core/codegen/reference.h"
#include "core/codegen/text.h"

namespace pallascope::codegen {

/// FNV-1a, 64 bits: names equal kernels equally, on every machine.
std::uint64_t fnv1a(std::string_view text);
/// `add` of `aten.add.Tensor`.
std::string operator_name(const std::string& target);

/// A kernel's text with what the functions around it are written from.
struct KernelEntry {
  KernelText text;
  std::string name;
  std::vector<loop::BufferId> inputs, outputs;  ///< as in KernelPiece
};

/// Within a format: the names of buffers, with commas between.
struct Names {
  const std::vector<loop::BufferId>& buffers;
  const std::vector<std::string>& names;  ///< indexed by buffer
};

/// Writes the modules of one program. What it has written stays in its memory as far as modules still hold it (kernels)
/// or as the program bounds it (calls, names, tables).
class ModuleWriter {
 public:
  ModuleWriter(const trace::Graph& original, const trace::Graph& graph, const loop::Program& program, const Options& options);

  /// `outputs` in place of the program's, if given.
  Module write(const schedule::State& state, const std::vector<loop::OutputValue>* outputs);

 private:
  void blank();

  // -------------------------------------------------------------------------------------------- names

  [[nodiscard]] const loop::Buffer& buffer(loop::BufferId id) const { return program_.buffers[id]; }
  /// The JAX array of a buffer.
  [[nodiscard]] const std::string& array(loop::BufferId id) const { return arrays_[id.index()]; }
  /// The torch tensor of a buffer.
  [[nodiscard]] const std::string& tensor(loop::BufferId id) const { return tensors_[id.index()]; }
  [[nodiscard]] const std::string& argument(int index) const { return arguments_.at(static_cast<std::size_t>(index)); }

  /// What the torch tensor of a buffer looks like: an input as it came, anything else dense in its dims.
  struct Layout {
    const Shape &sizes, &strides, &dims, &dim_strides;
  };
  [[nodiscard]] Layout layout(loop::BufferId id) const;
  /// Puts `_to_jax(name, ...)`, which gives the JAX array of a tensor called `name`.
  void put_to_jax(Out& out, loop::BufferId id, std::string_view name) const;
  /// Puts `_expect("who", name, ...)`, which raises where a tensor is not laid out as the kernels assume.
  template <typename... Who>
  void put_expect(Out& out, loop::BufferId id, std::string_view name, const Who&... who) const {
    put(out, "_expect(\"");
    (put(out, who), ...);
    const Layout l = layout(id);
    fmt::format_to(fmt::appender(out), FMT_COMPILE("\", {}, torch.{}, {}, {})"), name, torch_dtype_name(buffer(id).dtype),
                   Tuple{l.sizes}, Tuple{l.strides});
  }

  // ------------------------------------------------------------------------------------------- places

  /// Puts what was written into `text_` since the last place into the module, as a piece of its own.
  void flush(schedule::KernelId kernel = {});
  void place(std::shared_ptr<const Piece> piece, schedule::KernelId kernel = {}, std::size_t first_access = 0);
  /// 1-based number of the line that the next piece begins with.
  [[nodiscard]] int next_line() const { return next_line_; }

  // ------------------------------------------------------------------------------------------ kernels

  /// A kernel that some module holds, or held.
  struct Known {
    std::weak_ptr<const KernelPiece> piece;
    std::weak_ptr<const Piece> text;
  };
  using KnownKernels = std::unordered_multimap<std::size_t, Known>;
  /// A kernel of the module being written; `fresh` is there if it had to be written for it.
  struct Current {
    std::shared_ptr<const KernelPiece> piece;
    Known* known = nullptr;
    std::optional<KernelEntry> fresh;
  };
  [[nodiscard]] Current prepare(const schedule::Kernel& kernel);
  [[nodiscard]] KernelEntry entry_of(const schedule::Kernel& kernel) const;
  [[nodiscard]] std::shared_ptr<const KernelPiece> piece_of(const schedule::Kernel& kernel, const KernelEntry& entry);
  void forget_unused();

  void write_helpers();
  void write_kernels();
  void write_kernel(const KernelEntry& entry);

  /// `_call`: JAX arrays in, a tuple of JAX arrays out, shaped as their buffers.
  void write_jax_call(const KernelEntry& entry, LineOrigin origin);

  /// `_main`: torch tensors in, results copied into torch tensors.
  void write_main(const KernelEntry& entry, LineOrigin origin);

  static std::string check_text(const RuntimeCheck& check) { return check.error + ", " + quoted(check.message); }

  static std::string quoted(const std::string& text);

  // ------------------------------------------------------------------------------------ library calls

  /// A library or torch call: no decision changes it.
  struct Call {
    std::vector<loop::BufferId> reads, writes;
    std::string name;                          ///< of a library call's functions
    std::shared_ptr<const Piece> text;         ///< a library call's functions; a torch call
    std::shared_ptr<const Piece> call, debug;  ///< a library call, as in KernelPiece
    std::vector<bool> dense;                   ///< which results `text` makes dense (a torch call)
  };
  [[nodiscard]] Call& call_of(loop::StepId step);

  [[nodiscard]] std::string operand_text(const loop::View& view, const std::string& name) const;

  void write_library(const loop::LibraryCall& call, Call& made);

  // ---------------------------------------------------------------------------------------- the calls

  void write_tables();

  /// The graph input that an index value is loaded from, directly or behind the wrapping of negatives; else -1.
  int source_input(const loop::Nest& nest, int statement) const;

  /// One step of the module being written.
  struct Step {
    const std::vector<loop::BufferId>*reads = nullptr, *writes = nullptr;
    const std::string* name = nullptr;         ///< of the `_call` / `_main` functions; none for a torch call
    const KernelPiece* kernel = nullptr;
    Call* call = nullptr;
    const loop::TorchCall* torch = nullptr;
    schedule::KernelId id;
    LineOrigin origin;                         ///< relative, as a piece's
  };

  void find_steps();

  /// `({writes},) = name_call({reads})`, with a flag a check.
  void write_call_line(const std::string& name, const std::vector<loop::BufferId>& reads,
                       const std::vector<loop::BufferId>& writes, int first_flag, std::size_t flags, LineOrigin origin);
  [[nodiscard]] Names arrays(const std::vector<loop::BufferId>& buffers) const { return {buffers, arrays_}; }
  [[nodiscard]] Names tensors(const std::vector<loop::BufferId>& buffers) const { return {buffers, tensors_}; }
  void write_debug_step(const std::string& name, const std::vector<loop::BufferId>& reads,
                        const std::vector<loop::BufferId>& writes, LineOrigin origin);

  /// A tensor argument of a torch call (or a result): a view of its buffer's torch tensor.
  [[nodiscard]] std::string view_text(const loop::View& view, trace::ValueId whole) const;

  void write_torch_call(const loop::TorchCall& call, const std::string& indent, const std::vector<bool>& dense);
  void place_torch_call(const Step& step);

  /// Buffers of the results and of torch calls' arguments that are taken as dense buffers, not as they came.
  [[nodiscard]] bool takes_dense(const loop::View& view, trace::ValueId value) const;

  /// Fills `dense_`: torch-call results that something else than "the value as it came" reads; and `empty_`: buffers
  /// that nothing writes hold no element, and are made where they are used.
  void find_needs();

  /// `t_x = torch.empty(...)` as a line.
  void write_empty(loop::BufferId b, LineOrigin origin = {});

  /// Whether eager made the value, which lies in this buffer, by a copy although here it is a view, as flip is.
  [[nodiscard]] bool eager_copies(trace::ValueId value, loop::BufferId lies_in) const;
  /// The value whose memory eager's `value` lies in: itself, unless it is a view.
  [[nodiscard]] trace::ValueId storage_root(trace::ValueId value) const;
  /// Whether the result, viewed in its buffer, has eager's strides and offset.
  [[nodiscard]] bool lies_as_eager(const loop::OutputValue& output) const;
  /// Tensors that several results are views of, for those that do not lie in their buffer as in eager.
  std::map<trace::ValueId, std::string> write_shared_roots(const std::string& indent);

  /// A view of an input's dense buffer as a view of the argument's own memory, counted from its first element. Strides
  /// are taken apart by the buffer's dimensions: in a buffer of (4, 6), the 7 of a diagonal is one row and one column.
  [[nodiscard]] std::optional<loop::AffineView> in_argument(const loop::Buffer& b, const loop::AffineView& view, const Shape& sizes) const;

  /// A result, with eager's strides: the buffer's tensor itself, a view of it, or a copy. `returned` knows the tensors
  /// that are results already: each is one result only.
  std::string result_text(const loop::OutputValue& output, trace::ValueId value, std::set<loop::BufferId>& returned) const;

  void write_returns(const std::string& indent);


  /// One JAX program between two torch calls.
  struct Segment {
    std::size_t first = 0, end = 0;  ///< of the steps
    std::vector<loop::BufferId> inputs, outputs;
    std::vector<std::string> checks;
  };

  void write_steady();

  void write_segment(Segment& segment, int number);

  void write_debug();

  void write_call();

  void finish();

  const trace::Graph& original_;
  const trace::Graph& graph_;
  const loop::Program& program_;
  const Options options_;

  // The program's: made once, or when first needed.
  std::vector<std::string> arguments_;
  std::string argument_list_;                               ///< `x, y`
  std::vector<std::string> arrays_, tensors_;               ///< of each buffer
  mutable std::vector<std::optional<Shape>> dense_strides_; ///< of each buffer that is no input, once asked for
  std::set<loop::BufferId> kept_as_came_;                   ///< torch calls' results
  struct InputRange {
    int input = -1;
    std::int64_t low = 0, high = 0;
  };
  std::vector<std::vector<InputRange>> ranges_;             ///< of each nest: what its index inputs must keep to
  std::map<loop::StepId, Call> calls_;
  KnownKernels known_;
  std::set<std::string_view> used_helpers_;  ///< that `helpers_` was written for
  std::shared_ptr<const Piece> title_, helpers_, tables_, returns_, call_, reference_;
  std::map<int, std::pair<std::int64_t, std::int64_t>> table_ranges_;  ///< that `tables_` was written for
  std::vector<std::pair<loop::BufferId, index::Expression>> returned_;  ///< that `returns_` was written for

  // The module's that is being written.
  const schedule::State* state_ = nullptr;
  const std::vector<loop::OutputValue>* outputs_ = nullptr;
  Module module_;
  Text text_;
  int next_line_ = 1;
  std::vector<Current> current_;
  std::vector<Step> steps_;
  std::vector<char> dense_;
  std::vector<loop::BufferId> empty_;
};

}  // namespace pallascope::codegen

template <>
struct fmt::formatter<pallascope::codegen::Names> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(const pallascope::codegen::Names& list, Context& context) const {
    auto out = context.out();
    bool first = true;
    for (const pallascope::loop::BufferId b : list.buffers) {
      if (!std::exchange(first, false)) out = fmt::detail::write<char>(out, fmt::string_view(", "));
      out = fmt::detail::write<char>(out, fmt::string_view(list.names[b.index()]));
    }
    return out;
  }
};
