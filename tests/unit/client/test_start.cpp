// How the client starts hosts, on a server of our own: versions that differ, starts that fail, hang or die.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "tests/unit/client/support.h"

namespace pallascope::host::test {
namespace {

using Clock = std::chrono::steady_clock;

TEST(Client, AnotherProtocolVersionIsRefused) {
  Client client(fake({"protocol=2"}));
  const auto reply = client.request(named("echo"));
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, DiagnosticKind::host_unavailable);
  EXPECT_NE(reply.error().message.find("version 2 of the host protocol, and this program version 1"),
            std::string::npos) << reply.error().message;
  EXPECT_EQ(client.state().state, State::failed);
  EXPECT_EQ(client.state().pid, 0);
}

TEST(Client, AnImportThatFailsIsRefusedOnceAndForAll) {
  Client client(fake({"hello=error"}));
  const auto hello = client.wait_ready();
  ASSERT_FALSE(hello.ok());
  EXPECT_EQ(hello.error().kind, DiagnosticKind::host_unavailable);
  EXPECT_NE(hello.error().message.find("No module named 'torch'"), std::string::npos);
  EXPECT_NE(hello.error().remedy.find("pip install"), std::string::npos);
  EXPECT_NE(hello.error().remedy.find("PALLASCOPE_PYTHON"), std::string::npos);
  EXPECT_NE(client.log().text.find("Traceback: none"), std::string::npos);
  const auto reply = client.request(named("echo"));
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().message, hello.error().message);
  EXPECT_EQ(client.state().starts, 1) << "nothing changes by trying again";
}

TEST(Client, APythonThatIsNotThere) {
  Options options = fake();
  options.python = "/no/such/python";
  Client client(options);
  const auto reply = client.request(named("echo"));
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, DiagnosticKind::host_unavailable);
  EXPECT_NE(reply.error().message.find("/no/such/python"), std::string::npos);
  EXPECT_NE(reply.error().remedy.find("PALLASCOPE_PYTHON"), std::string::npos);
  EXPECT_EQ(client.state().state, State::failed);
}

TEST(Client, ARequestNeverWaitsForAHostThatCannotStart) {
  // The failure can fall on either side of the worker's taking note of the request; each has to answer it.
  Options options = fake();
  options.python = "/no/such/python";
  for (int i = 0; i < 100; ++i) {
    Client client(options);
    if (i % 4 == 0) client.start();
    if (i % 4 == 1) std::this_thread::sleep_for(2ms);  // until the worker sleeps as well
    EXPECT_FALSE(client.request(named("echo")).ok());
    client.restart();
    EXPECT_FALSE(client.request(named("echo")).ok());
  }
}

TEST(Client, APythonThatCannotBeRun) {
  Options options = fake();
  options.python = data("fake_server.py");  // a file without the permission to run
  Client client(options);
  const auto before = children();
  const auto reply = client.request(named("echo"));
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, DiagnosticKind::host_unavailable);
  EXPECT_NE(reply.error().message.find("Permission denied"), std::string::npos) << reply.error().message;
  EXPECT_EQ(children(), before);
}

TEST(Client, AHostExecutableThatIsNotThere) {
  Options options = fake();
  options.embedded = true;
  options.host_executable = "/no/such/host";
  Client client(options);
  const auto reply = client.request(named("echo"));
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, DiagnosticKind::host_unavailable);
  EXPECT_NE(reply.error().message.find("/no/such/host"), std::string::npos);
}

TEST(Client, ThreeDeathsWhileStartingAreEnough) {
  Client client(fake({"start=exit"}));
  const auto reply = client.request(named("echo"));
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, DiagnosticKind::host_unavailable);
  EXPECT_NE(reply.error().message.find("ended 3 times while it started, the last time with exit status 4"),
            std::string::npos) << reply.error().message;
  EXPECT_NE(reply.error().message.find("I cannot start"), std::string::npos) << reply.error().message;
  EXPECT_EQ(client.state().state, State::failed);
  EXPECT_EQ(client.state().starts, 3);
  client.start();
  EXPECT_FALSE(client.request(named("echo")).ok());
  EXPECT_EQ(client.state().starts, 3);
  client.restart();
  EXPECT_FALSE(client.wait_ready().ok());
  EXPECT_EQ(client.state().starts, 6);
}

TEST(Client, DeathsWhileStartingCountInARowOnly) {
  const std::string counter = ::testing::TempDir() + "pallascope_client_starts_" + std::to_string(getpid());
  std::filesystem::remove(counter);
  Client client(fake({"start=flaky:" + counter}));
  expect_works(client);
  EXPECT_EQ(client.state().starts, 3);
  expect_failure(client, named("exit"), DiagnosticKind::host_died, {"exit status 7"});
  EXPECT_EQ(client.state().starts, 6);
  std::filesystem::remove(counter);
}

TEST(Client, ABannerInsteadOfTheProtocol) {
  Client client(fake({"start=garbage"}));
  const auto hello = client.wait_ready();
  ASSERT_FALSE(hello.ok());
  EXPECT_EQ(hello.error().kind, DiagnosticKind::host_unavailable);
  EXPECT_NE(hello.error().message.find("not our protocol: \"Welc"), std::string::npos) << hello.error().message;
}

TEST(Client, AStartThatHangsIsADeath) {
  Options options = fake({"hello=hang"});
  options.start_limit = 200ms;
  Client client(options);
  const auto before = Clock::now();
  const auto hello = client.wait_ready();
  ASSERT_FALSE(hello.ok());
  EXPECT_EQ(hello.error().kind, DiagnosticKind::host_unavailable);
  EXPECT_NE(hello.error().message.find("no answer within 0.2 s"), std::string::npos) << hello.error().message;
  EXPECT_GE(Clock::now() - before, 600ms);
  EXPECT_EQ(client.state().starts, 3);
}

TEST(Client, WaitingForTheStartCanBeCancelled) {
  Client client(fake({"hello=hang"}));
  std::stop_source source;
  auto waiting = std::async(std::launch::async, [&] { return client.wait_ready(source.get_token()); });
  std::this_thread::sleep_for(50ms);
  source.request_stop();
  const auto hello = waiting.get();
  ASSERT_FALSE(hello.ok());
  EXPECT_EQ(hello.error().kind, DiagnosticKind::cancelled);
}

}  // namespace
}  // namespace pallascope::host::test
