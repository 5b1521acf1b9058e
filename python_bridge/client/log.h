// Room: client. What the host wrote to standard error, as far as it is kept.
// Takes: text in any pieces, from the worker.
// Gives: the last 64 KiB by position, and a process's last words for a diagnostic.
// May use: the standard library.
// Never: grows without bound, gives out bytes that are not UTF-8.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "python_bridge/client/client.h"

namespace pallascope::host {

/// Positions count all bytes ever appended. Safe to use from any thread.
class Log {
 public:
  /// Returns the position after `text`.
  std::uint64_t append(std::string_view text);
  [[nodiscard]] LogPart from(std::uint64_t position) const;
  /// The last lines from `position` on, indented under a heading that begins with a line break; or nothing.
  [[nodiscard]] std::string last_words(std::uint64_t position) const;

 private:
  mutable std::mutex mutex_;
  std::string text_;
  std::uint64_t end_ = 0;
};

}  // namespace pallascope::host
