// Room: lower. What the operator families share: reading arguments, building nests, naming buffers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/loop/program.h"
#include "core/lower/promotion.h"
#include "core/trace/graph.h"

namespace pallascope::lower {

using Sizes = std::vector<std::int64_t>;
using Index = std::vector<index::Expression>;

/// A value while it is lowered: an index map over a buffer.
struct Tensor {
  loop::View view;
  DType dtype = DType::f32;
  Sizes sizes;
  [[nodiscard]] std::int64_t rank() const { return static_cast<std::int64_t>(sizes.size()); }
};

/// How a graph input or a torch call's result with this meta becomes a dense buffer.
loop::BoundaryLayout boundary_layout(const trace::TensorMeta& meta);
/// Dimensions of `meta` from the outermost in memory to the innermost; the identity where strides do not say
/// (zero strides, overlaps).
std::vector<std::size_t> memory_order(const trace::TensorMeta& meta);

/// The number of elements of a tensor of these sizes.
std::int64_t numel(const Sizes& sizes);
/// The number of points of these dimensions of it: what a reduction over them takes together.
std::int64_t points(const Sizes& sizes, const std::vector<std::size_t>& dims);

class Builder;


/// Thrown where a node does not fit its operator (an argument that is missing or of another kind, sizes that cannot be
/// what the trace says) and caught in lower(), which makes the diagnostic: the only exception of the core, because the
/// families would otherwise check every argument of every operator twice.
struct MalformedNode {
  std::string message;
};

/// Builds one nest. Values are positions of statements; loads and constants are reused when asked for again.
///
/// Worked example, `x.sum(1)` of f32[8,16]: NestBuilder nest(builder, "sum", {8, 16}, {1}); the axes are i0 < 8 and
/// i1 < 16 (reduced); load(x) reads x[16*i0 + i1]; reduce(sum) is one value per i0; store makes buf0 with dims [8].
class NestBuilder {
 public:
  /// Axes of `sizes`, in `order` (all dimensions in their own order if empty); `reduced` lists reduced dimensions.
  NestBuilder(Builder& builder, std::string name, const Sizes& sizes, const std::vector<std::size_t>& reduced = {},
              const std::vector<std::size_t>& order = {});

  /// The index of logical dimension `dim`.
  [[nodiscard]] index::Expression index(std::size_t dim) const { return index_.at(dim); }
  [[nodiscard]] const Index& index() const { return index_; }
  [[nodiscard]] DType dtype(int value) const { return nest_.body.at(static_cast<std::size_t>(value)).dtype; }

  /// The element of `tensor` at `position` (one expression a dimension of the tensor).
  int load_at(const Tensor& tensor, const Index& position);
  /// The element of `tensor` under PyTorch's broadcasting to the nest's sizes (aligned at the last dimension).
  int load(const Tensor& tensor);
  int constant(loop::Scalar scalar, DType dtype);
  int index_value(index::Expression e, DType dtype);
  [[nodiscard]] index::Expression constant_index(std::int64_t value) const;
  /// The value as an index; `low..high` after wrapping is the legal range, checked at run time unless it is proved.
  index::Expression symbol(int value, std::int64_t low, std::int64_t high, bool checked = true);
  /// The value as an index that is within `low..high` by how it was computed.
  index::Expression known_symbol(int value, std::int64_t low, std::int64_t high) { return symbol(value, low, high, false); }

  /// The value is an integer divisor: PyTorch raises if it is 0 anywhere.
  void check_nonzero(int value) { nest_.checks.push_back({value, {}, nest_.origin}); }
  /// PyTorch raises a RuntimeError with `message` where the condition does not hold.
  void check(int condition, std::string message) { nest_.checks.push_back({condition, std::move(message), nest_.origin}); }

  int cast(int value, DType dtype);
  int compute(loop::ComputeOp op, DType dtype, loop::Operands operands);
  /// A compute whose result has the dtype of its first operand.
  int op(loop::ComputeOp op, int a) { return compute(op, dtype(a), {a}); }
  int op(loop::ComputeOp op, int a, int b) { return compute(op, dtype(a), {a, b}); }
  int add(int a, int b) { return op(loop::ComputeOp::add, a, b); }
  int sub(int a, int b) { return op(loop::ComputeOp::sub, a, b); }
  int mul(int a, int b) { return op(loop::ComputeOp::mul, a, b); }
  int div(int a, int b) { return op(loop::ComputeOp::div, a, b); }
  /// The rounded quotient, as the user's own divisions need it; `div` may be off by one unit in the last place.
  int exact_div(int a, int b) { return op(loop::ComputeOp::exact_div, a, b); }
  /// A float constant of the dtype of `like`.
  int number(double number, int like) { return constant(number, dtype(like)); }
  int where(int condition, int a, int b) { return compute(loop::ComputeOp::where, dtype(a), {condition, a, b}); }
  int compare(loop::ComputeOp op, int a, int b) { return compute(op, DType::b8, {a, b}); }
  int reduce(loop::ReduceOp op, int value, DType dtype);
  /// `value` scanned along logical dimension `dim`, from its first element on.
  int scan(loop::ScanOp op, int value, std::size_t dim);
  /// `value - top`, where `top` is the maximum that `value` is one of: exactly 0 where they are equal (NaN for equal
  /// infinities, as subtraction gives). XLA contracts a*b - top into one rounding, and without this the row's own
  /// maximum comes out as the rounding error of a*b, which exp turns into infinity for large products.
  int below(int value, int top) {
    return where(compare(loop::ComputeOp::eq, value, top), sub(top, top), sub(value, top));
  }

  /// Stores `value` (cast to `dtype`) into a new buffer and finishes the nest. The tensor has the nest's sizes
  /// without the reduced dimensions, or with extent 1 for them if `keep`.
  Tensor store(int value, DType dtype, bool keep = false);
  /// Stores into `buffer` at the flat element `where`: one of several nests that fill one buffer.
  void store_into(loop::BufferId buffer, index::Expression where, int value, loop::StoreMode mode = loop::StoreMode::plain);

 private:
  int push(loop::Statement statement);
  loop::NestId finish();

  Builder& builder_;
  loop::Nest nest_;
  Sizes sizes_;
  std::vector<bool> reduced_dims_;      ///< one a logical dimension
  std::vector<std::size_t> order_;      ///< axis k of the nest is logical dimension order_[k]
  Index index_;
};

/// State of one lowering run. Families call it; see the free functions below for arguments.
class Builder {
 public:
  explicit Builder(const trace::Graph& graph);
  /// Adds to a program that is there.
  Builder(const trace::Graph& graph, loop::Program program) : graph_(graph), program_(std::move(program)) {}

  [[nodiscard]] const trace::Graph& graph() const { return graph_; }
  [[nodiscard]] loop::Program& program() { return program_; }
  [[nodiscard]] index::Context& context() { return *program_.context; }

  [[nodiscard]] bool has(trace::ValueId value) const { return program_.views.contains(value); }
  [[nodiscard]] Tensor tensor(trace::ValueId value) const;
  void define(trace::ValueId value, const Tensor& tensor) { program_.views[value] = tensor.view; }

  /// A new intermediate buffer with `dims`.
  loop::BufferId add_buffer(DType dtype, Sizes dims);
  /// A tensor of `sizes` that reads `buffer` (same number of elements) row-major.
  Tensor row_major(loop::BufferId buffer, const Sizes& sizes);
  /// A tensor with other logical dimensions: `make` gives the source index for the new index.
  Tensor reindex(const Tensor& source, const Sizes& sizes, const std::function<Index(const Index&)>& make);
  /// `tensor` seen with `sizes` (same number of elements), row-major over its logical order, as torch.reshape.
  Tensor reshape(const Tensor& tensor, const Sizes& sizes);
  Tensor permute(const Tensor& tensor, const std::vector<std::size_t>& order);
  Tensor expand(const Tensor& tensor, const Sizes& sizes);

  /// A nest that computes one value per element of `sizes` and stores it as `dtype`. Axes run in the memory order
  /// of `like`, if given, so that the buffer is laid out as eager's result.
  Tensor pointwise(std::string name, const Sizes& sizes, DType dtype, const std::function<int(NestBuilder&)>& body,
                   const trace::TensorMeta* like = nullptr);
  /// A nest that reduces `dims` of `sizes`: `body` gives the value, `op` reduces it in `accumulate`.
  Tensor reduction(std::string name, const Sizes& sizes, const std::vector<std::size_t>& dims, loop::ReduceOp op,
                   DType accumulate, DType result, bool keep, const std::function<int(NestBuilder&)>& body,
                   const std::function<int(NestBuilder&, int)>& after = {});
  /// The mean of `body` over `dims`, which stay with extent 1, in the dtype `c` (a compute dtype).
  Tensor average(std::string name, const Sizes& sizes, const std::vector<std::size_t>& dims, DType c,
                 const std::function<int(NestBuilder&)>& body);
  /// A dense copy whose index is the row-major one of its sizes.
  Tensor materialise(const Tensor& tensor, std::string_view name);

  void add_step(loop::Step step);
  loop::NestId add_nest(loop::Nest nest);

  trace::NodeId current;                 ///< the node being lowered
  std::vector<loop::StepId> new_steps;   ///< steps made for it so far

 private:
  friend class NestBuilder;
  /// `reshape` of a tensor that walks its buffer in order, where it is no more than other strides; nullopt for any other.
  std::optional<Tensor> reshape_row_major(const Tensor& tensor, const Sizes& strides, const Sizes& sizes);
  const trace::Graph& graph_;
  loop::Program program_;
};

/// What a family function says: done, or why the node is left to PyTorch.
struct Lowered {
  loop::Outcome outcome = loop::Outcome::kernel;
  std::string declined;                   ///< not empty: a torch call, for this reason
  std::optional<Diagnostic> diagnostic;   ///< the graph makes no sense
};
inline Lowered declined(std::string why) { return {loop::Outcome::torch, std::move(why), {}}; }
inline Lowered declined_dtype() { return declined("a dtype that kernels do not hold"); }
inline Lowered as_kernel() { return {loop::Outcome::kernel, {}, {}}; }
inline Lowered as_view() { return {loop::Outcome::view, {}, {}}; }
inline Lowered as_library() { return {loop::Outcome::library, {}, {}}; }

/// One node being lowered: its arguments by position or name, its outputs' metas.
class Call {
 public:
  Call(Builder& builder, const trace::Node& node) : builder(builder), node(node) {}

  Builder& builder;
  const trace::Node& node;

  [[nodiscard]] const trace::Argument* argument(std::size_t index, std::string_view name) const;
  [[nodiscard]] bool has(std::size_t index, std::string_view name) const;  ///< given, and not None
  [[nodiscard]] bool is_tensor(std::size_t index, std::string_view name) const;
  [[nodiscard]] Tensor tensor(std::size_t index, std::string_view name) const;  ///< the argument must be a tensor
  [[nodiscard]] std::optional<Tensor> optional_tensor(std::size_t index, std::string_view name) const;
  [[nodiscard]] std::vector<Tensor> tensors(std::size_t index, std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::size_t index, std::string_view name, std::int64_t fallback = 0) const;
  [[nodiscard]] double number(std::size_t index, std::string_view name, double fallback = 0) const;
  [[nodiscard]] bool boolean(std::size_t index, std::string_view name, bool fallback = false) const;
  [[nodiscard]] std::string text(std::size_t index, std::string_view name, std::string_view fallback = {}) const;
  [[nodiscard]] Sizes integers(std::size_t index, std::string_view name) const;  ///< a lone int counts as a list
  /// A number argument with its Python type kept.
  [[nodiscard]] loop::Scalar scalar(std::size_t index, std::string_view name, loop::Scalar fallback = std::int64_t{0}) const;

  [[nodiscard]] std::size_t outputs() const { return node.outputs.size(); }
  [[nodiscard]] bool wanted(std::size_t output = 0) const;  ///< the output exists and is a tensor
  [[nodiscard]] const trace::TensorMeta& meta(std::size_t output = 0) const;
  void define(const Tensor& tensor, std::size_t output = 0);

  /// `dim` counted from the front; rank 0 counts as rank 1.
  [[nodiscard]] static std::size_t dim(std::int64_t dim, std::int64_t rank);
  /// A slice bound as PyTorch counts it: from the end if negative, then held within 0..extent.
  [[nodiscard]] static std::int64_t slice_bound(std::int64_t value, std::int64_t extent);
  /// The dimensions of a reduction: all of them if the argument is absent, None or empty.
  [[nodiscard]] std::vector<std::size_t> dims(std::size_t index, std::string_view name, std::int64_t rank) const;
};

DType scalar_dtype(const loop::Scalar& scalar);
loop::Scalar to_scalar(double value, DType dtype);
double as_double(const loop::Scalar& scalar);

using Family = Lowered (*)(Call& call);

/// Element types of the tensor that carries an operator's values (of its result, if none does), for the operator table.
/// Those among them that PyTorch takes are meant.
enum class Takes : std::uint8_t {
  of_family,  ///< views: any; normalisations and activations: floats; library: numbers; the others: kernel
  any,        ///< those that no kernel holds too: an index map does not look at elements
  kernel,     ///< every dtype that a kernel holds
  numbers,    ///< integers and floats
  integral,   ///< bool and integers
  integers,
  floats,
  none,       ///< always a torch call, for the row's reason
};

/// A row of the registry: `{op, family, function}`. What else there is has the family's default.
struct Entry {
  std::string_view op;
  std::string_view family;
  Family lower;
  Takes takes = Takes::of_family;
  std::string_view declined = {};  ///< why it is always a torch call, with Takes::none
};
// One table a family; lower.cpp gathers them.
std::vector<Entry> pointwise_entries();
std::vector<Entry> special_entries();
std::vector<Entry> activation_entries();
std::vector<Entry> activation_backward_entries();
std::vector<Entry> loss_entries();
std::vector<Entry> label_loss_entries();
std::vector<Entry> cast_entries();
std::vector<Entry> view_entries();
std::vector<Entry> shape_entries();
std::vector<Entry> creation_entries();
std::vector<Entry> reduction_entries();
std::vector<Entry> norm_entries();
std::vector<Entry> normalisation_entries();
std::vector<Entry> channel_norm_entries();
std::vector<Entry> padding_entries();
std::vector<Entry> pooling_entries();
std::vector<Entry> pooling_backward_entries();
std::vector<Entry> interpolation_entries();
std::vector<Entry> sampling_entries();
std::vector<Entry> rearrange_entries();
std::vector<Entry> storage_entries();
std::vector<Entry> indexing_entries();
std::vector<Entry> scan_entries();
std::vector<Entry> scatter_entries();
std::vector<Entry> regular_scatter_entries();
std::vector<Entry> search_entries();
std::vector<Entry> product_entries();
std::vector<Entry> contraction_entries();
std::vector<Entry> distance_entries();
std::vector<Entry> attention_entries();
std::vector<Entry> convolution_entries();
std::vector<Entry> sorting_entries();
std::vector<Entry> recurrent_entries();
/// (another spelling, the operator of a table above)
std::vector<std::pair<std::string_view, std::string_view>> aliases();

}  // namespace pallascope::lower
