// Where things of the window are for a test: items of child windows, panels in front, menus.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <imgui.h>
#include <imgui_internal.h>
#include <imgui_te_context.h>

namespace pallascope::testing {

/// `id_in(context, "//Decisions/rows", "##d63")`; 0 when that window was never there.
inline ImGuiID id_in(ImGuiTestContext* context, const char* window, const std::string& item) {
  const ImGuiTestItemInfo info = context->WindowInfo(window, ImGuiTestOpFlags_NoError);
  return info.ID == 0 ? 0 : context->GetID(item.c_str(), info.ID);
}
/// Whether an item was drawn in the last frame or two, clipped or not.
inline bool is_there(ImGuiTestContext* context, ImGuiID id) { return id != 0 && context->ItemExists(id); }
inline ImRect place_of(ImGuiTestContext* context, ImGuiTestRef item) {
  return context->ItemInfo(item).RectFull;
}
/// The items of a window whose names begin with `prefix`, from top to bottom.
inline std::vector<std::string> items_in(ImGuiTestContext* context, const char* window,
                                         const std::string& prefix) {
  const ImGuiTestItemInfo info = context->WindowInfo(window, ImGuiTestOpFlags_NoError);
  std::vector<std::pair<float, std::string>> found;
  if (info.ID != 0) {
    ImGuiTestItemList list;
    context->GatherItems(&list, info.ID, 1);
    for (const ImGuiTestItemInfo& item : list) {
      const std::string name = item.DebugLabel;
      if (name.starts_with(prefix)) found.emplace_back(item.RectFull.Min.y, name);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& [y, name] : found) names.push_back(std::move(name));
  return names;
}
/// Whether a panel is the front tab of its dock.
inline bool in_front(const char* panel) {
  const ImGuiWindow* window = ImGui::FindWindowByName(panel);
  return window != nullptr && window->WasActive && (window->DockNode == nullptr || window->DockTabIsVisible);
}
/// How many popups are open.
inline int popups() { return ImGui::GetCurrentContext()->OpenPopupStack.Size; }
/// Clicks an entry of the popup that is open.
inline void choose(ImGuiTestContext* context, const char* entry) {
  context->ItemClick((std::string("//$FOCUSED/") + entry).c_str());
}

}  // namespace pallascope::testing
