#include "app/views/index_panel.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "app/views/heat_map.h"
#include "core/report/format.h"

namespace pallascope::views {
namespace {

constexpr float key_width = 62;

/// The name of a row of figures; the next item follows on the same line.
void key(const Context& context, const char* name) {
  const float start = ImGui::GetCursorPosX();
  text(context.theme.text_dim, name);
  ImGui::SameLine(start + context.px(key_width));
}

float room() { return std::max(1.0F, ImGui::GetContentRegionAvail().x); }

/// A figure, and whether something is proved of it, with a sign.
void figure(const Context& context, const std::string& value, bool proved, const char* yes, const char* no,
            bool warns = true) {
  const Theme& theme = context.theme;
  const std::string said = std::string(proved ? "✓ " : warns ? "! " : "· ") + (proved ? yes : no);
  const float width = ImGui::CalcTextSize(said.c_str()).x + context.px(10), whole = room();
  text_cut(theme.text, value, std::max(context.px(60), whole - width));
  ImGui::SameLine(0, context.px(10));
  text_cut(proved ? theme.passed : warns ? theme.warning : theme.text_dim, said, room());
}

/// Used bytes against spanned ones.
void byte_bar(const Context& context, ImU32 color, double share) {
  const float width = std::min(room() * 0.42F, context.px(110)), height = context.px(8);
  ImVec2 at = ImGui::GetCursorScreenPos();
  at.y += (ImGui::GetTextLineHeight() - height) / 2;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 end(at.x + width, at.y + height);
  draw.AddRectFilled(at, end, context.theme.field, 3);
  // Any use is to be seen, and any waste.
  float used = width * static_cast<float>(std::clamp(share, 0.0, 1.0));
  if (share > 0) used = std::max(used, 2.0F);
  if (share < 1) used = std::min(used, width - 3);
  if (share < 1) {
    draw.PushClipRect(ImVec2(at.x + used, at.y), end, true);
    hatch(draw, at, end, faded(context.theme.text_faint, 0.6F), context.px(5), 1);
    draw.PopClipRect();
  }
  draw.AddRectFilled(at, ImVec2(at.x + used, end.y), color, 3);
  draw.AddRect(at, end, context.theme.border_strong, 3);
  ImGui::Dummy(ImVec2(width, ImGui::GetTextLineHeight()));
}

/// `[1,3,2]` of a row-major element.
std::string place_of(std::int64_t element, const std::vector<std::int64_t>& dims) {
  std::vector<std::string> parts(dims.size());
  for (std::size_t k = dims.size(); k-- > 0;) {
    const std::int64_t extent = std::max<std::int64_t>(1, dims[k]);
    parts[k] = std::to_string(element % extent);
    element /= extent;
  }
  return "[" + report::join(parts, ",") + "]";
}

}  // namespace

void IndexPanel::draw(Context& context) {
  const FontScope base(context.fonts.ui, context.fonts.ui_size);
  const workspace::Detail* detail = context.stale_detail();
  if (detail == nullptr || context.scene() == nullptr || model::is_empty(context.state.selection)) {
    text(context.theme.text_dim,
         "Select a node, a kernel, a buffer or a line of source to see how it walks memory.");
    return;
  }
  const model::IndexView& view = detail->index;
  if (detail != shown_) {
    shown_ = detail;
    operand_ = -1;
  }
  if (view.rows.empty()) {
    ImGui::PushTextWrapPos(0);
    text(context.theme.text_dim, view.nothing.empty() ? "Nothing here loads or stores." : view.nothing);
    ImGui::PopTextWrapPos();
    return;
  }
  const float width = room(), gap = ImGui::GetStyle().ItemSpacing.x;
  const float list = std::clamp(width * 0.24F, context.px(150), context.px(260));
  // The grid takes what it needs, the words at least as much.
  const float grid = std::clamp(width * 0.36F, context.px(150), context.px(420));
  const float words = std::max(context.px(120), width - list - grid - 4 * gap);
  const auto child = [&](const char* name, float child_width, auto content) {
    if (ImGui::BeginChild(name, ImVec2(child_width, 0))) content();
    ImGui::EndChild();
  };
  const auto divider = [&] {
    ImGui::SameLine(0, gap);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::GetWindowDrawList()->AddLine(at, ImVec2(at.x, at.y + ImGui::GetContentRegionAvail().y),
                                        context.theme.border);
    ImGui::Dummy(ImVec2(1, 1));
    ImGui::SameLine(0, gap);
  };
  child("##accesses", list, [&] { draw_list(context, view); });
  const int chosen = operand_ >= 0 ? operand_ : view.chosen;
  if (chosen < 0 || static_cast<std::size_t>(chosen) >= view.rows.size()) return;
  const model::AccessRow& row = view.rows[static_cast<std::size_t>(chosen)];
  if (row.detail == nullptr) return;
  divider();
  child("##access", words, [&] { draw_detail(context, row, *row.detail); });
  divider();
  child("##cells", 0, [&] { draw_grid(context, row, *row.detail); });
}

void IndexPanel::draw_list(Context& context, const model::IndexView& view) {
  const Theme& theme = context.theme;
  const FontScope font(context.fonts.ui, context.fonts.small_size);
  text_cut(theme.text_dim,
           fmt::format("{} of {}",
                       view.rows.size() == 1
                           ? std::string("1 access")
                           : report::count_text(static_cast<std::int64_t>(view.rows.size())) + " accesses",
                       view.title),
           room());
  if (!ImGui::BeginChild("##list")) {
    ImGui::EndChild();
    return;
  }
  const int chosen = operand_ >= 0 ? operand_ : view.chosen;
  const float height = ImGui::GetTextLineHeight() + context.px(6), width = room();
  const bool scroll = scrolled_ != context.state.selection_number && context.detail() != nullptr;
  if (scroll) {
    scrolled_ = context.state.selection_number;
    const float at = static_cast<float>(chosen) * height, top = ImGui::GetScrollY(),
                visible = ImGui::GetWindowHeight();
    if (at < top || at + height > top + visible) ImGui::SetScrollY(std::max(0.0F, at - visible / 2));
  }
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(context.px(6), 0));
  const bool places = width > context.px(180);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(view.rows.size()), height);
  while (clipper.Step()) {
    for (int k = clipper.DisplayStart; k < clipper.DisplayEnd; ++k) {
      const model::AccessRow& row = view.rows[static_cast<std::size_t>(k)];
      ImGui::PushID(k);
      const ImVec2 start = ImGui::GetCursorPos();
      const std::string id = fmt::format("##access{}", k);
      if (ImGui::Selectable(id.c_str(), k == chosen, 0, ImVec2(width, height))) {
        if (row.access >= 0) {
          context.select(model::AccessRef{row.access});
        } else {
          operand_ = k;
        }
      }
      if (ImGui::IsItemHovered()) {
        if (row.access >= 0) context.hover(model::AccessRef{row.access});
        ImGui::SetTooltip("%s %s of %s in %s%s", std::string(access_name(row.letter)).c_str(),
                          row.store ? "store" : "load", row.buffer.c_str(), row.kernel.c_str(),
                          row.on_value ? "\nof a value that this kernel made: it touches no memory" : "");
      }
      ImGui::SetCursorPos(ImVec2(start.x + context.px(3), start.y + context.px(3)));
      access_badge(context, row.letter);
      ImGui::SameLine();
      text(row.store ? theme.text : theme.text_dim, row.store ? "store" : "load");
      ImGui::SameLine(start.x + context.px(66));
      const float place = ImGui::CalcTextSize(row.place.c_str()).x;
      text_cut(row.on_value ? theme.text_faint : theme.text, row.buffer,
               std::max(context.px(10), width - context.px(72) - (places ? place + context.px(8) : 0)));
      if (places) {
        ImGui::SameLine(width - place - context.px(4));
        text(theme.text_faint, row.place);
      }
      ImGui::SetCursorPos(ImVec2(start.x, start.y + height));
      ImGui::Dummy(ImVec2(0, 0));
      ImGui::PopID();
    }
  }
  ImGui::PopStyleVar();
  ImGui::EndChild();
}

void IndexPanel::draw_detail(Context& context, const model::AccessRow& row,
                             const model::AccessDetail& detail) {
  const Theme& theme = context.theme;
  {
    const FontScope font(context.fonts.bold, context.fonts.ui_size);
    access_badge(context, row.letter);
    ImGui::SameLine();
    ImGui::PushTextWrapPos(0);
    text(theme.text, detail.words);
    ImGui::PopTextWrapPos();
  }
  const FontScope small(context.fonts.ui, context.fonts.small_size);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ImGui::GetStyle().ItemSpacing.x, context.px(3)));
  text_cut(theme.text_dim, row.on_value ? detail.head + ", a value of this kernel" : detail.head, room());
  ImGui::Dummy(ImVec2(0, context.px(1)));
  key(context, "index");
  {
    const FontScope mono(context.fonts.mono_bold, context.fonts.mono_size);
    text_cut(theme.access(row.letter), detail.expression, room());
  }
  if (!detail.ranges.empty()) {
    key(context, "for");
    const FontScope mono(context.fonts.mono, context.fonts.small_size);
    text_cut(theme.text_dim, detail.ranges, room());
  }
  if (!detail.source.empty()) {
    key(context, "source");
    const FontScope mono(context.fonts.mono, context.fonts.small_size);
    text_cut(theme.text, detail.line > 0 ? fmt::format("{}: {}", detail.line, detail.source) : detail.source,
             room());
  }
  draw_axes(context, detail);
  key(context, "plan");
  {
    const FontScope mono(context.fonts.mono, context.fonts.small_size);
    text_cut(theme.text, detail.plan, room());
  }
  key(context, "bytes");
  byte_bar(context, theme.access(row.letter),
           detail.bytes_spanned > 0
               ? static_cast<double>(detail.bytes_used) / static_cast<double>(detail.bytes_spanned)
               : 0);
  ImGui::SameLine();
  text_cut(theme.text, detail.bytes, room());
  key(context, "range");
  figure(context, detail.bounds, detail.in_bounds, "in bounds", "not proved, checked when it runs");
  key(context, "distinct");
  figure(context, detail.distinct, detail.injective, "none twice",
         row.store ? "may be written twice" : "read again", row.store);
  key(context, "asserted");
  if (detail.assertion_line > 0) {
    const FontScope mono(context.fonts.mono, context.fonts.small_size);
    text_cut(theme.text, detail.assertion_short, room());
    if (ImGui::IsItemHovered())
      ImGui::SetTooltip("line %d of the module\n%s", detail.assertion_line, detail.assertion.c_str());
  } else {
    text_cut(theme.text_faint, detail.assertion, room());
  }
  if (!detail.from.empty()) {
    key(context, "from");
    text_cut(theme.text_dim, detail.from, room());
  }
  ImGui::PopStyleVar();
}

void IndexPanel::draw_axes(Context& context, const model::AccessDetail& detail) {
  if (detail.axes.empty()) return;
  const Theme& theme = context.theme;
  constexpr ImGuiTableFlags flags =
      ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_NoSavedSettings;
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(context.px(6), context.px(1)));
  if (ImGui::BeginTable("##axes", 4, flags, ImVec2(room(), 0))) {
    ImGui::TableSetupColumn("axis", ImGuiTableColumnFlags_WidthFixed, context.px(key_width - 12));
    ImGui::TableSetupColumn("extent", ImGuiTableColumnFlags_WidthFixed, context.px(44));
    ImGui::TableSetupColumn("stride", ImGuiTableColumnFlags_WidthFixed, context.px(52));
    ImGui::TableSetupColumn("note", ImGuiTableColumnFlags_WidthStretch);
    const auto right = [&](ImU32 color, const std::string& value) {
      ImGui::SetCursorPosX(ImGui::GetCursorPosX() +
                           std::max(0.0F, room() - ImGui::CalcTextSize(value.c_str()).x));
      text(color, value);
    };
    ImGui::TableNextRow();
    for (const char* name : {"axis", "extent", "stride", ""}) {
      ImGui::TableNextColumn();
      if (name[0] == 'a' || name[0] == 0)
        text(theme.text_faint, name);
      else
        right(theme.text_faint, name);
    }
    for (const model::AxisStride& axis : detail.axes) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      const FontScope mono(context.fonts.mono, context.fonts.small_size);
      text(theme.text, axis.name);
      ImGui::TableNextColumn();
      right(theme.text, report::count_text(axis.extent));
      ImGui::TableNextColumn();
      right(theme.text, axis.stride ? report::count_text(*axis.stride) : "–");
      ImGui::TableNextColumn();
      const FontScope ui(context.fonts.ui, context.fonts.small_size);
      std::string note = axis.note;
      // Neighbours is what the innermost axis should be: only what it is instead is worth saying.
      if (axis.innermost) note = note.empty() || note == "neighbours" ? "innermost" : note + ", innermost";
      if (axis.reduced) note += note.empty() ? "reduced" : ", reduced";
      const bool strided = axis.innermost && axis.stride && *axis.stride != 0 && *axis.stride != 1;
      const bool plain = !strided && (axis.note == "neighbours" || axis.note == "packed" ||
                                      axis.note == "repeats" || axis.note.empty());
      text_cut(plain ? theme.text_dim : theme.warning, note, room());
    }
    ImGui::EndTable();
  }
  ImGui::PopStyleVar();
}

void IndexPanel::draw_grid(Context& context, const model::AccessRow& row, const model::AccessDetail& detail) {
  const Theme& theme = context.theme;
  const model::TensorGrid& grid = detail.grid;
  const FontScope small(context.fonts.ui, context.fonts.small_size);
  std::string caption = fmt::format("{} in storage order", report::plural(grid.elements, "element"));
  if (!grid.caption.empty()) caption = grid.caption;
  text_cut(theme.text_dim, caption, room());
  if (grid.rows == 0 || grid.columns == 0) {
    text(theme.text_faint, "The tensor has no elements.");
    return;
  }
  const float line = ImGui::GetTextLineHeight();
  const ImVec2 start = ImGui::GetCursorScreenPos();
  const std::string longest = std::to_string((grid.rows - 1) * grid.width);
  const ImVec2 edge = edge_room(context, longest);
  const bool uses = by_uses_ && grid.most_uses != grid.least_uses;
  const float below = 2 * line + context.px(12);
  const ImVec2 space(std::max(8.0F, room() - edge.x - 2),
                     std::max(8.0F, ImGui::GetContentRegionAvail().y - edge.y - below));
  const CellPlace place =
      place_cells(context, ImVec2(start.x + edge.x, start.y + edge.y), space, grid.rows, grid.columns, 20);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  edge_labels(
      context, place, [&](int r) { return std::to_string(r * grid.width); },
      [](int c) { return std::to_string(c); });
  const ImU32 color = theme.access(row.letter);
  const ImVec2 end(place.at.x + place.size().x - place.gap, place.at.y + place.size().y - place.gap);
  draw.AddRectFilled(place.at, end, theme.field);
  const double span = static_cast<double>(std::max<std::int64_t>(1, grid.last_step - grid.first_step));
  const double uses_span = static_cast<double>(std::max<std::int64_t>(1, grid.most_uses - grid.least_uses));
  const ImU32 untouched = mixed(theme.raised, theme.border, theme.dark ? 0.55F : 0.45F);
  const std::int64_t last_row = grid.elements - static_cast<std::int64_t>(grid.rows - 1) * grid.width;
  for (int r = 0; r < grid.rows; ++r) {
    for (int c = 0; c < grid.columns; ++c) {
      if (r == grid.rows - 1 && c >= last_row) break;
      const model::TensorGrid::Cell& cell = grid.at(r, c);
      ImU32 fill = untouched;
      if (cell.first >= 0) {
        const double share = uses ? static_cast<double>(cell.uses - grid.least_uses) / uses_span
                                  : static_cast<double>(cell.first - grid.first_step) / span;
        fill = shade(theme, color,
                     grid.last_step == grid.first_step && !uses ? 0.5F : static_cast<float>(share));
      }
      draw.AddRectFilled(place.low(r, c), place.high(r, c), fill);
    }
  }
  if (grid.group > 0) {
    for (int r = grid.group; r < grid.rows; r += grid.group) {
      const float y = place.low(r, 0).y - place.gap;
      draw.AddLine(ImVec2(place.at.x - 3, y), ImVec2(end.x + 3, y), theme.text_faint, 1);
    }
  }
  if (!grid.unknown.empty()) {
    draw.PushClipRect(place.at, end, true);
    hatch(draw, place.at, end, faded(color, 0.55F), context.px(8), 1.2F);
    draw.PopClipRect();
  }
  // The kernel's grid has one block: the whole tensor.
  draw.AddRect(ImVec2(place.at.x - 2, place.at.y - 2), ImVec2(end.x + 2, end.y + 2), theme.border_strong, 2);
  ImGui::InvisibleButton("##grid", ImVec2(edge.x + place.size().x, edge.y + place.size().y));
  const auto hit = ImGui::IsItemHovered() ? place.hit(ImGui::GetMousePos()) : std::nullopt;
  if (hit && hit->first * grid.width + hit->second < grid.elements) {
    const auto [r, c] = *hit;
    const model::TensorGrid::Cell& cell = grid.at(r, c);
    draw.AddRect(ImVec2(place.low(r, c).x - 1, place.low(r, c).y - 1),
                 ImVec2(place.high(r, c).x + 1, place.high(r, c).y + 1), theme.text);
    const std::int64_t element = r * grid.width + c;
    const std::string said =
        !grid.unknown.empty() ? grid.unknown
        : cell.first < 0 ? std::string("not touched")
                         : fmt::format("first touched at step {}, {} in all", report::count_text(cell.first),
                                       report::plural(cell.uses, "use"));
    ImGui::SetTooltip("element %s  %s\n%s", report::count_text(element).c_str(),
                      place_of(element, grid.dims).c_str(), said.c_str());
  }
  ImGui::Dummy(ImVec2(0, context.px(2)));
  // What the colours say.
  if (!grid.unknown.empty()) {
    text_cut(theme.text, grid.unknown, room());
    return;
  }
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float swatch = context.px(54), high = context.px(9), middle = at.y + (line - high) / 2;
  const auto after = [&](float x) { ImGui::SetCursorScreenPos(ImVec2(x, at.y)); };
  const bool one = grid.first_step == grid.last_step && !uses;
  const std::string left = uses ? report::plural(grid.least_uses, "use") : one ? "touched" : "first";
  const std::string right = uses ? report::count_text(grid.most_uses) : one ? "" : "last touched";
  float x = at.x;
  if (!one) {
    text(theme.text_dim, left);
    x += ImGui::CalcTextSize(left.c_str()).x + context.px(5);
  }
  for (int k = 0; k < 6; ++k) {
    const float part = swatch / 6;
    draw.AddRectFilled(ImVec2(x + part * static_cast<float>(k), middle),
                       ImVec2(x + part * static_cast<float>(k + 1), middle + high),
                       shade(theme, color, one ? 0.5F : static_cast<float>(k) / 5));
  }
  x += swatch + context.px(5);
  after(x);
  text(theme.text_dim, one ? left : right);
  x += ImGui::CalcTextSize((one ? left : right).c_str()).x + context.px(14);
  if (grid.touched < static_cast<std::int64_t>(grid.rows) * grid.columns &&
      x + context.px(90) < at.x + room()) {
    draw.AddRectFilled(ImVec2(x, middle), ImVec2(x + high, middle + high), untouched);
    after(x + high + context.px(5));
    text(theme.text_dim, "not touched");
  }
  ImGui::SetCursorScreenPos(ImVec2(at.x, at.y + line + context.px(3)));
  if (grid.most_uses != grid.least_uses) {
    if (ImGui::SmallButton(by_uses_ ? "shade by order##shade" : "shade by uses##shade")) by_uses_ = !by_uses_;
    ImGui::SameLine();
  }
  text_cut(
      grid.cut.empty() ? theme.text_faint : theme.warning,
      !grid.cut.empty() ? grid.cut
      : grid.most_uses > 1 && grid.most_uses == grid.least_uses
          ? fmt::format("each {} times; the kernel runs as one block", report::count_text(grid.most_uses))
          : std::string("the kernel runs as one block"),
      room());
}

}  // namespace pallascope::views
