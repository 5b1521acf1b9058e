#include <algorithm>

#include <fmt/format.h>

#include "core/report/alignment.h"
#include "core/report/decision.h"
#include "core/report/format.h"
#include "core/report/lookup.h"

// The half of decision.h that puts one decision into words.
namespace pallascope::report {
namespace {

using schedule::Condition;
using schedule::ConditionState;
using schedule::Decision;
using schedule::DecisionKind;
using schedule::Evidence;
using schedule::IndexPair;
using schedule::Reason;

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
             axes_text(context, axes_of(program, pair.left_nest))});
  sides.add({right, "reads at", context.to_string(pair.right), axes_text(context, axes_of(program, pair.right_nest))});
  text += sides.text();
  Table terms("    ");
  terms.add({"term", left, right == left ? right + " (reader)" : right});
  for (const TermPair& row : aligned_terms(program, pair)) {
    const auto cell = [](const std::string& coefficient) {
      return coefficient.empty() ? std::string("·") : coefficient;
    };
    terms.add({row.term, cell(row.left), cell(row.right), row.same ? "" : "≠"});
  }
  return text + terms.text();
}

}  // namespace

std::string_view sign_of(ConditionState state) {
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

std::string condition_text(const session::Compilation& compilation, const Decision& decision,
                           Condition condition) {
  const Evidence& evidence = decision.evidence;
  const loop::Program& program = *compilation.schedule().program;
  const index::Context& context = *program.context;
  switch (condition) {
    case Condition::order_and_aliasing: {
      std::vector<std::string> path;
      for (const loop::StepId step : evidence.path) path.push_back(step_text(compilation, step));
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
    case Condition::expressible: {
      if (decision.reason != Reason::library_boundary && decision.reason != Reason::torch_boundary) return "";
      std::vector<std::string> calls;
      for (const auto* side : {&decision.left_steps, &decision.right_steps}) {
        for (const loop::StepId step : *side) {
          if (is_call(program, step)) calls.push_back(step_text(compilation, step));
        }
      }
      return calls.empty() ? "" : join(calls, ", ") + (calls.size() == 1 ? " is a call" : " are calls");
    }
  }
  return "";
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
    case Reason::cycle: {
      std::vector<std::string> between, calls;
      for (std::size_t k = 1; k + 1 < evidence.path.size(); ++k) {
        between.push_back(step_text(compilation, evidence.path[k]));
        if (is_call(program, evidence.path[k])) calls.push_back(between.back());
      }
      if (between.empty()) return "";
      if (calls.empty()) return join(between, ", ") + " joined the kernel first";
      return fmt::format("{} did not lie between the two: a call cannot join a kernel", join(calls, ", "));
    }
    case Reason::library_boundary:
      return "the matrix product were a kernel here; it is left to jax.lax";
    case Reason::torch_boundary:
      return "the operator that PyTorch runs had a lowering";
    case Reason::not_expressible:
      if (!evidence.indices.empty() && program.nests.contains(evidence.indices[0].left_nest) &&
          program.nests.contains(evidence.indices[0].right_nest)) {
        return fmt::format("{} were inlined: computed again where {} reads it",
                           program.nests[evidence.indices[0].left_nest].name,
                           program.nests[evidence.indices[0].right_nest].name);
      }
      return "the producer were inlined: computed again where it is read";
    default:
      return "";
  }
}

std::string decision_text(const session::Compilation& compilation, const Decision& decision, bool sides_too) {
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
  if (sides_too) text += sides.text();

  if (!evidence.conditions.empty()) {
    Table conditions("  ");
    for (const auto& [condition, state] : evidence.conditions) {
      conditions.add({spaced(schedule::condition_name(condition)), std::string(sign_of(state)),
                      state == ConditionState::not_reached
                          ? "not reached"
                          : condition_text(compilation, decision, condition)});
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

}  // namespace pallascope::report
