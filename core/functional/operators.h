// Room: functional. What is known of mutating ATen operators by name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/dtype.h"
#include "core/trace/graph.h"

namespace pallascope::functional {

/// `add_`, `__iand__`: ends with one underscore, or is Python's in-place operator.
bool is_in_place_name(std::string_view operator_name);
/// `t_`, `squeeze_`, ...: changes sizes and strides of its argument, not its elements.
bool changes_shape_only(std::string_view operator_name);
/// Mutating operators that have no functional form here (several arguments written, storage replaced, ...).
bool is_refused(std::string_view operator_name);
std::span<const std::string_view> refused_operators();
inline constexpr std::string_view refused_why = "changes its arguments in a way that has no functional form";
/// Whether the overload writes to arguments that the caller gives for the results.
bool is_out_overload(const trace::Node& node);

/// The overload that computes what an `out=` overload writes: `aten.sum.dim_IntList` for `aten.sum.IntList_out`.
std::string functional_of_out(std::string_view target);

/// The overload that computes what an in-place overload writes: `aten.add.Tensor` for `aten.add_.Tensor`.
std::string functional_twin(std::string_view target);

/// The dtype in which a twin computes, where the operator promotes its arguments or compares; the in-place form
/// then casts to its argument's dtype. nullopt when the twin keeps the dtype of its first argument.
std::optional<DType> promoted_dtype(const trace::Graph& graph, const trace::Node& node);

/// PyTorch's promotion of two dtypes.
DType promote(DType a, DType b);

}  // namespace pallascope::functional
