#include "app/views/theme.h"

#include <cstdio>
#include <string>

#include <implot.h>

namespace pallascope::views {
namespace {

/// 0xRRGGBB as ImGui packs it.
constexpr ImU32 rgb(std::uint32_t hex, std::uint32_t alpha = 255) {
  return IM_COL32((hex >> 16) & 255, (hex >> 8) & 255, hex & 255, alpha);
}

constexpr std::string_view access_letters = "CBPSsROGX";

ImVec4 vec(ImU32 color) { return ImGui::ColorConvertU32ToFloat4(color); }

bool readable(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return false;
  std::fclose(file);
  return true;
}

std::string& missing_fonts() {
  static std::string text;
  return text;
}

ImFont* load(const char* path, std::initializer_list<const char*> merged) {
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  if (!readable(path)) {
    missing_fonts() += std::string(missing_fonts().empty() ? "" : ", ") + path;
    return atlas.AddFontDefault();
  }
  ImFont* font = atlas.AddFontFromFileTTF(path);
  for (const char* other : merged) {
    if (!readable(other)) continue;
    ImFontConfig config;
    config.MergeMode = true;
    atlas.AddFontFromFileTTF(other, 0.0F, &config);
  }
  return font;
}

}  // namespace

ImU32 faded(ImU32 color, float alpha) {
  const auto value = static_cast<std::uint32_t>(static_cast<float>(color >> IM_COL32_A_SHIFT) * alpha + 0.5F);
  return (color & ~IM_COL32_A_MASK) | (value << IM_COL32_A_SHIFT);
}

ImU32 mixed(ImU32 from, ImU32 to, float share) {
  ImU32 result = 0;
  for (const int shift : {IM_COL32_R_SHIFT, IM_COL32_G_SHIFT, IM_COL32_B_SHIFT, IM_COL32_A_SHIFT}) {
    const auto a = static_cast<float>((from >> shift) & 255), b = static_cast<float>((to >> shift) & 255);
    result |= static_cast<ImU32>(a + (b - a) * share + 0.5F) << shift;
  }
  return result;
}

ImU32 Theme::access(char letter) const {
  const std::size_t at = access_letters.find(letter);
  return at == std::string_view::npos ? text_faint : access_colors[at];
}

ImU32 Theme::syntax(model::SyntaxKind kind) const {
  const auto at = static_cast<std::size_t>(kind);
  return at < syntax_colors.size() && syntax_colors[at] != 0 ? syntax_colors[at] : text;
}

Theme dark_theme() {
  Theme t;
  t.dark = true;
  t.backdrop = rgb(0x0f1115), t.panel = rgb(0x16191f), t.raised = rgb(0x1e222a), t.field = rgb(0x0f1217);
  t.border = rgb(0x2a2f39), t.border_strong = rgb(0x3d4451);
  t.text = rgb(0xdde1e8), t.text_dim = rgb(0x9aa3b2), t.text_faint = rgb(0x667080), t.text_on_accent = rgb(0xffffff);
  t.accent = rgb(0x4c8dff), t.accent_soft = rgb(0x4c8dff, 70), t.hover = rgb(0xffffff, 14);
  t.linked = rgb(0x4c8dff, 34);
  t.accepted = rgb(0x4fb286), t.refused = rgb(0xf0883e), t.small = rgb(0x4a5261), t.changed = rgb(0xd9b44a);
  t.added = rgb(0x4fb286), t.removed = rgb(0xe5666b);
  t.passed = rgb(0x4fb286), t.warning = rgb(0xd9b44a), t.error = rgb(0xf0616a);
  t.error_soft = rgb(0xf0616a, 40), t.warning_soft = rgb(0xd9b44a, 34), t.passed_soft = rgb(0x4fb286, 34);
  t.canvas = rgb(0x12151a), t.box = rgb(0x252b35), t.box_border = rgb(0x465062), t.view_box = rgb(0x1b2029);
  t.library_box = rgb(0x2f2a45), t.torch_box = rgb(0x452d2a), t.input_box = rgb(0x1d2f38);
  t.group = rgb(0xffffff, 8), t.group_border = rgb(0x3a4250), t.kernel = rgb(0x4fb286, 22);
  t.kernel_border = rgb(0x3f8f6d), t.edge = rgb(0x5a6475), t.edge_strong = rgb(0x8fb4ff);
  t.access_colors = {rgb(0x57b894), rgb(0x5fa8e8), rgb(0xb38cf0), rgb(0x4fc3c9), rgb(0xe8a33d),
                     rgb(0xe86fa8), rgb(0xd8c84a), rgb(0xf0616a), rgb(0xf0616a)};
  using enum model::SyntaxKind;
  const auto set = [&t](model::SyntaxKind kind, ImU32 color) { t.syntax_colors[static_cast<std::size_t>(kind)] = color; };
  set(comment, rgb(0x6f7b8c)), set(string, rgb(0x9ccf8a)), set(number, rgb(0xe0a871)), set(constant, rgb(0xe0a871));
  set(keyword, rgb(0xc49af0)), set(function, rgb(0x7ab7ff)), set(call, rgb(0x8cc4f5)), set(decorator, rgb(0xd9b44a));
  set(type, rgb(0x6fd0c8)), set(builtin, rgb(0x6fd0c8)), set(parameter, rgb(0xc9d3e3));
  return t;
}

Theme light_theme() {
  Theme t;
  t.dark = false;
  t.backdrop = rgb(0xe6e9ee), t.panel = rgb(0xfbfcfd), t.raised = rgb(0xeff1f5), t.field = rgb(0xffffff);
  t.border = rgb(0xd4d9e1), t.border_strong = rgb(0xb3bbc8);
  t.text = rgb(0x1d222b), t.text_dim = rgb(0x565f6e), t.text_faint = rgb(0x848d9b), t.text_on_accent = rgb(0xffffff);
  t.accent = rgb(0x1f66d6), t.accent_soft = rgb(0x1f66d6, 46), t.hover = rgb(0x000000, 12);
  t.linked = rgb(0x1f66d6, 26);
  t.accepted = rgb(0x23855b), t.refused = rgb(0xc2560c), t.small = rgb(0xb4bcc8), t.changed = rgb(0x9a7400);
  t.added = rgb(0x23855b), t.removed = rgb(0xc73038);
  t.passed = rgb(0x23855b), t.warning = rgb(0x9a7400), t.error = rgb(0xc73038);
  t.error_soft = rgb(0xc73038, 30), t.warning_soft = rgb(0xd9a900, 44), t.passed_soft = rgb(0x23855b, 28);
  t.canvas = rgb(0xf3f5f8), t.box = rgb(0xffffff), t.box_border = rgb(0xaab3c1), t.view_box = rgb(0xf0f2f6);
  t.library_box = rgb(0xe9e4fb), t.torch_box = rgb(0xfbe6e1), t.input_box = rgb(0xdff0f7);
  t.group = rgb(0x000000, 7), t.group_border = rgb(0xc3cad5), t.kernel = rgb(0x23855b, 20);
  t.kernel_border = rgb(0x5aa987), t.edge = rgb(0x9aa4b3), t.edge_strong = rgb(0x1f66d6);
  t.access_colors = {rgb(0x23855b), rgb(0x1d6fc0), rgb(0x7b4bd0), rgb(0x0f8a91), rgb(0xb06a00),
                     rgb(0xb8327a), rgb(0x8a7a00), rgb(0xc73038), rgb(0xc73038)};
  using enum model::SyntaxKind;
  const auto set = [&t](model::SyntaxKind kind, ImU32 color) { t.syntax_colors[static_cast<std::size_t>(kind)] = color; };
  set(comment, rgb(0x7a8494)), set(string, rgb(0x2f7a35)), set(number, rgb(0xa3560a)), set(constant, rgb(0xa3560a));
  set(keyword, rgb(0x7a35b8)), set(function, rgb(0x1c5fc0)), set(call, rgb(0x1d6a9e)), set(decorator, rgb(0x8a6a00));
  set(type, rgb(0x0f7a78)), set(builtin, rgb(0x0f7a78)), set(parameter, rgb(0x3a4658));
  return t;
}

Fonts load_fonts() {
  missing_fonts().clear();
  Fonts fonts;
  fonts.ui = load(PALLASCOPE_FONT_UI, {PALLASCOPE_FONT_SIGNS, PALLASCOPE_FONT_MONO_SIGNS});
  fonts.bold = load(PALLASCOPE_FONT_UI_BOLD, {PALLASCOPE_FONT_SIGNS, PALLASCOPE_FONT_MONO_SIGNS});
  fonts.mono = load(PALLASCOPE_FONT_MONO, {PALLASCOPE_FONT_MONO_SIGNS});
  fonts.mono_bold = load(PALLASCOPE_FONT_MONO_BOLD, {PALLASCOPE_FONT_MONO_SIGNS});
  return fonts;
}

std::string_view font_problem() { return missing_fonts(); }

void apply_style(const Theme& theme, float scale) {
  ImGuiStyle style;
  style.FontSizeBase = Fonts{}.ui_size;
  style._NextFrameFontSizeBase = style.FontSizeBase;  // ImGui keeps its own of 20 otherwise
  style.FontScaleDpi = scale;
  style.WindowPadding = ImVec2(10, 8);
  style.FramePadding = ImVec2(8, 4);
  style.ItemSpacing = ImVec2(8, 4);
  style.ItemInnerSpacing = ImVec2(6, 4);
  style.CellPadding = ImVec2(6, 2);
  style.ScrollbarSize = 11;
  style.ScrollbarRounding = 6;
  style.FrameRounding = 4;
  style.GrabRounding = 4;
  style.TabRounding = 4;
  style.PopupRounding = 6;
  style.WindowRounding = 0;
  style.WindowBorderSize = 0;
  style.FrameBorderSize = 1;
  style.TabBarBorderSize = 1;
  style.TabBarOverlineSize = 2;
  style.DockingSeparatorSize = 3;
  style.WindowMenuButtonPosition = ImGuiDir_None;
  style.SeparatorTextBorderSize = 1;
  style.HoverStationaryDelay = 0.10F;
  style.ScaleAllSizes(scale);

  const auto set = [&style](ImGuiCol which, ImU32 color) { style.Colors[which] = vec(color); };
  set(ImGuiCol_Text, theme.text), set(ImGuiCol_TextDisabled, theme.text_dim);
  set(ImGuiCol_WindowBg, theme.panel), set(ImGuiCol_ChildBg, 0), set(ImGuiCol_PopupBg, theme.raised);
  set(ImGuiCol_Border, theme.border), set(ImGuiCol_BorderShadow, 0);
  set(ImGuiCol_FrameBg, theme.field), set(ImGuiCol_FrameBgHovered, mixed(theme.field, theme.accent, 0.10F));
  set(ImGuiCol_FrameBgActive, mixed(theme.field, theme.accent, 0.18F));
  set(ImGuiCol_TitleBg, theme.backdrop), set(ImGuiCol_TitleBgActive, theme.backdrop);
  set(ImGuiCol_TitleBgCollapsed, theme.backdrop), set(ImGuiCol_MenuBarBg, theme.backdrop);
  set(ImGuiCol_ScrollbarBg, 0), set(ImGuiCol_ScrollbarGrab, faded(theme.text_faint, 0.45F));
  set(ImGuiCol_ScrollbarGrabHovered, faded(theme.text_faint, 0.7F)), set(ImGuiCol_ScrollbarGrabActive, theme.text_faint);
  set(ImGuiCol_CheckMark, theme.accent), set(ImGuiCol_SliderGrab, theme.accent), set(ImGuiCol_SliderGrabActive, theme.accent);
  set(ImGuiCol_Button, theme.raised), set(ImGuiCol_ButtonHovered, mixed(theme.raised, theme.accent, 0.18F));
  set(ImGuiCol_ButtonActive, mixed(theme.raised, theme.accent, 0.32F));
  set(ImGuiCol_Header, theme.accent_soft), set(ImGuiCol_HeaderHovered, theme.hover), set(ImGuiCol_HeaderActive, theme.accent_soft);
  set(ImGuiCol_Separator, theme.border), set(ImGuiCol_SeparatorHovered, theme.accent), set(ImGuiCol_SeparatorActive, theme.accent);
  set(ImGuiCol_ResizeGrip, 0), set(ImGuiCol_ResizeGripHovered, theme.accent_soft), set(ImGuiCol_ResizeGripActive, theme.accent);
  set(ImGuiCol_InputTextCursor, theme.text);
  set(ImGuiCol_Tab, theme.backdrop), set(ImGuiCol_TabHovered, mixed(theme.panel, theme.accent, 0.14F));
  set(ImGuiCol_TabSelected, theme.panel), set(ImGuiCol_TabSelectedOverline, theme.accent);
  set(ImGuiCol_TabDimmed, theme.backdrop), set(ImGuiCol_TabDimmedSelected, theme.panel);
  set(ImGuiCol_TabDimmedSelectedOverline, theme.border_strong);
  set(ImGuiCol_DockingPreview, theme.accent_soft), set(ImGuiCol_DockingEmptyBg, theme.backdrop);
  set(ImGuiCol_PlotLines, theme.accent), set(ImGuiCol_PlotLinesHovered, theme.accent);
  set(ImGuiCol_PlotHistogram, theme.accent), set(ImGuiCol_PlotHistogramHovered, theme.accent);
  set(ImGuiCol_TableHeaderBg, theme.raised), set(ImGuiCol_TableBorderStrong, theme.border);
  set(ImGuiCol_TableBorderLight, theme.border), set(ImGuiCol_TableRowBg, 0), set(ImGuiCol_TableRowBgAlt, faded(theme.hover, 0.6F));
  set(ImGuiCol_TextLink, theme.accent), set(ImGuiCol_TextSelectedBg, theme.accent_soft);
  set(ImGuiCol_TreeLines, theme.border), set(ImGuiCol_DragDropTarget, theme.accent);
  set(ImGuiCol_NavCursor, theme.accent), set(ImGuiCol_ModalWindowDimBg, IM_COL32(0, 0, 0, theme.dark ? 130 : 70));
  ImGui::GetStyle() = style;

  ImPlotStyle& plot = ImPlot::GetStyle();
  plot = ImPlotStyle();
  const auto plot_set = [&plot](ImPlotCol which, ImU32 color) { plot.Colors[which] = vec(color); };
  plot_set(ImPlotCol_FrameBg, 0), plot_set(ImPlotCol_PlotBg, theme.field), plot_set(ImPlotCol_PlotBorder, theme.border);
  plot_set(ImPlotCol_AxisText, theme.text_dim), plot_set(ImPlotCol_InlayText, theme.text_dim);
  plot_set(ImPlotCol_TitleText, theme.text), plot_set(ImPlotCol_AxisGrid, theme.border);
}

}  // namespace pallascope::views
