// SPDX-License-Identifier: Apache-2.0
// Tier fused of the hidden-split step: three kernels a step. A block of the
// forward kernel has 8 hidden units and a tile of the batch, a block of the
// backward kernel 8 hidden units and a tile of the features, a block of the
// loss kernel some rows.
#ifndef ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_FUSED_CUH_
#define ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_FUSED_CUH_

#include "kernels/cuda/hidden_split/head.cuh"

namespace onestep::cuda::hidden_split {

// Reads images, indices, w1, b1, w2; writes the workspace's hidden, partials
// and old_w2. Grid: groups of hidden units, tiles of rows.
template <int kParts>
ONESTEP_KERNEL(kThreads, 1)
void HiddenSplitForwardKernel(StepArgs models) {
  const StepArgs args = OfModel(models);
  dev::WaitForPrerequisites();
  dev::TriggerDependents();
  const Layout& layout = args.layout;
  const int group = static_cast<int>(dev::BlockIndex().x);
  const int row0 = static_cast<int>(dev::BlockIndex().y) * layout.rows;
  const int rows = Smaller(layout.rows, args.batch - row0);
  const W1Slice slice(args, group * 8, 0);
  W1Load<1> load(slice);
  HeadLoad head(args, args.buffers.w2, args.buffers.b1, nullptr, group * 8);
  uint8_t* x = At<uint8_t>(layout.x);
  ZeroPads(layout, rows, args.features, x);
  GatherRows(args, IndicesOf(args, StepOf(args)) + row0, rows, 0, args.features,
             x);
  load.Finish(At<float>(layout.w1));
  head.Finish();
  dev::SyncBlock();
  ForwardHidden<1, kParts>(args, x, rows, slice.columns,
                           At<float>(layout.sums));
  const int64_t first_row = int64_t{group} * args.batch + row0;
  PartialLogits<1>(args, rows,
                   args.workspace.partials + first_row * args.classes);
  float* hidden = args.workspace.hidden + first_row * 8;
  for (int i = Thread(); i < rows * 8; i += kThreads) {
    hidden[i] = At<float>(layout.h)[i];
  }
  if (row0 == 0) {
    StoreW2(args, At<float>(layout.w2), group * 8, args.workspace.old_w2);
  }
}

// Reads labels, indices, lr, b2, partials; writes the workspace's dlogits,
// row_loss and row_correct. Shared memory: i32 labels of its rows.
ONESTEP_KERNEL(kThreads, 1)
void HiddenSplitLossKernel(StepArgs models) {
  const StepArgs args = OfModel(models);
  dev::WaitForPrerequisites();
  dev::TriggerDependents();
  const int64_t step = StepOf(args);
  const int all = kThreads >> args.layout.class_shift;
  const int row0 = static_cast<int>(dev::BlockIndex().x) * all;
  const int rows = Smaller(all, args.batch - row0);
  int32_t* labels = At<int32_t>(0);
  GatherLabels(args, IndicesOf(args, step) + row0, rows, labels);
  dev::SyncBlock();
  const Workspace& workspace = args.workspace;
  const int64_t first = int64_t{row0} * args.classes;
  LossGrad<true>(args, {.partials = workspace.partials + first,
                        .stride = int64_t{args.batch} * args.classes,
                        .b2 = args.buffers.b2,
                        .labels = labels,
                        .lr = LearningRateOf(args, step),
                        .rows = rows,
                        .padded_rows = rows,
                        .d = workspace.dlogits + first,
                        .row_loss = workspace.row_loss + row0,
                        .row_correct = workspace.row_correct + row0});
}

// Rows of dlogits and of the group's hidden, on their way to shared memory,
// with zeros to a multiple of 16 rows.
class BackwardRows {
 public:
  ONESTEP_DEVICE BackwardRows(const StepArgs& args, int group, int row0,
                              int rows)
      : args_(args),
        rows_(rows),
        from_d_(args.workspace.dlogits + int64_t{row0} * args.classes),
        from_h_(args.workspace.hidden +
                (int64_t{group} * args.batch + row0) * 8) {
    d_.Begin(To16(rows_) * args_.classes, [&](int i) { return D(i); });
    h_.Begin(To16(rows_) * 8, [&](int i) { return H(i); });
  }
  ONESTEP_DEVICE void Finish() {
    float* d = At<float>(args_.layout.d);
    float* h = At<float>(args_.layout.h);
    d_.Finish(
        To16(rows_) * args_.classes, [&](int i) { return D(i); },
        [&](int i, float v) { d[i] = v; });
    h_.Finish(
        To16(rows_) * 8, [&](int i) { return H(i); },
        [&](int i, float v) { h[i] = v; });
  }

 private:
  ONESTEP_DEVICE float D(int i) const {
    return LoadOrZero(i < rows_ * args_.classes, from_d_ + i, from_d_);
  }
  ONESTEP_DEVICE float H(int i) const {
    return LoadOrZero(i < rows_ * 8, from_h_ + i, from_h_);
  }

  const StepArgs& args_;
  const int rows_;
  const float *const from_d_, *const from_h_;
  Ahead<float, 1> d_, h_;
};

// Reads images, indices and the workspace; writes w1, b1, w2, b2, loss,
// correct. Grid: groups of hidden units, tiles of features, of which the first
// also has w2 and b1, and of the first group b2 and the results.
template <int kParts>
ONESTEP_KERNEL(kThreads, 1)
void HiddenSplitBackwardKernel(StepArgs models) {
  const StepArgs args = OfModel(models);
  dev::WaitForPrerequisites();
  dev::TriggerDependents();
  const Layout& layout = args.layout;
  const int group = static_cast<int>(dev::BlockIndex().x);
  const int feature0 = static_cast<int>(dev::BlockIndex().y) * layout.slots;
  const bool owner = feature0 == 0, first = owner && group == 0;
  const int64_t step = StepOf(args);
  float* new_w2 = At<float>(layout.new_w2);
  uint8_t* x = At<uint8_t>(layout.x);
  const W1Slice slice(args, group * 8, feature0);
  W1Load<1> load(slice);
  HeadLoad head(args, args.workspace.old_w2, owner ? args.buffers.b1 : nullptr,
                first ? args.buffers.b2 : nullptr, group * 8);
  for (int row0 = 0; row0 < args.batch; row0 += layout.rows) {
    const int rows = Smaller(layout.rows, args.batch - row0);
    BackwardRows backward(args, group, row0, rows);
    ZeroPads(layout, rows, slice.features, x);
    GatherRows(args, IndicesOf(args, step) + row0, rows, feature0,
               slice.features, x);
    backward.Finish();
    if (row0 == 0) {
      load.Finish(At<float>(layout.w1));
      head.Finish();
    }
    dev::SyncBlock();
    for (int i = Thread(); row0 == 0 && i < 8 * layout.w2_stride;
         i += kThreads) {
      new_w2[i] = At<float>(layout.w2)[i];
    }
    HiddenGrad<1, kParts>(args, rows);
    dev::SyncBlock();
    UpdateFirst<1, kParts, 2>(args, x, rows);
    if (owner) UpdateHead<1>(args, rows, new_w2);
    dev::SyncBlock();
  }
  StoreW1<1>(slice, At<float>(layout.w1));
  if (owner) {
    StoreW2(args, new_w2, group * 8, args.buffers.w2);
    StoreB1(args, group * 8);
  }
  if (!first) return;
  StoreB2(args, args.buffers.b2);
  if (Warp() == kWarps - 1) {
    WriteResults<true>(args, step, args.workspace.row_loss,
                       args.workspace.row_correct);
  }
}

}  // namespace onestep::cuda::hidden_split

#endif  // ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_FUSED_CUH_
