#include "core/report/inventory.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/report/format.h"
#include "core/report/lookup.h"
#include "core/schedule/tiles.h"
#include "core/target/target.h"

namespace pallascope::report {
namespace {

std::string buffer_label(const loop::Program& program, loop::BufferId id) {
  const loop::Buffer& buffer = program.buffers[id];
  return fmt::format("{} {} {}", id_text(id), buffer.name, shape_text(buffer.dtype, buffer.dims));
}

std::string tile_text(const index::Context& context, const std::vector<std::vector<index::AxisId>>& classes) {
  std::vector<std::string> parts;
  for (const auto& axes : classes) {
    if (!axes.empty())
      parts.push_back(fmt::format("{} ({})", context.axis(axes[0]).name, context.axis(axes[0]).extent));
  }
  return join(parts, ", ");
}

}  // namespace

std::vector<std::string> node_cells(const session::Compilation& compilation,
                                    const session::Snapshot& snapshot, trace::NodeId id) {
  const trace::Graph& graph = compilation.graph();
  const trace::Node& node = graph.nodes[id];
  std::vector<std::string> kernels;
  for (const schedule::KernelId kernel : kernels_of(snapshot, id)) kernels.push_back(id_text(kernel));
  return {
      id_text(id),        node.name,       node.target, outputs_text(graph, node), outcome_text(snapshot, id),
      join(kernels, ","), place_text(node)};
}

std::vector<std::string> buffer_cells(const session::Compilation& compilation,
                                      const session::Snapshot& snapshot, loop::BufferId id) {
  const loop::Buffer& buffer = snapshot.program->buffers[id];
  const std::vector<std::string> by = writers(compilation, snapshot, id),
                                 to = readers(compilation, snapshot, id);
  // What never leaves a kernel is not "from k2 to k2".
  const bool inside = by.size() == 1 && by == to;
  std::string from;
  if (by.empty()) {
    from = "never made";
  } else if (inside) {
    from = "stays in " + by[0];
  } else if (by != std::vector<std::string>{"input"}) {
    from = "by " + join(by, ", ");
  }
  return {id_text(id),
          buffer.name,
          buffer.kind == loop::BufferKind::input ? "input" : "intermediate",
          shape_text(buffer.dtype, buffer.dims),
          bytes_text(buffer.bytes()),
          from,
          inside || to.empty() ? "" : "to " + join(to, ", ")};
}

std::vector<std::string> kernel_cells(const session::Compilation& compilation,
                                      const session::Snapshot& snapshot, schedule::KernelId id) {
  const schedule::Kernel& kernel = snapshot.state.kernels[id];
  std::vector<std::string> names;
  for (const trace::NodeId node : nodes_of(snapshot, id))
    names.push_back(compilation.graph().nodes[node].name);
  return {id_text(id),
          kernel_name(snapshot, id),
          plural(static_cast<std::int64_t>(kernel.nests.size()), "nest"),
          fmt::format("{} in, {} out", kernel.inputs.size(), kernel.outputs.size()),
          bytes_text(kernel.bytes_moved),
          join(names, " ")};
}

std::string node_text(const session::Compilation& compilation, const session::Snapshot& snapshot,
                      trace::NodeId id) {
  const trace::Graph& graph = compilation.graph();
  const trace::Node& node = graph.nodes[id];
  std::string text = fmt::format("{} {}   {}\n", id_text(id), node.name, outputs_text(graph, node));
  Table rows("  ");
  rows.add({"call", call_text(graph, node)});
  if (node.outputs.size() > 1) {
    std::vector<std::string> names;
    for (const trace::ValueId value : node.outputs) names.push_back(graph.values[value].name);
    rows.add({"outputs", join(names, ", ")});
  }
  for (const trace::ValueId value : node.outputs) {
    const auto& tensor = graph.values[value].tensor;
    if (tensor)
      rows.add({"strides",
                fmt::format(
                    "[{}]{}", fmt::join(tensor->strides, ","),
                    tensor->storage_offset != 0 ? fmt::format(", offset {}", tensor->storage_offset) : "")});
  }
  if (!node.module_path.empty())
    rows.add({"module", node.module_path + (node.module_type.empty() ? "" : " (" + node.module_type + ")")});
  if (const trace::Frame* frame = node.user_frame(); frame != nullptr) {
    rows.add({"line", fmt::format("{}:{} in {}{}", frame->file, frame->line,
                                  frame->function.empty() ? "?" : frame->function,
                                  frame->code.empty() ? "" : "   " + frame->code)});
  }
  const loop::NodeOutcome* outcome = outcome_of(snapshot, id);
  if (outcome != nullptr) {
    rows.add({"became", std::string(loop::outcome_name(outcome->outcome)) +
                            (outcome->why.empty() ? "" : ": " + outcome->why)});
  }
  for (const schedule::KernelId kernel : kernels_of(snapshot, id))
    rows.add({"in", id_text(kernel) + " " + kernel_name(snapshot, kernel)});
  std::vector<std::string> decisions;
  for (const schedule::DecisionId decision : decisions_of(compilation, id))
    decisions.push_back(id_text(decision));
  if (!decisions.empty()) rows.add({"decisions", join(decisions, ", ")});
  return text + rows.text();
}

Json node_detail_json(const session::Compilation& compilation, const session::Snapshot& snapshot,
                      trace::NodeId id) {
  const trace::Graph& graph = compilation.graph();
  const trace::Node& node = graph.nodes[id];
  Json json = node_json(graph, id);
  json["call"] = call_text(graph, node);
  Json outputs = Json::array();
  for (const trace::ValueId value : node.outputs) {
    outputs.push_back(
        {{"name", graph.values[value].name}, {"tensor", tensor_json(graph.values[value].tensor)}});
  }
  json["outputs"] = outputs;
  json["module"] = node.module_path;
  Json stack = Json::array();
  for (const trace::Frame& frame : node.stack) {
    stack.push_back(
        {{"file", frame.file}, {"line", frame.line}, {"function", frame.function}, {"code", frame.code}});
  }
  json["stack"] = stack;
  const loop::NodeOutcome* outcome = outcome_of(snapshot, id);
  json["outcome"] = outcome_text(snapshot, id);
  json["why"] = outcome == nullptr ? "" : outcome->why;
  Json kernels = Json::array(), decisions = Json::array();
  for (const schedule::KernelId kernel : kernels_of(snapshot, id)) kernels.push_back(id_text(kernel));
  for (const schedule::DecisionId decision : decisions_of(compilation, id))
    decisions.push_back(id_text(decision));
  json["kernels"] = kernels;
  json["decisions"] = decisions;
  return json;
}

std::string buffer_text(const session::Compilation& compilation, const session::Snapshot& snapshot,
                        loop::BufferId id) {
  const loop::Program& program = *snapshot.program;
  const loop::Buffer& buffer = program.buffers[id];
  std::string text = fmt::format("{}   {}   {}\n", buffer_label(program, id),
                                 buffer.kind == loop::BufferKind::input ? "input" : "intermediate",
                                 bytes_text(buffer.bytes()));
  Table rows("  ");
  if (compilation.graph().values.contains(buffer.origin)) {
    const trace::Value& value = compilation.graph().values[buffer.origin];
    rows.add({"holds", value.name + (value.tensor ? " " + trace::to_string(*value.tensor) : "")});
  }
  const std::vector<std::string> by = writers(compilation, snapshot, id),
                                 to = readers(compilation, snapshot, id);
  if (buffer.kind == loop::BufferKind::intermediate)
    rows.add({"made by", by.empty() ? "nothing at this decision" : join(by, ", ")});
  rows.add({"read by", to.empty() ? "nothing" : join(to, ", ")});
  for (const schedule::KernelId kernel : kernels_in_order(snapshot)) {
    const auto& internal = snapshot.state.kernels[kernel].internal;
    if (std::find(internal.begin(), internal.end(), id) != internal.end())
      rows.add({"memory", "never reaches it: stays inside " + id_text(kernel)});
  }
  if (buffer.input_index >= 0 &&
      static_cast<std::size_t>(buffer.input_index) < program.input_layouts.size()) {
    const loop::BoundaryLayout& layout = program.input_layouts[static_cast<std::size_t>(buffer.input_index)];
    rows.add({"comes as", fmt::format("sizes [{}] strides [{}]", fmt::join(layout.sizes, ","),
                                      fmt::join(layout.strides, ","))});
    rows.add({"boundary",
              layout.copied ? "copied: its elements do not lie densely" : "taken as it is, without a copy"});
  }
  return text + rows.text();
}

Json buffer_detail_json(const session::Compilation& compilation, const session::Snapshot& snapshot,
                        loop::BufferId id) {
  const loop::Program& program = *snapshot.program;
  const loop::Buffer& buffer = program.buffers[id];
  Json json = buffer_json(program, id);
  json["origin"] = compilation.graph().values.contains(buffer.origin)
                       ? Json(compilation.graph().values[buffer.origin].name)
                       : Json(nullptr);
  json["writers"] = writers(compilation, snapshot, id);
  json["readers"] = readers(compilation, snapshot, id);
  const bool input =
      buffer.input_index >= 0 && static_cast<std::size_t>(buffer.input_index) < program.input_layouts.size();
  json["copied"] = input && program.input_layouts[static_cast<std::size_t>(buffer.input_index)].copied;
  return json;
}

std::string kernel_text(const session::Compilation& compilation, const session::Snapshot& snapshot,
                        schedule::KernelId id) {
  const loop::Program& program = *snapshot.program;
  const schedule::Kernel& kernel = snapshot.state.kernels[id];
  std::string text = fmt::format("{} {}\n", id_text(id), kernel_name(snapshot, id));
  Table rows("  ");
  for (std::size_t k = 0; k < kernel.nests.size(); ++k) {
    const loop::Nest& nest = program.nests[kernel.nests[k]];
    std::vector<std::string> reduced;
    for (std::size_t axis = 0; axis < nest.axes.size() && axis < nest.reduced.size(); ++axis) {
      if (nest.reduced[axis]) reduced.push_back(program.context->axis(nest.axes[axis]).name);
    }
    rows.add({k == 0 ? "nests" : "", nest.name,
              axes_text(*program.context, nest.axes) +
                  (reduced.empty() ? "" : ", reduces " + join(reduced, ", "))});
  }
  const auto add_buffers = [&](const char* role, const std::vector<loop::BufferId>& buffers) {
    for (std::size_t k = 0; k < buffers.size(); ++k) {
      rows.add({k == 0 ? role : "", buffer_label(program, buffers[k]),
                bytes_text(program.buffers[buffers[k]].bytes())});
    }
  };
  add_buffers("reads", kernel.inputs);
  add_buffers("writes", kernel.outputs);
  add_buffers("inside", kernel.internal);
  std::vector<std::string> nodes;
  for (const trace::NodeId node : nodes_of(snapshot, id))
    nodes.push_back(compilation.graph().nodes[node].name);
  rows.add({"nodes", join(nodes, ", ")});
  const std::string tiles = tile_text(*program.context, schedule::grid_axes(program, kernel.nests, target::default_model()));
  rows.add({"grid axes", tiles.empty() ? "none: the arrays stay whole" : tiles});
  rows.add({"on chip", bytes_text(kernel.working_set) + " with whole arrays"});
  rows.add({"moved", bytes_text(kernel.bytes_moved) + " a call"});
  return text + rows.text();
}

Json kernel_json(const session::Compilation& compilation, const session::Snapshot& snapshot,
                 schedule::KernelId id) {
  const loop::Program& program = *snapshot.program;
  const schedule::Kernel& kernel = snapshot.state.kernels[id];
  const auto buffers = [&](const std::vector<loop::BufferId>& ids) {
    Json list = Json::array();
    for (const loop::BufferId buffer : ids) list.push_back(buffer_json(program, buffer));
    return list;
  };
  Json nests = Json::array(), tiles = Json::array();
  for (const loop::NestId nest : kernel.nests) {
    nests.push_back({{"name", program.nests[nest].name},
                     {"axes", axes_json(*program.context, program.nests[nest].axes)},
                     {"reduced", program.nests[nest].reduced}});
  }
  for (const auto& axes : schedule::grid_axes(program, kernel.nests, target::default_model())) tiles.push_back(axes_json(*program.context, axes));
  return {{"id", id_text(id)},
          {"name", kernel_name(snapshot, id)},
          {"nests", nests},
          {"nodes", nodes_json(compilation.graph(), nodes_of(snapshot, id))},
          {"inputs", buffers(kernel.inputs)},
          {"outputs", buffers(kernel.outputs)},
          {"internal", buffers(kernel.internal)},
          {"tile_axes", tiles},
          {"working_set", kernel.working_set},
          {"bytes_moved", kernel.bytes_moved}};
}

std::string graphs_text(const trace::Program& program, std::optional<std::size_t> current) {
  Table rows;
  for (std::size_t k = 0; k < program.graphs.size(); ++k) {
    const trace::Graph& graph = program.graphs[k];
    rows.add({current == k ? "▶" : " ", fmt::format("{}", k), graph.name, graph.kind,
              plural(static_cast<std::int64_t>(graph.nodes.size()), "node"),
              plural(static_cast<std::int64_t>(graph.inputs.size()), "input"),
              plural(static_cast<std::int64_t>(graph.outputs.size()), "output")});
  }
  return rows.text();
}

Json graphs_json(const trace::Program& program, std::optional<std::size_t> current) {
  Json list = Json::array();
  for (std::size_t k = 0; k < program.graphs.size(); ++k) {
    const trace::Graph& graph = program.graphs[k];
    list.push_back({{"index", k},
                    {"name", graph.name},
                    {"kind", graph.kind},
                    {"nodes", graph.nodes.size()},
                    {"inputs", graph.inputs.size()},
                    {"outputs", graph.outputs.size()},
                    {"current", current == k}});
  }
  return list;
}

}  // namespace pallascope::report
