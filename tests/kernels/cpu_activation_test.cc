// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/activation.h"
#include "kernels/reference.h"
#include "tests/kernels/cpu_kernel_test.h"

namespace onestep::cpu {
namespace {

std::vector<Activation> WithNone() {
  std::vector<Activation> all = {Activation::kNone};
  all.insert(all.end(), std::begin(kAllActivations), std::end(kAllActivations));
  return all;
}
const std::vector<Activation> kActs = WithNone();

// In float64 from the same float operands.
std::vector<double> WantForward(Activation act, const Floats& x) {
  std::vector<double> y = x.Doubles();
  reference::Activate(act, y.data(), y.data(), x.size());
  return y;
}

std::vector<double> WantBackward(Activation act, const Floats& saved,
                                 const Floats& dy) {
  const std::vector<double> of = saved.Doubles();
  std::vector<double> dx = dy.Doubles();
  reference::ActivateGrad(act, of.data(), dx.data(), dx.data(), saved.size());
  return dx;
}

// What the backward of `act` reads: any value, or a result of it.
Floats Operands(Activation act, int64_t n) {
  Floats x = RandomFloats(n, -6, 6, 1);
  if (!ActivationGradReadsOperand(act)) {
    ActivationForward(act, x.data(), x.data(), n);
  }
  return x;
}

// Erf is within 1.5e-7 (Abramowitz and Stegun 7.1.26), half of it enters;
// the rest is a few float roundings. Highway's tanh is within 4 ulp, 2.4e-7.
constexpr double kTolerance = 5e-7;

using CpuActivationTest = CpuKernelTest;
ONESTEP_INSTANTIATE_FOR_TARGETS(CpuActivationTest);

TEST_P(CpuActivationTest, ForwardMatchesFloat64Densely) {
  Floats x(40001), y(40001);
  for (int64_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i - 20000) / 1000;
  }
  for (Activation act : kActs) {
    ActivationForward(act, x.data(), y.data(), x.size());
    SCOPED_TRACE(ToString(act));
    ExpectNear(y, WantForward(act, x), kTolerance);
  }
}

TEST_P(CpuActivationTest, BackwardMatchesFloat64Densely) {
  Floats x(40001), dx(40001);
  const Floats dy(40001, 1.0f);
  for (int64_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i - 20000) / 1000;
  }
  for (Activation act : kActs) {
    if (!ActivationGradReadsOperand(act)) continue;
    ActivationBackward(act, x.data(), dy.data(), dx.data(), x.size());
    SCOPED_TRACE(ToString(act));
    ExpectNear(dx, WantBackward(act, x, dy), kTolerance);
  }
}

TEST_P(CpuActivationTest, ForwardWorksInPlaceOnOddSizes) {
  for (Activation act : kActs) {
    for (int64_t n : kSizes) {
      Floats x = RandomFloats(n, -4, 4, 1);
      const std::vector<double> want = WantForward(act, x);
      ActivationForward(act, x.data(), x.data(), n);
      ASSERT_NO_FATAL_FAILURE(ExpectNear(x, want, kTolerance));
    }
  }
}

TEST_P(CpuActivationTest, BackwardWorksInPlaceOnOddSizes) {
  for (Activation act : kActs) {
    for (int64_t n : kSizes) {
      Floats y = Operands(act, n), dy = RandomFloats(n, -1, 1, 2);
      const std::vector<double> want = WantBackward(act, y, dy);
      Floats on_dy = dy;
      ActivationBackward(act, y.data(), on_dy.data(), on_dy.data(), n);
      ASSERT_NO_FATAL_FAILURE(ExpectNear(on_dy, want, kTolerance));
      ActivationBackward(act, y.data(), dy.data(), y.data(), n);
      ASSERT_NO_FATAL_FAILURE(ExpectNear(y, want, kTolerance));
    }
  }
}

TEST_P(CpuActivationTest, LimitsAreExact) {
  const Floats x({-INFINITY, -1e30f, -200, 200, 1e30f, INFINITY});
  Floats y(6);
  ActivationForward(Activation::kTanh, x.data(), y.data(), 6);
  EXPECT_THAT(y.Values(), testing::ElementsAre(-1, -1, -1, 1, 1, 1));
  ActivationForward(Activation::kSigmoid, x.data(), y.data(), 6);
  EXPECT_THAT(y.Values(), testing::ElementsAre(0, 0, 0, 1, 1, 1));
  ActivationForward(Activation::kRelu, x.data(), y.data(), 6);
  EXPECT_THAT(y.Values(), testing::ElementsAre(0, 0, 0, 200, 1e30f, INFINITY));
}

TEST_P(CpuActivationTest, NanGivesNan) {
  const Floats x(17, NAN), dy(17, 1.0f);
  Floats y(17);
  for (Activation act : kActs) {
    ActivationForward(act, x.data(), y.data(), 17);
    for (float value : y) EXPECT_TRUE(std::isnan(value));
  }
}

TEST_P(CpuActivationTest, GradBiasSumsColumnsOfTheGradient) {
  for (Activation act : kActs) {
    for (int64_t rows : {1, 3, 32}) {
      for (int64_t cols : kSizes) {
        const Floats y = Operands(act, rows * cols);
        Floats dy = RandomFloats(rows * cols, -1, 1, 2);
        Floats db = RandomFloats(cols, -1, 1, 3);
        const std::vector<double> want = WantBackward(act, y, dy);
        std::vector<double> want_db(static_cast<size_t>(cols));
        reference::ReduceRows(want.data(), want_db.data(), rows, cols);
        const bool accumulate = rows == 3;
        for (int64_t c = 0; c < cols && accumulate; ++c) {
          want_db[static_cast<size_t>(c)] += db[c];
        }
        ActivationGradBias(act, y.data(), dy.data(), dy.data(), db.data(),
                           accumulate, rows, cols, 0, cols);
        ASSERT_NO_FATAL_FAILURE(ExpectNear(dy, want, kTolerance));
        // Up to 32 terms, each as exact as above.
        ASSERT_NO_FATAL_FAILURE(ExpectNear(db, want_db, 32 * kTolerance));
      }
    }
  }
}

TEST_P(CpuActivationTest, GradBiasBitsDoNotDependOnTheColumnSplit) {
  const int64_t rows = 33, cols = 129;
  const Floats y = Operands(Activation::kGelu, rows * cols);
  const Floats dy = RandomFloats(rows * cols, -1, 1, 2);
  Floats dx(rows * cols), db(cols), dx_parts(rows * cols), db_parts(cols);
  ActivationGradBias(Activation::kGelu, y.data(), dy.data(), dx.data(),
                     db.data(), false, rows, cols, 0, cols);
  const int64_t bounds[] = {0, 1, 20, 20, 90, 129};
  for (size_t i = 0; i + 1 < std::size(bounds); ++i) {
    ActivationGradBias(Activation::kGelu, y.data(), dy.data(), dx_parts.data(),
                       db_parts.data(), false, rows, cols, bounds[i],
                       bounds[i + 1]);
  }
  EXPECT_EQ(dx.Values(), dx_parts.Values());
  EXPECT_EQ(db.Values(), db_parts.Values());
}

TEST_P(CpuActivationTest, GradBiasWithoutSumsGivesTheGradient) {
  const Floats y = Operands(Activation::kRelu, 30);
  const Floats dy = RandomFloats(30, -1, 1, 2);
  Floats dx(30);
  ActivationGradBias(Activation::kRelu, y.data(), dy.data(), dx.data(), nullptr,
                     false, 3, 10, 0, 10);
  ExpectNear(dx, WantBackward(Activation::kRelu, y, dy), 0);
}

}  // namespace
}  // namespace onestep::cpu
