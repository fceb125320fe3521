// SPDX-License-Identifier: Apache-2.0
// The meaning of every op: plain loops, all values and accumulation in
// float64. The oracle that every backend is tested against, written for
// reading. Shapes are as in compiler/ir/ops.def: B rows, C columns.
#ifndef ONESTEP_KERNELS_REFERENCE_H_
#define ONESTEP_KERNELS_REFERENCE_H_

#include <cstdint>

#include "kernels/activation.h"
#include "kernels/update.h"

namespace onestep::reference {

// y[B,C] = table[indices[r], c]
void GatherRows(const double* table, const double* indices, double* y,
                int64_t rows, int64_t cols);
// y = table[V,cols] with x[r], r in [0, rows), added to its row indices[r], in
// order; y may be the table.
void ScatterAdd(const double* table, const double* indices, const double* x,
                double* y, int64_t table_rows, int64_t rows, int64_t cols);
// y[rows,cols] = x[row + r, col + c], where x has x_cols columns.
void Slice(const double* x, double* y, int64_t rows, int64_t cols,
           int64_t x_cols, int64_t row, int64_t col);
void OneHot(const double* labels, double* y, int64_t rows, int64_t classes);

void Scale(const double* x, double alpha, double* y, int64_t n);
void Add(const double* a, const double* b, double* y, int64_t n);
void Mul(const double* a, const double* b, double* y, int64_t n);

// c[M,N] = op(a) op(b); a is [M,K], or [K,M] when trans_a; b is [K,N], or
// [N,K] when trans_b.
void MatMul(const double* a, const double* b, double* c, int64_t m, int64_t n,
            int64_t k, bool trans_a, bool trans_b);
void AddBias(const double* x, const double* b, double* y, int64_t rows,
             int64_t cols);
void ReduceRows(const double* x, double* y, int64_t rows, int64_t cols);
void BroadcastRows(const double* x, double* y, int64_t rows, int64_t cols);

// y = f(x)
void Activate(Activation activation, const double* x, double* y, int64_t n);
// `saved` is the result of the activation or, where the gradient reads that,
// its operand.
void ActivateGrad(Activation activation, const double* saved, const double* dy,
                  double* dx, int64_t n);

void Softmax(const double* x, double* y, int64_t rows, int64_t cols);
void SoftmaxGrad(const double* y, const double* dy, double* dx, int64_t rows,
                 int64_t cols);
// 1/batch sum over rows of logsumexp(z) - z[label]: the mean when these rows
// are the batch.
double NllLoss(const double* logits, const double* labels, int64_t rows,
               int64_t cols, int64_t batch);
void MinusOneHot(const double* p, const double* labels, double* y, int64_t rows,
                 int64_t cols);
// 1/batch sum (y - t)^2 over n elements, of the `batch` that the mean is over.
double MseLoss(const double* y, const double* t, int64_t n, int64_t batch);
void MseGrad(const double* y, const double* t, double* dy, int64_t n,
             int64_t batch);
// What is between z[rows,cols] and the labels, in `blocks` of as many rows:
// sum of mask[r] w[g,c] (softplus(z) - y z), g the block of row r, where y is
// labels[g,c] or, when that is null, 1 in the first `positives` columns.
struct SigmoidBceArgs {
  const double *z, *mask, *weights, *labels;
  int64_t rows, cols, blocks, positives;
};
double SigmoidBce(const SigmoidBceArgs& args);
// dz = mask w (sigmoid(z) - y); dz may be z.
void SigmoidBceGrad(const SigmoidBceArgs& args, double* dz);

// A step of a window: x and o are the rows of in[in_rows,cols] and
// out[out_rows,cols] that `contexts` and `outputs` name, h = x, or mean x where
// that is given, z = h ot, d = its loss's gradient:
//   in' = in with -lr d o added at contexts, with `mean`: spreadt (-lr d o)
//   out' = out with -lr dt h added at outputs
struct WindowArgs {
  const double *in, *out;
  const double *contexts, *outputs;  // rows
  const double* mask;                // [num_contexts]; null with `mean`
  const double *mean, *spread;       // [num_contexts], or null
  const double *weights, *labels;    // [num_outputs]; no labels: null
  double lr;
  int64_t in_rows, out_rows, cols, num_contexts, num_outputs, positives;
};
// The loss; new_in and new_out may be in and out.
double Window(const WindowArgs& args, double* new_in, double* new_out);
double CountCorrect(const double* logits, const double* labels, int64_t rows,
                    int64_t cols);

// As many states and hyper-parameters as the rule has, in the order of its op's
// operands and float attributes; `flag` is its bool attribute. A result may be
// its old value.
struct UpdateArgs {
  const double *w, *dw, *state[kMaxUpdateStates];
  double lr, step;  // step counts from 1
  double hyper[kMaxUpdateHypers];
  bool flag;
  double *w_out, *state_out[kMaxUpdateStates];
  int64_t n;
};
void Update(UpdateRule rule, const UpdateArgs& args);

// x[rows,width] = alpha * table[indices], in any form that ToDense gives back:
// alpha, then three bytes of the row in a number.
void GatherSparse(const double* table, const double* indices, double alpha,
                  double* x, int64_t rows, int64_t cols, int64_t width);
// y[rows,cols] = such an x.
void ToDense(const double* x, double* y, int64_t rows, int64_t cols,
             int64_t width);

}  // namespace onestep::reference

#endif  // ONESTEP_KERNELS_REFERENCE_H_
