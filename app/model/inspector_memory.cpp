#include <algorithm>

#include <fmt/format.h>

#include "app/model/inspector_maker.h"
#include "core/report/accesses.h"
#include "core/report/decision.h"
#include "core/report/format.h"
#include "core/report/lookup.h"
#include "core/schedule/tiles.h"
#include "core/target/target.h"

// The half of the Inspector that is about kernels, buffers, loops and accesses.
namespace pallascope::model::inspecting {

InspectorRow Maker::uses_row(std::string label, const std::vector<report::BufferUse>& uses,
                             std::string_view none) const {
  InspectorRow made = row(std::move(label), "");
  made.pieces.clear();
  for (const report::BufferUse& use : uses) {
    if (!made.pieces.empty()) made.pieces.push_back({", ", {}, Tone::dim});
    Selection selection;
    if (use.kernel.valid()) selection = use.kernel;
    if (use.call.valid()) selection = use.call;
    made.pieces.push_back({report::use_text(compilation_, use), selection, Tone::normal});
  }
  if (made.pieces.empty()) made.pieces.push_back({std::string(none), {}, Tone::dim});
  return made;
}

InspectorRow Maker::nest_row(loop::NestId id) const {
  const loop::Nest& nest = program_.nests[id];
  std::vector<std::string> kept, reduced;
  for (std::size_t k = 0; k < nest.axes.size(); ++k) {
    const std::string extent = fmt::format("{}", program_.context->axis(nest.axes[k]).extent);
    (k < nest.reduced.size() && nest.reduced[k] ? reduced : kept).push_back(extent);
  }
  const std::string extents = kept.empty() ? "1" : report::join(kept, "×");
  return {nest.name,
          {{reduced.empty() ? extents : extents + " over " + report::join(reduced, "×"), {}, Tone::code}},
          "",
          StatementRef{id, -1},
          ' ',
          report::axes_text(*program_.context, nest.axes)};
}

void Maker::add_index(InspectorSection& section, loop::NestId nest, int statement) const {
  const loop::Statement& s = program_.nests[nest].body[static_cast<std::size_t>(statement)];
  if (s.kind != loop::StatementKind::load && s.kind != loop::StatementKind::store) return;
  const index::Access& access = loop::access_of(program_, nest, statement);
  InspectorRow made =
      row("access",
          access.words.empty() ? std::string(index::access_class_name(access.access_class)) : access.words);
  made.letter = index::access_class_letter(access.access_class);
  section.rows.push_back(std::move(made));
  const loop::Buffer& buffer = program_.buffers[s.buffer];
  section.rows.push_back({"buffer",
                          {{report::id_text(s.buffer) + " " + buffer.name, s.buffer, Tone::normal},
                           {"  " + report::shape_text(buffer.dtype, buffer.dims), {}, Tone::dim}},
                          "",
                          {},
                          ' ',
                          ""});
  section.rows.push_back(row("index", program_.context->to_string(s.index), Tone::code));
  section.rows.push_back(
      row("axes", report::axes_text(*program_.context, program_.nests[nest].axes), Tone::code));
  if (access.distinct_elements == 0) {
    section.rows.push_back(row("range", "touches nothing", Tone::dim));
  } else {
    section.rows.push_back(row(
        "range", fmt::format("{} .. {} of {}", report::count_text(access.bounds.low),
                             report::count_text(access.bounds.high), report::count_text(buffer.numel()))));
    section.rows.push_back(access.in_bounds ? row("bounds", "✓ proved", Tone::good)
                                            : row("bounds", "not proved: checked when it runs", Tone::bad));
  }
  section.rows.push_back(row("plan", report::plan_text(access), Tone::code));
}

InspectorRow Maker::access_row(std::size_t position) const {
  const codegen::KernelAccess& access = snapshot_.module.accesses[position];
  const loop::Buffer& buffer = program_.buffers[access.buffer];
  return {fmt::format("{} {}", access.store ? "store" : "load", position),
          {{access.parameter + "  ", {}, Tone::dim}, {buffer.name, {}, Tone::normal}},
          std::string(index::access_class_name(access.access.access_class)),
          AccessRef{static_cast<int>(position)},
          index::access_class_letter(access.access.access_class),
          fmt::format("{}\n{}", access.source, access.access.words)};
}

Inspector Maker::of(schedule::KernelId id) const {
  const schedule::Kernel& kernel = snapshot_.state.kernels[id];
  Inspector made{"kernel", report::id_text(id), report::kernel_name(snapshot_, id), "", {}, {}};
  const std::vector<trace::NodeId> members = report::nodes_of(snapshot_, id);
  made.subtitle = fmt::format("{} of {}", whole_number(kernel.nests.size(), "loop nest"),
                              whole_number(members.size(), "node"));
  InspectorSection cost{"Memory", {}, false, false};
  InspectorRow working = row("working set", report::bytes_text(kernel.working_set));
  working.hint = "Bytes on chip with whole arrays";
  cost.rows.push_back(std::move(working));
  InspectorRow moved = row("moved", report::bytes_text(kernel.bytes_moved) + " a call");
  moved.hint = "Distinct bytes of its inputs and outputs";
  cost.rows.push_back(std::move(moved));
  std::vector<std::string> axes;
  for (const auto& group : schedule::grid_axes(program_, kernel.nests, target::default_model())) {
    if (!group.empty()) {
      const index::Axis& axis = program_.context->axis(group[0]);
      axes.push_back(fmt::format("{} ({})", axis.name, report::count_text(axis.extent)));
    }
  }
  InspectorRow tiles = axes.empty() ? row("tile axes", "none: the arrays stay whole", Tone::dim)
                                    : row("tile axes", report::join(axes, ", "));
  tiles.hint = "Axes that a grid could run over: all loops share them, unreduced and aligned";
  cost.rows.push_back(std::move(tiles));
  cost.rows.push_back(row("grid", "(1,)", Tone::code));
  cost.rows.back().hint = "The generated call runs one step with whole arrays";
  if (!kernel.internal.empty()) {
    std::int64_t bytes = 0;
    for (const loop::BufferId buffer : kernel.internal) bytes += program_.buffers[buffer].bytes();
    cost.rows.push_back(row(
        "kept inside",
        fmt::format("{}, {}", whole_number(kernel.internal.size(), "buffer"), report::bytes_text(bytes))));
    cost.rows.back().hint = "Values that never reach memory";
  }
  add(made.sections, std::move(cost));

  InspectorSection loops{"Loops", {}, true, false};
  for (const loop::NestId nest : kernel.nests) loops.rows.push_back(nest_row(nest));
  const auto buffers = [&](std::string_view title, const std::vector<loop::BufferId>& ids, bool folded) {
    InspectorSection section{std::string(title), {}, true, folded};
    for (const loop::BufferId buffer : ids) section.rows.push_back(buffer_row(buffer));
    add(made.sections, std::move(section));
  };
  add(made.sections, nodes("Nodes", members));
  add(made.sections, std::move(loops));
  buffers("Reads", kernel.inputs, false);
  buffers("Writes", kernel.outputs, false);
  buffers("Kept inside", kernel.internal, true);
  InspectorSection accesses{"Accesses", {}, true, false};
  for (const std::size_t position : report::accesses_of_kernel(snapshot_.module, id)) {
    if (!snapshot_.module.accesses[position].on_value) accesses.rows.push_back(access_row(position));
  }
  add(made.sections, std::move(accesses));
  add(made.sections, decisions(decisions_with(members), true));
  return made;
}

Inspector Maker::of(loop::BufferId id) const {
  const loop::Buffer& buffer = program_.buffers[id];
  const bool input = buffer.kind == loop::BufferKind::input;
  Inspector made{
      "buffer", report::id_text(id), buffer.name, report::shape_text(buffer.dtype, buffer.dims), {}, {}};
  InspectorSection storage{"Storage", {}, false, false};
  storage.rows.push_back(row("kind", input ? "input" : "intermediate"));
  storage.rows.push_back(row("size", report::bytes_text(buffer.bytes())));
  if (graph_.values.contains(buffer.origin)) {
    const trace::Value& value = graph_.values[buffer.origin];
    storage.rows.push_back(
        {"holds",
         {{value.name, value.producer.valid() ? Selection(value.producer) : Selection(), Tone::normal},
          {value.tensor ? "  " + trace::to_string(*value.tensor) : "", {}, Tone::dim}},
         "",
         {},
         ' ',
         ""});
  }
  if (!input)
    storage.rows.push_back(
        uses_row("written by", report::buffer_writers(snapshot_, id), "nothing at this decision"));
  storage.rows.push_back(uses_row("read by", report::buffer_readers(snapshot_, id), "nothing"));
  for (const schedule::KernelId kernel : report::kernels_in_order(snapshot_)) {
    const auto& internal = snapshot_.state.kernels[kernel].internal;
    if (std::find(internal.begin(), internal.end(), id) != internal.end())
      storage.rows.push_back(
          {"memory",
           {{"never reaches it: stays in ", {}, Tone::good}, {report::id_text(kernel), kernel, Tone::normal}},
           "",
           {},
           ' ',
           ""});
  }
  add(made.sections, std::move(storage));
  if (buffer.input_index >= 0 &&
      static_cast<std::size_t>(buffer.input_index) < program_.input_layouts.size()) {
    const loop::BoundaryLayout& layout = program_.input_layouts[static_cast<std::size_t>(buffer.input_index)];
    InspectorSection boundary{"At the call", {}, false, false};
    if (static_cast<std::size_t>(buffer.input_index) < graph_.inputs.size())
      boundary.rows.push_back(
          row("argument", graph_.inputs[static_cast<std::size_t>(buffer.input_index)].target));
    boundary.rows.push_back(row("sizes", fmt::format("[{}]", fmt::join(layout.sizes, ",")), Tone::code));
    boundary.rows.push_back(row("strides", fmt::format("[{}]", fmt::join(layout.strides, ",")), Tone::code));
    boundary.rows.push_back(layout.copied ? row("taken", "copied: its elements do not lie densely", Tone::bad)
                                          : row("taken", "as it is, without a copy", Tone::good));
    add(made.sections, std::move(boundary));
  }
  InspectorSection accesses{"Accesses", {}, true, false};
  for (std::size_t k = 0; k < snapshot_.module.accesses.size(); ++k) {
    if (snapshot_.module.accesses[k].buffer != id) continue;
    InspectorRow line = access_row(k);
    line.pieces = {{program_.nests.contains(snapshot_.module.accesses[k].nest)
                        ? program_.nests[snapshot_.module.accesses[k].nest].name
                        : "?",
                    {},
                    Tone::normal}};
    accesses.rows.push_back(std::move(line));
  }
  add(made.sections, std::move(accesses));
  add(made.sections, nodes("Nodes", nodes_of(compilation_, snapshot_, id)));
  return made;
}

Inspector Maker::of(const StatementRef& ref) const {
  const loop::Nest& nest = program_.nests[ref.nest];
  const bool whole = ref.statement < 0 || static_cast<std::size_t>(ref.statement) >= nest.body.size();
  const std::vector<std::string> lines = loop::statement_lines(program_, nest);
  Inspector made{whole ? "loop nest" : "statement",
                 "",
                 nest.name,
                 report::axes_text(*program_.context, nest.axes),
                 {},
                 {}};
  InspectorSection what{whole ? "Loops" : "Statement", {}, false, false};
  const trace::NodeId origin =
      whole ? nest.origin : nest.body[static_cast<std::size_t>(ref.statement)].origin;
  if (!whole) {
    std::string line = lines.at(static_cast<std::size_t>(ref.statement));
    line.erase(0, line.find_first_not_of(' '));
    made.title = line;
    what.rows.push_back(link_row("in", nest.name, StatementRef{ref.nest, -1}));
    add_index(what, ref.nest, ref.statement);
    what.rows.push_back(row("dtype",
                            std::string(dtype_name(nest.body[static_cast<std::size_t>(ref.statement)].dtype)),
                            Tone::code));
  } else {
    std::vector<std::string> reduced;
    for (std::size_t k = 0; k < nest.axes.size() && k < nest.reduced.size(); ++k) {
      if (nest.reduced[k]) reduced.push_back(program_.context->axis(nest.axes[k]).name);
    }
    what.rows.push_back(row("axes", report::axes_text(*program_.context, nest.axes), Tone::code));
    what.rows.push_back(reduced.empty() ? row("reduces", "nothing", Tone::dim)
                                        : row("reduces", report::join(reduced, ", "), Tone::code));
    const loop::BufferId output = nest.output();
    if (program_.buffers.contains(output))
      what.rows.push_back(
          link_row("writes", report::id_text(output) + " " + program_.buffers[output].name, output));
  }
  if (graph_.nodes.contains(origin)) {
    what.rows.push_back(link_row("node", report::id_text(origin) + " " + graph_.nodes[origin].name, origin));
    if (const std::string place = report::place_text(graph_.nodes[origin]); !place.empty())
      what.rows.push_back(row("line", place));
  }
  for (const schedule::KernelId kernel : report::kernels_in_order(snapshot_)) {
    const auto& nests = snapshot_.state.kernels[kernel].nests;
    if (std::find(nests.begin(), nests.end(), ref.nest) != nests.end())
      what.rows.push_back(
          link_row("kernel", report::id_text(kernel) + " " + report::kernel_name(snapshot_, kernel), kernel));
  }
  add(made.sections, std::move(what));
  if (whole) {
    InspectorSection body{"Statements", {}, true, false};
    for (std::size_t k = 0; k < lines.size(); ++k) {
      std::string line = lines[k];
      line.erase(0, line.find_first_not_of(' '));
      body.rows.push_back({fmt::format("{}", k),
                           {{line, {}, Tone::code}},
                           "",
                           StatementRef{ref.nest, static_cast<int>(k)},
                           ' ',
                           line});
    }
    add(made.sections, std::move(body));
    add(made.sections, nodes("Nodes", nodes_of(compilation_, snapshot_, ref)));
  }
  return made;
}

Inspector Maker::of(const AccessRef& ref) const {
  const codegen::KernelAccess& access = snapshot_.module.accesses[static_cast<std::size_t>(ref.access)];
  Inspector made{"access", "", access.source, access.store ? "store" : "load", {}, {}};
  InspectorSection what{access.store ? "Store" : "Load", {}, false, false};
  const index::Access& found = access.access;
  InspectorRow words =
      row("access",
          found.words.empty() ? std::string(index::access_class_name(found.access_class)) : found.words);
  words.letter = index::access_class_letter(found.access_class);
  what.rows.push_back(std::move(words));
  const loop::Buffer& buffer = program_.buffers[access.buffer];
  what.rows.push_back({"buffer",
                       {{report::id_text(access.buffer) + " " + buffer.name, access.buffer, Tone::normal},
                        {"  " + report::shape_text(buffer.dtype, buffer.dims), {}, Tone::dim}},
                       "",
                       {},
                       ' ',
                       ""});
  if (access.on_value)
    what.rows.push_back(row("memory", "none: a value made in the same kernel", Tone::good));
  what.rows.push_back(row("index", program_.context->to_string(access.index), Tone::code));
  what.rows.push_back(row("axes", report::axes_text(*program_.context, access.axes), Tone::code));
  if (found.affine) {
    std::vector<std::string> strides;
    for (std::size_t k = 0; k < access.axes.size() && k < found.axis_strides.size(); ++k)
      strides.push_back(
          fmt::format("{}: {}", program_.context->axis(access.axes[k]).name, found.axis_strides[k]));
    if (!strides.empty()) what.rows.push_back(row("strides", report::join(strides, ", "), Tone::code));
  }
  if (found.distinct_elements == 0) {
    what.rows.push_back(row("range", "touches nothing", Tone::dim));
  } else {
    what.rows.push_back(
        row("range", fmt::format("{} .. {} of {}", report::count_text(found.bounds.low),
                                 report::count_text(found.bounds.high), report::count_text(buffer.numel()))));
    what.rows.push_back(found.in_bounds ? row("bounds", "✓ proved", Tone::good)
                                        : row("bounds", "not proved: checked when it runs", Tone::bad));
  }
  what.rows.push_back(row("plan", report::plan_text(found), Tone::code));
  const std::int64_t touched = report::bytes_touched(program_, access),
                     spanned = report::bytes_spanned(program_, access);
  what.rows.push_back(
      row("bytes", fmt::format("{}{}{}", found.distinct_exact ? "" : "at most ", report::bytes_text(touched),
                               spanned > touched ? " within " + report::bytes_text(spanned) : "")));
  add(made.sections, std::move(what));
  InspectorSection where{"Origin", {}, false, false};
  if (program_.nests.contains(access.nest)) {
    const loop::Nest& nest = program_.nests[access.nest];
    where.rows.push_back(link_row("loops", nest.name, StatementRef{access.nest, -1}));
    where.rows.push_back(link_row("statement", fmt::format("{} of {}", access.statement, nest.name),
                                  StatementRef{access.nest, access.statement}));
    const bool within =
        access.statement >= 0 && static_cast<std::size_t>(access.statement) < nest.body.size();
    const trace::NodeId origin =
        within ? nest.body[static_cast<std::size_t>(access.statement)].origin : nest.origin;
    if (graph_.nodes.contains(origin))
      where.rows.push_back(
          link_row("node", report::id_text(origin) + " " + graph_.nodes[origin].name, origin));
  }
  if (snapshot_.state.kernels.contains(access.kernel))
    where.rows.push_back(link_row(
        "kernel", report::id_text(access.kernel) + " " + report::kernel_name(snapshot_, access.kernel),
        access.kernel));
  if (access.line > 0) where.rows.push_back(row("line", fmt::format("{} of the Pallas module", access.line)));
  add(made.sections, std::move(where));
  return made;
}

}  // namespace pallascope::model::inspecting
