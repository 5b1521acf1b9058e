// The two texts in a node's metadata that torch.export writes for people: stack trace and module stack.
#include <algorithm>
#include <charconv>

#include "core/trace/pt2_graph.h"

namespace pallascope::trace {
namespace {

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// `File "m.py", line 3, in f` as a frame without code.
std::optional<Frame> parse_file_line(std::string_view line) {
  constexpr std::string_view kStart = "File \"", kLine = "\", line ", kIn = ", in ";
  if (!line.starts_with(kStart)) return std::nullopt;
  line.remove_prefix(kStart.size());
  const std::size_t quote = line.rfind(kLine);
  if (quote == std::string_view::npos) return std::nullopt;
  Frame frame;
  frame.file = line.substr(0, quote);
  line.remove_prefix(quote + kLine.size());
  const auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), frame.line);
  if (code != std::errc()) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (line.starts_with(kIn)) frame.function = line.substr(kIn.size());
  return frame;
}

/// Splits at commas outside of brackets: a module's key may be `L['self'].h[slice(0, 2)]`.
std::vector<std::string_view> split_entry(std::string_view entry) {
  std::vector<std::string_view> parts;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i < entry.size(); ++i) {
    const char c = entry[i];
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == ',' && depth == 0) {
      parts.push_back(entry.substr(start, i - start));
      start = i + 1;
    }
  }
  parts.push_back(entry.substr(start));
  return parts;
}

std::string clean_path(std::string_view path) {
  for (const std::string_view prefix : {"L['self']", "L[\"self\"]", "L__self__", "self"}) {
    if (!path.starts_with(prefix)) continue;
    const std::string_view rest = path.substr(prefix.size());
    // `selfattention` is a name of its own; after `L__self__` anything may follow directly.
    if (prefix == "self" && !rest.empty() && rest[0] != '.' && rest[0] != '[') continue;
    path = rest;
    break;
  }
  std::string text;
  for (const char c : path) {
    // Dynamo writes `h[0]` and `_modules['h']` where the parameter's name has `h.0` and `h`.
    if (c == '[')
      text += '.';
    else if (c != ']' && c != '\'' && c != '"')
      text += c;
  }
  for (std::size_t at = 0; (at = text.find("_modules.", at)) != std::string::npos;)
    text.erase(at, std::string_view("_modules.").size());
  while (text.starts_with('.')) text.erase(0, 1);
  // The second call of a module is `l1@1`; the module is the same.
  if (const std::size_t at = text.rfind('@');
      at != std::string::npos && at + 1 < text.size() &&
      std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at) + 1, text.end(),
                  [](char c) { return c >= '0' && c <= '9'; }))
    text.erase(at);
  return text;
}

}  // namespace

std::vector<Frame> parse_stack_trace(std::string_view text) {
  std::vector<Frame> frames;
  bool code_next = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (std::optional<Frame> frame = parse_file_line(line)) {
      frames.push_back(std::move(*frame));
      code_next = true;
    } else if (code_next && !line.empty()) {
      // Further lines are Python's marks under the line (^^^^), or the rest of a long statement.
      frames.back().code = line;
      code_next = false;
    }
  }
  return frames;
}

std::pair<std::string, std::string> parse_module_stack(std::string_view text) {
  const std::size_t semicolon = text.rfind(';');
  const std::string_view entry = semicolon == std::string_view::npos ? text : text.substr(semicolon + 1);
  const std::vector<std::string_view> parts = split_entry(entry);
  if (parts.size() != 3) return {};
  const std::size_t dot = parts[2].rfind('.');
  return {clean_path(parts[1]),
          std::string(dot == std::string_view::npos ? parts[2] : parts[2].substr(dot + 1))};
}

}  // namespace pallascope::trace
