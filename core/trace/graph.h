// Room: trace. The traced graph: ATen nodes over values with tensor metas, as PyTorch recorded them.
// Takes: nothing (readers in this room fill it; the Python package writes the JSON that they read).
// Gives: trace::Program, the input of every later room.
// May use: base.
// Never: changes a graph, runs Python, opens a pickle, guesses a meta that the file does not state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/id.h"
#include "core/base/result.h"
#include "core/base/store.h"

namespace pallascope::trace {

struct NodeTag;
struct ValueTag;
using NodeId = Id<NodeTag>;
using ValueId = Id<ValueTag>;

/// What the trace says of a tensor. Strides and offset are in elements.
struct TensorMeta {
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::int64_t storage_offset = 0;
  std::string device = "cpu";
  bool requires_grad = false;

  [[nodiscard]] std::int64_t rank() const { return static_cast<std::int64_t>(sizes.size()); }
  [[nodiscard]] std::int64_t numel() const;
  [[nodiscard]] std::int64_t bytes() const { return numel() * dtype_bytes(dtype); }
  friend bool operator==(const TensorMeta&, const TensorMeta&) = default;
};

/// `f32[2,16,64]`.
std::string to_string(const TensorMeta& meta);
/// Row-major strides of `sizes`, as PyTorch counts them (an extent 0 counts as 1).
std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& sizes);

/// One argument of a node: a Python value as FX and .pt2 allow them.
struct Argument;
using ArgumentList = std::vector<Argument>;
struct NoneArgument {
  friend bool operator==(const NoneArgument&, const NoneArgument&) = default;
};
/// A name from a closed set that is neither dtype nor device: memory format, layout.
struct EnumArgument {
  std::string kind;  ///< "memory_format" or "layout"
  std::string name;  ///< "contiguous_format", "channels_last", "preserve_format", "strided", ...
  friend bool operator==(const EnumArgument&, const EnumArgument&) = default;
};
struct DeviceArgument {
  std::string device;
  friend bool operator==(const DeviceArgument&, const DeviceArgument&) = default;
};
struct Argument {
  std::variant<NoneArgument, ValueId, std::int64_t, double, bool, std::string, DType, DeviceArgument,
               EnumArgument, ArgumentList>
      content;

  [[nodiscard]] bool is_none() const { return std::holds_alternative<NoneArgument>(content); }
  template <class T>
  [[nodiscard]] const T* get() const {
    return std::get_if<T>(&content);
  }
  friend bool operator==(const Argument&, const Argument&) = default;
};

/// One frame of the user's stack, outermost first in `Node::stack`.
struct Frame {
  std::string file;
  int line = 0;
  std::string function;
  std::string code;  ///< the text of the line, as the trace kept it
  friend bool operator==(const Frame&, const Frame&) = default;
};

/// A tensor (or None) that an input or a node defines.
struct Value {
  std::string name;
  std::optional<TensorMeta> tensor;  ///< absent for an output that is None (as in `batch_norm` backward)
  NodeId producer;                   ///< invalid for a graph input
  int output_index = 0;              ///< which output of the producer
};

/// One call of an ATen overload.
struct Node {
  std::string name;    ///< FX name, unique in the graph, e.g. `sum_2`
  std::string target;  ///< `aten.add.Tensor`: namespace, operator and overload
  std::vector<Argument> args;
  std::vector<std::pair<std::string, Argument>> kwargs;
  std::vector<ValueId> outputs;
  bool list_output = false;  ///< the operator returns a list or tuple (even of one)
  std::string module_path;   ///< `h.0.attn`, empty at the top
  std::string module_type;   ///< class of the innermost module, may be empty
  std::vector<Frame> stack;  ///< outermost first, frames of torch included

  /// The innermost frame outside torch (a file under torch/ or .../torch/ is torch's), or nullptr.
  [[nodiscard]] const Frame* user_frame() const;
  /// Positional argument `index`, else the keyword `name`, else nullptr (the schema's default holds).
  [[nodiscard]] const Argument* argument(std::size_t index, std::string_view name) const;
};

enum class InputKind { parameter, buffer, user_input, constant };
struct Input {
  InputKind kind = InputKind::user_input;
  ValueId value;
  /// The parameter's, buffer's or constant's qualified name; the argument's name otherwise.
  std::string target;
};

enum class OutputKind {
  user_output,
  mutation,  ///< `value` is written back into the input named `target` after the call
};
struct Output {
  OutputKind kind = OutputKind::user_output;
  ValueId value;       ///< invalid for a user output that is None or a plain Python value
  std::string target;  ///< for a mutation, the `Value::name` of the input that changes
  /// A user output that is a plain Python value (int, str, ...): that value; `value` is then invalid.
  std::optional<Argument> constant;
};

/// One traced graph. Nodes stand in execution order; each uses only values defined before it.
struct Graph {
  std::string name;  ///< `forward`, `graph 1`, ...
  std::string kind;  ///< `inference`, `forward`, `backward`, `export`
  SharedStore<ValueId, Value> values;
  SharedStore<NodeId, Node> nodes;
  std::vector<Input> inputs;
  std::vector<Output> outputs;

  [[nodiscard]] std::optional<NodeId> find_node(std::string_view name) const;
  [[nodiscard]] std::optional<ValueId> find_value(std::string_view name) const;
};

/// Where the bytes of an input live: a member of the .pt2 archive or a file of the bundle. Never read by core.
struct Weight {
  std::string member;
  std::int64_t bytes = 0;
};

/// Several graphs that belong together (graph breaks, forward and backward), with the model's source text.
struct Program {
  std::string name;
  std::string origin;  ///< the path it was read from, empty for one that came from memory
  std::vector<Graph> graphs;
  std::map<std::string, std::string> sources;  ///< file -> text, as the trace kept it; may be empty
  std::map<std::string, Weight> weights;       ///< input target -> where its bytes are
  std::string producer;                        ///< "torch 2.13.0+cpu", as the file says
};

/// A graph as text, one node a line (for the terminal and for dumps).
std::string to_string(const Graph& graph);
std::string to_string(const Graph& graph, const Argument& argument);

/// One node as its line in `to_string(graph)`, without the indent: `add: f32[2,16] = aten.add.Tensor(x, y, alpha=1)`.
std::string to_string(const Graph& graph, NodeId node);

/// How far the elements of `meta` reach into their storage: one past the highest element index, offset included;
/// 0 for a tensor without elements. nullopt when that (or its bytes) does not fit 64 bits.
std::optional<std::int64_t> storage_extent(const TensorMeta& meta);

/// Checks what every later room relies on: names unique and not empty, values defined before use, one stride a
/// size, sizes, strides and offset not negative, extents within 64 bits, output kinds with their targets. The
/// readers call it before they return a graph. A diagnostic's `where` names the node, input or output.
Status validate(const Graph& graph);

}  // namespace pallascope::trace
