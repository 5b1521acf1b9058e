#include "app/views/start_view.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <imgui_internal.h>
#include <misc/cpp/imgui_stdlib.h>

#include "app/repl/words.h"
#include "app/workspace/paths.h"
#include "core/base/dtype.h"

namespace pallascope::views {
namespace {

struct Example {
  const char* file;
  const char* command;   ///< in front of the path
  const char* function;  ///< and inputs, behind it
  const char* about;
};

constexpr std::array<Example, 4> examples{{
    {"gpt2_block.pt2", "open ", "", "a GPT-2 block: attention, layer norms, MLP; refused fusions to explain"},
    {"softmax.py", "trace ", ":f f32[64,256]",
     "two reductions and two pointwise steps that share one kernel"},
    {"layer_norm.py", "trace ", ":f f32[8,16] f32[16] f32[16]",
     "row statistics broadcast back over the rows"},
    {"sin_add.py", "trace ", ":f f32[4] f32[4]", "the smallest: two pointwise operators, one kernel"},
}};

constexpr const char* export_lines =
    "program = torch.export.export(model.eval(), (x,))\n"
    "torch.export.save(program, \"model.pt2\")";
constexpr const char* compile_lines =
    "import torch, pallascope\n"
    "torch.compile(model, backend=\"pallascope\", options={\"dump\": \"bundle\"})(x)";

constexpr const char* question_id = "Execute this file?###question";

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t") == std::string_view::npos; }

std::string home_shortened(const std::string& path) {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return path;
  const std::string prefix = std::string(home) + "/";
  return path.starts_with(prefix) ? "~/" + path.substr(prefix.size()) : path;
}

void heading(const Context& context, const char* label) {
  const FontScope font(context.fonts.bold, context.fonts.small_size);
  text(context.theme.text_dim, label);
  ImGui::Dummy(ImVec2(0, context.px(2)));
}

/// Text in the draw list, cut at `width`.
void put(ImVec2 at, float width, ImU32 color, const std::string& value) {
  ImGui::PushStyleColor(ImGuiCol_Text, color);
  ImGui::RenderTextEllipsis(ImGui::GetWindowDrawList(), at,
                            ImVec2(at.x + width, at.y + ImGui::GetTextLineHeight() + 2), at.x + width,
                            value.c_str(), nullptr, nullptr);
  ImGui::PopStyleColor();
}

/// A row of two lines that can be clicked. `sign` says what kind of file it is.
bool two_line_row(const Context& context, const char* id, float width, const char* sign,
                  const std::string& first, const std::string& second, bool usable) {
  const Theme& theme = context.theme;
  const float height = context.px(44);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool clicked = ImGui::InvisibleButton(id, ImVec2(width, height));
  const bool hovered = ImGui::IsItemHovered() && usable;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height),
                      hovered ? mixed(theme.panel, theme.accent, 0.12F) : theme.panel, context.px(5));
  draw->AddRect(at, ImVec2(at.x + width, at.y + height), hovered ? theme.accent : theme.border,
                context.px(5));
  if (hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  const float badge = context.px(38), left = at.x + badge + context.px(20),
              room = width - badge - context.px(32);
  {
    const FontScope font(context.fonts.mono, context.fonts.small_size);
    const ImVec2 size = ImGui::CalcTextSize(sign);
    const ImVec2 corner(at.x + context.px(9), at.y + context.px(11));
    draw->AddRectFilled(corner, ImVec2(corner.x + badge, corner.y + context.px(22)), theme.field,
                        context.px(3));
    draw->AddText(ImVec2(corner.x + (badge - size.x) / 2, corner.y + (context.px(22) - size.y) / 2),
                  usable ? theme.text_dim : theme.text_faint, sign);
  }
  put(ImVec2(left, at.y + context.px(5)), room, usable ? theme.text : theme.text_faint, first);
  const FontScope font(context.fonts.ui, context.fonts.small_size);
  put(ImVec2(left, at.y + context.px(24)), room, usable ? theme.text_dim : theme.text_faint, second);
  if (ImGui::IsItemHovered() && (ImGui::CalcTextSize(second.c_str()).x > room))
    ImGui::SetTooltip("%s", second.c_str());
  return clicked && usable;
}

void snippet(const Context& context, const char* id, float width, const char* about, const char* code) {
  const Theme& theme = context.theme;
  ImGui::PushStyleColor(ImGuiCol_ChildBg, theme.field);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, context.px(5));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(context.px(12), context.px(8)));
  ImGui::BeginChild(id, ImVec2(width, 0), ImGuiChildFlags_Borders | ImGuiChildFlags_AutoResizeY,
                    ImGuiWindowFlags_NoScrollbar);
  {
    const FontScope font(context.fonts.ui, context.fonts.small_size);
    const float button = ImGui::CalcTextSize("Copy").x + context.px(8);
    text_cut(theme.text_dim, about, ImGui::GetContentRegionAvail().x - button - context.px(16));
    ImGui::SameLine(ImGui::GetWindowContentRegionMax().x - button - context.px(4));
    if (ImGui::SmallButton("Copy")) ImGui::SetClipboardText(code);
  }
  ImGui::Dummy(ImVec2(0, context.px(1)));
  {
    const FontScope font(context.fonts.mono, context.fonts.small_size);
    ImGui::PushTextWrapPos(0);
    text(theme.text, code);
    ImGui::PopTextWrapPos();
  }
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
}

}  // namespace

std::string_view wrong_spec(std::string_view specs) {
  for (std::size_t at = 0; at < specs.size();) {
    const std::size_t start = specs.find_first_not_of(' ', at);
    if (start == std::string_view::npos) break;
    const std::size_t end = std::min(specs.find(' ', start), specs.size());
    const std::string_view word = specs.substr(start, end - start);
    at = end;
    const std::size_t bracket = word.find('[');
    if (bracket == std::string_view::npos || !word.ends_with(']') ||
        !dtype_from_name(word.substr(0, bracket)))
      return word;
    bool digits = true, was_digit = false;
    const std::string_view sizes = word.substr(bracket + 1, word.size() - bracket - 2);
    for (const char c : sizes) {
      const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
      digits = digits && (digit || (c == ',' && was_digit));
      was_digit = digit;
    }
    if (!digits || (!sizes.empty() && !was_digit)) return word;
  }
  return {};
}

void StartView::draw_title(Context& context, float width) {
  const auto centred = [&](const char* value, ImU32 color) {
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0F, (width - ImGui::CalcTextSize(value).x) / 2));
    text(color, value);
  };
  {
    const FontScope font(context.fonts.bold, 30);
    centred("Pallascope", context.theme.text);
  }
  centred("Lowers traced PyTorch graphs to JAX Pallas kernels and shows every decision on the way.",
          context.theme.text_dim);
}

void StartView::draw_examples(Context& context, float width) {
  ImGui::BeginGroup();
  heading(context, "EXAMPLES");
  for (const Example& example : examples) {
    const std::string_view file(example.file);
    const bool clicked = two_line_row(
        context, fmt::format("##example_{}", file).c_str(), width, file.ends_with(".py") ? ".py" : ".pt2",
        fmt::format("{}{}", file,
                    *example.function == '\0' ? "" : fmt::format("   {}", example.function + 1)),
        example.about, true);
    if (clicked) {
      const std::string path = workspace::assets_folder() + "/examples/" + example.file;
      const std::string_view behind(example.function);
      const std::size_t blank = std::min(behind.find(' '), behind.size());
      context.workspace.click(example.command +
                              repl::quote_word(path + std::string(behind.substr(0, blank))) +
                              std::string(behind.substr(blank)));
    }
  }
  ImGui::EndGroup();
}

void StartView::draw_recent(Context& context, float width) {
  const auto& recent = context.workspace.recent();
  if (recent_of_ != recent) {
    recent_of_ = recent;
    rows_.clear();
    for (const workspace::RecentFile& file : recent) {
      const std::filesystem::path path(file.path);
      std::string name = path.filename().string();
      if (name.empty()) name = path.parent_path().filename().string();
      // What is behind the file's name in a command: the function and its inputs.
      if (const std::size_t at = file.command.rfind(name + ":");
          file.command.starts_with("trace ") && at != std::string::npos)
        name += "   " + file.command.substr(at + name.size() + 1);
      rows_.push_back(
          {name, home_shortened(path.parent_path().string()) + (file.exists ? "" : "  (no longer there)")});
    }
  }
  ImGui::BeginGroup();
  heading(context, "RECENT");
  if (rows_.empty()) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::GetWindowDrawList()->AddRect(at, ImVec2(at.x + width, at.y + context.px(44)), context.theme.border,
                                        context.px(5));
    put(ImVec2(at.x + context.px(14), at.y + context.px(14)), width - context.px(28),
        context.theme.text_faint, "What you open is listed here.");
    ImGui::Dummy(ImVec2(width, context.px(44)));
  }
  const std::size_t shown = std::min(rows_.size(), examples.size());
  for (std::size_t k = 0; k < shown; ++k) {
    const workspace::RecentFile& file = recent_of_[k];
    const std::string extension = std::filesystem::path(file.path).extension().string();
    const char* sign = extension == ".py"     ? ".py"
                       : extension == ".pt2"  ? ".pt2"
                       : extension == ".json" ? ".json"
                                              : "dir";
    if (two_line_row(context, fmt::format("##recent{}", k).c_str(), width, sign, rows_[k].name,
                     rows_[k].where, file.exists))
      context.workspace.click(file.command);
  }
  ImGui::EndGroup();
}

void StartView::open_typed(Context& context, std::string typed) {
  const std::size_t start = typed.find_first_not_of(" \t");
  if (start == std::string::npos) return;
  typed.erase(0, start);
  const std::size_t last = typed.find_last_not_of(" \t");
  typed.resize(last + 1);
  // A whole command is understood as well; a .py asks first, as when it is dropped.
  if (typed.starts_with("open ") || typed.starts_with("trace ") || typed == "quit") {
    context.workspace.click(typed);
    return;
  }
  const auto words = repl::split_words(typed);
  const std::string path = words.ok() && words->size() == 1 ? words->front() : typed;
  if (path.ends_with(".py")) {
    context.state.dropped = path;
    path_.leave();
  } else
    context.workspace.click("open " + repl::quote_word(path));
}

void StartView::draw_drop(Context& context, float width) {
  const Theme& theme = context.theme;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = context.px(88);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 end(at.x + width, at.y + height);
  // Dashes: something can be put here.
  const float dash = context.px(6);
  for (float x = at.x; x < end.x; x += dash * 2) {
    draw->AddLine(ImVec2(x, at.y), ImVec2(std::min(x + dash, end.x), at.y), theme.border_strong);
    draw->AddLine(ImVec2(x, end.y), ImVec2(std::min(x + dash, end.x), end.y), theme.border_strong);
  }
  for (float y = at.y; y < end.y; y += dash * 2) {
    draw->AddLine(ImVec2(at.x, y), ImVec2(at.x, std::min(y + dash, end.y)), theme.border_strong);
    draw->AddLine(ImVec2(end.x, y), ImVec2(end.x, std::min(y + dash, end.y)), theme.border_strong);
  }
  const char* label = "Drop a .pt2, a trace in JSON or a bundle here, or type its path";
  const float label_width = ImGui::CalcTextSize(label).x;
  draw->AddText(ImVec2(at.x + (width - label_width) / 2, at.y + context.px(14)), theme.text_dim, label);
  const float button = ImGui::CalcTextSize("Open").x + context.px(32);
  const float field = std::min(context.px(560), width - button - context.px(60));
  ImGui::SetCursorScreenPos(
      ImVec2(at.x + (width - field - button - context.px(8)) / 2, at.y + context.px(44)));
  CommandField::Look look;
  look.id = "##path";
  look.hint = "path · Tab completes, Enter opens";
  look.before = path_.value().starts_with("trace ") || path_.value().starts_with("open ") ? "" : "open ";
  look.width = field;
  float frame = 0;
  {
    const FontScope font(context.fonts.mono, context.fonts.mono_size);
    frame = path_.height();
  }
  const bool close = path_.active() && path_.value().empty() && ImGui::IsKeyPressed(ImGuiKey_Escape);
  if (auto typed = path_.draw(context, look)) open_typed(context, std::move(*typed));
  if (close) context.state.start_page = false;
  ImGui::SameLine(0, context.px(8));
  ImGui::BeginDisabled(is_blank(path_.value()));
  if (ImGui::Button("Open", ImVec2(button, frame))) {
    open_typed(context, path_.value());
    path_.set("");
  }
  ImGui::EndDisabled();
  ImGui::SetCursorScreenPos(ImVec2(at.x, end.y));
  ImGui::Dummy(ImVec2(width, 0));
}

void StartView::draw(Context& context) {
  if (ImGui::GetFrameCount() != shown_in_frame_ + 1) {
    context.workspace.request_recent();
    if (context.state.start_page) path_.focus();  // it was asked for: one goes on to type
  }
  shown_in_frame_ = ImGui::GetFrameCount();
  if (!context.state.repl_input.empty() && context.scene() == nullptr) {
    path_.set(std::exchange(context.state.repl_input, std::string()));
    path_.focus();
  }
  const float room = ImGui::GetContentRegionAvail().x, gap = context.px(24);
  const float width = std::min(context.px(1'000), room - context.px(40));
  const float rows = context.px(44) * static_cast<float>(examples.size());
  const float content = context.px(30 + 24 + 36 + 24 + 88 + 24 + 110 + 70) + rows;
  ImGui::BeginChild("##page", ImVec2(0, 0), 0, ImGuiWindowFlags_NoNav);
  const float top = std::max(context.px(10), (ImGui::GetContentRegionAvail().y - content) * 0.4F);
  ImGui::Dummy(ImVec2(0, top));
  ImGui::Indent((room - width) / 2);
  draw_title(context, width);
  ImGui::Dummy(ImVec2(0, context.px(18)));
  const float half = (width - gap) / 2;
  draw_examples(context, half);
  ImGui::SameLine(0, gap);
  draw_recent(context, half);
  ImGui::Dummy(ImVec2(0, context.px(14)));
  draw_drop(context, width);
  ImGui::Dummy(ImVec2(0, context.px(14)));
  heading(context, "HOW TO GET ONE");
  snippet(context, "##export", half, "a graph, with its weights", export_lines);
  ImGui::SameLine(0, gap);
  snippet(context, "##compile", half, "all graphs of a run, with their inputs", compile_lines);
  ImGui::Unindent((room - width) / 2);
  ImGui::EndChild();
  if (context.scene() != nullptr) {
    // Over the page: the way back to what is open.
    ImGui::SetCursorPos(
        ImVec2(ImGui::GetWindowWidth() - ImGui::CalcTextSize("✕ Close").x - context.px(36), context.px(10)));
    if (ImGui::BeginChild("##close", ImVec2(0, 0),
                          ImGuiChildFlags_AutoResizeX | ImGuiChildFlags_AutoResizeY)) {
      if (ImGui::Button("✕ Close")) context.state.start_page = false;
      ImGui::SetItemTooltip("Back to what is open (Esc)");
    }
    ImGui::EndChild();
  }
}

void StartView::draw_question(Context& context) {
  if (!context.state.dropped.empty() && asked_.empty()) {
    asked_ = context.state.dropped;
    function_.clear();
    specs_.clear();
    definitions_ = nullptr;
    context.workspace.request_python_file(asked_);
    ImGui::OpenPopup(question_id);
  }
  if (asked_.empty()) return;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(ImVec2(viewport->WorkPos.x + viewport->WorkSize.x / 2,
                                 viewport->WorkPos.y + viewport->WorkSize.y * 0.42F),
                          ImGuiCond_Always, ImVec2(0.5F, 0.5F));
  ImGui::SetNextWindowSize(ImVec2(std::min(context.px(600), viewport->WorkSize.x - context.px(40)), 0));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(context.px(20), context.px(16)));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, context.px(8));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, context.theme.raised);
  ImGui::PushStyleColor(ImGuiCol_PopupBg, context.theme.raised);
  const bool open = ImGui::BeginPopupModal(question_id, nullptr,
                                           ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoMove |
                                               ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoSavedSettings);
  ImGui::PopStyleColor(2);
  ImGui::PopStyleVar(3);
  const auto finish = [&] {
    asked_.clear();
    context.state.dropped.clear();
    if (open) ImGui::CloseCurrentPopup();
  };
  if (!open) {
    finish();
    return;
  }
  const Theme& theme = context.theme;
  const auto& file = context.workspace.python_file();
  if (!definitions_ && file && file->path == asked_) {
    definitions_ = file;
    if (!file->definitions.empty()) function_ = file->definitions.front().name;
  }
  const float width = ImGui::GetContentRegionAvail().x;
  {
    const FontScope font(context.fonts.bold, context.fonts.title_size);
    text_cut(theme.text,
             std::filesystem::path(asked_).filename().string() + " will be executed in the Python host",
             width);
  }
  {
    const FontScope font(context.fonts.ui, context.fonts.small_size);
    text_cut(theme.text_dim, asked_, width);
  }
  ImGui::Dummy(ImVec2(0, context.px(6)));
  if (definitions_ && !definitions_->readable) {
    text(theme.error, "✗ The file cannot be read.");
  }
  const float label = context.px(86);
  ImGui::AlignTextToFramePadding();
  text(theme.text_dim, "Function");
  ImGui::SameLine(label);
  ImGui::SetNextItemWidth(-1);
  {
    const FontScope font(context.fonts.mono, context.fonts.mono_size);
    ImGui::InputTextWithHint("##function", "the function or module to trace", &function_);
  }
  if (definitions_ && definitions_->definitions.size() > 1) {
    // The file's own, to be picked.
    const FontScope font(context.fonts.mono, context.fonts.small_size);
    ImGui::SetCursorPosX(label);
    float used = label;
    const std::size_t shown = std::min<std::size_t>(definitions_->definitions.size(), 12);
    for (std::size_t k = 0; k < shown; ++k) {
      const std::string& name = definitions_->definitions[k].name;
      const float wide =
          ImGui::CalcTextSize(name.c_str()).x + ImGui::GetStyle().FramePadding.x * 2 + context.px(6);
      if (k > 0) {
        if (used + wide > width) {
          used = label;
          ImGui::SetCursorPosX(label);
        } else {
          ImGui::SameLine(0, context.px(6));
        }
      }
      used += wide;
      if (ImGui::SmallButton(name.c_str())) function_ = name;
    }
  }
  ImGui::AlignTextToFramePadding();
  text(theme.text_dim, "Inputs");
  ImGui::SameLine(label);
  ImGui::SetNextItemWidth(-1);
  {
    const FontScope font(context.fonts.mono, context.fonts.mono_size);
    ImGui::InputTextWithHint("##specs", "f32[8,128] i64[4]", &specs_);
  }
  const std::string_view wrong = wrong_spec(specs_);
  const bool named = !is_blank(function_) && function_.find_first_of(" \t:;'\"") == std::string::npos;
  {
    const FontScope font(context.fonts.ui, context.fonts.small_size);
    ImGui::SetCursorPosX(label);
    const workspace::PythonDefinition* chosen = nullptr;
    if (definitions_) {
      for (const auto& definition : definitions_->definitions) {
        if (definition.name == function_) chosen = &definition;
      }
    }
    std::string hint;
    ImU32 color = theme.text_dim;
    if (!wrong.empty()) {
      hint = fmt::format("✗ '{}' is no tensor: write a dtype and sizes, as in f32[8,128] or i64[]", wrong);
      color = theme.error;
    } else if (!named) {
      hint = "Name the function to trace.";
    } else if (chosen != nullptr && !chosen->is_class && !chosen->parameters.empty()) {
      hint = fmt::format("one for each of ({})", chosen->parameters);
      if (definitions_->has_inputs) hint += "; none: the file's own";
    } else if (definitions_ && definitions_->has_inputs) {
      hint = "none: the file's own (INPUTS or example_inputs())";
    } else {
      hint = "one tensor for each parameter";
    }
    text_cut(color, hint, width - label);
  }
  ImGui::Dummy(ImVec2(0, context.px(8)));
  const float run = ImGui::CalcTextSize("Run it").x + context.px(36),
              leave = ImGui::CalcTextSize("Do not open").x + context.px(36);
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + width - run - leave - ImGui::GetStyle().ItemSpacing.x);
  // Enter, Space and Esc leave it alone, unless a field is being filled in: the ring says so.
  bool answered_no = ImGui::Button("Do not open", ImVec2(leave, 0));
  const bool typing = ImGui::GetIO().WantTextInput;
  if (!typing) {
    const float out = context.px(2.5F);
    const ImVec2 a = ImGui::GetItemRectMin(), b = ImGui::GetItemRectMax();
    ImGui::GetWindowDrawList()->AddRect(ImVec2(a.x - out, a.y - out), ImVec2(b.x + out, b.y + out),
                                        theme.accent, ImGui::GetStyle().FrameRounding + out, context.px(1.5F));
  }
  ImGui::SameLine();
  ImGui::BeginDisabled(!named || !wrong.empty());
  ImGui::PushStyleColor(ImGuiCol_Button, theme.accent);
  ImGui::PushStyleColor(ImGuiCol_ButtonHovered, mixed(theme.accent, theme.text, 0.12F));
  ImGui::PushStyleColor(ImGuiCol_ButtonActive, mixed(theme.accent, theme.text, 0.22F));
  ImGui::PushStyleColor(ImGuiCol_Text, theme.text_on_accent);
  const bool answered_yes = ImGui::Button("Run it", ImVec2(run, 0));
  ImGui::PopStyleColor(4);
  ImGui::EndDisabled();
  answered_no = answered_no || ImGui::IsKeyPressed(ImGuiKey_Escape);
  for (const ImGuiKey key : {ImGuiKey_Enter, ImGuiKey_KeypadEnter, ImGuiKey_Space})
    answered_no = answered_no || (!typing && ImGui::IsKeyPressed(key));
  if (answered_yes) {
    context.workspace.click(fmt::format("trace {}{}{}", repl::quote_word(asked_ + ":" + function_),
                                        is_blank(specs_) ? "" : " ", specs_));
    finish();
  } else if (answered_no) {
    finish();
  }
  ImGui::EndPopup();
}

}  // namespace pallascope::views
