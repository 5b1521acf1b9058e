#include <cmath>

#include "core/trace/json.h"
#include "core/trace/read.h"

namespace pallascope::trace {
namespace {

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void program(const Program& program) {
    out_ += R"({"format": "pallascope.trace", "version": 1, "producer": )";
    text(program.producer);
    out_ += ", \"name\": ";
    text(program.name);
    out_ += ",\n \"graphs\": [";
    for (std::size_t i = 0; i < program.graphs.size(); ++i) {
      out_ += i > 0 ? ",\n" : "\n";
      graph(program.graphs[i]);
    }
    out_ += "]";
    if (!program.sources.empty()) {
      out_ += ",\n \"sources\": {";
      const char* separator = "\n  ";
      for (const auto& [file, source] : program.sources) {
        out_ += separator;
        text(file);
        out_ += ": ";
        text(source);
        separator = ",\n  ";
      }
      out_ += "}";
    }
    if (!program.weights.empty()) {
      out_ += ",\n \"weights\": {";
      const char* separator = "\n  ";
      for (const auto& [target, weight] : program.weights) {
        out_ += separator;
        text(target);
        out_ += ": {\"member\": ";
        text(weight.member);
        out_ += ", \"bytes\": " + std::to_string(weight.bytes) + "}";
        separator = ",\n  ";
      }
      out_ += "}";
    }
    out_ += "}\n";
  }

 private:
  void text(std::string_view content) { append_json_string(out_, content); }

  void value_name(const Graph& graph, ValueId id) {
    if (id.valid())
      text(graph.values[id].name);
    else
      out_ += "null";
  }

  void integers(const std::vector<std::int64_t>& numbers) {
    out_ += '[';
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (i > 0) out_ += ", ";
      out_ += std::to_string(numbers[i]);
    }
    out_ += ']';
  }

  void tensor(const std::optional<TensorMeta>& meta) {
    if (!meta) {
      out_ += "null";
      return;
    }
    out_ += "{\"dtype\": ";
    text(dtype_name(meta->dtype));
    out_ += ", \"sizes\": ";
    integers(meta->sizes);
    out_ += ", \"strides\": ";
    integers(meta->strides);
    out_ += ", \"offset\": " + std::to_string(meta->storage_offset);
    if (meta->device != "cpu") {
      out_ += ", \"device\": ";
      text(meta->device);
    }
    if (meta->requires_grad) out_ += ", \"requires_grad\": true";
    out_ += '}';
  }

  void argument(const Graph& graph, const Argument& argument) {
    if (argument.is_none()) {
      out_ += "null";
    } else if (const auto* id = argument.get<ValueId>()) {
      wrapped("value", graph.values[*id].name);
    } else if (const auto* number = argument.get<std::int64_t>()) {
      out_ += std::to_string(*number);
    } else if (const auto* real = argument.get<double>()) {
      if (std::isfinite(*real))
        out_ += shortest_float(*real);
      else
        wrapped("float", std::isnan(*real) ? "nan" : *real > 0 ? "inf" : "-inf");
    } else if (const auto* flag = argument.get<bool>()) {
      out_ += *flag ? "true" : "false";
    } else if (const auto* string = argument.get<std::string>()) {
      wrapped("str", *string);
    } else if (const auto* dtype = argument.get<DType>()) {
      wrapped("dtype", dtype_name(*dtype));
    } else if (const auto* device = argument.get<DeviceArgument>()) {
      wrapped("device", device->device);
    } else if (const auto* name = argument.get<EnumArgument>()) {
      wrapped(name->kind, name->name);
    } else if (const auto* list = argument.get<ArgumentList>()) {
      out_ += '[';
      for (std::size_t i = 0; i < list->size(); ++i) {
        if (i > 0) out_ += ", ";
        this->argument(graph, (*list)[i]);
      }
      out_ += ']';
    }
  }

  void wrapped(std::string_view kind, std::string_view content) {
    out_ += '{';
    text(kind);
    out_ += ": ";
    text(content);
    out_ += '}';
  }

  void graph(const Graph& graph) {
    out_ += "  {\"name\": ";
    text(graph.name);
    out_ += ", \"kind\": ";
    text(graph.kind);
    out_ += ",\n   \"inputs\": [";
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      out_ += i > 0 ? ",\n    " : "\n    ";
      input(graph, graph.inputs[i]);
    }
    out_ += "],\n   \"nodes\": [";
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      out_ += i > 0 ? ",\n    " : "\n    ";
      node(graph, graph.nodes[NodeId(i)]);
    }
    out_ += "],\n   \"outputs\": [";
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      out_ += i > 0 ? ",\n    " : "\n    ";
      output(graph, graph.outputs[i]);
    }
    out_ += "]}";
  }

  void input(const Graph& graph, const Input& input) {
    static constexpr std::string_view kKinds[] = {"parameter", "buffer", "user_input", "constant"};
    out_ += "{\"kind\": ";
    text(kKinds[static_cast<std::size_t>(input.kind)]);
    out_ += ", \"name\": ";
    value_name(graph, input.value);
    out_ += ", \"target\": ";
    text(input.target);
    out_ += ", \"tensor\": ";
    tensor(graph.values[input.value].tensor);
    out_ += '}';
  }

  void node(const Graph& graph, const Node& node) {
    out_ += "{\"name\": ";
    text(node.name);
    out_ += ", \"target\": ";
    text(node.target);
    out_ += ", \"args\": [";
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      if (i > 0) out_ += ", ";
      argument(graph, node.args[i]);
    }
    out_ += "], \"kwargs\": {";
    for (std::size_t i = 0; i < node.kwargs.size(); ++i) {
      if (i > 0) out_ += ", ";
      text(node.kwargs[i].first);
      out_ += ": ";
      argument(graph, node.kwargs[i].second);
    }
    out_ += "}, \"outputs\": [";
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (i > 0) out_ += ", ";
      out_ += "{\"name\": ";
      value_name(graph, node.outputs[i]);
      out_ += ", \"tensor\": ";
      tensor(graph.values[node.outputs[i]].tensor);
      out_ += '}';
    }
    out_ += node.list_output ? "], \"list_output\": true" : "], \"list_output\": false";
    if (!node.module_path.empty()) {
      out_ += ", \"module\": ";
      text(node.module_path);
    }
    if (!node.module_type.empty()) {
      out_ += ", \"module_type\": ";
      text(node.module_type);
    }
    if (!node.stack.empty()) {
      out_ += ", \"stack\": [";
      for (std::size_t i = 0; i < node.stack.size(); ++i) {
        const Frame& frame = node.stack[i];
        out_ += i > 0 ? ", {\"file\": " : "{\"file\": ";
        text(frame.file);
        out_ += ", \"line\": " + std::to_string(frame.line) + ", \"function\": ";
        text(frame.function);
        out_ += ", \"code\": ";
        text(frame.code);
        out_ += '}';
      }
      out_ += ']';
    }
    out_ += '}';
  }

  void output(const Graph& graph, const Output& output) {
    out_ += output.kind == OutputKind::mutation ? R"({"kind": "mutation", "value": )"
                                                : R"({"kind": "user_output", "value": )";
    value_name(graph, output.value);
    if (!output.target.empty()) {
      out_ += ", \"target\": ";
      text(output.target);
    }
    if (output.constant) {
      out_ += ", \"constant\": ";
      argument(graph, *output.constant);
    }
    out_ += '}';
  }

  std::string& out_;
};

}  // namespace

std::string write_json(const Program& program) {
  std::string text;
  Writer(text).program(program);
  return text;
}

}  // namespace pallascope::trace
