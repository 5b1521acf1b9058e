// Room: lower. Operators that are left to PyTorch, and what crosses the boundary to them.
#pragma once

#include <functional>
#include <optional>

#include "core/lower/builder.h"

namespace pallascope::lower {

/// The view of a tensor of `meta` whose buffer is dense in `layout.dims`.
loop::View view_of(Builder& builder, loop::BufferId buffer, const trace::TensorMeta& meta, const loop::BoundaryLayout& layout);

/// A view that torch.as_strided can make of a dense buffer: affine, no negative stride.
bool torch_can_view(const index::Context& context, const loop::View& view);

/// `value` as an argument of `node`: its view, or that of a copy that is made (a step) where torch has no such view.
loop::View torch_argument(Builder& builder, const trace::Node& node, trace::ValueId value);

/// The call of `node`, still without results. `argument` is asked once for each distinct value among its arguments;
/// it gives nothing for one that is no tensor. as_strided takes the owner of its argument's memory as well.
loop::TorchCall torch_call(const trace::Graph& graph, const trace::Node& node, trace::NodeId id,
                           const std::function<std::optional<loop::View>(trace::ValueId)>& argument);

/// New buffers for the results of `node`, put into `call`; their values are defined.
void add_results(Builder& builder, const trace::Node& node, loop::TorchCall& call);

}  // namespace pallascope::lower
