// Room: base. What a person is told when their input or wish cannot be served.
#pragma once

#include <string>
#include <string_view>

namespace pallascope {

/// The closed list of problems that are the user's to solve. Names (see `diagnostic_name`) are part of the
/// `--json` interface; add at the end, never rename.
enum class DiagnosticKind {
  not_found,           ///< a file, graph, node, kernel, decision that does not exist
  not_readable,        ///< a file that exists but cannot be read
  not_a_zip,           ///< a .pt2 that is no zip archive
  missing_member,      ///< an archive or JSON object that lacks a required part
  wrong_package,       ///< an archive of another kind, such as an AOTInductor package
  schema_version,      ///< a format of another major version
  malformed_json,      ///< text that is not JSON (truncated, for instance)
  malformed_graph,     ///< JSON of the wrong shape
  unknown_dtype,       ///< a dtype that is not known
  undefined_value,     ///< a node uses a value that nothing defines before it
  storage_bounds,      ///< sizes, strides and offset reach outside the storage
  symbolic_size,       ///< a size that is a symbol
  unsupported,         ///< legal PyTorch that Pallascope does not lower, with the operator named
  invalid_argument,    ///< an operator's argument, or a command's, that makes no sense
  unknown_command,     ///< a command that does not exist
  usage,               ///< a command called with the wrong words
  nothing_open,        ///< a command that needs a graph before one was opened
  host_unavailable,    ///< the Python host cannot be started
  host_died,           ///< the Python host ended in the middle of a request
  host_error,          ///< Python raised; the message is its own
  cancelled,           ///< the person cancelled the work
  timed_out,           ///< a request took longer than its limit
};

/// The kind's name as `--json` prints it, e.g. `not_a_zip`.
std::string_view diagnostic_name(DiagnosticKind kind);

/// One problem: what was wrong, where, and what would be right.
struct Diagnostic {
  DiagnosticKind kind = DiagnosticKind::unsupported;
  std::string message;  ///< what was wrong, one sentence
  std::string where;    ///< file, archive member, JSON path, node or model line; may be empty
  std::string remedy;   ///< what would be right, one sentence; may be empty
};

/// `message` with `where` and `remedy`, for a terminal.
std::string to_string(const Diagnostic& diagnostic);

/// Prints `what`, the source place and `dump` to standard error and aborts: for our own bugs, never for a
/// user's mistake.
[[noreturn]] void internal_error(std::string_view what, std::string_view file, int line, std::string_view dump = {});

}  // namespace pallascope

/// Stops with a dump when a condition that our own code guarantees does not hold.
#define PALLASCOPE_CHECK(condition, dump)                                         \
  do {                                                                            \
    if (!(condition)) ::pallascope::internal_error(#condition, __FILE__, __LINE__, (dump)); \
  } while (false)
