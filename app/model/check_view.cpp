#include "app/model/check_view.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "core/report/check.h"
#include "core/report/format.h"

namespace pallascope::model {
namespace {

using report::Json;

const Json& nothing() {
  static const Json null;
  return null;
}

const Json& field(const Json& object, const std::string& key) {
  if (!object.is_object()) return nothing();
  const auto at = object.find(key);
  return at == object.end() ? nothing() : *at;
}

/// The first of two names that is there.
const Json& either(const Json& object, const char* key, const char* other) {
  const Json& found = field(object, key);
  return found.is_null() ? field(object, other) : found;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_number() ? value.dump() : "";
}

/// A whole number held within what a tensor can have; `otherwise` for what is none.
std::int64_t whole(const Json& value, std::int64_t otherwise) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
               ? otherwise
               : static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float() && std::abs(value.get<double>()) < 9e15)
    return static_cast<std::int64_t>(value.get<double>());
  return otherwise;
}

/// A number, also as the text in which JSON has those that are not finite.
std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const std::string text = value.get<std::string>();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (text == "nan" || text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf" || text == "Infinity") return infinity;
  if (text == "-inf" || text == "-Infinity") return -infinity;
  return std::nullopt;
}

Figure figure(const Json& value, bool count = false) {
  Figure result;
  result.value = number_of(value);
  if (!result.value && !value.is_string()) return result;
  const bool exact =
      count && result.value && std::abs(*result.value) < 1e6 && *result.value == std::floor(*result.value);
  result.text =
      exact ? report::count_text(static_cast<std::int64_t>(*result.value)) : report::figure_text(value);
  return result;
}

std::string sizes_text(const Json& value) {
  if (!value.is_array()) return "[?]";
  std::vector<std::string> sizes;
  for (const Json& size : value) sizes.push_back(text_of(size));
  return "[" + report::join(sizes, ",") + "]";
}

std::string element_text(const Json& element) {
  if (!element.is_object()) return "";
  const auto exact = [](const Json& value) {
    return value.is_number_float() ? fmt::format("{:.9g}", value.get<double>()) : report::figure_text(value);
  };
  return fmt::format("{} ours {} eager {}", sizes_text(field(element, "index")),
                     exact(field(element, "ours")), exact(field(element, "eager")));
}

bool failed(const Json& object) { return text_of(field(object, "verdict")) == "failed"; }

CheckFigures figures(const std::string& mode, const Json& object) {
  CheckFigures f;
  f.mode = mode;
  f.failed = failed(object);
  f.max_abs = figure(field(object, "max_abs"));
  f.max_rel = figure(field(object, "max_rel"));
  f.ulp = figure(either(object, "max_ulp", "ulp"), true);
  f.rmse = figure(field(object, "rmse"));
  f.rmse_eager = figure(field(object, "rmse_eager"));
  if (const Json& close = field(object, "as_close_as_eager"); close.is_boolean())
    f.as_close = close.get<bool>();
  if (const Json& reasons = field(object, "reasons"); reasons.is_array()) {
    for (const Json& reason : reasons) f.reasons.push_back(text_of(reason));
  }
  f.first = element_text(field(object, "first"));
  f.worst = element_text(field(object, "worst"));
  if (const Json& wrong = field(object, "mismatched"); wrong.is_number())
    f.outside = fmt::format("{} of {}", report::count_text(whole(wrong, 0)),
                            report::count_text(whole(field(object, "elements"), 0)));
  if (const Json& tolerance = field(object, "tolerance"); tolerance.is_object())
    f.tolerance = fmt::format("rtol {}, atol {}", report::figure_text(field(tolerance, "rtol")),
                              report::figure_text(field(tolerance, "atol")));
  f.has_picture = field(object, "picture").is_object();
  f.has_histogram = field(object, "histogram").is_object();
  return f;
}

/// The number of an id, `12` of `b12`; -1 for anything else.
int id_number(const std::string& text, char kind) {
  if (text.size() < 2 || text[0] != kind) return -1;
  int number = -1;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

/// Takes ids from a field that is one, or an object with one.
void take_ids(CheckRow& row, const Json& value) {
  const std::string text = text_of(value.is_object() ? field(value, "id") : value);
  if (const int number = id_number(text, 'n'); number >= 0) row.node = trace::NodeId(number);
  if (const int number = id_number(text, 'b'); number >= 0) row.buffer = loop::BufferId(number);
}

CheckRow row_of(const session::Compilation& compilation, const Json& object, CheckRow::Kind list,
                std::size_t position) {
  CheckRow row;
  row.kind = list;
  row.position = position;
  if (list == CheckRow::Kind::output && text_of(field(object, "kind")) == "argument")
    row.kind = CheckRow::Kind::argument;
  const std::string name = text_of(field(object, "name"));
  row.name = name;
  const std::int64_t index = whole(field(object, "index"), -1);
  if (row.kind == CheckRow::Kind::output && index >= 0)
    row.name = fmt::format("out{}{}{}", index, name.empty() ? "" : " ", name);
  if (row.kind == CheckRow::Kind::argument && index >= 0 && index < 1'000'000)
    row.input = static_cast<int>(index);
  for (const char* key : {"id", "node", "buffer"}) take_ids(row, field(object, key));
  if (row.kind == CheckRow::Kind::buffer && row.name.empty() && row.buffer.valid())
    row.name = report::id_text(row.buffer);
  const trace::Graph& graph = compilation.graph();
  if (row.node.valid() && !graph.nodes.contains(row.node)) row.node = {};
  if (!row.node.valid() && row.kind != CheckRow::Kind::argument) {
    if (const auto found = graph.find_node(name)) row.node = *found;
  }
  if (row.kind == CheckRow::Kind::buffer) {
    // A buffer is named by its id and by the node whose value it holds.
    if (const std::string held = text_of(field(object, "node_name")); !held.empty() && row.buffer.valid()) {
      const std::int64_t output = whole(field(object, "output"), 0);
      row.name = fmt::format("{} {}{}", report::id_text(row.buffer), held,
                             output > 0 ? fmt::format("[{}]", output) : "");
    }
    row.made_by = text_of(field(object, "kernel"));
    if (row.made_by.empty()) row.made_by = text_of(field(object, "call"));
  }
  const Json& dtype = either(object, "dtype", "expected_dtype");
  row.shape =
      dtype.is_string() ? text_of(dtype) + sizes_text(either(object, "sizes", "expected_sizes")) : "None";
  row.failed = failed(object);
  const Json& modes = field(object, "modes");
  const std::string worst = text_of(field(object, "worst_mode"));
  if (modes.is_object() && !modes.empty()) {
    for (const auto& [mode, value] : modes.items()) {
      CheckFigures f = figures(mode, value);
      row.modes.insert(mode == worst ? row.modes.begin() : row.modes.end(), std::move(f));
    }
  } else {
    row.modes.push_back(figures("", object));
  }
  return row;
}

/// Marks the row that `value` names: its place among the buffers, its name or id, or an object with one of them.
void mark_divergence(std::vector<CheckRow>& rows, const Json& value) {
  if (value.is_null()) return;
  if (value.is_object()) {
    for (const char* key : {"position", "buffer", "id", "name", "node"}) {
      const Json& inner = field(value, key);
      if (inner.is_null()) continue;
      mark_divergence(rows, inner);
      if (std::any_of(rows.begin(), rows.end(), [](const CheckRow& row) { return row.first_divergence; }))
        return;
    }
    return;
  }
  const bool by_place = value.is_number_integer();
  const std::string text = text_of(value);
  for (CheckRow& row : rows) {
    if (row.kind != CheckRow::Kind::buffer && by_place) continue;
    const bool named =
        !by_place && (row.name == text || (row.buffer.valid() && report::id_text(row.buffer) == text) ||
                      (row.node.valid() && report::id_text(row.node) == text));
    if (named || (by_place && static_cast<std::int64_t>(row.position) == whole(value, -1))) {
      row.first_divergence = true;
      return;
    }
  }
}

std::string verdict_text(const Json& result, std::size_t decision) {
  std::string verdict = text_of(field(result, "verdict"));
  if (verdict.empty()) verdict = "ran";
  std::vector<std::string> place;
  if (const std::string platform = text_of(field(result, "platform")); !platform.empty())
    place.push_back(platform);
  if (const std::string jax = text_of(field(result, "jax")); !jax.empty()) place.push_back("jax " + jax);
  if (field(result, "interpret") == Json(true)) place.push_back("interpret");
  const std::string host = text_of(field(result, "host"));
  const Json& seconds = field(result, "seconds");
  return fmt::format(
      "{} at {} on {}{}{}", verdict,
      decision == 0 ? std::string("the start") : report::id_text(schedule::DecisionId(decision - 1)),
      host.empty() ? "local" : host, place.empty() ? "" : " (" + report::join(place, ", ") + ")",
      seconds.is_number() ? fmt::format(" in {:.1f} s", seconds.get<double>()) : "");
}

std::string times_text(const Json& result) {
  std::vector<std::string> parts;
  if (const Json& by_mode = field(result, "seconds_by_mode"); by_mode.is_object()) {
    for (const auto& [mode, seconds] : by_mode.items()) {
      if (seconds.is_number()) parts.push_back(fmt::format("{} {:.2g} s", mode, seconds.get<double>()));
    }
  }
  if (const Json& eager = field(result, "seconds_eager"); eager.is_number())
    parts.push_back(fmt::format("eager {:.2g} s", eager.get<double>()));
  return report::join(parts, ", ");
}

/// The figures of a row in one mode, as JSON.
const Json& figures_json(const Json& result, const CheckRow& row, const std::string& mode) {
  const Json& list = field(result, row.kind == CheckRow::Kind::buffer ? "buffers" : "outputs");
  if (!list.is_array() || row.position >= list.size()) return nothing();
  const Json& object = list[row.position];
  return mode.empty() ? object : field(field(object, "modes"), mode);
}

void mark(DifferencePicture& picture, const Json& cells, DifferencePicture::Cell as) {
  if (!cells.is_array()) return;
  for (const Json& cell : cells) {
    const std::int64_t at = whole(cell, -1);
    if (at >= 0 && static_cast<std::size_t>(at) < picture.cells.size())
      picture.cells[static_cast<std::size_t>(at)] = as;
  }
}

std::pair<std::int64_t, std::int64_t> part_of(int part, int parts, std::int64_t of) {
  const std::int64_t low = part * of / std::max(1, parts), high = (part + 1) * of / std::max(1, parts) - 1;
  return {low, std::max(low, high)};
}

}  // namespace

CheckView check_view(const session::Compilation& compilation, const Json& result, std::size_t decision) {
  CheckView view;
  view.passed = text_of(field(result, "verdict")) != "failed";
  view.interpret = field(result, "interpret") == Json(true);
  view.verdict = verdict_text(result, decision);
  view.times = times_text(result);
  view.kernel = text_of(field(result, "kernel"));
  if (const std::string why = text_of(field(result, "float64")); !why.empty())
    view.notes.push_back("No float64 reference: " + why);
  if (const Json& notes = field(result, "notes"); notes.is_array()) {
    for (const Json& note : notes) {
      if (note.is_string()) view.notes.push_back(note.get<std::string>());
    }
  }
  if (const Json& skipped = field(result, "buffers_skipped"); skipped.is_array() && !skipped.empty())
    view.notes.push_back(fmt::format("{} cannot be compared",
                                     report::plural(static_cast<std::int64_t>(skipped.size()), "buffer")));
  for (const auto& [key, kind] :
       {std::pair("outputs", CheckRow::Kind::output), std::pair("buffers", CheckRow::Kind::buffer)}) {
    const Json& list = field(result, key);
    if (!list.is_array()) continue;
    for (std::size_t k = 0; k < list.size(); ++k) {
      if (list[k].is_object()) view.rows.push_back(row_of(compilation, list[k], kind, k));
    }
  }
  mark_divergence(view.rows, field(result, "first_divergence"));
  view.failed = static_cast<std::size_t>(
      std::count_if(view.rows.begin(), view.rows.end(), [](const CheckRow& row) { return row.failed; }));
  const auto rank = [](const CheckRow& row) { return row.first_divergence ? 0 : row.failed ? 1 : 2; };
  std::stable_sort(view.rows.begin(), view.rows.end(),
                   [&](const CheckRow& a, const CheckRow& b) { return rank(a) < rank(b); });
  return view;
}

float DifferencePicture::share(double value) const {
  if (!(value > 0) || high_decade <= low_decade) return 0;
  return static_cast<float>((std::log10(value) - low_decade) / (high_decade - low_decade));
}

std::pair<std::int64_t, std::int64_t> DifferencePicture::row_range(int row) const {
  return part_of(row, rows, of_rows);
}
std::pair<std::int64_t, std::int64_t> DifferencePicture::column_range(int column) const {
  return part_of(column, columns, of_columns);
}

std::optional<DifferencePicture> difference_picture(const Json& result, const CheckRow& row,
                                                    const std::string& mode) {
  const Json& json = field(figures_json(result, row, mode), "picture");
  const Json& cells = field(json, "cells");
  if (!json.is_object() || !cells.is_array()) return std::nullopt;
  const std::int64_t rows = whole(field(json, "rows"), 0),
                     columns = whole(either(json, "cols", "columns"), 0);
  constexpr std::int64_t most = 4096;
  if (rows <= 0 || columns <= 0 || rows > most || columns > most || rows * columns > 1 << 20)
    return std::nullopt;
  DifferencePicture picture;
  picture.rows = static_cast<int>(rows), picture.columns = static_cast<int>(columns);
  picture.cells.assign(static_cast<std::size_t>(rows * columns), DifferencePicture::Cell::exact);
  picture.values.assign(picture.cells.size(), 0);
  std::size_t at = 0;
  const auto take = [&](const Json& cell) {
    if (at >= picture.cells.size()) return;
    const std::optional<double> value = number_of(cell);
    if (value && !std::isfinite(*value)) {
      picture.cells[at] = DifferencePicture::Cell::mismatch;
    } else if (value && *value != 0) {
      picture.cells[at] = DifferencePicture::Cell::differs;
      picture.values[at] = std::abs(*value);
    }
    ++at;
  };
  for (const Json& cell : cells) {  // one list, or one a row
    if (cell.is_array())
      for (const Json& inner : cell) take(inner);
    else
      take(cell);
  }
  if (at == 0) return std::nullopt;
  if (const Json& both = field(json, "both_nan"); both.is_array()) {
    for (const Json& cell : both) {
      const std::int64_t place = whole(cell, -1);
      if (place < 0 || static_cast<std::size_t>(place) >= picture.cells.size()) continue;
      auto& kind = picture.cells[static_cast<std::size_t>(place)];
      if (kind == DifferencePicture::Cell::exact) kind = DifferencePicture::Cell::both_nan;
    }
  }
  mark(picture, field(json, "nan"), DifferencePicture::Cell::mismatch);
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (std::size_t k = 0; k < picture.cells.size(); ++k) {
    switch (picture.cells[k]) {
      case DifferencePicture::Cell::exact:
        break;
      case DifferencePicture::Cell::both_nan:
        ++picture.nan;
        break;
      case DifferencePicture::Cell::mismatch:
        ++picture.mismatching;
        break;
      case DifferencePicture::Cell::differs:
        ++picture.differing;
        low = std::min(low, picture.values[k]), high = std::max(high, picture.values[k]);
        break;
    }
  }
  if (picture.differing > 0) {
    picture.low_decade = static_cast<int>(std::floor(std::log10(low)));
    picture.high_decade = std::max(picture.low_decade + 1, static_cast<int>(std::ceil(std::log10(high))));
  }
  // A host that does not say of how many elements: the tensor's sizes.
  std::int64_t last = 1, before = 1;
  const Json& object = figures_json(result, row, "");
  if (const Json& sizes = either(object, "sizes", "expected_sizes"); sizes.is_array()) {
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      before *= std::max<std::int64_t>(0, k == 0 ? 1 : whole(sizes[k - 1], 1));
      last = whole(sizes[k], 1);
    }
  }
  picture.of_rows = std::max<std::int64_t>(rows, whole(field(json, "of_rows"), before));
  picture.of_columns = std::max<std::int64_t>(columns, whole(either(json, "of_cols", "of_columns"), last));
  return picture;
}

std::optional<DifferenceHistogram> difference_histogram(const Json& result, const CheckRow& row,
                                                        const std::string& mode) {
  const Json& json = field(figures_json(result, row, mode), "histogram");
  if (!json.is_object()) return std::nullopt;
  DifferenceHistogram histogram;
  histogram.exact = std::max<std::int64_t>(0, whole(either(json, "zero", "exact"), 0));
  histogram.nan = std::max<std::int64_t>(0, whole(either(json, "nan", "not_finite"), 0));
  std::int64_t first = whole(field(json, "first_exponent"), 0);
  std::vector<std::int64_t> counts;
  if (const Json& list = field(json, "counts"); list.is_array() && list.size() <= 1000) {
    for (const Json& count : list) counts.push_back(std::max<std::int64_t>(0, whole(count, 0)));
  } else if (const Json& pairs = field(json, "decades"); pairs.is_array() && pairs.size() <= 1000) {
    for (const Json& pair : pairs) {
      if (!pair.is_array() || pair.size() != 2) continue;
      const std::int64_t exponent = whole(pair[0], 0);
      if (counts.empty()) first = exponent;
      if (exponent < first || exponent - first >= 1000) continue;
      counts.resize(std::max(counts.size(), static_cast<std::size_t>(exponent - first) + 1));
      counts[static_cast<std::size_t>(exponent - first)] += std::max<std::int64_t>(0, whole(pair[1], 0));
    }
  }
  const auto begin = std::find_if(counts.begin(), counts.end(), [](std::int64_t c) { return c > 0; });
  while (!counts.empty() && counts.back() == 0 && begin != counts.end()) counts.pop_back();
  if (begin != counts.end()) {
    histogram.first_exponent =
        static_cast<int>(std::clamp<std::int64_t>(first + (begin - counts.begin()), -1000, 1000));
    histogram.counts.assign(begin, counts.end());
  }
  histogram.both_nan = std::max<std::int64_t>(0, whole(field(json, "both_nan"), 0));
  histogram.total = histogram.exact + histogram.nan + histogram.both_nan;
  for (const std::int64_t count : histogram.counts) histogram.total += count;
  return histogram;
}

}  // namespace pallascope::model
