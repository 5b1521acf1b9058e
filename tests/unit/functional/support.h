// Helpers of the tests of core/functional: graphs written as JSON nodes, and the text of what comes out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/functional/functionalize.h"
#include "core/trace/read.h"

namespace pallascope::functional::testing {

/// A tensor in JSON: sizes with row-major strides, or with the strides and the offset that are given.
inline std::string tensor(const std::vector<std::int64_t>& sizes, std::vector<std::int64_t> strides = {},
                          std::int64_t offset = 0, const std::string& dtype = "f32") {
  if (strides.empty()) strides = trace::contiguous_strides(sizes);
  const auto list = [](const std::vector<std::int64_t>& numbers) {
    std::string text;
    for (const std::int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
    return "[" + text + "]";
  };
  return R"({"dtype": ")" + dtype + R"(", "sizes": )" + list(sizes) + R"(, "strides": )" + list(strides) +
         R"(, "offset": )" + std::to_string(offset) + "}";
}

/// Builds a graph a node at a time. In arguments, `%x` stands for the value x.
class GraphText {
 public:
  GraphText& input(const std::string& name, const std::string& meta, const std::string& kind = "user_input") {
    inputs_ += (inputs_.empty() ? "" : ",\n") + (R"({"kind": ")" + kind) + R"(", "name": ")" + name +
               R"(", "target": ")" + name + R"(", "tensor": )" + meta + "}";
    return *this;
  }
  GraphText& node(const std::string& name, const std::string& target, const std::string& args,
                  const std::string& meta, const std::string& kwargs = "{}") {
    return add(name, target, args, kwargs, R"({"name": ")" + name + R"(", "tensor": )" + meta + "}", false);
  }
  GraphText& list_node(const std::string& name, const std::string& target, const std::string& args,
                       const std::vector<std::pair<std::string, std::string>>& outputs) {
    std::string text;
    for (const auto& [output, meta] : outputs)
      text += (text.empty() ? "" : ", ") + (R"({"name": ")" + output) + R"(", "tensor": )" + meta + "}";
    return add(name, target, args, "{}", text, true);
  }
  GraphText& output(const std::string& value) {
    return output_json(R"({"kind": "user_output", "value": ")" + value + "\"}");
  }
  GraphText& mutation(const std::string& value, const std::string& target) {
    return output_json(R"({"kind": "mutation", "value": ")" + value + R"(", "target": ")" + target + "\"}");
  }
  [[nodiscard]] trace::Graph graph() const {
    const std::string text = R"({"format": "pallascope.trace", "version": 1, "graphs": [{"name": "g",
      "kind": "inference", "inputs": [)" +
                             inputs_ + "], \"nodes\": [" + nodes_ + "], \"outputs\": [" + outputs_ + "]}]}";
    const Result<trace::Program> program = trace::read_json(text, "test");
    EXPECT_TRUE(program.ok()) << pallascope::to_string(program.error()) << "\n" << text;
    return program->graphs.at(0);
  }

 private:
  GraphText& add(const std::string& name, const std::string& target, const std::string& args,
                 const std::string& kwargs, const std::string& outputs, bool list) {
    nodes_ += (nodes_.empty() ? "" : ",\n") + (R"({"name": ")" + name) + R"(", "target": ")" + target +
              R"(", "args": [)" + with_values(args) + R"(], "kwargs": )" + with_values(kwargs) +
              R"(, "outputs": [)" + outputs + R"(], "list_output": )" + (list ? "true" : "false") +
              R"(, "module": "m.)" + name + "\"}";
    return *this;
  }
  GraphText& output_json(const std::string& text) {
    outputs_ += (outputs_.empty() ? "" : ", ") + text;
    return *this;
  }
  static std::string with_values(const std::string& args) {
    std::string text;
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (args[i] != '%') {
        text += args[i];
        continue;
      }
      const std::size_t end = std::min(args.find_first_of(",] }", i), args.size());
      text += R"({"value": ")" + args.substr(i + 1, end - i - 1) + "\"}";
      i = end - 1;
    }
    return text;
  }

  std::string inputs_, nodes_, outputs_;
};

inline Functional functional(const trace::Graph& graph) {
  Result<Functional> result = functionalize(graph);
  EXPECT_TRUE(result.ok()) << pallascope::to_string(result.error());
  // What every result promises.
  EXPECT_EQ(result->origin.size(), result->graph.nodes.size());
  EXPECT_EQ(result->value_origin.size(), result->graph.values.size());
  EXPECT_EQ(result->output_alias.size(), result->graph.outputs.size());
  EXPECT_TRUE(trace::validate(result->graph).ok());
  for (const trace::NodeId origin : result->origin) EXPECT_TRUE(graph.nodes.contains(origin));
  for (const trace::Node& node : result->graph.nodes) EXPECT_FALSE(is_mutating(node)) << node.target;
  return std::move(result).value();
}

/// The nodes and outputs, without the inputs.
inline std::string body(const trace::Graph& graph) {
  std::string text = trace::to_string(graph);
  for (std::size_t i = 0; i <= graph.inputs.size(); ++i) text.erase(0, text.find('\n') + 1);
  std::string plain;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    plain += text.substr(start + 2, end - start - 1);
    start = end + 1;
  }
  return plain;
}

inline void expect_refused(const GraphText& text, const std::vector<std::string>& words) {
  const Result<Functional> result = functionalize(text.graph());
  ASSERT_FALSE(result.ok());
  const std::string message = pallascope::to_string(result.error());
  EXPECT_EQ(result.error().kind, DiagnosticKind::unsupported) << message;
  EXPECT_FALSE(result.error().where.empty()) << message;
  EXPECT_FALSE(result.error().remedy.empty()) << message;
  for (const std::string& word : words)
    EXPECT_NE(message.find(word), std::string::npos) << word << " not in " << message;
}

}  // namespace pallascope::functional::testing
