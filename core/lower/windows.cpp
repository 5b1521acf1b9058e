#include "core/lower/windows.h"

#include <algorithm>

#include <fmt/format.h>

namespace pallascope::lower {

using loop::ComputeOp;

Sizes per_dimension(const Call& call, std::size_t index, std::string_view name, std::size_t n, const Sizes& otherwise) {
  Sizes given = call.integers(index, name);
  if (given.empty()) return otherwise;
  if (given.size() == 1) given.assign(n, given[0]);
  if (given.size() != n) throw MalformedNode{fmt::format("{} numbers of {} for {} dimensions", given.size(), name, n)};
  return given;
}

std::vector<Window> windows_over(const Sizes& sizes, const Sizes& result, const Sizes& kernel, const Sizes& stride,
                                 const Sizes& padding, const Sizes& dilation) {
  if (sizes.size() != result.size() || sizes.size() < kernel.size()) throw MalformedNode{"windows over more dimensions than there are"};
  std::vector<Window> windows;
  const std::size_t lead = sizes.size() - kernel.size();
  for (std::size_t k = 0; k < kernel.size(); ++k) {
    Window w{lead + k, sizes[lead + k], result[lead + k], kernel[k], stride[k], dilation[k], padding[k]};
    if (w.size < 1 || w.stride < 1 || w.dilation < 1 || w.before < 0) throw MalformedNode{"windows without elements"};
    windows.push_back(w);
  }
  return windows;
}

std::int64_t taps_of(const std::vector<Window>& windows) {
  std::int64_t taps = 1;
  for (const Window& w : windows) taps *= w.size;
  return taps;
}

void for_each_tap(const std::vector<Window>& windows, const std::function<void(const Sizes&)>& visit) {
  Sizes tap(windows.size(), 0);
  for (bool more = true; more;) {
    visit(tap);
    more = false;
    for (std::size_t k = windows.size(); k-- > 0 && !more;) {
      more = ++tap[k] < windows[k].size;
      if (!more) tap[k] = 0;
    }
  }
}

namespace {

/// Elements of window `o` that count: those in the axis, and in its padding if `with_padding`.
std::int64_t counted(const Window& w, std::int64_t o, bool with_padding) {
  const std::int64_t start = o * w.stride - w.before;
  const std::int64_t low = with_padding ? start : std::max<std::int64_t>(start, 0);
  const std::int64_t high = std::min(start + w.size, with_padding ? w.in + w.before : w.in);
  return high - low;
}

}  // namespace

int divisor_value(NestBuilder& nest, Builder& builder, const std::vector<Window>& windows, const Index& at, const Divisor& divisor,
                  DType c) {
  index::Context& context = builder.context();
  const auto number = [&](std::int64_t n, DType d) { return nest.constant(to_scalar(static_cast<double>(n), d), d); };
  if (divisor.fixed != 0) return number(divisor.fixed, c);
  std::int64_t fixed = 1;
  int varying = -1;
  for (std::size_t k = 0; k < windows.size(); ++k) {
    const Window& w = windows[k];
    const std::int64_t first = counted(w, 0, divisor.with_padding);
    bool same = true;
    for (std::int64_t o = 1; same && o < w.out; ++o) same = counted(w, o, divisor.with_padding) == first;
    if (same) {
      fixed *= first;
      continue;
    }
    const index::Expression start = context.add(context.multiply(at[k], w.stride), context.constant(-w.before));
    int low = nest.index_value(start, DType::i32);
    if (!divisor.with_padding) low = nest.op(ComputeOp::maximum, low, number(0, DType::i32));
    const int high = nest.op(ComputeOp::minimum, nest.index_value(context.add(start, context.constant(w.size)), DType::i32),
                             number(divisor.with_padding ? w.in + w.before : w.in, DType::i32));
    const int count = nest.sub(high, low);
    varying = varying < 0 ? count : nest.mul(varying, count);
  }
  if (varying < 0) return number(fixed, c);
  if (fixed != 1) varying = nest.mul(varying, number(fixed, DType::i32));
  return nest.cast(varying, c);
}

int added(NestBuilder& nest, int a, int b, DType d) {
  const int sum = nest.add(a, b);
  return nest.cast(nest.cast(sum, d), nest.dtype(sum));
}

int divided(NestBuilder& nest, int total, int count) {
  return is_float(nest.dtype(total)) ? nest.exact_div(total, count) : nest.op(ComputeOp::integer_div_trunc, total, count);
}

}  // namespace pallascope::lower
