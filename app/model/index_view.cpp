#include "app/model/index_view.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "core/report/accesses.h"
#include "core/report/format.h"
#include "core/report/lookup.h"

namespace pallascope::model {
namespace {

using codegen::KernelAccess;
using session::Snapshot;

/// Steps of a whole analysed access, not of a whole kernel: only the chosen one is walked.
std::int64_t magnitude(std::int64_t value) { return value < 0 ? -value : value; }

std::string buffer_text(const loop::Program& program, loop::BufferId id) {
  return fmt::format("{} {}", report::id_text(id), program.buffers[id].name);
}

/// What a step along an axis does, given what all axes of smaller strides cover (`covered` elements from their first
/// to their last).
std::string stride_note(std::int64_t stride, std::int64_t extent, std::int64_t covered) {
  if (extent <= 1) return "";
  if (stride == 0) return "repeats";
  const std::string back = stride < 0 ? "goes back, " : "";
  const std::int64_t step = magnitude(stride);
  if (step == 1 && covered == 1) return back + "neighbours";
  if (step == covered) return back + "packed";
  return back + (step > covered ? fmt::format("skips {}", report::count_text(step - covered))
                                : std::string("overlaps"));
}

/// One row an axis. `reduced` may be shorter than `axes`.
std::vector<AxisStride> axis_rows(const index::Context& context, const std::vector<index::AxisId>& axes,
                                  const index::Access& access, const std::vector<index::AxisId>& reduced) {
  std::vector<AxisStride> rows;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    AxisStride row;
    row.name = context.axis(axes[k]).name;
    row.extent = context.axis(axes[k]).extent;
    row.reduced = std::find(reduced.begin(), reduced.end(), axes[k]) != reduced.end();
    if (access.affine && k < access.axis_strides.size()) row.stride = access.axis_strides[k];
    rows.push_back(std::move(row));
  }
  std::vector<std::size_t> by_stride;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (rows[k].stride && rows[k].extent > 1) by_stride.push_back(k);
  }
  std::stable_sort(by_stride.begin(), by_stride.end(), [&](std::size_t a, std::size_t b) {
    return magnitude(*rows[a].stride) < magnitude(*rows[b].stride);
  });
  std::int64_t covered = 1;
  for (const std::size_t k : by_stride) {
    rows[k].note = stride_note(*rows[k].stride, rows[k].extent, covered);
    covered += magnitude(*rows[k].stride) * (rows[k].extent - 1);
  }
  for (std::size_t k = rows.size(); k-- > 0;) {
    if (rows[k].extent <= 1) continue;
    rows[k].innermost = true;
    break;
  }
  return rows;
}

/// The symbols in an expression, also those inside of divisions.
void symbols_of(const index::Context& context, index::Expression expression,
                std::set<index::SymbolId>& found) {
  for (const auto& [term, coefficient] : context.sum(expression).terms) {
    if (term.kind == index::TermKind::symbol) {
      found.insert(term.symbol);
    } else if (term.kind != index::TermKind::axis) {
      symbols_of(context, term.operand, found);
    }
  }
}

/// Why an access by loaded values cannot be walked: `which elements depends on the values of b3 idx`.
std::string indirect_text(const session::Compilation& compilation, const Snapshot& snapshot,
                          const KernelAccess& access) {
  const loop::Program& program = *snapshot.program;
  std::set<index::SymbolId> symbols;
  symbols_of(*program.context, access.index, symbols);
  std::set<std::string> values;
  if (program.nests.contains(access.nest)) {
    const loop::Nest& nest = program.nests[access.nest];
    for (const loop::SymbolUse& use : nest.symbols) {
      if (!symbols.contains(use.symbol) || use.statement < 0) continue;
      const loop::Statement& s = nest.body[static_cast<std::size_t>(use.statement)];
      if (s.kind == loop::StatementKind::load) {
        values.insert(buffer_text(program, s.buffer));
      } else if (compilation.graph().nodes.contains(s.origin)) {
        values.insert(compilation.graph().nodes[s.origin].name);
      }
    }
  }
  if (values.empty()) {
    for (const index::SymbolId symbol : symbols) values.insert(program.context->symbol(symbol).name);
  }
  return "depends on the values of " + report::join({values.begin(), values.end()}, ", ");
}

/// The number after `in_ptr`; -1 for another name.
int input_number(std::string_view parameter) {
  constexpr std::string_view prefix = "in_ptr";
  if (!parameter.starts_with(prefix) || parameter.size() == prefix.size()) return -1;
  int number = 0;
  for (const char c : parameter.substr(prefix.size())) {
    if (c < '0' || c > '9' || number > 100000) return -1;
    number = number * 10 + (c - '0');
  }
  return number;
}

/// Where `main` asserts the layout of the tensor behind a load. `main` takes one tensor a buffer, in the order in which
/// the kernel's parameters first name them; a kernel may have several parameters (of different shapes) of one buffer.
void find_assertion(const Snapshot& snapshot, const KernelAccess& access, AccessDetail& detail) {
  if (access.on_value) {
    detail.assertion = "the value never leaves the kernel";
    return;
  }
  if (access.store) {
    detail.assertion = "main makes this tensor itself";
    return;
  }
  detail.assertion = "none found";
  const codegen::Module& module = snapshot.module;
  if (!access.kernel.valid() || access.kernel.index() >= module.kernels.size()) return;
  std::map<int, loop::BufferId> parameters;
  for (const KernelAccess& other : module.accesses) {
    if (other.kernel != access.kernel || other.on_value || other.store) continue;
    if (const int number = input_number(other.parameter); number >= 0) parameters[number] = other.buffer;
  }
  if (parameters.empty() || parameters.rbegin()->first + 1 != static_cast<int>(parameters.size())) return;
  std::vector<loop::BufferId> tensors;
  for (const auto& [number, buffer] : parameters) {
    if (std::find(tensors.begin(), tensors.end(), buffer) == tensors.end()) tensors.push_back(buffer);
  }
  const auto tensor = std::find(tensors.begin(), tensors.end(), access.buffer);
  if (tensor == tensors.end()) return;
  const codegen::KernelSource& kernel = module.kernels[access.kernel.index()];
  const std::string wanted = fmt::format("_expect(\"in_ptr{} of {}\"", tensor - tensors.begin(), kernel.name);
  const std::string text = module.text(kernel.kernel_last + 1, kernel.last_line);
  const std::size_t at = text.find(wanted);
  if (at == std::string::npos) return;
  detail.assertion_line =
      kernel.kernel_last + 1 +
      static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  detail.assertion = text.substr(at, text.find('\n', at) - at);
  // `_expect("in_ptr0 of NAME", in_ptr0, WHAT)`; names hold no comma.
  const std::size_t comma = detail.assertion.find(", ", wanted.size());
  const std::size_t what = comma == std::string::npos ? comma : detail.assertion.find(", ", comma + 2);
  detail.assertion_short = fmt::format(
      "{}: {}", detail.assertion_line,
      what == std::string::npos ? detail.assertion
                                : detail.assertion.substr(what + 2, detail.assertion.size() - what - 3));
}

/// What is said of any access, of a kernel or of a library call.
AccessDetail common_detail(const loop::Program& program, loop::BufferId id, index::Expression expression,
                           const std::vector<index::AxisId>& axes, const index::Access& access,
                           const std::vector<index::AxisId>& reduced) {
  const index::Context& context = *program.context;
  const loop::Buffer& buffer = program.buffers[id];
  AccessDetail detail;
  detail.words =
      access.words.empty() ? std::string(index::access_class_name(access.access_class)) : access.words;
  detail.expression = context.to_string(expression);
  detail.ranges = report::axes_text(context, axes);
  detail.axes = axis_rows(context, axes, access, reduced);
  detail.offset = access.offset;
  detail.affine = access.affine;
  detail.plan = report::plan_text(access);
  const bool touches = access.distinct_elements > 0;
  detail.bounds =
      touches ? fmt::format("{} .. {} of {} elements", report::count_text(access.bounds.low),
                            report::count_text(access.bounds.high), report::count_text(buffer.numel()))
              : "touches nothing";
  detail.in_bounds = access.in_bounds;
  detail.injective = access.injective;
  std::int64_t steps = 1;
  for (const index::AxisId axis : axes) steps *= context.axis(axis).extent;
  detail.distinct = fmt::format("{}{} in {} steps", access.distinct_exact ? "" : "at most ",
                                report::count_text(access.distinct_elements), report::count_text(steps));
  const std::int64_t element = dtype_bytes(buffer.dtype);
  detail.bytes_used = access.distinct_elements * element;
  detail.bytes_spanned = touches ? (access.bounds.high - access.bounds.low + 1) * element : 0;
  detail.bytes =
      detail.bytes_used == detail.bytes_spanned
          ? fmt::format("all of {} used", report::bytes_text(detail.bytes_used))
          : fmt::format("{}{} of {} used ({:.2g} %)", access.distinct_exact ? "" : "at most ",
                        report::bytes_text(detail.bytes_used), report::bytes_text(detail.bytes_spanned),
                        100.0 * static_cast<double>(detail.bytes_used) /
                            static_cast<double>(std::max<std::int64_t>(1, detail.bytes_spanned)));
  std::optional<std::vector<std::int64_t>> strides;
  if (access.affine) strides = access.axis_strides;
  detail.grid = tensor_grid(context, expression, axes, buffer.dims, strides, access.offset);
  return detail;
}

std::shared_ptr<const AccessDetail> kernel_detail(const session::Compilation& compilation,
                                                  const Snapshot& snapshot, const KernelAccess& item) {
  const loop::Program& program = *snapshot.program;
  std::vector<index::AxisId> reduced;
  trace::NodeId node;
  if (program.nests.contains(item.nest)) {
    const loop::Nest& nest = program.nests[item.nest];
    const bool stated = item.statement >= 0 && static_cast<std::size_t>(item.statement) < nest.body.size();
    node = stated ? nest.body[static_cast<std::size_t>(item.statement)].origin : nest.origin;
    for (std::size_t k = 0; k < nest.axes.size() && k < nest.reduced.size(); ++k) {
      if (nest.reduced[k]) reduced.push_back(nest.axes[k]);
    }
  }
  AccessDetail detail = common_detail(program, item.buffer, item.index, item.axes, item.access, reduced);
  const loop::Buffer& buffer = program.buffers[item.buffer];
  detail.head = fmt::format("{} {} {}", item.store ? "store to" : "load of",
                            buffer_text(program, item.buffer), report::shape_text(buffer.dtype, buffer.dims));
  detail.source = item.source;
  detail.line = item.line;
  if (compilation.graph().nodes.contains(node)) {
    const trace::Node& from = compilation.graph().nodes[node];
    const std::string place = report::place_text(from);
    detail.from =
        fmt::format("{} {}{}{}", report::id_text(node), from.name, place.empty() ? "" : "  ", place);
  }
  find_assertion(snapshot, item, detail);
  if (program.context->has_symbol(item.index))
    detail.grid.unknown = indirect_text(compilation, snapshot, item);
  return std::make_shared<const AccessDetail>(std::move(detail));
}

AccessRow kernel_row(const Snapshot& snapshot, std::size_t position) {
  const KernelAccess& item = snapshot.module.accesses[position];
  AccessRow row;
  row.access = static_cast<int>(position);
  row.letter = index::access_class_letter(item.access.access_class);
  row.store = item.store;
  row.on_value = item.on_value;
  row.buffer = buffer_text(*snapshot.program, item.buffer);
  row.place = item.parameter;
  row.kernel = report::id_text(item.kernel);
  return row;
}

AccessRow operand_row(const Snapshot& snapshot, const loop::LibraryCall& call, const loop::View& view,
                      std::string_view role) {
  const loop::Program& program = *snapshot.program;
  const loop::Buffer& buffer = program.buffers[view.buffer];
  const index::Access access = index::access(*program.context, view.index, view.axes, buffer.dims);
  AccessRow row;
  row.letter = index::access_class_letter(access.access_class);
  row.buffer = buffer_text(program, view.buffer);
  row.place = role;
  row.kernel = "library";
  AccessDetail detail = common_detail(program, view.buffer, view.index, view.axes, access, {});
  detail.head = fmt::format("{} of {}: {} {}", role, call.op, buffer_text(program, view.buffer),
                            report::shape_text(buffer.dtype, buffer.dims));
  detail.assertion = "the library call asserts the layout of its operands";
  row.detail = std::make_shared<const AccessDetail>(std::move(detail));
  return row;
}

/// The accesses that nodes make themselves, else those of the nests that they are part of (as
/// report::accesses_of_node does for one).
std::vector<std::size_t> accesses_of_nodes(const Snapshot& snapshot,
                                           const std::vector<trace::NodeId>& nodes) {
  if (nodes.size() == 1) return report::accesses_of_node(snapshot, nodes.front());
  const std::set<trace::NodeId> wanted(nodes.begin(), nodes.end());
  const loop::Program& program = *snapshot.program;
  std::vector<std::size_t> own, around;
  for (std::size_t k = 0; k < snapshot.module.accesses.size(); ++k) {
    const KernelAccess& access = snapshot.module.accesses[k];
    if (!program.nests.contains(access.nest)) continue;
    const loop::Nest& nest = program.nests[access.nest];
    const bool stated =
        access.statement >= 0 && static_cast<std::size_t>(access.statement) < nest.body.size();
    if (wanted.contains(nest.origin) ||
        (stated && wanted.contains(nest.body[static_cast<std::size_t>(access.statement)].origin)))
      own.push_back(k);
    if (std::any_of(nest.origins.begin(), nest.origins.end(),
                    [&](trace::NodeId id) { return wanted.contains(id); }))
      around.push_back(k);
  }
  return own.empty() ? around : own;
}

const loop::LibraryCall* library_call(const Snapshot& snapshot, trace::NodeId node) {
  const auto step = report::call_of(snapshot, node);
  return step ? std::get_if<loop::LibraryCall>(&snapshot.program->steps[*step].content) : nullptr;
}

std::string nothing_text(const session::Compilation& compilation, const Snapshot& snapshot,
                         const std::vector<trace::NodeId>& nodes) {
  if (nodes.size() != 1) return "Nothing here loads or stores in a kernel.";
  const std::string name = compilation.graph().nodes[nodes.front()].name;
  const std::string outcome = report::outcome_text(snapshot, nodes.front());
  if (outcome == "view")
    return fmt::format("{} is a view: it moves no memory. What reads through it shows its strides.", name);
  if (outcome == "torch")
    return fmt::format("PyTorch itself runs {} at this decision: no kernel of ours loads or stores for it.",
                       name);
  return fmt::format("No kernel loads or stores for {} at this decision.", name);
}

}  // namespace

IndexView index_view(const session::Compilation& compilation, const Snapshot& snapshot,
                     const Selection& selection) {
  IndexView view;
  if (is_empty(selection)) return view;
  const codegen::Module& module = snapshot.module;
  const loop::Program& program = *snapshot.program;
  const auto all = [&](auto wanted) {
    std::vector<std::size_t> positions;
    for (std::size_t k = 0; k < module.accesses.size(); ++k) {
      if (wanted(module.accesses[k])) positions.push_back(k);
    }
    return positions;
  };
  std::vector<std::size_t> positions;
  int wanted = -1;
  const std::vector<trace::NodeId> nodes = nodes_of(compilation, snapshot, selection);
  if (const auto* access = std::get_if<AccessRef>(&selection)) {
    if (access->access < 0 || static_cast<std::size_t>(access->access) >= module.accesses.size()) return view;
    wanted = access->access;
    const schedule::KernelId kernel = module.accesses[static_cast<std::size_t>(wanted)].kernel;
    positions = report::accesses_of_kernel(module, kernel);
    view.title = report::id_text(kernel);
  } else if (const auto* kernel = std::get_if<schedule::KernelId>(&selection)) {
    positions = report::accesses_of_kernel(module, *kernel);
    view.title = report::id_text(*kernel);
  } else if (const auto* buffer = std::get_if<loop::BufferId>(&selection)) {
    if (!program.buffers.contains(*buffer)) return view;
    positions = all([&](const KernelAccess& a) { return a.buffer == *buffer; });
    view.title = buffer_text(program, *buffer);
  } else if (const auto* statement = std::get_if<StatementRef>(&selection)) {
    positions = all([&](const KernelAccess& a) {
      return a.nest == statement->nest && (statement->statement < 0 || a.statement == statement->statement);
    });
    // A statement that computes has the loads and stores of its nest.
    if (positions.empty()) positions = all([&](const KernelAccess& a) { return a.nest == statement->nest; });
    if (program.nests.contains(statement->nest)) view.title = program.nests[statement->nest].name;
  } else {
    positions = accesses_of_nodes(snapshot, nodes);
    if (const auto* decision = std::get_if<schedule::DecisionId>(&selection))
      view.title = report::id_text(*decision);
    else if (const auto* group = std::get_if<GroupRef>(&selection))
      view.title = group->path;
    else if (!nodes.empty())
      view.title =
          fmt::format("{} {}", report::id_text(nodes.front()), compilation.graph().nodes[nodes.front()].name);
  }
  for (const std::size_t position : positions) {
    if (static_cast<int>(position) == wanted) view.chosen = static_cast<int>(view.rows.size());
    view.rows.push_back(kernel_row(snapshot, position));
  }
  for (const trace::NodeId node : nodes) {
    if (std::holds_alternative<schedule::KernelId>(selection) || wanted >= 0) break;
    const loop::LibraryCall* call = library_call(snapshot, node);
    if (call == nullptr || view.rows.size() > 200) continue;
    const auto* buffer = std::get_if<loop::BufferId>(&selection);
    const std::vector<std::string_view> roles = loop::operand_names(call->function);
    for (std::size_t k = 0; k < roles.size(); ++k) {
      const loop::View& operand = call->operands[k];
      if (buffer == nullptr || operand.buffer == *buffer)
        view.rows.push_back(operand_row(snapshot, *call, operand, roles[k]));
    }
  }
  if (view.rows.empty()) {
    view.nothing = nothing_text(compilation, snapshot, nodes);
    return view;
  }
  if (view.chosen < 0) view.chosen = 0;
  AccessRow& row = view.rows[static_cast<std::size_t>(view.chosen)];
  if (row.access >= 0)
    row.detail = kernel_detail(compilation, snapshot, module.accesses[static_cast<std::size_t>(row.access)]);
  return view;
}

}  // namespace pallascope::model
