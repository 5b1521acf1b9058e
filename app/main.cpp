// Room: app. The program: the window, the terminal, the batch mode and the report on the bundled examples.
// Takes: the command line, standard input, whether there is a display.
// Gives: a window, or text or JSON on standard output; an exit status.
// May use: every room.
// Never: holds logic that a command could hold.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "app/repl/batch.h"
#include "app/repl/host_link.h"
#include "app/repl/session.h"
#include "app/repl/terminal.h"
#include "app/repl/words.h"
#include "app/window/window.h"

namespace {

constexpr const char* footer =
    "With a display: the window, on FILE or on a bundled example.\n"
    "Without one: the prompt on FILE (`help` there lists the commands), or without FILE a report on the\n"
    "bundled examples (with --full: every decision, access and source). --repl is always the prompt.\n"
    "With -c, or commands on standard input: runs them all, also after one that failed.\n"
    "\n"
    "Exit status: 0 when every command worked and every check passed; 1 when a command failed or a check "
    "found a\n"
    "difference; 2 when the command line makes no sense.\n"
    "\n"
    "Examples:\n"
    "  pallascope model.pt2\n"
    "  pallascope --repl model.pt2\n"
    "  pallascope -c \"open model.pt2; check\" --json\n"
    "  pallascope model.pt2 -c \"goto d37\" --picture window.png\n"
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
  pallascope::window::WindowOptions window;
  bool windowed = false;
  std::string size = "1600x1000", theme, panel;
  float scale = 1;
  std::vector<std::string> panels;
  for (const auto id : pallascope::views::panel_ids) panels.emplace_back(pallascope::views::panel_title(id));
  app.add_flag("--window", windowed, "the window; an error when there is no display");
  app.add_option("--picture", window.picture,
                 "open the window, run the commands, save what it shows to a PNG and leave")
      ->option_text("FILE.png");
  app.add_option("--size", size, "of the window, in pixels")->option_text("WxH")->capture_default_str();
  app.add_option("--theme", theme, "of the window; as in the last run unless given")
      ->check(CLI::IsMember({"dark", "light"}));
  CLI::Option* scaled = app.add_option("--scale", scale, "of text and everything else in the window")
                            ->check(CLI::Range(0.5, 3.0));
  app.add_option("--panel", panel, "to be in front in the window")->check(CLI::IsMember(panels, CLI::ignore_case));
  app.add_option("--frames", window.frames, "leave the window after so many frames (for measuring)");
  app.add_flag("--timings", window.timings, "print how long the window's start and frames took");
  app.set_version_flag("--version", std::string("pallascope ") + PALLASCOPE_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  std::vector<std::string> lines;
  for (const std::string& file : files) lines.push_back("open " + repl::quote_word(file));
  for (const std::string& text : batches) {
    for (std::string& line : repl::split_commands(text)) lines.push_back(std::move(line));
  }
  repl::BatchOptions options;
  options.json = json;
  const bool terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;

  const std::shared_ptr<repl::HostLink> host = repl::client_link();
  windowed = windowed || !window.picture.empty() || window.frames > 0;
  const bool plain = batches.empty() && !prompt && !json && !full;
  const bool display = pallascope::window::no_display_reason().empty();
  if (windowed || (plain && display && (files.empty() || isatty(STDIN_FILENO) != 0))) {
    char cross = 0, rest = 0;
    if (std::sscanf(size.c_str(), "%d%c%d%c", &window.width, &cross, &window.height, &rest) != 3 || cross != 'x' ||
        window.width < 320 || window.height < 240 || window.width > 16'384 || window.height > 16'384) {
      std::fprintf(stderr, "--size is WIDTHxHEIGHT, at least 320x240, for example 1600x1000; not '%s'\n", size.c_str());
      return 2;
    }
    window.host = host;
    if (!theme.empty()) window.dark = theme == "dark";
    if (scaled->count() > 0) window.scale = scale;
    for (std::size_t k = 0; k < panels.size(); ++k) {
      if (CLI::detail::to_lower(panels[k]) == CLI::detail::to_lower(panel)) window.front = pallascope::views::panel_ids[k];
    }
    window.start_at_refusal = batches.empty();
    if (lines.empty())
      lines.push_back("open " + repl::quote_word(std::string(PALLASCOPE_ASSETS_DIR) + "/examples/gpt2_block.pt2"));
    window.commands = lines;
    const auto status = pallascope::window::run_window(window);
    if (status.ok()) return *status;
    std::fputs(repl::error_text(status.error()).c_str(), stderr);
    if (windowed) return 1;
    std::fputs(files.empty() ? "What follows is the report on the bundled examples.\n\n" : "What follows is the prompt.\n", stderr);
  }

  repl::Session session(host);
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
