// The rules of floor-division and modulus. Both come from one function, so that for every e and d the pair fulfils
// e = d * (e//d) + e%d, whichever rule made it; the recombination below relies on that.
#include <algorithm>

#include "core/index/context_impl.h"

namespace pallascope::index {
namespace {

Term divided(TermKind kind, Expression operand, std::int64_t divisor) {
  Term term;
  term.kind = kind;
  term.operand = operand;
  term.divisor = divisor;
  return term;
}

Sum scaled(const Sum& sum, std::int64_t factor) {
  Sum result;
  accumulate(result, sum, factor);
  return result;
}

/// Whether each term of `part`, times `factor`, is in `sum` with exactly that coefficient.
bool holds(const Sum& sum, const Sum& part, std::int64_t factor) {
  if (part.terms.empty()) return false;
  return std::all_of(part.terms.begin(), part.terms.end(), [&](const auto& entry) {
    std::int64_t wanted = 0;
    return try_multiply(entry.second, factor, wanted) && coefficient_of(sum, entry.first) == wanted;
  });
}

/// The divisors g of d for which a split of the terms into multiples of g and a rest may pay: the gcd of each
/// coefficient with d, and of the largest ones together. Descending.
std::vector<std::int64_t> common_factors(const Sum& sum, std::int64_t divisor) {
  std::vector<std::int64_t> factors;
  for (const auto& [term, coefficient] : sum.terms) factors.push_back(gcd(coefficient, divisor));
  std::sort(factors.rbegin(), factors.rend());
  std::int64_t running = 0;
  const std::size_t count = factors.size();
  for (std::size_t k = 0; k < count; ++k) {
    running = gcd(running, factors[k]);
    factors.push_back(running);
  }
  std::sort(factors.rbegin(), factors.rend());
  factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
  return factors;
}

}  // namespace

Context::Impl::Division Context::Impl::divide(Expression e, std::int64_t divisor) {
  PALLASCOPE_CHECK(divisor > 0, "a divisor of an index expression is positive");
  if (divisor == 1) return {e, intern({})};
  if (const auto known = divisions.find({e, divisor}); known != divisions.end()) return known->second;
  const Division result = divide_anew(e, divisor);
  divisions.insert_or_assign({e, divisor}, result);
  return result;
}

/// Multiples of the divisor in the coefficients go out where what is left stays within one period: for i < 4,
/// (5*i + 8)//4 = i + 2 + (i//4) = i + 2, and (3*i + 3)//4 = i + (3 - i)//4 = i. Where it does not, the coefficients
/// stay as they are: (4*i + 2*j + k)//3 is recognised as one walk over i, j, k, and i + (i + 2*j + k)//3 would not be.
std::optional<std::pair<Sum, Sum>> Context::Impl::divide_within_a_period(const Sum& rest,
                                                                         std::int64_t divisor) const {
  enum class Rounding { none, to_zero, down, up, nearest };
  for (const Rounding rounding :
       {Rounding::none, Rounding::to_zero, Rounding::down, Rounding::up, Rounding::nearest}) {
    Sum quotient, remainder;
    remainder.constant = rest.constant;
    for (const auto& [term, coefficient] : rest.terms) {
      std::int64_t multiple = 0;
      switch (rounding) {
        case Rounding::none:
          break;
        case Rounding::to_zero:
          multiple = coefficient / divisor;
          break;
        case Rounding::down:
          multiple = floor_quotient(coefficient, divisor);
          break;
        case Rounding::up:
          multiple = floor_quotient(coefficient, divisor) + 1;
          break;  // no coefficient is a multiple
        case Rounding::nearest:
          multiple = floor_quotient(coefficient, divisor);
          if (floor_remainder(coefficient, divisor) > divisor / 2) ++multiple;
          break;
      }
      if (multiple != 0) quotient.terms.emplace_back(term, multiple);
      remainder.terms.emplace_back(term, coefficient - multiple * divisor);
    }
    const Range range = sum_range(remainder);
    const std::int64_t period = floor_quotient(range.low, divisor);
    if (period != floor_quotient(range.high, divisor)) continue;
    quotient.constant = period;
    remainder.constant = checked_add(remainder.constant, -checked_multiply(period, divisor));
    return std::pair(std::move(quotient), std::move(remainder));
  }
  return std::nullopt;
}

/// Worked example, axes i < 8, j < 4, k < 4, divisor 64 of e = 128*h + 16*i + 4*j + k: the multiple goes out, q = 2*h;
/// factor g = 16 splits the rest into 16*i and 4*j + k, which stays within [0, 15]; so e//64 = 2*h + i//4 and
/// e%64 = 16*(i%4) + 4*j + k.
Context::Impl::Division Context::Impl::divide_anew(Expression e, std::int64_t divisor) {
  const Range whole = node(e).range;
  const std::int64_t period = floor_quotient(whole.low, divisor);
  if (period == floor_quotient(whole.high, divisor)) {
    Sum remainder = node(e).sum;
    remainder.constant = checked_add(remainder.constant, -checked_multiply(period, divisor));
    return {intern({period, {}}), build(std::move(remainder))};
  }

  // Multiples of the divisor go out.
  Sum quotient, rest;
  {
    const Sum& content = node(e).sum;
    quotient.constant = floor_quotient(content.constant, divisor);
    rest.constant = floor_remainder(content.constant, divisor);
    for (const auto& [term, coefficient] : content.terms) {
      if (coefficient % divisor == 0) {
        quotient.terms.emplace_back(term, coefficient / divisor);
      } else {
        rest.terms.emplace_back(term, coefficient);
      }
    }
  }
  const auto finish = [&](const Sum& more_quotient, Sum remainder) -> Division {
    accumulate(quotient, more_quotient, 1);
    return {build(std::move(quotient)), build(std::move(remainder))};
  };

  if (const auto affine = divide_within_a_period(rest, divisor)) return finish(affine->first, affine->second);

  // A single term is no walk over several axes, so its coefficient may lose its multiples: (5*i)//4 = i + i//4.
  if (rest.terms.size() == 1 && rest.terms[0].second / divisor != 0) {
    auto& [term, coefficient] = rest.terms[0];
    accumulate(quotient, term, coefficient / divisor);
    coefficient %= divisor;
  }

  // floor((g*A + B) / (g*b)) = floor(A / b) when B stays within one period of g.
  for (const std::int64_t factor : common_factors(rest, divisor)) {
    if (factor == 1) break;
    Sum multiples, others;
    multiples.constant = floor_quotient(rest.constant, factor);
    others.constant = floor_remainder(rest.constant, factor);
    for (const auto& [term, coefficient] : rest.terms) {
      if (coefficient / factor != 0) multiples.terms.emplace_back(term, coefficient / factor);
      if (coefficient % factor != 0) others.terms.emplace_back(term, coefficient % factor);
    }
    const Range leftover = sum_range(others);
    const std::int64_t k = floor_quotient(leftover.low, factor);
    if (k != floor_quotient(leftover.high, factor)) continue;
    multiples.constant += k;
    others.constant = checked_add(others.constant, -checked_multiply(k, factor));
    const Division inner = divide(build(std::move(multiples)), divisor / factor);
    accumulate(others, node(inner.remainder).sum, factor);
    return finish(node(inner.quotient).sum, std::move(others));
  }

  // A flip: floor((d-1 - X) / d) = -floor(X / d), and the remainder is d-1 - X%d.
  if (rest.constant == divisor - 1 && rest.terms.front().second < 0) {
    Sum flipped = scaled(rest, -1);
    flipped.constant = 0;
    const Division inner = divide(build(std::move(flipped)), divisor);
    Sum remainder{divisor - 1, {}};
    accumulate(remainder, node(inner.remainder).sum, -1);
    return finish(scaled(node(inner.quotient).sum, -1), std::move(remainder));
  }

  // (x % (a*d)) // d = (x//d) % a, and (x % (a*d)) % d = x % d.
  if (const Term* only = single_term(rest);
      only != nullptr && only->kind == TermKind::mod && only->divisor % divisor == 0) {
    const Term modulus = *only;
    const Division inner = divide(modulus.operand, divisor);
    const Division outer = divide(inner.quotient, modulus.divisor / divisor);
    return finish(node(outer.remainder).sum, node(inner.remainder).sum);
  }

  // floor((x//a + y) / d) = floor((x + a*y) / (a*d)).
  const Expression operand = build(rest);
  const Term remainder = divided(TermKind::mod, operand, divisor);
  for (const auto& [term, coefficient] : rest.terms) {
    if (term.kind != TermKind::floor_div || coefficient != 1) continue;
    std::int64_t product = 0;
    bool fits = try_multiply(term.divisor, divisor, product);
    for (const auto& entry : rest.terms) {
      std::int64_t ignored = 0;
      fits = fits && try_multiply(entry.second, term.divisor, ignored);
    }
    if (!fits) continue;
    Sum flat = node(term.operand).sum, others = rest;
    accumulate(others, term, -1);
    accumulate(flat, others, term.divisor);
    const Sum more = node(divide(build(std::move(flat)), product).quotient).sum;
    // Remembered for the operand too: `recombine_modulus` asks for the quotient that belongs to this remainder.
    divisions.insert_or_assign({operand, divisor}, Division{build(more), intern({0, {{remainder, 1}}})});
    return finish(more, {0, {{remainder, 1}}});
  }
  const Sum floored{0, {{divided(TermKind::floor_div, operand, divisor), 1}}};
  divisions.insert_or_assign({operand, divisor}, Division{intern(floored), intern({0, {{remainder, 1}}})});
  return finish(floored, {0, {{remainder, 1}}});
}

/// c*d*(x//d) + c*(x%d) = c*x, found from the floor-division.
bool Context::Impl::recombine_quotient(Sum& sum, const Term& term, std::int64_t coefficient) {
  if (coefficient % term.divisor != 0) return false;
  const std::int64_t factor = coefficient / term.divisor;
  const Division division = divide(term.operand, term.divisor);
  const Term* quotient = single_term(node(division.quotient).sum);
  if (quotient == nullptr || *quotient != term) return false;
  const Sum remainder = node(division.remainder).sum;
  if (!holds(sum, remainder, factor)) return false;
  accumulate(sum, term, -coefficient);
  accumulate(sum, remainder, -factor);
  accumulate(sum, node(term.operand).sum, factor);
  return true;
}

/// The same found from the modulus. And two neighbouring digits are one: with y = x//e and x//(e*b) = y//b,
/// c*b*((y//b) % a) + c*(y % b) = c*(y % (a*b)).
bool Context::Impl::recombine_modulus(Sum& sum, const Term& term, std::int64_t coefficient) {
  const Division division = divide(term.operand, term.divisor);
  const Term* remainder = single_term(node(division.remainder).sum);
  std::int64_t factor = 0;
  if (remainder != nullptr && *remainder == term && try_multiply(coefficient, term.divisor, factor)) {
    const Sum quotient = node(division.quotient).sum;
    if (holds(sum, quotient, factor)) {
      accumulate(sum, term, -coefficient);
      accumulate(sum, quotient, -factor);
      accumulate(sum, node(term.operand).sum, coefficient);
      return true;
    }
  }
  const Term* inner = single_term(node(term.operand).sum);
  if (inner == nullptr || inner->kind != TermKind::floor_div) return false;
  const Term quotient = *inner;
  std::vector<std::int64_t> digits{quotient.divisor};
  for (const auto& [other, ignored] : sum.terms) {
    if (other.kind == TermKind::mod && other != term) digits.push_back(other.divisor);
  }
  for (const std::int64_t digit : digits) {
    std::int64_t product = 0;
    if (coefficient % digit != 0 || quotient.divisor % digit != 0 ||
        !try_multiply(digit, term.divisor, product))
      continue;
    const Expression upper = divide(quotient.operand, quotient.divisor / digit).quotient;
    const Sum low = node(divide(upper, digit).remainder).sum;
    factor = coefficient / digit;
    if (coefficient_of(low, term) != 0 || !holds(sum, low, factor)) continue;
    accumulate(sum, term, -coefficient);
    accumulate(sum, low, -factor);
    accumulate(sum, node(divide(upper, product).remainder).sum, factor);
    return true;
  }
  return false;
}

Expression Context::Impl::build(Sum sum) {
  // Each step makes the sum smaller, counted with its operands, so this ends. Without a modulus there is nothing to
  // recombine with.
  bool changed = true;
  while (changed) {
    changed = false;
    const bool recombinable = std::any_of(sum.terms.begin(), sum.terms.end(), [](const auto& entry) {
      return entry.first.kind == TermKind::mod;
    });
    if (!recombinable || sum.terms.size() < 2) break;
    const auto terms = sum.terms;  // a copy: the rules change the sum
    for (const auto& [term, coefficient] : terms) {
      if (term.kind == TermKind::floor_div) changed = recombine_quotient(sum, term, coefficient);
      if (term.kind == TermKind::mod) changed = recombine_modulus(sum, term, coefficient);
      if (changed) break;
    }
  }
  return intern(std::move(sum));
}

}  // namespace pallascope::index
