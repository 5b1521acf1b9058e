// Room: views. One column of source: gutter, text, folds, marks; only the lines that can be seen cost anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/model/find_lines.h"
#include "app/model/source_outline.h"
#include "app/views/code_text.h"
#include "app/views/context.h"

namespace pallascope::views {

/// What a column shows besides its text, for one frame. Pointers may be null.
struct CodeMarks {
  std::shared_ptr<const workspace::Detail> linked;  ///< of the selection
  const model::LinkedLines* preview = nullptr;      ///< of what the pointer is over
  bool difference = true;
  std::string_view needle;  ///< what is searched, in lower case
  const std::vector<model::Match>* matches = nullptr;
  const model::Match* match = nullptr;  ///< the one that is gone to
};

/// What a person did in a column in this frame.
struct CodeAction {
  std::optional<std::size_t> hovered;  ///< line
  std::optional<std::size_t> clicked;
  bool tag = false;    ///< the click was on the tag of the line's access
  bool range = false;  ///< the click only extends the lines to copy
  trace::NodeId why;   ///< asked for in the menu
};

class CodeView {
 public:
  explicit CodeView(model::ColumnKind kind) : kind_(kind) {}

  /// Draws the column into `size` pixels at the cursor. The scene must have columns.
  CodeAction draw(Context& context, const CodeMarks& marks, ImVec2 size);
  /// Scrolls so that a line can be read, in the next draw; a fold that holds it opens. A line that can be seen already
  /// stays where it is.
  void show(std::size_t line) { wanted_ = line; }
  /// As of the last draw.
  [[nodiscard]] bool is_visible(std::size_t line) const;
  [[nodiscard]] std::size_t top_line() const { return top_line_; }
  /// The lines that were clicked, as text with line ends.
  [[nodiscard]] std::string copied_text() const;
  void forget_range() { range_.reset(); }
  /// Folds that a person closed over linked lines may open again.
  void selection_changed() { closed_.clear(); }
  /// Pixels that `characters` of text need, with the gutter. For the pushed font.
  [[nodiscard]] static float width_for(const Context& context, std::size_t characters);

 private:
  /// What stands where in this frame.
  struct Look {
    const Theme& theme;
    const Fonts& fonts;
    ImDrawList& draw;
    MonoMetrics mono;
    float unit;       ///< pixels a point
    ImVec2 min, max;  ///< of what can be seen, without scrollbars
    float scrolled;   ///< pixels that the text is scrolled to the left
    float numbers_right, tag_left, tag_right, bar, gutter_right;
  };
  struct VisibleRow {
    model::FoldedRow row;
    float y = 0;
    bool hovered = false, tag_hovered = false;
  };

  void adopt(const workspace::Scene& scene);
  void update_folds(const CodeMarks& marks);
  void place_scroll(float view_height, float line_height);
  [[nodiscard]] float content_height(float view_height, float line_height) const;
  void draw_head(const Context& context, ImVec2 size);
  void draw_nothing(const Context& context, ImVec2 size) const;
  Look look(const Context& context, const MonoMetrics& mono) const;
  void items(Context& context, const Look& look, CodeAction& action);
  void line_items(Context& context, const Look& look, VisibleRow& row, CodeAction& action);
  void click(std::size_t line, bool extend);
  void toggle(int fold, bool open);
  void menu(const Context& context, CodeAction& action);
  void draw_background(const Look& look, const CodeMarks& marks, const VisibleRow& row) const;
  void draw_text_of(const Look& look, const CodeMarks& marks, const VisibleRow& row);
  void draw_gutter(const Look& look, const CodeMarks& marks, const VisibleRow& row) const;
  void draw_fold(const Look& look, const VisibleRow& row) const;
  void draw_file(const Look& look, const VisibleRow& row) const;
  void draw_gap(const Look& look, const VisibleRow& row) const;
  void draw_scroll_marks(const Look& look, const CodeMarks& marks) const;
  [[nodiscard]] const model::LinkedLines* linked(const CodeMarks& marks) const;
  [[nodiscard]] const model::Column& column() const { return (*columns_)[kind_]; }
  [[nodiscard]] const model::ColumnOutline& outline() const { return (*outline_)[kind_]; }
  [[nodiscard]] bool has_tags() const { return kind_ != model::ColumnKind::model; }
  /// First and last clicked line.
  [[nodiscard]] std::pair<std::size_t, std::size_t> range() const;
  /// `##pallas:118`; of the second file of the model `##model:2:17`.
  const char* line_name(std::size_t line, const char* suffix = "");

  model::ColumnKind kind_;
  std::shared_ptr<const session::Compilation> compilation_;
  std::size_t position_ = 0;
  std::shared_ptr<const model::SourceColumns> columns_;
  std::shared_ptr<const model::SourceOutline> outline_;
  std::vector<std::size_t> changes_;  ///< flagged lines, one a run
  LineSpans spans_;

  std::set<std::string> opened_, closed_;  ///< keys of folds, by a person
  std::vector<bool> open_;
  std::shared_ptr<const workspace::Detail> folded_for_;
  bool folds_stale_ = true;
  model::FoldedRows rows_;

  std::optional<std::size_t> wanted_;     ///< a line to scroll to
  std::optional<float> target_;           ///< where scrolling ends, pixels
  std::optional<std::size_t> anchor_;     ///< a line that stays where the top line was
  float scroll_y_ = 0, view_height_ = 0;  ///< of the last draw
  bool seen_ = false;                     ///< it was drawn before
  std::size_t top_line_ = 0, bottom_line_ = 0;
  bool top_is_head_ = false;  ///< what is at the top is the head of a fold
  float top_offset_ = 0;  ///< pixels of the top row that are above the edge
  std::vector<VisibleRow> visible_;

  std::optional<std::pair<std::size_t, std::size_t>>
      range_;  ///< clicked lines: where it began, where it ends
  std::size_t menu_line_ = 0;
  std::string name_;  ///< of an item, kept so that no frame allocates
};

}  // namespace pallascope::views
