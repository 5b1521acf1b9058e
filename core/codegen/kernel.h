// Room: codegen. The body of one Pallas kernel.
#pragma once

#include <string>
#include <vector>

#include "core/codegen/indexing.h"
#include "core/codegen/module.h"
#include "core/codegen/text.h"

namespace pallascope::codegen {

/// A ref of the kernel: a buffer seen with a shape.
struct Parameter {
  std::string name;        ///< `in_ptr0`, `out_ptr0`, `check_ptr0`
  loop::BufferId buffer;   ///< invalid for a check
  Shape shape;
  DType dtype = DType::f32;
};

/// What the kernel checks: `check_ptr<k>` holds 1 if all values were legal; else `call` raises `error`.
struct RuntimeCheck {
  std::string error;    ///< a Python exception: `IndexError`, `RuntimeError`
  std::string message;
};

struct KernelText {
  std::vector<Parameter> inputs, outputs;  ///< outputs hold the checks last
  std::vector<RuntimeCheck> checks;
  Text body;                               ///< the statements, indented; every origin has kernel 0, as in a Piece
  std::vector<AccessText> accesses;
};

/// Depends on the kernel's nests and outputs alone.
KernelText kernel_text(const trace::Graph& graph, const loop::Program& program, const schedule::Kernel& kernel);
inline KernelText kernel_text(const trace::Graph& graph, const loop::Program& program, const schedule::State& state,
                              schedule::KernelId kernel) {
  return kernel_text(graph, program, state.kernels[kernel]);
}

/// A Python literal of `scalar` for `dtype`.
std::string literal_text(const loop::Scalar& scalar, DType dtype);

}  // namespace pallascope::codegen
