// The calls between kernels: one JAX program a segment (steady), one executable a kernel (debug), torch calls, results.
#include <algorithm>
#include <optional>
#include <variant>

#include <fmt/compile.h>
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

void ModuleWriter::write_call_line(const std::string& name, const std::vector<loop::BufferId>& reads,
                                   const std::vector<loop::BufferId>& writes, int first_flag, std::size_t flags, LineOrigin origin) {
  Out& out = text_.open();
  put(out, "    ");
  if (!writes.empty() || flags > 0) {
    fmt::format_to(fmt::appender(out), FMT_COMPILE("({}"), arrays(writes));
    for (std::size_t k = 0; k < flags; ++k)
      fmt::format_to(fmt::appender(out), FMT_COMPILE("{}flag{}"), k > 0 || !writes.empty() ? ", " : "", static_cast<std::size_t>(first_flag) + k);
    put(out, ",) = ");
  }
  fmt::format_to(fmt::appender(out), FMT_COMPILE("{}_call({})"), name, arrays(reads));
  text_.close(origin);
}

void ModuleWriter::write_debug_step(const std::string& name, const std::vector<loop::BufferId>& reads,
                                    const std::vector<loop::BufferId>& writes, LineOrigin origin) {
  for (loop::BufferId b : writes) write_empty(b, origin);
  text_.write(origin, FMT_COMPILE("    {}_main({}{}{})"), name, tensors(reads), reads.empty() || writes.empty() ? "" : ", ", tensors(writes));
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
    base = fmt::format(FMT_COMPILE("_storage({}, {}, {})"), name, Tuple{l.dims}, Tuple{l.dim_strides});
  }
  return fmt::format(FMT_COMPILE("_view({}, {}, {}, {})"), base, Tuple{sizes}, Tuple{affine->strides}, affine->offset);
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
  const auto plain = [&](trace::ValueId id) {
    for (const auto& [known, view] : torch.inputs)
      if (known == id) return view_text(view, id);
    return std::string("None");
  };
  // as_strided and as_strided_scatter speak of the memory that their first argument lies in.
  const trace::ValueId memory = functional::strided_memory(graph_, node);
  const bool scatters = node.target == "aten.as_strided_scatter.default";
  const auto* self = (memory.valid() || scatters) && !node.args.empty() ? node.args[0].get<trace::ValueId>() : nullptr;
  const auto value = [&](trace::ValueId id) {
    if (self == nullptr || *self != id) return plain(id);
    const trace::ValueId owner = memory.valid() ? memory : id;
    for (const trace::Input& input : graph_.inputs)
      if (input.value == owner) return plain(owner);
    // select_scatter and its kin copy memory with what lies between the elements, so that theirs is taken as it came.
    const trace::NodeId maker = graph_.values[owner].producer;
    const auto place = program_.views.find(owner);
    if (maker.valid() && graph_.nodes[maker].target.find("_scatter.") != std::string::npos && place != program_.views.end() &&
        kept_as_came_.contains(place->second.buffer))
      return plain(owner);
    const trace::TensorMeta& meta = *graph_.values[owner].tensor;
    return fmt::format(FMT_COMPILE("_in_memory({}, {}, {})"), plain(owner), Tuple{meta.strides}, meta.storage_offset);
  };
  Out& out = text_.open();
  put(out, indent);
  if (!torch.outputs.empty()) {
    const bool one = torch.outputs.size() == 1 && !node.list_output;
    if (!one) put(out, "(");
    for (std::size_t k = 0; k < torch.outputs.size(); ++k) {
      const loop::BufferId b = torch.outputs[k];
      if (k > 0) put(out, ", ");
      put(out, b.valid() ? "r_" : "_");
      if (b.valid()) put(out, buffer(b).name);
    }
    put(out, one ? " = " : ",) = ");
  }
  put_call(out, node, [&](Out& to, trace::ValueId id) { put(to, value(id)); });
  text_.close(origin);
  for (std::size_t k = 0; k < torch.outputs.size(); ++k) {
    const loop::BufferId b = torch.outputs[k];
    if (!dense[k]) continue;
    const loop::BoundaryLayout& l = *torch.layouts[k];
    text_.write(origin, FMT_COMPILE("{}t_{} = _storage(_restride(r_{}, {}), {}, {})"), indent, buffer(b).name, buffer(b).name,
                Tuple{l.strides}, Tuple{l.dims}, Tuple{l.dim_strides});
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

void ModuleWriter::write_empty(loop::BufferId b, LineOrigin origin) {
  text_.write(origin, FMT_COMPILE("    {} = torch.empty({}, dtype=torch.{})"), tensor(b), Tuple{buffer(b).dims}, torch_dtype_name(buffer(b).dtype));
}

bool ModuleWriter::eager_copies(trace::ValueId value, loop::BufferId lies_in) const {
  while (graph_.values[value].producer.valid()) {
    const trace::Node& node = graph_.nodes[graph_.values[value].producer];
    if (const auto view = functional::view_of(graph_, node, static_cast<std::size_t>(graph_.values[value].output_index))) {
      value = view->base;
      continue;
    }
    // An index map here where eager has memory of its own (flip): its argument lies in the same buffer.
    const auto* source = node.args.empty() ? nullptr : node.args[0].get<trace::ValueId>();
    const auto place = source == nullptr ? program_.views.end() : program_.views.find(*source);
    return place != program_.views.end() && place->second.buffer == lies_in;
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
    if (!there || meta.storage_offset != 0 || eager_copies(root, view->second.buffer)) continue;
    const std::string name = fmt::format(FMT_COMPILE("root{}"), names.size());
    text_.write({}, FMT_COMPILE("{}{} = _restride({}, {})"), indent, name, view_text(view->second, {}), Tuple{meta.strides});
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
  if (eager_copies(value, output.view.buffer)) return fmt::format(FMT_COMPILE("_restride({}.clone(), {})"), view_text(output.view, {}), Tuple{strides});
  if (b.input_index >= 0) {
    if (const std::optional<loop::AffineView> own = in_argument(b, *affine, sizes)) {
      const trace::TensorMeta& input = *graph_.values[graph_.inputs[static_cast<std::size_t>(b.input_index)].value].tensor;
      bool same = own->offset == output.meta.storage_offset - input.storage_offset;
      for (std::size_t k = 0; k < sizes.size(); ++k) same = same && (sizes[k] == 1 || own->strides[k] == strides[k]);
      if (same) return fmt::format(FMT_COMPILE("_view({}, {}, {}, {})"), tensor(output.view.buffer), Tuple{sizes}, Tuple{strides}, own->offset);
    }
    // Eager's result does not lie in the argument.
    return fmt::format(FMT_COMPILE("_restride({}.clone(), {})"), view_text(output.view, {}), Tuple{strides});
  }
  // PyTorch may have given back its argument (positive, resolve_conj), and that argument may be written to below.
  const bool writes = std::any_of(outputs_->begin(), outputs_->end(),
                                  [](const loop::OutputValue& o) { return o.kind == trace::OutputKind::mutation; });
  if (writes && kept_as_came_.contains(output.view.buffer))
    return fmt::format(FMT_COMPILE("_restride({}.clone(), {})"), view_text(output.view, {}), Tuple{strides});
  bool same = true;
  for (std::size_t k = 0; k < sizes.size(); ++k) same = same && (sizes[k] == 1 || affine->strides[k] == strides[k]);
  if (same && affine->offset == 0 && sizes == b.dims && strides == trace::contiguous_strides(sizes) &&
      returned.insert(output.view.buffer).second)
    return tensor(output.view.buffer);
  if (same) return fmt::format(FMT_COMPILE("_view({}, {}, {}, {})"), tensor(output.view.buffer), Tuple{sizes}, Tuple{strides}, affine->offset);
  return fmt::format(FMT_COMPILE("_restride({}, {})"), view_text(output.view, {}), Tuple{strides});
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
      const bool own = buffer(output.view.buffer).input_index < 0 && !kept_as_came_.contains(output.view.buffer);
      mutations.emplace_back(argument(output.mutated_input), view_text(output.view, {}) + (own ? "" : ".clone()"));
      continue;
    }
    if (output.alias_input >= 0) {
      // Eager returns the changed argument, or a view of it.
      const trace::TensorMeta& input = *graph_.values[graph_.inputs[static_cast<std::size_t>(output.alias_input)].value].tensor;
      results.push_back(fmt::format(FMT_COMPILE("_view({}, {}, {}, {})"), argument(output.alias_input), Tuple{output.meta.sizes},
                                    Tuple{output.meta.strides}, output.meta.storage_offset - input.storage_offset));
      continue;
    }
    if (const auto root = roots.find(storage_root(graph_.outputs[place].value)); root != roots.end()) {
      results.push_back(fmt::format(FMT_COMPILE("_view({}, {}, {}, {})"), root->second, Tuple{output.meta.sizes},
                                    Tuple{output.meta.strides}, output.meta.storage_offset));
      continue;
    }
    const std::string name = fmt::format(FMT_COMPILE("result{}"), k++);
    text_.write({}, FMT_COMPILE("{}{} = {}"), indent, name, result_text(output, graph_.outputs[place].value, returned));
    results.push_back(name);
  }
  for (auto& [name, value] : mutations) {
    if (!value.ends_with(".clone()")) continue;
    const std::string copy = fmt::format(FMT_COMPILE("{}_written"), name);
    text_.write({}, FMT_COMPILE("{}{} = {}"), indent, copy, value);
    value = copy;
  }
  for (const auto& [name, value] : mutations) text_.write({}, FMT_COMPILE("{}{}.detach().copy_({})"), indent, name, value);
  text_.write({}, FMT_COMPILE("{}return [{}]"), indent, fmt::join(results, ", "));
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
  text_.write({}, FMT_COMPILE("def _call_steady({}):"), argument_list_);
  text_.line("    \"\"\"One JAX program as far as no torch call cuts it.\"\"\"");
  // Memory that results must not share: the arguments'.
  Out& out = text_.open();
  put(out, "    taken = {");
  for (std::size_t k = 0; k < arguments_.size(); ++k)
    fmt::format_to(fmt::appender(out), FMT_COMPILE("{}{}.data_ptr()"), k > 0 ? ", " : "", arguments_[k]);
  put(out, arguments_.empty() ? "0}" : "}");
  text_.close();
  std::vector<char> there(buffers, 0);  // as arrays
  for (const loop::BufferId b : empty_) write_empty(b);
  number = 0;
  for (const auto& part : plan) {
    if (const auto* at = std::get_if<std::size_t>(&part)) {
      place_torch_call(steps_[*at]);
      continue;
    }
    const Segment& segment = std::get<Segment>(part);
    for (const loop::BufferId b : segment.inputs) {
      if (std::exchange(there[b.index()], 1) != 0) continue;
      fmt::format_to(fmt::appender(out), FMT_COMPILE("    {} = "), array(b));
      put_to_jax(out, b, tensor(b));
      text_.close();
    }
    const bool gives = !segment.outputs.empty() || !segment.checks.empty();
    put(out, "    ");
    if (gives) {
      fmt::format_to(fmt::appender(out), FMT_COMPILE("{}"), arrays(segment.outputs));
      for (std::size_t c = 0; c < segment.checks.size(); ++c)
        fmt::format_to(fmt::appender(out), FMT_COMPILE("{}flag{}_{}"), c > 0 || !segment.outputs.empty() ? ", " : "", number, c);
      put(out, ", = results = ");
    }
    fmt::format_to(fmt::appender(out), FMT_COMPILE("_segment{}_jit({})"), number, arrays(segment.inputs));
    text_.close();
    // Torch may write to what the program reads, and reads what it writes.
    if (gives) text_.line("    jax.block_until_ready(results)");
    for (std::size_t c = 0; c < segment.checks.size(); ++c)
      text_.write({}, FMT_COMPILE("    _check(flag{}_{}, {})"), number, c, segment.checks[c]);
    for (const loop::BufferId b : segment.outputs) {
      there[b.index()] = 1;
      if (as_tensor[b.index()] != 0) text_.write({}, FMT_COMPILE("    {} = _to_torch({}, taken)"), tensor(b), array(b));
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

void ModuleWriter::write_segment(Segment& segment, int number) {
  blank();
  text_.write({}, FMT_COMPILE("def _segment{}({}):"), number, arrays(segment.inputs));
  int checks = 0;
  for (std::size_t k = segment.first; k < segment.end; ++k) {
    const Step& step = steps_[k];
    if (step.kernel == nullptr || step.kernel->call) {
      place(step.kernel != nullptr ? step.kernel->call : step.call->call, step.id);
      continue;
    }
    flush();
    write_call_line(*step.name, *step.reads, *step.writes, checks, step.kernel->checks.size(), step.origin);
    segment.checks.insert(segment.checks.end(), step.kernel->checks.begin(), step.kernel->checks.end());
    checks = static_cast<int>(segment.checks.size());
    flush(step.id);
  }
  Out& out = text_.open();
  fmt::format_to(fmt::appender(out), FMT_COMPILE("    return ({}"), arrays(segment.outputs));
  for (int c = 0; c < checks; ++c) fmt::format_to(fmt::appender(out), FMT_COMPILE("{}flag{}"), c > 0 || !segment.outputs.empty() ? ", " : "", c);
  put(out, segment.outputs.empty() && checks == 0 ? ")" : ",)");
  text_.close();
  blank();
  text_.write({}, FMT_COMPILE("_segment{0}_jit = jax.jit(_segment{0})"), number);
}

void ModuleWriter::write_debug() {
  blank();
  text_.write({}, FMT_COMPILE("def _call_debug({}):"), argument_list_);
  text_.line("    \"\"\"One executable a kernel.\"\"\"");
  for (const loop::BufferId b : empty_) write_empty(b);
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
  if (!arguments_.empty()) text_.write({}, FMT_COMPILE("    ({},) = args"), argument_list_);
  for (std::size_t k = 0; k < arguments_.size(); ++k) {
    put(text_.open(), "    ");
    put_expect(text_.open(), program_.input_buffers[k], arguments_[k], arguments_[k]);
    text_.close();
  }
  text_.line("    with torch.no_grad(), jax.enable_x64(True):");
  text_.line("        if mode == \"debug\":");
  text_.write({}, FMT_COMPILE("            return _call_debug({})"), argument_list_);
  text_.write({}, FMT_COMPILE("        return _call_steady({})"), argument_list_);
}

}  // namespace pallascope::codegen
