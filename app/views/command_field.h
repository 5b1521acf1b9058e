// Room: views. A text field for commands: Tab completes, ↑ and ↓ go through what was typed before, Python goes on.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/views/context.h"

namespace pallascope::views {

class CommandField {
 public:
  struct Look {
    const char* id = "##input";
    const char* hint = "";    ///< shown while it is empty
    std::string_view before;  ///< stands in front of the text for completion, unseen: `open `
    float width = 0;          ///< pixels
    bool lines = false;       ///< Python blocks go on to an empty line, and the field grows
    bool history = false;
  };

  /// The text when Enter has finished it; the field is empty then.
  std::optional<std::string> draw(Context& context, const Look& look);
  /// Puts the keyboard focus into the field in the next frame, behind the text.
  void focus() { focus_ = true; }
  /// Takes `focus` back: something else asks for it.
  void leave() { focus_ = false; }
  void set(std::string text);
  [[nodiscard]] const std::string& value() const { return text_; }
  /// Whether it had the keyboard focus in the last frame.
  [[nodiscard]] bool active() const { return active_; }
  /// Pixels that the next `draw` will take.
  [[nodiscard]] float height() const;

 private:
  void edit(Context& context, const Look& look, ImGuiInputTextCallbackData& data);
  void complete(Context& context, const Look& look, ImGuiInputTextCallbackData& data);
  void choose(std::size_t which, ImGuiInputTextCallbackData& data);
  void recall(const Context& context, int direction, ImGuiInputTextCallbackData& data);
  void draw_candidates(Context& context, ImVec2 at, ImVec2 size);
  void close_candidates();

  std::string text_;
  bool focus_ = false, active_ = false, to_end_ = false;
  bool on_first_line_ = true, on_last_line_ = true;  ///< the cursor, when the last key was pressed
  std::optional<std::size_t> recalled_;              ///< of the history, from the newest
  std::string draft_;                                ///< what was typed before ↑
  // Completion: while candidates are shown.
  std::vector<std::string> candidates_;
  std::optional<std::size_t> chosen_;
  std::size_t start_ = 0;              ///< where the word that they replace begins in the text
  std::string typed_;                  ///< the text as it was before one was chosen
  std::string shown_text_;             ///< the text that they belong to: any other closes the list
  std::optional<std::size_t> picked_;  ///< by the pointer, to be put in by the next callback
};

}  // namespace pallascope::views
