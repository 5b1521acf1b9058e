// Compilations for the tests of the model: small graphs with modules, the bundled GPT-2 block.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "core/session/compilation.h"
#include "core/trace/read.h"
#include "tests/unit/support/graph_text.h"

namespace pallascope::model {

using CompilationPointer = std::shared_ptr<const session::Compilation>;

/// `modules`: node name -> module path.
inline CompilationPointer compile(const testing::GraphText& text, const std::map<std::string, std::string>& modules = {},
                                  const std::map<std::string, std::string>& sources = {}) {
  trace::Program program = text.program();
  for (std::size_t k = 0; k < program.graphs[0].nodes.size(); ++k) {
    trace::Node& node = program.graphs[0].nodes.edit(trace::NodeId(k));
    if (const auto at = modules.find(node.name); at != modules.end()) node.module_path = at->second;
  }
  program.sources = sources;
  const auto made = session::Compilation::compile(std::make_shared<const trace::Program>(std::move(program)), 0);
  EXPECT_TRUE(made.ok()) << to_string(made.error());
  return made.value();
}

inline CompilationPointer gpt2() {
  static const CompilationPointer made = [] {
    const auto program = trace::open(std::string(PALLASCOPE_ASSETS_DIR) + "/examples/gpt2_block.pt2");
    EXPECT_TRUE(program.ok()) << to_string(program.error());
    const auto compiled = session::Compilation::compile(std::make_shared<const trace::Program>(program.value()), 0);
    EXPECT_TRUE(compiled.ok()) << to_string(compiled.error());
    return compiled.value();
  }();
  return made;
}

/// Rows over their sum, a product, a relu, and the rows turned: a fusion refused at the product, a view.
inline testing::GraphText rows() {
  return testing::GraphText()
      .in("x", "f32[4,8]")
      .in("w", "f32[8,4]", "parameter")
      .op("sin", "aten.sin.default", "%x", "f32[4,8]")
      .op("sum_1", "aten.sum.dim_IntList", "%sin, [1], true", "f32[4,1]")
      .op("div", "aten.div.Tensor", "%sin, %sum_1", "f32[4,8]")
      .op("mm", "aten.mm.default", "%div, %w", "f32[4,4]")
      .op("relu", "aten.relu.default", "%mm", "f32[4,4]")
      .op("permute", "aten.permute.default", "%div, [1, 0]", "f32[8,4]@[1,8]")
      .op("cos", "aten.cos.default", "%permute", "f32[8,4]@[1,8]")
      .out("relu")
      .out("cos");
}

inline trace::NodeId node(const session::Compilation& compilation, const std::string& name) {
  const auto id = compilation.graph().find_node(name);
  EXPECT_TRUE(id.has_value()) << name;
  return id.value_or(trace::NodeId());
}

/// Milliseconds that `work` takes; printed, never asserted.
inline void print_time(const std::string& what, const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
  std::printf("  %-52s %8.2f ms\n", what.c_str(), ms.count());
}

}  // namespace pallascope::model
