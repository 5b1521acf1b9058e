#include "core/lower/builder.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include <fmt/format.h>

namespace pallascope::lower {

using loop::ComputeOp;
using loop::StatementKind;

std::int64_t numel(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t points(const Sizes& sizes, const std::vector<std::size_t>& dims) {
  std::int64_t n = 1;
  for (std::size_t d : dims) n *= sizes.at(d);
  return n;
}

loop::BoundaryLayout boundary_layout(const trace::TensorMeta& meta) {
  loop::BoundaryLayout layout{meta.sizes, meta.strides, {}, {}, std::vector<int>(meta.sizes.size(), -1), false};
  const std::size_t rank = meta.sizes.size();
  bool in_order = true, expanded = false;
  std::vector<std::size_t> moving;
  for (std::size_t k = 0; k < rank; ++k) {
    if (meta.sizes[k] <= 1) continue;
    if (meta.strides[k] == 0) {
      expanded = true;
      continue;
    }
    if (!moving.empty() && meta.strides[moving.back()] < meta.strides[k]) in_order = false;
    moving.push_back(k);
  }
  if (meta.numel() == 0) {
    layout.dims = meta.sizes;
    layout.dim_strides = trace::contiguous_strides(meta.sizes);
    std::iota(layout.place.begin(), layout.place.end(), 0);
    return layout;
  }
  std::stable_sort(moving.begin(), moving.end(),
                   [&](std::size_t a, std::size_t b) { return meta.strides[a] > meta.strides[b]; });
  std::int64_t expected = 1;
  for (std::size_t k = moving.size(); k-- > 0;) {
    if (meta.strides[moving[k]] != expected) layout.copied = true;
    expected *= meta.sizes[moving[k]];
  }
  if (in_order && !expanded) {
    layout.dims = meta.sizes;
    const Sizes dense = trace::contiguous_strides(meta.sizes);
    for (std::size_t k = 0; k < rank; ++k) layout.dim_strides.push_back(meta.sizes[k] <= 1 ? dense[k] : meta.strides[k]);
    std::iota(layout.place.begin(), layout.place.end(), 0);
  } else {
    for (std::size_t k : moving) {
      layout.place[k] = static_cast<int>(layout.dims.size());
      layout.dims.push_back(meta.sizes[k]);
      layout.dim_strides.push_back(meta.strides[k]);
    }
  }
  return layout;
}

namespace {

/// Strides as those of a dense tensor in the order of its dimensions; extents of 1 may carry any.
bool is_row_major(const trace::TensorMeta& meta) {
  std::int64_t expected = 1;
  for (std::size_t k = meta.sizes.size(); k-- > 0;) {
    if (meta.sizes[k] == 1) continue;
    if (meta.strides[k] != expected) return false;
    expected *= meta.sizes[k];
  }
  return true;
}

}  // namespace

std::vector<std::size_t> memory_order(const trace::TensorMeta& meta) {
  std::vector<std::size_t> order(meta.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  if (is_row_major(meta)) return order;
  const loop::BoundaryLayout layout = boundary_layout(meta);
  const bool expanded = std::any_of(order.begin(), order.end(),
                                    [&](std::size_t k) { return meta.sizes[k] > 1 && meta.strides[k] == 0; });
  if (layout.copied || expanded || meta.numel() == 0) return order;
  // Extents of 1 may carry any stride: they stay in front of the dimension that follows them.
  Sizes key = meta.strides;
  for (std::size_t k = key.size(); k-- > 0;)
    if (meta.sizes[k] == 1) key[k] = k + 1 < key.size() ? key[k + 1] * meta.sizes[k + 1] : 1;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key[a] > key[b]; });
  return order;
}

// ---------------------------------------------------------------------------------------------- NestBuilder

NestBuilder::NestBuilder(Builder& builder, std::string name, const Sizes& sizes, const std::vector<std::size_t>& reduced,
                         const std::vector<std::size_t>& order)
    : builder_(builder), sizes_(sizes), reduced_dims_(sizes.size(), false), order_(order), index_(sizes.size()) {
  nest_.name = std::move(name);
  nest_.body.reserve(8);
  nest_.axes.reserve(sizes.size());
  nest_.origin = builder.current;
  nest_.origins = {builder.current};
  for (std::size_t d : reduced) reduced_dims_.at(d) = true;
  if (order_.empty()) {
    order_.resize(sizes.size());
    std::iota(order_.begin(), order_.end(), 0);
  }
  for (std::size_t d : order_) {
    const bool is_reduced = reduced_dims_[d];
    nest_.axes.push_back(builder.context().add_axis((is_reduced ? "r" : "i") + std::to_string(d), sizes[d]));
    nest_.reduced.push_back(is_reduced);
    index_[d] = builder.context().of(nest_.axes.back());
  }
  // Rank 0 becomes (1, 1): a kernel has no rank-0 refs.
  while (nest_.axes.size() < 2 && sizes.empty()) {
    nest_.axes.push_back(builder.context().add_axis(fmt::format("u{}", nest_.axes.size()), 1));
    nest_.reduced.push_back(false);
  }
}

int NestBuilder::push(loop::Statement statement) {
  statement.origin = builder_.current;
  nest_.body.push_back(std::move(statement));
  return static_cast<int>(nest_.body.size()) - 1;
}

int NestBuilder::load_at(const Tensor& tensor, const Index& position) {
  loop::Statement s;
  s.kind = StatementKind::load;
  s.dtype = tensor.dtype;
  s.buffer = tensor.view.buffer;
  s.index = loop::at(builder_.context(), tensor.view, position);
  for (std::size_t k = 0; k < nest_.body.size(); ++k) {
    const loop::Statement& other = nest_.body[k];
    if (other.kind == StatementKind::load && other.buffer == s.buffer && other.index == s.index) return static_cast<int>(k);
  }
  return push(std::move(s));
}

int NestBuilder::load(const Tensor& tensor) {
  if (tensor.sizes.size() > sizes_.size())
    throw MalformedNode{fmt::format("an operand of rank {} where the result has rank {}", tensor.sizes.size(), sizes_.size())};
  const std::size_t offset = sizes_.size() - tensor.sizes.size();
  Index position;
  position.reserve(tensor.sizes.size());
  for (std::size_t k = 0; k < tensor.sizes.size(); ++k) {
    if (tensor.sizes[k] != 1 && tensor.sizes[k] != sizes_[offset + k])
      throw MalformedNode{fmt::format("dimension {} of an operand has extent {}, which does not broadcast to {}", k,
                                      tensor.sizes[k], sizes_[offset + k])};
    position.push_back(tensor.sizes[k] == 1 ? builder_.context().constant(0) : index_[offset + k]);
  }
  return load_at(tensor, position);
}

int NestBuilder::constant(loop::Scalar scalar, DType dtype) {
  for (std::size_t k = 0; k < nest_.body.size(); ++k) {
    const loop::Statement& other = nest_.body[k];
    if (other.kind == StatementKind::constant && other.dtype == dtype && other.scalar == scalar) return static_cast<int>(k);
  }
  loop::Statement s;
  s.kind = StatementKind::constant;
  s.dtype = dtype;
  s.scalar = scalar;
  return push(std::move(s));
}

int NestBuilder::index_value(index::Expression e, DType dtype) {
  loop::Statement s;
  s.kind = StatementKind::index_value;
  s.dtype = dtype;
  s.index = e;
  return push(std::move(s));
}

index::Expression NestBuilder::constant_index(std::int64_t value) const { return builder_.context().constant(value); }

index::Expression NestBuilder::symbol(int value, std::int64_t low, std::int64_t high, bool checked) {
  index::Symbol symbol;
  symbol.name = fmt::format("{}_s{}", nest_.name, nest_.symbols.size());
  symbol.origin = static_cast<std::int64_t>(builder_.program().nests.size()) * 100000 + value;
  symbol.low = low;
  symbol.high = std::max(low, high);  // an axis of extent 0 has no legal index: the check of any then raises
  const index::SymbolId id = builder_.context().add_symbol(symbol);
  nest_.symbols.push_back({id, value, low, high, checked, nest_.origin});
  return builder_.context().of(id);
}

int NestBuilder::cast(int value, DType dtype) {
  if (this->dtype(value) == dtype) return value;
  return compute(ComputeOp::cast, dtype, {value});
}

int NestBuilder::compute(ComputeOp op, DType dtype, loop::Operands operands) {
  PALLASCOPE_CHECK(static_cast<int>(operands.size()) == loop::info(op).arity, std::string(loop::info(op).name));
  loop::Statement s;
  s.kind = StatementKind::compute;
  s.dtype = dtype;
  s.compute = op;
  s.operands = operands;
  return push(std::move(s));
}

int NestBuilder::reduce(loop::ReduceOp op, int value, DType dtype) {
  loop::Statement s;
  s.kind = StatementKind::reduce;
  s.dtype = dtype;
  s.reduce = op;
  s.operands = {value};
  return push(std::move(s));
}

int NestBuilder::scan(loop::ScanOp op, int value, std::size_t dim) {
  loop::Statement s;
  s.kind = StatementKind::scan;
  s.dtype = dtype(value);
  s.scan = op;
  s.axis = nest_.axes.at(static_cast<std::size_t>(std::find(order_.begin(), order_.end(), dim) - order_.begin()));
  s.operands = {value};
  return push(std::move(s));
}

Tensor NestBuilder::store(int value, DType dtype, bool keep) {
  value = cast(value, dtype);
  Sizes dims;
  std::vector<std::size_t> kept;  // logical dimensions that the buffer has, in its order
  dims.reserve(order_.size());
  kept.reserve(order_.size());
  for (std::size_t d : order_) {
    if (reduced_dims_[d]) continue;
    dims.push_back(sizes_[d]);
    kept.push_back(d);
  }
  const loop::BufferId buffer = builder_.add_buffer(dtype, dims);
  Index where;
  where.reserve(kept.size());
  for (std::size_t d : kept) where.push_back(index_[d]);
  store_into(buffer, loop::flatten(builder_.context(), where, dims), value);

  Tensor tensor;
  tensor.dtype = dtype;
  tensor.view.buffer = buffer;
  const Sizes strides = trace::contiguous_strides(dims);
  std::vector<std::int64_t> coefficients;
  Index terms;
  terms.reserve(sizes_.size());
  coefficients.reserve(sizes_.size());
  tensor.sizes.reserve(sizes_.size());
  tensor.view.axes.reserve(sizes_.size());
  for (std::size_t d = 0; d < sizes_.size(); ++d) {
    if (reduced_dims_[d] && !keep) continue;
    const std::int64_t extent = reduced_dims_[d] ? 1 : sizes_[d];
    tensor.sizes.push_back(extent);
    const index::AxisId axis = builder_.context().add_axis("d" + std::to_string(d), extent);
    tensor.view.axes.push_back(axis);
    if (reduced_dims_[d]) continue;
    terms.push_back(builder_.context().of(axis));
    coefficients.push_back(strides[static_cast<std::size_t>(std::find(kept.begin(), kept.end(), d) - kept.begin())]);
  }
  tensor.view.index = builder_.context().linear(terms, coefficients);
  return tensor;
}

void NestBuilder::store_into(loop::BufferId buffer, index::Expression where, int value, loop::StoreMode mode) {
  loop::Statement s;
  s.kind = StatementKind::store;
  s.dtype = builder_.program().buffers[buffer].dtype;
  s.buffer = buffer;
  s.index = where;
  s.mode = mode;
  s.operands = {value};
  PALLASCOPE_CHECK(s.dtype == dtype(value), nest_.name);
  push(std::move(s));
  builder_.add_nest(std::move(nest_));
}

// -------------------------------------------------------------------------------------------------- Builder

Builder::Builder(const trace::Graph& graph) : graph_(graph) {
  program_.context = std::make_shared<index::Context>();
  // Few nodes make several nests, and many make none.
  const std::size_t nodes = graph.nodes.size(), inputs = graph.inputs.size();
  program_.buffers.reserve(nodes + inputs);
  program_.nests.reserve(nodes);
  program_.steps.reserve(nodes);
  program_.outcomes.reserve(nodes);
  program_.input_layouts.reserve(inputs);
  program_.input_buffers.reserve(inputs);
}

Tensor Builder::tensor(trace::ValueId value) const {
  if (!graph_.values[value].tensor || !has(value)) throw MalformedNode{graph_.values[value].name + " is no tensor"};
  const trace::TensorMeta& meta = *graph_.values[value].tensor;
  return {program_.views.at(value), meta.dtype, meta.sizes};
}

loop::BufferId Builder::add_buffer(DType dtype, Sizes dims) {
  loop::Buffer buffer;
  buffer.name = "buf" + std::to_string(program_.buffers.size());
  buffer.dtype = dtype;
  buffer.dims = std::move(dims);
  return program_.buffers.add(std::move(buffer));
}

Tensor Builder::row_major(loop::BufferId buffer, const Sizes& sizes) {
  return {loop::row_major_view(program_, buffer, sizes), program_.buffers[buffer].dtype, sizes};
}

namespace {

/// The source's memory with other logical dimensions, whose position is given; the view's index is still to be made.
Tensor seen_with(index::Context& context, const Tensor& source, const Sizes& sizes, Index& position) {
  Tensor result;
  result.dtype = source.dtype;
  result.sizes = sizes;
  result.view.buffer = source.view.buffer;
  position.reserve(sizes.size());
  result.view.axes.reserve(sizes.size());
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    result.view.axes.push_back(context.add_axis("d" + std::to_string(k), sizes[k]));
    position.push_back(context.of(result.view.axes.back()));
  }
  return result;
}

}  // namespace

Tensor Builder::reindex(const Tensor& source, const Sizes& sizes, const std::function<Index(const Index&)>& make) {
  Index position;
  Tensor result = seen_with(context(), source, sizes, position);
  const Index at = make(position);
  if (at.size() != source.sizes.size())
    throw MalformedNode{fmt::format("a view of rank {} cannot be made of one of rank {}", sizes.size(), source.sizes.size())};
  result.view.index = loop::at(context(), source.view, at);
  return result;
}

std::optional<Tensor> Builder::reshape_row_major(const Tensor& tensor, const Sizes& strides, const Sizes& sizes) {
  const index::Sum& sum = context().sum(tensor.view.index);
  std::size_t found = 0;
  for (const auto& [term, coefficient] : sum.terms) {
    if (term.kind != index::TermKind::axis) return std::nullopt;
    const auto place = std::find(tensor.view.axes.begin(), tensor.view.axes.end(), term.axis);
    if (place == tensor.view.axes.end() || strides[static_cast<std::size_t>(place - tensor.view.axes.begin())] != coefficient)
      return std::nullopt;
    ++found;
  }
  // An axis that moves without a term reads one element several times.
  const auto moving = std::count_if(tensor.sizes.begin(), tensor.sizes.end(), [](std::int64_t n) { return n != 1; });
  if (static_cast<std::ptrdiff_t>(found) != moving) return std::nullopt;
  Index position;
  Tensor result = seen_with(context(), tensor, sizes, position);
  result.view.index = context().linear(position, trace::contiguous_strides(sizes), sum.constant);
  return result;
}

Tensor Builder::reshape(const Tensor& tensor, const Sizes& sizes) {
  if (sizes == tensor.sizes) return tensor;
  if (numel(sizes) != numel(tensor.sizes))
    throw MalformedNode{fmt::format("{} elements cannot be seen as [{}]", numel(tensor.sizes), fmt::join(sizes, ","))};
  const Sizes strides = trace::contiguous_strides(tensor.sizes);
  if (std::optional<Tensor> seen = reshape_row_major(tensor, strides, sizes)) return *std::move(seen);
  return reindex(tensor, sizes, [&](const Index& position) {
    const index::Expression flat = loop::flatten(context(), position, sizes);
    Index source;
    source.reserve(tensor.sizes.size());
    for (std::size_t k = 0; k < tensor.sizes.size(); ++k) {
      // An extent of 0 has no element to name, and no divisor either.
      if (tensor.sizes[k] <= 1) {
        source.push_back(context().constant(0));
        continue;
      }
      const index::Expression above = context().floor_div(flat, std::max<std::int64_t>(1, strides[k]));
      source.push_back(k == 0 ? above : context().mod(above, tensor.sizes[k]));
    }
    return source;
  });
}

Tensor Builder::permute(const Tensor& tensor, const std::vector<std::size_t>& order) {
  Sizes sizes;
  std::vector<bool> seen(tensor.sizes.size(), false);
  for (std::size_t d : order) {
    if (d >= seen.size() || seen[d]) throw MalformedNode{"a permutation that does not name every dimension once"};
    seen[d] = true;
    sizes.push_back(tensor.sizes[d]);
  }
  if (order.size() != seen.size()) throw MalformedNode{"a permutation that does not name every dimension once"};
  return reindex(tensor, sizes, [&](const Index& position) {
    Index source(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) source[order[k]] = position[k];
    return source;
  });
}

Tensor Builder::expand(const Tensor& tensor, const Sizes& sizes) {
  if (sizes.size() < tensor.sizes.size()) throw MalformedNode{"an expansion to a lower rank"};
  const std::size_t offset = sizes.size() - tensor.sizes.size();
  for (std::size_t k = 0; k < tensor.sizes.size(); ++k)
    if (tensor.sizes[k] != 1 && tensor.sizes[k] != sizes[offset + k])
      throw MalformedNode{fmt::format("extent {} does not expand to {}", tensor.sizes[k], sizes[offset + k])};
  return reindex(tensor, sizes, [&](const Index& position) {
    Index source;
    source.reserve(tensor.sizes.size());
    for (std::size_t k = 0; k < tensor.sizes.size(); ++k)
      source.push_back(tensor.sizes[k] == 1 ? context().constant(0) : position[offset + k]);
    return source;
  });
}

Tensor Builder::pointwise(std::string name, const Sizes& sizes, DType dtype, const std::function<int(NestBuilder&)>& body,
                          const trace::TensorMeta* like) {
  NestBuilder nest(*this, std::move(name), sizes, {}, like ? memory_order(*like) : std::vector<std::size_t>{});
  return nest.store(body(nest), dtype);
}

namespace {

loop::Scalar identity(loop::ReduceOp op, DType dtype) {
  switch (op) {
    case loop::ReduceOp::sum: return to_scalar(0, dtype);
    case loop::ReduceOp::prod: return to_scalar(1, dtype);
    case loop::ReduceOp::any: return false;
    case loop::ReduceOp::all: return true;
    default: return to_scalar(0, dtype);
  }
}

}  // namespace

Tensor Builder::reduction(std::string name, const Sizes& sizes, const std::vector<std::size_t>& dims, loop::ReduceOp op,
                          DType accumulate, DType result, bool keep, const std::function<int(NestBuilder&)>& body,
                          const std::function<int(NestBuilder&, int)>& after) {
  if (points(sizes, dims) == 0) {
    // Nothing to reduce: every result is the identity. (Reductions without one are refused before this.)
    Sizes outer;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      const bool is_reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
      if (!is_reduced || keep) outer.push_back(is_reduced ? 1 : sizes[d]);
    }
    return pointwise(std::move(name), outer, result, [&](NestBuilder& nest) {
      const int value = nest.constant(identity(op, accumulate), accumulate);
      return after ? after(nest, value) : value;
    });
  }
  NestBuilder nest(*this, std::move(name), sizes, dims);
  int value = nest.reduce(op, body(nest), accumulate);
  if (after) value = after(nest, value);
  return nest.store(value, result, keep);
}

Tensor Builder::average(std::string name, const Sizes& sizes, const std::vector<std::size_t>& dims, DType c,
                        const std::function<int(NestBuilder&)>& body) {
  double count = 1;
  for (std::size_t d : dims) count *= static_cast<double>(sizes[d]);
  return reduction(std::move(name), sizes, dims, loop::ReduceOp::sum, c, c, true, body,
                   [&](NestBuilder& nest, int total) { return nest.div(total, nest.number(count, total)); });
}

Tensor Builder::materialise(const Tensor& tensor, std::string_view name) {
  return pointwise(std::string(name), tensor.sizes, tensor.dtype, [&](NestBuilder& nest) { return nest.load(tensor); });
}

void Builder::add_step(loop::Step step) { new_steps.push_back(program_.steps.add(std::move(step))); }

loop::NestId Builder::add_nest(loop::Nest nest) {
  const loop::NestId id = program_.nests.add(std::move(nest));
  // A nest over no element is never run: its buffer is empty.
  const loop::Nest& added = program_.nests[id];
  bool empty = false;
  for (std::size_t k = 0; k < added.axes.size(); ++k) empty = empty || context().axis(added.axes[k]).extent == 0;
  if (!empty) add_step({id});
  return id;
}

DType scalar_dtype(const loop::Scalar& scalar) {
  if (std::holds_alternative<bool>(scalar)) return DType::b8;
  return std::holds_alternative<std::int64_t>(scalar) ? DType::i64 : DType::f32;
}

double as_double(const loop::Scalar& scalar) {
  if (const auto* b = std::get_if<bool>(&scalar)) return *b ? 1 : 0;
  if (const auto* i = std::get_if<std::int64_t>(&scalar)) return static_cast<double>(*i);
  return std::get<double>(scalar);
}

loop::Scalar to_scalar(double value, DType dtype) {
  if (is_bool(dtype)) return value != 0;
  if (is_integer(dtype)) return static_cast<std::int64_t>(value);
  return value;
}

}  // namespace pallascope::lower
