// The window's cost: processor time of a frame, and of a step with its source difference, with 5,000 operators open.
// No window and no GL: ImGui's null backend, so that a software renderer is not what is measured.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <semaphore>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <imgui.h>
#include <imgui_impl_null.h>
#include <implot.h>
#include <unistd.h>

#include "app/views/shell.h"
#include "app/workspace/workspace.h"

namespace pallascope::bench {
namespace {

double milliseconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

/// The made-up graph of 5,000 operators, written once a process.
const std::string& synthetic() {
  static const std::string path = [] {
    const auto file = std::filesystem::temp_directory_path() / ("pallascope-bench-" + std::to_string(getpid()) + ".json");
    const std::string command = std::string(PALLASCOPE_HOST_PYTHON) + " " PALLASCOPE_SOURCE_DIR "/tests/ui/synthetic.py " +
                                file.string() + " 5000 > /dev/null";
    if (std::system(command.c_str()) != 0) std::abort();
    return file.string();
  }();
  return path;
}

class Window {
 public:
  Window() {
    ImGui::CreateContext();
    ImPlot::CreateContext();
    ImGui::GetIO().IniFilename = nullptr;
    ImGui::GetIO().ConfigFlags |= ImGuiConfigFlags_DockingEnable;
    ImGui_ImplNull_Init();
    shell = std::make_unique<views::Shell>(workspace);
  }
  ~Window() {
    shell.reset();
    ImPlot::DestroyContext();
    ImGui_ImplNull_Shutdown();
    ImGui::DestroyContext();
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// Milliseconds of this thread.
  double frame() {
    ImGui_ImplNull_NewFrame();
    ImGui::GetIO().DisplaySize = ImVec2(1600, 1000);
    ImGui::GetIO().DeltaTime = 1.0F / 60;
    const double before = milliseconds(CLOCK_THREAD_CPUTIME_ID);
    ImGui::NewFrame();
    shell->frame();
    ImGui::Render();
    const double after = milliseconds(CLOCK_THREAD_CPUTIME_ID);
    ImGui_ImplNullRender_RenderDrawData(ImGui::GetDrawData());
    return after - before;
  }
  void settle() {
    for (int k = 0; k < 6; ++k) {
      workspace.settle();
      frame();
      frame();
    }
  }
  void open(const std::string& path) {
    frame();
    workspace.click("open " + path);
    settle();
    if (!workspace.scene()) std::abort();
  }

  std::counting_semaphore<> woken{0};
  workspace::Workspace workspace{{nullptr, [this] { woken.release(); }}};
  std::unique_ptr<views::Shell> shell;
};

void report(benchmark::State& state, std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  state.counters["p50_ms"] = times[times.size() / 2];
  state.counters["p99_ms"] = times[times.size() * 99 / 100];
  state.counters["max_ms"] = times.back();
}

void frames(benchmark::State& state, Window& window) {
  window.settle();
  std::vector<double> times;
  for (auto _ : state) {
    times.push_back(window.frame());
    state.SetIterationTime(times.back() / 1e3);
  }
  report(state, times);
  state.counters["vertices"] = ImGui::GetDrawData()->TotalVtxCount;
}

void BM_FrameGroupsClosed(benchmark::State& state) {
  Window window;
  window.open(synthetic());
  frames(state, window);
}
BENCHMARK(BM_FrameGroupsClosed)->UseManualTime()->Unit(benchmark::kMillisecond);

void BM_FrameAllOpenInView(benchmark::State& state) {
  Window window;
  window.open(synthetic());
  window.shell->graph_panel().open_all(true);
  window.settle();
  window.shell->state().fit = true;
  frames(state, window);
  state.counters["nodes_shown"] = static_cast<double>(window.workspace.graph()->graph.visible_nodes);
}
BENCHMARK(BM_FrameAllOpenInView)->UseManualTime()->Unit(benchmark::kMillisecond);

void BM_FrameAllOpenNearby(benchmark::State& state) {
  Window window;
  window.open(synthetic());
  window.shell->graph_panel().open_all(true);
  window.settle();
  window.shell->state().centre = true;
  frames(state, window);
}
BENCHMARK(BM_FrameAllOpenNearby)->UseManualTime()->Unit(benchmark::kMillisecond);

/// From the key to the frame that shows the next decision, its source difference and what is linked to it. Processor
/// time of all threads: the workers' is most of it.
void BM_Step(benchmark::State& state) {
  Window window;
  window.open(synthetic());
  window.settle();
  const std::size_t total = window.workspace.scene()->total();
  std::vector<double> times, frame_times;
  std::size_t position = total;
  for (auto _ : state) {
    position = position > 100 ? position - 1 : total;
    const double before = milliseconds(CLOCK_PROCESS_CPUTIME_ID);
    window.workspace.move_to(position);
    while (window.workspace.scene()->position != position) {
      window.woken.acquire();  // asleep meanwhile: polling would be counted too
      window.workspace.update();
    }
    times.push_back(milliseconds(CLOCK_PROCESS_CPUTIME_ID) - before);
    frame_times.push_back(window.frame());  // asks for details and for the graph's new layout
    state.SetIterationTime(times.back() / 1e3);
    window.workspace.settle();
  }
  report(state, times);
  std::sort(frame_times.begin(), frame_times.end());
  state.counters["frame_after_p99_ms"] = frame_times[frame_times.size() * 99 / 100];
}
BENCHMARK(BM_Step)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(200);

}  // namespace
}  // namespace pallascope::bench
