#include "core/report/summary.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/report/accesses.h"
#include "core/report/decision.h"
#include "core/report/format.h"
#include "core/report/lookup.h"

namespace pallascope::report {
namespace {

constexpr std::size_t shown = 5;  // one screen: what is left out is counted, and listed by `ls`

struct CallCount {
  std::size_t count = 0;
  std::string why;  ///< why PyTorch runs it
};

struct Counts {
  std::size_t nests = 0, kernels = 0, library_calls = 0, torch_calls = 0;
  std::map<std::string, CallCount> library, torch;
};

Counts count_steps(const session::Snapshot& snapshot) {
  Counts counts;
  for (const schedule::ScheduledStep& step : snapshot.state.steps) {
    if (step.kernel.valid()) {
      ++counts.kernels;
      counts.nests += snapshot.state.kernels[step.kernel].nests.size();
      continue;
    }
    const auto& content = snapshot.program->steps[step.call].content;
    if (const auto* library = std::get_if<loop::LibraryCall>(&content)) {
      ++counts.library_calls;
      ++counts.library[library->op].count;
    } else if (const auto* torch = std::get_if<loop::TorchCall>(&content)) {
      ++counts.torch_calls;
      CallCount& entry = counts.torch[torch->op];
      ++entry.count;
      for (const loop::NodeOutcome& outcome : snapshot.program->outcomes) {
        if (outcome.node == torch->origin && entry.why.empty()) entry.why = outcome.why;
      }
    }
  }
  return counts;
}

struct DecisionCounts {
  std::size_t lower = 0, inline_producer = 0, inlined = 0, fuse = 0, fused = 0;
};

DecisionCounts count_decisions(const session::Compilation& compilation, std::size_t limit) {
  DecisionCounts counts;
  for (std::size_t k = 0; k < std::min(limit, compilation.decisions().size()); ++k) {
    const schedule::Decision& decision = compilation.decisions()[k];
    switch (decision.kind) {
      case schedule::DecisionKind::lower:
        ++counts.lower;
        break;
      case schedule::DecisionKind::inline_producer:
        ++counts.inline_producer;
        if (decision.accepted) ++counts.inlined;
        break;
      case schedule::DecisionKind::fuse:
        ++counts.fuse;
        if (decision.accepted) ++counts.fused;
        break;
    }
  }
  return counts;
}

/// Accesses to memory by class, in the order of the classes.
std::map<index::AccessClass, std::size_t> count_classes(const codegen::Module& module) {
  std::map<index::AccessClass, std::size_t> counts;
  for (const codegen::KernelAccess& access : module.accesses) {
    if (!access.on_value) ++counts[access.access.access_class];
  }
  return counts;
}

struct Copy {
  std::string input;
  std::string shape;
  std::int64_t bytes = 0;
};

std::vector<Copy> boundary_copies(const session::Compilation& compilation,
                                  const session::Snapshot& snapshot) {
  const loop::Program& program = *snapshot.program;
  std::vector<Copy> copies;
  for (std::size_t k = 0; k < program.input_layouts.size() && k < compilation.graph().inputs.size(); ++k) {
    if (!program.input_layouts[k].copied) continue;
    const trace::Value& value = compilation.graph().values[compilation.graph().inputs[k].value];
    copies.push_back({value.name, value.tensor ? trace::to_string(*value.tensor) : "",
                      value.tensor ? value.tensor->bytes() : 0});
  }
  return copies;
}

std::string checked_text(const CheckedAt& checked, std::size_t decision) {
  if (!checked.checked) return "not checked";
  return fmt::format("{} at decision {}{}", checked.verdict, checked.decision,
                     checked.decision == decision ? "" : " (not at this one)");
}

}  // namespace

std::string program_title(const trace::Program& program) {
  if (program.origin.empty()) return program.name;
  std::string path = program.origin;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

Json summary_json(const session::Compilation& compilation, const session::Snapshot& snapshot,
                  const CheckedAt& checked) {
  const Counts counts = count_steps(snapshot);
  const DecisionCounts decisions = count_decisions(compilation, snapshot.decision);
  const trace::Graph& traced = compilation.traced();
  Json json = {{"name", program_title(compilation.program())},
               {"path", compilation.program().origin},
               {"graph",
                {{"index", compilation.graph_index()},
                 {"count", compilation.program().graphs.size()},
                 {"name", traced.name},
                 {"kind", traced.kind}}},
               {"decision", snapshot.decision},
               {"decisions",
                {{"total", compilation.decisions().size()},
                 {"lower", decisions.lower},
                 {"inline", decisions.inline_producer},
                 {"inlined", decisions.inlined},
                 {"fuse", decisions.fuse},
                 {"fused", decisions.fused},
                 {"refused", decisions.fuse - decisions.fused}}},
               {"nodes", traced.nodes.size()},
               {"nests", counts.nests},
               {"kernels", counts.kernels},
               {"library_calls", counts.library_calls},
               {"torch_calls", counts.torch_calls}};
  json["checked"] =
      checked.checked ? Json{{"verdict", checked.verdict}, {"decision", checked.decision}} : Json(nullptr);
  Json missed = Json::array();
  for (const schedule::DecisionId id : missed_fusions(compilation, snapshot)) {
    const schedule::Decision& decision = compilation.decisions()[id.index()];
    missed.push_back({{"decision", id_text(id)},
                      {"subject", subject_text(compilation, decision)},
                      {"bytes_saved", decision.evidence.bytes_saved},
                      {"reason", snake(schedule::reason_name(decision.reason))}});
  }
  json["missed_fusions"] = missed;
  Json classes = Json::object(), wasteful = Json::array();
  for (const auto& [access_class, count] : count_classes(snapshot.module)) {
    classes[std::string(index::access_class_name(access_class))] = count;
  }
  for (const std::size_t position : wasteful_accesses(snapshot)) {
    const codegen::KernelAccess& access = snapshot.module.accesses[position];
    wasteful.push_back({{"kernel", id_text(access.kernel)},
                        {"buffer", id_text(access.buffer)},
                        {"parameter", access.parameter},
                        {"class", std::string(index::access_class_name(access.access.access_class))},
                        {"words", access.access.words},
                        {"bytes", bytes_touched(*snapshot.program, access)},
                        {"bytes_spanned", bytes_spanned(*snapshot.program, access)}});
  }
  json["accesses"] = {{"classes", classes}, {"wasteful", wasteful}};
  const auto operators = [](const std::map<std::string, CallCount>& calls) {
    Json list = Json::array();
    for (const auto& [name, call] : calls)
      list.push_back({{"operator", name}, {"count", call.count}, {"why", call.why}});
    return list;
  };
  json["library_operators"] = operators(counts.library);
  json["torch_operators"] = operators(counts.torch);
  Json copies = Json::array();
  for (const Copy& copy : boundary_copies(compilation, snapshot))
    copies.push_back({{"input", copy.input}, {"bytes", copy.bytes}});
  json["boundary_copies"] = copies;
  json["bytes_moved"] = snapshot.state.bytes_moved;
  const session::Timings& timings = compilation.timings();
  json["timings_ms"] = {{"functional", timings.functional_ms},
                        {"lower", timings.lower_ms},
                        {"schedule", timings.schedule_ms},
                        {"codegen", timings.codegen_ms}};
  return json;
}

std::string summary_text(const session::Compilation& compilation, const session::Snapshot& snapshot,
                         const CheckedAt& checked) {
  const Counts counts = count_steps(snapshot);
  const DecisionCounts decisions = count_decisions(compilation, snapshot.decision);
  const trace::Graph& traced = compilation.traced();
  const auto number = [](std::size_t count, std::string_view noun) {
    return plural(static_cast<std::int64_t>(count), noun);
  };
  std::string text =
      fmt::format("{}   {} → {} → {}, {}, {}   {}\n", program_title(compilation.program()),
                  number(traced.nodes.size(), "node"), number(counts.nests, "nest"),
                  number(counts.kernels, "kernel"), number(counts.library_calls, "library call"),
                  number(counts.torch_calls, "torch call"), checked_text(checked, snapshot.decision));
  const std::size_t width = 16;
  const auto add = [&](std::string_view head, const std::string& line) {
    text += (head.empty() ? std::string(width, ' ') : padded(head, width)) + " " + line + "\n";
  };
  const auto add_rows = [&](std::string_view head, const Table& table) {
    std::string rest = table.text();
    bool first = true;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      add(first ? head : "", rest.substr(0, end));
      rest.erase(0, end == std::string::npos ? rest.size() : end + 1);
      first = false;
    }
  };
  if (compilation.program().graphs.size() > 1) {
    add("graph",
        fmt::format("{} of {}: {}{}", compilation.graph_index(), compilation.program().graphs.size(),
                    traced.name,
                    traced.kind.empty() || traced.kind == traced.name ? "" : " (" + traced.kind + ")"));
  }
  std::string log =
      fmt::format("{}: {} lowered, {} of {} producers inlined, {} of {} fusions accepted",
                  count_text(static_cast<std::int64_t>(snapshot.decision)), decisions.lower,
                  decisions.inlined, decisions.inline_producer, decisions.fused, decisions.fuse);
  if (snapshot.decision < compilation.decisions().size())
    log += fmt::format("   (of {})", count_text(static_cast<std::int64_t>(compilation.decisions().size())));
  add("decisions", log);

  // A boundary of a library or torch call explains itself, and there is one at every call: they take one line.
  std::vector<schedule::DecisionId> missed, boundaries;
  std::int64_t boundary_bytes = 0;
  for (const schedule::DecisionId id : missed_fusions(compilation, snapshot)) {
    const schedule::Decision& decision = compilation.decisions()[id.index()];
    const bool boundary = decision.reason == schedule::Reason::library_boundary ||
                          decision.reason == schedule::Reason::torch_boundary;
    (boundary ? boundaries : missed).push_back(id);
    if (boundary) boundary_bytes += decision.evidence.bytes_saved;
  }
  Table missed_rows;
  for (std::size_t k = 0; k < std::min(missed.size(), shown); ++k) {
    const schedule::Decision& decision = compilation.decisions()[missed[k].index()];
    missed_rows.add({id_text(decision.id), subject_text(compilation, decision),
                     bytes_text(decision.evidence.bytes_saved),
                     spaced(schedule::reason_name(decision.reason))});
  }
  if (missed.empty() && boundaries.empty()) add("missed fusions", "none that would have saved a byte");
  add_rows("missed fusions", missed_rows);
  if (missed.size() > shown)
    add("", fmt::format("and {} more (ls decisions refused kind=fuse)", missed.size() - shown));
  if (!boundaries.empty()) {
    add(missed.empty() ? "missed fusions" : "",
        fmt::format("{} at library and torch calls, {} (ls decisions boundary)", boundaries.size(),
                    bytes_text(boundary_bytes)));
  }

  std::vector<std::string> classes;
  for (const auto& [access_class, count] : count_classes(snapshot.module)) {
    classes.push_back(fmt::format("{} {}", count, index::access_class_name(access_class)));
  }
  if (!classes.empty()) add("accesses", join(classes, ", "));
  const auto wasteful = wasteful_accesses(snapshot);
  Table waste_rows;
  for (std::size_t k = 0; k < std::min(wasteful.size(), shown); ++k) {
    const codegen::KernelAccess& access = snapshot.module.accesses[wasteful[k]];
    waste_rows.add({fmt::format("{} in {}", id_text(access.buffer), id_text(access.kernel)),
                    access.access.words.empty()
                        ? std::string(index::access_class_name(access.access.access_class))
                        : access.access.words,
                    fmt::format("{} of {}", bytes_text(bytes_touched(*snapshot.program, access)),
                                bytes_text(bytes_spanned(*snapshot.program, access)))});
  }
  add_rows("", waste_rows);
  if (wasteful.size() > shown) add("", fmt::format("and {} more (index)", wasteful.size() - shown));

  const auto add_calls = [&](std::string_view head, const std::map<std::string, CallCount>& calls) {
    Table rows;
    for (const auto& [name, call] : calls) rows.add({name, fmt::format("× {}", call.count), call.why});
    if (!rows.empty()) add_rows(head, rows);
  };
  add_calls("library", counts.library);
  add_calls("torch", counts.torch);

  Table copy_rows;
  const auto copies = boundary_copies(compilation, snapshot);
  for (std::size_t k = 0; k < std::min(copies.size(), shown); ++k) {
    copy_rows.add({copies[k].input, copies[k].shape, bytes_text(copies[k].bytes), "copied, not dense"});
  }
  if (!copies.empty()) add_rows("boundary", copy_rows);
  if (copies.size() > shown) add("", fmt::format("and {} more inputs copied", copies.size() - shown));

  add("bytes moved", bytes_text(snapshot.state.bytes_moved) + " a call");
  const session::Timings& timings = compilation.timings();
  add("time", fmt::format("{:.1f} ms: functional {:.1f}, lower {:.1f}, schedule {:.1f}, codegen {:.1f}",
                          timings.functional_ms + timings.lower_ms + timings.schedule_ms + timings.codegen_ms,
                          timings.functional_ms, timings.lower_ms, timings.schedule_ms, timings.codegen_ms));
  return text;
}

}  // namespace pallascope::report
