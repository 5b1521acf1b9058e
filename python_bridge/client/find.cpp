// Where Python, the host executable and our Python package are.
#include <cstdlib>
#include <system_error>

#include "python_bridge/client/client.h"

namespace pallascope::host {

std::filesystem::path find_python() {
  const char* chosen = std::getenv("PALLASCOPE_PYTHON");
  return chosen != nullptr && *chosen != '\0' ? chosen : PALLASCOPE_HOST_PYTHON;
}

std::filesystem::path find_host_executable() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::filesystem::path beside = folder / "pallascope_host";
  const std::filesystem::path above = folder.parent_path() / "pallascope_host";
  return !std::filesystem::exists(beside, error) && std::filesystem::exists(above, error) ? above : beside;
}

std::vector<std::filesystem::path> default_paths() {
  return {std::filesystem::path(PALLASCOPE_SOURCE_DIR) / "python_bridge", PALLASCOPE_BUILD_PYTHON_DIR};
}

}  // namespace pallascope::host
