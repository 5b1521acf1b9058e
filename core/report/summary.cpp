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

void count_steps(const session::Snapshot& snapshot, Summary& summary) {
  std::map<std::string, OperatorCalls> library, torch;
  for (const schedule::ScheduledStep& step : snapshot.state.steps) {
    if (step.kernel.valid()) {
      ++summary.kernels;
      summary.nests += snapshot.state.kernels[step.kernel].nests.size();
      continue;
    }
    const auto& content = snapshot.program->steps[step.call].content;
    if (const auto* call = std::get_if<loop::LibraryCall>(&content)) {
      ++summary.library_calls;
      ++library[call->op].count;
    } else if (const auto* left = std::get_if<loop::TorchCall>(&content)) {
      ++summary.torch_calls;
      OperatorCalls& entry = torch[left->op];
      ++entry.count;
      if (const loop::NodeOutcome* outcome = outcome_of(snapshot, left->origin); outcome != nullptr && entry.why.empty())
        entry.why = outcome->why;
    }
  }
  const auto listed = [](std::map<std::string, OperatorCalls>& calls) {
    std::vector<OperatorCalls> list;
    for (auto& [op, entry] : calls) {
      entry.op = op;
      list.push_back(std::move(entry));
    }
    return list;
  };
  summary.library = listed(library);
  summary.torch = listed(torch);
}

void count_decisions(const session::Compilation& compilation, std::size_t limit, Summary& summary) {
  for (std::size_t k = 0; k < std::min(limit, compilation.decisions().size()); ++k) {
    const schedule::Decision& decision = compilation.decisions()[k];
    switch (decision.kind) {
      case schedule::DecisionKind::lower:
        ++summary.lowered;
        break;
      case schedule::DecisionKind::inline_producer:
        ++summary.producers;
        if (decision.accepted) ++summary.inlined;
        break;
      case schedule::DecisionKind::fuse:
        ++summary.fusions;
        if (decision.accepted) ++summary.fused;
        break;
    }
  }
}

void find_missed(const session::Compilation& compilation, const session::Snapshot& snapshot,
                 Summary& summary) {
  for (const schedule::DecisionId id : missed_fusions(compilation, snapshot)) {
    const schedule::Decision& decision = compilation.decisions()[id.index()];
    const bool boundary = is_boundary(decision.reason);
    (boundary ? summary.boundaries : summary.missed).push_back(id);
    (boundary ? summary.boundary_bytes : summary.missed_bytes) += decision.evidence.bytes_saved;
  }
}

void find_copies(const session::Compilation& compilation, const session::Snapshot& snapshot,
                 Summary& summary) {
  const loop::Program& program = *snapshot.program;
  for (std::size_t k = 0; k < program.input_layouts.size() && k < compilation.graph().inputs.size(); ++k) {
    if (!program.input_layouts[k].copied) continue;
    const trace::Value& value = compilation.graph().values[compilation.graph().inputs[k].value];
    summary.copies.push_back({value.name, value.tensor ? trace::to_string(*value.tensor) : "",
                              value.tensor ? value.tensor->bytes() : 0});
  }
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

Summary summarize(const session::Compilation& compilation, const session::Snapshot& snapshot) {
  Summary summary;
  summary.nodes = compilation.traced().nodes.size();
  count_steps(snapshot, summary);
  count_decisions(compilation, snapshot.decision, summary);
  find_missed(compilation, snapshot, summary);
  std::map<index::AccessClass, std::size_t> classes;
  for (const codegen::AccessList::Run& run : snapshot.module.accesses.runs()) {
    for (const codegen::AccessText& access : run.piece->accesses)
      if (!access.on_value) ++classes[access.access->access_class];
  }
  summary.classes.assign(classes.begin(), classes.end());
  summary.wasteful = wasteful_accesses(snapshot);
  find_copies(compilation, snapshot, summary);
  summary.bytes_moved = snapshot.state.bytes_moved;
  return summary;
}

std::string timings_text(const session::Timings& timings) {
  return fmt::format("{:.1f} ms: functional {:.1f}, lower {:.1f}, schedule {:.1f}, codegen {:.1f}",
                     timings.functional_ms + timings.lower_ms + timings.schedule_ms + timings.codegen_ms,
                     timings.functional_ms, timings.lower_ms, timings.schedule_ms, timings.codegen_ms);
}

Json summary_json(const session::Compilation& compilation, const session::Snapshot& snapshot,
                  const CheckedAt& checked) {
  const Summary summary = summarize(compilation, snapshot);
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
                 {"lower", summary.lowered},
                 {"inline", summary.producers},
                 {"inlined", summary.inlined},
                 {"fuse", summary.fusions},
                 {"fused", summary.fused},
                 {"refused", summary.fusions - summary.fused}}},
               {"nodes", summary.nodes},
               {"nests", summary.nests},
               {"kernels", summary.kernels},
               {"library_calls", summary.library_calls},
               {"torch_calls", summary.torch_calls}};
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
  for (const auto& [access_class, count] : summary.classes) {
    classes[std::string(index::access_class_name(access_class))] = count;
  }
  for (const std::size_t position : summary.wasteful) {
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
  const auto operators = [](const std::vector<OperatorCalls>& calls) {
    Json list = Json::array();
    for (const OperatorCalls& call : calls)
      list.push_back({{"operator", call.op}, {"count", call.count}, {"why", call.why}});
    return list;
  };
  json["library_operators"] = operators(summary.library);
  json["torch_operators"] = operators(summary.torch);
  Json copies = Json::array();
  for (const InputCopy& copy : summary.copies)
    copies.push_back({{"input", copy.input}, {"bytes", copy.bytes}});
  json["boundary_copies"] = copies;
  json["bytes_moved"] = summary.bytes_moved;
  const session::Timings& timings = compilation.timings();
  json["timings_ms"] = {{"functional", timings.functional_ms},
                        {"lower", timings.lower_ms},
                        {"schedule", timings.schedule_ms},
                        {"codegen", timings.codegen_ms}};
  return json;
}

std::string summary_text(const session::Compilation& compilation, const session::Snapshot& snapshot,
                         const CheckedAt& checked) {
  const Summary summary = summarize(compilation, snapshot);
  const trace::Graph& traced = compilation.traced();
  const auto number = [](std::size_t count, std::string_view noun) {
    return plural(static_cast<std::int64_t>(count), noun);
  };
  std::string text =
      fmt::format("{}   {} → {} → {}, {}, {}   {}\n", program_title(compilation.program()),
                  number(summary.nodes, "node"), number(summary.nests, "nest"),
                  number(summary.kernels, "kernel"), number(summary.library_calls, "library call"),
                  number(summary.torch_calls, "torch call"), checked_text(checked, snapshot.decision));
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
  std::string log = fmt::format("{}: {} lowered, {} of {} producers inlined, {} of {} fusions accepted",
                                count_text(static_cast<std::int64_t>(snapshot.decision)), summary.lowered,
                                summary.inlined, summary.producers, summary.fused, summary.fusions);
  if (snapshot.decision < compilation.decisions().size())
    log += fmt::format("   (of {})", count_text(static_cast<std::int64_t>(compilation.decisions().size())));
  add("decisions", log);

  // A boundary of a library or torch call explains itself, and there is one at every call: they take one line.
  const std::vector<schedule::DecisionId>& missed = summary.missed;
  Table missed_rows;
  for (std::size_t k = 0; k < std::min(missed.size(), shown); ++k) {
    const schedule::Decision& decision = compilation.decisions()[missed[k].index()];
    missed_rows.add({id_text(decision.id), subject_text(compilation, decision),
                     bytes_text(decision.evidence.bytes_saved),
                     spaced(schedule::reason_name(decision.reason))});
  }
  if (missed.empty() && summary.boundaries.empty())
    add("missed fusions", "none that would have saved a byte");
  add_rows("missed fusions", missed_rows);
  if (missed.size() > shown)
    add("", fmt::format("and {} more (ls decisions refused kind=fuse)", missed.size() - shown));
  if (!summary.boundaries.empty()) {
    add(missed.empty() ? "missed fusions" : "",
        fmt::format("{} at library and torch calls, {} (ls decisions boundary)", summary.boundaries.size(),
                    bytes_text(summary.boundary_bytes)));
  }

  std::vector<std::string> classes;
  for (const auto& [access_class, count] : summary.classes) {
    classes.push_back(fmt::format("{} {}", count, index::access_class_name(access_class)));
  }
  if (!classes.empty()) add("accesses", join(classes, ", "));
  const std::vector<std::size_t>& wasteful = summary.wasteful;
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

  const auto add_calls = [&](std::string_view head, const std::vector<OperatorCalls>& calls) {
    Table rows;
    for (const OperatorCalls& call : calls) rows.add({call.op, fmt::format("× {}", call.count), call.why});
    if (!rows.empty()) add_rows(head, rows);
  };
  add_calls("library", summary.library);
  add_calls("torch", summary.torch);

  Table copy_rows;
  const std::vector<InputCopy>& copies = summary.copies;
  for (std::size_t k = 0; k < std::min(copies.size(), shown); ++k) {
    copy_rows.add({copies[k].input, copies[k].shape, bytes_text(copies[k].bytes), "copied, not dense"});
  }
  if (!copies.empty()) add_rows("boundary", copy_rows);
  if (copies.size() > shown) add("", fmt::format("and {} more inputs copied", copies.size() - shown));

  add("bytes moved", bytes_text(summary.bytes_moved) + " a call");
  add("time", timings_text(compilation.timings()));
  return text;
}

}  // namespace pallascope::report
