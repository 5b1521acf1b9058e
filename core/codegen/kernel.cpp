#include "core/codegen/kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "core/codegen/kernel_writer.h"

namespace pallascope::codegen {

using loop::Statement;
using loop::StatementKind;

namespace {

using Operands = std::array<std::string_view, 3>;

/// Puts a text with {0}, {1}, {2}, {dtype} replaced.
void fill(Out& out, std::string_view text, const Operands& operands, std::string_view dtype) {
  while (true) {
    const std::size_t open = text.find('{');
    put(out, text.substr(0, open));
    if (open == std::string_view::npos) return;
    const std::size_t close = text.find('}', open);
    const char key = text[open + 1];
    put(out, key == 'd' ? dtype : operands.at(static_cast<std::size_t>(key - '0')));
    text.remove_prefix(close + 1);
  }
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

void widen(Shape& shape, const Shape& by) {
  for (std::size_t k = 0; k < shape.size(); ++k)
    if (shape[k] == 1) shape[k] = by[k];
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

std::string KernelWriter::begin_assignment() {
  std::string name = "tmp" + std::to_string(variables_++);
  put(text_.body.open(), "    ");
  put(text_.body.open(), name);
  put(text_.body.open(), " = ");
  return name;
}

std::string KernelWriter::assign(std::string_view text, int statement, int access) {
  std::string name = begin_assignment();
  put(text_.body.open(), text);
  LineOrigin o = origin(statement);
  o.access = access;
  text_.body.close(o);
  return name;
}

void KernelWriter::line(std::string_view text, LineOrigin origin) {
  put(text_.body.open(), "    ");
  text_.body.line(text, origin);
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
  return fmt::format(FMT_COMPILE("jnp.full({}, {}, jnp.{})"), Tuple{Shape(rank_, 1)}, v.text, jax_dtype_name(v.dtype));
}

Value KernelWriter::compute(const Statement& s, int statement) {
  using loop::ComputeOp;
  const std::size_t count = s.operands.size();
  Operands operands;
  std::array<std::string, 3> arrays;  // of the literals that must be arrays
  PALLASCOPE_CHECK(count >= 1 && count <= operands.size(), "an operator of so many operands");
  const std::string_view jax = loop::info(s.compute).jax;
  const bool strict = jax.starts_with("lax.") || jax.starts_with('_');  // these promote nothing
  Shape shape = value(s.operands[0]).shape;
  for (std::size_t k = 1; k < count; ++k) widen(shape, value(s.operands[k]).shape);
  for (std::size_t k = 0; k < count; ++k) {
    const Value& v = value(s.operands[k]);
    operands[k] = v.text;
    if (!v.literal) continue;
    // A bare literal takes the dtype of an operand beside it that is no literal.
    const bool anchored = std::any_of(s.operands.begin(), s.operands.end(), [&](int other) {
      return !value(other).literal && value(other).dtype == v.dtype;
    });
    if (!anchored || strict) operands[k] = arrays[k] = typed(v);
  }
  const Value& first = value(s.operands[0]);
  // A zero stays one in every float, so that the addition below sees it.
  if (s.compute == ComputeOp::cast && is_float(s.dtype) && first.literal && first.text == "0.0")
    return {"0.0", Shape(rank_, 1), s.dtype, true};
  const std::string_view dtype = jax_dtype_name(s.dtype);
  std::string name = begin_assignment();
  Out& out = text_.body.open();
  const auto write = [&](const auto& format, const auto&... arguments) { fmt::format_to(fmt::appender(out), format, arguments...); };
  // XLA takes x + 0 for x, which keeps the sign of -0 where addition does not: say what addition gives.
  std::size_t zero = count;
  if (s.compute == ComputeOp::add && is_float(s.dtype))
    for (std::size_t k = 0; k < 2; ++k)
      if (value(s.operands[k]).literal && operands[k] == "0.0") zero = k;
  const auto inexact = [&](const Value& by) { return by.literal ? !has_exact_reciprocal(by.text) : by.shape != shape; };
  if (zero < count) {
    write(FMT_COMPILE("jnp.where({0} == 0, 0.0, {0})"), operands[1 - zero]);
  } else if (s.compute == ComputeOp::exact_div && is_float(s.dtype) && inexact(value(s.operands[1]))) {
    write(FMT_COMPILE("{} / _divisor({}, {})"), operands[0], typed(value(s.operands[1])), Tuple{shape});
  } else if (is_float(s.dtype) && s.compute == ComputeOp::maximum) {
    write(FMT_COMPILE("_maximum({}, {})"), operands[0], operands[1]);
  } else if (is_float(s.dtype) && s.compute == ComputeOp::minimum) {
    write(FMT_COMPILE("_minimum({}, {})"), operands[0], operands[1]);
  } else if (s.compute == ComputeOp::cast && is_integer(s.dtype) && is_float(first.dtype)) {
    // XLA holds a float that an integer cannot take at the integer's limits.
    write(FMT_COMPILE("_to_integer({}, jnp.{})"), typed(first), dtype);
  } else {
    fill(out, jax, operands, dtype);
  }
  text_.body.close(origin(statement));
  return {std::move(name), std::move(shape), s.dtype, false};
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
  if (whole != operand.shape) text = fmt::format(FMT_COMPILE("jnp.broadcast_to({}, {})"), text, Tuple{whole});
  const std::string_view name = loop::reduce_name(s.reduce);
  if (s.reduce == loop::ReduceOp::argmax || s.reduce == loop::ReduceOp::argmin) {
    if (over.size() == 1) {
      text = fmt::format(FMT_COMPILE("jnp.{}({}, axis={}, keepdims=True).astype(jnp.{})"), name, text, over[0], jax_dtype_name(s.dtype));
    } else {
      PALLASCOPE_CHECK(over.size() == rank_, "an argmax over some of several axes");
      text = fmt::format(FMT_COMPILE("jnp.reshape(jnp.{}(jnp.reshape({}, (-1,))).astype(jnp.{}), {})"), name, text, jax_dtype_name(s.dtype),
                         Tuple{result});
    }
  } else if (s.reduce == loop::ReduceOp::prod && (s.dtype == DType::f16 || s.dtype == DType::bf16)) {
    text = fmt::format(FMT_COMPILE("_rounded_prod({}, {}, {})"), text, Tuple{over}, s.dtype == DType::f16 ? "5, 10" : "8, 7");
  } else {
    text = fmt::format(FMT_COMPILE("jnp.{}({}, axis={}, keepdims=True)"), name, text, Tuple{over});
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
  if (shape != operand.shape) text = fmt::format(FMT_COMPILE("jnp.broadcast_to({}, {})"), text, Tuple{shape});
  return {assign(fmt::format(FMT_COMPILE("lax.cum{}({}, axis={})"), loop::scan_name(s.scan), text, along), statement), shape, s.dtype, false};
}

void KernelWriter::check(trace::NodeId blamed, int statement, const std::string& condition, std::string error,
                         const std::function<std::string(const trace::Node&)>& message) {
  if (!checked_.insert(condition).second) return;
  const std::string name = fmt::format(FMT_COMPILE("check_ptr{}"), checks_.size());
  text_.body.write(origin(statement), FMT_COMPILE("    {}[...] = jnp.reshape(jnp.all({}).astype(jnp.int32), (1, 1))"), name, condition);
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
