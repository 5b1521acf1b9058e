#include "core/report/decision.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "core/index/access.h"
#include "core/report/format.h"

namespace pallascope::report {
namespace {

using schedule::Condition;
using schedule::ConditionState;
using schedule::Decision;
using schedule::DecisionKind;
using schedule::Evidence;
using schedule::IndexPair;
using schedule::Reason;

std::string side_text(const trace::Graph& graph, const std::vector<trace::NodeId>& nodes,
                      std::optional<trace::NodeId> speaker) {
  if (nodes.empty()) return "nothing";
  const trace::NodeId named =
      speaker && std::find(nodes.begin(), nodes.end(), *speaker) != nodes.end() ? *speaker : nodes.back();
  const std::string& name = graph.nodes[named].name;
  return nodes.size() == 1 ? name : fmt::format("{} (+{})", name, nodes.size() - 1);
}

std::string all_names(const trace::Graph& graph, const std::vector<trace::NodeId>& nodes) {
  std::vector<std::string> names;
  for (const trace::NodeId id : nodes) names.push_back(graph.nodes[id].name);
  return join(names, ", ");
}

std::optional<trace::NodeId> nest_node(const loop::Program& program, loop::NestId nest) {
  if (!program.nests.contains(nest)) return std::nullopt;
  return program.nests[nest].origin;
}

std::string step_text(const session::Compilation& compilation, const loop::Program& program,
                      loop::StepId id) {
  const auto name = [&](trace::NodeId node) { return compilation.graph().nodes[node].name; };
  const auto& content = program.steps[id].content;
  if (const auto* nest = std::get_if<loop::NestId>(&content)) return program.nests[*nest].name;
  if (const auto* call = std::get_if<loop::LibraryCall>(&content)) return name(call->origin);
  return name(std::get<loop::TorchCall>(content).origin);
}

const char* sign_of(ConditionState state) {
  switch (state) {
    case ConditionState::holds:
      return "✓";
    case ConditionState::fails:
      return "✗";
    case ConditionState::not_reached:
      return "–";
  }
  return "–";
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

/// What the evidence says of one condition, beside its sign.
std::string condition_note(const session::Compilation& compilation, const Decision& decision,
                           Condition condition) {
  const Evidence& evidence = decision.evidence;
  const loop::Program& program = *compilation.schedule().program;
  const index::Context& context = *program.context;
  switch (condition) {
    case Condition::order_and_aliasing: {
      std::vector<std::string> path;
      for (const loop::StepId step : evidence.path) path.push_back(step_text(compilation, program, step));
      return join(path, " → ");
    }
    case Condition::common_grid: {
      if (evidence.axis) {
        const index::Axis& axis = context.axis(*evidence.axis);
        const std::string whose = evidence.axis_nest && program.nests.contains(*evidence.axis_nest)
                                      ? program.nests[*evidence.axis_nest].name
                                      : "";
        return fmt::format("axis {} ({}) is {}{}", axis.name, axis.extent,
                           evidence.axis_role.empty() ? "in the way" : evidence.axis_role,
                           whose.empty() ? "" : " by " + whose);
      }
      std::vector<std::string> classes;
      for (const auto& axes : evidence.tile_axes) {
        if (!axes.empty())
          classes.push_back(fmt::format("{} ({})", context.axis(axes[0]).name, context.axis(axes[0]).extent));
      }
      return classes.empty() ? "" : "could be tiled on " + join(classes, ", ");
    }
    case Condition::fits_on_chip: {
      if (evidence.budget <= 0) return "";
      if (evidence.working_set_tile > 0 && evidence.working_set_tile != evidence.working_set) {
        return fmt::format("{} whole, {} with the smallest tile, of {}", bytes_text(evidence.working_set),
                           bytes_text(evidence.working_set_tile), bytes_text(evidence.budget));
      }
      return fmt::format("{} of {}", bytes_text(evidence.working_set), bytes_text(evidence.budget));
    }
    case Condition::expressible:
      return "";
  }
  return "";
}

std::string indices_text(const loop::Program& program, const IndexPair& pair) {
  const index::Context& context = *program.context;
  const loop::Buffer& buffer = program.buffers[pair.buffer];
  const auto nest_name = [&](loop::NestId id) {
    return program.nests.contains(id) ? program.nests[id].name : std::string("?");
  };
  const std::string left = nest_name(pair.left_nest), right = nest_name(pair.right_nest);
  const bool writes =
      program.nests.contains(pair.left_nest) && program.nests[pair.left_nest].output() == pair.buffer;
  std::string text = fmt::format("  both use {} {} {}\n", id_text(pair.buffer), buffer.name,
                                 shape_text(buffer.dtype, buffer.dims));
  Table sides("    ");
  sides.add({left, writes ? "writes at" : "reads at", context.to_string(pair.left),
             axes_text(context, pair.left_axes)});
  sides.add({right, "reads at", context.to_string(pair.right), axes_text(context, pair.right_axes)});
  text += sides.text();
  Table terms("    ");
  terms.add({"term", left, right == left ? right + " (reader)" : right});
  for (const index::AlignedTerm& row : index::align(context, pair.left, pair.right)) {
    const auto cell = [](const std::string& coefficient) {
      return coefficient.empty() ? std::string("·") : coefficient;
    };
    terms.add({row.term, cell(row.left), cell(row.right), row.left == row.right ? "" : "≠"});
  }
  return text + terms.text();
}

/// For each nest, the kernel of `state` that holds it.
std::map<loop::NestId, schedule::KernelId> kernel_of_nests(const schedule::State& state) {
  std::map<loop::NestId, schedule::KernelId> result;
  for (const schedule::ScheduledStep& step : state.steps) {
    if (!step.kernel.valid()) continue;
    for (const loop::NestId nest : state.kernels[step.kernel].nests) result[nest] = step.kernel;
  }
  return result;
}

}  // namespace

std::string subject_text(const session::Compilation& compilation, const Decision& decision) {
  const trace::Graph& graph = compilation.graph();
  if (decision.kind == DecisionKind::lower) return all_names(graph, decision.left);
  if (decision.kind == DecisionKind::inline_producer) {
    return all_names(graph, decision.left) +
           (decision.right.empty() ? "" : " → " + all_names(graph, decision.right));
  }
  const loop::Program& program = *compilation.schedule().program;
  std::optional<trace::NodeId> left, right;
  if (!decision.evidence.indices.empty()) {
    left = nest_node(program, decision.evidence.indices[0].left_nest);
    right = nest_node(program, decision.evidence.indices[0].right_nest);
  }
  return side_text(graph, decision.left, left) + " × " + side_text(graph, decision.right, right);
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

std::string legal_if_text(const session::Compilation& compilation, const Decision& decision) {
  if (decision.accepted || decision.kind != DecisionKind::fuse) return "";
  const Evidence& evidence = decision.evidence;
  const loop::Program& program = *compilation.schedule().program;
  switch (decision.reason) {
    case Reason::common_grid:
      if (evidence.axis && evidence.working_set > 0) {
        return fmt::format("axis {} could stay whole in the kernel: {} on chip, where there are {}",
                           program.context->axis(*evidence.axis).name, bytes_text(evidence.working_set),
                           bytes_text(evidence.budget));
      }
      if (evidence.working_set > 0) {
        return fmt::format("all of it fitted on chip: {}, where there are {}",
                           bytes_text(evidence.working_set), bytes_text(evidence.budget));
      }
      return "";
    case Reason::exceeds_memory:
      return fmt::format(
          "the target had {} on chip; it has {}",
          bytes_text(evidence.working_set_tile > 0 ? evidence.working_set_tile : evidence.working_set),
          bytes_text(evidence.budget));
    case Reason::cycle:
      if (evidence.path.size() > 2) {
        std::vector<std::string> between;
        for (std::size_t k = 1; k + 1 < evidence.path.size(); ++k) {
          between.push_back(step_text(compilation, program, evidence.path[k]));
        }
        return fmt::format("{} joined the kernel first", join(between, ", "));
      }
      return "";
    case Reason::library_boundary:
      return "the library call were a kernel of its own; it is left to jax.lax";
    case Reason::torch_boundary:
      return "the operator that PyTorch runs had a lowering";
    case Reason::not_expressible:
      return "the value went through memory, where any index can be read: as it does now";
    default:
      return "";
  }
}

std::string decision_text(const session::Compilation& compilation, const Decision& decision) {
  const trace::Graph& graph = compilation.graph();
  const loop::Program& program = *compilation.schedule().program;
  const Evidence& evidence = decision.evidence;
  std::string text = fmt::format("{}  {} {}   {}\n", id_text(decision.id), schedule::kind_name(decision.kind),
                                 subject_text(compilation, decision), verdict_text(decision));
  text += fmt::format("  {}\n", schedule::reason_words(decision.reason));
  if (!evidence.note.empty()) text += fmt::format("  {}\n", evidence.note);

  Table sides("  ");
  const auto add_side = [&](const char* name, const std::vector<trace::NodeId>& nodes) {
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      const trace::Node& node = graph.nodes[nodes[k]];
      sides.add({k == 0 ? name : "", id_text(nodes[k]), node.name, node.target, outputs_text(graph, node),
                 place_text(node)});
    }
  };
  switch (decision.kind) {
    case DecisionKind::lower:
      add_side("operator", decision.left);
      break;
    case DecisionKind::inline_producer:
      add_side("producer", decision.left);
      add_side("consumers", decision.right);
      break;
    case DecisionKind::fuse:
      add_side("left", decision.left);
      add_side("right", decision.right);
      break;
  }
  text += sides.text();

  if (!evidence.conditions.empty()) {
    Table conditions("  ");
    for (const auto& [condition, state] : evidence.conditions) {
      conditions.add({spaced(schedule::condition_name(condition)), sign_of(state),
                      state == ConditionState::not_reached
                          ? "not reached"
                          : condition_note(compilation, decision, condition)});
    }
    text += conditions.text();
  }
  for (const IndexPair& pair : evidence.indices) text += indices_text(program, pair);

  Table numbers("  ");
  if (decision.kind == DecisionKind::fuse || evidence.bytes_saved > 0) {
    numbers.add(
        {decision.accepted ? "bytes saved" : "bytes it would save", bytes_text(evidence.bytes_saved)});
  }
  const bool said =
      std::any_of(evidence.conditions.begin(), evidence.conditions.end(), [](const auto& entry) {
        return entry.first == Condition::fits_on_chip && entry.second != ConditionState::not_reached;
      });
  if (evidence.working_set > 0 && !said) {
    numbers.add(
        {"working set", bytes_text(evidence.working_set) +
                            (evidence.budget > 0 ? " whole, budget " + bytes_text(evidence.budget) : "")});
  }
  text += numbers.text();
  const std::string legal = legal_if_text(compilation, decision);
  if (!legal.empty()) text += fmt::format("  legal if  {}\n", legal);
  return text;
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
    for (const index::AlignedTerm& row : index::align(context, pair.left, pair.right)) {
      terms.push_back({{"term", row.term}, {"left", row.left}, {"right", row.right}});
    }
    indices.push_back({{"buffer", buffer_json(program, pair.buffer)},
                       {"left", side(pair.left_nest, pair.left, pair.left_axes)},
                       {"right", side(pair.right_nest, pair.right, pair.right_axes)},
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
  for (const loop::StepId step : evidence.path) path.push_back(step_text(compilation, program, step));
  json["path"] = path;
  json["legal_if"] = legal_if_text(compilation, decision);
  json["note"] = evidence.note;
  return json;
}

std::vector<schedule::DecisionId> missed_fusions(const session::Compilation& compilation,
                                                 const session::Snapshot& snapshot) {
  const loop::Program& program = *compilation.schedule().program;
  const auto kernels = kernel_of_nests(snapshot.state);
  // Two sides that came together through a third are no loss, although a first candidate between them was refused.
  const auto kernels_of = [&](const std::vector<loop::StepId>& steps) {
    std::set<schedule::KernelId> found;
    for (const loop::StepId step : steps) {
      if (!program.steps.contains(step)) continue;
      const auto* nest = std::get_if<loop::NestId>(&program.steps[step].content);
      const auto at = nest == nullptr ? kernels.end() : kernels.find(*nest);
      if (at != kernels.end()) found.insert(at->second);
    }
    return found;
  };
  std::vector<schedule::DecisionId> missed;
  for (std::size_t k = 0; k < std::min(snapshot.decision, compilation.decisions().size()); ++k) {
    const Decision& decision = compilation.decisions()[k];
    if (decision.kind != DecisionKind::fuse || decision.accepted || decision.evidence.bytes_saved <= 0)
      continue;
    const auto left = kernels_of(decision.left_steps), right = kernels_of(decision.right_steps);
    if (left.size() == 1 && left == right) continue;
    missed.push_back(decision.id);
  }
  std::stable_sort(missed.begin(), missed.end(), [&](schedule::DecisionId a, schedule::DecisionId b) {
    return compilation.decisions()[a.index()].evidence.bytes_saved >
           compilation.decisions()[b.index()].evidence.bytes_saved;
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
