// Room: model. A comparison with PyTorch as rows: the worst first, figures, the picture of the difference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/report/json.h"
#include "core/session/compilation.h"

namespace pallascope::model {

/// One figure: the number to sort and scale by, and its text (`4.8e-07`, `inf`, `–` where there is none).
struct Figure {
  std::optional<double> value;  ///< may be infinite or NaN
  std::string text = "–";
};

/// Figures of one mode (`steady`, `debug`).
struct CheckFigures {
  std::string mode;  ///< empty for a host that compares one way only
  bool failed = false;
  Figure max_abs, max_rel, ulp, rmse, rmse_eager;
  std::optional<bool> as_close;      ///< to float64 as eager is
  std::vector<std::string> reasons;  ///< sentences, why it failed
  std::string first, worst;          ///< `[0,10,25] ours 1.2023967 eager 1.20239735`; empty without
  std::string outside;               ///< `3 of 2,048`; empty when not said
  std::string tolerance;             ///< `rtol 1.3e-06, atol 1e-05`
  bool has_picture = false, has_histogram = false;
};

/// One output, changed argument or buffer.
struct CheckRow {
  enum class Kind : std::uint8_t { output, argument, buffer };
  Kind kind = Kind::output;
  std::size_t position = 0;  ///< in the list of its kind: outputs and arguments share one
  std::string name, shape;   ///< `out0 add_1`, `b7 sum_2`; `f32[2,16,64]`
  std::string made_by;       ///< of a buffer: `k3`, `aten.mm.default`
  bool failed = false;
  bool first_divergence = false;
  std::vector<CheckFigures> modes;  ///< never empty; the worst first
  // What it is in the program, as far as the result says.
  trace::NodeId node;
  loop::BufferId buffer;
  int input = -1;  ///< for an argument: its place in the graph's inputs

  [[nodiscard]] const CheckFigures& worst() const { return modes.front(); }
};

/// What the Check panel shows of one result.
struct CheckView {
  bool passed = false;
  std::string verdict;  ///< `passed at d63 on local (cpu, jax 0.10.2, interpret) in 0.8 s`
  bool interpret = false;
  std::string times;               ///< `debug 11.0 s, steady 3.9 s, eager 0.6 s`; empty when not said
  std::string kernel;              ///< what alone is shown of the program, `k3`; empty for all
  std::vector<std::string> notes;  ///< sentences, among them why there is no float64 reference
  std::vector<CheckRow>
      rows;                ///< first divergence, then failed ones, then the rest, each in the result's order
  std::size_t failed = 0;  ///< rows that are
};

/// Reads what `check` gave (see report/check.h). Missing and misshapen fields are left out; no JSON is refused.
/// `decision`: how many decisions held.
CheckView check_view(const session::Compilation& compilation, const report::Json& result,
                     std::size_t decision);

/// The largest differences of the cells of a grid over a tensor, rows being all axes but the last.
struct DifferencePicture {
  enum class Cell : std::uint8_t {
    exact,     ///< no difference
    differs,   ///< by `values`
    mismatch,  ///< NaN or infinity on one side only
    both_nan,  ///< NaN on both sides at one element at least, and nothing else differs
  };
  int rows = 0, columns = 0;
  std::int64_t of_rows = 0, of_columns = 0;  ///< elements along each side of the tensor
  std::vector<Cell> cells;                   ///< rows * columns
  std::vector<double> values;                ///< above 0 where a cell differs
  int low_decade = 0, high_decade = 0;       ///< 10^low <= every value <= 10^high; equal when none differs
  std::size_t differing = 0, mismatching = 0, nan = 0;

  [[nodiscard]] std::size_t at(int row, int column) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
           static_cast<std::size_t>(column);
  }
  /// 0 to 1 on the log scale from low_decade to high_decade.
  [[nodiscard]] float share(double value) const;
  /// First and last element (inclusive) of a row or column of cells.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> row_range(int row) const;
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> column_range(int column) const;
};

/// Elements by the decade of their difference.
struct DifferenceHistogram {
  std::int64_t exact = 0, nan = 0,
               both_nan = 0;         ///< equal; NaN or infinity on one side only; NaN on both sides
  int first_exponent = 0;            ///< counts[k]: 10^(first_exponent + k) <= difference < ten times that
  std::vector<std::int64_t> counts;  ///< without empty ones at its ends
  std::int64_t total = 0;
};

/// The picture and histogram of a row in one mode; nullopt if the result has none.
std::optional<DifferencePicture> difference_picture(const report::Json& result, const CheckRow& row,
                                                    const std::string& mode);
std::optional<DifferenceHistogram> difference_histogram(const report::Json& result, const CheckRow& row,
                                                        const std::string& mode);

}  // namespace pallascope::model
