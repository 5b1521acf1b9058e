// Room: lower. What families that end in calls of JAX's library share: operands as views, products, contractions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/lower/builder.h"

namespace pallascope::lower {

/// An operand that JAX views can take from its buffer; else a copy that is.
Tensor library_operand(Builder& builder, const Tensor& x, std::string_view name);

/// The dimensions of `x` from the outermost in memory to the innermost, so that an operand can be taken as it lies.
std::vector<std::size_t> order_in_memory(Builder& builder, const Tensor& x);

/// A new buffer for a result of `sizes` that lies in memory in `order` (outermost first), seen with `sizes`.
Tensor ordered_result(Builder& builder, DType dtype, const Sizes& sizes, const std::vector<std::size_t>& order);

/// Adds the call, unless its outputs have no element.
void add_library_call(Call& call, loop::LibraryFunction function, const std::vector<Tensor>& operands,
                      const std::vector<Tensor>& results);

/// Whether the node became a library call, or nests alone.
Lowered as_made(const Call& call);

/// lhs[batch.., m, k] @ rhs[batch.., k, n], batch dimensions broadcast. Sums of 16-bit operands are f32 where `result`
/// is; what follows in the same operator rounds once.
Tensor product(Call& call, Tensor lhs, Tensor rhs, DType result);

/// `x` with its last two dimensions exchanged.
Tensor transposed(Builder& builder, const Tensor& x);
/// x[.., k] as a matrix [rows, k].
Tensor as_matrix(Builder& builder, const Tensor& x);
/// The tensor cast to `dtype` by a nest; itself if it has that dtype.
Tensor cast_tensor(Builder& builder, const Tensor& x, DType dtype, const std::string& name, const trace::TensorMeta* like = nullptr);
/// A tensor that is `value` everywhere.
Tensor filled(Builder& builder, const std::string& name, const Sizes& sizes, DType dtype, double value);

/// A tensor whose dimensions have names: any numbers, each once.
using Labels = std::vector<int>;
struct Labelled {
  Tensor tensor;
  Labels labels;
};
/// The sum over labels that are not in `kept` of the product of both. Labels of both that are kept are batches. The
/// result's labels are batches, then a's, then b's.
Labelled contract(Call& call, const Labelled& a, const Labelled& b, const Labels& kept, DType result);
/// `x` with its dimensions in the order of `labels`, which are the same.
Tensor arranged(Builder& builder, const Labelled& x, const Labels& labels);

}  // namespace pallascope::lower
