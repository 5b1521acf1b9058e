// The Inspector: what stands about each kind of thing, and where its links lead.
#include "app/model/inspector.h"

#include <algorithm>
#include <set>

#include "core/report/format.h"
#include "core/report/lookup.h"
#include "tests/unit/model/support.h"

namespace pallascope::model {
namespace {

Inspector inspect(const session::Compilation& compilation, const Selection& selection) {
  return inspector(compilation, *compilation.last(), selection);
}

std::string value(const Inspector& made, std::string_view label, std::string_view section = {}) {
  const InspectorRow* row = made.find(label, section);
  if (row == nullptr) {
    ADD_FAILURE() << made.title << " has no " << label;
    return "";
  }
  return row->text();
}

/// What the first piece with a selection leads to.
Selection target(const Inspector& made, std::string_view label) {
  const InspectorRow* row = made.find(label);
  if (row == nullptr) return {};
  for (const InspectorPiece& piece : row->pieces) {
    if (!is_empty(piece.selection)) return piece.selection;
  }
  return row->selection;
}

/// Labels are what UI tests address: unique in each section.
void expect_unique_labels(const Inspector& made) {
  std::set<std::string> titles;
  for (const InspectorSection& section : made.sections) {
    EXPECT_TRUE(titles.insert(section.title).second) << section.title;
    EXPECT_FALSE(section.rows.empty()) << section.title;
    std::set<std::string> labels;
    for (const InspectorRow& row : section.rows) {
      EXPECT_TRUE(labels.insert(row.label).second)
          << made.title << " / " << section.title << " / " << row.label;
      EXPECT_FALSE(row.text().empty()) << section.title << " / " << row.label;
    }
  }
}

TEST(Inspector, OfANodeSaysWhatItIsAndWhatBecameOfIt) {
  const auto& compilation = *gpt2();
  const trace::NodeId add = node(compilation, "add");
  const Inspector made = inspect(compilation, add);
  EXPECT_EQ(made.kind, "node");
  EXPECT_EQ(made.id, report::id_text(add));
  EXPECT_EQ(made.title, "add");
  EXPECT_EQ(made.subtitle, "aten.add.Tensor");
  EXPECT_EQ(value(made, "result"), "f32[2,16,64]");
  EXPECT_EQ(value(made, "strides"), "[1024,64,1]");
  EXPECT_EQ(value(made, "size"), "8 KiB");
  EXPECT_EQ(value(made, "call"), "aten.add.Tensor(x, linear_1)");
  EXPECT_EQ(value(made, "line"), "make_gpt2_block.py:50");
  EXPECT_EQ(value(made, "outcome"), "loops of a kernel");
  const auto kernels = report::kernels_of(*compilation.last(), add);
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(target(made, "kernel"), Selection(kernels[0]));
  EXPECT_TRUE(std::holds_alternative<loop::BufferId>(target(made, "buffer")));
  EXPECT_TRUE(std::holds_alternative<StatementRef>(target(made, "loops")));
  // Decisions, inputs and users are lists of links.
  const InspectorSection* decisions = made.section("Decisions");
  ASSERT_NE(decisions, nullptr);
  EXPECT_EQ(decisions->rows.size(), report::decisions_of(compilation, add).size());
  for (const InspectorRow& row : decisions->rows)
    EXPECT_TRUE(std::holds_alternative<schedule::DecisionId>(row.selection));
  const InspectorSection* inputs = made.section("Inputs");
  ASSERT_NE(inputs, nullptr);
  ASSERT_EQ(inputs->rows.size(), 2U);
  EXPECT_EQ(inputs->rows[0].text(), "linear_1");
  EXPECT_EQ(inputs->rows[0].selection, Selection(node(compilation, "linear_1")));
  EXPECT_EQ(inputs->rows[1].text(), "x");
  EXPECT_TRUE(std::holds_alternative<loop::BufferId>(inputs->rows[1].selection));
  EXPECT_EQ(made.section("Users")->rows.size(), 2U);
  expect_unique_labels(made);
}

TEST(Inspector, OfANodeBeforeItIsLowered) {
  const auto& compilation = *gpt2();
  const trace::NodeId add = node(compilation, "add");
  const Inspector made = inspector(compilation, *compilation.at(0), add);
  EXPECT_NE(value(made, "outcome"), "loops of a kernel");
  EXPECT_EQ(made.find("kernel"), nullptr);
  EXPECT_EQ(value(made, "call"), "aten.add.Tensor(x, linear_1)");
  expect_unique_labels(made);
}

TEST(Inspector, OfViewsAndCallsSaysSo) {
  const auto compilation = compile(rows());
  EXPECT_EQ(value(inspect(*compilation, node(*compilation, "permute")), "outcome"), "a view: no code");
  EXPECT_EQ(value(inspect(*compilation, node(*compilation, "permute")), "strides"), "[1,8]  not contiguous");
  const Inspector product = inspect(*compilation, node(*compilation, "mm"));
  EXPECT_EQ(value(product, "outcome"), "a library call (jax.lax)");
  const InspectorSection* users = product.section("Users");
  ASSERT_NE(users, nullptr);
  EXPECT_EQ(users->rows[0].selection, Selection(node(*compilation, "relu")));
}

TEST(Inspector, OfANodeOfAModuleLinksToIt) {
  const auto compilation = compile(rows(), {{"sin", "net.first"}, {"sum_1", "net.first"}, {"div", "net"}});
  const Inspector made = inspect(*compilation, node(*compilation, "sin"));
  EXPECT_EQ(value(made, "module"), "net.first");
  EXPECT_EQ(target(made, "module"), Selection(GroupRef{"net.first"}));
  const Inspector group = inspect(*compilation, GroupRef{"net.first"});
  EXPECT_EQ(group.kind, "module");
  EXPECT_EQ(group.title, "net.first");
  EXPECT_EQ(value(group, "nodes"), "2");
  EXPECT_EQ(target(group, "inside"), Selection(GroupRef{"net"}));
  EXPECT_EQ(group.section("Nodes")->rows.size(), 2U);
  ASSERT_NE(group.section("Kernels"), nullptr);
  EXPECT_TRUE(std::holds_alternative<schedule::KernelId>(group.section("Kernels")->rows[0].selection));
  expect_unique_labels(group);
}

TEST(Inspector, OfAKernelListsWhatItHoldsAndTouches) {
  const auto& compilation = *gpt2();
  const auto snapshot = compilation.last();
  for (const schedule::KernelId id : report::kernels_in_order(*snapshot)) {
    const schedule::Kernel& kernel = snapshot->state.kernels[id];
    const Inspector made = inspect(compilation, id);
    EXPECT_EQ(made.kind, "kernel");
    EXPECT_EQ(made.title, report::kernel_name(*snapshot, id));
    EXPECT_EQ(value(made, "working set"), report::bytes_text(kernel.working_set));
    EXPECT_EQ(made.section("Loops")->rows.size(), kernel.nests.size());
    EXPECT_EQ(made.section("Nodes")->rows.size(), report::nodes_of(*snapshot, id).size());
    EXPECT_EQ(made.section("Reads")->rows.size(), kernel.inputs.size());
    EXPECT_EQ(made.section("Writes")->rows.size(), kernel.outputs.size());
    ASSERT_NE(made.section("Accesses"), nullptr);
    for (const InspectorRow& row : made.section("Accesses")->rows) {
      EXPECT_NE(row.letter, ' ') << row.label;
      EXPECT_TRUE(std::holds_alternative<AccessRef>(row.selection));
    }
    expect_unique_labels(made);
  }
}

TEST(Inspector, OfABufferSaysWhoWritesAndReadsIt) {
  const auto& compilation = *gpt2();
  const auto snapshot = compilation.last();
  const trace::NodeId add = node(compilation, "add");
  const loop::BufferId id = snapshot->program->views.at(compilation.graph().nodes[add].outputs[0]).buffer;
  const Inspector made = inspect(compilation, id);
  EXPECT_EQ(made.kind, "buffer");
  EXPECT_EQ(value(made, "kind"), "intermediate");
  EXPECT_EQ(value(made, "size"), "8 KiB");
  EXPECT_EQ(target(made, "holds"), Selection(add));
  EXPECT_EQ(value(made, "written by"), report::join(report::writers(compilation, *snapshot, id), ", "));
  EXPECT_EQ(value(made, "read by"), report::join(report::readers(compilation, *snapshot, id), ", "));
  EXPECT_TRUE(std::holds_alternative<schedule::KernelId>(target(made, "written by")));
  expect_unique_labels(made);
  const Inspector input = inspect(compilation, snapshot->program->input_buffers.back());
  EXPECT_EQ(value(input, "kind"), "input");
  EXPECT_EQ(value(input, "taken"), "as it is, without a copy");
  EXPECT_EQ(input.find("written by"), nullptr);
}

TEST(Inspector, OfADecisionLinksBothSides) {
  const auto& compilation = *gpt2();
  for (const schedule::Decision& decision : compilation.decisions()) {
    const Inspector made = inspect(compilation, decision.id);
    EXPECT_EQ(made.kind, "decision");
    EXPECT_EQ(made.id, report::id_text(decision.id));
    EXPECT_TRUE(value(made, "verdict").starts_with(decision.accepted ? "✓ accepted" : "✗ refused"));
    const InspectorSection* left =
        made.section(decision.kind == schedule::DecisionKind::fuse    ? "Left side"
                     : decision.kind == schedule::DecisionKind::lower ? "Operator"
                                                                      : "Producer");
    ASSERT_NE(left, nullptr);
    EXPECT_EQ(left->rows.size(), decision.left.size());
    expect_unique_labels(made);
  }
  const schedule::DecisionId last = compilation.decisions().back().id;
  EXPECT_EQ(value(inspect(compilation, last), "at"), "the decision just taken");
  EXPECT_EQ(value(inspector(compilation, *compilation.at(last.index()), last), "at"),
            "not taken yet at this point");
}

TEST(Inspector, OfAccessesAndStatementsSaysHowMemoryIsWalked) {
  const auto compilation = compile(rows());
  const auto snapshot = compilation->last();
  const auto& accesses = snapshot->module.accesses;
  ASSERT_FALSE(accesses.empty());
  for (std::size_t k = 0; k < accesses.size(); ++k) {
    const Inspector made = inspect(*compilation, AccessRef{static_cast<int>(k)});
    EXPECT_EQ(made.kind, "access");
    EXPECT_EQ(made.title, accesses[k].source);
    EXPECT_EQ(made.find("access")->letter, index::access_class_letter(accesses[k].access.access_class));
    EXPECT_EQ(value(made, "index"), snapshot->program->context->to_string(accesses[k].index));
    EXPECT_EQ(target(made, "buffer"), Selection(accesses[k].buffer));
    const Inspector statement = inspect(*compilation, StatementRef{accesses[k].nest, accesses[k].statement});
    EXPECT_EQ(statement.kind, "statement");
    EXPECT_EQ(value(statement, "index"), value(made, "index"));
    const Inspector nest = inspect(*compilation, StatementRef{accesses[k].nest, -1});
    EXPECT_EQ(nest.kind, "loop nest");
    EXPECT_EQ(nest.section("Statements")->rows.size(),
              snapshot->program->nests[accesses[k].nest].body.size());
    expect_unique_labels(made);
    expect_unique_labels(nest);
  }
}

TEST(Inspector, OfNothingIsAnOverviewWithAHint) {
  const auto& compilation = *gpt2();
  const Inspector made = inspect(compilation, {});
  EXPECT_EQ(made.kind, "program");
  EXPECT_EQ(value(made, "nodes"), "27");
  EXPECT_EQ(value(made, "library"), "6 calls");
  EXPECT_FALSE(made.hints.empty());
  // What is not there any more is nothing, not a crash.
  for (const Selection& gone :
       {Selection(trace::NodeId(9999)), Selection(schedule::KernelId(9999)), Selection(loop::BufferId(9999)),
        Selection(schedule::DecisionId(9999)), Selection(AccessRef{9999}), Selection(AccessRef{-1}),
        Selection(StatementRef{loop::NestId(9999), 3}), Selection(trace::NodeId())})
    EXPECT_EQ(inspect(compilation, gone).kind, "program");
}

TEST(Inspector, FindAsksTheSectionThatIsNamed) {
  const auto& compilation = *gpt2();
  const Inspector made = inspect(compilation, node(compilation, "add"));
  const std::string user = made.section("Users")->rows[0].label;
  EXPECT_NE(made.find(user, "Users"), nullptr);
  EXPECT_EQ(made.find(user, "Inputs"), nullptr);
  EXPECT_EQ(made.find("nothing of the kind"), nullptr);
}

TEST(Inspector, EverySelectionAtEveryDecisionHasUniqueLabels) {
  const auto compilation = compile(rows());
  for (std::size_t k = 0; k <= compilation->decisions().size(); ++k) {
    const auto snapshot = compilation->at(k);
    for (std::size_t n = 0; n < compilation->graph().nodes.size(); ++n)
      expect_unique_labels(inspector(*compilation, *snapshot, trace::NodeId(n)));
    for (const schedule::KernelId id : report::kernels_in_order(*snapshot))
      expect_unique_labels(inspector(*compilation, *snapshot, id));
    for (std::size_t b = 0; b < snapshot->program->buffers.size(); ++b)
      expect_unique_labels(inspector(*compilation, *snapshot, loop::BufferId(b)));
  }
}

}  // namespace
}  // namespace pallascope::model
