// What is kept between runs, and what a Python file defines.
#include "app/workspace/recent.h"

#include <gtest/gtest.h>

#include "app/workspace/python_file.h"
#include "tests/unit/repl/support.h"

namespace pallascope::workspace {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

RecentFile file(const std::string& path, std::int64_t time) { return {"open " + path, path, time, true}; }

TEST(Recent, IsReadAsItWasWritten) {
  const repl::Folder folder;
  const std::string there = folder.write("a b.pt2", "x");
  const std::vector<RecentFile> list{file(there, 5), file("/nowhere/gone.pt2", 4)};
  const auto path = folder.path() / "state" / "deep" / "recent.json";
  ASSERT_TRUE(save_recent(path, list));
  const auto again = load_recent(path);
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0], list[0]);
  EXPECT_EQ(again[1].command, list[1].command);
  EXPECT_EQ(again[1].time, 4);
  EXPECT_FALSE(again[1].exists);
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".new"));
}

TEST(Recent, WhatIsNoListIsNone) {
  const repl::Folder folder;
  EXPECT_TRUE(load_recent(folder.path() / "missing.json").empty());
  for (const char* text : {"", "{", "[]", "{\"files\": 3}",
                           "{\"files\": [1, {\"command\": 2}, {\"command\": \"open a\"}]}", "\xff\xfe"})
    EXPECT_TRUE(load_recent(folder.write("recent.json", text)).empty()) << text;
}

TEST(Recent, TheNewestIsFirstAndOnce) {
  std::vector<RecentFile> list;
  for (int k = 0; k < 20; ++k) add_recent(list, file("/" + std::to_string(k), k));
  ASSERT_EQ(list.size(), most_recent);
  EXPECT_EQ(list.front().path, "/19");
  EXPECT_EQ(list.back().path, "/8");
  add_recent(list, file("/12", 99));
  ASSERT_EQ(list.size(), most_recent);
  EXPECT_EQ(list.front(), file("/12", 99));
  EXPECT_EQ(std::count_if(list.begin(), list.end(), [](const auto& f) { return f.path == "/12"; }), 1);
  // The same file traced another way is another entry.
  add_recent(list, {"trace /12:f", "/12", 100, true});
  EXPECT_EQ(list[0].command, "trace /12:f");
  EXPECT_EQ(list[1].command, "open /12");
}

TEST(History, KeepsTheLastLinesWithoutRepetition) {
  const repl::Folder folder;
  const auto path = folder.path() / "new" / "history";
  EXPECT_TRUE(load_history(path, 10).empty());
  ASSERT_TRUE(append_history(path, "open a.pt2"));
  ASSERT_TRUE(append_history(path, "open a.pt2"));
  ASSERT_TRUE(append_history(path, "def f(x):\n  return x\n\n"));
  EXPECT_EQ(read(path), "open a.pt2\nopen a.pt2\ndef f(x):\n  return x\n");
  EXPECT_EQ(load_history(path, 10), (std::vector<std::string>{"open a.pt2", "def f(x):", "  return x"}));
  EXPECT_EQ(load_history(path, 2), (std::vector<std::string>{"def f(x):", "  return x"}));
}

TEST(PythonFile, FindsWhatCouldBeTraced) {
  const PythonFile found = python_definitions(
      "\"\"\"Text with\ndef not_this(x):\nin it.\"\"\"\n"
      "import torch\n"
      "INPUTS = ['f32[4]']\n"
      "def f(x, weight=(1, 2),  # def no(\n"
      "      *, bias: list[int]):\n"
      "  def inner(y): return y\n"
      "  return x\n"
      "def _private(x): ...\n"
      "async def g(): ...\n"
      "class Data: ...\n"
      "class Block(nn.Module):\n"
      "  def forward(self, x): ...\n"
      "text = 'it''s \\'\ndef'\n");
  EXPECT_TRUE(found.readable);
  EXPECT_TRUE(found.has_inputs);
  EXPECT_EQ(
      found.definitions,
      (std::vector<PythonDefinition>{
          {"f", "x, weight=(1, 2), *, bias: list[int]", false}, {"g", "", false}, {"Block", "", true}}));
}

TEST(PythonFile, SaysWhetherItCanBeRead) {
  const repl::Folder folder;
  const PythonFile missing = read_python_file((folder.path() / "no.py").string());
  EXPECT_FALSE(missing.readable);
  EXPECT_EQ(missing.path, (folder.path() / "no.py").string());
  const PythonFile there = read_python_file(folder.write("yes.py", "INPUTS_OF = 1\ndef f(x):\n  pass"));
  EXPECT_TRUE(there.readable);
  EXPECT_FALSE(there.has_inputs);
  ASSERT_EQ(there.definitions.size(), 1U);
  EXPECT_EQ(there.definitions[0].parameters, "x");
  // Brackets that are never closed, strings that never end.
  for (const char* text : {"def f(", "def f(x", "\"\"\"", "'", "def", "class ", "def f(x):\n  '''"})
    EXPECT_TRUE(python_definitions(text).readable);
}

}  // namespace
}  // namespace pallascope::workspace
