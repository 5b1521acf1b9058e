// Room: schedule. The decision log: every choice, accepted or refused, numbered, with typed evidence.
// Takes: the outcomes of lowering, then its own inlining and fusion choices.
// Gives: Decision records to stepping, `why`, reports and code generation.
// May use: base, trace, index, loop, target.
// Never: holds prose as the only evidence, renumbers a decision, knows of Python or a UI.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/id.h"
#include "core/index/access.h"
#include "core/loop/program.h"
#include "core/trace/graph.h"

namespace pallascope::schedule {

struct DecisionTag;
using DecisionId = Id<DecisionTag>;  ///< d0, d1, ...; the number is its place in the log

enum class DecisionKind : std::uint8_t { lower, inline_producer, fuse };
/// `lower`, `inline`, `fuse`.
std::string_view kind_name(DecisionKind kind);

/// The closed list of reasons. `accepted_*` come with an accepted decision, the rest with a refused one.
enum class Reason : std::uint8_t {
  // lower
  lowered_to_kernel,   ///< the operator became loop nests
  lowered_to_view,     ///< the operator is an index map, no code
  left_to_library,     ///< a matrix product: a jax.lax call
  left_to_torch,       ///< no lowering: PyTorch runs it
  // inline
  inlined_no_loads,    ///< the producer reads nothing (a constant, an iota): recomputing is free
  inlined_index,       ///< a consumer reads a part of it or out of order: taken at the refs instead of on a value
  kept_reduction,      ///< the producer reduces: recomputing would repeat the reduction
  kept_scan,           ///< the producer scans an axis: an element of it needs all those before it
  kept_output,         ///< the producer's buffer is an output of the graph or feeds a call
  kept_identity,       ///< consumers read it element by element: fusion shares it without recomputing
  kept_too_costly,     ///< inlining would repeat too much work
  // fuse, accepted
  fused_vertical,      ///< producer and consumer
  fused_horizontal,    ///< two readers of one buffer
  // fuse, refused, by condition
  library_boundary,    ///< one side is a library call
  torch_boundary,      ///< one side is a torch call
  cycle,               ///< order: another step between the two needs the first and feeds the second
  common_grid,         ///< too large whole, and no axis is left to tile
  exceeds_memory,      ///< the smallest tile's working set is over the target's memory
  not_expressible,     ///< the consumer reads the producer's value by an index that no kernel can take of a value
};
std::string_view reason_name(Reason reason);
/// One sentence for a person.
std::string_view reason_words(Reason reason);

/// The four conditions of a fusion, in order.
enum class Condition : std::uint8_t { order_and_aliasing, common_grid, fits_on_chip, expressible };
std::string_view condition_name(Condition condition);
enum class ConditionState : std::uint8_t { holds, fails, not_reached };

/// How the two sides index the buffer that they share.
struct IndexPair {
  loop::BufferId buffer;
  loop::NestId left_nest, right_nest;
  index::Expression left, right;          ///< writer's or first reader's, and the reader's
};

/// Typed evidence; fields that do not apply stay empty.
struct Evidence {
  std::vector<std::pair<Condition, ConditionState>> conditions;
  std::vector<IndexPair> indices;
  std::optional<index::AxisId> axis;           ///< the axis that stands in the way
  std::optional<loop::NestId> axis_nest;       ///< and whose it is
  std::string axis_role;                       ///< "reduced", "scanned", "gathered", "scattered", "sliced", "not shared"
  std::int64_t bytes_saved = 0;
  std::int64_t working_set = 0;                ///< bytes on chip with whole arrays
  std::int64_t working_set_tile = 0;           ///< bytes on chip with the smallest tile
  std::int64_t budget = 0;                     ///< the target's memory
  std::vector<std::vector<index::AxisId>> tile_axes;  ///< grid axes that the group could be tiled on, per class one axis each
  std::vector<loop::StepId> path;              ///< for a cycle: the steps from the first side to the second
  std::string note;                            ///< for lowering: why PyTorch runs it
};

/// One numbered entry.
struct Decision {
  DecisionId id;
  DecisionKind kind = DecisionKind::lower;
  bool accepted = false;
  Reason reason = Reason::lowered_to_kernel;
  std::vector<trace::NodeId> left, right;  ///< origins (functional graph): lower has only `left`; inline: producer, consumers
  std::vector<loop::StepId> left_steps, right_steps;  ///< the steps on each side when it was taken
  int occurrence = 0;                      ///< with kind and origins, the decision's identity
  Evidence evidence;
};

}  // namespace pallascope::schedule
