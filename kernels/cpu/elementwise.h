// SPDX-License-Identifier: Apache-2.0
// Elementwise loops over n contiguous values. A result may alias an operand.
#ifndef ONESTEP_KERNELS_CPU_ELEMENTWISE_H_
#define ONESTEP_KERNELS_CPU_ELEMENTWISE_H_

#include <cstdint>

namespace onestep::cpu {

void Scale(float alpha, const float* x, float* y, int64_t n);  // y = alpha x
void Add(const float* a, const float* b, float* y, int64_t n);
void Mul(const float* a, const float* b, float* y, int64_t n);
void CastU8(const uint8_t* x, float* y, int64_t n);
void CastI32(const int32_t* x, float* y, int64_t n);
// y[r,c] = x[r,c] + b[c]; x and y are [rows,cols].
void AddBias(const float* x, const float* b, float* y, int64_t rows,
             int64_t cols);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_ELEMENTWISE_H_
