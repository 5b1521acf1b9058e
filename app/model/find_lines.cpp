#include "app/model/find_lines.h"

#include <algorithm>

namespace pallascope::model {
namespace {

char lower_of(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower_of);
  return result;
}

std::size_t find_lower(std::string_view text, std::string_view needle, std::size_t from) {
  if (needle.empty() || needle.size() > text.size()) return std::string_view::npos;
  for (std::size_t k = from; k + needle.size() <= text.size(); ++k) {
    std::size_t same = 0;
    while (same < needle.size() && lower_of(text[k + same]) == needle[same]) ++same;
    if (same == needle.size()) return k;
  }
  return std::string_view::npos;
}

void LineFinder::start(std::string_view needle, const SourceColumns& columns, std::vector<ColumnKind> kinds) {
  needle_ = lower(needle);
  columns_ = &columns;
  kinds_ = std::move(kinds);
  if (needle_.empty()) kinds_.clear();
  kind_ = line_ = 0;
  matches_.clear();
}

bool LineFinder::step(std::size_t lines) {
  if (done()) return false;
  while (lines > 0 && !done()) {
    const auto& texts = (*columns_)[kinds_[kind_]].lines;
    for (; line_ < texts.size() && lines > 0; ++line_, --lines) {
      const std::string_view text = texts[line_].text;
      for (std::size_t at = find_lower(text, needle_); at != std::string_view::npos;
           at = find_lower(text, needle_, at + needle_.size())) {
        if (matches_.size() == most) return true;
        matches_.push_back({kinds_[kind_], line_, at});
      }
    }
    if (line_ >= texts.size()) {
      ++kind_;
      line_ = 0;
    }
  }
  return true;
}

}  // namespace pallascope::model
