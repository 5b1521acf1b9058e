#include "core/report/lookup.h"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "core/report/format.h"

namespace pallascope::report {
namespace {

void visit_values(const trace::Argument& argument, const std::function<void(trace::ValueId)>& visit) {
  if (const auto* value = argument.get<trace::ValueId>()) visit(*value);
  if (const auto* list = argument.get<trace::ArgumentList>()) {
    for (const trace::Argument& item : *list) visit_values(item, visit);
  }
}

void visit_inputs(const trace::Node& node, const std::function<void(trace::ValueId)>& visit) {
  for (const trace::Argument& argument : node.args) visit_values(argument, visit);
  for (const auto& [name, argument] : node.kwargs) visit_values(argument, visit);
}

template <class T>
void add_once(std::vector<T>& list, const T& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

trace::NodeId call_origin(const loop::Step& step) {
  if (const auto* call = std::get_if<loop::LibraryCall>(&step.content)) return call->origin;
  if (const auto* call = std::get_if<loop::TorchCall>(&step.content)) return call->origin;
  return {};
}

template <class Visit>
void visit_call_reads(const loop::Step& step, Visit visit) {
  if (const auto* call = std::get_if<loop::LibraryCall>(&step.content)) {
    for (const loop::View& operand : call->operands) visit(operand.buffer);
  } else if (const auto* torch = std::get_if<loop::TorchCall>(&step.content)) {
    for (const auto& [value, view] : torch->inputs) visit(view.buffer);
  }
}

}  // namespace

const loop::NodeOutcome* outcome_of(const session::Snapshot& snapshot, trace::NodeId node) {
  const auto& outcomes = snapshot.program->outcomes;
  // One a node in order; the search is for snapshots of a program that is lowered only so far.
  if (node.valid() && node.index() < outcomes.size() && outcomes[node.index()].node == node) {
    return &outcomes[node.index()];
  }
  for (const loop::NodeOutcome& outcome : snapshot.program->outcomes) {
    if (outcome.node == node) return &outcome;
  }
  return nullptr;
}

std::string outcome_text(const session::Snapshot& snapshot, trace::NodeId node) {
  const loop::NodeOutcome* outcome = outcome_of(snapshot, node);
  return outcome == nullptr ? "" : std::string(loop::outcome_name(outcome->outcome));
}

std::vector<schedule::KernelId> kernels_in_order(const session::Snapshot& snapshot) {
  std::vector<schedule::KernelId> kernels;
  for (const schedule::ScheduledStep& step : snapshot.state.steps) {
    if (step.kernel.valid()) kernels.push_back(step.kernel);
  }
  return kernels;
}

std::vector<bool> live_buffers(const session::Snapshot& snapshot) {
  const loop::Program& program = *snapshot.program;
  std::vector<bool> live(program.buffers.size(), false);
  for (const loop::BufferId b : program.input_buffers) live[b.index()] = true;
  for (const schedule::Kernel& kernel : snapshot.state.kernels)
    for (const loop::NestId nest : kernel.nests)
      for (const loop::Statement& s : program.nests[nest].body)
        if (s.buffer.valid()) live[s.buffer.index()] = true;
  for (const schedule::ScheduledStep& step : snapshot.state.steps) {
    if (!step.call.valid()) continue;
    const loop::Step& call = program.steps[step.call];
    visit_call_reads(call, [&](loop::BufferId b) { live[b.index()] = true; });
    if (const auto* library = std::get_if<loop::LibraryCall>(&call.content))
      for (const loop::BufferId b : library->outputs) live[b.index()] = true;
    if (const auto* torch = std::get_if<loop::TorchCall>(&call.content))
      for (const loop::BufferId b : torch->outputs)
        if (b.valid()) live[b.index()] = true;
  }
  // A result that nothing makes is an empty tensor.
  for (const loop::OutputValue& output : program.outputs)
    if (!output.none) live[output.view.buffer.index()] = true;
  return live;
}

std::vector<loop::BufferId> buffers_of(const session::Compilation& compilation, const session::Snapshot& snapshot) {
  std::vector<loop::BufferId> found;
  const bool all = snapshot.decision >= compilation.schedule().lower_decisions;
  const std::vector<bool> live = all ? std::vector<bool>() : live_buffers(snapshot);
  for (std::size_t k = 0; k < snapshot.program->buffers.size(); ++k)
    if (all || live[k]) found.emplace_back(k);
  return found;
}

std::vector<schedule::KernelId> kernels_of(const session::Snapshot& snapshot, trace::NodeId node) {
  std::vector<schedule::KernelId> kernels;
  for (const schedule::KernelId kernel : kernels_in_order(snapshot)) {
    for (const loop::NestId id : snapshot.state.kernels[kernel].nests) {
      const loop::Nest& nest = snapshot.program->nests[id];
      if (nest.origin == node ||
          std::find(nest.origins.begin(), nest.origins.end(), node) != nest.origins.end()) {
        add_once(kernels, kernel);
      }
    }
  }
  return kernels;
}

std::optional<loop::StepId> call_of(const session::Snapshot& snapshot, trace::NodeId node) {
  for (const schedule::ScheduledStep& step : snapshot.state.steps) {
    if (step.kernel.valid() || !snapshot.program->steps.contains(step.call)) continue;
    if (call_origin(snapshot.program->steps[step.call]) == node) return step.call;
  }
  return std::nullopt;
}

std::vector<trace::NodeId> nodes_of(const session::Snapshot& snapshot, schedule::KernelId kernel) {
  std::set<trace::NodeId> nodes;
  for (const loop::NestId nest : snapshot.state.kernels[kernel].nests) {
    const auto& origins = snapshot.program->nests[nest].origins;
    nodes.insert(origins.begin(), origins.end());
    if (snapshot.program->nests[nest].origin.valid()) nodes.insert(snapshot.program->nests[nest].origin);
  }
  return {nodes.begin(), nodes.end()};
}

std::string kernel_name(const session::Snapshot& snapshot, schedule::KernelId kernel) {
  return kernel.index() < snapshot.module.kernels.size() ? snapshot.module.kernels[kernel.index()].name : "";
}

Neighbours dependencies(const trace::Graph& graph, trace::NodeId node) {
  Neighbours result;
  visit_inputs(graph.nodes[node], [&](trace::ValueId id) {
    const trace::Value& value = graph.values[id];
    if (value.producer.valid()) {
      add_once(result.nodes, value.producer);
    } else {
      add_once(result.values, value.name);
    }
  });
  return result;
}

Neighbours users(const trace::Graph& graph, trace::NodeId node) {
  Neighbours result;
  const auto& outputs = graph.nodes[node].outputs;
  const auto is_mine = [&](trace::ValueId id) {
    return std::find(outputs.begin(), outputs.end(), id) != outputs.end();
  };
  for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
    visit_inputs(graph.nodes[trace::NodeId(k)], [&](trace::ValueId id) {
      if (is_mine(id)) add_once(result.nodes, trace::NodeId(k));
    });
  }
  for (std::size_t k = 0; k < graph.outputs.size(); ++k) {
    const trace::Output& output = graph.outputs[k];
    if (!output.value.valid() || !is_mine(output.value)) continue;
    result.values.push_back(output.kind == trace::OutputKind::mutation ? "written into " + output.target
                                                                       : fmt::format("output {}", k));
  }
  return result;
}

std::vector<BufferUse> buffer_writers(const session::Snapshot& snapshot, loop::BufferId buffer) {
  std::vector<BufferUse> result;
  if (snapshot.program->buffers[buffer].kind == loop::BufferKind::input) result.push_back({{}, {}, -1, true});
  for (const schedule::ScheduledStep& step : snapshot.state.steps) {
    if (step.kernel.valid()) {
      const schedule::Kernel& kernel = snapshot.state.kernels[step.kernel];
      for (const loop::NestId nest : kernel.nests) {
        if (snapshot.program->nests[nest].output() == buffer) add_once(result, BufferUse{step.kernel, {}, -1, false});
      }
      continue;
    }
    const loop::Step& call = snapshot.program->steps[step.call];
    const BufferUse use{{}, call_origin(call), -1, false};
    if (const auto* library = std::get_if<loop::LibraryCall>(&call.content)) {
      if (std::find(library->outputs.begin(), library->outputs.end(), buffer) != library->outputs.end())
        add_once(result, use);
    } else if (const auto* torch = std::get_if<loop::TorchCall>(&call.content)) {
      if (std::find(torch->outputs.begin(), torch->outputs.end(), buffer) != torch->outputs.end())
        add_once(result, use);
    }
  }
  return result;
}

std::vector<BufferUse> buffer_readers(const session::Snapshot& snapshot, loop::BufferId buffer) {
  std::vector<BufferUse> result;
  for (const schedule::ScheduledStep& step : snapshot.state.steps) {
    if (step.kernel.valid()) {
      for (const loop::NestId nest : snapshot.state.kernels[step.kernel].nests) {
        const auto inputs = snapshot.program->nests[nest].inputs();
        if (std::find(inputs.begin(), inputs.end(), buffer) != inputs.end())
          add_once(result, BufferUse{step.kernel, {}, -1, false});
      }
      continue;
    }
    const loop::Step& call = snapshot.program->steps[step.call];
    visit_call_reads(call, [&](loop::BufferId read) {
      if (read == buffer) add_once(result, BufferUse{{}, call_origin(call), -1, false});
    });
  }
  for (std::size_t k = 0; k < snapshot.program->outputs.size(); ++k) {
    const loop::OutputValue& output = snapshot.program->outputs[k];
    if (!output.none && output.view.buffer == buffer) result.push_back({{}, {}, static_cast<int>(k), false});
  }
  return result;
}

std::string use_text(const session::Compilation& compilation, const BufferUse& use) {
  if (use.kernel.valid()) return id_text(use.kernel);
  if (use.call.valid()) return compilation.graph().nodes[use.call].name;
  return use.input ? "input" : fmt::format("output {}", use.output);
}

std::vector<std::string> writers(const session::Compilation& compilation, const session::Snapshot& snapshot,
                                 loop::BufferId buffer) {
  std::vector<std::string> result;
  for (const BufferUse& use : buffer_writers(snapshot, buffer)) result.push_back(use_text(compilation, use));
  return result;
}

std::vector<std::string> readers(const session::Compilation& compilation, const session::Snapshot& snapshot,
                                 loop::BufferId buffer) {
  std::vector<std::string> result;
  for (const BufferUse& use : buffer_readers(snapshot, buffer)) result.push_back(use_text(compilation, use));
  return result;
}

std::vector<schedule::DecisionId> decisions_of(const session::Compilation& compilation, trace::NodeId node) {
  std::vector<schedule::DecisionId> result;
  for (const schedule::Decision& decision : compilation.decisions()) {
    const auto in = [&](const std::vector<trace::NodeId>& side) {
      return std::find(side.begin(), side.end(), node) != side.end();
    };
    if (in(decision.left) || in(decision.right)) result.push_back(decision.id);
  }
  return result;
}

bool is_call(const loop::Program& program, loop::StepId step) {
  return program.steps.contains(step) && !std::holds_alternative<loop::NestId>(program.steps[step].content);
}

std::string step_text(const session::Compilation& compilation, loop::StepId step) {
  const loop::Program& program = *compilation.schedule().program;
  if (!program.steps.contains(step)) return "?";
  const auto& content = program.steps[step].content;
  if (const auto* nest = std::get_if<loop::NestId>(&content)) return program.nests[*nest].name;
  const std::string& name = compilation.graph().nodes[call_origin(program.steps[step])].name;
  return name + (std::holds_alternative<loop::LibraryCall>(content) ? " (library)" : " (torch)");
}

}  // namespace pallascope::report
