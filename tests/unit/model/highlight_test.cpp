// Highlighting: what each piece of a Python text is; broken texts; pieces that are kept.
#include "app/model/highlight.h"

#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace pallascope::model {
namespace {

using Spans = std::vector<std::vector<SyntaxSpan>>;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

const char* name_of(SyntaxKind kind) {
  switch (kind) {
    case SyntaxKind::plain:
      return "plain";
    case SyntaxKind::comment:
      return "comment";
    case SyntaxKind::string:
      return "string";
    case SyntaxKind::number:
      return "number";
    case SyntaxKind::constant:
      return "constant";
    case SyntaxKind::keyword:
      return "keyword";
    case SyntaxKind::function:
      return "function";
    case SyntaxKind::call:
      return "call";
    case SyntaxKind::builtin:
      return "builtin";
    case SyntaxKind::decorator:
      return "decorator";
    case SyntaxKind::type:
      return "type";
    case SyntaxKind::parameter:
      return "parameter";
    case SyntaxKind::operator_:
      return "operator";
  }
  return "?";
}

// "keyword:def function:f", a line each.
std::string shown(std::string_view text) {
  const std::vector<std::string_view> lines = lines_of(text);
  const Spans spans = highlight_python(lines);
  std::string out;
  for (std::size_t k = 0; k < lines.size(); ++k) {
    if (k > 0) out += '\n';
    for (const SyntaxSpan& span : spans.at(k)) {
      if (&span != spans[k].data()) out += ' ';
      out += name_of(span.kind);
      out += ':';
      out += lines[k].substr(span.begin, span.end - span.begin);
    }
  }
  return out;
}

// What every result must be, whatever the text.
void expect_sound(const std::vector<std::string_view>& lines, const Spans& spans) {
  ASSERT_EQ(spans.size(), lines.size());
  for (std::size_t k = 0; k < lines.size(); ++k) {
    std::uint32_t reached = 0;
    for (const SyntaxSpan& span : spans[k]) {
      EXPECT_LE(reached, span.begin) << "line " << k;
      EXPECT_LT(span.begin, span.end) << "line " << k;
      EXPECT_LE(span.end, lines[k].size()) << "line " << k;
      EXPECT_NE(span.kind, SyntaxKind::plain) << "line " << k;
      reached = span.end;
    }
  }
}

std::string module_text() {
  std::ifstream file(PALLASCOPE_TEST_DATA "/package/test_backend.py");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Highlight, NamesThatDefineAndNamesThatAreCalled) {
  EXPECT_EQ(shown("def f(x, *rest, k=N, **more) -> int:\n"
                  "    return g(x) + a.b.h(x, key=len(rest))"),
            "keyword:def function:f parameter:x operator:* parameter:rest parameter:k operator:= operator:** "
            "parameter:more operator:-> type:int\n"
            "keyword:return call:g operator:+ call:h parameter:key operator:= builtin:len");
  EXPECT_EQ(shown("class A(Base): pass"), "keyword:class type:A keyword:pass");
  EXPECT_EQ(shown("k = lambda i, j: (i, 0)"), "operator:= keyword:lambda parameter:i parameter:j number:0");
}

TEST(Highlight, Annotations) {
  EXPECT_EQ(shown("def f(x: torch.Tensor, y: dict[str, Shape] = None): ..."),
            "keyword:def function:f parameter:x type:Tensor parameter:y type:dict type:str type:Shape "
            "operator:= constant:None constant:...");
  EXPECT_EQ(shown("n: int = 3"), "type:int operator:= number:3");
}

TEST(Highlight, LiteralsAndConstants) {
  EXPECT_EQ(shown("x = [1, -2.5e3, 0x1F, True, None, float('inf')]  # six"),
            "operator:= number:1 operator:- number:2.5e3 number:0x1F constant:True constant:None "
            "builtin:float string:'inf' comment:# six");
  EXPECT_EQ(shown("BLOCK_M = Block * N"), "constant:BLOCK_M operator:= operator:*");
}

TEST(Highlight, Keywords) {
  EXPECT_EQ(shown("if a and not b or c is not d and e not in f: raise E from None"),
            "keyword:if keyword:and keyword:not keyword:or keyword:is not keyword:and keyword:not in "
            "keyword:raise keyword:from constant:None");
  EXPECT_EQ(shown("from a.b import c as d\nfor i in x:\n  with y as z:\n    yield await i"),
            "keyword:from keyword:import keyword:as\nkeyword:for keyword:in\nkeyword:with keyword:as\n"
            "keyword:yield keyword:await");
  EXPECT_EQ(shown("print(x)\ntype(x)"), "builtin:print\nbuiltin:type");
}

TEST(Highlight, DecoratorsEndWhereTheirArgumentsBegin) {
  EXPECT_EQ(shown("@jit\n@functools.partial(jax.jit, static=N1)\ndef f(): pass"),
            "decorator:@ decorator:jit\n"
            "decorator:@ decorator:functools decorator:partial parameter:static operator:= constant:N1\n"
            "keyword:def function:f keyword:pass");
  EXPECT_EQ(shown("c = a @ b"), "operator:= operator:@");
}

TEST(Highlight, StringsOverSeveralLines) {
  EXPECT_EQ(shown("def f():\n    \"\"\"One.\n\n    Two # three\n    \"\"\"\n    return r'\\d'"),
            "keyword:def function:f\nstring:\"\"\"One.\n\nstring:    Two # three\nstring:    \"\"\"\n"
            "keyword:return string:r'\\d'");
  EXPECT_EQ(shown("x = 'a\\n' 'b'"), "operator:= string:'a\\n' string:'b'");
}

TEST(Highlight, FormattedStringsShowWhatTheyInterpolate) {
  EXPECT_EQ(shown("s = f'n={len(x):>3} {N1!r}.'"),
            "operator:= string:f'n= builtin:len string::>3 string:  constant:N1 string:.'");
}

TEST(Highlight, BytesNotCharacters) {
  const auto spans = highlight_python({"x = 'é→'  # ±"});
  ASSERT_EQ(spans[0].size(), 3u);
  EXPECT_EQ(spans[0][1], (SyntaxSpan{4, 11, SyntaxKind::string}));
  EXPECT_EQ(spans[0][2], (SyntaxSpan{13, 17, SyntaxKind::comment}));
}

TEST(Highlight, BrokenTextsKeepWhatCanBeUnderstood) {
  EXPECT_EQ(shown("def f(x,\nreturn 1  # c").substr(0, 22), "keyword:def function:f");
  EXPECT_NE(shown("def f(x,\nreturn 1  # c").find("comment:# c"), std::string::npos);
  const std::string after = shown("x = (1,\n\ndef g(y):\n    return 'a'\n");
  EXPECT_NE(after.find("number:1"), std::string::npos);
  EXPECT_NE(after.find("keyword:def function:g"), std::string::npos) << after;
  EXPECT_NE(after.find("string:'a'"), std::string::npos);
  for (const char* text : {"'''never closed\nx = 1", "))))", "    indented\n  less\n", "def", "@", "f'{",
                           "\\", "class\n\n", "\xff\xfe", "if x:\n\telse:", "x = 'open\ny = 1"}) {
    const auto lines = lines_of(text);
    expect_sound(lines, highlight_python(lines));
  }
}

TEST(Highlight, EdgesOfTheInput) {
  EXPECT_TRUE(highlight_python({}).empty());
  EXPECT_EQ(highlight_python({"", "", ""}), Spans(3));
  EXPECT_EQ(highlight_python({std::string_view("x = 1\0y", 7)}).size(), 1u);
  const std::string deep(20000, '(');  // deeper than a recursion could go
  const std::vector<std::string_view> lines{deep, "x = 1"};
  expect_sound(lines, highlight_python(lines));
}

TEST(Highlight, EveryPrefixOfAModuleIsSound) {
  const std::string text = module_text().substr(0, 4000);
  for (std::size_t size = 0; size < text.size(); size += 97) {
    const auto lines = lines_of(std::string_view(text).substr(0, size));
    expect_sound(lines, highlight_python(lines));
  }
}

TEST(Highlight, ThreadsDoNotDisturbEachOther) {
  const std::string text = module_text();
  ASSERT_GT(text.size(), 5000u);
  const auto lines = lines_of(text);
  const Spans expected = highlight_python(lines);
  std::vector<Spans> got(4);
  std::vector<std::jthread> threads;
  for (Spans& spans : got) threads.emplace_back([&] { spans = highlight_python(lines); });
  threads.clear();
  for (const Spans& spans : got) EXPECT_EQ(spans, expected);
}

TEST(Highlighter, GivesTheSameAsAllAtOnce) {
  const std::string text = module_text();
  const auto lines = lines_of(text);
  const Spans expected = highlight_python(lines);
  PythonHighlighter highlighter;
  highlighter.set_lines(lines);
  ASSERT_EQ(highlighter.size(), lines.size());
  for (std::size_t k = lines.size(); k-- > 0;)
    EXPECT_EQ(highlighter.line(k), expected[k]) << k << ": " << lines[k];
  EXPECT_TRUE(highlighter.line(lines.size()).empty());
}

TEST(Highlighter, ParsesOnlyWhatIsLookedAt) {
  PythonHighlighter highlighter;
  EXPECT_TRUE(highlighter.line(0).empty());
  highlighter.set_lines({"x = 1", "", "@a", "def f():", "    return 2", "def g():", "    return 3"});
  EXPECT_EQ(highlighter.parsed(), 0u);
  EXPECT_EQ(highlighter.line(4).size(), 2u);
  EXPECT_EQ(highlighter.line(2).size(), 2u);
  EXPECT_EQ(highlighter.parsed(), 1u);

  // f is the same in the next text, lower down; g is not.
  highlighter.set_lines(
      {"x = 1", "y = 1", "", "@a", "def f():", "    return 2", "def g():", "    return 4 + 4"});
  EXPECT_EQ(highlighter.line(5).size(), 2u);
  EXPECT_EQ(highlighter.parsed(), 1u);
  EXPECT_EQ(highlighter.line(7).size(), 4u);
  EXPECT_EQ(highlighter.parsed(), 2u);
  highlighter.set_lines({});
  EXPECT_EQ(highlighter.size(), 0u);
}

TEST(Highlighter, StringsAndBracketsAreNotCut) {
  PythonHighlighter highlighter;
  const std::vector<std::string_view> lines{"s = '''", "def no(): # '", "'''",      "t = (", "1,",
                                            ")",       "if x:",         "    pass", "else:", "    pass"};
  highlighter.set_lines(lines);
  const Spans expected = highlight_python(lines);
  for (std::size_t k = 0; k < lines.size(); ++k) EXPECT_EQ(highlighter.line(k), expected[k]) << lines[k];
  EXPECT_EQ(expected[1], (std::vector<SyntaxSpan>{{0, 13, SyntaxKind::string}}));
}

TEST(Highlighter, ALongStatementIsCutAndStillHighlighted) {
  std::string text = "ITEMS = [\n";
  for (int k = 0; k < 1000; ++k) text += "    {\"name\": \"a\", \"sizes\": (2, 16), \"ok\": True},\n";
  text += "]\ndef f():\n    x = 0\n";
  for (int k = 0; k < 1000; ++k) text += "    x = g(x, out=N1)  # step\n";
  const auto lines = lines_of(text);
  const Spans expected = highlight_python(lines);
  PythonHighlighter highlighter;
  highlighter.set_lines(lines);
  EXPECT_FALSE(highlighter.line(500).empty());
  EXPECT_EQ(highlighter.parsed(), 1u);
  std::size_t different = 0;
  for (std::size_t k = 0; k < lines.size(); ++k) different += highlighter.line(k) != expected[k];
  EXPECT_LE(different, 2 * lines.size() / PythonHighlighter::longest_piece);
  EXPECT_GE(highlighter.parsed(), lines.size() / PythonHighlighter::longest_piece);
}

}  // namespace
}  // namespace pallascope::model
