// Room: codegen. Lines of Python with what each came from.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "core/codegen/module.h"

namespace pallascope::codegen {

/// Where text is written to.
using Out = fmt::memory_buffer;

inline void put(Out& out, std::string_view text) { out.append(text.data(), text.data() + text.size()); }

/// A growing text; every line carries its origin. Lines stand one after the other in one buffer, so that a line costs no
/// allocation of its own.
class Text {
 public:
  void line(std::string_view text, LineOrigin origin = {}) {
    put(buffer_, text);
    close(origin);
  }
  /// A line by a compiled format: `write(origin, FMT_COMPILE("{} = {}"), name, value)`.
  template <typename Format, typename... Arguments>
  void write(LineOrigin origin, const Format& format, const Arguments&... arguments) {
    fmt::format_to(fmt::appender(buffer_), format, arguments...);
    close(origin);
  }
  /// A line in parts: what is put into `open()` becomes a line at `close`.
  [[nodiscard]] Out& open() { return buffer_; }
  void close(LineOrigin origin = {}) {
    buffer_.push_back('\n');
    ends_.push_back(static_cast<std::uint32_t>(buffer_.size()));
    origins_.push_back(origin);
  }
  /// Adds text of several lines (a final newline is not a line of its own).
  void block(std::string_view text);
  void append(const Text& other);
  /// All of it, to be shared; the text is empty then.
  std::shared_ptr<const Piece> take();
  [[nodiscard]] int count() const { return static_cast<int>(ends_.size()); }
  /// The lines, each with its newline.
  [[nodiscard]] std::string_view text() const { return {buffer_.data(), buffer_.size()}; }
  [[nodiscard]] const std::vector<LineOrigin>& origins() const { return origins_; }

 private:
  Out buffer_;
  std::vector<std::uint32_t> ends_;
  std::vector<LineOrigin> origins_;
};

/// A shape within a format: `(8, 16)`, `(4,)`, `()`.
struct Tuple {
  const std::vector<std::int64_t>& shape;
};

}  // namespace pallascope::codegen

template <>
struct fmt::formatter<pallascope::codegen::Tuple> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(const pallascope::codegen::Tuple& tuple, Context& context) const {
    auto out = context.out();
    *out++ = '(';
    for (std::size_t k = 0; k < tuple.shape.size(); ++k) {
      if (k > 0) out = fmt::detail::write<char>(out, fmt::string_view(", "));
      out = fmt::detail::write<char>(out, tuple.shape[k]);
    }
    if (tuple.shape.size() == 1) *out++ = ',';
    *out++ = ')';
    return out;
  }
};
