// The client on a server of our own that misbehaves on request: no torch, no embedded Python.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <random>

#include "tests/unit/client/support.h"

namespace pallascope::host::test {
namespace {

using Clock = std::chrono::steady_clock;

TEST(Client, AnswersWithTheBodyOfTenMebibytes) {
  Client client(fake());
  std::string body(10 << 20, '\0');
  std::mt19937 random(1);  // NOLINT: the same bytes each time
  for (char& byte : body) byte = static_cast<char>(random());
  const auto reply = client.request(R"({"request": "echo", "big": 9007199254740993, "id": "not ours"})", body);
  ASSERT_TRUE(reply.ok()) << to_string(reply.error());
  EXPECT_TRUE(reply->body == body);
  EXPECT_EQ(Json::parse(reply->result)["big"], 9007199254740993);
  EXPECT_TRUE(Json::parse(reply->result)["id"].is_number());
  EXPECT_EQ(client.state().starts, 1);
}

TEST(Client, StartReturnsAtOnceAndHelloTellsTheVersions) {
  Client client(fake({"start=slow"}));
  EXPECT_EQ(client.state().state, State::not_started);
  EXPECT_EQ(client.state().pid, 0);
  client.start();
  EXPECT_EQ(client.state().state, State::starting);
  EXPECT_FALSE(client.hello().has_value());
  const auto hello = client.wait_ready();
  ASSERT_TRUE(hello.ok()) << to_string(hello.error());
  EXPECT_EQ(hello->protocol, 1);
  EXPECT_EQ(hello->torch, "0.0");
  EXPECT_EQ(hello->jax, "0.1");
  EXPECT_EQ(hello->platform, "cpu");
  EXPECT_EQ(hello->devices, (std::vector<std::string>{"cpu:0", R"({"id":1})"}));
  EXPECT_EQ(hello->pid, client.state().pid);
  EXPECT_EQ(client.state().state, State::ready);
  EXPECT_EQ(client.state().text, "Python " + hello->python + ", torch 0.0, jax 0.1 on cpu");
  EXPECT_FALSE(client.state().embedded);
  EXPECT_TRUE(client.hello().has_value());
  client.start();
  expect_works(client);
  EXPECT_EQ(client.state().starts, 1);
}

TEST(Client, OurFoldersComeFirstOnThePath) {
  Options options = fake();
  options.paths = {"/a folder of ours", "/another"};
  Client client(options);
  const auto hello = client.wait_ready();
  ASSERT_TRUE(hello.ok());
  const auto path = Json::parse(hello->json)["path"].get<std::vector<std::string>>();
  ASSERT_GE(path.size(), 2U);
  EXPECT_EQ(path[0], "/a folder of ours");
  EXPECT_EQ(path[1], "/another");
}

TEST(Client, TheHostHoldsOnlyItsStreams) {
  // A library's descriptor without close-on-exec.
  const int ours = fcntl(2, F_DUPFD, 100);
  Client client(fake());
  const auto reply = client.request(named("fds"));
  ASSERT_TRUE(reply.ok());
  const Json result = Json::parse(reply->result);
  for (const int fd : result["fds"]) EXPECT_NE(fd, ours);
  EXPECT_EQ(result["group"], result["pid"]) << "Ctrl-C in the terminal is not for the host";
  EXPECT_GE(result["oom"], 500);
  EXPECT_NE(result["blocked"].dump().find("0000000000000000"), std::string::npos) << result["blocked"];
  close(ours);
}

TEST(Client, ProgressComesInOrderOnTheCallersThread) {
  Client client(fake());
  std::vector<Progress> seen;
  RequestOptions options;
  const auto caller = std::this_thread::get_id();
  options.progress = [&](const Progress& progress) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    seen.push_back(progress);
  };
  const auto reply = client.request(R"({"request": "progress", "steps": 50})", {}, options);
  ASSERT_TRUE(reply.ok()) << to_string(reply.error());
  ASSERT_EQ(seen.size(), 50U);
  EXPECT_EQ(seen[0].text, "step 0");
  EXPECT_EQ(seen[49].text, "step 49");
  EXPECT_DOUBLE_EQ(seen[25].fraction, 0.5);
}

TEST(Client, ACallbackThatThrowsCancels) {
  Client client(fake());
  RequestOptions options;
  options.progress = [](const Progress&) { throw 1; };
  // The answer may have come before the cancel; both are fine, an exception out of here is not.
  const auto reply = client.request(R"({"request": "progress", "steps": 3})", {}, options);
  EXPECT_TRUE(reply.ok() || reply.error().kind == DiagnosticKind::cancelled);
  expect_works(client);
}

TEST(Client, AnErrorOfPythonIsADiagnostic) {
  Client client(fake());
  std::string traceback = "old";
  RequestOptions options;
  options.traceback = &traceback;
  auto reply = client.request(
      R"({"request": "error", "error": {"kind": "host_error", "message": "ValueError: no", "traceback": "File x"}})",
      {}, options);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, DiagnosticKind::host_error);
  EXPECT_EQ(reply.error().message, "ValueError: no");
  EXPECT_EQ(traceback, "File x");
  reply = client.request(R"({"request": "error", "error": {"kind": "not_found", "message": "m", "where": "w"}})", {},
                         options);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, DiagnosticKind::not_found);
  EXPECT_EQ(reply.error().where, "w");
  EXPECT_EQ(traceback, "");
  reply = client.request(named("odd"));
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, DiagnosticKind::host_error);
  expect_works(client);
  EXPECT_EQ(client.state().starts, 1);
}

TEST(Client, WhatIsNoRequestIsNotSent) {
  Client client(fake());
  for (const char* header : {"", "{", "[]", "{}", R"({"request": ""})", "{\"request\": \"\xff\"}"}) {
    const auto reply = client.request(header);
    ASSERT_FALSE(reply.ok()) << header;
    EXPECT_EQ(reply.error().kind, DiagnosticKind::invalid_argument);
  }
  EXPECT_EQ(client.state().starts, 0);
}

TEST(Client, ASegmentationFaultIsReported) {
  Client client(fake());
  expect_failure(client, named("segfault"), DiagnosticKind::host_died,
                 {"\"segfault\"", "signal 11 (segmentation fault)", "fake_server.py"});
  EXPECT_EQ(client.state().starts, 2);
}

TEST(Client, AnAbortIsReported) {
  Client client(fake());
  expect_failure(client, named("abort"), DiagnosticKind::host_died, {"signal 6 (abort)"});
}

TEST(Client, AnExitIsReported) {
  Client client(fake());
  expect_failure(client, named("exit"), DiagnosticKind::host_died, {"exit status 7"});
}

TEST(Client, TheLastWordsAreReported) {
  Client client(fake());
  expect_failure(client, named("die_with_words"), DiagnosticKind::host_died,
                 {"exit status 9", "Its last words:\n  first words\n  famous \ufffd last words"});
  EXPECT_NE(client.log().text.find("ended with exit status 9"), std::string::npos) << client.log().text;
}

TEST(Client, GarbageOnTheStreamIsReported) {
  Client client(fake());
  expect_failure(client, named("garbage"), DiagnosticKind::host_died, {"not our protocol: \"hell"});
  expect_failure(client, R"({"request": "garbage", "text": "four"})", DiagnosticKind::host_died,
                 {"not our protocol: \"four\""});
  expect_failure(client, named("not_json"), DiagnosticKind::host_died, {"not our protocol: \"{no json}\""});
  expect_failure(client, named("wrong_id"), DiagnosticKind::host_died, {"not our protocol: an answer to nothing"});
}

TEST(Client, AMessageThatBreaksOffIsReported) {
  Client client(fake());
  expect_failure(client, named("truncated"), DiagnosticKind::host_died,
                 {"exit status 0; not our protocol: its last message broke off after"});
}

TEST(Client, AClosedStreamIsReported) {
  Client client(fake());
  expect_failure(client, named("hang_up"), DiagnosticKind::host_died, {"not our protocol: it closed a stream"});
}

TEST(Client, ARequestThatIsNotReadToItsEndIsReported) {
  // 16 MiB do not fit into the pipe, so the client is still writing; a write to nobody must not end us either.
  const std::string body(16 << 20, 'x');
  using Case = std::pair<const char*, const char*>;
  for (const auto& [setting, words] : {Case("answers=echo", "an answer to a request that it has not read to the end"),
                                       Case("exits=echo", "exit status 6"),
                                       Case("closes=echo", "not our protocol: it closed a stream")}) {
    Client client(fake({setting}));
    const auto reply = client.request(named("echo"), body);
    ASSERT_FALSE(reply.ok()) << setting;
    EXPECT_EQ(reply.error().kind, DiagnosticKind::host_died);
    EXPECT_NE(reply.error().message.find(words), std::string::npos) << reply.error().message;
    EXPECT_TRUE(client.request(named("noise")).ok());
  }
}

TEST(Client, AnAnswerJustBeforeTheEndCounts) {
  Client client(fake());
  auto reply = client.request(R"({"request": "answer_and_exit", "size": 3000000})");
  ASSERT_TRUE(reply.ok()) << to_string(reply.error());
  EXPECT_EQ(reply->result, R"({"last":true})");
  EXPECT_EQ(reply->body.size(), 3'000'000U);
  EXPECT_TRUE(eventually([&] { return client.state().state == State::died; }));
  EXPECT_NE(client.state().text.find("exit status 5"), std::string::npos) << client.state().text;
  // So much before it that the host has ended long before the answer is reached.
  reply = client.request(R"({"request": "answer_and_exit", "events": 10000})");
  ASSERT_TRUE(reply.ok()) << to_string(reply.error());
  expect_works(client);
}

TEST(Client, NoiseGoesToTheLog) {
  Client client(fake());
  ASSERT_TRUE(client.request(named("noise")).ok());
  EXPECT_TRUE(eventually([&] { return client.log().text.find("on its descriptor") != std::string::npos; }));
  EXPECT_NE(client.log().text.find("noise on standard output"), std::string::npos);
  const auto end = client.log().end;
  ASSERT_TRUE(client.request(R"({"request": "stderr", "text": "only this"})").ok());
  EXPECT_TRUE(eventually([&] { return client.log(end).text == "only this"; })) << client.log(end).text;
}

TEST(Client, AFloodOfStandardErrorNeitherBlocksNorGrows) {
  Client client(fake());
  const auto reply = client.request(R"({"request": "stderr", "text": "0123456789abcde\n", "times": 1000000})");
  ASSERT_TRUE(reply.ok()) << to_string(reply.error());
  EXPECT_TRUE(eventually([&] { return client.log().end > 16'000'000; }));
  EXPECT_EQ(client.log().text.size(), 64U << 10);
  expect_works(client);
}

TEST(Client, ATimeoutKillsAndStartsAgain) {
  Client client(fake());
  ASSERT_TRUE(client.wait_ready().ok());
  const auto pid = client.state().pid;
  RequestOptions options;
  options.timeout = 200ms;
  const auto before = Clock::now();
  const auto reply = client.request(named("hang"), {}, options);
  EXPECT_GE(Clock::now() - before, 200ms);
  EXPECT_LT(Clock::now() - before, 10s);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, DiagnosticKind::timed_out);
  EXPECT_NE(reply.error().message.find("\"hang\" took longer than 0.2 s"), std::string::npos) << reply.error().message;
  EXPECT_TRUE(is_gone(pid));
  EXPECT_NE(client.state().state, State::died);
  expect_works(client);
}

TEST(Client, TheTimeOfTheStartIsNotCounted) {
  Client client(fake({"start=slow"}));
  RequestOptions options;
  options.timeout = 900ms;
  const auto reply = client.request(named("echo"), {}, options);
  EXPECT_TRUE(reply.ok()) << to_string(reply.error());
  options.timeout = std::chrono::milliseconds::max();
  EXPECT_TRUE(client.request(named("echo"), {}, options).ok());
}

TEST(Client, ACancelFromAnotherThreadKillsAndStartsAgain) {
  Client client(fake());
  ASSERT_TRUE(client.wait_ready().ok());
  const auto pid = client.state().pid;
  std::stop_source source;
  std::thread other([&] {
    EXPECT_TRUE(eventually([&] { return client.state().busy; }));
    source.request_stop();
  });
  RequestOptions options;
  options.cancel = source.get_token();
  const auto reply = client.request(named("hang"), {}, options);
  other.join();
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, DiagnosticKind::cancelled);
  EXPECT_TRUE(is_gone(pid));
  EXPECT_FALSE(client.state().busy);
  expect_works(client);
  EXPECT_EQ(client.state().starts, 2);
}

TEST(Client, ACancelledRequestThatWaitsIsNotSent) {
  Client client(fake());
  std::stop_source source;
  RequestOptions options;
  options.cancel = source.get_token();
  std::stop_source first_source;
  RequestOptions first_options;
  first_options.cancel = first_source.get_token();
  auto first = std::async(std::launch::async, [&] { return client.request(named("hang"), {}, first_options); });
  EXPECT_TRUE(eventually([&] { return client.state().busy; }));
  auto second = std::async(std::launch::async, [&] { return client.request(named("echo"), {}, options); });
  std::this_thread::sleep_for(50ms);
  source.request_stop();
  const auto reply = second.get();
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, DiagnosticKind::cancelled);
  EXPECT_EQ(client.state().starts, 1) << "the host works on something else";
  first_source.request_stop();
  EXPECT_FALSE(first.get().ok());
  // Stopped before it was made.
  EXPECT_FALSE(client.request(named("echo"), {}, options).ok());
  expect_works(client);
}

TEST(Client, RequestsOfManyThreadsTakeTurns) {
  Client client(fake());
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string body = std::to_string(t * 1000 + i);
        const auto reply = client.request(named("echo"), body);
        if (reply.ok() && reply->body == body) ++good;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 160);
  EXPECT_EQ(client.state().starts, 1);
}

TEST(Client, DeathsBetweenRequestsOfManyThreadsHitOnlyTheGuilty) {
  Client client(fake());
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  std::atomic<int> died = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        const bool guilty = (t + i) % 4 == 0;
        const auto reply = client.request(named(guilty ? "exit" : "echo"));
        if (!guilty && reply.ok()) ++good;
        if (guilty && !reply.ok() && reply.error().kind == DiagnosticKind::host_died) ++died;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 15);
  EXPECT_EQ(died, 5);
}

TEST(Client, KilledFromOutsideWhileIdle) {
  Client client(fake());
  ASSERT_TRUE(client.wait_ready().ok());
  kill_host(client);
  EXPECT_TRUE(eventually([&] { return client.state().state == State::died; }));
  EXPECT_NE(client.state().text.find("while it was idle: signal 9"), std::string::npos) << client.state().text;
  EXPECT_EQ(client.state().pid, 0);
  EXPECT_FALSE(client.hello().has_value());
  EXPECT_EQ(client.state().starts, 1) << "an idle host is not started before it is needed";
  expect_works(client);
  // And without waiting until the death was noticed: the request is no cause of it and does not suffer.
  for (int i = 0; i < 30; ++i) {
    kill_host(client);
    expect_works(client);
  }
  kill_host(client);
  EXPECT_TRUE(eventually([&] { return client.state().state == State::died; }));
  EXPECT_TRUE(client.wait_ready().ok());
}

TEST(Client, KilledFromOutsideWhileBusy) {
  Client client(fake());
  RequestOptions options;
  options.progress = [&](const Progress& progress) {
    EXPECT_EQ(progress.text, "hanging");
    EXPECT_LT(progress.fraction, 0);
    kill_host(client);
  };
  const auto reply = client.request(named("hang"), {}, options);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, DiagnosticKind::host_died);
  EXPECT_NE(reply.error().message.find("signal 9"), std::string::npos) << reply.error().message;
  expect_works(client);
}

TEST(Client, WhatTheHostLeftBehindGoesWithIt) {
  Client client(fake());
  const auto reply = client.request(named("child"));
  ASSERT_TRUE(reply.ok());
  const std::int64_t grandchild = Json::parse(reply->result)["pid"];
  EXPECT_FALSE(is_gone(grandchild));
  // The grandchild holds the streams open, so their end alone would never tell of the death.
  expect_failure(client, named("exit"), DiagnosticKind::host_died, {"exit status 7"});
  EXPECT_TRUE(eventually([&] { return is_gone(grandchild); }));
}

TEST(Client, RestartWhileBusyCancels) {
  Client client(fake());
  auto running = std::async(std::launch::async, [&] { return client.request(named("hang")); });
  EXPECT_TRUE(eventually([&] { return client.state().busy; }));
  client.restart();
  const auto reply = running.get();
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, DiagnosticKind::cancelled);
  expect_works(client);
  EXPECT_EQ(client.state().starts, 2);
}

TEST(Client, TheDestructorAsksAnIdleHostToLeave) {
  const std::string note = ::testing::TempDir() + "pallascope_client_note_" + std::to_string(getpid());
  std::filesystem::remove(note);
  std::int64_t pid = 0;
  {
    Client client(fake({"note=" + note}));
    ASSERT_TRUE(client.wait_ready().ok());
    pid = client.state().pid;
  }
  EXPECT_TRUE(is_gone(pid));
  EXPECT_TRUE(std::filesystem::exists(note));
  std::filesystem::remove(note);
}

TEST(Client, TheDestructorKillsAHostThatDoesNotLeave) {
  Options options = fake({"shutdown=deaf"});
  options.shutdown_limit = 100ms;
  std::int64_t pid = 0;
  const auto before = Clock::now();
  {
    Client client(options);
    ASSERT_TRUE(client.wait_ready().ok());
    pid = client.state().pid;
  }
  EXPECT_TRUE(is_gone(pid));
  EXPECT_LT(Clock::now() - before, 10s);
}

TEST(Client, TheDestructorCancelsWhatRunsAndWaits) {
  const auto before = Clock::now();
  auto client = std::make_unique<Client>(fake());
  const auto request = [c = client.get()](const char* name) {
    return std::async(std::launch::async, [c, name] { return c->request(named(name)); });
  };
  auto running = request("hang");
  EXPECT_TRUE(eventually([&] { return client->state().busy; }));
  auto waiting = request("echo");
  std::this_thread::sleep_for(50ms);
  const auto pid = client->state().pid;
  client.reset();
  for (auto* future : {&running, &waiting}) {
    const auto reply = future->get();
    ASSERT_FALSE(reply.ok());
    EXPECT_EQ(reply.error().kind, DiagnosticKind::cancelled);
  }
  EXPECT_TRUE(is_gone(pid));
  EXPECT_LT(Clock::now() - before, 10s);
}

TEST(Client, TheDestructorDoesNotWaitForAStart) {
  const auto before = Clock::now();
  {
    Client client(fake({"hello=hang"}));
    client.start();
    EXPECT_TRUE(eventually([&] { return client.state().pid != 0; }));
  }
  EXPECT_LT(Clock::now() - before, 10s);
  { const Client never_started(fake()); }
}

TEST(Client, TwentyDeathsLeaveNoZombieAndNoDescriptor) {
  const std::size_t descriptors_outside = open_descriptors();
  const std::size_t children_outside = children();
  {
    Client client(fake());
    expect_works(client);
    const std::size_t descriptors = open_descriptors();
    for (int i = 0; i < 20; ++i) {
      if (i % 4 == 3) {
        client.restart();
      } else {
        RequestOptions options;
        if (i % 4 == 2) options.timeout = 10ms;
        const std::array names = {"exit", "garbage", "hang"};
        EXPECT_FALSE(client.request(named(names[static_cast<std::size_t>(i % 4)]), {}, options).ok());
      }
      expect_works(client);
    }
    EXPECT_EQ(client.state().starts, 21);
    EXPECT_EQ(open_descriptors(), descriptors);
    EXPECT_EQ(children(), children_outside + 1);
  }
  EXPECT_EQ(open_descriptors(), descriptors_outside);
  EXPECT_EQ(children(), children_outside);
}

TEST(Client, TheHostDiesWithTheThreadThatOwnsIt) {
  // An app that is killed runs no destructor; the kernel has to end the host. The host here is busy, so the
  // end of its input alone would not do it.
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  const pid_t app = fork();
  if (app == 0) {
    Client client(fake());
    RequestOptions options;
    options.progress = [&](const Progress&) {
      const std::int64_t pid = client.state().pid;
      [[maybe_unused]] const auto written = write(fds[1], &pid, sizeof pid);
    };
    (void)client.request(named("hang"), {}, options);
    _exit(1);
  }
  std::int64_t host = 0;
  ASSERT_EQ(read(fds[0], &host, sizeof host), static_cast<ssize_t>(sizeof host));
  ASSERT_NE(host, 0);
  EXPECT_FALSE(is_gone(host));
  kill(app, SIGKILL);
  EXPECT_TRUE(eventually([&] { return is_gone(host); }));
  waitpid(app, nullptr, 0);
  close(fds[0]);
  close(fds[1]);
}

}  // namespace
}  // namespace pallascope::host::test
