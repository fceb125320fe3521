// SPDX-License-Identifier: Apache-2.0
// Train steps of a window of words, whole: rows gathered, dots, logistic loss,
// and both tables updated in place (Mikolov et al. 2013). Each step reads rows
// as the one before left them.
#ifndef ONESTEP_KERNELS_CPU_WORD2VEC_WINDOW_H_
#define ONESTEP_KERNELS_CPU_WORD2VEC_WINDOW_H_

#include <cstdint>

namespace onestep::cpu {

// Steps of C contexts and N outputs. The arrays of all steps lie one behind
// another; a stride of 0 means the same value for all of them.
struct WindowArgs {
  float *in, *out;  // tables f32[.,cols], apart from each other
  int64_t cols;
  int64_t num_contexts, num_outputs;  // C, N
  const int32_t* contexts;            // [C], rows of `in`
  const float* mask;       // [C], a context's weight; of CBOW in the mean
  const float* spread;     // [C], CBOW: weight of the error it is given
  const int32_t* outputs;  // [N], rows of `out`
  const float* weights;    // [N]
  const float* labels;     // [N]; null: 1 of the first `positives`, else 0
  int64_t positives;
  const float* lr;
  int64_t lr_stride;
  float* loss;
  int64_t loss_stride;
  void* scratch;  // WindowScratchBytes, aligned to 64
};

int64_t WindowScratchBytes(int64_t num_contexts, int64_t num_outputs,
                           int64_t cols);

// With the old rows x[j] = in[contexts[j]], o[k] = out[outputs[k]], the weights
// w and labels y, z = x[j] o[k] and d = mask[j] w[k] (sigmoid(z) - y[k]):
//   loss = sum over j, k of mask[j] w[k] (softplus(z) - y[k] z)
//   in[contexts[j]] -= lr sum over k of d o[k]
//   out[outputs[k]] -= lr sum over j of d x[j]
// A row that is named twice is given both. Rows of weight 0 are not touched.
// REQUIRES: indices are inside the tables. The bits are those of any split of
// the steps over calls.
void SkipGramWindows(const WindowArgs& args, int64_t steps);

// The same with one x = sum over j of mask[j] in[contexts[j]], of mask 1;
//   in[contexts[j]] -= lr spread[j] sum over k of d o[k]
void CbowWindows(const WindowArgs& args, int64_t steps);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_WORD2VEC_WINDOW_H_
