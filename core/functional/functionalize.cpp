#include "core/functional/functionalize.h"

#include <algorithm>

#include "core/functional/functionalizer.h"
#include "core/functional/operators.h"

namespace pallascope::functional {

using trace::Argument;
using trace::ArgumentList;
using trace::Graph;
using trace::Node;
using trace::NodeId;
using trace::TensorMeta;
using trace::Value;
using trace::ValueId;

namespace {

Argument integer(std::int64_t number) { return {number}; }

/// The input whose storage `value` shares in a graph that changes nothing.
ValueId storage_input(const Graph& graph, ValueId value) {
  const ValueId owner = value.valid() ? memory_owner(graph, value) : value;
  return owner.valid() && graph.values[owner].producer.valid() ? ValueId() : owner;
}

Functional unchanged(Graph graph) {
  Functional result;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) result.origin.push_back(NodeId(i));
  for (std::size_t i = 0; i < graph.values.size(); ++i) result.value_origin.push_back(ValueId(i));
  for (const trace::Output& output : graph.outputs)
    result.output_alias.push_back(
        output.kind == trace::OutputKind::user_output ? storage_input(graph, output.value) : ValueId());
  result.graph = std::move(graph);
  return result;
}

/// torch.export's metas say that a dropout in eval mode copies (its decomposition does); the operator itself gives
/// back its argument, so the result lies where the argument lies. Seen with torch 2.13 on an expanded tensor.
void place_dropouts(Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (operator_name(node.target).find("dropout") == std::string_view::npos) continue;
    const std::optional<View> view = view_of(graph, node, 0);
    if (!view || view->kind != ViewKind::identity) continue;
    const TensorMeta& base = *graph.values[view->base].tensor;
    const TensorMeta& result = *graph.values[node.outputs[0]].tensor;
    if (result.sizes != base.sizes || (result.strides == base.strides && result.storage_offset == base.storage_offset))
      continue;
    TensorMeta placed = result;
    placed.strides = base.strides;
    placed.storage_offset = base.storage_offset;
    graph.values.edit(node.outputs[0]).tensor = std::move(placed);
  }
}

}  // namespace

Argument integers(const std::vector<std::int64_t>& numbers) {
  ArgumentList list;
  for (const std::int64_t number : numbers) list.push_back(integer(number));
  return {std::move(list)};
}

bool is_mutating(const Node& node) {
  const std::string_view name = operator_name(node.target);
  if (operator_namespace(node.target) != "aten") return is_in_place_name(name);
  return is_in_place_name(name) || is_refused(name) || is_out_overload(node) ||
         updates_running_statistics(node);
}

Result<Functional> functionalize(Graph graph) {
  place_dropouts(graph);
  const auto is_rewritten = [&](const Node& node) { return is_mutating(node) || draws_dropout(graph, node) || is_list_operator(node); };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_rewritten)) return unchanged(std::move(graph));
  return Functionalizer(graph).run();
}

Result<Functional> Functionalizer::run() {
  result_.changed = true;
  result_.graph.name = old_.name;
  result_.graph.kind = old_.kind;
  tensors_.resize(old_.values.size());
  for (std::size_t i = 0; i < old_.values.size(); ++i) {
    same_.push_back(ValueId(i));
    names_.insert(old_.values[ValueId(i)].name);
  }
  for (const Node& node : old_.nodes) names_.insert(node.name);
  add_inputs();
  for (std::size_t i = 0; i < old_.nodes.size() && !problem_; ++i) process(NodeId(i));
  if (!problem_) add_outputs();
  if (problem_) return *problem_;
  const Status valid = trace::validate(result_.graph);
  PALLASCOPE_CHECK(valid.ok(), pallascope::to_string(valid.error()) + "\n" + trace::to_string(result_.graph));
  return std::move(result_);
}

void Functionalizer::add_inputs() {
  for (const trace::Input& input : old_.inputs) {
    Value value = old_.values[input.value];
    const ValueId id = result_.graph.values.add(std::move(value));
    result_.value_origin.push_back(input.value);
    result_.graph.inputs.push_back({input.kind, id, input.target});
    finish_root(input.value, id);
  }
}

void Functionalizer::add_outputs() {
  const auto input_of = [&](const Storage& storage) -> ValueId {
    for (std::size_t i = 0; i < old_.inputs.size(); ++i)
      if (old_.inputs[i].value == storage.root) return result_.graph.inputs[i].value;
    return {};
  };
  std::unordered_set<std::string> listed;
  for (const trace::Output& output : old_.outputs) {
    trace::Output made = output;
    ValueId alias;
    if (output.value.valid()) {
      made.value = read_view(output.value);
      if (output.kind == trace::OutputKind::user_output && old_.values[output.value].tensor)
        alias = input_of(storages_[tensor(output.value).storage]);
    }
    if (output.kind == trace::OutputKind::mutation) listed.insert(output.target);
    result_.graph.outputs.push_back(std::move(made));
    result_.output_alias.push_back(alias);
  }
  for (const trace::Input& input : old_.inputs) {
    const std::size_t storage = tensors_[input.value.index()].storage;
    flush(storage);
    if (storages_[storage].version == 0 || listed.contains(old_.values[input.value].name)) continue;
    result_.graph.outputs.push_back({trace::OutputKind::mutation, storages_[storage].current,
                                     old_.values[input.value].name, std::nullopt});
    result_.output_alias.push_back({});
  }
}

void Functionalizer::process(NodeId id) {
  const Node& node = old_.nodes[id];
  const std::string_view name = operator_name(node.target);
  if (operator_namespace(node.target) != "aten") {
    if (is_in_place_name(name))
      return refuse(id, "by its name changes its argument, and only aten's in-place operators are known",
                    "register a functional variant of the operator and use that");
    return copy_node(id, false);
  }
  if (is_out_overload(node)) return out_variant(id);
  if (is_refused(name))
    return refuse(id, std::string(refused_why), "leave this operator out of the traced function");
  if (changes_shape_only(name)) return take_shape_change(id);
  if (is_in_place_name(name)) return in_place(id);
  if (updates_running_statistics(node)) return name == "instance_norm" ? instance_norm(id) : batch_norm(id);
  if (draws_dropout(old_, node)) return dropout(id);
  bool views = false;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) views = views || view_of(old_, node, i).has_value();
  copy_node(id, views);
}

/// The node as it is, over new values. `views`: it takes a view, so it must see roots and views with their own
/// metas rather than what was last written.
void Functionalizer::copy_node(NodeId id, bool views) {
  const Node& node = old_.nodes[id];
  std::string target = node.target;
  std::vector<Argument> args;
  Keywords kwargs;
  const std::optional<View> view = views ? view_of(old_, node, 0) : std::nullopt;
  const bool moved = view && storages_[tensor(view->base).storage].version > 0;
  if (moved && operator_name(target).starts_with("as_strided")) {
    // as_strided counts in the storage, not in its argument; so it is taken of the root, whose meta is the storage's.
    const TensorMeta& result = meta(node.outputs[0]);
    const ValueId memory = in_memory(tensor(view->base).storage, id, result);
    args = {Argument{memory}, integers(result.sizes), integers(result.strides),
            integer(offset_in(memory, tensor(view->base).storage, result))};
  } else {
    for (const Argument& argument : node.args) args.push_back(read_argument(argument, views));
    for (const auto& [name, argument] : node.kwargs)
      kwargs.emplace_back(name, read_argument(argument, views));
  }
  if (const std::string_view name = operator_name(target); changes_shape_only(name)) {
    target = name == "requires_grad_" ? "aten.alias.default" : functional_twin(target);
    if (name == "requires_grad_") args.resize(1);
  }
  std::vector<NewOutput> outputs;
  for (const ValueId output : node.outputs)
    outputs.push_back({old_.values[output].name, old_.values[output].tensor, output});
  register_outputs(id, node.list_output ? emit_list(id, node.name, std::move(target), std::move(args), std::move(kwargs),
                                                    std::move(outputs))
                                        : emit(id, node.name, std::move(target), std::move(args), std::move(kwargs),
                                               std::move(outputs), false));
}

void Functionalizer::register_outputs(NodeId id, const std::vector<ValueId>& outputs) {
  const Node& node = old_.nodes[id];
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    std::optional<View> view = view_of(old_, node, i);
    if (!view) {
      finish_root(node.outputs[i], outputs[i]);
      continue;
    }
    view->base = same_[view->base.index()];
    Tensor& made = tensors_[node.outputs[i].index()];
    made.storage = tensor(view->base).storage;
    made.view = std::move(view);
    made.maker = id;
    made.output = i;
    made.taken = outputs[i];
    made.taken_version = storages_[made.storage].version;
  }
}

/// `t_`, `unsqueeze_`: the tensor object goes on under other sizes, so its old name means the new view from here.
void Functionalizer::take_shape_change(NodeId id) {
  const Node& node = old_.nodes[id];
  const ValueId* self = node.args.empty() ? nullptr : node.args[0].get<ValueId>();
  if (self == nullptr || node.outputs.size() != 1)
    return refuse(id, "takes no tensor as its first argument", "trace the program again");
  const ValueId old_self = same_[self->index()];
  const bool same_shape = meta(old_self).sizes == meta(node.outputs[0]).sizes &&
                          meta(old_self).strides == meta(node.outputs[0]).strides;
  if (!same_shape) {
    const std::vector<ValueId> names = same_object(old_self);
    for (const ValueId name : names)
      if (!tensors_[name.index()].view && !old_.values[name].producer.valid())
        return refuse(id, "changes the shape of the input `" + old_.values[name].name + "` for the caller",
                      "use the operator without the underscore and return its result");
    if (const std::optional<ValueId> other = read_later(id, old_self, names))
      return refuse(id,
                    "changes the shape of `" + old_.values[old_self].name +
                        "`, which an operator that copies only if it must gave out under another name too, and `" +
                        old_.values[*other].name + "` is read later",
                    "use the operator without the underscore");
  }
  copy_node(id, true);
  if (problem_ || same_shape) return;
  for (ValueId& same : same_)
    if (same == old_self) same = node.outputs[0];
}

std::vector<ValueId> Functionalizer::same_object(ValueId id) const {
  const auto gives_argument = [&](const Tensor& tensor) {
    if (!tensor.view) return false;
    const std::string_view name = operator_name(old_.nodes[tensor.maker].target);
    if (changes_shape_only(name)) return true;
    return tensor.view->kind == ViewKind::identity && name != "detach" && name != "alias" && name != "lift_fresh" && name != "lift";
  };
  std::vector<ValueId> found{id};
  std::vector<bool> seen(tensors_.size(), false);
  seen[id.index()] = true;
  // A view comes after its base, so the first name is found going back, and all others going on from it.
  while (gives_argument(tensors_[found.back().index()])) {
    found.push_back(tensors_[found.back().index()].view->base);
    seen[found.back().index()] = true;
  }
  for (std::size_t i = found.back().index(); i < tensors_.size(); ++i) {
    if (seen[i] || !gives_argument(tensors_[i]) || !seen[tensors_[i].view->base.index()]) continue;
    seen[i] = true;
    found.push_back(ValueId(i));
  }
  return found;
}

std::optional<ValueId> Functionalizer::read_later(NodeId after, ValueId self, const std::vector<ValueId>& names) const {
  const auto is_other = [&](ValueId value) {
    const ValueId entry = same_[value.index()];
    return entry != self && std::find(names.begin(), names.end(), entry) != names.end();
  };
  std::optional<ValueId> found;
  const auto look = [&](const auto& again, const Argument& argument) -> void {
    if (const ValueId* value = argument.get<ValueId>(); value != nullptr && !found && is_other(*value)) found = *value;
    if (const ArgumentList* list = argument.get<ArgumentList>())
      for (const Argument& element : *list) again(again, element);
  };
  for (std::size_t i = after.index() + 1; i < old_.nodes.size() && !found; ++i) {
    for (const Argument& argument : old_.nodes[NodeId(i)].args) look(look, argument);
    for (const auto& [keyword, argument] : old_.nodes[NodeId(i)].kwargs) look(look, argument);
  }
  for (const trace::Output& output : old_.outputs)
    if (output.value.valid() && !found && is_other(output.value)) found = output.value;
  return found;
}

ValueId Functionalizer::in_memory(std::size_t index, NodeId origin, const TensorMeta& reached) {
  const ValueId root = storages_[index].root;
  const ValueId current = read_entry(root);
  const TensorMeta& own = meta(root);
  // Graphs are checked for extents that do not fit 64 bits when they come in.
  const std::int64_t reach = trace::storage_extent(reached).value_or(0), extent = trace::storage_extent(own).value_or(0);
  if (reach > extent) {
    // A copy of a tensor ends with its last element.
    refuse(origin, "reaches element " + std::to_string(reach - 1) + " of the storage of `" + old_.values[root].name + "`, which is written to and " +
                       (extent == 0 ? std::string("has no element of its own") : "whose own last element is number " + std::to_string(extent - 1)),
           "give the function a tensor of the whole storage, and write to a slice of that");
    return current;
  }
  const bool dense = own.storage_offset == 0 && !overlaps_itself(own) && own.numel() == extent;
  if (storages_[index].memory == current || reach == 0 || dense) return current;
  const ValueId made = emit_step(origin, unique(old_.values[root].name + "_in_memory"), "aten.as_strided_scatter.default",
                                 {Argument{storages_[index].memory}, Argument{current}, integers(own.sizes), integers(own.strides),
                                  integer(own.storage_offset)},
                                 {}, own);
  Storage& storage = storages_[index];
  storage.memory = storage.current = made;
  return made;
}

std::int64_t Functionalizer::offset_in(ValueId memory, std::size_t storage, const TensorMeta& view) const {
  return view.storage_offset - meta(storages_[storage].root).storage_offset + result_.graph.values[memory].tensor->storage_offset;
}

void Functionalizer::finish_root(ValueId old_value, ValueId new_value) {
  Tensor& made = tensors_[old_value.index()];
  made.storage = storages_.size();
  storages_.push_back({old_value, new_value, new_value, 0, std::nullopt});
}

ValueId Functionalizer::read(ValueId id) {
  const Tensor& wanted = tensor(id);
  const Storage& storage = storages_[wanted.storage];
  if (storage.pending && storage.pending->target == same_[id.index()]) return storage.pending->content;
  if (!storage.pending && wanted.view && wanted.written_version == storage.version) return wanted.written;
  return read_view(id);
}

ValueId Functionalizer::read_view(ValueId id) { return read_entry(same_[id.index()]); }

ValueId Functionalizer::read_entry(ValueId id) {
  Tensor& wanted = tensors_[id.index()];
  flush(wanted.storage);
  const Storage& storage = storages_[wanted.storage];
  if (!wanted.view) return storage.current;
  if (wanted.taken_version != storage.version) {
    wanted.taken = take_again(id, storage.version);
    wanted.taken_version = storage.version;
  }
  return wanted.taken;
}

/// The view `id` of the current root: the view operator once more, or a plain slice, select or as_strided where the
/// operator made several outputs at once or counts in the storage.
ValueId Functionalizer::take_again(ValueId id, int version) {
  const Tensor& wanted = tensors_[id.index()];
  const View& view = *wanted.view;
  const Node& maker = old_.nodes[wanted.maker];
  const TensorMeta& result = meta(id);
  const std::string name = old_.values[id].name + "_v" + std::to_string(version);
  const std::string_view operation = operator_name(maker.target);
  const bool several = maker.list_output || maker.outputs.size() > 1;
  std::string target = maker.target;
  std::vector<Argument> args;
  Keywords kwargs;
  if (view.kind == ViewKind::strided &&
      (several || operation.starts_with("as_strided") || operation == "einsum")) {
    target = "aten.as_strided.default";
    const ValueId memory = in_memory(wanted.storage, wanted.maker, result);
    args = {Argument{memory}, integers(result.sizes), integers(result.strides), integer(offset_in(memory, wanted.storage, result))};
  } else if (several && view.kind == ViewKind::slice) {
    target = "aten.slice.Tensor";
    const std::int64_t end = view.start + result.sizes[static_cast<std::size_t>(view.dim)];
    args = {Argument{read_entry(view.base)}, integer(view.dim), integer(view.start), integer(end)};
  } else if (several && view.kind == ViewKind::select) {
    target = "aten.select.int";
    args = {Argument{read_entry(view.base)}, integer(view.dim), integer(view.index)};
  } else if (several && view.kind == ViewKind::reshape) {
    target = "aten.reshape.default";
    args = {Argument{read_entry(view.base)}, integers(result.sizes)};
  } else if (view.kind == ViewKind::identity) {
    // `dropout` or `to` that gave back its argument would only hide that.
    target = "aten.alias.default";
    args = {Argument{read_entry(view.base)}};
  } else {
    if (changes_shape_only(operation)) target = functional_twin(target);
    // The base is the first argument. It is read by its entry: after `x.t_()` the name `x` means the result.
    args.push_back({read_entry(view.base)});
    for (std::size_t i = 1; i < maker.args.size(); ++i) args.push_back(read_argument(maker.args[i], true));
    for (const auto& [keyword, argument] : maker.kwargs)
      if (!maker.args.empty() || keyword != "self")
        kwargs.emplace_back(keyword, read_argument(argument, true));
  }
  return emit(wanted.maker, unique(name), std::move(target), std::move(args), std::move(kwargs),
              {{name, result, ValueId()}}, false)[0];
}

Argument Functionalizer::read_argument(const Argument& argument, bool views) {
  if (const ValueId* id = argument.get<ValueId>()) return {views ? read_view(*id) : read(*id)};
  if (const ArgumentList* list = argument.get<ArgumentList>()) {
    ArgumentList made;
    for (const Argument& element : *list) made.push_back(read_argument(element, views));
    return {std::move(made)};
  }
  return argument;
}

void Functionalizer::write(ValueId id, ValueId content, NodeId origin) {
  id = same_[id.index()];
  const std::size_t index = tensors_[id.index()].storage;
  if (storages_[index].pending && storages_[index].pending->target != id) flush(index);
  Storage& storage = storages_[index];
  if (tensors_[id.index()].view) {
    storage.pending = Pending{id, content, origin};
  } else {
    storage.current = content;
    ++storage.version;
  }
}

void Functionalizer::flush(std::size_t index) {
  if (!storages_[index].pending) return;
  const Pending pending = *storages_[index].pending;
  storages_[index].pending.reset();
  bool strided = false;
  for (ValueId id = pending.target; tensors_[id.index()].view; id = tensors_[id.index()].view->base)
    strided = strided || tensors_[id.index()].view->kind == ViewKind::strided;
  ValueId value = pending.content;
  if (strided) {
    // Some step is no bijection of whole axes: place the elements by the view's own strides in the storage.
    const TensorMeta& view = meta(pending.target);
    const ValueId root = storages_[index].root;
    const ValueId base = in_memory(index, pending.origin, view);
    value = emit_step(pending.origin, old_.nodes[pending.origin].name + "_into_" + old_.values[root].name,
                      "aten.as_strided_scatter.default",
                      {Argument{base}, Argument{value}, integers(view.sizes),
                       integers(view.strides), integer(offset_in(base, index, view))},
                      {}, meta(root));
  } else {
    for (ValueId id = pending.target; tensors_[id.index()].view; id = tensors_[id.index()].view->base)
      value = put_back(tensors_[id.index()], value, pending.origin);
  }
  Storage& storage = storages_[index];
  storage.current = value;
  ++storage.version;
  // Only a scatter into the memory itself carries it on.
  if (const NodeId producer = result_.graph.values[value].producer; producer.valid()) {
    const Node& made = result_.graph.nodes[producer];
    const ValueId* base = made.args.empty() ? nullptr : made.args[0].get<ValueId>();
    if (made.target.find("_scatter.") != std::string::npos && base != nullptr && *base == storage.memory) storage.memory = value;
  }
  Tensor& written = tensors_[pending.target.index()];
  written.written = pending.content;
  written.written_version = storage.version;
}

ValueId Functionalizer::put_back(const Tensor& tensor, ValueId content, NodeId origin) {
  const View view = *tensor.view;
  const TensorMeta& base = meta(view.base);
  const std::string name = old_.nodes[origin].name + "_into_" + old_.values[view.base].name;
  const auto step = [&](std::string target, std::vector<Argument> args) {
    return emit_step(origin, name, std::move(target), std::move(args), {}, content_meta(view.base));
  };
  switch (view.kind) {
    case ViewKind::identity:
      return content;
    case ViewKind::reshape:
      return step("aten.reshape.default", {Argument{content}, integers(base.sizes)});
    case ViewKind::permute: {
      std::vector<std::int64_t> inverse(view.order.size());
      for (std::size_t i = 0; i < view.order.size(); ++i)
        inverse[static_cast<std::size_t>(view.order[i])] = static_cast<std::int64_t>(i);
      return step("aten.permute.default", {Argument{content}, integers(inverse)});
    }
    case ViewKind::slice: {
      const std::int64_t count =
          result_.graph.values[content].tensor->sizes[static_cast<std::size_t>(view.dim)];
      const std::int64_t end = count == 0 ? view.start : view.start + (count - 1) * view.step + 1;
      return step("aten.slice_scatter.default",
                  {Argument{read_entry(view.base)}, Argument{content}, integer(view.dim), integer(view.start),
                   integer(end), integer(view.step)});
    }
    case ViewKind::select:
      return step("aten.select_scatter.default", {Argument{read_entry(view.base)}, Argument{content},
                                                  integer(view.dim), integer(view.index)});
    case ViewKind::diagonal:
      return step("aten.diagonal_scatter.default",
                  {Argument{read_entry(view.base)}, Argument{content}, integer(view.offset),
                   integer(view.dim), integer(view.dim2)});
    case ViewKind::reinterpret:
      return step("aten.view.dtype", {Argument{content}, Argument{base.dtype}});
    case ViewKind::strided:
      break;
  }
  internal_error("a view that `unwritable` and `flush` keep away", __FILE__, __LINE__, name);
}

TensorMeta Functionalizer::content_meta(ValueId id) const {
  ValueId root = id;
  while (tensors_[root.index()].view && tensors_[root.index()].view->kind == ViewKind::identity)
    root = tensors_[root.index()].view->base;
  return tensors_[root.index()].view ? dense_like(meta(id)) : meta(root);
}

std::optional<std::string> Functionalizer::unwritable(ValueId id) const {
  id = same_[id.index()];
  if (overlaps_itself(meta(id)))
    return "writes to `" + old_.values[id].name + "`, several elements of which are one place in memory (" +
           trace::to_string(meta(id)) + " with a stride of 0 or less than its inner extent)";
  // One element of an expanded input is several of it.
  const ValueId root = storages_[tensors_[id.index()].storage].root;
  if (overlaps_itself(meta(root)))
    return "writes through a view to `" + old_.values[root].name + "`, several elements of which are one place in memory (" +
           trace::to_string(meta(root)) + ")";
  bool reinterpreted = false, strided = false;
  for (ValueId at = id; tensors_[at.index()].view; at = tensors_[at.index()].view->base) {
    const Tensor& made = tensors_[at.index()];
    strided = strided || made.view->kind == ViewKind::strided;
    if (made.view->kind != ViewKind::reinterpret) continue;
    reinterpreted = true;
    // `x.view(torch.int32)` is put back as `content.view(torch.float32)`, which needs content without gaps.
    const Node& maker = old_.nodes[made.maker];
    const TensorMeta &view = meta(at), &base = meta(made.view->base);
    const bool by_dtype = maker.target == "aten.view.dtype" && !is_complex(view.dtype) && !is_complex(base.dtype);
    const auto row_major = [](const TensorMeta& m) { return m.strides == trace::contiguous_strides(m.sizes); };
    if (by_dtype && (dtype_bytes(view.dtype) == dtype_bytes(base.dtype) || (row_major(view) && row_major(base)))) continue;
    return "writes through `" + old_.values[at].name +
           "`, which reads its base's bytes as another dtype or starts where a tensor says";
  }
  if (reinterpreted && strided)
    return "writes through `" + old_.values[id].name + "`, a view by strides of bytes that are read as another dtype";
  return std::nullopt;
}

std::string Functionalizer::unique(std::string name) {
  if (names_.insert(name).second) return name;
  for (int i = 2;; ++i)
    if (std::string numbered = name + "_" + std::to_string(i); names_.insert(numbered).second)
      return numbered;
}

std::vector<ValueId> Functionalizer::emit(NodeId origin, std::string name, std::string target,
                                          std::vector<Argument> args, Keywords kwargs,
                                          std::vector<NewOutput> outputs, bool list_output) {
  const Node& source = old_.nodes[origin];
  Node node;
  node.name = std::move(name);
  node.target = std::move(target);
  node.args = std::move(args);
  node.kwargs = std::move(kwargs);
  node.list_output = list_output;
  node.module_path = source.module_path;
  node.module_type = source.module_type;
  node.stack = source.stack;
  const NodeId id(result_.graph.nodes.size());
  std::vector<ValueId> ids;
  for (NewOutput& output : outputs) {
    Value value;
    // A single output always has its node's name, which `unique` may have numbered.
    value.name = outputs.size() == 1 && !list_output ? node.name : std::move(output.name);
    value.tensor = std::move(output.meta);
    value.producer = id;
    value.output_index = static_cast<int>(ids.size());
    ids.push_back(result_.graph.values.add(std::move(value)));
    result_.value_origin.push_back(output.origin);
  }
  node.outputs = ids;
  result_.graph.nodes.add(std::move(node));
  result_.origin.push_back(origin);
  return ids;
}

ValueId Functionalizer::emit_step(NodeId origin, std::string name, std::string target,
                                  std::vector<Argument> args, Keywords kwargs, TensorMeta meta) {
  return emit(origin, unique(std::move(name)), std::move(target), std::move(args), std::move(kwargs),
              {{{}, std::move(meta), ValueId()}}, false)[0];
}

void Functionalizer::refuse(NodeId id, std::string message, std::string remedy) {
  if (problem_) return;
  const Node& node = old_.nodes[id];
  std::string where = "graph " + old_.name + ", node " + node.name;
  if (!node.module_path.empty()) where += ", module " + node.module_path;
  if (const trace::Frame* frame = node.user_frame())
    where += ", " + frame->file + ":" + std::to_string(frame->line);
  problem_ = Diagnostic{DiagnosticKind::unsupported, "`" + node.target + "` " + std::move(message),
                        std::move(where), std::move(remedy)};
}

}  // namespace pallascope::functional
