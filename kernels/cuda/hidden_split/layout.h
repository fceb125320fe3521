// SPDX-License-Identifier: Apache-2.0
// How the hidden-split step (kernels/cuda/hidden_split/hidden_split.h) lays out
// a block's shared memory and the workspace: plain data that the plan sizes,
// the launchers pass and the kernels read.
#ifndef ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_LAYOUT_H_
#define ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_LAYOUT_H_

#include <cstdint>

#include "kernels/cuda/hidden_split/hidden_split.h"

namespace onestep::cuda::hidden_split {

// Threads of a block: 4 warps per scheduler of a multiprocessor hide latencies.
inline constexpr int kThreads = 512;
inline constexpr int kWarps = kThreads / 32;
inline constexpr int kMaxClasses = 32;     // one lane each
inline constexpr int kMaxRows = kThreads;  // persistent: a thread loads a row
inline constexpr int kChunkRows = 32;      // in a warp's registers at once
inline constexpr int kBackwardRows = 64;   // fused: in shared memory at once
inline constexpr int kBackwardFeatures = 128;  // fused: of a block

constexpr int64_t RoundUp(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

// The shared memory of a block that has `columns` hidden units, for up to
// `rows` rows and `slots` features: byte offsets, multiples of 16.
struct Layout {
  int32_t columns;      // 8 or 16
  int32_t rows;         // a multiple of 16
  int32_t slots;        // features, to a multiple of 32
  int32_t x_stride;     // bytes, an odd multiple of 16: no bank conflicts
  int32_t class_shift;  // 1 << class_shift lanes have a row's classes
  int32_t w2_stride;    // odd
  int32_t w1;           // f32 [columns / 8, slots, 8]
  int32_t w2, b1, b2;   // f32 [columns, w2_stride] [columns] [classes]
  int32_t new_w2;       // like w2; for tier fused, which needs both
  int32_t x, x_bytes;   // u8 [rows, x_stride], x_buffers times
  int32_t h, d, e;      // f32 [rows, columns] [rows, classes] [rows, columns]
  int32_t parts;        // e in bf16 pairs, [3, columns / 8, rows / 2, 8]
  // f32 [kWarps, kChunkRows, columns]; tier persistent keeps it in the inbox of
  // the next step.
  int32_t sums;
  int32_t labels;                 // i32 [2, rows]
  int32_t row_loss, row_correct;  // f32 [rows]
  // Tier persistent: a message is a header of 16 bytes and f32 [batch,
  // classes]. Inbox and outbox are there twice, by the parity of the step.
  int32_t message;             // bytes
  int32_t inbox, inbox_bytes;  // [2], of each: [blocks, message]
  int32_t outbox;              // [2, message]
  int32_t barriers;            // of x, by parity, then of the inbox
  int64_t bytes;
};

struct LayoutSizes {
  int64_t columns, rows, features, classes;
  int64_t x_buffers = 1;
  int64_t messages = 0;  // tier persistent: the number of blocks
};

// REQUIRES: sizes of at least 1. Where `bytes` is more than a device has, the
// offsets mean nothing.
constexpr Layout LayOut(const LayoutSizes& sizes) {
  Layout layout = {};
  int64_t end = 0;
  const auto take = [&end](int64_t bytes) {
    const int64_t at = end;
    end += RoundUp(bytes, 16);
    return static_cast<int32_t>(at);
  };
  const int64_t rows = RoundUp(sizes.rows, 16);
  const int64_t slots = RoundUp(sizes.features, 32);
  const int64_t x_stride = slots + 16;
  layout.columns = static_cast<int32_t>(sizes.columns);
  layout.rows = static_cast<int32_t>(rows);
  layout.slots = static_cast<int32_t>(slots);
  layout.x_stride = static_cast<int32_t>(x_stride);
  while ((1 << layout.class_shift) < sizes.classes) ++layout.class_shift;
  layout.w2_stride = static_cast<int32_t>(sizes.classes | 1);
  layout.w1 = take(4 * sizes.columns * slots);
  layout.w2 = take(4 * sizes.columns * layout.w2_stride);
  layout.new_w2 = take(4 * sizes.columns * layout.w2_stride);
  layout.b1 = take(4 * sizes.columns);
  layout.b2 = take(4 * sizes.classes);
  layout.x_bytes = static_cast<int32_t>(rows * x_stride);
  layout.x = take(sizes.x_buffers * rows * x_stride);
  layout.h = take(4 * rows * sizes.columns);
  layout.d = take(4 * rows * sizes.classes);
  layout.e = take(4 * rows * sizes.columns);
  layout.parts = take(3 * 2 * rows * sizes.columns);
  layout.labels = take(2 * 4 * rows);
  layout.row_loss = take(4 * rows);
  layout.row_correct = take(4 * rows);
  const int64_t sums = int64_t{4} * kWarps * kChunkRows * sizes.columns;
  if (sizes.messages == 0) {
    layout.sums = take(sums);
  } else {
    const int64_t message = 16 + RoundUp(4 * sizes.rows * sizes.classes, 16);
    layout.message = static_cast<int32_t>(message);
    const int64_t received = sizes.messages * message;
    const int64_t inbox_bytes = received > sums ? received : sums;
    layout.inbox_bytes = static_cast<int32_t>(inbox_bytes);
    layout.inbox = take(2 * inbox_bytes);
    layout.outbox = take(2 * message);
    layout.barriers = take(4 * 8);
  }
  layout.bytes = end;
  return layout;
}

// Hidden units of a block: 8 if the plan's blocks then cover all, else 16.
inline int64_t ColumnsOf(const HiddenSplitPlan& plan) {
  return int64_t{plan.blocks} * 8 >= plan.shape.hidden ? 8 : 16;
}

// Models are along the z of a grid.
inline uint32_t Models(const HiddenSplitPlan& plan) {
  return static_cast<uint32_t>(plan.shape.models);
}

// The layouts of tier fused's forward and backward kernels; that of tier
// persistent.
inline Layout ForwardLayout(const HiddenSplitShape& shape) {
  const int64_t rows = shape.batch < kChunkRows ? shape.batch : kChunkRows;
  return LayOut({8, rows, shape.features, shape.classes});
}
inline Layout BackwardLayout(const HiddenSplitShape& shape) {
  const int64_t rows =
      shape.batch < kBackwardRows ? shape.batch : kBackwardRows;
  const int64_t features =
      shape.features < kBackwardFeatures ? shape.features : kBackwardFeatures;
  return LayOut({8, rows, features, shape.classes});
}
inline Layout PersistentLayout(const HiddenSplitPlan& plan) {
  return LayOut({ColumnsOf(plan), plan.shape.batch, plan.shape.features,
                 plan.shape.classes, 2, plan.blocks});
}

// Device memory through which the kernels of a step in tier fused pass values.
struct Workspace {
  float* partials;                // [blocks, batch, classes]
  float* hidden;                  // [blocks, batch, 8]
  float* dlogits;                 // [batch, classes]
  float *row_loss, *row_correct;  // [batch]
  float* old_w2;                  // [hidden, classes]
};

// Divides `base`, which may be null, and sets `bytes` to what one model takes.
inline Workspace CutWorkspace(const HiddenSplitPlan& plan, void* base,
                              int64_t* bytes) {
  const HiddenSplitShape& shape = plan.shape;
  int64_t end = 0;
  const auto take = [&](int64_t floats) {
    const int64_t at = end;
    end += RoundUp(4 * floats, 256);
    return base == nullptr ? nullptr : static_cast<float*>(base) + at / 4;
  };
  Workspace cut = {};
  if (plan.tier == CudaTier::kFused) {
    cut.partials = take(plan.blocks * shape.batch * shape.classes);
    cut.hidden = take(plan.blocks * shape.batch * 8);
    cut.dlogits = take(shape.batch * shape.classes);
    cut.row_loss = take(shape.batch);
    cut.row_correct = take(shape.batch);
    cut.old_w2 = take(shape.hidden * shape.classes);
  }
  *bytes = end;
  return cut;
}

// What every kernel of the family takes.
struct StepArgs {
  HiddenSplitBuffers buffers;
  Workspace workspace;
  Layout layout;
  int64_t workspace_floats;  // of a model
  // The step, counted from control->step; in tier persistent from 0.
  int64_t offset;
  int32_t batch, features, hidden, classes, blocks;
  Activation act;
  float alpha, inverse_batch;
};
struct PersistentArgs {
  StepArgs step;
  int64_t steps;
  PersistentSignals signals;
};

inline StepArgs MakeStepArgs(const HiddenSplitPlan& plan,
                             const HiddenSplitBuffers& buffers,
                             const Layout& layout, int64_t offset) {
  const HiddenSplitShape& shape = plan.shape;
  int64_t workspace_bytes = 0;
  const Workspace workspace =
      CutWorkspace(plan, buffers.workspace, &workspace_bytes);
  return {.buffers = buffers,
          .workspace = workspace,
          .layout = layout,
          .workspace_floats = workspace_bytes / 4,
          .offset = offset,
          .batch = static_cast<int32_t>(shape.batch),
          .features = static_cast<int32_t>(shape.features),
          .hidden = static_cast<int32_t>(shape.hidden),
          .classes = static_cast<int32_t>(shape.classes),
          .blocks = plan.blocks,
          .act = shape.act,
          .alpha = shape.alpha,
          .inverse_batch = 1.0f / static_cast<float>(shape.batch)};
}

}  // namespace onestep::cuda::hidden_split

#endif  // ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_LAYOUT_H_
