// Family: stores through indices. The result is a buffer that nests fill in order: first a copy of `self`, then the points,
// one after another as PyTorch's CPU kernels take them, so that the last of equal indices wins.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "core/index/strides.h"
#include "core/lower/index_list.h"
#include "core/lower/scatter.h"

namespace pallascope::lower {

using loop::ComputeOp;
using loop::StoreMode;

bool integer_index(const Tensor& index) { return index.dtype == DType::i64 || index.dtype == DType::i32; }

std::int64_t element_count(const Sizes& sizes) {
  std::int64_t n = 1;
  for (std::int64_t d : sizes) n *= d;
  return n;
}

Tensor at_least_1d(Builder& builder, const Tensor& x) { return x.rank() == 0 ? builder.reshape(x, {1}) : x; }

Tensor scatter_target(Call& call, std::string_view what, const Sizes& sizes, DType dtype,
                      const std::function<int(NestBuilder&)>& body) {
  const trace::TensorMeta& meta = call.meta();
  const Sizes own = sizes.empty() ? Sizes{1} : sizes;
  return call.builder.pointwise(
      call.node.name + "." + std::string(what), own, dtype,
      [&](NestBuilder& nest) { return nest.cast(body(nest), dtype); }, own == meta.sizes ? &meta : nullptr);
}

std::optional<Lowered> leave_shared_elements(const Call& call) {
  const trace::TensorMeta& self = *call.builder.graph().values[*call.argument(0, "self")->get<trace::ValueId>()].tensor;
  std::vector<index::SubAxis> walked;
  bool shared = false;
  for (std::size_t k = 0; k < self.sizes.size(); ++k) {
    if (self.sizes[k] <= 1) continue;
    shared = shared || self.strides[k] == 0;
    walked.push_back({self.strides[k], self.sizes[k]});
  }
  if (self.numel() == 0 || (!shared && index::count_touched(std::move(walked)).injective())) return std::nullopt;
  return declined("a copy of a tensor whose elements lie on each other");
}

Tensor kept(Call& call, const Tensor& self, DType dtype) {
  return scatter_target(call, "kept", self.sizes, dtype, [&](NestBuilder& nest) { return nest.load(self); });
}

Tensor filled(Call& call, std::string_view what, const Sizes& sizes, DType dtype, double value) {
  return scatter_target(call, what, sizes, dtype, [&](NestBuilder& nest) { return nest.constant(to_scalar(value, dtype), dtype); });
}

void scatter_points(Call& call, std::string name, const Tensor& target, const Points& points, StoreMode mode,
                    const std::function<int(NestBuilder&)>& value) {
  NestBuilder nest(call.builder, std::move(name), points.sizes);
  const Index position = points.position(nest);
  if (element_count(target.sizes) == 0) {
    // Nothing to store into: what is left is that an index is out of range.
    nest.store(nest.constant(to_scalar(0, target.dtype), target.dtype), target.dtype);
    return;
  }
  const int v = nest.cast(value(nest), target.dtype);
  nest.store_into(target.view.buffer, loop::at(call.builder.context(), target.view, position), v, mode);
}

Tensor places_of(Call& call, const Tensor& mask) {
  const std::int64_t count = element_count(mask.sizes);
  const Tensor flat = call.builder.reshape(mask, {count});
  const Tensor places = call.builder.pointwise(call.node.name + ".places", {count}, DType::i64, [&](NestBuilder& nest) {
    return nest.scan(loop::ScanOp::sum, nest.cast(nest.cast(nest.load(flat), DType::b8), DType::i64), 0);
  });
  return call.builder.reshape(places, mask.sizes);
}

Lowered finish_scatter(Call& call, const Tensor& target) {
  const trace::TensorMeta& meta = call.meta();
  Tensor result = target;
  if (result.dtype != meta.dtype)
    result = call.builder.pointwise(
        call.node.name + ".cast", target.sizes, meta.dtype, [&](NestBuilder& nest) { return nest.load(target); },
        target.sizes == meta.sizes ? &meta : nullptr);
  call.define(call.builder.reshape(result, meta.sizes));
  return as_kernel();
}

namespace {

/// What a reduction into elements begins with where the old element does not count.
loop::Scalar first_of(std::string_view reduce, DType dtype) {
  if (reduce == "prod") return to_scalar(1, dtype);
  if (reduce != "amax" && reduce != "amin") return to_scalar(0, dtype);
  const bool least = reduce == "amax";
  if (is_bool(dtype)) return !least;
  if (is_float(dtype)) return least ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  const std::int64_t bits = 8 * dtype_bytes(dtype) - (is_signed_integer(dtype) ? 1 : 0);
  const std::int64_t most = bits == 63 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << bits) - 1;
  return least ? (is_signed_integer(dtype) ? -most - 1 : std::int64_t{0}) : most;
}

/// Reduces the values of `points` into `self`, accumulating in `wide`, and for a mean counting them in `counting`.
Lowered reduce_points(Call& call, const Tensor& self, const Points& points, std::string reduce, bool include_self, DType wide,
                      DType counting, const std::function<int(NestBuilder&)>& value) {
  if (reduce == "add") reduce = "sum";
  if (reduce == "multiply") reduce = "prod";
  const bool mean = reduce == "mean";
  if (mean && is_bool(self.dtype)) return declined("a dtype of which PyTorch takes no mean");
  Builder& builder = call.builder;
  const std::string& name = call.node.name;
  const Tensor target = kept(call, self, wide);
  if (!include_self)
    scatter_points(call, name + ".first", target, points, StoreMode::set,
                   [&](NestBuilder& nest) { return nest.constant(first_of(reduce, wide), wide); });
  const StoreMode mode = reduce == "prod"   ? StoreMode::mul
                         : reduce == "amax" ? StoreMode::max
                         : reduce == "amin" ? StoreMode::min
                                            : StoreMode::add;
  scatter_points(call, mean ? name + ".sum" : name, target, points, mode, value);
  if (!mean) return finish_scatter(call, target);
  const Tensor count = filled(call, "counted", self.sizes, counting, include_self ? 1 : 0);
  scatter_points(call, name + ".count", count, points, StoreMode::add,
                 [&](NestBuilder& nest) { return nest.constant(to_scalar(1, counting), counting); });
  const trace::TensorMeta& meta = call.meta();
  const Tensor result = builder.pointwise(
      name, target.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        const int total = nest.cast(nest.load(target), meta.dtype);
        // PyTorch counts in the tensor's own dtype, whatever that can hold.
        const int counted = nest.cast(nest.load(count), meta.dtype);
        const int none = nest.constant(to_scalar(0, meta.dtype), meta.dtype), one = nest.constant(to_scalar(1, meta.dtype), meta.dtype);
        const int by = nest.where(nest.compare(ComputeOp::eq, counted, none), one, counted);
        if (!is_float(meta.dtype)) return nest.op(ComputeOp::integer_div_floor, total, by);
        const DType c = compute_dtype(meta.dtype);
        return nest.exact_div(nest.cast(total, c), nest.cast(by, c));
      },
      target.sizes == meta.sizes ? &meta : nullptr);
  call.define(builder.reshape(result, meta.sizes));
  return as_kernel();
}

// --------------------------------------------------------------------------------------------------- scatter

/// scatter(self, dim, index, ..): point (i, j) goes to (index[i, j], j) for dim 0.
struct Scatter {
  Tensor self, index;
  Points points;
  std::optional<Tensor> source;
  explicit Scatter(Call& call)
      : self(at_least_1d(call.builder, call.tensor(0, "self"))), index(at_least_1d(call.builder, call.tensor(2, "index"))) {
    if (index.rank() != self.rank() && element_count(index.sizes) != 0) throw MalformedNode{"an index of another rank"};
    const std::size_t d = Call::dim(call.integer(1, "dim"), self.rank());
    if (call.is_tensor(3, "src")) source = at_least_1d(call.builder, call.tensor(3, "src"));
    points.sizes = index.sizes;
    points.position = [index = index, d, extent = self.sizes[d]](NestBuilder& nest) {
      Index position = nest.index();
      position.at(d) = nest.symbol(nest.load_at(index, nest.index()), 0, extent - 1);
      return position;
    };
  }
  [[nodiscard]] bool in_kernel() const {
    return is_kernel_dtype(self.dtype) && integer_index(index) && (!source || is_kernel_dtype(source->dtype));
  }
  /// The value of a point: of `src`, or the number in its place.
  [[nodiscard]] int value(Call& call, NestBuilder& nest) const {
    if (source) return nest.load_at(*source, nest.index());
    return nest.constant(call.scalar(3, "value"), self.dtype);
  }
};

Lowered scatter_set(Call& call) {
  const Scatter s(call);
  if (!s.in_kernel()) return declined_dtype();
  const Tensor target = kept(call, s.self, s.self.dtype);
  scatter_points(call, call.node.name, target, s.points, StoreMode::set, [&](NestBuilder& nest) { return s.value(call, nest); });
  return finish_scatter(call, target);
}

/// scatter_add, scatter_reduce and scatter(.., reduce=): 16-bit floats are summed in f32 and rounded once.
Lowered scatter_reduce(Call& call) {
  const Scatter s(call);
  if (!s.in_kernel()) return declined_dtype();
  const std::string reduce = call.node.target == "aten.scatter_add.default" ? "sum" : call.text(4, "reduce");
  const DType wide = compute_dtype(s.self.dtype);
  return reduce_points(call, s.self, s.points, reduce, call.boolean(99, "include_self", true), wide, wide,
                       [&](NestBuilder& nest) { return s.value(call, nest); });
}

// ---------------------------------------------------------------------------------------------- index_<what>

/// index_add(self, dim, index, source, ..): slice k of the source goes to slice index[k].
struct Slices {
  Tensor self, index;
  std::size_t d = 0;
  Points points;
  std::optional<Tensor> source;
  explicit Slices(Call& call, bool wraps)
      : self(at_least_1d(call.builder, call.tensor(0, "self"))), index(at_least_1d(call.builder, call.tensor(2, "index"))),
        d(Call::dim(call.integer(1, "dim"), self.rank())) {
    if (index.rank() != 1) throw MalformedNode{"an index that is no vector"};
    points.sizes = self.sizes;
    points.sizes[d] = index.sizes[0];
    if (call.is_tensor(3, "source") && !call.node.target.starts_with("aten.index_fill")) {
      source = at_least_1d(call.builder, call.tensor(3, "source"));
      if (element_count(source->sizes) == element_count(points.sizes)) source = call.builder.reshape(*source, points.sizes);
      if (source->sizes != points.sizes) throw MalformedNode{"slices of another shape"};
    }
    points.position = [index = index, d = d, extent = self.sizes[d], wraps](NestBuilder& nest) {
      Index position = nest.index();
      const int at = nest.load_at(index, {nest.index(d)});
      position[d] = wraps ? wrapped(nest, at, extent) : nest.symbol(at, 0, extent - 1);
      return position;
    };
  }
  [[nodiscard]] bool in_kernel() const {
    return is_kernel_dtype(self.dtype) && integer_index(index) && (!source || is_kernel_dtype(source->dtype));
  }
  /// The dtype in which slices are added. PyTorch takes its scatter_add for the outermost and the innermost dimension,
  /// and that sums 16-bit floats in f32; its other ways round at each addition.
  [[nodiscard]] DType summing() const {
    const bool by_scatter = self.rank() > 1 && (d == 0 || d + 1 == self.sizes.size()) && index.dtype == DType::i64;
    return by_scatter ? compute_dtype(self.dtype) : self.dtype;
  }
};

Lowered index_copy(Call& call) {
  const Slices s(call, false);
  if (!s.in_kernel()) return declined_dtype();
  const Tensor target = kept(call, s.self, s.self.dtype);
  scatter_points(call, call.node.name, target, s.points, StoreMode::set,
                 [&](NestBuilder& nest) { return nest.load_at(*s.source, nest.index()); });
  return finish_scatter(call, target);
}

Lowered index_fill(Call& call) {
  const Slices s(call, true);
  if (!s.in_kernel()) return declined_dtype();
  const std::optional<Tensor> number = call.optional_tensor(3, "value");
  if (number && (number->rank() != 0 || !is_kernel_dtype(number->dtype))) return declined_dtype();
  const Tensor target = kept(call, s.self, s.self.dtype);
  scatter_points(call, call.node.name, target, s.points, StoreMode::set, [&](NestBuilder& nest) {
    return number ? nest.load(*number) : nest.constant(call.scalar(3, "value"), s.self.dtype);
  });
  return finish_scatter(call, target);
}

Lowered index_add(Call& call) {
  const Slices s(call, false);
  if (!s.in_kernel()) return declined_dtype();
  const loop::Scalar alpha = call.scalar(4, "alpha", std::int64_t{1});
  const bool plain = as_double(alpha) == 1;
  const Tensor target = kept(call, s.self, plain ? s.summing() : s.self.dtype);
  scatter_points(call, call.node.name, target, s.points, StoreMode::add, [&](NestBuilder& nest) {
    const int value = nest.load_at(*s.source, nest.index());
    if (plain) return value;
    if (is_bool(s.self.dtype)) return nest.compute(ComputeOp::logical_and, DType::b8, {value, nest.constant(as_double(alpha) != 0, DType::b8)});
    const DType c = compute_dtype(s.self.dtype);
    return nest.cast(nest.mul(nest.cast(value, c), nest.constant(alpha, c)), s.self.dtype);
  });
  return finish_scatter(call, target);
}

Lowered index_reduce(Call& call) {
  const Slices s(call, false);
  if (!s.in_kernel()) return declined_dtype();
  return reduce_points(call, s.self, s.points, call.text(4, "reduce"), call.boolean(99, "include_self", true), s.self.dtype, s.summing(),
                       [&](NestBuilder& nest) { return nest.load_at(*s.source, nest.index()); });
}

// -------------------------------------------------------------------------------------------------- index_put

/// The values under a mask, of which one counts for each true element, or one for all of them.
Lowered put_under_mask(Call& call, const Tensor& self, const MaskIndex& at, Tensor values, bool accumulate) {
  const trace::TensorMeta& meta = call.meta();
  Builder& builder = call.builder;
  const std::size_t covered = at.mask.sizes.size(), first = at.first;
  if (first + covered > self.sizes.size() || covered == 0 ||
      !std::equal(at.mask.sizes.begin(), at.mask.sizes.end(), self.sizes.begin() + static_cast<std::ptrdiff_t>(first)))
    throw MalformedNode{"a mask of another shape"};
  // The result of the indexing is [before.., true elements, after..]; the values broadcast to it.
  const std::size_t after = self.sizes.size() - first - covered, rank = first + 1 + after;
  while (values.sizes.size() > rank && values.sizes.front() == 1)
    values = builder.reshape(values, Sizes(values.sizes.begin() + 1, values.sizes.end()));
  if (values.sizes.size() > rank) throw MalformedNode{"values of a higher rank than what they are put into"};
  Sizes aligned(rank - values.sizes.size(), 1);
  aligned.insert(aligned.end(), values.sizes.begin(), values.sizes.end());
  values = builder.reshape(values, aligned);
  const std::int64_t many = aligned[first];
  const auto part = [&](const Index& index) {
    return Index(index.begin() + static_cast<std::ptrdiff_t>(first), index.begin() + static_cast<std::ptrdiff_t>(first + covered));
  };
  std::optional<Tensor> places;
  if (many != 1) {
    const std::int64_t count = element_count(at.mask.sizes);
    places = places_of(call, at.mask);
    if (count > 0) {
      // As many values as true elements: the last place says how many there are.
      NestBuilder nest(builder, call.node.name + ".count", {1});
      const int found = nest.load_at(builder.reshape(*places, {count}), {nest.constant_index(count - 1)});
      nest.check(nest.compare(ComputeOp::eq, found, nest.constant(many, DType::i64)),
                      fmt::format("shape mismatch: {} values for the true elements of a mask, which are more or fewer", many));
      nest.store(nest.constant(false, DType::b8), DType::b8);
    }
  }
  call.define(builder.pointwise(
      call.node.name, meta.sizes, meta.dtype,
      [&](NestBuilder& nest) {
        const int old = nest.load(self), mask = nest.cast(nest.load_at(at.mask, part(nest.index())), DType::b8);
        Index source;
        for (std::size_t k = 0; k < rank; ++k) {
          if (k == first) {
            if (!places) {
              source.push_back(nest.constant_index(0));
              continue;
            }
            const int place = nest.sub(nest.load_at(*places, part(nest.index())), nest.constant(std::int64_t{1}, DType::i64));
            const int zero = nest.constant(std::int64_t{0}, DType::i64);
            const int inside = nest.op(ComputeOp::minimum, nest.op(ComputeOp::maximum, place, zero),
                                       nest.constant(std::max<std::int64_t>(0, many - 1), DType::i64));
            source.push_back(nest.known_symbol(inside, 0, std::max<std::int64_t>(0, many - 1)));
            continue;
          }
          source.push_back(aligned[k] == 1 ? nest.constant_index(0) : nest.index(k < first ? k : k + covered - 1));
        }
        if (many == 0) return old;
        const int value = nest.cast(nest.load_at(values, source), self.dtype);
        if (!accumulate) return nest.where(mask, value, old);
        if (is_bool(self.dtype)) return nest.where(mask, nest.compute(ComputeOp::logical_or, DType::b8, {old, value}), old);
        const DType c = compute_dtype(self.dtype);
        return nest.where(mask, nest.cast(nest.add(nest.cast(old, c), nest.cast(value, c)), self.dtype), old);
      },
      &meta));
  return as_kernel();
}

Lowered index_put(Call& call) {
  const Tensor self = call.tensor(0, "self");
  Tensor values = call.tensor(2, "values");
  const bool accumulate = call.boolean(3, "accumulate");
  if (!is_kernel_dtype(self.dtype) || !is_kernel_dtype(values.dtype)) return declined_dtype();
  if (const std::optional<MaskIndex> mask = lone_mask(call)) return put_under_mask(call, self, *mask, values, accumulate);
  const IndexList list = index_list(call, self);
  if (!list.declined.empty()) return declined(list.declined);
  while (values.sizes.size() > list.sizes.size() && values.sizes.front() == 1)
    values = call.builder.reshape(values, Sizes(values.sizes.begin() + 1, values.sizes.end()));
  const Tensor target = kept(call, self, self.dtype);
  const Points points{list.sizes, [&](NestBuilder& nest) { return list.position(nest, self, nest.index()); }};
  scatter_points(call, call.node.name, target, points, accumulate ? StoreMode::add : StoreMode::set,
                 [&](NestBuilder& nest) { return nest.load(values); });
  return finish_scatter(call, target);
}

/// _unsafe_masked_index_put_accumulate(self, mask, indices, values): values under a false mask add nothing.
Lowered masked_index_put(Call& call) {
  const Tensor self = call.tensor(0, "self"), mask = call.tensor(1, "mask"), values = call.tensor(3, "values");
  if (!is_kernel_dtype(self.dtype) || !is_kernel_dtype(values.dtype) || !is_bool(mask.dtype)) return declined_dtype();
  const IndexList list = index_list(call, self, 2, IndexUse::clamped);
  if (!list.declined.empty()) return declined(list.declined);
  const Tensor target = kept(call, self, self.dtype);
  const Points points{list.sizes, [&](NestBuilder& nest) { return list.position(nest, self, nest.index()); }};
  scatter_points(call, call.node.name, target, points, StoreMode::add, [&](NestBuilder& nest) {
    const int value = nest.load(values);
    return nest.where(nest.load(mask), value, nest.constant(to_scalar(0, values.dtype), values.dtype));
  });
  return finish_scatter(call, target);
}

/// put(self, index, source, accumulate): into elements of self in row-major order.
Lowered put(Call& call) {
  const Tensor self = call.tensor(0, "self"), index = call.tensor(1, "index");
  if (!is_kernel_dtype(self.dtype) || !integer_index(index)) return declined_dtype();
  const std::int64_t count = element_count(self.sizes);
  const Tensor source = call.builder.reshape(call.tensor(2, "source"), index.sizes);
  const Tensor target = kept(call, self, self.dtype);
  const Points points{index.sizes, [&](NestBuilder& nest) { return Index{wrapped(nest, nest.load(index), count)}; }};
  scatter_points(call, call.node.name, call.builder.reshape(target, {count}), points,
                 call.boolean(3, "accumulate") ? StoreMode::add : StoreMode::set, [&](NestBuilder& nest) { return nest.load(source); });
  return finish_scatter(call, target);
}

}  // namespace

std::vector<Entry> scatter_entries() {
  return {{"aten.scatter.src", "scatter", scatter_set},
          {"aten.scatter.value", "scatter", scatter_set},
          {"aten.scatter.reduce", "scatter", scatter_reduce},
          {"aten.scatter.value_reduce", "scatter", scatter_reduce},
          {"aten.scatter_add.default", "scatter", scatter_reduce},
          {"aten.scatter_reduce.two", "scatter", scatter_reduce},
          {"aten.index_copy.default", "scatter", index_copy},
          {"aten.index_fill.int_Scalar", "scatter", index_fill},
          {"aten.index_fill.int_Tensor", "scatter", index_fill},
          {"aten.index_add.default", "scatter", index_add},
          {"aten.index_reduce.default", "scatter", index_reduce},
          {"aten.index_put.default", "scatter", index_put},
          {"aten._unsafe_index_put.default", "scatter", index_put},
          {"aten._unsafe_masked_index_put_accumulate.default", "scatter", masked_index_put},
          {"aten.put.default", "scatter", put}};
}

}  // namespace pallascope::lower
