#include "core/schedule/fuse.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_set>

#include "core/schedule/groups.h"
#include "core/schedule/tiles.h"

namespace pallascope::schedule {
namespace {

struct Candidate {
  std::int64_t score = 0;  ///< bytes saved, at least
  loop::StepId left, right;
  loop::BufferId buffer;
  bool vertical = false;

  /// Best first: most bytes, vertical before horizontal, then program order.
  [[nodiscard]] auto key() const {
    return std::tuple(-score, vertical ? 0 : 1, left.value, right.value, buffer.value);
  }
  friend bool operator<(const Candidate& a, const Candidate& b) { return a.key() > b.key(); }
};

class Fuser {
 public:
  Fuser(Schedule& schedule, const LiveNests& live, const Options& options)
      : schedule_(schedule), program_(*schedule.program), live_(live), options_(options), groups_(program_.steps.size()),
        members_(program_.steps.size()), buffers_(program_.steps.size()), origins_(program_.steps.size()),
        seen_(program_.steps.size(), 0), came_by_(program_.steps.size()), came_from_(program_.steps.size(), 0) {
    for (std::size_t k = 0; k < program_.steps.size(); ++k) {
      const loop::StepId step(k);
      if (!is_live(step)) continue;
      members_[k] = {step};
      origins_[k] = origins_of(step);
      if (!is_nest(step)) continue;
      const loop::Nest& nest = program_.nests[live_.nest_of_step[k]];
      for (loop::BufferId b : nest.inputs()) buffers_[k].insert(b);
      buffers_[k].insert(nest.output());
    }
    for (const auto& [a, b] : born_together(live_)) unite(a, b);
    place();
  }

  void run() {
    collect();
    while (!queue_.empty()) {
      const Candidate c = queue_.top();
      queue_.pop();
      consider(c);
    }
  }

 private:
  [[nodiscard]] bool is_nest(loop::StepId s) const { return live_.nest_of_step[s.index()].valid(); }
  [[nodiscard]] bool is_live(loop::StepId s) const {
    return is_nest(s) || !std::holds_alternative<loop::NestId>(program_.steps[s].content);
  }

  /// The nodes that a step computes, ascending.
  [[nodiscard]] std::vector<trace::NodeId> origins_of(loop::StepId step) const {
    if (is_nest(step)) return program_.nests[live_.nest_of_step[step.index()]].origins;
    const auto& content = program_.steps[step].content;
    if (const auto* library = std::get_if<loop::LibraryCall>(&content)) return {library->origin};
    return {std::get<loop::TorchCall>(content).origin};
  }

  void collect() {
    for (std::size_t b = 0; b < live_.readers.size(); ++b) {
      const loop::BufferId buffer(b);
      const std::int64_t bytes = program_.buffers[buffer].bytes();
      for (loop::StepId writer : live_.writers[b])
        for (loop::StepId reader : live_.readers[b]) queue_.push({2 * bytes, writer, reader, buffer, true});
      // Readers of one buffer: each with the next, so that n readers make n - 1 candidates.
      for (std::size_t k = 1; k < live_.readers[b].size(); ++k) {
        const loop::StepId left = live_.readers[b][k - 1], right = live_.readers[b][k];
        if (is_nest(left) && is_nest(right)) queue_.push({bytes, left, right, buffer, false});
      }
    }
  }

  void unite(loop::StepId a, loop::StepId b) {
    std::size_t keep = groups_.find(a), gone = groups_.find(b);
    if (keep == gone) return;
    if (members_[keep].size() + buffers_[keep].size() < members_[gone].size() + buffers_[gone].size()) std::swap(keep, gone);
    groups_.unite(loop::StepId(keep), loop::StepId(gone));
    if (!group_at_.empty()) group_at_[place_[keep]] = keep;
    members_[keep].insert(members_[keep].end(), members_[gone].begin(), members_[gone].end());
    buffers_[keep].insert(buffers_[gone].begin(), buffers_[gone].end());
    std::vector<trace::NodeId> both;
    both.reserve(origins_[keep].size() + origins_[gone].size());
    std::set_union(origins_[keep].begin(), origins_[keep].end(), origins_[gone].begin(), origins_[gone].end(), std::back_inserter(both));
    origins_[keep] = std::move(both);
    origins_[gone].clear();
    members_[gone].clear();
    buffers_[gone].clear();
  }

  /// The readers of what a step writes, which come after it; ends with true as soon as `visit` gives it.
  template <class Visit>
  bool any_successor(loop::StepId step, const Visit& visit) const {
    const auto readers = [&](loop::BufferId b) {
      return std::any_of(live_.readers[b.index()].begin(), live_.readers[b.index()].end(), visit);
    };
    if (is_nest(step)) return readers(program_.nests[live_.nest_of_step[step.index()]].output());
    if (const auto* library = std::get_if<loop::LibraryCall>(&program_.steps[step].content))
      return std::any_of(library->outputs.begin(), library->outputs.end(), readers);
    for (loop::BufferId b : std::get<loop::TorchCall>(program_.steps[step].content).outputs)
      if (b.valid() && readers(b)) return true;
    const loop::StepId next = live_.next_ordered[step.index()];
    return next.valid() && visit(next);
  }

  /// What leads out of a group that stands before another, as far as the other's place.
  struct Detour {
    std::vector<loop::StepId> path;    ///< to the other through at least one more group, as steps; or empty
    std::vector<std::size_t> between;  ///< without such a path: all groups before the other that the first leads to
  };
  [[nodiscard]] Detour detour(std::size_t from, std::size_t to) {
    ++search_;
    open_.clear();
    Detour result;
    const auto expand = [&](std::size_t group) {
      const auto enter = [&](loop::StepId next) {
        const std::size_t g = groups_.find(next);
        if (g == group || (group == from && g == to) || seen_[g] == search_) return false;
        // Places are an order of the groups: what stands after the target does not lead to it. The order of the
        // program says nothing of it, since a group may have steps on both sides of the target.
        if (place_[g] > place_[to]) return false;
        seen_[g] = search_;
        came_by_[g] = next;
        came_from_[g] = group;
        if (g == to) return true;
        open_.push_back(g);
        result.between.push_back(g);
        return false;
      };
      return std::any_of(members_[group].begin(), members_[group].end(), [&](loop::StepId step) { return any_successor(step, enter); });
    };
    bool found = expand(from);
    while (!found && !open_.empty()) {
      const std::size_t group = open_.back();
      open_.pop_back();
      found = expand(group);
    }
    if (!found) return result;
    result.between.clear();
    for (std::size_t g = to; g != from; g = came_from_[g]) result.path.push_back(came_by_[g]);
    result.path.push_back(members_[from].front());
    std::reverse(result.path.begin(), result.path.end());
    return result;
  }

  /// Gives each group a place after all groups that it reads from.
  void place() {
    place_.assign(members_.size(), 0);
    group_at_.reserve(members_.size());
    std::vector<std::size_t> waiting(members_.size(), 0);
    const auto each_edge = [&](std::size_t group, const auto& visit) {
      for (loop::StepId step : members_[group])
        any_successor(step, [&](loop::StepId next) {
          if (const std::size_t g = groups_.find(next); g != group) visit(g);
          return false;
        });
    };
    std::size_t count = 0;
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t g = 0; g < members_.size(); ++g) each_edge(g, [&](std::size_t next) { ++waiting[next]; });
    for (std::size_t g = 0; g < members_.size(); ++g) {
      if (members_[g].empty()) continue;
      ++count;
      if (waiting[g] == 0) ready.push(g);
    }
    while (!ready.empty()) {
      const std::size_t group = ready.top();
      ready.pop();
      place_[group] = group_at_.size();
      group_at_.push_back(group);
      each_edge(group, [&](std::size_t next) {
        if (--waiting[next] == 0) ready.push(next);
      });
    }
    PALLASCOPE_CHECK(group_at_.size() == count, "the nests that fill one buffer depend on each other through others");
  }

  /// Makes the places of two groups one: after what stands between them and does not follow from the first (the second
  /// may follow from it), before the rest. `between` is what the last search found to follow.
  void place_together(std::size_t first, std::size_t last, const std::vector<std::size_t>& between) {
    const std::size_t end = place_[last];
    std::size_t at = place_[first];
    if (at + 1 < end) {
      ++search_;
      for (const std::size_t group : between) seen_[group] = search_;
    }
    std::vector<std::size_t> later;
    const auto put = [&](std::size_t group) {
      place_[group] = at;
      group_at_[at++] = group;
    };
    for (std::size_t k = place_[first] + 1; k < end; ++k) {
      const std::size_t group = group_at_[k];
      if (group == nobody) continue;
      if (seen_[group] == search_) {
        later.push_back(group);
      } else {
        put(group);
      }
    }
    place_[last] = at;
    put(first);
    for (std::size_t group : later) put(group);
    while (at <= end) group_at_[at++] = nobody;
  }

  [[nodiscard]] std::vector<loop::NestId> nests_of(std::size_t a, std::size_t b) const {
    std::vector<loop::StepId> steps = members_[a];
    steps.insert(steps.end(), members_[b].begin(), members_[b].end());
    std::sort(steps.begin(), steps.end());
    std::vector<loop::NestId> nests;
    for (loop::StepId s : steps) nests.push_back(live_.nest_of_step[s.index()]);
    return nests;
  }

  /// Both sides' index of the buffer that they share.
  [[nodiscard]] std::vector<IndexPair> index_pairs(const Candidate& c) const {
    std::vector<IndexPair> pairs;
    const loop::NestId left = live_.nest_of_step[c.left.index()], right = live_.nest_of_step[c.right.index()];
    if (!left.valid() || !right.valid()) return pairs;
    const loop::Nest& l = program_.nests[left];
    const loop::Nest& r = program_.nests[right];
    for (const loop::Statement& a : l.body) {
      const auto wanted = c.vertical ? loop::StatementKind::store : loop::StatementKind::load;
      if (a.kind != wanted || a.buffer != c.buffer) continue;
      for (const loop::Statement& b : r.body)
        if (b.kind == loop::StatementKind::load && b.buffer == c.buffer)
          pairs.push_back({c.buffer, left, right, a.index, b.index});
    }
    return pairs;
  }

  /// Whether every read of a value across the two groups can be written in a kernel.
  [[nodiscard]] bool expressible(std::size_t a, std::size_t b) const {
    for (const auto& [producer, consumer] : {std::pair{a, b}, std::pair{b, a}})
      for (loop::StepId step : members_[consumer]) {
        const loop::NestId id = live_.nest_of_step[step.index()];
        const loop::Nest& nest = program_.nests[id];
        for (std::size_t s = 0; s < nest.body.size(); ++s) {
          const loop::Statement& load = nest.body[s];
          if (load.kind != loop::StatementKind::load) continue;
          const std::vector<loop::StepId>& writers = live_.writers[load.buffer.index()];
          if (writers.empty() || groups_.find(writers.front()) != producer) continue;
          // A buffer that several nests fill is read back from its ref, where slices are allowed.
          const index::Access& access = loop::access_of(program_, id, static_cast<int>(s));
          if (writers.size() > 1 ? !access.plan : !reads_value(access)) return false;
        }
      }
    return true;
  }

  void consider(const Candidate& c) {
    const std::size_t a = groups_.find(c.left), b = groups_.find(c.right);
    if (a == b) return;
    if (!judged_.insert({std::min(a, b), std::max(a, b), members_[a].size() + members_[b].size()}).second) return;
    Decision decision;
    decision.kind = DecisionKind::fuse;
    decision.left = origins_[a];
    decision.right = origins_[b];
    decision.left_steps = members_[a];
    decision.right_steps = members_[b];
    Evidence& evidence = decision.evidence;
    evidence.indices = index_pairs(c);
    evidence.conditions.reserve(4);
    evidence.budget = options_.model.memory_bytes;
    std::int64_t shared = 0;
    for (loop::BufferId buffer : buffers_[a].size() < buffers_[b].size() ? buffers_[a] : buffers_[b])
      if (buffers_[a].contains(buffer) && buffers_[b].contains(buffer)) shared += program_.buffers[buffer].bytes();
    evidence.bytes_saved = std::max(shared, program_.buffers[c.buffer].bytes());
    const auto mark = [&](Condition condition, ConditionState state) { evidence.conditions.emplace_back(condition, state); };
    const auto refuse = [&](Reason reason, Condition failed) {
      decision.reason = reason;
      mark(failed, ConditionState::fails);
      for (Condition next : {Condition::order_and_aliasing, Condition::common_grid, Condition::fits_on_chip, Condition::expressible})
        if (next > failed) mark(next, ConditionState::not_reached);
    };
    const bool calls = !is_nest(c.left) || !is_nest(c.right);
    const auto [first, last] = place_[a] < place_[b] ? std::pair(a, b) : std::pair(b, a);
    Detour way;
    const auto judge = [&]() -> bool {
      if (calls) {
        const loop::StepId call = is_nest(c.left) ? c.right : c.left;
        const bool library = std::holds_alternative<loop::LibraryCall>(program_.steps[call].content);
        decision.reason = library ? Reason::library_boundary : Reason::torch_boundary;
        for (Condition condition : {Condition::order_and_aliasing, Condition::common_grid, Condition::fits_on_chip})
          mark(condition, ConditionState::not_reached);
        mark(Condition::expressible, ConditionState::fails);
        return false;
      }
      way = detour(first, last);
      if (!way.path.empty()) {
        evidence.path = way.path;
        refuse(Reason::cycle, Condition::order_and_aliasing);
        return false;
      }
      mark(Condition::order_and_aliasing, ConditionState::holds);
      std::int64_t whole = 0;
      for (loop::BufferId buffer : buffers_[a]) whole += program_.buffers[buffer].bytes();
      for (loop::BufferId buffer : buffers_[b])
        if (!buffers_[a].contains(buffer)) whole += program_.buffers[buffer].bytes();
      evidence.working_set = evidence.working_set_tile = whole;
      if (whole > options_.model.memory_bytes) {
        const Tiles tiles = analyse_tiles(program_, nests_of(a, b), options_.model);
        evidence.working_set_tile = tiles.working_set_tile;
        const AxisClass* blocking = nullptr;
        bool any_shared = false;
        for (const AxisClass& k : tiles.classes) {
          if (k.shared) {
            any_shared = true;
            evidence.tile_axes.push_back({k.members.front().second});
          } else if (blocking == nullptr || k.extent > blocking->extent) {
            blocking = &k;
          }
        }
        if (blocking != nullptr) {
          evidence.axis = blocking->blocking_axis;
          evidence.axis_nest = blocking->blocking_nest;
          evidence.axis_role = blocking->blocking_role;
        }
        if (!any_shared) {
          refuse(Reason::common_grid, Condition::common_grid);
          return false;
        }
        mark(Condition::common_grid, ConditionState::holds);
        if (tiles.working_set_tile > options_.model.memory_bytes) {
          refuse(Reason::exceeds_memory, Condition::fits_on_chip);
          return false;
        }
      } else {
        mark(Condition::common_grid, ConditionState::holds);
      }
      mark(Condition::fits_on_chip, ConditionState::holds);
      if (!expressible(a, b)) {
        refuse(Reason::not_expressible, Condition::expressible);
        return false;
      }
      mark(Condition::expressible, ConditionState::holds);
      decision.reason = c.vertical ? Reason::fused_vertical : Reason::fused_horizontal;
      return true;
    };
    decision.accepted = judge();
    Effect effect;
    if (decision.accepted) {
      effect.merged_left = c.left;
      effect.merged_right = c.right;
      place_together(first, last, way.between);
      unite(c.left, c.right);
      // A merge can take a cycle's middle into the group: pairs refused for their order are tried again.
      const std::size_t made = groups_.find(c.left);
      std::vector<Candidate> waiting;
      std::swap(waiting, cycles_);
      for (const Candidate& w : waiting) {
        const std::size_t x = groups_.find(w.left), y = groups_.find(w.right);
        if (x == y) continue;
        if (x == made || y == made) {
          queue_.push(w);
        } else {
          cycles_.push_back(w);
        }
      }
    } else if (decision.reason == Reason::cycle) {
      cycles_.push_back(c);
    }
    schedule_.decisions.push_back(std::move(decision));
    schedule_.effects.push_back(effect);
  }

  Schedule& schedule_;
  loop::Program& program_;
  const LiveNests& live_;
  const Options& options_;
  Groups groups_;
  std::vector<std::vector<loop::StepId>> members_;          ///< one a group, at its representative
  std::vector<std::unordered_set<loop::BufferId>> buffers_;  ///< buffers that the group's nests touch
  std::vector<std::vector<trace::NodeId>> origins_;         ///< nodes that the group computes, ascending
  // Of the search for a detour: which search saw a group last, by which step and from where it came there.
  std::uint32_t search_ = 0;
  std::vector<std::uint32_t> seen_;
  std::vector<loop::StepId> came_by_;
  std::vector<std::size_t> came_from_, open_;
  static constexpr std::size_t nobody = ~std::size_t{0};
  std::vector<std::size_t> place_;     ///< of each group: after the places of all groups that it reads from
  std::vector<std::size_t> group_at_;  ///< the group of each place, or nobody
  std::priority_queue<Candidate> queue_;
  std::vector<Candidate> cycles_;
  std::set<std::tuple<std::size_t, std::size_t, std::size_t>> judged_;
};

}  // namespace

std::vector<std::pair<loop::StepId, loop::StepId>> born_together(const LiveNests& live) {
  std::vector<std::pair<loop::StepId, loop::StepId>> pairs;
  for (const auto& writers : live.writers)
    for (std::size_t k = 1; k < writers.size(); ++k) pairs.emplace_back(writers[k - 1], writers[k]);
  return pairs;
}

void fuse(Schedule& schedule, const LiveNests& live, const Options& options) { Fuser(schedule, live, options).run(); }

}  // namespace pallascope::schedule
