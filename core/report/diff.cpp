#include "core/report/diff.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include <fmt/format.h>

namespace pallascope::report {
namespace {

constexpr std::ptrdiff_t edit_limit = 4000;  // 4000 rows of up to 8001 numbers: 64 MB at worst

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> common_subsequence(const std::vector<std::uint64_t>& before,
                                                                    const std::vector<std::uint64_t>& after,
                                                                    std::ptrdiff_t most_edits) {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  const auto n = static_cast<std::ptrdiff_t>(before.size()), m = static_cast<std::ptrdiff_t>(after.size());
  if (n == 0 || m == 0) return found;
  // Row d holds, for each diagonal k in -d..d, how far into `before` d edits can come; rows stand after one another.
  std::vector<std::int32_t> rows;
  const auto reach = [&rows](std::ptrdiff_t d, std::ptrdiff_t k) -> std::ptrdiff_t {
    return rows[static_cast<std::size_t>(d * d + k + d)];
  };
  // Whether the best way to diagonal k with d edits comes down from k+1 (an insertion) or across from k-1.
  const auto comes_down = [&reach](std::ptrdiff_t d, std::ptrdiff_t k) {
    return k == -d || (k != d && reach(d - 1, k - 1) < reach(d - 1, k + 1));
  };
  for (std::ptrdiff_t d = 0; d <= std::min(n + m, most_edits); ++d) {
    rows.resize(static_cast<std::size_t>((d + 1) * (d + 1)), 0);
    for (std::ptrdiff_t k = -d; k <= d; k += 2) {
      std::ptrdiff_t x = d == 0 ? 0 : (comes_down(d, k) ? reach(d - 1, k + 1) : reach(d - 1, k - 1) + 1);
      while (x < n && x - k < m && before[static_cast<std::size_t>(x)] == after[static_cast<std::size_t>(x - k)]) ++x;
      rows[static_cast<std::size_t>(d * d + k + d)] = static_cast<std::int32_t>(x);
      if (x < n || x - k < m) continue;
      // Walk back from the end: the diagonal moves are the matches.
      std::ptrdiff_t at = n, diagonal = n - m;
      for (std::ptrdiff_t e = d; e >= 0; --e) {
        std::ptrdiff_t start = 0, next = diagonal;
        if (e > 0) {
          next = comes_down(e, diagonal) ? diagonal + 1 : diagonal - 1;
          start = next > diagonal ? reach(e - 1, next) : reach(e - 1, next) + 1;
        }
        for (; at > start; --at)
          found.emplace_back(static_cast<std::size_t>(at - 1), static_cast<std::size_t>(at - 1 - diagonal));
        if (e > 0) at = reach(e - 1, next);
        diagonal = next;
      }
      std::reverse(found.begin(), found.end());
      return found;
    }
  }
  return found;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after) {
  const std::vector<std::string> old_lines = split_lines(before), new_lines = split_lines(after);
  // Equal texts get equal numbers, so that the search compares numbers; equal ends are cut off first.
  std::unordered_map<std::string_view, std::size_t> numbers;
  const auto number = [&numbers](std::string_view line) {
    return numbers.emplace(line, numbers.size()).first->second;
  };
  std::size_t head = 0;
  while (head < old_lines.size() && head < new_lines.size() && old_lines[head] == new_lines[head]) ++head;
  std::size_t tail = 0;
  while (tail < old_lines.size() - head && tail < new_lines.size() - head &&
         old_lines[old_lines.size() - 1 - tail] == new_lines[new_lines.size() - 1 - tail]) {
    ++tail;
  }
  std::vector<std::uint64_t> a, b;
  for (std::size_t k = head; k < old_lines.size() - tail; ++k) a.push_back(number(old_lines[k]));
  for (std::size_t k = head; k < new_lines.size() - tail; ++k) b.push_back(number(new_lines[k]));
  std::vector<bool> old_stays(a.size(), false), new_stays(b.size(), false);
  for (const auto& [old_line, new_line] : common_subsequence(a, b, edit_limit))
    old_stays[old_line] = new_stays[new_line] = true;
  const auto stays = [&](const std::vector<bool>& side, std::size_t line, std::size_t count) {
    return line < head || line >= count - tail || side[line - head];
  };

  std::vector<DiffLine> result;
  std::size_t i = 0, j = 0;
  while (i < old_lines.size() || j < new_lines.size()) {
    if (i < old_lines.size() && !stays(old_stays, i, old_lines.size())) {
      result.push_back({LineChange::removed, old_lines[i], i + 1, 0});
      ++i;
    } else if (j < new_lines.size() && !stays(new_stays, j, new_lines.size())) {
      result.push_back({LineChange::added, new_lines[j], 0, j + 1});
      ++j;
    } else {
      result.push_back({LineChange::same, new_lines[j], i + 1, j + 1});
      ++i;
      ++j;
    }
  }
  return result;
}

std::string unified_diff(const std::vector<DiffLine>& lines, std::string_view before_name,
                         std::string_view after_name, std::size_t context) {
  std::string body;
  std::size_t at = 0, old_done = 0, new_done = 0;  // lines of each side before `at`
  const auto count = [](const DiffLine& line, std::size_t& old_count, std::size_t& new_count) {
    if (line.change != LineChange::added) ++old_count;
    if (line.change != LineChange::removed) ++new_count;
  };
  while (at < lines.size()) {
    std::size_t first = at;
    while (first < lines.size() && lines[first].change == LineChange::same) ++first;
    if (first == lines.size()) break;
    const std::size_t begin = first - std::min(context, first - at);
    // The hunk goes on while the next change is within twice the context.
    std::size_t end = first + 1, quiet = 0;
    for (std::size_t k = first + 1; k < lines.size() && quiet <= 2 * context; ++k) {
      quiet = lines[k].change == LineChange::same ? quiet + 1 : 0;
      if (quiet == 0) end = k + 1;
    }
    end = std::min(end + context, lines.size());
    for (; at < begin; ++at) count(lines[at], old_done, new_done);
    std::size_t old_count = 0, new_count = 0;
    std::string hunk;
    for (std::size_t k = begin; k < end; ++k) {
      count(lines[k], old_count, new_count);
      const char sign = lines[k].change == LineChange::same    ? ' '
                        : lines[k].change == LineChange::added ? '+'
                                                               : '-';
      hunk += sign + lines[k].text + "\n";
    }
    body += fmt::format("@@ -{},{} +{},{} @@\n{}", old_done + (old_count > 0 ? 1 : 0), old_count,
                        new_done + (new_count > 0 ? 1 : 0), new_count, hunk);
    old_done += old_count;
    new_done += new_count;
    at = end;
  }
  if (body.empty()) return "";
  return fmt::format("--- {}\n+++ {}\n{}", before_name, after_name, body);
}

}  // namespace pallascope::report
