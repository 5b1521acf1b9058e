// Room: model. What makes the Inspector's rows; only its own sources include this.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/model/inspector.h"
#include "core/report/decision.h"
#include "core/report/format.h"
#include "core/report/lookup.h"

namespace pallascope::model::inspecting {

using Tone = InspectorPiece::Tone;

inline InspectorRow row(std::string label, std::string value, Tone tone = Tone::normal) {
  return {std::move(label), {{std::move(value), {}, tone}}, "", {}, ' ', ""};
}
inline InspectorRow link_row(std::string label, std::string value, const Selection& selection) {
  return {std::move(label), {{std::move(value), selection, Tone::normal}}, "", {}, ' ', ""};
}
inline void add(std::vector<InspectorSection>& sections, InspectorSection section) {
  if (!section.rows.empty()) sections.push_back(std::move(section));
}
inline std::string whole_number(std::size_t count, std::string_view noun) {
  return report::plural(static_cast<std::int64_t>(count), noun);
}

/// Makes the rows; one for each call of `inspector`.
class Maker {
 public:
  Maker(const session::Compilation& compilation, const session::Snapshot& snapshot)
      : compilation_(compilation),
        snapshot_(snapshot),
        graph_(compilation.graph()),
        program_(*snapshot.program) {}

  Inspector of(trace::NodeId id) const;
  Inspector of(schedule::KernelId id) const;
  Inspector of(loop::BufferId id) const;
  Inspector of(schedule::DecisionId id) const;
  Inspector of(const GroupRef& group) const;
  Inspector of(const StatementRef& ref) const;
  Inspector of(const AccessRef& ref) const;
  Inspector overview() const;

 private:
  // Rows of lists: an id, what it is, and something dim at the right.
  InspectorRow node_row(trace::NodeId id) const {
    const trace::Node& node = graph_.nodes[id];
    return {report::id_text(id), {{node.name, {}, Tone::normal}}, report::outputs_text(graph_, node), id, ' ',
            node.target};
  }
  InspectorSection nodes(std::string_view title, const std::vector<trace::NodeId>& ids,
                         bool folded = false) const {
    InspectorSection section{std::string(title), {}, true, folded};
    for (const trace::NodeId id : ids) section.rows.push_back(node_row(id));
    return section;
  }
  InspectorRow decision_row(schedule::DecisionId id) const {
    const schedule::Decision& decision = compilation_.decisions()[id.index()];
    return {report::id_text(id),
            {{decision.accepted ? "✓ " : "✗ ", {}, decision.accepted ? Tone::good : Tone::bad},
             {fmt::format("{} {}", schedule::kind_name(decision.kind),
                          report::subject_text(compilation_, decision)),
              {},
              Tone::normal}},
            report::spaced(schedule::reason_name(decision.reason)),
            id,
            ' ',
            std::string(schedule::reason_words(decision.reason))};
  }
  InspectorSection decisions(const std::vector<schedule::DecisionId>& ids, bool folded = false) const {
    InspectorSection section{"Decisions", {}, true, folded};
    for (const schedule::DecisionId id : ids) section.rows.push_back(decision_row(id));
    return section;
  }
  InspectorRow kernel_row(schedule::KernelId id) const {
    return {report::id_text(id),
            {{report::kernel_name(snapshot_, id), {}, Tone::normal}},
            whole_number(snapshot_.state.kernels[id].nests.size(), "nest"),
            id,
            ' ',
            ""};
  }
  InspectorRow buffer_row(loop::BufferId id) const {
    const loop::Buffer& buffer = program_.buffers[id];
    return {report::id_text(id),
            {{buffer.name, {}, Tone::normal}},
            report::shape_text(buffer.dtype, buffer.dims),
            id,
            ' ',
            report::bytes_text(buffer.bytes())};
  }
  InspectorRow access_row(std::size_t position) const;

  /// Kernels that hold a part of any of the nodes, in the order in which they run.
  std::vector<schedule::KernelId> kernels_with(const std::vector<trace::NodeId>& nodes) const;
  std::vector<schedule::DecisionId> decisions_with(const std::vector<trace::NodeId>& nodes) const;
  InspectorRow uses_row(std::string label, const std::vector<report::BufferUse>& uses,
                        std::string_view none) const;
  InspectorRow nest_row(loop::NestId id) const;
  void add_index(InspectorSection& section, loop::NestId nest, int statement) const;

  const session::Compilation& compilation_;
  const session::Snapshot& snapshot_;
  const trace::Graph& graph_;
  const loop::Program& program_;
};

}  // namespace pallascope::model::inspecting
