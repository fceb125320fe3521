// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/matmul.h"
#include "kernels/cpu/models/interleaved.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/models/interleaved_matmul.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

// The number of rows of a register tile, by its width in vectors. The sums, a
// row of b and a vector of a fit the registers, and the FMAs take longer than
// the loads.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kMaxVecs = 4;
constexpr int kTileRows[] = {0, 8, 8, 4, 4};
#else
constexpr int kMaxVecs = 2;
constexpr int kTileRows[] = {0, 8, 4};
#endif

// A vector holds consecutive models of one column or, where the models are few,
// all models of several columns. A panel has at most kMaxVecs vectors and one
// block of k. Strides are in floats.
struct Panel {
  int64_t k, a_row, a_col, b_row, b_vec, c_row, c_vec;
  const float* b;
  const float* bias;  // or null
  bool add, relu;
  int64_t models;       // number of models in a vector of a
  int64_t lanes, last;  // lanes in use in each vector, and in the last one
  const int32_t* model_of_lane;
};

// Applies the epilogue to vector v of a tile and stores it to c.
template <int kRows, int kVecs, class Lanes>
HWY_INLINE void FinishVector(const V (&sum)[kRows][kVecs], int v, Lanes lanes,
                             const Panel& panel, float* HWY_RESTRICT c) {
  const int64_t row = panel.c_row, at = v * panel.c_vec;
  c += at;
  V y[kRows];
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) y[r] = sum[r][v];
  if (panel.add) {
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      y[r] = hn::Add(lanes.Load(c + r * row), y[r]);
    }
  }
  if (panel.bias != nullptr) {
    const V bias = lanes.Load(panel.bias + at);
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) y[r] = hn::Add(y[r], bias);
  }
  if (panel.relu) {
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) y[r] = Relu(y[r]);
  }
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) lanes.Store(y[r], c + r * row);
}

// c (+)= a b for a tile of kRows rows and kVecs vectors. With kShare several
// columns share a vector.
template <int kRows, int kVecs, bool kShare, class Lanes>
HWY_NOINLINE void Tile(const float* HWY_RESTRICT a, const Panel& panel,
                       Lanes lanes, float* HWY_RESTRICT c) {
  const D d;
  const Part last(panel.last), models(panel.models);
  decltype(hn::SetTableIndices(d, panel.model_of_lane)) model_of_lane;
  if constexpr (kShare) {
    model_of_lane = hn::SetTableIndices(d, panel.model_of_lane);
  }
  V sum[kRows][kVecs];
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVecs; ++v) sum[r][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT b = panel.b;
  const int64_t a_row = panel.a_row, b_vec = panel.b_vec;
  // Only every fourth row has a pointer: kRows pointers do not fit the general
  // registers.
  const float* rows[(kRows + 3) / 4];
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; r += 4) rows[r / 4] = a + r * a_row;
  for (int64_t p = panel.k; p > 0; --p) {
    V row[kVecs];
    HWY_UNROLL(4)
    for (int v = 0; v < kVecs - 1; ++v) row[v] = lanes.Load(b + v * b_vec);
    row[kVecs - 1] = last.Load(b + (kVecs - 1) * b_vec);
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      const float* const from = rows[r / 4] + r % 4 * a_row;
      V x;
      if constexpr (kShare) {
        x = hn::TableLookupLanes(models.Load(from), model_of_lane);
      } else {
        x = lanes.Load(from);
      }
      HWY_UNROLL(4)
      for (int v = 0; v < kVecs; ++v) {
        sum[r][v] = hn::MulAdd(x, row[v], sum[r][v]);
      }
    }
    b += panel.b_row;
    HWY_UNROLL(4)
    for (const float*& row : rows) row += panel.a_col;
  }
  HWY_UNROLL(4)
  for (int v = 0; v < kVecs - 1; ++v) FinishVector(sum, v, lanes, panel, c);
  if constexpr (kShare) {
    FinishVector(sum, kVecs - 1, last, panel, c);
  } else {
    FinishVector(sum, kVecs - 1, lanes, panel, c);
  }
}

// Computes `rows` rows of a panel. The remainder is split into tiles of ever
// smaller powers of two.
template <int kRows, int kVecs, bool kShare, class Lanes>
HWY_INLINE void Rows(const float* a, const Panel& panel, Lanes lanes, float* c,
                     int64_t rows) {
  for (; rows >= kRows; rows -= kRows) {
    Tile<kRows, kVecs, kShare>(a, panel, lanes, c);
    a += kRows * panel.a_row;
    c += kRows * panel.c_row;
  }
  if constexpr (kRows > 1) {
    if (rows > 0) Rows<kRows / 2, kVecs, kShare>(a, panel, lanes, c, rows);
  }
}

// Computes `rows` rows of a panel of `vecs` <= kVecs vectors.
template <int kVecs, bool kShare, class Lanes>
HWY_INLINE void PanelRows(int64_t vecs, const float* a, const Panel& panel,
                          Lanes lanes, float* c, int64_t rows) {
  if (vecs == kVecs) {
    Rows<kTileRows[kVecs], kVecs, kShare>(a, panel, lanes, c, rows);
  } else if constexpr (kVecs > 1) {
    PanelRows<kVecs - 1, kShare>(vecs, a, panel, lanes, c, rows);
  }
}

// Computes all columns, in panels of nearly equal width. The last of the `vecs`
// vectors has `last` lanes in use.
template <bool kShare, class Lanes>
HWY_INLINE void Columns(const float* a, Panel panel, Lanes lanes, float* c,
                        int64_t rows, int64_t vecs, int64_t last) {
  int64_t panels = (vecs + kMaxVecs - 1) / kMaxVecs;
  for (int64_t v = 0; v < vecs; --panels) {
    const int64_t width = (vecs - v + panels - 1) / panels;
    v += width;
    panel.last = v == vecs ? last : panel.lanes;
    PanelRows<kMaxVecs, kShare>(width, a, panel, lanes, c, rows);
    panel.b += width * panel.b_vec;
    c += width * panel.c_vec;
    if (panel.bias != nullptr) panel.bias += width * panel.c_vec;
  }
}

bool ModelsShareVector(int64_t models) { return 2 * models <= kLanes; }

// Computes one block of k. The caller sets all fields of `panel` except those
// of the lanes and vectors.
void Block(const InterleavedMatMulArgs& args, const float* a, Panel panel,
           float* c, int64_t rows) {
  const int64_t models = args.models;
  if (ModelsShareVector(models)) {
    const int64_t share = kLanes / models;
    const int64_t vecs = (args.n + share - 1) / share;
    panel.b_vec = panel.c_vec = panel.lanes = share * models;
    panel.models = models;
    HWY_ALIGN int32_t model_of_lane[kLanes];
    for (int32_t i = 0, k = 0; i < kLanes; ++i) {
      model_of_lane[i] = k;
      k = k + 1 == models ? 0 : k + 1;
    }
    panel.model_of_lane = model_of_lane;
    Columns<true>(a, panel, Part(panel.lanes), c, rows, vecs,
                  (args.n - (vecs - 1) * share) * models);
    return;
  }
  panel.b_vec = args.b_col * models;
  panel.c_vec = models;
  ForVectors(models, [&](int64_t k, auto lanes) HWY_ATTR {
    Panel part = panel;
    part.b += k;
    if (part.bias != nullptr) part.bias += k;
    part.lanes = part.models = std::min(kLanes, models - k);
    Columns<false>(a + k, part, lanes, c + k, rows, args.n, part.lanes);
  });
}

void InterleavedMatMul(const InterleavedMatMulArgs& args, int64_t begin,
                       int64_t end) {
  const int64_t models = args.models;
  const int64_t block = MatMulBlockK(args.a_col != 1);
  Panel panel = {};
  panel.a_row = args.a_row * models;
  panel.a_col = args.a_col * models;
  panel.b_row = args.b_row * models;
  panel.c_row = args.n * models;
  float* const c = args.c + begin * panel.c_row;
  for (int64_t p = 0; p < args.k; p += block) {
    const bool done = p + block >= args.k;
    panel.k = std::min(block, args.k - p);
    panel.b = args.b + p * panel.b_row;
    panel.bias = done ? args.bias : nullptr;
    panel.add = args.accumulate || p > 0;
    panel.relu = done && args.act == Activation::kRelu;
    Block(args, args.a + begin * panel.a_row + p * panel.a_col, panel, c,
          end - begin);
  }
  if (args.act == Activation::kNone || args.act == Activation::kRelu) return;
  // The other activations need too many registers to be part of a tile.
  ActivationForward(args.act, c, c, (end - begin) * panel.c_row);
}

void InterleavedTranspose(const float* x, float* y, int64_t rows, int64_t cols,
                          int64_t models) {
  ForVectors(models, [=](int64_t k, auto lanes) HWY_ATTR {
    for (int64_t c = 0; c < cols; ++c) {
      for (int64_t r = 0; r < rows; ++r) {
        lanes.Store(lanes.Load(x + (r * cols + c) * models + k),
                    y + (c * rows + r) * models + k);
      }
    }
  });
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onestep::cpu {

HWY_EXPORT(InterleavedMatMul);
HWY_EXPORT(InterleavedTranspose);
HWY_EXPORT(ModelsShareVector);

void InterleavedMatMul(const InterleavedMatMulArgs& args, int64_t row_begin,
                       int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(InterleavedMatMul)(args, row_begin, row_end);
}

bool ModelsShareVector(int64_t models) {
  return HWY_DYNAMIC_DISPATCH(ModelsShareVector)(models);
}

void InterleavedTranspose(const float* x, float* y, int64_t rows, int64_t cols,
                          int64_t models) {
  HWY_DYNAMIC_DISPATCH(InterleavedTranspose)(x, y, rows, cols, models);
}

}  // namespace onestep::cpu
#endif  // HWY_ONCE
