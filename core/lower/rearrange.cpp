// Family: the elements of tensors in another order or several times (roll, shuffles, repetitions, stacks), and matrices
// built from diagonals and blocks.
#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "core/lower/builder.h"
#include "core/lower/regions.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;
using loop::ReduceOp;

/// Stores `value` in the memory order of the result.
Lowered copied(Call& call, const Tensor& value) {
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype) || !is_kernel_dtype(value.dtype)) return declined_dtype();
  call.define(call.builder.pointwise(
      call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) { return nest.load(value); }, &meta));
  return as_kernel();
}

/// roll: two runs a dimension.
Lowered roll(Call& call) {
  Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype)) return declined_dtype();
  const Sizes shifts = call.integers(1, "shifts"), dims = call.integers(2, "dims");
  const bool flat = dims.empty();
  std::vector<std::size_t> order = memory_order(meta);
  if (flat) {
    x = call.builder.reshape(x, {meta.numel()});
    order.clear();
  }
  if (shifts.size() != (flat ? 1 : dims.size())) throw MalformedNode{"as many shifts as dimensions are needed"};
  Sizes by(x.sizes.size(), 0);
  for (std::size_t k = 0; k < shifts.size(); ++k)
    if (x.rank() > 0) by[flat ? 0 : Call::dim(dims[k], x.rank())] += shifts[k];
  std::vector<std::vector<Piece>> pieces;
  for (std::size_t d = 0; d < x.sizes.size(); ++d) {
    const std::int64_t extent = x.sizes[d], start = extent == 0 ? 0 : ((by[d] % extent) + extent) % extent;
    if (start == 0) {
      pieces.push_back(unchanged(extent));
    } else {
      pieces.push_back({{0, 1, start, {extent - start}, {1}}, {start, 1, extent - start, {0}, {1}}});
    }
  }
  call.define(call.builder.reshape(rearranged(call.builder, call.node.name, x, x.sizes, pieces, order), meta.sizes));
  return as_kernel();
}

/// rot90(x, k, dims): the index map of the turned dimensions.
Lowered rot90(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const std::int64_t turns = ((call.integer(1, "k", 1) % 4) + 4) % 4;
  Sizes dims = call.integers(2, "dims");
  if (dims.empty()) dims = {0, 1};
  if (dims.size() != 2 || x.rank() < 2) throw MalformedNode{"a rotation needs two dimensions"};
  const std::size_t a = Call::dim(dims[0], x.rank()), b = Call::dim(dims[1], x.rank());
  return copied(call, call.builder.reindex(x, call.meta().sizes, [&](const Index& position) {
    index::Context& context = call.builder.context();
    const auto from_end = [&](index::Expression e, std::size_t d) { return context.subtract(context.constant(x.sizes[d] - 1), e); };
    Index source = position;
    if (turns == 1) source[a] = position[b], source[b] = from_end(position[a], b);
    if (turns == 2) source[a] = from_end(position[a], a), source[b] = from_end(position[b], b);
    if (turns == 3) source[a] = from_end(position[b], a), source[b] = position[a];
    return source;
  }));
}

/// A tensor whose elements come `inner` times each along every dimension, the whole of it `outer` times. One axis pair a
/// dimension keeps every index affine.
Tensor repeated(Call& call, const Tensor& x, const Sizes& outer, const Sizes& inner, const Sizes& sizes, DType dtype) {
  Sizes axes;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    axes.push_back(outer[d]);
    axes.push_back(x.sizes[d]);
    axes.push_back(inner[d]);
  }
  const Tensor made = call.builder.pointwise(call.node.name, axes, dtype, [&](NestBuilder& nest) {
    Index source;
    for (std::size_t d = 0; d < sizes.size(); ++d) source.push_back(nest.index(3 * d + 1));
    return nest.load_at(x, source);
  });
  return call.builder.row_major(made.view.buffer, sizes);
}

/// repeat and tile
Lowered repeat(Call& call) {
  Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype)) return declined_dtype();
  if (meta.rank() < x.rank()) throw MalformedNode{"a repetition of lower rank"};
  Sizes sizes = x.sizes, outer;
  sizes.insert(sizes.begin(), meta.sizes.size() - x.sizes.size(), 1);
  x = call.builder.reshape(x, sizes);
  for (std::size_t d = 0; d < sizes.size(); ++d) outer.push_back(sizes[d] == 0 ? 0 : meta.sizes[d] / sizes[d]);
  call.define(repeated(call, x, outer, Sizes(sizes.size(), 1), meta.sizes, meta.dtype));
  return as_kernel();
}

/// repeat_interleave(x, repeats, dim)
Lowered repeat_interleave(Call& call) {
  Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype)) return declined_dtype();
  std::int64_t elements = 1;
  for (std::int64_t n : x.sizes) elements *= n;
  if (!call.has(2, "dim")) x = call.builder.reshape(x, {elements});
  if (x.rank() != meta.rank()) return declined("repeat_interleave of rank 0");
  Sizes inner(x.sizes.size(), 1);
  inner[call.has(2, "dim") ? Call::dim(call.integer(2, "dim"), x.rank()) : 0] = call.integer(1, "repeats");
  call.define(repeated(call, x, Sizes(x.sizes.size(), 1), inner, meta.sizes, meta.dtype));
  return as_kernel();
}

/// repeat_interleave of counts that are data. Element j comes from the source whose counts, summed up, exceed j first:
/// a count over all sources, which is quadratic and so held to moderate sizes.
Lowered repeat_by_counts(Call& call) {
  const bool counts_only = call.node.target == "aten.repeat_interleave.Tensor";
  Tensor counts = call.tensor(counts_only ? 0 : 1, "repeats");
  const trace::TensorMeta& meta = call.meta();
  if ((counts.dtype != DType::i64 && counts.dtype != DType::i32) || counts.rank() > 1) return declined_dtype();
  Builder& builder = call.builder;
  std::optional<Tensor> x;
  std::size_t d = 0;
  if (!counts_only) {
    x = call.tensor(0, "self");
    if (!is_kernel_dtype(x->dtype)) return declined_dtype();
    if (!call.has(2, "dim")) x = builder.reshape(*x, {numel(x->sizes)});
    if (x->rank() == 0) return declined("repeat_interleave of rank 0");
    d = call.has(2, "dim") ? Call::dim(call.integer(2, "dim"), x->rank()) : 0;
    if (counts.rank() == 0 || counts.sizes[0] == 1)
      counts = builder.expand(counts, {x->sizes[d]});
    if (counts.sizes[0] != x->sizes[d]) throw MalformedNode{"as many counts as elements are needed"};
  }
  if (counts.rank() != 1) return declined("repeat_interleave of a single count");
  const std::int64_t n = counts.sizes[0], total = meta.sizes.at(d);
  constexpr std::int64_t kMostPoints = std::int64_t{1} << 24;
  if (n == 0 || total == 0) return declined("repeat_interleave without elements");
  if (n > kMostPoints / std::max(n, total)) return declined("repeat_interleave by data of so many elements");
  // Ends of the sources' runs.
  const Tensor ends = builder.reduction(
      call.node.name + ".ends", {n, n}, {1}, ReduceOp::sum, DType::i64, DType::i64, false, [&](NestBuilder& nest) {
        const int count = nest.cast(nest.load_at(counts, {nest.index(1)}), DType::i64);
        nest.symbol(count, 0, total);
        const int before = nest.compare(ComputeOp::le, nest.index_value(nest.index(1), DType::i32), nest.index_value(nest.index(0), DType::i32));
        return nest.where(before, count, nest.constant(std::int64_t{0}, DType::i64));
      });
  const Tensor all = builder.pointwise(call.node.name + ".total", {1}, DType::i64, [&](NestBuilder& nest) {
    const int end = nest.load_at(ends, {builder.context().constant(n - 1)});
    nest.symbol(end, total, total);
    return end;
  });
  const Tensor sources = builder.reduction(
      call.node.name + ".sources", {total, n}, {1}, ReduceOp::sum, DType::i64, counts_only ? meta.dtype : DType::i64, false,
      [&](NestBuilder& nest) {
        const int reached = nest.index_value(nest.index(0), DType::i64);
        // The total is read so that its check runs before the elements are used.
        const int end = nest.op(ComputeOp::minimum, nest.load_at(ends, {nest.index(1)}), nest.load_at(all, {builder.context().constant(0)}));
        return nest.cast(nest.compare(ComputeOp::le, end, reached), DType::i64);
      });
  if (counts_only) {
    call.define(sources);
    return as_kernel();
  }
  call.define(builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        Index at = nest.index();
        at[d] = nest.symbol(nest.load_at(sources, {nest.index(d)}), 0, n - 1);
        return nest.load_at(*x, at);
      },
      &meta));
  return as_kernel();
}

// ------------------------------------------------------------------------------------------------- shuffles

Tensor grouped(Builder& builder, const Tensor& x, const Sizes& split, const std::vector<std::size_t>& order, const Sizes& result) {
  return builder.reshape(builder.permute(builder.reshape(x, split), order), result);
}

/// `x` with its last three dimensions as the five `parts`, these in `order`, copied as the result.
Lowered regrouped(Call& call, const Tensor& x, const std::array<std::int64_t, 5>& parts, const std::array<std::size_t, 5>& order) {
  const std::size_t lead = x.sizes.size() - 3;
  Sizes split(x.sizes.begin(), x.sizes.begin() + static_cast<std::ptrdiff_t>(lead));
  split.insert(split.end(), parts.begin(), parts.end());
  std::vector<std::size_t> whole_order(lead);
  std::iota(whole_order.begin(), whole_order.end(), 0);
  for (std::size_t k : order) whole_order.push_back(lead + k);
  return copied(call, grouped(call.builder, x, split, whole_order, call.meta().sizes));
}

/// pixel_shuffle: [.., C*r*r, H, W] -> [.., C, H*r, W*r]
Lowered pixel_shuffle(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const std::int64_t r = call.integer(1, "upscale_factor");
  if (x.rank() < 3 || r < 1 || x.sizes[x.sizes.size() - 3] % (r * r) != 0) throw MalformedNode{"channels that do not divide"};
  const std::size_t c = x.sizes.size() - 3;
  return regrouped(call, x, {x.sizes[c] / (r * r), r, r, x.sizes[c + 1], x.sizes[c + 2]}, {0, 3, 1, 4, 2});
}

Lowered pixel_unshuffle(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const std::int64_t r = call.integer(1, "downscale_factor");
  if (x.rank() < 3 || r < 1 || x.sizes.back() % r != 0 || x.sizes[x.sizes.size() - 2] % r != 0) throw MalformedNode{"extents that do not divide"};
  const std::size_t c = x.sizes.size() - 3;
  return regrouped(call, x, {x.sizes[c], x.sizes[c + 1] / r, r, x.sizes[c + 2] / r, r}, {0, 2, 4, 1, 3});
}

Lowered channel_shuffle(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const std::int64_t groups = call.integer(1, "groups");
  if (x.rank() < 2 || groups < 1 || x.sizes[1] % groups != 0) throw MalformedNode{"channels that do not divide"};
  Sizes split = {x.sizes[0], groups, x.sizes[1] / groups};
  split.insert(split.end(), x.sizes.begin() + 2, x.sizes.end());
  std::vector<std::size_t> order(split.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[1], order[2]);
  return copied(call, grouped(call.builder, x, split, order, x.sizes));
}

// ------------------------------------------------------------------------------------- diagonals and blocks

/// Matrices over dimensions `a` and `b` of the result with `x` (its last dimension) on diagonal `offset`.
Lowered embed_diagonal(Call& call, const Tensor& x, std::int64_t offset, std::int64_t dim1, std::int64_t dim2) {
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype)) return declined_dtype();
  const std::size_t a = Call::dim(dim1, meta.rank()), b = Call::dim(dim2, meta.rank());
  if (x.rank() < 1 || meta.rank() != x.rank() + 1 || a == b || meta.sizes[a] != x.sizes.back() + std::abs(offset) || meta.sizes[b] != meta.sizes[a])
    throw MalformedNode{"a diagonal that does not fit its matrix"};
  Builder& builder = call.builder;
  // Every row has an element, so that none is read from outside of x.
  Sizes before(x.sizes.size(), 0), sizes = x.sizes;
  before.back() = std::max<std::int64_t>(0, -offset);
  sizes.back() = meta.sizes[a];
  const Tensor rows = offset == 0 ? x : padded(builder, call.node.name, x, before, sizes, to_scalar(0, x.dtype));
  call.define(builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        index::Context& context = builder.context();
        Index at;
        for (std::size_t d = 0; d < meta.sizes.size(); ++d)
          if (d != a && d != b) at.push_back(nest.index(d));
        at.push_back(nest.index(a));
        const int hit = nest.compare(ComputeOp::eq, nest.index_value(context.add(nest.index(a), context.constant(offset)), DType::i32),
                                     nest.index_value(nest.index(b), DType::i32));
        return nest.where(hit, nest.load_at(rows, at), nest.constant(to_scalar(0, meta.dtype), meta.dtype));
      },
      &meta));
  return as_kernel();
}

Lowered diag_embed(Call& call) {
  return embed_diagonal(call, call.tensor(0, "self"), call.integer(1, "offset", 0), call.integer(2, "dim1", -2), call.integer(3, "dim2", -1));
}

Tensor diagonal_of(Builder& builder, const Tensor& x, std::int64_t offset, std::int64_t length) {
  return builder.reindex(x, {length}, [&](const Index& i) {
    index::Context& context = builder.context();
    return Index{context.add(i[0], context.constant(std::max<std::int64_t>(0, -offset))),
                 context.add(i[0], context.constant(std::max<std::int64_t>(0, offset)))};
  });
}

Lowered diag(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const std::int64_t offset = call.integer(1, "diagonal", 0);
  if (x.rank() == 1) return embed_diagonal(call, x, offset, 0, 1);
  if (x.rank() != 2 || call.meta().rank() != 1) throw MalformedNode{"a diagonal of something that is no matrix"};
  const std::int64_t length = std::max<std::int64_t>(0, offset >= 0 ? std::min(x.sizes[0], x.sizes[1] - offset) : std::min(x.sizes[0] + offset, x.sizes[1]));
  return copied(call, diagonal_of(call.builder, x, offset, length));
}

Lowered diagflat(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const std::int64_t elements = numel(x.sizes);
  return embed_diagonal(call, call.builder.reshape(x, {elements}), call.integer(1, "offset", 0), 0, 1);
}

Lowered matrix_trace(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype)) return declined_dtype();
  if (x.rank() != 2) throw MalformedNode{"a trace of something that is no matrix"};
  const DType c = compute_dtype(meta.dtype);
  const Tensor line = diagonal_of(call.builder, x, 0, std::min(x.sizes[0], x.sizes[1]));
  call.define(call.builder.reduction(call.node.name, line.sizes, {0}, ReduceOp::sum, c, meta.dtype, false,
                                     [&](NestBuilder& nest) { return nest.cast(nest.load(line), c); }));
  return as_kernel();
}

Lowered block_diag(Call& call) {
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype)) return declined_dtype();
  Builder& builder = call.builder;
  const std::vector<Tensor> blocks = call.tensors(0, "tensors");
  for (const Tensor& b : blocks)
    if (!is_kernel_dtype(b.dtype)) return declined_dtype();
  const Canvas canvas = blank(builder, meta.dtype, meta.sizes);
  std::int64_t row = 0, column = 0;
  for (Tensor block : blocks) {
    if (block.rank() < 2) block = builder.reshape(block, {1, block.rank() == 0 ? 1 : block.sizes[0]});
    if (row + block.sizes[0] > meta.sizes.at(0) || column + block.sizes[1] > meta.sizes.at(1)) throw MalformedNode{"blocks that leave their matrix"};
    const auto zeros = [&](std::int64_t from, std::int64_t to) {
      fill(builder, call.node.name + ".zeros", canvas, {{row, from}, {1, 1}, {block.sizes[0], to - from}},
           [&](NestBuilder& nest, const Index&) { return nest.constant(to_scalar(0, meta.dtype), meta.dtype); });
    };
    zeros(0, column);
    fill(builder, call.node.name, canvas, {{row, column}, {1, 1}, block.sizes},
         [&](NestBuilder& nest, const Index&) { return nest.load_at(block, {nest.index(0), nest.index(1)}); });
    zeros(column + block.sizes[1], meta.sizes[1]);
    row += block.sizes[0];
    column += block.sizes[1];
  }
  call.define(canvas.tensor);
  return as_kernel();
}

/// cartesian_prod: a column a tensor, over the axes of all.
Lowered cartesian_prod(Call& call) {
  const std::vector<Tensor> columns = call.tensors(0, "tensors");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype)) return declined_dtype();
  if (columns.size() == 1) return copied(call, columns[0]);
  Sizes sizes;
  for (const Tensor& c : columns) {
    if (c.rank() != 1) throw MalformedNode{"a cartesian product of something that is no vector"};
    sizes.push_back(c.sizes[0]);
  }
  sizes.push_back(static_cast<std::int64_t>(columns.size()));
  const Canvas canvas = blank(call.builder, meta.dtype, sizes);
  for (std::size_t k = 0; k < columns.size(); ++k) {
    Region region = whole(sizes);
    region.start.back() = static_cast<std::int64_t>(k);
    region.count.back() = 1;
    fill(call.builder, call.node.name, canvas, region, [&](NestBuilder& nest, const Index&) { return nest.load_at(columns[k], {nest.index(k)}); });
  }
  call.define(call.builder.reshape(canvas.tensor, meta.sizes));
  return as_kernel();
}

/// cross(a, b, dim): three planes, each of the other two. Every product is rounded to the dtype, as eager's is.
Lowered cross(Call& call) {
  const Tensor a = call.tensor(0, "self"), b = call.tensor(1, "other");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype) || is_bool(meta.dtype) || a.dtype != meta.dtype || b.dtype != meta.dtype) return declined_dtype();
  std::size_t d = meta.sizes.size();
  if (call.has(2, "dim")) {
    d = Call::dim(call.integer(2, "dim"), meta.rank());
  } else if (call.node.target == "aten.linalg_cross.default") {
    d = meta.sizes.size() - 1;
  } else {
    for (std::size_t k = meta.sizes.size(); k-- > 0;)
      if (meta.sizes[k] == 3) d = k;
  }
  if (d >= meta.sizes.size() || meta.sizes[d] != 3) throw MalformedNode{"a cross product over an extent other than 3"};
  const Tensor x = call.builder.expand(a, meta.sizes), y = call.builder.expand(b, meta.sizes);
  const Canvas canvas = blank(call.builder, meta.dtype, meta.sizes, memory_order(meta));
  const DType c = compute_dtype(meta.dtype);
  for (std::int64_t k = 0; k < 3; ++k) {
    Region region = whole(meta.sizes);
    region.start[d] = k;
    region.count[d] = 1;
    fill(call.builder, call.node.name, canvas, region, [&](NestBuilder& nest, const Index& position) {
      const auto product = [&](std::int64_t p, std::int64_t q) {
        Index left = position, right = position;
        left[d] = call.builder.context().constant(p % 3);
        right[d] = call.builder.context().constant(q % 3);
        const int value = nest.mul(nest.cast(nest.load_at(x, left), c), nest.cast(nest.load_at(y, right), c));
        return nest.cast(nest.cast(value, meta.dtype), c);
      };
      return nest.sub(product(k + 1, k + 2), product(k + 2, k + 1));
    });
  }
  call.define(canvas.tensor);
  return as_kernel();
}

/// vander(x, N, increasing): columns are products of x with itself, from the left.
Lowered vander(Call& call) {
  const Tensor x = call.tensor(0, "x");
  const trace::TensorMeta& meta = call.meta();
  constexpr std::int64_t kMostColumns = 32;
  if (!is_kernel_dtype(meta.dtype) || !is_kernel_dtype(x.dtype)) return declined_dtype();
  if (meta.rank() != 2 || x.rank() != 1) throw MalformedNode{"a Vandermonde matrix of something that is no vector"};
  const std::int64_t columns = meta.sizes[1];
  if (columns > kMostColumns) return declined("a Vandermonde matrix of so many columns");
  const bool increasing = call.boolean(2, "increasing", false);
  const DType c = compute_dtype(meta.dtype);
  const Canvas canvas = blank(call.builder, meta.dtype, meta.sizes, memory_order(meta));
  for (std::int64_t k = 0; k < columns; ++k) {
    Region region = whole(meta.sizes);
    region.start[1] = increasing ? k : columns - 1 - k;
    region.count[1] = 1;
    fill(call.builder, call.node.name, canvas, region, [&](NestBuilder& nest, const Index& position) {
      if (k == 0) return nest.constant(to_scalar(1, meta.dtype), meta.dtype);
      const int value = nest.cast(nest.load_at(x, {position[0]}), c);
      int power = value;
      for (std::int64_t j = 1; j < k; ++j) power = nest.cast(nest.cast(nest.mul(power, value), meta.dtype), c);
      return power;
    });
  }
  call.define(canvas.tensor);
  return as_kernel();
}

}  // namespace

std::vector<Entry> rearrange_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "rearrange", f}); };
  add("aten.roll.default", roll);
  add("aten.rot90.default", rot90);
  add("aten.repeat.default", repeat);
  add("aten.tile.default", repeat);
  add("aten.repeat_interleave.self_int", repeat_interleave);
  add("aten.repeat_interleave.self_Tensor", repeat_by_counts);
  add("aten.repeat_interleave.Tensor", repeat_by_counts);
  add("aten.pixel_shuffle.default", pixel_shuffle);
  add("aten.pixel_unshuffle.default", pixel_unshuffle);
  add("aten.channel_shuffle.default", channel_shuffle);
  add("aten.native_channel_shuffle.default", channel_shuffle);
  add("aten.diag.default", diag);
  add("aten.diag_embed.default", diag_embed);
  add("aten.diagflat.default", diagflat);
  add("aten.trace.default", matrix_trace);
  add("aten.block_diag.default", block_diag);
  add("aten.cartesian_prod.default", cartesian_prod);
  add("aten.cross.default", cross);
  add("aten.linalg_cross.default", cross);
  add("aten.vander.default", vander);
  return rows;
}

}  // namespace pallascope::lower
