#include "python_bridge/client/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace pallascope::host {

namespace {

constexpr std::uint64_t header_limit = std::uint64_t{128} << 20;
// Only a backstop against nonsense: a tensor of 256 GiB does not go through a pipe.
constexpr std::uint64_t body_limit = std::uint64_t{256} << 30;

std::uint64_t little_endian(const char* bytes, int count) {
  std::uint64_t value = 0;
  for (int i = count - 1; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

std::string frame_prefix(std::size_t header_bytes, std::size_t body_bytes) {
  std::string prefix(12, '\0');
  for (std::size_t i = 0; i < 4; ++i) prefix[i] = static_cast<char>(header_bytes >> (8 * i) & 0xff);
  for (std::size_t i = 0; i < 8; ++i) prefix[4 + i] = static_cast<char>(body_bytes >> (8 * i) & 0xff);
  return prefix;
}

std::span<char> FrameReader::space() {
  switch (part_) {
    case Part::prefix: return std::span(prefix_).subspan(have_);
    case Part::header: return std::span(frame_.header).subspan(have_);
    case Part::body: return std::span(frame_.body).subspan(have_);
    case Part::whole: return {};
  }
  return {};
}

void FrameReader::filled(std::size_t count) {
  have_ += count;
  check();
  // An empty body needs no bytes, so one call may finish two parts.
  while (error_.empty()) {
    if (part_ == Part::prefix && have_ == prefix_.size()) {
      part_ = Part::header;
      frame_.header.resize(header_bytes_);
    } else if (part_ == Part::header && have_ == header_bytes_) {
      part_ = Part::body;
      try {
        frame_.body.resize(body_bytes_);
      } catch (const std::bad_alloc&) {
        error_ = fmt::format("a body of {} bytes does not fit into memory", body_bytes_);
      }
    } else if (part_ == Part::body && have_ == body_bytes_) {
      part_ = Part::whole;
      return;
    } else {
      return;
    }
    have_ = 0;
  }
}

void FrameReader::check() {
  if (part_ == Part::prefix && have_ >= 4) {
    header_bytes_ = static_cast<std::uint32_t>(little_endian(prefix_.data(), 4));
    if (header_bytes_ < 2 || header_bytes_ >= header_limit)
      error_ = fmt::format("\"{}\" where a message was expected",
                           printable(std::string_view(prefix_.data(), have_), 12));
  }
  if (part_ == Part::prefix && have_ == prefix_.size() && error_.empty()) {
    body_bytes_ = little_endian(prefix_.data() + 4, 8);
    if (body_bytes_ > body_limit) error_ = fmt::format("a message with a body of {} bytes", body_bytes_);
  }
  if (part_ == Part::header && have_ >= 1 && frame_.header[0] != '{')
    error_ = fmt::format("\"{}\" where a JSON object was expected",
                         printable(std::string_view(frame_.header).substr(0, have_), 40));
}

std::optional<Frame> FrameReader::take() {
  if (part_ != Part::whole) return std::nullopt;
  part_ = Part::prefix;
  have_ = 0;
  Frame frame = std::move(frame_);
  frame_ = {};
  return frame;
}

std::string FrameReader::progress() const {
  if (part_ == Part::prefix) return fmt::format("{} of at least 14 bytes", have_);
  const std::uint64_t before = prefix_.size() + (part_ == Part::header ? 0 : header_bytes_);
  return fmt::format("{} of {} bytes", before + have_, prefix_.size() + header_bytes_ + body_bytes_);
}

std::string printable(std::string_view bytes, std::size_t limit) {
  std::string out;
  for (const char c : bytes.substr(0, limit)) {
    if (c == '\n') {
      out += "\\n";
    } else if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (bytes.size() > limit) out += "...";
  return out;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
    const unsigned char c = byte(i);
    std::size_t length = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3
                         : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    if (i + length > text.size()) length = 0;
    for (std::size_t k = 1; k < length; ++k)
      if ((byte(i + k) & 0xc0) != 0x80) length = 0;
    // Overlong forms, surrogates and code points above U+10FFFF differ in the second byte only.
    if (length == 3 && ((c == 0xe0 && byte(i + 1) < 0xa0) || (c == 0xed && byte(i + 1) > 0x9f))) length = 0;
    if (length == 4 && ((c == 0xf0 && byte(i + 1) < 0x90) || (c == 0xf4 && byte(i + 1) > 0x8f))) length = 0;
    if (length == 0) {
      out += "\xef\xbf\xbd";
      i += 1;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  return out;
}

}  // namespace pallascope::host
