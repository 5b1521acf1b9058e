#include "core/schedule/schedule.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "core/schedule/fuse.h"
#include "core/schedule/groups.h"
#include "core/schedule/inline.h"

namespace pallascope::schedule {
namespace {

void log_lowering(Schedule& schedule) {
  for (const loop::NodeOutcome& outcome : schedule.program->outcomes) {
    Decision decision;
    decision.kind = DecisionKind::lower;
    decision.left = {outcome.node};
    decision.left_steps = outcome.steps;
    decision.accepted = outcome.outcome != loop::Outcome::torch;
    decision.evidence.note = outcome.why;
    switch (outcome.outcome) {
      case loop::Outcome::kernel: decision.reason = Reason::lowered_to_kernel; break;
      case loop::Outcome::view: decision.reason = Reason::lowered_to_view; break;
      case loop::Outcome::library: decision.reason = Reason::left_to_library; break;
      case loop::Outcome::torch: decision.reason = Reason::left_to_torch; break;
    }
    schedule.decisions.push_back(std::move(decision));
    schedule.effects.emplace_back();
  }
  schedule.lower_decisions = schedule.decisions.size();
}

void number(Schedule& schedule) {
  std::map<std::tuple<DecisionKind, std::vector<trace::NodeId>, std::vector<trace::NodeId>>, int> seen;
  for (std::size_t k = 0; k < schedule.decisions.size(); ++k) {
    Decision& d = schedule.decisions[k];
    d.id = DecisionId(k);
    d.occurrence = seen[{d.kind, d.left, d.right}]++;
  }
}

}  // namespace

Schedule schedule(std::shared_ptr<loop::Program> program, const trace::Graph&, const Options& options) {
  Schedule made;
  made.program = std::move(program);
  log_lowering(made);
  LiveNests live = live_nests(*made.program);
  if (options.fusion) {
    inline_producers(made, live);
    fuse(made, live, options);
  }
  number(made);
  return made;
}

State state_at(const Schedule& schedule, std::size_t count) {
  const loop::Program& program = *schedule.program;
  count = std::min(count, schedule.decisions.size());
  LiveNests live = live_nests(program);
  Groups groups(program.steps.size());
  for (std::size_t k = 0; k < count; ++k) {
    const Effect& effect = schedule.effects[k];
    if (effect.removed.valid()) live.nest_of_step[effect.removed.index()] = {};
    for (const auto& [step, nest] : effect.replaced) live.nest_of_step[step.index()] = nest;
  }
  for (const auto& [a, b] : born_together(live)) groups.unite(a, b);
  for (std::size_t k = 0; k < count; ++k)
    if (schedule.effects[k].merged_left.valid()) groups.unite(schedule.effects[k].merged_left, schedule.effects[k].merged_right);

  // What each group reads and writes; a removed producer takes part in nothing.
  const std::size_t steps = program.steps.size();
  std::vector<std::vector<loop::StepId>> members(steps);
  std::vector<std::vector<loop::BufferId>> reads(steps), writes(steps);
  std::vector<std::size_t> first(steps, steps);
  std::map<loop::BufferId, std::set<std::size_t>> writers, readers;
  for (std::size_t k = 0; k < steps; ++k) {
    const loop::StepId step(k);
    const loop::NestId nest = live.nest_of_step[k];
    const bool call = !std::holds_alternative<loop::NestId>(program.steps[step].content);
    if (!call && !nest.valid()) continue;
    const std::size_t g = groups.find(step);
    members[g].push_back(step);
    first[g] = std::min(first[g], k);
    if (!call) {
      for (loop::BufferId b : program.nests[nest].inputs()) reads[g].push_back(b);
      writes[g].push_back(program.nests[nest].output());
    } else if (const auto* library = std::get_if<loop::LibraryCall>(&program.steps[step].content)) {
      reads[g] = {library->lhs.buffer, library->rhs.buffer};
      writes[g] = {library->output};
    } else {
      const auto& torch = std::get<loop::TorchCall>(program.steps[step].content);
      for (const auto& [value, view] : torch.inputs) reads[g].push_back(view.buffer);
      for (loop::BufferId b : torch.outputs)
        if (b.valid()) writes[g].push_back(b);
    }
  }
  const auto unique = [](std::vector<loop::BufferId>& list) {
    std::vector<loop::BufferId> kept;
    std::set<loop::BufferId> seen;
    for (loop::BufferId b : list)
      if (seen.insert(b).second) kept.push_back(b);
    list = std::move(kept);
  };
  for (std::size_t g = 0; g < steps; ++g) {
    unique(reads[g]);
    unique(writes[g]);
    for (loop::BufferId b : writes[g]) writers[b].insert(g);
    for (loop::BufferId b : reads[g]) readers[b].insert(g);
  }
  std::set<loop::BufferId> returned;
  for (const loop::OutputValue& output : program.outputs)
    if (!output.none) returned.insert(output.view.buffer);

  // Execution order: a group runs when all that it reads is there; the earliest ready one first.
  std::vector<int> waiting(steps, 0);
  std::vector<std::set<std::size_t>> after(steps);
  for (std::size_t g = 0; g < steps; ++g)
    for (loop::BufferId b : reads[g])
      for (std::size_t w : writers[b])
        if (w != g && after[w].insert(g).second) ++waiting[g];
  for (std::size_t k = 0; k < steps; ++k)
    if (const loop::StepId next = live.next_ordered[k]; next.valid())
      if (after[groups.find(loop::StepId(k))].insert(groups.find(next)).second) ++waiting[groups.find(next)];
  using Ready = std::pair<std::size_t, std::size_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  std::size_t total = 0;
  for (std::size_t g = 0; g < steps; ++g) {
    if (members[g].empty()) continue;
    ++total;
    if (waiting[g] == 0) ready.emplace(first[g], g);
  }
  State state;
  while (!ready.empty()) {
    const std::size_t g = ready.top().second;
    ready.pop();
    --total;
    for (std::size_t next : after[g])
      if (--waiting[next] == 0) ready.emplace(first[next], next);
    ScheduledStep scheduled;
    if (!live.nest_of_step[members[g].front().index()].valid()) {
      scheduled.call = members[g].front();
      if (std::holds_alternative<loop::LibraryCall>(program.steps[scheduled.call].content)) {
        for (loop::BufferId b : reads[g]) state.bytes_moved += program.buffers[b].bytes();
        for (loop::BufferId b : writes[g]) state.bytes_moved += program.buffers[b].bytes();
      }
      state.steps.push_back(scheduled);
      continue;
    }
    Kernel kernel;
    for (loop::StepId s : members[g]) kernel.nests.push_back(live.nest_of_step[s.index()]);
    const std::set<loop::BufferId> made(writes[g].begin(), writes[g].end());
    for (loop::BufferId b : reads[g])
      if (!made.contains(b)) kernel.inputs.push_back(b);
    for (loop::BufferId b : writes[g]) {
      const auto& who = readers[b];
      const bool outside = returned.contains(b) || std::any_of(who.begin(), who.end(), [&](std::size_t r) { return r != g; });
      // What nothing reads is run for its checks alone, and stored so that the kernel has a result.
      (outside || who.empty() ? kernel.outputs : kernel.internal).push_back(b);
    }
    for (loop::BufferId b : kernel.inputs) kernel.bytes_moved += program.buffers[b].bytes();
    for (loop::BufferId b : kernel.outputs) kernel.bytes_moved += program.buffers[b].bytes();
    for (loop::BufferId b : kernel.internal) kernel.working_set += program.buffers[b].bytes();
    kernel.working_set += kernel.bytes_moved;
    state.bytes_moved += kernel.bytes_moved;
    scheduled.kernel = state.kernels.add(std::move(kernel));
    state.steps.push_back(scheduled);
  }
  PALLASCOPE_CHECK(total == 0, "the kernels depend on each other in a circle");
  return state;
}

}  // namespace pallascope::schedule
