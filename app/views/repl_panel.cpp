#include "app/views/repl_panel.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <misc/cpp/imgui_stdlib.h>

namespace pallascope::views {
namespace {

using Kind = workspace::TranscriptEntry::Kind;

std::array<RowLook, 5> looks(const Theme& theme) {
  std::array<RowLook, 5> looks;
  const auto set = [&](Kind kind, RowLook look) { looks[static_cast<std::size_t>(kind)] = look; };
  set(Kind::typed, {theme.text, 0, true, ">"});
  set(Kind::echo, {theme.text_faint, 0, false, "›"});
  set(Kind::output, {mixed(theme.text, theme.text_dim, 0.35F), 0, false, ""});
  set(Kind::error, {theme.error, theme.error_soft, false, "✗"});
  set(Kind::note, {theme.changed, 0, false, "·"});
  return looks;
}

}  // namespace

void ReplPanel::take_transcript(Context& context, float width) {
  const workspace::Workspace& workspace = context.workspace;
  const auto& transcript = workspace.transcript();
  const bool rewrapped = rows_.set_columns(TextRows::columns_for(context, width));
  if (rewrapped) taken_end_ = 0;
  if (!rewrapped && taken_number_ == workspace.transcript_number()) return;
  taken_number_ = workspace.transcript_number();
  const std::uint64_t first = workspace.transcript_first(), end = first + transcript.size();
  rows_.drop_before(std::max(first, cleared_));
  // An echo replaces the one before it: the last entry that was taken may say something else now.
  std::uint64_t from = taken_end_ == 0 ? first : std::max(first, taken_end_ - 1);
  from = std::max(from, cleared_);
  rows_.drop_from(from);
  for (std::uint64_t k = from; k < end; ++k) {
    const workspace::TranscriptEntry& entry = transcript[static_cast<std::size_t>(k - first)];
    rows_.add(k, entry.text, static_cast<std::uint8_t>(entry.kind));
  }
  taken_end_ = end;
}

float ReplPanel::draw_busy(Context& context, float right) {
  const auto& busy = context.workspace.busy();
  if (!busy) return 0;
  const Theme& theme = context.theme;
  const FontScope font(context.fonts.ui, context.fonts.small_size);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - busy->since).count();
  std::string what = busy->text;
  if (seconds >= 1) what += fmt::format(" · {:.0f} s", seconds);
  if (const std::size_t waiting = context.workspace.typed_waiting())
    what += fmt::format(" · {} {}", waiting, waiting == 1 ? "command waits" : "commands wait");
  const float most = context.px(320);
  const float label = std::min(most, ImGui::CalcTextSize(what.c_str()).x + 1);
  const float bar = context.px(90);
  const float button = ImGui::CalcTextSize("Cancel").x + ImGui::GetStyle().FramePadding.x * 2;
  const float space = ImGui::GetStyle().ItemSpacing.x;
  const float width = label + bar + button + 2 * space;
  const float height = ImGui::GetFrameHeight();
  const ImVec2 start(right - width, ImGui::GetCursorScreenPos().y);
  ImGui::SetCursorScreenPos(ImVec2(start.x, start.y + (height - ImGui::GetTextLineHeight()) / 2));
  text_cut(theme.text_dim, what, label);
  // How far it is; a part that wanders when that is not known.
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float thick = context.px(4), y = start.y + (height - thick) / 2, x = start.x + label + space;
  draw->AddRectFilled(ImVec2(x, y), ImVec2(x + bar, y + thick), theme.border, thick / 2);
  if (busy->fraction >= 0) {
    const auto share = static_cast<float>(std::min(1.0, busy->fraction));
    draw->AddRectFilled(ImVec2(x, y), ImVec2(x + bar * share, y + thick), theme.accent, thick / 2);
  } else {
    const auto phase =
        static_cast<float>(seconds - static_cast<double>(static_cast<long long>(seconds / 1.6)) * 1.6) / 1.6F;
    const float at = x + (bar - context.px(24)) * (phase < 0.5F ? phase * 2 : 2 - phase * 2);
    draw->AddRectFilled(ImVec2(at, y), ImVec2(at + context.px(24), y + thick), theme.accent, thick / 2);
  }
  ImGui::SetCursorScreenPos(ImVec2(x + bar + space, start.y));
  ImGui::BeginDisabled(busy->cancelling);
  if (ImGui::Button("Cancel", ImVec2(button, height))) context.workspace.cancel();
  ImGui::EndDisabled();
  ImGui::SetItemTooltip("Ends `%s` and starts the Python host again", busy->command.c_str());
  return width + space;
}

void ReplPanel::draw_prompt(Context& context) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float full = ImGui::GetContentRegionAvail().x;
  const float busy = draw_busy(context, at.x + full);
  const FontScope font(context.fonts.mono_bold, context.fonts.mono_size);
  const float advance = ImGui::CalcTextSize("0").x, line = ImGui::GetTextLineHeight();
  const float gutter = advance * 3.5F;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float top = at.y + ImGui::GetStyle().FramePadding.y;
  draw->AddText(ImVec2(at.x, top), context.theme.accent, ">");
  const auto more = std::count(field_.value().begin(), field_.value().end(), '\n');
  for (std::ptrdiff_t k = 1; k <= std::min<std::ptrdiff_t>(more, 9); ++k)
    draw->AddText(ImVec2(at.x, top + static_cast<float>(k) * line), context.theme.text_faint, "...");
  ImGui::SetCursorScreenPos(ImVec2(at.x + gutter, at.y));
  CommandField::Look look;
  look.id = "##input";
  look.hint =
      context.workspace.transcript().empty() ? "a command, or Python · Tab completes · help lists all" : "";
  look.width = std::max(context.px(60), full - gutter - busy);
  look.lines = look.history = true;
  if (auto line_typed = field_.draw(context, look)) {
    context.workspace.type(std::move(*line_typed));
    rows_.to_end();
  }
}

void ReplPanel::draw_find(Context& context) {
  if (!find_open_) return;
  const bool asked = std::exchange(find_focus_, false);
  if (asked) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(context.px(240));
  const bool escape = find_active_ && ImGui::IsKeyPressed(ImGuiKey_Escape);
  const std::string before = find_;
  const bool entered = ImGui::InputTextWithHint("##find", "find in the transcript", &find_,
                                                ImGuiInputTextFlags_EnterReturnsTrue);
  find_active_ = ImGui::IsItemActive();
  if (find_ != before || (counted_number_ != taken_number_)) {
    counted_number_ = taken_number_;
    found_ = find_.empty() ? 0 : rows_.count(find_);
  }
  bool next = false, previous = false;
  if (entered) {
    (ImGui::GetIO().KeyShift ? next : previous) = true;  // upwards: what was said last comes first
    find_focus_ = true;
  }
  ImGui::SameLine();
  previous = ImGui::Button("↑##previous") || previous;
  ImGui::SetItemTooltip("Upwards (Enter)");
  ImGui::SameLine(0, context.px(3));
  next = ImGui::Button("↓##next") || next;
  ImGui::SetItemTooltip("Downwards (Shift+Enter)");
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  if (!find_.empty()) {
    text(found_ == 0 ? context.theme.error : context.theme.text_dim,
         found_ == 0 ? std::string("✗ nowhere")
                     : fmt::format("in {} {}", found_, found_ == 1 ? "row" : "rows"));
    ImGui::SameLine();
  }
  const float button = ImGui::CalcTextSize("✕").x + ImGui::GetStyle().FramePadding.x * 2;
  ImGui::SameLine(ImGui::GetWindowContentRegionMax().x - button);
  const bool close = ImGui::Button("✕##close_find");
  if (previous || next) rows_.find(find_, previous);
  if (escape || close) {
    find_open_ = false;
    find_.clear();
    field_.focus();
  }
}

void ReplPanel::draw(Context& context) {
  if (context.state.find && context.state.active == PanelId::repl) find_open_ = find_focus_ = true;
  if (!context.state.repl_input.empty()) {
    field_.set(std::exchange(context.state.repl_input, std::string()));
    field_.focus();
  }
  if (context.state.focus == PanelId::repl) field_.focus();
  draw_find(context);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  take_transcript(context, room.x);
  float prompt = 0;
  {
    const FontScope font(context.fonts.mono, context.fonts.mono_size);
    prompt = field_.height() + ImGui::GetStyle().ItemSpacing.y * 2;
  }
  if (field_.active() && ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_L)) {
    cleared_ = context.workspace.transcript_first() + context.workspace.transcript().size();
    rows_.drop_before(cleared_);
  }
  const auto menu = [&](std::uint64_t entry) {
    const auto& transcript = context.workspace.transcript();
    const std::uint64_t first = context.workspace.transcript_first();
    if (entry >= first && entry - first < transcript.size()) {
      const workspace::TranscriptEntry& at = transcript[static_cast<std::size_t>(entry - first)];
      if (at.kind == Kind::typed || at.kind == Kind::echo) {
        ImGui::Separator();
        if (ImGui::MenuItem("Put into the prompt")) {
          field_.set(at.text);
          field_.focus();
        }
        if (ImGui::MenuItem("Run again")) {
          context.workspace.type(std::string(at.text));  // a copy: the transcript grows
          return;
        }
      }
    }
    ImGui::Separator();
    if (ImGui::MenuItem("Clear the view", "Ctrl+L")) {
      cleared_ = first + transcript.size();
      rows_.drop_before(cleared_);
    }
  };
  const auto styles = looks(context.theme);
  rows_.draw(context, "##transcript", ImVec2(room.x, std::max(context.px(20), room.y - prompt)), styles,
             find_, menu);
  draw_prompt(context);
}

}  // namespace pallascope::views
