// Room: repl. What a typed name means: an id, an ATen name, a buffer or kernel name, a line of the model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/repl/session.h"
#include "core/base/result.h"

namespace pallascope::repl {

/// What was named. `node` holds one node, or several for a line of the model or an operator that became several.
struct Thing {
  enum class Kind { node, buffer, kernel, decision } kind = Kind::node;
  std::vector<trace::NodeId> nodes;
  loop::BufferId buffer;
  schedule::KernelId kernel;
  schedule::DecisionId decision;
};

/// In this order: `n12` `b7` `k4` `d37`, a node's name, a name of one of a node's outputs, a buffer's or graph
/// input's name, a kernel's name, `FILE:LINE` (the end of the file's path is enough), the name of a traced node that
/// became others. Kernels and buffers are those at the decision at which `opened` stands. Diagnostic: not_found, with
/// the range of the ids or the nearest name.
Result<Thing> resolve(const Opened& opened, const session::Snapshot& snapshot, std::string_view word);
/// The same, for commands that take one kind only.
Result<schedule::KernelId> resolve_kernel(const Opened& opened, const session::Snapshot& snapshot,
                                          std::string_view word);
/// `d37` or `37` -> 38 (it holds, and those before it); `start` -> 0, `end` -> all.
Result<std::size_t> resolve_position(const Opened& opened, std::string_view word);

/// All names that resolve takes, for Tab and for suggestions. Ids only when `ids`.
std::vector<std::string> known_names(const Opened& opened, const session::Snapshot& snapshot, bool ids);
/// `model.py:42` of all nodes, each once.
std::vector<std::string> known_places(const Opened& opened);

/// A count or position typed by a person: digits only.
Result<std::size_t> parse_count(std::string_view word);

/// The ATen nodes that a thing stands for: a kernel's, a buffer's maker, a decision's both sides.
std::vector<trace::NodeId> nodes_of_thing(const Opened& opened, const session::Snapshot& snapshot,
                                          const Thing& thing);

}  // namespace pallascope::repl
