// The bundled examples: their kernels, their decision logs, how their kernels walk memory.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/session/compilation.h"
#include "core/trace/read.h"
#include "tests/golden/golden.h"

namespace pallascope::golden {
namespace {

std::shared_ptr<const session::Compilation> compile(const std::filesystem::path& path) {
  const Result<trace::Program> program = trace::open(path);
  EXPECT_TRUE(program.ok()) << to_string(program.error());
  const auto made = session::Compilation::compile(std::make_shared<const trace::Program>(program.value()), 0);
  EXPECT_TRUE(made.ok()) << to_string(made.error());
  return made.value();
}

std::shared_ptr<const session::Compilation> example(const std::string& name) {
  if (name == "gpt2_block")
    return compile(std::filesystem::path(PALLASCOPE_ASSETS_DIR) / "examples" / "gpt2_block.pt2");
  return compile(std::filesystem::path(PALLASCOPE_TEST_DATA) / "golden" / "data" / (name + ".json"));
}

/// The kernel functions in the order in which they first run, without the prelude and the calls.
std::string kernels(const session::Compilation& compilation) {
  const auto last = compilation.last();
  std::string text;
  std::set<int> written;
  for (const schedule::ScheduledStep& step : last->state.steps) {
    if (!step.kernel.valid()) continue;
    const codegen::KernelSource& k = last->module.kernels[step.kernel.index()];
    if (written.insert(k.kernel_first).second)
      text += (text.empty() ? "" : "\n\n") + last->module.text(k.kernel_first, k.kernel_last);
  }
  return text;
}

/// At most four names: a fusion's sides can be long lists.
std::string names(const trace::Graph& graph, const std::vector<trace::NodeId>& nodes) {
  std::string text;
  for (std::size_t k = 0; k < nodes.size() && k < 4; ++k)
    text += (text.empty() ? "" : " ") + graph.nodes[nodes[k]].name;
  if (nodes.size() > 4) text += fmt::format(" (+{})", nodes.size() - 4);
  return text;
}

/// One line a decision: kind, verdict, reason, the names on both sides. No numbers: one more decision is one more line.
std::string decisions(const session::Compilation& compilation) {
  std::string text;
  for (const schedule::Decision& d : compilation.decisions()) {
    text += fmt::format("{} {} {}: {}", schedule::kind_name(d.kind), d.accepted ? "accepted" : "refused",
                        schedule::reason_name(d.reason), names(compilation.graph(), d.left));
    if (!d.right.empty()) text += " | " + names(compilation.graph(), d.right);
    text += "\n";
  }
  return text;
}

/// One line a load or store: its class, its buffer and its source, under the kernel's name without the hash.
std::string accesses(const session::Compilation& compilation) {
  const auto last = compilation.last();
  std::string text;
  for (const schedule::ScheduledStep& step : last->state.steps) {
    if (!step.kernel.valid()) continue;
    const std::string& name = last->module.kernels[step.kernel.index()].name;
    text += name.substr(0, name.rfind('_')) + "\n";
    for (const codegen::KernelAccess& a : last->module.accesses) {
      if (a.kernel != step.kernel) continue;
      text += fmt::format("  {} {} {}: {}\n",
                          a.store      ? "store"
                          : a.on_value ? "value"
                                       : "load ",
                          index::access_class_letter(a.access.access_class),
                          last->program->buffers[a.buffer].name, a.line == 0 ? "as above" : a.source);
    }
  }
  return text;
}

class Example : public ::testing::TestWithParam<std::string> {};

TEST_P(Example, Kernels) { expect_golden(GetParam() + ".kernels.py", kernels(*example(GetParam()))); }
TEST_P(Example, Decisions) { expect_golden(GetParam() + ".decisions.txt", decisions(*example(GetParam()))); }
TEST_P(Example, Accesses) { expect_golden(GetParam() + ".accesses.txt", accesses(*example(GetParam()))); }

INSTANTIATE_TEST_SUITE_P(Bundled, Example,
                         ::testing::Values("sin_add", "softmax", "layer_norm", "segments", "gpt2_block"),
                         [](const auto& info) { return info.param; });

// What must hold whatever the golden files say.

TEST(Bundled, TheSinAddKernelReadsAsTheSeedHadIt) {
  const auto compilation = example("sin_add");
  const std::string text = kernels(*compilation);
  EXPECT_EQ(text.substr(text.find('\n') + 1),
            "    tmp0 = in_ptr0[...]\n"
            "    tmp1 = jnp.sin(tmp0)\n"
            "    tmp2 = in_ptr1[...]\n"
            "    tmp3 = tmp1 + tmp2\n"
            "    out_ptr0[...] = tmp3\n");
  EXPECT_TRUE(text.starts_with("def pallas_fused_add_sin_")) << text;
}

TEST(Bundled, SoftmaxLayerNormAndSegmentSumsAreOneKernel) {
  for (const char* name : {"softmax", "layer_norm", "segments"}) {
    const auto compilation = example(name);
    EXPECT_EQ(compilation->last()->state.kernels.size(), 1U) << name << "\n" << decisions(*compilation);
    EXPECT_EQ(compilation->last()->state.steps.size(), 1U) << name;
  }
}

TEST(Bundled, TheTransformerBlockNeedsNoTorchCall) {
  const auto compilation = example("gpt2_block");
  for (const schedule::Decision& d : compilation->decisions())
    EXPECT_NE(d.reason, schedule::Reason::left_to_torch);
  // Two layer norms, the attention's softmax, the activation and the residual sums are kernels; products are not.
  EXPECT_LT(compilation->last()->state.kernels.size(), 14U) << kernels(*compilation);
}

TEST(Bundled, TracesNameNoFileOfOneMachine) {
  for (const char* name : {"sin_add", "softmax", "layer_norm", "segments", "gpt2_block"}) {
    const auto compilation = example(name);
    for (const trace::Node& node : compilation->traced().nodes) {
      EXPECT_NE(node.user_frame(), nullptr) << node.name;
      for (const trace::Frame& frame : node.stack) EXPECT_FALSE(frame.file.starts_with("/")) << frame.file;
    }
  }
}

}  // namespace
}  // namespace pallascope::golden
