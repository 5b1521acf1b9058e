#include "python_bridge/client/log.h"

#include <algorithm>

#include "python_bridge/client/frame.h"

namespace pallascope::host {

namespace {
constexpr std::size_t kept = 64 << 10;
// faulthandler's account of a segmentation fault is a dozen lines before its long list of modules.
constexpr int last_lines = 24;
}  // namespace

std::uint64_t Log::append(std::string_view text) {
  const std::lock_guard lock(mutex_);
  text_ += text;
  end_ += text.size();
  // In larger steps, because erasing moves what is left.
  if (text_.size() > 2 * kept) text_.erase(0, text_.size() - kept);
  return end_;
}

LogPart Log::from(std::uint64_t position) const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t oldest = end_ - std::min(text_.size(), kept);
  const std::uint64_t begin = std::clamp(position, oldest, end_);
  return {valid_utf8(std::string_view(text_).substr(text_.size() - (end_ - begin))), end_};
}

std::string Log::last_words(std::uint64_t position) const {
  std::string text = from(position).text;
  text.erase(text.find_last_not_of(" \n") + 1);
  if (text.empty()) return {};
  std::size_t begin = text.size();
  for (int line = 0; line < last_lines && begin != std::string::npos && begin != 0; ++line)
    begin = text.rfind('\n', begin - 1);
  if (begin != std::string::npos) text.erase(0, begin + 1);
  std::string out = "\nIts last words:";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += "\n  " + text.substr(at, end - at);
    at = end + 1;
  }
  return out;
}

}  // namespace pallascope::host
