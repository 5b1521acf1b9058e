// Room: codegen. Writes one module: kernels and library calls (module.cpp), the calls between them (calls.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/codegen/indexing.h"
#include "core/codegen/kernel.h"
#include "core/codegen/module.h"
#include "core/codegen/reference.h"
#include "core/codegen/text.h"

namespace pallascope::codegen {

/// `torch.float32`.
std::string torch_dtype_text(DType dtype);

struct KernelEntry {
  KernelText text;
  std::string name;
  std::vector<loop::BufferId> inputs;   ///< distinct, in order of the parameters
  std::vector<loop::BufferId> outputs;  ///< those that the caller keeps (no scratch, no check)
};

/// Holds the module while it is written. One use: construct, `write`.
class ModuleWriter {
 public:
  ModuleWriter(const trace::Graph& original, const trace::Graph& graph, const loop::Program& program,
               const schedule::State& state, const Options& options)
      : original_(original), graph_(graph), program_(program), state_(state), options_(options) {
    const std::vector<std::string> names = value_names(graph);
    for (const trace::Input& input : graph.inputs) arguments_.push_back(names[input.value.index()]);
  }

  Module write();

 private:
  void blank();

  // -------------------------------------------------------------------------------------------- names

  [[nodiscard]] const loop::Buffer& buffer(loop::BufferId id) const { return program_.buffers[id]; }
  /// The JAX array of a buffer.
  [[nodiscard]] std::string array(loop::BufferId id) const;
  /// The torch tensor of a buffer.
  [[nodiscard]] std::string tensor(loop::BufferId id) const;
  [[nodiscard]] const std::string& argument(int index) const { return arguments_.at(static_cast<std::size_t>(index)); }

  /// What the torch tensor of a buffer looks like: an input as it came, anything else dense in its dims.
  struct Layout {
    Shape sizes, strides, dims, dim_strides;
  };
  [[nodiscard]] Layout layout(loop::BufferId id) const;
  [[nodiscard]] std::string to_jax(loop::BufferId id, const std::string& name) const;
  [[nodiscard]] std::string expect(loop::BufferId id, const std::string& name, const std::string& who) const;

  // ------------------------------------------------------------------------------------------ kernels

  void prepare(schedule::KernelId id);

  void write_kernel(schedule::KernelId id);

  /// The kernel's accesses join the module's; the lines of its body learn their new numbers.
  void add_accesses(KernelEntry& entry, schedule::KernelId id, int head_line);

  /// `_call`: JAX arrays in, a tuple of JAX arrays out, shaped as their buffers.
  void write_jax_call(const KernelEntry& entry, LineOrigin origin);

  /// `_main`: torch tensors in, results copied into torch tensors.
  void write_main(const KernelEntry& entry, LineOrigin origin);

  static std::string check_text(const RuntimeCheck& check) { return check.error + ", " + quoted(check.message); }

  static std::string quoted(const std::string& text);

  // ------------------------------------------------------------------------------------ library calls

  [[nodiscard]] std::string library_name(loop::StepId step) const { return library_names_.at(step); }

  [[nodiscard]] std::string operand_text(const loop::View& view, const std::string& name) const;

  void write_library(loop::StepId step, const loop::LibraryCall& call);

  // ---------------------------------------------------------------------------------------- the calls

  void write_tables();

  /// The graph input that an index value is loaded from, directly or behind the wrapping of negatives; else -1.
  int source_input(const loop::Nest& nest, int statement) const;

  struct Step {
    std::vector<loop::BufferId> reads, writes;
    std::string name;         ///< of the `_call` / `_main` functions; empty for a torch call
    const loop::TorchCall* torch = nullptr;
    std::vector<std::string> checks;  ///< `IndexError, "..."`, one a flag that the kernel gives after its results
    LineOrigin origin;
  };

  [[nodiscard]] std::vector<Step> steps() const;

  /// A tensor argument of a torch call (or a result): a view of its buffer's torch tensor.
  [[nodiscard]] std::string view_text(const loop::View& view, trace::ValueId whole) const;

  void write_torch_call(const Step& step, const std::string& indent, const std::set<loop::BufferId>& needed);

  /// Buffers of the results and of torch calls' arguments that are taken as dense buffers, not as they came.
  [[nodiscard]] bool takes_dense(const loop::View& view, trace::ValueId value) const;

  /// Torch-call results that something else than "the value as it came" reads.
  [[nodiscard]] std::set<loop::BufferId> dense_results(const std::vector<Step>& all) const;

  void note_torch_results(const std::vector<Step>& all);

  /// Buffers that nothing writes hold no element: they are made where they are used.
  [[nodiscard]] std::set<loop::BufferId> empty_buffers(const std::vector<Step>& all) const;

  [[nodiscard]] std::string empty_tensor(loop::BufferId b) const;

  /// Whether eager made the value by a copy although here it is a view: of the views, flip alone copies.
  [[nodiscard]] bool eager_copies(trace::ValueId value) const;

  /// A view of an input's dense buffer as a view of the argument's own memory, counted from its first element. Strides
  /// are taken apart by the buffer's dimensions: in a buffer of (4, 6), the 7 of a diagonal is one row and one column.
  [[nodiscard]] std::optional<loop::AffineView> in_argument(const loop::Buffer& b, const loop::AffineView& view, const Shape& sizes) const;

  /// A result, with eager's strides: the buffer's tensor itself, a view of it, or a copy. `returned` knows the tensors
  /// that are results already: each is one result only.
  std::string result_text(const loop::OutputValue& output, trace::ValueId value, std::set<loop::BufferId>& returned) const;

  void write_returns(const std::string& indent);

  [[nodiscard]] std::string arguments() const;

  /// One JAX program between two torch calls.
  struct Segment {
    std::vector<std::size_t> steps;
    std::vector<loop::BufferId> inputs, outputs;
    std::vector<std::string> checks;
  };

  void write_steady();

  /// Memory that results must not share: the arguments'.
  [[nodiscard]] std::vector<std::string> pointers() const;

  void write_segment(const std::vector<Step>& all, Segment& segment, int number);

  void write_debug();

  void write_call();

  void finish();

  const trace::Graph& original_;
  const trace::Graph& graph_;
  const loop::Program& program_;
  const schedule::State& state_;
  const Options& options_;
  Module module_;
  Text text_;
  std::vector<std::string> arguments_;
  std::vector<KernelEntry> entries_;
  std::map<std::string, schedule::KernelId> written_;
  std::map<loop::StepId, std::string> library_names_;
  std::set<std::string> written_library_;
  std::set<loop::BufferId> kept_as_came_;
};

}  // namespace pallascope::codegen
