// The linked columns: lines, letters, what belongs to a selection, what changed.
#include "app/model/source_columns.h"

#include <algorithm>

#include "core/report/code.h"
#include "core/report/lookup.h"
#include "tests/unit/model/support.h"

namespace pallascope::model {
namespace {

std::string texts(const Column& column, const LinkedLines& lines) {
  std::string text;
  for (const std::size_t k : lines.lines) text.append(column.lines.at(k).text) += '\n';
  return text;
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Columns, ModelLinesComeFromTheTracesText) {
  const CompilationPointer compilation = compile(rows(), {}, {{"model.py", "first\nsecond\nthird\n# the end\n"}});
  const SourceColumns columns = source_columns(*compilation, *compilation->last());
  const auto& lines = columns[ColumnKind::model].lines;
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0].kind, LineKind::file);
  EXPECT_EQ(lines[1].text, "first");
  EXPECT_EQ(lines[1].number, 1);
  EXPECT_EQ(lines[1].nodes, (std::vector{node(*compilation, "sin")}));
}

TEST(Columns, WithoutTextTheFramesSpeak) {
  const CompilationPointer compilation = compile(rows());
  const SourceColumns columns = source_columns(*compilation, *compilation->last());
  const auto& lines = columns[ColumnKind::model].lines;
  ASSERT_EQ(lines.size(), 8U);
  EXPECT_EQ(lines[0].text, "model.py");
  EXPECT_EQ(lines[3].text, "line 3");
  EXPECT_EQ(lines[3].number, 3);
}

TEST(Columns, TextIsThatOfTheReport) {
  for (const CompilationPointer& compilation : {compile(rows()), gpt2()}) {
    for (const std::size_t at : {std::size_t{0}, compilation->schedule().lower_decisions, compilation->decisions().size()}) {
      const auto snapshot = compilation->at(at);
      const SourceColumns columns = source_columns(*compilation, *snapshot);
      for (const auto& [kind, form] : {std::pair(ColumnKind::loops, report::CodeForm::loops), std::pair(ColumnKind::pallas, report::CodeForm::pallas)}) {
        const auto code = report::code_lines(*compilation, *snapshot, form, std::nullopt);
        ASSERT_EQ(columns[kind].lines.size(), code.size());
        for (std::size_t k = 0; k < code.size(); ++k) EXPECT_EQ(columns[kind].lines[k].text, code[k].text);
      }
    }
  }
}

TEST(Columns, EveryLoadAndStoreHasAClass) {
  const CompilationPointer compilation = gpt2();
  const auto snapshot = compilation->last();
  const SourceColumns columns = source_columns(*compilation, *snapshot);
  std::size_t letters = 0;
  for (const SourceLine& line : columns[ColumnKind::loops].lines) {
    if (line.statement < 0) {
      EXPECT_EQ(line.letter, ' ') << line.text;
      continue;
    }
    const auto kind = snapshot->program->nests[line.nest].body[static_cast<std::size_t>(line.statement)].kind;
    const bool touches = kind == loop::StatementKind::load || kind == loop::StatementKind::store;
    EXPECT_EQ(line.letter != ' ', touches) << line.text;
    EXPECT_EQ(line.store, kind == loop::StatementKind::store) << line.text;
    letters += touches ? 1 : 0;
  }
  EXPECT_GT(letters, 20U);
  for (const codegen::KernelAccess& access : snapshot->module.accesses) {
    if (access.line == 0) continue;
    EXPECT_NE(columns[ColumnKind::pallas].lines[static_cast<std::size_t>(access.line - 1)].letter, ' ') << access.source;
  }
}

TEST(Linked, ANodeIsOneLineOfTheModelAndItsStatements) {
  const CompilationPointer compilation = compile(rows());
  const auto snapshot = compilation->last();
  const SourceColumns columns = source_columns(*compilation, *snapshot);
  const LinkedColumns found = linked(*compilation, *snapshot, columns, node(*compilation, "sum_1"));
  EXPECT_EQ(texts(columns[ColumnKind::model], found[ColumnKind::model]), "line 2\n");
  EXPECT_TRUE(has(texts(columns[ColumnKind::loops], found[ColumnKind::loops]), "reduce_sum"));
  EXPECT_FALSE(has(texts(columns[ColumnKind::loops], found[ColumnKind::loops]), "sin "));
  EXPECT_TRUE(has(texts(columns[ColumnKind::pallas], found[ColumnKind::pallas]), "jnp.sum("));
  EXPECT_FALSE(has(texts(columns[ColumnKind::pallas], found[ColumnKind::pallas]), "def "));
  EXPECT_TRUE(found[ColumnKind::pallas].contains(*found[ColumnKind::pallas].focus));
}

TEST(Linked, ALibraryCallIsItsLines) {
  const CompilationPointer compilation = compile(rows());
  const auto snapshot = compilation->last();
  const SourceColumns columns = source_columns(*compilation, *snapshot);
  const LinkedColumns found = linked(*compilation, *snapshot, columns, node(*compilation, "mm"));
  EXPECT_TRUE(has(texts(columns[ColumnKind::loops], found[ColumnKind::loops]), "library aten.mm.default"));
  EXPECT_TRUE(has(texts(columns[ColumnKind::pallas], found[ColumnKind::pallas]), "matmul"));
}

TEST(Linked, AKernelIsItsFunctions) {
  const CompilationPointer compilation = gpt2();
  const auto snapshot = compilation->last();
  const SourceColumns columns = source_columns(*compilation, *snapshot);
  for (const schedule::KernelId kernel : report::kernels_in_order(*snapshot)) {
    const LinkedColumns found = linked(*compilation, *snapshot, columns, kernel);
    const std::string name = snapshot->module.kernels[kernel.index()].name;
    EXPECT_TRUE(has(texts(columns[ColumnKind::pallas], found[ColumnKind::pallas]), "def " + name + "_kernel("));
    EXPECT_TRUE(has(texts(columns[ColumnKind::pallas], found[ColumnKind::pallas]), "def " + name + "_main("));
    ASSERT_TRUE(found[ColumnKind::loops].focus.has_value());
    EXPECT_EQ(columns[ColumnKind::loops].lines[*found[ColumnKind::loops].focus].kernel, kernel);
    EXPECT_EQ(columns[ColumnKind::loops].lines[*found[ColumnKind::loops].focus].nest.valid(), false);
  }
}

TEST(Linked, AnAccessIsOneLineOfThePallasModule) {
  const CompilationPointer compilation = gpt2();
  const auto snapshot = compilation->last();
  const SourceColumns columns = source_columns(*compilation, *snapshot);
  for (std::size_t k = 0; k < snapshot->module.accesses.size(); ++k) {
    const codegen::KernelAccess& access = snapshot->module.accesses[k];
    const LinkedColumns found = linked(*compilation, *snapshot, columns, AccessRef{static_cast<int>(k)});
    ASSERT_EQ(found[ColumnKind::loops].lines.size(), 1U);
    EXPECT_EQ(columns[ColumnKind::loops].lines[found[ColumnKind::loops].lines[0]].statement, access.statement);
    if (access.line == 0) continue;
    EXPECT_TRUE(found[ColumnKind::pallas].contains(static_cast<std::size_t>(access.line - 1))) << access.source;
    EXPECT_EQ(found[ColumnKind::pallas].focus, static_cast<std::size_t>(access.line - 1));
  }
}

TEST(Linked, EqualKernelsShareTheirText) {
  const testing::GraphText text = testing::GraphText()
                                      .in("x", "f32[4,4]")
                                      .in("w", "f32[4,4]")
                                      .op("sin", "aten.sin.default", "%x", "f32[4,4]")
                                      .op("mm", "aten.mm.default", "%sin, %w", "f32[4,4]")
                                      .op("sin_1", "aten.sin.default", "%mm", "f32[4,4]")
                                      .op("mm_1", "aten.mm.default", "%sin_1, %w", "f32[4,4]")
                                      .op("sin_2", "aten.sin.default", "%mm_1", "f32[4,4]")
                                      .op("mm_2", "aten.mm.default", "%sin_2, %w", "f32[4,4]")
                                      .out("mm_2");
  const CompilationPointer compilation = compile(text);
  const auto snapshot = compilation->last();
  const auto& kernels = snapshot->module.kernels;
  ASSERT_EQ(kernels.size(), 3U);
  ASSERT_EQ(kernels[1].kernel_first, kernels[2].kernel_first) << "the test is about kernels of one text";
  const SourceColumns columns = source_columns(*compilation, *snapshot);
  for (const std::string name : {"sin_1", "sin_2"}) {
    const LinkedColumns found = linked(*compilation, *snapshot, columns, node(*compilation, name));
    EXPECT_TRUE(has(texts(columns[ColumnKind::pallas], found[ColumnKind::pallas]), "jnp.sin(")) << name;
    EXPECT_EQ(texts(columns[ColumnKind::loops], found[ColumnKind::loops]).find(name + ":"), 2U) << name;
  }
}

TEST(Linked, ADecisionScrollsToWhatItCompared) {
  const CompilationPointer compilation = gpt2();
  const auto snapshot = compilation->last();
  const SourceColumns columns = source_columns(*compilation, *snapshot);
  std::size_t focused = 0;
  for (const schedule::Decision& decision : compilation->decisions()) {
    if (decision.kind != schedule::DecisionKind::fuse || decision.evidence.indices.empty()) continue;
    const LinkedColumns found = linked(*compilation, *snapshot, columns, decision.id);
    EXPECT_FALSE(found[ColumnKind::loops].lines.empty());
    const SourceLine& focus = columns[ColumnKind::loops].lines[*found[ColumnKind::loops].focus];
    EXPECT_TRUE(found[ColumnKind::loops].contains(*found[ColumnKind::loops].focus));
    if (focus.letter != ' ') ++focused;
  }
  EXPECT_GT(focused, 0U);
}

TEST(Linked, NothingSelectsNothing) {
  const CompilationPointer compilation = compile(rows());
  const auto snapshot = compilation->last();
  const SourceColumns columns = source_columns(*compilation, *snapshot);
  for (const Selection& selection : {Selection(), Selection(AccessRef{999}), Selection(schedule::KernelId(99)), Selection(StatementRef{loop::NestId(999), 0})}) {
    for (const ColumnKind kind : column_kinds) EXPECT_TRUE(linked(*compilation, *snapshot, columns, selection)[kind].lines.empty());
  }
}

TEST(Linked, AClickLeadsBackToItsLine) {
  const CompilationPointer compilation = gpt2();
  const auto snapshot = compilation->last();
  const SourceColumns columns = source_columns(*compilation, *snapshot);
  print_time("columns of gpt2", [&] { source_columns(*compilation, *snapshot); });
  print_time("linked(node) in gpt2", [&] { linked(*compilation, *snapshot, columns, trace::NodeId(5)); });
  for (const ColumnKind kind : column_kinds) {
    for (std::size_t k = 0; k < columns[kind].lines.size(); ++k) {
      const Selection selection = selection_of(columns[kind].lines[k]);
      if (is_empty(selection)) continue;
      EXPECT_TRUE(linked(*compilation, *snapshot, columns, selection)[kind].contains(k))
          << column_name(kind) << " " << columns[kind].lines[k].text;
    }
  }
}

TEST(Changes, AreTheLinesOfAStep) {
  const CompilationPointer compilation = compile(rows());
  const auto before = compilation->at(compilation->schedule().lower_decisions), after = compilation->last();
  const SourceColumns old_columns = source_columns(*compilation, *before);
  SourceColumns columns = source_columns(*compilation, *after);
  mark_changes(columns, old_columns);
  const auto flagged = [](const Column& column) {
    return std::count_if(column.lines.begin(), column.lines.end(), [](const SourceLine& line) { return line.flag != LineFlag::same; });
  };
  EXPECT_EQ(flagged(columns[ColumnKind::model]), 0);
  EXPECT_GT(flagged(columns[ColumnKind::pallas]), 0);
  int balance = columns[ColumnKind::pallas].removed_at_end;
  int added = 0;
  for (const SourceLine& line : columns[ColumnKind::pallas].lines) {
    balance += line.removed_before;
    added += line.flag != LineFlag::same ? 1 : 0;
  }
  EXPECT_EQ(static_cast<int>(old_columns[ColumnKind::pallas].lines.size()) - balance + added,
            static_cast<int>(columns[ColumnKind::pallas].lines.size()));
  SourceColumns same = source_columns(*compilation, *after);
  mark_changes(same, columns);
  for (const ColumnKind kind : column_kinds) EXPECT_EQ(flagged(same[kind]), 0);
}

}  // namespace
}  // namespace pallascope::model
