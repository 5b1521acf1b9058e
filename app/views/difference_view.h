// Room: views. The picture of a difference with its scale, and its histogram.
#pragma once

#include "app/model/check_view.h"
#include "app/views/context.h"

namespace pallascope::views {

/// Draws into `room` pixels from the cursor on: the cells, numbers along the edges, the scale, what the signs mean.
void draw_picture(const Context& context, const model::DifferencePicture& picture, ImVec2 room);
/// Bars by decade, exact ones and NaN apart. Colours are those of `picture`'s scale where there is one.
void draw_histogram(const Context& context, const model::DifferenceHistogram& histogram,
                    const model::DifferencePicture* picture, ImVec2 room);

}  // namespace pallascope::views
