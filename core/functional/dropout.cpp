// Dropout in training: PyTorch draws the noise, and the rest are operators that kernels compute.
#include <algorithm>
#include <numeric>

#include "core/functional/functionalizer.h"
#include "core/functional/operators.h"

namespace pallascope::functional {

using trace::Argument;
using trace::NodeId;
using trace::TensorMeta;
using trace::ValueId;

namespace {

double number(const Argument* argument, double otherwise) {
  if (argument == nullptr) return otherwise;
  if (const auto* d = argument->get<double>()) return *d;
  if (const auto* i = argument->get<std::int64_t>()) return static_cast<double>(*i);
  return otherwise;
}

/// The dimensions from the outermost in memory to the innermost, if the tensor is dense in that order.
std::optional<std::vector<std::int64_t>> dense_order(const TensorMeta& meta) {
  std::vector<std::int64_t> order(meta.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [](const std::vector<std::int64_t>& list, std::int64_t k) { return list[static_cast<std::size_t>(k)]; };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return at(meta.sizes, a) > 1 && at(meta.sizes, b) > 1 && at(meta.strides, a) > at(meta.strides, b);
  });
  std::int64_t expected = 1;
  for (std::size_t k = order.size(); k-- > 0;) {
    if (at(meta.sizes, order[k]) <= 1) continue;
    if (at(meta.strides, order[k]) != expected) return std::nullopt;
    expected *= at(meta.sizes, order[k]);
  }
  return order;
}

}  // namespace

bool draws_dropout(const trace::Graph& graph, const trace::Node& node) {
  if (node.target != "aten.native_dropout.default" && node.target != "aten.dropout.default") return false;
  const Argument* train = node.argument(2, "train");
  const bool training = train == nullptr || train->is_none() || (train->get<bool>() != nullptr && *train->get<bool>());
  const double p = number(node.argument(1, "p"), 0.5);
  const Argument* input = node.argument(0, "input");
  if (!training || p <= 0 || p >= 1 || input == nullptr || input->get<ValueId>() == nullptr) return false;
  const std::optional<TensorMeta>& meta = graph.values[*input->get<ValueId>()].tensor;
  return meta && is_kernel_dtype(meta->dtype) && is_float(meta->dtype) && meta->numel() > 0 && dense_order(*meta);
}

/// dropout(x, p) is x * (noise / (1 - p)). Eager draws the noise in the order of x's memory, and `bernoulli` in that of
/// the index, so it is drawn for a permuted view.
void Functionalizer::dropout(NodeId id) {
  const trace::Node& node = old_.nodes[id];
  const ValueId old_input = *node.argument(0, "input")->get<ValueId>();
  const double kept = 1 - number(node.argument(1, "p"), 0.5);
  const TensorMeta& whole = meta(old_input);
  const std::vector<std::int64_t> order = *dense_order(whole);
  const ValueId input = read(old_input);
  const bool permuted = !std::is_sorted(order.begin(), order.end());
  TensorMeta laid = whole;
  laid.storage_offset = 0;
  laid.requires_grad = false;
  for (std::size_t k = 0; k < order.size(); ++k) laid.sizes[k] = whole.sizes[static_cast<std::size_t>(order[k])];
  laid.strides = trace::contiguous_strides(laid.sizes);
  ValueId noise = input;
  if (permuted) {
    TensorMeta seen = laid;
    seen.storage_offset = whole.storage_offset;
    noise = emit_step(id, node.name + "_order", "aten.permute.default", {{noise}, integers(order)}, {}, seen);
  }
  noise = emit_step(id, node.name + "_noise", "aten.bernoulli.p", {{noise}, {kept}}, {}, laid);
  if (permuted) {
    std::vector<std::int64_t> back(order.size());
    TensorMeta seen = laid;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const auto d = static_cast<std::size_t>(order[k]);
      back[d] = static_cast<std::int64_t>(k);
      seen.sizes[d] = laid.sizes[k];
      seen.strides[d] = laid.strides[k];
    }
    laid = seen;
    noise = emit_step(id, node.name + "_back", "aten.permute.default", {{noise}, integers(back)}, {}, laid);
  }
  const ValueId scaled = emit_step(id, node.name + "_scaled", "aten.div.Scalar", {{noise}, {kept}}, {}, laid);
  std::vector<ValueId> made = emit(id, node.name, "aten.mul.Tensor", {{input}, {scaled}}, {},
                                   {{{}, old_.values[node.outputs[0]].tensor, node.outputs[0]}}, false);
  if (node.outputs.size() > 1)
    made.push_back(emit(id, unique(node.name + "_mask"), "aten.ne.Scalar", {{noise}, {std::int64_t{0}}}, {},
                        {{{}, old_.values[node.outputs[1]].tensor, node.outputs[1]}}, false)[0]);
  register_outputs(id, made);
}

}  // namespace pallascope::functional
