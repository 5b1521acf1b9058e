#include "app/views/go_to.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <imgui_internal.h>
#include <misc/cpp/imgui_stdlib.h>

#include "app/repl/command.h"
#include "app/views/actions.h"
#include "app/views/help_page.h"

namespace pallascope::views {
namespace {

constexpr std::size_t most_hits = 200;  // nobody reads more: one types another letter
constexpr float picker_width = 720, rows_shown = 14;

constexpr const char* go_to_id = "Go to anything###go_to";
constexpr const char* palette_id = "Commands###palette";

/// The text with the matched letters in bold and in the accent, cut at `width`.
void draw_matched(const Context& context, ImVec2 at, float width, const model::SearchItem& item,
                  const std::vector<std::uint32_t>& positions, ImU32 color, bool mono) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const std::string_view text = item.text;
  const float size = ImGui::GetFontSize();
  float x = at.x;
  std::size_t next = 0;
  ImGui::PushClipRect(at, ImVec2(at.x + width, at.y + ImGui::GetTextLineHeightWithSpacing() * 1.3F), true);
  for (std::size_t k = 0; k < text.size() && x < at.x + width;) {
    const bool matched = next < positions.size() && positions[next] == k;
    std::size_t end = k;
    if (matched) {
      while (next < positions.size() && positions[next] == end) ++end, ++next;
    } else {
      end = next < positions.size() ? std::min<std::size_t>(positions[next], text.size()) : text.size();
    }
    ImFont* font = mono ? (matched ? context.fonts.mono_bold : context.fonts.mono)
                        : (matched ? context.fonts.bold : context.fonts.ui);
    const FontScope scope(font, mono ? context.fonts.mono_size : context.fonts.ui_size);
    draw->AddText(font, size, ImVec2(x, at.y), matched ? context.theme.accent : color, text.data() + k,
                  text.data() + end);
    x += ImGui::CalcTextSize(text.data() + k, text.data() + end).x;
    k = end;
  }
  ImGui::PopClipRect();
}

void draw_tag(const Context& context, ImVec2 at, float width, float height, std::string_view label) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), context.theme.field, context.px(3));
  const FontScope font(context.fonts.ui, context.fonts.small_size);
  const ImVec2 size = ImGui::CalcTextSize(label.data(), label.data() + label.size());
  draw->AddText(ImVec2(at.x + (width - size.x) / 2, at.y + (height - size.y) / 2), context.theme.text_dim,
                label.data(), label.data() + label.size());
}

}  // namespace

bool GoTo::begin(Context& context, Picker& picker, const char* id, bool& asked) {
  if (std::exchange(asked, false)) {
    ImGui::OpenPopup(id);
    picker.query.clear();
    picker.found_in.reset();  // found anew
    picker.hits.clear();
    picker.at = 0;
    picker.opened = true;
  }
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float width = std::min(context.px(picker_width), viewport->WorkSize.x - context.px(40));
  ImGui::SetNextWindowPos(
      ImVec2(viewport->WorkPos.x + viewport->WorkSize.x / 2, viewport->WorkPos.y + context.px(74)), 0,
      ImVec2(0.5F, 0));
  ImGui::SetNextWindowSize(ImVec2(width, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(context.px(10), context.px(10)));
  ImGui::PushStyleVar(ImGuiStyleVar_PopupRounding, context.px(8));
  ImGui::PushStyleVar(ImGuiStyleVar_PopupBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, context.theme.border_strong);
  const bool open = ImGui::BeginPopup(
      id, ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(3);
  if (open && ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  return open;
}

void GoTo::find(Picker& picker, const std::shared_ptr<const model::SearchIndex>& index) {
  if (index && picker.found_in == index && picker.found_query == picker.query) return;
  picker.found_in = index;
  picker.found_query = picker.query;
  picker.hits = index ? index->find(picker.query, most_hits) : std::vector<model::SearchHit>();
  picker.at = 0;
  picker.moved = true;
}

template <typename Tag, typename Enabled>
int GoTo::draw_picker(Context& context, Picker& picker, const char* hint, const char* nothing, bool mono,
                      Tag tag, Enabled enabled) {
  const Theme& theme = context.theme;
  if (std::exchange(picker.opened, false)) ImGui::SetKeyboardFocusHere();
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(context.px(10), context.px(7)));
  ImGui::SetNextItemWidth(-1);
  const bool entered =
      ImGui::InputTextWithHint("##query", hint, &picker.query, ImGuiInputTextFlags_EnterReturnsTrue);
  ImGui::PopStyleVar();
  int picked = -1;
  const std::size_t count = picker.hits.size();
  if (count > 0) {
    const auto move = [&](std::size_t by) {
      picker.at = (picker.at + by) % count;
      picker.moved = true;
    };
    if (ImGui::IsKeyPressed(ImGuiKey_DownArrow)) move(1);
    if (ImGui::IsKeyPressed(ImGuiKey_UpArrow)) move(count - 1);
    if (ImGui::IsKeyPressed(ImGuiKey_PageDown))
      picker.at = std::min(count - 1, picker.at + 10), picker.moved = true;
    if (ImGui::IsKeyPressed(ImGuiKey_PageUp))
      picker.at -= std::min<std::size_t>(10, picker.at), picker.moved = true;
    if (entered) picked = static_cast<int>(picker.at);
  } else if (entered) {
    picker.opened = true;  // stays, and the field keeps the focus
  }
  ImGui::Dummy(ImVec2(0, context.px(2)));
  const float height = ImGui::GetTextLineHeight() + context.px(10);
  ImGui::BeginChild("##rows", ImVec2(0, height * rows_shown), 0, ImGuiWindowFlags_NoNav);
  if (count == 0) text(theme.text_dim, nothing);
  const float width = ImGui::GetContentRegionAvail().x;
  const float tag_width = context.px(66);
  if (picker.moved && count > 0) {
    const float y = static_cast<float>(picker.at) * height, view = ImGui::GetWindowHeight();
    if (y < ImGui::GetScrollY()) ImGui::SetScrollY(y);
    if (y + height > ImGui::GetScrollY() + view) ImGui::SetScrollY(y + height - view);
    picker.moved = false;
  }
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, 0));
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(count), height);
  while (clipper.Step()) {
    for (int k = clipper.DisplayStart; k < clipper.DisplayEnd; ++k) {
      const model::SearchHit& hit = picker.hits[static_cast<std::size_t>(k)];
      const model::SearchItem& item = picker.found_in->items()[hit.item];
      const bool usable = enabled(hit.item);
      const ImVec2 at = ImGui::GetCursorScreenPos();
      if (ImGui::InvisibleButton(fmt::format("##row{}", k).c_str(), ImVec2(width, height)) && usable)
        picked = k;
      const bool hovered = ImGui::IsItemHovered(), chosen = static_cast<std::size_t>(k) == picker.at;
      ImDrawList* draw = ImGui::GetWindowDrawList();
      if (chosen)
        draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), theme.accent_soft, context.px(4));
      else if (hovered)
        draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), theme.hover, context.px(4));
      draw_tag(context, ImVec2(at.x + context.px(6), at.y + context.px(3)), tag_width, height - context.px(6),
               tag(hit.item));
      const FontScope font(mono ? context.fonts.mono : context.fonts.ui,
                           mono ? context.fonts.mono_size : context.fonts.ui_size);
      const float y = at.y + (height - ImGui::GetFontSize()) / 2 - context.px(1);
      const float left = at.x + tag_width + context.px(18);
      const float detail = std::min(ImGui::CalcTextSize(item.detail.c_str()).x, width * 0.42F);
      const float right = at.x + width - context.px(10);
      const float room = right - detail - context.px(14) - left;
      draw_matched(context, ImVec2(left, y), room, item, hit.positions,
                   usable ? theme.text : theme.text_faint, mono);
      if (!item.detail.empty()) {
        ImGui::PushStyleColor(ImGuiCol_Text, theme.text_dim);
        ImGui::RenderTextEllipsis(draw, ImVec2(right - detail, y), ImVec2(right + 1, at.y + height),
                                  right + 1, item.detail.c_str(), nullptr, nullptr);
        ImGui::PopStyleColor();
      }
      if (hovered && (ImGui::CalcTextSize(item.text.c_str()).x > room ||
                      ImGui::CalcTextSize(item.detail.c_str()).x > detail + 1))
        ImGui::SetTooltip("%s\n%s", item.text.c_str(), item.detail.c_str());
    }
  }
  ImGui::PopStyleVar();
  ImGui::EndChild();
  if (picked >= 0 && !enabled(picker.hits[static_cast<std::size_t>(picked)].item)) {
    picker.opened = true;
    picked = -1;
  }
  return picked;
}

void GoTo::draw_go_to(Context& context) {
  if (context.state.go_to) context.workspace.request_search();
  if (!begin(context, go_to_, go_to_id, context.state.go_to)) return;
  if (context.scene() != nullptr) context.workspace.request_search();  // the program may have moved
  find(go_to_, context.workspace.search());
  const char* nothing = context.scene() == nullptr    ? "Nothing is open. Ctrl+O opens a file or an example."
                        : !context.workspace.search() ? "…"
                                                      : "Nothing has these letters in this order.";
  const auto tag = [&](std::size_t item) {
    return model::search_kind_name(go_to_.found_in->items()[item].kind);
  };
  const int picked =
      draw_picker(context, go_to_, "Go to a node, kernel, buffer, decision, line of the model or command",
                  nothing, true, tag, [](std::size_t) { return true; });
  if (picked >= 0) {
    const model::SearchItem item =
        go_to_.found_in->items()[go_to_.hits[static_cast<std::size_t>(picked)].item];
    ImGui::CloseCurrentPopup();
    context.state.start_page = false;
    if (item.kind == model::SearchKind::command) {
      run_command(context, item.text);
    } else if (const auto* decision = std::get_if<schedule::DecisionId>(&item.selection)) {
      context.go_to_decision(*decision);
    } else {
      context.select(item.selection);
    }
  }
  ImGui::EndPopup();
}

void GoTo::run_command(Context& context, const std::string& name) {
  const auto command = repl::find_command(name, true);
  if (command.ok() && (*command)->least_words == 0) {
    context.workspace.type(name);
  } else {
    context.state.repl_input = name + " ";
  }
  if (context.scene() != nullptr) {
    context.state.start_page = false;
    context.focus(PanelId::repl);
  } else {
    context.state.start_page = true;  // its field takes commands
  }
}

void GoTo::make_palette(Context& /*context*/) {
  std::vector<model::SearchItem> items;
  for (const Action& action : actions()) {
    if (action.run != nullptr) items.push_back({model::SearchKind::command, action.name, action.keys, {}});
  }
  for (const repl::Command& command : repl::commands()) {
    items.push_back({model::SearchKind::command,
                     command.name + (command.arguments.empty() ? "" : " " + command.arguments),
                     command.summary,
                     {}});
  }
  palette_index_ = std::make_shared<const model::SearchIndex>(std::move(items));
}

void GoTo::draw_palette(Context& context) {
  if (context.state.palette && !palette_index_) make_palette(context);
  if (!begin(context, palette_, palette_id, context.state.palette)) return;
  find(palette_, palette_index_);
  std::vector<const Action*> runnable;
  for (const Action& action : actions()) {
    if (action.run != nullptr) runnable.push_back(&action);
  }
  const auto action_of = [&](std::size_t item) { return item < runnable.size() ? runnable[item] : nullptr; };
  const auto tag = [&](std::size_t item) -> std::string_view {
    return action_of(item) != nullptr ? "window" : "command";
  };
  const auto enabled = [&](std::size_t item) {
    if (const Action* action = action_of(item)) return action->enabled == nullptr || action->enabled(context);
    if (context.scene() != nullptr) return true;
    const std::string& name = repl::commands()[item - runnable.size()].name;
    return name == "open" || name == "trace" || name == "quit";
  };
  const int picked = draw_picker(context, palette_, "What should be done?", "There is nothing like this.",
                                 false, tag, enabled);
  if (picked >= 0) {
    const std::size_t item = palette_.hits[static_cast<std::size_t>(picked)].item;
    ImGui::CloseCurrentPopup();
    if (const Action* action = action_of(item))
      action->run(context);
    else
      run_command(context, repl::commands()[item - runnable.size()].name);
  }
  ImGui::EndPopup();
}

void GoTo::draw_help(Context& context) { draw_help_page(context); }

void GoTo::draw(Context& context) {
  draw_palette(context);
  draw_go_to(context);
  draw_help(context);
}

}  // namespace pallascope::views
