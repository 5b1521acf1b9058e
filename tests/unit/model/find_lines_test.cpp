// Text found in the columns, and the colours of the loops column.
#include "app/model/find_lines.h"

#include "app/model/highlight_loops.h"
#include "tests/unit/model/support.h"

namespace pallascope::model {
namespace {

/// A chunk of lines with these texts.
Lines::Chunk chunk(const std::vector<std::string>& texts) {
  auto block = std::make_shared<Lines::Block>();
  for (const std::string& text : texts) {
    Lines::Row row;
    row.text = text;
    block->rows.push_back(row);
  }
  Lines::Chunk made;
  made.block = std::move(block);
  return made;
}

SourceColumns two_columns() {
  SourceColumns columns;
  columns[ColumnKind::model].lines.add(chunk({"Alpha beta", "none", "ALPHAALPHA"}));
  columns[ColumnKind::pallas].lines.add(chunk({"x = alpha"}));
  return columns;
}

TEST(Find, MatchesComeInOrderWhateverTheCase) {
  const SourceColumns columns = two_columns();
  LineFinder finder;
  finder.start("aLpha", columns, {ColumnKind::model, ColumnKind::pallas});
  std::size_t steps = 0;
  while (finder.step(1)) ++steps;
  EXPECT_EQ(steps, 4U);
  EXPECT_TRUE(finder.done());
  const std::vector<Match> expected{{ColumnKind::model, 0, 0},
                                    {ColumnKind::model, 2, 0},
                                    {ColumnKind::model, 2, 5},
                                    {ColumnKind::pallas, 0, 4}};
  EXPECT_EQ(finder.matches(), expected);
}

TEST(Find, OnlyInTheColumnsAskedForAndNothingForNothing) {
  const SourceColumns columns = two_columns();
  LineFinder finder;
  finder.start("alpha", columns, {ColumnKind::pallas});
  finder.step(100);
  EXPECT_EQ(finder.matches().size(), 1U);
  finder.start("", columns, {ColumnKind::model, ColumnKind::pallas});
  EXPECT_FALSE(finder.step(100));
  EXPECT_TRUE(finder.matches().empty());
}

TEST(Find, ManyMatchesAreCut) {
  SourceColumns columns;
  columns[ColumnKind::loops].lines.add(chunk(std::vector<std::string>(50, std::string(1000, 'e'))));
  LineFinder finder;
  finder.start("e", columns, {ColumnKind::loops});
  while (finder.step(7)) {
  }
  EXPECT_EQ(finder.matches().size(), LineFinder::most);
}

std::string marked(std::string_view text) {
  static const std::map<SyntaxKind, char> letters{{SyntaxKind::comment, 'c'},  {SyntaxKind::number, 'n'},
                                                  {SyntaxKind::constant, 'k'}, {SyntaxKind::keyword, 'w'},
                                                  {SyntaxKind::function, 'f'}, {SyntaxKind::call, 'o'},
                                                  {SyntaxKind::type, 'a'},     {SyntaxKind::parameter, 'v'}};
  std::string result(text.size(), ' ');
  std::uint32_t done = 0;
  for (const SyntaxSpan& span : highlight_loops(text)) {
    EXPECT_GE(span.begin, done);
    EXPECT_GT(span.end, span.begin);
    EXPECT_LE(span.end, text.size());
    done = span.end;
    for (std::uint32_t k = span.begin; k < span.end; ++k) result[k] = letters.at(span.kind);
  }
  return result;
}

TEST(LoopColours, StatementsAndHeads) {
  EXPECT_EQ(marked("    %0 = load buf13[16*i0 + i1] : f32"), "    vv   wwww       nn aa   aa  ccccc");
  EXPECT_EQ(marked("    store buf14[16*i0] = %9"), "    wwwww       nn aa    vv");
  EXPECT_EQ(marked("    %4 = reduce_sum %3 over r2 : f32"), "    vv   oooooooooo vv wwww aa ccccc");
  EXPECT_EQ(marked("    %7 = constant 1e-05 : f32"), "    vv   oooooooo nnnnn ccccc");
  EXPECT_EQ(marked("  sum_1.x: i0 < 2, r2 < 64 (reduced)"), "  fffffff  aa   n  aa   nn ccccccccc");
  EXPECT_EQ(marked("k12:"), "fff ");
  EXPECT_EQ(marked(""), "");
}

TEST(LoopColours, EveryLineOfAProgramCanBeRead) {
  const CompilationPointer compilation = gpt2();
  const SourceColumns columns = source_columns(*compilation, *compilation->last());
  for (const SourceLine& line : columns[ColumnKind::loops].lines)
    EXPECT_NE(marked(line.text), std::string(line.text.size(), ' ')) << line.text;
}

}  // namespace
}  // namespace pallascope::model
