// Access plans as JAX source. What the source means is checked by a small interpreter of it: the text is read back and
// run over the numbers 0, 1, 2, ..., and must give the elements that the index expression names.
#include "core/codegen/indexing.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/index/access.h"
#include "core/index/expression.h"

namespace pallascope::codegen {
namespace {

using index::AxisId;
using index::Context;
using index::Expression;
using index::Plan;
using index::Slice;

/// An array of numbers; what jnp gives for the few operations that read_text and write_text use.
struct Array {
  Shape shape;
  std::vector<std::int64_t> data;
};

std::int64_t count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// result[position] = source[map(position)].
Array remap(const Array& source, const Shape& shape, const std::function<Shape(const Shape&)>& map) {
  Array result{shape, {}};
  for (std::int64_t flat = 0; flat < count(shape); ++flat) {
    Shape at(shape.size());
    std::int64_t rest = flat;
    for (std::size_t k = shape.size(); k-- > 0;) {
      at[k] = rest % shape[k];
      rest /= shape[k];
    }
    const Shape from = map(at);
    std::int64_t place = 0;
    for (std::size_t k = 0; k < from.size(); ++k) place = place * source.shape[k] + from[k];
    result.data.push_back(source.data.at(static_cast<std::size_t>(place)));
  }
  return result;
}

/// Runs `jnp.reshape(x[:, 1:5:2], (4, 2)).T` and the like. Throws std::string for what it does not know or JAX refuses.
class Interpreter {
 public:
  Interpreter(std::string text, std::string name, Array value)
      : text_(std::move(text)), name_(std::move(name)), value_(std::move(value)) {}
  Array run() {
    const Array result = expression();
    if (at_ != text_.size()) throw "left over: " + text_.substr(at_);
    return result;
  }

 private:
  bool take(const std::string& part) {
    if (text_.compare(at_, part.size(), part) != 0) return false;
    at_ += part.size();
    return true;
  }
  void expect(const std::string& part) {
    if (!take(part)) throw "expected '" + part + "' in " + text_ + " at " + std::to_string(at_);
  }
  Shape numbers() {
    expect("(");
    Shape found;
    while (!take(")")) {
      std::size_t used = 0;
      found.push_back(std::stoll(text_.substr(at_), &used));
      at_ += used;
      take(",");
      take(" ");
    }
    return found;
  }
  Array expression() {
    Array x;
    if (take("jnp.reshape(")) {
      x = expression();
      expect(", ");
      const Shape shape = numbers();
      expect(")");
      if (count(shape) != count(x.shape)) throw "reshape changes the number of elements: " + text_;
      x.shape = shape;
    } else if (take("jnp.transpose(")) {
      x = expression();
      expect(", ");
      const Shape order = numbers();
      expect(")");
      x = transpose(x, order);
    } else if (take("jnp.flip(")) {
      x = expression();
      expect(", ");
      const Shape dims = numbers();
      expect(")");
      x = remap(x, x.shape, [&](Shape at) {
        for (std::int64_t d : dims)
          at[static_cast<std::size_t>(d)] =
              x.shape[static_cast<std::size_t>(d)] - 1 - at[static_cast<std::size_t>(d)];
        return at;
      });
    } else if (take("jnp.broadcast_to(")) {
      x = expression();
      expect(", ");
      const Shape shape = numbers();
      expect(")");
      if (shape.size() < x.shape.size()) throw "broadcast to a lower rank: " + text_;
      const std::size_t more = shape.size() - x.shape.size();
      x = remap(x, shape, [&](const Shape& at) {
        Shape from;
        for (std::size_t k = 0; k < x.shape.size(); ++k) {
          if (x.shape[k] != 1 && x.shape[k] != shape[k + more]) throw "cannot broadcast: " + text_;
          from.push_back(x.shape[k] == 1 ? 0 : at[k + more]);
        }
        return from;
      });
    } else {
      expect(name_);
      x = value_;
    }
    for (;;) {
      if (take(".T")) {
        Shape order(x.shape.size());
        std::iota(order.rbegin(), order.rend(), 0);
        x = transpose(x, order);
      } else if (take("[...]")) {
        continue;
      } else if (take("[")) {
        x = subscript(x);
      } else {
        return x;
      }
    }
  }
  Array transpose(const Array& x, const Shape& order) {
    if (order.size() != x.shape.size()) throw "transpose of another rank: " + text_;
    Shape shape;
    for (std::int64_t d : order) shape.push_back(x.shape.at(static_cast<std::size_t>(d)));
    return remap(x, shape, [&](const Shape& at) {
      Shape from(order.size());
      for (std::size_t k = 0; k < order.size(); ++k) from[static_cast<std::size_t>(order[k])] = at[k];
      return from;
    });
  }
  Array subscript(const Array& x) {
    const std::size_t end = text_.find(']', at_);
    Shape start, step, shape;
    std::size_t dim = 0;
    while (at_ < end) {
      const std::size_t stop = std::min(text_.find(',', at_), end);
      const std::string part = text_.substr(at_, stop - at_);
      at_ = stop < end ? stop + 2 : end;
      if (dim >= x.shape.size()) throw "too many subscripts: " + text_;
      const std::size_t first = part.find(':'), second = part.find(':', first + 1);
      if (first == std::string::npos) throw "a ref is sliced, not indexed: " + text_;
      const std::string low = part.substr(0, first),
                        high =
                            part.substr(first + 1, second == std::string::npos ? second : second - first - 1);
      const std::int64_t a = low.empty() ? 0 : std::stoll(low);
      const std::int64_t b = high.empty() ? x.shape[dim] : std::stoll(high);
      const std::int64_t s = second == std::string::npos ? 1 : std::stoll(part.substr(second + 1));
      if (a < 0 || b > x.shape[dim] || s <= 0) throw "refs take no such slice: " + text_;
      start.push_back(a);
      step.push_back(s);
      shape.push_back((b - a + s - 1) / s);
      ++dim;
    }
    expect("]");
    if (dim != x.shape.size()) throw "too few subscripts: " + text_;
    return remap(x, shape, [&](Shape at) {
      for (std::size_t k = 0; k < at.size(); ++k) at[k] = start[k] + step[k] * at[k];
      return at;
    });
  }

  std::string text_, name_;
  Array value_;
  std::size_t at_ = 0;
};

/// A read of a buffer of `dims` over axes of `extents` by `make(context, axes)`.
struct Read {
  Shape dims, extents;
  std::function<Expression(Context&, const std::vector<Expression>&)> make;
};

struct Made {
  Plan plan;
  std::vector<std::int64_t> elements;  ///< by enumeration, over the result's shape
};

/// Nothing if there is no plan; then the access must say so by its class.
std::optional<Made> analyse(const Read& read) {
  Context context;
  std::vector<AxisId> axes;
  std::vector<Expression> position;
  for (std::size_t k = 0; k < read.extents.size(); ++k) {
    axes.push_back(context.add_axis("i" + std::to_string(k), read.extents[k]));
    position.push_back(context.of(axes.back()));
  }
  const Expression e = read.make(context, position);
  const index::Access access = index::access(context, e, axes, read.dims);
  if (!access.plan) {
    EXPECT_TRUE(access.access_class == index::AccessClass::general ||
                access.access_class == index::AccessClass::overlapping);
    return std::nullopt;
  }
  Made made{*access.plan, {}};
  // An axis that the expression does not depend on has extent 1 in the result.
  const Shape& shape = made.plan.result_shape;
  for (std::int64_t flat = 0; flat < count(shape); ++flat) {
    Shape at(shape.size());
    std::int64_t rest = flat;
    for (std::size_t k = shape.size(); k-- > 0;) {
      at[k] = rest % shape[k];
      rest /= shape[k];
    }
    made.elements.push_back(context.evaluate(e, [&](AxisId axis) {
      return at[static_cast<std::size_t>(std::find(axes.begin(), axes.end(), axis) - axes.begin())];
    }));
  }
  return made;
}

Array numbered(const Shape& shape) {
  Array x{shape, std::vector<std::int64_t>(static_cast<std::size_t>(count(shape)))};
  std::iota(x.data.begin(), x.data.end(), 0);
  return x;
}

/// How one read is written in three places.
struct Sources {
  std::string ref;        ///< from a ref that the call boundary gave the plan's view shape
  std::string other_ref;  ///< from a ref of the buffer's dims
  std::string value;      ///< from a value of the buffer's dims
};

/// Checks what each of the three means. Nothing without a plan.
std::optional<Sources> sources(const Read& read) {
  const std::optional<Made> made = analyse(read);
  if (!made) return std::nullopt;
  const Plan& plan = made->plan;
  const Sources found = {read_text("x", true, plan.view_shape, plan), read_text("x", true, read.dims, plan),
                         read_text("x", false, read.dims, plan)};
  for (const auto& [source, shape] :
       {std::pair{found.ref, plan.view_shape}, std::pair{found.other_ref, read.dims},
        std::pair{found.value, read.dims}}) {
    SCOPED_TRACE(source);
    try {
      const Array result = Interpreter(source, "x", numbered(shape)).run();
      EXPECT_EQ(result.shape, plan.result_shape);
      EXPECT_EQ(result.data, made->elements);
    } catch (const std::string& problem) {
      ADD_FAILURE() << problem;
    }
  }
  return found;
}

/// The text for a ref of the view's shape of a read that must have a plan.
std::string read_source(const Read& read) {
  const std::optional<Sources> found = sources(read);
  EXPECT_TRUE(found) << "no plan";
  return found ? found->ref : "";
}

Expression linear(Context& c, const std::vector<Expression>& p, const Shape& strides,
                  std::int64_t offset = 0) {
  return c.linear(p, strides, offset);
}
auto strided(Shape strides, std::int64_t offset = 0) {
  return [=](Context& c, const std::vector<Expression>& p) { return linear(c, p, strides, offset); };
}

TEST(ReadText, Identity) { EXPECT_EQ(read_source({{8, 16}, {8, 16}, strided({16, 1})}), "x[...]"); }

TEST(ReadText, Slices) {
  EXPECT_EQ(read_source({{8, 16}, {8, 8}, strided({16, 1}, 8)}), "x[:, 8:]");
  EXPECT_EQ(read_source({{8, 16}, {8, 8}, strided({16, 1})}), "x[:, :8]");
  EXPECT_EQ(read_source({{8, 16}, {3, 4}, strided({16, 1}, 2 * 16 + 5)}), "x[2:5, 5:9]");
}

TEST(ReadText, Steps) {
  EXPECT_EQ(read_source({{8, 16}, {8, 8}, strided({16, 2})}), "x[:, ::2]");
  EXPECT_EQ(read_source({{8, 16}, {8, 8}, strided({16, 2}, 1)}), "x[:, 1::2]");
  EXPECT_EQ(read_source({{8, 16}, {2, 16}, strided({48, 1}, 16)}), "x[1:5:3, :]");
}

TEST(ReadText, Reversed) {
  EXPECT_EQ(read_source({{8}, {8}, strided({-1}, 7)}), "jnp.flip(x[...], (0,))");
  EXPECT_EQ(read_source({{8, 16}, {8, 16}, strided({-16, 1}, 112)}), "jnp.flip(x[...], (0,))");
  EXPECT_EQ(read_source({{8, 16}, {8, 16}, strided({-16, -1}, 127)}), "jnp.flip(x[...], (0, 1,))");
  EXPECT_EQ(read_source({{9}, {3}, strided({-2}, 7)}), "jnp.flip(x[3::2], (0,))");
}

TEST(ReadText, Permuted) {
  EXPECT_EQ(read_source({{8, 16}, {16, 8}, strided({1, 16})}), "x[...].T");
  EXPECT_EQ(read_source({{2, 3, 4}, {4, 2, 3}, strided({1, 12, 4})}), "jnp.transpose(x[...], (2, 0, 1))");
  EXPECT_EQ(read_source({{2, 3, 4}, {4, 3, 2}, strided({1, 4, 12})}), "jnp.transpose(x[...], (2, 1, 0))");
}

TEST(ReadText, SlicedReversedAndPermuted) {
  EXPECT_EQ(read_source({{8, 16}, {4, 8}, strided({-2, 16}, 13)}), "jnp.flip(x[:, 7:14:2], (1,)).T");
}

TEST(ReadText, ReshapesAreLeftToTheCallBoundaryWhereTheyCan) {
  struct Case {
    Shape dims, extents, strides;
    const char* other_ref;
    const char* value;
  };
  for (const Case& c : {
           Case{{16}, {8, 16}, {0, 1}, "jnp.reshape(x[...], (1, 16))", "jnp.reshape(x, (1, 16))"},
           Case{{8}, {8, 16}, {1, 0}, "jnp.reshape(x[...], (8, 1))", "jnp.reshape(x, (8, 1))"},
           Case{{8, 16}, {128}, {1}, "jnp.reshape(x[...], (128,))", "jnp.reshape(x, (128,))"},
           Case{{8, 16},
                {4, 2, 16},
                {32, 16, 1},
                "jnp.reshape(x[...], (4, 2, 16))",
                "jnp.reshape(x, (4, 2, 16))"},
           Case{{8, 16}, {8, 16}, {16, 1}, "x[...]", "x"},
       }) {
    const std::optional<Sources> found = sources({c.dims, c.extents, strided(c.strides)});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->ref, "x[...]");
    EXPECT_EQ(found->other_ref, c.other_ref);
    EXPECT_EQ(found->value, c.value);
  }
}

TEST(ReadText, ASplitDimensionPermuted) {
  // (8,16) as (8,4,4), heads in front: what attention does.
  const std::string text = read_source({{8, 16}, {4, 8, 4}, strided({4, 16, 1})});
  EXPECT_EQ(text, "jnp.transpose(x[...], (1, 0, 2))") << "a ref of the view's shape";
}

TEST(ReadText, SingleElements) {
  EXPECT_EQ(read_source({{1}, {1, 1}, strided({0, 0})}), "x[...]");
  EXPECT_EQ(read_source({{}, {1, 1}, strided({0, 0})}), "x[...]");
  read_source({{8, 16}, {1, 1}, strided({0, 0}, 37)});
  read_source({{8, 16}, {8}, strided({16}, 3)});
  read_source({{8, 16}, {5, 1, 7}, strided({0, 0, 0}, 127)});
}

// The two rare steps of a plan. While the index analysis gives no plan for them there is nothing to write; a plan that
// it does give must be written right.

TEST(ReadText, ASliceThatIsSplitAfterwards) {
  // x[2:98].view(4, 24).t() of 100 elements.
  sources({{100}, {24, 4}, strided({1, 24}, 2)});
  sources({{100}, {4, 3, 8}, strided({24, 1, 3}, 2)});
}

TEST(ReadText, AnElementReadSeveralTimesWithinOneAxis) {
  // k[b, h//2, d] of grouped-query attention.
  sources({{2, 3, 5}, {2, 6, 5}, [](Context& c, const std::vector<Expression>& p) {
             return linear(c, {p[0], c.floor_div(p[1], 2), p[2]}, {15, 5, 1});
           }});
  sources({{3}, {6}, [](Context& c, const std::vector<Expression>& p) { return c.floor_div(p[0], 2); }});
  sources({{3}, {6}, [](Context& c, const std::vector<Expression>& p) { return c.mod(p[0], 3); }});
}

TEST(ReadText, ManyViewsMeanWhatTheirIndexSays) {
  // Every permutation of a (4,3,2) buffer with each dimension whole, stepped or reversed.
  int seen = 0;
  std::vector<int> order = {0, 1, 2};
  const Shape dims = {4, 3, 2}, dense = {6, 2, 1};
  do {
    for (int kinds = 0; kinds < 27; ++kinds) {
      Shape extents, strides;
      std::int64_t offset = 0;
      for (int k = 0, rest = kinds; k < 3; ++k, rest /= 3) {
        const auto d = static_cast<std::size_t>(order[static_cast<std::size_t>(k)]);
        if (rest % 3 == 0) {
          extents.push_back(dims[d]);
          strides.push_back(dense[d]);
        } else if (rest % 3 == 1) {
          extents.push_back(dims[d]);
          strides.push_back(-dense[d]);
          offset += dense[d] * (dims[d] - 1);
        } else {
          extents.push_back((dims[d] + 1) / 2);
          strides.push_back(2 * dense[d]);
        }
      }
      read_source({dims, extents, strided(strides, offset)});
      ++seen;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(seen, 6 * 27);
}

/// `x[:, ::2] = value`: where the elements of value, numbered from 0, land; -1 elsewhere.
std::vector<std::int64_t> written(const std::string& statement, const Plan& plan) {
  const std::size_t equals = statement.find(" = ");
  EXPECT_NE(equals, std::string::npos) << statement;
  const Array target = Interpreter(statement.substr(0, equals), "x", numbered(plan.view_shape)).run();
  const Array value = Interpreter(statement.substr(equals + 3), "v", numbered(plan.result_shape)).run();
  EXPECT_EQ(target.shape, value.shape) << statement;
  std::vector<std::int64_t> memory(static_cast<std::size_t>(count(plan.view_shape)), -1);
  for (std::size_t k = 0; k < target.data.size(); ++k)
    memory.at(static_cast<std::size_t>(target.data[k])) = value.data.at(k);
  return memory;
}

std::string write_source(const Read& read) {
  const std::optional<Made> made = analyse(read);
  if (!made) return "";
  const std::string statement = write_text("x", "v", made->plan);
  SCOPED_TRACE(statement);
  std::vector<std::int64_t> expected(static_cast<std::size_t>(count(read.dims)), -1);
  for (std::size_t k = 0; k < made->elements.size(); ++k)
    expected.at(static_cast<std::size_t>(made->elements[k])) = static_cast<std::int64_t>(k);
  try {
    EXPECT_EQ(written(statement, made->plan), expected);
  } catch (const std::string& problem) {
    ADD_FAILURE() << problem;
  }
  return statement;
}

TEST(WriteText, EachKind) {
  EXPECT_EQ(write_source({{8, 16}, {8, 16}, strided({16, 1})}), "x[...] = v");
  EXPECT_EQ(write_source({{8, 16}, {8, 8}, strided({16, 1}, 8)}), "x[:, 8:] = v");
  EXPECT_EQ(write_source({{8, 16}, {8, 8}, strided({16, 2}, 1)}), "x[:, 1::2] = v");
  EXPECT_EQ(write_source({{8, 16}, {16, 8}, strided({1, 16})}), "x[...] = v.T");
  EXPECT_EQ(write_source({{8}, {8}, strided({-1}, 7)}), "x[...] = jnp.flip(v, (0,))");
  EXPECT_EQ(write_source({{2, 3, 4}, {4, 2, 3}, strided({1, 12, 4})}),
            "x[...] = jnp.transpose(v, (1, 2, 0))");
  EXPECT_EQ(write_source({{8, 16}, {1, 1}, strided({0, 0}, 37)}).substr(0, 2), "x[");
  write_source({{8, 16}, {4, 2, 16}, strided({32, 16, 1})});
  write_source({{8, 16}, {4, 8}, strided({-2, 16}, 13)});
  write_source({{100}, {24, 4}, strided({1, 24}, 2)});
}

TEST(Text, Tuples) {
  EXPECT_EQ(tuple_text({}), "()");
  EXPECT_EQ(tuple_text({4}), "(4,)");
  EXPECT_EQ(tuple_text({8, 16}), "(8, 16)");
}

TEST(Text, Subscripts) {
  EXPECT_EQ(subscript_text({8, 16}, {{0, 1, 8}, {0, 1, 16}}), "[...]");
  EXPECT_EQ(subscript_text({8, 16}, {{3, 1, 1}, {0, 1, 16}}), "[3:4, :]")
      << "a constant index keeps its dimension";
  EXPECT_EQ(subscript_text({8, 16}, {{3, 5, 1}, {0, 1, 16}}), "[3:4, :]")
      << "the step of one element does not matter";
  EXPECT_EQ(subscript_text({16}, {{14, -2, 8}}), "[::2]") << "backwards is taken forwards";
  EXPECT_EQ(subscript_text({16}, {{0, 2, 4}}), "[:7:2]");
  EXPECT_EQ(subscript_text({16}, {{0, 2, 8}}), "[::2]");
}

}  // namespace
}  // namespace pallascope::codegen
