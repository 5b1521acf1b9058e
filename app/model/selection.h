// Room: model. What the window shows, as data: rows, ticks, boxes, columns, search; one selection for all of it.
// Takes: session::Compilation and a Snapshot of it; sizes of text from the views.
// Gives: immutable values that a worker makes and a view draws; the selection and how it follows across decisions.
// May use: every room of core.
// Never: draws, includes ImGui, runs Python, parses a command, identifies a thing by its text.
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/session/compilation.h"

namespace pallascope::model {

/// A module path of the graph, `h.0.attn`.
struct GroupRef {
  std::string path;
  friend auto operator<=>(const GroupRef&, const GroupRef&) = default;
};
/// A statement of a nest; -1 is the whole nest.
struct StatementRef {
  loop::NestId nest;
  int statement = -1;
  friend auto operator<=>(const StatementRef&, const StatementRef&) = default;
};
/// A load or store: its position in Module::accesses.
struct AccessRef {
  int access = -1;
  friend auto operator<=>(const AccessRef&, const AccessRef&) = default;
};

/// The one thing that is selected, in every panel. Nodes (of the functional graph), decisions and groups mean the same
/// at every decision; kernels, nests, buffers and accesses belong to the snapshot that they were picked in.
using Selection = std::variant<std::monostate, trace::NodeId, GroupRef, schedule::DecisionId, schedule::KernelId, StatementRef,
                               loop::BufferId, AccessRef>;

inline bool is_empty(const Selection& selection) { return std::holds_alternative<std::monostate>(selection); }

/// Whether `path` is `group` or lies in it: `h.0.attn` is in `h.0`; `h.01` is not. Everything is in the group ``.
bool in_group(std::string_view path, std::string_view group);

/// The nodes that a selection stands for, ascending: a kernel's, both sides of a decision, those that touch a buffer.
std::vector<trace::NodeId> nodes_of(const session::Compilation& compilation, const session::Snapshot& snapshot,
                                    const Selection& selection);

/// The selection in `after` that means what `selection` meant in `before`: the same id where it still stands for the
/// same, else its children (a nest that took its statements in, the largest part of a kernel that fell apart), else its
/// ancestors (the nest of a statement, the node of a nest). Empty only if it was, or if its id is not of `before`.
///
/// Kernels are numbered anew at each decision. The follower of a kernel is the one with the most of its nests, then
/// with the most of its nodes; of equal ones, the first that runs.
Selection follow(const session::Snapshot& before, const session::Snapshot& after, const Selection& selection);

}  // namespace pallascope::model
