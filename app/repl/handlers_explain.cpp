#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "app/repl/handlers.h"
#include "app/repl/names.h"
#include "core/report/decision.h"
#include "core/report/format.h"
#include "core/report/inventory.h"
#include "core/report/lookup.h"

namespace pallascope::repl {
namespace {

using report::Json;
using schedule::Decision;
using schedule::DecisionKind;

bool touches(const std::vector<trace::NodeId>& side, const std::vector<trace::NodeId>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [&](trace::NodeId node) {
    return std::find(side.begin(), side.end(), node) != side.end();
  });
}

/// Decisions about `nodes`: lowerings and inlinings in full, fusions as rows (a node of a large group is named by many),
/// unless there are only a few.
void explain(Output& output, Json& list, Json& fusion_rows, const session::Compilation& compilation,
             const std::vector<schedule::DecisionId>& ids) {
  constexpr std::size_t few = 2;
  const auto is_fusion = [&](schedule::DecisionId id) {
    return compilation.decisions()[id.index()].kind == DecisionKind::fuse;
  };
  const auto fusions = static_cast<std::size_t>(std::count_if(ids.begin(), ids.end(), is_fusion));
  report::Table rows("  ");
  std::string example;
  for (const schedule::DecisionId id : ids) {
    const Decision& decision = compilation.decisions()[id.index()];
    if (decision.kind == DecisionKind::fuse)
      fusion_rows.push_back(report::decision_row_json(compilation, decision));
    if (decision.kind != DecisionKind::fuse || fusions <= few) {
      list.push_back(report::decision_json(compilation, decision));
      output.text += report::decision_text(compilation, decision, decision.kind == DecisionKind::fuse);
    } else {
      rows.add(report::decision_cells(compilation, decision));
      if (example.empty() || !decision.accepted) example = report::id_text(id);
    }
  }
  if (!rows.empty())
    output.text +=
        fmt::format("{} took part (`why {}` for one in full):\n{}",
                    report::plural(static_cast<std::int64_t>(fusions), "fusion"), example, rows.text());
}

std::string side_names(const trace::Graph& graph, const std::vector<trace::NodeId>& nodes) {
  std::vector<std::string> names;
  for (const trace::NodeId node : nodes) names.push_back(graph.nodes[node].name);
  return report::join(names, ", ");
}

/// Views are index maps: they are in no kernel of their own, so that a question about one is about what makes its data.
std::vector<trace::NodeId> through_views(const session::Compilation& compilation,
                                         const session::Snapshot& snapshot,
                                         std::vector<trace::NodeId> nodes) {
  const trace::Graph& graph = compilation.graph();
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    if (report::outcome_text(snapshot, nodes[k]) != "view") continue;
    for (const trace::NodeId source : report::dependencies(graph, nodes[k]).nodes) {
      if (std::find(nodes.begin(), nodes.end(), source) == nodes.end()) nodes.push_back(source);
    }
  }
  return nodes;
}

}  // namespace

Result<Output> run_why(Session& session, const Arguments& arguments) {
  const auto current = session.opened();
  if (!current.ok()) return current.error();
  const Opened& opened = **current;
  const session::Compilation& compilation = *opened.compilation;
  const trace::Graph& graph = compilation.graph();
  const auto snapshot = opened.snapshot();
  const auto thing = resolve(opened, *snapshot, arguments.words[0]);
  if (!thing.ok()) return thing.error();
  Output output;
  Json list = Json::array(), fusions = Json::array();  // explained in full, and as rows
  Json subject = nullptr;
  switch (thing->kind) {
    case Thing::Kind::decision:
      output.text = report::decision_text(compilation, compilation.decisions()[thing->decision.index()]);
      list.push_back(report::decision_json(compilation, compilation.decisions()[thing->decision.index()]));
      subject = report::id_text(thing->decision);
      break;
    case Thing::Kind::node:
      for (const trace::NodeId node : thing->nodes) {
        output.text += fmt::format("{} {}   {}   {}\n", report::id_text(node), graph.nodes[node].name,
                                   graph.nodes[node].target, report::place_text(graph.nodes[node]));
        explain(output, list, fusions, compilation, report::decisions_of(compilation, node));
      }
      subject = report::nodes_json(graph, thing->nodes);
      break;
    case Thing::Kind::kernel: {
      const std::vector<trace::NodeId> nodes = report::nodes_of(*snapshot, thing->kernel);
      const std::set<trace::NodeId> inside(nodes.begin(), nodes.end());
      const auto all_inside = [&](const std::vector<trace::NodeId>& side) {
        return std::all_of(side.begin(), side.end(),
                           [&](trace::NodeId node) { return inside.contains(node); });
      };
      report::Table made, kept_out;
      for (std::size_t k = 0; k < std::min(opened.position, compilation.decisions().size()); ++k) {
        const Decision& decision = compilation.decisions()[k];
        if (decision.kind != DecisionKind::fuse ||
            !(touches(decision.left, nodes) || touches(decision.right, nodes)))
          continue;
        const bool within = all_inside(decision.left) && all_inside(decision.right);
        // A refusal inside the kernel was overtaken: its sides met through a third.
        if (decision.accepted != within) continue;
        fusions.push_back(report::decision_row_json(compilation, decision));
        (within ? made : kept_out).add(report::decision_cells(compilation, decision));
      }
      output.text = fmt::format("{} {}   {}\n", report::id_text(thing->kernel),
                                report::kernel_name(*snapshot, thing->kernel), side_names(graph, nodes));
      output.text += made.empty() ? "one nest: no fusion made it\n" : "made by\n" + made.text();
      output.text += kept_out.empty() ? "nothing was refused entry\n" : "refused\n" + kept_out.text();
      subject = report::id_text(thing->kernel);
      break;
    }
    case Thing::Kind::buffer: {
      std::vector<schedule::DecisionId> ids;
      const std::vector<trace::NodeId> makers = nodes_of_thing(opened, *snapshot, *thing);
      for (const Decision& decision : compilation.decisions()) {
        const bool about =
            decision.kind == DecisionKind::fuse
                ? std::any_of(decision.evidence.indices.begin(), decision.evidence.indices.end(),
                              [&](const schedule::IndexPair& pair) { return pair.buffer == thing->buffer; })
                : touches(decision.left, makers);
        if (about) ids.push_back(decision.id);
      }
      output.text = report::buffer_text(compilation, *snapshot, thing->buffer);
      explain(output, list, fusions, compilation, ids);
      subject = report::id_text(thing->buffer);
      break;
    }
  }
  if (list.empty() && fusions.empty() && thing->kind != Thing::Kind::kernel)
    output.text += "  no decision is about it\n";
  output.json = {{"subject", subject}, {"decisions", list}, {"fusions", fusions}};
  return output;
}

Result<Output> run_why_not(Session& session, const Arguments& arguments) {
  const auto current = session.opened();
  if (!current.ok()) return current.error();
  const Opened& opened = **current;
  const session::Compilation& compilation = *opened.compilation;
  const trace::Graph& graph = compilation.graph();
  const auto snapshot = opened.snapshot();
  std::vector<trace::NodeId> sides[2];
  for (std::size_t k = 0; k < 2; ++k) {
    const auto thing = resolve(opened, *snapshot, arguments.words[k]);
    if (!thing.ok()) return thing.error();
    sides[k] = nodes_of_thing(opened, *snapshot, *thing);
    if (sides[k].empty()) {
      return Diagnostic{DiagnosticKind::invalid_argument,
                        fmt::format("'{}' is a graph input: no operator makes it", arguments.words[k]), "",
                        "name two operators or kernels"};
    }
    sides[k] = through_views(compilation, *snapshot, sides[k]);
  }
  Output output;
  // In one kernel already?
  std::set<schedule::KernelId> first, both;
  for (const trace::NodeId node : sides[0]) {
    for (const schedule::KernelId kernel : report::kernels_of(*snapshot, node)) first.insert(kernel);
  }
  for (const trace::NodeId node : sides[1]) {
    for (const schedule::KernelId kernel : report::kernels_of(*snapshot, node)) {
      if (first.contains(kernel)) both.insert(kernel);
    }
  }
  const Decision* refused = nullptr;
  const Decision* accepted = nullptr;
  for (std::size_t k = 0; k < std::min(opened.position, compilation.decisions().size()); ++k) {
    const Decision& decision = compilation.decisions()[k];
    if (decision.kind == DecisionKind::lower) continue;
    if (!(touches(decision.left, sides[0]) && touches(decision.right, sides[1])) &&
        !(touches(decision.left, sides[1]) && touches(decision.right, sides[0])))
      continue;
    // An inlining that was not done says nothing against a fusion; the last refusal is of the groups as they are now.
    if (decision.kind == DecisionKind::inline_producer && !decision.accepted) continue;
    (decision.accepted ? accepted : refused) = &decision;
  }
  const auto as_json = [&](const Decision* decision) {
    return decision == nullptr ? Json(nullptr) : report::decision_json(compilation, *decision);
  };
  if (!both.empty()) {
    std::vector<std::string> ids;
    for (const schedule::KernelId kernel : both) ids.push_back(report::id_text(kernel));
    output.text = fmt::format("they are together in {}\n", report::join(ids, ", "));
    if (accepted != nullptr) output.text += report::decision_text(compilation, *accepted);
    output.json = {
        {"together", true}, {"kernels", ids}, {"decision", as_json(accepted)}, {"why", "together"}};
    return output;
  }
  output.json = {{"together", false}, {"kernels", Json::array()}, {"decision", as_json(refused)}};
  if (refused != nullptr) {
    output.text = report::decision_text(compilation, *refused);
    output.json["why"] = report::snake(schedule::reason_name(refused->reason));
    return output;
  }
  if (opened.position < compilation.decisions().size()) {
    output.text = fmt::format("no decision about the two has been taken yet: {} of {} are (`goto end`)\n",
                              opened.position, compilation.decisions().size());
    output.json["why"] = "not_taken_yet";
    return output;
  }
  // Calls and operators without code explain themselves.
  std::vector<std::string> words;
  for (const auto& side : sides) {
    for (const trace::NodeId node : side) {
      const std::string outcome = report::outcome_text(*snapshot, node);
      if (outcome == "library")
        words.push_back(fmt::format("{} is a library call: a fusion ends there", graph.nodes[node].name));
      if (outcome == "torch")
        words.push_back(fmt::format("{} is run by PyTorch: a fusion ends there", graph.nodes[node].name));
    }
  }
  if (words.empty()) {
    words.push_back(
        fmt::format("{} and {} were never a candidate: no buffer is written by one and read by the other, or "
                    "read by both",
                    arguments.words[0], arguments.words[1]));
  }
  output.text = report::join(words, "\n") + "\n";
  output.json["why"] = report::join(words, "; ");
  return output;
}

Result<Output> run_reasons(Session& session, const Arguments& /*arguments*/) {
  const auto current = session.opened();
  if (!current.ok()) return current.error();
  const Opened& opened = **current;
  Output output;
  report::Table rows;
  Json list = Json::array();
  for (const report::ReasonCount& entry : report::count_reasons(*opened.compilation, opened.position)) {
    rows.add({fmt::format("{:>5}", entry.count), entry.accepted ? "✓" : "✗",
              std::string(schedule::kind_name(entry.kind)),
              report::spaced(schedule::reason_name(entry.reason)),
              entry.bytes_saved > 0 ? report::bytes_text(entry.bytes_saved) : "",
              std::string(schedule::reason_words(entry.reason))});
    list.push_back({{"kind", std::string(schedule::kind_name(entry.kind))},
                    {"reason", report::snake(schedule::reason_name(entry.reason))},
                    {"accepted", entry.accepted},
                    {"count", entry.count},
                    {"bytes_saved", entry.bytes_saved},
                    {"words", std::string(schedule::reason_words(entry.reason))}});
  }
  output.json = {{"reasons", list}, {"decision", opened.position}};
  output.text = rows.empty() ? "no decision has been taken\n" : rows.text();
  return output;
}

}  // namespace pallascope::repl
