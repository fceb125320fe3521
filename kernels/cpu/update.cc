// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/update.h"

#include <cmath>

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/update.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

void SgdUpdate(const float* w, const float* dw, float lr, float weight_decay,
               float* w_out, int64_t n) {
  const D d;
  const V rate = hn::Set(d, lr), decay = hn::Set(d, weight_decay);
  ForVectors(n, [=](int64_t i, auto lanes) HWY_ATTR {
    const V wi = lanes.Load(w + i);
    const V g = hn::MulAdd(decay, wi, lanes.Load(dw + i));
    lanes.Store(hn::NegMulAdd(rate, g, wi), w_out + i);
  });
}

void MomentumUpdate(const float* w, const float* dw, const float* v,
                    const Momentum& options, float* w_out, float* v_out,
                    int64_t n) {
  const D d;
  const V rate = hn::Set(d, options.lr);
  const V momentum = hn::Set(d, options.momentum);
  const V decay = hn::Set(d, options.weight_decay);
  const bool nesterov = options.nesterov;
  ForVectors(n, [=](int64_t i, auto lanes) HWY_ATTR {
    const V wi = lanes.Load(w + i);
    const V g = hn::MulAdd(decay, wi, lanes.Load(dw + i));
    const V vi = hn::MulAdd(momentum, lanes.Load(v + i), g);
    const V step = nesterov ? hn::MulAdd(momentum, vi, g) : vi;
    lanes.Store(hn::NegMulAdd(rate, step, wi), w_out + i);
    lanes.Store(vi, v_out + i);
  });
}

// Kingma and Ba, 2015, algorithm 1; decoupled: Loshchilov and Hutter, 2019,
// algorithm 2, with the decay multiplied by lr.
void AdamUpdate(const float* w, const float* dw, const float* m, const float* v,
                const Adam& options, float* w_out, float* m_out, float* v_out,
                int64_t n) {
  const D d;
  const double step = options.step;
  const auto set = [](double x)
                       HWY_ATTR { return hn::Set(D(), static_cast<float>(x)); };
  const double beta1 = options.beta1, beta2 = options.beta2;
  const V b1 = set(beta1), b2 = set(beta2);
  const V a1 = set(1 - beta1), a2 = set(1 - beta2);
  // lr m_hat = rate m; sqrt(v_hat) = sqrt(v correction).
  const V rate = set(options.lr / (1 - std::pow(beta1, step)));
  const V correction = set(1 / (1 - std::pow(beta2, step)));
  const V epsilon = hn::Set(d, options.epsilon);
  const double decay = options.weight_decay;
  const V l2 = set(options.decoupled ? 0 : decay);
  const V shrink = set(options.decoupled ? options.lr * decay : 0);
  ForVectors(n, [=](int64_t i, auto lanes) HWY_ATTR {
    const V wi = lanes.Load(w + i);
    const V g = hn::MulAdd(l2, wi, lanes.Load(dw + i));
    const V mi = hn::MulAdd(b1, lanes.Load(m + i), hn::Mul(a1, g));
    const V vi = hn::MulAdd(b2, lanes.Load(v + i), hn::Mul(a2, hn::Mul(g, g)));
    const V scale = hn::Add(hn::Sqrt(hn::Mul(vi, correction)), epsilon);
    const V move = hn::Div(hn::Mul(rate, mi), scale);
    // In one sum: 1 - shrink would round away most of shrink.
    lanes.Store(hn::Sub(wi, hn::MulAdd(shrink, wi, move)), w_out + i);
    lanes.Store(mi, m_out + i);
    lanes.Store(vi, v_out + i);
  });
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onestep::cpu {

HWY_EXPORT(SgdUpdate);
HWY_EXPORT(MomentumUpdate);
HWY_EXPORT(AdamUpdate);

void SgdUpdate(const float* w, const float* dw, float lr, float weight_decay,
               float* w_out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SgdUpdate)(w, dw, lr, weight_decay, w_out, n);
}

void MomentumUpdate(const float* w, const float* dw, const float* v,
                    const Momentum& options, float* w_out, float* v_out,
                    int64_t n) {
  HWY_DYNAMIC_DISPATCH(MomentumUpdate)(w, dw, v, options, w_out, v_out, n);
}

void AdamUpdate(const float* w, const float* dw, const float* m, const float* v,
                const Adam& options, float* w_out, float* m_out, float* v_out,
                int64_t n) {
  HWY_DYNAMIC_DISPATCH(AdamUpdate)
  (w, dw, m, v, options, w_out, m_out, v_out, n);
}

}  // namespace onestep::cpu
#endif  // HWY_ONCE
