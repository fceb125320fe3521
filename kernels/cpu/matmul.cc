// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/matmul.h"

#include <algorithm>
#include <bit>

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/matmul.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

// The number of rows of a register tile, by its width in vectors. The
// accumulators, one row of b and one broadcast value must fit the registers.
// Chosen on Zen 5: with AVX-512 a 16x1 tile is 5 % faster than 8x1; with AVX2 a
// 6x2 tile is the fastest.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kMaxVecs = 4;
constexpr int kTileRows[] = {0, 16, 8, 8, 6};
#else
constexpr int kMaxVecs = 2;
constexpr int kTileRows[] = {0, 8, 6};
#endif

// The loop order within a block of k. Measured on Zen 5 with the matmuls of
// 784-128-10 at batch 32 and 4096, and with those of half the hidden units.
struct Walk {
  int64_t rows;  // rows that visit all columns of b before the next rows start
  int64_t vecs;  // maximal width of a column panel, in vectors
};

template <bool kAcross>
HWY_INLINE Walk WalkOf(int64_t rows, int64_t k) {
  // Full tiles of 8x3 are as fast as 6x4, and 8 divides the usual batch sizes.
  // Fewer than 8 rows need wider panels to have enough independent sums.
  const int64_t few_vecs = std::min(kMaxVecs, 3);
  if (!kAcross) return {64, rows < 8 ? kMaxVecs : few_vecs};
  // For a short k (a small batch in a weight gradient) wide tiles amortise the
  // loads and stores of c, and the L1 cache holds more rows of a. But 8 rows
  // would be split into tiles of 6 and 2 rows.
  if (k > 128 || rows <= 8) return {16, few_vecs};
  return {k <= 40 ? 96 : 48, kMaxVecs};
}

// A column panel of c, at most kMaxVecs vectors wide, for one block of k.
struct Panel {
  const float* b;
  int64_t ldb, k;
  const float* bias;  // or null
  bool add, relu;
  int64_t last;  // number of columns in the last vector
};

// Applies the epilogue to vector v of a tile and stores it to c. All rows of c
// are loaded before the first store, because rows narrower than a vector share
// cache lines and a load that follows a masked store to its line stalls.
template <int kRows, int kVecs, class Lanes>
HWY_INLINE void FinishColumn(const V (&sum)[kRows][kVecs], int v, Lanes lanes,
                             const Panel& panel, float* HWY_RESTRICT c,
                             int64_t ldc) {
  const int64_t col = v * kLanes;
  c += col;
  V y[kRows];
  HWY_UNROLL(16)
  for (int r = 0; r < kRows; ++r) y[r] = sum[r][v];
  if (panel.add) {
    HWY_UNROLL(16)
    for (int r = 0; r < kRows; ++r) {
      y[r] = hn::Add(lanes.Load(c + r * ldc), y[r]);
    }
  }
  if (panel.bias != nullptr) {
    const V bias = lanes.Load(panel.bias + col);
    HWY_UNROLL(16)
    for (int r = 0; r < kRows; ++r) y[r] = hn::Add(y[r], bias);
  }
  if (panel.relu) {
    HWY_UNROLL(16)
    for (int r = 0; r < kRows; ++r) y[r] = Relu(y[r]);
  }
  HWY_UNROLL(16)
  for (int r = 0; r < kRows; ++r) lanes.Store(y[r], c + r * ldc);
}

// c (+)= a b for a tile of kRows rows and kVecs vectors. Tiles of every height
// sum an element in the same order, so that all splits of the rows are
// bit-identical.
template <int kRows, int kVecs, bool kAcross>
HWY_NOINLINE void Tile(const float* HWY_RESTRICT a, int64_t lda,
                       const Panel& panel, float* HWY_RESTRICT c, int64_t ldc) {
  const D d;
  const Part last(panel.last);
  V sum[kRows][kVecs];
  HWY_UNROLL(16)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVecs; ++v) sum[r][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT b = panel.b;
  const int64_t ldb = panel.ldb;
  // Only every fourth row has a pointer: kRows pointers do not fit the general
  // registers.
  const float* rows[(kRows + 3) / 4];
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; r += 4) rows[r / 4] = a + r * (kAcross ? 1 : lda);
  for (int64_t p = panel.k; p > 0; --p) {
    V row[kVecs];
    HWY_UNROLL(4)
    for (int v = 0; v < kVecs - 1; ++v) row[v] = hn::LoadU(d, b + v * kLanes);
    row[kVecs - 1] = last.Load(b + (kVecs - 1) * kLanes);
    HWY_UNROLL(16)
    for (int r = 0; r < kRows; ++r) {
      const V x = hn::Set(d, rows[r / 4][r % 4 * (kAcross ? 1 : lda)]);
      HWY_UNROLL(4)
      for (int v = 0; v < kVecs; ++v) {
        sum[r][v] = hn::MulAdd(x, row[v], sum[r][v]);
      }
    }
    b += ldb;
    HWY_UNROLL(4)
    for (const float*& row : rows) row += kAcross ? lda : 1;
  }
  HWY_UNROLL(4)
  for (int v = 0; v < kVecs - 1; ++v) {
    FinishColumn(sum, v, Full(), panel, c, ldc);
  }
  if (panel.last == kLanes) {
    FinishColumn(sum, kVecs - 1, Full(), panel, c, ldc);
  } else {
    FinishColumn(sum, kVecs - 1, last, panel, c, ldc);
  }
}

// Computes rows [i, end) of a panel. The remainder is split into tiles of ever
// smaller powers of two.
template <int kRows, int kVecs, bool kAcross>
HWY_INLINE void Rows(const MatMulArgs& args, const float* a, const Panel& panel,
                     float* c, int64_t i, int64_t end) {
  const int64_t lda = kAcross ? args.a_col : args.a_row;
  for (; i + kRows <= end; i += kRows) {
    Tile<kRows, kVecs, kAcross>(a + i * args.a_row, lda, panel,
                                c + i * args.ldc, args.ldc);
    if (args.prefetch != nullptr) args.prefetch->Next();
  }
  if constexpr (kRows > 1) {
    constexpr int kLower = std::bit_floor(static_cast<unsigned>(kRows - 1));
    if (i < end) Rows<kLower, kVecs, kAcross>(args, a, panel, c, i, end);
  }
}

// Computes rows [begin, end) of a panel of `vecs` <= kVecs vectors.
template <int kVecs, bool kAcross>
HWY_INLINE void PanelRows(int64_t vecs, const MatMulArgs& args, const float* a,
                          const Panel& panel, float* c, int64_t begin,
                          int64_t end) {
  if (vecs == kVecs) {
    Rows<kTileRows[kVecs], kVecs, kAcross>(args, a, panel, c, begin, end);
  } else if constexpr (kVecs > 1) {
    PanelRows<kVecs - 1, kAcross>(vecs, args, a, panel, c, begin, end);
  }
}

// Computes all columns of rows [begin, end), in panels of nearly equal width.
template <bool kAcross>
HWY_INLINE void Columns(const MatMulArgs& args, const float* a, Panel panel,
                        int64_t max_vecs, int64_t begin, int64_t end) {
  const int64_t vecs = (args.n + kLanes - 1) / kLanes;
  int64_t panels = (vecs + max_vecs - 1) / max_vecs;
  float* c = args.c;
  for (int64_t v = 0; v < vecs; --panels) {
    const int64_t width = (vecs - v + panels - 1) / panels;
    panel.last = std::min(args.n - (v + width - 1) * kLanes, kLanes);
    PanelRows<kMaxVecs, kAcross>(width, args, a, panel, c, begin, end);
    v += width;
    panel.b += width * kLanes;
    c += width * kLanes;
    if (panel.bias != nullptr) panel.bias += width * kLanes;
  }
}

template <bool kAcross>
HWY_INLINE void Blocks(const MatMulArgs& args, int64_t begin, int64_t end) {
  int64_t p = 0;
  do {  // also once for k = 0, to write the epilogue
    const int64_t k = std::min(MatMulBlockK(kAcross), args.k - p);
    const bool done = p + k >= args.k;
    const Panel panel = {.b = args.b + p * args.ldb,
                         .ldb = args.ldb,
                         .k = k,
                         .bias = done ? args.bias : nullptr,
                         .add = args.accumulate || p > 0,
                         .relu = done && args.act == Activation::kRelu,
                         .last = 0};
    const Walk walk = WalkOf<kAcross>(end - begin, k);
    for (int64_t i = begin; i < end; i += walk.rows) {
      const int64_t stop = std::min(end, i + walk.rows);
      Columns<kAcross>(args, args.a + p * args.a_col, panel, walk.vecs, i,
                       stop);
      if (!done || args.act == Activation::kNone ||
          args.act == Activation::kRelu)
        continue;
      // The other activations need too many registers to be part of a tile.
      for (int64_t r = i; r < stop; ++r) {
        float* y = args.c + r * args.ldc;
        ActivationForward(args.act, y, y, args.n);
      }
    }
    p += k;
  } while (p < args.k);
}

void MatMul(const MatMulArgs& args, int64_t begin, int64_t end) {
  if (args.prefetch != nullptr) {  // Next is called about once per 6x4 tile
    args.prefetch->SpreadOver((end - begin) * args.n / (6 * 4 * kLanes));
  }
  if (args.a_col == 1) {
    Blocks<false>(args, begin, end);
  } else {
    Blocks<true>(args, begin, end);
  }
}

int64_t MatMulRowGrain() { return kTileRows[std::min(kMaxVecs, 3)]; }

// y[4,4] = x[4,4]^T, with row strides ldx and ldy.
HWY_INLINE void Transpose4(const float* HWY_RESTRICT x, int64_t ldx,
                           float* HWY_RESTRICT y, int64_t ldy) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) y[j * ldy + i] = x[i * ldx + j];
  }
#else
  const hn::FixedTag<float, 4> d;
  const auto x0 = hn::LoadU(d, x), x1 = hn::LoadU(d, x + ldx);
  const auto x2 = hn::LoadU(d, x + 2 * ldx), x3 = hn::LoadU(d, x + 3 * ldx);
  const auto lo01 = hn::InterleaveLower(d, x0, x1);
  const auto lo23 = hn::InterleaveLower(d, x2, x3);
  const auto hi01 = hn::InterleaveUpper(d, x0, x1);
  const auto hi23 = hn::InterleaveUpper(d, x2, x3);
  hn::StoreU(hn::ConcatLowerLower(d, lo23, lo01), d, y);
  hn::StoreU(hn::ConcatUpperUpper(d, lo23, lo01), d, y + ldy);
  hn::StoreU(hn::ConcatLowerLower(d, hi23, hi01), d, y + 2 * ldy);
  hn::StoreU(hn::ConcatUpperUpper(d, hi23, hi01), d, y + 3 * ldy);
#endif
}

void Transpose(const float* x, float* y, int64_t rows, int64_t cols) {
  if (rows < 4 || cols < 4) {
    for (int64_t c = 0; c < cols; ++c) {
      for (int64_t r = 0; r < rows; ++r) y[c * rows + r] = x[r * cols + c];
    }
    return;
  }
  const int64_t wide = rows / kLanes * kLanes;
  for (int64_t next = 0; next < cols; next += 4) {
    const int64_t c = std::min(next, cols - 4);  // the last block may overlap
    for (int64_t r = 0; r < wide; r += kLanes) {
      V v[4];
      LoadColumns(x + r * cols + c, cols, v);
      HWY_UNROLL(4)
      for (int64_t i = 0; i < 4; ++i)
        Full().Store(v[i], y + (c + i) * rows + r);
    }
    for (int64_t i = wide; i < rows; i += 4) {
      const int64_t r = std::min(i, rows - 4);
      Transpose4(x + r * cols + c, cols, y + c * rows + r, rows);
    }
  }
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onestep::cpu {

HWY_EXPORT(MatMul);
HWY_EXPORT(MatMulRowGrain);
HWY_EXPORT(Transpose);

void MatMul(const MatMulArgs& args, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(MatMul)(args, row_begin, row_end);
}

int64_t MatMulRowGrain() { return HWY_DYNAMIC_DISPATCH(MatMulRowGrain)(); }

void Transpose(const float* x, float* y, int64_t rows, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(Transpose)(x, y, rows, cols);
}

}  // namespace onestep::cpu
#endif  // HWY_ONCE
