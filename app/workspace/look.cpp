#include "app/workspace/look.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <system_error>

#include "core/report/json.h"

namespace pallascope::workspace {

namespace fs = std::filesystem;
using report::Json;

Look load_look(const fs::path& file) {
  Look look;
  std::ifstream stream(file);
  if (!stream) return look;
  const Json json = Json::parse(stream, nullptr, false);
  if (!json.is_object()) return look;
  if (const auto theme = json.find("theme"); theme != json.end() && theme->is_string())
    look.dark = theme->get<std::string>() != "light";
  if (const auto scale = json.find("scale"); scale != json.end() && scale->is_number()) {
    const auto value = scale->get<float>();
    if (std::isfinite(value)) look.scale = std::clamp(value, smallest_scale, largest_scale);
  }
  return look;
}

bool save_look(const fs::path& file, const Look& look) {
  // Rounded: 1.1 as a float is 1.10000002 as text.
  const Json json = {{"format", "pallascope.look"},
                     {"version", 1},
                     {"theme", look.dark ? "dark" : "light"},
                     {"scale", std::round(static_cast<double>(look.scale) * 1000) / 1000}};
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  fs::path beside = file;
  beside += ".new";
  {
    std::ofstream stream(beside, std::ios::trunc);
    stream << json.dump(1) << '\n';
    if (!stream.flush()) return false;
  }
  fs::rename(beside, file, error);
  return !error;
}

}  // namespace pallascope::workspace
