// Room: model. What a selection means in the nested graph: selected boxes, the two sides of a decision, what stands
// between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/model/graph_model.h"

namespace pallascope::model {

/// What a box is to the selection.
enum class BoxMark : std::uint8_t {
  none,
  selected,
  left,
  right,    ///< sides of a decision
  both,     ///< a box that has nodes of both sides: a closed group, a node that is on both
  between,  ///< on the path that makes a fusion a cycle
};

/// One side of a decision. Empty where it has no boxes (its nodes are hidden).
struct Side {
  std::string name;                ///< as the log calls it: `add (+2)`
  int speaker = -1;                ///< the box that its flag stands at
  std::vector<std::size_t> boxes;  ///< ascending: its nodes' boxes, and kernels of which it is the whole
};

struct GraphMarks {
  std::vector<BoxMark> boxes;         ///< one a box of the model
  std::vector<std::uint32_t> marked;  ///< those that are not `none`, ascending
  // Of a decision on two sides (fuse, inline):
  bool pair = false, accepted = false;
  Side left, right;
  std::string verdict;  ///< `cycle`, `fused vertical`
  std::vector<std::size_t>
      chain;  ///< edges of the model along the path of a cycle, from the one side to the other
  std::vector<std::size_t> direct;   ///< edges of the model from a box of the one side to one of the other
  std::vector<std::size_t> between;  ///< boxes on it, in order, without the sides
};

/// The marks of `selection` in `graph`, which is of `snapshot`. Small work (it grows with the boxes, not with the log):
/// done once for a selection and a layout.
GraphMarks graph_marks(const GraphModel& graph, const session::Compilation& compilation,
                       const session::Snapshot& snapshot, const Selection& selection);

/// The closed groups to open so that what is selected has boxes of its own, the path of a cycle included: outer ones
/// first, those that are open already left out.
std::vector<std::string> groups_to_open(const GraphModel& graph, const session::Compilation& compilation,
                                        const session::Snapshot& snapshot, const Selection& selection);

/// The nodes of a cycle's path, from the one side to the other, both included: of the steps that the evidence names,
/// with the nodes that lead from one to the next (a group's others, views). Empty without such evidence.
std::vector<trace::NodeId> nodes_of_path(const session::Compilation& compilation,
                                         const schedule::Decision& decision);

}  // namespace pallascope::model
