// Room: target. What each target can express, and its limits: one table.
// Takes: nothing.
// Gives: Model (memory, tile granularity) to the scheduler.
// May use: base, index, loop.
// Never: generates code, asks a machine what it is.
#pragma once

#include <cstdint>
#include <string>

namespace pallascope::target {

/// The limits that a schedule is judged by.
struct Model {
  std::string name = "tpu_v5e";
  std::int64_t memory_bytes = 16 * 1024 * 1024;  ///< on chip, a kernel's share (TPU v5e: 16 MiB scoped VMEM)
  std::int64_t minor_tile = 128;                 ///< smallest tile of the innermost dimension
  std::int64_t second_minor_tile = 8;            ///< smallest tile of any other dimension
  int buffers = 2;                               ///< copies of each block while the grid runs (double buffering)
};

/// The model that `interpret` schedules with, since a CPU has no such limit of its own (DESIGN.md).
Model default_model();

}  // namespace pallascope::target
