// Room: report. What a program is made of: nodes, buffers, kernels, graphs; as list rows and one by one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/json.h"
#include "core/session/compilation.h"

namespace pallascope::report {

/// Rows of `ls`. Cells of a node: id, name, operator, output, outcome, kernels, place; of a buffer: id, name, kind,
/// shape, bytes, writer, readers; of a kernel: id, name, nests, nodes, inputs and outputs, bytes moved.
std::vector<std::string> node_cells(const session::Compilation& compilation,
                                    const session::Snapshot& snapshot, trace::NodeId id);
std::vector<std::string> buffer_cells(const session::Compilation& compilation,
                                      const session::Snapshot& snapshot, loop::BufferId id);
std::vector<std::string> kernel_cells(const session::Compilation& compilation,
                                      const session::Snapshot& snapshot, schedule::KernelId id);

/// One thing in full. JSON keys of a node: id, name, target, call, outputs, module, place, stack, outcome, why,
/// kernels, decisions; of a buffer: those of buffer_json and writers, readers, origin, copied; of a kernel: id, name,
/// nests, nodes, inputs, outputs, internal, tile_axes, working_set, bytes_moved.
std::string node_text(const session::Compilation& compilation, const session::Snapshot& snapshot,
                      trace::NodeId id);
Json node_detail_json(const session::Compilation& compilation, const session::Snapshot& snapshot,
                      trace::NodeId id);
std::string buffer_text(const session::Compilation& compilation, const session::Snapshot& snapshot,
                        loop::BufferId id);
Json buffer_detail_json(const session::Compilation& compilation, const session::Snapshot& snapshot,
                        loop::BufferId id);
std::string kernel_text(const session::Compilation& compilation, const session::Snapshot& snapshot,
                        schedule::KernelId id);
Json kernel_json(const session::Compilation& compilation, const session::Snapshot& snapshot,
                 schedule::KernelId id);

/// The graphs of a program, the one in use marked.
std::string graphs_text(const trace::Program& program, std::optional<std::size_t> current);
Json graphs_json(const trace::Program& program, std::optional<std::size_t> current);

}  // namespace pallascope::report
