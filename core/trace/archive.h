// Room: trace. A zip archive: its members by name and size, and the bytes of the ones that are asked for.
// Takes: a path.
// Gives: Archive.
// May use: base; libzip in archive.cpp.
// Never: reads a member that nobody asked for, writes an archive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"

namespace pallascope::trace {

struct ArchiveMember {
  std::string name;
  std::int64_t bytes = 0;  ///< uncompressed, from the central directory
};

class Archive {
 public:
  /// Reads the central directory. `not_found`, `not_readable`, `not_a_zip`.
  static Result<Archive> open(const std::filesystem::path& path);

  [[nodiscard]] const std::vector<ArchiveMember>& members() const { return members_; }
  [[nodiscard]] const ArchiveMember* find(std::string_view name) const;
  /// The bytes of a member. `missing_member` when there is none of that name; `not_readable` when its bytes
  /// are damaged or more than `limit`.
  [[nodiscard]] Result<std::string> read(std::string_view name, std::int64_t limit = kLimit) const;
  /// `path, member name` for diagnostics.
  [[nodiscard]] std::string place(std::string_view name) const {
    return path_ + ", member " + std::string(name);
  }

  /// No JSON member of a real model comes near (a 100,000-node graph has about 300 MB); a header may claim anything.
  static constexpr std::int64_t kLimit = std::int64_t{2} << 30;

 private:
  struct Closer {
    void operator()(void* archive) const;
  };
  std::string path_;
  std::unique_ptr<void, Closer> archive_;
  std::vector<ArchiveMember> members_;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace pallascope::trace
