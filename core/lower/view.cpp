// Family: views. Each is an index map: no nest, no bytes.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "core/lower/builder.h"
#include "core/lower/regions.h"

namespace pallascope::lower {
namespace {

Lowered reshape(Call& call) {
  call.define(call.builder.reshape(call.tensor(0, "self"), call.meta().sizes));
  return as_view();
}

Lowered same(Call& call) {
  call.define(call.tensor(0, "self"));
  return as_view();
}

/// dropout(x, p, train): the tensor itself outside of training.
Lowered dropout(Call& call) {
  if (call.boolean(2, "train", true) && call.number(1, "p", 0.5) != 0) return declined("random values are drawn by PyTorch");
  return same(call);
}

/// _assert_tensor_metadata(x, size, stride, dtype): what it asserts is in the trace's own metas, so it is judged here.
Lowered assert_metadata(Call& call) {
  const trace::Argument* self = call.argument(0, "a");
  const auto* value = self == nullptr ? nullptr : self->get<trace::ValueId>();
  if (value == nullptr) return declined("an assertion about no tensor");
  const trace::TensorMeta& meta = *call.builder.graph().values[*value].tensor;
  const trace::Argument* dtype = call.argument(3, "dtype");
  const bool sizes_differ = call.has(1, "size") && call.integers(1, "size") != meta.sizes;
  const bool strides_differ = call.has(2, "stride") && call.integers(2, "stride") != meta.strides;
  const bool dtype_differs = dtype != nullptr && dtype->get<DType>() != nullptr && *dtype->get<DType>() != meta.dtype;
  if (!sizes_differ && !strides_differ && !dtype_differs) return as_view();
  Lowered bad = declined("");
  bad.diagnostic = Diagnostic{DiagnosticKind::malformed_graph,
                              fmt::format("the graph asserts other sizes, strides or dtype than {} has ({})",
                                          call.builder.graph().values[*value].name, trace::to_string(meta)),
                              call.node.name, "a trace whose metas agree with its own assertions"};
  return bad;
}

Lowered permute(Call& call) {
  const Tensor x = call.tensor(0, "self");
  std::vector<std::size_t> order;
  for (std::int64_t d : call.integers(1, "dims")) order.push_back(Call::dim(d, x.rank()));
  call.define(call.builder.permute(x, order));
  return as_view();
}

Lowered transpose_dims(Call& call, std::int64_t a, std::int64_t b) {
  const Tensor x = call.tensor(0, "self");
  std::vector<std::size_t> order(x.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  if (!order.empty()) std::swap(order[Call::dim(a, x.rank())], order[Call::dim(b, x.rank())]);
  call.define(call.builder.permute(x, order));
  return as_view();
}

Lowered transpose(Call& call) { return transpose_dims(call, call.integer(1, "dim0"), call.integer(2, "dim1")); }
Lowered t(Call& call) {
  if (call.tensor(0, "self").rank() < 2) return same(call);
  return transpose_dims(call, 0, 1);
}
Lowered matrix_transpose(Call& call) { return transpose_dims(call, -2, -1); }

Lowered numpy_transpose(Call& call) {
  const Tensor x = call.tensor(0, "self");
  std::vector<std::size_t> order(x.sizes.size());
  std::iota(order.rbegin(), order.rend(), 0);
  call.define(call.builder.permute(x, order));
  return as_view();
}

Lowered movedim(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const Sizes from = call.integers(1, "source"), to = call.integers(2, "destination");
  if (from.size() != to.size() || from.size() > x.sizes.size()) throw MalformedNode{"as many sources as destinations are needed"};
  std::vector<std::size_t> order(x.sizes.size(), x.sizes.size());
  std::vector<bool> moved(x.sizes.size(), false);
  for (std::size_t k = 0; k < from.size(); ++k) {
    order[Call::dim(to[k], x.rank())] = Call::dim(from[k], x.rank());
    moved[Call::dim(from[k], x.rank())] = true;
  }
  std::size_t next = 0;
  for (std::size_t& d : order) {
    if (d != x.sizes.size()) continue;
    while (moved[next]) ++next;
    d = next++;
  }
  call.define(call.builder.permute(x, order));
  return as_view();
}

Lowered expand(Call& call) {
  call.define(call.builder.expand(call.tensor(0, "self"), call.meta().sizes));
  return as_view();
}

Lowered broadcast_tensors(Call& call) {
  const std::vector<Tensor> tensors = call.tensors(0, "tensors");
  if (tensors.size() != call.outputs()) throw MalformedNode{"as many tensors as results are needed"};
  for (std::size_t k = 0; k < tensors.size(); ++k)
    if (call.wanted(k)) call.define(call.builder.expand(tensors[k], call.meta(k).sizes), k);
  return as_view();
}

/// unsqueeze and squeeze: the dimensions of extent 1 come and go, the others keep their order.
Lowered unsqueeze(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const std::size_t place = Call::dim(call.integer(1, "dim"), x.rank() + 1);
  call.define(call.builder.reindex(x, call.meta().sizes, [&](const Index& position) {
    Index source = position;
    source.erase(source.begin() + static_cast<std::ptrdiff_t>(place));
    return source;
  }));
  return as_view();
}

Lowered squeeze(Call& call) {
  const Tensor x = call.tensor(0, "self");
  std::vector<bool> gone(x.sizes.size(), false);
  for (std::size_t d : call.dims(1, "dim", x.rank())) gone[d] = x.sizes[d] == 1;
  call.define(call.builder.reindex(x, call.meta().sizes, [&](const Index& position) {
    Index source;
    std::size_t next = 0;
    for (std::size_t d = 0; d < gone.size(); ++d)
      source.push_back(gone[d] ? call.builder.context().constant(0) : position[next++]);
    return source;
  }));
  return as_view();
}

/// `start + step * i` along `dim`.
Tensor along(Builder& builder, const Tensor& x, std::size_t dim, std::int64_t start, std::int64_t step, std::int64_t count) {
  Sizes sizes = x.sizes;
  if (count < 0 || step < 1 || (count > 0 && (start < 0 || start + step * (count - 1) >= sizes.at(dim))))
    throw MalformedNode{fmt::format("{} elements from {} by {} reach outside of an axis of extent {}", count, start, step, sizes.at(dim))};
  sizes[dim] = count;
  return builder.reindex(x, sizes, [&](const Index& position) {
    Index source = position;
    source[dim] = builder.context().add(builder.context().multiply(position[dim], step), builder.context().constant(start));
    return source;
  });
}

Lowered slice(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (x.rank() == 0 || call.meta().rank() != x.rank()) throw MalformedNode{"a slice keeps the rank of its tensor, 1 or more"};
  const std::size_t d = Call::dim(call.integer(1, "dim", 0), x.rank());
  const std::int64_t start = call.has(2, "start") ? Call::slice_bound(call.integer(2, "start"), x.sizes[d]) : 0;
  call.define(along(call.builder, x, d, start, call.integer(4, "step", 1), call.meta().sizes[d]));
  return as_view();
}

Lowered narrow(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (x.rank() == 0 || call.meta().rank() != x.rank()) throw MalformedNode{"a slice keeps the rank of its tensor, 1 or more"};
  const std::size_t d = Call::dim(call.integer(1, "dim"), x.rank());
  call.define(along(call.builder, x, d, Call::slice_bound(call.integer(2, "start"), x.sizes[d]), 1, call.meta().sizes[d]));
  return as_view();
}

Tensor selected(Builder& builder, const Tensor& x, std::size_t d, std::int64_t at) {
  Sizes sizes = x.sizes;
  if (at < 0 || at >= sizes.at(d)) throw MalformedNode{fmt::format("index {} of an axis of extent {}", at, sizes.at(d))};
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(d));
  return builder.reindex(x, sizes, [&](const Index& position) {
    Index source = position;
    source.insert(source.begin() + static_cast<std::ptrdiff_t>(d), builder.context().constant(at));
    return source;
  });
}

Lowered select(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const std::size_t d = Call::dim(call.integer(1, "dim"), x.rank());
  if (x.rank() == 0) throw MalformedNode{"a selection from a scalar"};
  std::int64_t at = call.integer(2, "index");
  if (at < 0) at += x.sizes[d];
  if (at < 0 || at >= x.sizes[d]) {
    Lowered bad = declined("");
    bad.diagnostic = Diagnostic{DiagnosticKind::invalid_argument,
                                fmt::format("select takes index {} of an axis of extent {}", call.integer(2, "index"), x.sizes[d]),
                                call.node.name, "an index within the axis"};
    return bad;
  }
  call.define(selected(call.builder, x, d, at));
  return as_view();
}

/// Each output takes the next piece.
Lowered split_along(Call& call, const Tensor& x, std::size_t d) {
  if (d >= x.sizes.size()) throw MalformedNode{"a split of a dimension that is not there"};
  std::int64_t start = 0;
  for (std::size_t k = 0; k < call.outputs(); ++k) {
    if (!call.wanted(k)) return declined("an output without a meta");
    const std::int64_t count = call.meta(k).sizes.at(d);
    call.define(along(call.builder, x, d, start, 1, count), k);
    start += count;
  }
  return as_view();
}

/// split, chunk
Lowered split(Call& call) {
  const Tensor x = call.tensor(0, "self");
  return split_along(call, x, Call::dim(call.integer(2, "dim", 0), x.rank()));
}

Lowered unbind(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const std::size_t d = Call::dim(call.integer(1, "dim", 0), x.rank());
  for (std::size_t k = 0; k < call.outputs(); ++k) call.define(selected(call.builder, x, d, static_cast<std::int64_t>(k)), k);
  return as_view();
}

Lowered diagonal(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const std::int64_t offset = call.integer(1, "offset", 0);
  if (x.rank() < 2 || call.meta().rank() != x.rank() - 1) throw MalformedNode{"a diagonal of something that is no matrix"};
  const std::size_t a = Call::dim(call.integer(2, "dim1", 0), x.rank()), b = Call::dim(call.integer(3, "dim2", 1), x.rank());
  const std::int64_t length = call.meta().sizes.back();
  const bool leaves = length > x.sizes[a] - std::max<std::int64_t>(0, -offset) || length > x.sizes[b] - std::max<std::int64_t>(0, offset);
  if (a == b || (length > 0 && leaves))  // an empty diagonal may start outside
    throw MalformedNode{"a diagonal that leaves its matrix"};
  call.define(call.builder.reindex(x, call.meta().sizes, [&](const Index& position) {
    index::Context& context = call.builder.context();
    Index source(x.sizes.size());
    std::size_t next = 0;
    for (std::size_t d = 0; d < source.size(); ++d)
      if (d != a && d != b) source[d] = position[next++];
    source[a] = context.add(position.back(), context.constant(std::max<std::int64_t>(0, -offset)));
    source[b] = context.add(position.back(), context.constant(std::max<std::int64_t>(0, offset)));
    return source;
  }));
  return as_view();
}

/// unfold(dim, size, step): windows of `size` at every `step`; the window is a new last dimension.
Lowered unfold(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const std::int64_t step = call.integer(3, "step");
  if (x.sizes.empty()) return declined("unfold of rank 0");
  const std::size_t d = Call::dim(call.integer(1, "dimension"), x.rank());
  const Sizes& windows = call.meta().sizes;
  if (call.meta().rank() != x.rank() + 1 || step < 1 ||
      (call.meta().numel() > 0 && (windows[d] - 1) * step + windows.back() > x.sizes[d]))
    throw MalformedNode{"windows that leave their axis"};
  call.define(call.builder.reindex(x, call.meta().sizes, [&](const Index& position) {
    Index source(position.begin(), position.end() - 1);
    source[d] = call.builder.context().add(call.builder.context().multiply(position[d], step), position.back());
    return source;
  }));
  return as_view();
}

Tensor flipped(Builder& builder, const Tensor& x, const Sizes& dims) {
  std::vector<bool> turned(x.sizes.size(), false);
  for (std::int64_t d : dims)
    if (x.rank() > 0) turned[Call::dim(d, x.rank())] = true;
  return builder.reindex(x, x.sizes, [&](const Index& position) {
    index::Context& context = builder.context();
    Index source = position;
    for (std::size_t d = 0; d < source.size(); ++d)
      if (turned[d]) source[d] = context.subtract(context.constant(x.sizes[d] - 1), position[d]);
    return source;
  });
}

Lowered flip(Call& call) {
  call.define(flipped(call.builder, call.tensor(0, "self"), call.integers(1, "dims")));
  return as_view();
}

/// tensor_split at indices, which may repeat and run backwards: each output is the slice between two of them.
Lowered split_at(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const bool by_name = call.node.target != "aten.tensor_split.indices";
  const Sizes at = call.integers(1, "indices");
  std::size_t d = 0;
  if (!by_name) d = Call::dim(call.integer(2, "dim", 0), x.rank());
  if (call.node.target == "aten.hsplit.array") d = x.rank() == 1 ? 0 : 1;
  if (call.node.target == "aten.dsplit.array") d = 2;
  if (d >= x.sizes.size() || call.outputs() != at.size() + 1) throw MalformedNode{"as many pieces as indices, and one more"};
  for (std::size_t k = 0; k < call.outputs(); ++k) {
    const std::int64_t start = k == 0 ? 0 : Call::slice_bound(at[k - 1], x.sizes[d]);
    call.define(along(call.builder, x, d, start, 1, call.meta(k).sizes.at(d)), k);
  }
  return as_view();
}

/// hsplit, vsplit, dsplit into equal pieces.
template <int dim>
Lowered split_named(Call& call) {
  const Tensor x = call.tensor(0, "self");
  return split_along(call, x, dim == 1 && x.rank() == 1 ? 0 : dim);
}

/// atleast_1d and its relatives: of one tensor, or of each of a list.
Lowered at_least(Call& call) {
  const bool list = call.node.target.ends_with(".Sequence");
  const std::vector<Tensor> given = list ? call.tensors(0, "tensors") : std::vector<Tensor>{call.tensor(0, "self")};
  if (given.size() != call.outputs()) throw MalformedNode{"an output for each tensor is needed"};
  for (std::size_t k = 0; k < given.size(); ++k) call.define(call.builder.reshape(given[k], call.meta(k).sizes), k);
  return as_view();
}

/// meshgrid: tensor k varies along dimension k alone; "xy" swaps the first two dimensions.
Lowered meshgrid(Call& call) {
  const std::vector<Tensor> given = call.tensors(0, "tensors");
  const bool swapped = call.text(1, "indexing", "ij") == "xy" && given.size() > 1;
  if (given.size() != call.outputs()) throw MalformedNode{"an output for each tensor is needed"};
  for (std::size_t k = 0; k < given.size(); ++k) {
    const std::size_t d = swapped && k < 2 ? 1 - k : k;
    const Tensor line = call.builder.reshape(given[k], {given[k].rank() == 0 ? 1 : given[k].sizes[0]});
    call.define(call.builder.reindex(line, call.meta(k).sizes, [&](const Index& position) { return Index{position.at(d)}; }), k);
  }
  return as_view();
}

template <int dim>
Lowered flip_one(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (x.rank() <= dim) throw MalformedNode{"a flip of a dimension that is not there"};
  call.define(flipped(call.builder, x, {dim}));
  return as_view();
}

template <Family view>
Lowered copy_of(Call& call) {
  return copied_views(call, view);
}

}  // namespace

std::vector<Entry> view_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "view", f}); };
  for (std::string_view op : {"aten.view.default", "aten.reshape.default", "aten._unsafe_view.default", "aten.flatten.using_ints",
                              "aten.unflatten.int", "aten.view_as.default", "aten._reshape_alias.default",
                              "aten.reshape_as.default", "aten.ravel.default"})
    add(op, reshape);
  for (std::string_view op : {"aten.alias.default", "aten.detach.default", "aten.lift_fresh.default", "aten.detach_.default"})
    add(op, same);
  for (std::string_view op : {"aten.dropout.default", "aten.feature_dropout.default", "aten.alpha_dropout.default"}) add(op, dropout);
  add("aten._assert_tensor_metadata.default", assert_metadata);
  add("aten.permute.default", permute);
  for (std::string_view op : {"aten.transpose.int", "aten.swapaxes.default", "aten.swapdims.default"}) add(op, transpose);
  add("aten.t.default", t);
  for (std::string_view op : {"aten.mT.default", "aten.mH.default", "aten.adjoint.default", "aten.matrix_H.default"})
    add(op, matrix_transpose);
  add("aten.numpy_T.default", numpy_transpose);
  for (std::string_view op : {"aten.movedim.int", "aten.movedim.intlist", "aten.moveaxis.int", "aten.moveaxis.intlist"})
    add(op, movedim);
  for (std::string_view op : {"aten.expand.default", "aten.expand_as.default", "aten.broadcast_to.default"}) add(op, expand);
  add("aten.broadcast_tensors.default", broadcast_tensors);
  add("aten.unsqueeze.default", unsqueeze);
  for (std::string_view op : {"aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims"}) add(op, squeeze);
  add("aten.slice.Tensor", slice);
  add("aten.narrow.default", narrow);
  add("aten.select.int", select);
  for (std::string_view op : {"aten.split.Tensor", "aten.split_with_sizes.default", "aten.chunk.default", "aten.split.sizes",
                              "aten.unsafe_split.Tensor", "aten.unsafe_split_with_sizes.default", "aten.unsafe_chunk.default",
                              "aten.tensor_split.sections"})
    add(op, split);
  for (std::string_view op : {"aten.tensor_split.indices", "aten.hsplit.array", "aten.vsplit.array", "aten.dsplit.array"}) add(op, split_at);
  add("aten.vsplit.int", split_named<0>);
  add("aten.hsplit.int", split_named<1>);
  add("aten.dsplit.int", split_named<2>);
  for (std::string_view op : {"aten.atleast_1d.default", "aten.atleast_2d.default", "aten.atleast_3d.default", "aten.atleast_1d.Sequence",
                              "aten.atleast_2d.Sequence", "aten.atleast_3d.Sequence"})
    add(op, at_least);
  for (std::string_view op : {"aten.meshgrid.default", "aten.meshgrid.indexing"}) add(op, meshgrid);
  add("aten.flipud.default", flip_one<0>);
  add("aten.fliplr.default", flip_one<1>);
  for (std::string_view op : {"aten.view_copy.default", "aten._reshape_copy.default", "aten._reshape_alias_copy.default"}) add(op, copy_of<reshape>);
  for (std::string_view op : {"aten.alias_copy.default", "aten.detach_copy.default"}) add(op, copy_of<same>);
  add("aten.permute_copy.default", copy_of<permute>);
  add("aten.transpose_copy.int", copy_of<transpose>);
  add("aten.t_copy.default", copy_of<t>);
  add("aten.expand_copy.default", copy_of<expand>);
  add("aten.unsqueeze_copy.default", copy_of<unsqueeze>);
  for (std::string_view op : {"aten.squeeze_copy.default", "aten.squeeze_copy.dim", "aten.squeeze_copy.dims"}) add(op, copy_of<squeeze>);
  add("aten.slice_copy.Tensor", copy_of<slice>);
  add("aten.narrow_copy.default", copy_of<narrow>);
  add("aten.select_copy.int", copy_of<select>);
  for (std::string_view op : {"aten.split_copy.Tensor", "aten.split_with_sizes_copy.default"}) add(op, copy_of<split>);
  add("aten.unbind_copy.int", copy_of<unbind>);
  add("aten.diagonal_copy.default", copy_of<diagonal>);
  add("aten.unfold_copy.default", copy_of<unfold>);
  add("aten.unbind.int", unbind);
  add("aten.diagonal.default", diagonal);
  add("aten.unfold.default", unfold);
  add("aten.flip.default", flip);
  return rows;
}

}  // namespace pallascope::lower
