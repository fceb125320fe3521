// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/cuda/update.cuh"

namespace onestep::cuda {

Launch SgdUpdate(In w, In dw, In lr, Hyper weight_decay, Out w_out, int64_t n) {
  const SgdArgs args = {w, dw, lr, weight_decay, w_out, n};
  if (ByFours(n, {w, dw, w_out})) {
    return OverElements(ONESTEP_LAUNCH(SgdUpdate<4>, args), n, 4);
  }
  return OverElements(ONESTEP_LAUNCH(SgdUpdate<1>, args), n, 1);
}

Launch MomentumUpdate(In w, In dw, In v, In lr, Hyper momentum, bool nesterov,
                      Hyper weight_decay, Out w_out, Out v_out, int64_t n) {
  const MomentumArgs args = {w,        dw,           v,     lr,    momentum,
                             nesterov, weight_decay, w_out, v_out, n};
  if (ByFours(n, {w, dw, v, w_out, v_out})) {
    return OverElements(ONESTEP_LAUNCH(MomentumUpdate<4>, args), n, 4);
  }
  return OverElements(ONESTEP_LAUNCH(MomentumUpdate<1>, args), n, 1);
}

Launch AdamUpdate(const AdamParams& p) {
  const double beta1 = p.beta1, beta2 = p.beta2;
  const AdamArgs args = {
      p, static_cast<float>(1 - beta1), static_cast<float>(1 - beta2),
      static_cast<float>(std::log(beta1)), static_cast<float>(std::log(beta2))};
  if (ByFours(p.n, {p.w, p.dw, p.m, p.v, p.w_out, p.m_out, p.v_out})) {
    return OverElements(ONESTEP_LAUNCH(AdamUpdate<4>, args), p.n, 4);
  }
  return OverElements(ONESTEP_LAUNCH(AdamUpdate<1>, args), p.n, 1);
}

}  // namespace onestep::cuda
