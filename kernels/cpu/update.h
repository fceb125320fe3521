// SPDX-License-Identifier: Apache-2.0
// Optimizer updates over n contiguous values; the formulas are in
// compiler/ir/ops.def. A result may lie on its old value.
#ifndef ONESTEP_KERNELS_CPU_UPDATE_H_
#define ONESTEP_KERNELS_CPU_UPDATE_H_

#include <cstdint>

namespace onestep::cpu {

void SgdUpdate(const float* w, const float* dw, float lr, float weight_decay,
               float* w_out, int64_t n);

struct Momentum {
  float lr, momentum, weight_decay;
  bool nesterov;
};
void MomentumUpdate(const float* w, const float* dw, const float* v,
                    const Momentum& options, float* w_out, float* v_out,
                    int64_t n);

// Adam's per-step scalars are derived once by the kernel from `step` (>= 1),
// in float64: 1 - beta^step.
struct Adam {
  float lr, step, beta1, beta2, epsilon, weight_decay;
  bool decoupled;
};
void AdamUpdate(const float* w, const float* dw, const float* m, const float* v,
                const Adam& options, float* w_out, float* m_out, float* v_out,
                int64_t n);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_UPDATE_H_
