// Room: model. Why a decision went as it did: conditions in order, index expressions term by term.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "app/model/selection.h"
#include "core/session/compilation.h"

namespace pallascope::model {

/// A step of the path of a cycle, or what an operator became.
struct WhyStep {
  enum class Role : std::uint8_t {
    first,
    between,
    last
  };  ///< of a path: the side that is needed, ..., that is fed
  Role role = Role::between;
  std::string text;   ///< `linear_2`
  bool call = false;  ///< a library or torch call: no kernel can take it in
  Selection selection;
};

struct WhyCondition {
  schedule::Condition condition = schedule::Condition::order_and_aliasing;
  schedule::ConditionState state = schedule::ConditionState::not_reached;
  std::string name;           ///< `common grid`
  std::string words;          ///< what the evidence says; never empty
  std::string asks;           ///< what the condition is, for a person who meets it first
  std::vector<WhyStep> path;  ///< of a cycle
  double filled =
      -1;  ///< of fits on chip: working set over budget, with the smallest tile; negative: not known

  /// `✓`, `✗`, `–`.
  [[nodiscard]] std::string_view sign() const;
};

/// One term of both expressions. Empty where the side lacks it.
struct WhyTerm {
  std::string name;         ///< `i0`, `i1 / r1`, `(3*i + j)//4`, `1`
  std::string left, right;  ///< coefficients
  std::string range;        ///< `i0 < 2`; `i1 < 16, r1 < 8` when they differ; empty for what is no axis
  bool same = false;
};

/// How one side of an IndexPair uses the buffer.
struct WhyAccess {
  std::string name;        ///< of the nest: `add`, `softmax.max`
  std::string verb;        ///< `writes`, `reads`
  std::string expression;  ///< `1024*i0 + 64*i1 + i2`
  std::string axes;        ///< `i0 < 2, i1 < 16`
  char letter = ' ';       ///< access class; a blank where the analysis does not know it
  std::string words;       ///< of the class: `contiguous`
  Selection selection;     ///< the node
};

struct WhyIndices {
  std::string buffer, shape, bytes;  ///< `buf31`, `f32[2,16,64]`, `8 KiB`
  Selection selection;               ///< the buffer, if this snapshot has it
  WhyAccess left, right;
  std::vector<WhyTerm> terms;
  std::size_t differing = 0;  ///< terms that are not the same
  std::string verdict;        ///< `the same on both sides`, `2 terms differ`
};

struct WhyNode {
  trace::NodeId node;
  std::string id, name, target, shape, place;
};
struct WhySide {
  std::string title;  ///< `Left side`, `Producer`, `Consumers`, `Operator`
  std::vector<WhyNode> nodes;
};

struct WhyFigure {
  std::string label, value;  ///< `would save`, `8 KiB`
  std::string hint;
};

/// What the Why panel shows of one decision.
struct WhyView {
  schedule::DecisionId id;
  schedule::DecisionKind kind = schedule::DecisionKind::lower;
  bool accepted = false;
  std::string id_text, kind_text;  ///< `d63`, `fuse`
  std::string title;               ///< `add (+2) × add_1`
  std::string verdict;             ///< `refused: cycle`
  std::string sentence;            ///< the whole reason in plain words, with the names of this decision
  std::string note;                ///< of lowering: why PyTorch runs it
  std::string legal_if;  ///< the smallest change that would make it legal, without `legal if`; may be empty
  std::vector<WhyCondition> conditions;
  std::vector<WhyIndices> indices;
  std::vector<WhyStep> became;  ///< of lowering: nests and calls
  std::vector<WhySide> sides;
  std::vector<WhyFigure> figures;

  /// Decisions about the same thing, in the order of the log, this one among them.
  std::vector<schedule::DecisionId> choices;
  std::string about;             ///< what they are about: `add`, `k3`, `this pair`
  bool about_selection = false;  ///< they are about what was selected, not about this decision's two sides

  [[nodiscard]] std::string_view sign() const { return accepted ? "✓" : "✗"; }
};

/// `about`: what is selected; a node, kernel, buffer, statement or access gives the other decisions about it as
/// choices. Reads the compilation's expressions and asks the index analysis for classes: call it where snapshots are
/// made.
WhyView why_view(const session::Compilation& compilation, const session::Snapshot& snapshot,
                 schedule::DecisionId id, const Selection& about = {});

}  // namespace pallascope::model
