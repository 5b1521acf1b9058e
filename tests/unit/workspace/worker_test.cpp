// One thread, a queue, and newer jobs in the place of older ones.
#include "app/workspace/worker.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace pallascope::workspace {
namespace {

using namespace std::chrono_literals;

/// Keeps a worker's thread until it is opened.
class Gate {
 public:
  Worker::Job job() {
    return [this](const std::stop_token&) {
      entered_ = true;
      while (!open_) std::this_thread::sleep_for(1ms);
    };
  }
  void wait_until_entered() const {
    while (!entered_) std::this_thread::sleep_for(1ms);
  }
  void open() { open_ = true; }

 private:
  std::atomic<bool> entered_ = false, open_ = false;
};

TEST(Worker, DoesJobsInTheirOrder) {
  Worker worker;
  std::vector<int> done;
  for (int k = 0; k < 100; ++k) worker.post([&done, k](const std::stop_token&) { done.push_back(k); });
  worker.wait_idle();
  ASSERT_EQ(done.size(), 100U);
  for (int k = 0; k < 100; ++k) EXPECT_EQ(done[static_cast<std::size_t>(k)], k);
}

TEST(Worker, AWaitingJobIsReplacedAndKeepsItsPlace) {
  Worker worker;
  Gate gate;
  std::string done;
  worker.post(gate.job());
  gate.wait_until_entered();
  worker.replace("a", [&](const std::stop_token&) { done += "1"; });
  worker.post([&](const std::stop_token&) { done += "x"; });
  worker.replace("b", [&](const std::stop_token&) { done += "b"; });
  worker.replace("a", [&](const std::stop_token&) { done += "2"; });
  worker.replace("a", [&](const std::stop_token&) { done += "3"; });
  EXPECT_FALSE(worker.idle());
  gate.open();
  worker.wait_idle();
  EXPECT_EQ(done, "3xb");
}

TEST(Worker, ARunningJobIsAskedToStopByANewerOneOfItsKindOnly) {
  Worker worker;
  std::atomic<bool> entered = false, stopped = false, newer = false;
  worker.replace("layout", [&](const std::stop_token& stop) {
    entered = true;
    while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
    stopped = true;
  });
  while (!entered) std::this_thread::sleep_for(1ms);
  worker.replace("other", [](const std::stop_token&) {});
  worker.post([](const std::stop_token&) {});
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(stopped);
  worker.replace("layout", [&](const std::stop_token& stop) { newer = !stop.stop_requested(); });
  worker.wait_idle();
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(newer);
}

TEST(Worker, WhatAJobHeldIsGoneBeforeTheNext) {
  Worker worker;
  auto held = std::make_shared<int>(1);
  std::weak_ptr<int> watch = held;
  bool gone = false;
  worker.post([held = std::move(held)](const std::stop_token&) {});
  worker.post([&](const std::stop_token&) { gone = watch.expired(); });
  worker.wait_idle();
  EXPECT_TRUE(gone);
}

TEST(Worker, EndsWithoutDoingWhatWaits) {
  std::atomic<int> done = 0;
  std::atomic<bool> entered = false;
  {
    Worker worker;
    worker.post([&](const std::stop_token& stop) {
      entered = true;
      while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
      ++done;
    });
    for (int k = 0; k < 10; ++k) worker.post([&](const std::stop_token&) { ++done; });
    while (!entered) std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace pallascope::workspace
