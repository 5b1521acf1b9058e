// Room: views. The panels: each draws what the workspace has and says what a person did.
// Takes: a Workspace, the theme, the state of the window (selection, what is open, what has the focus).
// Gives: one frame of ImGui; commands to the workspace.
// May use: core, app/model, app/repl, app/workspace, ImGui, ImPlot.
// Never: computes what a worker could have made, waits, reads a file, knows of GLFW or OpenGL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/model/selection.h"
#include "app/views/theme.h"
#include "app/workspace/workspace.h"

namespace pallascope::views {

/// What Run & compare does.
inline constexpr const char* check_command = "check --picture --buffers";

/// In the order of the window: left to right, then the drawer. The title is also ImGui's name of the window.
enum class PanelId : std::uint8_t { summary, decisions, graph, source, inspector, why, index, repl, log, check };
inline constexpr std::array<PanelId, 10> panel_ids{PanelId::summary, PanelId::decisions, PanelId::graph, PanelId::source,
                                                   PanelId::inspector, PanelId::why,      PanelId::index, PanelId::repl,
                                                   PanelId::log,     PanelId::check};
/// `Summary`, `Decisions`, ...
const char* panel_title(PanelId id);

/// Where one stood: for Alt+left and Alt+right.
struct Visit {
  model::Selection selection;
  std::size_t position = 0;
};

/// What the window is at: set by panels, read by all.
struct UiState {
  model::Selection selection;         ///< of the scene `selection_scene`; follows when the scene changes
  std::uint64_t selection_number = 0; ///< grows with each new selection, also of the same thing: panels scroll to it
  model::Selection hovered;           ///< what the pointer was over in the last frame, in any panel: for reading
  model::Selection hovering;          ///< what it is over in this one, as far as panels were drawn; set by `hover`
  bool difference = true;             ///< lines that the last decision changed are marked
  bool dark = true;
  float scale = 1;                    ///< text and everything else, on top of the display's own
  std::optional<PanelId> focus;       ///< to be brought to the front when it is drawn next
  PanelId active = PanelId::decisions;  ///< the panel that has the keyboard focus: Ctrl+F goes to its search field
  bool find = false;                  ///< Ctrl+F was pressed: the active panel puts the focus into its search field
  bool fit = false, centre = false;   ///< Space and f: for the graph
  bool view_back = false;             ///< Backspace: the graph shows what it showed before its view was moved
  bool moving = false;                ///< something glides in this frame: the next one must not wait for an event
  bool palette = false, go_to = false, help = false;  ///< to be opened in this frame
  bool start_page = false;            ///< the start view is shown over what is open
  bool reset_layout = false, toggle_drawer = false, go_back = false, go_forward = false;  ///< for the next frame
  std::string repl_input;             ///< to be put into the REPL's prompt
  std::string dropped;                ///< a .py that was dropped and waits for an answer
  std::vector<Visit> back, forward;
};

/// What a panel gets. Lives for one frame.
struct Context {
  workspace::Workspace& workspace;
  UiState& state;
  const Theme& theme;
  const Fonts& fonts;

  /// Null when nothing is open.
  [[nodiscard]] const workspace::Scene* scene() const { return workspace.scene().get(); }
  /// The detail of the selection in the current scene; null for a frame or two after either changed, and then a panel
  /// goes on to show `stale_detail`.
  [[nodiscard]] const workspace::Detail* detail() const;
  [[nodiscard]] const workspace::Detail* stale_detail() const { return workspace.detail().get(); }

  /// Selects a thing of the current scene in every panel, remembers it for `back`, and echoes the command that shows it.
  void select(const model::Selection& selection);
  /// Selects without echo and without a visit (for what a command has already said).
  void select_silently(const model::Selection& selection);
  /// Selects a decision and goes to where it was just taken.
  void go_to_decision(schedule::DecisionId id);
  void focus(PanelId panel) { state.focus = panel; }
  /// Says what the pointer is over: the other panels mark it softly.
  void hover(const model::Selection& selection) { state.hovering = selection; }

  /// A measure in pixels for one given for an unscaled display.
  [[nodiscard]] float px(float points) const;
};

/// The command that shows a selection: `why d63`, `show n21`, `show k3`, `index k3`; empty for nothing.
std::string command_for(const workspace::Scene& scene, const model::Selection& selection);

/// Pushes a font at one of the sizes of Fonts for a scope.
class FontScope {
 public:
  FontScope(ImFont* font, float size) { ImGui::PushFont(font, size); }
  ~FontScope() { ImGui::PopFont(); }
  FontScope(const FontScope&) = delete;
  FontScope& operator=(const FontScope&) = delete;
};

/// Width in pixels in the current font.
float text_width(std::string_view value);
/// Text in a colour, not wrapped and not formatted.
void text(ImU32 color, std::string_view value);
/// As text, but cut to `width` pixels with `…`; the whole is shown on hover when it was cut.
void text_cut(ImU32 color, std::string_view value, float width);
/// A letter of an access class in its colour in a rounded field: `C`, `B`. Same width for all.
void access_badge(const Context& context, char letter);
/// What a person reads of an access class: `contiguous`, ...; empty for an unknown letter.
std::string_view access_name(char letter);

}  // namespace pallascope::views
