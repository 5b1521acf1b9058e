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
  std::string op;           ///< `aten.add.Tensor`; without an overload for what is refused under every overload
  std::string_view family;  ///< `pointwise`, `reduction`, ...
  /// What becomes of it where its arguments allow; none: a graph that holds it is refused.
  std::optional<loop::Outcome> outcome;
  std::vector<DType> dtypes;  ///< of the tensor that carries its values, or of its result; those that PyTorch takes as well
  std::string_view why;       ///< for torch and refused ones
  [[nodiscard]] std::string_view outcome_text() const;  ///< `kernel`, `view`, `library`, `torch` or `unsupported`
};
/// Every overload that has a row in the registry, and the operators that are refused, by name. What is in none of
/// them is a torch call.
std::vector<OperatorRow> operator_table();

}  // namespace pallascope::lower
