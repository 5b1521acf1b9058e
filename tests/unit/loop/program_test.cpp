// The loop IR: its text, views over buffers, strides of views, and the cache of index analyses.
#include "core/loop/program.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace pallascope::loop {
namespace {

using index::AccessClass;
using index::AxisId;
using index::Expression;

Statement statement(StatementKind kind, DType dtype, BufferId buffer = {}, Expression index = {}) {
  Statement made;
  made.kind = kind;
  made.dtype = dtype;
  made.buffer = buffer;
  made.index = index;
  return made;
}

/// sum_1 of x f32[8,16] over the columns, doubled, into buf1 f32[8].
class RowSum : public ::testing::Test {
 protected:
  RowSum() {
    program.context = std::make_shared<index::Context>();
    x = program.buffers.add({"x", BufferKind::input, DType::f32, {8, 16}, {}, 0});
    made = program.buffers.add({"buf1", BufferKind::intermediate, DType::f32, {8}, {}, -1});
    i = context().add_axis("i0", 8);
    r = context().add_axis("r1", 16);
    Nest nest;
    nest.name = "sum_1";
    nest.axes = {i, r};
    nest.reduced = {false, true};
    Statement load = statement(StatementKind::load, DType::f32, x, at2(i, 16, r));
    Statement reduce = statement(StatementKind::reduce, DType::f32);
    reduce.reduce = ReduceOp::sum;
    reduce.operands = {0};
    Statement two = statement(StatementKind::constant, DType::f32);
    two.scalar = 2.0;
    Statement mul = statement(StatementKind::compute, DType::f32);
    mul.compute = ComputeOp::mul;
    mul.operands = {1, 2};
    Statement store = statement(StatementKind::store, DType::f32, made, context().of(i));
    store.operands = {3};
    nest.body = {load, reduce, two, mul, store};
    id = program.nests.add(nest);
  }

  index::Context& context() { return *program.context; }
  Expression at2(AxisId a, std::int64_t factor, AxisId b) {
    return context().add(context().multiply(context().of(a), factor), context().of(b));
  }

  Program program;
  BufferId x, made;
  AxisId i, r;
  NestId id;
};

TEST_F(RowSum, TextHasALineAStatement) {
  EXPECT_EQ(to_string(program, program.nests[id]),
            "sum_1: i0 < 8, r1 < 16 (reduced)\n"
            "  %0 = load x[16*i0 + r1] : f32\n"
            "  %1 = reduce_sum %0 over r1 : f32\n"
            "  %2 = constant 2 : f32\n"
            "  %3 = mul %1, %2 : f32\n"
            "  store buf1[i0] = %3\n");
  const std::vector<std::string> lines = statement_lines(program, program.nests[id]);
  ASSERT_EQ(lines.size(), program.nests[id].body.size());
  EXPECT_EQ(lines[3], "%3 = mul %1, %2 : f32");
}

TEST_F(RowSum, TextOfTheOtherStatements) {
  Nest nest;
  nest.axes = {i};
  nest.reduced = {false};
  Statement truth = statement(StatementKind::constant, DType::b8);
  truth.scalar = true;
  Statement number = statement(StatementKind::constant, DType::i64);
  number.scalar = std::int64_t{-7};
  Statement index = statement(StatementKind::index_value, DType::i32);
  index.index = context().add(context().of(i), context().constant(3));
  nest.body = {truth, number, index};
  EXPECT_EQ(statement_lines(program, nest),
            (std::vector<std::string>{"%0 = constant true : bool", "%1 = constant -7 : i64",
                                      "%2 = index i0 + 3 : i32"}));
}

TEST_F(RowSum, TextOfScansAndOfStoresThroughIndices) {
  Nest nest = program.nests[id];
  nest.reduced = {false, false};
  EXPECT_FALSE(nest.has_scan());
  nest.body[1] = statement(StatementKind::scan, DType::f32);
  nest.body[1].scan = ScanOp::max;
  nest.body[1].axis = r;
  nest.body[1].operands = {0};
  nest.body.back().mode = StoreMode::add;
  EXPECT_TRUE(nest.has_scan());
  EXPECT_FALSE(nest.has_reduction());
  const std::vector<std::string> lines = statement_lines(program, nest);
  EXPECT_EQ(lines[1], "%1 = scan_max %0 along r1 : f32");
  EXPECT_EQ(lines[4], "store_add buf1[i0] = %3");
}

TEST_F(RowSum, NestKnowsWhatItReadsAndWrites) {
  const Nest& nest = program.nests[id];
  EXPECT_TRUE(nest.has_reduction());
  EXPECT_EQ(nest.output(), made);
  EXPECT_EQ(nest.inputs(), std::vector<BufferId>{x});
  Nest twice = nest;
  const BufferId y = program.buffers.add({"y", BufferKind::input, DType::f32, {16}, {}, 1});
  Statement other = statement(StatementKind::load, DType::f32, y, context().of(r));
  twice.body.insert(twice.body.begin(), {other, twice.body[0], other});
  EXPECT_EQ(twice.inputs(), (std::vector<BufferId>{y, x})) << "each once, in order of first use";
  twice.reduced = {false, false};
  EXPECT_FALSE(twice.has_reduction());
}

TEST_F(RowSum, BuffersCountTheirBytes) {
  EXPECT_EQ(program.buffers[x].numel(), 128);
  EXPECT_EQ(program.buffers[x].bytes(), 512);
  Buffer scalar;
  scalar.dtype = DType::bf16;
  EXPECT_EQ(scalar.numel(), 1);
  EXPECT_EQ(scalar.bytes(), 2);
  scalar.dims = {4, 0, 3};
  EXPECT_EQ(scalar.bytes(), 0);
}

TEST_F(RowSum, AccessesAreAnalysedOnceAndStayWhereTheyAre) {
  const index::Access* load = &access_of(program, id, 0);
  EXPECT_EQ(load->access_class, AccessClass::contiguous);
  EXPECT_EQ(load->axis_strides, (std::vector<std::int64_t>{16, 1}));
  // Asking for another nest and another statement must not move what was given out.
  Nest other = program.nests[id];
  other.body[0].index = at2(i, 1, r);  // overlapping on purpose: 23 elements for 128 points
  const NestId second = program.nests.add(other);
  EXPECT_EQ(access_of(program, second, 0).access_class, AccessClass::overlapping);
  EXPECT_EQ(access_of(program, id, 4).axis_strides, (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(&access_of(program, id, 0), load);
  EXPECT_EQ(load->access_class, AccessClass::contiguous);
}

TEST_F(RowSum, AccessIsJudgedAgainstTheBuffersDims) {
  // The same expression in a buffer that is wider: a slice.
  const BufferId wide = program.buffers.add({"w", BufferKind::input, DType::f32, {8, 64}, {}, 1});
  Nest nest = program.nests[id];
  nest.body[0].buffer = wide;
  nest.body[0].index = at2(i, 64, r);
  const NestId sliced = program.nests.add(nest);
  EXPECT_EQ(access_of(program, sliced, 0).access_class, AccessClass::sliced);
}

TEST_F(RowSum, FlattenIsRowMajor) {
  const AxisId a = context().add_axis("a", 2), b = context().add_axis("b", 3), c = context().add_axis("c", 5);
  const std::vector<Expression> position = {context().of(a), context().of(b), context().of(c)};
  EXPECT_EQ(context().to_string(flatten(context(), position, {2, 3, 5})), "15*a + 5*b + c");
  EXPECT_EQ(flatten(context(), {}, {}), context().constant(0));
  // An extent of 0 counts as 1, as PyTorch counts strides.
  EXPECT_EQ(context().to_string(flatten(context(), position, {2, 0, 5})), "5*a + 5*b + c");
}

TEST_F(RowSum, RowMajorViewsReadTheirBufferInOrder) {
  const View view = row_major_view(program, x, {4, 2, 16});
  ASSERT_EQ(view.axes.size(), 3U);
  EXPECT_EQ(view.buffer, x);
  for (std::int64_t a = 0; a < 4; ++a)
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t c = 0; c < 16; ++c) {
        const std::vector<std::int64_t> at = {a, b, c};
        const std::int64_t flat = context().evaluate(view.index, [&](AxisId axis) {
          return at[static_cast<std::size_t>(std::find(view.axes.begin(), view.axes.end(), axis) -
                                             view.axes.begin())];
        });
        ASSERT_EQ(flat, (a * 2 + b) * 16 + c);
      }
}

TEST_F(RowSum, AViewIsReadAtAPosition) {
  const View view = row_major_view(program, x, {8, 16});
  const Expression read = at(
      context(), view, {context().subtract(context().constant(7), context().of(i)), context().constant(3)});
  EXPECT_EQ(context().to_string(read), "115 - 16*i0");
}

TEST_F(RowSum, AffineViewsGiveStridesAsTorchTakesThem) {
  View view = row_major_view(program, x, {8, 16});
  std::optional<AffineView> found = affine(context(), view);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->strides, (std::vector<std::int64_t>{16, 1}));
  EXPECT_EQ(found->offset, 0);
  // Transposed, from element 5 on.
  std::swap(view.axes[0], view.axes[1]);
  view.index = context().add(view.index, context().constant(5));
  found = affine(context(), view);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->strides, (std::vector<std::int64_t>{1, 16}));
  EXPECT_EQ(found->offset, 5);
  // Backwards: a negative stride is affine too.
  view = row_major_view(program, x, {128});
  view.index = context().subtract(context().constant(127), view.index);
  found = affine(context(), view);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->strides, std::vector<std::int64_t>{-1});
  EXPECT_EQ(found->offset, 127);
}

TEST_F(RowSum, ExpandedAxesHaveStrideZero) {
  View view = row_major_view(program, made, {8});
  view.axes.insert(view.axes.begin(), context().add_axis("d", 5));
  const std::optional<AffineView> found = affine(context(), view);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->strides, (std::vector<std::int64_t>{0, 1}));
}

TEST_F(RowSum, AxesOfExtentOneGetTheStrideOfAContiguousView) {
  const View view = row_major_view(program, x, {8, 1, 16, 1});
  const std::optional<AffineView> found = affine(context(), view);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->strides, (std::vector<std::int64_t>{16, 16, 1, 1}));
}

TEST_F(RowSum, DivisionsAndForeignAxesAreNotAffine) {
  View view = row_major_view(program, x, {8, 16});
  const View good = view;
  view.index = context().floor_div(view.index, 3);
  EXPECT_FALSE(affine(context(), view));
  view = good;
  view.index = context().add(view.index, context().of(i));
  EXPECT_FALSE(affine(context(), view));
}

TEST(Ops, TextsHaveTheOperandsThatTheArityNames) {
  const auto count = [](std::string_view text, std::string_view part) {
    return text.find(part) == std::string_view::npos ? 0 : 1;
  };
  for (int k = 0; k <= static_cast<int>(ComputeOp::where); ++k) {
    const ComputeOpInfo& op = info(static_cast<ComputeOp>(k));
    EXPECT_EQ(count(op.jax, "{0}") + count(op.jax, "{1}") + count(op.jax, "{2}"), op.arity) << op.name;
    EXPECT_EQ(op.jax.find("{3}"), std::string_view::npos) << op.name;
  }
  EXPECT_EQ(info(ComputeOp::where).name, "where");
  EXPECT_EQ(info(ComputeOp::neg).name, "neg");
  EXPECT_EQ(reduce_name(ReduceOp::sum), "sum");
  EXPECT_EQ(reduce_name(ReduceOp::argmin), "argmin");
  EXPECT_EQ(scan_name(ScanOp::sum), "sum");
  EXPECT_EQ(scan_name(ScanOp::logsumexp), "logsumexp");
  EXPECT_EQ(store_mode_name(StoreMode::plain), "plain");
  EXPECT_EQ(store_mode_name(StoreMode::min), "min");
  EXPECT_EQ(outcome_name(Outcome::library), "library");
}

}  // namespace
}  // namespace pallascope::loop
