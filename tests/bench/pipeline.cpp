// Reading, lowering, scheduling and generating the bundled transformer block: together they must stay under 10 ms.
#include <filesystem>
#include <memory>

#include <benchmark/benchmark.h>

#include "core/codegen/module.h"
#include "core/functional/functionalize.h"
#include "core/lower/lower.h"
#include "core/schedule/schedule.h"
#include "core/session/compilation.h"
#include "core/trace/read.h"

namespace pallascope::bench {
namespace {

const std::filesystem::path& path() {
  static const std::filesystem::path found =
      std::filesystem::path(PALLASCOPE_ASSETS_DIR) / "examples" / "gpt2_block.pt2";
  return found;
}
std::shared_ptr<const trace::Program> gpt2() {
  static const auto program = std::make_shared<const trace::Program>(trace::open(path()).value());
  return program;
}
const functional::Functional& functional_gpt2() {
  static const functional::Functional made = functional::functionalize(gpt2()->graphs[0]).value();
  return made;
}
std::shared_ptr<loop::Program> lowered() {
  return std::make_shared<loop::Program>(lower::lower(functional_gpt2().graph).value());
}

void BM_gpt2_read(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(trace::open(path()).value());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(std::filesystem::file_size(path())));
}
BENCHMARK(BM_gpt2_read)->Unit(benchmark::kMillisecond);

void BM_gpt2_read_json(benchmark::State& state) {
  const std::string text = trace::write_json(*gpt2());
  for (auto _ : state) benchmark::DoNotOptimize(trace::read_json(text, "bench").value());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(BM_gpt2_read_json)->Unit(benchmark::kMillisecond);

void BM_gpt2_functional(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(functional::functionalize(gpt2()->graphs[0]).value());
}
BENCHMARK(BM_gpt2_functional)->Unit(benchmark::kMillisecond);

void BM_gpt2_lower(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(lowered());
}
BENCHMARK(BM_gpt2_lower)->Unit(benchmark::kMillisecond);

void BM_gpt2_schedule(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();  // scheduling adds nests to the program: each run wants its own
    auto program = lowered();
    state.ResumeTiming();
    const schedule::Schedule made = schedule::schedule(program, functional_gpt2().graph, {});
    benchmark::DoNotOptimize(schedule::state_at(made, made.decisions.size()));
  }
}
BENCHMARK(BM_gpt2_schedule)->Unit(benchmark::kMillisecond);

void BM_gpt2_codegen(benchmark::State& state) {
  // The index analyses are there already, as after scheduling in a session.
  const schedule::Schedule made = schedule::schedule(lowered(), functional_gpt2().graph, {});
  const schedule::State last = schedule::state_at(made, made.decisions.size());
  for (auto _ : state)
    benchmark::DoNotOptimize(
        codegen::generate(gpt2()->graphs[0], functional_gpt2().graph, *made.program, last, {}));
}
BENCHMARK(BM_gpt2_codegen)->Unit(benchmark::kMillisecond);

void BM_gpt2_together(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(session::Compilation::compile(gpt2(), 0).value());
}
BENCHMARK(BM_gpt2_together)->Unit(benchmark::kMillisecond);

/// Every prefix of the log once: what stepping from the first decision to the last costs.
void BM_gpt2_every_step(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    const auto compilation = session::Compilation::compile(gpt2(), 0).value();
    state.ResumeTiming();
    for (std::size_t k = 0; k < compilation->decisions().size(); ++k)
      benchmark::DoNotOptimize(compilation->at(k));
    state.counters["steps"] = static_cast<double>(compilation->decisions().size());
  }
}
BENCHMARK(BM_gpt2_every_step)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pallascope::bench
