// Room: session. The ordered pipeline and its products; snapshots for stepping.
// Takes: a trace::Program and the number of a graph.
// Gives: Compilation (immutable, shared) and Snapshot (the program at one decision) to the app, the package, reports.
// May use: every room of core before it.
// Never: runs Python, draws, prints.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/codegen/module.h"
#include "core/functional/functionalize.h"
#include "core/lower/prefixes.h"
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

/// One graph, taken through every stage. Immutable but for what `at` keeps, which is locked.
///
/// Threads. Any number may read a Compilation, and any number may call `at`, which makes one snapshot at a time. A
/// snapshot is immutable: once `at` gave it, any number may read its program, state and module. Not so the index
/// analysis of its program (`loop::access_of` on an access not asked before, anything non-const of the
/// `index::Context`): snapshots of one program share it, and `at` asks it too. Who analyses does so on the thread
/// that calls `at`, or while nobody calls it.
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

  /// The program after the first `count` decisions. `count` over the log's length means all of them.
  ///
  /// A snapshot that is made near another shares with it what the decisions between leave alone. Kept are the last
  /// decision's, those that someone still holds, and the latest of `kept_bytes`; the rest are made again when asked.
  [[nodiscard]] std::shared_ptr<const Snapshot> at(std::size_t count) const;
  [[nodiscard]] std::shared_ptr<const Snapshot> last() const { return at(decisions().size()); }

  /// How many bytes of snapshots are kept for being asked again: at 5,000 operators about twenty
  /// neighbours or three prefixes of the lowering, of most graphs all.
  static constexpr std::size_t kept_bytes = std::size_t{64} << 20;

 private:
  Compilation() = default;
  [[nodiscard]] std::shared_ptr<const Snapshot> make(std::size_t count) const;
  void keep(const std::shared_ptr<const Snapshot>& snapshot) const;

  std::shared_ptr<const trace::Program> program_;
  std::size_t graph_ = 0;
  Options options_;
  functional::Functional functional_;
  schedule::Schedule schedule_;
  Timings timings_;
  std::shared_ptr<const Snapshot> last_;
  // Under the lock.
  mutable std::mutex mutex_;
  mutable std::optional<schedule::Replay> replay_;
  mutable std::optional<codegen::Generator> generator_;
  /// What makes the snapshots in the lowering, once one is asked for.
  struct Lowering {
    lower::Prefixes prefixes;
    schedule::Unfused states;
    codegen::Generator generator;
    explicit Lowering(const Compilation& of)
        : prefixes(of.graph(), *of.schedule_.program), states(prefixes.program()),
          generator(of.traced(), of.graph(), prefixes.program(), codegen::Options{}) {}
  };
  mutable std::optional<Lowering> lowering_;
  mutable std::map<std::size_t, std::weak_ptr<const Snapshot>> known_;
  struct Kept {
    std::shared_ptr<const Snapshot> snapshot;
    std::size_t bytes = 0;
  };
  mutable std::list<Kept> kept_;  ///< latest first
  mutable std::size_t kept_total_ = 0;
};

}  // namespace pallascope::session
