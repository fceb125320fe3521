// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_KERNELS_CPU_MATMUL_H_
#define ONESTEP_KERNELS_CPU_MATMUL_H_

#include <cstdint>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/row_prefetch.h"

namespace onestep::cpu {

// c[m,n] = act(a b + bias), or c += a b. fp32 throughout.
struct MatMulArgs {
  const float* a;        // [m,k]: element (i,p) at a[i * a_row + p * a_col]
  int64_t a_row, a_col;  // one of them is 1
  const float* b;        // [k,n] row-major, leading dimension ldb >= n
  int64_t ldb;
  float* c;  // [m,n] row-major, leading dimension ldc >= n
  int64_t ldc;
  int64_t m, n, k;
  const float* bias = nullptr;  // [n] or null
  bool accumulate = false;
  Activation act = Activation::kNone;  // REQUIRES: none with accumulate
  RowPrefetch* prefetch = nullptr;     // what to ask for meanwhile
};

// Values of k that are summed in registers before they are added to c.
// `across`: rows of a are adjacent in memory (a_col is not 1); 16 of them
// share a cache line, and each k is a line of its own.
constexpr int64_t MatMulBlockK(bool across) { return across ? 256 : 1024; }

// Rows [row_begin, row_end) of c. The bits do not depend on the split.
void MatMul(const MatMulArgs& args, int64_t row_begin, int64_t row_end);

// Rows that a range should be a multiple of, for ParallelFor's grain.
int64_t MatMulRowGrain();

// y[cols,rows] = x[rows,cols] transposed, both dense; for a transposed b.
void Transpose(const float* x, float* y, int64_t rows, int64_t cols);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_MATMUL_H_
