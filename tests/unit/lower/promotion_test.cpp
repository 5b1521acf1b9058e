// Type promotion against PyTorch's own answers.
#include "core/lower/promotion.h"

#include <set>
#include <tuple>

#include <gtest/gtest.h>

namespace pallascope::lower {
namespace {

struct Row {
  DType a;
  int a_priority;
  DType b;
  int b_priority;
  DType result;
};

constexpr Row kTable[] = {
#include "tests/unit/lower/promotion_table.inc"
};

TEST(Promotion, EveryPairOfKernelDtypesAndPrioritiesIsTorchs) {
  for (const Row& row : kTable) {
    EXPECT_EQ(dtype_name(result_type({row.a, row.a_priority}, {row.b, row.b_priority})),
              dtype_name(row.result))
        << dtype_name(row.a) << " priority " << row.a_priority << " with " << dtype_name(row.b)
        << " priority " << row.b_priority;
    if (row.a_priority == 2 && row.b_priority == 2) {
      EXPECT_EQ(dtype_name(promote(row.a, row.b)), dtype_name(row.result))
          << dtype_name(row.a) << " " << dtype_name(row.b);
    }
  }
}

TEST(Promotion, TheTableHoldsThemAll) {
  std::set<std::tuple<DType, int, DType, int>> seen;
  for (const Row& row : kTable) seen.insert({row.a, row.a_priority, row.b, row.b_priority});
  for (int a = 0; a <= static_cast<int>(DType::f64); ++a)
    for (int b = 0; b <= static_cast<int>(DType::f64); ++b)
      for (int pa : {1, 2})
        for (int pb : {1, 2})
          EXPECT_TRUE(seen.contains({static_cast<DType>(a), pa, static_cast<DType>(b), pb})) << a << " " << b;
  for (DType number : {DType::b8, DType::i64, DType::f32})
    EXPECT_TRUE(seen.contains({DType::bf16, 2, number, 0}));
}

TEST(Promotion, SixteenBitFloatsAreComputedInF32) {
  EXPECT_EQ(compute_dtype(DType::f16), DType::f32);
  EXPECT_EQ(compute_dtype(DType::bf16), DType::f32);
  for (DType d : {DType::f32, DType::f64, DType::i64, DType::b8, DType::u8}) EXPECT_EQ(compute_dtype(d), d);
}

}  // namespace
}  // namespace pallascope::lower
