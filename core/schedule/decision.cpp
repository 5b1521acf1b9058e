#include "core/schedule/decision.h"

namespace pallascope::schedule {

std::string_view kind_name(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::lower: return "lower";
    case DecisionKind::inline_producer: return "inline";
    case DecisionKind::fuse: return "fuse";
  }
  return "lower";
}

std::string_view reason_name(Reason reason) {
  switch (reason) {
    case Reason::lowered_to_kernel: return "lowered_to_kernel";
    case Reason::lowered_to_view: return "lowered_to_view";
    case Reason::left_to_library: return "left_to_library";
    case Reason::left_to_torch: return "left_to_torch";
    case Reason::inlined_no_loads: return "inlined_no_loads";
    case Reason::inlined_index: return "inlined_index";
    case Reason::kept_reduction: return "kept_reduction";
    case Reason::kept_scan: return "kept_scan";
    case Reason::kept_output: return "kept_output";
    case Reason::kept_identity: return "kept_identity";
    case Reason::kept_too_costly: return "kept_too_costly";
    case Reason::fused_vertical: return "fused_vertical";
    case Reason::fused_horizontal: return "fused_horizontal";
    case Reason::library_boundary: return "library_boundary";
    case Reason::torch_boundary: return "torch_boundary";
    case Reason::cycle: return "cycle";
    case Reason::common_grid: return "common_grid";
    case Reason::exceeds_memory: return "exceeds_memory";
    case Reason::not_expressible: return "not_expressible";
  }
  return "";
}

std::string_view reason_words(Reason reason) {
  switch (reason) {
    case Reason::lowered_to_kernel: return "the operator became loop nests";
    case Reason::lowered_to_view: return "the operator only changes how indices are counted: no code";
    case Reason::left_to_library: return "a matrix product: left to jax.lax inside the JAX program";
    case Reason::left_to_torch: return "no lowering: PyTorch runs it, and the JAX program is cut there";
    case Reason::inlined_no_loads: return "the producer reads nothing, so computing it again is free";
    case Reason::inlined_index: return "a consumer reads a part of it or out of order: its inputs are read there instead";
    case Reason::kept_reduction: return "the producer reduces; inlining would repeat the reduction for every element";
    case Reason::kept_scan: return "the producer scans an axis; inlining would repeat the scan for every element";
    case Reason::kept_output: return "its buffer is an output, or feeds a library or torch call";
    case Reason::kept_identity: return "consumers read it whole and in order: fusion shares it without computing it again";
    case Reason::kept_too_costly: return "inlining would compute it too many times";
    case Reason::fused_vertical: return "the producer's value is used where it is made";
    case Reason::fused_horizontal: return "both read the same buffer: it is loaded once";
    case Reason::library_boundary: return "one side is a library call, which is no part of a kernel";
    case Reason::torch_boundary: return "one side runs in PyTorch, outside of the JAX program";
    case Reason::cycle: return "another step between the two needs the first and feeds the second";
    case Reason::common_grid: return "too large to hold whole, and no axis is left that both could be tiled on";
    case Reason::exceeds_memory: return "even the smallest tile does not fit on chip";
    case Reason::not_expressible: return "the consumer would have to slice or gather from a value, which kernels can only do from a ref";
  }
  return "";
}

std::string_view condition_name(Condition condition) {
  switch (condition) {
    case Condition::order_and_aliasing: return "order and aliasing";
    case Condition::common_grid: return "common grid";
    case Condition::fits_on_chip: return "fits on chip";
    case Condition::expressible: return "expressible";
  }
  return "";
}

}  // namespace pallascope::schedule
