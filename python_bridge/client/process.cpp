#include "python_bridge/client/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>

namespace pallascope::host {

namespace {

struct Pipe {
  Descriptor read;
  Descriptor write;
};

/// Close-on-exec at both ends, and never 0, 1 or 2: the child's dup2 onto those must not meet another end.
std::optional<Pipe> make_pipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return std::nullopt;
  Pipe pipe{Descriptor(fds[0]), Descriptor(fds[1])};
  for (Descriptor* end : {&pipe.read, &pipe.write}) {
    if (end->get() > 2) continue;
    const int moved = fcntl(end->get(), F_DUPFD_CLOEXEC, 3);
    if (moved < 0) return std::nullopt;
    *end = Descriptor(moved);
  }
  return pipe;
}

void make_fast_and_non_blocking(const Descriptor& end) {
  fcntl(end.get(), F_SETFL, fcntl(end.get(), F_GETFL) | O_NONBLOCK);
  // 1 MiB is the most that an unprivileged process may ask for; less only means more system calls.
  fcntl(end.get(), F_SETPIPE_SZ, 1 << 20);
}

Diagnostic not_started(std::string_view program, int error) {
  return {DiagnosticKind::host_unavailable, fmt::format("{} cannot be started: {}.", program, std::strerror(error)),
          {}, {}};
}

struct ChildView {
  const char* program;
  char* const* arguments;
  char* const* environment;
  int input, output, error, report;
  pid_t parent;
};

/// Runs between fork and exec, where another thread may have held any lock: system calls only, no allocation.
[[noreturn]] void run_child(const ChildView& child) {
  const auto fail = [&] {
    const int error = errno;
    [[maybe_unused]] const auto written = write(child.report, &error, sizeof error);
    _exit(127);
  };
  setpgid(0, 0);
  // The host must not go on computing for an app that was killed. The request survives exec, and works for
  // the embedded and the external mode alike. If the parent is gone already, the signal will never come.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != child.parent) _exit(127);
  // When memory runs out the kernel shall take the host, which can be started again, and not the app.
  const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) {
    [[maybe_unused]] const auto written = write(score, "500", 3);
    close(score);
  }
  // exec resets handlers but keeps ignored signals and the mask, and our thread blocks everything.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) sigaction(number, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (dup2(child.input, 0) < 0 || dup2(child.output, 1) < 0 || dup2(child.error, 2) < 0) fail();
  // Descriptors that libraries of the app opened without close-on-exec. Older kernels lack the call; then
  // those are inherited, which is harmless.
  syscall(SYS_close_range, 3U, UINT_MAX, CLOSE_RANGE_CLOEXEC);
  execve(child.program, child.arguments, child.environment);
  fail();
  _exit(127);
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& string : strings) out.push_back(const_cast<char*>(string.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace

void Descriptor::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::string Ending::text() const {
  if (!known) return "an end that was not observed";
  if (WIFEXITED(status)) return fmt::format("exit status {}", WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  switch (number) {
    case SIGSEGV: return "signal 11 (segmentation fault)";
    case SIGABRT: return "signal 6 (abort)";
    case SIGKILL: return "signal 9 (killed, by hand or by the system because memory ran out)";
    case SIGBUS: return "signal 7 (bus error)";
    case SIGFPE: return "signal 8 (arithmetic error)";
    case SIGILL: return "signal 4 (illegal instruction)";
    case SIGTERM: return "signal 15 (terminated)";
    default: return fmt::format("signal {} ({})", number, strsignal(number));
  }
}

Result<std::unique_ptr<Process>> Process::start(const Command& command) {
  const std::string& program = command.arguments.front();
  auto input = make_pipe();
  auto output = make_pipe();
  auto error = make_pipe();
  auto report = make_pipe();
  if (!input || !output || !error || !report) return not_started(program, errno);

  const std::vector<char*> arguments = pointers(command.arguments);
  const std::vector<char*> environment = pointers(command.environment);
  const ChildView child{program.c_str(),     arguments.data(),    environment.data(),   input->read.get(),
                        output->write.get(), error->write.get(), report->write.get(), getpid()};
  const pid_t pid = fork();
  if (pid == 0) run_child(child);
  if (pid < 0) return not_started(program, errno);
  setpgid(pid, pid);  // in the child as well: whoever comes first, so that kill() finds the group

  std::unique_ptr<Process> process(new Process);
  process->pid_ = pid;
  process->input = std::move(input->write);
  process->output = std::move(output->read);
  process->error = std::move(error->read);
  input->read.reset();
  output->write.reset();
  error->write.reset();
  report->write.reset();

  // The report's end closes when exec succeeds.
  int exec_error = 0;
  ssize_t count = 0;
  do count = read(report->read.get(), &exec_error, sizeof exec_error);
  while (count < 0 && errno == EINTR);
  if (count == sizeof exec_error) {
    process->wait(std::chrono::seconds(1));
    return not_started(program, exec_error);
  }
  for (const Descriptor* end : {&process->input, &process->output, &process->error})
    make_fast_and_non_blocking(*end);
  process->ended_event = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0U)));  // close-on-exec by itself
  return process;
}

Process::~Process() {
  if (ended()) return;
  kill();
  // A killed process can hang in a driver; then it becomes our own parent's to reap when we end.
  wait(std::chrono::seconds(5));
}

std::optional<Ending> Process::ended() {
  if (ending_) return ending_;
  // First look without reaping: as long as the leader is a zombie its group's number is not given away.
  siginfo_t info{};
  const int result = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | WNOHANG);
  if (result == 0 && info.si_pid == 0) return std::nullopt;
  if (result != 0 && errno == EINTR) return std::nullopt;
  Ending ending;
  if (result == 0) {
    ::kill(-pid_, SIGKILL);
    ending.known = waitpid(pid_, &ending.status, 0) == pid_;
  }
  ending_ = ending;
  return ending_;
}

std::optional<Ending> Process::wait(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    if (auto ending = ended()) return ending;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd event{ended_event.get(), POLLIN, 0};  // a negative descriptor makes this a sleep
    poll(&event, 1, ended_event.open() ? static_cast<int>(left.count()) + 1 : 5);
  }
}

void Process::kill() {
  if (ending_) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
}

}  // namespace pallascope::host
