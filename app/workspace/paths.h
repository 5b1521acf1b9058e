// Room: workspace. Where the installation's files are.
#pragma once

#include <string>

namespace pallascope::workspace {

/// The folder of the bundled examples' parent, without a slash at its end. Asked here, and not by a definition in each
/// file that needs it, so that a checkout in another folder compiles the same files.
std::string assets_folder();

}  // namespace pallascope::workspace
