// SPDX-License-Identifier: Apache-2.0
// The whole train step of a network with one hidden layer, its hidden units
// split over blocks: block g of G has columns [g h, (g+1) h) of w1 and the same
// rows of w2. The blocks then exchange only the partial logits [batch,
// classes], once a step:
//
//   x  = alpha * images[indices]             u8 -> f32 [batch, features]
//   h  = act(x w1 + b1)                      the block's columns
//   p  = h w2                                partial logits -> exchange
//   z  = sum of p over blocks, in order, + b2
//   loss, correct; d = -lr/batch (softmax(z) - onehot(labels[indices]))
//   e  = (d w2^T) act'(h)                    the block's columns, old w2
//   w2 += h^T d   b2 += sum d   w1 += x^T e   b1 += sum e
//
// Two tiers run it. Tier fused launches three kernels a step: forward, loss,
// backward. Tier persistent launches one cluster of blocks that keeps the
// weights in shared memory and runs many steps; each block pushes its partial
// logits into the shared memory of all others. Sums are taken in a fixed order,
// so that a run repeats bit by bit. One launch may train many models on the
// same rows: each has blocks of its own (in tier persistent a cluster of its
// own) and the bits that it has when it is trained alone.
#ifndef ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_HIDDEN_SPLIT_H_
#define ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_HIDDEN_SPLIT_H_

#include <cstdint>
#include <string>

#include "kernels/cuda/hidden_split/tier.h"
#include "kernels/kernels.h"
#include "kernels/launch.h"

namespace onestep::cuda {

struct HiddenSplitShape {
  int64_t batch = 0, features = 0, hidden = 0, classes = 0;
  Activation act = Activation::kRelu;  // its gradient reads its result
  float alpha = 1;
  CudaFirstLayer first_layer = CudaFirstLayer::kFma;
  int64_t models = 1;  // the sizes above are those of one model
};

// What the device allows. The defaults are an H100's.
struct DeviceLimits {
  int shared_bytes = 232448;  // of a block, with opt-in
  int max_cluster = 16;       // 8 where 16 cannot be placed; 1: no clusters
};

struct HiddenSplitPlan {
  CudaTier tier = CudaTier::kFused;
  HiddenSplitShape shape;
  std::string refusal;  // why the tier cannot take the shape; "": it can
  // G. In tier persistent a power of two: some blocks may have no columns.
  int blocks = 0;
  int64_t workspace_bytes = 0;  // device memory, for all models together
};
// REQUIRES: the tier is kFused or kPersistent, shape.first_layer is not kAuto.
HiddenSplitPlan PlanHiddenSplit(CudaTier tier, const HiddenSplitShape& shape,
                                const DeviceLimits& limits);

// Device addresses. A value that advances with the step s of the run
// (control->step plus a launch's offset) is at base + s * stride elements; with
// stride 0 it stays. The models' values of lr, loss, correct and the weights
// lie one after the other.
struct HiddenSplitBuffers {
  const uint8_t* images;   // [N, features]
  const int32_t* labels;   // [N]
  const int32_t* indices;  // [batch]
  int64_t indices_stride;
  const float* lr;  // []
  int64_t lr_stride;
  float *w1, *b1, *w2, *b2;  // [features,hidden] [hidden] [hidden,classes] ..
  float* loss;               // []; null: not written
  int64_t loss_stride;
  float* correct;  // []; null: not written
  int64_t correct_stride;
  StepControl* control;  // only read
  void* workspace;       // zeroed once, before the first launch
};

// Tier fused: the three kernels of step control->step + offset, to run in this
// order. fused.cuh says which buffers each kernel reads and writes: the
// backward kernel alone writes results and weights.
Launch HiddenSplitForward(const HiddenSplitPlan&, const HiddenSplitBuffers&,
                          int64_t offset);
Launch HiddenSplitLoss(const HiddenSplitPlan&, const HiddenSplitBuffers&,
                       int64_t offset);
Launch HiddenSplitBackward(const HiddenSplitPlan&, const HiddenSplitBuffers&,
                           int64_t offset);

// Tier persistent: `steps` steps, from step `first` of the run on. The launch
// leaves control as it is.
struct PersistentSignals {
  // Pinned; null: the host cannot stop the launch. Nonzero stops all blocks of
  // a model after the same step. The kernel polls it before the first step and
  // after every 8th, so that at least one step runs. Models stop independently.
  const uint32_t* stop;
  // Pinned; null: not written. The number of steps this launch has completed,
  // written after every 8th and at the end.
  uint32_t* progress;
  // Of one wait for another block or a copy; the kernel traps when it is over.
  uint64_t timeout_ns;
};
Launch HiddenSplitPersistent(const HiddenSplitPlan&, const HiddenSplitBuffers&,
                             int64_t first, int64_t steps,
                             const PersistentSignals& signals);

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_HIDDEN_SPLIT_H_
