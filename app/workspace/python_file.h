// Room: workspace. What a Python file defines, by reading its text: nothing in it is executed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pallascope::workspace {

/// Something at the top of a file that `trace` could be given.
struct PythonDefinition {
  std::string name;
  std::string parameters;  ///< as written, on one line: `x, weight, bias`; empty for a class
  bool is_class = false;
  friend bool operator==(const PythonDefinition&, const PythonDefinition&) = default;
};

struct PythonFile {
  std::string path;
  std::vector<PythonDefinition>
      definitions;          ///< without private ones; functions and torch modules, in their order
  bool has_inputs = false;  ///< it says itself what its functions are called with: INPUTS or example_inputs()
  bool readable = false;
};

PythonFile read_python_file(const std::string& path);
/// As read_python_file, for the text of a file.
PythonFile python_definitions(std::string_view text);

}  // namespace pallascope::workspace
