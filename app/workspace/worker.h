// Room: workspace. A thread that does jobs one after the other; a newer job replaces an older one of its kind.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace pallascope::workspace {

/// One thread with a queue. Any thread may post. The destructor asks the running job to stop, waits for it, and drops
/// what waits.
class Worker {
 public:
  using Job = std::function<void(std::stop_token)>;

  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Runs `job` after all that were posted before it.
  void post(Job job);
  /// As post, but a waiting job with this key is replaced (and keeps its place), and a running one is asked to stop:
  /// of requests that make each other stale, only the newest is worth doing.
  void replace(const std::string& key, Job job);
  /// Whether nothing waits and nothing runs.
  [[nodiscard]] bool idle() const;
  /// Blocks until idle. For tests.
  void wait_idle();

 private:
  struct Entry {
    std::string key;
    Job job;
  };
  void loop();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> waiting_;
  std::string running_key_;
  bool running_ = false, finish_ = false;
  std::stop_source stop_;
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace pallascope::workspace
