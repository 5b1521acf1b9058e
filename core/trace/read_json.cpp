#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "core/trace/json_reader.h"
#include "core/trace/read.h"

namespace pallascope::trace {
namespace {

constexpr std::int64_t kVersion = 1;

constexpr std::array<std::string_view, 4> kMemoryFormats = {"contiguous_format", "channels_last",
                                                            "channels_last_3d", "preserve_format"};
constexpr std::array<std::string_view, 7> kLayouts = {"strided",    "sparse_coo", "sparse_csr", "sparse_csc",
                                                      "sparse_bsr", "sparse_bsc", "_mkldnn"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  for (const std::string_view known : names)
    if (known == name) return true;
  return false;
}

/// Reads one program.
class Reader : private JsonReader {
 public:
  Result<Program> run(const JsonCursor& root) {
    Program program;
    const std::string format = string_at(root, "format");
    if (!problem_ && format != "pallascope.trace")
      fail(root, DiagnosticKind::malformed_graph, "the format is `" + format + "`, not `pallascope.trace`",
           "open a trace that Pallascope's Python package wrote");
    const std::int64_t version = int_at(root, "version");
    if (!problem_ && version != kVersion)
      fail(root, DiagnosticKind::schema_version,
           "the trace has format version " + std::to_string(version) + ", this program reads version " +
               std::to_string(kVersion),
           "write the trace again with the Python package of this version");
    program.producer = optional_string(root, "producer");
    program.name = optional_string(root, "name");
    for_each(root, "graphs", [&](const JsonCursor& cursor) { read_graph(cursor, program); });
    read_sources(root, program);
    read_weights(root, program);
    if (problem_) return *problem_;
    return program;
  }

 private:
  std::vector<std::int64_t> integers_at(const JsonCursor& cursor, std::string_view key) {
    std::vector<std::int64_t> numbers;
    for_each(cursor, key, [&](const JsonCursor& element) {
      if (element.value().find("symbol") != nullptr) return symbolic(element);
      numbers.push_back(take(element.as_int()));
    });
    return numbers;
  }

  void symbolic(const JsonCursor& cursor) {
    const std::string* name = nullptr;
    if (const JsonValue* symbol = cursor.value().find("symbol")) name = symbol->get<std::string>();
    fail(cursor, DiagnosticKind::symbolic_size,
         node_.empty()
             ? "a size is the symbol `" + (name != nullptr ? *name : "?") + "`"
             : "node `" + node_ + "` uses the symbolic size `" + (name != nullptr ? *name : "?") + "`",
         "trace with static shapes: torch.compile(dynamic=False), or torch.export without dynamic shapes");
  }

  std::optional<TensorMeta> read_tensor(const JsonCursor& cursor) {
    if (cursor.is_null()) return std::nullopt;
    TensorMeta meta;
    const std::string dtype = string_at(cursor, "dtype");
    if (problem_) return meta;
    if (const std::optional<DType> known = dtype_from_name(dtype)) {
      meta.dtype = *known;
    } else {
      fail(*cursor.at("dtype"), DiagnosticKind::unknown_dtype, "the dtype `" + dtype + "` is not known",
           "use a dtype of PyTorch such as f32, bf16 or i64");
    }
    meta.sizes = integers_at(cursor, "sizes");
    meta.strides = integers_at(cursor, "strides");
    if (cursor.has("offset") && cursor.at("offset")->value().find("symbol") != nullptr)
      symbolic(*cursor.at("offset"));
    meta.storage_offset = int_at(cursor, "offset");
    if (cursor.has("device")) meta.device = string_at(cursor, "device");
    meta.requires_grad = optional_bool(cursor, "requires_grad");
    return meta;
  }

  ValueId define(const JsonCursor& cursor, Graph& graph, Value value) {
    if (!value_ids_.emplace(value.name, ValueId(graph.values.size())).second)
      fail(cursor, DiagnosticKind::malformed_graph, "two values are named `" + value.name + "`",
           "give every value a name of its own");
    return graph.values.add(std::move(value));
  }

  ValueId use(const JsonCursor& cursor, const std::string& name) {
    const auto found = value_ids_.find(name);
    if (found != value_ids_.end()) return found->second;
    fail(cursor, DiagnosticKind::undefined_value,
         node_.empty() ? "`" + name + "` is not defined"
                       : "node `" + node_ + "` uses `" + name + "`, which nothing defines before it",
         "nodes stand in execution order and use only inputs and outputs of earlier nodes");
    return {};
  }

  Argument read_argument(const JsonCursor& cursor) {
    const JsonValue& value = cursor.value();
    if (value.is_null()) return {NoneArgument{}};
    if (const bool* flag = value.get<bool>()) return {*flag};
    if (const auto* number = value.get<std::int64_t>()) return {*number};
    if (const auto* real = value.get<double>()) return {*real};
    if (value.get<JsonArray>() != nullptr) {
      ArgumentList list;
      const std::size_t size = take(cursor.list_size());
      list.reserve(size);
      for (std::size_t i = 0; i < size && !problem_; ++i) list.push_back(read_argument(cursor.element(i)));
      return {std::move(list)};
    }
    if (const JsonObject* object = value.get<JsonObject>(); object != nullptr && object->size() == 1)
      return read_wrapped(cursor, cursor.key_of(0));
    fail(cursor, DiagnosticKind::malformed_graph, std::string(value.type_name()) + " is no argument",
         "write an argument as FORMAT.md lists them, a string as {\"str\": ...}");
    return {};
  }

  Argument read_wrapped(const JsonCursor& cursor, const std::string& kind) {
    if (kind == "symbol") {
      symbolic(cursor);
      return {};
    }
    const std::string content = take(cursor.element(0).as_string());
    if (problem_) return {};
    if (kind == "value") return {use(cursor, content)};
    if (kind == "str") return {content};
    if (kind == "device") return {DeviceArgument{content}};
    if (kind == "dtype") {
      if (const std::optional<DType> dtype = dtype_from_name(content)) return {*dtype};
      fail(cursor, DiagnosticKind::unknown_dtype, "the dtype `" + content + "` is not known",
           "use a dtype of PyTorch such as f32, bf16 or i64");
      return {};
    }
    if (kind == "float") {
      if (content == "inf") return {std::numeric_limits<double>::infinity()};
      if (content == "-inf") return {-std::numeric_limits<double>::infinity()};
      if (content == "nan") return {std::numeric_limits<double>::quiet_NaN()};
    }
    if ((kind == "memory_format" && contains(kMemoryFormats, content)) ||
        (kind == "layout" && contains(kLayouts, content)))
      return {EnumArgument{kind, content}};
    fail(cursor, DiagnosticKind::malformed_graph, "{\"" + kind + "\": \"" + content + "\"} is no argument",
         "write an argument as FORMAT.md lists them");
    return {};
  }

  void read_graph(const JsonCursor& cursor, Program& program) {
    Graph graph;
    value_ids_.clear();
    node_.clear();
    graph.name = string_at(cursor, "name");
    graph.kind = string_at(cursor, "kind");
    if (!problem_ && !contains(kKinds, graph.kind))
      fail(*cursor.at("kind"), DiagnosticKind::malformed_graph, "`" + graph.kind + "` is no kind of graph",
           "a kind is inference, forward, backward or export");
    for_each(cursor, "inputs", [&](const JsonCursor& input) { read_input(input, graph); });
    for_each(cursor, "nodes", [&](const JsonCursor& node) { read_node(node, graph); });
    node_.clear();
    for_each(cursor, "outputs", [&](const JsonCursor& output) { read_output(output, graph); });
    if (problem_) return;
    if (const Status valid = validate(graph); !valid.ok()) {
      Diagnostic diagnostic = valid.error();
      diagnostic.where = cursor.where() + ", " + diagnostic.where;
      return fail(diagnostic);
    }
    program.graphs.push_back(std::move(graph));
  }

  void read_input(const JsonCursor& cursor, Graph& graph) {
    Input input;
    const std::string kind = string_at(cursor, "kind");
    if (kind == "parameter")
      input.kind = InputKind::parameter;
    else if (kind == "buffer")
      input.kind = InputKind::buffer;
    else if (kind == "user_input")
      input.kind = InputKind::user_input;
    else if (kind == "constant")
      input.kind = InputKind::constant;
    else
      fail(cursor, DiagnosticKind::malformed_graph, "`" + kind + "` is no kind of input",
           "a kind is parameter, buffer, user_input or constant");
    Value value;
    value.name = string_at(cursor, "name");
    input.target = cursor.has("target") ? string_at(cursor, "target") : value.name;
    const Result<JsonCursor> tensor = cursor.at("tensor");
    if (!tensor.ok()) return fail(tensor.error());
    value.tensor = read_tensor(*tensor);
    if (problem_) return;
    input.value = define(cursor, graph, std::move(value));
    graph.inputs.push_back(std::move(input));
  }

  void read_node(const JsonCursor& cursor, Graph& graph) {
    Node node;
    const NodeId id(graph.nodes.size());
    node.name = string_at(cursor, "name");
    node.target = string_at(cursor, "target");
    node_ = node.name;
    if (!problem_ && (node.target.ends_with("getitem") || node.target.starts_with("higher_order.")))
      fail(cursor, DiagnosticKind::unsupported, "node `" + node.name + "` calls `" + node.target + "`",
           "name list outputs on the node that makes them, and trace without subgraphs");
    for_each(cursor, "args",
             [&](const JsonCursor& argument) { node.args.push_back(read_argument(argument)); });
    if (const Result<JsonCursor> kwargs = cursor.at("kwargs"); kwargs.ok()) {
      const std::size_t size = take(kwargs->object_size());
      for (std::size_t i = 0; i < size && !problem_; ++i)
        node.kwargs.emplace_back(kwargs->key_of(i), read_argument(kwargs->element(i)));
    } else {
      fail(kwargs.error());
    }
    node.list_output = optional_bool(cursor, "list_output");
    node.module_path = optional_string(cursor, "module");
    node.module_type = optional_string(cursor, "module_type");
    if (cursor.has("stack"))
      for_each(cursor, "stack", [&](const JsonCursor& frame) { read_frame(frame, node); });
    for_each(cursor, "outputs", [&](const JsonCursor& output) {
      Value value;
      value.name = string_at(output, "name");
      value.producer = id;
      value.output_index = static_cast<int>(node.outputs.size());
      const Result<JsonCursor> tensor = output.at("tensor");
      if (!tensor.ok()) return fail(tensor.error());
      value.tensor = read_tensor(*tensor);
      if (!problem_) node.outputs.push_back(define(output, graph, std::move(value)));
    });
    if (!problem_) graph.nodes.add(std::move(node));
  }

  void read_frame(const JsonCursor& cursor, Node& node) {
    Frame frame;
    frame.file = string_at(cursor, "file");
    const std::int64_t line = int_at(cursor, "line");
    if (line < 0 || line > std::numeric_limits<int>::max())
      fail(cursor, DiagnosticKind::malformed_graph, "line " + std::to_string(line) + " is no line number",
           "lines count from 1");
    frame.line = static_cast<int>(line);
    frame.function = optional_string(cursor, "function");
    frame.code = optional_string(cursor, "code");
    node.stack.push_back(std::move(frame));
  }

  void read_output(const JsonCursor& cursor, Graph& graph) {
    Output output;
    const std::string kind = string_at(cursor, "kind");
    if (kind == "mutation")
      output.kind = OutputKind::mutation;
    else if (!problem_ && kind != "user_output")
      fail(cursor, DiagnosticKind::malformed_graph, "`" + kind + "` is no kind of output",
           "a kind is user_output or mutation");
    const Result<JsonCursor> value = cursor.at("value");
    if (!value.ok()) return fail(value.error());
    if (!value->is_null()) {
      const std::string name = take(value->as_string());
      if (!problem_) output.value = use(*value, name);
    }
    output.target =
        output.kind == OutputKind::mutation ? string_at(cursor, "target") : optional_string(cursor, "target");
    if (cursor.has("constant")) output.constant = read_argument(*cursor.at("constant"));
    graph.outputs.push_back(std::move(output));
  }

  void read_sources(const JsonCursor& root, Program& program) {
    if (problem_ || !root.has("sources")) return;
    const Result<JsonCursor> sources = root.at("sources");
    const std::size_t size = take(sources->object_size());
    for (std::size_t i = 0; i < size && !problem_; ++i)
      program.sources[sources->key_of(i)] = take(sources->element(i).as_string());
  }

  void read_weights(const JsonCursor& root, Program& program) {
    if (problem_ || !root.has("weights")) return;
    const Result<JsonCursor> weights = root.at("weights");
    const std::size_t size = take(weights->object_size());
    for (std::size_t i = 0; i < size && !problem_; ++i) {
      const JsonCursor entry = weights->element(i);
      Weight weight{string_at(entry, "member"), int_at(entry, "bytes")};
      if (weight.bytes < 0)
        fail(entry, DiagnosticKind::malformed_graph,
             "the weight has " + std::to_string(weight.bytes) + " bytes",
             "give the number of bytes that the member holds");
      program.weights[weights->key_of(i)] = std::move(weight);
    }
  }

  static constexpr std::array<std::string_view, 4> kKinds = {"inference", "forward", "backward", "export"};

  std::unordered_map<std::string, ValueId> value_ids_;
  std::string node_;  ///< the node being read, for messages
};

}  // namespace

Result<Program> read_json(std::string_view text, std::string_view where) {
  const Result<JsonValue> document = parse_json(text, where);
  if (!document.ok()) return document.error();
  return Reader().run(JsonCursor(*document, where));
}

}  // namespace pallascope::trace
