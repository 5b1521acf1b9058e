// Room: views. Text of source lines in the colours of their syntax.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "app/model/highlight.h"
#include "app/model/source_columns.h"
#include "app/views/context.h"

namespace pallascope::views {

/// Spans of the lines of one column, made when a line is first looked at.
class LineSpans {
 public:
  /// Replaces the text; the same column again is not read anew.
  void set(std::shared_ptr<const model::SourceColumns> columns, model::ColumnKind kind);
  /// Spans of `line`, which must be in the column. Good until the next call.
  [[nodiscard]] const std::vector<model::SyntaxSpan>& line(std::size_t line);

 private:
  void look_at(std::size_t line);

  std::shared_ptr<const model::SourceColumns> columns_;
  model::ColumnKind kind_ = model::ColumnKind::model;
  model::PythonHighlighter python_;
  std::size_t first_ = 0, end_ = 0;  ///< lines that python_ has
  std::unordered_map<std::size_t, std::vector<model::SyntaxSpan>> loops_;
};

/// A monospaced font as it is now pushed.
struct MonoMetrics {
  ImFont *font = nullptr, *bold = nullptr;
  float size = 0, advance = 0, line_height = 0;
};
MonoMetrics mono_metrics(const Fonts& fonts);

/// Pixels from the start of a line to byte `at` of it.
float text_offset(const MonoMetrics& mono, std::string_view text, std::size_t at);

/// Draws one line from `at` on, and only what is left of `right`. `alpha` fades all of it.
void draw_code(ImDrawList& draw, const MonoMetrics& mono, const Theme& theme, ImVec2 at, float right,
               std::string_view text, const std::vector<model::SyntaxSpan>& spans, float alpha = 1);

}  // namespace pallascope::views
