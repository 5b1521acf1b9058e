// What a selection means in the nested graph, and what a decision changed; the grid that finds what is in a window.
#include "app/model/graph_marks.h"

#include <algorithm>
#include <random>
#include <set>

#include "app/model/grid.h"
#include "app/model/layout.h"
#include "core/schedule/decision.h"
#include "tests/unit/model/support.h"

namespace pallascope::model {
namespace {

GraphModel first_picture(const session::Compilation& compilation, std::size_t at) {
  GraphOptions options;
  options.choose = true;
  return graph_model(compilation, *compilation.at(at), options);
}

std::vector<std::string> names(const GraphModel& graph, const std::vector<std::size_t>& boxes) {
  std::vector<std::string> found;
  for (const std::size_t box : boxes) found.push_back(graph.boxes[box].label);
  return found;
}

/// The first decision of a kind and reason.
const schedule::Decision& decision(const session::Compilation& compilation, schedule::Reason reason) {
  const auto& all = compilation.decisions();
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& d) { return d.reason == reason; });
  EXPECT_NE(at, all.end());
  return at == all.end() ? all.front() : *at;
}

TEST(GraphMarks, ACycleShowsTheCallsBetweenItsSides) {
  const CompilationPointer compilation = gpt2();
  const schedule::Decision& refused = decision(*compilation, schedule::Reason::cycle);
  const std::size_t at = refused.id.index() + 1;
  const GraphModel graph = first_picture(*compilation, at);
  const GraphMarks marks = graph_marks(graph, *compilation, *compilation->at(at), refused.id);
  EXPECT_TRUE(marks.pair);
  EXPECT_FALSE(marks.accepted);
  EXPECT_EQ(marks.verdict, "cycle");
  EXPECT_EQ(marks.left.name, "add (+2)");
  EXPECT_EQ(marks.right.name, "add_1");
  ASSERT_GE(marks.left.speaker, 0);
  EXPECT_EQ(graph.boxes[static_cast<std::size_t>(marks.left.speaker)].label, "add");
  EXPECT_EQ(names(graph, marks.between), (std::vector<std::string>{"linear_2", "gelu", "linear_3"}));
  // layer_norm_1 -> linear_2 -> gelu -> linear_3 -> add_1, each an edge that goes on where the last one ended.
  ASSERT_EQ(marks.chain.size(), 4U);
  for (std::size_t k = 0; k + 1 < marks.chain.size(); ++k)
    EXPECT_EQ(graph.edges[marks.chain[k]].to, graph.edges[marks.chain[k + 1]].from);
  EXPECT_EQ(marks.boxes[static_cast<std::size_t>(graph.edges[marks.chain.front()].from)], BoxMark::left);
  EXPECT_EQ(marks.boxes[static_cast<std::size_t>(graph.edges[marks.chain.back()].to)], BoxMark::right);
  // The value that both use goes straight from the one to the other.
  ASSERT_EQ(marks.direct.size(), 1U);
  EXPECT_EQ(graph.boxes[static_cast<std::size_t>(graph.edges[marks.direct[0]].from)].label, "add");
  for (const std::uint32_t k : marks.marked) EXPECT_NE(marks.boxes[k], BoxMark::none);
}

TEST(GraphMarks, ANodeOnBothSidesIsMarkedForBoth) {
  const CompilationPointer compilation = gpt2();
  const auto& all = compilation->decisions();
  const auto own = std::find_if(all.begin(), all.end(), [](const auto& d) {
    return d.kind == schedule::DecisionKind::fuse && d.left.size() == 1 && d.left == d.right;
  });
  ASSERT_NE(own, all.end());
  const GraphModel graph = first_picture(*compilation, own->id.index() + 1);
  const GraphMarks marks = graph_marks(graph, *compilation, *compilation->at(own->id.index() + 1), own->id);
  ASSERT_EQ(marks.marked.size(), 1U);
  EXPECT_EQ(marks.boxes[marks.marked[0]], BoxMark::both);
  EXPECT_TRUE(marks.direct.empty());
}

TEST(GraphMarks, OtherSelectionsAreMarkedPlainly) {
  const CompilationPointer compilation = gpt2();
  const auto snapshot = compilation->last();
  const GraphModel graph = first_picture(*compilation, compilation->decisions().size());
  const GraphMarks gelu = graph_marks(graph, *compilation, *snapshot, node(*compilation, "gelu"));
  EXPECT_FALSE(gelu.pair);
  ASSERT_EQ(gelu.marked.size(), 1U);
  EXPECT_EQ(graph.boxes[gelu.marked[0]].label, "gelu");
  EXPECT_EQ(gelu.boxes[gelu.marked[0]], BoxMark::selected);
  EXPECT_TRUE(graph_marks(graph, *compilation, *snapshot, {}).marked.empty());
  const GraphMarks lower = graph_marks(graph, *compilation, *snapshot, schedule::DecisionId(0));
  EXPECT_FALSE(lower.pair);
  EXPECT_FALSE(lower.marked.empty());
}

TEST(GraphMarks, ClosedGroupsThatHideASelectionAreNamed) {
  const CompilationPointer compilation = gpt2();
  const schedule::Decision& refused = decision(*compilation, schedule::Reason::cycle);
  const auto snapshot = compilation->last();
  const GraphModel closed = graph_model(*compilation, *snapshot, {});
  const std::vector<std::string> to_open = groups_to_open(closed, *compilation, *snapshot, refused.id);
  ASSERT_FALSE(to_open.empty());
  GraphOptions options;
  options.open = {to_open.begin(), to_open.end()};
  const GraphModel open = graph_model(*compilation, *snapshot, options);
  EXPECT_TRUE(groups_to_open(open, *compilation, *snapshot, refused.id).empty());
  for (const std::uint32_t k : graph_marks(open, *compilation, *snapshot, refused.id).marked)
    EXPECT_NE(open.boxes[k].kind, BoxKind::group);
}

TEST(GraphModel, AnAcceptedFusionMarksWhatItChanged) {
  const CompilationPointer compilation = gpt2();
  const schedule::Decision& fused = decision(*compilation, schedule::Reason::fused_vertical);
  const GraphModel graph = first_picture(*compilation, fused.id.index() + 1);
  std::set<trace::NodeId> changed, sides(fused.left.begin(), fused.left.end());
  sides.insert(fused.right.begin(), fused.right.end());
  for (const Box& box : graph.boxes) {
    if (box.changed && box.node.valid()) changed.insert(box.node);
  }
  EXPECT_EQ(changed, sides);
  const schedule::Decision& refused = decision(*compilation, schedule::Reason::cycle);
  for (const Box& box : first_picture(*compilation, refused.id.index() + 1).boxes)
    EXPECT_FALSE(box.changed) << box.key;
  for (const Box& box : first_picture(*compilation, 0).boxes) EXPECT_FALSE(box.changed) << box.key;
}

TEST(GraphModel, AGroupOfOneNodeIsNoGroup) {
  const CompilationPointer compilation = gpt2();
  const GraphModel graph = first_picture(*compilation, compilation->decisions().size());
  for (const Group& group : graph.groups) {
    EXPECT_TRUE(group.path.empty() || group.nodes > 1) << group.path;
  }
  EXPECT_FALSE(graph.open.empty());
  // The kernel of linear_2 (of mlp.up) and gelu (of mlp) is one container.
  const Box &linear = graph.boxes[graph.find("n:linear_2").value()],
            &gelu = graph.boxes[graph.find("n:gelu").value()];
  ASSERT_GE(gelu.parent, 0);
  EXPECT_EQ(linear.parent, gelu.parent);
  EXPECT_EQ(graph.boxes[static_cast<std::size_t>(gelu.parent)].kind, BoxKind::kernel);
  for (std::size_t k = 0; k < graph.boxes.size(); ++k) {
    const auto inside = std::count_if(graph.boxes.begin(), graph.boxes.end(),
                                      [&](const Box& b) { return b.parent == static_cast<int>(k); });
    EXPECT_TRUE(graph.boxes[k].kind != BoxKind::kernel || inside > 1) << graph.boxes[k].key;
  }
}

TEST(Layout, CutsTextsThatAreTooWide) {
  std::array<float, 128> advance{};
  advance.fill(5);
  EXPECT_EQ(text_width("add_1", advance, 8), 25);
  EXPECT_EQ(text_width("a·b", advance, 8), 18);
  EXPECT_EQ(cut_text("add_1", 25, advance, 8), "add_1");
  EXPECT_EQ(cut_text("add_1", 24, advance, 8), "add…");
  EXPECT_EQ(cut_text("··", 9, advance, 8), "…");
  GraphModel graph;
  Box box;
  box.key = "n";
  box.label = std::string(100, 'w');
  graph.boxes.push_back(box);
  LayoutMetrics metrics;
  metrics.label_advance.fill(5);
  metrics.most_text = 100;
  const Layout layout = lay_out(graph, metrics).value();
  EXPECT_LE(layout.boxes[0].label_width, 100);
  EXPECT_LE(layout.boxes[0].width, 100 + 2 * metrics.box_padding_x);
  EXPECT_TRUE(layout.boxes[0].label.ends_with("…"));
}

TEST(RectangleGrid, FindsWhatAWindowTouchesOnce) {
  std::mt19937 random(7);
  const auto upto = [&random](float limit) { return static_cast<float>(random() % 10000) / 10000 * limit; };
  std::vector<Rectangle> items;
  for (int k = 0; k < 3000; ++k) {
    const float x = upto(5000), y = upto(20000);
    items.push_back({x, y, x + (k % 7 == 0 ? 0 : upto(300)), y + (k % 50 == 0 ? upto(9000) : upto(60))});
  }
  const RectangleGrid grid(items);
  for (int round = 0; round < 200; ++round) {
    const float x = upto(6000) - 500, y = upto(22000) - 1000, size = upto(round % 10 == 0 ? 30000 : 1500);
    const Rectangle window{x, y, x + size, y + size};
    std::vector<std::uint32_t> found, expected;
    grid.find(window, found);
    std::sort(found.begin(), found.end());
    for (std::size_t k = 0; k < items.size(); ++k) {
      if (items[k].touches(window)) expected.push_back(static_cast<std::uint32_t>(k));
    }
    ASSERT_EQ(found, expected) << "round " << round;
  }
  std::vector<std::uint32_t> found;
  RectangleGrid().find({0, 0, 1, 1}, found);
  EXPECT_TRUE(found.empty());
}

}  // namespace
}  // namespace pallascope::model
