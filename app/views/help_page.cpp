#include "app/views/help_page.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "app/views/actions.h"

namespace pallascope::views {
namespace {

constexpr const char* help_id = "Keys and signs###help";
constexpr std::string_view access_letters = "CBPSsROGX";

struct Sign {
  const char* sign;
  const char* means;
  ImU32 Theme::* color;
};

constexpr std::array<Sign, 6> signs{{{"✓", "accepted, holds, passed", &Theme::accepted},
                                     {"✗", "refused, does not hold, failed", &Theme::refused},
                                     {"–", "not reached: an earlier condition decided", &Theme::text_dim},
                                     {"!", "a warning", &Theme::warning},
                                     {">", "a command that you typed", &Theme::accent},
                                     {"›", "the command that does what you clicked", &Theme::text_dim}}};

/// A key as it looks on a keyboard; returns its width.
float draw_key(const Context& context, ImVec2 at, std::string_view label) {
  const FontScope font(context.fonts.mono, context.fonts.small_size);
  const ImVec2 size = ImGui::CalcTextSize(label.data(), label.data() + label.size());
  const float pad = context.px(6), height = size.y + context.px(4),
              width = std::max(size.x + pad * 2, height);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), context.theme.field, context.px(4));
  draw->AddRect(at, ImVec2(at.x + width, at.y + height), context.theme.border_strong, context.px(4));
  draw->AddText(ImVec2(at.x + (width - size.x) / 2, at.y + context.px(2)), context.theme.text, label.data(),
                label.data() + label.size());
  return width;
}

/// `?  F1` is two keys; `Ctrl++` is one.
void draw_keys(const Context& context, ImVec2 at, std::string_view keys) {
  while (!keys.empty()) {
    const std::size_t end = std::min(keys.find(' '), keys.size());
    if (end > 0) at.x += draw_key(context, at, keys.substr(0, end)) + context.px(4);
    keys.remove_prefix(std::min(end + 1, keys.size()));
  }
}

void heading(const Context& context, const char* label) {
  ImGui::Dummy(ImVec2(0, context.px(3)));
  const FontScope font(context.fonts.bold, context.fonts.ui_size);
  text(context.theme.text, label);
}

void key_row(const Context& context, const Action& action) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float keys = context.px(118), width = ImGui::GetContentRegionAvail().x, height = context.px(18);
  draw_keys(context, at, action.keys);
  ImGui::SetCursorScreenPos(ImVec2(at.x + keys, at.y + (height - ImGui::GetTextLineHeight()) / 2));
  text_cut(context.theme.text_dim, action.name, width - keys);
  ImGui::SetCursorScreenPos(ImVec2(at.x, at.y + height));
  ImGui::Dummy(ImVec2(0, 0));
}

void keys_of(const Context& context, std::string_view group) {
  bool first = true;
  for (const Action& action : actions()) {
    if (group != action.group || *action.keys == '\0') continue;
    if (std::exchange(first, false)) heading(context, action.group);
    key_row(context, action);
  }
}

void draw_signs(const Context& context) {
  heading(context, "How a load or store walks memory");
  if (ImGui::BeginTable("##access", 2, ImGuiTableFlags_None)) {
    for (const char letter : access_letters) {
      ImGui::TableNextColumn();
      access_badge(context, letter);
      ImGui::SameLine();
      text(context.theme.text_dim, access_name(letter));
    }
    ImGui::EndTable();
  }
  heading(context, "Signs");
  for (const Sign& sign : signs) {
    const float left = ImGui::GetCursorPosX();
    {
      const FontScope font(context.fonts.mono_bold, context.fonts.mono_size);
      text(context.theme.*sign.color, sign.sign);
    }
    ImGui::SameLine();
    ImGui::SetCursorPosX(left + context.px(24));
    text_cut(context.theme.text_dim, sign.means, ImGui::GetContentRegionAvail().x);
  }
}

}  // namespace

void draw_help_page(Context& context) {
  if (std::exchange(context.state.help, false)) ImGui::OpenPopup(help_id);
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const ImVec2 size(std::min(context.px(880), viewport->WorkSize.x - context.px(40)),
                    std::min(context.px(690), viewport->WorkSize.y - context.px(60)));
  ImGui::SetNextWindowPos(
      ImVec2(viewport->WorkPos.x + viewport->WorkSize.x / 2, viewport->WorkPos.y + viewport->WorkSize.y / 2),
      0, ImVec2(0.5F, 0.5F));
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(context.px(22), context.px(16)));
  ImGui::PushStyleVar(ImGuiStyleVar_PopupRounding, context.px(8));
  ImGui::PushStyleVar(ImGuiStyleVar_PopupBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, context.theme.border_strong);
  const bool open = ImGui::BeginPopup(help_id, ImGuiWindowFlags_NoMove);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(3);
  if (!open) return;
  if (ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  {
    const FontScope font(context.fonts.bold, context.fonts.title_size);
    text(context.theme.text, "Keys and signs");
  }
  ImGui::SameLine(ImGui::GetWindowContentRegionMax().x - ImGui::CalcTextSize("Close").x -
                  ImGui::GetStyle().FramePadding.x * 2);
  if (ImGui::Button("Close")) ImGui::CloseCurrentPopup();
  ImGui::SetItemTooltip("Esc");
  if (ImGui::BeginTable("##columns", 2, ImGuiTableFlags_SizingStretchSame, ImVec2(0, 0), 0)) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    for (const char* group : {"Step", "Find and run", "Graph", "Window"}) keys_of(context, group);
    ImGui::TableNextColumn();
    for (const char* group : {"Panels", "In the REPL"}) keys_of(context, group);
    draw_signs(context);
    ImGui::EndTable();
  }
  ImGui::Dummy(ImVec2(0, context.px(4)));
  {
    const FontScope font(context.fonts.ui, context.fonts.small_size);
    text(context.theme.text_faint,
         "Single letters act while no text field has the focus. Every click is echoed in the REPL as the "
         "command that does the same.");
  }
  ImGui::EndPopup();
}

}  // namespace pallascope::views
