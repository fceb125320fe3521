// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/loss.h"
#include "kernels/cpu/word2vec/sigmoid_bce.h"
#include "kernels/reference.h"
#include "tests/kernels/cpu_kernel_test.h"

namespace onestep::cpu {
namespace {

constexpr int64_t kRows = 5;

// Exp is within 1 ulp, a sum of cols terms and a division follow.
constexpr double kTolerance = 1e-6;

// Around the 4, 8 and 16 rows that are done at once, and the 32 columns up to
// which they are.
const int64_t kFewCols[] = {1, 2, 3, 4, 5, 10, 16, 17, 31, 32, 33};

// Loss, count and gradient (alpha 1) of one row.
struct RowResult {
  float loss, correct;
  std::vector<float> grad;
};

RowResult SoftmaxXent(const std::vector<float>& logits, int32_t label) {
  const Floats z(logits);
  Floats dz(z.size()), loss(1), correct(1);
  const Ints labels({label});
  SoftmaxXentGradRows(z.data(), labels.data(), nullptr, 1, dz.data(),
                      loss.data(), correct.data(), z.size(), 0, 1);
  return {loss[0], correct[0], dz.Values()};
}

// All that the fused softmax writes, for rows [begin, end) of z in place.
struct FusedResult {
  FusedResult(const Floats& z, const Ints& labels, int64_t rows, int64_t cols)
      : rows(rows),
        cols(cols),
        labels(labels),
        dz(z),
        loss(rows, -9),
        correct(rows, -9) {}

  void Run(int64_t begin, int64_t end) {
    SoftmaxXentGradRows(dz.data(), labels.data(), nullptr, -0.3f, dz.data(),
                        loss.data(), correct.data(), cols, begin, end);
  }

  int64_t rows, cols;
  Ints labels;
  Floats dz, loss, correct;
};

using CpuLossTest = CpuKernelTest;
ONESTEP_INSTANTIATE_FOR_TARGETS(CpuLossTest);

TEST_P(CpuLossTest, SoftmaxMatchesFloat64InPlace) {
  for (int64_t cols : kSizes) {
    Floats x = RandomFloats(kRows * cols, -20, 20, 1);
    std::vector<double> want = x.Doubles();
    reference::Softmax(x.Doubles().data(), want.data(), kRows, cols);
    Softmax(x.data(), x.data(), cols, 0, kRows);
    ASSERT_NO_FATAL_FAILURE(ExpectNear(x, want, kTolerance));
  }
}

// Rows [begin, end) only; labels or the first column.
TEST_P(CpuLossTest, SigmoidBceMatchesFloat64) {
  constexpr int64_t kBegin = 1, kEnd = 5, kBlocks = 2, kAll = 6;
  for (int64_t cols : kSizes) {
    Floats z = RandomFloats(kAll * cols, -30, 30, 1);
    const Floats mask = RandomFloats(kAll, 0, 1, 2);
    const Floats weights = RandomFloats(kBlocks * cols, 0, 1, 3);
    const Floats labels = RandomFloats(kBlocks * cols, 0, 1, 4);
    for (bool labelled : {false, true}) {
      const std::vector<double> zs = z.Doubles(), ms = mask.Doubles();
      const std::vector<double> ws = weights.Doubles(), ls = labels.Doubles();
      std::vector<double> want(zs.size());
      const reference::SigmoidBceArgs all = {
          zs.data(), ms.data(), ws.data(), labelled ? ls.data() : nullptr,
          kAll,      cols,      kBlocks,   1};
      reference::SigmoidBceGrad(all, want.data());
      const SigmoidBceArgs args = {z.data(),
                                   mask.data(),
                                   weights.data(),
                                   labelled ? labels.data() : nullptr,
                                   1,
                                   cols,
                                   kAll / kBlocks};
      Floats loss(kAll, -9.0f), dz(kAll * cols, -9.0f);
      SigmoidBceRows(args, loss.data(), kBegin, kEnd);
      SigmoidBceGradRows(args, dz.data(), kBegin, kEnd);
      for (int64_t r = 0; r < kAll; ++r) {
        const bool asked = r >= kBegin && r < kEnd;
        reference::SigmoidBceArgs row = all;
        const int64_t block = r / 3 * cols;
        row.z += r * cols;
        row.mask += r;
        row.weights += block;
        if (labelled) row.labels += block;
        row.rows = row.blocks = 1;
        const double want_loss = reference::SigmoidBce(row);
        // Exp, log1p and a sum of up to 129 terms below 60.
        EXPECT_NEAR(loss[r], asked ? want_loss : -9,
                    asked ? 1e-6 * (1 + want_loss) : 0);
        for (int64_t i = r * cols; i < (r + 1) * cols; ++i) {
          EXPECT_NEAR(dz[i], asked ? want[i] : -9, asked ? 1e-6 : 0);
        }
      }
    }
  }
}

TEST_P(CpuLossTest, SigmoidBceOfLargeLogitsIsFiniteAndOfNanIsNan) {
  const Floats z({1e30f, -1e30f, NAN}), one({1, 1, 1});
  const SigmoidBceArgs args = {z.data(), one.data(), one.data(), nullptr,
                               0,        1,          3};
  Floats loss(3), dz(3);
  SigmoidBceRows(args, loss.data(), 0, 3);
  SigmoidBceGradRows(args, dz.data(), 0, 3);
  EXPECT_EQ(loss[0], 1e30f);
  EXPECT_EQ(loss[1], 0);
  EXPECT_TRUE(std::isnan(loss[2]));
  EXPECT_EQ(dz[0], 1);
  EXPECT_EQ(dz[1], 0);
  EXPECT_TRUE(std::isnan(dz[2]));
}

TEST_P(CpuLossTest, SoftmaxGradMatchesFloat64InPlace) {
  for (int64_t cols : kSizes) {
    Floats y = RandomFloats(kRows * cols, 0, 1, 1);
    Floats dy = RandomFloats(kRows * cols, -1, 1, 2);
    std::vector<double> want(static_cast<size_t>(kRows * cols));
    reference::SoftmaxGrad(y.Doubles().data(), dy.Doubles().data(), want.data(),
                           kRows, cols);
    Floats on_y = y;
    SoftmaxGrad(on_y.data(), dy.data(), on_y.data(), cols, 0, kRows);
    // The dot product of 129 terms comes on top.
    ASSERT_NO_FATAL_FAILURE(ExpectNear(on_y, want, 3 * kTolerance));
    SoftmaxGrad(y.data(), dy.data(), dy.data(), cols, 0, kRows);
    ASSERT_NO_FATAL_FAILURE(ExpectNear(dy, want, 3 * kTolerance));
  }
}

TEST_P(CpuLossTest, NllRowsMatchesFloat64) {
  for (int64_t cols : kSizes) {
    const Floats z = RandomFloats(kRows * cols, -20, 20, 1);
    const Ints labels = RandomInts(kRows, static_cast<int32_t>(cols), 2);
    Floats loss(kRows);
    NllRows(z.data(), labels.data(), loss.data(), cols, 0, kRows);
    const double want = reference::NllLoss(
        z.Doubles().data(), labels.Doubles().data(), kRows, cols, kRows);
    EXPECT_NEAR(SumRows(loss.data(), 1.0f / kRows, kRows), want,
                kTolerance * std::max(1.0, want));
  }
}

TEST_P(CpuLossTest, FusedSoftmaxXentMatchesTheSeparateOps) {
  for (int64_t cols : kSizes) {
    Floats z = RandomFloats(kRows * cols, -20, 20, 1);
    const Ints all = RandomInts(9, static_cast<int32_t>(cols), 2);
    const Ints indices({8, 0, 3, 3, 7});
    Ints labels(kRows);
    for (int64_t r = 0; r < kRows; ++r) labels[r] = all[indices[r]];
    Floats p(kRows * cols), want_loss(kRows), want_correct(kRows);
    Softmax(z.data(), p.data(), cols, 0, kRows);
    MinusOneHot(p.data(), labels.data(), p.data(), cols, 0, kRows);
    NllRows(z.data(), labels.data(), want_loss.data(), cols, 0, kRows);
    CorrectRows(z.data(), labels.data(), want_correct.data(), cols, 0, kRows);

    Floats loss(kRows), correct(kRows);
    SoftmaxXentGradRows(z.data(), all.data(), indices.data(), 1, z.data(),
                        loss.data(), correct.data(), cols, 0, kRows);
    ASSERT_NO_FATAL_FAILURE(ExpectNear(z, p.Doubles(), kTolerance));
    EXPECT_EQ(loss.Values(), want_loss.Values());
    EXPECT_EQ(correct.Values(), want_correct.Values());
  }
}

TEST_P(CpuLossTest, FusedSoftmaxXentMatchesFloat64OnAnyNumberOfRows) {
  for (int64_t cols : kFewCols) {
    for (int64_t rows = 1; rows <= 35; ++rows) {
      SCOPED_TRACE(testing::Message() << rows << " x " << cols);
      const Floats z = RandomFloats(rows * cols, -20, 20, 1);
      FusedResult got(z, RandomInts(rows, static_cast<int32_t>(cols), 2), rows,
                      cols);
      got.Run(0, rows);
      std::vector<double> want = z.Doubles();
      reference::Softmax(want.data(), want.data(), rows, cols);
      reference::MinusOneHot(want.data(), got.labels.Doubles().data(),
                             want.data(), rows, cols);
      for (double& x : want) x *= -0.3;
      ASSERT_NO_FATAL_FAILURE(ExpectNear(got.dz, want, kTolerance));
      for (int64_t r = 0; r < rows; ++r) {
        const double label = got.labels[r];
        const std::vector<double> row(z.data() + r * cols,
                                      z.data() + (r + 1) * cols);
        const double loss = reference::NllLoss(row.data(), &label, 1, cols, 1);
        ASSERT_NEAR(got.loss[r], loss, kTolerance * std::max(1.0, loss));
        ASSERT_EQ(got.correct[r],
                  reference::CountCorrect(row.data(), &label, 1, cols));
      }
    }
  }
}

TEST_P(CpuLossTest, BitsOfARowDoNotDependOnTheRowsDoneWithIt) {
  for (int64_t cols : kFewCols) {
    constexpr int64_t kAll = 35;
    const Floats z = RandomFloats(kAll * cols, -20, 20, 1);
    const Ints labels = RandomInts(kAll, static_cast<int32_t>(cols), 2);
    Floats p(z), nll(kAll);
    Softmax(p.data(), p.data(), cols, 0, kAll);
    NllRows(z.data(), labels.data(), nll.data(), cols, 0, kAll);
    FusedResult whole(z, labels, kAll, cols);
    whole.Run(0, kAll);
    EXPECT_EQ(whole.loss.Values(), nll.Values());
    for (int64_t step : {1, 2, 3, 5, 9, 16, 20}) {
      SCOPED_TRACE(testing::Message() << "cols " << cols << " step " << step);
      FusedResult parts(z, labels, kAll, cols);
      Floats part_p(z), part_nll(kAll);
      for (int64_t begin = 0; begin < kAll; begin += step) {
        const int64_t end = std::min(begin + step, kAll);
        parts.Run(begin, end);
        Softmax(part_p.data(), part_p.data(), cols, begin, end);
        NllRows(z.data(), labels.data(), part_nll.data(), cols, begin, end);
      }
      ASSERT_EQ(parts.dz.Values(), whole.dz.Values());
      ASSERT_EQ(parts.loss.Values(), whole.loss.Values());
      ASSERT_EQ(parts.correct.Values(), whole.correct.Values());
      ASSERT_EQ(part_p.Values(), p.Values());
      ASSERT_EQ(part_nll.Values(), nll.Values());
    }
  }
}

TEST_P(CpuLossTest, FusedMseMatchesFloat64InPlace) {
  for (int64_t cols : kSizes) {
    Floats z = RandomFloats(kRows * cols, -2, 2, 1);
    const Ints labels = RandomInts(kRows, static_cast<int32_t>(cols), 2);
    std::vector<double> want = z.Doubles();
    reference::MinusOneHot(want.data(), labels.Doubles().data(), want.data(),
                           kRows, cols);
    double want_loss = 0;
    for (double& x : want) {
      want_loss += x * x;
      x *= 0.5;
    }
    Floats loss(kRows), correct(kRows);
    MseGradRows(z.data(), labels.data(), nullptr, 0.5f, z.data(), loss.data(),
                correct.data(), cols, 0, kRows);
    ASSERT_NO_FATAL_FAILURE(ExpectNear(z, want, kTolerance));
    EXPECT_NEAR(SumRows(loss.data(), 1, kRows), want_loss,
                kTolerance * std::max(1.0, want_loss));
  }
}

TEST_P(CpuLossTest, MseRowsAndGradMatchFloat64) {
  for (int64_t cols : kSizes) {
    const Floats y = RandomFloats(kRows * cols, -2, 2, 1);
    Floats t = RandomFloats(kRows * cols, -2, 2, 2);
    const double n = static_cast<double>(kRows * cols);
    std::vector<double> want(static_cast<size_t>(kRows * cols));
    reference::MseGrad(y.Doubles().data(), t.Doubles().data(), want.data(),
                       kRows * cols, kRows * cols);
    const double want_loss = reference::MseLoss(
        y.Doubles().data(), t.Doubles().data(), kRows * cols, kRows * cols);
    Floats loss(kRows);
    MseRows(y.data(), t.data(), loss.data(), cols, 0, kRows);
    EXPECT_NEAR(SumRows(loss.data(), static_cast<float>(1 / n), kRows),
                want_loss, kTolerance * std::max(1.0, want_loss));
    MseGrad(static_cast<float>(2 / n), y.data(), t.data(), t.data(),
            kRows * cols);
    ASSERT_NO_FATAL_FAILURE(ExpectNear(t, want, kTolerance));
  }
}

TEST_P(CpuLossTest, CorrectRowsTakesTheFirstOfEqualLogits) {
  for (int64_t cols : {3, 10, 17, 129}) {
    Floats z(2 * cols, 1.0f), correct(2);
    z[cols] = 0;  // row 1: the first largest is column 1
    const Ints zero({0, 0}), one({1, 1});
    CorrectRows(z.data(), zero.data(), correct.data(), cols, 0, 2);
    EXPECT_THAT(correct.Values(), testing::ElementsAre(1, 0));
    CorrectRows(z.data(), one.data(), correct.data(), cols, 0, 2);
    EXPECT_THAT(correct.Values(), testing::ElementsAre(0, 1));
  }
}

TEST_P(CpuLossTest, CorrectRowsAgreesWithTheReference) {
  for (int64_t cols : kSizes) {
    // Few distinct values, so that there are ties.
    Ints drawn = RandomInts(kRows * cols, 4, 1);
    Floats z(kRows * cols), correct(kRows);
    std::copy(drawn.begin(), drawn.end(), z.begin());
    const Ints labels = RandomInts(kRows, static_cast<int32_t>(cols), 2);
    CorrectRows(z.data(), labels.data(), correct.data(), cols, 0, kRows);
    EXPECT_EQ(SumRows(correct.data(), 1, kRows),
              reference::CountCorrect(z.Doubles().data(),
                                      labels.Doubles().data(), kRows, cols));
  }
}

TEST_P(CpuLossTest, HugeEqualLogitsGiveLogTwo) {
  const RowResult row = SoftmaxXent({1e8f, 1e8f}, 1);
  EXPECT_FLOAT_EQ(row.loss, 0.69314718f);
  EXPECT_THAT(row.grad, testing::ElementsAre(0.5f, -0.5f));
}

TEST_P(CpuLossTest, FarApartLogitsGiveTheirDifference) {
  EXPECT_EQ(SoftmaxXent({1e4f, 0}, 1).loss, 10000);
  const RowResult row = SoftmaxXent({-431, 279, 427}, 0);
  EXPECT_EQ(row.loss, 858);
  EXPECT_EQ(row.correct, 0);
  EXPECT_THAT(row.grad, testing::ElementsAre(-1, 0, 1));
}

TEST_P(CpuLossTest, LogitsThatAreNotFiniteShowInTheLossAndCountAsWrong) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    for (int64_t cols : {2, 10, 17, 40}) {
      for (int64_t at = 0; at < cols; ++at) {
        std::vector<float> z(static_cast<size_t>(cols), 0.5f);
        z[static_cast<size_t>(at)] = bad;
        for (int32_t label : {0, 1}) {
          const RowResult row = SoftmaxXent(z, label);
          ASSERT_FALSE(std::isfinite(row.loss)) << bad << " at " << at;
          ASSERT_EQ(row.correct, 0) << bad << " at " << at;
        }
      }
    }
  }
}

TEST_P(CpuLossTest, ARowThatIsNotFiniteSpoilsNoOther) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    for (int64_t cols : {2, 3, 10, 32}) {
      constexpr int64_t kAll = 19;
      Floats z(kAll * cols, 0.5f);
      for (int64_t r = 0; r < kAll; ++r) z[r * cols] = 1;
      for (int64_t r = 0; r < kAll; r += 3) z[r * cols + r % cols] = bad;
      FusedResult got(z, Ints(kAll, 0), kAll, cols);
      got.Run(0, kAll);
      for (int64_t r = 0; r < kAll; ++r) {
        ASSERT_EQ(std::isnan(got.loss[r]), r % 3 == 0) << bad << " row " << r;
        ASSERT_EQ(got.correct[r], r % 3 == 0 ? 0 : 1) << bad << " row " << r;
        ASSERT_EQ(std::isfinite(got.dz[r * cols]), r % 3 != 0 || bad < 0);
      }
    }
  }
}

TEST_P(CpuLossTest, ExtremeLogitsInManyRows) {
  struct Case {
    float z[3], loss, correct, dz;  // dz at the label
  };
  const Case cases[] = {{{1e8f, -3e38f, 1e8f}, 0.69314718f, 1, 0.15f},
                        {{-431, 279, 427}, 858, 0, 0.3f},
                        {{7, 7, 7}, 1.0986123f, 1, 0.2f}};
  constexpr int64_t kAll = 33;
  Floats z(kAll * 3);
  for (int64_t r = 0; r < kAll; ++r) {
    std::copy_n(cases[r % 3].z, 3, z.data() + r * 3);
  }
  FusedResult got(z, Ints(kAll, 0), kAll, 3);
  got.Run(0, kAll);
  for (int64_t r = 0; r < kAll; ++r) {
    EXPECT_FLOAT_EQ(got.loss[r], cases[r % 3].loss);
    EXPECT_EQ(got.correct[r], cases[r % 3].correct);
    EXPECT_FLOAT_EQ(got.dz[r * 3], cases[r % 3].dz);
  }
}

TEST_P(CpuLossTest, NanMakesTheWholeRowOfSoftmaxNan) {
  Floats x(20, 1.0f);
  x[3] = NAN;
  Softmax(x.data(), x.data(), 10, 0, 2);
  for (int64_t i = 0; i < 10; ++i) EXPECT_TRUE(std::isnan(x[i]));
  for (int64_t i = 10; i < 20; ++i) EXPECT_FLOAT_EQ(x[i], 0.1f);
}

TEST_P(CpuLossTest, OnlyTheRowsAskedForAreWritten) {
  const Floats z(4 * 3, 0.0f);
  const Ints labels(4, 0);
  Floats dz(4 * 3, -9), loss(4, -9), correct(4, -9);
  SoftmaxXentGradRows(z.data(), labels.data(), nullptr, 1, dz.data(),
                      loss.data(), correct.data(), 3, 1, 3);
  EXPECT_THAT(correct.Values(), testing::ElementsAre(-9, 1, 1, -9));
  EXPECT_EQ(dz[2], -9);
  EXPECT_EQ(dz[9], -9);
}

TEST_P(CpuLossTest, SumRowsAccumulatesInFloat64) {
  // In float32 every 1 would be lost beside 2^25.
  Floats x(5, 1.0f);
  x[0] = 33554432;
  EXPECT_EQ(SumRows(x.data(), 0.5f, 5), 16777218);
}

}  // namespace
}  // namespace onestep::cpu
