// Family: padding. Along each dimension the result is a few runs of the tensor (forwards, backwards or one element
// again and again), so that each combination of runs is a nest that reads and writes slices.
#include <algorithm>

#include "core/lower/builder.h"
#include "core/lower/regions.h"
#include "core/lower/windows.h"

namespace pallascope::lower {
namespace {

enum class Mode { reflect, replicate, circular };

/// Elements added in front of each dimension of a tensor of rank `rank`; `pads` counts from the last dimension.
Sizes pads_before(const Sizes& pads, std::size_t rank) {
  if (pads.size() > 2 * rank) throw MalformedNode{"more pads than dimensions"};
  Sizes before(rank, 0);
  for (std::size_t k = 0; 2 * k + 1 < pads.size(); ++k) before[rank - 1 - k] = pads[2 * k];
  return before;
}

Lowered pad_with(Call& call, const loop::Scalar& value) {
  const Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype)) return declined_dtype();
  if (meta.rank() != x.rank()) throw MalformedNode{"a padding that changes the rank"};
  const Sizes before = pads_before(call.integers(1, "pad"), x.sizes.size());
  call.define(padded(call.builder, call.node.name, x, before, meta.sizes, value, memory_order(meta)));
  return as_kernel();
}

loop::Scalar fill_value(const Call& call, std::size_t index, DType dtype) {
  if (!call.has(index, "value")) return to_scalar(0, dtype);
  const loop::Scalar value = call.scalar(index, "value");
  return is_integer(dtype) && std::holds_alternative<std::int64_t>(value) ? value : to_scalar(as_double(value), dtype);
}

Lowered constant_pad(Call& call) { return pad_with(call, fill_value(call, 2, call.meta().dtype)); }

/// The element of an axis of `extent` that position `at` (from the axis' own start) shows. `before` and `after` are the
/// elements added; a circle goes around what is left where they are negative.
std::int64_t source_of(Mode mode, std::int64_t at, std::int64_t extent, std::int64_t before, std::int64_t after) {
  const std::int64_t first = std::max<std::int64_t>(0, -before), left = extent - first - std::max<std::int64_t>(0, -after);
  switch (mode) {
    case Mode::reflect: return at < 0 ? -at : at >= extent ? 2 * (extent - 1) - at : at;
    case Mode::replicate: return std::clamp<std::int64_t>(at, 0, extent - 1);
    case Mode::circular: return left < 1 ? -1 : first + (((at - first) % left) + left) % left;
  }
  return at;
}

/// What each position of a dimension shows; empty for a dimension that stays as it is.
std::vector<Sizes> pad_tables(Mode mode, const Sizes& from, const Sizes& to, const Sizes& before) {
  std::vector<Sizes> tables(from.size());
  for (std::size_t d = 0; d < from.size(); ++d)
    for (std::int64_t i = 0; i < to[d]; ++i) {
      if (before[d] == 0 && from[d] == to[d]) break;
      const std::int64_t at = source_of(mode, i - before[d], from[d], before[d], to[d] - from[d] - before[d]);
      if (at < 0 || at >= from[d]) throw MalformedNode{"a padding that reaches outside of its tensor"};
      tables[d].push_back(at);
    }
  return tables;
}

Lowered pad_by(Call& call, Mode mode) {
  const Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype)) return declined_dtype();
  if (meta.rank() != x.rank()) throw MalformedNode{"a padding that changes the rank"};
  const std::string_view name = call.argument(1, "pad") != nullptr ? "pad" : "padding";
  const Sizes before = pads_before(call.integers(1, name), x.sizes.size());
  if (meta.numel() == 0) {
    call.define(blank(call.builder, meta.dtype, meta.sizes).tensor);
    return as_kernel();
  }
  std::vector<std::vector<Piece>> pieces;
  for (const Sizes& table : pad_tables(mode, x.sizes, meta.sizes, before))
    pieces.push_back(table.empty() ? unchanged(x.sizes[pieces.size()]) : pieces_of(table));
  call.define(rearranged(call.builder, call.node.name, x, meta.sizes, pieces, memory_order(meta)));
  return as_kernel();
}

template <Mode mode>
Lowered pad_like(Call& call) {
  return pad_by(call, mode);
}

/// pad(x, pad, mode, value), as torch.export leaves it.
Lowered pad(Call& call) {
  const std::string mode = call.text(2, "mode", "constant");
  if (mode == "constant") return pad_with(call, fill_value(call, 3, call.meta().dtype));
  if (mode == "reflect") return pad_by(call, Mode::reflect);
  if (mode == "replicate") return pad_by(call, Mode::replicate);
  if (mode == "circular") return pad_by(call, Mode::circular);
  return declined("a padding mode without a lowering");
}

/// _pad_enum(x, pad, mode, value)
Lowered pad_enum(Call& call) {
  switch (call.integer(2, "mode")) {
    case 0: return pad_by(call, Mode::reflect);
    case 1: return pad_by(call, Mode::replicate);
    case 2: return pad_by(call, Mode::circular);
    case 3: return pad_with(call, fill_value(call, 3, call.meta().dtype));
    default: return declined("a padding mode without a lowering");
  }
}

/// The sums of `grad` over the places that show each element, all dimensions at once and in the order of the places. A
/// 16-bit tensor is rounded at each addition, as eager adds up in it.
Tensor summed_in_order(Builder& builder, const std::string& name, const Tensor& grad, const std::vector<Lists>& shown,
                       const std::vector<std::size_t>& order) {
  index::Context& context = builder.context();
  const DType c = compute_dtype(grad.dtype);
  std::vector<std::vector<Piece>> pieces;
  Sizes sizes;
  for (const Lists& lists : shown) {
    pieces.push_back(pieces_of(lists));
    sizes.push_back(static_cast<std::int64_t>(lists.size()));
  }
  const Canvas canvas = blank(builder, grad.dtype, sizes, order);
  std::vector<std::size_t> chosen(shown.size(), 0);
  const auto next = [](std::vector<std::size_t>& digits, const auto& extent) {
    for (std::size_t d = digits.size(); d-- > 0;) {
      if (++digits[d] < extent(d)) return true;
      digits[d] = 0;
    }
    return false;
  };
  do {
    const auto piece = [&](std::size_t d) -> const Piece& { return pieces[d][chosen[d]]; };
    Region region = whole(sizes);
    bool none = false;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      region.start[d] = piece(d).start;
      region.step[d] = piece(d).step;
      region.count[d] = piece(d).count;
      none = none || piece(d).first.empty();
    }
    fill(builder, name, canvas, region, [&](NestBuilder& nest, const Index&) {
      int total = -1;
      std::vector<std::size_t> tap(sizes.size(), 0);
      do {
        if (none) break;
        Index at;
        for (std::size_t d = 0; d < sizes.size(); ++d)
          at.push_back(context.add(context.multiply(nest.index(d), piece(d).by[tap[d]]), context.constant(piece(d).first[tap[d]])));
        const int value = nest.cast(nest.load_at(grad, at), c);
        total = total < 0 ? value : added(nest, total, value, grad.dtype);
      } while (next(tap, [&](std::size_t d) { return piece(d).first.size(); }));
      return total < 0 ? nest.constant(to_scalar(0, c), c) : total;
    });
  } while (next(chosen, [&](std::size_t d) { return pieces[d].size(); }));
  return canvas.tensor;
}

/// Each element takes the gradients of all places that show it: dimension by dimension the sum over these places.
template <Mode mode>
Lowered pad_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_output"), x = call.tensor(1, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype)) return declined_dtype();
  const Sizes before = pads_before(call.integers(2, "padding"), x.sizes.size());
  Builder& builder = call.builder;
  Tensor sum = grad;
  if (meta.numel() > 0) {
    const std::vector<Sizes> tables = pad_tables(mode, x.sizes, grad.sizes, before);
    std::vector<Lists> shown;
    std::size_t most = 1;
    for (std::size_t d = 0; d < tables.size(); ++d) {
      shown.emplace_back(static_cast<std::size_t>(x.sizes[d]));
      std::size_t longest = 1;
      for (std::size_t i = 0; tables[d].empty() && i < shown[d].size(); ++i) shown[d][i] = {static_cast<std::int64_t>(i)};
      for (std::size_t i = 0; i < tables[d].size(); ++i) {
        Sizes& places = shown[d][static_cast<std::size_t>(tables[d][i])];
        places.push_back(static_cast<std::int64_t>(i));
        longest = std::max(longest, places.size());
      }
      most *= longest;
    }
    constexpr std::size_t kUnrolled = 64;
    const bool in_order = dtype_bytes(meta.dtype) == 2 && most <= kUnrolled;
    if (in_order) sum = summed_in_order(builder, call.node.name, grad, shown, memory_order(meta));
    for (std::size_t d = 0; d < tables.size() && !in_order; ++d)
      if (before[d] != 0 || x.sizes[d] != grad.sizes[d])
        sum = summed(builder, call.node.name, sum, d, shown[d], compute_dtype(meta.dtype), false, memory_order(meta));
  }
  call.define(builder.pointwise(
      call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) { return nest.load(sum); }, &meta));
  return as_kernel();
}

}  // namespace

std::vector<Entry> padding_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "padding", f}); };
  add("aten.constant_pad_nd.default", constant_pad);
  add("aten.pad.default", pad);
  add("aten._pad_enum.default", pad_enum);
  add("aten._pad_circular.default", pad_like<Mode::circular>);
  for (std::string_view op : {"aten.reflection_pad1d.default", "aten.reflection_pad2d.default", "aten.reflection_pad3d.default"})
    add(op, pad_like<Mode::reflect>);
  for (std::string_view op : {"aten.replication_pad1d.default", "aten.replication_pad2d.default", "aten.replication_pad3d.default"})
    add(op, pad_like<Mode::replicate>);
  for (std::string_view op : {"aten.reflection_pad1d_backward.default", "aten.reflection_pad2d_backward.default",
                              "aten.reflection_pad3d_backward.default"})
    add(op, pad_backward<Mode::reflect>);
  for (std::string_view op : {"aten.replication_pad1d_backward.default", "aten.replication_pad2d_backward.default",
                              "aten.replication_pad3d_backward.default"})
    add(op, pad_backward<Mode::replicate>);
  return rows;
}

}  // namespace pallascope::lower
