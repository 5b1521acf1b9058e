#include "app/repl/words.h"

#include <gtest/gtest.h>

namespace pallascope::repl {
namespace {

using Words = std::vector<std::string>;

TEST(Words, AreSplitAtBlanks) {
  EXPECT_EQ(*split_words("  why-not  sum_2\tdiv_5 "), (Words{"why-not", "sum_2", "div_5"}));
  EXPECT_EQ(*split_words(""), Words{});
}

TEST(Words, QuotesAndBackslashesHoldThemTogether) {
  EXPECT_EQ(*split_words(R"(open "a b.pt2")"), (Words{"open", "a b.pt2"}));
  EXPECT_EQ(*split_words(R"(open 'a "b".pt2')"), (Words{"open", R"(a "b".pt2)"}));
  EXPECT_EQ(*split_words(R"(open a\ b.pt2)"), (Words{"open", "a b.pt2"}));
  EXPECT_EQ(*split_words(R"(open '')"), (Words{"open", ""}));
  EXPECT_EQ(*split_words(R"('a\b')"), Words{R"(a\b)"});
}

TEST(Words, AnOpenQuoteIsSaid) {
  const auto words = split_words("open 'a b");
  ASSERT_FALSE(words.ok());
  EXPECT_EQ(words.error().kind, DiagnosticKind::usage);
}

TEST(Words, QuotingIsUndoneBySplitting) {
  for (const std::string word : {"a b", "a;b", "it's", R"(a"b)", R"(a\b)", "", "#1", "plain"}) {
    EXPECT_EQ(*split_words("open " + quote_word(word)), (Words{"open", word})) << word;
    EXPECT_EQ(split_commands("open " + quote_word(word)).size(), 1U) << word;
  }
}

TEST(Commands, AreSplitAtSemicolonsAndLines) {
  EXPECT_EQ(split_commands("open a.pt2; check\nsummary"), (Words{"open a.pt2", "check", "summary"}));
  EXPECT_EQ(split_commands(" ; ;\n ;"), Words{});
  EXPECT_EQ(split_commands("open 'a;b'; check"), (Words{"open 'a;b'", "check"}));
  EXPECT_EQ(split_commands(R"(open a\;b; check)"), (Words{R"(open a\;b)", "check"}));
}

TEST(Commands, CommentsAreLeftOut) {
  EXPECT_EQ(split_commands("summary # the first look\n# nothing; here\ncheck"), (Words{"summary", "check"}));
  EXPECT_EQ(split_commands("open a#b"), Words{"open a#b"});
}

TEST(Commands, APythonBlockGoesOnToAnEmptyLine) {
  EXPECT_EQ(split_commands("def f(x):\n  y = x; z = 1\n  return y\n\ncheck"),
            (Words{"def f(x):\n  y = x; z = 1\n  return y", "check"}));
  EXPECT_EQ(split_commands("py print(1); check"), (Words{"py print(1)", "check"}));
}

TEST(Commands, ALineOfPythonMayHaveSemicolonsAtThePrompt) {
  EXPECT_EQ(split_commands("py a = 1; a  # one\ncheck; summary", true),
            (Words{"py a = 1; a  # one", "check", "summary"}));
}

TEST(Python, IsToldByTheFirstWord) {
  for (const char* line :
       {"def f(x): return x", "class A:", "import math", "from a import b", "@cache", "py 1 + 1", "py"}) {
    EXPECT_TRUE(is_python(line)) << line;
  }
  for (const char* line : {"deps x", "python", "importing", "summary", "", "fromage"})
    EXPECT_FALSE(is_python(line)) << line;
}

TEST(Python, BlocksAskForMore) {
  EXPECT_TRUE(opens_block("def f(x):"));
  EXPECT_TRUE(opens_block("@cache"));
  EXPECT_TRUE(opens_block("py for i in range(3):"));
  EXPECT_TRUE(opens_block("py"));
  EXPECT_FALSE(opens_block("import math"));
  EXPECT_FALSE(opens_block("py 1 + 1"));
}

TEST(Python, TheWordPyIsTakenOff) {
  EXPECT_EQ(python_text("py inputs[0]"), "inputs[0]");
  EXPECT_EQ(python_text("import math"), "import math");
  EXPECT_EQ(python_text("py\nx = 1\nx"), "x = 1\nx");
}

TEST(EditDistance, CountsChanges) {
  EXPECT_EQ(edit_distance("summary", "summary"), 0U);
  EXPECT_EQ(edit_distance("sumary", "summary"), 1U);
  EXPECT_EQ(edit_distance("chekc", "check"), 1U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
}

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> names = {"summary", "show", "step", "stepback", "check"};
  EXPECT_EQ(nearest("sumary", names), "summary");
  EXPECT_EQ(nearest("chekc", names), "check");
  EXPECT_EQ(nearest("stepb", names), "stepback");
  EXPECT_EQ(nearest("xylophone", names), "");
}

}  // namespace
}  // namespace pallascope::repl
