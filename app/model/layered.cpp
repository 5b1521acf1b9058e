#include "app/model/layered.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "app/model/layered_parts.h"

namespace pallascope::model {
namespace {

using Role = LayeredItem::Role;

constexpr float long_weight = 8;  // of a straight long edge against one of a box: straight ones are read, others seen
constexpr float bend_weight = 0.05F;  // of where a long edge meets a box: it bends there, rather than a chain of boxes

/// A box, a port, or a place that a long edge passes.
struct Vertex {
  float width = 0, left = 0;  ///< left: result
  std::size_t layer = 0;
  bool dummy = false;
  std::size_t order = 0;
};
/// Between neighbouring layers. `from_x`, `to_x` from the left of each vertex.
struct Segment {
  std::size_t from = 0, to = 0;
  float from_x = 0, to_x = 0, weight = 1;
};

class LevelLayout {
 public:
  LevelLayout(Level& level, const LayeredOptions& options, std::stop_token stop)
      : level_(level), options_(options), stop_(std::move(stop)) {}

  bool run() {
    if (level_.items.empty()) {
      level_.width = level_.height = 0;
      return true;
    }
    cut_cycles();
    assign_layers();
    make_vertices();
    if (stop_.stop_requested() || !order_layers()) return false;
    place_entries();
    if (!place()) return false;
    write_results();
    return !stop_.stop_requested();
  }

 private:
  [[nodiscard]] std::size_t count() const { return level_.items.size(); }
  [[nodiscard]] bool goes_down(const LayeredEdge& edge) const { return !edge.upward; }

  // --------------------------------------------------------------------------------------------- cycles

  void cut_cycles() {
    std::vector<std::vector<std::size_t>> next(count());
    for (LayeredEdge& edge : level_.edges) {
      edge.upward = false;
      edge.points.clear();
      next[edge.from].push_back(edge.to);
    }
    const std::vector<std::size_t> part = strong_parts(next);
    const auto rank = [this](std::size_t v) { return std::pair(level_.items[v].order, v); };
    for (LayeredEdge& edge : level_.edges)
      edge.upward = part[edge.from] == part[edge.to] && rank(edge.from) > rank(edge.to);
  }

  // --------------------------------------------------------------------------------------------- layers

  /// How wide a layer may become before its boxes go on in the next one: as if all boxes stood in a block that is not
  /// much wider than high. (1.5: not measured.)
  [[nodiscard]] float widest_layer() const {
    float area = 0, widest = 0;
    for (const LayeredItem& item : level_.items) {
      if (item.role != Role::box) continue;
      area += (item.width + options_.gap_x) * (item.height + options_.gap_y);
      widest = std::max(widest, item.width + options_.gap_x);
    }
    return std::max({options_.least_wide, widest, 1.5F * std::sqrt(area)});
  }

  void assign_layers() {
    std::vector<std::vector<std::size_t>> next(count()), previous(count());
    std::vector<std::size_t> waiting(count(), 0);
    const auto is_head = [](const LayeredItem& item) { return item.role == Role::in_port || item.role == Role::title; };
    const bool head = std::any_of(level_.items.begin(), level_.items.end(), is_head);
    for (const LayeredEdge& edge : level_.edges) {
      if (!goes_down(edge)) continue;
      next[edge.from].push_back(edge.to);
      previous[edge.to].push_back(edge.from);
      ++waiting[edge.to];
    }
    std::vector<std::size_t> order;
    const float widest = widest_layer();
    std::vector<float> used;  // per layer, what its boxes take
    const auto full = [&](std::size_t layer, float width) { return layer < used.size() && used[layer] > 0 && used[layer] + width > widest; };
    const auto take = [&](std::size_t layer, float width) {
      if (layer >= used.size()) used.resize(layer + 1, 0);
      used[layer] += width;
    };
    const std::size_t first = head ? 1 : 0;
    std::size_t last = first;
    for (std::size_t v = 0; v < count(); ++v) {
      level_.items[v].layer = is_head(level_.items[v]) ? 0 : first;
      if (waiting[v] == 0) order.push_back(v);
    }
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::size_t v = order[k];
      if (level_.items[v].role == Role::box) {
        const float width = level_.items[v].width + options_.gap_x;
        while (full(level_.items[v].layer, width)) ++level_.items[v].layer;
        take(level_.items[v].layer, width);
      }
      if (level_.items[v].role != Role::out_port) last = std::max(last, level_.items[v].layer);
      for (const std::size_t w : next[v]) {
        level_.items[w].layer = std::max(level_.items[w].layer, level_.items[v].layer + 1);
        if (--waiting[w] == 0) order.push_back(w);
      }
    }
    // What reads less than it is read by stands just above its first reader.
    for (std::size_t k = order.size(); k-- > 0;) {
      const std::size_t v = order[k];
      LayeredItem& item = level_.items[v];
      if (item.role != Role::box || next[v].size() <= previous[v].size()) continue;
      std::size_t lowest = last + 1;
      for (const std::size_t w : next[v])
        lowest = std::min(lowest, level_.items[w].role == Role::out_port ? last + 1 : level_.items[w].layer);
      const float width = item.width + options_.gap_x;
      std::size_t wished = std::max(item.layer, lowest - 1);
      while (wished > item.layer && full(wished, width)) --wished;
      if (wished == item.layer) continue;
      used[item.layer] -= width;
      take(wished, width);
      item.layer = wished;
    }
    bool out_ports = false;
    for (LayeredItem& item : level_.items) {
      if (item.role != Role::out_port) continue;
      item.layer = last + 1;
      out_ports = true;
    }
    layers_.resize(last + (out_ports ? 2 : 1));
    gaps_.assign(layers_.size(), options_.gap_y);
    if (head) gaps_.front() = options_.port_gap;
    if (out_ports) gaps_[layers_.size() - 2] = options_.port_gap;
  }

  // ------------------------------------------------------------------------------- long edges as chains

  [[nodiscard]] std::size_t span(const LayeredEdge& edge) const {
    return level_.items[edge.to].layer - level_.items[edge.from].layer;
  }

  /// The longest span that an edge may have for all places to be `most_bends` or fewer.
  [[nodiscard]] std::size_t longest_span() const {
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> longest;  // per box and source: they share places
    for (const LayeredEdge& edge : level_.edges) {
      if (!goes_down(edge)) continue;
      std::size_t& known = longest[{edge.from, edge.source}];
      known = std::max(known, span(edge));
    }
    std::vector<std::size_t> spans;
    for (const auto& [key, length] : longest) spans.push_back(length);
    std::sort(spans.begin(), spans.end());
    std::size_t bends = 0;
    for (const std::size_t length : spans) {
      bends += length - 1;
      if (bends > options_.most_bends) return std::max<std::size_t>(length - 1, 1);
    }
    return layers_.size();
  }

  void make_vertices() {
    for (const LayeredItem& item : level_.items) vertices_.push_back({item.width, 0, item.layer, false, item.order});
    const std::size_t longest = longest_span();
    ways_.resize(level_.edges.size());
    std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> chains;  // places of a box's source
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> segment_of;
    for (std::size_t k = 0; k < level_.edges.size(); ++k) {
      const LayeredEdge& edge = level_.edges[k];
      if (!goes_down(edge) || span(edge) > longest) {
        side_.push_back(k);
        continue;
      }
      std::vector<std::size_t>& chain = chains[{edge.from, edge.source}];
      const float from_x = edge.from_x >= 0 ? edge.from_x : level_.items[edge.from].width / 2;
      std::size_t at = edge.from;
      for (std::size_t step = 1; step <= span(edge); ++step) {
        std::size_t next = edge.to;
        if (step < span(edge)) {
          if (chain.size() < step) {
            chain.push_back(vertices_.size());
            vertices_.push_back({0, 0, level_.items[edge.from].layer + step, true, level_.items[edge.from].order});
          }
          next = chain[step - 1];
        }
        const bool whole = next == edge.to;
        if (whole || !segment_of.contains({at, next})) {
          const int bends = (vertices_[at].dummy ? 1 : 0) + (vertices_[next].dummy ? 1 : 0);
          const float to_x = !whole ? 0 : edge.to_x >= 0 ? edge.to_x : level_.items[edge.to].width / 2;
          segments_.push_back({at, next, at == edge.from ? from_x : 0, to_x, bends == 2 ? long_weight : bends == 1 ? bend_weight : 1});
          if (!whole) segment_of.emplace(std::pair(at, next), segments_.size() - 1);
          ways_[k].push_back(segments_.size() - 1);
        } else {
          ways_[k].push_back(segment_of.at({at, next}));
        }
        at = next;
      }
    }
    below_.resize(vertices_.size());
    above_.resize(vertices_.size());
    for (std::size_t k = 0; k < segments_.size(); ++k) {
      below_[segments_[k].from].push_back(k);
      above_[segments_[k].to].push_back(k);
    }
    for (std::size_t v = 0; v < vertices_.size(); ++v) layers_[vertices_[v].layer].push_back(v);
  }

  // ------------------------------------------------------------------------------------------- ordering

  /// By key, but the title first.
  template <class Key>
  [[nodiscard]] bool before(std::size_t a, std::size_t b, Key key_a, Key key_b) const {
    const bool title_a = is_title(a), title_b = is_title(b);
    return title_a != title_b ? title_a : key_a < key_b;
  }
  [[nodiscard]] bool is_title(std::size_t v) const { return v < count() && level_.items[v].role == Role::title; }

  void number_layer(const std::vector<std::size_t>& layer) {
    for (std::size_t k = 0; k < layer.size(); ++k) place_in_layer_[layer[k]] = static_cast<float>(k);
  }
  /// How far across its box a segment's end lies, below 1: edges of one box keep the order of their ends.
  [[nodiscard]] float part(std::size_t vertex, float x) const {
    return vertices_[vertex].width <= 0 ? 0.5F : std::clamp(x / vertices_[vertex].width, 0.0F, 0.999F);
  }

  void sort_layer(std::vector<std::size_t>& layer, bool from_above) {
    std::vector<std::pair<float, std::size_t>> keyed;
    for (const std::size_t v : layer) {
      const auto& segments = from_above ? above_[v] : below_[v];
      float sum = 0;
      for (const std::size_t s : segments) {
        const std::size_t other = from_above ? segments_[s].from : segments_[s].to;
        sum += place_in_layer_[other] + part(other, from_above ? segments_[s].from_x : segments_[s].to_x);
      }
      keyed.emplace_back(segments.empty() ? -1.0F : sum / static_cast<float>(segments.size()), v);
    }
    // What has no neighbour there stays where it is; the rest takes the places that are left, in its order.
    std::vector<std::pair<float, std::size_t>> moving;
    for (const auto& entry : keyed) {
      if (entry.first >= 0) moving.push_back(entry);
    }
    std::stable_sort(moving.begin(), moving.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::size_t next = 0;
    for (std::size_t k = 0; k < layer.size(); ++k) {
      if (keyed[k].first >= 0) layer[k] = moving[next++].second;
    }
    number_layer(layer);
  }

  /// Crossings between all neighbouring layers, by counting inversions with a Fenwick tree.
  [[nodiscard]] std::size_t crossings() const {
    std::size_t total = 0;
    std::vector<std::pair<float, float>> ends;
    std::vector<float> lower;
    std::vector<std::size_t> tree;
    for (std::size_t k = 0; k + 1 < layers_.size(); ++k) {
      ends.clear();
      lower.clear();
      for (const std::size_t v : layers_[k]) {
        for (const std::size_t s : below_[v]) {
          const Segment& segment = segments_[s];
          ends.emplace_back(place_in_layer_[v] + part(v, segment.from_x), place_in_layer_[segment.to] + part(segment.to, segment.to_x));
          lower.push_back(ends.back().second);
        }
      }
      if (ends.size() < 2) continue;
      std::sort(ends.begin(), ends.end());
      std::sort(lower.begin(), lower.end());
      lower.erase(std::unique(lower.begin(), lower.end()), lower.end());
      tree.assign(lower.size() + 1, 0);
      std::size_t seen = 0;
      for (const auto& [upper_end, lower_end] : ends) {
        const auto at = static_cast<std::size_t>(std::lower_bound(lower.begin(), lower.end(), lower_end) - lower.begin()) + 1;
        std::size_t not_beyond = 0;
        for (std::size_t i = at; i > 0; i -= i & (~i + 1)) not_beyond += tree[i];
        total += seen - not_beyond;
        for (std::size_t i = at; i < tree.size(); i += i & (~i + 1)) ++tree[i];
        ++seen;
      }
    }
    return total;
  }

  bool order_layers() {
    place_in_layer_.assign(vertices_.size(), 0);
    std::size_t hinted = 0, boxes = 0;
    for (const LayeredItem& item : level_.items) {
      hinted += item.hinted ? 1 : 0;
      boxes += item.role == Role::box ? 1 : 0;
    }
    for (auto& layer : layers_) {
      std::stable_sort(layer.begin(), layer.end(), [this](std::size_t a, std::size_t b) { return before(a, b, vertices_[a].order, vertices_[b].order); });
      number_layer(layer);
    }
    if (hinted > 0 && hinted * 2 >= boxes) {
      apply_hints();
      // A person expects a picture that they know to stay.
      auto kept = layers_;
      const std::size_t known = crossings();
      if (!sweep(true)) return false;
      // A much better picture is worth the movement. (A quarter: not measured.)
      if (crossings() * 4 >= known * 3) {
        layers_ = std::move(kept);
        for (const auto& layer : layers_) number_layer(layer);
      }
      return true;
    }
    auto best = layers_;
    std::size_t fewest = crossings();
    for (std::size_t k = 0; k < options_.sweeps && fewest > 0; ++k) {
      if (!sweep(k % 2 == 0)) return false;
      const std::size_t now = crossings();
      if (now >= fewest) continue;
      fewest = now;
      best = layers_;
    }
    layers_ = std::move(best);
    for (const auto& layer : layers_) number_layer(layer);
    return true;
  }

  bool sweep(bool down) {
    const std::size_t n = layers_.size();
    for (std::size_t k = 1; k < n; ++k) {
      if (stop_.stop_requested()) return false;
      sort_layer(layers_[down ? k : n - 1 - k], down);
    }
    return true;
  }

  /// Layers in the order of where their items were. What is new, and places of long edges, come from what is above.
  void apply_hints() {
    std::vector<float> hint(vertices_.size(), 0);
    std::vector<bool> known(vertices_.size(), false);
    for (std::size_t v = 0; v < count(); ++v) {
      known[v] = level_.items[v].hinted;
      hint[v] = level_.items[v].hint;
    }
    const auto from = [&](std::size_t v, const std::vector<std::size_t>& segments, bool above) {
      float sum = 0, weight = 0;
      for (const std::size_t s : segments) {
        const std::size_t other = above ? segments_[s].from : segments_[s].to;
        if (!known[other]) continue;
        sum += hint[other];
        weight += 1;
      }
      if (weight > 0 && !known[v]) {
        hint[v] = sum / weight;
        known[v] = true;
      }
    };
    for (const auto& layer : layers_) {
      for (const std::size_t v : layer) from(v, above_[v], true);
    }
    for (std::size_t k = layers_.size(); k-- > 0;) {
      for (const std::size_t v : layers_[k]) from(v, below_[v], false);
    }
    for (auto& layer : layers_) {
      std::stable_sort(layer.begin(), layer.end(), [&](std::size_t a, std::size_t b) { return before(a, b, hint[a], hint[b]); });
      number_layer(layer);
    }
  }

  // -------------------------------------------------------------------------------------------- placing

  /// Edges that enter a box without a place of their own are spread over the middle of its top, in the order in which
  /// they come.
  void place_entries() {
    std::vector<bool> own(segments_.size(), false);
    for (std::size_t k = 0; k < level_.edges.size(); ++k) {
      if (!ways_[k].empty() && level_.edges[k].to_x >= 0) own[ways_[k].back()] = true;
    }
    for (std::size_t v = 0; v < count(); ++v) {
      std::vector<std::pair<float, std::size_t>> entering;
      for (const std::size_t s : above_[v]) {
        if (!own[s]) entering.emplace_back(place_in_layer_[segments_[s].from] + part(segments_[s].from, segments_[s].from_x), s);
      }
      std::sort(entering.begin(), entering.end());
      const float width = vertices_[v].width * 0.6F, left = (vertices_[v].width - width) / 2;
      const auto spread = [&](std::size_t first, std::size_t last, float from, float room) {
        for (std::size_t k = first; k < last; ++k)
          segments_[entering[k].second].to_x = from + room * static_cast<float>(k - first + 1) / static_cast<float>(last - first + 1);
      };
      // One that comes from the layer above enters in the middle if all others come from afar: a chain stays straight
      // then, however many values from elsewhere join it.
      const auto near = [this](const std::pair<float, std::size_t>& entry) { return !vertices_[segments_[entry.second].from].dummy; };
      const auto main = std::find_if(entering.begin(), entering.end(), near);
      if (main == entering.end() || std::any_of(main + 1, entering.end(), near)) {
        spread(0, entering.size(), left, width);
        continue;
      }
      const auto at = static_cast<std::size_t>(main - entering.begin());
      segments_[main->second].to_x = vertices_[v].width / 2;
      spread(0, at, left, width / 2);
      spread(at + 1, entering.size(), left + width / 2, width / 2);
    }
  }

  [[nodiscard]] float gap(std::size_t left, std::size_t right) const {
    const auto is_box = [this](std::size_t v) { return v < count() && level_.items[v].role == Role::box; };
    return is_title(left) || (is_box(left) && is_box(right)) ? options_.gap_x : options_.line_gap;
  }

  /// `above`, `below`: which neighbours are wished for.
  void place_layer(const std::vector<std::size_t>& layer, bool above, bool below) {
    std::vector<float> wish, weight;
    for (const std::size_t v : layer) {
      float sum = 0, total = 0;
      const auto add = [&](const std::vector<std::size_t>& segments, bool up) {
        for (const std::size_t s : segments) {
          const Segment& segment = segments_[s];
          const float there = up ? vertices_[segment.from].left + segment.from_x : vertices_[segment.to].left + segment.to_x;
          sum += segment.weight * (there - (up ? segment.to_x : segment.from_x));
          total += segment.weight;
        }
      };
      if (above) add(above_[v], true);
      if (below) add(below_[v], false);
      wish.push_back(total > 0 ? sum / total : vertices_[v].left);
      weight.push_back(total > 0 ? total : 0.01F);
    }
    std::vector<double> offset(layer.size(), 0);
    for (std::size_t k = 1; k < layer.size(); ++k)
      offset[k] = offset[k - 1] + static_cast<double>(vertices_[layer[k - 1]].width + gap(layer[k - 1], layer[k]));
    const std::vector<float> places = nearest_places(offset, wish, weight);
    for (std::size_t k = 0; k < layer.size(); ++k) vertices_[layer[k]].left = places[k];
  }

  bool place() {
    // Packed around a common middle, then pulled straight from above, from below, and from both.
    for (const auto& layer : layers_) {
      float x = 0;
      for (std::size_t k = 0; k < layer.size(); ++k) {
        if (k > 0) x += vertices_[layer[k - 1]].width + gap(layer[k - 1], layer[k]);
        vertices_[layer[k]].left = x;
      }
      const float middle = layer.empty() ? 0 : (x + vertices_[layer.back()].width) / 2;
      for (const std::size_t v : layer) vertices_[v].left -= middle;
    }
    const std::size_t n = layers_.size();
    for (std::size_t sweep = 0; sweep < options_.sweeps + 2; ++sweep) {
      const bool down = sweep % 2 == 0, settle = sweep >= options_.sweeps;
      for (std::size_t k = 0; k < n; ++k) {
        if (stop_.stop_requested()) return false;
        place_layer(layers_[down ? k : n - 1 - k], down || settle, !down || settle);
      }
    }
    straighten();
    return true;
  }

  /// A long edge runs straight where there is room: each of its places goes as near to the one before it as its
  /// neighbours let it.
  void straighten() {
    const auto room = [this](std::size_t v, float wish) {
      const auto& layer = layers_[vertices_[v].layer];
      const auto at = static_cast<std::size_t>(place_in_layer_[v]);
      if (at > 0) {
        const Vertex& left = vertices_[layer[at - 1]];
        wish = std::max(wish, left.left + left.width + gap(layer[at - 1], v));
      }
      if (at + 1 < layer.size()) wish = std::min(wish, vertices_[layer[at + 1]].left - vertices_[v].width - gap(v, layer[at + 1]));
      return wish;
    };
    const auto dummy_of = [this](const std::vector<std::size_t>& segments, bool up) {
      for (const std::size_t s : segments) {
        const std::size_t other = up ? segments_[s].from : segments_[s].to;
        if (vertices_[other].dummy) return other;
      }
      return vertices_.size();
    };
    for (std::size_t k = layers_.size(); k-- > 0;) {
      for (const std::size_t v : layers_[k]) {
        const std::size_t other = vertices_[v].dummy ? dummy_of(below_[v], false) : vertices_.size();
        if (other < vertices_.size()) vertices_[v].left = room(v, vertices_[other].left);
      }
    }
    for (const auto& layer : layers_) {
      for (const std::size_t v : layer) {
        const std::size_t other = vertices_[v].dummy ? dummy_of(above_[v], true) : vertices_.size();
        if (other < vertices_.size()) vertices_[v].left = room(v, vertices_[other].left);
      }
    }
  }

  // -------------------------------------------------------------------------------------------- results

  void write_results() {
    float left = 0, right = 0;
    bool first = true;
    for (const Vertex& vertex : vertices_) {
      left = first ? vertex.left : std::min(left, vertex.left);
      right = first ? vertex.left + vertex.width : std::max(right, vertex.left + vertex.width);
      first = false;
    }
    std::vector<float> top(layers_.size(), 0), bottom(layers_.size(), 0);
    float y = 0;
    for (std::size_t k = 0; k < layers_.size(); ++k) {
      float height = 0;
      for (const std::size_t v : layers_[k]) height = v < count() ? std::max(height, level_.items[v].height) : height;
      top[k] = y;
      bottom[k] = y + height;
      y = bottom[k] + gaps_[k];
    }
    level_.height = bottom.back();
    for (std::size_t v = 0; v < vertices_.size(); ++v) vertices_[v].left = is_title(v) ? 0 : vertices_[v].left - left;
    level_.width = right - left;
    for (std::size_t v = 0; v < count(); ++v) {
      level_.items[v].x = vertices_[v].left;
      level_.items[v].y = top[vertices_[v].layer];
    }
    for (std::size_t k = 0; k < level_.edges.size(); ++k) {
      LayeredEdge& edge = level_.edges[k];
      for (const std::size_t s : ways_[k]) {
        const Segment& segment = segments_[s];
        const Vertex &a = vertices_[segment.from], &b = vertices_[segment.to];
        if (edge.points.empty()) add_point(edge, {a.left + segment.from_x, top[a.layer] + level_.items[edge.from].height});
        add_point(edge, {a.left + segment.from_x, bottom[a.layer]});
        add_point(edge, {b.left + segment.to_x, top[b.layer]});
      }
    }
    write_side_edges(top, bottom);
  }

  static void add_point(LayeredEdge& edge, Point point) {
    if (edge.points.empty() || edge.points.back() != point) edge.points.push_back(point);
  }

  /// Edges that close a cycle, and those too long to be given places: out into the gap below their box, along the right
  /// side of everything, and in through the gap above where they go.
  void write_side_edges(const std::vector<float>& top, const std::vector<float>& bottom) {
    const float everything = level_.width;
    float above = 0;  // how far an edge reaches over the first layer
    for (std::size_t k = 0; k < side_.size(); ++k) {
      LayeredEdge& edge = level_.edges[side_[k]];
      const LayeredItem &from = level_.items[edge.from], &to = level_.items[edge.to];
      // Several lanes, and several heights within a gap, so that few share one line.
      const float lane = everything + options_.line_gap * static_cast<float>(1 + k % 8);
      const float part = 0.15F + 0.1F * static_cast<float>(k % 8);
      const float down = part * gaps_[from.layer], up = part * (to.layer > 0 ? gaps_[to.layer - 1] : options_.gap_y);
      const float x0 = from.x + (edge.from_x >= 0 ? edge.from_x : from.width / 2);
      const float x1 = to.x + (edge.to_x >= 0 ? edge.to_x : to.width / 2);
      add_point(edge, {x0, from.y + from.height});
      add_point(edge, {x0, bottom[from.layer] + down});
      add_point(edge, {lane, bottom[from.layer] + down});
      add_point(edge, {lane, top[to.layer] - up});
      add_point(edge, {x1, top[to.layer] - up});
      add_point(edge, {x1, to.y});
      level_.width = std::max(level_.width, lane);
      level_.height = std::max(level_.height, bottom[from.layer] + down);
      above = std::max(above, up - top[to.layer]);
    }
    if (above <= 0) return;
    for (LayeredItem& item : level_.items) item.y += above;
    for (LayeredEdge& edge : level_.edges) {
      for (Point& point : edge.points) point.y += above;
    }
    level_.height += above;
  }

  Level& level_;
  const LayeredOptions& options_;
  std::stop_token stop_;
  std::vector<std::vector<std::size_t>> layers_;  ///< vertices from left to right
  std::vector<float> gaps_;                       ///< below each layer
  std::vector<Vertex> vertices_;                  ///< the items first, then places of long edges
  std::vector<Segment> segments_;
  std::vector<std::vector<std::size_t>> below_, above_;  ///< per vertex, segments
  std::vector<std::vector<std::size_t>> ways_;           ///< per edge, its segments from the top
  std::vector<std::size_t> side_;                        ///< edges that go around
  std::vector<float> place_in_layer_;
};

}  // namespace

bool lay_out_level(Level& level, const LayeredOptions& options, std::stop_token stop) {
  return LevelLayout(level, options, std::move(stop)).run();
}

}  // namespace pallascope::model
