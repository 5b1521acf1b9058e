#include "app/model/decision_rows.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "app/model/find_lines.h"
#include "core/report/decision.h"
#include "core/report/format.h"

namespace pallascope::model {
namespace {

constexpr std::uint32_t hidden = std::numeric_limits<std::uint32_t>::max();

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found;
  const std::string lower = model::lower(text);
  for (std::size_t at = 0; at < lower.size();) {
    const std::size_t end = std::min(lower.find(' ', at), lower.size());
    if (end > at) found.push_back(lower.substr(at, end - at));
    at = end + 1;
  }
  return found;
}

/// `a, b, c, d` -> `a (+3)`: a list that would push everything else out of a row.
std::string shortened(const std::string& names) {
  const std::size_t first = names.find(", ");
  if (first == std::string::npos) return names;
  std::size_t more = 0;
  for (std::size_t at = first; at != std::string::npos; at = names.find(", ", at + 2)) ++more;
  return more == 1 ? names : fmt::format("{} (+{})", names.substr(0, first), more);
}

void add_sides(DecisionRow& row, const std::string& subject) {
  const std::string separator = fmt::format(" {} ", row.sign());
  const std::size_t at = row.sign().empty() ? std::string::npos : subject.find(separator);
  row.left = shortened(subject.substr(0, at));
  if (at != std::string::npos) row.right = shortened(subject.substr(at + separator.size()));
}

}  // namespace

Notability notability(const schedule::Decision& decision) {
  switch (decision.kind) {
    case schedule::DecisionKind::lower:
      return decision.accepted ? Notability::small : Notability::refused;
    case schedule::DecisionKind::inline_producer:
      return decision.accepted ? Notability::accepted : Notability::small;
    case schedule::DecisionKind::fuse:
      return decision.accepted ? Notability::accepted : Notability::refused;
  }
  return Notability::small;
}

std::string_view DecisionRow::sign() const {
  switch (kind) {
    case schedule::DecisionKind::lower:
      return "";
    case schedule::DecisionKind::inline_producer:
      return "→";
    case schedule::DecisionKind::fuse:
      return "×";
  }
  return "";
}

std::string DecisionRow::reason_text() const { return report::spaced(schedule::reason_name(reason)); }

std::string DecisionRow::subject() const {
  return right.empty() ? left : fmt::format("{} {} {}", left, sign(), right);
}

DecisionIndex::DecisionIndex(std::shared_ptr<const session::Compilation> compilation)
    : compilation_(std::move(compilation)) {
  rows_.reserve(compilation_->decisions().size());
  for (const schedule::Decision& decision : compilation_->decisions()) {
    DecisionRow row;
    row.id = decision.id;
    row.kind = decision.kind;
    row.reason = decision.reason;
    row.accepted = decision.accepted;
    row.notability = model::notability(decision);
    row.boundary = report::is_boundary(decision.reason);
    row.bytes_saved = decision.evidence.bytes_saved;
    add_sides(row, report::subject_text(*compilation_, decision));
    rows_.push_back(std::move(row));
  }
  for (const schedule::DecisionId id : report::missed_fusions(*compilation_, *compilation_->last()))
    rows_[id.index()].missed = !rows_[id.index()].boundary;
  finish();
}

DecisionIndex::DecisionIndex(std::vector<DecisionRow> rows) : rows_(std::move(rows)) { finish(); }

void DecisionIndex::finish() {
  starts_.reserve(rows_.size() + 1);
  for (std::size_t k = 0; k < rows_.size(); ++k) {
    const DecisionRow& row = rows_[k];
    PALLASCOPE_CHECK(row.id.valid() && row.id.index() == k, "rows stand in the order of their numbers");
    starts_.push_back(text_.size());
    text_ +=
        lower(fmt::format("{} {} {} {} {} {} {}\n", report::id_text(row.id),
                               schedule::kind_name(row.kind), row.accepted ? "accepted" : "refused", row.left,
                               row.sign(), row.right, report::spaced(schedule::reason_name(row.reason))));
  }
  starts_.push_back(text_.size());
  by_missed_.resize(rows_.size());
  for (std::size_t k = 0; k < rows_.size(); ++k) by_missed_[k] = static_cast<std::uint32_t>(k);
  const auto rank = [this](std::uint32_t k) {
    const DecisionRow& row = rows_[k];
    const int group = row.missed ? 0 : row.boundary ? 1 : 4 - static_cast<int>(row.notability);
    return std::tuple(group, -row.bytes_saved, k);
  };
  std::sort(by_missed_.begin(), by_missed_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return rank(a) < rank(b); });
  for (const DecisionRow& row : rows_) {
    if (passes_.empty() || passes_.back().kind != row.kind)
      passes_.push_back({row.kind, row.id.index(), row.id.index()});
    passes_.back().last = row.id.index();
    const auto same = [&](const ReasonRows& r) {
      return r.reason == row.reason && r.kind == row.kind && r.accepted == row.accepted;
    };
    auto at = std::find_if(reasons_.begin(), reasons_.end(), same);
    if (at == reasons_.end()) at = reasons_.insert(at, {row.reason, row.kind, row.accepted, 0});
    ++at->count;
  }
  std::sort(reasons_.begin(), reasons_.end(), [](const ReasonRows& a, const ReasonRows& b) {
    return std::tuple(a.kind, a.accepted, b.count, a.reason) <
           std::tuple(b.kind, b.accepted, a.count, b.reason);
  });
}

bool DecisionIndex::names(schedule::DecisionId id, trace::NodeId node) const {
  if (!compilation_) return false;
  const schedule::Decision& decision = compilation_->decisions().at(id.index());
  const auto in = [&](const std::vector<trace::NodeId>& side) {
    return std::find(side.begin(), side.end(), node) != side.end();
  };
  return in(decision.left) || in(decision.right);
}

std::vector<bool> DecisionIndex::matches(std::string_view text) const {
  std::vector<bool> all(rows_.size(), true);
  for (const std::string& word : words(text)) {
    std::vector<bool> found(rows_.size(), false);
    std::size_t row = 0;
    for (std::size_t at = text_.find(word); at != std::string::npos;
         at = text_.find(word, starts_[row + 1])) {
      row = static_cast<std::size_t>(
          std::upper_bound(starts_.begin() + static_cast<std::ptrdiff_t>(row), starts_.end(), at) -
          starts_.begin() - 1);
      found[row] = true;
      if (row + 1 >= rows_.size()) break;
    }
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = all[k] && found[k];
  }
  return all;
}

bool DecisionIndex::matches(schedule::DecisionId id, std::string_view lower_case_word) const {
  const std::size_t start = starts_.at(id.index()), end = starts_.at(id.index() + 1);
  return std::string_view(text_).substr(start, end - start).find(lower_case_word) != std::string_view::npos;
}

DecisionList::DecisionList(std::shared_ptr<const DecisionIndex> index, DecisionFilter filter)
    : index_(std::move(index)) {
  filter_ = filter;
  filter_.text += ' ';  // differs from what is asked for, so that it is made
  set_filter(std::move(filter));
}

void DecisionList::set_filter(DecisionFilter filter) {
  if (filter == filter_) return;
  DecisionFilter grown = filter;
  grown.text = filter_.text;
  const bool narrower = !position_of_.empty() && grown == filter_ && filter.text.starts_with(filter_.text);
  filter_ = std::move(filter);
  const std::vector<std::string> wanted = words(filter_.text);
  std::vector<std::uint32_t> kept;
  if (narrower) {
    for (const std::uint32_t k : shown_) {
      const auto holds = [&](const std::string& word) {
        return index_->matches(schedule::DecisionId(std::size_t{k}), word);
      };
      if (std::all_of(wanted.begin(), wanted.end(), holds)) kept.push_back(k);
    }
  } else {
    const std::vector<bool> text = index_->matches(filter_.text);
    const bool small = filter_.small || filter_.kind || filter_.reason || filter_.node;
    for (std::size_t place = 0; place < index_->size(); ++place) {
      const std::uint32_t k = filter_.order == DecisionOrder::number ? static_cast<std::uint32_t>(place)
                                                                     : index_->by_missed()[place];
      const DecisionRow& row = index_->rows()[k];
      if (!text[k] || (!small && row.notability == Notability::small)) continue;
      if ((filter_.kind && row.kind != *filter_.kind) || (filter_.reason && row.reason != *filter_.reason) ||
          (filter_.accepted && row.accepted != *filter_.accepted))
        continue;
      if (filter_.node && !index_->names(row.id, *filter_.node)) continue;
      kept.push_back(k);
    }
  }
  shown_ = std::move(kept);
  position_of_.assign(index_->size(), hidden);
  for (std::size_t place = 0; place < shown_.size(); ++place)
    position_of_[shown_[place]] = static_cast<std::uint32_t>(place);
}

std::size_t DecisionList::rows_before(std::size_t position) const {
  return static_cast<std::size_t>(std::lower_bound(shown_.begin(), shown_.end(), position) - shown_.begin());
}

std::optional<std::size_t> DecisionList::position(schedule::DecisionId id) const {
  if (!id.valid() || id.index() >= position_of_.size() || position_of_[id.index()] == hidden)
    return std::nullopt;
  return position_of_[id.index()];
}

std::optional<schedule::DecisionId> DecisionList::nearest(schedule::DecisionId id) const {
  if (shown_.empty()) return std::nullopt;
  for (std::size_t k = id.valid() ? id.index() : 0; k < position_of_.size(); ++k) {
    if (position_of_[k] != hidden) return schedule::DecisionId(k);
  }
  return schedule::DecisionId(std::size_t{*std::max_element(shown_.begin(), shown_.end())});
}

}  // namespace pallascope::model
