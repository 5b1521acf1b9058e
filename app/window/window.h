// Room: window. A window of the operating system: GLFW, OpenGL 3, the loop around the shell's frames.
// Takes: options of the command line, a host link.
// Gives: an exit status; a picture of the window when asked for one.
// May use: app/workspace, app/views, ImGui's backends, GLFW, OpenGL.
// Never: draws a panel, knows what is open.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/repl/host_link.h"
#include "app/views/context.h"
#include "core/base/result.h"

namespace pallascope::window {

struct WindowOptions {
  std::shared_ptr<repl::HostLink> host;
  /// Commands that are run as if clicked once the window is there, in order.
  std::vector<std::string> commands;
  /// See views::ShellOptions.
  bool start_at_refusal = false;
  int width = 1600, height = 1000;  ///< in screen coordinates
  std::optional<bool> dark;         ///< as in the last run unless given
  std::optional<float> scale;       ///< on top of the display's own; as in the last run unless given
  /// Write what the window shows to this PNG once all commands are done and nothing moves any more, and leave.
  std::string picture;
  std::optional<views::PanelId> front;  ///< brought to the front at the start, and again before the picture
  /// Print how long the start and the frames took when leaving.
  bool timings = false;
  /// Leave after so many frames; 0: when the window is closed.
  int frames = 0;
};

/// Why no window can be opened here, as far as that can be told without trying: neither DISPLAY nor WAYLAND_DISPLAY is
/// set. Empty if one may be.
std::string no_display_reason();

/// Runs until the window is closed; gives the exit status: 1 when a command failed while a picture was made, else 0.
/// Diagnostic host_unavailable-like `unsupported`: there is no display, or it has no OpenGL 3.3; says what would help.
Result<int> run_window(WindowOptions options);

}  // namespace pallascope::window
