// Family: losses that read a class by its label (negative log likelihood, cross entropy).
#include <cmath>

#include "core/lower/loss.h"
#include "core/lower/softmax.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;
using loop::ReduceOp;

/// Where classes and labels lie: scores [C], [N, C] or [N, C, d...], labels without the class dimension.
struct Labels {
  Tensor scores, target;
  std::optional<Tensor> weight;
  std::int64_t ignored = -100, classes = 0;
  std::size_t dim = 0;  ///< of the classes

  [[nodiscard]] DType dtype() const { return scores.dtype; }
};

Labels labels_of(const Tensor& scores, const Tensor& target, std::optional<Tensor> weight, std::int64_t ignored) {
  Labels found{scores, target, std::move(weight), ignored, 0, scores.rank() == 1 ? std::size_t{0} : std::size_t{1}};
  if (scores.rank() == 0) throw MalformedNode{"a loss of scores without classes"};
  found.classes = scores.sizes[found.dim];
  Sizes rest = scores.sizes;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(found.dim));
  if (rest != target.sizes) throw MalformedNode{"labels that do not fit the scores"};
  return found;
}

bool in_kernel(const Labels& l) {
  const auto is_label = [](DType d) { return d == DType::i64 || d == DType::u8 || d == DType::i32; };
  return is_kernel_dtype(l.dtype()) && is_float(l.dtype()) && is_label(l.target.dtype) && l.classes > 0;
}

/// One label of a nest over the labels: whether it counts, and its class (0 if not), checked against the classes.
struct Label {
  int counts = -1;
  index::Expression at;
};

Label label(NestBuilder& n, const Labels& l) {
  const int t = n.cast(n.load(l.target), DType::i64);
  Label found;
  found.counts = n.compare(ComputeOp::ne, t, n.constant(l.ignored, DType::i64));
  found.at = n.symbol(n.where(found.counts, t, n.constant(std::int64_t{0}, DType::i64)), 0, l.classes - 1);
  return found;
}

int weight_at(NestBuilder& n, const Labels& l, index::Expression at, DType c) {
  return l.weight ? n.cast(n.load_at(*l.weight, {at}), c) : n.constant(1.0, c);
}

/// -weight * score of each label, 0 for those that do not count.
int label_loss(NestBuilder& n, const Labels& l, const Tensor& scores) {
  const DType c = compute_dtype(l.dtype());
  const Label of = label(n, l);
  Index position = n.index();
  position.insert(position.begin() + static_cast<std::ptrdiff_t>(l.dim), of.at);
  int loss = n.op(ComputeOp::neg, n.cast(n.load_at(scores, position), c));
  if (l.weight) loss = n.mul(loss, weight_at(n, l, of.at, c));
  return n.where(of.counts, loss, n.number(0, loss));
}

std::vector<std::size_t> every(const Sizes& sizes) {
  std::vector<std::size_t> dims(sizes.size());
  for (std::size_t k = 0; k < dims.size(); ++k) dims[k] = k;
  return dims;
}

/// The weights of the labels that count, summed.
Tensor total_weight(Call& call, const Labels& l, DType result) {
  const DType c = compute_dtype(l.dtype());
  return call.builder.reduction(call.node.name + ".total_weight", l.target.sizes, every(l.target.sizes), ReduceOp::sum, c, result, false,
                                [&](NestBuilder& n) {
                                  const Label of = label(n, l);
                                  return n.where(of.counts, weight_at(n, l, of.at, c), n.constant(0.0, c));
                                });
}

/// The loss of the labels, reduced, as a tensor of the result's sizes. The mean is over the total weight.
Tensor reduced_labels(Call& call, const Labels& l, const Tensor& scores, std::int64_t reduction) {
  Builder& builder = call.builder;
  const DType d = l.dtype(), c = compute_dtype(d);
  if (reduction == 0)
    return builder.pointwise(call.node.name, l.target.sizes, d, [&](NestBuilder& n) { return label_loss(n, l, scores); });
  const Tensor sum = builder.reduction(call.node.name + ".sum", l.target.sizes, every(l.target.sizes), ReduceOp::sum, c, c, false,
                                       [&](NestBuilder& n) { return label_loss(n, l, scores); });
  if (reduction == 2) return builder.pointwise(call.node.name, {}, d, [&](NestBuilder& n) { return n.load(sum); });
  const Tensor total = total_weight(call, l, c);
  return builder.pointwise(call.node.name, {}, d, [&](NestBuilder& n) {
    const int above = n.load(sum);
    return n.exact_div(above, n.load(total));
  });
}

/// nll_loss(scores, target, weight, reduction, ignore_index); the forward nodes give the total weight as well.
Lowered nll(Call& call) {
  const Labels l = labels_of(call.tensor(0, "self"), call.tensor(1, "target"), call.optional_tensor(2, "weight"),
                             call.integer(4, "ignore_index", -100));
  if (!in_kernel(l)) return declined_dtype();
  const std::int64_t reduction = call.integer(3, "reduction", 1);
  call.define(call.builder.reshape(reduced_labels(call, l, l.scores, reduction), call.meta().sizes), 0);
  if (!call.wanted(1)) return as_kernel();
  const DType d = call.meta(1).dtype;
  // ATen does not fill it where it does not reduce.
  const bool kept = reduction != 0 || l.scores.rank() == 1;
  call.define(kept ? total_weight(call, l, d)
                   : call.builder.pointwise(call.node.name + ".total_weight", {}, d, [&](NestBuilder& n) { return n.constant(0.0, d); }),
              1);
  return as_kernel();
}

/// nll_loss_backward(grad, scores, target, weight, reduction, ignore_index, total_weight): a class at a time, so that
/// nothing is scattered.
Lowered nll_backward(Call& call) {
  const Tensor grad = call.tensor(0, "grad_output"), total = call.tensor(6, "total_weight");
  const Labels l = labels_of(call.tensor(1, "self"), call.tensor(2, "target"), call.optional_tensor(3, "weight"),
                             call.integer(5, "ignore_index", -100));
  if (!in_kernel(l)) return declined_dtype();
  const std::int64_t reduction = call.integer(4, "reduction", 1);
  const DType c = compute_dtype(l.dtype());
  return emit(call, [&](NestBuilder& n) {
    Index at = n.index();
    const index::Expression here = at[l.dim];
    at.erase(at.begin() + static_cast<std::ptrdiff_t>(l.dim));
    const int t = n.cast(n.load_at(l.target, at), DType::i64);
    const int mine = both(n, n.compare(ComputeOp::eq, t, n.index_value(here, DType::i64)),
                          n.compare(ComputeOp::ne, t, n.constant(l.ignored, DType::i64)));
    int g = n.op(ComputeOp::neg, n.cast(grad.rank() == 0 ? n.load(grad) : n.load_at(grad, at), c));
    if (l.weight) g = n.mul(g, weight_at(n, l, here, c));
    if (reduction == 1) g = n.div(g, n.cast(n.load(total), c));
    return n.where(mine, g, n.number(0, g));
  });
}

/// log_softmax along the classes, rounded to the scores' dtype as ATen's own is.
Tensor log_softmax(Call& call, const Tensor& x, std::size_t d) {
  Builder& builder = call.builder;
  const DType c = compute_dtype(x.dtype);
  const Tensor top = builder.reduction(call.node.name + ".max", x.sizes, {d}, ReduceOp::max, c, c, true,
                                       [&](NestBuilder& n) { return n.cast(n.load(x), c); });
  const Tensor total = builder.reduction(call.node.name + ".exp", x.sizes, {d}, ReduceOp::sum, c, c, true, [&](NestBuilder& n) {
    const int v = n.cast(n.load(x), c);
    return n.op(ComputeOp::exp, n.below(v, n.load(top)));
  });
  return builder.pointwise(call.node.name + ".log_softmax", x.sizes, x.dtype, [&](NestBuilder& n) {
    const int v = n.cast(n.load(x), c);
    const int shifted = n.below(v, n.load(top));
    return n.sub(shifted, log_of_sum(n, n.load(total), x.dtype, d + 1 == x.sizes.size()));
  });
}

/// Cross entropy with probabilities as the target: -sum(log_softmax * target * weight) over the classes.
Lowered with_probabilities(Call& call, const Tensor& scores, const Tensor& target, const std::optional<Tensor>& weight,
                           std::int64_t reduction, double smoothing) {
  const std::size_t d = scores.rank() == 1 ? 0 : 1;
  const std::int64_t classes = scores.sizes.at(d);
  const DType dtype = scores.dtype, c = compute_dtype(dtype);
  const Tensor logs = log_softmax(call, scores, d);
  const auto share = [&](NestBuilder& n) {
    const Rounding round(n, dtype);
    int t = n.cast(n.load(target), c);
    if (smoothing > 0)
      t = round(plus(n, round(scale(n, t, 1 - smoothing)), rounded(smoothing / static_cast<double>(classes), dtype)));
    int part = round(n.mul(n.cast(n.load(logs), c), t));
    if (weight) part = round(n.mul(part, n.cast(n.load_at(*weight, {n.index(d)}), c)));
    return part;
  };
  const Tensor rows = call.builder.reduction(call.node.name + ".rows", scores.sizes, {d}, ReduceOp::sum, c, reduction == 0 ? dtype : c, false,
                                             share, [](NestBuilder& n, int sum) { return n.op(ComputeOp::neg, sum); });
  if (reduction == 0) {
    call.define(rows);
    return as_kernel();
  }
  double count = 1;
  for (std::int64_t extent : rows.sizes) count *= static_cast<double>(extent);
  const Tensor total = call.builder.reduction(
      call.node.name, rows.sizes, every(rows.sizes), ReduceOp::sum, c, dtype, false, [&](NestBuilder& n) { return n.load(rows); },
      [&](NestBuilder& n, int sum) { return reduction == 1 ? n.exact_div(sum, n.number(count, sum)) : sum; });
  call.define(total);
  return as_kernel();
}

/// cross_entropy_loss(scores, target, weight, reduction, ignore_index, label_smoothing)
Lowered cross_entropy(Call& call) {
  const Tensor scores = call.tensor(0, "self"), target = call.tensor(1, "target");
  const std::optional<Tensor> weight = call.optional_tensor(2, "weight");
  const std::int64_t reduction = call.integer(3, "reduction", 1);
  const double smoothing = call.number(5, "label_smoothing", 0);
  if (!kernel_operands(call)) return declined_dtype();
  if (scores.rank() > 0 && scores.sizes == target.sizes && is_float(target.dtype)) {
    if (scores.dtype != target.dtype) return declined("probabilities of another dtype than the scores");
    return with_probabilities(call, scores, target, weight, reduction, smoothing);
  }
  Labels l = labels_of(scores, target, weight, call.integer(4, "ignore_index", -100));
  if (!in_kernel(l)) return declined_dtype();
  Builder& builder = call.builder;
  const DType d = l.dtype(), c = compute_dtype(d);
  const Tensor logs = log_softmax(call, scores, l.dim);
  if (smoothing == 0) {
    call.define(builder.reshape(reduced_labels(call, l, logs, reduction), call.meta().sizes));
    return as_kernel();
  }
  if (d == DType::f16 || d == DType::bf16) return declined("label smoothing in 16 bits");
  // The other part: the mean of the classes' losses, of the labels that count.
  const Tensor rows = builder.reduction(
      call.node.name + ".rows", scores.sizes, {l.dim}, ReduceOp::sum, c, c, false,
      [&](NestBuilder& n) {
        const int part = n.load(logs);
        return weight ? n.mul(part, n.cast(n.load_at(*weight, {n.index(l.dim)}), c)) : part;
      },
      [](NestBuilder& n, int sum) { return n.op(ComputeOp::neg, sum); });
  const auto counting = [&](NestBuilder& n) {
    const int t = n.cast(n.load(l.target), DType::i64);
    const int row = n.load(rows);
    return n.where(n.compare(ComputeOp::ne, t, n.constant(l.ignored, DType::i64)), row, n.number(0, row));
  };
  const double share = smoothing / static_cast<double>(l.classes);
  const auto mix = [&](NestBuilder& n, int hard, int smooth) { return n.add(scale(n, hard, 1 - smoothing), scale(n, smooth, share)); };
  if (reduction == 0) {
    const Tensor hard = reduced_labels(call, l, logs, 0);
    call.define(builder.pointwise(call.node.name, target.sizes, d, [&](NestBuilder& n) {
      const int first = n.load(hard);
      return mix(n, first, counting(n));
    }));
    return as_kernel();
  }
  const Tensor hard = reduced_labels(call, l, logs, reduction);
  const Tensor smooth =
      builder.reduction(call.node.name + ".smooth", target.sizes, every(target.sizes), ReduceOp::sum, c, c, false, counting);
  std::optional<Tensor> total;
  if (reduction == 1) total = total_weight(call, l, c);
  call.define(builder.pointwise(call.node.name, {}, d, [&](NestBuilder& n) {
    const int first = n.load(hard);
    int second = n.load(smooth);
    if (total) second = n.div(second, n.load(*total));
    return mix(n, first, second);
  }));
  return as_kernel();
}

}  // namespace

std::vector<Entry> label_loss_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "loss", f}); };
  for (std::string_view op : {"aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default", "aten.nll_loss.default",
                              "aten.nll_loss2d.default", "aten.nll_loss_nd.default"})
    add(op, nll);
  for (std::string_view op : {"aten.nll_loss_backward.default", "aten.nll_loss2d_backward.default"}) add(op, nll_backward);
  add("aten.cross_entropy_loss.default", cross_entropy);
  return rows;
}

}  // namespace pallascope::lower
