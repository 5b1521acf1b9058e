#include "app/model/tensor_grid.h"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "core/report/format.h"

namespace pallascope::model {
namespace {

void touch(TensorGrid& grid, std::int64_t element, std::int64_t step, std::int64_t times) {
  if (element < 0 || element >= grid.elements) return;
  const std::int64_t row = element / grid.width, column = element % grid.width;
  if (row >= grid.rows || column >= grid.columns) return;
  TensorGrid::Cell& cell = grid.cells[static_cast<std::size_t>(row * grid.columns + column)];
  if (cell.first < 0 || step < cell.first) cell.first = step;
  cell.uses += times;
}

/// Walks the steps of an affine access that can reach a shown cell. Worked example, a (512, 4096) buffer read
/// transposed, 4096 * 512 steps: of the outer axis (stride 1) all values from 64 on lie in columns that are not shown,
/// whatever the inner one (stride 4096) does, and of the inner one those from 32 on lie in rows that are not.
class AffineWalk {
 public:
  AffineWalk(TensorGrid& grid, const std::vector<std::int64_t>& extents,
             const std::vector<std::int64_t>& strides)
      : grid_(grid) {
    // Axes that do not move the access are not walked: they only repeat it.
    std::int64_t weight = 1;
    std::vector<Level> levels;
    for (std::size_t k = extents.size(); k-- > 0;) {
      if (strides[k] == 0) {
        times_ *= extents[k];
      } else if (extents[k] != 1) {
        levels.push_back({extents[k], strides[k], weight, 0, 0, true});
      }
      weight *= extents[k];
    }
    levels_.assign(levels.rbegin(), levels.rend());
    std::int64_t low = 0, high = 0;
    bool keeps_column = true;
    for (std::size_t k = levels_.size(); k-- > 0;) {
      levels_[k].low = low, levels_[k].high = high, levels_[k].keeps_column = keeps_column;
      const std::int64_t reach = levels_[k].stride * (levels_[k].extent - 1);
      (reach < 0 ? low : high) += reach;
      keeps_column = keeps_column && levels_[k].stride % grid.width == 0;
    }
  }

  /// False when there were more steps than may be walked.
  bool walk(std::int64_t offset) {
    descend(0, offset, 0);
    return walked_ <= most_steps && visited_ <= most_visits;
  }

 private:
  static constexpr std::int64_t most_visits = 2'000'000;  ///< of values that lead to no step
  struct Level {
    std::int64_t extent, stride, weight;  ///< weight: steps of the nest from one value to the next
    std::int64_t low, high;               ///< what the levels inside add at least and at most
    bool keeps_column;                    ///< the levels inside stay in one column
  };

  void descend(std::size_t level, std::int64_t element, std::int64_t step) {
    if (level == levels_.size()) {
      ++walked_;
      touch(grid_, element, step, times_);
      return;
    }
    const Level& own = levels_[level];
    const std::int64_t end = std::min(grid_.elements, grid_.rows * grid_.width);  // of the shown rows
    for (std::int64_t value = 0; value < own.extent && walked_ <= most_steps; ++value) {
      if (++visited_ > most_visits) return;
      const std::int64_t at = element + value * own.stride;
      if (at + own.high < 0 || at + own.low >= end) {
        // From here on it only goes further away.
        if ((own.stride > 0 && at + own.low >= end) || (own.stride < 0 && at + own.high < 0)) return;
        continue;
      }
      if (own.keeps_column && at >= 0 && at % grid_.width >= grid_.columns) {
        // To the next row at once where single steps lead there.
        if (own.stride > 0 && own.stride < grid_.width)
          value += (grid_.width - at % grid_.width - 1) / own.stride;
        continue;
      }
      descend(level + 1, at, step + value * own.weight);
    }
  }

  TensorGrid& grid_;
  std::vector<Level> levels_;  ///< outermost first
  std::int64_t times_ = 1, walked_ = 0, visited_ = 0;
};

/// False when there were more steps than may be walked.
bool walk_all(TensorGrid& grid, const index::Context& context, index::Expression expression,
              const std::vector<index::AxisId>& axes, const std::vector<std::int64_t>& extents,
              std::int64_t steps) {
  std::map<index::AxisId, std::size_t> place;
  for (std::size_t k = 0; k < axes.size(); ++k) place[axes[k]] = k;
  std::vector<std::int64_t> point(axes.size(), 0);
  const auto value = [&](index::AxisId axis) {
    const auto at = place.find(axis);
    return at == place.end() ? std::int64_t{0} : point[at->second];
  };
  const std::function<std::int64_t(index::AxisId)> lookup = value;
  for (std::int64_t step = 0; step < std::min(steps, most_steps); ++step) {
    touch(grid, context.evaluate(expression, lookup), step, 1);
    for (std::size_t k = axes.size(); k-- > 0;) {
      if (++point[k] < extents[k]) break;
      point[k] = 0;
    }
  }
  return steps <= most_steps;
}

void finish(TensorGrid& grid) {
  for (const TensorGrid::Cell& cell : grid.cells) {
    if (cell.first < 0) continue;
    if (grid.touched == 0) {
      grid.first_step = grid.last_step = cell.first;
      grid.least_uses = grid.most_uses = cell.uses;
    }
    ++grid.touched;
    grid.first_step = std::min(grid.first_step, cell.first),
    grid.last_step = std::max(grid.last_step, cell.first);
    grid.least_uses = std::min(grid.least_uses, cell.uses),
    grid.most_uses = std::max(grid.most_uses, cell.uses);
  }
}

}  // namespace

TensorGrid empty_grid(const std::vector<std::int64_t>& dims) {
  TensorGrid grid;
  grid.dims = dims;
  grid.elements = 1;
  for (const std::int64_t dim : dims) grid.elements *= dim;
  const std::int64_t last = dims.empty() ? 1 : dims.back();
  grid.width = std::max<std::int64_t>(1, last);
  const bool flat = last == grid.elements;
  std::size_t merged = 1;  // axes that one row holds
  if (flat && last > most_columns) {
    grid.width = most_columns;
    grid.wrapped = true;
  } else {
    // Narrow rows are put side by side while the tensor would be taller than what is shown.
    for (std::size_t k = dims.size(); k-- > 1;) {
      const std::int64_t wider = grid.width * std::max<std::int64_t>(1, dims[k - 1]);
      if (grid.elements / grid.width <= 64 || wider > most_columns) break;
      grid.width = wider;
      grid.wrapped = dims[k - 1] > 1 || grid.wrapped;
      merged = dims.size() - k + 1;
    }
  }
  grid.height = grid.elements <= 0 ? 0 : (grid.elements + grid.width - 1) / grid.width;
  grid.columns = static_cast<int>(std::min<std::int64_t>(grid.width, most_columns));
  const std::int64_t most_rows = std::clamp<std::int64_t>(most_cells / std::max(1, grid.columns), 32, 64);
  grid.rows = static_cast<int>(std::min(grid.height, most_rows));
  if (!flat && dims.size() > merged + 1) {
    const std::int64_t outer = dims[dims.size() - merged - 1];
    if (outer > 1 && outer < grid.height)
      grid.group = static_cast<int>(std::min<std::int64_t>(outer, most_cells));
  }
  grid.cells.resize(static_cast<std::size_t>(grid.rows) * static_cast<std::size_t>(grid.columns));
  std::vector<std::string> parts;
  if (grid.rows < grid.height)
    parts.push_back(fmt::format("{} of {} rows", grid.rows, report::count_text(grid.height)));
  if (grid.columns < grid.width)
    parts.push_back(fmt::format("{} of {} columns", grid.columns, report::count_text(grid.width)));
  if (!parts.empty()) grid.caption = "first " + report::join(parts, ", ");
  return grid;
}

TensorGrid tensor_grid(const index::Context& context, index::Expression expression,
                       const std::vector<index::AxisId>& axes, const std::vector<std::int64_t>& dims,
                       const std::optional<std::vector<std::int64_t>>& strides, std::int64_t offset) {
  TensorGrid grid = empty_grid(dims);
  if (context.has_symbol(expression)) return grid;
  std::vector<std::int64_t> extents;
  std::int64_t steps = 1;
  for (const index::AxisId axis : axes) {
    extents.push_back(context.axis(axis).extent);
    steps *= extents.back();
  }
  if (steps <= 0 || grid.elements <= 0) return grid;
  const bool whole = strides && strides->size() == axes.size()
                         ? AffineWalk(grid, extents, *strides).walk(offset)
                         : walk_all(grid, context, expression, axes, extents, steps);
  if (!whole) grid.cut = fmt::format("not all of the {} steps were walked", report::count_text(steps));
  finish(grid);
  return grid;
}

}  // namespace pallascope::model
