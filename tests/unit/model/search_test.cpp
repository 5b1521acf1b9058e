// Go to anything: what is found, in which order, with which letters.
#include "app/model/search.h"

#include <algorithm>

#include "tests/unit/model/support.h"

namespace pallascope::model {
namespace {

SearchIndex index_of(const std::vector<std::string>& texts) {
  std::vector<SearchItem> items;
  for (const std::string& text : texts) items.push_back({SearchKind::node, text, "", {}});
  return SearchIndex(std::move(items));
}

std::vector<std::string> found(const SearchIndex& index, const std::string& query, std::size_t limit = 10) {
  std::vector<std::string> texts;
  for (const SearchHit& hit : index.find(query, limit)) texts.push_back(index.items()[hit.item].text);
  return texts;
}
using Texts = std::vector<std::string>;

TEST(Search, ExactThenStartOfWordThenSideBySideThenScattered) {
  const SearchIndex index = index_of({"s_u_m_x", "checksum", "row_sum_2", "sum_2", "sum"});
  EXPECT_EQ(found(index, "sum"), (Texts{"sum", "sum_2", "row_sum_2", "checksum", "s_u_m_x"}));
}

TEST(Search, LettersInOrderOnly) {
  const SearchIndex index = index_of({"native_layer_norm", "layer", "norm"});
  EXPECT_EQ(found(index, "nln"), (Texts{"native_layer_norm"}));
  EXPECT_TRUE(found(index, "zebra").empty());
  EXPECT_TRUE(found(index, "mron").empty());
}

TEST(Search, CaseDoesNotMatterAndEachWordMustMatch) {
  const SearchIndex index = index_of({"div_5  n12  aten.div.Tensor", "div_6  n13  aten.div.Scalar"});
  EXPECT_EQ(found(index, "TENSOR div"), (Texts{"div_5  n12  aten.div.Tensor"}));
  EXPECT_EQ(found(index, "n13"), (Texts{"div_6  n13  aten.div.Scalar"}));
}

TEST(Search, TellsWhichLettersMatched) {
  const SearchIndex index = index_of({"row_sum"});
  const auto hits = index.find("rsum", 1);
  ASSERT_EQ(hits.size(), 1U);
  EXPECT_EQ(hits[0].positions, (std::vector<std::uint32_t>{0, 4, 5, 6}));
}

TEST(Search, WithoutAQueryTheFirstItems) {
  const SearchIndex index = index_of({"bbb", "a", "cc"});
  EXPECT_EQ(found(index, "  ", 2), (Texts{"bbb", "a"}));
  EXPECT_EQ(found(index, "", 0), Texts{});
}

TEST(Search, ItemsOfAProgramLeadToThem) {
  const CompilationPointer compilation = compile(rows(), {{"sin", "h.0.attn"}, {"sum_1", "h.0.attn"}});
  const auto snapshot = compilation->last();
  const SearchIndex index(search_items(*compilation, *snapshot, {"check", "why-not"}));
  const auto first = [&](const std::string& query) {
    const auto hits = index.find(query, 1);
    EXPECT_EQ(hits.size(), 1U) << query;
    return hits.empty() ? SearchItem() : index.items()[hits[0].item];
  };
  EXPECT_EQ(first("sum_1").selection, Selection(node(*compilation, "sum_1")));
  EXPECT_EQ(first("k0").selection, Selection(schedule::KernelId(0)));
  EXPECT_EQ(first("d0").selection, Selection(schedule::DecisionId(0)));
  EXPECT_EQ(first("h.0.attn").selection, Selection(GroupRef{"h.0.attn"}));
  EXPECT_EQ(first("h.0").kind, SearchKind::group);
  EXPECT_EQ(first("model.py:1").selection, Selection(node(*compilation, "sin")));
  EXPECT_EQ(first("check").kind, SearchKind::command);
  EXPECT_TRUE(is_empty(first("why").selection));
  EXPECT_EQ(first("b0").kind, SearchKind::buffer);
}

TEST(Search, AmongTwentyThousand) {
  std::vector<std::string> texts;
  const std::vector<std::string> names{"mul", "native_layer_norm", "sum", "addmm", "transpose", "gelu", "_softmax", "view"};
  for (std::size_t k = 0; k < 20'000; ++k) {
    const std::string number = std::to_string(k);
    texts.push_back(names[k % names.size()] + "_" + number + "  n" + number + "  aten." + names[k % names.size()] + ".default");
  }
  const SearchIndex index = index_of(texts);
  for (const std::string query : {"a", "sum_77", "nln default", "n19999"}) {
    std::vector<SearchHit> hits;
    print_time("find `" + query + "` among 20,000", [&] { hits = index.find(query, 50); });
    EXPECT_FALSE(hits.empty()) << query;
  }
}

}  // namespace
}  // namespace pallascope::model
