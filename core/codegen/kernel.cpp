#include "core/codegen/kernel.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pallascope::codegen {
namespace {

using loop::Statement;
using loop::StatementKind;

/// A value of the kernel: a variable (or a literal that has no variable yet) and its shape.
struct Value {
  std::string text;
  Shape shape;
  DType dtype = DType::f32;
  bool literal = false;
};

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

class Writer {
 public:
  Writer(const trace::Graph& graph, const loop::Program& program, const schedule::Kernel& kernel)
      : graph_(graph), program_(program), kernel_(kernel), internal_(kernel.internal.begin(), kernel.internal.end()) {
    // Room at once: a kernel may have thousands of nests.
    writers_.reserve(kernel.nests.size());
    values_of_buffers_.reserve(kernel.nests.size());
    loads_.reserve(kernel.nests.size());
  }

  KernelText write() {
    for (loop::NestId nest : kernel_.nests) ++writers_[program_.nests[nest].output()];
    for (loop::NestId nest : kernel_.nests) {
      nest_id_ = nest;
      write_nest(program_.nests[nest]);
    }
    for (Parameter& check : checks_) text_.outputs.push_back(std::move(check));
    return std::move(text_);
  }

 private:
  [[nodiscard]] const index::Context& context() const { return *program_.context; }
  [[nodiscard]] std::int64_t extent(index::AxisId axis) const { return context().axis(axis).extent; }

  LineOrigin origin(int statement) const {
    LineOrigin o;
    o.kernel = schedule::KernelId(0);
    o.nest = nest_id_;
    o.statement = statement;
    if (statement >= 0) o.node = program_.nests[nest_id_].body[static_cast<std::size_t>(statement)].origin;
    return o;
  }

  /// `tmp<k> = text` as a line; gives the variable.
  std::string assign(std::string text, int statement, int access = -1) {
    const std::string name = "tmp" + std::to_string(variables_++);
    LineOrigin o = origin(statement);
    o.access = access;
    text_.body.line("    " + name + " = " + text, o);
    return name;
  }

  Parameter& input(loop::BufferId buffer, const index::Plan& plan) {
    Parameter* same_buffer = nullptr;
    for (Parameter& p : text_.inputs) {
      if (p.buffer != buffer) continue;
      if (p.shape == plan.view_shape) return p;
      if (same_buffer == nullptr) same_buffer = &p;
    }
    // A read that takes no slice can reshape what is there; a slice wants a ref of its own shape.
    if (same_buffer != nullptr && plan.slices_nothing()) return *same_buffer;
    return add_input(buffer, plan.view_shape);
  }

  Parameter& add_input(loop::BufferId buffer, Shape shape) {
    if (shape.empty()) shape = {1, 1};
    text_.inputs.push_back({fmt::format("in_ptr{}", text_.inputs.size()), buffer, std::move(shape), program_.buffers[buffer].dtype});
    return text_.inputs.back();
  }

  Parameter& output(loop::BufferId buffer, const Shape& shape) {
    for (Parameter& p : text_.outputs)
      if (p.buffer == buffer) return p;
    text_.outputs.push_back({fmt::format("out_ptr{}", text_.outputs.size()), buffer, shape, program_.buffers[buffer].dtype});
    return text_.outputs.back();
  }

  [[nodiscard]] Parameter* find_output(loop::BufferId buffer) {
    for (Parameter& p : text_.outputs)
      if (p.buffer == buffer) return &p;
    return nullptr;
  }

  int record(int statement, bool store, bool on_value, loop::BufferId buffer, std::string parameter, std::string source) {
    const Statement& s = program_.nests[nest_id_].body[static_cast<std::size_t>(statement)];
    AccessText a;
    a.nest = nest_id_;
    a.statement = statement;
    a.store = store;
    a.on_value = on_value;
    a.buffer = buffer;
    a.parameter = std::move(parameter);
    a.source = std::move(source);
    a.index = s.index;
    a.axes = &program_.nests[nest_id_].axes;
    a.access = &loop::access_of(program_, nest_id_, statement);
    a.line = text_.body.count() + 1;
    text_.accesses.push_back(std::move(a));
    return static_cast<int>(text_.accesses.size()) - 1;
  }

  void write_nest(const loop::Nest& nest) {
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
        case StatementKind::store: store(nest, s, statement); break;
      }
      for (const loop::SymbolUse& use : nest.symbols)
        if (use.statement == statement && use.checked) check_index(nest, use, statement);
      for (const loop::ValueCheck& c : nest.checks)
        if (c.statement == statement) check_divisor(c);
    }
  }

  const Value& value(int statement) const { return values_.at(static_cast<std::size_t>(statement)); }

  /// A literal as an array of its dtype (JAX would take a bare number for its own default dtype).
  std::string typed(const Value& v) const {
    if (!v.literal) return v.text;
    return fmt::format("jnp.full({}, {}, jnp.{})", tuple_text(Shape(rank_, 1)), v.text, jax_dtype_name(v.dtype));
  }

  Value load(const loop::Nest& nest, const Statement& s, int statement) {
    const index::Access& access = loop::access_of(program_, nest_id_, statement);
    // The same read of the same memory in another nest of this kernel is the same value.
    const bool has_value = values_of_buffers_.contains(s.buffer) && writers_[s.buffer] == 1;
    if (!access.plan) return gather(nest, s, statement);
    const index::Plan& plan = *access.plan;
    auto& known_loads = loads_[s.buffer];
    for (const auto& [known, value] : known_loads) {
      if (!same_read(*known, plan)) continue;
      record(statement, false, true, s.buffer, value.text, value.text);
      text_.accesses.back().line = 0;
      return value;
    }
    std::string name, text;
    bool on_value = false;
    if (has_value) {
      const Value& made = values_of_buffers_.at(s.buffer);
      name = made.text;
      on_value = true;
      text = read_text(name, false, made.shape, plan);
    } else if (Parameter* p = find_output(s.buffer)) {
      name = p->name;
      text = read_text(name, true, p->shape, plan);
    } else {
      const Parameter& p2 = input(s.buffer, plan);
      name = p2.name;
      text = read_text(name, true, p2.shape, plan);
    }
    Value result{text, plan.result_shape, s.dtype, false};
    const int access_id = record(statement, false, on_value, s.buffer, name, text);
    if (text != name) result.text = assign(text, statement, access_id);
    if (text == name) text_.accesses.back().line = 0;
    // A buffer that several nests fill changes while the kernel runs: its reads are not remembered.
    if (writers_[s.buffer] <= 1) known_loads.emplace_back(&plan, result);
    return result;
  }

  /// Kernels' plans have neither of the optional steps.
  static bool same_read(const index::Plan& a, const index::Plan& b) {
    return a.view_shape == b.view_shape && a.slices == b.slices && a.permutation == b.permutation && a.result_shape == b.result_shape;
  }

  /// An iota along axis `k` of the nest, shaped 1 elsewhere.
  std::string iota(const loop::Nest& nest, std::size_t k, std::string_view dtype) {
    Shape shape(rank_, 1);
    shape[k] = extent(nest.axes[k]);
    const std::string text = fmt::format("lax.broadcasted_iota(jnp.{}, {}, {})", dtype, tuple_text(shape), k);
    if (const auto known = iotas_.find(text); known != iotas_.end()) return known->second;
    const std::string name = fmt::format("iota{}", iotas_.size());
    text_.body.line(fmt::format("    {} = {}", name, text), origin(current_));
    iotas_.emplace(text, name);
    return name;
  }

  struct Rendered {
    std::string text;
    Shape shape;
    bool atom = true;  ///< needs no parentheses
  };

  Rendered render(const loop::Nest& nest, index::Expression e, std::string_view dtype) {
    const index::Sum& sum = context().sum(e);
    std::string text;
    Shape shape(rank_, 1);
    int parts = 0;
    for (const auto& [term, coefficient] : sum.terms) {
      Rendered r = render_term(nest, term, dtype);
      shape = broadcast(shape, r.shape);
      std::string piece = coefficient == 1    ? r.text
                          : coefficient == -1 ? "-" + (r.atom ? r.text : "(" + r.text + ")")
                                              : fmt::format("{} * {}", coefficient, r.atom ? r.text : "(" + r.text + ")");
      if (parts++ > 0) text += coefficient < 0 && coefficient != -1 ? " + " : " + ";
      text += piece;
    }
    if (sum.constant != 0 || parts == 0) {
      if (parts > 0) {
        text += fmt::format(" {} {}", sum.constant < 0 ? "-" : "+", std::abs(sum.constant));
      } else {
        text = fmt::format("{}", sum.constant);
      }
      ++parts;
    }
    return {text, shape, parts == 1 && text.find(' ') == std::string::npos && text[0] != '-'};
  }

  Rendered render_term(const loop::Nest& nest, const index::Term& term, std::string_view dtype) {
    switch (term.kind) {
      case index::TermKind::axis: {
        const auto place = std::find(nest.axes.begin(), nest.axes.end(), term.axis);
        PALLASCOPE_CHECK(place != nest.axes.end(), "an index uses an axis of another nest: " + nest.name);
        const auto k = static_cast<std::size_t>(place - nest.axes.begin());
        Shape shape(rank_, 1);
        shape[k] = extent(term.axis);
        return {iota(nest, k, dtype), shape, true};
      }
      case index::TermKind::symbol: {
        for (const loop::SymbolUse& use : nest.symbols)
          if (use.symbol == term.symbol) {
            const Value& v = value(use.statement);
            const std::string text = v.literal ? typed(v) : v.text;
            return {fmt::format("{}.astype(jnp.{})", text, dtype), v.shape, true};
          }
        internal_error("an index symbol has no load", __FILE__, __LINE__, nest.name);
      }
      case index::TermKind::floor_div:
      case index::TermKind::mod: {
        const Rendered inner = render(nest, term.operand, dtype);
        const std::string op = term.kind == index::TermKind::mod ? "%" : "//";
        return {fmt::format("({} {} {})", inner.atom ? inner.text : "(" + inner.text + ")", op, term.divisor), inner.shape, true};
      }
    }
    return {};
  }

  /// i32 where the values allow it.
  std::string_view index_dtype(index::Expression e, std::int64_t reach) const {
    const index::Range r = context().range(e);
    constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max();
    return reach < kLimit && r.low > -kLimit && r.high < kLimit ? "int32" : "int64";
  }

  Value index_value(const loop::Nest& nest, const Statement& s, int statement) {
    const std::string_view dtype = index_dtype(s.index, 0);
    Rendered r = render(nest, s.index, dtype);
    if (const auto constant = context().as_constant(s.index)) return {fmt::format("{}", *constant), Shape(rank_, 1), s.dtype, true};
    if (jax_dtype_name(s.dtype) != dtype)
      r.text = fmt::format("{}.astype(jnp.{})", r.atom ? r.text : "(" + r.text + ")", jax_dtype_name(s.dtype));
    return {assign(r.text, statement), r.shape, s.dtype, false};
  }

  /// A load whose index holds symbols or does not resolve to views: element by element, or row by row.
  Value gather(const loop::Nest& nest, const Statement& s, int statement) {
    const loop::Buffer& buffer = program_.buffers[s.buffer];
    const std::string_view dtype = index_dtype(s.index, buffer.numel());
    if (std::optional<Value> rows = gather_rows(nest, s, statement, dtype)) return *rows;
    const Shape flat = {buffer.numel()};
    std::string name;
    bool on_value = false;
    std::string source = gather_source(s.buffer, flat, name, on_value);
    const Rendered index = render(nest, s.index, dtype);
    const std::string at = context().as_constant(s.index) ? fmt::format("jnp.full({}, {}, jnp.{})", tuple_text(Shape(rank_, 1)), index.text, dtype) : index.text;
    const std::string text = fmt::format("jnp.take({}, {}, mode=\"clip\")", source, at);
    const int access = record(statement, false, on_value, s.buffer, name, text);
    return {assign(text, statement, access), index.shape, s.dtype, false};
  }

  /// `source` seen with `shape`: the ref itself, if the call boundary can shape it so.
  std::string gather_source(loop::BufferId buffer, const Shape& shape, std::string& name, bool& on_value) {
    if (values_of_buffers_.contains(buffer) && writers_[buffer] == 1) {
      const Value& v = values_of_buffers_.at(buffer);
      name = v.text;
      on_value = true;
      return v.shape == shape ? v.text : fmt::format("jnp.reshape({}, {})", v.text, tuple_text(shape));
    }
    Parameter* p = find_output(buffer);
    if (p == nullptr) {
      for (Parameter& known : text_.inputs)
        if (known.buffer == buffer && known.shape == shape) p = &known;
      if (p == nullptr) p = &add_input(buffer, shape);
    }
    name = p->name;
    return p->shape == shape ? name + "[...]" : fmt::format("jnp.reshape({}[...], {})", name, tuple_text(shape));
  }

  /// One symbol times the extent of a row, and the row itself in order: whole rows are taken.
  std::optional<Value> gather_rows(const loop::Nest& nest, const Statement& s, int statement, std::string_view dtype) {
    const loop::Buffer& buffer = program_.buffers[s.buffer];
    const index::Sum& sum = context().sum(s.index);
    const index::Term* symbol = nullptr;
    std::int64_t row = 0;
    std::map<index::AxisId, std::int64_t> coefficients;
    if (sum.constant != 0) return std::nullopt;
    for (const auto& [term, coefficient] : sum.terms) {
      if (term.kind == index::TermKind::symbol && symbol == nullptr) {
        symbol = &term;
        row = coefficient;
      } else if (term.kind == index::TermKind::axis) {
        coefficients[term.axis] = coefficient;
      } else {
        return std::nullopt;
      }
    }
    if (symbol == nullptr || row <= 0 || buffer.numel() % row != 0) return std::nullopt;
    // The last axes must walk 0 .. row-1 in order; the symbol must not vary along them.
    std::int64_t expected = 1;
    std::size_t first = rank_;
    while (first > 0 && expected < row) {
      const index::AxisId axis = nest.axes[first - 1];
      if (extent(axis) > 1 && (!coefficients.contains(axis) || coefficients.at(axis) != expected)) return std::nullopt;
      expected *= extent(axis);
      coefficients.erase(axis);
      --first;
    }
    if (expected != row || !coefficients.empty()) return std::nullopt;
    const loop::SymbolUse* use = nullptr;
    for (const loop::SymbolUse& u : nest.symbols)
      if (u.symbol == symbol->symbol) use = &u;
    PALLASCOPE_CHECK(use != nullptr, nest.name);
    const Value& at = value(use->statement);
    for (std::size_t k = first; k < rank_; ++k)
      if (at.shape[k] != 1) return std::nullopt;
    const Shape rows = {buffer.numel() / row, row};
    std::string name;
    bool on_value = false;
    const std::string source = gather_source(s.buffer, rows, name, on_value);
    Shape lead(at.shape.begin(), at.shape.begin() + static_cast<std::ptrdiff_t>(first));
    Shape result = at.shape, taken = lead;
    for (std::size_t k = first; k < rank_; ++k) result[k] = extent(nest.axes[k]);
    taken.push_back(row);
    std::string positions = fmt::format("{}.astype(jnp.{})", typed(at), dtype);
    if (lead != at.shape) positions = fmt::format("jnp.reshape({}, {})", positions, tuple_text(lead));
    std::string text = fmt::format("jnp.take({}, {}, axis=0, mode=\"clip\")", source, positions);
    if (taken != result) text = fmt::format("jnp.reshape({}, {})", text, tuple_text(result));
    const int access = record(statement, false, on_value, s.buffer, name, text);
    return Value{assign(text, statement, access), result, s.dtype, false};
  }

  Value compute(const Statement& s, int statement) {
    std::vector<std::string> operands;
    Shape shape;
    for (int o : s.operands) shape = broadcast(shape, value(o).shape);
    const bool strict = loop::info(s.compute).jax.starts_with("lax.");  // lax functions promote nothing
    for (int o : s.operands) {
      const Value& v = value(o);
      // A bare literal takes the dtype of an operand beside it that is no literal.
      const bool anchored = std::any_of(s.operands.begin(), s.operands.end(), [&](int other) {
        return !value(other).literal && value(other).dtype == v.dtype;
      });
      operands.push_back(v.literal && (!anchored || strict) ? typed(v) : v.text);
    }
    std::string text = fill(loop::info(s.compute).jax, operands, jax_dtype_name(s.dtype));
    if (s.compute == loop::ComputeOp::exact_div && is_float(s.dtype)) {
      const Value& by = value(s.operands[1]);
      if (by.literal ? !has_exact_reciprocal(by.text) : by.shape != shape)
        text = fmt::format("{} / _divisor({}, {})", operands[0], typed(by), tuple_text(shape));
    }
    // XLA takes x + 0 for x, which keeps the sign of -0 where addition does not: say what addition gives.
    if (s.compute == loop::ComputeOp::add && is_float(s.dtype))
      for (std::size_t k = 0; k < 2; ++k)
        if (value(s.operands[k]).literal && operands[k] == "0.0")
          text = fmt::format("jnp.where({0} == 0, 0.0, {0})", operands[1 - k]);
    return {assign(text, statement), shape, s.dtype, false};
  }

  Value reduce(const loop::Nest& nest, const Statement& s, int statement) {
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
    if (whole != operand.shape) text = fmt::format("jnp.broadcast_to({}, {})", text, tuple_text(whole));
    const std::string_view name = loop::reduce_name(s.reduce);
    if (s.reduce == loop::ReduceOp::argmax || s.reduce == loop::ReduceOp::argmin) {
      if (over.size() == 1) {
        text = fmt::format("jnp.{}({}, axis={}, keepdims=True).astype(jnp.{})", name, text, over[0], jax_dtype_name(s.dtype));
      } else {
        PALLASCOPE_CHECK(over.size() == rank_, "an argmax over some of several axes");
        text = fmt::format("jnp.reshape(jnp.{}(jnp.reshape({}, (-1,))).astype(jnp.{}), {})", name, text, jax_dtype_name(s.dtype),
                           tuple_text(result));
      }
    } else {
      text = fmt::format("jnp.{}({}, axis={}, keepdims=True)", name, text, tuple_text(over));
    }
    return {assign(text, statement), result, s.dtype, false};
  }

  void store(const loop::Nest& nest, const Statement& s, int statement) {
    const index::Access& access = loop::access_of(program_, nest_id_, statement);
    PALLASCOPE_CHECK(access.plan.has_value(), "a store that no slice can express: " + nest.name);
    const index::Plan& plan = *access.plan;
    Value v = value(s.operands[0]);
    if (v.shape != plan.result_shape || v.literal) {
      const std::string text = v.literal
                                   ? fmt::format("jnp.full({}, {}, jnp.{})", tuple_text(plan.result_shape), v.text, jax_dtype_name(v.dtype))
                                   : fmt::format("jnp.broadcast_to({}, {})", v.text, tuple_text(plan.result_shape));
      v = {assign(text, statement), plan.result_shape, v.dtype, false};
    }
    const bool internal = internal_.contains(s.buffer);
    const bool alone = writers_[s.buffer] == 1;
    if (alone) values_of_buffers_[s.buffer] = v;
    if (internal && alone) return;
    Parameter& p = output(s.buffer, alone ? plan.view_shape : region_shape(s.buffer, plan));
    PALLASCOPE_CHECK(p.shape == plan.view_shape, "regions of one buffer disagree on its shape: " + nest.name);
    const std::string text = write_text(p.name, v.text, plan);
    const int id = record(statement, true, false, s.buffer, p.name, text);
    LineOrigin o = origin(statement);
    o.access = id;
    text_.body.line("    " + text, o);
  }

  /// The shape of a ref that several nests fill: its buffer's own.
  Shape region_shape(loop::BufferId buffer, const index::Plan& plan) const {
    const Shape& dims = program_.buffers[buffer].dims;
    return product(dims) == product(plan.view_shape) && !dims.empty() ? plan.view_shape : dims;
  }

  /// A flag that holds 1 where `condition` holds everywhere.
  void check(trace::NodeId blamed, int statement, const std::string& condition, std::string error,
             const std::function<std::string(const trace::Node&)>& message) {
    if (!checked_.insert(condition).second) return;
    const std::string name = fmt::format("check_ptr{}", checks_.size());
    text_.body.line(fmt::format("    {}[...] = jnp.reshape(jnp.all({}).astype(jnp.int32), (1, 1))", name, condition),
                    origin(statement));
    checks_.push_back({name, {}, {1, 1}, DType::i32});
    const trace::Node& node = graph_.nodes[blamed];
    const trace::Frame* frame = node.user_frame();
    text_.checks.push_back(
        {std::move(error), message(node) + (frame == nullptr ? "" : fmt::format(", {}:{}", frame->file, frame->line))});
  }

  void check_index(const loop::Nest& nest, const loop::SymbolUse& use, int statement) {
    const Value& v = value(use.statement);
    check(use.origin.valid() ? use.origin : nest.body[static_cast<std::size_t>(statement)].origin, statement, fmt::format("({0} >= {1}) & ({0} <= {2})", typed(v), use.low, use.high), "IndexError",
          [&](const trace::Node& node) {
            return fmt::format("index out of range in {} ({}): it must be within {} and {}", node.name, node.target, use.low, use.high);
          });
  }

  void check_divisor(const loop::ValueCheck& c) {
    check(c.origin, c.statement, typed(value(c.statement)) + " != 0", "RuntimeError", [](const trace::Node& node) {
      return fmt::format("ZeroDivisionError: integer division by zero in {} ({})", node.name, node.target);
    });
  }

  const trace::Graph& graph_;
  const loop::Program& program_;
  const schedule::Kernel& kernel_;
  KernelText text_;
  loop::NestId nest_id_;
  std::size_t rank_ = 0;
  int current_ = -1;  ///< the statement being written
  int variables_ = 0;
  std::vector<Value> values_;
  std::unordered_set<loop::BufferId> internal_;
  std::unordered_map<loop::BufferId, int> writers_;
  std::unordered_map<loop::BufferId, Value> values_of_buffers_;
  std::unordered_map<loop::BufferId, std::vector<std::pair<const index::Plan*, Value>>> loads_;
  std::map<std::string, std::string> iotas_;
  std::vector<Parameter> checks_;
  std::set<std::string> checked_;
};

}  // namespace

std::string literal_text(const loop::Scalar& scalar, DType dtype) {
  if (is_bool(dtype)) {
    const bool truth = std::visit([](auto v) { return v != 0; }, scalar);
    return truth ? "True" : "False";
  }
  if (is_integer(dtype)) {
    if (const auto* i = std::get_if<std::int64_t>(&scalar)) return fmt::format("{}", *i);
    if (const auto* b = std::get_if<bool>(&scalar)) return *b ? "1" : "0";
    return fmt::format("{}", static_cast<std::int64_t>(std::get<double>(scalar)));
  }
  const double v = std::visit([](auto x) { return static_cast<double>(x); }, scalar);
  if (std::isnan(v)) return "jnp.nan";
  if (std::isinf(v)) return v > 0 ? "jnp.inf" : "-jnp.inf";
  const std::string text = fmt::format("{}", v);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

KernelText kernel_text(const trace::Graph& graph, const loop::Program& program, const schedule::Kernel& kernel) {
  return Writer(graph, program, kernel).write();
}

}  // namespace pallascope::codegen
