// Room: app. The program: the terminal, the batch mode and the report on the bundled examples.
// Takes: the command line, standard input.
// Gives: text or JSON on standard output, an exit status.
// May use: every room.
// Never: holds logic that a command could hold.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "app/repl/batch.h"
#include "app/repl/host_link.h"
#include "app/repl/session.h"
#include "app/repl/terminal.h"
#include "app/repl/words.h"

namespace {

constexpr const char* footer =
    "Without arguments: a report on the bundled examples (with --full: every decision, access and source).\n"
    "With a FILE and a terminal: the prompt; `help` there lists the commands.\n"
    "With -c, or commands on standard input: runs them all, also after one that failed.\n"
    "\n"
    "Exit status: 0 when every command worked and every check passed; 1 when a command failed or a check "
    "found a\n"
    "difference; 2 when the command line makes no sense.\n"
    "\n"
    "Examples:\n"
    "  pallascope model.pt2\n"
    "  pallascope -c \"open model.pt2; check\" --json\n"
    "  pallascope -c \"trace model.py:f f32[8,128]; why-not sum_2 div_5\"\n";

std::string standard_input() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

}  // namespace

int main(int argc, char** argv) {
  namespace repl = pallascope::repl;
  CLI::App app("Lowers traced PyTorch graphs to JAX Pallas kernels, and shows every decision on the way.",
               "pallascope");
  app.footer(footer);
  std::vector<std::string> files, batches;
  bool json = false, full = false, prompt = false;
  app.add_option("FILE", files, "a .pt2, a trace in JSON or a bundle folder to open");
  app.add_option("-c", batches, "run these commands, separated by `;`, with their full names")
      ->allow_extra_args(false)
      ->option_text("COMMANDS");
  app.add_flag("--json", json, "one JSON object a line for each command");
  app.add_flag("--full", full, "the report in full (only without FILE and -c)");
  app.add_flag("--repl", prompt,
               "the prompt, also without a FILE; commands from standard input when it is no terminal");
  app.set_version_flag("--version", std::string("pallascope ") + PALLASCOPE_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  repl::Session session(repl::client_link());
  std::vector<std::string> lines;
  for (const std::string& file : files) lines.push_back("open " + repl::quote_word(file));
  for (const std::string& text : batches) {
    for (std::string& line : repl::split_commands(text)) lines.push_back(std::move(line));
  }
  repl::BatchOptions options;
  options.json = json;
  const bool terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;

  if (!batches.empty()) {
    const repl::ProgressLine progress(session);
    return repl::run_batch(session, lines, options) ? 0 : 1;
  }
  if (files.empty() && !prompt) {
    const repl::ProgressLine progress(session);
    return repl::run_batch(session, repl::report_commands(PALLASCOPE_ASSETS_DIR, full), options) ? 0 : 1;
  }
  if (terminal) {
    session.start_host();
    options.echo = false;
    repl::run_batch(session, lines, options);
    return repl::run_terminal(session);
  }
  // No terminal: what is typed comes from a pipe or a file, as in `pallascope model.pt2 < commands`.
  if (isatty(STDIN_FILENO) == 0) {
    for (std::string& line : repl::split_commands(standard_input(), true)) lines.push_back(std::move(line));
  }
  const repl::ProgressLine progress(session);
  return repl::run_batch(session, lines, options) ? 0 : 1;
}
