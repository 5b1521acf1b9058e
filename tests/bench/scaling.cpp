// How the stages grow with the graph: time an operator should not. The counters are microseconds an operator in each
// stage; the argument is the number of operators.
#include <memory>

#include <benchmark/benchmark.h>

#include "core/session/compilation.h"
#include "tests/bench/graphs.h"

namespace pallascope::bench {
namespace {

void compile(benchmark::State& state, const std::shared_ptr<const trace::Program>& program) {
  session::Timings sum;
  double lines = 0;
  for (auto _ : state) {
    const auto made = session::Compilation::compile(program, 0).value();
    const session::Timings& t = made->timings();
    sum.functional_ms += t.functional_ms;
    sum.lower_ms += t.lower_ms;
    sum.schedule_ms += t.schedule_ms;
    sum.codegen_ms += t.codegen_ms;
    lines = static_cast<double>(made->last()->module.lines.size());
  }
  const double runs =
      static_cast<double>(state.iterations()) * static_cast<double>(program->graphs[0].nodes.size()) / 1000;
  state.counters["functional"] = sum.functional_ms / runs;
  state.counters["lower"] = sum.lower_ms / runs;
  state.counters["schedule"] = sum.schedule_ms / runs;
  state.counters["codegen"] = sum.codegen_ms / runs;
  state.counters["lines"] = lines;
}

// The second argument: 0 for tensors of 512 bytes, 1 for 32 KiB.
Size size(const benchmark::State& state) { return state.range(1) == 0 ? Size{8, 16} : Size{64, 128}; }

void BM_normalising_chain(benchmark::State& state) {
  compile(state, normalising_chain(state.range(0), size(state)));
}
void BM_pointwise_chain(benchmark::State& state) {
  compile(state, pointwise_chain(state.range(0), size(state)));
}
void BM_readers_of_one(benchmark::State& state) {
  compile(state, readers_of_one(state.range(0), size(state)));
}

// 10,000 operators only where they end within seconds: each fusion looks at its whole group again, so the
// counter `schedule` grows with the number of operators where the others do not.
BENCHMARK(BM_normalising_chain)->ArgsProduct({{100, 1000}, {0, 1}})->Unit(benchmark::kMillisecond);
BENCHMARK(BM_pointwise_chain)->ArgsProduct({{100, 1000}, {0, 1}})->Unit(benchmark::kMillisecond);
BENCHMARK(BM_readers_of_one)->ArgsProduct({{100, 1000}, {0, 1}})->Unit(benchmark::kMillisecond);
BENCHMARK(BM_normalising_chain)->Args({10000, 0})->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_pointwise_chain)->Args({10000, 0})->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_readers_of_one)->Args({10000, 0})->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pallascope::bench
