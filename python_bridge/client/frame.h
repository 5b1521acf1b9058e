// Room: client. Messages as bytes: 4 bytes header length, 8 bytes body length (little-endian), header, body.
// Takes: bytes as they come from a pipe, in any pieces.
// Gives: whole messages, or the reason why the bytes are none.
// May use: the standard library.
// Never: reads or writes a descriptor itself, interprets the header beyond its first byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pallascope::host {

/// The 12 bytes in front of a header and a body.
std::string frame_prefix(std::size_t header_bytes, std::size_t body_bytes);

struct Frame {
  std::string header;
  std::string body;
};

/// Puts frames together. Give the bytes straight into `space()`, so that a large body is read where it stays:
///
///     n = read(fd, space.data(), space.size());  reader.filled(n);  frame = reader.take();
///
/// Bytes that are no message are found early, because nobody may wait for the 1.8 GB that "junk" announces:
/// a header is shorter than 128 MiB, which no four bytes of text (all of them 9 or more) can say, and it
/// begins with '{'.
class FrameReader {
 public:
  /// Where the next bytes go; never empty while there is no error and no frame to take.
  std::span<char> space();
  /// `count` bytes of `space()` are now there.
  void filled(std::size_t count);
  /// The message, once it is whole; the reader then waits for the next.
  std::optional<Frame> take();

  /// Why the bytes are no message; empty when they may still become one.
  [[nodiscard]] const std::string& error() const { return error_; }
  /// True between two messages: an end of the stream is clean here only.
  [[nodiscard]] bool between_messages() const { return part_ == Part::prefix && have_ == 0; }
  /// "20 of 112 bytes", for a message that broke off.
  [[nodiscard]] std::string progress() const;

 private:
  enum class Part { prefix, header, body, whole };
  void check();

  Part part_ = Part::prefix;
  std::size_t have_ = 0;  ///< bytes of the current part
  std::array<char, 12> prefix_{};
  std::uint32_t header_bytes_ = 0;
  std::uint64_t body_bytes_ = 0;
  Frame frame_;
  std::string error_;
};

/// `bytes` with everything that is not printable ASCII escaped, cut after `limit` bytes: for messages.
std::string printable(std::string_view bytes, std::size_t limit);
/// `text` with each byte that is not part of valid UTF-8 replaced by U+FFFD: logs go into JSON.
std::string valid_utf8(std::string_view text);

}  // namespace pallascope::host
