#include "core/report/format.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace pallascope::report {

std::string id_text(trace::NodeId id) { return fmt::format("n{}", id.value); }
std::string id_text(loop::BufferId id) { return fmt::format("b{}", id.value); }
std::string id_text(schedule::KernelId id) { return fmt::format("k{}", id.value); }
std::string id_text(schedule::DecisionId id) { return fmt::format("d{}", id.value); }

std::string bytes_text(std::int64_t bytes) {
  static constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  std::string number = fmt::format("{:.1f}", value);
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return number + " " + units[unit];
}

std::string count_text(std::int64_t count) {
  std::string digits = fmt::format("{}", count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string plural(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count_text(count), noun, count == 1 ? "" : "s");
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string snake(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), ' ', '_');
  return text;
}

std::string spaced(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::size_t display_width(std::string_view text) {
  // A byte that continues a code point starts with the bits 10.
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(std::string_view text, std::size_t width) {
  std::string result(text);
  const std::size_t taken = display_width(text);
  if (taken < width) result.append(width - taken, ' ');
  return result;
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t k = 0; k < row.size(); ++k) widths[k] = std::max(widths[k], display_width(row[k]));
  }
  std::string result;
  for (const auto& row : rows_) {
    std::string line = indent_;
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (widths[k] == 0) continue;
      line += padded(row[k], widths[k]) + "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  }
  return result;
}

std::string shape_text(DType dtype, const std::vector<std::int64_t>& sizes) {
  return fmt::format("{}[{}]", dtype_name(dtype), fmt::join(sizes, ","));
}

std::string axes_text(const index::Context& context, const std::vector<index::AxisId>& axes) {
  std::vector<std::string> parts;
  for (const index::AxisId id : axes) {
    const index::Axis& axis = context.axis(id);
    parts.push_back(fmt::format("{} < {}", axis.name, axis.extent));
  }
  return join(parts, ", ");
}

std::string place_text(const trace::Node& node) {
  const trace::Frame* frame = node.user_frame();
  if (frame == nullptr) return "";
  const std::size_t slash = frame->file.find_last_of('/');
  return fmt::format("{}:{}", slash == std::string::npos ? frame->file : frame->file.substr(slash + 1),
                     frame->line);
}

std::string call_text(const trace::Graph& graph, const trace::Node& node) {
  std::vector<std::string> arguments;
  for (const trace::Argument& argument : node.args) arguments.push_back(trace::to_string(graph, argument));
  for (const auto& [name, argument] : node.kwargs) {
    arguments.push_back(name + "=" + trace::to_string(graph, argument));
  }
  return fmt::format("{}({})", node.target, fmt::join(arguments, ", "));
}

std::string outputs_text(const trace::Graph& graph, const trace::Node& node) {
  std::vector<std::string> parts;
  for (const trace::ValueId id : node.outputs) {
    const auto& tensor = graph.values[id].tensor;
    parts.push_back(tensor ? trace::to_string(*tensor) : "None");
  }
  return join(parts, ", ");
}

}  // namespace pallascope::report
