// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_KERNELS_CPU_WORD2VEC_SIGMOID_BCE_H_
#define ONESTEP_KERNELS_CPU_WORD2VEC_SIGMOID_BCE_H_

#include <cstdint>

namespace onestep::cpu {

// Sigmoid binary cross-entropy of z[rows,cols] against labels y, the element
// (r,c) weighted by mask[r] w[g,c], where g = r / block_rows.
struct SigmoidBceArgs {
  const float* z;
  const float* mask;         // [rows]
  const float* weights;      // [rows / block_rows, cols]
  const float* labels;       // as weights; null: see positives
  int64_t positives;         // without labels: so many columns have 1, others 0
  int64_t cols, block_rows;  // block_rows >= 1
};

// row_loss[r] = sum over c of mask w (max(z,0) - y z + log1p(exp(-|z|))), which
// is finite for any finite z, for r in [begin, end).
void SigmoidBceRows(const SigmoidBceArgs& args, float* row_loss, int64_t begin,
                    int64_t end);
// dz = mask w (sigmoid(z) - y); dz may be z.
void SigmoidBceGradRows(const SigmoidBceArgs& args, float* dz, int64_t begin,
                        int64_t end);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_WORD2VEC_SIGMOID_BCE_H_
