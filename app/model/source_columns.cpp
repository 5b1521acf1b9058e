#include "app/model/source_columns.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "core/report/code.h"
#include "core/report/diff.h"
#include "core/report/lookup.h"

namespace pallascope::model {
namespace {

using session::Compilation;
using session::Snapshot;

struct FileLine {
  std::string code;
  std::vector<trace::NodeId> nodes;
};

Column model_column(const Compilation& compilation) {
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
  Column column;
  for (const std::string& file : order) {
    const auto& known = files[file];
    SourceLine head;
    head.kind = LineKind::file;
    head.text = file;
    column.lines.push_back(head);
    const auto source = compilation.program().sources.find(file);
    const bool whole = source != compilation.program().sources.end() && !source->second.empty();
    if (whole) {
      int number = 0;
      for (std::string& text : report::split_lines(source->second)) {
        SourceLine line;
        line.number = ++number;
        line.text = std::move(text);
        if (const auto at = known.find(number); at != known.end()) line.nodes = at->second.nodes;
        column.lines.push_back(std::move(line));
      }
      continue;
    }
    int last = 0;
    for (const auto& [number, content] : known) {
      if (last != 0 && number != last + 1) {
        SourceLine gap;
        gap.kind = LineKind::gap;
        column.lines.push_back(gap);
      }
      SourceLine line;
      line.number = last = number;
      line.text = content.code;
      line.nodes = content.nodes;
      column.lines.push_back(std::move(line));
    }
  }
  return column;
}

SourceLine line_of(const report::CodeLine& code, const Snapshot& snapshot) {
  SourceLine line;
  line.number = code.number;
  line.text = code.text;
  line.letter = code.letter;
  line.kernel = code.kernel;
  line.access = code.access;
  if (code.node.valid()) line.nodes = {code.node};
  if (code.access >= 0) {
    const codegen::KernelAccess& access = snapshot.module.accesses.at(static_cast<std::size_t>(code.access));
    line.store = access.store;
    line.on_value = access.on_value;
  }
  return line;
}

/// The text is `report`'s, so that the window and `code --from loops` show the same; its order says which statement a
/// line is: per step a call's line, or the kernel's head and for each nest its head and its statements.
Column loops_column(const Compilation& compilation, const Snapshot& snapshot) {
  const loop::Program& program = *snapshot.program;
  Column column;
  const auto code = report::code_lines(compilation, snapshot, report::CodeForm::loops, std::nullopt);
  for (const report::CodeLine& line : code) column.lines.push_back(line_of(line, snapshot));
  std::size_t at = 0;
  for (const schedule::ScheduledStep& step : snapshot.state.steps) {
    ++at;  // a call, or the kernel's head
    if (!step.kernel.valid()) continue;
    for (const loop::NestId id : snapshot.state.kernels[step.kernel].nests) {
      const loop::Nest& nest = program.nests[id];
      column.lines.at(at++).nest = id;
      for (std::size_t k = 0; k < nest.body.size(); ++k) {
        SourceLine& line = column.lines.at(at++);
        line.nest = id;
        line.statement = static_cast<int>(k);
        const loop::StatementKind kind = nest.body[k].kind;
        if (kind != loop::StatementKind::load && kind != loop::StatementKind::store) continue;
        line.store = kind == loop::StatementKind::store;
        if (line.access < 0)
          line.letter = index::access_class_letter(loop::access_of(program, id, static_cast<int>(k)).access_class);
      }
    }
  }
  PALLASCOPE_CHECK(at == column.lines.size(), "the loops' lines are those of the steps");
  return column;
}

Column pallas_column(const Compilation& compilation, const Snapshot& snapshot) {
  Column column;
  const auto code = report::code_lines(compilation, snapshot, report::CodeForm::pallas, std::nullopt);
  for (std::size_t k = 0; k < code.size(); ++k) {
    SourceLine line = line_of(code[k], snapshot);
    if (k < snapshot.module.lines.size()) {
      line.nest = snapshot.module.lines[k].nest;
      line.statement = snapshot.module.lines[k].statement;
    }
    column.lines.push_back(std::move(line));
  }
  return column;
}

/// What a selection comes down to. Statement -1 is the head of a nest; `primary` is what to scroll to.
struct Target {
  std::set<trace::NodeId> nodes;
  std::set<StatementRef> statements, primary;
  schedule::KernelId kernel;
  int access = -1;
};

void add_statements_of(const Snapshot& snapshot, Target& target) {
  for (const schedule::KernelId kernel : report::kernels_in_order(snapshot)) {
    for (const loop::NestId id : snapshot.state.kernels[kernel].nests) {
      const loop::Nest& nest = snapshot.program->nests[id];
      if (target.nodes.contains(nest.origin)) target.statements.insert({id, -1});
      for (std::size_t k = 0; k < nest.body.size(); ++k) {
        if (target.nodes.contains(nest.body[k].origin)) target.statements.insert({id, static_cast<int>(k)});
      }
    }
  }
}

void add_nest(const Snapshot& snapshot, loop::NestId id, Target& target) {
  target.statements.insert({id, -1});
  for (std::size_t k = 0; k < snapshot.program->nests[id].body.size(); ++k)
    target.statements.insert({id, static_cast<int>(k)});
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
          target.primary.insert({nest, static_cast<int>(k)});
      }
    }
  }
}

Target target_of(const Compilation& compilation, const Snapshot& snapshot, const Selection& selection) {
  const loop::Program& program = *snapshot.program;
  Target target;
  const auto nodes = nodes_of(compilation, snapshot, selection);
  target.nodes.insert(nodes.begin(), nodes.end());
  if (const auto* kernel = std::get_if<schedule::KernelId>(&selection)) {
    if (!snapshot.state.kernels.contains(*kernel)) return target;
    target.kernel = *kernel;
    for (const loop::NestId nest : snapshot.state.kernels[*kernel].nests) add_nest(snapshot, nest, target);
  } else if (const auto* statement = std::get_if<StatementRef>(&selection)) {
    if (!program.nests.contains(statement->nest)) return target;
    if (statement->statement < 0) {
      add_nest(snapshot, statement->nest, target);
    } else {
      target.statements.insert(*statement);
    }
  } else if (const auto* access = std::get_if<AccessRef>(&selection)) {
    if (access->access < 0 || static_cast<std::size_t>(access->access) >= snapshot.module.accesses.size()) return target;
    target.access = access->access;
    const codegen::KernelAccess& a = snapshot.module.accesses[static_cast<std::size_t>(access->access)];
    target.statements.insert({a.nest, a.statement});
  } else if (const auto* buffer = std::get_if<loop::BufferId>(&selection)) {
    for (const schedule::KernelId kernel : report::kernels_in_order(snapshot)) {
      for (const loop::NestId nest : snapshot.state.kernels[kernel].nests) {
        const auto& body = program.nests[nest].body;
        for (std::size_t k = 0; k < body.size(); ++k) {
          if (body[k].buffer.valid() && body[k].buffer == *buffer) target.statements.insert({nest, static_cast<int>(k)});
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

/// Equal kernels share one text, whose lines name the first one's nests: the nests of the others stand for those.
std::map<loop::NestId, loop::NestId> written_nests(const Snapshot& snapshot) {
  std::map<int, schedule::KernelId> first;
  std::map<loop::NestId, loop::NestId> written;
  for (std::size_t k = 0; k < snapshot.module.kernels.size() && k < snapshot.state.kernels.size(); ++k) {
    const schedule::KernelId id(k);
    const auto [at, is_new] = first.emplace(snapshot.module.kernels[k].kernel_first, id);
    if (is_new) continue;
    const auto& own = snapshot.state.kernels[id].nests;
    const auto& theirs = snapshot.state.kernels[at->second].nests;
    for (std::size_t n = 0; n < own.size() && n < theirs.size(); ++n) written[own[n]] = theirs[n];
  }
  return written;
}

std::set<StatementRef> as_written(const std::set<StatementRef>& statements, const std::map<loop::NestId, loop::NestId>& written) {
  std::set<StatementRef> result;
  for (StatementRef ref : statements) {
    if (const auto at = written.find(ref.nest); at != written.end()) ref.nest = at->second;
    result.insert(ref);
  }
  return result;
}

bool any_of(const std::vector<trace::NodeId>& nodes, const std::set<trace::NodeId>& wanted) {
  return std::any_of(nodes.begin(), nodes.end(), [&](trace::NodeId id) { return wanted.contains(id); });
}

std::string text_of(const Column& column, std::size_t first, std::size_t end) {
  std::string text;
  for (std::size_t k = first; k < end; ++k) text += column.lines[k].text + "\n";
  return text;
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

SourceColumns source_columns(const Compilation& compilation, const Snapshot& snapshot) {
  SourceColumns made;
  made[ColumnKind::model] = model_column(compilation);
  made[ColumnKind::loops] = loops_column(compilation, snapshot);
  made[ColumnKind::pallas] = pallas_column(compilation, snapshot);
  for (const ColumnKind kind : column_kinds) made[kind].kind = kind;
  return made;
}

LinkedColumns linked(const Compilation& compilation, const Snapshot& snapshot, const SourceColumns& columns,
                     const Selection& selection) {
  LinkedColumns result;
  if (is_empty(selection)) return result;
  const Target target = target_of(compilation, snapshot, selection);
  const auto written = written_nests(snapshot);
  const std::set<StatementRef> in_text = as_written(target.statements, written), first_in_text = as_written(target.primary, written);
  // The lines of a call have a node and no nest; a node may have a nest besides (a product's bias), which is not the call.
  const bool by_node = !target.kernel.valid() && target.access < 0 && !std::holds_alternative<StatementRef>(selection);
  const codegen::KernelSource* source =
      target.kernel.valid() && target.kernel.index() < snapshot.module.kernels.size() ? &snapshot.module.kernels[target.kernel.index()] : nullptr;
  const int access_line = target.access >= 0 ? snapshot.module.accesses[static_cast<std::size_t>(target.access)].line : 0;

  for (const ColumnKind kind : column_kinds) {
    LinkedLines& found = result.columns[static_cast<std::size_t>(kind)];
    const auto& lines = columns[kind].lines;
    for (std::size_t k = 0; k < lines.size(); ++k) {
      const SourceLine& line = lines[k];
      const StatementRef own{line.nest, line.statement};
      bool belongs = false, primary = false;
      switch (kind) {
        case ColumnKind::model:
          belongs = any_of(line.nodes, target.nodes);
          break;
        case ColumnKind::loops:
          primary = target.primary.contains(own);
          belongs = primary || (line.nest.valid() ? target.statements.contains(own)
                                  : line.kernel.valid() ? line.kernel == target.kernel
                                                        : by_node && any_of(line.nodes, target.nodes));
          break;
        case ColumnKind::pallas:
          primary = (line.nest.valid() && first_in_text.contains(own)) || (access_line > 0 && line.number == access_line);
          // An access is on one line; the statement's other lines (an index check) are not it.
          belongs = primary || (line.nest.valid() && access_line == 0 && in_text.contains(own)) ||
                    (source != nullptr && ((line.number >= source->first_line && line.number <= source->last_line) ||
                                           line.kernel == target.kernel)) ||
                    (by_node && !line.nest.valid() && any_of(line.nodes, target.nodes));
          break;
      }
      if (!belongs) continue;
      if (primary && !found.focus) found.focus = k;
      found.lines.push_back(k);
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

void mark_changes(SourceColumns& after, const SourceColumns& before) {
  for (const ColumnKind kind : column_kinds) {
    Column& column = after[kind];
    const auto& old_lines = before[kind].lines;
    auto& lines = column.lines;
    for (SourceLine& line : lines) {
      line.flag = LineFlag::same;
      line.removed_before = 0;
    }
    // A step changes a few lines of thousands: only what lies between equal ends is made into texts.
    const std::size_t most = std::min(old_lines.size(), lines.size());
    std::size_t head = 0, tail = 0;
    while (head < most && old_lines[head].text == lines[head].text) ++head;
    while (tail < most - head && old_lines[old_lines.size() - 1 - tail].text == lines[lines.size() - 1 - tail].text) ++tail;
    int removed = 0, changeable = 0;
    for (const report::DiffLine& diff : report::diff_lines(text_of(before[kind], head, old_lines.size() - tail),
                                                           text_of(column, head, lines.size() - tail))) {
      if (diff.change == report::LineChange::removed) {
        ++removed;
        ++changeable;
        continue;
      }
      SourceLine& line = lines.at(head + diff.new_line - 1);
      line.removed_before = removed;
      removed = 0;
      if (diff.change == report::LineChange::same) {
        changeable = 0;
        continue;
      }
      line.flag = changeable > 0 ? LineFlag::changed : LineFlag::added;
      changeable = std::max(0, changeable - 1);
    }
    column.removed_at_end = 0;
    (tail > 0 ? lines[lines.size() - tail].removed_before : column.removed_at_end) = removed;
  }
}

}  // namespace pallascope::model
