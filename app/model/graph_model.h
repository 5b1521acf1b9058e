// Room: model. The nested graph: what is visible when some groups are open, with edges between what is visible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/model/selection.h"
#include "core/session/compilation.h"

namespace pallascope::model {

enum class BoxKind : std::uint8_t {
  input,   ///< a graph input (not a parameter, buffer or constant: a model has hundreds)
  output,  ///< a graph output
  node,
  group,   ///< a module path; a container when it is open
  kernel,  ///< a container of nodes that one kernel computes
};

/// A visible thing. A container stands before what it holds.
struct Box {
  std::string key;       ///< the same thing in another snapshot has the same key
  BoxKind kind = BoxKind::node;
  std::string label, sublabel;
  std::string name;      ///< beside the label: bytes of a kernel, a group's class, `lib`, the kernel of a lone node
  std::string detail;    ///< of a container, how much is in it
  int parent = -1;       ///< the container that it is in; -1 at the top
  int depth = 0;
  bool container = false;
  trace::NodeId node;
  schedule::KernelId kernel;  ///< of the snapshot; a node's too: where its result is computed
  std::string path;      ///< of a group, else of the group that it is in
  int number = -1;       ///< input or output: its place in Graph::inputs or outputs
  std::size_t nodes = 0;      ///< ATen nodes in it, hidden ones too
  std::size_t position = 0;   ///< of its first node in the graph: a stable order for what no edge orders
  std::string outcome;   ///< of a node: `kernel`, `view`, `library`, `torch`
  bool changed = false;  ///< the last decision changed what a node became or which kernel it is in (one of its nodes)
};

/// From one visible box that is no container to another: all uses of values of the one in the other.
struct Edge {
  int from = -1, to = -1;
  std::size_t uses = 0;   ///< pairs of a value and a node that uses it
  std::int64_t bytes = 0; ///< of the distinct values
};

/// A group of the module tree, whether visible or not; of two nodes or more. `h` with nothing in it but `h.0` is shown as `h.0`.
struct Group {
  std::string path, label, type;
  int parent = -1;
  std::vector<int> children;
  std::vector<trace::NodeId> own;  ///< nodes whose module path is this one, and those alone in one below
  std::size_t nodes = 0;           ///< in it and below
};

/// The paths of open groups.
using OpenGroups = std::set<std::string, std::less<>>;

struct GraphModel {
  std::vector<Box> boxes;
  std::vector<Edge> edges;
  std::vector<Group> groups;        ///< a parent before its children
  std::vector<int> box_of_node;     ///< per node of the functional graph, the visible box that stands for it
  std::size_t visible_nodes = 0;    ///< nodes with a box of their own
  OpenGroups open;                  ///< as asked for, or as chosen

  [[nodiscard]] std::optional<std::size_t> find(std::string_view key) const;
};

struct GraphOptions {
  OpenGroups open;
  /// Open what makes a good first picture instead: all groups of a small graph, else the only ones of their level.
  bool choose = false;
  bool kernels = true;           ///< containers for kernels
  std::set<trace::NodeId> hidden;  ///< not shown; edges through them are not drawn either
};

/// The visible boxes and the edges between them.
///
/// A group of one node is not shown as a group, nor a kernel of one node as a container.
/// A kernel's container holds the visible nodes that it computes in one open group, with the views between them; a
/// kernel that reaches over several groups has a container in each, all with its id. A node that several kernels have a
/// part in is put where its last own nest runs. Nodes of a closed group are stood for by it: their edges are lifted to
/// it, those within it are gone, and equal ones are counted.
GraphModel graph_model(const session::Compilation& compilation, const session::Snapshot& snapshot, const GraphOptions& options);

/// The boxes that stand for a selection, ascending: one for a node; a kernel's containers; the groups that hide nodes.
std::vector<std::size_t> boxes_of(const GraphModel& graph, const session::Compilation& compilation,
                                  const session::Snapshot& snapshot, const Selection& selection);
/// What a click on a box selects; a graph input or output is its buffer.
Selection selection_of(const Box& box, const session::Snapshot& snapshot);
/// The groups to open so that a node has its own box.
std::vector<std::string> groups_above(const GraphModel& graph, const session::Compilation& compilation, trace::NodeId node);

}  // namespace pallascope::model
