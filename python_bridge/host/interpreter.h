// Room: host. The embedded interpreter: which Python it stands in for, and how it is set up.
// Takes: the bin/python of a virtual environment, folders for sys.path.
// Gives: a started interpreter, or in words why it cannot stand in for that Python.
// May use: core/base, fmt, pybind11.
// Never: reads the stream of requests, knows a request.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace pallascope::host {

/// The version of the Python at `python`: from the pyvenv.cfg of its environment, else by asking it (20 ms).
/// Nothing when it has none and does not run.
std::optional<std::string> version_of(const std::string& python);

/// The version of the libpython that this executable is linked with, as it was built.
std::string embedded_version();

/// Whether the embedded interpreter can use the packages of a Python of version `theirs`: the first two
/// numbers must agree. The third need not: see interpreter.cpp.
bool can_embed(const std::string& theirs, const std::string& ours);

/// Starts the interpreter as if `python` had been run. Throws std::runtime_error with CPython's own words.
void start_interpreter(const std::string& python, const std::vector<std::string>& paths);

}  // namespace pallascope::host
