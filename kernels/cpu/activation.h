// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_KERNELS_CPU_ACTIVATION_H_
#define ONESTEP_KERNELS_CPU_ACTIVATION_H_

#include <cstdint>

#include "kernels/activation.h"

namespace onestep::cpu {

// y[i] = act(x[i]); y may be x. NaN gives NaN, for relu too.
void ActivationForward(Activation act, const float* x, float* y, int64_t n);

// dx[i] = dy[i] act'; `y` is the activation's result or, where the gradient
// reads that, its operand. dx may be y or dy.
void ActivationBackward(Activation act, const float* y, const float* dy,
                        float* dx, int64_t n);

// Backward over columns [col_begin, col_end) of [rows, cols], with the column
// sums of dx. db f32[cols] may be null: no sums; `accumulate`: db += sums.
// One pass; sums run over rows in order, so that any split of the columns
// gives the same bits.
void ActivationGradBias(Activation act, const float* y, const float* dy,
                        float* dx, float* db, bool accumulate, int64_t rows,
                        int64_t cols, int64_t col_begin, int64_t col_end);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_ACTIVATION_H_
