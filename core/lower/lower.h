// Room: lower. ATen operators to loop nests, library calls and index maps; one file per operator family.
// Takes: a functional trace::Graph.
// Gives: loop::Program, with what became of each node.
// May use: base, trace, index, loop.
// Never: fuses, drops a cast that the user wrote, decides anything by comparing shapes, hides an operator that it
//   leaves to PyTorch.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/loop/program.h"
#include "core/trace/graph.h"

namespace pallascope::lower {

/// Why a node is a torch call in a program that is lowered only so far.
inline constexpr const char* not_lowered = "not lowered at this decision";

struct Options {
  /// Only the first `limit` nodes are lowered, the rest are torch calls: the program at an early decision.
  std::optional<std::size_t> limit;
};

/// Lowers `graph`. Fails with a diagnostic for a graph that makes no sense (a view outside its storage, say); an
/// operator without a lowering is a torch call, never an error.
Result<loop::Program> lower(const trace::Graph& graph, const Options& options = {});

/// One row of the operator table.
struct OperatorRow {
  std::string_view op;      ///< `aten.add.Tensor`
  std::string_view family;  ///< `pointwise`, `reduction`, ...
};
/// Every overload that has a lowering, by name.
std::vector<OperatorRow> operator_table();

}  // namespace pallascope::lower
