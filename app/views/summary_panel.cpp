#include "app/views/summary_panel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "app/views/bar_controls.h"
#include "core/report/format.h"

namespace pallascope::views {
namespace {

constexpr std::size_t folded_missed = 4, folded_wasteful = 3, folded_copies = 2;

struct Verdict {
  std::string text, tip;
  ImU32 ink = 0, back = 0, border = 0;
  std::optional<bool> sign;  ///< ✓ or ✗ before the text
};

Verdict verdict_of(const Context& context) {
  const Theme& theme = context.theme;
  const workspace::Scene& scene = *context.scene();
  if (const auto& busy = context.workspace.busy(); busy && busy->command.starts_with("check"))
    return {"checking…", busy->text, theme.accent, 0, theme.accent, {}};
  const auto& check = context.workspace.check();
  if (!check || check->program != scene.program || check->graph != scene.compilation->graph_index())
    return {"not checked",  "Run & compare (F5) runs the kernels and compares them with PyTorch.",
            theme.text_dim, 0,
            theme.border,   {}};
  const bool current = context.workspace.check_is_current();
  const std::string verdict = check->passed ? "passed" : "failed", at = place_text(check->decision);
  const std::string where =
      fmt::format("{} at {} on {}", check->passed ? "Passed" : "Failed", at, check->host);
  if (!current) {
    const std::string now = place_text(scene.position);
    return {fmt::format("{} at {}, now at {}", verdict, at, now),
            where + "; the program has moved since. F5 checks it as it is now.",
            theme.text_dim,
            0,
            theme.border,
            check->passed};
  }
  if (check->passed) return {verdict, where, theme.passed, theme.passed_soft, 0, true};
  return {verdict, where, theme.error, theme.error_soft, 0, false};
}

float line_height(const Context& context) { return ImGui::GetFontSize() + context.px(5); }

float text_y(float height) { return std::floor((height - ImGui::GetFontSize()) / 2); }

}  // namespace

void SummaryPanel::draw(Context& context) {
  const workspace::Scene* scene = context.scene();
  if (scene == nullptr || !scene->summary) return;
  if (shown_ != scene->compilation.get()) {
    shown_ = scene->compilation.get();
    all_missed_ = all_wasteful_ = all_copies_ = false;
  }
  const model::SummaryView& view = *scene->summary;
  const FontScope font(context.fonts.ui, context.fonts.small_size);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(context.px(6), context.px(2)));
  const auto gap = [&context](float points) { ImGui::Dummy(ImVec2(1, context.px(points))); };
  draw_head(context, view);
  gap(3);
  draw_figures(context, view);
  gap(4);
  draw_missed(context, view);
  gap(4);
  draw_accesses(context, view);
  gap(4);
  draw_rest(context, view);
  ImGui::PopStyleVar();
}

void SummaryPanel::draw_head(Context& context, const model::SummaryView& view) {
  const Theme& theme = context.theme;
  const Verdict verdict = verdict_of(context);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float width = ImGui::GetContentRegionAvail().x;
  const float sign = verdict.sign ? context.px(14) : 0;
  const float pill = text_width(verdict.text) + context.px(18) + sign,
              pill_height = ImGui::GetFontSize() + context.px(5);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  float title_width = 0, title_height = 0;
  {
    const FontScope font(context.fonts.bold, context.fonts.title_size);
    title_width = text_width(view.title), title_height = ImGui::GetFontSize();
    const bool beside = title_width + pill + context.px(8) <= width;
    const bool cut = draw_cut(draw, at, theme.text, view.title, beside ? title_width : width);
    ImGui::Dummy(ImVec2(beside ? title_width : width, std::max(title_height, beside ? pill_height : 0)));
    if (cut || !view.path.empty()) tip(context, view.path.empty() ? view.title : view.path);
    if (beside) ImGui::SameLine(width - pill + ImGui::GetStyle().WindowPadding.x);
  }
  const ImVec2 from = ImGui::GetCursorScreenPos();
  const ImVec2 to(from.x + std::min(pill, width), from.y + pill_height);
  ImGui::Dummy(ImVec2(to.x - from.x, pill_height));
  if (verdict.back != 0) draw.AddRectFilled(from, to, verdict.back, pill_height / 2);
  if (verdict.border != 0) draw.AddRect(from, to, verdict.border, pill_height / 2);
  if (verdict.sign)
    draw_verdict(context, draw, ImVec2(from.x + context.px(13), from.y + pill_height / 2), verdict.ink,
                 *verdict.sign);
  draw_cut(draw, ImVec2(from.x + context.px(9) + sign, from.y + text_y(pill_height)), verdict.ink,
           verdict.text, to.x - from.x - sign - context.px(17));
  tip(context, verdict.tip);
  if (!view.graph.empty()) text_cut(theme.text_dim, view.graph, width);
}

void SummaryPanel::draw_figures(Context& context, const model::SummaryView& view) {
  const Theme& theme = context.theme;
  static constexpr const char* meaning[] = {
      "Nodes of the traced graph.",
      "Loop nests that the nodes became. Views become none.",
      "Pallas kernels that the nests were fused into.",
      "Matrix products and the like: jax.lax does them, between the kernels.",
      "Operators that have no lowering: PyTorch runs them, between the kernels.",
  };
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  // Each figure is as wide as it must be; what is left goes between them.
  const std::size_t count = view.figures.size();
  std::array<float, 8> widths{};
  float used = 0, height = 0;
  const auto noun_of = [&](std::size_t k) {
    const std::string_view noun = view.figures[k].noun;
    return noun.substr(0, noun.find(" call"));
  };
  for (std::size_t k = 0; k < count && k < widths.size(); ++k) {
    widths[k] = text_width(noun_of(k));
    const FontScope font(context.fonts.bold, context.fonts.title_size);
    widths[k] = std::max(widths[k], text_width(view.figures[k].count));
    used += widths[k];
    height = ImGui::GetFontSize();
  }
  const float between =
      count > 1
          ? std::min(context.px(30), std::max(context.px(6), (width - used) / static_cast<float>(count - 1)))
          : 0;
  const float whole = height + context.px(1) + ImGui::GetFontSize();
  float x = at.x;
  for (std::size_t k = 0; k < count && k < widths.size(); ++k) {
    const bool none = view.figures[k].count == "0";
    const ImU32 ink = none ? theme.text_faint : k == 4 ? theme.warning : theme.text;
    {
      const FontScope font(context.fonts.bold, context.fonts.title_size);
      draw.AddText(ImVec2(x, at.y), ink, view.figures[k].count.c_str());
      // The first three become each other.
      if (k < 2) {
        const float y = at.y + height / 2 + 0.5F, end = x + widths[k] + between - context.px(7),
                    tail = end - context.px(12);
        if (tail > x + text_width(view.figures[k].count) + context.px(3)) {
          draw.AddLine(ImVec2(tail, y), ImVec2(end - context.px(2), y), theme.text_faint);
          draw.AddTriangleFilled(ImVec2(end, y), ImVec2(end - context.px(4), y - context.px(3)),
                                 ImVec2(end - context.px(4), y + context.px(3)), theme.text_faint);
        }
      }
    }
    const std::string_view noun = noun_of(k);
    draw.AddText(ImVec2(x, at.y + height + context.px(1)), theme.text_dim, noun.data(),
                 noun.data() + noun.size());
    ImGui::SetCursorScreenPos(ImVec2(x, at.y));
    ImGui::Dummy(ImVec2(widths[k], whole));
    if (k < std::size(meaning) && wants_tip()) {
      begin_tip(context);
      text(theme.text, view.figures[k].count + " " + view.figures[k].noun);
      text(theme.text_dim, meaning[k]);
      if (k == 2) text(theme.text_dim, view.decisions);
      ImGui::EndTooltip();
    }
    x += widths[k] + between;
  }
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy(ImVec2(width, whole));
}

void SummaryPanel::draw_more(Context& context, const char* id, std::size_t listed, std::size_t count,
                             std::size_t folded, bool& all, std::string_view rest) {
  if (count <= folded) return;
  const auto number = [](std::size_t value) { return report::count_text(static_cast<std::int64_t>(value)); };
  std::string label = all ? "show fewer" : fmt::format("show {} more", number(listed - folded));
  if (count > listed) label += fmt::format(" (of {}, all in {})", number(count), rest);
  const float height = line_height(context);
  if (row_button(context, id, height, false)) all = !all;
  const ImVec2 at = ImGui::GetItemRectMin();
  draw_cut(*ImGui::GetWindowDrawList(), ImVec2(at.x, at.y + text_y(height)), context.theme.accent, label,
           ImGui::GetItemRectSize().x);
}

void SummaryPanel::draw_missed(Context& context, const model::SummaryView& view) {
  const Theme& theme = context.theme;
  heading(context, "Missed fusions", view.missed_total);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float height = line_height(context);
  if (view.missed.empty())
    text(theme.text_dim,
         view.boundaries.empty() ? "none that would have saved a byte" : "none but at boundaries");
  const std::size_t count = all_missed_ ? view.missed.size() : std::min(view.missed.size(), folded_missed);
  float id_width = 0, bytes_width = 0, reason_width = 0;
  for (std::size_t k = 0; k < count; ++k) {
    id_width = std::max(id_width, text_width(view.missed[k].name));
    bytes_width = std::max(bytes_width, text_width(view.missed[k].bytes));
    reason_width = std::max(reason_width, text_width(view.missed[k].reason));
  }
  const float width = ImGui::GetContentRegionAvail().x, space = context.px(8);
  const float sign = context.px(16);
  const float subject_at = sign + id_width + space, rest = width - subject_at - bytes_width - space;
  // The subject says which one it is: the reason only takes what it leaves.
  const float reason = rest > context.px(190) ? std::min(reason_width, rest * 0.42F) : 0;
  const float subject = rest - (reason > 0 ? reason + space : 0);
  for (std::size_t k = 0; k < count; ++k) {
    const model::SummaryMissed& row = view.missed[k];
    const std::string id = "##missed_" + row.name;
    if (row_button(context, id.c_str(), height, context.state.selection == model::Selection(row.id)))
      context.go_to_decision(row.id);
    const ImVec2 at = ImGui::GetItemRectMin();
    const float y = at.y + text_y(height);
    if (ImGui::IsItemHovered()) context.hover(row.id);
    draw_verdict(context, draw, ImVec2(at.x + context.px(5), at.y + height / 2), theme.refused, false);
    draw_cut(draw, ImVec2(at.x + sign, y), theme.text_dim, row.name, id_width + 1);
    bool cut = draw_cut(draw, ImVec2(at.x + subject_at, y), theme.text, row.subject, subject);
    if (reason > 0)
      cut = draw_cut(draw, ImVec2(at.x + subject_at + subject + space, y), theme.text_dim, row.reason,
                     reason + 1) ||
            cut;
    draw_right(draw, at.x + width, y, theme.text, row.bytes);
    if (wants_tip()) {
      begin_tip(context);
      decision_line(context, row.id, false, theme.refused, row.subject);
      text(theme.text_dim, fmt::format("{} · would have saved {}", row.reason, row.bytes));
      ImGui::EndTooltip();
    }
  }
  draw_more(context, "##missed_more", view.missed.size(), view.missed_count, folded_missed, all_missed_,
            "Decisions");
  if (!view.boundaries.empty()) {
    text_cut(theme.text_dim, (view.missed.empty() ? "" : "and ") + view.boundaries, width);
    tip(context,
        "Fusions across a library or torch call cannot be had: the call is a boundary. They are counted "
        "apart.");
  }
}

void SummaryPanel::draw_accesses(Context& context, const model::SummaryView& view) {
  if (view.accesses == 0) return;
  const Theme& theme = context.theme;
  heading(context, "Accesses to memory", report::count_text(static_cast<std::int64_t>(view.accesses)));
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::Dummy(ImVec2(1, context.px(1)));
  // The stacked bar.
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float bar = context.px(7), cut = context.px(1.5F);
  const float usable = width - cut * static_cast<float>(view.classes.size() - 1);
  float x = at.x;
  for (const model::SummaryClass& part : view.classes) {
    const float length = std::max(context.px(2), usable * part.share);
    draw.AddRectFilled(ImVec2(x, at.y), ImVec2(std::min(x + length, at.x + width), at.y + bar),
                       theme.access(part.letter), context.px(1.5F));
    ImGui::SetCursorScreenPos(ImVec2(x, at.y));
    ImGui::Dummy(ImVec2(length, bar));
    if (wants_tip()) tip(context, fmt::format("{} {}: {:.0f} %", part.count, part.name, 100 * part.share));
    x += length + cut;
  }
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy(ImVec2(width, bar + context.px(2)));
  // Its legend.
  bool first = true;
  for (const model::SummaryClass& part : view.classes) {
    const std::string count = report::count_text(static_cast<std::int64_t>(part.count));
    const float item = ImGui::GetTextLineHeight() * 0.95F + context.px(4) + text_width(count);
    if (!first) flow(item, context.px(10));
    first = false;
    ImGui::BeginGroup();
    access_badge(context, part.letter);
    ImGui::SameLine(0, context.px(4));
    text(theme.text, count);
    ImGui::EndGroup();
    if (wants_tip())
      tip(context, fmt::format("{} {}: {:.0f} %", part.count, access_name(part.letter), 100 * part.share));
  }
  if (!view.wasteful.empty()) ImGui::Dummy(ImVec2(1, context.px(2)));
  // The most wasteful ones.
  const float height = line_height(context), space = context.px(8);
  const std::size_t count =
      all_wasteful_ ? view.wasteful.size() : std::min(view.wasteful.size(), folded_wasteful);
  float where_width = 0, bytes_width = 0;
  std::vector<std::string> bytes;
  for (std::size_t k = 0; k < count; ++k) {
    bytes.push_back(fmt::format("{} of {}", view.wasteful[k].used, view.wasteful[k].spanned));
    where_width = std::max(where_width, text_width(view.wasteful[k].where));
    bytes_width = std::max(bytes_width, text_width(bytes.back()));
  }
  const float badge = ImGui::GetTextLineHeight() * 0.95F + context.px(6);
  const float words = width - badge - where_width - bytes_width - 2 * space;
  for (std::size_t k = 0; k < count; ++k) {
    const model::SummaryWaste& row = view.wasteful[k];
    const std::string id = fmt::format("##access{}", row.access.access);
    if (row_button(context, id.c_str(), height, context.state.selection == model::Selection(row.access))) {
      context.select(row.access);
      context.focus(PanelId::index);
    }
    const bool tooltip = wants_tip();
    if (ImGui::IsItemHovered()) context.hover(row.access);
    const ImVec2 from = ImGui::GetItemRectMin();
    const float y = from.y + text_y(height);
    const ImVec2 next = ImGui::GetCursorScreenPos();
    ImGui::SetCursorScreenPos(ImVec2(from.x, y));
    access_badge(context, row.letter);
    ImGui::SetCursorScreenPos(next);
    draw_cut(draw, ImVec2(from.x + badge, y), theme.text, row.where, where_width + 1);
    draw_cut(draw, ImVec2(from.x + badge + where_width + space, y), theme.text_dim, row.words, words);
    draw_right(draw, from.x + width, y, theme.text, bytes[k]);
    // How much of what is fetched is used, as a line under the bytes.
    const float line = from.y + height - context.px(2), left = from.x + width - bytes_width;
    draw.AddRectFilled(ImVec2(left, line), ImVec2(from.x + width, line + context.px(1.5F)), theme.border);
    draw.AddRectFilled(
        ImVec2(left, line),
        ImVec2(left + std::max(context.px(1), bytes_width * row.share), line + context.px(1.5F)),
        theme.access(row.letter));
    if (tooltip) {
      begin_tip(context);
      text(theme.text, fmt::format("{}: {}", row.where, row.words));
      text(theme.text_dim,
           fmt::format("uses {} of the {} that it spans ({:.0f} %)", row.used, row.spanned, 100 * row.share));
      ImGui::EndTooltip();
    }
  }
  draw_more(context, "##wasteful_more", view.wasteful.size(), view.wasteful_count, folded_wasteful,
            all_wasteful_, "Index");
}

void SummaryPanel::draw_rest(Context& context, const model::SummaryView& view) {
  const Theme& theme = context.theme;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float height = line_height(context), width = ImGui::GetContentRegionAvail().x, space = context.px(8);
  // One line: a name, what there is to say of it, a figure at the end.
  const auto row = [&](std::string_view name, ImU32 ink, std::string_view words, std::string_view figure,
                       std::string_view more) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::Dummy(ImVec2(width, height));
    const float y = at.y + text_y(height), figure_width = text_width(figure);
    const float room = width - figure_width - space, name_width = std::min(text_width(name), room);
    bool cut = draw_cut(draw, ImVec2(at.x, y), ink, name, room);
    if (!words.empty())
      cut = draw_cut(draw, ImVec2(at.x + name_width + space, y), theme.text_dim, words,
                     room - name_width - space) ||
            cut;
    draw_right(draw, at.x + width, y, theme.text, figure);
    if (!more.empty() && wants_tip()) {
      tip(context, more);
    } else if (cut) {
      tip(context, fmt::format("{}  {}", name, words));
    }
  };
  if (!view.operators.empty()) {
    heading(context, "Operators outside of kernels");
    for (const model::SummaryOperator& calls : view.operators)
      row(calls.name, calls.torch ? theme.warning : theme.text,
          calls.torch ? "torch " + calls.why : "library", calls.count, calls.why);
    ImGui::Dummy(ImVec2(1, context.px(4)));
  }
  if (!view.copies.empty()) {
    heading(context, "Inputs copied, since they are not dense");
    const std::size_t count = all_copies_ ? view.copies.size() : std::min(view.copies.size(), folded_copies);
    for (std::size_t k = 0; k < count; ++k)
      row(view.copies[k].input, theme.text, view.copies[k].shape, view.copies[k].bytes, {});
    draw_more(context, "##copies_more", view.copies.size(), view.copies_count, folded_copies, all_copies_,
              "summary");
    ImGui::Dummy(ImVec2(1, context.px(4)));
  }
  heading(context, "Cost");
  row("bytes moved", theme.text_dim, "a call", view.bytes_moved,
      "Bytes that the kernels and calls read and write, once through the program.");
  row("compiled in", theme.text_dim, "", view.time, view.time_parts);
}

}  // namespace pallascope::views
