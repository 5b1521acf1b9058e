#include "app/views/toolbar.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "app/repl/completion.h"
#include "app/repl/words.h"
#include "app/views/bar_controls.h"
#include "core/report/format.h"
#include "core/report/summary.h"

namespace pallascope::views {
namespace {

using State = repl::HostStatus::State;

constexpr float progress_width = 300;
constexpr int most_level = 4;

struct HostLook {
  ImU32 color = 0;
  std::string word;    ///< `starting…`, `died`; empty when it is ready
  bool filled = true;  ///< a ring while there is nothing yet: the shape says it as well
};

HostLook look_of(const Context& context) {
  const Theme& theme = context.theme;
  if (!context.workspace.has_host()) return {theme.text_faint, "none", false};
  switch (context.workspace.host().state) {
    case State::not_started:
      return {theme.text_faint, "not started", false};
    case State::starting:
      return {theme.warning, "starting…", false};
    case State::ready:
      return {theme.passed, "", true};
    case State::died:
      return {theme.error, "died", true};
    case State::failed:
      return {theme.error, "cannot start", true};
  }
  return {};
}

bool wants_restart(const Context& context) {
  if (!context.workspace.has_host()) return false;
  const State state = context.workspace.host().state;
  return state == State::died || state == State::failed;
}

float gap_of(const Context& context) { return context.px(6); }
float separator_room(const Context& context) { return context.px(13); }

/// A thin upright line between groups.
void separator(const Context& context, float height) {
  ImGui::SameLine(0, 0);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float x = std::floor(at.x + separator_room(context) / 2);
  ImGui::GetWindowDrawList()->AddLine(ImVec2(x, at.y + context.px(4)),
                                      ImVec2(x, at.y + height - context.px(4)), context.theme.border_strong);
  ImGui::Dummy(ImVec2(separator_room(context), height));
  ImGui::SameLine(0, 0);
}

/// As split_words needs a path that is still being typed: without quotes, which would close the word.
std::string escaped(std::string_view path) {
  std::string result;
  for (const char c : path) {
    if (c == ' ' || c == '\'' || c == '"' || c == '\\' || c == ';' || c == '#') result += '\\';
    result += c;
  }
  return result;
}

std::string elapsed(const workspace::Busy& busy) {
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - busy.since;
  return seconds.count() < 100 ? fmt::format("{:.1f} s", seconds.count())
                               : fmt::format("{:.0f} s", seconds.count());
}

}  // namespace

Toolbar::Labels Toolbar::labels(const Context& context, int level) {
  Labels made;
  const HostLook look = look_of(context);
  const repl::HostStatus& status = context.workspace.host();
  if (!look.word.empty()) {
    made.host = level >= 3 ? look.word : "host " + look.word;
  } else if (level < 2) {
    made.host = fmt::format("local · {} · jax {}", status.platform, status.jax);
  } else if (level < 4) {
    made.host = fmt::format("local · {}", status.platform);
  }
  made.target = level < 1 ? "target interpret" : level < 4 ? "interpret" : "";
  made.run = level < 3 ? "Run & compare" : "Run";
  return made;
}

float Toolbar::right_width(const Context& context, const Labels& labels) {
  ChipLook menu;
  menu.menu = true;
  const float run =
      context.workspace.busy() ? context.px(progress_width) : chip_width(context, labels.run + "   F5");
  return chip_width(context, labels.host, menu) + context.px(12) +
         (wants_restart(context) ? chip_width(context, "Restart") + gap_of(context) : 0) +
         (labels.target.empty() ? 0 : gap_of(context) + chip_width(context, labels.target, menu)) +
         gap_of(context) + run + separator_room(context) + 2 * chip_height(context) + context.px(3);
}

void Toolbar::draw(Context& context) {
  const FontScope font(context.fonts.ui, context.fonts.ui_size - 0.5F);
  const float height = chip_height(context), width = ImGui::GetContentRegionAvail().x;
  ImGui::SetCursorPosY(std::floor((ImGui::GetWindowHeight() - height) / 2));
  // The program's name keeps some room; the right side says less where it would not fit.
  const float least_left = context.px(context.scene() == nullptr ? 90 : 300);
  int level = 0;
  Labels shown = labels(context, level);
  while (level < most_level && right_width(context, shown) + least_left > width)
    shown = labels(context, ++level);
  const float right = right_width(context, shown);
  const float start = std::max(ImGui::GetCursorPosX(), ImGui::GetCursorPosX() + width - right);
  const float y = ImGui::GetCursorPosY();
  draw_left(context, width - right - context.px(12));
  ImGui::SetCursorPos(ImVec2(start, y));
  draw_host(context, shown.host);
  if (!shown.target.empty()) {
    ImGui::SameLine(0, gap_of(context));
    draw_target(context, shown.target);
  }
  ImGui::SameLine(0, gap_of(context));
  if (context.workspace.busy()) {
    draw_progress(context, height);
  } else {
    draw_run(context, shown.run, height);
  }
  separator(context, height);
  ChipLook plain;
  plain.plain = true;
  if (chip(context, "theme", "◐", plain, height)) context.state.dark = !context.state.dark;
  tip(context, context.state.dark ? "Light colours" : "Dark colours");
  ImGui::SameLine(0, context.px(3));
  if (chip(context, "help", "?", plain, height)) context.state.help = true;
  tip(context, "Keys and commands (?)");
}

void Toolbar::draw_left(Context& context, float width) {
  ChipLook look;
  const float open = chip_width(context, "Open…", look);
  const ImVec2 open_at = ImGui::GetCursorScreenPos();
  if (chip(context, "open", "Open…", look)) {
    ImGui::OpenPopup("##open_file");
    if (path_[0] == 0 && context.scene() != nullptr) {
      const std::string folder = std::filesystem::path(context.scene()->path).parent_path().string();
      std::snprintf(path_.data(), path_.size(), "%s%s", folder.c_str(), folder.empty() ? "" : "/");
    }
    complete_ = focus_path_ = true;
  }
  tip(context, "Open a .pt2, a trace in JSON or a bundle folder. Files can be dropped on the window, too");
  draw_open(context, open_at);
  const workspace::Scene* scene = context.scene();
  if (scene == nullptr) return;
  float room = width - open - separator_room(context);
  if (room < context.px(40)) return;
  separator(context, chip_height(context));
  const std::string title = report::program_title(*scene->program);
  const bool several = scene->program->graphs.size() > 1;
  const float graphs =
      several ? std::clamp(room * 0.45F, context.px(90), context.px(240)) + gap_of(context) : 0;
  const float name = std::max(0.0F, room - graphs);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  {
    const FontScope bold(context.fonts.bold, context.fonts.ui_size);
    const float title_width = std::min(text_width(title), name);
    ImGui::Dummy(ImVec2(title_width, chip_height(context)));
    draw_cut(*ImGui::GetWindowDrawList(),
             ImVec2(at.x, at.y + std::floor((chip_height(context) - ImGui::GetFontSize()) / 2)),
             context.theme.text, title, title_width + 1);
  }
  tip(context, scene->path.empty() ? title : scene->path);
  if (several) {
    ImGui::SameLine(0, gap_of(context));
    draw_graphs(context, graphs - gap_of(context));
  }
  if (context.workspace.loading()) {
    ImGui::SameLine(0, context.px(10));
    const ImVec2 dots = ImGui::GetCursorScreenPos();
    const float left = at.x + room - dots.x;
    if (left > context.px(60)) {
      ImGui::Dummy(ImVec2(left, chip_height(context)));
      draw_cut(*ImGui::GetWindowDrawList(),
               ImVec2(dots.x, dots.y + std::floor((chip_height(context) - ImGui::GetFontSize()) / 2)),
               context.theme.text_faint, "working…", left);
    }
  }
}

void Toolbar::draw_graphs(Context& context, float width) {
  const auto& graphs = context.scene()->program->graphs;
  const std::size_t now = context.scene()->compilation->graph_index();
  const auto label = [&](std::size_t k) {
    return fmt::format("graph {}/{} · {}", k, graphs.size(),
                       graphs[k].kind.empty() ? graphs[k].name : graphs[k].kind);
  };
  ChipLook look;
  look.menu = true;
  const std::string shown = label(now);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (chip(context, "graph", shown, look, std::min(width, chip_width(context, shown, look))))
    ImGui::OpenPopup("##graphs");
  tip(context, graphs[now].name.empty() ? shown : shown + "\n" + graphs[now].name);
  if (!begin_menu(context, "##graphs", at, 0)) return;
  // Programs of hundreds of recompilations exist; the menu's own scrolling keeps that usable.
  for (std::size_t k = 0; k < graphs.size(); ++k) {
    const std::string row = fmt::format("{}  {}##graph{}", k, graphs[k].name, k);
    const std::string nodes = report::plural(static_cast<std::int64_t>(graphs[k].nodes.size()), "node");
    if (ImGui::MenuItem(row.c_str(), nodes.c_str(), k == now) && k != now)
      context.workspace.click(fmt::format("use {}", k));
    tip(context, graphs[k].kind);
  }
  ImGui::EndPopup();
}

void Toolbar::draw_open(Context& context, ImVec2 at) {
  if (!ImGui::IsPopupOpen("##open_file")) return;  // the constraints would meet the next window
  ImGui::SetNextWindowSizeConstraints(ImVec2(context.px(520), 0), ImVec2(context.px(520), context.px(420)));
  if (!begin_menu(context, "##open_file", at, 0)) return;
  text(context.theme.text_dim, "A .pt2, a trace in JSON, or a bundle folder");
  if (focus_path_) ImGui::SetKeyboardFocusHere();
  focus_path_ = false;
  const float open_width = chip_width(context, "Open");
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - open_width - gap_of(context));
  // Tab takes what all candidates have in common.
  const auto on_tab = [](ImGuiInputTextCallbackData* data) {
    const auto& candidates = *static_cast<const std::vector<std::string>*>(data->UserData);
    const std::string common = repl::common_beginning(candidates);
    if (common.size() > static_cast<std::size_t>(data->BufTextLen)) {
      data->DeleteChars(0, data->BufTextLen);
      data->InsertChars(0, common.c_str());
    }
    return 0;
  };
  const bool entered = ImGui::InputTextWithHint(
      "##path", "path of a file", path_.data(), path_.size(),
      ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CallbackCompletion, on_tab, &candidates_);
  if (ImGui::IsItemEdited()) complete_ = true;
  if (complete_) {
    complete_ = false;
    candidates_.clear();
    for (const std::string& quoted : context.workspace.complete("open " + escaped(path_.data())).candidates) {
      if (const auto words = repl::split_words(quoted); words.ok() && words->size() == 1)
        candidates_.push_back(words->front());
    }
  }
  ImGui::SameLine(0, gap_of(context));
  std::string chosen;
  ChipLook primary;
  primary.primary = true;
  primary.enabled = path_[0] != 0;
  if (chip(context, "open_path", "Open", primary, open_width) || (entered && path_[0] != 0))
    chosen = path_.data();
  ImGui::BeginChild("candidates", ImVec2(0, context.px(260)), ImGuiChildFlags_None);
  if (candidates_.empty())
    text(context.theme.text_faint, path_[0] == 0 ? "" : "nothing here begins like that");
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(candidates_.size()));
  while (clipper.Step()) {
    for (int k = clipper.DisplayStart; k < clipper.DisplayEnd; ++k) {
      const std::string& candidate = candidates_[static_cast<std::size_t>(k)];
      ImGui::PushID(k);
      const bool folder = candidate.ends_with('/');
      if (row_button(context, "##candidate", ImGui::GetFontSize() + context.px(6), false)) {
        std::snprintf(path_.data(), path_.size(), "%s", candidate.c_str());
        complete_ = focus_path_ = true;
        if (!folder) chosen = candidate;
      }
      const ImVec2 from = ImGui::GetItemRectMin();
      // What no command opens is there, but steps back.
      const bool known = folder || candidate.ends_with(".pt2") || candidate.ends_with(".json") ||
                         candidate.ends_with(".zip");
      if (draw_cut(*ImGui::GetWindowDrawList(), ImVec2(from.x, from.y + context.px(3)),
                   known ? context.theme.text : context.theme.text_faint, candidate,
                   ImGui::GetItemRectSize().x))
        tip(context, candidate);
      ImGui::PopID();
      if (complete_) break;  // the list is another one from here on
    }
    if (complete_) break;
  }
  ImGui::EndChild();
  if (!chosen.empty()) {
    context.workspace.click("open " + repl::quote_word(chosen));
    ImGui::CloseCurrentPopup();
  }
  ImGui::EndPopup();
}

void Toolbar::draw_host(Context& context, const std::string& label) {
  const Theme& theme = context.theme;
  const HostLook look = look_of(context);
  const repl::HostStatus& status = context.workspace.host();
  ChipLook menu;
  menu.menu = true;
  const float room = context.px(12), width = chip_width(context, label, menu) + room;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  // The dot stands where the label would begin: the label moves on by blanks of its width.
  const float blank = text_width(" ");
  const std::string padded =
      std::string(static_cast<std::size_t>(std::ceil(room / std::max(1.0F, blank))), ' ') + label;
  if (chip(context, "host", padded, menu, width)) ImGui::OpenPopup("##host_menu");
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 dot(at.x + context.px(12), at.y + chip_height(context) / 2);
  if (look.filled) {
    draw.AddCircleFilled(dot, context.px(4), look.color);
  } else {
    draw.AddCircle(dot, context.px(3.5F), look.color, 0, context.px(1.5F));
  }
  const auto details = [&] {
    if (!context.workspace.has_host()) {
      text(theme.text_dim, "There is no Python host: nothing can be run or traced.");
      return;
    }
    text(theme.text, status.text.empty() ? "The Python host: it traces and runs." : status.text);
    const auto line = [&](const char* name, const std::string& value) {
      if (value.empty()) return;
      text(theme.text_dim, name);
      ImGui::SameLine(context.px(90));
      text(theme.text, value);
    };
    line("python", status.python), line("torch", status.torch), line("jax", status.jax),
        line("platform", status.platform);
    line("devices", report::join(status.devices, ", "));
    if (status.starts > 1) line("started", fmt::format("{} times", status.starts));
  };
  const bool open = ImGui::IsPopupOpen("##host_menu");
  if (!open && wants_tip()) {
    begin_tip(context);
    ImGui::PushTextWrapPos(context.px(420));
    details();
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
  }
  if (begin_menu(context, "##host_menu", at, width)) {
    ImGui::PushTextWrapPos(context.px(420));
    details();
    ImGui::PopTextWrapPos();
    if (context.workspace.has_host()) {
      ImGui::Dummy(ImVec2(1, context.px(4)));
      if (chip(context, "restart", "Restart the host")) {
        context.workspace.restart_host();
        ImGui::CloseCurrentPopup();
      }
      ImGui::SameLine(0, gap_of(context));
      if (chip(context, "host_log", "Show its log")) {
        context.focus(PanelId::log);
        ImGui::CloseCurrentPopup();
      }
    }
    ImGui::EndPopup();
  }
  if (!wants_restart(context)) return;
  ImGui::SameLine(0, gap_of(context));
  ChipLook restart;
  restart.ink = theme.error;
  if (chip(context, "restart_now", "Restart", restart)) context.workspace.restart_host();
  tip(context, status.text);
}

void Toolbar::draw_target(Context& context, const std::string& label) {
  ChipLook menu;
  menu.menu = true;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (chip(context, "target", label, menu)) ImGui::OpenPopup("##targets");
  tip(context,
      "Pallas' interpreter: kernels run as plain JAX on the host's device. Their times say nothing of any hardware");
  if (!begin_menu(context, "##targets", at, chip_width(context, label, menu))) return;
  ImGui::MenuItem("interpret", nullptr, true);
  tip(context, "Kernels run as plain JAX on the host's device");
  ImGui::EndPopup();
}

void Toolbar::draw_run(Context& context, const std::string& label, float /*height*/) {
  ChipLook look;
  look.primary = true;
  look.enabled = context.scene() != nullptr && context.workspace.has_host();
  const std::string whole = label + "   F5";
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = chip_width(context, whole, look);
  // The hint is fainter than the label, so both are drawn here.
  if (chip(context, "run", "", look, width)) context.workspace.click(check_command);
  tip(context, "Runs the kernels and compares every output with PyTorch's (F5)");
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImU32 ink = look.enabled ? context.theme.text_on_accent : context.theme.text_faint;
  const float y = at.y + std::floor((chip_height(context) - ImGui::GetFontSize()) / 2),
              x = at.x + context.px(8);
  draw_cut(draw, ImVec2(x, y), ink, label, width);
  draw_right(draw, at.x + width - context.px(8), y, faded(ink, 0.65F), "F5");
}

void Toolbar::draw_progress(Context& context, float height) {
  const Theme& theme = context.theme;
  const workspace::Busy& busy = *context.workspace.busy();
  const float width = context.px(progress_width), cancel = chip_width(context, "Cancel");
  const float bar = width - cancel - gap_of(context);
  const ImVec2 at = ImGui::GetCursorScreenPos(), end(at.x + bar, at.y + height);
  ImGui::Dummy(ImVec2(bar, height));
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled(at, end, theme.field, context.px(4));
  draw.AddRect(at, end, theme.border, context.px(4));
  const float line = context.px(3), bottom = end.y - context.px(2);
  const float left = at.x + context.px(3), room = bar - context.px(6);
  if (busy.fraction >= 0) {
    const float done = room * static_cast<float>(std::clamp(busy.fraction, 0.0, 1.0));
    draw.AddRectFilled(ImVec2(left, bottom - line), ImVec2(left + done, bottom), theme.accent, line / 2);
  } else {
    // How much is left is not known: a piece goes to and fro.
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - busy.since).count();
    const auto swing = static_cast<float>(0.5 - 0.5 * std::cos(seconds * 2.2));
    const float piece = room * 0.25F, from = left + (room - piece) * swing;
    draw.AddRectFilled(ImVec2(from, bottom - line), ImVec2(from + piece, bottom), theme.accent, line / 2);
  }
  const FontScope font(context.fonts.ui, context.fonts.small_size);
  const std::string time = elapsed(busy);
  const float y = at.y + std::floor((height - line - ImGui::GetFontSize()) / 2);
  draw_cut(draw, ImVec2(at.x + context.px(8), y), theme.text, busy.text.empty() ? busy.command : busy.text,
           bar - text_width("000.0 s") - context.px(22));
  draw_right(draw, end.x - context.px(8), y, theme.text_dim, time);
  tip(context, fmt::format("{}\n{}", busy.command, busy.text));
  ImGui::SameLine(0, gap_of(context));
  ImGui::SetCursorPosY(std::floor(ImGui::GetCursorPosY()));
  const FontScope ui(context.fonts.ui, context.fonts.ui_size - 0.5F);
  ChipLook look;
  look.enabled = !busy.cancelling;
  if (chip(context, "cancel", busy.cancelling ? "…" : "Cancel", look, cancel)) context.workspace.cancel();
  tip(context, "End what the host works on. The host is started again");
}

}  // namespace pallascope::views
