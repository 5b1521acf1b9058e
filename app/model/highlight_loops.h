// Room: model. What each piece of a line of the loops column is, so that a view can colour it.
#pragma once

#include <string_view>
#include <vector>

#include "app/model/highlight.h"

namespace pallascope::model {

/// Spans of one line of the loops column, ascending and apart. What is in brackets is an index expression: its axes are
/// `type`, as in a nest's head. Values (`%3`) are `parameter`, buffers `plain`, loads and stores `keyword`, operations
/// `call`, names of kernels and nests `function`, dtypes and `(reduced)` `comment`.
[[nodiscard]] std::vector<SyntaxSpan> highlight_loops(std::string_view line);

}  // namespace pallascope::model
