// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/update.h"

#include <cmath>

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/update.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/update-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

void SgdUpdate(const float* w, const float* dw, float lr, float weight_decay,
               float* w_out, int64_t n) {
  const D d;
  const V rate = hn::Set(d, lr), decay = hn::Set(d, weight_decay);
  ForVectors(n, [=](int64_t i, auto lanes) HWY_ATTR {
    lanes.Store(SgdOf(lanes.Load(w + i), lanes.Load(dw + i), rate, decay),
                w_out + i);
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
    V vi = lanes.Load(v + i);
    const V wi = MomentumOf(lanes.Load(w + i), lanes.Load(dw + i), vi, rate,
                            momentum, decay, nesterov);
    lanes.Store(wi, w_out + i);
    lanes.Store(vi, v_out + i);
  });
}

void AdamUpdate(const float* w, const float* dw, const float* m, const float* v,
                const Adam& options, float* w_out, float* m_out, float* v_out,
                int64_t n) {
  const double step = options.step;
  const auto set = [](double x)
                       HWY_ATTR { return hn::Set(D(), static_cast<float>(x)); };
  const double beta1 = options.beta1, beta2 = options.beta2;
  const AdamBetas betas = {set(beta1),
                           set(1 - beta1),
                           set(beta2),
                           set(1 - beta2),
                           set(1 / (1 - std::pow(beta2, step))),
                           hn::Set(D(), options.epsilon)};
  const V rate = set(options.lr / (1 - std::pow(beta1, step)));
  const double decay = options.weight_decay;
  const V l2 = set(options.decoupled ? 0 : decay);
  const V shrink = set(options.decoupled ? options.lr * decay : 0);
  ForVectors(n, [=](int64_t i, auto lanes) HWY_ATTR {
    V mi = lanes.Load(m + i), vi = lanes.Load(v + i);
    const V wi = AdamOf(lanes.Load(w + i), lanes.Load(dw + i), mi, vi, betas,
                        rate, l2, shrink);
    lanes.Store(wi, w_out + i);
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
