// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/rows.h"
#include "kernels/probe.h"
#include "kernels/reference.h"
#include "tests/kernels/cpu_kernel_test.h"

namespace onestep::cpu {
namespace {

using CpuRowsTest = CpuKernelTest;
ONESTEP_INSTANTIATE_FOR_TARGETS(CpuRowsTest);

TEST_P(CpuRowsTest, GatherRowsCopiesTheRangeAsked) {
  const Floats table = RandomFloats(5 * 7, -1, 1, 1);
  const Ints indices({4, 0, 4, 2});
  Floats y(4 * 7, -9.0f);
  GatherRows(table.data(), indices.data(), y.data(), 7 * sizeof(float), 1, 4);
  for (int64_t c = 0; c < 7; ++c) {
    EXPECT_EQ(y[c], -9.0f);
    for (int64_t r = 1; r < 4; ++r) {
      EXPECT_EQ(y[r * 7 + c], table[indices[r] * 7 + c]);
    }
  }
}

TEST_P(CpuRowsTest, ScatterAddAddsTheColumnsAskedOfRowsInOrder) {
  const Ints indices({2, 0, 2});
  for (int64_t cols : kSizes) {
    const Floats x = RandomFloats(3 * cols, -1, 1, 1);
    const Floats before = RandomFloats(3 * cols, -1, 1, 2);
    Floats table = before;
    const int64_t middle = cols / 2;
    ScatterAdd(indices.data(), x.data(), table.data(), 3, cols, middle, cols);
    for (int64_t c = 0; c < cols; ++c) {
      const bool asked = c >= middle;
      EXPECT_EQ(table[c], asked ? before[c] + x[cols + c] : before[c]);
      EXPECT_EQ(table[cols + c], before[cols + c]);
      const float old = before[2 * cols + c];
      EXPECT_EQ(table[2 * cols + c],
                asked ? old + x[c] + x[2 * cols + c] : old);
    }
  }
}

TEST_P(CpuRowsTest, CopyRowsCopiesTheRangeAsked) {
  const Floats x = RandomFloats(4 * 7, -1, 1, 1);
  for (int64_t cols : {3, 7}) {
    Floats y(4 * cols, -9.0f);
    CopyRows(x.data(), 7 * sizeof(float), y.data(), cols * sizeof(float), 1, 3);
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        const bool asked = r == 1 || r == 2;
        EXPECT_EQ(y[r * cols + c], asked ? x[r * 7 + c] : -9.0f);
      }
    }
  }
}

TEST_P(CpuRowsTest, GatherConvertScalesBytes) {
  for (int64_t cols : kSizes) {
    Guarded<uint8_t> table(3 * cols);
    for (int64_t i = 0; i < table.size(); ++i) {
      table[i] = static_cast<uint8_t>(i * 37);
    }
    const Ints indices({2, 0});
    Floats y(2 * cols);
    GatherConvert(table.data(), indices.data(), 1 / 255.0f, y.data(), cols, 0,
                  2);
    for (int64_t i = 0; i < 2 * cols; ++i) {
      const uint8_t byte = table[indices[i / cols] * cols + i % cols];
      // One product, rounded once.
      ASSERT_EQ(y[i], 1 / 255.0f * static_cast<float>(byte));
    }
  }
}

TEST_P(CpuRowsTest, ReduceRowsSumsColumns) {
  for (int64_t rows : kSizes) {
    for (int64_t cols : kSizes) {
      const Floats x = RandomFloats(rows * cols, -1, 1, 1);
      Floats y = RandomFloats(cols, -1, 1, 2);
      std::vector<double> want(static_cast<size_t>(cols));
      reference::ReduceRows(x.Doubles().data(), want.data(), rows, cols);
      const bool accumulate = rows % 2 == 1;
      for (int64_t c = 0; c < cols && accumulate; ++c) {
        want[static_cast<size_t>(c)] += y[c];
      }
      ReduceRows(x.data(), y.data(), accumulate, rows, cols, 0, cols);
      // 129 terms below 1: a random walk of half-ulp roundings.
      ASSERT_NO_FATAL_FAILURE(ExpectNear(y, want, 2e-6));
    }
  }
}

TEST_P(CpuRowsTest, ReduceRowsBitsDoNotDependOnTheColumnSplit) {
  const Floats x = RandomFloats(65 * 129, -1, 1, 1);
  Floats whole(129), parts(129);
  ReduceRows(x.data(), whole.data(), false, 65, 129, 0, 129);
  ReduceRows(x.data(), parts.data(), false, 65, 129, 0, 5);
  ReduceRows(x.data(), parts.data(), false, 65, 129, 5, 77);
  ReduceRows(x.data(), parts.data(), false, 65, 129, 77, 129);
  EXPECT_EQ(whole.Values(), parts.Values());
}

TEST_P(CpuRowsTest, BroadcastAndOneHotFillTheirRows) {
  const Floats x({1, 2, 3});
  Floats y(6);
  BroadcastRows(x.data(), y.data(), 2, 3);
  EXPECT_THAT(y.Values(), testing::ElementsAre(1, 2, 3, 1, 2, 3));
  const Ints labels({2, 0});
  OneHot(labels.data(), y.data(), 2, 3);
  EXPECT_THAT(y.Values(), testing::ElementsAre(0, 0, 1, 1, 0, 0));
}

// Each element is one operation, rounded once: equal to the float result.
TEST_P(CpuRowsTest, ElementwiseLoopsAreExactOnOddSizes) {
  for (int64_t n : kSizes) {
    const Floats a = RandomFloats(n, -1, 1, 1), b = RandomFloats(n, -1, 1, 2);
    const Ints labels = RandomInts(n, 1000, 3);
    const Guarded<uint8_t> bytes(n, 200);
    Floats scaled(n), sum(n), cast(n), byte(n), product = a;
    Scale(3, a.data(), scaled.data(), n);
    Add(a.data(), b.data(), sum.data(), n);
    Mul(product.data(), b.data(), product.data(), n);
    CastI32(labels.data(), cast.data(), n);
    CastU8(bytes.data(), byte.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(scaled[i], 3 * a[i]);
      ASSERT_EQ(sum[i], a[i] + b[i]);
      ASSERT_EQ(product[i], a[i] * b[i]);
      ASSERT_EQ(cast[i], static_cast<float>(labels[i]));
      ASSERT_EQ(byte[i], 200);
    }
  }
}

TEST_P(CpuRowsTest, AddBiasAddsToEveryRowInPlace) {
  Floats x = RandomFloats(3 * 17, -1, 1, 1);
  const Floats before = x, b = RandomFloats(17, -1, 1, 2);
  AddBias(x.data(), b.data(), x.data(), 3, 17);
  for (int64_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(x[i], before[i] + b[i % 17]);
  }
}

TEST_P(CpuRowsTest, ProbeNamesTheTargetAndCountsItsWork) {
  std::string name = hwy::TargetName(GetParam());
  for (char& c : name) c = static_cast<char>(std::tolower(c));
  EXPECT_EQ(CpuIsa(), name == "avx3" ? "AVX-512" : name);
  EXPECT_EQ(HasAvx512(), name == "avx3");
  EXPECT_GT(FmaLoop(1), 0);
  EXPECT_EQ(FmaLoop(1000), 1000 * FmaLoop(1));
}

}  // namespace
}  // namespace onestep::cpu
