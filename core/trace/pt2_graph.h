// Room: trace. The JSON of one exported program (torch/_export/serde/schema.py, major version 8) as a graph.
#pragma once

#include <string>
#include <string_view>

#include "core/trace/graph.h"
#include "core/trace/json.h"

namespace pallascope::trace {

/// The major version of torch's export schema that this room reads; minor versions only add.
inline constexpr std::int64_t kPt2SchemaMajor = 8;

struct Pt2Model {
  Graph graph;
  std::string torch_version;  ///< "2.13.0+cpu"
};

/// Reads models/<name>.json. The graph is validated.
Result<Pt2Model> read_pt2_model(const JsonCursor& root, std::string_view graph_name);

/// A serialised TensorMeta. `subject` names the tensor in diagnostics.
Result<TensorMeta> read_pt2_tensor(const JsonCursor& cursor, std::string_view subject);

/// "File \"m.py\", line 3, in f\n    x + y\n ..." as frames, outermost first. Lines of another form are skipped.
std::vector<Frame> parse_stack_trace(std::string_view text);

/// The innermost module of "key,path,type;key,path,type": its path without `L['self']` and its class's name.
std::pair<std::string, std::string> parse_module_stack(std::string_view text);

}  // namespace pallascope::trace
