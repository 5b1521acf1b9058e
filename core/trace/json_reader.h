// Room: trace. What the readers share: the first problem is kept, and reading goes on with defaults until a
// loop notices it. That keeps a reader's code as short as the format it reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/trace/json.h"

namespace pallascope::trace {

class JsonReader {
 protected:
  void fail(const JsonCursor& cursor, DiagnosticKind kind, std::string message, std::string remedy) {
    if (!problem_) problem_ = cursor.wrong(kind, std::move(message), std::move(remedy));
  }
  void fail(const Diagnostic& diagnostic) {
    if (!problem_) problem_ = diagnostic;
  }
  template <class T>
  T take(const Result<T>& result) {
    if (result.ok()) return result.value();
    fail(result.error());
    return T{};
  }

  std::string string_at(const JsonCursor& cursor, std::string_view key) {
    const Result<JsonCursor> member = cursor.at(key);
    if (member.ok()) return take(member->as_string());
    fail(member.error());
    return {};
  }
  /// Empty when the member is missing or null.
  std::string optional_string(const JsonCursor& cursor, std::string_view key) {
    return cursor.has(key) ? string_at(cursor, key) : std::string();
  }
  std::int64_t int_at(const JsonCursor& cursor, std::string_view key) {
    const Result<JsonCursor> member = cursor.at(key);
    if (member.ok()) return take(member->as_int());
    fail(member.error());
    return 0;
  }
  /// False when the member is missing or null.
  bool optional_bool(const JsonCursor& cursor, std::string_view key) {
    return cursor.has(key) && take(cursor.at(key)->as_bool());
  }

  /// Calls `body` with each element of `list` until there is a problem.
  template <class Body>
  void for_each(const JsonCursor& list, Body body) {
    const std::size_t size = take(list.list_size());
    for (std::size_t i = 0; i < size && !problem_; ++i) body(list.element(i));
  }
  template <class Body>
  void for_each(const JsonCursor& cursor, std::string_view key, Body body) {
    const Result<JsonCursor> list = cursor.at(key);
    if (!list.ok()) return fail(list.error());
    for_each(*list, body);
  }

  std::optional<Diagnostic> problem_;
};

}  // namespace pallascope::trace
