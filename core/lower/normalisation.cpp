// Family: softmax, layer norm and their gradients. Composite operators, decomposed into reductions and pointwise nests.
#include <array>
#include <cmath>

#include "core/lower/builder.h"
#include "core/lower/softmax.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;
using loop::ReduceOp;

/// exp(x - max), its sum and the maximum along one dimension, in the compute dtype. `safe` maps a row of -inf to 0.
struct Exponentials {
  Tensor top, exponential, total;
};

Exponentials exponentials(Call& call, const Tensor& x, std::size_t d, DType c) {
  Builder& builder = call.builder;
  Exponentials found;
  found.top = builder.reduction(call.node.name + ".max", x.sizes, {d}, ReduceOp::max, c, c, true,
                                [&](NestBuilder& nest) { return nest.cast(nest.load(x), c); });
  found.exponential = builder.pointwise(call.node.name + ".exp", x.sizes, c, [&](NestBuilder& nest) {
    return nest.op(ComputeOp::exp, nest.below(nest.cast(nest.load(x), c), nest.load(found.top)));
  });
  found.total = builder.reduction(call.node.name + ".sum", x.sizes, {d}, ReduceOp::sum, c, c, true,
                                  [&](NestBuilder& nest) { return nest.load(found.exponential); });
  return found;
}

/// Softmax of one element, or of an empty tensor, has no axis to reduce.
Tensor at_least_one_dimension(Builder& builder, const Tensor& x) { return x.rank() == 0 ? builder.reshape(x, {1}) : x; }

template <bool log, bool safe>
Lowered softmax(Call& call) {
  const trace::TensorMeta& meta = call.meta();
  Tensor x = at_least_one_dimension(call.builder, call.tensor(0, "self"));
  if (!is_kernel_dtype(x.dtype) || !is_kernel_dtype(meta.dtype)) return declined_dtype();
  const std::size_t d = Call::dim(call.integer(1, "dim"), x.rank());
  const DType c = compute_dtype(meta.dtype);
  if (x.dtype != meta.dtype && c != meta.dtype)  // softmax(dtype=): the cast comes first
    x = call.builder.pointwise(call.node.name + ".cast", x.sizes, meta.dtype, [&](NestBuilder& nest) { return nest.load(x); });
  if (x.sizes[d] == 0 || meta.numel() == 0) {
    call.define(call.builder.row_major(call.builder.add_buffer(meta.dtype, meta.sizes), meta.sizes));
    return as_kernel();
  }
  const Exponentials e = exponentials(call, x, d, c);
  const trace::TensorMeta* like = x.rank() == meta.rank() ? &meta : nullptr;
  const Tensor result = call.builder.pointwise(
      call.node.name, x.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        const int total = nest.load(e.total);
        if (log) {
          const int shifted = nest.below(nest.cast(nest.load(x), c), nest.load(e.top));
          return nest.sub(shifted, log_of_sum(nest, total, meta.dtype, d + 1 == x.sizes.size()));
        }
        const int ratio = nest.div(nest.load(e.exponential), total);
        if (!safe) return ratio;
        const int top = nest.load(e.top);
        const int masked = nest.compare(ComputeOp::eq, top, nest.number(-INFINITY, top));
        return nest.where(masked, nest.number(0, ratio), ratio);
      },
      like);
  call.define(call.builder.reshape(result, meta.sizes));
  return as_kernel();
}

/// grad_input = output * (grad - sum(grad * output)); for log softmax grad - exp(output) * sum(grad).
template <bool log>
Lowered softmax_backward(Call& call) {
  const trace::TensorMeta& meta = call.meta();
  const Tensor grad = at_least_one_dimension(call.builder, call.tensor(0, "grad_output"));
  const Tensor output = at_least_one_dimension(call.builder, call.tensor(1, "output"));
  if (!is_kernel_dtype(grad.dtype) || !is_kernel_dtype(meta.dtype)) return declined_dtype();
  const std::size_t d = Call::dim(call.integer(2, "dim"), grad.rank());
  const DType c = compute_dtype(promote(grad.dtype, output.dtype));
  const Tensor total =
      call.builder.reduction(call.node.name + ".sum", grad.sizes, {d}, ReduceOp::sum, c, c, true, [&](NestBuilder& nest) {
        const int g = nest.cast(nest.load(grad), c);
        return log ? g : nest.mul(g, nest.cast(nest.load(output), c));
      });
  const Tensor result = call.builder.pointwise(
      call.node.name, grad.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        const int g = nest.cast(nest.load(grad), c), y = nest.cast(nest.load(output), c), s = nest.load(total);
        if (log) return nest.sub(g, nest.mul(nest.op(ComputeOp::exp, y), s));
        return nest.mul(y, nest.sub(g, s));
      },
      grad.rank() == meta.rank() ? &meta : nullptr);
  call.define(call.builder.reshape(result, meta.sizes));
  return as_kernel();
}

/// Mean and 1/sqrt(var + eps) over `dims`, kept dimensions, two passes.
struct Moments {
  Tensor mean, rstd;
};

Moments moments(Call& call, const Tensor& x, const std::vector<std::size_t>& dims, double eps, DType c) {
  double count = 1;
  for (std::size_t d : dims) count *= static_cast<double>(x.sizes[d]);
  Moments found;
  found.mean = call.builder.average(call.node.name + ".mean", x.sizes, dims, c,
                                [&](NestBuilder& nest) { return nest.cast(nest.load(x), c); });
  found.rstd = call.builder.reduction(
      call.node.name + ".rstd", x.sizes, dims, ReduceOp::sum, c, c, true,
      [&](NestBuilder& nest) {
        const int distance = nest.sub(nest.cast(nest.load(x), c), nest.load(found.mean));
        return nest.mul(distance, distance);
      },
      [&](NestBuilder& nest, int total) {
        const int variance = nest.div(total, nest.number(count, total));
        return nest.op(ComputeOp::rsqrt, nest.add(variance, nest.number(eps, variance)));
      });
  return found;
}

std::vector<std::size_t> last_dims(std::int64_t rank, std::size_t count) {
  if (static_cast<std::int64_t>(count) > rank) throw MalformedNode{"more normalised dimensions than the input has"};
  std::vector<std::size_t> dims;
  for (std::size_t k = 0; k < count; ++k) dims.push_back(static_cast<std::size_t>(rank) - count + k);
  return dims;
}

/// native_layer_norm(input, normalized_shape, weight, bias, eps) -> out, mean, rstd; layer_norm gives out alone.
Lowered layer_norm(Call& call) {
  const Tensor x = call.tensor(0, "input");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype) || !is_float(x.dtype)) return declined_dtype();
  const std::vector<std::size_t> dims = last_dims(x.rank(), call.integers(1, "normalized_shape").size());
  for (std::size_t d : dims)
    if (x.sizes[d] == 0) return declined("a normalised axis of extent 0");
  const std::optional<Tensor> weight = call.optional_tensor(2, "weight"), bias = call.optional_tensor(3, "bias");
  const DType c = compute_dtype(x.dtype);
  const Moments m = moments(call, x, dims, call.number(4, "eps", 1e-5), c);
  const Tensor result = call.builder.pointwise(
      call.node.name, x.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        int y = nest.mul(nest.sub(nest.cast(nest.load(x), c), nest.load(m.mean)), nest.load(m.rstd));
        if (weight) y = nest.mul(y, nest.cast(nest.load(*weight), c));
        if (bias) y = nest.add(y, nest.cast(nest.load(*bias), c));
        return y;
      },
      &meta);
  call.define(result, 0);
  const std::array<const Tensor*, 2> statistics = {&m.mean, &m.rstd};
  for (std::size_t k = 0; k < statistics.size(); ++k) {
    if (!call.wanted(k + 1)) continue;
    const Tensor& s = *statistics[k];
    const DType dtype = call.meta(k + 1).dtype;
    const Tensor cast = dtype == s.dtype ? s
                                         : call.builder.pointwise(call.node.name + (k == 0 ? ".mean" : ".rstd"), s.sizes, dtype,
                                                                  [&](NestBuilder& nest) { return nest.load(s); });
    call.define(call.builder.reshape(cast, call.meta(k + 1).sizes), k + 1);
  }
  return as_kernel();
}

/// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask).
/// With h = (x - mean) * rstd and g = grad * weight: dx = rstd * (g - mean(g) - h * mean(g * h)) over the normalised
/// axes; dweight and dbias sum grad * h and grad over the others.
Lowered layer_norm_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_out"), x = call.tensor(1, "input");
  if (!is_kernel_dtype(x.dtype) || !is_float(x.dtype)) return declined_dtype();
  const std::size_t count_dims = call.integers(2, "normalized_shape").size();
  const std::vector<std::size_t> dims = last_dims(x.rank(), count_dims);
  const Tensor mean = call.tensor(3, "mean"), rstd = call.tensor(4, "rstd");
  const std::optional<Tensor> weight = call.optional_tensor(5, "weight");
  const DType c = compute_dtype(x.dtype);
  Builder& builder = call.builder;
  std::vector<std::size_t> outer;
  for (std::size_t d = 0; d < x.sizes.size() - count_dims; ++d) outer.push_back(d);
  const auto hat = [&](NestBuilder& nest) {
    return nest.mul(nest.sub(nest.cast(nest.load(x), c), nest.cast(nest.load(mean), c)), nest.cast(nest.load(rstd), c));
  };
  const auto scaled = [&](NestBuilder& nest) {
    const int g = nest.cast(nest.load(grad), c);
    return weight ? nest.mul(g, nest.cast(nest.load(*weight), c)) : g;
  };
  if (call.wanted(0)) {
    const Tensor mean_g = builder.average(call.node.name + ".mean_g", x.sizes, dims, c, scaled);
    const Tensor mean_gh = builder.average(call.node.name + ".mean_gh", x.sizes, dims, c,
                                           [&](NestBuilder& nest) { return nest.mul(scaled(nest), hat(nest)); });
    const trace::TensorMeta& meta = call.meta(0);
    call.define(builder.pointwise(
                    call.node.name, x.sizes, meta.dtype,
                    [&](NestBuilder& nest) {
                      const int h = hat(nest);
                      const int inner = nest.sub(nest.sub(scaled(nest), nest.load(mean_g)), nest.mul(h, nest.load(mean_gh)));
                      return nest.mul(nest.cast(nest.load(rstd), c), inner);
                    },
                    &meta),
                0);
  }
  if (call.wanted(1)) {
    const Tensor total = builder.reduction(
        call.node.name + ".weight", x.sizes, outer, ReduceOp::sum, c, call.meta(1).dtype, false,
        [&](NestBuilder& nest) { return nest.mul(nest.cast(nest.load(grad), c), hat(nest)); });
    call.define(builder.reshape(total, call.meta(1).sizes), 1);
  }
  if (call.wanted(2)) {
    const Tensor total = builder.reduction(call.node.name + ".bias", x.sizes, outer, ReduceOp::sum, c, call.meta(2).dtype, false,
                                           [&](NestBuilder& nest) { return nest.cast(nest.load(grad), c); });
    call.define(builder.reshape(total, call.meta(2).sizes), 2);
  }
  return as_kernel();
}

/// rms_norm(input, normalized_shape, weight, eps); _fused_rms_norm gives 1/rms as well.
Lowered rms_norm(Call& call) {
  const Tensor x = call.tensor(0, "input");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype) || !is_float(x.dtype)) return declined_dtype();
  const std::vector<std::size_t> dims = last_dims(x.rank(), call.integers(1, "normalized_shape").size());
  const std::optional<Tensor> weight = call.optional_tensor(2, "weight");
  const DType c = compute_dtype(x.dtype);
  double count = 1;
  for (std::size_t d : dims) count *= static_cast<double>(x.sizes[d]);
  // PyTorch's default is the epsilon of the dtype that it computes in.
  const double eps = call.has(3, "eps") ? call.number(3, "eps") : c == DType::f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  const Tensor rstd = call.builder.reduction(
      call.node.name + ".rstd", x.sizes, dims, ReduceOp::sum, c, c, true,
      [&](NestBuilder& nest) {
        const int v = nest.cast(nest.load(x), c);
        return nest.mul(v, v);
      },
      [&](NestBuilder& nest, int total) {
        const int average = nest.div(total, nest.number(count, total));
        return nest.op(ComputeOp::rsqrt, nest.add(average, nest.number(eps, average)));
      });
  call.define(call.builder.pointwise(
                  call.node.name, x.sizes, meta.dtype,
                  [&](NestBuilder& nest) {
                    const int y = nest.mul(nest.cast(nest.load(x), c), nest.load(rstd));
                    return weight ? nest.mul(y, nest.cast(nest.load(*weight), c)) : y;
                  },
                  &meta),
              0);
  if (call.wanted(1)) call.define(call.builder.reshape(rstd, call.meta(1).sizes), 1);
  return as_kernel();
}

/// _fused_rms_norm_backward(grad, input, normalized_shape, rstd, weight, mask): with h = x * rstd and g = grad * weight,
/// dx = rstd * (g - h * mean(g * h)), dweight = sum(grad * h).
Lowered rms_norm_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_out"), x = call.tensor(1, "input"), rstd = call.tensor(3, "rstd");
  if (!is_kernel_dtype(x.dtype) || !is_float(x.dtype)) return declined_dtype();
  const std::size_t count = call.integers(2, "normalized_shape").size();
  const std::vector<std::size_t> dims = last_dims(x.rank(), count);
  const std::optional<Tensor> weight = call.optional_tensor(4, "weight");
  const DType c = compute_dtype(x.dtype);
  Builder& builder = call.builder;
  const auto hat = [&](NestBuilder& nest) { return nest.mul(nest.cast(nest.load(x), c), nest.cast(nest.load(rstd), c)); };
  const auto scaled = [&](NestBuilder& nest) {
    const int g = nest.cast(nest.load(grad), c);
    return weight ? nest.mul(g, nest.cast(nest.load(*weight), c)) : g;
  };
  if (call.wanted(0)) {
    const Tensor along = builder.average(call.node.name + ".mean_gh", x.sizes, dims, c,
                                         [&](NestBuilder& nest) { return nest.mul(scaled(nest), hat(nest)); });
    const trace::TensorMeta& meta = call.meta(0);
    call.define(builder.pointwise(
                    call.node.name, x.sizes, meta.dtype,
                    [&](NestBuilder& nest) {
                      const int h = hat(nest);
                      return nest.mul(nest.cast(nest.load(rstd), c), nest.sub(scaled(nest), nest.mul(h, nest.load(along))));
                    },
                    &meta),
                0);
  }
  if (!call.wanted(1)) return as_kernel();
  std::vector<std::size_t> outer;
  for (std::size_t d = 0; d < x.sizes.size() - count; ++d) outer.push_back(d);
  const Tensor total = builder.reduction(call.node.name + ".weight", x.sizes, outer, ReduceOp::sum, c, call.meta(1).dtype, false,
                                         [&](NestBuilder& nest) { return nest.mul(nest.cast(nest.load(grad), c), hat(nest)); });
  call.define(builder.reshape(total, call.meta(1).sizes), 1);
  return as_kernel();
}

}  // namespace

std::vector<Entry> normalisation_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "normalisation", f}); };
  for (std::string_view op : {"aten._softmax.default", "aten.softmax.int"}) add(op, softmax<false, false>);
  for (std::string_view op : {"aten._log_softmax.default", "aten.log_softmax.int"}) add(op, softmax<true, false>);
  add("aten._safe_softmax.default", softmax<false, true>);
  add("aten._softmax_backward_data.default", softmax_backward<false>);
  add("aten._log_softmax_backward_data.default", softmax_backward<true>);
  for (std::string_view op : {"aten.native_layer_norm.default", "aten.layer_norm.default"}) add(op, layer_norm);
  add("aten.native_layer_norm_backward.default", layer_norm_backward);
  for (std::string_view op : {"aten.rms_norm.default", "aten._fused_rms_norm.default"}) add(op, rms_norm);
  add("aten._fused_rms_norm_backward.default", rms_norm_backward);
  return rows;
}

}  // namespace pallascope::lower
