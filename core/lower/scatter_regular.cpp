// Family: scatters whose places follow from something else than a plain list of indices: a mask, a stride, a diagonal, the
// rows of an embedding.
#include <algorithm>

#include <fmt/format.h>

#include "core/lower/scatter.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;
using loop::StoreMode;

/// masked_scatter(self, mask, source): the k-th true element takes the k-th of the source.
Lowered masked_scatter(Call& call) {
  const Tensor self = call.tensor(0, "self");
  Tensor mask = call.tensor(1, "mask"), source = call.tensor(2, "source");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(self.dtype) || !is_kernel_dtype(source.dtype) || !is_bool(mask.dtype)) return declined_dtype();
  const std::int64_t count = element_count(source.sizes);
  source = call.builder.reshape(source, {count});
  mask = call.builder.expand(mask, meta.sizes);
  const Tensor places = places_of(call, mask);
  call.define(call.builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        const int here = nest.load(mask), old = nest.load(self), zero = nest.constant(std::int64_t{0}, DType::i64);
        const int place = nest.load(places);
        if (count == 0) {
          nest.symbol(nest.where(here, place, zero), 0, 0);
          return old;
        }
        const int at = nest.where(here, nest.sub(place, nest.constant(std::int64_t{1}, DType::i64)), zero);
        return nest.where(here, nest.load_at(source, {nest.symbol(at, 0, count - 1)}), old);
      },
      &meta));
  return as_kernel();
}

/// masked_scatter_backward(grad, mask, sizes): the gradients under the mask in front, zeros behind them.
Lowered masked_scatter_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_output");
  const trace::TensorMeta& meta = call.meta();
  Tensor mask = call.tensor(1, "mask");
  if (!is_kernel_dtype(grad.dtype) || !is_bool(mask.dtype)) return declined_dtype();
  mask = call.builder.expand(mask, grad.sizes);
  const std::int64_t count = meta.numel();
  const Tensor target = filled(call, "start", {count}, meta.dtype, 0);
  if (count == 0) return finish_scatter(call, target);
  const Tensor places = places_of(call, mask);
  const Points points{grad.sizes, [&](NestBuilder& nest) {
                        const int one = nest.constant(std::int64_t{1}, DType::i64);
                        const int place = nest.op(ComputeOp::maximum, nest.load(places), one);
                        return Index{nest.symbol(nest.sub(place, one), 0, count - 1)};
                      }};
  scatter_points(call, call.node.name, target, points, StoreMode::add, [&](NestBuilder& nest) {
    return nest.where(nest.load(mask), nest.load(grad), nest.constant(to_scalar(0, grad.dtype), grad.dtype));
  });
  return finish_scatter(call, target);
}

/// embedding_dense_backward(grad, indices, rows, padding_idx, scale_grad_by_freq): each gradient row is added to the row of
/// its index. As in PyTorch, the padding's row and rows that do not exist get nothing.
Lowered embedding_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_output"), indices = call.tensor(1, "indices");
  const trace::TensorMeta& meta = call.meta();
  const std::int64_t rows = call.integer(2, "num_weights"), padding = call.integer(3, "padding_idx", -1);
  const bool by_frequency = call.boolean(4, "scale_grad_by_freq");
  if (!is_kernel_dtype(grad.dtype) || !integer_index(indices)) return declined_dtype();
  if (grad.rank() != indices.rank() + 1 || meta.rank() != 2) throw MalformedNode{"gradients that are no rows"};
  const Tensor target = filled(call, "start", meta.sizes, meta.dtype, 0);
  if (meta.numel() == 0) return finish_scatter(call, target);
  // The row of a point, within range.
  const auto row = [&](NestBuilder& nest, const Index& at) {
    const int value = nest.load_at(indices, at);
    const DType d = nest.dtype(value);
    const int inside = nest.op(ComputeOp::minimum, nest.op(ComputeOp::maximum, value, nest.constant(std::int64_t{0}, d)),
                               nest.constant(rows - 1, d));
    return std::pair(value, nest.known_symbol(inside, 0, rows - 1));
  };
  const auto is_row = [&](NestBuilder& nest, int value, index::Expression at) {
    const int same = nest.compare(ComputeOp::eq, value, nest.index_value(at, nest.dtype(value)));
    if (padding < 0) return same;
    const int counted = nest.compare(ComputeOp::ne, value, nest.constant(padding, nest.dtype(value)));
    return nest.compute(ComputeOp::logical_and, DType::b8, {same, counted});
  };
  std::optional<Tensor> counts;
  if (by_frequency) {
    counts = filled(call, "counted", {rows}, DType::i64, 0);
    const Points points{indices.sizes, [&](NestBuilder& nest) { return Index{row(nest, nest.index()).second}; }};
    scatter_points(call, call.node.name + ".count", *counts, points, StoreMode::add, [&](NestBuilder& nest) {
      const auto [value, at] = row(nest, nest.index());
      return nest.cast(is_row(nest, value, at), DType::i64);
    });
  }
  const auto lead = [](NestBuilder& nest) { return Index(nest.index().begin(), nest.index().end() - 1); };
  const Points points{grad.sizes, [&](NestBuilder& nest) { return Index{row(nest, lead(nest)).second, nest.index().back()}; }};
  const DType c = compute_dtype(grad.dtype);
  scatter_points(call, call.node.name, target, points, StoreMode::add, [&](NestBuilder& nest) {
    const auto [value, at] = row(nest, lead(nest));
    int g = nest.load(grad);
    if (counts) {
      const int times = nest.cast(nest.load_at(*counts, {at}), c);
      g = nest.cast(nest.mul(nest.cast(g, c), nest.exact_div(nest.number(1, times), times)), grad.dtype);
    }
    return nest.where(is_row(nest, value, at), g, nest.constant(to_scalar(0, grad.dtype), grad.dtype));
  });
  return finish_scatter(call, target);
}

/// Where point (.., k) of a diagonal lies in a tensor of `rank` dimensions.
Index diagonal_position(Builder& builder, const Index& at, std::int64_t offset, std::size_t dim1, std::size_t dim2, std::size_t rank) {
  Index position;
  std::size_t next = 0;
  for (std::size_t k = 0; k < rank; ++k) {
    const std::int64_t moved = k == dim1 ? std::max<std::int64_t>(0, -offset) : std::max<std::int64_t>(0, offset);
    if (k == dim1 || k == dim2) {
      position.push_back(builder.context().add(at.back(), builder.context().constant(moved)));
    } else {
      position.push_back(at[next++]);
    }
  }
  return position;
}

Lowered put_on_diagonal(Call& call, const Tensor& target, const Tensor& source, std::size_t first_argument) {
  const std::int64_t rank = call.meta().rank(), offset = call.integer(first_argument, "offset");
  const std::size_t dim1 = Call::dim(call.integer(first_argument + 1, "dim1", 0), rank);
  const std::size_t dim2 = Call::dim(call.integer(first_argument + 2, "dim2", 1), rank);
  if (dim1 == dim2 || source.rank() + 1 != rank) throw MalformedNode{"a diagonal of another rank"};
  const std::int64_t down = std::max<std::int64_t>(0, -offset), right = std::max<std::int64_t>(0, offset);
  const std::int64_t length = source.sizes.back();
  if (length > 0 && (length + down > target.sizes[dim1] || length + right > target.sizes[dim2]))
    throw MalformedNode{"a diagonal that leaves its tensor"};
  const Points points{source.sizes, [&](NestBuilder& nest) {
                        return diagonal_position(call.builder, nest.index(), offset, dim1, dim2, target.sizes.size());
                      }};
  scatter_points(call, call.node.name, target, points, StoreMode::set, [&](NestBuilder& nest) { return nest.load(source); });
  return finish_scatter(call, target);
}

Lowered diagonal_scatter(Call& call) {
  const Tensor self = call.tensor(0, "self"), source = call.tensor(1, "src");
  if (!is_kernel_dtype(self.dtype) || !is_kernel_dtype(source.dtype)) return declined_dtype();
  if (std::optional<Lowered> left = leave_shared_elements(call)) return *left;
  return put_on_diagonal(call, kept(call, self, self.dtype), source, 2);
}

Lowered diagonal_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_output");
  if (!is_kernel_dtype(grad.dtype)) return declined_dtype();
  return put_on_diagonal(call, filled(call, "start", call.meta().sizes, call.meta().dtype, 0), grad, 2);
}

/// as_strided_scatter(self, src, size, stride, offset): places count in the memory of self.
Lowered as_strided_scatter(Call& call) {
  const Tensor self = call.tensor(0, "self"), source = call.tensor(1, "src");
  const Sizes sizes = call.integers(2, "size"), strides = call.integers(3, "stride");
  const auto* value = call.argument(0, "self")->get<trace::ValueId>();
  const trace::TensorMeta& own = *call.builder.graph().values[*value].tensor;
  if (!is_kernel_dtype(self.dtype) || !is_kernel_dtype(source.dtype)) return declined_dtype();
  if (own.storage_offset != 0 || own.strides != trace::contiguous_strides(own.sizes) || call.meta().strides != own.strides)
    return declined("as_strided_scatter into something that is not contiguous from its memory's first element");
  const std::int64_t offset = call.has(4, "storage_offset") ? call.integer(4, "storage_offset") : 0;
  const std::int64_t count = element_count(self.sizes);
  std::int64_t last = offset;
  for (std::size_t k = 0; k < sizes.size(); ++k) last += (sizes[k] - 1) * strides.at(k);
  if (source.sizes != sizes || (element_count(sizes) > 0 && (offset < 0 || last >= count)))
    throw MalformedNode{"a region that leaves its tensor"};
  const Tensor target = kept(call, self, self.dtype);
  const Points points{sizes, [&](NestBuilder& nest) {
                        index::Context& context = call.builder.context();
                        return Index{context.add(context.linear(nest.index(), strides), context.constant(offset))};
                      }};
  scatter_points(call, call.node.name, call.builder.reshape(target, {count}), points, StoreMode::set,
                 [&](NestBuilder& nest) { return nest.load(source); });
  return finish_scatter(call, target);
}

/// unfold_backward(grad, sizes, dim, size, step): element k of window w was element w * step + k.
Lowered unfold_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_in");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(grad.dtype)) return declined_dtype();
  const std::size_t d = Call::dim(call.integer(2, "dim"), meta.rank());
  const std::int64_t step = call.integer(4, "step");
  const Tensor target = filled(call, "start", meta.sizes, meta.dtype, 0);
  const Points points{grad.sizes, [&](NestBuilder& nest) {
                        index::Context& context = call.builder.context();
                        Index position(nest.index().begin(), nest.index().end() - 1);
                        if (meta.rank() == 0) return Index{nest.index().back()};
                        position.at(d) = context.add(context.multiply(position.at(d), step), nest.index().back());
                        return position;
                      }};
  scatter_points(call, call.node.name, target, points, StoreMode::add, [&](NestBuilder& nest) { return nest.load(grad); });
  return finish_scatter(call, target);
}

/// max_unpool(x, indices, ..): each element goes to the place in its plane that the pooling gave; the last of equal
/// places wins.
template <std::int64_t spatial>
Lowered max_unpool(Call& call) {
  const Tensor x = call.tensor(0, "self"), indices = call.tensor(1, "indices");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype)) return declined_dtype();
  if (element_count(x.sizes) == 0 || element_count(meta.sizes) == 0) return declined("a max_unpool of nothing");
  const auto planes = static_cast<std::size_t>(meta.rank() - spatial);
  Sizes flat(meta.sizes.begin(), meta.sizes.begin() + static_cast<std::ptrdiff_t>(planes));
  flat.push_back(element_count(Sizes(meta.sizes.begin() + static_cast<std::ptrdiff_t>(planes), meta.sizes.end())));
  const Tensor target = filled(call, "start", meta.sizes, meta.dtype, 0);
  const Points points{x.sizes, [&](NestBuilder& nest) {
                        Index position(nest.index().begin(), nest.index().begin() + static_cast<std::ptrdiff_t>(planes));
                        position.push_back(nest.symbol(nest.load(indices), 0, flat.back() - 1));
                        return position;
                      }};
  scatter_points(call, call.node.name, call.builder.reshape(target, flat), points, StoreMode::set,
                 [&](NestBuilder& nest) { return nest.load(x); });
  return finish_scatter(call, target);
}

}  // namespace

std::vector<Entry> regular_scatter_entries() {
  return {{"aten.masked_scatter.default", "scatter", masked_scatter},
          {"aten.masked_scatter_backward.default", "scatter", masked_scatter_backward},
          {"aten.embedding_dense_backward.default", "scatter", embedding_backward},
          {"aten.diagonal_scatter.default", "scatter", diagonal_scatter},
          {"aten.diagonal_backward.default", "scatter", diagonal_backward},
          {"aten.as_strided_scatter.default", "scatter", as_strided_scatter},
          {"aten.unfold_backward.default", "scatter", unfold_backward},
          {"aten.max_unpool2d.default", "scatter", max_unpool<2>},
          {"aten.max_unpool3d.default", "scatter", max_unpool<3>}};
}

}  // namespace pallascope::lower
