// Room: index. `access`: how an index expression walks a buffer, and the plan that reads it with JAX views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/index/expression.h"

namespace pallascope::index {

/// The classes of DESIGN.md. `contiguous` covers a scalar read of a one-element buffer too.
enum class AccessClass : std::uint8_t {
  contiguous,
  broadcast,
  permuted,
  sliced,
  strided,
  reversed,
  overlapping,
  gather,
  general
};
/// `contiguous`, `broadcast`, ...
std::string_view access_class_name(AccessClass c);
/// The gutter's letters: C B P S s R O G X.
char access_class_letter(AccessClass c);

/// One step along one dimension of the reshaped buffer: a slice `start : start + step*(count-1) + sign : step`.
/// `step` may be negative (reversed), never 0; a dimension that is indexed by a constant has count 1.
struct Slice {
  std::int64_t start = 0, step = 1, count = 1;
  friend bool operator==(const Slice&, const Slice&) = default;
};

/// How to read (or write) a contiguous buffer so that the result has one dimension an axis, in the axes' order:
/// extent where the expression depends on the axis, 1 where it does not (NumPy broadcasting does the rest).
/// Steps: reshape to `view_shape`, take `slices` (one a view dimension), reshape to `split_shape` if there is one,
/// transpose by `permutation` (`result[k] = sliced[permutation[k]]`), broadcast to `expand_shape` if there is one,
/// reshape to `result_shape`.
///
/// The two optional steps are rare, and only there if AccessOptions asks for them. `split_shape`: a slice cannot be split by a reshape of the whole buffer, as in
/// x[2:98].view(4, 24).t() of a (100) buffer: view {100}, slice [2:98], split {4, 24}, permutation {1, 0}, result
/// {24, 4}. `expand_shape`: an element is read several times within one axis, as in grouped-query attention's
/// k[b, h//2]: view {B, KV, 1}, expand {B, KV, 2}, result {B, 2*KV}; never in a store, since it is not injective.
struct Plan {
  std::vector<std::int64_t> view_shape;
  std::vector<Slice> slices;
  std::vector<std::int64_t> split_shape;   ///< empty: no such step
  std::vector<int> permutation;            ///< over the dimensions of split_shape, of view_shape without it
  std::vector<std::int64_t> expand_shape;  ///< empty: no such step
  std::vector<std::int64_t> result_shape;

  /// No slicing: every slice is 0 : dimension : 1.
  [[nodiscard]] bool slices_nothing() const;
  /// No transposition.
  [[nodiscard]] bool permutes_nothing() const;
  /// The reshaped buffer is the result: no step after the first reshape changes anything.
  [[nodiscard]] bool is_identity() const;
  /// The shape before the last reshape: after `expand_shape`, or after the transposition.
  [[nodiscard]] std::vector<std::int64_t> shape_before_result() const;
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// What `access` finds.
struct Access {
  AccessClass access_class = AccessClass::general;
  std::optional<Plan> plan;  ///< absent for gather, general, overlapping: index by computed indices
  std::vector<std::int64_t> axis_strides;  ///< per axis, in elements; meaningful when `affine`
  bool affine = false;                     ///< constant + sum of coefficient * axis, nothing else
  std::int64_t offset = 0;                 ///< the constant
  /// Least and greatest flat index touched: exact for a box of (split) axes, and otherwise a range that holds them.
  /// {0, -1} where nothing is touched.
  Range bounds;
  bool in_bounds = false;  ///< proved: 0 <= bounds < numel of the buffer
  /// Proved: no two points of the axes touch one element. An axis of extent > 1 that the expression does not depend on
  /// moves too, so a broadcast is not injective.
  bool injective = false;
  std::int64_t distinct_elements = 0;  ///< number of elements touched (an upper bound unless `exact`)
  bool distinct_exact = false;
  std::string words;  ///< one sentence for a person: "contiguous", "strided by 64: 4 of 64 bytes used"
};

/// The rare steps of a plan that the caller knows how to do. Without one of them, an access that needs it is `general`.
struct AccessOptions {
  bool split_slices = false;        ///< plans may have a `split_shape`
  bool expand_within_axes = false;  ///< plans may have an `expand_shape`
};

/// Classifies `expression`, a flat element index into a contiguous buffer of `buffer_sizes` (its product is the
/// number of elements; the sizes themselves only steer which of several equal plans is the plainest to read).
/// `axes` are the loop axes in order; axes of extent 1 are allowed. The expression uses no other axes.
/// An expression with extent-0 axes touches nothing: contiguous, plan of empty slices.
/// `axes` may also be of extent 1 or unused; the result's dimension is 1 for both.
///
/// Which class, when several fit: gather, general (not proved, or out of bounds, or no plan exists), overlapping,
/// reversed, permuted, strided, sliced, broadcast, contiguous; the first that applies. Without a plan are gather,
/// general and overlapping.
///
/// Algorithm (DESIGN.md, "Index analysis"): drop axes of extent 1; split axes where a floor-division or modulus
/// asks for it; sort by |stride|; derive the class from strides and extents; factor the buffer into view
/// dimensions so that each sub-axis is a slice of one dimension. Every plan is verified algebraically against the
/// expression before it is returned: an access that cannot be proved is `general`.
Access access(Context& context, Expression expression, const std::vector<AxisId>& axes,
              const std::vector<std::int64_t>& buffer_sizes, AccessOptions options = {});

/// Accesses that were analysed before, by what they depend on: the expression over the positions of the axes, the axes'
/// extents and names, and the buffer's sizes. Most accesses of a model are one of a few, since its layers repeat.
/// Not thread-safe.
class AccessMemo {
 public:
  /// As `access` without options; the same question in other axes is answered from memory.
  std::shared_ptr<const Access> of(Context& context, Expression expression, const std::vector<AxisId>& axes,
                                   const std::vector<std::int64_t>& buffer_sizes);

 private:
  using Key = std::vector<std::int64_t>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  std::unordered_map<Key, std::shared_ptr<const Access>, KeyHash> known_;
  Key key_;  ///< of the current question, kept for its memory
};

/// The two expressions' terms side by side for a person: one row a term, in the order of the axes.
struct AlignedTerm {
  std::string term;         ///< `i`, `(3*i + j)//4`, `1` for the constant
  std::string left, right;  ///< coefficients, empty where the side lacks the term
};
std::vector<AlignedTerm> align(const Context& context, Expression left, Expression right);

}  // namespace pallascope::index
