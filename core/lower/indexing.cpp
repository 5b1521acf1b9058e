// Family: reads through an index tensor. Each becomes a load whose index holds a symbol: the value of the index load.
#include <algorithm>

#include <fmt/format.h>

#include "core/lower/builder.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;

bool integer_index(const Tensor& index) { return index.dtype == DType::i64 || index.dtype == DType::i32; }

/// An index value where negatives count from the end, as Python does.
index::Expression wrapped(NestBuilder& nest, int value, std::int64_t extent) {
  const DType d = nest.dtype(value);
  const int negative = nest.compare(ComputeOp::lt, value, nest.constant(std::int64_t{0}, d));
  const int from_end = nest.add(value, nest.constant(extent, d));
  return nest.symbol(nest.where(negative, from_end, value), 0, extent - 1);
}

/// embedding(weight, indices): one row of weight an index; negative indices are errors.
Lowered embedding(Call& call) {
  const Tensor weight = call.tensor(0, "weight"), indices = call.tensor(1, "indices");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(weight.dtype) || !integer_index(indices)) return declined_dtype();
  if (weight.rank() != 2 || meta.rank() == 0) throw MalformedNode{"a weight that is no matrix"};
  if (weight.sizes[0] == 0 && meta.numel() > 0) return declined("an embedding without rows");
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    const Index position(nest.index().begin(), nest.index().end() - 1);
    const index::Expression row = nest.symbol(nest.load_at(indices, position), 0, weight.sizes[0] - 1);
    return nest.load_at(weight, {row, nest.index().back()});
  }));
  return as_kernel();
}

/// index_select(x, dim, index)
Lowered index_select(Call& call) {
  const Tensor x = call.tensor(0, "self"), indices = call.tensor(2, "index");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype) || !integer_index(indices)) return declined_dtype();
  if (x.rank() == 0 || indices.rank() == 0) return declined("index_select of rank 0");
  const std::size_t d = Call::dim(call.integer(1, "dim"), x.rank());
  if (x.sizes[d] == 0 && meta.numel() > 0) return declined("an indexed axis of extent 0");
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    Index position = nest.index();
    position[d] = nest.symbol(nest.load_at(indices, {nest.index(d)}), 0, x.sizes[d] - 1);
    return nest.load_at(x, position);
  }));
  return as_kernel();
}

/// gather(x, dim, index): out[i][j] = x[index[i][j]][j]; index may be smaller than x.
Lowered gather(Call& call) {
  const Tensor x = call.tensor(0, "self"), indices = call.tensor(2, "index");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype) || !integer_index(indices)) return declined_dtype();
  if (x.rank() == 0 || indices.rank() != x.rank()) return declined("gather of rank 0");
  const std::size_t d = Call::dim(call.integer(1, "dim"), x.rank());
  if (x.sizes[d] == 0 && meta.numel() > 0) return declined("an indexed axis of extent 0");
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    Index position = nest.index();
    position[d] = nest.symbol(nest.load_at(indices, nest.index()), 0, x.sizes[d] - 1);
    return nest.load_at(x, position);
  }));
  return as_kernel();
}

/// index(x, [i, None, j]): advanced indexing. The broadcast index dimensions stand where the first index was if the
/// indices are neighbours, else in front.
Lowered index_tensor(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype)) return declined_dtype();
  const trace::Argument* argument = call.argument(1, "indices");
  const auto* list = argument == nullptr ? nullptr : argument->get<trace::ArgumentList>();
  if (list == nullptr) return declined("index without a list");
  std::vector<std::optional<Tensor>> indices(x.sizes.size());
  std::size_t broadcast_rank = 0;
  std::vector<std::size_t> indexed;
  for (std::size_t k = 0; k < list->size() && k < indices.size(); ++k) {
    const auto* value = (*list)[k].get<trace::ValueId>();
    if (value == nullptr) continue;
    indices[k] = call.builder.tensor(*value);
    if (!integer_index(*indices[k])) return declined("a mask as an index: the result's size depends on data");
    if (x.sizes[k] == 0 && meta.numel() > 0) return declined("an indexed axis of extent 0");
    broadcast_rank = std::max(broadcast_rank, indices[k]->sizes.size());
    indexed.push_back(k);
  }
  if (indexed.empty()) return declined("index without a tensor");
  const bool neighbours = indexed.back() - indexed.front() + 1 == indexed.size();
  const std::size_t place = neighbours ? indexed.front() : 0;
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    Index position;
    std::size_t next = 0;
    for (std::size_t k = 0; k < x.sizes.size(); ++k) {
      if (next == place) next += broadcast_rank;
      if (!indices[k]) {
        position.push_back(nest.index(next++));
        continue;
      }
      const Tensor& i = *indices[k];
      Index at;
      for (std::size_t q = 0; q < i.sizes.size(); ++q)
        at.push_back(i.sizes[q] == 1 ? call.builder.context().constant(0)
                                     : nest.index(place + broadcast_rank - i.sizes.size() + q));
      position.push_back(wrapped(nest, nest.load_at(i, at), x.sizes[k]));
    }
    return nest.load_at(x, position);
  }));
  return as_kernel();
}

}  // namespace

std::vector<Entry> indexing_entries() {
  return {{"aten.embedding.default", "indexing", embedding},
          {"aten.index_select.default", "indexing", index_select},
          {"aten.gather.default", "indexing", gather},
          {"aten.index.Tensor", "indexing", index_tensor},
          {"aten._unsafe_index.Tensor", "indexing", index_tensor}};
}

}  // namespace pallascope::lower
