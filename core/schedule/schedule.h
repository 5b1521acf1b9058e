// Room: schedule. Legality, profit, fusion: from a loop::Program to kernels, with the log of every decision.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/loop/program.h"
#include "core/schedule/decision.h"
#include "core/target/target.h"

namespace pallascope::schedule {

struct KernelTag;
using KernelId = Id<KernelTag>;

/// A kernel: nests in execution order, under one grid.
struct Kernel {
  std::vector<loop::NestId> nests;
  std::vector<loop::BufferId> inputs;    ///< read, and made outside
  std::vector<loop::BufferId> outputs;   ///< made here, and read outside or returned
  std::vector<loop::BufferId> internal;  ///< made and used only here: never reach memory
  std::int64_t working_set = 0;          ///< bytes, whole arrays
  std::int64_t bytes_moved = 0;          ///< distinct bytes of its inputs and outputs

};

/// A kernel or a call, in execution order.
struct ScheduledStep {
  KernelId kernel;      ///< valid for a kernel
  loop::StepId call;    ///< valid for a library or torch call
};

/// The program at one decision: which nests live, and how they are grouped.
struct State {
  std::vector<ScheduledStep> steps;
  Store<KernelId, Kernel> kernels;
  std::int64_t bytes_moved = 0;  ///< kernels and library calls
};

/// What an accepted decision changed, so that any prefix of the log can be played back.
struct Effect {
  std::vector<std::pair<loop::StepId, loop::NestId>> replaced;  ///< inlining: the step now runs this nest
  loop::StepId removed;                                         ///< inlining: the producer's step
  loop::StepId merged_left, merged_right;                       ///< fusion: these steps are one kernel
};

/// The program (with the nests that inlining added) and the log.
struct Schedule {
  std::shared_ptr<loop::Program> program;
  std::vector<Decision> decisions;
  std::vector<Effect> effects;      ///< one a decision
  std::size_t lower_decisions = 0;  ///< how many of them are of kind `lower`; they come first
};

struct Options {
  bool fusion = true;
  target::Model model;  ///< whose limits are used
};

/// Logs the lowering, then inlines, then fuses: candidates from shared buffers through a priority queue, merged one
/// at a time, so that every prefix of the log is a correct program (DESIGN.md, "The decision log").
Schedule schedule(std::shared_ptr<loop::Program> program, const trace::Graph& graph, const Options& options);

/// Replays the accepted decisions of a log. What no decision changes (the live steps, what each nest and call reads and
/// writes) is looked up once, so that a state costs a walk over the steps, about 0.2 us each. Holds references to the
/// schedule, which must not change. `at` changes nothing: it may run in several threads.
class Replay {
 public:
  explicit Replay(const Schedule& schedule);
  ~Replay();
  Replay(Replay&&) noexcept;
  Replay& operator=(Replay&&) noexcept;

  /// The state after the first `count` decisions (count >= lower_decisions; for earlier prefixes see
  /// Unfused).
  [[nodiscard]] State at(std::size_t count) const;

 private:
  struct Facts;
  std::unique_ptr<const Facts> facts_;
};

/// The states before any decision but the lowering, of a program that holds more steps than live at once: the prefixes
/// of the lowering. What each nest and call reads and writes is looked up once. Holds a reference to the program, which
/// must not change.
class Unfused {
 public:
  explicit Unfused(const loop::Program& program);
  ~Unfused();
  Unfused(Unfused&&) noexcept;
  Unfused& operator=(Unfused&&) noexcept;

  /// The state in which `steps` live, as far as something reads what they make; they run in this order where what they
  /// read allows it.
  [[nodiscard]] State of(const std::vector<loop::StepId>& steps, const std::vector<loop::OutputValue>& outputs) const;

 private:
  struct Facts;
  std::unique_ptr<const Facts> facts_;
};

/// One state; who wants several keeps a Replay.
State state_at(const Schedule& schedule, std::size_t count);

}  // namespace pallascope::schedule
