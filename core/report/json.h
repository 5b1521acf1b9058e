// Room: report. The JSON of the things that have names: nodes, buffers, axes. Keys are snake_case and stay.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "core/index/access.h"
#include "core/index/expression.h"
#include "core/loop/program.h"
#include "core/trace/graph.h"

namespace pallascope::report {

/// Keys keep the order in which they were written: a line of output reads the same way each time.
using Json = nlohmann::ordered_json;

/// {"id": "n12", "name": "sum_2", "target": "aten.sum.dim_IntList", "place": "model.py:42"}
Json node_json(const trace::Graph& graph, trace::NodeId id);
Json nodes_json(const trace::Graph& graph, const std::vector<trace::NodeId>& ids);
/// {"id": "b7", "name": "buf7", "kind": "intermediate", "dtype": "f32", "dims": [512, 4096], "bytes": 8388608}
Json buffer_json(const loop::Program& program, loop::BufferId id);
/// [{"name": "i0", "extent": 16}, ...]
Json axes_json(const index::Context& context, const std::vector<index::AxisId>& axes);
/// [low, high]
Json range_json(const index::Range& range);
/// {"dtype", "sizes", "strides", "offset"}, or null without a tensor.
Json tensor_json(const std::optional<trace::TensorMeta>& tensor);

}  // namespace pallascope::report
