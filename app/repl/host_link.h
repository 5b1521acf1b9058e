// Room: repl. The way to the Python host, as the commands need it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/report/json.h"

namespace pallascope::repl {

/// What is known of a host at one moment, for status lines.
struct HostStatus {
  enum class State : std::uint8_t {
    not_started,
    starting,
    ready,
    died,    ///< ended by itself; the next request starts it again
    failed,  ///< cannot be started; requests fail at once until `restart`
  };
  State state = State::not_started;
  std::string text;  ///< one sentence: what it does, or why there is none
  bool busy = false; ///< a request is with it now
  int starts = 0;    ///< how often a process was started
  // What it said of itself; empty until it is ready.
  std::string python, torch, jax, platform;
  std::vector<std::string> devices;
  friend bool operator==(const HostStatus&, const HostStatus&) = default;
};

/// New text of the host's own output.
struct HostLog {
  std::string text;
  std::uint64_t end = 0;  ///< give it to the next call to get only what is new
};

/// Told what is waited for, with how much of it is done: 0 to 1, negative when that is not known.
using Progress = std::function<void(const std::string& text, double fraction)>;

/// What commands ask of a host. Tests put their own in; the app's is `client_link`.
class HostLink {
 public:
  virtual ~HostLink() = default;
  /// Begins to start it in the background; returns at once.
  virtual void start() = 0;
  /// Blocks until there is an answer: the reply's `result`. `progress` is called on the calling thread.
  virtual Result<report::Json> request(const report::Json& header, const Progress& progress, std::stop_token cancel) = 0;
  /// Kills the host if there is one and starts a new one; a request that runs is cancelled. Returns at once.
  virtual void restart() {}
  [[nodiscard]] virtual HostStatus status() const = 0;
  /// What the host wrote to standard error, and what Python printed, from position `from` on, as far as it is kept.
  [[nodiscard]] virtual HostLog log(std::uint64_t from) const { return {"", from}; }
};

/// A Python traceback without its head, the frames of installed packages and the last line (the message that a
/// diagnostic has already); at most the innermost ten frames. What remains is the user's code and ours.
std::string short_traceback(const std::string& traceback);

/// A host process of this machine, through python_bridge/client.
std::unique_ptr<HostLink> client_link();

}  // namespace pallascope::repl
