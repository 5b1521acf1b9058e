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

/// An output that shares an input's storage in eager is returned as a view of that input.
void note_aliases(loop::Program& program, const functional::Functional& functional) {
  const trace::Graph& graph = functional.graph;
  for (std::size_t k = 0; k < functional.output_alias.size() && k < program.outputs.size(); ++k) {
    if (!functional.output_alias[k].valid() || program.outputs[k].kind != trace::OutputKind::user_output) continue;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      if (graph.inputs[i].value != functional.output_alias[k]) continue;
      if (graph.values[graph.inputs[i].value].tensor->dtype == program.outputs[k].meta.dtype)
        program.outputs[k].alias_input = static_cast<int>(i);
    }
  }
}

Result<std::shared_ptr<loop::Program>> lowered(const functional::Functional& functional) {
  Result<loop::Program> program = lower::lower(functional.graph);
  if (!program) return program.error();
  note_aliases(*program, functional);
  return std::make_shared<loop::Program>(std::move(*program));
}

/// About what a snapshot holds that no other does: its text and the tables of it; in the lowering also what became of each
/// node and where its values live. `shared` is the program of all others. An estimate by sizes.
std::size_t own_bytes(const Snapshot& snapshot, const loop::Program* shared) {
  const codegen::Module& module = snapshot.module;
  std::size_t bytes = sizeof(Snapshot) + module.source.capacity() + module.lines.capacity() * sizeof(codegen::LineOrigin) +
                      module.pieces.capacity() * sizeof(codegen::Place) + module.accesses.size() * 8 +
                      module.kernels.capacity() * (sizeof(codegen::KernelSource) + 64) +
                      snapshot.state.kernels.size() * (sizeof(schedule::Kernel) + 128);
  if (snapshot.program.get() == shared) return bytes;
  return bytes + snapshot.program->outcomes.size() * (sizeof(loop::NodeOutcome) + 64) + snapshot.program->views.size() * (sizeof(loop::View) + 96);
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

  Result<std::shared_ptr<loop::Program>> lowered_program = lowered(made->functional_);
  if (!lowered_program) return lowered_program.error();
  made->timings_.lower_ms = clock.lap();

  schedule::Options schedule_options;
  schedule_options.fusion = options.fusion;
  schedule_options.model = target::default_model();
  made->schedule_ = schedule::schedule(*lowered_program, made->graph(), schedule_options);
  made->replay_.emplace(made->schedule_);
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->decision = made->schedule_.decisions.size();
  snapshot->program = made->schedule_.program;
  snapshot->state = made->replay_->at(snapshot->decision);
  made->timings_.schedule_ms = clock.lap();

  made->generator_.emplace(made->traced(), made->graph(), *snapshot->program, codegen::Options{});
  snapshot->module = made->generator_->generate(snapshot->state);
  made->timings_.codegen_ms = clock.lap();
  made->last_ = std::move(snapshot);
  return std::shared_ptr<const Compilation>(std::move(made));
}

std::shared_ptr<const Snapshot> Compilation::at(std::size_t count) const {
  count = std::min(count, schedule_.decisions.size());
  if (count == last_->decision) return last_;
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const Snapshot>& known = known_[count];
  std::shared_ptr<const Snapshot> snapshot = known.lock();
  if (!snapshot) known = snapshot = make(count);
  keep(snapshot);
  return snapshot;
}

std::shared_ptr<const Snapshot> Compilation::make(std::size_t count) const {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->decision = count;
  if (count >= schedule_.lower_decisions) {
    snapshot->program = schedule_.program;
    snapshot->state = replay_->at(count);
    snapshot->module = generator_->generate(snapshot->state);
    return snapshot;
  }
  // Operators that are not lowered yet are torch calls.
  if (!lowering_) lowering_.emplace(*this);
  lower::Prefixes::Prefix prefix = lowering_->prefixes.at(count);
  snapshot->state = lowering_->states.of(prefix.steps, prefix.program.outputs);
  snapshot->module = lowering_->generator.generate(snapshot->state, prefix.program.outputs);
  snapshot->program = std::make_shared<const loop::Program>(std::move(prefix.program));
  return snapshot;
}

void Compilation::keep(const std::shared_ptr<const Snapshot>& snapshot) const {
  const auto at = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.snapshot == snapshot; });
  if (at != kept_.end()) return kept_.splice(kept_.begin(), kept_, at);
  kept_.push_front({snapshot, own_bytes(*snapshot, schedule_.program.get())});
  kept_total_ += kept_.front().bytes;
  while (kept_total_ > kept_bytes && kept_.size() > 2) {
    kept_total_ -= kept_.back().bytes;
    kept_.pop_back();
  }
}

}  // namespace pallascope::session
