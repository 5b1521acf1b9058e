// Room: report. What the host said of a run, for people. Its JSON is passed on as it came; fields may be missing.
#pragma once

#include <cstddef>
#include <string>

#include "core/report/json.h"

namespace pallascope::report {

/// The result of a `check`: a row an output and changed argument, with the worse of the two modes' figures, what is
/// wrong with a failed one, then the verdict with the decision, the place and the time. `full`: each mode's figures
/// (largest ULP distance, RMSE of ours and of eager against float64, NaN and infinity counts, first and worst element).
/// Beneath a row whose figures have them: the picture of where the two differ and the histogram of by how much. With
/// the rows of `buffers` the first divergence stands on top, then the buffers in execution order, then the outputs.
std::string check_text(const Json& result, std::size_t decision, bool full);
/// The result of a `run`: a row an output with its shape, range, mean and first values.
std::string run_text(const Json& result, std::size_t decision);

/// The picture of a comparison (picture.py says the keys) on a terminal: at most 16 rows of 64 characters in a frame,
/// each the largest difference of its cells on a log scale, and what the signs mean. One line when nothing differs;
/// empty without a picture.
std::string picture_text(const Json& picture, const std::string& indent);
/// The histogram of a comparison, a row a decade with a bar: `1e-07..1e-06  ████ 123`; empty without one.
std::string histogram_text(const Json& histogram, const std::string& indent);

/// `4.8e-07`, `0`, `inf`; `–` for null.
std::string figure_text(const Json& value);

}  // namespace pallascope::report
