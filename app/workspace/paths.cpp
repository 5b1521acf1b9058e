#include "app/workspace/paths.h"

namespace pallascope::workspace {

std::string assets_folder() { return PALLASCOPE_ASSETS_DIR; }

}  // namespace pallascope::workspace
