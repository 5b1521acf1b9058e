// Room: schedule. A union-find over the steps of a program.
#pragma once

#include <numeric>
#include <vector>

#include "core/loop/program.h"

namespace pallascope::schedule {

/// Steps grouped into kernels. A group's representative is some step of it.
class Groups {
 public:
  explicit Groups(std::size_t steps) : parent_(steps) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }

  [[nodiscard]] std::size_t find(loop::StepId step) const {
    std::size_t x = step.index();
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  /// Joins the group of `b` into that of `a`; the representative of `a` stays.
  void unite(loop::StepId a, loop::StepId b) { parent_[find(b)] = find(a); }

 private:
  mutable std::vector<std::size_t> parent_;
};

}  // namespace pallascope::schedule
