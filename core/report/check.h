// Room: report. What the host said of a run, for people. Its JSON is passed on as it came; fields may be missing.
#pragma once

#include <cstddef>
#include <string>

#include "core/report/json.h"

namespace pallascope::report {

/// The result of a `check`: a row an output and changed argument, with the worse of the two modes' figures, what is
/// wrong with a failed one, then the verdict with the decision, the place and the time. `full`: each mode's figures
/// (largest ULP distance, RMSE of ours and of eager against float64, NaN and infinity counts, first and worst element).
std::string check_text(const Json& result, std::size_t decision, bool full);
/// The result of a `run`: a row an output with its shape, range, mean and first values.
std::string run_text(const Json& result, std::size_t decision);

/// `4.8e-07`, `0`, `inf`; `–` for null.
std::string figure_text(const Json& value);

}  // namespace pallascope::report
