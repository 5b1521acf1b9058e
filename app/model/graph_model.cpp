#include "app/model/graph_model.h"

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "core/report/format.h"
#include "core/report/lookup.h"

namespace pallascope::model {
namespace {

using session::Compilation;
using session::Snapshot;

constexpr std::size_t small_graph = 60;  // nodes that a panel shows at a readable size, with some scrolling

template <class Visit>
void visit_values(const trace::Argument& argument, const Visit& visit) {
  if (const auto* value = argument.get<trace::ValueId>()) visit(*value);
  if (const auto* list = argument.get<trace::ArgumentList>()) {
    for (const trace::Argument& item : *list) visit_values(item, visit);
  }
}

template <class Visit>
void visit_inputs(const trace::Node& node, const Visit& visit) {
  for (const trace::Argument& argument : node.args) visit_values(argument, visit);
  for (const auto& [name, argument] : node.kwargs) visit_values(argument, visit);
}

struct Tree {
  std::vector<Group> groups;  ///< 0 is the top, with the empty path
  std::vector<int> of_node;
};

/// Groups as the paths say them. A group of one node (a linear layer, an activation) is no group: its node belongs to
/// what is around it, so that a kernel over several such is seen whole. Then chains of one child and no node of their own
/// become one.
Tree module_tree(const trace::Graph& graph) {
  std::vector<Group> all(1);
  std::unordered_map<std::string, int> known{{"", 0}};
  std::vector<int> of_node;
  const std::function<int(const std::string&)> find = [&](const std::string& path) {
    if (const auto at = known.find(path); at != known.end()) return at->second;
    const std::size_t dot = path.rfind('.');
    const int parent = find(dot == std::string::npos ? "" : path.substr(0, dot));
    const int id = static_cast<int>(all.size());
    Group group;
    group.path = path;
    group.label = dot == std::string::npos ? path : path.substr(dot + 1);
    group.parent = parent;
    all.push_back(group);
    all[static_cast<std::size_t>(parent)].children.push_back(id);
    known.emplace(path, id);
    return id;
  };
  for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
    const trace::Node& node = graph.nodes[trace::NodeId(k)];
    const int id = find(node.module_path);
    Group& group = all[static_cast<std::size_t>(id)];
    group.own.push_back(trace::NodeId(k));
    if (group.type.empty()) group.type = node.module_type;
    of_node.push_back(id);
  }
  std::vector<bool> gone(all.size(), false);
  for (std::size_t k = all.size(); k-- > 1;) {
    if (!all[k].children.empty() || all[k].own.size() != 1) continue;
    const int parent = all[k].parent;
    Group& around = all[static_cast<std::size_t>(parent)];
    around.own.push_back(all[k].own.front());
    std::sort(around.own.begin(), around.own.end());
    std::erase(around.children, static_cast<int>(k));
    of_node[all[k].own.front().index()] = parent;
    all[k].own.clear();
    gone[k] = true;
  }
  for (std::size_t k = all.size(); k-- > 0;) {
    all[k].nodes += all[k].own.size();
    if (all[k].parent >= 0) all[static_cast<std::size_t>(all[k].parent)].nodes += all[k].nodes;
  }
  Tree tree;
  std::vector<int> renamed(all.size(), -1);
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (gone[k]) continue;
    if (k > 0 && all[k].own.empty() && all[k].children.size() == 1) {
      Group& child = all[static_cast<std::size_t>(all[k].children[0])];
      child.label = all[k].label + "." + child.label;
      child.parent = all[k].parent;  // parents stand first, so this one's is final but for its number
      continue;
    }
    renamed[k] = static_cast<int>(tree.groups.size());
    Group group = all[k];
    group.children.clear();
    if (group.parent >= 0) {
      group.parent = renamed[static_cast<std::size_t>(group.parent)];
      tree.groups[static_cast<std::size_t>(group.parent)].children.push_back(renamed[k]);
    }
    tree.groups.push_back(std::move(group));
  }
  for (const int id : of_node) tree.of_node.push_back(renamed[static_cast<std::size_t>(id)]);
  return tree;
}

/// Per node the kernel that computes it, or none.
std::vector<schedule::KernelId> kernels_of_nodes(const trace::Graph& graph, const Snapshot& snapshot) {
  std::vector<schedule::KernelId> own(graph.nodes.size()), other(graph.nodes.size());
  for (const schedule::KernelId kernel : report::kernels_in_order(snapshot)) {
    for (const loop::NestId id : snapshot.state.kernels[kernel].nests) {
      const loop::Nest& nest = snapshot.program->nests[id];
      if (nest.origin.valid()) own[nest.origin.index()] = kernel;
      for (const trace::NodeId node : nest.origins) {
        if (node.valid() && !other[node.index()].valid()) other[node.index()] = kernel;  // inlined into its consumers
      }
    }
  }
  for (std::size_t k = 0; k < own.size(); ++k) {
    if (!own[k].valid()) own[k] = other[k];
  }
  return own;
}

/// Per node a number that is the same in two snapshots if it became the same and its kernel has the same nodes.
std::vector<std::uint64_t> places_of_nodes(const trace::Graph& graph, const Snapshot& snapshot) {
  const std::vector<schedule::KernelId> kernels = kernels_of_nodes(graph, snapshot);
  const auto mix = [](std::uint64_t seed, std::uint64_t value) {
    return (seed ^ value) * 0x9e3779b97f4a7c15ULL + 0x632be59bd9b4e019ULL;
  };
  std::unordered_map<std::size_t, std::uint64_t> members;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    if (!kernels[k].valid()) continue;
    std::uint64_t& known = members[kernels[k].index()];
    known = mix(known, k + 1);
  }
  // Fusions within one node change no kernel's nodes, but its nests.
  for (const schedule::KernelId kernel : report::kernels_in_order(snapshot))
    members[kernel.index()] = mix(members[kernel.index()], snapshot.state.kernels[kernel].nests.size());
  std::vector<std::uint64_t> places(kernels.size(), 0);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const std::string outcome = report::outcome_text(snapshot, trace::NodeId(k));
    places[k] = mix(kernels[k].valid() ? members[kernels[k].index()] : 0, outcome.empty() ? 0 : static_cast<std::uint64_t>(outcome[0]));
  }
  return places;
}

/// `add_layer_norm` of `pallas_fused_add_layer_norm_1f0c9a2b`.
std::string short_name(std::string name) {
  constexpr std::string_view start = "pallas_fused_";
  if (name.starts_with(start)) name.erase(0, start.size());
  const std::size_t last = name.rfind('_');
  if (last != std::string::npos && name.size() - last == 9) name.resize(last);  // eight digits of a hash
  return name;
}

class Maker {
 public:
  Maker(const Compilation& compilation, const Snapshot& snapshot, const GraphOptions& options)
      : compilation_(compilation), graph_(compilation.graph()), snapshot_(snapshot), options_(options), tree_(module_tree(graph_)) {}

  GraphModel make() {
    model_.groups = tree_.groups;
    model_.open = options_.choose ? first_open() : options_.open;
    model_.box_of_node.assign(graph_.nodes.size(), -1);
    find_visible_groups();
    kernel_of_ = kernels_of_nodes(graph_, snapshot_);
    give_views_a_kernel();
    find_changes();
    add_inputs();
    add_group(0, -1, 0);
    add_outputs();
    add_edges();
    return std::move(model_);
  }

 private:
  [[nodiscard]] const Group& group(int id) const { return tree_.groups[static_cast<std::size_t>(id)]; }

  [[nodiscard]] OpenGroups first_open() const {
    OpenGroups open;
    const bool all = graph_.nodes.size() <= small_graph;
    for (std::size_t k = 1; k < tree_.groups.size(); ++k) {
      const Group& above = group(tree_.groups[k].parent);
      const bool only = above.own.empty() && above.children.size() == 1 && (above.path.empty() || open.contains(above.path));
      if (all || only) open.insert(tree_.groups[k].path);
    }
    return open;
  }

  /// Per group: open all the way up, else the outermost closed group that hides it.
  void find_visible_groups() {
    hidden_by_.assign(tree_.groups.size(), -1);
    for (std::size_t k = 1; k < tree_.groups.size(); ++k) {
      const int above = hidden_by_[static_cast<std::size_t>(tree_.groups[k].parent)];
      hidden_by_[k] = above >= 0 ? above : model_.open.contains(tree_.groups[k].path) ? -1 : static_cast<int>(k);
    }
  }

  /// A view is no work of any kernel. One whose value only goes to one kernel, or that lies between two nodes of a
  /// kernel, is shown in it: outside, the kernel's container would feed itself through it.
  void give_views_a_kernel() {
    std::vector<std::vector<trace::NodeId>> users(graph_.nodes.size());
    for (std::size_t k = 0; k < graph_.nodes.size(); ++k) {
      visit_inputs(graph_.nodes[trace::NodeId(k)], [&](trace::ValueId value) {
        const trace::NodeId from = graph_.values[value].producer;
        if (from.valid()) users[from.index()].push_back(trace::NodeId(k));
      });
    }
    for (std::size_t k = graph_.nodes.size(); k-- > 0;) {
      const trace::NodeId id(k);
      if (kernel_of_[k].valid() || report::outcome_text(snapshot_, id) != "view" || users[k].empty()) continue;
      schedule::KernelId source;
      visit_inputs(graph_.nodes[id], [&](trace::ValueId value) {
        const trace::NodeId from = graph_.values[value].producer;
        if (from.valid()) source = kernel_of_[from.index()];
      });
      const auto same = [&](schedule::KernelId wanted) {
        return [this, wanted](trace::NodeId user) { return kernel_of_[user.index()] == wanted; };
      };
      const schedule::KernelId first = kernel_of_[users[k].front().index()];
      if (first.valid() && std::all_of(users[k].begin(), users[k].end(), same(first))) {
        kernel_of_[k] = first;
      } else if (source.valid() && std::any_of(users[k].begin(), users[k].end(), same(source))) {
        kernel_of_[k] = source;
      }
    }
  }

  void find_changes() {
    changed_.assign(graph_.nodes.size(), false);
    if (snapshot_.decision == 0) return;
    const auto before = places_of_nodes(graph_, *compilation_.at(snapshot_.decision - 1)), now = places_of_nodes(graph_, snapshot_);
    for (std::size_t k = 0; k < now.size(); ++k) changed_[k] = before[k] != now[k];
  }

  int add(Box box) {
    model_.boxes.push_back(std::move(box));
    return static_cast<int>(model_.boxes.size()) - 1;
  }

  void add_inputs() {
    for (std::size_t k = 0; k < graph_.inputs.size(); ++k) {
      if (graph_.inputs[k].kind != trace::InputKind::user_input) continue;
      const trace::Value& value = graph_.values[graph_.inputs[k].value];
      Box box;
      box.key = fmt::format("in:{}", k);
      box.kind = BoxKind::input;
      box.label = value.name;
      box.sublabel = value.tensor ? trace::to_string(*value.tensor) : "";
      box.number = static_cast<int>(k);
      input_boxes_[graph_.inputs[k].value] = add(std::move(box));
    }
  }

  void add_outputs() {
    for (std::size_t k = 0; k < graph_.outputs.size(); ++k) {
      const trace::Output& output = graph_.outputs[k];
      if (!output.value.valid()) continue;
      const trace::Value& value = graph_.values[output.value];
      Box box;
      box.key = fmt::format("out:{}", k);
      box.kind = BoxKind::output;
      box.label = output.kind == trace::OutputKind::mutation ? "written into " + output.target : fmt::format("output {}", k);
      box.sublabel = value.tensor ? trace::to_string(*value.tensor) : "";
      box.number = static_cast<int>(k);
      box.position = graph_.nodes.size() + k;
      output_boxes_.emplace_back(output.value, add(std::move(box)));
    }
  }

  void add_node(trace::NodeId id, int parent, int depth) {
    const trace::Node& node = graph_.nodes[id];
    Box box;
    box.key = "n:" + node.name;
    box.label = node.name;
    box.outcome = report::outcome_text(snapshot_, id);
    box.sublabel = report::outputs_text(graph_, node);
    if (box.outcome == "library") box.name = "lib";
    if (box.outcome == "torch") box.name = "torch";
    if (const Group& around = group(tree_.of_node[id.index()]); node.module_path != around.path)
      box.sublabel = node.module_path.substr(node.module_path.rfind('.') + 1) + " · " + box.sublabel;
    box.parent = parent;
    box.depth = depth;
    box.node = id;
    box.kernel = kernel_of_[id.index()];
    box.path = node.module_path;
    box.nodes = 1;
    box.position = id.index();
    box.changed = changed_[id.index()];
    model_.box_of_node[id.index()] = add(std::move(box));
    ++model_.visible_nodes;
  }

  /// What an open group (or the top) holds: its kernels with their nodes, nodes without one, groups.
  void add_group(int id, int parent, int depth) {
    std::map<schedule::KernelId, std::vector<trace::NodeId>> kernels;
    std::vector<trace::NodeId> alone;
    for (const trace::NodeId node : group(id).own) {
      if (options_.hidden.contains(node)) continue;
      const schedule::KernelId kernel = kernel_of_[node.index()];
      if (options_.kernels && kernel.valid()) {
        kernels[kernel].push_back(node);
      } else {
        alone.push_back(node);
      }
    }
    for (const auto& [kernel, nodes] : kernels) {
      if (nodes.size() == 1) {
        // A frame around one box says nothing more than its name.
        add_node(nodes.front(), parent, depth);
        Box& box = model_.boxes.back();
        box.name = box.name.empty() ? report::id_text(kernel) : box.name + " " + report::id_text(kernel);
        continue;
      }
      Box box;
      box.key = fmt::format("k:{}:{}", group(id).path, graph_.nodes[nodes.front()].name);
      box.kind = BoxKind::kernel;
      box.label = report::id_text(kernel);
      box.name = report::bytes_text(snapshot_.state.kernels[kernel].bytes_moved);
      box.sublabel = short_name(report::kernel_name(snapshot_, kernel));
      box.parent = parent;
      box.depth = depth;
      box.container = true;
      box.kernel = kernel;
      box.path = group(id).path;
      box.nodes = nodes.size();
      box.position = nodes.front().index();
      box.changed = std::any_of(nodes.begin(), nodes.end(), [this](trace::NodeId node) { return changed_[node.index()]; });
      box.detail = report::plural(static_cast<std::int64_t>(nodes.size()), "node");
      const int at = add(std::move(box));
      for (const trace::NodeId node : nodes) add_node(node, at, depth + 1);
    }
    for (const trace::NodeId node : alone) add_node(node, parent, depth);
    for (const int child : group(id).children) add_child(child, parent, depth);
  }

  void add_child(int id, int parent, int depth) {
    Box box;
    box.key = "g:" + group(id).path;
    box.kind = BoxKind::group;
    box.label = group(id).label;
    box.parent = parent;
    box.depth = depth;
    box.path = group(id).path;
    box.nodes = group(id).nodes;
    box.container = hidden_by_[static_cast<std::size_t>(id)] < 0;
    std::set<schedule::KernelId> kernels;
    std::vector<trace::NodeId> inside;
    collect(id, inside);
    box.position = inside.empty() ? 0 : inside.front().index();
    for (const trace::NodeId node : inside) {
      box.position = std::min(box.position, node.index());
      box.changed = box.changed || changed_[node.index()];
      if (kernel_of_[node.index()].valid()) kernels.insert(kernel_of_[node.index()]);
    }
    box.name = group(id).type;
    box.detail = fmt::format("{} · {}", report::plural(static_cast<std::int64_t>(box.nodes), "node"),
                             report::plural(static_cast<std::int64_t>(kernels.size()), "kernel"));
    if (!box.container) box.sublabel = box.detail;
    const bool open = box.container;
    const int at = add(std::move(box));
    if (open) {
      add_group(id, at, depth + 1);
    } else {
      for (const trace::NodeId node : inside) model_.box_of_node[node.index()] = at;
    }
  }

  void collect(int id, std::vector<trace::NodeId>& nodes) const {
    for (const trace::NodeId node : group(id).own) {
      if (!options_.hidden.contains(node)) nodes.push_back(node);
    }
    for (const int child : group(id).children) collect(child, nodes);
  }

  void add_use(trace::ValueId value, int to) {
    const trace::Value& v = graph_.values[value];
    int from = -1;
    if (v.producer.valid()) {
      from = model_.box_of_node[v.producer.index()];
    } else if (const auto at = input_boxes_.find(value); at != input_boxes_.end()) {
      from = at->second;
    }
    if (from < 0 || to < 0 || from == to) return;
    const auto [at, is_new] = edges_.emplace(std::pair(from, to), model_.edges.size());
    if (is_new) model_.edges.push_back({from, to, 0, 0});
    Edge& edge = model_.edges[at->second];
    ++edge.uses;
    if (counted_.insert({at->second, value}).second && v.tensor) edge.bytes += v.tensor->bytes();
  }

  void add_edges() {
    for (std::size_t k = 0; k < graph_.nodes.size(); ++k) {
      const int to = model_.box_of_node[k];
      if (to < 0) continue;
      std::set<trace::ValueId> seen;  // a node that uses a value twice uses it
      visit_inputs(graph_.nodes[trace::NodeId(k)], [&](trace::ValueId value) {
        if (seen.insert(value).second) add_use(value, to);
      });
    }
    for (const auto& [value, box] : output_boxes_) add_use(value, box);
  }

  const Compilation& compilation_;
  const trace::Graph& graph_;
  const Snapshot& snapshot_;
  const GraphOptions& options_;
  Tree tree_;
  GraphModel model_;
  std::vector<int> hidden_by_;
  std::vector<schedule::KernelId> kernel_of_;
  std::vector<bool> changed_;  ///< per node, by the last decision
  std::map<trace::ValueId, int> input_boxes_;
  std::vector<std::pair<trace::ValueId, int>> output_boxes_;
  std::map<std::pair<int, int>, std::size_t> edges_;
  std::set<std::pair<std::size_t, trace::ValueId>> counted_;
};

}  // namespace

std::optional<std::size_t> GraphModel::find(std::string_view key) const {
  for (std::size_t k = 0; k < boxes.size(); ++k) {
    if (boxes[k].key == key) return k;
  }
  return std::nullopt;
}

GraphModel graph_model(const Compilation& compilation, const Snapshot& snapshot, const GraphOptions& options) {
  return Maker(compilation, snapshot, options).make();
}

std::vector<std::size_t> boxes_of(const GraphModel& graph, const Compilation& compilation, const Snapshot& snapshot,
                                  const Selection& selection) {
  std::set<std::size_t> found;
  const auto* kernel = std::get_if<schedule::KernelId>(&selection);
  const auto* group = std::get_if<GroupRef>(&selection);
  for (std::size_t k = 0; k < graph.boxes.size(); ++k) {
    const Box& box = graph.boxes[k];
    if ((kernel != nullptr && box.kind == BoxKind::kernel && box.kernel == *kernel) ||
        (group != nullptr && box.kind == BoxKind::group && box.path == group->path))
      found.insert(k);
  }
  if (group != nullptr && !found.empty()) return {found.begin(), found.end()};
  for (const trace::NodeId node : nodes_of(compilation, snapshot, selection)) {
    const int box = graph.box_of_node.at(node.index());
    if (box < 0) continue;
    const int parent = graph.boxes[static_cast<std::size_t>(box)].parent;
    const bool inside = kernel != nullptr && parent >= 0 && found.contains(static_cast<std::size_t>(parent));
    if (!inside) found.insert(static_cast<std::size_t>(box));
  }
  return {found.begin(), found.end()};
}

Selection selection_of(const Box& box, const Snapshot& snapshot) {
  const auto number = static_cast<std::size_t>(std::max(box.number, 0));
  switch (box.kind) {
    case BoxKind::node: return box.node;
    case BoxKind::group: return GroupRef{box.path};
    case BoxKind::kernel: return box.kernel;
    case BoxKind::input:
      if (number < snapshot.program->input_buffers.size()) return snapshot.program->input_buffers[number];
      break;
    case BoxKind::output:
      if (number < snapshot.program->outputs.size() && !snapshot.program->outputs[number].none)
        return snapshot.program->outputs[number].view.buffer;
      break;
  }
  return {};
}

std::vector<std::string> groups_above(const GraphModel& graph, const Compilation& compilation, trace::NodeId node) {
  std::vector<std::string> paths;
  const std::string& path = compilation.graph().nodes[node].module_path;
  for (const Group& group : graph.groups) {
    if (!group.path.empty() && in_group(path, group.path)) paths.push_back(group.path);
  }
  return paths;
}

}  // namespace pallascope::model
