#include "app/workspace/recent.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/report/json.h"

namespace pallascope::workspace {
namespace {

namespace fs = std::filesystem;
using report::Json;

std::string text_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

}  // namespace

std::vector<RecentFile> load_recent(const fs::path& file) {
  std::vector<RecentFile> list;
  std::ifstream stream(file);
  if (!stream) return list;
  const Json json = Json::parse(stream, nullptr, false);
  if (!json.is_object()) return list;
  const auto files = json.find("files");
  if (files == json.end() || !files->is_array()) return list;
  for (const Json& entry : *files) {
    if (!entry.is_object()) continue;
    RecentFile recent{text_of(entry, "command"), text_of(entry, "path"), 0, true};
    if (recent.command.empty() || recent.path.empty()) continue;
    if (const auto time = entry.find("time"); time != entry.end() && time->is_number_integer())
      recent.time = time->get<std::int64_t>();
    std::error_code error;
    recent.exists = fs::exists(recent.path, error);
    list.push_back(std::move(recent));
    if (list.size() == most_recent) break;
  }
  return list;
}

bool save_recent(const fs::path& file, const std::vector<RecentFile>& list) {
  Json files = Json::array();
  for (const RecentFile& recent : list)
    files.push_back({{"command", recent.command}, {"path", recent.path}, {"time", recent.time}});
  const Json json = {{"format", "pallascope.recent"}, {"version", 1}, {"files", std::move(files)}};
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  fs::path beside = file;
  beside += ".new";
  {
    std::ofstream stream(beside, std::ios::trunc);
    stream << json.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
    if (!stream.flush()) return false;
  }
  fs::rename(beside, file, error);
  return !error;
}

void add_recent(std::vector<RecentFile>& list, RecentFile opened) {
  std::erase_if(list, [&](const RecentFile& recent) { return recent.command == opened.command; });
  list.insert(list.begin(), std::move(opened));
  if (list.size() > most_recent) list.resize(most_recent);
}

std::vector<std::string> load_history(const fs::path& file, std::size_t most) {
  std::vector<std::string> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (lines.empty() || lines.back() != line) lines.push_back(std::move(line));
  }
  if (lines.size() > most) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(most));
  return lines;
}

bool append_history(const fs::path& file, const std::string& text) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  std::ofstream stream(file, std::ios::app);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) stream << line << '\n';
  }
  return static_cast<bool>(stream.flush());
}

}  // namespace pallascope::workspace
