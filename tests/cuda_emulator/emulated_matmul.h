// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TESTS_CUDA_EMULATOR_EMULATED_MATMUL_H_
#define ONESTEP_TESTS_CUDA_EMULATOR_EMULATED_MATMUL_H_

#include <cstdint>
#include <string>

#include "runtime/cuda_api.h"

namespace onestep {

// Why cuBLASLt has no such matmul, or "". A bias and column sums share one
// pointer there; BGRADA reads the k rows of an op(b) that is not transposed.
std::string MatMulRefusal(const CudaMatMul& matmul);

// Bytes of the operands; 0: the matmul has no such operand.
struct MatMulBytes {
  int64_t a, b, y, bias, mask, column_sums;
};
MatMulBytes BytesOf(const CudaMatMul& matmul);

// The definition: sums in double, the result rounded to float once. With tf32
// or bf16 the elements of a and b are first rounded to nearest even, to 10 or 7
// bits of mantissa. Bit j of row i of the mask is bit i * MaskColumns(n) + j,
// the lowest of a byte first, which is cuBLASLt's layout; bits past column n
// keep their values. Relu gives 0 for NaN.
void MultiplyMatrices(const CudaMatMul& matmul,
                      const CudaMatMulOperands& operands);

}  // namespace onestep

#endif  // ONESTEP_TESTS_CUDA_EMULATOR_EMULATED_MATMUL_H_
