#include "core/lower/torch_call.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/functional/view.h"

namespace pallascope::lower {
namespace {

void for_each_value(const trace::Argument& argument, const std::function<void(trace::ValueId)>& visit) {
  if (const auto* value = argument.get<trace::ValueId>()) visit(*value);
  if (const auto* list = argument.get<trace::ArgumentList>())
    for (const trace::Argument& item : *list) for_each_value(item, visit);
}

/// Operators that advance PyTorch's generator.
bool draws_random_numbers(const std::string& target) {
  static constexpr std::array words = {"dropout", "rand", "bernoulli", "normal", "uniform", "multinomial", "exponential", "cauchy",
                                       "geometric", "poisson", "gumbel", "rrelu", "attention", "philox", "seed"};
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return target.find(w) != std::string::npos; });
}

}  // namespace

loop::View view_of(Builder& builder, loop::BufferId buffer, const trace::TensorMeta& meta, const loop::BoundaryLayout& layout) {
  loop::View view{buffer, {}, {}};
  const Sizes dense = trace::contiguous_strides(layout.dims);
  Index terms;
  Sizes coefficients;
  for (std::size_t k = 0; k < meta.sizes.size(); ++k) {
    view.axes.push_back(builder.context().add_axis("d" + std::to_string(k), meta.sizes[k]));
    terms.push_back(builder.context().of(view.axes.back()));
    coefficients.push_back(layout.place[k] < 0 ? 0 : dense[static_cast<std::size_t>(layout.place[k])]);
  }
  view.index = builder.context().linear(terms, coefficients);
  return view;
}

bool torch_can_view(const index::Context& context, const loop::View& view) {
  const std::optional<loop::AffineView> found = loop::affine(context, view);
  return found && std::all_of(found->strides.begin(), found->strides.end(), [](std::int64_t s) { return s >= 0; });
}

loop::View torch_argument(Builder& builder, const trace::Node& node, trace::ValueId value) {
  const Tensor x = builder.tensor(value);
  if (torch_can_view(builder.context(), x.view) || !is_kernel_dtype(x.dtype)) return x.view;
  return builder.materialise(x, node.name + ".argument").view;
}

loop::TorchCall torch_call(const trace::Graph& graph, const trace::Node& node, trace::NodeId id,
                           const std::function<std::optional<loop::View>(trace::ValueId)>& argument) {
  loop::TorchCall call;
  call.origin = id;
  call.op = node.target;
  call.ordered = draws_random_numbers(node.target);
  const auto take = [&](trace::ValueId value) {
    for (const auto& [known, view] : call.inputs)
      if (known == value) return;
    if (std::optional<loop::View> view = argument(value)) call.inputs.emplace_back(value, std::move(*view));
  };
  for (const trace::Argument& a : node.args) for_each_value(a, take);
  for (const auto& [name, a] : node.kwargs) for_each_value(a, take);
  if (const trace::ValueId owner = functional::strided_memory(graph, node); owner.valid()) take(owner);
  return call;
}

void add_results(Builder& builder, const trace::Node& node, loop::TorchCall& call) {
  for (trace::ValueId value : node.outputs) {
    const std::optional<trace::TensorMeta>& meta = builder.graph().values[value].tensor;
    if (!meta) {
      call.outputs.emplace_back();
      call.layouts.emplace_back();
      continue;
    }
    const loop::BoundaryLayout layout = boundary_layout(*meta);
    const loop::BufferId buffer = builder.add_buffer(meta->dtype, layout.dims);
    builder.program().buffers.edit(buffer).origin = value;
    call.outputs.push_back(buffer);
    call.layouts.emplace_back(layout);
    builder.define(value, {view_of(builder, buffer, *meta, layout), meta->dtype, meta->sizes});
  }
}

}  // namespace pallascope::lower
