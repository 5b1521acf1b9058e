// Room: report. How kernels walk memory: every load and store with its expression, class, strides, plan and bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/codegen/module.h"
#include "core/report/json.h"
#include "core/session/compilation.h"

namespace pallascope::report {

/// Bytes of the distinct elements that an access touches (an upper bound unless the access says it is exact).
std::int64_t bytes_touched(const loop::Program& program, const codegen::KernelAccess& access);
/// Bytes from the first element touched to the last: what must be near for the access to be served.
std::int64_t bytes_spanned(const loop::Program& program, const codegen::KernelAccess& access);

/// Positions in `module.accesses` of the loads and stores that a kernel makes.
std::vector<std::size_t> accesses_of_kernel(const codegen::Module& module, schedule::KernelId kernel);
/// ... that an ATen node makes itself, else (for a node that only computes) those of the nests that it is part of.
std::vector<std::size_t> accesses_of_node(const session::Snapshot& snapshot, trace::NodeId node);
/// ... that reach memory in an order that hardware serves badly (strided, gather, general, overlapping), most bytes first.
std::vector<std::size_t> wasteful_accesses(const session::Snapshot& snapshot);

/// The text of one plan: `as it is`, or its steps: `view [8,64] → [:, 0:64:2] → transpose (1,0) → shape [32,8]`.
std::string plan_text(const index::Access& access);

/// Several lines for each of the accesses at `positions`.
std::string accesses_text(const session::Compilation& compilation, const session::Snapshot& snapshot,
                          const std::vector<std::size_t>& positions);
/// Keys of each: kernel, nest, node, statement, line, store, on_value, buffer, parameter, source, expression, range,
/// axes, class, letter, words, affine, strides, offset, bounds, in_bounds, injective, distinct_elements,
/// distinct_exact, bytes, bytes_spanned, plan.
Json accesses_json(const session::Compilation& compilation, const session::Snapshot& snapshot,
                   const std::vector<std::size_t>& positions);

/// The operands of a library call: how each is read as a view of its buffer.
std::string library_call_text(const session::Compilation& compilation, const session::Snapshot& snapshot,
                              const loop::LibraryCall& call);
Json library_call_json(const session::Snapshot& snapshot, const loop::LibraryCall& call);

}  // namespace pallascope::report
