// Family: convolutions and their gradients. Each is one library call: a transposed convolution dilates its input, and
// the gradients are convolutions of what is there. The bias is a nest, so that what follows can fuse with it.
#include <algorithm>
#include <optional>

#include "core/lower/library.h"

namespace pallascope::lower {
namespace {

/// What a convolution is done with, one entry a spatial dimension.
struct Settings {
  Sizes stride, low, dilation;
  std::int64_t groups = 1;
};

/// A number stands for all spatial dimensions.
Sizes spread(Sizes given, std::size_t spatial, std::int64_t fallback) {
  if (given.empty()) given = {fallback};
  if (given.size() == 1) given.resize(spatial, given[0]);
  if (given.size() != spatial) throw MalformedNode{"a convolution with settings for another number of dimensions"};
  return given;
}

/// The letters of dimensions that lie in `order`: `letters` names the first two, digits the rest.
std::string spec(const std::vector<std::size_t>& order, const char* letters) {
  std::string text;
  for (const std::size_t d : order) text += d < 2 ? letters[d] : static_cast<char>('0' + (d - 2));
  return text;
}

/// One convolution: sizes [n, c, ..] and [o, i, ..] to [n, o, ..] of `sizes`, which say what is padded behind or cut off.
/// `input_letters` and the others name the first two dimensions for a gradient, whose batch is another dimension.
struct Request {
  Tensor input, kernel;
  const char* input_letters = "NC";
  const char* kernel_letters = "OI";
  const char* output_letters = "NC";
  Sizes stride, low, input_dilation, kernel_dilation;
  std::int64_t groups = 1, batch_groups = 1;
  Sizes sizes;
  std::vector<std::size_t> order;  ///< of the result in memory
  DType dtype = DType::f32;
};

Tensor convolve(Call& call, const Request& r) {
  Builder& builder = call.builder;
  const Tensor result = ordered_result(builder, r.dtype, r.sizes, r.order);
  if (numel(r.sizes) == 0) return result;
  if (numel(r.input.sizes) == 0 || numel(r.kernel.sizes) == 0) return filled(builder, call.node.name, r.sizes, r.dtype, 0);
  const std::size_t spatial = r.stride.size();
  loop::Convolution c;
  c.stride = r.stride;
  c.low = r.low;
  c.input_dilation = r.input_dilation;
  c.kernel_dilation = r.kernel_dilation;
  c.groups = r.groups;
  c.batch_groups = r.batch_groups;
  for (std::size_t d = 0; d < spatial; ++d) {
    const std::int64_t input = (r.input.sizes.at(d + 2) - 1) * r.input_dilation[d] + 1;
    const std::int64_t window = (r.kernel.sizes.at(d + 2) - 1) * r.kernel_dilation[d] + 1;
    c.high.push_back((r.sizes.at(d + 2) - 1) * r.stride[d] + window - input - r.low[d]);
  }
  const std::vector<std::size_t> input_order = order_in_memory(builder, r.input), kernel_order = order_in_memory(builder, r.kernel);
  c.input = spec(input_order, r.input_letters);
  c.kernel = spec(kernel_order, r.kernel_letters);
  c.output = spec(r.order, r.output_letters);
  add_library_call(call, std::move(c), {builder.permute(r.input, input_order), builder.permute(r.kernel, kernel_order)}, {result});
  return result;
}

/// A weight [a, b, ..] of a transposed convolution as the kernel of the convolution that it is: turned round, with
/// input and output channels exchanged within each group. Worked example with 2 groups, [4, 3, k] to [6, 2, k]: output
/// channel 4 is channel 1 of group 1, and input channel 1 of that group is channel 3 of all.
Tensor turned(Builder& builder, const Tensor& weight, std::int64_t groups) {
  if (weight.sizes.at(0) % groups != 0) throw MalformedNode{"channels that do not divide into the groups"};
  const std::int64_t in = weight.sizes[0] / groups, out = weight.sizes.at(1);
  Sizes sizes = weight.sizes;
  sizes[0] = out * groups;
  sizes[1] = in;
  if (numel(sizes) == 0) return builder.row_major(builder.add_buffer(weight.dtype, sizes), sizes);
  return builder.reindex(weight, sizes, [&](const Index& at) {
    index::Context& context = builder.context();
    Index source = at;
    source[0] = context.add(context.multiply(context.floor_div(at[0], out), in), at[1]);
    source[1] = context.mod(at[0], out);
    for (std::size_t d = 2; d < at.size(); ++d)
      source[d] = context.add(context.constant(sizes[d] - 1), context.multiply(at[d], -1));
    return source;
  });
}

Request plain(const Tensor& x, const Tensor& weight, const Settings& s) {
  Request r;
  r.input = x;
  r.kernel = weight;
  r.stride = s.stride;
  r.low = s.low;
  r.input_dilation = Sizes(s.stride.size(), 1);
  r.kernel_dilation = s.dilation;
  r.groups = s.groups;
  return r;
}

/// The transposed convolution of `x`, which is also the gradient of a convolution for its input.
Request transposed_request(Builder& builder, const Tensor& x, const Tensor& weight, const Settings& s) {
  Request r;
  r.input = x;
  r.kernel = turned(builder, weight, s.groups);
  r.stride = Sizes(s.stride.size(), 1);
  r.input_dilation = s.stride;
  r.kernel_dilation = s.dilation;
  r.groups = s.groups;
  for (std::size_t d = 0; d < s.stride.size(); ++d) r.low.push_back(s.dilation[d] * (weight.sizes.at(d + 2) - 1) - s.low[d]);
  return r;
}

/// The gradient of a convolution for its weight: `x` convolved with the result's gradient, batches added up.
Request weight_request(const Tensor& x, const Tensor& gradient, const Settings& s) {
  Request r;
  r.input = x;
  r.input_letters = "CN";
  r.kernel = gradient;
  r.kernel_letters = "IO";
  r.output_letters = "CN";
  r.stride = s.dilation;
  r.low = s.low;
  r.input_dilation = Sizes(s.stride.size(), 1);
  r.kernel_dilation = s.stride;
  r.batch_groups = s.groups;
  return r;
}

Tensor in_sizes(Call& call, Request r, const Sizes& sizes, const trace::TensorMeta& meta, DType dtype) {
  r.sizes = sizes;
  r.dtype = dtype;
  r.order = memory_order(meta);
  // A batch of one that the result does not have.
  if (r.order.size() + 1 == sizes.size()) {
    for (std::size_t& d : r.order) ++d;
    r.order.insert(r.order.begin(), 0);
  }
  return convolve(call, r);
}

Tensor with_batch(Builder& builder, const Tensor& x, std::size_t rank) {
  if (x.sizes.size() + 1 != rank) return x;
  Sizes sizes = x.sizes;
  sizes.insert(sizes.begin(), 1);
  return builder.reshape(x, sizes);
}

/// The convolution with the bias added. PyTorch has no dilated or transposed ones of the shorter integers, and says so.
Lowered finish(Call& call, bool is_transposed, Tensor x, const Tensor& weight, const std::optional<Tensor>& bias, const Settings& s) {
  Builder& builder = call.builder;
  const trace::TensorMeta& meta = call.meta();
  const bool dilated = std::any_of(s.dilation.begin(), s.dilation.end(), [](std::int64_t d) { return d != 1; });
  if (is_integer(meta.dtype) && meta.dtype != DType::i64 && (is_transposed || dilated))
    return declined("a dilated or transposed convolution of short integers");
  x = with_batch(builder, x, weight.sizes.size());
  if (x.rank() != weight.rank()) throw MalformedNode{"an input and a weight of different rank"};
  Sizes sizes = meta.sizes;
  if (sizes.size() + 1 == weight.sizes.size()) sizes.insert(sizes.begin(), 1);
  const Request request = is_transposed ? transposed_request(builder, x, weight, s) : plain(x, weight, s);
  const DType c = compute_dtype(meta.dtype);
  const Tensor made = builder.reshape(in_sizes(call, request, sizes, meta, bias ? c : meta.dtype), meta.sizes);
  if (!bias) {
    call.define(made);
    return as_made(call);
  }
  const std::size_t channel = meta.sizes.size() + 1 == weight.sizes.size() ? 0 : 1;
  call.define(builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        const int left = nest.load(made);
        return nest.add(left, nest.cast(nest.load_at(*bias, {nest.index(channel)}), c));
      },
      &meta));
  return as_made(call);
}

bool in_kernel(const Call& call) { return is_kernel_dtype(call.meta().dtype) && !is_bool(call.meta().dtype); }

std::size_t spatial_of(const Tensor& weight) {
  if (weight.rank() < 3 || weight.rank() > 5) throw MalformedNode{"a weight with no or too many spatial dimensions"};
  return weight.sizes.size() - 2;
}

/// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Lowered convolution(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  const Tensor x = call.tensor(0, "input"), weight = call.tensor(1, "weight");
  const std::size_t n = spatial_of(weight);
  const Settings s{spread(call.integers(3, "stride"), n, 1), spread(call.integers(4, "padding"), n, 0),
                   spread(call.integers(5, "dilation"), n, 1), call.integer(8, "groups", 1)};
  return finish(call, call.boolean(6, "transposed"), x, weight, call.optional_tensor(2, "bias"), s);
}

/// conv2d(input, weight, bias, stride, padding, dilation, groups); padding may be "same" or "valid".
Lowered conv(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  const Tensor x = call.tensor(0, "input"), weight = call.tensor(1, "weight");
  const std::size_t n = spatial_of(weight);
  Settings s{spread(call.integers(3, "stride"), n, 1), {}, spread(call.integers(5, "dilation"), n, 1), call.integer(6, "groups", 1)};
  const std::string mode = call.text(4, "padding");
  s.low = spread(mode.empty() ? call.integers(4, "padding") : Sizes{}, n, 0);
  if (mode == "same")
    for (std::size_t d = 0; d < n; ++d) s.low[d] = s.dilation[d] * (weight.sizes[d + 2] - 1) / 2;
  return finish(call, false, x, weight, call.optional_tensor(2, "bias"), s);
}

/// conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation)
Lowered conv_transpose(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  const Tensor x = call.tensor(0, "input"), weight = call.tensor(1, "weight");
  const std::size_t n = spatial_of(weight);
  const Settings s{spread(call.integers(3, "stride"), n, 1), spread(call.integers(4, "padding"), n, 0),
                   spread(call.integers(7, "dilation"), n, 1), call.integer(6, "groups", 1)};
  return finish(call, true, x, weight, call.optional_tensor(2, "bias"), s);
}

/// conv_tbc(input [time, batch, in], weight [time, in, out], bias [out], pad)
Lowered conv_tbc(Call& call) {
  if (!in_kernel(call)) return declined_dtype();
  Builder& builder = call.builder;
  const trace::TensorMeta& meta = call.meta();
  const Tensor x = builder.permute(call.tensor(0, "self"), {1, 2, 0}), bias = call.tensor(2, "bias");
  const Tensor weight = builder.permute(call.tensor(1, "weight"), {2, 1, 0});
  Request r = plain(x, weight, {{1}, {call.integer(3, "pad")}, {1}, 1});
  r.sizes = {x.sizes[0], weight.sizes[0], meta.sizes.at(0)};
  r.dtype = compute_dtype(meta.dtype);
  r.order = {2, 0, 1};
  const Tensor made = builder.permute(convolve(call, r), {2, 0, 1});
  call.define(builder.pointwise(call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) {
    const int left = nest.load(made);
    return nest.add(left, nest.cast(nest.load(bias), compute_dtype(meta.dtype)));
  }));
  return as_made(call);
}

/// convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding,
/// groups, output_mask) -> grad_input, grad_weight, grad_bias
Lowered convolution_backward(Call& call) {
  Builder& builder = call.builder;
  const Tensor gradient = call.tensor(0, "grad_output"), x = call.tensor(1, "input"), weight = call.tensor(2, "weight");
  if (!is_kernel_dtype(gradient.dtype)) return declined_dtype();
  const std::size_t n = spatial_of(weight);
  if (gradient.rank() != weight.rank() || x.rank() != weight.rank()) throw MalformedNode{"a gradient of another rank"};
  const Settings s{spread(call.integers(4, "stride"), n, 1), spread(call.integers(5, "padding"), n, 0),
                   spread(call.integers(6, "dilation"), n, 1), call.integer(9, "groups", 1)};
  const bool is_transposed = call.boolean(7, "transposed");
  if (call.wanted(0)) {
    const trace::TensorMeta& meta = call.meta(0);
    const Request r = is_transposed ? plain(gradient, weight, s) : transposed_request(builder, gradient, weight, s);
    call.define(in_sizes(call, r, meta.sizes, meta, meta.dtype), 0);
  }
  if (call.wanted(1)) {
    const trace::TensorMeta& meta = call.meta(1);
    // The weight of a transposed convolution is that of the convolution back from its result.
    const Request r = is_transposed ? weight_request(gradient, x, s) : weight_request(x, gradient, s);
    call.define(in_sizes(call, r, meta.sizes, meta, meta.dtype), 1);
  }
  if (call.wanted(2)) {
    std::vector<std::size_t> dims = {0};
    for (std::size_t d = 2; d < gradient.sizes.size(); ++d) dims.push_back(d);
    const DType c = compute_dtype(gradient.dtype);
    call.define(builder.reduction(call.node.name + ".bias", gradient.sizes, dims, loop::ReduceOp::sum, c, call.meta(2).dtype, false,
                                  [&](NestBuilder& nest) { return nest.cast(nest.load(gradient), c); }),
                2);
  }
  return as_made(call);
}

}  // namespace

std::vector<Entry> convolution_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "library", f}); };
  for (std::string_view op : {"aten.convolution.default", "aten._convolution.default", "aten._convolution.deprecated"})
    add(op, convolution);
  for (std::string_view op : {"aten.conv1d.default", "aten.conv1d.padding", "aten.conv2d.default", "aten.conv2d.padding",
                              "aten.conv3d.default", "aten.conv3d.padding", "aten._convolution_mode.default"})
    add(op, conv);
  for (std::string_view op : {"aten.conv_transpose1d.default", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input"})
    add(op, conv_transpose);
  add("aten.conv_tbc.default", conv_tbc);
  add("aten.convolution_backward.default", convolution_backward);
  return rows;
}

}  // namespace pallascope::lower
