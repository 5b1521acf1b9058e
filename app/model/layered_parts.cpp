#include "app/model/layered_parts.h"

#include <algorithm>

namespace pallascope::model {

std::vector<std::size_t> strong_parts(const std::vector<std::vector<std::size_t>>& next) {
  const std::size_t count = next.size();
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::vector<std::size_t> part(count, none), number(count, none), low(count, 0), stack, at(count, 0), path;
  std::size_t numbers = 0, parts = 0;
  for (std::size_t root = 0; root < count; ++root) {
    if (number[root] != none) continue;
    path.push_back(root);
    while (!path.empty()) {
      const std::size_t v = path.back();
      if (number[v] == none) {
        number[v] = low[v] = numbers++;
        stack.push_back(v);
      }
      if (at[v] < next[v].size()) {
        const std::size_t w = next[v][at[v]++];
        if (number[w] == none) {
          path.push_back(w);
        } else if (part[w] == none) {
          low[v] = std::min(low[v], number[w]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) low[path.back()] = std::min(low[path.back()], low[v]);
      if (low[v] != number[v]) continue;
      for (std::size_t w = none; w != v;) {
        w = stack.back();
        stack.pop_back();
        part[w] = parts;
      }
      ++parts;
    }
  }
  return part;
}

std::vector<float> nearest_places(const std::vector<double>& offset, const std::vector<float>& wish, const std::vector<float>& weight) {
  struct Pool {
    double sum = 0, weight = 0;
    std::size_t size = 0;
  };
  std::vector<Pool> pools;
  for (std::size_t k = 0; k < wish.size(); ++k) {
    const auto w = static_cast<double>(weight[k]);
    pools.push_back({w * (static_cast<double>(wish[k]) - offset[k]), w, 1});
    while (pools.size() > 1) {
      Pool& last = pools.back();
      Pool& before = pools[pools.size() - 2];
      if (before.sum * last.weight <= last.sum * before.weight) break;
      before.sum += last.sum;
      before.weight += last.weight;
      before.size += last.size;
      pools.pop_back();
    }
  }
  std::vector<float> places;
  places.reserve(wish.size());
  for (const Pool& pool : pools)
    for (std::size_t k = 0; k < pool.size; ++k) places.push_back(static_cast<float>(pool.sum / pool.weight + offset[places.size()]));
  return places;
}

}  // namespace pallascope::model
