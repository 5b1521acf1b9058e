// Room: workspace. What was opened and typed in earlier runs: two files of the state folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pallascope::workspace {

/// Something that was opened, and the command that opens it again.
struct RecentFile {
  std::string command;    ///< `open /home/me/a.pt2`, `trace /home/me/m.py:f f32[8]`
  std::string path;       ///< absolute
  std::int64_t time = 0;  ///< when it was last opened, in seconds since 1970
  bool exists = true;     ///< when the list was read; not written
  friend bool operator==(const RecentFile&, const RecentFile&) = default;
};

inline constexpr std::size_t most_recent = 12;

/// The list of that file, newest first, and whether each file is still there. Empty when the file is missing or is not
/// what `save_recent` writes: a broken list is no reason to complain at each start.
std::vector<RecentFile> load_recent(const std::filesystem::path& file);
/// Writes the list beside the file first, so that no one reads half of it. False when that is not possible.
bool save_recent(const std::filesystem::path& file, const std::vector<RecentFile>& list);
/// Puts `opened` in front; an older entry with the same command goes, and so does what is more than `most_recent`.
void add_recent(std::vector<RecentFile>& list, RecentFile opened);

/// The last `most` lines of the terminal's history file, oldest first; of equal neighbours one.
std::vector<std::string> load_history(const std::filesystem::path& file, std::size_t most);
/// Appends each line of `text`, making the folder if need be. False when that is not possible.
bool append_history(const std::filesystem::path& file, const std::string& text);

}  // namespace pallascope::workspace
