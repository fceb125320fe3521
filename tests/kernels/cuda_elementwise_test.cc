// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference.h"
#include "tests/kernels/cuda_kernel_test.h"

namespace onestep::cuda {
namespace {

// The binary op `launch`, in place of either operand, against `want`.
template <class F, class Want>
void ExpectBinary(F launch, Want want) {
  for (int64_t n : kElements) {
    SCOPED_TRACE(n);
    const Floats a = RandomFloats(n, -4, 4, 1), b = RandomFloats(n, -4, 4, 2);
    std::vector<double> y(static_cast<size_t>(n));
    want(a.Doubles().data(), b.Doubles().data(), y.data(), n);
    const auto on_a = OnAnyOrder([&](uint64_t seed) {
      Floats out = a;
      RunLaunch(launch(out.data(), b.data(), out.data(), n), seed);
      return out.Values();
    });
    ExpectNmse(on_a, y);
    Floats on_b = b;
    RunLaunch(launch(a.data(), on_b.data(), on_b.data(), n), 1);
    EXPECT_EQ(on_b.Values(), on_a);
  }
}

TEST(CudaElementwiseTest, ScaleMatchesFloat64) {
  for (int64_t n : kElements) {
    const Floats x = RandomFloats(n, -1, 1, 1), s({-0.75f});
    const auto scaled = OnAnyOrder([&](uint64_t seed) {
      Floats y = x;
      RunLaunch(Scale(y.data(), 0.3f, y.data(), n), seed);
      return y.Values();
    });
    std::vector<double> want(static_cast<size_t>(n));
    reference::Scale(x.Doubles().data(), 0.3, want.data(), n);
    ExpectNmse(scaled, want);
    Floats y(n);
    RunLaunch(MulScalar(x.data(), s.data(), 0.3f, y.data(), n), 1);
    reference::Scale(x.Doubles().data(), -0.75 * 0.3, want.data(), n);
    ExpectNmse(y.Values(), want);
  }
}

TEST(CudaElementwiseTest, AddAndMulMatchFloat64InPlace) {
  ExpectBinary(Add, reference::Add);
  ExpectBinary(Mul, reference::Mul);
}

// As many as fours would divide, from an address that they do not.
TEST(CudaElementwiseTest, AnAddressBetweenFoursIsTakenOneByOne) {
  Floats x = RandomFloats(129, -1, 1, 1);
  Floats y(129, -9);
  const Launch launch = Scale(x.data(), 2, y.data(), 128);
  EXPECT_STREQ(launch.name, "Scale<1>");
  RunLaunch(launch, 1);
  for (int64_t i = 0; i < 128; ++i) ASSERT_EQ(y[i], 2 * x[i]);
  EXPECT_EQ(y[128], -9);
}

TEST(CudaElementwiseTest, RowsTakeABias) {
  for (int64_t rows : {1, 3, 33}) {
    for (int64_t cols : {1, 3, 10, 128, 1000, 1283}) {
      const Floats x = RandomFloats(rows * cols, -1, 1, 1);
      const Floats b = RandomFloats(cols, -1, 1, 2);
      std::vector<double> want(static_cast<size_t>(rows * cols));
      reference::AddBias(x.Doubles().data(), b.Doubles().data(), want.data(),
                         rows, cols);
      ExpectNmse(OnAnyOrder([&](uint64_t seed) {
                   Floats y = x;
                   RunLaunch(AddBias(y.data(), b.data(), y.data(), rows, cols),
                             seed);
                   return y.Values();
                 }),
                 want);
      Floats y(rows * cols);
      RunLaunch(BroadcastRows(b.data(), y.data(), rows, cols), 1);
      reference::BroadcastRows(b.Doubles().data(), want.data(), rows, cols);
      EXPECT_EQ(y.Doubles(), want);
    }
  }
}

TEST(CudaElementwiseTest, ActivationsMatchFloat64InPlace) {
  for (Activation act : kAllActivations) {
    for (int64_t n : kElements) {
      const Floats x = RandomFloats(n, -4, 4, 1);
      std::vector<double> want(static_cast<size_t>(n));
      reference::Activate(act, x.Doubles().data(), want.data(), n);
      ExpectNmse(OnAnyOrder([&](uint64_t seed) {
                   Floats y = x;
                   RunLaunch(Activate(act, y.data(), y.data(), n), seed);
                   return y.Values();
                 }),
                 want);
    }
    ExpectBinary([=](const float* y, const float* dy, float* dx,
                     int64_t n) { return ActivateGrad(act, y, dy, dx, n); },
                 [=](const double* y, const double* dy, double* dx, int64_t n) {
                   reference::ActivateGrad(act, y, dy, dx, n);
                 });
  }
}

TEST(CudaElementwiseTest, NanPassesThroughEveryActivation) {
  for (Activation act : kAllActivations) {
    Floats x({NAN, 1}), y(2);
    RunLaunch(Activate(act, x.data(), y.data(), 2), 1);
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_FALSE(std::isnan(y[1]));
  }
}

TEST(CudaElementwiseTest, ActivationsAreFiniteFarOut) {
  for (Activation act : kAllActivations) {
    const bool bounded =
        act == Activation::kTanh || act == Activation::kSigmoid;
    Floats x({-1e4f, 1e4f}), y(2);
    RunLaunch(Activate(act, x.data(), y.data(), 2), 1);
    EXPECT_EQ(y[0], act == Activation::kTanh ? -1 : 0);
    EXPECT_EQ(y[1], bounded ? 1 : 1e4f);
  }
}

struct Shape {
  int64_t rows, cols;
};

// One block, rows in parts, tiles of columns, and both.
constexpr Shape kSumShapes[] = {{1, 1},     {3, 7},    {32, 10},  {32, 128},
                                {7, 129},   {257, 1},  {700, 10}, {300, 33},
                                {300, 128}, {20000, 1}};

TEST(CudaElementwiseTest, ReduceRowsMatchesFloat64) {
  int64_t in_parts = 0;
  for (const auto& [rows, cols] : kSumShapes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << cols);
    const Floats x = RandomFloats(rows * cols, -1, 2, 1);
    std::vector<double> want(static_cast<size_t>(cols));
    reference::ReduceRows(x.Doubles().data(), want.data(), rows, cols);
    // The second run finds the workspace as the first one left it.
    Workspace workspace(ColumnSumsWorkspaceBytes(rows, cols));
    in_parts += !workspace.empty();
    ExpectNmse(OnAnyOrder([&](uint64_t seed) {
                 Floats y(cols, -9);
                 RunLaunch(ReduceRows(x.data(), y.data(), rows, cols,
                                      workspace.data()),
                           seed);
                 return y.Values();
               }),
               want);
  }
  EXPECT_GT(in_parts, 2);
  EXPECT_LT(in_parts, 8);
}

struct GradCase {
  Activation act;
  bool add_to_b;
};

// dx over y, and where b is given db over b: dx, then db.
std::vector<float> GradOf(const GradCase& c, const Shape& shape,
                          const Floats& y, const Floats& dy, const Floats& b,
                          Workspace& workspace, uint64_t seed) {
  Floats dx = y, db = b;
  RunLaunch(ActivationGrad(c.act, dx.data(), dy.data(),
                           c.add_to_b ? db.data() : nullptr, dx.data(),
                           db.data(), shape.rows, shape.cols, workspace.data()),
            seed);
  std::vector<float> all = dx.Values();
  const std::vector<float> sums = db.Values();
  all.insert(all.end(), sums.begin(), sums.end());
  return all;
}

std::vector<double> ReferenceGradOf(const GradCase& c, const Shape& shape,
                                    const Floats& y, const Floats& dy,
                                    const Floats& b) {
  const int64_t n = shape.rows * shape.cols;
  std::vector<double> all(static_cast<size_t>(n + shape.cols));
  reference::ActivateGrad(c.act, y.Doubles().data(), dy.Doubles().data(),
                          all.data(), n);
  double* const db = all.data() + n;
  reference::ReduceRows(all.data(), db, shape.rows, shape.cols);
  for (int64_t i = 0; c.add_to_b && i < shape.cols; ++i) db[i] += b[i];
  return all;
}

TEST(CudaElementwiseTest, ActivationGradMatchesFloat64InPlace) {
  for (const Shape& shape : kSumShapes) {
    SCOPED_TRACE(testing::Message() << shape.rows << " x " << shape.cols);
    const int64_t n = shape.rows * shape.cols;
    const Floats y = RandomFloats(n, -1, 1, 1), dy = RandomFloats(n, -1, 1, 2);
    const Floats b = RandomFloats(shape.cols, -1, 1, 3);
    Workspace workspace(ColumnSumsWorkspaceBytes(shape.rows, shape.cols));
    for (const GradCase& c : {GradCase{Activation::kRelu, true},
                              GradCase{Activation::kTanh, false}}) {
      ExpectNmse(OnAnyOrder([&](uint64_t seed) {
                   return GradOf(c, shape, y, dy, b, workspace, seed);
                 }),
                 ReferenceGradOf(c, shape, y, dy, b));
    }
  }
}

TEST(CudaElementwiseTest, ActivationGradDoesWithoutASum) {
  const Floats y({1, -1, 2}), dy({3, 4, 5});
  Floats dx(3);
  RunLaunch(ActivationGrad(Activation::kRelu, y.data(), dy.data(), nullptr,
                           dx.data(), nullptr, 3, 1, nullptr),
            1);
  EXPECT_EQ(dx.Values(), (std::vector<float>{3, 0, 5}));
}

}  // namespace
}  // namespace onestep::cuda
