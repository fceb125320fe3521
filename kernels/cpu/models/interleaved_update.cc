// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "kernels/cpu/models/interleaved.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/models/interleaved_update.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/update-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

static_assert(kRepeatPad >= kLanes);

// Calls f(i, k, lanes) for the vectors of the range; value i is of model k.
template <class F>
HWY_INLINE void ForRange(const InterleavedRange& range, F f) {
  const int64_t step = kLanes % range.models;
  int64_t k = range.begin % range.models;
  ForVectors(range.end - range.begin, [&](int64_t i, auto lanes) HWY_ATTR {
    f(range.begin + i, k, lanes);
    k += step;
    if (k >= range.models) k -= range.models;
  });
}

HWY_INLINE V Repeated(const float* x, int64_t k) {
  return hn::LoadU(D(), x + k);
}

void InterleavedScale(const float* alpha, const float* x, float* y,
                      const InterleavedRange& range) {
  ForRange(range, [=](int64_t i, int64_t k, auto lanes) HWY_ATTR {
    lanes.Store(hn::Mul(Repeated(alpha, k), lanes.Load(x + i)), y + i);
  });
}

void InterleavedSgd(const float* w, const float* dw, const float* lr,
                    const float* weight_decay, float* w_out,
                    const InterleavedRange& range) {
  ForRange(range, [=](int64_t i, int64_t k, auto lanes) HWY_ATTR {
    lanes.Store(SgdOf(lanes.Load(w + i), lanes.Load(dw + i), Repeated(lr, k),
                      Repeated(weight_decay, k)),
                w_out + i);
  });
}

void InterleavedMomentum(const float* w, const float* dw, const float* v,
                         const InterleavedMomentumArgs& args, float* w_out,
                         float* v_out, const InterleavedRange& range) {
  ForRange(range, [=](int64_t i, int64_t k, auto lanes) HWY_ATTR {
    V vi = lanes.Load(v + i);
    const V wi = MomentumOf(lanes.Load(w + i), lanes.Load(dw + i), vi,
                            Repeated(args.lr, k), Repeated(args.momentum, k),
                            Repeated(args.weight_decay, k), args.nesterov);
    lanes.Store(wi, w_out + i);
    lanes.Store(vi, v_out + i);
  });
}

void InterleavedAdam(const float* w, const float* dw, const float* m,
                     const float* v, const Adam& options,
                     const InterleavedAdamArgs& args, float* w_out,
                     float* m_out, float* v_out,
                     const InterleavedRange& range) {
  const auto set = [](double x)
                       HWY_ATTR { return hn::Set(D(), static_cast<float>(x)); };
  const double beta1 = options.beta1, beta2 = options.beta2;
  const AdamBetas betas = {set(beta1),
                           set(1 - beta1),
                           set(beta2),
                           set(1 - beta2),
                           set(1 / (1 - std::pow(beta2, double{options.step}))),
                           hn::Set(D(), options.epsilon)};
  ForRange(range, [=](int64_t i, int64_t k, auto lanes) HWY_ATTR {
    V mi = lanes.Load(m + i), vi = lanes.Load(v + i);
    const V wi = AdamOf(lanes.Load(w + i), lanes.Load(dw + i), mi, vi, betas,
                        Repeated(args.rate, k), Repeated(args.l2, k),
                        Repeated(args.shrink, k));
    lanes.Store(wi, w_out + i);
    lanes.Store(mi, m_out + i);
    lanes.Store(vi, v_out + i);
  });
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onestep::cpu {

HWY_EXPORT(InterleavedScale);
HWY_EXPORT(InterleavedSgd);
HWY_EXPORT(InterleavedMomentum);
HWY_EXPORT(InterleavedAdam);

void InterleavedScale(const float* alpha, const float* x, float* y,
                      const InterleavedRange& range) {
  HWY_DYNAMIC_DISPATCH(InterleavedScale)(alpha, x, y, range);
}

void InterleavedSgd(const float* w, const float* dw, const float* lr,
                    const float* weight_decay, float* w_out,
                    const InterleavedRange& range) {
  HWY_DYNAMIC_DISPATCH(InterleavedSgd)(w, dw, lr, weight_decay, w_out, range);
}

void InterleavedMomentum(const float* w, const float* dw, const float* v,
                         const InterleavedMomentumArgs& args, float* w_out,
                         float* v_out, const InterleavedRange& range) {
  HWY_DYNAMIC_DISPATCH(InterleavedMomentum)
  (w, dw, v, args, w_out, v_out, range);
}

void InterleavedAdam(const float* w, const float* dw, const float* m,
                     const float* v, const Adam& options,
                     const InterleavedAdamArgs& args, float* w_out,
                     float* m_out, float* v_out,
                     const InterleavedRange& range) {
  HWY_DYNAMIC_DISPATCH(InterleavedAdam)
  (w, dw, m, v, options, args, w_out, m_out, v_out, range);
}

void RepeatModels(float alpha, const float* x, int64_t models, float* y) {
  for (int64_t i = 0; i < models; ++i) y[i] = alpha * x[i];
  for (int64_t i = models; i < models + kRepeatPad; ++i) y[i] = y[i - models];
}

void RepeatValue(float value, int64_t models, float* y) {
  std::fill_n(y, models + kRepeatPad, value);
}

void PrepareAdam(const float* lr, const float* weight_decay, int64_t models,
                 const Adam& options, const InterleavedAdamArgs& args) {
  const double step = options.step, beta1 = options.beta1;
  const double correction = 1 - std::pow(beta1, step);
  for (int64_t i = 0; i < models + kRepeatPad; ++i) {
    const int64_t k = i % models;
    const double decay = weight_decay[k];
    args.rate[i] = static_cast<float>(lr[k] / correction);
    args.l2[i] = options.decoupled ? 0 : weight_decay[k];
    args.shrink[i] = static_cast<float>(options.decoupled ? lr[k] * decay : 0);
  }
}

void InterleavedBroadcast(const float* x, float* y, int64_t n, int64_t models) {
  for (int64_t i = 0; i < n; ++i) std::fill_n(y + i * models, models, x[i]);
}

void TakeModel(const float* x, int64_t models, int64_t k, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i * models + k];
}

void PutModel(const float* y, int64_t models, int64_t k, float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i * models + k] = y[i];
}

}  // namespace onestep::cpu
#endif  // HWY_ONCE
