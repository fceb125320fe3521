// SPDX-License-Identifier: Apache-2.0
// Matrix products with a batch x of rows of bytes, most of which are zero.
//
// x is i32[rows,width], stored in groups of kSparseRows rows (the last group
// may have fewer). A group starts with a header of kSparseHeader words: word 0
// is the number of words that follow the header, word 1 is alpha as an f32.
// Then follow segments. Columns are taken in triples that start at a multiple
// of 3, and each triple in which any row of the group is nonzero has one
// segment: the word column << 8 | count, then `count` words, one per nonzero
// row in order: row << 24 | the row's three bytes, the first column in the
// lowest byte. A byte represents the value alpha * byte. Memory after the last
// segment is never read.
#ifndef ONESTEP_KERNELS_CPU_SPARSE_H_
#define ONESTEP_KERNELS_CPU_SPARSE_H_

#include <cstdint>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/row_prefetch.h"

namespace onestep::cpu {

inline constexpr int64_t kSparseRows = 32;
inline constexpr int64_t kSparseHeader = 16;

// The number of words per row of x. A group of a single row without zeros fits,
// and the writer may store a full vector past the last word.
constexpr int64_t SparseWidth(int64_t cols) {
  return kSparseHeader + (cols + 2) / 3 * 2 + 16;
}

// Packs x[r] = alpha * table[indices[r]] for r in [row_begin, row_end); the
// table is u8[.,cols].
// REQUIRES: row_begin is a multiple of kSparseRows; every index is a row of the
// table; cols < 2^23.
void GatherSparse(const uint8_t* table, const int32_t* indices, float alpha,
                  int32_t* x, int64_t cols, int64_t row_begin, int64_t row_end);

// y[.,n] = act(x w + bias). All values and sums are fp32.
struct SparseMatMulArgs {
  const int32_t* x;  // [.,SparseWidth(k)]
  const float* w;    // [k,n], leading dimension ldw >= n
  int64_t ldw;
  float* y;  // [.,n], leading dimension ldy >= n
  int64_t ldy;
  int64_t n, k;
  const float* bias = nullptr;  // [n] or null
  Activation act = Activation::kNone;
  RowPrefetch* prefetch = nullptr;  // prefetched during the loop; or null
};

// Computes rows [row_begin, row_end) of y. Sums run over the columns of x in
// order, so that every split of rows or columns is bit-identical. If w has a
// value that is not finite, a zero of x in the same triple as a nonzero
// multiplies it and gives NaN, as in the dense product.
// REQUIRES: row_begin is a multiple of kSparseRows.
void SparseMatMul(const SparseMatMulArgs& args, int64_t row_begin,
                  int64_t row_end);

// dw[k,n] += x^T dz. All values and sums are fp32.
struct SparseOuterArgs {
  const int32_t* x;  // [rows,SparseWidth(k)]
  const float* dz;   // [rows,n], leading dimension lddz >= n
  int64_t lddz;
  float* dw;  // [k,n], leading dimension lddw >= n
  int64_t lddw;
  int64_t rows, n, k;
  RowPrefetch* prefetch = nullptr;  // prefetched during the loop; or null
};

// Sums run over the rows in order, so that every split of the columns is
// bit-identical. Values of dz that are not finite act as those of w above.
void SparseOuter(const SparseOuterArgs& args);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_SPARSE_H_
