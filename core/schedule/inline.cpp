#include "core/schedule/inline.h"

#include <algorithm>
#include <map>

namespace pallascope::schedule {
namespace {

using loop::Statement;
using loop::StatementKind;

// Inlining into more consumers, or more statements, than these repeats too much work for what it saves. Not measured.
constexpr std::size_t kMostConsumers = 8;
constexpr std::size_t kMostStatements = 64;

std::int64_t points(const loop::Program& program, const loop::Nest& nest) {
  std::int64_t n = 1;
  for (index::AxisId axis : nest.axes) n *= program.context->axis(axis).extent;
  return n;
}

/// `consumer` with every load of the producer's buffer replaced by the producer's statements.
///
/// Worked example: producer buf0[16*i0 + i1] = sin(x[16*i0 + i1]) with dims (8, 16); consumer loads buf0[16*j0 + j1 + 8]
/// over j1 < 8. The producer's axes become i0 = (16*j0 + j1 + 8)//16 = j0 and i1 = (16*j0 + j1 + 8) % 16 = j1 + 8, so
/// the load becomes sin(x[16*j0 + j1 + 8]).
loop::Nest substitute(loop::Program& program, const loop::Nest& producer, const loop::Nest& consumer) {
  index::Context& context = *program.context;
  const loop::BufferId buffer = producer.output();
  const Statement& store = producer.body.back();
  const std::vector<std::int64_t>& dims = program.buffers[buffer].dims;
  const std::vector<std::int64_t> strides = trace::contiguous_strides(dims);
  loop::Nest result = consumer;
  result.body.clear();
  result.symbols.clear();
  std::vector<int> moved(consumer.body.size(), -1);
  const auto find_same = [&](const Statement& s) {
    for (std::size_t k = 0; k < result.body.size(); ++k) {
      const Statement& o = result.body[k];
      if (o.kind == s.kind && o.dtype == s.dtype && o.buffer == s.buffer && o.index == s.index && o.scalar == s.scalar &&
          o.compute == s.compute && o.reduce == s.reduce && o.scan == s.scan && o.axis == s.axis && o.operands == s.operands && s.kind != StatementKind::store)
        return static_cast<int>(k);
    }
    return -1;
  };
  const auto push = [&](Statement s) {
    if (const int known = find_same(s); known >= 0) return known;
    result.body.push_back(std::move(s));
    return static_cast<int>(result.body.size()) - 1;
  };
  for (std::size_t k = 0; k < consumer.body.size(); ++k) {
    Statement s = consumer.body[k];
    if (s.kind == StatementKind::load && s.buffer == buffer) {
      std::map<index::AxisId, index::Expression> replacements;
      // The producer's nest stores row-major over its axes (rank 0: two axes of extent 1 and no dims).
      for (std::size_t d = 0; d < dims.size(); ++d) {
        index::Expression at = dims[d] == 1 ? context.constant(0) : context.floor_div(s.index, strides[d]);
        if (d > 0 && dims[d] > 1) at = context.mod(at, dims[d]);
        replacements.emplace(producer.axes[d], at);
      }
      std::vector<int> inlined(producer.body.size(), -1);
      for (std::size_t q = 0; q + 1 < producer.body.size(); ++q) {
        Statement p = producer.body[q];
        if (p.kind == StatementKind::load || p.kind == StatementKind::index_value)
          p.index = context.substitute(p.index, replacements);
        for (int& operand : p.operands) operand = inlined[static_cast<std::size_t>(operand)];
        inlined[q] = push(std::move(p));
      }
      moved[k] = inlined[static_cast<std::size_t>(store.operands[0])];
      continue;
    }
    for (int& operand : s.operands) operand = moved[static_cast<std::size_t>(operand)];
    moved[k] = push(std::move(s));
  }
  for (loop::SymbolUse use : consumer.symbols) {
    use.statement = moved[static_cast<std::size_t>(use.statement)];
    result.symbols.push_back(use);
  }
  for (loop::ValueCheck& check : result.checks) check.statement = moved[static_cast<std::size_t>(check.statement)];
  result.origins.insert(result.origins.end(), producer.origins.begin(), producer.origins.end());
  std::sort(result.origins.begin(), result.origins.end());
  result.origins.erase(std::unique(result.origins.begin(), result.origins.end()), result.origins.end());
  return result;
}

/// The producer stores its whole buffer in one nest, row-major over its axes.
bool fills_whole(const loop::Program& program, const loop::Nest& nest) {
  const Statement& store = nest.body.back();
  const std::vector<std::int64_t>& dims = program.buffers[store.buffer].dims;
  if (dims.empty()) return true;
  if (nest.axes.size() != dims.size()) return false;
  std::vector<index::Expression> position;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (program.context->axis(nest.axes[d]).extent != dims[d]) return false;
    position.push_back(program.context->of(nest.axes[d]));
  }
  return loop::flatten(*program.context, position, dims) == store.index;
}

}  // namespace

bool checks_values(const loop::Nest& nest) {
  return !nest.checks.empty() ||
         std::any_of(nest.symbols.begin(), nest.symbols.end(), [](const loop::SymbolUse& s) { return s.checked; });
}

bool reads_value(const index::Access& access) { return access.plan && access.plan->slices_nothing(); }

namespace {

/// Steps whose results nothing reads (statistics that a model does not use, say). Torch and library calls always run.
std::vector<bool> dead_steps(const loop::Program& program) {
  std::vector<bool> read(program.buffers.size(), false), dead(program.steps.size(), false);
  for (const loop::OutputValue& output : program.outputs)
    if (!output.none) read[output.view.buffer.index()] = true;
  for (std::size_t k = program.steps.size(); k-- > 0;) {
    const loop::Step& step = program.steps[loop::StepId(k)];
    if (const auto* id = std::get_if<loop::NestId>(&step.content)) {
      const loop::Nest& nest = program.nests[*id];
      dead[k] = !read[nest.output().index()] && !checks_values(nest);
      if (!dead[k])
        for (loop::BufferId b : nest.inputs()) read[b.index()] = true;
    } else if (const auto* library = std::get_if<loop::LibraryCall>(&step.content)) {
      for (const loop::View& operand : library->operands) read[operand.buffer.index()] = true;
    } else {
      for (const auto& [value, view] : std::get<loop::TorchCall>(step.content).inputs) read[view.buffer.index()] = true;
    }
  }
  return dead;
}

}  // namespace

LiveNests live_nests(const loop::Program& program) {
  LiveNests live;
  const std::vector<bool> dead = dead_steps(program);
  live.nest_of_step.resize(program.steps.size());
  live.writers.resize(program.buffers.size());
  live.readers.resize(program.buffers.size());
  live.escapes.resize(program.buffers.size(), false);
  live.next_ordered.resize(program.steps.size());
  loop::StepId last_ordered;
  for (std::size_t k = 0; k < program.steps.size(); ++k) {
    const loop::StepId id(k);
    const loop::Step& step = program.steps[id];
    if (const auto* nest = std::get_if<loop::NestId>(&step.content)) {
      if (dead[k]) continue;
      live.nest_of_step[k] = *nest;
      live.writers[program.nests[*nest].output().index()].push_back(id);
      for (loop::BufferId b : program.nests[*nest].inputs()) live.readers[b.index()].push_back(id);
      continue;
    }
    std::vector<loop::BufferId> inputs, outputs;
    if (const auto* library = std::get_if<loop::LibraryCall>(&step.content)) {
      for (const loop::View& operand : library->operands) inputs.push_back(operand.buffer);
      outputs = library->outputs;
    } else {
      const auto& torch = std::get<loop::TorchCall>(step.content);
      for (const auto& [value, view] : torch.inputs) inputs.push_back(view.buffer);
      outputs = torch.outputs;
      if (torch.ordered) {
        if (last_ordered.valid()) live.next_ordered[last_ordered.index()] = id;
        last_ordered = id;
      }
    }
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    for (loop::BufferId b : inputs) {
      live.readers[b.index()].push_back(id);
      live.escapes[b.index()] = true;
    }
    for (loop::BufferId b : outputs)
      if (b.valid()) live.writers[b.index()].push_back(id);
  }
  for (const loop::OutputValue& output : program.outputs)
    if (!output.none) live.escapes[output.view.buffer.index()] = true;
  return live;
}

void inline_producers(Schedule& schedule, LiveNests& live) {
  loop::Program& program = *schedule.program;
  for (std::size_t k = 0; k < program.steps.size(); ++k) {
    const loop::StepId step(k);
    const loop::NestId id = live.nest_of_step[k];
    if (!id.valid()) continue;
    const loop::Nest& producer = program.nests[id];
    const loop::BufferId buffer = producer.output();
    const std::vector<loop::StepId>& consumers = live.readers[buffer.index()];
    const bool only_writer = live.writers[buffer.index()].size() == 1;
    std::vector<loop::StepId> nest_consumers;
    for (loop::StepId c : consumers)
      if (live.nest_of_step[c.index()].valid()) nest_consumers.push_back(c);
    // A piece of a buffer that several nests fill, or a value that no nest reads, leaves nothing to decide.
    if (!only_writer || nest_consumers.empty() || !fills_whole(program, producer) || !producer.symbols.empty() ||
        !producer.checks.empty()) {
      if (!((producer.has_reduction() || (producer.has_scan() && only_writer)) && !nest_consumers.empty())) continue;
    }

    bool in_part = false, through_symbol = false;
    std::int64_t repeated = 0;
    Evidence evidence;
    for (loop::StepId c : nest_consumers) {
      const loop::NestId consumer_id = live.nest_of_step[c.index()];
      const loop::Nest& consumer = program.nests[consumer_id];
      repeated += points(program, consumer);
      for (std::size_t s = 0; s < consumer.body.size(); ++s) {
        if (consumer.body[s].kind != StatementKind::load || consumer.body[s].buffer != buffer) continue;
        const index::Access& access = loop::access_of(program, consumer_id, static_cast<int>(s));
        through_symbol = through_symbol || access.access_class == index::AccessClass::gather;
        if (reads_value(access)) continue;
        in_part = true;
        evidence.indices.push_back({buffer, id, consumer_id, producer.body.back().index, consumer.body[s].index});
      }
    }
    const bool no_loads = producer.inputs().empty();
    Decision decision;
    decision.kind = DecisionKind::inline_producer;
    decision.left = producer.origins;
    decision.left_steps = {step};
    for (loop::StepId c : nest_consumers) {
      const loop::Nest& consumer = program.nests[live.nest_of_step[c.index()]];
      decision.right.insert(decision.right.end(), consumer.origins.begin(), consumer.origins.end());
      decision.right_steps.push_back(c);
    }
    std::sort(decision.right.begin(), decision.right.end());
    decision.right.erase(std::unique(decision.right.begin(), decision.right.end()), decision.right.end());
    decision.evidence = evidence;
    decision.evidence.bytes_saved = 2 * program.buffers[buffer].bytes();

    if (producer.has_reduction()) {
      decision.reason = Reason::kept_reduction;
    } else if (producer.has_scan()) {
      decision.reason = Reason::kept_scan;
    } else if (live.escapes[buffer.index()]) {
      decision.reason = Reason::kept_output;
    } else if (no_loads && !through_symbol) {
      decision.reason = Reason::inlined_no_loads;
    } else if (!in_part) {
      decision.reason = Reason::kept_identity;
    } else if (through_symbol || nest_consumers.size() > kMostConsumers || producer.body.size() > kMostStatements ||
               repeated > 4 * points(program, producer)) {
      decision.reason = Reason::kept_too_costly;
    } else {
      decision.reason = Reason::inlined_index;
    }
    decision.accepted = decision.reason == Reason::inlined_no_loads || decision.reason == Reason::inlined_index;

    Effect effect;
    if (decision.accepted) {
      effect.removed = step;
      for (loop::StepId c : nest_consumers) {
        // Made before it is added: adding moves the others.
        loop::Nest inlined = substitute(program, program.nests[id], program.nests[live.nest_of_step[c.index()]]);
        const loop::NestId made = program.nests.add(std::move(inlined));
        effect.replaced.emplace_back(c, made);
        live.nest_of_step[c.index()] = made;
      }
      live.nest_of_step[k] = {};
      live.writers[buffer.index()].clear();
      live.readers[buffer.index()].clear();
      for (loop::BufferId b : program.nests[id].inputs()) {
        std::vector<loop::StepId>& list = live.readers[b.index()];
        list.erase(std::remove(list.begin(), list.end(), step), list.end());
        for (loop::StepId c : nest_consumers)
          if (std::find(list.begin(), list.end(), c) == list.end()) list.push_back(c);
        std::sort(list.begin(), list.end());
      }
    }
    schedule.decisions.push_back(std::move(decision));
    schedule.effects.push_back(std::move(effect));
  }
}

}  // namespace pallascope::schedule
