// Family: views. Each is an index map: no nest, no bytes.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "core/lower/builder.h"

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

/// split, chunk: each output takes the next piece.
Lowered split(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const std::size_t d = Call::dim(call.integer(2, "dim", 0), x.rank());
  std::int64_t start = 0;
  for (std::size_t k = 0; k < call.outputs(); ++k) {
    if (!call.wanted(k)) return declined("an output without a meta");
    const std::int64_t count = call.meta(k).sizes.at(d);
    call.define(along(call.builder, x, d, start, 1, count), k);
    start += count;
  }
  return as_view();
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
  if (a == b || length > x.sizes[a] - std::max<std::int64_t>(0, -offset) || length > x.sizes[b] - std::max<std::int64_t>(0, offset))
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

Lowered flip(Call& call) {
  const Tensor x = call.tensor(0, "self");
  std::vector<bool> flipped(x.sizes.size(), false);
  for (std::int64_t d : call.integers(1, "dims")) flipped[Call::dim(d, x.rank())] = true;
  call.define(call.builder.reindex(x, x.sizes, [&](const Index& position) {
    index::Context& context = call.builder.context();
    Index source = position;
    for (std::size_t d = 0; d < source.size(); ++d)
      if (flipped[d]) source[d] = context.subtract(context.constant(x.sizes[d] - 1), position[d]);
    return source;
  }));
  return as_view();
}

/// as_strided speaks of storage: it is an index map only where the buffer is laid out as eager's storage is.
Lowered as_strided(Call& call) {
  const trace::ValueId source = *call.argument(0, "self")->get<trace::ValueId>();
  const trace::TensorMeta& meta = *call.builder.graph().values[source].tensor;
  const Tensor x = call.tensor(0, "self");
  const loop::Buffer& buffer = call.builder.program().buffers[x.view.buffer];
  const std::optional<loop::AffineView> known = loop::affine(call.builder.context(), x.view);
  if (!known) return declined("as_strided of a value whose storage is not laid out as eager's");
  std::int64_t base = 0;  // storage offset of the buffer's first element
  if (buffer.input_index >= 0) {
    if (call.builder.program().input_layouts[static_cast<std::size_t>(buffer.input_index)].copied)
      return declined("as_strided of an input that is not dense");
    const trace::ValueId input = call.builder.graph().inputs[static_cast<std::size_t>(buffer.input_index)].value;
    base = call.builder.graph().values[input].tensor->storage_offset;
  }
  for (std::size_t k = 0; k < meta.sizes.size(); ++k)
    if (meta.sizes[k] > 1 && known->strides[k] != meta.strides[k])
      return declined("as_strided of a value whose storage is not laid out as eager's");
  if (known->offset != meta.storage_offset - base)
    return declined("as_strided of a value whose storage is not laid out as eager's");

  const Sizes sizes = call.integers(1, "size"), strides = call.integers(2, "stride");
  const std::int64_t offset = (call.has(3, "storage_offset") ? call.integer(3, "storage_offset") : meta.storage_offset) - base;
  if (sizes.size() != strides.size()) throw MalformedNode{"as many strides as sizes are needed"};
  std::int64_t last = offset;
  bool empty = false;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    empty = empty || sizes[k] == 0;
    last += (sizes[k] - 1) * strides[k];
  }
  const bool outside = !empty && (offset < 0 || last >= buffer.numel());
  // An argument may be part of a larger storage, which only PyTorch knows; what the graph made has no more than itself.
  if (outside && buffer.input_index < 0 && known->offset == 0) {
    Lowered bad = declined("");
    bad.diagnostic = Diagnostic{DiagnosticKind::storage_bounds,
                                fmt::format("{} reaches element {} of a storage of {}", call.node.target, offset < 0 ? offset : last,
                                            buffer.numel()),
                                call.node.name, "sizes, strides and an offset that stay within the tensor's storage"};
    return bad;
  }
  if (outside)
    return declined("as_strided reaches elements of the storage outside of the value");
  Tensor result;
  result.dtype = x.dtype;
  result.sizes = sizes;
  result.view.buffer = x.view.buffer;
  Index terms;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    result.view.axes.push_back(call.builder.context().add_axis(fmt::format("d{}", k), sizes[k]));
    terms.push_back(call.builder.context().of(result.view.axes.back()));
  }
  result.view.index = call.builder.context().linear(terms, strides, offset);
  call.define(result);
  return as_view();
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
  add("aten.mT.default", matrix_transpose);
  add("aten.numpy_T.default", numpy_transpose);
  for (std::string_view op : {"aten.movedim.int", "aten.movedim.intlist", "aten.moveaxis.int", "aten.moveaxis.intlist"})
    add(op, movedim);
  for (std::string_view op : {"aten.expand.default", "aten.expand_as.default", "aten.broadcast_to.default"}) add(op, expand);
  add("aten.unsqueeze.default", unsqueeze);
  for (std::string_view op : {"aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims"}) add(op, squeeze);
  add("aten.slice.Tensor", slice);
  add("aten.narrow.default", narrow);
  add("aten.select.int", select);
  for (std::string_view op : {"aten.split.Tensor", "aten.split_with_sizes.default", "aten.chunk.default", "aten.split.sizes"})
    add(op, split);
  add("aten.unbind.int", unbind);
  add("aten.diagonal.default", diagonal);
  add("aten.unfold.default", unfold);
  add("aten.flip.default", flip);
  add("aten.as_strided.default", as_strided);
  return rows;
}

}  // namespace pallascope::lower
