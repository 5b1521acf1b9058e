// Room: views. A long text by rows, of which only those in sight are drawn; the pointer selects, Ctrl+C copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "app/views/context.h"

namespace pallascope::views {

/// How the lines of one kind look.
struct RowLook {
  ImU32 color = 0;
  ImU32 behind = 0;  ///< the whole row's; 0 for none
  bool bold = false;
  const char* sign = "";  ///< in the gutter of an entry's first row; colours alone say nothing
};

/// Text in mono, wrapped at a number of columns. The text itself stays with whoever added it, and has to be added anew
/// before the next `draw` when it has moved or changed.
class TextRows {
 public:
  /// Columns that fit into a width of pixels, at least 20; the gutter is taken off.
  static std::size_t columns_for(const Context& context, float width);
  /// How wide the text is wrapped from now on; what is there is dropped when that is another width: true then.
  bool set_columns(std::size_t columns);
  void clear();
  /// Adds an entry of one or more lines. Entries are numbered by the caller, ascending. `kind` picks the look.
  void add(std::uint64_t entry, std::string_view text, std::uint8_t kind);
  /// Forgets entries below `first`; what is in sight stays where it is.
  void drop_before(std::uint64_t first);
  /// Forgets entries from `first` on, to add them anew.
  void drop_from(std::uint64_t first);
  [[nodiscard]] std::size_t size() const { return rows_.size(); }

  /// Draws into a child window `id` of that size; follows the end unless one has scrolled away from it. `mark`: shown
  /// wherever it occurs (without regard to case). `menu` adds to the context menu; it is given the entry under the
  /// pointer.
  void draw(Context& context, const char* id, ImVec2 size, std::span<const RowLook> looks,
            std::string_view mark, const std::function<void(std::uint64_t entry)>& menu);
  void to_end() { to_end_ = true; }
  /// How many rows have `mark` in them, without regard to case.
  [[nodiscard]] std::size_t count(std::string_view mark) const;
  /// Selects the next row's `mark` after what is selected (before it: `backward`), around the end, and brings it into
  /// sight. False when there is none.
  bool find(std::string_view mark, bool backward);

 private:
  struct Row {
    std::uint64_t entry = 0;
    std::string_view text;
    std::uint16_t indent = 0;  ///< columns, of a row that goes on with a wrapped line
    std::uint8_t kind = 0;
    bool starts_entry = false, starts_line = false;
  };
  struct Place {  ///< in front of a byte of a row; rows count from the first one that was ever there
    std::uint64_t row = 0;
    std::size_t byte = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  void add_line(std::uint64_t entry, std::string_view line, std::uint8_t kind, bool starts_entry);
  [[nodiscard]] Place place_at(ImVec2 from, ImVec2 pointer, float advance, float height, float gutter) const;
  [[nodiscard]] std::pair<Place, Place> selected() const;
  [[nodiscard]] std::string selected_text() const;
  void select_word(Place at);
  void draw_rows(const Context& context, ImVec2 from, float width, std::span<const RowLook> looks,
                 std::string_view mark) const;
  void pointer(Context& context, ImVec2 from, float gutter, float height);

  std::deque<Row> rows_;
  std::uint64_t gone_ = 0;  ///< rows that were dropped at the front
  std::uint64_t gone_drawn_ = 0;
  std::size_t columns_ = 0;
  Place anchor_, head_;
  std::uint64_t menu_entry_ = 0;
  std::optional<std::uint64_t> into_sight_;
  bool selecting_ = false, to_end_ = true, at_end_ = true;
};

}  // namespace pallascope::views
