#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "app/repl/handlers.h"
#include "app/repl/names.h"
#include "core/report/check.h"
#include "core/report/format.h"
#include "core/report/lookup.h"
#include "core/trace/read.h"

namespace pallascope::repl {
namespace {

using report::Json;

/// How many kernels and library calls the module launches.
std::size_t launches(const session::Snapshot& snapshot) {
  std::size_t count = 0;
  for (const schedule::ScheduledStep& step : snapshot.state.steps) {
    if (step.kernel.valid() ||
        std::holds_alternative<loop::LibraryCall>(snapshot.program->steps[step.call].content))
      ++count;
  }
  return count;
}

Json base_request(const char* name, const Opened& opened, const session::Snapshot& snapshot) {
  Json request = {{"request", name},
                  {"program", trace::write_json(*opened.program)},
                  {"graph", opened.compilation->graph_index()},
                  {"source", snapshot.module.source},
                  {"inputs", {{"kind", "random"}, {"seed", 0}}},
                  {"weights", nullptr},
                  {"modes", {"debug", "steady"}},
                  {"launches", launches(snapshot)},
                  {"tolerance", nullptr}};
  switch (opened.source) {
    case Source::bundle:
      request["inputs"] = {{"kind", "bundle"}, {"path", opened.path}};
      break;
    case Source::pt2:
      request["weights"] = {{"kind", "pt2"}, {"path", opened.path}};
      break;
    case Source::traced:
      if (!opened.token.empty()) request["weights"] = {{"kind", "trace"}, {"token", opened.token}};
      break;
    case Source::json:
      break;
  }
  return request;
}

/// The value of an ATen node that a buffer holds, as the traced graph names it; or why nothing of it is compared.
struct Held {
  trace::ValueId value;  ///< of the functional graph; invalid with a `why`
  std::string traced;    ///< the name that eager's value has
  loop::AffineView layout;
  const char* why = "";
};

using Views = std::map<loop::BufferId, std::vector<std::pair<trace::ValueId, const loop::View*>>>;

Held held_by(const Opened& opened, const loop::Program& program, const Views& views, loop::BufferId buffer) {
  const session::Compilation& compilation = *opened.compilation;
  Held held{{}, {}, {}, "holds no node's value (a part of an operator)"};
  std::int64_t most = -1;
  const auto of_buffer = views.find(buffer);
  if (of_buffer == views.end()) return held;
  for (const auto& [value, view] : of_buffer->second) {
    const trace::Value& known = compilation.graph().values[value];
    if (!known.tensor || !known.producer.valid()) continue;
    const trace::ValueId origin = compilation.functional().value_origin.at(value.index());
    const auto layout = loop::affine(*program.context, *view);
    if (!origin.valid() || !layout || known.tensor->dtype != program.buffers[buffer].dtype) {
      if (!held.value.valid()) {
        held.why = !origin.valid() ? "holds a value that only the functional graph has"
                   : !layout       ? "holds a value that no strides can view"
                                   : "holds a node's value in another dtype";
      }
      continue;
    }
    // Of several, the one that the buffer was made for; of views of it, one that shows most of it.
    const std::int64_t shows = program.buffers[buffer].origin == value
                                   ? std::numeric_limits<std::int64_t>::max()
                                   : known.tensor->numel();
    if (shows <= most) continue;
    most = shows;
    held = {value, compilation.traced().values[origin].name, *layout, ""};
  }
  return held;
}

/// What the host needs to compare each buffer when it is written (observe.py says the keys), in execution order; and
/// in `skipped` the buffers that it cannot compare, each with the reason.
Json buffers_request(const Opened& opened, const session::Snapshot& snapshot, Json& skipped) {
  const loop::Program& program = *snapshot.program;
  const trace::Graph& graph = opened.compilation->graph();
  Json steps = Json::array();
  skipped = Json::array();
  Views views;
  for (const auto& [value, view] : program.views) views[view.buffer].emplace_back(value, &view);
  for (const schedule::ScheduledStep& scheduled : snapshot.state.steps) {
    std::vector<loop::BufferId> written;
    Json step = {{"kernel", nullptr}, {"call", nullptr}, {"name", nullptr}, {"torch", false}};
    if (scheduled.kernel.valid()) {
      step["kernel"] = report::id_text(scheduled.kernel);
      step["name"] = report::kernel_name(snapshot, scheduled.kernel);
      written = snapshot.state.kernels[scheduled.kernel].outputs;
    } else if (const auto& content = program.steps[scheduled.call].content;
               const auto* library = std::get_if<loop::LibraryCall>(&content)) {
      step["call"] = library->op;
      written = library->outputs;
    } else if (const auto* torch = std::get_if<loop::TorchCall>(&content)) {
      step["call"] = torch->op;
      step["torch"] = true;
      written = torch->outputs;
    }
    Json values = Json::array();
    for (const loop::BufferId buffer : written) {
      if (!buffer.valid()) continue;  // an output that is None
      const Held held = held_by(opened, program, views, buffer);
      if (!held.value.valid()) {
        skipped.push_back({{"buffer", report::id_text(buffer)},
                           {"kernel", step["kernel"]},
                           {"call", step["call"]},
                           {"why", held.why}});
        continue;
      }
      const trace::Value& value = graph.values[held.value];
      // Code generation's names: a dense tensor, or a torch call's result as it came.
      const std::string variable = (step["torch"].get<bool>() ? "r_" : "t_") + program.buffers[buffer].name;
      values.push_back({{"buffer", report::id_text(buffer)},
                        {"variable", variable},
                        {"node", report::id_text(value.producer)},
                        {"node_name", graph.nodes[value.producer].name},
                        {"output", value.output_index},
                        {"value", held.traced},
                        {"sizes", value.tensor->sizes},
                        {"strides", held.layout.strides},
                        {"offset", held.layout.offset}});
    }
    step["values"] = std::move(values);
    steps.push_back(std::move(step));
  }
  return steps;
}

/// The rows of a result that a kernel writes: user outputs by their place, arguments by their input.
struct Written {
  std::set<std::size_t> outputs, arguments;
};

/// `any`: also for a kernel that writes none; else that is a diagnostic.
Result<Written> written_by(const Opened& opened, const session::Snapshot& snapshot, const std::string& word,
                           bool any, std::string& label) {
  const auto kernel = resolve_kernel(opened, snapshot, word);
  if (!kernel.ok()) return kernel.error();
  label = report::id_text(*kernel);
  const auto& buffers = snapshot.state.kernels[*kernel].outputs;
  const auto writes = [&](loop::BufferId buffer) {
    return std::find(buffers.begin(), buffers.end(), buffer) != buffers.end();
  };
  Written written;
  std::size_t user_output = 0;
  for (const loop::OutputValue& output : snapshot.program->outputs) {
    const bool mutation = output.kind == trace::OutputKind::mutation;
    if (!output.none && writes(output.view.buffer)) {
      if (mutation) {
        written.arguments.insert(static_cast<std::size_t>(std::max(output.mutated_input, 0)));
      } else {
        written.outputs.insert(user_output);
      }
    }
    if (!mutation) ++user_output;
  }
  if (written.outputs.empty() && written.arguments.empty() && !any) {
    std::vector<std::string> readers;
    for (const loop::BufferId buffer : buffers) {
      for (const std::string& reader : report::readers(*opened.compilation, snapshot, buffer))
        readers.push_back(reader);
    }
    return Diagnostic{
        DiagnosticKind::invalid_argument,
        fmt::format("{} writes no output of the graph, so that nothing of it can be compared alone", label),
        "",
        readers.empty()
            ? "leave the kernel out"
            : fmt::format("what it writes is read by {}; leave the kernel out to compare everything",
                          report::join(readers, ", "))};
  }
  return written;
}

/// A text field of the host's answer; empty when it is not there or no text.
std::string text_field(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

/// Keeps the buffers of the kernel `label`.
void keep_buffers(Json& result, const std::string& label) {
  for (const char* list : {"buffers", "buffers_skipped"}) {
    const auto at = result.find(list);
    if (at == result.end() || !at->is_array()) continue;
    Json kept = Json::array();
    bool failed = false;
    for (const Json& row : *at) {
      if (text_field(row, "kernel") != label) continue;
      failed = failed || text_field(row, "verdict") == "failed";
      kept.push_back(row);
    }
    *at = std::move(kept);
    // A kernel without an output of the graph is judged by what it writes.
    if (failed && result.contains("verdict") && result.contains("outputs") && result["outputs"].empty())
      result["verdict"] = "failed";
  }
}

/// Keeps the rows that `written` names. Rows of `run` have no index: they stand in the outputs' order.
void keep_rows(Json& result, const Written& written) {
  const auto at = result.find("outputs");
  if (at == result.end() || !at->is_array()) return;
  Json kept = Json::array();
  bool failed = false;
  for (std::size_t k = 0; k < at->size(); ++k) {
    const Json& row = (*at)[k];
    if (!row.is_object()) continue;
    const bool argument = text_field(row, "kind") == "argument";
    const auto place = row.find("index");
    const std::size_t index =
        place != row.end() && place->is_number_unsigned() ? place->get<std::size_t>() : k;
    if (!(argument ? written.arguments : written.outputs).contains(index)) continue;
    failed = failed || text_field(row, "verdict") == "failed";
    kept.push_back(row);
  }
  result["outputs"] = kept;
  if (result.contains("verdict")) result["verdict"] = failed ? "failed" : "passed";
}

Result<Output> run_request(Session& session, const Arguments& arguments, const char* name) {
  const auto current = session.opened();
  if (!current.ok()) return current.error();
  Opened& opened = **current;
  const auto snapshot = opened.snapshot();
  Written written;
  std::string label;
  const bool one_kernel = !arguments.words.empty(), buffers = arguments.has("buffers");
  if (one_kernel) {
    auto found = written_by(opened, *snapshot, arguments.words[0], buffers, label);
    if (!found.ok()) return found.error();
    written = *std::move(found);
  }
  const bool full = arguments.has("full");
  Json request = base_request(name, opened, *snapshot);
  request["picture"] = arguments.has("picture");
  Json skipped;
  if (buffers) request["buffers"] = buffers_request(opened, *snapshot, skipped);
  auto reply = session.ask(request);
  if (!reply.ok()) return reply.error();
  if (!reply->is_object())
    return Diagnostic{DiagnosticKind::host_error, "the host's answer is no object", "",
                      "the host may be of another version"};
  Json result = *std::move(reply);
  const bool check = std::string_view(name) == "check";
  const std::string verdict = check ? text_field(result, "verdict") : "";
  // The program's verdict is kept; that of one kernel says nothing of the others.
  if (check && !one_kernel)
    opened.checked[opened.compilation->graph_index()] = {true, verdict, snapshot->decision};
  if (buffers) result["buffers_skipped"] = std::move(skipped);
  if (one_kernel) {
    keep_rows(result, written);
    keep_buffers(result, label);
  }
  result["decision"] = snapshot->decision;
  result["graph"] = opened.compilation->graph_index();
  result["kernel"] = one_kernel ? Json(label) : Json(nullptr);
  Output output;
  output.text = check ? report::check_text(result, snapshot->decision, full)
                      : report::run_text(result, snapshot->decision);
  if (one_kernel) output.text += fmt::format("everything ran; shown is what {} writes\n", label);
  if (check) output.passed = text_field(result, "verdict") != "failed";
  output.json = std::move(result);
  return output;
}

}  // namespace

Result<Output> run_run(Session& session, const Arguments& arguments) {
  return run_request(session, arguments, "run");
}

Result<Output> run_check(Session& session, const Arguments& arguments) {
  return run_request(session, arguments, "check");
}

Result<Output> run_python(Session& session, std::string_view code) {
  if (code.find_first_not_of(" \t\n") == std::string_view::npos) {
    return Diagnostic{DiagnosticKind::usage, "there is no Python after py", "py",
                      "write for example: py inputs[0].shape"};
  }
  auto reply = session.ask({{"request", "python"}, {"code", std::string(code)}});
  if (!reply.ok()) return reply.error();
  Output output;
  output.json = *std::move(reply);
  output.text = text_field(output.json, "stdout");
  if (!output.text.empty() && !output.text.ends_with('\n')) output.text += '\n';
  if (const std::string value = text_field(output.json, "repr"); !value.empty()) output.text += value + "\n";
  return output;
}

}  // namespace pallascope::repl
