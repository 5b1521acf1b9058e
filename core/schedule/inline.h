// Room: schedule. Inlining: a producer's statements in place of its consumers' loads.
#pragma once

#include <vector>

#include "core/schedule/schedule.h"

namespace pallascope::schedule {

/// The nest of each step while the log is made: invalid for a call, for a producer that was inlined away,
/// and for a nest whose result nothing reads.
struct LiveNests {
  std::vector<loop::NestId> nest_of_step;                       ///< one a step of the program
  std::vector<std::vector<loop::StepId>> writers, readers;      ///< one a buffer
  std::vector<bool> escapes;                                    ///< one a buffer: an output, or read by a call
  std::vector<loop::StepId> next_ordered;                       ///< one a step: the next call that must come after it
};
LiveNests live_nests(const loop::Program& program);

/// Whether a nest must run although nothing reads what it stores: it checks values, and PyTorch would raise.
bool checks_values(const loop::Nest& nest);

/// Whether a consumer can read a value (not a ref) by this access: the plan takes no slice.
bool reads_value(const index::Access& access);

/// Decides for each pointwise producer, in program order, whether its consumers compute it themselves; adds the
/// consumers' new nests to `schedule.program` and the decisions to the log.
void inline_producers(Schedule& schedule, LiveNests& live);

}  // namespace pallascope::schedule
