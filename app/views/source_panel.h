// Room: views. Linked columns of source with access classes in the gutter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "app/model/find_lines.h"
#include "app/views/code_view.h"
#include "app/views/context.h"

namespace pallascope::views {

/// The model's Python, the loops and the generated module. Items: `model`, `loops`, `Pallas`, `##find`, `##difference`,
/// `##split0`, `##split1`; in the columns `##pallas:118`, `##pallas:118:access`, `##pallas:fold:149`, `##head`.
class SourcePanel {
 public:
  /// Draws into the current ImGui window.
  void draw(Context& context);

 private:
  static constexpr std::size_t count = model::column_kinds.size();

  void follow(Context& context);
  void draw_bar(Context& context);
  void draw_toggles(Context& context);
  void draw_find(Context& context, float width);
  void draw_difference(Context& context);
  void draw_columns(Context& context, ImVec2 size);
  void splitter(const Context& context, std::size_t index, std::size_t before, std::size_t after, float room,
                bool beside);
  void act(Context& context, std::size_t at, const CodeAction& action);
  void draw_key(const Context& context, float height);
  void restart_find(const Context& context);
  void go_to_match(std::ptrdiff_t step);
  void show(std::size_t at, std::size_t line) { views_.at(at).show(line); }
  [[nodiscard]] std::array<float, count>& weights(bool beside) { return beside ? beside_ : stacked_; }

  std::array<CodeView, count> views_{CodeView(model::ColumnKind::model), CodeView(model::ColumnKind::loops),
                                     CodeView(model::ColumnKind::pallas)};
  std::array<bool, count> shown_{true, false, true};
  std::array<float, count> stacked_ = stacked_at_first, beside_ = beside_at_first;
  static constexpr std::array<float, count> stacked_at_first{0.30F, 0.35F, 0.70F},
      beside_at_first{0.9F, 1.0F, 1.1F};

  std::shared_ptr<const workspace::Scene> scene_;
  std::uint64_t selection_number_ = 0;
  std::array<bool, count> to_focus_{};  ///< columns that scroll to the selection once its detail is there
  bool focused_early_ = false;          ///< they did so in a scene that was about to be left
  bool to_change_ = false;              ///< ... and the module to what a step changed
  std::optional<std::size_t> clicked_;  ///< the column that a click is from, in this frame
  std::size_t last_ = 2;                ///< the column that was clicked last: Ctrl+C copies from it
  model::Selection previewed_;

  std::array<char, 256> find_{};
  model::LineFinder finder_;
  std::optional<std::size_t> match_;
  std::shared_ptr<const model::SourceColumns> found_in_;
  bool refocus_ = false, scroll_to_match_ = false;
  std::string text_;  ///< of this frame, kept so that no frame allocates
};

}  // namespace pallascope::views
