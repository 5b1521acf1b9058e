#include "python_bridge/client/worker.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "python_bridge/client/launch.h"
#include "python_bridge/client/protocol.h"

namespace pallascope::host {

namespace {

using Json = nlohmann::json;

constexpr int start_death_limit = 3;
// A turn of the loop reads or writes at most this many pieces of one stream (4 MiB in pieces of 64 KiB), so
// that a flood or a huge body cannot keep a cancel waiting.
constexpr int pieces_a_turn = 64;
// From the end of one of its streams to the end of a host that is ending anyway; not measured, generous.
constexpr std::chrono::seconds hang_up_limit{1};
// A killed process is gone in milliseconds unless a driver holds it.
constexpr std::chrono::seconds kill_limit{5};

Diagnostic cancelled(std::string_view name, std::string_view how) {
  return {DiagnosticKind::cancelled, fmt::format("\"{}\" was cancelled {}.", name, how), {}, {}};
}

double seconds(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

Shared::Shared() : wake_event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  PALLASCOPE_CHECK(wake_event.open(), std::strerror(errno));
}

void Shared::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_event.get(), &one, sizeof one);
}

void Shared::set_state(State state, std::string text) {
  report.state = state;
  report.text = std::move(text);
  changed.notify_all();
}

Worker::Worker(const Options& options, Shared& shared)
    : options_(options), shared_(shared), embedded_(options.embedded) {}

void Worker::run() {
  // Signals are for the app's own threads. It also makes a write to a host that is gone end in EPIPE instead
  // of SIGPIPE, without changing how the process as a whole treats that signal.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  while (follow_wishes()) {
    wait_for_something();
    for (int i = 0; i < pieces_a_turn && read_log(); ++i) {}
    read_output();
    write_input();
    if (process_)
      if (const auto ending = process_->ended()) on_ended(*ending);
  }
  close_down();
}

// ---- requests ----

/// Does what callers asked for since the last look. False when the client is being destroyed.
bool Worker::follow_wishes() {
  std::deque<JobPointer> given_up;
  bool restart = false;
  bool start = false;
  {
    const std::lock_guard lock(shared_.mutex);
    if (shared_.closing) return false;
    restart = std::exchange(shared_.wish_restart, false);
    start = std::exchange(shared_.wish_start, false);
    std::erase_if(shared_.queue, [&](const JobPointer& job) {
      const bool gone = job->cancel;
      if (gone) given_up.push_back(job);
      return gone;
    });
  }
  for (const JobPointer& job : given_up) finish(job, cancelled(job->name, "before it was its turn"));

  if (restart) {
    drop_process("it is started again on request");
    failed_ = false;
    start_deaths_ = 0;
    embedded_ = options_.embedded;
    start_process("starting again");
    if (const JobPointer job = std::exchange(running_, nullptr))
      finish(job, cancelled(job->name, "because the host was started again"));
  }
  check_deadlines();
  if (failed_) {
    for (const JobPointer& job : take_queue()) {
      const std::lock_guard lock(shared_.mutex);
      job->result = shared_.failure;
      shared_.changed.notify_all();
    }
    return true;
  }
  if (!process_ && (start || has_queue())) start_process("starting");
  if (process_ && !hello_job_ && !running_ && !hang_up_deadline_) send_next();
  return true;
}

void Worker::check_deadlines() {
  const auto now = Clock::now();
  if (running_ && running_->cancel) {
    give_up_running(cancelled(running_->name, "while it ran; the host was killed and is started again"));
  } else if (running_ && running_->deadline && now >= *running_->deadline) {
    give_up_running({DiagnosticKind::timed_out,
                     fmt::format("\"{}\" took longer than {} s; the host was killed and is started again.",
                                 running_->name, seconds(*running_->timeout)),
                     {}, "Allow more time, or look at the host's log for where it hangs."});
  }
  if (hello_job_ && now >= start_deadline_) {
    const std::string how = fmt::format("no answer within {} s", seconds(options_.start_limit));
    drop_process(how);
    on_start_death(how);
  }
  if (hang_up_deadline_ && now >= *hang_up_deadline_) on_protocol_error("it closed a stream and went on");
}

void Worker::send_next() {
  {
    const std::lock_guard lock(shared_.mutex);
    // What was asked after `restart` is for the new host.
    if (shared_.queue.empty() || shared_.wish_restart) return;
    running_ = std::move(shared_.queue.front());
    shared_.queue.pop_front();
    shared_.report.busy = true;
  }
  // Capped at a year, because adding the largest duration to a time overflows.
  if (running_->timeout)
    running_->deadline =
        Clock::now() + std::min<std::chrono::milliseconds>(*running_->timeout, std::chrono::hours(8760));
  begin_writing(*running_);
}

/// Ends the running request and its host, and starts the next one at once: a person is waiting.
void Worker::give_up_running(const Diagnostic& problem) {
  const JobPointer job = std::exchange(running_, nullptr);
  drop_process(diagnostic_name(problem.kind));
  // First the new state, then the answer: who asks for the state next must not see the old host.
  start_process("starting again: " + std::string(diagnostic_name(problem.kind)));
  finish(job, problem);
}

void Worker::finish(const JobPointer& job, Result<Reply> result, std::string traceback) {
  const std::lock_guard lock(shared_.mutex);
  job->traceback = std::move(traceback);
  job->result = std::move(result);
  shared_.changed.notify_all();
}

std::deque<JobPointer> Worker::take_queue() {
  const std::lock_guard lock(shared_.mutex);
  return std::exchange(shared_.queue, {});
}

bool Worker::has_queue() {
  const std::lock_guard lock(shared_.mutex);
  return !shared_.queue.empty();
}

void Worker::close_down() {
  if (process_ && !running_ && !hello_job_) {
    Job goodbye;
    goodbye.head = frame_head({{"request", "shutdown"}}, shared_.next_id++, 0);
    begin_writing(goodbye);
    write_input();
    writing_ = nullptr;
    process_->input.reset();  // the end of its input, in case the request did not fit
    const auto end = Clock::now() + options_.shutdown_limit;
    while (Clock::now() < end && !process_->wait(std::chrono::milliseconds(10)))
      for (const Descriptor* stream : {&process_->output, &process_->error})
        while (read(stream->get(), buffer_.data(), buffer_.size()) > 0) {}  // a full pipe would keep it
  }
  drop_process("the program ends");
  if (running_) finish(running_, cancelled(running_->name, "because the program ends"));
  running_.reset();
  for (const JobPointer& job : take_queue()) finish(job, cancelled(job->name, "because the program ends"));
}

// ---- starting ----

void Worker::start_process(const std::string& why) {
  if (const auto problem = cannot_start(options_, embedded_)) {
    fail(*problem);
    return;
  }
  const Command command = host_command(options_, embedded_);
  auto started = Process::start(command);
  if (!started) {
    Diagnostic problem = started.error();
    problem.remedy = embedded_ ? host_remedy : python_remedy(options_);
    fail(problem);
    return;
  }
  process_ = std::move(*started);
  ++generation_;
  reader_ = {};
  output_open_ = error_open_ = true;
  log_begin_ = shared_.log.append(fmt::format("[host {} started: {}]\n", process_->pid(),
                                              fmt::join(command.arguments, " ")));
  hello_job_ = std::make_shared<Job>();
  hello_job_->id = shared_.next_id++;
  hello_job_->head = frame_head({{"request", "hello"}, {"protocol", protocol_version}}, hello_job_->id, 0);
  start_deadline_ = Clock::now() + options_.start_limit;
  begin_writing(*hello_job_);
  const std::lock_guard lock(shared_.mutex);
  shared_.report.pid = process_->pid();
  shared_.report.starts += 1;
  shared_.report.embedded = embedded_;
  shared_.set_state(State::starting, why);
}

/// The host cannot be started; every request says so until `restart`.
void Worker::fail(const Diagnostic& problem) {
  failed_ = true;
  shared_.log.append(fmt::format("[no host: {}]\n", problem.message));
  const std::lock_guard lock(shared_.mutex);
  shared_.failure = problem;
  shared_.set_state(State::failed, problem.message);
}

/// Needs the dead process gone.
void Worker::on_start_death(const std::string& how) {
  ++start_deaths_;
  if (start_deaths_ < start_death_limit) {
    start_process("starting again after " + how);
    return;
  }
  fail({DiagnosticKind::host_unavailable,
        fmt::format("The Python host ended {} times while it started, the last time with {}.{}", start_death_limit,
                    how, shared_.log.last_words(log_begin_)),
        {}, python_remedy(options_)});
}

void Worker::on_hello(const Json& reply) {
  if (!is_ok(reply)) {
    Json error = object_of(reply, "error");
    error["message"] = "Python cannot serve as a host: " + text_of(error, "message");
    refuse(error);
    return;
  }
  hello_job_.reset();
  Hello hello = read_hello(object_of(reply, "result"));
  if (hello.protocol != protocol_version) {
    drop_process("it speaks another version of the protocol");
    fail({DiagnosticKind::host_unavailable,
          fmt::format("The Python package speaks version {} of the host protocol, and this program version {}.",
                      hello.protocol, protocol_version),
          {}, "Build the program and take the Python package from the same checkout."});
    return;
  }
  start_deaths_ = 0;
  const std::lock_guard lock(shared_.mutex);
  shared_.hello = std::move(hello);
  shared_.set_state(State::ready, describe(*shared_.hello));
}

/// The host itself says that it cannot serve: torch is missing, or Python has another version.
void Worker::refuse(const Json& error) {
  Diagnostic problem = read_error(error);
  if (const std::string traceback = text_of(error, "traceback"); !traceback.empty())
    shared_.log.append(traceback + "\n");
  drop_process("it cannot serve");
  if (embedded_ && options_.external_if_version_differs && text_of(error, "reason") == "python_version") {
    shared_.log.append(fmt::format("[{} So it runs the server itself.]\n", problem.message));
    embedded_ = false;
    start_process("starting " + options_.python.string());
    return;
  }
  problem.kind = DiagnosticKind::host_unavailable;
  if (problem.remedy.empty()) problem.remedy = python_remedy(options_);
  fail(problem);
}

// ---- ending ----

/// Kills the process, if there is one, and forgets it; what it was asked stays with the caller of this.
void Worker::drop_process(std::string_view why) {
  if (!process_) return;
  const pid_t pid = process_->pid();
  process_->kill();
  const auto ending = process_->wait(kill_limit);
  for (int i = 0; i < pieces_a_turn && read_log(); ++i) {}
  process_.reset();
  hello_job_.reset();
  writing_ = nullptr;
  hang_up_deadline_.reset();
  shared_.log.append(fmt::format("[host {} ended with {}: {}]\n", pid,
                                 ending ? ending->text() : "no end yet, because it hangs in the kernel", why));
  const std::lock_guard lock(shared_.mutex);
  shared_.report.pid = 0;
  shared_.report.busy = false;
  shared_.hello.reset();
}

void Worker::on_ended(const Ending& ending) {
  // What it wrote before it ended is still in the pipes, and may be the answer.
  const int generation = generation_;
  for (int i = 0; i < pieces_a_turn && read_log(); ++i) {}
  while (process_ && generation_ == generation && read_output()) {}
  if (!process_ || generation_ != generation) return;  // its last message was an end of another kind
  std::string how = ending.text();
  if (!reader_.between_messages())
    how += fmt::format("; not our protocol: its last message broke off after {}", reader_.progress());
  end_with(how);
}

void Worker::on_protocol_error(const std::string& what) {
  // Let what it says on standard error arrive: often that explains it.
  process_->wait(std::chrono::milliseconds(100));
  for (int i = 0; i < pieces_a_turn && read_log(); ++i) {}
  end_with("not our protocol: " + what);
}

/// The host ended, or has to, for a reason that is its own.
void Worker::end_with(const std::string& how) {
  const bool starting = hello_job_ != nullptr;
  const std::string words = shared_.log.last_words(log_begin_);
  const JobPointer job = std::exchange(running_, nullptr);
  if (job && take_back_unread(job)) {
    drop_process(how);
    return;  // the queue is not empty, so the next turn starts a host
  }
  drop_process(how);
  if (starting) {
    on_start_death(how);
  } else if (job) {
    start_process("starting again after " + how);
    finish(job, Diagnostic{DiagnosticKind::host_died,
                           fmt::format("The Python host died while it worked on \"{}\": {}.{}", job->name, how, words),
                           {}, "It is started again; nothing in this program was lost."});
  } else {
    const std::lock_guard lock(shared_.mutex);
    shared_.set_state(State::died, fmt::format("The Python host died while it was idle: {}.{}", how, words));
  }
}

/// A host can die idle in the same moment in which a request is sent to it. Such a request has nothing to do
/// with the death when the host has not read all of its header, as what is left in the pipe tells: then it goes
/// back into the queue, once. (The prefix is often gone: a read that was already waiting takes it along.)
bool Worker::take_back_unread(const JobPointer& job) {
  int unread = 0;
  if (job->sent_before || ioctl(process_->input.get(), FIONREAD, &unread) != 0) return false;
  if (written_ - static_cast<std::size_t>(unread) >= job->head.size()) return false;
  job->sent_before = true;
  job->deadline.reset();
  const std::lock_guard lock(shared_.mutex);
  shared_.queue.push_front(job);
  return true;
}

// ---- streams ----

void Worker::wait_for_something() {
  std::array<pollfd, 5> events{};
  nfds_t count = 0;
  const auto add = [&](int fd, short what) { events[count++] = {fd, what, 0}; };
  std::optional<Clock::time_point> until;
  const auto not_after = [&](Clock::time_point time) { until = until ? std::min(*until, time) : time; };
  add(shared_.wake_event.get(), POLLIN);
  if (process_) {
    if (output_open_) add(process_->output.get(), POLLIN);
    if (error_open_) add(process_->error.get(), POLLIN);
    if (writing_ != nullptr) add(process_->input.get(), POLLOUT);
    if (process_->ended_event.open()) {
      add(process_->ended_event.get(), POLLIN);
    } else {
      not_after(Clock::now() + std::chrono::milliseconds(20));
    }
    if (hello_job_) not_after(start_deadline_);
    if (running_ && running_->deadline) not_after(*running_->deadline);
    if (hang_up_deadline_) not_after(*hang_up_deadline_);
  } else if (has_queue()) {
    return;  // the host ended or failed in this turn, after the wake event for these had been used up
  }
  int timeout = -1;
  if (until) {
    // Rounded up, or the last millisecond would be spent spinning; capped, because poll counts in int.
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now()).count();
    timeout = static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
  }
  poll(events.data(), count, timeout);
  std::uint64_t ignored = 0;
  [[maybe_unused]] const auto read_bytes = read(shared_.wake_event.get(), &ignored, sizeof ignored);
}

/// One piece of standard error into the log. False when there is nothing more now.
bool Worker::read_log() {
  if (!process_ || !error_open_) return false;
  const ssize_t count = read(process_->error.get(), buffer_.data(), buffer_.size());
  if (count > 0) {
    shared_.log.append(std::string_view(buffer_.data(), static_cast<std::size_t>(count)));
    return true;
  }
  if (count < 0 && errno == EINTR) return true;
  if (count == 0 || errno != EAGAIN) error_open_ = false;
  return false;
}

/// Reads what is there, up to one whole message, and handles that. False when there is nothing more now.
bool Worker::read_output() {
  for (int i = 0; i < pieces_a_turn; ++i) {
    if (!process_ || !output_open_) return false;
    const std::span<char> space = reader_.space();
    const ssize_t count = read(process_->output.get(), space.data(), space.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return false;
    if (count <= 0) {
      // Usually it has ended; if it only closed the stream it gets a moment to end.
      output_open_ = false;
      hang_up_deadline_ = Clock::now() + hang_up_limit;
      return false;
    }
    reader_.filled(static_cast<std::size_t>(count));
    if (!reader_.error().empty()) {
      on_protocol_error(reader_.error());
      return false;
    }
    if (auto frame = reader_.take()) {
      on_frame(std::move(*frame));
      return true;
    }
  }
  return true;
}

void Worker::begin_writing(const Job& job) {
  writing_ = &job;
  written_ = 0;
}

void Worker::write_input() {
  for (int i = 0; i < pieces_a_turn && process_ && writing_ != nullptr; ++i) {
    const std::string_view head = writing_->head;
    const std::string_view rest =
        written_ < head.size() ? head.substr(written_) : writing_->body.substr(written_ - head.size());
    if (rest.empty()) {
      writing_ = nullptr;
      return;
    }
    const ssize_t count = write(process_->input.get(), rest.data(), rest.size());
    if (count > 0) {
      written_ += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      // It no longer reads: it is ending, or has to. Its output and its end tell more than EPIPE does.
      writing_ = nullptr;
      if (!hang_up_deadline_) hang_up_deadline_ = Clock::now() + hang_up_limit;
      return;
    }
  }
}

void Worker::on_frame(Frame frame) {
  const Json message = Json::parse(frame.header, nullptr, false);
  if (!message.is_object()) {
    on_protocol_error(fmt::format("\"{}\" is not JSON", printable(frame.header, 60)));
    return;
  }
  const std::int64_t id = number_of(message, "id", -1);
  const Job* expected = hello_job_ ? hello_job_.get() : running_.get();
  if (hello_job_ && id == 0 && message.contains("error")) {
    refuse(object_of(message, "error"));  // said before any request was read
  } else if (expected == nullptr || id != expected->id) {
    on_protocol_error(fmt::format("an answer to nothing that was asked, \"{}\"", printable(frame.header, 60)));
  } else if (message.contains("event")) {
    on_event(message);
  } else if (writing_ != nullptr) {
    on_protocol_error("an answer to a request that it has not read to the end");
  } else if (hello_job_) {
    on_hello(message);
  } else {
    on_reply(message, std::move(frame.body));
  }
}

void Worker::on_event(const Json& message) {
  if (text_of(message, "event") != "progress") return;  // a later version may have more
  Progress progress = read_progress(message);
  const std::lock_guard lock(shared_.mutex);
  if (hello_job_) {
    shared_.set_state(State::starting, progress.text);
  } else {
    running_->progress.push_back(std::move(progress));
    shared_.changed.notify_all();
  }
}

void Worker::on_reply(const Json& message, std::string body) {
  const JobPointer job = std::exchange(running_, nullptr);
  {
    const std::lock_guard lock(shared_.mutex);
    shared_.report.busy = false;
  }
  if (is_ok(message)) {
    const auto result = message.find("result");
    finish(job, Reply{result == message.end() ? "{}" : dump(*result), std::move(body)});
  } else {
    const Json error = object_of(message, "error");
    finish(job, read_error(error), text_of(error, "traceback"));
  }
}

}  // namespace pallascope::host
