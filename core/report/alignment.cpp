#include "core/report/alignment.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "core/index/access.h"

namespace pallascope::report {
namespace {

/// A term of one side: an axis of its nest, or anything else.
struct SideTerm {
  std::string term, coefficient;
  std::optional<std::int64_t> extent;  ///< of an axis
};

std::vector<SideTerm> side_terms(const index::Context& context, index::Expression expression,
                                 const std::vector<index::AxisId>& axes) {
  std::vector<SideTerm> terms;
  for (const index::AlignedTerm& row : index::align(context, expression, expression)) {
    SideTerm term{row.term, row.left, std::nullopt};
    for (const index::AxisId axis : axes) {
      if (context.axis(axis).name == row.term) term.extent = context.axis(axis).extent;
    }
    terms.push_back(std::move(term));
  }
  return terms;
}

bool word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// `text` with whole words replaced.
std::string renamed(const std::string& text, const std::map<std::string, std::string>& names) {
  std::string result;
  for (std::size_t k = 0; k < text.size();) {
    if (!word_character(text[k])) {
      result += text[k++];
      continue;
    }
    std::size_t end = k;
    while (end < text.size() && word_character(text[end])) ++end;
    const std::string word = text.substr(k, end - k);
    const auto at = names.find(word);
    result += at == names.end() ? word : at->second;
    k = end;
  }
  return result;
}

}  // namespace

const std::vector<index::AxisId>& axes_of(const loop::Program& program, loop::NestId nest) {
  static const std::vector<index::AxisId> none;
  return program.nests.contains(nest) ? program.nests[nest].axes : none;
}

std::vector<TermPair> aligned_terms(const loop::Program& program, const schedule::IndexPair& pair) {
  return aligned_terms(*program.context, pair.left, axes_of(program, pair.left_nest), pair.right, axes_of(program, pair.right_nest));
}

std::vector<TermPair> aligned_terms(const index::Context& context, index::Expression left_index, const std::vector<index::AxisId>& left_axes,
                                    index::Expression right_index, const std::vector<index::AxisId>& right_axes) {
  const std::vector<SideTerm> left = side_terms(context, left_index, left_axes);
  const std::vector<SideTerm> right = side_terms(context, right_index, right_axes);
  std::vector<std::optional<std::size_t>> partner(left.size());
  std::vector<bool> taken(right.size(), false);
  const auto match = [&](auto fits) {
    for (std::size_t i = 0; i < left.size(); ++i) {
      for (std::size_t j = 0; j < right.size() && !partner[i]; ++j) {
        if (taken[j] || !fits(left[i], right[j])) continue;
        partner[i] = j;
        taken[j] = true;
      }
    }
  };
  const auto axes = [](const SideTerm& a, const SideTerm& b) { return a.extent && b.extent; };
  match([&](const SideTerm& a, const SideTerm& b) {
    return axes(a, b) && a.coefficient == b.coefficient && a.extent == b.extent;
  });
  match(axes);
  std::map<std::string, std::string> names;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (partner[i]) names[right[*partner[i]].term] = left[i].term;
  }
  match([&](const SideTerm& a, const SideTerm& b) {
    return !a.extent && !b.extent && a.term == renamed(b.term, names);
  });

  std::vector<TermPair> rows;
  for (std::size_t i = 0; i < left.size(); ++i) {
    TermPair row{left[i].term, left[i].coefficient, "", false, left[i].extent, std::nullopt};
    if (partner[i]) {
      const SideTerm& other = right[*partner[i]];
      if (other.term != left[i].term) row.term += " / " + other.term;
      row.right = other.coefficient;
      row.right_extent = other.extent;
      row.same = left[i].coefficient == other.coefficient && left[i].extent == other.extent;
    }
    rows.push_back(std::move(row));
  }
  for (std::size_t j = 0; j < right.size(); ++j) {
    if (!taken[j]) rows.push_back({right[j].term, "", right[j].coefficient, false, std::nullopt, right[j].extent});
  }
  return rows;
}

}  // namespace pallascope::report
