#include "core/trace/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <unordered_set>

#include <nlohmann/json.hpp>

namespace pallascope::trace {
namespace {

/// Deeper nesting than any trace has (about 12); keeps recursion in the readers bounded.
constexpr std::size_t kDeepest = 200;

std::string line_and_column(std::string_view text, std::size_t position) {
  position = std::min(position, text.size());
  const std::string_view before = text.substr(0, position);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == std::string_view::npos ? position : position - start - 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column) + " (byte " +
         std::to_string(position) + ")";
}

/// Builds the tree from nlohmann's parser events; nlohmann's own tree sorts keys or searches them linearly at
/// every insertion, and this one also sees which key stands twice.
class TreeBuilder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  TreeBuilder(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  bool null() { return place({JsonNull{}}); }
  bool boolean(bool value) { return place({value}); }
  bool number_integer(number_integer_t value) { return place({static_cast<std::int64_t>(value)}); }
  bool number_unsigned(number_unsigned_t value) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return place({JsonBigInteger{std::to_string(value)}});
    return place({static_cast<std::int64_t>(value)});
  }
  bool number_float(number_float_t value, const string_t& text) {
    if (text.find_first_of(".eE") == string_t::npos) return place({JsonBigInteger{text}});
    return place({static_cast<double>(value)});
  }
  bool string(string_t& value) { return place({std::move(value)}); }
  bool binary(binary_t&) { return false; }
  bool start_object(std::size_t) { return open(JsonValue{JsonObject{}}); }
  bool start_array(std::size_t) { return open(JsonValue{JsonArray{}}); }
  bool key(string_t& text) {
    open_.back().key = std::move(text);
    return true;
  }
  bool end_object() {
    const JsonObject& object = std::get<JsonObject>(open_.back().value.content);
    if (const std::string* twice = repeated_key(object)) {
      error_ =
          Diagnostic{DiagnosticKind::malformed_json, "the key `" + *twice + "` stands twice in one object",
                     std::string(where_), "keep one of the two"};
      return false;
    }
    return close();
  }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& exception) {
    // nlohmann counts bytes from 1 and reads one past the end when the text stops early.
    const bool cut_off = text_.empty() || position > text_.size();
    std::string detail = exception.what();
    if (const std::size_t colon = detail.rfind(": syntax error"); colon != std::string::npos)
      detail = detail.substr(colon + 2);
    else if (const std::size_t bracket = detail.find("] "); bracket != std::string::npos)
      detail = detail.substr(bracket + 2);
    error_ = Diagnostic{
        DiagnosticKind::malformed_json,
        (text_.empty() ? "the text is empty"
         : cut_off     ? "the text ends in the middle"
                       : "the text is not JSON") +
            std::string(" at ") + line_and_column(text_, position) + ": " + detail,
        std::string(where_),
        cut_off ? "write the file again: it seems to be cut off" : "correct the text at that position"};
    return false;
  }

  [[nodiscard]] Result<JsonValue> result() && {
    if (error_) return *error_;
    return std::move(root_);
  }

 private:
  struct Open {
    JsonValue value;
    std::string key;
  };

  bool place(JsonValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (auto* array = std::get_if<JsonArray>(&open_.back().value.content)) {
      array->push_back(std::move(value));
    } else {
      std::get<JsonObject>(open_.back().value.content)
          .emplace_back(std::move(open_.back().key), std::move(value));
    }
    return true;
  }
  bool open(JsonValue value) {
    if (open_.size() == kDeepest) {
      error_ = Diagnostic{DiagnosticKind::malformed_json,
                          "lists and objects are nested more than " + std::to_string(kDeepest) + " deep",
                          std::string(where_), "no trace nests that deep: write the file again"};
      return false;
    }
    open_.push_back({std::move(value), {}});
    return true;
  }
  bool close() {
    JsonValue value = std::move(open_.back().value);
    open_.pop_back();
    return place(std::move(value));
  }
  static const std::string* repeated_key(const JsonObject& object) {
    if (object.size() < 16) {
      for (std::size_t i = 1; i < object.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
          if (object[i].first == object[j].first) return &object[i].first;
      return nullptr;
    }
    std::unordered_set<std::string_view> seen;
    for (const auto& [key, value] : object)
      if (!seen.insert(key).second) return &key;
    return nullptr;
  }

  std::string_view text_;
  std::string_view where_;
  std::vector<Open> open_;
  JsonValue root_;
  std::optional<Diagnostic> error_;
};

/// Length of the UTF-8 sequence at `i`, or 0 when it is none (overlong forms and surrogates included).
std::size_t utf8_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0U; };
  const auto follows = [&](std::size_t k) { return (byte(k) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(i);
  const unsigned next = byte(i + 1);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(i + 1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (lead == 0xE0 && next < 0xA0) return 0;
    if (lead == 0xED && next > 0x9F) return 0;
    return follows(i + 1) && follows(i + 2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (lead == 0xF0 && next < 0x90) return 0;
    if (lead == 0xF4 && next > 0x8F) return 0;
    return follows(i + 1) && follows(i + 2) && follows(i + 3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const {
  const JsonObject* object = get<JsonObject>();
  if (object == nullptr) return nullptr;
  for (const auto& [name, value] : *object)
    if (name == key) return &value;
  return nullptr;
}

std::string_view JsonValue::type_name() const {
  static constexpr std::array<std::string_view, 8> kNames = {
      "null",     "a boolean", "an integer", "a number",
      "a string", "a list",    "an object",  "an integer beyond 64 bits"};
  return kNames[content.index()];
}

Result<JsonValue> parse_json(std::string_view text, std::string_view where) {
  TreeBuilder builder(text, where);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return std::move(builder).result();
}

bool JsonCursor::has(std::string_view key) const {
  const JsonValue* member = value_->find(key);
  return member != nullptr && !member->is_null();
}

std::string JsonCursor::path() const {
  if (parent_ == nullptr) return "$";
  if (parent_->value_->get<JsonArray>() != nullptr)
    return parent_->path() + "[" + std::to_string(index_) + "]";
  return parent_->path() + "." + std::string(key_);
}

std::string JsonCursor::where() const {
  return document_.empty() ? path() : std::string(document_) + ": " + path();
}

Diagnostic JsonCursor::wrong(DiagnosticKind kind, std::string message, std::string remedy) const {
  return Diagnostic{kind, std::move(message), where(), std::move(remedy)};
}

Result<JsonCursor> JsonCursor::at(std::string_view key) const {
  if (!is_object())
    return wrong(DiagnosticKind::malformed_graph,
                 "an object is expected here, but this is " + std::string(value_->type_name()),
                 "write an object with a member `" + std::string(key) + "`");
  const JsonValue* member = value_->find(key);
  if (member == nullptr)
    return wrong(DiagnosticKind::missing_member, "the member `" + std::string(key) + "` is missing",
                 "add `" + std::string(key) + "` to this object");
  return JsonCursor(*member, *this, key, 0);
}

JsonCursor JsonCursor::element(std::size_t index) const {
  if (const JsonArray* array = value_->get<JsonArray>())
    return JsonCursor(array->at(index), *this, {}, index);
  const JsonObject* object = value_->get<JsonObject>();
  PALLASCOPE_CHECK(object != nullptr && index < object->size(), where());
  const auto& [key, value] = (*object)[index];
  return JsonCursor(value, *this, key, index);
}

const std::string& JsonCursor::key_of(std::size_t index) const {
  const JsonObject* object = value_->get<JsonObject>();
  PALLASCOPE_CHECK(object != nullptr && index < object->size(), where());
  return (*object)[index].first;
}

Result<std::size_t> JsonCursor::list_size() const {
  if (const JsonArray* array = value_->get<JsonArray>()) return array->size();
  return wrong(DiagnosticKind::malformed_graph,
               "a list is expected here, but this is " + std::string(value_->type_name()), "write a list");
}

Result<std::size_t> JsonCursor::object_size() const {
  if (const JsonObject* object = value_->get<JsonObject>()) return object->size();
  return wrong(DiagnosticKind::malformed_graph,
               "an object is expected here, but this is " + std::string(value_->type_name()),
               "write an object");
}

Result<std::string> JsonCursor::as_string() const {
  if (const std::string* text = value_->get<std::string>()) return *text;
  return wrong(DiagnosticKind::malformed_graph,
               "a string is expected here, but this is " + std::string(value_->type_name()),
               "write a string");
}

Result<std::int64_t> JsonCursor::as_int() const {
  if (const std::int64_t* number = value_->get<std::int64_t>()) return *number;
  return wrong(DiagnosticKind::malformed_graph,
               "an integer is expected here, but this is " + std::string(value_->type_name()),
               "write an integer that fits 64 bits");
}

Result<bool> JsonCursor::as_bool() const {
  if (const bool* flag = value_->get<bool>()) return *flag;
  return wrong(DiagnosticKind::malformed_graph,
               "true or false is expected here, but this is " + std::string(value_->type_name()),
               "write true or false");
}

void append_json_string(std::string& out, std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t length = utf8_length(text, i);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      ++i;
      continue;
    }
    if (length > 1) {
      out.append(text.substr(i, length));
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
    i += length;
  }
  out += '"';
}

std::string shortest_float(double number) {
  std::array<char, 40> buffer{};
  const auto [end, code] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  PALLASCOPE_CHECK(code == std::errc(), "40 characters hold every double");
  std::string text(buffer.data(), end);
  if (text.find_first_of(".einf") == std::string::npos) text += ".0";
  return text;
}

}  // namespace pallascope::trace
