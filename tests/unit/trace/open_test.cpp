// `open` looks at what a path holds: an archive, JSON, a bundle as a folder or a zip.
#include "tests/unit/trace/support.h"

namespace pallascope::trace {
namespace {

using testing::expect_problem;
using testing::fixture;
using testing::TemporaryFolder;
using testing::write_file;
using testing::write_zip;

const std::string kBundle = R"({"format": "pallascope.bundle", "version": 1, "tolerances": {}})";

std::string program_text() { return write_json(read_pt2(fixture("mlp.pt2")).value()); }

TEST(Open, ArchivesAndJsonUnderAnyName) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(fixture("mlp.pt2"), folder / "model.json");
  const Result<Program> archive = open(folder / "model.json");
  ASSERT_TRUE(archive.ok()) << pallascope::to_string(archive.error());
  EXPECT_EQ(archive->origin, (folder / "model.json").string());
  write_file(folder / "trace.pt2", "\n " + program_text());
  const Result<Program> json = open(folder / "trace.pt2");
  ASSERT_TRUE(json.ok()) << pallascope::to_string(json.error());
  EXPECT_EQ(to_string(json->graphs[0]), to_string(archive->graphs[0]));
}

TEST(Open, BundlesAsFolderAndZip) {
  const TemporaryFolder folder;
  write_file(folder / "bundle/bundle.json", kBundle);
  write_file(folder / "bundle/program.json", program_text());
  write_zip(folder / "bundle.zip",
            {{"bundle.json", kBundle}, {"program.json", program_text()}, {"inputs/x", "1234"}});
  for (const char* name : {"bundle", "bundle.zip"}) {
    const Result<Program> program = open(folder / name);
    ASSERT_TRUE(program.ok()) << pallascope::to_string(program.error());
    EXPECT_EQ(program->origin, (folder / name).string());
    EXPECT_EQ(program->name, "mlp");
    EXPECT_EQ(program->graphs[0].nodes.size(), 5U);
  }
}

TEST(Open, NothingThere) {
  const TemporaryFolder folder;
  expect_problem(open(folder / "none"), DiagnosticKind::not_found, {"none", "check the path"});
  expect_problem(open("/dev/null"), DiagnosticKind::not_readable, {"neither a file nor a folder"});
}

TEST(Open, IncompleteBundles) {
  const TemporaryFolder folder;
  const auto kind = DiagnosticKind::missing_member;
  write_file(folder / "a/program.json", program_text());
  expect_problem(open(folder / "a"), kind, {"`bundle.json`"});
  write_file(folder / "b/bundle.json", kBundle);
  expect_problem(open(folder / "b"), kind, {"`program.json`"});
  write_zip(folder / "a.zip", {{"program.json", program_text()}});
  expect_problem(open(folder / "a.zip"), kind, {"`bundle.json`"});
  write_zip(folder / "b.zip", {{"bundle.json", kBundle}});
  expect_problem(open(folder / "b.zip"), kind, {"`program.json`"});
}

TEST(Open, BundlesOfAnotherKind) {
  const TemporaryFolder folder;
  write_file(folder / "c/program.json", program_text());
  write_file(folder / "c/bundle.json", R"({"format": "pallascope.bundle", "version": 2})");
  expect_problem(open(folder / "c"), DiagnosticKind::schema_version, {"version 2", "bundle.json"});
  write_file(folder / "c/bundle.json", R"({"format": "other", "version": 1})");
  expect_problem(open(folder / "c"), DiagnosticKind::wrong_package, {"`other`"});
  write_file(folder / "c/bundle.json", R"({"version": 1})");
  expect_problem(open(folder / "c"), DiagnosticKind::missing_member, {"`format`"});
  write_file(folder / "c/bundle.json", "{");
  expect_problem(open(folder / "c"), DiagnosticKind::malformed_json, {"bundle.json"});
  write_file(folder / "c/bundle.json", kBundle);
  write_file(folder / "c/program.json", "{}");
  expect_problem(open(folder / "c"), DiagnosticKind::missing_member, {"program.json", "`format`"});
}

TEST(Open, WhatIsNeither) {
  const TemporaryFolder folder;
  write_file(folder / "noise.pt2", std::string("\0\1\2noise", 8));
  expect_problem(open(folder / "noise.pt2"), DiagnosticKind::not_a_zip, {"noise.pt2"});
  write_file(folder / "noise.txt", std::string("\0\1\2noise", 8));
  expect_problem(open(folder / "noise.txt"), DiagnosticKind::malformed_json, {"noise.txt"});
  write_file(folder / "empty.json", "");
  expect_problem(open(folder / "empty.json"), DiagnosticKind::malformed_json, {"empty"});
  write_file(folder / "empty.pt2", "");
  expect_problem(open(folder / "empty.pt2"), DiagnosticKind::not_a_zip, {"empty.pt2"});
}

}  // namespace
}  // namespace pallascope::trace
