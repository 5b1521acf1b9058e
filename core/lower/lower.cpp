#include "core/lower/lower.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <unordered_map>

#include <fmt/format.h>

#include "core/lower/builder.h"

namespace pallascope::lower {
namespace {

const std::vector<Entry>& all_entries() {
  static const std::vector<Entry> entries = [] {
    std::vector<Entry> rows;
    for (const auto& family : {pointwise_entries(), activation_entries(), cast_entries(), view_entries(), shape_entries(),
                               creation_entries(), reduction_entries(), normalisation_entries(),
                               channel_norm_entries(), indexing_entries(),
                               library_entries()})
      rows.insert(rows.end(), family.begin(), family.end());
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

/// The view of a tensor of `meta` whose buffer is dense in `layout.dims`.
loop::View view_of(Builder& builder, loop::BufferId buffer, const trace::TensorMeta& meta, const loop::BoundaryLayout& layout) {
  loop::View view{buffer, {}, {}};
  const Sizes dense = trace::contiguous_strides(layout.dims);
  Index terms;
  Sizes coefficients;
  for (std::size_t k = 0; k < meta.sizes.size(); ++k) {
    view.axes.push_back(builder.context().add_axis(fmt::format("d{}", k), meta.sizes[k]));
    terms.push_back(builder.context().of(view.axes.back()));
    coefficients.push_back(layout.place[k] < 0 ? 0 : dense[static_cast<std::size_t>(layout.place[k])]);
  }
  view.index = builder.context().linear(terms, coefficients);
  return view;
}

void for_each_value(const trace::Argument& argument, const std::function<void(trace::ValueId)>& visit) {
  if (const auto* value = argument.get<trace::ValueId>()) visit(*value);
  if (const auto* list = argument.get<trace::ArgumentList>())
    for (const trace::Argument& item : *list) for_each_value(item, visit);
}

/// A view that torch.as_strided can make of a dense buffer: affine, no negative stride.
bool torch_can_view(const index::Context& context, const loop::View& view) {
  const std::optional<loop::AffineView> found = loop::affine(context, view);
  return found && std::all_of(found->strides.begin(), found->strides.end(), [](std::int64_t s) { return s >= 0; });
}

/// Operators that advance PyTorch's generator.
bool draws_random_numbers(const std::string& target) {
  static constexpr std::array words = {"dropout", "rand", "bernoulli", "normal", "uniform", "multinomial", "exponential", "cauchy",
                                       "geometric", "poisson", "gumbel", "rrelu", "attention", "philox", "seed"};
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return target.find(w) != std::string::npos; });
}

void call_torch(Builder& builder, const trace::Node& node) {
  loop::TorchCall call;
  call.origin = builder.current;
  call.op = node.target;
  call.ordered = draws_random_numbers(node.target);
  const auto take = [&](trace::ValueId value) {
    if (!builder.has(value)) return;
    for (const auto& [known, view] : call.inputs)
      if (known == value) return;
    Tensor x = builder.tensor(value);
    if (!torch_can_view(builder.context(), x.view) && is_kernel_dtype(x.dtype)) x = builder.materialise(x, node.name + ".argument");
    call.inputs.emplace_back(value, x.view);
  };
  for (const trace::Argument& a : node.args) for_each_value(a, take);
  for (const auto& [name, a] : node.kwargs) for_each_value(a, take);
  for (trace::ValueId value : node.outputs) {
    const std::optional<trace::TensorMeta>& meta = builder.graph().values[value].tensor;
    if (!meta) {
      call.outputs.emplace_back();
      call.layouts.emplace_back();
      continue;
    }
    const loop::BoundaryLayout layout = boundary_layout(*meta);
    const loop::BufferId buffer = builder.add_buffer(meta->dtype, layout.dims);
    builder.program().buffers[buffer].origin = value;
    call.outputs.push_back(buffer);
    call.layouts.emplace_back(layout);
    builder.define(value, {view_of(builder, buffer, *meta, layout), meta->dtype, meta->sizes});
  }
  builder.add_step({std::move(call)});
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

std::vector<OperatorRow> operator_table() {
  std::vector<OperatorRow> rows;
  for (const Entry& e : all_entries()) rows.push_back({e.op, e.family});
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
      lowered = declined("not lowered at this decision");
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
      call_torch(builder, node);
    }
    for (trace::ValueId value : node.outputs)
      if (builder.has(value)) {
        loop::Buffer& buffer = builder.program().buffers[builder.program().views.at(value).buffer];
        if (!buffer.origin.valid()) buffer.origin = value;
      }
    outcome.steps = builder.new_steps;
    builder.program().outcomes.push_back(std::move(outcome));
  }
  builder.new_steps.clear();
  add_outputs(builder);
  return std::move(builder.program());
}

}  // namespace pallascope::lower
