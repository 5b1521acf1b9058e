#include "core/index/expression.h"

#include <algorithm>
#include <set>

#include "core/index/context_impl.h"

namespace pallascope::index {
namespace {

std::size_t mix(std::size_t hash, std::size_t value) {
  hash ^= value + 0x9e3779b97f4a7c15U + (hash << 6U) + (hash >> 2U);
  return hash * 0xff51afd7ed558ccdU;
}

std::size_t hash_of(const Sum& sum) {
  std::size_t hash = mix(0, static_cast<std::size_t>(sum.constant));
  for (const auto& [term, coefficient] : sum.terms) {
    hash = mix(hash, static_cast<std::size_t>(term.kind));
    hash = mix(hash, static_cast<std::size_t>(term.axis.value));
    hash = mix(hash, static_cast<std::size_t>(term.symbol.value));
    hash = mix(hash, static_cast<std::size_t>(term.operand.value));
    hash = mix(hash, static_cast<std::size_t>(term.divisor));
    hash = mix(hash, static_cast<std::size_t>(coefficient));
  }
  return hash ^ (hash >> 32U);
}

}  // namespace

void accumulate(Sum& sum, const Term& term, std::int64_t factor) {
  if (factor == 0) return;
  const auto place =
      std::lower_bound(sum.terms.begin(), sum.terms.end(), term,
                       [](const auto& entry, const Term& wanted) { return entry.first < wanted; });
  if (place == sum.terms.end() || place->first != term) {
    sum.terms.insert(place, {term, factor});
    return;
  }
  place->second = checked_add(place->second, factor);
  if (place->second == 0) sum.terms.erase(place);
}

void accumulate(Sum& sum, const Sum& other, std::int64_t factor) {
  if (factor == 0) return;
  sum.constant = checked_add(sum.constant, checked_multiply(other.constant, factor));
  if (other.terms.empty()) return;
  // Mostly the terms of the one stand behind those of the other: sums are built axis by axis.
  if (sum.terms.empty() || sum.terms.back().first < other.terms.front().first) {
    if (sum.terms.capacity() < sum.terms.size() + other.terms.size()) sum.terms.reserve(std::max<std::size_t>(4, 2 * (sum.terms.size() + other.terms.size())));
    for (const auto& [term, coefficient] : other.terms) sum.terms.emplace_back(term, checked_multiply(coefficient, factor));
    return;
  }
  std::vector<std::pair<Term, std::int64_t>> merged;
  merged.reserve(sum.terms.size() + other.terms.size());
  auto left = sum.terms.begin();
  for (const auto& [term, coefficient] : other.terms) {
    while (left != sum.terms.end() && left->first < term) merged.push_back(*left++);
    std::int64_t total = checked_multiply(coefficient, factor);
    if (left != sum.terms.end() && left->first == term) total = checked_add(total, (left++)->second);
    if (total != 0) merged.emplace_back(term, total);
  }
  merged.insert(merged.end(), left, sum.terms.end());
  sum.terms = std::move(merged);
}

std::int64_t coefficient_of(const Sum& sum, const Term& term) {
  const auto place =
      std::lower_bound(sum.terms.begin(), sum.terms.end(), term,
                       [](const auto& entry, const Term& wanted) { return entry.first < wanted; });
  return place != sum.terms.end() && place->first == term ? place->second : 0;
}

const Term* single_term(const Sum& sum) {
  return sum.constant == 0 && sum.terms.size() == 1 && sum.terms[0].second == 1 ? &sum.terms[0].first
                                                                                : nullptr;
}

Range Context::Impl::term_range(const Term& term) const {
  switch (term.kind) {
    case TermKind::axis:
      // An axis of extent 0 has no value at all; 0 keeps the bounds of its sums ordered.
      return {0, std::max<std::int64_t>(axes[term.axis.index()].extent, 1) - 1};
    case TermKind::symbol:
      return {symbols[term.symbol.index()].low, symbols[term.symbol.index()].high};
    case TermKind::floor_div: {
      const Range operand = node(term.operand).range;
      return {floor_quotient(operand.low, term.divisor), floor_quotient(operand.high, term.divisor)};
    }
    case TermKind::mod: {
      const Range operand = node(term.operand).range;
      if (floor_quotient(operand.low, term.divisor) != floor_quotient(operand.high, term.divisor))
        return {0, term.divisor - 1};
      return {floor_remainder(operand.low, term.divisor), floor_remainder(operand.high, term.divisor)};
    }
  }
  return {};
}

Range Context::Impl::sum_range(const Sum& sum) const {
  Range range{sum.constant, sum.constant};
  for (const auto& [term, coefficient] : sum.terms) {
    const Range part = term_range(term);
    range.low =
        saturating_add(range.low, saturating_multiply(coefficient > 0 ? part.low : part.high, coefficient));
    range.high =
        saturating_add(range.high, saturating_multiply(coefficient > 0 ? part.high : part.low, coefficient));
  }
  return range;
}

AxisId Context::Impl::add_axis(std::string name, std::int64_t extent) {
  PALLASCOPE_CHECK(extent >= 0, name);
  axes.push_back({std::move(name), extent});
  return AxisId(axes.size() - 1);
}

void Context::Impl::grow_table() {
  table.assign(std::max<std::size_t>(table.size() * 2, 64), -1);
  const std::size_t mask = table.size() - 1;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    std::size_t slot = nodes[k].hash & mask;
    while (table[slot] >= 0) slot = (slot + 1) & mask;
    table[slot] = static_cast<std::int32_t>(k);
  }
}

Expression Context::Impl::intern(Sum sum) {
  if ((nodes.size() + 1) * 2 > table.size()) grow_table();
  const std::size_t hash = hash_of(sum), mask = table.size() - 1;
  std::size_t slot = hash & mask;
  for (; table[slot] >= 0; slot = (slot + 1) & mask) {
    const Node& found = nodes[static_cast<std::size_t>(table[slot])];
    if (found.hash == hash && found.sum == sum) return Expression(table[slot]);
  }
  Node added;
  added.hash = hash;
  added.range = sum_range(sum);
  for (const auto& [term, coefficient] : sum.terms) {
    if (term.kind != TermKind::axis) added.affine = false;
    if (term.kind == TermKind::symbol || (term.operand.valid() && node(term.operand).has_symbol))
      added.has_symbol = true;
  }
  added.sum = std::move(sum);
  table[slot] = static_cast<std::int32_t>(nodes.size());
  nodes.push_back(std::move(added));
  return Expression(table[slot]);
}

Context::Context() : impl_(std::make_unique<Impl>()) {}
Context::~Context() = default;
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;

AxisId Context::add_axis(std::string name, std::int64_t extent) {
  return impl_->add_axis(std::move(name), extent);
}

SymbolId Context::add_symbol(Symbol symbol) {
  PALLASCOPE_CHECK(symbol.low <= symbol.high, symbol.name);
  impl_->symbols.push_back(std::move(symbol));
  return SymbolId(impl_->symbols.size() - 1);
}

const Axis& Context::axis(AxisId id) const { return impl_->axes.at(id.index()); }
const Symbol& Context::symbol(SymbolId id) const { return impl_->symbols.at(id.index()); }

Expression Context::constant(std::int64_t value) { return impl_->intern({value, {}}); }

Expression Context::of(AxisId axis) {
  // The one value of an axis of extent 1 is 0, so it never shows up in an expression.
  if (this->axis(axis).extent == 1) return constant(0);
  if (impl_->of_axes.size() <= axis.index()) impl_->of_axes.resize(impl_->axes.size());
  Expression& known = impl_->of_axes[axis.index()];
  if (known.valid()) return known;
  Term term;
  term.axis = axis;
  return known = impl_->intern({0, {{term, 1}}});
}

Expression Context::of(SymbolId symbol) {
  PALLASCOPE_CHECK(symbol.valid() && symbol.index() < impl_->symbols.size(), "a symbol of another context");
  Term term;
  term.kind = TermKind::symbol;
  term.symbol = symbol;
  return impl_->intern({0, {{term, 1}}});
}

Expression Context::add(Expression a, Expression b) {
  Sum result = sum(a);
  accumulate(result, sum(b), 1);
  return impl_->build(std::move(result));
}

Expression Context::subtract(Expression a, Expression b) {
  Sum result = sum(a);
  accumulate(result, sum(b), -1);
  return impl_->build(std::move(result));
}

Expression Context::multiply(Expression a, std::int64_t factor) {
  if (factor == 1) return a;
  Sum result;
  accumulate(result, sum(a), factor);
  return impl_->build(std::move(result));
}

Expression Context::floor_div(Expression a, std::int64_t divisor) {
  return impl_->divide(a, divisor).quotient;
}
Expression Context::mod(Expression a, std::int64_t divisor) { return impl_->divide(a, divisor).remainder; }

Expression Context::linear(std::span<const Expression> index, std::span<const std::int64_t> strides,
                           std::int64_t offset) {
  PALLASCOPE_CHECK(index.size() == strides.size(), "one stride an index");
  Sum result;
  result.constant = offset;
  for (std::size_t k = 0; k < index.size(); ++k) accumulate(result, sum(index[k]), strides[k]);
  return impl_->build(std::move(result));
}

const Sum& Context::sum(Expression e) const { return impl_->node(e).sum; }
Range Context::range(Expression e) const { return impl_->node(e).range; }
bool Context::has_symbol(Expression e) const { return impl_->node(e).has_symbol; }
bool Context::is_affine(Expression e) const { return impl_->node(e).affine; }

std::optional<std::int64_t> Context::as_constant(Expression e) const {
  const Sum& content = sum(e);
  if (!content.terms.empty()) return std::nullopt;
  return content.constant;
}

std::optional<AxisId> Context::as_axis(Expression e) const {
  const Term* term = single_term(sum(e));
  if (term == nullptr || term->kind != TermKind::axis) return std::nullopt;
  return term->axis;
}

std::vector<AxisId> Context::axes(Expression e) const {
  std::vector<AxisId> found;
  std::vector<Expression> open{e};
  std::set<Expression> seen;  // of operands only, so an affine expression never touches it
  while (!open.empty()) {
    const Expression current = open.back();
    open.pop_back();
    for (const auto& [term, coefficient] : sum(current).terms) {
      if (term.kind == TermKind::axis) found.push_back(term.axis);
      if (term.operand.valid() && seen.insert(term.operand).second) open.push_back(term.operand);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::pair<AxisId, AxisId> Context::split_axis(AxisId axis, std::int64_t inner_extent) {
  const auto known = impl_->splits.find({axis, inner_extent});
  if (known != impl_->splits.end()) return known->second;
  const Axis whole = this->axis(axis);
  PALLASCOPE_CHECK(inner_extent > 0 && whole.extent % inner_extent == 0, whole.name);
  const AxisId outer = impl_->add_axis(whole.name + "_outer", whole.extent / inner_extent);
  const AxisId inner = impl_->add_axis(whole.name + "_inner", inner_extent);
  return impl_->splits[{axis, inner_extent}] = {outer, inner};
}

AxisId Context::merge_axes(const std::vector<AxisId>& parts) {
  const auto known = impl_->merges.find(parts);
  if (known != impl_->merges.end()) return known->second;
  std::string name;
  std::int64_t extent = 1;
  for (const AxisId part : parts) {
    name += (name.empty() ? "" : "_") + axis(part).name;
    extent = checked_multiply(extent, axis(part).extent);
  }
  return impl_->merges[parts] = impl_->add_axis(name, extent);
}

template <class Replacement>
Expression Context::substitute_each(Expression e, const Replacement& replacement) {
  // Operands are shared between quotients and remainders, so each is rebuilt once.
  std::vector<std::pair<Expression, Expression>> rebuilt;
  const auto rebuild = [&](const auto& self, Expression old) -> Expression {
    const Sum& content = sum(old);
    Sum result;
    result.constant = content.constant;
    bool changed = false;
    for (const auto& [term, coefficient] : content.terms) {
      if (term.kind == TermKind::axis) {
        if (const Expression value = replacement(term.axis); value.valid()) {
          accumulate(result, sum(value), coefficient);
          changed = true;
          continue;
        }
      } else if (term.operand.valid()) {
        const auto known = std::find_if(rebuilt.begin(), rebuilt.end(),
                                        [&](const auto& pair) { return pair.first == term.operand; });
        const Expression operand = known != rebuilt.end() ? known->second : self(self, term.operand);
        if (known == rebuilt.end()) rebuilt.emplace_back(term.operand, operand);
        if (operand != term.operand) {
          const Expression replaced = term.kind == TermKind::floor_div ? floor_div(operand, term.divisor)
                                                                       : mod(operand, term.divisor);
          accumulate(result, sum(replaced), coefficient);
          changed = true;
          continue;
        }
      }
      accumulate(result, term, coefficient);
    }
    return changed ? impl_->build(std::move(result)) : old;
  };
  return rebuild(rebuild, e);
}

Expression Context::substitute(Expression e, const std::map<AxisId, Expression>& replacements) {
  return substitute_each(e, [&](AxisId axis) {
    const auto found = replacements.find(axis);
    return found == replacements.end() ? Expression() : found->second;
  });
}

Expression Context::substitute(Expression e, std::span<const AxisId> axes, std::span<const Expression> values) {
  PALLASCOPE_CHECK(axes.size() == values.size(), "one value an axis");
  return substitute_each(e, [&](AxisId axis) {
    const auto found = std::find(axes.begin(), axes.end(), axis);
    return found == axes.end() ? Expression() : values[static_cast<std::size_t>(found - axes.begin())];
  });
}

std::int64_t Context::evaluate(Expression e, const std::function<std::int64_t(AxisId)>& axis,
                               const std::function<std::int64_t(SymbolId)>& symbol) const {
  const Sum& content = sum(e);
  std::int64_t total = content.constant;
  for (const auto& [term, coefficient] : content.terms) {
    std::int64_t value = 0;
    switch (term.kind) {
      case TermKind::axis:
        value = axis(term.axis);
        break;
      case TermKind::symbol:
        PALLASCOPE_CHECK(symbol != nullptr, this->symbol(term.symbol).name);
        value = symbol(term.symbol);
        break;
      case TermKind::floor_div:
        value = floor_quotient(evaluate(term.operand, axis, symbol), term.divisor);
        break;
      case TermKind::mod:
        value = floor_remainder(evaluate(term.operand, axis, symbol), term.divisor);
        break;
    }
    total = checked_add(total, checked_multiply(coefficient, value));
  }
  return total;
}

}  // namespace pallascope::index
