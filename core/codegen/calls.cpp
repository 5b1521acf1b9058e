// The calls between kernels: one JAX program a segment (steady), one executable a kernel (debug), torch calls, results.
#include <algorithm>
#include <optional>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/codegen/module_writer.h"

namespace pallascope::codegen {

std::vector<ModuleWriter::Step> ModuleWriter::steps() const {
  std::vector<Step> found;
  for (const schedule::ScheduledStep& s : state_.steps) {
    Step step;
    if (s.kernel.valid()) {
      const KernelEntry& entry = entries_[s.kernel.index()];
      step.reads = entry.inputs;
      step.writes = entry.outputs;
      step.name = entry.name;
      step.origin.kernel = s.kernel;
      for (const RuntimeCheck& c : entry.text.checks) step.checks.push_back(check_text(c));
    } else if (const auto* library = std::get_if<loop::LibraryCall>(&program_.steps[s.call].content)) {
      step.reads = {library->lhs.buffer, library->rhs.buffer};
      step.writes = {library->output};
      step.name = library_name(s.call);
      step.origin.node = library->origin;
    } else {
      step.torch = &std::get<loop::TorchCall>(program_.steps[s.call].content);
      for (const auto& [value, view] : step.torch->inputs) step.reads.push_back(view.buffer);
      for (loop::BufferId b : step.torch->outputs)
        if (b.valid()) step.writes.push_back(b);
      step.origin.node = step.torch->origin;
    }
    found.push_back(std::move(step));
  }
  return found;
}

std::string ModuleWriter::view_text(const loop::View& view, trace::ValueId whole) const {
  const loop::Buffer& b = buffer(view.buffer);
  const std::string name = tensor(view.buffer);
  // The input itself, or a torch call's result as it came.
  if (whole.valid() && b.origin == whole && (b.input_index >= 0 || kept_as_came_.contains(view.buffer)))
    return b.input_index >= 0 ? name : "r_" + b.name;
  const std::optional<loop::AffineView> affine = loop::affine(*program_.context, view);
  PALLASCOPE_CHECK(affine.has_value(), "a view of " + b.name + " that torch cannot take");
  Shape sizes;
  for (index::AxisId axis : view.axes) sizes.push_back(program_.context->axis(axis).extent);
  std::string base = name;
  if (b.input_index >= 0 && program_.input_layouts[static_cast<std::size_t>(b.input_index)].copied) {
    const Layout l = layout(view.buffer);
    base = fmt::format("_storage({}, {}, {})", name, tuple_text(l.dims), tuple_text(l.dim_strides));
  }
  return fmt::format("_view({}, {}, {}, {})", base, tuple_text(sizes), tuple_text(affine->strides), affine->offset);
}

void ModuleWriter::write_torch_call(const Step& step, const std::string& indent, const std::set<loop::BufferId>& needed) {
  const trace::Node& node = graph_.nodes[step.torch->origin];
  const auto value = [&](trace::ValueId id) {
    for (const auto& [known, view] : step.torch->inputs)
      if (known == id) return view_text(view, id);
    return std::string("None");
  };
  const std::string call = fmt::format("{}({})", operator_text(node.target), arguments_text(node, value));
  std::vector<std::string> results;
  for (loop::BufferId b : step.torch->outputs) results.push_back(b.valid() ? "r_" + buffer(b).name : "_");
  if (results.empty()) {
    text_.line(indent + call, step.origin);
  } else if (results.size() == 1 && !node.list_output) {
    text_.line(fmt::format("{}{} = {}", indent, results[0], call), step.origin);
  } else {
    text_.line(fmt::format("{}({},) = {}", indent, fmt::join(results, ", "), call), step.origin);
  }
  for (std::size_t k = 0; k < step.torch->outputs.size(); ++k) {
    const loop::BufferId b = step.torch->outputs[k];
    if (!b.valid() || !needed.contains(b)) continue;
    const loop::BoundaryLayout& l = *step.torch->layouts[k];
    text_.line(fmt::format("{}t_{} = _storage(_restride(r_{}, {}), {}, {})", indent, buffer(b).name, buffer(b).name,
                           tuple_text(l.strides), tuple_text(l.dims), tuple_text(l.dim_strides)),
               step.origin);
  }
}

bool ModuleWriter::takes_dense(const loop::View& view, trace::ValueId value) const {
  return !(value.valid() && buffer(view.buffer).origin == value);
}

std::set<loop::BufferId> ModuleWriter::dense_results(const std::vector<Step>& all) const {
  std::set<loop::BufferId> needed;
  for (const Step& step : all) {
    if (step.torch == nullptr) {
      needed.insert(step.reads.begin(), step.reads.end());
      continue;
    }
    for (const auto& [value, view] : step.torch->inputs)
      if (takes_dense(view, value)) needed.insert(view.buffer);
  }
  for (const loop::OutputValue& output : program_.outputs)
    if (!output.none) needed.insert(output.view.buffer);
  return needed;
}

void ModuleWriter::note_torch_results(const std::vector<Step>& all) {
  for (const Step& step : all)
    if (step.torch != nullptr)
      for (loop::BufferId b : step.writes) kept_as_came_.insert(b);
}

std::set<loop::BufferId> ModuleWriter::empty_buffers(const std::vector<Step>& all) const {
  std::set<loop::BufferId> written, used;
  for (const Step& step : all) {
    written.insert(step.writes.begin(), step.writes.end());
    used.insert(step.reads.begin(), step.reads.end());
  }
  for (const loop::OutputValue& output : program_.outputs)
    if (!output.none) used.insert(output.view.buffer);
  std::set<loop::BufferId> found;
  for (loop::BufferId b : used)
    if (!written.contains(b) && buffer(b).input_index < 0) found.insert(b);
  return found;
}

std::string ModuleWriter::empty_tensor(loop::BufferId b) const {
  return fmt::format("torch.empty({}, dtype={})", tuple_text(buffer(b).dims), torch_dtype_text(buffer(b).dtype));
}

bool ModuleWriter::eager_copies(trace::ValueId value) const {
  while (graph_.values[value].producer.valid()) {
    const trace::Node& node = graph_.nodes[graph_.values[value].producer];
    if (node.target == "aten.flip.default") return true;
    const auto* source = node.args.empty() ? nullptr : node.args[0].get<trace::ValueId>();
    if (source == nullptr) return false;
    value = *source;
  }
  return false;
}

std::optional<loop::AffineView> ModuleWriter::in_argument(const loop::Buffer& b, const loop::AffineView& view, const Shape& sizes) const {
  const loop::BoundaryLayout& l = program_.input_layouts.at(static_cast<std::size_t>(b.input_index));
  if (!l.copied) return view;
  const Shape dense = trace::contiguous_strides(l.dims);
  Shape reach(l.dims.size(), 0);  // the last position along each dimension
  const auto own = [&](std::int64_t stride, std::int64_t steps) {
    std::int64_t found = 0;
    for (std::size_t d = 0; d < l.dims.size(); ++d) {
      if (l.dims[d] <= 1) continue;
      const std::int64_t digit = stride / dense[d];
      stride -= digit * dense[d];
      reach[d] += digit * steps;
      found += digit * l.dim_strides[d];
    }
    return found;
  };
  loop::AffineView found;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (sizes[k] > 1 && view.strides[k] < 0) return std::nullopt;
    found.strides.push_back(sizes[k] > 1 ? own(view.strides[k], sizes[k] - 1) : 0);
  }
  found.offset = own(view.offset, 1);
  for (std::size_t d = 0; d < l.dims.size(); ++d)
    if (reach[d] >= std::max<std::int64_t>(1, l.dims[d])) return std::nullopt;
  return found;
}

std::string ModuleWriter::result_text(const loop::OutputValue& output, trace::ValueId value, std::set<loop::BufferId>& returned) const {
  const loop::Buffer& b = buffer(output.view.buffer);
  const Shape &sizes = output.meta.sizes, &strides = output.meta.strides;
  const std::optional<loop::AffineView> affine = loop::affine(*program_.context, output.view);
  PALLASCOPE_CHECK(affine.has_value(), "a result that torch cannot view: " + b.name);
  if (eager_copies(value)) return fmt::format("_restride({}.clone(), {})", view_text(output.view, {}), tuple_text(strides));
  if (b.input_index >= 0) {
    if (const std::optional<loop::AffineView> own = in_argument(b, *affine, sizes)) {
      const trace::TensorMeta& input = *graph_.values[graph_.inputs[static_cast<std::size_t>(b.input_index)].value].tensor;
      bool same = own->offset == output.meta.storage_offset - input.storage_offset;
      for (std::size_t k = 0; k < sizes.size(); ++k) same = same && (sizes[k] == 1 || own->strides[k] == strides[k]);
      if (same) return fmt::format("_view({}, {}, {}, {})", tensor(output.view.buffer), tuple_text(sizes), tuple_text(strides), own->offset);
    }
    // Eager's result does not lie in the argument.
    return fmt::format("_restride({}.clone(), {})", view_text(output.view, {}), tuple_text(strides));
  }
  if (affine->offset == 0 && sizes == b.dims && strides == trace::contiguous_strides(sizes) &&
      returned.insert(output.view.buffer).second)
    return tensor(output.view.buffer);
  bool same = true;
  for (std::size_t k = 0; k < sizes.size(); ++k) same = same && (sizes[k] == 1 || affine->strides[k] == strides[k]);
  if (same) return fmt::format("_view({}, {}, {}, {})", tensor(output.view.buffer), tuple_text(sizes), tuple_text(strides), affine->offset);
  return fmt::format("_restride({}, {})", view_text(output.view, {}), tuple_text(strides));
}

void ModuleWriter::write_returns(const std::string& indent) {
  // Results first, then the writes into arguments: an argument may be part of a result.
  std::vector<std::string> results;
  std::vector<std::pair<std::string, std::string>> mutations;
  std::set<loop::BufferId> returned;
  int k = 0;
  for (std::size_t place = 0; place < program_.outputs.size(); ++place) {
    const loop::OutputValue& output = program_.outputs[place];
    if (output.none) {
      if (output.kind == trace::OutputKind::user_output) results.emplace_back("None");
      continue;
    }
    if (output.kind == trace::OutputKind::mutation) {
      if (output.mutated_input < 0) continue;
      // A source that is an argument may be written to before it is read.
      const bool own = buffer(output.view.buffer).input_index < 0;
      mutations.emplace_back(argument(output.mutated_input), view_text(output.view, {}) + (own ? "" : ".clone()"));
      continue;
    }
    if (output.alias_input >= 0) {
      // Eager returns the changed argument, or a view of it.
      const trace::TensorMeta& input = *graph_.values[graph_.inputs[static_cast<std::size_t>(output.alias_input)].value].tensor;
      results.push_back(fmt::format("_view({}, {}, {}, {})", argument(output.alias_input), tuple_text(output.meta.sizes),
                                    tuple_text(output.meta.strides), output.meta.storage_offset - input.storage_offset));
      continue;
    }
    const std::string name = fmt::format("result{}", k++);
    text_.line(fmt::format("{}{} = {}", indent, name, result_text(output, graph_.outputs[place].value, returned)));
    results.push_back(name);
  }
  for (auto& [name, value] : mutations) {
    if (!value.ends_with(".clone()")) continue;
    const std::string copy = fmt::format("{}_written", name);
    text_.line(fmt::format("{}{} = {}", indent, copy, value));
    value = copy;
  }
  for (const auto& [name, value] : mutations) text_.line(fmt::format("{}{}.detach().copy_({})", indent, name, value));
  text_.line(fmt::format("{}return [{}]", indent, fmt::join(results, ", ")));
}

std::string ModuleWriter::arguments() const {
  std::string text;
  for (const std::string& a : arguments_) text += (text.empty() ? "" : ", ") + a;
  return text;
}

void ModuleWriter::write_steady() {
  const std::vector<Step> all = steps();
  note_torch_results(all);
  const std::set<loop::BufferId> dense = dense_results(all);
  const std::set<loop::BufferId> empties = empty_buffers(all);
  std::vector<std::variant<Segment, std::size_t>> plan;
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k].torch != nullptr) {
      plan.emplace_back(k);
      continue;
    }
    if (plan.empty() || !std::holds_alternative<Segment>(plan.back())) plan.emplace_back(Segment{});
    std::get<Segment>(plan.back()).steps.push_back(k);
  }
  // What each segment reads from outside, and what is read of it outside.
  std::map<loop::BufferId, std::size_t> made_in;
  for (std::size_t p = 0; p < plan.size(); ++p)
    if (const auto* segment = std::get_if<Segment>(&plan[p]))
      for (std::size_t k : segment->steps)
        for (loop::BufferId b : all[k].writes) made_in[b] = p;
  std::set<std::pair<std::size_t, loop::BufferId>> exported;
  const auto uses = [&](std::size_t p, loop::BufferId b) {
    if (const auto at = made_in.find(b); at != made_in.end() && at->second != p) exported.insert({at->second, b});
  };
  for (std::size_t p = 0; p < plan.size(); ++p) {
    if (auto* segment = std::get_if<Segment>(&plan[p])) {
      std::set<loop::BufferId> seen;
      for (std::size_t k : segment->steps)
        for (loop::BufferId b : all[k].reads) {
          const auto at = made_in.find(b);
          if (at != made_in.end() && at->second == p) continue;
          if (seen.insert(b).second) segment->inputs.push_back(b);
          uses(p, b);
        }
    } else {
      for (loop::BufferId b : all[std::get<std::size_t>(plan[p])].reads) uses(p, b);
    }
  }
  std::set<loop::BufferId> as_tensor;  // arrays that torch reads: results and torch calls' arguments
  for (const loop::OutputValue& output : program_.outputs)
    if (!output.none) {
      as_tensor.insert(output.view.buffer);
      uses(plan.size(), output.view.buffer);
    }
  for (const Step& step : all)
    if (step.torch != nullptr) as_tensor.insert(step.reads.begin(), step.reads.end());
  for (const auto& [p, b] : exported) std::get<Segment>(plan[p]).outputs.push_back(b);

  int number = 0;
  for (auto& part : plan)
    if (auto* segment = std::get_if<Segment>(&part)) write_segment(all, *segment, number++);

  blank();
  text_.line(fmt::format("def _call_steady({}):", arguments()));
  text_.line("    \"\"\"One JAX program as far as no torch call cuts it.\"\"\"");
  text_.line(fmt::format("    taken = {{{}}}", fmt::join(pointers(), ", ")));
  std::set<loop::BufferId> arrays;
  for (loop::BufferId b : empties) {
    text_.line(fmt::format("    {} = {}", tensor(b), empty_tensor(b)));
  }
  number = 0;
  for (const auto& part : plan) {
    if (const auto* at = std::get_if<std::size_t>(&part)) {
      write_torch_call(all[*at], "    ", dense);
      continue;
    }
    const Segment& segment = std::get<Segment>(part);
    for (loop::BufferId b : segment.inputs)
      if (arrays.insert(b).second) text_.line(fmt::format("    {} = {}", array(b), to_jax(b, tensor(b))));
    std::vector<std::string> inputs, outputs;
    for (loop::BufferId b : segment.inputs) inputs.push_back(array(b));
    for (loop::BufferId b : segment.outputs) outputs.push_back(array(b));
    for (std::size_t c = 0; c < segment.checks.size(); ++c) outputs.push_back(fmt::format("flag{}_{}", number, c));
    const std::string call = fmt::format("_segment{}_jit({})", number, fmt::join(inputs, ", "));
    if (outputs.empty()) {
      text_.line("    " + call);
    } else {
      text_.line(fmt::format("    {}, = results = {}", fmt::join(outputs, ", "), call));
      // Torch may write to what the program reads, and reads what it writes.
      text_.line("    jax.block_until_ready(results)");
    }
    for (std::size_t c = 0; c < segment.checks.size(); ++c)
      text_.line(fmt::format("    _check(flag{}_{}, {})", number, c, segment.checks[c]));
    for (loop::BufferId b : segment.outputs) {
      arrays.insert(b);
      if (as_tensor.contains(b)) text_.line(fmt::format("    {} = _to_torch({}, taken)", tensor(b), array(b)));
    }
    ++number;
  }
  write_returns("    ");
}

std::vector<std::string> ModuleWriter::pointers() const {
  std::vector<std::string> found;
  for (const std::string& a : arguments_) found.push_back(a + ".data_ptr()");
  if (found.empty()) found.emplace_back("0");
  return found;
}

void ModuleWriter::write_segment(const std::vector<Step>& all, Segment& segment, int number) {
  std::vector<std::string> inputs;
  for (loop::BufferId b : segment.inputs) inputs.push_back(array(b));
  blank();
  text_.line(fmt::format("def _segment{}({}):", number, fmt::join(inputs, ", ")));
  std::vector<std::string> results;
  int checks = 0;
  for (std::size_t k : segment.steps) {
    const Step& step = all[k];
    std::vector<std::string> reads, writes;
    for (loop::BufferId b : step.reads) reads.push_back(array(b));
    for (loop::BufferId b : step.writes) writes.push_back(array(b));
    for (const std::string& check : step.checks) {
      writes.push_back(fmt::format("flag{}", checks++));
      segment.checks.push_back(check);
    }
    const std::string call = fmt::format("{}_call({})", step.name, fmt::join(reads, ", "));
    text_.line(writes.empty() ? "    " + call : fmt::format("    ({},) = {}", fmt::join(writes, ", "), call), step.origin);
  }
  for (loop::BufferId b : segment.outputs) results.push_back(array(b));
  for (int c = 0; c < checks; ++c) results.push_back(fmt::format("flag{}", c));
  text_.line(results.empty() ? "    return ()" : fmt::format("    return ({},)", fmt::join(results, ", ")));
  blank();
  text_.line(fmt::format("_segment{0}_jit = jax.jit(_segment{0})", number));
}

void ModuleWriter::write_debug() {
  const std::vector<Step> all = steps();
  const std::set<loop::BufferId> dense = dense_results(all);
  blank();
  text_.line(fmt::format("def _call_debug({}):", arguments()));
  text_.line("    \"\"\"One executable a kernel.\"\"\"");
  for (loop::BufferId b : empty_buffers(all)) text_.line(fmt::format("    {} = {}", tensor(b), empty_tensor(b)));
  for (const Step& step : all) {
    if (step.torch != nullptr) {
      write_torch_call(step, "    ", dense);
      continue;
    }
    for (loop::BufferId b : step.writes) text_.line(fmt::format("    {} = {}", tensor(b), empty_tensor(b)), step.origin);
    std::vector<std::string> operands;
    for (loop::BufferId b : step.reads) operands.push_back(tensor(b));
    for (loop::BufferId b : step.writes) operands.push_back(tensor(b));
    text_.line(fmt::format("    {}_main({})", step.name, fmt::join(operands, ", ")), step.origin);
  }
  write_returns("    ");
}

void ModuleWriter::write_call() {
  blank();
  text_.line("def call(args, mode=\"steady\"):");
  text_.line("    \"\"\"Runs the kernels on torch tensors in the order of INPUTS; gives the list of results.");
  text_.line("");
  text_.line("    `mode` is \"steady\" (one JAX program) or \"debug\" (one executable a kernel). Raises AssertionError for a");
  text_.line("    tensor that is not laid out as the kernels assume.");
  text_.line("    \"\"\"");
  text_.line("    if mode not in (\"steady\", \"debug\"):");
  text_.line("        raise ValueError(f'mode is \"steady\" or \"debug\", not {mode!r}')");
  text_.line("    if len(args) != len(INPUTS):");
  text_.line("        raise TypeError(f\"{len(INPUTS)} tensors are needed, {len(args)} came\")");
  if (!arguments_.empty()) text_.line(fmt::format("    ({},) = args", arguments()));
  for (std::size_t k = 0; k < arguments_.size(); ++k)
    text_.line("    " + expect(program_.input_buffers[k], arguments_[k], arguments_[k]));
  text_.line("    with torch.no_grad(), jax.enable_x64(True):");
  text_.line(fmt::format("        if mode == \"debug\":"));
  text_.line(fmt::format("            return _call_debug({})", arguments()));
  text_.line(fmt::format("        return _call_steady({})", arguments()));
}

}  // namespace pallascope::codegen
