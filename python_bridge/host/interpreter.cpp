#include "python_bridge/host/interpreter.h"

#include <fcntl.h>
#include <pybind11/embed.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace py = pybind11;

namespace pallascope::host {

namespace {

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

/// "3.11.2" of "3.11.2", "3.11.2.final.0" or "3.11.2+": at most three numbers.
std::string three_numbers(const std::string& text) {
  std::size_t end = 0;
  for (int dots = 0; end < text.size(); ++end) {
    if (text[end] == '.' ? ++dots == 3 : text[end] < '0' || text[end] > '9') break;
  }
  return text.substr(0, end);
}

std::string ask_for_version(const std::string& python) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
  std::array<char*, 6> arguments{};
  std::array<std::string, 5> words{python, "-I", "-S", "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, python.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(fds[1]);
  std::string answer;
  if (failed == 0) {
    std::array<char, 64> buffer;
    ssize_t count = 0;
    while ((count = read(fds[0], buffer.data(), buffer.size())) > 0)
      answer.append(buffer.data(), static_cast<std::size_t>(count));
    int status = 0;
    waitpid(pid, &status, 0);
  }
  close(fds[0]);
  return answer;
}

/// What the pyvenv.cfg of the environment says; empty when there is none.
std::string version_in_config(const std::string& python) {
  // bin/python is a link to the interpreter that the environment was made from; pyvenv.cfg lies a folder
  // above the link. venv writes `version`, virtualenv and uv write `version_info`.
  const auto folder = std::filesystem::path(python).parent_path();
  for (const auto& config : {folder / "pyvenv.cfg", folder.parent_path() / "pyvenv.cfg"}) {
    std::ifstream file(config);
    for (std::string line; std::getline(file, line);) {
      const auto equals = line.find('=');
      if (equals == std::string::npos) continue;
      const std::string key = trimmed(line.substr(0, equals));
      if (key == "version" || key == "version_info") return three_numbers(trimmed(line.substr(equals + 1)));
    }
  }
  return {};
}

}  // namespace

std::optional<Mismatch> version_mismatch(const std::string& python) {
  const std::string ours = three_numbers(Py_GetVersion());  // the library's, not that of the headers
  // The file is read in no time and the interpreter asked in 20 ms; but after an update of the system the
  // file tells of the past, so only a match is believed.
  if (version_in_config(python) == ours) return std::nullopt;
  const std::string theirs = three_numbers(trimmed(ask_for_version(python)));
  if (theirs == ours) return std::nullopt;
  return Mismatch{theirs, ours};
}

void start_interpreter(const std::string& python, const std::vector<std::string>& paths) {
  PyPreConfig before;
  PyPreConfig_InitPythonConfig(&before);
  before.parse_argv = 0;
  before.use_environment = 0;
  before.utf8_mode = 1;  // whatever the app's locale is
  PyStatus status = Py_PreInitialize(&before);
  if (PyStatus_Exception(status)) throw std::runtime_error(status.err_msg != nullptr ? status.err_msg : "no reason");

  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  config.parse_argv = 0;
  // What PYTHON* variables or the user's own site folder would bring is not what the environment holds, and
  // "" at the front of sys.path would import whatever lies in the folder that the app was started in.
  config.use_environment = 0;
  config.user_site_directory = 0;
  config.safe_path = 1;
  config.install_signal_handlers = 0;
  config.buffered_stdio = 0;  // what a kernel printed before it crashed must have left the process
  config.faulthandler = 1;    // a segmentation fault ends with the Python stack: the last words
  // `executable` is what makes the environment's packages be found; `home` fails (it looks for the standard
  // library in the environment).
  status = PyConfig_SetBytesString(&config, &config.executable, python.c_str());
  if (PyStatus_Exception(status)) {
    PyConfig_Clear(&config);
    throw std::runtime_error(status.err_msg != nullptr ? status.err_msg : "the path of Python is not text");
  }
  const char* const name = "pallascope_host";  // torch and jax look at sys.argv[0]
  py::initialize_interpreter(&config, 1, &name, false);
  py::list path = py::module_::import("sys").attr("path");
  for (std::size_t i = 0; i < paths.size(); ++i) path.insert(i, paths[i]);
}

}  // namespace pallascope::host
