#include "core/lower/operand.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace pallascope::lower {

using loop::ComputeOp;

Operand operand(const Call& call, std::size_t index, std::string_view name) {
  Operand found;
  if (call.is_tensor(index, name)) {
    found.tensor = call.tensor(index, name);
  } else {
    found.scalar = call.scalar(index, name);
  }
  return found;
}

DType common_dtype(const Operand& a, const Operand& b) { return result_type(a.promotion(), b.promotion()); }

namespace {

/// The integer that a C++ cast to `dtype` keeps of `number`.
std::int64_t wrapped(std::int64_t number, DType dtype) {
  switch (dtype) {
    case DType::i32: return static_cast<std::int32_t>(number);
    case DType::i16: return static_cast<std::int16_t>(number);
    case DType::i8: return static_cast<std::int8_t>(number);
    case DType::u8: return static_cast<std::uint8_t>(number);
    default: return number;
  }
}

}  // namespace

loop::Scalar convert(const loop::Scalar& scalar, DType dtype) {
  if (is_integer(dtype)) {
    if (const auto* i = std::get_if<std::int64_t>(&scalar)) return wrapped(*i, dtype);
    return wrapped(static_cast<std::int64_t>(as_double(scalar)), dtype);
  }
  return to_scalar(as_double(scalar), dtype);
}

double rounded(double number, DType dtype) {
  if (dtype == DType::f64 || !std::isfinite(number)) return number;
  if (dtype == DType::f32) return static_cast<float>(number);
  if (number == 0) return number;
  // Both 16-bit formats by scaling to an integer significand and rounding it to even.
  const int digits = dtype == DType::bf16 ? 8 : 11, smallest = dtype == DType::bf16 ? -126 : -14;
  const float single = static_cast<float>(number);
  const int exponent = std::max(std::ilogb(single), smallest);
  const double unit = std::ldexp(1.0, exponent - digits + 1);
  const double result = std::nearbyint(single / unit) * unit;
  const double largest = dtype == DType::bf16 ? 3.3895313892515355e38 : 65504;
  return std::abs(result) > largest ? std::copysign(INFINITY, result) : result;
}

int value(NestBuilder& nest, const Operand& operand, DType dtype) {
  if (operand.tensor) return nest.cast(nest.load(*operand.tensor), dtype);
  return nest.constant(convert(operand.scalar, dtype), dtype);
}

int rounded_value(NestBuilder& nest, const Operand& operand, DType dtype, DType rounded) {
  if (operand.tensor || rounded == dtype) return value(nest, operand, dtype);
  return nest.cast(nest.constant(convert(operand.scalar, rounded), rounded), dtype);
}

std::pair<int, int> values(NestBuilder& nest, const Operand& a, const Operand& b, DType dtype) {
  const int left = value(nest, a, dtype);
  return {left, value(nest, b, dtype)};
}

bool kernel_operands(const Call& call) {
  const auto in_kernel = [&](const trace::Argument& a) {
    const auto* v = a.get<trace::ValueId>();
    return v == nullptr || is_kernel_dtype(call.builder.graph().values[*v].tensor->dtype);
  };
  for (const trace::Argument& a : call.node.args)
    if (!in_kernel(a)) return false;
  for (const auto& [name, a] : call.node.kwargs)
    if (!in_kernel(a)) return false;
  return is_kernel_dtype(call.meta().dtype);
}

Lowered emit(Call& call, const std::function<int(NestBuilder&)>& body, std::size_t output) {
  const trace::TensorMeta& meta = call.meta(output);
  call.define(call.builder.pointwise(call.node.name, meta.sizes, meta.dtype, body, &meta), output);
  return as_kernel();
}

Lowered over(Call& call, const std::vector<std::string_view>& names, const Body& body) {
  const trace::TensorMeta& meta = call.meta();
  std::vector<Tensor> tensors;
  for (std::size_t k = 0; k < names.size(); ++k) {
    tensors.push_back(call.tensor(k, names[k]));
    if (!is_kernel_dtype(tensors.back().dtype) || !is_kernel_dtype(meta.dtype)) return declined_dtype();
  }
  const DType c = compute_dtype(meta.dtype);
  return emit(call, [&](NestBuilder& nest) {
    std::vector<int> loaded;
    for (const Tensor& t : tensors) loaded.push_back(nest.cast(nest.load(t), c));
    return body(nest, loaded);
  });
}

Sizes broadcast(const Sizes& a, const Sizes& b) {
  const Sizes &more = a.size() < b.size() ? b : a, &fewer = a.size() < b.size() ? a : b;
  Sizes made = more;
  const std::size_t offset = more.size() - fewer.size();
  for (std::size_t k = 0; k < fewer.size(); ++k) {
    if (made[offset + k] != 1 && fewer[k] != 1 && made[offset + k] != fewer[k]) throw MalformedNode{"operands that do not broadcast"};
    if (made[offset + k] == 1) made[offset + k] = fewer[k];
  }
  return made;
}

int power_of(NestBuilder& nest, int x, double e) {
  if (e == 0) return nest.constant(to_scalar(1, nest.dtype(x)), nest.dtype(x));
  if (e == 1) return x;
  if (e == 2) return nest.mul(x, x);
  if (e == 3) return nest.mul(nest.mul(x, x), x);
  if (is_float(nest.dtype(x))) {
    if (e == 0.5) return nest.op(ComputeOp::sqrt, x);
    if (e == -0.5) return nest.op(ComputeOp::rsqrt, x);
    if (e == -1) return nest.div(nest.number(1, x), x);
    if (e == -2) return nest.div(nest.number(1, x), nest.mul(x, x));
  }
  return nest.op(ComputeOp::pow, x, nest.constant(to_scalar(e, nest.dtype(x)), nest.dtype(x)));
}

}  // namespace pallascope::lower
