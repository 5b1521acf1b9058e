#include "core/codegen/indexing.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/base/diagnostic.h"

namespace pallascope::codegen {
namespace {

bool identity(const std::vector<int>& permutation) {
  for (std::size_t k = 0; k < permutation.size(); ++k)
    if (permutation[k] != static_cast<int>(k)) return false;
  return true;
}

/// Puts a call around the text: `jnp.transpose(` before, the rest after.
void wrap(std::string& text, std::string_view before, std::string_view after) {
  text.insert(0, before);
  text += after;
}

void append_list(std::string& text, const std::vector<int>& list) {
  for (std::size_t k = 0; k < list.size(); ++k) {
    if (k > 0) text += ", ";
    text += std::to_string(list[k]);
  }
}

void transpose(std::string& text, const std::vector<int>& permutation) {
  if (permutation.size() == 2) {
    text += ".T";
    return;
  }
  wrap(text, "jnp.transpose(", ", (");
  append_list(text, permutation);
  text += "))";
}

/// The dimensions that run backwards.
std::vector<int> reversed_dimensions(const std::vector<index::Slice>& slices) {
  std::vector<int> found;
  for (std::size_t d = 0; d < slices.size(); ++d)
    if (slices[d].step < 0 && slices[d].count > 1) found.push_back(static_cast<int>(d));
  return found;
}

void flip(std::string& text, const std::vector<int>& dimensions) {
  wrap(text, "jnp.flip(", ", (");
  append_list(text, dimensions);
  text += ",))";
}

void append_tuple(std::string& text, const Shape& shape) {
  text += '(';
  for (std::size_t k = 0; k < shape.size(); ++k) {
    if (k > 0) text += ", ";
    const fmt::format_int number(shape[k]);
    text.append(number.data(), number.size());
  }
  text += shape.size() == 1 ? ",)" : ")";
}

void reshape(std::string& text, const Shape& to) {
  wrap(text, "jnp.reshape(", ", ");
  append_tuple(text, to);
  text += ')';
}

/// subscript_text, at the end of `text`.
void append_subscript(std::string& text, const Shape& view_shape, const std::vector<index::Slice>& slices) {
  const std::size_t start = text.size();
  text += '[';
  bool whole = true;
  for (std::size_t d = 0; d < slices.size(); ++d) {
    if (d > 0) text += ", ";
    index::Slice s = slices[d];
    if (s.count == 1) s.step = 1;
    const std::int64_t last = s.start + s.step * (s.count - 1);
    // A reversed dimension is read forwards and flipped afterwards: refs take no negative step.
    const std::int64_t low = std::min(s.start, last), high = std::max(s.start, last) + 1, step = std::abs(s.step);
    if (low == 0 && step == 1 && high == view_shape[d]) {
      text += ':';
      continue;
    }
    whole = false;
    // `::2` reads better than `0:15:2`, where the elements left over at the end are fewer than a step.
    if (low != 0) text += std::to_string(low);
    text += ':';
    if (high != view_shape[d] && (step == 1 || high + step <= view_shape[d])) text += std::to_string(high);
    if (step != 1) text += ":" + std::to_string(step);
  }
  if (whole) text.replace(start, std::string::npos, "[...");
  text += ']';
}

Shape counts(const std::vector<index::Slice>& slices) {
  Shape shape;
  for (const index::Slice& s : slices) shape.push_back(s.count);
  return shape;
}

}  // namespace

std::string tuple_text(const Shape& shape) {
  std::string text;
  append_tuple(text, shape);
  return text;
}

std::string subscript_text(const Shape& view_shape, const std::vector<index::Slice>& slices) {
  std::string text;
  append_subscript(text, view_shape, slices);
  return text;
}

std::string read_text(const std::string& name, bool is_ref, const Shape& shape, const index::Plan& plan) {
  std::string text = name;
  const bool slices = !plan.slices_nothing();
  if (is_ref && shape == plan.view_shape) {
    append_subscript(text, plan.view_shape, plan.slices);
  } else {
    if (is_ref) text += "[...]";
    if (!slices && identity(plan.permutation)) {
      // A reshape after a reshape is one reshape.
      if (shape != plan.result_shape) reshape(text, plan.result_shape);
      return text;
    }
    if (shape != plan.view_shape) reshape(text, plan.view_shape);
    if (slices) append_subscript(text, plan.view_shape, plan.slices);
  }
  if (const std::vector<int> flipped = reversed_dimensions(plan.slices); !flipped.empty()) flip(text, flipped);
  Shape now = counts(plan.slices);
  if (!identity(plan.permutation)) {
    transpose(text, plan.permutation);
    Shape permuted;
    for (int d : plan.permutation) permuted.push_back(now[static_cast<std::size_t>(d)]);
    now = std::move(permuted);
  }
  if (now != plan.result_shape) reshape(text, plan.result_shape);
  return text;
}

std::string write_text(const std::string& name, const std::string& value, const index::Plan& plan) {
  std::string text = value;
  Shape permuted;
  for (int d : plan.permutation) permuted.push_back(plan.slices[static_cast<std::size_t>(d)].count);
  if (plan.result_shape != permuted) reshape(text, permuted);
  if (!identity(plan.permutation)) {
    std::vector<int> inverse(plan.permutation.size());
    for (std::size_t k = 0; k < inverse.size(); ++k) inverse[static_cast<std::size_t>(plan.permutation[k])] = static_cast<int>(k);
    transpose(text, inverse);
  }
  if (const std::vector<int> flipped = reversed_dimensions(plan.slices); !flipped.empty()) flip(text, flipped);
  std::string made = name;
  append_subscript(made, plan.view_shape, plan.slices);
  made += " = ";
  return made += text;
}

}  // namespace pallascope::codegen
