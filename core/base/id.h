// Room: base. Typed ids: an index into one kind of store, never mixed up with another kind.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace pallascope {

/// An index into the append-only store of one kind of thing, named by `Tag`.
/// A default-constructed id is invalid (value -1).
template <class Tag>
struct Id {
  std::int32_t value = -1;

  constexpr Id() = default;
  constexpr explicit Id(std::int32_t v) : value(v) {}
  constexpr explicit Id(std::size_t v) : value(static_cast<std::int32_t>(v)) {}

  [[nodiscard]] constexpr bool valid() const { return value >= 0; }
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value); }

  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

}  // namespace pallascope

template <class Tag>
struct std::hash<pallascope::Id<Tag>> {
  std::size_t operator()(const pallascope::Id<Tag>& id) const noexcept {
    return std::hash<std::int32_t>{}(id.value);
  }
};
