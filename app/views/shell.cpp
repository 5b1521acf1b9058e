#include "app/views/shell.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "app/repl/words.h"
#include "app/views/actions.h"
#include "app/views/bar_controls.h"
#include "core/report/format.h"

namespace pallascope::views {
namespace {

constexpr float toolbar_height = 38, strip_height = 34, status_height = 24;
constexpr const char* dock_name = "##docks";

}  // namespace

Shell::Shell(workspace::Workspace& workspace, ShellOptions options)
    : workspace_(workspace),
      theme_(options.dark ? dark_theme() : light_theme()),
      fonts_(load_fonts()),
      display_scale_(options.display_scale),
      start_at_refusal_(options.start_at_refusal) {
  state_.dark = options.dark;
  state_.scale = options.scale;
  kept_ = {options.dark, options.scale};
}

void Shell::set_display_scale(float scale) { display_scale_ = scale; }

bool Shell::animating() const { return workspace_.busy().has_value() || workspace_.loading() || graph_.animating(); }

void Shell::drop(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (std::filesystem::path(path).extension() == ".py") {
      state_.dropped = path;
    } else {
      workspace_.click("open " + repl::quote_word(path));
    }
  }
}

void Shell::frame() {
  if (styled_dark_ != state_.dark || styled_scale_ != state_.scale * display_scale_) {
    theme_ = state_.dark ? dark_theme() : light_theme();
    apply_style(theme_, state_.scale * display_scale_);
    styled_dark_ = state_.dark;
    styled_scale_ = state_.scale * display_scale_;
  }
  Context context{workspace_, state_, theme_, fonts_};
  workspace_.update();
  // A panel that is drawn before the one under the pointer knows of it a frame later, as all others do.
  state_.hovered = std::exchange(state_.hovering, {});
  follow_scene(context);
  state_.moving = false;
  keys(context);

  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const ImVec2 at = viewport->WorkPos, size = viewport->WorkSize;
  ImGui::GetBackgroundDrawList()->AddRectFilled(at, ImVec2(at.x + size.x, at.y + size.y), theme_.backdrop);
  constexpr ImGuiWindowFlags bar = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus |
                                   ImGuiWindowFlags_NoNavFocus;
  const auto bar_at = [&](const char* name, float y, float height, auto draw) {
    ImGui::SetNextWindowPos(ImVec2(at.x, at.y + y));
    ImGui::SetNextWindowSize(ImVec2(size.x, height));
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(context.px(10), context.px(4)));
    ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, ImVec2(1, 1));
    ImGui::PushStyleColor(ImGuiCol_WindowBg, theme_.backdrop);
    if (ImGui::Begin(name, nullptr, bar)) draw();
    ImGui::End();
    ImGui::PopStyleColor();
    ImGui::PopStyleVar(2);
  };
  const bool open = context.scene() != nullptr;
  float top = 0;
  bar_at("##toolbar", 0, context.px(toolbar_height), [&] { toolbar_.draw(context); });
  top += context.px(toolbar_height);
  if (open) {
    bar_at("##strip", top, context.px(strip_height), [&] { strip_.draw(context); });
    top += context.px(strip_height);
  }
  const float bottom = context.px(status_height);
  const ImVec2 middle_at(at.x, at.y + top), middle(size.x, std::max(1.0F, size.y - top - bottom));
  if (open && !state_.start_page) {
    draw_docks(context, middle_at, middle);
  } else {
    if (open) keep_docks(middle_at, middle);
    ImGui::SetNextWindowPos(middle_at);
    ImGui::SetNextWindowSize(middle);
    if (ImGui::Begin("##start", nullptr, bar)) start_.draw(context);
    ImGui::End();
  }
  bar_at("##status", size.y - bottom, bottom, [&] { draw_status(context, at, size); });
  start_.draw_question(context);
  go_to_.draw(context);
  draw_problem(context);
  // What the command line asked for is of this run alone; what a person chose is kept.
  if (const workspace::Look look{state_.dark, state_.scale}; look != kept_) {
    kept_ = look;
    workspace_.keep_look(look);
  }
  state_.find = state_.fit = state_.centre = state_.view_back = false;
  if (state_.hovering != state_.hovered) state_.moving = true;
}

void Shell::select_missed(Context& context) {
  const model::DecisionIndex& decisions = *context.scene()->decisions;
  if (decisions.by_missed().empty()) return;
  const model::DecisionRow& row = decisions.rows()[decisions.by_missed().front()];
  if (!row.missed) return;
  if (start_at_refusal_) {
    context.go_to_decision(row.id);
  } else {
    context.select(row.id);
  }
  start_at_refusal_ = false;
}

void Shell::follow_scene(Context& context) {
  const std::shared_ptr<const workspace::Scene> scene = workspace_.scene();
  if (scene != shown_) {
    const bool new_program = scene && (!shown_ || shown_->program != scene->program);
    if (scene && shown_ && shown_->compilation == scene->compilation) {
      if (shown_->snapshot != scene->snapshot) {
        const model::Selection followed = model::follow(*shown_->snapshot, *scene->snapshot, state_.selection);
        if (followed != state_.selection) state_.selection = followed;
      }
    } else {
      state_.selection = {};
      state_.back.clear();
      state_.forward.clear();
    }
    shown_ = scene;
    state_.hovered = {};  // it was of the scene before
    if (scene) workspace_.request_detail(state_.selection);
    if (scene && new_program) {
      state_.start_page = false;
      select_missed(context);
    }
  }
  if (auto selection = workspace_.take_selection()) {
    if (scene) context.select_silently(*selection);
  }
}

void Shell::travel(Context& context, std::vector<Visit>& from, std::vector<Visit>& to) {
  if (from.empty() || context.scene() == nullptr) return;
  const Visit visit = from.back();
  from.pop_back();
  to.push_back({state_.selection, workspace_.wanted_position()});
  context.select_silently(visit.selection);
  if (visit.position != workspace_.wanted_position()) workspace_.move_to(visit.position);
}

void Shell::keys(Context& context) {
  const ImGuiIO& io = ImGui::GetIO();
  const auto pressed = [](ImGuiKeyChord chord, bool repeat = false) {
    return ImGui::IsKeyChordPressed(chord, repeat ? ImGuiInputFlags_Repeat : 0);
  };
  // These act everywhere.
  if (pressed(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P)) state_.palette = true;
  else if (pressed(ImGuiMod_Ctrl | ImGuiKey_P)) state_.go_to = true;
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_F)) state_.find = true;
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_O)) state_.start_page = !state_.start_page;
  if (pressed(ImGuiKey_F5)) run_and_compare(context);
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_Equal, true)) zoom(state_, 1);
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_Minus, true)) zoom(state_, -1);
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_0)) state_.scale = 1;
  if (pressed(ImGuiMod_Alt | ImGuiKey_LeftArrow) || std::exchange(state_.go_back, false)) travel(context, state_.back, state_.forward);
  if (pressed(ImGuiMod_Alt | ImGuiKey_RightArrow) || std::exchange(state_.go_forward, false)) travel(context, state_.forward, state_.back);
  if (std::exchange(state_.reset_layout, false)) reset_layout();
  if (std::exchange(state_.toggle_drawer, false)) {
    drawer_open_ = !drawer_open_;
    layout_made_ = false;
  }
  // The rest only while no text is typed and no popup asks something.
  if (io.WantTextInput || ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel)) return;
  if (pressed(ImGuiMod_Shift | ImGuiKey_Slash) || pressed(ImGuiKey_F1)) state_.help = true;
  if (context.scene() == nullptr || io.KeyCtrl || io.KeyAlt || io.KeySuper) return;
  if (state_.start_page) {
    if (pressed(ImGuiKey_Escape)) state_.start_page = false;
    return;
  }
  if (pressed(ImGuiKey_RightArrow, true)) next_decision(context);
  if (pressed(ImGuiKey_LeftArrow, true)) previous_decision(context);
  if (pressed(ImGuiKey_RightBracket)) next_pass(context);
  if (pressed(ImGuiKey_LeftBracket)) previous_pass(context);
  if (pressed(ImGuiKey_W)) context.focus(PanelId::why);
  if (pressed(ImGuiKey_X)) context.focus(PanelId::index);
  if (pressed(ImGuiKey_D)) {
    state_.difference = !state_.difference;
    context.focus(PanelId::source);
  }
  if (pressed(ImGuiKey_P)) context.focus(PanelId::inspector);
  if (pressed(ImGuiKey_Space)) state_.fit = true;
  if (pressed(ImGuiKey_Backspace, true)) state_.view_back = true;
  if (pressed(ImGuiKey_F)) state_.centre = true;
  if (pressed(ImGuiKey_GraveAccent)) context.focus(PanelId::repl);
  if (pressed(ImGuiKey_Q)) state_.toggle_drawer = true;
  if (pressed(ImGuiKey_Escape)) {
    if (!workspace_.problem().empty()) {
      workspace_.clear_problem();
    } else {
      context.select_silently({});
    }
  }
}

void Shell::make_layout(ImGuiID dock, ImVec2 size) {
  ImGui::DockBuilderRemoveNode(dock);
  ImGui::DockBuilderAddNode(dock, ImGuiDockNodeFlags_DockSpace);
  ImGui::DockBuilderSetNodeSize(dock, size);
  ImGuiID top = dock, drawer = 0;
  if (drawer_open_) ImGui::DockBuilderSplitNode(dock, ImGuiDir_Down, 0.345F, &drawer, &top);
  ImGuiID left = 0, graph = 0, source = 0, inspector = 0, rest = 0;
  ImGui::DockBuilderSplitNode(top, ImGuiDir_Left, 0.215F, &left, &rest);
  ImGui::DockBuilderSplitNode(rest, ImGuiDir_Right, 0.215F, &inspector, &rest);
  ImGui::DockBuilderSplitNode(rest, ImGuiDir_Left, 0.40F, &graph, &source);
  ImGuiID summary = 0, decisions = 0;
  ImGui::DockBuilderSplitNode(left, ImGuiDir_Up, 0.42F, &summary, &decisions);
  const auto put = [](PanelId id, ImGuiID node) { ImGui::DockBuilderDockWindow(panel_title(id), node); };
  put(PanelId::summary, summary), put(PanelId::decisions, decisions);
  put(PanelId::graph, graph), put(PanelId::source, source), put(PanelId::inspector, inspector);
  if (drawer_open_) {
    ImGuiID check = 0, main = 0;
    ImGui::DockBuilderSplitNode(drawer, ImGuiDir_Right, 0.40F, &check, &main);
    for (const PanelId id : {PanelId::why, PanelId::index, PanelId::repl, PanelId::log}) put(id, main);
    put(PanelId::check, check);
  }
  ImGui::DockBuilderFinish(dock);
}

void Shell::keep_docks(ImVec2 at, ImVec2 size) {
  ImGui::SetNextWindowPos(at);
  ImGui::SetNextWindowSize(size);
  ImGui::Begin("##middle", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                   ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoNavFocus | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoInputs | ImGuiWindowFlags_NoBackground);
  ImGui::DockSpace(ImGui::GetID(dock_name), ImVec2(0, 0), ImGuiDockNodeFlags_KeepAliveOnly);
  ImGui::End();
}

void Shell::draw_docks(Context& context, ImVec2 at, ImVec2 size) {
  ImGui::SetNextWindowPos(at);
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
  ImGui::Begin("##middle", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                   ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoNavFocus | ImGuiWindowFlags_NoSavedSettings);
  ImGui::PopStyleVar();
  const ImGuiID dock = ImGui::GetID(dock_name);
  bool raise_why = false;
  if (!layout_made_) {
    // A layout that was saved by an earlier run is kept.
    if (ImGui::DockBuilderGetNode(dock) == nullptr || styled_scale_ == 0 || shown_ != nullptr) make_layout(dock, size);
    layout_made_ = raise_why = true;
  }
  ImGui::DockSpace(dock, ImVec2(0, 0), ImGuiDockNodeFlags_NoWindowMenuButton);
  ImGui::End();
  const bool asked = state_.focus.has_value();
  for (const PanelId id : panel_ids) {
    const bool drawer = id == PanelId::why || id == PanelId::index || id == PanelId::repl || id == PanelId::log || id == PanelId::check;
    if (drawer && !drawer_open_) {
      if (state_.focus != id) continue;
      drawer_open_ = true;  // it was asked for, and still is in the next frame
      layout_made_ = false;
      continue;
    }
    draw_panel(context, id);
  }
  // The first tab of a dock is in front, whichever window was made last.
  if (raise_why && drawer_open_ && !asked && !state_.focus) ImGui::SetWindowFocus(panel_title(PanelId::why));
}

void Shell::draw_panel(Context& context, PanelId id) {
  if (state_.focus == id) ImGui::SetNextWindowFocus();
  const bool flush = id == PanelId::graph || id == PanelId::source || id == PanelId::decisions;
  if (flush) ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
  const bool visible = ImGui::Begin(panel_title(id), nullptr, ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoFocusOnAppearing);
  if (flush) ImGui::PopStyleVar();
  if (ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows)) state_.active = id;
  if (visible) {
    switch (id) {
      case PanelId::summary: summary_.draw(context); break;
      case PanelId::decisions: decisions_.draw(context); break;
      case PanelId::graph: graph_.draw(context); break;
      case PanelId::source: source_.draw(context); break;
      case PanelId::inspector: inspector_.draw(context); break;
      case PanelId::why: why_.draw(context); break;
      case PanelId::index: index_.draw(context); break;
      case PanelId::check: check_.draw(context); break;
      case PanelId::log: log_.draw(context); break;
      case PanelId::repl: repl_.draw(context); break;
    }
  }
  ImGui::End();
  // Whoever asks for a panel that is drawn already, or in a popup over all of them, gets it in the next frame.
  if (state_.focus == id) state_.focus.reset();
}

void Shell::draw_status(Context& context, ImVec2 /*at*/, ImVec2 /*size*/) {
  const FontScope font(fonts_.ui, fonts_.small_size);
  const workspace::Scene* scene = context.scene();
  std::vector<std::pair<ImU32, std::string>> parts;
  if (scene == nullptr) {
    parts.emplace_back(theme_.text_dim, "nothing open");
  } else {
    if (const auto graph = workspace_.graph()) {
      parts.emplace_back(theme_.text_dim, fmt::format("{} of {} nodes shown", report::count_text(static_cast<std::int64_t>(graph->graph.visible_nodes)),
                                                      report::count_text(static_cast<std::int64_t>(scene->compilation->graph().nodes.size()))));
    }
    if (const auto check = workspace_.check(); check && check->program == scene->program) {
      const bool current = workspace_.check_is_current();
      parts.emplace_back(!current ? theme_.text_faint : check->passed ? theme_.passed : theme_.error,
                         fmt::format("{} at {} on {}{}", check->passed ? "✓ passed" : "✗ failed",
                                     place_text(check->decision),
                                     check->host, current ? "" : " (the program has moved since)"));
    } else {
      parts.emplace_back(theme_.text_dim, "not checked");
    }
  }
  if (!font_problem().empty()) parts.emplace_back(theme_.warning, fmt::format("font not found: {}", font_problem()));
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (k > 0) {
      ImGui::SameLine();
      text(theme_.text_faint, "·");
      ImGui::SameLine();
    }
    text(parts[k].first, parts[k].second);
  }
  const char* hint = "Ctrl+P go to anything   ? keys";
  const float width = ImGui::CalcTextSize(hint).x;
  ImGui::SameLine(ImGui::GetWindowWidth() - width - context.px(12));
  text(theme_.text_faint, hint);
}

void Shell::draw_problem(Context& context) {
  if (workspace_.problem().empty()) return;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float width = std::min(viewport->WorkSize.x * 0.6F, context.px(760));
  ImGui::SetNextWindowPos(ImVec2(viewport->WorkPos.x + viewport->WorkSize.x / 2, viewport->WorkPos.y + viewport->WorkSize.y - context.px(40)),
                          ImGuiCond_Always, ImVec2(0.5F, 1));
  ImGui::SetNextWindowSize(ImVec2(width, 0));
  ImGui::PushStyleColor(ImGuiCol_WindowBg, mixed(theme_.raised, theme_.error, 0.14F));
  ImGui::PushStyleColor(ImGuiCol_Border, theme_.error);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 6);
  if (ImGui::Begin("Problem", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                                           ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoFocusOnAppearing)) {
    ImGui::PushTextWrapPos(width - context.px(70));
    text(theme_.text, workspace_.problem());
    ImGui::PopTextWrapPos();
    ImGui::SameLine(width - context.px(64));
    if (ImGui::SmallButton("Close")) workspace_.clear_problem();
  }
  ImGui::End();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor(2);
}

}  // namespace pallascope::views
