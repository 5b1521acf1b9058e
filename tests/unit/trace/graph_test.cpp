#include "core/trace/graph.h"

#include <cmath>
#include <limits>

#include "tests/unit/trace/support.h"

namespace pallascope::trace {
namespace {

using testing::expect_problem;

TensorMeta tensor(std::vector<std::int64_t> sizes, DType dtype = DType::f32) {
  TensorMeta meta;
  meta.dtype = dtype;
  meta.strides = contiguous_strides(sizes);
  meta.sizes = std::move(sizes);
  return meta;
}

/// `add = aten.add.Tensor(x, 2, alpha=0.5)`, returned.
Graph small_graph() {
  Graph graph;
  graph.name = "g";
  graph.kind = "inference";
  const ValueId x = graph.values.add({"x", tensor({2, 16}), NodeId(), 0});
  graph.inputs.push_back({InputKind::user_input, x, "x"});
  Node node;
  node.name = "add";
  node.target = "aten.add.Tensor";
  node.args = {Argument{x}, Argument{std::int64_t{2}}};
  node.kwargs.emplace_back("alpha", Argument{0.5});
  node.outputs = {graph.values.add({"add", tensor({2, 16}), NodeId(0), 0})};
  graph.nodes.add(node);
  graph.outputs.push_back({OutputKind::user_output, node.outputs[0], "", std::nullopt});
  return graph;
}

TEST(TensorMetaTest, SizesAndStrides) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (std::vector<std::int64_t>{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (std::vector<std::int64_t>{4, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), std::vector<std::int64_t>());
  EXPECT_EQ(tensor({2, 3}).numel(), 6);
  EXPECT_EQ(tensor({}).numel(), 1);
  EXPECT_EQ(tensor({2, 3}, DType::bf16).bytes(), 12);
  EXPECT_EQ(to_string(tensor({2, 16, 64})), "f32[2,16,64]");
  EXPECT_EQ(to_string(tensor({}, DType::i64)), "i64[]");
}

TEST(TensorMetaTest, StorageExtent) {
  TensorMeta meta = tensor({2, 3});
  EXPECT_EQ(storage_extent(meta), 6);
  meta.storage_offset = 10;
  EXPECT_EQ(storage_extent(meta), 16);
  meta.strides = {0, 5};  // expanded rows, every fifth element
  EXPECT_EQ(storage_extent(meta), 21);
  meta.sizes = {0, 3};
  EXPECT_EQ(storage_extent(meta), 0);
  meta.sizes = {2, std::int64_t{1} << 62};
  EXPECT_EQ(storage_extent(meta), std::nullopt);
}

TEST(GraphText, OneLineANode) {
  const Graph graph = small_graph();
  EXPECT_EQ(to_string(graph, NodeId(0)), "add: f32[2,16] = aten.add.Tensor(x, 2, alpha=0.5)");
  EXPECT_EQ(to_string(graph),
            "graph g (inference)\n"
            "  x: f32[2,16] = user input\n"
            "  add: f32[2,16] = aten.add.Tensor(x, 2, alpha=0.5)\n"
            "  return add\n");
}

TEST(GraphText, Arguments) {
  const Graph graph = small_graph();
  const auto text = [&](Argument argument) { return to_string(graph, argument); };
  EXPECT_EQ(text({NoneArgument{}}), "None");
  EXPECT_EQ(text({true}), "True");
  EXPECT_EQ(text({std::int64_t{-3}}), "-3");
  EXPECT_EQ(text({1.0}), "1.0");
  EXPECT_EQ(text({1e-5}), "1e-05");
  EXPECT_EQ(text({-std::numeric_limits<double>::infinity()}), "-inf");
  EXPECT_EQ(text({std::nan("")}), "nan");
  EXPECT_EQ(text({std::string("a\"b")}), "\"a\\\"b\"");
  EXPECT_EQ(text({DType::bf16}), "bf16");
  EXPECT_EQ(text({DeviceArgument{"cuda:0"}}), "cuda:0");
  EXPECT_EQ(text({EnumArgument{"layout", "strided"}}), "strided");
  EXPECT_EQ(text({ArgumentList{{ValueId(0)}, {NoneArgument{}}}}), "[x, None]");
}

TEST(GraphText, OutputsOtherThanOneTensor) {
  Graph graph = small_graph();
  Node node;
  node.name = "max_1";
  node.target = "aten.max.dim";
  node.list_output = true;
  node.args = {Argument{ValueId(1)}, Argument{std::int64_t{1}}};
  node.outputs = {graph.values.add({"getitem", tensor({2}), NodeId(1), 0}),
                  graph.values.add({"max_1.1", std::nullopt, NodeId(1), 1})};
  graph.nodes.add(node);
  graph.outputs.push_back({OutputKind::mutation, ValueId(1), "x", std::nullopt});
  graph.outputs.push_back({OutputKind::user_output, ValueId(), "", std::nullopt});
  graph.outputs.push_back({OutputKind::user_output, ValueId(), "", Argument{std::int64_t{3}}});
  EXPECT_EQ(to_string(graph, NodeId(1)), "max_1: (getitem: f32[2], max_1.1: None) = aten.max.dim(add, 1)");
  EXPECT_TRUE(to_string(graph).ends_with("  x <- add\n  return add, None, 3\n")) << to_string(graph);
  EXPECT_TRUE(validate(graph).ok());
}

TEST(NodeTest, ArgumentsByPlaceAndName) {
  const Graph graph = small_graph();
  const Node& node = graph.nodes[NodeId(0)];
  EXPECT_EQ(*node.argument(1, "other")->get<std::int64_t>(), 2);
  EXPECT_EQ(*node.argument(2, "alpha")->get<double>(), 0.5);
  EXPECT_EQ(node.argument(3, "beta"), nullptr);
}

TEST(NodeTest, UserFrameIsTheInnermostOutsideTorch) {
  Node node;
  EXPECT_EQ(node.user_frame(), nullptr);
  node.stack = {
      {"/home/me/train.py", 3, "main", "model(x)"},
      {"/home/me/model.py", 8, "forward", "self.l(x)"},
      {"/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", 134, "forward", "F.linear"}};
  ASSERT_NE(node.user_frame(), nullptr);
  EXPECT_EQ(node.user_frame()->file, "/home/me/model.py");
  node.stack.erase(node.stack.begin(), node.stack.begin() + 2);
  EXPECT_EQ(node.user_frame(), nullptr);
}

TEST(GraphTest, FindsByName) {
  const Graph graph = small_graph();
  EXPECT_EQ(graph.find_node("add"), NodeId(0));
  EXPECT_EQ(graph.find_node("x"), std::nullopt);
  EXPECT_EQ(graph.find_value("x"), ValueId(0));
  EXPECT_EQ(graph.find_value("y"), std::nullopt);
}

/// The validation of `small_graph` with one change.
template <class Change>
Status changed(Change change) {
  Graph graph = small_graph();
  change(graph);
  return validate(graph);
}

TEST(Validate, AcceptsAGraph) { EXPECT_TRUE(validate(small_graph()).ok()); }

TEST(Validate, Names) {
  const auto kind = DiagnosticKind::malformed_graph;
  expect_problem(changed([](Graph& g) { g.values.edit(ValueId(1)).name = "x"; }), kind,
                 {"two values are named `x`"});
  expect_problem(changed([](Graph& g) { g.values.edit(ValueId(1)).name = ""; }), kind, {"value has no name"});
  expect_problem(changed([](Graph& g) { g.nodes.edit(NodeId(0)).name = ""; }), kind, {"node has no name"});
  expect_problem(changed([](Graph& g) { g.nodes.edit(NodeId(0)).target = ""; }), kind, {"no target"});
  expect_problem(changed([](Graph& g) {
                   Node copy = g.nodes.edit(NodeId(0));
                   copy.outputs.clear();
                   g.nodes.add(copy);
                 }),
                 kind, {"two nodes are named `add`"});
  expect_problem(changed([](Graph& g) { g.nodes.edit(NodeId(0)).kwargs.emplace_back("alpha", Argument{1.0}); }),
                 kind, {"`alpha` stands twice", "node add"});
}

TEST(Validate, Definitions) {
  expect_problem(changed([](Graph& g) { g.nodes.edit(NodeId(0)).args[0] = {ValueId(1)}; }),
                 DiagnosticKind::undefined_value, {"`add` is used before", "node add"});
  expect_problem(changed([](Graph& g) { g.nodes.edit(NodeId(0)).args[0] = {ArgumentList{{ValueId(7)}}}; }),
                 DiagnosticKind::undefined_value, {"no value of the graph"});
  const auto kind = DiagnosticKind::malformed_graph;
  expect_problem(changed([](Graph& g) { g.inputs.push_back(g.inputs[0]); }), kind, {"defined twice"});
  expect_problem(changed([](Graph& g) { g.values.edit(ValueId(1)).producer = NodeId(3); }), kind,
                 {"another producer"});
  expect_problem(changed([](Graph& g) { g.values.edit(ValueId(1)).output_index = 1; }), kind,
                 {"another producer"});
  expect_problem(changed([](Graph& g) { g.values.add({"lost", std::nullopt, NodeId(), 0}); }), kind,
                 {"neither an input nor a node", "value lost"});
  expect_problem(changed([](Graph& g) { g.nodes.edit(NodeId(0)).outputs = {ValueId(9)}; }), kind, {"no value"});
  expect_problem(changed([](Graph& g) { g.values.edit(ValueId(0)).tensor.reset(); }), kind, {"no tensor"});
}

TEST(Validate, Metas) {
  const auto kind = DiagnosticKind::malformed_graph;
  const auto change = [](auto edit) {
    return changed([&](Graph& g) { edit(*g.values.edit(ValueId(1)).tensor); });
  };
  expect_problem(change([](TensorMeta& m) { m.strides.pop_back(); }), kind,
                 {"2 sizes and 1 strides", "value add"});
  expect_problem(change([](TensorMeta& m) { m.sizes[0] = -1; }), kind, {"size 0 is -1"});
  expect_problem(change([](TensorMeta& m) { m.strides[1] = -1; }), kind, {"stride 1 is -1"});
  expect_problem(change([](TensorMeta& m) { m.storage_offset = -4; }), kind, {"offset is -4"});
  const std::int64_t huge = std::int64_t{1} << 62;
  expect_problem(change([&](TensorMeta& m) { m.sizes = {huge, huge}; }), DiagnosticKind::storage_bounds,
                 {"64 bits"});
  expect_problem(change([&](TensorMeta& m) { m.strides = {huge, huge}; }), DiagnosticKind::storage_bounds,
                 {"64 bits"});
  expect_problem(change([&](TensorMeta& m) { m.storage_offset = std::numeric_limits<std::int64_t>::max(); }),
                 DiagnosticKind::storage_bounds, {"64 bits"});
}

TEST(Validate, Outputs) {
  const auto output = [](OutputKind kind, ValueId value, std::string target,
                         std::optional<Argument> constant) {
    return changed(
        [&](Graph& g) { g.outputs.push_back({kind, value, std::move(target), std::move(constant)}); });
  };
  const auto kind = DiagnosticKind::malformed_graph;
  EXPECT_TRUE(output(OutputKind::mutation, ValueId(1), "x", std::nullopt).ok());
  expect_problem(output(OutputKind::mutation, ValueId(1), "add", std::nullopt),
                 DiagnosticKind::undefined_value, {"`add` is no input"});
  expect_problem(output(OutputKind::mutation, ValueId(), "x", std::nullopt), kind,
                 {"no tensor to write back"});
  expect_problem(output(OutputKind::user_output, ValueId(5), "", std::nullopt), kind, {"no value"});
  expect_problem(output(OutputKind::user_output, ValueId(1), "", Argument{true}), kind, {"at once"});
  expect_problem(changed([](Graph& g) {
                   g.outputs.push_back({OutputKind::mutation, ValueId(1), "x", std::nullopt});
                   g.outputs.push_back({OutputKind::mutation, ValueId(1), "x", std::nullopt});
                 }),
                 kind, {"listed twice"});
}

}  // namespace
}  // namespace pallascope::trace
