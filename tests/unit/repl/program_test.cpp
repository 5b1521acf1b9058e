// Every command on the small program of support.h.
#include <gtest/gtest.h>

#include "app/repl/completion.h"
#include "tests/unit/repl/support.h"

namespace pallascope::repl {
namespace {

using report::Json;

bool offers(const Completion& completion, const std::string& word) {
  return std::find(completion.candidates.begin(), completion.candidates.end(), word) !=
         completion.candidates.end();
}

class Program : public OpenProgram {
 protected:
  /// The id of the first decision of `kind` that is accepted or not.
  std::string decision(const std::string& kind, bool accepted) {
    for (const Json& entry : Json(good("ls decisions kind=" + kind).json["decisions"])) {
      if (entry["accepted"] == accepted) return entry["id"];
    }
    return "";
  }
};

TEST_F(Program, OpenShowsTheSummary) {
  const Output output = good("open " + folder.path().string() + "/small.json");
  EXPECT_TRUE(has(output.text, "small.json   6 nodes → ")) << output.text;
  EXPECT_TRUE(has(output.text, "1 library call, 0 torch calls   not checked")) << output.text;
  EXPECT_EQ(output.json["nodes"], 6);
  EXPECT_EQ(output.json["library_calls"], 1);
  EXPECT_EQ(output.json["graph"]["count"], 2);
  EXPECT_TRUE(output.json["checked"].is_null());
  EXPECT_EQ(output.json["library_operators"][0]["operator"], "aten.mm.default");
  EXPECT_EQ(good("summary").json["decision"], output.json["decision"]);
}

TEST_F(Program, AFailedOpenKeepsWhatIsOpen) {
  EXPECT_EQ(bad("open " + folder.path().string() + "/smal.json").kind, DiagnosticKind::not_found);
  EXPECT_TRUE(has(bad("open " + folder.path().string() + "/smal.json").remedy, "small.json"));
  EXPECT_EQ(bad("open " + folder.write("broken.json", "{\"format\": ")).kind, DiagnosticKind::malformed_json);
  EXPECT_EQ(bad("open " + folder.write("model.py", "")).kind, DiagnosticKind::invalid_argument);
  EXPECT_EQ(good("summary").json["name"], "small.json");
}

TEST_F(Program, GraphsAndUse) {
  EXPECT_EQ(good("graphs").json["graphs"][0]["current"], true);
  EXPECT_EQ(good("use 1").json["graph"]["name"], "second");
  EXPECT_EQ(good("use forward").json["graph"]["index"], 0);
  const Diagnostic diagnostic = bad("use 7");
  EXPECT_EQ(diagnostic.kind, DiagnosticKind::not_found);
  EXPECT_TRUE(has(diagnostic.remedy, "second"));
}

TEST_F(Program, ListsAndFilters) {
  EXPECT_EQ(good("ls nodes").json["total"], 6);
  const Output views = good("ls nodes kind=view");
  EXPECT_EQ(views.json["shown"], 1);
  EXPECT_TRUE(has(views.text, "permute")) << views.text;
  EXPECT_TRUE(has(good("ls nodes model.py:9").text, "relu"));
  EXPECT_EQ(good("ls nodes nothing-like-this").json["shown"], 0);
  EXPECT_GE(good("ls buffers kind=input").json["shown"], 2);
  EXPECT_GE(good("ls kernels").json["shown"], 1);
  const Output decisions = good("ls decisions kind=lower");
  EXPECT_EQ(decisions.json["shown"], 6);
  for (const Json& entry : Json(good("ls decisions reason=left_to_library").json["decisions"])) {
    EXPECT_EQ(entry["reason"], "left_to_library");
  }
  EXPECT_EQ(bad("ls nodes kind=nonsense").kind, DiagnosticKind::invalid_argument);
  EXPECT_TRUE(has(bad("ls kernal").remedy, "ls kernels"));
}

TEST_F(Program, ThingsAreNamedInManyWays) {
  for (const char* word : {"n1", "sum_1", "model.py:6", "me/model.py:6"}) {
    const Output output = good(std::string("show ") + word);
    EXPECT_EQ(output.json["nodes"][0]["name"], "sum_1") << word;
    EXPECT_TRUE(has(output.text, "aten.sum.dim_IntList(sin, [1]")) << output.text;
  }
  EXPECT_EQ(good("show x").json["buffer"]["kind"], "input");
  EXPECT_EQ(good("show b0").json["buffer"]["id"], "b0");
  EXPECT_EQ(good("show k0").json["kernel"]["id"], "k0");
  EXPECT_EQ(good("show d0").json["decision"]["id"], "d0");
  const std::string kernel = good("show k0").json["kernel"]["name"];
  EXPECT_EQ(good("show " + kernel).json["kernel"]["id"], "k0");
}

TEST_F(Program, UnknownNamesSuggest) {
  EXPECT_TRUE(has(bad("show sum_l").remedy, "sum_1"));
  EXPECT_TRUE(has(bad("show n99").remedy, "n0 to n5"));
  EXPECT_TRUE(has(bad("show d9999").remedy, "d0 to d"));
  EXPECT_TRUE(has(bad("show model.py:99").remedy, "model.py"));
  EXPECT_EQ(bad("show zzzzzzzzz").kind, DiagnosticKind::not_found);
}

TEST_F(Program, DependenciesAndUsers) {
  const Json deps = good("deps div").json;
  ASSERT_EQ(deps["nodes"].size(), 2U);
  EXPECT_EQ(deps["nodes"][0]["name"], "sin");
  EXPECT_EQ(good("deps sin").json["values"][0], "x");
  const Json users = good("users div").json;
  EXPECT_EQ(users["nodes"].size(), 2U);
  EXPECT_EQ(good("users relu").json["values"][0], "output 0");
  EXPECT_TRUE(good("deps k0").json["buffers"].is_array());
  EXPECT_TRUE(good("users x").json["values"].is_array());
}

TEST_F(Program, CodeHasALetterBesideEachAccess) {
  const Output pallas = good("code k0");
  EXPECT_EQ(pallas.json["from"], "pallas");
  bool letter = false;
  for (const Json& line : pallas.json["lines"]) letter = letter || line["letter"] != " ";
  EXPECT_TRUE(letter) << pallas.text;
  EXPECT_TRUE(has(pallas.text, " │ ")) << pallas.text;
  EXPECT_TRUE(has(good("code").json["source"], "def call("));
  EXPECT_TRUE(has(good("code k0 --from loops").text, "load")) << good("code k0 --from loops").text;
  EXPECT_TRUE(has(good("code --from fx").text, "aten.mm.default"));
  EXPECT_TRUE(has(good("code div").json["kernel"], "k"));
}

TEST_F(Program, WhyExplainsDecisionsNodesKernelsAndBuffers) {
  const std::string fused = decision("fuse", true), refused = decision("fuse", false);
  ASSERT_NE(fused, "");
  ASSERT_NE(refused, "");
  EXPECT_TRUE(has(good("why " + fused).text, "accepted: fused")) << good("why " + fused).text;
  const Output output = good("why " + refused);
  EXPECT_TRUE(has(output.text, "refused: ")) << output.text;
  EXPECT_EQ(output.json["decisions"][0]["accepted"], false);
  const Output node = good("why div");
  EXPECT_TRUE(has(node.text, "lower div   accepted: lowered to kernel")) << node.text;
  EXPECT_GE(node.json["decisions"].size(), 2U);
  EXPECT_TRUE(has(good("why mm").text, "left to library"));
  EXPECT_TRUE(has(good("why k0").text, "k0 "));
  EXPECT_TRUE(good("why x").json["decisions"].is_array());
}

TEST_F(Program, WhyNot) {
  const Output apart = good("why-not div relu");
  EXPECT_EQ(apart.json["together"], false);
  EXPECT_FALSE(apart.text.empty());
  const Output library = good("why-not mm relu"), reversed = good("why-not relu mm");
  EXPECT_EQ(library.json["why"], "library_boundary") << library.text;
  EXPECT_EQ(reversed.json["decision"]["id"], library.json["decision"]["id"]);
  EXPECT_EQ(good("why-not sin sum_1").json["together"], true);
  EXPECT_EQ(bad("why-not x div").kind, DiagnosticKind::invalid_argument);
}

TEST_F(Program, ReasonsAreCounted) {
  std::int64_t total = 0;
  for (const Json& entry : Json(good("reasons").json["reasons"])) total += entry["count"].get<std::int64_t>();
  EXPECT_EQ(total, good("summary").json["decisions"]["total"].get<std::int64_t>());
}

TEST_F(Program, IndexShowsEveryAccess) {
  const Output output = good("index k0");
  ASSERT_FALSE(output.json["accesses"].empty());
  for (const Json& access : output.json["accesses"]) {
    EXPECT_EQ(access["in_bounds"], true);
    EXPECT_FALSE(access["class"].get<std::string>().empty());
  }
  EXPECT_TRUE(has(output.text, "strides")) << output.text;
  EXPECT_TRUE(has(good("index mm").text, "library call"));
  EXPECT_FALSE(good("index div").json["accesses"].empty());
  EXPECT_GE(good("index").json["accesses"].size(), output.json["accesses"].size());
}

TEST_F(Program, SteppingReversesExactly) {
  const Json before = good("summary").json;
  const std::size_t total = before["decisions"]["total"];
  EXPECT_EQ(good("goto start").json["decision"], 0);
  EXPECT_EQ(good("goto d2").json["decision"], 3);
  EXPECT_EQ(good("goto 2").json["moved"], 0);
  EXPECT_EQ(good("step").json["decision"], 4);
  EXPECT_EQ(good("stepback 2").json["decision"], 2);
  EXPECT_EQ(good("stepback 100").json["decision"], 0);
  EXPECT_EQ(good("step 100000").json["decision"], total);
  EXPECT_EQ(good("step").json["moved"], 0);
  EXPECT_EQ(good("summary").json["kernels"], before["kernels"]);
  EXPECT_EQ(bad("step 0").kind, DiagnosticKind::invalid_argument);
  EXPECT_EQ(bad("goto d99999").kind, DiagnosticKind::not_found);
  EXPECT_EQ(bad("goto nowhere").kind, DiagnosticKind::invalid_argument);
}

TEST_F(Program, AtTheStartEveryOperatorIsATorchCall) {
  good("goto start");
  const Json summary = good("summary").json;
  EXPECT_EQ(summary["kernels"], 0);
  EXPECT_EQ(summary["decision"], 0);
  good("ls nodes");
  good("ls kernels");
  good("code");
  good("index");
}

TEST_F(Program, DiffOfTheSource) {
  const std::string fused = decision("fuse", true);
  const Output output = good("diff " + fused);
  EXPECT_TRUE(has(output.text, "@@ -")) << output.text;
  EXPECT_GT(output.json["added"], 0);
  EXPECT_EQ(good("diff end end").json["diff"], "");
  EXPECT_FALSE(good("diff start end").json["diff"].get<std::string>().empty());
}

TEST_F(Program, CheckAsksTheHostAndJudges) {
  answer = Json::parse(
      R"({"verdict": "passed", "seconds": 0.8, "platform": "cpu", "jax": "0.10.2", "interpret": true,
    "outputs": [
      {"name": "relu", "kind": "output", "index": 0, "dtype": "f32", "sizes": [4, 4], "verdict": "passed", "worst_mode": "debug",
       "modes": {"debug": {"verdict": "passed", "max_abs": 4.8e-07, "max_rel": 3.1e-06, "as_close_as_eager": true}}},
      {"name": "permute", "kind": "output", "index": 1, "dtype": "f32", "sizes": [8, 4], "verdict": "passed", "worst_mode": "debug",
       "modes": {"debug": {"verdict": "passed", "max_abs": 0.0, "max_rel": 0.0}}}]})");
  const Output output = good("check");
  EXPECT_TRUE(output.passed);
  EXPECT_TRUE(has(output.text, "f32[4,4]")) << output.text;
  EXPECT_TRUE(has(output.text, "max abs 4.8e-07")) << output.text;
  EXPECT_TRUE(has(output.text, "as close to f64 as eager")) << output.text;
  EXPECT_TRUE(has(output.text, "on local (cpu, jax 0.10.2, interpret) in 0.8 s")) << output.text;
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0]["request"], "check");
  EXPECT_EQ(requests[0]["graph"], 0);
  EXPECT_EQ(requests[0]["inputs"]["kind"], "random");
  EXPECT_EQ(requests[0]["modes"], (Json{"debug", "steady"}));
  EXPECT_TRUE(requests[0]["weights"].is_null());
  EXPECT_TRUE(has(requests[0]["source"], "def call("));
  EXPECT_TRUE(has(good("summary").text, "passed at decision"));
}

TEST_F(Program, AFailedCheckWorksAndDoesNotPass) {
  answer = Json::parse(
      R"({"verdict": "failed", "outputs": [{"name": "relu", "kind": "output", "index": 0, "dtype": "f32",
    "sizes": [4, 4], "verdict": "failed", "worst_mode": "steady", "modes": {"steady": {"verdict": "failed", "max_abs": "nan",
    "max_rel": 1.0, "reasons": ["3 of 16 elements differ"], "first": {"index": [0, 1], "ours": "nan", "eager": 1.5}}}}]})");
  const Execution execution = run("check");
  ASSERT_TRUE(execution.result.ok());
  EXPECT_FALSE(execution.good());
  EXPECT_TRUE(has(execution.result->text, "✗")) << execution.result->text;
  EXPECT_TRUE(has(execution.result->text, "3 of 16 elements differ")) << execution.result->text;
  EXPECT_TRUE(has(execution.result->text, "[0,1] ours nan eager 1.5")) << execution.result->text;
  EXPECT_EQ(envelope(execution)["ok"], true);
  EXPECT_EQ(envelope(execution)["result"]["verdict"], "failed");
}

TEST_F(Program, CheckOfOneKernelShowsWhatItWrites) {
  answer = Json::parse(R"({"verdict": "failed", "outputs": [
    {"name": "relu", "kind": "output", "index": 0, "verdict": "failed", "modes": {}},
    {"name": "permute", "kind": "output", "index": 1, "verdict": "passed", "modes": {}}]})");
  const Output output = good("check div");
  ASSERT_EQ(output.json["outputs"].size(), 1U);
  EXPECT_EQ(output.json["outputs"][0]["name"], "permute");
  EXPECT_EQ(output.json["verdict"], "passed");
  EXPECT_TRUE(output.passed);
}

TEST_F(Program, AnswersThatLackFieldsAreNoEndOfTheProgram) {
  for (const char* text :
       {"{}", "[]", "3", R"({"outputs": 3})", R"({"outputs": [{}, 4, null]})",
        R"({"outputs": [{"name": 3, "modes": {"debug": null}, "verdict": null, "sizes": "x"}]})"}) {
    answer = Json::parse(text);
    for (const char* line : {"check", "check --full", "run", "check div", "py 1", "trace nothing.py:f"})
      run(line);
  }
}

TEST_F(Program, RunShowsTheOutputs) {
  answer = Json::parse(
      R"({"outputs": [{"name": "relu", "dtype": "f32", "sizes": [4, 4], "min": 0.0, "max": 2.5, "mean": 0.5,
    "nan": 0, "inf": 0, "first": [0.0, 1.25]}], "seconds": 0.1, "platform": "cpu"})");
  const Output output = good("run");
  EXPECT_EQ(requests.back()["request"], "run");
  EXPECT_TRUE(has(output.text, "0 to 2.5")) << output.text;
  EXPECT_TRUE(has(output.text, "0 1.25")) << output.text;
}

TEST_F(Program, PythonGoesToTheHost) {
  answer = Json::parse(R"({"stdout": "hello\n", "repr": "3"})");
  EXPECT_EQ(good("py 1 + 2").text, "hello\n3\n");
  EXPECT_EQ(requests.back()["request"], "python");
  EXPECT_EQ(requests.back()["code"], "1 + 2");
  EXPECT_EQ(bad("py").kind, DiagnosticKind::usage);
}

TEST_F(Program, TraceReadsWhatTheHostCaptured) {
  answer = {{"program", small_program()}, {"origin", "trace-1"}};
  const std::string file = folder.write("model.py", "def f(x): return x\n");
  EXPECT_EQ(good("trace " + file + ":f f32[4,8]").json["nodes"], 6);
  EXPECT_EQ(requests.back()["file"], file);
  EXPECT_EQ(requests.back()["function"], "f");
  EXPECT_EQ(requests.back()["specs"], Json::array({"f32[4,8]"}));
  answer = Json::parse(R"({"verdict": "passed", "outputs": []})");
  good("check");
  EXPECT_EQ(requests.back()["weights"]["token"], "trace-1");
  EXPECT_EQ(bad("trace " + file).kind, DiagnosticKind::usage);
  EXPECT_EQ(bad("trace " + folder.path().string() + "/modle.py:f").kind, DiagnosticKind::not_found);
}

TEST_F(Program, ABundleBringsItsInputs) {
  std::filesystem::create_directory(folder.path() / "bundle");
  folder.write("bundle/program.json", small_program());
  folder.write(
      "bundle/bundle.json",
      R"({"format": "pallascope.bundle", "version": 1, "torch": "", "graphs": [], "tolerance": {}})");
  good("open " + folder.path().string() + "/bundle");
  answer = Json::parse(R"({"verdict": "passed", "outputs": []})");
  good("check");
  EXPECT_EQ(requests.back()["inputs"]["kind"], "bundle");
  EXPECT_EQ(requests.back()["inputs"]["path"], folder.path().string() + "/bundle");
}

TEST_F(Program, TabOffersNamesIdsOptionsAndFiles) {
  EXPECT_EQ(complete(session, "sum").candidates, std::vector<std::string>{"summary"});
  EXPECT_TRUE(offers(complete(session, "show s"), "sum_1"));
  EXPECT_TRUE(offers(complete(session, "show n"), "n5"));
  EXPECT_TRUE(offers(complete(session, "show model.py:"), "model.py:6"));
  EXPECT_TRUE(offers(complete(session, "why-not sin di"), "div"));
  EXPECT_TRUE(complete(session, "why-not sin div ").candidates.empty());
  EXPECT_TRUE(offers(complete(session, "code --f"), "--from"));
  EXPECT_TRUE(offers(complete(session, "code --from "), "loops"));
  EXPECT_TRUE(offers(complete(session, "goto "), "end"));
  EXPECT_TRUE(offers(complete(session, "use s"), "second"));
  EXPECT_TRUE(offers(complete(session, "ls "), "decisions"));
  EXPECT_TRUE(offers(complete(session, "ls decisions k"), "kind=fuse"));
  EXPECT_TRUE(offers(complete(session, "help why"), "why-not"));
  EXPECT_TRUE(complete(session, "py inp").candidates.empty());
  folder.write("a file.pt2", "");
  const Completion file = complete(session, "open " + folder.path().string() + "/a");
  ASSERT_EQ(file.candidates.size(), 1U);
  EXPECT_TRUE(file.candidates[0].ends_with("a\\ file.pt2"));
  EXPECT_EQ(file.start, 5U);
  EXPECT_TRUE(offers(complete(session, "summary; show d"), "div"));
}

TEST(Completion, CommonBeginning) {
  EXPECT_EQ(common_beginning({"step", "stepback"}), "step");
  EXPECT_EQ(common_beginning({"a", "b"}), "");
  EXPECT_EQ(common_beginning({}), "");
  EXPECT_EQ(common_beginning({"é", "è"}), "");
}

}  // namespace
}  // namespace pallascope::repl
