// Family: scans. Each keeps its input's shape: an element is what a reduction would give up to and with it.
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

}  // namespace

std::vector<Entry> scan_entries() {
  return {{"aten.cumsum.default", "scan", running<ScanOp::sum>},
          {"aten.cumprod.default", "scan", running<ScanOp::prod>},
          {"aten.logcumsumexp.default", "scan", running<ScanOp::logsumexp>},
          {"aten.cummax.default", "scan", extremum<ScanOp::max>},
          {"aten.cummin.default", "scan", extremum<ScanOp::min>}};
}

}  // namespace pallascope::lower
