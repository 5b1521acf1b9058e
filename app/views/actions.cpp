#include "app/views/actions.h"

#include <algorithm>
#include <array>

namespace pallascope::views {
namespace {

bool open(const Context& context) { return context.scene() != nullptr; }
bool can_check(const Context& context) { return open(context) && !context.workspace.busy(); }
bool busy(const Context& context) { return context.workspace.busy().has_value(); }
bool has_host(const Context& context) { return context.workspace.has_host(); }
bool can_go_on(const Context& context) {
  return open(context) && context.workspace.wanted_position() < context.scene()->total();
}
bool can_go_back(const Context& context) { return open(context) && context.workspace.wanted_position() > 0; }

template <PanelId id>
void show(Context& context) {
  context.state.start_page = false;
  context.focus(id);
}

constexpr auto table = std::to_array<Action>({
    {"Step", "Next decision", "→", next_decision, can_go_on},
    {"Step", "Previous decision", "←", previous_decision, can_go_back},
    {"Step", "Next pass", "]", next_pass, can_go_on},
    {"Step", "Previous pass", "[", previous_pass, can_go_back},
    {"Step", "To the start, before all decisions", "",
     [](Context& c) {
       c.workspace.move_to(0);
       c.select_silently({});
     },
     can_go_back},
    {"Step", "To the end, after all decisions", "",
     [](Context& c) {
       if (c.scene()->total() > 0) c.go_to_decision(schedule::DecisionId(c.scene()->total() - 1));
     },
     can_go_on},
    {"Step", "Back to where I was", "Alt+←", [](Context& c) { c.state.go_back = true; },
     [](const Context& c) { return !c.state.back.empty(); }},
    {"Step", "Forward again", "Alt+→", [](Context& c) { c.state.go_forward = true; },
     [](const Context& c) { return !c.state.forward.empty(); }},
    {"Step", "Select nothing", "Esc", [](Context& c) { c.select_silently({}); }, open},

    {"Find and run", "Go to anything", "Ctrl+P", [](Context& c) { c.state.go_to = true; }, open},
    {"Find and run", "All commands and actions", "Ctrl+Shift+P", nullptr, nullptr},
    {"Find and run", "Find in this panel", "Ctrl+F", nullptr, nullptr},
    {"Find and run", "Run and compare with PyTorch", "F5", run_and_compare, can_check},
    {"Find and run", "Cancel what runs", "", [](Context& c) { c.workspace.cancel(); }, busy},
    {"Find and run", "Restart the Python host", "", [](Context& c) { c.workspace.restart_host(); }, has_host},
    {"Find and run", "Open a file or an example", "Ctrl+O", [](Context& c) { c.state.start_page = true; },
     nullptr},

    {"Panels", "Show Why", "w", show<PanelId::why>, open},
    {"Panels", "Show Index", "x", show<PanelId::index>, open},
    {"Panels", "Type into the REPL", "`", show<PanelId::repl>, open},
    {"Panels", "Show the inspector", "p", show<PanelId::inspector>, open},
    {"Panels", "Show what the last decision changed in the source", "d",
     [](Context& c) {
       c.state.difference = !c.state.difference;
       show<PanelId::source>(c);
     },
     open},
    {"Panels", "Show the summary", "", show<PanelId::summary>, open},
    {"Panels", "Show the decisions", "", show<PanelId::decisions>, open},
    {"Panels", "Show the graph", "", show<PanelId::graph>, open},
    {"Panels", "Show the source", "", show<PanelId::source>, open},
    {"Panels", "Show Check", "", show<PanelId::check>, open},
    {"Panels", "Show the host's log", "", show<PanelId::log>, open},
    {"Panels", "Open or close the drawer", "q", [](Context& c) { c.state.toggle_drawer = true; }, open},

    {"Graph", "Fit the graph", "Space", [](Context& c) { c.state.fit = true; }, open},
    {"Graph", "Undo the last move of the view", "Backspace", [](Context& c) { c.state.view_back = true; }, open},
    {"Graph", "Centre the selection in the graph", "f", [](Context& c) { c.state.centre = true; }, open},

    {"Window", "Light or dark", "", [](Context& c) { c.state.dark = !c.state.dark; }, nullptr},
    {"Window", "Larger", "Ctrl++", [](Context& c) { zoom(c.state, 1); }, nullptr},
    {"Window", "Smaller", "Ctrl+-", [](Context& c) { zoom(c.state, -1); }, nullptr},
    {"Window", "As large as at first", "Ctrl+0", [](Context& c) { c.state.scale = 1; }, nullptr},
    {"Window", "Put all panels back in place", "", [](Context& c) { c.state.reset_layout = true; }, open},
    {"Window", "Keys and signs", "?  F1", [](Context& c) { c.state.help = true; }, nullptr},

    {"In the REPL", "Run the line", "Enter", nullptr, nullptr},
    {"In the REPL", "Complete the word; choose", "Tab", nullptr, nullptr},
    {"In the REPL", "What was typed before", "↑ ↓", nullptr, nullptr},
    {"In the REPL", "Another line of Python", "Ctrl+Enter", nullptr, nullptr},
    {"In the REPL", "Clear the view", "Ctrl+L", nullptr, nullptr},
    {"In the REPL", "Leave the line as it is", "Esc", nullptr, nullptr},
});

}  // namespace

std::span<const Action> actions() { return table; }

void next_decision(Context& context) {
  if (can_go_on(context)) context.go_to_decision(schedule::DecisionId(context.workspace.wanted_position()));
}

void previous_decision(Context& context) {
  if (!can_go_back(context)) return;
  const std::size_t position = context.workspace.wanted_position();
  if (position > 1) {
    context.go_to_decision(schedule::DecisionId(position - 2));
  } else {
    context.workspace.move_to(0);
    context.select_silently({});
  }
}

void next_pass(Context& context) {
  if (!open(context)) return;
  const auto& decisions = context.scene()->compilation->decisions();
  const std::size_t position = context.workspace.wanted_position(), total = decisions.size();
  if (total == 0) return;
  std::size_t k = std::min(position, total - 1);
  const schedule::DecisionKind kind = decisions[position > 0 ? position - 1 : 0].kind;
  while (k + 1 < total && decisions[k].kind == kind) ++k;
  context.go_to_decision(schedule::DecisionId(k));
}

void previous_pass(Context& context) {
  if (!can_go_back(context)) return;
  const auto& decisions = context.scene()->compilation->decisions();
  std::size_t k = context.workspace.wanted_position() - 1;
  if (k > 0 && decisions[k].kind != decisions[k - 1].kind) --k;
  while (k > 0 && decisions[k - 1].kind == decisions[k].kind) --k;
  context.go_to_decision(schedule::DecisionId(k));
}

void run_and_compare(Context& context) {
  if (can_check(context)) context.workspace.click(check_command);
}

void zoom(UiState& state, int steps) {
  state.scale = std::clamp(state.scale + 0.1F * static_cast<float>(steps), workspace::smallest_scale,
                           workspace::largest_scale);
}

}  // namespace pallascope::views
