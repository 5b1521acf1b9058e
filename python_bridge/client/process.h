// Room: client. One child process with pipes on its standard streams.
// Takes: a program with arguments and environment.
// Gives: non-blocking descriptors of its input, output and error; how it ended, in words.
// May use: core/base, POSIX, Linux.
// Never: blocks for long, leaves a zombie, lets the child inherit another descriptor or outlive the thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace pallascope::host {

/// Closes its descriptor, once.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

struct Command {
  std::vector<std::string> arguments;  ///< the first is the program's path; PATH is not searched
  std::vector<std::string> environment;
};

/// How a process ended.
struct Ending {
  bool known = false;  ///< false when somebody else has waited for our child
  int status = 0;      ///< as waitpid gives it

  /// "exit status 7", "signal 11 (segmentation fault)", ...
  [[nodiscard]] std::string text() const;
};

/// The child is the leader of its own process group (a Ctrl-C in the terminal is the app's, not the host's)
/// and is killed by the kernel when the thread that started it ends, however that happens.
class Process {
 public:
  static Result<std::unique_ptr<Process>> start(const Command& command);
  /// Kills and reaps what is still there.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  Descriptor input;   ///< to its standard input
  Descriptor output;  ///< from its standard output
  Descriptor error;   ///< from its standard error
  /// Readable when the process has ended; not open on a system without pidfd_open, where one has to ask
  /// `ended()` now and then.
  Descriptor ended_event;

  /// How it ended, if it did; kills what it left behind in its process group and reaps it.
  std::optional<Ending> ended();
  /// `ended()`, waiting up to `limit` for it.
  std::optional<Ending> wait(std::chrono::milliseconds limit);
  /// SIGKILL to it and its process group. It may take a moment to end.
  void kill();

 private:
  Process() = default;
  pid_t pid_ = 0;
  std::optional<Ending> ending_;
};

}  // namespace pallascope::host
