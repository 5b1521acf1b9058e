// Room: report. Two index expressions of different loop nests, term by term.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/index/expression.h"
#include "core/schedule/decision.h"

namespace pallascope::report {

/// One row: a term of either side, or of both when they correspond.
struct TermPair {
  std::string term;         ///< `i0`, `i1 / r1` for axes of other names that correspond, `(3*i + j)//4`, `1`
  std::string left, right;  ///< coefficients; empty where the side lacks the term
  bool same = false;        ///< both sides have it, with one coefficient and one extent
  /// How far the axis of either side runs; nothing where the side lacks it or the term is no axis.
  std::optional<std::int64_t> left_extent, right_extent;
};

/// Each nest has axes of its own, so no term is shared by identity. Axes correspond when they step through the buffer
/// by the same stride over the same extent; those that are left correspond in their order. Other terms correspond when
/// they read the same with the right side's axes called by their partners' names.
///
/// Worked example, `exp` writes 16*i0 + i1 (i0 < 4, i1 < 16), `sum` reads 16*i0 + 2*r1 (i0 < 4, r1 < 8):
/// i0 pairs with i0 (16, 16, same); i1 with r1 (1, 2, not the same).
std::vector<TermPair> aligned_terms(const index::Context& context, index::Expression left, const std::vector<index::AxisId>& left_axes,
                                    index::Expression right, const std::vector<index::AxisId>& right_axes);
std::vector<TermPair> aligned_terms(const loop::Program& program, const schedule::IndexPair& pair);
/// The axes of a nest; none for one that the program does not have.
const std::vector<index::AxisId>& axes_of(const loop::Program& program, loop::NestId nest);

}  // namespace pallascope::report
