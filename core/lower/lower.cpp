#include "core/lower/lower.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <unordered_map>

#include <fmt/format.h>

#include "core/functional/operators.h"
#include "core/lower/builder.h"
#include "core/lower/torch_call.h"

namespace pallascope::lower {
namespace {

const std::vector<Entry>& all_entries() {
  static const std::vector<Entry> entries = [] {
    std::vector<Entry> rows;
    for (const auto& entries :
         {pointwise_entries,
          activation_entries,
          cast_entries,
          view_entries,
          shape_entries,
          creation_entries,
          reduction_entries,
          normalisation_entries,
          channel_norm_entries,
          indexing_entries,
          scan_entries,
          scatter_entries,
          regular_scatter_entries,
          search_entries,
          product_entries,
          contraction_entries,
          distance_entries,
          attention_entries,
          convolution_entries,
          sorting_entries,
          padding_entries,
          pooling_entries,
          rearrange_entries,
          storage_entries,
          interpolation_entries,
          sampling_entries,
          pooling_backward_entries,
          recurrent_entries,
          special_entries,
          activation_backward_entries,
          loss_entries,
          label_loss_entries,
          norm_entries}) {
      const std::vector<Entry> family = entries();
      rows.insert(rows.end(), family.begin(), family.end());
    }
    for (const auto& [name, meant] : aliases()) {
      const auto of = [op = meant](const Entry& e) { return e.op == op; };
      const auto found = std::find_if(rows.begin(), rows.end(), of);
      PALLASCOPE_CHECK(found != rows.end(), std::string(name));
      Entry alias = *found;
      alias.op = name;
      rows.push_back(alias);
    }
    return rows;
  }();
  return entries;
}

const Entry* find_entry(std::string_view op) {
  static const std::unordered_map<std::string_view, const Entry*> index = [] {
    std::unordered_map<std::string_view, const Entry*> made;
    for (const Entry& e : all_entries()) made.emplace(e.op, &e);
    return made;
  }();
  const auto found = index.find(op);
  return found == index.end() ? nullptr : found->second;
}

Takes takes_of(const Entry& entry) {
  if (entry.takes != Takes::of_family) return entry.takes;
  if (entry.family == "view") return Takes::any;
  if (entry.family == "normalisation" || entry.family == "activation") return Takes::floats;
  return entry.family == "library" ? Takes::numbers : Takes::kernel;
}

std::vector<DType> dtypes_of(Takes takes) {
  std::vector<DType> dtypes;
  for (int k = 0; k <= static_cast<int>(DType::f8e5m2); ++k) {
    const DType d = static_cast<DType>(k);
    const bool in = is_kernel_dtype(d);
    const bool taken = takes == Takes::any        ? true
                       : takes == Takes::kernel   ? in
                       : takes == Takes::numbers  ? in && !is_bool(d)
                       : takes == Takes::integral ? in && !is_float(d)
                       : takes == Takes::integers ? in && is_integer(d)
                       : takes == Takes::floats   ? in && is_float(d)
                                                  : false;
    if (taken) dtypes.push_back(d);
  }
  return dtypes;
}

void add_inputs(Builder& builder) {
  const trace::Graph& graph = builder.graph();
  for (std::size_t k = 0; k < graph.inputs.size(); ++k) {
    const trace::ValueId value = graph.inputs[k].value;
    const trace::TensorMeta& meta = *graph.values[value].tensor;
    const loop::BoundaryLayout layout = boundary_layout(meta);
    loop::Buffer buffer;
    buffer.name = graph.values[value].name;
    buffer.kind = loop::BufferKind::input;
    buffer.dtype = meta.dtype;
    buffer.dims = layout.dims;
    buffer.origin = value;
    buffer.input_index = static_cast<int>(k);
    const loop::BufferId id = builder.program().buffers.add(std::move(buffer));
    builder.program().input_layouts.push_back(layout);
    builder.program().input_buffers.push_back(id);
    builder.define(value, {view_of(builder, id, meta, layout), meta.dtype, meta.sizes});
  }
}

void add_outputs(Builder& builder) {
  const trace::Graph& graph = builder.graph();
  for (const trace::Output& output : graph.outputs) {
    loop::OutputValue made;
    made.kind = output.kind;
    if (!output.value.valid() || !graph.values[output.value].tensor) {
      made.none = true;
      builder.program().outputs.push_back(std::move(made));
      continue;
    }
    made.meta = *graph.values[output.value].tensor;
    Tensor value = builder.tensor(output.value);
    if (!torch_can_view(builder.context(), value.view)) {
      const trace::NodeId producer = graph.values[output.value].producer;
      builder.current = producer;
      const std::string name = producer.valid() ? graph.nodes[producer].name + ".result" : "result";
      const trace::TensorMeta& meta = made.meta;
      value = builder.pointwise(
          name, meta.sizes, meta.dtype, [&](NestBuilder& nest) { return nest.load(value); }, &meta);
      // The copy belongs to the node that the value came from, so that every step has a decision that made it.
      if (producer.valid())
        for (loop::StepId step : builder.new_steps) builder.program().outcomes[producer.index()].steps.push_back(step);
      builder.new_steps.clear();
    }
    made.view = value.view;
    if (output.kind == trace::OutputKind::mutation)
      for (std::size_t k = 0; k < graph.inputs.size(); ++k)
        if (graph.values[graph.inputs[k].value].name == output.target) made.mutated_input = static_cast<int>(k);
    builder.program().outputs.push_back(std::move(made));
  }
}

}  // namespace

std::string_view OperatorRow::outcome_text() const {
  return outcome ? loop::outcome_name(*outcome) : std::string_view("unsupported");
}

std::vector<OperatorRow> operator_table() {
  std::vector<OperatorRow> rows;
  for (const Entry& e : all_entries()) {
    const Takes takes = takes_of(e);
    const loop::Outcome outcome = takes == Takes::none     ? loop::Outcome::torch
                                  : e.family == "view"    ? loop::Outcome::view
                                  : e.family == "library" ? loop::Outcome::library
                                                          : loop::Outcome::kernel;
    rows.push_back({std::string(e.op), e.family, outcome, dtypes_of(takes), e.declined});
  }
  for (std::string_view name : functional::refused_operators())
    rows.push_back({"aten." + std::string(name), "mutation", std::nullopt, {}, functional::refused_why});
  std::sort(rows.begin(), rows.end(), [](const OperatorRow& a, const OperatorRow& b) { return a.op < b.op; });
  return rows;
}

Result<loop::Program> lower(const trace::Graph& graph, const Options& options) {
  Builder builder(graph);
  add_inputs(builder);
  for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
    const trace::NodeId id(k);
    const trace::Node& node = graph.nodes[id];
    builder.current = id;
    builder.new_steps.clear();
    loop::NodeOutcome outcome;
    outcome.node = id;
    Lowered lowered = declined("");
    if (options.limit && k >= *options.limit) {
      lowered = declined(not_lowered);
    } else if (const Entry* entry = find_entry(node.target)) {
      Call call(builder, node);
      const auto misfit = [&](const std::string& what) {
        return Diagnostic{DiagnosticKind::malformed_graph, node.target + ": " + what, node.name,
                          "a node whose arguments and metas are what PyTorch gives"};
      };
      try {
        lowered = entry->lower(call);
      } catch (const MalformedNode& malformed) {
        lowered.diagnostic = misfit(malformed.message);
      } catch (const std::out_of_range&) {
        lowered.diagnostic = misfit("an argument or a meta has too few entries");
      }
      if (lowered.diagnostic) {
        const trace::Frame* frame = node.user_frame();
        if (frame != nullptr) lowered.diagnostic->where += fmt::format(" ({}:{})", frame->file, frame->line);
        return *lowered.diagnostic;
      }
      PALLASCOPE_CHECK(lowered.outcome != loop::Outcome::torch || builder.new_steps.empty(),
                       node.name + ": declined after it had made steps");
    } else {
      lowered = declined("no lowering for " + node.target);
    }
    outcome.outcome = lowered.outcome;
    if (lowered.outcome == loop::Outcome::torch) {
      outcome.why = lowered.declined;
      loop::TorchCall call = torch_call(graph, node, id, [&](trace::ValueId value) -> std::optional<loop::View> {
        if (!builder.has(value)) return std::nullopt;
        return torch_argument(builder, node, value);
      });
      add_results(builder, node, call);
      builder.add_step({std::move(call)});
    }
    for (trace::ValueId value : node.outputs)
      if (builder.has(value)) {
        const loop::BufferId buffer = builder.program().views.at(value).buffer;
        if (!builder.program().buffers[buffer].origin.valid()) builder.program().buffers.edit(buffer).origin = value;
      }
    outcome.steps = builder.new_steps;
    builder.program().outcomes.push_back(std::move(outcome));
  }
  builder.new_steps.clear();
  const std::size_t node_steps = builder.program().steps.size();
  add_outputs(builder);
  builder.program().result_steps = builder.program().steps.size() - node_steps;
  return std::move(builder.program());
}

}  // namespace pallascope::lower
