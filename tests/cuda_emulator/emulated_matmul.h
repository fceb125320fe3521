// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TESTS_CUDA_EMULATOR_EMULATED_MATMUL_H_
#define ONESTEP_TESTS_CUDA_EMULATOR_EMULATED_MATMUL_H_

#include <array>
#include <cstdint>
#include <string>

#include "runtime/cuda/cuda_api.h"

namespace onestep {

// Why cuBLASLt has no such epilogue, or "". A bias and column sums share one
// pointer there; BGRADA reads the k rows of an op(b) that is not transposed;
// vectors are aligned in each model.
std::string EpilogueRefusal(const CudaMatMul& matmul);

// What the matmul asks of an operand.
struct MatMulOperand {
  const char* name;
  const void* address;
  int64_t bytes;      // 0: it has none, and the address is null
  int64_t alignment;  // bytes; of matrices, what whole rows leave of 256
};
// The three that are or may be written first: y, column sums and mask.
std::array<MatMulOperand, 6> OperandsOf(const CudaMatMul& matmul,
                                        const CudaMatMulOperands& operands);

// The definition: sums in double, the result rounded to float once. With tf32
// or bf16 the elements of a and b are first rounded to nearest even, to 10 or 7
// bits of mantissa. Bit j of row i of the mask is bit i * MaskColumns(n) + j,
// the lowest of a byte first, which is cuBLASLt's layout; bits past column n
// keep their values. Relu gives 0 for NaN.
void MultiplyMatrices(const CudaMatMul& matmul,
                      const CudaMatMulOperands& operands);

}  // namespace onestep

#endif  // ONESTEP_TESTS_CUDA_EMULATOR_EMULATED_MATMUL_H_
