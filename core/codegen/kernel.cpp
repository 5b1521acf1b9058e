#include "core/codegen/kernel.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "core/codegen/kernel_writer.h"

namespace pallascope::codegen {

using loop::Statement;
using loop::StatementKind;

namespace {

/// Replaces {0}, {1}, {2}, {dtype}.
std::string fill(std::string_view text, const std::vector<std::string>& operands, std::string_view dtype) {
  std::string made;
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (text[k] != '{') {
      made += text[k];
      continue;
    }
    const std::size_t end = text.find('}', k);
    const std::string_view key = text.substr(k + 1, end - k - 1);
    made += key == "dtype" ? std::string(dtype) : operands.at(static_cast<std::size_t>(key[0] - '0'));
    k = end;
  }
  return made;
}

/// A power of two, so that a product with its reciprocal is the quotient.
bool has_exact_reciprocal(const std::string& literal) {
  int exponent = 0;
  const double value = std::strtod(literal.c_str(), nullptr);
  return std::abs(std::frexp(value, &exponent)) == 0.5 && std::abs(exponent) < 100;
}

}  // namespace

std::int64_t product(const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  return n;
}

Shape broadcast(const Shape& a, const Shape& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  Shape result(a.size());
  for (std::size_t k = 0; k < a.size(); ++k) result[k] = a[k] == 1 ? b[k] : a[k];
  return result;
}

KernelText KernelWriter::write() {
  for (loop::NestId nest : kernel_.nests) ++writers_[program_.nests[nest].output()];
  for (loop::NestId nest : kernel_.nests) {
    nest_id_ = nest;
    write_nest(program_.nests[nest]);
  }
  for (Parameter& check : checks_) text_.outputs.push_back(std::move(check));
  return std::move(text_);
}

LineOrigin KernelWriter::origin(int statement) const {
  LineOrigin o;
  o.kernel = schedule::KernelId(0);
  o.nest = nest_id_;
  o.statement = statement;
  if (statement >= 0) o.node = program_.nests[nest_id_].body[static_cast<std::size_t>(statement)].origin;
  return o;
}

std::string KernelWriter::assign(std::string text, int statement, int access) {
  const std::string name = "tmp" + std::to_string(variables_++);
  LineOrigin o = origin(statement);
  o.access = access;
  text_.body.line("    " + name + " = " + text, o);
  return name;
}

void KernelWriter::write_nest(const loop::Nest& nest) {
  values_.assign(nest.body.size(), {});
  rank_ = nest.axes.size();
  for (std::size_t k = 0; k < nest.body.size(); ++k) {
    const int statement = static_cast<int>(k);
    const Statement& s = nest.body[k];
    current_ = statement;
    switch (s.kind) {
      case StatementKind::constant:
        values_[k] = {literal_text(s.scalar, s.dtype), Shape(rank_, 1), s.dtype, true};
        break;
      case StatementKind::load: values_[k] = load(nest, s, statement); break;
      case StatementKind::index_value: values_[k] = index_value(nest, s, statement); break;
      case StatementKind::compute: values_[k] = compute(s, statement); break;
      case StatementKind::reduce: values_[k] = reduce(nest, s, statement); break;
      case StatementKind::scan: values_[k] = scan(nest, s, statement); break;
      case StatementKind::store: store(nest, s, statement); break;
    }
    for (const loop::SymbolUse& use : nest.symbols)
      if (use.statement == statement && use.checked) check_index(nest, use, statement);
    for (const loop::ValueCheck& c : nest.checks)
      if (c.statement == statement) check_value(c);
  }
}

std::string KernelWriter::typed(const Value& v) const {
  if (!v.literal) return v.text;
  return fmt::format(FMT_COMPILE("jnp.full({}, {}, jnp.{})"), tuple_text(Shape(rank_, 1)), v.text, jax_dtype_name(v.dtype));
}

Value KernelWriter::compute(const Statement& s, int statement) {
  std::vector<std::string> operands;
  Shape shape;
  for (int o : s.operands) shape = broadcast(shape, value(o).shape);
  const std::string_view jax = loop::info(s.compute).jax;
  const bool strict = jax.starts_with("lax.") || jax.starts_with('_');  // these promote nothing
  for (int o : s.operands) {
    const Value& v = value(o);
    // A bare literal takes the dtype of an operand beside it that is no literal.
    const bool anchored = std::any_of(s.operands.begin(), s.operands.end(), [&](int other) {
      return !value(other).literal && value(other).dtype == v.dtype;
    });
    operands.push_back(v.literal && (!anchored || strict) ? typed(v) : v.text);
  }
  // A zero stays one in every float, so that the addition below sees it.
  if (s.compute == loop::ComputeOp::cast && is_float(s.dtype) && value(s.operands[0]).literal && value(s.operands[0]).text == "0.0")
    return {"0.0", Shape(rank_, 1), s.dtype, true};
  std::string text = fill(jax, operands, jax_dtype_name(s.dtype));
  if (s.compute == loop::ComputeOp::exact_div && is_float(s.dtype)) {
    const Value& by = value(s.operands[1]);
    if (by.literal ? !has_exact_reciprocal(by.text) : by.shape != shape)
      text = fmt::format(FMT_COMPILE("{} / _divisor({}, {})"), operands[0], typed(by), tuple_text(shape));
  }
  if (is_float(s.dtype) && s.compute == loop::ComputeOp::maximum) text = fill("_maximum({0}, {1})", operands, {});
  if (is_float(s.dtype) && s.compute == loop::ComputeOp::minimum) text = fill("_minimum({0}, {1})", operands, {});
  // XLA holds a float that an integer cannot take at the integer's limits.
  if (s.compute == loop::ComputeOp::cast && is_integer(s.dtype) && is_float(value(s.operands[0]).dtype))
    text = fmt::format(FMT_COMPILE("_to_integer({}, jnp.{})"), typed(value(s.operands[0])), jax_dtype_name(s.dtype));
  // XLA takes x + 0 for x, which keeps the sign of -0 where addition does not: say what addition gives.
  if (s.compute == loop::ComputeOp::add && is_float(s.dtype))
    for (std::size_t k = 0; k < 2; ++k)
      if (value(s.operands[k]).literal && operands[k] == "0.0")
        text = fmt::format(FMT_COMPILE("jnp.where({0} == 0, 0.0, {0})"), operands[1 - k]);
  return {assign(text, statement), shape, s.dtype, false};
}

Value KernelWriter::reduce(const loop::Nest& nest, const Statement& s, int statement) {
  const Value& operand = value(s.operands[0]);
  std::vector<std::int64_t> over;
  Shape whole = operand.shape, result = operand.shape;
  for (std::size_t k = 0; k < rank_; ++k) {
    if (!nest.reduced[k]) continue;
    over.push_back(static_cast<std::int64_t>(k));
    whole[k] = extent(nest.axes[k]);
    result[k] = 1;
  }
  std::string text = typed(operand);
  if (over.empty()) {
    const bool position = s.reduce == loop::ReduceOp::argmax || s.reduce == loop::ReduceOp::argmin;
    if (position) return {"0", Shape(rank_, 1), s.dtype, true};
    return {text == operand.text ? text : assign(text, statement), operand.shape, s.dtype, false};
  }
  // A value that does not vary along a reduced axis still counts once a point.
  if (whole != operand.shape) text = fmt::format(FMT_COMPILE("jnp.broadcast_to({}, {})"), text, tuple_text(whole));
  const std::string_view name = loop::reduce_name(s.reduce);
  if (s.reduce == loop::ReduceOp::argmax || s.reduce == loop::ReduceOp::argmin) {
    if (over.size() == 1) {
      text = fmt::format(FMT_COMPILE("jnp.{}({}, axis={}, keepdims=True).astype(jnp.{})"), name, text, over[0], jax_dtype_name(s.dtype));
    } else {
      PALLASCOPE_CHECK(over.size() == rank_, "an argmax over some of several axes");
      text = fmt::format(FMT_COMPILE("jnp.reshape(jnp.{}(jnp.reshape({}, (-1,))).astype(jnp.{}), {})"), name, text, jax_dtype_name(s.dtype),
                         tuple_text(result));
    }
  } else {
    text = fmt::format(FMT_COMPILE("jnp.{}({}, axis={}, keepdims=True)"), name, text, tuple_text(over));
  }
  return {assign(text, statement), result, s.dtype, false};
}

Value KernelWriter::scan(const loop::Nest& nest, const Statement& s, int statement) {
  const Value& operand = value(s.operands[0]);
  const auto place = std::find(nest.axes.begin(), nest.axes.end(), s.axis);
  PALLASCOPE_CHECK(place != nest.axes.end(), "a scan along an axis of another nest: " + nest.name);
  const auto along = static_cast<std::size_t>(place - nest.axes.begin());
  Shape shape = operand.shape;
  shape[along] = extent(s.axis);
  std::string text = typed(operand);
  if (shape[along] == 1) return {text == operand.text ? text : assign(text, statement), shape, s.dtype, false};
  // A value that does not vary along the axis still counts once a step.
  if (shape != operand.shape) text = fmt::format(FMT_COMPILE("jnp.broadcast_to({}, {})"), text, tuple_text(shape));
  return {assign(fmt::format(FMT_COMPILE("lax.cum{}({}, axis={})"), loop::scan_name(s.scan), text, along), statement), shape, s.dtype, false};
}

void KernelWriter::check(trace::NodeId blamed, int statement, const std::string& condition, std::string error,
                         const std::function<std::string(const trace::Node&)>& message) {
  if (!checked_.insert(condition).second) return;
  const std::string name = fmt::format(FMT_COMPILE("check_ptr{}"), checks_.size());
  text_.body.line(fmt::format(FMT_COMPILE("    {}[...] = jnp.reshape(jnp.all({}).astype(jnp.int32), (1, 1))"), name, condition),
                  origin(statement));
  checks_.push_back({name, {}, {1, 1}, DType::i32});
  const trace::Node& node = graph_.nodes[blamed];
  const trace::Frame* frame = node.user_frame();
  text_.checks.push_back(
      {std::move(error), message(node) + (frame == nullptr ? "" : fmt::format(FMT_COMPILE(", {}:{}"), frame->file, frame->line))});
}

void KernelWriter::check_index(const loop::Nest& nest, const loop::SymbolUse& use, int statement) {
  const Value& v = value(use.statement);
  const trace::NodeId blamed = use.origin.valid() ? use.origin : nest.body[static_cast<std::size_t>(statement)].origin;
  check(blamed, statement, fmt::format(FMT_COMPILE("({0} >= {1}) & ({0} <= {2})"), typed(v), use.low, use.high), "IndexError",
        [&](const trace::Node& node) {
          return fmt::format(FMT_COMPILE("index out of range in {} ({}): it must be within {} and {}"), node.name, node.target, use.low, use.high);
        });
}

void KernelWriter::check_value(const loop::ValueCheck& c) {
  check(c.origin, c.statement, typed(value(c.statement)) + (is_bool(value(c.statement).dtype) ? "" : " != 0"), "RuntimeError",
        [&](const trace::Node& node) {
          return fmt::format(FMT_COMPILE("{} in {} ({})"), c.message.empty() ? "ZeroDivisionError: integer division by zero" : c.message,
                             node.name, node.target);
        });
}

std::string literal_text(const loop::Scalar& scalar, DType dtype) {
  if (is_bool(dtype)) {
    const bool truth = std::visit([](auto v) { return v != 0; }, scalar);
    return truth ? "True" : "False";
  }
  if (is_integer(dtype)) {
    if (const auto* i = std::get_if<std::int64_t>(&scalar)) return fmt::format(FMT_COMPILE("{}"), *i);
    if (const auto* b = std::get_if<bool>(&scalar)) return *b ? "1" : "0";
    return fmt::format(FMT_COMPILE("{}"), static_cast<std::int64_t>(std::get<double>(scalar)));
  }
  const double v = std::visit([](auto x) { return static_cast<double>(x); }, scalar);
  if (std::isnan(v)) return "jnp.nan";
  if (std::isinf(v)) return v > 0 ? "jnp.inf" : "-jnp.inf";
  const std::string text = fmt::format(FMT_COMPILE("{}"), v);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

KernelText kernel_text(const trace::Graph& graph, const loop::Program& program, const schedule::Kernel& kernel) {
  return KernelWriter(graph, program, kernel).write();
}

}  // namespace pallascope::codegen
