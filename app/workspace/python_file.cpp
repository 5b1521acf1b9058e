#include "app/workspace/python_file.h"

#include <algorithm>
#include <cctype>
#include <fstream>

namespace pallascope::workspace {
namespace {

constexpr std::size_t most_bytes = 4 << 20;  // a larger file is data, whatever its name

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string name_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_name(text[end])) ++end;
  return std::string(text.substr(at, end - at));
}

/// What is between the parenthesis at `at` and its partner, blanks and newlines made one blank.
std::string in_parentheses(std::string_view text, std::size_t at) {
  std::string result;
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '(' || c == '[' || c == '{') {
      if (depth++ == 0) continue;
    } else if (c == ')' || c == ']' || c == '}') {
      if (--depth == 0) break;
    } else if (c == '#') {
      at = std::min(text.find('\n', at), text.size()) - 1;
      continue;
    }
    const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!blank)
      result += c;
    else if (!result.empty() && result.back() != ' ')
      result += ' ';
  }
  while (!result.empty() && (result.back() == ' ' || result.back() == ',')) result.pop_back();
  return result;
}

/// Behind the string that begins at `at`, which may be of three quotes.
std::size_t behind_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  if (text.substr(at, 3) == three) {
    const std::size_t end = text.find(three, at + 3);
    return end == std::string_view::npos ? text.size() : end + 3;
  }
  for (++at; at < text.size() && text[at] != quote && text[at] != '\n'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

}  // namespace

PythonFile python_definitions(std::string_view text) {
  PythonFile file;
  file.readable = true;
  bool line_start = true;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (line_start) {
      std::string_view rest = text.substr(at);
      if (rest.starts_with("async def ")) rest.remove_prefix(6);
      const bool function = rest.starts_with("def "), is_class = rest.starts_with("class ");
      if (function || is_class) {
        const std::size_t name_start =
            static_cast<std::size_t>(rest.data() - text.data()) + (function ? 4 : 6);
        const std::string name = name_at(text, name_start);
        const std::size_t open = name_start + name.size();
        const std::string inside = open < text.size() && text[open] == '(' ? in_parentheses(text, open) : "";
        if (function && name == "example_inputs") {
          file.has_inputs = true;
        } else if (!name.empty() && name[0] != '_' &&
                   (function || inside.find("Module") != std::string::npos)) {
          file.definitions.push_back({name, function ? inside : "", is_class});
        }
      } else if (rest.starts_with("INPUTS") && rest.size() > 6 && !is_name(rest[6])) {
        file.has_inputs = true;
      }
    }
    line_start = c == '\n';
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '"' || c == '\'') {
      at = behind_string(text, at);
      line_start = false;
    } else {
      ++at;
    }
  }
  return file;
}

PythonFile read_python_file(const std::string& path) {
  PythonFile file;
  std::ifstream stream(path, std::ios::binary);
  if (stream) {
    std::string text(most_bytes, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(stream.gcount()));
    file = python_definitions(text);
  }
  file.path = path;
  return file;
}

}  // namespace pallascope::workspace
