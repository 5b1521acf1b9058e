#include "app/views/code_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "app/views/access_tip.h"
#include "core/report/format.h"

namespace pallascope::views {
namespace {

constexpr float head_height = 24;

const char* column_title(model::ColumnKind kind) {
  return kind == model::ColumnKind::model ? "model" : kind == model::ColumnKind::loops ? "loops" : "Pallas";
}
/// Names of items and of the column's window.
const char* column_id(model::ColumnKind kind) {
  return kind == model::ColumnKind::model ? "model" : kind == model::ColumnKind::loops ? "loops" : "pallas";
}

float gutter_width(float advance, float unit, int digits, bool tags) {
  return unit * 5 + static_cast<float>(digits) * advance + (tags ? unit * 6 + advance * 2.1F : 0) + unit * 6 +
         unit * 3 + unit * 7;
}

int digits_of(int number) {
  int digits = 1;
  while (number >= 10) number /= 10, ++digits;
  return std::max(digits, 2);
}

/// Where the lines of `before` around `line` are in `after`: by the step between them, else by their section's name.
std::optional<std::size_t> same_place(const model::Column& before, const model::ColumnOutline& before_outline,
                                      const model::Column& after, const model::ColumnOutline& after_outline,
                                      std::size_t line, int step) {
  if (before.lines.empty() || after.lines.empty()) return std::nullopt;
  if (step == 1) return model::line_after(after, line);
  if (step == -1) return std::min(model::line_before(before, line), after.lines.size() - 1);
  const model::Section* section = model::section_at(before_outline, line);
  if (section == nullptr) return std::nullopt;
  for (const model::Section& other : after_outline.sections) {
    if (other.name == section->name)
      return std::min(other.first + (line - section->first), after.lines.size() - 1);
  }
  return std::nullopt;
}

}  // namespace

float CodeView::width_for(const Context& context, std::size_t characters) {
  const FontScope font(context.fonts.mono, context.fonts.mono_size);
  const float advance = mono_metrics(context.fonts).advance;
  return gutter_width(advance, context.px(1), 4, true) + static_cast<float>(characters) * advance;
}

bool CodeView::is_visible(std::size_t line) const {
  return seen_ && line >= top_line_ && line < bottom_line_ && rows_.row_of(line) < rows_.size() &&
         rows_.at(rows_.row_of(line)).fold < 0;
}

std::pair<std::size_t, std::size_t> CodeView::range() const {
  if (!range_) return {1, 0};
  return std::minmax(range_->first, range_->second);
}

std::string CodeView::copied_text() const {
  if (!columns_ || !range_) return "";
  const auto [first, last] = range();
  if (first == last) return std::string(column().lines[first].text);
  std::string text;
  for (std::size_t k = first; k <= last && k < column().lines.size(); ++k)
    text.append(column().lines[k].text) += '\n';
  return text;
}

const model::LinkedLines* CodeView::linked(const CodeMarks& marks) const {
  return marks.linked ? &marks.linked->linked[kind_] : nullptr;
}

const char* CodeView::line_name(std::size_t line, const char* suffix) {
  name_.assign("##").append(column_id(kind_)).append(":");
  const model::SourceLine& source = column().lines[line];
  if (kind_ == model::ColumnKind::model) {
    const model::Section* section = model::section_at(outline(), line);
    const auto file = section == nullptr ? 0 : section - outline().sections.data();
    if (source.kind == model::LineKind::file) name_.append("file");
    if (file > 0 || source.kind == model::LineKind::file) {
      fmt::format_to(std::back_inserter(name_), "{}", file + 1);
      if (source.kind != model::LineKind::file) name_.append(":");
    }
  }
  if (source.kind == model::LineKind::code) {
    // The calls of the loops column and the module both count their lines; a line without a number has its place.
    fmt::format_to(std::back_inserter(name_), "{}",
                   source.number > 0 ? static_cast<std::size_t>(source.number) : line + 1);
  }
  return name_.append(suffix).c_str();
}

void CodeView::adopt(const workspace::Scene& scene) {
  if (columns_ == scene.columns) return;
  const bool same = compilation_ == scene.compilation && columns_ != nullptr;
  if (same) {
    const auto step = static_cast<std::ptrdiff_t>(scene.position) - static_cast<std::ptrdiff_t>(position_);
    anchor_ = same_place(column(), outline(), (*scene.columns)[kind_], (*scene.outline)[kind_], top_line_,
                         step == 1    ? 1
                         : step == -1 ? -1
                                      : 0);
  } else {
    opened_.clear();
    anchor_ = 0;
    top_offset_ = 0;
    seen_ = false;
  }
  closed_.clear();
  target_.reset();
  range_.reset();
  compilation_ = scene.compilation;
  position_ = scene.position;
  columns_ = scene.columns;
  outline_ = scene.outline;
  spans_.set(columns_, kind_);
  changes_.clear();
  const auto& lines = column().lines;
  for (std::size_t k = 0; k < lines.size(); ++k) {
    const bool flagged = lines[k].flag != model::LineFlag::same;
    if ((flagged && (k == 0 || lines[k - 1].flag == model::LineFlag::same)) ||
        (!flagged && lines[k].removed_before > 0))
      changes_.push_back(k);
  }
  folds_stale_ = true;
}

void CodeView::update_folds(const CodeMarks& marks) {
  const auto& folds = outline().folds;
  if (wanted_) {
    const auto holds = std::find_if(folds.begin(), folds.end(), [&](const model::Fold& fold) {
      return fold.first <= *wanted_ && *wanted_ < fold.end;
    });
    if (holds != folds.end() && !opened_.contains(holds->key)) {
      opened_.insert(holds->key);
      folds_stale_ = true;
    }
  }
  if (!folds_stale_ && folded_for_ == marks.linked) return;
  folded_for_ = marks.linked;
  folds_stale_ = false;
  std::vector<bool> open(folds.size());
  const model::LinkedLines* links = linked(marks);
  for (std::size_t k = 0; k < folds.size(); ++k) {
    bool holds_linked = false;
    if (links != nullptr) {
      const auto at = std::lower_bound(links->lines.begin(), links->lines.end(), folds[k].first);
      holds_linked = at != links->lines.end() && *at < folds[k].end;
    }
    open[k] = opened_.contains(folds[k].key) || (holds_linked && !closed_.contains(folds[k].key));
  }
  if (open == open_ && !anchor_ && rows_.size() > 0) return;
  open_ = std::move(open);
  if (!anchor_) anchor_ = top_line_;
  rows_.set(column().lines.size(), folds, open_);
}

float CodeView::content_height(float view_height, float line_height) const {
  const float rows = static_cast<float>(rows_.size()) * line_height;
  // At the end of the text, too, a whole row is on top.
  return rows <= view_height ? rows
                             : std::ceil((rows - view_height) / line_height) * line_height + view_height;
}

void CodeView::place_scroll(float view_height, float line_height) {
  const float most = std::max(0.0F, content_height(view_height, line_height) - view_height);
  float y = std::clamp(scroll_y_, 0.0F, std::max(most, scroll_y_));
  const float before = y;
  if (anchor_) {
    std::size_t row = rows_.row_of(*anchor_);
    // The head of a fold that opens stays at the top: its first line comes below it.
    if (top_is_head_ && row > 0 && row < rows_.size() && rows_.at(row).fold < 0 &&
        rows_.at(row - 1).fold >= 0)
      --row;
    if (row < rows_.size()) y = std::min(most, static_cast<float>(row) * line_height + top_offset_);
    anchor_.reset();
  }
  if (wanted_ && view_height_ > 0) {
    const std::size_t line = *wanted_, row = rows_.row_of(line);
    wanted_.reset();
    if (row < rows_.size()) {
      const float at = static_cast<float>(row) * line_height;
      const bool readable = at >= y + line_height && at + 2 * line_height <= y + view_height;
      if (!readable) {
        // A third from the top, at the start of a row.
        float above = std::floor(view_height * 0.3F / line_height) * line_height;
        // Or as far as the kernel begins, so that one sees which it is.
        if (const model::Section* section = model::section_at(outline(), line);
            section != nullptr && has_tags()) {
          const float head = static_cast<float>(row - rows_.row_of(section->first)) * line_height;
          if (head <= view_height * 0.6F) above = head;
        }
        target_ = std::clamp(at - above, 0.0F, most);
        if (!seen_) y = *target_;
        // Far away: only the end of the way is shown.
        const float longest = view_height * 1.5F;
        if (std::abs(*target_ - y) > longest) y = *target_ + (y < *target_ ? -longest : longest);
        seen_ = true;
      } else {
        target_.reset();
      }
    }
  }
  if (ImGui::GetIO().MouseWheel != 0 || ImGui::IsMouseDown(ImGuiMouseButton_Left)) target_.reset();
  if (target_) {
    const float left = *target_ - y;
    const float share = 1 - std::exp(-22 * std::min(ImGui::GetIO().DeltaTime, 0.05F));
    // At least a pixel a frame, however short the frame.
    y = std::abs(left) < 1.5F ? *target_ : y + std::copysign(std::max(1.0F, std::abs(left) * share), left);
    if (y == *target_) target_.reset();
  }
  if (y != before) ImGui::SetNextWindowScroll(ImVec2(-1, std::floor(y)));
}

CodeView::Look CodeView::look(const Context& context, const MonoMetrics& mono) const {
  const ImRect inner = ImGui::GetCurrentWindow()->InnerRect;
  Look l{context.theme,
         context.fonts,
         *ImGui::GetWindowDrawList(),
         mono,
         context.px(1),
         inner.Min,
         inner.Max,
         ImGui::GetScrollX(),
         0,
         0,
         0,
         0,
         0};
  const int digits = digits_of(outline().last_number);
  l.numbers_right = l.min.x + l.unit * 5 + static_cast<float>(digits) * mono.advance;
  l.tag_left = std::floor(l.numbers_right + l.unit * 6);
  l.tag_right = has_tags() ? std::floor(l.tag_left + mono.advance * 2.1F) : l.numbers_right;
  l.bar = std::floor(l.tag_right + l.unit * 6);
  l.gutter_right = std::floor(l.min.x + gutter_width(mono.advance, l.unit, digits, has_tags()));
  return l;
}

CodeAction CodeView::draw(Context& context, const CodeMarks& marks, ImVec2 size) {
  CodeAction action;
  adopt(*context.scene());
  ImGui::PushID(column_id(kind_));
  const float head = std::floor(context.px(head_height));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 rest(size.x, std::max(1.0F, size.y - head));
  ImGui::SetCursorScreenPos(ImVec2(at.x, at.y + head));
  if (column().lines.empty()) {
    draw_nothing(context, rest);
    ImGui::SetCursorScreenPos(at);
    draw_head(context, ImVec2(size.x, head));
    ImGui::PopID();
    return action;
  }
  {
    const FontScope font(context.fonts.mono, context.fonts.mono_size);
    const MonoMetrics mono = mono_metrics(context.fonts);
    update_folds(marks);
    place_scroll(view_height_ > 0 ? view_height_ : rest.y, mono.line_height);
    const float gutter =
        gutter_width(mono.advance, context.px(1), digits_of(outline().last_number), has_tags());
    ImGui::SetNextWindowContentSize(ImVec2(gutter + static_cast<float>(outline().widest + 2) * mono.advance,
                                           content_height(view_height_, mono.line_height)));
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, 0));
    ImGui::BeginChild(
        "##text", rest, ImGuiChildFlags_None,
        ImGuiWindowFlags_HorizontalScrollbar | ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoSavedSettings);
    ImGui::PopStyleVar();
    const Look l = look(context, mono);
    scroll_y_ = ImGui::GetScrollY();
    view_height_ = l.max.y - l.min.y;
    if (target_ || wanted_) context.state.moving = true;
    items(context, l, action);
    for (const VisibleRow& row : visible_) draw_background(l, marks, row);
    l.draw.PushClipRect(ImVec2(l.gutter_right, l.min.y), l.max, true);
    for (const VisibleRow& row : visible_) draw_text_of(l, marks, row);
    l.draw.PopClipRect();
    for (const VisibleRow& row : visible_) draw_gutter(l, marks, row);
    if (l.scrolled > 0)
      l.draw.AddLine(ImVec2(l.gutter_right - 1, l.min.y), ImVec2(l.gutter_right - 1, l.max.y),
                     l.theme.border);
    draw_scroll_marks(l, marks);
    {
      const FontScope ui(context.fonts.ui, context.fonts.ui_size);
      menu(context, action);
    }
    ImGui::EndChild();
  }
  // After the text, which says what stands at its top.
  ImGui::SetCursorScreenPos(at);
  draw_head(context, ImVec2(size.x, head));
  ImGui::PopID();
  return action;
}

void CodeView::draw_head(const Context& context, ImVec2 size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const Theme& theme = context.theme;
  draw.AddRectFilled(at, ImVec2(at.x + size.x, at.y + size.y), theme.raised);
  draw.AddLine(ImVec2(at.x, at.y + size.y - 1), ImVec2(at.x + size.x, at.y + size.y - 1), theme.border);
  const model::Section* section = model::section_at(outline(), top_line_);
  ImGui::SetCursorScreenPos(at);
  if (ImGui::InvisibleButton("##head", size) && section != nullptr) wanted_ = section->first;
  const bool hovered = ImGui::IsItemHovered();
  const ImVec2 next(at.x, at.y + size.y);
  ImGui::PushClipRect(at, ImVec2(at.x + size.x, at.y + size.y), true);
  const float pad = context.px(8);
  const auto middle = [&](float height) { return std::floor(at.y + (size.y - 1 - height) / 2); };
  float x = at.x + pad;
  {
    const FontScope font(context.fonts.bold, context.fonts.small_size);
    ImGui::SetCursorScreenPos(ImVec2(x, middle(ImGui::GetTextLineHeight())));
    text(theme.text_dim, column_title(kind_));
    x = ImGui::GetItemRectMax().x + context.px(10);
  }
  if (section != nullptr) {
    const bool file = kind_ == model::ColumnKind::model;
    const FontScope font(file ? context.fonts.ui : context.fonts.mono, context.fonts.small_size);
    const float y = middle(ImGui::GetTextLineHeight());
    if (!section->ids.empty()) {
      ImGui::SetCursorScreenPos(ImVec2(x, y));
      text(theme.kernel_border, section->ids);
      x = ImGui::GetItemRectMax().x + context.px(8);
    }
    float right = at.x + size.x - pad;
    if (file && !section->whole) {
      constexpr const char* note = "only traced lines";
      const float width = ImGui::CalcTextSize(note).x;
      ImGui::SetCursorScreenPos(ImVec2(right - width, y));
      text(theme.text_faint, note);
      right -= width + context.px(10);
    }
    ImGui::SetCursorScreenPos(ImVec2(x, y));
    const std::string_view shown =
        file ? std::string_view(section->name).substr(section->name.find_last_of('/') + 1)
             : std::string_view(section->name);
    if (right > x) text_cut(theme.text, shown, right - x);
  }
  ImGui::PopClipRect();
  ImGui::SetCursorScreenPos(next);
  if (hovered && section != nullptr && ImGui::BeginTooltip()) {
    ImGui::PushTextWrapPos(context.px(520));
    text(theme.text,
         section->ids.empty() ? section->name : fmt::format("{}  {}", section->ids, section->name));
    if (!section->whole) {
      text(theme.text_dim,
           "The trace holds no text of this file. What is shown are the lines that made operators, as the "
           "trace's "
           "stack frames quote them.");
    } else if (section->ids.find(',') != std::string::npos) {
      text(theme.text_dim, "These kernels are equal, so they share one text.");
    }
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
  }
}

void CodeView::draw_nothing(const Context& context, ImVec2 size) const {
  const char* why = kind_ == model::ColumnKind::model
                        ? "The trace names no Python lines: it was made without stack traces."
                        : "Nothing is generated for this program.";
  ImGui::BeginChild("##text", size, ImGuiChildFlags_AlwaysUseWindowPadding, ImGuiWindowFlags_NoNav);
  ImGui::PushTextWrapPos(0);
  text(context.theme.text_dim, why);
  ImGui::PopTextWrapPos();
  ImGui::EndChild();
}

void CodeView::items(Context& context, const Look& l, CodeAction& action) {
  const float line_height = l.mono.line_height;
  const auto first = static_cast<std::size_t>(std::max(0.0F, std::floor(scroll_y_ / line_height)));
  const auto count = static_cast<std::size_t>(view_height_ / line_height) + 2;
  const std::size_t end = std::min(rows_.size(), first + count);
  visible_.clear();
  for (std::size_t row = first; row < end; ++row)
    visible_.push_back({rows_.at(row),
                        std::floor(l.min.y + static_cast<float>(row) * line_height - scroll_y_), false,
                        false});
  if (visible_.empty()) return;
  top_line_ = visible_.front().row.line;
  top_is_head_ = visible_.front().row.fold >= 0;
  top_offset_ = scroll_y_ - static_cast<float>(first) * line_height;
  bottom_line_ = visible_.back().row.line + (visible_.back().y + line_height <= l.max.y ? 1 : 0);
  for (VisibleRow& row : visible_) line_items(context, l, row, action);
}

void CodeView::line_items(Context& context, const Look& l, VisibleRow& row, CodeAction& action) {
  const std::size_t line = row.row.line;
  const model::SourceLine& source = column().lines[line];
  const ImVec2 size(std::max(1.0F, l.max.x - l.min.x), l.mono.line_height);
  ImGui::SetCursorScreenPos(ImVec2(l.min.x, row.y));
  if (row.row.fold >= 0) {
    name_.assign("##").append(column_id(kind_));
    fmt::format_to(std::back_inserter(name_), ":fold:{}", source.number);
    if (ImGui::InvisibleButton(name_.c_str(), size)) toggle(row.row.fold, row.row.open);
    row.hovered = ImGui::IsItemHovered();
    return;
  }
  if (source.kind == model::LineKind::gap) return;
  ImGui::SetNextItemAllowOverlap();
  const bool pressed = ImGui::InvisibleButton(line_name(line), size);
  row.hovered = ImGui::IsItemHovered();
  if (row.hovered && source.kind == model::LineKind::code) action.hovered = line;
  if (pressed) {
    const bool extend = ImGui::GetIO().KeyShift && range_.has_value();
    click(line, extend);
    action.clicked = line;
    action.range = extend;
  }
  if (row.hovered && ImGui::IsMouseReleased(ImGuiMouseButton_Right)) {
    menu_line_ = line;
    if (const auto [from, to] = range(); line < from || line > to) click(line, false);
    ImGui::OpenPopup("##menu");
  }
  if (source.letter != ' ' && has_tags()) {
    ImGui::SetCursorScreenPos(ImVec2(l.tag_left, row.y));
    if (ImGui::InvisibleButton(line_name(line, ":access"),
                               ImVec2(l.tag_right - l.tag_left, l.mono.line_height))) {
      click(line, false);
      action.clicked = line;
      action.tag = true;
    }
    if (ImGui::IsItemHovered()) {
      row.tag_hovered = row.hovered = true;
      action.hovered = line;
      const FontScope ui(context.fonts.ui, context.fonts.ui_size);
      access_tooltip(context, source);
    }
  }
  if (!row.hovered) return;
  const float mouse = ImGui::GetIO().MousePos.x;
  const FontScope ui(context.fonts.ui, context.fonts.ui_size);
  if (context.state.difference && mouse >= l.bar - l.unit * 3 && mouse < l.gutter_right) {
    const int removed = model::only_removed_before(column(), line);
    const char* flag = source.flag == model::LineFlag::added     ? "added by the last decision"
                       : source.flag == model::LineFlag::changed ? "changed by the last decision"
                                                                 : nullptr;
    if (removed > 0) {
      ImGui::SetTooltip("%d line%s removed here by the last decision", removed, removed == 1 ? "" : "s");
    } else if (flag != nullptr) {
      ImGui::SetTooltip("%s", flag);
    }
  } else if (source.kind == model::LineKind::file) {
    ImGui::SetTooltip("%.*s", static_cast<int>(source.text.size()), source.text.data());
  }
}

void CodeView::click(std::size_t line, bool extend) {
  if (extend) {
    range_->second = line;
  } else {
    range_ = {line, line};
  }
}

void CodeView::toggle(int fold, bool open) {
  const std::string& key = outline().folds[static_cast<std::size_t>(fold)].key;
  if (open) {
    opened_.erase(key);
    closed_.insert(key);
  } else {
    closed_.erase(key);
    opened_.insert(key);
  }
  folds_stale_ = true;
}

void CodeView::menu(const Context& context, CodeAction& action) {
  if (!ImGui::BeginPopup("##menu")) return;
  if (ImGui::IsKeyPressed(ImGuiKey_Escape, false)) ImGui::CloseCurrentPopup();
  const auto [first, last] = range();
  const std::string copy =
      last > first ? fmt::format("Copy {} lines", last - first + 1) : std::string("Copy line");
  if (ImGui::MenuItem(copy.c_str(), "Ctrl+C")) ImGui::SetClipboardText(copied_text().c_str());
  if (ImGui::MenuItem("Copy all")) {
    std::string all;
    for (const model::SourceLine& line : column().lines) all.append(line.text) += '\n';
    ImGui::SetClipboardText(all.c_str());
  }
  if (menu_line_ < column().lines.size() && !column().lines[menu_line_].nodes.empty()) {
    ImGui::Separator();
    std::size_t shown = 0;
    for (const trace::NodeId node : column().lines[menu_line_].nodes) {
      constexpr std::size_t most = 12;
      if (++shown > most) break;
      const auto& nodes = context.scene()->compilation->graph().nodes;
      if (!nodes.contains(node)) continue;
      if (ImGui::MenuItem(fmt::format("why {}  {}", report::id_text(node), nodes[node].name).c_str()))
        action.why = node;
    }
  }
  ImGui::EndPopup();
}

}  // namespace pallascope::views
