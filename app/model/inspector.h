// Room: model. Everything about the selected thing, as titled rows with links.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/model/selection.h"
#include "core/session/compilation.h"

namespace pallascope::model {

/// A piece of a value; with a selection it is a link.
struct InspectorPiece {
  enum class Tone : std::uint8_t { normal, dim, code, good, bad };
  std::string text;
  Selection selection;
  Tone tone = Tone::normal;
};

/// `label: value`. In a list, the label is an id and the row as a whole is a link.
struct InspectorRow {
  std::string label;
  std::vector<InspectorPiece> pieces;
  std::string aside;    ///< in a list: at the right, dim; left out where there is no room
  Selection selection;  ///< in a list: what a click on the row selects
  char letter = ' ';    ///< access class in front of the value; a blank for none
  std::string hint;     ///< shown on hover
  /// The pieces' texts.
  [[nodiscard]] std::string text() const;
};

struct InspectorSection {
  std::string title;
  std::vector<InspectorRow> rows;
  bool list = false;    ///< rows of one line each, maybe thousands
  bool folded = false;  ///< at first
};

/// What the Inspector shows. Labels are unique in their section.
struct Inspector {
  std::string
      kind;  ///< `node`, `kernel`, `buffer`, `decision`, `module`, `access`, `statement`, `loop nest`, `program`
  std::string id;        ///< `n21`; empty for what has none
  std::string title;     ///< `add`: what the copy button copies
  std::string subtitle;  ///< `aten.add.Tensor`
  std::vector<InspectorSection> sections;
  std::vector<std::string> hints;  ///< sentences at the end: what to click

  /// The first row with this label, in the section of this title if one is given; nullptr if there is none.
  [[nodiscard]] const InspectorRow* find(std::string_view label, std::string_view section = {}) const;
  [[nodiscard]] const InspectorSection* section(std::string_view title) const;
};

/// An overview of the program for an empty selection, and for one that is not of this snapshot. Asks the index
/// analysis for a kernel's grid: call it where snapshots are made.
Inspector inspector(const session::Compilation& compilation, const session::Snapshot& snapshot,
                    const Selection& selection);

}  // namespace pallascope::model
