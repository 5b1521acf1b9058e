// Room: client. The JSON of the protocol's messages: what goes out and what comes back.
// Takes: header texts and parsed replies, in which nothing may be trusted to be there.
// Gives: framed requests, Hello, diagnostics.
// May use: core/base, fmt, nlohmann json.
// Never: throws, whatever a reply holds; keeps state.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/diagnostic.h"
#include "python_bridge/client/client.h"

namespace pallascope::host {

/// Prefix and header of a message with `header` and this id in it; the body follows separately.
std::string frame_head(nlohmann::json header, std::int64_t id, std::size_t body_bytes);

/// `object[key]` as text (JSON text when it is no string), and empty when it is missing or null.
std::string text_of(const nlohmann::json& object, const char* key);
/// `object[key]`, or `otherwise` when it is missing or no integer.
std::int64_t number_of(const nlohmann::json& object, const char* key, std::int64_t otherwise);
/// Whether the reply says `"ok": true`.
bool is_ok(const nlohmann::json& reply);
/// `object[key]`, or an empty object.
nlohmann::json object_of(const nlohmann::json& object, const char* key);
/// As text; bytes that are not UTF-8 are replaced instead of thrown about.
std::string dump(const nlohmann::json& value);

Hello read_hello(const nlohmann::json& result);
/// "Python 3.11.2, torch 2.13.0, jax 0.10.2 on cpu".
std::string describe(const Hello& hello);
/// What the `error` object of a reply says: its kind where we know it, else host_error.
Diagnostic read_error(const nlohmann::json& error);
Progress read_progress(const nlohmann::json& event);

}  // namespace pallascope::host
