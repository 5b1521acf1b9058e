// The pipeline as one: snapshots of every decision, their cache under threads, options, problems.
#include "core/session/compilation.h"

#include <atomic>
#include <set>
#include <thread>

#include "tests/unit/support/graph_text.h"

namespace pallascope::session {
namespace {

using testing::GraphText;

std::shared_ptr<const Compilation> compile(const GraphText& text, const Options& options = {}) {
  const auto made = Compilation::compile(std::make_shared<const trace::Program>(text.program()), 0, options);
  EXPECT_TRUE(made.ok()) << to_string(made.error());
  return made.value();
}

GraphText chain() {
  return GraphText()
      .in("x", "f32[8,16]")
      .in("w", "f32[16,16]")
      .op("sin", "aten.sin.default", "%x", "f32[8,16]")
      .op("softmax", "aten.softmax.int", "%sin, -1", "f32[8,16]")
      .op("mm", "aten.mm.default", "%softmax, %w", "f32[8,16]")
      .op("t", "aten.t.default", "%mm", "f32[16,8]@[1,16]")
      .op("cos", "aten.cos.default", "%t", "f32[16,8]@[1,16]")
      .out("cos");
}

/// How many steps of a snapshot are torch calls, library calls and kernels.
struct Steps {
  int torch = 0, library = 0, kernels = 0;
  friend bool operator==(const Steps&, const Steps&) = default;
};
Steps steps(const Snapshot& snapshot) {
  Steps found;
  for (const schedule::ScheduledStep& s : snapshot.state.steps) {
    if (s.kernel.valid()) {
      ++found.kernels;
    } else if (std::holds_alternative<loop::TorchCall>(snapshot.program->steps[s.call].content)) {
      ++found.torch;
    } else {
      ++found.library;
    }
  }
  return found;
}

TEST(Snapshots, BeforeTheFirstDecisionEveryOperatorIsATorchCall) {
  const auto compilation = compile(chain());
  const auto first = compilation->at(0);
  EXPECT_EQ(first->decision, 0U);
  EXPECT_EQ(steps(*first), (Steps{5, 0, 0}));
  EXPECT_EQ(first->module.source.find("pallas_call("), std::string::npos);
  EXPECT_TRUE(first->module.kernels.empty());
  EXPECT_NE(first->module.source.find("torch.ops.aten.softmax.int("), std::string::npos);
}

TEST(Snapshots, EachLoweringDecisionTakesOneOperatorIn) {
  const auto compilation = compile(chain());
  ASSERT_EQ(compilation->schedule().lower_decisions, 5U);
  EXPECT_EQ(steps(*compilation->at(1)), (Steps{4, 0, 1}));
  EXPECT_EQ(steps(*compilation->at(2)), (Steps{3, 0, 5}));
  EXPECT_EQ(steps(*compilation->at(3)), (Steps{2, 1, 5}));
  EXPECT_EQ(steps(*compilation->at(4)), (Steps{1, 1, 5}));
  EXPECT_EQ(steps(*compilation->at(5)), (Steps{0, 1, 6}));
  EXPECT_EQ(steps(*compilation->last()), (Steps{0, 1, 2}));
}

TEST(Snapshots, AreKept) {
  const auto compilation = compile(chain());
  const std::size_t all = compilation->decisions().size();
  for (std::size_t k = 0; k <= all; ++k) {
    const auto snapshot = compilation->at(k);
    EXPECT_EQ(snapshot->decision, k);
    EXPECT_EQ(compilation->at(k), snapshot) << k;
  }
  EXPECT_EQ(compilation->at(all + 100), compilation->last());
  EXPECT_NE(compilation->at(0), compilation->last());
}

TEST(Snapshots, TheOrderOfAskingDoesNotMatter) {
  const auto up = compile(chain()), down = compile(chain());
  const std::size_t all = up->decisions().size();
  std::vector<std::string> there;
  for (std::size_t k = 0; k <= all; ++k) there.push_back(up->at(k)->module.source);
  for (std::size_t k = all + 1; k-- > 0;) EXPECT_EQ(down->at(k)->module.source, there[k]) << k;
}

TEST(Snapshots, RefusedDecisionsChangeNothing) {
  const auto compilation = compile(chain());
  std::size_t refused = 0;
  for (std::size_t k = compilation->schedule().lower_decisions; k < compilation->decisions().size(); ++k) {
    const bool same = compilation->at(k)->module.source == compilation->at(k + 1)->module.source;
    EXPECT_EQ(same, !compilation->decisions()[k].accepted) << "d" << k;
    refused += same ? 1U : 0U;
  }
  EXPECT_GT(refused, 0U);
}

TEST(Snapshots, CanBeTakenFromTwoThreads) {
  for (int round = 0; round < 5; ++round) {
    const auto compilation = compile(chain());
    const std::size_t all = compilation->decisions().size();
    std::vector<std::shared_ptr<const Snapshot>> up(all + 1), down(all + 1);
    std::atomic<int> waiting{2};
    const auto meet = [&] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
    };
    std::thread other([&] {
      meet();
      for (std::size_t k = all + 1; k-- > 0;) down[k] = compilation->at(k);
    });
    meet();
    for (std::size_t k = 0; k <= all; ++k) up[k] = compilation->at(k);
    other.join();
    EXPECT_EQ(up, down) << "both see one snapshot a decision";
    const auto alone = compile(chain());
    for (std::size_t k = 0; k <= all; ++k) EXPECT_EQ(up[k]->module.source, alone->at(k)->module.source) << k;
  }
}

TEST(Options, WithoutFusionEachNestIsAKernel) {
  Options options;
  options.fusion = false;
  const auto compilation = compile(chain(), options);
  EXPECT_EQ(compilation->decisions().size(), 5U);
  EXPECT_FALSE(compilation->options().fusion);
  EXPECT_EQ(steps(*compilation->last()), (Steps{0, 1, 6}));
  EXPECT_EQ(compilation->last()->module.source, compile(chain())->at(5)->module.source);
}

TEST(Compile, KeepsWhatItWasGiven) {
  const auto program = std::make_shared<const trace::Program>(chain().program());
  const auto compilation = *Compilation::compile(program, 0);
  EXPECT_EQ(&compilation->program(), program.get());
  EXPECT_EQ(&compilation->traced(), &program->graphs[0]);
  EXPECT_EQ(compilation->graph_index(), 0U);
  EXPECT_EQ(compilation->graph().nodes.size(), 5U);
  const Timings& t = compilation->timings();
  for (double ms : {t.functional_ms, t.lower_ms, t.schedule_ms, t.codegen_ms}) EXPECT_GT(ms, 0);
}

TEST(Compile, MutationsBecomeValuesAndStayInTheReference) {
  const auto compilation = compile(GraphText()
                                       .in("x", "f32[4]")
                                       .op("add_", "aten.add_.Tensor", "%x, 1", "f32[4]")
                                       .op("sin", "aten.sin.default", "%add_", "f32[4]")
                                       .out("sin"));
  for (const trace::Node& node : compilation->graph().nodes) EXPECT_NE(node.target, "aten.add_.Tensor");
  EXPECT_EQ(compilation->traced().nodes[trace::NodeId(0)].target, "aten.add_.Tensor");
  const std::string& source = compilation->last()->module.source;
  EXPECT_NE(source.find("torch.ops.aten.add_.Tensor(x, 1)"), std::string::npos);
  EXPECT_NE(source.find("x.detach().copy_("), std::string::npos) << source;
}

TEST(Compile, ProblemsAreDiagnostics) {
  const auto program = std::make_shared<const trace::Program>(chain().program());
  const auto missing = Compilation::compile(program, 1);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, DiagnosticKind::not_found);
  EXPECT_NE(missing.error().message.find("1"), std::string::npos);

  Options options;
  options.target = "abacus";
  const auto target = Compilation::compile(program, 0, options);
  ASSERT_FALSE(target.ok());
  EXPECT_EQ(target.error().kind, DiagnosticKind::invalid_argument);
  EXPECT_NE(target.error().message.find("abacus"), std::string::npos);

  const auto outside = Compilation::compile(
      std::make_shared<const trace::Program>(
          GraphText().in("x", "f32[4]").op("s", "aten.select.int", "%x, 0, 9", "f32[]").out("s").program()),
      0);
  ASSERT_FALSE(outside.ok());
  EXPECT_EQ(outside.error().kind, DiagnosticKind::invalid_argument);
  EXPECT_NE(outside.error().where.find("model.py:1"), std::string::npos) << to_string(outside.error());
}

}  // namespace
}  // namespace pallascope::session
