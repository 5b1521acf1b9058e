#include "core/report/accesses.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/report/format.h"

namespace pallascope::report {
namespace {

using codegen::KernelAccess;
using index::AccessClass;

trace::NodeId node_of(const session::Snapshot& snapshot, const KernelAccess& access) {
  const loop::Program& program = *snapshot.program;
  if (program.nests.contains(access.nest)) {
    const loop::Nest& nest = program.nests[access.nest];
    if (access.statement >= 0 && static_cast<std::size_t>(access.statement) < nest.body.size()) {
      return nest.body[static_cast<std::size_t>(access.statement)].origin;
    }
    return nest.origin;
  }
  return {};
}

std::string slice_text(const index::Slice& slice, std::int64_t extent) {
  if (slice.start == 0 && slice.step == 1 && slice.count == extent) return ":";
  if (slice.count == 1) return fmt::format("{}", slice.start);
  const std::int64_t stop = slice.start + slice.step * (slice.count - 1) + (slice.step > 0 ? 1 : -1);
  const std::string stop_text = stop < 0 ? "" : fmt::format("{}", stop);
  return slice.step == 1 ? fmt::format("{}:{}", slice.start, stop_text)
                         : fmt::format("{}:{}:{}", slice.start, stop_text, slice.step);
}

std::string side_sizes(const index::Context& context, const loop::View& view) {
  std::vector<std::string> sizes;
  for (const index::AxisId axis : view.axes) sizes.push_back(fmt::format("{}", context.axis(axis).extent));
  return "[" + join(sizes, ",") + "]";
}

}  // namespace

std::int64_t bytes_touched(const loop::Program& program, const KernelAccess& access) {
  return access.access.distinct_elements * dtype_bytes(program.buffers[access.buffer].dtype);
}

std::int64_t bytes_spanned(const loop::Program& program, const KernelAccess& access) {
  if (access.access.distinct_elements == 0) return 0;
  return (access.access.bounds.high - access.access.bounds.low + 1) *
         dtype_bytes(program.buffers[access.buffer].dtype);
}

std::vector<std::size_t> accesses_of_kernel(const codegen::Module& module, schedule::KernelId kernel) {
  std::vector<std::size_t> positions;
  for (std::size_t k = 0; k < module.accesses.size(); ++k) {
    if (module.accesses[k].kernel == kernel) positions.push_back(k);
  }
  return positions;
}

std::vector<std::size_t> accesses_of_node(const session::Snapshot& snapshot, trace::NodeId node) {
  const codegen::Module& module = snapshot.module;
  std::vector<std::size_t> own, around;
  for (std::size_t k = 0; k < module.accesses.size(); ++k) {
    const KernelAccess& access = module.accesses[k];
    if (!snapshot.program->nests.contains(access.nest)) continue;
    const loop::Nest& nest = snapshot.program->nests[access.nest];
    if (node_of(snapshot, access) == node || nest.origin == node) own.push_back(k);
    if (std::find(nest.origins.begin(), nest.origins.end(), node) != nest.origins.end()) around.push_back(k);
  }
  return own.empty() ? around : own;
}

std::vector<std::size_t> wasteful_accesses(const session::Snapshot& snapshot) {
  const auto is_wasteful = [](const codegen::AccessText& a) {
    const AccessClass c = a.access->access_class;
    // A value is on chip already: walking it costs no memory traffic.
    return !a.on_value && (c == AccessClass::strided || c == AccessClass::gather || c == AccessClass::general ||
                           c == AccessClass::overlapping);
  };
  const codegen::AccessList& accesses = snapshot.module.accesses;
  std::vector<std::pair<std::int64_t, std::size_t>> found;  // with minus the bytes
  for (const codegen::AccessList::Run& run : accesses.runs()) {
    for (std::size_t k = 0; k < run.piece->accesses.size(); ++k) {
      if (!is_wasteful(run.piece->accesses[k])) continue;
      found.emplace_back(-bytes_spanned(*snapshot.program, accesses[run.first + k]), run.first + k);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::size_t> positions;
  for (const auto& [bytes, position] : found) positions.push_back(position);
  return positions;
}

std::string plan_text(const index::Access& access) {
  if (!access.plan) return "computed indices";
  const index::Plan& plan = *access.plan;
  if (plan.slices_nothing() && plan.permutes_nothing()) {
    return plan.view_shape == plan.result_shape
               ? "as it is"
               : fmt::format("shape [{}]", fmt::join(plan.result_shape, ","));
  }
  std::vector<std::string> steps = {fmt::format("view [{}]", fmt::join(plan.view_shape, ","))};
  std::vector<std::int64_t> sliced;
  if (!plan.slices_nothing()) {
    std::vector<std::string> slices;
    for (std::size_t k = 0; k < plan.slices.size(); ++k)
      slices.push_back(slice_text(plan.slices[k], plan.view_shape[k]));
    steps.push_back("[" + join(slices, ", ") + "]");
  }
  for (const index::Slice& slice : plan.slices) sliced.push_back(slice.count);
  if (!plan.permutes_nothing()) {
    steps.push_back(fmt::format("transpose ({})", fmt::join(plan.permutation, ",")));
    std::vector<std::int64_t> permuted;
    for (const int from : plan.permutation) permuted.push_back(sliced.at(static_cast<std::size_t>(from)));
    sliced = permuted;
  }
  if (sliced != plan.result_shape)
    steps.push_back(fmt::format("shape [{}]", fmt::join(plan.result_shape, ",")));
  return join(steps, " → ");
}

std::string accesses_text(const session::Compilation& compilation, const session::Snapshot& snapshot,
                          const std::vector<std::size_t>& positions) {
  const loop::Program& program = *snapshot.program;
  const index::Context& context = *program.context;
  std::string text;
  for (const std::size_t position : positions) {
    const KernelAccess& item = snapshot.module.accesses[position];
    const index::Access& access = item.access;
    const loop::Buffer& buffer = program.buffers[item.buffer];
    text += fmt::format(
        "{}  {} {} {} {}   {} {}\n", id_text(item.kernel), item.store ? "store" : "load",
        id_text(item.buffer), buffer.name, shape_text(buffer.dtype, buffer.dims),
        index::access_class_letter(access.access_class),
        access.words.empty() ? std::string(index::access_class_name(access.access_class)) : access.words);
    // One cell after each name: columns of their own would be pushed apart by the longest expression.
    Table rows("    ");
    const auto add = [&rows](const char* name, const std::string& first, const std::string& second) {
      rows.add({name, second.empty() ? first : first + "   " + second});
    };
    add("source", item.source,
        item.line > 0   ? fmt::format("line {}", item.line)
        : item.on_value ? "made in this kernel"
                        : "");
    const trace::NodeId node = node_of(snapshot, item);
    if (compilation.graph().nodes.contains(node)) {
      const trace::Node& from = compilation.graph().nodes[node];
      add("from", fmt::format("{} {}", id_text(node), from.name), place_text(from));
    }
    add("index", context.to_string(item.index), axes_text(context, item.axes));
    add("range",
        access.distinct_elements == 0
            ? "touches nothing"
            : fmt::format("{} .. {} of {} elements", access.bounds.low, access.bounds.high, buffer.numel()),
        access.in_bounds ? "in bounds ✓" : "not proved in bounds: checked when it runs");
    if (access.affine) {
      std::vector<std::string> strides;
      for (std::size_t k = 0; k < item.axes.size() && k < access.axis_strides.size(); ++k) {
        strides.push_back(fmt::format("{}: {}", context.axis(item.axes[k]).name, access.axis_strides[k]));
      }
      if (!strides.empty()) {
        add("strides", join(strides, ", "),
            access.offset != 0 ? fmt::format("offset {}", access.offset) : "");
      }
    }
    add("plan", plan_text(access), "");
    add("bytes",
        fmt::format("{}{} touched", access.distinct_exact ? "" : "at most ",
                    bytes_text(bytes_touched(program, item))),
        bytes_spanned(program, item) > bytes_touched(program, item)
            ? fmt::format("within a span of {}", bytes_text(bytes_spanned(program, item)))
            : "");
    if (item.store)
      add("stores", access.injective ? "each element once ✓" : "an element may be written twice", "");
    text += rows.text();
  }
  return text;
}

Json accesses_json(const session::Compilation& compilation, const session::Snapshot& snapshot,
                   const std::vector<std::size_t>& positions) {
  const loop::Program& program = *snapshot.program;
  const index::Context& context = *program.context;
  Json list = Json::array();
  for (const std::size_t position : positions) {
    const KernelAccess& item = snapshot.module.accesses[position];
    const index::Access& access = item.access;
    const trace::NodeId node = node_of(snapshot, item);
    Json plan = nullptr;
    if (access.plan) {
      Json slices = Json::array();
      for (const index::Slice& slice : access.plan->slices)
        slices.push_back({{"start", slice.start}, {"step", slice.step}, {"count", slice.count}});
      plan = {{"view_shape", access.plan->view_shape},
              {"slices", slices},
              {"permutation", access.plan->permutation},
              {"result_shape", access.plan->result_shape},
              {"words", plan_text(access)}};
    }
    list.push_back(
        {{"kernel", id_text(item.kernel)},
         {"nest", program.nests.contains(item.nest) ? Json(program.nests[item.nest].name) : Json(nullptr)},
         {"node",
          compilation.graph().nodes.contains(node) ? node_json(compilation.graph(), node) : Json(nullptr)},
         {"statement", item.statement},
         {"line", item.line},
         {"store", item.store},
         {"on_value", item.on_value},
         {"buffer", buffer_json(program, item.buffer)},
         {"parameter", item.parameter},
         {"source", item.source},
         {"expression", context.to_string(item.index)},
         {"range", range_json(context.range(item.index))},
         {"axes", axes_json(context, item.axes)},
         {"class", std::string(index::access_class_name(access.access_class))},
         {"letter", std::string(1, index::access_class_letter(access.access_class))},
         {"words", access.words},
         {"affine", access.affine},
         {"strides", access.affine ? Json(access.axis_strides) : Json(nullptr)},
         {"offset", access.offset},
         {"bounds", range_json(access.bounds)},
         {"in_bounds", access.in_bounds},
         {"injective", access.injective},
         {"distinct_elements", access.distinct_elements},
         {"distinct_exact", access.distinct_exact},
         {"bytes", bytes_touched(program, item)},
         {"bytes_spanned", bytes_spanned(program, item)},
         {"plan", plan}});
  }
  return list;
}

std::string library_call_text(const session::Compilation& compilation, const session::Snapshot& snapshot,
                              const loop::LibraryCall& call) {
  const loop::Program& program = *snapshot.program;
  const index::Context& context = *program.context;
  const trace::Node& node = compilation.graph().nodes[call.origin];
  std::string text = fmt::format("{} {}   library call {}, {}\n", id_text(call.origin), node.name, call.op,
                                 loop::library_name(call.function));
  Table rows("    ");
  const auto add = [&](const std::string& role, const loop::View& view) {
    const loop::Buffer& buffer = program.buffers[view.buffer];
    const auto affine = loop::affine(context, view);
    rows.add(
        {role,
         fmt::format("{} {} {}", id_text(view.buffer), buffer.name, shape_text(buffer.dtype, buffer.dims)),
         "as " + side_sizes(context, view), "index " + context.to_string(view.index),
         affine ? fmt::format("strides [{}]", fmt::join(affine->strides, ",")) : "computed indices"});
  };
  const std::vector<std::string_view> names = loop::operand_names(call.function);
  for (std::size_t k = 0; k < names.size(); ++k) add(std::string(names[k]), call.operands[k]);
  for (const loop::BufferId id : call.outputs) {
    const loop::Buffer& output = program.buffers[id];
    rows.add({"output",
              fmt::format("{} {} {}", id_text(id), output.name, shape_text(output.dtype, output.dims))});
  }
  return text + rows.text();
}

Json library_call_json(const session::Snapshot& snapshot, const loop::LibraryCall& call) {
  const loop::Program& program = *snapshot.program;
  const index::Context& context = *program.context;
  const auto side = [&](const loop::View& view) {
    const auto affine = loop::affine(context, view);
    return Json{{"buffer", buffer_json(program, view.buffer)},
                {"axes", axes_json(context, view.axes)},
                {"expression", context.to_string(view.index)},
                {"strides", affine ? Json(affine->strides) : Json(nullptr)},
                {"offset", affine ? Json(affine->offset) : Json(nullptr)}};
  };
  Json operands = Json::object(), outputs = Json::array();
  const std::vector<std::string_view> names = loop::operand_names(call.function);
  for (std::size_t k = 0; k < names.size(); ++k) operands[std::string(names[k])] = side(call.operands[k]);
  for (const loop::BufferId id : call.outputs) outputs.push_back(buffer_json(program, id));
  return {{"op", call.op},
          {"function", std::string(loop::library_name(call.function))},
          {"operands", operands},
          {"outputs", outputs}};
}

}  // namespace pallascope::report
