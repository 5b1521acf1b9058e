// Room: repl. Commands: the table, finding one, its words and options, running a line.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/repl/session.h"
#include "core/base/result.h"
#include "core/report/json.h"

namespace pallascope::repl {

/// What a command says: data, the same as text (lines that end with a newline), and whether what it ran was right.
struct Output {
  report::Json json = report::Json::object();
  std::string text;
  bool passed =
      true;  ///< false when a check found a difference: the command worked, the exit status must tell
};

/// The words of a command without its name, and its options without `--`.
struct Arguments {
  std::vector<std::string> words;
  std::map<std::string, std::string, std::less<>> options;

  [[nodiscard]] bool has(std::string_view option) const { return options.contains(option); }
};

/// What Tab offers for a word.
enum class Completes {
  nothing,
  command,
  path,
  trace_target,
  spec,
  thing,
  node,
  kernel,
  decision,
  graph,
  list,
  filter,
  operators
};

struct Option {
  std::string name;                 ///< without `--`
  std::vector<std::string> values;  ///< what may follow; empty for a flag
};

struct Command {
  std::string name;
  std::string arguments;  ///< as in UX.md: `A B`, `[K] [--full]`
  std::string summary;    ///< one sentence
  std::string example;    ///< one that can be typed
  std::size_t least_words = 0, most_words = 0;
  std::vector<Completes> completes;  ///< one a word; the last serves those after it
  std::vector<Option> options;       ///< `--json` is understood everywhere and not listed
  Result<Output> (*run)(Session&, const Arguments&) = nullptr;
};

/// All commands, in the order of `help`.
const std::vector<Command>& commands();

/// The command of that name. `exact`: in batches and scripts a unique beginning is not enough. Diagnostics:
/// unknown_command with the nearest name, usage for a beginning of several names.
Result<const Command*> find_command(std::string_view word, bool exact);

/// Sorts `words` (those after the name) into words and options. Takes `--json` out and sets `json`.
Result<Arguments> parse_arguments(const Command& command, const std::vector<std::string>& words, bool& json);

/// What one line did.
struct Execution {
  std::string command;  ///< the full name; the first word as typed for an unknown one; `py` for Python
  Result<Output> result = Output{};
  bool json = false;  ///< the line asked for JSON
  [[nodiscard]] bool good() const { return result.ok() && result->passed; }
};

/// Runs one command (or Python block). Never throws, never prints.
Execution execute(Session& session, std::string_view line, bool exact);

/// {"command", "ok": true, "result"} or {"command", "ok": false, "error": {"kind", "message", "where", "remedy"}}.
report::Json envelope(const Execution& execution);
/// A diagnostic for a person at a terminal.
std::string error_text(const Diagnostic& diagnostic);

/// Whether a line needs the Python host, so that it can be started while others run.
bool needs_host(std::string_view line);

}  // namespace pallascope::repl
