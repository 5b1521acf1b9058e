// Room: trace. The arguments of a node in torch's export schema: tensors by name, numbers, lists, enumerations.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/trace/pt2_tensor.h"

namespace pallascope::trace {

/// Reads arguments; who derives from it keeps what names mean.
class Pt2ArgumentReader : protected Pt2TensorReader {
 protected:
  ValueId use(const JsonCursor& cursor, const std::string& name) {
    if (const auto found = names_.find(name); found != names_.end()) return found->second;
    if (symbols_.contains(name)) {
      symbol_used(cursor, name);
    } else {
      fail(
          cursor, DiagnosticKind::undefined_value,
          (node_.empty() ? "the output `" + name + "`" : "`" + name + "`, which node `" + node_ + "` uses,") +
              " is defined by no input and no earlier node",
          "nodes stand in execution order and use only inputs and outputs of earlier nodes");
    }
    return {};
  }

  void symbol_used(const JsonCursor& cursor, const std::string& name) {
    const auto symbol = symbols_.find(name);
    fail(cursor, DiagnosticKind::symbolic_size,
         (node_.empty() ? "an output is" : "node `" + node_ + "` uses") + " the symbolic number `" + name +
             "`" + (symbol != symbols_.end() && symbol->second != name ? " (" + symbol->second + ")" : ""),
         std::string(kPt2StaticRemedy));
  }

  template <class Convert>
  Argument list_of(const JsonCursor& cursor, Convert convert) {
    ArgumentList list;
    for_each(cursor, [&](const JsonCursor& element) { list.push_back(convert(element)); });
    return {std::move(list)};
  }

  ValueId tensor(const JsonCursor& cursor) {
    const std::string name = string_at(cursor, "name");
    return problem_ ? ValueId() : use(cursor, name);
  }

  Argument optional_tensor(const JsonCursor& cursor) {
    return cursor.has("as_tensor") ? Argument{tensor(*cursor.at("as_tensor"))} : Argument{};
  }

  /// A number that may be a symbol: {"as_int": 3} or {"as_name": "s"}.
  Argument symbolic(const JsonCursor& cursor) {
    const std::size_t member = union_member(cursor);
    if (problem_) return {};
    const JsonCursor content = cursor.element(member);
    const std::string& kind = cursor.key_of(member);
    if (kind == "as_int") return {take(content.as_int())};
    if (kind == "as_bool") return {take(content.as_bool())};
    if (kind == "as_float") return {read_float(content)};
    symbol_used(cursor, take(content.as_string()));
    return {};
  }

  /// A float: a number, or one of the words that JSON lacks a number for.
  double read_float(const JsonCursor& cursor) {
    if (const double* real = cursor.value().get<double>()) return *real;
    if (const auto* number = cursor.value().get<std::int64_t>()) return static_cast<double>(*number);
    if (const std::string* word = cursor.value().get<std::string>()) {
      if (*word == "Infinity") return std::numeric_limits<double>::infinity();
      if (*word == "-Infinity") return -std::numeric_limits<double>::infinity();
      if (*word == "NaN") return std::numeric_limits<double>::quiet_NaN();
    }
    fail(cursor, DiagnosticKind::malformed_graph, "a float is expected here", std::string(kPt2SaveAgain));
    return 0;
  }

  template <std::size_t N>
  Argument enumerated(const JsonCursor& cursor, const char* kind,
                      const std::array<std::string_view, N>& names) {
    const std::int64_t code = take(cursor.as_int());
    if (!problem_ && code > 0 && code < static_cast<std::int64_t>(N))
      return {EnumArgument{kind, std::string(names[static_cast<std::size_t>(code)])}};
    fail(cursor, DiagnosticKind::malformed_graph, std::to_string(code) + " is no " + kind,
         std::string(kPt2SaveAgain));
    return {};
  }

  Argument read_argument(const JsonCursor& cursor) {
    const std::size_t member = union_member(cursor);
    if (problem_) return {};
    const JsonCursor content = cursor.element(member);
    const std::string& kind = cursor.key_of(member);
    const auto integer = [&](const JsonCursor& c) { return Argument{take(c.as_int())}; };
    const auto real = [&](const JsonCursor& c) { return Argument{read_float(c)}; };
    if (kind == "as_none") return {NoneArgument{}};
    if (kind == "as_tensor") return {tensor(content)};
    if (kind == "as_int") return integer(content);
    if (kind == "as_float") return real(content);
    if (kind == "as_bool") return {take(content.as_bool())};
    if (kind == "as_string") return {take(content.as_string())};
    if (kind == "as_ints") return list_of(content, integer);
    if (kind == "as_floats") return list_of(content, real);
    if (kind == "as_bools")
      return list_of(content, [&](const JsonCursor& c) { return Argument{take(c.as_bool())}; });
    if (kind == "as_strings")
      return list_of(content, [&](const JsonCursor& c) { return Argument{take(c.as_string())}; });
    if (kind == "as_tensors")
      return list_of(content, [&](const JsonCursor& c) { return Argument{tensor(c)}; });
    if (kind == "as_optional_tensors")
      return list_of(content, [&](const JsonCursor& c) { return optional_tensor(c); });
    if (kind == "as_optional_tensor") return optional_tensor(content);
    if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") return symbolic(content);
    if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools")
      return list_of(content, [&](const JsonCursor& c) { return symbolic(c); });
    if (kind == "as_scalar_type") return {read_dtype(content, take(content.as_int()), node_)};
    if (kind == "as_device") return {DeviceArgument{read_device(content)}};
    if (kind == "as_memory_format") return enumerated(content, "memory_format", kPt2MemoryFormats);
    if (kind == "as_layout") return enumerated(content, "layout", kPt2Layouts);
    if (kind == "as_int_lists")
      return list_of(content, [&](const JsonCursor& c) { return list_of(c, integer); });
    if (kind == "as_float_lists")
      return list_of(content, [&](const JsonCursor& c) { return list_of(c, real); });
    if (kind == "as_nested_tensors")
      return list_of(content, [&](const JsonCursor& c) {
        return list_of(c, [&](const JsonCursor& element) { return Argument{tensor(element)}; });
      });
    fail(cursor, DiagnosticKind::unsupported,
         (node_.empty() ? std::string("the graph") : "node `" + node_ + "` (" + target_ + ")") + " takes " +
             (kind == "as_graph"        ? "a subgraph"
              : kind == "as_custom_obj" ? "a script object"
              : kind == "as_complex"    ? "a complex number"
              : kind == "as_operator"   ? "an operator as an argument"
                                        : "an argument of kind `" + kind + "`"),
         "write this part of the model without it, or leave it out of the exported module");
    return {};
  }

  std::unordered_map<std::string, ValueId> names_;        ///< the file's name -> value
  std::unordered_map<std::string, std::string> symbols_;  ///< name -> expression
  std::string node_;                                      ///< the node being read, for messages
  std::string target_;
};

}  // namespace pallascope::trace
