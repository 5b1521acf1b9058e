// One press of → (or ←) in a window: the program at the next decision, its columns, what changed in them and what is
// linked to the decision, nothing of it prepared ahead. The goal is 16 ms of CPU on the worker at 5,000 operators.
//
// A benchmark walks over decisions spread over one part of the log. The counters are milliseconds: the median and the
// greatest of each stage and of their sum.
//
// Benchmarks are linked with the core alone (cmake/tests.cmake), so the model's files are compiled in here.
#include <algorithm>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "app/model/selection.h"
#include "app/model/source_columns.h"
#include "core/session/compilation.h"
#include "tests/bench/graphs.h"

namespace pallascope::bench {
namespace {

double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

enum Graph : std::int64_t { blocks, chain };
enum Part : std::int64_t { lowering, inlining, fusing };
enum Direction : std::int64_t { forward, backward };

std::shared_ptr<const session::Compilation> compile(std::int64_t graph) {
  constexpr std::int64_t operators = 5000;
  const auto program = graph == blocks ? mixed_blocks(operators) : pointwise_chain(operators, {8, 16});
  return session::Compilation::compile(program, 0).value();
}

/// Decisions first .. end of one part of the log.
std::pair<std::size_t, std::size_t> range(const session::Compilation& compilation, std::int64_t part) {
  const auto& decisions = compilation.decisions();
  const std::size_t lower = compilation.schedule().lower_decisions;
  std::size_t fuse = lower;
  while (fuse < decisions.size() && decisions[fuse].kind != schedule::DecisionKind::fuse) ++fuse;
  if (part == lowering) return {0, lower};
  return part == inlining ? std::pair(lower, fuse) : std::pair(fuse, decisions.size());
}

struct Stages {
  std::map<std::string, std::vector<double>> ms;
  void add(const std::string& name, double value) { ms[name].push_back(value); }
  void report(benchmark::State& state, const std::string& prefix) {
    for (auto& [name, values] : ms) {
      std::sort(values.begin(), values.end());
      state.counters[prefix + name + "_p50"] = values[values.size() / 2];
      state.counters[prefix + name + "_max"] = values.back();
    }
  }
};

void BM_step(benchmark::State& state) {
  const std::int64_t graph = state.range(0), part = state.range(1);
  const bool ahead = state.range(2) == forward;
  // A compilation of its own: no snapshot is there but the last.
  const auto compilation = compile(graph);
  const auto [first, end] = range(*compilation, part);
  if (first == end) {
    state.SkipWithError("no such decision");
    return;
  }
  // Steps in places spread over the part. The first after a jump is counted apart: it also pays for what the jump freed.
  constexpr std::size_t places = 10, steps = 6;
  Stages first_step, later_steps;
  double kernels = 0, lines = 0;
  for (auto _ : state) {
    for (std::size_t p = 0; p < places; ++p) {
      // The window stands at `from`, and then takes a few steps.
      const std::size_t low = first + (end - steps - first) * p / places;
      auto before = compilation->at(ahead ? low : low + steps);
      model::SourceColumns old_columns = model::source_columns(*compilation, *before);
      for (std::size_t s = 0; s < steps; ++s) {
        const std::size_t to = ahead ? low + s + 1 : low + steps - s - 1;
        const double t0 = cpu_ms();
        auto after = compilation->at(to);
        const double t1 = cpu_ms();
        model::SourceColumns columns = model::source_columns(*compilation, *after, &old_columns);
        const double t2 = cpu_ms();
        model::mark_changes(columns, old_columns);
        const double t3 = cpu_ms();
        const schedule::DecisionId decision(std::min(before->decision, to));
        const model::LinkedColumns linked = model::linked(*compilation, *after, columns, decision);
        const double t4 = cpu_ms();
        benchmark::DoNotOptimize(linked);
        Stages& stages = s == 0 ? first_step : later_steps;
        stages.add("at", t1 - t0);
        stages.add("columns", t2 - t1);
        stages.add("changes", t3 - t2);
        stages.add("linked", t4 - t3);
        stages.add("sum", t4 - t0);
        kernels = std::max(kernels, static_cast<double>(after->state.kernels.size()));
        lines = std::max(lines, static_cast<double>(after->module.lines.size()));
        before = std::move(after);
        old_columns = std::move(columns);
      }
    }
  }
  first_step.report(state, "1st_");
  later_steps.report(state, "");
  state.counters["kernels"] = kernels;
  state.counters["lines"] = lines;
}
BENCHMARK(BM_step)
    ->ArgNames({"graph", "part", "back"})
    ->ArgsProduct({{blocks}, {lowering, inlining, fusing}, {forward, backward}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_step)
    ->ArgNames({"graph", "part", "back"})
    ->ArgsProduct({{chain}, {lowering, fusing}, {forward, backward}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pallascope::bench
