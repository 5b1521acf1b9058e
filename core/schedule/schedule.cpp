#include "core/schedule/schedule.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/schedule/fuse.h"
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
  std::vector<Decision>& decisions = schedule.decisions;
  const auto identity = [&](std::size_t k) { return std::tie(decisions[k].kind, decisions[k].left, decisions[k].right); };
  std::vector<std::size_t> order(decisions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return identity(a) < identity(b); });
  for (std::size_t k = 0; k < order.size(); ++k) {
    Decision& d = decisions[order[k]];
    d.id = DecisionId(order[k]);
    d.occurrence = k > 0 && identity(order[k - 1]) == identity(order[k]) ? decisions[order[k - 1]].occurrence + 1 : 0;
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

State state_at(const Schedule& schedule, std::size_t count) { return Replay(schedule).at(count); }

}  // namespace pallascope::schedule
