#include "app/repl/command.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "app/repl/handlers.h"
#include "app/repl/words.h"
#include "core/report/diff.h"
#include "core/report/format.h"

namespace pallascope::repl {
namespace {

using report::Json;

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.push_back(command.name);
  return names;
}

std::string usage_line(const Command& command) {
  return command.name + (command.arguments.empty() ? "" : " " + command.arguments);
}

Diagnostic usage(const Command& command, std::string message) {
  return {DiagnosticKind::usage, std::move(message), command.name,
          fmt::format("write it as `{}`, for example `{}`", usage_line(command), command.example)};
}

Json command_json(const Command& command) {
  Json options = Json::array({"--json"});
  for (const Option& option : command.options) options.push_back("--" + option.name);
  return {{"name", command.name},
          {"arguments", command.arguments},
          {"summary", command.summary},
          {"example", command.example},
          {"options", options}};
}

}  // namespace

const std::vector<Command>& commands() {
  using enum Completes;
  static const std::vector<Command> table = {
      {"open",
       "PATH",
       "load a .pt2, a trace in JSON or a bundle folder; nothing in it is executed",
       "open gpt2_block.pt2",
       1,
       1,
       {path},
       {},
       run_open},
      {"trace",
       "FILE.py:FN SPEC…",
       "execute FILE.py in the Python host and capture FN on inputs of these dtypes and sizes",
       "trace model.py:f f32[8,128] i64[4]",
       1,
       1000,
       {trace_target, spec},
       {},
       run_trace},
      {"graphs", "", "the graphs of the program", "graphs", 0, 0, {}, {}, run_graphs},
      {"use", "G", "switch to another graph, by number or name", "use 1", 1, 1, {graph}, {}, run_use},
      {"summary",
       "",
       "the first look: kernels, missed fusions, wasteful accesses",
       "summary",
       0,
       0,
       {},
       {},
       run_summary},
      {"ls",
       "nodes|buffers|kernels|decisions [FILTER…]",
       "lists; a filter is text, kind=KIND or reason=REASON",
       "ls decisions refused kind=fuse",
       1,
       1000,
       {list, filter},
       {},
       run_ls},
      {"show", "X", "a node, buffer, kernel or decision in full", "show sum_2", 1, 1, {thing}, {}, run_show},
      {"deps", "X", "what X reads", "deps div_5", 1, 1, {thing}, {}, run_deps},
      {"users", "X", "what reads X", "users sum_2", 1, 1, {thing}, {}, run_users},
      {"code",
       "[K] [--from pallas|loops|fx]",
       "source with the access class of every load and store beside it; of everything without K",
       "code k2 --from loops",
       0,
       1,
       {kernel},
       {{"from", {"pallas", "loops", "fx"}}},
       run_code},
      {"why",
       "X",
       "why a decision went as it did; of a node, kernel or buffer, all decisions about it",
       "why d37",
       1,
       1,
       {thing},
       {},
       run_why},
      {"why-not",
       "A B",
       "why A and B are not in one kernel",
       "why-not sum_2 div_5",
       2,
       2,
       {thing},
       {},
       run_why_not},
      {"reasons", "", "the reasons of all decisions, counted", "reasons", 0, 0, {}, {}, run_reasons},
      {"index",
       "[X]",
       "every access of a node or kernel: expression, range, class, strides, plan, bounds, bytes; of "
       "everything without X",
       "index k2",
       0,
       1,
       {thing},
       {},
       run_index},
      {"ops",
       "[FILTER…]",
       "the operator table: what each overload becomes and the dtypes that it takes; a filter is text, "
       "family=FAMILY or outcome=OUTCOME",
       "ops softmax",
       0,
       1000,
       {operators},
       {},
       run_ops},
      {"goto",
       "D",
       "stand right after decision D, or at `start` or `end`",
       "goto d37",
       1,
       1,
       {decision},
       {},
       run_goto},
      {"step", "[N]", "take the next decision, or the next N", "step", 0, 1, {nothing}, {}, run_step},
      {"stepback",
       "[N]",
       "take the last decision back, or the last N",
       "stepback 3",
       0,
       1,
       {nothing},
       {},
       run_stepback},
      {"diff",
       "[D1] [D2]",
       "how the Pallas source differs between two decisions; with one, what it changed; with none, what the "
       "last one changed",
       "diff d30 d37",
       0,
       2,
       {decision},
       {},
       run_diff},
      {"run",
       "[K]",
       "run the kernels on random inputs (a bundle's own); with K, show only what K writes",
       "run",
       0,
       1,
       {kernel},
       {},
       run_run},
      {"check",
       "[K] [--full] [--picture] [--buffers]",
       "run and compare every output with eager PyTorch; a difference makes the exit status of a batch 1; "
       "with K, only what K writes; --picture shows where they differ and by how much, --buffers also "
       "compares what each kernel and call writes, in the order of execution",
       "check --full",
       0,
       1,
       {kernel},
       {{"full", {}}, {"picture", {}}, {"buffers", {}}},
       run_check},
      {"help",
       "[CMD]",
       "all commands, or one with an example",
       "help why-not",
       0,
       1,
       {command},
       {},
       run_help},
      {"quit", "", "leave (so does Ctrl-D)", "quit", 0, 0, {}, {}, run_quit},
  };
  return table;
}

Result<const Command*> find_command(std::string_view word, bool exact) {
  std::vector<const Command*> found;
  for (const Command& command : commands()) {
    if (command.name == word) return &command;
    if (command.name.starts_with(word)) found.push_back(&command);
  }
  if (!exact && found.size() == 1) return found[0];
  if (!exact && found.size() > 1) {
    std::vector<std::string> names;
    for (const Command* command : found) names.push_back(command->name);
    return Diagnostic{DiagnosticKind::usage, fmt::format("'{}' begins several commands", word), "",
                      "type more of one of " + report::join(names, ", ")};
  }
  const std::string near = nearest(word, command_names());
  std::string remedy = "`help` lists the commands; Python goes after `py`";
  if (!near.empty()) {
    remedy = near.starts_with(word) ? fmt::format("write it in full here: `{}`", near)
                                    : fmt::format("did you mean `{}`?", near);
  }
  return Diagnostic{DiagnosticKind::unknown_command, fmt::format("there is no command '{}'", word), "",
                    remedy};
}

Result<Arguments> parse_arguments(const Command& command, const std::vector<std::string>& words, bool& json) {
  Arguments arguments;
  for (std::size_t k = 0; k < words.size(); ++k) {
    if (!words[k].starts_with("--")) {
      arguments.words.push_back(words[k]);
      continue;
    }
    std::string name = words[k].substr(2), value;
    const std::size_t equals = name.find('=');
    const bool has_value = equals != std::string::npos;
    if (has_value) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    if (name == "json") {
      json = true;
      continue;
    }
    const auto option = std::find_if(command.options.begin(), command.options.end(),
                                     [&](const Option& o) { return o.name == name; });
    if (option == command.options.end()) {
      std::vector<std::string> names = {"json"};
      for (const Option& known : command.options) names.push_back(known.name);
      const std::string near = nearest(name, names);
      return usage(command, fmt::format("{} has no option --{}{}", command.name, name,
                                        near.empty() ? "" : fmt::format(" (is it --{}?)", near)));
    }
    if (!option->values.empty()) {
      if (!has_value) {
        if (k + 1 == words.size())
          return usage(command,
                       fmt::format("--{} needs one of {}", name, report::join(option->values, ", ")));
        value = words[++k];
      }
      if (std::find(option->values.begin(), option->values.end(), value) == option->values.end()) {
        return usage(command, fmt::format("--{} is one of {}, not '{}'", name,
                                          report::join(option->values, ", "), value));
      }
    } else if (has_value) {
      return usage(command, fmt::format("--{} takes no value", name));
    }
    arguments.options[name] = value;
  }
  if (arguments.words.size() < command.least_words) {
    return usage(command, arguments.words.empty()
                              ? fmt::format("{} needs to be told what", command.name)
                              : fmt::format("{} needs {} words", command.name, command.least_words));
  }
  if (arguments.words.size() > command.most_words) {
    return usage(command,
                 command.most_words == 0
                     ? fmt::format("{} takes no words, but got '{}'", command.name, arguments.words[0])
                     : fmt::format("'{}' is one word too many", arguments.words[command.most_words]));
  }
  return arguments;
}

Execution execute(Session& session, std::string_view line, bool exact) {
  Execution execution;
  if (is_python(line)) {
    execution.command = "py";
    execution.result = run_python(session, python_text(line));
    return execution;
  }
  auto words = split_words(line);
  if (!words.ok()) {
    execution.command = std::string(line.substr(0, line.find(' ')));
    execution.result = words.error();
    return execution;
  }
  if (words->empty()) return execution;
  execution.command = words->front();
  // Asked for even when the command is unknown, so that a script gets its JSON.
  execution.json = std::find(words->begin(), words->end(), "--json") != words->end();
  const auto command = find_command(words->front(), exact);
  if (!command.ok()) {
    Diagnostic diagnostic = command.error();
    // What is no command may be Python: then the line is shown as it was typed, quotes and all.
    const std::string typed(line.substr(line.find_first_not_of(" \t")));
    if (diagnostic.kind == DiagnosticKind::unknown_command &&
        nearest(words->front(), command_names()).empty()) {
      diagnostic.message =
          fmt::format("there is no command '{}'", typed.substr(0, typed.find_first_of(" \t")));
      diagnostic.remedy = fmt::format("`help` lists the commands; for Python write `py {}`", typed);
    }
    execution.result = diagnostic;
    return execution;
  }
  execution.command = (*command)->name;
  const auto arguments = parse_arguments(**command, {words->begin() + 1, words->end()}, execution.json);
  execution.result =
      arguments.ok() ? (*command)->run(session, *arguments) : Result<Output>(arguments.error());
  return execution;
}

Json envelope(const Execution& execution) {
  Json json = {{"command", execution.command}, {"ok", execution.result.ok()}};
  if (execution.result.ok()) {
    json["result"] = execution.result->json;
    return json;
  }
  const Diagnostic& diagnostic = execution.result.error();
  json["error"] = {{"kind", std::string(diagnostic_name(diagnostic.kind))},
                   {"message", diagnostic.message},
                   {"where", diagnostic.where}};
  if (!diagnostic.remedy.empty()) json["error"]["remedy"] = diagnostic.remedy;
  return json;
}

std::string error_text(const Diagnostic& diagnostic) {
  std::string text = diagnostic.message + "\n";
  if (diagnostic.where.find('\n') == std::string::npos) {
    if (!diagnostic.where.empty()) text += "  in " + diagnostic.where + "\n";
  } else {
    for (const std::string& line : report::split_lines(diagnostic.where)) text += "  " + line + "\n";
  }
  if (!diagnostic.remedy.empty()) text += "  → " + diagnostic.remedy + "\n";
  return text;
}

bool needs_host(std::string_view line) {
  if (is_python(line)) return true;
  const std::size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos) return false;
  const std::string_view word = line.substr(start, line.find_first_of(" \t", start) - start);
  return word == "trace" || word == "check" || word == "run";
}

Result<Output> run_help(Session& /*session*/, const Arguments& arguments) {
  Output output;
  if (!arguments.words.empty()) {
    const std::string& word = arguments.words[0];
    if (word == "py" || word == "python") {
      output.json = {{"commands", Json::array({{{"name", "py"},
                                                {"arguments", "CODE"},
                                                {"summary", "run Python in the host"},
                                                {"example", "py inputs[0].shape"},
                                                {"options", Json::array()}}})}};
      output.text =
          "py CODE\n  run Python in the host; a line that starts with def, class, import, from or @ does the "
          "same\n"
          "  at hand: torch, jax, inputs, outputs, reference, kernels, graph; a block ends with an empty "
          "line\n"
          "  example: py inputs[0].shape\n";
      return output;
    }
    const auto command = find_command(word, false);
    if (!command.ok()) return command.error();
    output.json = {{"commands", Json::array({command_json(**command)})}};
    output.text = fmt::format("{}\n  {}\n  example: {}\n", usage_line(**command), (*command)->summary,
                              (*command)->example);
    output.text += "  --json prints the answer as one line of JSON\n";
    return output;
  }
  Json list = Json::array();
  report::Table rows;
  for (const Command& command : commands()) {
    list.push_back(command_json(command));
    rows.add({usage_line(command), command.summary});
  }
  rows.add({"py CODE, def, import …", "run Python in the host"});
  output.json = {{"commands", list}};
  output.text = rows.text();
  output.text +=
      "X, A, B: an id (n12, b7, k4, d37), a name (sum_2, buf7) or a line of the model (model.py:42).\n"
      "`help CMD` shows an example; Tab completes; several commands on a line are separated by `;`.\n";
  return output;
}

Result<Output> run_quit(Session& session, const Arguments& /*arguments*/) {
  session.quit();
  return Output{};
}

}  // namespace pallascope::repl
