// Room: base. A value or the diagnostic that says why there is none.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "core/base/diagnostic.h"

namespace pallascope {

/// Either a `T` or a `Diagnostic`. Reading the side that is not there is our own bug and stops the program.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Diagnostic diagnostic) : content_(std::in_place_index<1>, std::move(diagnostic)) {}  // NOLINT

  [[nodiscard]] bool ok() const { return content_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] const T& value() const& {
    PALLASCOPE_CHECK(ok(), to_string(std::get<1>(content_)));
    return std::get<0>(content_);
  }
  [[nodiscard]] T& value() & {
    PALLASCOPE_CHECK(ok(), to_string(std::get<1>(content_)));
    return std::get<0>(content_);
  }
  [[nodiscard]] T&& value() && {
    PALLASCOPE_CHECK(ok(), to_string(std::get<1>(content_)));
    return std::get<0>(std::move(content_));
  }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

  [[nodiscard]] const Diagnostic& error() const {
    PALLASCOPE_CHECK(!ok(), "a result that holds a value has no diagnostic");
    return std::get<1>(content_);
  }

 private:
  std::variant<T, Diagnostic> content_;
};

/// Success without a value, or a diagnostic.
struct Success {};
using Status = Result<Success>;

}  // namespace pallascope
