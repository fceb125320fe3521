// SPDX-License-Identifier: Apache-2.0
// The first layer of the hidden-split step
// (kernels/cuda/hidden_split/hidden_split.h) on a block's shared memory. All
// threads of the block call ForwardHidden and UpdateFirst.
//
// Storage and sums are f32. x stays the bytes it was read as; alpha is applied
// to the sums. kTiles: tiles of 8 hidden units. kParts: the number of bf16
// numbers whose sum stands for one f32, 3 or 1, on tensor cores; 0: fp32 FMAs.
// The order of the sums depends on the sizes only.
//
// At 784 features, batch 32, 8 columns and kParts = 3 the code for sm_90 has 49
// feature tiles of 75 instructions forward and 25 of 171 for the update, over
// four schedulers: ~0.5 and ~0.55 us. No load has a bank conflict.
#ifndef ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_FIRST_LAYER_CUH_
#define ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_FIRST_LAYER_CUH_

#include <cstdint>

#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/device.h"
#include "kernels/cuda/hidden_split/memory.cuh"

namespace onestep::cuda::hidden_split {

// ---- bf16 ------------------------------------------------------------------
ONESTEP_DEVICE float Byte(uint32_t word, int i) {
  return static_cast<float>((word >> (8 * i)) & 0xff);
}

// Splits two floats into bf16 parts. Each part is the remainder after the parts
// before it, rounded; the sum of three parts has the 24 bits of f32. parts[p]
// is the pair (low, high) of part p.
template <int kParts>
ONESTEP_DEVICE void Split(float low, float high, uint32_t parts[kParts]) {
  ONESTEP_UNROLL
  for (int p = 0; p < kParts; ++p) {
    parts[p] = dev::PackBf16(low, high);
    low -= dev::Bf16ToFloat(parts[p]);
    high -= dev::Bf16ToFloat(parts[p] >> 16);
  }
}
// The sum over parts of one element of the accumulators, the small parts first.
template <int kParts>
ONESTEP_DEVICE float Joined(const float sums[kParts][4], int i) {
  float sum = sums[kParts - 1][i];
  ONESTEP_UNROLL
  for (int p = kParts - 2; p >= 0; --p) sum += sums[p][i];
  return sum;
}

// ---- h = act(alpha x w1 + b1) ----------------------------------------------
// Each warp takes every kWarps-th group of 16 features and sums over them for
// up to kChunkRows rows: sums[warp][row][column]. Of the mma, A is [row,
// feature], and lane t of 4 has features 4 t.. 4 t + 3 where the fragment says
// 2 t, 2 t + 1, 2 t + 8, 2 t + 9: for A and B alike, so one word of x is
// enough.
// kHalves: 16 rows each.
template <int kTiles, int kParts, int kHalves>
ONESTEP_DEVICE void SumFeaturesMma(const Layout& layout, const uint8_t* x,
                                   int features, float* sums) {
  constexpr int kColumns = 8 * kTiles;
  constexpr int kStride = kWarps * 16;
  static_assert(kStride % 32 == 0);
  const int g = Lane() / 4, t = Lane() % 4;
  const int first = Warp() * 16;
  const uint8_t* rows[kHalves][2];  // g and g + 8 of each half
  ONESTEP_UNROLL
  for (int i = 0; i < 2 * kHalves; ++i) {
    rows[i / 2][i % 2] = x + (i * 8 + g) * layout.x_stride + 4 * t;
  }
  const int slot = (first & ~31) + first % 32 / 4 + t;
  const float* w1 = At<float>(layout.w1) + slot * 8 + g;
  float acc[kHalves][kTiles][kParts][4] = {};
  for (int k = first; k < features; k += kStride, w1 += kStride * 8) {
    uint32_t a[kHalves][4];
    ONESTEP_UNROLL
    for (int i = 0; i < 2 * kHalves; ++i) {
      const uint32_t word =
          *reinterpret_cast<const uint32_t*>(rows[i / 2][i % 2] + k);
      a[i / 2][i % 2] = dev::BytesToBf16(word, 0);
      a[i / 2][i % 2 + 2] = dev::BytesToBf16(word, 2);
    }
    ONESTEP_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      const float* w = w1 + tile * layout.slots * 8;
      uint32_t low[kParts], high[kParts];
      Split<kParts>(w[0], w[64], low);
      Split<kParts>(w[128], w[192], high);
      ONESTEP_UNROLL
      for (int p = 0; p < kParts; ++p) {
        const uint32_t b[2] = {low[p], high[p]};
        ONESTEP_UNROLL
        for (int m = 0; m < kHalves; ++m) {
          dev::MmaBf16(acc[m][tile][p], a[m], b);
        }
      }
    }
  }
  sums += Warp() * kChunkRows * kColumns;
  ONESTEP_UNROLL
  for (int m = 0; m < kHalves; ++m) {
    ONESTEP_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      ONESTEP_UNROLL
      for (int half = 0; half < 2; ++half) {
        const Float2 pair = {Joined<kParts>(acc[m][tile], 2 * half),
                             Joined<kParts>(acc[m][tile], 2 * half + 1)};
        const int row = m * 16 + half * 8 + g;
        *reinterpret_cast<Float2*>(sums + row * kColumns + tile * 8 + 2 * t) =
            pair;
      }
    }
  }
}

// The same by FMAs; each lane has a row.
template <int kTiles>
ONESTEP_DEVICE void SumFeaturesFma(const Layout& layout, const uint8_t* x,
                                   int rows, int features, float* sums) {
  constexpr int kColumns = 8 * kTiles;
  if (Lane() >= rows) return;
  const Float4* w1 = At<Float4>(layout.w1);
  float acc[kColumns] = {};
  for (int k = Warp() * 16; k < features; k += kWarps * 16) {
    const Word4 words =
        *reinterpret_cast<const Word4*>(x + Lane() * layout.x_stride + k);
    ONESTEP_UNROLL
    for (int i = 0; i < 16; ++i) {
      const float value = Byte(words.v[i / 4], i % 4);
      const int slot = (k & ~31) + i % 4 * 8 + k % 32 / 4 + i / 4;
      ONESTEP_UNROLL
      for (int q = 0; q < kColumns / 4; ++q) {
        const Float4 w = w1[(q / 2 * layout.slots + slot) * 2 + q % 2];
        ONESTEP_UNROLL
        for (int j = 0; j < 4; ++j) {
          acc[4 * q + j] = dev::Fma(value, w.v[j], acc[4 * q + j]);
        }
      }
    }
  }
  Float4* to = reinterpret_cast<Float4*>(sums + (Warp() * kChunkRows + Lane()) *
                                                    kColumns);
  ONESTEP_UNROLL
  for (int q = 0; q < kColumns / 4; ++q) {
    to[q] = {acc[4 * q], acc[4 * q + 1], acc[4 * q + 2], acc[4 * q + 3]};
  }
}

// Writes h[rows, columns] to shared memory, with zeros in the columns that the
// block does not have. Ends with a SyncBlock.
template <int kTiles, int kParts>
ONESTEP_DEVICE void ForwardHidden(const StepArgs& args, const uint8_t* x,
                                  int rows, int columns, float* sums) {
  constexpr int kColumns = 8 * kTiles;
  const Layout& layout = args.layout;
  for (int row0 = 0; row0 < To16(rows); row0 += kChunkRows) {
    const int chunk = Smaller(kChunkRows, To16(rows) - row0);
    const uint8_t* chunk_x = x + row0 * layout.x_stride;
    if constexpr (kParts == 0) {
      SumFeaturesFma<kTiles>(layout, chunk_x, chunk, args.features, sums);
    } else if (chunk > 16) {
      SumFeaturesMma<kTiles, kParts, 2>(layout, chunk_x, args.features, sums);
    } else {
      SumFeaturesMma<kTiles, kParts, 1>(layout, chunk_x, args.features, sums);
    }
    dev::SyncBlock();
    for (int i = Thread(); i < chunk * kColumns; i += kThreads) {
      const int column = i % kColumns;
      float sum = 0;
      ONESTEP_UNROLL
      for (int warp = 0; warp < kWarps; ++warp) {
        sum += sums[warp * kChunkRows * kColumns + i];
      }
      const float z = dev::Fma(args.alpha, sum, At<float>(layout.b1)[column]);
      At<float>(layout.h)[row0 * kColumns + i] =
          column < columns ? Forward</*kOperands=*/false>(args.act, z) : 0.0f;
    }
    dev::SyncBlock();
  }
}

// ---- w1 += alpha x^T e -----------------------------------------------------
// acc += x^T e over 16 rows. `at`: x in row 2 t at feature 4 g of the lane's;
// it has features 4 g.. 4 g + 3, two for each of two mmas. Of those, A is
// [feature, row], and b has e by tile and part.
template <int kTiles, int kParts>
ONESTEP_DEVICE void MultiplyRows(const uint8_t* at, int x_stride,
                                 const uint32_t b[kTiles][kParts][2],
                                 float acc[2][kTiles][kParts][4]) {
  uint32_t words[4];  // of rows 2 t, 2 t + 1, 2 t + 8, 2 t + 9
  ONESTEP_UNROLL
  for (int i = 0; i < 4; ++i) {
    words[i] =
        *reinterpret_cast<const uint32_t*>(at + (i / 2 * 8 + i % 2) * x_stride);
  }
  ONESTEP_UNROLL
  for (int m = 0; m < 2; ++m) {
    uint32_t a[4];
    ONESTEP_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int pair = i / 2 * 2;
      a[i] = dev::BytesToBf16(words[pair], words[pair + 1], 2 * m + i % 2);
    }
    ONESTEP_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      ONESTEP_UNROLL
      for (int p = 0; p < kParts; ++p) {
        dev::MmaBf16(acc[m][tile][p], a, b[tile][p]);
      }
    }
  }
}

// On tensor cores; a warp takes 32 features at a time.
template <int kTiles, int kParts>
ONESTEP_DEVICE void UpdateFirstMma(const StepArgs& args, const uint8_t* x,
                                   int rows) {
  const Layout& layout = args.layout;
  const int g = Lane() / 4, t = Lane() % 4;
  const int padded = To16(rows), pairs = layout.rows / 2;
  for (int row0 = 0; row0 < padded; row0 += 32) {
    const int halves = padded - row0 > 16 ? 2 : 1;
    uint32_t b[2][kTiles][kParts][2] = {};
    ONESTEP_UNROLL
    for (int half = 0; half < 2; ++half) {
      if (half >= halves) break;
      ONESTEP_UNROLL
      for (int p = 0; p < kParts; ++p) {
        ONESTEP_UNROLL
        for (int tile = 0; tile < kTiles; ++tile) {
          const int plane = (p * kTiles + tile) * pairs + row0 / 2 + half * 8;
          const uint32_t* from =
              At<uint32_t>(layout.parts) + (plane + t) * 8 + g;
          b[half][tile][p][0] = from[0];
          b[half][tile][p][1] = from[32];
        }
      }
    }
    for (int slot0 = Warp() * 32; slot0 < layout.slots; slot0 += kWarps * 32) {
      float acc[2][kTiles][kParts][4] = {};
      ONESTEP_UNROLL
      for (int half = 0; half < 2; ++half) {
        if (half >= halves) break;
        MultiplyRows<kTiles, kParts>(
            x + (row0 + half * 16 + 2 * t) * layout.x_stride + slot0 + 4 * g,
            layout.x_stride, b[half], acc);
      }
      ONESTEP_UNROLL
      for (int tile = 0; tile < kTiles; ++tile) {
        ONESTEP_UNROLL
        for (int j = 0; j < 4; ++j) {  // feature 4 g + j
          const int slot = tile * layout.slots + slot0 + j * 8 + g;
          Float2* w = At<Float2>(layout.w1) + slot * 4 + t;
          Float2 pair = *w;
          ONESTEP_UNROLL
          for (int i = 0; i < 2; ++i) {
            const float sum = Joined<kParts>(acc[j / 2][tile], j % 2 * 2 + i);
            pair.v[i] = dev::Fma(args.alpha, sum, pair.v[i]);
          }
          *w = pair;
        }
      }
    }
  }
}

// By FMAs; a thread has 4 features and kWide columns.
template <int kTiles, int kWide>
ONESTEP_DEVICE void UpdateFirstFma(const StepArgs& args, const uint8_t* x,
                                   int rows) {
  constexpr int kColumns = 8 * kTiles;
  constexpr int kGroups = kColumns / kWide;
  constexpr int kVec = kWide < 4 ? kWide : 4;
  using Vec = dev::Vec<float, kVec>;
  const Layout& layout = args.layout;
  for (int i = Thread(); i < layout.slots / 4 * kGroups; i += kThreads) {
    const int q = i / kGroups, column0 = i % kGroups * kWide;
    float acc[4][kWide] = {};
    for (int row = 0; row < rows; ++row) {
      const uint32_t word =
          *reinterpret_cast<const uint32_t*>(x + row * layout.x_stride + 4 * q);
      const Vec* e = reinterpret_cast<const Vec*>(At<float>(layout.e) +
                                                  row * kColumns + column0);
      ONESTEP_UNROLL
      for (int v = 0; v < kWide / kVec; ++v) {
        const Vec group = e[v];
        ONESTEP_UNROLL
        for (int k = 0; k < kVec; ++k) {
          ONESTEP_UNROLL
          for (int j = 0; j < 4; ++j) {
            float& sum = acc[j][v * kVec + k];
            sum = dev::Fma(Byte(word, j), group.v[k], sum);
          }
        }
      }
    }
    ONESTEP_UNROLL
    for (int j = 0; j < 4; ++j) {
      const int slot =
          column0 / 8 * layout.slots + (4 * q & ~31) + j * 8 + q % 8;
      Vec* w =
          reinterpret_cast<Vec*>(At<float>(layout.w1) + slot * 8 + column0 % 8);
      ONESTEP_UNROLL
      for (int v = 0; v < kWide / kVec; ++v) {
        Vec group = w[v];
        ONESTEP_UNROLL
        for (int k = 0; k < kVec; ++k) {
          group.v[k] = dev::Fma(args.alpha, acc[j][v * kVec + k], group.v[k]);
        }
        w[v] = group;
      }
    }
  }
}

template <int kTiles, int kParts, int kWide>
ONESTEP_DEVICE void UpdateFirst(const StepArgs& args, const uint8_t* x,
                                int rows) {
  if constexpr (kParts == 0) {
    UpdateFirstFma<kTiles, kWide>(args, x, rows);
  } else {
    UpdateFirstMma<kTiles, kParts>(args, x, rows);
  }
}

}  // namespace onestep::cuda::hidden_split

#endif  // ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_FIRST_LAYER_CUH_
