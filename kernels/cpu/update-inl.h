// SPDX-License-Identifier: Apache-2.0
// A vector of each update, compiled once per target: one definition for one
// model and for many, which are to have the same bits.

// Per-target include guard, see hwy/foreach_target.h.
#if defined(ONESTEP_KERNELS_CPU_UPDATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONESTEP_KERNELS_CPU_UPDATE_INL_H_
#undef ONESTEP_KERNELS_CPU_UPDATE_INL_H_
#else
#define ONESTEP_KERNELS_CPU_UPDATE_INL_H_
#endif

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

// The new w.
HWY_INLINE V SgdOf(V w, V dw, V lr, V decay) {
  return hn::NegMulAdd(lr, hn::MulAdd(decay, w, dw), w);
}

// The new w; v becomes the new v.
HWY_INLINE V MomentumOf(V w, V dw, V& v, V lr, V momentum, V decay,
                        bool nesterov) {
  const V g = hn::MulAdd(decay, w, dw);
  v = hn::MulAdd(momentum, v, g);
  return hn::NegMulAdd(lr, nesterov ? hn::MulAdd(momentum, v, g) : v, w);
}

// What all models of a step have alike: a1 = 1 - beta1, a2 = 1 - beta2.
struct AdamBetas {
  V b1, a1, b2, a2, correction, epsilon;  // correction: 1 / (1 - beta2^step)
};

// The new w; m and v become the new ones. lr m_hat = rate m; sqrt(v_hat) =
// sqrt(v correction). Kingma and Ba, 2015, algorithm 1; decoupled: Loshchilov
// and Hutter, 2019, algorithm 2, with shrink = lr decay.
HWY_INLINE V AdamOf(V w, V dw, V& m, V& v, const AdamBetas& betas, V rate, V l2,
                    V shrink) {
  const V g = hn::MulAdd(l2, w, dw);
  m = hn::MulAdd(betas.b1, m, hn::Mul(betas.a1, g));
  v = hn::MulAdd(betas.b2, v, hn::Mul(betas.a2, hn::Mul(g, g)));
  const V scale =
      hn::Add(hn::Sqrt(hn::Mul(v, betas.correction)), betas.epsilon);
  const V move = hn::Div(hn::Mul(rate, m), scale);
  // In one sum: 1 - shrink would round away most of shrink.
  return hn::Sub(w, hn::MulAdd(shrink, w, move));
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ONESTEP_KERNELS_CPU_UPDATE_INL_H_
