#include "core/codegen/indexing.h"

#include <algorithm>

#include <fmt/compile.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/diagnostic.h"

namespace pallascope::codegen {
namespace {

bool identity(const std::vector<int>& permutation) {
  for (std::size_t k = 0; k < permutation.size(); ++k)
    if (permutation[k] != static_cast<int>(k)) return false;
  return true;
}

std::string transpose_text(const std::string& value, const std::vector<int>& permutation) {
  if (permutation.size() == 2) return value + ".T";
  return fmt::format(FMT_COMPILE("jnp.transpose({}, ({}))"), value, fmt::join(permutation, ", "));
}

/// The dimensions that run backwards.
std::vector<int> reversed_dimensions(const std::vector<index::Slice>& slices) {
  std::vector<int> found;
  for (std::size_t d = 0; d < slices.size(); ++d)
    if (slices[d].step < 0 && slices[d].count > 1) found.push_back(static_cast<int>(d));
  return found;
}

std::string flip_text(const std::string& value, const std::vector<int>& dimensions) {
  return fmt::format(FMT_COMPILE("jnp.flip({}, ({},))"), value, fmt::join(dimensions, ", "));
}

Shape counts(const std::vector<index::Slice>& slices) {
  Shape shape;
  for (const index::Slice& s : slices) shape.push_back(s.count);
  return shape;
}

}  // namespace

std::string tuple_text(const Shape& shape) {
  // Written by hand: a module holds hundreds of these.
  std::string text = "(";
  for (std::size_t k = 0; k < shape.size(); ++k) {
    if (k > 0) text += ", ";
    text += std::to_string(shape[k]);
  }
  return text += shape.size() == 1 ? ",)" : ")";
}

std::string subscript_text(const Shape& view_shape, const std::vector<index::Slice>& slices) {
  std::vector<std::string> parts;
  bool whole = true;
  for (std::size_t d = 0; d < slices.size(); ++d) {
    index::Slice s = slices[d];
    if (s.count == 1) s.step = 1;
    const std::int64_t last = s.start + s.step * (s.count - 1);
    // A reversed dimension is read forwards and flipped afterwards: refs take no negative step.
    const std::int64_t low = std::min(s.start, last), high = std::max(s.start, last) + 1, step = std::abs(s.step);
    if (low == 0 && step == 1 && high == view_shape[d]) {
      parts.emplace_back(":");
      continue;
    }
    whole = false;
    // `::2` reads better than `0:15:2`, where the elements left over at the end are fewer than a step.
    const std::string from = low == 0 ? "" : fmt::format(FMT_COMPILE("{}"), low);
    const std::string to = high == view_shape[d] || (step > 1 && high + step > view_shape[d]) ? "" : fmt::format(FMT_COMPILE("{}"), high);
    parts.push_back(step == 1 ? fmt::format(FMT_COMPILE("{}:{}"), from, to) : fmt::format(FMT_COMPILE("{}:{}:{}"), from, to, step));
  }
  if (whole) return "[...]";
  return fmt::format(FMT_COMPILE("[{}]"), fmt::join(parts, ", "));
}

std::string read_text(const std::string& name, bool is_ref, const Shape& shape, const index::Plan& plan) {
  std::string text = name;
  Shape now = shape;
  const auto reshape = [&](const Shape& to) {
    if (now == to) return;
    text = fmt::format(FMT_COMPILE("jnp.reshape({}, {})"), text, tuple_text(to));
    now = to;
  };
  if (is_ref && now == plan.view_shape) {
    text += subscript_text(plan.view_shape, plan.slices);
  } else {
    if (is_ref) text += "[...]";
    if (plan.slices_nothing() && identity(plan.permutation)) {
      // A reshape after a reshape is one reshape.
      reshape(plan.result_shape);
      return text;
    }
    reshape(plan.view_shape);
    if (!plan.slices_nothing()) text += subscript_text(plan.view_shape, plan.slices);
  }
  now = counts(plan.slices);
  if (const std::vector<int> flipped = reversed_dimensions(plan.slices); !flipped.empty()) text = flip_text(text, flipped);
  if (!identity(plan.permutation)) {
    text = transpose_text(text, plan.permutation);
    Shape permuted;
    for (int d : plan.permutation) permuted.push_back(now[static_cast<std::size_t>(d)]);
    now = permuted;
  }
  reshape(plan.result_shape);
  return text;
}

std::string write_text(const std::string& name, const std::string& value, const index::Plan& plan) {
  std::string text = value;
  Shape now = plan.result_shape;
  Shape permuted;
  for (int d : plan.permutation) permuted.push_back(plan.slices[static_cast<std::size_t>(d)].count);
  if (now != permuted) text = fmt::format(FMT_COMPILE("jnp.reshape({}, {})"), text, tuple_text(permuted));
  if (!identity(plan.permutation)) {
    std::vector<int> inverse(plan.permutation.size());
    for (std::size_t k = 0; k < inverse.size(); ++k) inverse[static_cast<std::size_t>(plan.permutation[k])] = static_cast<int>(k);
    text = transpose_text(text, inverse);
  }
  if (const std::vector<int> flipped = reversed_dimensions(plan.slices); !flipped.empty()) text = flip_text(text, flipped);
  return fmt::format(FMT_COMPILE("{}{} = {}"), name, subscript_text(plan.view_shape, plan.slices), text);
}

}  // namespace pallascope::codegen
