#include "app/repl/terminal.h"

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "app/repl/command.h"
#include "app/repl/completion.h"
#include "app/repl/words.h"
#include "core/report/format.h"

namespace pallascope::repl {
namespace {

constexpr int history_length = 2000;
constexpr std::size_t most_candidates = 200;  // more than a screen of them helps nobody; the rest is counted

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// Ctrl-C as a byte in a pipe: a signal handler may do nothing more, and both the prompt and a command that waits can
/// poll a pipe. The descriptors live as long as the process, since a handler cannot be given an object.
std::array<int, 2> interrupt_pipe = {-1, -1};

void on_interrupt(int /*signal*/) {
  const int before = errno;
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = write(interrupt_pipe[1], &byte, 1);
  errno = before;
}

void drain_interrupts() {
  std::array<char, 64> bytes;
  while (read(interrupt_pipe[0], bytes.data(), bytes.size()) > 0) {
  }
}

class InterruptHandler {
 public:
  InterruptHandler() {
    if (interrupt_pipe[0] < 0 && pipe2(interrupt_pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
    struct sigaction action{};
    action.sa_handler = on_interrupt;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &before_);
    installed_ = true;
  }
  ~InterruptHandler() {
    if (installed_) sigaction(SIGINT, &before_, nullptr);
  }
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;

 private:
  struct sigaction before_{};
  bool installed_ = false;
};

/// Hands each Ctrl-C to the session while a command runs.
class InterruptWatch {
 public:
  explicit InterruptWatch(Session& session)
      : thread_([&session](const std::stop_token& stop) { watch(session, stop); }) {}

 private:
  static void watch(Session& session, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd wait{interrupt_pipe[0], POLLIN, 0};
      if (poll(&wait, 1, 50) > 0) {
        drain_interrupts();
        session.interrupt();
      }
    }
  }
  std::jthread thread_;
};

/// One line editor with its history.
class Editor {
 public:
  explicit Editor(Session& session) : session_(session) {
    line_ = el_init("pallascope", stdin, stdout, stderr);
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, history_length);
    history(history_, &event, H_SETUNIQUE, 1);
    load_history();
    el_set(line_, EL_CLIENTDATA, this);
    el_set(line_, EL_PROMPT, prompt);
    el_set(line_, EL_EDITOR, "emacs");
    el_set(line_, EL_SIGNAL, 1);
    el_set(line_, EL_HIST, history, history_);
    el_set(line_, EL_GETCFN, read_char);
    el_set(line_, EL_ADDFN, "pallascope-complete", "complete the word", complete_word);
    el_set(line_, EL_ADDFN, "pallascope-interrupt", "give the line up", give_up);
    el_set(line_, EL_BIND, "\t", "pallascope-complete", nullptr);
    el_set(line_, EL_BIND, "^C", "pallascope-interrupt", nullptr);
    el_set(line_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(line_, nullptr);  // ~/.editrc, as other programs with this editor do
  }
  ~Editor() {
    history_end(history_);
    el_end(line_);
  }
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  enum class Read { line, interrupted, end };
  Read read_line(const std::string& prompt_text, std::string& line) {
    prompt_ = prompt_text;
    interrupted_ = false;
    int length = 0;
    // Raw before the prompt is shown: a Ctrl-D typed right after it would be swallowed by the cooked terminal.
    el_set(line_, EL_PREP_TERM, 1);
    const char* text = el_gets(line_, &length);
    if (interrupted_) return Read::interrupted;
    if (text == nullptr || length <= 0) return Read::end;
    line.assign(text, static_cast<std::size_t>(length));
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    return Read::line;
  }

  void remember(const std::string& line) {
    if (line.find_first_not_of(" \t") == std::string::npos) return;
    HistEvent event;
    history(history_, &event, H_ENTER, line.c_str());
    // Appended at once: a session that is killed, or another one beside it, loses nothing.
    if (!path_.empty()) {
      std::ofstream file(path_, std::ios::app);
      file << line << '\n';
    }
  }

 private:
  static Editor& of(EditLine* line) {
    void* self = nullptr;
    el_get(line, EL_CLIENTDATA, &self);
    return *static_cast<Editor*>(self);
  }

  static char* prompt(EditLine* line) { return of(line).prompt_.data(); }

  /// One character of standard input, or Ctrl-C when the signal came.
  static int read_char(EditLine* /*line*/, wchar_t* character) {
    std::mbstate_t state{};
    for (;;) {
      std::array<pollfd, 2> wait = {pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{interrupt_pipe[0], POLLIN, 0}};
      if (poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return -1;
      pollfd again{interrupt_pipe[0], POLLIN, 0};
      if (poll(&again, 1, 0) > 0) {
        drain_interrupts();
        *character = 3;
        return 1;
      }
      if ((wait[0].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      char byte = 0;
      const ssize_t count = read(STDIN_FILENO, &byte, 1);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) return count < 0 ? -1 : 0;
      const std::size_t result = std::mbrtowc(character, &byte, 1, &state);
      if (result == static_cast<std::size_t>(-2)) continue;  // the code point goes on
      if (result == static_cast<std::size_t>(-1)) {
        state = {};
        *character = L'?';  // bytes that are no text in this locale
      }
      return 1;
    }
  }

  static unsigned char give_up(EditLine* line, int /*character*/) {
    of(line).interrupted_ = true;
    return CC_EOF;
  }

  static unsigned char complete_word(EditLine* line, int /*character*/) {
    Editor& self = of(line);
    const LineInfo* info = el_line(line);
    const std::string before(info->buffer, info->cursor);
    const Completion found = complete(self.session_, before);
    if (found.candidates.empty()) return CC_REFRESH_BEEP;
    const std::string typed = before.substr(found.start);
    std::string text = common_beginning(found.candidates);
    const bool single = found.candidates.size() == 1;
    if (single && is_whole(text)) text += ' ';
    if (text != typed && (single || text.size() > typed.size() || !text.starts_with(typed))) {
      el_deletestr(line, static_cast<int>(report::display_width(typed)));
      el_insertstr(line, text.c_str());
      return CC_REFRESH;
    }
    if (single) return CC_REFRESH;
    show(found.candidates);
    return CC_REDISPLAY;
  }

  static void show(const std::vector<std::string>& candidates) {
    const std::size_t shown = std::min(candidates.size(), most_candidates);
    std::size_t widest = 0;
    for (std::size_t k = 0; k < shown; ++k)
      widest = std::max(widest, report::display_width(candidates[k]) + 2);
    const std::size_t columns = std::max<std::size_t>(1, terminal_width() / std::max<std::size_t>(1, widest));
    const std::size_t rows = (shown + columns - 1) / columns;
    std::string text = "\n";
    for (std::size_t row = 0; row < rows; ++row) {
      std::string line;
      for (std::size_t at = row; at < shown; at += rows) line += report::padded(candidates[at], widest);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    if (candidates.size() > shown) text += "and " + std::to_string(candidates.size() - shown) + " more\n";
    print(text);
  }

  void load_history() {
    path_ = history_path();
    if (path_.empty()) return;
    std::error_code error;
    std::filesystem::create_directories(path_.parent_path(), error);
    std::ifstream file(path_);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    const std::size_t first = lines.size() > history_length ? lines.size() - history_length : 0;
    HistEvent event;
    for (std::size_t k = first; k < lines.size(); ++k) history(history_, &event, H_ENTER, lines[k].c_str());
    // Shortened when it has grown to twice what is kept, so that it need not be written each time.
    if (lines.size() > 2 * static_cast<std::size_t>(history_length)) {
      std::ofstream shortened(path_, std::ios::trunc);
      for (std::size_t k = first; k < lines.size(); ++k) shortened << lines[k] << '\n';
    }
  }

  Session& session_;
  EditLine* line_ = nullptr;
  History* history_ = nullptr;
  std::string prompt_;
  std::filesystem::path path_;
  bool interrupted_ = false;
};

std::string prompt_of(const Session& session) {
  const Opened* opened = session.peek();
  if (opened == nullptr || opened->position == opened->compilation->decisions().size()) return "> ";
  return opened->position == 0 ? "start> " : "d" + std::to_string(opened->position - 1) + "> ";
}

void run_line(Session& session, const std::string& text) {
  for (const std::string& command : split_commands(text, true)) {
    Execution execution;
    {
      const ProgressLine progress(session);
      const InterruptWatch watch(session);
      execution = execute(session, command, false);
    }
    if (execution.json) {
      print(envelope(execution).dump(-1, ' ', false, report::Json::error_handler_t::replace) + "\n");
    } else {
      print(execution.result.ok() ? execution.result->text : error_text(execution.result.error()));
    }
    if (session.finished()) return;
  }
}

}  // namespace

std::filesystem::path history_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state != '\0') return std::filesystem::path(state) / "pallascope" / "history";
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return std::filesystem::path(home) / ".local" / "state" / "pallascope" / "history";
}

ProgressLine::ProgressLine(Session& session) : session_(session) {
  if (isatty(STDERR_FILENO) == 0) return;
  session_.progress = [](const std::string& text, double fraction) {
    // Cut to the width: a line that wraps could not be taken away again.
    std::string shown = text;
    if (fraction >= 0) shown += " " + std::to_string(static_cast<int>(fraction * 100)) + "%";
    if (!text.empty()) shown += " …";
    const std::size_t width = terminal_width();
    while (report::display_width(shown) + 1 > width && !shown.empty()) shown.pop_back();
    std::fprintf(stderr, "\r\033[K%s", shown.c_str());
    std::fflush(stderr);
  };
}

ProgressLine::~ProgressLine() { session_.progress = nullptr; }

int run_terminal(Session& session) {
  // Only the characters: numbers are printed the same in every country.
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
  const InterruptHandler handler;
  if (interrupt_pipe[0] < 0) {
    std::fprintf(stderr, "pallascope: no pipe could be made: %s\n", std::strerror(errno));
    return 1;
  }
  Editor editor(session);
  session.start_host();
  print("`help` lists the commands, Tab completes, Ctrl-D leaves\n");
  while (!session.finished()) {
    std::string text;
    Editor::Read read = editor.read_line(prompt_of(session), text);
    if (read == Editor::Read::interrupted) {
      print("^C   (quit or Ctrl-D leaves)\n");
      continue;
    }
    if (read == Editor::Read::end) {
      print("\n");
      break;
    }
    editor.remember(text);
    // A Python block goes on to an empty line; so does any def or class, which may have more in store.
    if (is_python(text) && opens_block(text)) {
      std::string more;
      while ((read = editor.read_line("... ", more)) == Editor::Read::line &&
             more.find_first_not_of(" \t") != std::string::npos) {
        editor.remember(more);
        text += "\n" + more;
      }
      if (read == Editor::Read::interrupted) {
        print("^C\n");
        continue;
      }
    }
    run_line(session, text);
  }
  return 0;
}

}  // namespace pallascope::repl
