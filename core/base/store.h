// Room: base. Append-only stores addressed by a typed id.
#pragma once

#include <memory>
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

/// A Store whose copies hold the same values in memory until one of them is changed: a copy costs a pointer, and
/// references into it stay good as long as any copy lives. Changes are named (`add`, `edit`), so that reading through
/// something that is not const copies nothing.
template <class Key, class T>
class SharedStore {
 public:
  Key add(T value) {
    own().push_back(std::move(value));
    return Key(values_->size() - 1);
  }
  [[nodiscard]] T& edit(Key id) { return own().at(id.index()); }
  /// Room for so many values, so that adding them moves none.
  void reserve(std::size_t count) { own().reserve(count); }
  [[nodiscard]] const T& operator[](Key id) const { return values_->at(id.index()); }
  [[nodiscard]] std::size_t size() const { return values_->size(); }
  [[nodiscard]] bool empty() const { return values_->empty(); }
  [[nodiscard]] bool contains(Key id) const { return id.valid() && id.index() < values_->size(); }
  [[nodiscard]] auto begin() const { return values_->cbegin(); }
  [[nodiscard]] auto end() const { return values_->cend(); }

 private:
  std::vector<T>& own() {
    if (values_.use_count() > 1) values_ = std::make_shared<std::vector<T>>(*values_);
    return *values_;
  }

  std::shared_ptr<std::vector<T>> values_ = std::make_shared<std::vector<T>>();
};

}  // namespace pallascope
