#include "core/report/json.h"

#include <string>

#include "core/report/format.h"

namespace pallascope::report {

Json node_json(const trace::Graph& graph, trace::NodeId id) {
  const trace::Node& node = graph.nodes[id];
  return {{"id", id_text(id)}, {"name", node.name}, {"target", node.target}, {"place", place_text(node)}};
}

Json nodes_json(const trace::Graph& graph, const std::vector<trace::NodeId>& ids) {
  Json list = Json::array();
  for (const trace::NodeId id : ids) list.push_back(node_json(graph, id));
  return list;
}

Json buffer_json(const loop::Program& program, loop::BufferId id) {
  const loop::Buffer& buffer = program.buffers[id];
  return {{"id", id_text(id)},
          {"name", buffer.name},
          {"kind", buffer.kind == loop::BufferKind::input ? "input" : "intermediate"},
          {"dtype", std::string(dtype_name(buffer.dtype))},
          {"dims", buffer.dims},
          {"bytes", buffer.bytes()}};
}

Json axes_json(const index::Context& context, const std::vector<index::AxisId>& axes) {
  Json list = Json::array();
  for (const index::AxisId id : axes) {
    list.push_back({{"name", context.axis(id).name}, {"extent", context.axis(id).extent}});
  }
  return list;
}

Json range_json(const index::Range& range) { return Json::array({range.low, range.high}); }

Json tensor_json(const std::optional<trace::TensorMeta>& tensor) {
  if (!tensor) return nullptr;
  return {{"dtype", std::string(dtype_name(tensor->dtype))},
          {"sizes", tensor->sizes},
          {"strides", tensor->strides},
          {"offset", tensor->storage_offset}};
}

}  // namespace pallascope::report
