// Opening, stepping, the host at work, cancelling, closing: what panels rely on, without a panel.
#include "app/workspace/workspace.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/unit/repl/support.h"
#include "tests/unit/support/scripted_host.h"

namespace pallascope::workspace {
namespace {

using namespace std::chrono_literals;
using Kind = TranscriptEntry::Kind;
using testing::ScriptedHost;

class WorkspaceTest : public ::testing::Test {
 protected:
  void SetUp() override { make({}); }
  void TearDown() override { host->release(); }

  void make(std::filesystem::path state) {
    workspace.reset();
    host = std::make_shared<ScriptedHost>();
    workspace = std::make_unique<Workspace>(Workspace::Options{host, [this] { ++wakes; }, std::move(state)});
  }
  void open() {
    path = folder.write("small.json", repl::small_program());
    workspace->click("open " + path);
    workspace->settle();
    ASSERT_NE(workspace->scene(), nullptr) << workspace->problem();
  }
  /// Updates until `ready`, at most ten seconds.
  template <typename Ready>
  bool wait(Ready ready) {
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (!ready()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(1ms);
      workspace->update();
    }
    return true;
  }
  bool wait_for_request(std::size_t count) {
    return wait([&] { return host->requests().size() >= count; });
  }
  [[nodiscard]] std::vector<std::string> said(Kind kind) const {
    std::vector<std::string> texts;
    for (const TranscriptEntry& entry : workspace->transcript()) {
      if (entry.kind == kind) texts.push_back(entry.text);
    }
    return texts;
  }
  [[nodiscard]] std::size_t total() const { return workspace->scene()->total(); }

  repl::Folder folder;
  std::string path;
  std::atomic<int> wakes = 0;
  std::shared_ptr<ScriptedHost> host;
  std::unique_ptr<Workspace> workspace;
};

TEST_F(WorkspaceTest, OpensAndSaysSo) {
  EXPECT_EQ(workspace->scene(), nullptr);
  EXPECT_FALSE(workspace->loading());
  path = folder.write("small.json", repl::small_program());
  workspace->click("open " + path);
  EXPECT_TRUE(workspace->loading());
  workspace->settle();
  EXPECT_FALSE(workspace->loading());
  ASSERT_NE(workspace->scene(), nullptr);
  const Scene& scene = *workspace->scene();
  EXPECT_EQ(scene.path, path);
  EXPECT_GT(scene.total(), 3U);
  EXPECT_EQ(scene.position, scene.total());
  EXPECT_EQ(workspace->wanted_position(), scene.total());
  EXPECT_NE(scene.columns, nullptr);
  EXPECT_NE(scene.decisions, nullptr);
  EXPECT_NE(scene.summary, nullptr);
  EXPECT_GT(wakes, 0);
  EXPECT_EQ(said(Kind::echo), std::vector<std::string>{"open " + path});
  ASSERT_EQ(said(Kind::output).size(), 1U);
  EXPECT_NE(said(Kind::output)[0].find("not checked"), std::string::npos);
}

TEST_F(WorkspaceTest, WhatCannotBeOpenedIsAProblemAndNothingChanges) {
  open();
  const auto before = workspace->scene();
  workspace->click("open /no/such/file.pt2");
  workspace->settle();
  EXPECT_EQ(workspace->scene(), before);
  EXPECT_NE(workspace->problem().find("there is no file"), std::string::npos);
  EXPECT_EQ(said(Kind::error).size(), 1U);
  workspace->clear_problem();
  // A typed one is answered where it was typed.
  workspace->type("open /no/such/file.pt2");
  workspace->settle();
  EXPECT_EQ(workspace->problem(), "");
  EXPECT_EQ(said(Kind::error).size(), 2U);
}

TEST_F(WorkspaceTest, StepsByCommandAndByWish) {
  open();
  workspace->type("stepback 2");
  workspace->settle();
  EXPECT_EQ(workspace->scene()->position, total() - 2);
  workspace->move_to(1);
  EXPECT_EQ(workspace->wanted_position(), 1U);  // at once
  workspace->settle();
  EXPECT_EQ(workspace->scene()->position, 1U);
  workspace->move_to(1'000'000);
  workspace->settle();
  EXPECT_EQ(workspace->scene()->position, total());
  workspace->move_to(0);
  workspace->settle();
  EXPECT_EQ(workspace->scene()->position, 0U);
  EXPECT_EQ(workspace->wanted_position(), 0U);
}

TEST_F(WorkspaceTest, ScenesOfOneProgramShareWhatStays) {
  open();
  const auto first = workspace->scene();
  workspace->move_to(2);
  workspace->settle();
  const auto second = workspace->scene();
  EXPECT_NE(first, second);
  EXPECT_GT(second->number, first->number);
  EXPECT_EQ(first->compilation, second->compilation);
  EXPECT_EQ(first->decisions, second->decisions);
  EXPECT_EQ(first->position, first->total());  // what a panel holds does not move
}

TEST_F(WorkspaceTest, WishesThatWaitAreReplacedByTheNewest) {
  open();
  // The engine is kept busy by opening again and again, so that the wishes pile up behind it.
  std::set<std::size_t> seen;
  for (int k = 0; k < 5; ++k) workspace->click("open " + path);
  workspace->settle();
  const auto program = workspace->scene()->program;
  for (std::size_t k = 0; k <= total(); ++k) {
    workspace->move_to(k);
    EXPECT_EQ(workspace->wanted_position(), k);
  }
  for (std::size_t k = total(); k-- > 1;) workspace->move_to(k);
  EXPECT_TRUE(wait([&] {
    seen.insert(workspace->scene()->position);
    return workspace->wanted_position() == 1 && workspace->scene()->position == 1;
  }));
  workspace->settle();
  EXPECT_EQ(workspace->scene()->position, 1U);
  EXPECT_EQ(workspace->scene()->program, program);
  // Each wish was one line of the transcript in its place, not one after the other.
  const auto echoes = said(Kind::echo);
  EXPECT_EQ(
      std::count_if(echoes.begin(), echoes.end(), [](const std::string& e) { return e.starts_with("goto"); }),
      1);
  EXPECT_EQ(echoes.back(), "goto d0");
}

TEST_F(WorkspaceTest, EchoesOfOneCommandReplaceEachOther) {
  open();
  const std::uint64_t before = workspace->transcript_number();
  workspace->echo("why d1");
  workspace->echo("why d2");
  workspace->echo("show n1");
  workspace->echo("why d3");
  workspace->echo("why d4");
  const auto echoes = said(Kind::echo);
  ASSERT_GE(echoes.size(), 3U);
  EXPECT_EQ(std::vector<std::string>(echoes.end() - 3, echoes.end()),
            (std::vector<std::string>{"why d2", "show n1", "why d4"}));
  EXPECT_EQ(workspace->transcript_number(), before + 5);
  // Something said in between keeps them apart.
  workspace->note("noted");
  workspace->echo("why d5");
  EXPECT_EQ(said(Kind::echo).size(), echoes.size() + 1);
  EXPECT_EQ(said(Kind::note), std::vector<std::string>{"noted"});
}

TEST_F(WorkspaceTest, TheTranscriptIsBoundedAndCountsWhatWent) {
  for (int k = 0; k < 2'100; ++k) workspace->note(std::to_string(k));
  EXPECT_EQ(workspace->transcript().size(), 2'000U);
  EXPECT_EQ(workspace->transcript_first(), 100U);
  EXPECT_EQ(workspace->transcript().front().text, "100");
  EXPECT_EQ(workspace->transcript().back().text, "2099");
}

TEST_F(WorkspaceTest, WhatATypedCommandWasAboutIsSelectedOnce) {
  open();
  EXPECT_FALSE(workspace->take_selection());
  workspace->type("why d3");
  workspace->settle();
  const auto selected = workspace->take_selection();
  ASSERT_TRUE(selected);
  EXPECT_EQ(*selected, model::Selection(schedule::DecisionId(3)));
  EXPECT_FALSE(workspace->take_selection());
  workspace->type("sho n2");  // an unfinished name
  workspace->settle();
  EXPECT_EQ(workspace->take_selection(), model::Selection(trace::NodeId(2)));
  workspace->type("goto d1");
  workspace->settle();
  EXPECT_EQ(workspace->take_selection(), model::Selection(schedule::DecisionId(1)));
  workspace->type("why d999");
  workspace->type("reasons");
  workspace->settle();
  EXPECT_FALSE(workspace->take_selection());
  ASSERT_FALSE(said(Kind::error).empty());
}

TEST_F(WorkspaceTest, ALineMayHoldSeveralCommands) {
  open();
  workspace->type("goto d2; why d2 ; summary");
  workspace->settle();
  EXPECT_EQ(said(Kind::typed), (std::vector<std::string>{"goto d2", "why d2", "summary"}));
  EXPECT_EQ(workspace->scene()->position, 3U);
  EXPECT_EQ(workspace->history().back(), "goto d2; why d2 ; summary");
  workspace->type("   ");
  EXPECT_EQ(workspace->history().size(), 1U);
}

TEST_F(WorkspaceTest, APythonBlockIsOneCommand) {
  std::string sent;
  host->set_answer([&](const report::Json& header) {
    sent = header.dump();
    return Result<report::Json>(report::Json{{"output", ""}});
  });
  workspace->type("def f(x):\n  return x; y");
  workspace->settle();
  EXPECT_EQ(host->requests().size(), 1U);
  EXPECT_NE(sent.find("return x; y"), std::string::npos) << sent;
}

TEST_F(WorkspaceTest, ACheckIsKeptWithItsDecision) {
  open();
  workspace->move_to(4);
  workspace->settle();
  EXPECT_EQ(workspace->check(), nullptr);
  EXPECT_FALSE(workspace->check_is_current());
  workspace->click("check");
  EXPECT_TRUE(workspace->busy());
  workspace->settle();
  EXPECT_FALSE(workspace->busy());
  ASSERT_NE(workspace->check(), nullptr);
  EXPECT_EQ(workspace->check()->decision, 4U);
  EXPECT_EQ(workspace->check()->compilation, workspace->scene()->compilation);
  EXPECT_TRUE(workspace->check()->passed);
  EXPECT_EQ(workspace->check()->host, "local (cpu, jax 0.10.2)");
  EXPECT_TRUE(workspace->check_is_current());
  workspace->move_to(5);
  workspace->settle();
  EXPECT_FALSE(workspace->check_is_current());
  EXPECT_EQ(workspace->check()->decision, 4U);
  workspace->move_to(4);
  workspace->settle();
  EXPECT_TRUE(workspace->check_is_current());
  host->set_answer([](const report::Json&) { return Result<report::Json>(ScriptedHost::verdict(false)); });
  workspace->click("check");
  workspace->settle();
  EXPECT_FALSE(workspace->check()->passed);
  EXPECT_EQ(workspace->problem(), "");  // a difference is a result, not a failure of the command
}

TEST_F(WorkspaceTest, OneStepsOnWhileTheHostWorks) {
  open();
  const std::size_t at = total();
  host->hold();
  workspace->click("check");
  ASSERT_TRUE(wait([&] { return workspace->busy() && workspace->busy()->fraction > 0; }));
  EXPECT_EQ(workspace->busy()->command, "check");
  EXPECT_EQ(workspace->busy()->text, "running kernel 3 of 9");
  workspace->move_to(2);
  ASSERT_TRUE(wait([&] { return workspace->scene()->position == 2; }));
  EXPECT_TRUE(workspace->busy());
  workspace->request_detail(model::Selection(schedule::DecisionId(1)));
  ASSERT_TRUE(wait([&] { return workspace->detail() != nullptr; }));
  EXPECT_EQ(workspace->detail()->scene, workspace->scene()->number);
  host->release();
  workspace->settle();
  EXPECT_FALSE(workspace->busy());
  ASSERT_NE(workspace->check(), nullptr);
  EXPECT_EQ(workspace->check()->decision, at);  // where it was asked for
  EXPECT_EQ(workspace->scene()->position, 2U);  // and that did not move one back
}

TEST_F(WorkspaceTest, WhatIsTypedWhileTheHostWorksWaits) {
  open();
  host->hold();
  workspace->type("check");
  ASSERT_TRUE(wait_for_request(1));
  workspace->type("goto d1");
  workspace->type("check");
  workspace->type("reasons");
  for (int k = 0; k < 20; ++k) {
    std::this_thread::sleep_for(1ms);
    workspace->update();
  }
  EXPECT_EQ(workspace->scene()->position, total());
  EXPECT_EQ(said(Kind::typed), std::vector<std::string>{"check"});
  EXPECT_EQ(workspace->typed_waiting(), 3U);
  EXPECT_EQ(host->requests().size(), 1U);
  host->release();
  workspace->settle();
  EXPECT_EQ(said(Kind::typed), (std::vector<std::string>{"check", "goto d1", "check", "reasons"}));
  EXPECT_EQ(host->requests().size(), 2U);
  EXPECT_EQ(workspace->scene()->position, 2U);
  EXPECT_EQ(workspace->check()->decision, 2U);
}

TEST_F(WorkspaceTest, AClickWhileTheHostWorksIsRefusedInWords) {
  open();
  host->hold();
  workspace->click("check");
  ASSERT_TRUE(wait_for_request(1));
  const auto echoes = said(Kind::echo);
  workspace->click("run");
  EXPECT_EQ(workspace->problem(), "The host still works on `check`: wait for it, or cancel it.");
  EXPECT_EQ(said(Kind::echo), echoes);  // what did not happen is not echoed
  // What needs no host is done.
  workspace->click("goto d1");
  ASSERT_TRUE(wait([&] { return workspace->scene()->position == 2; }));
  host->release();
  workspace->settle();
  EXPECT_EQ(host->requests().size(), 1U);
}

TEST_F(WorkspaceTest, CancellingEndsTheRequestAndWhatWaited) {
  open();
  host->hold();
  workspace->type("check");
  ASSERT_TRUE(wait_for_request(1));
  workspace->type("goto d1");
  workspace->cancel();
  ASSERT_TRUE(workspace->busy());
  EXPECT_TRUE(workspace->busy()->cancelling);
  ASSERT_TRUE(wait([&] { return !workspace->busy(); }));  // though the host was never released
  workspace->settle();
  EXPECT_EQ(workspace->check(), nullptr);
  EXPECT_EQ(workspace->scene()->position, total());
  EXPECT_EQ(said(Kind::typed), std::vector<std::string>{"check"});
  ASSERT_EQ(said(Kind::error).size(), 1U);
  EXPECT_NE(said(Kind::error)[0].find("cancelled"), std::string::npos);
  // And all works again.
  host->release();
  workspace->cancel();  // nothing runs: nothing happens
  workspace->type("check");
  workspace->settle();
  EXPECT_TRUE(workspace->check_is_current());
}

TEST_F(WorkspaceTest, ADeadHostIsAnErrorAndARestartMends) {
  open();
  host->hold();
  workspace->click("check");
  ASSERT_TRUE(wait_for_request(1));
  host->die();
  ASSERT_TRUE(wait([&] { return !workspace->busy(); }));
  EXPECT_NE(workspace->problem().find("signal 11"), std::string::npos);
  EXPECT_EQ(workspace->host().state, repl::HostStatus::State::died);
  workspace->clear_problem();
  host->release();
  workspace->restart_host();
  workspace->update();
  EXPECT_EQ(workspace->host().state, repl::HostStatus::State::ready);
  EXPECT_EQ(workspace->host().starts, 2);
  workspace->click("check");
  workspace->settle();
  EXPECT_EQ(workspace->problem(), "");
  EXPECT_TRUE(workspace->check_is_current());
}

TEST_F(WorkspaceTest, ClosingWhileTheHostWorksDoesNotHang) {
  open();
  host->hold();
  workspace->type("check");
  ASSERT_TRUE(wait_for_request(1));
  workspace->type("check");
  for (std::size_t k = 0; k < total(); ++k) workspace->move_to(k);
  const auto start = std::chrono::steady_clock::now();
  workspace.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  make({});
}

TEST_F(WorkspaceTest, WithoutAHostCommandsThatNeedOneSaySo) {
  workspace = std::make_unique<Workspace>(Workspace::Options{nullptr, {}, {}});
  EXPECT_FALSE(workspace->has_host());
  open();
  workspace->start_host();
  workspace->restart_host();
  workspace->type("check");
  workspace->settle();
  EXPECT_FALSE(workspace->busy());
  EXPECT_EQ(said(Kind::error).size(), 1U);
}

TEST_F(WorkspaceTest, TheHostsLogKeepsItsEnd) {
  host->print("first\n");
  EXPECT_TRUE(workspace->update());
  EXPECT_EQ(workspace->host_log(), "first\n");
  EXPECT_FALSE(workspace->update());
  const std::string line = std::string(99, 'x') + "\n";
  for (int k = 0; k < 4'000; ++k) host->print(line);
  host->print("last\n");
  workspace->update();
  const std::string& log = workspace->host_log();
  EXPECT_LE(log.size(), 256U * 1024);
  EXPECT_GT(log.size(), 256U * 1024 - 200);
  EXPECT_TRUE(log.starts_with("x"));
  EXPECT_EQ(log.find('\n'), 99U);  // the first line is whole
  EXPECT_TRUE(log.ends_with("last\n"));
  EXPECT_EQ(workspace->host_log_end(), 6U + 400'000 + 5);
}

TEST_F(WorkspaceTest, ADetailIsOfItsSceneAndTheNewestSelection) {
  open();
  for (std::size_t k = 0; k < 5; ++k) workspace->request_detail(model::Selection(schedule::DecisionId(k)));
  workspace->settle();
  ASSERT_NE(workspace->detail(), nullptr);
  EXPECT_EQ(workspace->detail()->selection, model::Selection(schedule::DecisionId(4)));
  EXPECT_EQ(workspace->detail()->scene, workspace->scene()->number);
  EXPECT_NE(workspace->detail()->why, nullptr);
  // Another program: what was selected means nothing there.
  workspace->click("open " + path);
  workspace->settle();
  EXPECT_EQ(workspace->detail(), nullptr);
}

TEST_F(WorkspaceTest, FindsAndCompletesWhatIsOpen) {
  EXPECT_FALSE(workspace->complete("wh").candidates.empty());
  EXPECT_TRUE(workspace->complete("show su").candidates.empty());
  open();
  EXPECT_EQ(workspace->complete("show su").candidates, std::vector<std::string>{"sum_1"});
  workspace->request_search();
  workspace->settle();
  ASSERT_NE(workspace->search(), nullptr);
  const auto hits = workspace->search()->find("sum_1", 3);
  ASSERT_FALSE(hits.empty());
  EXPECT_TRUE(workspace->search()->items()[hits[0].item].text.starts_with("sum_1"));
}

TEST_F(WorkspaceTest, QuitIsHeard) {
  EXPECT_FALSE(workspace->finished());
  workspace->type("quit");
  workspace->settle();
  EXPECT_TRUE(workspace->finished());
}

TEST_F(WorkspaceTest, RemembersWhatWasOpenedAndTyped) {
  const auto state = folder.path() / "state";
  make(state);
  open();
  workspace->type("reasons");
  workspace->settle();
  ASSERT_EQ(workspace->recent().size(), 1U);
  EXPECT_EQ(workspace->recent()[0].command, "open " + path);
  EXPECT_EQ(workspace->recent()[0].path, path);
  EXPECT_GT(workspace->recent()[0].time, 1'600'000'000);
  workspace->click("open /no/such/file.pt2");
  workspace->settle();
  EXPECT_EQ(workspace->recent().size(), 1U);

  // The next run.
  make(state);
  workspace->settle();
  ASSERT_EQ(workspace->recent().size(), 1U);
  EXPECT_TRUE(workspace->recent()[0].exists);
  ASSERT_EQ(workspace->history().size(), 1U);
  EXPECT_EQ(workspace->history()[0], "reasons");
  std::filesystem::remove(path);
  workspace->request_recent();
  workspace->settle();
  ASSERT_EQ(workspace->recent().size(), 1U);
  EXPECT_FALSE(workspace->recent()[0].exists);
  EXPECT_EQ(workspace->history().size(), 1U);
}

TEST_F(WorkspaceTest, ATraceIsRememberedWithItsFunctionAndInputs) {
  make(folder.path() / "state");
  const std::string file = folder.write("my model.py", "def f(x, y): ...");
  host->set_answer([](const report::Json&) {
    return Result<report::Json>(report::Json{{"program", repl::small_program()}, {"token", "t1"}});
  });
  workspace->click("trace " + repl::quote_word(file + ":f") + " f32[4,8] f32[8]");
  workspace->settle();
  ASSERT_NE(workspace->scene(), nullptr) << workspace->problem();
  ASSERT_EQ(workspace->recent().size(), 1U);
  EXPECT_EQ(workspace->recent()[0].path, file);
  const auto words = repl::split_words(workspace->recent()[0].command);
  ASSERT_TRUE(words.ok());
  EXPECT_EQ(*words, (std::vector<std::string>{"trace", file + ":f", "f32[4,8]", "f32[8]"}));
}

TEST_F(WorkspaceTest, LooksIntoAPythonFileWithoutTheHost) {
  const std::string file = folder.write("m.py", "def f(x): ...\n");
  workspace->request_python_file(file);
  workspace->settle();
  ASSERT_NE(workspace->python_file(), nullptr);
  EXPECT_EQ(workspace->python_file()->path, file);
  ASSERT_EQ(workspace->python_file()->definitions.size(), 1U);
  EXPECT_TRUE(host->requests().empty());
}

}  // namespace
}  // namespace pallascope::workspace
