// A small program on disk and a host that answers without Python, for the tests of commands.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "app/repl/command.h"
#include "app/repl/host_link.h"
#include "app/repl/session.h"
#include "app/repl/words.h"

namespace pallascope::repl {

/// Two graphs. The first: softmax-like rows, a matrix product, a relu and a transposed view; lines 5 to 10 of model.py.
inline std::string small_program() {
  const auto tensor = [](const std::string& sizes, const std::string& strides) {
    return R"({"dtype": "f32", "sizes": )" + sizes + R"(, "strides": )" + strides + R"(, "offset": 0})";
  };
  const auto node = [&](const std::string& name, const std::string& target, const std::string& args,
                        const std::string& meta, int line) {
    return R"({"name": ")" + name + R"(", "target": ")" + target + R"(", "args": )" + args +
           R"(, "kwargs": {}, "outputs": [{"name": ")" + name + R"(", "tensor": )" + meta +
           R"(}], "module": "block", "stack": [{"file": "/home/me/model.py", "line": )" +
           std::to_string(line) + R"(, "function": "forward", "code": "line )" + std::to_string(line) +
           R"("}]})";
  };
  const std::string wide = tensor("[4, 8]", "[8, 1]"), column = tensor("[4, 1]", "[1, 1]"),
                    square = tensor("[4, 4]", "[4, 1]"), turned = tensor("[8, 4]", "[1, 8]");
  const std::string first =
      R"({"name": "forward", "kind": "inference", "inputs": [)"
      R"({"kind": "user_input", "name": "x", "target": "x", "tensor": )" +
      wide +
      R"(},)"
      R"({"kind": "parameter", "name": "p_w", "target": "w", "tensor": )" +
      tensor("[8, 4]", "[4, 1]") + R"(}], "nodes": [)" +
      node("sin", "aten.sin.default", R"([{"value": "x"}])", wide, 5) + "," +
      node("sum_1", "aten.sum.dim_IntList", R"([{"value": "sin"}, [1], true])", column, 6) + "," +
      node("div", "aten.div.Tensor", R"([{"value": "sin"}, {"value": "sum_1"}])", wide, 7) + "," +
      node("mm", "aten.mm.default", R"([{"value": "div"}, {"value": "p_w"}])", square, 8) + "," +
      node("relu", "aten.relu.default", R"([{"value": "mm"}])", square, 9) + "," +
      node("permute", "aten.permute.default", R"([{"value": "div"}, [1, 0]])", turned, 10) +
      R"(], "outputs": [{"kind": "user_output", "value": "relu"}, {"kind": "user_output", "value": "permute"}]})";
  const std::string second = R"({"name": "second", "kind": "inference", "inputs": [)"
                             R"({"kind": "user_input", "name": "y", "target": "y", "tensor": )" +
                             wide + R"(}], "nodes": [)" +
                             node("cos", "aten.cos.default", R"([{"value": "y"}])", wide, 20) +
                             R"(], "outputs": [{"kind": "user_output", "value": "cos"}]})";
  return R"({"format": "pallascope.trace", "version": 1, "producer": "torch 2.13.0+cpu", "name": "small", "graphs": [)" +
         first + "," + second + "]}";
}

/// A folder that is gone when the test is.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "pallascope_repl_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }
  [[nodiscard]] std::filesystem::path path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Keeps what it was asked and answers what the test says.
class FakeHost : public HostLink {
 public:
  using Answer = std::function<Result<report::Json>(const report::Json&)>;
  FakeHost(std::vector<report::Json>& requests, Answer answer)
      : requests_(requests), answer_(std::move(answer)) {}
  void start() override {}
  Result<report::Json> request(const report::Json& header, const Progress& progress,
                               std::stop_token /*cancel*/) override {
    if (progress) progress("working", -1);
    requests_.push_back(header);
    return answer_(header);
  }
  [[nodiscard]] HostStatus status() const override {
    HostStatus status;
    status.text = "a test's";
    return status;
  }

 private:
  std::vector<report::Json>& requests_;
  Answer answer_;
};

/// A session with the small program open.
class OpenProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    const Execution opened = run("open " + folder.write("small.json", small_program()));
    ASSERT_TRUE(opened.result.ok()) << error_text(opened.result.error());
  }

  Execution run(const std::string& line) { return execute(session, line, false); }
  /// The result of a command that has to work.
  Output good(const std::string& line) {
    const Execution execution = run(line);
    if (execution.result.ok()) return *execution.result;
    ADD_FAILURE() << line << ": " << error_text(execution.result.error());
    return {};
  }
  /// The diagnostic of a command that must not work.
  Diagnostic bad(const std::string& line) {
    const Execution execution = run(line);
    if (!execution.result.ok()) return execution.result.error();
    ADD_FAILURE() << line << " worked:\n" << execution.result->text;
    return {};
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  Folder folder;
  std::vector<report::Json> requests;
  report::Json answer = report::Json::object();
  Session session{std::make_unique<FakeHost>(
      requests, [this](const report::Json&) { return Result<report::Json>(answer); })};
};

}  // namespace pallascope::repl
