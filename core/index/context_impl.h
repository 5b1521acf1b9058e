// Room: index. The inside of a Context: interned nodes, their ranges, and the rules that build them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/index/arithmetic.h"
#include "core/index/expression.h"

namespace pallascope::index {

/// Adds `factor * term` to `sum`, keeping it in normal form.
void accumulate(Sum& sum, const Term& term, std::int64_t factor);
/// Adds `factor * other` to `sum`, keeping it in normal form.
void accumulate(Sum& sum, const Sum& other, std::int64_t factor);
/// The coefficient of `term` in `sum`, 0 if it is not there.
std::int64_t coefficient_of(const Sum& sum, const Term& term);
/// The term that `sum` is alone, with coefficient 1 and no constant; nullptr if it is anything else.
const Term* single_term(const Sum& sum);

struct Context::Impl {
  struct Node {
    Sum sum;
    Range range;
    std::size_t hash = 0;
    bool has_symbol = false;
    bool affine = true;
  };
  /// e = divisor * quotient + remainder, 0 <= remainder < divisor.
  struct Division {
    Expression quotient, remainder;
  };
  struct DivisionKeyHash {
    std::size_t operator()(const std::pair<Expression, std::int64_t>& key) const noexcept {
      return static_cast<std::size_t>(key.first.value) * 0x9e3779b97f4a7c15U ^
             std::hash<std::int64_t>{}(key.second);
    }
  };

  // Deques, because callers keep references to axes and sums while they build further expressions.
  std::deque<Axis> axes;
  std::vector<Expression> of_axes;  ///< each axis as an expression, invalid until somebody asks
  std::deque<Symbol> symbols;
  std::deque<Node> nodes;
  std::vector<std::int32_t> table;  ///< open addressing over `nodes`, -1 is free; its size is a power of two
  std::unordered_map<std::pair<Expression, std::int64_t>, Division, DivisionKeyHash> divisions;
  std::map<std::pair<AxisId, std::int64_t>, std::pair<AxisId, AxisId>> splits;
  std::map<std::vector<AxisId>, AxisId> merges;

  [[nodiscard]] const Node& node(Expression e) const { return nodes.at(e.index()); }
  [[nodiscard]] Range term_range(const Term& term) const;
  [[nodiscard]] Range sum_range(const Sum& sum) const;
  AxisId add_axis(std::string name, std::int64_t extent);

  /// Finds or adds the node of a sum in normal form; applies no rules.
  Expression intern(Sum sum);
  /// `intern` after the rules that recombine quotients and remainders (simplify.cpp).
  Expression build(Sum sum);
  /// Quotient and remainder, simplified (simplify.cpp). divisor > 0.
  Division divide(Expression e, std::int64_t divisor);

 private:
  void grow_table();
  Division divide_anew(Expression e, std::int64_t divisor);
  [[nodiscard]] std::optional<std::pair<Sum, Sum>> divide_within_a_period(const Sum& rest,
                                                                          std::int64_t divisor) const;
  bool recombine_quotient(Sum& sum, const Term& term, std::int64_t coefficient);
  bool recombine_modulus(Sum& sum, const Term& term, std::int64_t coefficient);
};

}  // namespace pallascope::index
