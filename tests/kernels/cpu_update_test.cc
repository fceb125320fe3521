// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/update.h"
#include "kernels/reference.h"
#include "tests/kernels/cpu_kernel_test.h"

namespace onestep::cpu {
namespace {

// A handful of float roundings of values near 1.
constexpr double kTolerance = 5e-7;

using CpuUpdateTest = CpuKernelTest;
ONESTEP_INSTANTIATE_FOR_TARGETS(CpuUpdateTest);

TEST_P(CpuUpdateTest, SgdMatchesFloat64InPlace) {
  for (int64_t n : kSizes) {
    Floats w = RandomFloats(n, -1, 1, 1);
    const Floats dw = RandomFloats(n, -1, 1, 2);
    std::vector<double> want = w.Doubles();
    reference::SgdUpdate(want.data(), dw.Doubles().data(), 0.1, 0.01,
                         want.data(), n);
    SgdUpdate(w.data(), dw.data(), 0.1f, 0.01f, w.data(), n);
    ASSERT_NO_FATAL_FAILURE(ExpectNear(w, want, kTolerance));
  }
}

TEST_P(CpuUpdateTest, MomentumMatchesFloat64InPlace) {
  for (bool nesterov : {false, true}) {
    for (int64_t n : kSizes) {
      Floats w = RandomFloats(n, -1, 1, 1), v = RandomFloats(n, -1, 1, 3);
      const Floats dw = RandomFloats(n, -1, 1, 2);
      std::vector<double> want_w = w.Doubles(), want_v = v.Doubles();
      reference::MomentumUpdate(want_w.data(), dw.Doubles().data(),
                                want_v.data(), 0.1, 0.9, nesterov, 0.01,
                                want_w.data(), want_v.data(), n);
      MomentumUpdate(w.data(), dw.data(), v.data(),
                     {0.1f, 0.9f, 0.01f, nesterov}, w.data(), v.data(), n);
      ASSERT_NO_FATAL_FAILURE(ExpectNear(w, want_w, kTolerance));
      ASSERT_NO_FATAL_FAILURE(ExpectNear(v, want_v, kTolerance));
    }
  }
}

// Runs both on the same operands; the float options are widened, so that
// only the arithmetic differs.
void ExpectAdamMatches(const Adam& o, int64_t n, double tolerance) {
  Floats w = RandomFloats(n, -1, 1, 1), m = RandomFloats(n, -1, 1, 3);
  Floats v = RandomFloats(n, 0.01f, 1, 4);
  const Floats dw = RandomFloats(n, -1, 1, 2);
  std::vector<double> want_w = w.Doubles(), want_m = m.Doubles(),
                      want_v = v.Doubles();
  reference::AdamUpdate(want_w.data(), dw.Doubles().data(), want_m.data(),
                        want_v.data(), o.lr, o.step, o.beta1, o.beta2,
                        o.epsilon, o.weight_decay, o.decoupled, want_w.data(),
                        want_m.data(), want_v.data(), n);
  AdamUpdate(w.data(), dw.data(), m.data(), v.data(), o, w.data(), m.data(),
             v.data(), n);
  ASSERT_NO_FATAL_FAILURE(ExpectNear(w, want_w, tolerance));
  ASSERT_NO_FATAL_FAILURE(ExpectNear(m, want_m, tolerance));
  ASSERT_NO_FATAL_FAILURE(ExpectNear(v, want_v, tolerance));
}

TEST_P(CpuUpdateTest, AdamMatchesFloat64InPlace) {
  for (bool decoupled : {false, true}) {
    for (int64_t n : kSizes) {
      ASSERT_NO_FATAL_FAILURE(ExpectAdamMatches(
          {0.01f, 3, 0.9f, 0.999f, 1e-8f, 0.1f, decoupled}, n, kTolerance));
    }
  }
}

TEST_P(CpuUpdateTest, AdamsBiasCorrectionIsExactAtLateAndFirstSteps) {
  for (float step : {1.0f, 2.0f, 1e4f, 1e7f}) {
    ASSERT_NO_FATAL_FAILURE(ExpectAdamMatches(
        {0.001f, step, 0.9f, 0.999f, 1e-8f, 0, false}, 17, kTolerance));
  }
}

}  // namespace
}  // namespace onestep::cpu
