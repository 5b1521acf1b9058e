#include "app/workspace/worker.h"

#include <algorithm>
#include <utility>

namespace pallascope::workspace {

Worker::Worker() : thread_([this] { loop(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    finish_ = true;
    waiting_.clear();
    stop_.request_stop();
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::post(Job job) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({"", std::move(job)});
  }
  changed_.notify_all();
}

void Worker::replace(const std::string& key, Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (running_ && running_key_ == key) stop_.request_stop();
    const auto at =
        std::find_if(waiting_.begin(), waiting_.end(), [&](const Entry& entry) { return entry.key == key; });
    if (at != waiting_.end()) {
      at->job = std::move(job);
    } else {
      waiting_.push_back({key, std::move(job)});
    }
  }
  changed_.notify_all();
}

bool Worker::idle() const {
  const std::lock_guard lock(mutex_);
  return !running_ && waiting_.empty();
}

void Worker::wait_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !running_ && waiting_.empty(); });
}

void Worker::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return finish_ || !waiting_.empty(); });
    if (finish_) return;
    Entry entry = std::move(waiting_.front());
    waiting_.pop_front();
    running_ = true;
    running_key_ = entry.key;
    stop_ = std::stop_source();
    const std::stop_token token = stop_.get_token();
    lock.unlock();
    entry.job(token);
    entry.job = nullptr;  // what it holds may be large: it goes before anything else runs, and not under the lock
    lock.lock();
    running_ = false;
    running_key_.clear();
    changed_.notify_all();
  }
}

}  // namespace pallascope::workspace
