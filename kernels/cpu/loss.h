// SPDX-License-Identifier: Apache-2.0
// Softmax and losses, row by row, through log-sum-exp, so that results are
// finite for any finite logits. Each function processes rows [begin, end) of
// [rows,cols]. Callers may split the rows over threads: the result of a row is
// bit-identical for every split. SumRows sums the per-row results in order.
#ifndef ONESTEP_KERNELS_CPU_LOSS_H_
#define ONESTEP_KERNELS_CPU_LOSS_H_

#include <cstdint>

namespace onestep::cpu {

// y = softmax(x) over the columns; y may alias x.
void Softmax(const float* x, float* y, int64_t cols, int64_t begin,
             int64_t end);
// dx = (dy - sum_c(dy y)) y; dx may alias y or dy.
void SoftmaxGrad(const float* y, const float* dy, float* dx, int64_t cols,
                 int64_t begin, int64_t end);
// row_loss[r] = logsumexp(z[r]) - z[r, labels[r]]. It is NaN when any logit of
// the row is not finite, -inf included, so that divergence shows at once.
void NllRows(const float* logits, const int32_t* labels, float* row_loss,
             int64_t cols, int64_t begin, int64_t end);
// y = p - onehot(labels); y may alias p.
void MinusOneHot(const float* p, const int32_t* labels, float* y, int64_t cols,
                 int64_t begin, int64_t end);
// row_loss[r] = sum_c (y - t)^2.
void MseRows(const float* y, const float* t, float* row_loss, int64_t cols,
             int64_t begin, int64_t end);
// dy = alpha (y - t) over n values; dy may alias y or t.
void MseGrad(float alpha, const float* y, const float* t, float* dy, int64_t n);
// row_correct[r] is 1 when every logit of the row is finite and the first of
// the largest ones is at the label; else it is 0.
void CorrectRows(const float* logits, const int32_t* labels, float* row_correct,
                 int64_t cols, int64_t begin, int64_t end);

// The fused forms compute loss, correctness and gradient of a row in one pass.
// The label of row r is labels[indices[r]], or labels[r] when indices is null.
// SoftmaxXentGradRows: dlogits = alpha * (softmax(z) - onehot), and row_loss is
// that of NllRows. MseGradRows: dlogits = alpha * (z - onehot), and row_loss is
// that of MseRows. dlogits may alias logits.
void SoftmaxXentGradRows(const float* logits, const int32_t* labels,
                         const int32_t* indices, float alpha, float* dlogits,
                         float* row_loss, float* row_correct, int64_t cols,
                         int64_t begin, int64_t end);
void MseGradRows(const float* logits, const int32_t* labels,
                 const int32_t* indices, float alpha, float* dlogits,
                 float* row_loss, float* row_correct, int64_t cols,
                 int64_t begin, int64_t end);

// Returns alpha times the sum of x[0..n), taken in order in float64.
float SumRows(const float* x, float alpha, int64_t n);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_LOSS_H_
