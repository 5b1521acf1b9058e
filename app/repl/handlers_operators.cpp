// The operator table.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "app/model/find_lines.h"
#include "app/repl/handlers.h"
#include "app/repl/words.h"
#include "core/functional/operators.h"
#include "core/functional/view.h"
#include "core/lower/lower.h"
#include "core/report/format.h"

namespace pallascope::repl {
namespace {

using lower::OperatorRow;
using report::Json;

struct Wanted {
  std::vector<std::string> texts, families, outcomes;
};

/// A pasted `torch.ops.aten.add.Tensor` is the overload's name as well.
std::string plain(const std::string& word) {
  constexpr std::string_view prefix = "torch.ops.";
  return word.starts_with(prefix) ? word.substr(prefix.size()) : word;
}

bool keeps(const Wanted& wanted, const OperatorRow& row) {
  const auto is = [](const std::vector<std::string>& all, std::string_view have) {
    return std::all_of(all.begin(), all.end(), [&](const std::string& w) { return have == w; });
  };
  return is(wanted.families, row.family) && is(wanted.outcomes, row.outcome_text()) &&
         std::all_of(wanted.texts.begin(), wanted.texts.end(),
                     [&](const std::string& text) { return model::lower(row.op).find(text) != std::string::npos; });
}

Result<Wanted> parse(const std::vector<OperatorRow>& rows, const std::vector<std::string>& words) {
  std::set<std::string> families, outcomes;
  for (const OperatorRow& row : rows) {
    families.emplace(row.family);
    outcomes.emplace(row.outcome_text());
  }
  Wanted wanted;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string key = equals == std::string::npos ? "" : word.substr(0, equals);
    if (key != "family" && key != "outcome") {
      wanted.texts.push_back(model::lower(plain(word)));
      continue;
    }
    const std::string value = word.substr(equals + 1);
    const std::set<std::string>& known = key == "family" ? families : outcomes;
    if (!known.contains(value))
      return Diagnostic{DiagnosticKind::invalid_argument, fmt::format("no operator has the {} '{}'", key, value), "",
                        fmt::format("give one of {}", report::join({known.begin(), known.end()}, ", "))};
    (key == "family" ? wanted.families : wanted.outcomes).push_back(value);
  }
  return wanted;
}

/// Groups where all of a group are taken: `bool, integers, floats`.
std::string dtypes_text(const std::vector<DType>& dtypes) {
  std::vector<std::string> parts;
  const auto group = [&](std::string_view name, bool (*member)(DType)) {
    std::size_t all = 0;
    std::vector<std::string> some;
    for (int k = 0; k <= static_cast<int>(DType::f8e5m2); ++k) {
      const DType d = static_cast<DType>(k);
      if (!member(d)) continue;
      ++all;
      if (std::find(dtypes.begin(), dtypes.end(), d) != dtypes.end()) some.emplace_back(dtype_name(d));
    }
    if (some.size() == all)
      parts.emplace_back(name);
    else
      parts.insert(parts.end(), some.begin(), some.end());
  };
  group("bool", [](DType d) { return is_bool(d); });
  group("integers", [](DType d) { return is_kernel_dtype(d) && is_integer(d); });
  group("floats", [](DType d) { return is_kernel_dtype(d) && is_float(d); });
  group("every other", [](DType d) { return !is_kernel_dtype(d); });
  return report::join(parts, ", ");
}

Json row_json(const OperatorRow& row) {
  Json dtypes = Json::array();
  for (const DType d : row.dtypes) dtypes.push_back(std::string(dtype_name(d)));
  Json json = {{"op", row.op},
               {"family", std::string(row.family)},
               {"outcome", std::string(row.outcome_text())},
               {"dtypes", dtypes}};
  if (!row.why.empty()) json["why"] = std::string(row.why);
  return json;
}

/// What there is to say of a name that is in no row.
std::string absent_text(const std::string& word) {
  const std::string op = plain(word);
  const bool whole = op.find('.') != std::string::npos;
  const std::string_view name = whole ? functional::operator_name(op) : std::string_view(op);
  if (functional::is_in_place_name(name))
    return fmt::format("{} is rewritten to its functional twin{}; `ops {}` has what that becomes\n", word,
                       whole ? " " + functional::functional_twin(op) : "",
                       name.starts_with("__i") ? "__" + std::string(name.substr(3)) : name.substr(0, name.size() - 1));
  return fmt::format("no row holds '{}': such an operator is a call of PyTorch between the JAX programs\n", word);
}

}  // namespace

Result<Output> run_ops(Session& /*session*/, const Arguments& arguments) {
  const std::vector<OperatorRow> rows = lower::operator_table();
  const Result<Wanted> wanted = parse(rows, arguments.words);
  if (!wanted.ok()) return wanted.error();
  Output output;
  report::Table table;
  Json list = Json::array();
  std::map<std::string_view, int> counts;
  for (const OperatorRow& row : rows) {
    if (!keeps(*wanted, row)) continue;
    ++counts[row.outcome_text()];
    table.add({row.op, std::string(row.family), std::string(row.outcome_text()),
               row.why.empty() ? dtypes_text(row.dtypes) : std::string(row.why)});
    list.push_back(row_json(row));
  }
  std::vector<std::string> parts;
  for (const auto& [outcome, count] : counts) parts.push_back(fmt::format("{} {}", count, outcome));
  output.text = table.text();
  if (list.empty() && arguments.words.size() == 1 && !wanted->texts.empty())
    output.text = absent_text(arguments.words[0]);
  else
    output.text += fmt::format("{}{}{}\n", report::plural(static_cast<std::int64_t>(list.size()), "operator"),
                               parts.empty() ? "" : ": ", report::join(parts, ", "));
  output.json = {{"operators", list}};
  return output;
}

}  // namespace pallascope::repl
