#include "core/report/check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/report/format.h"

namespace pallascope::report {
namespace {

const Json nothing;

const Json& field(const Json& object, const char* key) {
  if (!object.is_object()) return nothing;
  const auto at = object.find(key);
  return at == object.end() ? nothing : *at;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

std::string sizes_text(const Json& value) {
  if (!value.is_array()) return "[?]";
  std::vector<std::string> sizes;
  for (const Json& size : value) sizes.push_back(text_of(size));
  return "[" + join(sizes, ",") + "]";
}

std::string closeness_text(const Json& figures) {
  const Json& close = field(figures, "as_close_as_eager");
  if (!close.is_boolean()) return "";
  return close.get<bool>() ? "as close to f64 as eager" : "further from f64 than eager";
}

std::string place_text(const Json& result) {
  std::vector<std::string> parts;
  if (const std::string platform = text_of(field(result, "platform")); !platform.empty())
    parts.push_back(platform);
  if (const std::string jax = text_of(field(result, "jax")); !jax.empty()) parts.push_back("jax " + jax);
  if (const Json& interpret = field(result, "interpret"); interpret.is_boolean() && interpret.get<bool>())
    parts.push_back("interpret");
  const std::string host = text_of(field(result, "host"));
  return (host.empty() ? "local" : host) + (parts.empty() ? "" : " (" + join(parts, ", ") + ")");
}

std::string seconds_text(const Json& result) {
  const Json& seconds = field(result, "seconds");
  return seconds.is_number() ? fmt::format(" in {:.1f} s", seconds.get<double>()) : "";
}

/// The figures of a row's worse mode.
const Json& worst_figures(const Json& row) {
  const Json& modes = field(row, "modes");
  const std::string worst = text_of(field(row, "worst_mode"));
  if (const Json& figures = field(modes, worst.c_str()); figures.is_object()) return figures;
  if (modes.is_object() && !modes.empty()) return modes.begin().value();
  return row;  // a host that compares one way only puts the figures into the row itself
}

/// All the digits that tell two elements apart.
std::string exact_text(const Json& value) {
  return value.is_number_float() ? fmt::format("{:.9g}", value.get<double>()) : figure_text(value);
}

/// A count that the host gives as a float, since ULP distances go beyond 64 bits.
std::string whole_text(const Json& value) {
  if (!value.is_number_float() || value.get<double>() > 1e15) return figure_text(value);
  return count_text(static_cast<std::int64_t>(value.get<double>()));
}

std::string element_text(const Json& element) {
  if (!element.is_object()) return "";
  return fmt::format("{} ours {} eager {}", sizes_text(field(element, "index")),
                     exact_text(field(element, "ours")), exact_text(field(element, "eager")));
}

std::string full_text(const Json& row) {
  const Json& modes = field(row, "modes");
  if (!modes.is_object()) return "";
  Table rows("      ");
  for (const auto& [mode, figures] : modes.items()) {
    const auto add = [&](const char* name, const std::string& value) {
      if (!value.empty()) rows.add({mode, name, value});
    };
    add("max abs", figure_text(field(figures, "max_abs")));
    add("max rel", figure_text(field(figures, "max_rel")));
    if (!field(figures, "max_ulp").is_null()) add("max ulp", whole_text(field(figures, "max_ulp")));
    if (!field(figures, "rmse").is_null()) {
      add("rmse against f64", fmt::format("ours {}, eager {}", figure_text(field(figures, "rmse")),
                                          figure_text(field(figures, "rmse_eager"))));
    }
    if (field(figures, "nan").is_number()) {
      add("NaN, infinities", fmt::format("ours {} and {}, eager {} and {}", text_of(field(figures, "nan")),
                                         text_of(field(figures, "inf")), text_of(field(figures, "nan_eager")),
                                         text_of(field(figures, "inf_eager"))));
    }
    if (field(figures, "mismatched").is_number()) {
      add("outside tolerance", fmt::format("{} of {} elements", text_of(field(figures, "mismatched")),
                                           text_of(field(figures, "elements"))));
    }
    if (const Json& flushed = field(figures, "flushed"); flushed.is_number() && flushed.get<double>() > 0) {
      add("subnormals flushed", text_of(flushed));
    }
    if (const Json& equal = field(figures, "strides_equal"); equal.is_boolean() && !equal.get<bool>()) {
      add("strides", fmt::format("{}, eager's are {}", sizes_text(field(figures, "strides")),
                                 sizes_text(field(figures, "expected_strides"))));
    }
    add("first wrong", element_text(field(figures, "first")));
    add("worst", element_text(field(figures, "worst")));
    if (const Json& tolerance = field(figures, "tolerance"); tolerance.is_object()) {
      add("tolerance", fmt::format("rtol {}, atol {}", figure_text(field(tolerance, "rtol")),
                                   figure_text(field(tolerance, "atol"))));
    }
  }
  return rows.text();
}

/// What a terminal of 80 columns has room for, and 16 lines of it.
constexpr std::size_t most_lines = 16, most_columns = 64, most_bar = 40;
constexpr std::string_view shades[] = {" ", "░", "▒", "▓", "█"};
constexpr std::size_t shade_count = std::size(shades);

std::size_t size_of(const Json& object, const char* key) {
  const Json& value = field(object, key);
  return value.is_number_integer() && value >= 0 ? value.get<std::size_t>() : 0;
}

std::string repeated(std::string_view sign, std::size_t count) {
  std::string text;
  for (std::size_t k = 0; k < count; ++k) text += sign;
  return text;
}

/// What one character of a picture stands for: the largest difference, and whether a NaN or infinity is on one side.
struct Cell {
  double largest = 0;
  bool mismatch = false;
};

/// The cells of a picture, made fewer by taking the larger ones; empty when `picture` is none.
std::vector<std::vector<Cell>> grid_of(const Json& picture) {
  const std::size_t rows = size_of(picture, "rows"), cols = size_of(picture, "cols");
  const Json& cells = field(picture, "cells");
  if (rows == 0 || cols == 0 || !cells.is_array() || cells.size() / rows != cols || cells.size() % rows != 0)
    return {};
  const std::size_t lines = std::min(rows, most_lines), columns = std::min(cols, most_columns);
  std::vector<std::vector<Cell>> grid(lines, std::vector<Cell>(columns));
  // Row r of the cells is in line l when l * rows / lines <= r < (l + 1) * rows / lines.
  const auto at = [&](std::size_t cell) -> Cell& {
    const std::size_t r = cell / cols, c = cell % cols;
    return grid[((r + 1) * lines - 1) / rows][((c + 1) * columns - 1) / cols];
  };
  for (std::size_t k = 0; k < cells.size(); ++k) {
    if (cells[k].is_number()) at(k).largest = std::max(at(k).largest, cells[k].get<double>());
  }
  if (const Json& nan = field(picture, "nan"); nan.is_array()) {
    for (const Json& k : nan) {
      if (k.is_number_integer() && k >= 0 && k.get<std::size_t>() < cells.size())
        at(k.get<std::size_t>()).mismatch = true;
    }
  }
  return grid;
}

/// Where each shade begins, from the smallest difference to the largest in equal steps of the logarithm. One shade, the
/// darkest, when they are within a factor of 2: less is no range to tell apart.
struct Scale {
  double low = 0, high = 0;
  [[nodiscard]] bool one() const { return high <= 2 * low; }
  [[nodiscard]] std::size_t shade(double value) const {
    if (one()) return shade_count - 1;
    const double part = std::log(value / low) / std::log(high / low);
    // A value that a shade begins at is in it, whatever the logarithms' last digit.
    return std::min(shade_count - 1,
                    static_cast<std::size_t>(part * static_cast<double>(shade_count) + 1e-9));
  }
  [[nodiscard]] double begin(std::size_t shade) const {
    return low * std::pow(high / low, static_cast<double>(shade) / static_cast<double>(shade_count));
  }
};

/// `1e-07`, also for one digit: `1e+00`.
std::string decade_text(std::int64_t exponent) { return fmt::format("1e{:+03}", exponent); }

bool differs(const std::vector<std::vector<Cell>>& grid) {
  return std::any_of(grid.begin(), grid.end(), [](const auto& line) {
    return std::any_of(line.begin(), line.end(), [](const Cell& c) { return c.largest > 0 || c.mismatch; });
  });
}

/// The picture and the histogram of a row, with the mode that they are of.
std::string looks_text(const Json& figures, const std::string& mode) {
  const std::string indent = "      ";
  const Json& picture = field(figures, "picture");
  if (!picture.is_object()) return "";
  const std::string text = picture_text(picture, indent);
  if (!differs(grid_of(picture))) return text;
  return fmt::format("{}{}|ours - eager|, {}\n", indent, mode.empty() ? "" : mode + ": ",
                     text_of(field(picture, "axes"))) +
         text + histogram_text(field(figures, "histogram"), indent);
}

std::string failure_text(const Json& figures, const std::string& mode, bool with_first) {
  std::string text;
  if (const Json& reasons = field(figures, "reasons"); reasons.is_array()) {
    for (const Json& reason : reasons)
      text += fmt::format("      {}{}\n", mode.empty() ? "" : mode + ": ", text_of(reason));
  }
  if (const std::string first = element_text(field(figures, "first")); !first.empty() && with_first)
    text += fmt::format("      first at {}\n", first);
  return text;
}

/// `k3` or `aten.mm.default`: who writes the buffer of a row.
std::string writer_text(const Json& row) {
  const std::string kernel = text_of(field(row, "kernel"));
  return kernel.empty() ? text_of(field(row, "call")) : kernel;
}

std::string holds_text(const Json& row) {
  const std::string node = text_of(field(row, "node_name"));
  const bool several = field(row, "output").is_number() && field(row, "output") != 0;
  return fmt::format("{} {}", text_of(field(row, "node")),
                     several ? fmt::format("{}[{}]", node, text_of(field(row, "output"))) : node);
}

std::string shape_of(const Json& row) {
  return text_of(field(row, "expected_dtype")) + sizes_text(field(row, "expected_sizes"));
}

/// The first divergence, then each buffer in execution order, then how many hold nothing to compare.
std::string buffers_text(const Json& result) {
  const Json& rows = field(result, "buffers");
  if (!rows.is_array()) return "";
  std::string text;
  if (const Json& first = field(result, "first_divergence"); first.is_object()) {
    text += fmt::format("first divergence: {} {} = {}, written by {}, max abs {}\n",
                        text_of(field(first, "buffer")), shape_of(first), holds_text(first),
                        writer_text(first), figure_text(field(first, "max_abs"))) +
            failure_text(first, "", true) + looks_text(first, "debug");
  }
  Table table("  ");
  std::size_t failed = 0, compared = 0;
  for (const Json& row : rows) {
    if (!row.is_object()) continue;
    const bool bad = text_of(field(row, "verdict")) == "failed";
    ++compared;
    if (bad) ++failed;
    table.add({writer_text(row), text_of(field(row, "buffer")), holds_text(row), shape_of(row),
               "max abs " + figure_text(field(row, "max_abs")),
               "max rel " + figure_text(field(row, "max_rel")), closeness_text(row), bad ? "✗" : "✓"});
  }
  text += fmt::format("{} compared in execution order, debug{}\n{}",
                      plural(static_cast<std::int64_t>(compared), "buffer"),
                      failed == 0 ? "" : fmt::format(", {} outside of the tolerance", failed), table.text());
  if (const Json& skipped = field(result, "buffers_skipped"); skipped.is_array() && !skipped.empty()) {
    std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
    for (const Json& row : skipped) {
      const std::string why = text_of(field(row, "why"));
      auto at = std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == why; });
      if (at == reasons.end()) at = reasons.insert(at, {why, {}});
      at->second.push_back(text_of(field(row, "buffer")));
    }
    for (const auto& [why, names] : reasons) {
      text += fmt::format("  {} not compared, each {}: {}\n", names.size(), why, join(names, " "));
    }
  }
  return text + "outputs\n";
}

}  // namespace

std::string picture_text(const Json& picture, const std::string& indent) {
  if (!picture.is_object()) return "";
  const std::vector<std::vector<Cell>> grid = grid_of(picture);
  if (grid.empty()) return indent + "no picture: there are no elements\n";
  Scale scale{std::numeric_limits<double>::infinity(), 0};
  bool zero = false, mismatch = false;
  for (const auto& line : grid) {
    for (const Cell& cell : line) {
      mismatch = mismatch || cell.mismatch;
      if (cell.largest > 0) {
        scale.low = std::min(scale.low, cell.largest);
        scale.high = std::max(scale.high, cell.largest);
      } else {
        zero = zero || !cell.mismatch;
      }
    }
  }
  std::string both;
  if (const Json& nan = field(picture, "both_nan"); nan.is_array() && !nan.empty())
    both = " (NaN on both sides in places)";
  if (!differs(grid)) return fmt::format("{}no picture: every element is equal{}\n", indent, both);
  std::string text = fmt::format("{}┌{}┐\n", indent, repeated("─", grid[0].size()));
  for (const auto& line : grid) {
    text += indent + "│";
    for (const Cell& cell : line) {
      text += cell.mismatch      ? "!"
              : cell.largest > 0 ? shades[scale.shade(cell.largest)]
                                 : std::string_view("·");
    }
    text += "│\n";
  }
  text += fmt::format("{}└{}┘\n", indent, repeated("─", grid[0].size()));
  std::vector<std::string> signs, remarks;
  if (zero) signs.emplace_back("· equal");
  if (scale.high > 0 && scale.one()) {
    signs.push_back(scale.low == scale.high ? fmt::format("█ {:.2g}", scale.high)
                                            : fmt::format("█ {:.2g} to {:.2g}", scale.low, scale.high));
  } else if (scale.high > 0) {
    for (std::size_t k = 0; k < shade_count; ++k)
      signs.push_back(fmt::format("{} {:.1g}", k == 0 ? "blank" : shades[k], scale.begin(k)));
    signs.back() += fmt::format(" up to {:.2g}", scale.high);
    remarks.emplace_back("a shade begins at its number");
  }
  text += fmt::format("{}{}\n", indent, join(signs, "  "));
  if (mismatch) text += indent + "! NaN or infinity on one side\n";
  const auto each = [](std::size_t all, std::size_t shown) {
    return count_text(static_cast<std::int64_t>((all + shown - 1) / shown));
  };
  const std::string high = each(size_of(picture, "of_rows"), grid.size()),
                    wide = each(size_of(picture, "of_cols"), grid[0].size());
  if (high != "1" || wide != "1")
    remarks.push_back(fmt::format("each place is the largest of up to {} x {} elements", high, wide));
  if (!both.empty()) remarks.push_back(both.substr(2, both.size() - 3));
  return remarks.empty() ? text : fmt::format("{}{}\n", text + indent, join(remarks, "; "));
}

std::string histogram_text(const Json& histogram, const std::string& indent) {
  if (!histogram.is_object()) return "";
  struct Row {
    std::string name;
    std::int64_t count = 0;
    bool bar = true;
  };
  const auto count_of = [&](const char* key) {
    const Json& value = field(histogram, key);
    return value.is_number_integer() ? value.get<std::int64_t>() : 0;
  };
  std::vector<Row> rows;
  if (count_of("zero") > 0) rows.push_back({"equal", count_of("zero"), false});
  if (count_of("both_nan") > 0) rows.push_back({"NaN on both sides", count_of("both_nan"), false});
  std::int64_t most = 0;
  const Json& counts = field(histogram, "counts");
  if (counts.is_array() && field(histogram, "first_exponent").is_number_integer()) {
    std::int64_t exponent = count_of("first_exponent");
    for (const Json& value : counts) {
      const std::int64_t count = value.is_number_integer() ? value.get<std::int64_t>() : 0;
      most = std::max(most, count);
      // Empty decades between others keep their row, so that the bars stand as far apart as the numbers; but a gap
      // of hundreds (a subnormal number beside a large one) would hide both.
      if (count > 0 || counts.size() <= 24)
        rows.push_back({decade_text(exponent) + ".." + decade_text(exponent + 1), count});
      ++exponent;
    }
  }
  if (count_of("nan") > 0) rows.push_back({"NaN or infinity on one side", count_of("nan"), false});
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, display_width(row.name));
  std::string text;
  for (const Row& row : rows) {
    std::string bar;
    if (row.bar && row.count > 0) {
      // In eighths of a character, so that a small count still shows as one.
      constexpr std::string_view eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
      const double share = static_cast<double>(row.count) / static_cast<double>(most);
      const auto parts = std::max<std::size_t>(1, static_cast<std::size_t>(share * most_bar * 8));
      bar = repeated("█", parts / 8) + std::string(eighths[parts % 8]) + " ";
    }
    text += fmt::format("{}{}  {}{}\n", indent, padded(row.name, width), bar, count_text(row.count));
  }
  return text;
}

std::string figure_text(const Json& value) {
  if (value.is_null()) return "–";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    return number == 0 ? "0" : fmt::format("{:.2g}", number);
  }
  return value.dump();
}

std::string check_text(const Json& result, std::size_t decision, bool full) {
  std::vector<std::vector<std::string>> cells;
  std::vector<std::string> below;
  const Json& outputs = field(result, "outputs");
  if (outputs.is_array()) {
    for (const Json& row : outputs) {
      const Json& figures = worst_figures(row);
      const bool failed = text_of(field(row, "verdict")) == "failed";
      const bool argument = text_of(field(row, "kind")) == "argument";
      std::string name = text_of(field(row, "name"));
      if (!argument && field(row, "index").is_number())
        name = fmt::format("out{} {}", text_of(field(row, "index")), name);
      const bool shaped = !field(row, "dtype").is_null();
      cells.push_back({name, argument ? "argument" : "",
                       shaped ? text_of(field(row, "dtype")) + sizes_text(field(row, "sizes")) : "None",
                       shaped ? "max abs " + figure_text(field(figures, "max_abs")) : "",
                       shaped ? "max rel " + figure_text(field(figures, "max_rel")) : "",
                       closeness_text(figures), failed ? "✗" : "✓"});
      std::string more;
      const std::string mode = text_of(field(row, "worst_mode"));
      if (failed) more += failure_text(figures, mode, !full);
      more += looks_text(figures, mode);
      if (full) more += full_text(row);
      below.push_back(more);
    }
  }
  // All rows are laid out together, then what belongs under each is put there.
  Table table;
  for (const auto& row : cells) table.add(row);
  std::string text = buffers_text(result), rest = table.text();
  for (const std::string& more : below) {
    const std::size_t end = rest.find('\n');
    text += rest.substr(0, end + 1) + more;
    rest.erase(0, end + 1);
  }
  if (cells.empty()) text += "the graph has no outputs to compare\n";
  if (const std::string why = text_of(field(result, "float64")); !why.empty())
    text += fmt::format("no float64 reference: {}\n", why);
  if (const Json& notes = field(result, "notes"); notes.is_array()) {
    for (const Json& note : notes) text += fmt::format("note: {}\n", text_of(note));
  }
  if (const std::string inputs = text_of(field(result, "inputs_made")); !inputs.empty() && full)
    text += fmt::format("inputs: {}\n", inputs);
  std::string verdict = text_of(field(result, "verdict"));
  if (verdict.empty()) verdict = "ran";
  std::string modes;
  if (const Json& by_mode = field(result, "seconds_by_mode"); by_mode.is_object() && by_mode.size() > 1) {
    std::vector<std::string> names;
    for (const auto& [mode, seconds] : by_mode.items()) names.push_back(mode);
    modes = ", " + join(names, " and ");
  }
  return text + fmt::format("{} at decision {} on {}{}{}\n", verdict,
                            count_text(static_cast<std::int64_t>(decision)), place_text(result),
                            seconds_text(result), modes);
}

std::string run_text(const Json& result, std::size_t decision) {
  Table table;
  const Json& outputs = field(result, "outputs");
  if (outputs.is_array()) {
    for (const Json& row : outputs) {
      if (field(row, "dtype").is_null()) {
        table.add({text_of(field(row, "name")), "None"});
        continue;
      }
      std::vector<std::string> first;
      std::int64_t elements = 1;
      if (const Json& sizes = field(row, "sizes"); sizes.is_array()) {
        for (const Json& size : sizes) elements *= size.is_number_integer() ? size.get<std::int64_t>() : 1;
      }
      if (const Json& values = field(row, "first"); values.is_array()) {
        for (const Json& value : values)
          first.push_back(value.is_number_float() ? fmt::format("{:.4g}", value.get<double>())
                                                  : text_of(value));
      }
      const bool ranged = !field(row, "min").is_null();
      std::string odd;
      if (const Json& nan = field(row, "nan"); nan.is_number() && nan.get<double>() > 0)
        odd += text_of(nan) + " NaN ";
      if (const Json& inf = field(row, "inf"); inf.is_number() && inf.get<double>() > 0)
        odd += text_of(inf) + " infinite";
      table.add({text_of(field(row, "name")), text_of(field(row, "dtype")) + sizes_text(field(row, "sizes")),
                 ranged
                     ? fmt::format("{} to {}", figure_text(field(row, "min")), figure_text(field(row, "max")))
                     : "",
                 ranged ? "mean " + figure_text(field(row, "mean")) : "", odd,
                 first.empty()
                     ? ""
                     : join(first, " ") + (elements > static_cast<std::int64_t>(first.size()) ? " …" : "")});
    }
  }
  std::string text = table.text();
  if (table.empty()) text = "the graph has no outputs\n";
  return text + fmt::format("ran at decision {} on {}{}\n", count_text(static_cast<std::int64_t>(decision)),
                            place_text(result), seconds_text(result));
}

}  // namespace pallascope::report
