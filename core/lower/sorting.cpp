// Family: sorting and what is read off sorted elements: order, the k-th element, medians, quantiles.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "core/lower/library.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;
using loop::ReduceOp;

struct Sorted {
  Tensor values, positions;  ///< positions only where asked for
};

/// A dimension to sort along: a number has one element.
Tensor at_least_one_dimension(Builder& builder, const Tensor& x) { return x.rank() == 0 ? builder.reshape(x, {1}) : x; }

/// The memory order of a result that has the rank of `x`.
std::vector<std::size_t> result_order(const Tensor& x, const trace::TensorMeta* meta) {
  if (meta != nullptr && meta->sizes.size() == x.sizes.size()) return memory_order(*meta);
  std::vector<std::size_t> order(x.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// `x` sorted along `d`, in the memory order of `like`.
Sorted sorted(Call& call, const Tensor& x, std::size_t d, bool descending, bool positions, const trace::TensorMeta* like = nullptr) {
  Builder& builder = call.builder;
  const std::vector<std::size_t> order = result_order(x, like);
  loop::Sort sort{static_cast<std::size_t>(std::find(order.begin(), order.end(), d) - order.begin()), descending};
  Sorted made{ordered_result(builder, x.dtype, x.sizes, order), {}};
  std::vector<Tensor> results = {made.values};
  if (positions) {
    made.positions = ordered_result(builder, DType::i64, x.sizes, order);
    results.push_back(made.positions);
  }
  add_library_call(call, sort, {builder.permute(x, order)}, results);
  return made;
}

/// sort(self, dim, descending); sort.stable takes `stable` first. Equal elements always keep their order here: where it is
/// not asked for, eager's order of equal integers is an accident of its vectors.
Lowered sort(Call& call) {
  const bool named = call.node.target.ends_with(".stable");
  const Tensor self = call.tensor(0, "self");
  if (!is_kernel_dtype(self.dtype)) return declined_dtype();
  const Tensor x = at_least_one_dimension(call.builder, self);
  const std::size_t d = Call::dim(call.integer(named ? 99 : 1, "dim", -1), self.rank());
  const bool descending = call.boolean(named ? 99 : 2, "descending");
  const bool order_alone = call.node.target.starts_with("aten.argsort");
  const Sorted made = sorted(call, x, d, descending, order_alone || call.wanted(1), call.wanted(0) ? &call.meta(0) : nullptr);
  if (order_alone) {
    call.define(call.builder.reshape(made.positions, call.meta().sizes));
    return as_made(call);
  }
  if (call.wanted(0)) call.define(call.builder.reshape(made.values, call.meta(0).sizes), 0);
  if (call.wanted(1)) call.define(call.builder.reshape(made.positions, call.meta(1).sizes), 1);
  return as_made(call);
}

Lowered msort(Call& call) {
  const Tensor self = call.tensor(0, "self");
  if (!is_kernel_dtype(self.dtype)) return declined_dtype();
  const Tensor x = at_least_one_dimension(call.builder, self);
  call.define(call.builder.reshape(sorted(call, x, 0, false, false, &call.meta()).values, self.sizes));
  return as_made(call);
}

/// topk(self, k, dim, largest, sorted). Which of equal elements comes first is an accident of eager's partial sort
/// (of [1, 1, 1, 1] it may give the last), so the first is taken; and a result that need not be sorted is sorted.
Lowered topk(Call& call) {
  Builder& builder = call.builder;
  const Tensor self = call.tensor(0, "self");
  if (!is_kernel_dtype(self.dtype)) return declined_dtype();
  if (is_bool(self.dtype)) return declined("topk of booleans, which PyTorch refuses");
  const Tensor x = at_least_one_dimension(builder, self);
  const std::size_t d = Call::dim(call.integer(2, "dim", -1), self.rank());
  const std::int64_t count = call.integer(1, "k");
  if (count < 0 || count > x.sizes[d]) throw MalformedNode{"more elements than there are"};
  const trace::TensorMeta* like = call.wanted(0) ? &call.meta(0) : nullptr;
  const std::vector<std::size_t> order = result_order(x, like);
  Sizes sizes = x.sizes;
  sizes[d] = count;
  const loop::TopK top{static_cast<std::size_t>(std::find(order.begin(), order.end(), d) - order.begin()), count,
                       call.boolean(3, "largest", true)};
  std::vector<Tensor> results = {ordered_result(builder, x.dtype, sizes, order)};
  if (call.wanted(1)) results.push_back(ordered_result(builder, DType::i64, sizes, order));
  add_library_call(call, top, {builder.permute(x, order)}, results);
  for (std::size_t k = 0; k < results.size(); ++k)
    if (call.wanted(k)) call.define(builder.reshape(results[k], call.meta(k).sizes), k);
  return as_made(call);
}

/// Element `k` along `d`, a view.
Tensor element(Builder& builder, const Tensor& x, std::size_t d, std::int64_t k) {
  Sizes sizes = x.sizes;
  sizes[d] = 1;
  return builder.reindex(x, sizes, [&](const Index& at) {
    Index source = at;
    source[d] = builder.context().constant(k);
    return source;
  });
}

/// kthvalue(self, k, dim, keepdim)
Lowered kthvalue(Call& call) {
  Builder& builder = call.builder;
  const Tensor self = call.tensor(0, "self");
  if (!is_kernel_dtype(self.dtype) || is_bool(self.dtype)) return declined_dtype();
  const Tensor x = at_least_one_dimension(builder, self);
  const std::size_t d = Call::dim(call.integer(2, "dim", -1), self.rank());
  const std::int64_t k = call.integer(1, "k");
  if (k < 1 || k > x.sizes[d]) throw MalformedNode{"an element beyond the last"};
  const Sorted made = sorted(call, x, d, false, call.wanted(1));
  if (call.wanted(0)) call.define(builder.reshape(element(builder, made.values, d, k - 1), call.meta(0).sizes), 0);
  if (call.wanted(1)) call.define(builder.reshape(element(builder, made.positions, d, k - 1), call.meta(1).sizes), 1);
  return as_made(call);
}

/// The element of `x` at `rank(nest)`, an i64 that is known to be in range, along `d`, which stays with extent 1.
Tensor picked(Builder& builder, const std::string& name, const Tensor& x, std::size_t d, const std::function<int(NestBuilder&)>& rank) {
  const DType c = compute_dtype(x.dtype);
  return builder.reduction(name, x.sizes, {d}, ReduceOp::sum, c, x.dtype, true, [&](NestBuilder& nest) {
    const int here = nest.compare(ComputeOp::eq, nest.index_value(nest.index(d), DType::i64), rank(nest));
    const int value = nest.cast(nest.load(x), c);
    return nest.where(here, value, nest.constant(to_scalar(0, c), c));
  });
}

/// How many elements along `d` are not NaN, i64, with extent 1 there.
Tensor count_of_numbers(Builder& builder, const std::string& name, const Tensor& x, std::size_t d) {
  return builder.reduction(name, x.sizes, {d}, ReduceOp::sum, DType::i64, DType::i64, true, [&](NestBuilder& nest) {
    const int value = nest.load(x);
    return nest.cast(nest.compare(ComputeOp::eq, value, value), DType::i64);
  });
}

/// median and nanmedian, of all elements or along a dimension: the lower of the two in the middle. A NaN is the median of
/// its row; nanmedian does not see it.
template <bool skips_nan>
Lowered median(Call& call) {
  Builder& builder = call.builder;
  const Tensor self = call.tensor(0, "self");
  if (!is_kernel_dtype(self.dtype) || is_bool(self.dtype)) return declined_dtype();
  const bool all = call.node.target.ends_with(".default");
  const Tensor x = all ? builder.reshape(self, {numel(self.sizes)}) : at_least_one_dimension(builder, self);
  const std::size_t d = all ? 0 : Call::dim(call.integer(1, "dim", -1), self.rank());
  const std::int64_t n = x.sizes[d];
  if (n == 0) return declined("the median of no elements");
  const bool positions = !all && call.wanted(1);
  const Sorted made = sorted(call, x, d, false, positions);
  Tensor value = element(builder, made.values, d, (n - 1) / 2), position;
  if (positions) position = element(builder, made.positions, d, (n - 1) / 2);
  const std::string& name = call.node.name;
  if (is_float(x.dtype) && skips_nan) {
    const Tensor count = count_of_numbers(builder, name + ".count", x, d);
    const auto rank = [&](NestBuilder& nest) {
      const int one = nest.constant(std::int64_t{1}, DType::i64), two = nest.constant(std::int64_t{2}, DType::i64);
      const int last = nest.sub(nest.op(ComputeOp::maximum, nest.load(count), one), one);
      return nest.op(ComputeOp::integer_div_trunc, last, two);
    };
    value = picked(builder, name, made.values, d, rank);
    if (positions) position = picked(builder, name + ".position", made.positions, d, rank);
  } else if (is_float(x.dtype)) {
    const Tensor middle = value, last = element(builder, made.values, d, n - 1);
    const auto has_nan = [&](NestBuilder& nest) { return nest.compute(ComputeOp::isnan, DType::b8, {nest.load(last)}); };
    value = builder.pointwise(name, middle.sizes, x.dtype, [&](NestBuilder& nest) {
      return nest.where(has_nan(nest), nest.load(last), nest.load(middle));
    });
    if (positions) {
      // The first NaN: argmax takes it for the largest.
      const Tensor first = builder.reduction(name + ".nan", x.sizes, {d}, ReduceOp::argmax, DType::i64, DType::i64, true,
                                             [&](NestBuilder& nest) { return nest.load(x); });
      const Tensor place = position;
      position = builder.pointwise(name + ".position", middle.sizes, DType::i64, [&](NestBuilder& nest) {
        return nest.where(has_nan(nest), nest.load(first), nest.load(place));
      });
    }
  }
  if (call.wanted(0)) call.define(builder.reshape(value, call.meta(0).sizes), 0);
  if (positions) call.define(builder.reshape(position, call.meta(1).sizes), 1);
  return as_made(call);
}

/// quantile(self, q, dim, keepdim, *, interpolation), q a number or a tensor of rank 0 or 1: the element at rank
/// q * (n - 1) of the sorted row, between two elements if that is no whole number.
template <bool skips_nan>
Lowered quantile(Call& call) {
  Builder& builder = call.builder;
  const Tensor self = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (self.dtype != DType::f32 && self.dtype != DType::f64) return declined_dtype();
  const std::string how = call.text(99, "interpolation", "linear");
  if (how != "linear" && how != "lower" && how != "higher" && how != "midpoint" && how != "nearest")
    throw MalformedNode{"an interpolation named " + how};
  const bool all = !call.has(2, "dim");
  const Tensor x = all ? builder.reshape(self, {numel(self.sizes)}) : at_least_one_dimension(builder, self);
  const std::size_t d = all ? 0 : Call::dim(call.integer(2, "dim"), self.rank());
  const std::int64_t n = x.sizes[d];
  if (n == 0) return declined("the quantile of no elements");
  const std::optional<Tensor> list = call.optional_tensor(1, "q");
  const DType c = x.dtype;
  const std::string& name = call.node.name;
  // The values of q are a dimension before all others.
  Sizes sizes = x.sizes;
  sizes[d] = 1;
  const std::int64_t queries = list ? numel(list->sizes) : 1;
  sizes.insert(sizes.begin(), queries);
  const Tensor values = sorted(call, x, d, false, false).values;
  std::optional<Tensor> count;
  if (skips_nan) count = count_of_numbers(builder, name + ".count", x, d);
  const Tensor last = element(builder, values, d, n - 1);
  const std::optional<Tensor> q = list ? std::optional(builder.reshape(*list, {queries})) : std::nullopt;
  const auto tail = [](NestBuilder& nest) { return Index(nest.index().begin() + 1, nest.index().end()); };
  /// The rank as a number of the dtype, before it is made whole.
  const auto rank = [&](NestBuilder& nest) {
    const int at = q ? nest.cast(nest.load_at(*q, {nest.index(0)}), c) : nest.number(call.number(1, "q"), nest.constant(0.0, c));
    const int whole = nest.number(static_cast<double>(n - 1), at);
    if (skips_nan) {
      Index position = tail(nest);
      position[d] = builder.context().constant(0);
      const int zero = nest.number(0, at);
      const int numbers = nest.sub(nest.cast(nest.load_at(*count, position), c), nest.number(1, at));
      return nest.op(ComputeOp::maximum, nest.mul(at, numbers), zero);
    }
    Index position = tail(nest);
    position[d] = builder.context().constant(0);
    const int has_nan = nest.compute(ComputeOp::isnan, DType::b8, {nest.load_at(last, position)});
    int found = nest.mul(at, whole);
    return nest.where(has_nan, whole, found);
  };
  /// The element at the rank made whole. A q from outside of 0..1 is an index out of range.
  const auto read = [&](NestBuilder& nest, ComputeOp round) {
    const int place = nest.cast(nest.op(round, rank(nest)), DType::i64);
    Index position = tail(nest);
    position[d] = nest.symbol(place, 0, n - 1);
    return nest.load_at(values, position);
  };
  const Tensor made = builder.pointwise(name, sizes, c, [&](NestBuilder& nest) {
    if (how == "lower") return read(nest, ComputeOp::floor);
    if (how == "higher") return read(nest, ComputeOp::ceil);
    if (how == "nearest") return read(nest, ComputeOp::round);
    const int below = read(nest, ComputeOp::floor), above = read(nest, ComputeOp::ceil);
    const int at = rank(nest);
    const int weight = how == "midpoint" ? nest.number(0.5, at) : nest.sub(at, nest.op(ComputeOp::floor, at));
    // As lerp rounds: from the nearer end.
    const int span = nest.sub(above, below);
    const int from_below = nest.add(below, nest.mul(weight, span));
    const int from_above = nest.sub(above, nest.mul(span, nest.sub(nest.number(1, at), weight)));
    return nest.where(nest.compare(ComputeOp::lt, weight, nest.number(0.5, at)), from_below, from_above);
  });
  call.define(builder.reshape(made, meta.sizes));
  return as_made(call);
}

}  // namespace

std::vector<Entry> sorting_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "library", f}); };
  for (std::string_view op : {"aten.sort.default", "aten.sort.stable", "aten.argsort.default", "aten.argsort.stable"}) add(op, sort);
  add("aten.msort.default", msort);
  add("aten.topk.default", topk);
  add("aten.kthvalue.default", kthvalue);
  for (std::string_view op : {"aten.median.default", "aten.median.dim"}) add(op, median<false>);
  for (std::string_view op : {"aten.nanmedian.default", "aten.nanmedian.dim"}) add(op, median<true>);
  for (std::string_view op : {"aten.quantile.default", "aten.quantile.scalar"}) add(op, quantile<false>);
  for (std::string_view op : {"aten.nanquantile.default", "aten.nanquantile.scalar"}) add(op, quantile<true>);
  return rows;
}

}  // namespace pallascope::lower
