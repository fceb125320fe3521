// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "kernels/reference.h"
#include "tests/kernels/cuda_kernel_test.h"

namespace onestep::cuda {
namespace {

struct Shape {
  int64_t m, n, k;
};

enum class Epilogue { kNone, kBiasRelu, kAccumulate };

std::vector<double> ReferenceMatMul(const MatMulParams& p, const Floats& a,
                                    const Floats& b, const Floats& bias,
                                    const Floats& c, Epilogue epilogue) {
  std::vector<double> y(static_cast<size_t>(p.m * p.n));
  reference::MatMul(a.Doubles().data(), b.Doubles().data(), y.data(), p.m, p.n,
                    p.k, p.trans_a, p.trans_b);
  if (epilogue == Epilogue::kBiasRelu) {
    reference::AddBias(y.data(), bias.Doubles().data(), y.data(), p.m, p.n);
    reference::Activate(Activation::kRelu, y.data(), y.data(), p.m * p.n);
  }
  if (epilogue == Epilogue::kAccumulate) {
    reference::Add(c.Doubles().data(), y.data(), y.data(), p.m * p.n);
  }
  return y;
}

// Returns the name of the kernel.
std::string ExpectMatMul(const Shape& shape, bool trans_a, bool trans_b,
                         Epilogue epilogue) {
  SCOPED_TRACE(testing::Message()
               << shape.m << " x " << shape.n << " x " << shape.k << " "
               << trans_a << trans_b << " epilogue "
               << static_cast<int>(epilogue));
  const auto& [m, n, k] = shape;
  const Floats a = RandomFloats(m * k, -1, 1, 1);
  const Floats b = RandomFloats(k * n, -1, 1, 2);
  const Floats bias = RandomFloats(n, -1, 1, 3);
  const Floats c = RandomFloats(m * n, -1, 1, 4);
  MatMulParams p = {};
  p.a = a.data();
  p.b = b.data();
  p.m = m;
  p.n = n;
  p.k = k;
  p.trans_a = trans_a;
  p.trans_b = trans_b;
  if (epilogue == Epilogue::kBiasRelu) {
    p.bias = bias.data();
    p.act = Activation::kRelu;
  }
  std::string name;
  const auto got = OnAnyOrder([&](uint64_t seed) {
    Floats y = c;
    p.y = y.data();
    p.c = epilogue == Epilogue::kAccumulate ? y.data() : nullptr;
    const Launch launch = MatMul(p);
    name = launch.name;
    RunLaunch(launch, seed);
    return y.Values();
  });
  ExpectNmse(got, ReferenceMatMul(p, a, b, bias, c, epilogue));
  return name;
}

TEST(CudaMatMulTest, OddSizesInEveryOrientationMatchFloat64) {
  for (const Shape& shape :
       {Shape{1, 1, 1}, Shape{3, 2, 7}, Shape{17, 129, 3}, Shape{127, 10, 1},
        Shape{7, 17, 1000}, Shape{32, 33, 129}}) {
    for (int orientation = 0; orientation < 4; ++orientation) {
      for (Epilogue epilogue :
           {Epilogue::kNone, Epilogue::kBiasRelu, Epilogue::kAccumulate}) {
        ExpectMatMul(shape, orientation & 1, orientation & 2, epilogue);
      }
    }
  }
}

TEST(CudaMatMulTest, TheStepOfTheMlpMatchesFloat64) {
  ExpectMatMul({32, 128, 784}, false, false, Epilogue::kBiasRelu);
  ExpectMatMul({32, 10, 128}, false, false, Epilogue::kBiasRelu);
  ExpectMatMul({32, 128, 10}, false, true, Epilogue::kNone);
  ExpectMatMul({128, 10, 32}, true, false, Epilogue::kAccumulate);
  ExpectMatMul({784, 128, 32}, true, false, Epilogue::kAccumulate);
}

// A shape per tile, with edges and slices that are not full.
TEST(CudaMatMulTest, EveryTileMatchesFloat64) {
  std::set<std::string> names;
  for (const Shape& shape : {Shape{17, 35, 203}, Shape{331, 333, 13},
                             Shape{650, 710, 17}, Shape{1400, 1421, 9}}) {
    names.insert(
        ExpectMatMul(shape, shape.k % 2 == 0, true, Epilogue::kAccumulate));
  }
  EXPECT_EQ(names.size(), 4u);
}

}  // namespace
}  // namespace onestep::cuda
