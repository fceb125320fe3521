// SPDX-License-Identifier: Apache-2.0
// The part of the hidden-split step (kernels/cuda/hidden_split/hidden_split.h)
// from h to the loss and back to e, in f32. All threads of the block call each
// function except WriteResults; the caller calls SyncBlock between two. At
// batch 32 and 10 classes a thread has one element in each function, which then
// takes the latency of its loads: ~0.1 us.
#ifndef ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_HEAD_CUH_
#define ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_HEAD_CUH_

#include <cstdint>
#include <limits>

#include "kernels/cuda/device.h"
#include "kernels/cuda/hidden_split/first_layer.cuh"

namespace onestep::cuda::hidden_split {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// partials[rows, classes] = h w2, over the block's columns.
template <int kTiles>
ONESTEP_DEVICE void PartialLogits(const StepArgs& args, int rows,
                                  float* partials) {
  constexpr int kColumns = 8 * kTiles;
  const Layout& layout = args.layout;
  const int shift = layout.class_shift;
  for (int i = Thread(); i < rows << shift; i += kThreads) {
    const int row = i >> shift, c = i & ((1 << shift) - 1);
    if (c >= args.classes) continue;
    const Float4* h = At<Float4>(layout.h) + row * (kColumns / 4);
    const float* w2 = At<float>(layout.w2) + c;
    float sum = 0;
    ONESTEP_UNROLL
    for (int q = 0; q < kColumns / 4; ++q) {
      const Float4 group = h[q];
      ONESTEP_UNROLL
      for (int j = 0; j < 4; ++j) {
        sum = dev::Fma(group.v[j], w2[(4 * q + j) * layout.w2_stride], sum);
      }
    }
    partials[row * args.classes + c] = sum;
  }
}

// ---- loss and its gradient -------------------------------------------------
struct LossGradRows {
  const float* partials;  // [blocks][rows, classes], blocks `stride` apart
  int64_t stride;         // floats
  const float* b2;        // [classes]
  const int32_t* labels;  // [rows]
  float lr;               // used last, because its load may still be pending
  int rows;               // d has zeros from there to padded_rows
  int padded_rows;
  float* d;            // [padded_rows, classes]
  float* row_loss;     // [rows]
  float* row_correct;  // [rows]: 1 or 0
};

template <bool kGlobal>
ONESTEP_DEVICE float Read(const float* p) {
  return kGlobal ? dev::LoadL2(p) : *p;
}

// Sums in the order of the blocks; issues many loads at a time.
template <bool kGlobal>
ONESTEP_DEVICE float SumOverBlocks(int blocks, const float* p, int64_t stride) {
  constexpr int kAtOnce = 16;
  float sum = 0;
  int block = 0;
  for (; block + kAtOnce <= blocks; block += kAtOnce, p += kAtOnce * stride) {
    float values[kAtOnce];
    ONESTEP_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      values[i] = Read<kGlobal>(p + i * stride);
    }
    ONESTEP_UNROLL
    for (int i = 0; i < kAtOnce; ++i) sum += values[i];
  }
  for (; block < blocks; ++block, p += stride) sum += Read<kGlobal>(p);
  return sum;
}

// 1 << class_shift lanes share a row, one class each. kGlobal: the partials and
// b2 are in global memory, else in shared memory.
template <bool kGlobal>
ONESTEP_DEVICE void LossGrad(const StepArgs& args, const LossGradRows& io) {
  const int shift = args.layout.class_shift, lanes = 1 << shift;
  const int c = Thread() & (lanes - 1);
  for (int row0 = 0; row0 < io.padded_rows; row0 += kThreads >> shift) {
    const int row = row0 + (Thread() >> shift);
    const bool here = row < io.rows && c < args.classes;
    float z = -kInfinity;
    int label = 0;
    if (here) {
      label = io.labels[row];
      const float* p = io.partials + row * args.classes + c;
      z = SumOverBlocks<kGlobal>(args.blocks, p, io.stride) +
          Read<kGlobal>(io.b2 + c);
    }
    float largest = z;
    for (int mask = lanes / 2; mask > 0; mask /= 2) {
      largest = dev::Max(largest, dev::ShuffleXor(largest, mask));
    }
    const float exp = here ? dev::Exp(z - largest) : 0.0f;
    // A logit makes the row wrong if it is not finite, or if it is the largest
    // and comes before the label.
    int32_t wrong =
        here && (!(z - z == 0) || (z == largest && c < label)) ? 1 : 0;
    float total = exp;
    for (int mask = lanes / 2; mask > 0; mask /= 2) {
      total += dev::ShuffleXor(total, mask);
      wrong += dev::ShuffleXor(wrong, mask);
    }
    if (here && c == label) {
      io.row_loss[row] = dev::Log(total) - (z - largest);
      io.row_correct[row] = wrong == 0 && z == largest ? 1.0f : 0.0f;
    }
    if (row < io.padded_rows && c < args.classes) {
      const float hot = c == label ? 1.0f : 0.0f;
      io.d[row * args.classes + c] =
          here ? io.lr * (args.inverse_batch * (hot - exp / total)) : 0.0f;
    }
  }
}

// The sum of v[rows], by one warp.
template <bool kGlobal>
ONESTEP_DEVICE float SumRows(const float* v, int rows) {
  float sum = 0;
  for (int row = Lane(); row < rows; row += 32) {
    sum += Read<kGlobal>(v + row);
  }
  for (int mask = 16; mask > 0; mask /= 2) sum += dev::ShuffleXor(sum, mask);
  return sum;
}

// One warp computes the results of a step; lane 0 writes them.
template <bool kGlobal>
ONESTEP_DEVICE void WriteResults(const StepArgs& args, int64_t step,
                                 const float* row_loss,
                                 const float* row_correct) {
  const HiddenSplitBuffers& buffers = args.buffers;
  const float loss = SumRows<kGlobal>(row_loss, args.batch);
  const float correct = SumRows<kGlobal>(row_correct, args.batch);
  if (Lane() != 0) return;
  if (buffers.loss != nullptr) {
    buffers.loss[step * buffers.loss_stride] = loss * args.inverse_batch;
  }
  if (buffers.correct != nullptr) {
    buffers.correct[step * buffers.correct_stride] = correct;
  }
}

// ---- gradients and updates -------------------------------------------------
// e = (d w2^T) act'(h). With kParts > 0 also splits e into its bf16 parts, in
// pairs of rows.
template <int kTiles, int kParts>
ONESTEP_DEVICE void HiddenGrad(const StepArgs& args, int rows) {
  constexpr int kColumns = 8 * kTiles;
  const Layout& layout = args.layout;
  for (int i = Thread(); i < To16(rows) * kColumns; i += kThreads) {
    const int row = i / kColumns, column = i % kColumns;
    const float* d = At<float>(layout.d) + row * args.classes;
    const float* w2 = At<float>(layout.w2) + column * layout.w2_stride;
    float sum = 0;
    for (int c = 0; c < args.classes; ++c) sum = dev::Fma(d[c], w2[c], sum);
    const float e =
        Backward</*kOperands=*/false>(args.act, At<float>(layout.h)[i], sum);
    At<float>(layout.e)[i] = e;
    if constexpr (kParts > 0) {
      const float below = dev::ShuffleXor(e, kColumns);
      if (row % 2 == 0) {
        uint32_t parts[kParts];
        Split<kParts>(e, below, parts);
        const int pairs = layout.rows / 2;
        ONESTEP_UNROLL
        for (int p = 0; p < kParts; ++p) {
          const int plane = (p * kTiles + column / 8) * pairs + row / 2;
          At<uint32_t>(layout.parts)[plane * 8 + column % 8] = parts[p];
        }
      }
    }
  }
}

template <typename Body>
ONESTEP_DEVICE void ForEveryOther(int row, int rows, const Body& body) {
  constexpr int kAtOnce = 8;
  for (; row + 2 * (kAtOnce - 1) < rows; row += 2 * kAtOnce) {
    ONESTEP_UNROLL
    for (int i = 0; i < kAtOnce; ++i) body(row + 2 * i);
  }
  for (; row < rows; row += 2) body(row);
}

// w2 += h^T d, b1 += sum e, b2 += sum d. Two lanes share each sum over the
// rows. The last warps take the first sums, because they have less of w1 to
// update.
template <int kTiles>
ONESTEP_DEVICE void UpdateHead(const StepArgs& args, int rows, float* w2) {
  constexpr int kColumns = 8 * kTiles;
  const Layout& layout = args.layout;
  const float* h = At<float>(layout.h);
  const float* d = At<float>(layout.d);
  const float* e = At<float>(layout.e);
  const int of_w2 = kColumns * args.classes;
  const int all = of_w2 + kColumns + args.classes;
  const int half = Thread() % 2;
  const int place = (2 * kWarps - 2 - Warp()) % kWarps;
  for (int base = place * 16; base < all; base += kThreads / 2) {
    const int i = base + Lane() / 2;
    float sum = 0;
    float* to = nullptr;
    if (i < of_w2) {
      const int column = i / args.classes, c = i - column * args.classes;
      to = w2 + column * layout.w2_stride + c;
      ForEveryOther(half, rows, [&](int row) {
        sum = dev::Fma(h[row * kColumns + column], d[row * args.classes + c],
                       sum);
      });
    } else if (i < all) {
      const bool is_b1 = i < of_w2 + kColumns;
      const int at = i - of_w2 - (is_b1 ? 0 : kColumns);
      const int stride = is_b1 ? kColumns : args.classes;
      to = At<float>(is_b1 ? layout.b1 : layout.b2) + at;
      const float* from = (is_b1 ? e : d) + at;
      ForEveryOther(half, rows, [&](int row) { sum += from[row * stride]; });
    }
    sum += dev::ShuffleXor(sum, 1);
    if (to != nullptr && half == 0) *to += sum;
  }
}

}  // namespace onestep::cuda::hidden_split

#endif  // ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_HEAD_CUH_
