#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "app/repl/handlers.h"
#include "app/repl/names.h"
#include "core/report/decision.h"
#include "core/report/diff.h"
#include "core/report/format.h"

namespace pallascope::repl {
namespace {

using report::Json;

/// What a state costs, to say what a decision changed.
struct Size {
  std::int64_t kernels = 0, nests = 0, library_calls = 0, torch_calls = 0, bytes_moved = 0;
  friend bool operator==(const Size&, const Size&) = default;
};

Size size_of(const session::Snapshot& snapshot) {
  Size size;
  for (const schedule::ScheduledStep& step : snapshot.state.steps) {
    if (step.kernel.valid()) {
      ++size.kernels;
      size.nests += static_cast<std::int64_t>(snapshot.state.kernels[step.kernel].nests.size());
    } else if (std::holds_alternative<loop::LibraryCall>(snapshot.program->steps[step.call].content)) {
      ++size.library_calls;
    } else {
      ++size.torch_calls;
    }
  }
  size.bytes_moved = snapshot.state.bytes_moved;
  return size;
}

Json size_json(const Size& size) {
  return {{"kernels", size.kernels},
          {"nests", size.nests},
          {"library_calls", size.library_calls},
          {"torch_calls", size.torch_calls},
          {"bytes_moved", size.bytes_moved}};
}

std::string size_text(const Size& before, const Size& after) {
  const auto count = [](std::int64_t from, std::int64_t to, const char* noun) {
    return from == to ? report::plural(to, noun)
                      : fmt::format("{} → {}", report::count_text(from), report::plural(to, noun));
  };
  std::vector<std::string> parts = {count(before.kernels, after.kernels, "kernel"),
                                    count(before.nests, after.nests, "nest"),
                                    count(before.library_calls, after.library_calls, "library call"),
                                    count(before.torch_calls, after.torch_calls, "torch call")};
  parts.push_back(
      (before.bytes_moved == after.bytes_moved ? "" : report::bytes_text(before.bytes_moved) + " → ") +
      report::bytes_text(after.bytes_moved) + " moved");
  return report::join(parts, ", ");
}

std::string place_text(std::size_t position, std::size_t total) {
  if (position == 0)
    return fmt::format("before the first of {}",
                       report::plural(static_cast<std::int64_t>(total), "decision"));
  return fmt::format("at d{}, {} of {} taken", position - 1,
                     report::count_text(static_cast<std::int64_t>(position)),
                     report::plural(static_cast<std::int64_t>(total), "decision"));
}

/// Goes to `target`; says which decisions that took or took back and what changed. More than `shown`
/// of them are counted, and only the one that is now the last is named.
Output move_to(Opened& opened, std::size_t target) {
  constexpr std::size_t shown = 20;
  const session::Compilation& compilation = *opened.compilation;
  const std::size_t total = compilation.decisions().size(), from = opened.position;
  const Size before = size_of(*opened.snapshot());
  opened.position = target;
  const Size after = size_of(*opened.snapshot());
  Output output;
  Json passed = Json::array();
  report::Table rows;
  const std::size_t first = std::min(from, target), last = std::max(from, target);
  for (std::size_t k = first; k < last; ++k) {
    const schedule::Decision& decision = compilation.decisions()[k];
    passed.push_back(report::id_text(decision.id));
    if (last - first <= shown) {
      std::vector<std::string> cells = report::decision_cells(compilation, decision);
      if (target < from) cells.push_back("taken back");
      rows.add(std::move(cells));
    }
  }
  if (last - first > shown) {
    output.text += fmt::format("{} {}\n", target < from ? "took back" : "took",
                               report::plural(static_cast<std::int64_t>(last - first), "decision"));
    if (target > 0) rows.add(report::decision_cells(compilation, compilation.decisions()[target - 1]));
  }
  output.text += rows.text();
  output.text += fmt::format("{}   {}\n", place_text(target, total), size_text(before, after));
  output.json = {
      {"decision", target},
      {"total", total},
      {"moved", static_cast<std::int64_t>(target) - static_cast<std::int64_t>(from)},
      {"last",
       target == 0 ? Json(nullptr) : report::decision_json(compilation, compilation.decisions()[target - 1])},
      {"passed", passed},
      {"before", size_json(before)},
      {"after", size_json(after)}};
  return output;
}

Result<std::size_t> count_word(const Arguments& arguments) {
  if (arguments.words.empty()) return std::size_t{1};
  return parse_count(arguments.words[0]);
}

std::string source_name(std::size_t position) {
  return position == 0 ? "before d0" : fmt::format("after d{}", position - 1);
}

}  // namespace

Result<Output> run_goto(Session& session, const Arguments& arguments) {
  const auto opened = session.opened();
  if (!opened.ok()) return opened.error();
  const auto target = resolve_position(**opened, arguments.words[0]);
  if (!target.ok()) return target.error();
  return move_to(**opened, *target);
}

Result<Output> run_step(Session& session, const Arguments& arguments) {
  const auto opened = session.opened();
  if (!opened.ok()) return opened.error();
  const auto count = count_word(arguments);
  if (!count.ok()) return count.error();
  const std::size_t total = (*opened)->compilation->decisions().size(), position = (*opened)->position;
  Output output = move_to(**opened, position + std::min(*count, total - position));
  if (position == total) output.text = "this is the end of the log: " + output.text;
  return output;
}

Result<Output> run_stepback(Session& session, const Arguments& arguments) {
  const auto opened = session.opened();
  if (!opened.ok()) return opened.error();
  const auto count = count_word(arguments);
  if (!count.ok()) return count.error();
  const std::size_t position = (*opened)->position;
  Output output = move_to(**opened, position - std::min(*count, position));
  if (position == 0) output.text = "this is the beginning of the log: " + output.text;
  return output;
}

Result<Output> run_diff(Session& session, const Arguments& arguments) {
  const auto current = session.opened();
  if (!current.ok()) return current.error();
  const Opened& opened = **current;
  std::size_t to = opened.position, from = to == 0 ? 0 : to - 1;
  if (!arguments.words.empty()) {
    const auto first = resolve_position(opened, arguments.words[0]);
    if (!first.ok()) return first.error();
    if (arguments.words.size() == 1) {
      to = *first;
      from = to == 0 ? 0 : to - 1;
    } else {
      const auto second = resolve_position(opened, arguments.words[1]);
      if (!second.ok()) return second.error();
      from = *first;
      to = *second;
    }
  }
  const auto before = opened.compilation->at(from), after = opened.compilation->at(to);
  const auto lines = report::diff_lines(before->module.source, after->module.source);
  std::int64_t added = 0, removed = 0;
  for (const report::DiffLine& line : lines) {
    added += line.change == report::LineChange::added ? 1 : 0;
    removed += line.change == report::LineChange::removed ? 1 : 0;
  }
  Output output;
  const std::string diff = report::unified_diff(lines, source_name(from), source_name(to));
  output.json = {{"from", from}, {"to", to}, {"added", added}, {"removed", removed}, {"diff", diff}};
  output.text = diff.empty()
                    ? fmt::format("the source {} is the same as {}\n", source_name(to), source_name(from))
                    : diff;
  return output;
}

}  // namespace pallascope::repl
