// Room: model. Text found in the linked columns, a part at a time so that no frame waits for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/model/source_columns.h"

namespace pallascope::model {

/// `text` with ASCII letters in lower case.
std::string lower(std::string_view text);
/// Where `needle` (in lower case, not empty) next stands in `text` from byte `from` on, whatever the case; npos if not.
std::size_t find_lower(std::string_view text, std::string_view needle, std::size_t from = 0);

struct Match {
  ColumnKind column = ColumnKind::model;
  std::size_t line = 0;
  std::size_t begin = 0;  ///< byte in the line
  bool operator==(const Match&) const = default;
};

/// Matches in the order of the columns and lines. `columns` of `start` must live until another start.
class LineFinder {
 public:
  static constexpr std::size_t most = 20'000;  ///< matches that are kept

  /// Forgets all, and looks for `needle` (any case; empty finds nothing) in the columns of `kinds`.
  void start(std::string_view needle, const SourceColumns& columns, std::vector<ColumnKind> kinds);
  /// Looks at `lines` more lines. False when there was nothing left to do.
  bool step(std::size_t lines);
  [[nodiscard]] bool done() const { return kind_ >= kinds_.size() || matches_.size() >= most; }
  [[nodiscard]] const std::vector<Match>& matches() const { return matches_; }
  [[nodiscard]] const std::string& needle() const { return needle_; }

 private:
  std::string needle_;
  const SourceColumns* columns_ = nullptr;
  std::vector<ColumnKind> kinds_;
  std::size_t kind_ = 0, line_ = 0;
  std::vector<Match> matches_;
};

}  // namespace pallascope::model
