// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_STEP_BLOCK_H_
#define ONESTEP_TRAINER_WORD2VEC_STEP_BLOCK_H_

#include <cstdint>
#include <vector>

namespace onestep {

// The inputs of some steps of the window graph (window_graph.h), one behind
// another, and their losses.
struct StepBlock {
  StepBlock(int64_t capacity, int64_t contexts_per_step,
            int64_t outputs_per_step)
      : capacity(capacity),
        num_contexts(contexts_per_step),
        num_outputs(outputs_per_step),
        contexts(capacity * contexts_per_step),
        mask(capacity * contexts_per_step),
        spread(capacity * contexts_per_step),
        outputs(capacity * outputs_per_step),
        weights(capacity * outputs_per_step, 1.0f),
        labels(capacity * outputs_per_step),
        centres(capacity),
        loss(capacity) {}

  static int64_t Bytes(int64_t capacity, int64_t contexts_per_step,
                       int64_t outputs_per_step) {
    return 4 * capacity * (3 * contexts_per_step + 3 * outputs_per_step + 2);
  }

  const int64_t capacity, num_contexts, num_outputs;  // C, N
  int64_t steps = 0;
  int64_t words = 0;  // of the corpus, that were read for these steps
  int64_t used = 0;   // of those, not left out by subsampling
  int64_t pairs = 0;  // of a context, or CBOW's mean, with a centre
  std::vector<int32_t> contexts;       // [steps,C], rows of `in`
  std::vector<float> mask, spread;     // [steps,C]; CBOW: mask is the mean's
  std::vector<int32_t> outputs;        // [steps,N], rows of `out`
  std::vector<float> weights, labels;  // [steps,N]
  std::vector<int32_t> centres;        // [steps], words
  std::vector<float> loss;             // [steps]
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_STEP_BLOCK_H_
