// Room: session. The ordered pipeline and its products; snapshots for stepping.
// Takes: a trace::Program and the number of a graph.
// Gives: Compilation (immutable, shared) and Snapshot (the program at one decision) to the app, the package, reports.
// May use: every room of core before it.
// Never: runs Python, draws, prints.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/codegen/module.h"
#include "core/functional/functionalize.h"
#include "core/loop/program.h"
#include "core/schedule/schedule.h"
#include "core/trace/graph.h"

namespace pallascope::session {

struct Options {
  bool fusion = true;
  std::string target = "interpret";
};

/// Milliseconds of each stage, reading excluded.
struct Timings {
  double functional_ms = 0, lower_ms = 0, schedule_ms = 0, codegen_ms = 0;
};

/// The program after the first `decision` decisions.
struct Snapshot {
  std::size_t decision = 0;  ///< how many decisions hold: 0 .. Compilation::decisions().size()
  std::shared_ptr<const loop::Program> program;
  schedule::State state;
  codegen::Module module;
};

/// One graph, taken through every stage. Immutable but for the cache of snapshots, which is locked: share it freely
/// between threads.
class Compilation {
 public:
  static Result<std::shared_ptr<const Compilation>> compile(std::shared_ptr<const trace::Program> program,
                                                            std::size_t graph, Options options = {});

  [[nodiscard]] const trace::Program& program() const { return *program_; }
  [[nodiscard]] std::size_t graph_index() const { return graph_; }
  /// The graph as traced; decisions and nests name nodes of `functional()`.
  [[nodiscard]] const trace::Graph& traced() const { return program_->graphs.at(graph_); }
  [[nodiscard]] const trace::Graph& graph() const { return functional_.graph; }
  [[nodiscard]] const functional::Functional& functional() const { return functional_; }
  [[nodiscard]] const std::vector<schedule::Decision>& decisions() const { return schedule_.decisions; }
  [[nodiscard]] const schedule::Schedule& schedule() const { return schedule_; }
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] const Timings& timings() const { return timings_; }

  /// The program after the first `count` decisions; cached. `count` over the log's length means all of them.
  [[nodiscard]] std::shared_ptr<const Snapshot> at(std::size_t count) const;
  [[nodiscard]] std::shared_ptr<const Snapshot> last() const { return at(decisions().size()); }

 private:
  Compilation() = default;
  std::shared_ptr<const trace::Program> program_;
  std::size_t graph_ = 0;
  Options options_;
  functional::Functional functional_;
  schedule::Schedule schedule_;
  Timings timings_;
  mutable std::mutex mutex_;
  mutable std::map<std::size_t, std::shared_ptr<const Snapshot>> snapshots_;
};

}  // namespace pallascope::session
