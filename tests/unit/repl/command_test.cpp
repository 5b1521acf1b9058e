#include "app/repl/command.h"

#include <set>

#include <gtest/gtest.h>

#include "app/repl/batch.h"
#include "app/repl/completion.h"
#include "core/lower/lower.h"
#include "tests/unit/repl/support.h"

namespace pallascope::repl {
namespace {

TEST(CommandTable, IsComplete) {
  std::set<std::string> names;
  for (const Command& command : commands()) {
    EXPECT_TRUE(names.insert(command.name).second) << command.name;
    EXPECT_FALSE(command.summary.empty()) << command.name;
    EXPECT_NE(command.run, nullptr) << command.name;
    // The example is one of this command, and its words and options are understood.
    const auto words = split_words(command.example);
    ASSERT_TRUE(words.ok()) << command.example;
    EXPECT_EQ(words->front(), command.name);
    bool json = false;
    EXPECT_TRUE(parse_arguments(command, {words->begin() + 1, words->end()}, json).ok()) << command.example;
  }
  for (const char* name : {"open",     "trace", "graphs", "use",     "summary", "ls",    "show", "deps",
                           "users",    "code",  "why",    "why-not", "reasons", "index", "ops",  "goto", "step",
                           "stepback", "diff",  "run",    "check",   "help",    "quit"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(FindCommand, TakesUniqueBeginningsOnlyWhenTyped) {
  EXPECT_EQ((*find_command("sum", false))->name, "summary");
  EXPECT_EQ((*find_command("step", false))->name, "step");
  EXPECT_EQ((*find_command("why", true))->name, "why");
  const auto several = find_command("s", false);
  ASSERT_FALSE(several.ok());
  EXPECT_EQ(several.error().kind, DiagnosticKind::usage);
  EXPECT_NE(several.error().remedy.find("stepback"), std::string::npos);
  const auto exact = find_command("sum", true);
  ASSERT_FALSE(exact.ok());
  EXPECT_EQ(exact.error().kind, DiagnosticKind::unknown_command);
  EXPECT_NE(exact.error().remedy.find("summary"), std::string::npos);
}

TEST(FindCommand, SuggestsTheNearest) {
  const auto near = find_command("sumary", false);
  ASSERT_FALSE(near.ok());
  EXPECT_NE(near.error().remedy.find("`summary`"), std::string::npos);
  Session session;
  const Execution python = execute(session, "  f('x', \"y\")", false);
  ASSERT_FALSE(python.result.ok());
  EXPECT_EQ(python.result.error().kind, DiagnosticKind::unknown_command);
  EXPECT_NE(python.result.error().remedy.find("`py f('x', \"y\")`"), std::string::npos);
}

TEST(ParseArguments, KnowsOptions) {
  const Command& code = **find_command("code", true);
  bool json = false;
  const auto with_space = parse_arguments(code, {"k1", "--from", "loops", "--json"}, json);
  ASSERT_TRUE(with_space.ok());
  EXPECT_TRUE(json);
  EXPECT_EQ(with_space->options.at("from"), "loops");
  EXPECT_EQ(with_space->words, std::vector<std::string>{"k1"});
  EXPECT_EQ(parse_arguments(code, {"--from=fx"}, json)->options.at("from"), "fx");
  const std::vector<std::vector<std::string>> wrong = {
      {"--from"}, {"--from", "mlir"}, {"--form", "fx"}, {"k1", "k2"}};
  for (const auto& words : wrong) {
    const auto arguments = parse_arguments(code, words, json);
    ASSERT_FALSE(arguments.ok()) << words[0];
    EXPECT_EQ(arguments.error().kind, DiagnosticKind::usage);
    EXPECT_NE(arguments.error().remedy.find("code k2 --from loops"), std::string::npos);
  }
  const Command& check = **find_command("check", true);
  EXPECT_FALSE(parse_arguments(check, {"--full=yes"}, json).ok());
  EXPECT_FALSE(parse_arguments(**find_command("why-not", true), {"a"}, json).ok());
}

TEST(Ops, PrintsTheTableThatTheLoweringUses) {
  Session session;
  const Execution all = execute(session, "ops --json", true);
  ASSERT_TRUE(all.result.ok());
  EXPECT_EQ(all.result->json["operators"].size(), lower::operator_table().size());
  const Execution one = execute(session, "ops torch.ops.aten.ADD.tensor", true);
  ASSERT_TRUE(one.result.ok());
  ASSERT_EQ(one.result->json["operators"].size(), 1U);
  const report::Json& row = one.result->json["operators"][0];
  EXPECT_EQ(row["op"], "aten.add.Tensor");
  EXPECT_EQ(row["family"], "pointwise");
  EXPECT_EQ(row["outcome"], "kernel");
  EXPECT_EQ(row["dtypes"].size(), 10U);
  EXPECT_NE(one.result->text.find("bool, integers, floats"), std::string::npos) << one.result->text;
}

TEST(Ops, FiltersByFamilyAndOutcome) {
  Session session;
  const Execution views = execute(session, "ops family=view outcome=view slice", true);
  ASSERT_TRUE(views.result.ok());
  EXPECT_GE(views.result->json["operators"].size(), 1U);
  for (const report::Json& row : views.result->json["operators"]) EXPECT_EQ(row["outcome"], "view");
  const Execution refused = execute(session, "ops outcome=unsupported aten.resize_", true);
  ASSERT_TRUE(refused.result.ok());
  EXPECT_FALSE(refused.result->json["operators"].empty());
  EXPECT_NE(refused.result->text.find("no functional form"), std::string::npos);
  const Execution wrong = execute(session, "ops outcome=fast", true);
  ASSERT_FALSE(wrong.result.ok());
  EXPECT_NE(wrong.result.error().remedy.find("library"), std::string::npos);
}

TEST(Ops, SaysWhatBecomesOfANameWithoutARow) {
  Session session;
  EXPECT_NE(execute(session, "ops aten.add_.Tensor", true).result->text.find("aten.add.Tensor"), std::string::npos);
  EXPECT_NE(execute(session, "ops aten.nosuch.default", true).result->text.find("PyTorch"), std::string::npos);
  const auto found = complete(session, "ops aten.amax").candidates;
  EXPECT_EQ(found, std::vector<std::string>{"aten.amax.default"});
}

TEST(Execute, NothingOpenIsToldWithARemedy) {
  Session session;
  for (const char* line :
       {"summary", "ls nodes", "show n1", "deps n1", "users n1", "code", "why d1", "why-not a b", "reasons",
        "index k1", "goto d1", "step", "stepback", "diff", "run", "check", "graphs", "use 1"}) {
    const Execution execution = execute(session, line, true);
    ASSERT_FALSE(execution.result.ok()) << line;
    EXPECT_EQ(execution.result.error().kind, DiagnosticKind::nothing_open) << line;
    EXPECT_NE(execution.result.error().remedy.find("open"), std::string::npos);
  }
}

TEST(Execute, WithoutAHostSaysSo) {
  Session session;
  const Execution execution = execute(session, "py 1 + 1", true);
  ASSERT_FALSE(execution.result.ok());
  EXPECT_EQ(execution.command, "py");
  EXPECT_EQ(execution.result.error().kind, DiagnosticKind::host_unavailable);
}

TEST(Help, HasEachCommandWithAnExample) {
  Session session;
  const Execution all = execute(session, "help", true);
  ASSERT_TRUE(all.result.ok());
  for (const Command& command : commands()) {
    EXPECT_NE(all.result->text.find(command.name), std::string::npos);
    const Execution one = execute(session, "help " + command.name, true);
    ASSERT_TRUE(one.result.ok());
    EXPECT_NE(one.result->text.find("example: " + command.example), std::string::npos);
    EXPECT_EQ(one.result->json["commands"].size(), 1U);
  }
  EXPECT_TRUE(execute(session, "help py", true).result.ok());
  EXPECT_FALSE(execute(session, "help nonsense", true).result.ok());
}

TEST(Envelope, HoldsResultOrError) {
  Session session;
  const report::Json good = envelope(execute(session, "help quit --json", true));
  EXPECT_EQ(good["command"], "help");
  EXPECT_EQ(good["ok"], true);
  EXPECT_TRUE(good["result"].is_object());
  const report::Json bad = envelope(execute(session, "sumary", true));
  EXPECT_EQ(bad["command"], "sumary");
  EXPECT_EQ(bad["ok"], false);
  EXPECT_EQ(bad["error"]["kind"], "unknown_command");
  EXPECT_TRUE(bad["error"].contains("message"));
  EXPECT_TRUE(bad["error"].contains("where"));
  EXPECT_TRUE(bad["error"].contains("remedy"));
}

TEST(Errors, SayWhatWhereAndWhatToDo) {
  EXPECT_EQ(error_text({DiagnosticKind::not_found, "there is no file", "a.pt2", "name another"}),
            "there is no file\n  in a.pt2\n  → name another\n");
  EXPECT_EQ(error_text({DiagnosticKind::host_error, "NameError: x", "File \"a.py\"\n  x", ""}),
            "NameError: x\n  File \"a.py\"\n    x\n");
}

TEST(Errors, TracebacksAreCutToTheUsersFrames) {
  EXPECT_EQ(
      short_traceback("Traceback (most recent call last):\n"
                      "  File \"/venv/lib/site-packages/torch/a.py\", line 1, in f\n    inner()\n    ^^^^^\n"
                      "  File \"<repl>\", line 3, in <module>\n    1/0\n    ~^~\n"
                      "ZeroDivisionError: division by zero\n"),
      "File \"<repl>\", line 3, in <module>\n  1/0\n  ~^~");
  EXPECT_EQ(short_traceback(""), "");
}

/// What a batch wrote to its two files.
struct Written {
  bool good = false;
  std::string out, errors;
};

Written batch(Session& session, const std::vector<std::string>& lines, bool json) {
  Written written;
  char *out = nullptr, *errors = nullptr;
  std::size_t out_size = 0, errors_size = 0;
  BatchOptions options;
  options.json = json;
  options.out = open_memstream(&out, &out_size);
  options.errors = open_memstream(&errors, &errors_size);
  written.good = run_batch(session, lines, options);
  std::fclose(options.out);
  std::fclose(options.errors);
  written.out.assign(out, out_size);
  written.errors.assign(errors, errors_size);
  std::free(out);
  std::free(errors);
  return written;
}

TEST(Batch, WritesOneObjectALineAndGoesOnAfterAnError) {
  Session session;
  const Written written = batch(session, {"summary", "help quit", "nonsense"}, true);
  EXPECT_FALSE(written.good);
  EXPECT_EQ(written.errors, "");
  std::vector<report::Json> lines;
  std::size_t at = 0;
  while (at < written.out.size()) {
    const std::size_t end = written.out.find('\n', at);
    lines.push_back(report::Json::parse(written.out.substr(at, end - at)));
    at = end + 1;
  }
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["error"]["kind"], "nothing_open");
  EXPECT_EQ(lines[1]["ok"], true);
  EXPECT_EQ(lines[2]["error"]["kind"], "unknown_command");
}

TEST(Batch, TextGoesToOutAndErrorsToErrors) {
  Session session;
  const Written written = batch(session, {"help quit", "summary"}, false);
  EXPECT_FALSE(written.good);
  EXPECT_NE(written.out.find("> help quit\nquit\n"), std::string::npos);
  EXPECT_NE(written.errors.find("no program is open"), std::string::npos);
}

TEST(Batch, QuitEndsIt) {
  Session session;
  const Written written = batch(session, {"quit", "nonsense"}, true);
  EXPECT_TRUE(written.good);
  EXPECT_EQ(written.out.find("nonsense"), std::string::npos);
}

TEST(NeedsHost, OnlyWhatRunsPython) {
  for (const char* line : {"check", " run k1", "trace a.py:f", "py 1", "import a"})
    EXPECT_TRUE(needs_host(line)) << line;
  for (const char* line : {"open a.pt2", "summary", "checks", ""}) EXPECT_FALSE(needs_host(line)) << line;
}

TEST(Report, IsMadeOfCommands) {
  for (const bool full : {false, true}) {
    for (const std::string& line : report_commands("/a folder", full)) {
      const auto words = split_words(line);
      ASSERT_TRUE(words.ok());
      EXPECT_TRUE(find_command(words->front(), true).ok()) << line;
    }
  }
  EXPECT_EQ((*split_words(report_commands("/a folder", false)[0]))[1], "/a folder/examples/gpt2_block.pt2");
}

}  // namespace
}  // namespace pallascope::repl
