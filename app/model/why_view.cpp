#include "app/model/why_view.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "core/report/alignment.h"
#include "core/report/decision.h"
#include "core/report/format.h"
#include "core/report/lookup.h"

namespace pallascope::model {
namespace {

using schedule::Condition;
using schedule::ConditionState;
using schedule::Decision;
using schedule::DecisionKind;
using schedule::Evidence;
using schedule::Reason;

constexpr std::size_t named = 4;  // names of a list in a sentence; the rest is counted

/// `a, b and c`; `a, b, c, d and 3 more`.
std::string list_text(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  if (names.size() == 1) return names[0];
  const bool cut = names.size() > named + 1;
  const std::size_t count = cut ? named : names.size() - 1;
  const std::string head =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count), ", "));
  return cut ? fmt::format("{} and {} more", head, names.size() - named) : head + " and " + names.back();
}

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

/// What the panel's functions share.
struct Maker {
  const session::Compilation& compilation;
  const session::Snapshot& snapshot;
  const Decision& decision;
  const loop::Program& program;  // of the whole log: what the evidence names
  const trace::Graph& graph;
  bool same_program = false;  // ids of buffers and nests mean the same in the snapshot

  [[nodiscard]] trace::NodeId node_of(loop::StepId step) const {
    if (!program.steps.contains(step)) return {};
    const auto& content = program.steps[step].content;
    if (const auto* nest = std::get_if<loop::NestId>(&content)) return program.nests[*nest].origin;
    if (const auto* library = std::get_if<loop::LibraryCall>(&content)) return library->origin;
    return std::get<loop::TorchCall>(content).origin;
  }
  [[nodiscard]] static Selection select(trace::NodeId node) {
    return node.valid() ? Selection(node) : Selection();
  }
  [[nodiscard]] WhyStep step(loop::StepId id, WhyStep::Role role) const {
    return {role, report::step_text(compilation, id), report::is_call(program, id), select(node_of(id))};
  }
  [[nodiscard]] std::string axis_text() const {
    const Evidence& evidence = decision.evidence;
    if (!evidence.axis) return "";
    const index::Axis& axis = program.context->axis(*evidence.axis);
    return fmt::format("{} (extent {})", axis.name, report::count_text(axis.extent));
  }
  [[nodiscard]] std::string axis_owner() const {
    const auto& nest = decision.evidence.axis_nest;
    return nest && program.nests.contains(*nest) ? program.nests[*nest].name : "";
  }

  [[nodiscard]] std::vector<std::string> calls(const std::vector<loop::StepId>& steps) const {
    std::vector<std::string> names;
    for (const loop::StepId id : steps) {
      if (report::is_call(program, id)) names.push_back(graph.nodes[node_of(id)].name);
    }
    return names;
  }

  [[nodiscard]] std::string fuse_sentence() const;
  [[nodiscard]] std::string lower_sentence() const;
  [[nodiscard]] std::string inline_sentence() const;
  [[nodiscard]] WhyCondition condition(Condition which, ConditionState state) const;
  [[nodiscard]] WhyAccess access(loop::NestId nest, loop::BufferId buffer, index::Expression expression,
                                 const std::vector<index::AxisId>& axes) const;
  [[nodiscard]] WhyIndices indices(const schedule::IndexPair& pair) const;
  [[nodiscard]] WhySide side(std::string title, const std::vector<trace::NodeId>& nodes) const;
};

std::string Maker::fuse_sentence() const {
  const Evidence& evidence = decision.evidence;
  auto [left, right] = report::side_names(compilation, decision);
  if (left == right) right += " (the other nest)";
  std::string shared = left + " and " + right;
  bool writes = false;
  std::string buffer;
  if (!evidence.indices.empty()) {
    const schedule::IndexPair& pair = evidence.indices[0];
    buffer = program.buffers[pair.buffer].name;
    writes = program.nests.contains(pair.left_nest) && program.nests[pair.left_nest].output() == pair.buffer;
    shared += (writes ? " share " : " both read ") + buffer;
  }
  const std::string saved = report::bytes_text(evidence.bytes_saved);
  switch (decision.reason) {
    case Reason::fused_vertical:
      return fmt::format(
          "{} uses the value of {} where {} makes it, in one kernel: {} less to move through memory a call.",
          right, buffer.empty() ? left : buffer, left, saved);
    case Reason::fused_horizontal:
      return fmt::format("{}. In one kernel it is loaded once: {} less to move through memory a call.",
                         shared, saved);
    case Reason::cycle: {
      std::vector<std::string> between;
      for (std::size_t k = 1; k + 1 < evidence.path.size(); ++k)
        between.push_back(report::step_text(compilation, evidence.path[k]));
      const bool from_left =
          evidence.path.empty() || std::find(decision.left_steps.begin(), decision.left_steps.end(),
                                             evidence.path.front()) != decision.left_steps.end();
      if (between.empty())
        return fmt::format("{}. They cannot be one kernel: {}.", shared,
                           schedule::reason_words(decision.reason));
      const bool one = between.size() == 1;
      return fmt::format("{}. They cannot be one kernel: {} {} the result of the {} side and {} the {} side.",
                         shared, list_text(between), one ? "needs" : "need", from_left ? "left" : "right",
                         one ? "feeds" : "feed", from_left ? "right" : "left");
    }
    case Reason::library_boundary:
    case Reason::torch_boundary: {
      std::vector<std::string> names = calls(decision.left_steps);
      const std::vector<std::string> more = calls(decision.right_steps);
      names.insert(names.end(), more.begin(), more.end());
      const char* who = decision.reason == Reason::library_boundary
                            ? "a matrix product that jax.lax computes (a library call)"
                            : "an operator that PyTorch runs outside of the JAX program";
      if (names.empty()) return capital(std::string(schedule::reason_words(decision.reason))) + ".";
      if (names == std::vector<std::string>{left, right}) {
        return fmt::format("{} cannot be one kernel: both are calls ({}), and a call is no part of a kernel.",
                           shared, decision.reason == Reason::library_boundary ? "jax.lax" : "PyTorch");
      }
      if (names.size() == 1) {
        return fmt::format("{} cannot be one kernel: {} is {}, and a call is no part of a kernel.", shared,
                           names[0], who);
      }
      return fmt::format("{} cannot be one kernel: {} are calls ({}), and a call is no part of a kernel.",
                         shared, list_text(names),
                         decision.reason == Reason::library_boundary ? "jax.lax" : "PyTorch");
    }
    case Reason::common_grid: {
      std::string text = fmt::format(
          "{}. Together they need {} on chip, more than the {} there are, so they would have to be "
          "cut into tiles",
          shared, report::bytes_text(evidence.working_set), report::bytes_text(evidence.budget));
      if (!evidence.axis) return text + ", and no axis is left that both could be tiled on.";
      const std::string owner = axis_owner();
      const std::string role = evidence.axis_role.empty() ? "in the way" : evidence.axis_role;
      return text + fmt::format("; but axis {} is {}{}, so no axis is left that both could be tiled on.",
                                axis_text(), role, owner.empty() ? "" : " by " + owner);
    }
    case Reason::exceeds_memory:
      return fmt::format(
          "{}. They cannot be one kernel: even with the smallest tile they need {} on chip, and the target "
          "has {}.",
          shared,
          report::bytes_text(evidence.working_set_tile > 0 ? evidence.working_set_tile
                                                           : evidence.working_set),
          report::bytes_text(evidence.budget));
    case Reason::not_expressible:
      return fmt::format(
          "{}. {} takes a slice of it, or gathers from it: inside one kernel it would be a value, and a "
          "kernel "
          "can slice and gather only what lies in memory.",
          shared, right);
    default:
      return capital(std::string(schedule::reason_words(decision.reason))) + ".";
  }
}

std::string Maker::lower_sentence() const {
  const std::string name = decision.left.empty() ? "the operator" : graph.nodes[decision.left[0]].name;
  switch (decision.reason) {
    case Reason::lowered_to_kernel: {
      std::size_t nests = 0;
      for (const loop::StepId id : decision.left_steps) nests += report::is_call(program, id) ? 0 : 1;
      return nests > 0
                 ? fmt::format("{} became {}: code of our own, which may share a kernel with its neighbours.",
                               name, report::plural(static_cast<std::int64_t>(nests), "loop nest"))
                 : fmt::format(
                       "{} became loop nests: code of our own, which may share a kernel with its neighbours.",
                       name);
    }
    case Reason::lowered_to_view:
      return fmt::format("{} only changes how indices are counted: it moves no data and has no code.", name);
    case Reason::left_to_library:
      return fmt::format(
          "{} is a matrix product: jax.lax computes it, inside the JAX program but outside of our kernels.",
          name);
    case Reason::left_to_torch:
      return fmt::format("{} has no lowering: PyTorch runs it, and the JAX program is cut there.", name);
    default:
      return capital(std::string(schedule::reason_words(decision.reason))) + ".";
  }
}

std::string Maker::inline_sentence() const {
  std::vector<std::string> producers, consumers;
  for (const loop::StepId id : decision.left_steps) producers.push_back(report::step_text(compilation, id));
  for (const loop::StepId id : decision.right_steps) consumers.push_back(report::step_text(compilation, id));
  const std::string producer = producers.empty() ? "the producer" : list_text(producers);
  const std::string consumer = consumers.empty() ? "its consumers" : list_text(consumers);
  const char* compute = consumers.size() == 1 ? "computes" : "compute";
  const char* read = consumers.size() == 1 ? "reads" : "read";
  switch (decision.reason) {
    case Reason::inlined_no_loads:
      return fmt::format(
          "{} {} {} again where it is needed: it reads nothing, so that is free and nothing is stored.",
          consumer, compute, producer);
    case Reason::inlined_index:
      return fmt::format(
          "{} {} only a part of {}, or {} it out of order, so it is computed there from its own inputs.",
          consumer, read, producer, read);
    case Reason::kept_reduction:
      return fmt::format("{} is kept: it reduces, and {} would repeat the whole reduction for every element.",
                         producer, consumer);
    case Reason::kept_scan:
      return fmt::format("{} is kept: it scans an axis, and {} would repeat the scan for every element.", producer, consumer);
    case Reason::kept_output:
      return fmt::format(
          "{} is kept: its result is an output, or feeds a library or torch call, so it must be stored "
          "anyway.",
          producer);
    case Reason::kept_identity:
      return fmt::format(
          "{} is kept: {} {} it whole and in order, so fusing shares the value without computing it again.",
          producer, consumer, read);
    case Reason::kept_too_costly:
      return fmt::format("{} is kept: {} would compute it too many times.", producer, consumer);
    default:
      return capital(std::string(schedule::reason_words(decision.reason))) + ".";
  }
}

WhyCondition Maker::condition(Condition which, ConditionState state) const {
  const Evidence& evidence = decision.evidence;
  WhyCondition made;
  made.condition = which;
  made.state = state;
  made.name = report::spaced(schedule::condition_name(which));
  const bool holds = state == ConditionState::holds;
  if (state != ConditionState::not_reached) made.words = report::condition_text(compilation, decision, which);
  switch (which) {
    case Condition::order_and_aliasing:
      made.asks =
          "No step outside of the two may need the result of one side and feed the other: it could run "
          "neither before nor after the kernel.";
      if (holds && made.words.empty()) made.words = "nothing has to run between the two";
      if (state == ConditionState::fails) {
        for (std::size_t k = 0; k < evidence.path.size(); ++k) {
          made.path.push_back(step(evidence.path[k], k == 0 ? WhyStep::Role::first
                                                     : k + 1 == evidence.path.size()
                                                         ? WhyStep::Role::last
                                                         : WhyStep::Role::between));
        }
        if (!made.path.empty()) made.words = "a path leads around, from left to right:";
      }
      break;
    case Condition::common_grid:
      made.asks =
          "What does not fit on chip whole is cut into tiles by one grid: an axis is needed that all loops "
          "share, unreduced and aligned.";
      // Evidence of a grid is only looked for when the arrays do not fit whole.
      if (holds && evidence.tile_axes.empty()) made.words = "no grid needed: it fits on chip whole";
      break;
    case Condition::fits_on_chip:
      made.asks = "All buffers that one step of the grid uses have to be on chip together.";
      if (state != ConditionState::not_reached && evidence.budget > 0)
        made.filled = static_cast<double>(evidence.working_set_tile > 0 ? evidence.working_set_tile
                                                                        : evidence.working_set) /
                      static_cast<double>(evidence.budget);
      break;
    case Condition::expressible:
      made.asks =
          "A value made in the kernel can be reshaped, transposed and broadcast, but not sliced or gathered "
          "from. A call can take no part.";
      if (holds && made.words.empty()) made.words = "a kernel can make every read of a value";
      if (state == ConditionState::fails && made.words.empty() && !evidence.indices.empty()) {
        const schedule::IndexPair& pair = evidence.indices[0];
        const WhyAccess read = access(pair.right_nest, pair.buffer, pair.right, report::axes_of(program, pair.right_nest));
        made.words = fmt::format(
            "{} reads {} {}", read.name, program.buffers[pair.buffer].name,
            read.words.empty() ? "by an index that no value can be read by" : "as: " + read.words);
      }
      break;
  }
  if (made.words.empty())
    made.words = state == ConditionState::not_reached ? "not reached" : holds ? "holds" : "does not hold";
  return made;
}

WhyAccess Maker::access(loop::NestId nest, loop::BufferId buffer, index::Expression expression,
                        const std::vector<index::AxisId>& axes) const {
  const index::Context& context = *program.context;
  WhyAccess made;
  made.expression = context.to_string(expression);
  made.axes = report::axes_text(context, axes);
  made.verb = "reads";
  if (!program.nests.contains(nest)) {
    made.name = "?";
    return made;
  }
  const loop::Nest& from = program.nests[nest];
  made.name = from.name;
  made.selection = select(from.origin);
  for (std::size_t s = 0; s < from.body.size(); ++s) {
    const loop::Statement& statement = from.body[s];
    const bool touches =
        statement.kind == loop::StatementKind::load || statement.kind == loop::StatementKind::store;
    if (!touches || statement.buffer != buffer || statement.index != expression) continue;
    if (statement.kind == loop::StatementKind::store) made.verb = "writes";
    const index::Access& found = loop::access_of(program, nest, static_cast<int>(s));
    made.letter = index::access_class_letter(found.access_class);
    made.words =
        found.words.empty() ? std::string(index::access_class_name(found.access_class)) : found.words;
    break;
  }
  return made;
}

WhyIndices Maker::indices(const schedule::IndexPair& pair) const {
  const loop::Buffer& buffer = program.buffers[pair.buffer];
  WhyIndices made;
  made.buffer = buffer.name;
  made.shape = report::shape_text(buffer.dtype, buffer.dims);
  made.bytes = report::bytes_text(buffer.bytes());
  if (same_program) made.selection = pair.buffer;
  made.left = access(pair.left_nest, pair.buffer, pair.left, report::axes_of(program, pair.left_nest));
  made.right = access(pair.right_nest, pair.buffer, pair.right, report::axes_of(program, pair.right_nest));
  for (const report::TermPair& row : report::aligned_terms(program, pair)) {
    WhyTerm term{row.term, row.left, row.right, "", row.same};
    // A constant or a quotient has no extent: the same coefficient on both sides is all there is to compare.
    if (!row.left_extent && !row.right_extent) term.same = !row.left.empty() && row.left == row.right;
    const std::size_t slash = row.term.find(" / ");
    const std::string left_name = row.term.substr(0, slash);
    const std::string right_name = slash == std::string::npos ? row.term : row.term.substr(slash + 3);
    if (row.left_extent && row.right_extent && *row.left_extent == *row.right_extent) {
      term.range = fmt::format("{} < {}", left_name == right_name ? left_name : left_name + ", " + right_name,
                               *row.left_extent);
    } else {
      if (row.left_extent) term.range = fmt::format("{} < {}", left_name, *row.left_extent);
      if (row.right_extent)
        term.range += fmt::format("{}{} < {}", term.range.empty() ? "" : ", ", right_name, *row.right_extent);
    }
    made.differing += term.same ? 0 : 1;
    made.terms.push_back(std::move(term));
  }
  made.verdict = made.differing == 0   ? "the same on both sides"
                 : made.differing == 1 ? "1 term differs"
                                       : fmt::format("{} terms differ", made.differing);
  return made;
}

WhySide Maker::side(std::string title, const std::vector<trace::NodeId>& nodes) const {
  WhySide made{std::move(title), {}};
  made.nodes.reserve(nodes.size());
  for (const trace::NodeId id : nodes) {
    const trace::Node& node = graph.nodes[id];
    made.nodes.push_back({id, report::id_text(id), node.name, node.target, report::outputs_text(graph, node),
                          report::place_text(node)});
  }
  return made;
}

/// Fusions judged of the same two nodes over the same buffer: a pair refused for its order is tried again.
std::vector<schedule::DecisionId> same_pair(const session::Compilation& compilation,
                                            const Decision& decision) {
  std::vector<schedule::DecisionId> found;
  if (decision.kind != DecisionKind::fuse || decision.evidence.indices.empty()) return {decision.id};
  const loop::Program& program = *compilation.schedule().program;
  const auto origin = [&](loop::NestId nest) {
    return program.nests.contains(nest) ? program.nests[nest].origin : trace::NodeId();
  };
  const schedule::IndexPair& pair = decision.evidence.indices[0];
  for (const Decision& other : compilation.decisions()) {
    if (other.kind != DecisionKind::fuse || other.evidence.indices.empty()) continue;
    const schedule::IndexPair& same = other.evidence.indices[0];
    if (same.buffer == pair.buffer && origin(same.left_nest) == origin(pair.left_nest) &&
        origin(same.right_nest) == origin(pair.right_nest))
      found.push_back(other.id);
  }
  return found;
}

void add_choices(WhyView& view, const Maker& maker, const Selection& about) {
  const session::Compilation& compilation = maker.compilation;
  if (is_empty(about) || std::holds_alternative<schedule::DecisionId>(about) ||
      std::holds_alternative<GroupRef>(about)) {
    view.choices = same_pair(compilation, maker.decision);
    view.about = "this pair";
    return;
  }
  view.about_selection = true;
  const std::vector<trace::NodeId> list = nodes_of(compilation, maker.snapshot, about);
  const std::set<trace::NodeId> nodes(list.begin(), list.end());
  for (const Decision& other : compilation.decisions()) {
    const auto in = [&](trace::NodeId node) { return nodes.contains(node); };
    if (std::any_of(other.left.begin(), other.left.end(), in) ||
        std::any_of(other.right.begin(), other.right.end(), in))
      view.choices.push_back(other.id);
  }
  if (const auto* kernel = std::get_if<schedule::KernelId>(&about)) {
    view.about = report::id_text(*kernel);
  } else if (const auto* buffer = std::get_if<loop::BufferId>(&about);
             buffer != nullptr && maker.snapshot.program->buffers.contains(*buffer)) {
    view.about = maker.snapshot.program->buffers[*buffer].name;
  } else {
    view.about = list.empty() ? "this" : maker.graph.nodes[list[0]].name;
  }
}

}  // namespace

std::string_view WhyCondition::sign() const { return report::sign_of(state); }

WhyView why_view(const session::Compilation& compilation, const session::Snapshot& snapshot,
                 schedule::DecisionId id, const Selection& about) {
  const Decision& decision = compilation.decisions().at(id.index());
  const Evidence& evidence = decision.evidence;
  const Maker maker{compilation,
                    snapshot,
                    decision,
                    *compilation.schedule().program,
                    compilation.graph(),
                    snapshot.program == compilation.schedule().program};
  WhyView view;
  view.id = id;
  view.kind = decision.kind;
  view.accepted = decision.accepted;
  view.id_text = report::id_text(id);
  view.kind_text = std::string(schedule::kind_name(decision.kind));
  view.title = report::subject_text(compilation, decision);
  view.verdict = report::verdict_text(decision);
  view.note = evidence.note;
  view.legal_if = report::legal_if_text(compilation, decision);
  switch (decision.kind) {
    case DecisionKind::fuse:
      view.sentence = maker.fuse_sentence();
      view.sides = {maker.side("Left side", decision.left), maker.side("Right side", decision.right)};
      break;
    case DecisionKind::inline_producer:
      view.sentence = maker.inline_sentence();
      view.sides = {maker.side("Producer", decision.left), maker.side("Consumers", decision.right)};
      break;
    case DecisionKind::lower:
      view.sentence = maker.lower_sentence();
      view.sides = {maker.side("Operator", decision.left)};
      for (const loop::NodeOutcome& outcome : maker.program.outcomes) {
        if (decision.left.empty() || outcome.node != decision.left[0]) continue;
        for (const loop::StepId step : outcome.steps)
          view.became.push_back(maker.step(step, WhyStep::Role::between));
      }
      break;
  }
  for (const auto& [condition, state] : evidence.conditions)
    view.conditions.push_back(maker.condition(condition, state));
  for (const schedule::IndexPair& pair : evidence.indices) view.indices.push_back(maker.indices(pair));

  if (decision.kind == DecisionKind::fuse || evidence.bytes_saved > 0) {
    view.figures.push_back(
        {decision.accepted ? "Saves" : "Would save", report::bytes_text(evidence.bytes_saved),
         "Bytes that need not go through memory in one call when the two are one kernel."});
    if (decision.kind == DecisionKind::inline_producer)
      view.figures.back().hint =
          "Bytes of the producer's result, stored once and read once, that recomputing it avoids.";
  }
  if (evidence.working_set > 0) {
    view.figures.push_back(
        {"Working set", report::bytes_text(evidence.working_set), "All buffers that the two touch, whole."});
    if (evidence.working_set_tile > 0 && evidence.working_set_tile != evidence.working_set)
      view.figures.push_back({"Smallest tile", report::bytes_text(evidence.working_set_tile),
                              "The same with the smallest tile along the axes that a grid could run over."});
  }
  if (evidence.budget > 0)
    view.figures.push_back(
        {"Budget", report::bytes_text(evidence.budget), "What the model target has on chip for one kernel."});
  add_choices(view, maker, about);
  return view;
}

}  // namespace pallascope::model
