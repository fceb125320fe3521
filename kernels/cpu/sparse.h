// SPDX-License-Identifier: Apache-2.0
// Products with a batch x of rows of bytes, most of which are zero.
//
// x is i32[rows,width] in groups of kSparseRows rows, the last one shorter: at
// the start of a group's memory a header of kSparseHeader words, of which the
// first is the number of words behind it and the second alpha as an f32; then
// a segment for each three columns, from a multiple of 3 on, in which a row of
// the group is not zero: column << 8 | count, then a word for each such row in
// order, row << 24 | its three bytes, the first one lowest. A byte stands for
// the value alpha * byte. Memory behind that is never read.
#ifndef ONESTEP_KERNELS_CPU_SPARSE_H_
#define ONESTEP_KERNELS_CPU_SPARSE_H_

#include <cstdint>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/row_prefetch.h"

namespace onestep::cpu {

inline constexpr int64_t kSparseRows = 32;
inline constexpr int64_t kSparseHeader = 16;

// Words of a row of x: a lone row with no zero at all fits, and whole vectors
// may be written behind its last word.
constexpr int64_t SparseWidth(int64_t cols) {
  return kSparseHeader + (cols + 2) / 3 * 2 + 16;
}

// x = alpha * table u8[.,cols][indices[r]], r in [row_begin, row_end).
// REQUIRES: row_begin is a multiple of kSparseRows; indices are inside the
// table; cols < 2^23.
void GatherSparse(const uint8_t* table, const int32_t* indices, float alpha,
                  int32_t* x, int64_t cols, int64_t row_begin, int64_t row_end);

// y[.,n] = act(x w + bias). fp32 throughout.
struct SparseMatMulArgs {
  const int32_t* x;  // [.,SparseWidth(k)]
  const float* w;    // [k,n], leading dimension ldw >= n
  int64_t ldw;
  float* y;  // [.,n], leading dimension ldy >= n
  int64_t ldy;
  int64_t n, k;
  const float* bias = nullptr;  // [n] or null
  Activation act = Activation::kNone;
  RowPrefetch* prefetch = nullptr;  // what to ask for meanwhile
};

// Rows [row_begin, row_end) of y. Sums run over the columns of x in order, so
// that no split of rows or columns changes the bits. Where w is not finite,
// zeros next to a nonzero may count: they give NaN, as in the dense product.
// REQUIRES: row_begin is a multiple of kSparseRows.
void SparseMatMul(const SparseMatMulArgs& args, int64_t row_begin,
                  int64_t row_end);

// dw[k,n] += x^T dz. fp32 throughout.
struct SparseOuterArgs {
  const int32_t* x;  // [rows,SparseWidth(k)]
  const float* dz;   // [rows,n], leading dimension lddz >= n
  int64_t lddz;
  float* dw;  // [k,n], leading dimension lddw >= n
  int64_t lddw;
  int64_t rows, n, k;
  RowPrefetch* prefetch = nullptr;  // what to ask for meanwhile
};

// Sums run over the rows in order, so that no split of the columns changes the
// bits. Where dz is not finite, as above.
void SparseOuter(const SparseOuterArgs& args);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_SPARSE_H_
