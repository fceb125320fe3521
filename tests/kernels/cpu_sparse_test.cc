// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "kernels/cpu/sparse.h"
#include "kernels/reference.h"
#include "tests/kernels/cpu_kernel_test.h"

namespace onestep::cpu {
namespace {

using CpuSparseTest = CpuKernelTest;
ONESTEP_INSTANTIATE_FOR_TARGETS(CpuSparseTest);

constexpr float kAlpha = 1 / 255.0f;

// A table of bytes and a batch of some of its rows.
struct Batch {
  // Row r of the table has from no to all of its k values.
  Batch(int64_t rows, int64_t k, int64_t table_rows = 7)
      : rows(rows),
        k(k),
        indices(RandomInts(rows, static_cast<int32_t>(table_rows), 5)),
        table(table_rows * k) {
    std::mt19937 bits(static_cast<uint32_t>(rows * 131 + k));
    for (int64_t r = 0; r < table_rows; ++r) {
      const uint32_t percent = static_cast<uint32_t>(r * 100 / table_rows);
      for (int64_t c = 0; c < k; ++c) {
        const bool some = r + 1 == table_rows || bits() % 100 < percent;
        const uint8_t byte = static_cast<uint8_t>(1 + bits() % 255);
        table[r * k + c] = some ? byte : 0;
      }
    }
    // The last row, so that what is read behind it faults.
    indices[rows - 1] = static_cast<int32_t>(table_rows - 1);
  }

  // Every word that may be read is written.
  Ints Gather() const {
    Ints x(rows * SparseWidth(k), -1);
    GatherSparse(table.data(), indices.data(), kAlpha, x.data(), k, 0, rows);
    return x;
  }

  double At(int64_t r, int64_t c) const {
    return static_cast<double>(kAlpha) * table[indices[r] * k + c];
  }

  int64_t rows, k;
  Ints indices;
  Guarded<uint8_t> table;
};

// y[rows,n] of a product with leading dimension ldy; the gaps stay.
std::vector<double> Product(const Batch& batch, const Floats& w, int64_t ldw,
                            const float* bias, const Floats& y, int64_t ldy,
                            int64_t n) {
  std::vector<double> want = y.Doubles();
  for (int64_t r = 0; r < batch.rows; ++r) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = bias == nullptr ? 0 : bias[j];
      for (int64_t c = 0; c < batch.k; ++c) {
        sum += batch.At(r, c) * w[c * ldw + j];
      }
      want[static_cast<size_t>(r * ldy + j)] = sum;
    }
  }
  return want;
}

// Sums of up to `terms` products below 1; see cpu_matmul_test.cc.
double Tolerance(int64_t terms) {
  return 5e-7 + 5e-8 * static_cast<double>(terms);
}

TEST_P(CpuSparseTest, GathersTheNonzerosOfTheRowsAsked) {
  for (int64_t k : kSizes) {
    const Batch batch(71, k);
    const int64_t width = SparseWidth(k);
    Ints x(71 * width, -1);
    GatherSparse(batch.table.data(), batch.indices.data(), kAlpha, x.data(), k,
                 kSparseRows, 71);
    EXPECT_EQ(x[0], -1);
    for (int64_t first = kSparseRows; first < 71; first += kSparseRows) {
      const int32_t* word = x.data() + first * width + kSparseHeader;
      const int32_t* const end = word + x[first * width];
      for (int64_t c = 0; c < k; c += 3) {
        const int32_t* const segment = word;
        if (word < end && *segment >> 8 == c) ++word;
        for (int64_t r = first; r < std::min<int64_t>(first + 32, 71); ++r) {
          int32_t bytes = 0;
          for (int64_t i = std::min(c + 2, k - 1); i >= c; --i) {
            bytes = bytes << 8 | batch.table[batch.indices[r] * k + i];
          }
          if (bytes == 0) continue;
          ASSERT_LT(word, end);
          ASSERT_EQ(*word++, static_cast<int32_t>(r - first) << 24 | bytes);
        }
        if (word > segment) {
          ASSERT_EQ(*segment & 255, word - segment - 1);
        }
      }
      ASSERT_EQ(word, end);
    }
  }
}

TEST_P(CpuSparseTest, ProductMatchesFloat64OnOddSizes) {
  for (int64_t rows : {1, 3, 33}) {
    for (int64_t n : kSizes) {
      for (int64_t k : kSizes) {
        const Batch batch(rows, k);
        const int64_t gap = (rows + n + k) % 3;
        const Ints x = batch.Gather();
        const Floats w = RandomFloats(k * (n + gap) - gap, -1, 1, 1);
        const Floats bias = RandomFloats(n, -1, 1, 2);
        Floats y = RandomFloats(rows * (n + gap) - gap, -1, 1, 3);
        SparseMatMulArgs args = {.x = x.data(),
                                 .w = w.data(),
                                 .ldw = n + gap,
                                 .y = y.data(),
                                 .ldy = n + gap,
                                 .n = n,
                                 .k = k};
        if (n % 2 == 1) args.bias = bias.data();
        const std::vector<double> want =
            Product(batch, w, n + gap, args.bias, y, n + gap, n);
        SparseMatMul(args, 0, rows);
        SCOPED_TRACE(testing::Message() << rows << " x " << n << " x " << k);
        ASSERT_NO_FATAL_FAILURE(ExpectNear(y, want, Tolerance(k)));
      }
    }
  }
}

TEST_P(CpuSparseTest, ProductAppliesEveryActivation) {
  for (Activation act : kAllActivations) {
    const Batch batch(5, 33);
    const Ints x = batch.Gather();
    const Floats w = RandomFloats(33 * 21, -1, 1, 1);
    Floats y(5 * 21);
    std::vector<double> want = Product(batch, w, 21, nullptr, y, 21, 21);
    reference::Activate(act, want.data(), want.data(), std::ssize(want));
    SparseMatMul({.x = x.data(),
                  .w = w.data(),
                  .ldw = 21,
                  .y = y.data(),
                  .ldy = 21,
                  .n = 21,
                  .k = 33,
                  .act = act},
                 0, 5);
    ASSERT_NO_FATAL_FAILURE(ExpectNear(y, want, Tolerance(33)));
  }
}

TEST_P(CpuSparseTest, ProductBitsDoNotDependOnTheSplit) {
  const Batch batch(40, 300);
  const Ints x = batch.Gather();
  const Floats w = RandomFloats(300 * 161, -1, 1, 1);
  Floats whole(40 * 161), parts(40 * 161);
  SparseMatMulArgs args = {.x = x.data(),
                           .w = w.data(),
                           .ldw = 161,
                           .y = whole.data(),
                           .ldy = 161,
                           .n = 161,
                           .k = 300};
  SparseMatMul(args, 0, 40);
  const int64_t cols[] = {0, 1, 33, 64, 161}, rows[] = {0, 32, 32, 40};
  for (size_t i = 0; i + 1 < std::size(cols); ++i) {
    args.w = w.data() + cols[i];
    args.y = parts.data() + cols[i];
    args.n = cols[i + 1] - cols[i];
    for (size_t j = 0; j + 1 < std::size(rows); ++j) {
      SparseMatMul(args, rows[j], rows[j + 1]);
    }
  }
  EXPECT_EQ(whole.Values(), parts.Values());
}

TEST_P(CpuSparseTest, ReluOfTheProductKeepsNan) {
  const Batch batch(1, 3, 1);
  const Ints x = batch.Gather();
  Floats w(3 * 2, -1.0f), y(2);
  w[1] = std::numeric_limits<float>::quiet_NaN();
  SparseMatMul({.x = x.data(),
                .w = w.data(),
                .ldw = 2,
                .y = y.data(),
                .ldy = 2,
                .n = 2,
                .k = 3,
                .act = Activation::kRelu},
               0, 1);
  EXPECT_EQ(y[0], 0);
  EXPECT_TRUE(std::isnan(y[1]));
}

// dw += x^T dz in float64.
std::vector<double> Outer(const Batch& batch, const Floats& dz, int64_t lddz,
                          const Floats& dw, int64_t lddw, int64_t n) {
  std::vector<double> want = dw.Doubles();
  for (int64_t c = 0; c < batch.k; ++c) {
    for (int64_t j = 0; j < n; ++j) {
      double& sum = want[static_cast<size_t>(c * lddw + j)];
      for (int64_t r = 0; r < batch.rows; ++r) {
        sum += batch.At(r, c) * dz[r * lddz + j];
      }
    }
  }
  return want;
}

TEST_P(CpuSparseTest, OuterMatchesFloat64OnOddSizes) {
  for (int64_t rows : {1, 3, 31, 32, 33, 129}) {
    for (int64_t n : kSizes) {
      for (int64_t k : kSizes) {
        const Batch batch(rows, k);
        const int64_t gap = (rows + n + k) % 3;
        const Ints x = batch.Gather();
        const Floats dz = RandomFloats(rows * (n + gap) - gap, -1, 1, 1);
        Floats dw = RandomFloats(k * (n + gap) - gap, -1, 1, 3);
        const std::vector<double> want =
            Outer(batch, dz, n + gap, dw, n + gap, n);
        SparseOuter({.x = x.data(),
                     .dz = dz.data(),
                     .lddz = n + gap,
                     .dw = dw.data(),
                     .lddw = n + gap,
                     .rows = rows,
                     .n = n,
                     .k = k});
        SCOPED_TRACE(testing::Message() << rows << " x " << n << " x " << k);
        ASSERT_NO_FATAL_FAILURE(ExpectNear(dw, want, Tolerance(rows)));
      }
    }
  }
}

// More columns of x than are fetched at a time.
TEST_P(CpuSparseTest, OuterTakesManyColumnsOfX) {
  const Batch batch(40, 2500);
  const Ints x = batch.Gather();
  const Floats dz = RandomFloats(40 * 5, -1, 1, 1);
  Floats dw(2500 * 5);
  const std::vector<double> want = Outer(batch, dz, 5, dw, 5, 5);
  SparseOuter({.x = x.data(),
               .dz = dz.data(),
               .lddz = 5,
               .dw = dw.data(),
               .lddw = 5,
               .rows = 40,
               .n = 5,
               .k = 2500});
  ExpectNear(dw, want, Tolerance(40));
}

TEST_P(CpuSparseTest, OuterBitsDoNotDependOnTheColumnSplit) {
  const Batch batch(70, 129);
  const Ints x = batch.Gather();
  const Floats dz = RandomFloats(70 * 161, -1, 1, 1);
  Floats whole(129 * 161, 0.5f), parts(129 * 161, 0.5f);
  SparseOuterArgs args = {.x = x.data(),
                          .dz = dz.data(),
                          .lddz = 161,
                          .dw = whole.data(),
                          .lddw = 161,
                          .rows = 70,
                          .n = 161,
                          .k = 129};
  SparseOuter(args);
  const int64_t cols[] = {0, 1, 33, 64, 161};
  for (size_t i = 0; i + 1 < std::size(cols); ++i) {
    args.dz = dz.data() + cols[i];
    args.dw = parts.data() + cols[i];
    args.n = cols[i + 1] - cols[i];
    SparseOuter(args);
  }
  EXPECT_EQ(whole.Values(), parts.Values());
}

}  // namespace
}  // namespace onestep::cpu
