// SPDX-License-Identifier: Apache-2.0
// Optimizer updates over contiguous values; the formulas are in
// kernels/update_rules.inc.
#ifndef ONESTEP_KERNELS_CPU_UPDATE_H_
#define ONESTEP_KERNELS_CPU_UPDATE_H_

#include <cstdint>

#include "kernels/update.h"

namespace onestep::cpu {

// The tensors of an update, as many states as the rule has. A result may lie on
// its old value.
struct UpdateArrays {
  const float *w, *dw;
  const float* state[kMaxUpdateStates];
  float* w_out;
  float* state_out[kMaxUpdateStates];
};

struct Hyper {
  float value = 0;
  const float* at = nullptr;  // f32[models]; null: the value
};

// The scalars of an update, of one model or of many.
struct UpdateHypers {
  const float* lr;    // f32[models]
  const float* step;  // counts from 1; null where the rule does not read it
  Hyper hyper[kMaxUpdateHypers];  // in the order of the rule
  bool flag = false;
};

// Elements [begin, end) of one model.
void Update(UpdateRule rule, const UpdateArrays& arrays,
            const UpdateHypers& hypers, int64_t begin, int64_t end);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_UPDATE_H_
