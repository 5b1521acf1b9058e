// The client on the real host executable with the real server. Skipped where they are not built; only the
// tests that say so need torch and jax.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/unit/client/support.h"

namespace pallascope::host::test {
namespace {

bool is_built() {
  return std::filesystem::exists(find_host_executable()) &&
         std::filesystem::exists(default_paths().front() / "pallascope/server.py");
}

#define NEEDS_THE_HOST() \
  if (!is_built()) GTEST_SKIP() << find_host_executable() << " or the server is not there"

std::string code(const std::string& text) { return Json{{"request", "python"}, {"code", text}}.dump(); }

/// The server imports torch and jax in `hello`; these stand in for them where only the process matters, and
/// make its start 0.1 s instead of 2.
class Stubs : public ::testing::Test {
 protected:
  void SetUp() override {
    NEEDS_THE_HOST();
    folder_ = std::filesystem::path(::testing::TempDir()) / ("pallascope_stubs_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "torch.py") << "__version__ = 'stub'\n";
    std::ofstream(folder_ / "jax.py")
        << "__version__ = 'stub'\ndef default_backend(): return 'cpu'\ndef devices(): return []\n";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] Options options() const {
    Options options;
    options.python = PALLASCOPE_HOST_PYTHON;
    options.paths.insert(options.paths.begin(), folder_);
    return options;
  }
  std::filesystem::path folder_;
};

/// The repr of the last expression, "none" without one, or the diagnostic.
std::string value_of(Client& client, const std::string& text) {
  const auto reply = client.request(code(text));
  if (!reply.ok()) return to_string(reply.error());
  const Json repr = Json::parse(reply->result)["repr"];
  return repr.is_string() ? repr.get<std::string>() : "none";
}

TEST_F(Stubs, TheEnvironmentsPythonIsEmbedded) {
  Client client(options());
  const auto hello = client.wait_ready();
  ASSERT_TRUE(hello.ok()) << to_string(hello.error());
  EXPECT_EQ(hello->executable, PALLASCOPE_HOST_PYTHON);
  EXPECT_TRUE(client.state().embedded);
  EXPECT_EQ(std::filesystem::read_symlink("/proc/" + std::to_string(client.state().pid) + "/exe"),
            std::filesystem::canonical(find_host_executable()));
  const auto prefix = std::filesystem::path(PALLASCOPE_HOST_PYTHON).parent_path().parent_path();
  EXPECT_EQ(value_of(client, "import sys; sys.prefix"), "'" + prefix.string() + "'");
  EXPECT_EQ(value_of(client, "sys.flags.ignore_environment, sys.flags.utf8_mode, sys.flags.safe_path"),
            "(1, 1, True)");
  EXPECT_EQ(value_of(client, "'' in sys.path"), "False");
}

TEST_F(Stubs, StateIsKeptBetweenRequestsAndEndsWithTheHost) {
  Client client(options());
  EXPECT_EQ(value_of(client, "kept = 41"), "none");
  EXPECT_EQ(value_of(client, "kept + 1"), "42");
  const auto died = client.request(code("import os; os._exit(3)"));
  ASSERT_FALSE(died.ok());
  EXPECT_EQ(died.error().kind, DiagnosticKind::host_died);
  EXPECT_NE(died.error().message.find("exit status 3"), std::string::npos) << died.error().message;
  EXPECT_NE(value_of(client, "kept").find("NameError"), std::string::npos);
  EXPECT_EQ(value_of(client, "1 + 1"), "2");
}

TEST_F(Stubs, ASegmentationFaultEndsWithThePythonStack) {
  Client client(options());
  const auto died = client.request(code("def guilty():\n    import ctypes\n    ctypes.string_at(0)\nguilty()"));
  ASSERT_FALSE(died.ok());
  EXPECT_EQ(died.error().kind, DiagnosticKind::host_died);
  EXPECT_NE(died.error().message.find("signal 11 (segmentation fault)"), std::string::npos) << died.error().message;
  EXPECT_NE(died.error().message.find("line 3 in guilty"), std::string::npos) << died.error().message;
  EXPECT_EQ(value_of(client, "1 + 1"), "2");
}

TEST_F(Stubs, NothingThatPythonOrCPrintsReachesTheStream) {
  Client client(options());
  const auto reply = client.request(code("import os, subprocess, sys\n"
                                         "print('to the reply')\n"
                                         "os.write(1, b'to the descriptor\\n')\n"
                                         "subprocess.run(['echo', 'from a child'])\n"
                                         "sys.__stdout__.write('to the real one\\n')\n"
                                         "sys.stdin.read()"));
  ASSERT_TRUE(reply.ok()) << to_string(reply.error());
  EXPECT_EQ(Json::parse(reply->result)["stdout"], "to the reply\n");
  for (const char* text : {"to the descriptor\n", "from a child\n", "to the real one\n"})
    EXPECT_TRUE(eventually([&] { return client.log().text.find(text) != std::string::npos; })) << client.log().text;
  EXPECT_EQ(client.state().starts, 1);
}

TEST_F(Stubs, AnExceptionIsADiagnosticWithATraceback) {
  Client client(options());
  std::string traceback;
  RequestOptions with_traceback;
  with_traceback.traceback = &traceback;
  const auto reply = client.request(code("1 / 0"), {}, with_traceback);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, DiagnosticKind::host_error);
  EXPECT_NE(reply.error().message.find("ZeroDivisionError"), std::string::npos) << reply.error().message;
  EXPECT_NE(traceback.find("\"<repl>\", line 1"), std::string::npos) << traceback;
  EXPECT_EQ(value_of(client, "1 + 1"), "2");
  EXPECT_EQ(client.state().starts, 1);
}

TEST_F(Stubs, ALoopThatHoldsTheInterpreterCanBeCancelled) {
  Client client(options());
  ASSERT_TRUE(client.wait_ready().ok());
  RequestOptions soon;
  soon.timeout = 300ms;
  // One call into C that never gives the interpreter back: no exception could end it.
  const auto reply = client.request(code("import re; re.match('(a*)*b', 'a' * 40)"), {}, soon);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, DiagnosticKind::timed_out);
  EXPECT_EQ(value_of(client, "1 + 1"), "2");
}

TEST_F(Stubs, AnIdleHostLeavesByItself) {
  std::int64_t pid = 0;
  Options patient = options();
  patient.shutdown_limit = 20s;
  const auto before = std::chrono::steady_clock::now();
  {
    Client client(patient);
    ASSERT_TRUE(client.wait_ready().ok());
    pid = client.state().pid;
  }
  EXPECT_TRUE(is_gone(pid));
  EXPECT_LT(std::chrono::steady_clock::now() - before, 15s);
}

TEST_F(Stubs, AServerThatCannotBeImported) {
  Options without = options();
  std::filesystem::create_directories(folder_ / "pallascope");
  std::ofstream(folder_ / "pallascope/__init__.py") << "raise ImportError('broken on purpose')\n";
  without.paths = {folder_};
  Client client(without);
  const auto hello = client.wait_ready();
  ASSERT_FALSE(hello.ok());
  EXPECT_EQ(hello.error().kind, DiagnosticKind::host_unavailable);
  EXPECT_NE(hello.error().message.find("broken on purpose"), std::string::npos) << hello.error().message;
  EXPECT_EQ(client.state().starts, 1);
}

TEST_F(Stubs, APythonThatDoesNotRun) {
  Options wrong = options();
  wrong.python = data("fake_server.py");
  Client client(wrong);
  const auto hello = client.wait_ready();
  ASSERT_FALSE(hello.ok());
  EXPECT_EQ(hello.error().kind, DiagnosticKind::host_unavailable);
  EXPECT_NE(hello.error().message.find("does not run"), std::string::npos) << hello.error().message;
}

TEST_F(Stubs, APythonOfAnotherVersionRunsTheServerItself) {
  // A script that claims another version and otherwise is the Python of the build.
  const auto python = folder_ / "bin/python";
  std::filesystem::create_directories(python.parent_path());
  std::ofstream(python) << "#!/bin/sh\ncase \"$*\" in *version_info*) echo 2.7.18; exit;; esac\nexec "
                        << PALLASCOPE_HOST_PYTHON << " \"$@\"\n";
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  Options other = options();
  other.python = python;
  {
    Client client(other);
    const auto hello = client.wait_ready();
    ASSERT_TRUE(hello.ok()) << to_string(hello.error());
    EXPECT_FALSE(client.state().embedded);
    EXPECT_EQ(value_of(client, "1 + 1"), "2");
    EXPECT_NE(client.log().text.find("is Python 2.7.18, and this host embeds Python 3."), std::string::npos);
  }
  other.external_if_version_differs = false;
  Client client(other);
  const auto hello = client.wait_ready();
  ASSERT_FALSE(hello.ok());
  EXPECT_EQ(hello.error().kind, DiagnosticKind::host_unavailable);
  EXPECT_NE(hello.error().message.find("is Python 2.7.18"), std::string::npos) << hello.error().message;
  EXPECT_NE(hello.error().remedy.find("external mode"), std::string::npos) << hello.error().remedy;
}

TEST_F(Stubs, ExternalModeServesTheSame) {
  Options external = options();
  external.embedded = false;
  Client client(external);
  EXPECT_EQ(value_of(client, "import sys; sys.flags.utf8_mode, '' in sys.path"), "(1, False)");
  EXPECT_FALSE(client.request(code("import os; os.abort()")).ok());
  EXPECT_EQ(value_of(client, "1 + 1"), "2");
}

TEST(Host, TorchAndJaxRunInTheEmbeddedPython) {
  NEEDS_THE_HOST();
  Client client;
  const auto hello = client.wait_ready();
  if (!hello.ok() && hello.error().message.find("No module named") != std::string::npos)
    GTEST_SKIP() << hello.error().message;
  ASSERT_TRUE(hello.ok()) << to_string(hello.error());
  EXPECT_NE(hello->torch, "");
  EXPECT_NE(hello->jax, "");
  EXPECT_FALSE(hello->devices.empty());
  EXPECT_EQ(value_of(client, "float(jax.jit(jax.numpy.sum)(jax.numpy.arange(4.0))), torch.arange(4.0).sum().item()"),
            "(6.0, 6.0)");
  // The descriptors are right for programs that Python starts, and its own extension modules load.
  EXPECT_EQ(value_of(client, "import ssl, subprocess; subprocess.check_output(['echo', 'hi'])"), R"(b'hi\n')");
}

}  // namespace
}  // namespace pallascope::host::test
