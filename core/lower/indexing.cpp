// Family: reads through an index tensor. Each becomes a load whose index holds a symbol: the value of the index load.
#include <algorithm>

#include <fmt/format.h>

#include "core/lower/index_list.h"
#include "core/lower/scatter.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;

/// An index where negatives count from the end.
int from_front(NestBuilder& nest, int value, std::int64_t extent) {
  const DType d = nest.dtype(value);
  const int negative = nest.compare(ComputeOp::lt, value, nest.constant(std::int64_t{0}, d));
  return nest.where(negative, nest.add(value, nest.constant(extent, d)), value);
}

/// The element at `position`; 0 where `x` has none, since the check of the index then raises.
int element(NestBuilder& nest, const Tensor& x, const Index& position) {
  if (std::find(x.sizes.begin(), x.sizes.end(), 0) != x.sizes.end()) return nest.constant(to_scalar(0, x.dtype), x.dtype);
  return nest.load_at(x, position);
}

/// embedding(weight, indices): one row of weight an index; negative indices are errors.
Lowered embedding(Call& call) {
  const Tensor weight = call.tensor(0, "weight"), indices = call.tensor(1, "indices");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(weight.dtype) || !integer_index(indices)) return declined_dtype();
  if (weight.rank() != 2 || meta.rank() == 0) throw MalformedNode{"a weight that is no matrix"};
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    const Index position(nest.index().begin(), nest.index().end() - 1);
    const index::Expression row = nest.symbol(nest.load_at(indices, position), 0, weight.sizes[0] - 1);
    return element(nest, weight, {row, nest.index().back()});
  }));
  return as_kernel();
}

/// index_select(x, dim, index)
Lowered index_select(Call& call) {
  const Tensor x = at_least_1d(call.builder, call.tensor(0, "self"));
  const Tensor indices = at_least_1d(call.builder, call.tensor(2, "index"));
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype) || !integer_index(indices)) return declined_dtype();
  const std::size_t d = Call::dim(call.integer(1, "dim"), x.rank());
  Sizes sizes = x.sizes;
  sizes[d] = indices.sizes[0];
  const Tensor taken = call.builder.pointwise(call.node.name, sizes, meta.dtype, [&](NestBuilder& nest) {
    Index position = nest.index();
    position[d] = nest.symbol(nest.load_at(indices, {nest.index(d)}), 0, x.sizes[d] - 1);
    return element(nest, x, position);
  });
  call.define(call.builder.reshape(taken, meta.sizes));
  return as_kernel();
}

/// gather(x, dim, index): out[i][j] = x[index[i][j]][j]; index may be smaller than x.
Lowered gather(Call& call) {
  const Tensor x = at_least_1d(call.builder, call.tensor(0, "self"));
  const Tensor indices = at_least_1d(call.builder, call.tensor(2, "index"));
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype) || !integer_index(indices)) return declined_dtype();
  if (indices.rank() != x.rank()) throw MalformedNode{"an index of another rank"};
  const std::size_t d = Call::dim(call.integer(1, "dim"), x.rank());
  const Tensor taken = call.builder.pointwise(call.node.name, indices.sizes, meta.dtype, [&](NestBuilder& nest) {
    Index position = nest.index();
    position[d] = nest.symbol(nest.load_at(indices, nest.index()), 0, x.sizes[d] - 1);
    return element(nest, x, position);
  });
  call.define(call.builder.reshape(taken, meta.sizes));
  return as_kernel();
}

/// take(x, index): elements of x in row-major order.
Lowered take(Call& call) {
  Tensor x = call.tensor(0, "self");
  const Tensor indices = call.tensor(1, "index");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype) || !integer_index(indices)) return declined_dtype();
  const std::int64_t count = element_count(x.sizes);
  x = call.builder.reshape(x, {count});
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    return element(nest, x, {wrapped(nest, nest.load(indices), count)});
  }));
  return as_kernel();
}

/// take_along_dim(x, index, dim): gather where x and the index broadcast along the other dimensions, and any index counts
/// modulo the extent, as in PyTorch; without a dim, a checked gather from the elements of x in row-major order.
Lowered take_along_dim(Call& call) {
  Tensor x = call.tensor(0, "self"), indices = call.tensor(1, "indices");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype) || !integer_index(indices)) return declined_dtype();
  std::size_t d = 0;
  const bool modulo = call.has(2, "dim");
  if (modulo) {
    d = Call::dim(call.integer(2, "dim"), x.rank());
  } else {
    x = call.builder.reshape(x, {element_count(x.sizes)});
    indices = call.builder.reshape(indices, {element_count(indices.sizes)});
  }
  x = at_least_1d(call.builder, x);
  indices = at_least_1d(call.builder, indices);
  if (x.rank() != indices.rank()) throw MalformedNode{"an index of another rank"};
  Sizes sizes = indices.sizes, from = x.sizes;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (k == d) continue;
    if (sizes[k] == 1) sizes[k] = x.sizes[k];
    from[k] = sizes[k];
  }
  x = call.builder.expand(x, from);
  const Tensor taken = call.builder.pointwise(call.node.name, sizes, meta.dtype, [&](NestBuilder& nest) {
    Index position = nest.index();
    const int value = nest.load(indices);
    if (!modulo) {
      position[d] = nest.symbol(value, 0, x.sizes[d] - 1);
      return element(nest, x, position);
    }
    const int extent = nest.constant(x.sizes[d], nest.dtype(value));
    if (x.sizes[d] == 0) {
      nest.check_nonzero(extent);
      return nest.constant(to_scalar(0, x.dtype), x.dtype);
    }
    position[d] = nest.known_symbol(nest.op(ComputeOp::rem_floor, value, extent), 0, x.sizes[d] - 1);
    return element(nest, x, position);
  });
  call.define(call.builder.reshape(taken, meta.sizes));
  return as_kernel();
}

/// one_hot(x, classes): 1 where the class is the element's. A class that is not there is an error.
Lowered one_hot(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (x.dtype != DType::i64 || meta.rank() != x.rank() + 1) return declined_dtype();
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    const int value = nest.load_at(x, Index(nest.index().begin(), nest.index().end() - 1));
    const int low = nest.compare(ComputeOp::ge, value, nest.constant(std::int64_t{0}, DType::i64));
    const int high = nest.compare(ComputeOp::lt, value, nest.constant(meta.sizes.back(), DType::i64));
    nest.check(low, "Class values must be non-negative.");
    nest.check(high, "Class values must be smaller than num_classes.");
    return nest.cast(nest.compare(ComputeOp::eq, value, nest.index_value(nest.index().back(), DType::i64)), DType::i64);
  }));
  return as_kernel();
}

/// _assert_async(x, message): a check and no value.
Lowered assertion(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!is_kernel_dtype(x.dtype) || element_count(x.sizes) != 1) return declined_dtype();
  const std::string message = call.text(1, "assert_msg", "Expected Tensor with single nonzero value, but got zero");
  call.builder.pointwise(call.node.name, x.sizes, DType::b8, [&](NestBuilder& nest) {
    const int value = nest.cast(nest.load(x), DType::b8);
    nest.check(value, message);
    return value;
  });
  return as_kernel();
}

/// index(x, [i, None, j])
Lowered index_tensor(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype)) return declined_dtype();
  const IndexList list = index_list(call, x);
  if (!list.declined.empty()) return declined(list.declined);
  call.define(call.builder.pointwise(call.node.name, list.sizes, meta.dtype, [&](NestBuilder& nest) {
    return element(nest, x, list.position(nest, x, nest.index()));
  }));
  return as_kernel();
}

/// _unsafe_masked_index(x, mask, [i, j], fill): fill where the mask is false, whatever the index there. An index that is
/// out of range under a true mask is the graph's own business, as in PyTorch, which moves it into range.
Lowered masked_index(Call& call) {
  const Tensor x = call.tensor(0, "self"), mask = call.tensor(1, "mask");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype) || !is_bool(mask.dtype)) return declined_dtype();
  const IndexList list = index_list(call, x, 2, IndexUse::clamped);
  if (!list.declined.empty()) return declined(list.declined);
  const loop::Scalar fill = call.scalar(3, "fill");
  call.define(call.builder.pointwise(call.node.name, list.sizes, meta.dtype, [&](NestBuilder& nest) {
    const int value = element(nest, x, list.position(nest, x, nest.index()));
    return nest.where(nest.load(mask), value, nest.constant(fill, x.dtype));
  }));
  return as_kernel();
}

}  // namespace

index::Expression wrapped(NestBuilder& nest, int value, std::int64_t extent) {
  return nest.symbol(from_front(nest, value, extent), 0, extent - 1);
}

Index IndexList::position(NestBuilder& nest, const Tensor& x, const Index& at) const {
  Index found;
  std::size_t next = 0;
  for (std::size_t k = 0; k < x.sizes.size(); ++k) {
    if (next == place) next += rank;
    if (!indices[k]) {
      found.push_back(at[next++]);
      continue;
    }
    const Tensor& i = *indices[k];
    Index here;
    for (std::size_t q = 0; q < i.sizes.size(); ++q)
      here.push_back(i.sizes[q] == 1 ? nest.constant_index(0) : at[place + rank - i.sizes.size() + q]);
    const int value = nest.load_at(i, here);
    if (use == IndexUse::checked) {
      found.push_back(wrapped(nest, value, x.sizes[k]));
      continue;
    }
    const DType d = nest.dtype(value);
    const std::int64_t extent = x.sizes[k], last = std::max<std::int64_t>(0, extent - 1);
    const int low = nest.op(ComputeOp::maximum, value, nest.constant(-extent, d));
    found.push_back(nest.known_symbol(from_front(nest, nest.op(ComputeOp::minimum, low, nest.constant(last, d)), extent), 0, last));
  }
  return found;
}

IndexList index_list(const Call& call, const Tensor& x, std::size_t argument, IndexUse use) {
  IndexList found;
  found.use = use;
  const trace::Argument* given = call.argument(argument, "indices");
  const auto* list = given == nullptr ? nullptr : given->get<trace::ArgumentList>();
  if (list == nullptr || list->size() > x.sizes.size()) throw MalformedNode{"a list of indices that does not fit"};
  found.indices.resize(x.sizes.size());
  std::vector<std::size_t> indexed;
  Sizes common;
  for (std::size_t k = 0; k < list->size(); ++k) {
    const auto* value = (*list)[k].get<trace::ValueId>();
    if (value == nullptr) continue;
    const Tensor index = call.builder.tensor(*value);
    if (!integer_index(index)) {
      found.declined = "a mask as an index: the result's size depends on data";
      return found;
    }
    indexed.push_back(k);
    const std::size_t more = std::max(common.size(), index.sizes.size());
    common.insert(common.begin(), more - common.size(), 1);
    for (std::size_t q = 0; q < index.sizes.size(); ++q) {
      std::int64_t& n = common[more - index.sizes.size() + q];
      if (n != 1 && index.sizes[q] != 1 && n != index.sizes[q]) throw MalformedNode{"indices that do not broadcast"};
      if (index.sizes[q] != 1) n = index.sizes[q];
    }
    found.indices[k] = index;
  }
  if (indexed.empty()) {
    found.declined = "indexing without an index";
    return found;
  }
  const bool neighbours = indexed.back() - indexed.front() + 1 == indexed.size();
  found.place = neighbours ? indexed.front() : 0;
  found.rank = common.size();
  for (std::size_t k = 0; k < x.sizes.size(); ++k)
    if (!found.indices[k]) found.sizes.push_back(x.sizes[k]);
  found.sizes.insert(found.sizes.begin() + static_cast<std::ptrdiff_t>(found.place), common.begin(), common.end());
  return found;
}

std::optional<MaskIndex> lone_mask(const Call& call) {
  const trace::Argument* given = call.argument(1, "indices");
  const auto* list = given == nullptr ? nullptr : given->get<trace::ArgumentList>();
  std::optional<MaskIndex> found;
  for (std::size_t k = 0; list != nullptr && k < list->size(); ++k) {
    const auto* value = (*list)[k].get<trace::ValueId>();
    if (value == nullptr) continue;
    const Tensor mask = call.builder.tensor(*value);
    if (found || !(is_bool(mask.dtype) || mask.dtype == DType::u8)) return std::nullopt;
    found = MaskIndex{mask, k};
  }
  return found;
}

std::vector<Entry> indexing_entries() {
  return {{"aten.embedding.default", "indexing", embedding},
          {"aten.index_select.default", "indexing", index_select},
          {"aten.gather.default", "indexing", gather},
          {"aten.take.default", "indexing", take},
          {"aten.take_along_dim.default", "indexing", take_along_dim},
          {"aten.one_hot.default", "indexing", one_hot},
          {"aten._assert_async.default", "indexing", assertion},
          {"aten._assert_async.msg", "indexing", assertion},
          {"aten.index.Tensor", "indexing", index_tensor},
          {"aten._unsafe_index.Tensor", "indexing", index_tensor},
          {"aten._unsafe_masked_index.default", "indexing", masked_index}};
}

}  // namespace pallascope::lower
