// SPDX-License-Identifier: Apache-2.0
// T2 of the hidden-split step: one kernel a step, which finishes step t - 1 and
// begins step t; a block has 8 hidden units. No block waits for another: the
// partial logits of a step lie in the workspace, by its parity, until the next
// launch. Of the weights, a block reads and writes its own, and b2, which all
// read and block 0 writes, is in the workspace twice.
//
// After its prerequisites a launch loads all weights, partial logits and h at
// once, one latency of L2; then it has 5 block barriers.
#ifndef ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_HIDDEN_SPLIT_T2_CUH_
#define ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_HIDDEN_SPLIT_T2_CUH_

#include "kernels/cuda/hidden_split/hidden_split_head.cuh"

namespace onestep::cuda::hidden_split {

// The block's part of the workspace.
struct PipelinedBlock {
  int group;
  int64_t begun;  // the step that this launch begins

  ONESTEP_DEVICE float* Partials(const StepArgs& args, int64_t step,
                                 int block) const {
    return args.workspace.partials + ((step & 1) * args.blocks + block) *
                                         (int64_t{args.batch} * args.classes);
  }
  ONESTEP_DEVICE float* B2(const StepArgs& args, int64_t step) const {
    return args.workspace.b2 + (step & 1) * args.classes;
  }
  ONESTEP_DEVICE float* Hidden(const StepArgs& args) const {
    return args.workspace.hidden + int64_t{group} * args.batch * 8;
  }
};

// Bytes of a step, which no kernel writes.
ONESTEP_DEVICE void LoadBatch(const StepArgs& args, const int32_t* indices,
                              uint8_t* x) {
  ZeroPads(args.layout, args.batch, args.features, x);
  GatherRows(args, indices, args.batch, 0, args.features, x);
}

// Step begun - 1, from its partial logits on. In shared memory are its x (the
// first of the two) and labels; the weights are on their way there, and new and
// not yet stored when it returns.
template <int kParts>
ONESTEP_DEVICE void FinishStep(const StepArgs& args,
                               const PipelinedBlock& block, W1Load<1>& w1,
                               HeadLoad& head) {
  const Layout& layout = args.layout;
  const int64_t step = block.begun - 1;
  float* row_loss = At<float>(layout.row_loss);
  float* row_correct = At<float>(layout.row_correct);
  const auto load_hidden = [&](int i) {
    const float* from = block.Hidden(args);
    return LoadOrZero(i < args.batch * 8, from + i, from);
  };
  Ahead<float, 1> hidden;
  hidden.Begin(To16(args.batch) * 8, load_hidden);
  LossGrad<true>(args, {.partials = block.Partials(args, step, 0),
                        .stride = int64_t{args.batch} * args.classes,
                        .b2 = block.B2(args, step),
                        .labels = At<int32_t>(layout.labels),
                        .lr = LearningRateOf(args, step),
                        .rows = args.batch,
                        .padded_rows = To16(args.batch),
                        .d = At<float>(layout.d),
                        .row_loss = row_loss,
                        .row_correct = row_correct});
  hidden.Finish(To16(args.batch) * 8, load_hidden,
                [&](int i, float v) { At<float>(layout.h)[i] = v; });
  head.Finish();
  w1.Finish(At<float>(layout.w1));
  dev::SyncBlock();
  HiddenGrad<1, kParts>(args, args.batch);
  dev::SyncBlock();
  UpdateHead<1>(args, args.batch, At<float>(layout.w2));
  UpdateFirst<1, kParts, 4>(args, At<uint8_t>(layout.x), args.batch);
  if (block.group == 0 && Warp() == kWarps - 1) {
    WriteResults<false>(args, step, row_loss, row_correct);
  }
  dev::SyncBlock();
}

// What FinishStep made, to global memory.
ONESTEP_DEVICE void StoreUpdated(const StepArgs& args,
                                 const PipelinedBlock& block,
                                 const W1Slice& slice, bool last) {
  StoreW1<1>(slice, At<float>(args.layout.w1));
  StoreW2(args, At<float>(args.layout.w2), block.group * 8, args.buffers.w2);
  StoreB1(args, block.group * 8);
  if (block.group == 0) {
    StoreB2(args, last ? args.buffers.b2 : block.B2(args, block.begun));
  }
}

// Reads all of the buffers; writes w1, b1, w2, b2 (the last launch), loss and
// correct of step begun - 1, and the workspace. Grid: groups of hidden units.
template <int kParts>
ONESTEP_KERNEL(kThreads, 1)
void HiddenSplitPipelinedKernel(PipelinedArgs pipelined) {
  const StepArgs args = OfModel(pipelined.step);
  const Layout& layout = args.layout;
  const bool first = pipelined.first != 0, last = pipelined.last != 0;
  // Before the first launch of a chain may stand what moves control->step.
  if (first) dev::WaitForPrerequisites();
  const PipelinedBlock block = {static_cast<int>(dev::BlockIndex().x),
                                StepOf(args)};
  uint8_t* finished_x = At<uint8_t>(layout.x);
  uint8_t* begun_x = finished_x + layout.x_bytes;
  if (!first) {
    const int32_t* indices = IndicesOf(args, block.begun - 1);
    LoadBatch(args, indices, finished_x);
    GatherLabels(args, indices, args.batch, At<int32_t>(layout.labels));
  }
  if (!last) LoadBatch(args, IndicesOf(args, block.begun), begun_x);
  dev::SyncBlock();
  if (!first) dev::WaitForPrerequisites();
  // Not earlier: then a launch that begins has only its predecessor before it.
  dev::TriggerDependents();

  const W1Slice slice(args, block.group * 8, 0);
  W1Load<1> w1(slice);
  HeadLoad head(args, args.buffers.w2, args.buffers.b1,
                first ? args.buffers.b2 : block.B2(args, block.begun - 1),
                block.group * 8);
  if (first) {
    w1.Finish(At<float>(layout.w1));
    head.Finish();
    dev::SyncBlock();
    if (block.group == 0) StoreB2(args, block.B2(args, block.begun));
  } else {
    FinishStep<kParts>(args, block, w1, head);
    StoreUpdated(args, block, slice, last);
  }
  if (last) return;
  ForwardHidden<1, kParts>(args, begun_x, args.batch, slice.columns,
                           At<float>(layout.sums));
  PartialLogits<1>(args, args.batch,
                   block.Partials(args, block.begun, block.group));
  for (int i = Thread(); i < args.batch * 8; i += kThreads) {
    block.Hidden(args)[i] = At<float>(layout.h)[i];
  }
}

}  // namespace onestep::cuda::hidden_split

#endif  // ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_HIDDEN_SPLIT_T2_CUH_
