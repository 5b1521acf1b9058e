#include "app/views/code_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/model/highlight_loops.h"

namespace pallascope::views {
namespace {

/// Longer texts are given to the highlighter a part at a time: reading all of it would take more than a frame has.
constexpr std::size_t longest_whole = 6'000, part_before = 600, part_after = 1'800;

/// Whether every byte takes one cell of the font.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

float width_of(const MonoMetrics& mono, std::string_view text) {
  if (is_plain(text)) return static_cast<float>(text.size()) * mono.advance;
  return mono.font->CalcTextSizeA(mono.size, 1e30F, 0, text.data(), text.data() + text.size()).x;
}

}  // namespace

void LineSpans::set(std::shared_ptr<const model::SourceColumns> columns, model::ColumnKind kind) {
  if (columns_ == columns && kind_ == kind) return;
  const auto before = std::exchange(columns_, std::move(columns));
  const bool same_kind = std::exchange(kind_, kind) == kind;
  loops_.clear();
  // A step leaves the model's text as it is.
  if (same_kind && kind == model::ColumnKind::model && before && end_ > 0) {
    const auto& old_lines = (*before)[kind].lines;
    const auto& lines = (*columns_)[kind].lines;
    if (std::equal(old_lines.begin(), old_lines.end(), lines.begin(), lines.end(),
                   [](const model::SourceLine& a, const model::SourceLine& b) { return a.text == b.text; }))
      return;
  }
  first_ = end_ = 0;
}

void LineSpans::look_at(std::size_t line) {
  const auto& lines = (*columns_)[kind_].lines;
  first_ = 0, end_ = lines.size();
  if (lines.size() > longest_whole) {
    first_ = line > part_before ? line - part_before : 0;
    // From the start of a function on, so that nothing before it is missed.
    while (first_ > 0 && !lines[first_].text.starts_with("def ") && !lines[first_].text.starts_with("class "))
      --first_;
    end_ = std::min(lines.size(), line + part_after);
  }
  std::vector<std::string_view> texts;
  texts.reserve(end_ - first_);
  for (std::size_t k = first_; k < end_; ++k)
    texts.emplace_back(lines[k].kind == model::LineKind::code ? std::string_view(lines[k].text)
                                                              : std::string_view());
  python_.set_lines(texts);
}

const std::vector<model::SyntaxSpan>& LineSpans::line(std::size_t line) {
  if (kind_ == model::ColumnKind::loops) {
    constexpr std::size_t most = 4'000;
    if (loops_.size() > most) loops_.clear();
    const auto [at, is_new] = loops_.try_emplace(line);
    if (is_new) at->second = model::highlight_loops((*columns_)[kind_].lines[line].text);
    return at->second;
  }
  if (line < first_ || line >= end_) look_at(line);
  return python_.line(line - first_);
}

MonoMetrics mono_metrics(const Fonts& fonts) {
  MonoMetrics mono;
  mono.bold = fonts.mono_bold;
  mono.font = ImGui::GetFont();
  mono.size = ImGui::GetFontSize();
  mono.advance = mono.font->CalcTextSizeA(mono.size, 1e30F, 0, "0000000000").x / 10;
  mono.line_height = std::floor(mono.size * 1.42F);
  return mono;
}

float text_offset(const MonoMetrics& mono, std::string_view text, std::size_t at) {
  return width_of(mono, text.substr(0, at));
}

void draw_code(ImDrawList& draw, const MonoMetrics& mono, const Theme& theme, ImVec2 at, float right,
               std::string_view text, const std::vector<model::SyntaxSpan>& spans, float alpha) {
  std::size_t done = 0;
  const auto piece = [&](std::size_t end, ImU32 color) {
    end = std::min(end, text.size());
    if (end <= done) return;
    const std::string_view part = text.substr(done, end - done);
    done = end;
    const std::size_t ink = part.find_first_not_of(' ');
    if (ink != std::string_view::npos && at.x < right) {
      const float x = at.x + static_cast<float>(ink) * mono.advance;
      draw.AddText(mono.font, mono.size, ImVec2(x, at.y), alpha < 1 ? faded(color, alpha) : color,
                   part.data() + ink, part.data() + part.size());
    }
    at.x += width_of(mono, part);
  };
  for (const model::SyntaxSpan& span : spans) {
    piece(span.begin, theme.text);
    piece(span.end, theme.syntax(span.kind));
  }
  piece(text.size(), theme.text);
}

}  // namespace pallascope::views
