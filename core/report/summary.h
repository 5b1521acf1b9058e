// Room: report. The first look: one screen about a compiled graph at one decision.
#pragma once

#include <string>

#include "core/report/json.h"
#include "core/session/compilation.h"

namespace pallascope::report {

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
