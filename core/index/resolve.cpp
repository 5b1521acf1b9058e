#include "core/index/resolve.h"

#include <algorithm>
#include <map>

#include "core/index/arithmetic.h"

namespace pallascope::index {
namespace {

/// A loop axis, or merged ones, with the axes of the context that it is split into so far, outermost first.
struct Group {
  std::vector<std::size_t> positions;
  std::vector<AxisId> parts;
};

/// The floor-divisions and moduli whose operand is affine: those that a split can resolve next.
void innermost(const Context& context, Expression e,
               std::vector<std::pair<Expression, std::int64_t>>& found) {
  for (const auto& [term, coefficient] : context.sum(e).terms) {
    if (!term.operand.valid()) continue;
    if (!context.is_affine(term.operand)) {
      innermost(context, term.operand, found);
    } else if (std::find(found.begin(), found.end(), std::pair(term.operand, term.divisor)) == found.end()) {
      found.emplace_back(term.operand, term.divisor);
    }
  }
}

/// Splits one axis of one operand: c*x over d is resolved by cutting x into steps of d / gcd(c, d), if these divide
/// its extent. False if no axis can be cut so.
bool split_one(Context& context, Expression& e, std::vector<Group>& groups) {
  std::vector<std::pair<Expression, std::int64_t>> open;
  innermost(context, e, open);
  for (const auto& [operand, divisor] : open) {
    for (const auto& [term, coefficient] : context.sum(operand).terms) {
      const std::int64_t extent = context.axis(term.axis).extent;
      const std::int64_t inner = divisor / gcd(coefficient, divisor);
      if (inner <= 1 || inner >= extent || extent % inner != 0) continue;
      const AxisId whole = term.axis;
      const auto [outer_axis, inner_axis] = context.split_axis(whole, inner);
      const Expression replacement =
          context.add(context.multiply(context.of(outer_axis), inner), context.of(inner_axis));
      e = context.substitute(e, {{whole, replacement}});
      for (Group& group : groups) {
        const auto place = std::find(group.parts.begin(), group.parts.end(), whole);
        if (place == group.parts.end()) continue;
        *place = inner_axis;
        group.parts.insert(place, outer_axis);
      }
      return true;
    }
  }
  return false;
}

std::optional<Walk> split_until_affine(Context& context, Expression e, std::vector<Group> groups) {
  // Each split makes two smaller axes of one, so this ends.
  while (!context.is_affine(e)) {
    if (!split_one(context, e, groups)) return std::nullopt;
  }
  const Sum& sum = context.sum(e);
  Walk walk;
  walk.constant = sum.constant;
  for (Group& group : groups) {
    AxisGroup resolved;
    resolved.positions = std::move(group.positions);
    for (const AxisId part : group.parts) {
      Term term;
      term.axis = part;
      const auto entry =
          std::find_if(sum.terms.begin(), sum.terms.end(), [&](const auto& t) { return t.first == term; });
      resolved.parts.push_back({entry == sum.terms.end() ? 0 : entry->second, context.axis(part).extent});
    }
    walk.groups.push_back(std::move(resolved));
  }
  return walk;
}

/// Marks (in `joined[k]`: group k with group k+1) the neighbours that an operand walks like one axis.
std::vector<bool> wanted_joins(const Context& context, Expression e, const std::vector<AxisId>& moving) {
  std::vector<bool> joined(moving.size(), false);
  std::vector<std::pair<Expression, std::int64_t>> open;
  innermost(context, e, open);
  for (const auto& [operand, divisor] : open) {
    std::vector<std::int64_t> coefficients(moving.size(), 0);
    for (const auto& [term, coefficient] : context.sum(operand).terms) {
      const auto place = std::find(moving.begin(), moving.end(), term.axis);
      if (place != moving.end()) coefficients[static_cast<std::size_t>(place - moving.begin())] = coefficient;
    }
    for (std::size_t k = 0; k + 1 < moving.size(); ++k) {
      std::int64_t product = 0;
      if (coefficients[k] != 0 &&
          try_multiply(coefficients[k + 1], context.axis(moving[k + 1]).extent, product) &&
          coefficients[k] == product) {
        joined[k] = true;
      }
    }
  }
  return joined;
}

}  // namespace

std::optional<Walk> resolve(Context& context, Expression expression, const std::vector<AxisId>& axes) {
  std::vector<Group> groups;
  std::vector<AxisId> moving;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    if (context.axis(axes[k]).extent == 1) continue;
    groups.push_back({{k}, {axes[k]}});
    moving.push_back(axes[k]);
  }
  if (auto walk = split_until_affine(context, expression, groups)) return walk;

  const std::vector<bool> joined = wanted_joins(context, expression, moving);
  if (std::find(joined.begin(), joined.end(), true) == joined.end()) return std::nullopt;
  std::vector<Group> merged;
  std::map<AxisId, Expression> replacements;
  for (std::size_t first = 0; first < moving.size();) {
    std::size_t last = first;
    while (joined[last]) ++last;
    Group group;
    std::vector<AxisId> parts(moving.begin() + static_cast<std::ptrdiff_t>(first),
                              moving.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    for (std::size_t k = first; k <= last; ++k) group.positions.push_back(groups[k].positions[0]);
    if (parts.size() == 1) {
      group.parts = parts;
    } else {
      const AxisId whole = context.merge_axes(parts);
      group.parts = {whole};
      std::int64_t inner = 1;
      for (std::size_t k = parts.size(); k-- > 0;) {
        const std::int64_t extent = context.axis(parts[k]).extent;
        replacements[parts[k]] = context.mod(context.floor_div(context.of(whole), inner), extent);
        inner *= extent;
      }
    }
    merged.push_back(std::move(group));
    first = last + 1;
  }
  return split_until_affine(context, context.substitute(expression, replacements), std::move(merged));
}

std::vector<SubAxis> coalesce(const std::vector<SubAxis>& parts) {
  std::vector<SubAxis> result;
  for (const SubAxis& part : parts) {
    if (part.extent == 1) continue;
    std::int64_t product = 0;
    if (!result.empty() && try_multiply(part.stride, part.extent, product) &&
        result.back().stride == product) {
      result.back() = {part.stride, result.back().extent * part.extent};
    } else {
      result.push_back(part);
    }
  }
  return result;
}

}  // namespace pallascope::index
