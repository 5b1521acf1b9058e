#include "python_bridge/client/protocol.h"

#include "python_bridge/client/frame.h"

namespace pallascope::host {

using Json = nlohmann::json;

std::string frame_head(Json header, std::int64_t id, std::size_t body_bytes) {
  header["id"] = id;
  const std::string text = dump(header);
  return frame_prefix(text.size(), body_bytes) + text;
}

std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

// find() and not value(): the latter throws when the type is another.
std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : dump(*found);
}

std::int64_t number_of(const Json& object, const char* key, std::int64_t otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : otherwise;
}

bool is_ok(const Json& reply) {
  const auto found = reply.find("ok");
  return found != reply.end() && found->is_boolean() && found->get<bool>();
}

Json object_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : Json::object();
}

Hello read_hello(const Json& result) {
  Hello hello;
  hello.protocol = static_cast<int>(number_of(result, "protocol", 0));
  hello.pid = number_of(result, "pid", 0);
  hello.python = text_of(result, "python");
  hello.executable = text_of(result, "executable");
  hello.torch = text_of(result, "torch");
  hello.jax = text_of(result, "jax");
  hello.platform = text_of(result, "platform");
  if (const auto devices = result.find("devices"); devices != result.end() && devices->is_array())
    for (const Json& device : *devices)
      hello.devices.push_back(device.is_string() ? device.get<std::string>() : dump(device));
  hello.json = dump(result);
  return hello;
}

std::string describe(const Hello& hello) {
  std::string text = "Python " + hello.python;
  if (!hello.torch.empty()) text += ", torch " + hello.torch;
  if (!hello.jax.empty()) text += ", jax " + hello.jax;
  if (!hello.platform.empty()) text += " on " + hello.platform;
  return text;
}

Diagnostic read_error(const Json& error) {
  Diagnostic diagnostic{DiagnosticKind::host_error, text_of(error, "message"), text_of(error, "where"),
                        text_of(error, "remedy")};
  const std::string name = text_of(error, "kind");
  for (int kind = 0; kind <= static_cast<int>(DiagnosticKind::timed_out); ++kind)
    if (diagnostic_name(static_cast<DiagnosticKind>(kind)) == name)
      diagnostic.kind = static_cast<DiagnosticKind>(kind);
  if (diagnostic.message.empty()) diagnostic.message = "The Python host reported an error without a message.";
  return diagnostic;
}

Progress read_progress(const Json& event) {
  Progress progress{text_of(event, "text"), -1};
  if (const auto fraction = event.find("fraction"); fraction != event.end() && fraction->is_number())
    progress.fraction = fraction->get<double>();
  return progress;
}

}  // namespace pallascope::host
