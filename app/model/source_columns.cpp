#include "app/model/source_columns.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "core/report/code.h"
#include "core/report/diff.h"
#include "core/report/format.h"
#include "core/report/lookup.h"

namespace pallascope::model {
namespace {

using session::Compilation;
using session::Snapshot;

struct FileLine {
  std::string code;
  std::vector<trace::NodeId> nodes;
};

using Block = Lines::Block;
using Row = Lines::Row;
using BlockPointer = std::shared_ptr<const Block>;

BlockPointer sealed(Block block) {
  for (const Row& row : block.rows) block.hash = (block.hash ^ std::hash<std::string_view>{}(row.text)) * 1099511628211ULL;
  return std::make_shared<const Block>(std::move(block));
}

BlockPointer model_block(const Compilation& compilation) {
  const trace::Graph& graph = compilation.graph();
  std::map<std::string, std::map<int, FileLine>> files;
  std::vector<std::string> order;  // of first use
  for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
    const trace::NodeId id(k);
    const trace::Frame* frame = graph.nodes[id].user_frame();
    if (frame == nullptr) continue;
    if (!files.contains(frame->file)) order.push_back(frame->file);
    FileLine& line = files[frame->file][frame->line];
    if (line.code.empty()) line.code = frame->code.substr(0, frame->code.find('\n'));
    line.nodes.push_back(id);
  }
  Block block;
  block.is_model = true;
  for (const std::string& file : order) {
    const auto& known = files[file];
    Row head;
    head.kind = LineKind::file;
    head.text = file;
    block.rows.push_back(head);
    const auto source = compilation.program().sources.find(file);
    const bool whole = source != compilation.program().sources.end() && !source->second.empty();
    if (whole) {
      int number = 0;
      for (std::string& text : report::split_lines(source->second)) {
        Row line;
        line.number = ++number;
        line.text = std::move(text);
        if (const auto at = known.find(number); at != known.end()) line.nodes = at->second.nodes;
        block.rows.push_back(std::move(line));
      }
      continue;
    }
    int last = 0;
    for (const auto& [number, content] : known) {
      if (last != 0 && number != last + 1) {
        Row gap;
        gap.kind = LineKind::gap;
        block.rows.push_back(gap);
      }
      Row line;
      line.number = last = number;
      line.text = content.code;
      line.nodes = content.nodes;
      block.rows.push_back(std::move(line));
    }
  }
  return sealed(std::move(block));
}

}  // namespace

struct ColumnCache {
  std::shared_ptr<const loop::Program> compilation;  ///< whose last program this is
  BlockPointer model;
  std::vector<BlockPointer> heads;  ///< `k<n>:`
  // Of the compilation's programs, in which an id means the same (see lower::Prefixes).
  std::vector<BlockPointer> nests;
  std::vector<BlockPointer> calls;  ///< of each step
};

namespace {

/// The texts are `report`'s, so that the window and `code --from loops` show the same: those of a program of one step.
std::vector<report::CodeLine> loop_lines(const Compilation& compilation, const Snapshot& snapshot, const schedule::ScheduledStep& step,
                                         std::vector<loop::NestId> nests) {
  Snapshot alone;
  alone.program = snapshot.program;
  alone.state.steps = {step};
  if (step.kernel.valid()) {
    schedule::Kernel kernel;
    kernel.nests = std::move(nests);
    alone.state.kernels.add(std::move(kernel));
  }
  return report::code_lines(compilation, alone, report::CodeForm::loops, std::nullopt);
}

BlockPointer call_block(const Compilation& compilation, const Snapshot& snapshot, const schedule::ScheduledStep& step) {
  Block block;
  for (report::CodeLine& code : loop_lines(compilation, snapshot, step, {})) {
    Row row;
    row.text = std::move(code.text);
    row.node = code.node;
    block.rows.push_back(std::move(row));
  }
  return sealed(std::move(block));
}

/// The nest's head and its statements.
BlockPointer nest_block(const Compilation& compilation, const Snapshot& snapshot, loop::NestId id) {
  const loop::Nest& nest = snapshot.program->nests[id];
  Block block;
  auto code = loop_lines(compilation, snapshot, {schedule::KernelId(0), {}}, {id});
  PALLASCOPE_CHECK(code.size() == nest.body.size() + 2, "a kernel's head, a nest's head, a line a statement");
  for (std::size_t k = 1; k < code.size(); ++k) {
    Row row;
    row.text = std::move(code[k].text);
    row.node = code[k].node;
    row.nest = id;
    row.statement = static_cast<int>(k) - 2;
    if (row.statement >= 0) {
      const loop::StatementKind kind = nest.body[k - 2].kind;
      row.store = kind == loop::StatementKind::store;
      if (row.store || kind == loop::StatementKind::load)
        row.letter = index::access_class_letter(loop::access_of(*snapshot.program, id, row.statement).access_class);
    } else {
      row.statement = -1;
    }
    block.rows.push_back(std::move(row));
  }
  return sealed(std::move(block));
}

BlockPointer head_block(std::size_t kernel) {
  Block block;
  block.is_head = true;
  block.rows.emplace_back();
  block.rows.back().text = report::id_text(schedule::KernelId(kernel)) + ":";
  return sealed(std::move(block));
}

/// Per step a call's line, or the kernel's head and for each nest its head and its statements.
Lines loops_lines(const Compilation& compilation, const Snapshot& snapshot, ColumnCache& cache) {
  Lines lines;
  const auto& runs = snapshot.module.accesses.runs();
  for (const schedule::ScheduledStep& step : snapshot.state.steps) {
    Lines::Chunk chunk;
    if (!step.kernel.valid()) {
      BlockPointer& known = cache.calls.at(step.call.index());
      if (!known) known = call_block(compilation, snapshot, step);
      chunk.block = known;
      lines.add(std::move(chunk));
      continue;
    }
    const std::size_t number = step.kernel.index();
    while (cache.heads.size() <= number) cache.heads.push_back(head_block(cache.heads.size()));
    chunk.kernel = step.kernel;
    chunk.block = cache.heads[number];
    lines.add(chunk);
    const codegen::AccessList::Run& run = runs[number];
    for (std::size_t n = 0; n < run.piece->nests.size(); ++n) {
      const loop::NestId id = run.piece->nests[n];
      BlockPointer& known = cache.nests.at(id.index());
      if (!known) known = nest_block(compilation, snapshot, id);
      chunk.block = known;
      chunk.source = run.piece;
      chunk.first_access = static_cast<int>(run.first);
      chunk.first_statement = run.piece->nest_starts[n];
      lines.add(chunk);
    }
  }
  return lines;
}

Lines pallas_lines(const Snapshot& snapshot) {
  Lines lines;
  const auto& runs = snapshot.module.accesses.runs();
  for (const codegen::Place& place : snapshot.module.pieces) {
    Lines::Chunk chunk;
    chunk.piece = place.piece;
    chunk.kernel = place.kernel;
    chunk.first_access = place.first_access;
    if (place.kernel.valid()) chunk.source = runs[place.kernel.index()].piece;
    lines.add(std::move(chunk));
  }
  return lines;
}

/// What a selection comes down to. Statement -1 is the head of a nest; `primary` is what to scroll to.
struct Target {
  std::vector<bool> nodes;  ///< one a node of the graph
  std::vector<StatementRef> statements, primary;
  schedule::KernelId kernel;
  int access = -1;
};

void add_statements_of(const Snapshot& snapshot, Target& target) {
  const auto is_wanted = [&](trace::NodeId node) { return node.valid() && target.nodes[node.index()]; };
  for (const schedule::KernelId kernel : report::kernels_in_order(snapshot)) {
    for (const loop::NestId id : snapshot.state.kernels[kernel].nests) {
      const loop::Nest& nest = snapshot.program->nests[id];
      if (is_wanted(nest.origin)) target.statements.push_back({id, -1});
      for (std::size_t k = 0; k < nest.body.size(); ++k) {
        if (is_wanted(nest.body[k].origin)) target.statements.push_back({id, static_cast<int>(k)});
      }
    }
  }
}

void add_nest(const Snapshot& snapshot, loop::NestId id, Target& target) {
  target.statements.push_back({id, -1});
  for (std::size_t k = 0; k < snapshot.program->nests[id].body.size(); ++k)
    target.statements.push_back({id, static_cast<int>(k)});
}

/// The loads and stores whose expressions a decision compared, in the nests of the snapshot.
void add_compared(const Compilation& compilation, const Snapshot& snapshot, const schedule::Decision& decision, Target& target) {
  if (snapshot.program != compilation.schedule().program) return;
  std::set<loop::NestId> live;
  for (const schedule::KernelId kernel : report::kernels_in_order(snapshot)) {
    const auto& nests = snapshot.state.kernels[kernel].nests;
    live.insert(nests.begin(), nests.end());
  }
  for (const schedule::IndexPair& pair : decision.evidence.indices) {
    for (const auto& [nest, expression] : {std::pair(pair.left_nest, pair.left), std::pair(pair.right_nest, pair.right)}) {
      if (!live.contains(nest)) continue;
      const auto& body = snapshot.program->nests[nest].body;
      for (std::size_t k = 0; k < body.size(); ++k) {
        if (body[k].buffer.valid() && body[k].buffer == pair.buffer && body[k].index == expression)
          target.primary.push_back({nest, static_cast<int>(k)});
      }
    }
  }
}

Target target_of(const Compilation& compilation, const Snapshot& snapshot, const Selection& selection) {
  const loop::Program& program = *snapshot.program;
  Target target;
  target.nodes.resize(compilation.graph().nodes.size(), false);
  for (const trace::NodeId node : nodes_of(compilation, snapshot, selection)) target.nodes.at(node.index()) = true;
  if (const auto* kernel = std::get_if<schedule::KernelId>(&selection)) {
    if (!snapshot.state.kernels.contains(*kernel)) return target;
    target.kernel = *kernel;
    for (const loop::NestId nest : snapshot.state.kernels[*kernel].nests) add_nest(snapshot, nest, target);
  } else if (const auto* statement = std::get_if<StatementRef>(&selection)) {
    if (!program.nests.contains(statement->nest)) return target;
    if (statement->statement < 0) {
      add_nest(snapshot, statement->nest, target);
    } else {
      target.statements.push_back(*statement);
    }
  } else if (const auto* access = std::get_if<AccessRef>(&selection)) {
    if (access->access < 0 || static_cast<std::size_t>(access->access) >= snapshot.module.accesses.size()) return target;
    target.access = access->access;
    const codegen::KernelAccess& a = snapshot.module.accesses[static_cast<std::size_t>(access->access)];
    target.statements.push_back({a.nest, a.statement});
  } else if (const auto* buffer = std::get_if<loop::BufferId>(&selection)) {
    for (const schedule::KernelId kernel : report::kernels_in_order(snapshot)) {
      for (const loop::NestId nest : snapshot.state.kernels[kernel].nests) {
        const auto& body = program.nests[nest].body;
        for (std::size_t k = 0; k < body.size(); ++k) {
          if (body[k].buffer.valid() && body[k].buffer == *buffer) target.statements.push_back({nest, static_cast<int>(k)});
        }
      }
    }
  } else {
    add_statements_of(snapshot, target);
    if (const auto* decision = std::get_if<schedule::DecisionId>(&selection);
        decision != nullptr && decision->valid() && decision->index() < compilation.decisions().size())
      add_compared(compilation, snapshot, compilation.decisions()[decision->index()], target);
  }
  return target;
}

/// Statements to look up for each of many lines, nearly none of which is one: a bit a statement of their nests.
class StatementMarks {
 public:
  explicit StatementMarks(const loop::Program& program) : program_(program), starts_(program.nests.size(), none) {}
  StatementMarks(const loop::Program& program, const std::vector<StatementRef>& statements) : StatementMarks(program) {
    for (const StatementRef& ref : statements) add(ref);
  }
  void add(const StatementRef& ref) {
    std::size_t& start = starts_[ref.nest.index()];
    if (start == none) {
      start = marks_.size();
      marks_.resize(start + program_.nests[ref.nest].body.size() + 1, false);
    }
    marks_[start + static_cast<std::size_t>(ref.statement + 1)] = true;
  }
  [[nodiscard]] bool any(loop::NestId nest) const { return nest.valid() && starts_[nest.index()] != none; }
  [[nodiscard]] bool contains(loop::NestId nest, int statement) const {
    return any(nest) && marks_[starts_[nest.index()] + static_cast<std::size_t>(statement + 1)];
  }

 private:
  static constexpr std::size_t none = ~std::size_t{0};
  const loop::Program& program_;
  std::vector<std::size_t> starts_;
  std::vector<bool> marks_;
};

/// Equal kernels share one text, whose lines name the first one's nests: the nests of the others stand for those.
/// `statements` as they are in the text.
StatementMarks as_written(const Snapshot& snapshot, const std::vector<StatementRef>& statements) {
  StatementMarks made(*snapshot.program);
  if (statements.empty()) return made;
  const StatementMarks wanted(*snapshot.program, statements);
  std::unordered_map<int, std::size_t> first;  // kernel of the text that begins on a line
  std::unordered_map<std::int32_t, loop::NestId> written;
  for (std::size_t k = 0; k < snapshot.module.kernels.size(); ++k) {
    const auto [at, is_new] = first.emplace(snapshot.module.kernels[k].kernel_first, k);
    if (is_new) continue;
    const auto& own = snapshot.state.kernels[schedule::KernelId(k)].nests;
    const auto& theirs = snapshot.state.kernels[schedule::KernelId(at->second)].nests;
    for (std::size_t n = 0; n < own.size() && n < theirs.size(); ++n)
      if (wanted.any(own[n])) written.emplace(own[n].value, theirs[n]);
  }
  for (StatementRef ref : statements) {
    if (const auto at = written.find(ref.nest.value); at != written.end()) ref.nest = at->second;
    made.add(ref);
  }
  return made;
}

}  // namespace

std::string_view column_name(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::model: return "model";
    case ColumnKind::loops: return "loops";
    case ColumnKind::pallas: return "pallas";
  }
  return "pallas";
}

bool LinkedLines::contains(std::size_t line) const { return std::binary_search(lines.begin(), lines.end(), line); }

void Lines::add(Chunk chunk) {
  chunk.first = size_;
  size_ += chunk.size();
  chunks_.push_back(std::move(chunk));
}

SourceLine Lines::Chunk::line(std::size_t k) const {
  const int number = static_cast<int>(first + k) + 1;
  if (piece) {
    // What a relative origin says is put in place: see codegen::Piece.
    const LineNodes nodes(&piece->origins[k].node, piece->origins[k].node.valid() ? 1 : 0);
    SourceLine line{.number = number, .text = piece->line(k), .nodes = nodes};
    const codegen::LineOrigin& origin = piece->origins[k];
    if (origin.kernel.valid()) line.kernel = kernel;
    line.nest = origin.nest;
    line.statement = origin.statement;
    if (origin.access < 0) return line;
    line.access = origin.access + first_access;
    const codegen::AccessText& access = source->accesses[static_cast<std::size_t>(origin.access)];
    line.letter = index::access_class_letter(access.access->access_class);
    line.store = access.store;
    line.on_value = access.on_value;
    return line;
  }
  const Row& row = block->rows[k];
  const LineNodes nodes = row.node.valid() ? LineNodes(&row.node, 1) : LineNodes(row.nodes);
  SourceLine line{.kind = row.kind, .number = block->is_model ? row.number : number, .text = row.text, .letter = row.letter, .store = row.store, .nodes = nodes};
  line.kernel = kernel;
  line.nest = row.nest;
  line.statement = row.statement;
  if (source && row.statement >= 0) {
    if (const int at = source->access_of[first_statement + static_cast<std::size_t>(row.statement)]; at >= 0) {
      line.access = at + first_access;
      line.on_value = source->accesses[static_cast<std::size_t>(at)].on_value;
    }
  }
  return line;
}

SourceLine Lines::operator[](std::size_t line) const {
  const auto after = std::upper_bound(chunks_.begin(), chunks_.end(), line, [](std::size_t l, const Chunk& c) { return l < c.first; });
  SourceLine made = std::prev(after)->line(line - std::prev(after)->first);
  const auto mark = std::lower_bound(marks_.begin(), marks_.end(), line, [](const Mark& m, std::size_t l) { return m.line < l; });
  if (mark != marks_.end() && mark->line == line) {
    made.flag = mark->flag;
    made.removed_before = mark->removed_before;
  }
  return made;
}

SourceColumns source_columns(const Compilation& compilation, const Snapshot& snapshot, const SourceColumns* previous) {
  SourceColumns made;
  made.cache = previous != nullptr ? previous->cache : nullptr;
  made.program = snapshot.program;
  if (!made.cache || made.cache->compilation != compilation.schedule().program) {
    made.cache = std::make_shared<ColumnCache>();
    made.cache->compilation = compilation.schedule().program;
    made.cache->model = model_block(compilation);
  }
  ColumnCache& cache = *made.cache;
  cache.nests.resize(std::max(cache.nests.size(), snapshot.program->nests.size()));
  cache.calls.resize(std::max(cache.calls.size(), snapshot.program->steps.size()));
  Lines::Chunk model;
  model.block = cache.model;
  made[ColumnKind::model].lines.add(std::move(model));
  made[ColumnKind::loops].lines = loops_lines(compilation, snapshot, cache);
  made[ColumnKind::pallas].lines = pallas_lines(snapshot);
  for (const ColumnKind kind : column_kinds) made[kind].kind = kind;
  return made;
}

LinkedColumns linked(const Compilation& compilation, const Snapshot& snapshot, const SourceColumns& columns,
                     const Selection& selection) {
  LinkedColumns result;
  if (is_empty(selection)) return result;
  const Target target = target_of(compilation, snapshot, selection);
  const StatementMarks text_statements = as_written(snapshot, target.statements), text_primaries = as_written(snapshot, target.primary);
  const StatementMarks statements(*snapshot.program, target.statements), primaries(*snapshot.program, target.primary);
  const auto any_of = [&](const LineNodes& nodes) {
    return std::any_of(nodes.begin(), nodes.end(), [&](trace::NodeId id) { return target.nodes[id.index()]; });
  };
  // The lines of a call have a node and no nest; a node may have a nest besides (a product's bias), which is not the call.
  const bool by_node = !target.kernel.valid() && target.access < 0 && !std::holds_alternative<StatementRef>(selection);
  const codegen::KernelSource* source =
      target.kernel.valid() && target.kernel.index() < snapshot.module.kernels.size() ? &snapshot.module.kernels[target.kernel.index()] : nullptr;
  const int access_line = target.access >= 0 ? snapshot.module.accesses[static_cast<std::size_t>(target.access)].line : 0;

  for (const ColumnKind kind : column_kinds) {
    LinkedLines& found = result.columns[static_cast<std::size_t>(kind)];
    const auto look = [&](const SourceLine& line, std::size_t k) {
      bool belongs = false, primary = false;
      switch (kind) {
        case ColumnKind::model:
          belongs = any_of(line.nodes);
          break;
        case ColumnKind::loops:
          primary = primaries.contains(line.nest, line.statement);
          belongs = primary || (line.nest.valid() ? statements.contains(line.nest, line.statement)
                                  : line.kernel.valid() ? line.kernel == target.kernel
                                                        : by_node && any_of(line.nodes));
          break;
        case ColumnKind::pallas:
          primary = text_primaries.contains(line.nest, line.statement) || (access_line > 0 && line.number == access_line);
          // An access is on one line; the statement's other lines (an index check) are not it.
          belongs = primary || (access_line == 0 && text_statements.contains(line.nest, line.statement)) ||
                    (source != nullptr && ((line.number >= source->first_line && line.number <= source->last_line) ||
                                           line.kernel == target.kernel)) ||
                    (by_node && !line.nest.valid() && any_of(line.nodes));
          break;
      }
      if (!belongs) return;
      if (primary && !found.focus) found.focus = k;
      found.lines.push_back(k);
    };
    for (const Lines::Chunk& chunk : columns[kind].lines.chunks()) {
      // Nearly all of the loops is nests that nobody asked for.
      if (const loop::NestId nest = chunk.nest(); nest.valid() && !statements.any(nest) && !primaries.any(nest)) continue;
      for (std::size_t c = 0, count = chunk.size(); c < count; ++c) look(chunk.line(c), chunk.first + c);
    }
    if (!found.focus && !found.lines.empty()) found.focus = found.lines.front();
  }
  return result;
}

Selection selection_of(const SourceLine& line) {
  if (line.access >= 0) return AccessRef{line.access};
  if (line.nest.valid()) return StatementRef{line.nest, line.statement};
  if (!line.nodes.empty()) return line.nodes.front();
  if (line.kernel.valid()) return line.kernel;
  return {};
}

}  // namespace pallascope::model
