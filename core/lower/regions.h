// Room: lower. A buffer that several nests fill, region by region, so that every load and store is a slice.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/lower/builder.h"

namespace pallascope::lower {

/// Where the elements of a piece go: `start + step * i`, i < count, along each dimension of the result.
struct Region {
  Sizes start, step, count;
};
Region whole(const Sizes& sizes);
bool empty(const Region& region);

/// A buffer without a writer yet, and how its logical dimensions lie in it.
struct Canvas {
  Tensor tensor;
  std::vector<std::size_t> order;  ///< its dimensions from the outermost in memory to the innermost
};
/// A canvas of `sizes` whose dimensions lie in `order` (their own if empty).
Canvas blank(Builder& builder, DType dtype, const Sizes& sizes, std::vector<std::size_t> order = {});

/// A nest over `region` that stores `body` there. `body` gets the position in the result. `reduced` are the extents of
/// further axes, behind those of the region, over which the body reduces.
void fill(Builder& builder, std::string name, const Canvas& canvas, const Region& region,
          const std::function<int(NestBuilder&, const Index&)>& body, const Sizes& reduced = {});

/// `x` at `before` of a tensor of `sizes` that holds `value` elsewhere; what does not fit is cut off.
Tensor padded(Builder& builder, const std::string& name, const Tensor& x, const Sizes& before, const Sizes& sizes,
              const loop::Scalar& value, const std::vector<std::size_t>& order = {});

/// For each position along a dimension, the positions of the source that it is made of.
using Lists = std::vector<Sizes>;
/// Positions start + step*i (i < count) that are made of the source positions first[j] + by[j]*i.
struct Piece {
  std::int64_t start = 0, step = 1, count = 0;
  Sizes first, by;
};
/// `lists` as few pieces, each of lists of one length: runs of neighbours, or residues of a period.
std::vector<Piece> pieces_of(const Lists& lists);
/// The same for one source position each.
std::vector<Piece> pieces_of(const Sizes& table);

/// A dimension of `extent` as it is.
std::vector<Piece> unchanged(std::int64_t extent);
/// A tensor of `sizes` whose dimension d is made of pieces[d] (of one source position each) of x's: one nest a
/// combination of pieces.
Tensor rearranged(Builder& builder, const std::string& name, const Tensor& x, const Sizes& sizes,
                  const std::vector<std::vector<Piece>>& pieces, const std::vector<std::size_t>& order = {});

/// What one position along a dimension is made of, inside a nest: the source positions one by one, or one expression
/// over a reduced axis that runs through them.
struct Taps {
  std::vector<index::Expression> at;
  bool reduced = false;
};
/// Fills `canvas`, whose dimension `dim` is made of `lists`, with a nest a piece. `body` gets the position in the canvas.
/// Lists of evenly spaced positions longer than a few become a reduction.
void fill_pieces(Builder& builder, const std::string& name, const Canvas& canvas, std::size_t dim, const Lists& lists,
                 const std::function<int(NestBuilder&, const Index&, const Taps&, const Piece&)>& body);
/// A tensor like `x` whose dimension `dim` holds the sums over `lists`, in the dtype `c`; divided by their lengths if `mean`.
Tensor summed(Builder& builder, const std::string& name, const Tensor& x, std::size_t dim, const Lists& lists, DType c,
              bool mean = false, const std::vector<std::size_t>& order = {});

/// A dense copy of each output that the view family `view` defines, as the `*_copy` operators give.
Lowered copied_views(Call& call, Family view);

/// The meta of a tensor argument.
const trace::TensorMeta& meta_of(const Call& call, std::size_t index, std::string_view name);

}  // namespace pallascope::lower
