#include "core/target/target.h"

namespace pallascope::target {

Model default_model() { return Model{}; }

}  // namespace pallascope::target
