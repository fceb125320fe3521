// SPDX-License-Identifier: Apache-2.0
// Elementwise ops, kWidth elements to a thread: one read and one write of each
// array. Sums over rows: 32 columns to a block, whose threads are rows by
// columns; many rows are shared out to blocks, whose partial sums the last to
// arrive adds in order.
#ifndef ONESTEP_KERNELS_CUDA_ELEMENTWISE_CUH_
#define ONESTEP_KERNELS_CUDA_ELEMENTWISE_CUH_

#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/common.cuh"

namespace onestep::cuda {

struct ScaleArgs {
  In x;
  float alpha;
  In s;  // MulScalar only
  Out y;
  int64_t n;
};

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void Scale(ScaleArgs args) {
  Begin();
  const float alpha = args.alpha;
  Map<kWidth>(
      args.y, args.n, [=](float x) { return alpha * x; }, args.x);
}

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void MulScalar(ScaleArgs args) {
  Begin();
  const float alpha = args.alpha * *OfModel(args.s);
  Map<kWidth>(
      args.y, args.n, [=](float x) { return alpha * x; }, args.x);
}

struct BinaryArgs {
  In a, b;
  Out y;
  int64_t n;
};

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void Add(BinaryArgs args) {
  Begin();
  Map<kWidth>(
      args.y, args.n, [](float a, float b) { return a + b; }, args.a, args.b);
}

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void Mul(BinaryArgs args) {
  Begin();
  Map<kWidth>(
      args.y, args.n, [](float a, float b) { return a * b; }, args.a, args.b);
}

struct ActivateArgs {
  Activation act;
  In x, dy;  // dy: ActivateGrad only
  Out y;
  int64_t n;
};

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void Activate(ActivateArgs args) {
  Begin();
  const Activation act = args.act;
  Map<kWidth>(
      args.y, args.n, [=](float x) { return Forward(act, x); }, args.x);
}

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void ActivateGrad(ActivateArgs args) {
  Begin();
  const Activation act = args.act;
  Map<kWidth>(
      args.y, args.n, [=](float y, float dy) { return Backward(act, y, dy); },
      args.x, args.dy);
}

struct RowsArgs {
  In x, b;  // b: AddBias only
  Out y;
  RowLayout layout;
};

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void AddBias(RowsArgs args) {
  Begin();
  ForPieces(args.layout, [&](int64_t row, int64_t piece) {
    const int64_t i = (row * args.layout.pieces + piece) * kWidth;
    MapGroup<kWidth>(
        OfModel(args.y) + i, [](float x, float b) { return x + b; },
        Load<kWidth>(OfModel(args.x) + i),
        Load<kWidth>(OfModel(args.b) + piece * kWidth));
  });
}

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void BroadcastRows(RowsArgs args) {
  Begin();
  ForPieces(args.layout, [&](int64_t row, int64_t piece) {
    Store(Load<kWidth>(OfModel(args.x) + piece * kWidth),
          OfModel(args.y) + (row * args.layout.pieces + piece) * kWidth);
  });
}

// Block (tile, part): columns [32 tile, 32 tile + 32) of one part of the rows.
struct ColumnSumArgs {
  Activation act;  // ActivationGrad only, as are y, dx and b
  In y, dy;        // dy: what is summed
  Out dx;          // [rows,cols]
  In b;            // [cols] or null
  Out db;          // [cols]
  int64_t rows;
  uint32_t log2_lanes;
  PartSums sums;
};

// db of use(i, load(i)), where i is the place in [rows,cols].
template <class LoadF, class Use>
ONESTEP_DEVICE void SumTile(const ColumnSumArgs& args, LoadF load, Use use) {
  const int64_t cols = args.sums.cols, tile = dev::BlockIndex().x;
  const int64_t begin = tile * kWarpSize;
  const int64_t part = dev::BlockIndex().y;
  const int64_t first = part * args.sums.parts.rows;
  SumAllParts(
      args.sums, tile, part, dev::Min(args.sums.parts.rows, args.rows - first),
      begin, dev::Min(begin + kWarpSize, cols), args.log2_lanes,
      reinterpret_cast<float*>(dev::Shared()),
      [&](int64_t r, int64_t c) { return load((first + r) * cols + c); },
      [&](int64_t r, int64_t c, auto x) {
        return use((first + r) * cols + c, x);
      },
      [&](int64_t c, float sum) {
        const float* const b = OfModel(args.b);
        OfModel(args.db)[c] = b != nullptr ? b[c] + sum : sum;
      });
}

ONESTEP_KERNEL(kSumThreads) void ReduceRows(ColumnSumArgs args) {
  Begin();
  SumTile(
      args, [&](int64_t i) { return OfModel(args.dy)[i]; },
      [](int64_t, float x) { return x; });
}

ONESTEP_KERNEL(kSumThreads) void ActivationGrad(ColumnSumArgs args) {
  struct Pair {
    float y, dy;
  };
  Begin();
  SumTile(
      args,
      [&](int64_t i) {
        return Pair{OfModel(args.y)[i], OfModel(args.dy)[i]};
      },
      [&](int64_t i, Pair x) {
        return OfModel(args.dx)[i] = Backward(args.act, x.y, x.dy);
      });
}

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_CUDA_ELEMENTWISE_CUH_
