// Room: report. The first look: one screen about a compiled graph at one decision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/index/access.h"
#include "core/report/json.h"
#include "core/schedule/decision.h"
#include "core/session/compilation.h"

namespace pallascope::report {

/// Calls of one operator that no kernel does.
struct OperatorCalls {
  std::string op;  ///< `aten.addmm.default`
  std::size_t count = 0;
  std::string why;  ///< why PyTorch runs it; empty for a library's
};
/// An input that is copied into a dense buffer before the kernels see it.
struct InputCopy {
  std::string input;
  std::string shape;  ///< `f32[4,8]`
  std::int64_t bytes = 0;
};

/// The figures that the text, the JSON and the window have in common.
struct Summary {
  std::size_t nodes = 0, nests = 0, kernels = 0, library_calls = 0, torch_calls = 0;
  /// Of the decisions that hold.
  std::size_t lowered = 0, producers = 0, inlined = 0, fusions = 0, fused = 0;
  /// Refused fusions that would have saved bytes, the most first; those at library and torch calls apart.
  std::vector<schedule::DecisionId> missed, boundaries;
  std::int64_t missed_bytes = 0, boundary_bytes = 0;
  /// Accesses to memory by class, in the order of the classes; none with a count of 0.
  std::vector<std::pair<index::AccessClass, std::size_t>> classes;
  std::vector<std::size_t> wasteful;          ///< positions in Module::accesses, the most bytes first
  std::vector<OperatorCalls> library, torch;  ///< by name
  std::vector<InputCopy> copies;
  std::int64_t bytes_moved = 0;  ///< a call
};
Summary summarize(const session::Compilation& compilation, const session::Snapshot& snapshot);
/// `5.1 ms: functional 0.4, lower 1.2, schedule 2.5, codegen 1.0`.
std::string timings_text(const session::Timings& timings);

/// What is known from running it; empty until it was checked.
struct CheckedAt {
  bool checked = false;
  std::string verdict;       ///< `passed`, `failed`
  std::size_t decision = 0;  ///< how many decisions held when it was checked
};

/// Keys: name, path, graph {index, count, name, kind}, decision, decisions {total, lower, inline, fuse, fused,
/// refused}, nodes, nests, kernels, library_calls, torch_calls, checked, missed_fusions [{decision, subject,
/// bytes_saved, reason}], accesses {counts by class, wasteful [{kernel, buffer, parameter, class, words, bytes,
/// bytes_spanned}]}, library_operators, torch_operators [{operator, count, why}], boundary_copies [{input, bytes}],
/// bytes_moved, timings_ms.
Json summary_json(const session::Compilation& compilation, const session::Snapshot& snapshot,
                  const CheckedAt& checked);
std::string summary_text(const session::Compilation& compilation, const session::Snapshot& snapshot,
                         const CheckedAt& checked);

/// The name that a program is shown under: its file's name, else the name in the trace.
std::string program_title(const trace::Program& program);

}  // namespace pallascope::report
