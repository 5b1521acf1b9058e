// Graphs to measure on, built in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/trace/graph.h"

namespace pallascope::bench {

/// Builds a program of one graph of f32 tensors.
class GraphBuilder {
 public:
  GraphBuilder() { graph_.name = "bench"; }

  trace::ValueId input(const std::string& name, std::vector<std::int64_t> sizes) {
    const trace::ValueId id = graph_.values.add({name, meta(std::move(sizes)), {}, 0});
    graph_.inputs.push_back({trace::InputKind::user_input, id, name});
    return id;
  }
  /// `strides`: row-major if there are none. Every operator stands on a line of its own in `model.py`.
  trace::ValueId op(const std::string& target, std::vector<trace::Argument> args,
                    std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides = {}) {
    const trace::NodeId node(graph_.nodes.size());
    const std::string name = "n" + std::to_string(node.value);
    trace::TensorMeta result = meta(std::move(sizes));
    if (!strides.empty()) result.strides = std::move(strides);
    const trace::ValueId id = graph_.values.add({name, std::move(result), node, 0});
    trace::Node made;
    made.stack = {{"model.py", node.value + 1, "forward", name + " = " + target}};
    made.name = name;
    made.target = target;
    made.args = std::move(args);
    made.outputs = {id};
    graph_.nodes.add(std::move(made));
    return id;
  }
  void output(trace::ValueId id) {
    trace::Output output;
    output.value = id;
    graph_.outputs.push_back(output);
  }
  [[nodiscard]] std::shared_ptr<const trace::Program> program() const {
    auto made = std::make_shared<trace::Program>();
    made->name = "bench";
    made->graphs = {graph_};
    return made;
  }

 private:
  static trace::TensorMeta meta(std::vector<std::int64_t> sizes) {
    trace::TensorMeta m;
    m.strides = trace::contiguous_strides(sizes);
    m.sizes = std::move(sizes);
    return m;
  }
  trace::Graph graph_;
};

inline const trace::Argument kKeepLast[] = {
    trace::Argument{trace::ArgumentList{trace::Argument{std::int64_t{-1}}}}, trace::Argument{true}};

/// Rows and columns of the tensors. At 512 bytes each a program of thousands of operators fits a kernel's memory; at
/// 32 KiB the scheduler has to look for tiles.
struct Size {
  std::int64_t rows = 8, columns = 16;
};

/// x = sin(x); x = x - mean(x, -1): `operators` of them.
inline std::shared_ptr<const trace::Program> normalising_chain(std::int64_t operators, Size size) {
  GraphBuilder b;
  trace::ValueId x = b.input("x", {size.rows, size.columns});
  for (std::int64_t k = 0; k + 3 <= operators; k += 3) {
    const trace::ValueId s = b.op("aten.sin.default", {{x}}, {size.rows, size.columns});
    const trace::ValueId m = b.op("aten.mean.dim", {{s}, kKeepLast[0], kKeepLast[1]}, {size.rows, 1});
    x = b.op("aten.sub.Tensor", {{s}, {m}}, {size.rows, size.columns});
  }
  b.output(x);
  return b.program();
}

/// x = x * 1.5, `operators` times.
inline std::shared_ptr<const trace::Program> pointwise_chain(std::int64_t operators, Size size) {
  GraphBuilder b;
  trace::ValueId x = b.input("x", {size.rows, size.columns});
  for (std::int64_t k = 0; k < operators; ++k)
    x = b.op("aten.mul.Tensor", {{x}, {1.5}}, {size.rows, size.columns});
  b.output(x);
  return b.program();
}

/// x * 0, x * 1, ..., all returned.
inline std::shared_ptr<const trace::Program> readers_of_one(std::int64_t operators, Size size) {
  GraphBuilder b;
  const trace::ValueId x = b.input("x", {size.rows, size.columns});
  for (std::int64_t k = 0; k < operators; ++k)
    b.output(b.op("aten.mul.Tensor", {{x}, {static_cast<double>(k)}}, {size.rows, size.columns}));
  return b.program();
}

/// Blocks of 15 operators, each a small model layer: a normalisation, a product with a bias, an activation, a view in
/// heads turned and turned back, a softmax, a residual. Each block leaves about four kernels and a library call.
inline std::shared_ptr<const trace::Program> mixed_blocks(std::int64_t operators) {
  constexpr std::int64_t rows = 8, width = 16, heads = 4;
  using List = trace::ArgumentList;
  const auto ints = [](std::vector<std::int64_t> values) {
    List list(values.size());
    for (std::size_t k = 0; k < values.size(); ++k) list[k].content = values[k];
    return trace::Argument{list};
  };
  const std::vector<std::int64_t> flat = {rows, width}, column = {rows, 1}, split = {rows, heads, width / heads},
                                  turned = {heads, rows, width / heads};
  GraphBuilder b;
  trace::ValueId x = b.input("x", flat);
  for (std::int64_t k = 0; k + 15 <= operators; k += 15) {
    const trace::ValueId w = b.input("w" + std::to_string(k), {width, width});
    const trace::ValueId bias = b.input("b" + std::to_string(k), {width});
    const auto mean = b.op("aten.mean.dim", {{x}, kKeepLast[0], kKeepLast[1]}, column);
    const auto centred = b.op("aten.sub.Tensor", {{x}, {mean}}, flat);
    const auto square = b.op("aten.mul.Tensor", {{centred}, {centred}}, flat);
    const auto variance = b.op("aten.mean.dim", {{square}, kKeepLast[0], kKeepLast[1]}, column);
    const auto scale = b.op("aten.rsqrt.default", {{variance}}, column);
    const auto normal = b.op("aten.mul.Tensor", {{centred}, {scale}}, flat);
    const auto product = b.op("aten.mm.default", {{normal}, {w}}, flat);
    const auto biased = b.op("aten.add.Tensor", {{product}, {bias}}, flat);
    const auto active = b.op("aten.gelu.default", {{biased}}, flat);
    const auto parts = b.op("aten.view.default", {{active}, ints(split)}, split);
    const auto across = b.op("aten.permute.default", {{parts}, ints({1, 0, 2})}, turned, {width / heads, width, 1});
    const auto weights = b.op("aten.softmax.int", {{across}, {std::int64_t{-1}}}, turned, {width / heads, width, 1});
    const auto back = b.op("aten.permute.default", {{weights}, ints({1, 0, 2})}, split);
    const auto whole = b.op("aten.view.default", {{back}, ints(flat)}, flat);
    x = b.op("aten.add.Tensor", {{whole}, {x}}, flat);
  }
  b.output(x);
  return b.program();
}

}  // namespace pallascope::bench
