// Room: codegen. Writes the body of one Pallas kernel: values (kernel.cpp), memory (kernel_memory.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/codegen/kernel.h"

namespace pallascope::codegen {

/// A value of the kernel: a variable (or a literal that has no variable yet) and its shape.
struct Value {
  std::string text;
  Shape shape;
  DType dtype = DType::f32;
  bool literal = false;
};

/// Elements of a shape.
std::int64_t product(const Shape& shape);
/// Makes a shape that of two operands of one rank under NumPy's broadcasting.
void widen(Shape& shape, const Shape& by);

class KernelWriter {
 public:
  KernelWriter(const trace::Graph& graph, const loop::Program& program, const schedule::Kernel& kernel)
      : graph_(graph), program_(program), kernel_(kernel), internal_(kernel.internal.begin(), kernel.internal.end()) {
    // Room at once: a kernel may have thousands of nests.
    writers_.reserve(kernel.nests.size());
    values_of_buffers_.reserve(kernel.nests.size());
    loads_.reserve(kernel.nests.size());
  }

  KernelText write();

 private:
  [[nodiscard]] const index::Context& context() const { return *program_.context; }
  [[nodiscard]] std::int64_t extent(index::AxisId axis) const { return context().axis(axis).extent; }

  LineOrigin origin(int statement) const;

  /// `tmp<k> = text` as a line; gives the variable.
  std::string assign(std::string_view text, int statement, int access = -1);
  /// The beginning of such a line.
  std::string begin_assignment();
  void line(std::string_view text, LineOrigin origin);

  Parameter& input(loop::BufferId buffer, const index::Plan& plan);

  Parameter& add_input(loop::BufferId buffer, Shape shape);

  Parameter& output(loop::BufferId buffer, const Shape& shape);

  [[nodiscard]] Parameter* find_output(loop::BufferId buffer);

  int record(int statement, bool store, bool on_value, loop::BufferId buffer, std::string parameter, std::string source);

  void write_nest(const loop::Nest& nest);

  const Value& value(int statement) const { return values_.at(static_cast<std::size_t>(statement)); }

  /// A literal as an array of its dtype (JAX would take a bare number for its own default dtype).
  std::string typed(const Value& v) const;

  Value load(const loop::Nest& nest, const loop::Statement& s, int statement);

  /// Kernels' plans have neither of the optional steps.
  static bool same_read(const index::Plan& a, const index::Plan& b) {
    return a.view_shape == b.view_shape && a.slices == b.slices && a.permutation == b.permutation && a.result_shape == b.result_shape;
  }

  /// An iota along axis `k` of the nest, shaped 1 elsewhere.
  std::string iota(const loop::Nest& nest, std::size_t k, std::string_view dtype);

  struct Rendered {
    std::string text;
    Shape shape;
    bool atom = true;  ///< needs no parentheses
  };

  Rendered render(const loop::Nest& nest, index::Expression e, std::string_view dtype);

  Rendered render_term(const loop::Nest& nest, const index::Term& term, std::string_view dtype);

  /// i32 where the values allow it.
  std::string_view index_dtype(index::Expression e, std::int64_t reach) const;

  Value index_value(const loop::Nest& nest, const loop::Statement& s, int statement);

  /// A load whose index holds symbols or does not resolve to views: element by element, or row by row.
  Value gather(const loop::Nest& nest, const loop::Statement& s, int statement);

  /// `source` seen with `shape`: the ref itself, if the call boundary can shape it so.
  std::string gather_source(loop::BufferId buffer, const Shape& shape, std::string& name, bool& on_value);

  /// An index that is one symbol times the extent of a row, and the row itself in order.
  struct Rows {
    std::int64_t extent = 0;               ///< elements of a row
    std::size_t first = 0;                 ///< the axis of the nest that a row begins with
    const loop::SymbolUse* use = nullptr;  ///< the row's number, which does not vary within the row
  };
  std::optional<Rows> rows_of(const loop::Nest& nest, index::Expression e, std::int64_t numel) const;
  /// Whole rows are taken.
  std::optional<Value> gather_rows(const loop::Nest& nest, const loop::Statement& s, int statement, std::string_view dtype);

  Value compute(const loop::Statement& s, int statement);

  Value reduce(const loop::Nest& nest, const loop::Statement& s, int statement);

  Value scan(const loop::Nest& nest, const loop::Statement& s, int statement);

  void store(const loop::Nest& nest, const loop::Statement& s, int statement);

  /// A store through computed indices: the flat buffer with its elements (or rows) changed, stored whole.
  void scatter(const loop::Nest& nest, const loop::Statement& s, int statement);

  /// The shape of a ref that several nests fill: its buffer's own.
  Shape region_shape(loop::BufferId buffer, const index::Plan& plan) const;

  /// A flag that holds 1 where `condition` holds everywhere.
  void check(trace::NodeId blamed, int statement, const std::string& condition, std::string error,
             const std::function<std::string(const trace::Node&)>& message);

  void check_index(const loop::Nest& nest, const loop::SymbolUse& use, int statement);

  void check_value(const loop::ValueCheck& c);

  const trace::Graph& graph_;
  const loop::Program& program_;
  const schedule::Kernel& kernel_;
  KernelText text_;
  loop::NestId nest_id_;
  std::size_t rank_ = 0;
  int current_ = -1;  ///< the statement being written
  int variables_ = 0;
  std::vector<Value> values_;
  std::unordered_set<loop::BufferId> internal_;
  std::unordered_map<loop::BufferId, int> writers_;
  std::unordered_map<loop::BufferId, Value> values_of_buffers_;
  std::unordered_map<loop::BufferId, std::vector<std::pair<const index::Plan*, Value>>> loads_;
  std::map<std::string, std::string> iotas_;
  std::vector<Parameter> checks_;
  std::set<std::string> checked_;
};

}  // namespace pallascope::codegen
