// SPDX-License-Identifier: Apache-2.0
// The definition of every op, as plain loops with all values and accumulation
// in float64. Every backend is tested against these functions. Tensors are
// row-major and dense, with the shapes of compiler/ir/ops.def; indices and
// labels are integers stored as doubles.
#ifndef ONESTEP_KERNELS_REFERENCE_H_
#define ONESTEP_KERNELS_REFERENCE_H_

#include <cstdint>

#include "kernels/activation.h"
#include "kernels/update.h"

namespace onestep::reference {

// y[r,c] = table[indices[r], c]; y is [rows,cols].
void GatherRows(const double* table, const double* indices, double* y,
                int64_t rows, int64_t cols);
// y[table_rows,cols] = table, then y[indices[r]] += x[r] for r in [0, rows) in
// order. y may alias table.
void ScatterAdd(const double* table, const double* indices, const double* x,
                double* y, int64_t table_rows, int64_t rows, int64_t cols);
// y[r,c] = x[row + r, col + c]; y is [rows,cols] and x has x_cols columns.
void Slice(const double* x, double* y, int64_t rows, int64_t cols,
           int64_t x_cols, int64_t row, int64_t col);
void OneHot(const double* labels, double* y, int64_t rows, int64_t classes);

void Scale(const double* x, double alpha, double* y, int64_t n);
void Add(const double* a, const double* b, double* y, int64_t n);
void Mul(const double* a, const double* b, double* y, int64_t n);

// c[m,n] = op(a) op(b); a is [m,k], or [k,m] with trans_a; b is [k,n], or [n,k]
// with trans_b.
void MatMul(const double* a, const double* b, double* c, int64_t m, int64_t n,
            int64_t k, bool trans_a, bool trans_b);
void AddBias(const double* x, const double* b, double* y, int64_t rows,
             int64_t cols);
void ReduceRows(const double* x, double* y, int64_t rows, int64_t cols);
void BroadcastRows(const double* x, double* y, int64_t rows, int64_t cols);

// y = f(x) over n values, f the activation.
void Activate(Activation activation, const double* x, double* y, int64_t n);
// `saved` is the activation's result, or its operand where the gradient reads
// that (kernels/activation.h).
void ActivateGrad(Activation activation, const double* saved, const double* dy,
                  double* dx, int64_t n);

void Softmax(const double* x, double* y, int64_t rows, int64_t cols);
void SoftmaxGrad(const double* y, const double* dy, double* dx, int64_t rows,
                 int64_t cols);
// 1/batch times the sum over the rows of logsumexp(z) - z[label], which is the
// mean when batch == rows.
double NllLoss(const double* logits, const double* labels, int64_t rows,
               int64_t cols, int64_t batch);
void MinusOneHot(const double* p, const double* labels, double* y, int64_t rows,
                 int64_t cols);
// 1/batch times the sum of (y - t)^2 over n elements. `batch` is the number of
// elements that the mean is taken over.
double MseLoss(const double* y, const double* t, int64_t n, int64_t batch);
void MseGrad(const double* y, const double* t, double* dy, int64_t n,
             int64_t batch);
// Weighted sigmoid binary cross-entropy of z[rows,cols]. The rows form `blocks`
// blocks of equal size; row r lies in block g. The loss is the sum over r and c
// of mask[r] weights[g,c] (softplus(z) - y z). The label y is labels[g,c]; when
// labels is null, it is 1 in the first `positives` columns and 0 in the others.
struct SigmoidBceArgs {
  const double *z, *mask, *weights, *labels;
  int64_t rows, cols, blocks, positives;
};
double SigmoidBce(const SigmoidBceArgs& args);
// dz = mask weights (sigmoid(z) - y); dz may alias z.
void SigmoidBceGrad(const SigmoidBceArgs& args, double* dz);

// One train step of a window of words. With x = in[contexts] and
// o = out[outputs], let h = x, or h = mean x when `mean` is given, z = h o^T,
// and d the gradient of SigmoidBce(z). The step computes
//   new_in = in with -lr d o (with `mean`: spread^T (-lr d o)) added to the
//            rows `contexts`
//   new_out = out with -lr d^T h added to the rows `outputs`
struct WindowArgs {
  const double *in, *out;            // [in_rows,cols], [out_rows,cols]
  const double *contexts, *outputs;  // row indices
  const double* mask;                // [num_contexts]; null with `mean`
  const double *mean, *spread;       // [num_contexts], or both null
  const double *weights, *labels;    // [num_outputs]; labels may be null
  double lr;
  int64_t in_rows, out_rows, cols, num_contexts, num_outputs, positives;
};
// Returns the loss. new_in may alias in, and new_out may alias out.
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

// x[rows,width] = alpha * table[indices] in a packed form that only ToDense
// reads: a row is alpha followed by numbers that each pack three bytes.
void GatherSparse(const double* table, const double* indices, double alpha,
                  double* x, int64_t rows, int64_t cols, int64_t width);
// y[rows,cols] = the dense form of an x that GatherSparse wrote.
void ToDense(const double* x, double* y, int64_t rows, int64_t cols,
             int64_t width);

}  // namespace onestep::reference

#endif  // ONESTEP_KERNELS_REFERENCE_H_
