#include "app/model/selection.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "core/report/lookup.h"

namespace pallascope::model {
namespace {

using session::Snapshot;

/// The nests that run in a snapshot, in order.
std::vector<loop::NestId> live_nests(const Snapshot& snapshot) {
  std::vector<loop::NestId> nests;
  for (const schedule::ScheduledStep& step : snapshot.state.steps) {
    if (!step.kernel.valid()) continue;
    const auto& members = snapshot.state.kernels[step.kernel].nests;
    nests.insert(nests.end(), members.begin(), members.end());
  }
  return nests;
}

std::size_t common(const std::set<trace::NodeId>& a, const std::vector<trace::NodeId>& b) {
  return static_cast<std::size_t>(std::count_if(b.begin(), b.end(), [&](trace::NodeId n) { return a.contains(n); }));
}

Selection node_or_nothing(trace::NodeId node) { return node.valid() ? Selection(node) : Selection(); }

/// Programs of one compilation share their ids (see lower::Prefixes).
bool same_ids(const Snapshot& before, const Snapshot& after) { return before.program->context == after.program->context; }

Selection follow_kernel(const Snapshot& before, const Snapshot& after, schedule::KernelId id) {
  if (!before.state.kernels.contains(id)) return {};
  const schedule::Kernel& kernel = before.state.kernels[id];
  const std::vector<trace::NodeId> own = report::nodes_of(before, id);
  const std::set<loop::NestId> nests(kernel.nests.begin(), kernel.nests.end());
  const std::set<trace::NodeId> nodes(own.begin(), own.end());
  const bool same_program = same_ids(before, after);
  std::tuple<std::size_t, std::size_t> best{0, 0};
  schedule::KernelId found;
  for (const schedule::KernelId candidate : report::kernels_in_order(after)) {
    std::size_t shared = 0;
    if (same_program) {
      for (const loop::NestId nest : after.state.kernels[candidate].nests) shared += nests.contains(nest) ? 1 : 0;
    }
    const std::tuple<std::size_t, std::size_t> score{shared, common(nodes, report::nodes_of(after, candidate))};
    if (score > best) {
      best = score;
      found = candidate;
    }
  }
  if (found.valid()) return found;
  return own.empty() ? Selection() : Selection(own.back());
}

/// The buffer of `after` that is `id` of `before`: the same id if it is in use there, else the one that first held the
/// same value (a torch call's result, and the buffer that its node stores into once it is lowered).
std::optional<loop::BufferId> same_buffer(const Snapshot& before, const Snapshot& after, loop::BufferId id) {
  if (!before.program->buffers.contains(id)) return std::nullopt;
  if (before.program == after.program) return id;
  const std::vector<bool> live = report::live_buffers(after);
  if (same_ids(before, after) && id.index() < live.size() && live[id.index()]) return id;
  const loop::Buffer& wanted = before.program->buffers[id];
  for (std::size_t k = 0; k < live.size(); ++k) {
    const loop::Buffer& candidate = after.program->buffers[loop::BufferId(k)];
    if (live[k] && (wanted.input_index >= 0 ? candidate.input_index == wanted.input_index
                                            : candidate.input_index < 0 && candidate.origin.valid() && candidate.origin == wanted.origin))
      return loop::BufferId(k);
  }
  return std::nullopt;
}

bool touches_memory(const loop::Statement& s) { return s.kind == loop::StatementKind::load || s.kind == loop::StatementKind::store; }

/// The statement of `nest` that does what `wanted` of another snapshot does for the same node; -1 if none does. `buffer`
/// is what the buffer of `wanted` is in the snapshot of `nest`, invalid if it is not there.
int same_statement(const loop::Nest& nest, const loop::Statement& wanted, loop::BufferId buffer) {
  const bool touches = touches_memory(wanted);
  for (std::size_t k = 0; k < nest.body.size(); ++k) {
    const loop::Statement& s = nest.body[k];
    if (s.kind != wanted.kind || s.origin != wanted.origin) continue;
    if (touches ? buffer == s.buffer : s.compute == wanted.compute && s.reduce == wanted.reduce) return static_cast<int>(k);
  }
  return -1;
}

Selection follow_statement(const Snapshot& before, const Snapshot& after, const StatementRef& ref) {
  if (!before.program->nests.contains(ref.nest)) return {};
  const loop::Nest& nest = before.program->nests[ref.nest];
  const bool whole = ref.statement < 0 || static_cast<std::size_t>(ref.statement) >= nest.body.size();
  const std::vector<loop::NestId> live = live_nests(after);
  if (same_ids(before, after) && std::find(live.begin(), live.end(), ref.nest) != live.end()) return ref;
  // Inlining gives the consumer a new nest of the same name; then the statement's node may have moved into another.
  const loop::Statement* wanted = whole ? nullptr : &nest.body[static_cast<std::size_t>(ref.statement)];
  const trace::NodeId node = whole ? nest.origin : wanted->origin;
  loop::BufferId buffer;
  if (!whole && touches_memory(*wanted)) buffer = same_buffer(before, after, wanted->buffer).value_or(loop::BufferId());
  for (const loop::NestId id : live) {
    const loop::Nest& other = after.program->nests[id];
    if (other.name != nest.name || other.origin != nest.origin) continue;
    if (whole) return StatementRef{id, -1};
    return StatementRef{id, same_statement(other, *wanted, buffer)};
  }
  for (const loop::NestId id : live) {
    const loop::Nest& other = after.program->nests[id];
    if (!whole) {
      const int at = same_statement(other, *wanted, buffer);
      if (at >= 0) return StatementRef{id, at};
    }
    for (std::size_t k = 0; k < other.body.size(); ++k) {
      if (node.valid() && other.body[k].origin == node && other.body[k].kind == loop::StatementKind::compute)
        return StatementRef{id, static_cast<int>(k)};
    }
  }
  return node_or_nothing(node);
}

Selection follow_access(const Snapshot& before, const Snapshot& after, const AccessRef& ref) {
  const auto& accesses = before.module.accesses;
  if (ref.access < 0 || static_cast<std::size_t>(ref.access) >= accesses.size()) return {};
  const codegen::KernelAccess& access = accesses[static_cast<std::size_t>(ref.access)];
  const Selection moved = follow_statement(before, after, {access.nest, access.statement});
  const auto* statement = std::get_if<StatementRef>(&moved);
  if (statement == nullptr) return moved;
  for (std::size_t k = 0; k < after.module.accesses.size(); ++k) {
    const codegen::KernelAccess& a = after.module.accesses[k];
    if (a.nest == statement->nest && a.statement == statement->statement && a.store == access.store)
      return AccessRef{static_cast<int>(k)};
  }
  return moved;
}

Selection follow_buffer(const Snapshot& before, const Snapshot& after, loop::BufferId id) {
  if (const auto found = same_buffer(before, after, id)) return *found;
  if (!before.program->buffers.contains(id)) return {};
  // A buffer inside an operator that is not lowered here: the operator's own.
  for (std::size_t k = 0; k < before.program->nests.size(); ++k) {
    const loop::Nest& nest = before.program->nests[loop::NestId(k)];
    if (nest.output() == id) return node_or_nothing(nest.origin);
  }
  return {};
}

}  // namespace

bool in_group(std::string_view path, std::string_view group) {
  if (group.empty()) return true;
  return path.starts_with(group) && (path.size() == group.size() || path[group.size()] == '.');
}

std::vector<trace::NodeId> nodes_of(const session::Compilation& compilation, const Snapshot& snapshot,
                                    const Selection& selection) {
  const trace::Graph& graph = compilation.graph();
  const loop::Program& program = *snapshot.program;
  std::set<trace::NodeId> nodes;
  const auto add = [&](trace::NodeId id) {
    if (graph.nodes.contains(id)) nodes.insert(id);
  };
  const auto add_statement = [&](const StatementRef& ref) {
    if (!program.nests.contains(ref.nest)) return;
    const loop::Nest& nest = program.nests[ref.nest];
    if (ref.statement >= 0 && static_cast<std::size_t>(ref.statement) < nest.body.size()) {
      add(nest.body[static_cast<std::size_t>(ref.statement)].origin);
    } else {
      for (const trace::NodeId id : nest.origins) add(id);
      add(nest.origin);
    }
  };
  if (const auto* node = std::get_if<trace::NodeId>(&selection)) {
    add(*node);
  } else if (const auto* group = std::get_if<GroupRef>(&selection)) {
    for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
      if (in_group(graph.nodes[trace::NodeId(k)].module_path, group->path)) add(trace::NodeId(k));
    }
  } else if (const auto* decision = std::get_if<schedule::DecisionId>(&selection)) {
    if (decision->valid() && decision->index() < compilation.decisions().size()) {
      for (const trace::NodeId id : compilation.decisions()[decision->index()].left) add(id);
      for (const trace::NodeId id : compilation.decisions()[decision->index()].right) add(id);
    }
  } else if (const auto* kernel = std::get_if<schedule::KernelId>(&selection)) {
    if (snapshot.state.kernels.contains(*kernel)) {
      for (const trace::NodeId id : report::nodes_of(snapshot, *kernel)) add(id);
    }
  } else if (const auto* statement = std::get_if<StatementRef>(&selection)) {
    add_statement(*statement);
  } else if (const auto* access = std::get_if<AccessRef>(&selection)) {
    if (access->access >= 0 && static_cast<std::size_t>(access->access) < snapshot.module.accesses.size()) {
      const codegen::KernelAccess& a = snapshot.module.accesses[static_cast<std::size_t>(access->access)];
      add_statement({a.nest, a.statement});
    }
  } else if (const auto* buffer = std::get_if<loop::BufferId>(&selection)) {
    for (const loop::NestId id : live_nests(snapshot)) {
      for (const loop::Statement& s : program.nests[id].body) {
        if (s.buffer == *buffer) add(s.origin);
      }
    }
    for (const schedule::ScheduledStep& step : snapshot.state.steps) {
      if (!step.call.valid()) continue;
      const auto& content = program.steps[step.call].content;
      if (const auto* library = std::get_if<loop::LibraryCall>(&content)) {
        const bool reads = std::any_of(library->operands.begin(), library->operands.end(),
                                       [&](const loop::View& operand) { return operand.buffer == *buffer; });
        if (reads || std::find(library->outputs.begin(), library->outputs.end(), *buffer) != library->outputs.end())
          add(library->origin);
      } else if (const auto* torch = std::get_if<loop::TorchCall>(&content)) {
        const bool reads = std::any_of(torch->inputs.begin(), torch->inputs.end(),
                                       [&](const auto& input) { return input.second.buffer == *buffer; });
        if (reads || std::find(torch->outputs.begin(), torch->outputs.end(), *buffer) != torch->outputs.end())
          add(torch->origin);
      }
    }
  }
  return {nodes.begin(), nodes.end()};
}

Selection follow(const Snapshot& before, const Snapshot& after, const Selection& selection) {
  if (&before == &after) return selection;
  if (const auto* kernel = std::get_if<schedule::KernelId>(&selection)) return follow_kernel(before, after, *kernel);
  if (const auto* statement = std::get_if<StatementRef>(&selection)) return follow_statement(before, after, *statement);
  if (const auto* access = std::get_if<AccessRef>(&selection)) return follow_access(before, after, *access);
  if (const auto* buffer = std::get_if<loop::BufferId>(&selection)) return follow_buffer(before, after, *buffer);
  return selection;  // nodes, groups and decisions mean the same everywhere
}

}  // namespace pallascope::model
