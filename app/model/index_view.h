// Room: model. The accesses of the selected thing: words, expression, and the tensor as a grid coloured by class.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/model/selection.h"
#include "app/model/tensor_grid.h"
#include "core/session/compilation.h"

namespace pallascope::model {

/// One axis of an access, outermost first.
struct AxisStride {
  std::string name;
  std::int64_t extent = 1;
  std::optional<std::int64_t> stride;  ///< elements; absent where the expression is not affine
  std::string
      note;  ///< `neighbours`, `repeats`, `skips 63`, `goes back`, `packed`, `overlaps`; empty for one step
  bool reduced = false, innermost = false;  ///< the innermost axis of more than one step
};

/// Everything about one access. Texts are for people; none ends in a newline.
struct AccessDetail {
  std::string words;               ///< `broadcast along i3: each element is used 16 times`
  std::string head;                ///< `load  b18 buf18 f32[2,4,16,16]`
  std::string source;              ///< the expression in the kernel
  int line = 0;                    ///< of the module; 0 where it has none of its own
  std::string from;                ///< `n11 div  model.py:25`; empty if the node is not known
  std::string expression, ranges;  ///< `64*i0 + i1` and `i0 < 16, i1 < 64`
  std::vector<AxisStride> axes;
  std::int64_t offset = 0;
  bool affine = false;
  std::string plan;
  std::string bounds;      ///< `0 .. 2047 of 2,048 elements`
  bool in_bounds = false;  ///< proved
  bool injective = false;  ///< proved
  std::string distinct;    ///< `2,048 elements, each by one step`
  std::int64_t bytes_used = 0, bytes_spanned = 0;
  std::string bytes;  ///< `4 of 64 bytes used`
  int assertion_line =
      0;  ///< of the module: where `main` asserts the layout of the parameter; 0 if it asserts none
  std::string assertion;  ///< that line, or a sentence why there is none
  std::string
      assertion_short;  ///< `131: torch.float32, (8, 16), (16, 1)`: the line, and what is asserted by it
  TensorGrid grid;
};

/// One access of the list.
struct AccessRow {
  int access = -1;  ///< position in Module::accesses; -1 for an operand of a library call
  char letter = ' ';
  bool store = false;
  bool on_value = false;                       ///< of a value made in the same kernel: no memory is touched
  std::string buffer;                          ///< `b18 buf18`
  std::string place;                           ///< `in_ptr0`, `value`, `lhs`
  std::string kernel;                          ///< `k2`; the operator for a library call
  std::shared_ptr<const AccessDetail> detail;  ///< made for the chosen row and for operands; null for others
};

/// What the Index panel shows.
struct IndexView {
  std::vector<AccessRow> rows;
  int chosen = -1;    ///< position in `rows`; -1 without rows
  std::string title;  ///< whose accesses: `k2`, `n11 div`, `b18 buf18`, `d63`
  std::string
      nothing;  ///< why there is none, as a sentence; empty when there are rows or nothing is selected
};

/// The accesses of a selection: those that a node, a statement, a kernel or the nodes of a decision or group make,
/// those of a buffer; of a selected access, all of its kernel. The selected access is chosen, else the first.
/// Asks the index analysis about the operands of library calls: call it where snapshots are made.
IndexView index_view(const session::Compilation& compilation, const session::Snapshot& snapshot,
                     const Selection& selection);

}  // namespace pallascope::model
