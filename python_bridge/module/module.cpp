// Room: python_bridge/module. The core for Python: one function that lowers a graph.
// Takes: trace JSON text (core/trace/FORMAT.md).
// Gives: `_pallascope_core`, used by the package's torch.compile backend and by notebooks.
// May use: core, pybind11, JSON.
// Never: imports torch or JAX, keeps state between calls.
#include <algorithm>
#include <chrono>
#include <set>
#include <string>

#include <nlohmann/json.hpp>
#include <pybind11/pybind11.h>

#include "core/lower/lower.h"
#include "core/session/compilation.h"
#include "core/trace/read.h"

namespace {

using Json = nlohmann::ordered_json;
using pallascope::Diagnostic;
using pallascope::Result;

std::string failure(const Diagnostic& d) {
  Json error = {{"kind", std::string(pallascope::diagnostic_name(d.kind))}, {"message", d.message}, {"where", d.where}, {"remedy", d.remedy}};
  return Json{{"ok", false}, {"error", error}}.dump();
}

std::string lower(const std::string& trace_json, std::size_t graph, const std::string& options_json) {
  const auto start = std::chrono::steady_clock::now();
  pallascope::session::Options options;
  std::optional<std::size_t> upto;
  const Json wanted = Json::parse(options_json.empty() ? "{}" : options_json, nullptr, false);
  if (!wanted.is_object()) return failure({pallascope::DiagnosticKind::malformed_json, "the options are no JSON object", "options", ""});
  if (wanted.contains("fusion") && wanted["fusion"].is_boolean()) options.fusion = wanted["fusion"];
  if (wanted.contains("target") && wanted["target"].is_string()) options.target = wanted["target"];
  if (wanted.contains("upto") && wanted["upto"].is_number_integer()) upto = wanted["upto"].get<std::size_t>();

  Result<pallascope::trace::Program> program = pallascope::trace::read_json(trace_json, "the traced graph");
  if (!program) return failure(program.error());
  const double read_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  auto compiled = pallascope::session::Compilation::compile(
      std::make_shared<const pallascope::trace::Program>(std::move(*program)), graph, options);
  if (!compiled) return failure(compiled.error());
  const auto& compilation = **compiled;
  const auto snapshot = upto ? compilation.at(*upto) : compilation.last();

  std::vector<std::string> library, torch;
  const auto add = [](std::vector<std::string>& list, const std::string& op) {
    if (std::find(list.begin(), list.end(), op) == list.end()) list.push_back(op);
  };
  for (const auto& step : snapshot->state.steps) {
    if (!step.call.valid()) continue;
    const auto& content = snapshot->program->steps[step.call].content;
    if (const auto* call = std::get_if<pallascope::loop::LibraryCall>(&content)) add(library, call->op);
    if (const auto* call = std::get_if<pallascope::loop::TorchCall>(&content)) add(torch, call->op);
  }
  const auto& timings = compilation.timings();
  Json result = {{"ok", true},
                 {"source", snapshot->module.source},
                 {"nodes", compilation.traced().nodes.size()},
                 {"kernels", snapshot->state.kernels.size()},
                 {"library", library},
                 {"torch", torch},
                 {"decisions", compilation.decisions().size()},
                 {"lower_ms", timings.functional_ms + timings.lower_ms},
                 {"schedule_ms", timings.schedule_ms},
                 {"codegen_ms", timings.codegen_ms},
                 {"read_ms", read_ms},
                 {"bytes_moved", snapshot->state.bytes_moved}};
  return result.dump();
}

pybind11::list operator_table() {
  pybind11::list rows;
  for (const pallascope::lower::OperatorRow& row : pallascope::lower::operator_table()) {
    pybind11::dict entry;
    entry["op"] = std::string(row.op);
    entry["family"] = std::string(row.family);
    rows.append(entry);
  }
  return rows;
}

}  // namespace

PYBIND11_MODULE(_pallascope_core, m) {
  m.doc() = "Pallascope's core: lowers a traced graph to a Python module of Pallas kernels.";
  m.attr("__version__") = PALLASCOPE_VERSION;
  m.def("operator_table", &operator_table, "The operators that lowering knows: a list of {\"op\", \"family\"}.");
  m.def("lower", &lower, pybind11::arg("trace_json"), pybind11::arg("graph_index") = 0, pybind11::arg("options_json") = "{}",
        pybind11::call_guard<pybind11::gil_scoped_release>(),
        "Lowers one graph of a program (trace JSON) and gives JSON text: {\"ok\": true, \"source\", ...} or\n"
        "{\"ok\": false, \"error\": {\"kind\", \"message\", \"where\", \"remedy\"}}.");
}
