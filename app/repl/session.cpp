#include "app/repl/session.h"

#include <utility>

namespace pallascope::repl {

report::CheckedAt Opened::checked_here() const {
  const auto at = checked.find(compilation->graph_index());
  return at == checked.end() ? report::CheckedAt{} : at->second;
}

Result<Opened*> Session::opened() {
  if (!opened_) {
    return Diagnostic{DiagnosticKind::nothing_open, "no program is open", "",
                      "open a file with `open PATH`, or capture a function with `trace FILE.py:FN SPEC…`"};
  }
  return &*opened_;
}

Result<Opened> Session::compiled(std::shared_ptr<const trace::Program> program,
                                 std::optional<std::size_t> graph) {
  if (program->graphs.empty()) {
    return Diagnostic{DiagnosticKind::malformed_graph, "the program holds no graph", program->origin,
                      "trace it again"};
  }
  std::optional<Diagnostic> first_problem;
  // A program of several graphs is worth opening when some of them compile; `use` tells why another does not.
  for (std::size_t k = graph.value_or(0); k < (graph ? *graph + 1 : program->graphs.size()); ++k) {
    auto compilation = session::Compilation::compile(program, k);
    if (compilation.ok()) {
      Opened opened;
      opened.program = program;
      opened.compilation = *compilation;
      opened.position = opened.compilation->decisions().size();
      return opened;
    }
    if (!first_problem) first_problem = compilation.error();
  }
  return *first_problem;
}

Result<report::Json> Session::ask(const report::Json& header) {
  if (!host_) {
    return Diagnostic{DiagnosticKind::host_unavailable, "this session has no Python host", "",
                      "start pallascope with one"};
  }
  std::stop_token token;
  {
    const std::lock_guard lock(mutex_);
    stop_ = std::stop_source();
    token = stop_.get_token();
  }
  const std::stop_callback outer(cancel, [this] { interrupt(); });
  auto reply = host_->request(header, progress, token);
  if (progress) progress("", -1);
  return reply;
}

void Session::start_host() {
  if (host_) host_->start();
}

void Session::interrupt() {
  const std::lock_guard lock(mutex_);
  stop_.request_stop();
}

}  // namespace pallascope::repl
