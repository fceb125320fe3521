// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_KERNELS_CPU_WORD2VEC_SIGMOID_BCE_H_
#define ONESTEP_KERNELS_CPU_WORD2VEC_SIGMOID_BCE_H_

#include <cstdint>

namespace onestep::cpu {

// Sigmoid binary cross-entropy of z[rows,cols] against labels y. Element (r,c)
// has weight mask[r] weights[g,c], where g = r / block_rows.
struct SigmoidBceArgs {
  const float* z;
  const float* mask;         // [rows]
  const float* weights;      // [rows / block_rows, cols]
  const float* labels;       // the shape of weights, or null
  int64_t positives;         // without labels, y is 1 in the first `positives`
                             // columns and 0 in the others
  int64_t cols, block_rows;  // block_rows >= 1
};

// For r in [begin, end): row_loss[r] = the sum over c of
// mask w (max(z,0) - y z + log1p(exp(-|z|))), with w the weight above; it is
// finite for any finite z.
void SigmoidBceRows(const SigmoidBceArgs& args, float* row_loss, int64_t begin,
                    int64_t end);
// For r in [begin, end): dz = mask w (sigmoid(z) - y); dz may alias z.
void SigmoidBceGradRows(const SigmoidBceArgs& args, float* dz, int64_t begin,
                        int64_t end);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_WORD2VEC_SIGMOID_BCE_H_
