// SPDX-License-Identifier: Apache-2.0
// Loops over rows of a matrix or table.
#ifndef ONESTEP_KERNELS_CPU_ROWS_H_
#define ONESTEP_KERNELS_CPU_ROWS_H_

#include <cstdint>

namespace onestep::cpu {

// y[r] = table[indices[r]], rows of `row_bytes`, for r in [begin, end).
// REQUIRES: indices are inside the table.
void GatherRows(const void* table, const int32_t* indices, void* y,
                int64_t row_bytes, int64_t begin, int64_t end);

// table[indices[r], c] += x[r, c] for r in [0, rows) in order and c in
// [col_begin, col_end); both have `cols` columns.
void ScatterAdd(const int32_t* indices, const float* x, float* table,
                int64_t rows, int64_t cols, int64_t col_begin, int64_t col_end);

// y[r] = the first `row_bytes` of row r of x, whose rows have `x_row_bytes`,
// for r in [begin, end).
void CopyRows(const void* x, int64_t x_row_bytes, void* y, int64_t row_bytes,
              int64_t begin, int64_t end);

// y f32[.,cols] = alpha * table u8[.,cols][indices[r]], r in [begin, end).
void GatherConvert(const uint8_t* table, const int32_t* indices, float alpha,
                   float* y, int64_t cols, int64_t begin, int64_t end);

// y[c] = sum over r of x[r,c], c in [col_begin, col_end); rows in order.
// `accumulate`: y[c] += sum.
void ReduceRows(const float* x, float* y, bool accumulate, int64_t rows,
                int64_t cols, int64_t col_begin, int64_t col_end);

// y[r,c] = x[c].
void BroadcastRows(const float* x, float* y, int64_t rows, int64_t cols);

// y f32[rows,classes] = one-hot of labels.
void OneHot(const int32_t* labels, float* y, int64_t rows, int64_t classes);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_ROWS_H_
