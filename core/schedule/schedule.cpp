#include "core/schedule/schedule.h"

#include <map>
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

State state_at(const Schedule& schedule, std::size_t count) { return Replay(schedule).at(count); }

}  // namespace pallascope::schedule
