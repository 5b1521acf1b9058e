// The operators that write: how each becomes a value.
#include <algorithm>

#include "core/functional/functionalizer.h"
#include "core/functional/operators.h"

namespace pallascope::functional {

using trace::Argument;
using trace::ArgumentList;
using trace::DeviceArgument;
using trace::Node;
using trace::NodeId;
using trace::NoneArgument;
using trace::TensorMeta;
using trace::ValueId;

namespace {

using Ints = std::vector<std::int64_t>;

bool is_tensor(const Argument* argument) {
  return argument != nullptr && argument->get<ValueId>() != nullptr;
}

bool is_true(const Argument* argument) {
  const bool* flag = argument == nullptr ? nullptr : argument->get<bool>();
  return flag != nullptr && *flag;
}

const Argument& or_none(const Argument* argument) {
  static const Argument none{NoneArgument{}};
  return argument == nullptr ? none : *argument;
}

/// Statistics are kept in f32 where the input has 16 bits.
DType statistics_dtype(DType dtype) { return dtype_bytes(dtype) < 4 ? DType::f32 : dtype; }

}  // namespace

bool updates_running_statistics(const Node& node) {
  const std::string_view name = operator_name(node.target);
  const bool in_training =
      name == "_batch_norm_with_update" ||
      ((name == "batch_norm" || name == "native_batch_norm" || name == "cudnn_batch_norm" ||
        name == "miopen_batch_norm" ||
        (name == "_native_batch_norm_legit" && overload_name(node.target) == "default")) &&
       is_true(node.argument(5, "training"))) ||
      (name == "instance_norm" && is_true(node.argument(5, "use_input_stats")));
  return in_training && is_tensor(node.argument(3, "running_mean"));
}

void Functionalizer::in_place(NodeId id) {
  const Node& node = old_.nodes[id];
  const Argument* self = node.argument(0, "self");
  if (self != nullptr && self->get<ArgumentList>() != nullptr)
    return in_place_list(id, *self->get<ArgumentList>());
  const ValueId* target = self == nullptr ? nullptr : self->get<ValueId>();
  if (target == nullptr || !old_.values[*target].tensor)
    return refuse(id, "takes no tensor as its first argument", "trace the program again");
  if (const std::optional<std::string> why = unwritable(*target))
    return refuse(id, *why, "write to a clone(), or to the tensor before it is expanded");
  // A tensor without elements has nothing to write, and the memory around it stays as it is: as_strided may see that.
  if (old_.values[*target].tensor->numel() > 0) {
    const std::optional<ValueId> content = compute(id, *target);
    if (!content) return;
    write(*target, *content, id);
  }
  // The result is the argument itself: one tensor object under two names.
  if (!node.outputs.empty()) same_[node.outputs[0].index()] = same_[target->index()];
}

/// The new content of `target`. The node that ends the computation keeps the original's name.
std::optional<ValueId> Functionalizer::compute(NodeId id, ValueId target) {
  const Node& node = old_.nodes[id];
  const std::string_view name = operator_name(node.target);
  const TensorMeta wanted = content_meta(same_[target.index()]);
  const ValueId origin_value = node.outputs.empty() ? ValueId() : node.outputs[0];
  const auto last = [&](std::string twin, std::vector<Argument> args, Keywords kwargs) {
    return emit(id, node.name, std::move(twin), std::move(args), std::move(kwargs),
                {{{}, wanted, origin_value}}, false)[0];
  };
  if (name == "copy_" && is_tensor(node.argument(1, "src")))
    return copied(id, target, *node.argument(1, "src")->get<ValueId>(), node.name);
  if (name == "fill_" && is_tensor(node.argument(1, "value")))
    return copied(id, target, *node.argument(1, "value")->get<ValueId>(), node.name);
  if (name == "fill_" || name == "zero_" || name == "copy_") {
    // The old content does not matter, so a `full` keeps the order of nodes free where `full_like` would not.
    const Argument value = name == "zero_" ? Argument{std::int64_t{0}} : or_none(node.argument(1, "value"));
    return last("aten.full.default", {integers(wanted.sizes), value},
                {{"dtype", {wanted.dtype}}, {"device", {DeviceArgument{wanted.device}}}});
  }
  if (name == "fill_diagonal_") return diagonal_filled(id, target);

  std::vector<Argument> args;
  Keywords kwargs;
  for (const Argument& argument : node.args) args.push_back(read_argument(argument, false));
  for (const auto& [keyword, argument] : node.kwargs)
    kwargs.emplace_back(keyword, read_argument(argument, false));
  // The default of `p` stands in the in-place overload only.
  if (node.target == "aten.bernoulli_.float" && args.size() < 2 && node.argument(1, "p") == nullptr)
    args.push_back({0.5});
  if (name == "polygamma_" && args.size() == 2) std::swap(args[0], args[1]);
  if (name == "_index_put_impl_") args.resize(std::min<std::size_t>(args.size(), 4));
  // Sums of integers are i64 unless told otherwise; in place they keep the dtype.
  if ((name == "cumsum_" || name == "cumprod_") && std::none_of(kwargs.begin(), kwargs.end(), [](const auto& k) { return k.first == "dtype"; }))
    kwargs.emplace_back("dtype", Argument{wanted.dtype});
  const DType computed = promoted_dtype(old_, node).value_or(wanted.dtype);
  if (computed == wanted.dtype) return last(functional_twin(node.target), std::move(args), std::move(kwargs));
  TensorMeta wide = wanted;
  wide.dtype = computed;
  const ValueId result = emit_step(id, node.name + "_" + std::string(dtype_name(computed)),
                                   functional_twin(node.target), std::move(args), std::move(kwargs), wide);
  return last("aten._to_copy.default", {{result}}, {{"dtype", {wanted.dtype}}});
}

/// `copy_`: the source expanded to the target's sizes, then cast or copied. The node that makes memory comes last,
/// so that the value is as dense as its meta says.
std::optional<ValueId> Functionalizer::copied(NodeId id, ValueId target, ValueId source,
                                              const std::string& name) {
  const TensorMeta wanted = content_meta(same_[target.index()]);
  if (!old_.values[source].tensor || meta(same_[source.index()]).rank() > wanted.rank()) {
    refuse(id, "copies from something that has more axes than the tensor it writes to",
           "trace the program again");
    return std::nullopt;
  }
  ValueId value = read(source);
  TensorMeta shape = *result_.graph.values[value].tensor;
  if (shape.sizes != wanted.sizes) {
    TensorMeta expanded = shape;
    expanded.sizes = wanted.sizes;
    expanded.strides.assign(wanted.sizes.size(), 0);
    for (std::size_t i = 0; i < shape.sizes.size(); ++i) {
      const std::size_t at = wanted.sizes.size() - shape.sizes.size() + i;
      if (shape.sizes[i] == wanted.sizes[at]) expanded.strides[at] = shape.strides[i];
    }
    value = emit_step(id, name + "_expand", "aten.expand.default", {{value}, integers(wanted.sizes)}, {},
                      expanded);
  }
  Keywords kwargs;
  kwargs.reserve(2);
  if (shape.dtype != wanted.dtype) kwargs.emplace_back("dtype", Argument{wanted.dtype});
  if (shape.device != wanted.device) kwargs.emplace_back("device", Argument{DeviceArgument{wanted.device}});
  const Node& node = old_.nodes[id];
  const ValueId origin = node.outputs.empty() ? ValueId() : node.outputs[0];
  const bool casts = !kwargs.empty();
  return emit(id, name, casts ? "aten._to_copy.default" : "aten.clone.default", {{value}}, std::move(kwargs),
              {{{}, wanted, origin}}, false)[0];
}

/// The diagonal lies at even distances in the row-major order of the elements: every `sum of strides`-th of them. A
/// tall matrix starts it anew below each square if `wrap` says so, where else it ends with the first.
std::optional<ValueId> Functionalizer::diagonal_filled(NodeId id, ValueId target) {
  const Node& node = old_.nodes[id];
  const TensorMeta wanted = content_meta(same_[target.index()]);
  const bool wraps = is_true(node.argument(2, "wrap"));
  const auto line = [&](const Ints& sizes) {
    TensorMeta made = wanted;
    made.sizes = sizes;
    made.strides = trace::contiguous_strides(sizes);
    made.storage_offset = 0;
    return made;
  };
  const std::int64_t elements = wanted.numel();
  const ValueId origin = node.outputs.empty() ? ValueId() : node.outputs[0];
  if (wanted.rank() < 2) {
    refuse(id, "fills the diagonal of a tensor with fewer than 2 axes", "trace the program again");
    return std::nullopt;
  }
  if (elements == 0)
    return emit(id, node.name, "aten.clone.default", {{read(target)}}, {}, {{{}, wanted, origin}}, false)[0];
  std::int64_t step = 0;
  for (const std::int64_t stride : trace::contiguous_strides(wanted.sizes)) step += stride;
  const std::int64_t shortest = *std::min_element(wanted.sizes.begin(), wanted.sizes.end());
  const std::int64_t count = wraps && wanted.rank() == 2 ? (elements - 1) / step + 1 : shortest;
  const ValueId values =
      emit_step(id, node.name + "_values", "aten.full.default",
                {integers({count}), or_none(node.argument(1, "fill_value"))},
                {{"dtype", {wanted.dtype}}, {"device", {DeviceArgument{wanted.device}}}}, line({count}));
  const ValueId flat = emit_step(id, node.name + "_flat", "aten.reshape.default", {{read(target)}, integers({elements})},
                                 {}, line({elements}));
  const ValueId filled = emit_step(id, node.name + "_filled", "aten.slice_scatter.default",
                                   {{flat},
                                    {values},
                                    {std::int64_t{0}},
                                    {std::int64_t{0}},
                                    {(count - 1) * step + 1},
                                    {step}},
                                   {}, line({elements}));
  return emit(id, node.name, "aten.reshape.default", {{filled}, integers(wanted.sizes)}, {}, {{{}, wanted, origin}},
              false)[0];
}

/// `f(..., out=x)`: the functional overload, whose results are written to what the caller gave.
void Functionalizer::out_variant(NodeId id) {
  const Node& node = old_.nodes[id];
  const std::size_t count = node.outputs.size();
  // The schema's last keywords are the tensors to write, one a result.
  std::vector<ValueId> targets;
  for (std::size_t i = node.kwargs.size() >= count ? node.kwargs.size() - count : 0; i < node.kwargs.size(); ++i)
    if (const ValueId* target = node.kwargs[i].second.get<ValueId>()) targets.push_back(*target);
  if (count == 0 || targets.size() != count)
    return refuse(id, "writes its results into tensors that the caller gives (out=) in a way that is not known",
                  "write `x = f(...)` without out=");
  std::vector<Argument> args;
  Keywords kwargs;
  for (const Argument& argument : node.args) args.push_back(read_argument(argument, false));
  for (std::size_t i = 0; i + count < node.kwargs.size(); ++i)
    kwargs.emplace_back(node.kwargs[i].first, read_argument(node.kwargs[i].second, false));
  const Argument* first = node.args.empty() ? nullptr : &node.args[0];
  const ValueId* operand = first == nullptr ? nullptr : first->get<ValueId>();
  const std::optional<DType> promoted = promoted_dtype(old_, node);
  std::vector<NewOutput> outputs;
  for (std::size_t i = 0; i < count; ++i) {
    const TensorMeta wanted = content_meta(same_[targets[i].index()]);
    if (const std::optional<std::string> why = unwritable(targets[i]))
      return refuse(id, *why, "write to a clone(), or to the tensor before it is expanded");
    if (!old_.values[node.outputs[i]].tensor || old_.values[node.outputs[i]].tensor->sizes != wanted.sizes)
      return refuse(id, "resizes the tensor that the caller gives as out=", "give out= a tensor of the result's sizes");
    TensorMeta made = wanted;
    if (promoted) {
      made.dtype = *promoted;
    } else if (operand != nullptr && is_float(meta(*operand).dtype) && is_float(wanted.dtype) &&
               meta(*operand).dtype != wanted.dtype) {
      return refuse(id, "computes in one float dtype and writes to another (out=)", "cast the result instead");
    }
    const bool casts = made.dtype != wanted.dtype;
    outputs.push_back({casts ? unique(node.name + "_" + std::string(dtype_name(made.dtype)))
                             : old_.values[node.outputs[i]].name,
                       made, casts ? ValueId() : node.outputs[i]});
  }
  const bool several = count > 1;
  const std::string inner = outputs[0].origin.valid() || several ? node.name : outputs[0].name;
  const std::vector<TensorMeta> metas = [&] {
    std::vector<TensorMeta> list;
    for (const NewOutput& output : outputs) list.push_back(*output.meta);
    return list;
  }();
  std::vector<ValueId> made =
      emit(id, inner, functional_of_out(node.target), std::move(args), std::move(kwargs), std::move(outputs), several);
  for (std::size_t i = 0; i < count; ++i) {
    const TensorMeta wanted = content_meta(same_[targets[i].index()]);
    if (metas[i].dtype != wanted.dtype)
      made[i] = emit(id, several ? unique(node.name + "_cast") : node.name, "aten._to_copy.default", {{made[i]}},
                     {{"dtype", {wanted.dtype}}}, {{{}, wanted, node.outputs[i]}}, false)[0];
    write(targets[i], made[i], id);
    same_[node.outputs[i].index()] = same_[targets[i].index()];
  }
}

/// `_foreach_add_`: a list of tensors, each changed; the twin returns the list.
void Functionalizer::in_place_list(NodeId id, const ArgumentList& targets) {
  const Node& node = old_.nodes[id];
  if (!operator_name(node.target).starts_with("_foreach_"))
    return refuse(id, "writes to a list of tensors", "write to the tensors one at a time");
  std::vector<NewOutput> outputs;
  for (const Argument& element : targets) {
    const ValueId* target = element.get<ValueId>();
    if (target == nullptr || !old_.values[*target].tensor)
      return refuse(id, "takes something that is no tensor in its list", "trace the program again");
    if (const std::optional<std::string> why = unwritable(*target))
      return refuse(id, *why, "write to a clone(), or to the tensor before it is expanded");
    const bool named = outputs.size() < node.outputs.size();
    outputs.push_back({named ? old_.values[node.outputs[outputs.size()]].name
                             : unique(node.name + "_" + std::to_string(outputs.size())),
                       content_meta(same_[target->index()]),
                       named ? node.outputs[outputs.size()] : ValueId()});
  }
  std::vector<Argument> args;
  Keywords kwargs;
  for (const Argument& argument : node.args) args.push_back(read_argument(argument, false));
  for (const auto& [keyword, argument] : node.kwargs)
    kwargs.emplace_back(keyword, read_argument(argument, false));
  // `_foreach_zero_` has no twin that reads nothing; `_foreach_zero` is one that reads its list.
  const std::vector<ValueId> made =
      emit_list(id, node.name, functional_twin(node.target), std::move(args), std::move(kwargs), std::move(outputs));
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const ValueId target = *targets[i].get<ValueId>();
    write(target, made[i], id);
    if (i < node.outputs.size()) same_[node.outputs[i].index()] = same_[target.index()];
  }
}

/// batch_norm in training: the functional form returns the new running statistics as two more outputs.
void Functionalizer::batch_norm(NodeId id) {
  const Node& node = old_.nodes[id];
  const std::string_view name = operator_name(node.target);
  if (name == "cudnn_batch_norm" || name == "miopen_batch_norm")
    return refuse(id, "updates running statistics inside of a device library",
                  "trace on the CPU, or export before dispatch, which gives aten.batch_norm");
  const ValueId* mean = node.argument(3, "running_mean")->get<ValueId>();
  const ValueId* variance =
      is_tensor(node.argument(4, "running_var")) ? node.argument(4, "running_var")->get<ValueId>() : nullptr;
  const ValueId* input =
      is_tensor(node.argument(0, "input")) ? node.argument(0, "input")->get<ValueId>() : nullptr;
  if (variance == nullptr || input == nullptr || node.outputs.empty() || meta(*input).rank() < 2)
    return refuse(id, "has running_mean but no running_var, or no input with channels",
                  "trace the program again");
  for (const ValueId* statistic : {mean, variance})
    if (const std::optional<std::string> why = unwritable(*statistic))
      return refuse(id, *why, "give batch_norm buffers of their own");

  const bool with_update = name == "_batch_norm_with_update";
  std::vector<Argument> args;
  // batch_norm has a ninth argument, cudnn_enabled, that the functional form lacks.
  static constexpr std::string_view kNames[] = {"input",       "weight",   "bias",     "running_mean",
                                                "running_var", "training", "momentum", "eps"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (with_update && i == 5) continue;
    const std::size_t position = with_update && i > 5 ? i - 1 : i;
    args.push_back(read_argument(or_none(node.argument(position, kNames[i])), false));
  }
  TensorMeta saved = meta(*input);
  saved.sizes = {meta(*input).sizes[1]};
  saved.strides = {1};
  saved.storage_offset = 0;
  saved.dtype = statistics_dtype(saved.dtype);
  saved.requires_grad = false;
  std::vector<NewOutput> outputs;
  const std::size_t kept = with_update ? 4 : 3;
  for (std::size_t i = 0; i < kept; ++i) {
    if (i < node.outputs.size())
      outputs.push_back(
          {old_.values[node.outputs[i]].name, old_.values[node.outputs[i]].tensor, node.outputs[i]});
    else
      outputs.push_back({unique(node.name + "." + std::to_string(i)), saved, ValueId()});
  }
  outputs.push_back({unique(node.name + "_running_mean"), content_meta(same_[mean->index()]), ValueId()});
  outputs.push_back({unique(node.name + "_running_var"), content_meta(same_[variance->index()]), ValueId()});
  const std::vector<ValueId> made = emit(id, node.name,
                                         with_update ? "aten._batch_norm_with_update_functional.default"
                                                     : "aten._native_batch_norm_legit_functional.default",
                                         std::move(args), {}, std::move(outputs), true);
  for (std::size_t i = 0; i < node.outputs.size() && i < kept; ++i) finish_root(node.outputs[i], made[i]);
  write(*mean, made[kept], id);
  write(*variance, made[kept + 1], id);
}

/// instance_norm with running statistics: a batch_norm over batch * channels, whose statistics are then averaged
/// over the batch (aten/src/ATen/native/Normalization.cpp, instance_norm).
void Functionalizer::instance_norm(NodeId id) {
  const Node& node = old_.nodes[id];
  const ValueId* mean = node.argument(3, "running_mean")->get<ValueId>();
  const ValueId* variance =
      is_tensor(node.argument(4, "running_var")) ? node.argument(4, "running_var")->get<ValueId>() : nullptr;
  const ValueId* input =
      is_tensor(node.argument(0, "input")) ? node.argument(0, "input")->get<ValueId>() : nullptr;
  if (variance == nullptr || input == nullptr || node.outputs.size() != 1 || meta(*input).rank() < 2)
    return refuse(id, "has running_mean but no running_var, or no input with channels",
                  "trace the program again");
  for (const ValueId* statistic : {mean, variance})
    if (const std::optional<std::string> why = unwritable(*statistic))
      return refuse(id, *why, "give instance_norm buffers of their own");

  const TensorMeta whole = meta(*input);
  const std::int64_t batch = whole.sizes[0], channels = whole.sizes[1];
  const auto line = [&](const TensorMeta& like, const Ints& sizes) {
    TensorMeta made = like;
    made.sizes = sizes;
    made.strides = trace::contiguous_strides(sizes);
    made.storage_offset = 0;
    return made;
  };
  const auto repeated = [&](const Argument* argument, const char* what) -> Argument {
    if (!is_tensor(argument)) return {NoneArgument{}};
    const ValueId value = *argument->get<ValueId>();
    return {emit_step(id, node.name + "_" + what, "aten.repeat.default", {{read(value)}, integers({batch})},
                      {}, line(meta(value), {batch * channels}))};
  };
  const Argument weight = repeated(node.argument(1, "weight"), "weight");
  const Argument bias = repeated(node.argument(2, "bias"), "bias");
  const Argument means = repeated(node.argument(3, "running_mean"), "means");
  const Argument variances = repeated(node.argument(4, "running_var"), "vars");
  Ints flat_sizes = whole.sizes;
  flat_sizes[0] = 1;
  flat_sizes[1] = batch * channels;
  const TensorMeta flat = line(whole, flat_sizes);
  const ValueId reshaped = emit_step(id, node.name + "_input", "aten.reshape.default",
                                     {{read(*input)}, integers(flat_sizes)}, {}, flat);
  TensorMeta saved = line(whole, {batch * channels});
  saved.dtype = statistics_dtype(saved.dtype);
  saved.requires_grad = false;
  const std::string inner = unique(node.name + "_batch_norm");
  const std::vector<ValueId> made =
      emit(id, inner, "aten._native_batch_norm_legit_functional.default",
           {{reshaped},
            weight,
            bias,
            means,
            variances,
            {true},
            or_none(node.argument(6, "momentum")),
            or_none(node.argument(7, "eps"))},
           {},
           {{unique(inner + ".0"), flat, ValueId()},
            {unique(inner + ".1"), saved, ValueId()},
            {unique(inner + ".2"), saved, ValueId()},
            {unique(inner + "_means"), line(meta(*mean), {batch * channels}), ValueId()},
            {unique(inner + "_vars"), line(meta(*variance), {batch * channels}), ValueId()}},
           true);
  const auto averaged = [&](ValueId values, ValueId statistic, const char* what) {
    const TensorMeta& like = meta(statistic);
    const ValueId rows =
        emit_step(id, node.name + "_" + what + "_rows", "aten.view.default",
                  {{values}, integers({batch, channels})}, {}, line(like, {batch, channels}));
    write(statistic,
          emit_step(id, node.name + "_running_" + what, "aten.mean.dim", {{rows}, integers({0}), {false}}, {},
                    content_meta(same_[statistic.index()])),
          id);
  };
  averaged(made[3], *mean, "mean");
  averaged(made[4], *variance, "var");
  finish_root(node.outputs[0],
              emit(id, node.name, "aten.reshape.default", {{made[0]}, integers(whole.sizes)}, {},
                   {{{}, old_.values[node.outputs[0]].tensor, node.outputs[0]}}, false)[0]);
}

}  // namespace pallascope::functional
