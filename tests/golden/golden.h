// Golden files: expected/<name>, compared line by line, written anew by `test_golden --update`.
#pragma once

#include <string>

namespace pallascope::golden {

/// Compares `text` with tests/golden/expected/`name`; a difference is a test failure that shows the changed lines and
/// how to update. With --update (or PALLASCOPE_UPDATE_GOLDEN=1) the file is written instead.
void expect_golden(const std::string& name, const std::string& text);

/// Whether golden files are written instead of compared.
bool& updating();

}  // namespace pallascope::golden
