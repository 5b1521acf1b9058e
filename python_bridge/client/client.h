// Room: client. The C++ side of the Python host: starts it, speaks its protocol, starts it again when it dies.
// Takes: requests as JSON text with a body of raw bytes; where Python and the host executable are.
// Gives: replies as JSON text with a body, or a diagnostic; the host's state, its versions and its log.
// May use: core, fmt, nlohmann json (in the .cpp files only), POSIX processes and pipes.
// Never: runs Python in this process, throws out of its functions, leaves a process or a descriptor behind.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace pallascope::host {

/// The version of the protocol that this client speaks; `hello` must answer the same.
inline constexpr int protocol_version = 1;

/// PALLASCOPE_PYTHON when it is set and not empty, else the Python that the build was configured with.
std::filesystem::path find_python();
/// `pallascope_host` beside the running executable, or one folder above it (where the tests lie).
std::filesystem::path find_host_executable();
/// The folders that hold our Python package and its extension, for `Options::paths`.
std::vector<std::filesystem::path> default_paths();

struct Options {
  std::filesystem::path python = find_python();                    ///< <venv>/bin/python
  std::filesystem::path host_executable = find_host_executable();  ///< used when `embedded`
  std::vector<std::filesystem::path> paths = default_paths();      ///< go in front of sys.path
  /// true: `host_executable` embeds the interpreter. false ("external"): `python` itself runs the server.
  bool embedded = true;
  /// When `embedded` and the host executable says that `python` is of another version than the one it embeds
  /// (a patch level is enough), go on as if `embedded` were false instead of failing.
  bool external_if_version_differs = true;
  /// What external mode gives `python` as arguments.
  std::vector<std::string> external_arguments = {"-m", "pallascope.server"};
  /// A host that has not answered `hello` by then counts as dead. Importing torch and jax takes 1.8 s from a
  /// warm file cache; the rest is room for a cold one on a slow disk (not measured).
  std::chrono::milliseconds start_limit{120'000};
  /// How long the destructor waits for an idle host to leave by itself before it kills it.
  std::chrono::milliseconds shutdown_limit{1'000};
};

enum class State {
  not_started,  ///< nothing has asked for the host yet
  starting,     ///< the process runs, `hello` is not answered yet
  ready,        ///< serves requests
  died,         ///< ended by itself; the next request starts it again
  failed,       ///< cannot be started; requests fail at once until `restart` is called
};
/// `not_started`, `starting`, ... for people and `--json`.
std::string_view state_name(State state);

/// A picture of the host at one moment.
struct StateReport {
  State state = State::not_started;
  std::string text;      ///< one sentence for a status line: what it does, or why it died or failed
  std::int64_t pid = 0;  ///< 0 when there is no process
  int starts = 0;        ///< how often a process was started
  bool busy = false;     ///< a request is with the host now
  bool embedded = true;  ///< false when the interpreter itself runs the server
};

/// What the host said of itself.
struct Hello {
  int protocol = 0;
  std::int64_t pid = 0;
  std::string python;      ///< "3.11.2"
  std::string executable;  ///< the interpreter, e.g. <venv>/bin/python
  std::string torch;       ///< version; empty when the host did not say
  std::string jax;         ///< version; empty when the host did not say
  std::string platform;    ///< jax's, e.g. "cpu"
  std::vector<std::string> devices;
  std::string json;        ///< the whole answer, for what has no field here
};

struct Progress {
  std::string text;
  double fraction = -1;  ///< 0 to 1; negative when it is not known
};

struct RequestOptions {
  /// Counts from the moment the request is handed to a ready host: neither waiting for one's turn nor the
  /// host's start is counted (`Options::start_limit` bounds that). Running out of time kills the host.
  std::optional<std::chrono::milliseconds> timeout;
  /// A stop takes a waiting request out of the queue; of a running one it kills the host, because nothing
  /// gentler ends a kernel that loops. A new host is started at once.
  std::stop_token cancel;
  /// Called on the thread that called `request`, in order, before `request` returns.
  std::function<void(const Progress&)> progress;
  /// When not null, gets Python's traceback if the request fails with one, and is emptied otherwise.
  std::string* traceback = nullptr;
};

struct Reply {
  std::string result;  ///< JSON text of the reply's `result`
  std::string body;    ///< raw bytes, may be empty
};

/// A piece of the host's standard error (and of what Python printed to standard output).
struct LogPart {
  std::string text;
  std::uint64_t end = 0;  ///< give it to the next `log` call to get only what is new
};

/// One host process. All functions may be called from any thread; the object must outlive the calls, and
/// must not be destroyed from inside a progress callback.
///
/// Diagnostics of a request:
///   host_unavailable  the host cannot be started, or speaks another protocol version
///   host_died         it ended while it worked on the request (signal or exit status and its last words), or
///                     wrote something that is not our protocol
///   host_error        Python raised; or the kind that the server names, e.g. `invalid_argument`
///   cancelled         `cancel` was stopped, `restart` was called, or the client is being destroyed
///   timed_out         see RequestOptions
///   invalid_argument  the header is not a JSON object with a "request"
class Client {
 public:
  explicit Client(Options options = {});
  /// Asks an idle host to leave, waits `shutdown_limit`, kills what is left. A busy host is killed at once.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Starts the host in the background, so that importing torch overlaps with other work, and returns at
  /// once. Does nothing when it runs or has failed. Requests start it by themselves.
  void start();
  /// Kills the host if there is one, forgets earlier failures and starts a new one; returns at once.
  /// A running request fails with `cancelled`.
  void restart();

  [[nodiscard]] StateReport state() const;
  /// What the host that is ready said; nothing in any other state.
  [[nodiscard]] std::optional<Hello> hello() const;
  /// Starts the host if it does not run and waits until it is ready or has failed.
  [[nodiscard]] Result<Hello> wait_ready(std::stop_token cancel = {});

  /// `header` is JSON text such as `{"request": "run", ...}` without an id (one is put in, and replaces any
  /// that is there). Blocks until there is an answer. Requests of several threads are served one at a time,
  /// in the order in which they came. `body` is read during the call only and not copied.
  [[nodiscard]] Result<Reply> request(std::string_view header, std::string_view body = {},
                                      const RequestOptions& options = {});

  /// Standard error from position `from` on, as far as it is kept: the last 64 KiB over all host processes,
  /// with a line of our own where each started and ended.
  [[nodiscard]] LogPart log(std::uint64_t from = 0) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pallascope::host
