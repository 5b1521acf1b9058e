// Room: report. The difference of two texts, line by line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pallascope::report {

/// A longest common subsequence of two sequences of numbers: the pairs of places that stay, ascending in both (E. W.
/// Myers, "An O(ND) difference algorithm", 1986). Nothing where more than `most_edits` edits lie between them: the
/// search keeps a row of up to 2 * d + 1 numbers for each edit d.
std::vector<std::pair<std::size_t, std::size_t>> common_subsequence(const std::vector<std::uint64_t>& before,
                                                                    const std::vector<std::uint64_t>& after,
                                                                    std::ptrdiff_t most_edits);

enum class LineChange { same, removed, added };

/// One line of the merged text; `old_line` and `new_line` are 1-based, 0 where the side lacks the line.
struct DiffLine {
  LineChange change = LineChange::same;
  std::string text;
  std::size_t old_line = 0, new_line = 0;
};

/// The shortest edit from `before` to `after` (E. W. Myers, "An O(ND) difference algorithm", 1986). Texts that differ
/// in more than 4,000 lines give all old lines removed and all new ones added: the search keeps a row an edit.
std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after);

/// A unified diff with `context` lines around each change; empty when nothing changed.
std::string unified_diff(const std::vector<DiffLine>& lines, std::string_view before_name,
                         std::string_view after_name, std::size_t context = 3);

/// The lines of `text`; a newline at the end does not make an empty last line.
std::vector<std::string> split_lines(std::string_view text);

}  // namespace pallascope::report
