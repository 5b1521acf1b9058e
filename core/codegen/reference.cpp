#include "core/codegen/reference.h"

#include <bit>
#include <cmath>
#include <unordered_set>

#include <fmt/compile.h>
#include <fmt/format.h>

namespace pallascope::codegen {

void Text::block(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    line(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
}

void Text::append(const Text& other) {
  const auto before = static_cast<std::uint32_t>(buffer_.size());
  put(buffer_, other.text());
  for (const std::uint32_t end : other.ends_) ends_.push_back(before + end);
  origins_.insert(origins_.end(), other.origins_.begin(), other.origins_.end());
}

std::shared_ptr<const Piece> Text::take() {
  auto piece = std::make_shared<Piece>();
  piece->text = text();
  piece->hash = std::hash<std::string_view>{}(piece->text);
  // Copied, so that a piece is no larger than it must be, and what was grown serves the next one.
  piece->ends = ends_;
  piece->origins = origins_;
  buffer_.clear();
  ends_.clear();
  origins_.clear();
  return piece;
}

namespace {

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

/// Which names of a growing list are there: open addressing over positions in the list.
class NameSet {
 public:
  explicit NameSet(std::size_t most) : slots_(std::bit_ceil(2 * most + 2), 0) {}

  /// Takes the last name in; false if it equals an earlier one.
  bool insert(const std::vector<std::string>& names) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = std::hash<std::string_view>{}(names.back()) & mask;
    for (; slots_[slot] != 0; slot = (slot + 1) & mask)
      if (names[slots_[slot] - 1] == names.back()) return false;
    slots_[slot] = static_cast<std::uint32_t>(names.size());
    return true;
  }

 private:
  std::vector<std::uint32_t> slots_;  ///< position + 1, 0 is free
};

}  // namespace

std::vector<std::string> value_names(const trace::Graph& graph) {
  static const std::unordered_set<std::string_view> taken = {
      "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif",
      "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or",
      "pass", "raise", "return", "try", "while", "with", "yield", "jax", "jnp", "lax", "pl", "torch", "args", "mode", "call",
      "reference", "INPUTS", "OUTPUTS", "INTERPRET", "TORCH_TO_JAX", "taken", "checks", "results", "float", "int", "bool"};
  std::vector<std::string> names;
  names.reserve(graph.values.size());
  NameSet used(graph.values.size());
  for (const trace::Value& value : graph.values) {
    std::string& name = names.emplace_back(value.name);
    for (char& c : name)
      if (!is_alphanumeric(c)) c = '_';
    if (name.empty() || (name[0] >= '0' && name[0] <= '9') || name[0] == '_') name = "v" + name;
    while (taken.contains(name) || !used.insert(names)) name += "_";
  }
  return names;
}

namespace {

/// Puts what `put_one` puts for each of the things, with commas between.
template <typename Things, typename PutOne>
void put_joined(Out& out, const Things& things, const PutOne& put_one) {
  bool first = true;
  for (const auto& thing : things) {
    if (!std::exchange(first, false)) put(out, ", ");
    put_one(thing);
  }
}

}  // namespace

void put_argument(Out& out, const trace::Argument& argument, const PutValue& value) {
  const auto appender = fmt::appender(out);
  const auto visit = [&](const auto& content) {
    using T = std::decay_t<decltype(content)>;
    if constexpr (std::is_same_v<T, trace::NoneArgument>) put(out, "None");
    if constexpr (std::is_same_v<T, trace::ValueId>) value(out, content);
    if constexpr (std::is_same_v<T, std::int64_t>) fmt::format_to(appender, FMT_COMPILE("{}"), content);
    if constexpr (std::is_same_v<T, bool>) put(out, content ? "True" : "False");
    if constexpr (std::is_same_v<T, double>) {
      if (std::isnan(content)) return put(out, "float(\"nan\")");
      if (std::isinf(content)) return put(out, content > 0 ? "float(\"inf\")" : "float(\"-inf\")");
      const std::string text = fmt::format(FMT_COMPILE("{}"), content);
      put(out, text);
      if (text.find_first_of(".e") == std::string::npos) put(out, ".0");
    }
    if constexpr (std::is_same_v<T, std::string>) {
      out.push_back('"');
      for (char c : content) {
        if (c == '"' || c == '\\') out.push_back('\\');
        out.push_back(c == '\n' ? ' ' : c);
      }
      out.push_back('"');
    }
    if constexpr (std::is_same_v<T, DType>) fmt::format_to(appender, FMT_COMPILE("torch.{}"), torch_dtype_name(content));
    if constexpr (std::is_same_v<T, trace::DeviceArgument>)
      fmt::format_to(appender, FMT_COMPILE("torch.device(\"{}\")"), content.device);
    if constexpr (std::is_same_v<T, trace::EnumArgument>) fmt::format_to(appender, FMT_COMPILE("torch.{}"), content.name);
    if constexpr (std::is_same_v<T, trace::ArgumentList>) {
      out.push_back('[');
      put_joined(out, content, [&](const trace::Argument& item) { put_argument(out, item, value); });
      out.push_back(']');
    }
  };
  std::visit(visit, argument.content);
}

void put_call(Out& out, const trace::Node& node, const PutValue& value) {
  fmt::format_to(fmt::appender(out), FMT_COMPILE("torch.ops.{}("), node.target);
  put_joined(out, node.args, [&](const trace::Argument& a) { put_argument(out, a, value); });
  bool first = node.args.empty();
  for (const auto& [name, a] : node.kwargs) {
    fmt::format_to(fmt::appender(out), FMT_COMPILE("{}{}="), std::exchange(first, false) ? "" : ", ", name);
    put_argument(out, a, value);
  }
  out.push_back(')');
}

std::string argument_text(const trace::Argument& argument) {
  Out out;
  put_argument(out, argument, [](Out&, trace::ValueId) {});
  return fmt::to_string(out);
}

Text reference_text(const trace::Graph& graph) {
  const std::vector<std::string> names = value_names(graph);
  const PutValue value = [&](Out& out, trace::ValueId id) { put(out, names.at(id.index())); };
  Text text;
  Out& out = text.open();
  text.line("def reference(args):");
  text.line("    \"\"\"The traced graph in plain PyTorch; in-place operators change `args` as eager does.\"\"\"");
  if (!graph.inputs.empty()) {
    put(out, "    (");
    put_joined(out, graph.inputs, [&](const trace::Input& input) { value(out, input.value); });
    put(out, ",) = args");
    text.close();
  }
  for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
    const trace::Node& node = graph.nodes[trace::NodeId(k)];
    const bool several = !node.outputs.empty() && (node.outputs.size() > 1 || node.list_output);
    put(out, several ? "    (" : "    ");
    put_joined(out, node.outputs, [&](trace::ValueId id) { value(out, id); });
    if (!node.outputs.empty()) put(out, several ? ",) = " : " = ");
    put_call(out, node, value);
    LineOrigin origin;
    origin.node = trace::NodeId(k);
    text.close(origin);
  }
  // A graph whose signature lists a mutation returns the new value beside the outputs: write it where eager does.
  for (const trace::Output& output : graph.outputs)
    if (output.kind == trace::OutputKind::mutation && output.value.valid())
      if (const auto target = graph.find_value(output.target); target && *target != output.value)
        text.write({}, FMT_COMPILE("    {}.copy_({})"), names.at(target->index()), names.at(output.value.index()));
  put(out, "    return [");
  bool first = true;
  for (const trace::Output& output : graph.outputs) {
    if (output.kind != trace::OutputKind::user_output) continue;
    if (!std::exchange(first, false)) put(out, ", ");
    if (output.value.valid()) {
      value(out, output.value);
    } else {
      put(out, "None");
    }
  }
  put(out, "]");
  text.close();
  return text;
}

}  // namespace pallascope::codegen
