#include "core/loop/op.h"

#include <array>

namespace pallascope::loop {
namespace {

constexpr std::array kOps = {
#define PALLASCOPE_OP_ROW(name, arity, text) ComputeOpInfo{#name, arity, text},
    PALLASCOPE_COMPUTE_OPS(PALLASCOPE_OP_ROW)
#undef PALLASCOPE_OP_ROW
};

constexpr std::array<std::string_view, 8> kReduce = {"sum", "prod", "max", "min", "any", "all", "argmax", "argmin"};

}  // namespace

const ComputeOpInfo& info(ComputeOp op) { return kOps.at(static_cast<std::size_t>(op)); }

std::string_view scan_name(ScanOp op) {
  constexpr std::array<std::string_view, 5> names = {"sum", "prod", "max", "min", "logsumexp"};
  return names.at(static_cast<std::size_t>(op));
}

std::string_view store_mode_name(StoreMode mode) {
  constexpr std::array<std::string_view, 6> names = {"plain", "set", "add", "mul", "max", "min"};
  return names.at(static_cast<std::size_t>(mode));
}

std::string_view reduce_name(ReduceOp op) { return kReduce.at(static_cast<std::size_t>(op)); }

}  // namespace pallascope::loop
