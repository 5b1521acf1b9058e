// Room: base. An append-only store addressed by a typed id.
#pragma once

#include <utility>
#include <vector>

#include "core/base/id.h"

namespace pallascope {

/// Values of type `T` addressed by `Key` (an `Id`). Values are added and read, never removed, so an id
/// stays good for the life of the store.
template <class Key, class T>
class Store {
 public:
  Key add(T value) {
    values_.push_back(std::move(value));
    return Key(values_.size() - 1);
  }
  [[nodiscard]] const T& operator[](Key id) const { return values_.at(id.index()); }
  [[nodiscard]] T& operator[](Key id) { return values_.at(id.index()); }
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] bool empty() const { return values_.empty(); }
  [[nodiscard]] bool contains(Key id) const { return id.valid() && id.index() < values_.size(); }
  [[nodiscard]] auto begin() const { return values_.begin(); }
  [[nodiscard]] auto end() const { return values_.end(); }

 private:
  std::vector<T> values_;
};

}  // namespace pallascope
