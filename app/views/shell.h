// Room: views. The window's frame: toolbar, strip, docks, status; keys; the selection and how it follows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/views/check_panel.h"
#include "app/views/context.h"
#include "app/views/decisions_panel.h"
#include "app/views/go_to.h"
#include "app/views/graph_panel.h"
#include "app/views/index_panel.h"
#include "app/views/inspector_panel.h"
#include "app/views/log_panel.h"
#include "app/views/repl_panel.h"
#include "app/views/source_panel.h"
#include "app/views/start_view.h"
#include "app/views/strip_bar.h"
#include "app/views/summary_panel.h"
#include "app/views/toolbar.h"
#include "app/views/why_panel.h"

namespace pallascope::views {

struct ShellOptions {
  bool dark = true;
  float display_scale = 1;  ///< of the display: 1 at 96 dots an inch
  float scale = 1;          ///< of text and everything else, on top of that
  bool start_at_refusal = false;  ///< not only select the first program's largest missed fusion, but go there
};

/// Needs a current ImGui context with docking enabled and an ImPlot context; makes fonts and style in them.
class Shell {
 public:
  explicit Shell(workspace::Workspace& workspace, ShellOptions options = {});

  /// Everything between ImGui::NewFrame and ImGui::Render. Updates the workspace first.
  void frame();
  /// Files that were dropped on the window: opened, but a .py asks first.
  void drop(const std::vector<std::string>& paths);
  /// The display's scale changed.
  void set_display_scale(float scale);
  /// Puts all docks back where they were out of the box.
  void reset_layout() { layout_made_ = false; }

  [[nodiscard]] UiState& state() { return state_; }
  [[nodiscard]] GraphPanel& graph_panel() { return graph_; }
  /// Whether something moves by itself (progress, a cursor): the next frame must not wait for an event.
  [[nodiscard]] bool animating() const;

 private:
  void follow_scene(Context& context);
  /// Selects what a new program should be asked about first: its largest missed fusion.
  void select_missed(Context& context);
  void keys(Context& context);
  void make_layout(ImGuiID dock, ImVec2 size);
  /// The docks are not drawn in this frame, but their panels stay where they are.
  void keep_docks(ImVec2 at, ImVec2 size);
  void draw_docks(Context& context, ImVec2 at, ImVec2 size);
  void draw_panel(Context& context, PanelId id);
  void draw_status(Context& context, ImVec2 at, ImVec2 size);
  void draw_problem(Context& context);
  void travel(Context& context, std::vector<Visit>& from, std::vector<Visit>& to);

  workspace::Workspace& workspace_;
  UiState state_;
  Theme theme_;
  Fonts fonts_;
  float display_scale_ = 1;
  bool styled_dark_ = true;
  float styled_scale_ = 0;
  workspace::Look kept_;  ///< as it was at the start, or when it was last written
  bool layout_made_ = false;
  bool start_at_refusal_ = false;
  bool drawer_open_ = true;
  std::shared_ptr<const workspace::Scene> shown_;  ///< the scene of the last frame

  Toolbar toolbar_;
  StripBar strip_;
  SummaryPanel summary_;
  DecisionsPanel decisions_;
  GraphPanel graph_;
  SourcePanel source_;
  InspectorPanel inspector_;
  WhyPanel why_;
  IndexPanel index_;
  CheckPanel check_;
  LogPanel log_;
  ReplPanel repl_;
  StartView start_;
  GoTo go_to_;
};

}  // namespace pallascope::views
