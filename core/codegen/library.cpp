// Library calls: one function a call, by what it calls.
#include <algorithm>
#include <string>
#include <variant>

#include <fmt/compile.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/codegen/module_writer.h"

namespace pallascope::codegen {
namespace {

bool is_narrow(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

std::string cast_text(const std::string& value, DType from, DType to) {
  return from == to ? value : fmt::format(FMT_COMPILE("{}.astype(jnp.{})"), value, jax_dtype_name(to));
}

/// `(1, 1)`, `((1, 0), (1, 0))` are left out where the library assumes them.
bool all_are(const Shape& shape, std::int64_t value) {
  return std::all_of(shape.begin(), shape.end(), [&](std::int64_t n) { return n == value; });
}

/// What a library call is written from: its operands as expressions, and the dtypes and extents at both ends.
struct Written {
  std::vector<std::string> operands;
  std::vector<DType> dtypes;
  std::vector<Shape> sizes;
  std::vector<DType> results;
};

/// The lines of the function, with `return (...)` as the last.
using Lines = std::vector<std::string>;

Lines lines_of(const loop::Product&, const Written& w) {
  const DType dtype = w.dtypes[0], result = w.results[0];
  if (!is_float(dtype)) {
    const std::string wider = dtype == result ? "" : fmt::format(FMT_COMPILE(", preferred_element_type=jnp.{}"), jax_dtype_name(result));
    return {fmt::format(FMT_COMPILE("return (jnp.matmul({}, {}{}),)"), w.operands[0], w.operands[1], wider)};
  }
  // XLA's default on accelerators may round f32 products; eager does not. 16-bit products add up in f32 and are
  // rounded once, as eager's are.
  const bool narrow = is_narrow(dtype);
  const std::string product =
      fmt::format(FMT_COMPILE("jnp.matmul({}, {}, precision=lax.Precision.HIGHEST{})"), w.operands[0], w.operands[1],
                  narrow ? ", preferred_element_type=jnp.float32" : "");
  return {fmt::format(FMT_COMPILE("return ({},)"), cast_text(product, narrow ? DType::f32 : dtype, result))};
}

Lines lines_of(const loop::Convolution& c, const Written& w) {
  // 16-bit operands are taken in f32, so that sums are.
  const auto wide = [&](std::size_t k) {
    return is_narrow(w.dtypes[k]) ? cast_text(w.operands[k], w.dtypes[k], DType::f32) : w.operands[k];
  };
  // JAX counts the spatial dimensions in the order in which the kernel's letters stand.
  std::vector<std::size_t> spatial;
  for (char letter : c.kernel)
    if (letter >= '0' && letter <= '9') spatial.push_back(static_cast<std::size_t>(letter - '0'));
  const auto ordered = [&](const std::vector<std::int64_t>& list) {
    std::vector<std::int64_t> made;
    for (std::size_t d : spatial) made.push_back(list.at(d));
    return tuple_text(made);
  };
  std::vector<std::string> padding;
  for (std::size_t d : spatial) padding.push_back(fmt::format(FMT_COMPILE("({}, {})"), c.low.at(d), c.high.at(d)));
  Lines lines = {"result = lax.conv_general_dilated(", fmt::format(FMT_COMPILE("    {},"), wide(0)), fmt::format(FMT_COMPILE("    {},"), wide(1)),
                 fmt::format(FMT_COMPILE("    window_strides={},"), ordered(c.stride)),
                 fmt::format(FMT_COMPILE("    padding=({},),"), fmt::join(padding, ", "))};
  if (!all_are(c.input_dilation, 1)) lines.push_back(fmt::format(FMT_COMPILE("    lhs_dilation={},"), ordered(c.input_dilation)));
  if (!all_are(c.kernel_dilation, 1)) lines.push_back(fmt::format(FMT_COMPILE("    rhs_dilation={},"), ordered(c.kernel_dilation)));
  lines.push_back(fmt::format(FMT_COMPILE("    dimension_numbers=(\"{}\", \"{}\", \"{}\"),"), c.input, c.kernel, c.output));
  if (c.groups != 1) lines.push_back(fmt::format(FMT_COMPILE("    feature_group_count={},"), c.groups));
  if (c.batch_groups != 1) lines.push_back(fmt::format(FMT_COMPILE("    batch_group_count={},"), c.batch_groups));
  lines.insert(lines.end(), {"    precision=lax.Precision.HIGHEST,", ")"});
  lines.push_back(fmt::format(FMT_COMPILE("return ({},)"), cast_text("result", is_narrow(w.dtypes[0]) ? DType::f32 : w.dtypes[0], w.results[0])));
  return lines;
}

Lines lines_of(const loop::Sort& s, const Written& w) {
  // A stable descending order is a stable ascending one of the reversed elements, read backwards: nothing is negated.
  const auto turned = [&](const std::string& value) {
    return s.descending ? fmt::format(FMT_COMPILE("jnp.flip({}, {})"), value, s.dimension) : value;
  };
  const std::string how = fmt::format(FMT_COMPILE("dimension={}, is_stable=True, num_keys=1"), s.dimension);
  if (w.results.size() == 1)
    return {fmt::format(FMT_COMPILE("values, = lax.sort(({},), {})"), turned(w.operands[0]), how), fmt::format(FMT_COMPILE("return ({},)"), turned("values"))};
  const std::string places = fmt::format(FMT_COMPILE("lax.broadcasted_iota(jnp.int32, {}, {})"), Tuple{w.sizes[0]}, s.dimension);
  return {fmt::format(FMT_COMPILE("places = {}"), places),
          fmt::format(FMT_COMPILE("values, places = lax.sort(({}, {}), {})"), turned(w.operands[0]), turned("places"), how),
          fmt::format(FMT_COMPILE("return ({}, {}.astype(jnp.int64))"), turned("values"), turned("places"))};
}

Lines lines_of(const loop::TopK& t, const Written& w) {
  const DType dtype = w.dtypes[0];
  Lines lines = {fmt::format(FMT_COMPILE("keys = {}"), w.operands[0])};
  if (is_float(dtype)) {
    // XLA is quick for f32 alone, and orders by bits: a NaN whose sign is set would be the smallest, here it is the
    // largest. So, for the smallest elements, all are negated, and a NaN's sign is set.
    if (is_narrow(dtype)) lines.emplace_back("keys = keys.astype(jnp.float32)");
    lines.emplace_back("keys = jnp.where(jnp.isnan(keys), jnp.nan, keys)");
    if (!t.largest) lines.emplace_back("keys = -keys");
  } else if (!t.largest) {
    lines.emplace_back("keys = jnp.bitwise_not(keys)  # the order turned round, without an overflow");
  }
  lines.push_back(fmt::format(FMT_COMPILE("values, places = lax.top_k(keys, {}, axis={})"), t.count, t.dimension));
  std::string values = t.largest ? "values" : is_float(dtype) ? "(-values)" : "jnp.bitwise_not(values)";
  if (is_narrow(dtype)) values = cast_text(values, DType::f32, dtype);
  lines.push_back(w.results.size() == 1 ? fmt::format(FMT_COMPILE("return ({},)"), values)
                                        : fmt::format(FMT_COMPILE("return ({}, places.astype(jnp.int64))"), values));
  return lines;
}

}  // namespace

std::string ModuleWriter::operand_text(const loop::View& view, const std::string& name) const {
  const std::shared_ptr<const index::Access> access = program_.accesses->of(program_, view);
  PALLASCOPE_CHECK(access->plan.has_value(), "a library operand that no view can express");
  const std::string text = read_text(name, false, buffer(view.buffer).dims, *access->plan);
  // A broadcast axis is 1 in what is read: kernels broadcast where they compute, a library function does not.
  Shape sizes;
  for (index::AxisId axis : view.axes) sizes.push_back(program_.context->axis(axis).extent);
  return access->plan->result_shape == sizes ? text : fmt::format(FMT_COMPILE("jnp.broadcast_to({}, {})"), text, Tuple{sizes});
}

void ModuleWriter::write_library(const loop::LibraryCall& call, Call& made) {
  Written written;
  std::vector<std::string> parameters, results;
  for (const std::string_view name : loop::operand_names(call.function)) parameters.emplace_back(name);
  for (std::size_t k = 0; k < call.operands.size(); ++k) {
    const loop::View& view = call.operands[k];
    written.operands.push_back(operand_text(view, parameters[k]));
    written.dtypes.push_back(buffer(view.buffer).dtype);
    Shape sizes;
    for (const index::AxisId axis : view.axes) sizes.push_back(program_.context->axis(axis).extent);
    written.sizes.push_back(std::move(sizes));
  }
  for (std::size_t k = 0; k < call.outputs.size(); ++k) {
    written.results.push_back(buffer(call.outputs[k]).dtype);
    results.push_back(fmt::format(FMT_COMPILE("out_ptr{}"), k));
  }
  const Lines lines = std::visit([&](const auto& function) { return lines_of(function, written); }, call.function);

  std::string content = fmt::format(FMT_COMPILE("{}"), fmt::join(lines, "\n"));
  for (const loop::View& view : call.operands) {
    const Layout l = layout(view.buffer);
    content += fmt::format(FMT_COMPILE("|{}{}{}"), dtype_name(buffer(view.buffer).dtype), Tuple{l.sizes}, Tuple{l.strides});
  }
  for (const loop::BufferId b : call.outputs) content += fmt::format(FMT_COMPILE("|{}{}"), dtype_name(buffer(b).dtype), Tuple{buffer(b).dims});
  const std::string name =
      fmt::format(FMT_COMPILE("library_{}_{:08x}"), operator_name(call.op), static_cast<std::uint32_t>(fnv1a(content) >> 32));
  made.name = name;
  LineOrigin origin;
  origin.node = call.origin;
  blank();
  text_.write(origin, FMT_COMPILE("def {}_call({}):"), name, fmt::join(parameters, ", "));
  for (const std::string& line : lines) text_.write(origin, FMT_COMPILE("    {}"), line);
  blank();
  text_.write(origin, FMT_COMPILE("{0}_jit = jax.jit({0}_call)"), name);
  blank();
  text_.write(origin, FMT_COMPILE("def {}_main({}, {}, stream=None):"), name, fmt::join(parameters, ", "), fmt::join(results, ", "));
  Out& out = text_.open();
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    put(out, "    ");
    put_expect(out, call.operands[k].buffer, parameters[k], parameters[k], " of ", name);
    text_.close(origin);
  }
  text_.line("    with jax.enable_x64(True):", origin);
  fmt::format_to(fmt::appender(out), FMT_COMPILE("        results = {}_jit("), name);
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    if (k > 0) put(out, ", ");
    put_to_jax(out, call.operands[k].buffer, parameters[k]);
  }
  put(out, ")");
  text_.close(origin);
  text_.line("        jax.block_until_ready(results)", origin);
  for (std::size_t k = 0; k < results.size(); ++k)
    text_.write(origin, FMT_COMPILE("        {}.copy_(torch.from_dlpack(results[{}]))"), results[k], k);
}

}  // namespace pallascope::codegen
