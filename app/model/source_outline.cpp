#include "app/model/source_outline.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "core/report/format.h"

namespace pallascope::model {
namespace {

constexpr std::string_view class_letters = "CBPSsROGX";
/// A fold takes a row itself: fewer lines are shown as they are.
constexpr std::size_t shortest_fold = 4;

/// `end` without the empty lines before it.
std::size_t without_empty(const Column& column, std::size_t first, std::size_t end) {
  while (end > first && column.lines[end - 1].text.empty()) --end;
  return end;
}

/// A statement of the module at the left margin, with what is indented below it.
struct Block {
  std::size_t first = 0;
  std::string name;  ///< of a def, or of what is assigned; empty for another statement
  bool def = false;
};

/// The statements from line `from` on.
std::vector<Block> blocks_of(const Column& column, std::size_t from) {
  std::vector<Block> blocks;
  for (std::size_t k = from; k < column.lines.size(); ++k) {
    const std::string_view text = column.lines[k].text;
    if (text.empty() || std::string_view(" \t)]}#").find(text.front()) != std::string_view::npos) continue;
    Block block{k, "", text.starts_with("def ")};
    const std::string_view rest = block.def ? text.substr(4) : text;
    const std::size_t end = rest.find_first_of("( :=");
    if (block.def || (end != std::string_view::npos && rest.substr(end).starts_with(" = ")))
      block.name = rest.substr(0, end);
    blocks.push_back(std::move(block));
  }
  return blocks;
}

/// `_call` of `library_mm_1f_call` after `library_mm_1f`.
std::string short_name(const std::string& name, const std::string& prefix) {
  return !prefix.empty() && name.size() > prefix.size() && name.starts_with(prefix)
             ? name.substr(prefix.size())
             : name;
}

bool is_segment(const Block& block) { return block.def && block.name.starts_with("_segment"); }

/// What a person looks at outside of kernels: the products that a library makes, and the order of the kernels, which
/// stands in the segments, and in the program around them where there are none.
bool shown_first(const Block& block, bool segments) {
  return is_segment(block) ||
         (block.def && block.name.starts_with("library_") && block.name.ends_with("_call")) ||
         (!segments && block.name == "_call_steady");
}

void add_fold(ColumnOutline& outline, Fold fold) {
  if (fold.end - fold.first >= shortest_fold) outline.folds.push_back(std::move(fold));
}

/// Folds the functions of `blocks` [begin, end) away, up to line `stop`.
void fold_blocks(ColumnOutline& outline, std::size_t first, std::size_t stop,
                 const std::vector<Block>& blocks, std::size_t begin, std::size_t end,
                 const std::string& prefix) {
  std::vector<std::string> names;
  std::string key;
  for (std::size_t k = begin; k < end; ++k) {
    if (blocks[k].name.empty()) continue;
    if (key.empty()) key = blocks[k].name;
    if (blocks[k].def || !prefix.empty()) names.push_back(short_name(blocks[k].name, prefix));
  }
  if (names.empty()) names.push_back(key.empty() ? "other statements" : key);
  constexpr std::size_t most = 5;
  if (names.size() > most) {
    names.resize(most);
    names.emplace_back("…");
  }
  add_fold(outline, {first, stop, key.empty() ? "rest" : key, report::join(names, ", "), 0, 0});
}

struct KernelText {
  std::size_t first = 0, kernel_end = 0, end = 0;
  std::string name;
  std::vector<schedule::KernelId> kernels;
};

std::vector<KernelText> kernel_texts(const session::Snapshot& snapshot, std::size_t lines) {
  std::map<int, KernelText> by_line;
  for (std::size_t k = 0; k < snapshot.module.kernels.size(); ++k) {
    const codegen::KernelSource& source = snapshot.module.kernels[k];
    if (source.first_line < 1 || static_cast<std::size_t>(source.last_line) > lines) continue;
    KernelText& text = by_line[source.first_line];
    text.first = static_cast<std::size_t>(source.first_line - 1);
    text.kernel_end = static_cast<std::size_t>(source.kernel_last);
    text.end = static_cast<std::size_t>(source.last_line);
    text.name = source.name;
    text.kernels.emplace_back(k);
  }
  std::vector<KernelText> texts;
  for (auto& [line, text] : by_line) texts.push_back(std::move(text));
  return texts;
}

std::string ids_text(const std::vector<schedule::KernelId>& kernels) {
  std::vector<std::string> ids;
  for (const schedule::KernelId id : kernels) ids.push_back(report::id_text(id));
  return report::join(ids, ", ");
}

void outline_pallas(const session::Snapshot& snapshot, const Column& column, ColumnOutline& outline) {
  const std::size_t lines = column.lines.size();
  const std::vector<KernelText> kernels = kernel_texts(snapshot, lines);
  const std::vector<Block> tail = blocks_of(column, kernels.empty() ? 0 : kernels.back().end);
  const bool segments = std::any_of(tail.begin(), tail.end(), is_segment);
  const auto shown = [&](const Block& block) { return shown_first(block, segments); };
  const auto first_shown = std::find_if(tail.begin(), tail.end(), shown);
  const std::size_t tail_shown = first_shown == tail.end() ? lines : first_shown->first;
  const std::size_t head_end = kernels.empty() ? tail_shown : kernels.front().first;
  if (head_end > 0) {
    outline.sections.push_back({0, head_end, "imports and helpers", "", {}, true});
    add_fold(outline, {0, head_end, "imports", "imports and helpers", 0, 0});
  }
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const KernelText& kernel = kernels[k];
    const std::size_t next = k + 1 < kernels.size() ? kernels[k + 1].first
                             : tail.empty()         ? lines
                                                    : tail.front().first;
    outline.sections.push_back(
        {kernel.first, next, kernel.name, ids_text(kernel.kernels), kernel.kernels.front(), true});
    add_fold(outline, {kernel.kernel_end, next, kernel.name, "_call, _jit, _main", 0, 0});
  }
  std::size_t fold_from = tail.empty() ? lines : tail.front().first;
  // After the kernels: library calls and the program that calls all of them; the rest is folded.
  std::string prefix;
  std::size_t k = kernels.empty() ? static_cast<std::size_t>(first_shown - tail.begin()) : 0;
  if (k < tail.size()) fold_from = tail[k].first;
  while (k < tail.size()) {
    if (shown(tail[k])) {
      prefix = tail[k].name;
      if (prefix.ends_with("_call")) prefix.resize(prefix.size() - 5);
      const std::size_t end = k + 1 < tail.size() ? tail[k + 1].first : lines;
      outline.sections.push_back({tail[k].first, end, tail[k].name, "", {}, true});
      fold_from = without_empty(column, tail[k].first, end);
      ++k;
      continue;
    }
    const std::size_t begin = k;
    while (k < tail.size() && !shown(tail[k]) && (k == begin || tail[k].name != "reference")) ++k;
    const std::size_t end = k < tail.size() ? tail[k].first : lines;
    const std::string own = prefix.starts_with("library_") ? prefix : "";
    if (own.empty()) {
      if (!outline.sections.empty()) outline.sections.back().end = fold_from;
      outline.sections.push_back(
          {fold_from,
           end,
           tail[begin].name == "reference" ? "reference and self-check" : "calls of the kernels",
           "",
           {},
           true});
    } else {
      outline.sections.back().end = end;
    }
    fold_blocks(outline, fold_from, end, tail, begin, k, own);
    fold_from = end;
    prefix.clear();
  }
}

void outline_loops(const session::Snapshot& snapshot, const Column& column, ColumnOutline& outline) {
  for (std::size_t k = 0; k < column.lines.size(); ++k) {
    const SourceLine& line = column.lines[k];
    if (line.nest.valid()) continue;
    if (!outline.sections.empty() && outline.sections.back().end == 0) outline.sections.back().end = k;
    if (!line.kernel.valid()) continue;  // a call is its own name
    Section section;
    section.first = k;
    section.kernel = line.kernel;
    section.ids = report::id_text(line.kernel);
    if (line.kernel.index() < snapshot.module.kernels.size())
      section.name = snapshot.module.kernels[line.kernel.index()].name;
    outline.sections.push_back(std::move(section));
  }
  if (!outline.sections.empty() && outline.sections.back().end == 0)
    outline.sections.back().end = column.lines.size();
}

void outline_model(const session::Compilation& compilation, const Column& column, ColumnOutline& outline) {
  const auto& sources = compilation.program().sources;
  for (std::size_t k = 0; k < column.lines.size(); ++k) {
    if (column.lines[k].kind != LineKind::file) continue;
    if (!outline.sections.empty()) outline.sections.back().end = k;
    const auto source = sources.find(std::string(column.lines[k].text));
    outline.sections.push_back({k,
                                column.lines.size(),
                                std::string(column.lines[k].text),
                                "",
                                {},
                                source != sources.end() && !source->second.empty()});
  }
}

/// How many lines stand where others stood, from `line` on.
int changed_from(const Column& column, std::size_t line) {
  int count = 0;
  while (line < column.lines.size() && column.lines[line].flag == LineFlag::changed) ++line, ++count;
  return count;
}

void count_lines(const Column& column, ColumnOutline& outline) {
  auto fold = outline.folds.begin();
  for (std::size_t k = 0; k < column.lines.size(); ++k) {
    const SourceLine& line = column.lines[k];
    outline.widest = std::max(outline.widest, report::display_width(line.text));
    outline.last_number = std::max(outline.last_number, line.number);
    const int added = line.flag == LineFlag::same ? 0 : 1;
    while (fold != outline.folds.end() && fold->end <= k) ++fold;
    if (fold != outline.folds.end() && fold->first <= k) {
      fold->added += added;
      fold->removed += line.removed_before;
    }
    outline.added += added;
    outline.removed += line.removed_before;
    if ((added > 0 || line.removed_before > 0) && !outline.first_change) outline.first_change = k;
  }
  outline.removed += column.removed_at_end;
  if (column.removed_at_end > 0 && !outline.first_change && !column.lines.empty())
    outline.first_change = column.lines.size() - 1;
}

}  // namespace

SourceOutline source_outline(const session::Compilation& compilation, const session::Snapshot& snapshot,
                             const SourceColumns& columns) {
  SourceOutline outline;
  outline_model(compilation, columns[ColumnKind::model], outline.columns[0]);
  outline_loops(snapshot, columns[ColumnKind::loops], outline.columns[1]);
  outline_pallas(snapshot, columns[ColumnKind::pallas], outline.columns[2]);
  std::array<bool, class_letters.size()> seen{};
  for (const ColumnKind kind : column_kinds) {
    count_lines(columns[kind], outline.columns[static_cast<std::size_t>(kind)]);
    for (const SourceLine& line : columns[kind].lines) {
      const std::size_t at = line.letter == ' ' ? std::string_view::npos : class_letters.find(line.letter);
      if (at == std::string_view::npos) continue;
      seen.at(at) = true;
      outline.stores = outline.stores || line.store;
      outline.on_value = outline.on_value || line.on_value;
    }
  }
  for (std::size_t k = 0; k < seen.size(); ++k) {
    if (seen.at(k)) outline.letters += class_letters[k];
  }
  return outline;
}

const Section* section_at(const ColumnOutline& outline, std::size_t line) {
  const auto after =
      std::upper_bound(outline.sections.begin(), outline.sections.end(), line,
                       [](std::size_t at, const Section& section) { return at < section.first; });
  if (after == outline.sections.begin()) return nullptr;
  const Section& section = *std::prev(after);
  return line < section.end ? &section : nullptr;
}

std::size_t line_after(const Column& after, std::size_t old) {
  std::size_t before = 0;
  for (std::size_t k = 0; k < after.lines.size(); ++k) {
    before += static_cast<std::size_t>(after.lines[k].removed_before);
    if (before > old) return k;  // it is gone: this stands there
    if (after.lines[k].flag != LineFlag::same) continue;
    if (before == old) return k;
    ++before;
  }
  return after.lines.empty() ? 0 : after.lines.size() - 1;
}

std::size_t line_before(const Column& after, std::size_t now) {
  std::size_t before = 0;
  for (std::size_t k = 0; k < after.lines.size() && k <= now; ++k) {
    before += static_cast<std::size_t>(after.lines[k].removed_before);
    if (k < now && after.lines[k].flag == LineFlag::same) ++before;
  }
  return before;
}

int only_removed_before(const Column& column, std::size_t line) {
  const int removed = column.lines[line].removed_before;
  return removed == 0 ? 0 : std::max(0, removed - changed_from(column, line));
}

void FoldedRows::set(std::size_t lines, const std::vector<Fold>& folds, const std::vector<bool>& open) {
  runs_.clear();
  rows_ = 0;
  lines_ = lines;
  std::size_t line = 0;
  const auto plain = [&](std::size_t end) {
    if (end <= line) return;
    runs_.push_back({rows_, line, end - line, -1, false});
    rows_ += end - line;
    line = end;
  };
  for (std::size_t k = 0; k < folds.size(); ++k) {
    plain(folds[k].first);
    const bool is_open = k < open.size() && open[k];
    runs_.push_back({rows_, folds[k].first, folds[k].end - folds[k].first, static_cast<int>(k), is_open});
    ++rows_;
    if (is_open) {
      plain(folds[k].end);
    } else {
      line = folds[k].end;
    }
  }
  plain(lines);
}

FoldedRow FoldedRows::at(std::size_t row) const {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), row,
                                      [](std::size_t wanted, const Run& run) { return wanted < run.row; });
  if (after == runs_.begin()) return {};
  const Run& run = *std::prev(after);
  if (run.fold >= 0) return {run.line, run.fold, run.open};
  return {run.line + (row - run.row), -1, false};
}

std::size_t FoldedRows::row_of(std::size_t line) const {
  if (line >= lines_) return rows_;
  // A head and the run of its open lines begin at the same line: the run is the later one.
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), line,
                                      [](std::size_t wanted, const Run& run) { return wanted < run.line; });
  if (after == runs_.begin()) return rows_;
  const Run& run = *std::prev(after);
  return run.fold >= 0 ? run.row : run.row + (line - run.line);
}

}  // namespace pallascope::model
