// Room: trace. A JSON document as the readers of this room see it: ordered, with paths for diagnostics.
// Takes: text.
// Gives: JsonValue, a tree that keeps the order of keys and tells integers from floats.
// May use: base.
// Never: guesses; a value of another type than asked for is a diagnostic that names its path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/result.h"

namespace pallascope::trace {

struct JsonValue;
using JsonArray = std::vector<JsonValue>;
/// Keys in the order of the text: keyword arguments of a node keep theirs.
using JsonObject = std::vector<std::pair<std::string, JsonValue>>;
struct JsonNull {};
/// An integer that 64 bits do not hold; kept apart so that it never turns into a float by itself.
struct JsonBigInteger {
  std::string digits;
};

struct JsonValue {
  std::variant<JsonNull, bool, std::int64_t, double, std::string, JsonArray, JsonObject, JsonBigInteger>
      content;

  [[nodiscard]] bool is_null() const { return std::holds_alternative<JsonNull>(content); }
  template <class T>
  [[nodiscard]] const T* get() const {
    return std::get_if<T>(&content);
  }
  /// The member `key` of an object; nullptr when this is no object or lacks it. Linear.
  [[nodiscard]] const JsonValue* find(std::string_view key) const;
  /// "null", "a boolean", "an integer", "a number", "a string", "a list", "an object".
  [[nodiscard]] std::string_view type_name() const;
};

/// Parses `text`. Errors (`malformed_json`) give line and column, and say when the text just ends. Nesting
/// deeper than 200 and a key twice in one object are errors too, so that later code may recurse freely.
Result<JsonValue> parse_json(std::string_view text, std::string_view where);

/// A place in a document: `where` of the text and the JSON path, for diagnostics. Cheap to extend; a cursor
/// refers to its parent, so a parent must outlive its children.
class JsonCursor {
 public:
  JsonCursor(const JsonValue& value, std::string_view document) : value_(&value), document_(document) {}

  [[nodiscard]] const JsonValue& value() const { return *value_; }
  [[nodiscard]] bool is_null() const { return value_->is_null(); }
  [[nodiscard]] bool is_object() const { return value_->get<JsonObject>() != nullptr; }
  /// Whether this object has a member `key` that is not null.
  [[nodiscard]] bool has(std::string_view key) const;

  /// `model.json: $.graphs[0].nodes[3].target`
  [[nodiscard]] std::string where() const;
  [[nodiscard]] Diagnostic wrong(DiagnosticKind kind, std::string message, std::string remedy) const;

  /// The member `key`; `missing_member` when it is not there. `key` must outlive the cursor (a literal).
  [[nodiscard]] Result<JsonCursor> at(std::string_view key) const;
  /// Element `index` of a list, or member number `index` of an object, which must exist.
  [[nodiscard]] JsonCursor element(std::size_t index) const;
  [[nodiscard]] const std::string& key_of(std::size_t index) const;

  /// Number of elements of a list / members of an object; `malformed_graph` for anything else.
  [[nodiscard]] Result<std::size_t> list_size() const;
  [[nodiscard]] Result<std::size_t> object_size() const;
  [[nodiscard]] Result<std::string> as_string() const;
  [[nodiscard]] Result<std::int64_t> as_int() const;
  [[nodiscard]] Result<bool> as_bool() const;

 private:
  JsonCursor(const JsonValue& value, const JsonCursor& parent, std::string_view key, std::size_t index)
      : value_(&value), parent_(&parent), document_(parent.document_), key_(key), index_(index) {}
  [[nodiscard]] std::string path() const;

  const JsonValue* value_;
  const JsonCursor* parent_ = nullptr;
  std::string_view document_;
  std::string_view key_;
  std::size_t index_ = 0;
};

/// `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD, so that what is written
/// can be read again.
void append_json_string(std::string& out, std::string_view text);
/// The shortest decimal that reads back as `number`, always with a point or an exponent. Finite numbers only.
std::string shortest_float(double number);

}  // namespace pallascope::trace
