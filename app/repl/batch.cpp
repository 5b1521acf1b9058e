#include "app/repl/batch.h"

#include <algorithm>

#include "app/repl/command.h"
#include "app/repl/words.h"

namespace pallascope::repl {
namespace {

void print(std::FILE* file, const std::string& text) { std::fwrite(text.data(), 1, text.size(), file); }

}  // namespace

bool run_batch(Session& session, const std::vector<std::string>& lines, const BatchOptions& options) {
  if (std::any_of(lines.begin(), lines.end(), [](const std::string& line) { return needs_host(line); }))
    session.start_host();
  bool good = true;
  for (const std::string& line : lines) {
    if (options.echo && !options.json && lines.size() > 1) print(options.out, "> " + line + "\n");
    std::fflush(options.out);
    const Execution execution = execute(session, line, true);
    good = good && execution.good();
    if (options.json || execution.json) {
      print(options.out,
            envelope(execution).dump(-1, ' ', false, report::Json::error_handler_t::replace) + "\n");
    } else if (execution.result.ok()) {
      print(options.out, execution.result->text);
    } else {
      std::fflush(options.out);
      print(options.errors, error_text(execution.result.error()));
      std::fflush(options.errors);
    }
    // A reader of a pipe sees each answer when it is there.
    std::fflush(options.out);
    if (session.finished()) break;
  }
  return good;
}

std::vector<std::string> report_commands(const std::string& assets, bool full) {
  const std::string examples = assets + "/examples/";
  std::vector<std::string> lines;
  for (const std::string& opening : {"open " + quote_word(examples + "gpt2_block.pt2"),
                                     "trace " + quote_word(examples + "sin_add.py:f") + " f32[4] f32[4]"}) {
    lines.push_back(opening);  // which shows the summary
    if (full) {
      lines.push_back("check --full");
      lines.push_back("ls decisions");
      lines.push_back("reasons");
      lines.push_back("index");
      lines.push_back("code");
    } else {
      lines.push_back("check");
    }
  }
  return lines;
}

}  // namespace pallascope::repl
