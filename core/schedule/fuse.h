// Room: schedule. Fusion: candidates from shared buffers, best first, merged one at a time.
#pragma once

#include "core/schedule/inline.h"
#include "core/schedule/schedule.h"

namespace pallascope::schedule {

/// Steps that several nests of one buffer belong to stay together from the start: a region of a buffer cannot be
/// stored by one kernel and the rest by another. Pairs of steps.
std::vector<std::pair<loop::StepId, loop::StepId>> born_together(const LiveNests& live);

void fuse(Schedule& schedule, const LiveNests& live, const Options& options);

}  // namespace pallascope::schedule
