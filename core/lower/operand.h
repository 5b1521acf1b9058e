// Room: lower. What the pointwise families share: operands that are tensors or numbers, one nest over the result.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/lower/builder.h"

namespace pallascope::lower {

/// A tensor or a number as PyTorch's binary operators take them.
struct Operand {
  std::optional<Tensor> tensor;
  loop::Scalar scalar = std::int64_t{0};

  [[nodiscard]] PromotionOperand promotion() const {
    if (!tensor) return {scalar_dtype(scalar), 0};
    return {tensor->dtype, tensor->sizes.empty() ? 1 : 2};
  }
};

Operand operand(const Call& call, std::size_t index, std::string_view name);
DType common_dtype(const Operand& a, const Operand& b);

/// The number as a constant of `dtype`; an integer dtype wraps it, as C++ casts do.
loop::Scalar convert(const loop::Scalar& scalar, DType dtype);
/// The number after rounding to the float `dtype`.
double rounded(double number, DType dtype);

int value(NestBuilder& nest, const Operand& operand, DType dtype);
/// As `value`, but a number is rounded to `rounded` first, as eager's add and sub do for 16-bit floats.
int rounded_value(NestBuilder& nest, const Operand& operand, DType dtype, DType rounded);
/// Both operands in `dtype`, the left one loaded first (the order of a call's arguments is the compiler's choice).
std::pair<int, int> values(NestBuilder& nest, const Operand& a, const Operand& b, DType dtype);

/// Whether every tensor argument and the result have dtypes that kernels hold.
bool kernel_operands(const Call& call);

/// One nest over the elements of output `output`, laid out as eager's.
Lowered emit(Call& call, const std::function<int(NestBuilder&)>& body, std::size_t output = 0);

using Body = std::function<int(NestBuilder&, const std::vector<int>&)>;
/// A pointwise nest over the tensor arguments 0, 1, ... by name, each cast to the compute dtype of the result.
Lowered over(Call& call, const std::vector<std::string_view>& names, const Body& body);

// Short words for formulas with numbers.
inline int plus(NestBuilder& n, int a, double b) { return n.add(a, n.number(b, a)); }
inline int scale(NestBuilder& n, int a, double by) { return n.mul(a, n.number(by, a)); }
inline int maximum(NestBuilder& n, int a, double b) { return n.op(loop::ComputeOp::maximum, a, n.number(b, a)); }
inline int minimum(NestBuilder& n, int a, double b) { return n.op(loop::ComputeOp::minimum, a, n.number(b, a)); }
inline int equals(NestBuilder& n, int a, double b) { return n.compare(loop::ComputeOp::eq, a, n.number(b, a)); }
inline int less(NestBuilder& n, int a, double b) { return n.compare(loop::ComputeOp::lt, a, n.number(b, a)); }
inline int at_most(NestBuilder& n, int a, double b) { return n.compare(loop::ComputeOp::le, a, n.number(b, a)); }
inline int greater(NestBuilder& n, int a, double b) { return n.compare(loop::ComputeOp::gt, a, n.number(b, a)); }
inline int at_least(NestBuilder& n, int a, double b) { return n.compare(loop::ComputeOp::ge, a, n.number(b, a)); }
inline int both(NestBuilder& n, int a, int b) { return n.compare(loop::ComputeOp::logical_and, a, b); }
inline int either(NestBuilder& n, int a, int b) { return n.compare(loop::ComputeOp::logical_or, a, b); }
inline int negated(NestBuilder& n, int a) { return n.compute(loop::ComputeOp::logical_not, DType::b8, {a}); }
inline int is_nan(NestBuilder& n, int a) { return n.compute(loop::ComputeOp::isnan, DType::b8, {a}); }
inline int is_infinite(NestBuilder& n, int a) { return n.compute(loop::ComputeOp::isinf, DType::b8, {a}); }
inline int is_finite(NestBuilder& n, int a) { return n.compute(loop::ComputeOp::isfinite, DType::b8, {a}); }
/// `choose(c, a, 0.5)`: a where c holds, else the number.
inline int choose(NestBuilder& n, int c, int a, double b) { return n.where(c, a, n.number(b, a)); }

/// x^exponent, x a value in a compute dtype: the exponents that ATen computes by multiplication and square roots so.
int power_of(NestBuilder& nest, int x, double exponent);

/// PyTorch's broadcasting of two sizes.
Sizes broadcast(const Sizes& a, const Sizes& b);

/// Rounds each step of a formula to the dtype that eager's tensors have between the operators of a composite.
class Rounding {
 public:
  Rounding(NestBuilder& nest, DType dtype) : nest_(nest), dtype_(dtype) {}
  int operator()(int v) const { return nest_.cast(nest_.cast(v, dtype_), compute_dtype(dtype_)); }

 private:
  NestBuilder& nest_;
  DType dtype_;
};

}  // namespace pallascope::lower
