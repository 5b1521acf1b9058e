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

/// `torch.ops.aten.add.Tensor`, for `aten.add.Tensor`.
std::string operator_text(const std::string& target);

/// An argument as Python; `value` gives the text of a tensor.
std::string argument_text(const trace::Argument& argument, const std::function<std::string(trace::ValueId)>& value);

/// `(self, 2, dim=1)` without the parentheses.
std::string arguments_text(const trace::Node& node, const std::function<std::string(trace::ValueId)>& value);

/// `def reference(args)`: every node in order, in-place operators included.
Text reference_text(const trace::Graph& graph);

}  // namespace pallascope::codegen
