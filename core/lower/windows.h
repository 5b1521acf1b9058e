// Room: lower. Windows over the last dimensions of a tensor: pooling, im2col and their backward.
#pragma once

#include <functional>
#include <vector>

#include "core/lower/builder.h"

namespace pallascope::lower {

/// The windows along one dimension: window o covers o*stride - before + t*dilation, t < size, of `in` positions.
struct Window {
  std::size_t dim = 0;
  std::int64_t in = 0, out = 0, size = 1, stride = 1, dilation = 1, before = 0;

  /// How many positions the windows span, from `before` positions in front of the axis.
  [[nodiscard]] std::int64_t extent() const { return out == 0 ? 0 : (out - 1) * stride + (size - 1) * dilation + 1; }
  [[nodiscard]] bool inside() const { return before == 0 && extent() <= in; }
  /// The windows cover the axis without overlap.
  [[nodiscard]] bool tiles() const { return inside() && dilation == 1 && ((size == stride && out * size == in) || out == 1); }
};

/// One number for all `n` dimensions, or one for each; `otherwise` where the argument is absent or empty.
Sizes per_dimension(const Call& call, std::size_t index, std::string_view name, std::size_t n, const Sizes& otherwise);
/// Windows over the last `n` dimensions; `sizes` are the tensor's, `result` has the windows' counts.
std::vector<Window> windows_over(const Sizes& sizes, const Sizes& result, const Sizes& kernel, const Sizes& stride,
                                 const Sizes& padding, const Sizes& dilation);

std::int64_t taps_of(const std::vector<Window>& windows);
/// Calls `visit` with each place in a window, row-major.
void for_each_tap(const std::vector<Window>& windows, const std::function<void(const Sizes&)>& visit);

/// a + b in the compute dtype, rounded to `d` as eager does where it adds up in a tensor of that dtype.
int added(NestBuilder& nest, int a, int b, DType d);

/// How many elements each window of average pooling counts.
struct Divisor {
  std::int64_t fixed = 0;  ///< divisor_override, if not 0
  bool with_padding = true;
};
/// The number as a value of dtype `c`; `at` is the window's number along each of `windows`.
int divisor_value(NestBuilder& nest, Builder& builder, const std::vector<Window>& windows, const Index& at, const Divisor& divisor,
                  DType c);
/// `total` over the divisor, as eager divides: rounded for floats, towards zero for integers.
int divided(NestBuilder& nest, int total, int count);

}  // namespace pallascope::lower
