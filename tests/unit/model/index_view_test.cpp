// The accesses of a selection, and the grid of cells that one walks.
#include "app/model/index_view.h"

#include <algorithm>
#include <set>

#include "tests/unit/model/support.h"

namespace pallascope::model {
namespace {

std::vector<std::int64_t> firsts(const TensorGrid& grid) {
  std::vector<std::int64_t> values;
  for (const TensorGrid::Cell& cell : grid.cells) values.push_back(cell.first);
  return values;
}

TEST(Grid, RowsAreTheLastAxisUnlessThatIsTooWideOrTooNarrow) {
  const TensorGrid plain = empty_grid({4, 8});
  EXPECT_EQ(plain.width, 8);
  EXPECT_EQ(plain.rows, 4);
  EXPECT_TRUE(plain.caption.empty());
  const TensorGrid cut = empty_grid({512, 4096});
  EXPECT_EQ(cut.width, 4096);
  EXPECT_EQ(cut.columns, 64);
  EXPECT_EQ(cut.rows, 32);
  EXPECT_EQ(cut.caption, "first 32 of 512 rows, 64 of 4,096 columns");
  const TensorGrid line = empty_grid({1000});
  EXPECT_EQ(line.width, 64);
  EXPECT_EQ(line.height, 16);
  EXPECT_TRUE(line.wrapped);
  const TensorGrid narrow = empty_grid({100, 8, 4});
  EXPECT_EQ(narrow.width, 32);
  EXPECT_TRUE(narrow.wrapped);
  const TensorGrid blocks = empty_grid({2, 4, 16});
  EXPECT_EQ(blocks.group, 4);
  EXPECT_EQ(empty_grid({0, 16}).rows, 0);
  EXPECT_EQ(empty_grid({}).cells.size(), 1U);
}

TEST(Grid, ATransposedWalkTouchesDownTheColumns) {
  index::Context context;
  const index::AxisId i = context.add_axis("i", 3), j = context.add_axis("j", 2);
  // Element 3*j + i of a (2, 3) buffer, i outside.
  const index::Expression e = context.add(context.of(i), context.multiply(context.of(j), 3));
  const TensorGrid grid = tensor_grid(context, e, {i, j}, {2, 3}, std::vector<std::int64_t>{1, 3}, 0);
  EXPECT_EQ(firsts(grid), (std::vector<std::int64_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(grid.last_step, 5);
  // The same without the strides, point by point.
  EXPECT_EQ(tensor_grid(context, e, {i, j}, {2, 3}, std::nullopt, 0).cells, grid.cells);
}

TEST(Grid, StridesOffsetsRepeatsAndReversals) {
  index::Context context;
  const index::AxisId i = context.add_axis("i", 3), r = context.add_axis("r", 5);
  const index::Expression e = context.subtract(context.constant(5), context.multiply(context.of(i), 2));
  const TensorGrid grid = tensor_grid(context, e, {i, r}, {8}, std::vector<std::int64_t>{-2, 0}, 5);
  EXPECT_EQ(firsts(grid), (std::vector<std::int64_t>{-1, 10, -1, 5, -1, 0, -1, -1}));
  EXPECT_EQ(grid.touched, 3);
  EXPECT_EQ(grid.most_uses, 5);
  EXPECT_EQ(tensor_grid(context, e, {i, r}, {8}, std::nullopt, 0).cells, grid.cells);
}

TEST(Grid, OfALargeTensorOnlyWhatCanReachTheShownCellsIsWalked) {
  index::Context context;
  const index::AxisId i = context.add_axis("i", 4096), j = context.add_axis("j", 512);
  const index::Expression across = context.add(context.of(i), context.multiply(context.of(j), 4096));
  const TensorGrid grid =
      tensor_grid(context, across, {i, j}, {512, 4096}, std::vector<std::int64_t>{1, 4096}, 0);
  EXPECT_TRUE(grid.cut.empty());
  EXPECT_EQ(grid.touched, 32 * 64);
  EXPECT_EQ(grid.at(31, 63).first, 63 * 512 + 31);
  const TensorGrid along =
      tensor_grid(context, across, {j, i}, {512, 4096}, std::vector<std::int64_t>{4096, 1}, 0);
  EXPECT_TRUE(along.cut.empty());
  EXPECT_EQ(along.touched, 32 * 64);
  EXPECT_EQ(along.at(31, 63).first, 31 * 4096 + 63);
}

TEST(Grid, AWalkThatIsNotAffineIsCutAndSaysSo) {
  index::Context context;
  const index::AxisId i = context.add_axis("i", 70000);
  const index::Expression e = context.mod(context.of(i), 7);
  const TensorGrid grid = tensor_grid(context, e, {i}, {7}, std::nullopt, 0);
  EXPECT_EQ(grid.cut, "not all of the 70,000 steps were walked");
  EXPECT_EQ(grid.touched, 7);
  EXPECT_EQ(grid.cells[0].uses, 65536 / 7 + 1);
}

TEST(IndexView, AKernelHasItsAccessesAndItsFirstOneInFull) {
  const CompilationPointer compilation = compile(rows());
  const auto last = compilation->last();
  const IndexView view = index_view(*compilation, *last, schedule::KernelId(0));
  ASSERT_FALSE(view.rows.empty());
  EXPECT_EQ(view.title, "k0");
  EXPECT_EQ(view.chosen, 0);
  for (std::size_t k = 0; k < view.rows.size(); ++k) EXPECT_EQ(view.rows[k].detail != nullptr, k == 0) << k;
  const AccessDetail& detail = *view.rows[0].detail;
  EXPECT_EQ(view.rows[0].letter, 'C');
  EXPECT_EQ(detail.bounds, "0 .. 31 of 32 elements");
  EXPECT_TRUE(detail.in_bounds);
  EXPECT_EQ(detail.bytes_used, 128);
  EXPECT_EQ(detail.bytes_spanned, 128);
  ASSERT_EQ(detail.axes.size(), 2U);
  EXPECT_EQ(detail.axes[0].stride, 8);
  EXPECT_EQ(detail.axes[0].note, "packed");
  EXPECT_EQ(detail.axes[1].note, "neighbours");
  EXPECT_TRUE(detail.axes[1].innermost);
  // The line that is named is the one of the module.
  ASSERT_GT(detail.assertion_line, 0);
  const std::string line = last->module.text(detail.assertion_line, detail.assertion_line);
  EXPECT_NE(line.find(detail.assertion), std::string::npos);
  EXPECT_EQ(detail.assertion_short,
            std::to_string(detail.assertion_line) + ": torch.float32, (4, 8), (8, 1)");
}

TEST(IndexView, ASelectedAccessIsChosenAmongThoseOfItsKernel) {
  const CompilationPointer compilation = compile(rows());
  const auto last = compilation->last();
  const auto& accesses = last->module.accesses;
  for (std::size_t k = 0; k < accesses.size(); ++k) {
    const IndexView view = index_view(*compilation, *last, AccessRef{static_cast<int>(k)});
    ASSERT_GE(view.chosen, 0);
    const AccessRow& row = view.rows[static_cast<std::size_t>(view.chosen)];
    EXPECT_EQ(row.access, static_cast<int>(k));
    ASSERT_NE(row.detail, nullptr);
    EXPECT_EQ(row.detail->source, accesses[k].source);
    // What the analysis counts is what the walk finds: these tensors are shown whole.
    if (accesses[k].access.distinct_exact) {
      EXPECT_EQ(row.detail->grid.touched, accesses[k].access.distinct_elements);
    }
    if (row.store) {
      EXPECT_EQ(row.detail->assertion_line, 0);
    }
  }
  EXPECT_TRUE(index_view(*compilation, *last, AccessRef{static_cast<int>(accesses.size())}).rows.empty());
}

TEST(IndexView, ALibraryCallHasItsOperandsAndAViewSaysThatItMovesNothing) {
  const CompilationPointer compilation = compile(rows());
  const auto last = compilation->last();
  const IndexView product = index_view(*compilation, *last, node(*compilation, "mm"));
  ASSERT_EQ(product.rows.size(), 2U);
  EXPECT_EQ(product.rows[0].place, "lhs");
  EXPECT_EQ(product.rows[1].place, "rhs");
  EXPECT_EQ(product.rows[1].access, -1);
  ASSERT_NE(product.rows[1].detail, nullptr);
  EXPECT_EQ(product.rows[1].detail->grid.touched, 32);
  const IndexView view = index_view(*compilation, *last, node(*compilation, "permute"));
  EXPECT_TRUE(view.rows.empty());
  EXPECT_NE(view.nothing.find("permute is a view"), std::string::npos) << view.nothing;
  EXPECT_TRUE(index_view(*compilation, *last, {}).rows.empty());
}

TEST(IndexView, AGatherNamesTheLoadThatItDependsOn) {
  const CompilationPointer compilation =
      compile(testing::GraphText()
                  .in("w", "f32[32,16]", "parameter")
                  .in("i", "i64[7]")
                  .op("embedding", "aten.embedding.default", "%w, %i", "f32[7,16]")
                  .out("embedding"));
  const auto last = compilation->last();
  int found = 0;
  for (std::size_t k = 0; k < last->module.accesses.size(); ++k) {
    const IndexView view = index_view(*compilation, *last, AccessRef{static_cast<int>(k)});
    const AccessRow& row = view.rows.at(static_cast<std::size_t>(view.chosen));
    if (row.letter != 'G') {
      EXPECT_TRUE(row.detail->grid.unknown.empty());
      continue;
    }
    ++found;
    EXPECT_EQ(row.detail->grid.touched, 0);
    EXPECT_TRUE(row.detail->grid.unknown.starts_with("depends on the values of b"))
        << row.detail->grid.unknown;
    EXPECT_TRUE(row.detail->grid.unknown.ends_with(" i")) << row.detail->grid.unknown;
  }
  EXPECT_EQ(found, 1);
}

TEST(IndexView, OfEveryThingOfTheBlockIsMadeAtEveryFewDecisions) {
  const CompilationPointer compilation = gpt2();
  print_time("index views of the GPT-2 block's accesses", [&] {
    const auto last = compilation->last();
    for (std::size_t k = 0; k < last->module.accesses.size(); ++k) {
      const IndexView view = index_view(*compilation, *last, AccessRef{static_cast<int>(k)});
      const AccessRow& row = view.rows.at(static_cast<std::size_t>(view.chosen));
      ASSERT_NE(row.detail, nullptr);
      // Each tensor that a kernel gets is asserted.
      EXPECT_EQ(row.detail->assertion_line > 0, !row.store && !row.on_value) << k;
    }
  });
  for (std::size_t at = 0; at <= compilation->decisions().size(); at += 7) {
    const auto snapshot = compilation->at(at);
    for (std::size_t k = 0; k < compilation->graph().nodes.size(); ++k) {
      const IndexView view = index_view(*compilation, *snapshot, trace::NodeId(k));
      EXPECT_NE(view.rows.empty(), view.nothing.empty());
    }
  }
}

}  // namespace
}  // namespace pallascope::model
