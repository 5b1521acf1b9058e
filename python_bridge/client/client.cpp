// The callers' side: queues jobs, leaves wishes and waits. The worker does the rest.
#include "python_bridge/client/client.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "python_bridge/client/protocol.h"
#include "python_bridge/client/worker.h"

namespace pallascope::host {

namespace {

/// Counts a thread that is inside a waiting function. It is made before the thread's stop callback and goes
/// after it, so that the destructor of the client, which waits for these, cannot pull away what that uses.
class Caller {
 public:
  explicit Caller(Shared& shared) : shared_(shared) {
    const std::lock_guard lock(shared_.mutex);
    ++shared_.callers;
  }
  ~Caller() {
    const std::lock_guard lock(shared_.mutex);
    --shared_.callers;
    shared_.changed.notify_all();
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

 private:
  Shared& shared_;
};

/// Relative paths mean the folder that the app was started in, and Python wants absolute ones. Links stay:
/// the environment of <venv>/bin/python is found by where that link lies, not by what it points to.
Options with_absolute_paths(Options options) {
  std::error_code error;
  for (auto* path : {&options.python, &options.host_executable})
    if (!path->empty()) *path = std::filesystem::absolute(*path, error);
  for (auto& path : options.paths) path = std::filesystem::absolute(path, error);
  return options;
}

}  // namespace

std::string_view state_name(State state) {
  switch (state) {
    case State::not_started: return "not_started";
    case State::starting: return "starting";
    case State::ready: return "ready";
    case State::died: return "died";
    case State::failed: return "failed";
  }
  return "failed";
}

class Client::Impl {
 public:
  explicit Impl(Options options)
      : options_(with_absolute_paths(std::move(options))), worker_(options_, shared_) {
    shared_.report.embedded = options_.embedded;
    thread_ = std::thread([this] { worker_.run(); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(shared_.mutex);
      shared_.closing = true;
      shared_.changed.notify_all();
    }
    shared_.wake();
    thread_.join();
    std::unique_lock lock(shared_.mutex);
    shared_.changed.wait(lock, [&] { return shared_.callers == 0; });
  }

  void start() {
    const std::lock_guard lock(shared_.mutex);
    ask_for_start();
  }

  void restart() {
    const std::lock_guard lock(shared_.mutex);
    shared_.wish_restart = true;
    shared_.set_state(State::starting, "starting again");
    shared_.wake();
  }

  StateReport state() {
    const std::lock_guard lock(shared_.mutex);
    return shared_.report;
  }

  std::optional<Hello> hello() {
    const std::lock_guard lock(shared_.mutex);
    return shared_.report.state == State::ready ? shared_.hello : std::nullopt;
  }

  Result<Hello> wait_ready(const std::stop_token& cancel) {
    const Caller caller(shared_);
    const std::stop_callback on_stop(cancel, [this] {
      { const std::lock_guard lock(shared_.mutex); }  // so that it cannot fall between a check and its wait
      shared_.changed.notify_all();
    });
    std::unique_lock lock(shared_.mutex);
    ask_for_start();
    const auto stopped = [&] { return shared_.closing || cancel.stop_requested(); };
    shared_.changed.wait(lock, [&] { return stopped() || shared_.report.state != State::starting; });
    if (stopped())
      return Diagnostic{DiagnosticKind::cancelled, "Waiting for the Python host was cancelled.", {}, {}};
    if (shared_.report.state == State::ready) return *shared_.hello;
    if (shared_.report.state == State::failed) return shared_.failure;
    return Diagnostic{DiagnosticKind::host_died, shared_.report.text, {}, {}};
  }

  Result<Reply> request(std::string_view header, std::string_view body, const RequestOptions& options) {
    if (options.traceback != nullptr) options.traceback->clear();
    nlohmann::json parsed = nlohmann::json::parse(header, nullptr, false);
    const std::string name = parsed.is_object() ? text_of(parsed, "request") : std::string();
    if (name.empty())
      return Diagnostic{DiagnosticKind::invalid_argument, fmt::format("\"{}\" is no request.", printable(header, 60)),
                        {}, R"(A request is a JSON object with its name in it, such as {"request": "run"}.)"};
    const auto job = std::make_shared<Job>();
    job->id = shared_.next_id++;
    job->name = name;
    job->head = frame_head(std::move(parsed), job->id, body.size());
    job->body = body;
    job->timeout = options.timeout;

    const Caller caller(shared_);
    const auto cancel = [this, &job] {
      job->cancel = true;
      shared_.wake();
    };
    const std::stop_callback on_stop(options.cancel, cancel);
    std::unique_lock lock(shared_.mutex);
    if (shared_.closing)
      return Diagnostic{DiagnosticKind::cancelled,
                        fmt::format("\"{}\" came too late: the program ends.", name), {}, {}};
    shared_.queue.push_back(job);
    shared_.wake();
    while (!job->result || !job->progress.empty()) {
      shared_.changed.wait(lock, [&] { return job->result || !job->progress.empty(); });
      while (!job->progress.empty()) {
        const Progress progress = std::move(job->progress.front());
        job->progress.pop_front();
        lock.unlock();
        try {
          if (options.progress) options.progress(progress);
        } catch (...) {
          cancel();  // not out of here: the worker still reads the caller's body
        }
        lock.lock();
      }
    }
    if (options.traceback != nullptr) *options.traceback = std::move(job->traceback);
    return std::move(*job->result);
  }

  LogPart log(std::uint64_t from) { return shared_.log.from(from); }

 private:
  /// Needs the mutex. The state changes here and not when the worker gets to it, so that who asks next knows.
  void ask_for_start() {
    if (shared_.report.state != State::not_started && shared_.report.state != State::died) return;
    shared_.wish_start = true;
    shared_.set_state(State::starting, "starting");
    shared_.wake();
  }

  const Options options_;
  Shared shared_;
  Worker worker_;
  std::thread thread_;
};

Client::Client(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Client::~Client() = default;
void Client::start() { impl_->start(); }
void Client::restart() { impl_->restart(); }
StateReport Client::state() const { return impl_->state(); }
std::optional<Hello> Client::hello() const { return impl_->hello(); }
Result<Hello> Client::wait_ready(std::stop_token cancel) { return impl_->wait_ready(cancel); }
Result<Reply> Client::request(std::string_view header, std::string_view body, const RequestOptions& options) {
  return impl_->request(header, body, options);
}
LogPart Client::log(std::uint64_t from) const { return impl_->log(from); }

}  // namespace pallascope::host
