// Room: report. One decision and lists of them: the line, the explanation, the JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/report/json.h"
#include "core/schedule/decision.h"
#include "core/session/compilation.h"

namespace pallascope::report {

/// What a decision is about, in a few words: `sum_2 × div_5`, `exp → sum_2, div_5`, `view_3`. A side that has become
/// a group is called by its node that shares the buffer, with the number of the others: `sum_2 (+3)`.
std::string subject_text(const session::Compilation& compilation, const schedule::Decision& decision);
/// `accepted` or `refused`, with the reason: `refused: common grid`.
std::string verdict_text(const schedule::Decision& decision);

/// The cells of its row in a list: id, ✓ or ✗, kind, subject, bytes saved, reason.
std::vector<std::string> decision_cells(const session::Compilation& compilation,
                                        const schedule::Decision& decision);

/// The whole explanation, several lines: verdict, reason in words, conditions, index expressions term by term, bytes,
/// working set against budget, the cycle, and what would make it legal.
/// `sides_too`: with a table of the nodes on each side; without it where the page names them already.
std::string decision_text(const session::Compilation& compilation, const schedule::Decision& decision,
                          bool sides_too = true);
/// The same as data. Keys: id, kind, accepted, reason, words, subject, left, right, occurrence, conditions, indices,
/// axis, bytes_saved, working_set, working_set_tile, budget, tile_axes, path, legal_if, note.
Json decision_json(const session::Compilation& compilation, const schedule::Decision& decision);

/// A row of it, for lists, whose length a group of many nodes must not multiply. Keys: id, kind, accepted, reason,
/// subject, bytes_saved.
Json decision_row_json(const session::Compilation& compilation, const schedule::Decision& decision);

/// The smallest change that would make a refused fusion legal or worth it; empty when the log does not say.
std::string legal_if_text(const session::Compilation& compilation, const schedule::Decision& decision);

/// Refused fusions among the first `count` decisions that would have saved bytes and whose sides are not in one
/// kernel of `state` by another way, the most bytes first.
std::vector<schedule::DecisionId> missed_fusions(const session::Compilation& compilation,
                                                 const session::Snapshot& snapshot);

/// Reasons with how often each was given among the first `count` decisions, the most frequent first.
struct ReasonCount {
  schedule::DecisionKind kind = schedule::DecisionKind::lower;
  schedule::Reason reason = schedule::Reason::lowered_to_kernel;
  bool accepted = false;
  std::size_t count = 0;
  std::int64_t bytes_saved = 0;
};
std::vector<ReasonCount> count_reasons(const session::Compilation& compilation, std::size_t count);

}  // namespace pallascope::report
