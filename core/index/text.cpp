// Expressions as Python text, and two of them side by side.
#include <algorithm>

#include "core/index/access.h"
#include "core/index/context_impl.h"
#include "core/index/expression.h"

namespace pallascope::index {
namespace {

std::string term_text(const Context& context, const Term& term);

/// Whether the text binds tighter than `*`, `//` and `%` (which Python reads from left to right).
bool is_name(TermKind kind) { return kind == TermKind::axis || kind == TermKind::symbol; }

std::string operand_text(const Context& context, Expression operand) {
  const Sum& sum = context.sum(operand);
  const Term* term = single_term(sum);
  const std::string text = context.to_string(operand);
  return term != nullptr && is_name(term->kind) ? text : "(" + text + ")";
}

std::string term_text(const Context& context, const Term& term) {
  switch (term.kind) {
    case TermKind::axis:
      return context.axis(term.axis).name;
    case TermKind::symbol:
      return context.symbol(term.symbol).name;
    case TermKind::floor_div:
      return operand_text(context, term.operand) + "//" + std::to_string(term.divisor);
    case TermKind::mod:
      return operand_text(context, term.operand) + " % " + std::to_string(term.divisor);
  }
  return {};
}

}  // namespace

std::string Context::to_string(Expression e) const {
  const Sum& content = sum(e);
  if (content.terms.empty()) return std::to_string(content.constant);
  std::string text;
  // `7 - i` reads better than `-i + 7`.
  const bool constant_first = content.constant > 0 && content.terms.front().second < 0;
  if (constant_first) text = std::to_string(content.constant);
  for (const auto& [term, coefficient] : content.terms) {
    const bool leading = text.empty();
    if (leading) {
      text += coefficient < 0 ? "-" : "";
    } else {
      text += coefficient < 0 ? " - " : " + ";
    }
    std::string part = term_text(*this, term);
    const std::string factor = std::to_string(coefficient);
    const std::string size = coefficient < 0 ? factor.substr(1) : factor;
    // `4*i//2` would be (4*i)//2, and `-i//2` would be (-i)//2.
    const bool alone = size == "1" && !(leading && coefficient < 0);
    if (!is_name(term.kind) && !alone) part = "(" + part + ")";
    text += size == "1" ? part : size + "*" + part;
  }
  if (content.constant != 0 && !constant_first) {
    const std::string number = std::to_string(content.constant);
    text += content.constant < 0 ? " - " + number.substr(1) : " + " + number;
  }
  return text;
}

std::vector<AlignedTerm> align(const Context& context, Expression left, Expression right) {
  const Sum& a = context.sum(left);
  const Sum& b = context.sum(right);
  std::vector<AlignedTerm> rows;
  std::size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    const bool take_left =
        j == b.terms.size() || (i < a.terms.size() && a.terms[i].first <= b.terms[j].first);
    const bool take_right =
        i == a.terms.size() || (j < b.terms.size() && b.terms[j].first <= a.terms[i].first);
    AlignedTerm row;
    row.term = term_text(context, take_left ? a.terms[i].first : b.terms[j].first);
    if (take_left) row.left = std::to_string(a.terms[i++].second);
    if (take_right) row.right = std::to_string(b.terms[j++].second);
    rows.push_back(std::move(row));
  }
  if (a.constant != 0 || b.constant != 0) {
    rows.push_back({"1", a.constant != 0 ? std::to_string(a.constant) : "",
                    b.constant != 0 ? std::to_string(b.constant) : ""});
  }
  return rows;
}

}  // namespace pallascope::index
