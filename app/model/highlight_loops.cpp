#include "app/model/highlight_loops.h"

namespace pallascope::model {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class LineReader {
 public:
  explicit LineReader(std::string_view line) : line_(line) {}

  std::vector<SyntaxSpan> read() {
    const std::size_t start = line_.find_first_not_of(' ');
    if (start == std::string_view::npos) return {};
    at_ = start;
    const bool value = line_[start] == '%', store = line_.substr(start).starts_with("store ");
    if (!value && !store) read_head();
    bool operation = value || store;  // the next word that is no value is one
    while (at_ < line_.size()) {
      const char c = line_[at_];
      if (c == '%') {
        const std::size_t end = word_end(at_ + 1);
        add(end, SyntaxKind::parameter);
      } else if (c == '[') {
        ++depth_, ++at_;
      } else if (c == ']') {
        --depth_, ++at_;
      } else if (c == ':' && depth_ == 0) {
        add(line_.size(), SyntaxKind::comment);
      } else if (is_digit(c)) {
        add(number_end(at_), SyntaxKind::number);
      } else if (is_word(c)) {
        const std::size_t end = word_end(at_);
        const std::string_view word = line_.substr(at_, end - at_);
        if (depth_ > 0) {
          add(end, SyntaxKind::type);
        } else if (operation) {
          operation = false;
          index_value_ = word == "index";
          add(end, word == "load" || word == "store" ? SyntaxKind::keyword : SyntaxKind::call);
          constant_ = word == "constant";
        } else if (word == "over") {
          add(end, SyntaxKind::keyword);
          over_ = true;
        } else if (over_ || index_value_) {
          add(end, SyntaxKind::type);
        } else if (constant_) {
          add(end, SyntaxKind::constant);
        } else {
          at_ = end;
        }
      } else {
        ++at_;
      }
    }
    return std::move(spans_);
  }

 private:
  void add(std::size_t end, SyntaxKind kind) {
    spans_.push_back({static_cast<std::uint32_t>(at_), static_cast<std::uint32_t>(end), kind});
    at_ = end;
  }
  [[nodiscard]] std::size_t word_end(std::size_t from) const {
    while (from < line_.size() && is_word(line_[from])) ++from;
    return from;
  }
  /// Digits, a fraction, an exponent with its sign.
  [[nodiscard]] std::size_t number_end(std::size_t from) const {
    while (from < line_.size() &&
           (is_word(line_[from]) || ((line_[from] == '-' || line_[from] == '+') &&
                                     (line_[from - 1] == 'e' || line_[from - 1] == 'E'))))
      ++from;
    return from;
  }

  /// `k1:`, `name: i0 < 2, r1 < 64 (reduced)`, `name: buf3 = library aten.mm.default(...)`.
  void read_head() {
    const std::size_t colon = line_.find(':', at_);
    if (colon == std::string_view::npos) return;
    add(colon, SyntaxKind::function);
    ++at_;
    const std::size_t equal = line_.find(" = ", at_);
    if (equal != std::string_view::npos) {  // a call
      at_ = equal + 3;
      const std::size_t end = word_end(at_);
      add(end, SyntaxKind::keyword);
      while (at_ < line_.size() && line_[at_] == ' ') ++at_;
      if (const std::size_t name = word_end(at_); name > at_) add(name, SyntaxKind::call);
      return;
    }
    while (at_ < line_.size()) {
      const char c = line_[at_];
      if (c == '(') {
        const std::size_t close = line_.find(')', at_);
        add(close == std::string_view::npos ? line_.size() : close + 1, SyntaxKind::comment);
      } else if (is_digit(c)) {
        add(number_end(at_), SyntaxKind::number);
      } else if (is_word(c)) {
        add(word_end(at_), SyntaxKind::type);
      } else {
        ++at_;
      }
    }
  }

  std::string_view line_;
  std::vector<SyntaxSpan> spans_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool over_ = false, index_value_ = false, constant_ = false;
};

}  // namespace

std::vector<SyntaxSpan> highlight_loops(std::string_view line) { return LineReader(line).read(); }

}  // namespace pallascope::model
