// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/matmul.h"
#include "kernels/reference.h"
#include "tests/kernels/cpu_kernel_test.h"

namespace onestep::cpu {
namespace {

// One product with its operands; `gap` widens every leading dimension.
struct Problem {
  Problem(int64_t m, int64_t n, int64_t k, bool across, int64_t gap)
      : lda((across ? m : k) + gap),
        ldb(n + gap),
        ldc(n + gap),
        a(RandomFloats(std::max<int64_t>(1, (across ? k : m) * lda - gap), -1,
                       1, 1)),
        b(RandomFloats(std::max<int64_t>(1, k * ldb - gap), -1, 1, 2)),
        c(RandomFloats(m * ldc - gap, -1, 1, 3)),
        bias(RandomFloats(n, -1, 1, 4)) {
    args = {.a = a.data(),
            .a_row = across ? 1 : lda,
            .a_col = across ? lda : 1,
            .b = b.data(),
            .ldb = ldb,
            .c = c.data(),
            .ldc = ldc,
            .m = m,
            .n = n,
            .k = k};
  }

  // c as float64 loops give it from its present values; the gaps stay.
  std::vector<double> Want() const {
    std::vector<double> want = c.Doubles();
    for (int64_t i = 0; i < args.m; ++i) {
      for (int64_t j = 0; j < args.n; ++j) {
        double& y = want[static_cast<size_t>(i * ldc + j)];
        double sum = args.accumulate ? y : 0;
        if (args.bias != nullptr) sum += bias[j];
        for (int64_t p = 0; p < args.k; ++p) {
          sum += static_cast<double>(a[i * args.a_row + p * args.a_col]) *
                 b[p * ldb + j];
        }
        reference::Activate(args.act, &sum, &sum, 1);
        y = sum;
      }
    }
    return want;
  }

  int64_t lda, ldb, ldc;
  Floats a, b, c, bias;
  MatMulArgs args;
};

// Products of uniform values in (-1, 1): partial sum p is near sqrt(p) / 3,
// and its rounding has a standard deviation of 0.29 2^-23 of that. Over k of
// them this adds up to 0.8e-8 k; the bound is six times that. 5e-7 is for the
// activation.
double Tolerance(int64_t k) { return 5e-7 + 5e-8 * static_cast<double>(k); }

using CpuMatMulTest = CpuKernelTest;
ONESTEP_INSTANTIATE_FOR_TARGETS(CpuMatMulTest);

TEST_P(CpuMatMulTest, MatchesFloat64OnOddSizes) {
  for (int64_t m : kSizes) {
    for (int64_t n : kSizes) {
      for (int64_t k : kSizes) {
        const bool across = (m + n + k) % 2 == 0;
        Problem p(m, n, k, across, k % 3);
        const std::vector<double> want = p.Want();
        MatMul(p.args, 0, m);
        SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
        ASSERT_NO_FATAL_FAILURE(ExpectNear(p.c, want, Tolerance(k)));
      }
    }
  }
}

TEST_P(CpuMatMulTest, AccumulatesIntoC) {
  for (bool across : {false, true}) {
    for (int64_t n : kSizes) {
      Problem p(33, n, 17, across, 3);
      p.args.accumulate = true;
      const std::vector<double> want = p.Want();
      MatMul(p.args, 0, 33);
      ASSERT_NO_FATAL_FAILURE(ExpectNear(p.c, want, Tolerance(17)));
    }
  }
}

TEST_P(CpuMatMulTest, AppliesBiasAndEveryActivation) {
  for (Activation act : kAllActivations) {
    for (int64_t n : {10, 129}) {
      Problem p(19, n, 33, false, 1);
      p.args.bias = p.bias.data();
      p.args.act = act;
      const std::vector<double> want = p.Want();
      MatMul(p.args, 0, 19);
      ASSERT_NO_FATAL_FAILURE(ExpectNear(p.c, want, Tolerance(33)));
    }
  }
}

TEST_P(CpuMatMulTest, AppliesTheEpilogueOnceWhenKIsInBlocks) {
  for (bool across : {false, true}) {
    Problem p(9, 21, 2100, across, 0);
    p.args.bias = p.bias.data();
    p.args.act = Activation::kRelu;
    const std::vector<double> want = p.Want();
    MatMul(p.args, 0, 9);
    ExpectNear(p.c, want, Tolerance(2100));
  }
}

TEST_P(CpuMatMulTest, GivesTheBiasWhenKIsZero) {
  Problem p(3, 5, 0, false, 0);
  p.args.bias = p.bias.data();
  MatMul(p.args, 0, 3);
  ExpectNear(p.c, p.Want(), 0);
}

TEST_P(CpuMatMulTest, BitsDoNotDependOnTheRowSplit) {
  for (bool across : {false, true}) {
    for (int64_t n : {10, 40, 129}) {
      Problem whole(127, n, 300, across, 0), parts(127, n, 300, across, 0);
      whole.args.accumulate = parts.args.accumulate = true;
      MatMul(whole.args, 0, 127);
      const int64_t bounds[] = {0, 1, 3, 8, 21, 64, 64, 95, 127};
      for (size_t i = 0; i + 1 < std::size(bounds); ++i) {
        MatMul(parts.args, bounds[i], bounds[i + 1]);
      }
      EXPECT_EQ(whole.c.Values(), parts.c.Values());
    }
  }
}

TEST_P(CpuMatMulTest, ReluOfTheEpilogueKeepsNan) {
  Problem p(1, 3, 2, false, 0);
  p.b[1] = NAN;
  p.args.act = Activation::kRelu;
  MatMul(p.args, 0, 1);
  EXPECT_FALSE(std::isnan(p.c[0]));
  EXPECT_TRUE(std::isnan(p.c[1]));
}

TEST_P(CpuMatMulTest, TransposesOddSizes) {
  for (int64_t rows : kSizes) {
    for (int64_t cols : kSizes) {
      const Floats x = RandomFloats(rows * cols, -1, 1, 1);
      Floats y(rows * cols);
      Transpose(x.data(), y.data(), rows, cols);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) {
          ASSERT_EQ(y[c * rows + r], x[r * cols + c]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace onestep::cpu
