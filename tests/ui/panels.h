// What tests of single panels have in common: what is in front, what a field holds, which popup is open.
#pragma once

#include <string>

#include <imgui_internal.h>

#include "tests/ui/support.h"

namespace pallascope::testing {

/// The text in a field that is being typed into; empty for any other.
inline std::string typed_in(ImGuiTestContext* context, const char* field) {
  const ImGuiTestItemInfo item = context->ItemInfo(field);
  const ImGuiInputTextState* state = ImGui::GetInputTextState(item.ID);
  return state != nullptr && ImGui::GetActiveID() == item.ID ? std::string(state->TextA.Data) : std::string();
}

/// Whether a field has the keyboard.
inline bool typing_in(ImGuiTestContext* context, const char* field) {
  return ImGui::GetActiveID() != 0 && ImGui::GetActiveID() == context->ItemInfo(field).ID;
}

inline bool any_popup() {
  return ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
}

/// Whether a panel is drawn: its tab is the one in front.
inline bool in_front(const char* title) {
  const ImGuiWindow* window = ImGui::FindWindowByName(title);
  return window != nullptr && window->Active && (!window->DockIsActive || window->DockTabIsVisible);
}

/// Selects as a panel does, and waits until all panels show it.
inline void select(Window& window, ImGuiTestContext* context, const model::Selection& selection) {
  const views::Theme theme{};
  const views::Fonts fonts{};
  views::Context draw{*window.workspace, window.shell->state(), theme, fonts};
  draw.select(selection);
  IM_CHECK(window.quiet(context));
  context->Yield(2);
}

/// How often the host was asked for something.
inline std::size_t requests_named(const ScriptedHost& host, const std::string& name) {
  std::size_t count = 0;
  for (const report::Json& request : host.requests()) count += request.value("request", "") == name ? 1 : 0;
  return count;
}

}  // namespace pallascope::testing
