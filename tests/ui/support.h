// The window without a window: the shell in front of ImGui's null backend, driven by imgui_test_engine.
#pragma once

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <imgui.h>
#include <imgui_impl_null.h>
#include <imgui_te_context.h>
#include <imgui_te_engine.h>
#include <imgui_te_exporters.h>
#include <implot.h>

#include "app/views/shell.h"
#include "app/workspace/workspace.h"
#include "core/report/format.h"
#include "tests/unit/support/scripted_host.h"

namespace pallascope::testing {

inline const std::string gpt2_block = PALLASCOPE_ASSETS_DIR "/examples/gpt2_block.pt2";

struct WindowSetup {
  float width = 1600, height = 1000;
  bool dark = true;
  bool start_at_refusal = false;
  std::string open = {};  ///< a file to open before the first test runs
  std::filesystem::path state_folder = {};  ///< as Workspace::Options has it
};

/// One window with a scripted host. Not a fixture's base: a test makes as many as it likes, one after the other.
class Window {
 public:
  explicit Window(WindowSetup setup = {}) : setup_(std::move(setup)), host_(std::make_shared<ScriptedHost>()) {
    IMGUI_CHECKVERSION();
    ImGui::CreateContext();
    ImPlot::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.ConfigFlags |= ImGuiConfigFlags_DockingEnable;
    ImGui_ImplNull_Init();
    engine_ = ImGuiTestEngine_CreateContext();
    ImGuiTestEngineIO& test_io = ImGuiTestEngine_GetIO(engine_);
    test_io.ConfigRunSpeed = ImGuiTestRunSpeed_Fast;
    test_io.ConfigNoThrottle = true;
    test_io.ConfigLogToTTY = true;
    test_io.ConfigVerboseLevel = ImGuiTestVerboseLevel_Error;
    test_io.ConfigVerboseLevelOnError = ImGuiTestVerboseLevel_Info;
    ImGuiTestEngine_Start(engine_, ImGui::GetCurrentContext());
    workspace = std::make_unique<workspace::Workspace>(workspace::Workspace::Options{host_, {}, setup_.state_folder});
    shell = std::make_unique<views::Shell>(*workspace,
                                           views::ShellOptions{setup_.dark, 1, 1, setup_.start_at_refusal});
    frame();
    if (!setup_.open.empty()) open(setup_.open);
  }
  ~Window() {
    host_->release();
    ImGuiTestEngine_Stop(engine_);
    shell.reset();
    workspace.reset();
    ImPlot::DestroyContext();
    ImGui_ImplNull_Shutdown();
    ImGui::DestroyContext();
    ImGuiTestEngine_DestroyContext(engine_);  // after the context that it watches
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// One frame, drawn into nothing.
  void frame() {
    ImGui_ImplNull_NewFrame();
    ImGui::GetIO().DisplaySize = ImVec2(setup_.width, setup_.height);
    ImGui::GetIO().DeltaTime = 1.0F / 60;
    ImGui::NewFrame();
    shell->frame();
    ImGui::Render();
    ImGui_ImplNullRender_RenderDrawData(ImGui::GetDrawData());
    ImGuiTestEngine_PostSwap(engine_);
  }
  /// Frames until the workers have nothing to do and the panels have asked for nothing more. Not inside a test body.
  void settle() {
    for (int k = 0; k < 4; ++k) {
      workspace->settle();
      frame();
      frame();
    }
  }
  void open(const std::string& path) {
    workspace->click("open " + path);
    settle();
    ASSERT_NE(workspace->scene(), nullptr) << workspace->problem();
  }

  /// Runs a body of imgui_test_engine to its end; a check in it that fails fails the GoogleTest test.
  void run(const std::function<void(ImGuiTestContext*)>& body) {
    ImGuiTest* test = ImGuiTestEngine_RegisterTest(engine_, "window", "test", __FILE__, __LINE__);
    test->TestFunc = [&body](ImGuiTestContext* context) { body(context); };
    ImGuiTestEngine_QueueTest(engine_, test);
    int frames = 0;
    while (!ImGuiTestEngine_IsTestQueueEmpty(engine_) && ++frames < 20'000) frame();
    EXPECT_LT(frames, 20'000) << "the test never ended";
    EXPECT_EQ(static_cast<int>(test->Output.Status), static_cast<int>(ImGuiTestStatus_Success));
    ImGuiTestEngine_UnregisterTest(engine_, test);
  }
  /// Inside a body: lets frames pass until `ready`, at most ten seconds. False if it never was.
  static bool wait(ImGuiTestContext* context, const std::function<bool()>& ready) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!ready()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      context->Yield();
    }
    context->Yield(2);
    return true;
  }
  /// Inside a body: until nothing is made or waited for and the panels show the selection.
  bool quiet(ImGuiTestContext* context) {
    const auto shown = [this] {
      return !workspace->busy() && !workspace->loading() && workspace->scene() != nullptr &&
             workspace->wanted_position() == workspace->scene()->position && workspace->detail() != nullptr &&
             workspace->detail()->scene == workspace->scene()->number &&
             workspace->detail()->selection == shell->state().selection;
    };
    // A detail that was asked for before may still be on its way, and would be shown for a frame in place of the one
    // that is there: the workers have to be idle too.
    for (int k = 0; k < 100; ++k) {
      if (!wait(context, shown)) return false;
      workspace->settle();
      context->Yield(2);
      if (shown()) return true;
    }
    return false;
  }
  /// All of the transcript, an entry a line.
  [[nodiscard]] std::string transcript() const {
    std::string text;
    for (const auto& entry : workspace->transcript()) text += entry.text + "\n";
    return text;
  }
  [[nodiscard]] bool said(const std::string& part) const { return transcript().find(part) != std::string::npos; }
  [[nodiscard]] ScriptedHost& host() { return *host_; }
  [[nodiscard]] std::size_t position() const { return workspace->wanted_position(); }

  std::unique_ptr<workspace::Workspace> workspace;
  std::unique_ptr<views::Shell> shell;

 private:
  WindowSetup setup_;
  std::shared_ptr<ScriptedHost> host_;
  ImGuiTestEngine* engine_ = nullptr;
};

}  // namespace pallascope::testing
