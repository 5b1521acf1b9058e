// Room: codegen. The Python module: one Pallas kernel a schedule kernel, the calls between them, the source map.
// Takes: a graph, its loop program and a schedule state.
// Gives: Module (text, source map, kernel list) to the session, the host and torch.compile.
// May use: base, trace, index, loop, target, schedule.
// Never: decides anything that the log does not hold, matches text to find what made a line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
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

/// One load or store of a kernel.
struct KernelAccess {
  schedule::KernelId kernel;
  loop::NestId nest;
  int statement = -1;
  bool store = false;
  bool on_value = false;     ///< reads a value made in the same kernel, not a ref
  loop::BufferId buffer;
  std::string parameter;     ///< `in_ptr0`, `out_ptr0`, or the variable for a value
  std::string source;        ///< the expression in the kernel, e.g. `in_ptr0[:, ::2]`
  index::Expression index;
  std::vector<index::AxisId> axes;
  index::Access access;
  int line = 0;              ///< 1-based line of the module
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
  std::vector<KernelAccess> accesses;

  /// The text of lines first..last (1-based, inclusive).
  [[nodiscard]] std::string text(int first, int last) const;
};

struct Options {
  bool reference = true;  ///< emit `reference(args)` and the self-check under `__main__`
};

/// `original` is the graph as traced (for `reference`), `graph` the functional one that the program was lowered from.
Module generate(const trace::Graph& original, const trace::Graph& graph, const loop::Program& program,
                const schedule::State& state, const Options& options);

}  // namespace pallascope::codegen
