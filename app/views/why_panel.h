// Room: views. The four conditions and the aligned index expressions of a decision.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/views/context.h"

namespace pallascope::views {

/// IDs: `##condition0` .. `##condition3`, `##step<k>` (chips of a path), `##terms<k>` (tables), `n21` in the ID of its
/// side's title (`Left side/n21`), `##previous`, `##next` and `##list` of the chooser.
class WhyPanel {
 public:
  /// Draws into the current ImGui window.
  void draw(Context& context);

 private:
  void take(const std::shared_ptr<const model::WhyView>& why);
  void draw_title(Context& context, const model::WhyView& why);
  float draw_chooser(Context& context, const model::WhyView& why, float right, float y, float height);
  void choose(Context& context, std::size_t position);
  void draw_sentence(Context& context, const model::WhyView& why);
  void draw_legal_if(Context& context, const model::WhyView& why);
  void draw_conditions(Context& context, const model::WhyView& why, float width);
  void draw_condition(Context& context, const model::WhyCondition& condition, std::size_t number,
                      float width);
  void draw_steps(Context& context, const std::vector<model::WhyStep>& steps, bool arrows, float width);
  void draw_indices(Context& context, const model::WhyIndices& indices, std::size_t number, float width);
  void draw_terms(Context& context, const model::WhyIndices& indices, std::size_t number, float width);
  void draw_figures(Context& context, const model::WhyView& why, float width);
  void draw_side(Context& context, const model::WhySide& side, float width);

  std::shared_ptr<const model::WhyView> shown_;
  /// The decisions that the chooser goes through: kept while one of them is shown, although choosing one makes it the
  /// selection.
  std::vector<schedule::DecisionId> choices_;
  std::string about_;
  bool all_nodes_ = false, all_indices_ = false;
};

}  // namespace pallascope::views
