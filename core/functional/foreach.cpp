// Operators on lists of tensors (`_foreach_add`): each element is an operator of its own, as eager has it on a CPU.
#include <algorithm>
#include <array>

#include "core/functional/functionalizer.h"
#include "core/functional/operators.h"

namespace pallascope::functional {

using trace::Argument;
using trace::ArgumentList;
using trace::NodeId;
using trace::ValueId;

namespace {

/// What one element of a list operator is.
struct Element {
  std::string target;
  std::string factor = {};  ///< not empty: the last positional argument is the keyword of this name
  bool norm = false;        ///< a norm: its keyword dtype may stand as the third argument
};

std::optional<Element> element_of(std::string_view target) {
  constexpr std::string_view kPrefix = "aten._foreach_";
  if (!target.starts_with(kPrefix)) return std::nullopt;
  const std::string_view whole = target.substr(kPrefix.size());
  const std::size_t dot = whole.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string name(whole.substr(0, dot));
  const std::string_view overload = whole.substr(dot + 1);
  const auto among = [&name](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  static constexpr std::array kUnary = {
      "abs",   "acos",  "asin", "atan",  "ceil",       "cos",   "cosh",  "erf",     "erfc", "exp", "expm1",
      "floor", "frac",  "lgamma", "log", "log10",      "log1p", "log2",  "max",     "neg",  "reciprocal", "round",
      "rsqrt", "sigmoid", "sign", "sin", "sinh",       "sqrt",  "tan",   "tanh",    "trunc"};
  static constexpr std::array kBinary = {"add", "sub", "mul", "div"};
  static constexpr std::array kBounds = {"clamp_min", "clamp_max"};
  static constexpr std::array kExtremes = {"maximum", "minimum"};
  static constexpr std::array kProducts = {"addcmul", "addcdiv"};
  const bool list = overload == "List", scalar = overload == "Scalar" || overload == "ScalarList";
  if (overload == "default") {
    if (among(kUnary)) return Element{"aten." + name + ".default"};
    if (name == "zero") return Element{"aten.zeros_like.default"};
    if (name == "copy") return Element{"aten.copy.default"};
    return std::nullopt;
  }
  if (among(kBinary)) return Element{"aten." + name + (list || overload == "Tensor" ? ".Tensor" : ".Scalar")};
  if (among(kBounds) && (list || scalar)) return Element{"aten." + name + (list ? ".Tensor" : ".default")};
  if (among(kExtremes) && list) return Element{"aten." + name + ".default"};
  if (among(kExtremes) && scalar)
    return Element{name == "maximum" ? "aten.clamp_min.default" : "aten.clamp_max.default"};
  if (among(kProducts) && scalar) return Element{"aten." + name + ".default", "value"};
  if (name == "lerp") return Element{list ? "aten.lerp.Tensor" : "aten.lerp.Scalar"};
  if (name == "pow" && list) return Element{"aten.pow.Tensor_Tensor"};
  if (name == "pow") return Element{overload == "ScalarAndTensor" ? "aten.pow.Scalar" : "aten.pow.Tensor_Scalar"};
  if (name == "norm" && overload == "Scalar") return Element{"aten.linalg_vector_norm.default", {}, true};
  return std::nullopt;
}

}  // namespace

bool is_list_operator(const trace::Node& node) { return node.list_output && element_of(node.target).has_value(); }

std::vector<ValueId> Functionalizer::emit_list(NodeId origin, const std::string& name, std::string target,
                                               std::vector<Argument> args, Keywords kwargs,
                                               std::vector<NewOutput> outputs) {
  std::optional<Element> element = element_of(target);
  const std::size_t count = outputs.size();
  // Keywords that the operator of one element has too; all others are left as they are.
  static constexpr std::array kKeywords = {"alpha", "value", "dtype"};
  for (const auto& [keyword, argument] : kwargs)
    if (std::find(kKeywords.begin(), kKeywords.end(), keyword) == kKeywords.end()) element.reset();
  for (const Argument& argument : args)
    if (const auto* list = argument.get<ArgumentList>(); list != nullptr && list->size() != count) element.reset();
  if (!element)
    return emit(origin, name, std::move(target), std::move(args), std::move(kwargs), std::move(outputs), true);
  if (!element->factor.empty() && args.size() > 3) {
    kwargs.emplace_back(element->factor, args[3]);
    args.resize(3);
  }
  if (element->norm && args.size() > 2) {
    kwargs.emplace_back("dtype", args[2]);
    args.resize(2);
  }
  if (element->target == "aten.copy.default") args.resize(std::min<std::size_t>(args.size(), 2));
  std::vector<ValueId> made;
  for (std::size_t i = 0; i < count; ++i) {
    const auto of_element = [i](const Argument& argument) {
      const auto* list = argument.get<ArgumentList>();
      return list != nullptr ? (*list)[i] : argument;
    };
    std::vector<Argument> own;
    Keywords named;
    std::transform(args.begin(), args.end(), std::back_inserter(own), of_element);
    for (const auto& [keyword, argument] : kwargs) named.emplace_back(keyword, of_element(argument));
    // The name of an original output stays its own; with one output `emit` takes the node's.
    const std::string own_name = outputs[i].name;
    made.push_back(
        emit(origin, own_name, element->target, std::move(own), std::move(named), {std::move(outputs[i])}, false)[0]);
  }
  return made;
}

}  // namespace pallascope::functional
