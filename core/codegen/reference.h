// Room: codegen. The traced graph as plain PyTorch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/codegen/text.h"
#include "core/trace/graph.h"

namespace pallascope::codegen {

/// A Python variable for each value of `graph`: letters, digits and underscores, no keyword, no name of the module's.
std::vector<std::string> value_names(const trace::Graph& graph);

/// Puts the text of a tensor.
using PutValue = std::function<void(Out&, trace::ValueId)>;

/// Puts an argument as Python.
void put_argument(Out& out, const trace::Argument& argument, const PutValue& value);
/// An argument that holds no tensor as Python.
std::string argument_text(const trace::Argument& argument);

/// Puts `torch.ops.aten.sum.dim_IntList(x, [1], keepdim=True)`.
void put_call(Out& out, const trace::Node& node, const PutValue& value);

/// `def reference(args)`: every node in order, in-place operators included.
Text reference_text(const trace::Graph& graph);

}  // namespace pallascope::codegen
