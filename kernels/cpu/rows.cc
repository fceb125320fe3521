// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/rows.h"

#include <algorithm>
#include <cstring>

#include "hwy/cache_control.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

// The number of rows to prefetch ahead. The table is larger than the caches,
// and the conversion of one row hides only a part of the next row's misses.
// Measured on Zen 5 with 784 columns of a 37 MB table: saves 7 us in a step of
// 32 rows.
constexpr int64_t kRowsAhead = 4;
constexpr int64_t kCacheLine = 64;

HWY_INLINE void PrefetchRow(const uint8_t* row, int64_t bytes) {
  for (int64_t c = 0; c < bytes; c += kCacheLine) hwy::Prefetch(row + c);
  hwy::Prefetch(row + bytes - 1);
}

void GatherConvert(const uint8_t* table, const int32_t* indices, float alpha,
                   float* y, int64_t cols, int64_t begin, int64_t end) {
  const V scale = hn::Set(D(), alpha);
  for (int64_t r = begin; r < std::min(begin + kRowsAhead, end); ++r) {
    PrefetchRow(table + indices[r] * cols, cols);
  }
  for (int64_t r = begin; r < end; ++r) {
    if (r + kRowsAhead < end) {
      PrefetchRow(table + indices[r + kRowsAhead] * cols, cols);
    }
    const uint8_t* x = table + indices[r] * cols;
    float* row = y + r * cols;
    int64_t c = 0;
    for (; c + kLanes <= cols; c += kLanes) {
      hn::StoreU(hn::Mul(scale, LoadU8(x + c)), D(), row + c);
    }
    for (; c < cols; ++c) row[c] = alpha * static_cast<float>(x[c]);
  }
}

// Sums kVecs vectors of columns of x, in registers, and writes them to y.
template <int kVecs, class Lanes>
HWY_INLINE void ReduceColumns(const float* x, float* y, bool accumulate,
                              int64_t rows, int64_t cols, Lanes lanes) {
  V sum[kVecs];
  HWY_UNROLL(4)
  for (int v = 0; v < kVecs; ++v) sum[v] = hn::Zero(D());
  for (int64_t r = 0; r < rows; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVecs; ++v) {
      sum[v] = hn::Add(sum[v], lanes.Load(x + r * cols + v * kLanes));
    }
  }
  HWY_UNROLL(4)
  for (int v = 0; v < kVecs; ++v) {
    float* yv = y + v * kLanes;
    if (accumulate) sum[v] = hn::Add(lanes.Load(yv), sum[v]);
    lanes.Store(sum[v], yv);
  }
}

void ReduceRows(const float* x, float* y, bool accumulate, int64_t rows,
                int64_t cols, int64_t col_begin, int64_t col_end) {
  int64_t c = col_begin;
  for (; c + 4 * kLanes <= col_end; c += 4 * kLanes) {
    ReduceColumns<4>(x + c, y + c, accumulate, rows, cols, Full());
  }
  for (; c + kLanes <= col_end; c += kLanes) {
    ReduceColumns<1>(x + c, y + c, accumulate, rows, cols, Full());
  }
  if (c == col_end) return;
  ReduceColumns<1>(x + c, y + c, accumulate, rows, cols, Part(col_end - c));
}

void ScatterAdd(const int32_t* indices, const float* x, float* table,
                int64_t rows, int64_t cols, int64_t col_begin,
                int64_t col_end) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* const from = x + r * cols + col_begin;
    float* const to = table + indices[r] * cols + col_begin;
    ForVectors(col_end - col_begin, [=](int64_t i, auto lanes) HWY_ATTR {
      lanes.Store(hn::Add(lanes.Load(to + i), lanes.Load(from + i)), to + i);
    });
  }
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onestep::cpu {

HWY_EXPORT(GatherConvert);
HWY_EXPORT(ReduceRows);
HWY_EXPORT(ScatterAdd);

void GatherRows(const void* table, const int32_t* indices, void* y,
                int64_t row_bytes, int64_t begin, int64_t end) {
  const char* from = static_cast<const char*>(table);
  char* to = static_cast<char*>(y);
  for (int64_t r = begin; r < end; ++r) {
    std::memcpy(to + r * row_bytes, from + indices[r] * row_bytes,
                static_cast<size_t>(row_bytes));
  }
}

void ScatterAdd(const int32_t* indices, const float* x, float* table,
                int64_t rows, int64_t cols, int64_t col_begin,
                int64_t col_end) {
  HWY_DYNAMIC_DISPATCH(ScatterAdd)
  (indices, x, table, rows, cols, col_begin, col_end);
}

void CopyRows(const void* x, int64_t x_row_bytes, void* y, int64_t row_bytes,
              int64_t begin, int64_t end) {
  const char* from = static_cast<const char*>(x) + begin * x_row_bytes;
  char* to = static_cast<char*>(y) + begin * row_bytes;
  if (row_bytes == x_row_bytes) {
    std::memcpy(to, from, static_cast<size_t>((end - begin) * row_bytes));
    return;
  }
  for (int64_t r = begin; r < end; ++r) {
    std::memcpy(to, from, static_cast<size_t>(row_bytes));
    from += x_row_bytes;
    to += row_bytes;
  }
}

void GatherConvert(const uint8_t* table, const int32_t* indices, float alpha,
                   float* y, int64_t cols, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(GatherConvert)
  (table, indices, alpha, y, cols, begin, end);
}

void ReduceRows(const float* x, float* y, bool accumulate, int64_t rows,
                int64_t cols, int64_t col_begin, int64_t col_end) {
  HWY_DYNAMIC_DISPATCH(ReduceRows)
  (x, y, accumulate, rows, cols, col_begin, col_end);
}

void BroadcastRows(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) std::copy_n(x, cols, y + r * cols);
}

void OneHot(const int32_t* labels, float* y, int64_t rows, int64_t classes) {
  std::fill_n(y, rows * classes, 0.0f);
  for (int64_t r = 0; r < rows; ++r) y[r * classes + labels[r]] = 1.0f;
}

}  // namespace onestep::cpu
#endif  // HWY_ONCE
