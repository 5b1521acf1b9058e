// A comparison's JSON as rows, pictures and histograms; whatever is missing in it.
#include "app/model/check_view.h"

#include <cmath>

#include "core/report/format.h"
#include "tests/unit/model/support.h"

namespace pallascope::model {
namespace {

using report::Json;
using Cell = DifferencePicture::Cell;

Json figures(bool failed) {
  return {{"verdict", failed ? "failed" : "passed"},
          {"reasons", failed ? Json{"3 of 32 elements are outside the tolerance"} : Json::array()},
          {"max_abs", failed ? Json("inf") : Json(4.8e-07)},
          {"max_rel", 3.1e-06},
          {"max_ulp", 512.0},
          {"rmse", 8.5e-08},
          {"rmse_eager", nullptr},
          {"as_close_as_eager", !failed},
          {"mismatched", failed ? 3 : 0},
          {"elements", 32},
          {"first", failed ? Json{{"index", {0, 1}}, {"ours", 1.5}, {"eager", 1.25}} : Json(nullptr)}};
}

Json row(const std::string& name, int index, bool failed, const char* kind = "output") {
  return {{"name", name},           {"kind", kind},
          {"index", index},         {"dtype", "f32"},
          {"sizes", {4, 8}},        {"verdict", failed ? "failed" : "passed"},
          {"worst_mode", "steady"}, {"modes", {{"debug", figures(false)}, {"steady", figures(failed)}}}};
}

TEST(Check, FailedRowsComeFirstAndEachStartsWithItsWorseMode) {
  const CompilationPointer compilation = compile(rows());
  const Json result = {
      {"verdict", "failed"},
      {"platform", "cpu"},
      {"jax", "0.10.2"},
      {"interpret", true},
      {"seconds", 0.84},
      {"outputs", {row("relu", 0, false), row("cos", 1, true), row("x", 0, false, "argument")}}};
  const CheckView view = check_view(*compilation, result, 64);
  EXPECT_FALSE(view.passed);
  EXPECT_EQ(view.verdict, "failed at d63 on local (cpu, jax 0.10.2, interpret) in 0.8 s");
  EXPECT_EQ(view.failed, 1U);
  ASSERT_EQ(view.rows.size(), 3U);
  EXPECT_EQ(view.rows[0].name, "out1 cos");
  EXPECT_EQ(view.rows[0].node, node(*compilation, "cos"));
  EXPECT_EQ(view.rows[0].shape, "f32[4,8]");
  const CheckFigures& worst = view.rows[0].worst();
  EXPECT_EQ(worst.mode, "steady");
  EXPECT_TRUE(std::isinf(worst.max_abs.value.value_or(0)));
  EXPECT_EQ(worst.ulp.text, "512");
  EXPECT_EQ(worst.rmse_eager.text, "–");
  EXPECT_EQ(worst.as_close, false);
  EXPECT_EQ(worst.outside, "3 of 32");
  EXPECT_EQ(worst.first, "[0,1] ours 1.5 eager 1.25");
  EXPECT_EQ(view.rows[1].name, "out0 relu");
  EXPECT_EQ(view.rows[1].worst().max_abs.text, "4.8e-07");
  EXPECT_EQ(view.rows[2].kind, CheckRow::Kind::argument);
  EXPECT_EQ(view.rows[2].input, 0);
}

TEST(Check, TheFirstDivergenceStandsOnTopHoweverItIsNamed) {
  const CompilationPointer compilation = compile(rows());
  for (const Json& named :
       {Json(1), Json("b4"), Json("buf4"), Json{{"buffer", "b4"}}, Json{{"name", "buf4"}}}) {
    Json buffers = Json::array();
    for (const int k : {3, 4, 5}) {
      Json b = row("buf" + std::to_string(k), k, k > 3, "buffer");
      b["buffer"] = "b" + std::to_string(k);
      buffers.push_back(b);
    }
    const Json result = {{"verdict", "failed"},
                         {"outputs", {row("relu", 0, true)}},
                         {"buffers", buffers},
                         {"first_divergence", named}};
    const CheckView view = check_view(*compilation, result, 0);
    ASSERT_EQ(view.rows.size(), 4U);
    EXPECT_EQ(view.rows[0].name, "buf4") << named.dump();
    EXPECT_TRUE(view.rows[0].first_divergence);
    EXPECT_EQ(view.rows[0].buffer, loop::BufferId(4));
    EXPECT_EQ(view.rows[1].name, "out0 relu");
    EXPECT_EQ(view.rows[3].name, "buf3");
    EXPECT_EQ(view.verdict, "failed at the start on local");
  }
}

TEST(Check, BuffersAreNamedByTheirNodeAndFiguresStandInTheRow) {
  const CompilationPointer compilation = compile(rows());
  const std::string sum = report::id_text(node(*compilation, "sum_1"));
  Json wrong = figures(true);
  wrong.update(Json{{"buffer", "b3"},
                    {"node", sum},
                    {"node_name", "sum_1"},
                    {"output", 1},
                    {"kernel", "k0"},
                    {"call", nullptr},
                    {"expected_dtype", "f32"},
                    {"expected_sizes", {4, 1}},
                    {"picture", {{"rows", 1}, {"cols", 4}, {"cells", {0, 0.5, 0, 0}}}}});
  Json right = figures(false);
  right.update(Json{{"buffer", "b2"},
                    {"node", "n0"},
                    {"node_name", "sin"},
                    {"output", 0},
                    {"kernel", nullptr},
                    {"call", "aten.mm.default"},
                    {"dtype", "f32"},
                    {"sizes", {4, 8}}});
  const Json result = {{"verdict", "passed"},
                       {"outputs", Json::array()},
                       {"buffers", {right, wrong}},
                       {"buffers_skipped", {{{"buffer", "b8"}, {"why", "holds no node's value"}}}},
                       {"first_divergence", wrong}};
  const CheckView view = check_view(*compilation, result, 3);
  ASSERT_EQ(view.rows.size(), 2U);
  EXPECT_TRUE(view.passed);  // outputs alone make the verdict
  EXPECT_TRUE(view.rows[0].first_divergence);
  EXPECT_EQ(view.rows[0].name, "b3 sum_1[1]");
  EXPECT_EQ(view.rows[0].shape, "f32[4,1]");
  EXPECT_EQ(view.rows[0].made_by, "k0");
  EXPECT_EQ(view.rows[0].node, node(*compilation, "sum_1"));
  EXPECT_EQ(view.rows[0].worst().outside, "3 of 32");
  EXPECT_TRUE(difference_picture(result, view.rows[0], "").has_value());
  EXPECT_EQ(view.rows[1].name, "b2 sin");
  EXPECT_EQ(view.rows[1].made_by, "aten.mm.default");
  EXPECT_EQ(view.notes, std::vector<std::string>{"1 buffer cannot be compared"});
}

TEST(Check, NothingThatIsMissingOrMisshapenIsRefused) {
  const CompilationPointer compilation = compile(rows());
  for (
      const char* text :
      {"null", "{}", "[]", "3", R"({"outputs": 3, "buffers": {}, "first_divergence": {"name": []}})",
       R"({"outputs": [null, 3, {}], "verdict": 7, "notes": [1], "seconds_by_mode": {"debug": "x"}})",
       R"({"outputs": [{"name": ["a"], "sizes": "x", "dtype": "f32", "modes": {"debug": 3}, "index": -4}]})",
       R"({"outputs": [{"node": "n99999", "buffer": "bx", "id": {"id": 3}, "kind": "argument", "index": 1e300}]})"}) {
    const Json result = Json::parse(text);
    const CheckView view = check_view(*compilation, result, 1);
    for (const CheckRow& r : view.rows) {
      ASSERT_FALSE(r.modes.empty()) << text;
      EXPECT_FALSE(r.node.valid());
      EXPECT_FALSE(difference_picture(result, r, r.worst().mode).has_value());
    }
  }
  // Figures that stand in the row itself, as a host gives them that compares one way only.
  const CheckView plain = check_view(
      *compilation, Json::parse(R"({"outputs": [{"name": "a", "max_abs": 0.5, "verdict": "failed"}]})"), 1);
  ASSERT_EQ(plain.rows.size(), 1U);
  EXPECT_EQ(plain.rows[0].worst().max_abs.value, 0.5);
}

Json with_figures(Json picture, Json histogram) {
  Json r = row("cos", 0, true);
  r["modes"]["steady"]["picture"] = std::move(picture);
  r["modes"]["steady"]["histogram"] = std::move(histogram);
  return {{"verdict", "failed"}, {"outputs", {r}}};
}

TEST(Difference, ThePictureKeepsZeroNanAndDecadesApart) {
  const CompilationPointer compilation = compile(rows());
  const Json picture = {{"rows", 2},
                        {"cols", 3},
                        {"of_rows", 40},
                        {"of_cols", 8},
                        {"cells", {0, 1e-7, 3e-5, 0, 0, 2e-6}},
                        {"nan", {3}},
                        {"both_nan", {1, 4}}};
  const Json result = with_figures(picture, nullptr);
  const CheckView view = check_view(*compilation, result, 1);
  ASSERT_TRUE(view.rows.at(0).worst().has_picture);
  const auto p = difference_picture(result, view.rows[0], "steady");
  ASSERT_TRUE(p.has_value());
  // NaN on both sides hides no difference of the same cell.
  EXPECT_EQ(p->cells, (std::vector<Cell>{Cell::exact, Cell::differs, Cell::differs, Cell::mismatch,
                                         Cell::both_nan, Cell::differs}));
  EXPECT_EQ(p->differing, 3U);
  EXPECT_EQ(p->mismatching, 1U);
  EXPECT_EQ(p->low_decade, -7);
  EXPECT_EQ(p->high_decade, -4);
  EXPECT_NEAR(p->share(1e-7), 0, 1e-6);
  EXPECT_NEAR(p->share(1e-4), 1, 1e-6);
  EXPECT_NEAR(p->share(std::pow(10, -5.5)), 0.5, 1e-6);
  EXPECT_EQ(p->row_range(1), (std::pair<std::int64_t, std::int64_t>(20, 39)));
  EXPECT_EQ(p->column_range(1), (std::pair<std::int64_t, std::int64_t>(2, 4)));
  EXPECT_FALSE(difference_picture(result, view.rows[0], "debug").has_value());
}

TEST(Difference, APictureOfRowsHasItsSizesFromTheTensor) {
  const CompilationPointer compilation = compile(rows());
  const Json result = with_figures(
      {{"rows", 2}, {"columns", 2}, {"cells", Json::parse(R"([[0, "nan"], [1e-3, 0]])")}}, nullptr);
  const auto p = difference_picture(result, check_view(*compilation, result, 1).rows.at(0), "steady");
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ(p->cells, (std::vector<Cell>{Cell::exact, Cell::mismatch, Cell::differs, Cell::exact}));
  EXPECT_EQ(p->of_rows, 4);
  EXPECT_EQ(p->of_columns, 8);
  EXPECT_LT(p->low_decade, p->high_decade);
}

TEST(Difference, AHistogramHasNoEmptyEnds) {
  const CompilationPointer compilation = compile(rows());
  const Json result = with_figures(
      nullptr, {{"zero", 5}, {"nan", 1}, {"first_exponent", -9}, {"counts", {0, 0, 4, 0, 2, 0}}});
  const CheckRow row = check_view(*compilation, result, 1).rows.at(0);
  const auto h = difference_histogram(result, row, "steady");
  ASSERT_TRUE(h.has_value());
  EXPECT_EQ(h->first_exponent, -7);
  EXPECT_EQ(h->counts, (std::vector<std::int64_t>{4, 0, 2}));
  EXPECT_EQ(h->total, 12);
  const Json pairs =
      with_figures(nullptr, {{"exact", 5}, {"not_finite", 1}, {"decades", {{-7, 4}, {-5, 2}}}});
  const auto same = difference_histogram(pairs, row, "steady");
  ASSERT_TRUE(same.has_value());
  EXPECT_EQ(same->counts, h->counts);
  EXPECT_EQ(same->first_exponent, h->first_exponent);
  const Json empty =
      with_figures(nullptr, {{"zero", 32}, {"nan", 0}, {"first_exponent", -9}, {"counts", {0, 0}}});
  EXPECT_TRUE(difference_histogram(empty, row, "steady")->counts.empty());
}

}  // namespace
}  // namespace pallascope::model
