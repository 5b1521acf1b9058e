// Room: repl. The prompt: line editing, history, Tab, Ctrl-C and Ctrl-D, progress while a command waits.
#pragma once

#include <filesystem>

#include "app/repl/session.h"

namespace pallascope::repl {

/// Reads commands from the terminal until `quit` or the end of input. Standard input and output must be one. The exit
/// status: 0, since a person has seen what went wrong.
int run_terminal(Session& session);

/// $XDG_STATE_HOME/pallascope/history, ~/.local/state/pallascope/history without it; empty without a home.
std::filesystem::path history_path();

/// While it lives, what a command waits for is shown on one line of the terminal on standard error, and gone after.
/// Does nothing when standard error is no terminal.
class ProgressLine {
 public:
  explicit ProgressLine(Session& session);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

 private:
  Session& session_;
};

}  // namespace pallascope::repl
