// A host link that does what a test says: answers at once, waits until it is released or cancelled, dies, comes back.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/repl/host_link.h"

namespace pallascope::testing {

class ScriptedHost : public repl::HostLink {
 public:
  using Answer = std::function<Result<report::Json>(const report::Json&)>;

  explicit ScriptedHost(Answer answer = {}) : answer_(std::move(answer)) { status_ = ready_status(); }

  static repl::HostStatus ready_status() {
    repl::HostStatus status;
    status.state = repl::HostStatus::State::ready;
    status.text = "ready";
    status.starts = 1;
    status.python = "3.11.2", status.torch = "2.13.0", status.jax = "0.10.2", status.platform = "cpu";
    status.devices = {"TFRT_CPU_0"};
    return status;
  }

  /// What `check` answers for one output that is right, or wrong.
  static report::Json verdict(bool passed) {
    report::Json figures = {{"verdict", passed ? "passed" : "failed"}, {"dtype", "f32"},       {"sizes", {4, 8}},
                            {"strides", {8, 1}},                       {"elements", 32},       {"max_abs", passed ? 1e-7 : 2.5},
                            {"max_rel", passed ? 1e-6 : 1.0},          {"max_ulp", 2.0},       {"mismatched", passed ? 0 : 3},
                            {"rmse", 1e-8},                            {"rmse_eager", 1e-8},   {"nan", 0},
                            {"nan_eager", 0},                          {"inf", 0},             {"inf_eager", 0},
                            {"flushed", 0},                            {"reasons", report::Json::array()}};
    if (!passed) figures["reasons"] = {"3 of 32 elements differ by more than the tolerance"};
    return {{"verdict", passed ? "passed" : "failed"},
            {"platform", "cpu"},
            {"jax", "0.10.2"},
            {"interpret", true},
            {"seconds", 0.25},
            {"inputs_made", "2 random (seed 0)"},
            {"outputs", report::Json::array({{{"index", 0},
                                              {"kind", "output"},
                                              {"name", "out"},
                                              {"dtype", "f32"},
                                              {"sizes", {4, 8}},
                                              {"verdict", passed ? "passed" : "failed"},
                                              {"worst_mode", "debug"},
                                              {"modes", {{"debug", figures}, {"steady", figures}}}}})}};
  }

  void start() override {}
  void restart() override {
    const std::lock_guard lock(mutex_);
    status_ = ready_status();
    status_.starts = ++starts_;
    dead_ = false;
  }

  Result<report::Json> request(const report::Json& header, const repl::Progress& progress,
                               std::stop_token cancel) override {
    std::unique_lock lock(mutex_);
    requests_.push_back(header);
    if (dead_) {
      return Diagnostic{DiagnosticKind::host_unavailable, "the Python host ended", "", "restart it"};
    }
    status_.busy = true;
    lock.unlock();
    if (progress) progress("running kernel 3 of 9", 0.33);
    lock.lock();
    // Polled, since a stop token cannot wake a condition variable of the standard kind.
    while (held_ && !dead_ && !cancel.stop_requested()) changed_.wait_for(lock, std::chrono::milliseconds(2));
    status_.busy = false;
    if (cancel.stop_requested()) return Diagnostic{DiagnosticKind::cancelled, "cancelled", "", ""};
    if (dead_) {
      return Diagnostic{DiagnosticKind::host_died, "the Python host was killed by signal 11", "", "run it again"};
    }
    const Answer answer = answer_;
    lock.unlock();
    if (answer) return answer(header);
    return verdict(true);
  }

  [[nodiscard]] repl::HostStatus status() const override {
    const std::lock_guard lock(mutex_);
    return status_;
  }
  [[nodiscard]] repl::HostLog log(std::uint64_t from) const override {
    const std::lock_guard lock(mutex_);
    return {from < log_.size() ? log_.substr(from) : "", log_.size()};
  }

  // What a test does; any thread.
  /// Requests wait from now on, until `release`.
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  /// The process ends: what is waited for fails, and so does all until `restart`.
  void die() {
    const std::lock_guard lock(mutex_);
    dead_ = true;
    status_ = {};
    status_.state = repl::HostStatus::State::died;
    status_.text = "the Python host was killed by signal 11";
    status_.starts = starts_;
    changed_.notify_all();
  }
  void print(const std::string& text) {
    const std::lock_guard lock(mutex_);
    log_ += text;
  }
  void set_answer(Answer answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  [[nodiscard]] std::vector<report::Json> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Answer answer_;
  std::vector<report::Json> requests_;
  repl::HostStatus status_;
  std::string log_;
  int starts_ = 1;
  bool held_ = false, dead_ = false;
};

}  // namespace pallascope::testing
