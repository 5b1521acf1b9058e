// Family: recurrent layers and cells. Steps are written one after the other: the inputs' share of all steps is one
// product, each step is a product of the state with nests around it.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "core/lower/library.h"

namespace pallascope::lower {
namespace {

using loop::ComputeOp;

enum class Cell { lstm, gru, tanh, relu };

std::int64_t gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }

/// The weights of one layer in one direction.
struct Weights {
  Tensor input, hidden;
  std::optional<Tensor> input_bias, hidden_bias, projection;
};

struct State {
  Tensor h, c;  ///< [batch, hidden]; c for LSTM alone
};

/// More steps than these would be written out for minutes. Not measured.
constexpr std::int64_t most_steps = 256;

Tensor times(Call& call, const Tensor& x, const Tensor& weight) { return product(call, x, transposed(call.builder, weight), x.dtype); }

/// One step: `given` [batch, gates * hidden] is the input's share of the gates, without bias.
State step(Call& call, Cell cell, const std::string& name, const Tensor& given, const State& before, const Weights& w) {
  Builder& builder = call.builder;
  const DType dtype = given.dtype;
  const std::int64_t hidden = w.hidden.sizes.at(0) / gates_of(cell);
  const Tensor own = times(call, before.h, w.hidden);
  const Sizes sizes = {given.sizes.at(0), hidden};
  const auto place = [&](NestBuilder& nest, std::int64_t gate) {
    return builder.context().add(nest.index(1), builder.context().constant(gate * hidden));
  };
  const auto with_bias = [&](NestBuilder& nest, const Tensor& share, const std::optional<Tensor>& bias, std::int64_t gate) {
    const int value = nest.load_at(share, {nest.index(0), place(nest, gate)});
    return bias ? nest.add(value, nest.load_at(*bias, {place(nest, gate)})) : value;
  };
  const auto gate = [&](NestBuilder& nest, std::int64_t k) {
    const int left = with_bias(nest, given, w.input_bias, k);
    return nest.add(left, with_bias(nest, own, w.hidden_bias, k));
  };
  const auto sigmoid = [](NestBuilder& nest, int value) { return nest.op(ComputeOp::sigmoid, value); };
  State after;
  switch (cell) {
    case Cell::tanh:
    case Cell::relu:
      after.h = builder.pointwise(name, sizes, dtype, [&](NestBuilder& nest) {
        const int value = gate(nest, 0);
        return cell == Cell::tanh ? nest.op(ComputeOp::tanh, value) : nest.op(ComputeOp::maximum, value, nest.number(0, value));
      });
      break;
    case Cell::gru:
      after.h = builder.pointwise(name, sizes, dtype, [&](NestBuilder& nest) {
        const int reset = sigmoid(nest, gate(nest, 0)), update = sigmoid(nest, gate(nest, 1));
        const int candidate = nest.op(ComputeOp::tanh, nest.add(with_bias(nest, given, w.input_bias, 2),
                                                               nest.mul(reset, with_bias(nest, own, w.hidden_bias, 2))));
        return nest.add(nest.mul(nest.sub(nest.load(before.h), candidate), update), candidate);
      });
      break;
    case Cell::lstm:
      after.c = builder.pointwise(name + ".cell", sizes, dtype, [&](NestBuilder& nest) {
        const int in = sigmoid(nest, gate(nest, 0)), forget = sigmoid(nest, gate(nest, 1));
        return nest.add(nest.mul(forget, nest.load(before.c)), nest.mul(in, nest.op(ComputeOp::tanh, gate(nest, 2))));
      });
      after.h = builder.pointwise(name, sizes, dtype, [&](NestBuilder& nest) {
        return nest.mul(sigmoid(nest, gate(nest, 3)), nest.op(ComputeOp::tanh, nest.load(after.c)));
      });
      break;
  }
  if (w.projection) after.h = times(call, after.h, *w.projection);
  return after;
}

/// Index `k` of the first dimension, which goes.
Tensor at_first(Builder& builder, const Tensor& x, std::int64_t k) {
  return builder.reindex(x, Sizes(x.sizes.begin() + 1, x.sizes.end()), [&](const Index& at) {
    Index source = at;
    source.insert(source.begin(), builder.context().constant(k));
    return source;
  });
}

/// One nest a part copies it to its place in a buffer of `sizes`: part [rows, columns] to [first, rows, start..].
struct Part {
  Tensor tensor;
  std::int64_t first = 0, start = 0;
};
Tensor stacked(Builder& builder, const std::string& name, const Sizes& sizes, const std::vector<Part>& parts) {
  const loop::BufferId buffer = builder.add_buffer(parts.at(0).tensor.dtype, sizes);
  for (const Part& part : parts) {
    NestBuilder nest(builder, name, part.tensor.sizes);
    const Index where = {builder.context().constant(part.first), nest.index(0),
                         builder.context().add(nest.index(1), builder.context().constant(part.start))};
    const int value = nest.load(part.tensor);
    nest.store_into(buffer, loop::flatten(builder.context(), where, sizes), value);
  }
  return builder.row_major(buffer, sizes);
}

std::optional<std::string> refusal(const Call& call, const Tensor& x) {
  if (x.dtype != DType::f32 && x.dtype != DType::f64) return "a recurrence in a dtype whose steps eager rounds in its own way";
  if (call.meta().numel() == 0 || numel(x.sizes) == 0) return "a recurrence over nothing";
  return std::nullopt;
}

/// lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first) -> output, h_n, c_n; gru,
/// rnn_tanh and rnn_relu the same with a number for hx and without c_n.
template <Cell cell>
Lowered layers(Call& call) {
  Builder& builder = call.builder;
  Tensor x = call.tensor(0, "input");
  if (const auto why = refusal(call, x)) return declined(*why);
  if (x.rank() != 3) return declined("a recurrence over a packed or unbatched sequence");
  const bool has_biases = call.boolean(3, "has_biases"), batch_first = call.boolean(8, "batch_first");
  const std::int64_t count = call.integer(4, "num_layers"), directions = call.boolean(7, "bidirectional") ? 2 : 1;
  if (call.number(5, "dropout") != 0 && call.boolean(6, "train") && count > 1)
    return declined("dropout between layers: random values are drawn by PyTorch");
  if (batch_first) x = builder.permute(x, {1, 0, 2});
  const std::int64_t steps = x.sizes[0], batch = x.sizes[1];
  if (steps * count * directions > most_steps)
    return declined(fmt::format("{} steps, where {} are written out at most", steps * count * directions, most_steps));
  std::vector<Tensor> initial = cell == Cell::lstm ? call.tensors(1, "hx") : std::vector<Tensor>{call.tensor(1, "hx")};
  if (initial.size() != (cell == Cell::lstm ? 2U : 1U)) throw MalformedNode{"an initial state of another size"};
  const std::vector<Tensor> parameters = call.tensors(2, "params");
  const std::int64_t width = initial[0].sizes.at(2);
  const bool projected = cell == Cell::lstm && initial[1].sizes.at(2) != width;
  const std::size_t each = 2 + (has_biases ? 2 : 0) + (projected ? 1 : 0);
  if (parameters.size() != each * static_cast<std::size_t>(count * directions)) throw MalformedNode{"another number of weights"};
  std::vector<Part> last_h, last_c;
  const std::string& name = call.node.name;
  for (std::int64_t layer = 0; layer < count; ++layer) {
    std::vector<Part> parts;
    for (std::int64_t direction = 0; direction < directions; ++direction) {
      const std::int64_t number = layer * directions + direction;
      std::size_t at = each * static_cast<std::size_t>(number);
      Weights w{parameters[at], parameters[at + 1], {}, {}, {}};
      at += 2;
      if (has_biases) {
        w.input_bias = parameters[at++];
        w.hidden_bias = parameters[at++];
      }
      if (projected) w.projection = parameters[at];
      const Tensor shares = builder.reshape(times(call, as_matrix(builder, x), w.input), {steps, batch, w.input.sizes.at(0)});
      State state{at_first(builder, initial[0], number), {}};
      if (cell == Cell::lstm) state.c = at_first(builder, initial[1], number);
      for (std::int64_t k = 0; k < steps; ++k) {
        const std::int64_t t = direction == 0 ? k : steps - 1 - k;
        state = step(call, cell, fmt::format("{}.{}.{}", name, number, t), at_first(builder, shares, t), state, w);
        parts.push_back({state.h, t, direction * width});
      }
      last_h.push_back({state.h, number, 0});
      if (cell == Cell::lstm) last_c.push_back({state.c, number, 0});
    }
    x = stacked(builder, fmt::format("{}.{}.output", name, layer), {steps, batch, directions * width}, parts);
  }
  call.define(batch_first ? builder.permute(x, {1, 0, 2}) : x);
  if (call.wanted(1)) call.define(stacked(builder, name + ".h", {count * directions, batch, width}, last_h), 1);
  if (cell == Cell::lstm && call.wanted(2))
    call.define(stacked(builder, name + ".c", {count * directions, batch, initial[1].sizes[2]}, last_c), 2);
  return as_made(call);
}

/// lstm_cell(input, hx, w_ih, w_hh, b_ih, b_hh) -> h, c; the others take and give one tensor.
template <Cell cell>
Lowered single(Call& call) {
  Builder& builder = call.builder;
  const Tensor x = call.tensor(0, "input");
  if (const auto why = refusal(call, x)) return declined(*why);
  const std::vector<Tensor> states = cell == Cell::lstm ? call.tensors(1, "hx") : std::vector<Tensor>{call.tensor(1, "hx")};
  if (states.size() != (cell == Cell::lstm ? 2U : 1U)) throw MalformedNode{"a state of another size"};
  const auto row = [&](const Tensor& t) { return t.rank() == 1 ? builder.reshape(t, {1, t.sizes[0]}) : t; };
  const Weights w{call.tensor(2, "w_ih"), call.tensor(3, "w_hh"), call.optional_tensor(4, "b_ih"), call.optional_tensor(5, "b_hh"), {}};
  State before{row(states[0]), {}};
  if (cell == Cell::lstm) before.c = row(states[1]);
  const State after = step(call, cell, call.node.name, times(call, row(x), w.input), before, w);
  call.define(builder.reshape(after.h, call.meta(0).sizes), 0);
  if (cell == Cell::lstm && call.wanted(1)) call.define(builder.reshape(after.c, call.meta(1).sizes), 1);
  return as_made(call);
}

}  // namespace

std::vector<Entry> recurrent_entries() {
  std::vector<Entry> rows;
  const auto add = [&](std::string_view op, Family f) { rows.push_back({op, "library", f}); };
  add("aten.lstm.input", layers<Cell::lstm>);
  add("aten.gru.input", layers<Cell::gru>);
  add("aten.rnn_tanh.input", layers<Cell::tanh>);
  add("aten.rnn_relu.input", layers<Cell::relu>);
  add("aten.lstm_cell.default", single<Cell::lstm>);
  add("aten.gru_cell.default", single<Cell::gru>);
  add("aten.rnn_tanh_cell.default", single<Cell::tanh>);
  add("aten.rnn_relu_cell.default", single<Cell::relu>);
  return rows;
}

}  // namespace pallascope::lower
