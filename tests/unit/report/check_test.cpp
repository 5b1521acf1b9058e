#include "core/report/check.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/report/format.h"

namespace pallascope::report {
namespace {

Json picture(std::size_t rows, std::size_t cols, const std::vector<double>& cells,
             const std::vector<int>& nan = {}) {
  return {{"rows", rows},   {"cols", cols}, {"of_rows", rows},           {"of_cols", cols},
          {"cells", cells}, {"nan", nan},   {"both_nan", Json::array()}, {"axes", "columns: axis 0 (4)"}};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Picture, ShadesAreStepsOfTheLogarithm) {
  EXPECT_EQ(picture_text(picture(2, 4, {0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 0}, {7}), "  "),
            "  ┌────┐\n"
            "  │· ░▒│\n"
            "  │▓██!│\n"
            "  └────┘\n"
            "  · equal  blank 1e-09  ░ 1e-08  ▒ 1e-07  ▓ 1e-06  █ 1e-05 up to 0.0001\n"
            "  ! NaN or infinity on one side\n"
            "  a shade begins at its number\n");
}

TEST(Picture, OneSizeOfDifferenceIsOneShade) {
  EXPECT_EQ(picture_text(picture(1, 3, {0.5, 0, 0.5}), ""), "┌───┐\n│█·█│\n└───┘\n· equal  █ 0.5\n");
  EXPECT_TRUE(has(picture_text(picture(1, 2, {0.5, 0.75}), ""), "█ 0.5 to 0.75\n"));
  // Only mismatches that no number tells.
  EXPECT_EQ(picture_text(picture(1, 2, {0, 0}, {1}), ""),
            "┌──┐\n│·!│\n└──┘\n· equal\n! NaN or infinity on one side\n");
}

TEST(Picture, NothingDiffers) {
  EXPECT_EQ(picture_text(picture(1, 3, {0, 0, 0}), "  "), "  no picture: every element is equal\n");
  Json nan = picture(1, 3, {0, 0, 0});
  nan["both_nan"] = {1};
  EXPECT_EQ(picture_text(nan, ""), "no picture: every element is equal (NaN on both sides in places)\n");
  EXPECT_EQ(picture_text(picture(0, 0, {}), ""), "no picture: there are no elements\n");
  EXPECT_EQ(picture_text(nullptr, ""), "");
}

TEST(Picture, ALargeOneIsMadeSmallerAndLosesNothing) {
  for (const std::size_t wrong : {std::size_t{0}, std::size_t{96 * 63 + 95}, std::size_t{96 * 31 + 50}}) {
    std::vector<double> cells(64 * 96, 0);
    cells[wrong] = 1;
    Json large = picture(64, 96, cells);
    large["of_rows"] = 100000;
    const std::string text = picture_text(large, "    ");
    std::size_t lines = 0, at = 0;
    for (std::size_t end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      EXPECT_LE(display_width(text.substr(at, end - at)), 80U);
      ++lines;
    }
    EXPECT_EQ(lines, 16U + 2 + 2);
    EXPECT_TRUE(has(text, "█")) << text;
    EXPECT_TRUE(has(text, "each place is the largest of up to 6,250 x 2 elements")) << text;
  }
}

TEST(Picture, ABrokenOneIsNoEndOfTheProgram) {
  for (const char* text :
       {"{}", "3", R"({"rows": 2, "cols": 2, "cells": [1]})", R"({"rows": 2, "cols": 0, "cells": []})",
        R"({"rows": 1, "cols": 2, "cells": ["x", null], "nan": [7, -1, "x"]})",
        R"({"rows": -1, "cols": 1, "cells": 3})"})
    picture_text(Json::parse(text), "");
}

TEST(Histogram, ARowADecade) {
  const Json histogram = {
      {"zero", 1234}, {"nan", 2}, {"both_nan", 3}, {"first_exponent", -7}, {"counts", {80, 0, 40, 1}}};
  EXPECT_EQ(histogram_text(histogram, " "),
            " equal                        1,234\n"
            " NaN on both sides            3\n"
            " 1e-07..1e-06                 ████████████████████████████████████████ 80\n"
            " 1e-06..1e-05                 0\n"
            " 1e-05..1e-04                 ████████████████████ 40\n"
            " 1e-04..1e-03                 ▌ 1\n"
            " NaN or infinity on one side  2\n");
  EXPECT_EQ(
      histogram_text({{"zero", 4}, {"nan", 0}, {"first_exponent", nullptr}, {"counts", Json::array()}}, ""),
      "equal  4\n");
  EXPECT_EQ(histogram_text({{"first_exponent", -1}, {"counts", {3}}}, ""),
            "1e-01..1e+00  ████████████████████████████████████████ 3\n");
  EXPECT_EQ(histogram_text(nullptr, ""), "");
}

TEST(Histogram, AGapOfHundredsOfDecadesIsLeftOut) {
  std::vector<int> counts(300, 0);
  counts.front() = counts.back() = 1;
  const std::string text = histogram_text({{"first_exponent", -300}, {"counts", counts}}, "");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST(CheckText, BuffersStandAboveTheOutputs) {
  Json row = {{"buffer", "b7"},
              {"variable", "t_buf7"},
              {"node", "n12"},
              {"node_name", "sum_2"},
              {"output", 0},
              {"kernel", "k3"},
              {"call", nullptr},
              {"verdict", "failed"},
              {"max_abs", 0.5},
              {"max_rel", 1.0},
              {"expected_dtype", "f32"},
              {"expected_sizes", {4}},
              {"reasons", {"2 of 4 elements are outside the tolerance"}},
              {"first", {{"index", {1}}, {"ours", 1.5}, {"eager", 1.0}}},
              {"picture", picture(1, 4, {0, 0.5, 0.5, 0})},
              {"histogram", {{"zero", 2}, {"first_exponent", -1}, {"counts", {2}}}}};
  Json right = row;
  right.update(Json{{"verdict", "passed"},
                    {"buffer", "b9"},
                    {"kernel", nullptr},
                    {"call", "aten.mm.default"},
                    {"output", 1}});
  const Json result = {{"verdict", "failed"},
                       {"buffers", {row, right}},
                       {"buffers_skipped", {{{"buffer", "b8"}, {"why", "holds no node's value"}}}},
                       {"first_divergence", row},
                       {"outputs", Json::array()}};
  const std::string text = check_text(result, 5, false);
  EXPECT_TRUE(
      text.starts_with("first divergence: b7 f32[4] = n12 sum_2, written by k3, max abs 0.5\n"
                       "      2 of 4 elements are outside the tolerance\n"
                       "      first at [1] ours 1.5 eager 1\n"
                       "      debug: |ours - eager|, columns: axis 0 (4)\n"
                       "      ┌────┐\n      │·██·│\n"))
      << text;
  EXPECT_TRUE(has(text, "2 buffers compared in execution order, debug, 1 outside of the tolerance\n"))
      << text;
  EXPECT_TRUE(has(text, "  aten.mm.default  b9  n12 sum_2[1]  f32[4]  ")) << text;
  EXPECT_TRUE(has(text, "  1 not compared, each holds no node's value: b8\n")) << text;
  EXPECT_FALSE(has(check_text({{"outputs", Json::array()}}, 5, false), "buffer"));
}

TEST(CheckText, ThePictureStandsBeneathItsOutput) {
  const auto output = [](const char* name, const char* mode, const Json& figures) {
    return Json{{"name", name}, {"kind", "output"},    {"index", 0},         {"dtype", "f32"},
                {"sizes", {4}}, {"verdict", "passed"}, {"worst_mode", mode}, {"modes", {{mode, figures}}}};
  };
  const Json result = {
      {"outputs",
       {output("a", "steady",
               {{"max_abs", 0.5},
                {"picture", picture(1, 4, {0, 0.5, 0.5, 0})},
                {"histogram", {{"zero", 2}, {"first_exponent", -1}, {"counts", {2}}}}}),
        output("b", "debug", {{"max_abs", 0.0}, {"picture", picture(1, 4, {0, 0, 0, 0})}})}}};
  const std::string text = check_text(result, 5, false);
  const std::size_t a = text.find("out0 a"), box = text.find("│·██·│"), b = text.find("out0 b");
  EXPECT_TRUE(a < box && box < b && b != std::string::npos) << text;
  EXPECT_TRUE(has(text, "      steady: |ours - eager|, columns: axis 0 (4)\n")) << text;
  EXPECT_TRUE(has(text, "      no picture: every element is equal\n")) << text;
}

}  // namespace
}  // namespace pallascope::report
