// Family: operators that lay pieces side by side. Each piece is a nest of its own that stores into a region of one
// buffer, so that kernels write slices of a ref and never mask out-of-range loads.
#include <algorithm>

#include <fmt/format.h>

#include "core/lower/builder.h"

namespace pallascope::lower {
namespace {

/// Where the elements of a piece go: `start + step * i` along each dimension of the result.
struct Region {
  Sizes start, step, count;
};

Region whole(const Sizes& sizes) { return {Sizes(sizes.size(), 0), Sizes(sizes.size(), 1), sizes}; }

bool empty(const Region& region) {
  return std::any_of(region.count.begin(), region.count.end(), [](std::int64_t n) { return n <= 0; });
}

/// A buffer that several nests fill, laid out as eager's result: dimension k of it is logical dimension order[k].
struct Target {
  loop::BufferId buffer;
  std::vector<std::size_t> order;
};

Target target_like(Builder& builder, const trace::TensorMeta& meta) {
  Target target;
  target.order = memory_order(meta);
  Sizes dims;
  for (std::size_t d : target.order) dims.push_back(meta.sizes[d]);
  target.buffer = builder.add_buffer(meta.dtype, std::move(dims));
  return target;
}

/// The whole of it, as a tensor of the logical sizes.
Tensor filled(Builder& builder, const Target& target, const Sizes& sizes) {
  Sizes dims;
  std::vector<std::size_t> inverse(sizes.size());
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    dims.push_back(sizes[target.order[k]]);
    inverse[target.order[k]] = k;
  }
  const Tensor whole = builder.row_major(target.buffer, dims);
  return std::is_sorted(target.order.begin(), target.order.end()) ? whole : builder.permute(whole, inverse);
}

/// A nest over `region` that stores `body` there. `body` gets the position in the result.
void fill(Builder& builder, std::string name, const Target& target, const Region& region,
          const std::function<int(NestBuilder&, const Index&)>& body) {
  if (empty(region)) return;
  NestBuilder nest(builder, std::move(name), region.count, {}, target.order);
  Index position;
  for (std::size_t d = 0; d < region.count.size(); ++d)
    position.push_back(builder.context().add(builder.context().multiply(nest.index(d), region.step[d]),
                                             builder.context().constant(region.start[d])));
  const Sizes dims = builder.program().buffers[target.buffer].dims;
  const DType dtype = builder.program().buffers[target.buffer].dtype;
  const int value = nest.cast(body(nest, position), dtype);
  Index where;
  for (std::size_t d : target.order) where.push_back(position[d]);
  nest.store_into(target.buffer, loop::flatten(builder.context(), where, dims), value);
}

Lowered cat(Call& call) {
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype)) return declined_dtype();
  std::vector<Tensor> pieces = call.tensors(0, "tensors");
  const bool stack = call.node.target == "aten.stack.default";
  const std::size_t d = Call::dim(call.integer(1, "dim", 0), meta.rank());
  if (meta.rank() == 0) throw MalformedNode{"a concatenation of rank 0"};
  const Target target = target_like(call.builder, meta);
  std::int64_t start = 0;
  for (Tensor piece : pieces) {
    if (!is_kernel_dtype(piece.dtype)) return declined_dtype();
    // torch.cat takes a legacy empty tensor of rank 1 among pieces of any rank.
    if (!stack && piece.rank() == 1 && piece.sizes[0] == 0 && meta.rank() != 1) continue;
    if (stack) {
      Sizes sizes = piece.sizes;
      sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(d), 1);
      piece = call.builder.reshape(piece, sizes);
    }
    Region region = whole(piece.sizes);
    for (std::size_t k = 0; k < meta.sizes.size(); ++k)
      if (piece.rank() != meta.rank() || (k != d && piece.sizes[k] != meta.sizes[k]))
        throw MalformedNode{"pieces that do not fit beside each other"};
    region.start[d] = start;
    start += piece.sizes[d];
    if (start > meta.sizes[d]) throw MalformedNode{"pieces longer than their concatenation"};
    fill(call.builder, call.node.name, target, region,
         [&](NestBuilder& nest, const Index&) { return nest.load_at(piece, nest.index()); });
  }
  if (start != meta.sizes[d] && meta.numel() > 0) throw MalformedNode{"pieces shorter than their concatenation"};
  call.define(filled(call.builder, target, meta.sizes));
  return as_kernel();
}

/// Puts `source` at start, start + step, ... of `dim` in a copy of `base` (or in zeros).
void scatter_slice(Call& call, const std::optional<Tensor>& base, const Tensor& source, std::size_t d, std::int64_t start,
                   std::int64_t step, std::int64_t count) {
  const trace::TensorMeta& meta = call.meta();
  Builder& builder = call.builder;
  const Target target = target_like(builder, meta);
  const auto keep = [&](std::int64_t from, std::int64_t by, std::int64_t n) {
    Region region = whole(meta.sizes);
    region.start[d] = from;
    region.step[d] = by;
    region.count[d] = n;
    fill(builder, call.node.name + ".kept", target, region, [&](NestBuilder& nest, const Index& position) {
      return base ? nest.load_at(*base, position) : nest.constant(to_scalar(0, meta.dtype), meta.dtype);
    });
  };
  if (count <= 0) {
    keep(0, 1, meta.sizes[d]);
    call.define(filled(builder, target, meta.sizes));
    return;
  }
  const std::int64_t last = start + (count - 1) * step;
  if (start < 0 || step < 1 || last >= meta.sizes.at(d) || source.rank() != meta.rank())
    throw MalformedNode{"a region that leaves its tensor"};
  keep(0, 1, start);
  // Between the written elements the other residues of the step stay.
  for (std::int64_t r = 1; r < step; ++r) keep(start + r, step, count - 1);
  keep(last + 1, 1, meta.sizes[d] - last - 1);
  Region region = whole(meta.sizes);
  region.start[d] = start;
  region.step[d] = step;
  region.count[d] = count;
  fill(builder, call.node.name, target, region, [&](NestBuilder& nest, const Index&) {
    return nest.cast(nest.load_at(source, nest.index()), meta.dtype);
  });
  call.define(filled(builder, target, meta.sizes));
}

/// Elements of start : end : step within an axis.
std::int64_t slice_count(std::int64_t start, std::int64_t end, std::int64_t step) {
  return end <= start ? 0 : (end - start + step - 1) / step;
}

Lowered slice_scatter(Call& call) {
  if (!is_kernel_dtype(call.meta().dtype)) return declined_dtype();
  const Tensor base = call.tensor(0, "self");
  const std::size_t d = Call::dim(call.integer(2, "dim", 0), base.rank());
  const std::int64_t extent = base.sizes[d], step = call.integer(5, "step", 1);
  const std::int64_t start = call.has(3, "start") ? Call::slice_bound(call.integer(3, "start"), extent) : 0;
  const std::int64_t end = call.has(4, "end") ? Call::slice_bound(call.integer(4, "end"), extent) : extent;
  Tensor source = call.tensor(1, "src");
  Sizes sizes = base.sizes;
  sizes[d] = slice_count(start, end, step);
  source = call.builder.expand(source, sizes);
  scatter_slice(call, base, source, d, start, step, sizes[d]);
  return as_kernel();
}

Lowered select_scatter(Call& call) {
  if (!is_kernel_dtype(call.meta().dtype)) return declined_dtype();
  const Tensor base = call.tensor(0, "self");
  const std::size_t d = Call::dim(call.integer(2, "dim"), base.rank());
  std::int64_t at = call.integer(3, "index");
  if (at < 0) at += base.sizes[d];
  Sizes sizes = base.sizes;
  sizes[d] = 1;
  scatter_slice(call, base, call.builder.reshape(call.tensor(1, "src"), sizes), d, at, 1, 1);
  return as_kernel();
}

Lowered slice_backward(Call& call) {
  if (!is_kernel_dtype(call.meta().dtype)) return declined_dtype();
  const Tensor grad = call.tensor(0, "grad_output");
  const std::size_t d = Call::dim(call.integer(2, "dim"), grad.rank());
  const std::int64_t extent = call.meta().sizes[d], step = call.integer(5, "step", 1);
  const std::int64_t start = Call::slice_bound(call.integer(3, "start"), extent);
  scatter_slice(call, std::nullopt, grad, d, start, step, grad.sizes[d]);
  return as_kernel();
}

Lowered select_backward(Call& call) {
  if (!is_kernel_dtype(call.meta().dtype)) return declined_dtype();
  const std::size_t d = Call::dim(call.integer(2, "dim"), call.meta().rank());
  std::int64_t at = call.integer(3, "index");
  Sizes sizes = call.meta().sizes;
  if (at < 0) at += sizes[d];
  sizes[d] = 1;
  scatter_slice(call, std::nullopt, call.builder.reshape(call.tensor(0, "grad_output"), sizes), d, at, 1, 1);
  return as_kernel();
}

/// Pads (or, with a negative count, cuts) from the last dimension backwards.
Lowered constant_pad(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype)) return declined_dtype();
  const bool composite = call.node.target == "aten.pad.default";  // (self, pad, mode, value)
  if (composite && call.text(2, "mode", "constant") != "constant")
    return declined("padding by " + call.text(2, "mode", "constant"));
  const Sizes pads = call.integers(1, "pad");
  if (meta.rank() != x.rank() || pads.size() > 2 * x.sizes.size()) throw MalformedNode{"more pads than dimensions"};
  const loop::Scalar value = to_scalar(call.number(composite ? 3 : 2, "value", 0), meta.dtype);
  Builder& builder = call.builder;
  const Target target = target_like(builder, meta);
  Sizes before(x.sizes.size(), 0);
  for (std::size_t k = 0; 2 * k + 1 < pads.size(); ++k) before[x.sizes.size() - 1 - k] = pads[2 * k];
  // `inner` is where elements of x land; dimension by dimension the slabs beside it are filled.
  Region inner = whole(meta.sizes);
  for (std::size_t d = 0; d < x.sizes.size(); ++d) {
    const std::int64_t from = std::clamp<std::int64_t>(before[d], 0, meta.sizes[d]);
    const std::int64_t to = std::clamp<std::int64_t>(before[d] + x.sizes[d], from, meta.sizes[d]);
    for (const auto& [start, end] : {std::pair{std::int64_t{0}, from}, std::pair{to, meta.sizes[d]}}) {
      Region slab = inner;
      slab.start[d] = start;
      slab.count[d] = end - start;
      fill(builder, call.node.name + ".pad", target, slab,
           [&](NestBuilder& nest, const Index&) { return nest.constant(value, meta.dtype); });
    }
    inner.start[d] = from;
    inner.count[d] = to - from;
  }
  fill(builder, call.node.name, target, inner, [&](NestBuilder& nest, const Index& position) {
    Index source;
    for (std::size_t d = 0; d < x.sizes.size(); ++d)
      source.push_back(builder.context().subtract(position[d], builder.context().constant(before[d])));
    return nest.load_at(x, source);
  });
  call.define(filled(builder, target, meta.sizes));
  return as_kernel();
}

/// repeat: a nest over (repeat, extent) pairs, so that every index stays affine.
Lowered repeat(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype)) return declined_dtype();
  if (meta.rank() < x.rank()) throw MalformedNode{"a repetition of lower rank"};
  const std::size_t extra = meta.sizes.size() - x.sizes.size();
  Sizes pairs;
  for (std::size_t d = 0; d < meta.sizes.size(); ++d) {
    const std::int64_t extent = d < extra ? 1 : x.sizes[d - extra];
    pairs.push_back(extent == 0 ? 0 : meta.sizes[d] / std::max<std::int64_t>(1, extent));
    pairs.push_back(extent);
  }
  const Tensor repeated = call.builder.pointwise(call.node.name, pairs, meta.dtype, [&](NestBuilder& nest) {
    Index source;
    for (std::size_t d = extra; d < meta.sizes.size(); ++d) source.push_back(nest.index(2 * d + 1));
    return nest.load_at(x, source);
  });
  call.define(call.builder.row_major(repeated.view.buffer, meta.sizes));
  return as_kernel();
}

}  // namespace

std::vector<Entry> shape_entries() {
  return {{"aten.cat.default", "shape", cat},
          {"aten.stack.default", "shape", cat},
          {"aten.concat.default", "shape", cat},
          {"aten.slice_scatter.default", "shape", slice_scatter},
          {"aten.select_scatter.default", "shape", select_scatter},
          {"aten.slice_backward.default", "shape", slice_backward},
          {"aten.select_backward.default", "shape", select_backward},
          {"aten.constant_pad_nd.default", "shape", constant_pad},
          {"aten.pad.default", "shape", constant_pad},
          {"aten.repeat.default", "shape", repeat}};
}

}  // namespace pallascope::lower
