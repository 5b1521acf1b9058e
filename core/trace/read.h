// Room: trace. Readers and the writer.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/trace/graph.h"

namespace pallascope::trace {

/// Opens what `path` is: a .pt2 archive (any zip), the project's JSON, or a bundle folder (`program.json`
/// inside). Looks at the content, not at the suffix. Runs no code and unpickles nothing.
Result<Program> open(const std::filesystem::path& path);

/// A `torch.export.save` archive. Weights are located and measured, never read.
Result<Program> read_pt2(const std::filesystem::path& path);

/// The project's versioned JSON (format `pallascope.trace`, version 1; FORMAT.md in this folder).
/// `where` names the text's origin in diagnostics.
Result<Program> read_json(std::string_view text, std::string_view where);
/// The inverse: `read_json(write_json(p))` gives an equal program and the same text again.
std::string write_json(const Program& program);

}  // namespace pallascope::trace
