// SPDX-License-Identifier: Apache-2.0
// Tiled matmul in fp32 FMAs. A block makes a tile of y; its threads are kSplit
// groups, each of which sums every kSplit-th slice of k, and group 0 adds what
// the others have, in order. Each thread keeps kRows x kCols sums; slices of a
// and b come through registers into two buffers in shared memory.
#ifndef ONESTEP_KERNELS_CUDA_MATMUL_CUH_
#define ONESTEP_KERNELS_CUDA_MATMUL_CUH_

#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/common.cuh"

namespace onestep::cuda {

// Slices of k, a thread's sums, and the groups, for tiles of kSize x kSize.
template <int kSize>
struct MatMulShape;
// Reuses most of what it loads.
template <>
struct MatMulShape<128> {
  static constexpr int kK = 8, kRows = 8, kCols = 8, kSplit = 1;
};
template <>
struct MatMulShape<64> {
  static constexpr int kK = 16, kRows = 8, kCols = 4, kSplit = 2;
};
template <>
struct MatMulShape<32> {
  static constexpr int kK = 8, kRows = 4, kCols = 4, kSplit = 4;
};
// Spreads small products with long sums over most multiprocessors.
template <>
struct MatMulShape<16> {
  static constexpr int kK = 16, kRows = 4, kCols = 2, kSplit = 8;
};

template <int kSize>
struct MatMulTile : MatMulShape<kSize> {
  using Shape = MatMulShape<kSize>;
  using Shape::kCols, Shape::kK, Shape::kRows, Shape::kSplit;
  static constexpr int kM = kSize, kN = kSize;
  static constexpr int kThreadsN = kN / kCols;
  static constexpr int kGroupThreads = kM / kRows * kThreadsN;
  static constexpr int kThreads = kGroupThreads * kSplit;
  // Four floats more than a row: other banks, and still aligned.
  static constexpr int kStrideM = kM + 4, kStrideN = kN + 4;
  static constexpr int kSliceFloats = kK * (kStrideM + kStrideN);
  static constexpr int kBufferFloats = 2 * kSplit * kSliceFloats;
  static constexpr int kPartialFloats = (kSplit - 1) * kM * kN;
  static constexpr int64_t kSharedBytes =
      static_cast<int64_t>(sizeof(float)) *
      (kBufferFloats > kPartialFloats ? kBufferFloats : kPartialFloats);
};

struct MatMulArgs {
  MatMulParams params;
  bool by_fours;  // rows of y and c are aligned
};

// One thread's share of a group's slices [kK, kWide] of a or b.
template <int kWide, int kK, int kThreads>
class SliceLoader {
 public:
  // Element (w, k) of the operand is at w + k * wide, or, not `along_wide`, at
  // w * depth + k. Slices have its w from `first` on.
  ONESTEP_DEVICE SliceLoader(const float* operand, bool along_wide,
                             int64_t first, int64_t wide, int64_t depth,
                             int thread)
      : stride_k_(along_wide ? wide : 1), depth_(depth) {
    const int64_t stride_w = along_wide ? 1 : depth;
    w_ = along_wide ? thread % kWide : thread / kK;
    k_ = along_wide ? thread / kWide : thread % kK;
    step_w_ = along_wide ? 0 : kThreads / kK;
    step_k_ = along_wide ? kThreads / kWide : 0;
    step_ = step_w_ * stride_w + step_k_ * stride_k_;
    at_ = operand + (first + w_) * stride_w + k_ * stride_k_;
    inside_w_ = dev::Min<int64_t>(wide - first, kWide);
  }

  // The slice from k on, zeros past the operand's end: into registers.
  ONESTEP_DEVICE void Fetch(int64_t k) {
    const float* from = at_ + k * stride_k_;
    const int64_t inside_k = depth_ - k;
    ONESTEP_UNROLL
    for (int u = 0; u < kEach; ++u) {
      const bool inside =
          w_ + u * step_w_ < inside_w_ && k_ + u * step_k_ < inside_k;
      values_[u] = inside ? from[u * step_] : 0;
    }
  }

  ONESTEP_DEVICE void Put(float* slice) const {
    ONESTEP_UNROLL
    for (int u = 0; u < kEach; ++u) {
      slice[(k_ + u * step_k_) * (kWide + 4) + w_ + u * step_w_] = values_[u];
    }
  }

 private:
  static constexpr int kEach = kWide * kK / kThreads;
  static_assert(kThreads % kWide == 0 && kThreads % kK == 0);
  static_assert(kEach * kThreads == kWide * kK);

  const float* at_;
  int64_t stride_k_, depth_, step_;
  int64_t inside_w_;
  int w_, k_, step_w_, step_k_;
  float values_[kEach];
};

// A thread's i-th of kEach places in a tile: runs of kRun, a run from each of
// kThreads threads in turn, so that neighbours read neighbouring runs.
template <int kEach, int kThreads>
struct Places {
  static constexpr int kRun = kEach < 4 ? kEach : 4;
  ONESTEP_DEVICE static int At(int thread, int i) {
    return i / kRun * (kThreads * kRun) + thread * kRun + i % kRun;
  }
  ONESTEP_DEVICE static void Read(const float* row, int thread,
                                  float (&values)[kEach]) {
    ONESTEP_UNROLL
    for (int i = 0; i < kEach; i += kRun) {
      const auto run = Load<kRun>(row + At(thread, i));
      ONESTEP_UNROLL
      for (int j = 0; j < kRun; ++j) values[i + j] = run.v[j];
    }
  }
};

template <class Tile>
using RowPlaces = Places<Tile::kRows, Tile::kM / Tile::kRows>;
template <class Tile>
using ColPlaces = Places<Tile::kCols, Tile::kThreadsN>;

template <class Tile>
using Sums = float[Tile::kRows][Tile::kCols];

// sums += the slice of a (transposed) times that of b.
template <class Tile>
ONESTEP_DEVICE void MultiplySlice(const float* slice, int thread,
                                  Sums<Tile>& sums) {
  const float* const b = slice + Tile::kK * Tile::kStrideM;
  const int row = thread / Tile::kThreadsN, col = thread % Tile::kThreadsN;
  ONESTEP_UNROLL
  for (int k = 0; k < Tile::kK; ++k) {
    float x[Tile::kRows], w[Tile::kCols];
    RowPlaces<Tile>::Read(slice + k * Tile::kStrideM, row, x);
    ColPlaces<Tile>::Read(b + k * Tile::kStrideN, col, w);
    ONESTEP_UNROLL
    for (int i = 0; i < Tile::kRows; ++i) {
      ONESTEP_UNROLL
      for (int j = 0; j < Tile::kCols; ++j) {
        sums[i][j] = dev::Fma(x[i], w[j], sums[i][j]);
      }
    }
  }
}

// Of a group: when that is one warp, it need not wait for the others.
template <class Tile>
ONESTEP_DEVICE void SyncGroup() {
  if constexpr (Tile::kGroupThreads == kWarpSize) {
    dev::SyncWarp();
  } else {
    dev::SyncBlock();
  }
}

// This group's part of the tile at (m0, n0), summed over its slices of k.
template <class Tile>
ONESTEP_DEVICE void SumSlices(const MatMulParams& p, int64_t m0, int64_t n0,
                              Sums<Tile>& sums) {
  const int thread = dev::ThreadIndex().x % Tile::kGroupThreads;
  const int group = dev::ThreadIndex().x / Tile::kGroupThreads;
  SliceLoader<Tile::kM, Tile::kK, Tile::kGroupThreads> a(
      OfModel(p.a), p.trans_a, m0, p.m, p.k, thread);
  SliceLoader<Tile::kN, Tile::kK, Tile::kGroupThreads> b(
      OfModel(p.b), !p.trans_b, n0, p.n, p.k, thread);
  float* now =
      reinterpret_cast<float*>(dev::Shared()) + group * 2 * Tile::kSliceFloats;
  float* next = now + Tile::kSliceFloats;
  constexpr int64_t kRound = int64_t{Tile::kK} * Tile::kSplit;
  const auto put = [&](float* slice) {
    a.Put(slice);
    b.Put(slice + Tile::kK * Tile::kStrideM);
  };
  a.Fetch(group * Tile::kK);
  b.Fetch(group * Tile::kK);
  put(now);
  SyncGroup<Tile>();
  for (int64_t k = 0; k < p.k; k += kRound) {
    const bool more = k + kRound < p.k;
    if (more) {
      a.Fetch(k + kRound + group * Tile::kK);
      b.Fetch(k + kRound + group * Tile::kK);
    }
    MultiplySlice<Tile>(now, thread, sums);
    if (more) put(next);
    SyncGroup<Tile>();
    float* const done = now;
    now = next;
    next = done;
  }
}

// Group 0's sums += those of the others; false in the others.
template <class Tile>
ONESTEP_DEVICE bool AddGroups(Sums<Tile>& sums) {
  if constexpr (Tile::kSplit == 1) return true;
  constexpr int kEach = Tile::kRows * Tile::kCols;
  const int thread = dev::ThreadIndex().x % Tile::kGroupThreads;
  const int group = dev::ThreadIndex().x / Tile::kGroupThreads;
  // [group - 1][sum][thread]
  auto* const partial = reinterpret_cast<float*>(dev::Shared());
  const auto at = [&](int g, int e) -> float& {
    return partial[((g - 1) * kEach + e) * Tile::kGroupThreads + thread];
  };
  dev::SyncBlock();
  if (group > 0) {
    ONESTEP_UNROLL
    for (int e = 0; e < kEach; ++e) {
      at(group, e) = sums[e / Tile::kCols][e % Tile::kCols];
    }
  }
  dev::SyncBlock();
  if (group > 0) return false;
  for (int g = 1; g < Tile::kSplit; ++g) {
    ONESTEP_UNROLL
    for (int e = 0; e < kEach; ++e) {
      sums[e / Tile::kCols][e % Tile::kCols] += at(g, e);
    }
  }
  return true;
}

// y = act(sums + bias), or c + sums.
template <class Tile>
ONESTEP_DEVICE void StoreTile(const MatMulArgs& args, int64_t m0, int64_t n0,
                              const Sums<Tile>& sums) {
  using Cols = ColPlaces<Tile>;
  const MatMulParams& p = args.params;
  const int thread = dev::ThreadIndex().x;
  const float *const bias = OfModel(p.bias), *const c = OfModel(p.c);
  float* const y = OfModel(p.y);
  const auto finish = [&](int64_t i, int64_t col, float sum) {
    if (c != nullptr) sum += c[i];
    if (bias != nullptr) sum += bias[col];
    return Forward(p.act, sum);
  };
  ONESTEP_UNROLL
  for (int i = 0; i < Tile::kRows; ++i) {
    const int64_t row = m0 + RowPlaces<Tile>::At(thread / Tile::kThreadsN, i);
    if (row >= p.m) continue;
    ONESTEP_UNROLL
    for (int j = 0; j < Tile::kCols; j += Cols::kRun) {
      const int64_t col = n0 + Cols::At(thread % Tile::kThreadsN, j);
      const int64_t at = row * p.n + col;
      dev::Vec<float, Cols::kRun> run = {};
      ONESTEP_UNROLL
      for (int u = 0; u < Cols::kRun; ++u) {
        if (col + u < p.n) run.v[u] = finish(at + u, col + u, sums[i][j + u]);
      }
      if (args.by_fours && col + Cols::kRun <= p.n) {
        Store(run, y + at);
        continue;
      }
      ONESTEP_UNROLL
      for (int u = 0; u < Cols::kRun; ++u) {
        if (col + u < p.n) y[at + u] = run.v[u];
      }
    }
  }
}

template <int kSize>
ONESTEP_KERNEL(MatMulTile<kSize>::kThreads)
void MatMul(MatMulArgs args) {
  using Tile = MatMulTile<kSize>;
  Begin();
  const uint32_t block = dev::BlockIndex().x;
  const auto tiles_n =
      static_cast<uint32_t>((args.params.n + Tile::kN - 1) / Tile::kN);
  const int64_t m0 = int64_t{block / tiles_n} * Tile::kM;
  const int64_t n0 = int64_t{block % tiles_n} * Tile::kN;
  Sums<Tile> sums = {};
  SumSlices<Tile>(args.params, m0, n0, sums);
  if (AddGroups<Tile>(sums)) StoreTile<Tile>(args, m0, n0, sums);
}

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_CUDA_MATMUL_CUH_
