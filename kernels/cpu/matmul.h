// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_KERNELS_CPU_MATMUL_H_
#define ONESTEP_KERNELS_CPU_MATMUL_H_

#include <cstdint>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/row_prefetch.h"

namespace onestep::cpu {

// c[m,n] = act(a b + bias), or c += a b with `accumulate`. All values and sums
// are fp32.
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
  Activation act = Activation::kNone;  // REQUIRES: kNone with accumulate
  RowPrefetch* prefetch = nullptr;     // prefetched during the loop; or null
};

// The number of products that are summed in registers before the sum is added
// to c. `across` means that a is stored transposed (a_col is not 1): 16 of its
// rows then share a cache line, and each k is in a different line.
constexpr int64_t MatMulBlockK(bool across) { return across ? 256 : 1024; }

// Computes rows [row_begin, row_end) of c; every split is bit-identical.
void MatMul(const MatMulArgs& args, int64_t row_begin, int64_t row_end);

// The multiple of rows that ranges should have; the grain for ParallelFor.
int64_t MatMulRowGrain();

// y[cols,rows] = x[rows,cols]^T, both dense. Callers prepare a transposed b
// with it, because MatMul takes only a row-major b.
void Transpose(const float* x, float* y, int64_t rows, int64_t cols);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_MATMUL_H_
