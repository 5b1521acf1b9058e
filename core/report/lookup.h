// Room: report. What belongs to what: nodes, kernels, calls, buffers, decisions of one snapshot.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/session/compilation.h"

namespace pallascope::report {

/// What lowering made of a node in this snapshot, or nullptr.
const loop::NodeOutcome* outcome_of(const session::Snapshot& snapshot, trace::NodeId node);
/// What lowering made of a node in this snapshot: `kernel`, `view`, `library`, `torch`; empty if it is not known.
std::string outcome_text(const session::Snapshot& snapshot, trace::NodeId node);
/// The kernels of the snapshot that a node's work is in.
std::vector<schedule::KernelId> kernels_of(const session::Snapshot& snapshot, trace::NodeId node);
/// The library or torch call that a node is, if it is one in this snapshot.
std::optional<loop::StepId> call_of(const session::Snapshot& snapshot, trace::NodeId node);
/// The ATen nodes in a kernel, ascending.
std::vector<trace::NodeId> nodes_of(const session::Snapshot& snapshot, schedule::KernelId kernel);
/// `pallas_fused_add_sin_1f0c9a2b`; empty when the module does not name it.
std::string kernel_name(const session::Snapshot& snapshot, schedule::KernelId kernel);
/// Kernels in the order in which they run.
std::vector<schedule::KernelId> kernels_in_order(const session::Snapshot& snapshot);

/// Of each buffer of the snapshot's program, whether it is an input or a kernel or call of the snapshot touches it.
std::vector<bool> live_buffers(const session::Snapshot& snapshot);
/// The buffers that there are at the snapshot, for lists. The program of an early decision holds those of other prefixes
/// of the lowering besides, which are left out; after the lowering it is all, those too that inlining made needless.
std::vector<loop::BufferId> buffers_of(const session::Compilation& compilation, const session::Snapshot& snapshot);

/// Nodes that `node` reads, and graph inputs by name; nodes and outputs that read it.
struct Neighbours {
  std::vector<trace::NodeId> nodes;
  std::vector<std::string> values;  ///< graph inputs (dependencies) or `output 0` (users)
};
Neighbours dependencies(const trace::Graph& graph, trace::NodeId node);
Neighbours users(const trace::Graph& graph, trace::NodeId node);

/// One that makes or uses a buffer: a kernel, the node of a call, the program's input, or an output by its place.
struct BufferUse {
  schedule::KernelId kernel;
  trace::NodeId call;
  int output = -1;
  bool input = false;
  friend bool operator==(const BufferUse&, const BufferUse&) = default;
};
/// Who makes and who uses a buffer in the snapshot, each once, in the order in which they run.
std::vector<BufferUse> buffer_writers(const session::Snapshot& snapshot, loop::BufferId buffer);
std::vector<BufferUse> buffer_readers(const session::Snapshot& snapshot, loop::BufferId buffer);
/// `k4`, `mm_1`, `input`, `output 0`.
std::string use_text(const session::Compilation& compilation, const BufferUse& use);
/// The texts of all of them.
std::vector<std::string> writers(const session::Compilation& compilation, const session::Snapshot& snapshot,
                                 loop::BufferId buffer);
std::vector<std::string> readers(const session::Compilation& compilation, const session::Snapshot& snapshot,
                                 loop::BufferId buffer);

/// Whether a step is a library or torch call.
bool is_call(const loop::Program& program, loop::StepId step);
/// A step of the schedule's program by name: a nest's (`softmax.max`), or `mm (library)`, `topk (torch)`.
std::string step_text(const session::Compilation& compilation, loop::StepId step);

/// Decisions that name `node` on either side, in order.
std::vector<schedule::DecisionId> decisions_of(const session::Compilation& compilation, trace::NodeId node);

}  // namespace pallascope::report
