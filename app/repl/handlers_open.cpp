#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "app/repl/handlers.h"
#include "app/repl/names.h"
#include "app/repl/words.h"
#include "core/report/format.h"
#include "core/report/inventory.h"
#include "core/report/summary.h"
#include "core/trace/read.h"

namespace pallascope::repl {
namespace {

namespace fs = std::filesystem;
using report::Json;

/// `~` and `~/x` as a shell reads them: the terminal has no shell in front of it.
fs::path expanded(const std::string& word) {
  const char* home = std::getenv("HOME");
  if (home != nullptr && (word == "~" || word.starts_with("~/")))
    return fs::path(home) / word.substr(std::min<std::size_t>(2, word.size()));
  return word;
}

fs::path absolute_path(const fs::path& path) {
  std::error_code error;
  const fs::path result = fs::absolute(path, error);
  return error ? path : result.lexically_normal();
}

/// Where a file's inputs and weights are. A zip is a bundle when its directory of members names bundle.json: the
/// directory is the last thing in a zip, with the names as plain text, and a bundle has few members.
Source source_of(const fs::path& path) {
  constexpr std::streamoff tail_length = 65536;
  std::error_code error;
  if (fs::is_directory(path, error)) return Source::bundle;
  std::ifstream file(path, std::ios::binary);
  std::string start(2, '\0');
  file.read(start.data(), 2);
  if (start != "PK") return Source::json;
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  std::string tail(static_cast<std::size_t>(std::min(size, tail_length)), '\0');
  file.seekg(size - static_cast<std::streamoff>(tail.size()));
  file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  return tail.find("bundle.json") != std::string::npos ? Source::bundle : Source::pt2;
}

Output summary_of(const Opened& opened) {
  Output output;
  const auto snapshot = opened.snapshot();
  output.json = report::summary_json(*opened.compilation, *snapshot, opened.checked_here());
  output.text = report::summary_text(*opened.compilation, *snapshot, opened.checked_here());
  return output;
}

Output take(Session& session, Opened opened) {
  Output output = summary_of(opened);
  if (opened.program->graphs.size() > 1) output.text += "`graphs` lists the graphs, `use` switches\n";
  session.set_opened(std::move(opened));
  return output;
}

/// The nearest name in the folder of a file that does not exist.
std::string similar_file(const fs::path& path) {
  std::error_code error;
  std::vector<std::string> names;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
    if (names.size() == 10'000) break;  // a suggestion is not worth reading an endless folder
  }
  const std::string near = nearest(path.filename().string(), names);
  return near.empty() ? "" : (path.has_parent_path() ? (path.parent_path() / near).string() : near);
}

}  // namespace

Result<Output> run_open(Session& session, const Arguments& arguments) {
  const fs::path path = expanded(arguments.words[0]);
  std::error_code error;
  if (!fs::exists(path, error)) {
    const std::string near = similar_file(path);
    return Diagnostic{DiagnosticKind::not_found, fmt::format("there is no file '{}'", path.string()), "",
                      near.empty() ? fmt::format("the working folder is {}", fs::current_path(error).string())
                                   : fmt::format("did you mean {}?", near)};
  }
  if (path.extension() == ".py") {
    return Diagnostic{DiagnosticKind::invalid_argument, "a Python file is executed, not opened",
                      path.string(),
                      fmt::format("name the function and its inputs: trace {}:FN f32[8,128]", path.string())};
  }
  auto program = trace::open(path);
  if (!program.ok()) return program.error();
  auto opened = Session::compiled(std::make_shared<const trace::Program>(*std::move(program)), std::nullopt);
  if (!opened.ok()) return opened.error();
  opened->path = absolute_path(path).string();
  opened->source = source_of(path);
  return take(session, *std::move(opened));
}

Result<Output> run_trace(Session& session, const Arguments& arguments) {
  const std::string& target = arguments.words[0];
  const std::size_t colon = target.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == target.size()) {
    return Diagnostic{DiagnosticKind::usage, fmt::format("'{}' does not name a function", target), "trace",
                      "write FILE.py:FN, for example trace model.py:f f32[8,128]"};
  }
  const fs::path file = expanded(target.substr(0, colon));
  std::error_code error;
  if (!fs::exists(file, error)) {
    const std::string near = similar_file(file);
    return Diagnostic{DiagnosticKind::not_found, fmt::format("there is no file '{}'", file.string()), "",
                      near.empty() ? "" : fmt::format("did you mean {}?", near)};
  }
  const std::string path = absolute_path(file).string();
  Json request = {{"request", "trace"}, {"file", path}, {"function", target.substr(colon + 1)}};
  request["specs"] = std::vector<std::string>(arguments.words.begin() + 1, arguments.words.end());
  const auto reply = session.ask(request);
  if (!reply.ok()) return reply.error();
  const auto at = reply->find("program");
  if (!reply->is_object() || at == reply->end()) {
    return Diagnostic{DiagnosticKind::host_error, "the host's answer holds no program", path,
                      "the host may be of another version"};
  }
  const std::string text = at->is_string() ? at->get<std::string>() : at->dump();
  auto program = trace::read_json(text, path);
  if (!program.ok()) return program.error();
  if (program->origin.empty()) program->origin = path + ":" + target.substr(colon + 1);
  auto opened = Session::compiled(std::make_shared<const trace::Program>(*std::move(program)), std::nullopt);
  if (!opened.ok()) return opened.error();
  opened->path = path;
  opened->source = Source::traced;
  for (const char* key : {"origin", "token"}) {
    if (const auto token = reply->find(key); token != reply->end() && token->is_string())
      opened->token = token->get<std::string>();
  }
  return take(session, *std::move(opened));
}

Result<Output> run_graphs(Session& session, const Arguments& /*arguments*/) {
  const auto opened = session.opened();
  if (!opened.ok()) return opened.error();
  Output output;
  const std::size_t current = (*opened)->compilation->graph_index();
  output.json = {{"graphs", report::graphs_json(*(*opened)->program, current)}};
  output.text = report::graphs_text(*(*opened)->program, current);
  return output;
}

Result<Output> run_use(Session& session, const Arguments& arguments) {
  const auto current = session.opened();
  if (!current.ok()) return current.error();
  const auto& graphs = (*current)->program->graphs;
  const std::string& word = arguments.words[0];
  std::optional<std::size_t> index;
  for (std::size_t k = 0; k < graphs.size() && !index; ++k) {
    if (word == graphs[k].name || word == fmt::format("{}", k)) index = k;
  }
  if (!index) {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < graphs.size(); ++k)
      names.push_back(fmt::format("{} ({})", k, graphs[k].name));
    return Diagnostic{DiagnosticKind::not_found, fmt::format("there is no graph '{}'", word), "",
                      "the graphs are " + report::join(names, ", ")};
  }
  auto opened = Session::compiled((*current)->program, *index);
  if (!opened.ok()) return opened.error();
  opened->path = (*current)->path;
  opened->source = (*current)->source;
  opened->token = (*current)->token;
  opened->checked = (*current)->checked;
  return take(session, *std::move(opened));
}

Result<Output> run_summary(Session& session, const Arguments& /*arguments*/) {
  const auto opened = session.opened();
  if (!opened.ok()) return opened.error();
  return summary_of(**opened);
}

}  // namespace pallascope::repl
