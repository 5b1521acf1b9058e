#include "core/index/access.h"

#include <algorithm>

#include "core/index/arithmetic.h"
#include "core/index/plan.h"
#include "core/index/resolve.h"
#include "core/index/strides.h"

namespace pallascope::index {
namespace {

/// How many points an access that no rule resolves is enumerated for, to learn its exact bounds and count. Not
/// measured: 2048 points keep one such access well under a millisecond.
constexpr std::int64_t most_enumerated = 2048;

std::int64_t value_at(const Context& context, Expression e, const std::vector<std::int64_t>& by_axis) {
  const Sum& sum = context.sum(e);
  std::int64_t total = sum.constant;
  for (const auto& [term, coefficient] : sum.terms) {
    std::int64_t value = 0;
    if (term.kind == TermKind::axis) {
      value = by_axis[term.axis.index()];
    } else {
      value = value_at(context, term.operand, by_axis);
      value = term.kind == TermKind::mod ? floor_remainder(value, term.divisor)
                                         : floor_quotient(value, term.divisor);
    }
    total += coefficient * value;
  }
  return total;
}

/// Every value of `e` (without symbols) over the points of `axes`, in row-major order.
std::vector<std::int64_t> enumerate(const Context& context, Expression e, const std::vector<AxisId>& axes,
                                    std::int64_t points) {
  std::size_t most = 0;
  for (const AxisId axis : axes) most = std::max(most, axis.index() + 1);
  std::vector<std::int64_t> by_axis(most, 0), values;
  values.reserve(static_cast<std::size_t>(points));
  for (std::int64_t point = 0; point < points; ++point) {
    values.push_back(value_at(context, e, by_axis));
    for (std::size_t k = axes.size(); k-- > 0;) {
      if (++by_axis[axes[k].index()] < context.axis(axes[k]).extent) break;
      by_axis[axes[k].index()] = 0;
    }
  }
  return values;
}

std::string elements(std::int64_t count) {
  return std::to_string(count) + (count == 1 ? " element" : " elements");
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t k = 0; k < names.size(); ++k) text += (k == 0 ? "" : ", ") + names[k];
  return text;
}

/// One access on its way: what all the steps look at.
struct Question {
  Context& context;
  Expression expression;
  const std::vector<AxisId>& axes;
  const std::vector<std::int64_t>& buffer_sizes;
  AccessOptions options;
  std::int64_t numel = 1;
  std::int64_t points = 1;

  [[nodiscard]] std::int64_t extent(std::size_t position) const {
    return context.axis(axes[position]).extent;
  }
  [[nodiscard]] const std::string& name(std::size_t position) const {
    return context.axis(axes[position]).name;
  }
};

void check_bounds(const Question& question, Access& access) {
  access.in_bounds = access.bounds.low >= 0 && access.bounds.high < question.numel;
}

std::string out_of_bounds_words(const Question& question, const Access& access) {
  return "general: reaches from element " + std::to_string(access.bounds.low) + " to " +
         std::to_string(access.bounds.high) + ", the buffer has " + elements(question.numel);
}

void nothing(const Question& question, Access& access) {
  access.access_class = AccessClass::contiguous;
  access.bounds = {0, -1};
  access.in_bounds = access.injective = access.distinct_exact = true;
  access.words = "contiguous: touches nothing, an axis has extent 0";
  Plan plan;
  for (std::size_t k = 0; k < question.axes.size(); ++k) plan.result_shape.push_back(question.extent(k));
  // An empty buffer is reshaped as it is; of another one no element is taken.
  plan.view_shape = question.numel == 0 ? plan.result_shape : std::vector<std::int64_t>{question.numel};
  for (const std::int64_t size : plan.view_shape)
    plan.slices.push_back({0, 1, question.numel == 0 ? size : 0});
  for (std::size_t d = 0; d < plan.view_shape.size(); ++d) plan.permutation.push_back(static_cast<int>(d));
  access.plan = std::move(plan);
}

void collect_symbols(const Context& context, Expression e, std::vector<std::string>& names) {
  for (const auto& [term, coefficient] : context.sum(e).terms) {
    if (term.operand.valid()) collect_symbols(context, term.operand, names);
    if (term.kind != TermKind::symbol) continue;
    const std::string& name = context.symbol(term.symbol).name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
}

/// At most as many elements as points, and as there are between the bounds.
void bound_distinct(const Question& question, Access& access) {
  const std::int64_t between =
      saturating_add(saturating_add(access.bounds.high, saturating_multiply(access.bounds.low, -1)), 1);
  access.distinct_elements = std::min(question.points, between);
  if (access.in_bounds) access.distinct_elements = std::min(access.distinct_elements, question.numel);
}

void gather(const Question& question, Access& access) {
  access.access_class = AccessClass::gather;
  access.bounds = question.context.range(question.expression);
  check_bounds(question, access);
  bound_distinct(question, access);
  std::vector<std::string> names;
  collect_symbols(question.context, question.expression, names);
  access.words = "gather: the element is given by the value of " + listed(names);
}

/// What the strides of a walk say, before the class is known.
struct Facts {
  std::vector<SubAxis> moving;     ///< stride not 0, in the order of the loop
  std::vector<std::size_t> owner;  ///< the group of each
  bool broadcast = false;          ///< some sub-axis has stride 0
  std::int64_t repeats = 1;        ///< product of the extents with stride 0
  bool reversed = false, descending = true;
  std::int64_t smallest = 0;  ///< least |stride|, 0 if nothing moves
  std::int64_t lowest = 0;
  Touched touched;
};

Facts facts_of(const Walk& walk) {
  Facts facts;
  facts.lowest = walk.constant;
  for (std::size_t g = 0; g < walk.groups.size(); ++g) {
    for (const SubAxis& part : walk.groups[g].parts) {
      if (part.stride == 0) {
        facts.broadcast = true;
        facts.repeats = saturating_multiply(facts.repeats, part.extent);
        continue;
      }
      const std::int64_t size = magnitude(part.stride);
      if (part.stride < 0) {
        facts.reversed = true;
        facts.lowest = checked_add(facts.lowest, checked_multiply(part.stride, part.extent - 1));
      }
      if (!facts.moving.empty() && magnitude(facts.moving.back().stride) < size) facts.descending = false;
      facts.smallest = facts.smallest == 0 ? size : std::min(facts.smallest, size);
      facts.moving.push_back(part);
      facts.owner.push_back(g);
    }
  }
  facts.touched = count_touched(facts.moving);
  return facts;
}

/// The request for a plan: the pieces of the axes that the expression depends on.
PlanRequest request_of(const Question& question, const Walk& walk, const Facts& facts) {
  PlanRequest request;
  request.result_shape.assign(question.axes.size(), 1);
  request.lowest = facts.lowest;
  request.origin = walk.constant;
  request.buffer_sizes = question.buffer_sizes;
  request.numel = question.numel;
  for (const AxisGroup& group : walk.groups) {
    const bool used = std::any_of(group.parts.begin(), group.parts.end(),
                                  [](const SubAxis& part) { return part.stride != 0; });
    if (!used) continue;
    for (const std::size_t position : group.positions)
      request.result_shape[position] = question.extent(position);
    // Within one group pieces that walk like one are one: the result's dimension hides the difference.
    const std::vector<SubAxis> parts = coalesce(group.parts);
    request.pieces.insert(request.pieces.end(), parts.begin(), parts.end());
  }
  return request;
}

/// The whole buffer in its order: the view is the result, whatever the buffer's own sizes.
std::optional<Plan> identity_plan(const PlanRequest& request) {
  const std::vector<SubAxis> walked = coalesce(request.pieces);
  const bool whole = request.numel == 1 ? walked.empty() : walked == std::vector<SubAxis>{{1, request.numel}};
  if (!whole) return std::nullopt;
  Plan plan;
  plan.view_shape = plan.result_shape = request.result_shape;
  for (std::size_t d = 0; d < plan.view_shape.size(); ++d) {
    plan.slices.push_back({0, 1, plan.view_shape[d]});
    plan.permutation.push_back(static_cast<int>(d));
  }
  if (!plan_is_proved(plan, request)) return std::nullopt;
  return plan;
}

std::vector<std::string> axis_names(const Question& question, const Walk& walk,
                                    bool (*wanted)(const SubAxis&)) {
  std::vector<std::string> names;
  for (const AxisGroup& group : walk.groups) {
    if (std::none_of(group.parts.begin(), group.parts.end(), wanted)) continue;
    for (const std::size_t position : group.positions) names.push_back(question.name(position));
  }
  return names;
}

/// Axes by descending stride: `j, i` for a transposed matrix. A split axis stands where its parts stand.
std::string memory_order(const Question& question, const Walk& walk, const Facts& facts) {
  std::vector<std::size_t> order(facts.moving.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return magnitude(facts.moving[a].stride) > magnitude(facts.moving[b].stride);
  });
  std::vector<std::string> names;
  for (const std::size_t k : order) {
    const AxisGroup& group = walk.groups[facts.owner[k]];
    std::string name;
    for (const std::size_t position : group.positions)
      name += (name.empty() ? "" : "*") + question.name(position);
    if (group.parts.size() > 1) name = "part of " + name;
    names.push_back(std::move(name));
  }
  return listed(names);
}

std::string words_of(const Question& question, const Walk& walk, const Facts& facts, const Access& access) {
  const std::string touched = std::to_string(access.distinct_elements) + " of " + elements(question.numel);
  const auto is_broadcast = [](const SubAxis& part) { return part.stride == 0; };
  const auto is_reversed = [](const SubAxis& part) { return part.stride < 0; };
  std::string text;
  switch (access.access_class) {
    case AccessClass::contiguous:
      return "contiguous";
    case AccessClass::broadcast: {
      const auto names = axis_names(question, walk, is_broadcast);
      return "broadcast along " + listed(names) + ": each element is used " + std::to_string(facts.repeats) +
             " times";
    }
    case AccessClass::sliced:
      text =
          "sliced: " + touched + (facts.lowest > 0 ? ", from element " + std::to_string(facts.lowest) : "");
      break;
    case AccessClass::strided:
      text = "strided by " + elements(facts.smallest) + ": ";
      if (coalesce(facts.moving).size() == 1) {
        text += "1 of " + std::to_string(facts.smallest) + " used";
      } else {
        text += std::to_string(access.distinct_elements) + " of " +
                std::to_string(access.bounds.high - access.bounds.low + 1) + " used";
      }
      break;
    case AccessClass::permuted:
      text = "permuted: in memory the order is " + memory_order(question, walk, facts);
      if (access.distinct_elements != question.numel) text += "; " + touched;
      break;
    case AccessClass::reversed:
      text = "reversed along " + listed(axis_names(question, walk, is_reversed));
      if (access.distinct_elements != question.numel) text += ": " + touched;
      break;
    case AccessClass::overlapping:
      return "overlapping: " + elements(access.distinct_elements) + " for " +
             std::to_string(question.points) + " points";
    case AccessClass::gather:
    case AccessClass::general:
      return {};
  }
  if (facts.broadcast) text += "; broadcast along " + listed(axis_names(question, walk, is_broadcast));
  return text;
}

void resolved(const Question& question, const Walk& walk, Access& access) {
  const Facts facts = facts_of(walk);
  access.bounds = {facts.lowest, facts.lowest};
  for (const SubAxis& part : facts.moving) {
    access.bounds.high =
        checked_add(access.bounds.high, checked_multiply(magnitude(part.stride), part.extent - 1));
  }
  check_bounds(question, access);
  access.distinct_elements = facts.touched.distinct;
  access.distinct_exact = facts.touched.exact;
  access.injective = facts.touched.injective() && !facts.broadcast;

  if (!access.in_bounds) {
    access.words = out_of_bounds_words(question, access);
    return;
  }
  if (!facts.touched.injective()) {
    if (facts.touched.exact) {
      access.access_class = AccessClass::overlapping;
      access.words = words_of(question, walk, facts, access);
    } else {
      access.words = "general: it is not proved that the steps touch different elements";
    }
    return;
  }
  const PlanRequest request = request_of(question, walk, facts);
  access.plan = identity_plan(request);
  const bool whole = access.plan.has_value();
  if (!whole) access.plan = make_plan(request);
  if (access.plan && !access.plan->split_shape.empty() && !question.options.split_slices) {
    access.plan.reset();
    access.words = "general: a slice of the buffer would have to be split before it is transposed";
    return;
  }
  if (access.plan && !access.plan->expand_shape.empty() && !question.options.expand_within_axes) {
    access.plan.reset();
    access.words = "general: each element would have to be repeated within an axis";
    return;
  }
  if (!access.plan) {
    access.words = "general: no view of " + elements(question.numel) + " has these strides";
    return;
  }
  if (facts.reversed) {
    access.access_class = AccessClass::reversed;
  } else if (!facts.descending) {
    access.access_class = AccessClass::permuted;
  } else if (facts.smallest > 1) {
    access.access_class = AccessClass::strided;
  } else if (access.distinct_elements != question.numel) {
    access.access_class = AccessClass::sliced;
  } else {
    access.access_class = facts.broadcast ? AccessClass::broadcast : AccessClass::contiguous;
  }
  access.words = words_of(question, walk, facts, access);
}

/// Whether the axes walk the whole buffer in its order: from the last axis on, each has the stride that the extents behind
/// it multiply to. What most accesses of a model are.
bool walks_in_order(const Question& question, const Access& access) {
  if (!access.affine || access.offset != 0) return false;
  std::int64_t expected = 1;
  for (std::size_t k = question.axes.size(); k-- > 0;) {
    const std::int64_t extent = question.extent(k);
    if (extent == 1) continue;
    if (access.axis_strides[k] != expected) return false;
    expected = checked_multiply(expected, extent);
  }
  return expected == question.numel;
}

/// What `resolved` finds for such a walk, without a search: the strides are the proof.
void in_order(const Question& question, Access& access) {
  access.access_class = AccessClass::contiguous;
  access.bounds = {0, question.numel - 1};
  access.in_bounds = access.injective = access.distinct_exact = true;
  access.distinct_elements = question.numel;
  access.words = "contiguous";
  Plan& plan = access.plan.emplace();
  for (std::size_t k = 0; k < question.axes.size(); ++k) {
    plan.slices.push_back({0, 1, question.extent(k)});
    plan.permutation.push_back(static_cast<int>(k));
    plan.result_shape.push_back(question.extent(k));
  }
  plan.view_shape = plan.result_shape;
}

/// The walk of an expression whose values are a sum of strides although its form is not, as those of 6*((i+9)//12) +
/// (i+3)%6 over i < 5, which is i + 3: proved by looking at every value. nullopt if they are not.
std::optional<Walk> walk_of_values(const Question& question, const std::vector<std::int64_t>& values) {
  Walk walk;
  walk.constant = values[0];
  std::int64_t inner = 1;
  for (std::size_t k = question.axes.size(); k-- > 0;) {
    const std::int64_t extent = question.extent(k);
    if (extent == 1) continue;
    walk.groups.insert(walk.groups.begin(),
                       {{k}, {{values[static_cast<std::size_t>(inner)] - values[0], extent}}});
    inner *= extent;
  }
  for (std::size_t point = 0; point < values.size(); ++point) {
    std::int64_t sum = walk.constant;
    auto rest = static_cast<std::int64_t>(point);
    for (auto group = walk.groups.rbegin(); group != walk.groups.rend(); ++group) {
      sum += group->parts[0].stride * (rest % group->parts[0].extent);
      rest /= group->parts[0].extent;
    }
    if (sum != values[point]) return std::nullopt;
  }
  return walk;
}

/// An expression that no splitting makes affine.
void unresolved(const Question& question, Access& access) {
  access.access_class = AccessClass::general;
  access.bounds = question.context.range(question.expression);
  if (question.points <= most_enumerated) {
    std::vector<std::int64_t> values =
        enumerate(question.context, question.expression, question.axes, question.points);
    if (const auto walk = walk_of_values(question, values)) return resolved(question, *walk, access);
    std::sort(values.begin(), values.end());
    access.bounds = {values.front(), values.back()};
    values.erase(std::unique(values.begin(), values.end()), values.end());
    access.distinct_elements = static_cast<std::int64_t>(values.size());
    access.distinct_exact = true;
    access.injective = access.distinct_elements == question.points;
    check_bounds(question, access);
  } else {
    check_bounds(question, access);
    bound_distinct(question, access);
  }
  access.words = access.in_bounds ? "general: " + question.context.to_string(question.expression) +
                                        " is not a sum of strides"
                                  : out_of_bounds_words(question, access);
}

}  // namespace

std::string_view access_class_name(AccessClass c) {
  switch (c) {
    case AccessClass::contiguous:
      return "contiguous";
    case AccessClass::broadcast:
      return "broadcast";
    case AccessClass::permuted:
      return "permuted";
    case AccessClass::sliced:
      return "sliced";
    case AccessClass::strided:
      return "strided";
    case AccessClass::reversed:
      return "reversed";
    case AccessClass::overlapping:
      return "overlapping";
    case AccessClass::gather:
      return "gather";
    case AccessClass::general:
      return "general";
  }
  return "general";
}

char access_class_letter(AccessClass c) {
  constexpr std::string_view letters = "CBPSsROGX";
  return letters[static_cast<std::size_t>(c)];
}

Access access(Context& context, Expression expression, const std::vector<AxisId>& axes,
              const std::vector<std::int64_t>& buffer_sizes, AccessOptions options) {
  Question question{context, expression, axes, buffer_sizes, options};
  for (const std::int64_t size : buffer_sizes) question.numel = checked_multiply(question.numel, size);
  bool empty = false;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    empty = empty || question.extent(k) == 0;
    question.points = saturating_multiply(question.points, question.extent(k));
  }

  Access result;
  const Sum& sum = context.sum(expression);
  result.offset = sum.constant;
  result.affine = context.is_affine(expression);
  result.axis_strides.assign(axes.size(), 0);
  std::size_t known = 0;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    Term term;
    term.axis = axes[k];
    const auto entry =
        std::find_if(sum.terms.begin(), sum.terms.end(), [&](const auto& t) { return t.first == term; });
    if (entry == sum.terms.end()) continue;
    result.axis_strides[k] = entry->second;
    ++known;
  }
  if (result.affine) {
    PALLASCOPE_CHECK(known == sum.terms.size(), context.to_string(expression));
  } else {
    for (const AxisId used : context.axes(expression)) {
      PALLASCOPE_CHECK(std::find(axes.begin(), axes.end(), used) != axes.end(),
                       context.to_string(expression));
    }
  }

  if (empty) {
    nothing(question, result);
  } else if (context.has_symbol(expression)) {
    gather(question, result);
  } else if (walks_in_order(question, result)) {
    in_order(question, result);
  } else if (const auto walk = resolve(context, expression, axes)) {
    resolved(question, *walk, result);
  } else {
    unresolved(question, result);
  }
  return result;
}

}  // namespace pallascope::index
