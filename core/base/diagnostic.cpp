#include "core/base/diagnostic.h"

#include <cstdio>
#include <cstdlib>

namespace pallascope {

std::string_view diagnostic_name(DiagnosticKind kind) {
  switch (kind) {
    case DiagnosticKind::not_found: return "not_found";
    case DiagnosticKind::not_readable: return "not_readable";
    case DiagnosticKind::not_a_zip: return "not_a_zip";
    case DiagnosticKind::missing_member: return "missing_member";
    case DiagnosticKind::wrong_package: return "wrong_package";
    case DiagnosticKind::schema_version: return "schema_version";
    case DiagnosticKind::malformed_json: return "malformed_json";
    case DiagnosticKind::malformed_graph: return "malformed_graph";
    case DiagnosticKind::unknown_dtype: return "unknown_dtype";
    case DiagnosticKind::undefined_value: return "undefined_value";
    case DiagnosticKind::storage_bounds: return "storage_bounds";
    case DiagnosticKind::symbolic_size: return "symbolic_size";
    case DiagnosticKind::unsupported: return "unsupported";
    case DiagnosticKind::invalid_argument: return "invalid_argument";
    case DiagnosticKind::unknown_command: return "unknown_command";
    case DiagnosticKind::usage: return "usage";
    case DiagnosticKind::nothing_open: return "nothing_open";
    case DiagnosticKind::host_unavailable: return "host_unavailable";
    case DiagnosticKind::host_died: return "host_died";
    case DiagnosticKind::host_error: return "host_error";
    case DiagnosticKind::cancelled: return "cancelled";
    case DiagnosticKind::timed_out: return "timed_out";
  }
  return "unsupported";
}

std::string to_string(const Diagnostic& diagnostic) {
  std::string text(diagnostic_name(diagnostic.kind));
  text += ": " + diagnostic.message;
  if (!diagnostic.where.empty()) text += "\n  where: " + diagnostic.where;
  if (!diagnostic.remedy.empty()) text += "\n  remedy: " + diagnostic.remedy;
  return text;
}

void internal_error(std::string_view what, std::string_view file, int line, std::string_view dump) {
  std::fprintf(stderr, "pallascope: internal error: %.*s does not hold (%.*s:%d)\n%.*s\n",
               static_cast<int>(what.size()), what.data(), static_cast<int>(file.size()), file.data(), line,
               static_cast<int>(dump.size()), dump.data());
  std::abort();
}

}  // namespace pallascope
