// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_LOWER_CUDA_CUDA_HIDDEN_SPLIT_H_
#define ONESTEP_COMPILER_LOWER_CUDA_CUDA_HIDDEN_SPLIT_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "kernels/cuda/hidden_split/hidden_split.h"
#include "runtime/cuda/cuda_program.h"

namespace onestep {

// The shape and the slots of a step that the tiers fused and persistent can run
// (kernels/cuda/hidden_split/hidden_split.h).
struct HiddenSplitMatch {
  cuda::HiddenSplitShape shape;  // the caller sets first_layer
  std::vector<CudaSlot> slots;
  std::vector<CudaTable> tables;
  int images = -1, labels = -1, indices = -1, lr = -1;
  int w1 = -1, b1 = -1, w2 = -1, b2 = -1;
  int loss = -1, correct = -1;  // -1: not a result
  double flops = 0, bytes = 0;  // of a step
};

// Recognises a fused graph that is the train step of one hidden layer, softmax
// cross-entropy and plain SGD over rows of bytes. Unimplemented: what of the
// graph is something else.
absl::StatusOr<HiddenSplitMatch> MatchHiddenSplit(const Graph& graph);

// The program of that step in the planned tier. With `each` the host launches
// every kernel by itself. REQUIRES: plan.refusal is empty, plan.shape is that
// of `match`.
CudaSpec LowerHiddenSplit(const HiddenSplitMatch& match,
                          const cuda::HiddenSplitPlan& plan, bool each,
                          int64_t steps_per_launch);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_CUDA_CUDA_HIDDEN_SPLIT_H_
