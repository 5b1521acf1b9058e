// What a view needs of the columns: sections, folds, counts, rows; where lines go in a step.
#include "app/model/source_outline.h"

#include <algorithm>

#include "tests/unit/model/support.h"

namespace pallascope::model {
namespace {

struct Made {
  std::shared_ptr<const session::Snapshot> snapshot;
  SourceColumns columns;
  SourceOutline outline;
};

Made made_at(const session::Compilation& compilation, std::size_t position) {
  Made made;
  made.snapshot = compilation.at(position);
  made.columns = source_columns(compilation, *made.snapshot);
  if (position > 0) mark_changes(made.columns, source_columns(compilation, *compilation.at(position - 1)));
  made.outline = source_outline(compilation, *made.snapshot, made.columns);
  return made;
}

TEST(Outline, KernelsAreNamedAndTheirCallsFolded) {
  const CompilationPointer compilation = gpt2();
  const Made made = made_at(*compilation, compilation->decisions().size());
  const ColumnOutline& pallas = made.outline[ColumnKind::pallas];
  const auto& lines = made.columns[ColumnKind::pallas].lines;
  const auto folded = [&](std::size_t line) {
    return std::any_of(pallas.folds.begin(), pallas.folds.end(),
                       [&](const Fold& fold) { return fold.first <= line && line < fold.end; });
  };
  for (std::size_t k = 0; k < made.snapshot->module.kernels.size(); ++k) {
    const codegen::KernelSource& kernel = made.snapshot->module.kernels[k];
    const auto first = static_cast<std::size_t>(kernel.kernel_first - 1);
    const Section* section = section_at(pallas, first);
    ASSERT_NE(section, nullptr);
    EXPECT_EQ(section->name, kernel.name);
    EXPECT_EQ(section->first, first);
    EXPECT_NE(section->ids.find("k" + std::to_string(k)), std::string::npos) << section->ids;
    for (std::size_t line = first; line < static_cast<std::size_t>(kernel.kernel_last); ++line)
      EXPECT_FALSE(folded(line)) << lines[line].text;
    for (int line = kernel.kernel_last; line < kernel.last_line; ++line)
      EXPECT_TRUE(folded(static_cast<std::size_t>(line))) << lines[static_cast<std::size_t>(line)].text;
  }
  // Imports, the calls and the reference are folded; the products and the order of the kernels are not.
  EXPECT_TRUE(folded(0));
  std::size_t seen = 0;
  for (std::size_t k = 0; k < lines.size(); ++k) {
    const std::string_view text = lines[k].text;
    if (text.starts_with("def reference(") || text.starts_with("def call(")) {
      EXPECT_TRUE(folded(k)) << text;
      ++seen;
    }
    if (text.starts_with("def _segment") || text.find("jnp.matmul") != std::string_view::npos) {
      EXPECT_FALSE(folded(k)) << text;
      ++seen;
    }
  }
  EXPECT_GE(seen, 6U);
}

TEST(Outline, SectionsAndFoldsAreApartAndInTheText) {
  const CompilationPointer compilation = gpt2();
  for (const std::size_t position :
       {std::size_t{0}, std::size_t{5}, std::size_t{40}, compilation->decisions().size()}) {
    const Made made = made_at(*compilation, position);
    for (const ColumnKind kind : column_kinds) {
      std::size_t end = 0;
      for (const Section& section : made.outline[kind].sections) {
        EXPECT_GE(section.first, end);
        EXPECT_GT(section.end, section.first) << section.name;
        end = section.end;
      }
      EXPECT_LE(end, made.columns[kind].lines.size());
      end = 0;
      for (const Fold& fold : made.outline[kind].folds) {
        EXPECT_GE(fold.first, end);
        EXPECT_GT(fold.end, fold.first);
        EXPECT_FALSE(fold.key.empty());
        EXPECT_FALSE(fold.title.empty());
        end = fold.end;
      }
      EXPECT_LE(end, made.columns[kind].lines.size());
    }
    // Not all of the module is folded away, whatever it holds.
    std::size_t folded = 0;
    for (const Fold& fold : made.outline[ColumnKind::pallas].folds) folded += fold.end - fold.first;
    EXPECT_LT(folded, made.columns[ColumnKind::pallas].lines.size());
  }
}

TEST(Outline, FilesSayWhetherTheirTextIsThere) {
  const CompilationPointer with = compile(rows(), {}, {{"model.py", "first\nsecond\n"}}),
                           without = compile(rows());
  EXPECT_TRUE(made_at(*with, 0).outline[ColumnKind::model].sections.at(0).whole);
  EXPECT_FALSE(made_at(*without, 0).outline[ColumnKind::model].sections.at(0).whole);
}

TEST(Outline, CountsWhatAStepChanged) {
  const CompilationPointer compilation = gpt2();
  bool some = false;
  for (std::size_t position = compilation->schedule().lower_decisions;
       position <= compilation->decisions().size(); ++position) {
    const Made made = made_at(*compilation, position);
    for (const ColumnKind kind : column_kinds) {
      const auto& lines = made.columns[kind].lines;
      const auto before =
          position == 0 ? 0 : source_columns(*compilation, *compilation->at(position - 1))[kind].lines.size();
      const ColumnOutline& outline = made.outline[kind];
      if (position > 0) {
        EXPECT_EQ(static_cast<std::ptrdiff_t>(lines.size()) - static_cast<std::ptrdiff_t>(before),
                  outline.added - outline.removed);
      }
      EXPECT_EQ(outline.first_change.has_value(), outline.added + outline.removed > 0);
      int added = 0, removed = 0;
      for (const Fold& fold : outline.folds) added += fold.added, removed += fold.removed;
      EXPECT_LE(added, outline.added);
      EXPECT_LE(removed, outline.removed);
      some = some || outline.added > 0;
    }
  }
  EXPECT_TRUE(some);
}

TEST(Outline, LettersAreThoseInTheGutter) {
  const CompilationPointer compilation = gpt2();
  const Made made = made_at(*compilation, compilation->decisions().size());
  EXPECT_EQ(made.outline.letters.substr(0, 2), "CB");
  EXPECT_TRUE(made.outline.stores);
  EXPECT_GT(made.outline[ColumnKind::pallas].last_number, 600);
  std::size_t widest = 0;
  for (const SourceLine& line : made.columns[ColumnKind::pallas].lines)
    widest = std::max(widest, line.text.size());
  EXPECT_EQ(made.outline[ColumnKind::pallas].widest, widest);  // the module is ASCII
}

/// A line of a column and what sets it apart from the column before the step.
struct Flagged {
  std::string text;
  LineFlag flag = LineFlag::same;
  int removed_before = 0;
};
Column column_of(const std::vector<Flagged>& lines) {
  auto block = std::make_shared<Lines::Block>();
  std::vector<Lines::Mark> marks;
  for (const Flagged& line : lines) {
    Lines::Row row;
    row.text = line.text;
    if (line.flag != LineFlag::same || line.removed_before > 0)
      marks.push_back({block->rows.size(), line.flag, line.removed_before});
    block->rows.push_back(std::move(row));
  }
  Lines::Chunk chunk;
  chunk.block = std::move(block);
  Column column;
  column.lines.add(std::move(chunk));
  column.lines.set_marks(std::move(marks));
  return column;
}

TEST(Outline, LinesAreFoundAgainAfterAStep) {
  // Before: a b c d e. After: a X d N e, with b, c replaced by X.
  const Column after = column_of({{"a"}, {"X", LineFlag::changed, 2}, {"d"}, {"N", LineFlag::added}, {"e"}});
  EXPECT_EQ(line_after(after, 0), 0U);
  EXPECT_EQ(line_after(after, 1), 1U);
  EXPECT_EQ(line_after(after, 2), 1U);
  EXPECT_EQ(line_after(after, 3), 2U);
  EXPECT_EQ(line_after(after, 4), 4U);
  EXPECT_EQ(line_before(after, 0), 0U);
  EXPECT_EQ(line_before(after, 2), 3U);
  EXPECT_EQ(line_before(after, 4), 4U);
  EXPECT_EQ(only_removed_before(after, 1), 1);
  EXPECT_EQ(only_removed_before(after, 2), 0);
}

TEST(Rows, AClosedFoldIsItsHead) {
  const std::vector<Fold> folds{{0, 3, "a", "a", 0, 0}, {5, 7, "b", "b", 0, 0}};
  FoldedRows rows;
  rows.set(9, folds, {false, true});
  // a's head, 3, 4, b's head, 5, 6, 7, 8
  ASSERT_EQ(rows.size(), 8U);
  EXPECT_EQ(rows.at(0).fold, 0);
  EXPECT_FALSE(rows.at(0).open);
  EXPECT_EQ(rows.at(1).line, 3U);
  EXPECT_EQ(rows.at(3).fold, 1);
  EXPECT_TRUE(rows.at(3).open);
  EXPECT_EQ(rows.at(4).line, 5U);
  EXPECT_EQ(rows.at(7).line, 8U);
  EXPECT_EQ(rows.row_of(2), 0U);
  EXPECT_EQ(rows.row_of(5), 4U);
  EXPECT_EQ(rows.row_of(8), 7U);
  EXPECT_EQ(rows.row_of(9), rows.size());
  rows.set(9, folds, {true, true});
  EXPECT_EQ(rows.size(), 11U);
  for (std::size_t line = 0; line < 9; ++line) {
    EXPECT_EQ(rows.at(rows.row_of(line)).line, line);
    EXPECT_EQ(rows.at(rows.row_of(line)).fold, -1);
  }
}

}  // namespace
}  // namespace pallascope::model
