// The generated module: kernels, the source map, sharing, names, boundary checks.
#include "core/codegen/module.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <regex>
#include <set>

#include "core/codegen/kernel.h"
#include "core/codegen/reference.h"
#include "tests/unit/support/lowered.h"

namespace pallascope::codegen {
namespace {

using schedule::KernelId;
using testing::GraphText;
using testing::Scheduled;

/// A graph, its schedule, its state after all decisions, and the module for it.
struct Generated : Scheduled {
  schedule::State state;
  Module module;
  explicit Generated(const GraphText& text, const schedule::Options& options = {})
      : Scheduled(text, options), state(last()), module(generate(graph, graph, *program, state, {})) {}

  [[nodiscard]] std::string line(int number) const { return module.text(number, number); }
  /// The body of a kernel function, without the head.
  [[nodiscard]] std::string body(std::size_t kernel) const {
    const KernelSource& k = module.kernels.at(kernel);
    return module.text(k.kernel_first + 1, k.kernel_last);
  }
  [[nodiscard]] bool has(const std::string& text) const {
    return module.source.find(text) != std::string::npos;
  }
};

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

schedule::Options unfused() {
  schedule::Options options;
  options.fusion = false;
  return options;
}

GraphText sin_add() {
  return GraphText()
      .in("x", "f32[4]")
      .in("y", "f32[4]")
      .op("sin", "aten.sin.default", "%x", "f32[4]")
      .op("add", "aten.add.Tensor", "%sin, %y", "f32[4]")
      .out("add");
}

/// Loads, stores and computations of every sort: slices, a gather, iotas, a concatenation, products, a torch call.
GraphText mixed() {
  return GraphText()
      .in("x", "f32[8,16]")
      .in("w", "f32[16,16]@[1,16]")
      .in("i", "i64[8]")
      .op("softmax", "aten.softmax.int", "%x, -1", "f32[8,16]")
      .op("mm", "aten.mm.default", "%softmax, %w", "f32[8,16]")
      .op("tril", "aten.tril.default", "%mm", "f32[8,16]")
      .op("pick", "aten.index_select.default", "%tril, 0, %i", "f32[8,16]")
      .op("half", "aten.slice.Tensor", "%pick, 1, 0, 16, 2", "f32[8,8]@[16,2]")
      .op("cat", "aten.cat.default", "[%half, %tril], 1", "f32[8,24]")
      .op("inv", "aten.erfinv_unknown.default", "%cat", "f32[8,24]")
      .op("all", "aten.sum.default", "%inv", "f32[]")
      .op("neg", "aten.neg.default", "%all", "f32[]")
      .out("neg")
      .out("half");
}

TEST(Kernel, TheFirstExampleReadsAsItDid) {
  const Generated g(sin_add());
  ASSERT_EQ(g.module.kernels.size(), 1U);
  EXPECT_EQ(g.body(0),
            "    tmp0 = in_ptr0[...]\n"
            "    tmp1 = jnp.sin(tmp0)\n"
            "    tmp2 = in_ptr1[...]\n"
            "    tmp3 = tmp1 + tmp2\n"
            "    out_ptr0[...] = tmp3\n");
  EXPECT_EQ(g.line(g.module.kernels[0].kernel_first),
            "def " + g.module.kernels[0].name + "_kernel(in_ptr0, in_ptr1, out_ptr0):\n");
}

TEST(Kernel, ReductionsKeepTheirDimensions) {
  const Generated g(
      GraphText().in("x", "f32[8,16]").op("s", "aten.sum.dim_IntList", "%x, [1]", "f32[8]").out("s"));
  EXPECT_EQ(g.body(0),
            "    tmp0 = in_ptr0[...]\n"
            "    tmp1 = jnp.sum(tmp0, axis=(1,), keepdims=True)\n"
            "    out_ptr0[...] = tmp1\n");
  EXPECT_TRUE(g.has("jax.ShapeDtypeStruct((8, 1), jnp.float32)")) << g.module.source;
  EXPECT_TRUE(g.has("return (jnp.reshape(results[0], (8,)),)"));
}

TEST(Kernel, ScansKeepTheirShape) {
  const Generated g(GraphText()
                        .in("x", "f32[8,16]")
                        .op("scan", "aten.cumsum.default", "%x, 0", "f32[8,16]")
                        .op("mul", "aten.mul.Tensor", "%scan, 2.0", "f32[8,16]")
                        .out("mul"));
  EXPECT_EQ(g.body(0),
            "    tmp0 = in_ptr0[...]\n"
            "    tmp1 = tmp0.astype(jnp.float64)\n"
            "    tmp2 = lax.cumsum(tmp1, axis=0)\n"
            "    tmp3 = tmp2.astype(jnp.float32)\n"
            "    tmp4 = tmp3 * 2.0\n"
            "    out_ptr0[...] = tmp4\n");
}

TEST(Kernel, AScatterOfRowsChangesTheWholeTarget) {
  const Generated g(GraphText()
                        .in("x", "f32[8,4]")
                        .in("i", "i64[3]")
                        .in("y", "f32[3,4]")
                        .op("add", "aten.index_add.default", "%x, 0, %i, %y", "f32[8,4]")
                        .op("sin", "aten.sin.default", "%add", "f32[8,4]")
                        .out("sin"));
  ASSERT_EQ(g.module.kernels.size(), 1U);
  const std::string body = g.body(0);
  const std::size_t kept = body.find("out_ptr0[...] = tmp0\n"), add = body.find("out_ptr0[...] = out_ptr0[...].at["),
                    read = body.find("= out_ptr0[...]\n"), sine = body.find("jnp.sin(");
  EXPECT_NE(body.find(".add(", add), std::string::npos) << body;
  EXPECT_TRUE(kept < add && add < read && read < sine && sine != std::string::npos) << body;
  EXPECT_NE(body.find("check_ptr0[...]"), std::string::npos);
  ASSERT_EQ(std::count_if(g.module.accesses.begin(), g.module.accesses.end(), [](const auto& a) { return a.store; }), 3);
}

TEST(Kernel, PointsAreStoredThroughTheFlatTarget) {
  const Generated g(GraphText()
                        .in("x", "bool[8,4]")
                        .in("i", "i64[2,4]")
                        .in("y", "bool[2,4]")
                        .op("add", "aten.scatter_add.default", "%x, 0, %i, %y", "bool[8,4]")
                        .out("add"));
  const std::string body = g.body(0);
  EXPECT_NE(body.find("jnp.reshape(out_ptr0[...], (32,)).at["), std::string::npos) << body;
  EXPECT_NE(body.find("].max("), std::string::npos) << "booleans are or-ed";
}

TEST(Kernel, AReadOfTheSameMemoryIsLoadedOnce) {
  const Generated g(GraphText()
                        .in("x", "f32[4]")
                        .op("sin", "aten.sin.default", "%x", "f32[4]")
                        .op("cos", "aten.cos.default", "%x", "f32[4]")
                        .out("sin")
                        .out("cos"));
  EXPECT_EQ(count(g.body(0), "in_ptr0[...]"), 1) << g.body(0);
  ASSERT_EQ(g.module.accesses.size(), 4U) << "and still each load is listed";
  EXPECT_EQ(g.module.accesses[2].line, 0);
  EXPECT_TRUE(g.module.accesses[2].on_value);
}

TEST(Kernel, ValuesMadeInTheKernelReachNoMemory) {
  const Generated g(testing::softmax_rows(8, 16));
  ASSERT_EQ(g.module.kernels.size(), 1U);
  EXPECT_EQ(count(g.body(0), "in_ptr"), 1);
  EXPECT_EQ(count(g.body(0), "out_ptr"), 1);
}

TEST(Kernel, IndexChecksAreTheLastOutputs) {
  const Generated g(mixed());
  bool seen = false;
  for (std::size_t k = 0; k < g.state.kernels.size(); ++k) {
    const KernelText text = kernel_text(g.graph, *g.program, g.state, KernelId(k));
    for (std::size_t p = 0; p < text.outputs.size(); ++p)
      EXPECT_EQ(text.outputs[p].buffer.valid(), p + text.checks.size() < text.outputs.size());
    for (const auto& check : text.checks) {
      seen = true;
      EXPECT_NE(check.message.find("pick (aten.index_select.default)"), std::string::npos) << check.message;
      EXPECT_NE(check.message.find("within 0 and 7"), std::string::npos) << check.message;
      EXPECT_NE(check.message.find("model.py:4"), std::string::npos) << check.message;
    }
  }
  EXPECT_TRUE(seen);
}

// ------------------------------------------------------------------------------------------- source map

void expect_map(const Generated& g) {
  ASSERT_EQ(static_cast<int>(g.module.lines.size()), count(g.module.source, "\n"));
  for (std::size_t k = 0; k < g.module.kernels.size(); ++k) {
    const KernelSource& source = g.module.kernels[k];
    EXPECT_LE(source.first_line, source.kernel_first);
    EXPECT_LT(source.kernel_first, source.kernel_last);
    EXPECT_LT(source.kernel_last, source.last_line);
    EXPECT_TRUE(g.line(source.kernel_first).starts_with("def " + source.name + "_kernel("));
    for (int number = source.first_line; number <= source.last_line; ++number) {
      if (g.line(number) == "\n") continue;
      EXPECT_TRUE(g.module.lines[static_cast<std::size_t>(number) - 1].kernel.valid()) << g.line(number);
    }
    for (int number = source.kernel_first + 1; number <= source.kernel_last; ++number) {
      const LineOrigin& origin = g.module.lines[static_cast<std::size_t>(number) - 1];
      ASSERT_TRUE(origin.kernel.valid()) << g.line(number);
      ASSERT_TRUE(origin.nest.valid()) << g.line(number);
      const std::vector<loop::NestId>& nests = g.state.kernels[origin.kernel].nests;
      EXPECT_NE(std::find(nests.begin(), nests.end(), origin.nest), nests.end()) << g.line(number);
      if (g.line(number).starts_with("    iota")) continue;  // made for an axis, not for one statement
      const loop::Nest& nest = g.program->nests[origin.nest];
      ASSERT_GE(origin.statement, 0) << g.line(number);
      ASSERT_LT(origin.statement, static_cast<int>(nest.body.size())) << g.line(number);
      EXPECT_EQ(origin.node, nest.body[static_cast<std::size_t>(origin.statement)].origin);
      EXPECT_TRUE(origin.node.valid());
    }
  }
  for (std::size_t a = 0; a < g.module.accesses.size(); ++a) {
    const KernelAccess& access = g.module.accesses[a];
    const KernelSource& source = g.module.kernels.at(access.kernel.index());
    const loop::Statement& statement =
        g.program->nests[access.nest].body.at(static_cast<std::size_t>(access.statement));
    EXPECT_EQ(statement.kind, access.store ? loop::StatementKind::store : loop::StatementKind::load);
    EXPECT_EQ(statement.buffer, access.buffer);
    EXPECT_EQ(statement.index, access.index);
    EXPECT_EQ(access.axes, g.program->nests[access.nest].axes);
    if (access.line == 0) {
      EXPECT_TRUE(access.on_value) << access.source;
      continue;
    }
    EXPECT_GT(access.line, source.kernel_first);
    EXPECT_LE(access.line, source.kernel_last);
    EXPECT_NE(g.line(access.line).find(access.source), std::string::npos)
        << access.source << " is not in " << g.line(access.line);
    EXPECT_NE(access.source.find(access.parameter), std::string::npos) << access.source;
    const int back = g.module.lines[static_cast<std::size_t>(access.line) - 1].access;
    ASSERT_GE(back, 0);
    EXPECT_EQ(g.module.accesses.at(static_cast<std::size_t>(back)).source, access.source);
    EXPECT_EQ(g.module.accesses.at(static_cast<std::size_t>(back)).line, access.line);
  }
}

TEST(SourceMap, EveryLineOfAKernelKnowsWhatItCameFrom) {
  expect_map(Generated(sin_add()));
  expect_map(Generated(mixed()));
  expect_map(Generated(mixed(), unfused()));
  expect_map(Generated(testing::softmax_rows(8, 16)));
  expect_map(Generated(testing::softmax_rows(8, 16), unfused()));
}

TEST(SourceMap, EveryLoadAndStoreOfAKernelIsListed) {
  const Generated g(mixed());
  std::set<std::pair<loop::NestId, int>> listed;
  for (const KernelAccess& a : g.module.accesses) listed.insert({a.nest, a.statement});
  for (const schedule::Kernel& kernel : g.state.kernels)
    for (loop::NestId id : kernel.nests) {
      const loop::Nest& nest = g.program->nests[id];
      for (std::size_t s = 0; s < nest.body.size(); ++s) {
        const bool load = nest.body[s].kind == loop::StatementKind::load;
        const bool kept = std::find(kernel.internal.begin(), kernel.internal.end(), nest.body[s].buffer) ==
                          kernel.internal.end();
        const bool store = nest.body[s].kind == loop::StatementKind::store && kept;
        if (load || store) {
          EXPECT_TRUE(listed.contains({id, static_cast<int>(s)})) << nest.name << " " << s;
        }
      }
    }
}

TEST(SourceMap, LinesOfTheReferenceAndOfCallsKnowTheirNode) {
  const Generated g(mixed());
  int reference = 0, library = 0;
  for (std::size_t k = 0; k < g.module.lines.size(); ++k) {
    const std::string text = g.line(static_cast<int>(k) + 1);
    const trace::NodeId node = g.module.lines[k].node;
    if (text.starts_with("    mm = torch.ops.")) {
      EXPECT_EQ(g.names({node}), "mm");
      ++reference;
    }
    if (text.starts_with("def library_mm")) {
      EXPECT_EQ(g.names({node}), "mm");
      ++library;
    }
  }
  EXPECT_EQ(reference, 1);
  EXPECT_EQ(library, 2) << "_call and _main";
}

TEST(SourceMap, TextOfARangeOfLines) {
  Module m;
  m.source = "a\nb\nc\n";
  EXPECT_EQ(m.text(1, 1), "a\n");
  EXPECT_EQ(m.text(2, 3), "b\nc\n");
  EXPECT_EQ(m.text(3, 9), "c\n");
  EXPECT_EQ(m.text(4, 9), "");
}

// ---------------------------------------------------------------------------------------------- sharing

TEST(Sharing, EqualKernelsAreDefinedOnce) {
  const Generated g(GraphText()
                        .in("x", "f32[4,4]")
                        .op("a", "aten.sin.default", "%x", "f32[4,4]")
                        .op("m", "aten.mm.default", "%a, %x", "f32[4,4]")
                        .op("b", "aten.sin.default", "%m", "f32[4,4]")
                        .op("n", "aten.mm.default", "%b, %x", "f32[4,4]")
                        .out("n"));
  ASSERT_EQ(g.module.kernels.size(), 2U);
  EXPECT_EQ(g.module.kernels[0].name, g.module.kernels[1].name);
  EXPECT_EQ(g.module.kernels[0].kernel_first, g.module.kernels[1].kernel_first);
  EXPECT_EQ(count(g.module.source, "_kernel(in_ptr0, out_ptr0):"), 1);
  EXPECT_EQ(count(g.module.source, "def library_mm"), 2) << "one product, its _call and _main";
  // Each has accesses of its own, with its own buffers.
  std::set<std::pair<KernelId, std::string>> touched;
  for (const KernelAccess& a : g.module.accesses)
    touched.insert({a.kernel, g.program->buffers[a.buffer].name});
  EXPECT_EQ(touched.size(), 4U);
  expect_map(g);
}

TEST(Sharing, KernelsThatAssumeOtherLayoutsAreNotEqual) {
  const Generated g(GraphText()
                        .in("x", "f32[4,4]")
                        .in("y", "f32[4,4]@[1,4]")
                        .op("a", "aten.sin.default", "%x", "f32[4,4]")
                        .op("b", "aten.sin.default", "%y", "f32[4,4]@[1,4]")
                        .out("a")
                        .out("b"));
  ASSERT_EQ(g.module.kernels.size(), 2U);
  EXPECT_EQ(g.body(0), g.body(1));
  EXPECT_NE(g.module.kernels[0].name, g.module.kernels[1].name);
}

TEST(Sharing, TheSameProgramGivesTheSameText) {
  EXPECT_EQ(Generated(mixed()).module.source, Generated(mixed()).module.source);
}

TEST(Names, AreIdentifiersNamedByTheirOperators) {
  const Generated g(mixed());
  const std::regex form("pallas_fused_[a-z0-9_]+_[0-9a-f]{8}");
  for (const KernelSource& k : g.module.kernels) {
    EXPECT_TRUE(std::regex_match(k.name, form)) << k.name;
    EXPECT_LE(k.name.size(), 60U + 22U);
  }
  EXPECT_TRUE(Generated(sin_add()).module.kernels[0].name.starts_with("pallas_fused_add_sin_"));
}

// ---------------------------------------------------------------------------------------- the call boundary

TEST(Boundary, StridesThatTheIndexAnalysisAssumedAreAsserted) {
  const Generated g(GraphText()
                        .in("x", "f32[4,4]@[1,4]")
                        .in("y", "bf16[2,1,3]@[6,9,2]+5")
                        .op("a", "aten.sin.default", "%x", "f32[4,4]@[1,4]")
                        .op("b", "aten.sin.default", "%y", "bf16[2,1,3]")
                        .out("a")
                        .out("b"));
  EXPECT_TRUE(g.has("    _expect(\"x\", x, torch.float32, (4, 4), (1, 4))\n"));
  EXPECT_TRUE(g.has("    _expect(\"y\", y, torch.bfloat16, (2, 1, 3), (6, 9, 2))\n"));
  const std::string first = "in_ptr0 of " + g.module.kernels[0].name;
  EXPECT_TRUE(g.has("    _expect(\"" + first + "\", in_ptr0, torch.float32, (4, 4), (1, 4))\n"));
  // The transposed square goes to JAX as it lies in memory.
  EXPECT_TRUE(g.has("_to_jax(x, (4, 4), (4, 1))")) << g.module.source;
  // The gaps of y are copied out: 6 elements, 2 apart.
  EXPECT_TRUE(g.has("_to_jax(y, (2, 1, 3), (6, 3, 2))")) << g.module.source;
}

TEST(Boundary, AGraphOfNothingLaunchesNoKernel) {
  const Generated g(GraphText()
                        .in("x", "f32[0,4]")
                        .op("sin", "aten.sin.default", "%x", "f32[0,4]")
                        .op("exp", "aten.softmax.int", "%sin, 1", "f32[0,4]")
                        .out("exp"));
  EXPECT_EQ(g.module.kernels.size(), 0U);
  EXPECT_FALSE(g.has("pallas_call("));
  EXPECT_FALSE(g.has("_segment"));
  EXPECT_TRUE(g.has("torch.empty((0, 4), dtype=torch.float32)"));
}

TEST(Boundary, InputsAndOutputsAreListed) {
  const Generated g(mixed());
  EXPECT_TRUE(
      g.has("    {\"name\": \"w\", \"kind\": \"user_input\", \"dtype\": \"float32\", \"sizes\": (16, 16), "
            "\"strides\": (1, 16), "
            "\"offset\": 0},\n"))
      << g.module.source;
  EXPECT_TRUE(
      g.has("\"dtype\": \"int64\", \"sizes\": (8,), \"strides\": (1,), \"offset\": 0, \"range\": (0, 7)},\n"))
      << g.module.source;
  EXPECT_TRUE(g.has("OUTPUTS = [\n    {\"dtype\": \"float32\", \"sizes\": (), \"strides\": ()},\n"));
}

TEST(Boundary, TorchCallsTakeViewsOfTheirBuffers) {
  const Generated g(GraphText()
                        .in("x", "f32[4,8]")
                        .op("sin", "aten.sin.default", "%x", "f32[4,8]")
                        .op("t", "aten.t.default", "%sin", "f32[8,4]@[1,8]")
                        .op("pinv", "aten.linalg_pinv.default", "%t, 0.5", "f32[4,8]")
                        .out("pinv"));
  EXPECT_TRUE(g.has("= torch.ops.aten.linalg_pinv.default(_view(t_buf1, (8, 4), (1, 8), 0), 0.5)\n"))
      << g.module.source;
  EXPECT_TRUE(g.has("def _segment0("));
  EXPECT_FALSE(g.has("def _segment1(")) << "nothing after the torch call runs in JAX";
}

TEST(Boundary, WithoutTheReferenceTheModuleHasNoSelfCheck) {
  const Scheduled s(sin_add());
  Options options;
  options.reference = false;
  const Module m = generate(s.graph, s.graph, *s.program, s.last(), options);
  EXPECT_EQ(m.source.find("def reference("), std::string::npos);
  EXPECT_EQ(m.source.find("__main__"), std::string::npos);
  EXPECT_NE(m.source.find("def call("), std::string::npos);
}

// ------------------------------------------------------------------------------------------ small texts

TEST(Literals, AreWrittenForTheirDtype) {
  EXPECT_EQ(literal_text(true, DType::b8), "True");
  EXPECT_EQ(literal_text(std::int64_t{0}, DType::b8), "False");
  EXPECT_EQ(literal_text(0.5, DType::b8), "True");
  EXPECT_EQ(literal_text(std::int64_t{-7}, DType::i64), "-7");
  EXPECT_EQ(literal_text(true, DType::i32), "1");
  EXPECT_EQ(literal_text(2.9, DType::i32), "2");
  EXPECT_EQ(literal_text(std::int64_t{9007199254740993}, DType::i64), "9007199254740993")
      << "no way through a double";
  EXPECT_EQ(literal_text(std::int64_t{2}, DType::f32), "2.0");
  EXPECT_EQ(literal_text(0.1, DType::f64), "0.1");
  EXPECT_EQ(literal_text(1e300, DType::f64), "1e+300");
  EXPECT_EQ(literal_text(1e22, DType::f64).find_first_not_of("0123456789.e+"), std::string::npos);
  EXPECT_EQ(literal_text(-0.0, DType::f32), "-0.0");
  EXPECT_EQ(literal_text(std::numeric_limits<double>::infinity(), DType::f32), "jnp.inf");
  EXPECT_EQ(literal_text(-std::numeric_limits<double>::infinity(), DType::bf16), "-jnp.inf");
  EXPECT_EQ(literal_text(std::nan(""), DType::f32), "jnp.nan");
  for (double v : {1.0 / 3, 6.02214076e23, 5e-324, -123456.789})
    EXPECT_EQ(std::strtod(literal_text(v, DType::f64).c_str(), nullptr), v);
}

TEST(ValueNames, AreVariablesAndDiffer) {
  const trace::Graph graph = GraphText()
                                 .in("lambda", "f32[4]")
                                 .in("args", "f32[4]")
                                 .in("torch", "f32[4]")
                                 .in("a.b", "f32[4]")
                                 .in("a_b", "f32[4]")
                                 .in("1x", "f32[4]")
                                 .in("_y", "f32[4]")
                                 .in("x", "f32[4]")
                                 .out("x")
                                 .graph();
  EXPECT_EQ(value_names(graph),
            (std::vector<std::string>{"lambda_", "args_", "torch_", "a_b", "a_b_", "v1x", "v_y", "x"}));
}

TEST(ValueNames, NoKeywordOfPythonAndNoNameOfTheModuleIsLeft) {
  for (const char* name :
       {"False", "None",   "and",       "as",     "async", "class",  "def",    "del", "except",
        "from",  "global", "if",        "import", "in",    "is",     "lambda", "not", "or",
        "pass",  "return", "while",     "with",   "yield", "jax",    "jnp",    "lax", "pl",
        "torch", "call",   "reference", "mode",   "taken", "results"})
    EXPECT_NE(value_names(GraphText().in(name, "f32[4]").out(name).graph()).at(0), name);
}

TEST(Arguments, ArePython) {
  const auto text = [](const trace::Argument& a) {
    Out out;
    put_argument(out, a, [](Out& to, trace::ValueId id) { put(to, "v" + std::to_string(id.value)); });
    return fmt::to_string(out);
  };
  EXPECT_EQ(text({trace::NoneArgument{}}), "None");
  EXPECT_EQ(text({true}), "True");
  EXPECT_EQ(text({std::int64_t{3}}), "3");
  EXPECT_EQ(text({2.0}), "2.0");
  EXPECT_EQ(text({-std::numeric_limits<double>::infinity()}), "float(\"-inf\")");
  EXPECT_EQ(text({std::nan("")}), "float(\"nan\")");
  EXPECT_EQ(text({std::string("a\"b\\c")}), R"("a\"b\\c")");
  EXPECT_EQ(text({DType::bf16}), "torch.bfloat16");
  EXPECT_EQ(text({trace::DeviceArgument{"cpu"}}), "torch.device(\"cpu\")");
  EXPECT_EQ(text({trace::EnumArgument{"memory_format", "channels_last"}}), "torch.channels_last");
  EXPECT_EQ(text({trace::ArgumentList{{std::int64_t{1}}, {trace::ValueId(4)}}}), "[1, v4]");
}

TEST(Reference, IsTheTracedGraph) {
  const trace::Graph graph =
      GraphText()
          .in("x", "f32[4]")
          .op("add", "aten.add.Tensor", "%x, 1", "f32[4]", R"("alpha": 2)")
          .list_op("split", "aten.split.Tensor", "%add, 2", {{"a", "f32[2]"}, {"b", "f32[2]@[1]+2"}})
          .out("b")
          .graph();
  const Text text = reference_text(graph);
  const std::string_view written = text.text();
  EXPECT_EQ(written.substr(written.find("    (x,)")),
            "    (x,) = args\n    add = torch.ops.aten.add.Tensor(x, 1, alpha=2)\n"
            "    (a, b,) = torch.ops.aten.split.Tensor(add, 2)\n    return [b]\n");
}

}  // namespace
}  // namespace pallascope::codegen
