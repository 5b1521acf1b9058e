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

/// Why the embedded interpreter cannot stand in for the Python at `python`.
struct Mismatch {
  std::string theirs;  ///< its version, "3.11.7"; empty when it does not run
  std::string ours;    ///< the version of the libpython in this process
};

/// Nothing when both are of one version, all three numbers of it. The third matters too (measured): with the
/// standard library of 3.11.7 in a libpython 3.11.2, torch and jax run, but `import ssl` fails with
/// "undefined symbol: _PyModule_Add", because Python's own extension modules use private symbols.
std::optional<Mismatch> version_mismatch(const std::string& python);

/// Starts the interpreter as if `python` had been run. Throws std::runtime_error with CPython's own words.
void start_interpreter(const std::string& python, const std::vector<std::string>& paths);

}  // namespace pallascope::host
