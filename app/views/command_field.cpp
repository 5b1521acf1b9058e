#include "app/views/command_field.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <imgui_internal.h>
#include <misc/cpp/imgui_stdlib.h>

#include "app/repl/words.h"
#include "core/report/format.h"

namespace pallascope::views {
namespace {

constexpr std::size_t most_shown = 10;  // candidates; more scroll
constexpr int most_lines = 10;

std::string_view last_line(std::string_view text) {
  const std::size_t newline = text.rfind('\n');
  return newline == std::string_view::npos ? text : text.substr(newline + 1);
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t") == std::string_view::npos; }

/// What the next line of a Python block begins with.
std::string next_indent(std::string_view line) {
  const std::size_t blanks = line.find_first_not_of(' ');
  std::string indent(blanks == std::string_view::npos ? 0 : blanks, ' ');
  const std::size_t end = line.find_last_not_of(" \t");
  if (end != std::string_view::npos && line[end] == ':') indent += "    ";
  return indent;
}

/// Whether Enter goes on with a line rather than finishing the text.
bool goes_on(std::string_view text) {
  if (!repl::is_python(first_line(text)) || !repl::opens_block(first_line(text))) return false;
  return text.find('\n') == std::string_view::npos || !is_blank(last_line(text));
}

void replace(ImGuiInputTextCallbackData& data, std::string_view text) {
  data.DeleteChars(0, data.BufTextLen);
  data.InsertChars(0, text.data(), text.data() + text.size());
  data.CursorPos = data.BufTextLen;
  data.SelectionStart = data.SelectionEnd = data.CursorPos;
}

struct Call {
  CommandField* field;
  void (*edit)(CommandField&, Context&, const CommandField::Look&, ImGuiInputTextCallbackData&);
  Context* context;
  const CommandField::Look* look;
};

int on_event(ImGuiInputTextCallbackData* data) {
  const auto* call = static_cast<const Call*>(data->UserData);
  call->edit(*call->field, *call->context, *call->look, *data);
  return 0;
}

}  // namespace

void CommandField::set(std::string text) {
  text_ = std::move(text);
  recalled_.reset();
  close_candidates();
}

void CommandField::close_candidates() {
  candidates_.clear();
  chosen_.reset();
  picked_.reset();
}

float CommandField::height() const {
  const auto lines = std::min<std::ptrdiff_t>(most_lines, std::count(text_.begin(), text_.end(), '\n') + 1);
  return static_cast<float>(lines) * ImGui::GetTextLineHeight() + ImGui::GetStyle().FramePadding.y * 2;
}

void CommandField::choose(std::size_t which, ImGuiInputTextCallbackData& data) {
  chosen_ = which;
  replace(data, typed_.substr(0, start_) + candidates_[which]);
  shown_text_.assign(data.Buf, static_cast<std::size_t>(data.BufTextLen));
}

void CommandField::complete(Context& context, const Look& look, ImGuiInputTextCallbackData& data) {
  const std::string text(data.Buf, static_cast<std::size_t>(data.BufTextLen));
  if (!candidates_.empty()) {
    choose(chosen_ ? (*chosen_ + 1) % candidates_.size() : 0, data);
    return;
  }
  const std::string until(text, 0, static_cast<std::size_t>(data.CursorPos));
  if (look.lines && repl::is_python(first_line(text))) {
    const std::size_t column = last_line(until).size() % 4;
    data.InsertChars(data.CursorPos, "    " + column);
    return;
  }
  if (data.CursorPos != data.BufTextLen) return;  // only at the end: what is behind the cursor is not known
  const repl::Completion found = context.workspace.complete(std::string(look.before) + until);
  if (found.candidates.empty() || found.start < look.before.size()) return;
  start_ = found.start - look.before.size();
  const std::string word = until.substr(std::min(start_, until.size()));
  std::string common = repl::common_beginning(found.candidates);
  const bool single = found.candidates.size() == 1;
  if (single && repl::is_whole(common) && look.history) common += ' ';
  if (common != word && (single || common.size() > word.size() || !common.starts_with(word)))
    replace(data, until.substr(0, start_) + common);
  if (single) return;
  candidates_ = found.candidates;
  chosen_.reset();
  typed_.assign(data.Buf, static_cast<std::size_t>(data.BufTextLen));
  shown_text_ = typed_;
}

void CommandField::recall(const Context& context, int direction, ImGuiInputTextCallbackData& data) {
  const auto& history = context.workspace.history();
  if (direction < 0) {
    if (history.empty()) return;
    if (!recalled_) draft_.assign(data.Buf, static_cast<std::size_t>(data.BufTextLen));
    const std::size_t next = recalled_ ? *recalled_ + 1 : 0;
    if (next >= history.size()) return;
    recalled_ = next;
  } else {
    if (!recalled_) return;
    if (*recalled_ == 0) {
      recalled_.reset();
      replace(data, draft_);
      return;
    }
    --*recalled_;
  }
  if (*recalled_ < history.size()) replace(data, history[history.size() - 1 - *recalled_]);
}

void CommandField::edit(Context& context, const Look& look, ImGuiInputTextCallbackData& data) {
  if (to_end_) {
    data.CursorPos = data.SelectionStart = data.SelectionEnd = data.BufTextLen;
    to_end_ = false;
  }
  const std::string_view now(data.Buf, static_cast<std::size_t>(data.BufTextLen));
  if (!candidates_.empty() && now != shown_text_) close_candidates();
  const bool up = ImGui::IsKeyPressed(ImGuiKey_UpArrow), down = ImGui::IsKeyPressed(ImGuiKey_DownArrow);
  if (picked_ && *picked_ < candidates_.size()) {
    choose(*picked_, data);
    close_candidates();
  } else if (data.EventFlag == ImGuiInputTextFlags_CallbackCompletion) {
    complete(context, look, data);
  } else if (!candidates_.empty() && (up || down)) {
    const std::size_t count = candidates_.size();
    if (!chosen_)
      choose(down ? 0 : count - 1, data);
    else
      choose((*chosen_ + (down ? 1 : count - 1)) % count, data);
  } else if (look.history && up && on_first_line_) {
    recall(context, -1, data);
  } else if (look.history && down && on_last_line_) {
    recall(context, 1, data);
  }
  const std::string_view after(data.Buf, static_cast<std::size_t>(data.BufTextLen));
  const auto cursor = static_cast<std::size_t>(data.CursorPos);
  on_first_line_ = after.substr(0, cursor).find('\n') == std::string_view::npos;
  on_last_line_ = after.substr(cursor).find('\n') == std::string_view::npos;
}

std::optional<std::string> CommandField::draw(Context& context, const Look& look) {
  const FontScope font(context.fonts.mono, context.fonts.mono_size);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size(look.width, height());
  const std::string before = text_;
  const bool escape = active_ && ImGui::IsKeyPressed(ImGuiKey_Escape);
  const bool listed = !candidates_.empty();
  if (focus_) {
    ImGui::SetKeyboardFocusHere();
    to_end_ = true;
    focus_ = false;
  }
  Call call{this,
            [](CommandField& field, Context& c, const Look& l, ImGuiInputTextCallbackData& data) {
              field.edit(c, l, data);
            },
            &context, &look};
  constexpr ImGuiInputTextFlags flags =
      ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CtrlEnterForNewLine |
      ImGuiInputTextFlags_CallbackCompletion | ImGuiInputTextFlags_CallbackAlways;
  // Of many lines also where one is enough: pasted lines stay lines.
  bool entered = ImGui::InputTextMultiline(look.id, &text_, size, flags, on_event, &call);
  active_ = ImGui::IsItemActive();
  if (text_.empty() && *look.hint != '\0') {
    const ImVec2 padding = ImGui::GetStyle().FramePadding;
    ImGui::GetWindowDrawList()->AddText(ImVec2(at.x + padding.x, at.y + padding.y), context.theme.text_faint,
                                        look.hint);
  }
  if (escape) {
    text_ = before;  // ImGui would take back what was typed
    if (listed) {
      if (chosen_) text_ = typed_;
      focus();
    }
    close_candidates();
    return std::nullopt;
  }
  if (!look.lines && text_.find('\n') != std::string::npos)
    std::replace(text_.begin(), text_.end(), '\n', ' ');
  if (entered) {
    close_candidates();
    focus();
    if (look.lines && goes_on(text_)) {
      text_ += "\n" + next_indent(last_line(text_));
      return std::nullopt;
    }
    std::string result = std::exchange(text_, std::string());
    recalled_.reset();
    while (!result.empty() && (result.back() == '\n' || result.back() == ' ')) result.pop_back();
    if (is_blank(result)) return std::nullopt;
    return result;
  }
  if (!candidates_.empty()) {
    // A press on the list takes the focus away; the click is complete with the release.
    if (active_ || picked_ || ImGui::IsMouseDown(ImGuiMouseButton_Left) ||
        ImGui::IsMouseReleased(ImGuiMouseButton_Left))
      draw_candidates(context, at, size);
    else
      close_candidates();
  }
  return std::nullopt;
}

void CommandField::draw_candidates(Context& context, ImVec2 at, ImVec2 size) {
  const Theme& theme = context.theme;
  const float row = ImGui::GetTextLineHeightWithSpacing();
  float width = context.px(180);
  for (std::size_t k = 0; k < std::min<std::size_t>(candidates_.size(), 200); ++k)
    width = std::max(width, ImGui::CalcTextSize(candidates_[k].c_str()).x + context.px(28));
  width = std::min(width, std::max(context.px(180), size.x));
  const auto shown = static_cast<float>(std::min(most_shown, candidates_.size()));
  const float footer = ImGui::GetTextLineHeightWithSpacing();
  const float height = shown * row + footer + context.px(14);
  const float x = at.x + ImGui::GetStyle().FramePadding.x +
                  ImGui::CalcTextSize(typed_.c_str(), typed_.c_str() + start_).x - context.px(8);
  const bool above =
      at.y - height > ImGui::GetMainViewport()->WorkPos.y && at.y > ImGui::GetMainViewport()->WorkSize.y / 2;
  ImGui::SetNextWindowPos(ImVec2(std::min(x, at.x + size.x - width),
                                 above ? at.y - height - context.px(3) : at.y + size.y + context.px(3)));
  ImGui::SetNextWindowSize(ImVec2(width, height));
  ImGui::PushStyleColor(ImGuiCol_WindowBg, theme.raised);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, context.px(6));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(context.px(5), context.px(5)));
  if (ImGui::Begin("##candidates", nullptr,
                   ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoDocking |
                       ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoFocusOnAppearing |
                       ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoMove)) {
    ImGui::BringWindowToDisplayFront(ImGui::GetCurrentWindow());
    ImGui::BeginChild("##list", ImVec2(0, shown * row), 0, ImGuiWindowFlags_NoNav);
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(candidates_.size()), row);
    if (chosen_) clipper.IncludeItemByIndex(static_cast<int>(*chosen_));
    while (clipper.Step()) {
      for (int k = clipper.DisplayStart; k < clipper.DisplayEnd; ++k) {
        const bool chosen = chosen_ == static_cast<std::size_t>(k);
        ImGui::PushID(k);
        if (ImGui::Selectable("##candidate", chosen)) {
          picked_ = static_cast<std::size_t>(k);
          focus();
        }
        if (chosen) ImGui::ScrollToItem(ImGuiScrollFlags_KeepVisibleEdgeY);
        ImGui::SameLine(context.px(6));
        text_cut(chosen ? theme.text : theme.text_dim, candidates_[static_cast<std::size_t>(k)],
                 width - context.px(24));
        ImGui::PopID();
      }
    }
    ImGui::EndChild();
    const FontScope small(context.fonts.ui, context.fonts.small_size);
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + context.px(6));
    text(theme.text_faint, fmt::format("{} · Tab, ↑↓ choose · Esc", candidates_.size()));
  }
  ImGui::End();
  ImGui::PopStyleVar(3);
  ImGui::PopStyleColor();
}

}  // namespace pallascope::views
