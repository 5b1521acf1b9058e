// A .pt2 whose one weight is 20 GiB: the graph must show without the weight being read.
#include <chrono>
#include <sstream>

#include "tests/unit/trace/support.h"

namespace pallascope::trace {
namespace {

using testing::TemporaryFolder;
using testing::ZipWriter;

constexpr std::uint64_t kWeightBytes = std::uint64_t{20} << 30;

/// A line of /proc/self/status in KiB.
std::int64_t status_kib(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1));
  return 0;
}

std::string tensor(const std::string& sizes, const std::string& strides) {
  return R"({"dtype": 2, "sizes": )" + sizes + R"(, "strides": )" + strides +
         R"(, "requires_grad": false, "device": {"type": "cpu", "index": null}, "storage_offset": {"as_int": 0}, "layout": 7})";
}

TEST(SparsePt2, TwentyGibibytesOpenAtOnce) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "large.pt2";
  // i8[20, 1 GiB]
  const std::string weight =
      tensor(R"([{"as_int": 20}, {"as_int": 1073741824}])", R"([{"as_int": 1073741824}, {"as_int": 1}])");
  const std::string row = tensor(R"([{"as_int": 20}])", R"([{"as_int": 1}])");
  {
    ZipWriter zip(path);
    zip.add("large/archive_format", "pt2");
    zip.add_hole("large/data/weights/weight_0", kWeightBytes);
    zip.add(
        "large/data/weights/model_weights_config.json",
        R"({"config": {"w": {"path_name": "weight_0", "is_param": true, "use_pickle": false, "tensor_meta": )" +
            weight + "}}}");
    zip.add("large/data/constants/model_constants_config.json", R"({"config": {}})");
    zip.add("large/models/model.json",
            R"({"graph_module": {"graph": {"inputs": [{"as_tensor": {"name": "p_w"}}],
                "outputs": [{"as_tensor": {"name": "sum_1"}}],
                "nodes": [{"target": "torch.ops.aten.sum.dim_IntList",
                           "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "p_w"}}, "kind": 1},
                                      {"name": "dim", "arg": {"as_ints": [1]}, "kind": 1}],
                           "outputs": [{"as_tensor": {"name": "sum_1"}}], "metadata": {}, "name": "sum_1"}],
                "tensor_values": {"p_w": )" +
                weight + R"(, "sum_1": )" + row + R"(}},
              "signature": {"input_specs": [{"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}}],
                            "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "sum_1"}}}}]}},
              "schema_version": {"major": 8, "minor": 20}, "torch_version": "2.13.0"})");
    if (!zip.finish()) GTEST_SKIP() << "the temporary folder cannot hold a sparse file of 20 GiB";
  }
  ASSERT_GT(std::filesystem::file_size(path), kWeightBytes);

  // Sets the peak (VmHWM) back to what is used now.
  std::ofstream("/proc/self/clear_refs") << "5";
  const std::int64_t before = status_kib("VmRSS");
  const auto start = std::chrono::steady_clock::now();
  const Result<Program> program = open(path);
  const auto elapsed = std::chrono::steady_clock::now() - start;
  const std::int64_t growth = status_kib("VmHWM") - before;

  ASSERT_TRUE(program.ok()) << pallascope::to_string(program.error());
  EXPECT_EQ(program->weights.at("w").bytes, static_cast<std::int64_t>(kWeightBytes));
  EXPECT_EQ(to_string(program->graphs[0], NodeId(0)), "sum_1: i8[20] = aten.sum.dim_IntList(p_w, [1])");
  EXPECT_LT(std::chrono::duration<double>(elapsed).count(), 1.0);
  EXPECT_LT(growth, 300 * 1024) << "KiB";
}

TEST(SparsePt2, AWeightThatIsTooSmallIsSeenInTheHeader) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "small.pt2";
  ZipWriter zip(path);
  zip.add("s/archive_format", "pt2");
  zip.add_hole("s/data/weights/weight_0", 19);
  zip.add(
      "s/data/weights/model_weights_config.json",
      R"({"config": {"w": {"path_name": "weight_0", "is_param": true, "use_pickle": false, "tensor_meta": )" +
          tensor(R"([{"as_int": 20}])", R"([{"as_int": 1}])") + "}}}");
  zip.add("s/data/constants/model_constants_config.json", R"({"config": {}})");
  zip.add("s/models/model.json",
          R"({"graph_module": {"graph": {"inputs": [], "outputs": [], "nodes": [], "tensor_values": {}},
              "signature": {"input_specs": [], "output_specs": []}}, "schema_version": {"major": 8, "minor": 1}})");
  ASSERT_TRUE(zip.finish());
  testing::expect_problem(open(path), DiagnosticKind::storage_bounds, {"20 bytes", "19"});
}

}  // namespace
}  // namespace pallascope::trace
