// Room: repl. What Tab offers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "app/repl/session.h"

namespace pallascope::repl {

struct Completion {
  std::size_t start = 0;                ///< where the word under the cursor begins in the line
  std::vector<std::string> candidates;  ///< whole words, quoted as the line needs it, in order
};

/// Completes the end of `line` (the text up to the cursor): commands, their options and words, `help`'s commands, ids,
/// names, model lines, files. Python lines get nothing.
Completion complete(Session& session, std::string_view line);

/// The longest beginning that all have in common.
std::string common_beginning(const std::vector<std::string>& words);
/// Whether a space should follow a candidate that is the only one: not after a folder or `kind=`.
bool is_whole(std::string_view candidate);

}  // namespace pallascope::repl
