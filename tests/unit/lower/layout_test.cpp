// How tensors at the call boundary become dense buffers: by their strides, never by their shapes.
#include <functional>

#include "core/lower/builder.h"
#include "tests/unit/support/lowered.h"

namespace pallascope::lower {
namespace {

using testing::GraphText;
using testing::lowered;

trace::TensorMeta meta(Sizes sizes, Sizes strides, std::int64_t offset = 0) {
  trace::TensorMeta m;
  m.sizes = std::move(sizes);
  m.strides = std::move(strides);
  m.storage_offset = offset;
  return m;
}

void for_each_position(const Sizes& sizes, const std::function<void(const Sizes&)>& visit) {
  Sizes at(sizes.size(), 0);
  for (std::int64_t extent : sizes)
    if (extent == 0) return;
  for (;;) {
    visit(at);
    std::size_t k = sizes.size();
    while (k-- > 0) {
      if (++at[k] < sizes[k]) break;
      at[k] = 0;
      if (k == 0) return;
    }
    if (sizes.empty()) return;
  }
}

/// What `_storage` makes of a tensor: as_strided(dims, dim_strides), contiguous. Element `flat` of that buffer is this
/// element of the tensor's memory, counted from its first.
std::int64_t memory_of(const loop::BoundaryLayout& layout, std::int64_t flat) {
  std::int64_t memory = 0;
  const Sizes dense = trace::contiguous_strides(layout.dims);
  for (std::size_t k = 0; k < layout.dims.size(); ++k)
    memory += flat / dense[k] % std::max<std::int64_t>(1, layout.dims[k]) * layout.dim_strides[k];
  return memory;
}

/// Checks, element by element, that input `x` of this meta is read where it lies.
void expect_read_where_it_lies(const std::string& spec) {
  SCOPED_TRACE(spec);
  const trace::Graph graph = GraphText().in("x", spec).out("x").graph();
  const auto program = lowered(graph);
  const trace::ValueId x = *graph.find_value("x");
  const trace::TensorMeta& m = *graph.values[x].tensor;
  const loop::View& view = program->views.at(x);
  const loop::BoundaryLayout& layout = program->input_layouts.at(0);
  EXPECT_EQ(program->buffers[view.buffer].dims, layout.dims);
  EXPECT_EQ(layout.sizes, m.sizes);
  EXPECT_EQ(layout.strides, m.strides);
  std::int64_t moving = 1, held = 1;
  for (std::size_t k = 0; k < m.sizes.size(); ++k)
    if (m.strides[k] != 0 || m.sizes[k] <= 1) moving *= m.sizes[k];
  for (std::int64_t d : layout.dims) held *= d;
  EXPECT_EQ(held, moving) << "the buffer holds each element once";
  for_each_position(m.sizes, [&](const Sizes& at) {
    std::int64_t want = 0;
    for (std::size_t k = 0; k < at.size(); ++k) want += at[k] * m.strides[k];
    const std::int64_t flat = program->context->evaluate(view.index, [&](index::AxisId axis) {
      return at[static_cast<std::size_t>(std::find(view.axes.begin(), view.axes.end(), axis) -
                                         view.axes.begin())];
    });
    ASSERT_EQ(memory_of(layout, flat), want);
  });
  // Not copied exactly if the elements lie without a gap.
  bool dense = true;
  std::int64_t expected = 1;
  for (std::size_t k = layout.dims.size(); k-- > 0;) {
    if (layout.dims[k] == 1) continue;
    dense = dense && layout.dim_strides[k] == expected;
    expected *= layout.dims[k];
  }
  EXPECT_EQ(layout.copied, !dense && m.numel() > 0);
}

TEST(BoundaryLayout, EveryLayoutIsReadWhereItLies) {
  for (const char* spec : {
           "f32[8,16]",                  // row-major
           "f32[8,16]@[1,8]",            // transposed
           "f32[4,4]@[1,4]",             // transposed and square: the shape says nothing
           "f32[2,3,4]@[1,8,2]",         // permuted
           "f32[3,3,3]@[3,1,9]",         // permuted cube
           "f32[2,3,5,7]@[105,1,21,3]",  // channels last
           "f32[8,16]@[32,1]",           // gaps between rows
           "f32[8,16]@[32,2]",           // gaps everywhere
           "f32[4,4]@[2,8]",             // transposed with gaps
           "f32[8,16]@[16,1]+5",         // from an offset
           "f32[4,4]@[1,4]+7",           // both
           "f32[8,16]@[0,1]",            // expanded rows
           "f32[8,16]@[1,0]",            // expanded columns
           "f32[4,4]@[0,0]",             // one element
           "f32[5,4,3]@[0,1,4]",         // expanded and transposed
           "f32[1,8]@[99,1]",            // an extent of 1 may carry any stride
           "f32[8,1,4]@[4,77,1]",
           "f32[1,1]@[3,5]",
           "f32[]",
           "f32[6]",
           "f32[6]@[3]",
           "f32[0]",
           "f32[4,0,3]",
           "f32[4,0,3]@[0,3,1]",
       })
    expect_read_where_it_lies(spec);
}

TEST(BoundaryLayout, ASquareTransposedInputIsNotReadByItsShape) {
  const loop::BoundaryLayout layout = boundary_layout(meta({4, 4}, {1, 4}));
  EXPECT_EQ(layout.dims, (Sizes{4, 4}));
  EXPECT_EQ(layout.dim_strides, (Sizes{4, 1}));
  EXPECT_EQ(layout.place, (std::vector<int>{1, 0}));
  EXPECT_FALSE(layout.copied);
  // x.sin() over such an input stores in memory order, as eager's result lies.
  const trace::Graph graph = GraphText()
                                 .in("x", "f32[4,4]@[1,4]")
                                 .op("sin", "aten.sin.default", "%x", "f32[4,4]@[1,4]")
                                 .out("sin")
                                 .graph();
  const auto program = lowered(graph);
  const loop::Nest& nest = program->nests[loop::NestId(0)];
  EXPECT_EQ(program->context->axis(nest.axes[0]).name, "i1");
  EXPECT_EQ(loop::access_of(*program, loop::NestId(0), 0).access_class, index::AccessClass::contiguous);
  const std::optional<loop::AffineView> made =
      loop::affine(*program->context, program->views.at(*graph.find_value("sin")));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->strides, (Sizes{1, 4}));
}

TEST(BoundaryLayout, Gaps) {
  const loop::BoundaryLayout layout = boundary_layout(meta({8, 16}, {32, 1}));
  EXPECT_TRUE(layout.copied);
  EXPECT_EQ(layout.dims, (Sizes{8, 16}));
  EXPECT_EQ(layout.dim_strides, (Sizes{32, 1}));
}

TEST(BoundaryLayout, ExpandedDimensionsAreNotInTheBuffer) {
  const loop::BoundaryLayout layout = boundary_layout(meta({5, 4}, {0, 1}));
  EXPECT_EQ(layout.dims, Sizes{4});
  EXPECT_EQ(layout.place, (std::vector<int>{-1, 0}));
  EXPECT_FALSE(layout.copied);
}

TEST(BoundaryLayout, EmptyTensorsKeepTheirSizes) {
  const loop::BoundaryLayout layout = boundary_layout(meta({4, 0, 3}, {1, 2, 3}));
  EXPECT_EQ(layout.dims, (Sizes{4, 0, 3}));
  EXPECT_FALSE(layout.copied);
}

TEST(MemoryOrder, RunsFromTheOutermostInMemory) {
  using Order = std::vector<std::size_t>;
  EXPECT_EQ(memory_order(meta({8, 16}, {16, 1})), (Order{0, 1}));
  EXPECT_EQ(memory_order(meta({8, 16}, {1, 8})), (Order{1, 0}));
  EXPECT_EQ(memory_order(meta({4, 4}, {1, 4})), (Order{1, 0}));
  EXPECT_EQ(memory_order(meta({2, 3, 5, 7}, {105, 1, 21, 3})), (Order{0, 2, 3, 1}));
  EXPECT_EQ(memory_order(meta({3, 4, 5}, {1, 15, 3})), (Order{1, 2, 0}));
}

TEST(MemoryOrder, IsTheIdentityWhereStridesDoNotSay) {
  using Order = std::vector<std::size_t>;
  EXPECT_EQ(memory_order(meta({8, 16}, {0, 1})), (Order{0, 1}));
  EXPECT_EQ(memory_order(meta({4, 8}, {1, 0})), (Order{0, 1}));
  EXPECT_EQ(memory_order(meta({4, 4}, {2, 8})), (Order{0, 1})) << "gaps: eager's result is made anew";
  EXPECT_EQ(memory_order(meta({4, 0}, {1, 4})), (Order{0, 1}));
  EXPECT_EQ(memory_order(meta({}, {})), Order{});
}

TEST(MemoryOrder, ExtentsOfOneStayWhereTheyAre) {
  using Order = std::vector<std::size_t>;
  EXPECT_EQ(memory_order(meta({1, 8}, {1, 1})), (Order{0, 1}));
  EXPECT_EQ(memory_order(meta({8, 1, 4}, {4, 1, 1})), (Order{0, 1, 2}));
  EXPECT_EQ(memory_order(meta({8, 1}, {1, 999})), (Order{0, 1}));
}

}  // namespace
}  // namespace pallascope::lower
