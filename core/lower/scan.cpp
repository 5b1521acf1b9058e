// Family: scans. Each keeps its input's shape: an element is what a reduction would give up to and with it.
#include <algorithm>

#include <fmt/format.h>

#include "core/lower/builder.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;
using loop::ScanOp;

/// The dtype in which PyTorch's CPU kernels carry a scan's value from element to element. JAX scans as a tree, so the
/// wider dtype also hides that the order of additions is another.
DType carried(DType dtype) {
  if (dtype == DType::f32) return DType::f64;
  return compute_dtype(dtype);
}

bool in_kernel(const Call& call, const Tensor& x) { return is_kernel_dtype(x.dtype) && is_kernel_dtype(call.meta().dtype); }

/// cumsum, cumprod, logcumsumexp: the input is cast to the result's dtype before anything else.
template <ScanOp op>
Lowered running(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!in_kernel(call, x)) return declined_dtype();
  if (is_bool(meta.dtype) || (op == ScanOp::logsumexp && !is_float(meta.dtype)))
    return declined("a dtype that PyTorch does not scan");
  const std::size_t d = Call::dim(call.integer(1, "dim"), x.rank());
  call.define(call.builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        const int value = nest.cast(nest.load(x), meta.dtype);
        return x.rank() == 0 ? value : nest.scan(op, nest.cast(value, carried(meta.dtype)), d);
      },
      &meta));
  return as_kernel();
}

/// The greatest (or least) so far. A NaN is the extremum of all that follow it.
int extremum_so_far(NestBuilder& nest, ScanOp op, int value, std::size_t d) {
  if (!is_bool(nest.dtype(value))) return nest.scan(op, value, d);
  return nest.cast(nest.scan(op, nest.cast(value, DType::i8), d), DType::b8);
}

/// cummax, cummin: values, and where they stand, the last of equals (and the last NaN).
///
/// Worked example, cummax of 1 3 2 3: the values are 1 3 3 3; an element that is its value's equal stands there (0, 1 and
/// 3), and the greatest such position so far is the answer: 0 1 1 3. No pairs have to be scanned.
template <ScanOp op>
Lowered extremum(Call& call) {
  const Tensor x = call.tensor(0, "self");
  if (!in_kernel(call, x)) return declined_dtype();
  const std::size_t d = Call::dim(call.integer(1, "dim"), x.rank());
  const trace::TensorMeta& meta = call.meta();
  const Tensor values = call.builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        const int value = nest.load(x);
        return x.rank() == 0 ? value : extremum_so_far(nest, op, value, d);
      },
      &meta);
  call.define(values);
  if (!call.wanted(1)) return as_kernel();
  const trace::TensorMeta& places = call.meta(1);
  call.define(call.builder.pointwise(
                  call.node.name + ".indices", places.sizes, DType::i64,
                  [&](NestBuilder& nest) {
                    if (x.rank() == 0) return nest.constant(std::int64_t{0}, DType::i64);
                    const int value = nest.load(x);
                    int here = nest.compare(ComputeOp::eq, value, nest.load(values));
                    if (is_float(x.dtype))
                      here = nest.compute(ComputeOp::logical_or, DType::b8, {here, nest.compute(ComputeOp::isnan, DType::b8, {value})});
                    const int place = nest.index_value(nest.index(d), DType::i64);
                    return nest.scan(ScanOp::max, nest.where(here, place, nest.constant(std::int64_t{0}, DType::i64)), d);
                  },
                  &places),
              1);
  return as_kernel();
}

/// `x` from element `start` on along dimension `d`, `count` elements of it.
Tensor part(Builder& builder, const Tensor& x, std::size_t d, std::int64_t start, std::int64_t count) {
  Sizes sizes = x.sizes;
  sizes.at(d) = count;
  return builder.reindex(x, sizes, [&](Index position) {
    position[d] = builder.context().add(position[d], builder.context().constant(start));
    return position;
  });
}

/// Each element less the one before it, as `a - b` of the dtype: booleans differ or do not.
Tensor differences(Builder& builder, const std::string& name, const Tensor& x, std::size_t d) {
  const std::int64_t count = std::max<std::int64_t>(0, x.sizes[d] - 1);
  const Tensor before = part(builder, x, d, 0, count), after = part(builder, x, d, 1, count);
  return builder.pointwise(name, before.sizes, x.dtype, [&](NestBuilder& nest) {
    const int a = nest.load(after), b = nest.load(before);
    if (is_bool(x.dtype)) return nest.compare(ComputeOp::ne, a, b);
    const DType c = compute_dtype(x.dtype);
    return nest.cast(nest.sub(nest.cast(a, c), nest.cast(b, c)), x.dtype);
  });
}

/// diff(x, n, dim, prepend, append)
Lowered diff(Call& call) {
  Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype)) return declined_dtype();
  if (call.has(3, "prepend") || call.has(4, "append")) return declined("diff of pieces: concatenate them first");
  const std::size_t d = Call::dim(call.integer(2, "dim", -1), x.rank());
  const std::int64_t times = std::min<std::int64_t>(call.integer(1, "n", 1), x.sizes.at(d));
  if (times == 0) x = call.builder.materialise(x, call.node.name);
  for (std::int64_t k = 1; k <= times; ++k)
    x = differences(call.builder, k == times ? call.node.name : fmt::format("{}.{}", call.node.name, k), x, d);
  if (x.sizes != meta.sizes) throw MalformedNode{"differences of another shape"};
  call.define(x);
  return as_kernel();
}

/// cumulative_trapezoid(y, x, dim) and (y, dx, dim): areas under straight lines between neighbours, added up.
Lowered trapezoid(Call& call) {
  const Tensor y = call.tensor(0, "y");
  const trace::TensorMeta& meta = call.meta();
  std::optional<Tensor> x = call.optional_tensor(1, "x");
  if (!is_float(y.dtype) || !is_kernel_dtype(y.dtype) || meta.dtype != y.dtype || (x && x->dtype != y.dtype))
    return declined("a trapezoid rule of numbers that are converted first");
  const std::size_t d = Call::dim(call.integer(2, "dim", -1), y.rank());
  Builder& builder = call.builder;
  if (x) {
    // A vector of places lies along the dimension, whichever that is.
    if (x->rank() == 1) {
      Sizes sizes(y.sizes.size(), 1);
      sizes[d] = x->sizes[0];
      x = builder.reshape(*x, sizes);
    }
    Sizes sizes(y.sizes.size() - std::min(y.sizes.size(), x->sizes.size()), 1);
    sizes.insert(sizes.end(), x->sizes.begin(), x->sizes.end());
    x = builder.reshape(*x, sizes);
    if (x->sizes.size() != y.sizes.size() || (x->sizes[d] != y.sizes[d])) return declined("places that do not lie beside the values");
    x = differences(builder, call.node.name + ".steps", *x, d);
  }
  const std::int64_t count = std::max<std::int64_t>(0, y.sizes[d] - 1);
  const Tensor before = part(builder, y, d, 0, count), after = part(builder, y, d, 1, count);
  const DType c = compute_dtype(y.dtype);
  call.define(builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    const auto rounded = [&](int value) { return nest.cast(nest.cast(value, y.dtype), c); };
    const int sum = rounded(nest.add(nest.cast(nest.load(before), c), nest.cast(nest.load(after), c)));
    const int step = x ? nest.cast(nest.load(*x), c) : nest.number(call.number(1, "dx", 1) / 2, sum);
    const int area = nest.cast(rounded(nest.mul(sum, step)), carried(y.dtype));
    const int total = nest.cast(nest.cast(nest.scan(ScanOp::sum, area, d), y.dtype), c);
    return x ? nest.mul(total, nest.number(0.5, total)) : total;
  }));
  return as_kernel();
}

}  // namespace

std::vector<Entry> scan_entries() {
  return {{"aten.cumsum.default", "scan", running<ScanOp::sum>},
          {"aten.cumprod.default", "scan", running<ScanOp::prod>},
          {"aten.logcumsumexp.default", "scan", running<ScanOp::logsumexp>},
          {"aten.cummax.default", "scan", extremum<ScanOp::max>},
          {"aten.cummin.default", "scan", extremum<ScanOp::min>},
          {"aten.diff.default", "scan", diff},
          {"aten.cumulative_trapezoid.x", "scan", trapezoid},
          {"aten.cumulative_trapezoid.dx", "scan", trapezoid}};
}

}  // namespace pallascope::lower
