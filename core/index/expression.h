// Room: index. Index expressions: constant + sum of coefficient * term, a term being an axis, a floor-division,
//   a modulus, or an indirect symbol; interned, ranged and simplified as they are built.
// Takes: axes with their extents, indirect symbols with the range of the value that they stand for.
// Gives: Expression ids in a Context, their ranges and text; `access` (access.h) classifies them.
// May use: base.
// Never: looks at tensor shapes to decide an index, mutates an expression, forgets which load a symbol came from.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/id.h"

namespace pallascope::index {

struct AxisTag;
struct SymbolTag;
struct ExpressionTag;
using AxisId = Id<AxisTag>;
using SymbolId = Id<SymbolTag>;
/// An interned expression: two expressions of one Context are equal exactly if their ids are.
using Expression = Id<ExpressionTag>;

/// An axis runs over 0 <= value < extent.
struct Axis {
  std::string name;
  std::int64_t extent = 1;
};

/// The value of a load used as an index. `origin` names the load (the caller's own numbering), so that two
/// symbols are the same only if they are the same element of the same load.
struct Symbol {
  std::string name;
  std::int64_t origin = -1;
  std::int64_t low = 0, high = 0;  ///< inclusive range of the value, after wrapping and checking
};

/// Inclusive bounds.
struct Range {
  std::int64_t low = 0, high = 0;
  friend bool operator==(const Range&, const Range&) = default;
};

enum class TermKind : std::uint8_t { axis, symbol, floor_div, mod };

/// The part of a sum that is multiplied by a coefficient. For floor_div and mod: `operand` over `divisor` (> 0),
/// floored as Python does.
struct Term {
  TermKind kind = TermKind::axis;
  AxisId axis;
  SymbolId symbol;
  Expression operand;
  std::int64_t divisor = 1;
  friend auto operator<=>(const Term&, const Term&) = default;
};

/// The normal form of an expression: terms sorted and distinct, coefficients not 0.
struct Sum {
  std::int64_t constant = 0;
  std::vector<std::pair<Term, std::int64_t>> terms;
  friend bool operator==(const Sum&, const Sum&) = default;
};

/// Owns axes, symbols and expressions. Grows only. Not thread-safe; one program has one context.
///
/// Building simplifies, using the ranges. Worked example, axes i < 8, j < 3: the view (6,4) -> (8,3) reads
/// element 4*((3i+j)//4) + (3i+j)%4, and `add` finds d*(e//d) + e%d = e, so it is stored as 3i + j.
/// Arithmetic that overflows 64 bits stops the program as our own bug: sizes are checked at intake.
class Context {
 public:
  Context();
  ~Context();
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;

  AxisId add_axis(std::string name, std::int64_t extent);
  SymbolId add_symbol(Symbol symbol);
  [[nodiscard]] const Axis& axis(AxisId id) const;
  [[nodiscard]] const Symbol& symbol(SymbolId id) const;

  Expression constant(std::int64_t value);
  Expression of(AxisId axis);
  Expression of(SymbolId symbol);
  Expression add(Expression a, Expression b);
  Expression subtract(Expression a, Expression b);
  Expression multiply(Expression a, std::int64_t factor);
  /// floor(a / divisor), divisor > 0.
  Expression floor_div(Expression a, std::int64_t divisor);
  /// a - divisor * floor(a / divisor), divisor > 0.
  Expression mod(Expression a, std::int64_t divisor);
  /// The sum of index[k] * strides[k], plus `offset`.
  Expression linear(std::span<const Expression> index, std::span<const std::int64_t> strides,
                    std::int64_t offset = 0);

  [[nodiscard]] const Sum& sum(Expression e) const;
  [[nodiscard]] Range range(Expression e) const;
  [[nodiscard]] std::optional<std::int64_t> as_constant(Expression e) const;
  /// The single axis that `e` is (coefficient 1, no constant), if it is one.
  [[nodiscard]] std::optional<AxisId> as_axis(Expression e) const;
  /// The axes that `e` depends on, ascending: also those under floor_div and mod, not those that a symbol's load uses.
  [[nodiscard]] std::vector<AxisId> axes(Expression e) const;
  [[nodiscard]] bool has_symbol(Expression e) const;
  /// Constant + sum of coefficient * axis, nothing else.
  [[nodiscard]] bool is_affine(Expression e) const;

  /// The two axes (outer, inner) of `axis` = inner_extent * outer + inner; inner_extent divides the axis' extent.
  /// The same question has the same answer, so that asking twice adds nothing. For i < 12, inner_extent 4:
  /// i_outer < 3, i_inner < 4, and `substitute` turns i//4 into i_outer.
  std::pair<AxisId, AxisId> split_axis(AxisId axis, std::int64_t inner_extent);
  /// One axis that runs over the points of `parts` in row-major order, outermost first; the same question has the
  /// same answer. For i < 8, j < 3: t < 24 with i = t//3, j = t%3, and 3*i + j becomes t.
  AxisId merge_axes(const std::vector<AxisId>& parts);

  /// `e` with axes replaced; an axis that is not in the map stays. What was simplified by the range of an axis stays
  /// so: the result is `e` at the replacements wherever these lie within the axes' extents.
  Expression substitute(Expression e, const std::map<AxisId, Expression>& replacements);
  /// The same with `values[k]` in the place of `axes[k]`.
  Expression substitute(Expression e, std::span<const AxisId> axes, std::span<const Expression> values);
  /// The value of `e` at a point.
  [[nodiscard]] std::int64_t evaluate(Expression e, const std::function<std::int64_t(AxisId)>& axis,
                                      const std::function<std::int64_t(SymbolId)>& symbol = {}) const;
  /// `64*i + j`, `(3*i + j)//4`, `7 - i`, for people and for the Python of general accesses (valid Python over the
  /// names). Terms stand in the order axes (by age), symbols, floor-divisions, moduli; the constant last, or first
  /// when the first term is negative and it is not.
  [[nodiscard]] std::string to_string(Expression e) const;

 private:
  /// `replacement(axis)` is what stands in the place of an axis, invalid for one that stays.
  template <class Replacement>
  Expression substitute_each(Expression e, const Replacement& replacement);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pallascope::index
