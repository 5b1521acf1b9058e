#include "core/index/plan.h"

#include <algorithm>
#include <numeric>

#include "core/index/arithmetic.h"

namespace pallascope::index {
namespace {

using Shape = std::vector<std::int64_t>;

/// The number of elements that one step of each dimension skips: {9, 16} has weights {16, 1}.
Shape weights_of(const Shape& dims) {
  Shape weights(dims.size(), 1);
  for (std::size_t d = dims.size(); d-- > 1;) weights[d - 1] = weights[d] * dims[d];
  return weights;
}

std::int64_t product(const Shape& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1},
                         [](std::int64_t a, std::int64_t b) { return checked_multiply(a, b); });
}

bool is_ascending(const std::vector<int>& permutation) {
  return std::is_sorted(permutation.begin(), permutation.end());
}

Shape without_ones(const Shape& shape) {
  Shape kept;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(kept), [](std::int64_t n) { return n != 1; });
  return kept;
}

/// A dimension of the sliced value, after the split if there is one.
struct Entry {
  std::int64_t count = 1;
  std::ptrdiff_t piece = -1;  ///< the first piece that it walks; -1 for a dimension indexed by a constant
};

/// The pieces of one view dimension, by descending stride, as one slice.
struct Held {
  std::vector<std::size_t> pieces;
  bool in_order = true;  ///< neighbours in the result, outermost first
};

/// Joins the pieces of one dimension of weight `weight` and size `size` to the slice that starts (at its lower end) at
/// `low`; false if they do not walk like one.
bool join(const PlanRequest& request, Held& held, std::int64_t weight, std::int64_t size, std::int64_t low,
          Slice& slice) {
  const auto& pieces = request.pieces;
  std::stable_sort(held.pieces.begin(), held.pieces.end(), [&](std::size_t a, std::size_t b) {
    return magnitude(pieces[a].stride) > magnitude(pieces[b].stride);
  });
  std::int64_t count = 1;
  for (std::size_t k = held.pieces.size(); k-- > 0;) {
    const SubAxis& piece = pieces[held.pieces[k]];
    const SubAxis& last = pieces[held.pieces.back()];
    if (piece.stride != checked_multiply(last.stride, count)) return false;
    count = checked_multiply(count, piece.extent);
    if (k > 0 && held.pieces[k] != held.pieces[k - 1] + 1) held.in_order = false;
  }
  const std::int64_t step = pieces[held.pieces.back()].stride / weight;
  const std::int64_t reach = checked_multiply(magnitude(step), count - 1);
  if (checked_add(low, reach) >= size) return false;
  slice = {step > 0 ? low : low + reach, step, count};
  return true;
}

/// The order of the entries that gives the result: the pieces in their order, and constant dimensions where the result
/// has a 1, so that no reshape is needed when the shapes allow it.
std::vector<int> order_entries(const std::vector<Entry>& entries, const PlanRequest& request) {
  std::vector<int> moving, constant, order;
  for (std::size_t k = 0; k < entries.size(); ++k) {
    (entries[k].piece < 0 ? constant : moving).push_back(static_cast<int>(k));
  }
  std::stable_sort(moving.begin(), moving.end(), [&](int a, int b) {
    return entries[static_cast<std::size_t>(a)].piece < entries[static_cast<std::size_t>(b)].piece;
  });
  if (is_ascending(moving)) {
    order.resize(entries.size());
    std::iota(order.begin(), order.end(), 0);
    return order;
  }
  auto next_constant = constant.begin();
  auto next = moving.begin();
  for (const std::int64_t extent : request.result_shape) {
    if (extent == 1 && next_constant != constant.end()) order.push_back(*next_constant++);
    for (std::int64_t reached = 1; reached < extent && next != moving.end(); ++next) {
      const Entry& entry = entries[static_cast<std::size_t>(*next)];
      const SubAxis& piece = request.pieces[static_cast<std::size_t>(entry.piece)];
      reached *= piece.stride == 0 ? piece.extent : entry.count;
      order.push_back(*next);
    }
  }
  order.insert(order.end(), next, moving.end());
  order.insert(order.begin(), next_constant, constant.end());
  return order;
}

/// The plan over the view `dims`, if each piece is a slice of one of its dimensions. With `allow_split`, several
/// pieces may share a dimension in any order.
std::optional<Plan> fit(const Shape& dims, const PlanRequest& request, bool allow_split) {
  const Shape weights = weights_of(dims);
  std::vector<Held> held(dims.size());
  std::vector<std::size_t> home(request.pieces.size(), dims.size());  // the dimension of each piece
  for (std::size_t k = 0; k < request.pieces.size(); ++k) {
    const std::int64_t stride = request.pieces[k].stride;
    if (stride == 0) continue;
    const std::int64_t size = magnitude(stride);
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] > 1 && weights[d] <= size && size / weights[d] < dims[d]) home[k] = d;
    }
    if (home[k] == dims.size() || size % weights[home[k]] != 0) return std::nullopt;
    held[home[k]].pieces.push_back(k);
  }

  Plan plan;
  plan.result_shape = request.result_shape;
  std::vector<Entry> entries;
  bool split = false, expand = false;
  // A broadcast piece is a dimension of 1 that follows the piece before it, so that nothing needs to be transposed.
  std::vector<std::vector<std::size_t>> broadcast_after(dims.size() + 1);
  std::size_t after = 0;
  for (std::size_t k = 0; k < request.pieces.size(); ++k) {
    if (request.pieces[k].stride != 0) {
      after = home[k] + 1;
    } else {
      broadcast_after[after].push_back(k);
      expand = true;
    }
  }
  const auto add_broadcasts = [&](std::size_t place) {
    for (const std::size_t k : broadcast_after[place]) {
      plan.view_shape.push_back(1);
      plan.slices.push_back({0, 1, 1});
      entries.push_back({1, static_cast<std::ptrdiff_t>(k)});
    }
  };
  add_broadcasts(0);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const std::int64_t low = request.lowest / weights[d] % dims[d];
    plan.view_shape.push_back(dims[d]);
    Slice slice{low, 1, 1};
    if (held[d].pieces.empty()) {
      entries.push_back({1, -1});
    } else {
      if (!join(request, held[d], weights[d], dims[d], low, slice)) return std::nullopt;
      if (held[d].in_order) {
        entries.push_back({slice.count, static_cast<std::ptrdiff_t>(held[d].pieces[0])});
      } else {
        if (!allow_split) return std::nullopt;
        split = true;
        for (const std::size_t k : held[d].pieces)
          entries.push_back({request.pieces[k].extent, static_cast<std::ptrdiff_t>(k)});
      }
    }
    plan.slices.push_back(slice);
    add_broadcasts(d + 1);
  }
  if (split) {
    for (const Entry& entry : entries) plan.split_shape.push_back(entry.count);
  }
  plan.permutation = order_entries(entries, request);
  if (expand) {
    for (const int k : plan.permutation) {
      const Entry& entry = entries[static_cast<std::size_t>(k)];
      const bool broadcast =
          entry.piece >= 0 && request.pieces[static_cast<std::size_t>(entry.piece)].stride == 0;
      plan.expand_shape.push_back(broadcast ? request.pieces[static_cast<std::size_t>(entry.piece)].extent
                                            : entry.count);
    }
  }
  if (!plan_is_proved(plan, request)) return std::nullopt;
  return plan;
}

/// How far a plan is from reading the buffer as it is; the steps inside the kernel weigh more than the reshape at its
/// boundary. The order of the weights is a judgement of what reads plainest, not a measurement.
int cost(const Plan& plan, const PlanRequest& request) {
  int total = 0;
  if (!plan.split_shape.empty()) total += 8;
  if (without_ones(plan.shape_before_result()) != without_ones(plan.result_shape)) total += 4;
  if (plan.view_shape != request.buffer_sizes) total += 2;
  if (!is_ascending(plan.permutation)) total += 1;
  return total;
}

Shape dims_of(const Shape& weights, std::int64_t numel) {
  Shape dims;
  std::int64_t above = numel;
  for (const std::int64_t weight : weights) {
    if (weight != above) dims.push_back(above / weight);
    above = weight;
  }
  return dims;
}

/// The weights of view dimensions, descending and ending in 1, that give each piece a dimension of its own: the
/// hint's where it has one that fits, and otherwise the greatest that divides.
Shape weights_for(std::vector<SubAxis> pieces, const PlanRequest& request, const Shape& hint) {
  std::erase_if(pieces, [](const SubAxis& piece) { return piece.stride == 0; });
  for (SubAxis& piece : pieces) piece.stride = magnitude(piece.stride);
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const SubAxis& a, const SubAxis& b) { return a.stride > b.stride; });
  std::int64_t span = 0;
  for (const SubAxis& piece : pieces) span += piece.stride * (piece.extent - 1);
  Shape weights;
  std::int64_t above = request.numel;
  for (const SubAxis& piece : pieces) {
    span -= piece.stride * (piece.extent - 1);
    std::int64_t weight = gcd(piece.stride, above);
    const auto natural =
        std::find_if(hint.begin(), hint.end(), [&](std::int64_t w) { return w <= piece.stride; });
    if (natural != hint.end() && weight % *natural == 0 && request.lowest % *natural + span < *natural)
      weight = *natural;
    if (weights.empty() || weights.back() != weight) weights.push_back(weight);
    above = weight;
  }
  if (weights.empty() || weights.back() != 1) weights.push_back(1);
  return weights;
}

/// Best of the plans over `weights` and over these with the hint's weights added where they fit: a dimension that is
/// only partly read is then cut where the buffer's own dimensions are.
std::optional<Plan> fit_weights(Shape weights, const PlanRequest& request, const Shape& hint,
                                bool allow_split) {
  std::optional<Plan> best = fit(dims_of(weights, request.numel), request, allow_split);
  if (!best) return best;
  for (const std::int64_t weight : hint) {
    if (weight >= request.numel || std::find(weights.begin(), weights.end(), weight) != weights.end())
      continue;
    const auto below =
        std::find_if(weights.begin(), weights.end(), [&](std::int64_t w) { return w < weight; });
    const std::int64_t above = below == weights.begin() ? request.numel : *(below - 1);
    if (below == weights.end() || weight % *below != 0 || above % weight != 0) continue;
    Shape finer = weights;
    finer.insert(finer.begin() + (below - weights.begin()), weight);
    std::optional<Plan> plan = fit(dims_of(finer, request.numel), request, allow_split);
    if (!plan || cost(*plan, request) > cost(*best, request)) continue;
    best = std::move(plan);
    weights = std::move(finer);
  }
  return best;
}

}  // namespace

std::optional<Plan> make_plan(const PlanRequest& request) {
  Shape hint = weights_of(request.buffer_sizes);  // descending; ends in 1
  hint.erase(std::unique(hint.begin(), hint.end()), hint.end());
  std::optional<Plan> best;
  const auto offer = [&](std::optional<Plan> plan) {
    if (plan && (!best || cost(*plan, request) < cost(*best, request))) best = std::move(plan);
  };

  offer(fit(request.buffer_sizes, request, false));
  if (best && cost(*best, request) < 2) return best;  // a view other than the buffer's own costs 2
  offer(fit_weights(weights_for(request.pieces, request, hint), request, hint, false));
  if (!best) offer(fit_weights(weights_for(request.pieces, request, {}), request, hint, false));
  if (best) return best;

  PlanRequest joined = request;
  joined.pieces = coalesce(request.pieces);
  if (joined.pieces != request.pieces) {
    offer(fit(joined.buffer_sizes, joined, false));
    offer(fit_weights(weights_for(joined.pieces, joined, hint), joined, hint, false));
    if (!best) offer(fit_weights(weights_for(joined.pieces, joined, {}), joined, hint, false));
    if (best) return best;
  }

  std::vector<SubAxis> by_stride = joined.pieces;
  std::erase_if(by_stride, [](const SubAxis& piece) { return piece.stride == 0; });
  std::stable_sort(by_stride.begin(), by_stride.end(), [](const SubAxis& a, const SubAxis& b) {
    return magnitude(a.stride) > magnitude(b.stride);
  });
  by_stride = coalesce(by_stride);
  offer(fit(joined.buffer_sizes, joined, true));
  offer(fit_weights(weights_for(by_stride, joined, hint), joined, hint, true));
  if (!best) offer(fit_weights(weights_for(by_stride, joined, {}), joined, hint, true));
  return best;
}

bool plan_is_proved(const Plan& plan, const PlanRequest& request) {
  const Shape& view = plan.view_shape;
  if (product(view) != request.numel || plan.slices.size() != view.size()) return false;
  const Shape weights = weights_of(view);
  std::vector<SubAxis> steps;  // the sliced value's dimensions, in elements
  std::int64_t address = 0;
  for (std::size_t d = 0; d < view.size(); ++d) {
    const Slice& slice = plan.slices[d];
    const std::int64_t last = checked_add(slice.start, checked_multiply(slice.step, slice.count - 1));
    if (slice.step == 0 || slice.count < 1 || std::min(slice.start, last) < 0 ||
        std::max(slice.start, last) >= view[d])
      return false;
    address = checked_add(address, checked_multiply(slice.start, weights[d]));
    steps.push_back({checked_multiply(slice.step, weights[d]), slice.count});
  }
  if (address != request.origin) return false;

  if (!plan.split_shape.empty()) {
    std::vector<SubAxis> split;
    auto next = plan.split_shape.begin();
    for (const SubAxis& step : steps) {
      std::int64_t rest = step.extent;
      do {
        if (next == plan.split_shape.end() || *next < 1 || rest % *next != 0) return false;
        rest /= *next;
        split.push_back({checked_multiply(step.stride, rest), *next++});
      } while (rest > 1);
    }
    if (next != plan.split_shape.end()) return false;
    steps = std::move(split);
  }

  if (plan.permutation.size() != steps.size()) return false;
  std::vector<SubAxis> result;
  std::vector<bool> used(steps.size(), false);
  for (const int k : plan.permutation) {
    if (k < 0 || static_cast<std::size_t>(k) >= steps.size() || used[static_cast<std::size_t>(k)])
      return false;
    used[static_cast<std::size_t>(k)] = true;
    result.push_back(steps[static_cast<std::size_t>(k)]);
  }
  if (!plan.expand_shape.empty()) {
    if (plan.expand_shape.size() != result.size()) return false;
    for (std::size_t k = 0; k < result.size(); ++k) {
      if (result[k].extent == plan.expand_shape[k]) continue;
      if (result[k].extent != 1) return false;
      result[k] = {0, plan.expand_shape[k]};
    }
  }
  std::int64_t points = 1;
  for (const SubAxis& step : result) points = checked_multiply(points, step.extent);
  // Row-major order: the same point has the same number in the result and in the pieces, so equal walks in normal form
  // are equal everywhere.
  return points == product(plan.result_shape) && coalesce(result) == coalesce(request.pieces);
}

bool Plan::slices_nothing() const {
  for (std::size_t d = 0; d < view_shape.size(); ++d) {
    if (slices[d] != Slice{0, 1, view_shape[d]}) return false;
  }
  return true;
}

bool Plan::permutes_nothing() const { return is_ascending(permutation); }

bool Plan::is_identity() const {
  return slices_nothing() && permutes_nothing() && expand_shape.empty() && view_shape == result_shape;
}

std::vector<std::int64_t> Plan::shape_before_result() const {
  if (!expand_shape.empty()) return expand_shape;
  std::vector<std::int64_t> shape;
  for (const int k : permutation) {
    const auto d = static_cast<std::size_t>(k);
    shape.push_back(split_shape.empty() ? slices[d].count : split_shape[d]);
  }
  return shape;
}

}  // namespace pallascope::index
