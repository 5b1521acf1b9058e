#include "app/views/decisions_panel.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/views/bar_controls.h"
#include "core/report/format.h"

namespace pallascope::views {
namespace {

using model::DecisionOrder;
using model::Notability;

std::string count(std::size_t value) { return report::count_text(static_cast<std::int64_t>(value)); }

/// What stands apart in the order by bytes.
int group_of(const model::DecisionRow& row) {
  return row.missed ? 0 : row.boundary ? 1 : 4 - static_cast<int>(row.notability);
}

ImU32 sign_color(const Theme& theme, const model::DecisionRow& row) {
  if (row.notability == Notability::small) return theme.text_faint;
  if (row.accepted) return theme.accepted;
  return row.boundary ? mixed(theme.refused, theme.text_faint, 0.45F) : theme.refused;
}

}  // namespace

void DecisionsPanel::draw(Context& context) {
  const workspace::Scene* scene = context.scene();
  if (scene == nullptr || !scene->decisions) return;
  follow(context, *scene);
  const FontScope font(context.fonts.ui, context.fonts.small_size);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(context.px(4), context.px(5)));
  ImGui::SetCursorPos(ImVec2(context.px(8), ImGui::GetCursorPosY() + context.px(7)));
  ImGui::BeginGroup();
  draw_search(context);
  draw_filters(context);
  draw_node_filter(context);
  ImGui::EndGroup();
  ImGui::PopStyleVar();
  const ImVec2 line = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddLine(line, ImVec2(line.x + ImGui::GetWindowWidth(), line.y),
                                      context.theme.border);
  if (list_->filter() != filter_) {
    list_->set_filter(filter_);
    reveal_ = true;
  }
  if (list_->size() == 0) {
    draw_nothing(context);
  } else {
    draw_list(context);
  }
}

void DecisionsPanel::follow(Context& context, const workspace::Scene& scene) {
  if (index_ != scene.decisions) {
    index_ = scene.decisions;
    // What was asked for by name or number belongs to the program that it was asked of.
    filter_.node.reset();
    filter_.reason.reset();
    list_.emplace(index_, filter_);
    reveal_ = true;
  }
  if (selection_number_ != context.state.selection_number) {
    selection_number_ = context.state.selection_number;
    reveal_ = true;
  }
  if (shown_position_ != scene.position) {
    shown_position_ = scene.position;
    if (filter_.order == DecisionOrder::number) reveal_ = true;
  }
}

void DecisionsPanel::draw_search(Context& context) {
  const std::string shown = list_->size() == index_->size()
                                ? count(index_->size())
                                : fmt::format("{} of {}", count(list_->size()), count(index_->size()));
  const float width = ImGui::GetContentRegionAvail().x - context.px(8),
              count_width = text_width(shown) + context.px(6);
  if (context.state.find && context.state.active == PanelId::decisions) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(width - count_width);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(context.px(7), context.px(4)));
  if (ImGui::InputTextWithHint("##filter", "filter: text, d37, fuse, refused…", text_.data(), text_.size(),
                               ImGuiInputTextFlags_EscapeClearsAll))
    filter_.text = text_.data();
  ImGui::PopStyleVar();
  // Enter ends the typing: in that frame the field is not active any more.
  const bool entered =
      ImGui::IsKeyPressed(ImGuiKey_Enter, false) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter, false);
  if (ImGui::IsItemActive() || (entered && ImGui::IsItemDeactivated())) keys(context, true);
  ImGui::SameLine(0, context.px(6));
  ImGui::AlignTextToFramePadding();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::Dummy(ImVec2(count_width - context.px(6), ImGui::GetFrameHeight()));
  draw_cut(*ImGui::GetWindowDrawList(), ImVec2(at.x, at.y + context.px(4)), context.theme.text_dim, shown,
           count_width);
  tip(context, fmt::format("{} of {} decisions are shown", count(list_->size()), count(index_->size())));
}

void DecisionsPanel::draw_filters(Context& context) {
  const float right = context.px(8), room = ImGui::GetContentRegionAvail().x - right;
  const std::string pass = filter_.kind ? std::string(schedule::kind_name(*filter_.kind)) : "pass";
  const std::string reason =
      filter_.reason ? report::spaced(schedule::reason_name(*filter_.reason)) : "reason";
  const bool by_bytes = filter_.order == DecisionOrder::missed;
  std::string order = by_bytes ? "by bytes" : "by number";
  ChipLook menu, plain;
  menu.menu = true;
  float gap = context.px(4);
  // One row of them, if that can be: the list needs the room. `all` goes first; a verdict that is on switches off, too.
  const auto reason_width = [&] { return std::min(chip_width(context, reason, menu), context.px(120)); };
  const auto whole = [&](bool all) {
    return chip_width(context, pass, menu) + (all ? chip_width(context, "all", plain) : 0) +
           chip_width(context, "✓", plain) + chip_width(context, "✗", plain) + reason_width() +
           chip_width(context, order, menu) + chip_width(context, "small", plain) + 4 * gap +
           (all ? 2 : 1) * context.px(1);
  };
  const bool all = whole(true) <= room;
  if (!all && whole(false) > room) {
    menu.tight = plain.tight = true;
    order = by_bytes ? "bytes" : "number";
    gap = context.px(3);
  }
  const auto look = [&menu](bool on) {
    ChipLook made = menu;
    made.on = on;
    return made;
  };
  ImVec2 at = ImGui::GetCursorScreenPos();
  if (chip(context, "pass", pass, look(filter_.kind.has_value()))) ImGui::OpenPopup("##passes");
  tip(context, "Only the decisions of one pass: lower, inline or fuse");
  if (begin_menu(context, "##passes", at, 0)) {
    if (ImGui::MenuItem("all passes", nullptr, !filter_.kind)) filter_.kind.reset();
    using enum schedule::DecisionKind;
    for (const schedule::DecisionKind kind : {lower, inline_producer, fuse}) {
      const std::string name(schedule::kind_name(kind));
      if (!ImGui::MenuItem(name.c_str(), nullptr, filter_.kind == kind)) continue;
      filter_.kind = kind;
      filter_.reason.reset();
    }
    ImGui::EndPopup();
  }
  // Verdict: all, accepted, refused. The one that is on can be switched off, too.
  const auto verdict = [&](const char* id, const char* label, std::optional<bool> value, ImU32 ink,
                           const char* words) {
    ChipLook made = plain;
    made.on = filter_.accepted == value;
    made.ink = ink;
    flow(chip_width(context, label, made) + right, value && (all || !*value) ? context.px(1) : gap);
    if (chip(context, id, value ? "" : label, made, chip_width(context, label, made)))
      filter_.accepted = made.on ? std::nullopt : value;
    if (value) {
      const ImVec2 from = ImGui::GetItemRectMin(), to = ImGui::GetItemRectMax();
      draw_verdict(context, *ImGui::GetWindowDrawList(), ImVec2((from.x + to.x) / 2, (from.y + to.y) / 2),
                   ink, *value);
    }
    tip(context, words);
  };
  if (all) verdict("all", "all", std::nullopt, 0, "Accepted and refused ones");
  verdict("accepted", "✓", true, context.theme.accepted, "Accepted ones only");
  verdict("refused", "✗", false, context.theme.refused, "Refused ones only");
  const float reason_room = reason_width();
  flow(reason_room + right, gap);
  at = ImGui::GetCursorScreenPos();
  if (chip(context, "reason", reason, look(filter_.reason.has_value()), reason_room))
    ImGui::OpenPopup("##reasons");
  tip(context,
      filter_.reason ? schedule::reason_words(*filter_.reason) : "Only the decisions with one reason");
  if (begin_menu(context, "##reasons", at, 0)) {
    if (ImGui::MenuItem("any reason", nullptr, !filter_.reason)) filter_.reason.reset();
    for (const model::ReasonRows& row : index_->reasons()) {
      if (filter_.kind && row.kind != *filter_.kind) continue;
      const std::string name =
          fmt::format("{} {}##{}", row.accepted ? "✓" : "✗",
                      report::spaced(schedule::reason_name(row.reason)), static_cast<int>(row.kind));
      if (ImGui::MenuItem(name.c_str(), count(row.count).c_str(), filter_.reason == row.reason))
        filter_.reason = row.reason;
      tip(context, schedule::reason_words(row.reason));
    }
    ImGui::EndPopup();
  }
  flow(chip_width(context, order, menu) + right, gap);
  at = ImGui::GetCursorScreenPos();
  if (chip(context, "order", order, menu)) ImGui::OpenPopup("##orders");
  tip(context,
      "By bytes: missed fusions first, those at boundaries after them. By number: as they were taken");
  if (begin_menu(context, "##orders", at, 0)) {
    if (ImGui::MenuItem("by bytes, missed first", nullptr, filter_.order == DecisionOrder::missed))
      filter_.order = DecisionOrder::missed;
    if (ImGui::MenuItem("by number", nullptr, filter_.order == DecisionOrder::number))
      filter_.order = DecisionOrder::number;
    ImGui::EndPopup();
  }
  ChipLook small = plain;
  small.on = filter_.small;
  flow(chip_width(context, "small", small) + right, gap);
  if (chip(context, "small", "small", small)) filter_.small = !filter_.small;
  tip(context, "Show small steps, too: operators lowered, producers kept");
}

void DecisionsPanel::draw_node_filter(Context& context) {
  const session::Compilation& compilation = *context.scene()->compilation;
  const auto name = [&](trace::NodeId node) {
    return node.valid() && compilation.graph().nodes.contains(node)
               ? fmt::format("about {} {}", report::id_text(node), compilation.graph().nodes[node].name)
               : std::string("about nothing");
  };
  const auto* selected = std::get_if<trace::NodeId>(&context.state.selection);
  const float width = ImGui::GetContentRegionAvail().x - context.px(8);
  bool first = true;
  if (filter_.node) {
    ChipLook on;
    on.on = true;
    const std::string label = name(*filter_.node) + "  ×";
    const float wide = std::min(width, chip_width(context, label, on));
    if (chip(context, "about", label, on, wide)) filter_.node.reset();
    tip(context, "Only decisions that name this node. Click to see all again");
    first = false;
  }
  if (selected != nullptr && filter_.node != *selected) {
    const std::string label = name(*selected);
    const float wide = std::min(width, chip_width(context, label));
    if (!first) flow(wide + context.px(8), context.px(4));
    if (chip(context, "about_selected", label, {}, wide)) filter_.node = *selected;
    tip(context, "Show only decisions that name the selected node");
  }
}

void DecisionsPanel::draw_nothing(Context& context) {
  ImGui::SetCursorPos(ImVec2(context.px(12), ImGui::GetCursorPosY() + context.px(12)));
  ImGui::BeginGroup();
  if (index_->size() == 0) {
    text(context.theme.text_dim, "No decisions were taken.");
  } else {
    text(context.theme.text_dim, "No decision is like that.");
    if (chip(context, "clear", "Clear the filter")) clear_filter();
  }
  ImGui::EndGroup();
}

void DecisionsPanel::clear_filter() {
  const DecisionOrder order = filter_.order;
  filter_ = {};
  filter_.order = order;
  text_[0] = 0;
  // Only small ones may be there.
  filter_.small =
      std::none_of(index_->rows().begin(), index_->rows().end(),
                   [](const model::DecisionRow& row) { return row.notability != Notability::small; });
}

std::optional<std::size_t> DecisionsPanel::selected_position(const Context& context) const {
  const auto* id = std::get_if<schedule::DecisionId>(&context.state.selection);
  return id == nullptr ? std::nullopt : list_->position(*id);
}

void DecisionsPanel::select_position(Context& context, std::size_t position) {
  context.select(list_->id(std::min(position, list_->size() - 1)));
  selection_number_ = context.state.selection_number;
  reveal_ = true;
}

void DecisionsPanel::keys(Context& context, bool from_field) {
  if (list_->size() == 0 || ImGui::GetIO().KeyCtrl || ImGui::GetIO().KeyAlt) return;
  const auto pressed = [](ImGuiKey key) { return ImGui::IsKeyPressed(key, true); };
  const std::optional<std::size_t> at = selected_position(context);
  const std::size_t last = list_->size() - 1;
  std::optional<std::size_t> to;
  if (pressed(ImGuiKey_DownArrow)) to = at ? std::min(*at + 1, last) : 0;
  if (pressed(ImGuiKey_UpArrow)) to = at ? *at - std::min<std::size_t>(*at, 1) : last;
  if (pressed(ImGuiKey_PageDown)) to = at ? std::min(*at + page_, last) : 0;
  if (pressed(ImGuiKey_PageUp)) to = at ? *at - std::min(*at, page_) : last;
  if (!from_field && pressed(ImGuiKey_Home)) to = 0;
  if (!from_field && pressed(ImGuiKey_End)) to = last;
  if (to && to != at) select_position(context, *to);
  if (ImGui::IsKeyPressed(ImGuiKey_Enter, false) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter, false)) {
    // After typing, Enter goes to the first one found.
    if (at) {
      context.go_to_decision(list_->id(*at));
    } else if (from_field) {
      context.go_to_decision(list_->id(0));
    }
  }
}

void DecisionsPanel::draw_list(Context& context) {
  const Theme& theme = context.theme;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, 0));
  ImGui::BeginChild("rows", ImVec2(0, 0), ImGuiChildFlags_None, ImGuiWindowFlags_NoNav);
  const bool focused = ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows);
  if (focused && context.state.active == PanelId::decisions && !ImGui::GetIO().WantTextInput &&
      !ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel))
    keys(context, false);
  const float height = std::floor(ImGui::GetFontSize() + context.px(8));
  const float view = ImGui::GetWindowHeight();
  page_ = std::max<std::size_t>(1, static_cast<std::size_t>(view / height));
  if (reveal_) {
    reveal_ = false;
    if (const auto at = selected_position(context)) {
      const float top = static_cast<float>(*at) * height, scroll = ImGui::GetScrollY();
      // Near the edge is near enough: the list must not jump at each step.
      if (top < scroll) ImGui::SetScrollY(std::max(0.0F, top - height));
      if (top + height > scroll + view) ImGui::SetScrollY(top + 2 * height - view);
    }
  }
  const float id_width =
      text_width(report::id_text(schedule::DecisionId(std::max<std::size_t>(index_->size(), 1) - 1)));
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(list_->size()), height);
  while (clipper.Step()) {
    for (int k = clipper.DisplayStart; k < clipper.DisplayEnd; ++k)
      draw_row(context, static_cast<std::size_t>(k), height, id_width);
  }
  if (filter_.order == DecisionOrder::number) {
    // Where the program stands: between the last decision that holds and the next one.
    const float y = origin.y + static_cast<float>(list_->rows_before(context.scene()->position)) * height;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddLine(ImVec2(origin.x, y), ImVec2(origin.x + ImGui::GetWindowWidth(), y), theme.accent,
                 context.px(1.5F));
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
}

void DecisionsPanel::draw_row(Context& context, std::size_t position, float height, float id_width) {
  const Theme& theme = context.theme;
  const model::DecisionRow& row = list_->row(position);
  const std::string name = report::id_text(row.id);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const bool selected = context.state.selection == model::Selection(row.id);
  const bool hovered_elsewhere = context.state.hovered == model::Selection(row.id);
  if (ImGui::InvisibleButton(("##" + name).c_str(), ImVec2(width, height))) {
    if (!selected) context.select(row.id);
    selection_number_ = context.state.selection_number;
  }
  const bool hovered = ImGui::IsItemHovered();
  if (hovered && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) context.go_to_decision(row.id);
  if (hovered) context.hover(row.id);
  const ImVec2 end(at.x + width, at.y + height);
  if (selected) {
    draw.AddRectFilled(at, end, theme.accent_soft);
    draw.AddRectFilled(at, ImVec2(at.x + context.px(2), end.y), theme.accent);
  }
  if (hovered || hovered_elsewhere) draw.AddRectFilled(at, end, theme.hover);
  if (filter_.order == DecisionOrder::missed && position > 0 &&
      group_of(list_->row(position - 1)) != group_of(row))
    draw.AddLine(at, ImVec2(end.x, at.y), theme.border_strong);

  const std::size_t now = context.scene()->position;
  const float taken = row.id.index() < now ? 1.0F : 0.45F;
  const float y = at.y + std::floor((height - ImGui::GetFontSize()) / 2);
  // ▶: the program stands right after this one.
  if (row.id.index() + 1 == now) {
    const float x = at.x + context.px(5), middle = at.y + height / 2, half = context.px(3.5F);
    draw.AddTriangleFilled(ImVec2(x, middle - half), ImVec2(x, middle + half),
                           ImVec2(x + half * 1.4F, middle), theme.accent);
  }
  float x = at.x + context.px(14);
  draw_verdict(context, draw, ImVec2(x + context.px(5), at.y + height / 2),
               faded(sign_color(theme, row), taken), row.accepted);
  x += context.px(15);
  draw_cut(draw, ImVec2(x, y), faded(theme.text_dim, taken), name, id_width + 1);
  x += id_width + context.px(8);
  const float right = end.x - context.px(8), space = context.px(8);
  const float bytes_width = text_width("999.9 MiB");
  if (row.bytes_saved > 0) {
    const bool strong = row.missed || row.accepted;
    draw_right(draw, right, y, faded(strong ? theme.text : theme.text_dim, taken),
               report::bytes_text(row.bytes_saved));
  }
  // The reason has a column of its own; a subject that is longer pushes it on as far as there is room for both.
  const float end_of_text = right - bytes_width, room = end_of_text - x;
  const ImU32 ink = faded(row.notability == Notability::small ? theme.text_dim : theme.text, taken);
  const std::string subject = row.subject();
  if (room > context.px(165)) {
    const std::string reason = row.reason_text();
    const float needed = text_width(reason),
                column = x + room - std::min(room * 0.46F, context.px(130)) + space;
    const float from = std::max(column, std::min(x + text_width(subject) + space, end_of_text - needed));
    draw_cut(draw, ImVec2(x, y), ink, subject, from - space - x);
    draw_cut(draw, ImVec2(from, y), faded(theme.text_dim, taken * 0.9F), reason, end_of_text - from + 1);
  } else {
    draw_cut(draw, ImVec2(x, y), ink, subject, room);
  }
  ImGui::SetCursorScreenPos(ImVec2(at.x, at.y + height));
  if (hovered && wants_tip()) show_tip(context, row);
}

void DecisionsPanel::show_tip(Context& context, const model::DecisionRow& row) {
  const Theme& theme = context.theme;
  begin_tip(context);
  ImGui::PushTextWrapPos(context.px(440));
  decision_line(context, row.id, row.accepted, sign_color(theme, row), row.subject());
  text(theme.text_dim, fmt::format("{} · {} · {}", schedule::kind_name(row.kind),
                                   row.accepted ? "accepted" : "refused", row.reason_text()));
  text(theme.text_dim, schedule::reason_words(row.reason));
  if (row.bytes_saved > 0)
    text(theme.text_dim,
         fmt::format("{} {}", row.accepted ? "saves" : "would save", report::bytes_text(row.bytes_saved)));
  if (row.id.index() >= context.scene()->position) text(theme.text_faint, "not taken yet at this point");
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

}  // namespace pallascope::views
