#include "tests/golden/golden.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>

#include <gtest/gtest.h>

#include "core/report/diff.h"

namespace pallascope::golden {

bool& updating() {
  static bool value = [] {
    const char* wish = std::getenv("PALLASCOPE_UPDATE_GOLDEN");
    return wish != nullptr && std::string_view(wish) == "1";
  }();
  return value;
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::path(PALLASCOPE_TEST_DATA) / "golden" / "expected" / name;
  std::string before;
  const bool exists = std::filesystem::exists(path);
  if (exists) {
    std::ostringstream content;
    content << std::ifstream(path, std::ios::binary).rdbuf();
    before = content.str();
  }
  if (exists && before == text) return;
  if (updating()) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    std::cout << (exists ? "changed " : "made ") << path.string() << "\n";
    return;
  }
  ADD_FAILURE() << (exists ? report::unified_diff(report::diff_lines(before, text), name, "now")
                           : "there is no " + name + " yet\n")
                << "If that is as it should be: build/tests/test_golden --update (or "
                   "PALLASCOPE_UPDATE_GOLDEN=1), and read the diff.";
}

}  // namespace pallascope::golden

int main(int count, char** words) {
  ::testing::InitGoogleTest(&count, words);
  for (int k = 1; k < count; ++k) {
    if (std::string_view(words[k]) == "--update") {
      pallascope::golden::updating() = true;
    } else {
      std::cerr << "test_golden does not know '" << words[k]
                << "'; it takes --update and GoogleTest's flags.\n";
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
