#include "app/views/why_panel.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "app/views/bar_controls.h"
#include "app/views/link_text.h"

namespace pallascope::views {
namespace {

using schedule::ConditionState;

constexpr float two_columns = 640;  // from this width on, conditions and indices stand side by side
constexpr std::size_t folded_nodes = 4, folded_indices = 2;

ImU32 verdict_color(const Theme& theme, const model::WhyView& why) {
  return why.accepted ? theme.accepted : theme.refused;
}

ImU32 state_color(const Theme& theme, ConditionState state) {
  switch (state) {
    case ConditionState::holds:
      return theme.accepted;
    case ConditionState::fails:
      return theme.refused;
    case ConditionState::not_reached:
      return theme.text_faint;
  }
  return theme.text_faint;
}

/// `##name3`.
struct Numbered {
  char text[48];
  Numbered(const char* name, std::size_t number) {
    std::snprintf(text, sizeof text, "##%s%zu", name, number);
  }
};

void heading(Context& context, std::string_view value) {
  const FontScope font(context.fonts.bold, context.fonts.small_size);
  text(context.theme.text_faint, value);
}

/// A lamp, as a drawing: no font has one.
void draw_lamp(const Context& context, ImVec2 centre, ImU32 color) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float r = context.px(4.6F);
  const ImVec2 bulb(centre.x, centre.y - r * 0.35F);
  draw->AddCircleFilled(bulb, r, faded(color, 0.30F));
  draw->AddCircle(bulb, r, color, 0, context.px(1.4F));
  for (const float dy : {1.0F, 1.55F}) {
    const float y = centre.y + r * dy - r * 0.05F;
    draw->AddLine(ImVec2(centre.x - r * 0.45F, y), ImVec2(centre.x + r * 0.45F, y), color, context.px(1.3F));
  }
}

}  // namespace

void WhyPanel::take(const std::shared_ptr<const model::WhyView>& why) {
  if (shown_ == why) return;
  const bool other = !shown_ || shown_->id != why->id;
  shown_ = why;
  if (other) {
    all_nodes_ = all_indices_ = false;
    ImGui::SetScrollY(0);
  }
  const bool kept =
      !why->about_selection && std::find(choices_.begin(), choices_.end(), why->id) != choices_.end();
  if (!kept) {
    choices_ = why->choices;
    about_ = why->about;
  }
}

void WhyPanel::draw(Context& context) {
  const workspace::Detail* detail = context.stale_detail();
  const Theme& theme = context.theme;
  if (context.scene() == nullptr) return;
  if (detail == nullptr || !detail->why) {
    const bool nothing = model::is_empty(context.state.selection);
    const FontScope font(context.fonts.ui, context.fonts.ui_size);
    ImGui::Dummy(ImVec2(1, context.px(4)));
    ImGui::PushTextWrapPos(0);
    text(theme.text_dim, nothing ? "Click a decision, a node or a line of source: here stands why it was "
                                   "fused, kept apart, or left to a library."
                                 : "No decision is about this alone. Click a decision, a node or a line of "
                                   "source to see why it went as it did.");
    ImGui::PopTextWrapPos();
    return;
  }
  take(detail->why);
  const model::WhyView& why = *shown_;
  draw_title(context, why);
  draw_sentence(context, why);
  draw_legal_if(context, why);
  ImGui::Dummy(ImVec2(1, context.px(2)));

  const FontScope font(context.fonts.ui, context.fonts.ui_size);
  const float width = ImGui::GetContentRegionAvail().x;
  const bool has_left = !why.conditions.empty() || !why.became.empty(), has_right = !why.indices.empty();
  const bool beside = width >= context.px(two_columns);
  const auto left = [&](float w) {
    if (!why.conditions.empty()) {
      draw_conditions(context, why, w);
      ImGui::Dummy(ImVec2(1, context.px(1)));
    }
    if (!why.became.empty()) {
      heading(context, "BECAME");
      draw_steps(context, why.became, false, w);
      ImGui::Dummy(ImVec2(1, context.px(2)));
    }
    if (has_left) draw_figures(context, why, w);
  };
  const auto right = [&](float w) {
    const std::size_t count =
        all_indices_ ? why.indices.size() : std::min(why.indices.size(), folded_indices);
    for (std::size_t k = 0; k < count; ++k) draw_indices(context, why.indices[k], k, w);
    if (count < why.indices.size()) {
      char label[64];
      std::snprintf(label, sizeof label, "%zu more pairs of accesses##indices", why.indices.size() - count);
      if (ImGui::SmallButton(label)) all_indices_ = true;
    }
  };
  const auto sides = [&](float w) {
    for (const model::WhySide& side : why.sides) {
      draw_side(context, side, w);
      ImGui::Dummy(ImVec2(1, context.px(1)));
    }
  };
  // Columns of a fixed share: nothing jumps when another decision is selected.
  const float gap = context.px(22), half = (width - gap) / 2;
  const auto columns = [&](auto first, auto second) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::BeginGroup();
    first(half);
    ImGui::EndGroup();
    const float one = ImGui::GetItemRectMax().y;
    ImGui::SetCursorScreenPos(ImVec2(at.x + half + gap, at.y));
    ImGui::BeginGroup();
    second(half);
    ImGui::EndGroup();
    const float bottom = std::max(one, ImGui::GetItemRectMax().y);
    ImGui::GetWindowDrawList()->AddLine(ImVec2(at.x + half + gap / 2, at.y),
                                        ImVec2(at.x + half + gap / 2, bottom), theme.border);
    go_on_at(ImVec2(at.x, bottom + context.px(6)));
  };
  if (beside && has_left && has_right) {
    columns(left, right);
  } else if (beside && (has_left || has_right)) {
    columns([&](float w) { has_left ? left(w) : right(w); },
            [&](float w) {
              sides(w);
              if (!has_left) draw_figures(context, why, w);
            });
    ImGui::Dummy(ImVec2(1, 1));
    return;
  } else {
    if (has_left) left(width);
    if (has_right) right(width);
  }
  if (!has_left) draw_figures(context, why, width);
  if (beside && why.sides.size() == 2) {
    columns([&](float w) { draw_side(context, why.sides[0], w); },
            [&](float w) { draw_side(context, why.sides[1], w); });
  } else {
    sides(width);
  }
  ImGui::Dummy(ImVec2(1, 1));
}

void WhyPanel::draw_title(Context& context, const model::WhyView& why) {
  const Theme& theme = context.theme;
  const ImU32 color = verdict_color(theme, why);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, height = context.px(24);
  const float right = draw_chooser(context, why, at.x + width, at.y, height);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  float x = at.x;
  {
    const FontScope font(context.fonts.bold, context.fonts.title_size);
    const float y = at.y + (height - ImGui::GetTextLineHeight()) / 2;
    draw->AddText(ImVec2(x, y), color, why.sign().data(), why.sign().data() + why.sign().size());
    x += context.px(20);
  }
  {
    const FontScope font(context.fonts.mono_bold, context.fonts.mono_size);
    const float y = at.y + (height - ImGui::GetTextLineHeight()) / 2;
    ImGui::SetCursorScreenPos(ImVec2(x, y));
    link(context, "##id", why.id_text, why.id, theme.accent, context.px(90));
    x += text_width(why.id_text) + context.px(8);
  }
  {
    const FontScope font(context.fonts.ui, context.fonts.ui_size);
    const float y = at.y + (height - ImGui::GetTextLineHeight()) / 2;
    draw->AddText(ImVec2(x, y), theme.text_dim, why.kind_text.c_str());
    x += text_width(why.kind_text) + context.px(10);
  }
  float chip_room = 0;
  {
    const FontScope font(context.fonts.bold, context.fonts.small_size);
    chip_room = chip_width(context, why.verdict);
  }
  {
    const FontScope font(context.fonts.bold, context.fonts.title_size);
    const float y = at.y + (height - ImGui::GetTextLineHeight()) / 2;
    const float room = std::max(context.px(60), right - x - chip_room - context.px(24));
    ImGui::SetCursorScreenPos(ImVec2(x, y));
    link(context, "##subject", why.title, {}, theme.text, room);
    x += std::min(text_width(why.title), room) + context.px(12);
  }
  {
    const FontScope font(context.fonts.bold, context.fonts.small_size);
    const float y = at.y + (height - ImGui::GetTextLineHeight() - context.px(4)) / 2;
    ImGui::SetCursorScreenPos(ImVec2(x, y));
    chip(context, "##verdict", why.verdict, {}, color, faded(color, 0.16F), faded(color, 0.5F),
         std::max(context.px(40), right - x - context.px(8)));
  }
  go_on_at(ImVec2(at.x, at.y + height + context.px(3)));
}

void WhyPanel::choose(Context& context, std::size_t position) {
  if (position < choices_.size()) context.select(choices_[position]);
}

float WhyPanel::draw_chooser(Context& context, const model::WhyView& why, float right, float y,
                             float height) {
  if (choices_.size() < 2) return right;
  const Theme& theme = context.theme;
  const FontScope font(context.fonts.ui, context.fonts.small_size);
  const auto found = std::find(choices_.begin(), choices_.end(), why.id);
  const auto position = static_cast<std::size_t>(found - choices_.begin());
  char label[160];
  std::snprintf(label, sizeof label, "%zu of %zu about %.*s", position + 1, choices_.size(), 40,
                about_.c_str());
  const float arrow = height - context.px(4), wide = text_width(label) + context.px(16);
  const float left = right - wide - 2 * arrow - context.px(6);
  const auto button = [&](const char* id, ImGuiDir direction, float x, bool enabled) {
    ImGui::SetCursorScreenPos(ImVec2(x, y + context.px(2)));
    ImGui::BeginDisabled(!enabled);
    const bool pressed = ImGui::InvisibleButton(id, ImVec2(arrow, arrow));
    ImGui::EndDisabled();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const ImVec2 a = ImGui::GetItemRectMin(), b = ImGui::GetItemRectMax();
    draw->AddRectFilled(a, b, theme.raised, context.px(4));
    if (enabled && ImGui::IsItemHovered()) draw->AddRectFilled(a, b, theme.hover, context.px(4));
    const ImVec2 c((a.x + b.x) / 2, (a.y + b.y) / 2);
    const float s = context.px(3.6F), d = direction == ImGuiDir_Left ? -1.0F : 1.0F;
    draw->AddTriangleFilled(ImVec2(c.x - d * s * 0.6F, c.y - s), ImVec2(c.x + d * s, c.y),
                            ImVec2(c.x - d * s * 0.6F, c.y + s),
                            enabled ? theme.text_dim : faded(theme.text_faint, 0.5F));
    return pressed && enabled;
  };
  if (button("##previous", ImGuiDir_Left, left, found != choices_.end() && position > 0))
    choose(context, position - 1);
  if (button("##next", ImGuiDir_Right, right - arrow, position + 1 < choices_.size()))
    choose(context, position + 1);
  ImGui::SetCursorScreenPos(ImVec2(left + arrow + context.px(3), y + context.px(2)));
  if (ImGui::InvisibleButton("##list", ImVec2(wide, arrow))) ImGui::OpenPopup("choices");
  const ImVec2 a = ImGui::GetItemRectMin(), b = ImGui::GetItemRectMax();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(a, b, theme.raised, context.px(4));
  if (ImGui::IsItemHovered()) {
    draw->AddRectFilled(a, b, theme.hover, context.px(4));
    ImGui::SetTooltip("All decisions about %s", about_.c_str());
  }
  draw->AddText(ImVec2(a.x + context.px(8), a.y + (arrow - ImGui::GetTextLineHeight()) / 2), theme.text_dim,
                label);
  ImGui::SetNextWindowSizeConstraints(ImVec2(context.px(420), 0), ImVec2(context.px(620), context.px(320)));
  if (ImGui::BeginPopup("choices")) {
    const auto& rows = context.scene()->decisions->rows();
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(choices_.size()));
    while (clipper.Step()) {
      for (int k = clipper.DisplayStart; k < clipper.DisplayEnd; ++k) {
        const schedule::DecisionId id = choices_[static_cast<std::size_t>(k)];
        if (!id.valid() || id.index() >= rows.size()) continue;
        const model::DecisionRow& row = rows[id.index()];
        char item[32];
        std::snprintf(item, sizeof item, "##d%d", id.value);
        if (ImGui::Selectable(item, id == why.id, ImGuiSelectableFlags_None))
          choose(context, static_cast<std::size_t>(k));
        ImGui::SameLine(0, 0);
        text(row.accepted ? theme.accepted : theme.refused, row.glyph());
        ImGui::SameLine(context.px(28));
        char number[16];
        std::snprintf(number, sizeof number, "d%d", id.value);
        text(theme.accent, number);
        ImGui::SameLine(context.px(70));
        text_cut(theme.text_dim, schedule::kind_name(row.kind), context.px(40));
        ImGui::SameLine(context.px(114));
        char subject[192];
        std::snprintf(subject, sizeof subject, "%s%s%.*s%s%s", row.left.c_str(), row.right.empty() ? "" : " ",
                      static_cast<int>(row.sign().size()), row.sign().data(), row.right.empty() ? "" : " ",
                      row.right.c_str());
        text_cut(theme.text, subject, context.px(190));
        ImGui::SameLine(context.px(312));
        text(theme.text_dim, schedule::reason_name(row.reason));
      }
    }
    ImGui::EndPopup();
  }
  return left - context.px(8);
}

void WhyPanel::draw_sentence(Context& context, const model::WhyView& why) {
  const FontScope font(context.fonts.ui, context.fonts.ui_size);
  ImGui::PushTextWrapPos(0);
  text(context.theme.text, why.sentence);
  if (!why.note.empty()) text(context.theme.text_dim, why.note);
  ImGui::PopTextWrapPos();
}

void WhyPanel::draw_legal_if(Context& context, const model::WhyView& why) {
  if (why.legal_if.empty()) return;
  const Theme& theme = context.theme;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, inner = context.px(26);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const FontScope font(context.fonts.ui, context.fonts.small_size);
  char prefix[] = "Legal if  ";
  float prefix_width = 0;
  {
    const FontScope bold(context.fonts.bold, context.fonts.small_size);
    prefix_width = text_width(prefix);
  }
  const float room = width - inner - prefix_width - context.px(10);
  const float text_height = ImGui::CalcTextSize(why.legal_if.c_str(), nullptr, false, room).y;
  const float height = text_height + context.px(8);
  draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), theme.warning_soft, context.px(4));
  draw->AddRectFilled(at, ImVec2(at.x + context.px(3), at.y + height), theme.warning, context.px(2));
  draw_lamp(context, ImVec2(at.x + context.px(15), at.y + context.px(4) + ImGui::GetTextLineHeight() / 2),
            theme.warning);
  {
    const FontScope bold(context.fonts.bold, context.fonts.small_size);
    draw->AddText(ImVec2(at.x + inner, at.y + context.px(4)), theme.warning, prefix);
  }
  ImGui::SetCursorScreenPos(ImVec2(at.x + inner + prefix_width, at.y + context.px(4)));
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + room);
  text(theme.text, why.legal_if);
  ImGui::PopTextWrapPos();
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy(ImVec2(width, height));
}

void WhyPanel::draw_conditions(Context& context, const model::WhyView& why, float width) {
  heading(context, "CONDITIONS, IN ORDER");
  for (std::size_t k = 0; k < why.conditions.size(); ++k)
    draw_condition(context, why.conditions[k], k, width);
}

void WhyPanel::draw_condition(Context& context, const model::WhyCondition& condition, std::size_t number,
                              float width) {
  const Theme& theme = context.theme;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImU32 color = state_color(theme, condition.state);
  const bool fails = condition.state == ConditionState::fails;
  const float sign = context.px(24), name = context.px(width < context.px(400) ? 120.0F : 132.0F),
              pad = context.px(2.5F);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->ChannelsSplit(2);
  draw->ChannelsSetCurrent(1);
  ImGui::BeginGroup();
  {
    const FontScope font(context.fonts.bold, context.fonts.ui_size);
    draw->AddText(ImVec2(at.x + context.px(7), at.y + pad), color, condition.sign().data(),
                  condition.sign().data() + condition.sign().size());
  }
  ImGui::SetCursorScreenPos(ImVec2(at.x + sign, at.y + pad));
  {
    const FontScope font(fails ? context.fonts.bold : context.fonts.ui, context.fonts.ui_size);
    text(condition.state == ConditionState::not_reached ? theme.text_dim : theme.text, condition.name);
  }
  const float left = at.x + sign + name;
  float room = width - sign - name - context.px(6);
  ImGui::SetCursorScreenPos(ImVec2(left, at.y + pad));
  const bool bar = condition.filled >= 0;
  {
    const FontScope font(context.fonts.ui, context.fonts.small_size);
    const float drop = context.px(1);
    ImGui::SetCursorScreenPos(ImVec2(left, at.y + pad + drop));
    if (bar) {
      const float wide = context.px(72), high = context.px(8);
      const ImVec2 a(left, at.y + pad + drop + (ImGui::GetTextLineHeight() - high) / 2);
      const auto part = static_cast<float>(std::clamp(condition.filled, 0.0, 1.0));
      draw->AddRectFilled(a, ImVec2(a.x + wide, a.y + high), theme.field, high / 2);
      draw->AddRectFilled(a, ImVec2(a.x + std::max(high, wide * part), a.y + high), color, high / 2);
      draw->AddRect(a, ImVec2(a.x + wide, a.y + high), theme.border_strong, high / 2);
      ImGui::SetCursorScreenPos(ImVec2(left + wide + context.px(8), at.y + pad + drop));
      room -= wide + context.px(8);
    }
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + room);
    text(fails ? theme.text : theme.text_dim, condition.words);
    ImGui::PopTextWrapPos();
  }
  if (!condition.path.empty()) {
    ImGui::SetCursorScreenPos(ImVec2(at.x + sign, ImGui::GetCursorScreenPos().y));
    draw_steps(context, condition.path, true, width - sign - context.px(6));
  }
  ImGui::EndGroup();
  const float height = ImGui::GetItemRectMax().y - at.y + pad + (condition.path.empty() ? 0 : context.px(3));
  draw->ChannelsSetCurrent(0);
  if (fails) {
    draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), faded(theme.refused, 0.10F), context.px(4));
    draw->AddRectFilled(at, ImVec2(at.x + context.px(3), at.y + height), theme.refused, context.px(2));
  }
  draw->ChannelsMerge();
  ImGui::SetCursorScreenPos(at);
  ImGui::InvisibleButton(Numbered("condition", number).text, ImVec2(width, height));
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayNormal)) {
    ImGui::SetNextWindowSize(ImVec2(context.px(360), 0));
    if (ImGui::BeginTooltip()) {
      ImGui::PushTextWrapPos(0);
      text(theme.text, condition.asks);
      ImGui::PopTextWrapPos();
      ImGui::EndTooltip();
    }
  }
  go_on_at(ImVec2(at.x, at.y + height + context.px(1)));
}

void WhyPanel::draw_steps(Context& context, const std::vector<model::WhyStep>& steps, bool arrows,
                          float width) {
  const Theme& theme = context.theme;
  const FontScope font(context.fonts.ui, context.fonts.small_size);
  const float arrow = arrows ? context.px(20) : 0;
  Flow flow(width, arrows ? 0 : context.px(6), context.px(4));
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const model::WhyStep& step = steps[k];
    const bool last = k + 1 == steps.size();
    const float wide = std::min(chip_width(context, step.text), width - arrow);
    flow.next(wide + (last ? 0 : arrow));
    const bool side = step.role != model::WhyStep::Role::between;
    const ImU32 fill = side && arrows ? theme.accent_soft : step.call ? theme.library_box : theme.raised;
    const ImU32 outline = side && arrows ? theme.accent
                          : step.call    ? faded(theme.refused, 0.7F)
                                         : theme.border_strong;
    chip(context, Numbered("step", k).text, step.text, step.selection, theme.text, fill,
         arrows || !step.call ? outline : theme.border_strong, wide);
    if (arrows && !last) {
      const ImVec2 a(ImGui::GetItemRectMax().x + context.px(4),
                     (ImGui::GetItemRectMin().y + ImGui::GetItemRectMax().y) / 2);
      const ImVec2 b(a.x + arrow - context.px(8), a.y);
      const float s = context.px(3.5F);
      ImDrawList* draw = ImGui::GetWindowDrawList();
      draw->AddLine(a, ImVec2(b.x - s, b.y), theme.text_dim, context.px(1.3F));
      draw->AddTriangleFilled(ImVec2(b.x - s * 1.3F, b.y - s), b, ImVec2(b.x - s * 1.3F, b.y + s),
                              theme.text_dim);
    }
  }
}

void WhyPanel::draw_figures(Context& context, const model::WhyView& why, float width) {
  if (why.figures.empty()) return;
  const Theme& theme = context.theme;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  Flow flow(width, context.px(20), context.px(3));
  for (std::size_t k = 0; k < why.figures.size(); ++k) {
    const model::WhyFigure& figure = why.figures[k];
    const float label = [&] {
      const FontScope font(context.fonts.ui, context.fonts.small_size);
      return text_width(figure.label);
    }();
    const float value = [&] {
      const FontScope font(context.fonts.bold, context.fonts.ui_size);
      return text_width(figure.value);
    }();
    flow.next(label + context.px(6) + value);
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const float high = ImGui::GetTextLineHeight();
    ImGui::InvisibleButton(Numbered("figure", k).text, ImVec2(label + context.px(6) + value, high));
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", figure.hint.c_str());
    ImDrawList* draw = ImGui::GetWindowDrawList();
    {
      const FontScope font(context.fonts.ui, context.fonts.small_size);
      draw->AddText(ImVec2(from.x, from.y + context.px(1)), theme.text_dim, figure.label.c_str());
    }
    const FontScope font(context.fonts.bold, context.fonts.ui_size);
    draw->AddText(ImVec2(from.x + label + context.px(6), from.y), theme.text, figure.value.c_str());
  }
  go_on_at(ImVec2(at.x, ImGui::GetItemRectMax().y + context.px(6)));
}

void WhyPanel::draw_side(Context& context, const model::WhySide& side, float width) {
  if (side.nodes.empty()) return;
  const Theme& theme = context.theme;
  ImGui::PushID(side.title.c_str());
  const float left = ImGui::GetCursorScreenPos().x;
  {
    const FontScope font(context.fonts.bold, context.fonts.small_size);
    text(theme.text_faint, side.title);
    if (side.nodes.size() > 1) {
      char count[32];
      std::snprintf(count, sizeof count, "%zu nodes", side.nodes.size());
      ImGui::SameLine(0, context.px(8));
      const FontScope plain(context.fonts.ui, context.fonts.small_size);
      text(theme.text_faint, count);
    }
  }
  const FontScope font(context.fonts.ui, context.fonts.small_size);
  const bool folded = !all_nodes_ && side.nodes.size() > folded_nodes;
  const std::size_t count = folded ? folded_nodes : side.nodes.size();
  const float height = ImGui::GetTextLineHeight() + context.px(4);
  const float id_width = context.px(38), rest = width - id_width;
  // The name and the place in full, what is left for the operator. Of thousands of nodes the first ones decide.
  float names = 0, places = 0;
  for (std::size_t k = 0; k < std::min<std::size_t>(count, 24); ++k) {
    names = std::max(names, text_width(side.nodes[k].name) + context.px(16));
    places = std::max(places, text_width(side.nodes[k].place) + context.px(8));
  }
  places = std::min(places, rest * 0.5F);
  names = std::min(names, rest - places);
  const std::array<float, 3> shares{names, rest - names - places, places};
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, 0));
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(count), height);
  while (clipper.Step()) {
    for (int k = clipper.DisplayStart; k < clipper.DisplayEnd; ++k) {
      const model::WhyNode& node = side.nodes[static_cast<std::size_t>(k)];
      ImGui::SetCursorScreenPos(ImVec2(left, ImGui::GetCursorScreenPos().y));
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const model::Selection selection = node.node;
      const bool clicked = ImGui::InvisibleButton(node.id.c_str(), ImVec2(width, height));
      const bool over = ImGui::IsItemHovered();
      ImDrawList* draw = ImGui::GetWindowDrawList();
      const ImVec2 end(at.x + width, at.y + height);
      if (selection == context.state.selection)
        draw->AddRectFilled(at, end, theme.accent_soft, context.px(3));
      else if (selection == context.state.hovered)
        draw->AddRectFilled(at, end, theme.linked, context.px(3));
      if (over) {
        context.hover(selection);
        draw->AddRectFilled(at, end, theme.hover, context.px(3));
        ImGui::SetTooltip("%s  %s\n%s\n%s\n%s", node.id.c_str(), node.name.c_str(), node.target.c_str(),
                          node.shape.c_str(), node.place.c_str());
      }
      const ImVec2 next = ImGui::GetCursorScreenPos();
      float x = at.x + context.px(4);
      const float y = at.y + context.px(2);
      const auto put = [&](std::string_view value, ImU32 color, float wide) {
        draw_cut(*draw, ImVec2(x, y), color, value, wide - context.px(8));
        x += wide;
      };
      {
        const FontScope mono(context.fonts.mono, context.fonts.small_size);
        put(node.id, theme.accent, id_width);
      }
      put(node.name, theme.text, shares[0]);
      if (shares[1] > context.px(40)) {
        put(node.target, theme.text_dim, shares[1]);
      } else {
        x += shares[1];
      }
      put(node.place, theme.text_faint, shares[2]);
      ImGui::SetCursorScreenPos(next);
      if (clicked) context.select(selection);
    }
  }
  ImGui::PopStyleVar();
  if (folded) {
    char label[64];
    std::snprintf(label, sizeof label, "%zu more##more", side.nodes.size() - count);
    ImGui::SetCursorScreenPos(ImVec2(left, ImGui::GetCursorScreenPos().y));
    if (ImGui::SmallButton(label)) all_nodes_ = true;
  }
  ImGui::PopID();
}

}  // namespace pallascope::views
