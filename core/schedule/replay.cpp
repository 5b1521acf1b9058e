// The state at any decision: which nests live, in which kernels, in what order. Everything is a flat array over steps,
// groups or buffers, for a window takes a state at each press of a key.
#include <algorithm>
#include <queue>
#include <span>

#include "core/schedule/fuse.h"
#include "core/schedule/groups.h"
#include "core/schedule/inline.h"
#include "core/schedule/schedule.h"

namespace pallascope::schedule {
namespace {

/// Lists of one kind after one another: those of key k are items[starts[k]] .. items[starts[k + 1]].
template <class T>
struct Lists {
  std::vector<std::uint32_t> starts{0};
  std::vector<T> items;
  [[nodiscard]] std::span<const T> operator[](std::size_t k) const {
    return std::span<const T>(items).subspan(starts[k], starts[k + 1] - starts[k]);
  }
  void close() { starts.push_back(static_cast<std::uint32_t>(items.size())); }
};

/// What is known of each key, from (key, item) pairs whose items keep their order.
template <class T>
Lists<T> sorted_by_key(std::size_t keys, std::span<const std::pair<std::uint32_t, T>> pairs) {
  Lists<T> made;
  made.starts.assign(keys + 1, 0);
  for (const auto& [key, item] : pairs) ++made.starts[key + 1];
  for (std::size_t k = 0; k < keys; ++k) made.starts[k + 1] += made.starts[k];
  std::vector<std::uint32_t> next(made.starts.begin(), made.starts.end() - 1);
  made.items.resize(pairs.size());
  for (const auto& [key, item] : pairs) made.items[next[key]++] = item;
  return made;
}

/// What the nests and calls of a program read and write, whichever of them live.
struct ProgramFacts {
  Lists<loop::BufferId> nest_reads, call_reads, call_writes;  ///< of each nest; of each step that is a call
  std::vector<loop::BufferId> nest_writes;                    ///< of each nest
  std::vector<bool> call, library;                            ///< of each step
  std::vector<std::int64_t> bytes;                            ///< of each buffer

  explicit ProgramFacts(const loop::Program& program) {
    for (const loop::Nest& nest : program.nests) {
      for (const loop::Statement& s : nest.body) {
        const auto own = std::span(nest_reads.items).subspan(nest_reads.starts.back());
        if (s.kind == loop::StatementKind::load && std::find(own.begin(), own.end(), s.buffer) == own.end())
          nest_reads.items.push_back(s.buffer);
      }
      nest_reads.close();
      nest_writes.push_back(nest.output());
    }
    for (const loop::Step& step : program.steps) {
      call.push_back(!std::holds_alternative<loop::NestId>(step.content));
      const auto* own = std::get_if<loop::LibraryCall>(&step.content);
      library.push_back(own != nullptr);
      if (own != nullptr) {
        for (const loop::View& operand : own->operands) call_reads.items.push_back(operand.buffer);
        call_writes.items.insert(call_writes.items.end(), own->outputs.begin(), own->outputs.end());
      } else if (const auto* torch = std::get_if<loop::TorchCall>(&step.content)) {
        for (const auto& [value, view] : torch->inputs) call_reads.items.push_back(view.buffer);
        for (const loop::BufferId b : torch->outputs)
          if (b.valid()) call_writes.items.push_back(b);
      }
      call_reads.close();
      call_writes.close();
    }
    for (const loop::Buffer& buffer : program.buffers) bytes.push_back(buffer.bytes());
  }
};

/// What lives of a program, and in which groups.
struct Living {
  std::span<const loop::StepId> order;         ///< which of two groups that are ready runs first
  std::vector<loop::NestId> nest_of_step;      ///< of each step; invalid for a call, and for a nest that does not live
  const std::vector<loop::StepId>& next_ordered;  ///< of each step
  const std::vector<bool>& returned;           ///< of each buffer
  Groups groups;
};

State state_of(const ProgramFacts& facts, const Living& living) {
  const std::size_t steps = facts.call.size(), buffers = facts.bytes.size();
  const std::vector<loop::NestId>& nest_of_step = living.nest_of_step;
  // The members of each group in order; a removed producer takes part in nothing. Group numbers follow first members.
  constexpr std::uint32_t none = ~std::uint32_t{0};
  std::vector<std::uint32_t> number(steps, none), group_of(steps, none);
  std::vector<std::pair<std::uint32_t, loop::StepId>> membership;
  std::uint32_t count_of_groups = 0;
  membership.reserve(living.order.size());
  for (const loop::StepId step : living.order) {
    if (!facts.call[step.index()] && !nest_of_step[step.index()].valid()) continue;
    std::uint32_t& g = number[living.groups.find(step)];
    if (g == none) g = count_of_groups++;
    group_of[step.index()] = g;
    membership.emplace_back(g, step);
  }
  const Lists<loop::StepId> members = sorted_by_key<loop::StepId>(count_of_groups, membership);

  // What each group reads and writes, once each; and of each buffer, which groups do.
  Lists<loop::BufferId> reads, writes;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> read_by, written_by;
  std::vector<std::uint32_t> read_last(buffers, none), written_last(buffers, none);
  for (std::uint32_t g = 0; g < count_of_groups; ++g) {
    const auto take = [g](std::span<const loop::BufferId> from, Lists<loop::BufferId>& to, std::vector<std::uint32_t>& last,
                          std::vector<std::pair<std::uint32_t, std::uint32_t>>& by) {
      for (const loop::BufferId b : from) {
        if (std::exchange(last[b.index()], g) == g) continue;
        to.items.push_back(b);
        by.emplace_back(static_cast<std::uint32_t>(b.value), g);
      }
    };
    for (const loop::StepId step : members[g]) {
      if (facts.call[step.index()]) {
        take(facts.call_reads[step.index()], reads, read_last, read_by);
        take(facts.call_writes[step.index()], writes, written_last, written_by);
      } else {
        const std::size_t nest = nest_of_step[step.index()].index();
        take(facts.nest_reads[nest], reads, read_last, read_by);
        take(std::span(&facts.nest_writes[nest], 1), writes, written_last, written_by);
      }
    }
    reads.close();
    writes.close();
  }
  const Lists<std::uint32_t> readers = sorted_by_key<std::uint32_t>(buffers, read_by);
  const Lists<std::uint32_t> writers = sorted_by_key<std::uint32_t>(buffers, written_by);

  // Execution order: a group runs when all that it reads is there; the earliest ready one first. Two groups that share
  // several buffers wait for each other as often.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  std::vector<int> waiting(count_of_groups, 0);
  const auto wait = [&](std::uint32_t before, std::uint32_t after) {
    edges.emplace_back(before, after);
    ++waiting[after];
  };
  for (std::uint32_t g = 0; g < count_of_groups; ++g)
    for (const loop::BufferId b : reads[g])
      for (const std::uint32_t w : writers[b.index()])
        if (w != g) wait(w, g);
  for (const loop::StepId step : living.order)
    if (const loop::StepId next = living.next_ordered[step.index()]; next.valid()) wait(group_of[step.index()], group_of[next.index()]);
  const Lists<std::uint32_t> after = sorted_by_key<std::uint32_t>(count_of_groups, edges);
  // Groups are numbered by their first members: the least number is the earliest.
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t g = 0; g < count_of_groups; ++g)
    if (waiting[g] == 0) ready.push(g);

  State state;
  state.steps.reserve(count_of_groups);
  std::vector<std::uint32_t> made_in(buffers, none);
  while (!ready.empty()) {
    const std::uint32_t g = ready.top();
    ready.pop();
    for (const std::uint32_t next : after[g])
      if (--waiting[next] == 0) ready.push(next);
    ScheduledStep scheduled;
    if (!nest_of_step[members[g].front().index()].valid()) {
      scheduled.call = members[g].front();
      if (facts.library[scheduled.call.index()]) {
        for (const loop::BufferId b : reads[g]) state.bytes_moved += facts.bytes[b.index()];
        for (const loop::BufferId b : writes[g]) state.bytes_moved += facts.bytes[b.index()];
      }
      state.steps.push_back(scheduled);
      continue;
    }
    Kernel kernel;
    kernel.nests.reserve(members[g].size());
    for (const loop::StepId s : members[g]) kernel.nests.push_back(nest_of_step[s.index()]);
    for (const loop::BufferId b : writes[g]) made_in[b.index()] = g;
    for (const loop::BufferId b : reads[g])
      if (made_in[b.index()] != g) kernel.inputs.push_back(b);
    for (const loop::BufferId b : writes[g]) {
      const auto who = readers[b.index()];
      const bool outside = living.returned[b.index()] || std::any_of(who.begin(), who.end(), [g](std::uint32_t r) { return r != g; });
      // What nothing reads is run for its checks alone, and stored so that the kernel has a result.
      (outside || who.empty() ? kernel.outputs : kernel.internal).push_back(b);
    }
    for (const loop::BufferId b : kernel.inputs) kernel.bytes_moved += facts.bytes[b.index()];
    for (const loop::BufferId b : kernel.outputs) kernel.bytes_moved += facts.bytes[b.index()];
    for (const loop::BufferId b : kernel.internal) kernel.working_set += facts.bytes[b.index()];
    kernel.working_set += kernel.bytes_moved;
    state.bytes_moved += kernel.bytes_moved;
    scheduled.kernel = state.kernels.add(std::move(kernel));
    state.steps.push_back(scheduled);
  }
  PALLASCOPE_CHECK(state.steps.size() == count_of_groups, "the kernels depend on each other in a circle");
  return state;
}


std::vector<bool> returned_of(const std::vector<loop::OutputValue>& outputs, std::size_t buffers) {
  std::vector<bool> returned(buffers, false);
  for (const loop::OutputValue& output : outputs)
    if (!output.none) returned[output.view.buffer.index()] = true;
  return returned;
}

}  // namespace

struct Replay::Facts {
  const Schedule& schedule;
  ProgramFacts program;
  LiveNests live;
  std::vector<std::pair<loop::StepId, loop::StepId>> born;
  std::vector<loop::StepId> order;  ///< the program's
  std::vector<bool> returned;       ///< of each buffer

  explicit Facts(const Schedule& of)
      : schedule(of), program(*of.program), live(live_nests(*of.program)), born(born_together(live)),
        returned(returned_of(of.program->outputs, of.program->buffers.size())) {
    for (std::size_t k = 0; k < of.program->steps.size(); ++k) order.emplace_back(k);
  }
};

Replay::Replay(const Schedule& schedule) : facts_(std::make_unique<const Facts>(schedule)) {}
Replay::~Replay() = default;
Replay::Replay(Replay&&) noexcept = default;
Replay& Replay::operator=(Replay&&) noexcept = default;

State Replay::at(std::size_t count) const {
  const Facts& facts = *facts_;
  const Schedule& schedule = facts.schedule;
  Living living{facts.order, facts.live.nest_of_step, facts.live.next_ordered, facts.returned, Groups(facts.order.size())};
  for (const auto& [a, b] : facts.born) living.groups.unite(a, b);
  for (std::size_t k = 0; k < std::min(count, schedule.decisions.size()); ++k) {
    const Effect& effect = schedule.effects[k];
    if (effect.removed.valid()) living.nest_of_step[effect.removed.index()] = {};
    for (const auto& [step, nest] : effect.replaced) living.nest_of_step[step.index()] = nest;
    if (effect.merged_left.valid()) living.groups.unite(effect.merged_left, effect.merged_right);
  }
  return state_of(facts.program, living);
}

struct Unfused::Facts {
  const loop::Program& program;
  ProgramFacts known;
  std::vector<bool> checks;   ///< of each nest: it runs for its checks, if for nothing else
  std::vector<bool> ordered;  ///< of each step

  explicit Facts(const loop::Program& of) : program(of), known(of) {
    for (const loop::Nest& nest : of.nests) checks.push_back(checks_values(nest));
    for (const loop::Step& step : of.steps) {
      const auto* torch = std::get_if<loop::TorchCall>(&step.content);
      ordered.push_back(torch != nullptr && torch->ordered);
    }
  }
};

Unfused::Unfused(const loop::Program& program) : facts_(std::make_unique<const Facts>(program)) {}
Unfused::~Unfused() = default;
Unfused::Unfused(Unfused&&) noexcept = default;
Unfused& Unfused::operator=(Unfused&&) noexcept = default;

State Unfused::of(const std::vector<loop::StepId>& steps, const std::vector<loop::OutputValue>& outputs) const {
  const Facts& facts = *facts_;
  const ProgramFacts& known = facts.known;
  const std::vector<bool> returned = returned_of(outputs, known.bytes.size());
  std::vector<loop::StepId> next_ordered(known.call.size()), writer(known.bytes.size());
  Living living{steps, std::vector<loop::NestId>(known.call.size()), next_ordered, returned, Groups(known.call.size())};
  // As live_nests does for a whole program.
  std::vector<bool> read = returned;
  loop::StepId later;
  for (std::size_t k = steps.size(); k-- > 0;) {
    const loop::StepId step = steps[k];
    std::span<const loop::BufferId> reads = known.call_reads[step.index()], writes = known.call_writes[step.index()];
    if (const auto* nest = std::get_if<loop::NestId>(&facts.program.steps[step].content)) {
      writes = std::span(&known.nest_writes[nest->index()], 1);
      if (!read[writes[0].index()] && !facts.checks[nest->index()]) continue;
      living.nest_of_step[step.index()] = *nest;
      reads = known.nest_reads[nest->index()];
    }
    for (const loop::BufferId b : reads) read[b.index()] = true;
    for (const loop::BufferId b : writes) {
      loop::StepId& other = writer[b.index()];
      if (other.valid()) living.groups.unite(step, other);
      other = step;
    }
    if (!facts.ordered[step.index()]) continue;
    if (later.valid()) next_ordered[step.index()] = later;
    later = step;
  }
  return state_of(known, living);
}

}  // namespace pallascope::schedule
