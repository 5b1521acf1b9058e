// Room: views. All decisions as ticks; dragging scrubs.
#pragma once

#include <memory>

#include "app/model/strip.h"
#include "app/views/context.h"

namespace pallascope::views {

class StripBar {
 public:
  /// Draws into the current ImGui window.
  void draw(Context& context);

 private:
  void draw_ticks(const Context& context, ImDrawList& draw, ImVec2 at, float height) const;
  void draw_marks(const Context& context, ImDrawList& draw, ImVec2 at, float height) const;
  void act(Context& context, float x);
  void show_tip(const Context& context, const model::Tick& tick) const;
  void step(Context& context, bool forward);

  std::shared_ptr<const model::DecisionIndex> index_;  ///< that the strip was made of
  model::Strip strip_;
  bool dragging_ = false;
};

}  // namespace pallascope::views
