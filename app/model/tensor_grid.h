// Room: model. A buffer's elements as cells in storage order, with what an access touches and when.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/index/expression.h"

namespace pallascope::model {

/// The first elements of a buffer as rows of cells. Row-major: cell (r, c) is element `r * width + c`.
struct TensorGrid {
  /// What an access does to one shown element.
  struct Cell {
    std::int64_t first =
        -1;  ///< the step of the loop nest (row-major over its axes) that touches it first; -1: none does
    std::int64_t uses = 0;  ///< how many steps touch it
    friend bool operator==(const Cell&, const Cell&) = default;
  };

  std::vector<std::int64_t> dims;  ///< of the whole buffer
  std::int64_t elements = 0;       ///< of the whole buffer
  std::int64_t width = 1,
               height = 0;    ///< of the whole buffer at this width, in cells; the last row may be short
  bool wrapped = false;       ///< a row is not the last axis, but a part or several of it
  int columns = 0, rows = 0;  ///< shown
  int group = 0;              ///< rows between two lines of the next outer axis; 0 without one
  std::vector<Cell> cells;    ///< rows * columns; those at and after `elements` are never touched

  /// Sentences for a person. Where the access cannot be walked, `unknown` says why, and no cell is touched.
  std::string unknown;
  std::string caption;  ///< `first 32 of 512 rows, 64 of 4,096 columns`; empty when everything is shown
  std::string cut;      ///< `not all of the 1,228,800 steps were walked`; empty when all that matter were

  std::int64_t first_step = 0, last_step = 0;  ///< least and greatest `first` of the touched cells
  std::int64_t least_uses = 0, most_uses = 0;  ///< of the touched cells
  std::int64_t touched = 0;                    ///< cells shown that are touched

  [[nodiscard]] const Cell& at(int row, int column) const {
    return cells[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
                 static_cast<std::size_t>(column)];
  }
};

/// Steps of a loop nest that are walked at most.
inline constexpr std::int64_t most_steps = 65536;
/// Columns and cells that are shown at most.
inline constexpr int most_columns = 64, most_cells = 2048;

/// Which cells of a buffer of `dims` there are, none of them touched.
TensorGrid empty_grid(const std::vector<std::int64_t>& dims);

/// The grid of a buffer of `dims` that `expression` (flat element) walks over `axes`, outermost first. `strides` (one an
/// axis) and `offset` when the expression is affine: then only the steps that can reach a shown cell are walked.
/// An expression that depends on loaded values gives an untouched grid; the caller says why in `unknown`.
TensorGrid tensor_grid(const index::Context& context, index::Expression expression,
                       const std::vector<index::AxisId>& axes, const std::vector<std::int64_t>& dims,
                       const std::optional<std::vector<std::int64_t>>& strides, std::int64_t offset);

}  // namespace pallascope::model
