// A trace may be JSON that a person wrote: whatever its metas and arguments say, lowering gives a program or a
// diagnostic, never a crash.
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/codegen/module.h"
#include "core/functional/functionalize.h"
#include "core/lower/lower.h"
#include "core/schedule/schedule.h"
#include "core/target/target.h"
#include "core/trace/read.h"

namespace pallascope {
namespace {

std::string example(const std::string& name) {
  std::ifstream file(std::string(PALLASCOPE_TEST_DATA) + "/golden/data/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Replaces one number of the text by another small one: sizes, strides, dims, scalars alike.
std::string mutate(const std::string& text, std::mt19937& random) {
  std::vector<std::pair<std::size_t, std::size_t>> numbers;
  for (std::size_t k = 0; k < text.size();) {
    if (text[k] >= '0' && text[k] <= '9' && k > 0 && (text[k - 1] == '[' || text[k - 1] == ',' || text[k - 1] == ' ')) {
      std::size_t end = k;
      while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
      numbers.emplace_back(k, end);
      k = end;
    } else {
      ++k;
    }
  }
  const auto [from, to] = numbers.at(random() % numbers.size());
  static const std::vector<std::string> values = {"0", "1", "2", "3", "5", "8", "16", "64", "-1", "-2", "100"};
  return text.substr(0, from) + values[random() % values.size()] + text.substr(to);
}

/// Runs every stage that a person's `open` runs; true if a program came out.
bool survives(const std::string& text) {
  Result<trace::Program> program = trace::read_json(text, "test");
  if (!program) return false;
  Result<functional::Functional> functional = functional::functionalize(program->graphs.at(0));
  if (!functional) return false;
  Result<loop::Program> lowered = lower::lower(functional->graph);
  if (!lowered) {
    EXPECT_FALSE(lowered.error().message.empty());
    EXPECT_FALSE(lowered.error().where.empty());
    return false;
  }
  schedule::Options options;
  options.model = target::default_model();
  const schedule::Schedule schedule =
      schedule::schedule(std::make_shared<loop::Program>(std::move(*lowered)), functional->graph, options);
  const schedule::State state = schedule::state_at(schedule, schedule.decisions.size());
  return !codegen::generate(program->graphs[0], functional->graph, *schedule.program, state, {}).source.empty();
}

TEST(Malformed, ChangedNumbersGiveAProgramOrADiagnostic) {
  std::mt19937 random(20);
  int programs = 0, refused = 0;
  for (const std::string name : {"sin_add.json", "softmax.json", "layer_norm.json"}) {
    const std::string text = example(name);
    ASSERT_FALSE(text.empty()) << name;
    ASSERT_TRUE(survives(text)) << name;
    for (int k = 0; k < 300; ++k) {
      std::string changed = mutate(text, random);
      if (random() % 2 == 0) changed = mutate(changed, random);
      (survives(changed) ? programs : refused) += 1;
    }
  }
  EXPECT_GT(programs, 20);
  EXPECT_GT(refused, 200);
}

/// The GPT-2 block holds views, products, masks and reductions. Its numbers are changed in the graph itself.
TEST(Malformed, ChangedMetasOfARealModelGiveAProgramOrADiagnostic) {
  Result<trace::Program> program = trace::open(std::string(PALLASCOPE_TEST_DATA) + "/../assets/examples/gpt2_block.pt2");
  ASSERT_TRUE(program.ok());
  const std::string text = trace::write_json(*program);
  ASSERT_TRUE(survives(text));
  std::mt19937 random(21);
  int refused = 0;
  for (int k = 0; k < 400; ++k) refused += survives(mutate(text, random)) ? 0 : 1;
  EXPECT_GT(refused, 100);
}

TEST(Malformed, ANodeThatDoesNotFitItsOperatorIsNamed) {
  std::string text = example("sin_add.json");
  // Only the result of the second node changes: f32[4] becomes f32[5].
  const std::size_t add = text.rfind("\"sizes\"");
  ASSERT_NE(add, std::string::npos);
  const std::size_t four = text.find('4', add);
  text[four] = '5';
  Result<trace::Program> program = trace::read_json(text, "test");
  ASSERT_TRUE(program.ok());
  const Result<loop::Program> lowered = lower::lower(program->graphs.at(0));
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().kind, DiagnosticKind::malformed_graph);
  EXPECT_NE(lowered.error().message.find("aten.add.Tensor"), std::string::npos);
  EXPECT_NE(lowered.error().where.find("add"), std::string::npos);
}

}  // namespace
}  // namespace pallascope
