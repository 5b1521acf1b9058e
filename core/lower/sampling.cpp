// Family: sliding blocks as columns and back, sampling at positions that are data, and the grids for it.
#include <algorithm>
#include <numeric>

#include "core/lower/builder.h"
#include "core/lower/regions.h"
#include "core/lower/windows.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;

constexpr std::int64_t kMostRegions = 64;

/// The windows of im2col and col2im over an image of two dimensions behind the channels.
std::vector<Window> blocks(const Call& call, const Sizes& image, std::size_t first) {
  const Sizes kernel = per_dimension(call, first, "kernel_size", 2, {}), dilation = per_dimension(call, first + 1, "dilation", 2, {1, 1});
  const Sizes padding = per_dimension(call, first + 2, "padding", 2, {0, 0}), stride = per_dimension(call, first + 3, "stride", 2, {1, 1});
  if (kernel.size() != 2 || image.size() < 2) throw MalformedNode{"blocks need two dimensions"};
  Sizes counts = image;
  for (std::size_t k = 0; k < 2; ++k) {
    std::int64_t& n = counts[image.size() - 2 + k];
    n = (n + 2 * padding[k] - dilation[k] * (kernel[k] - 1) - 1) / std::max<std::int64_t>(1, stride[k]) + 1;
  }
  return windows_over(image, counts, kernel, stride, padding, dilation);
}

/// im2col: [N, C, H, W] -> [N, C*kh*kw, L]. A nest for each place in a block, which is a strided slice.
Lowered im2col(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype)) return declined_dtype();
  const std::vector<Window> windows = blocks(call, x.sizes, 1);
  if (taps_of(windows) > kMostRegions) return declined("blocks of so many elements");
  Builder& builder = call.builder;
  index::Context& context = builder.context();
  Sizes before(x.sizes.size(), 0), sizes = x.sizes, columns(x.sizes.begin(), x.sizes.end() - 2);
  bool needed = false;
  for (const Window& w : windows) {
    before[w.dim] = w.before;
    sizes[w.dim] = std::max(w.extent(), w.before + w.in);
    needed = needed || !w.inside();
  }
  const Tensor source = needed ? padded(builder, call.node.name, x, before, sizes, to_scalar(0, x.dtype)) : x;
  const std::size_t lead = columns.size();
  for (std::int64_t n : {windows[0].size, windows[1].size, windows[0].out, windows[1].out}) columns.push_back(n);
  const Canvas canvas = blank(builder, x.dtype, columns);
  for_each_tap(windows, [&](const Sizes& tap) {
    Region region = whole(columns);
    for (std::size_t k = 0; k < 2; ++k) {
      region.start[lead + k] = tap[k];
      region.count[lead + k] = 1;
    }
    fill(builder, call.node.name, canvas, region, [&](NestBuilder& nest, const Index& position) {
      Index at(position.begin(), position.begin() + static_cast<std::ptrdiff_t>(lead));
      for (std::size_t k = 0; k < 2; ++k)
        at.push_back(context.add(context.multiply(position[lead + 2 + k], windows[k].stride), context.constant(tap[k] * windows[k].dilation)));
      return nest.load_at(source, at);
    });
  });
  call.define(builder.reshape(canvas.tensor, meta.sizes));
  return as_kernel();
}

/// col2im: each element of the image is the sum of the columns' elements that stand for it. A nest a residue of the
/// stride in each dimension, so that all of its reads are slices of the padded columns.
Lowered col2im(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype) || is_bool(x.dtype)) return declined_dtype();
  const std::vector<Window> windows = blocks(call, meta.sizes, 2);
  if (taps_of(windows) > kMostRegions) return declined("blocks of so many elements");
  if (windows[0].stride * windows[1].stride > kMostRegions) return declined("blocks so far apart");
  Builder& builder = call.builder;
  index::Context& context = builder.context();
  const DType c = compute_dtype(meta.dtype);
  const std::size_t lead = meta.sizes.size() - 2;
  Sizes split(meta.sizes.begin(), meta.sizes.begin() + static_cast<std::ptrdiff_t>(lead));
  for (std::int64_t n : {windows[0].size, windows[1].size, windows[0].out, windows[1].out}) split.push_back(n);
  const Tensor columns = builder.reshape(x, split);
  // Block numbers from -margin on: those outside of the image's blocks hold nothing.
  Sizes before(split.size(), 0), sizes = split;
  Sizes margin(2, 0);
  for (std::size_t k = 0; k < 2; ++k) {
    const Window& w = windows[k];
    margin[k] = ((w.size - 1) * w.dilation) / w.stride + 1;
    before[lead + 2 + k] = margin[k];
    sizes[lead + 2 + k] = std::max(w.out, (w.in + w.before) / w.stride + 1) + margin[k];
  }
  const Tensor source = padded(builder, call.node.name, columns, before, sizes, to_scalar(0, x.dtype));
  const Canvas canvas = blank(builder, meta.dtype, meta.sizes, memory_order(meta));
  for (std::int64_t rh = 0; rh < windows[0].stride; ++rh)
    for (std::int64_t rw = 0; rw < windows[1].stride; ++rw) {
      Region region = whole(meta.sizes);
      const Sizes rest = {rh, rw};
      for (std::size_t k = 0; k < 2; ++k) {
        const Window& w = windows[k];
        region.start[w.dim] = rest[k];
        region.step[w.dim] = w.stride;
        region.count[w.dim] = rest[k] >= w.in ? 0 : (w.in - rest[k] + w.stride - 1) / w.stride;
      }
      fill(builder, call.node.name, canvas, region, [&](NestBuilder& nest, const Index&) {
        int total = -1;
        for_each_tap(windows, [&](const Sizes& tap) {
          Index at(nest.index().begin(), nest.index().begin() + static_cast<std::ptrdiff_t>(lead));
          Index block;
          for (std::size_t k = 0; k < 2; ++k) {
            const Window& w = windows[k];
            // Element stride*i + rest stands at place tap of block o if stride*i + rest + before = stride*o + tap*dilation.
            const std::int64_t difference = rest[k] + w.before - tap[k] * w.dilation;
            if (((difference % w.stride) + w.stride) % w.stride != 0) return;
            at.push_back(context.constant(tap[k]));
            block.push_back(context.add(nest.index(w.dim), context.constant(difference / w.stride + margin[k])));
          }
          at.insert(at.end(), block.begin(), block.end());
          const int value = nest.cast(nest.load_at(source, at), c);
          total = total < 0 ? value : added(nest, total, value, meta.dtype);
        });
        return total < 0 ? nest.constant(to_scalar(0, c), c) : total;
      });
    }
  call.define(canvas.tensor);
  return as_kernel();
}

// --------------------------------------------------------------------------------------------- grid sampling

enum Interpolation : std::int64_t { kBilinear = 0, kNearest = 1 };
enum Padding : std::int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

/// A position within 0 .. extent-1, as the padding mode maps it.
int source_position(NestBuilder& nest, int coordinate, std::int64_t extent, std::int64_t padding, bool align) {
  const auto number = [&](double n) { return nest.number(n, coordinate); };
  const auto n = static_cast<double>(extent);
  int at = align ? nest.mul(nest.div(nest.add(coordinate, number(1)), number(2)), number(n - 1))
                 : nest.div(nest.sub(nest.mul(nest.add(coordinate, number(1)), number(n)), number(1)), number(2));
  const auto clip = [&](int value) {
    // Not a number goes to the first element, as eager's comparisons have it.
    const int low = nest.where(nest.compare(ComputeOp::gt, value, number(0)), value, number(0));
    return nest.op(ComputeOp::minimum, low, number(n - 1));
  };
  if (padding == kBorder) return clip(at);
  if (padding == kReflection) {
    const double low = align ? 0 : -0.5, span = align ? n - 1 : n;
    if (span == 0) return clip(nest.mul(at, number(0)));
    at = nest.op(ComputeOp::abs, nest.sub(at, number(low)));
    const int extra = nest.op(ComputeOp::rem_trunc, at, number(span));
    const int flips = nest.op(ComputeOp::floor, nest.div(at, number(span)));
    const int odd = nest.compare(ComputeOp::ne, nest.op(ComputeOp::rem_trunc, flips, number(2)), number(0));
    const int mirrored = nest.where(odd, nest.add(nest.sub(number(span), extra), number(low)), nest.add(extra, number(low)));
    return clip(mirrored);
  }
  return at;
}

/// grid_sampler_2d(x, grid, interpolation, padding, align_corners): x read at the grid's positions.
Lowered grid_sampler(Call& call) {
  const Tensor x = call.tensor(0, "input"), grid = call.tensor(1, "grid");
  const trace::TensorMeta& meta = call.meta();
  const std::int64_t mode = call.integer(2, "interpolation_mode", 0), padding = call.integer(3, "padding_mode", 0);
  const bool align = call.boolean(4, "align_corners", false);
  if (!is_kernel_dtype(x.dtype) || !is_float(x.dtype) || grid.dtype != x.dtype) return declined_dtype();
  if (x.rank() != 4 || grid.rank() != 4 || meta.rank() != 4) return declined("grid sampling of volumes");
  if (mode != kBilinear && mode != kNearest) return declined("cubic grid sampling");
  if (meta.numel() == 0 || x.sizes[2] * x.sizes[3] == 0) return declined("grid sampling of nothing");
  Builder& builder = call.builder;
  const DType c = compute_dtype(x.dtype);
  call.define(builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        const auto coordinate = [&](std::int64_t k) {
          return nest.cast(nest.load_at(grid, {nest.index(0), nest.index(2), nest.index(3), builder.context().constant(k)}), c);
        };
        const std::int64_t extent[2] = {x.sizes[2], x.sizes[3]};
        const int at[2] = {source_position(nest, coordinate(1), extent[0], padding, align),
                           source_position(nest, coordinate(0), extent[1], padding, align)};
        // The element at whole numbers `py`, `px`, or 0 where there is none.
        const auto element = [&](int py, int px) {
          index::Expression place[2];
          int inside = -1;
          const int p[2] = {py, px};
          for (std::size_t k = 0; k < 2; ++k) {
            const auto last = static_cast<double>(extent[k] - 1);
            const int fits = nest.compare(ComputeOp::logical_and, nest.compare(ComputeOp::ge, p[k], nest.number(0, p[k])),
                                          nest.compare(ComputeOp::le, p[k], nest.number(last, p[k])));
            inside = inside < 0 ? fits : nest.compare(ComputeOp::logical_and, inside, fits);
            const int whole = nest.cast(nest.where(fits, p[k], nest.number(0, p[k])), DType::i32);
            place[k] = nest.symbol(whole, 0, extent[k] - 1, false);
          }
          const int value = nest.cast(nest.load_at(x, {nest.index(0), nest.index(1), place[0], place[1]}), c);
          return nest.where(inside, value, nest.number(0, value));
        };
        if (mode == kNearest) return element(nest.op(ComputeOp::round, at[0]), nest.op(ComputeOp::round, at[1]));
        const int y = nest.op(ComputeOp::floor, at[0]), x0 = nest.op(ComputeOp::floor, at[1]);
        const int fy = nest.sub(at[0], y), fx = nest.sub(at[1], x0);
        const auto one_minus = [&](int f) { return nest.sub(nest.number(1, f), f); };
        const int y1 = nest.add(y, nest.number(1, y)), x1 = nest.add(x0, nest.number(1, x0));
        const auto part = [&](int py, int px, int wy, int wx) {
          // What has no element counts nothing, whatever its weight.
          return nest.mul(element(py, px), nest.mul(wy, wx));
        };
        return nest.add(nest.add(part(y, x0, one_minus(fy), one_minus(fx)), part(y, x1, one_minus(fy), fx)),
                        nest.add(part(y1, x0, fy, one_minus(fx)), part(y1, x1, fy, fx)));
      },
      &meta));
  return as_kernel();
}

/// affine_grid_generator(theta, size, align_corners): theta times the corners' coordinates.
Lowered affine_grid(Call& call) {
  const Tensor theta = call.tensor(0, "theta");
  const trace::TensorMeta& meta = call.meta();
  const bool align = call.boolean(2, "align_corners", false);
  if (!is_kernel_dtype(theta.dtype) || !is_float(theta.dtype)) return declined_dtype();
  const std::size_t n = meta.sizes.size() - 2;
  if (theta.rank() != 3 || meta.rank() < 4 || theta.sizes[2] != static_cast<std::int64_t>(n) + 1) throw MalformedNode{"a grid that does not fit its matrices"};
  const DType c = compute_dtype(theta.dtype);
  Builder& builder = call.builder;
  index::Context& context = builder.context();
  // Coordinates are rounded to the dtype, as the base grid that eager multiplies.
  const auto coordinate = [&](NestBuilder& nest, std::size_t d) {
    const std::int64_t steps = meta.sizes[d];
    if (steps <= 1) return nest.constant(0.0, c);
    const double step = 2.0 / static_cast<double>(steps - 1);
    const int i = nest.cast(nest.index_value(nest.index(d), DType::i64), c);
    const int back = nest.cast(nest.index_value(context.subtract(context.constant(steps - 1), nest.index(d)), DType::i64), c);
    const int low = nest.sub(nest.mul(i, nest.constant(step, c)), nest.constant(1.0, c));
    const int high = nest.sub(nest.constant(1.0, c), nest.mul(back, nest.constant(step, c)));
    int value = nest.where(nest.compare(ComputeOp::lt, i, nest.constant(static_cast<double>(steps / 2), c)), low, high);
    if (!align) value = nest.mul(value, nest.constant(static_cast<double>(steps - 1) / static_cast<double>(steps), c));
    return nest.cast(nest.cast(value, theta.dtype), c);
  };
  call.define(builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        const index::Expression batch = nest.index(0), row = nest.index(n + 1);
        int total = nest.cast(nest.load_at(theta, {batch, row, context.constant(static_cast<std::int64_t>(n))}), c);
        for (std::size_t k = 0; k < n; ++k) {
          // The last dimension's coordinate comes first.
          const int weight = nest.cast(nest.load_at(theta, {batch, row, context.constant(static_cast<std::int64_t>(k))}), c);
          total = nest.add(total, nest.mul(weight, coordinate(nest, n - k)));
        }
        return total;
      },
      &meta));
  return as_kernel();
}

}  // namespace

std::vector<Entry> sampling_entries() {
  return {{"aten.im2col.default", "sampling", im2col},
          {"aten.col2im.default", "sampling", col2im},
          {"aten.grid_sampler.default", "sampling", grid_sampler},
          {"aten.grid_sampler_2d.default", "sampling", grid_sampler},
          {"aten.affine_grid_generator.default", "sampling", affine_grid}};
}

}  // namespace pallascope::lower
