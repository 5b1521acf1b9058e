// Room: schedule. Which axes a group of nests could be tiled on, and what a tile needs on chip.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/loop/program.h"
#include "core/target/target.h"

namespace pallascope::schedule {

/// Axes of several nests that count the same thing: a tile of one is the same tile of the others.
struct AxisClass {
  std::vector<std::pair<loop::NestId, index::AxisId>> members;
  bool shared = false;          ///< every nest of the group has it, unreduced and aligned: a grid may run over it
  std::int64_t extent = 1;      ///< product over one nest's axes of the class
  // Why it is not shared:
  loop::NestId blocking_nest;
  index::AxisId blocking_axis;
  std::string blocking_role;    ///< "reduced", "sliced", "gathered", "not shared"
};

struct Tiles {
  std::vector<AxisClass> classes;
  std::int64_t working_set = 0;       ///< bytes, whole arrays
  std::int64_t working_set_tile = 0;  ///< bytes, smallest tile along the shared classes
};

/// Condition 2 of DESIGN.md's "Scheduling for Pallas", for the nests of one kernel.
///
/// Worked example, softmax of f32[8,16]: max reduces r1, exp and div run over i0 and i1. The rows are one class (max's
/// i0, exp's i0, ...), shared; the columns are another, and max and sum reduce it, so it must be whole in a tile.
/// Two accesses of one buffer relate their axes where their view dimensions overlap in the buffer's strides: an axis
/// that walks strides 16..127 of the buffer in one nest counts the same rows as an axis that walks them in another.
Tiles analyse_tiles(const loop::Program& program, const std::vector<loop::NestId>& nests, const target::Model& model);

/// What a grid could run over: per shared class of `nests` (a kernel's, not empty), the axes of the first nest.
std::vector<std::vector<index::AxisId>> grid_axes(const loop::Program& program, const std::vector<loop::NestId>& nests,
                                                  const target::Model& model);

}  // namespace pallascope::schedule
