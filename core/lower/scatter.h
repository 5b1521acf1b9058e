// Room: lower. A result that nests fill through indices.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/lower/builder.h"

namespace pallascope::lower {

/// Whether PyTorch takes the tensor as an index (a byte tensor is a mask).
bool integer_index(const Tensor& index);
std::int64_t element_count(const Sizes& sizes);
/// Rank 0 counts as one element along dimension 0.
Tensor at_least_1d(Builder& builder, const Tensor& x);

/// Where the points of a scatter go: `position` gives the place in the target for the nest's index.
struct Points {
  Sizes sizes;
  std::function<Index(NestBuilder&)> position;
};

/// A new buffer that starts as `body`, laid out as the node's result where it has its sizes.
Tensor scatter_target(Call& call, std::string_view what, const Sizes& sizes, DType dtype,
                      const std::function<int(NestBuilder&)>& body);
/// One that starts as a copy of `self`.
Tensor kept(Call& call, const Tensor& self, DType dtype);
/// One that starts with the same number everywhere.
Tensor filled(Call& call, std::string_view what, const Sizes& sizes, DType dtype, double value);

/// A nest that stores `value` at each of the points, in their order.
void scatter_points(Call& call, std::string name, const Tensor& target, const Points& points, loop::StoreMode mode,
                    const std::function<int(NestBuilder&)>& value);

/// How many elements of `mask` are true up to and with each, in row-major order, as i64 of the mask's sizes.
Tensor places_of(Call& call, const Tensor& mask);

/// Why `select_scatter` and its kin are left to PyTorch, or nothing: they copy the tensor with its strides, so where its
/// elements lie on each other a write changes all of them.
std::optional<Lowered> leave_shared_elements(const Call& call);

/// The target becomes the node's result: cast, and with its sizes.
Lowered finish_scatter(Call& call, const Tensor& target);

}  // namespace pallascope::lower
