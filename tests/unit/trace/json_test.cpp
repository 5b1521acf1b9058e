// The JSON format: round trips, one diagnostic for every way to be wrong, and text damaged at random.
#include "core/trace/json.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/unit/trace/support.h"

namespace pallascope::trace {
namespace {

using testing::expect_problem;
using testing::replace;

const char* const kText = R"json({
 "format": "pallascope.trace", "version": 1, "producer": "torch 2.13.0+cpu", "name": "small",
 "graphs": [{
  "name": "forward", "kind": "inference",
  "inputs": [
   {"kind": "parameter", "name": "p_w", "target": "w", "tensor":
     {"dtype": "f32", "sizes": [16, 16], "strides": [1, 16], "offset": 4, "requires_grad": true}},
   {"kind": "user_input", "name": "x", "target": "x", "tensor":
     {"dtype": "bf16", "sizes": [2, 16], "strides": [16, 1], "offset": 0, "device": "cuda:0"}}],
  "nodes": [
   {"name": "gelu", "target": "aten.gelu.default", "args": [{"value": "x"}],
    "kwargs": {"z_last": 1, "approximate": {"str": "ta\nnh \u00e9"}},
    "outputs": [{"name": "gelu", "tensor": {"dtype": "bf16", "sizes": [2, 16], "strides": [16, 1], "offset": 0}}],
    "list_output": false, "module": "h.0", "module_type": "Gpt",
    "stack": [{"file": "model.py", "line": 26, "function": "forward", "code": "q = s.qkv(x)"}]},
   {"name": "odd", "target": "aten.odd.default",
    "args": [null, true, 2, 0.5, -1e-05, 1e+300, {"float": "inf"}, {"float": "-inf"}, {"float": "nan"},
             {"dtype": "i64"}, {"device": "cpu"}, {"memory_format": "channels_last"}, {"layout": "strided"},
             [], [{"value": "gelu"}, null, [1, 2]], 9223372036854775807, -0.0, 100.0],
    "kwargs": {}, "list_output": true,
    "outputs": [{"name": "getitem", "tensor": {"dtype": "f32", "sizes": [], "strides": [], "offset": 0}},
                {"name": "odd.1", "tensor": null}]}],
  "outputs": [{"kind": "user_output", "value": "getitem"}, {"kind": "user_output", "value": null},
              {"kind": "user_output", "value": null, "constant": 3},
              {"kind": "mutation", "value": "gelu", "target": "x"}]}],
 "sources": {"model.py": "import torch\n"},
 "weights": {"w": {"member": "data/weights/weight_0", "bytes": 1040}}})json";

Result<Program> changed(const std::string& from, const std::string& to) {
  std::string text = kText;
  replace(text, from, to);
  return read_json(text, "small.json");
}

TEST(TraceJson, ReadsWhatItSays) {
  const Result<Program> program = read_json(kText, "small.json");
  ASSERT_TRUE(program.ok()) << pallascope::to_string(program.error());
  EXPECT_EQ(program->name, "small");
  EXPECT_EQ(program->producer, "torch 2.13.0+cpu");
  EXPECT_EQ(program->sources.at("model.py"), "import torch\n");
  EXPECT_EQ(program->weights.at("w").member, "data/weights/weight_0");
  EXPECT_EQ(program->weights.at("w").bytes, 1040);
  const Graph& graph = program->graphs.at(0);
  EXPECT_EQ(
      to_string(graph),
      "graph forward (inference)\n"
      "  p_w: f32[16,16] = parameter w\n"
      "  x: bf16[2,16] = user input\n"
      "  gelu: bf16[2,16] = aten.gelu.default(x, z_last=1, approximate=\"ta\\nnh \xc3\xa9\")\n"
      "  odd: (getitem: f32[], odd.1: None) = aten.odd.default(None, True, 2, 0.5, -1e-05, 1e+300, inf, "
      "-inf, "
      "nan, i64, cpu, channels_last, strided, [], [gelu, None, [1, 2]], 9223372036854775807, -0.0, 100.0)\n"
      "  x <- gelu\n"
      "  return getitem, None, 3\n");
  const TensorMeta& weight = *graph.values[graph.inputs[0].value].tensor;
  EXPECT_EQ(weight.strides, (std::vector<std::int64_t>{1, 16}));
  EXPECT_EQ(weight.storage_offset, 4);
  EXPECT_TRUE(weight.requires_grad);
  EXPECT_EQ(graph.values[graph.inputs[1].value].tensor->device, "cuda:0");
  const Node& gelu = graph.nodes[NodeId(0)];
  EXPECT_EQ(gelu.module_path, "h.0");
  EXPECT_EQ(gelu.module_type, "Gpt");
  ASSERT_EQ(gelu.stack.size(), 1U);
  EXPECT_EQ(gelu.stack[0], (Frame{"model.py", 26, "forward", "q = s.qkv(x)"}));
}

TEST(TraceJson, RoundTripGivesTheSameText) {
  const std::string once = write_json(read_json(kText, "").value());
  const Result<Program> again = read_json(once, "");
  ASSERT_TRUE(again.ok()) << pallascope::to_string(again.error());
  EXPECT_EQ(write_json(*again), once);
  const Program empty;
  EXPECT_EQ(write_json(read_json(write_json(empty), "").value()), write_json(empty));
}

TEST(TraceJson, FloatsAreExact) {
  std::mt19937_64 random(7);
  Program program = read_json(kText, "").value();
  Node& node = program.graphs[0].nodes.edit(NodeId(1));
  node.args.clear();
  std::vector<double> numbers = {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 1e22, 123456789.0, -0.0};
  while (numbers.size() < 2000) {
    const std::uint64_t bits = random();
    double number = 0;
    static_assert(sizeof bits == sizeof number);
    std::memcpy(&number, &bits, sizeof number);
    if (std::isfinite(number)) numbers.push_back(number);
  }
  for (const double number : numbers) node.args.emplace_back(number);
  const Program again = read_json(write_json(program), "").value();
  const Node& read = again.graphs[0].nodes[NodeId(1)];
  ASSERT_EQ(read.args.size(), numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double* number = read.args[i].get<double>();
    ASSERT_NE(number, nullptr) << numbers[i] << " came back as another type";
    EXPECT_EQ(std::memcmp(number, &numbers[i], sizeof *number), 0) << numbers[i];
  }
}

TEST(TraceJson, TextThatIsNotUtf8IsStillReadable) {
  Program program = read_json(kText, "").value();
  program.sources["model.py"] = std::string("a\xff\xc3(\xed\xa0\x80\x01\0b", 10);
  const std::string text = write_json(program);
  const Result<Program> again = read_json(text, "");
  ASSERT_TRUE(again.ok()) << pallascope::to_string(again.error());
  EXPECT_EQ(write_json(*again), text);
}

TEST(TraceJson, NotJson) {
  const auto kind = DiagnosticKind::malformed_json;
  expect_problem(read_json("", "empty.json"), kind, {"the text is empty", "empty.json"});
  expect_problem(read_json(std::string(kText).substr(0, 400), "small.json"), kind,
                 {"ends in the middle", "line 9, column 6 (byte 400)"});
  expect_problem(read_json("{\"a\": nul}", "a.json"), kind, {"is not JSON", "line 1, column"});
  expect_problem(read_json("{\"a\": NaN}", "a.json"), kind, {"is not JSON"});
  expect_problem(read_json("{\"a\": 1e999}", "a.json"), kind, {"1e999"});
  expect_problem(read_json("{\"a\": 1, \"a\": 2}", "a.json"), kind, {"`a` stands twice"});
  expect_problem(read_json(std::string(100000, '['), "a.json"), kind, {"nested"});
  expect_problem(read_json(R"({"a": 1} x)", "a.json"), kind, {"is not JSON"});
}

TEST(TraceJson, AnotherFormatOrVersion) {
  expect_problem(changed("pallascope.trace", "other"), DiagnosticKind::malformed_graph,
                 {"`other`", "small.json: $"});
  expect_problem(changed("\"version\": 1", "\"version\": 2"), DiagnosticKind::schema_version,
                 {"version 2", "version 1"});
  expect_problem(changed("\"version\": 1,", ""), DiagnosticKind::missing_member, {"`version`"});
  expect_problem(read_json("[1]", "a.json"), DiagnosticKind::malformed_graph, {"a list"});
}

TEST(TraceJson, WrongShapes) {
  const auto kind = DiagnosticKind::malformed_graph;
  expect_problem(changed("\"name\": \"gelu\", \"target\"", "\"target\""), DiagnosticKind::missing_member,
                 {"`name`", "$.graphs[0].nodes[0]"});
  expect_problem(changed("[16, 16]", "[16, \"a\"]"), kind, {"an integer is expected", "sizes[1]"});
  expect_problem(changed("[16, 16]", "[16, 1.5]"), kind, {"a number"});
  expect_problem(changed("[16, 16]", "[16, 99999999999999999999]"), kind, {"64 bits", "sizes[1]"});
  expect_problem(changed("[16, 16]", "16"), kind, {"a list is expected", "inputs[0].tensor.sizes"});
  expect_problem(changed("\"kind\": \"parameter\"", "\"kind\": \"weight\""), kind,
                 {"`weight` is no kind of input"});
  expect_problem(changed("\"kind\": \"mutation\"", "\"kind\": \"change\""), kind,
                 {"`change` is no kind of output"});
  expect_problem(changed("\"kind\": \"inference\"", "\"kind\": \"x\""), kind, {"`x` is no kind of graph"});
  expect_problem(changed("\"requires_grad\": true", "\"requires_grad\": 1"), kind, {"true or false"});
  expect_problem(changed("\"line\": 26", "\"line\": -1"), kind, {"no line number"});
  expect_problem(changed("\"kwargs\": {}", "\"kwargs\": []"), kind, {"an object is expected"});
  expect_problem(changed("\"bytes\": 1040", "\"bytes\": -1"), kind, {"-1 bytes"});
  expect_problem(changed("\"name\": \"odd.1\"", "\"name\": \"x\""), kind, {"two values are named `x`"});
  expect_problem(changed("\"name\": \"odd\"", "\"name\": \"gelu\""), kind, {"two nodes are named `gelu`"});
  expect_problem(changed("\"strides\": [1, 16]", "\"strides\": [1]"), kind,
                 {"2 sizes and 1 strides", "graphs[0]"});
  expect_problem(changed("\"constant\": 3", "\"constant\": {\"x\": 3}"), kind, {"expected"});
}

TEST(TraceJson, WrongArguments) {
  const auto kind = DiagnosticKind::malformed_graph;
  expect_problem(changed("{\"float\": \"inf\"}", "{\"float\": \"big\"}"), kind, {"no argument", "args[6]"});
  expect_problem(changed("channels_last", "channels_first"), kind, {"channels_first"});
  expect_problem(changed("{\"device\": \"cpu\"}", "{\"thing\": \"cpu\"}"), kind, {"thing"});
  expect_problem(changed("{\"device\": \"cpu\"}", "\"cpu\""), kind, {"a string is no argument"});
  expect_problem(changed("{\"device\": \"cpu\"}", "{}"), kind, {"an object is no argument"});
  expect_problem(changed("9223372036854775807", "9223372036854775808"), kind, {"64 bits"});
  expect_problem(changed("{\"dtype\": \"i64\"}", "{\"dtype\": \"i63\"}"), DiagnosticKind::unknown_dtype,
                 {"i63"});
  expect_problem(changed("\"dtype\": \"f32\", \"sizes\": [16", "\"dtype\": \"f31\", \"sizes\": [16"),
                 DiagnosticKind::unknown_dtype, {"f31", "inputs[0].tensor.dtype"});
  expect_problem(changed("[{\"value\": \"x\"}]", "[{\"value\": \"getitem\"}]"),
                 DiagnosticKind::undefined_value, {"node `gelu` uses `getitem`"});
  expect_problem(changed("\"value\": \"getitem\"", "\"value\": \"nothing\""), DiagnosticKind::undefined_value,
                 {"`nothing` is not defined", "outputs[0]"});
  expect_problem(changed("\"target\": \"x\"}]}]", "\"target\": \"y\"}]}]"), DiagnosticKind::undefined_value,
                 {"`y` is no input"});
}

TEST(TraceJson, SymbolsAndSubgraphs) {
  expect_problem(changed("{\"value\": \"x\"}", "{\"symbol\": \"s0\"}"), DiagnosticKind::symbolic_size,
                 {"node `gelu`", "`s0`"});
  expect_problem(changed("[16, 16]", "[16, {\"symbol\": \"s1\"}]"), DiagnosticKind::symbolic_size, {"`s1`"});
  expect_problem(changed("\"offset\": 4", "\"offset\": {\"symbol\": \"s2\"}"), DiagnosticKind::symbolic_size,
                 {"`s2`"});
  expect_problem(changed("aten.odd.default", "_operator.getitem"), DiagnosticKind::unsupported, {"getitem"});
  expect_problem(changed("aten.odd.default", "higher_order.cond"), DiagnosticKind::unsupported,
                 {"higher_order.cond"});
}

TEST(TraceJson, EveryPrefixIsADiagnostic) {
  const std::string text = write_json(read_json(kText, "").value());
  for (std::size_t length = 0; length + 2 < text.size(); ++length) {
    const Result<Program> program = read_json(std::string_view(text).substr(0, length), "cut.json");
    ASSERT_FALSE(program.ok()) << length;
    ASSERT_EQ(program.error().kind, DiagnosticKind::malformed_json) << length;
  }
}

TEST(TraceJson, DamagedTextIsReadOrRefused) {
  const std::string text = write_json(read_json(kText, "").value());
  std::mt19937 random(11);
  const std::string likely = "0123456789-.,:{}[]\"eE\\ntf";
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = text;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < changes; ++i) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          damaged[at] = likely[random() % likely.size()];
          break;
        default:
          damaged.erase(at, 1 + random() % 8);
          break;
      }
    }
    const Result<Program> program = read_json(damaged, "damaged.json");
    if (!program.ok()) {
      ASSERT_FALSE(program.error().message.empty());
      ++refused;
    } else {
      const std::string written = write_json(*program);
      ASSERT_EQ(write_json(read_json(written, "").value()), written);
    }
  }
  EXPECT_GT(refused, 10000);
}

TEST(TraceJson, MegabytesAreQuick) {
  Program program = read_json(kText, "").value();
  Graph& graph = program.graphs[0];
  for (int i = 0; i < 20000; ++i) {
    Node node;
    node.name = "relu_" + std::to_string(i);
    node.target = "aten.relu.default";
    node.args = {Argument{ValueId(graph.values.size() - 1)}};
    if (i == 0) node.args = {Argument{ValueId(1)}};
    node.stack = {{"model.py", i, "forward", "x = relu(x)"}};
    node.outputs = {
        graph.values.add({node.name, graph.values[ValueId(1)].tensor, NodeId(graph.nodes.size()), 0})};
    graph.nodes.add(std::move(node));
  }
  const std::string text = write_json(program);
  EXPECT_GT(text.size(), 4U << 20);
  const Result<Program> again = read_json(text, "");
  ASSERT_TRUE(again.ok()) << pallascope::to_string(again.error());
  EXPECT_EQ(write_json(*again), text);
}

}  // namespace
}  // namespace pallascope::trace
