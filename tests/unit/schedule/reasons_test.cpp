// Each reason of the decision log, provoked by a small graph. Sizes are metas: nothing is run.
#include "tests/unit/support/lowered.h"

namespace pallascope::schedule {
namespace {

using testing::GraphText;
using testing::Scheduled;

using Conditions = std::vector<std::pair<Condition, ConditionState>>;

constexpr auto kHolds = ConditionState::holds;
constexpr auto kFails = ConditionState::fails;
constexpr auto kNotReached = ConditionState::not_reached;

/// The four conditions in order, with these states.
Conditions conditions(ConditionState order, ConditionState grid, ConditionState fits,
                      ConditionState expressible) {
  return {{Condition::order_and_aliasing, order},
          {Condition::common_grid, grid},
          {Condition::fits_on_chip, fits},
          {Condition::expressible, expressible}};
}

std::string axis_name(const Scheduled& s, const std::optional<index::AxisId>& axis) {
  return axis ? s.program->context->axis(*axis).name : "none";
}

std::string nest_name(const Scheduled& s, const std::optional<loop::NestId>& nest) {
  return nest ? s.program->nests[*nest].name : "none";
}

// ------------------------------------------------------------------------------------------------- lower

TEST(LowerReasons, OneEach) {
  const Scheduled s(GraphText()
                        .in("x", "f32[4,4]")
                        .op("sin", "aten.sin.default", "%x", "f32[4,4]")
                        .op("t", "aten.t.default", "%sin", "f32[4,4]@[1,4]")
                        .op("mm", "aten.mm.default", "%x, %t", "f32[4,4]")
                        .op("inv", "aten.inverse.default", "%mm", "f32[4,4]")
                        .out("inv"));
  EXPECT_EQ(s.log(DecisionKind::lower),
            "+ lower lowered_to_kernel: sin\n"
            "+ lower lowered_to_view: t\n"
            "+ lower left_to_library: mm\n"
            "- lower left_to_torch: inv\n");
  EXPECT_EQ(s.schedule.lower_decisions, 4U);
  EXPECT_EQ(s.find(Reason::left_to_torch).evidence.note, "no lowering for aten.inverse.default");
  EXPECT_EQ(s.find(Reason::lowered_to_kernel).left_steps, std::vector<loop::StepId>{loop::StepId(0)});
  EXPECT_TRUE(s.find(Reason::lowered_to_view).left_steps.empty());
}

// ------------------------------------------------------------------------------------------------ inline

TEST(InlineReasons, NoLoads) {
  const Scheduled s(GraphText()
                        .in("x", "f32[4]")
                        .op("two", "aten.full.default", "[4], 2.0", "f32[4]")
                        .op("mul", "aten.mul.Tensor", "%x, %two", "f32[4]")
                        .out("mul"));
  const Decision& d = s.find(Reason::inlined_no_loads);
  EXPECT_TRUE(d.accepted);
  EXPECT_EQ(s.names(d.left), "two");
  EXPECT_EQ(s.names(d.right), "mul");
  EXPECT_EQ(d.evidence.bytes_saved, 2 * 16);
  const State last = s.last();
  ASSERT_EQ(last.kernels.size(), 1U);
  const Kernel& kernel = last.kernels[KernelId(0)];
  ASSERT_EQ(kernel.nests.size(), 1U);
  const loop::Nest& nest = s.program->nests[kernel.nests[0]];
  EXPECT_EQ(nest.inputs(), s.program->input_buffers) << loop::to_string(*s.program, nest);
  const std::vector<std::string> lines = loop::statement_lines(*s.program, nest);
  EXPECT_EQ(lines.size(), 4U);
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(),
                          [](const auto& l) { return l.ends_with("= constant 2 : f32"); }));
  EXPECT_EQ(s.names(nest.origins), "two mul");
}

TEST(InlineReasons, AReadOfAPartIsTakenAtTheRef) {
  const Scheduled s(GraphText()
                        .in("x", "f32[8,16]")
                        .op("sin", "aten.sin.default", "%x", "f32[8,16]")
                        .op("half", "aten.slice.Tensor", "%sin, 1, 8, 16", "f32[8,8]@[16,1]+8")
                        .op("cos", "aten.cos.default", "%half", "f32[8,8]")
                        .out("cos"));
  const Decision& d = s.find(Reason::inlined_index);
  EXPECT_TRUE(d.accepted);
  ASSERT_EQ(d.evidence.indices.size(), 1U);
  const IndexPair& pair = d.evidence.indices[0];
  EXPECT_EQ(s.program->context->to_string(pair.left), "16*i0 + i1");
  EXPECT_EQ(s.program->context->to_string(pair.right), "16*i0 + i1 + 8");
  EXPECT_EQ(s.program->buffers[pair.buffer].name, "buf1");
  const State last = s.last();
  ASSERT_EQ(last.kernels.size(), 1U);
  const loop::Nest& nest = s.program->nests[last.kernels[KernelId(0)].nests.at(0)];
  EXPECT_EQ(loop::statement_lines(*s.program, nest).at(0), "%0 = load x[16*i0 + i1 + 8] : f32");
}

TEST(InlineReasons, AReductionIsKept) {
  const Scheduled s(GraphText()
                        .in("x", "f32[8,16]")
                        .op("sum", "aten.sum.dim_IntList", "%x, [1], true", "f32[8,1]")
                        .op("div", "aten.div.Tensor", "%x, %sum", "f32[8,16]")
                        .out("div"));
  const Decision& d = s.find(Reason::kept_reduction);
  EXPECT_FALSE(d.accepted);
  EXPECT_EQ(s.names(d.left), "sum");
  EXPECT_EQ(s.names(d.right), "div");
}

TEST(InlineReasons, AScanIsKept) {
  // A reader of one column would need the whole rows again.
  const Scheduled s(GraphText()
                        .in("x", "f32[8,16]")
                        .op("scan", "aten.cumsum.default", "%x, 1", "f32[8,16]")
                        .op("last", "aten.select.int", "%scan, 1, 15", "f32[8]@[16]+15")
                        .op("cos", "aten.cos.default", "%last", "f32[8]")
                        .out("cos"));
  const Decision& d = s.find(Reason::kept_scan);
  EXPECT_FALSE(d.accepted);
  EXPECT_EQ(s.names(d.left), "scan");
  EXPECT_EQ(s.names(d.right), "cos");
  EXPECT_FALSE(s.has(Reason::inlined_index)) << s.log();
}

TEST(InlineReasons, AProducerIsComputedWithinAScan) {
  const Scheduled s(GraphText()
                        .in("x", "f32[8,16]")
                        .op("sin", "aten.sin.default", "%x", "f32[8,16]")
                        .op("half", "aten.slice.Tensor", "%sin, 1, 8, 16", "f32[8,8]@[16,1]+8")
                        .op("scan", "aten.cumprod.default", "%half, 1", "f32[8,8]")
                        .out("scan"));
  EXPECT_TRUE(s.find(Reason::inlined_index).accepted);
  const State last = s.last();
  ASSERT_EQ(last.kernels.size(), 1U);
  const loop::Nest& nest = s.program->nests[last.kernels[KernelId(0)].nests.at(0)];
  EXPECT_EQ(loop::statement_lines(*s.program, nest),
            (std::vector<std::string>{"%0 = load x[16*i0 + i1 + 8] : f32", "%1 = sin %0 : f32", "%2 = cast %1 : f64",
                                      "%3 = scan_prod %2 along i1 : f64", "%4 = cast %3 : f32",
                                      "store " + s.program->buffers[nest.output()].name + "[8*i0 + i1] = %4"}));
}

TEST(InlineReasons, AnOutputIsKept) {
  const Scheduled s(GraphText()
                        .in("x", "f32[4]")
                        .op("sin", "aten.sin.default", "%x", "f32[4]")
                        .op("cos", "aten.cos.default", "%sin", "f32[4]")
                        .out("sin")
                        .out("cos"));
  EXPECT_EQ(s.names(s.find(Reason::kept_output).left), "sin");
  // What a call reads must exist too.
  const Scheduled call(GraphText()
                           .in("x", "f32[4,4]")
                           .op("sin", "aten.sin.default", "%x", "f32[4,4]")
                           .op("cos", "aten.cos.default", "%sin", "f32[4,4]")
                           .op("mm", "aten.mm.default", "%sin, %cos", "f32[4,4]")
                           .out("mm"));
  EXPECT_EQ(call.names(call.find(Reason::kept_output).left), "sin");
}

TEST(InlineReasons, ElementByElementReadsAreLeftToFusion) {
  const Scheduled s(GraphText()
                        .in("x", "f32[4]")
                        .op("sin", "aten.sin.default", "%x", "f32[4]")
                        .op("cos", "aten.cos.default", "%sin", "f32[4]")
                        .out("cos"));
  const Decision& d = s.find(Reason::kept_identity);
  EXPECT_FALSE(d.accepted);
  EXPECT_TRUE(d.evidence.indices.empty());
  EXPECT_TRUE(s.has(Reason::fused_vertical));
}

TEST(InlineReasons, TooManyRepetitionsAreTooCostly) {
  // A column of sin, spread over 16: read in part, 16 times each.
  const Scheduled s(GraphText()
                        .in("x", "f32[8,16]")
                        .in("y", "f32[8,16,16]")
                        .op("sin", "aten.sin.default", "%x", "f32[8,16]")
                        .op("part", "aten.slice.Tensor", "%sin, 0, 1, 2", "f32[1,16]@[16,1]+16")
                        .op("add", "aten.add.Tensor", "%y, %part", "f32[8,16,16]")
                        .out("add"));
  const Decision& d = s.find(Reason::kept_too_costly);
  EXPECT_FALSE(d.accepted);
  EXPECT_EQ(s.names(d.left), "sin");
  ASSERT_EQ(d.evidence.indices.size(), 1U);
}

TEST(InlineReasons, AGatherFromAValueIsTooCostly) {
  const Scheduled s(GraphText()
                        .in("x", "f32[8]")
                        .in("i", "i64[8]")
                        .op("sin", "aten.sin.default", "%x", "f32[8]")
                        .op("pick", "aten.index_select.default", "%sin, 0, %i", "f32[8]")
                        .out("pick"));
  EXPECT_EQ(s.names(s.find(Reason::kept_too_costly).left), "sin");
}

// -------------------------------------------------------------------------------------------------- fuse

TEST(FuseReasons, Vertical) {
  const Scheduled s(GraphText()
                        .in("x", "f32[8,16]")
                        .op("sin", "aten.sin.default", "%x", "f32[8,16]")
                        .op("sum", "aten.sum.dim_IntList", "%sin, [1]", "f32[8]")
                        .out("sum"));
  const Decision& d = s.find(Reason::fused_vertical);
  EXPECT_TRUE(d.accepted);
  EXPECT_EQ(d.evidence.conditions, conditions(kHolds, kHolds, kHolds, kHolds));
  EXPECT_EQ(s.names(d.left), "sin");
  EXPECT_EQ(s.names(d.right), "sum");
  EXPECT_EQ(d.evidence.bytes_saved, 512) << "sin's buffer";
  EXPECT_EQ(d.evidence.working_set, 512 + 512 + 32);
  EXPECT_EQ(d.evidence.working_set_tile, d.evidence.working_set);
  EXPECT_EQ(d.evidence.budget, 16 * 1024 * 1024);
  ASSERT_EQ(d.evidence.indices.size(), 1U);
  EXPECT_EQ(s.program->context->to_string(d.evidence.indices[0].left), "16*i0 + i1");
  EXPECT_EQ(s.program->context->to_string(d.evidence.indices[0].right), "16*i0 + r1");
  EXPECT_TRUE(s.schedule.program->nests.contains(d.evidence.indices[0].left_nest));
  EXPECT_TRUE(d.evidence.path.empty());
  EXPECT_FALSE(d.evidence.axis);
}

TEST(FuseReasons, Horizontal) {
  const Scheduled s(GraphText()
                        .in("x", "f32[4]")
                        .op("sin", "aten.sin.default", "%x", "f32[4]")
                        .op("cos", "aten.cos.default", "%x", "f32[4]")
                        .out("sin")
                        .out("cos"));
  const Decision& d = s.find(Reason::fused_horizontal);
  EXPECT_TRUE(d.accepted);
  EXPECT_EQ(d.evidence.bytes_saved, 16);
  EXPECT_EQ(d.evidence.working_set, 48);
  const State last = s.last();
  ASSERT_EQ(last.kernels.size(), 1U);
  EXPECT_EQ(last.kernels[KernelId(0)].inputs.size(), 1U);
  EXPECT_EQ(last.kernels[KernelId(0)].outputs.size(), 2U);
  EXPECT_EQ(last.bytes_moved, 48);
  EXPECT_EQ(state_at(s.schedule, s.schedule.lower_decisions).bytes_moved, 64);
}

TEST(FuseReasons, LibraryBoundary) {
  const Scheduled s(GraphText()
                        .in("x", "f32[4,4]")
                        .op("sin", "aten.sin.default", "%x", "f32[4,4]")
                        .op("mm", "aten.mm.default", "%sin, %x", "f32[4,4]")
                        .op("cos", "aten.cos.default", "%mm", "f32[4,4]")
                        .out("cos"));
  EXPECT_EQ(s.log(DecisionKind::fuse),
            "- fuse library_boundary: sin | mm\n"
            "- fuse library_boundary: mm | cos\n");
  EXPECT_EQ(s.find(Reason::library_boundary).evidence.conditions,
            conditions(kNotReached, kNotReached, kNotReached, kFails));
  EXPECT_EQ(s.find(Reason::library_boundary).evidence.bytes_saved, 64);
}

TEST(FuseReasons, TorchBoundary) {
  const Scheduled s(GraphText()
                        .in("x", "f32[4,4]")
                        .op("sin", "aten.sin.default", "%x", "f32[4,4]")
                        .op("inv", "aten.inverse.default", "%sin", "f32[4,4]")
                        .op("cos", "aten.cos.default", "%inv", "f32[4,4]")
                        .out("cos"));
  EXPECT_EQ(s.log(DecisionKind::fuse),
            "- fuse torch_boundary: sin | inv\n"
            "- fuse torch_boundary: inv | cos\n");
  EXPECT_EQ(s.find(Reason::torch_boundary).evidence.conditions,
            conditions(kNotReached, kNotReached, kNotReached, kFails));
}

/// sin feeds a product and, beside it, the sum with the product's result.
GraphText around_a_product() {
  return GraphText()
      .in("x", "f32[4,4]")
      .op("sin", "aten.sin.default", "%x", "f32[4,4]")
      .op("mm", "aten.mm.default", "%sin, %x", "f32[4,4]")
      .op("add", "aten.add.Tensor", "%sin, %mm", "f32[4,4]")
      .out("add");
}

TEST(FuseReasons, CycleWithItsPath) {
  const Scheduled s(around_a_product());
  const Decision& d = s.find(Reason::cycle);
  EXPECT_FALSE(d.accepted);
  EXPECT_EQ(d.evidence.conditions, conditions(kFails, kNotReached, kNotReached, kNotReached));
  EXPECT_EQ(s.names(d.left), "sin");
  EXPECT_EQ(s.names(d.right), "add");
  EXPECT_EQ(d.evidence.path, (std::vector<loop::StepId>{loop::StepId(0), loop::StepId(1), loop::StepId(2)}));
  EXPECT_EQ(s.last().kernels.size(), 2U);
}

TEST(FuseReasons, APairRefusedForACycleIsJudgedAgainOnceTheMiddleIsIn) {
  // sum and add share the large x, but sin stands between the two.
  const Scheduled s(GraphText()
                        .in("x", "f32[64,64]")
                        .op("sum", "aten.sum.dim_IntList", "%x, [1], true", "f32[64,1]")
                        .op("sin", "aten.sin.default", "%sum", "f32[64,1]")
                        .op("add", "aten.add.Tensor", "%x, %sin", "f32[64,64]")
                        .out("add"));
  EXPECT_EQ(s.log(DecisionKind::fuse),
            "- fuse cycle: sum | add\n"
            "+ fuse fused_vertical: sum | sin\n"
            "+ fuse fused_horizontal: sum sin | add\n");
  EXPECT_EQ(s.last().kernels.size(), 1U);
}

TEST(FuseReasons, ExceedsMemory) {
  // A tile of 8 whole rows of a million elements is 32 MiB.
  const Scheduled s(GraphText()
                        .in("x", "f32[16,1048576]")
                        .op("sin", "aten.sin.default", "%x", "f32[16,1048576]")
                        .op("sum", "aten.sum.dim_IntList", "%sin, [1]", "f32[16]")
                        .out("sum"));
  const Decision& d = s.find(Reason::exceeds_memory);
  EXPECT_FALSE(d.accepted);
  EXPECT_EQ(d.evidence.conditions, conditions(kHolds, kHolds, kFails, kNotReached));
  EXPECT_EQ(d.evidence.budget, 16 << 20);
  EXPECT_EQ(d.evidence.working_set, (std::int64_t{2} << 26) + 64);
  // x and sin: 8 of 16 rows each, twice (two buffers); sum: 8 of 16.
  EXPECT_EQ(d.evidence.working_set_tile, 2 * 2 * 8 * 1048576 * 4 + 2 * 8 * 4);
  ASSERT_EQ(d.evidence.tile_axes.size(), 1U);
  EXPECT_EQ(axis_name(s, d.evidence.tile_axes[0].at(0)), "i0");
  EXPECT_EQ(axis_name(s, d.evidence.axis), "r1");
  EXPECT_EQ(d.evidence.axis_role, "reduced");
  EXPECT_EQ(nest_name(s, d.evidence.axis_nest), "sum");
}

GraphText row_and_column_sum(std::int64_t rows, std::int64_t columns) {
  const std::string r = std::to_string(rows), c = std::to_string(columns);
  return GraphText()
      .in("x", "f32[" + r + "," + c + "]")
      .op("row", "aten.sum.dim_IntList", "%x, [1]", "f32[" + r + "]")
      .op("column", "aten.sum.dim_IntList", "%x, [0]", "f32[" + c + "]")
      .out("row")
      .out("column");
}

TEST(FuseReasons, RowSumAndColumnSumAreOneKernelWhenTheyFit) {
  const Scheduled s(row_and_column_sum(512, 1024));  // 2 MiB
  EXPECT_EQ(s.last().kernels.size(), 1U) << s.log();
  EXPECT_EQ(s.find(Reason::fused_horizontal).evidence.bytes_saved, 512 * 1024 * 4);
}

TEST(FuseReasons, RowSumAndColumnSumHaveNoCommonGridWhenTheyDoNotFit) {
  const Scheduled s(row_and_column_sum(4096, 2048));  // 32 MiB
  EXPECT_EQ(s.last().kernels.size(), 2U) << s.log();
  const Decision& d = s.find(Reason::common_grid);
  EXPECT_FALSE(d.accepted);
  EXPECT_EQ(d.evidence.conditions, conditions(kHolds, kFails, kNotReached, kNotReached));
  EXPECT_TRUE(d.evidence.tile_axes.empty());
  EXPECT_EQ(d.evidence.axis_role, "reduced");
  // The rows (the larger class) are reduced by the column sum.
  EXPECT_EQ(axis_name(s, d.evidence.axis), "r0");
  EXPECT_EQ(nest_name(s, d.evidence.axis_nest), "column");
  EXPECT_EQ(d.evidence.working_set, 4096 * 2048 * 4 + 4096 * 4 + 2048 * 4);
  ASSERT_EQ(d.evidence.indices.size(), 1U);
  EXPECT_EQ(s.program->context->to_string(d.evidence.indices[0].left), "2048*i0 + r1");
  EXPECT_EQ(s.program->context->to_string(d.evidence.indices[0].right), "2048*r0 + i1");
}

TEST(FuseReasons, TheLimitIsTheTargets) {
  Options small;
  small.model.memory_bytes = 1 << 20;
  EXPECT_EQ(Scheduled(row_and_column_sum(512, 1024), small).last().kernels.size(), 2U);
  Options large;
  large.model.memory_bytes = 1 << 30;
  const Scheduled s(row_and_column_sum(4096, 2048), large);
  EXPECT_EQ(s.last().kernels.size(), 1U);
  EXPECT_EQ(s.find(Reason::fused_horizontal).evidence.budget, 1 << 30);
}

TEST(FuseReasons, TheWorkingSetIsComparedWithTheBudgetExactly) {
  const std::int64_t need = 512 * 1024 * 4 + 512 * 4 + 1024 * 4;
  Options exact;
  exact.model.memory_bytes = need;
  EXPECT_EQ(Scheduled(row_and_column_sum(512, 1024), exact).last().kernels.size(), 1U);
  exact.model.memory_bytes = need - 1;
  EXPECT_EQ(Scheduled(row_and_column_sum(512, 1024), exact).last().kernels.size(), 2U);
}

TEST(FuseReasons, ASliceOfAValueIsNotExpressible) {
  const Scheduled s(GraphText()
                        .in("x", "f32[8,16]")
                        .op("sum", "aten.sum.dim_IntList", "%x, [1]", "f32[8]")
                        .op("half", "aten.slice.Tensor", "%sum, 0, 0, 8, 2", "f32[4]@[2]")
                        .op("cos", "aten.cos.default", "%half", "f32[4]")
                        .out("cos"));
  const Decision& d = s.find(Reason::not_expressible);
  EXPECT_FALSE(d.accepted);
  EXPECT_EQ(d.evidence.conditions, conditions(kHolds, kHolds, kHolds, kFails));
  ASSERT_EQ(d.evidence.indices.size(), 1U);
  EXPECT_EQ(s.program->context->to_string(d.evidence.indices[0].right), "2*i0");
  EXPECT_EQ(s.last().kernels.size(), 2U);
}

TEST(FuseReasons, ThereIsNoReasonWithoutWords) {
  for (int k = 0; k <= static_cast<int>(Reason::not_expressible); ++k) {
    const auto reason = static_cast<Reason>(k);
    EXPECT_FALSE(reason_words(reason).empty()) << k;
    EXPECT_FALSE(reason_name(reason).empty()) << k;
    for (int other = 0; other < k; ++other) {
      EXPECT_NE(reason_name(reason), reason_name(static_cast<Reason>(other)));
      EXPECT_NE(reason_words(reason), reason_words(static_cast<Reason>(other)));
    }
  }
}

}  // namespace
}  // namespace pallascope::schedule
