#include "core/functional/functionalize.h"

#include <random>

#include "tests/unit/functional/support.h"

namespace pallascope::functional {
namespace {

using namespace testing;
using trace::NodeId;
using trace::ValueId;

trace::Graph fixture(const std::string& name) {
  const Result<trace::Program> program =
      trace::read_pt2(std::filesystem::path(PALLASCOPE_TEST_DATA) / "unit" / "trace" / "data" / name);
  EXPECT_TRUE(program.ok()) << pallascope::to_string(program.error());
  return program->graphs.at(0);
}

// --- what is functional already ------------------------------------------------------------------------------

TEST(Functionalize, AFunctionalGraphStaysTheSameObject) {
  trace::Graph graph = fixture("writes_functional.pt2");
  const std::string before = trace::to_string(graph);
  const trace::Node* first = &graph.nodes[NodeId(0)];
  const Result<Functional> result = functionalize(std::move(graph));
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->changed);
  EXPECT_EQ(trace::to_string(result->graph), before);
  EXPECT_EQ(&result->graph.nodes[NodeId(0)], first) << "the graph was copied";
  for (std::size_t i = 0; i < result->origin.size(); ++i) EXPECT_EQ(result->origin[i], NodeId(i));
  for (std::size_t i = 0; i < result->value_origin.size(); ++i)
    EXPECT_EQ(result->value_origin[i], ValueId(i));
  EXPECT_EQ(result->output_alias.size(), result->graph.outputs.size());
}

TEST(Functionalize, OutputsThatAreViewsOfInputs) {
  GraphText text;
  text.input("x", tensor({2, 3})).node("t", "aten.t.default", "%x", tensor({3, 2}, {1, 3}));
  text.node("add", "aten.add.Tensor", "%t, 1", tensor({3, 2}, {1, 3})).output("t").output("add").output("x");
  const Functional result = functional(text.graph());
  EXPECT_EQ(result.output_alias, (std::vector<ValueId>{ValueId(0), ValueId(), ValueId(0)}));
}

// --- fixtures ------------------------------------------------------------------------------------------------

TEST(Functionalize, WritesFixture) {
  const trace::Graph graph = fixture("writes.pt2");
  const Functional result = functional(graph);
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(body(result.graph),
            "linear: f32[5,8] = aten.linear.default(x, p_linear_weight, p_linear_bias)\n"
            "slice_1: f32[5,2] = aten.slice.Tensor(linear, 1, 2, 4)\n"
            "add_: f32[5,2] = aten.add.Tensor(slice_1, 1)\n"
            "mul_: f32[5,2] = aten.mul.Tensor(add_, 3)\n"
            "mul__1: f32[3] = aten.mul.Tensor(b_count, 2)\n"
            "split: (getitem: f32[5,2], getitem_1: f32[5,2]) = aten.split.Tensor(x, 2, 1)\n"
            "select: f32[2] = aten.select.int(getitem_1, 0, 0)\n"
            "zero_: f32[2] = aten.full.default([2], 0, dtype=f32, device=cpu)\n"
            "zero__into_getitem_1: f32[5,2] = aten.select_scatter.default(getitem_1, zero_, 0, 0)\n"
            "zero__into_x: f32[5,4] = aten.slice_scatter.default(x, zero__into_getitem_1, 1, 2, 4, 1)\n"
            "relu_: f32[5,4] = aten.relu.default(zero__into_x)\n"
            "mul__into_linear: f32[5,8] = aten.slice_scatter.default(linear, mul_, 1, 2, 4, 1)\n"
            "max_1: (getitem_2: f32[5], getitem_3: i64[5]) = aten.max.dim(mul__into_linear, 1)\n"
            "getitem_v2: f32[5,2] = aten.slice.Tensor(relu_, 1, 0, 2)\n"
            "getitem_1_v2: f32[5,2] = aten.slice.Tensor(relu_, 1, 2, 4)\n"
            "add: f32[5,2] = aten.add.Tensor(getitem_v2, getitem_1_v2)\n"
            "t: f32[4,5] = aten.t.default(relu_)\n"
            "slice_1_v1: f32[5,2] = aten.slice.Tensor(mul__into_linear, 1, 2, 4)\n"
            "b_count <- mul__1\n"
            "x <- relu_\n"
            "return slice_1_v1, add, getitem_2, mul__1, t\n");
  // Origins: the write back belongs to the write, a view taken again to the view.
  const auto origin = [&](const char* name) {
    return graph.nodes[result.origin[result.graph.find_node(name)->index()]].name;
  };
  EXPECT_EQ(origin("mul__into_linear"), "mul_");
  EXPECT_EQ(origin("getitem_1_v2"), "split");
  EXPECT_EQ(origin("slice_1_v1"), "slice_1");
  EXPECT_EQ(origin("add"), "add");
  const trace::Node& again = result.graph.nodes[*result.graph.find_node("slice_1_v1")];
  EXPECT_EQ(again.stack, graph.nodes[*graph.find_node("slice_1")].stack);
  EXPECT_FALSE(again.stack.empty());
  // The returned count and t share the storage of inputs; the others have memory of their own.
  std::vector<std::string> aliases;
  for (const ValueId id : result.output_alias)
    aliases.push_back(id.valid() ? result.graph.values[id].name : "-");
  EXPECT_EQ(aliases, (std::vector<std::string>{"-", "-", "-", "b_count", "x", "-", "-"}));
}

TEST(Functionalize, BatchNormFixture) {
  const Functional result = functional(fixture("batch_norm.pt2"));
  EXPECT_EQ(body(result.graph),
            "add_: i64[] = aten.add.Tensor(b_bn_num_batches_tracked, 1)\n"
            "batch_norm: (batch_norm: f32[6,4], batch_norm.1: f32[4], batch_norm.2: f32[4], "
            "batch_norm_running_mean: "
            "f32[4], batch_norm_running_var: f32[4]) = aten._native_batch_norm_legit_functional.default(x, "
            "p_bn_weight, "
            "p_bn_bias, b_bn_running_mean, b_bn_running_var, True, 0.1, 1e-05)\n"
            "b_bn_running_mean <- batch_norm_running_mean\n"
            "b_bn_running_var <- batch_norm_running_var\n"
            "b_bn_num_batches_tracked <- add_\n"
            "return batch_norm\n");
}

TEST(Functionalize, OtherFixturesChangeNothing) {
  for (const char* name : {"mlp.pt2", "attention.pt2"})
    EXPECT_FALSE(functional(fixture(name)).changed) << name;
}

// --- writes through views ------------------------------------------------------------------------------------

/// `v = view(y); v.mul_(2); return y + 0` over y = x + 1, so that the write back is read.
std::string written_through(const std::string& y, const std::string& view, const std::string& args,
                            const std::string& meta) {
  GraphText text;
  text.input("x", y).node("y", "aten.add.Tensor", "%x, 1", y).node("v", view, args, meta);
  text.node("mul_", "aten.mul_.Tensor", "%v, 2", meta).node("z", "aten.neg.default", "%y", y).output("z");
  const std::string all = body(functional(text.graph()).graph);
  const std::size_t start = all.find("mul_: ");
  return all.substr(start, all.find("z: ") - start);
}

TEST(WriteThrough, EachKindOfView) {
  const std::string y = tensor({4, 6});
  EXPECT_EQ(written_through(y, "aten.slice.Tensor", "%y, 1, -5, 6, 2", tensor({4, 3}, {6, 2}, 1)),
            "mul_: f32[4,3] = aten.mul.Tensor(v, 2)\n"
            "mul__into_y: f32[4,6] = aten.slice_scatter.default(y, mul_, 1, 1, 6, 2)\n");
  EXPECT_EQ(written_through(y, "aten.narrow.default", "%y, 0, 1, 2", tensor({2, 6}, {6, 1}, 6)),
            "mul_: f32[2,6] = aten.mul.Tensor(v, 2)\n"
            "mul__into_y: f32[4,6] = aten.slice_scatter.default(y, mul_, 0, 1, 3, 1)\n");
  EXPECT_EQ(written_through(y, "aten.select.int", "%y, -1, -2", tensor({4}, {6}, 4)),
            "mul_: f32[4] = aten.mul.Tensor(v, 2)\n"
            "mul__into_y: f32[4,6] = aten.select_scatter.default(y, mul_, 1, 4)\n");
  EXPECT_EQ(written_through(y, "aten.diagonal.default", "%y, 1", tensor({4}, {7}, 1)),
            "mul_: f32[4] = aten.mul.Tensor(v, 2)\n"
            "mul__into_y: f32[4,6] = aten.diagonal_scatter.default(y, mul_, 1, 0, 1)\n");
  const std::string reshaped = "mul__into_y: f32[4,6] = aten.reshape.default(mul_, [4, 6])\n";
  EXPECT_EQ(written_through(y, "aten.view.default", "%y, [24]", tensor({24})),
            "mul_: f32[24] = aten.mul.Tensor(v, 2)\n" + reshaped);
  EXPECT_EQ(written_through(y, "aten.reshape.default", "%y, [24]", tensor({24})),
            "mul_: f32[24] = aten.mul.Tensor(v, 2)\n" + reshaped);
  EXPECT_EQ(written_through(y, "aten.unsqueeze.default", "%y, 0", tensor({1, 4, 6})),
            "mul_: f32[1,4,6] = aten.mul.Tensor(v, 2)\n" + reshaped);
  EXPECT_EQ(written_through(y, "aten.flatten.using_ints", "%y", tensor({24})),
            "mul_: f32[24] = aten.mul.Tensor(v, 2)\n" + reshaped);
  const std::string transposed =
      "mul_: f32[6,4] = aten.mul.Tensor(v, 2)\n"
      "mul__into_y: f32[4,6] = aten.permute.default(mul_, [1, 0])\n";
  EXPECT_EQ(written_through(y, "aten.t.default", "%y", tensor({6, 4}, {1, 6})), transposed);
  EXPECT_EQ(written_through(y, "aten.transpose.int", "%y, 0, -1", tensor({6, 4}, {1, 6})), transposed);
  EXPECT_EQ(written_through(y, "aten.permute.default", "%y, [1, 0]", tensor({6, 4}, {1, 6})), transposed);
  EXPECT_EQ(written_through(y, "aten.movedim.int", "%y, 0, 1", tensor({6, 4}, {1, 6})), transposed);
  EXPECT_EQ(written_through(y, "aten.swapaxes.default", "%y, 0, 1", tensor({6, 4}, {1, 6})), transposed);
  EXPECT_EQ(written_through(tensor({2, 3, 4}), "aten.permute.default", "%y, [2, 0, 1]",
                            tensor({4, 2, 3}, {1, 12, 4})),
            "mul_: f32[4,2,3] = aten.mul.Tensor(v, 2)\n"
            "mul__into_y: f32[2,3,4] = aten.permute.default(mul_, [1, 2, 0])\n");
  for (const char* same : {"aten.detach.default", "aten.alias.default", "aten.contiguous.default"})
    EXPECT_EQ(written_through(y, same, "%y", y), "mul_: f32[4,6] = aten.mul.Tensor(v, 2)\n") << same;
  EXPECT_EQ(written_through(y, "aten.to.dtype", "%y, {\"dtype\": \"f32\"}", y),
            "mul_: f32[4,6] = aten.mul.Tensor(v, 2)\n");
  EXPECT_EQ(written_through(y, "aten.dropout.default", "%y, 0.5, false", y),
            "mul_: f32[4,6] = aten.mul.Tensor(v, 2)\n");
}

TEST(WriteThrough, MapsThatOnlyStridesTell) {
  const std::string y = tensor({4, 6});
  EXPECT_EQ(written_through(y, "aten.unfold.default", "%y, 1, 2, 2", tensor({4, 3, 2}, {6, 2, 1})),
            "mul_: f32[4,3,2] = aten.mul.Tensor(v, 2)\n"
            "mul__into_y: f32[4,6] = aten.as_strided_scatter.default(y, mul_, [4, 3, 2], [6, 2, 1], 0)\n");
  EXPECT_EQ(written_through(y, "aten.as_strided.default", "%y, [3], [7], 2", tensor({3}, {7}, 2)),
            "mul_: f32[3] = aten.mul.Tensor(v, 2)\n"
            "mul__into_y: f32[4,6] = aten.as_strided_scatter.default(y, mul_, [3], [7], 2)\n");
  EXPECT_EQ(written_through(y, "aten.expand.default", "%y, [1, 4, 6]", tensor({1, 4, 6})),
            "mul_: f32[1,4,6] = aten.mul.Tensor(v, 2)\n"
            "mul__into_y: f32[4,6] = aten.as_strided_scatter.default(y, mul_, [1, 4, 6], [24, 6, 1], 0)\n");
  EXPECT_EQ(written_through(y, "aten.einsum.default", "{\"str\": \"ij->ji\"}, [%y]", tensor({6, 4}, {1, 6})),
            "mul_: f32[6,4] = aten.mul.Tensor(v, 2)\n"
            "mul__into_y: f32[4,6] = aten.as_strided_scatter.default(y, mul_, [6, 4], [1, 6], 0)\n");
}

TEST(WriteThrough, WhatCopiesIsNoView) {
  // A reshape of a transposed tensor copies, whatever its sizes say; so do contiguous, to with copy, dropout.
  const auto untouched = [](const std::string& target, const std::string& args, const std::string& meta) {
    const std::string x = tensor({4, 6}, {1, 4});
    GraphText text;
    text.input("x", x).node("v", target, args, meta).node("mul_", "aten.mul_.Tensor", "%v, 2", meta);
    text.node("z", "aten.neg.default", "%x", x).output("z").output("mul_");
    return body(functional(text.graph()).graph);
  };
  for (const auto& [target, args, meta] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"aten.reshape.default", "%x, [24]", tensor({24})},
           {"aten.flatten.using_ints", "%x", tensor({24})},
           {"aten.contiguous.default", "%x", tensor({4, 6})},
           {"aten.clone.default", "%x", tensor({4, 6}, {1, 4})},
           {"aten.to.dtype", "%x, {\"dtype\": \"f32\"}, false, true", tensor({4, 6}, {1, 4})},
           {"aten.dropout.default", "%x, 0.5, true", tensor({4, 6}, {1, 4})},
           {"aten.einsum.default", "{\"str\": \"ij->i\"}, [%x]", tensor({4})}}) {
    const std::string text = untouched(target, args, meta);
    EXPECT_NE(text.find("z: f32[4,6] = aten.neg.default(x)\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("<-"), std::string::npos) << text;
  }
  // The same reshape of a contiguous tensor is a view.
  GraphText text;
  text.input("x", tensor({4, 6})).node("v", "aten.reshape.default", "%x, [24]", tensor({24}));
  text.node("mul_", "aten.mul_.Tensor", "%v, 2", tensor({24})).output("mul_");
  EXPECT_NE(body(functional(text.graph()).graph).find("x <- mul__into_x"), std::string::npos);
}

TEST(WriteThrough, ADropoutInEvalLiesWhereItsArgumentLies) {
  // The trace says [6, 1] for the dropout of a tensor with strides [0, 1]. The reshape then copied, before the write.
  GraphText text;
  text.input("x", tensor({6})).node("e", "aten.expand.default", "%x, [2, 6]", tensor({2, 6}, {0, 1}));
  text.node("d", "aten.dropout.default", "%e, 0.5, false", tensor({2, 6}));
  text.node("r", "aten.reshape.default", "%d, [6, 2]", tensor({6, 2}));
  text.node("relu_", "aten.relu_.default", "%x", tensor({6})).output("r").output("d");
  EXPECT_EQ(body(functional(text.graph()).graph),
            "e: f32[2,6] = aten.expand.default(x, [2, 6])\n"
            "d: f32[2,6] = aten.dropout.default(e, 0.5, False)\n"
            "r: f32[6,2] = aten.reshape.default(d, [6, 2])\n"
            "relu_: f32[6] = aten.relu.default(x)\n"
            "e_v1: f32[2,6] = aten.expand.default(relu_, [2, 6])\n"
            "d_v1: f32[2,6] = aten.alias.default(e_v1)\n"
            "x <- relu_\nreturn r, d_v1\n");
}

TEST(WriteThrough, ListOutputs) {
  const auto one = [](const std::string& target, const std::string& args, const std::string& first,
                      const std::string& second) {
    GraphText text;
    text.input("x", tensor({4, 6}));
    text.list_node("parts", target, args, {{"a", first}, {"b", second}});
    text.node("mul_", "aten.mul_.Tensor", "%b, 2", second).node("sum", "aten.sum.default", "%a", tensor({}));
    text.output("sum");
    return body(functional(text.graph()).graph);
  };
  EXPECT_EQ(one("aten.chunk.default", "%x, 2, 1", tensor({4, 3}, {6, 1}), tensor({4, 3}, {6, 1}, 3)),
            "parts: (a: f32[4,3], b: f32[4,3]) = aten.chunk.default(x, 2, 1)\n"
            "mul_: f32[4,3] = aten.mul.Tensor(b, 2)\n"
            "mul__into_x: f32[4,6] = aten.slice_scatter.default(x, mul_, 1, 3, 6, 1)\n"
            "a_v1: f32[4,3] = aten.slice.Tensor(mul__into_x, 1, 0, 3)\n"
            "sum: f32[] = aten.sum.default(a_v1)\n"
            "x <- mul__into_x\nreturn sum\n");
  EXPECT_NE(one("aten.split_with_sizes.default", "%x, [1, 3], 0", tensor({1, 6}), tensor({3, 6}, {6, 1}, 6))
                .find("aten.slice_scatter.default(x, mul_, 0, 1, 4, 1)"),
            std::string::npos);
  EXPECT_NE(one("aten.unbind.int", "%x, 1", tensor({4}, {6}), tensor({4}, {6}, 1))
                .find("aten.select_scatter.default(x, mul_, 1, 1)\na_v1: f32[4] = "
                      "aten.select.int(mul__into_x, 1, 0)"),
            std::string::npos);
}

TEST(WriteThrough, ViewsOfViews) {
  // x.t()[1:3].select(1, 0).add_(1): three inverses, innermost first.
  GraphText text;
  text.input("x", tensor({4, 6})).node("t", "aten.t.default", "%x", tensor({6, 4}, {1, 6}));
  text.node("s", "aten.slice.Tensor", "%t, 0, 1, 3", tensor({2, 4}, {1, 6}, 1));
  text.node("c", "aten.select.int", "%s, 1, 0", tensor({2}, {1}, 1));
  text.node("add_", "aten.add_.Tensor", "%c, 1", tensor({2}, {1}, 1));
  text.node("n", "aten.neg.default", "%t", tensor({6, 4}, {1, 6})).output("n");
  const Functional result = functional(text.graph());
  EXPECT_EQ(body(result.graph),
            "t: f32[6,4] = aten.t.default(x)\n"
            "s: f32[2,4] = aten.slice.Tensor(t, 0, 1, 3)\n"
            "c: f32[2] = aten.select.int(s, 1, 0)\n"
            "add_: f32[2] = aten.add.Tensor(c, 1)\n"
            "add__into_s: f32[2,4] = aten.select_scatter.default(s, add_, 1, 0)\n"
            "add__into_t: f32[6,4] = aten.slice_scatter.default(t, add__into_s, 0, 1, 3, 1)\n"
            "add__into_x: f32[4,6] = aten.permute.default(add__into_t, [1, 0])\n"
            "t_v1: f32[6,4] = aten.t.default(add__into_x)\n"
            "n: f32[6,4] = aten.neg.default(t_v1)\n"
            "x <- add__into_x\nreturn n\n");
  const auto meta = [&](const char* name) {
    return *result.graph.values[*result.graph.find_value(name)].tensor;
  };
  using Ints = std::vector<std::int64_t>;
  EXPECT_EQ(meta("add__into_x").strides, (Ints{6, 1}));
  EXPECT_EQ(meta("t_v1").strides, (Ints{1, 6}));
  EXPECT_EQ(meta("add__into_s").strides, (Ints{1, 2}));  // dense, in the order of the view's strides
  EXPECT_EQ(meta("add__into_s").storage_offset, 0);
  EXPECT_EQ(result.graph.nodes[*result.graph.find_node("add__into_t")].module_path, "m.add_");
  EXPECT_EQ(result.graph.nodes[*result.graph.find_node("t_v1")].module_path, "m.t");
}

TEST(WriteThrough, APartOfAnExpandedTensorWritesOnePlace) {
  // x.expand(3, 4)[0].add_(1) changes x, hence every row of the expanded tensor.
  GraphText text;
  text.input("x", tensor({4})).node("e", "aten.expand.default", "%x, [3, 4]", tensor({3, 4}, {0, 1}));
  text.node("s", "aten.select.int", "%e, 0, 0", tensor({4}))
      .node("add_", "aten.add_.Tensor", "%s, 1", tensor({4}));
  text.node("n", "aten.neg.default", "%e", tensor({3, 4})).output("n");
  EXPECT_EQ(body(functional(text.graph()).graph),
            "e: f32[3,4] = aten.expand.default(x, [3, 4])\n"
            "s: f32[4] = aten.select.int(e, 0, 0)\n"
            "add_: f32[4] = aten.add.Tensor(s, 1)\n"
            "add__into_x: f32[4] = aten.as_strided_scatter.default(x, add_, [4], [1], 0)\n"
            "e_v1: f32[3,4] = aten.expand.default(add__into_x, [3, 4])\n"
            "n: f32[3,4] = aten.neg.default(e_v1)\n"
            "x <- add__into_x\nreturn n\n");
}

TEST(WriteThrough, ViewsAreTakenAgainOnlyWhenRead) {
  GraphText text;
  text.input("x", tensor({4, 6})).node("a", "aten.select.int", "%x, 0, 0", tensor({6}));
  text.node("b", "aten.select.int", "%x, 0, 1", tensor({6}, {1}, 6));
  text.node("before", "aten.neg.default", "%b", tensor({6}));
  text.node("add_", "aten.add_.Tensor", "%a, 1", tensor({6}))
      .node("mul_", "aten.mul_.Tensor", "%add_, 2", tensor({6}));
  text.node("own", "aten.neg.default", "%a", tensor({6}))
      .node("after", "aten.neg.default", "%b", tensor({6}));
  text.node("twice", "aten.add.Tensor", "%b, %b", tensor({6}));
  text.output("before").output("own").output("after").output("twice");
  EXPECT_EQ(body(functional(text.graph()).graph),
            "a: f32[6] = aten.select.int(x, 0, 0)\n"
            "b: f32[6] = aten.select.int(x, 0, 1)\n"
            "before: f32[6] = aten.neg.default(b)\n"
            "add_: f32[6] = aten.add.Tensor(a, 1)\n"
            "mul_: f32[6] = aten.mul.Tensor(add_, 2)\n"
            "own: f32[6] = aten.neg.default(mul_)\n"
            "mul__into_x: f32[4,6] = aten.select_scatter.default(x, mul_, 0, 0)\n"
            "b_v1: f32[6] = aten.select.int(mul__into_x, 0, 1)\n"
            "after: f32[6] = aten.neg.default(b_v1)\n"
            "twice: f32[6] = aten.add.Tensor(b_v1, b_v1)\n"
            "x <- mul__into_x\nreturn before, own, after, twice\n");
}

TEST(WriteThrough, AsStridedCountsInTheStorageAfterAWrite) {
  GraphText text;
  text.input("x", tensor({4, 6})).node("row", "aten.select.int", "%x, 0, 1", tensor({6}, {1}, 6));
  text.node("add_", "aten.add_.Tensor", "%x, 1", tensor({4, 6}));
  text.node("w", "aten.as_strided.default", "%row, [2], [1]", tensor({2}, {1}, 6)).output("w");
  EXPECT_EQ(body(functional(text.graph()).graph),
            "row: f32[6] = aten.select.int(x, 0, 1)\n"
            "add_: f32[4,6] = aten.add.Tensor(x, 1)\n"
            "w: f32[2] = aten.as_strided.default(add_, [2], [1], 6)\n"
            "x <- add_\nreturn w\n");
}

// --- outputs and names ---------------------------------------------------------------------------------------

TEST(Outputs, MutationsComeInTheOrderOfTheInputsAndOnce) {
  GraphText text;
  text.input("a", tensor({4}), "buffer").input("b", tensor({4})).input("c", tensor({4}), "constant");
  text.node("add_", "aten.add_.Tensor", "%b, 1", tensor({4}))
      .node("mul_", "aten.mul_.Tensor", "%a, 2", tensor({4}));
  text.node("neg", "aten.neg.default", "%c", tensor({4}));
  text.mutation("add_", "b").output("neg").output("a");
  EXPECT_EQ(body(functional(text.graph()).graph),
            "add_: f32[4] = aten.add.Tensor(b, 1)\n"
            "mul_: f32[4] = aten.mul.Tensor(a, 2)\n"
            "neg: f32[4] = aten.neg.default(c)\n"
            "b <- add_\na <- mul_\nreturn neg, mul_\n");
}

TEST(Outputs, AreReadAfterAllWrites) {
  GraphText text;
  text.input("x", tensor({4, 6})).node("r", "aten.select.int", "%x, 0, 1", tensor({6}, {1}, 6));
  text.node("add_", "aten.add_.Tensor", "%x, 1", tensor({4, 6})).output("r").output("x");
  const Functional result = functional(text.graph());
  EXPECT_EQ(body(result.graph),
            "r: f32[6] = aten.select.int(x, 0, 1)\n"
            "add_: f32[4,6] = aten.add.Tensor(x, 1)\n"
            "r_v1: f32[6] = aten.select.int(add_, 0, 1)\n"
            "x <- add_\nreturn r_v1, add_\n");
  EXPECT_EQ(result.output_alias, (std::vector<ValueId>{ValueId(0), ValueId(0), ValueId()}));
  // x itself, r before the write, x after it; the r of the result has no name in the original.
  const trace::Graph graph = text.graph();
  EXPECT_EQ(result.value_origin, (std::vector<ValueId>{ValueId(0), ValueId(1), ValueId(2), ValueId()}));
}

TEST(Names, StayUnique) {
  GraphText text;
  text.input("x", tensor({4, 6})).node("r", "aten.select.int", "%x, 0, 1", tensor({6}, {1}, 6));
  text.node("add__into_x", "aten.neg.default", "%r", tensor({6}))
      .node("r_v1", "aten.neg.default", "%r", tensor({6}));
  text.node("add_", "aten.add_.Tensor", "%r, 1", tensor({6}))
      .node("n", "aten.neg.default", "%x", tensor({4, 6}));
  text.output("r").output("n").output("add__into_x").output("r_v1");
  const std::string result = body(functional(text.graph()).graph);
  EXPECT_NE(result.find("add__into_x_2: f32[4,6] = aten.select_scatter"), std::string::npos) << result;
  EXPECT_NE(result.find("r_v1_2: f32[6] = aten.select.int(add__into_x_2"), std::string::npos) << result;
}

// --- what is refused -----------------------------------------------------------------------------------------

TEST(Refused, WritesThatOverlapThemselves) {
  GraphText expanded;
  expanded.input("x", tensor({4})).node("e", "aten.expand.default", "%x, [3, 4]", tensor({3, 4}, {0, 1}));
  expanded.node("add_", "aten.add_.Tensor", "%e, 1", tensor({3, 4}, {0, 1})).output("e");
  expect_refused(expanded, {"aten.add_.Tensor", "`e`", "one place in memory", "node add_", "module m.add_"});
  GraphText windows;
  windows.input("x", tensor({6})).node("u", "aten.unfold.default", "%x, 0, 3, 1", tensor({4, 3}, {1, 1}));
  windows.node("zero_", "aten.zero_.default", "%u", tensor({4, 3}, {1, 1})).output("x");
  expect_refused(windows, {"`u`"});
}

TEST(Refused, OperatorsWithoutAFunctionalForm) {
  const auto with = [](const std::string& target, const std::string& kwargs = "{}") {
    GraphText text;
    text.input("x", tensor({4, 6})).input("y", tensor({4, 6}));
    text.node("op", target, "%x, %y", tensor({4, 6}), kwargs).output("op");
    return text;
  };
  GraphText resized;
  resized.input("x", tensor({4, 6})).input("y", tensor({0}));
  resized.node("op", "aten.add.out", "%x, %x", tensor({4, 6}), "{\"out\": %y}").output("op");
  expect_refused(resized, {"aten.add.out", "resizes", "out="});
  expect_refused(with("aten.resize_.default"), {"aten.resize_.default", "no functional form"});
  expect_refused(with("aten.set_.source_Tensor"), {"set_"});
  expect_refused(with("aten._fused_adam_.default"), {"_fused_adam_"});
  expect_refused(with("mylib.update_.default"), {"mylib.update_.default", "only aten's"});
  GraphText shape;
  shape.input("x", tensor({4, 6})).node("t_", "aten.t_.default", "%x", tensor({6, 4}, {1, 6})).output("t_");
  expect_refused(shape, {"changes the shape of the input `x`"});
  GraphText reinterpreted;
  reinterpreted.input("x", tensor({4}, {}, 0, "c64"))
      .node("v", "aten.view.dtype", "%x, {\"dtype\": \"f32\"}", tensor({8}));
  reinterpreted.node("add_", "aten.add_.Tensor", "%v, 1", tensor({8})).output("x");
  expect_refused(reinterpreted, {"`v`", "another dtype"});
  GraphText shared;
  shared.input("x", tensor({4, 6})).node("y", "aten.neg.default", "%x", tensor({4, 6}));
  shared.node("c", "aten.contiguous.default", "%y", tensor({4, 6}))
      .node("t_", "aten.t_.default", "%c", tensor({6, 4}, {1, 6}));
  shared.output("t_").output("y");
  expect_refused(shared, {"under another name", "`y` is read later"});
  GraphText given;  // nothing but the newest name is read: as torch.export writes what eager does
  given.input("x", tensor({4, 6})).node("y", "aten.neg.default", "%x", tensor({4, 6}));
  given.node("c", "aten.to.dtype", "%y, {\"dtype\": \"f32\"}", tensor({4, 6})).node("t_", "aten.t_.default", "%c", tensor({6, 4}, {1, 6}));
  EXPECT_TRUE(functionalize(given.output("t_").graph()).ok());
  GraphText argument;
  argument.input("x", tensor({4, 6})).node("c", "aten.contiguous.default", "%x", tensor({4, 6}));
  argument.node("t_", "aten.t_.default", "%c", tensor({6, 4}, {1, 6})).output("t_");
  expect_refused(argument, {"changes the shape of the input `x`"});
  GraphText cudnn;
  cudnn.input("x", tensor({2, 3})).input("m", tensor({3})).input("v", tensor({3}));
  cudnn
      .node("bn", "aten.cudnn_batch_norm.default", "%x, null, null, %m, %v, true, 0.1, 1e-05", tensor({2, 3}))
      .output("bn");
  expect_refused(cudnn, {"device library"});
}

TEST(Reinterpreted, WritesArePutBackAsTheBasesDtype) {
  GraphText graph;
  graph.input("x", tensor({4})).node("v", "aten.view.dtype", "%x, {\"dtype\": \"i32\"}", tensor({4}, {}, 0, "i32"));
  graph.node("add_", "aten.add_.Tensor", "%v, 1", tensor({4}, {}, 0, "i32")).output("x");
  const Result<Functional> made = functionalize(graph.graph());
  ASSERT_TRUE(made.ok()) << pallascope::to_string(made.error());
  EXPECT_EQ(made->graph.nodes[NodeId(made->graph.nodes.size() - 1)].target, "aten.view.dtype");
  EXPECT_EQ(made->graph.values[made->graph.outputs.back().value].tensor->dtype, DType::f32);
}

TEST(Refused, OrReadButNeverACrash) {
  // A trace damaged at random that still reads is made functional or refused.
  trace::Program program;
  program.graphs.push_back(fixture("writes.pt2"));
  program.graphs.push_back(fixture("batch_norm.pt2"));
  const std::string text = trace::write_json(program);
  std::mt19937 random(3);
  const std::string likely = "0123456789-_.";
  int read = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string damaged = text;
    for (int i = 0; i < 3; ++i) {
      // Only numbers and operator names, or hardly anything would still read.
      const std::size_t at = damaged.find_first_of("0123456789_", random() % damaged.size());
      if (at != std::string::npos) damaged[at] = likely[random() % likely.size()];
    }
    const Result<trace::Program> result = trace::read_json(damaged, "damaged");
    if (!result.ok()) continue;
    ++read;
    for (const trace::Graph& graph : result->graphs) {
      const Result<Functional> made = functionalize(graph);
      EXPECT_TRUE(made.ok() || !made.error().message.empty());
    }
  }
  EXPECT_GT(read, 300);
}

}  // namespace
}  // namespace pallascope::functional
