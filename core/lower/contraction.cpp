// Family: products of tensors with any dimensions: einsum, tensordot, kron, chains of matrices. Each becomes products of
// two with named dimensions (`contract`).
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "core/lower/library.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;
using loop::ReduceOp;

/// Sums of booleans are left to PyTorch, which refuses most of them.
bool in_kernel(const Call& call) { return is_kernel_dtype(call.meta().dtype) && !is_bool(call.meta().dtype); }

int multiplied(NestBuilder& nest, int a, int b) {
  return is_bool(nest.dtype(a)) ? nest.op(ComputeOp::logical_and, a, b) : nest.mul(a, b);
}

// --------------------------------------------------------------------------------------------------- einsum

/// An ellipsis stands for dimensions that are counted from its end: its k-th last is label ellipsis_base + k.
constexpr int ellipsis_base = 1000;

struct Equation {
  std::vector<Labels> operands;
  Labels result;
};

/// One side of the equation; `hidden` dimensions stand where the ellipsis is.
Labels labels_of(std::string_view text, std::size_t hidden) {
  Labels labels;
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (text[k] == '.') {
      if (text.substr(k, 3) != "...") throw MalformedNode{"an ellipsis that is none"};
      for (std::size_t h = hidden; h-- > 0;) labels.push_back(ellipsis_base + static_cast<int>(h));
      k += 2;
    } else {
      labels.push_back(text[k]);
    }
  }
  return labels;
}

Equation parse(std::string text, const std::vector<Tensor>& operands) {
  std::erase(text, ' ');
  const std::size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  Equation equation;
  std::size_t start = 0, widest = 0;
  for (const Tensor& x : operands) {
    if (start > left.size()) throw MalformedNode{"an equation of fewer operands"};
    const std::size_t comma = std::min(left.find(',', start), left.size());
    const std::string_view own = std::string_view(left).substr(start, comma - start);
    start = comma + 1;
    std::size_t hidden = 0;
    if (own.find('.') != std::string_view::npos) {
      if (x.sizes.size() + 3 < own.size()) throw MalformedNode{"an operand of too few dimensions"};
      hidden = x.sizes.size() + 3 - own.size();
    }
    widest = std::max(widest, hidden);
    equation.operands.push_back(labels_of(own, hidden));
    if (equation.operands.back().size() != x.sizes.size()) throw MalformedNode{"an operand of another rank than its labels"};
  }
  if (arrow != std::string::npos) {
    equation.result = labels_of(std::string_view(text).substr(arrow + 2), widest);
    return equation;
  }
  // Without an arrow: the ellipsis, then the labels that stand once, in their order.
  std::map<int, int> count;
  for (const Labels& labels : equation.operands)
    for (const int label : labels) ++count[label];
  for (std::size_t h = widest; h-- > 0;) equation.result.push_back(ellipsis_base + static_cast<int>(h));
  for (const auto& [label, times] : count)
    if (label < ellipsis_base && times == 1) equation.result.push_back(label);
  return equation;
}

/// The operand with each label once (a repeated one is a diagonal), and without those that are broadcast.
Labelled distinct(Builder& builder, const Tensor& x, const Labels& labels, const std::map<int, std::int64_t>& extents) {
  Labelled made;
  Sizes sizes;
  for (std::size_t d = 0; d < labels.size(); ++d) {
    const bool known = std::find(made.labels.begin(), made.labels.end(), labels[d]) != made.labels.end();
    if (known || x.sizes[d] != extents.at(labels[d])) continue;
    made.labels.push_back(labels[d]);
    sizes.push_back(x.sizes[d]);
  }
  if (made.labels == labels) return {x, labels};
  made.tensor = builder.reindex(x, sizes, [&](const Index& at) {
    Index source;
    for (std::size_t d = 0; d < labels.size(); ++d) {
      const auto place = std::find(made.labels.begin(), made.labels.end(), labels[d]) - made.labels.begin();
      source.push_back(x.sizes[d] == 1 ? builder.context().constant(0) : at.at(static_cast<std::size_t>(place)));
    }
    return source;
  });
  return made;
}

/// einsum(equation, operands, *, path)
Lowered einsum(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  Builder& builder = call.builder;
  const std::vector<Tensor> tensors = call.tensors(1, "tensors");
  if (tensors.empty()) throw MalformedNode{"an equation of nothing"};
  const Equation equation = parse(call.text(0, "equation"), tensors);
  std::map<int, std::int64_t> extents;
  for (std::size_t k = 0; k < tensors.size(); ++k)
    for (std::size_t d = 0; d < tensors[k].sizes.size(); ++d) {
      const auto [at, added] = extents.emplace(equation.operands[k][d], tensors[k].sizes[d]);
      if (!added && at->second == 1) at->second = tensors[k].sizes[d];
      if (at->second != tensors[k].sizes[d] && tensors[k].sizes[d] != 1) throw MalformedNode{"a label of two extents"};
    }
  std::vector<Labelled> left;
  for (std::size_t k = 0; k < tensors.size(); ++k) left.push_back(distinct(builder, tensors[k], equation.operands[k], extents));
  // Which two come next: as the path says, else the first two.
  const Sizes path = call.integers(99, "path");
  const trace::TensorMeta& meta = call.meta();
  for (std::size_t k = 0; left.size() > 1; ++k) {
    std::size_t one = 0, two = 1;
    const bool given = 2 * k + 1 < path.size();
    if (given) {
      one = static_cast<std::size_t>(std::min(path[2 * k], path[2 * k + 1]));
      two = static_cast<std::size_t>(std::max(path[2 * k], path[2 * k + 1]));
      if (one == two || two >= left.size()) throw MalformedNode{"a path to operands that are not there"};
    }
    const Labelled a = left[one], b = left[two];
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(two));
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(one));
    Labels kept = equation.result;
    for (const Labelled& other : left) kept.insert(kept.end(), other.labels.begin(), other.labels.end());
    left.insert(given ? left.end() : left.begin(), contract(call, a, b, kept, meta.dtype));
  }
  Labelled result = left[0];
  std::vector<std::size_t> dims;
  Labels rest;
  for (std::size_t d = 0; d < result.labels.size(); ++d) {
    if (std::find(equation.result.begin(), equation.result.end(), result.labels[d]) == equation.result.end()) {
      dims.push_back(d);
    } else {
      rest.push_back(result.labels[d]);
    }
  }
  if (!dims.empty()) {
    const DType c = compute_dtype(meta.dtype);
    const Tensor x = result.tensor;
    result = {builder.reduction(call.node.name, x.sizes, dims, ReduceOp::sum, c, meta.dtype, false,
                                [&](NestBuilder& nest) { return nest.cast(nest.load(x), c); }),
              rest};
  }
  call.define(builder.reshape(arranged(builder, result, equation.result), meta.sizes));
  if (tensors.size() > 1) return as_made(call);
  return dims.empty() ? as_view() : as_kernel();
}

// ------------------------------------------------------------------------------------------------ tensordot

Labels counted(std::size_t rank, int from) {
  Labels labels(rank);
  std::iota(labels.begin(), labels.end(), from);
  return labels;
}

/// The product of a and b over pairs of dimensions; what is left stands in order, a's first.
Tensor over_pairs(Call& call, const Tensor& a, const Tensor& b, const std::vector<std::size_t>& a_dims,
                  const std::vector<std::size_t>& b_dims) {
  Builder& builder = call.builder;
  Labels labels = counted(a.sizes.size(), 0), others = counted(b.sizes.size(), 100), kept;
  Tensor x = a, y = b;
  if (a_dims.size() != b_dims.size()) throw MalformedNode{"unequal numbers of dimensions"};
  for (std::size_t k = 0; k < a_dims.size(); ++k) {
    // One of the two may be broadcast: the other is added up then.
    const std::int64_t m = a.sizes.at(a_dims[k]), n = b.sizes.at(b_dims[k]);
    if (m == n) {
      others[b_dims[k]] = labels[a_dims[k]];
    } else if (m != 1 && n != 1) {
      throw MalformedNode{"a contraction of extents that differ"};
    }
  }
  const auto is_in = [](const std::vector<std::size_t>& dims, std::size_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
  for (std::size_t d = 0; d < a.sizes.size(); ++d)
    if (!is_in(a_dims, d)) kept.push_back(labels[d]);
  for (std::size_t d = 0; d < b.sizes.size(); ++d)
    if (!is_in(b_dims, d)) kept.push_back(others[d]);
  return arranged(builder, contract(call, {x, labels}, {y, others}, kept, call.meta().dtype), kept);
}

/// tensordot(self, other, dims_self, dims_other)
Lowered tensordot(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  const Tensor a = call.tensor(0, "self"), b = call.tensor(1, "other");
  std::vector<std::size_t> a_dims, b_dims;
  for (const std::int64_t d : call.integers(2, "dims_self")) a_dims.push_back(Call::dim(d, a.rank()));
  for (const std::int64_t d : call.integers(3, "dims_other")) b_dims.push_back(Call::dim(d, b.rank()));
  call.define(call.builder.reshape(over_pairs(call, a, b, a_dims, b_dims), call.meta().sizes));
  return as_made(call);
}

/// inner(self, other): over the last dimension of both; a number multiplies.
Lowered inner(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  const Tensor a = call.tensor(0, "self"), b = call.tensor(1, "other");
  const trace::TensorMeta& meta = call.meta();
  if (a.rank() > 0 && b.rank() > 0) {
    call.define(call.builder.reshape(over_pairs(call, a, b, {a.sizes.size() - 1}, {b.sizes.size() - 1}), meta.sizes));
    return as_made(call);
  }
  const DType c = compute_dtype(meta.dtype);
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    return multiplied(nest, nest.cast(nest.load(a), c), nest.cast(nest.load(b), c));
  }));
  return as_kernel();
}

/// kron(self, other): element i of a dimension of extent m * n is self[i / n] * other[i % n].
Lowered kron(Call& call) {
  if (!is_kernel_dtype(call.meta().dtype)) return declined_dtype();
  Builder& builder = call.builder;
  const trace::TensorMeta& meta = call.meta();
  const DType c = compute_dtype(meta.dtype);
  const auto padded = [&](const Tensor& x) {
    Sizes sizes(meta.sizes.size() - x.sizes.size(), 1);
    sizes.insert(sizes.end(), x.sizes.begin(), x.sizes.end());
    return builder.reshape(x, sizes);
  };
  const Tensor a = padded(call.tensor(0, "self")), b = padded(call.tensor(1, "other"));
  call.define(builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    Index outer, inner;
    for (std::size_t d = 0; d < meta.sizes.size(); ++d) {
      const std::int64_t n = std::max<std::int64_t>(1, b.sizes[d]);
      outer.push_back(builder.context().floor_div(nest.index(d), n));
      inner.push_back(builder.context().mod(nest.index(d), n));
    }
    return multiplied(nest, nest.cast(nest.load_at(a, outer), c), nest.cast(nest.load_at(b, inner), c));
  }));
  return as_kernel();
}

// --------------------------------------------------------------------------------------------------- chains

/// The product of matrices first..last in the order that costs least, by the usual table over all splits.
Tensor chain(Call& call, const std::vector<Tensor>& matrices) {
  const std::size_t n = matrices.size();
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<std::size_t>> split(n, std::vector<std::size_t>(n, 0));
  const auto rows = [&](std::size_t k) { return static_cast<double>(matrices[k].sizes.at(0)); };
  const auto columns = [&](std::size_t k) { return static_cast<double>(matrices[k].sizes.at(1)); };
  for (std::size_t length = 1; length < n; ++length)
    for (std::size_t i = 0; i + length < n; ++i) {
      const std::size_t j = i + length;
      cost[i][j] = std::numeric_limits<double>::infinity();
      for (std::size_t k = i; k < j; ++k) {
        const double found = cost[i][k] + cost[k + 1][j] + rows(i) * columns(k) * columns(j);
        if (found < cost[i][j]) {
          cost[i][j] = found;
          split[i][j] = k;
        }
      }
    }
  const std::function<Tensor(std::size_t, std::size_t)> multiply = [&](std::size_t i, std::size_t j) {
    if (i == j) return matrices[i];
    return product(call, multiply(i, split[i][j]), multiply(split[i][j] + 1, j), call.meta().dtype);
  };
  return multiply(0, n - 1);
}

/// chain_matmul(matrices), linalg_multi_dot(tensors): the first and the last may be vectors.
Lowered multi_dot(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  std::vector<Tensor> matrices = call.tensors(0, "tensors");
  if (matrices.empty()) matrices = call.tensors(0, "matrices");
  if (matrices.empty()) throw MalformedNode{"a product of nothing"};
  Builder& builder = call.builder;
  if (matrices.size() == 1) {
    call.define(matrices[0]);
    return as_view();
  }
  if (matrices.front().rank() == 1) matrices.front() = builder.reshape(matrices.front(), {1, matrices.front().sizes[0]});
  if (matrices.back().rank() == 1) matrices.back() = builder.reshape(matrices.back(), {matrices.back().sizes[0], 1});
  call.define(builder.reshape(chain(call, matrices), call.meta().sizes));
  return as_made(call);
}

/// bilinear(input1, input2, weight, bias): result[.., o] = sum over i, j of input1[.., i] weight[o, i, j] input2[.., j].
Lowered bilinear(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  Builder& builder = call.builder;
  const Tensor x = as_matrix(builder, call.tensor(0, "input1")), y = as_matrix(builder, call.tensor(1, "input2"));
  const Tensor weight = call.tensor(2, "weight");
  const std::optional<Tensor> bias = call.optional_tensor(3, "bias");
  const trace::TensorMeta& meta = call.meta();
  if (weight.rank() != 3) throw MalformedNode{"a weight that has no three dimensions"};
  const std::int64_t rows = x.sizes[0], out = weight.sizes[0];
  const DType c = compute_dtype(meta.dtype);
  const Tensor left = contract(call, {x, {0, 1}}, {weight, {2, 1, 3}}, {0, 2, 3}, c).tensor;
  const Tensor sums = builder.reduction(
      call.node.name, {rows, out, weight.sizes[2]}, {2}, ReduceOp::sum, c, meta.dtype, false,
      [&](NestBuilder& nest) { return nest.mul(nest.load(left), nest.cast(nest.load_at(y, {nest.index(0), nest.index(2)}), c)); },
      [&](NestBuilder& nest, int total) {
        return bias ? nest.add(total, nest.cast(nest.load_at(*bias, {nest.index(1)}), c)) : total;
      });
  call.define(builder.reshape(sums, meta.sizes));
  return as_made(call);
}

}  // namespace

std::vector<Entry> contraction_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "library", f}); };
  add("aten.einsum.default", einsum);
  add("aten.tensordot.default", tensordot);
  add("aten.inner.default", inner);
  add("aten.kron.default", kron);
  for (std::string_view op : {"aten.chain_matmul.default", "aten.linalg_multi_dot.default"}) add(op, multi_dot);
  add("aten.bilinear.default", bilinear);
  return rows;
}

}  // namespace pallascope::lower
