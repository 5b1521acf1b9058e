#include "app/views/source_panel.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/views/access_tip.h"

namespace pallascope::views {
namespace {

constexpr std::array<const char*, 3> toggle_names{"model", "loops", "Pallas"};
constexpr std::array<const char*, 3> toggle_tips{"The model's Python", "The loops that it is lowered to",
                                                 "The generated module of Pallas kernels"};
constexpr float bar_height = 34, key_height = 24, splitter_size = 5, edge = 8;

}  // namespace

void SourcePanel::draw(Context& context) {
  const workspace::Scene* scene = context.scene();
  if (scene == nullptr || !scene->columns || !scene->outline) {
    text(context.theme.text_dim, "Nothing is open.");
    return;
  }
  follow(context);
  if (found_in_ != scene->columns) restart_find(context);
  constexpr std::size_t lines_a_frame = 3'000;
  if (finder_.step(lines_a_frame)) context.state.moving = true;
  if (scroll_to_match_ && !finder_.matches().empty() && !match_) go_to_match(1);

  const ImVec2 at = ImGui::GetCursorScreenPos(), size = ImGui::GetContentRegionAvail();
  const float bar = std::floor(context.px(bar_height)), key = std::floor(context.px(key_height));
  draw_bar(context);
  ImGui::SetCursorScreenPos(ImVec2(at.x, at.y + bar));
  draw_columns(context, ImVec2(size.x, std::max(1.0F, size.y - bar - key)));
  ImGui::SetCursorScreenPos(ImVec2(at.x, at.y + size.y - key));
  draw_key(context, key);

  const ImGuiIO& io = ImGui::GetIO();
  if (context.state.active == PanelId::source && io.KeyCtrl && !io.WantTextInput &&
      ImGui::IsKeyPressed(ImGuiKey_C, false)) {
    const std::string copied = views_.at(last_).copied_text();
    if (!copied.empty()) ImGui::SetClipboardText(copied.c_str());
  }
  // What the pointer is over in another panel is marked here too.
  if (context.state.hovered != previewed_) {
    previewed_ = context.state.hovered;
    if (!model::is_empty(previewed_)) context.workspace.request_preview(previewed_);
  }
}

void SourcePanel::follow(Context& context) {
  const auto scene = context.workspace.scene();
  const bool stepped = scene_ && scene_ != scene && scene_->compilation == scene->compilation &&
                       scene_->position != scene->position;
  if (scene_ != scene) {
    if (stepped) to_change_ = context.state.difference;
    if (!scene_ || scene_->compilation != scene->compilation || std::exchange(focused_early_, false))
      to_focus_.fill(true);
    previewed_ = {};
    scene_ = scene;
  }
  if (std::exchange(selection_number_, context.state.selection_number) != context.state.selection_number) {
    to_focus_.fill(true);
    if (clicked_) to_focus_.at(*clicked_) = false;
    for (CodeView& view : views_) view.selection_changed();
  }
  clicked_.reset();
  const workspace::Detail* detail = context.detail();
  if (detail == nullptr) {
    // Nothing is selected: nothing to wait for.
    if (!model::is_empty(context.state.selection)) return;
  }
  constexpr auto pallas = static_cast<std::size_t>(model::ColumnKind::pallas);
  const auto focus_of = [&](std::size_t k) {
    return detail == nullptr ? std::optional<std::size_t>() : detail->linked.columns.at(k).focus;
  };
  const bool focus_first = to_focus_.at(pallas) && focus_of(pallas).has_value();
  // Of the scene that a step just leaves: the text of the next one is another, and its lines are shown then.
  if (to_focus_ != decltype(to_focus_){} && context.workspace.wanted_position() != scene->position)
    focused_early_ = true;
  for (std::size_t k = 0; k < count; ++k) {
    if (std::exchange(to_focus_.at(k), false) && focus_of(k)) show(k, *focus_of(k));
  }
  if (std::exchange(to_change_, false)) {
    const auto change = (*scene_->outline)[model::ColumnKind::pallas].first_change;
    const auto focus = focus_of(pallas);
    if (change && !focus_first && !(focus && views_.at(pallas).is_visible(*focus))) show(pallas, *change);
  }
}

void SourcePanel::draw_bar(Context& context) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, height = std::floor(context.px(bar_height));
  const FontScope font(context.fonts.ui, context.fonts.small_size);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(context.px(8), context.px(3)));
  const float y = at.y + std::floor((height - ImGui::GetFrameHeight()) / 2);
  ImGui::SetCursorScreenPos(ImVec2(at.x + context.px(edge), y));
  draw_toggles(context);
  const float left = ImGui::GetItemRectMax().x + context.px(10);

  // The difference is at the right edge; between is room to find.
  const model::ColumnOutline& module = (*context.scene()->outline)[model::ColumnKind::pallas];
  text_.clear();
  fmt::format_to(std::back_inserter(text_), "+{} −{}", module.added, module.removed);
  const float counts = ImGui::CalcTextSize(text_.c_str()).x;
  const float word = ImGui::CalcTextSize("difference").x;
  const float difference = word + context.px(16) + context.px(18) + counts + context.px(8);
  const float right = at.x + width - context.px(edge);
  const float room = right - difference - context.px(10) - left;
  if (room > context.px(70)) {
    ImGui::SetCursorScreenPos(ImVec2(left, y));
    draw_find(context, std::min(room, context.px(320)));
  }
  ImGui::SetCursorScreenPos(ImVec2(std::max(left, right - difference), y));
  draw_difference(context);
  ImGui::PopStyleVar();
}

void SourcePanel::draw_toggles(Context& context) {
  const Theme& theme = context.theme;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(context.px(2), 0));
  for (std::size_t k = 0; k < count; ++k) {
    if (k > 0) ImGui::SameLine();
    const bool on = shown_.at(k);
    ImGui::PushStyleColor(ImGuiCol_Button, on ? theme.accent_soft : theme.panel);
    ImGui::PushStyleColor(ImGuiCol_Border, on ? theme.accent : theme.border);
    ImGui::PushStyleColor(ImGuiCol_Text, on ? theme.text : theme.text_dim);
    if (ImGui::Button(toggle_names.at(k))) {
      const auto others = std::count(shown_.begin(), shown_.end(), true);
      if (!on || others > 1) {
        shown_.at(k) = !on;
        // A column that comes into view shows what is selected.
        if (!on) to_focus_.at(k) = true;
        restart_find(context);
      }
    }
    ImGui::PopStyleColor(3);
    ImGui::SetItemTooltip("%s", toggle_tips.at(k));
  }
  ImGui::PopStyleVar();
}

void SourcePanel::draw_find(Context& context, float width) {
  const Theme& theme = context.theme;
  if ((context.state.find && context.state.active == PanelId::source) || std::exchange(refocus_, false))
    ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(width);
  // Filled in at the right of the field.
  text_.clear();
  if (!finder_.needle().empty()) {
    const std::size_t found = finder_.matches().size();
    const char* more = found >= model::LineFinder::most ? "+" : finder_.done() ? "" : "…";
    if (found == 0) {
      text_ = finder_.done() ? "none" : "…";
    } else {
      fmt::format_to(std::back_inserter(text_), "{} of {}{}", match_.value_or(0) + 1, found, more);
    }
  }
  const bool enter = ImGui::InputTextWithHint("##find", "find", find_.data(), find_.size(),
                                              ImGuiInputTextFlags_EnterReturnsTrue);
  const bool edited = ImGui::IsItemEdited();
  const ImVec2 min = ImGui::GetItemRectMin(), max = ImGui::GetItemRectMax();
  if (!text_.empty()) {
    const ImVec2 extent = ImGui::CalcTextSize(text_.c_str());
    const float x = max.x - extent.x - context.px(7);
    const bool nothing = finder_.done() && finder_.matches().empty();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddRectFilled(ImVec2(x - context.px(5), min.y + 1), ImVec2(max.x - context.px(2), max.y - 1),
                       theme.field);
    draw.AddText(ImVec2(x, std::floor((min.y + max.y - extent.y) / 2)),
                 nothing ? theme.error : theme.text_dim, text_.c_str());
  }
  ImGui::SetItemTooltip("Find in the columns (Ctrl+F)\nEnter: next   Shift+Enter: previous");
  if (edited) {
    restart_find(context);
    scroll_to_match_ = true;
  }
  if (enter) {
    go_to_match(ImGui::GetIO().KeyShift ? -1 : 1);
    refocus_ = true;
  }
}

void SourcePanel::draw_difference(Context& context) {
  const Theme& theme = context.theme;
  const workspace::Scene& scene = *context.scene();
  const model::ColumnOutline& module = (*scene.outline)[model::ColumnKind::pallas];
  const bool on = context.state.difference;
  const float pad = context.px(8);
  char added[16], removed[16];
  *fmt::format_to_n(added, sizeof added - 1, "+{}", module.added).out = 0;
  *fmt::format_to_n(removed, sizeof removed - 1, "−{}", module.removed).out = 0;
  const ImVec2 word = ImGui::CalcTextSize("difference"), plus = ImGui::CalcTextSize(added),
               minus = ImGui::CalcTextSize(removed);
  const float box = std::floor(ImGui::GetFontSize() * 0.85F);
  const ImVec2 size(
      pad + box + context.px(6) + word.x + context.px(8) + plus.x + context.px(5) + minus.x + pad,
      ImGui::GetFrameHeight());
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (ImGui::InvisibleButton("##difference", size)) context.state.difference = !on;
  const bool hovered = ImGui::IsItemHovered();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  if (hovered) draw.AddRectFilled(at, ImVec2(at.x + size.x, at.y + size.y), theme.hover, context.px(4));
  const float middle = at.y + size.y / 2, y = std::floor(middle - word.y / 2);
  float x = at.x + pad;
  const ImVec2 box_min(x, std::floor(middle - box / 2)), box_max(x + box, std::floor(middle - box / 2) + box);
  draw.AddRectFilled(box_min, box_max, on ? theme.accent : theme.field, context.px(3));
  if (!on) draw.AddRect(box_min, box_max, theme.border_strong, context.px(3));
  if (on) {
    const ImVec2 corner(box_min.x + box * 0.43F, box_min.y + box * 0.74F);
    draw.AddLine(ImVec2(box_min.x + box * 0.2F, box_min.y + box * 0.5F), corner, theme.text_on_accent,
                 context.px(1.6F));
    draw.AddLine(corner, ImVec2(box_min.x + box * 0.8F, box_min.y + box * 0.26F), theme.text_on_accent,
                 context.px(1.6F));
  }
  x += box + context.px(6);
  draw.AddText(ImVec2(x, y), on ? theme.text : theme.text_dim, "difference");
  x += word.x + context.px(8);
  const bool any = module.added + module.removed > 0;
  draw.AddText(ImVec2(x, y), any ? faded(theme.added, on ? 1 : 0.6F) : theme.text_faint, added);
  x += plus.x + context.px(5);
  draw.AddText(ImVec2(x, y), any ? faded(theme.removed, on ? 1 : 0.6F) : theme.text_faint, removed);
  if (hovered && ImGui::BeginTooltip()) {
    text(theme.text, scene.position == 0 ? "No decision has been taken yet."
                                         : "Lines that the last decision added, changed and removed (d)");
    if (scene.position > 0) {
      for (const model::ColumnKind kind : {model::ColumnKind::loops, model::ColumnKind::pallas}) {
        const model::ColumnOutline& column = (*scene.outline)[kind];
        text(theme.text_dim, fmt::format("{}   +{} −{}", toggle_names.at(static_cast<std::size_t>(kind)),
                                         column.added, column.removed));
      }
    }
    ImGui::EndTooltip();
  }
}

void SourcePanel::draw_columns(Context& context, ImVec2 size) {
  std::vector<std::size_t> shown;
  shown.reserve(count);
  for (std::size_t k = 0; k < count; ++k) {
    if (shown_.at(k)) shown.push_back(k);
  }
  const float between = std::floor(context.px(splitter_size));
  const auto gaps = static_cast<float>(shown.size() - 1) * between;
  constexpr std::size_t readable = 55;
  const bool beside = shown.size() > 1 && (size.x - gaps) / static_cast<float>(shown.size()) >=
                                              CodeView::width_for(context, readable);
  const float room = std::max(1.0F, (beside ? size.x : size.y) - gaps);
  float total = 0;
  for (const std::size_t k : shown) total += weights(beside).at(k);

  const auto& detail = context.workspace.detail();
  const auto& preview = context.workspace.preview();
  const bool previews = preview && preview->scene == context.scene()->number &&
                        !model::is_empty(previewed_) && preview->selection == previewed_;
  const model::Match* match =
      match_ && *match_ < finder_.matches().size() ? &finder_.matches()[*match_] : nullptr;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  float used = 0;
  for (std::size_t n = 0; n < shown.size(); ++n) {
    const std::size_t k = shown[n];
    const bool last = n + 1 == shown.size();
    const float part = last ? room + gaps - used : std::floor(room * weights(beside).at(k) / total);
    CodeMarks marks;
    // One of an earlier scene counts other lines.
    if (detail && detail->scene == context.scene()->number) marks.linked = detail;
    if (previews) marks.preview = &preview->linked.columns.at(k);
    marks.difference = context.state.difference;
    marks.needle = finder_.needle();
    marks.matches = &finder_.matches();
    if (match != nullptr && match->column == model::column_kinds.at(k)) marks.match = match;
    ImGui::SetCursorScreenPos(beside ? ImVec2(at.x + used, at.y) : ImVec2(at.x, at.y + used));
    act(context, k, views_.at(k).draw(context, marks, beside ? ImVec2(part, size.y) : ImVec2(size.x, part)));
    used += part;
    if (last) break;
    ImGui::SetCursorScreenPos(beside ? ImVec2(at.x + used, at.y) : ImVec2(at.x, at.y + used));
    splitter(context, n, k, shown[n + 1], room / total, beside);
    used += between;
  }
}

void SourcePanel::splitter(const Context& context, std::size_t index, std::size_t before, std::size_t after,
                           float room, bool beside) {
  const ImVec2 at = ImGui::GetCursorScreenPos(), free = ImGui::GetContentRegionAvail();
  const float thick = std::floor(context.px(splitter_size));
  const ImVec2 size = beside ? ImVec2(thick, std::max(1.0F, free.y - context.px(key_height)))
                             : ImVec2(std::max(1.0F, free.x), thick);
  ImGui::InvisibleButton(index == 0 ? "##split0" : "##split1", size);
  const bool held = ImGui::IsItemActive(), hovered = ImGui::IsItemHovered();
  if (hovered || held) ImGui::SetMouseCursor(beside ? ImGuiMouseCursor_ResizeEW : ImGuiMouseCursor_ResizeNS);
  auto& w = weights(beside);
  if (hovered && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
    w = beside ? beside_at_first : stacked_at_first;
  } else if (held) {
    const ImVec2 delta = ImGui::GetIO().MouseDelta;
    const float least = context.px(60) / room;
    const float moved = std::clamp((beside ? delta.x : delta.y) / room, std::min(0.0F, least - w.at(before)),
                                   std::max(0.0F, w.at(after) - least));
    w.at(before) += moved;
    w.at(after) -= moved;
  }
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled(at, ImVec2(at.x + size.x, at.y + size.y),
                     held || hovered ? context.theme.accent : context.theme.backdrop);
}

void SourcePanel::act(Context& context, std::size_t at, const CodeAction& action) {
  const auto& lines = context.scene()->columns->columns.at(at).lines;
  if (action.hovered && *action.hovered < lines.size()) {
    const model::Selection over = model::selection_of(lines[*action.hovered]);
    if (!model::is_empty(over)) context.hover(over);
  }
  if (action.why.valid()) {
    context.select(action.why);
    context.focus(PanelId::why);
  }
  if (!action.clicked || *action.clicked >= lines.size()) return;
  last_ = at;
  for (std::size_t k = 0; k < count; ++k) {
    if (k != at) views_.at(k).forget_range();
  }
  if (action.range) return;
  const model::Selection selection = model::selection_of(lines[*action.clicked]);
  if (model::is_empty(selection)) return;
  clicked_ = at;
  context.select(selection);
  if (action.tag) context.focus(PanelId::index);
}

void SourcePanel::draw_key(const Context& context, float height) {
  const model::SourceOutline& outline = *context.scene()->outline;
  const Theme& theme = context.theme;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, unit = context.px(1);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddLine(at, ImVec2(at.x + width, at.y), theme.border);
  if (outline.letters.empty()) return;
  const FontScope font(context.fonts.mono, context.fonts.mono_size * 0.92F);
  const MonoMetrics mono = mono_metrics(context.fonts);
  ImFont* ui = context.fonts.ui;
  const float size = mono.size, tag_width = std::floor(mono.advance * 2.1F),
              tag_height = std::floor(size * 1.22F);
  const float top = std::floor(at.y + (height - tag_height) / 2), gap = unit * 5, apart = unit * 12;
  const auto word_width = [&](std::string_view word) {
    return ui->CalcTextSizeA(size, 1e30F, 0, word.data(), word.data() + word.size()).x;
  };
  struct Entry {
    AccessTag tag;
    std::string_view word;
  };
  std::array<Entry, 11> entries{};
  std::size_t entry_count = 0;
  for (const char letter : outline.letters) {
    // The words of a gutter are short; the longer explanation is on hover.
    const std::string_view word = letter == 'X' ? "general" : access_name(letter);
    entries.at(entry_count++) = {{letter, false, false, false}, word};
  }
  if (outline.stores) entries.at(entry_count++) = {{' ', true, false, false}, "store"};
  if (outline.on_value) entries.at(entry_count++) = {{' ', false, true, false}, "in kernel"};
  float needed = 0;
  for (std::size_t k = 0; k < entry_count; ++k)
    needed += tag_width + gap + word_width(entries.at(k).word) + apart;
  const bool words = needed <= width - unit * edge * 2;
  float x = at.x + unit * edge;
  for (std::size_t k = 0; k < entry_count; ++k) {
    const Entry& entry = entries.at(k);
    draw_access_tag(draw, mono, theme, ImVec2(x, top), ImVec2(x + tag_width, top + tag_height), entry.tag);
    float end = x + tag_width;
    if (words) {
      const float y = std::floor(at.y + (height - size) / 2);
      draw.AddText(ui, size, ImVec2(end + gap, y), theme.text_dim, entry.word.data(),
                   entry.word.data() + entry.word.size());
      end += gap + word_width(entry.word);
    } else if (ImGui::IsMouseHoveringRect(ImVec2(x, top), ImVec2(end, top + tag_height)) &&
               ImGui::IsWindowHovered()) {
      const FontScope tip(ui, context.fonts.ui_size);
      ImGui::SetTooltip("%.*s", static_cast<int>(entry.word.size()), entry.word.data());
    }
    x = end + (words ? apart : gap);
  }
  ImGui::Dummy(ImVec2(width, height));
}

void SourcePanel::restart_find(const Context& context) {
  std::vector<model::ColumnKind> kinds;
  for (std::size_t k = 0; k < count; ++k) {
    if (shown_.at(k)) kinds.push_back(model::column_kinds.at(k));
  }
  found_in_ = context.scene()->columns;
  finder_.start(find_.data(), *found_in_, std::move(kinds));
  match_.reset();
  scroll_to_match_ = false;
}

void SourcePanel::go_to_match(std::ptrdiff_t step) {
  const auto& matches = finder_.matches();
  if (matches.empty()) return;
  if (match_) {
    const auto size = static_cast<std::ptrdiff_t>(matches.size());
    match_ = static_cast<std::size_t>((static_cast<std::ptrdiff_t>(*match_) + step + size) % size);
  } else {
    // The first one from what is being read on.
    const model::Match from{model::column_kinds.at(last_), views_.at(last_).top_line(), 0};
    const auto at = std::find_if(matches.begin(), matches.end(), [&](const model::Match& match) {
      return match.column == from.column && match.line >= from.line;
    });
    match_ = at == matches.end() ? 0 : static_cast<std::size_t>(at - matches.begin());
  }
  scroll_to_match_ = false;
  const model::Match& match = matches[*match_];
  show(static_cast<std::size_t>(match.column), match.line);
}

}  // namespace pallascope::views
