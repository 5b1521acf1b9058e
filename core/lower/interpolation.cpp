// Family: interpolation (nearest, linear, cubic) of the last dimensions. Where a position comes from is worked out as
// eager does, in its precision: a nearest element that is one off, or a weight of another rounding, would show.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "core/lower/builder.h"
#include "core/lower/regions.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;

enum class Mode { nearest, exact, linear, cubic };

/// One interpolated dimension.
struct Line {
  std::size_t dim = 0;
  std::int64_t in = 0, out = 0;
  bool align = false;
  double scale = 0;  ///< from positions of the result to those of the source, as eager rounds it
};

/// Numbers of a list argument; a lone number counts as a list.
std::vector<double> numbers(const Call& call, std::size_t index, std::string_view name) {
  std::vector<double> found;
  const trace::Argument* argument = call.argument(index, name);
  if (argument == nullptr) return found;
  const auto take = [&](const trace::Argument& a) {
    if (const auto* d = a.get<double>()) found.push_back(*d);
    if (const auto* i = a.get<std::int64_t>()) found.push_back(static_cast<double>(*i));
  };
  if (const auto* list = argument->get<trace::ArgumentList>()) std::for_each(list->begin(), list->end(), take);
  take(*argument);
  return found;
}

/// eager's scale: of the corners, or the inverse of the factor that was given, or the quotient of the extents.
double scale_of(const Line& line, Mode mode, std::optional<double> factor, bool wide) {
  const auto quotient = [&](std::int64_t a, std::int64_t b) {
    return wide ? static_cast<double>(a) / static_cast<double>(b) : static_cast<double>(static_cast<float>(a) / static_cast<float>(b));
  };
  if (line.align && (mode == Mode::linear || mode == Mode::cubic)) return line.out > 1 ? quotient(line.in - 1, line.out - 1) : 0;
  if (factor && *factor > 0) return wide ? 1 / *factor : static_cast<double>(static_cast<float>(1 / *factor));
  return quotient(line.in, line.out);
}

/// The source position of each result position, for the nearest modes.
Sizes nearest_table(const Line& line, Mode mode, bool wide) {
  Sizes table;
  for (std::int64_t i = 0; i < line.out; ++i) {
    const double at = static_cast<double>(i) + (mode == Mode::exact ? 0.5 : 0);
    const double real = wide ? at * line.scale : static_cast<double>(static_cast<float>(at) * static_cast<float>(line.scale));
    table.push_back(std::min(static_cast<std::int64_t>(std::floor(real)), line.in - 1));
  }
  return table;
}

/// A float source position for result position `at`. Eager's products are contracted with the sum behind them: in f64
/// the product of two f32 is exact, so that only the result is rounded.
int real_position(NestBuilder& nest, const Line& line, index::Expression at, bool wide) {
  const auto number = [&](double n) { return nest.constant(n, DType::f64); };
  const int i = nest.cast(nest.index_value(at, DType::i64), DType::f64);
  const int scale = number(line.scale);
  const int real = line.align ? nest.mul(scale, i) : nest.sub(nest.mul(scale, nest.add(i, number(0.5))), number(0.5));
  return wide ? real : nest.cast(real, DType::f32);
}

/// What one position of the result is made of along one dimension.
struct Tap {
  index::Expression at;
  int weight = -1;  ///< -1: 1
};

/// floor and the rest of a source position, held to the axis; the rest as a weight of dtype `c`.
struct Place {
  int floor = -1, rest = -1;
};
Place place_of(NestBuilder& nest, const Line& line, int real, bool clamped, DType c) {
  if (clamped && !line.align) real = nest.op(ComputeOp::maximum, real, nest.number(0, real));
  const int below = nest.op(ComputeOp::floor, real);
  const int floor = clamped ? nest.op(ComputeOp::minimum, below, nest.number(static_cast<double>(line.in - 1), below)) : below;
  int rest = nest.sub(real, floor);
  rest = nest.op(ComputeOp::minimum, nest.op(ComputeOp::maximum, rest, nest.number(0, rest)), nest.number(1, rest));
  return {nest.cast(floor, DType::i32), nest.cast(rest, c)};
}

index::Expression held(NestBuilder& nest, const Line& line, int position) {
  const auto whole = [&](std::int64_t n) { return nest.constant(n, DType::i32); };
  const int low = nest.op(ComputeOp::maximum, position, whole(0));
  return nest.symbol(nest.op(ComputeOp::minimum, low, whole(line.in - 1)), 0, line.in - 1, false);
}

/// Eager keeps the weights of cubic interpolation in the tensor's own dtype `d`.
std::vector<Tap> taps_of(NestBuilder& nest, const Line& line, Mode mode, index::Expression at, DType d) {
  const DType c = compute_dtype(d);
  const auto weight = [&](int value) { return nest.cast(nest.cast(value, d), c); };
  const bool wide = c == DType::f64;
  const auto whole = [&](std::int64_t n) { return nest.constant(n, DType::i32); };
  if (mode == Mode::nearest || mode == Mode::exact) {
    const DType r = wide ? DType::f64 : DType::f32;
    int i = nest.cast(nest.index_value(at, DType::i64), r);
    if (mode == Mode::exact) i = nest.add(i, nest.number(0.5, i));
    return {{held(nest, line, nest.cast(nest.op(ComputeOp::floor, nest.mul(i, nest.number(line.scale, i))), DType::i32)), -1}};
  }
  const auto number = [&](double n) { return nest.constant(n, c); };
  if (mode == Mode::linear) {
    // Eager reads the same element twice where nothing is resized, one of them times 0.
    if (line.in == line.out) return {{at, -1}, {at, number(0)}};
    const Place place = place_of(nest, line, real_position(nest, line, at, wide), true, c);
    return {{held(nest, line, place.floor), nest.sub(number(1), place.rest)},
            {held(nest, line, nest.add(place.floor, whole(1))), place.rest}};
  }
  const Place place = place_of(nest, line, real_position(nest, line, at, wide), false, c);
  constexpr double kA = -0.75;
  const auto near = [&](int x) {
    const int inner = nest.mul(nest.sub(nest.mul(number(kA + 2), x), number(kA + 3)), x);
    return nest.add(nest.mul(inner, x), number(1));
  };
  const auto far = [&](int x) {
    const int inner = nest.add(nest.mul(nest.sub(nest.mul(number(kA), x), number(5 * kA)), x), number(8 * kA));
    return nest.sub(nest.mul(inner, x), number(4 * kA));
  };
  const int t = place.rest, other = nest.sub(number(1), t);
  const std::vector<int> weights = {far(nest.add(t, number(1))), near(t), near(other), far(nest.add(other, number(1)))};
  std::vector<Tap> taps;
  for (std::int64_t k = 0; k < 4; ++k)
    taps.push_back({held(nest, line, nest.add(place.floor, whole(k - 1))), weight(weights[static_cast<std::size_t>(k)])});
  return taps;
}

/// Sum over the taps of dimension `k` of the sums over those behind it, in eager's order.
int interpolated(NestBuilder& nest, const Tensor& x, const std::vector<Line>& lines, const std::vector<std::vector<Tap>>& taps,
                 std::size_t k, Index& position, DType c) {
  if (k == lines.size()) return nest.cast(nest.load_at(x, position), c);
  int total = -1;
  for (const Tap& tap : taps[k]) {
    position[lines[k].dim] = tap.at;
    int value = interpolated(nest, x, lines, taps, k + 1, position, c);
    if (tap.weight >= 0) value = nest.mul(value, tap.weight);
    total = total < 0 ? value : nest.add(total, value);
  }
  return total;
}

/// Each element as often as the result is larger, along every dimension: an axis pair each, so that indices stay affine.
Tensor enlarged(Builder& builder, const std::string& name, const Tensor& x, const Sizes& sizes, const std::vector<std::size_t>& order) {
  Sizes axes, dims;
  std::vector<std::size_t> axis_order, place(order.size());
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    axes.push_back(x.sizes[d]);
    axes.push_back(sizes[d] / x.sizes[d]);
  }
  for (std::size_t k = 0; k < order.size(); ++k) {
    axis_order.push_back(2 * order[k]);
    axis_order.push_back(2 * order[k] + 1);
    dims.push_back(sizes[order[k]]);
    place[order[k]] = k;
  }
  NestBuilder nest(builder, name, axes, {}, axis_order);
  Index source;
  for (std::size_t d = 0; d < sizes.size(); ++d) source.push_back(nest.index(2 * d));
  const int value = nest.load_at(x, source);
  const Tensor made = nest.store(value, x.dtype);
  return builder.permute(builder.row_major(made.view.buffer, dims), place);
}

Lowered interpolate(Call& call, const Tensor& x, const std::vector<Line>& lines, Mode mode) {
  const trace::TensorMeta& meta = call.meta();
  Builder& builder = call.builder;
  const DType c = compute_dtype(meta.dtype);
  if (mode == Mode::nearest || mode == Mode::exact) {
    constexpr std::size_t kMostNests = 9;
    std::vector<std::vector<Piece>> pieces;
    for (std::int64_t extent : x.sizes) pieces.push_back(unchanged(extent));
    bool multiple = true;
    std::size_t nests = 1;
    for (const Line& line : lines) {
      const Sizes table = nearest_table(line, mode, c == DType::f64);
      multiple = multiple && line.out % line.in == 0;
      for (std::size_t i = 0; multiple && i < table.size(); ++i) multiple = table[i] == static_cast<std::int64_t>(i) / (line.out / line.in);
      pieces[line.dim] = pieces_of(table);
      nests *= pieces[line.dim].size();
    }
    if (multiple || nests <= kMostNests) {
      call.define(multiple ? enlarged(builder, call.node.name, x, meta.sizes, memory_order(meta))
                           : rearranged(builder, call.node.name, x, meta.sizes, pieces, memory_order(meta)));
      return as_kernel();
    }
  }
  call.define(builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        std::vector<std::vector<Tap>> taps;
        for (const Line& line : lines) taps.push_back(taps_of(nest, line, mode, nest.index(line.dim), meta.dtype));
        Index position = nest.index();
        if (mode == Mode::nearest || mode == Mode::exact) {
          for (std::size_t k = 0; k < lines.size(); ++k) position[lines[k].dim] = taps[k][0].at;
          return nest.load_at(x, position);
        }
        return interpolated(nest, x, lines, taps, 0, position, c);
      },
      &meta));
  return as_kernel();
}

/// The interpolated dimensions between `in` and `out`; the factors are a list (`.vec`) or an argument a dimension.
std::vector<Line> lines_of(const Call& call, const Sizes& in, const Sizes& out, std::size_t n, Mode mode, std::size_t first_scale, bool align,
                           DType dtype) {
  if (in.size() != out.size() || in.size() != n + 2) throw MalformedNode{"an interpolation of another rank"};
  const bool list = call.node.target.ends_with(".vec");
  const std::vector<double> factors = list ? numbers(call, first_scale, "scale_factors") : std::vector<double>{};
  static constexpr std::string_view names[3][3] = {{"scales", "", ""}, {"scales_h", "scales_w", ""}, {"scales_d", "scales_h", "scales_w"}};
  std::vector<Line> lines;
  for (std::size_t k = 0; k < n; ++k) {
    Line line{k + 2, in[k + 2], out[k + 2], align, 0};
    std::optional<double> factor;
    if (list && k < factors.size()) factor = factors[k];
    if (!list && call.has(first_scale + k, names[n - 1][k])) factor = call.number(first_scale + k, names[n - 1][k]);
    line.scale = scale_of(line, mode, factor, dtype == DType::f64);
    lines.push_back(line);
  }
  return lines;
}

template <Mode mode, int n>
Lowered upsample(Call& call) {
  const Tensor x = call.tensor(0, call.node.target.ends_with(".vec") ? "input" : "self");
  const trace::TensorMeta& meta = call.meta();
  constexpr bool nearest = mode == Mode::nearest || mode == Mode::exact;
  if (!is_kernel_dtype(x.dtype) || x.dtype != meta.dtype) return declined_dtype();
  if (!nearest && !is_float(x.dtype)) return declined("interpolation of integers between elements");
  if (meta.numel() == 0) {
    call.define(blank(call.builder, meta.dtype, meta.sizes).tensor);
    return as_kernel();
  }
  const bool align = !nearest && call.boolean(2, "align_corners", false);
  return interpolate(call, x, lines_of(call, x.sizes, meta.sizes, n, mode, nearest ? 2 : 3, align, x.dtype), mode);
}

// ------------------------------------------------------------------------------------------------ gradients

/// A dimension at a time: each element takes the gradients of the positions that it went into, times its weight there.
template <Mode mode, int n>
Lowered upsample_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_output");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(meta.dtype) || !is_float(meta.dtype)) return declined_dtype();
  constexpr bool nearest = mode == Mode::nearest || mode == Mode::exact;
  constexpr std::size_t kMostPieces = 128;
  const DType c = compute_dtype(meta.dtype);
  const bool align = !nearest && call.boolean(3, "align_corners", false);
  Builder& builder = call.builder;
  const std::vector<Line> lines =
      lines_of(call, meta.sizes, grad.sizes, n, mode, nearest ? 3 : 4, align, meta.dtype);
  // What each element went into; a float position may be rounded up to its neighbour in the kernel, so one more.
  std::vector<Lists> shown;
  for (const Line& line : lines) {
    Lists lists(static_cast<std::size_t>(line.in));
    const Sizes table = nearest ? nearest_table(line, mode, c == DType::f64) : Sizes{};
    for (std::int64_t i = 0; i < line.out; ++i) {
      if (nearest) {
        lists[static_cast<std::size_t>(table[static_cast<std::size_t>(i)])].push_back(i);
        continue;
      }
      const double real = line.align ? line.scale * static_cast<double>(i) : std::max(0.0, line.scale * (static_cast<double>(i) + 0.5) - 0.5);
      const auto low = static_cast<std::int64_t>(std::floor(real - 1e-3)), high = static_cast<std::int64_t>(std::floor(real + 1e-3)) + 1;
      for (std::int64_t h = std::max<std::int64_t>(0, low); h <= std::min(high, line.in - 1); ++h)
        if (line.in != line.out || h == i) lists[static_cast<std::size_t>(h)].push_back(i);
    }
    if (pieces_of(lists).size() > kMostPieces) return declined("the gradient of an interpolation between such extents");
    shown.push_back(std::move(lists));
  }
  Tensor sum = grad;
  for (std::size_t k = 0; k < lines.size() && meta.numel() > 0; ++k) {
    const Line& line = lines[k];
    if (line.in == line.out && nearest && shown[k].size() == pieces_of(shown[k]).size()) continue;
    if (nearest) {
      sum = summed(builder, call.node.name, sum, line.dim, shown[k], c, false, memory_order(meta));
      continue;
    }
    Sizes sizes = sum.sizes;
    sizes[line.dim] = line.in;
    const Canvas canvas = blank(builder, c, sizes, memory_order(meta));
    const Tensor from = sum;
    fill_pieces(builder, call.node.name, canvas, line.dim, shown[k], [&](NestBuilder& nest, const Index& position, const Taps& taps, const Piece&) {
      const int here = nest.index_value(position[line.dim], DType::i32);
      int total = -1;
      for (index::Expression at : taps.at) {
        Index source = position;
        source[line.dim] = at;
        int value = nest.cast(nest.load_at(from, source), c);
        if (line.in != line.out) {
          const Place place = place_of(nest, line, real_position(nest, line, at, c == DType::f64), true, c);
          const auto zero = nest.constant(0.0, c);
          const int next = nest.op(ComputeOp::minimum, nest.add(place.floor, nest.constant(std::int64_t{1}, DType::i32)),
                                   nest.constant(line.in - 1, DType::i32));
          const int low = nest.where(nest.compare(ComputeOp::eq, place.floor, here), nest.sub(nest.constant(1.0, c), place.rest), zero);
          const int high = nest.where(nest.compare(ComputeOp::eq, next, here), place.rest, zero);
          value = nest.mul(value, nest.add(low, high));
        }
        total = total < 0 ? value : nest.add(total, value);
      }
      if (total < 0) return nest.constant(0.0, c);
      return taps.reduced ? nest.reduce(loop::ReduceOp::sum, total, c) : total;
    });
    sum = canvas.tensor;
  }
  call.define(builder.pointwise(
      call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) { return nest.load(sum); }, &meta));
  return as_kernel();
}

}  // namespace

std::vector<Entry> interpolation_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::initializer_list<std::string_view> ops, Family f) {
    for (std::string_view op : ops) rows.push_back({op, "interpolation", f});
  };
  add({"aten.upsample_nearest1d.vec", "aten.upsample_nearest1d.default"}, upsample<Mode::nearest, 1>);
  add({"aten.upsample_nearest2d.vec", "aten.upsample_nearest2d.default"}, upsample<Mode::nearest, 2>);
  add({"aten.upsample_nearest3d.vec", "aten.upsample_nearest3d.default"}, upsample<Mode::nearest, 3>);
  add({"aten._upsample_nearest_exact1d.vec", "aten._upsample_nearest_exact1d.default"}, upsample<Mode::exact, 1>);
  add({"aten._upsample_nearest_exact2d.vec", "aten._upsample_nearest_exact2d.default"}, upsample<Mode::exact, 2>);
  add({"aten._upsample_nearest_exact3d.vec", "aten._upsample_nearest_exact3d.default"}, upsample<Mode::exact, 3>);
  add({"aten.upsample_linear1d.vec", "aten.upsample_linear1d.default"}, upsample<Mode::linear, 1>);
  add({"aten.upsample_bilinear2d.vec", "aten.upsample_bilinear2d.default"}, upsample<Mode::linear, 2>);
  add({"aten.upsample_trilinear3d.vec", "aten.upsample_trilinear3d.default"}, upsample<Mode::linear, 3>);
  add({"aten.upsample_bicubic2d.vec", "aten.upsample_bicubic2d.default"}, upsample<Mode::cubic, 2>);
  add({"aten.upsample_nearest1d_backward.default"}, upsample_backward<Mode::nearest, 1>);
  add({"aten.upsample_nearest2d_backward.default"}, upsample_backward<Mode::nearest, 2>);
  add({"aten.upsample_nearest3d_backward.default"}, upsample_backward<Mode::nearest, 3>);
  add({"aten._upsample_nearest_exact2d_backward.default"}, upsample_backward<Mode::exact, 2>);
  add({"aten.upsample_linear1d_backward.default"}, upsample_backward<Mode::linear, 1>);
  add({"aten.upsample_bilinear2d_backward.default"}, upsample_backward<Mode::linear, 2>);
  add({"aten.upsample_trilinear3d_backward.default"}, upsample_backward<Mode::linear, 3>);
  return rows;
}

}  // namespace pallascope::lower
