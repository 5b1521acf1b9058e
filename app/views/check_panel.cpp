#include "app/views/check_panel.h"

#include <algorithm>
#include <chrono>
#include <string>

#include <fmt/format.h>

#include "app/views/difference_view.h"
#include "core/report/format.h"

namespace pallascope::views {
namespace {

// Columns from left to right.
enum Column : std::size_t { sign, name, shape, max_abs, max_rel, ulp, rmse, close, mode };
constexpr std::array<const char*, 9> titles{"",    "output",        "shape", "max abs", "max rel",
                                            "ULP", "RMSE, eager's", "f64",   "mode"};
constexpr std::array<const char*, 9> meanings{
    "✓ within the tolerance, ✗ not",
    "output, changed argument or buffer",
    "",
    "largest absolute difference to eager PyTorch",
    "largest relative difference to eager PyTorch",
    "largest distance in units of the last place",
    "root mean square error against float64: ours, then eager's",
    "✓ as close to float64 as eager is",
    "the worse of the two ways to run: one kernel at a time (debug), or a whole program (steady)"};
// What goes first when there is no room.
constexpr std::array<Column, 6> least_needed{mode, ulp, rmse, shape, max_rel, close};

float room() { return std::max(1.0F, ImGui::GetContentRegionAvail().x); }

std::string cell_text(const model::CheckRow& row, std::size_t column) {
  const model::CheckFigures& f = row.worst();
  switch (column) {
    case name:
      return row.name;
    case shape:
      return row.shape;
    case max_abs:
      return f.max_abs.text;
    case max_rel:
      return f.max_rel.text;
    case ulp:
      return f.ulp.text;
    case rmse:
      return f.rmse.value || f.rmse_eager.value ? f.rmse.text + " / " + f.rmse_eager.text : "–";
    case close:
      return !f.as_close ? "–" : *f.as_close ? "✓" : "!";
    case mode:
      return f.mode;
    default:
      return row.failed ? "✗" : "✓";
  }
}

bool right_aligned(std::size_t column) { return column >= max_abs && column <= rmse; }

bool primary_button(const Context& context, const char* label) {
  ImGui::PushStyleColor(ImGuiCol_Button, context.theme.accent);
  ImGui::PushStyleColor(ImGuiCol_ButtonHovered, mixed(context.theme.accent, context.theme.text, 0.15F));
  ImGui::PushStyleColor(ImGuiCol_ButtonActive, mixed(context.theme.accent, context.theme.backdrop, 0.2F));
  ImGui::PushStyleColor(ImGuiCol_Text, context.theme.text_on_accent);
  const bool pressed = ImGui::Button(label);
  ImGui::PopStyleColor(4);
  return pressed;
}

void wrapped(ImU32 color, std::string_view value) {
  ImGui::PushTextWrapPos(0);
  text(color, value);
  ImGui::PopTextWrapPos();
}

}  // namespace

void CheckPanel::draw(Context& context) {
  const FontScope base(context.fonts.ui, context.fonts.ui_size);
  const workspace::Scene* scene = context.scene();
  if (scene == nullptr) {
    text(context.theme.text_dim, "Nothing is open.");
    return;
  }
  if (context.workspace.busy()) draw_busy(context);
  const auto& run = context.workspace.check();
  const bool here = run != nullptr && run->program == scene->program;
  if (here && run != run_) take(run);
  const repl::HostStatus& host = context.workspace.host();
  using State = repl::HostStatus::State;
  if (!context.workspace.busy() && context.workspace.has_host() &&
      (host.state == State::failed || host.state == State::died)) {
    text(context.theme.error, "✗");
    ImGui::SameLine();
    wrapped(context.theme.text, host.text.empty() ? "Python ended." : host.text);
    if (ImGui::Button("Restart Python")) context.workspace.restart_host();
    ImGui::SameLine();
    text(context.theme.text_dim, "what it said is in the Log");
    ImGui::Spacing();
    if (!here) return;
  }
  if (!here) {
    if (context.workspace.busy()) return;
    wrapped(
        context.theme.text_dim,
        "Not checked yet. Runs the kernels and eager PyTorch on the same inputs, and compares every output.");
    ImGui::Spacing();
    ImGui::BeginDisabled(!context.workspace.has_host());
    if (primary_button(context, "Run & compare")) context.workspace.click(check_command);
    ImGui::EndDisabled();
    ImGui::SameLine();
    text(context.theme.text_faint, context.workspace.has_host() ? "F5" : "there is no Python to run them in");
    return;
  }
  follow(context);
  const bool current = context.workspace.check_is_current();
  draw_verdict(context, current);
  const FontScope small(context.fonts.ui, context.fonts.small_size);
  measure(context);
  if (view_.rows.empty()) {
    text(context.theme.text_dim, "The graph has no outputs to compare.");
    return;
  }
  const float row = ImGui::GetTextLineHeight() + context.px(5), whole = ImGui::GetContentRegionAvail().y;
  const float wanted = row * static_cast<float>(view_.rows.size() + 1) + context.px(3);
  draw_table(context, current, std::min(wanted, std::max(row * 3 + context.px(3), whole * 0.38F)));
  draw_chosen(context, current);
}

void CheckPanel::take(const std::shared_ptr<const workspace::CheckRun>& run) {
  run_ = run;
  view_ = model::check_view(*run->compilation, run->result, run->decision);
  measured_ = 0;
  row_ = -1;
  choose(view_.rows.empty() ? -1 : 0, 0);
  scroll_ = true;
}

void CheckPanel::choose(int row, int mode) {
  row_ = row, mode_ = mode;
  picture_.reset();
  histogram_.reset();
  if (row < 0) return;
  const model::CheckRow& chosen = view_.rows[static_cast<std::size_t>(row)];
  mode_ = std::clamp(mode, 0, static_cast<int>(chosen.modes.size()) - 1);
  const std::string& name = chosen.modes[static_cast<std::size_t>(mode_)].mode;
  picture_ = model::difference_picture(run_->result, chosen, name);
  histogram_ = model::difference_histogram(run_->result, chosen, name);
}

void CheckPanel::follow(const Context& context) {
  if (followed_ == context.state.selection_number) return;
  followed_ = context.state.selection_number;
  const auto* node = std::get_if<trace::NodeId>(&context.state.selection);
  const auto* buffer = std::get_if<loop::BufferId>(&context.state.selection);
  if (node == nullptr && buffer == nullptr) return;
  for (std::size_t k = 0; k < view_.rows.size(); ++k) {
    const model::CheckRow& row = view_.rows[k];
    const bool same = node != nullptr ? row.node == *node : row.buffer == *buffer;
    if (!same) continue;
    if (static_cast<int>(k) != row_) choose(static_cast<int>(k), 0);
    scroll_ = true;
    return;
  }
}

void CheckPanel::select_thing(Context& context, const model::CheckRow& row) {
  const loop::Program& program = *context.scene()->snapshot->program;
  if (row.node.valid() && context.scene()->compilation == run_->compilation) {
    context.select(row.node);
  } else if (row.input >= 0 && static_cast<std::size_t>(row.input) < program.input_buffers.size()) {
    const loop::BufferId buffer = program.input_buffers[static_cast<std::size_t>(row.input)];
    if (buffer.valid()) context.select(buffer);
  } else if (row.buffer.valid() && context.workspace.check_is_current() &&
             program.buffers.contains(row.buffer)) {
    context.select(row.buffer);
  }
  followed_ = context.state.selection_number;
}

void CheckPanel::draw_busy(Context& context) const {
  const workspace::Busy& busy = *context.workspace.busy();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - busy.since).count();
  const std::string said =
      busy.cancelling ? "cancelling"
                      : fmt::format("{}   {:.0f} s", busy.text.empty() ? busy.command : busy.text, seconds);
  const char* cancel = "Cancel";
  const float button = ImGui::CalcTextSize(cancel).x + 2 * ImGui::GetStyle().FramePadding.x;
  ImGui::AlignTextToFramePadding();
  text_cut(context.theme.text, said, std::max(1.0F, room() - button - context.px(16)));
  ImGui::SameLine(std::max(0.0F, ImGui::GetContentRegionMax().x - button));
  ImGui::BeginDisabled(busy.cancelling);
  if (ImGui::Button(cancel)) context.workspace.cancel();
  ImGui::EndDisabled();
  const float height = context.px(4);
  ImGui::ProgressBar(
      busy.fraction >= 0 ? static_cast<float>(busy.fraction) : static_cast<float>(-ImGui::GetTime()),
      ImVec2(room(), height), "");
  ImGui::Spacing();
}

void CheckPanel::draw_verdict(Context& context, bool current) const {
  const Theme& theme = context.theme;
  std::string below = current ? "" : "the program has moved since";
  const auto add = [&below](const std::string& part) {
    if (!part.empty()) below += (below.empty() ? "" : "  ·  ") + part;
  };
  if (!view_.kernel.empty()) add("only what " + view_.kernel + " writes");
  add(view_.times);
  if (view_.interpret) add("interpreted: not the times of any hardware");
  for (const std::string& note : view_.notes) add(note);
  // In a low drawer the figures and the picture need the line.
  const bool hidden = current && ImGui::GetContentRegionAvail().y < context.px(200);
  const ImU32 color = !current ? theme.text_faint : view_.passed ? theme.passed : theme.error;
  {
    const FontScope font(context.fonts.bold, context.fonts.ui_size);
    text(color, view_.passed ? "✓" : "✗");
    ImGui::SameLine();
    const char* again = "Run again";
    const float button = ImGui::CalcTextSize(again).x + 2 * ImGui::GetStyle().FramePadding.x + context.px(8);
    const bool offer = !current && !context.workspace.busy();
    const std::string failed = view_.failed > 0 && view_.rows.size() > 1
                                   ? fmt::format("   {} of {} differ", view_.failed, view_.rows.size())
                                   : std::string();
    text_cut(color, view_.verdict + failed, std::max(1.0F, room() - (offer ? button : 0)));
    if (hidden && !below.empty() && ImGui::IsItemHovered()) ImGui::SetTooltip("%s", below.c_str());
    if (offer) {
      ImGui::SameLine(std::max(0.0F, ImGui::GetContentRegionMax().x - button));
      if (ImGui::SmallButton(again)) context.workspace.click(check_command);
    }
  }
  const FontScope font(context.fonts.ui, context.fonts.small_size);
  if (!below.empty() && !hidden) text_cut(current ? theme.text_dim : theme.warning, below, room());
}

void CheckPanel::measure(const Context& context) {
  const float size = ImGui::GetFontSize();
  if (measured_ == size) return;
  measured_ = size;
  for (std::size_t k = 0; k < column_count; ++k) {
    const bool mono = right_aligned(k) || k == shape;
    float widest = ImGui::CalcTextSize(titles[k]).x;
    const FontScope font(mono ? context.fonts.mono : context.fonts.ui, context.fonts.small_size);
    for (const model::CheckRow& row : view_.rows) {
      // The longest of thousands of names is not worth measuring them all: a name may be cut.
      if (&row - view_.rows.data() > 500) break;
      widest = std::max(widest, ImGui::CalcTextSize(cell_text(row, k).c_str()).x);
    }
    widths_[k] = widest + context.px(2);
  }
}

void CheckPanel::draw_table(Context& context, bool current, float height) {
  std::array<bool, column_count> shown{};
  shown.fill(true);
  const float pad = 2 * context.px(5), bar = view_.rows.size() > 3 ? ImGui::GetStyle().ScrollbarSize : 0;
  const auto needed = [&] {
    float sum = bar;
    for (std::size_t k = 0; k < column_count; ++k)
      if (shown[k]) sum += (k == name ? std::min(widths_[k], context.px(160)) : widths_[k]) + pad;
    return sum;
  };
  for (const Column column : least_needed) {
    if (needed() <= room()) break;
    shown[column] = false;
  }
  const auto count = static_cast<int>(std::count(shown.begin(), shown.end(), true));
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingFixedFit |
                                    ImGuiTableFlags_NoSavedSettings | ImGuiTableFlags_BordersInnerH |
                                    ImGuiTableFlags_NoKeepColumnsVisible;
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(context.px(5), context.px(2.5F)));
  // A table of as many columns as are shown: one for each number, so that each keeps its own state.
  ImGui::PushID(count);
  if (ImGui::BeginTable("##rows", count, flags, ImVec2(0, height))) {
    ImGui::TableSetupScrollFreeze(0, 1);
    for (std::size_t k = 0; k < column_count; ++k) {
      if (!shown[k]) continue;
      if (k == name)
        ImGui::TableSetupColumn(titles[k], ImGuiTableColumnFlags_WidthStretch);
      else
        ImGui::TableSetupColumn(titles[k], ImGuiTableColumnFlags_WidthFixed, widths_[k]);
    }
    ImGui::TableNextRow();
    for (std::size_t k = 0; k < column_count; ++k) {
      if (!shown[k]) continue;
      ImGui::TableNextColumn();
      if (right_aligned(k))
        ImGui::SetCursorPosX(ImGui::GetCursorPosX() +
                             std::max(0.0F, room() - ImGui::CalcTextSize(titles[k]).x));
      text(context.theme.text_faint, titles[k]);
      if (meanings[k][0] != 0 && ImGui::IsItemHovered()) ImGui::SetTooltip("%s", meanings[k]);
    }
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(view_.rows.size()), ImGui::GetTextLineHeight() + context.px(5));
    if (scroll_ && row_ >= 0) clipper.IncludeItemByIndex(row_);
    while (clipper.Step()) {
      for (int k = clipper.DisplayStart; k < clipper.DisplayEnd; ++k) draw_row(context, k, current, shown);
    }
    ImGui::EndTable();
    scroll_ = false;
  }
  ImGui::PopID();
  ImGui::PopStyleVar();
}

void CheckPanel::draw_row(Context& context, int index, bool current,
                          const std::array<bool, column_count>& shown) {
  const Theme& theme = context.theme;
  const model::CheckRow& row = view_.rows[static_cast<std::size_t>(index)];
  ImGui::TableNextRow();
  ImGui::PushID(index);
  const ImU32 main = current ? theme.text : theme.text_dim, dim = current ? theme.text_dim : theme.text_faint;
  const ImU32 state = !current ? theme.text_faint : row.failed ? theme.error : theme.passed;
  if (row.first_divergence && current) ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg0, theme.error_soft);
  for (std::size_t k = 0; k < column_count; ++k) {
    if (!shown[k]) continue;
    ImGui::TableNextColumn();
    const std::string value = cell_text(row, k);
    if (k == sign) {
      const std::string id = fmt::format("##check{}", index);
      const ImVec2 at = ImGui::GetCursorPos();
      if (ImGui::Selectable(id.c_str(), index == row_,
                            ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap)) {
        choose(index, 0);
        select_thing(context, row);
      }
      if (scroll_ && index == row_) ImGui::SetScrollHereY();
      if (ImGui::IsItemHovered() && row.node.valid() && context.scene()->compilation == run_->compilation)
        context.hover(row.node);
      ImGui::SetCursorPos(at);
      text(state, value);
      continue;
    }
    if (k == name) {
      if (row.first_divergence) {
        text(state, "first ▸");
        ImGui::SameLine(0, context.px(4));
        if (ImGui::IsItemHovered())
          ImGui::SetTooltip("the first buffer, in the order in which they are made, that differs");
      }
      const std::string kind = row.kind == model::CheckRow::Kind::argument ? "  argument"
                               : row.made_by.empty()                       ? ""
                                                                           : "  " + row.made_by;
      text_cut(main, value, room());
      if (!kind.empty() && room() > 0) {
        ImGui::SameLine(0, 0);
        text_cut(theme.text_faint, kind, room());
      }
      continue;
    }
    if (k == close || k == mode) {
      const std::optional<bool> as_close = row.worst().as_close;
      text(k == mode || !as_close ? dim
           : !current             ? theme.text_faint
           : *as_close            ? theme.passed
                                  : theme.warning,
           value);
      if (k == close && as_close && ImGui::IsItemHovered())
        ImGui::SetTooltip("%s", *as_close ? "as close to f64 as eager" : "further from f64 than eager");
      continue;
    }
    const FontScope font(context.fonts.mono, context.fonts.small_size);
    if (right_aligned(k))
      ImGui::SetCursorPosX(ImGui::GetCursorPosX() +
                           std::max(0.0F, room() - ImGui::CalcTextSize(value.c_str()).x));
    text_cut(k == max_abs ? (row.failed && current ? theme.error : main) : dim, value, room() + 1);
  }
  ImGui::PopID();
}

void CheckPanel::draw_facts(Context& context, const model::CheckRow& row, const model::CheckFigures& figures,
                            bool current) {
  const Theme& theme = context.theme;
  // The modes as two tabs, where there are two.
  if (row.modes.size() > 1) {
    for (std::size_t k = 0; k < row.modes.size(); ++k) {
      if (k > 0) ImGui::SameLine(0, context.px(2));
      const bool chosen = static_cast<int>(k) == mode_;
      ImGui::PushStyleColor(ImGuiCol_Button, chosen ? theme.accent_soft : theme.raised);
      ImGui::PushStyleColor(ImGuiCol_Text, chosen ? theme.text : theme.text_dim);
      const std::string label = row.modes[k].mode + "##mode" + row.modes[k].mode;
      const bool pressed = ImGui::SmallButton(label.c_str());
      ImGui::PopStyleColor(2);
      if (pressed && !chosen) choose(row_, static_cast<int>(k));
    }
    ImGui::SameLine(0, context.px(10));
  }
  std::string said;
  const auto add = [&said](const std::string& part) {
    if (!part.empty()) said += (said.empty() ? "" : "   ") + part;
  };
  if (figures.failed) {
    add(report::join(figures.reasons, "; "));
    add(figures.first.empty() ? "" : "first at " + figures.first);
    add(figures.tolerance);
  } else {
    // What it was judged by comes before the worst element, which is the long part that a narrow panel cuts.
    add(figures.outside.empty() ? figures.tolerance : figures.outside + " outside " + figures.tolerance);
    add(figures.worst.empty() ? "" : "worst at " + figures.worst);
  }
  text_cut(!current ? theme.text_faint : figures.failed ? theme.error : theme.text_dim, said, room());
}

void CheckPanel::draw_chosen(Context& context, bool current) {
  if (row_ < 0 || static_cast<std::size_t>(row_) >= view_.rows.size()) return;
  const Theme& theme = context.theme;
  const int at_row = row_;
  {
    const model::CheckRow& row = view_.rows[static_cast<std::size_t>(at_row)];
    draw_facts(context, row, row.modes[static_cast<std::size_t>(mode_)], current);
  }
  const model::CheckRow& row = view_.rows[static_cast<std::size_t>(row_)];
  const model::CheckFigures& figures = row.modes[static_cast<std::size_t>(mode_)];
  if (!picture_ && !histogram_) {
    const bool equal = figures.max_abs.value && *figures.max_abs.value == 0 && !figures.failed;
    if (equal)
      text(theme.text_dim, "Every element is equal.");
    else if (row.kind == model::CheckRow::Kind::buffer)
      wrapped(theme.text_faint, "Of the buffers only the first that differs is drawn.");
    else
      wrapped(theme.text_faint, "No picture of the difference was asked for: Run & compare (F5) makes one.");
    return;
  }
  const ImVec2 whole(room(), std::max(context.px(64), ImGui::GetContentRegionAvail().y - context.px(2)));
  const ImVec2 start = ImGui::GetCursorPos();
  const bool titled = whole.y > context.px(110);  // a low drawer has the room for the cells only
  const float line = titled ? ImGui::GetTextLineHeight() + context.px(3) : 0;
  const float left = histogram_ && picture_ ? std::floor(whole.x * 0.56F) : whole.x;
  if (picture_) {
    if (titled)
      text_cut(theme.text_faint, "largest difference in each cell, rows × last axis", left - context.px(12));
    ImGui::SetCursorPos(ImVec2(start.x, start.y + line));
    draw_picture(context, *picture_, ImVec2(left - context.px(14), whole.y - line));
  }
  if (histogram_) {
    const float x = start.x + (picture_ ? left : 0);
    ImGui::SetCursorPos(ImVec2(x, start.y));
    if (titled) text_cut(theme.text_faint, "elements by difference", whole.x - (picture_ ? left : 0));
    ImGui::SetCursorPos(ImVec2(x, start.y + line));
    draw_histogram(context, *histogram_, picture_ ? &*picture_ : nullptr,
                   ImVec2(whole.x - (picture_ ? left : 0), whole.y - line));
  }
}

}  // namespace pallascope::views
