// Small traced graphs for the tests of the rooms after `trace`, written tersely and read by trace::read_json.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/trace/graph.h"
#include "core/trace/read.h"

namespace pallascope::testing {

/// The JSON of `f32[8,16]`, `f32[4,4]@[1,4]` (strides) or `f32[4,4]@[8,1]+3` (strides and storage offset); row-major
/// strides if none are given. `-` is an output that is None.
inline std::string tensor_json(const std::string& spec) {
  if (spec == "-") return "null";
  const std::size_t open = spec.find('['), close = spec.find(']');
  EXPECT_TRUE(open != std::string::npos && close != std::string::npos) << spec;
  std::vector<std::int64_t> sizes;
  for (std::size_t at = open + 1; at < close;) {
    sizes.push_back(std::stoll(spec.substr(at)));
    const std::size_t comma = spec.find(',', at);
    at = comma == std::string::npos || comma > close ? close : comma + 1;
  }
  std::string strides = "[";
  for (std::int64_t s : trace::contiguous_strides(sizes))
    strides += (strides.size() > 1 ? "," : "") + std::to_string(s);
  strides += "]";
  std::string rest = spec.substr(close + 1), offset = "0";
  if (const std::size_t plus = rest.find('+'); plus != std::string::npos) {
    offset = rest.substr(plus + 1);
    rest.resize(plus);
  }
  if (!rest.empty()) strides = rest.substr(1);
  return R"({"dtype": ")" + spec.substr(0, open) + R"(", "sizes": )" + spec.substr(open, close + 1 - open) +
         R"(, "strides": )" + strides + R"(, "offset": )" + offset + "}";
}

/// Builds a program of one graph a node at a time. In arguments, `%x` stands for the value x.
///
///   GraphText().in("x", "f32[8,16]").op("sin", "aten.sin.default", "%x", "f32[8,16]").out("sin")
class GraphText {
 public:
  GraphText& in(const std::string& name, const std::string& spec, const std::string& kind = "user_input") {
    inputs_ += (inputs_.empty() ? "" : ",\n") + (R"({"kind": ")" + kind) + R"(", "name": ")" + name +
               R"(", "target": ")" + name + R"(", "tensor": )" + tensor_json(spec) + "}";
    return *this;
  }
  GraphText& op(const std::string& name, const std::string& target, const std::string& args,
                const std::string& spec, const std::string& kwargs = "") {
    return add(name, target, args, kwargs,
               R"({"name": ")" + name + R"(", "tensor": )" + tensor_json(spec) + "}", false);
  }
  GraphText& list_op(const std::string& name, const std::string& target, const std::string& args,
                     const std::vector<std::pair<std::string, std::string>>& outputs) {
    std::string text;
    for (const auto& [output, spec] : outputs)
      text += (text.empty() ? "" : ", ") + (R"({"name": ")" + output) + R"(", "tensor": )" +
              tensor_json(spec) + "}";
    return add(name, target, args, "", text, true);
  }
  GraphText& out(const std::string& value) {
    outputs_ += (outputs_.empty() ? "" : ", ") + (R"({"kind": "user_output", "value": ")" + value) + "\"}";
    return *this;
  }

  [[nodiscard]] std::string json() const {
    return R"({"format": "pallascope.trace", "version": 1, "name": "test", "graphs": [{"name": "g", "kind": "inference",
      "inputs": [)" +
           inputs_ + "], \"nodes\": [" + nodes_ + "], \"outputs\": [" + outputs_ + "]}]}";
  }
  [[nodiscard]] trace::Program program() const {
    const Result<trace::Program> program = trace::read_json(json(), "test");
    EXPECT_TRUE(program.ok()) << pallascope::to_string(program.error()) << "\n" << json();
    return program.value();
  }
  [[nodiscard]] trace::Graph graph() const { return program().graphs.at(0); }

 private:
  GraphText& add(const std::string& name, const std::string& target, const std::string& args,
                 const std::string& kwargs, const std::string& outputs, bool list) {
    const std::string line = std::to_string(++line_);
    nodes_ += (nodes_.empty() ? "" : ",\n") + (R"({"name": ")" + name) + R"(", "target": ")" + target +
              R"(", "args": [)" + with_values(args) + R"(], "kwargs": {)" + with_values(kwargs) +
              R"(}, "outputs": [)" + outputs + R"(], "list_output": )" + (list ? "true" : "false") +
              R"(, "stack": [{"file": "model.py", "line": )" + line + R"(, "function": "f", "code": "line )" +
              line + "\"}]}";
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
  int line_ = 0;
};

/// x.softmax(-1) of f32[rows,columns].
inline GraphText softmax_rows(std::int64_t rows, std::int64_t columns) {
  const std::string wide = "f32[" + std::to_string(rows) + "," + std::to_string(columns) + "]";
  return GraphText().in("x", wide).op("softmax", "aten.softmax.int", "%x, -1", wide).out("softmax");
}

}  // namespace pallascope::testing
