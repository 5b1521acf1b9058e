// What lowering makes of nodes: nests, views, library calls, torch calls, diagnostics.
#include "core/lower/lower.h"

#include <set>

#include "core/lower/builder.h"
#include "tests/unit/support/lowered.h"

namespace pallascope::lower {
namespace {

using loop::NestId;
using loop::Outcome;
using testing::GraphText;
using testing::lowered;

const loop::NodeOutcome& outcome(const loop::Program& program, std::size_t node) {
  return program.outcomes.at(node);
}

/// Every nest as text.
std::string nests(const loop::Program& program) {
  std::string text;
  for (std::size_t k = 0; k < program.nests.size(); ++k)
    text += loop::to_string(program, program.nests[NestId(k)]);
  return text;
}

std::string pointwise_nest(const GraphText& text) { return nests(*lowered(text.graph())); }

TEST(Outcomes, EachKind) {
  const trace::Graph graph = GraphText()
                                 .in("x", "f32[4,8]")
                                 .op("sin", "aten.sin.default", "%x", "f32[4,8]")
                                 .op("t", "aten.t.default", "%sin", "f32[8,4]@[1,8]")
                                 .op("mm", "aten.mm.default", "%x, %t", "f32[4,4]")
                                 .op("inv", "aten.inverse.default", "%mm", "f32[4,4]")
                                 .op("addmm", "aten.addmm.default", "%inv, %x, %t", "f32[4,4]")
                                 .out("addmm")
                                 .graph();
  const auto program = lowered(graph);
  ASSERT_EQ(program->outcomes.size(), 5U);
  EXPECT_EQ(outcome(*program, 0).outcome, Outcome::kernel);
  ASSERT_EQ(outcome(*program, 0).steps.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<NestId>(program->steps[outcome(*program, 0).steps[0]].content));

  EXPECT_EQ(outcome(*program, 1).outcome, Outcome::view);
  EXPECT_TRUE(outcome(*program, 1).steps.empty());

  EXPECT_EQ(outcome(*program, 2).outcome, Outcome::library);
  ASSERT_EQ(outcome(*program, 2).steps.size(), 1U);
  const auto& product = std::get<loop::LibraryCall>(program->steps[outcome(*program, 2).steps[0]].content);
  EXPECT_EQ(product.op, "aten.mm.default");
  EXPECT_EQ(product.origin, trace::NodeId(2));
  EXPECT_EQ(program->buffers[product.outputs.at(0)].dims, (Sizes{4, 4}));
  EXPECT_EQ(program->buffers[product.operands.at(1).buffer].name, "buf1") << "the transposed view reads sin's buffer";

  EXPECT_EQ(outcome(*program, 3).outcome, Outcome::torch);
  EXPECT_EQ(outcome(*program, 3).why, "no lowering for aten.inverse.default");
  const auto& call = std::get<loop::TorchCall>(program->steps[outcome(*program, 3).steps.at(0)].content);
  ASSERT_EQ(call.inputs.size(), 1U);
  ASSERT_EQ(call.outputs.size(), 1U);
  EXPECT_EQ(program->buffers[call.outputs[0]].origin, *graph.find_value("inv"));

  EXPECT_EQ(outcome(*program, 4).outcome, Outcome::library);
  ASSERT_EQ(outcome(*program, 4).steps.size(), 2U) << "the product, and the sum as a nest";
  EXPECT_TRUE(
      std::holds_alternative<loop::LibraryCall>(program->steps[outcome(*program, 4).steps[0]].content));
  EXPECT_TRUE(std::holds_alternative<NestId>(program->steps[outcome(*program, 4).steps[1]].content));
}

TEST(Outcomes, ADtypeThatKernelsDoNotHoldIsATorchCallWithItsReason) {
  const auto program = lowered(GraphText()
                                   .in("x", "c64[4]")
                                   .op("sin", "aten.sin.default", "%x", "c64[4]")
                                   .op("abs", "aten.abs.default", "%sin", "f32[4]")
                                   .op("cos", "aten.cos.default", "%abs", "f32[4]")
                                   .out("cos")
                                   .graph());
  EXPECT_EQ(outcome(*program, 0).outcome, Outcome::torch);
  EXPECT_EQ(outcome(*program, 0).why, "a dtype that kernels do not hold");
  EXPECT_EQ(outcome(*program, 1).outcome, Outcome::torch);
  EXPECT_EQ(outcome(*program, 2).outcome, Outcome::kernel);
}

TEST(Outcomes, SharedArgumentsOfATorchCallComeOnce) {
  const auto program = lowered(
      GraphText().in("x", "f32[4]").op("k", "aten.gcd_special.default", "%x, %x", "f32[4]").out("k").graph());
  const auto& call = std::get<loop::TorchCall>(program->steps[loop::StepId(0)].content);
  EXPECT_EQ(call.inputs.size(), 1U);
}

TEST(Outcomes, ATorchCallTakesNoViewThatTorchCannotMake) {
  // A reversed view has a negative stride: a nest writes it out first.
  const auto program = lowered(GraphText()
                                   .in("x", "f32[4]")
                                   .op("flip", "aten.flip.default", "%x, [0]", "f32[4]")
                                   .op("inv", "aten.erfinv_special.default", "%flip", "f32[4]")
                                   .out("inv")
                                   .graph());
  ASSERT_EQ(program->steps.size(), 2U);
  const auto& call = std::get<loop::TorchCall>(program->steps[loop::StepId(1)].content);
  EXPECT_EQ(program->buffers[call.inputs.at(0).second.buffer].name, "buf1");
  EXPECT_EQ(program->nests[NestId(0)].name, "inv.argument");
}

TEST(Outcomes, AViewOutsideOfItsStorageIsADiagnosticThatNamesTheLine) {
  const trace::Graph graph =
      GraphText().in("x", "f32[4]").op("s", "aten.select.int", "%x, 0, 9", "f32[]").out("s").graph();
  const Result<loop::Program> program = lower(graph);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().kind, DiagnosticKind::invalid_argument);
  EXPECT_NE(program.error().where.find("model.py:1"), std::string::npos) << to_string(program.error());
  EXPECT_NE(program.error().where.find("s"), std::string::npos);
}

TEST(Outcomes, AMaximumOfNothingIsADiagnostic) {
  const Result<loop::Program> program = lower(
      GraphText().in("x", "f32[4,0]").op("m", "aten.amax.default", "%x, [1]", "f32[4]").out("m").graph());
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().kind, DiagnosticKind::invalid_argument);
}

TEST(Limit, LaterNodesAreTorchCalls) {
  const trace::Graph graph = GraphText()
                                 .in("x", "f32[4]")
                                 .op("a", "aten.sin.default", "%x", "f32[4]")
                                 .op("b", "aten.cos.default", "%a", "f32[4]")
                                 .op("c", "aten.exp.default", "%b", "f32[4]")
                                 .out("c")
                                 .graph();
  for (std::size_t limit = 0; limit <= 3; ++limit) {
    const auto program = lowered(graph, limit);
    ASSERT_EQ(program->outcomes.size(), 3U);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(outcome(*program, k).outcome, k < limit ? Outcome::kernel : Outcome::torch) << limit;
      EXPECT_EQ(outcome(*program, k).why, k < limit ? "" : "not lowered at this decision");
    }
    EXPECT_EQ(program->nests.size(), limit);
  }
  EXPECT_EQ(lowered(graph, 99)->nests.size(), 3U);
}

TEST(Nests, Pointwise) {
  EXPECT_EQ(pointwise_nest(GraphText()
                               .in("x", "f32[8,16]")
                               .in("y", "f32[16]")
                               .op("add", "aten.add.Tensor", "%x, %y", "f32[8,16]", R"("alpha": 2)")
                               .out("add")),
            "add: i0 < 8, i1 < 16\n"
            "  %0 = load x[16*i0 + i1] : f32\n"
            "  %1 = load y[i1] : f32\n"
            "  %2 = constant 2 : f32\n"
            "  %3 = mul %1, %2 : f32\n"
            "  %4 = add %0, %3 : f32\n"
            "  store buf2[16*i0 + i1] = %4\n");
}

TEST(Nests, UserCastsStayAndSixteenBitsComputeInF32) {
  EXPECT_EQ(
      pointwise_nest(GraphText()
                         .in("x", "f32[4]")
                         .op("to", "aten._to_copy.default", "%x", "bf16[4]", R"("dtype": {"dtype": "bf16"})")
                         .op("sin", "aten.sin.default", "%to", "bf16[4]")
                         .out("sin")),
      "to: i0 < 4\n"
      "  %0 = load x[i0] : f32\n"
      "  %1 = cast %0 : bf16\n"
      "  store buf1[i0] = %1\n"
      "sin: i0 < 4\n"
      "  %0 = load buf1[i0] : bf16\n"
      "  %1 = cast %0 : f32\n"
      "  %2 = sin %1 : f32\n"
      "  %3 = cast %2 : bf16\n"
      "  store buf2[i0] = %3\n");
}

TEST(Nests, ReductionKeepsNoReducedDimensionInItsBuffer) {
  const trace::Graph graph = GraphText()
                                 .in("x", "f32[2,3,4]")
                                 .op("s", "aten.sum.dim_IntList", "%x, [1], true", "f32[2,1,4]")
                                 .out("s")
                                 .graph();
  const auto program = lowered(graph);
  EXPECT_EQ(nests(*program),
            "s: i0 < 2, r1 < 3 (reduced), i2 < 4\n"
            "  %0 = load x[12*i0 + 4*r1 + i2] : f32\n"
            "  %1 = reduce_sum %0 over r1 : f32\n"
            "  store buf1[4*i0 + i2] = %1\n");
  EXPECT_EQ(program->buffers[program->nests[NestId(0)].output()].dims, (Sizes{2, 4}));
}

TEST(Nests, TheSumOfNothingIsTheIdentity) {
  EXPECT_EQ(
      pointwise_nest(
          GraphText().in("x", "f32[2,0]").op("s", "aten.sum.dim_IntList", "%x, [1]", "f32[2]").out("s")),
      "s: i0 < 2, i1 < 1\n"
      "  %0 = constant 0 : f32\n"
      "  store buf1[i0] = %0\n");
}

TEST(Nests, ANestOverNothingIsNoStep) {
  const trace::Graph graph =
      GraphText().in("x", "f32[0,4]").op("sin", "aten.sin.default", "%x", "f32[0,4]").out("sin").graph();
  const auto program = lowered(graph);
  EXPECT_EQ(program->steps.size(), 0U);
  EXPECT_EQ(outcome(*program, 0).outcome, Outcome::kernel);
  EXPECT_TRUE(outcome(*program, 0).steps.empty());
}

TEST(Nests, RankZeroHasTwoAxesOfOne) {
  EXPECT_EQ(
      pointwise_nest(GraphText().in("x", "f32[]").op("sin", "aten.sin.default", "%x", "f32[]").out("sin")),
      "sin: u0 < 1, u1 < 1\n"
      "  %0 = load x[0] : f32\n"
      "  %1 = sin %0 : f32\n"
      "  store buf1[0] = %1\n");
}

TEST(Nests, IndicesAreSymbolsWithTheirLegalRange) {
  const trace::Graph graph = GraphText()
                                 .in("x", "f32[6,4]")
                                 .in("i", "i64[3]")
                                 .op("e", "aten.index_select.default", "%x, 0, %i", "f32[3,4]")
                                 .out("e")
                                 .graph();
  const auto program = lowered(graph);
  const loop::Nest& nest = program->nests[NestId(0)];
  ASSERT_EQ(nest.symbols.size(), 1U);
  EXPECT_EQ(nest.symbols[0].low, 0);
  EXPECT_EQ(nest.symbols[0].high, 5);
  EXPECT_TRUE(nest.symbols[0].checked);
  EXPECT_EQ(nest.body[static_cast<std::size_t>(nest.symbols[0].statement)].kind, loop::StatementKind::load);
  EXPECT_EQ(loop::access_of(*program, NestId(0), 1).access_class, index::AccessClass::gather);
}

TEST(Nests, EveryStatementKnowsItsNode) {
  const trace::Graph graph = testing::softmax_rows(8, 16).graph();
  const auto program = lowered(graph);
  EXPECT_GT(program->nests.size(), 3U);
  for (const loop::Nest& nest : program->nests) {
    EXPECT_EQ(nest.origin, trace::NodeId(0));
    EXPECT_EQ(nest.origins, std::vector<trace::NodeId>{trace::NodeId(0)});
    for (const loop::Statement& s : nest.body) EXPECT_EQ(s.origin, trace::NodeId(0));
  }
}

TEST(Views, AreIndexMapsOfTheirSource) {
  struct Case {
    const char *target, *args, *spec;
    Sizes strides;
    std::int64_t offset;
  };
  for (const Case& c : {
           Case{"aten.permute.default", "%x, [1, 0]", "f32[4,6]@[1,4]", {1, 4}, 0},
           Case{"aten.slice.Tensor", "%x, 0, 1, 6, 2", "f32[3,4]@[8,1]+4", {8, 1}, 4},
           Case{"aten.select.int", "%x, 1, -1", "f32[6]@[4]+3", {4}, 3},
           Case{"aten.unsqueeze.default", "%x, 1", "f32[6,1,4]", {4, 4, 1}, 0},
           Case{"aten.view.default", "%x, [2, 12]", "f32[2,12]", {12, 1}, 0},
           Case{"aten.flip.default", "%x, [0]", "f32[6,4]", {-4, 1}, 20},
           Case{"aten.expand.default", "%row, [5, 4]", "f32[5,4]@[0,1]", {0, 1}, 0},
           Case{"aten.diagonal.default", "%x", "f32[4]@[5]", {5}, 0},
       }) {
    SCOPED_TRACE(c.target);
    // The row is returned too, so that a view which writes nothing out is all that this lowers.
    const trace::Graph graph = GraphText()
                                   .in("x", "f32[6,4]")
                                   .in("row", "f32[1,4]")
                                   .op("v", c.target, c.args, c.spec)
                                   .out("row")
                                   .graph();
    const auto program = lowered(graph);
    EXPECT_EQ(outcome(*program, 0).outcome, Outcome::view);
    EXPECT_EQ(program->steps.size(), 0U);
    const loop::View& view = program->views.at(*graph.find_value("v"));
    EXPECT_EQ(program->buffers[view.buffer].kind, loop::BufferKind::input);
    const std::optional<loop::AffineView> found = loop::affine(*program->context, view);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->strides, c.strides);
    EXPECT_EQ(found->offset, c.offset);
  }
}

TEST(Views, AResultThatTorchCannotViewIsWrittenOut) {
  const trace::Graph graph =
      GraphText().in("x", "f32[4]").op("flip", "aten.flip.default", "%x, [0]", "f32[4]").out("flip").graph();
  const auto program = lowered(graph);
  ASSERT_EQ(program->nests.size(), 1U);
  EXPECT_EQ(program->nests[NestId(0)].name, "flip.result");
  EXPECT_EQ(outcome(*program, 0).steps.size(), 1U) << "the copy belongs to the node";
}

TEST(Outputs, NoneAndMutationsAreKnown) {
  const auto program = lowered(
      GraphText().in("x", "f32[4]").op("s", "aten.sin.default", "%x", "f32[4]").out("s").out("x").graph());
  ASSERT_EQ(program->outputs.size(), 2U);
  EXPECT_EQ(program->outputs[0].meta.sizes, Sizes{4});
  EXPECT_EQ(program->outputs[1].view.buffer, program->input_buffers[0]);
}

TEST(Library, AnOperandThatNoViewCanExpressIsCopied) {
  // A window that overlaps itself is no view of a contiguous array.
  const auto program = lowered(GraphText()
                                   .in("x", "f32[10]")
                                   .in("w", "f32[3,2]")
                                   .op("u", "aten.unfold.default", "%x, 0, 3, 1", "f32[8,3]@[1,1]")
                                   .op("mm", "aten.mm.default", "%u, %w", "f32[8,2]")
                                   .out("mm")
                                   .graph());
  ASSERT_EQ(program->nests.size(), 1U);
  EXPECT_EQ(program->nests[NestId(0)].name, "mm.lhs");
}

TEST(Library, AConvolutionTakesItsOperandsAsTheyLie) {
  const auto program = lowered(
      GraphText()
          .in("x", "f32[2,3,8,9]@[216,1,27,3]")
          .in("w", "f32[6,3,3,3]")
          .in("b", "f32[6]")
          .op("c", "aten.conv2d.default", "%x, %w, %b, [2,1], [1,0]", "f32[2,6,4,7]@[168,1,42,6]")
          .out("c")
          .graph());
  ASSERT_EQ(outcome(*program, 0).steps.size(), 2U) << "the convolution, and the bias as a nest";
  const auto& call = std::get<loop::LibraryCall>(program->steps[outcome(*program, 0).steps[0]].content);
  const auto& c = std::get<loop::Convolution>(call.function);
  EXPECT_EQ(c.input, "N01C") << "channels last, as they are";
  EXPECT_EQ(c.kernel, "OI01");
  EXPECT_EQ(c.output, "N01C");
  EXPECT_EQ(c.stride, (Sizes{2, 1}));
  EXPECT_EQ(c.low, (Sizes{1, 0}));
  EXPECT_EQ(c.high, (Sizes{0, 0})) << "the last row of padding is never reached";
  EXPECT_EQ(program->buffers[call.outputs.at(0)].dims, (Sizes{2, 4, 7, 6}));
}

TEST(Library, ASortHasValuesAndPositionsWhereTheyAreWanted) {
  const auto program = lowered(GraphText()
                                   .in("x", "f32[4,8]")
                                   .op("m", "aten.msort.default", "%x", "f32[4,8]")
                                   .op("a", "aten.argsort.default", "%x, 0, true", "i64[4,8]")
                                   .out("m")
                                   .out("a")
                                   .graph());
  const auto& alone = std::get<loop::LibraryCall>(program->steps[outcome(*program, 0).steps.at(0)].content);
  EXPECT_EQ(alone.outputs.size(), 1U);
  const auto& both = std::get<loop::LibraryCall>(program->steps[outcome(*program, 1).steps.at(0)].content);
  ASSERT_EQ(both.outputs.size(), 2U);
  EXPECT_EQ(program->buffers[both.outputs[1]].dtype, DType::i64);
  EXPECT_TRUE(std::get<loop::Sort>(both.function).descending);
  EXPECT_EQ(std::get<loop::Sort>(both.function).dimension, 0U);
}

TEST(Library, AProductOverNothingIsZero) {
  const auto program = lowered(GraphText()
                                   .in("x", "f32[2,0]")
                                   .in("w", "f32[0,3]")
                                   .op("mm", "aten.mm.default", "%x, %w", "f32[2,3]")
                                   .out("mm")
                                   .graph());
  ASSERT_EQ(program->steps.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<NestId>(program->steps[loop::StepId(0)].content));
}

TEST(Intake, IntegerDivisionByTheNumberZero) {
  for (const char* op : {"aten.floor_divide.Scalar", "aten.remainder.Scalar", "aten.fmod.Scalar"}) {
    const auto divided = [&](const std::string& meta, const std::string& divisor) {
      return lower(GraphText().in("x", meta).op("q", op, "%x, " + divisor, meta).out("q").graph());
    };
    const auto refused = divided("i64[4]", "0");
    ASSERT_FALSE(refused.ok()) << op;
    EXPECT_EQ(refused.error().kind, DiagnosticKind::invalid_argument);
    EXPECT_NE(refused.error().message.find("divides integers by 0"), std::string::npos);
    EXPECT_TRUE(refused.error().where.starts_with("q"));
    EXPECT_FALSE(refused.error().remedy.empty());
    EXPECT_TRUE(divided("i64[4]", "2").ok()) << op;
    EXPECT_TRUE(divided("f32[4]", "0").ok()) << op;
    EXPECT_TRUE(divided("i64[0]", "0").ok()) << "there is nothing to divide";
  }
}

TEST(Intake, ViewsOutsideOfTheirStorage) {
  const auto viewed = [](const std::string& args, const std::string& meta) {
    return lower(GraphText()
                     .in("x", "f32[20]")
                     .op("y", "aten.neg.default", "%x", "f32[20]")
                     .op("v", "aten.as_strided.default", "%y, " + args, meta)
                     .out("v")
                     .graph());
  };
  EXPECT_TRUE(viewed("[4, 5], [5, 1]", "f32[4,5]").ok());
  EXPECT_TRUE(viewed("[2], [1], 18", "f32[2]").ok());
  for (const auto& [args, meta] : {std::pair{"[10, 10], [10, 1]", "f32[10,10]"}, std::pair{"[3], [1], 18", "f32[3]"}}) {
    const auto refused = viewed(args, meta);
    ASSERT_FALSE(refused.ok()) << args;
    EXPECT_EQ(refused.error().kind, DiagnosticKind::storage_bounds);
    EXPECT_TRUE(refused.error().where.starts_with("v"));
  }
  const auto mismatch = viewed("[2, 2], [1]", "f32[2,2]");
  ASSERT_FALSE(mismatch.ok());
  EXPECT_EQ(mismatch.error().kind, DiagnosticKind::malformed_graph);
}

TEST(Intake, MetasThatDoNotFollowFromTheirArguments) {
  const auto refused = [](const std::string& op, const std::string& args, const std::string& meta) {
    return !lower(GraphText().in("x", "f32[4,5]").op("v", op, args, meta).out("v").graph()).ok();
  };
  EXPECT_TRUE(refused("aten.select.int", "%x, 0, 9", "f32[5]"));
  EXPECT_TRUE(refused("aten.slice.Tensor", "%x, 0, 2, 4", "f32[3,5]"));
  EXPECT_TRUE(refused("aten.narrow.default", "%x, 0, 2, 3", "f32[3,5]"));
  EXPECT_TRUE(refused("aten.unfold.default", "%x, 0, 5, 1", "f32[1,5,5]"));
  EXPECT_TRUE(refused("aten.view.default", "%x, [3, 5]", "f32[3,5]"));
  EXPECT_TRUE(refused("aten.expand.default", "%x, [3, 5]", "f32[3,5]"));
  EXPECT_FALSE(refused("aten.narrow.default", "%x, 0, 2, 2", "f32[2,5]"));
}

TEST(Table, SaysWhatBecomesOfEachRow) {
  for (const OperatorRow& row : operator_table()) {
    EXPECT_EQ(row.dtypes.empty(), !row.outcome || *row.outcome == loop::Outcome::torch) << row.op;
    EXPECT_EQ(row.why.empty(), !row.dtypes.empty()) << row.op;
  }
}

TEST(Table, NamesEachOverloadOnceWithItsFamily) {
  std::set<std::string_view> seen;
  const std::vector<OperatorRow> rows = operator_table();
  EXPECT_GT(rows.size(), 100U);
  for (const OperatorRow& row : rows) {
    EXPECT_TRUE(seen.insert(row.op).second) << row.op;
    EXPECT_FALSE(row.family.empty()) << row.op;
    EXPECT_TRUE(row.op.starts_with("aten.") || row.op.starts_with("prims.")) << row.op;
  }
  EXPECT_TRUE(seen.contains("aten.add.Tensor"));
  EXPECT_TRUE(
      std::is_sorted(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.op < b.op; }));
}

}  // namespace
}  // namespace pallascope::lower
