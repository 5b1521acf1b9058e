#include "core/report/decision.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/report/alignment.h"
#include "core/report/format.h"
#include "core/report/lookup.h"

namespace pallascope::report {
namespace {

using schedule::Condition;
using schedule::ConditionState;
using schedule::Decision;
using schedule::DecisionKind;
using schedule::Evidence;
using schedule::IndexPair;
using schedule::Reason;

/// A side by the name of the node that speaks for it, with the number of the others.
std::string side_text(const std::string& name, std::size_t nodes) {
  return nodes <= 1 ? name : fmt::format("{} (+{})", name, nodes - 1);
}

std::string all_names(const trace::Graph& graph, const std::vector<trace::NodeId>& nodes) {
  std::vector<std::string> names;
  for (const trace::NodeId id : nodes) names.push_back(graph.nodes[id].name);
  return join(names, ", ");
}

std::string state_word(ConditionState state) {
  switch (state) {
    case ConditionState::holds:
      return "holds";
    case ConditionState::fails:
      return "fails";
    case ConditionState::not_reached:
      return "not_reached";
  }
  return "not_reached";
}

/// For each step of the compilation's program, the kernel of the snapshot that its nest (after inlining) is in.
std::vector<schedule::KernelId> kernels_of_steps(const session::Compilation& compilation, const session::Snapshot& snapshot) {
  const schedule::Schedule& schedule = compilation.schedule();
  const loop::Program& program = *schedule.program;
  std::vector<schedule::KernelId> of_nest(program.nests.size()), of_step(program.steps.size());
  for (std::size_t k = 0; k < snapshot.state.kernels.size(); ++k)
    for (const loop::NestId nest : snapshot.state.kernels[schedule::KernelId(k)].nests)
      if (nest.index() < of_nest.size()) of_nest[nest.index()] = schedule::KernelId(k);
  for (std::size_t k = 0; k < program.steps.size(); ++k)
    if (const auto* nest = std::get_if<loop::NestId>(&program.steps[loop::StepId(k)].content)) of_step[k] = of_nest[nest->index()];
  for (std::size_t k = 0; k < std::min(snapshot.decision, schedule.effects.size()); ++k)
    for (const auto& [step, nest] : schedule.effects[k].replaced)
      if (of_nest[nest.index()].valid()) of_step[step.index()] = of_nest[nest.index()];
  return of_step;
}

}  // namespace

std::string subject_text(const session::Compilation& compilation, const Decision& decision) {
  const trace::Graph& graph = compilation.graph();
  if (decision.kind == DecisionKind::lower) return all_names(graph, decision.left);
  const auto steps = [&](const std::vector<loop::StepId>& ids) {
    std::vector<std::string> names;
    for (const loop::StepId id : ids) names.push_back(step_text(compilation, id));
    return join(names, ", ");
  };
  if (decision.kind == DecisionKind::inline_producer) {
    // An operator of several nests, such as softmax, can be on both sides: then the nests are named.
    if (decision.left == decision.right)
      return steps(decision.left_steps) + " → " + steps(decision.right_steps);
    return all_names(graph, decision.left) +
           (decision.right.empty() ? "" : " → " + all_names(graph, decision.right));
  }
  const auto [left, right] = side_names(compilation, decision);
  return side_text(left, decision.left.size()) + " × " + side_text(right, decision.right.size());
}

SideNames side_names(const session::Compilation& compilation, const Decision& decision) {
  const trace::Graph& graph = compilation.graph();
  const loop::Program& program = *compilation.schedule().program;
  const auto origin = [&](loop::NestId nest) {
    return program.nests.contains(nest) ? program.nests[nest].origin : trace::NodeId();
  };
  const auto speaker = [](const std::vector<trace::NodeId>& nodes, trace::NodeId wished) {
    if (std::find(nodes.begin(), nodes.end(), wished) != nodes.end()) return wished;
    return nodes.empty() ? trace::NodeId() : nodes.back();
  };
  const auto& indices = decision.evidence.indices;
  const trace::NodeId left =
      speaker(decision.left, indices.empty() ? trace::NodeId() : origin(indices[0].left_nest));
  const trace::NodeId right =
      speaker(decision.right, indices.empty() ? trace::NodeId() : origin(indices[0].right_nest));
  if (!left.valid() || !right.valid())
    return {all_names(graph, decision.left), all_names(graph, decision.right)};
  std::string left_name = graph.nodes[left].name, right_name = graph.nodes[right].name;
  if (left == right && !indices.empty()) {
    left_name = program.nests[indices[0].left_nest].name;
    right_name = program.nests[indices[0].right_nest].name;
  } else if (left == right && !decision.left_steps.empty() && !decision.right_steps.empty()) {
    left_name = step_text(compilation, decision.left_steps.back());
    right_name = step_text(compilation, decision.right_steps.front());
  }
  return {left_name, right_name};
}

std::string verdict_text(const Decision& decision) {
  return fmt::format("{}: {}", decision.accepted ? "accepted" : "refused",
                     spaced(schedule::reason_name(decision.reason)));
}

std::vector<std::string> decision_cells(const session::Compilation& compilation, const Decision& decision) {
  return {id_text(decision.id),
          decision.accepted ? "✓" : "✗",
          std::string(schedule::kind_name(decision.kind)),
          subject_text(compilation, decision),
          decision.evidence.bytes_saved > 0 ? bytes_text(decision.evidence.bytes_saved) : "",
          spaced(schedule::reason_name(decision.reason))};
}

Json decision_row_json(const session::Compilation& compilation, const Decision& decision) {
  return {{"id", id_text(decision.id)},
          {"kind", std::string(schedule::kind_name(decision.kind))},
          {"accepted", decision.accepted},
          {"reason", snake(schedule::reason_name(decision.reason))},
          {"subject", subject_text(compilation, decision)},
          {"bytes_saved", decision.evidence.bytes_saved}};
}

Json decision_json(const session::Compilation& compilation, const Decision& decision) {
  const trace::Graph& graph = compilation.graph();
  const loop::Program& program = *compilation.schedule().program;
  const index::Context& context = *program.context;
  const Evidence& evidence = decision.evidence;
  Json json = {{"id", id_text(decision.id)},
               {"kind", std::string(schedule::kind_name(decision.kind))},
               {"accepted", decision.accepted},
               {"reason", snake(schedule::reason_name(decision.reason))},
               {"words", std::string(schedule::reason_words(decision.reason))},
               {"subject", subject_text(compilation, decision)},
               {"left", nodes_json(graph, decision.left)},
               {"right", nodes_json(graph, decision.right)},
               {"occurrence", decision.occurrence}};
  Json conditions = Json::object();
  for (const auto& [condition, state] : evidence.conditions) {
    conditions[snake(schedule::condition_name(condition))] = state_word(state);
  }
  json["conditions"] = conditions;
  Json indices = Json::array();
  for (const IndexPair& pair : evidence.indices) {
    const auto side = [&](loop::NestId nest, index::Expression expression,
                          const std::vector<index::AxisId>& axes) {
      return Json{{"nest", program.nests.contains(nest) ? Json(program.nests[nest].name) : Json(nullptr)},
                  {"expression", context.to_string(expression)},
                  {"range", range_json(context.range(expression))},
                  {"axes", axes_json(context, axes)}};
    };
    Json terms = Json::array();
    for (const TermPair& row : aligned_terms(program, pair)) {
      terms.push_back({{"term", row.term}, {"left", row.left}, {"right", row.right}, {"same", row.same}});
    }
    indices.push_back({{"buffer", buffer_json(program, pair.buffer)},
                       {"left", side(pair.left_nest, pair.left, axes_of(program, pair.left_nest))},
                       {"right", side(pair.right_nest, pair.right, axes_of(program, pair.right_nest))},
                       {"terms", terms}});
  }
  json["indices"] = indices;
  json["axis"] = nullptr;
  if (evidence.axis) {
    const bool named = evidence.axis_nest && program.nests.contains(*evidence.axis_nest);
    json["axis"] = {{"name", context.axis(*evidence.axis).name},
                    {"extent", context.axis(*evidence.axis).extent},
                    {"nest", named ? Json(program.nests[*evidence.axis_nest].name) : Json(nullptr)},
                    {"role", evidence.axis_role}};
  }
  json["bytes_saved"] = evidence.bytes_saved;
  json["working_set"] = evidence.working_set;
  json["working_set_tile"] = evidence.working_set_tile;
  json["budget"] = evidence.budget;
  Json tile_axes = Json::array();
  for (const auto& axes : evidence.tile_axes) tile_axes.push_back(axes_json(context, axes));
  json["tile_axes"] = tile_axes;
  Json path = Json::array();
  for (const loop::StepId step : evidence.path) path.push_back(step_text(compilation, step));
  json["path"] = path;
  json["legal_if"] = legal_if_text(compilation, decision);
  json["note"] = evidence.note;
  return json;
}

bool is_boundary(schedule::Reason reason) {
  return reason == schedule::Reason::library_boundary || reason == schedule::Reason::torch_boundary;
}

std::vector<schedule::DecisionId> missed_fusions(const session::Compilation& compilation,
                                                 const session::Snapshot& snapshot) {
  const auto kernels = kernels_of_steps(compilation, snapshot);
  // What a side has become: its kernel, or the call that it is. A group only grows, so that one step speaks for all.
  const auto became = [&](const std::vector<loop::StepId>& steps) -> std::int64_t {
    for (const loop::StepId step : steps)
      if (step.index() < kernels.size() && kernels[step.index()].valid()) return kernels[step.index()].value;
    return steps.empty() ? -1 : -2 - static_cast<std::int64_t>(steps.front().value);
  };
  const auto bytes = [&](schedule::DecisionId id) { return compilation.decisions()[id.index()].evidence.bytes_saved; };
  std::map<std::pair<std::int64_t, std::int64_t>, schedule::DecisionId> best;
  for (std::size_t k = 0; k < std::min(snapshot.decision, compilation.decisions().size()); ++k) {
    const Decision& decision = compilation.decisions()[k];
    if (decision.kind != DecisionKind::fuse || decision.accepted || decision.evidence.bytes_saved <= 0)
      continue;
    const std::int64_t left = became(decision.left_steps), right = became(decision.right_steps);
    // Two sides that came together through a third are no loss, although a first candidate between them was refused.
    if (left == right) continue;
    const auto [at, is_new] = best.emplace(std::minmax(left, right), decision.id);
    if (!is_new && bytes(decision.id) > bytes(at->second)) at->second = decision.id;
  }
  std::vector<schedule::DecisionId> missed;
  for (const auto& [sides, id] : best) missed.push_back(id);
  std::sort(missed.begin(), missed.end(), [&](schedule::DecisionId a, schedule::DecisionId b) {
    return std::pair(-bytes(a), a) < std::pair(-bytes(b), b);
  });
  return missed;
}

std::vector<ReasonCount> count_reasons(const session::Compilation& compilation, std::size_t count) {
  std::map<std::pair<DecisionKind, Reason>, ReasonCount> counts;
  for (std::size_t k = 0; k < std::min(count, compilation.decisions().size()); ++k) {
    const Decision& decision = compilation.decisions()[k];
    ReasonCount& entry = counts[{decision.kind, decision.reason}];
    entry.kind = decision.kind;
    entry.reason = decision.reason;
    entry.accepted = decision.accepted;
    ++entry.count;
    entry.bytes_saved += decision.evidence.bytes_saved;
  }
  std::vector<ReasonCount> result;
  for (const auto& [key, entry] : counts) result.push_back(entry);
  std::stable_sort(result.begin(), result.end(),
                   [](const ReasonCount& a, const ReasonCount& b) { return a.count > b.count; });
  return result;
}

}  // namespace pallascope::report
