// Room: lower. The programs at the early decisions: the first k nodes are lowered, the rest are torch calls.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "core/lower/lower.h"

namespace pallascope::lower {

class Builder;

/// All prefixes of one lowering, without lowering again. They share one list of buffers, nests and steps, that of the
/// whole lowering with the torch calls behind it, so that an id means the same in each of them and a prefix costs what
/// it says of each node: what became of it and where its values live.
///
/// A call differs by which of its arguments are lowered. Worked example, d = f(a, c) of nodes 0, 2 and 3: before node 0
/// is lowered it reads the torch results of both; then a's buffer and the torch result of c, until node 2 is lowered
/// too. That makes three calls with one result. A node that the whole lowering leaves to PyTorch has its buffers and,
/// once all its arguments are lowered, its call from there.
///
/// Equal to `lower` with a limit but for the ids and names of what is not lowered yet.
class Prefixes {
 public:
  /// `whole` is what lower() made of `graph` without a limit; nests may have been added. Its context grows.
  Prefixes(const trace::Graph& graph, const loop::Program& whole);

  /// Buffers, nests and steps of all prefixes; the rest is the whole lowering's.
  [[nodiscard]] const loop::Program& program() const { return program_; }

  struct Prefix {
    loop::Program program;            ///< holds steps of other prefixes besides
    std::vector<loop::StepId> steps;  ///< its own, in the order of the nodes
  };
  /// Only the first `count` nodes are lowered.
  [[nodiscard]] Prefix at(std::size_t count) const;

 private:
  /// A node as a torch call, for prefixes of at least `from` nodes.
  struct Variant {
    std::size_t from = 0;
    std::vector<loop::StepId> steps;  ///< copies of arguments, and the call
  };
  struct Value {
    trace::ValueId value;
    trace::NodeId producer;
    std::optional<loop::View> lowered, torch;
  };
  void add_calls(Builder& builder, trace::NodeId id);
  [[nodiscard]] const std::vector<loop::StepId>& call_steps(std::size_t node, std::size_t count) const;

  const trace::Graph& graph_;
  loop::Program program_;
  std::size_t node_steps_ = 0, lowered_steps_ = 0;  ///< the whole lowering's: without and with the copies of results
  std::vector<std::size_t> owner_;                  ///< of each of its steps, the node; the number of nodes for none
  std::vector<std::vector<Variant>> calls_;         ///< of each node, `from` ascending
  std::vector<Value> values_;                       ///< by id
};

}  // namespace pallascope::lower
