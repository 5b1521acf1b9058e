// What a kernel reads and writes: refs, loads, gathers, stores.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "core/codegen/kernel_writer.h"

namespace pallascope::codegen {

using loop::Statement;

Parameter& KernelWriter::input(loop::BufferId buffer, const index::Plan& plan) {
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

Parameter& KernelWriter::add_input(loop::BufferId buffer, Shape shape) {
  if (shape.empty()) shape = {1, 1};
  text_.inputs.push_back({fmt::format(FMT_COMPILE("in_ptr{}"), text_.inputs.size()), buffer, std::move(shape), program_.buffers[buffer].dtype});
  return text_.inputs.back();
}

Parameter& KernelWriter::output(loop::BufferId buffer, const Shape& shape) {
  for (Parameter& p : text_.outputs)
    if (p.buffer == buffer) return p;
  text_.outputs.push_back({fmt::format(FMT_COMPILE("out_ptr{}"), text_.outputs.size()), buffer, shape, program_.buffers[buffer].dtype});
  return text_.outputs.back();
}

Parameter* KernelWriter::find_output(loop::BufferId buffer) {
  for (Parameter& p : text_.outputs)
    if (p.buffer == buffer) return &p;
  return nullptr;
}

int KernelWriter::record(int statement, bool store, bool on_value, loop::BufferId buffer, std::string parameter,
                         std::string source) {
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

Value KernelWriter::load(const loop::Nest& nest, const Statement& s, int statement) {
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

std::string KernelWriter::iota(const loop::Nest& nest, std::size_t k, std::string_view dtype) {
  Shape shape(rank_, 1);
  shape[k] = extent(nest.axes[k]);
  const std::string text = fmt::format(FMT_COMPILE("lax.broadcasted_iota(jnp.{}, {}, {})"), dtype, Tuple{shape}, k);
  if (const auto known = iotas_.find(text); known != iotas_.end()) return known->second;
  const std::string name = fmt::format(FMT_COMPILE("iota{}"), iotas_.size());
  text_.body.write(origin(current_), FMT_COMPILE("    {} = {}"), name, text);
  iotas_.emplace(text, name);
  return name;
}

KernelWriter::Rendered KernelWriter::render(const loop::Nest& nest, index::Expression e, std::string_view dtype) {
  const index::Sum& sum = context().sum(e);
  std::string text;
  Shape shape(rank_, 1);
  int parts = 0;
  for (const auto& [term, coefficient] : sum.terms) {
    Rendered r = render_term(nest, term, dtype);
    widen(shape, r.shape);
    std::string piece = coefficient == 1    ? r.text
                        : coefficient == -1 ? "-" + (r.atom ? r.text : "(" + r.text + ")")
                                            : fmt::format(FMT_COMPILE("{} * {}"), coefficient, r.atom ? r.text : "(" + r.text + ")");
    if (parts++ > 0) text += coefficient < 0 && coefficient != -1 ? " + " : " + ";
    text += piece;
  }
  if (sum.constant != 0 || parts == 0) {
    if (parts > 0) {
      text += fmt::format(FMT_COMPILE(" {} {}"), sum.constant < 0 ? "-" : "+", std::abs(sum.constant));
    } else {
      text = fmt::format(FMT_COMPILE("{}"), sum.constant);
    }
    ++parts;
  }
  return {text, shape, parts == 1 && text.find(' ') == std::string::npos && text[0] != '-'};
}

KernelWriter::Rendered KernelWriter::render_term(const loop::Nest& nest, const index::Term& term,
                                                 std::string_view dtype) {
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
          return {fmt::format(FMT_COMPILE("{}.astype(jnp.{})"), text, dtype), v.shape, true};
        }
      internal_error("an index symbol has no load", __FILE__, __LINE__, nest.name);
    }
    case index::TermKind::floor_div:
    case index::TermKind::mod: {
      const Rendered inner = render(nest, term.operand, dtype);
      const std::string op = term.kind == index::TermKind::mod ? "%" : "//";
      return {fmt::format(FMT_COMPILE("({} {} {})"), inner.atom ? inner.text : "(" + inner.text + ")", op, term.divisor), inner.shape, true};
    }
  }
  return {};
}

std::string_view KernelWriter::index_dtype(index::Expression e, std::int64_t reach) const {
  const index::Range r = context().range(e);
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max();
  return reach < kLimit && r.low > -kLimit && r.high < kLimit ? "int32" : "int64";
}

Value KernelWriter::index_value(const loop::Nest& nest, const Statement& s, int statement) {
  const std::string_view dtype = index_dtype(s.index, 0);
  Rendered r = render(nest, s.index, dtype);
  if (const auto constant = context().as_constant(s.index)) return {fmt::format(FMT_COMPILE("{}"), *constant), Shape(rank_, 1), s.dtype, true};
  if (jax_dtype_name(s.dtype) != dtype)
    r.text = fmt::format(FMT_COMPILE("{}.astype(jnp.{})"), r.atom ? r.text : "(" + r.text + ")", jax_dtype_name(s.dtype));
  return {assign(r.text, statement), r.shape, s.dtype, false};
}

Value KernelWriter::gather(const loop::Nest& nest, const Statement& s, int statement) {
  const loop::Buffer& buffer = program_.buffers[s.buffer];
  const std::string_view dtype = index_dtype(s.index, buffer.numel());
  if (std::optional<Value> rows = gather_rows(nest, s, statement, dtype)) return *rows;
  const Shape flat = {buffer.numel()};
  std::string name;
  bool on_value = false;
  std::string source = gather_source(s.buffer, flat, name, on_value);
  const Rendered index = render(nest, s.index, dtype);
  const std::string at = context().as_constant(s.index) ? fmt::format(FMT_COMPILE("jnp.full({}, {}, jnp.{})"), Tuple{Shape(rank_, 1)}, index.text, dtype) : index.text;
  const std::string text = fmt::format(FMT_COMPILE("jnp.take({}, {}, mode=\"clip\")"), source, at);
  const int access = record(statement, false, on_value, s.buffer, name, text);
  return {assign(text, statement, access), index.shape, s.dtype, false};
}

std::string KernelWriter::gather_source(loop::BufferId buffer, const Shape& shape, std::string& name, bool& on_value) {
  if (values_of_buffers_.contains(buffer) && writers_[buffer] == 1) {
    const Value& v = values_of_buffers_.at(buffer);
    name = v.text;
    on_value = true;
    return v.shape == shape ? v.text : fmt::format(FMT_COMPILE("jnp.reshape({}, {})"), v.text, Tuple{shape});
  }
  Parameter* p = find_output(buffer);
  if (p == nullptr) {
    for (Parameter& known : text_.inputs)
      if (known.buffer == buffer && known.shape == shape) p = &known;
    if (p == nullptr) p = &add_input(buffer, shape);
  }
  name = p->name;
  return p->shape == shape ? name + "[...]" : fmt::format(FMT_COMPILE("jnp.reshape({}[...], {})"), name, Tuple{shape});
}

std::optional<KernelWriter::Rows> KernelWriter::rows_of(const loop::Nest& nest, index::Expression e,
                                                        std::int64_t numel) const {
  const index::Sum& sum = context().sum(e);
  const index::Term* symbol = nullptr;
  Rows rows;
  std::map<index::AxisId, std::int64_t> coefficients;
  if (sum.constant != 0) return std::nullopt;
  for (const auto& [term, coefficient] : sum.terms) {
    if (term.kind == index::TermKind::symbol && symbol == nullptr) {
      symbol = &term;
      rows.extent = coefficient;
    } else if (term.kind == index::TermKind::axis) {
      coefficients[term.axis] = coefficient;
    } else {
      return std::nullopt;
    }
  }
  if (symbol == nullptr || rows.extent <= 0 || numel % rows.extent != 0) return std::nullopt;
  // The last axes must walk 0 .. extent-1 in order; the symbol must not vary along them.
  std::int64_t expected = 1;
  rows.first = rank_;
  while (rows.first > 0 && expected < rows.extent) {
    const index::AxisId axis = nest.axes[rows.first - 1];
    if (extent(axis) > 1 && (!coefficients.contains(axis) || coefficients.at(axis) != expected)) return std::nullopt;
    expected *= extent(axis);
    coefficients.erase(axis);
    --rows.first;
  }
  if (expected != rows.extent || !coefficients.empty()) return std::nullopt;
  for (const loop::SymbolUse& u : nest.symbols)
    if (u.symbol == symbol->symbol) rows.use = &u;
  PALLASCOPE_CHECK(rows.use != nullptr, nest.name);
  const Value& at = value(rows.use->statement);
  for (std::size_t k = rows.first; k < rank_; ++k)
    if (at.shape[k] != 1) return std::nullopt;
  return rows;
}

std::optional<Value> KernelWriter::gather_rows(const loop::Nest& nest, const Statement& s, int statement,
                                               std::string_view dtype) {
  const loop::Buffer& buffer = program_.buffers[s.buffer];
  const std::optional<Rows> found = rows_of(nest, s.index, buffer.numel());
  if (!found) return std::nullopt;
  const std::int64_t row = found->extent;
  const std::size_t first = found->first;
  const Value& at = value(found->use->statement);
  const Shape rows = {buffer.numel() / row, row};
  std::string name;
  bool on_value = false;
  const std::string source = gather_source(s.buffer, rows, name, on_value);
  Shape lead(at.shape.begin(), at.shape.begin() + static_cast<std::ptrdiff_t>(first));
  Shape result = at.shape, taken = lead;
  for (std::size_t k = first; k < rank_; ++k) result[k] = extent(nest.axes[k]);
  taken.push_back(row);
  std::string positions = fmt::format(FMT_COMPILE("{}.astype(jnp.{})"), typed(at), dtype);
  if (lead != at.shape) positions = fmt::format(FMT_COMPILE("jnp.reshape({}, {})"), positions, Tuple{lead});
  std::string text = fmt::format(FMT_COMPILE("jnp.take({}, {}, axis=0, mode=\"clip\")"), source, positions);
  if (taken != result) text = fmt::format(FMT_COMPILE("jnp.reshape({}, {})"), text, Tuple{result});
  const int access = record(statement, false, on_value, s.buffer, name, text);
  return Value{assign(text, statement, access), result, s.dtype, false};
}

void KernelWriter::store(const loop::Nest& nest, const Statement& s, int statement) {
  if (s.mode != loop::StoreMode::plain) return scatter(nest, s, statement);
  const index::Access& access = loop::access_of(program_, nest_id_, statement);
  PALLASCOPE_CHECK(access.plan.has_value(), "a store that no slice can express: " + nest.name);
  const index::Plan& plan = *access.plan;
  Value v = value(s.operands[0]);
  if (v.shape != plan.result_shape || v.literal) {
    const std::string text = v.literal
                                 ? fmt::format(FMT_COMPILE("jnp.full({}, {}, jnp.{})"), Tuple{plan.result_shape}, v.text, jax_dtype_name(v.dtype))
                                 : fmt::format(FMT_COMPILE("jnp.broadcast_to({}, {})"), v.text, Tuple{plan.result_shape});
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
  line(text, o);
}

void KernelWriter::scatter(const loop::Nest& nest, const Statement& s, int statement) {
  const loop::Buffer& buffer = program_.buffers[s.buffer];
  const std::int64_t numel = buffer.numel();
  const std::string_view dtype = index_dtype(s.index, numel);
  Shape points;  // the order in which they are stored decides among equal indices
  for (const index::AxisId axis : nest.axes) points.push_back(extent(axis));
  const Value& v = value(s.operands[0]);
  const auto spread = [&](const std::string& text, const Shape& from, const Shape& to) {
    return from == to ? text : fmt::format(FMT_COMPILE("jnp.broadcast_to({}, {})"), text, Tuple{to});
  };
  std::string values = spread(typed(v), v.shape, points), positions;
  Shape seen = {numel};
  if (const std::optional<Rows> rows = rows_of(nest, s.index, numel)) {
    const Value& at = value(rows->use->statement);
    const auto cut = static_cast<std::ptrdiff_t>(rows->first);
    const Shape lead(points.begin(), points.begin() + cut), tail(points.size() - rows->first, 1);
    Shape whole = lead, updates = lead;
    whole.insert(whole.end(), tail.begin(), tail.end());
    updates.push_back(rows->extent);
    positions = spread(fmt::format(FMT_COMPILE("{}.astype(jnp.{})"), typed(at), dtype), at.shape, whole);
    if (lead != whole) positions = fmt::format(FMT_COMPILE("jnp.reshape({}, {})"), positions, Tuple{lead});
    if (updates != points) values = fmt::format(FMT_COMPILE("jnp.reshape({}, {})"), values, Tuple{updates});
    seen = {numel / rows->extent, rows->extent};
  } else if (context().as_constant(s.index)) {
    positions = fmt::format(FMT_COMPILE("jnp.full({}, {}, jnp.{})"), Tuple{points}, *context().as_constant(s.index), dtype);
  } else {
    const Rendered index = render(nest, s.index, dtype);
    positions = spread(index.text, index.shape, points);
  }
  positions = assign(positions, statement);
  std::string_view how = loop::store_mode_name(s.mode);
  // Booleans have neither sums nor products in JAX: or and and are their greatest and least.
  if (is_bool(s.dtype) && s.mode == loop::StoreMode::add) how = "max";
  if (is_bool(s.dtype) && s.mode == loop::StoreMode::mul) how = "min";
  const Parameter& p = output(s.buffer, buffer.dims.empty() ? Shape{1, 1} : buffer.dims);
  const std::string flat =
      p.shape == seen ? p.name + "[...]" : fmt::format(FMT_COMPILE("jnp.reshape({}[...], {})"), p.name, Tuple{seen});
  std::string text = fmt::format(FMT_COMPILE("{}.at[{}].{}({}, mode=\"drop\")"), flat, positions, how, values);
  if (p.shape != seen) text = fmt::format(FMT_COMPILE("jnp.reshape({}, {})"), text, Tuple{p.shape});
  text = fmt::format(FMT_COMPILE("{}[...] = {}"), p.name, text);
  const int id = record(statement, true, false, s.buffer, p.name, text);
  LineOrigin o = origin(statement);
  o.access = id;
  line(text, o);
}

Shape KernelWriter::region_shape(loop::BufferId buffer, const index::Plan& plan) const {
  const Shape& dims = program_.buffers[buffer].dims;
  return product(dims) == product(plan.view_shape) && !dims.empty() ? plan.view_shape : dims;
}
}  // namespace pallascope::codegen
