#include "app/repl/completion.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "app/repl/command.h"
#include "app/repl/names.h"
#include "app/repl/words.h"
#include "core/lower/lower.h"

namespace pallascope::repl {
namespace {

namespace fs = std::filesystem;

/// The words before the cursor, unquoted, of the command that it is in (after the last `;`), and the one under it.
struct Cursor {
  std::vector<std::string> before;
  std::string word;
  std::size_t start = 0;
  bool in_quotes = false;
};

Cursor at_end(std::string_view line) {
  Cursor cursor;
  std::string word;
  bool inside = false;
  char quote = 0;
  cursor.start = line.size();
  for (std::size_t k = 0; k < line.size(); ++k) {
    const char c = line[k];
    if (!inside) cursor.start = k;
    if (c == '\\' && quote != '\'' && k + 1 < line.size()) {
      word += line[++k];
      inside = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      inside = true;
    } else if (c == ' ' || c == '\t') {
      if (inside) cursor.before.push_back(word);
      word.clear();
      inside = false;
    } else if (c == ';') {
      cursor.before.clear();
      word.clear();
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (!inside) cursor.start = line.size();
  cursor.word = word;
  cursor.in_quotes = quote != 0;
  return cursor;
}

/// Files and folders that go on from `word`; folders end with a slash. `suffix` keeps only files with that ending.
std::vector<std::string> files(const std::string& word, std::string_view suffix) {
  const std::size_t slash = word.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "" : word.substr(0, slash + 1);
  const std::string beginning = slash == std::string::npos ? word : word.substr(slash + 1);
  std::string look_in = folder.empty() ? "." : folder;
  const char* home = std::getenv("HOME");
  if (home != nullptr && look_in.starts_with("~/")) look_in = std::string(home) + look_in.substr(1);
  std::vector<std::string> result;
  std::error_code error;
  for (fs::directory_iterator at(look_in, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(beginning) || (name.starts_with('.') && beginning.empty())) continue;
    std::error_code ignored;
    if (at->is_directory(ignored)) {
      result.push_back(folder + name + "/");
    } else if (suffix.empty() || name.ends_with(suffix)) {
      result.push_back(folder + name);
    }
  }
  return result;
}

void add_words(std::vector<std::string>& result, Session& session, const Command& command,
               const Cursor& cursor) {
  std::size_t place = 0;  // the cursor's place among the words that are no options
  for (std::size_t k = 1; k < cursor.before.size(); ++k) {
    const std::string& word = cursor.before[k];
    if (word.starts_with("--")) {
      const auto option = std::find_if(command.options.begin(), command.options.end(),
                                       [&](const Option& o) { return "--" + o.name == word; });
      const bool takes_value = option != command.options.end() && !option->values.empty();
      if (takes_value && k + 1 == cursor.before.size()) {
        result.insert(result.end(), option->values.begin(), option->values.end());
        return;
      }
      if (takes_value) ++k;
    } else {
      ++place;
    }
  }
  if (cursor.word.starts_with('-')) {
    result.push_back("--json");
    for (const Option& option : command.options) result.push_back("--" + option.name);
    return;
  }
  if (command.completes.empty() || place >= command.most_words) return;
  const Completes what = command.completes[std::min(place, command.completes.size() - 1)];
  const Opened* opened = session.peek();
  const auto with_names = [&](bool places) {
    if (opened == nullptr) return;
    const auto names = known_names(*opened, *opened->snapshot(), true);
    result.insert(result.end(), names.begin(), names.end());
    if (places) {
      const auto lines = known_places(*opened);
      result.insert(result.end(), lines.begin(), lines.end());
    }
  };
  switch (what) {
    case Completes::command:
      for (const Command& known : commands()) result.push_back(known.name);
      break;
    case Completes::path:
      result = files(cursor.word, "");
      break;
    case Completes::trace_target:
      result = files(cursor.word, ".py");
      break;
    case Completes::thing:
      with_names(true);
      break;
    case Completes::node:
      with_names(true);
      break;
    case Completes::kernel:
      if (opened != nullptr) {
        for (std::size_t k = 0; k < opened->snapshot()->state.kernels.size(); ++k)
          result.push_back(fmt::format("k{}", k));
      }
      break;
    case Completes::decision:
      if (opened != nullptr) {
        for (std::size_t k = 0; k < opened->compilation->decisions().size(); ++k)
          result.push_back(fmt::format("d{}", k));
        result.push_back("start");
        result.push_back("end");
      }
      break;
    case Completes::graph:
      if (opened != nullptr) {
        for (std::size_t k = 0; k < opened->program->graphs.size(); ++k) {
          result.push_back(fmt::format("{}", k));
          result.push_back(opened->program->graphs[k].name);
        }
      }
      break;
    case Completes::list:
      result = {"nodes", "buffers", "kernels", "decisions"};
      break;
    case Completes::filter: {
      const std::string list = cursor.before.size() > 1 ? cursor.before[1] : "";
      const auto add_kinds = [&](std::initializer_list<const char*> kinds) {
        for (const char* kind : kinds) result.push_back(std::string("kind=") + kind);
      };
      if (list == "nodes") add_kinds({"kernel", "view", "library", "torch"});
      if (list == "buffers") add_kinds({"input", "intermediate"});
      if (list == "decisions") {
        add_kinds({"lower", "inline", "fuse"});
        result.push_back("accepted");
        result.push_back("refused");
      }
      if (opened != nullptr && (list == "decisions" || list == "nodes")) {
        std::set<std::string> reasons;
        for (const schedule::Decision& decision : opened->compilation->decisions()) {
          if (list == "nodes" && decision.kind != schedule::DecisionKind::lower) continue;
          std::string name(schedule::reason_name(decision.reason));
          std::replace(name.begin(), name.end(), ' ', '_');
          reasons.insert("reason=" + name);
        }
        result.insert(result.end(), reasons.begin(), reasons.end());
      }
      break;
    }
    case Completes::operators:
      for (const lower::OperatorRow& row : lower::operator_table()) {
        result.push_back(row.op);
        result.push_back("family=" + std::string(row.family));
        result.push_back("outcome=" + std::string(row.outcome_text()));
      }
      break;
    case Completes::spec:
      for (const char* dtype : {"f32[", "f16[", "bf16[", "f64[", "i64[", "i32[", "bool["})
        result.push_back(dtype);
      break;
    case Completes::nothing:
      break;
  }
}

}  // namespace

Completion complete(Session& session, std::string_view line) {
  Completion completion;
  const Cursor cursor = at_end(line);
  completion.start = cursor.start;
  if (!cursor.before.empty() && is_python(cursor.before.front())) return completion;
  std::vector<std::string> found;
  if (cursor.before.empty()) {
    for (const Command& command : commands()) found.push_back(command.name);
    found.push_back("py");
  } else if (const auto command = find_command(cursor.before.front(), false); command.ok()) {
    add_words(found, session, **command, cursor);
  }
  for (const std::string& word : found) {
    // Inside quotes the quote stays open: what is typed is replaced by the word with backslashes instead.
    if (word.starts_with(cursor.word)) completion.candidates.push_back(quote_word(word));
  }
  std::sort(completion.candidates.begin(), completion.candidates.end(),
            [](const std::string& a, const std::string& b) {
              // k2 before k10: names with numbers in the order of the numbers.
              const auto letters = [](const std::string& word) { return word.find_first_of("0123456789"); };
              const std::size_t i = letters(a), j = letters(b);
              if (i != std::string::npos && i == j && a.compare(0, i, b, 0, j) == 0 && a.size() != b.size() &&
                  a.find_first_not_of("0123456789", i) == std::string::npos &&
                  b.find_first_not_of("0123456789", j) == std::string::npos) {
                return a.size() < b.size();
              }
              return a < b;
            });
  completion.candidates.erase(std::unique(completion.candidates.begin(), completion.candidates.end()),
                              completion.candidates.end());
  return completion;
}

std::string common_beginning(const std::vector<std::string>& words) {
  if (words.empty()) return "";
  std::string common = words.front();
  for (const std::string& word : words) {
    const auto [end, other] = std::mismatch(common.begin(), common.end(), word.begin(), word.end());
    common.erase(end, common.end());
  }
  // A code point that is cut in two would be shown as rubbish.
  while (!common.empty() && common.size() < words.front().size() &&
         (static_cast<unsigned char>(words.front()[common.size()]) & 0xC0) == 0x80)
    common.pop_back();
  return common;
}

bool is_whole(std::string_view candidate) {
  return !candidate.ends_with('/') && !candidate.ends_with('=') && !candidate.ends_with('[');
}

}  // namespace pallascope::repl
