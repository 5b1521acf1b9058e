// What each writing operator becomes: twins, fills, copies, casts, lists, normalisations.
#include "core/functional/functionalize.h"
#include "tests/unit/functional/support.h"

namespace pallascope::functional {
namespace {

using namespace testing;

/// `x.op_(args)` on an input, without the trailing mutation and return.
std::string on_input(const std::string& target, const std::string& args, const std::string& x,
                     const std::string& kwargs = "{}", const std::string& y = tensor({6})) {
  GraphText text;
  text.input("x", x).input("y", y).node("op_", target, args, x, kwargs).output("op_");
  const std::string all = body(functional(text.graph()).graph);
  const std::string end = "x <- op_\nreturn op_\n";
  EXPECT_TRUE(all.ends_with(end)) << all;
  return all.substr(0, all.size() - end.size());
}

TEST(InPlace, TwinsKeepOverloadAndArguments) {
  const std::string x = tensor({4, 6});
  EXPECT_EQ(on_input("aten.add_.Tensor", "%x, %y", x, "{\"alpha\": 2}"),
            "op_: f32[4,6] = aten.add.Tensor(x, y, alpha=2)\n");
  EXPECT_EQ(on_input("aten.clamp_.default", "%x, 0, 1", x), "op_: f32[4,6] = aten.clamp.default(x, 0, 1)\n");
  EXPECT_EQ(on_input("aten.masked_fill_.Scalar", "%x, %y, 0.5", x),
            "op_: f32[4,6] = aten.masked_fill.Scalar(x, y, 0.5)\n");
  EXPECT_EQ(on_input("aten.pow_.Scalar", "%x, 2", x), "op_: f32[4,6] = aten.pow.Tensor_Scalar(x, 2)\n");
  EXPECT_EQ(on_input("aten.floor_divide_.Tensor", "%x, %y", x),
            "op_: f32[4,6] = aten.floor_divide.default(x, y)\n");
  EXPECT_EQ(on_input("aten.normal_.default", "%x, 0.0, 1.0", x),
            "op_: f32[4,6] = aten.normal_functional.default(x, 0.0, 1.0)\n");
  EXPECT_EQ(on_input("aten.bernoulli_.float", "%x, 0.5", x), "op_: f32[4,6] = aten.bernoulli.p(x, 0.5)\n");
  EXPECT_EQ(on_input("aten._index_put_impl_.default", "%x, [%y], %y, false, true", x),
            "op_: f32[4,6] = aten.index_put.default(x, [y], y, False)\n");
  EXPECT_EQ(on_input("aten.__iand__.Scalar", "%x, 1", tensor({6}, {}, 0, "i64")),
            "op_: i64[6] = aten.__and__.Scalar(x, 1)\n");
}

TEST(InPlace, FillsForgetTheOldContent) {
  const std::string x = tensor({4, 6}, {}, 0, "i32");
  EXPECT_EQ(on_input("aten.zero_.default", "%x", x),
            "op_: i32[4,6] = aten.full.default([4, 6], 0, dtype=i32, device=cpu)\n");
  EXPECT_EQ(on_input("aten.fill_.Scalar", "%x, 2.5", x),
            "op_: i32[4,6] = aten.full.default([4, 6], 2.5, dtype=i32, device=cpu)\n");
  EXPECT_EQ(on_input("aten.fill_.Tensor", "%x, %y", x, "{}", tensor({})),
            "op__expand: f32[4,6] = aten.expand.default(y, [4, 6])\n"
            "op_: i32[4,6] = aten._to_copy.default(op__expand, dtype=i32)\n");
  EXPECT_EQ(on_input("aten.fill_diagonal_.default", "%x, 1", x),
            "op__values: i32[4] = aten.full.default([4], 1, dtype=i32, device=cpu)\n"
            "op__flat: i32[24] = aten.reshape.default(x, [24])\n"
            "op__filled: i32[24] = aten.slice_scatter.default(op__flat, op__values, 0, 0, 22, 7)\n"
            "op_: i32[4,6] = aten.reshape.default(op__filled, [4, 6])\n");
}

TEST(InPlace, DiagonalsOfTallMatricesAndCubes) {
  const auto slice = [](const std::string& x, const std::string& args) {
    const std::string text = on_input("aten.fill_diagonal_.default", args, x);
    const std::size_t at = text.find("op__values, 0, ");
    return text.substr(at, text.find(')', at) - at);
  };
  // 7 x 3: three elements, or with `wrap` all of 0, 4, 8, 12, 16, 20.
  EXPECT_EQ(slice(tensor({7, 3}), "%x, 1"), "op__values, 0, 0, 9, 4");
  EXPECT_EQ(slice(tensor({7, 3}), "%x, 1, true"), "op__values, 0, 0, 21, 4");
  EXPECT_EQ(slice(tensor({3, 3, 3}), "%x, 1"), "op__values, 0, 0, 27, 13");
}

TEST(InPlace, OutVariantsWriteToWhatTheyAreGiven) {
  const std::string x = tensor({4, 6});
  const auto text = [&](const std::string& target, const std::string& args, const std::string& out, const std::string& result) {
    GraphText graph;
    graph.input("x", x).input("out", out).node("op", target, args, result, "{\"out\": %out}").output("op");
    const Result<Functional> made = functionalize(graph.graph());
    EXPECT_TRUE(made.ok()) << pallascope::to_string(made.error());
    std::string lines;
    for (const trace::Node& node : made->graph.nodes) lines += node.target + " ";
    EXPECT_EQ(made->graph.outputs.back().target, "out");
    return lines;
  };
  EXPECT_EQ(text("aten.add.out", "%x, %x", x, x), "aten.add.Tensor ");
  EXPECT_EQ(text("aten.sin.out", "%x", x, x), "aten.sin.default ");
  EXPECT_EQ(text("aten.clamp.Tensor_out", "%x, %x", x, x), "aten.clamp.Tensor ");
  EXPECT_EQ(text("aten.sum.IntList_out", "%x, [1]", tensor({4}), tensor({4})), "aten.sum.dim_IntList ");
  EXPECT_EQ(text("aten.mul.out", "%x, 2", tensor({4, 6}, {}, 0, "f64"), tensor({4, 6}, {}, 0, "f64")),
            "aten.mul.Tensor aten._to_copy.default ");
}

TEST(InPlace, CopiesExpandAndCast) {
  const std::string x = tensor({4, 6});
  EXPECT_EQ(on_input("aten.copy_.default", "%x, %y", x, "{}", x), "op_: f32[4,6] = aten.clone.default(y)\n");
  EXPECT_EQ(on_input("aten.copy_.default", "%x, %y", x),
            "op__expand: f32[4,6] = aten.expand.default(y, [4, 6])\n"
            "op_: f32[4,6] = aten.clone.default(op__expand)\n");
  EXPECT_EQ(on_input("aten.copy_.default", "%x, %y", x, "{}", tensor({4, 6}, {}, 0, "bf16")),
            "op_: f32[4,6] = aten._to_copy.default(y, dtype=f32)\n");
}

TEST(InPlace, PromotedResultsAreCastBack) {
  const std::string x = tensor({6}, {}, 0, "f16");
  EXPECT_EQ(on_input("aten.add_.Tensor", "%x, %y", x),
            "op__f32: f32[6] = aten.add.Tensor(x, y)\n"
            "op_: f16[6] = aten._to_copy.default(op__f32, dtype=f16)\n");
  // A tensor without axes and a number do not widen; nor does a narrower tensor.
  EXPECT_EQ(on_input("aten.add_.Tensor", "%x, %y", x, "{}", tensor({})),
            "op_: f16[6] = aten.add.Tensor(x, y)\n");
  EXPECT_EQ(on_input("aten.mul_.Tensor", "%x, 2.5", x), "op_: f16[6] = aten.mul.Tensor(x, 2.5)\n");
  EXPECT_EQ(on_input("aten.mul_.Tensor", "%x, %y", tensor({6}), "{}", x),
            "op_: f32[6] = aten.mul.Tensor(x, y)\n");
  EXPECT_EQ(
      on_input("aten.sub_.Tensor", "%x, %y", tensor({6}, {}, 0, "i32"), "{}", tensor({6}, {}, 0, "i64")),
      "op__i64: i64[6] = aten.sub.Tensor(x, y)\nop_: i32[6] = aten._to_copy.default(op__i64, dtype=i32)\n");
  EXPECT_EQ(on_input("aten.lt_.Scalar", "%x, 1", x),
            "op__bool: bool[6] = aten.lt.Scalar(x, 1)\n"
            "op_: f16[6] = aten._to_copy.default(op__bool, dtype=f16)\n");
  EXPECT_EQ(on_input("aten.logical_not_.default", "%x", tensor({6}, {}, 0, "bool")),
            "op_: bool[6] = aten.logical_not.default(x)\n");
}

TEST(InPlace, ListsOfTensors) {
  GraphText text;
  text.input("x", tensor({4})).input("y", tensor({2}));
  text.list_node("step", "aten._foreach_add_.Scalar", "[%x, %y], 1", {}).output("x");
  EXPECT_EQ(body(functional(text.graph()).graph),
            "step_0: f32[4] = aten.add.Scalar(x, 1)\nstep_1: f32[2] = aten.add.Scalar(y, 1)\n"
            "x <- step_0\ny <- step_1\nreturn step_0\n");
}

TEST(InPlace, AListOperatorThatIsNotKnownByItsElementsStaysWhole) {
  GraphText text;
  text.input("x", tensor({4})).input("y", tensor({2})).input("s", tensor({2}));
  text.list_node("step", "aten._foreach_addcmul_.Tensor", "[%x, %y], [%x, %y], [%x, %y], %s", {}).output("x");
  EXPECT_EQ(body(functional(text.graph()).graph),
            "step: (step_0: f32[4], step_1: f32[2]) = aten._foreach_addcmul.Tensor([x, y], [x, y], [x, y], s)\n"
            "x <- step_0\ny <- step_1\nreturn step_0\n");
}

TEST(InPlace, ChangesOfShapeAloneRenameTheTensor) {
  GraphText text;
  text.input("x", tensor({4, 6})).node("y", "aten.neg.default", "%x", tensor({4, 6}));
  text.node("r", "aten.select.int", "%y, 0, 0", tensor({6}));
  text.node("t_", "aten.t_.default", "%y", tensor({6, 4}, {1, 6}));
  text.node("add_", "aten.add_.Tensor", "%y, 1", tensor({6, 4}, {1, 6}));
  text.node("n", "aten.neg.default", "%r", tensor({6})).output("y").output("n");
  EXPECT_EQ(body(functional(text.graph()).graph),
            "y: f32[4,6] = aten.neg.default(x)\n"
            "r: f32[6] = aten.select.int(y, 0, 0)\n"
            "t_: f32[6,4] = aten.t.default(y)\n"
            "add_: f32[6,4] = aten.add.Tensor(t_, 1)\n"
            "add__into_y: f32[4,6] = aten.permute.default(add_, [1, 0])\n"
            "r_v1: f32[6] = aten.select.int(add__into_y, 0, 0)\n"
            "n: f32[6] = aten.neg.default(r_v1)\n"
            "t__v1: f32[6,4] = aten.t.default(add__into_y)\n"
            "return t__v1, n\n");
}

TEST(InPlace, DetachIsAView) {
  GraphText text;
  text.input("x", tensor({4})).node("detach_", "aten.detach_.default", "%x", tensor({4}));
  text.node("add_", "aten.add_.Tensor", "%detach_, 1", tensor({4})).output("x");
  EXPECT_EQ(body(functional(text.graph()).graph),
            "detach_: f32[4] = aten.detach.default(x)\n"
            "add_: f32[4] = aten.add.Tensor(detach_, 1)\n"
            "x <- add_\nreturn add_\n");
}

// --- normalisations ------------------------------------------------------------------------------------------

TEST(Normalisation, ThatChangesNothingStays) {
  const auto kept = [](const std::string& target, const std::string& args) {
    GraphText text;
    text.input("x", tensor({2, 3, 4})).input("m", tensor({3}), "buffer").input("v", tensor({3}), "buffer");
    text.node("n", target, args, tensor({2, 3, 4})).output("n");
    return !functional(text.graph()).changed;
  };
  EXPECT_TRUE(kept("aten.batch_norm.default", "%x, null, null, %m, %v, false, 0.1, 1e-05, false"));
  EXPECT_TRUE(kept("aten.batch_norm.default", "%x, null, null, null, null, true, 0.1, 1e-05, false"));
  EXPECT_TRUE(kept("aten.instance_norm.default", "%x, null, null, %m, %v, false, 0.1, 1e-05, false"));
  EXPECT_TRUE(kept("aten.instance_norm.default", "%x, null, null, null, null, true, 0.1, 1e-05, false"));
  EXPECT_FALSE(kept("aten.batch_norm.default", "%x, null, null, %m, %v, true, 0.1, 1e-05, false"));
}

TEST(Normalisation, NativeBatchNormKeepsItsOutputs) {
  for (const char* target : {"aten.native_batch_norm.default", "aten._native_batch_norm_legit.default"}) {
    GraphText text;
    text.input("x", tensor({2, 3}, {}, 0, "bf16"))
        .input("m", tensor({3}), "buffer")
        .input("v", tensor({3}), "buffer");
    text.list_node("bn", target, "%x, null, null, %m, %v, true, 0.1, 1e-05",
                   {{"out", tensor({2, 3}, {}, 0, "bf16")}, {"mean", tensor({3})}, {"rstd", tensor({3})}});
    text.node("after", "aten.neg.default", "%m", tensor({3})).output("out").output("mean").output("after");
    EXPECT_EQ(
        body(functional(text.graph()).graph),
        "bn: (out: bf16[2,3], mean: f32[3], rstd: f32[3], bn_running_mean: f32[3], bn_running_var: f32[3]) = "
        "aten._native_batch_norm_legit_functional.default(x, None, None, m, v, True, 0.1, 1e-05)\n"
        "after: f32[3] = aten.neg.default(bn_running_mean)\n"
        "m <- bn_running_mean\nv <- bn_running_var\nreturn out, mean, after\n");
  }
}

TEST(Normalisation, BatchNormWithUpdate) {
  GraphText text;
  text.input("x", tensor({2, 3})).input("m", tensor({3}), "buffer").input("v", tensor({3}), "buffer");
  text.list_node("bn", "aten._batch_norm_with_update.default", "%x, null, null, %m, %v, 0.1, 1e-05",
                 {{"out", tensor({2, 3})},
                  {"mean", tensor({3})},
                  {"rstd", tensor({3})},
                  {"reserve", tensor({0}, {}, 0, "u8")}});
  text.output("out");
  EXPECT_NE(body(functional(text.graph()).graph)
                .find("reserve: u8[0], bn_running_mean: f32[3], bn_running_var: f32[3]) = "
                      "aten._batch_norm_with_update_functional.default(x, None, None, m, v, 0.1, 1e-05)"),
            std::string::npos);
}

TEST(Normalisation, InstanceNormIsABatchNormOverTheBatch) {
  GraphText text;
  text.input("x", tensor({2, 3, 4}))
      .input("w", tensor({3}))
      .input("m", tensor({3}), "buffer")
      .input("v", tensor({3}), "buffer");
  text.node("n", "aten.instance_norm.default", "%x, %w, null, %m, %v, true, 0.1, 1e-05, false",
            tensor({2, 3, 4}));
  text.output("n");
  EXPECT_EQ(body(functional(text.graph()).graph),
            "n_weight: f32[6] = aten.repeat.default(w, [2])\n"
            "n_means: f32[6] = aten.repeat.default(m, [2])\n"
            "n_vars: f32[6] = aten.repeat.default(v, [2])\n"
            "n_input: f32[1,6,4] = aten.reshape.default(x, [1, 6, 4])\n"
            "n_batch_norm: (n_batch_norm.0: f32[1,6,4], n_batch_norm.1: f32[6], n_batch_norm.2: f32[6], "
            "n_batch_norm_means: f32[6], n_batch_norm_vars: f32[6]) = "
            "aten._native_batch_norm_legit_functional.default(n_input, n_weight, None, n_means, n_vars, "
            "True, 0.1, 1e-05)\n"
            "n_mean_rows: f32[2,3] = aten.view.default(n_batch_norm_means, [2, 3])\n"
            "n_running_mean: f32[3] = aten.mean.dim(n_mean_rows, [0], False)\n"
            "n_var_rows: f32[2,3] = aten.view.default(n_batch_norm_vars, [2, 3])\n"
            "n_running_var: f32[3] = aten.mean.dim(n_var_rows, [0], False)\n"
            "n: f32[2,3,4] = aten.reshape.default(n_batch_norm.0, [2, 3, 4])\n"
            "m <- n_running_mean\nv <- n_running_var\nreturn n\n");
}

}  // namespace
}  // namespace pallascope::functional
