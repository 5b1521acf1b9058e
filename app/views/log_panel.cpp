#include "app/views/log_panel.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <misc/cpp/imgui_stdlib.h>

#include "app/model/find_lines.h"
#include "core/report/format.h"

namespace pallascope::views {
namespace {

enum LineKind : std::uint8_t { plain, warning, error };

std::array<RowLook, 3> looks(const Theme& theme) {
  return {RowLook{mixed(theme.text, theme.text_dim, 0.35F), 0, false, ""},
          RowLook{theme.warning, 0, false, "!"}, RowLook{theme.error, 0, false, "✗"}};
}

/// By the words that Python, XLA and absl begin such lines with.
LineKind kind_of(std::string_view line) {
  const std::string_view head = line.substr(0, 160);
  if (head.starts_with("Traceback") || head.find("Error:") != std::string_view::npos ||
      head.find("Error ") != std::string_view::npos || head.find("Fatal") != std::string_view::npos)
    return error;
  if (head.find("Warning") != std::string_view::npos || head.find("WARNING") != std::string_view::npos)
    return warning;
  return plain;
}

struct StateLook {
  const char* sign;
  const char* word;
  ImU32 color;
};

StateLook look_of(const Theme& theme, const repl::HostStatus& status) {
  using State = repl::HostStatus::State;
  switch (status.state) {
    case State::not_started:
      return {"–", "not started", theme.text_dim};
    case State::starting:
      return {"…", "starting", theme.changed};
    case State::ready:
      return status.busy ? StateLook{"▶", "working", theme.accent} : StateLook{"✓", "ready", theme.passed};
    case State::died:
      return {"✗", "ended", theme.error};
    case State::failed:
      return {"✗", "cannot be started", theme.error};
  }
  return {"", "", theme.text};
}

}  // namespace

void LogPanel::draw_header(Context& context) {
  const Theme& theme = context.theme;
  const repl::HostStatus& status = context.workspace.host();
  if (header_of_ != status || header_.empty()) {
    header_of_ = status;
    std::vector<std::string> parts;
    using State = repl::HostStatus::State;
    if (status.state == State::ready || !status.python.empty()) {
      if (!status.python.empty()) parts.push_back("Python " + status.python);
      if (!status.torch.empty()) parts.push_back("torch " + status.torch);
      if (!status.jax.empty()) parts.push_back("jax " + status.jax);
      if (!status.platform.empty())
        parts.push_back(status.devices.size() > 1
                            ? fmt::format("{} × {}", status.devices.size(), status.platform)
                            : status.platform);
      if (status.starts > 1) parts.push_back(fmt::format("started {} times", status.starts));
    }
    if (status.state != State::ready && !status.text.empty()) parts.insert(parts.begin(), status.text);
    header_ = report::join(parts, "   ");
  }
  const StateLook look = look_of(theme, status);
  ImGui::AlignTextToFramePadding();
  {
    const FontScope bold(context.fonts.bold, context.fonts.ui_size);
    text(look.color, look.sign);
    ImGui::SameLine(0, context.px(6));
    text(theme.text, "Python host");
  }
  ImGui::SameLine(0, context.px(6));
  text(look.color, look.word);
  ImGui::SameLine(0, context.px(16));
  // At the right: the filter and the buttons; what is between is cut.
  const ImGuiStyle& style = ImGui::GetStyle();
  const auto button_width = [&](const char* label) {
    return ImGui::CalcTextSize(label).x + style.FramePadding.x * 2;
  };
  const float filter = context.px(200);
  const std::string count = shown_ == lines_ ? std::string() : fmt::format("{} of {}", shown_, lines_);
  const float count_width = count.empty() ? 0 : ImGui::CalcTextSize(count.c_str()).x + style.ItemSpacing.x;
  const float right = filter + count_width + button_width("Copy all") + button_width("Clear") +
                      button_width("Restart") + 3 * style.ItemSpacing.x;
  const float edge = ImGui::GetWindowContentRegionMax().x;
  const float room = edge - right - ImGui::GetCursorPosX() - style.ItemSpacing.x * 2;
  if (room > context.px(40)) text_cut(theme.text_dim, header_, room);
  ImGui::SameLine(std::max(ImGui::GetCursorPosX(), edge - right));
  if (!count.empty()) {
    text(theme.text_dim, count);
    ImGui::SameLine();
  }
  if (context.state.find && context.state.active == PanelId::log) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(filter);
  ImGui::InputTextWithHint("##filter", "filter lines", &filter_, ImGuiInputTextFlags_EscapeClearsAll);
  ImGui::SameLine();
  const std::string& log = context.workspace.host_log();
  ImGui::BeginDisabled(log.empty());
  if (ImGui::Button("Copy all")) ImGui::SetClipboardText(log.c_str());
  ImGui::SameLine();
  if (ImGui::Button("Clear")) {
    cleared_ = context.workspace.host_log_end();
    taken_end_ = 0;
  }
  ImGui::SetItemTooltip("Hides what is there; what comes next is shown");
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::BeginDisabled(!context.workspace.has_host());
  if (ImGui::Button("Restart")) context.workspace.restart_host();
  ImGui::SetItemTooltip("Ends the Python host and starts a new one; what runs is cancelled");
  ImGui::EndDisabled();
}

void LogPanel::take_log(Context& context, float width) {
  const std::uint64_t end = context.workspace.host_log_end();
  const bool rewrapped = rows_.set_columns(TextRows::columns_for(context, width));
  if (!rewrapped && end == taken_end_ && filter_ == taken_filter_) return;
  taken_end_ = end;
  taken_filter_ = filter_;
  // The log is at most 256 KiB: splitting it anew takes less than a millisecond, and only when it has grown.
  rows_.clear();
  lines_ = shown_ = 0;
  std::string_view log = context.workspace.host_log();
  const std::string needle = model::lower(filter_);
  const std::uint64_t start = end - log.size();
  if (cleared_ > start)
    log.remove_prefix(static_cast<std::size_t>(std::min<std::uint64_t>(cleared_ - start, log.size())));
  while (!log.empty()) {
    const std::size_t newline = log.find('\n');
    const std::string_view line = log.substr(0, newline);
    if (needle.empty() || model::find_lower(line, needle) != std::string_view::npos) {
      rows_.add(lines_, line, kind_of(line));
      ++shown_;
    }
    ++lines_;
    if (newline == std::string_view::npos) break;
    log.remove_prefix(newline + 1);
  }
}

void LogPanel::draw(Context& context) {
  draw_header(context);
  ImGui::Separator();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  take_log(context, room.x);
  if (rows_.size() == 0) {
    ImGui::Dummy(ImVec2(0, context.px(4)));
    text(context.theme.text_faint, lines_ > 0 ? "No line has this in it." : "The host has printed nothing.");
    return;
  }
  const auto styles = looks(context.theme);
  rows_.draw(context, "##log", room, styles, filter_, {});
}

}  // namespace pallascope::views
