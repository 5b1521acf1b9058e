// Columns that are made from the ones before must not differ from columns that are made alone.
#include <algorithm>
#include <numeric>
#include <random>

#include "app/model/source_columns.h"
#include "tests/unit/model/support.h"

namespace pallascope::model {
namespace {

auto as_tuple(const SourceLine& l) {
  return std::tuple(l.kind, l.number, l.text, l.letter, l.store, l.on_value, l.kernel, l.nest, l.statement, l.access,
                    std::vector(l.nodes.begin(), l.nodes.end()), l.flag, l.removed_before);
}

void expect_equal(const SourceColumns& a, const SourceColumns& b, const std::string& where) {
  for (const ColumnKind kind : column_kinds) {
    ASSERT_EQ(a[kind].lines.size(), b[kind].lines.size()) << where;
    ASSERT_EQ(a[kind].removed_at_end, b[kind].removed_at_end) << where;
    for (std::size_t k = 0; k < a[kind].lines.size(); ++k)
      ASSERT_EQ(as_tuple(a[kind].lines[k]), as_tuple(b[kind].lines[k])) << where << ", " << column_name(kind) << " line " << k;
  }
}

/// As many lines as the old column, without those removed and with those added.
void expect_balance(const Column& column, const Column& before, const std::string& where) {
  int lines = static_cast<int>(before.lines.size()) - column.removed_at_end;
  for (const SourceLine& line : column.lines) lines += (line.flag != LineFlag::same ? 1 : 0) - line.removed_before;
  EXPECT_EQ(lines, static_cast<int>(column.lines.size())) << where;
}

void expect_steps_do_not_matter(const CompilationPointer& compilation, const std::string& name) {
  const std::size_t all = compilation->decisions().size();
  std::vector<std::size_t> order(all + 1);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (const std::string direction : {"forward", "backward", "random"}) {
    if (direction == "backward") std::reverse(order.begin(), order.end());
    if (direction == "random") std::shuffle(order.begin(), order.end(), std::mt19937(7));
    SourceColumns old_columns, old_alone;
    bool first = true;
    for (const std::size_t k : order) {
      const std::string where = name + " " + direction + " d" + std::to_string(k);
      const auto snapshot = compilation->at(k);
      SourceColumns columns = source_columns(*compilation, *snapshot, first ? nullptr : &old_columns);
      // Alone: another compilation's snapshot, which shares no chunk with the one before.
      const auto made = session::Compilation::compile(
          std::make_shared<const trace::Program>(compilation->program()), 0).value();
      SourceColumns alone = source_columns(*made, *made->at(k));
      if (!first) {
        mark_changes(columns, old_columns);
        mark_changes(alone, old_alone);
        for (const ColumnKind kind : column_kinds) expect_balance(columns[kind], old_columns[kind], where);
      }
      expect_equal(columns, alone, where);
      if (::testing::Test::HasFatalFailure()) return;
      old_columns = std::move(columns);
      old_alone = std::move(alone);
      first = false;
    }
  }
}

TEST(Steps, DoNotMatterToTheColumns) {
  expect_steps_do_not_matter(compile(rows()), "rows");
  expect_steps_do_not_matter(gpt2(), "gpt2");
}

TEST(Changes, ARenumberedKernelIsAChangedLine) {
  const CompilationPointer compilation = gpt2();
  const std::size_t all = compilation->decisions().size();
  for (std::size_t k = compilation->schedule().lower_decisions; k < all; ++k) {
    if (!compilation->decisions()[k].accepted) continue;
    const auto before = compilation->at(k), after = compilation->at(k + 1);
    const SourceColumns old_columns = source_columns(*compilation, *before);
    SourceColumns columns = source_columns(*compilation, *after, &old_columns);
    mark_changes(columns, old_columns);
    const auto& lines = columns[ColumnKind::loops].lines;
    if (compilation->decisions()[k].kind != schedule::DecisionKind::fuse) continue;
    for (const SourceLine& line : lines) {
      if (line.nest.valid()) {
        EXPECT_EQ(line.flag, LineFlag::same) << "d" << k << ": a fusion changes no nest, " << line.text;
      }
    }
  }
}

}  // namespace
}  // namespace pallascope::model
