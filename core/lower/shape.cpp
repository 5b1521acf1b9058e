// Family: operators that lay pieces side by side. Each piece is a nest of its own that stores into a region of one
// buffer, so that kernels write slices of a ref and never mask out-of-range loads.
#include <algorithm>

#include <fmt/format.h>

#include "core/lower/builder.h"
#include "core/lower/regions.h"
#include "core/lower/scatter.h"

namespace pallascope::lower {
namespace {

/// `pieces` beside each other along dimension `d`; each of them a new one there if `stack`.
Lowered side_by_side(Call& call, const std::vector<Tensor>& pieces, std::size_t d, bool stack) {
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype)) return declined_dtype();
  if (meta.rank() == 0) throw MalformedNode{"a concatenation of rank 0"};
  const Canvas canvas = blank(call.builder, meta.dtype, meta.sizes, memory_order(meta));
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
    fill(call.builder, call.node.name, canvas, region,
         [&](NestBuilder& nest, const Index&) { return nest.load_at(piece, nest.index()); });
  }
  if (start != meta.sizes[d] && meta.numel() > 0) throw MalformedNode{"pieces shorter than their concatenation"};
  call.define(canvas.tensor);
  return as_kernel();
}

Lowered cat(Call& call) {
  return side_by_side(call, call.tensors(0, "tensors"), Call::dim(call.integer(1, "dim", 0), call.meta().rank()),
                      call.node.target == "aten.stack.default");
}

/// hstack, vstack, dstack, column_stack: tensors of at least `rank` dimensions beside each other along `dim`. Where the
/// new dimensions stand differs: in front (hstack, vstack), on both sides of a vector (dstack), behind (column_stack).
enum class Stack { horizontal, vertical, deep, column };
template <Stack kind>
Lowered stack_pieces(Call& call) {
  std::vector<Tensor> pieces = call.tensors(0, "tensors");
  for (Tensor& piece : pieces) {
    Sizes sizes = piece.sizes;
    const std::int64_t n = sizes.empty() ? 1 : sizes[0];
    if (kind == Stack::horizontal && sizes.empty()) sizes = {1};
    if (kind == Stack::vertical && sizes.size() < 2) sizes = {1, n};
    if (kind == Stack::column && sizes.size() < 2) sizes = {n, 1};
    if (kind == Stack::deep && sizes.size() < 2) sizes = {1, n, 1};
    if (kind == Stack::deep && sizes.size() == 2) sizes.push_back(1);
    piece = call.builder.reshape(piece, sizes);
  }
  const std::size_t d = kind == Stack::vertical ? 0 : kind == Stack::deep ? 2 : call.meta().rank() == 1 ? 0 : 1;
  return side_by_side(call, pieces, d, false);
}

/// Puts `source` at start, start + step, ... of `dim` in a copy of `base` (or in zeros).
void scatter_slice(Call& call, const std::optional<Tensor>& base, const Tensor& source, std::size_t d, std::int64_t start,
                   std::int64_t step, std::int64_t count) {
  const trace::TensorMeta& meta = call.meta();
  Builder& builder = call.builder;
  const Canvas canvas = blank(builder, meta.dtype, meta.sizes, memory_order(meta));
  const auto keep = [&](std::int64_t from, std::int64_t by, std::int64_t n) {
    Region region = whole(meta.sizes);
    region.start[d] = from;
    region.step[d] = by;
    region.count[d] = n;
    fill(builder, call.node.name + ".kept", canvas, region, [&](NestBuilder& nest, const Index& position) {
      return base ? nest.load_at(*base, position) : nest.constant(to_scalar(0, meta.dtype), meta.dtype);
    });
  };
  if (count <= 0) {
    keep(0, 1, meta.sizes[d]);
    call.define(canvas.tensor);
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
  fill(builder, call.node.name, canvas, region, [&](NestBuilder& nest, const Index&) {
    return nest.cast(nest.load_at(source, nest.index()), meta.dtype);
  });
  call.define(canvas.tensor);
}

/// Elements of start : end : step within an axis.
std::int64_t slice_count(std::int64_t start, std::int64_t end, std::int64_t step) {
  return end <= start ? 0 : (end - start + step - 1) / step;
}

Lowered slice_scatter(Call& call) {
  if (!is_kernel_dtype(call.meta().dtype)) return declined_dtype();
  if (std::optional<Lowered> left = leave_shared_elements(call)) return *left;
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
  if (std::optional<Lowered> left = leave_shared_elements(call)) return *left;
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

}  // namespace

std::vector<Entry> shape_entries() {
  return {{"aten.cat.default", "shape", cat},
          {"aten.stack.default", "shape", cat},
          {"aten.concat.default", "shape", cat},
          {"aten.concatenate.default", "shape", cat},
          {"aten.hstack.default", "shape", stack_pieces<Stack::horizontal>},
          {"aten.vstack.default", "shape", stack_pieces<Stack::vertical>},
          {"aten.row_stack.default", "shape", stack_pieces<Stack::vertical>},
          {"aten.dstack.default", "shape", stack_pieces<Stack::deep>},
          {"aten.column_stack.default", "shape", stack_pieces<Stack::column>},
          {"aten.slice_scatter.default", "shape", slice_scatter},
          {"aten.select_scatter.default", "shape", select_scatter},
          {"aten.slice_backward.default", "shape", slice_backward},
          {"aten.select_backward.default", "shape", select_backward}};
}

}  // namespace pallascope::lower
