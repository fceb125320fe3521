// SPDX-License-Identifier: Apache-2.0
// Complete train steps of a window of words (Mikolov et al. 2013): gather the
// rows, compute the dot products and the logistic loss, and update both tables
// in place. Each step sees the updates of the previous one.
#ifndef ONESTEP_KERNELS_CPU_WORD2VEC_WINDOW_H_
#define ONESTEP_KERNELS_CPU_WORD2VEC_WINDOW_H_

#include <cstdint>

namespace onestep::cpu {

// The arguments of consecutive steps of C contexts and N outputs each. Arrays
// have one leading dimension of steps: step t uses contexts[t * C ...].
struct WindowArgs {
  float *in, *out;  // tables f32[.,cols], which do not overlap
  int64_t cols;
  int64_t num_contexts, num_outputs;  // C, N
  const int32_t* contexts;            // [C]: rows of `in`
  const float* mask;       // [C]: a context's weight; CBOW: its weight in the
                           // mean
  const float* spread;     // [C]: CBOW: a context's share of the gradient
  const int32_t* outputs;  // [N]: rows of `out`
  const float* weights;    // [N]
  const float* labels;     // [N]; null: the first `positives` are 1, others 0
  int64_t positives;
  const float* lr;      // step t reads lr[t * lr_stride]
  int64_t lr_stride;    // 0: one value for all steps
  float* loss;          // step t writes loss[t * loss_stride]
  int64_t loss_stride;  // 0: one value for all steps
  void* scratch;        // WindowScratchBytes bytes, aligned to 64
};

int64_t WindowScratchBytes(int64_t num_contexts, int64_t num_outputs,
                           int64_t cols);

// Runs `steps` steps of the skip-gram model. With the old rows
// x[j] = in[contexts[j]] and o[k] = out[outputs[k]], weights w, labels y,
// z = x[j] . o[k] and d = mask[j] w[k] (sigmoid(z) - y[k]), a step computes
//   loss = sum over j, k of mask[j] w[k] (softplus(z) - y[k] z)
//   in[contexts[j]] -= lr sum over k of d o[k]
//   out[outputs[k]] -= lr sum over j of d x[j]
// A row that is named several times gets the sum of its updates. Rows of weight
// 0 are neither read nor written. Every split of the steps over calls is
// bit-identical. REQUIRES: every index is a row of its table.
void SkipGramWindows(const WindowArgs& args, int64_t steps);

// Runs `steps` steps of CBOW: the skip-gram step with a single context
// x = sum over j of mask[j] in[contexts[j]] of mask 1, and
//   in[contexts[j]] -= lr spread[j] sum over k of d o[k]
void CbowWindows(const WindowArgs& args, int64_t steps);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_WORD2VEC_WINDOW_H_
