#include "core/lower/prefixes.h"

#include <algorithm>
#include <map>
#include <variant>

#include "core/lower/builder.h"
#include "core/lower/torch_call.h"

namespace pallascope::lower {

Prefixes::Prefixes(const trace::Graph& graph, const loop::Program& whole)
    : graph_(graph), node_steps_(whole.steps.size() - whole.result_steps), lowered_steps_(whole.steps.size()),
      owner_(whole.steps.size(), graph.nodes.size()), calls_(graph.nodes.size()) {
  for (const loop::NodeOutcome& outcome : whole.outcomes)
    for (const loop::StepId step : outcome.steps) owner_[step.index()] = outcome.node.index();
  for (std::size_t k = 0; k < graph.values.size(); ++k) {
    const trace::ValueId id(k);
    values_.push_back({id, graph.values[id].producer, std::nullopt, std::nullopt});
    if (const auto at = whole.views.find(id); at != whole.views.end()) values_.back().lowered = at->second;
  }
  Builder builder(graph, whole);
  for (std::size_t k = 0; k < graph.nodes.size(); ++k) add_calls(builder, trace::NodeId(k));
  program_ = std::move(builder.program());
  // Torch results took the place of the lowered values while they were made.
  program_.views = whole.views;
}

void Prefixes::add_calls(Builder& builder, trace::NodeId id) {
  const trace::Node& node = graph_.nodes[id];
  const loop::NodeOutcome& outcome = builder.program().outcomes.at(id.index());
  const bool stays = outcome.outcome == loop::Outcome::torch;
  const auto value_of = [&](trace::ValueId value) -> Value& { return values_[value.index()]; };
  builder.current = id;
  loop::TorchCall results;
  if (stays) {
    const std::vector<loop::StepId> steps = outcome.steps;
    for (const loop::StepId step : steps)
      if (const auto* call = std::get_if<loop::TorchCall>(&builder.program().steps[step].content)) results = *call;
    for (const trace::ValueId value : node.outputs) value_of(value).torch = value_of(value).lowered;
  } else {
    add_results(builder, node, results);
    for (const trace::ValueId value : node.outputs) {
      if (!builder.graph().values[value].tensor) continue;
      value_of(value).torch = builder.program().views.at(value);
      if (const auto& lowered = value_of(value).lowered) builder.program().views[value] = *lowered;
    }
  }
  // The counts at which an argument changes.
  std::vector<std::size_t> counts{0};
  (void)torch_call(graph_, node, id, [&](trace::ValueId value) -> std::optional<loop::View> {
    const trace::NodeId producer = value_of(value).producer;
    if (producer.valid() && builder.program().outcomes[producer.index()].outcome != loop::Outcome::torch)
      counts.push_back(producer.index() + 1);
    return std::nullopt;
  });
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  std::map<trace::ValueId, std::pair<loop::View, std::vector<loop::StepId>>> lowered;  // with the steps of a copy
  for (const std::size_t from : counts) {
    Variant variant{from, {}};
    if (stays && from == counts.back()) {
      variant.steps = builder.program().outcomes[id.index()].steps;
      calls_[id.index()].push_back(std::move(variant));
      continue;
    }
    loop::TorchCall call = torch_call(graph_, node, id, [&](trace::ValueId value) -> std::optional<loop::View> {
      const Value& known = value_of(value);
      if (known.producer.valid() && known.producer.index() >= from) return known.torch;
      if (!known.lowered) return std::nullopt;
      auto at = lowered.find(value);
      if (at == lowered.end()) {
        builder.new_steps.clear();
        loop::View view = torch_argument(builder, node, value);
        at = lowered.emplace(value, std::pair(std::move(view), builder.new_steps)).first;
      }
      variant.steps.insert(variant.steps.end(), at->second.second.begin(), at->second.second.end());
      return at->second.first;
    });
    call.outputs = results.outputs;
    call.layouts = results.layouts;
    builder.new_steps.clear();
    builder.add_step({std::move(call)});
    variant.steps.push_back(builder.new_steps.back());
    calls_[id.index()].push_back(std::move(variant));
  }
}

const std::vector<loop::StepId>& Prefixes::call_steps(std::size_t node, std::size_t count) const {
  const std::vector<Variant>& variants = calls_[node];
  const auto after = std::find_if(variants.begin(), variants.end(), [&](const Variant& v) { return v.from > count; });
  return std::prev(after)->steps;
}

Prefixes::Prefix Prefixes::at(std::size_t count) const {
  const std::size_t nodes = graph_.nodes.size();
  Prefix made;
  loop::Program& program = made.program;
  program.context = program_.context;
  program.accesses = program_.accesses;
  program.buffers = program_.buffers;
  program.nests = program_.nests;
  program.steps = program_.steps;
  program.input_layouts = program_.input_layouts;
  program.input_buffers = program_.input_buffers;
  program.outputs = program_.outputs;
  const auto is_lowered = [&](trace::NodeId producer) { return !producer.valid() || producer.index() < count; };
  for (std::size_t k = 0; k < program.outputs.size(); ++k) {
    if (program.outputs[k].none) continue;
    const Value& value = values_[graph_.outputs[k].value.index()];
    if (!is_lowered(value.producer)) program.outputs[k].view = value.torch.value();
  }
  for (const Value& value : values_)
    if (const auto& view = is_lowered(value.producer) ? value.lowered : value.torch)
      program.views.emplace_hint(program.views.end(), value.value, *view);
  program.outcomes.reserve(nodes);
  for (std::size_t k = 0; k < nodes; ++k) {
    if (k < count) {
      program.outcomes.push_back(program_.outcomes[k]);
    } else {
      program.outcomes.push_back({trace::NodeId(k), loop::Outcome::torch, call_steps(k, count), not_lowered});
    }
  }
  const auto add = [&](std::size_t first, std::size_t end) {
    for (std::size_t k = first; k < end; ++k)
      if (owner_[k] < count || owner_[k] == nodes) made.steps.emplace_back(k);
  };
  add(0, node_steps_);
  for (std::size_t k = count; k < nodes; ++k) {
    const auto& steps = program.outcomes[k].steps;
    made.steps.insert(made.steps.end(), steps.begin(), steps.end());
  }
  add(node_steps_, lowered_steps_);
  return made;
}

}  // namespace pallascope::lower
