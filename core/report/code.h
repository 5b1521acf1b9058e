// Room: report. Source with the access class of each load and store in a gutter: Pallas, loop nests, ATen nodes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/report/json.h"
#include "core/session/compilation.h"

namespace pallascope::report {

enum class CodeForm { pallas, loops, fx };

/// One line to show. `letter` is the access class of the load or store on it, a space where there is none.
struct CodeLine {
  int number = 0;  ///< 1-based in the module; for loops and fx in the text shown
  char letter = ' ';
  std::string text;
  schedule::KernelId kernel;
  trace::NodeId node;  ///< of the functional graph
  int access = -1;     ///< position in Module::accesses
};

/// The lines of one kernel, or of the whole program without one.
std::vector<CodeLine> code_lines(const session::Compilation& compilation, const session::Snapshot& snapshot,
                                 CodeForm form, std::optional<schedule::KernelId> kernel);
/// `  12 C │ tmp0 = in_ptr0[...]`
std::string code_text(const std::vector<CodeLine>& lines);
/// {"lines": [{"line", "letter", "class", "text", "kernel", "node"}, ...], "source": the lines joined}
Json code_json(const session::Compilation& compilation, const session::Snapshot& snapshot,
               const std::vector<CodeLine>& lines);

}  // namespace pallascope::report
