#include "core/functional/operators.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/functional/view.h"

namespace pallascope::functional {
namespace {

using trace::Argument;

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// clang-format off
constexpr std::array<std::string_view, 9> kShapeOnly = {
    "t_", "transpose_", "squeeze_", "unsqueeze_", "swapaxes_", "swapdims_", "detach_", "requires_grad_",
    "as_strided_"};

/// From torch 2.13's schemas: every aten operator that writes to something other than its first argument alone,
/// or has no twin. (`out=` overloads apart.)
constexpr std::array<std::string_view, 32> kRefused = {
    "_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_", "_cummax_helper", "_cummin_helper",
    "_fill_mem_eff_dropout_mask_", "_fused_adagrad_", "_fused_adam_", "_fused_adamw_", "_fused_sgd_",
    "_fused_moving_avg_obs_fq_helper", "fused_moving_avg_obs_fake_quant", "_no_grad_fill_", "_no_grad_normal_",
    "_no_grad_uniform_", "_no_grad_zero_", "_resize_output_", "_sobol_engine_ff_",
    "_sobol_engine_initialize_state_", "_sobol_engine_scramble_", "record_stream", "rename_",
    "resize_", "resize_as_", "resize_as_sparse_", "rrelu_with_noise", "rrelu_with_noise_", "set_", "set_data",
    "sparse_resize_", "sparse_resize_and_clear_", "retain_grad", "copy_sparse_to_sparse_"};

/// `out=` overloads that are not called `out` or `..._out`.
constexpr std::array<std::string_view, 17> kOutOverloads = {
    "out", "grad_input", "values", "values_stable", "dim_max", "dim_min", "dim_values", "output", "out_mode", "result",
    "eigenvalues", "sign", "U", "L", "inverse", "OutTensor", "OutScalar_Other"};

/// From torch 2.13's schemas: `out=` overloads whose functional overload has another name than theirs without the
/// `_out` (or `default`, for the ones above).
constexpr std::array<std::pair<std::string_view, std::string_view>, 41> kOddOuts = {{
    {"aten._add_relu.out", "Tensor"},         {"aten.add.out", "Tensor"},
    {"aten.all.out", "dim"},                  {"aten.all.all_out", "default"},
    {"aten.any.out", "dim"},                  {"aten.any.all_out", "default"},
    {"aten.arange.start_out", "start_step"},  {"aten.bernoulli.float_out", "p"},
    {"aten.copysign.out", "Tensor"},          {"aten.div.out", "Tensor"},
    {"aten.div.out_mode", "Tensor_mode"},     {"aten.divide.out", "Tensor"},
    {"aten.divide.out_mode", "Tensor_mode"},  {"aten.ldexp.out", "Tensor"},
    {"aten.max.dim_max", "dim"},              {"aten.max.unary_out", "default"},
    {"aten.max.out", "other"},                {"aten.mean.out", "dim"},
    {"aten.mean.dtype_out", "default"},       {"aten.median.dim_values", "dim"},
    {"aten.min.dim_min", "dim"},              {"aten.min.unary_out", "default"},
    {"aten.min.out", "other"},                {"aten.mul.out", "Tensor"},
    {"aten.multiply.out", "Tensor"},          {"aten.nanmedian.dim_values", "dim"},
    {"aten.norm.dtype_out", "ScalarOpt_dim_dtype"}, {"aten.norm.out", "ScalarOpt_dim"},
    {"aten.prod.int_out", "dim_int"},         {"aten.sort.values_stable", "stable"},
    {"aten.std.out", "dim"},                  {"aten.sub.out", "Tensor"},
    {"aten.subtract.out", "Tensor"},          {"aten.sum.IntList_out", "dim_IntList"},
    {"aten.true_divide.out", "Tensor"},       {"aten.var.out", "dim"},
    {"aten.xlogy.OutTensor", "Tensor"},       {"aten.xlogy.OutScalar_Other", "Scalar_Other"},
    {"aten.mode.values", "default"},          {"aten.topk.values", "default"},
    {"aten.kthvalue.values", "default"},
}};

/// Twins whose overload has another name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kOddTwins = {{
    {"aten._index_put_impl_.default", "aten.index_put.default"},
    {"aten.bernoulli_.float", "aten.bernoulli.p"},
    {"aten.float_power_.Tensor", "aten.float_power.Tensor_Tensor"},
    {"aten.float_power_.Scalar", "aten.float_power.Tensor_Scalar"},
    {"aten.floor_divide_.Tensor", "aten.floor_divide.default"},
    {"aten.ldexp_.default", "aten.ldexp.Tensor"},
    {"aten.normal_.default", "aten.normal_functional.default"},
    {"aten.pow_.Scalar", "aten.pow.Tensor_Scalar"},
    {"aten.pow_.Tensor", "aten.pow.Tensor_Tensor"},
    {"aten.xlogy_.Scalar_Other", "aten.xlogy.Scalar_Other"},
    {"aten.transpose_.default", "aten.transpose.int"},
    {"aten.squeeze_.dims", "aten.squeeze.dims"},
}};

constexpr std::array<std::string_view, 18> kComparing = {
    "eq_", "ne_", "lt_", "le_", "gt_", "ge_", "not_equal_", "less_", "less_equal_", "greater_", "greater_equal_",
    "logical_and_", "logical_or_", "logical_xor_", "logical_not_", "isnan_", "isinf_", "isfinite_"};

constexpr std::array<std::string_view, 43> kPromoting = {
    "add_", "sub_", "mul_", "div_", "pow_", "remainder_", "fmod_", "floor_divide_", "true_divide_", "multiply_",
    "divide_", "subtract_", "addcmul_", "addcdiv_", "atan2_", "arctan2_", "copysign_", "hypot_", "bitwise_and_",
    "bitwise_or_", "bitwise_xor_", "bitwise_left_shift_", "bitwise_right_shift_", "__iand__", "__ior__", "__ixor__",
    "__ilshift__", "__irshift__", "gcd_", "lcm_", "ldexp_", "nextafter_", "xlogy_", "clamp_", "clamp_min_",
    "clamp_max_", "clip_", "heaviside_", "igamma_", "igammac_", "fmin_", "fmax_", "float_power_"};
// clang-format on

int category(DType dtype) {
  if (is_complex(dtype)) return 3;
  if (is_float(dtype)) return 2;
  return is_bool(dtype) ? 0 : 1;
}

}  // namespace

bool is_in_place_name(std::string_view name) {
  if (name.starts_with("__i") && name.ends_with("__")) return name != "__is__" && name != "__isnot__";
  return name.size() > 1 && name.ends_with('_') && !name.ends_with("__");
}

bool changes_shape_only(std::string_view name) { return contains(kShapeOnly, name); }

bool is_refused(std::string_view name) { return contains(kRefused, name); }

std::span<const std::string_view> refused_operators() { return kRefused; }

bool is_out_overload(const trace::Node& node) {
  const std::string_view overload = overload_name(node.target);
  if (contains(kOutOverloads, overload) || overload.ends_with("_out")) return true;
  return std::any_of(node.kwargs.begin(), node.kwargs.end(),
                     [](const auto& entry) { return entry.first == "out"; });
}

std::string functional_twin(std::string_view target) {
  for (const auto& [in_place, twin] : kOddTwins)
    if (in_place == target) return std::string(twin);
  std::string name(operator_name(target));
  if (name.starts_with("__i"))
    name.erase(2, 1);
  else
    name.pop_back();
  return std::string(operator_namespace(target)) + "." + name + "." + std::string(overload_name(target));
}

std::string functional_of_out(std::string_view target) {
  const std::string operation =
      std::string(operator_namespace(target)) + "." + std::string(operator_name(target)) + ".";
  for (const auto& [out, twin] : kOddOuts)
    if (out == target) return operation + std::string(twin);
  const std::string_view overload = overload_name(target);
  if (overload.ends_with("_out")) return operation + std::string(overload.substr(0, overload.size() - 4));
  return operation + "default";
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (category(a) < category(b)) std::swap(a, b);
  if (category(a) != category(b)) {
    // A complex number of the float's width at least.
    if (is_complex(a) && is_float(b) && dtype_bytes(b) * 2 > dtype_bytes(a))
      return dtype_bytes(b) >= 8 ? DType::c128 : DType::c64;
    return a;
  }
  if (category(a) == 1) {
    const bool signed_a = is_signed_integer(a), signed_b = is_signed_integer(b);
    if (signed_a == signed_b) return dtype_bytes(a) >= dtype_bytes(b) ? a : b;
    const DType with_sign = signed_a ? a : b, without = signed_a ? b : a;
    if (dtype_bytes(with_sign) > dtype_bytes(without)) return with_sign;
    return dtype_bytes(without) == 1 ? DType::i16 : dtype_bytes(without) == 2 ? DType::i32 : DType::i64;
  }
  // The two 16-bit floats hold neither each other's range nor precision.
  if (dtype_bytes(a) == dtype_bytes(b)) return DType::f32;
  return dtype_bytes(a) > dtype_bytes(b) ? a : b;
}

std::optional<DType> promoted_dtype(const trace::Graph& graph, const trace::Node& node) {
  // An `out=` overload promotes as the in-place one does, which the lists name.
  const std::string name = std::string(operator_name(node.target)) + (is_out_overload(node) ? "_" : "");
  if (contains(kComparing, name)) return DType::b8;
  if (!contains(kPromoting, name)) return std::nullopt;
  // Tensors with axes, tensors without, and Python numbers each promote among themselves; a later group matters
  // only if its category is higher (torch.result_type).
  std::array<std::optional<DType>, 3> groups;
  const auto add = [&](std::size_t group, DType dtype) {
    groups[group] = groups[group] ? promote(*groups[group], dtype) : dtype;
  };
  const auto add_argument = [&](const Argument& argument) {
    if (const auto* id = argument.get<trace::ValueId>()) {
      if (const auto& meta = graph.values[*id].tensor) add(meta->sizes.empty() ? 1 : 0, meta->dtype);
    } else if (argument.get<double>() != nullptr) {
      add(2, DType::f32);
    } else if (argument.get<std::int64_t>() != nullptr) {
      add(2, DType::i64);
    } else if (argument.get<bool>() != nullptr) {
      add(2, DType::b8);
    }
  };
  for (const Argument& argument : node.args) add_argument(argument);
  // Keywords such as alpha and value scale an operand; they take its dtype. Tensors count wherever they stand.
  for (const auto& [keyword, argument] : node.kwargs)
    if (argument.get<trace::ValueId>() != nullptr && keyword != "out") add_argument(argument);
  std::optional<DType> result;
  for (const std::optional<DType>& group : groups) {
    if (!group) continue;
    if (!result || category(*group) > category(*result)) result = result ? promote(*result, *group) : *group;
  }
  return result;
}

}  // namespace pallascope::functional
