// SPDX-License-Identifier: Apache-2.0
// Loops over the rows of a matrix or a table, all row-major and dense.
// REQUIRES: every index is a row of the table.
#ifndef ONESTEP_KERNELS_CPU_ROWS_H_
#define ONESTEP_KERNELS_CPU_ROWS_H_

#include <cstdint>

namespace onestep::cpu {

// y[r] = table[indices[r]] for r in [begin, end); a row has `row_bytes` bytes.
void GatherRows(const void* table, const int32_t* indices, void* y,
                int64_t row_bytes, int64_t begin, int64_t end);

// table[indices[r], c] += x[r, c] for r in [0, rows), in order, and c in
// [col_begin, col_end). Both tensors have `cols` columns.
void ScatterAdd(const int32_t* indices, const float* x, float* table,
                int64_t rows, int64_t cols, int64_t col_begin, int64_t col_end);

// y[r] = the first `row_bytes` bytes of row r of x, for r in [begin, end). Rows
// of x are `x_row_bytes` long.
void CopyRows(const void* x, int64_t x_row_bytes, void* y, int64_t row_bytes,
              int64_t begin, int64_t end);

// y[r,c] = alpha * table[indices[r], c] for r in [begin, end). The table is
// u8[.,cols], y is f32[.,cols].
void GatherConvert(const uint8_t* table, const int32_t* indices, float alpha,
                   float* y, int64_t cols, int64_t begin, int64_t end);

// y[c] = the sum over r of x[r,c], in the order of the rows, for c in
// [col_begin, col_end). With `accumulate` the sum is added to y[c].
void ReduceRows(const float* x, float* y, bool accumulate, int64_t rows,
                int64_t cols, int64_t col_begin, int64_t col_end);

// y[r,c] = x[c]; y is [rows,cols].
void BroadcastRows(const float* x, float* y, int64_t rows, int64_t cols);

// y[r,c] = 1 where c == labels[r], else 0; y is [rows,classes].
// REQUIRES: 0 <= labels[r] < classes.
void OneHot(const int32_t* labels, float* y, int64_t rows, int64_t classes);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_ROWS_H_
