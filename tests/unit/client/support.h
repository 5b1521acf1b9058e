// What the tests of the client share: a client on the fake server, and counts of what a process holds.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "python_bridge/client/client.h"

namespace pallascope::host::test {

using namespace std::chrono_literals;
using Json = nlohmann::json;

inline std::string data(const std::string& name) {
  return std::string(PALLASCOPE_TEST_DATA) + "/unit/client/data/" + name;
}

/// External mode on fake_server.py with these settings.
inline Options fake(const std::vector<std::string>& settings = {}) {
  Options options;
  options.python = PALLASCOPE_HOST_PYTHON;
  options.embedded = false;
  options.external_arguments = {data("fake_server.py")};
  options.external_arguments.insert(options.external_arguments.end(), settings.begin(), settings.end());
  return options;
}

inline std::string named(const std::string& name) { return R"({"request": ")" + name + "\"}"; }

/// Polls until `condition` holds; false when it does not within five seconds.
inline bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return condition();
}

inline std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

/// The fields of /proc/<pid>/stat after the name: state, parent, ...; empty when there is no such process.
inline std::string stat_of(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto end = text.rfind(')');
  return end == std::string::npos ? "" : text.substr(end + 2);
}

/// Children of this process, zombies included.
inline std::size_t children() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = stat_of(std::stoll(name));
    if (stat.size() > 2 && std::stoll(stat.substr(2)) == getpid()) ++count;
  }
  return count;
}

/// kill -9 from outside, to the host that `client` has now; never to a group of our own (pid 0).
inline void kill_host(const Client& client) {
  const auto pid = static_cast<pid_t>(client.state().pid);
  if (pid > 0) kill(pid, SIGKILL);
}

/// Gone, or a zombie that somebody else has to reap.
inline bool is_gone(std::int64_t pid) {
  const std::string stat = stat_of(pid);
  return stat.empty() || stat[0] == 'Z';
}

/// The next request works.
inline void expect_works(Client& client) {
  const auto reply = client.request(R"({"request": "echo", "text": "still here"})", "body");
  ASSERT_TRUE(reply.ok()) << to_string(reply.error());
  EXPECT_EQ(Json::parse(reply->result)["text"], "still here");
  EXPECT_EQ(reply->body, "body");
}

/// Sends `header`, which has to fail with `kind` and to say each of `words`; then the next request has to work.
inline void expect_failure(Client& client, const std::string& header, DiagnosticKind kind,
                    const std::vector<std::string>& words) {
  const auto reply = client.request(header);
  ASSERT_FALSE(reply.ok()) << header;
  EXPECT_EQ(diagnostic_name(reply.error().kind), diagnostic_name(kind)) << to_string(reply.error());
  for (const std::string& word : words)
    EXPECT_NE(reply.error().message.find(word), std::string::npos) << word << " in " << to_string(reply.error());
  expect_works(client);
}

}  // namespace pallascope::host::test
