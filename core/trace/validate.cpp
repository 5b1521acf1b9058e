#include <limits>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/trace/graph.h"

namespace pallascope::trace {
namespace {

using Check = std::optional<Diagnostic>;

/// `a * b` for numbers that are not negative; nullopt when 64 bits do not hold it.
std::optional<std::int64_t> product(std::int64_t a, std::int64_t b) {
  if (a != 0 && b > std::numeric_limits<std::int64_t>::max() / a) return std::nullopt;
  return a * b;
}

std::optional<std::int64_t> sum(std::int64_t a, std::int64_t b) {
  if (b > std::numeric_limits<std::int64_t>::max() - a) return std::nullopt;
  return a + b;
}

Diagnostic wrong(DiagnosticKind kind, std::string message, std::string where, std::string remedy) {
  return Diagnostic{kind, std::move(message), std::move(where), std::move(remedy)};
}

Check check_meta(const TensorMeta& meta, const std::string& where) {
  if (meta.sizes.size() != meta.strides.size())
    return wrong(DiagnosticKind::malformed_graph,
                 "the tensor has " + std::to_string(meta.sizes.size()) + " sizes and " +
                     std::to_string(meta.strides.size()) + " strides",
                 where, "give one stride for each size");
  for (std::size_t axis = 0; axis < meta.sizes.size(); ++axis) {
    if (meta.sizes[axis] < 0)
      return wrong(DiagnosticKind::malformed_graph,
                   "size " + std::to_string(axis) + " is " + std::to_string(meta.sizes[axis]), where,
                   "a size is 0 or more");
    if (meta.strides[axis] < 0)
      return wrong(DiagnosticKind::malformed_graph,
                   "stride " + std::to_string(axis) + " is " + std::to_string(meta.strides[axis]), where,
                   "a stride is 0 or more: PyTorch has no reversed tensors");
  }
  if (meta.storage_offset < 0)
    return wrong(DiagnosticKind::malformed_graph,
                 "the storage offset is " + std::to_string(meta.storage_offset), where,
                 "an offset is 0 or more");
  // Row-major strides of the sizes (an extent 0 counts as 1) must fit too: later rooms compute them.
  std::optional<std::int64_t> elements = 1;
  for (const std::int64_t size : meta.sizes)
    if (elements) elements = product(*elements, size > 0 ? size : 1);
  if (elements) elements = product(*elements, dtype_bytes(meta.dtype));
  if (!elements || !storage_extent(meta))
    return wrong(DiagnosticKind::storage_bounds, "the tensor reaches further than 64 bits count", where,
                 "correct the sizes and strides");
  return std::nullopt;
}

class Validator {
 public:
  explicit Validator(const Graph& graph) : graph_(graph), defined_(graph.values.size(), false) {}

  Check run() {
    if (Check problem = check_values()) return problem;
    if (Check problem = check_inputs()) return problem;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (Check problem = check_node(NodeId(i))) return problem;
    for (std::size_t i = 0; i < defined_.size(); ++i)
      if (!defined_[i])
        return wrong(DiagnosticKind::malformed_graph, "neither an input nor a node defines this value",
                     value_place(ValueId(i)), "every value is an input or an output of a node");
    return check_outputs();
  }

 private:
  [[nodiscard]] std::string place(const std::string& what) const {
    return "graph " + graph_.name + ", " + what;
  }
  [[nodiscard]] std::string value_place(ValueId id) const { return place("value " + graph_.values[id].name); }

  Check check_values() {
    std::unordered_map<std::string_view, ValueId> names;
    for (std::size_t i = 0; i < graph_.values.size(); ++i) {
      const Value& value = graph_.values[ValueId(i)];
      if (value.name.empty())
        return wrong(DiagnosticKind::malformed_graph, "a value has no name",
                     place("value " + std::to_string(i)), "give every value a name of its own");
      if (!names.emplace(value.name, ValueId(i)).second)
        return wrong(DiagnosticKind::malformed_graph, "two values are named `" + value.name + "`",
                     value_place(ValueId(i)), "give every value a name of its own");
      if (value.tensor)
        if (Check problem = check_meta(*value.tensor, value_place(ValueId(i)))) return problem;
    }
    return std::nullopt;
  }

  Check define(ValueId id, NodeId producer, int output_index, const std::string& where) {
    if (!graph_.values.contains(id))
      return wrong(DiagnosticKind::malformed_graph, "an output is no value of the graph", where,
                   "every output is a value of the graph");
    const Value& value = graph_.values[id];
    if (defined_[id.index()])
      return wrong(DiagnosticKind::malformed_graph, "`" + value.name + "` is defined twice", where,
                   "define every value once");
    if (value.producer != producer || (producer.valid() && value.output_index != output_index))
      return wrong(DiagnosticKind::malformed_graph, "`" + value.name + "` names another producer", where,
                   "a value's producer is the node that defines it");
    defined_[id.index()] = true;
    return std::nullopt;
  }

  Check check_inputs() {
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const std::string where = place("input " + std::to_string(i));
      if (Check problem = define(graph_.inputs[i].value, NodeId(), 0, where)) return problem;
      if (!graph_.values[graph_.inputs[i].value].tensor)
        return wrong(DiagnosticKind::malformed_graph, "the input is no tensor", where,
                     "an input is a tensor");
      input_names_.insert(graph_.values[graph_.inputs[i].value].name);
    }
    return std::nullopt;
  }

  Check check_argument(const Argument& argument, const std::string& where) {
    if (const ValueId* id = argument.get<ValueId>()) {
      if (!graph_.values.contains(*id) || !defined_[id->index()])
        return wrong(DiagnosticKind::undefined_value,
                     graph_.values.contains(*id)
                         ? "`" + graph_.values[*id].name + "` is used before anything defines it"
                         : std::string("an argument is no value of the graph"),
                     where, "nodes stand in execution order and use only earlier values");
    } else if (const ArgumentList* list = argument.get<ArgumentList>()) {
      for (const Argument& element : *list)
        if (Check problem = check_argument(element, where)) return problem;
    }
    return std::nullopt;
  }

  Check check_node(NodeId id) {
    const Node& node = graph_.nodes[id];
    const std::string where = place("node " + (node.name.empty() ? std::to_string(id.value) : node.name));
    if (node.name.empty() || node.target.empty())
      return wrong(DiagnosticKind::malformed_graph,
                   node.name.empty() ? "the node has no name" : "the node has no target", where,
                   "give every node a name and the ATen overload that it calls");
    if (!node_names_.insert(node.name).second)
      return wrong(DiagnosticKind::malformed_graph, "two nodes are named `" + node.name + "`", where,
                   "give every node a name of its own");
    for (const Argument& argument : node.args)
      if (Check problem = check_argument(argument, where)) return problem;
    std::unordered_set<std::string_view> keywords;
    for (const auto& [keyword, argument] : node.kwargs) {
      if (!keywords.insert(keyword).second)
        return wrong(DiagnosticKind::malformed_graph, "the keyword `" + keyword + "` stands twice", where,
                     "give every keyword once");
      if (Check problem = check_argument(argument, where)) return problem;
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (Check problem = define(node.outputs[i], id, static_cast<int>(i), where)) return problem;
    return std::nullopt;
  }

  Check check_outputs() {
    std::unordered_set<std::string_view> mutated;
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const Output& output = graph_.outputs[i];
      const std::string where = place("output " + std::to_string(i));
      if (output.value.valid() && (!graph_.values.contains(output.value) || output.constant))
        return wrong(DiagnosticKind::malformed_graph,
                     output.constant ? "the output is a value and a constant at once"
                                     : "the output is no value of the graph",
                     where, "an output is a value, None or a plain Python value");
      if (output.kind != OutputKind::mutation) continue;
      if (!output.value.valid() || !graph_.values[output.value].tensor)
        return wrong(DiagnosticKind::malformed_graph, "a mutation has no tensor to write back", where,
                     "name the value that the input holds after the call");
      if (!input_names_.contains(output.target))
        return wrong(DiagnosticKind::undefined_value, "the mutated `" + output.target + "` is no input",
                     where, "a mutation's target is the name of an input's value");
      if (!mutated.insert(output.target).second)
        return wrong(DiagnosticKind::malformed_graph,
                     "the mutation of `" + output.target + "` is listed twice", where,
                     "list each mutated input once");
    }
    return std::nullopt;
  }

  const Graph& graph_;
  std::vector<bool> defined_;
  std::unordered_set<std::string_view> input_names_;
  std::unordered_set<std::string_view> node_names_;
};

}  // namespace

std::optional<std::int64_t> storage_extent(const TensorMeta& meta) {
  for (const std::int64_t size : meta.sizes)
    if (size == 0) return 0;
  std::optional<std::int64_t> extent = sum(meta.storage_offset, 1);
  for (std::size_t axis = 0; axis < meta.sizes.size() && extent; ++axis) {
    const std::optional<std::int64_t> reach = product(meta.sizes[axis] - 1, meta.strides[axis]);
    extent = reach ? sum(*extent, *reach) : std::nullopt;
  }
  if (extent && !product(*extent, dtype_bytes(meta.dtype))) return std::nullopt;
  return extent;
}

Status validate(const Graph& graph) {
  if (Check problem = Validator(graph).run()) return *problem;
  return Success{};
}

}  // namespace pallascope::trace
