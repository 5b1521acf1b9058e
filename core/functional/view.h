// Room: functional. Which outputs share memory with an argument, and how their elements map to it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/trace/graph.h"

namespace pallascope::functional {

enum class ViewKind {
  identity,     ///< the same elements in the same place: detach, alias, `contiguous` of a contiguous tensor
  reshape,      ///< the same elements in the same order under other sizes: view, squeeze, flatten
  permute,      ///< axes in another order: output axis i is axis `order[i]` of the base
  slice,        ///< `start`, `start + step`, ... of axis `dim`
  select,       ///< `index` of axis `dim`, which goes away
  diagonal,     ///< `offset`, `dim`, `dim2`
  strided,      ///< any other map of elements, given by the output's strides: expand, unfold, as_strided
  reinterpret,  ///< the same bytes as another dtype, or conjugated: not writable here
};

/// How one output of a node views one of its arguments. Dims and indices are normalised (not negative).
struct View {
  ViewKind kind = ViewKind::identity;
  trace::ValueId base;
  std::vector<std::int64_t> order;
  std::int64_t dim = 0, dim2 = 0;
  std::int64_t start = 0, step = 1;
  std::int64_t index = 0;
  std::int64_t offset = 0;
};

/// The view that output `output` of `node` is, or nullopt when it has memory of its own. Operators that copy only
/// if they must (reshape, contiguous, to, dropout in eval) are judged by the strides in the metas, as PyTorch
/// judges them.
std::optional<View> view_of(const trace::Graph& graph, const trace::Node& node, std::size_t output);

/// The value whose memory `value` lies in: itself, unless it is a view.
trace::ValueId memory_owner(const trace::Graph& graph, trace::ValueId value);

/// For as_strided and as_strided_copy, which count from the start of their argument's memory: the value that owns it.
/// Invalid for other nodes.
trace::ValueId strided_memory(const trace::Graph& graph, const trace::Node& node);

/// Whether `sizes` can be had from `meta` by changing sizes and strides alone (PyTorch's computeStride).
///
/// Worked example: sizes [2, 3, 4] with strides [24, 4, 1] hold one gap, between axes 0 and 1. [2, 12] is a view
/// (axes 1 and 2 merge, since 4 = 4 * 1), [6, 4] is not (axis 0 would need stride 12, and has 24).
bool viewable(const trace::TensorMeta& meta, const std::vector<std::int64_t>& sizes);

/// Whether two index tuples of `meta` may name one element: a stride of 0 along an extent above 1, or strides
/// smaller than what lies inside them.
bool overlaps_itself(const trace::TensorMeta& meta);

/// Row-major strides of a tensor without gaps whose axes are nested in the order of `meta`'s strides; offset 0.
/// [4, 2] with strides [1, 8] gives [1, 4].
trace::TensorMeta dense_like(const trace::TensorMeta& meta);

/// The operator's name between namespace and overload: `add_` of `aten.add_.Tensor`.
std::string_view operator_name(std::string_view target);
std::string_view operator_namespace(std::string_view target);
std::string_view overload_name(std::string_view target);

}  // namespace pallascope::functional
