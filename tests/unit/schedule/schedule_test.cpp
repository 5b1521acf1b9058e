// The log as a whole, states of its prefixes, tiles, and kernels of known programs.
#include "core/schedule/schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/schedule/inline.h"
#include "core/schedule/tiles.h"
#include "tests/unit/support/lowered.h"

namespace pallascope::schedule {
namespace {

using testing::GraphText;
using testing::Scheduled;

/// A little of everything: inlining, vertical and horizontal fusion, a product, a torch call, a concatenation.
GraphText mixed() {
  return GraphText()
      .in("x", "f32[8,16]")
      .in("w", "f32[16,16]")
      .op("sin", "aten.sin.default", "%x", "f32[8,16]")
      .op("cos", "aten.cos.default", "%x", "f32[8,16]")
      .op("half", "aten.slice.Tensor", "%sin, 1, 0, 8", "f32[8,8]@[16,1]")
      .op("exp", "aten.exp.default", "%half", "f32[8,8]")
      .op("softmax", "aten.softmax.int", "%cos, -1", "f32[8,16]")
      .op("mm", "aten.mm.default", "%softmax, %w", "f32[8,16]")
      .op("one", "aten.full.default", "[8,16], 1.0", "f32[8,16]")
      .op("add", "aten.add.Tensor", "%mm, %one", "f32[8,16]")
      .op("back", "aten.add.Tensor", "%add, %softmax", "f32[8,16]")
      .op("inv", "aten.erfinv_unknown.default", "%back", "f32[8,16]")
      .op("cat", "aten.cat.default", "[%exp, %inv], 1", "f32[8,24]")
      .op("total", "aten.sum.dim_IntList", "%cat, [0]", "f32[24]")
      .out("total")
      .out("cat");
}

/// Checks a state: each live nest in one kernel, calls once, every buffer written before it is read, the lists of
/// inputs, outputs and internal buffers complete.
void expect_sound(const Scheduled& s, const State& state, std::size_t count) {
  SCOPED_TRACE("after " + std::to_string(count) + " decisions");
  const loop::Program& program = *s.program;
  std::set<loop::BufferId> ready(program.input_buffers.begin(), program.input_buffers.end());
  std::set<loop::NestId> nests;
  std::set<loop::StepId> calls;
  std::set<loop::BufferId> returned;
  for (const loop::OutputValue& output : program.outputs)
    if (!output.none) returned.insert(output.view.buffer);
  const auto expect_ready = [&](loop::BufferId b) {
    EXPECT_TRUE(ready.contains(b)) << program.buffers[b].name << " is read before it is written";
  };
  std::size_t kernels = 0;
  for (const ScheduledStep& step : state.steps) {
    ASSERT_NE(step.kernel.valid(), step.call.valid());
    if (step.call.valid()) {
      EXPECT_TRUE(calls.insert(step.call).second);
      const auto& content = program.steps[step.call].content;
      if (const auto* library = std::get_if<loop::LibraryCall>(&content)) {
        for (const loop::View& operand : library->operands) expect_ready(operand.buffer);
        ready.insert(library->outputs.begin(), library->outputs.end());
      } else {
        const auto& torch = std::get<loop::TorchCall>(content);
        for (const auto& [value, view] : torch.inputs) expect_ready(view.buffer);
        for (loop::BufferId b : torch.outputs)
          if (b.valid()) ready.insert(b);
      }
      continue;
    }
    ++kernels;
    const Kernel& kernel = state.kernels[step.kernel];
    ASSERT_FALSE(kernel.nests.empty());
    std::set<loop::BufferId> reads, writes, here;
    for (loop::NestId id : kernel.nests) {
      EXPECT_TRUE(nests.insert(id).second) << program.nests[id].name << " is in two kernels";
      for (loop::BufferId b : program.nests[id].inputs()) {
        if (!here.contains(b)) expect_ready(b);
        reads.insert(b);
      }
      here.insert(program.nests[id].output());
      writes.insert(program.nests[id].output());
    }
    std::set<loop::BufferId> inputs(kernel.inputs.begin(), kernel.inputs.end()),
        made(kernel.outputs.begin(), kernel.outputs.end());
    EXPECT_EQ(inputs.size(), kernel.inputs.size());
    for (loop::BufferId b : kernel.internal) EXPECT_TRUE(made.insert(b).second);
    EXPECT_EQ(made, writes);
    for (loop::BufferId b : reads)
      EXPECT_NE(inputs.contains(b), writes.contains(b)) << program.buffers[b].name;
    for (loop::BufferId b : kernel.internal) EXPECT_FALSE(returned.contains(b)) << program.buffers[b].name;
    std::int64_t moved = 0, held = 0;
    for (loop::BufferId b : kernel.inputs) moved += program.buffers[b].bytes();
    for (loop::BufferId b : kernel.outputs) moved += program.buffers[b].bytes();
    for (loop::BufferId b : kernel.internal) held += program.buffers[b].bytes();
    EXPECT_EQ(kernel.bytes_moved, moved);
    EXPECT_EQ(kernel.working_set, moved + held);
    ready.insert(writes.begin(), writes.end());
  }
  EXPECT_EQ(kernels, state.kernels.size());
  for (loop::BufferId b : returned) expect_ready(b);
  // No buffer that is internal is read outside of its kernel.
  std::map<loop::BufferId, KernelId> internal;
  for (std::size_t k = 0; k < state.kernels.size(); ++k)
    for (loop::BufferId b : state.kernels[KernelId(k)].internal) internal.emplace(b, KernelId(k));
  for (std::size_t k = 0; k < state.kernels.size(); ++k)
    for (loop::BufferId b : state.kernels[KernelId(k)].inputs)
      EXPECT_FALSE(internal.contains(b)) << program.buffers[b].name;
  // The steps that live, by the log.
  std::set<loop::StepId> gone;
  std::map<loop::StepId, loop::NestId> now;
  for (std::size_t k = 0; k < program.steps.size(); ++k)
    if (const auto* nest = std::get_if<loop::NestId>(&program.steps[loop::StepId(k)].content))
      now[loop::StepId(k)] = *nest;
  for (std::size_t k = 0; k < count; ++k) {
    const Effect& effect = s.schedule.effects[k];
    if (effect.removed.valid()) now.erase(effect.removed);
    for (const auto& [step, nest] : effect.replaced) now[step] = nest;
  }
  std::set<loop::NestId> live;
  for (const auto& [step, nest] : now) live.insert(nest);
  EXPECT_EQ(nests, live);
}

TEST(Prefixes, EachStateIsASoundProgram) {
  const Scheduled s(mixed());
  ASSERT_GT(s.schedule.decisions.size(), s.schedule.lower_decisions + 8) << s.log();
  for (std::size_t count = s.schedule.lower_decisions; count <= s.schedule.decisions.size(); ++count)
    expect_sound(s, state_at(s.schedule, count), count);
}

/// The sums are put together before sin and add, which share less; then the way from sin over the product to the sums
/// and on to add goes through a kernel with a step on each side of add.
GraphText around_a_kernel_with_earlier_and_later_steps() {
  return GraphText()
      .in("x", "f32[8,8]")
      .in("y", "f32[8,4096]")
      .in("w", "f32[8,4096]")
      .op("sin", "aten.sin.default", "%x", "f32[8,8]")
      .op("sum", "aten.sum.dim_IntList", "%y, [1], true", "f32[8,1]")
      .op("add", "aten.add.Tensor", "%sin, %sum", "f32[8,8]")
      .op("mm", "aten.mm.default", "%sin, %w", "f32[8,4096]")
      .op("last", "aten.add.Tensor", "%mm, %y", "f32[8,4096]")
      .out("add")
      .out("last");
}

TEST(Prefixes, AWayThroughAMergedKernelIsSeen) {
  const Scheduled s(around_a_kernel_with_earlier_and_later_steps());
  for (std::size_t count = s.schedule.lower_decisions; count <= s.schedule.decisions.size(); ++count)
    expect_sound(s, state_at(s.schedule, count), count);
  EXPECT_EQ(s.log(DecisionKind::fuse),
            "- fuse library_boundary: mm | last\n"
            "+ fuse fused_horizontal: sum | last\n"
            "- fuse cycle: sin | add\n"
            "- fuse library_boundary: sin | mm\n"
            "+ fuse fused_vertical: sum last | add\n"
            "- fuse cycle: sin | sum add last\n");
}

TEST(Prefixes, OnlyAcceptedDecisionsChangeTheState) {
  const Scheduled s(mixed());
  std::size_t before = state_at(s.schedule, s.schedule.lower_decisions).kernels.size();
  for (std::size_t k = s.schedule.lower_decisions; k < s.schedule.decisions.size(); ++k) {
    const std::size_t after = state_at(s.schedule, k + 1).kernels.size();
    EXPECT_EQ(after, before - (s.schedule.decisions[k].accepted ? 1U : 0U)) << "d" << k << "\n" << s.log();
    before = after;
  }
}

TEST(Prefixes, BytesMovedNeverGrow) {
  const Scheduled s(mixed());
  std::int64_t before = state_at(s.schedule, s.schedule.lower_decisions).bytes_moved;
  for (std::size_t k = s.schedule.lower_decisions; k < s.schedule.decisions.size(); ++k) {
    const std::int64_t after = state_at(s.schedule, k + 1).bytes_moved;
    EXPECT_LE(after, before) << "d" << k;
    before = after;
  }
}

TEST(Prefixes, PlayingTwiceGivesTheSame) {
  const Scheduled s(mixed());
  for (std::size_t count :
       {s.schedule.lower_decisions, s.schedule.lower_decisions + 5, s.schedule.decisions.size()}) {
    const State a = state_at(s.schedule, count), b = state_at(s.schedule, count);
    ASSERT_EQ(a.steps.size(), b.steps.size());
    for (std::size_t k = 0; k < a.kernels.size(); ++k)
      EXPECT_EQ(a.kernels[KernelId(k)].nests, b.kernels[KernelId(k)].nests);
  }
  EXPECT_EQ(s.last().kernels.size(), state_at(s.schedule, 1000000).kernels.size());
}

TEST(Log, NumbersAndIdentitiesAreUnique) {
  const Scheduled s(mixed());
  std::set<std::tuple<DecisionKind, std::vector<trace::NodeId>, std::vector<trace::NodeId>, int>> identities;
  ASSERT_EQ(s.schedule.effects.size(), s.schedule.decisions.size());
  for (std::size_t k = 0; k < s.schedule.decisions.size(); ++k) {
    const Decision& d = s.schedule.decisions[k];
    EXPECT_EQ(d.id, DecisionId(k));
    EXPECT_TRUE(identities.insert({d.kind, d.left, d.right, d.occurrence}).second) << k;
    EXPECT_TRUE(std::is_sorted(d.left.begin(), d.left.end()));
    EXPECT_EQ(k < s.schedule.lower_decisions, d.kind == DecisionKind::lower);
    EXPECT_FALSE(d.left.empty());
    if (d.kind == DecisionKind::fuse) {
      EXPECT_FALSE(d.left_steps.empty());
      EXPECT_FALSE(d.right_steps.empty());
      ASSERT_EQ(d.evidence.conditions.size(), 4U);
      for (std::size_t c = 0; c < 4; ++c)
        EXPECT_EQ(d.evidence.conditions[c].first, static_cast<Condition>(c));
      std::size_t failed = 0;
      for (const auto& [condition, state] : d.evidence.conditions)
        failed += state == ConditionState::fails ? 1U : 0U;
      EXPECT_EQ(failed, d.accepted ? 0U : 1U);
    }
  }
}

TEST(Log, TheSameIdentityTwiceIsCounted) {
  // Softmax makes its nests from one node: the same origins on both sides, several times.
  const Scheduled s(testing::softmax_rows(8, 16));
  std::map<DecisionKind, std::set<int>> occurrences;
  for (const Decision& d : s.schedule.decisions) occurrences[d.kind].insert(d.occurrence);
  EXPECT_GE(occurrences[DecisionKind::fuse].size(), 3U) << s.log();
}

TEST(Log, IsTheSameEachTime) { EXPECT_EQ(Scheduled(mixed()).log(), Scheduled(mixed()).log()); }

TEST(Log, WithoutFusionHoldsTheLoweringOnly) {
  Options options;
  options.fusion = false;
  const Scheduled s(mixed(), options);
  EXPECT_EQ(s.schedule.decisions.size(), s.schedule.lower_decisions);
  // A nest each, but for the two that fill the concatenation: born together.
  EXPECT_EQ(s.last().kernels.size(), s.program->nests.size() - 1);
  expect_sound(s, s.last(), s.schedule.decisions.size());
}

TEST(Kernels, NestsThatFillOneBufferStayTogether) {
  Options options;
  options.fusion = false;
  const Scheduled s(GraphText()
                        .in("x", "f32[4]")
                        .in("y", "f32[4]")
                        .op("cat", "aten.cat.default", "[%x, %y]", "f32[8]")
                        .out("cat"),
                    options);
  EXPECT_EQ(s.program->nests.size(), 2U);
  EXPECT_EQ(s.last().kernels.size(), 1U);
}

TEST(Kernels, SoftmaxIsOne) {
  const Scheduled s(testing::softmax_rows(8, 16));
  const State last = s.last();
  ASSERT_EQ(last.kernels.size(), 1U) << s.log();
  const Kernel& kernel = last.kernels[KernelId(0)];
  EXPECT_EQ(kernel.nests.size(), 4U);
  EXPECT_EQ(kernel.inputs.size(), 1U);
  EXPECT_EQ(kernel.outputs.size(), 1U);
  EXPECT_EQ(kernel.internal.size(), 3U);
  EXPECT_EQ(last.bytes_moved, 2 * 8 * 16 * 4);
}

TEST(Kernels, ALargeSoftmaxIsOneTooBecauseItsRowsCanBeTiled) {
  const Scheduled s(testing::softmax_rows(65536, 1024));  // 256 MiB
  EXPECT_EQ(s.last().kernels.size(), 1U) << s.log();
}

TEST(Kernels, AValueThatNothingReadsIsNotMade) {
  const Scheduled s(GraphText()
                        .in("x", "f32[4]")
                        .op("dead", "aten.sin.default", "%x", "f32[4]")
                        .op("deader", "aten.cos.default", "%dead", "f32[4]")
                        .op("cos", "aten.cos.default", "%x", "f32[4]")
                        .out("cos"));
  const State last = s.last();
  ASSERT_EQ(last.kernels.size(), 1U);
  EXPECT_EQ(last.kernels[KernelId(0)].nests, std::vector<loop::NestId>{s.nest("cos")});
  EXPECT_EQ(s.schedule.decisions.size(), 3U) << "nothing to decide about the others\n" << s.log();
}

TEST(Kernels, AValueThatNothingReadsIsMadeWherePyTorchWouldCheckAnIndex) {
  const Scheduled s(GraphText()
                        .in("x", "f32[6]")
                        .in("i", "i64[4]")
                        .op("pick", "aten.index_select.default", "%x, 0, %i", "f32[4]")
                        .op("cos", "aten.cos.default", "%x", "f32[6]")
                        .out("cos"));
  std::size_t nests = 0;
  for (const Kernel& kernel : s.last().kernels) nests += kernel.nests.size();
  EXPECT_EQ(nests, 2U);
}

TEST(Kernels, ReadersOfOneInputShareItsLoadHoweverMany) {
  GraphText text;
  text.in("x", "f32[64]");
  for (int k = 0; k < 40; ++k)
    text.op("r" + std::to_string(k), "aten.mul.Tensor", "%x, " + std::to_string(k) + ".0", "f32[64]");
  for (int k = 0; k < 40; ++k) text.out("r" + std::to_string(k));
  const Scheduled s(text);
  EXPECT_EQ(s.last().kernels.size(), 1U);
  // n readers are n - 1 candidates, not n * n.
  EXPECT_EQ(s.schedule.decisions.size(), 40U + 39U);
}

TEST(Inline, ValuesAreReadWithoutSlices) {
  const Scheduled s(GraphText()
                        .in("x", "f32[8,16]")
                        .op("t", "aten.t.default", "%x", "f32[16,8]@[1,16]")
                        .op("a", "aten.sin.default", "%t", "f32[16,8]")
                        .op("half", "aten.slice.Tensor", "%x, 1, 0, 8", "f32[8,8]@[16,1]")
                        .op("b", "aten.sin.default", "%half", "f32[8,8]")
                        .out("a")
                        .out("b"));
  EXPECT_TRUE(reads_value(loop::access_of(*s.program, s.nest("a"), 0)))
      << "a transposition can be taken of a value";
  EXPECT_FALSE(reads_value(loop::access_of(*s.program, s.nest("b"), 0))) << "a slice cannot";
}

// ------------------------------------------------------------------------------------------------- tiles

struct ClassText {
  std::set<std::string> members;  ///< nest.axis
  bool shared;
  std::int64_t extent;
  std::string role;
  friend bool operator<(const ClassText& a, const ClassText& b) { return a.members < b.members; }
};

std::vector<ClassText> classes(const Scheduled& s, const Tiles& tiles) {
  std::vector<ClassText> found;
  for (const AxisClass& c : tiles.classes) {
    ClassText text{{}, c.shared, c.extent, c.blocking_role};
    for (const auto& [nest, axis] : c.members)
      text.members.insert(s.program->nests[nest].name + "." + s.program->context->axis(axis).name);
    found.push_back(text);
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST(Tiles, SoftmaxSharesItsRowsAndNotItsColumns) {
  const Scheduled s(testing::softmax_rows(8, 16));
  const Kernel kernel = s.last().kernels[KernelId(0)];
  const Tiles tiles = analyse_tiles(*s.program, kernel.nests, target::default_model());
  const std::vector<ClassText> found = classes(s, tiles);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].members,
            (std::set<std::string>{"softmax.max.i0", "softmax.exp.i0", "softmax.sum.i0", "softmax.i0"}));
  EXPECT_TRUE(found[0].shared);
  EXPECT_EQ(found[0].extent, 8);
  EXPECT_EQ(found[1].members,
            (std::set<std::string>{"softmax.max.r1", "softmax.exp.i1", "softmax.sum.r1", "softmax.i1"}));
  EXPECT_FALSE(found[1].shared);
  EXPECT_EQ(found[1].extent, 16);
  EXPECT_EQ(found[1].role, "reduced");
  // x, exp, softmax of 512 bytes and max, sum of 32.
  EXPECT_EQ(tiles.working_set, 3 * 512 + 2 * 32);
  EXPECT_EQ(tiles.working_set_tile, 2 * tiles.working_set) << "8 rows are one tile, held twice";
}

TEST(Tiles, SquareMatricesAreMatchedByStrideNotByExtent) {
  // sin(x) and cos(x.T) of a square x: the rows of one are the columns of the other.
  const Scheduled s(GraphText()
                        .in("x", "f32[16,16]")
                        .op("sin", "aten.sin.default", "%x", "f32[16,16]")
                        .op("t", "aten.t.default", "%x", "f32[16,16]@[1,16]")
                        .op("cos", "aten.cos.default", "%t", "f32[16,16]")
                        .out("sin")
                        .out("cos"));
  const std::vector<ClassText> found =
      classes(s, analyse_tiles(*s.program, {s.nest("sin"), s.nest("cos")}, target::default_model()));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].members, (std::set<std::string>{"cos.i0", "sin.i1"}));
  EXPECT_EQ(found[1].members, (std::set<std::string>{"cos.i1", "sin.i0"}));
  EXPECT_TRUE(found[0].shared);
  EXPECT_TRUE(found[1].shared);
}

TEST(Tiles, EveryReadOfABufferCounts) {
  // x + x.t() reads a square both ways, so its two axes count the same once another nest reads it too.
  const Scheduled s(GraphText()
                        .in("x", "f32[16,16]")
                        .op("t", "aten.t.default", "%x", "f32[16,16]@[1,16]")
                        .op("add", "aten.add.Tensor", "%x, %t", "f32[16,16]")
                        .op("sin", "aten.sin.default", "%x", "f32[16,16]")
                        .out("add")
                        .out("sin"));
  const std::vector<ClassText> found =
      classes(s, analyse_tiles(*s.program, {s.nest("add"), s.nest("sin")}, target::default_model()));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].members, (std::set<std::string>{"add.i0", "add.i1", "sin.i0", "sin.i1"}));
}

TEST(Tiles, ReadsThatShareNoDimensionAreNotRelated) {
  // The first column of x, and its first row twice.
  const Scheduled s(GraphText()
                        .in("x", "f32[16,16]")
                        .op("column", "aten.select.int", "%x, 1, 0", "f32[16]@[16]")
                        .op("row", "aten.select.int", "%x, 0, 0", "f32[16]")
                        .op("a", "aten.sin.default", "%column", "f32[16]")
                        .op("b", "aten.cos.default", "%row", "f32[16]")
                        .op("c", "aten.exp.default", "%row", "f32[16]")
                        .out("a")
                        .out("b")
                        .out("c"));
  const std::vector<ClassText> found =
      classes(s, analyse_tiles(*s.program, {s.nest("a"), s.nest("b"), s.nest("c")}, target::default_model()));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].members, (std::set<std::string>{"a.i0"}));
  EXPECT_EQ(found[1].members, (std::set<std::string>{"b.i0", "c.i0"}));
}

TEST(Tiles, AnAxisThatOneMemberLacksIsNotShared) {
  const Scheduled s(GraphText()
                        .in("x", "f32[8,16]")
                        .in("y", "f32[16]")
                        .op("sin", "aten.sin.default", "%y", "f32[16]")
                        .op("add", "aten.add.Tensor", "%x, %sin", "f32[8,16]")
                        .out("add"));
  const std::vector<ClassText> found =
      classes(s, analyse_tiles(*s.program, {s.nest("sin"), s.nest("add")}, target::default_model()));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].members, (std::set<std::string>{"add.i0"}));
  EXPECT_FALSE(found[0].shared);
  EXPECT_EQ(found[0].role, "not shared");
  EXPECT_EQ(found[1].members, (std::set<std::string>{"add.i1", "sin.i0"}));
  EXPECT_TRUE(found[1].shared);
}

TEST(Tiles, AGatheredProducerMustBeWhole) {
  const Scheduled s(GraphText()
                        .in("x", "f32[8]")
                        .in("i", "i64[8]")
                        .op("sin", "aten.sin.default", "%x", "f32[8]")
                        .op("pick", "aten.index_select.default", "%sin, 0, %i", "f32[8]")
                        .out("pick"));
  const std::vector<ClassText> found =
      classes(s, analyse_tiles(*s.program, {s.nest("sin"), s.nest("pick")}, target::default_model()));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].members, (std::set<std::string>{"sin.i0"}));
  EXPECT_FALSE(found[1].shared);
  EXPECT_EQ(found[1].role, "gathered");
}

TEST(Tiles, AScannedAxisMustBeWhole) {
  const Scheduled s(GraphText()
                        .in("x", "f32[8,16]")
                        .op("scan", "aten.cumsum.default", "%x, 1", "f32[8,16]")
                        .op("mul", "aten.mul.Tensor", "%scan, %x", "f32[8,16]")
                        .out("mul"));
  const std::vector<ClassText> found =
      classes(s, analyse_tiles(*s.program, {s.nest("scan"), s.nest("mul")}, target::default_model()));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].members, (std::set<std::string>{"mul.i0", "scan.i0"}));
  EXPECT_TRUE(found[0].shared) << "rows are scanned apart from each other";
  EXPECT_EQ(found[1].members, (std::set<std::string>{"mul.i1", "scan.i1"}));
  EXPECT_FALSE(found[1].shared);
  EXPECT_EQ(found[1].role, "scanned");
}

/// x with rows of y added at the places in i, and its sine.
GraphText scattered_rows() {
  return GraphText()
      .in("x", "f32[8,16]")
      .in("i", "i64[3]")
      .in("y", "f32[3,16]")
      .op("add", "aten.index_add.default", "%x, 0, %i, %y", "f32[8,16]")
      .op("sin", "aten.sin.default", "%add", "f32[8,16]")
      .out("sin");
}

TEST(Tiles, TheTargetOfAScatterMustBeWhole) {
  const Scheduled s(scattered_rows());
  const Tiles tiles = analyse_tiles(*s.program, {s.nest("add.kept"), s.nest("add"), s.nest("sin")}, target::default_model());
  EXPECT_FALSE(tiles.classes.empty());
  for (const AxisClass& c : tiles.classes) EXPECT_FALSE(c.shared);
  const std::vector<ClassText> found = classes(s, tiles);
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](const ClassText& c) { return c.role == "scattered"; }));
}

TEST(Schedule, AScatterIsOneKernelFromTheStartAndItsReaderComesAfterAllOfIt) {
  const Scheduled s(scattered_rows());
  const State first = state_at(s.schedule, s.schedule.lower_decisions);
  ASSERT_EQ(first.kernels.size(), 2U);
  const std::vector<loop::NestId>& nests = first.kernels[KernelId(0)].nests;
  ASSERT_EQ(nests.size(), 2U);
  EXPECT_EQ(s.program->nests[nests[0]].name, "add.kept");
  EXPECT_EQ(s.program->nests[nests[1]].name, "add");
  EXPECT_EQ(first.steps.at(0).kernel, KernelId(0));
  const State last = s.last();
  ASSERT_EQ(last.kernels.size(), 1U) << s.log();
  EXPECT_EQ(s.program->nests[last.kernels[KernelId(0)].nests.back()].name, "sin");
}

TEST(Tiles, APartOfAProducedValueIsAnotherTile) {
  const Scheduled s(GraphText()
                        .in("x", "f32[8,16]")
                        .op("sum", "aten.sum.dim_IntList", "%x, [1]", "f32[8]")
                        .op("half", "aten.slice.Tensor", "%sum, 0, 0, 4", "f32[4]")
                        .op("cos", "aten.cos.default", "%half", "f32[4]")
                        .out("cos"));
  const std::vector<ClassText> found =
      classes(s, analyse_tiles(*s.program, {s.nest("sum"), s.nest("cos")}, target::default_model()));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].members, (std::set<std::string>{"cos.i0", "sum.i0"}));
  EXPECT_FALSE(found[0].shared);
  EXPECT_EQ(found[0].role, "sliced");
}

}  // namespace
}  // namespace pallascope::schedule
