// Family: normalisation over channels or groups of channels (batch, instance and group norm).
#include <algorithm>

#include "core/lower/builder.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;
using loop::ReduceOp;

/// Every dimension but the channels'.
std::vector<std::size_t> not_channels(const Tensor& x) {
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < x.sizes.size(); ++d)
    if (d != 1) dims.push_back(d);
  return dims;
}

/// The element of a per-channel tensor [C] for the nest's position in [N, C, ...].
int channel(NestBuilder& nest, const Tensor& x, DType c) { return nest.cast(nest.load_at(x, {nest.index(1)}), c); }

/// Mean and biased variance over `dims`, without these dimensions, in two passes.
struct Statistics {
  Tensor mean, variance;
};

Statistics statistics(Call& call, const Tensor& x, const std::vector<std::size_t>& dims, DType c) {
  Builder& builder = call.builder;
  const Tensor kept = builder.average(call.node.name + ".mean", x.sizes, dims, c,
                                [&](NestBuilder& nest) { return nest.cast(nest.load(x), c); });
  const Tensor variance = builder.average(call.node.name + ".var", x.sizes, dims, c, [&](NestBuilder& nest) {
    const int distance = nest.sub(nest.cast(nest.load(x), c), nest.load(kept));
    return nest.mul(distance, distance);
  });
  Sizes left;
  for (std::size_t d = 0; d < x.sizes.size(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) left.push_back(x.sizes[d]);
  return {builder.reshape(kept, left), builder.reshape(variance, left)};
}

int inverse_deviation(NestBuilder& nest, int variance, double eps) {
  return nest.op(ComputeOp::rsqrt, nest.add(variance, nest.number(eps, variance)));
}

/// A per-channel nest over [C], stored in the dtype of output `output` if it has C elements.
void define_channels(Call& call, std::size_t output, std::string_view name, const std::function<int(NestBuilder&)>& body) {
  if (!call.wanted(output)) return;
  const trace::TensorMeta& meta = call.meta(output);
  call.define(meta.numel() == 0 ? call.builder.row_major(call.builder.add_buffer(meta.dtype, meta.sizes), meta.sizes)
                                : call.builder.pointwise(call.node.name + std::string(name), meta.sizes, meta.dtype, body),
              output);
}

/// The positions of arguments, which differ between the overloads.
struct BatchNormForm {
  bool has_running = true;
  bool training = true;
  double momentum = 0.1, eps = 1e-5;
  bool updates = false;  ///< gives the new running statistics as outputs 3 and 4
};

Lowered batch_norm_of(Call& call, const BatchNormForm& form) {
  const Tensor x = call.tensor(0, "input");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype) || !is_float(x.dtype)) return declined_dtype();
  if (x.rank() < 2) throw MalformedNode{"a batch norm of rank below 2"};
  if (meta.numel() == 0) return declined("a batch norm over no element");
  const std::optional<Tensor> weight = call.optional_tensor(1, "weight"), bias = call.optional_tensor(2, "bias");
  const DType c = compute_dtype(x.dtype);
  std::optional<Tensor> running_mean, running_var;
  if (form.has_running) {
    running_mean = call.optional_tensor(3, "running_mean");
    running_var = call.optional_tensor(4, "running_var");
  }
  const std::vector<std::size_t> dims = not_channels(x);
  const auto count = static_cast<double>(points(x.sizes, dims));
  if (!form.training && (!running_mean || !running_var)) throw MalformedNode{"a batch norm without statistics"};
  const Statistics s = form.training ? statistics(call, x, dims, c) : Statistics{*running_mean, *running_var};
  call.define(call.builder.pointwise(
                  call.node.name, x.sizes, meta.dtype,
                  [&](NestBuilder& nest) {
                    const int distance = nest.sub(nest.cast(nest.load(x), c), channel(nest, s.mean, c));
                    int y = nest.mul(distance, inverse_deviation(nest, channel(nest, s.variance, c), form.eps));
                    if (weight) y = nest.mul(y, channel(nest, *weight, c));
                    if (bias) y = nest.add(y, channel(nest, *bias, c));
                    return y;
                  },
                  &meta),
              0);
  define_channels(call, 1, ".save_mean", [&](NestBuilder& nest) { return nest.cast(nest.load(s.mean), c); });
  define_channels(call, 2, ".save_invstd", [&](NestBuilder& nest) {
    return inverse_deviation(nest, nest.cast(nest.load(s.variance), c), form.eps);
  });
  if (!form.updates) return as_kernel();
  // running = (1 - momentum) * running + momentum * batch, the variance unbiased.
  const auto blend = [&](NestBuilder& nest, const Tensor& running, int batch) {
    const int old = nest.cast(nest.load(running), c);
    return nest.add(nest.mul(batch, nest.number(form.momentum, batch)), nest.mul(old, nest.number(1 - form.momentum, old)));
  };
  define_channels(call, 3, ".running_mean", [&](NestBuilder& nest) {
    if (!form.training) return nest.cast(nest.load(*running_mean), c);
    return blend(nest, *running_mean, nest.load(s.mean));
  });
  define_channels(call, 4, ".running_var", [&](NestBuilder& nest) {
    if (!form.training) return nest.cast(nest.load(*running_var), c);
    const int biased = nest.load(s.variance);
    return blend(nest, *running_var, nest.mul(biased, nest.number(count / (count - 1), biased)));
  });
  return as_kernel();
}

/// (input, weight, bias, running_mean, running_var, momentum, eps)
Lowered batch_norm_inference(Call& call) {
  return batch_norm_of(call, {true, false, call.number(5, "momentum", 0.1), call.number(6, "eps", 1e-5), false});
}

/// (input, weight, bias, running_mean, running_var, training, momentum, eps) with the new statistics as results.
Lowered batch_norm_functional(Call& call) {
  return batch_norm_of(call, {true, call.boolean(5, "training", true), call.number(6, "momentum", 0.1), call.number(7, "eps", 1e-5), true});
}

/// (input, weight, bias, training, momentum, eps)
Lowered batch_norm_no_stats(Call& call) {
  if (!call.boolean(3, "training", true)) return declined("a batch norm without statistics outside of training");
  return batch_norm_of(call, {false, true, call.number(4, "momentum", 0.1), call.number(5, "eps", 1e-5), false});
}

/// batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps): one that updates running
/// statistics has been rewritten.
Lowered batch_norm(Call& call) {
  const bool training = call.boolean(5, "training");
  return batch_norm_of(call, {!training, training, call.number(6, "momentum", 0.1), call.number(7, "eps", 1e-5), false});
}

/// instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)
Lowered instance_norm(Call& call) {
  const double eps = call.number(7, "eps", 1e-5);
  if (!call.boolean(5, "use_input_stats", true)) return batch_norm_of(call, {true, false, 0, eps, false});
  const Tensor x = call.tensor(0, "input");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype) || !is_float(x.dtype)) return declined_dtype();
  if (x.rank() < 3) throw MalformedNode{"an instance norm of rank below 3"};
  if (meta.numel() == 0) return declined("an instance norm over no element");
  const std::optional<Tensor> weight = call.optional_tensor(1, "weight"), bias = call.optional_tensor(2, "bias");
  const DType c = compute_dtype(x.dtype);
  std::vector<std::size_t> dims;
  for (std::size_t d = 2; d < x.sizes.size(); ++d) dims.push_back(d);
  const Statistics s = statistics(call, x, dims, c);
  call.define(call.builder.pointwise(
      call.node.name, x.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        const Index at = {nest.index(0), nest.index(1)};
        const int distance = nest.sub(nest.cast(nest.load(x), c), nest.load_at(s.mean, at));
        int y = nest.mul(distance, inverse_deviation(nest, nest.load_at(s.variance, at), eps));
        if (weight) y = nest.mul(y, channel(nest, *weight, c));
        if (bias) y = nest.add(y, channel(nest, *bias, c));
        return y;
      },
      &meta));
  return as_kernel();
}

/// native_batch_norm_backward(grad, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, mask).
/// With h = (x - mean) * invstd: dweight = sum(grad * h), dbias = sum(grad), and in training
/// dx = weight * invstd * (grad - mean(grad) - h * mean(grad * h)); outside of it dx = grad * weight * invstd.
Lowered batch_norm_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_out"), x = call.tensor(1, "input");
  if (!is_kernel_dtype(x.dtype) || !is_float(x.dtype)) return declined_dtype();
  if (x.rank() < 2) throw MalformedNode{"a batch norm of rank below 2"};
  if (x.sizes[1] == 0 || points(x.sizes, not_channels(x)) == 0) return declined("a batch norm over no element");
  const std::optional<Tensor> weight = call.optional_tensor(2, "weight");
  const bool train = call.boolean(7, "train", true);
  const double eps = call.number(8, "eps", 1e-5);
  const Tensor mean = train ? call.tensor(5, "save_mean") : call.tensor(3, "running_mean");
  const Tensor spread = train ? call.tensor(6, "save_invstd") : call.tensor(4, "running_var");
  const DType c = compute_dtype(x.dtype);
  const std::vector<std::size_t> dims = not_channels(x);
  const auto count = static_cast<double>(points(x.sizes, dims));
  Builder& builder = call.builder;
  const auto invstd = [&](NestBuilder& nest) {
    const int value = channel(nest, spread, c);
    return train ? value : inverse_deviation(nest, value, eps);
  };
  const auto hat = [&](NestBuilder& nest) {
    return nest.mul(nest.sub(nest.cast(nest.load(x), c), channel(nest, mean, c)), invstd(nest));
  };
  const Tensor sum_grad = builder.reduction(call.node.name + ".bias", x.sizes, dims, ReduceOp::sum, c, c, false,
                                            [&](NestBuilder& nest) { return nest.cast(nest.load(grad), c); });
  const Tensor sum_grad_hat =
      builder.reduction(call.node.name + ".weight", x.sizes, dims, ReduceOp::sum, c, c, false, [&](NestBuilder& nest) {
        const int g = nest.cast(nest.load(grad), c);
        return nest.mul(g, hat(nest));
      });
  if (call.wanted(0)) {
    const trace::TensorMeta& meta = call.meta(0);
    call.define(builder.pointwise(
                    call.node.name, x.sizes, meta.dtype,
                    [&](NestBuilder& nest) {
                      int g = nest.cast(nest.load(grad), c);
                      if (train) {
                        const int average = nest.div(channel(nest, sum_grad, c), nest.number(count, g));
                        const int along_hat = nest.div(channel(nest, sum_grad_hat, c), nest.number(count, g));
                        g = nest.sub(nest.sub(g, average), nest.mul(hat(nest), along_hat));
                      }
                      g = nest.mul(g, invstd(nest));
                      return weight ? nest.mul(g, channel(nest, *weight, c)) : g;
                    },
                    &meta),
                0);
  }
  define_channels(call, 1, ".weight_result", [&](NestBuilder& nest) { return nest.load(sum_grad_hat); });
  define_channels(call, 2, ".bias_result", [&](NestBuilder& nest) { return nest.load(sum_grad); });
  return as_kernel();
}

/// native_group_norm(input, weight, bias, N, C, HxW, group, eps) -> out, mean, rstd. The input is seen as
/// [N, group, C / group, HxW], so that every index stays affine.
Lowered group_norm(Call& call) {
  const Tensor x = call.tensor(0, "input");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype) || !is_float(x.dtype)) return declined_dtype();
  const bool native = call.node.target == "aten.native_group_norm.default";
  const std::int64_t groups = native ? call.integer(6, "group") : call.integer(1, "num_groups");
  if (x.rank() < 2 || groups < 1 || x.sizes[1] % groups != 0) throw MalformedNode{"groups that do not divide the channels"};
  if (meta.numel() == 0) return declined("a group norm over no element");
  const std::size_t w = native ? 1 : 2;
  const std::optional<Tensor> weight = call.optional_tensor(w, "weight"), bias = call.optional_tensor(w + 1, "bias");
  const double eps = call.number(native ? 7 : 4, "eps", 1e-5);
  const DType c = compute_dtype(x.dtype);
  Builder& builder = call.builder;
  std::int64_t inner = 1;
  for (std::size_t d = 2; d < x.sizes.size(); ++d) inner *= x.sizes[d];
  const Sizes seen = {x.sizes[0], groups, x.sizes[1] / groups, inner};
  const Tensor grouped = builder.reshape(x, seen);
  const Statistics s = statistics(call, grouped, {2, 3}, c);
  const auto per_channel = [&](const Tensor& t) { return builder.reshape(t, {groups, seen[2]}); };
  const std::optional<Tensor> scale = weight ? std::optional(per_channel(*weight)) : std::nullopt;
  const std::optional<Tensor> shift = bias ? std::optional(per_channel(*bias)) : std::nullopt;
  const auto of_group = [&](NestBuilder& nest, const Tensor& t) { return nest.load_at(t, {nest.index(0), nest.index(1)}); };
  const auto of_channel = [&](NestBuilder& nest, const Tensor& t) {
    return nest.cast(nest.load_at(t, {nest.index(1), nest.index(2)}), c);
  };
  const Tensor result = builder.pointwise(call.node.name, seen, meta.dtype, [&](NestBuilder& nest) {
    const int distance = nest.sub(nest.cast(nest.load(grouped), c), of_group(nest, s.mean));
    int y = nest.mul(distance, inverse_deviation(nest, of_group(nest, s.variance), eps));
    if (scale) y = nest.mul(y, of_channel(nest, *scale));
    if (shift) y = nest.add(y, of_channel(nest, *shift));
    return y;
  });
  call.define(builder.reshape(result, meta.sizes), 0);
  define_channels(call, 1, ".mean", [&](NestBuilder& nest) { return nest.load(s.mean); });
  define_channels(call, 2, ".rstd", [&](NestBuilder& nest) { return inverse_deviation(nest, nest.load(s.variance), eps); });
  return as_kernel();
}

/// native_group_norm_backward(grad, input, mean, rstd, weight, N, C, HxW, group, mask): with h = (x - mean) * rstd and
/// g = grad * weight, dx = rstd * (g - mean(g) - h * mean(g * h)) over each group.
Lowered group_norm_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_out"), x = call.tensor(1, "input");
  if (!is_kernel_dtype(x.dtype) || !is_float(x.dtype)) return declined_dtype();
  const std::int64_t groups = call.integer(8, "group");
  if (x.rank() < 2 || groups < 1 || x.sizes[1] % groups != 0) throw MalformedNode{"groups that do not divide the channels"};
  std::int64_t inner = 1;
  for (std::size_t d = 2; d < x.sizes.size(); ++d) inner *= x.sizes[d];
  const Sizes seen = {x.sizes[0], groups, x.sizes[1] / groups, inner};
  if (seen[0] * x.sizes[1] * inner == 0) return declined("a group norm over no element");
  Builder& builder = call.builder;
  const DType c = compute_dtype(x.dtype);
  const Tensor g = builder.reshape(grad, seen), v = builder.reshape(x, seen);
  const Tensor mean = builder.reshape(call.tensor(2, "mean"), {seen[0], groups}), rstd = builder.reshape(call.tensor(3, "rstd"), {seen[0], groups});
  std::optional<Tensor> weight = call.optional_tensor(4, "weight");
  if (weight) weight = builder.reshape(*weight, {groups, seen[2]});
  const auto of_group = [&](NestBuilder& n, const Tensor& t) { return n.cast(n.load_at(t, {n.index(0), n.index(1)}), c); };
  const auto hat = [&](NestBuilder& n) {
    return n.mul(n.sub(n.cast(n.load(v), c), of_group(n, mean)), of_group(n, rstd));
  };
  const auto scaled = [&](NestBuilder& n) {
    const int value = n.cast(n.load(g), c);
    return weight ? n.mul(value, n.cast(n.load_at(*weight, {n.index(1), n.index(2)}), c)) : value;
  };
  if (call.wanted(0)) {
    const Tensor mean_g = builder.average(call.node.name + ".mean_g", seen, {2, 3}, c, scaled);
    const Tensor mean_gh = builder.average(call.node.name + ".mean_gh", seen, {2, 3}, c,
                                           [&](NestBuilder& n) { return n.mul(scaled(n), hat(n)); });
    const Tensor made = builder.pointwise(call.node.name, seen, call.meta(0).dtype, [&](NestBuilder& n) {
      const int h = hat(n);
      const int rest = n.sub(n.sub(scaled(n), n.load(mean_g)), n.mul(h, n.load(mean_gh)));
      return n.mul(of_group(n, rstd), rest);
    });
    call.define(builder.reshape(made, call.meta(0).sizes), 0);
  }
  for (const std::size_t k : {std::size_t{1}, std::size_t{2}}) {
    if (!call.wanted(k)) continue;
    const Tensor sum = builder.reduction(call.node.name + (k == 1 ? ".weight" : ".bias"), seen, {0, 3}, ReduceOp::sum, c, call.meta(k).dtype,
                                         false, [&](NestBuilder& n) {
                                           const int value = n.cast(n.load(g), c);
                                           return k == 1 ? n.mul(value, hat(n)) : value;
                                         });
    call.define(builder.reshape(sum, call.meta(k).sizes), k);
  }
  return as_kernel();
}

}  // namespace

std::vector<Entry> channel_norm_entries() {
  return {{"aten.batch_norm.default", "normalisation", batch_norm},
          {"aten.instance_norm.default", "normalisation", instance_norm},
          {"aten.native_group_norm_backward.default", "normalisation", group_norm_backward},
          {"aten._native_batch_norm_legit_no_training.default", "normalisation", batch_norm_inference},
          {"aten._native_batch_norm_legit_functional.default", "normalisation", batch_norm_functional},
          {"aten._native_batch_norm_legit.no_stats", "normalisation", batch_norm_no_stats},
          {"aten.native_batch_norm_backward.default", "normalisation", batch_norm_backward},
          {"aten.native_group_norm.default", "normalisation", group_norm},
          {"aten.group_norm.default", "normalisation", group_norm}};
}

}  // namespace pallascope::lower
