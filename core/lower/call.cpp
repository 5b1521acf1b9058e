// The arguments of a node, as the families ask for them.
#include <algorithm>

#include <fmt/format.h>

#include "core/lower/builder.h"

namespace pallascope::lower {

const trace::Argument* Call::argument(std::size_t index, std::string_view name) const { return node.argument(index, name); }

bool Call::has(std::size_t index, std::string_view name) const {
  const trace::Argument* a = argument(index, name);
  return a != nullptr && !a->is_none();
}

bool Call::is_tensor(std::size_t index, std::string_view name) const {
  const trace::Argument* a = argument(index, name);
  return a != nullptr && a->get<trace::ValueId>() != nullptr;
}

Tensor Call::tensor(std::size_t index, std::string_view name) const {
  if (!is_tensor(index, name)) throw MalformedNode{fmt::format("argument {} ({}) is no tensor", index, name)};
  return builder.tensor(*argument(index, name)->get<trace::ValueId>());
}

std::optional<Tensor> Call::optional_tensor(std::size_t index, std::string_view name) const {
  if (!is_tensor(index, name)) return std::nullopt;
  return tensor(index, name);
}

std::vector<Tensor> Call::tensors(std::size_t index, std::string_view name) const {
  std::vector<Tensor> found;
  const trace::Argument* a = argument(index, name);
  if (a == nullptr) return found;
  if (const auto* list = a->get<trace::ArgumentList>())
    for (const trace::Argument& item : *list)
      if (const auto* value = item.get<trace::ValueId>()) found.push_back(builder.tensor(*value));
  return found;
}

loop::Scalar Call::scalar(std::size_t index, std::string_view name, loop::Scalar fallback) const {
  const trace::Argument* a = argument(index, name);
  if (a == nullptr) return fallback;
  if (const auto* i = a->get<std::int64_t>()) return *i;
  if (const auto* d = a->get<double>()) return *d;
  if (const auto* b = a->get<bool>()) return *b;
  return fallback;
}

std::int64_t Call::integer(std::size_t index, std::string_view name, std::int64_t fallback) const {
  const loop::Scalar s = scalar(index, name, fallback);
  if (const auto* i = std::get_if<std::int64_t>(&s)) return *i;
  if (const auto* b = std::get_if<bool>(&s)) return *b ? 1 : 0;
  return static_cast<std::int64_t>(std::get<double>(s));
}

double Call::number(std::size_t index, std::string_view name, double fallback) const {
  return as_double(scalar(index, name, fallback));
}

bool Call::boolean(std::size_t index, std::string_view name, bool fallback) const {
  return as_double(scalar(index, name, fallback)) != 0;
}

std::string Call::text(std::size_t index, std::string_view name, std::string_view fallback) const {
  const trace::Argument* a = argument(index, name);
  const std::string* s = a == nullptr ? nullptr : a->get<std::string>();
  return s == nullptr ? std::string(fallback) : *s;
}

Sizes Call::integers(std::size_t index, std::string_view name) const {
  Sizes found;
  const trace::Argument* a = argument(index, name);
  if (a == nullptr) return found;
  if (const auto* i = a->get<std::int64_t>()) return {*i};
  if (const auto* list = a->get<trace::ArgumentList>())
    for (const trace::Argument& item : *list)
      if (const auto* i = item.get<std::int64_t>()) found.push_back(*i);
  return found;
}

bool Call::wanted(std::size_t output) const {
  return output < node.outputs.size() && builder.graph().values[node.outputs[output]].tensor.has_value();
}

const trace::TensorMeta& Call::meta(std::size_t output) const {
  if (!wanted(output)) throw MalformedNode{fmt::format("output {} is missing", output)};
  return *builder.graph().values[node.outputs.at(output)].tensor;
}

void Call::define(const Tensor& tensor, std::size_t output) {
  if (!wanted(output)) return;
  const trace::TensorMeta& expected = meta(output);
  if (tensor.sizes != expected.sizes || tensor.dtype != expected.dtype)
    throw MalformedNode{fmt::format("the operator gives {}[{}] for these arguments, the trace says {}", dtype_name(tensor.dtype),
                                    fmt::join(tensor.sizes, ","), trace::to_string(expected))};
  builder.define(node.outputs[output], tensor);
}

std::size_t Call::dim(std::int64_t dim, std::int64_t rank) {
  const std::int64_t counted = std::max<std::int64_t>(1, rank);
  if (dim < -counted || dim >= counted) throw MalformedNode{fmt::format("dimension {} of a tensor of rank {}", dim, rank)};
  return static_cast<std::size_t>(dim < 0 ? dim + counted : dim);
}

std::int64_t Call::slice_bound(std::int64_t value, std::int64_t extent) {
  return std::clamp<std::int64_t>(value < 0 ? value + extent : value, 0, extent);
}

std::vector<std::size_t> Call::dims(std::size_t index, std::string_view name, std::int64_t rank) const {
  std::vector<std::size_t> found;
  for (std::int64_t d : integers(index, name))
    if (rank > 0) found.push_back(dim(d, rank));
  if (integers(index, name).empty())
    for (std::int64_t d = 0; d < rank; ++d) found.push_back(static_cast<std::size_t>(d));
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace pallascope::lower
