// Snapshots that are made next to others share with them what is equal. They must not differ from one that is made
// alone: at every decision, forward, backward and in any order.
#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <random>
#include <string>

#include "core/codegen/module.h"
#include "core/lower/lower.h"
#include "core/schedule/schedule.h"
#include "core/session/compilation.h"
#include "core/trace/read.h"
#include "tests/unit/support/graph_text.h"

namespace pallascope::session {
namespace {

using testing::GraphText;
using ProgramPointer = std::shared_ptr<const trace::Program>;

std::shared_ptr<const Compilation> compile(const ProgramPointer& program) {
  const auto made = Compilation::compile(program, 0);
  EXPECT_TRUE(made.ok()) << to_string(made.error());
  return made.value();
}

/// Square tensors through pointwise operators, reductions, products, transpositions, slices, gathers and torch calls.
ProgramPointer random_program(unsigned seed, int operators) {
  std::mt19937 random(seed);
  GraphText text;
  text.in("x", "f32[8,8]").in("w", "f32[8,8]").in("i", "i64[8]");
  std::vector<std::string> values = {"x", "w"};
  const auto pick = [&] { return "%" + values[values.size() - 1 - random() % std::min<std::size_t>(values.size(), 4)]; };
  for (int k = 0; k < operators; ++k) {
    const std::string name = "v" + std::to_string(k), square = "f32[8,8]";
    switch (random() % 9) {
      case 0: text.op(name, "aten.sin.default", pick(), square); break;
      case 1: text.op(name, "aten.add.Tensor", pick() + ", " + pick(), square); break;
      case 2: text.op(name, "aten.mul.Tensor", pick() + ", " + std::to_string(k) + ".5", square); break;
      case 3: text.op(name, "aten.softmax.int", pick() + ", -1", square); break;
      case 4: text.op(name, "aten.mm.default", pick() + ", %w", square); break;
      case 5: text.op(name + "s", "aten.sum.dim_IntList", pick() + ", [1], true", "f32[8,1]")
                  .op(name, "aten.div.Tensor", pick() + ", %" + name + "s", square);
        break;
      case 6: text.op(name + "t", "aten.permute.default", pick() + ", [1, 0]", "f32[8,8]@[1,8]")
                  .op(name, "aten.cos.default", "%" + name + "t", "f32[8,8]@[1,8]");
        text.op(name + "c", "aten.clone.default", "%" + name, "f32[8,8]@[1,8]");
        break;
      case 7: text.op(name, "aten.index_select.default", pick() + ", 0, %i", square); break;
      default: text.op(name, k % 2 == 0 ? "aten.unknown.default" : "aten.neg.default", pick(), square); break;
    }
    values.push_back(name);
  }
  text.out(values.back()).out(values[values.size() / 2]);
  return std::make_shared<const trace::Program>(text.program());
}

ProgramPointer gpt2() {
  static const auto made = std::make_shared<const trace::Program>(
      trace::open(std::string(PALLASCOPE_TEST_DATA) + "/../assets/examples/gpt2_block.pt2").value());
  return made;
}

auto as_tuple(const codegen::LineOrigin& o) { return std::tuple(o.kernel, o.nest, o.statement, o.node, o.access); }
auto as_tuple(const codegen::KernelSource& k) {
  return std::tuple(k.name, k.first_line, k.last_line, k.kernel_first, k.kernel_last);
}

void expect_equal(const Snapshot& a, const Snapshot& b, const std::string& where) {
  ASSERT_EQ(a.decision, b.decision) << where;
  ASSERT_EQ(a.module.source, b.module.source) << where;
  ASSERT_EQ(a.module.lines.size(), b.module.lines.size()) << where;
  for (std::size_t k = 0; k < a.module.lines.size(); ++k)
    ASSERT_EQ(as_tuple(a.module.lines[k]), as_tuple(b.module.lines[k])) << where << ", line " << k + 1;
  ASSERT_EQ(a.module.kernels.size(), b.module.kernels.size()) << where;
  for (std::size_t k = 0; k < a.module.kernels.size(); ++k)
    ASSERT_EQ(as_tuple(a.module.kernels[k]), as_tuple(b.module.kernels[k])) << where;
  ASSERT_EQ(a.module.accesses.size(), b.module.accesses.size()) << where;
  for (std::size_t k = 0; k < a.module.accesses.size(); ++k) {
    const codegen::KernelAccess x = a.module.accesses[k], y = b.module.accesses[k];
    ASSERT_EQ(std::tuple(x.kernel, x.nest, x.statement, x.store, x.on_value, x.buffer, x.parameter, x.source, x.index, x.axes,
                         x.access.words, x.access.plan, x.line),
              std::tuple(y.kernel, y.nest, y.statement, y.store, y.on_value, y.buffer, y.parameter, y.source, y.index, y.axes,
                         y.access.words, y.access.plan, y.line))
        << where << ", access " << k;
  }
  ASSERT_EQ(a.state.bytes_moved, b.state.bytes_moved) << where;
  ASSERT_EQ(a.state.steps.size(), b.state.steps.size()) << where;
  for (std::size_t k = 0; k < a.state.steps.size(); ++k)
    ASSERT_EQ(std::tuple(a.state.steps[k].kernel, a.state.steps[k].call), std::tuple(b.state.steps[k].kernel, b.state.steps[k].call));
}

/// The pieces say the same as the text.
void expect_made_of_pieces(const codegen::Module& module) {
  std::string source;
  std::size_t line = 0;
  for (const codegen::Place& place : module.pieces) {
    ASSERT_EQ(place.first_line, static_cast<int>(line) + 1);
    for (std::size_t k = 0; k < place.piece->size(); ++k, ++line) {
      source.append(place.piece->line(k)) += '\n';
      ASSERT_EQ(as_tuple(place.origin(k)), as_tuple(module.lines.at(line)));
    }
  }
  EXPECT_EQ(source, module.source);
}

void expect_neighbours_do_not_matter(const ProgramPointer& program, const std::string& name) {
  const std::size_t all = compile(program)->decisions().size();
  std::vector<std::shared_ptr<const Compilation>> alone;  // snapshots live as long as their compilation
  std::vector<std::shared_ptr<const Snapshot>> expected;
  for (std::size_t k = 0; k <= all; ++k) {
    alone.push_back(compile(program));
    expected.push_back(alone.back()->at(k));
    expect_made_of_pieces(expected.back()->module);
  }
  std::vector<std::size_t> order(all + 1);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (const std::string direction : {"forward", "backward", "random"}) {
    if (direction == "backward") std::reverse(order.begin(), order.end());
    if (direction == "random") std::shuffle(order.begin(), order.end(), std::mt19937(7));
    const auto compilation = compile(program);
    for (const std::size_t k : order)
      expect_equal(*compilation->at(k), *expected[k], name + " " + direction + " d" + std::to_string(k));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Neighbours, DoNotMatterToTheGpt2Block) { expect_neighbours_do_not_matter(gpt2(), "gpt2"); }

TEST(Neighbours, DoNotMatterToRandomGraphs) {
  for (unsigned seed = 1; seed <= 12; ++seed)
    expect_neighbours_do_not_matter(random_program(seed, 4 + static_cast<int>(seed) * 2), "seed " + std::to_string(seed));
}

/// `text` with its buffers numbered by their first mention: buf12 of one program may be buf7 of another.
class Renumbering {
 public:
  std::string operator()(const std::string& text) {
    std::string made;
    for (std::size_t k = 0; k < text.size();) {
      std::size_t end = k + 3;
      if (text.compare(k, 3, "buf") == 0)
        while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
      if (end == k + 3 || end > text.size()) {
        made += text[k++];
        continue;
      }
      made += "buf" + std::to_string(numbers_.emplace(text.substr(k, end - k), numbers_.size()).first->second);
      k = end;
    }
    return made;
  }

 private:
  std::map<std::string, std::size_t> numbers_;
};

/// A snapshot in the lowering says what lowering the graph again with a limit says, but for the numbers of buffers.
void expect_lowered_with_a_limit(const ProgramPointer& program, const std::string& name) {
  const auto compilation = compile(program);
  for (std::size_t k = 0; k < compilation->schedule().lower_decisions; ++k) {
    const std::string where = name + " d" + std::to_string(k);
    const auto snapshot = compilation->at(k);
    lower::Options options;
    options.limit = k;
    Result<loop::Program> lowered = lower::lower(compilation->graph(), options);
    ASSERT_TRUE(lowered.ok()) << to_string(lowered.error());
    schedule::Schedule unfused;
    unfused.program = std::make_shared<loop::Program>(std::move(*lowered));
    const schedule::State state = schedule::state_at(unfused, 0);
    const codegen::Module module = codegen::generate(compilation->traced(), compilation->graph(), *unfused.program, state, {});
    Renumbering ours, theirs;
    ASSERT_EQ(ours(snapshot->module.source), theirs(module.source)) << where;
    ASSERT_EQ(snapshot->module.lines.size(), module.lines.size()) << where;
    for (std::size_t l = 0; l < module.lines.size(); ++l) {
      const codegen::LineOrigin &a = snapshot->module.lines[l], &b = module.lines[l];
      ASSERT_EQ(std::tuple(a.kernel, a.statement, a.node, a.access), std::tuple(b.kernel, b.statement, b.node, b.access)) << where;
    }
    ASSERT_EQ(snapshot->module.accesses.size(), module.accesses.size()) << where;
    for (std::size_t a = 0; a < module.accesses.size(); ++a) {
      const codegen::KernelAccess x = snapshot->module.accesses[a], y = module.accesses[a];
      ASSERT_EQ(std::tuple(x.kernel, x.statement, x.store, x.on_value, x.parameter, x.source, x.access.words, x.access.plan, x.line),
                std::tuple(y.kernel, y.statement, y.store, y.on_value, y.parameter, y.source, y.access.words, y.access.plan, y.line))
          << where << ", access " << a;
      ASSERT_EQ(snapshot->program->context->to_string(x.index), unfused.program->context->to_string(y.index)) << where;
      ASSERT_EQ(ours(snapshot->program->buffers[x.buffer].name), theirs(unfused.program->buffers[y.buffer].name)) << where;
    }
    ASSERT_EQ(snapshot->state.bytes_moved, state.bytes_moved) << where;
    ASSERT_EQ(snapshot->state.steps.size(), state.steps.size()) << where;
    ASSERT_EQ(snapshot->program->outcomes.size(), unfused.program->outcomes.size()) << where;
    for (std::size_t n = 0; n < unfused.program->outcomes.size(); ++n) {
      const loop::NodeOutcome &a = snapshot->program->outcomes[n], &b = unfused.program->outcomes[n];
      ASSERT_EQ(std::tuple(a.node, a.outcome, a.steps.size(), a.why), std::tuple(b.node, b.outcome, b.steps.size(), b.why)) << where;
    }
    ASSERT_EQ(snapshot->program->views.size(), unfused.program->views.size()) << where;
    for (const auto& [value, view] : unfused.program->views) {
      const loop::View& ours_at = snapshot->program->views.at(value);
      ASSERT_EQ(snapshot->program->context->to_string(ours_at.index), unfused.program->context->to_string(view.index)) << where;
      ASSERT_EQ(snapshot->program->buffers[ours_at.buffer].dims, unfused.program->buffers[view.buffer].dims) << where;
    }
  }
}

TEST(Neighbours, InTheLoweringSayWhatALimitSays) {
  expect_lowered_with_a_limit(gpt2(), "gpt2");
  for (unsigned seed = 1; seed <= 40; ++seed)
    expect_lowered_with_a_limit(random_program(seed, 4 + static_cast<int>(seed % 12) * 2), "seed " + std::to_string(seed));
}

/// Reversed arguments and results cannot be views of torch tensors: copies are made, which belong to some prefixes only.
TEST(Neighbours, InTheLoweringCopyWhatTorchCannotView) {
  GraphText text;
  text.in("x", "f32[4,8]").in("m", "f32[8,8]");
  text.op("back", "aten.flip.default", "%x, [1]", "f32[4,8]")
      .op("left", "aten.unknown.default", "%back", "f32[4,8]")
      .op("sum", "aten.add.Tensor", "%left, %back", "f32[4,8]")
      .op("again", "aten.flip.default", "%sum, [0]", "f32[4,8]")
      .op("noise", "aten.bernoulli.default", "%again", "f32[4,8]")
      .op("two", "aten.unknown.Tensor", "%again, %back", "f32[4,8]")
      .op("dropped", "aten.rand_like.default", "%sum", "f32[4,8]")
      .op("joined", "aten.cat.default", "[%two, %noise, %again], 0", "f32[12,8]")
      .op("product", "aten.mm.default", "%joined, %m", "f32[12,8]")
      .op("unused", "aten.exp.default", "%product", "f32[12,8]");
  text.out("again").out("product").out("back");
  expect_lowered_with_a_limit(std::make_shared<const trace::Program>(text.program()), "copies");
  expect_neighbours_do_not_matter(std::make_shared<const trace::Program>(text.program()), "copies");
}

TEST(Neighbours, ShareTheKernelsThatADecisionLeavesAlone) {
  const auto compilation = compile(gpt2());
  const std::size_t all = compilation->decisions().size();
  const auto before = compilation->at(all - 1), after = compilation->at(all);
  std::size_t shared = 0;
  for (const auto& run : after->module.accesses.runs())
    for (const auto& other : before->module.accesses.runs()) shared += run.piece == other.piece ? 1 : 0;
  EXPECT_GE(shared + 2, after->module.kernels.size());
}

TEST(Neighbours, InTheLoweringShareNestsAndCalls) {
  const auto compilation = compile(gpt2());
  const auto before = compilation->at(20), after = compilation->at(21);
  // Another program, the same lists.
  ASSERT_NE(before->program, after->program);
  EXPECT_EQ(&before->program->nests[loop::NestId(0)], &after->program->nests[loop::NestId(0)]);
  std::size_t shared = 0;
  std::map<const codegen::Piece*, int> known;
  for (const codegen::Place& place : before->module.pieces) ++known[place.piece.get()];
  for (const codegen::Place& place : after->module.pieces) shared += known.contains(place.piece.get()) ? 1 : 0;
  EXPECT_GT(shared * 10, after->module.pieces.size() * 8);
}

}  // namespace
}  // namespace pallascope::session
