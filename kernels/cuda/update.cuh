// SPDX-License-Identifier: Apache-2.0
// Updates of parameters, elementwise: each array is read and written once, and
// each output may be its input.
#ifndef ONESTEP_KERNELS_CUDA_UPDATE_CUH_
#define ONESTEP_KERNELS_CUDA_UPDATE_CUH_

#include "kernels/cuda/common.cuh"

namespace onestep::cuda {

struct SgdArgs {
  In w, dw, lr;
  Hyper weight_decay;
  Out w_out;
  int64_t n;
};

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void SgdUpdate(SgdArgs args) {
  Begin();
  const float lr = *OfModel(args.lr), decay = OfModel(args.weight_decay);
  Map<kWidth>(
      args.w_out, args.n,
      [=](float w, float dw) {
        return dev::Fma(-lr, dev::Fma(decay, w, dw), w);
      },
      args.w, args.dw);
}

struct MomentumArgs {
  In w, dw, v, lr;
  Hyper momentum;
  bool nesterov;
  Hyper weight_decay;
  Out w_out, v_out;
  int64_t n;
};

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void MomentumUpdate(MomentumArgs args) {
  Begin();
  const int64_t i = FirstElement<kWidth>();
  if (i >= args.n) return;
  const float lr = *OfModel(args.lr), momentum = OfModel(args.momentum);
  const float decay = OfModel(args.weight_decay);
  auto w = Load<kWidth>(OfModel(args.w) + i);
  auto v = Load<kWidth>(OfModel(args.v) + i);
  const auto dw = Load<kWidth>(OfModel(args.dw) + i);
  ONESTEP_UNROLL
  for (int u = 0; u < kWidth; ++u) {
    const float g = dev::Fma(decay, w.v[u], dw.v[u]);
    v.v[u] = dev::Fma(momentum, v.v[u], g);
    const float step = args.nesterov ? dev::Fma(momentum, v.v[u], g) : v.v[u];
    w.v[u] = dev::Fma(-lr, step, w.v[u]);
  }
  Store(w, OfModel(args.w_out) + i);
  Store(v, OfModel(args.v_out) + i);
}

struct AdamArgs {
  AdamParams params;
  float rest1, rest2;  // 1 - beta
  float log1, log2;    // log(beta)
};

// 1 - exp(x) for x <= 0: near 0 by its series, where a difference would lose
// the digits.
ONESTEP_DEVICE float OneMinusExp(float x) {
  if (x < -0.5f) return 1 - dev::Exp(x);
  float sum = 1.0f;  // of x^i / (i + 1)!, up to x^8
  ONESTEP_UNROLL
  for (int i = 9; i >= 2; --i) sum = dev::Fma(sum, x * (1.0f / i), 1.0f);
  return -x * sum;
}

// Kingma and Ba, 2015, algorithm 1; decoupled: Loshchilov and Hutter, 2019,
// algorithm 2, with the decay multiplied by lr.
template <int kWidth>
ONESTEP_KERNEL(kThreads)
void AdamUpdate(AdamArgs args) {
  Begin();
  const AdamParams &p = args.params;
  const int64_t i = FirstElement<kWidth>();
  if (i >= p.n) return;
  auto w = Load<kWidth>(OfModel(p.w) + i);
  auto m = Load<kWidth>(OfModel(p.m) + i);
  auto v = Load<kWidth>(OfModel(p.v) + i);
  const auto dw = Load<kWidth>(OfModel(p.dw) + i);
  const float step = *OfModel(p.step), lr = *OfModel(p.lr);
  const float decay = OfModel(p.weight_decay);
  // lr m_hat = rate m; sqrt(v_hat) = sqrt(v correction); 1 - beta^step.
  const float rate = lr / OneMinusExp(step * args.log1);
  const float correction = 1 / OneMinusExp(step * args.log2);
  const float l2 = p.decoupled ? 0 : decay;
  const float shrink = p.decoupled ? lr * decay : 0;
  ONESTEP_UNROLL
  for (int u = 0; u < kWidth; ++u) {
    const float g = dev::Fma(l2, w.v[u], dw.v[u]);
    m.v[u] = dev::Fma(p.beta1, m.v[u], args.rest1 * g);
    v.v[u] = dev::Fma(p.beta2, v.v[u], args.rest2 * g * g);
    const float scale = dev::Sqrt(v.v[u] * correction) + p.epsilon;
    // In one sum: 1 - shrink would round away most of shrink.
    w.v[u] -= dev::Fma(shrink, w.v[u], rate * m.v[u] / scale);
  }
  Store(w, OfModel(p.w_out) + i);
  Store(m, OfModel(p.m_out) + i);
  Store(v, OfModel(p.v_out) + i);
}

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_CUDA_UPDATE_CUH_
