#include "python_bridge/client/launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>
#include <system_error>

namespace pallascope::host {

Command host_command(const Options& options, bool embedded) {
  Command command;
  // Without what would make a Python run as itself behave otherwise than the same Python embedded, which
  // ignores all PYTHON* variables and is configured as the five below say.
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with("PYTHON")) command.environment.emplace_back(*entry);
  if (embedded) {
    command.arguments = {options.host_executable.string(), "--python", options.python.string()};
    for (const auto& path : options.paths) {
      command.arguments.emplace_back("--path");
      command.arguments.push_back(path.string());
    }
    return command;
  }
  command.arguments = {options.python.string()};
  command.arguments.insert(command.arguments.end(), options.external_arguments.begin(),
                           options.external_arguments.end());
  std::string paths;
  for (const auto& path : options.paths) paths += (paths.empty() ? "" : ":") + path.string();
  if (!paths.empty()) command.environment.push_back("PYTHONPATH=" + paths);
  for (const char* entry : {"PYTHONSAFEPATH=1", "PYTHONNOUSERSITE=1", "PYTHONUTF8=1", "PYTHONUNBUFFERED=1",
                            "PYTHONFAULTHANDLER=1"})
    command.environment.emplace_back(entry);
  return command;
}

std::optional<Diagnostic> cannot_start(const Options& options, bool embedded) {
  std::error_code error;
  if (!std::filesystem::exists(options.python, error))
    return Diagnostic{DiagnosticKind::host_unavailable,
                      fmt::format("The Python \"{}\" does not exist.", options.python.string()), {},
                      python_remedy(options)};
  if (embedded && !std::filesystem::exists(options.host_executable, error))
    return Diagnostic{DiagnosticKind::host_unavailable,
                      fmt::format("The host executable \"{}\" does not exist.", options.host_executable.string()),
                      {}, host_remedy};
  return std::nullopt;
}

std::string python_remedy(const Options& options) {
  std::error_code error;
  const std::string set =
      "set PALLASCOPE_PYTHON to the bin/python of an environment that has torch and jax, and start the host again.";
  if (!std::filesystem::exists(options.python, error)) return "Make that environment (see README.md), or " + set;
  return fmt::format("Install torch and jax (\"{} -m pip install torch==2.13.0 jax\"), or {}",
                     options.python.string(), set);
}

}  // namespace pallascope::host
