// Room: repl. From text to commands and words: separators, quotes, Python lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace pallascope::repl {

/// The words of one command, split at blanks. '...' and "..." hold blanks together, a backslash takes the next
/// character as it is (not inside '...'). An open quote is a usage diagnostic.
Result<std::vector<std::string>> split_words(std::string_view text);

/// The commands of a text: separated by `;` or a newline outside quotes; blank ones and `#` comments are left out. A
/// Python block (`def`, `class`, `@`, or a line of Python that ends with a colon) goes on to the first empty line.
/// `python_lines`: a line of Python goes to its end, `;` and `#` included, as at the prompt and in scripts; without
/// it `;` ends that too, as in `-c "py 1 + 1; check"`.
std::vector<std::string> split_commands(std::string_view text, bool python_lines = false);

/// Whether a line is Python for the host: its first word is def, class, import, from or py, or it starts with @.
bool is_python(std::string_view line);
/// Whether more lines belong to the Python that `line` begins.
bool opens_block(std::string_view line);
/// The Python in such a line: without the word `py`.
std::string python_text(std::string_view line);

/// `word` so that split_words gives it back as one word.
std::string quote_word(std::string_view word);

/// Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other (the restricted
/// Damerau-Levenshtein distance).
std::size_t edit_distance(std::string_view a, std::string_view b);
/// The nearest of `candidates` to `word`: one that begins with it, else one within a third of the word's letters
/// (at least 2). Empty when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace pallascope::repl
