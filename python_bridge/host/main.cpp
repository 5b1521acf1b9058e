// Room: host. The process that runs Python for the app: pallascope_host --python <venv>/bin/python [--path DIR]...
// Takes: requests on standard input, which the Python package (pallascope/server.py) reads and answers.
// Gives: replies on what was standard output; everything that Python prints goes to standard error.
// May use: core/base, fmt, nlohmann json, pybind11.
// Never: understands a request itself, returns from main once Python runs.
//
// Exit status: 0 after a shutdown or the end of the input, 1 when the server failed, 2 for a wrong command
// line, 3 when Python cannot be used; then a message with id 0 on the stream says why.
#include <fcntl.h>
#include <fmt/format.h>
#include <pybind11/embed.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "python_bridge/host/interpreter.h"

namespace py = pybind11;

namespace {

constexpr int status_failed = 1;
constexpr int status_usage = 2;
constexpr int status_no_python = 3;

struct Arguments {
  std::string python;
  std::vector<std::string> paths;
};

std::optional<Arguments> read_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name(argv[i]);
    if (name == "--python") {
      arguments.python = argv[i + 1];
    } else if (name == "--path") {
      arguments.paths.emplace_back(argv[i + 1]);
    } else {
      return std::nullopt;
    }
  }
  if (argc % 2 == 0 || arguments.python.empty()) return std::nullopt;
  return arguments;
}

struct Streams {
  int in = -1;
  int out = -1;
};

/// Takes the protocol's streams away from descriptors 0 and 1: a print, a C library's printf or a child of
/// the user's code must neither write into the replies nor read the requests.
Streams take_streams() {
  Streams streams{fcntl(0, F_DUPFD_CLOEXEC, 3), fcntl(1, F_DUPFD_CLOEXEC, 3)};
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (streams.in < 0 || streams.out < 0 || nothing < 0 || dup2(nothing, 0) < 0 || dup2(2, 1) < 0) {
    std::fprintf(stderr, "pallascope_host: its standard streams cannot be set up: %s\n", std::strerror(errno));
    _exit(status_usage);
  }
  close(nothing);
  return streams;
}

/// Says on the stream why no server will run, in the form of a reply to nothing, and leaves.
[[noreturn]] void refuse(const Streams& streams, nlohmann::json error) {
  error["kind"] = "host_unavailable";
  const std::string header = nlohmann::json{{"id", 0}, {"ok", false}, {"error", error}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string message(12, '\0');
  for (std::size_t i = 0; i < 4; ++i) message[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  message += header;
  for (std::string_view rest = message; !rest.empty();) {
    const ssize_t count = write(streams.out, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  _exit(status_no_python);
}

void check_version(const Streams& streams, const std::string& python) {
  const auto mismatch = pallascope::host::version_mismatch(python);
  if (!mismatch) return;
  if (mismatch->theirs.empty())
    refuse(streams, {{"message", fmt::format("\"{}\" does not run.", python)},
                     {"reason", "python_missing"},
                     {"remedy", "Set PALLASCOPE_PYTHON to the bin/python of an environment that has torch and jax."}});
  refuse(streams, {{"message", fmt::format("\"{}\" is Python {}, and this host embeds Python {}.", python,
                                           mismatch->theirs, mismatch->ours)},
                   {"reason", "python_version"},  // the client then runs that Python itself
                   {"remedy", fmt::format("Use an environment of Python {}, build Pallascope with that Python, or "
                                          "start the host in external mode.",
                                          mismatch->ours)}});
}

/// Runs Python's server until its input ends.
int serve(const Streams& streams, const Arguments& arguments) {
  py::object server;
  try {
    pallascope::host::start_interpreter(arguments.python, arguments.paths);
    server = py::module_::import("pallascope.server");
  } catch (py::error_already_set& error) {
    std::string first_line = error.what();
    first_line = first_line.substr(0, first_line.find('\n'));
    refuse(streams, {{"message", "The Python package of the host cannot be imported: " + first_line},
                     {"traceback", error.what()}});
  } catch (const std::exception& error) {
    refuse(streams, {{"message", std::string("Python does not start: ") + error.what()}});
  }
  int status = 0;
  try {
    server.attr("serve")(streams.in, streams.out);
  } catch (py::error_already_set& error) {
    std::fprintf(stderr, "pallascope_host: the server ended with an error.\n%s\n", error.what());
    status = status_failed;
  }
  // What user code buffered. It may raise as well, and then there is nobody left to tell.
  PyRun_SimpleString("import sys\nfor f in (sys.stdout, sys.stderr):\n try: f.flush()\n except Exception: pass\n");
  std::fflush(nullptr);
  // Not a return: finalising torch and jax takes long and is known to crash, and nothing here needs it.
  _exit(status);
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Arguments> arguments = read_arguments(argc, argv);
  if (!arguments) {
    std::fprintf(stderr, "usage: pallascope_host --python VENV/bin/python [--path DIR]...\n");
    return status_usage;
  }
  const Streams streams = take_streams();
  // As Python itself does when it installs handlers: a write to a closed socket or pipe is an exception, not
  // an end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  check_version(streams, arguments->python);
  return serve(streams, *arguments);
}
