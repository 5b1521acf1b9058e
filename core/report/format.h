// Room: report. Text and JSON of everything that a person or a script is told: summary, decisions, accesses, code.
// Takes: session::Compilation and a Snapshot of it; the host's check results as JSON.
// Gives: strings and nlohmann::json values to the REPL, the batch mode, the window and the Python package.
// May use: every room of core.
// Never: prints, reads or writes a file, runs anything, decides anything, abbreviates what was asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/index/expression.h"
#include "core/loop/program.h"
#include "core/schedule/decision.h"
#include "core/schedule/schedule.h"
#include "core/trace/graph.h"

namespace pallascope::report {

/// How things are named everywhere a person types them: `n12`, `b7`, `k4`, `d37`.
std::string id_text(trace::NodeId id);
std::string id_text(loop::BufferId id);
std::string id_text(schedule::KernelId id);
std::string id_text(schedule::DecisionId id);

/// `512 B`, `64 KiB`, `1.5 MiB`: binary units, one decimal where the value is not whole.
std::string bytes_text(std::int64_t bytes);
/// `1,940`.
std::string count_text(std::int64_t count);
/// `1 kernel`, `9 kernels`.
std::string plural(std::int64_t count, std::string_view noun);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
/// Names in the enumerations hold underscores or spaces: the first is for JSON, the second for people.
std::string snake(std::string_view name);
std::string spaced(std::string_view name);

/// Columns on a terminal that UTF-8 `text` takes (each code point counts one: the signs used here are narrow).
std::size_t display_width(std::string_view text);
/// `text` with spaces after it up to `width` columns.
std::string padded(std::string_view text, std::size_t width);

/// Rows of cells, each column as wide as its widest cell and two spaces apart. The last column is never padded, and
/// nothing is ever cut off. Columns that are empty in every row take no room.
class Table {
 public:
  explicit Table(std::string indent = "") : indent_(std::move(indent)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] std::string text() const;

 private:
  std::string indent_;
  std::vector<std::vector<std::string>> rows_;
};

/// `f32[2,16,64]`.
std::string shape_text(DType dtype, const std::vector<std::int64_t>& sizes);
/// `i0 < 16, i1 < 64`; empty without axes.
std::string axes_text(const index::Context& context, const std::vector<index::AxisId>& axes);
/// `model.py:42`, the innermost frame outside torch without its folders; empty if the trace has none.
std::string place_text(const trace::Node& node);
/// `aten.sum.dim_IntList(exp, [1], True, dtype=f32)`.
std::string call_text(const trace::Graph& graph, const trace::Node& node);
/// The first outputs' shapes: `f32[2,16,64]`, several separated by commas, `None` for an absent one.
std::string outputs_text(const trace::Graph& graph, const trace::Node& node);

}  // namespace pallascope::report
