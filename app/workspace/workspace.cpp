#include "app/workspace/workspace.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "app/repl/names.h"
#include "app/repl/words.h"
#include "app/workspace/paths.h"
#include "core/report/format.h"

namespace pallascope::workspace {
namespace {

using Kind = TranscriptEntry::Kind;

constexpr std::size_t most_entries = 2'000;        // of the transcript; a screen shows twenty
constexpr std::size_t most_host_log = 256 * 1024;  // bytes
constexpr std::size_t most_history = 2'000;        // lines, as in the terminal
constexpr std::size_t most_made = 6;               // positions whose columns are kept: steps go back and forth

std::string without_last_newlines(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string first_word(std::string_view line) {
  const std::size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos) return "";
  return std::string(line.substr(start, line.find_first_of(" \t", start) - start));
}

/// What a typed command was about, so that the panels can show the same.
std::optional<model::Selection> subject(const repl::Opened& opened, const session::Snapshot& snapshot,
                                        const repl::Execution& execution, std::string_view line) {
  const std::string& command = execution.command;
  if (command == "goto" || command == "step" || command == "stepback") {
    if (opened.position == 0) return std::nullopt;
    return model::Selection(schedule::DecisionId(opened.position - 1));
  }
  if (command != "why" && command != "show" && command != "index" && command != "deps" && command != "users" &&
      command != "why-not" && command != "code")
    return std::nullopt;
  if (command == "why-not") {
    const auto at = execution.result->json.find("decision");
    if (at != execution.result->json.end() && at->is_object() && at->contains("id")) {
      const auto thing = repl::resolve(opened, snapshot, (*at)["id"].get<std::string>());
      if (thing.ok() && thing->kind == repl::Thing::Kind::decision) return model::Selection(thing->decision);
    }
  }
  const auto words = repl::split_words(line);
  if (!words.ok() || words->size() < 2 || (*words)[1].starts_with("--")) return std::nullopt;
  const auto thing = repl::resolve(opened, snapshot, (*words)[1]);
  if (!thing.ok()) return std::nullopt;
  switch (thing->kind) {
    case repl::Thing::Kind::node:
      if (thing->nodes.empty()) return std::nullopt;
      return model::Selection(thing->nodes.front());
    case repl::Thing::Kind::buffer: return model::Selection(thing->buffer);
    case repl::Thing::Kind::kernel: return model::Selection(thing->kernel);
    case repl::Thing::Kind::decision: return model::Selection(thing->decision);
  }
  return std::nullopt;
}

/// The decision that the Why panel shows for a selection: itself, else of those about it the most notable one: the
/// missed fusion with the most bytes, another refusal, an accepted one. Nothing for a group: too many are about it.
std::optional<schedule::DecisionId> decision_for(const Scene& scene, const model::Selection& selection) {
  if (const auto* decision = std::get_if<schedule::DecisionId>(&selection)) return *decision;
  if (model::is_empty(selection) || std::holds_alternative<model::GroupRef>(selection)) return std::nullopt;
  const auto nodes = model::nodes_of(*scene.compilation, *scene.snapshot, selection);
  for (const std::uint32_t k : scene.decisions->by_missed()) {
    const schedule::DecisionId id(static_cast<std::size_t>(k));
    if (std::any_of(nodes.begin(), nodes.end(),
                    [&](trace::NodeId node) { return scene.decisions->names(id, node); }))
      return id;
  }
  return std::nullopt;
}

}  // namespace

Workspace::Workspace(Options options)
    : host_(std::move(options.host)),
      wake_(std::move(options.wake)),
      state_folder_(std::move(options.state_folder)),
      session_(host_),
      runner_session_(host_) {
  if (!state_folder_.empty()) engine_.post([this](const std::stop_token&) { load_state(true); });
}

Workspace::~Workspace() { busy_stop_.request_stop(); }

void Workspace::deliver(std::function<void()> apply) {
  {
    const std::lock_guard lock(inbox_mutex_);
    inbox_.push_back(std::move(apply));
  }
  if (wake_) wake_();
}

bool Workspace::update() {
  std::vector<std::function<void()>> inbox;
  {
    const std::lock_guard lock(inbox_mutex_);
    inbox.swap(inbox_);
  }
  for (auto& apply : inbox) apply();
  const repl::HostStatus before = host_status_;
  const std::uint64_t log_before = host_log_end_;
  poll_host();
  return !inbox.empty() || before != host_status_ || log_before != host_log_end_;
}

void Workspace::poll_host() {
  if (!host_) return;
  host_status_ = host_->status();
  repl::HostLog part = host_->log(host_log_end_);
  if (part.end == host_log_end_) return;
  host_log_ += part.text;
  host_log_end_ = part.end;
  if (host_log_.size() > most_host_log) {
    // Cut at a line, so that the first one shown is whole.
    const std::size_t cut = host_log_.find('\n', host_log_.size() - most_host_log);
    host_log_.erase(0, cut == std::string::npos ? host_log_.size() - most_host_log : cut + 1);
  }
}

void Workspace::append(TranscriptEntry entry) {
  if (entry.text.empty()) return;
  transcript_.push_back(std::move(entry));
  if (transcript_.size() > most_entries) {
    transcript_.pop_front();
    ++transcript_first_;
  }
  ++transcript_number_;
}

void Workspace::note(std::string text) { append({Kind::note, std::move(text)}); }

void Workspace::echo(std::string line) {
  if (!transcript_.empty() && transcript_.back().kind == Kind::echo &&
      first_word(transcript_.back().text) == first_word(line)) {
    transcript_.back().text = std::move(line);
    ++transcript_number_;
    return;
  }
  append({Kind::echo, std::move(line)});
}

void Workspace::type(std::string line) {
  if (first_word(line).empty()) return;
  if (history_.empty() || history_.back() != line) {
    history_.push_back(line);
    if (history_.size() > most_history) history_.pop_front();
    if (!state_folder_.empty()) {
      engine_.post([file = state_folder_ / "history", line](const std::stop_token&) { append_history(file, line); });
    }
  }
  for (std::string& command : repl::split_commands(line, true)) submit(std::move(command), Kind::typed);
}

void Workspace::click(std::string line) { submit(std::move(line), Kind::echo); }

void Workspace::submit(std::string line, Kind kind) {
  if (first_word(line).empty()) return;
  if (kind == Kind::typed && busy_) {
    typed_waiting_.emplace_back(std::move(line), kind);
    return;
  }
  if (busy_ && repl::needs_host(line)) {
    problem_ = fmt::format("The host still works on `{}`: wait for it, or cancel it.", busy_->command);
    return;
  }
  run_line(std::move(line), kind);
}

void Workspace::run_line(std::string line, Kind kind) {
  if (kind == Kind::echo) {
    echo(line);
  } else {
    append({kind, line});
  }
  // An unfinished name is understood when it is typed: what it stands for decides where it runs.
  std::string full = line;
  if (kind == Kind::typed && !repl::is_python(line)) {
    const std::string word = first_word(line);
    const auto command = repl::find_command(word, false);
    if (command.ok()) full.replace(full.find(word), word.size(), (*command)->name);
  }
  if (repl::needs_host(full)) {
    run_on_host(std::move(full), kind);
    return;
  }
  ++loading_;
  engine_.post([this, line = std::move(full), kind](const std::stop_token&) { execute_on_engine(line, kind); });
}

void Workspace::execute_on_engine(const std::string& line, Kind kind) {
  repl::Execution execution = repl::execute(session_, line, false);
  std::optional<model::Selection> selection;
  if (execution.result.ok() && session_.peek() != nullptr)
    selection = subject(*session_.peek(), *session_.peek()->snapshot(), execution, line);
  if (execution.result.ok() && execution.command == "open") remember_opened(line, execution.command);
  publish();
  const bool finished = session_.finished();
  deliver([this, line, kind, execution = std::move(execution), selection, finished] {
    --loading_;
    report(line, kind, execution);
    if (selection) selected_ = selection;
    if (finished) finished_ = true;
  });
}

void Workspace::report(const std::string& /*line*/, Kind kind, const repl::Execution& execution) {
  if (!execution.result.ok()) {
    std::string text = without_last_newlines(repl::error_text(execution.result.error()));
    if (kind != Kind::typed) problem_ = text;
    append({Kind::error, std::move(text)});
    return;
  }
  static const std::vector<std::string> no_panel = {"open", "trace", "check", "run", "py", "use"};
  if (kind == Kind::typed ||
      std::find(no_panel.begin(), no_panel.end(), execution.command) != no_panel.end()) {
    std::string text = execution.json ? execution.result->json.dump(2) : execution.result->text;
    append({Kind::output, without_last_newlines(std::move(text))});
  }
}

void Workspace::run_on_host(std::string line, Kind kind) {
  busy_ = Busy{line, "waiting", -1, std::chrono::steady_clock::now(), false};
  busy_stop_ = std::stop_source();
  // The engine hands over what is open once the commands before this one are done.
  engine_.post([this, line = std::move(line), kind, cancel = busy_stop_.get_token()](const std::stop_token&) {
    std::optional<repl::Opened> opened;
    if (session_.peek() != nullptr) opened = *session_.peek();
    runner_.post([this, line, kind, cancel, opened = std::move(opened)](const std::stop_token&) mutable {
      if (opened) {
        runner_session_.set_opened(*opened);
      } else {
        runner_session_.close();
      }
      runner_session_.cancel = cancel;
      runner_session_.progress = [this](const std::string& text, double fraction) {
        deliver([this, text, fraction] {
          if (!busy_ || text.empty()) return;
          busy_->text = text;
          busy_->fraction = fraction;
        });
      };
      repl::Execution execution = repl::execute(runner_session_, line, false);
      std::optional<repl::Opened> after;
      if (runner_session_.peek() != nullptr) after = *runner_session_.peek();
      runner_session_.close();
      deliver([this, line, kind, execution = std::move(execution), opened = std::move(opened),
               after = std::move(after)]() mutable {
        finish_host_command(line, kind, std::move(execution), std::move(opened), std::move(after));
      });
    });
  });
}

void Workspace::finish_host_command(const std::string& line, Kind kind, repl::Execution execution,
                                    std::optional<repl::Opened> before, std::optional<repl::Opened> after) {
  busy_.reset();
  report(line, kind, execution);
  if (execution.result.ok() && after) {
    const bool opened_another = !before || before->compilation != after->compilation;
    if (execution.command == "check") {
      auto run = std::make_shared<CheckRun>();
      run->compilation = after->compilation;
      run->program = after->program;
      run->graph = after->compilation->graph_index();
      run->decision = after->position;
      run->result = execution.result->json;
      run->passed = execution.result->passed;
      run->host = fmt::format("local ({}, jax {})", host_status_.platform, host_status_.jax);
      check_ = std::move(run);
    }
    ++loading_;
    engine_.post([this, opened_another, line, command = execution.command,
                  after = std::move(*after)](const std::stop_token&) {
      if (opened_another) {
        session_.set_opened(after);
        if (command == "trace") remember_opened(line, command);
      } else if (session_.peek() != nullptr && session_.peek()->program == after.program) {
        repl::Opened merged = *session_.peek();
        for (const auto& [graph, checked] : after.checked) merged.checked[graph] = checked;
        session_.set_opened(std::move(merged));
      }
      publish();
      deliver([this] { --loading_; });
    });
  }
  while (!typed_waiting_.empty() && !busy_) {
    auto [next, next_kind] = std::move(typed_waiting_.front());
    typed_waiting_.pop_front();
    run_line(std::move(next), next_kind);
  }
}

void Workspace::cancel() {
  if (!busy_) return;
  busy_->cancelling = true;
  busy_->text = "cancelling";
  typed_waiting_.clear();  // they were typed on the assumption that this one works
  busy_stop_.request_stop();
}

void Workspace::start_host() {
  if (host_) host_->start();
}

void Workspace::restart_host() {
  if (host_) host_->restart();
}

std::size_t Workspace::wanted_position() const {
  if (wanted_) return *wanted_;
  return scene_ ? scene_->position : 0;
}

void Workspace::move_to(std::size_t position) {
  if (!scene_) return;
  position = std::min(position, scene_->total());
  wanted_ = position;
  const std::uint64_t number = ++wanted_number_;
  echo(position == 0 ? std::string("goto start")
                     : "goto " + report::id_text(schedule::DecisionId(position - 1)));
  engine_.replace("move", [this, position, number, compilation = scene_->compilation](const std::stop_token&) {
    if (session_.peek() != nullptr && session_.peek()->compilation == compilation) {
      repl::Opened moved = *session_.peek();
      moved.position = position;
      session_.set_opened(std::move(moved));
      publish();
    }
    deliver([this, number] {
      if (wanted_number_ == number) wanted_.reset();
    });
  });
}

std::shared_ptr<const model::SourceColumns> Workspace::columns_at(std::size_t position) {
  const auto at =
      std::find_if(made_.begin(), made_.end(), [&](const Made& made) { return made.position == position; });
  if (at != made_.end()) return at->columns;
  const session::Compilation& compilation = *session_.peek()->compilation;
  auto columns = std::make_shared<const model::SourceColumns>(
      model::source_columns(compilation, *compilation.at(position), made_.empty() ? nullptr : made_.back().columns.get()));
  made_.push_back({position, columns});
  if (made_.size() > most_made) made_.pop_front();
  return columns;
}

void Workspace::publish() {
  const repl::Opened* opened = session_.peek();
  if (opened == nullptr) return;
  const report::CheckedAt checked = opened->checked_here();
  const bool same_compilation = engine_scene_ && engine_scene_->compilation == opened->compilation;
  const bool same_check = checked.checked == engine_checked_.checked && checked.verdict == engine_checked_.verdict &&
                          checked.decision == engine_checked_.decision;
  if (same_compilation && engine_scene_->position == opened->position && same_check) return;
  auto scene = std::make_shared<Scene>();
  scene->number = next_scene_++;
  scene->program = opened->program;
  scene->path = opened->path;
  scene->compilation = opened->compilation;
  scene->position = opened->position;
  if (same_compilation && engine_scene_->position == opened->position) {
    scene->snapshot = engine_scene_->snapshot;
    scene->columns = engine_scene_->columns;
    scene->outline = engine_scene_->outline;
  } else {
    if (!same_compilation) made_.clear();
    scene->snapshot = opened->snapshot();
    const auto now = columns_at(opened->position);
    if (opened->position == 0) {
      scene->columns = now;
    } else {
      auto flagged = std::make_shared<model::SourceColumns>(*now);
      model::mark_changes(*flagged, *columns_at(opened->position - 1));
      scene->columns = std::move(flagged);
    }
    scene->outline = std::make_shared<const model::SourceOutline>(
        model::source_outline(*scene->compilation, *scene->snapshot, *scene->columns));
  }
  scene->decisions = same_compilation ? engine_scene_->decisions
                                      : std::make_shared<const model::DecisionIndex>(opened->compilation);
  scene->summary = std::make_shared<const model::SummaryView>(
      model::summary_view(*scene->compilation, *scene->snapshot));
  engine_scene_ = scene;
  engine_checked_ = checked;
  deliver([this, scene, opened = *opened] {
    // What is selected means nothing in another program; in the same one it follows (see the window).
    if (scene_ && scene_->compilation != scene->compilation) {
      detail_ = nullptr;
      preview_ = nullptr;
      graph_ = nullptr;
      search_ = nullptr;
    }
    scene_ = scene;
    look_session_.set_opened(opened);
  });
}

void Workspace::request_detail(const model::Selection& selection) {
  if (!scene_) return;
  engine_.replace("detail", [this, selection, number = scene_->number](const std::stop_token&) {
    const auto scene = engine_scene_;
    if (!scene || scene->number != number) return;  // the window asks again when it has the newer scene
    auto detail = std::make_shared<Detail>();
    detail->scene = number;
    detail->selection = selection;
    detail->linked = model::linked(*scene->compilation, *scene->snapshot, *scene->columns, selection);
    detail->inspector = model::inspector(*scene->compilation, *scene->snapshot, selection);
    detail->index = model::index_view(*scene->compilation, *scene->snapshot, selection);
    if (const auto decision = decision_for(*scene, selection))
      detail->why = std::make_shared<const model::WhyView>(
          model::why_view(*scene->compilation, *scene->snapshot, *decision, selection));
    deliver([this, detail] { detail_ = detail; });
  });
}

void Workspace::request_preview(const model::Selection& selection) {
  if (!scene_) return;
  engine_.replace("preview", [this, selection, number = scene_->number](const std::stop_token&) {
    const auto scene = engine_scene_;
    if (!scene || scene->number != number) return;
    auto detail = std::make_shared<Detail>();
    detail->scene = number;
    detail->selection = selection;
    detail->linked = model::linked(*scene->compilation, *scene->snapshot, *scene->columns, selection);
    deliver([this, detail] { preview_ = detail; });
  });
}

std::uint64_t Workspace::request_graph(model::GraphOptions options, const model::LayoutMetrics& metrics) {
  if (!scene_) return 0;
  const std::uint64_t request = ++graph_requests_;
  layouter_.replace("graph", [this, request, scene = scene_, before = graph_, options = std::move(options),
                              metrics](const std::stop_token& stop) {
    auto made = std::make_shared<GraphScene>();
    made->scene = scene->number;
    made->request = request;
    made->options = options;
    made->graph = model::graph_model(*scene->compilation, *scene->snapshot, options);
    const model::LayoutHints hints = before ? model::hints_of(before->graph, before->layout) : model::LayoutHints{};
    auto layout = model::lay_out(made->graph, metrics, hints, stop);
    if (!layout) return;
    made->layout = std::move(*layout);
    deliver([this, made] {
      // One of another program may have been on its way when that was closed.
      if (scene_ && made->scene <= scene_->number && (!graph_ || graph_->request < made->request)) graph_ = made;
    });
  });
  return request;
}

void Workspace::request_search() {
  if (!scene_ || search_wanted_ == scene_->number) return;
  search_wanted_ = scene_->number;
  engine_.replace("search", [this, scene = scene_](const std::stop_token&) {
    std::vector<std::string> names;
    for (const repl::Command& command : repl::commands()) names.push_back(command.name);
    auto index = std::make_shared<const model::SearchIndex>(
        model::search_items(*scene->compilation, *scene->snapshot, names));
    deliver([this, index, number = scene->number] {
      if (search_wanted_ != number) return;
      search_ = index;
      search_scene_ = number;
    });
  });
}

void Workspace::load_state(bool history) {
  engine_recent_ = load_recent(state_folder_ / "recent.json");
  std::vector<std::string> lines;
  if (history) lines = load_history(state_folder_ / "history", most_history);
  deliver([this, recent = engine_recent_, lines = std::move(lines)]() mutable {
    recent_ = std::move(recent);
    // What was typed before they were read is newer.
    history_.insert(history_.begin(), std::make_move_iterator(lines.begin()), std::make_move_iterator(lines.end()));
  });
}

void Workspace::request_recent() {
  if (state_folder_.empty()) return;
  engine_.replace("recent", [this](const std::stop_token&) { load_state(false); });
}

void Workspace::remember_opened(const std::string& line, const std::string& command) {
  const repl::Opened* opened = session_.peek();
  // The examples are always on the start page.
  if (state_folder_.empty() || opened == nullptr || opened->path.empty() ||
      opened->path.starts_with(assets_folder() + "/"))
    return;
  RecentFile recent{command + " " + repl::quote_word(opened->path), opened->path, 0, true};
  if (command == "trace") {
    const auto words = repl::split_words(line);
    if (!words.ok() || words->size() < 2) return;
    const std::size_t colon = (*words)[1].rfind(':');
    if (colon == std::string::npos) return;
    recent.command = "trace " + repl::quote_word(opened->path + (*words)[1].substr(colon));
    for (std::size_t k = 2; k < words->size(); ++k) recent.command += " " + repl::quote_word((*words)[k]);
  }
  recent.time = std::chrono::duration_cast<std::chrono::seconds>(
                    std::chrono::system_clock::now().time_since_epoch()).count();
  // Another window may have written meanwhile.
  engine_recent_ = load_recent(state_folder_ / "recent.json");
  add_recent(engine_recent_, std::move(recent));
  save_recent(state_folder_ / "recent.json", engine_recent_);
  deliver([this, list = engine_recent_]() mutable { recent_ = std::move(list); });
}

void Workspace::keep_look(const Look& look) {
  if (state_folder_.empty()) return;
  engine_.replace("look", [file = state_folder_ / "look.json", look](const std::stop_token&) { save_look(file, look); });
}

void Workspace::request_python_file(const std::string& path) {
  engine_.replace("python file", [this, path](const std::stop_token&) {
    auto file = std::make_shared<const PythonFile>(read_python_file(path));
    deliver([this, file] { python_file_ = file; });
  });
}

bool Workspace::check_is_current() const {
  return check_ && scene_ && check_->compilation == scene_->compilation && check_->decision == scene_->position;
}

repl::Completion Workspace::complete(const std::string& line) { return repl::complete(look_session_, line); }

void Workspace::settle() {
  // A job of one worker may post to another, and what is delivered may post again: until a whole round is quiet.
  for (bool quiet = false; !quiet;) {
    engine_.wait_idle();
    runner_.wait_idle();
    engine_.wait_idle();
    layouter_.wait_idle();
    const bool changed = update();
    quiet = !changed && engine_.idle() && runner_.idle() && layouter_.idle();
    if (quiet) {
      const std::lock_guard lock(inbox_mutex_);
      quiet = inbox_.empty();
    }
  }
}

}  // namespace pallascope::workspace
