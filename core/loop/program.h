// Room: loop. The loop IR: loop nests of scalar statements over index expressions, and the calls between them.
// Takes: what `lower` builds from ATen nodes.
// Gives: loop::Program to the scheduler and to code generation; its text for the `loops` column.
// May use: base, trace (ids and metas), index.
// Never: holds Python text (except the operator table's), decides a fusion, mutates a nest that was added.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/base/dtype.h"
#include "core/base/id.h"
#include "core/base/store.h"
#include "core/index/access.h"
#include "core/index/expression.h"
#include "core/loop/op.h"
#include "core/trace/graph.h"

namespace pallascope::loop {

struct BufferTag;
struct NestTag;
struct StepTag;
using BufferId = Id<BufferTag>;
using NestId = Id<NestTag>;
using StepId = Id<StepTag>;

enum class BufferKind : std::uint8_t { input, intermediate };

/// Row-major storage of `dims`. A value's logical sizes may differ: `View` maps them.
struct Buffer {
  std::string name;  ///< the graph input's name, or `buf<k>`
  BufferKind kind = BufferKind::intermediate;
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims;
  trace::ValueId origin;    ///< the value that it first held
  int input_index = -1;     ///< for an input: its place in Graph::inputs

  [[nodiscard]] std::int64_t numel() const;
  [[nodiscard]] std::int64_t bytes() const { return numel() * dtype_bytes(dtype); }
};

/// How a graph input (or a torch call's result) becomes its buffer at the call boundary: as_strided to `dims` with
/// `strides`; `copied` when that is not dense, so that a contiguous copy is made (and counted).
struct BoundaryLayout {
  std::vector<std::int64_t> sizes, strides;            ///< what is asserted of the tensor that comes
  std::vector<std::int64_t> dims, dim_strides;         ///< the buffer's dims and where they lie in the tensor
  std::vector<int> place;                              ///< per logical dimension, its place in `dims`; -1 if it has none
  bool copied = false;
};

/// A value as an index map over a buffer: logical index (one axis a dimension) -> flat element of the buffer.
struct View {
  BufferId buffer;
  std::vector<index::AxisId> axes;  ///< placeholders, one a logical dimension, with the dimension's extent
  index::Expression index;
};

using Scalar = std::variant<bool, std::int64_t, double>;

enum class StatementKind : std::uint8_t { load, constant, index_value, compute, reduce, scan, store };

/// The positions of the statements that a statement takes: three at most, and no memory of their own.
class Operands {
 public:
  static constexpr std::size_t most = 3;

  Operands() = default;
  Operands(std::initializer_list<int> list) {
    PALLASCOPE_CHECK(list.size() <= most, "more operands than an operator has");
    for (const int operand : list) items_[size_++] = operand;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const int* begin() const { return items_.data(); }
  [[nodiscard]] const int* end() const { return items_.data() + size_; }
  [[nodiscard]] int* begin() { return items_.data(); }
  [[nodiscard]] int* end() { return items_.data() + size_; }
  [[nodiscard]] int operator[](std::size_t k) const { return items_[k]; }
  [[nodiscard]] int& operator[](std::size_t k) { return items_[k]; }
  [[nodiscard]] int back() const { return items_[size_ - 1]; }
  friend bool operator==(const Operands&, const Operands&) = default;

 private:
  std::array<int, most> items_{};  // those that are not there stay 0, so that all of it can be compared
  std::uint8_t size_ = 0;
};

/// One statement of a nest; statements refer to earlier ones of the same nest by position.
struct Statement {
  StatementKind kind = StatementKind::constant;
  DType dtype = DType::f32;          ///< of the value (of the stored element, for a store)
  BufferId buffer;                   ///< load, store
  index::Expression index;           ///< load, store: flat element; index_value: the value itself
  Scalar scalar = std::int64_t{0};   ///< constant
  ComputeOp compute = ComputeOp::add;
  ReduceOp reduce = ReduceOp::sum;
  ScanOp scan = ScanOp::sum;
  index::AxisId axis;                ///< scan: the axis of the nest that it runs along
  StoreMode mode = StoreMode::plain; ///< store
  Operands operands;                 ///< compute: arity many; reduce, scan, store: one
  trace::NodeId origin;              ///< the ATen node (of the functional graph) that it comes from
};

/// An index symbol of a nest: the value of a statement used as an index. `low <= value <= high` is checked at run
/// time when `checked`, with PyTorch's error.
struct SymbolUse {
  index::SymbolId symbol;
  int statement = -1;
  std::int64_t low = 0, high = 0;
  bool checked = false;
  trace::NodeId origin;  ///< the node that indexes
};

/// A value that PyTorch checks and a kernel cannot raise for: the kernel stores a flag, `call` raises.
struct ValueCheck {
  int statement = -1;    ///< must not be 0 anywhere: the divisor of an integer division, or a condition
  std::string message;   ///< what PyTorch says, if not that an integer was divided by zero
  trace::NodeId origin;  ///< the node that PyTorch would raise in
};

/// A loop nest: `axes` in order, some of them reduced. Every value has one dimension an axis (1 where it does not
/// vary). A reduce statement reduces over all axes that are marked reduced; a scan statement runs along one axis and keeps
/// the value's shape.
struct Nest {
  std::string name;  ///< `sum_2`, `native_layer_norm.mean`, ...
  std::vector<index::AxisId> axes;
  std::vector<bool> reduced;  ///< one an axis
  std::vector<Statement> body;
  std::vector<SymbolUse> symbols;
  std::vector<ValueCheck> checks;
  trace::NodeId origin;                 ///< the ATen node that it was lowered from
  std::vector<trace::NodeId> origins;   ///< all ATen nodes in it (inlined producers included), ascending

  [[nodiscard]] bool has_reduction() const;
  [[nodiscard]] bool has_scan() const;
  /// The buffer that the nest writes (a nest has exactly one store).
  [[nodiscard]] BufferId output() const;
  /// Distinct buffers that it loads, in order of first use.
  [[nodiscard]] std::vector<BufferId> inputs() const;
};

/// lhs[batch.., m, k] times rhs[batch.., k, n] gives [batch.., m, n]. 16-bit operands add up in f32, and are rounded once
/// if the result is of 16 bits.
struct Product {};

/// A convolution as `lax.conv_general_dilated` has it: the kernel is not turned round. The dimensions are named by one
/// letter each, N C O I and a digit a spatial dimension, so that any order in memory can be convolved as it lies: `N01C`
/// is an image with its channels last.
struct Convolution {
  std::string input, kernel, output;
  std::vector<std::int64_t> stride, low, high;  ///< one a spatial dimension; negative padding cuts off
  std::vector<std::int64_t> input_dilation, kernel_dilation;
  std::int64_t groups = 1, batch_groups = 1;
};

/// The elements along `dimension` in order, and where each of them was. Equal elements keep their order, NaN is the
/// largest, both zeros are equal.
struct Sort {
  std::size_t dimension = 0;
  bool descending = false;
};

/// The `count` largest (or smallest) elements along `dimension` in order, and where each of them was. NaN is the largest.
struct TopK {
  std::size_t dimension = 0;
  std::int64_t count = 0;
  bool largest = true;
};

using LibraryFunction = std::variant<Product, Convolution, Sort, TopK>;
/// What the operands are to the function: `lhs`, `kernel`, ... in their order.
std::vector<std::string_view> operand_names(const LibraryFunction& function);
/// The JAX function that the call becomes: `jnp.matmul`, `lax.sort`, ...
std::string_view library_name(const LibraryFunction& function);

/// A call of a JAX function within the JAX program.
struct LibraryCall {
  trace::NodeId origin;
  std::string op;  ///< `aten.mm.default`
  LibraryFunction function;
  std::vector<View> operands;     ///< as operand_names says
  std::vector<BufferId> outputs;  ///< Sort and TopK: the values, and their positions (i64) where somebody wants them
};

/// An operator that PyTorch itself runs between JAX programs.
struct TorchCall {
  trace::NodeId origin;
  std::string op;
  std::vector<std::pair<trace::ValueId, View>> inputs;  ///< tensor arguments as views of buffers
  std::vector<BufferId> outputs;                       ///< one an output value; invalid for None
  std::vector<std::optional<BoundaryLayout>> layouts;  ///< how each output becomes its buffer
  bool ordered = false;  ///< draws random numbers: such calls keep their order, so that a seed gives eager's values
};

/// One step of the program, in execution order.
struct Step {
  std::variant<NestId, LibraryCall, TorchCall> content;
};

/// How a graph output is made.
struct OutputValue {
  trace::OutputKind kind = trace::OutputKind::user_output;
  bool none = false;
  View view;                      ///< the value, over its buffer
  trace::TensorMeta meta;         ///< eager's sizes and strides, which the returned tensor has
  int mutated_input = -1;         ///< for a mutation: the index in Graph::inputs
  int alias_input = -1;           ///< the input whose storage eager's output shares
};

/// What lowering made of one ATen node.
enum class Outcome : std::uint8_t { kernel, view, library, torch };
std::string_view outcome_name(Outcome outcome);
struct NodeOutcome {
  trace::NodeId node;
  Outcome outcome = Outcome::torch;
  std::vector<StepId> steps;  ///< nests and calls made for it, in order (a library product may have a bias nest)
  std::string why;            ///< for torch: why it is not a kernel
};

/// The index analysis of every load and store, made when first asked for. Nests never change, so neither do these.
/// Not thread-safe, like the context that it extends.
class Accesses {
 public:
  /// The access of statement `statement` (a load or a store) of `nest`, against its buffer's dims.
  const index::Access& of(const struct Program& program, NestId nest, int statement);
  /// How `view` walks its buffer.
  std::shared_ptr<const index::Access> of(const struct Program& program, const View& view);

 private:
  std::vector<std::vector<std::shared_ptr<const index::Access>>> known_;
  index::AccessMemo memo_;
};

struct Program {
  std::shared_ptr<index::Context> context;
  std::shared_ptr<Accesses> accesses = std::make_shared<Accesses>();
  SharedStore<BufferId, Buffer> buffers;
  SharedStore<NestId, Nest> nests;
  SharedStore<StepId, Step> steps;
  std::size_t result_steps = 0;               ///< how many of the last steps copy results; before them are the nodes'
  std::vector<BoundaryLayout> input_layouts;  ///< one a graph input
  std::vector<BufferId> input_buffers;        ///< one a graph input
  std::vector<OutputValue> outputs;
  std::vector<NodeOutcome> outcomes;          ///< one a node of the functional graph, in order
  std::map<trace::ValueId, View> views;       ///< where each lowered value lives
};

/// The index analysis of a load or store (see Accesses).
inline const index::Access& access_of(const Program& program, NestId nest, int statement) {
  return program.accesses->of(program, nest, statement);
}

/// A nest as text, one statement a line:
///   add_1: i0 < 8, i1 < 16
///     %0 = load x[16*i0 + i1]
std::string to_string(const Program& program, const Nest& nest);
/// One line a statement of `nest`, without the head line; index k is statement k.
std::vector<std::string> statement_lines(const Program& program, const Nest& nest);

/// Row-major flat index of `index` in `dims`.
index::Expression flatten(index::Context& context, const std::vector<index::Expression>& index,
                          const std::vector<std::int64_t>& dims);
/// The view's flat index at logical position `at` (one expression a logical dimension).
index::Expression at(index::Context& context, const View& view, const std::vector<index::Expression>& at);
/// A view of `sizes` over placeholders that reads `buffer` row-major.
View row_major_view(Program& program, BufferId buffer, const std::vector<std::int64_t>& sizes);
/// The strides of a view when its index is affine (constant + coefficient * axis): as torch.as_strided takes them.
struct AffineView {
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
};
std::optional<AffineView> affine(const index::Context& context, const View& view);

}  // namespace pallascope::loop
