#include "core/loop/program.h"

#include <algorithm>

#include <fmt/format.h>

namespace pallascope::loop {

std::int64_t Buffer::numel() const {
  std::int64_t n = 1;
  for (std::int64_t d : dims) n *= d;
  return n;
}

bool Nest::has_reduction() const { return std::find(reduced.begin(), reduced.end(), true) != reduced.end(); }

bool Nest::has_scan() const {
  return std::any_of(body.begin(), body.end(), [](const Statement& s) { return s.kind == StatementKind::scan; });
}

BufferId Nest::output() const {
  for (const Statement& s : body)
    if (s.kind == StatementKind::store) return s.buffer;
  internal_error("a nest stores nothing", __FILE__, __LINE__, name);
}

std::vector<BufferId> Nest::inputs() const {
  std::vector<BufferId> found;
  found.reserve(4);
  for (const Statement& s : body)
    if (s.kind == StatementKind::load && std::find(found.begin(), found.end(), s.buffer) == found.end())
      found.push_back(s.buffer);
  return found;
}

const index::Access& Accesses::of(const Program& program, NestId nest, int statement) {
  if (known_.size() <= nest.index()) known_.resize(program.nests.size());
  auto& row = known_[nest.index()];
  const Nest& n = program.nests[nest];
  if (row.size() < n.body.size()) row.resize(n.body.size());
  auto& slot = row.at(static_cast<std::size_t>(statement));
  if (!slot) {
    const Statement& s = n.body[static_cast<std::size_t>(statement)];
    slot = memo_.of(*program.context, s.index, n.axes, program.buffers[s.buffer].dims);
  }
  return *slot;
}

std::shared_ptr<const index::Access> Accesses::of(const Program& program, const View& view) {
  return memo_.of(*program.context, view.index, view.axes, program.buffers[view.buffer].dims);
}

std::vector<std::string_view> operand_names(const LibraryFunction& function) {
  if (std::holds_alternative<Product>(function)) return {"lhs", "rhs"};
  if (std::holds_alternative<Convolution>(function)) return {"input", "kernel"};
  return {"operand"};
}

std::string_view library_name(const LibraryFunction& function) {
  if (std::holds_alternative<Product>(function)) return "jnp.matmul";
  if (std::holds_alternative<Convolution>(function)) return "lax.conv_general_dilated";
  return std::holds_alternative<Sort>(function) ? "lax.sort" : "lax.top_k";
}

std::string_view outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kernel: return "kernel";
    case Outcome::view: return "view";
    case Outcome::library: return "library";
    case Outcome::torch: return "torch";
  }
  return "torch";
}

namespace {

std::string scalar_text(const Scalar& scalar) {
  if (const bool* b = std::get_if<bool>(&scalar)) return *b ? "true" : "false";
  if (const std::int64_t* i = std::get_if<std::int64_t>(&scalar)) return fmt::format("{}", *i);
  return fmt::format("{}", std::get<double>(scalar));
}

std::string statement_text(const Program& program, const Nest& nest, std::size_t position) {
  const Statement& s = nest.body[position];
  const auto buffer = [&] { return program.buffers[s.buffer].name; };
  const auto index = [&] { return program.context->to_string(s.index); };
  std::string operands;
  for (int o : s.operands) operands += fmt::format("{}%{}", operands.empty() ? "" : ", ", o);
  switch (s.kind) {
    case StatementKind::load: return fmt::format("%{} = load {}[{}] : {}", position, buffer(), index(), dtype_name(s.dtype));
    case StatementKind::constant:
      return fmt::format("%{} = constant {} : {}", position, scalar_text(s.scalar), dtype_name(s.dtype));
    case StatementKind::index_value:
      return fmt::format("%{} = index {} : {}", position, index(), dtype_name(s.dtype));
    case StatementKind::compute:
      return fmt::format("%{} = {} {} : {}", position, info(s.compute).name, operands, dtype_name(s.dtype));
    case StatementKind::reduce: {
      std::string over;
      for (std::size_t k = 0; k < nest.axes.size(); ++k)
        if (nest.reduced[k]) over += (over.empty() ? "" : ", ") + program.context->axis(nest.axes[k]).name;
      return fmt::format("%{} = reduce_{} {} over {} : {}", position, reduce_name(s.reduce), operands, over,
                         dtype_name(s.dtype));
    }
    case StatementKind::scan:
      return fmt::format("%{} = scan_{} {} along {} : {}", position, scan_name(s.scan), operands,
                         program.context->axis(s.axis).name, dtype_name(s.dtype));
    case StatementKind::store:
      return fmt::format("store{} {}[{}] = {}", s.mode == StoreMode::plain ? "" : fmt::format("_{}", store_mode_name(s.mode)),
                         buffer(), index(), operands);
  }
  return {};
}

}  // namespace

std::vector<std::string> statement_lines(const Program& program, const Nest& nest) {
  std::vector<std::string> lines;
  lines.reserve(nest.body.size());
  for (std::size_t k = 0; k < nest.body.size(); ++k) lines.push_back(statement_text(program, nest, k));
  return lines;
}

std::string to_string(const Program& program, const Nest& nest) {
  std::string text = nest.name + ":";
  for (std::size_t k = 0; k < nest.axes.size(); ++k) {
    const index::Axis& axis = program.context->axis(nest.axes[k]);
    text += fmt::format("{} {} < {}{}", k == 0 ? "" : ",", axis.name, axis.extent, nest.reduced[k] ? " (reduced)" : "");
  }
  text += "\n";
  for (const std::string& line : statement_lines(program, nest)) text += "  " + line + "\n";
  return text;
}

index::Expression flatten(index::Context& context, const std::vector<index::Expression>& index,
                          const std::vector<std::int64_t>& dims) {
  PALLASCOPE_CHECK(index.size() == dims.size(), "one index a dimension");
  return context.linear(index, trace::contiguous_strides(dims));
}

index::Expression at(index::Context& context, const View& view, const std::vector<index::Expression>& position) {
  PALLASCOPE_CHECK(position.size() == view.axes.size(), "one index a logical dimension");
  return context.substitute(view.index, view.axes, position);
}

View row_major_view(Program& program, BufferId buffer, const std::vector<std::int64_t>& sizes) {
  View view{buffer, {}, {}};
  std::vector<index::Expression> index;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    view.axes.push_back(program.context->add_axis("d" + std::to_string(k), sizes[k]));
    index.push_back(program.context->of(view.axes.back()));
  }
  view.index = flatten(*program.context, index, sizes);
  return view;
}

std::optional<AffineView> affine(const index::Context& context, const View& view) {
  const index::Sum& sum = context.sum(view.index);
  AffineView found{std::vector<std::int64_t>(view.axes.size(), 0), sum.constant};
  for (const auto& [term, coefficient] : sum.terms) {
    if (term.kind != index::TermKind::axis) return std::nullopt;
    const auto place = std::find(view.axes.begin(), view.axes.end(), term.axis);
    if (place == view.axes.end()) return std::nullopt;
    found.strides[static_cast<std::size_t>(place - view.axes.begin())] = coefficient;
  }
  // An axis of extent 1 (or 0) does not show in the expression; give it the stride a contiguous view would have.
  for (std::size_t k = view.axes.size(); k-- > 0;)
    if (context.axis(view.axes[k]).extent <= 1)
      found.strides[k] = k + 1 < view.axes.size()
                             ? found.strides[k + 1] * std::max<std::int64_t>(1, context.axis(view.axes[k + 1]).extent)
                             : 1;
  return found;
}

}  // namespace pallascope::loop
