// SPDX-License-Identifier: Apache-2.0
// Data movement: rows, conversions, one-hot rows. Bound by latency and memory.
#ifndef ONESTEP_KERNELS_CUDA_GATHER_CUH_
#define ONESTEP_KERNELS_CUDA_GATHER_CUH_

#include <type_traits>

#include "kernels/cuda/common.cuh"

namespace onestep::cuda {

// Row r of `to`, of layout.pieces of kBytes, is the row of `from` that starts
// at r, or indices[r], times stride_bytes. A power of two of threads to a row.
struct CopyRowsArgs {
  PerModel<const unsigned char> from;
  const int32_t* indices;  // null: row r is row r
  PerModel<void> to;
  int64_t stride_bytes;
  RowLayout layout;
};

template <int kBytes>
ONESTEP_KERNEL(kThreads)
void CopyRows(CopyRowsArgs args) {
  using Words = dev::Vec<uint32_t, (kBytes + 3) / 4>;
  using Unit = std::conditional_t<kBytes == 1, uint8_t, Words>;
  Begin();
  ForPieces(args.layout, [&](int64_t row, int64_t piece) {
    const int64_t source = args.indices != nullptr ? args.indices[row] : row;
    const auto* from = reinterpret_cast<const Unit*>(
        OfModel(args.from) + source * args.stride_bytes);
    static_cast<Unit*>(OfModel(args.to))[row * args.layout.pieces + piece] =
        from[piece];
  });
}

// y[rows,cols] = alpha * table u8[indices[r], c], kWidth columns at once.
struct GatherConvertArgs {
  const uint8_t* table;
  const int32_t* indices;
  float alpha;
  float* y;
  RowLayout layout;
};

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void GatherConvert(GatherConvertArgs args) {
  Begin();
  const float alpha = args.alpha;
  ForPieces(args.layout, [&](int64_t row, int64_t piece) {
    const int64_t pieces = args.layout.pieces;
    const int64_t from = args.indices[row] * pieces + piece;
    MapGroup<kWidth>(
        args.y + (row * pieces + piece) * kWidth,
        [=](uint8_t x) { return alpha * static_cast<float>(x); },
        Load<kWidth>(args.table + from * kWidth));
  });
}

template <typename T>
struct CastArgs {
  PerModel<const T> x;
  Out y;
  int64_t n;
};

template <int kWidth, typename T>
ONESTEP_DEVICE void Cast(const CastArgs<T>& args) {
  Begin();
  Map<kWidth>(
      args.y, args.n, [](T x) { return static_cast<float>(x); }, args.x);
}

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void CastU8(CastArgs<uint8_t> args) {
  Cast<kWidth>(args);
}

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void CastI32(CastArgs<int32_t> args) {
  Cast<kWidth>(args);
}

struct OneHotArgs {
  const int32_t* labels;
  float* y;  // [rows,classes]
  RowLayout layout;
};

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void OneHot(OneHotArgs args) {
  Begin();
  ForPieces(args.layout, [&](int64_t row, int64_t piece) {
    dev::Vec<float, kWidth> y;
    ONESTEP_UNROLL
    for (int u = 0; u < kWidth; ++u) {
      y.v[u] = args.labels[row] == piece * kWidth + u ? 1.0f : 0.0f;
    }
    Store(y, args.y + (row * args.layout.pieces + piece) * kWidth);
  });
}

struct FillArgs {
  Out y;
  float value;
  int64_t n;
};

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void Fill(FillArgs args) {
  Begin();
  Map<kWidth>(args.y, args.n, [&] { return args.value; });
}

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_CUDA_GATHER_CUH_
