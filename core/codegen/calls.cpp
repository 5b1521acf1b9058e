// The calls between kernels: one JAX program a segment (steady), one executable a kernel (debug), torch calls, results.
#include <algorithm>
#include <optional>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/codegen/module_writer.h"
#include "core/functional/view.h"

namespace pallascope::codegen {

void ModuleWriter::find_steps() {
  steps_.clear();
  for (const schedule::ScheduledStep& s : state_->steps) {
    Step step;
    if (s.kernel.valid()) {
      const KernelPiece& kernel = *current_[s.kernel.index()].piece;
      step.kernel = &kernel;
      step.reads = &kernel.inputs;
      step.writes = &kernel.outputs;
      step.name = &kernel.name;
      step.id = s.kernel;
      step.origin.kernel = schedule::KernelId(0);
    } else {
      step.call = &call_of(s.call);
      step.reads = &step.call->reads;
      step.writes = &step.call->writes;
      if (const auto* library = std::get_if<loop::LibraryCall>(&program_.steps[s.call].content)) {
        step.name = &step.call->name;
        step.origin.node = library->origin;
      } else {
        step.torch = &std::get<loop::TorchCall>(program_.steps[s.call].content);
        step.origin.node = step.torch->origin;
      }
    }
    steps_.push_back(step);
  }
}

std::vector<std::string> ModuleWriter::arrays(const std::vector<loop::BufferId>& buffers) const {
  std::vector<std::string> names;
  for (const loop::BufferId b : buffers) names.push_back(array(b));
  return names;
}

std::string ModuleWriter::call_text(const std::string& name, const std::vector<loop::BufferId>& reads,
                                    std::vector<std::string> writes) const {
  const std::string call = fmt::format("{}_call({})", name, fmt::join(arrays(reads), ", "));
  return writes.empty() ? call : fmt::format("({},) = {}", fmt::join(writes, ", "), call);
}

void ModuleWriter::write_debug_step(const std::string& name, const std::vector<loop::BufferId>& reads,
                                    const std::vector<loop::BufferId>& writes, LineOrigin origin) {
  for (loop::BufferId b : writes) text_.line(fmt::format("    {} = {}", tensor(b), empty_tensor(b)), origin);
  std::vector<std::string> operands;
  for (loop::BufferId b : reads) operands.push_back(tensor(b));
  for (loop::BufferId b : writes) operands.push_back(tensor(b));
  text_.line(fmt::format("    {}_main({})", name, fmt::join(operands, ", ")), origin);
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

void ModuleWriter::place_torch_call(const Step& step) {
  std::vector<bool> dense;
  for (const loop::BufferId b : step.torch->outputs) dense.push_back(b.valid() && dense_[b.index()] != 0);
  if (!step.call->text || step.call->dense != dense) {
    flush();
    write_torch_call(*step.torch, "    ", dense);
    step.call->text = text_.take();
    step.call->dense = std::move(dense);
  }
  place(step.call->text);
}

void ModuleWriter::write_torch_call(const loop::TorchCall& torch, const std::string& indent, const std::vector<bool>& dense) {
  const trace::Node& node = graph_.nodes[torch.origin];
  LineOrigin origin;
  origin.node = torch.origin;
  const auto value = [&](trace::ValueId id) {
    for (const auto& [known, view] : torch.inputs)
      if (known == id) return view_text(view, id);
    return std::string("None");
  };
  const std::string call = fmt::format("{}({})", operator_text(node.target), arguments_text(node, value));
  std::vector<std::string> results;
  for (loop::BufferId b : torch.outputs) results.push_back(b.valid() ? "r_" + buffer(b).name : "_");
  if (results.empty()) {
    text_.line(indent + call, origin);
  } else if (results.size() == 1 && !node.list_output) {
    text_.line(fmt::format("{}{} = {}", indent, results[0], call), origin);
  } else {
    text_.line(fmt::format("{}({},) = {}", indent, fmt::join(results, ", "), call), origin);
  }
  for (std::size_t k = 0; k < torch.outputs.size(); ++k) {
    const loop::BufferId b = torch.outputs[k];
    if (!dense[k]) continue;
    const loop::BoundaryLayout& l = *torch.layouts[k];
    text_.line(fmt::format("{}t_{} = _storage(_restride(r_{}, {}), {}, {})", indent, buffer(b).name, buffer(b).name,
                           tuple_text(l.strides), tuple_text(l.dims), tuple_text(l.dim_strides)),
               origin);
  }
}

bool ModuleWriter::takes_dense(const loop::View& view, trace::ValueId value) const {
  return !(value.valid() && buffer(view.buffer).origin == value);
}

void ModuleWriter::find_needs() {
  const std::size_t buffers = program_.buffers.size();
  dense_.assign(buffers, 0);
  std::vector<char> written(buffers, 0), used(buffers, 0);
  for (const Step& step : steps_) {
    for (const loop::BufferId b : *step.writes) written[b.index()] = 1;
    for (const loop::BufferId b : *step.reads) used[b.index()] = 1;
    if (step.torch == nullptr) {
      for (const loop::BufferId b : *step.reads) dense_[b.index()] = 1;
      continue;
    }
    for (const auto& [value, view] : step.torch->inputs)
      if (takes_dense(view, value)) dense_[view.buffer.index()] = 1;
  }
  for (const loop::OutputValue& output : *outputs_)
    if (!output.none) dense_[output.view.buffer.index()] = used[output.view.buffer.index()] = 1;
  empty_.clear();
  for (std::size_t b = 0; b < buffers; ++b)
    if (used[b] != 0 && written[b] == 0 && buffer(loop::BufferId(b)).input_index < 0) empty_.emplace_back(b);
}

std::string ModuleWriter::empty_tensor(loop::BufferId b) const {
  return fmt::format("torch.empty({}, dtype={})", tuple_text(buffer(b).dims), torch_dtype_text(buffer(b).dtype));
}

bool ModuleWriter::eager_copies(trace::ValueId value) const {
  while (graph_.values[value].producer.valid()) {
    const trace::Node& node = graph_.nodes[graph_.values[value].producer];
    if (const auto view = functional::view_of(graph_, node, static_cast<std::size_t>(graph_.values[value].output_index))) {
      value = view->base;
      continue;
    }
    return node.target == "aten.flip.default";
  }
  return false;
}

trace::ValueId ModuleWriter::storage_root(trace::ValueId value) const {
  while (graph_.values[value].producer.valid()) {
    const auto view = functional::view_of(graph_, graph_.nodes[graph_.values[value].producer],
                                          static_cast<std::size_t>(graph_.values[value].output_index));
    if (!view) break;
    value = view->base;
  }
  return value;
}

bool ModuleWriter::lies_as_eager(const loop::OutputValue& output) const {
  const std::optional<loop::AffineView> affine = loop::affine(*program_.context, output.view);
  if (!affine || affine->offset != output.meta.storage_offset) return false;
  for (std::size_t k = 0; k < output.meta.sizes.size(); ++k)
    if (output.meta.sizes[k] != 1 && affine->strides[k] != output.meta.strides[k]) return false;
  return true;
}

std::map<trace::ValueId, std::string> ModuleWriter::write_shared_roots(const std::string& indent) {
  // Results that share memory in eager, where at least one does not lie in its buffer as eager's does.
  std::map<trace::ValueId, std::pair<int, bool>> groups;  // root -> results, all lie as eager's
  for (std::size_t place = 0; place < outputs_->size(); ++place) {
    const loop::OutputValue& output = (*outputs_)[place];
    if (output.none || output.kind != trace::OutputKind::user_output || output.alias_input >= 0) continue;
    auto& [count, right] = groups.emplace(storage_root(graph_.outputs[place].value), std::pair{0, true}).first->second;
    ++count;
    right = right && lies_as_eager(output);
  }
  std::map<trace::ValueId, std::string> names;
  for (const auto& [root, group] : groups) {
    const auto view = program_.views.find(root);
    if (group.first < 2 || group.second || !graph_.values[root].producer.valid() || view == program_.views.end()) continue;
    // Only where all results were viewed from the root's own buffer is that buffer sure to be a tensor here.
    const std::optional<loop::AffineView> affine = loop::affine(*program_.context, view->second);
    bool there = affine && std::all_of(affine->strides.begin(), affine->strides.end(), [](std::int64_t s) { return s >= 0; });
    for (std::size_t place = 0; place < outputs_->size(); ++place) {
      const loop::OutputValue& output = (*outputs_)[place];
      if (output.none || output.kind != trace::OutputKind::user_output || output.alias_input >= 0) continue;
      if (storage_root(graph_.outputs[place].value) == root) there = there && output.view.buffer == view->second.buffer;
    }
    const trace::TensorMeta& meta = *graph_.values[root].tensor;
    if (!there || meta.storage_offset != 0 || eager_copies(root)) continue;
    const std::string name = fmt::format("root{}", names.size());
    text_.line(fmt::format("{}{} = _restride({}, {})", indent, name, view_text(view->second, {}), tuple_text(meta.strides)));
    names.emplace(root, name);
  }
  return names;
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
  bool same = true;
  for (std::size_t k = 0; k < sizes.size(); ++k) same = same && (sizes[k] == 1 || affine->strides[k] == strides[k]);
  if (same && affine->offset == 0 && sizes == b.dims && strides == trace::contiguous_strides(sizes) &&
      returned.insert(output.view.buffer).second)
    return tensor(output.view.buffer);
  if (same) return fmt::format("_view({}, {}, {}, {})", tensor(output.view.buffer), tuple_text(sizes), tuple_text(strides), affine->offset);
  return fmt::format("_restride({}, {})", view_text(output.view, {}), tuple_text(strides));
}

void ModuleWriter::write_returns(const std::string& indent) {
  // Results first, then the writes into arguments: an argument may be part of a result.
  std::vector<std::string> results;
  std::vector<std::pair<std::string, std::string>> mutations;
  std::set<loop::BufferId> returned;
  const std::map<trace::ValueId, std::string> roots = write_shared_roots(indent);
  int k = 0;
  for (std::size_t place = 0; place < outputs_->size(); ++place) {
    const loop::OutputValue& output = (*outputs_)[place];
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
    if (const auto root = roots.find(storage_root(graph_.outputs[place].value)); root != roots.end()) {
      results.push_back(fmt::format("_view({}, {}, {}, {})", root->second, tuple_text(output.meta.sizes),
                                    tuple_text(output.meta.strides), output.meta.storage_offset));
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
  std::vector<std::variant<Segment, std::size_t>> plan;
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    if (steps_[k].torch != nullptr) {
      plan.emplace_back(k);
      continue;
    }
    if (plan.empty() || !std::holds_alternative<Segment>(plan.back())) plan.emplace_back(Segment{k, k, {}, {}, {}});
    std::get<Segment>(plan.back()).end = k + 1;
  }
  // What each segment reads from outside, and what is read of it outside.
  const std::size_t buffers = program_.buffers.size(), nowhere = plan.size() + 1;
  std::vector<std::size_t> made_in(buffers, nowhere), seen_in(buffers, nowhere);
  for (std::size_t p = 0; p < plan.size(); ++p)
    if (const auto* segment = std::get_if<Segment>(&plan[p]))
      for (std::size_t k = segment->first; k < segment->end; ++k)
        for (const loop::BufferId b : *steps_[k].writes) made_in[b.index()] = p;
  std::vector<std::pair<std::size_t, loop::BufferId>> exported;
  const auto uses = [&](std::size_t p, loop::BufferId b) {
    if (const std::size_t at = made_in[b.index()]; at != nowhere && at != p) exported.emplace_back(at, b);
  };
  for (std::size_t p = 0; p < plan.size(); ++p) {
    if (auto* segment = std::get_if<Segment>(&plan[p])) {
      for (std::size_t k = segment->first; k < segment->end; ++k)
        for (const loop::BufferId b : *steps_[k].reads) {
          if (made_in[b.index()] == p) continue;
          if (std::exchange(seen_in[b.index()], p) == p) continue;
          segment->inputs.push_back(b);
          uses(p, b);
        }
    } else {
      for (const loop::BufferId b : *steps_[std::get<std::size_t>(plan[p])].reads) uses(p, b);
    }
  }
  std::vector<char> as_tensor(buffers, 0);  // arrays that torch reads: results and torch calls' arguments
  for (const loop::OutputValue& output : *outputs_)
    if (!output.none) {
      as_tensor[output.view.buffer.index()] = 1;
      uses(plan.size(), output.view.buffer);
    }
  for (const Step& step : steps_)
    if (step.torch != nullptr)
      for (const loop::BufferId b : *step.reads) as_tensor[b.index()] = 1;
  std::sort(exported.begin(), exported.end());
  exported.erase(std::unique(exported.begin(), exported.end()), exported.end());
  for (const auto& [p, b] : exported) std::get<Segment>(plan[p]).outputs.push_back(b);

  int number = 0;
  for (auto& part : plan)
    if (auto* segment = std::get_if<Segment>(&part)) write_segment(*segment, number++);

  blank();
  text_.line(fmt::format("def _call_steady({}):", arguments()));
  text_.line("    \"\"\"One JAX program as far as no torch call cuts it.\"\"\"");
  text_.line(fmt::format("    taken = {{{}}}", fmt::join(pointers(), ", ")));
  std::vector<char> there(buffers, 0);  // as arrays
  for (const loop::BufferId b : empty_) text_.line(fmt::format("    {} = {}", tensor(b), empty_tensor(b)));
  number = 0;
  for (const auto& part : plan) {
    if (const auto* at = std::get_if<std::size_t>(&part)) {
      place_torch_call(steps_[*at]);
      continue;
    }
    const Segment& segment = std::get<Segment>(part);
    for (const loop::BufferId b : segment.inputs) {
      if (std::exchange(there[b.index()], 1) != 0) continue;
      std::string& line = to_jax_[b.index()];
      if (line.empty()) line = fmt::format("    {} = {}", array(b), to_jax(b, tensor(b)));
      text_.line(line);
    }
    std::vector<std::string> outputs = arrays(segment.outputs);
    for (std::size_t c = 0; c < segment.checks.size(); ++c) outputs.push_back(fmt::format("flag{}_{}", number, c));
    const std::string call = fmt::format("_segment{}_jit({})", number, fmt::join(arrays(segment.inputs), ", "));
    if (outputs.empty()) {
      text_.line("    " + call);
    } else {
      text_.line(fmt::format("    {}, = results = {}", fmt::join(outputs, ", "), call));
      // Torch may write to what the program reads, and reads what it writes.
      text_.line("    jax.block_until_ready(results)");
    }
    for (std::size_t c = 0; c < segment.checks.size(); ++c)
      text_.line(fmt::format("    _check(flag{}_{}, {})", number, c, segment.checks[c]));
    for (const loop::BufferId b : segment.outputs) {
      there[b.index()] = 1;
      if (as_tensor[b.index()] != 0) text_.line(fmt::format("    {} = _to_torch({}, taken)", tensor(b), array(b)));
    }
    ++number;
  }
  std::vector<std::pair<loop::BufferId, index::Expression>> returned;
  for (const loop::OutputValue& output : *outputs_) returned.emplace_back(output.view.buffer, output.view.index);
  if (!returns_ || returned != returned_) {
    flush();
    returned_ = std::move(returned);
    write_returns("    ");
    returns_ = text_.take();
  }
  place(returns_);
}

std::vector<std::string> ModuleWriter::pointers() const {
  std::vector<std::string> found;
  for (const std::string& a : arguments_) found.push_back(a + ".data_ptr()");
  if (found.empty()) found.emplace_back("0");
  return found;
}

void ModuleWriter::write_segment(Segment& segment, int number) {
  blank();
  text_.line(fmt::format("def _segment{}({}):", number, fmt::join(arrays(segment.inputs), ", ")));
  int checks = 0;
  for (std::size_t k = segment.first; k < segment.end; ++k) {
    const Step& step = steps_[k];
    if (step.kernel == nullptr || step.kernel->call) {
      place(step.kernel != nullptr ? step.kernel->call : step.call->call, step.id);
      continue;
    }
    flush();
    std::vector<std::string> writes = arrays(*step.writes);
    for (const std::string& check : step.kernel->checks) {
      writes.push_back(fmt::format("flag{}", checks++));
      segment.checks.push_back(check);
    }
    text_.line("    " + call_text(*step.name, *step.reads, std::move(writes)), step.origin);
    flush(step.id);
  }
  std::vector<std::string> results = arrays(segment.outputs);
  for (int c = 0; c < checks; ++c) results.push_back(fmt::format("flag{}", c));
  text_.line(results.empty() ? "    return ()" : fmt::format("    return ({},)", fmt::join(results, ", ")));
  blank();
  text_.line(fmt::format("_segment{0}_jit = jax.jit(_segment{0})", number));
}

void ModuleWriter::write_debug() {
  blank();
  text_.line(fmt::format("def _call_debug({}):", arguments()));
  text_.line("    \"\"\"One executable a kernel.\"\"\"");
  for (const loop::BufferId b : empty_) text_.line(fmt::format("    {} = {}", tensor(b), empty_tensor(b)));
  for (const Step& step : steps_) {
    if (step.torch != nullptr) {
      place_torch_call(step);
    } else {
      place(step.kernel != nullptr ? step.kernel->debug : step.call->debug, step.id);
    }
  }
  place(returns_);
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
