// Room: workspace. The window's side of a session: what is open and what runs, without a frame ever waiting.
// Takes: commands from panels and from the REPL, a host link.
// Gives: immutable scenes, details, layouts, results and the transcript, exchanged at the start of a frame.
// May use: core, app/model, app/repl.
// Never: includes ImGui, blocks the thread that calls it, parses a command that app/repl can parse.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "app/model/search.h"
#include "app/repl/command.h"
#include "app/repl/completion.h"
#include "app/repl/session.h"
#include "app/workspace/look.h"
#include "app/workspace/python_file.h"
#include "app/workspace/recent.h"
#include "app/workspace/scene.h"
#include "app/workspace/worker.h"

namespace pallascope::workspace {

/// All functions are called by one thread, the one that draws, unless they say otherwise.
///
/// Three workers: the *engine* runs the commands that need no Python and makes scenes and details, in order; the
/// *runner* runs those that wait for the host, on a copy of what is open, so that one can step on meanwhile; the
/// *layouter* places graphs. What they finish waits until `update`.
class Workspace {
 public:
  struct Options {
    std::shared_ptr<repl::HostLink> host;  ///< may be null: then commands that need one say so
    /// Called by a worker when there is something for `update`. May be empty; must not block.
    std::function<void()> wake;
    /// Where recent.json, look.json and the prompt's history are kept; empty: nothing is read or written.
    std::filesystem::path state_folder = {};
  };
  explicit Workspace(Options options);
  /// Cancels what runs and waits for it.
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// Takes over what the workers finished. Once a frame, before anything is drawn. True if anything changed.
  bool update();

  // What a person does.
  /// A line typed into the REPL. Its whole output goes to the transcript; lines typed while a typed one waits for the
  /// host wait behind it. Python blocks are one text with newlines; other commands may be separated by `;`.
  void type(std::string line);
  /// A command that stands for a click: echoed, and run. Its output is shown only if it is an error, or if the command
  /// is one whose output no panel shows (open, trace, check, run).
  void click(std::string line);
  /// Echoes the command that would show what was just selected, without running it. An echo of the same command right
  /// before is replaced, so that browsing does not fill the transcript.
  void echo(std::string line);
  /// Shows a sentence of the program's own in the transcript.
  void note(std::string text);
  /// Goes to where `position` decisions hold. Newer wishes replace older ones that wait: for scrubbing and held keys.
  void move_to(std::size_t position);
  /// Where the last wish leads: the scene's position once it is there.
  [[nodiscard]] std::size_t wanted_position() const;
  /// Ends what the host works on. The host is started again.
  void cancel();
  /// Writes how the window looks for the next run; in the background, as all that is kept.
  void keep_look(const Look& look);
  void start_host();
  void restart_host();

  // What panels ask for; each replaces an older request of its kind.
  /// Makes the detail of a selection of the current scene.
  void request_detail(const model::Selection& selection);
  /// Makes the lines linked to a selection, for what the pointer is over.
  void request_preview(const model::Selection& selection);
  /// Lays the current scene's graph out. Boxes stay near where they were in the last layout. Returns its number.
  std::uint64_t request_graph(model::GraphOptions options, const model::LayoutMetrics& metrics);
  /// Makes the search index of the current scene, if it is not there or stale.
  void request_search();
  /// Looks again which of the recent files are there.
  void request_recent();
  /// Looks into a Python file for what could be traced, without executing it.
  void request_python_file(const std::string& path);

  // What is there. Pointers may be null and stay valid as long as they are held.
  [[nodiscard]] const std::shared_ptr<const Scene>& scene() const { return scene_; }
  [[nodiscard]] const std::shared_ptr<const Detail>& detail() const { return detail_; }
  [[nodiscard]] const std::shared_ptr<const Detail>& preview() const { return preview_; }
  [[nodiscard]] const std::shared_ptr<const GraphScene>& graph() const { return graph_; }
  [[nodiscard]] const std::shared_ptr<const model::SearchIndex>& search() const { return search_; }
  [[nodiscard]] const std::shared_ptr<const CheckRun>& check() const { return check_; }
  /// Whether the last check is of the program as it is now.
  [[nodiscard]] bool check_is_current() const;
  [[nodiscard]] const std::optional<Busy>& busy() const { return busy_; }
  /// How many typed commands wait for the one that the host works on.
  [[nodiscard]] std::size_t typed_waiting() const { return typed_waiting_.size(); }
  /// Whether a file is being read or a scene being made.
  [[nodiscard]] bool loading() const { return loading_ > 0; }
  [[nodiscard]] const repl::HostStatus& host() const { return host_status_; }
  [[nodiscard]] bool has_host() const { return host_ != nullptr; }
  /// The host's own output, oldest first, its last 256 KiB.
  [[nodiscard]] const std::string& host_log() const { return host_log_; }
  /// How much the host has said in all, in bytes: where host_log() ends.
  [[nodiscard]] std::uint64_t host_log_end() const { return host_log_end_; }
  [[nodiscard]] const std::deque<TranscriptEntry>& transcript() const { return transcript_; }
  /// How many entries have gone at the front of the transcript: the number of the first one that is left.
  [[nodiscard]] std::uint64_t transcript_first() const { return transcript_first_; }
  /// Grows with each change of the transcript.
  [[nodiscard]] std::uint64_t transcript_number() const { return transcript_number_; }
  /// The last error of a click, for a bar that a person can close; empty when there is none.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  void clear_problem() { problem_.clear(); }
  /// What a typed command was about, once: the window selects it.
  std::optional<model::Selection> take_selection() { return std::exchange(selected_, std::nullopt); }
  /// What was typed, also in earlier runs and in the terminal; oldest first.
  [[nodiscard]] const std::deque<std::string>& history() const { return history_; }
  /// What was opened lately, newest first.
  [[nodiscard]] const std::vector<RecentFile>& recent() const { return recent_; }
  /// The last one that was asked for; null before.
  [[nodiscard]] const std::shared_ptr<const PythonFile>& python_file() const { return python_file_; }
  /// Set when `quit` was typed.
  [[nodiscard]] bool finished() const { return finished_; }

  /// Completes a typed line at its end, with the names of the current scene.
  [[nodiscard]] repl::Completion complete(const std::string& line);

  /// For tests: blocks until no worker has anything to do, and updates.
  void settle();

 private:
  struct Made {  ///< raw columns (without flags) of a position, kept for the next step
    std::size_t position;
    std::shared_ptr<const model::SourceColumns> columns;
  };

  void submit(std::string line, TranscriptEntry::Kind kind);
  void run_line(std::string line, TranscriptEntry::Kind kind);
  void run_on_host(std::string line, TranscriptEntry::Kind kind);
  void execute_on_engine(const std::string& line, TranscriptEntry::Kind kind);
  void finish_host_command(const std::string& line, TranscriptEntry::Kind kind, repl::Execution execution,
                           std::optional<repl::Opened> before, std::optional<repl::Opened> after);
  void publish();                                        // engine
  std::shared_ptr<const model::SourceColumns> columns_at(std::size_t position);  // engine
  void report(const std::string& line, TranscriptEntry::Kind kind, const repl::Execution& execution);
  void append(TranscriptEntry entry);
  void deliver(std::function<void()> apply);             // any thread
  void poll_host();
  void load_state(bool history);                         // engine
  void remember_opened(const std::string& line, const std::string& command);     // engine

  std::shared_ptr<repl::HostLink> host_;
  std::function<void()> wake_;
  std::filesystem::path state_folder_;

  // Exchanged between threads.
  std::mutex inbox_mutex_;
  std::vector<std::function<void()>> inbox_;

  // The engine's.
  repl::Session session_;
  std::shared_ptr<const Scene> engine_scene_;  ///< the last one made
  report::CheckedAt engine_checked_;           ///< what its summary says of checks
  std::deque<Made> made_;
  std::uint64_t next_scene_ = 1;
  std::vector<RecentFile> engine_recent_;

  // The runner's.
  repl::Session runner_session_;

  // The drawing thread's.
  repl::Session look_session_;  ///< what is open as of `scene_`: completion reads it, no command runs on it
  std::shared_ptr<const Scene> scene_;
  std::shared_ptr<const Detail> detail_, preview_;
  std::shared_ptr<const GraphScene> graph_;
  std::shared_ptr<const model::SearchIndex> search_;
  std::uint64_t search_scene_ = 0, search_wanted_ = 0;
  std::shared_ptr<const CheckRun> check_;
  std::optional<Busy> busy_;
  std::stop_source busy_stop_;
  int loading_ = 0;
  std::optional<std::size_t> wanted_;
  std::uint64_t wanted_number_ = 0;
  std::uint64_t graph_requests_ = 0;
  std::deque<std::pair<std::string, TranscriptEntry::Kind>> typed_waiting_;
  std::deque<TranscriptEntry> transcript_;
  std::uint64_t transcript_number_ = 0, transcript_first_ = 0;
  std::deque<std::string> history_;
  std::vector<RecentFile> recent_;
  std::shared_ptr<const PythonFile> python_file_;
  std::string problem_;
  std::optional<model::Selection> selected_;
  repl::HostStatus host_status_;
  std::string host_log_;
  std::uint64_t host_log_end_ = 0;
  bool finished_ = false;

  // Last, since their jobs use all of the above; and the engine goes first, since its jobs post to the runner.
  Worker runner_, layouter_, engine_;
};

}  // namespace pallascope::workspace
