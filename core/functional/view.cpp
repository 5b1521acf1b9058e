#include "core/functional/view.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

namespace pallascope::functional {
namespace {

using trace::Argument;
using trace::ArgumentList;
using trace::Graph;
using trace::Node;
using trace::TensorMeta;
using trace::ValueId;
using Ints = std::vector<std::int64_t>;

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// clang-format off
/// Views for every argument.
constexpr std::array<std::string_view, 12> kReshaping = {
    "view", "_unsafe_view", "_reshape_alias", "view_as", "squeeze", "squeeze_", "unsqueeze", "unsqueeze_", "unflatten",
    "atleast_1d", "atleast_2d", "atleast_3d"};
/// Views where the strides allow it, copies otherwise.
constexpr std::array<std::string_view, 3> kReshapingIfViewable = {"reshape", "reshape_as", "flatten"};
constexpr std::array<std::string_view, 9> kIdentity = {
    "detach", "detach_", "alias", "lift_fresh", "lift", "positive", "resolve_conj", "resolve_neg", "requires_grad_"};
constexpr std::array<std::string_view, 16> kPermuting = {
    "permute", "transpose", "transpose_", "t", "t_", "numpy_T", "mT", "mH", "adjoint", "matrix_H", "swapaxes",
    "swapaxes_", "swapdims", "swapdims_", "movedim", "moveaxis"};
constexpr std::array<std::string_view, 10> kSplitting = {
    "split", "split_with_sizes", "chunk", "tensor_split", "hsplit", "vsplit", "dsplit", "unsafe_split",
    "unsafe_chunk", "unsafe_split_with_sizes"};
constexpr std::array<std::string_view, 8> kStrided = {
    "expand", "expand_as", "broadcast_to", "broadcast_tensors", "unfold", "as_strided", "as_strided_", "meshgrid"};
// clang-format on

const ValueId* value_argument(const Node& node, std::size_t index, std::string_view name) {
  const Argument* argument = node.argument(index, name);
  return argument == nullptr ? nullptr : argument->get<ValueId>();
}

std::int64_t int_argument(const Node& node, std::size_t index, std::string_view name,
                          std::int64_t otherwise) {
  const Argument* argument = node.argument(index, name);
  const auto* number = argument == nullptr ? nullptr : argument->get<std::int64_t>();
  return number == nullptr ? otherwise : *number;
}

Ints ints_argument(const Node& node, std::size_t index, std::string_view name) {
  Ints numbers;
  const Argument* argument = node.argument(index, name);
  if (argument == nullptr) return numbers;
  if (const auto* number = argument->get<std::int64_t>()) return {*number};
  if (const auto* list = argument->get<ArgumentList>())
    for (const Argument& element : *list)
      if (const auto* number = element.get<std::int64_t>()) numbers.push_back(*number);
  return numbers;
}

std::int64_t wrap(std::int64_t index, std::int64_t extent) { return index < 0 ? index + extent : index; }

Ints identity_order(std::int64_t rank) {
  Ints order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// `sources` go to `destinations`, the other axes keep their order.
Ints moved_order(Ints sources, Ints destinations, std::int64_t rank) {
  Ints order(static_cast<std::size_t>(rank), -1);
  std::vector<bool> taken(static_cast<std::size_t>(rank), false);
  for (std::size_t i = 0; i < sources.size() && i < destinations.size(); ++i) {
    const std::int64_t source = wrap(sources[i], rank), destination = wrap(destinations[i], rank);
    if (source < 0 || source >= rank || destination < 0 || destination >= rank) return {};
    order[static_cast<std::size_t>(destination)] = source;
    taken[static_cast<std::size_t>(source)] = true;
  }
  std::int64_t next = 0;
  for (std::int64_t& axis : order) {
    if (axis >= 0) continue;
    while (next < rank && taken[static_cast<std::size_t>(next)]) ++next;
    axis = next++;
  }
  return order;
}

/// Axis i of the output is axis order[i] of the base; empty when the arguments make no sense.
Ints permutation(const Node& node, std::string_view name, std::int64_t rank) {
  Ints order = identity_order(rank);
  const auto swap = [&](std::int64_t a, std::int64_t b) {
    a = wrap(a, rank);
    b = wrap(b, rank);
    if (a >= 0 && a < rank && b >= 0 && b < rank)
      std::swap(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(b)]);
  };
  if (name == "permute") {
    Ints dims = ints_argument(node, 1, "dims");
    for (std::int64_t& dim : dims) dim = wrap(dim, rank);
    Ints sorted = dims;
    std::sort(sorted.begin(), sorted.end());
    return sorted == order ? dims : Ints();
  }
  if (name == "movedim" || name == "moveaxis")
    return moved_order(ints_argument(node, 1, "source"), ints_argument(node, 2, "destination"), rank);
  if (name == "numpy_T") {
    std::reverse(order.begin(), order.end());
  } else if (name == "t" || name == "t_" || name == "mT" || name == "mH" || name == "adjoint" ||
             name == "matrix_H") {
    if (rank >= 2) swap(-2, -1);
  } else if (rank > 0) {
    const bool named_axes = name.starts_with("swapaxes");
    swap(int_argument(node, 1, named_axes ? "axis0" : "dim0", 0),
         int_argument(node, 2, named_axes ? "axis1" : "dim1", 0));
  }
  return order;
}

bool contiguous_in(const TensorMeta& meta, std::string_view format) {
  Ints order = identity_order(meta.rank());
  if (format.starts_with("channels_last")) {
    const std::int64_t rank = format == "channels_last" ? 4 : 5;
    if (meta.rank() != rank) return false;
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());  // N, spatial axes, C
  }
  std::int64_t expected = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    const auto i = static_cast<std::size_t>(*axis);
    if (meta.sizes[i] == 0) return true;
    if (meta.sizes[i] != 1 && meta.strides[i] != expected) return false;
    expected *= meta.sizes[i];
  }
  return true;
}

std::string_view memory_format(const Node& node, std::string_view otherwise) {
  const auto find = [&](const Argument& argument) -> std::string_view {
    const auto* name = argument.get<trace::EnumArgument>();
    return name != nullptr && name->kind == "memory_format" ? std::string_view(name->name)
                                                            : std::string_view();
  };
  for (const Argument& argument : node.args)
    if (const std::string_view format = find(argument); !format.empty()) return format;
  for (const auto& [keyword, argument] : node.kwargs)
    if (const std::string_view format = find(argument); !format.empty()) return format;
  return otherwise;
}

/// The `copy` argument of the `to` overloads, which stands at a different place in each.
bool to_copies(const Node& node) {
  const std::string_view overload = overload_name(node.target);
  const std::size_t index = overload == "dtype_layout" ? 6 : overload == "device" ? 4 : 3;
  const Argument* argument = node.argument(overload == "dtype_layout" ? node.args.size() : index, "copy");
  const bool* copy = argument == nullptr ? nullptr : argument->get<bool>();
  return copy != nullptr && *copy;
}

/// Whether `to`, `type_as`, `contiguous` or a dropout gave back its argument.
bool returns_argument(const Node& node, std::string_view name, const TensorMeta& base,
                      const TensorMeta& output) {
  if (name == "contiguous") return contiguous_in(base, memory_format(node, "contiguous_format"));
  if (name == "dropout" || name == "feature_dropout" || name == "alpha_dropout" ||
      name == "feature_alpha_dropout") {
    const Argument* probability = node.argument(1, "p");
    const Argument* train = node.argument(2, "train");
    const bool training = train != nullptr && train->get<bool>() != nullptr && *train->get<bool>();
    const bool never =
        probability != nullptr && probability->get<double>() != nullptr && *probability->get<double>() == 0;
    return !training || never || base.numel() == 0;
  }
  if (base.dtype != output.dtype || base.device != output.device) return false;
  if (name == "type_as") return true;
  if (to_copies(node)) return false;
  const std::string_view format = memory_format(node, "preserve_format");
  return format == "preserve_format" || base.strides == output.strides;
}

/// Whether einsum over one operand only moves axes: then it gives back a view.
bool einsum_moves_axes(const Node& node) {
  const Argument* equation = node.argument(0, "equation");
  const Argument* operands = node.argument(1, "tensors");
  const std::string* text = equation == nullptr ? nullptr : equation->get<std::string>();
  const ArgumentList* list = operands == nullptr ? nullptr : operands->get<ArgumentList>();
  if (text == nullptr || list == nullptr || list->size() != 1) return false;
  const std::size_t arrow = text->find("->");
  const std::string from = text->substr(0, arrow);
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == ' ' || from[i] == '.') continue;
    const bool kept = arrow == std::string::npos ? std::count(from.begin(), from.end(), from[i]) == 1
                                                 : text->find(from[i], arrow) != std::string::npos;
    if (!kept) return false;
  }
  return true;
}

std::int64_t split_dim(const Node& node, std::string_view name, std::int64_t rank) {
  if (name == "hsplit") return rank == 1 ? 0 : 1;
  if (name == "vsplit") return 0;
  if (name == "dsplit") return 2;
  return wrap(int_argument(node, 2, "dim", 0), rank);
}

/// The argument that output `output` may view: element `output` of a list for the operators that take one.
const ValueId* viewed_argument(const Node& node, std::string_view name, std::size_t output) {
  if (name == "einsum") {
    const Argument* operands = node.argument(1, "tensors");
    const ArgumentList* list = operands == nullptr ? nullptr : operands->get<ArgumentList>();
    return list == nullptr || list->empty() ? nullptr : list->front().get<ValueId>();
  }
  if (node.args.empty()) return value_argument(node, 0, name == "dropout" ? "input" : "self");
  if (const ArgumentList* list = node.args[0].get<ArgumentList>())
    return output < list->size() ? (*list)[output].get<ValueId>() : nullptr;
  return node.args[0].get<ValueId>();
}

}  // namespace

std::string_view operator_namespace(std::string_view target) { return target.substr(0, target.find('.')); }

std::string_view operator_name(std::string_view target) {
  const std::size_t first = target.find('.');
  if (first == std::string_view::npos) return target;
  return target.substr(first + 1,
                       target.rfind('.') == first ? std::string_view::npos : target.rfind('.') - first - 1);
}

std::string_view overload_name(std::string_view target) {
  const std::size_t first = target.find('.'), last = target.rfind('.');
  return first == last ? std::string_view() : target.substr(last + 1);
}

std::optional<View> view_of(const Graph& graph, const Node& node, std::size_t output) {
  if (operator_namespace(node.target) != "aten" || output >= node.outputs.size()) return std::nullopt;
  const std::string_view name = operator_name(node.target);
  const ValueId* base_id = viewed_argument(node, name, output);
  if (base_id == nullptr || !graph.values[*base_id].tensor || !graph.values[node.outputs[output]].tensor)
    return std::nullopt;
  const TensorMeta& base = *graph.values[*base_id].tensor;
  const TensorMeta& result = *graph.values[node.outputs[output]].tensor;
  const std::int64_t rank = base.rank();
  View view;
  view.base = *base_id;
  // A kind whose axes do not fit the metas (a trace that someone wrote by hand) is left to the strides.
  const auto as = [&](ViewKind kind) {
    const std::int64_t lost = kind == ViewKind::select || kind == ViewKind::diagonal ? 1 : 0;
    const bool by_axis = kind == ViewKind::slice || kind == ViewKind::select || kind == ViewKind::diagonal;
    const bool axes_fit =
        (kind != ViewKind::permute && !by_axis) ||
        (result.rank() == rank - lost &&
         (kind == ViewKind::permute || (view.dim >= 0 && view.dim < rank && view.dim2 < rank)));
    view.kind = base.dtype != result.dtype ? ViewKind::reinterpret : axes_fit ? kind : ViewKind::strided;
    return view;
  };

  if (contains(kIdentity, name)) return as(ViewKind::identity);
  if (contains(kReshaping, name)) return as(ViewKind::reshape);
  if (contains(kReshapingIfViewable, name))
    return viewable(base, result.sizes) ? std::optional(as(ViewKind::reshape)) : std::nullopt;
  if (name == "ravel")  // contiguous().view(-1): an expanded axis is copied, which a reshape would keep
    return contiguous_in(base, "contiguous_format") ? std::optional(as(ViewKind::reshape)) : std::nullopt;
  if (name == "contiguous" || name == "to" || name == "type_as" || name == "dropout" ||
      name == "feature_dropout" || name == "alpha_dropout" || name == "feature_alpha_dropout")
    return returns_argument(node, name, base, result) ? std::optional(as(ViewKind::identity)) : std::nullopt;
  if (contains(kPermuting, name)) {
    // The adjoint of a complex tensor is conjugated as well.
    const bool conjugates =
        (name == "mH" || name == "adjoint" || name == "matrix_H") && is_complex(base.dtype);
    view.order = permutation(node, name, rank);
    if (conjugates) return as(ViewKind::reinterpret);
    return as(view.order.size() == base.sizes.size() ? ViewKind::permute : ViewKind::strided);
  }
  if (name == "slice" || name == "narrow") {
    view.dim = wrap(int_argument(node, 1, "dim", 0), rank);
    // narrow.Tensor takes its start from a tensor: the strides in the meta do not tell where it starts.
    const bool start_unknown = name == "narrow" && overload_name(node.target) == "Tensor";
    if (view.dim < 0 || view.dim >= rank || start_unknown) return as(ViewKind::reinterpret);
    const std::int64_t extent = base.sizes[static_cast<std::size_t>(view.dim)];
    view.start = std::clamp<std::int64_t>(wrap(int_argument(node, 2, "start", 0), extent), 0, extent);
    view.step = name == "slice" ? int_argument(node, 4, "step", 1) : 1;
    return as(ViewKind::slice);
  }
  if (contains(kSplitting, name)) {
    view.dim = split_dim(node, name, rank);
    if (view.dim < 0 || view.dim >= rank) return as(ViewKind::strided);
    for (std::size_t i = 0; i < output; ++i) {
      const auto& piece = graph.values[node.outputs[i]].tensor;
      if (!piece || piece->rank() != rank) return as(ViewKind::strided);
      view.start += piece->sizes[static_cast<std::size_t>(view.dim)];
    }
    return as(ViewKind::slice);
  }
  if (name == "select" || name == "unbind") {
    view.dim = wrap(int_argument(node, 1, "dim", 0), rank);
    if (view.dim < 0 || view.dim >= rank) return as(ViewKind::strided);
    view.index = name == "unbind" ? static_cast<std::int64_t>(output)
                                  : wrap(int_argument(node, 2, "index", 0),
                                         base.sizes[static_cast<std::size_t>(view.dim)]);
    return as(ViewKind::select);
  }
  if (name == "diagonal" || name == "linalg_diagonal") {
    const bool linalg = name == "linalg_diagonal";
    view.offset = int_argument(node, linalg ? node.args.size() : 1, "offset", 0);
    view.dim = wrap(int_argument(node, linalg ? node.args.size() : 2, "dim1", linalg ? -2 : 0), rank);
    view.dim2 = wrap(int_argument(node, linalg ? node.args.size() : 3, "dim2", linalg ? -1 : 1), rank);
    return as(ViewKind::diagonal);
  }
  if (contains(kStrided, name)) return as(ViewKind::strided);
  if (name == "einsum" && einsum_moves_axes(node)) return as(ViewKind::strided);
  if (name == "real" || name == "imag" || name == "conj" || name == "_conj" || name == "_neg_view" ||
      name == "view_as_real" || name == "view_as_complex" || name == "conj_physical") {
    if (name == "conj_physical" && is_complex(base.dtype)) return std::nullopt;
    return as(is_complex(base.dtype) || name == "_neg_view" ? ViewKind::reinterpret : ViewKind::identity);
  }
  return std::nullopt;
}

namespace {

/// Sizes and strides without axes of extent 1, neighbours that lie evenly in memory merged.
std::vector<std::pair<std::int64_t, std::int64_t>> merged(const TensorMeta& meta) {
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;
  for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
    const std::int64_t size = meta.sizes[i], stride = meta.strides[i];
    if (size == 1) continue;
    if (!axes.empty() && axes.back().second == size * stride) {
      axes.back() = {axes.back().first * size, stride};
    } else {
      axes.emplace_back(size, stride);
    }
  }
  return axes;
}

/// Whether the metas say that `result` lies in the memory of `base` as the view tells. The root of a storage that was
/// changed keeps its first meta, and is made by a view of a value that lies elsewhere.
bool lies_in(const View& view, const TensorMeta& base, const TensorMeta& result) {
  if (result.numel() == 0) return true;
  TensorMeta expected = base;
  const auto dim = static_cast<std::size_t>(view.dim), dim2 = static_cast<std::size_t>(view.dim2);
  const auto drop = [&](std::size_t axis) {
    expected.sizes.erase(expected.sizes.begin() + static_cast<std::ptrdiff_t>(axis));
    expected.strides.erase(expected.strides.begin() + static_cast<std::ptrdiff_t>(axis));
  };
  switch (view.kind) {
    case ViewKind::identity:
    case ViewKind::reshape: break;
    case ViewKind::permute:
      for (std::size_t i = 0; i < view.order.size(); ++i) {
        expected.sizes[i] = base.sizes.at(static_cast<std::size_t>(view.order[i]));
        expected.strides[i] = base.strides.at(static_cast<std::size_t>(view.order[i]));
      }
      break;
    case ViewKind::slice:
      expected.storage_offset += view.start * base.strides.at(dim);
      expected.strides[dim] *= view.step;
      expected.sizes[dim] = result.sizes.at(dim);
      break;
    case ViewKind::select:
      expected.storage_offset += view.index * base.strides.at(dim);
      drop(dim);
      break;
    case ViewKind::diagonal: {
      const std::size_t along = view.offset >= 0 ? dim2 : dim;
      expected.storage_offset += std::abs(view.offset) * base.strides.at(along);
      expected.sizes.push_back(result.sizes.back());
      expected.strides.push_back(base.strides.at(dim) + base.strides.at(dim2));
      drop(std::max(dim, dim2));
      drop(std::min(dim, dim2));
      break;
    }
    case ViewKind::strided:
    case ViewKind::reinterpret: return true;
  }
  return expected.storage_offset == result.storage_offset && merged(expected) == merged(result);
}

}  // namespace

ValueId memory_owner(const Graph& graph, ValueId value) {
  while (graph.values[value].producer.valid()) {
    const trace::Value& made = graph.values[value];
    const std::optional<View> view = view_of(graph, graph.nodes[made.producer], static_cast<std::size_t>(made.output_index));
    if (!view || !made.tensor || !lies_in(*view, *graph.values[view->base].tensor, *made.tensor)) break;
    value = view->base;
  }
  return value;
}

ValueId strided_memory(const Graph& graph, const Node& node) {
  if (node.target != "aten.as_strided.default" && node.target != "aten.as_strided_copy.default") return {};
  const ValueId* self = value_argument(node, 0, "self");
  if (self == nullptr) return {};
  const ValueId owner = memory_owner(graph, *self);
  // Bytes that are read as another dtype are counted in that dtype.
  const auto &owned = graph.values[owner].tensor, &seen = graph.values[*self].tensor;
  return owned && seen && owned->dtype == seen->dtype ? owner : *self;
}

bool viewable(const TensorMeta& meta, const Ints& sizes) {
  const std::int64_t elements = meta.numel();
  const std::int64_t wanted =
      std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
  if (elements != wanted) return false;
  if (elements == 0) return true;
  if (meta.sizes.empty()) return true;
  // Walk the base from its innermost axis, collecting axes that lie evenly in memory into one chunk; each chunk
  // must be cut into whole axes of the wanted sizes.
  auto axis = static_cast<std::ptrdiff_t>(sizes.size()) - 1;
  std::int64_t chunk = 1, cut = 1;
  std::int64_t chunk_stride = meta.strides.back();
  for (auto i = static_cast<std::ptrdiff_t>(meta.sizes.size()) - 1; i >= 0; --i) {
    chunk *= meta.sizes[static_cast<std::size_t>(i)];
    const bool ends = i == 0 || (meta.sizes[static_cast<std::size_t>(i - 1)] != 1 &&
                                 meta.strides[static_cast<std::size_t>(i - 1)] != chunk * chunk_stride);
    if (!ends) continue;
    while (axis >= 0 && (cut < chunk || sizes[static_cast<std::size_t>(axis)] == 1))
      cut *= sizes[static_cast<std::size_t>(axis--)];
    if (cut != chunk) return false;
    if (i > 0) {
      chunk_stride = meta.strides[static_cast<std::size_t>(i - 1)];
      chunk = cut = 1;
    }
  }
  return axis < 0;
}

bool overlaps_itself(const TensorMeta& meta) {
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // stride, extent
  for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
    if (meta.sizes[i] == 0) return false;
    if (meta.sizes[i] > 1) axes.emplace_back(meta.strides[i], meta.sizes[i]);
  }
  std::sort(axes.begin(), axes.end());
  std::int64_t inner = 0;  // the largest distance that the inner axes reach
  for (const auto& [stride, extent] : axes) {
    if (stride <= inner) return true;
    inner += (extent - 1) * stride;
  }
  return false;
}

TensorMeta dense_like(const TensorMeta& meta) {
  TensorMeta dense = meta;
  dense.storage_offset = 0;
  Ints order = identity_order(meta.rank());
  // Outermost first: larger strides first, equal ones as they stand.
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return meta.strides[static_cast<std::size_t>(a)] > meta.strides[static_cast<std::size_t>(b)];
  });
  std::int64_t next = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    const auto i = static_cast<std::size_t>(*axis);
    dense.strides[i] = next;
    next *= std::max<std::int64_t>(meta.sizes[i], 1);
  }
  return dense;
}

}  // namespace pallascope::functional
