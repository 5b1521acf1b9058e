// Room: codegen. The one indexing helper: an access plan as JAX source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/index/access.h"

namespace pallascope::codegen {

using Shape = std::vector<std::int64_t>;

/// `(8, 16)`, `(4,)`, `()`.
std::string tuple_text(const Shape& shape);
/// `[...]`, `[:, ::2]`, `[1:2, 0:4]`: the slices with positive steps; reversed dimensions are taken forwards.
std::string subscript_text(const Shape& view_shape, const std::vector<index::Slice>& slices);

/// The source that reads `name` by `plan`. `shape` is what `name` is shaped like; `is_ref` tells a Pallas ref (to be
/// subscripted) from a value.
///
/// Worked example, in_ptr0 of shape (8, 16) read transposed over axes j < 16, i < 8: view_shape (8, 16), no slice,
/// permutation (1, 0), so `in_ptr0[...].T`. Every other column: `in_ptr0[:, ::2]`. A row seen as one of a batch:
/// `jnp.reshape(in_ptr0[...], (1, 8, 16))`, unless the call boundary shapes the ref so, which costs nothing.
std::string read_text(const std::string& name, bool is_ref, const Shape& shape, const index::Plan& plan);

/// The statement that stores `value` (shaped `plan.result_shape`) into the ref `name` of shape `plan.view_shape`.
std::string write_text(const std::string& name, const std::string& value, const index::Plan& plan);

}  // namespace pallascope::codegen
