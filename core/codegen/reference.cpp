#include "core/codegen/reference.h"

#include <cctype>
#include <cmath>
#include <unordered_set>

#include <fmt/compile.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pallascope::codegen {

void Text::block(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    line(std::string(text.substr(0, end)));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
}

std::shared_ptr<const Piece> Text::take() {
  auto piece = std::make_shared<Piece>();
  for (const std::string& line : lines_) {
    piece->bytes += line.size() + 1;
    piece->hash = (piece->hash ^ std::hash<std::string_view>{}(line)) * 1099511628211ULL;
  }
  piece->lines = std::exchange(lines_, {});
  piece->origins = std::exchange(origins_, {});
  return piece;
}

std::vector<std::string> value_names(const trace::Graph& graph) {
  static const std::unordered_set<std::string> taken = {
      "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif",
      "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or",
      "pass", "raise", "return", "try", "while", "with", "yield", "jax", "jnp", "lax", "pl", "torch", "args", "mode", "call",
      "reference", "INPUTS", "OUTPUTS", "INTERPRET", "TORCH_TO_JAX", "taken", "checks", "results", "float", "int", "bool"};
  std::unordered_set<std::string> used;
  std::vector<std::string> names;
  used.reserve(graph.values.size());
  names.reserve(graph.values.size());
  for (const trace::Value& value : graph.values) {
    std::string name;
    for (char c : value.name) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 || name[0] == '_') name = "v" + name;
    while (taken.contains(name) || used.contains(name)) name += "_";
    used.insert(name);
    names.push_back(name);
  }
  return names;
}

std::string operator_text(const std::string& target) { return "torch.ops." + target; }

std::string argument_text(const trace::Argument& argument, const std::function<std::string(trace::ValueId)>& value) {
  const auto visit = [&](const auto& content) -> std::string {
    using T = std::decay_t<decltype(content)>;
    if constexpr (std::is_same_v<T, trace::NoneArgument>) return "None";
    if constexpr (std::is_same_v<T, trace::ValueId>) return value(content);
    if constexpr (std::is_same_v<T, std::int64_t>) return fmt::format(FMT_COMPILE("{}"), content);
    if constexpr (std::is_same_v<T, bool>) return content ? "True" : "False";
    if constexpr (std::is_same_v<T, double>) {
      if (std::isnan(content)) return "float(\"nan\")";
      if (std::isinf(content)) return content > 0 ? "float(\"inf\")" : "float(\"-inf\")";
      const std::string text = fmt::format(FMT_COMPILE("{}"), content);
      return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
    }
    if constexpr (std::is_same_v<T, std::string>) {
      std::string text = "\"";
      for (char c : content) {
        if (c == '"' || c == '\\') text += '\\';
        text += c == '\n' ? ' ' : c;
      }
      return text + "\"";
    }
    if constexpr (std::is_same_v<T, DType>) return fmt::format(FMT_COMPILE("torch.{}"), torch_dtype_name(content));
    if constexpr (std::is_same_v<T, trace::DeviceArgument>) return fmt::format(FMT_COMPILE("torch.device(\"{}\")"), content.device);
    if constexpr (std::is_same_v<T, trace::EnumArgument>) return fmt::format(FMT_COMPILE("torch.{}"), content.name);
    if constexpr (std::is_same_v<T, trace::ArgumentList>) {
      std::vector<std::string> items;
      for (const trace::Argument& item : content) items.push_back(argument_text(item, value));
      return fmt::format(FMT_COMPILE("[{}]"), fmt::join(items, ", "));
    }
  };
  return std::visit(visit, argument.content);
}

std::string arguments_text(const trace::Node& node, const std::function<std::string(trace::ValueId)>& value) {
  std::vector<std::string> items;
  for (const trace::Argument& a : node.args) items.push_back(argument_text(a, value));
  for (const auto& [name, a] : node.kwargs) items.push_back(name + "=" + argument_text(a, value));
  return fmt::format(FMT_COMPILE("{}"), fmt::join(items, ", "));
}

Text reference_text(const trace::Graph& graph) {
  const std::vector<std::string> names = value_names(graph);
  const auto value = [&](trace::ValueId id) { return names.at(id.index()); };
  Text text;
  text.line("def reference(args):");
  text.line("    \"\"\"The traced graph in plain PyTorch; in-place operators change `args` as eager does.\"\"\"");
  std::vector<std::string> inputs;
  for (const trace::Input& input : graph.inputs) inputs.push_back(value(input.value));
  if (!inputs.empty()) text.line(fmt::format(FMT_COMPILE("    ({},) = args"), fmt::join(inputs, ", ")));
  for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
    const trace::Node& node = graph.nodes[trace::NodeId(k)];
    std::vector<std::string> outputs;
    for (trace::ValueId id : node.outputs) outputs.push_back(value(id));
    const std::string call = fmt::format(FMT_COMPILE("{}({})"), operator_text(node.target), arguments_text(node, value));
    LineOrigin origin;
    origin.node = trace::NodeId(k);
    if (outputs.empty()) {
      text.line("    " + call, origin);
    } else if (outputs.size() == 1 && !node.list_output) {
      text.line(fmt::format(FMT_COMPILE("    {} = {}"), outputs[0], call), origin);
    } else {
      text.line(fmt::format(FMT_COMPILE("    ({},) = {}"), fmt::join(outputs, ", "), call), origin);
    }
  }
  std::vector<std::string> results;
  for (const trace::Output& output : graph.outputs)
    if (output.kind == trace::OutputKind::user_output) results.push_back(output.value.valid() ? value(output.value) : "None");
  // A graph whose signature lists a mutation returns the new value beside the outputs: write it where eager does.
  for (const trace::Output& output : graph.outputs)
    if (output.kind == trace::OutputKind::mutation && output.value.valid())
      if (const auto target = graph.find_value(output.target); target && *target != output.value)
        text.line(fmt::format(FMT_COMPILE("    {}.copy_({})"), value(*target), value(output.value)));
  text.line(fmt::format(FMT_COMPILE("    return [{}]"), fmt::join(results, ", ")));
  return text;
}

}  // namespace pallascope::codegen
