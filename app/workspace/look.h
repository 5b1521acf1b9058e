// Room: workspace. How the window looks, kept between runs: one file of the state folder.
#pragma once

#include <filesystem>

namespace pallascope::workspace {

struct Look {
  bool dark = true;
  float scale = 1;  ///< on top of the display's own
  friend bool operator==(const Look&, const Look&) = default;
};

inline constexpr float smallest_scale = 0.6F, largest_scale = 2.5F;

/// What `save_look` wrote; what is missing in the file, or makes no sense, is as out of the box.
Look load_look(const std::filesystem::path& file);
/// Writes beside the file first, so that no one reads half of it. False when that is not possible.
bool save_look(const std::filesystem::path& file, const Look& look);

}  // namespace pallascope::workspace
