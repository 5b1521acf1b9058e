#include "app/model/search.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "app/model/find_lines.h"
#include "core/report/decision.h"
#include "core/report/format.h"
#include "core/report/lookup.h"

namespace pallascope::model {
namespace {

// Not measured: chosen so that for `sum` the order is sum, sum_2, row_sum, checksum, s_u_m.
constexpr int letter_score = 16, beside_score = 20, word_score = 12, whole_score = 200, start_score = 8, gap_cost = 3;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::uint64_t bit(char c) {
  if (c >= 'a' && c <= 'z') return std::uint64_t{1} << (c - 'a');
  if (is_digit(c)) return std::uint64_t{1} << (26 + c - '0');
  return std::uint64_t{1} << (36 + static_cast<unsigned char>(c) % 28);
}

std::uint64_t letters_of(std::string_view lower_text) {
  std::uint64_t bits = 0;
  for (const char c : lower_text) bits |= bit(c);
  return bits;
}

bool starts_word(std::string_view text, std::size_t at) {
  if (at == 0) return true;
  const char before = text[at - 1], here = text[at];
  if (!is_letter(before) && !is_digit(before)) return true;
  return is_digit(here) && !is_digit(before);
}

int score_of(std::string_view text, const std::vector<std::uint32_t>& positions) {
  int score = 0;
  for (std::size_t k = 0; k < positions.size(); ++k) {
    score += letter_score;
    if (starts_word(text, positions[k])) score += word_score;
    if (k == 0) continue;
    const auto gap = static_cast<int>(positions[k] - positions[k - 1]) - 1;
    score += gap == 0 ? beside_score : -gap_cost * std::min(gap, 12);
  }
  if (!positions.empty() && positions.front() == 0) score += start_score;
  return score;
}

std::vector<std::uint32_t> run(std::size_t start, std::size_t count) {
  std::vector<std::uint32_t> positions(count);
  for (std::size_t k = 0; k < count; ++k) positions[k] = static_cast<std::uint32_t>(start + k);
  return positions;
}

/// Where the letters of `word` are in `text` (both lower case): side by side if they are anywhere, at the start of a
/// word before elsewhere; else the tightest place that ends where the first one found ends (as fzf's first algorithm
/// does: forward for an end, backward for the last start).
std::optional<std::vector<std::uint32_t>> match(std::string_view text, std::string_view word) {
  std::size_t first = text.find(word);
  if (first != std::string_view::npos) {
    for (std::size_t at = first; at != std::string_view::npos; at = text.find(word, at + 1)) {
      if (starts_word(text, at)) return run(at, word.size());
    }
    return run(first, word.size());
  }
  std::size_t at = 0;
  for (const char c : word) {
    at = text.find(c, at);
    if (at == std::string_view::npos) return std::nullopt;
    ++at;
  }
  std::vector<std::uint32_t> positions(word.size());
  for (std::size_t k = word.size(); k-- > 0;) {
    at = text.rfind(word[k], at - 1);
    positions[k] = static_cast<std::uint32_t>(at);
  }
  return positions;
}

std::vector<std::string> words(std::string_view query) {
  std::vector<std::string> found;
  const std::string text = model::lower(query);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) found.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return found;
}

struct Candidate {
  std::size_t item = 0;
  int score = 0;
};

}  // namespace

std::string_view search_kind_name(SearchKind kind) {
  constexpr std::array<std::string_view, 7> names{"node", "module", "kernel", "decision", "buffer", "line", "command"};
  return names.at(static_cast<std::size_t>(kind));
}

SearchIndex::SearchIndex(std::vector<SearchItem> items) : items_(std::move(items)) {
  lower_.reserve(items_.size());
  for (const SearchItem& item : items_) {
    lower_.push_back(model::lower(item.text));
    letters_.push_back(letters_of(lower_.back()));
  }
}

std::vector<SearchHit> SearchIndex::find(std::string_view query, std::size_t limit) const {
  const std::vector<std::string> wanted = words(query);
  std::uint64_t letters = 0;
  for (const std::string& word : wanted) letters |= letters_of(word);
  const std::string whole = wanted.size() == 1 ? wanted.front() : std::string();
  std::vector<Candidate> candidates;
  for (std::size_t k = 0; k < items_.size(); ++k) {
    if ((letters_[k] & letters) != letters) continue;
    int score = 0;
    bool all = true;
    for (const std::string& word : wanted) {
      const auto positions = match(lower_[k], word);
      all = all && positions.has_value();
      if (!all) break;
      score += score_of(lower_[k], *positions);
    }
    if (!all) continue;
    if (!whole.empty() && lower_[k].starts_with(whole) &&
        (lower_[k].size() == whole.size() || lower_[k][whole.size()] == ' '))
      score += whole_score;
    candidates.push_back({k, score});
  }
  const auto before = [&](const Candidate& a, const Candidate& b) {
    if (a.score != b.score) return a.score > b.score;
    if (!wanted.empty() && lower_[a.item].size() != lower_[b.item].size()) return lower_[a.item].size() < lower_[b.item].size();
    if (!wanted.empty() && items_[a.item].kind != items_[b.item].kind) return items_[a.item].kind < items_[b.item].kind;
    return a.item < b.item;
  };
  const std::size_t count = std::min(limit, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count), candidates.end(), before);
  std::vector<SearchHit> hits;
  for (std::size_t k = 0; k < count; ++k) {
    SearchHit hit{candidates[k].item, candidates[k].score, {}};
    std::set<std::uint32_t> positions;
    for (const std::string& word : wanted) {
      const auto found = match(lower_[hit.item], word);
      if (found) positions.insert(found->begin(), found->end());
    }
    hit.positions.assign(positions.begin(), positions.end());
    hits.push_back(std::move(hit));
  }
  return hits;
}

std::vector<SearchItem> search_items(const session::Compilation& compilation, const session::Snapshot& snapshot,
                                     const std::vector<std::string>& commands) {
  const trace::Graph& graph = compilation.graph();
  std::vector<SearchItem> items;
  std::set<std::string> groups;
  std::map<std::pair<std::string, int>, std::pair<trace::NodeId, const trace::Frame*>> lines;
  for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
    const trace::NodeId id(k);
    const trace::Node& node = graph.nodes[id];
    items.push_back({SearchKind::node, fmt::format("{}  {}  {}", node.name, report::id_text(id), node.target),
                     report::outputs_text(graph, node), id});
    std::string path = node.module_path;
    while (!path.empty() && groups.insert(path).second) {
      const std::size_t dot = path.rfind('.');
      path.resize(dot == std::string::npos ? 0 : dot);
    }
    if (const trace::Frame* frame = node.user_frame()) lines.emplace(std::pair(frame->file, frame->line), std::pair(id, frame));
  }
  for (const std::string& path : groups) items.push_back({SearchKind::group, path, "module", GroupRef{path}});
  for (const schedule::KernelId id : report::kernels_in_order(snapshot)) {
    items.push_back({SearchKind::kernel, fmt::format("{}  {}", report::id_text(id), report::kernel_name(snapshot, id)),
                     report::plural(static_cast<std::int64_t>(snapshot.state.kernels[id].nests.size()), "nest"), id});
  }
  for (const schedule::Decision& decision : compilation.decisions()) {
    items.push_back({SearchKind::decision,
                     fmt::format("{}  {}  {}", report::id_text(decision.id), report::subject_text(compilation, decision),
                                 report::spaced(schedule::reason_name(decision.reason))),
                     decision.accepted ? "accepted" : "refused", decision.id});
  }
  for (const loop::BufferId id : report::buffers_of(compilation, snapshot)) {
    const loop::Buffer& buffer = snapshot.program->buffers[id];
    items.push_back({SearchKind::buffer, fmt::format("{}  {}", buffer.name, report::id_text(id)),
                     report::shape_text(buffer.dtype, buffer.dims), id});
  }
  for (const auto& [place, line] : lines) {
    const auto& [node, frame] = line;
    const std::size_t slash = frame->file.find_last_of('/');
    items.push_back({SearchKind::line,
                     fmt::format("{}:{}  {}", slash == std::string::npos ? frame->file : frame->file.substr(slash + 1),
                                 frame->line, frame->code),
                     frame->function, node});
  }
  for (const std::string& command : commands) items.push_back({SearchKind::command, command, "command", {}});
  return items;
}

}  // namespace pallascope::model
