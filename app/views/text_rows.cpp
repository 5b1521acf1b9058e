#include "app/views/text_rows.h"

#include <algorithm>
#include <cmath>

namespace pallascope::views {
namespace {

constexpr std::size_t gutter_columns = 2;

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// Behind the code point at `at`.
std::size_t next_point(std::string_view text, std::size_t at) {
  ++at;
  while (at < text.size() && continues(text[at])) ++at;
  return at;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::size_t find_without_case(std::string_view text, std::string_view part, std::size_t from) {
  if (part.empty() || text.size() < part.size()) return std::string_view::npos;
  for (std::size_t at = from; at + part.size() <= text.size(); ++at) {
    std::size_t k = 0;
    while (k < part.size() && lower(text[at + k]) == lower(part[k])) ++k;
    if (k == part.size()) return at;
  }
  return std::string_view::npos;
}

bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         continues(c) || (static_cast<unsigned char>(c) & 0x80U) != 0;
}

float width_of(std::string_view text) {
  return ImGui::CalcTextSize(text.data(), text.data() + text.size()).x;
}

}  // namespace

std::size_t TextRows::columns_for(const Context& context, float width) {
  const FontScope font(context.fonts.mono, context.fonts.mono_size);
  const float advance = ImGui::CalcTextSize("0").x;
  const float columns = std::floor((width - ImGui::GetStyle().ScrollbarSize) / advance) - gutter_columns;
  return columns < 20 ? 20 : static_cast<std::size_t>(columns);
}

bool TextRows::set_columns(std::size_t columns) {
  if (columns == columns_) return false;
  columns_ = columns;
  clear();
  return true;
}

void TextRows::clear() {
  gone_ += rows_.size();
  gone_drawn_ = gone_;
  rows_.clear();
  anchor_ = head_ = {};
  selecting_ = false;
}

void TextRows::drop_before(std::uint64_t first) {
  while (!rows_.empty() && rows_.front().entry < first) {
    rows_.pop_front();
    ++gone_;
  }
}

void TextRows::drop_from(std::uint64_t first) {
  while (!rows_.empty() && rows_.back().entry >= first) rows_.pop_back();
  const std::uint64_t end = gone_ + rows_.size();
  if (anchor_.row >= end || head_.row >= end) {
    anchor_ = head_ = {};
    selecting_ = false;
  }
}

void TextRows::add(std::uint64_t entry, std::string_view text, std::uint8_t kind) {
  bool first = true;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    add_line(entry, text.substr(at, end - at), kind, first);
    first = false;
    at = end + 1;
  }
}

void TextRows::add_line(std::uint64_t entry, std::string_view line, std::uint8_t kind, bool starts_entry) {
  // Bytes are at least as many as columns: most lines need no counting.
  if (columns_ == 0 || line.size() <= columns_) {
    rows_.push_back({entry, line, 0, kind, starts_entry, true});
    return;
  }
  std::size_t blanks = line.find_first_not_of(' ');
  if (blanks == std::string_view::npos) blanks = 0;
  const auto indent = static_cast<std::uint16_t>(std::min(blanks + 2, columns_ * 2 / 5));
  bool first = true;
  for (std::size_t at = 0; at < line.size() || first;) {
    const std::size_t room = columns_ - (first ? 0 : indent);
    std::size_t end = at, count = 0, after_blank = 0, count_at_blank = 0;
    while (end < line.size() && count < room) {
      const bool blank = line[end] == ' ';
      end = next_point(line, end);
      ++count;
      if (blank) {
        after_blank = end;
        count_at_blank = count;
      }
    }
    // Between words, unless that leaves the row half empty.
    if (end < line.size() && line[end] != ' ' && count_at_blank * 2 > room) end = after_blank;
    rows_.push_back({entry, line.substr(at, end - at), first ? std::uint16_t{0} : indent, kind,
                     starts_entry && first, first});
    first = false;
    at = end;
  }
}

std::pair<TextRows::Place, TextRows::Place> TextRows::selected() const {
  return anchor_ < head_ ? std::pair(anchor_, head_) : std::pair(head_, anchor_);
}

std::string TextRows::selected_text() const {
  const auto [from, to] = selected();
  std::string result;
  for (std::uint64_t k = std::max(from.row, gone_); k <= to.row && k < gone_ + rows_.size(); ++k) {
    const Row& row = rows_[static_cast<std::size_t>(k - gone_)];
    if (k > from.row && row.starts_line) result += '\n';
    const std::size_t begin = k == from.row ? std::min(from.byte, row.text.size()) : 0;
    const std::size_t end = k == to.row ? std::min(to.byte, row.text.size()) : row.text.size();
    if (end > begin) result += row.text.substr(begin, end - begin);
  }
  return result;
}

TextRows::Place TextRows::place_at(ImVec2 from, ImVec2 pointer, float advance, float height,
                                   float gutter) const {
  if (rows_.empty()) return {};
  const float line = std::floor((pointer.y - from.y) / height);
  const auto last = static_cast<float>(rows_.size() - 1);
  const auto k = static_cast<std::size_t>(std::clamp(line, 0.0F, last));
  const Row& row = rows_[k];
  if (line < 0) return {gone_ + k, 0};
  if (line > last) return {gone_ + k, row.text.size()};
  // The column is right for most texts; signs out of another font may be wider.
  float x = pointer.x - from.x - gutter - static_cast<float>(row.indent) * advance;
  std::size_t at = 0;
  while (at < row.text.size()) {
    const std::size_t next = next_point(row.text, at);
    const float width = next == at + 1 ? advance : width_of(row.text.substr(at, next - at));
    if (x < width / 2) break;
    x -= width;
    at = next;
  }
  return {gone_ + k, at};
}

void TextRows::select_word(Place at) {
  if (at.row < gone_ || at.row >= gone_ + rows_.size()) return;
  const std::string_view text = rows_[static_cast<std::size_t>(at.row - gone_)].text;
  std::size_t begin = std::min(at.byte, text.size()), end = begin;
  while (begin > 0 && in_word(text[begin - 1])) --begin;
  while (end < text.size() && in_word(text[end])) ++end;
  anchor_ = {at.row, begin};
  head_ = {at.row, end};
}

std::size_t TextRows::count(std::string_view mark) const {
  return static_cast<std::size_t>(std::count_if(rows_.begin(), rows_.end(), [&](const Row& row) {
    return find_without_case(row.text, mark, 0) != std::string_view::npos;
  }));
}

bool TextRows::find(std::string_view mark, bool backward) {
  if (mark.empty() || rows_.empty()) return false;
  const std::size_t count = rows_.size();
  // From the end upwards at first: what was said last is what one looks for.
  const bool fresh = anchor_ == head_ || anchor_.row < gone_ || anchor_.row >= gone_ + count;
  const std::size_t from =
      fresh ? (backward ? 0 : count - 1) : static_cast<std::size_t>(selected().first.row - gone_);
  for (std::size_t k = 1; k <= count; ++k) {
    const std::size_t row = backward ? (from + count - k) % count : (from + k) % count;
    const std::size_t at = find_without_case(rows_[row].text, mark, 0);
    if (at == std::string_view::npos) continue;
    anchor_ = {gone_ + row, at};
    head_ = {gone_ + row, at + mark.size()};
    into_sight_ = gone_ + row;
    return true;
  }
  return false;
}

void TextRows::draw_rows(const Context& context, ImVec2 from, float width, std::span<const RowLook> looks,
                         std::string_view mark) const {
  const float advance = ImGui::CalcTextSize("0").x, height = ImGui::GetTextLineHeightWithSpacing();
  const float size = ImGui::GetFontSize();
  const float gutter = advance * gutter_columns, top = std::floor((height - size) / 2);
  const auto [first, last] = selected();
  const bool any_selected = first != last;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  // Rows are of one height and no items: those in sight follow from the scroll.
  const float above = std::max(0.0F, ImGui::GetWindowPos().y - from.y);
  const auto begin_row = static_cast<std::size_t>(above / height);
  const auto end_row =
      std::min(rows_.size(), begin_row + static_cast<std::size_t>(ImGui::GetWindowHeight() / height) + 2);
  for (std::size_t k = begin_row; k < end_row; ++k) {
    const Row& row = rows_[k];
    const RowLook& look = looks[std::min<std::size_t>(row.kind, looks.size() - 1)];
    ImFont* font = look.bold ? context.fonts.mono_bold : context.fonts.mono;
    const ImVec2 at(from.x, from.y + static_cast<float>(k) * height);
    const float x = at.x + gutter + static_cast<float>(row.indent) * advance;
    if (look.behind != 0) draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), look.behind);
    if (!mark.empty()) {
      for (std::size_t hit = find_without_case(row.text, mark, 0); hit != std::string_view::npos;
           hit = find_without_case(row.text, mark, hit + mark.size())) {
        const float left = x + width_of(row.text.substr(0, hit));
        draw->AddRectFilled(ImVec2(left, at.y),
                            ImVec2(left + width_of(row.text.substr(hit, mark.size())), at.y + height),
                            context.theme.warning_soft, 2);
      }
    }
    const std::uint64_t number = gone_ + k;
    if (any_selected && number >= first.row && number <= last.row) {
      const std::size_t begin = number == first.row ? std::min(first.byte, row.text.size()) : 0;
      const std::size_t end = number == last.row ? std::min(last.byte, row.text.size()) : row.text.size();
      const float left = x + width_of(row.text.substr(0, begin));
      float right = x + width_of(row.text.substr(0, end));
      if (number != last.row) right += advance / 2;  // the line's end is taken too
      if (right > left)
        draw->AddRectFilled(ImVec2(left, at.y), ImVec2(right, at.y + height), context.theme.accent_soft);
    }
    if (row.starts_entry && *look.sign != '\0')
      draw->AddText(context.fonts.mono_bold, size, ImVec2(at.x, at.y + top), look.color, look.sign);
    if (!row.text.empty())
      draw->AddText(font, size, ImVec2(x, at.y + top), look.color, row.text.data(),
                    row.text.data() + row.text.size());
  }
}

void TextRows::pointer(Context& /*context*/, ImVec2 from, float gutter, float height) {
  const ImGuiIO& io = ImGui::GetIO();
  const float advance = ImGui::CalcTextSize("0").x;
  const bool hovered = ImGui::IsItemHovered();
  if (hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_TextInput);
  if (hovered && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    const Place at = place_at(from, io.MousePos, advance, height, gutter);
    const int clicks = ImGui::GetMouseClickedCount(ImGuiMouseButton_Left);
    if (clicks == 1) {
      if (!io.KeyShift || anchor_ == head_) anchor_ = at;
      head_ = at;
      selecting_ = true;
    } else if (clicks == 2) {
      select_word(at);
      selecting_ = false;
    } else if (at.row >= gone_ && at.row < gone_ + rows_.size()) {
      anchor_ = {at.row, 0};
      head_ = {at.row, rows_[static_cast<std::size_t>(at.row - gone_)].text.size()};
      selecting_ = false;
    }
  }
  if (selecting_) {
    if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) {
      selecting_ = false;
    } else if (ImGui::IsMouseDragging(ImGuiMouseButton_Left, 2)) {
      head_ = place_at(from, io.MousePos, advance, height, gutter);
      const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowHeight();
      if (io.MousePos.y < top) ImGui::SetScrollY(ImGui::GetScrollY() - height);
      if (io.MousePos.y > bottom) ImGui::SetScrollY(ImGui::GetScrollY() + height);
    }
  }
  if (hovered && ImGui::IsMouseClicked(ImGuiMouseButton_Right) && !rows_.empty()) {
    const Place at = place_at(from, io.MousePos, advance, height, gutter);
    menu_entry_ = rows_[static_cast<std::size_t>(at.row - gone_)].entry;
  }
}

void TextRows::draw(Context& context, const char* id, ImVec2 size, std::span<const RowLook> looks,
                    std::string_view mark, const std::function<void(std::uint64_t entry)>& menu) {
  {
    // As high as whole rows, so that no row is cut at the top while the end is in sight.
    const FontScope font(context.fonts.mono, context.fonts.mono_size);
    const float rest = std::fmod(size.y, ImGui::GetTextLineHeightWithSpacing());
    if (size.y - rest > 0) {
      size.y -= rest;
      ImGui::SetCursorPosY(ImGui::GetCursorPosY() + rest);
    }
  }
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  ImGui::BeginChild(id, size, 0, ImGuiWindowFlags_NoNav);
  bool copy = false, copy_all = false;
  {
    const FontScope font(context.fonts.mono, context.fonts.mono_size);
    const float height = ImGui::GetTextLineHeightWithSpacing();
    const float gutter = ImGui::CalcTextSize("0").x * gutter_columns;
    // The scroll range is still that of the last frame's text.
    at_end_ = ImGui::GetScrollY() >= ImGui::GetScrollMaxY() - 1;
    if (gone_ != gone_drawn_ && !at_end_)
      ImGui::SetScrollY(
          std::max(0.0F, ImGui::GetScrollY() - static_cast<float>(gone_ - gone_drawn_) * height));
    gone_drawn_ = gone_;
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    const float all = static_cast<float>(rows_.size()) * height;
    draw_rows(context, from, width, looks, mark);
    ImGui::SetNextItemAllowOverlap();
    ImGui::InvisibleButton(
        "##rows", ImVec2(std::max(1.0F, width), std::max({1.0F, all, ImGui::GetContentRegionAvail().y})),
        ImGuiButtonFlags_MouseButtonLeft);
    pointer(context, from, gutter, height);
    if (into_sight_) {
      const float y = static_cast<float>(*into_sight_ - std::min(gone_, *into_sight_)) * height;
      ImGui::SetScrollY(std::max(0.0F, y - ImGui::GetWindowHeight() * 0.4F));
      into_sight_.reset();
      to_end_ = false;
    } else if (to_end_ || at_end_) {
      ImGui::SetScrollY(std::max(0.0F, all));
      to_end_ = false;
    }
    if (anchor_ != head_ && ImGui::IsWindowFocused() && ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_C))
      copy = true;
  }
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(context.px(8), context.px(6)));
  if (ImGui::BeginPopupContextWindow("##menu")) {
    if (ImGui::MenuItem(anchor_ != head_ ? "Copy the selection" : "Copy this entry", "Ctrl+C", false,
                        !rows_.empty())) {
      if (anchor_ == head_) {  // the entry under the pointer
        const auto first =
            std::find_if(rows_.begin(), rows_.end(), [&](const Row& r) { return r.entry == menu_entry_; });
        auto last = first;
        while (last != rows_.end() && last->entry == menu_entry_) ++last;
        if (first != last) {
          anchor_ = {gone_ + static_cast<std::uint64_t>(first - rows_.begin()), 0};
          head_ = {gone_ + static_cast<std::uint64_t>(last - rows_.begin()) - 1, (last - 1)->text.size()};
        }
      }
      copy = true;
    }
    if (ImGui::MenuItem("Copy all", nullptr, false, !rows_.empty())) copy_all = true;
    if (menu) menu(menu_entry_);
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
  if (copy_all && !rows_.empty()) {
    anchor_ = {gone_, 0};
    head_ = {gone_ + rows_.size() - 1, rows_.back().text.size()};
    copy = true;
  }
  if (copy) ImGui::SetClipboardText(selected_text().c_str());
  if (!at_end_ && !rows_.empty()) {
    // Over the text, so within the same window.
    const char* label = "↓ to the end";
    const float width = ImGui::CalcTextSize(label).x + ImGui::GetStyle().FramePadding.x * 2;
    ImGui::SetCursorScreenPos(
        ImVec2(corner.x + ImGui::GetWindowWidth() - width - context.px(18),
               corner.y + ImGui::GetWindowHeight() - ImGui::GetFrameHeight() - context.px(6)));
    if (ImGui::Button(label)) to_end_ = true;
  }
  ImGui::EndChild();
}

}  // namespace pallascope::views
