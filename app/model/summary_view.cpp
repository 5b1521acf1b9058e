#include "app/model/summary_view.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/report/accesses.h"
#include "core/report/decision.h"
#include "core/report/format.h"
#include "core/report/summary.h"

namespace pallascope::model {
namespace {

std::string number(std::size_t count) { return report::count_text(static_cast<std::int64_t>(count)); }

SummaryFigure figure(std::size_t count, const std::string& noun) {
  return {number(count), count == 1 ? noun : noun + "s"};
}

SummaryMissed missed_row(const session::Compilation& compilation, schedule::DecisionId id) {
  const schedule::Decision& decision = compilation.decisions()[id.index()];
  return {id, report::id_text(id), report::subject_text(compilation, decision),
          report::bytes_text(decision.evidence.bytes_saved),
          report::spaced(schedule::reason_name(decision.reason))};
}

SummaryWaste waste_row(const session::Snapshot& snapshot, std::size_t position) {
  const codegen::KernelAccess& access = snapshot.module.accesses[position];
  const std::int64_t used = report::bytes_touched(*snapshot.program, access);
  const std::int64_t spanned = report::bytes_spanned(*snapshot.program, access);
  SummaryWaste row;
  row.access = {static_cast<int>(position)};
  row.letter = index::access_class_letter(access.access.access_class);
  row.where = fmt::format("{} in {}", report::id_text(access.buffer), report::id_text(access.kernel));
  row.words = access.access.words.empty() ? std::string(index::access_class_name(access.access.access_class))
                                          : access.access.words;
  row.used = report::bytes_text(used);
  row.spanned = report::bytes_text(spanned);
  if (spanned > 0)
    row.share = std::min(1.0F, static_cast<float>(static_cast<double>(used) / static_cast<double>(spanned)));
  return row;
}

}  // namespace

SummaryView summary_view(const session::Compilation& compilation, const session::Snapshot& snapshot) {
  const report::Summary summary = report::summarize(compilation, snapshot);
  const trace::Program& program = compilation.program();
  const trace::Graph& traced = compilation.traced();
  SummaryView view;
  view.title = report::program_title(program);
  view.path = program.origin;
  if (program.graphs.size() > 1) {
    view.graph =
        fmt::format("graph {} of {}: {}{}", compilation.graph_index(), program.graphs.size(), traced.name,
                    traced.kind.empty() || traced.kind == traced.name ? "" : " (" + traced.kind + ")");
  }
  view.figures = {figure(summary.nodes, "node"), figure(summary.nests, "nest"),
                  figure(summary.kernels, "kernel"), figure(summary.library_calls, "library call"),
                  figure(summary.torch_calls, "torch call")};
  const auto head = [](const auto& list) { return std::min(list.size(), SummaryView::most_rows); };
  view.missed_count = summary.missed.size();
  for (std::size_t k = 0; k < head(summary.missed); ++k)
    view.missed.push_back(missed_row(compilation, summary.missed[k]));
  if (!summary.missed.empty())
    view.missed_total =
        fmt::format("{} · {}", number(summary.missed.size()), report::bytes_text(summary.missed_bytes));
  if (!summary.boundaries.empty()) {
    view.boundaries = fmt::format("{} at library and torch calls, {}", number(summary.boundaries.size()),
                                  report::bytes_text(summary.boundary_bytes));
  }
  for (const auto& [access_class, count] : summary.classes) view.accesses += count;
  for (const auto& [access_class, count] : summary.classes) {
    view.classes.push_back({index::access_class_letter(access_class),
                            std::string(index::access_class_name(access_class)), count,
                            static_cast<float>(count) / static_cast<float>(view.accesses)});
  }
  view.wasteful_count = summary.wasteful.size();
  for (std::size_t k = 0; k < head(summary.wasteful); ++k)
    view.wasteful.push_back(waste_row(snapshot, summary.wasteful[k]));
  for (const bool torch : {true, false}) {
    for (const report::OperatorCalls& calls : torch ? summary.torch : summary.library)
      view.operators.push_back({calls.op, "× " + number(calls.count), calls.why, torch});
  }
  view.copies_count = summary.copies.size();
  for (std::size_t k = 0; k < head(summary.copies); ++k)
    view.copies.push_back(
        {summary.copies[k].input, summary.copies[k].shape, report::bytes_text(summary.copies[k].bytes)});
  view.bytes_moved = report::bytes_text(summary.bytes_moved);
  view.decisions =
      fmt::format("{} decisions: {} lowered, {} of {} producers inlined, {} of {} fusions accepted",
                  number(snapshot.decision), number(summary.lowered), number(summary.inlined),
                  number(summary.producers), number(summary.fused), number(summary.fusions));
  const std::string time = report::timings_text(compilation.timings());
  const std::size_t colon = time.find(": ");
  view.time = time.substr(0, colon);
  if (colon != std::string::npos) view.time_parts = time.substr(colon + 2);
  return view;
}

}  // namespace pallascope::model
