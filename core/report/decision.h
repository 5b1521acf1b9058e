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
/// The two sides of a fusion by the names that speak for them, without the number of the others: `sum_2` and `div_5`.
struct SideNames {
  std::string left, right;  ///< of a fusion that shares no buffer with the other side's nests, all names
};
SideNames side_names(const session::Compilation& compilation, const schedule::Decision& decision);
/// `✓`, `✗`, `–` (not reached).
std::string_view sign_of(schedule::ConditionState state);
/// What the evidence says of one condition, beside its sign: the path of a cycle, the axis that is in the way, bytes
/// against the budget, the calls; empty where it says no more than the sign.
std::string condition_text(const session::Compilation& compilation, const schedule::Decision& decision,
                           schedule::Condition condition);
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

/// Whether a refusal stands at a library or torch call: it explains itself, and nobody can do anything about it.
bool is_boundary(schedule::Reason reason);

/// Refused fusions among the snapshot's decisions that would have saved bytes and whose sides are not in one kernel by
/// another way, the most bytes first. Two kernels (or a kernel and a call) that were refused again as they grew have
/// missed one fusion: of their refusals the one with the most bytes, the earliest of those.
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
