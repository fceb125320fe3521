// SPDX-License-Identifier: Apache-2.0
// The whole train step of a network with one hidden layer, its hidden units
// split over blocks: block g of G owns columns [g h, (g+1) h) of w1 and the
// same rows of w2. Then a step has one exchange between blocks, of the partial
// logits [batch, classes], and all else is a block's own:
//
//   x  = alpha * images[indices]             u8 -> f32 [batch, features]
//   h  = act(x w1 + b1)                      own columns
//   p  = h w2                                partial logits -> exchange
//   z  = sum of p over blocks, in order, + b2
//   loss, correct; d = -lr/batch (softmax(z) - onehot(labels[indices]))
//   e  = (d w2^T) act'(h)                    own columns, old w2
//   w2 += h^T d   b2 += sum d   w1 += x^T e   b1 += sum e
//
// Two forms of it, the tiers: T1, three kernels a step (forward; loss;
// backward); T3, one cluster of blocks that keeps the weights in shared memory
// and runs many steps in one launch, the partial logits pushed from block to
// block. Sums are in a fixed order: a run repeats bit by bit. A launch may
// train many models on the same rows: each has blocks of its own, in T3 a
// cluster, and the bits that it has alone.
#ifndef ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_HIDDEN_SPLIT_H_
#define ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_HIDDEN_SPLIT_H_

#include <cstdint>
#include <string>

#include "kernels/kernels.h"
#include "kernels/launch.h"

namespace onestep::cuda {

enum class Tier : uint8_t { kT1, kT3 };

// How x w1 and x^T e are multiplied. Bytes are exact in bf16, so that with the
// other factor as the sum of three bf16 numbers (24 bits) tensor cores give
// the products of fp32; with one part it is what --math bf16 means.
enum class FirstLayer : uint8_t { kFma, kSplit3, kBf16 };

struct HiddenSplitShape {
  int64_t batch = 0, features = 0, hidden = 0, classes = 0;
  Act act = Act::kRelu;  // none, relu, tanh or sigmoid
  float alpha = 1;
  FirstLayer first_layer = FirstLayer::kFma;
  int64_t models = 1;  // all else is of one
};

// Of the device, or of the one planned for.
struct DeviceLimits {
  int multiprocessors = 132;
  int shared_bytes = 232448;  // of a block, with opt-in
  int max_cluster = 16;       // 8 when 16 cannot be placed, 1: no clusters
};

struct HiddenSplitPlan {
  Tier tier = Tier::kT1;
  HiddenSplitShape shape;
  std::string refusal;  // why the tier cannot take the shape; "": it can
  int blocks = 0;       // G, for T3 a power of two: some may have no columns
  int64_t workspace_bytes = 0;  // device memory that the steps share, in all
};
HiddenSplitPlan PlanHiddenSplit(Tier tier, const HiddenSplitShape& shape,
                                const DeviceLimits& limits);

// Device addresses. What advances with the step s of the run (control->step
// plus a launch's offset) is at base + s * stride elements; stride 0: it stays.
// Of lr, loss, correct and the weights those of the models lie one after the
// other.
struct HiddenSplitBuffers {
  const uint8_t* images;   // [N, features]
  const int32_t* labels;   // [N]
  const int32_t* indices;  // [batch]
  int64_t indices_stride;
  const float* lr;  // []
  int64_t lr_stride;
  float *w1, *b1, *w2, *b2;  // [features,hidden] [hidden] [hidden,classes] ..
  float* loss;               // []; null: not wanted
  int64_t loss_stride;
  float* correct;  // []; null: not wanted
  int64_t correct_stride;
  StepControl* control;  // read only here
  void* workspace;       // zeroed once
};

// T1: the three kernels of step control->step + offset, to run in this order.
// Which of the buffers each reads and writes stands with its kernel: the
// results and all weights are the backward kernel's.
Launch HiddenSplitForward(const HiddenSplitPlan&, const HiddenSplitBuffers&,
                          int64_t offset);
Launch HiddenSplitLoss(const HiddenSplitPlan&, const HiddenSplitBuffers&,
                       int64_t offset);
Launch HiddenSplitBackward(const HiddenSplitPlan&, const HiddenSplitBuffers&,
                           int64_t offset);

// T3: `steps` steps from step `first` of the run on, which control does not
// change.
struct PersistentSignals {
  // Pinned; null: nothing does. Not 0 ends the run after the step in hand, for
  // all blocks of a model the same one, and the first at the earliest: it is
  // looked at before that and after every 8th. Models do not end together.
  const uint32_t* stop;
  // Pinned; null: not wanted. Steps done of this launch, after every 8th and at
  // the end.
  uint32_t* progress;
  uint64_t timeout_ns;  // of one wait; past it the kernel traps
};
Launch HiddenSplitPersistent(const HiddenSplitPlan&, const HiddenSplitBuffers&,
                             int64_t first, int64_t steps,
                             const PersistentSignals& signals);

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_HIDDEN_SPLIT_H_
