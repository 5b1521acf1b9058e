// A selection and how it follows across decisions: same id, else children, else ancestors.
#include "app/model/selection.h"

#include <algorithm>

#include "core/report/lookup.h"
#include "tests/unit/model/support.h"

namespace pallascope::model {
namespace {

using session::Snapshot;

TEST(Groups, ArePathsNotBeginnings) {
  EXPECT_TRUE(in_group("h.0.attn", "h.0"));
  EXPECT_TRUE(in_group("h.0", "h.0"));
  EXPECT_TRUE(in_group("h.0", ""));
  EXPECT_FALSE(in_group("h.01", "h.0"));
  EXPECT_FALSE(in_group("h", "h.0"));
}

TEST(Follow, NodesGroupsAndDecisionsStay) {
  const CompilationPointer compilation = compile(rows());
  const auto first = compilation->at(0), last = compilation->last();
  for (const Selection& selection : {Selection(), Selection(trace::NodeId(2)), Selection(GroupRef{"h"}), Selection(schedule::DecisionId(1))}) {
    EXPECT_EQ(follow(*first, *last, selection), selection);
    EXPECT_EQ(follow(*last, *first, selection), selection);
  }
}

TEST(Follow, AKernelIsFoundByItsNestsAndBackByTheLargestPart) {
  const CompilationPointer compilation = compile(rows());
  const auto before = compilation->at(compilation->schedule().lower_decisions), last = compilation->last();
  ASSERT_GT(before->state.kernels.size(), last->state.kernels.size());
  for (std::size_t k = 0; k < before->state.kernels.size(); ++k) {
    const schedule::KernelId kernel(k);
    const Selection now = follow(*before, *last, kernel);
    ASSERT_TRUE(std::holds_alternative<schedule::KernelId>(now)) << k;
    const auto wanted = report::nodes_of(*before, kernel);
    const auto members = report::nodes_of(*last, std::get<schedule::KernelId>(now));
    for (const trace::NodeId id : wanted) EXPECT_NE(std::find(members.begin(), members.end(), id), members.end());
  }
  const Selection back = follow(*last, *before, schedule::KernelId(0));
  ASSERT_TRUE(std::holds_alternative<schedule::KernelId>(back));
  const auto part = report::nodes_of(*before, std::get<schedule::KernelId>(back));
  const auto whole = report::nodes_of(*last, schedule::KernelId(0));
  EXPECT_TRUE(std::includes(whole.begin(), whole.end(), part.begin(), part.end()));
}

TEST(Follow, BeforeAnythingIsLoweredAKernelIsItsNode) {
  const CompilationPointer compilation = compile(rows());
  const auto first = compilation->at(0), last = compilation->last();
  const Selection then = follow(*last, *first, schedule::KernelId(0));
  ASSERT_TRUE(std::holds_alternative<trace::NodeId>(then));
  const auto members = report::nodes_of(*last, schedule::KernelId(0));
  EXPECT_EQ(std::get<trace::NodeId>(then), members.back());
}

TEST(Follow, BuffersAreTheSameByTheirFirstValue) {
  const CompilationPointer compilation = compile(rows());
  const auto first = compilation->at(0), last = compilation->last();
  for (std::size_t k = 0; k < first->program->buffers.size(); ++k) {
    const Selection now = follow(*first, *last, loop::BufferId(k));
    if (!std::holds_alternative<loop::BufferId>(now)) continue;
    EXPECT_EQ(last->program->buffers[std::get<loop::BufferId>(now)].origin, first->program->buffers[loop::BufferId(k)].origin);
  }
  EXPECT_TRUE(std::holds_alternative<loop::BufferId>(follow(*last, *first, last->program->input_buffers[0])));
}

/// At every decision of GPT-2, whatever is selected leads to something that exists and stands for a node in common.
TEST(Follow, ThroughAllOfGpt2NothingIsLost) {
  const CompilationPointer compilation = gpt2();
  const auto last = compilation->last();
  std::vector<Selection> selections;
  for (std::size_t k = 0; k < last->state.kernels.size(); ++k) selections.emplace_back(schedule::KernelId(k));
  for (const schedule::KernelId kernel : report::kernels_in_order(*last)) {
    for (const loop::NestId nest : last->state.kernels[kernel].nests) {
      selections.emplace_back(StatementRef{nest, -1});
      selections.emplace_back(StatementRef{nest, 0});
    }
  }
  for (std::size_t k = 0; k < last->module.accesses.size(); k += 3) selections.emplace_back(AccessRef{static_cast<int>(k)});
  const std::size_t lower = compilation->schedule().lower_decisions, count = compilation->decisions().size();
  for (const std::size_t at : {std::size_t{0}, lower / 2, lower, lower + (count - lower) / 3, count - 1, count}) {
    const auto there = compilation->at(at);
    for (const Selection& selection : selections) {
      const Selection then = follow(*last, *there, selection);
      ASSERT_FALSE(is_empty(then)) << "selection of kind " << selection.index() << " at " << at;
      const auto here_nodes = nodes_of(*compilation, *last, selection), there_nodes = nodes_of(*compilation, *there, then);
      const bool common = std::any_of(there_nodes.begin(), there_nodes.end(), [&](trace::NodeId id) {
        return std::binary_search(here_nodes.begin(), here_nodes.end(), id);
      });
      EXPECT_TRUE(common || here_nodes.empty()) << "selection of kind " << selection.index() << " at " << at;
    }
  }
}

TEST(Follow, AnAccessStaysOnTheSameLoad) {
  const CompilationPointer compilation = gpt2();
  const auto last = compilation->last(), before = compilation->at(compilation->decisions().size() - 1);
  std::size_t same = 0;
  for (std::size_t k = 0; k < last->module.accesses.size(); ++k) {
    const Selection then = follow(*last, *before, AccessRef{static_cast<int>(k)});
    if (!std::holds_alternative<AccessRef>(then)) continue;
    const auto& here = last->module.accesses[k];
    const auto& there = before->module.accesses[static_cast<std::size_t>(std::get<AccessRef>(then).access)];
    EXPECT_EQ(here.buffer, there.buffer);
    EXPECT_EQ(here.index, there.index);
    ++same;
  }
  EXPECT_GT(same * 2, last->module.accesses.size());
}

TEST(NodesOf, StandForWhatIsSelected) {
  const CompilationPointer compilation = compile(rows(), {{"sin", "a"}, {"sum_1", "a.b"}});
  const auto last = compilation->last();
  EXPECT_EQ(nodes_of(*compilation, *last, GroupRef{"a"}), (std::vector{node(*compilation, "sin"), node(*compilation, "sum_1")}));
  EXPECT_EQ(nodes_of(*compilation, *last, trace::NodeId(1)), (std::vector{trace::NodeId(1)}));
  EXPECT_TRUE(nodes_of(*compilation, *last, Selection()).empty());
  EXPECT_TRUE(nodes_of(*compilation, *last, schedule::DecisionId(12345)).empty());
  EXPECT_TRUE(nodes_of(*compilation, *last, AccessRef{12345}).empty());
  const auto users = nodes_of(*compilation, *last, last->program->input_buffers[1]);
  EXPECT_EQ(users, (std::vector{node(*compilation, "mm")}));
}

}  // namespace
}  // namespace pallascope::model
