// Family: views that speak of storage: strides laid over it, and its bytes seen as another dtype.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "core/functional/view.h"
#include "core/lower/builder.h"
#include "core/lower/regions.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;

/// A dimension of a tensor in eager's storage.
struct Digit {
  std::size_t dim;
  std::int64_t stride, extent;
};

/// The dimensions that move, outermost first, if each storage element holds at most one element of the tensor and its
/// place there spells the position digit by digit.
std::optional<std::vector<Digit>> digits_of(const trace::TensorMeta& meta) {
  std::vector<Digit> digits;
  for (std::size_t k = 0; k < meta.sizes.size(); ++k)
    if (meta.sizes[k] > 1 && meta.strides[k] != 0) digits.push_back({k, meta.strides[k], meta.sizes[k]});
  std::stable_sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) { return a.stride > b.stride; });
  std::int64_t below = 0;  // how far the inner dimensions reach
  for (std::size_t k = digits.size(); k-- > 0;) {
    if (digits[k].stride <= below) return std::nullopt;
    below += digits[k].stride * (digits[k].extent - 1);
  }
  return digits;
}

/// Whether every element of `sizes` laid out by `strides` from `offset` (counted from the tensor's first element) is one
/// of the tensor's own.
bool all_held(const std::vector<Digit>& digits, const Sizes& sizes, const Sizes& strides, std::int64_t offset) {
  Sizes at(sizes.size(), 0);
  for (bool more = true; more;) {
    std::int64_t rest = offset;
    for (std::size_t k = 0; k < sizes.size(); ++k) rest += at[k] * strides[k];
    if (rest < 0) return false;
    for (const Digit& d : digits) {
      if (rest / d.stride >= d.extent) return false;
      rest %= d.stride;
    }
    if (rest != 0) return false;
    more = false;
    for (std::size_t k = sizes.size(); k-- > 0 && !more;) {
      more = ++at[k] < sizes[k];
      if (!more) at[k] = 0;
    }
  }
  return true;
}

/// How many elements the storage has that `value` lies in, where this graph made it; an argument may be part of a larger
/// one, which only PyTorch knows, and so may what a torch call gives.
std::optional<std::int64_t> storage_elements(Builder& builder, trace::ValueId value) {
  const trace::Graph& graph = builder.graph();
  while (graph.values[value].producer.valid()) {
    const trace::Node& node = graph.nodes[graph.values[value].producer];
    const auto view = functional::view_of(graph, node, static_cast<std::size_t>(graph.values[value].output_index));
    if (!view) break;
    value = view->base;
  }
  const trace::Value& root = graph.values[value];
  if (!root.producer.valid() || !root.tensor || root.tensor->storage_offset != 0) return std::nullopt;
  // `select_scatter` and its kin keep the strides of their base, and with them memory that no element lies in.
  if (graph.nodes[root.producer].target.find("_scatter") != std::string::npos) return std::nullopt;
  const std::vector<loop::NodeOutcome>& outcomes = builder.program().outcomes;
  if (root.producer.index() >= outcomes.size() || outcomes[root.producer.index()].outcome == loop::Outcome::torch) return std::nullopt;
  return trace::storage_extent(*root.tensor);
}

/// as_strided lays strides over the storage of a tensor. Its elements are found in the tensor by the digits of their
/// place in that storage, which eager's strides of the tensor tell; elements of the storage outside of it are not there.
Lowered as_strided(Call& call) {
  const trace::TensorMeta& meta = meta_of(call, 0, "self");
  const Tensor x = call.tensor(0, "self");
  Builder& builder = call.builder;
  const Sizes sizes = call.integers(1, "size"), strides = call.integers(2, "stride");
  if (sizes.size() != strides.size()) throw MalformedNode{"as many strides as sizes are needed"};
  const std::int64_t offset = (call.has(3, "storage_offset") ? call.integer(3, "storage_offset") : meta.storage_offset) - meta.storage_offset;
  const std::int64_t elements = numel(sizes);
  std::int64_t first = offset + meta.storage_offset, last = first;
  for (std::size_t k = 0; k < sizes.size(); ++k) (strides[k] < 0 ? first : last) += (sizes[k] - 1) * strides[k];
  const std::optional<std::int64_t> held = storage_elements(builder, *call.argument(0, "self")->get<trace::ValueId>());
  if (elements > 0 && held && (first < 0 || last >= *held)) {
    Lowered bad = declined("");
    bad.diagnostic = Diagnostic{DiagnosticKind::storage_bounds,
                                fmt::format("{} reaches element {} of a storage of {}", call.node.target, first < 0 ? first : last, *held),
                                call.node.name, "sizes, strides and an offset that stay within the tensor's storage"};
    return bad;
  }
  constexpr std::int64_t kMostChecked = std::int64_t{1} << 24;
  if (elements > kMostChecked) return declined("as_strided over so many elements");
  const std::optional<std::vector<Digit>> digits = digits_of(meta);
  if (!digits) return declined("as_strided of a value whose elements overlap in storage");
  if (elements > 0 && (meta.numel() == 0 || !all_held(*digits, sizes, strides, offset)))
    return declined("as_strided reaches elements of the storage outside of the value");
  index::Context& context = builder.context();
  call.define(builder.reindex(x, sizes, [&](const Index& position) {
    Index source(x.sizes.size(), context.constant(0));
    if (elements == 0) return source;
    index::Expression rest = context.linear(position, strides, offset);
    for (const Digit& d : *digits) {
      source[d.dim] = context.floor_div(rest, d.stride);
      rest = context.mod(rest, d.stride);
    }
    return source;
  }));
  return as_view();
}

Lowered as_strided_copy(Call& call) { return copied_views(call, as_strided); }

// --------------------------------------------------------------------------------------- bytes as another dtype

/// The signed integer as wide as `d`.
DType bits_dtype(DType d) {
  switch (dtype_bytes(d)) {
    case 1: return DType::i8;
    case 2: return DType::i16;
    case 4: return DType::i32;
    default: return DType::i64;
  }
}

/// The bits of `value` as dtype `to` of the same width. XLA holds a bool as a truth value, not as a byte.
int recast(NestBuilder& nest, int value, DType to) {
  const DType from = nest.dtype(value);
  if (from == to) return value;
  if (is_bool(from)) return nest.cast(value, to);
  if (is_bool(to)) return nest.compare(ComputeOp::ne, value, nest.constant(std::int64_t{0}, from));
  return nest.compute(ComputeOp::bitcast, to, {value});
}

/// view(dtype): of equal width element by element; else the last dimension's elements are cut or joined, the first of
/// them being the lowest bits.
Lowered view_dtype(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype) || !is_kernel_dtype(meta.dtype)) return declined_dtype();
  Builder& builder = call.builder;
  const DType from = bits_dtype(x.dtype), to = bits_dtype(meta.dtype);
  const std::int64_t wide = dtype_bytes(x.dtype), narrow = dtype_bytes(meta.dtype);
  if (wide == narrow) {
    call.define(builder.pointwise(
        call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) { return recast(nest, nest.load(x), meta.dtype); }, &meta));
    return as_kernel();
  }
  if (x.rank() == 0 || meta.rank() != x.rank()) throw MalformedNode{"a scalar seen as a dtype of another width"};
  if (wide > narrow) {
    Sizes axes = x.sizes;
    axes.push_back(wide / narrow);
    const Tensor parts = builder.pointwise(call.node.name, axes, meta.dtype, [&](NestBuilder& nest) {
      const int bits = recast(nest, nest.load_at(x, Index(nest.index().begin(), nest.index().end() - 1)), from);
      const int by = nest.index_value(builder.context().multiply(nest.index().back(), 8 * narrow), from);
      return recast(nest, nest.cast(nest.compute(ComputeOp::shift_right, from, {bits, by}), to), meta.dtype);
    });
    call.define(builder.reshape(parts, meta.sizes));
    return as_kernel();
  }
  const std::int64_t parts = narrow / wide;
  if (x.sizes.back() != meta.sizes.back() * parts) throw MalformedNode{"a last dimension that does not divide"};
  call.define(builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        int bits = -1;
        const int mask = nest.constant((std::int64_t{1} << (8 * wide)) - 1, to);
        for (std::int64_t k = 0; k < parts; ++k) {
          Index at = nest.index();
          at.back() = builder.context().add(builder.context().multiply(at.back(), parts), builder.context().constant(k));
          int part = nest.op(ComputeOp::bitwise_and, nest.cast(recast(nest, nest.load_at(x, at), from), to), mask);
          if (k > 0) part = nest.op(ComputeOp::shift_left, part, nest.constant(8 * wide * k, to));
          bits = bits < 0 ? part : nest.op(ComputeOp::bitwise_or, bits, part);
        }
        return recast(nest, bits, meta.dtype);
      },
      &meta));
  return as_kernel();
}

}  // namespace

std::vector<Entry> storage_entries() {
  return {{"aten.as_strided.default", "view", as_strided},
          {"aten.as_strided_copy.default", "view", as_strided_copy},
          {"aten.view.dtype", "view", view_dtype},
          {"aten.view_copy.dtype", "view", view_dtype}};
}

}  // namespace pallascope::lower
