// SPDX-License-Identifier: Apache-2.0
// What the kernel families share: how threads are laid over elements and over
// rows, and sums in a fixed order. A kernel has the name of its
// launcher, of which it is an overload that takes one struct. The .cuh of a
// family is included by its .cu only.
#ifndef ONESTEP_KERNELS_CUDA_COMMON_CUH_
#define ONESTEP_KERNELS_CUDA_COMMON_CUH_

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include "kernels/cuda/device.h"
#include "kernels/kernels.h"

namespace onestep::cuda {

inline constexpr uint32_t kWarpSize = 32;
inline constexpr uint32_t kThreads = 256;  // of a block, unless said

// ---- the host's side -------------------------------------------------------
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Threads side by side are a power of two, of which kernels get the logarithm:
// of the least that is not below n, or of `max`.
constexpr uint32_t Log2Threads(int64_t n, uint32_t max) {
  uint32_t log2 = 0;
  while (1u << log2 < max && 1u << log2 < n) ++log2;
  return log2;
}

// `blocks` by `threads`; every kernel begins with Begin, so that it `waits`.
inline Launch Sized(Launch launch, int64_t blocks, uint32_t threads = kThreads,
                    int64_t shared_bytes = 0) {
  launch.grid.x = static_cast<uint32_t>(blocks);
  launch.block.x = threads;
  launch.shared_bytes = static_cast<uint32_t>(shared_bytes);
  launch.waits = true;
  return launch;
}

// A launch of Map over n elements.
inline Launch OverElements(Launch launch, int64_t n, int width) {
  return Sized(launch, CeilDiv(n, int64_t{kThreads} * width));
}

// Of every model.
inline bool Aligned(int64_t bytes,
                    std::initializer_list<PerModel<const void>> all) {
  for (const PerModel<const void>& x : all) {
    if (reinterpret_cast<uintptr_t>(x.first) % bytes != 0) return false;
    if (x.stride_bytes % bytes != 0) return false;
  }
  return true;
}

// Whether n floats at these addresses can be moved by fours.
inline bool ByFours(int64_t n,
                    std::initializer_list<PerModel<const void>> all) {
  return n % 4 == 0 && Aligned(4 * sizeof(float), all);
}

// ---- models ----------------------------------------------------------------
// The operand of this block's model.
template <typename T>
ONESTEP_DEVICE T* OfModel(const PerModel<T>& x) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(x.first) +
                              dev::BlockIndex().z * x.stride_bytes);
}

// ---- elements --------------------------------------------------------------
// What follows may start early; what came before must be done.
ONESTEP_DEVICE void Begin() {
  dev::TriggerDependents();
  dev::WaitForPrerequisites();
}

template <int kWidth, typename T>
ONESTEP_DEVICE dev::Vec<T, kWidth> Load(const T* x) {
  return *reinterpret_cast<const dev::Vec<T, kWidth>*>(x);
}

template <int kWidth, typename T>
ONESTEP_DEVICE void Store(const dev::Vec<T, kWidth>& x, T* y) {
  *reinterpret_cast<dev::Vec<T, kWidth>*>(y) = x;
}

// This thread's first element, when a thread has kWidth of them.
template <int kWidth>
ONESTEP_DEVICE int64_t FirstElement() {
  const int64_t block = dev::BlockIndex().x;
  return (block * dev::BlockDim().x + dev::ThreadIndex().x) * kWidth;
}

template <int kWidth, class F, typename... X>
ONESTEP_DEVICE void MapGroup(float* y, F f, const dev::Vec<X, kWidth>&... x) {
  dev::Vec<float, kWidth> out;
  ONESTEP_UNROLL
  for (int u = 0; u < kWidth; ++u) out.v[u] = f(x.v[u]...);
  Store(out, y);
}

// y[i] = f(x[i], ...) for n elements, kWidth (which divides n) to a thread.
template <int kWidth, class F, typename... X>
ONESTEP_DEVICE void Map(const Out& y, int64_t n, F f, const PerModel<X>&... x) {
  const int64_t i = FirstElement<kWidth>();
  if (i < n)
    MapGroup<kWidth>(OfModel(y) + i, f, Load<kWidth>(OfModel(x) + i)...);
}

// ---- rows of pieces --------------------------------------------------------
// A block's threads over rows: 2^log2_threads of them to a row's pieces.
struct RowLayout {
  int64_t rows, pieces;
  uint32_t log2_threads;
  int64_t BlockRows() const { return kThreads >> log2_threads; }
};

inline RowLayout LayOut(int64_t rows, int64_t pieces) {
  return {rows, pieces, Log2Threads(pieces, kThreads)};
}

inline Launch OverRows(Launch launch, const RowLayout& layout) {
  return Sized(launch, CeilDiv(layout.rows, layout.BlockRows()));
}

// Calls f(row, piece) for this thread's pieces.
template <class F>
ONESTEP_DEVICE void ForPieces(const RowLayout& layout, F f) {
  const uint32_t t = dev::ThreadIndex().x;
  const uint32_t threads = 1u << layout.log2_threads;
  const int64_t first = int64_t{dev::BlockIndex().x}
                        << (8 - layout.log2_threads);
  static_assert(kThreads == 1u << 8);
  const int64_t row = first + (t >> layout.log2_threads);
  if (row >= layout.rows) return;
  for (int64_t p = t & (threads - 1); p < layout.pieces; p += threads) {
    f(row, p);
  }
}

// ---- sums in a fixed order -------------------------------------------------
// Over groups of `lanes` lanes, a power of two; every lane has the result.
ONESTEP_DEVICE float SumOfLanes(float x, uint32_t lanes) {
  for (uint32_t mask = lanes / 2; mask > 0; mask /= 2) {
    x += dev::ShuffleXor(x, static_cast<int>(mask));
  }
  return x;
}

ONESTEP_DEVICE float MaxOfLanes(float x, uint32_t lanes) {
  for (uint32_t mask = lanes / 2; mask > 0; mask /= 2) {
    x = dev::Max(x, dev::ShuffleXor(x, static_cast<int>(mask)));
  }
  return x;
}

// Threads of a block that sums columns, and the floats that it and
// LastToArrive need in shared memory.
inline constexpr uint32_t kSumThreads = 512;
inline constexpr int64_t kSumFloats = kSumThreads + 4;

inline uint32_t Log2Lanes(int64_t cols) { return Log2Threads(cols, kWarpSize); }

// For each column of [begin, end): the sum of use(row, col, load(row, col))
// over the rows, given to done(col, sum) by one thread. By all threads of the
// block, 2^log2_lanes (Log2Lanes(end - begin)) to a row. `shared`: kSumThreads.
template <class LoadF, class Use, class Done>
ONESTEP_DEVICE void SumColumns(int64_t rows, int64_t begin, int64_t end,
                               uint32_t log2_lanes, float* shared, LoadF load,
                               Use use, Done done) {
  // So many loads are under way at once: `use` may store.
  constexpr int kAhead = 4;
  const uint32_t t = dev::ThreadIndex().x, threads = dev::BlockDim().x;
  const uint32_t lanes = 1u << log2_lanes, step = threads >> log2_lanes;
  const uint32_t lane = t & (lanes - 1);
  for (int64_t col = begin + lane; col - lane < end; col += lanes) {
    float sum = 0;
    for (int64_t r = t >> log2_lanes; r < rows && col < end;
         r += kAhead * step) {
      decltype(load(r, col)) x[kAhead] = {};
      ONESTEP_UNROLL
      for (int u = 0; u < kAhead; ++u) {
        if (r + u * step < rows) x[u] = load(r + u * step, col);
      }
      ONESTEP_UNROLL
      for (int u = 0; u < kAhead; ++u) {
        if (r + u * step < rows) sum += use(r + u * step, col, x[u]);
      }
    }
    for (uint32_t mask = lanes; mask < kWarpSize; mask *= 2) {
      sum += dev::ShuffleXor(sum, static_cast<int>(mask));
    }
    if (dev::Lane() < lanes) shared[dev::Warp() * lanes + dev::Lane()] = sum;
    dev::SyncBlock();
    if (t < lanes && col < end) {
      float total = 0;
      for (uint32_t i = t; i < threads / kWarpSize * lanes; i += lanes) {
        total += shared[i];
      }
      done(col, total);
    }
    dev::SyncBlock();
  }
}

// Rows shared out to blocks in parts of `rows`.
struct Parts {
  int64_t rows, count;
};

// What one block sums faster than several whose parts must then be added, and
// the least that is worth a block; estimates for an H200.
inline constexpr int64_t kOneBlockElements = 8192;
inline constexpr int64_t kMinPartElements = 512;
inline constexpr int64_t kManyBlocks = 128;

// Of `rows`, of which a block has `width` elements, `across` blocks side by
// side; max_rows: that a block can take.
inline Parts ShareOut(int64_t rows, int64_t width, int64_t across,
                      int64_t max_rows = std::numeric_limits<int64_t>::max()) {
  int64_t part = rows;
  if (rows * width > kOneBlockElements || rows > max_rows) {
    part = CeilDiv(rows * across, kManyBlocks);
    const int64_t least = CeilDiv(kMinPartElements, width);
    if (part < least) part = least;
    if (part > max_rows) part = max_rows;
    if (part > rows) part = rows;
  }
  return {part, CeilDiv(rows, part)};
}

// How blocks of a launch add up their parts: the workspace has `across`
// counters, then what each part gives for each column.
struct PartSums {
  Parts parts;
  int64_t cols;
  PerModel<uint32_t> counters;
  Out partial;  // [parts,cols]
};

inline int64_t PartSumsBytes(const Parts& parts, int64_t across, int64_t cols) {
  if (parts.count == 1) return 0;
  return static_cast<int64_t>(sizeof(float)) * (across + parts.count * cols);
}

inline PartSums MakePartSums(const Parts& parts, int64_t across, int64_t cols,
                             void* workspace) {
  if (parts.count == 1) return {parts, cols, nullptr, nullptr};
  const int64_t stride = PartSumsBytes(parts, across, cols);
  return {parts,
          cols,
          {static_cast<uint32_t*>(workspace), stride},
          {static_cast<float*>(workspace) + across, stride}};
}

// Whether this block is the last of `blocks` to come here, which leaves the
// counter 0; it then sees what all of them wrote before their last SyncBlock.
ONESTEP_DEVICE bool LastToArrive(uint32_t* counter, uint32_t blocks,
                                 uint32_t* shared) {
  if (dev::ThreadIndex().x == 0) {
    const bool last = dev::AddAcqRel(counter, 1) == blocks - 1;
    if (last) *counter = 0;
    *shared = last;
  }
  dev::SyncBlock();
  return *shared != 0;
}

// As SumColumns over the rows of part `part`; done gets the sums of all parts,
// in the last of the blocks that share counter `across`. `shared`: kSumFloats.
template <class LoadF, class Use, class Done>
ONESTEP_DEVICE void SumAllParts(const PartSums& sums, int64_t across,
                                int64_t part, int64_t rows, int64_t begin,
                                int64_t end, uint32_t log2_lanes, float* shared,
                                LoadF load, Use use, Done done) {
  const int64_t cols = sums.cols;
  const bool alone = sums.parts.count == 1;
  float* const partial = OfModel(sums.partial);
  SumColumns(rows, begin, end, log2_lanes, shared, load, use,
             [&](int64_t col, float sum) {
               if (alone) return done(col, sum);
               partial[part * cols + col] = sum;
             });
  if (alone || !LastToArrive(OfModel(sums.counters) + across,
                             static_cast<uint32_t>(sums.parts.count),
                             reinterpret_cast<uint32_t*>(shared))) {
    return;
  }
  SumColumns(
      sums.parts.count, begin, end, log2_lanes, shared + 1,
      [&](int64_t p, int64_t col) {
        return dev::LoadL2(partial + p * cols + col);
      },
      [](int64_t, int64_t, float x) { return x; }, done);
}

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_CUDA_COMMON_CUH_
