#include "core/session/compilation.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "core/lower/lower.h"
#include "core/target/target.h"

namespace pallascope::session {
namespace {

class Clock {
 public:
  /// Milliseconds since the last call (or the construction).
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double ms = std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
    return ms;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// An output that shares a changed input's storage in eager is returned as a view of that input.
void note_aliases(loop::Program& program, const functional::Functional& functional) {
  const trace::Graph& graph = functional.graph;
  for (std::size_t k = 0; k < functional.output_alias.size() && k < program.outputs.size(); ++k) {
    if (!functional.output_alias[k].valid() || program.outputs[k].kind != trace::OutputKind::user_output) continue;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      if (graph.inputs[i].value != functional.output_alias[k]) continue;
      const bool changed = std::any_of(program.outputs.begin(), program.outputs.end(),
                                       [&](const loop::OutputValue& o) { return o.mutated_input == static_cast<int>(i); });
      if (changed) program.outputs[k].alias_input = static_cast<int>(i);
    }
  }
}

Result<std::shared_ptr<loop::Program>> lowered(const functional::Functional& functional, std::optional<std::size_t> limit) {
  lower::Options options;
  options.limit = limit;
  Result<loop::Program> program = lower::lower(functional.graph, options);
  if (!program) return program.error();
  note_aliases(*program, functional);
  return std::make_shared<loop::Program>(std::move(*program));
}

}  // namespace

Result<std::shared_ptr<const Compilation>> Compilation::compile(std::shared_ptr<const trace::Program> program,
                                                                std::size_t graph, Options options) {
  if (graph >= program->graphs.size())
    return Diagnostic{DiagnosticKind::not_found, fmt::format("the program has no graph {}", graph), program->name,
                      fmt::format("a number below {}", program->graphs.size())};
  if (options.target != "interpret")
    return Diagnostic{DiagnosticKind::invalid_argument, "unknown target " + options.target, "", "interpret"};
  std::shared_ptr<Compilation> made(new Compilation());
  made->program_ = std::move(program);
  made->graph_ = graph;
  made->options_ = options;
  Clock clock;
  Result<functional::Functional> functional = functional::functionalize(made->traced());
  if (!functional) return functional.error();
  made->functional_ = std::move(*functional);
  made->timings_.functional_ms = clock.lap();

  Result<std::shared_ptr<loop::Program>> lowered_program = lowered(made->functional_, std::nullopt);
  if (!lowered_program) return lowered_program.error();
  made->timings_.lower_ms = clock.lap();

  schedule::Options schedule_options;
  schedule_options.fusion = options.fusion;
  schedule_options.model = target::default_model();
  made->schedule_ = schedule::schedule(*lowered_program, made->graph(), schedule_options);
  schedule::State state = schedule::state_at(made->schedule_, made->schedule_.decisions.size());
  made->timings_.schedule_ms = clock.lap();

  auto snapshot = std::make_shared<Snapshot>();
  snapshot->decision = made->schedule_.decisions.size();
  snapshot->program = made->schedule_.program;
  snapshot->state = std::move(state);
  snapshot->module = codegen::generate(made->traced(), made->graph(), *snapshot->program, snapshot->state, {});
  made->timings_.codegen_ms = clock.lap();
  made->snapshots_.emplace(snapshot->decision, std::move(snapshot));
  return std::shared_ptr<const Compilation>(std::move(made));
}

std::shared_ptr<const Snapshot> Compilation::at(std::size_t count) const {
  const std::lock_guard lock(mutex_);
  count = std::min(count, schedule_.decisions.size());
  if (const auto known = snapshots_.find(count); known != snapshots_.end()) return known->second;
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->decision = count;
  if (count < schedule_.lower_decisions) {
    // Operators that are not lowered yet are torch calls: lowering again with a limit gives that program.
    Result<std::shared_ptr<loop::Program>> early = lowered(functional_, count);
    PALLASCOPE_CHECK(early.ok(), to_string(early.error()));
    schedule::Options options;
    options.fusion = false;
    options.model = target::default_model();
    const schedule::Schedule early_schedule = schedule::schedule(*early, graph(), options);
    snapshot->program = early_schedule.program;
    snapshot->state = schedule::state_at(early_schedule, early_schedule.decisions.size());
  } else {
    snapshot->program = schedule_.program;
    snapshot->state = schedule::state_at(schedule_, count);
  }
  snapshot->module = codegen::generate(traced(), graph(), *snapshot->program, snapshot->state, {});
  snapshots_.emplace(count, snapshot);
  return snapshot;
}

}  // namespace pallascope::session
