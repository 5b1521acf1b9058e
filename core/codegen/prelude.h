// Room: codegen. The fixed Python text of every module: imports, the torch/JAX edge, the self-check.
#pragma once

#include <string_view>

namespace pallascope::codegen {

/// Imports and helpers that stand in front of the kernels.
std::string_view prelude();
/// The self-check that runs under `__main__`; needs INPUTS, call and reference.
std::string_view self_check();

}  // namespace pallascope::codegen
