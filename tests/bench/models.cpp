// What a compile costs on whole graphs: reading apart (MB/s), then functional form, lowering, scheduling and code
// generation together, per 100 nodes of the graph as lowered (counter ms_per_100_nodes; the bound is 1).
//
// The graphs are the traces in the folder that PALLASCOPE_TRACES names (bundles, .pt2 or .json files; see models.py,
// which makes such a folder of any models), else the bundled example.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <time.h>

#include "core/session/compilation.h"
#include "core/trace/read.h"

namespace pallascope::bench {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> traces() {
  const char* folder = std::getenv("PALLASCOPE_TRACES");
  if (folder == nullptr || *folder == '\0') return {fs::path(PALLASCOPE_ASSETS_DIR) / "examples" / "gpt2_block.pt2"};
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) found.push_back(entry.path());
  if (error) std::fprintf(stderr, "PALLASCOPE_TRACES: %s: %s\n", folder, error.message().c_str());
  std::sort(found.begin(), found.end());
  return found;
}

/// Bytes of the text that the reader parses; a bundle's inputs and a .pt2's weights are not read.
std::int64_t text_bytes(const fs::path& path) {
  const fs::path program = fs::is_directory(path) ? path / "program.json" : path;
  return static_cast<std::int64_t>(fs::file_size(program));
}

void read(benchmark::State& state, const fs::path& path) {
  for (auto _ : state) benchmark::DoNotOptimize(trace::open(path).value());
  state.SetBytesProcessed(state.iterations() * text_bytes(path));
}

/// CPU time of this thread in milliseconds: other programs of the machine do not count.
double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

void compile(benchmark::State& state, const std::shared_ptr<const trace::Program>& program, std::size_t graph) {
  std::size_t nodes = 0;
  double spent = 0;
  for (auto _ : state) {
    const double start = cpu_ms();
    auto made = session::Compilation::compile(program, graph);
    spent += cpu_ms() - start;
    if (!made) {
      state.SkipWithError(to_string(made.error()).c_str());
      return;
    }
    nodes = (*made)->graph().nodes.size();
  }
  state.counters["nodes"] = static_cast<double>(nodes);
  state.counters["ms_per_100_nodes"] =
      spent / static_cast<double>(state.iterations()) * 100 / static_cast<double>(std::max<std::size_t>(1, nodes));
}

[[maybe_unused]] const bool registered = [] {
  for (const fs::path& path : traces()) {
    auto opened = trace::open(path);
    const std::string name = path.filename().string();
    if (!opened) {
      std::fprintf(stderr, "%s\n", to_string(opened.error()).c_str());
      continue;
    }
    auto program = std::make_shared<const trace::Program>(std::move(*opened));
    benchmark::RegisterBenchmark(("read/" + name).c_str(), [path](benchmark::State& s) { read(s, path); })
        ->Unit(benchmark::kMillisecond);
    for (std::size_t k = 0; k < program->graphs.size(); ++k)
      benchmark::RegisterBenchmark(("compile/" + name + "/" + program->graphs[k].name).c_str(),
                                   [program, k](benchmark::State& s) { compile(s, program, k); })
          ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace pallascope::bench
