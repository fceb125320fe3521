// SPDX-License-Identifier: Apache-2.0
// Softmax and losses, through log-sum-exp. A row to a group of lanes, a power
// of two; every pass reads the row again, which the first one cached.
#ifndef ONESTEP_KERNELS_CUDA_LOSS_CUH_
#define ONESTEP_KERNELS_CUDA_LOSS_CUH_

#include "kernels/cuda/common.cuh"

namespace onestep::cuda {

inline constexpr uint32_t kRowThreads = 128;
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// This thread's place, when the block's threads are groups of `lanes` lanes.
struct LaneGroup {
  uint32_t lanes, index, lane;
};
ONESTEP_DEVICE LaneGroup GroupOf(uint32_t log2_lanes) {
  const uint32_t t = dev::ThreadIndex().x, lanes = 1u << log2_lanes;
  return {lanes, t >> log2_lanes, t & (lanes - 1)};
}

ONESTEP_DEVICE float MaxOfRow(const LaneGroup& group, const float* z,
                              int64_t cols) {
  float max = -kInfinity;
  for (int64_t c = group.lane; c < cols; c += group.lanes) {
    max = dev::Max(max, z[c]);
  }
  return MaxOfLanes(max, group.lanes);
}

// ---- rows of a matrix ------------------------------------------------------
struct SoftmaxArgs {
  In x, dy;  // SoftmaxGrad: x is softmax's result
  Out y;     // may be x or dy
  int64_t rows, cols;
  uint32_t log2_lanes;
};

// Groups past the end redo the last row, without storing it, since shuffles
// need whole warps.
ONESTEP_DEVICE int64_t RowOfGroup(const LaneGroup& group, uint32_t log2_lanes) {
  return int64_t{dev::BlockIndex().x} * (kRowThreads >> log2_lanes) +
         group.index;
}

// A NaN, or an infinity, makes its whole row NaN.
ONESTEP_KERNEL(kRowThreads) void Softmax(SoftmaxArgs args) {
  Begin();
  const LaneGroup group = GroupOf(args.log2_lanes);
  const int64_t row = RowOfGroup(group, args.log2_lanes), cols = args.cols;
  const float* x = OfModel(args.x) + dev::Min(row, args.rows - 1) * cols;
  const float max = MaxOfRow(group, x, cols);
  float sum = 0;
  for (int64_t c = group.lane; c < cols; c += group.lanes) {
    sum += dev::Exp(x[c] - max);
  }
  const float scale = 1 / SumOfLanes(sum, group.lanes);
  if (row >= args.rows) return;
  for (int64_t c = group.lane; c < cols; c += group.lanes) {
    OfModel(args.y)[row * cols + c] = dev::Exp(x[c] - max) * scale;
  }
}

// dx = (dy - sum_c(dy y)) y
ONESTEP_KERNEL(kRowThreads) void SoftmaxGrad(SoftmaxArgs args) {
  Begin();
  const LaneGroup group = GroupOf(args.log2_lanes);
  const int64_t row = RowOfGroup(group, args.log2_lanes), cols = args.cols;
  const int64_t first = dev::Min(row, args.rows - 1) * cols;
  const float* const x = OfModel(args.x) + first;
  const float* const dy = OfModel(args.dy) + first;
  float dot = 0;
  for (int64_t c = group.lane; c < cols; c += group.lanes) {
    dot = dev::Fma(dy[c], x[c], dot);
  }
  dot = SumOfLanes(dot, group.lanes);
  if (row >= args.rows) return;
  for (int64_t c = group.lane; c < cols; c += group.lanes) {
    OfModel(args.y)[first + c] = (dy[c] - dot) * x[c];
  }
}

struct MinusOneHotArgs {
  In p;
  const int32_t* labels;
  Out y;  // may be p
  RowLayout layout;
};

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void MinusOneHot(MinusOneHotArgs args) {
  Begin();
  ForPieces(args.layout, [&](int64_t row, int64_t piece) {
    const int64_t i = (row * args.layout.pieces + piece) * kWidth;
    dev::Vec<float, kWidth> y = Load<kWidth>(OfModel(args.p) + i);
    ONESTEP_UNROLL
    for (int u = 0; u < kWidth; ++u) {
      if (args.labels[row] == piece * kWidth + u) y.v[u] -= 1;
    }
    Store(y, OfModel(args.y) + i);
  });
}

// ---- mean squared error ----------------------------------------------------
struct MseArgs {
  In y, t;
  Out out;  // the loss, or dy
  int64_t n, elements;
  PartSums sums;  // MseLoss only
};

// Parts of the elements to blocks, as the one column of a matrix.
ONESTEP_KERNEL(kSumThreads) void MseLoss(MseArgs args) {
  Begin();
  const int64_t part = dev::BlockIndex().x;
  const int64_t first = part * args.sums.parts.rows;
  const float* const y = OfModel(args.y) + first;
  const float* const t = OfModel(args.t) + first;
  SumAllParts(
      args.sums, 0, part, dev::Min(args.sums.parts.rows, args.n - first), 0, 1,
      0, reinterpret_cast<float*>(dev::Shared()),
      [&](int64_t i, int64_t) { return y[i] - t[i]; },
      [](int64_t, int64_t, float x) { return x * x; },
      [&](int64_t, float sum) {
        *OfModel(args.out) = sum / static_cast<float>(args.elements);
      });
}

template <int kWidth>
ONESTEP_KERNEL(kThreads)
void MseGrad(MseArgs args) {
  Begin();
  const float alpha = 2.0f / static_cast<float>(args.elements);
  Map<kWidth>(
      args.out, args.n, [=](float y, float t) { return alpha * (y - t); },
      args.y, args.t);
}

// ---- loss, count and gradient of rows --------------------------------------
// What the first pass finds in a row for the second one.
struct RowResult {
  float max, scale;  // softmax cross-entropy: dz = scale exp(z - max) - ..
  float loss;
  float correct;  // 1 or 0
  int32_t label;
};

inline constexpr int64_t kMaxPartRows = 256;  // their RowResults are shared

// loss, dlogits and correct may each be null; db is, where dlogits is.
struct LossArgs {
  bool mse;
  In logits;
  const int32_t *labels, *indices;
  In lr, bias;
  Out loss, dlogits, correct, db;
  int64_t rows, cols, mean;  // mean: what the loss is divided by
  uint32_t log2_lanes;       // to a row in the first pass
  uint32_t log2_sum_lanes;   // in the second
  PartSums sums;             // columns: db, loss, correct
};

// By a group of lanes: the row z, and its loss and gradient's factor.
ONESTEP_DEVICE RowResult VisitRow(const LossArgs& args, const LaneGroup& group,
                                  const float* z, int32_t label, float alpha) {
  const float max = MaxOfRow(group, z, args.cols);
  const float at_label = z[label];
  // `wrong` counts earlier columns as large; NaN where a logit is not finite.
  float sum = 0, wrong = 0;
  for (int64_t c = group.lane; c < args.cols; c += group.lanes) {
    const float diff = z[c] - (c == label ? 1.0f : 0.0f);
    sum += args.mse ? diff * diff : dev::Exp(z[c] - max);
    wrong += c < label && z[c] == max ? 1.0f : 0.0f * z[c];
  }
  sum = SumOfLanes(sum, group.lanes);
  wrong = SumOfLanes(wrong, group.lanes);
  const float correct = at_label == max && wrong == 0 ? 1.0f : 0.0f;
  if (args.mse) return {max, alpha, sum, correct, label};
  // The large terms first, so that equal ones cancel without a rounding.
  const float loss = (max - at_label) + dev::Log(sum) + 0.0f * wrong;
  return {max, alpha / sum, loss, correct, label};
}

ONESTEP_DEVICE float LogitGrad(bool mse, const RowResult& row, float alpha,
                               int64_t col, float z) {
  const bool hot = col == row.label;
  if (mse) return alpha * (z - (hot ? 1.0f : 0.0f));
  return dev::Fma(dev::Exp(z - row.max), row.scale, hot ? -alpha : 0.0f);
}

// First pass of a block: rows [first, first + count).
ONESTEP_DEVICE void VisitRows(const LossArgs& args, int64_t first,
                              int64_t count, float alpha, RowResult* results) {
  const LaneGroup group = GroupOf(args.log2_lanes);
  const int64_t groups = kSumThreads >> args.log2_lanes;
  for (int64_t begin = 0; begin < count; begin += groups) {
    const int64_t r = dev::Min(begin + group.index, count - 1);
    const int64_t row = first + r;
    const int64_t at = args.indices != nullptr ? args.indices[row] : row;
    const RowResult result =
        VisitRow(args, group, OfModel(args.logits) + row * args.cols,
                 args.labels[at], alpha);
    if (group.lane == 0 && begin + group.index < count) results[r] = result;
  }
}

// A part of the rows to a block. Second pass: the threads are rows by columns,
// as the sums over the rows need it; those of loss and count are two more.
ONESTEP_KERNEL(kSumThreads) void LossGrad(LossArgs args) {
  Begin();
  auto* const sums = reinterpret_cast<float*>(dev::Shared());
  auto* const results = reinterpret_cast<RowResult*>(sums + kSumFloats);
  const int64_t part = dev::BlockIndex().x, cols = args.cols;
  const int64_t first = part * args.sums.parts.rows;
  const int64_t rows = dev::Min(args.sums.parts.rows, args.rows - first);
  float alpha = (args.mse ? 2.0f : 1.0f) / static_cast<float>(args.mean);
  if (args.lr.first != nullptr) alpha *= -*OfModel(args.lr);
  VisitRows(args, first, rows, alpha, results);
  dev::SyncBlock();
  const float* const logits = OfModel(args.logits) + first * cols;
  float* const dlogits = OfModel(args.dlogits);
  const auto load = [&](int64_t r, int64_t c) {
    if (c == cols) return results[r].loss;
    if (c > cols) return results[r].correct;
    return logits[r * cols + c];
  };
  const auto use = [&](int64_t r, int64_t c, float x) {
    if (c >= cols) return x;
    const float dz = LogitGrad(args.mse, results[r], alpha, c, x);
    dlogits[(first + r) * cols + c] = dz;
    return dz;
  };
  const auto done = [&](int64_t c, float sum) {
    if (c == cols) {
      if (args.loss.first == nullptr) return;
      *OfModel(args.loss) = sum / static_cast<float>(args.mean);
    } else if (c > cols) {
      if (args.correct.first != nullptr) *OfModel(args.correct) = sum;
    } else if (args.db.first != nullptr) {
      const float* const bias = OfModel(args.bias);
      OfModel(args.db)[c] = bias != nullptr ? bias[c] + sum : sum;
    }
  };
  SumAllParts(args.sums, 0, part, rows,
              args.dlogits.first != nullptr ? 0 : cols, cols + 2,
              args.log2_sum_lanes, sums, load, use, done);
}

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_CUDA_LOSS_CUH_
