#include "core/schedule/tiles.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace pallascope::schedule {
namespace {

/// One view dimension of an access: which elements of the buffer it walks, and the nest's axes that walk it.
struct Walk {
  std::int64_t stride = 1, extent = 1;  ///< in elements of the buffer
  index::Slice slice;
  std::vector<index::AxisId> axes;
};

/// The walks of a plan. The permuted view dimensions and the axes are two factorings of the same shape: they are
/// matched block by block, as a reshape is.
std::vector<Walk> walks(const index::Plan& plan, const std::vector<index::AxisId>& axes) {
  std::vector<Walk> found(plan.view_shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = plan.view_shape.size(); d-- > 0;) {
    found[d].stride = stride;
    found[d].extent = plan.view_shape[d];
    found[d].slice = plan.slices[d];
    stride *= std::max<std::int64_t>(1, plan.view_shape[d]);
  }
  std::size_t a = 0, p = 0;
  while (a < axes.size() && p < plan.permutation.size()) {
    std::vector<std::size_t> block_dims;
    std::vector<index::AxisId> block_axes;
    std::int64_t dims_product = 1, axes_product = 1;
    do {
      if (dims_product <= axes_product && p < plan.permutation.size()) {
        const auto d = static_cast<std::size_t>(plan.permutation[p++]);
        dims_product *= plan.slices[d].count;
        block_dims.push_back(d);
      } else if (a < axes.size()) {
        axes_product *= plan.result_shape[a];
        if (plan.result_shape[a] > 1) block_axes.push_back(axes[a]);
        ++a;
      } else {
        break;
      }
    } while (dims_product != axes_product || block_axes.empty());
    for (std::size_t d : block_dims)
      if (plan.slices[d].count > 1) found[d].axes = block_axes;
  }
  return found;
}

/// Whether two touches walk the same elements by the same steps, each by axes of its own.
bool same_walks(const std::vector<Walk>& a, const std::vector<Walk>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Walk& x, const Walk& y) {
    return x.stride == y.stride && x.extent == y.extent && x.slice == y.slice && x.axes.empty() == y.axes.empty();
  });
}

struct Union {
  std::vector<std::size_t> parent;
  std::size_t find(std::size_t x) {
    while (parent[x] != x) x = parent[x] = parent[parent[x]];
    return x;
  }
  void unite(std::size_t a, std::size_t b) { parent[find(a)] = find(b); }
};

struct Touch {
  loop::NestId nest;
  int statement = -1;
  bool store = false;
};

}  // namespace

Tiles analyse_tiles(const loop::Program& program, const std::vector<loop::NestId>& nests, const target::Model& model) {
  Tiles tiles;
  std::vector<std::pair<loop::NestId, index::AxisId>> axes;
  std::map<index::AxisId, std::size_t> place;
  std::map<loop::BufferId, std::vector<Touch>> touches;
  for (loop::NestId id : nests) {
    const loop::Nest& nest = program.nests[id];
    for (index::AxisId axis : nest.axes)
      if (program.context->axis(axis).extent > 1) {
        place.emplace(axis, axes.size());
        axes.emplace_back(id, axis);
      }
    for (std::size_t s = 0; s < nest.body.size(); ++s) {
      const loop::StatementKind kind = nest.body[s].kind;
      if (kind == loop::StatementKind::load || kind == loop::StatementKind::store)
        touches[nest.body[s].buffer].push_back({id, static_cast<int>(s), kind == loop::StatementKind::store});
    }
  }
  for (const auto& [buffer, list] : touches) tiles.working_set += program.buffers[buffer].bytes();

  Union groups;
  groups.parent.resize(axes.size());
  std::iota(groups.parent.begin(), groups.parent.end(), 0);
  struct Block {
    index::AxisId axis;
    loop::NestId nest;
    std::string role;
  };
  std::vector<Block> blocks;  // axes that may not be tiled, with the reason
  std::map<loop::BufferId, std::vector<index::AxisId>> buffer_axes;

  for (const auto& [buffer, list] : touches) {
    std::vector<std::vector<Walk>> all;
    const bool produced = std::any_of(list.begin(), list.end(), [](const Touch& t) { return t.store; });
    for (const Touch& touch : list) {
      const loop::Nest& nest = program.nests[touch.nest];
      const index::Access& access = loop::access_of(program, touch.nest, touch.statement);
      all.push_back(access.plan ? walks(*access.plan, nest.axes) : std::vector<Walk>{});
      for (const Walk& w : all.back())
        buffer_axes[buffer].insert(buffer_axes[buffer].end(), w.axes.begin(), w.axes.end());
      if (touch.store && nest.body[static_cast<std::size_t>(touch.statement)].mode != loop::StoreMode::plain) {
        // A store through computed indices may reach any element: the buffer is whole for all that touch it.
        for (const Touch& other : list)
          for (index::AxisId axis : program.nests[other.nest].axes)
            if (place.contains(axis)) blocks.push_back({axis, touch.nest, "scattered"});
      }
      if (!access.plan && produced && !touch.store) {
        // A gather from a value made here may need any part of it: its producer must be whole.
        for (const Touch& writer : list)
          if (writer.store)
            for (index::AxisId axis : program.nests[writer.nest].axes)
              if (place.contains(axis)) blocks.push_back({axis, touch.nest, "gathered"});
      }
    }
    const auto relate = [&](std::size_t x, std::size_t y) {
      for (const Walk& a : all[x])
        for (const Walk& b : all[y]) {
          if (a.axes.empty() || b.axes.empty()) continue;
          const bool overlap = a.stride < b.stride * b.extent && b.stride < a.stride * a.extent;
          if (!overlap) continue;
          for (index::AxisId p : a.axes)
            for (index::AxisId q : b.axes) groups.unite(place.at(p), place.at(q));
          const bool whole_a = a.slice == index::Slice{0, 1, a.extent}, whole_b = b.slice == index::Slice{0, 1, b.extent};
          if (produced && !(whole_a && whole_b) && !(a.slice == b.slice && a.extent == b.extent))
            blocks.push_back({whole_a ? b.axes.front() : a.axes.front(), whole_a ? list[y].nest : list[x].nest, "sliced"});
        }
    };
    // Touches that walk the buffer alike relate to the others alike, so each is compared with one of every kind: a
    // thousand readers of one input make a thousand pairs, not half a million.
    std::vector<std::size_t> kinds;
    for (std::size_t y = 0; y < list.size(); ++y) {
      bool known = false;
      for (std::size_t x : kinds) {
        if (list[x].nest == list[y].nest && !produced) continue;
        relate(x, y);
        known = known || same_walks(all[x], all[y]);
      }
      if (!known) kinds.push_back(y);
    }
  }
  for (loop::NestId id : nests) {
    const loop::Nest& nest = program.nests[id];
    for (std::size_t k = 0; k < nest.axes.size(); ++k)
      if (nest.reduced[k] && place.contains(nest.axes[k])) blocks.push_back({nest.axes[k], id, "reduced"});
    // An element of a scan needs all that come before it on the axis.
    for (const loop::Statement& s : nest.body)
      if (s.kind == loop::StatementKind::scan && place.contains(s.axis)) blocks.push_back({s.axis, id, "scanned"});
  }

  std::map<std::size_t, std::size_t> class_of_root;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const std::size_t root = groups.find(k);
    const auto [at, added] = class_of_root.emplace(root, tiles.classes.size());
    if (added) tiles.classes.emplace_back();
    tiles.classes[at->second].members.push_back(axes[k]);
  }
  for (AxisClass& c : tiles.classes) {
    std::map<loop::NestId, std::int64_t> extents;
    for (const auto& [nest, axis] : c.members) {
      const auto [at, added] = extents.emplace(nest, 1);
      at->second *= program.context->axis(axis).extent;
    }
    c.extent = extents.begin()->second;
    c.shared = extents.size() == nests.size();
    if (!c.shared) {
      c.blocking_role = "not shared";
      for (loop::NestId id : nests)
        if (!extents.contains(id)) c.blocking_nest = id;
      c.blocking_axis = c.members.front().second;
    }
    for (const auto& [nest, extent] : extents)
      if (extent != c.extent) {
        c.shared = false;
        c.blocking_role = "sliced";
        c.blocking_nest = nest;
        c.blocking_axis = c.members.front().second;
      }
  }
  for (const Block& b : blocks) {
    AxisClass& c = tiles.classes[class_of_root.at(groups.find(place.at(b.axis)))];
    c.shared = false;
    c.blocking_nest = b.nest;
    c.blocking_axis = b.axis;
    c.blocking_role = b.role;
  }

  // The smallest block of each buffer: every shared class that walks it is cut to its smallest tile.
  std::vector<std::int64_t> smallest;
  for (const AxisClass& c : tiles.classes) {
    const bool innermost = std::any_of(c.members.begin(), c.members.end(),
                                       [&](const auto& m) { return program.nests[m.first].axes.back() == m.second; });
    smallest.push_back(std::min(c.extent, innermost ? model.minor_tile : model.second_minor_tile));
  }
  for (const auto& [buffer, list] : touches) {
    std::int64_t elements = std::max<std::int64_t>(1, program.buffers[buffer].numel());
    bool cut = false;
    std::set<std::size_t> walked;
    for (index::AxisId axis : buffer_axes[buffer]) walked.insert(class_of_root.at(groups.find(place.at(axis))));
    for (std::size_t k : walked) {
      const AxisClass& c = tiles.classes[k];
      if (!c.shared) continue;
      elements = std::max<std::int64_t>(1, elements / c.extent * smallest[k]);
      cut = true;
    }
    tiles.working_set_tile += elements * dtype_bytes(program.buffers[buffer].dtype) * (cut ? model.buffers : 1);
  }
  return tiles;
}

std::vector<std::vector<index::AxisId>> grid_axes(const loop::Program& program, const std::vector<loop::NestId>& nests,
                                                  const target::Model& model) {
  std::vector<std::vector<index::AxisId>> found;
  for (const AxisClass& c : analyse_tiles(program, nests, model).classes) {
    if (!c.shared) continue;
    found.emplace_back();
    for (const auto& [nest, axis] : c.members)
      if (nest == nests.front()) found.back().push_back(axis);
  }
  return found;
}

}  // namespace pallascope::schedule
