#include <algorithm>
#include <cstring>

#include "core/index/access.h"

namespace pallascope::index {
namespace {

using Key = std::vector<std::int64_t>;

/// The length and the bytes, eight to a number.
void append(Key& key, const std::string& text) {
  key.push_back(static_cast<std::int64_t>(text.size()));
  for (std::size_t at = 0; at < text.size(); at += 8) {
    std::int64_t packed = 0;
    std::memcpy(&packed, text.data() + at, std::min<std::size_t>(8, text.size() - at));
    key.push_back(packed);
  }
}

/// The terms with axes as positions. Each part has its length or its kind first, so that no two expressions have one key.
/// False for what is not about `axes` alone.
bool append(Key& key, const Context& context, Expression e, const std::vector<AxisId>& axes) {
  const Sum& sum = context.sum(e);
  key.push_back(sum.constant);
  key.push_back(static_cast<std::int64_t>(sum.terms.size()));
  for (const auto& [term, coefficient] : sum.terms) {
    key.push_back(coefficient);
    key.push_back(static_cast<std::int64_t>(term.kind));
    switch (term.kind) {
      case TermKind::axis: {
        const auto place = std::find(axes.begin(), axes.end(), term.axis);
        if (place == axes.end()) return false;
        key.push_back(place - axes.begin());
        break;
      }
      case TermKind::symbol: return false;
      case TermKind::floor_div:
      case TermKind::mod:
        key.push_back(term.divisor);
        if (!append(key, context, term.operand, axes)) return false;
        break;
    }
  }
  return true;
}

}  // namespace

std::size_t AccessMemo::KeyHash::operator()(const Key& key) const noexcept {
  std::uint64_t hash = key.size();
  for (const std::int64_t part : key) {
    hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29U;
  }
  return static_cast<std::size_t>(hash);
}

std::shared_ptr<const Access> AccessMemo::of(Context& context, Expression expression, const std::vector<AxisId>& axes,
                                             const std::vector<std::int64_t>& buffer_sizes) {
  key_.clear();
  key_.push_back(static_cast<std::int64_t>(axes.size()));
  for (const AxisId id : axes) {
    const Axis& axis = context.axis(id);
    key_.push_back(axis.extent);
    append(key_, axis.name);
  }
  key_.push_back(static_cast<std::int64_t>(buffer_sizes.size()));
  key_.insert(key_.end(), buffer_sizes.begin(), buffer_sizes.end());
  if (!append(key_, context, expression, axes))
    return std::make_shared<const Access>(access(context, expression, axes, buffer_sizes));
  auto found = known_.find(key_);
  if (found == known_.end())
    found = known_.emplace(key_, std::make_shared<const Access>(access(context, expression, axes, buffer_sizes))).first;
  return found->second;
}

}  // namespace pallascope::index
