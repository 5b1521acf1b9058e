// Room: client. The thread that owns the host process, its streams and the running request.
// Takes: jobs and wishes that callers leave in Shared.
// Gives: answers, the state and the log, in Shared.
// May use: this room.
// Never: calls a caller's function, holds the mutex over a system call that can block, lets an exception out.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "python_bridge/client/client.h"
#include "python_bridge/client/frame.h"
#include "python_bridge/client/log.h"
#include "python_bridge/client/process.h"

namespace pallascope::host {

/// One request between its caller, who waits, and the worker, which reads `head` and the caller's `body`
/// until there is a result and not afterwards.
struct Job {
  std::int64_t id = 0;
  std::string name;
  std::string head;  ///< the frame up to its body
  std::string_view body;
  std::optional<std::chrono::milliseconds> timeout;
  std::atomic<bool> cancel = false;

  // The worker's own.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  bool sent_before = false;

  // Guarded by Shared::mutex.
  std::deque<Progress> progress;
  std::optional<Result<Reply>> result;
  std::string traceback;
};
using JobPointer = std::shared_ptr<Job>;

/// What callers and the worker both touch. `changed` is notified with every change of it.
struct Shared {
  Shared();
  void wake() const;  ///< makes the worker look; needs no lock
  void set_state(State state, std::string text);  ///< needs the mutex

  std::mutex mutex;
  std::condition_variable changed;
  StateReport report;
  std::optional<Hello> hello;  ///< of the process that runs
  Diagnostic failure;          ///< why, when the state is `failed`
  std::deque<JobPointer> queue;
  int callers = 0;  ///< threads inside a function that waits
  bool closing = false;
  bool wish_start = false;
  bool wish_restart = false;

  Log log;
  std::atomic<std::int64_t> next_id = 1;
  Descriptor wake_event;
};

/// Runs on a thread of its own, which is the only one that touches the process: so nothing about it needs a
/// lock, and no signal can hit a process id that was given to somebody else.
class Worker {
 public:
  Worker(const Options& options, Shared& shared);
  /// Returns when `closing` was set and the host is gone.
  void run();

 private:
  using Clock = std::chrono::steady_clock;

  bool follow_wishes();
  void check_deadlines();
  void give_up_running(const Diagnostic& problem);
  void send_next();
  void close_down();

  void start_process(const std::string& why);
  void fail(const Diagnostic& problem);
  void on_start_death(const std::string& how);
  void on_hello(const nlohmann::json& reply);
  void refuse(const nlohmann::json& error);

  void drop_process(std::string_view why);
  void on_ended(const Ending& ending);
  void on_protocol_error(const std::string& what);
  void end_with(const std::string& how);
  bool take_back_unread(const JobPointer& job);

  void wait_for_something();
  bool read_log();
  bool read_output();
  void write_input();
  void begin_writing(const Job& job);
  void on_frame(Frame frame);
  void on_event(const nlohmann::json& message);
  void on_reply(const nlohmann::json& message, std::string body);

  void finish(const JobPointer& job, Result<Reply> result, std::string traceback = {});
  std::deque<JobPointer> take_queue();
  bool has_queue();

  const Options& options_;
  Shared& shared_;
  bool embedded_;
  bool failed_ = false;
  int start_deaths_ = 0;  ///< in a row

  std::unique_ptr<Process> process_;
  int generation_ = 0;  ///< counts processes, so that one can be told from its successor
  std::uint64_t log_begin_ = 0;  ///< where this process's words begin
  FrameReader reader_;
  bool output_open_ = false;
  bool error_open_ = false;
  JobPointer hello_job_;  ///< set while the host starts
  Clock::time_point start_deadline_;
  std::optional<Clock::time_point> hang_up_deadline_;  ///< it closed a stream and should have ended by then
  JobPointer running_;
  const Job* writing_ = nullptr;  ///< hello_job_ or running_, until all of it is written
  std::size_t written_ = 0;
  std::array<char, 1 << 16> buffer_;
};

}  // namespace pallascope::host
