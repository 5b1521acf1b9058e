// The parts of the client that need no process: frames, the log, the command line.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "python_bridge/client/frame.h"
#include "python_bridge/client/launch.h"
#include "python_bridge/client/log.h"
#include "python_bridge/client/protocol.h"
#include "tests/unit/client/support.h"

namespace pallascope::host::test {
namespace {

/// Gives `bytes` to the reader in pieces of `piece` and returns the frames; stops at an error.
std::vector<Frame> feed(FrameReader& reader, std::string_view bytes, std::size_t piece) {
  std::vector<Frame> frames;
  while (!bytes.empty() && reader.error().empty()) {
    const auto space = reader.space();
    const std::size_t count = std::min({piece, space.size(), bytes.size()});
    std::memcpy(space.data(), bytes.data(), count);
    bytes.remove_prefix(count);
    reader.filled(count);
    if (auto frame = reader.take()) frames.push_back(std::move(*frame));
  }
  return frames;
}

TEST(Frame, PrefixIsLittleEndian) {
  EXPECT_EQ(frame_prefix(0x04030201, 0x0102030405060708),
            std::string("\x01\x02\x03\x04\x08\x07\x06\x05\x04\x03\x02\x01", 12));
}

TEST(Frame, PiecesOfAnySizeGiveTheSameMessages) {
  const std::string body("\0body\xff", 6);
  const std::string bytes = frame_prefix(7, 0) + R"({"a":1})" + frame_prefix(2, body.size()) + "{}" + body;
  for (const std::size_t piece : {1, 2, 3, 5, 100}) {
    FrameReader reader;
    const auto frames = feed(reader, bytes, piece);
    ASSERT_EQ(frames.size(), 2U) << piece;
    EXPECT_EQ(frames[0].header, R"({"a":1})");
    EXPECT_EQ(frames[0].body, "");
    EXPECT_EQ(frames[1].header, "{}");
    EXPECT_EQ(frames[1].body, body);
    EXPECT_TRUE(reader.between_messages());
    EXPECT_EQ(reader.error(), "");
  }
}

TEST(Frame, TextIsFoundOutAtItsFourthByte) {
  for (const std::string text : {"junk", "a\tb\t", "ab\n\n", "\xff\xff\xff\xff", "Traceback (most recent call last)"}) {
    FrameReader reader;
    feed(reader, text.substr(0, 4), 1);
    EXPECT_NE(reader.error(), "") << text;
  }
  FrameReader reader;
  feed(reader, std::string("\0\0\0\0", 4), 1);
  EXPECT_NE(reader.error(), "") << "an empty header is no JSON object";
}

TEST(Frame, AHeaderThatIsNoObjectIsFoundOutAtItsFirstByte) {
  FrameReader reader;
  feed(reader, frame_prefix(1000, 0) + "[", 1);
  EXPECT_EQ(reader.error(), "\"[\" where a JSON object was expected");
}

TEST(Frame, ABodyOfNonsenseSizeIsRefusedBeforeItIsAllocated) {
  FrameReader reader;
  feed(reader, frame_prefix(2, std::size_t{1} << 60), 12);
  EXPECT_NE(reader.error().find("1152921504606846976"), std::string::npos) << reader.error();
}

TEST(Frame, SaysHowMuchOfABrokenMessageCame) {
  FrameReader reader;
  feed(reader, frame_prefix(10, 90) + "{234567890" + "body", 12);
  EXPECT_FALSE(reader.between_messages());
  EXPECT_EQ(reader.progress(), "26 of 112 bytes");
}

TEST(Text, Utf8IsKeptAndTheRestReplaced) {
  EXPECT_EQ(valid_utf8("a\u00e9\u20ac\U0001f600z"), "a\u00e9\u20ac\U0001f600z");
  EXPECT_EQ(valid_utf8("a\xff""b"), "a\ufffd""b");
  EXPECT_EQ(valid_utf8("\xc3"), "\ufffd");                          // broken off
  EXPECT_EQ(valid_utf8("\xc0\xaf"), "\ufffd\ufffd");                // overlong
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");      // a surrogate
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd");  // above U+10FFFF
  EXPECT_EQ(printable("a\n\x01\xff", 10), "a\\n\\x01\\xff");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
}

TEST(Log, GivesWhatIsNewAndForgetsWhatIsOld) {
  Log log;
  EXPECT_EQ(log.append("one\n"), 4U);
  const LogPart first = log.from(0);
  EXPECT_EQ(first.text, "one\n");
  log.append("two\n");
  EXPECT_EQ(log.from(first.end).text, "two\n");
  EXPECT_EQ(log.from(log.from(0).end).text, "");
  EXPECT_EQ(log.from(1'000'000).text, "");
  for (int i = 0; i < 10'000; ++i) log.append("a line of thirty characters..\n");
  EXPECT_EQ(log.from(0).text.size(), 64U << 10);
  EXPECT_EQ(log.from(0).end, 8U + 300'000U);
  log.append("the end");
  EXPECT_TRUE(log.from(0).text.ends_with("the end"));
}

TEST(Log, LastWordsAreOfOneProcessAndFew) {
  Log log;
  const auto begin = log.append("of an earlier process\n");
  EXPECT_EQ(log.last_words(begin), "");
  log.append("a\nb\n\n");
  EXPECT_EQ(log.last_words(begin), "\nIts last words:\n  a\n  b");
  for (int i = 0; i < 100; ++i) log.append("line " + std::to_string(i) + "\n");
  const std::string words = log.last_words(begin);
  EXPECT_EQ(words.find("line 75"), std::string::npos);
  EXPECT_NE(words.find("\n  line 76\n"), std::string::npos);
  EXPECT_TRUE(words.ends_with("line 99"));
}

TEST(Protocol, AnErrorKeepsAKindThatWeKnow) {
  const Diagnostic known =
      read_error({{"kind", "invalid_argument"}, {"message", "m"}, {"where", "w"}, {"remedy", "r"}});
  EXPECT_EQ(known.kind, DiagnosticKind::invalid_argument);
  EXPECT_EQ(known.message + known.where + known.remedy, "mwr");
  EXPECT_EQ(read_error({{"kind", "of another version"}, {"message", "m"}}).kind, DiagnosticKind::host_error);
  EXPECT_EQ(read_error(Json::array()).kind, DiagnosticKind::host_error);
  EXPECT_NE(read_error(nullptr).message, "");
}

TEST(Protocol, NothingInAReplyThrows) {
  for (const Json& value : {Json(), Json(1), Json("text"), Json::array({1}), Json::object()}) {
    for (const char* key : {"ok", "result", "devices", "fraction", "text", "protocol", "pid"}) {
      const Json reply = {{key, value}};
      EXPECT_FALSE(is_ok(reply));
      read_hello(reply);
      read_progress(reply);
      read_error(reply);
      object_of(reply, "result");
    }
    read_hello(value);
    EXPECT_FALSE(is_ok(value));
  }
}

TEST(Launch, PythonsOwnVariablesStayOutside) {
  setenv("PYTHONPATH", "/somewhere/else", 1);
  setenv("PYTHONHOME", "/nowhere", 1);
  setenv("PALLASCOPE_TEST_VARIABLE", "stays", 1);
  Options options = fake();
  options.paths = {"/one", "/two"};
  const auto count = [](const Command& command, const std::string& entry) {
    return std::count(command.environment.begin(), command.environment.end(), entry);
  };
  const Command external = host_command(options, false);
  EXPECT_EQ(count(external, "PYTHONPATH=/one:/two"), 1);
  EXPECT_EQ(count(external, "PYTHONPATH=/somewhere/else") + count(external, "PYTHONHOME=/nowhere"), 0);
  EXPECT_EQ(count(external, "PALLASCOPE_TEST_VARIABLE=stays"), 1);
  const Command embedded = host_command(options, true);
  EXPECT_EQ(count(embedded, "PYTHONPATH=/somewhere/else") + count(embedded, "PYTHONHOME=/nowhere"), 0);
  EXPECT_EQ(std::vector(embedded.arguments.begin() + 1, embedded.arguments.end()),
            (std::vector<std::string>{"--python", PALLASCOPE_HOST_PYTHON, "--path", "/one", "--path", "/two"}));
  for (const char* name : {"PYTHONPATH", "PYTHONHOME", "PALLASCOPE_TEST_VARIABLE"}) unsetenv(name);
}

TEST(Launch, TheVariableChoosesThePython) {
  setenv("PALLASCOPE_PYTHON", "/chosen/python", 1);
  EXPECT_EQ(find_python(), "/chosen/python");
  setenv("PALLASCOPE_PYTHON", "", 1);
  EXPECT_EQ(find_python(), PALLASCOPE_HOST_PYTHON);
  unsetenv("PALLASCOPE_PYTHON");
  EXPECT_EQ(find_python(), PALLASCOPE_HOST_PYTHON);
}

}  // namespace
}  // namespace pallascope::host::test
