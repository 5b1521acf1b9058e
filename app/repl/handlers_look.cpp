#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "app/model/find_lines.h"
#include "app/repl/handlers.h"
#include "app/repl/names.h"
#include "app/repl/words.h"
#include "core/report/accesses.h"
#include "core/report/code.h"
#include "core/report/decision.h"
#include "core/report/format.h"
#include "core/report/inventory.h"
#include "core/report/lookup.h"

namespace pallascope::repl {
namespace {

using report::Json;

/// What a list's rows are filtered by. Every word has to hold.
struct Filter {
  std::vector<std::string> texts;
  std::vector<std::string> kinds, reasons;
};

struct Row {
  std::vector<std::string> cells;
  std::string kind, reason;
  std::string hidden;  ///< text that is searched and not shown
  std::function<Json()> json;
};

bool keeps(const Filter& filter, const Row& row) {
  const std::string text = model::lower(report::join(row.cells, " ") + " " + row.hidden);
  for (const std::string& wanted : filter.texts) {
    if (text.find(wanted) == std::string::npos) return false;
  }
  const auto one_of = [](const std::vector<std::string>& wanted, const std::string& have) {
    return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& w) { return have == w; });
  };
  return one_of(filter.kinds, row.kind) && one_of(filter.reasons, report::snake(row.reason));
}

Result<Filter> parse_filter(const std::string& list, const std::vector<std::string>& words,
                            const std::set<std::string>& kinds) {
  Filter filter;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string key = equals == std::string::npos ? "" : word.substr(0, equals);
    if (key != "kind" && key != "reason") {
      filter.texts.push_back(model::lower(word));
      continue;
    }
    const std::string value = report::snake(model::lower(word.substr(equals + 1)));
    if (key == "kind") {
      if (!kinds.contains(value)) {
        const std::vector<std::string> known(kinds.begin(), kinds.end());
        return Diagnostic{DiagnosticKind::invalid_argument,
                          fmt::format("{} are of no kind '{}'", list, value), "",
                          known.empty() ? fmt::format("{} have no kinds; give a text", list)
                                        : "the kinds are " + report::join(known, ", ")};
      }
      filter.kinds.push_back(value);
    } else {
      filter.reasons.push_back(value);
    }
  }
  return filter;
}

std::vector<Row> node_rows(const session::Compilation& compilation, const session::Snapshot& snapshot) {
  // A node's reason is that of its lowering.
  std::map<trace::NodeId, std::string> reasons;
  for (const schedule::Decision& decision : compilation.decisions()) {
    if (decision.kind != schedule::DecisionKind::lower) continue;
    for (const trace::NodeId node : decision.left) reasons[node] = schedule::reason_name(decision.reason);
  }
  std::vector<Row> rows;
  for (std::size_t k = 0; k < compilation.graph().nodes.size(); ++k) {
    const trace::NodeId id(k);
    Row row;
    row.cells = report::node_cells(compilation, snapshot, id);
    row.kind = report::outcome_text(snapshot, id);
    row.reason = reasons[id];
    row.hidden = compilation.graph().nodes[id].module_path;
    row.json = [&compilation, &snapshot, id] { return report::node_detail_json(compilation, snapshot, id); };
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> buffer_rows(const session::Compilation& compilation, const session::Snapshot& snapshot) {
  std::vector<Row> rows;
  for (const loop::BufferId id : report::buffers_of(compilation, snapshot)) {
    Row row;
    row.cells = report::buffer_cells(compilation, snapshot, id);
    row.kind = snapshot.program->buffers[id].kind == loop::BufferKind::input ? "input" : "intermediate";
    row.json = [&compilation, &snapshot, id] {
      return report::buffer_detail_json(compilation, snapshot, id);
    };
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> kernel_rows(const session::Compilation& compilation, const session::Snapshot& snapshot) {
  std::vector<Row> rows;
  for (const schedule::KernelId id : report::kernels_in_order(snapshot)) {
    Row row;
    row.cells = report::kernel_cells(compilation, snapshot, id);
    row.json = [&compilation, &snapshot, id] { return report::kernel_json(compilation, snapshot, id); };
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> decision_rows(const session::Compilation& compilation, std::size_t position) {
  std::vector<Row> rows;
  for (const schedule::Decision& decision : compilation.decisions()) {
    Row row;
    row.cells = report::decision_cells(compilation, decision);
    // What is still to come is listed too, since a list is there to find a place to go to.
    row.cells.push_back(decision.id.index() < position ? "" : "not taken yet");
    row.kind = schedule::kind_name(decision.kind);
    row.reason = schedule::reason_name(decision.reason);
    row.hidden = decision.accepted ? "accepted" : "refused";
    row.json = [&compilation, &decision, taken = decision.id.index() < position] {
      Json json = report::decision_row_json(compilation, decision);
      json["taken"] = taken;
      return json;
    };
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Neighbours of nodes, of a kernel (buffers with their makers or readers) or of a buffer.
Result<Output> neighbours(Session& session, const Arguments& arguments, bool upstream) {
  const auto current = session.opened();
  if (!current.ok()) return current.error();
  const Opened& opened = **current;
  const session::Compilation& compilation = *opened.compilation;
  const trace::Graph& graph = compilation.graph();
  const auto snapshot = opened.snapshot();
  const auto thing = resolve(opened, *snapshot, arguments.words[0]);
  if (!thing.ok()) return thing.error();
  const char* verb = upstream ? "reads" : "is read by";
  Output output;
  report::Table rows("  ");
  Json list = Json::array();
  if (thing->kind == Thing::Kind::kernel) {
    const schedule::Kernel& kernel = snapshot->state.kernels[thing->kernel];
    output.text = fmt::format("{} {} {}\n", report::id_text(thing->kernel),
                              report::kernel_name(*snapshot, thing->kernel), upstream ? "reads" : "writes");
    for (const loop::BufferId buffer : upstream ? kernel.inputs : kernel.outputs) {
      const auto names = upstream ? report::writers(compilation, *snapshot, buffer)
                                  : report::readers(compilation, *snapshot, buffer);
      const loop::Buffer& content = snapshot->program->buffers[buffer];
      rows.add({report::id_text(buffer), content.name, report::shape_text(content.dtype, content.dims),
                report::bytes_text(content.bytes()),
                names.empty() ? "" : (upstream ? "from " : "for ") + report::join(names, ", ")});
      Json entry = report::buffer_json(*snapshot->program, buffer);
      entry[upstream ? "from" : "for"] = names;
      list.push_back(std::move(entry));
    }
    output.json = {{"of", report::id_text(thing->kernel)},
                   {"nodes", Json::array()},
                   {"values", Json::array()},
                   {"buffers", list}};
  } else if (thing->kind == Thing::Kind::buffer) {
    const loop::Buffer& content = snapshot->program->buffers[thing->buffer];
    const auto names = upstream ? report::writers(compilation, *snapshot, thing->buffer)
                                : report::readers(compilation, *snapshot, thing->buffer);
    output.text = fmt::format("{} {} {}\n", report::id_text(thing->buffer), content.name,
                              upstream ? "is made by" : verb);
    for (const std::string& name : names) rows.add({name});
    output.json = {{"of", report::id_text(thing->buffer)},
                   {"nodes", Json::array()},
                   {"values", names},
                   {"buffers", Json::array()}};
  } else {
    const std::vector<trace::NodeId> nodes = nodes_of_thing(opened, *snapshot, *thing);
    std::vector<std::string> names, values;
    std::vector<trace::NodeId> found;
    for (const trace::NodeId node : nodes) {
      names.push_back(report::id_text(node) + " " + graph.nodes[node].name);
      const report::Neighbours next =
          upstream ? report::dependencies(graph, node) : report::users(graph, node);
      for (const trace::NodeId id : next.nodes) {
        if (std::find(found.begin(), found.end(), id) == found.end() &&
            std::find(nodes.begin(), nodes.end(), id) == nodes.end())
          found.push_back(id);
      }
      for (const std::string& value : next.values) {
        if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
      }
    }
    output.text = fmt::format("{} {}\n", report::join(names, ", "), verb);
    for (const trace::NodeId id : found) {
      rows.add({report::id_text(id), graph.nodes[id].name, graph.nodes[id].target,
                report::outputs_text(graph, graph.nodes[id]), report::place_text(graph.nodes[id])});
    }
    for (const std::string& value : values) rows.add({"", value, upstream ? "input" : ""});
    output.json = {{"of", arguments.words[0]},
                   {"nodes", report::nodes_json(graph, found)},
                   {"values", values},
                   {"buffers", Json::array()}};
  }
  output.text += rows.empty() ? "  nothing\n" : rows.text();
  return output;
}

}  // namespace

Result<Output> run_ls(Session& session, const Arguments& arguments) {
  static const std::vector<std::string> lists = {"nodes", "buffers", "kernels", "decisions"};
  const auto current = session.opened();
  if (!current.ok()) return current.error();
  const Opened& opened = **current;
  const session::Compilation& compilation = *opened.compilation;
  const std::string& list = arguments.words[0];
  if (std::find(lists.begin(), lists.end(), list) == lists.end()) {
    const std::string near = nearest(list, lists);
    return Diagnostic{DiagnosticKind::usage, fmt::format("there is no list '{}'", list), "ls",
                      near.empty() ? "the lists are " + report::join(lists, ", ")
                                   : fmt::format("did you mean `ls {}`?", near)};
  }
  const auto snapshot = opened.snapshot();
  std::vector<Row> rows;
  std::set<std::string> kinds;
  if (list == "nodes") {
    rows = node_rows(compilation, *snapshot);
    kinds = {"kernel", "view", "library", "torch"};
  } else if (list == "buffers") {
    rows = buffer_rows(compilation, *snapshot);
    kinds = {"input", "intermediate"};
  } else if (list == "kernels") {
    rows = kernel_rows(compilation, *snapshot);
  } else {
    rows = decision_rows(compilation, opened.position);
    kinds = {"lower", "inline", "fuse"};
  }
  const auto filter = parse_filter(list, {arguments.words.begin() + 1, arguments.words.end()}, kinds);
  if (!filter.ok()) return filter.error();
  Output output;
  report::Table table;
  Json items = Json::array();
  for (const Row& row : rows) {
    if (!keeps(*filter, row)) continue;
    table.add(row.cells);
    items.push_back(row.json());
  }
  output.json = {{"list", list}, {"total", rows.size()}, {"shown", items.size()}};
  output.text = table.text();
  const bool filtered = arguments.words.size() > 1;
  if (rows.empty()) {
    output.text += fmt::format("there are no {}\n", list);
  } else if (filtered) {
    output.text += fmt::format("{} of {} {}\n", items.size(), rows.size(), list);
  }
  output.json[list] = std::move(items);
  return output;
}

Result<Output> run_show(Session& session, const Arguments& arguments) {
  const auto current = session.opened();
  if (!current.ok()) return current.error();
  const Opened& opened = **current;
  const session::Compilation& compilation = *opened.compilation;
  const auto snapshot = opened.snapshot();
  const auto thing = resolve(opened, *snapshot, arguments.words[0]);
  if (!thing.ok()) return thing.error();
  Output output;
  switch (thing->kind) {
    case Thing::Kind::node: {
      Json list = Json::array();
      for (const trace::NodeId node : thing->nodes) {
        output.text += report::node_text(compilation, *snapshot, node);
        list.push_back(report::node_detail_json(compilation, *snapshot, node));
      }
      output.json = {{"nodes", list}};
      break;
    }
    case Thing::Kind::buffer:
      output.text = report::buffer_text(compilation, *snapshot, thing->buffer);
      output.json = {{"buffer", report::buffer_detail_json(compilation, *snapshot, thing->buffer)}};
      break;
    case Thing::Kind::kernel:
      output.text = report::kernel_text(compilation, *snapshot, thing->kernel);
      output.json = {{"kernel", report::kernel_json(compilation, *snapshot, thing->kernel)}};
      break;
    case Thing::Kind::decision: {
      const schedule::Decision& decision = compilation.decisions()[thing->decision.index()];
      output.text = report::decision_text(compilation, decision);
      output.json = {{"decision", report::decision_json(compilation, decision)}};
      break;
    }
  }
  return output;
}

Result<Output> run_deps(Session& session, const Arguments& arguments) {
  return neighbours(session, arguments, true);
}

Result<Output> run_users(Session& session, const Arguments& arguments) {
  return neighbours(session, arguments, false);
}

Result<Output> run_code(Session& session, const Arguments& arguments) {
  const auto current = session.opened();
  if (!current.ok()) return current.error();
  const Opened& opened = **current;
  const auto snapshot = opened.snapshot();
  std::optional<schedule::KernelId> kernel;
  if (!arguments.words.empty()) {
    const auto resolved = resolve_kernel(opened, *snapshot, arguments.words[0]);
    if (!resolved.ok()) return resolved.error();
    kernel = *resolved;
  }
  const auto from = arguments.options.find("from");
  const std::string form_name = from == arguments.options.end() ? "pallas" : from->second;
  const report::CodeForm form = form_name == "loops" ? report::CodeForm::loops
                                : form_name == "fx"  ? report::CodeForm::fx
                                                     : report::CodeForm::pallas;
  const auto lines = report::code_lines(*opened.compilation, *snapshot, form, kernel);
  Output output;
  output.json = {{"from", form_name},
                 {"kernel", kernel ? Json(report::id_text(*kernel)) : Json(nullptr)},
                 {"name", kernel ? Json(report::kernel_name(*snapshot, *kernel)) : Json(nullptr)},
                 {"decision", snapshot->decision}};
  output.json.update(report::code_json(*opened.compilation, *snapshot, lines));
  output.text = report::code_text(lines);
  if (lines.empty()) output.text = "there is no code\n";
  return output;
}

Result<Output> run_index(Session& session, const Arguments& arguments) {
  const auto current = session.opened();
  if (!current.ok()) return current.error();
  const Opened& opened = **current;
  const session::Compilation& compilation = *opened.compilation;
  const auto snapshot = opened.snapshot();
  std::vector<std::size_t> positions;
  Output output;
  Json calls = Json::array();
  const auto add_call = [&](loop::StepId step) {
    const auto* call = std::get_if<loop::LibraryCall>(&snapshot->program->steps[step].content);
    if (call == nullptr) return false;
    output.text += report::library_call_text(compilation, *snapshot, *call);
    Json json = {{"node", report::node_json(compilation.graph(), call->origin)}};
    json.update(report::library_call_json(*snapshot, *call));
    calls.push_back(std::move(json));
    return true;
  };
  std::string none = "no kernel loads or stores anything\n";
  if (arguments.words.empty()) {
    for (std::size_t k = 0; k < snapshot->module.accesses.size(); ++k) positions.push_back(k);
    for (const schedule::ScheduledStep& step : snapshot->state.steps) {
      if (!step.kernel.valid()) add_call(step.call);
    }
  } else {
    const auto thing = resolve(opened, *snapshot, arguments.words[0]);
    if (!thing.ok()) return thing.error();
    if (thing->kind == Thing::Kind::kernel) {
      positions = report::accesses_of_kernel(snapshot->module, thing->kernel);
    } else if (thing->kind == Thing::Kind::buffer) {
      for (std::size_t k = 0; k < snapshot->module.accesses.size(); ++k) {
        if (snapshot->module.accesses[k].buffer == thing->buffer) positions.push_back(k);
      }
      none = "no kernel loads or stores it\n";
    } else {
      std::set<std::size_t> found;
      for (const trace::NodeId node : nodes_of_thing(opened, *snapshot, *thing)) {
        for (const std::size_t position : report::accesses_of_node(*snapshot, node)) found.insert(position);
        const auto call = report::call_of(*snapshot, node);
        if (call && !add_call(*call)) {
          output.text +=
              fmt::format("{} {}   PyTorch runs it: {}\n", report::id_text(node),
                          compilation.graph().nodes[node].name, compilation.graph().nodes[node].target);
        } else if (!call && report::outcome_text(*snapshot, node) == "view") {
          output.text += fmt::format("{} {}   an index map: its readers' accesses hold it\n",
                                     report::id_text(node), compilation.graph().nodes[node].name);
        }
      }
      positions.assign(found.begin(), found.end());
      none = "no kernel loads or stores for it\n";
    }
  }
  output.text = report::accesses_text(compilation, *snapshot, positions) + output.text;
  if (output.text.empty()) output.text = none;
  output.json = {{"accesses", report::accesses_json(compilation, *snapshot, positions)},
                 {"library_calls", calls},
                 {"decision", snapshot->decision}};
  return output;
}

}  // namespace pallascope::repl
