// Room: codegen. Lines of Python with what each came from.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/codegen/module.h"

namespace pallascope::codegen {

/// A growing text; every line carries its origin.
class Text {
 public:
  void line(std::string text, LineOrigin origin = {}) {
    lines_.push_back(std::move(text));
    origins_.push_back(origin);
  }
  /// Adds text of several lines (a final newline is not a line of its own).
  void block(std::string_view text);
  void append(const Text& other) {
    lines_.insert(lines_.end(), other.lines_.begin(), other.lines_.end());
    origins_.insert(origins_.end(), other.origins_.begin(), other.origins_.end());
  }
  void append(const Piece& other) {
    lines_.insert(lines_.end(), other.lines.begin(), other.lines.end());
    origins_.insert(origins_.end(), other.origins.begin(), other.origins.end());
  }
  /// All of it, to be shared; the text is empty then.
  std::shared_ptr<const Piece> take();
  [[nodiscard]] int count() const { return static_cast<int>(lines_.size()); }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }
  [[nodiscard]] const std::vector<LineOrigin>& origins() const { return origins_; }

 private:
  std::vector<std::string> lines_;
  std::vector<LineOrigin> origins_;
};

}  // namespace pallascope::codegen
