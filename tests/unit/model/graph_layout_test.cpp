// The nested graph and its layout: what is visible, and that pictures are sound.
#include "app/model/layout.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "core/report/lookup.h"
#include "tests/unit/model/support.h"

namespace pallascope::model {
namespace {

constexpr float slack = 0.05F;  // of float arithmetic at coordinates of some thousands

bool within(const GraphModel& graph, int box, int container) {
  for (; box >= 0; box = graph.boxes[static_cast<std::size_t>(box)].parent) {
    if (box == container) return true;
  }
  return false;
}

/// Whether a line runs through the inside of a rectangle.
bool crosses(Point a, Point b, float x, float y, float width, float height) {
  float low = 0, high = 1;
  const auto clip = [&](float from, float to, float least, float most) {
    if (std::abs(to - from) < 1e-4F) return from > least && from < most;
    float enter = (least - from) / (to - from), leave = (most - from) / (to - from);
    if (enter > leave) std::swap(enter, leave);
    low = std::max(low, enter);
    high = std::min(high, leave);
    return low < high;
  };
  constexpr float inner = 0.5F;
  return clip(a.x, b.x, x + inner, x + width - inner) && clip(a.y, b.y, y + inner, y + height - inner) && high - low > 1e-4F;
}

/// No overlap of siblings, containers around their boxes, edges from bottom to top and down, through nothing.
void expect_sound(const GraphModel& graph, const Layout& layout, std::size_t every_edge = 1) {
  ASSERT_EQ(layout.boxes.size(), graph.boxes.size());
  ASSERT_EQ(layout.edges.size(), graph.edges.size());
  std::map<int, std::vector<std::size_t>> siblings;
  for (std::size_t k = 0; k < graph.boxes.size(); ++k) {
    const PlacedBox& b = layout.boxes[k];
    EXPECT_GT(b.width, 0) << graph.boxes[k].key;
    EXPECT_GT(b.height, 0) << graph.boxes[k].key;
    EXPECT_GE(b.x, layout.x - slack);
    EXPECT_GE(b.y, layout.y - slack);
    EXPECT_LE(b.x + b.width, layout.x + layout.width + slack);
    EXPECT_LE(b.y + b.height, layout.y + layout.height + slack);
    siblings[graph.boxes[k].parent].push_back(k);
    if (graph.boxes[k].parent < 0) continue;
    const PlacedBox& around = layout.boxes[static_cast<std::size_t>(graph.boxes[k].parent)];
    EXPECT_GE(b.x, around.x - slack) << graph.boxes[k].key;
    EXPECT_GE(b.y, around.y - slack) << graph.boxes[k].key;
    EXPECT_LE(b.x + b.width, around.x + around.width + slack) << graph.boxes[k].key;
    EXPECT_LE(b.y + b.height, around.y + around.height + slack) << graph.boxes[k].key;
    EXPECT_FALSE(crosses({b.x, b.y}, {b.x + b.width, b.y + b.height}, around.title_x, around.title_y, around.title_width, around.title_height))
        << graph.boxes[k].key << " covers its container's title";
  }
  for (auto& [parent, boxes] : siblings) {
    std::sort(boxes.begin(), boxes.end(), [&](std::size_t a, std::size_t b) { return layout.boxes[a].x < layout.boxes[b].x; });
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      const PlacedBox& a = layout.boxes[boxes[i]];
      for (std::size_t j = i + 1; j < boxes.size() && layout.boxes[boxes[j]].x < a.x + a.width - slack; ++j) {
        const PlacedBox& b = layout.boxes[boxes[j]];
        EXPECT_FALSE(b.y < a.y + a.height - slack && a.y < b.y + b.height - slack)
            << graph.boxes[boxes[i]].key << " overlaps " << graph.boxes[boxes[j]].key;
      }
    }
  }
  for (std::size_t k = 0; k < graph.edges.size(); k += every_edge) {
    const Edge& edge = graph.edges[k];
    const PlacedEdge& placed = layout.edges[k];
    const std::string name = graph.boxes[static_cast<std::size_t>(edge.from)].key + " -> " + graph.boxes[static_cast<std::size_t>(edge.to)].key;
    ASSERT_GE(placed.points.size(), 2U) << name;
    const PlacedBox &from = layout.boxes[static_cast<std::size_t>(edge.from)], &to = layout.boxes[static_cast<std::size_t>(edge.to)];
    EXPECT_NEAR(placed.points.front().y, from.y + from.height, slack) << name;
    EXPECT_NEAR(placed.points.back().y, to.y, slack) << name;
    EXPECT_TRUE(placed.points.front().x >= from.x - slack && placed.points.front().x <= from.x + from.width + slack) << name;
    EXPECT_TRUE(placed.points.back().x >= to.x - slack && placed.points.back().x <= to.x + to.width + slack) << name;
    for (std::size_t p = 0; p + 1 < placed.points.size(); ++p) {
      const Point a = placed.points[p], b = placed.points[p + 1];
      EXPECT_TRUE(placed.upward || b.y >= a.y - slack) << name;
      for (std::size_t other = 0; other < graph.boxes.size(); ++other) {
        const PlacedBox& box = layout.boxes[other];
        const auto id = static_cast<int>(other);
        const bool foreign = !within(graph, edge.from, id) && !within(graph, edge.to, id);
        EXPECT_FALSE(foreign && crosses(a, b, box.x, box.y, box.width, box.height)) << name << " runs through " << graph.boxes[other].key;
        EXPECT_FALSE(graph.boxes[other].container && crosses(a, b, box.title_x, box.title_y, box.title_width, box.title_height))
            << name << " runs through the title of " << graph.boxes[other].key;
      }
    }
  }
}

std::set<std::string> keys(const GraphModel& graph) {
  std::set<std::string> found;
  for (const Box& box : graph.boxes) found.insert(box.key);
  return found;
}

const std::map<std::string, std::string> modules{{"sin", "h.0.attn"}, {"sum_1", "h.0.attn"}, {"div", "h.0.attn"},
                                                 {"mm", "h.0.mlp"},   {"relu", "h.0.mlp"}};

OpenGroups all_open(const session::Compilation& compilation) {
  OpenGroups open;
  for (const Group& group : graph_model(compilation, *compilation.last(), {}).groups) open.insert(group.path);
  return open;
}

const Edge* edge(const GraphModel& graph, const std::string& from, const std::string& to) {
  const auto a = graph.find(from), b = graph.find(to);
  for (const Edge& e : graph.edges) {
    if (a && b && e.from == static_cast<int>(*a) && e.to == static_cast<int>(*b)) return &e;
  }
  return nullptr;
}

TEST(GraphModel, OpensCollapsedWithLiftedEdges) {
  const CompilationPointer compilation = compile(rows(), modules);
  const GraphModel graph = graph_model(*compilation, *compilation->last(), {});
  // `h` holds only `h.0`, so they are one group; permute and cos are of no module.
  ASSERT_TRUE(graph.find("g:h.0").has_value());
  const Box& group = graph.boxes[*graph.find("g:h.0")];
  EXPECT_EQ(group.label, "h.0");
  EXPECT_EQ(group.nodes, 5U);
  EXPECT_FALSE(group.container);
  EXPECT_FALSE(graph.find("n:sin").has_value());
  EXPECT_TRUE(graph.find("n:cos").has_value());
  EXPECT_EQ(graph.visible_nodes, 2U);
  EXPECT_NE(edge(graph, "in:0", "g:h.0"), nullptr);
  EXPECT_NE(edge(graph, "g:h.0", "n:permute"), nullptr);
  EXPECT_NE(edge(graph, "g:h.0", "out:0"), nullptr);
  EXPECT_EQ(edge(graph, "g:h.0", "g:h.0"), nullptr);
}

TEST(GraphModel, OpenGroupsHoldKernelsThatHoldNodes) {
  const CompilationPointer compilation = compile(rows(), modules);
  GraphOptions options;
  options.open = {"h.0", "h.0.attn"};
  const GraphModel graph = graph_model(*compilation, *compilation->last(), options);
  const Box& sum = graph.boxes[graph.find("n:sum_1").value()];
  ASSERT_GE(sum.parent, 0);
  const Box& kernel = graph.boxes[static_cast<std::size_t>(sum.parent)];
  EXPECT_EQ(kernel.kind, BoxKind::kernel);
  EXPECT_EQ(kernel.kernel, sum.kernel);
  ASSERT_GE(kernel.parent, 0);
  EXPECT_EQ(graph.boxes[static_cast<std::size_t>(kernel.parent)].key, "g:h.0.attn");
  EXPECT_TRUE(graph.find("g:h.0.mlp").has_value());
  EXPECT_FALSE(graph.find("n:mm").has_value());
  const Edge* read = edge(graph, "n:div", "g:h.0.mlp");
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->bytes, 4 * 8 * 4);
  EXPECT_EQ(read->uses, 1U);
  for (std::size_t k = 0; k < graph.boxes.size(); ++k) {
    EXPECT_LT(graph.boxes[k].parent, static_cast<int>(k)) << "a container stands before what it holds";
    const int above = graph.boxes[k].parent < 0 ? -1 : graph.boxes[static_cast<std::size_t>(graph.boxes[k].parent)].depth;
    EXPECT_EQ(graph.boxes[k].depth, above + 1);
  }
}

TEST(GraphModel, EveryNodeIsStoodFor) {
  const CompilationPointer compilation = gpt2();
  for (const bool open : {false, true}) {
    GraphOptions options;
    if (open) options.open = all_open(*compilation);
    const GraphModel graph = graph_model(*compilation, *compilation->last(), options);
    for (std::size_t k = 0; k < graph.box_of_node.size(); ++k) {
      ASSERT_GE(graph.box_of_node[k], 0);
      const Box& box = graph.boxes[static_cast<std::size_t>(graph.box_of_node[k])];
      EXPECT_FALSE(box.container);
      EXPECT_TRUE(!open || box.node == trace::NodeId(k)) << box.key;
    }
    std::set<std::pair<int, int>> seen;
    for (const Edge& e : graph.edges) {
      EXPECT_TRUE(seen.insert({e.from, e.to}).second) << "edges are counted, not repeated";
      EXPECT_GT(e.uses, 0U);
    }
    EXPECT_EQ(keys(graph).size(), graph.boxes.size()) << "keys are unique";
  }
}

TEST(GraphModel, KeysOutliveADecision) {
  const CompilationPointer compilation = gpt2();
  GraphOptions options;
  options.open = all_open(*compilation);
  const GraphModel before = graph_model(*compilation, *compilation->at(compilation->decisions().size() - 1), options);
  const GraphModel after = graph_model(*compilation, *compilation->last(), options);
  std::set<std::string> a = keys(before), b = keys(after);
  std::vector<std::string> gone;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(gone));
  EXPECT_LE(gone.size(), 4U);
}

TEST(GraphModel, HiddenNodesAreGone) {
  const CompilationPointer compilation = compile(rows());
  GraphOptions options;
  options.hidden = {node(*compilation, "permute")};
  const GraphModel graph = graph_model(*compilation, *compilation->last(), options);
  EXPECT_FALSE(graph.find("n:permute").has_value());
  EXPECT_TRUE(graph.find("n:cos").has_value());
}

TEST(GraphModel, SelectionsFindTheirBoxes) {
  const CompilationPointer compilation = compile(rows(), modules);
  const auto snapshot = compilation->last();
  const GraphModel closed = graph_model(*compilation, *snapshot, {});
  const auto of_sin = boxes_of(closed, *compilation, *snapshot, node(*compilation, "sin"));
  EXPECT_EQ(of_sin, (std::vector{*closed.find("g:h.0")}));
  EXPECT_EQ(groups_above(closed, *compilation, node(*compilation, "sin")), (std::vector<std::string>{"h.0", "h.0.attn"}));
  GraphOptions options;
  options.open = {"h.0", "h.0.attn"};
  const GraphModel open = graph_model(*compilation, *snapshot, options);
  const Box& sin = open.boxes[open.find("n:sin").value()];
  const auto of_kernel = boxes_of(open, *compilation, *snapshot, sin.kernel);
  ASSERT_FALSE(of_kernel.empty());
  EXPECT_EQ(open.boxes[of_kernel.front()].kind, BoxKind::kernel);
  EXPECT_EQ(selection_of(sin, *snapshot), Selection(sin.node));
  EXPECT_EQ(selection_of(open.boxes[*open.find("in:0")], *snapshot), Selection(snapshot->program->input_buffers[0]));
  EXPECT_EQ(selection_of(open.boxes[*open.find("g:h.0")], *snapshot), Selection(GroupRef{"h.0"}));
}

TEST(Layout, OfSmallGraphsIsSound) {
  const CompilationPointer compilation = compile(rows(), modules);
  for (const OpenGroups& open : {OpenGroups{}, OpenGroups{"h.0"}, OpenGroups{"h.0", "h.0.attn"}, OpenGroups{"h.0", "h.0.attn", "h.0.mlp"}}) {
    for (const bool kernels : {false, true}) {
      GraphOptions options;
      options.open = open;
      options.kernels = kernels;
      const GraphModel graph = graph_model(*compilation, *compilation->last(), options);
      const auto layout = lay_out(graph);
      ASSERT_TRUE(layout.has_value());
      expect_sound(graph, *layout);
    }
  }
}

TEST(Layout, OfGpt2IsSoundAtEveryOpening) {
  const CompilationPointer compilation = gpt2();
  const OpenGroups all = all_open(*compilation);
  OpenGroups open;
  for (std::size_t k = 0; k <= all.size(); ++k) {
    for (const std::size_t at : {compilation->schedule().lower_decisions, compilation->decisions().size()}) {
      GraphOptions options;
      options.open = open;
      const GraphModel graph = graph_model(*compilation, *compilation->at(at), options);
      const auto layout = lay_out(graph);
      ASSERT_TRUE(layout.has_value());
      expect_sound(graph, *layout);
    }
    if (k < all.size()) open.insert(*std::next(all.begin(), static_cast<std::ptrdiff_t>(k)));
  }
  std::optional<Layout> layout;
  GraphModel closed = graph_model(*compilation, *compilation->last(), {}), whole;
  print_time("gpt2 collapsed: graph", [&] { closed = graph_model(*compilation, *compilation->last(), {}); });
  print_time("gpt2 collapsed: layout", [&] { layout = lay_out(closed); });
  GraphOptions options;
  options.open = all;
  print_time("gpt2 open: graph", [&] { whole = graph_model(*compilation, *compilation->last(), options); });
  print_time("gpt2 open: layout", [&] { layout = lay_out(whole); });
}

TEST(Layout, IsTheSameEachTimeAndStaysWithItsOwnHints) {
  const CompilationPointer compilation = gpt2();
  GraphOptions options;
  options.open = all_open(*compilation);
  const GraphModel graph = graph_model(*compilation, *compilation->last(), options);
  const Layout first = lay_out(graph).value(), second = lay_out(graph).value();
  const Layout hinted = lay_out(graph, {}, hints_of(graph, first)).value();
  expect_sound(graph, hinted);
  for (std::size_t k = 0; k < first.boxes.size(); ++k) {
    EXPECT_EQ(first.boxes[k].x, second.boxes[k].x);
    EXPECT_EQ(first.boxes[k].y, second.boxes[k].y);
    EXPECT_NEAR(first.boxes[k].y, hinted.boxes[k].y, 1);
  }
}

TEST(Layout, KeepsOrderAcrossADecision) {
  const CompilationPointer compilation = gpt2();
  GraphOptions options;
  options.open = all_open(*compilation);
  const std::size_t count = compilation->decisions().size();
  std::size_t pairs = 0, turned = 0;
  for (std::size_t at = count - 6; at < count; ++at) {
    const GraphModel before = graph_model(*compilation, *compilation->at(at), options), after = graph_model(*compilation, *compilation->at(at + 1), options);
    const Layout old_layout = lay_out(before).value();
    const Layout new_layout = lay_out(after, {}, hints_of(before, old_layout)).value();
    expect_sound(after, new_layout);
    for (std::size_t i = 0; i < after.boxes.size(); ++i) {
      for (std::size_t j = i + 1; j < after.boxes.size(); ++j) {
        const auto a = before.find(after.boxes[i].key), b = before.find(after.boxes[j].key);
        if (!a || !b || after.boxes[i].parent != after.boxes[j].parent || new_layout.boxes[i].y != new_layout.boxes[j].y) continue;
        if (before.boxes[*a].parent != before.boxes[*b].parent || old_layout.boxes[*a].y != old_layout.boxes[*b].y) continue;
        ++pairs;
        turned += (old_layout.boxes[*a].x < old_layout.boxes[*b].x) != (new_layout.boxes[i].x < new_layout.boxes[j].x) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(pairs, 0U);
  EXPECT_LE(turned * 20, pairs) << turned << " of " << pairs;
}

TEST(Layout, StopsWhenAsked) {
  std::stop_source stop;
  stop.request_stop();
  const CompilationPointer compilation = compile(rows());
  EXPECT_FALSE(lay_out(graph_model(*compilation, *compilation->last(), {}), {}, {}, stop.get_token()).has_value());
}

TEST(Layout, FindsTheInnermostBoxAtAPoint) {
  const CompilationPointer compilation = compile(rows());
  const GraphModel graph = graph_model(*compilation, *compilation->last(), {});
  const Layout layout = lay_out(graph).value();
  for (std::size_t k = 0; k < graph.boxes.size(); ++k) {
    if (graph.boxes[k].container) continue;
    EXPECT_EQ(layout.box_at(layout.boxes[k].x + 1, layout.boxes[k].y + 1), k);
  }
  EXPECT_FALSE(layout.box_at(-1e6F, 0).has_value());
}

// ---------------------------------------------------------------------------------------- made-up graphs

int add_box(GraphModel& graph, const std::string& key, int parent, bool container = false) {
  Box box;
  box.key = box.label = key;
  box.sublabel = container ? "" : "f32[2,16,64]";
  box.kind = container ? BoxKind::group : BoxKind::node;
  box.parent = parent;
  box.container = container;
  box.position = graph.boxes.size();
  graph.boxes.push_back(box);
  return static_cast<int>(graph.boxes.size()) - 1;
}

TEST(Layout, ALongEdgeIsStraight) {
  GraphModel graph;
  std::vector<int> chain;
  for (int k = 0; k < 8; ++k) chain.push_back(add_box(graph, "c" + std::to_string(k), -1));
  for (std::size_t k = 0; k + 1 < chain.size(); ++k) graph.edges.push_back({chain[k], chain[k + 1], 1, 0});
  graph.edges.push_back({chain.front(), chain.back(), 1, 0});
  const Layout layout = lay_out(graph).value();
  expect_sound(graph, layout);
  EXPECT_LE(layout.edges.back().points.size(), 4U) << "out, down in one line, in";
}

TEST(Layout, ACycleIsDrawnUpAroundTheSide) {
  GraphModel graph;
  const int group = add_box(graph, "closed group", -1), x = add_box(graph, "x", -1), y = add_box(graph, "y", -1);
  const int inner = add_box(graph, "open", -1, true), z = add_box(graph, "z", inner);
  graph.edges = {{group, x, 1, 0}, {x, y, 1, 0}, {y, group, 1, 0}, {y, z, 1, 0}, {z, x, 1, 0}};
  const Layout layout = lay_out(graph).value();
  expect_sound(graph, layout);
  EXPECT_FALSE(layout.edges[0].upward);
  EXPECT_FALSE(layout.edges[1].upward);
  EXPECT_TRUE(layout.edges[2].upward);
}

TEST(Layout, OnlyEdgesOfACycleGoUp) {
  // b stands before a and reads it: no cycle, so no edge goes up whatever the order.
  GraphModel graph;
  const int b = add_box(graph, "b", -1), a = add_box(graph, "a", -1), c = add_box(graph, "c", -1);
  graph.edges = {{a, b, 1, 0}, {b, c, 1, 0}, {a, c, 1, 0}};
  const Layout layout = lay_out(graph).value();
  expect_sound(graph, layout);
  for (const PlacedEdge& placed : layout.edges) EXPECT_FALSE(placed.upward);
}

TEST(Layout, AnEmptyGraphIsEmpty) {
  const auto layout = lay_out(GraphModel());
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->width, 0);
}

/// `blocks` transformer-like blocks of 25 nodes with residuals over them, in groups or flat; all read one mask.
GraphModel many(int blocks, bool grouped) {
  GraphModel graph;
  const int mask = add_box(graph, "mask", -1);
  int residual = add_box(graph, "x", -1);
  for (int b = 0; b < blocks; ++b) {
    const int group = grouped ? add_box(graph, "h." + std::to_string(b), -1, true) : -1;
    int last = residual;
    std::vector<int> own;
    for (int k = 0; k < 25; ++k) {
      const int id = add_box(graph, "n" + std::to_string(b) + "_" + std::to_string(k), group);
      graph.edges.push_back({k > 3 && k % 4 == 0 ? own[static_cast<std::size_t>(k - 3)] : last, id, 1, 0});
      own.push_back(id);
      if (k == 12) {
        graph.edges.push_back({residual, id, 1, 0});
        graph.edges.push_back({mask, id, 1, 0});
      }
      last = id;
    }
    graph.edges.push_back({residual, last, 1, 0});
    residual = last;
  }
  return graph;
}

TEST(Layout, OfAnyGraphIsSound) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
    GraphModel graph;
    std::vector<int> containers{-1}, leaves;
    for (int k = 0, count = 3 + below(40); k < count; ++k) {
      const int parent = containers[random() % containers.size()];
      const int id = add_box(graph, "b" + std::to_string(k), parent, below(4) == 0);
      (graph.boxes.back().container ? containers : leaves).push_back(id);
    }
    std::set<std::pair<int, int>> pairs;
    for (int k = 0, count = leaves.empty() ? 0 : below(70); k < count; ++k) {
      int from = leaves[random() % leaves.size()], to = leaves[random() % leaves.size()];
      if (from > to && seed % 3 != 0) std::swap(from, to);  // the others have cycles, also through containers
      if (from != to) pairs.insert({from, to});
    }
    for (const auto& [from, to] : pairs) graph.edges.push_back({from, to, 1, 0});
    LayoutMetrics metrics;
    if (seed % 5 == 0) metrics.layered.most_bends = 5;
    const auto layout = lay_out(graph, metrics);
    ASSERT_TRUE(layout.has_value());
    expect_sound(graph, *layout);
    LayoutHints hints = hints_of(graph, *layout);
    if (hints.size() > 3) hints.erase(hints.begin());
    expect_sound(graph, lay_out(graph, metrics, hints).value());
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(Layout, OfFiveThousandNodes) {
  for (const bool grouped : {false, true}) {
    const GraphModel graph = many(200, grouped);
    std::optional<Layout> layout;
    print_time(grouped ? "5,000 nodes in 200 open groups" : "5,000 nodes, flat", [&] { layout = lay_out(graph); });
    ASSERT_TRUE(layout.has_value());
    expect_sound(graph, *layout, 25);
    const LayoutHints hints = hints_of(graph, *layout);
    print_time("  again, with hints", [&] { layout = lay_out(graph, {}, hints); });
    expect_sound(graph, *layout, 97);
  }
}

TEST(Layout, OfFiveThousandNodesWithFarEdges) {
  // Each node also reads one at a distance that grows: places for all would be millions.
  GraphModel graph;
  for (int k = 0; k < 5000; ++k) {
    add_box(graph, "n" + std::to_string(k), -1);
    if (k > 0) graph.edges.push_back({k - 1, k, 1, 0});
    if (k > 10) graph.edges.push_back({k * 7919 % (k - 2), k, 1, 0});
  }
  std::optional<Layout> layout;
  print_time("a chain of 5,000 with as many far edges", [&] { layout = lay_out(graph); });
  ASSERT_TRUE(layout.has_value());
  expect_sound(graph, *layout, 97);
}

TEST(Layout, OfAThousandReadersOfOneValue) {
  GraphModel graph;
  const int x = add_box(graph, "x", -1);
  for (int k = 0; k < 1000; ++k) graph.edges.push_back({x, add_box(graph, "r" + std::to_string(k), -1), 1, 0});
  std::optional<Layout> layout;
  print_time("a thousand readers", [&] { layout = lay_out(graph); });
  ASSERT_TRUE(layout.has_value());
  expect_sound(graph, *layout, 97);
}

}  // namespace
}  // namespace pallascope::model
