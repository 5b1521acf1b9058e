// Room: model. What each piece of a Python text is, so that a view can colour it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pallascope::model {

/// What a piece of source text is. Text outside of all spans is plain: names, brackets, commas.
enum class SyntaxKind : std::uint8_t {
  plain,  ///< never in a span
  comment,
  string,    ///< with its quotes and prefix; an f-string without what it interpolates
  number,    ///< without a sign
  constant,  ///< True, False, None, `...`, and names in capitals
  keyword,   ///< and, or, not, in and is too
  function,  ///< the name that a def introduces
  call,      ///< the name that is called; of a.b.c() only c
  builtin,   ///< a builtin function that is called
  decorator,
  type,       ///< the name that a class introduces, and names in annotations
  parameter,  ///< of a def or lambda, and the name of a keyword argument
  operator_,
};

/// Bytes begin .. end (exclusive) of one line.
struct SyntaxSpan {
  std::uint32_t begin = 0, end = 0;
  SyntaxKind kind = SyntaxKind::plain;
  bool operator==(const SyntaxSpan&) const = default;
};

/// Spans of each line, ascending and apart; one entry a line. Lines come without their line ends. A string
/// over several lines has a span in each of them. Broken or unfinished Python is highlighted as far as it can
/// be understood; no text is refused, and only one beyond 4 GiB gets no spans. May be called by several
/// threads at a time.
///
/// Takes about 10 ms for 1,000 lines: a text that changes while it is watched is better given to
/// PythonHighlighter.
[[nodiscard]] std::vector<std::vector<SyntaxSpan>> highlight_python(
    const std::vector<std::string_view>& lines);

/// Highlights what is looked at, and remembers it. The text is cut into pieces, one a statement of the module
/// (a long one into several); a piece is parsed when one of its lines is asked for, and a piece that the next
/// text has too is not parsed again. So a new text costs about 1 ms for 6,000 lines, and a screen of it
/// another 1 ms.
///
/// The spans are those of highlight_python() except next to a cut inside of a long statement. For one thread
/// at a time.
class PythonHighlighter {
 public:
  /// Pieces end after this many lines, at the first line that begins outside of a string.
  static constexpr std::size_t longest_piece = 200;

  /// Replaces the text; the lines are copied. References that line() gave are no longer valid.
  void set_lines(const std::vector<std::string_view>& lines);
  /// Lines of the text.
  [[nodiscard]] std::size_t size() const {
    return pieces_.empty() ? 0 : pieces_.back().first + pieces_.back().count;
  }
  /// Spans of line `index`; none if there is no such line.
  [[nodiscard]] const std::vector<SyntaxSpan>& line(std::size_t index);
  /// How many pieces were parsed since the beginning.
  [[nodiscard]] std::size_t parsed() const { return parsed_; }

 private:
  struct Piece {
    std::size_t first = 0, count = 0;  // lines
    std::string text;                  // each line with a line end
    std::vector<std::vector<SyntaxSpan>> spans;
    bool done = false;
  };
  std::vector<Piece> pieces_;
  std::size_t parsed_ = 0;
};

}  // namespace pallascope::model
