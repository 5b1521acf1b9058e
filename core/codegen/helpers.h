// Room: codegen. Python functions that kernels call, each written into a module only if one of its kernels does.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace pallascope::codegen {

/// Adds the names of the helpers that a line of Python calls, and of those that they call, to `found`.
void find_helpers(std::string_view text, std::set<std::string_view>& found);

/// The functions named, in an order in which each stands after what it calls.
std::string helpers_text(const std::set<std::string_view>& names);

}  // namespace pallascope::codegen
