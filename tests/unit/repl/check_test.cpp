// `check --picture` and `check --buffers`: what the host is asked, and what is made of its answer.
#include <set>

#include "tests/unit/repl/support.h"

namespace pallascope::repl {
namespace {

using report::Json;

class Check : public OpenProgram {};

TEST_F(Check, PicturesAreAskedFor) {
  answer = Json::parse(R"({"verdict": "passed", "outputs": []})");
  good("check");
  EXPECT_EQ(requests.back()["picture"], false);
  EXPECT_FALSE(requests.back().contains("buffers"));
  EXPECT_GE(requests.back()["launches"], 3);
  good("check --picture");
  EXPECT_EQ(requests.back()["picture"], true);
}

TEST_F(Check, BuffersAreNamedInExecutionOrder) {
  answer = Json::parse(R"({"verdict": "passed", "outputs": [], "buffers": [], "first_divergence": null})");
  good("check --buffers");
  const Json steps = requests.back()["buffers"];
  EXPECT_EQ(steps.size(), requests.back()["launches"].get<std::size_t>());
  const std::string source = requests.back()["source"];
  std::size_t at = source.find("def _call_debug(");
  std::set<std::string> nodes;
  for (const Json& step : steps) {
    EXPECT_NE(step["kernel"].is_null(), step["call"].is_null());
    EXPECT_EQ(step["torch"], false);
    if (step["name"].is_string()) {
      // The launches stand in the source in this order.
      at = source.find(step["name"].get<std::string>() + "_main(", at);
      ASSERT_NE(at, std::string::npos) << step.dump();
    }
    for (const Json& value : step["values"]) {
      EXPECT_TRUE(has(source, "    " + value["variable"].get<std::string>() + " = ")) << value.dump();
      EXPECT_EQ(value["sizes"].size(), value["strides"].size());
      EXPECT_EQ(value["offset"], 0);
      nodes.insert(value["node_name"]);
    }
  }
  EXPECT_TRUE(nodes.contains("div") && nodes.contains("relu") && nodes.contains("mm")) << steps.dump();
  // A view of a buffer is not what it was made for.
  EXPECT_FALSE(nodes.contains("permute"));
}

TEST_F(Check, EveryDecisionNamesItsBuffers) {
  answer = Json::parse(R"({"verdict": "passed", "outputs": []})");
  for (const char* place : {"start", "d3", "d6", "end"}) {
    good(std::string("goto ") + place);
    good("check --buffers");
    const std::string source = requests.back()["source"];
    std::size_t values = 0;
    for (const Json& step : requests.back()["buffers"]) {
      for (const Json& value : step["values"]) {
        EXPECT_TRUE(has(source, value["variable"].get<std::string>() + " = ")) << place << value.dump();
        ++values;
      }
    }
    EXPECT_GE(values, 3U) << place;
  }
}

TEST_F(Check, OneKernelKeepsItsBuffers) {
  answer = Json::parse(R"({"verdict": "passed", "outputs": [
    {"name": "relu", "kind": "output", "index": 0, "verdict": "passed", "modes": {}},
    {"name": "permute", "kind": "output", "index": 1, "verdict": "passed", "modes": {}}],
    "buffers": [{"buffer": "b1", "kernel": "k0", "verdict": "passed"}, {"buffer": "b2", "kernel": null, "call": "aten.mm.default",
    "verdict": "failed"}, {"buffer": "b3", "kernel": "k1", "verdict": "passed"}], "first_divergence": null})");
  const Output output = good("check k0 --buffers");
  ASSERT_EQ(output.json["buffers"].size(), 1U);
  EXPECT_EQ(output.json["buffers"][0]["buffer"], "b1");
  EXPECT_TRUE(output.passed);
}

TEST_F(Check, AnswersOfAnyFormAreNoEndOfTheProgram) {
  for (
      const char* text :
      {R"({"buffers": 3})", R"({"buffers": [3, null, {}], "first_divergence": 4})",
       R"({"buffers": [{"kernel": 3, "verdict": 4}], "first_divergence": {}, "outputs": 3, "verdict": "passed"})",
       R"({"outputs": [{"modes": {"debug": {"picture": 3, "histogram": []}}}]})"}) {
    answer = Json::parse(text);
    for (const char* line : {"check --buffers", "check --picture --buffers", "check k0 --buffers --full"})
      run(line);
  }
}

}  // namespace
}  // namespace pallascope::repl
