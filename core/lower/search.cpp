// Family: where values lie among others: binary searches, membership, histograms.
#include <algorithm>

#include <fmt/format.h>

#include "core/lower/scatter.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;
using loop::ReduceOp;

/// A tensor, or a number in its place.
struct Operand {
  std::optional<Tensor> tensor;
  loop::Scalar number;
  Operand(const Call& call, std::size_t index, std::string_view name) : tensor(call.optional_tensor(index, name)) {
    if (!tensor) number = call.scalar(index, name);
  }
  [[nodiscard]] PromotionOperand promotion() const {
    if (!tensor) return {scalar_dtype(number), 0};
    return {tensor->dtype, tensor->rank() == 0 ? 1 : 2};
  }
  [[nodiscard]] bool in_kernel() const { return !tensor || is_kernel_dtype(tensor->dtype); }
  [[nodiscard]] Sizes sizes() const { return tensor ? tensor->sizes : Sizes{}; }
};

/// The place of each value in rows of boundaries: PyTorch's own binary search, unrolled. A count of the lesser boundaries
/// would do for a few of them, but gives another answer where they are not sorted or hold a NaN; the search takes the
/// steps that PyTorch takes, and no more than 17 for a hundred thousand boundaries.
///
/// Worked example, n = 3: start = 0 and end = 3 give the middle 1, then 0 or 2, then start = end: two steps, as 3 has two
/// binary digits.
Lowered search(Call& call, const Operand& values, const Tensor& boundaries, const std::optional<Tensor>& sorter, bool right) {
  const trace::TensorMeta& meta = call.meta();
  if (!values.in_kernel() || !is_kernel_dtype(boundaries.dtype) || (sorter && !integer_index(*sorter))) return declined_dtype();
  if (boundaries.rank() == 0 || meta.sizes != values.sizes()) throw MalformedNode{"boundaries without an axis"};
  const bool rows = boundaries.rank() > 1;
  if (rows && boundaries.rank() != meta.rank()) throw MalformedNode{"rows of boundaries that do not fit the values"};
  const DType common = result_type(values.promotion(), {boundaries.dtype, 2});
  const std::int64_t n = boundaries.sizes.back();
  call.define(call.builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        constexpr DType p = DType::i32;
        const int one = nest.constant(std::int64_t{1}, p);
        int start = nest.constant(std::int64_t{0}, p), end = nest.constant(n, p);
        if (n == 0) return start;
        const int value = values.tensor ? nest.cast(nest.load(*values.tensor), common) : nest.constant(values.number, common);
        Index at;
        if (rows) at.assign(nest.index().begin(), nest.index().end() - 1);
        const int last = nest.constant(n - 1, p);
        for (std::int64_t left = n; left > 0; left /= 2) {
          const int open = nest.compare(ComputeOp::lt, start, end);
          const int middle = nest.add(start, nest.op(ComputeOp::shift_right, nest.sub(end, start), one));
          Index here = at;
          here.push_back(nest.known_symbol(nest.op(ComputeOp::minimum, middle, last), 0, n - 1));
          if (sorter) here.back() = nest.symbol(nest.load_at(*sorter, here), 0, n - 1);
          const int boundary = nest.cast(nest.load_at(boundaries, here), common);
          // A NaN is greater than all boundaries.
          const int stop = nest.compare(right ? ComputeOp::gt : ComputeOp::ge, boundary, value);
          const int stops = nest.compute(ComputeOp::logical_and, DType::b8, {open, stop});
          const int goes_on =
              nest.compute(ComputeOp::logical_and, DType::b8, {open, nest.compute(ComputeOp::logical_not, DType::b8, {stop})});
          start = nest.where(goes_on, nest.add(middle, one), start);
          end = nest.where(stops, middle, end);
        }
        return start;
      },
      &meta));
  return as_kernel();
}

Lowered searchsorted(Call& call) {
  const std::string side = call.text(99, "side");
  const bool right = side.empty() ? call.boolean(99, "right") : side == "right";
  const Tensor boundaries = call.tensor(0, "sorted_sequence");
  if (boundaries.sizes.empty() || boundaries.sizes.back() >= (std::int64_t{1} << 30)) return declined("too many boundaries");
  return search(call, Operand(call, 1, "self"), boundaries, call.optional_tensor(99, "sorter"), right);
}

Lowered bucketize(Call& call) {
  const Tensor boundaries = call.tensor(1, "boundaries");
  if (boundaries.sizes.empty() || boundaries.sizes.back() >= (std::int64_t{1} << 30)) return declined("too many boundaries");
  return search(call, Operand(call, 0, "self"), boundaries, std::nullopt, call.boolean(99, "right"));
}

/// isin(elements, tests): every element beside every test.
Lowered isin(Call& call) {
  const bool elements_are_tensor = !call.node.target.ends_with("Scalar_Tensor");
  const bool tests_are_tensor = !call.node.target.ends_with("Tensor_Scalar");
  const Operand elements(call, 0, elements_are_tensor ? "elements" : "element");
  const Operand tests(call, 1, tests_are_tensor ? "test_elements" : "test_element");
  const bool invert = call.boolean(99, "invert");
  const trace::TensorMeta& meta = call.meta();
  if (!elements.in_kernel() || !tests.in_kernel()) return declined_dtype();
  const std::int64_t count = element_count(tests.sizes());
  constexpr std::int64_t most = std::int64_t{1} << 26;  // bytes of one comparison each, if XLA keeps them; not measured
  if (count > 0 && meta.numel() > most / count) return declined("too many comparisons, where PyTorch sorts");
  const DType common = result_type(elements.promotion(), tests.promotion());
  Sizes sizes = meta.sizes;
  sizes.push_back(count);
  const std::optional<Tensor> row = tests.tensor ? std::optional(call.builder.reshape(*tests.tensor, {count})) : std::nullopt;
  const Tensor found = call.builder.reduction(
      call.node.name, sizes, {sizes.size() - 1}, ReduceOp::any, DType::b8, DType::b8, false,
      [&](NestBuilder& nest) {
        const Index lead(nest.index().begin(), nest.index().end() - 1);
        const int a = elements.tensor ? nest.cast(nest.load_at(*elements.tensor, lead), common) : nest.constant(elements.number, common);
        const int b = row ? nest.cast(nest.load_at(*row, {nest.index().back()}), common) : nest.constant(tests.number, common);
        return nest.compare(ComputeOp::eq, a, b);
      },
      [&](NestBuilder& nest, int any) { return invert ? nest.compute(ComputeOp::logical_not, DType::b8, {any}) : any; });
  call.define(found);
  return as_kernel();
}

/// histc(x, bins, min, max): elements counted by the bin that they fall into; equal bounds mean those of the data.
Lowered histc(Call& call) {
  const Tensor x = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(x.dtype) || !is_float(x.dtype)) return declined_dtype();
  const std::int64_t bins = call.integer(1, "bins", 100), count = element_count(x.sizes);
  const double low = call.number(2, "min"), high = call.number(3, "max");
  Builder& builder = call.builder;
  const Tensor flat = builder.reshape(x, {count});
  const Tensor target = filled(call, "start", {bins}, meta.dtype, 0);
  if (count == 0) return finish_scatter(call, target);
  const DType c = compute_dtype(x.dtype);
  // The data's bounds; one apart on each side where they are equal, and PyTorch raises where they are not finite.
  std::optional<Tensor> least, most;
  if (low == high) {
    for (const bool upper : {false, true}) {
      const std::string name = call.node.name + (upper ? ".max" : ".min");
      (upper ? most : least) = builder.reduction(name, {count}, {0}, upper ? ReduceOp::max : ReduceOp::min, x.dtype, x.dtype, true,
                                                 [&](NestBuilder& nest) { return nest.load(flat); });
    }
  }
  const auto bounds = [&](NestBuilder& nest) {
    if (!least) return std::pair(nest.constant(low, c), nest.constant(high, c));
    const int a = nest.cast(nest.load_at(*least, {nest.constant_index(0)}), c), b = nest.cast(nest.load_at(*most, {nest.constant_index(0)}), c);
    const int same = nest.compare(ComputeOp::eq, a, b), one = nest.number(1, a);
    const int finite = nest.compute(ComputeOp::isfinite, DType::b8, {nest.sub(b, a)});
    nest.symbol(nest.cast(finite, DType::i64), 1, 1);
    return std::pair(nest.where(same, nest.sub(a, one), a), nest.where(same, nest.add(b, one), b));
  };
  const auto inside = [&](NestBuilder& nest, int value, const std::pair<int, int>& range) {
    return nest.compute(ComputeOp::logical_and, DType::b8,
                        {nest.compare(ComputeOp::ge, value, range.first), nest.compare(ComputeOp::le, value, range.second)});
  };
  const Points points{{count}, [&](NestBuilder& nest) {
                        const int value = nest.cast(nest.load(flat), c);
                        const auto range = bounds(nest);
                        const int ours = inside(nest, value, range);
                        const int safe = nest.where(ours, value, range.first);
                        const int scaled = nest.mul(nest.sub(safe, range.first), nest.number(static_cast<double>(bins), safe));
                        const int place = nest.cast(nest.exact_div(scaled, nest.sub(range.second, range.first)), DType::i64);
                        const int last = nest.constant(bins - 1, DType::i64);
                        return Index{nest.known_symbol(nest.op(ComputeOp::minimum, place, last), 0, bins - 1)};
                      }};
  scatter_points(call, call.node.name, target, points, loop::StoreMode::add, [&](NestBuilder& nest) {
    const int value = nest.cast(nest.load(flat), c);
    return nest.cast(inside(nest, value, bounds(nest)), meta.dtype);
  });
  return finish_scatter(call, target);
}

}  // namespace

std::vector<Entry> search_entries() {
  return {{"aten.searchsorted.Tensor", "search", searchsorted},
          {"aten.searchsorted.Scalar", "search", searchsorted},
          {"aten.bucketize.Tensor", "search", bucketize},
          {"aten.bucketize.Scalar", "search", bucketize},
          {"aten.isin.Tensor_Tensor", "search", isin},
          {"aten.isin.Tensor_Scalar", "search", isin},
          {"aten.isin.Scalar_Tensor", "search", isin},
          {"aten.histc.default", "search", histc}};
}

}  // namespace pallascope::lower
