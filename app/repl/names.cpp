#include "app/repl/names.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "app/repl/words.h"
#include "core/report/format.h"
#include "core/report/lookup.h"

namespace pallascope::repl {
namespace {

std::optional<std::size_t> digits(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Diagnostic no_id(std::string_view word, std::string_view noun, char letter, std::size_t count,
                 std::string_view where) {
  Diagnostic diagnostic{DiagnosticKind::not_found, fmt::format("there is no {} {}", noun, word), "", ""};
  diagnostic.remedy = count == 0
                          ? fmt::format("there are no {}s{}", noun, where)
                          : fmt::format("they go from {}0 to {}{}{}", letter, letter, count - 1, where);
  return diagnostic;
}

/// Nodes whose user frame is at `file:line`, where `file` may be the end of the path.
std::vector<trace::NodeId> nodes_at(const trace::Graph& graph, std::string_view file, std::size_t line) {
  std::vector<trace::NodeId> nodes;
  for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
    const trace::Frame* frame = graph.nodes[trace::NodeId(k)].user_frame();
    if (frame == nullptr || frame->line != static_cast<int>(line)) continue;
    const std::string_view path = frame->file;
    if (path == file || (path.ends_with(file) && path[path.size() - file.size() - 1] == '/'))
      nodes.push_back(trace::NodeId(k));
  }
  return nodes;
}

}  // namespace

Result<std::size_t> parse_count(std::string_view word) {
  if (const auto value = digits(word); value && *value > 0) return *value;
  return Diagnostic{DiagnosticKind::invalid_argument, fmt::format("'{}' is not a count", word), "",
                    "give a whole number from 1 on"};
}

Result<Thing> resolve(const Opened& opened, const session::Snapshot& snapshot, std::string_view word) {
  const session::Compilation& compilation = *opened.compilation;
  const trace::Graph& graph = compilation.graph();
  const loop::Program& program = *snapshot.program;
  Thing thing;
  std::optional<Diagnostic> out_of_range;
  if (const auto number = word.size() > 1 ? digits(word.substr(1)) : std::nullopt) {
    const std::string here = opened.position < compilation.decisions().size() ? " at this decision" : "";
    switch (word[0]) {
      case 'n':
        if (*number < graph.nodes.size()) {
          thing.nodes = {trace::NodeId(*number)};
          return thing;
        }
        out_of_range = no_id(word, "node", 'n', graph.nodes.size(), "");
        break;
      case 'b':
        if (*number < program.buffers.size()) {
          thing.kind = Thing::Kind::buffer;
          thing.buffer = loop::BufferId(*number);
          return thing;
        }
        out_of_range = no_id(word, "buffer", 'b', program.buffers.size(), here);
        break;
      case 'k':
        if (const schedule::KernelId kernel(*number); snapshot.state.kernels.contains(kernel)) {
          thing.kind = Thing::Kind::kernel;
          thing.kernel = kernel;
          return thing;
        }
        out_of_range = no_id(word, "kernel", 'k', snapshot.state.kernels.size(), here);
        break;
      case 'd':
        if (*number < compilation.decisions().size()) {
          thing.kind = Thing::Kind::decision;
          thing.decision = schedule::DecisionId(*number);
          return thing;
        }
        out_of_range = no_id(word, "decision", 'd', compilation.decisions().size(), "");
        break;
      default:
        break;
    }
  }
  if (const auto node = graph.find_node(word)) {
    thing.nodes = {*node};
    return thing;
  }
  if (const auto value = graph.find_value(word); value && graph.values[*value].producer.valid()) {
    thing.nodes = {graph.values[*value].producer};
    return thing;
  }
  for (std::size_t k = 0; k < program.buffers.size(); ++k) {
    if (program.buffers[loop::BufferId(k)].name == word) {
      thing.kind = Thing::Kind::buffer;
      thing.buffer = loop::BufferId(k);
      return thing;
    }
  }
  for (const schedule::KernelId kernel : report::kernels_in_order(snapshot)) {
    if (report::kernel_name(snapshot, kernel) == word) {
      thing.kind = Thing::Kind::kernel;
      thing.kernel = kernel;
      return thing;
    }
  }
  // An input whose buffer has another name than its value.
  for (std::size_t k = 0; k < graph.inputs.size() && k < program.input_buffers.size(); ++k) {
    if (graph.values[graph.inputs[k].value].name == word || graph.inputs[k].target == word) {
      thing.kind = Thing::Kind::buffer;
      thing.buffer = program.input_buffers[k];
      if (thing.buffer.valid()) return thing;
    }
  }
  if (const std::size_t colon = word.rfind(':'); colon != std::string_view::npos && colon > 0) {
    if (const auto line = digits(word.substr(colon + 1))) {
      thing.kind = Thing::Kind::node;
      thing.nodes = nodes_at(graph, word.substr(0, colon), *line);
      if (!thing.nodes.empty()) return thing;
      const std::string near = nearest(word, known_places(opened));
      return Diagnostic{DiagnosticKind::not_found, fmt::format("no node comes from {}", word), "",
                        near.empty() ? "`ls nodes` shows the line of each node"
                                     : fmt::format("the nearest line with a node is {}", near)};
    }
  }
  if (const auto traced = compilation.traced().find_node(word)) {
    const auto& origin = compilation.functional().origin;
    for (std::size_t k = 0; k < origin.size(); ++k) {
      if (origin[k] == *traced) thing.nodes.push_back(trace::NodeId(k));
    }
    if (!thing.nodes.empty()) return thing;
    return Diagnostic{DiagnosticKind::not_found, fmt::format("{} is not in the graph any more", word), "",
                      "nothing uses it, so that no code is made for it"};
  }
  if (out_of_range) return *out_of_range;
  const std::string near = nearest(word, known_names(opened, snapshot, false));
  return Diagnostic{DiagnosticKind::not_found, fmt::format("there is nothing called '{}'", word), "",
                    near.empty()
                        ? "name a node, buffer, kernel or decision: n12, b7, k4, d37, sum_2, model.py:42"
                        : fmt::format("the nearest name is {}", near)};
}

Result<schedule::KernelId> resolve_kernel(const Opened& opened, const session::Snapshot& snapshot,
                                          std::string_view word) {
  const auto thing = resolve(opened, snapshot, word);
  if (!thing.ok()) return thing.error();
  if (thing->kind == Thing::Kind::kernel) return thing->kernel;
  std::set<schedule::KernelId> kernels;
  for (const trace::NodeId node : nodes_of_thing(opened, snapshot, *thing)) {
    for (const schedule::KernelId kernel : report::kernels_of(snapshot, node)) kernels.insert(kernel);
  }
  // A node in exactly one kernel names it.
  if (thing->kind == Thing::Kind::node && kernels.size() == 1) return *kernels.begin();
  std::vector<std::string> ids;
  for (const schedule::KernelId kernel : kernels) ids.push_back(report::id_text(kernel));
  return Diagnostic{DiagnosticKind::invalid_argument, fmt::format("'{}' is not one kernel", word), "",
                    ids.empty() ? "`ls kernels` lists them" : "it is part of " + report::join(ids, ", ")};
}

Result<std::size_t> resolve_position(const Opened& opened, std::string_view word) {
  const std::size_t total = opened.compilation->decisions().size();
  if (word == "start") return std::size_t{0};
  if (word == "end") return total;
  const auto number = digits(word.starts_with('d') ? word.substr(1) : word);
  if (!number) {
    return Diagnostic{DiagnosticKind::invalid_argument, fmt::format("'{}' is not a decision", word), "",
                      "name one as d37, or say start or end"};
  }
  if (*number >= total) return no_id(word, "decision", 'd', total, "");
  return *number + 1;
}

std::vector<std::string> known_names(const Opened& opened, const session::Snapshot& snapshot, bool ids) {
  const trace::Graph& graph = opened.compilation->graph();
  std::set<std::string> names;
  for (const trace::Value& value : graph.values) names.insert(value.name);
  for (const trace::Node& node : graph.nodes) names.insert(node.name);
  const std::vector<loop::BufferId> buffers = report::buffers_of(*opened.compilation, snapshot);
  for (const loop::BufferId id : buffers) names.insert(snapshot.program->buffers[id].name);
  std::vector<std::string> result(names.begin(), names.end());
  if (!ids) return result;
  const auto add = [&result](char letter, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) result.push_back(fmt::format("{}{}", letter, k));
  };
  add('n', graph.nodes.size());
  for (const loop::BufferId id : buffers) result.push_back(report::id_text(id));
  add('k', snapshot.state.kernels.size());
  add('d', opened.compilation->decisions().size());
  return result;
}

std::vector<std::string> known_places(const Opened& opened) {
  std::set<std::string> places;
  for (const trace::Node& node : opened.compilation->graph().nodes) {
    if (const std::string place = report::place_text(node); !place.empty()) places.insert(place);
  }
  return {places.begin(), places.end()};
}

std::vector<trace::NodeId> nodes_of_thing(const Opened& opened, const session::Snapshot& snapshot,
                                          const Thing& thing) {
  switch (thing.kind) {
    case Thing::Kind::node:
      return thing.nodes;
    case Thing::Kind::kernel:
      return report::nodes_of(snapshot, thing.kernel);
    case Thing::Kind::buffer: {
      const trace::Graph& graph = opened.compilation->graph();
      const trace::ValueId value = snapshot.program->buffers[thing.buffer].origin;
      if (!graph.values.contains(value) || !graph.values[value].producer.valid()) return {};
      return {graph.values[value].producer};
    }
    case Thing::Kind::decision: {
      const schedule::Decision& decision = opened.compilation->decisions()[thing.decision.index()];
      std::set<trace::NodeId> nodes(decision.left.begin(), decision.left.end());
      nodes.insert(decision.right.begin(), decision.right.end());
      return {nodes.begin(), nodes.end()};
    }
  }
  return {};
}

}  // namespace pallascope::repl
