// .pt2 archives: what torch.export.save writes (data/, see make_fixtures.py), and the same with one thing wrong.
#include <random>

#include "core/trace/pt2_graph.h"
#include "tests/unit/trace/support.h"

namespace pallascope::trace {
namespace {

using testing::expect_problem;
using testing::fixture;
using testing::Members;
using testing::node_lines;
using testing::read_changed;
using testing::replace;
using testing::TemporaryFolder;
using testing::write_zip;

Graph graph_of(const std::string& name) {
  const Result<Program> program = read_pt2(fixture(name));
  EXPECT_TRUE(program.ok()) << pallascope::to_string(program.error());
  return program->graphs.at(0);
}

/// mlp.pt2 with one change in its model.
Result<Program> changed(const std::string& from, const std::string& to) {
  return read_changed("mlp.pt2", "models/model.json", [&](std::string& text) { replace(text, from, to); });
}

TEST(Pt2, ParametersBuffersConstantsAndPlainInputs) {
  const Result<Program> program = read_pt2(fixture("mlp.pt2"));
  ASSERT_TRUE(program.ok()) << pallascope::to_string(program.error());
  EXPECT_EQ(program->name, "mlp");
  EXPECT_EQ(program->producer, "torch 2.13.0+cpu");
  ASSERT_EQ(program->graphs.size(), 1U);
  EXPECT_EQ(to_string(program->graphs[0]),
            "graph model (export)\n"
            "  p_h_0_weight: f32[8,4] = parameter h.0.weight\n"
            "  p_h_0_bias: f32[8] = parameter h.0.bias\n"
            "  p_h_1_weight: f32[4,8] = parameter h.1.weight\n"
            "  p_h_1_bias: f32[4] = parameter h.1.bias\n"
            "  b_shift: f32[4] = buffer shift\n"
            "  c_scale: f32[4] = constant scale\n"
            "  x: f32[2,4] = user input\n"
            "  linear: f32[2,8] = aten.linear.default(x, p_h_0_weight, p_h_0_bias)\n"
            "  gelu: f32[2,8] = aten.gelu.default(linear, approximate=\"tanh\")\n"
            "  linear_1: f32[2,4] = aten.linear.default(gelu, p_h_1_weight, p_h_1_bias)\n"
            "  mul: f32[2,4] = aten.mul.Tensor(linear_1, c_scale)\n"
            "  add: f32[2,4] = aten.add.Tensor(mul, b_shift)\n"
            "  return add, None, 3\n");
  EXPECT_TRUE(program->graphs[0].values[program->graphs[0].inputs[0].value].tensor->requires_grad);
}

TEST(Pt2, WeightsAreLocatedAndMeasured) {
  const Program program = read_pt2(fixture("mlp.pt2")).value();
  ASSERT_EQ(program.weights.size(), 6U);
  EXPECT_EQ(program.weights.at("h.0.weight").member, "mlp/data/weights/weight_0");
  EXPECT_EQ(program.weights.at("h.0.weight").bytes, 128);
  EXPECT_EQ(program.weights.at("shift").member, "mlp/data/constants/tensor_1");
  EXPECT_EQ(program.weights.at("scale").bytes, 16);
}

TEST(Pt2, ModulesAndStacks) {
  const Graph graph = graph_of("mlp.pt2");
  const Node& linear = graph.nodes[NodeId(0)];
  EXPECT_EQ(linear.module_path, "h.0");
  EXPECT_EQ(linear.module_type, "Linear");
  ASSERT_EQ(linear.stack.size(), 2U);
  EXPECT_EQ(linear.stack[0].function, "forward");
  EXPECT_EQ(linear.stack[0].code, "y = self.h[1](F.gelu(self.h[0](x), approximate=\"tanh\"))");
  EXPECT_EQ(linear.stack[1].file, "/site-packages/torch/nn/modules/linear.py");
  ASSERT_NE(linear.user_frame(), nullptr);
  EXPECT_EQ(linear.user_frame()->file, "/src/fixtures.py");
  const Node& mul = graph.nodes[*graph.find_node("mul")];
  EXPECT_EQ(mul.module_path, "");
  EXPECT_EQ(mul.module_type, "Mlp");
}

TEST(Pt2, InPlaceOperatorsAndListOutputs) {
  EXPECT_EQ(node_lines(graph_of("writes.pt2")),
            "linear: f32[5,8] = aten.linear.default(x, p_linear_weight, p_linear_bias)\n"
            "slice_1: f32[5,2] = aten.slice.Tensor(linear, 1, 2, 4)\n"
            "add_: f32[5,2] = aten.add_.Tensor(slice_1, 1)\n"
            "mul_: f32[5,2] = aten.mul_.Tensor(add_, 3)\n"
            "mul__1: f32[3] = aten.mul_.Tensor(b_count, 2)\n"
            "split: (getitem: f32[5,2], getitem_1: f32[5,2]) = aten.split.Tensor(x, 2, 1)\n"
            "select: f32[2] = aten.select.int(getitem_1, 0, 0)\n"
            "zero_: f32[2] = aten.zero_.default(select)\n"
            "relu_: f32[5,4] = aten.relu_.default(x)\n"
            "max_1: (getitem_2: f32[5], getitem_3: i64[5]) = aten.max.dim(linear, 1)\n"
            "add: f32[5,2] = aten.add.Tensor(getitem, getitem_1)\n"
            "t: f32[4,5] = aten.t.default(relu_)\n");
}

TEST(Pt2, ListedMutationsAndUnusedOutputs) {
  const Graph graph = graph_of("writes_functional.pt2");
  std::vector<std::string> mutations;
  for (const Output& output : graph.outputs)
    if (output.kind == OutputKind::mutation)
      mutations.push_back(output.target + " <- " + graph.values[output.value].name);
  EXPECT_EQ(mutations, (std::vector<std::string>{"b_count <- mul_1", "x <- relu"}));
  EXPECT_EQ(to_string(graph, *graph.find_node("max_1")),
            "max_1: (getitem_6: f32[5], max_1.1: i64[5]) = aten.max.dim(slice_scatter_1, 1)");
}

TEST(Pt2, TrainingBatchNorm) {
  EXPECT_EQ(node_lines(graph_of("batch_norm.pt2")),
            "add_: i64[] = aten.add_.Tensor(b_bn_num_batches_tracked, 1)\n"
            "batch_norm: f32[6,4] = aten.batch_norm.default(x, p_bn_weight, p_bn_bias, b_bn_running_mean, "
            "b_bn_running_var, True, 0.1, 1e-05, False)\n");
}

TEST(Pt2, CompositeOperators) {
  EXPECT_EQ(
      node_lines(graph_of("attention.pt2")),
      "scaled_dot_product_attention: f32[1,2,4,8] = aten.scaled_dot_product_attention.default(q, k, v, None, "
      "0.0, True)\n"
      "einsum: f32[1,2,4,4] = aten.einsum.default(\"bhsd,bhtd->bhst\", [scaled_dot_product_attention, k])\n"
      "gt: bool[1,2,4,4] = aten.gt.Scalar(einsum, 0)\n"
      "masked_fill: f32[1,2,4,4] = aten.masked_fill.Scalar(einsum, gt, -inf)\n"
      "_assert_tensor_metadata_default: () = aten._assert_tensor_metadata.default(masked_fill, dtype=f32, "
      "device=cpu, layout=strided)\n"
      "to: bf16[1,2,4,4] = aten.to.dtype(masked_fill, bf16)\n");
}

TEST(Pt2, SurvivesTheJsonRoundTrip) {
  for (const char* name :
       {"mlp.pt2", "writes.pt2", "writes_functional.pt2", "batch_norm.pt2", "attention.pt2"}) {
    const Program program = read_pt2(fixture(name)).value();
    const std::string text = write_json(program);
    EXPECT_EQ(write_json(read_json(text, name).value()), text) << name;
    EXPECT_EQ(to_string(read_json(text, name)->graphs[0]), to_string(program.graphs[0]));
  }
}

TEST(Pt2, AnyTopFolderOrNone) {
  const TemporaryFolder folder;
  for (const std::string top : {"", "archive/", "a/models/b/"}) {
    Members members = testing::members_of(fixture("mlp.pt2"));
    for (auto& [name, content] : members) name = top + name.substr(std::string("mlp/").size());
    const Result<Program> program = read_pt2(write_zip(folder / "renamed.pt2", members));
    ASSERT_TRUE(program.ok()) << top << pallascope::to_string(program.error());
    EXPECT_EQ(program->weights.at("scale").member, top + "data/constants/tensor_0");
  }
}

TEST(Pt2, SchemaVersions) {
  EXPECT_TRUE(
      changed("\"schema_version\":{\"major\":8,\"minor\":20}", "\"schema_version\":{\"major\":8,\"minor\":3}")
          .ok());
  EXPECT_TRUE(changed("\"minor\":20}", "\"minor\":99}").ok());
  expect_problem(changed("\"major\":8", "\"major\":9"), DiagnosticKind::schema_version,
                 {"version 9.20", "major version 8", "schema_version"});
  expect_problem(changed("\"schema_version\"", "\"version\""), DiagnosticKind::missing_member,
                 {"`schema_version`"});
}

TEST(Pt2, MissingMembers) {
  const TemporaryFolder folder;
  const auto without = [&](const std::string& end) {
    Members members = testing::members_of(fixture("mlp.pt2"));
    std::erase_if(members, [&](const auto& member) { return member.first.ends_with(end); });
    return read_pt2(write_zip(folder / "without.pt2", members));
  };
  const auto kind = DiagnosticKind::missing_member;
  expect_problem(without("models/model.json"), kind, {"models/model.json"});
  expect_problem(without("model_weights_config.json"), kind, {"data/weights/model_weights_config.json"});
  expect_problem(without("model_constants_config.json"), kind,
                 {"data/constants/model_constants_config.json"});
  expect_problem(without("weights/weight_2"), kind, {"data/weights/weight_2", "h.1.weight"});
  expect_problem(without("archive_format"), kind, {"archive_format"});
  expect_problem(read_changed("mlp.pt2", "weights_config.json",
                              [](std::string& text) { replace(text, "\"h.0.bias\"", "\"h.0.bios\""); }),
                 kind, {"`h.0.bias`", "input p_h_0_bias"});
  expect_problem(changed("\"tensor_values\"", "\"values\""), kind,
                 {"`tensor_values`", "$.graph_module.graph"});
}

TEST(Pt2, OtherPackages) {
  const TemporaryFolder folder;
  const auto package = [&](const Members& members) {
    return read_pt2(write_zip(folder / "other.pt2", members));
  };
  const auto kind = DiagnosticKind::wrong_package;
  expect_problem(package({{"m/archive_format", "pt2"}, {"m/data/aotinductor/model/abc.so", "x"}}), kind,
                 {"AOTInductor", "torch.export.save"});
  expect_problem(package({{"m/data.pkl", "x"}, {"m/version", "3"}}), kind, {"TorchScript"});
  expect_problem(package({{"version", "8"}, {"serialized_exported_program.json", "{}"}}), kind,
                 {"before 2.7"});
  expect_problem(package({{"m/archive_format", "pt3"}, {"m/models/model.json", "{}"}}), kind, {"`pt3`"});
  expect_problem(package({{"readme.txt", "hello"}}), DiagnosticKind::missing_member, {"models/model.json"});
}

TEST(Pt2, FilesThatAreNoArchives) {
  const TemporaryFolder folder;
  testing::write_file(folder / "text.pt2", "this is no zip archive, however long it may be");
  expect_problem(read_pt2(folder / "text.pt2"), DiagnosticKind::not_a_zip, {"text.pt2"});
  std::ifstream file(fixture("mlp.pt2"), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  testing::write_file(folder / "cut.pt2", whole.substr(0, whole.size() / 2));
  expect_problem(read_pt2(folder / "cut.pt2"), DiagnosticKind::not_a_zip, {"cut off"});
  expect_problem(read_pt2(folder / "none.pt2"), DiagnosticKind::not_found, {"none.pt2"});
  expect_problem(read_pt2(folder / ""), DiagnosticKind::not_readable, {"no regular file"});
}

TEST(Pt2, DamagedMembers) {
  const auto cut = [](std::string& text) { text.resize(text.size() / 2); };
  expect_problem(read_changed("mlp.pt2", "models/model.json", cut), DiagnosticKind::malformed_json,
                 {"ends in the middle", "models/model.json", "byte"});
  expect_problem(read_changed("mlp.pt2", "weights_config.json", cut), DiagnosticKind::malformed_json,
                 {"weights_config.json"});
  const TemporaryFolder folder;
  const std::filesystem::path path =
      write_zip(folder / "flipped.pt2", testing::members_of(fixture("mlp.pt2")));
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  file.clear();
  file.seekp(static_cast<std::streamoff>(whole.find("graph_module")));
  file << 'G';
  file.close();
  expect_problem(read_pt2(path), DiagnosticKind::not_readable, {"models/model.json"});
}

TEST(Pt2, DtypesAndStorage) {
  const auto config = [](const std::string& from, const std::string& to) {
    return read_changed("mlp.pt2", "weights_config.json",
                        [&](std::string& text) { replace(text, from, to); });
  };
  expect_problem(changed("\"linear_1\":{\"dtype\":7", "\"linear_1\":{\"dtype\":99"),
                 DiagnosticKind::unknown_dtype, {"`linear_1`", "99", "tensor_values.linear_1"});
  expect_problem(config("\"dtype\": 7", "\"dtype\": 33"), DiagnosticKind::unknown_dtype,
                 {"`h.0.weight`", "33"});
  // One row more than weight_0 holds.
  expect_problem(config("\"as_int\": 8", "\"as_int\": 9"), DiagnosticKind::storage_bounds,
                 {"`h.0.weight` (f32[9,4])", "144 bytes", "weight_0", "128", "h.0.weight.tensor_meta"});
  expect_problem(config("\"storage_offset\": {\"as_int\": 0}", "\"storage_offset\": {\"as_int\": 1}"),
                 DiagnosticKind::storage_bounds, {"132 bytes"});
  expect_problem(config("\"strides\": [{\"as_int\": 4}", "\"strides\": [{\"as_int\": 5}"),
                 DiagnosticKind::storage_bounds, {"156 bytes"});
  expect_problem(config("\"as_int\": 8", "\"as_int\": 4611686018427387904"), DiagnosticKind::storage_bounds,
                 {"64 bits"});
  // The graph's own meta must fit too, though the configuration is right.
  expect_problem(changed("\"p_h_0_bias\":{\"dtype\":7,\"sizes\":[{\"as_int\":8}]",
                         "\"p_h_0_bias\":{\"dtype\":7,\"sizes\":[{\"as_int\":9}]"),
                 DiagnosticKind::storage_bounds,
                 {"`h.0.bias` (f32[9])", "36 bytes", "32", "input p_h_0_bias"});
  // A smaller tensor in the same storage is a view of it, as tied or sliced weights are.
  EXPECT_TRUE(config("\"as_int\": 8", "\"as_int\": 7").ok());
  expect_problem(config("\"layout\": 7", "\"layout\": 2"), DiagnosticKind::unsupported, {"sparse_csr"});
}

TEST(Pt2, WeightsOfFakeTensorsHaveNoBytes) {
  EXPECT_TRUE(read_changed("mlp.pt2", "weights/weight_0", [](std::string& bytes) { bytes.clear(); }).ok());
}

TEST(Pt2, SymbolicSizes) {
  const std::string expression = "{\"as_expr\":{\"expr_str\":\"s0\",\"hint\":{\"as_int\":2}}}";
  expect_problem(changed("\"gelu\":{\"dtype\":7,\"sizes\":[{\"as_int\":2}",
                         "\"gelu\":{\"dtype\":7,\"sizes\":[" + expression),
                 DiagnosticKind::symbolic_size, {"`gelu`", "`s0`", "sizes[0]"});
  // A symbolic argument, and a node that computes one.
  const std::string symbols = "\"sym_int_values\":{\"n\":" + expression + "}";
  expect_problem(read_changed("mlp.pt2", "models/model.json",
                              [&](std::string& text) {
                                replace(text, "\"sym_int_values\":{}", symbols);
                                replace(text, "{\"as_string\":\"tanh\"}",
                                        "{\"as_sym_int\":{\"as_name\":\"n\"}}");
                              }),
                 DiagnosticKind::symbolic_size, {"node `gelu`", "`n` (s0)"});
  expect_problem(
      changed("{\"as_string\":\"tanh\"}", "{\"as_sym_ints\":[{\"as_int\":1},{\"as_name\":\"u0\"}]}"),
      DiagnosticKind::symbolic_size, {"`u0`"});
  EXPECT_TRUE(changed("{\"as_string\":\"tanh\"}", "{\"as_sym_ints\":[{\"as_int\":1}]}").ok());
  expect_problem(changed("\"outputs\":[{\"as_tensor\":{\"name\":\"gelu\"}}]",
                         "\"outputs\":[{\"as_sym_int\":{\"as_name\":\"gelu\"}}]"),
                 DiagnosticKind::symbolic_size, {"`gelu`", "not known before it runs"});
  expect_problem(changed("torch.ops.aten.gelu.default", "_operator.mul"), DiagnosticKind::symbolic_size,
                 {"_operator.mul"});
  // A symbol that no node uses is only an unused argument.
  EXPECT_TRUE(read_changed("mlp.pt2", "models/model.json", [&](std::string& text) {
                replace(text, "\"sym_int_values\":{}", symbols);
                replace(text, "{\"as_int\":3}],\"outputs\"",
                        "{\"as_sym_int\":{\"as_name\":\"n\"}}],\"outputs\"");
              }).ok());
}

TEST(Pt2, WhatHasNoPlaceInAGraph) {
  const auto kind = DiagnosticKind::unsupported;
  expect_problem(changed("torch.ops.aten.gelu.default", "torch.ops.higher_order.cond"), kind,
                 {"node `gelu`", "higher-order operator `cond`", "nodes[1]"});
  expect_problem(changed("torch.ops.aten.gelu.default", "#ext:gelu"), kind, {"#ext:gelu"});
  const auto argument = [](const std::string& text) { return changed("{\"as_string\":\"tanh\"}", text); };
  expect_problem(argument("{\"as_graph\":{\"name\":\"g\"}}"), kind, {"node `gelu`", "a subgraph"});
  expect_problem(argument("{\"as_custom_obj\":{\"name\":\"o\"}}"), kind, {"a script object"});
  expect_problem(argument("{\"as_complex\":{\"real\":1.0,\"imag\":1.0}}"), kind, {"a complex number"});
  expect_problem(argument("{\"as_operator\":\"torch.ops.aten.add\"}"), kind, {"an operator"});
  expect_problem(argument("{\"as_new_thing\":1}"), kind, {"`as_new_thing`"});
  expect_problem(
      changed("{\"user_output\":{\"arg\":{\"as_none\":true}}}", "{\"token\":{\"arg\":{\"name\":\"t\"}}}"),
      kind, {"`token`"});
  expect_problem(changed("{\"user_input\":{\"arg\":{\"as_tensor\":{\"name\":\"x\"}}}}",
                         "{\"token\":{\"arg\":{\"name\":\"x\"}}}"),
                 kind, {"`x`", "`token`"});
}

TEST(Pt2, UndefinedAndRepeatedValues) {
  const std::string gelu_output = "\"outputs\":[{\"as_tensor\":{\"name\":\"gelu\"}}]";
  expect_problem(
      changed("\"arg\":{\"as_tensor\":{\"name\":\"gelu\"}}", "\"arg\":{\"as_tensor\":{\"name\":\"add\"}}"),
      DiagnosticKind::undefined_value, {"`add`", "node `linear_1`", "nodes[2]"});
  expect_problem(changed("{\"user_output\":{\"arg\":{\"as_tensor\":{\"name\":\"add\"}}}}",
                         "{\"user_output\":{\"arg\":{\"as_tensor\":{\"name\":\"adds\"}}}}"),
                 DiagnosticKind::undefined_value, {"the output `adds`"});
  expect_problem(changed(gelu_output, "\"outputs\":[{\"as_tensor\":{\"name\":\"linear\"}}]"),
                 DiagnosticKind::malformed_graph, {"two values are named `linear`"});
  expect_problem(changed(gelu_output, "\"outputs\":[{\"as_tensor\":{\"name\":\"gelo\"}}]"),
                 DiagnosticKind::missing_member, {"`tensor_values` has no entry for `gelo`"});
  expect_problem(
      changed("\"input_specs\":[", "\"input_specs\":[{\"user_input\":{\"arg\":{\"as_none\":true}}},"),
      DiagnosticKind::malformed_graph, {"one input spec", "8 inputs"});
  expect_problem(changed("\"strides\":[{\"as_int\":8},{\"as_int\":1}]", "\"strides\":[{\"as_int\":8}]"),
                 DiagnosticKind::malformed_graph, {"strides", "graph model"});
  expect_problem(changed("{\"as_string\":\"tanh\"}", "{\"as_string\":\"tanh\",\"as_int\":1}"),
                 DiagnosticKind::malformed_graph, {"exactly one member"});
  expect_problem(changed("{\"as_string\":\"tanh\"}", "{\"as_float\":\"tanh\"}"),
                 DiagnosticKind::malformed_graph, {"a float"});
  expect_problem(changed("{\"as_string\":\"tanh\"}", "{\"as_layout\":12}"), DiagnosticKind::malformed_graph,
                 {"12 is no layout"});
}

TEST(Pt2, NodesOfOlderMinorVersions) {
  // No names, no kinds: the node takes its output's name; the first argument is positional, the others have names.
  const Result<Program> program = read_changed("mlp.pt2", "models/model.json", [](std::string& text) {
    for (std::size_t at = 0; (at = text.find(",\"kind\":", at)) != std::string::npos;) text.erase(at, 9);
    for (std::size_t at = 0;
         (at = text.find("\"is_hop_single_tensor_return\":null,\"name\":\"", at)) != std::string::npos;) {
      at += std::string("\"is_hop_single_tensor_return\":null").size();
      text.erase(at, text.find('}', at) - at);
    }
  });
  ASSERT_TRUE(program.ok()) << pallascope::to_string(program.error());
  EXPECT_EQ(to_string(program->graphs[0], NodeId(0)),
            "linear: f32[2,8] = aten.linear.default(x, weight=p_h_0_weight, bias=p_h_0_bias)");
  EXPECT_EQ(to_string(program->graphs[0], NodeId(1)),
            "gelu: f32[2,8] = aten.gelu.default(linear, approximate=\"tanh\")");
}

TEST(Pt2, GetitemNodesAreFolded) {
  // `max_1` as FX has it: a node without named outputs, and two getitem nodes that take them.
  const auto getitem = [](const std::string& name, const std::string& index) {
    return ",{\"target\":\"_operator.getitem\",\"inputs\":[{\"name\":\"a\",\"arg\":{\"as_tensor\":{\"name\":"
           "\"max_1\"}},"
           "\"kind\":1},{\"name\":\"b\",\"arg\":{\"as_int\":" +
           index + "},\"kind\":1}],\"outputs\":[{\"as_tensor\":{\"name\":\"" + name +
           "\"}}],\"metadata\":{},\"name\":\"" + name + "\"}";
  };
  const auto with = [&](const std::string& nodes) {
    return read_changed("writes.pt2", "models/model.json", [&](std::string& text) {
      replace(
          text,
          "\"outputs\":[{\"as_tensor\":{\"name\":\"getitem_2\"}},{\"as_tensor\":{\"name\":\"getitem_3\"}}]",
          "\"outputs\":[{\"as_tensor\":{\"name\":\"max_1_unused_0\"}},{\"as_tensor\":{\"name\":\"max_1_"
          "unused_1\"}}]");
      replace(text, "\"getitem_2\":{\"dtype\"", "\"max_1_unused_0\":{\"dtype\"");
      replace(text, "\"getitem_3\":{\"dtype\"", "\"max_1_unused_1\":{\"dtype\"");
      replace(text, "\"name\":\"max_1\"}", "\"name\":\"max_1\"}" + nodes);
    });
  };
  const Result<Program> program = with(getitem("getitem_2", "0") + getitem("again", "-2"));
  ASSERT_TRUE(program.ok()) << pallascope::to_string(program.error());
  const Graph& graph = program->graphs[0];
  EXPECT_EQ(to_string(graph, *graph.find_node("max_1")),
            "max_1: (getitem_2: f32[5], max_1.1: i64[5]) = aten.max.dim(linear, 1)");
  EXPECT_EQ(graph.find_node("getitem_2"), std::nullopt);
  expect_problem(with(getitem("getitem_2", "2")), DiagnosticKind::malformed_graph,
                 {"`getitem_2`", "past the list"});
}

TEST(Pt2, DamagedModelsAreReadOrRefused) {
  std::string text;
  for (const auto& [name, content] : testing::members_of(fixture("writes.pt2")))
    if (name.ends_with("models/model.json")) text = content;
  std::mt19937 random(13);
  const std::string likely = "0123456789_abxyz-\"{}[]:,";
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = text;
    for (std::size_t i = 0; i <= random() % 3; ++i) {
      // Keys, names and numbers keep the text JSON; now and then anything may go.
      const std::size_t at =
          damaged.find_first_of("0123456789_abcdefghijklmnopqrstuvwxyz", random() % damaged.size());
      if (at == std::string::npos) continue;
      if (random() % 8 == 0)
        damaged.erase(at, 1 + random() % 30);
      else
        damaged[at] = likely[random() % (random() % 8 == 0 ? likely.size() : 16)];
    }
    const Result<JsonValue> document = parse_json(damaged, "damaged");
    if (!document.ok()) continue;
    const Result<Pt2Model> model = read_pt2_model(JsonCursor(*document, "damaged"), "model");
    if (model.ok()) continue;
    ++refused;
    ASSERT_FALSE(model.error().message.empty());
    ASSERT_FALSE(model.error().where.empty()) << model.error().message;
    ASSERT_FALSE(model.error().remedy.empty()) << model.error().message;
  }
  EXPECT_GT(refused, 200);
}

TEST(Pt2Text, StackTraces) {
  const std::vector<Frame> frames = parse_stack_trace(
      "File \"/a b/m.py\", line 3, in forward\n    y = f(\n      x)\n"
      "  File \"<string>\", line 12, in <module>\n"
      "  File \"/t.py\", line 7\n    z = 1\n    ^^^^^\nno frame\n");
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[0], (Frame{"/a b/m.py", 3, "forward", "y = f("}));
  EXPECT_EQ(frames[1], (Frame{"<string>", 12, "<module>", ""}));
  EXPECT_EQ(frames[2], (Frame{"/t.py", 7, "", "z = 1"}));
  EXPECT_TRUE(parse_stack_trace("").empty());
  EXPECT_TRUE(parse_stack_trace("File \"x\", line y, in f\nFile \"x").empty());
}

TEST(Pt2Text, ModuleStacks) {
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(parse_module_stack("L__self__,,__main__.M"), Pair("", "M"));
  EXPECT_EQ(parse_module_stack("L__self__,,__main__.M;L__self__h.0,h.0,torch.nn.modules.linear.Linear"),
            Pair("h.0", "Linear"));
  EXPECT_EQ(parse_module_stack("L__self__l1@1,l1@1,a.Linear"), Pair("l1", "Linear"));
  EXPECT_EQ(parse_module_stack("L__self___h_0,L['self'].h[0].attn,a.<locals>.Attn"),
            Pair("h.0.attn", "Attn"));
  EXPECT_EQ(parse_module_stack("k,L['self']._modules['h'].x,a.X"), Pair("h.x", "X"));
  EXPECT_EQ(parse_module_stack("k,L__self__.h,H"), Pair("h", "H"));
  EXPECT_EQ(parse_module_stack("k[slice(0, 2)],selfattention,a.B"), Pair("selfattention", "B"));
  EXPECT_EQ(parse_module_stack(""), Pair("", ""));
  EXPECT_EQ(parse_module_stack("one,two"), Pair("", ""));
}

}  // namespace
}  // namespace pallascope::trace
