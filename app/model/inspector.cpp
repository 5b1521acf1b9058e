#include "app/model/inspector.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "app/model/inspector_maker.h"
#include "core/report/decision.h"
#include "core/report/format.h"
#include "core/report/lookup.h"
#include "core/report/summary.h"

namespace pallascope::model {
namespace inspecting {

using schedule::Decision;
using schedule::DecisionKind;

std::vector<schedule::KernelId> Maker::kernels_with(const std::vector<trace::NodeId>& nodes) const {
  const std::set<trace::NodeId> wanted(nodes.begin(), nodes.end());
  const auto in = [&](trace::NodeId id) { return wanted.contains(id); };
  std::vector<schedule::KernelId> found;
  for (const schedule::KernelId kernel : report::kernels_in_order(snapshot_)) {
    const auto& nests = snapshot_.state.kernels[kernel].nests;
    if (std::any_of(nests.begin(), nests.end(), [&](loop::NestId id) {
          const loop::Nest& nest = program_.nests[id];
          return in(nest.origin) || std::any_of(nest.origins.begin(), nest.origins.end(), in);
        }))
      found.push_back(kernel);
  }
  return found;
}

std::vector<schedule::DecisionId> Maker::decisions_with(const std::vector<trace::NodeId>& nodes) const {
  const std::set<trace::NodeId> wanted(nodes.begin(), nodes.end());
  const auto in = [&](trace::NodeId id) { return wanted.contains(id); };
  std::vector<schedule::DecisionId> found;
  for (const Decision& decision : compilation_.decisions()) {
    if (std::any_of(decision.left.begin(), decision.left.end(), in) ||
        std::any_of(decision.right.begin(), decision.right.end(), in))
      found.push_back(decision.id);
  }
  return found;
}

Inspector Maker::of(trace::NodeId id) const {
  const trace::Node& node = graph_.nodes[id];
  Inspector made{"node", report::id_text(id), node.name, node.target, {}, {}};

  InspectorSection value{"Value", {}, false, false};
  for (const trace::ValueId output : node.outputs) {
    const trace::Value& v = graph_.values[output];
    const std::string label = node.outputs.size() > 1 ? v.name : "result";
    if (!v.tensor) {
      value.rows.push_back(row(label, "None", Tone::dim));
      continue;
    }
    value.rows.push_back(row(label, trace::to_string(*v.tensor), Tone::code));
    InspectorRow strides =
        row(node.outputs.size() > 1 ? "strides of " + v.name : "strides",
            fmt::format("[{}]{}", fmt::join(v.tensor->strides, ","),
                        v.tensor->storage_offset != 0 ? fmt::format(" + {}", v.tensor->storage_offset) : ""),
            Tone::code);
    if (v.tensor->strides != trace::contiguous_strides(v.tensor->sizes))
      strides.pieces.push_back({"  not contiguous", {}, Tone::dim});
    value.rows.push_back(std::move(strides));
    if (node.outputs.size() == 1) value.rows.push_back(row("size", report::bytes_text(v.tensor->bytes())));
  }
  value.rows.push_back(row("call", report::call_text(graph_, node), Tone::code));
  add(made.sections, std::move(value));

  InspectorSection became{"Lowered to", {}, false, false};
  if (const loop::NodeOutcome* outcome = report::outcome_of(snapshot_, id); outcome != nullptr) {
    const auto words = [&]() -> std::string {
      switch (outcome->outcome) {
        case loop::Outcome::kernel:
          return "loops of a kernel";
        case loop::Outcome::view:
          return "a view: no code";
        case loop::Outcome::library:
          return "a library call (jax.lax)";
        case loop::Outcome::torch:
          return "a PyTorch call";
      }
      return "";
    };
    InspectorRow line =
        row("outcome", words(), outcome->outcome == loop::Outcome::torch ? Tone::bad : Tone::normal);
    became.rows.push_back(std::move(line));
    if (!outcome->why.empty()) became.rows.push_back(row("because", outcome->why));
  } else {
    became.rows.push_back(row("outcome", "not lowered yet at this decision", Tone::dim));
  }
  const std::vector<schedule::KernelId> kernels = report::kernels_of(snapshot_, id);
  std::size_t loops = 0;
  for (const schedule::KernelId kernel : kernels) {
    InspectorRow line{kernel == kernels.front() ? "kernel" : "kernel " + report::id_text(kernel),
                      {{report::id_text(kernel), kernel, Tone::normal},
                       {"  " + report::kernel_name(snapshot_, kernel), {}, Tone::dim}},
                      "",
                      {},
                      ' ',
                      report::kernel_name(snapshot_, kernel)};
    became.rows.push_back(std::move(line));
    for (const loop::NestId nest : snapshot_.state.kernels[kernel].nests) {
      const loop::Nest& n = program_.nests[nest];
      const bool own = n.origin == id;
      if (!own && std::find(n.origins.begin(), n.origins.end(), id) == n.origins.end()) continue;
      if (loops >= 24) break;  // an operator of more nests shows them as its kernel's
      ++loops;
      became.rows.push_back(
          {loops == 1 ? "loops" : fmt::format("loops {}", loops),
           {{n.name, StatementRef{nest, -1}, Tone::normal},
            {own ? "  " + report::axes_text(*program_.context, n.axes) : "  inlined here", {}, Tone::dim}},
           "",
           {},
           ' ',
           ""});
    }
  }
  for (const trace::ValueId output : node.outputs) {
    const auto view = program_.views.find(output);
    if (view == program_.views.end() || !program_.buffers.contains(view->second.buffer)) continue;
    const loop::Buffer& buffer = program_.buffers[view->second.buffer];
    const std::string label = node.outputs.size() > 1 ? "buffer of " + graph_.values[output].name : "buffer";
    became.rows.push_back(
        {label,
         {{report::id_text(view->second.buffer) + " " + buffer.name, view->second.buffer, Tone::normal},
          {"  " + report::bytes_text(buffer.bytes()), {}, Tone::dim}},
         "",
         {},
         ' ',
         ""});
  }
  add(made.sections, std::move(became));

  InspectorSection where{"Origin", {}, false, false};
  if (!node.module_path.empty())
    where.rows.push_back(link_row("module", node.module_path, GroupRef{node.module_path}));
  if (!node.module_type.empty()) where.rows.push_back(row("type", node.module_type));
  if (const trace::Frame* frame = node.user_frame(); frame != nullptr) {
    InspectorRow line = row("line", report::place_text(node));
    line.hint = fmt::format("{}:{}", frame->file, frame->line);
    where.rows.push_back(std::move(line));
    if (!frame->function.empty()) where.rows.push_back(row("function", frame->function));
    if (!frame->code.empty()) where.rows.push_back(row("code", frame->code, Tone::code));
  }
  if (compilation_.functional().changed && id.index() < compilation_.functional().origin.size()) {
    const trace::NodeId traced = compilation_.functional().origin[id.index()];
    if (compilation_.traced().nodes.contains(traced)) {
      const trace::Node& from = compilation_.traced().nodes[traced];
      if (from.name != node.name || from.target != node.target)
        where.rows.push_back(row("traced as", from.name + "  " + from.target));
    }
  }
  add(made.sections, std::move(where));
  add(made.sections, decisions(report::decisions_of(compilation_, id)));
  const auto neighbours = [&](std::string_view title, const report::Neighbours& found) {
    InspectorSection section = nodes(title, found.nodes);
    for (const std::string& value : found.values) {
      InspectorRow line{value, {{"of the graph", {}, Tone::dim}}, "", {}, ' ', ""};
      if (const auto known = graph_.find_value(value)) {
        const trace::Value& v = graph_.values[*known];
        if (v.tensor) line.aside = trace::to_string(*v.tensor);
        for (std::size_t k = 0; k < graph_.inputs.size() && k < program_.input_buffers.size(); ++k) {
          if (graph_.inputs[k].value != *known || !program_.input_buffers[k].valid()) continue;
          line.selection = program_.input_buffers[k];
          line.label = report::id_text(program_.input_buffers[k]);
          line.pieces = {{value, {}, Tone::normal}};
        }
      }
      section.rows.push_back(std::move(line));
    }
    add(made.sections, std::move(section));
  };
  neighbours("Inputs", report::dependencies(graph_, id));
  neighbours("Users", report::users(graph_, id));
  if (!node.stack.empty()) {
    InspectorSection stack{"Stack", {}, false, true};
    for (std::size_t k = node.stack.size(); k-- > 0;) {  // innermost first
      const trace::Frame& frame = node.stack[k];
      const std::size_t slash = frame.file.find_last_of('/');
      InspectorRow line =
          row(fmt::format("{}", node.stack.size() - k),
              fmt::format("{}:{}{}", slash == std::string::npos ? frame.file : frame.file.substr(slash + 1),
                          frame.line, frame.function.empty() ? "" : " in " + frame.function),
              &frame == node.user_frame() ? Tone::normal : Tone::dim);
      line.hint = frame.file + (frame.code.empty() ? "" : "\n" + frame.code);
      stack.rows.push_back(std::move(line));
    }
    add(made.sections, std::move(stack));
  }
  return made;
}

Inspector Maker::of(schedule::DecisionId id) const {
  const Decision& decision = compilation_.decisions()[id.index()];
  Inspector made{"decision", report::id_text(id), report::subject_text(compilation_, decision), "", {}, {}};
  made.subtitle = std::string(schedule::kind_name(decision.kind));
  InspectorSection verdict{"Verdict", {}, false, false};
  verdict.rows.push_back(
      row("kind", std::string(decision.kind == DecisionKind::lower  ? "lower an operator"
                              : decision.kind == DecisionKind::fuse ? "fuse two sides"
                                                                    : "inline a producer")));
  verdict.rows.push_back(row("verdict",
                             std::string(decision.accepted ? "✓ " : "✗ ") + report::verdict_text(decision),
                             decision.accepted ? Tone::good : Tone::bad));
  verdict.rows.push_back(row("reason", std::string(schedule::reason_words(decision.reason))));
  if (!decision.evidence.note.empty()) verdict.rows.push_back(row("note", decision.evidence.note));
  if (decision.evidence.bytes_saved > 0)
    verdict.rows.push_back(
        row(decision.accepted ? "saves" : "would save", report::bytes_text(decision.evidence.bytes_saved)));
  const bool taken = id.index() < snapshot_.decision;
  verdict.rows.push_back(taken ? row("at", id.index() + 1 == snapshot_.decision ? "the decision just taken"
                                                                                : "taken before this point")
                               : row("at", "not taken yet at this point", Tone::dim));
  add(made.sections, std::move(verdict));
  const auto side = [&](std::string_view title, const std::vector<trace::NodeId>& ids) {
    add(made.sections, nodes(title, ids));
  };
  switch (decision.kind) {
    case DecisionKind::lower:
      side("Operator", decision.left);
      break;
    case DecisionKind::inline_producer:
      side("Producer", decision.left), side("Consumers", decision.right);
      break;
    case DecisionKind::fuse:
      side("Left side", decision.left), side("Right side", decision.right);
      break;
  }
  std::vector<trace::NodeId> both = decision.left;
  both.insert(both.end(), decision.right.begin(), decision.right.end());
  InspectorSection kernels{"Kernels now", {}, true, false};
  for (const schedule::KernelId kernel : kernels_with(both)) kernels.rows.push_back(kernel_row(kernel));
  add(made.sections, std::move(kernels));
  if (!decision.evidence.indices.empty() && snapshot_.program == compilation_.schedule().program) {
    std::set<loop::BufferId> seen;
    InspectorSection shared{"Shared buffers", {}, true, false};
    for (const schedule::IndexPair& pair : decision.evidence.indices) {
      if (seen.insert(pair.buffer).second) shared.rows.push_back(buffer_row(pair.buffer));
    }
    add(made.sections, std::move(shared));
  }
  return made;
}

Inspector Maker::of(const GroupRef& group) const {
  std::vector<trace::NodeId> members;
  std::string type;
  for (std::size_t k = 0; k < graph_.nodes.size(); ++k) {
    const trace::Node& node = graph_.nodes[trace::NodeId(k)];
    if (!in_group(node.module_path, group.path)) continue;
    members.push_back(trace::NodeId(k));
    if (type.empty() && node.module_path == group.path) type = node.module_type;
  }
  Inspector made{"module", "", group.path.empty() ? "the whole graph" : group.path, type, {}, {}};
  std::map<std::string, std::size_t> outcomes;
  for (const trace::NodeId id : members) {
    const std::string outcome = report::outcome_text(snapshot_, id);
    ++outcomes[outcome.empty() ? "not lowered" : outcome];
  }
  InspectorSection contents{"Contents", {}, false, false};
  contents.rows.push_back(row("nodes", report::count_text(static_cast<std::int64_t>(members.size()))));
  for (const auto& [outcome, count] : outcomes)
    contents.rows.push_back(
        row(outcome, whole_number(count, "node"), outcome == "torch" ? Tone::bad : Tone::normal));
  const std::size_t dot = group.path.find_last_of('.');
  if (dot != std::string::npos)
    contents.rows.push_back(
        link_row("inside", group.path.substr(0, dot), GroupRef{group.path.substr(0, dot)}));
  add(made.sections, std::move(contents));
  InspectorSection kernels{"Kernels", {}, true, false};
  for (const schedule::KernelId kernel : kernels_with(members)) kernels.rows.push_back(kernel_row(kernel));
  add(made.sections, std::move(kernels));
  add(made.sections, nodes("Nodes", members));
  return made;
}

Inspector Maker::overview() const {
  Inspector made{"program", "", report::program_title(compilation_.program()), graph_.name, {}, {}};
  std::size_t kernels = 0, nests = 0, library = 0, torch = 0;
  for (const schedule::ScheduledStep& step : snapshot_.state.steps) {
    if (step.kernel.valid()) {
      ++kernels;
      nests += snapshot_.state.kernels[step.kernel].nests.size();
    } else {
      const bool jax = std::holds_alternative<loop::LibraryCall>(program_.steps[step.call].content);
      ++(jax ? library : torch);
    }
  }
  InspectorSection here{"At this decision", {}, false, false};
  here.rows.push_back(
      row("decision", fmt::format("{} of {}", snapshot_.decision, compilation_.decisions().size())));
  here.rows.push_back(row("nodes", report::count_text(static_cast<std::int64_t>(graph_.nodes.size()))));
  here.rows.push_back(row(
      "kernels", fmt::format("{}, {}", whole_number(kernels, "kernel"), whole_number(nests, "loop nest"))));
  here.rows.push_back(row("library", whole_number(library, "call")));
  here.rows.push_back(row("torch", whole_number(torch, "call"), torch > 0 ? Tone::bad : Tone::normal));
  here.rows.push_back(row("moved", report::bytes_text(snapshot_.state.bytes_moved) + " a call"));
  add(made.sections, std::move(here));
  InspectorSection list{"Kernels", {}, true, false};
  for (const schedule::KernelId kernel : report::kernels_in_order(snapshot_))
    list.rows.push_back(kernel_row(kernel));
  add(made.sections, std::move(list));
  made.hints = {
      "Click a node in the graph, a line of source or a decision: everything about it stands here."};
  return made;
}

}  // namespace inspecting

std::string InspectorRow::text() const {
  std::string result;
  for (const InspectorPiece& piece : pieces) result += piece.text;
  return result;
}

const InspectorRow* Inspector::find(std::string_view label, std::string_view section) const {
  for (const InspectorSection& s : sections) {
    if (!section.empty() && s.title != section) continue;
    for (const InspectorRow& r : s.rows) {
      if (r.label == label) return &r;
    }
  }
  return nullptr;
}

const InspectorSection* Inspector::section(std::string_view title) const {
  const auto at = std::find_if(sections.begin(), sections.end(),
                               [&](const InspectorSection& s) { return s.title == title; });
  return at == sections.end() ? nullptr : &*at;
}

Inspector inspector(const session::Compilation& compilation, const session::Snapshot& snapshot,
                    const Selection& selection) {
  const inspecting::Maker maker(compilation, snapshot);
  if (const auto* node = std::get_if<trace::NodeId>(&selection);
      node != nullptr && compilation.graph().nodes.contains(*node))
    return maker.of(*node);
  if (const auto* kernel = std::get_if<schedule::KernelId>(&selection);
      kernel != nullptr && snapshot.state.kernels.contains(*kernel))
    return maker.of(*kernel);
  if (const auto* buffer = std::get_if<loop::BufferId>(&selection);
      buffer != nullptr && snapshot.program->buffers.contains(*buffer))
    return maker.of(*buffer);
  if (const auto* decision = std::get_if<schedule::DecisionId>(&selection);
      decision != nullptr && decision->valid() && decision->index() < compilation.decisions().size())
    return maker.of(*decision);
  if (const auto* group = std::get_if<GroupRef>(&selection)) return maker.of(*group);
  if (const auto* statement = std::get_if<StatementRef>(&selection);
      statement != nullptr && snapshot.program->nests.contains(statement->nest))
    return maker.of(*statement);
  if (const auto* access = std::get_if<AccessRef>(&selection);
      access != nullptr && access->access >= 0 &&
      static_cast<std::size_t>(access->access) < snapshot.module.accesses.size())
    return maker.of(*access);
  return maker.overview();
}

}  // namespace pallascope::model
