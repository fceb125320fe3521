// SPDX-License-Identifier: Apache-2.0
#include "kernels/probe.h"

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/probe.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::HWY_NAMESPACE {

using namespace cpu::HWY_NAMESPACE;  // NOLINT(google-build-using-namespace)

int64_t Target() { return HWY_TARGET; }

// Two FMA pipes with a latency of 4 or 5 cycles need 10 independent chains to
// stay busy; 12 chains and the two operands still fit the 16 registers of AVX2.
double FmaLoop(int64_t iterations) {
  constexpr int kChains = 12;
  const D d;
  V sum[kChains];
  for (int i = 0; i < kChains; ++i) {
    sum[i] = hn::Set(d, static_cast<float>(i));
  }
  // Each chain converges to 2, so that no value ever becomes a denormal.
  const V scale = hn::Set(d, 0.5f), offset = hn::Set(d, 1.0f);
  for (int64_t n = 0; n < iterations; ++n) {
    HWY_UNROLL(12)
    for (V& s : sum) s = hn::MulAdd(s, scale, offset);
  }
  V total = hn::Zero(d);
  for (const V& s : sum) total = hn::Add(total, s);
  // The volatile store keeps the compiler from removing the loop.
  [[maybe_unused]] volatile float sink = hn::GetLane(total);
  return 2.0 * kChains * kLanes * static_cast<double>(iterations);
}

}  // namespace onestep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onestep {

HWY_EXPORT(Target);
HWY_EXPORT(FmaLoop);

const char* CpuIsa() {
  switch (HWY_DYNAMIC_DISPATCH(Target)()) {
#if HWY_ARCH_X86
    case HWY_AVX3:  // Highway's name for AVX-512 with F, BW, CD, DQ and VL
      return "AVX-512";
    case HWY_AVX2:
      return "avx2";
#ifdef HWY_SSE2  // the baseline of newer Highways
    case HWY_SSE2:
      return "sse2";
#endif
#endif
#if HWY_ARCH_ARM
    case HWY_NEON:
      return "neon";
#endif
    case HWY_EMU128:
      return "emu128";
    default:
      return "scalar";
  }
}

bool HasAvx512() {
#if HWY_ARCH_X86
  return HWY_DYNAMIC_DISPATCH(Target)() == HWY_AVX3;
#else
  return false;
#endif
}

double FmaLoop(int64_t iterations) {
  return HWY_DYNAMIC_DISPATCH(FmaLoop)(iterations);
}

}  // namespace onestep
#endif  // HWY_ONCE
