// Room: client. How a host is started: its command line and environment, and why it cannot be.
// Takes: Options.
// Gives: a Command, or the diagnostic of a Python or host executable that is not there.
// May use: core/base, fmt, the file system.
// Never: starts anything.
#pragma once

#include <optional>
#include <string>

#include "core/base/diagnostic.h"
#include "python_bridge/client/client.h"
#include "python_bridge/client/process.h"

namespace pallascope::host {

/// `embedded`: the host executable with `python` as its argument; else `python` with the server's module.
Command host_command(const Options& options, bool embedded);
/// What is missing on disk, if anything is.
std::optional<Diagnostic> cannot_start(const Options& options, bool embedded);
/// What to do about a Python without torch and jax, or about none.
std::string python_remedy(const Options& options);
/// What to do about a missing host executable.
inline constexpr const char* host_remedy = "Build the target pallascope_host.";

}  // namespace pallascope::host
