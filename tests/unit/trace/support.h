// Helpers of the tests of core/trace: temporary folders, archives made by hand, fixtures with a change.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/trace/archive.h"
#include "core/trace/graph.h"
#include "core/trace/read.h"

namespace pallascope::trace::testing {

inline std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(PALLASCOPE_TEST_DATA) / "unit" / "trace" / "data" / name;
}

/// A folder of its own for the running test, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            ("pallascope_" + std::string(test->test_suite_name()) + "_" + test->name() + "_" +
             std::to_string(std::hash<const void*>{}(this)));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// Writes a zip archive of stored members. Zip64 structures throughout, so that a member may be any size; a
/// member made by `add_hole` is not written at all but skipped over, which leaves a hole in the file.
class ZipWriter {
 public:
  explicit ZipWriter(const std::filesystem::path& path) : file_(path, std::ios::binary | std::ios::trunc) {}

  void add(const std::string& name, const std::string& content) {
    begin(name, content.size(), crc32(content));
    file_ << content;
  }
  /// The check sum is that of nothing: a reader that checks the member would notice.
  void add_hole(const std::string& name, std::uint64_t bytes) {
    begin(name, bytes, 0);
    file_.seekp(static_cast<std::streamoff>(bytes), std::ios::cur);
  }
  [[nodiscard]] bool finish() {
    const std::uint64_t start = position();
    for (const Entry& entry : entries_) {
      put(0x02014b50, 4);
      put(45, 2), put(45, 2), put(0, 2), put(0, 2), put(0, 4);  // versions, flags, method: stored, time
      put(entry.crc, 4), put(0xFFFFFFFF, 4), put(0xFFFFFFFF, 4);
      put(entry.name.size(), 2), put(28, 2), put(0, 2), put(0, 2), put(0, 2), put(0, 4), put(0xFFFFFFFF, 4);
      file_ << entry.name;
      put(1, 2), put(24, 2), put(entry.bytes, 8), put(entry.bytes, 8), put(entry.offset, 8);
    }
    const std::uint64_t end = position();
    put(0x06064b50, 4), put(44, 8), put(45, 2), put(45, 2), put(0, 4), put(0, 4);
    put(entries_.size(), 8), put(entries_.size(), 8), put(end - start, 8), put(start, 8);
    put(0x07064b50, 4), put(0, 4), put(end, 8), put(1, 4);
    put(0x06054b50, 4), put(0, 2), put(0, 2), put(0xFFFF, 2), put(0xFFFF, 2), put(0xFFFFFFFF, 4),
        put(0xFFFFFFFF, 4), put(0, 2);
    file_.close();
    return !file_.fail();
  }

 private:
  struct Entry {
    std::string name;
    std::uint64_t bytes, offset;
    std::uint32_t crc;
  };

  void begin(const std::string& name, std::uint64_t bytes, std::uint32_t crc) {
    entries_.push_back({name, bytes, position(), crc});
    put(0x04034b50, 4);
    put(45, 2), put(0, 2), put(0, 2), put(0, 4), put(crc, 4), put(0xFFFFFFFF, 4), put(0xFFFFFFFF, 4);
    put(name.size(), 2), put(20, 2);
    file_ << name;
    put(1, 2), put(16, 2), put(bytes, 8), put(bytes, 8);
  }
  std::uint64_t position() { return static_cast<std::uint64_t>(file_.tellp()); }
  void put(std::uint64_t number, int bytes) {
    for (int i = 0; i < bytes; ++i) file_.put(static_cast<char>((number >> (8 * i)) & 0xFF));
  }
  static std::uint32_t crc32(const std::string& content) {
    std::uint32_t crc = 0xFFFFFFFF;
    for (const char c : content) {
      crc ^= static_cast<unsigned char>(c);
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
    }
    return ~crc;
  }

  std::ofstream file_;
  std::vector<Entry> entries_;
};

using Members = std::vector<std::pair<std::string, std::string>>;

inline Members members_of(const std::filesystem::path& path) {
  const Result<Archive> archive = Archive::open(path);
  Members members;
  for (const ArchiveMember& member : archive->members())
    members.emplace_back(member.name, archive->read(member.name).value());
  return members;
}

inline std::filesystem::path write_zip(const std::filesystem::path& path, const Members& members) {
  ZipWriter writer(path);
  for (const auto& [name, content] : members) writer.add(name, content);
  EXPECT_TRUE(writer.finish());
  return path;
}

/// The one place of `from` in `text` becomes `to`.
inline void replace(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

/// A fixture with one member's text changed, read again.
inline Result<Program> read_changed(const std::string& name, const std::string& member_end,
                                    const std::function<void(std::string&)>& change) {
  const TemporaryFolder folder;
  Members members = members_of(fixture(name));
  bool found = false;
  for (auto& [member, content] : members)
    if (member.ends_with(member_end)) {
      change(content);
      found = true;
    }
  EXPECT_TRUE(found) << member_end;
  return read_pt2(write_zip(folder / "changed.pt2", members));
}

inline std::string node_lines(const Graph& graph) {
  std::string text;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) text += to_string(graph, NodeId(i)) + "\n";
  return text;
}

/// Checks what every diagnostic has: kind, a place, a remedy, and words that tell this one from others.
template <class T>
void expect_problem(const Result<T>& result, DiagnosticKind kind, const std::vector<std::string>& words) {
  ASSERT_FALSE(result.ok());
  const std::string text = pallascope::to_string(result.error());
  EXPECT_EQ(diagnostic_name(result.error().kind), diagnostic_name(kind)) << text;
  EXPECT_FALSE(result.error().where.empty()) << text;
  EXPECT_FALSE(result.error().remedy.empty()) << text;
  for (const std::string& word : words)
    EXPECT_NE(text.find(word), std::string::npos) << word << " not in\n" << text;
}

}  // namespace pallascope::trace::testing
