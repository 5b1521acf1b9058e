#include "core/trace/graph.h"

#include <cmath>

#include "core/trace/json.h"

namespace pallascope::trace {
namespace {

std::string value_text(const Graph& graph, ValueId id) {
  if (!id.valid()) return "None";
  return graph.values.contains(id) ? graph.values[id].name : "<value " + std::to_string(id.value) + "?>";
}

std::string meta_text(const Value& value) { return value.tensor ? to_string(*value.tensor) : "None"; }

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  return shortest_float(number);
}

std::string outputs_text(const Graph& graph, const Node& node) {
  // One output that carries the node's name needs no second mention of it.
  if (!node.list_output && node.outputs.size() == 1 && graph.values.contains(node.outputs[0]) &&
      graph.values[node.outputs[0]].name == node.name)
    return meta_text(graph.values[node.outputs[0]]);
  std::string text = "(";
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (i > 0) text += ", ";
    text += value_text(graph, node.outputs[i]);
    if (graph.values.contains(node.outputs[i])) text += ": " + meta_text(graph.values[node.outputs[i]]);
  }
  if (node.list_output && node.outputs.size() == 1) text += ",";
  return text + ")";
}

std::string node_text(const Graph& graph, const Node& node) {
  std::string text = node.name + ": " + outputs_text(graph, node) + " = " + node.target + "(";
  bool first = true;
  for (const Argument& argument : node.args) {
    text += (first ? "" : ", ") + to_string(graph, argument);
    first = false;
  }
  for (const auto& [name, argument] : node.kwargs) {
    text += (first ? "" : ", ") + name + "=" + to_string(graph, argument);
    first = false;
  }
  return text + ")";
}

std::string_view input_kind_name(InputKind kind) {
  switch (kind) {
    case InputKind::parameter:
      return "parameter";
    case InputKind::buffer:
      return "buffer";
    case InputKind::user_input:
      return "user input";
    case InputKind::constant:
      return "constant";
  }
  return "user input";
}

}  // namespace

std::int64_t TensorMeta::numel() const {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return product;
}

std::string to_string(const TensorMeta& meta) {
  std::string text(dtype_name(meta.dtype));
  text += '[';
  for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(meta.sizes[i]);
  }
  return text + ']';
}

std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t next = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = next;
    next *= sizes[i] > 0 ? sizes[i] : 1;
  }
  return strides;
}

const Frame* Node::user_frame() const {
  for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame)
    if (!frame->file.starts_with("torch/") && frame->file.find("/torch/") == std::string::npos)
      return &*frame;
  return nullptr;
}

const Argument* Node::argument(std::size_t index, std::string_view name) const {
  if (index < args.size()) return &args[index];
  for (const auto& [key, argument] : kwargs)
    if (key == name) return &argument;
  return nullptr;
}

std::optional<NodeId> Graph::find_node(std::string_view node_name) const {
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[NodeId(i)].name == node_name) return NodeId(i);
  return std::nullopt;
}

std::optional<ValueId> Graph::find_value(std::string_view value_name) const {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[ValueId(i)].name == value_name) return ValueId(i);
  return std::nullopt;
}

std::string to_string(const Graph& graph, const Argument& argument) {
  struct Printer {
    const Graph& graph;
    std::string operator()(const NoneArgument&) const { return "None"; }
    std::string operator()(const ValueId& id) const { return value_text(graph, id); }
    std::string operator()(const std::int64_t& number) const { return std::to_string(number); }
    std::string operator()(const double& number) const { return float_text(number); }
    std::string operator()(const bool& flag) const { return flag ? "True" : "False"; }
    std::string operator()(const std::string& text) const {
      std::string quoted;
      append_json_string(quoted, text);
      return quoted;
    }
    std::string operator()(const DType& dtype) const { return std::string(dtype_name(dtype)); }
    std::string operator()(const DeviceArgument& device) const { return device.device; }
    std::string operator()(const EnumArgument& name) const { return name.name; }
    std::string operator()(const ArgumentList& list) const {
      std::string text = "[";
      for (std::size_t i = 0; i < list.size(); ++i) text += (i > 0 ? ", " : "") + to_string(graph, list[i]);
      return text + "]";
    }
  };
  return std::visit(Printer{graph}, argument.content);
}

std::string to_string(const Graph& graph, NodeId node) { return node_text(graph, graph.nodes[node]); }

std::string to_string(const Graph& graph) {
  std::string text = "graph " + graph.name + " (" + graph.kind + ")\n";
  for (const Input& input : graph.inputs) {
    text += "  " + value_text(graph, input.value);
    if (graph.values.contains(input.value)) text += ": " + meta_text(graph.values[input.value]);
    text += " = " + std::string(input_kind_name(input.kind));
    if (!input.target.empty() && input.target != value_text(graph, input.value)) text += " " + input.target;
    text += "\n";
  }
  for (const Node& node : graph.nodes) text += "  " + node_text(graph, node) + "\n";
  std::string returned;
  for (const Output& output : graph.outputs) {
    if (output.kind == OutputKind::mutation) {
      text += "  " + output.target + " <- " + value_text(graph, output.value) + "\n";
    } else {
      if (!returned.empty()) returned += ", ";
      returned += output.constant ? to_string(graph, *output.constant) : value_text(graph, output.value);
    }
  }
  return text + "  return " + (returned.empty() ? "nothing" : returned) + "\n";
}

}  // namespace pallascope::trace
