#include "app/model/highlight.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <tree_sitter/api.h>

extern "C" const TSLanguage* tree_sitter_python(void);

namespace pallascope::model {
namespace {

// What the walk has to know of a symbol of the grammar.
enum class Shape : std::uint8_t {
  other,
  comment,
  string_part,  // quotes, content, format
  number,
  constant,
  keyword,
  operator_,
  at,  // decorator or matrix product
  identifier,
  attribute,
  call,
  arguments,
  annotation,  // the grammar's `type`
  keyword_argument,
  parameters,         // and what stands in them: its identifiers are parameters
  default_parameter,  // only its name is
  decorator,
};

struct Grammar {
  std::vector<Shape> shapes;  // of a symbol
  TSSymbol def = 0, class_ = 0;
  TSFieldId name = 0, function = 0, attribute = 0;

  // One table, made once: a query that says the same takes three times as long.
  static const Grammar& get() {
    static const Grammar made;
    return made;
  }

  // The symbol of an error lies beyond the table.
  [[nodiscard]] Shape shape(TSSymbol symbol) const {
    return symbol < shapes.size() ? shapes[symbol] : Shape::other;
  }

 private:
  Grammar() {
    static const std::unordered_map<std::string_view, Shape> named = {
        {"comment", Shape::comment},
        {"string_start", Shape::string_part},
        {"string_content", Shape::string_part},
        {"string_end", Shape::string_part},
        {"format_specifier", Shape::string_part},
        {"integer", Shape::number},
        {"float", Shape::number},
        {"true", Shape::constant},
        {"false", Shape::constant},
        {"none", Shape::constant},
        {"ellipsis", Shape::constant},
        {"identifier", Shape::identifier},
        {"attribute", Shape::attribute},
        {"call", Shape::call},
        {"argument_list", Shape::arguments},
        {"type", Shape::annotation},
        {"keyword_argument", Shape::keyword_argument},
        {"parameters", Shape::parameters},
        {"lambda_parameters", Shape::parameters},
        {"typed_parameter", Shape::parameters},
        {"default_parameter", Shape::default_parameter},
        {"typed_default_parameter", Shape::default_parameter},
        {"decorator", Shape::decorator},
    };
    const TSLanguage* language = tree_sitter_python();
    shapes.resize(ts_language_symbol_count(language), Shape::other);
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      const auto symbol = static_cast<TSSymbol>(k);
      const std::string_view word = ts_language_symbol_name(language, symbol);
      if (ts_language_symbol_type(language, symbol) == TSSymbolTypeRegular) {
        if (const auto found = named.find(word); found != named.end()) shapes[k] = found->second;
        continue;
      }
      if (ts_language_symbol_type(language, symbol) != TSSymbolTypeAnonymous || word.empty()) continue;
      if (word.front() >= 'a' && word.front() <= 'z') {
        shapes[k] = Shape::keyword;
        if (word == "def") def = symbol;
        if (word == "class") class_ = symbol;
      } else if (word == "@") {
        shapes[k] = Shape::at;
      } else if (word.find_first_not_of("+-*/%@&|^~<>=!:") == std::string_view::npos && word != ":") {
        shapes[k] = Shape::operator_;
      }
    }
    const auto field = [&](std::string_view word) {
      return ts_language_field_id_for_name(language, word.data(), static_cast<std::uint32_t>(word.size()));
    };
    name = field("name");
    function = field("function");
    attribute = field("attribute");
  }
};

bool in_capitals(std::string_view name) {
  return name.size() > 1 && name.front() >= 'A' && name.front() <= 'Z' &&
         std::ranges::all_of(
             name, [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
}

bool is_builtin(std::string_view name) {
  static const std::unordered_set<std::string_view> names = {
      "abs",        "all",      "any",       "bool",    "bytes",  "callable", "chr",          "dict",
      "dir",        "divmod",   "enumerate", "filter",  "float",  "format",   "frozenset",    "getattr",
      "globals",    "hasattr",  "hash",      "hex",     "id",     "int",      "input",        "isinstance",
      "issubclass", "iter",     "len",       "list",    "locals", "map",      "max",          "min",
      "next",       "object",   "open",      "ord",     "pow",    "print",    "range",        "repr",
      "reversed",   "round",    "set",       "setattr", "slice",  "sorted",   "staticmethod", "str",
      "sum",        "super",    "tuple",     "type",    "vars",   "zip",      "bytearray",    "classmethod",
      "complex",    "property", "exec",      "eval"};
  return names.contains(name);
}

// Puts spans of the whole text, which come in ascending order, into lines.
class Lines {
 public:
  // `starts` has the offset of each line, and one more: the offset after the last line end.
  explicit Lines(std::vector<std::uint32_t> starts)
      : starts_(std::move(starts)), spans_(starts_.size() - 1) {}

  void add(std::uint32_t begin, std::uint32_t end, SyntaxKind kind) {
    begin = std::max(begin, reached_);
    reached_ = std::max(reached_, end);
    while (begin < end) {
      while (line_ + 1 < spans_.size() && begin >= starts_[line_ + 1]) ++line_;
      const std::uint32_t length = starts_[line_ + 1] - 1 - starts_[line_];
      const std::uint32_t from = begin - starts_[line_], to = std::min(end - starts_[line_], length);
      std::vector<SyntaxSpan>& spans = spans_[line_];
      // A string is several nodes, and one span.
      if (kind == SyntaxKind::string && !spans.empty() && spans.back().kind == kind &&
          spans.back().end == from) {
        spans.back().end = std::max(spans.back().end, to);
      } else if (from < to) {
        spans.push_back({from, to, kind});
      }
      if (line_ + 1 == spans_.size()) return;
      begin = starts_[line_ + 1];
    }
  }
  std::vector<std::vector<SyntaxSpan>> take() { return std::move(spans_); }

 private:
  std::vector<std::uint32_t> starts_;
  std::vector<std::vector<SyntaxSpan>> spans_;
  std::size_t line_ = 0;
  std::uint32_t reached_ = 0;
};

// Walks the tree once, without recursion: sources may be nested deeper than the stack.
class Walk {
 public:
  Walk(const TSTree* tree, std::string_view text, Lines& lines)
      : text_(text), lines_(lines), cursor_(ts_tree_cursor_new(ts_tree_root_node(tree))) {}
  ~Walk() { ts_tree_cursor_delete(&cursor_); }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  void run() {
    frames_.push_back({});
    while (true) {
      Frame below;
      if (enter(below) && ts_tree_cursor_goto_first_child(&cursor_)) {
        frames_.push_back(below);
        continue;
      }
      while (!ts_tree_cursor_goto_next_sibling(&cursor_)) {
        if (!ts_tree_cursor_goto_parent(&cursor_)) return;
        frames_.pop_back();
      }
    }
  }

 private:
  // What a node passes on to its children.
  struct Frame {
    Shape shape = Shape::other;
    SyntaxKind last = SyntaxKind::plain;   // of an attribute: what its last name is
    SyntaxKind names = SyntaxKind::plain;  // of all names: type in an annotation, decorator in a decorator
    bool parameter = false;                // of splats and tuples in a list of parameters
  };

  // Whether the children matter; then `below` is for them.
  bool enter(Frame& below) {
    const TSNode node = ts_tree_cursor_current_node(&cursor_);
    const TSSymbol symbol = ts_node_symbol(node);
    const Shape shape = grammar_.shape(symbol);
    const Frame& frame = frames_.back();
    switch (shape) {
      case Shape::comment:
        return emit(node, SyntaxKind::comment);
      case Shape::string_part:
        return emit(node, SyntaxKind::string);
      case Shape::number:
        return emit(node, SyntaxKind::number);
      case Shape::constant:
        return emit(node, SyntaxKind::constant);
      case Shape::keyword:
        return emit(node, SyntaxKind::keyword);
      case Shape::operator_:
        return emit(node, SyntaxKind::operator_);
      case Shape::at:
        return emit(node, frame.shape == Shape::decorator ? SyntaxKind::decorator : SyntaxKind::operator_);
      case Shape::identifier:
        return emit(node, kind_of_name(node, frame));
      case Shape::attribute:
        below.names = frame.names;
        below.last = frame.names != SyntaxKind::plain                            ? frame.names
                     : frame.shape == Shape::call && in_field(grammar_.function) ? SyntaxKind::call
                                                                                 : SyntaxKind::plain;
        break;
      case Shape::arguments:
        break;  // of a decorator or a type: ordinary again
      case Shape::annotation:
        below.names = SyntaxKind::type;
        break;
      case Shape::decorator:
        below.names = SyntaxKind::decorator;
        break;
      case Shape::parameters:
        below.parameter = true;
        break;
      case Shape::other:
        below.names = frame.names;
        below.parameter = frame.parameter;  // (*args), ((a, b))
        break;
      case Shape::call:
        below.names = frame.names;
        break;
      default:
        break;
    }
    below.shape = shape;
    return true;
  }

  bool emit(const TSNode& node, SyntaxKind kind) {
    before_ = ts_node_symbol(node);
    if (kind != SyntaxKind::plain) lines_.add(ts_node_start_byte(node), ts_node_end_byte(node), kind);
    return false;
  }

  bool in_field(TSFieldId field) const { return ts_tree_cursor_current_field_id(&cursor_) == field; }

  SyntaxKind kind_of_name(const TSNode& node, const Frame& frame) const {
    const std::uint32_t begin = ts_node_start_byte(node);
    const std::string_view name = text_.substr(begin, ts_node_end_byte(node) - begin);
    // By the word before it: an unfinished definition is no definition to the grammar.
    if (before_ == grammar_.def) return SyntaxKind::function;
    if (before_ == grammar_.class_) return SyntaxKind::type;
    switch (frame.shape) {
      case Shape::keyword_argument:
      case Shape::default_parameter:
        if (in_field(grammar_.name)) return SyntaxKind::parameter;
        break;
      case Shape::call:
        if (frame.names == SyntaxKind::plain && in_field(grammar_.function))
          return is_builtin(name) ? SyntaxKind::builtin : SyntaxKind::call;
        break;
      case Shape::attribute:
        if (frame.last != SyntaxKind::plain && in_field(grammar_.attribute)) return frame.last;
        if (frame.names == SyntaxKind::type) return SyntaxKind::plain;  // torch of torch.Tensor
        break;
      default:
        break;
    }
    if (frame.names != SyntaxKind::plain) return frame.names;
    if (frame.parameter) return SyntaxKind::parameter;
    return in_capitals(name) ? SyntaxKind::constant : SyntaxKind::plain;
  }

  const Grammar& grammar_ = Grammar::get();
  std::string_view text_;
  Lines& lines_;
  TSTreeCursor cursor_;
  std::vector<Frame> frames_;
  TSSymbol before_ = 0;  // of the last leaf, plain punctuation aside
};

struct Delete {
  void operator()(TSParser* parser) const { ts_parser_delete(parser); }
  void operator()(TSTree* tree) const { ts_tree_delete(tree); }
};

// `text` has a line end after each line; `starts` as in Lines.
std::vector<std::vector<SyntaxSpan>> highlight(std::string_view text, std::vector<std::uint32_t> starts) {
  Lines lines(std::move(starts));
  const std::unique_ptr<TSParser, Delete> parser(ts_parser_new());
  if (text.empty() || !ts_parser_set_language(parser.get(), tree_sitter_python())) return lines.take();
  const std::unique_ptr<TSTree, Delete> tree(
      ts_parser_parse_string(parser.get(), nullptr, text.data(), static_cast<std::uint32_t>(text.size())));
  if (tree != nullptr) Walk(tree.get(), text, lines).run();
  return lines.take();
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f'; }

// Follows strings of three quotes from line to line; whatever else goes on in a line ends with it.
class StringScan {
 public:
  [[nodiscard]] bool inside() const { return quote_ != 0; }

  void line(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
      if (quote_ != 0) {
        const std::array<char, 3> end{quote_, quote_, quote_};
        while (at < text.size() && !text.substr(at).starts_with(std::string_view(end.data(), end.size())))
          at += text[at] == '\\' ? 2 : 1;
        if (at >= text.size()) return;
        quote_ = 0;
        at += end.size();
        continue;
      }
      at = text.find_first_of("#'\"", at);
      if (at == std::string_view::npos || text[at] == '#') return;
      const char quote = text[at];
      if (at + 2 < text.size() && text[at + 1] == quote && text[at + 2] == quote) {
        quote_ = quote;
        at += 3;
        continue;
      }
      for (++at; at < text.size() && text[at] != quote;) at += text[at] == '\\' ? 2 : 1;
      ++at;
    }
  }

 private:
  char quote_ = 0;
};

}  // namespace

std::vector<std::vector<SyntaxSpan>> highlight_python(const std::vector<std::string_view>& lines) {
  std::size_t size = 0;
  for (const std::string_view line : lines) size += line.size() + 1;
  if (size > std::numeric_limits<std::uint32_t>::max())
    return std::vector<std::vector<SyntaxSpan>>(lines.size());
  std::string text;
  text.reserve(size);
  std::vector<std::uint32_t> starts;
  starts.reserve(lines.size() + 1);
  for (const std::string_view line : lines) {
    starts.push_back(static_cast<std::uint32_t>(text.size()));
    text += line;
    text += '\n';
  }
  starts.push_back(static_cast<std::uint32_t>(text.size()));
  return highlight(text, std::move(starts));
}

void PythonHighlighter::set_lines(const std::vector<std::string_view>& lines) {
  std::vector<Piece> pieces;
  StringScan strings;
  bool decorated = false;  // the line before is a decorator: what it decorates is in the same piece
  for (std::size_t k = 0; k < lines.size(); ++k) {
    const std::string_view line = lines[k];
    const bool outside = !strings.inside();
    // else, except and closing brackets go on with what was begun above.
    const bool statement = !line.empty() && !is_space(line.front()) && line.find_first_of(")]}") != 0 &&
                           !line.starts_with("else") && !line.starts_with("elif") &&
                           !line.starts_with("except") && !line.starts_with("finally");
    if (pieces.empty() || (outside && ((statement && !decorated) || pieces.back().count >= longest_piece)))
      pieces.push_back({.first = k, .count = 0, .text = {}, .spans = {}, .done = false});
    Piece& piece = pieces.back();
    ++piece.count;
    piece.text += line;
    piece.text += '\n';
    if (outside) decorated = line.starts_with('@');
    strings.line(line);
  }

  std::unordered_map<std::string_view, Piece*> known;
  for (Piece& piece : pieces_) {
    if (piece.done) known.emplace(piece.text, &piece);
  }
  for (Piece& piece : pieces) {
    const auto found = known.find(piece.text);
    if (found == known.end() || found->second->count != piece.count) continue;
    piece.spans = found->second->spans;  // copied: a text may have the same piece twice
    piece.done = true;
  }
  pieces_ = std::move(pieces);
}

const std::vector<SyntaxSpan>& PythonHighlighter::line(std::size_t index) {
  static const std::vector<SyntaxSpan> none;
  if (index >= size()) return none;
  Piece& piece = *std::prev(std::ranges::upper_bound(pieces_, index, {}, &Piece::first));
  if (!piece.done) {
    std::vector<std::string_view> lines;
    lines.reserve(piece.count);
    const std::string_view text = piece.text;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    piece.spans = highlight_python(lines);
    piece.spans.resize(piece.count);
    piece.done = true;
    ++parsed_;
  }
  return piece.spans[index - piece.first];
}

}  // namespace pallascope::model
