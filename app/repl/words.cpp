#include "app/repl/words.h"

#include <algorithm>
#include <cctype>

namespace pallascope::repl {
namespace {

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (blank(text.front()) || text.front() == '\n')) text.remove_prefix(1);
  while (!text.empty() && (blank(text.back()) || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

std::string_view first_word(std::string_view line) {
  line = trimmed(line);
  std::size_t end = 0;
  while (end < line.size() && !blank(line[end]) && line[end] != '\n') ++end;
  return line.substr(0, end);
}

/// The end of the command that starts at `from`: a `;` or newline outside quotes. A `#` that begins a word starts a
/// comment to the end of the line.
std::size_t command_end(std::string_view text, std::size_t from, std::size_t& content_end) {
  char quote = 0;
  content_end = std::string_view::npos;
  for (std::size_t k = from; k < text.size(); ++k) {
    const char c = text[k];
    if (content_end != std::string_view::npos) {  // inside a comment
      if (c == '\n') return k;
      continue;
    }
    if (c == '\\' && quote != '\'' && k + 1 < text.size()) {
      ++k;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == ';' || c == '\n') {
      content_end = k;
      return k;
    } else if (c == '#' && (k == from || blank(text[k - 1]))) {
      content_end = k;
    }
  }
  if (content_end == std::string_view::npos) content_end = text.size();
  return text.size();
}

/// The end of the Python block that starts at `from`: the line before the first empty one.
std::size_t block_end(std::string_view text, std::size_t from) {
  while (from < text.size()) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    if (trimmed(text.substr(from, end - from)).empty()) return from;
    from = end + 1;
  }
  return text.size();
}

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;  // a word has begun, though it may be empty as in ''
  char quote = 0;
  for (std::size_t k = 0; k < text.size(); ++k) {
    const char c = text[k];
    if (c == '\\' && quote != '\'' && k + 1 < text.size()) {
      word += text[++k];
      inside = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      inside = true;
    } else if (blank(c) || c == '\n') {
      if (inside) words.push_back(std::move(word));
      word.clear();
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (quote != 0) {
    return Diagnostic{DiagnosticKind::usage, std::string("the quote ") + quote + " is not closed",
                      std::string(text), "close it, or put a backslash before it"};
  }
  if (inside) words.push_back(std::move(word));
  return words;
}

std::vector<std::string> split_commands(std::string_view text, bool python_lines) {
  std::vector<std::string> commands;
  std::size_t at = 0;
  while (at < text.size()) {
    while (at < text.size() && (blank(text[at]) || text[at] == '\n' || text[at] == ';')) ++at;
    if (at >= text.size()) break;
    const std::size_t line_end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, line_end - at);
    if (is_python(line) && opens_block(line)) {
      const std::size_t end = block_end(text, at);
      commands.emplace_back(trimmed(text.substr(at, end - at)));
      at = end;
      continue;
    }
    if (python_lines && is_python(line)) {
      commands.emplace_back(trimmed(line));
      at = line_end + 1;
      continue;
    }
    std::size_t content_end = 0;
    const std::size_t end = command_end(text, at, content_end);
    const std::string_view command = trimmed(text.substr(at, content_end - at));
    if (!command.empty()) commands.emplace_back(command);
    at = end + 1;
  }
  return commands;
}

bool is_python(std::string_view line) {
  const std::string_view word = first_word(line);
  return word == "def" || word == "class" || word == "import" || word == "from" || word == "py" ||
         word.starts_with('@');
}

bool opens_block(std::string_view line) {
  const std::string_view text = trimmed(line), word = first_word(line);
  if (word.starts_with('@') || text == "py") return true;
  // `def f(x): return x` in one line may still be followed by nothing: only a colon at the end asks for more.
  return text.ends_with(':');
}

std::string python_text(std::string_view line) {
  std::string_view text = trimmed(line);
  if (first_word(text) == "py") {
    text.remove_prefix(2);
    // A block under a bare `py` keeps its lines' indentation.
    if (!text.empty() && text.front() == '\n') return std::string(text.substr(1));
    text = trimmed(text);
  }
  return std::string(text);
}

std::string quote_word(std::string_view word) {
  std::string result;
  for (const char c : word) {
    if (blank(c) || c == ';' || c == '\'' || c == '"' || c == '\\' || c == '#') result += '\\';
    result += c;
  }
  return result.empty() ? "''" : result;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
    above = row;
  }
  return above[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance =
        !word.empty() && candidate.starts_with(word) ? 0 : edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace pallascope::repl
