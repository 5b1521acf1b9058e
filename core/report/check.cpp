#include "core/report/check.h"

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

}  // namespace

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
      if (failed) {
        const std::string mode = text_of(field(row, "worst_mode"));
        if (const Json& reasons = field(figures, "reasons"); reasons.is_array()) {
          for (const Json& reason : reasons)
            more += fmt::format("      {}{}\n", mode.empty() ? "" : mode + ": ", text_of(reason));
        }
        if (const std::string first = element_text(field(figures, "first")); !first.empty() && !full) {
          more += fmt::format("      first at {}\n", first);
        }
      }
      if (full) more += full_text(row);
      below.push_back(more);
    }
  }
  // All rows are laid out together, then what belongs under each is put there.
  Table table;
  for (const auto& row : cells) table.add(row);
  std::string text, rest = table.text();
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
