// The nested graph: clicks, groups, zoom, search, what a decision marks, boxes that keep their place.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/ui/places.h"
#include "tests/ui/support.h"

namespace pallascope::testing {
namespace {

using model::BoxKind;
using model::Selection;

const model::GraphModel& graph_of(const Window& window) { return window.workspace->graph()->graph; }

/// Until the graph of the present scene is drawn and neither boxes nor the view move.
bool at_rest(ImGuiTestContext* context, Window& window) {
  context->Yield(3);
  return Window::wait(context, [&] {
    return window.workspace->graph() != nullptr && window.workspace->scene() != nullptr &&
           window.workspace->graph()->scene == window.workspace->scene()->number &&
           !window.shell->graph_panel().waiting() && !window.shell->graph_panel().animating();
  });
}
std::optional<ImVec2> place(Window& window, const std::string& key) {
  return window.shell->graph_panel().screen_centre(key);
}
float distance(ImVec2 a, ImVec2 b) { return std::hypot(a.x - b.x, a.y - b.y); }
/// The keys of boxes of a kind that can be clicked, well within the canvas.
std::vector<std::string> keys(ImGuiTestContext* context, Window& window, BoxKind kind) {
  const ImRect canvas = place_of(context, "//Graph/##canvas");
  std::vector<std::string> found;
  for (const model::Box& box : graph_of(window).boxes) {
    const auto at = place(window, box.key);
    if (box.kind == kind && at && at->x > canvas.Min.x + 20 && at->x < canvas.Max.x - 20 &&
        at->y > canvas.Min.y + 20 && at->y < canvas.Max.y - 60)
      found.push_back(box.key);
  }
  return found;
}
void click(ImGuiTestContext* context, ImVec2 at) {
  context->MouseMoveToPos(at);
  context->MouseClick();
  context->Yield();
}
void open_all(ImGuiTestContext* context, Window& window) {
  context->ItemClick("//Graph/##open_all");
  at_rest(context, window);
  context->ItemClick("//Graph/##fit");
  at_rest(context, window);
}

TEST(Graph, AClickSelectsNodesInputsKernels) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    open_all(context, window);
    for (const BoxKind kind : {BoxKind::node, BoxKind::input, BoxKind::kernel}) {
      const auto found = keys(context, window, kind);
      IM_CHECK(!found.empty());
      const std::string key = found[found.size() / 2];
      const auto box = graph_of(window).find(key);
      IM_CHECK(box.has_value());
      const Selection expected =
          model::selection_of(graph_of(window).boxes[*box], *window.workspace->scene()->snapshot);
      IM_CHECK(!model::is_empty(expected));
      context->MouseMoveToPos(*place(window, key));
      context->Yield(2);
      IM_CHECK(window.shell->state().hovered == expected);
      context->MouseClick();
      IM_CHECK(window.quiet(context));
      IM_CHECK(window.shell->state().selection == expected);
    }
  });
}

TEST(Graph, ADoubleClickOpensAGroupWhereItStandsAndClosesIt) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    context->ItemClick("//Graph/##close_all");
    IM_CHECK(at_rest(context, window));
    context->ItemClick("//Graph/##fit");
    IM_CHECK(at_rest(context, window));
    IM_CHECK(graph_of(window).open.empty());
    const auto groups = keys(context, window, BoxKind::group);
    IM_CHECK(!groups.empty());
    const std::string key = groups[0], path = key.substr(2);
    const std::size_t boxes = graph_of(window).boxes.size();
    click(context, *place(window, key));
    IM_CHECK(at_rest(context, window));
    IM_CHECK(window.shell->state().selection == Selection(model::GroupRef{path}));
    IM_CHECK(graph_of(window).open.empty());  // one click only selects
    context->MouseMoveToPos(*place(window, key));
    context->MouseDoubleClick();
    IM_CHECK(at_rest(context, window));
    IM_CHECK(graph_of(window).open.contains(path));
    IM_CHECK(graph_of(window).boxes.size() > boxes);
    IM_CHECK(place(window, key).has_value());  // what was opened is still there, by its title
    context->MouseMoveToPos(*place(window, key));
    context->MouseDoubleClick();
    IM_CHECK(at_rest(context, window));
    IM_CHECK(graph_of(window).open.empty());
    IM_CHECK_EQ(graph_of(window).boxes.size(), boxes);
  });
}

TEST(Graph, AllModulesOpenAndClose) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    context->ItemClick("//Graph/##open_all");
    IM_CHECK(at_rest(context, window));
    const auto& graph = graph_of(window);
    for (const model::Group& group : graph.groups)
      IM_CHECK(group.path.empty() || graph.open.contains(group.path));
    context->ItemClick("//Graph/##close_all");
    IM_CHECK(at_rest(context, window));
    IM_CHECK(graph_of(window).open.empty());
  });
}

TEST(Graph, KernelsAreFramesOrNot) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    context->ItemClick("//Graph/##open_all");
    IM_CHECK(at_rest(context, window));
    const auto kernels = [&] {
      const auto& boxes = graph_of(window).boxes;
      return std::count_if(boxes.begin(), boxes.end(),
                           [](const model::Box& box) { return box.kind == BoxKind::kernel; });
    };
    IM_CHECK(kernels() > 0);
    context->ItemClick("//Graph/##kernels");
    IM_CHECK(at_rest(context, window));
    IM_CHECK_EQ(kernels(), 0);
    context->ItemClick("//Graph/##kernels");
    IM_CHECK(at_rest(context, window));
    IM_CHECK(kernels() > 0);
  });
}

TEST(Graph, TheWheelZoomsAtThePointerAndDraggingMoves) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    open_all(context, window);
    auto& panel = window.shell->graph_panel();
    const auto nodes = keys(context, window, BoxKind::node);
    IM_CHECK(nodes.size() > 3);
    const std::string key = nodes[nodes.size() / 2];
    const ImVec2 at = *place(window, key);
    const float zoom = panel.zoom();
    const Selection selection = window.shell->state().selection;
    context->MouseMoveToPos(at);
    context->MouseWheelY(3);
    context->Yield(2);
    IM_CHECK_GT(panel.zoom(), zoom * 1.3F);
    IM_CHECK(place(window, key).has_value());
    IM_CHECK_LT(distance(*place(window, key), at), 1.5F);
    context->MouseWheelY(-3);
    context->Yield(2);
    IM_CHECK_LT(std::abs(panel.zoom() - zoom), 0.01F);
    IM_CHECK_LT(distance(*place(window, key), at), 1.5F);
    context->MouseDragWithDelta(ImVec2(30, -25));
    context->Yield(2);
    IM_CHECK(place(window, key).has_value());
    IM_CHECK_LT(distance(*place(window, key), ImVec2(at.x + 30, at.y - 25)), 2.0F);
    IM_CHECK(window.shell->state().selection == selection);  // moving is no click
    context->ItemClick("//Graph/##zoom");
    IM_CHECK(at_rest(context, window));
    IM_CHECK_LT(std::abs(panel.zoom() - 1), 0.001F);
  });
}

TEST(Graph, BackspaceUndoesMovesOfTheView) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    open_all(context, window);
    auto& panel = window.shell->graph_panel();
    const auto nodes = keys(context, window, BoxKind::node);
    const std::string key = nodes[nodes.size() / 2];
    const ImVec2 at = *place(window, key);
    const float zoom = panel.zoom();
    context->SleepNoSkip(0.6F, 0.1F);  // what follows is a gesture of its own
    context->MouseMoveToPos(at);
    context->MouseWheelY(3);
    context->SleepNoSkip(0.6F, 0.1F);
    context->KeyPress(ImGuiKey_Space);
    IM_CHECK(at_rest(context, window));
    context->KeyPress(ImGuiKey_Backspace);
    IM_CHECK(at_rest(context, window));
    IM_CHECK_GT(panel.zoom(), zoom * 1.3F);
    context->KeyPress(ImGuiKey_Backspace);
    IM_CHECK(at_rest(context, window));
    IM_CHECK_LT(std::abs(panel.zoom() - zoom), 0.01F);
    IM_CHECK(place(window, key).has_value());
    IM_CHECK_LT(distance(*place(window, key), at), 1.5F);
  });
}

TEST(Graph, SpaceFitsAndFCentres) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    open_all(context, window);
    auto& panel = window.shell->graph_panel();
    const float fitted = panel.zoom();
    const ImRect canvas = place_of(context, "//Graph/##canvas");
    const auto nodes = keys(context, window, BoxKind::node);
    const std::string key = nodes.front();
    click(context, *place(window, key));
    IM_CHECK(window.quiet(context));
    context->MouseMoveToPos(canvas.GetCenter());
    context->MouseWheelY(8);
    context->MouseDragWithDelta(ImVec2(-150, -200));
    context->Yield(2);
    context->KeyPress(ImGuiKey_F);
    IM_CHECK(at_rest(context, window));
    IM_CHECK(place(window, key).has_value());
    IM_CHECK_LT(distance(*place(window, key), canvas.GetCenter()), 12.0F);
    context->KeyPress(ImGuiKey_Space);
    IM_CHECK(at_rest(context, window));
    IM_CHECK_LT(std::abs(panel.zoom() - fitted), 0.01F);
    for (const model::Box& box : graph_of(window).boxes) IM_CHECK(place(window, box.key).has_value());
  });
}

TEST(Graph, FindGoesAroundTheNodesOfAName) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const auto& nodes = window.workspace->scene()->compilation->graph().nodes;
    std::vector<Selection> expected;
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      if (nodes[trace::NodeId(k)].name.find("view") != std::string::npos)
        expected.emplace_back(trace::NodeId(k));
    }
    IM_CHECK(expected.size() > 2);
    click(context, place_of(context, "//Graph/##zoom").GetCenter());
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_F);
    context->Yield(2);
    IM_CHECK_EQ(context->UiContext->ActiveId, context->GetID("//Graph/##find"));
    context->KeyChars("VIEW");
    const auto selected = [&](std::size_t k) {
      return window.quiet(context) && at_rest(context, window) &&
             window.shell->state().selection == expected[k];
    };
    for (std::size_t k = 0; k < expected.size(); ++k) {
      context->KeyPress(ImGuiKey_Enter);
      IM_CHECK(selected(k));
      // It can be seen: the groups that hid it are open.
      IM_CHECK(place(window, "n:" + nodes[std::get<trace::NodeId>(expected[k])].name).has_value());
    }
    context->KeyPress(ImGuiKey_Enter);
    IM_CHECK(selected(0));
    context->KeyPress(ImGuiMod_Shift | ImGuiKey_Enter);
    IM_CHECK(selected(expected.size() - 1));
  });
}

TEST(Graph, ADecisionMarksBothSides) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    window.workspace->type("goto d63");
    IM_CHECK(Window::wait(context, [&] { return window.workspace->scene()->position == 64; }));
    IM_CHECK(window.quiet(context) && at_rest(context, window));
    const model::GraphMarks& marks = window.shell->graph_panel().marks();
    IM_CHECK(marks.pair && !marks.accepted);
    IM_CHECK(!marks.left.boxes.empty() && !marks.right.boxes.empty());
    for (const model::Side* side : {&marks.left, &marks.right}) {
      IM_CHECK(side->speaker >= 0);
      // Both can be seen.
      IM_CHECK(
          place(window, graph_of(window).boxes[static_cast<std::size_t>(side->speaker)].key).has_value());
    }
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(2);
    IM_CHECK(marks.marked.empty() && !marks.pair);
  });
}

TEST(Graph, BoxesKeepTheirPlaceFromDecisionToDecision) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const auto& decisions = window.workspace->scene()->compilation->decisions();
    std::vector<std::size_t> fused;
    for (std::size_t k = 0; k < decisions.size(); ++k) {
      if (decisions[k].kind == schedule::DecisionKind::fuse && decisions[k].accepted) fused.push_back(k);
    }
    IM_CHECK(fused.size() > 3);
    const std::size_t at = fused[fused.size() / 2];
    context->ItemClick("//Graph/##open_all");
    window.workspace->move_to(at);
    IM_CHECK(Window::wait(context, [&] { return window.workspace->scene()->position == at; }));
    IM_CHECK(at_rest(context, window));
    const auto before = window.workspace->graph();
    window.workspace->move_to(at + 1);
    IM_CHECK(Window::wait(context, [&] { return window.workspace->scene()->position == at + 1; }));
    IM_CHECK(at_rest(context, window));
    const auto after = window.workspace->graph();
    IM_CHECK(before != after);
    std::size_t common = 0, moved = 0;
    float dx0 = 0, dy0 = 0;
    for (std::size_t k = 0; k < after->graph.boxes.size(); ++k) {
      const model::Box& box = after->graph.boxes[k];
      const auto old = before->graph.find(box.key);
      if (!old || box.container) continue;
      const auto &a = before->layout.boxes[*old], &b = after->layout.boxes[k];
      const float dx = b.x + b.width / 2 - a.x - a.width / 2, dy = b.y - a.y;
      if (common++ == 0) dx0 = dx, dy0 = dy;
      if (std::hypot(dx - dx0, dy - dy0) > 60) ++moved;
    }
    IM_CHECK(common > 10);
    IM_CHECK_LT(moved * 3, common);
  });
}

}  // namespace
}  // namespace pallascope::testing
