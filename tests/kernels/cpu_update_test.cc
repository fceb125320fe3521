// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/update.h"
#include "kernels/reference.h"
#include "tests/kernels/cpu_kernel_test.h"

namespace onestep::cpu {
namespace {

// A handful of float roundings of values near 1.
constexpr double kTolerance = 5e-7;
// Some of any rule: betas, an epsilon and a decay of Adam.
constexpr float kHypers[kMaxUpdateHypers] = {0.9f, 0.999f, 1e-8f, 0.1f};

using CpuUpdateTest = CpuKernelTest;
ONESTEP_INSTANTIATE_FOR_TARGETS(CpuUpdateTest);

// Runs both in place on the same operands; the float options are widened, so
// that only the arithmetic differs. States that a rule has not stay as they
// are.
void ExpectMatches(UpdateRule rule, float step, bool flag, int64_t n) {
  const float lr = 0.01f;
  const Floats dw = RandomFloats(n, -1, 1, 2);
  const std::vector<double> wide_dw = dw.Doubles();
  Floats w = RandomFloats(n, -1, 1, 1);
  std::vector<double> want_w = w.Doubles();
  UpdateArrays arrays = {w.data(), dw.data(), {}, w.data(), {}};
  UpdateHypers hypers = {&lr, &step, {}, flag};
  reference::UpdateArgs want = {};
  want.w = want.w_out = want_w.data();
  want.dw = wide_dw.data();
  want.lr = lr;
  want.step = step;
  want.flag = flag;
  want.n = n;
  for (int i = 0; i < kMaxUpdateHypers; ++i) {
    hypers.hyper[i].value = kHypers[i];
    want.hyper[i] = kHypers[i];
  }
  std::vector<Floats> states;
  states.reserve(kMaxUpdateStates);
  std::vector<double> want_states[kMaxUpdateStates];
  for (int i = 0; i < kMaxUpdateStates; ++i) {
    states.push_back(RandomFloats(n, 0.01f, 1, 3 + i));
    arrays.state[i] = arrays.state_out[i] = states.back().data();
    want_states[i] = states[i].Doubles();
    want.state[i] = want.state_out[i] = want_states[i].data();
  }
  reference::Update(rule, want);
  Update(rule, arrays, hypers, 0, n / 3);
  Update(rule, arrays, hypers, n / 3, n);
  ASSERT_NO_FATAL_FAILURE(ExpectNear(w, want_w, kTolerance));
  for (int i = 0; i < kMaxUpdateStates; ++i) {
    ASSERT_NO_FATAL_FAILURE(ExpectNear(states[i], want_states[i], kTolerance));
  }
}

TEST_P(CpuUpdateTest, EveryRuleMatchesFloat64InPlace) {
  for (UpdateRule rule : kAllUpdateRules) {
    for (bool flag : {false, true}) {
      for (int64_t n : kSizes) {
        SCOPED_TRACE(static_cast<int>(rule));
        ASSERT_NO_FATAL_FAILURE(ExpectMatches(rule, 3, flag, n));
      }
    }
  }
}

TEST_P(CpuUpdateTest, AdamsBiasCorrectionIsExactAtLateAndFirstSteps) {
  for (float step : {1.0f, 2.0f, 1e4f, 1e7f}) {
    ASSERT_NO_FATAL_FAILURE(ExpectMatches(UpdateRule::kAdam, step, false, 17));
  }
}

}  // namespace
}  // namespace onestep::cpu
