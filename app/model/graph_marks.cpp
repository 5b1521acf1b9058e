#include "app/model/graph_marks.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "core/report/decision.h"
#include "core/report/format.h"
#include "core/report/lookup.h"

namespace pallascope::model {
namespace {

using schedule::Decision;
using session::Compilation;
using session::Snapshot;
using Nodes = std::vector<trace::NodeId>;

const Decision* decision_of(const Compilation& compilation, const Selection& selection) {
  const auto* id = std::get_if<schedule::DecisionId>(&selection);
  if (id == nullptr || !id->valid() || id->index() >= compilation.decisions().size()) return nullptr;
  return &compilation.decisions()[id->index()];
}

template <class T>
bool contains(const std::vector<T>& items, const T& wanted) {
  return std::find(items.begin(), items.end(), wanted) != items.end();
}

trace::NodeId node_of_step(const loop::Program& program, loop::StepId step) {
  if (!program.steps.contains(step)) return {};
  const auto& content = program.steps[step].content;
  if (const auto* nest = std::get_if<loop::NestId>(&content)) return program.nests[*nest].origin;
  if (const auto* library = std::get_if<loop::LibraryCall>(&content)) return library->origin;
  return std::get<loop::TorchCall>(content).origin;
}

/// From each node those that read what it makes.
class Readers {
 public:
  explicit Readers(const trace::Graph& graph) : graph_(graph), of_(graph.nodes.size()) {
    for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
      const trace::NodeId id(k);
      for (const trace::NodeId from : report::dependencies(graph, id).nodes) of_[from.index()].push_back(id);
    }
  }

  /// The shortest way from one of `from` to one of `to` over nodes that `allowed` lets pass; both ends included.
  template <class Allowed>
  [[nodiscard]] Nodes way(const Nodes& from, const Nodes& to, const Allowed& allowed) const {
    std::map<trace::NodeId, trace::NodeId> came_from;
    std::deque<trace::NodeId> waiting;
    for (const trace::NodeId id : from) {
      came_from.emplace(id, trace::NodeId());
      waiting.push_back(id);
    }
    while (!waiting.empty()) {
      const trace::NodeId at = waiting.front();
      waiting.pop_front();
      for (const trace::NodeId next : of_[at.index()]) {
        if (came_from.contains(next)) continue;
        const bool arrived = contains(to, next);
        if (!arrived && !allowed(next)) continue;
        came_from.emplace(next, at);
        if (!arrived) {
          waiting.push_back(next);
          continue;
        }
        Nodes way;
        for (trace::NodeId id = next; id.valid(); id = came_from.at(id)) way.push_back(id);
        std::reverse(way.begin(), way.end());
        return way;
      }
    }
    return {};
  }

 private:
  const trace::Graph& graph_;
  std::vector<Nodes> of_;
};

/// The node that a side's name begins with: `add` of `add (+2)`, `softmax` of `softmax.exp (+5)`.
trace::NodeId speaker_of(const trace::Graph& graph, const std::string& name, const Nodes& nodes, bool last) {
  const std::string start = name.substr(0, name.find_first_of(" ,."));
  for (const trace::NodeId id : nodes) {
    if (graph.nodes[id].name == start) return id;
  }
  if (nodes.empty()) return {};
  return last ? nodes.back() : nodes.front();
}

std::pair<std::string, std::string> side_names(const Compilation& compilation, const Decision& decision) {
  const std::string subject = report::subject_text(compilation, decision);
  for (const std::string_view between : {" × ", " → "}) {
    if (const std::size_t at = subject.find(between); at != std::string::npos)
      return {subject.substr(0, at), subject.substr(at + between.size())};
  }
  return {subject, ""};
}

class Marker {
 public:
  Marker(const GraphModel& graph, const Compilation& compilation) : graph_(graph), compilation_(compilation) {
    marks_.boxes.assign(graph.boxes.size(), BoxMark::none);
  }

  GraphMarks of_decision(const Decision& decision) {
    marks_.pair = decision.kind != schedule::DecisionKind::lower && !decision.right.empty();
    marks_.accepted = decision.accepted;
    marks_.verdict = report::spaced(schedule::reason_name(decision.reason));
    if (!marks_.pair) {
      for (const std::size_t box : boxes_of_nodes(decision.left)) marks_.boxes[box] = BoxMark::selected;
      return finish();
    }
    const auto [left, right] = side_names(compilation_, decision);
    marks_.left = side(decision.left, left, true);
    marks_.right = side(decision.right, right, false);
    for (const std::size_t box : marks_.left.boxes) marks_.boxes[box] = BoxMark::left;
    for (const std::size_t box : marks_.right.boxes)
      marks_.boxes[box] = marks_.boxes[box] == BoxMark::left ? BoxMark::both : BoxMark::right;
    for (std::size_t k = 0; k < graph_.edges.size(); ++k) {
      const BoxMark from = marks_.boxes[static_cast<std::size_t>(graph_.edges[k].from)],
                    to = marks_.boxes[static_cast<std::size_t>(graph_.edges[k].to)];
      if (from != to && from != BoxMark::none && to != BoxMark::none) marks_.direct.push_back(k);
    }
    mark_path(nodes_of_path(compilation_, decision));
    return finish();
  }

  GraphMarks of_boxes(const std::vector<std::size_t>& boxes) {
    for (const std::size_t box : boxes) marks_.boxes[box] = BoxMark::selected;
    return finish();
  }

 private:
  [[nodiscard]] int box_of(trace::NodeId node) const {
    return node.index() < graph_.box_of_node.size() ? graph_.box_of_node[node.index()] : -1;
  }

  [[nodiscard]] std::set<std::size_t> boxes_of_nodes(const Nodes& nodes) const {
    std::set<std::size_t> boxes;
    for (const trace::NodeId node : nodes) {
      if (const int box = box_of(node); box >= 0) boxes.insert(static_cast<std::size_t>(box));
    }
    return boxes;
  }

  /// A kernel's container belongs to a side when the side is all that is in it.
  [[nodiscard]] Side side(const Nodes& nodes, const std::string& name, bool last) const {
    Side made;
    made.name = name;
    std::set<std::size_t> boxes = boxes_of_nodes(nodes);
    std::map<std::size_t, std::size_t> inside;
    for (const std::size_t box : boxes) {
      if (graph_.boxes[box].parent >= 0) ++inside[static_cast<std::size_t>(graph_.boxes[box].parent)];
    }
    for (const auto& [container, count] : inside) {
      if (graph_.boxes[container].kind == BoxKind::kernel && graph_.boxes[container].nodes == count &&
          count > 1)
        boxes.insert(container);
    }
    made.boxes.assign(boxes.begin(), boxes.end());
    const trace::NodeId speaker = speaker_of(compilation_.graph(), name, nodes, last);
    made.speaker = speaker.valid() ? box_of(speaker) : -1;
    return made;
  }

  void mark_path(const Nodes& path) {
    std::map<std::pair<int, int>, std::size_t> edges;
    if (path.empty()) return;
    for (std::size_t k = 0; k < graph_.edges.size(); ++k)
      edges.emplace(std::pair(graph_.edges[k].from, graph_.edges[k].to), k);
    int last = -1;
    for (const trace::NodeId node : path) {
      const int box = box_of(node);
      if (box < 0 || box == last) continue;
      const auto edge = edges.find({last, box});
      if (last >= 0 && edge != edges.end() && !contains(marks_.chain, edge->second))
        marks_.chain.push_back(edge->second);
      last = box;
      BoxMark& mark = marks_.boxes[static_cast<std::size_t>(box)];
      if (mark != BoxMark::none) continue;
      mark = BoxMark::between;
      marks_.between.push_back(static_cast<std::size_t>(box));
    }
  }

  GraphMarks finish() {
    for (std::size_t k = 0; k < marks_.boxes.size(); ++k) {
      if (marks_.boxes[k] != BoxMark::none) marks_.marked.push_back(static_cast<std::uint32_t>(k));
    }
    return std::move(marks_);
  }

  const GraphModel& graph_;
  const Compilation& compilation_;
  GraphMarks marks_;
};

}  // namespace

std::vector<trace::NodeId> nodes_of_path(const Compilation& compilation, const Decision& decision) {
  const std::vector<loop::StepId>& steps = decision.evidence.path;
  if (steps.empty()) return {};
  const trace::Graph& graph = compilation.graph();
  Nodes named;
  for (const loop::StepId step : steps) {
    const trace::NodeId node = node_of_step(*compilation.schedule().program, step);
    if (node.valid() && (named.empty() || named.back() != node)) named.push_back(node);
  }
  if (named.size() < 2) return named;
  // It begins with any step of a side; which of the side's nodes the next step reads is not said.
  const Nodes& first = contains(decision.left, named.front()) ? decision.left : decision.right;
  const Nodes& last = &first == &decision.left ? decision.right : decision.left;
  const auto is_view = [&](trace::NodeId id) {
    return report::outcome_text(*compilation.last(), id) == "view";
  };
  const auto outside = [&](trace::NodeId id) { return !contains(first, id) && !contains(last, id); };
  const Readers readers(graph);
  Nodes path;
  for (std::size_t k = 0; k + 1 < named.size(); ++k) {
    const Nodes from = path.empty() ? first : Nodes{path.back()};
    const bool end = k + 2 == named.size();
    const Nodes to = end && contains(last, named[k + 1]) ? last : Nodes{named[k + 1]};
    Nodes part = readers.way(from, to, is_view);
    if (part.empty()) part = readers.way(from, to, outside);
    if (part.empty()) part = {named[k], named[k + 1]};
    path.insert(path.end(), part.begin() + (path.empty() || path.back() != part.front() ? 0 : 1), part.end());
  }
  return path;
}

GraphMarks graph_marks(const GraphModel& graph, const Compilation& compilation, const Snapshot& snapshot,
                       const Selection& selection) {
  Marker marker(graph, compilation);
  if (const Decision* decision = decision_of(compilation, selection)) return marker.of_decision(*decision);
  if (is_empty(selection)) return marker.of_boxes({});
  if (const auto* buffer = std::get_if<loop::BufferId>(&selection)) {
    // An input or output of the graph is a box itself, besides the nodes that touch it.
    std::vector<std::size_t> boxes = boxes_of(graph, compilation, snapshot, selection);
    for (std::size_t k = 0; k < graph.boxes.size(); ++k) {
      const Box& box = graph.boxes[k];
      if ((box.kind == BoxKind::input || box.kind == BoxKind::output) &&
          selection_of(box, snapshot) == Selection(*buffer))
        boxes = {k};
    }
    return marker.of_boxes(boxes);
  }
  return marker.of_boxes(boxes_of(graph, compilation, snapshot, selection));
}

std::vector<std::string> groups_to_open(const GraphModel& graph, const Compilation& compilation,
                                        const Snapshot& snapshot, const Selection& selection) {
  if (std::holds_alternative<GroupRef>(selection)) {
    // The group itself is to be seen, not what is in it.
    const std::string& path = std::get<GroupRef>(selection).path;
    std::vector<std::string> above;
    for (const Group& group : graph.groups) {
      if (!group.path.empty() && group.path != path && in_group(path, group.path))
        above.push_back(group.path);
    }
    std::erase_if(above, [&](const std::string& group) {
      const auto box = graph.find("g:" + group);
      return box && graph.boxes[*box].container;
    });
    return above;
  }
  Nodes nodes = nodes_of(compilation, snapshot, selection);
  if (const Decision* decision = decision_of(compilation, selection)) {
    const Nodes path = nodes_of_path(compilation, *decision);
    nodes.insert(nodes.end(), path.begin(), path.end());
  }
  std::set<std::string> paths;
  for (const trace::NodeId node : nodes) {
    const int box = graph.box_of_node[node.index()];
    if (box < 0 || graph.boxes[static_cast<std::size_t>(box)].kind != BoxKind::group) continue;
    const std::string& closed = graph.boxes[static_cast<std::size_t>(box)].path;
    for (const std::string& path : groups_above(graph, compilation, node)) {
      if (in_group(path, closed)) paths.insert(path);  // those around the closed one are open
    }
  }
  return {paths.begin(), paths.end()};  // `h` stands before `h.0`
}

}  // namespace pallascope::model
