#include "app/window/window.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <filesystem>
#include <utility>

#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>
#include <implot.h>
#include <stb_image_write.h>

#include "app/repl/terminal.h"
#include "app/views/shell.h"
#include "core/report/summary.h"

namespace pallascope::window {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Milliseconds of processor time of the calling thread.
double thread_milliseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

bool set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

Diagnostic no_window(std::string message, std::string remedy) {
  return {DiagnosticKind::unsupported, std::move(message), "", std::move(remedy)};
}

std::string glfw_error() {
  const char* text = nullptr;
  glfwGetError(&text);
  return text == nullptr ? "no reason given" : text;
}

/// GLFW for as long as it lives.
class Glfw {
 public:
  Glfw() : ready_(glfwInit() == GLFW_TRUE) {}
  ~Glfw() {
    if (ready_) glfwTerminate();
  }
  Glfw(const Glfw&) = delete;
  Glfw& operator=(const Glfw&) = delete;
  [[nodiscard]] bool ready() const { return ready_; }

 private:
  bool ready_;
};

/// ImGui, ImPlot and their backends on a window.
class Gui {
 public:
  Gui(GLFWwindow* window, std::string layout_file) : layout_file_(std::move(layout_file)) {
    IMGUI_CHECKVERSION();
    ImGui::CreateContext();
    ImPlot::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.ConfigFlags |= ImGuiConfigFlags_DockingEnable;
    io.ConfigWindowsMoveFromTitleBarOnly = true;
    io.ConfigErrorRecoveryEnableAssert = false;  // a slip of a panel is recovered from and logged, not fatal
    io.IniFilename = layout_file_.empty() ? nullptr : layout_file_.c_str();
    ImGui_ImplGlfw_InitForOpenGL(window, true);
    ImGui_ImplOpenGL3_Init("#version 330");
  }
  ~Gui() {
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
    ImPlot::DestroyContext();
    ImGui::DestroyContext();
  }
  Gui(const Gui&) = delete;
  Gui& operator=(const Gui&) = delete;

 private:
  std::string layout_file_;
};

bool write_picture(GLFWwindow* window, const std::string& path) {
  int width = 0, height = 0;
  glfwGetFramebufferSize(window, &width, &height);
  std::vector<unsigned char> pixels(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, width, height, GL_RGB, GL_UNSIGNED_BYTE, pixels.data());
  stbi_flip_vertically_on_write(1);
  return stbi_write_png(path.c_str(), width, height, 3, pixels.data(), width * 3) != 0;
}

std::string window_title(const workspace::Workspace& workspace) {
  if (!workspace.scene()) return "Pallascope";
  return report::program_title(*workspace.scene()->program) + " – Pallascope";
}

struct FrameTimes {
  std::vector<double> cpu;  ///< milliseconds of this thread between NewFrame and Render, drawing excluded
  double first = 0;         ///< milliseconds from the start to the first frame on the screen

  void print() const {
    if (cpu.empty()) return;
    std::vector<double> sorted = cpu;
    std::sort(sorted.begin(), sorted.end());
    std::printf("first frame %.1f ms; %zu frames, UI CPU median %.2f ms, p99 %.2f ms, max %.2f ms\n", first,
                sorted.size(), sorted[sorted.size() / 2], sorted[sorted.size() * 99 / 100], sorted.back());
  }
};

}  // namespace

std::string no_display_reason() {
  if (set("DISPLAY") || set("WAYLAND_DISPLAY")) return "";
  return "neither DISPLAY nor WAYLAND_DISPLAY is set";
}

Result<int> run_window(WindowOptions options) {
  const Clock::time_point start = Clock::now();
  if (const std::string reason = no_display_reason(); !reason.empty()) {
    return no_window("there is no display for a window: " + reason,
                     "over ssh use `ssh -X`, without a screen `xvfb-run pallascope …`; `--repl` gives the prompt");
  }
  const Glfw glfw;
  if (!glfw.ready()) {
    return no_window("the display cannot be used: " + glfw_error(),
                     "check that DISPLAY names a running X server that lets you in; `--repl` gives the prompt");
  }
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  if (!options.picture.empty()) glfwWindowHint(GLFW_DECORATED, GLFW_FALSE);
  GLFWwindow* window = glfwCreateWindow(options.width, options.height, "Pallascope", nullptr, nullptr);
  if (window == nullptr) {
    return no_window("the display has no OpenGL 3.3: " + glfw_error(),
                     "install a driver (Mesa's software renderer is Debian's libgl1-mesa-dri); `--repl` gives the prompt");
  }
  glfwMakeContextCurrent(window);
  glfwSwapInterval(options.frames > 0 ? 0 : 1);

  int status = 0;
  {
    // A picture is of the window as it is out of the box.
    std::filesystem::path state_folder;
    std::string layout_file;
    workspace::Look look;
    if (const auto history = repl::history_path(); options.picture.empty() && options.frames == 0 && !history.empty()) {
      state_folder = history.parent_path();
      std::error_code error;
      std::filesystem::create_directories(state_folder, error);
      if (!error) layout_file = (state_folder / "window.ini").string();
      look = workspace::load_look(state_folder / "look.json");
    }
    const Gui gui(window, layout_file);
    workspace::Workspace workspace({options.host, [] { glfwPostEmptyEvent(); }, state_folder});
    float scale_x = 1, scale_y = 1;
    glfwGetWindowContentScale(window, &scale_x, &scale_y);
    views::Shell shell(workspace, {.dark = options.dark.value_or(look.dark),
                                   .display_scale = scale_x,
                                   .scale = options.scale.value_or(look.scale),
                                   .start_at_refusal = options.start_at_refusal});
    glfwSetWindowUserPointer(window, &shell);
    glfwSetDropCallback(window, [](GLFWwindow* target, int count, const char** paths) {
      static_cast<views::Shell*>(glfwGetWindowUserPointer(target))->drop({paths, paths + count});
    });
    glfwSetWindowContentScaleCallback(window, [](GLFWwindow* target, float x, float /*y*/) {
      static_cast<views::Shell*>(glfwGetWindowUserPointer(target))->set_display_scale(x);
    });
    std::deque<std::string> commands(options.commands.begin(), options.commands.end());
    // Python is started once the first frame is there: it would take the processor from it.
    bool host_started = false;
    std::string title;
    FrameTimes times;
    int quiet = 0;  // frames in a row without anything new, for a picture
    for (int frame = 0; glfwWindowShouldClose(window) == 0; ++frame) {
      if (options.picture.empty() && options.frames == 0) {
        // After an event ImGui needs a few frames to come to rest; then the next event is waited for.
        if (quiet < 3) {
          glfwPollEvents();
        } else {
          glfwWaitEventsTimeout(shell.animating() || ImGui::GetIO().WantTextInput ? 0.05 : 0.5);
          quiet = 0;
        }
      } else {
        glfwPollEvents();
      }
      // Each waits for the one before: what a trace gives is there for the check after it.
      if (!commands.empty() && !workspace.busy() && !workspace.loading()) {
        workspace.click(commands.front());
        commands.pop_front();
      }
      const double before = thread_milliseconds();
      ImGui_ImplOpenGL3_NewFrame();
      ImGui_ImplGlfw_NewFrame();
      // Wherever the pointer of the screen happens to be, it is not in the picture.
      if (!options.picture.empty()) ImGui::GetIO().AddMousePosEvent(-FLT_MAX, -FLT_MAX);
      ImGui::NewFrame();
      const auto scene = workspace.scene();
      const auto detail = workspace.detail();
      const auto graph = workspace.graph();
      if (frame == 2 && options.front) shell.state().focus = options.front;
      shell.frame();
      ImGui::Render();
      times.cpu.push_back(thread_milliseconds() - before);
      int width = 0, height = 0;
      glfwGetFramebufferSize(window, &width, &height);
      glViewport(0, 0, width, height);
      glClear(GL_COLOR_BUFFER_BIT);
      ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
      const bool still = commands.empty() && !workspace.busy() && !workspace.loading() && scene == workspace.scene() &&
                         detail == workspace.detail() && graph == workspace.graph() && !shell.state().moving;
      quiet = still ? quiet + 1 : 0;
      if (!options.picture.empty() && quiet > 40) {
        if (!write_picture(window, options.picture)) {
          std::fprintf(stderr, "the picture could not be written to %s\n", options.picture.c_str());
          status = 1;
        }
        if (!workspace.problem().empty()) {
          std::fprintf(stderr, "%s\n", workspace.problem().c_str());
          status = 1;
        }
        break;
      }
      glfwSwapBuffers(window);
      if (frame == 0) times.first = milliseconds_since(start);
      if (!host_started) {
        host_started = true;
        if (options.frames == 0) workspace.start_host();
      }
      if (std::string now = window_title(workspace); now != title) {
        title = std::move(now);
        glfwSetWindowTitle(window, title.c_str());
      }
      if (workspace.finished() || (options.frames > 0 && frame + 1 >= options.frames)) break;
    }
    if (options.timings) times.print();
    glfwSetWindowUserPointer(window, nullptr);
    glfwSetDropCallback(window, nullptr);
    glfwSetWindowContentScaleCallback(window, nullptr);
  }
  glfwDestroyWindow(window);
  return status;
}

}  // namespace pallascope::window
