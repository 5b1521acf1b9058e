// Room: views. The page of keys and signs.
#pragma once

#include "app/views/context.h"

namespace pallascope::views {

/// Opens the page when UiState asks for it, and draws it while it is open; outside of any window.
void draw_help_page(Context& context);

}  // namespace pallascope::views
