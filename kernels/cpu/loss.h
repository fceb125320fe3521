// SPDX-License-Identifier: Apache-2.0
// Softmax and losses, row by row, through log-sum-exp: finite for any finite
// logits. Rows [begin, end) of [rows, cols] are done, so that rows can be
// shared out: the bits of a row do not depend on the others. Per-row results
// are summed in order by SumRows.
#ifndef ONESTEP_KERNELS_CPU_LOSS_H_
#define ONESTEP_KERNELS_CPU_LOSS_H_

#include <cstdint>

namespace onestep::cpu {

// y = softmax(x) over columns; y may be x.
void Softmax(const float* x, float* y, int64_t cols, int64_t begin,
             int64_t end);
// dx = (dy - sum_c(dy y)) y; dx may be y or dy.
void SoftmaxGrad(const float* y, const float* dy, float* dx, int64_t cols,
                 int64_t begin, int64_t end);
// row_loss[r] = logsumexp(z[r]) - z[r, label[r]]; NaN when any logit of the
// row is not finite, -inf included, so that divergence shows at once.
void NllRows(const float* logits, const int32_t* labels, float* row_loss,
             int64_t cols, int64_t begin, int64_t end);
// y = p - onehot(labels); y may be p.
void MinusOneHot(const float* p, const int32_t* labels, float* y, int64_t cols,
                 int64_t begin, int64_t end);
// row_loss[r] = sum_c (y - t)^2.
void MseRows(const float* y, const float* t, float* row_loss, int64_t cols,
             int64_t begin, int64_t end);
// dy = alpha (y - t) over n values; dy may be y or t.
void MseGrad(float alpha, const float* y, const float* t, float* dy, int64_t n);
// row_correct[r] = 1 when the first largest logit is at the label and every
// logit of the row is finite, else 0.
void CorrectRows(const float* logits, const int32_t* labels, float* row_correct,
                 int64_t cols, int64_t begin, int64_t end);

// The fused forms: loss, count and gradient of a row in one visit. The label
// of row r is labels[indices[r]], or labels[r] when indices is null.
// dlogits = alpha * (softmax(z) - onehot), respectively
// dlogits = alpha * (z - onehot); dlogits may be logits. row_loss is that of
// NllRows, respectively of MseRows.
void SoftmaxXentGradRows(const float* logits, const int32_t* labels,
                         const int32_t* indices, float alpha, float* dlogits,
                         float* row_loss, float* row_correct, int64_t cols,
                         int64_t begin, int64_t end);
void MseGradRows(const float* logits, const int32_t* labels,
                 const int32_t* indices, float alpha, float* dlogits,
                 float* row_loss, float* row_correct, int64_t cols,
                 int64_t begin, int64_t end);

// alpha * sum of x[0..n), in order, accumulated in float64.
float SumRows(const float* x, float alpha, int64_t n);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_LOSS_H_
