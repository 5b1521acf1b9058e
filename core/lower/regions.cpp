#include "core/lower/regions.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace pallascope::lower {

Region whole(const Sizes& sizes) { return {Sizes(sizes.size(), 0), Sizes(sizes.size(), 1), sizes}; }

bool empty(const Region& region) {
  return std::any_of(region.count.begin(), region.count.end(), [](std::int64_t n) { return n <= 0; });
}

Canvas blank(Builder& builder, DType dtype, const Sizes& sizes, std::vector<std::size_t> order) {
  if (order.empty()) {
    order.resize(sizes.size());
    std::iota(order.begin(), order.end(), 0);
  }
  Sizes dims;
  for (std::size_t d : order) dims.push_back(sizes.at(d));
  std::vector<std::size_t> place(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) place[order[k]] = k;
  const Tensor stored = builder.row_major(builder.add_buffer(dtype, dims), dims);
  return {builder.permute(stored, place), std::move(order)};
}

void fill(Builder& builder, std::string name, const Canvas& canvas, const Region& region,
          const std::function<int(NestBuilder&, const Index&)>& body, const Sizes& reduced) {
  if (empty(region)) return;
  Sizes sizes = region.count;
  std::vector<std::size_t> order = canvas.order, over;
  for (std::int64_t extent : reduced) {
    over.push_back(sizes.size());
    order.push_back(sizes.size());
    sizes.push_back(extent);
  }
  NestBuilder nest(builder, std::move(name), sizes, over, order);
  Index position;
  for (std::size_t d = 0; d < region.count.size(); ++d)
    position.push_back(builder.context().add(builder.context().multiply(nest.index(d), region.step[d]),
                                             builder.context().constant(region.start[d])));
  const int value = nest.cast(body(nest, position), canvas.tensor.dtype);
  nest.store_into(canvas.tensor.view.buffer, loop::at(builder.context(), canvas.tensor.view, position), value);
}

Tensor padded(Builder& builder, const std::string& name, const Tensor& x, const Sizes& before, const Sizes& sizes,
              const loop::Scalar& value, const std::vector<std::size_t>& order) {
  const Canvas canvas = blank(builder, x.dtype, sizes, order);
  // `inner` is where elements of x land; dimension by dimension the slabs beside it are filled.
  Region inner = whole(sizes);
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const std::int64_t from = std::clamp<std::int64_t>(before[d], 0, sizes[d]);
    const std::int64_t to = std::clamp<std::int64_t>(before[d] + x.sizes[d], from, sizes[d]);
    for (const auto& [start, end] : {std::pair{std::int64_t{0}, from}, std::pair{to, sizes[d]}}) {
      Region slab = inner;
      slab.start[d] = start;
      slab.count[d] = end - start;
      fill(builder, name + ".pad", canvas, slab, [&](NestBuilder& nest, const Index&) { return nest.constant(value, x.dtype); });
    }
    inner.start[d] = from;
    inner.count[d] = to - from;
  }
  fill(builder, name, canvas, inner, [&](NestBuilder& nest, const Index& position) {
    Index source;
    for (std::size_t d = 0; d < sizes.size(); ++d)
      source.push_back(builder.context().subtract(position[d], builder.context().constant(before[d])));
    return nest.load_at(x, source);
  });
  return canvas.tensor;
}

namespace {

/// The longest piece from `start` in steps of `step` whose lists move evenly.
Piece run_from(const Lists& lists, std::size_t start, std::size_t step) {
  Piece piece;
  piece.start = static_cast<std::int64_t>(start);
  piece.step = static_cast<std::int64_t>(step);
  piece.count = 1;
  piece.first = lists[start];
  piece.by.assign(piece.first.size(), 0);
  const auto difference = [&](std::size_t a) {
    Sizes by;
    if (a + step >= lists.size() || lists[a + step].size() != lists[a].size()) return std::pair{false, by};
    for (std::size_t j = 0; j < lists[a].size(); ++j) by.push_back(lists[a + step][j] - lists[a][j]);
    return std::pair{true, by};
  };
  const auto [follows, by] = difference(start);
  if (!follows) return piece;
  // Two neighbours that jump belong together only if the next one jumps as far: a roll's first element does not
  // belong to what follows it.
  const bool close = std::all_of(by.begin(), by.end(), [](std::int64_t n) { return n >= -1 && n <= 1; });
  const auto [goes_on, next] = difference(start + step);
  if (!close && !(goes_on && next == by)) return piece;
  piece.by = by;
  for (std::size_t at = start; at + step < lists.size(); at += step) {
    const auto [fits, moved] = difference(at);
    if (!fits || moved != by) break;
    ++piece.count;
  }
  return piece;
}

std::vector<Piece> pieces_by(const Lists& lists, std::size_t period) {
  std::vector<Piece> pieces;
  for (std::size_t residue = 0; residue < period; ++residue)
    for (std::size_t at = residue; at < lists.size();) {
      pieces.push_back(run_from(lists, at, period));
      at += period * static_cast<std::size_t>(pieces.back().count);
    }
  return pieces;
}

}  // namespace

std::vector<Piece> pieces_of(const Lists& lists) {
  constexpr std::size_t kLongestPeriod = 32;
  std::vector<Piece> best = pieces_by(lists, 1);
  for (std::size_t period = 2; period < best.size() && period <= kLongestPeriod; ++period)
    if (std::vector<Piece> other = pieces_by(lists, period); other.size() < best.size()) best = std::move(other);
  return best;
}

std::vector<Piece> pieces_of(const Sizes& table) {
  Lists lists;
  for (std::int64_t at : table) lists.push_back({at});
  return pieces_of(lists);
}

std::vector<Piece> unchanged(std::int64_t extent) { return {{0, 1, extent, {0}, {1}}}; }

Tensor rearranged(Builder& builder, const std::string& name, const Tensor& x, const Sizes& sizes,
                  const std::vector<std::vector<Piece>>& pieces, const std::vector<std::size_t>& order) {
  const Canvas canvas = blank(builder, x.dtype, sizes, order);
  if (std::count(sizes.begin(), sizes.end(), 0) > 0) return canvas.tensor;
  std::vector<std::size_t> chosen(sizes.size(), 0);
  for (bool more = true; more;) {
    Region region = whole(sizes);
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      const Piece& p = pieces[d][chosen[d]];
      region.start[d] = p.start;
      region.step[d] = p.step;
      region.count[d] = p.count;
    }
    fill(builder, name, canvas, region, [&](NestBuilder& nest, const Index&) {
      Index source;
      for (std::size_t d = 0; d < sizes.size(); ++d) {
        const Piece& p = pieces[d][chosen[d]];
        source.push_back(builder.context().add(builder.context().multiply(nest.index(d), p.by[0]),
                                               builder.context().constant(p.first[0])));
      }
      return nest.load_at(x, source);
    });
    more = false;
    for (std::size_t d = sizes.size(); d-- > 0 && !more;) {
      more = ++chosen[d] < pieces[d].size();
      if (!more) chosen[d] = 0;
    }
  }
  return canvas.tensor;
}

void fill_pieces(Builder& builder, const std::string& name, const Canvas& canvas, std::size_t dim, const Lists& lists,
                 const std::function<int(NestBuilder&, const Index&, const Taps&, const Piece&)>& body) {
  constexpr std::size_t kLongestUnrolled = 16;
  index::Context& context = builder.context();
  for (const Piece& piece : pieces_of(lists)) {
    Region region = whole(canvas.tensor.sizes);
    region.start[dim] = piece.start;
    region.step[dim] = piece.step;
    region.count[dim] = piece.count;
    const std::size_t n = piece.first.size();
    bool even = n > kLongestUnrolled;
    for (std::size_t j = 2; even && j < n; ++j)
      even = piece.first[j] - piece.first[j - 1] == piece.first[1] - piece.first[0] && piece.by[j] == piece.by[0];
    const auto tap = [&](NestBuilder& nest, std::size_t j) {
      return context.add(context.multiply(nest.index(dim), piece.by[j]), context.constant(piece.first[j]));
    };
    fill(
        builder, name, canvas, region,
        [&](NestBuilder& nest, const Index& position) {
          Taps taps;
          taps.reduced = even;
          if (even) {
            taps.at.push_back(context.add(tap(nest, 0), context.multiply(nest.index(position.size()), piece.first[1] - piece.first[0])));
          } else {
            for (std::size_t j = 0; j < n; ++j) taps.at.push_back(tap(nest, j));
          }
          return body(nest, position, taps, piece);
        },
        even ? Sizes{static_cast<std::int64_t>(n)} : Sizes{});
  }
}

Tensor summed(Builder& builder, const std::string& name, const Tensor& x, std::size_t dim, const Lists& lists, DType c, bool mean,
              const std::vector<std::size_t>& order) {
  Sizes sizes = x.sizes;
  sizes.at(dim) = static_cast<std::int64_t>(lists.size());
  const Canvas canvas = blank(builder, c, sizes, order);
  fill_pieces(builder, name, canvas, dim, lists, [&](NestBuilder& nest, const Index& position, const Taps& taps, const Piece& piece) {
    int total = -1;
    for (index::Expression at : taps.at) {
      Index source = position;
      source[dim] = at;
      const int value = nest.cast(nest.load_at(x, source), c);
      total = total < 0 ? value : nest.add(total, value);
    }
    if (total < 0) return nest.constant(to_scalar(0, c), c);
    if (taps.reduced) total = nest.reduce(loop::ReduceOp::sum, total, c);
    if (!mean || piece.first.size() == 1) return total;
    return nest.exact_div(total, nest.number(static_cast<double>(piece.first.size()), total));
  });
  return canvas.tensor;
}

Lowered copied_views(Call& call, Family view) {
  for (std::size_t k = 0; k < call.outputs(); ++k)
    if (call.wanted(k) && !is_kernel_dtype(call.meta(k).dtype)) return declined_dtype();
  Lowered lowered = view(call);
  if (lowered.outcome != loop::Outcome::view || lowered.diagnostic) return lowered;
  for (std::size_t k = 0; k < call.outputs(); ++k) {
    if (!call.wanted(k)) continue;
    const Tensor seen = call.builder.tensor(call.node.outputs[k]);
    const trace::TensorMeta& meta = call.meta(k);
    call.define(call.builder.pointwise(
                    call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) { return nest.load(seen); }, &meta),
                k);
  }
  return as_kernel();
}

const trace::TensorMeta& meta_of(const Call& call, std::size_t index, std::string_view name) {
  const trace::Argument* argument = call.argument(index, name);
  const auto* value = argument == nullptr ? nullptr : argument->get<trace::ValueId>();
  if (value == nullptr || !call.builder.graph().values[*value].tensor)
    throw MalformedNode{fmt::format("argument {} ({}) is no tensor", index, name)};
  return *call.builder.graph().values[*value].tensor;
}

}  // namespace pallascope::lower
