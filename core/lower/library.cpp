#include "core/lower/library.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/index/access.h"

namespace pallascope::lower {

using loop::ComputeOp;
using loop::ReduceOp;

Tensor library_operand(Builder& builder, const Tensor& x, std::string_view name) {
  if (builder.program().accesses->of(builder.program(), x.view)->plan) return x;
  return builder.materialise(x, name);
}

std::vector<std::size_t> order_in_memory(Builder& builder, const Tensor& x) {
  std::vector<std::size_t> order(x.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  const std::optional<loop::AffineView> affine = loop::affine(builder.context(), x.view);
  if (!affine) return order;
  Sizes key = affine->strides;
  for (std::size_t k = key.size(); k-- > 0;) {
    // An extent of 1 stays before the dimension that follows it, an expanded one comes first.
    if (x.sizes[k] <= 1) key[k] = k + 1 < key.size() ? key[k + 1] : 0;
    key[k] = key[k] == 0 && x.sizes[k] > 1 ? INT64_MAX : std::abs(key[k]);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key[a] > key[b]; });
  return order;
}

Tensor ordered_result(Builder& builder, DType dtype, const Sizes& sizes, const std::vector<std::size_t>& order) {
  Sizes dims;
  std::vector<std::size_t> place(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    dims.push_back(sizes.at(order[k]));
    place[order[k]] = k;
  }
  return builder.permute(builder.row_major(builder.add_buffer(dtype, dims), dims), place);
}

void add_library_call(Call& call, loop::LibraryFunction function, const std::vector<Tensor>& operands,
                      const std::vector<Tensor>& results) {
  if (numel(results.at(0).sizes) == 0) return;
  loop::LibraryCall library;
  library.origin = call.builder.current;
  library.op = call.node.target;
  library.function = std::move(function);
  const std::vector<std::string_view> names = loop::operand_names(library.function);
  PALLASCOPE_CHECK(names.size() == operands.size(), call.node.name);
  for (std::size_t k = 0; k < operands.size(); ++k)
    library.operands.push_back(library_operand(call.builder, operands[k], call.node.name + "." + std::string(names[k])).view);
  for (const Tensor& result : results) library.outputs.push_back(result.view.buffer);
  call.builder.add_step({std::move(library)});
}

Lowered as_made(const Call& call) {
  const std::vector<loop::StepId>& steps = call.builder.new_steps;
  const bool calls = std::any_of(steps.begin(), steps.end(), [&](loop::StepId step) {
    return std::holds_alternative<loop::LibraryCall>(call.builder.program().steps[step].content);
  });
  return calls || steps.empty() ? as_library() : as_kernel();
}

Tensor filled(Builder& builder, const std::string& name, const Sizes& sizes, DType dtype, double value) {
  return builder.pointwise(name, sizes, dtype, [&](NestBuilder& nest) { return nest.constant(to_scalar(value, dtype), dtype); });
}

Tensor product(Call& call, Tensor lhs, Tensor rhs, DType result) {
  Builder& builder = call.builder;
  if (lhs.rank() < 2 || rhs.rank() < 2) throw MalformedNode{"a matrix product of something that is no matrix"};
  Sizes batch;
  const std::size_t lhs_batch = lhs.sizes.size() - 2, rhs_batch = rhs.sizes.size() - 2;
  for (std::size_t k = 0; k < std::max(lhs_batch, rhs_batch); ++k) {
    const std::size_t from_end = std::max(lhs_batch, rhs_batch) - k;
    const std::int64_t a = from_end <= lhs_batch ? lhs.sizes[lhs_batch - from_end] : 1;
    const std::int64_t b = from_end <= rhs_batch ? rhs.sizes[rhs_batch - from_end] : 1;
    batch.push_back(a == 1 ? b : a);
  }
  const std::int64_t m = lhs.sizes[lhs_batch], k = lhs.sizes[lhs_batch + 1], n = rhs.sizes[rhs_batch + 1];
  const auto with = [&](std::int64_t rows, std::int64_t columns) {
    Sizes sizes = batch;
    sizes.push_back(rows);
    sizes.push_back(columns);
    return sizes;
  };
  const Sizes sizes = with(m, n);
  if (k == 0) return filled(builder, call.node.name, sizes, result, 0);
  lhs = builder.expand(lhs, with(m, k));
  rhs = builder.expand(rhs, with(k, n));
  const Tensor made = builder.row_major(builder.add_buffer(result, sizes), sizes);
  add_library_call(call, loop::Product{}, {lhs, rhs}, {made});
  return made;
}

Tensor transposed(Builder& builder, const Tensor& x) {
  if (x.rank() < 2) throw MalformedNode{"a transposition of something that is no matrix"};
  std::vector<std::size_t> order(x.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return builder.permute(x, order);
}

Tensor as_matrix(Builder& builder, const Tensor& x) {
  if (x.rank() == 0) throw MalformedNode{"a matrix product of a scalar"};
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < x.sizes.size(); ++d) rows *= x.sizes[d];
  return builder.reshape(x, {rows, x.sizes.back()});
}

Tensor cast_tensor(Builder& builder, const Tensor& x, DType dtype, const std::string& name, const trace::TensorMeta* like) {
  if (x.dtype == dtype) return x;
  return builder.pointwise(name, x.sizes, dtype, [&](NestBuilder& nest) { return nest.cast(nest.load(x), dtype); }, like);
}

namespace {

bool has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

std::size_t place_of(const Labels& labels, int label) {
  return static_cast<std::size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin());
}

/// The sum of `x` over its labels that are not in `kept`.
Labelled summed(Call& call, const Labelled& x, const Labels& kept) {
  std::vector<std::size_t> dims;
  Labelled made;
  for (std::size_t k = 0; k < x.labels.size(); ++k) {
    if (!has(kept, x.labels[k])) {
      dims.push_back(k);
    } else {
      made.labels.push_back(x.labels[k]);
    }
  }
  if (dims.empty()) return x;
  const DType c = compute_dtype(x.tensor.dtype);
  made.tensor = call.builder.reduction(call.node.name + ".sum", x.tensor.sizes, dims, ReduceOp::sum, c, x.tensor.dtype, false,
                                       [&](NestBuilder& nest) { return nest.cast(nest.load(x.tensor), c); });
  return made;
}

}  // namespace

Tensor arranged(Builder& builder, const Labelled& x, const Labels& labels) {
  std::vector<std::size_t> order;
  for (const int label : labels) order.push_back(place_of(x.labels, label));
  return builder.permute(x.tensor, order);
}

Labelled contract(Call& call, const Labelled& first, const Labelled& second, const Labels& kept, DType result) {
  Builder& builder = call.builder;
  const auto needed_with = [&](const Labels& other) {
    Labels needed = kept;
    needed.insert(needed.end(), other.begin(), other.end());
    return needed;
  };
  const Labelled a = summed(call, first, needed_with(second.labels)), b = summed(call, second, needed_with(a.labels));
  Labels batch, inner, left, right;
  Sizes batch_sizes, left_sizes, right_sizes;
  std::int64_t k = 1;
  for (std::size_t d = 0; d < a.labels.size(); ++d) {
    const int label = a.labels[d];
    const std::int64_t extent = a.tensor.sizes[d];
    if (!has(b.labels, label)) {
      left.push_back(label);
      left_sizes.push_back(extent);
    } else if (b.tensor.sizes[place_of(b.labels, label)] != extent) {
      throw MalformedNode{"a contraction of extents that differ"};
    } else if (has(kept, label)) {
      batch.push_back(label);
      batch_sizes.push_back(extent);
    } else {
      inner.push_back(label);
      k *= extent;
    }
  }
  for (std::size_t d = 0; d < b.labels.size(); ++d)
    if (!has(a.labels, b.labels[d])) {
      right.push_back(b.labels[d]);
      right_sizes.push_back(b.tensor.sizes[d]);
    }
  const auto joined = [](const auto& one, const auto& two, const auto& three) {
    auto all = one;
    all.insert(all.end(), two.begin(), two.end());
    all.insert(all.end(), three.begin(), three.end());
    return all;
  };
  const auto shaped = [&](const Labelled& x, const Labels& one, const Labels& two, Sizes last) {
    const Tensor put = arranged(builder, x, joined(batch, one, two));
    Sizes sizes = batch_sizes;
    sizes.insert(sizes.end(), last.begin(), last.end());
    return builder.reshape(put, sizes);
  };
  Labelled made;
  made.labels = joined(batch, left, right);
  const Sizes sizes = joined(batch_sizes, left_sizes, right_sizes);
  if (inner.empty()) {
    // Nothing is added up: a nest, so that what is around can fuse with it.
    const DType c = compute_dtype(result);
    const Tensor lhs = arranged(builder, a, joined(batch, left, Labels{}));
    const Tensor rhs = arranged(builder, b, joined(batch, Labels{}, right));
    made.tensor = builder.pointwise(call.node.name, sizes, result, [&](NestBuilder& nest) {
      Index at_lhs, at_rhs;
      for (std::size_t d = 0; d < sizes.size(); ++d) {
        if (d < batch.size() + left.size()) at_lhs.push_back(nest.index(d));
        if (d < batch.size() || d >= batch.size() + left.size()) at_rhs.push_back(nest.index(d));
      }
      const int x = nest.cast(nest.load_at(lhs, at_lhs), c), y = nest.cast(nest.load_at(rhs, at_rhs), c);
      return is_bool(c) ? nest.op(ComputeOp::logical_and, x, y) : nest.mul(x, y);
    });
    return made;
  }
  const std::int64_t m = numel(left_sizes), n = numel(right_sizes);
  const Tensor lhs = shaped(a, left, inner, {m, k}), rhs = shaped(b, inner, right, {k, n});
  made.tensor = builder.reshape(product(call, lhs, rhs, result), sizes);
  return made;
}

}  // namespace pallascope::lower
