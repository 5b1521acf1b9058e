// Room: model. The first look at a program, as rows with links.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "app/model/selection.h"
#include "core/session/compilation.h"

namespace pallascope::model {

/// A figure with its label: `91`, `nodes`.
struct SummaryFigure {
  std::string count, noun;
};
/// A missed fusion.
struct SummaryMissed {
  schedule::DecisionId id;
  std::string name, subject, bytes, reason;  ///< `d63`, `add × add_1`, `8 KiB`, `cycle`
};
struct SummaryClass {
  char letter = ' ';
  std::string name;  ///< `contiguous`
  std::size_t count = 0;
  float share = 0;  ///< of all accesses, 0 to 1
};
/// An access that hardware serves badly.
struct SummaryWaste {
  AccessRef access;
  char letter = ' ';
  std::string where;          ///< `b12 in k3`
  std::string words;          ///< `strided by 64`
  std::string used, spanned;  ///< `128 B`, `8 KiB`
  float share = 1;            ///< of the bytes spanned that are used, 0 to 1
};
struct SummaryOperator {
  std::string name, count, why;  ///< `aten.addmm.default`, `× 4`; why PyTorch runs it
  bool torch = false;
};
/// An input that is copied before the kernels see it.
struct SummaryCopy {
  std::string input, shape, bytes;
};

/// What the Summary panel shows. Lists hold the first rows, at most `most_rows`; their counts are of all.
struct SummaryView {
  static constexpr std::size_t most_rows = 40;
  std::string title;
  std::string path;   ///< where it came from; may be empty
  std::string graph;  ///< `graph 1 of 3: forward`; empty for a program of one
  /// nodes, nests, kernels, library calls, torch calls: in this order, always five.
  std::vector<SummaryFigure> figures;
  std::vector<SummaryMissed> missed;
  std::size_t missed_count = 0;
  std::string missed_total;  ///< `3 · 24 KiB`; empty without any
  std::string boundaries;    ///< `8 at library and torch calls, 64 KiB`; empty without any
  std::vector<SummaryClass> classes;
  std::size_t accesses = 0;  ///< of all classes
  std::vector<SummaryWaste> wasteful;
  std::size_t wasteful_count = 0;
  std::vector<SummaryOperator> operators;  ///< torch's first: they are what is not lowered
  std::vector<SummaryCopy> copies;
  std::size_t copies_count = 0;
  std::string bytes_moved;       ///< `1.5 MiB`
  std::string decisions;         ///< `70: 31 lowered, 4 of 10 producers inlined, 20 of 29 fusions accepted`
  std::string time, time_parts;  ///< `5.1 ms`; `functional 0.4, lower 1.2, ...`
};

SummaryView summary_view(const session::Compilation& compilation, const session::Snapshot& snapshot);

}  // namespace pallascope::model
