// From a graph's text to a loop program and a schedule, without a session.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "core/loop/program.h"
#include "core/lower/lower.h"
#include "core/schedule/schedule.h"
#include "tests/unit/support/graph_text.h"

namespace pallascope::testing {

/// The program of `graph`, which must be functional.
inline std::shared_ptr<loop::Program> lowered(const trace::Graph& graph,
                                              std::optional<std::size_t> limit = std::nullopt) {
  lower::Options options;
  options.limit = limit;
  Result<loop::Program> program = lower::lower(graph, options);
  EXPECT_TRUE(program.ok()) << pallascope::to_string(program.error());
  return std::make_shared<loop::Program>(std::move(*program));
}

/// A graph with its program and its schedule.
struct Scheduled {
  trace::Graph graph;
  std::shared_ptr<loop::Program> program;
  schedule::Schedule schedule;

  explicit Scheduled(const GraphText& text, const schedule::Options& options = {})
      : graph(text.graph()), program(lowered(graph)), schedule(schedule::schedule(program, graph, options)) {}

  [[nodiscard]] schedule::State last() const {
    return schedule::state_at(schedule, schedule.decisions.size());
  }
  [[nodiscard]] std::string names(const std::vector<trace::NodeId>& nodes) const {
    std::string text;
    for (trace::NodeId id : nodes) text += (text.empty() ? "" : " ") + graph.nodes[id].name;
    return text;
  }
  /// Every decision of the given kind as a line: `+ fuse fused_vertical: sin | add`, or `- ` if refused.
  [[nodiscard]] std::string log(std::optional<schedule::DecisionKind> kind = std::nullopt) const {
    std::string text;
    for (const schedule::Decision& d : schedule.decisions) {
      if (kind && d.kind != *kind) continue;
      text += d.accepted ? "+ " : "- ";
      text += std::string(schedule::kind_name(d.kind)) + " " + std::string(schedule::reason_name(d.reason)) +
              ": " + names(d.left);
      if (!d.right.empty()) text += " | " + names(d.right);
      text += "\n";
    }
    return text;
  }
  /// The first decision with `reason`; a test failure and an empty decision if there is none.
  [[nodiscard]] const schedule::Decision& find(schedule::Reason reason) const {
    for (const schedule::Decision& d : schedule.decisions)
      if (d.reason == reason) return d;
    ADD_FAILURE() << "no decision gives the reason " << schedule::reason_name(reason) << " in\n" << log();
    static const schedule::Decision none;
    return none;
  }
  [[nodiscard]] bool has(schedule::Reason reason) const {
    for (const schedule::Decision& d : schedule.decisions)
      if (d.reason == reason) return true;
    return false;
  }
  [[nodiscard]] loop::NestId nest(const std::string& name) const {
    for (std::size_t k = 0; k < program->nests.size(); ++k)
      if (program->nests[loop::NestId(k)].name == name) return loop::NestId(k);
    ADD_FAILURE() << "no nest is called " << name;
    return {};
  }
};

}  // namespace pallascope::testing
