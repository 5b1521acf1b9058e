#include "app/views/context.h"

#include <cstdio>

#include "app/views/link_text.h"
#include "core/codegen/module.h"
#include "core/index/access.h"
#include "core/report/format.h"

namespace pallascope::views {
namespace {

/// Where one is becomes the place that Alt+left goes back to.
void remember_visit(Context& context) {
  constexpr std::size_t most_visits = 200;
  UiState& state = context.state;
  state.back.push_back({state.selection, context.workspace.wanted_position()});
  if (state.back.size() > most_visits) state.back.erase(state.back.begin());
  state.forward.clear();
}

}  // namespace

const char* panel_title(PanelId id) {
  switch (id) {
    case PanelId::summary: return "Summary";
    case PanelId::decisions: return "Decisions";
    case PanelId::graph: return "Graph";
    case PanelId::source: return "Source";
    case PanelId::inspector: return "Inspector";
    case PanelId::why: return "Why";
    case PanelId::index: return "Index";
    case PanelId::check: return "Check";
    case PanelId::log: return "Log";
    case PanelId::repl: return "REPL";
  }
  return "";
}

const workspace::Detail* Context::detail() const {
  const workspace::Detail* detail = workspace.detail().get();
  if (detail == nullptr || scene() == nullptr || detail->scene != scene()->number ||
      detail->selection != state.selection)
    return nullptr;
  return detail;
}

float Context::px(float points) const { return points * ImGui::GetStyle().FontScaleDpi * ImGui::GetStyle().FontScaleMain; }

void Context::select_silently(const model::Selection& selection) {
  state.selection = selection;
  ++state.selection_number;
  workspace.request_detail(selection);
}

void Context::select(const model::Selection& selection) {
  if (scene() == nullptr) return;
  if (state.selection != selection) remember_visit(*this);
  const std::string command = command_for(*scene(), selection);
  if (!command.empty()) workspace.echo(command);
  select_silently(selection);
}

void Context::go_to_decision(schedule::DecisionId id) {
  if (scene() == nullptr) return;
  if (state.selection != model::Selection(id) || workspace.wanted_position() != id.index() + 1) remember_visit(*this);
  select_silently(id);
  workspace.move_to(id.index() + 1);
}

std::string command_for(const workspace::Scene& scene, const model::Selection& selection) {
  if (const auto* node = std::get_if<trace::NodeId>(&selection)) return "show " + report::id_text(*node);
  if (const auto* decision = std::get_if<schedule::DecisionId>(&selection)) return "why " + report::id_text(*decision);
  if (const auto* kernel = std::get_if<schedule::KernelId>(&selection)) return "show " + report::id_text(*kernel);
  if (const auto* buffer = std::get_if<loop::BufferId>(&selection)) return "show " + report::id_text(*buffer);
  if (const auto* access = std::get_if<model::AccessRef>(&selection)) {
    const auto& accesses = scene.snapshot->module.accesses;
    if (access->access >= 0 && static_cast<std::size_t>(access->access) < accesses.size())
      return "index " + report::id_text(accesses[static_cast<std::size_t>(access->access)].kernel);
    return "";
  }
  if (std::holds_alternative<model::StatementRef>(selection)) {
    const auto nodes = model::nodes_of(*scene.compilation, *scene.snapshot, selection);
    return nodes.empty() ? "" : "show " + report::id_text(nodes.front());
  }
  if (const auto* group = std::get_if<model::GroupRef>(&selection)) return "ls nodes " + group->path;
  return "";
}

float text_width(std::string_view value) {
  return ImGui::CalcTextSize(value.data(), value.data() + value.size()).x;
}

void text(ImU32 color, std::string_view value) {
  ImGui::PushStyleColor(ImGuiCol_Text, color);
  ImGui::TextUnformatted(value.data(), value.data() + value.size());
  ImGui::PopStyleColor();
}

void text_cut(ImU32 color, std::string_view value, float width) {
  if (text_width(value) <= width) {
    text(color, value);
    return;
  }
  text(color, std::string(value.substr(0, fitting(value, width - text_width("…")))) + "…");
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("%.*s", static_cast<int>(value.size()), value.data());
}

void access_badge(const Context& context, char letter) {
  const ImU32 color = context.theme.access(letter);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = ImGui::GetTextLineHeight(), width = height * 0.95F;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), faded(color, 0.20F), 3);
  draw->AddRectFilled(at, ImVec2(at.x + context.px(2.5F), at.y + height), color, 1.5F);
  const char label[2] = {letter, 0};
  const ImVec2 size = ImGui::CalcTextSize(label);
  draw->AddText(ImVec2(at.x + (width - size.x) / 2 + 1, at.y + (height - size.y) / 2), color, label);
  ImGui::Dummy(ImVec2(width, height));
}

std::string_view access_name(char letter) {
  switch (letter) {
    case 'C': return "contiguous";
    case 'B': return "broadcast";
    case 'P': return "permuted";
    case 'S': return "sliced";
    case 's': return "strided";
    case 'R': return "reversed";
    case 'O': return "overlapping";
    case 'G': return "gather";
    case 'X': return "general (computed indices)";
    default: return "";
  }
}

}  // namespace pallascope::views
