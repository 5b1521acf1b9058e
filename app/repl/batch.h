// Room: repl. Commands without a person: `-c`, scripts on standard input, the report on the bundled examples.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "app/repl/session.h"

namespace pallascope::repl {

struct BatchOptions {
  bool json = false;  ///< one object a line for each command
  bool echo = true;   ///< print `> COMMAND` before its text, where there are several
  std::FILE* out = stdout;
  std::FILE* errors = stderr;  ///< diagnostics, when not `json`
};

/// Runs all `lines`, also after one that failed (each says for itself whether it could work); `quit` ends it. Starts
/// the host in the background when one of them will need it. True when all were ok and no check found a difference.
bool run_batch(Session& session, const std::vector<std::string>& lines, const BatchOptions& options);

/// The commands of the report on the examples in `assets`: summary and verdict; `full` adds every decision, the index
/// of every access and the source.
std::vector<std::string> report_commands(const std::string& assets, bool full);

}  // namespace pallascope::repl
