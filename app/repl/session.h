// Room: repl. What is open, and where one stands in it: the state that every command works on.
// Takes: commands as lines of text, from the terminal, a script, `-c` or the window.
// Gives: for each a JSON value and text; the same state to all of them.
// May use: core, the client of the host, libedit and CLI11 (the terminal and the command line only).
// Never: prints from a command, loses what is open because of an error, waits for Python where none is needed.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "app/repl/host_link.h"
#include "core/base/result.h"
#include "core/report/json.h"
#include "core/report/summary.h"
#include "core/session/compilation.h"
#include "core/trace/graph.h"

namespace pallascope::repl {

/// Where a program came from, which decides where its weights and inputs are.
enum class Source { json, pt2, bundle, traced };

/// A program, the graph of it that is in use, and the decision at which one stands.
struct Opened {
  std::shared_ptr<const trace::Program> program;
  std::shared_ptr<const session::Compilation> compilation;
  std::size_t position = 0;  ///< how many decisions hold
  Source source = Source::json;
  std::string path;                                  ///< absolute; FILE.py of a traced function
  std::string token;                                 ///< the host's name for a traced function's weights
  std::map<std::size_t, report::CheckedAt> checked;  ///< by graph

  [[nodiscard]] std::shared_ptr<const session::Snapshot> snapshot() const {
    return compilation->at(position);
  }
  [[nodiscard]] report::CheckedAt checked_here() const;
};

class Session {
 public:
  /// Sessions that share a host take turns with it.
  explicit Session(std::shared_ptr<HostLink> host = nullptr) : host_(std::move(host)) {}

  /// What is open, or the diagnostic that tells how to open something.
  [[nodiscard]] Result<Opened*> opened();
  [[nodiscard]] const Opened* peek() const { return opened_ ? &*opened_ : nullptr; }
  void set_opened(Opened opened) { opened_ = std::move(opened); }
  void close() { opened_.reset(); }

  /// Compiles graph `graph` of a program; the first one that compiles when none is named. Stands after all decisions.
  static Result<Opened> compiled(std::shared_ptr<const trace::Program> program,
                                 std::optional<std::size_t> graph);

  /// Sends a request and waits. Calls `progress` while it waits; `interrupt` ends it.
  Result<report::Json> ask(const report::Json& header);
  void start_host();
  /// Ends the request that is waited for, if there is one. Any thread may call it.
  void interrupt();

  /// Called on the thread that runs the command; with an empty text when the wait is over. May be empty.
  Progress progress;
  /// A request also ends, or does not begin, when this is stopped.
  std::stop_token cancel;

  void quit() { finished_ = true; }
  [[nodiscard]] bool finished() const { return finished_; }

 private:
  std::shared_ptr<HostLink> host_;
  std::optional<Opened> opened_;
  bool finished_ = false;
  std::mutex mutex_;
  std::stop_source stop_;
};

}  // namespace pallascope::repl
