// SPDX-License-Identifier: Apache-2.0
// Kernels over many models of one shape, interleaved ("compact"): element i of
// model k is at x[i * models + k], so that a lane of a vector is a model. Every
// model gets the bits that the kernel for one of the same name gives it,
// whatever the number of models: sums run in the same order.
//
// What goes element by element, or column by column, needs no kernel of its
// own: the one for one model then sees models times as many of them.
#ifndef ONESTEP_KERNELS_CPU_MODELS_INTERLEAVED_H_
#define ONESTEP_KERNELS_CPU_MODELS_INTERLEAVED_H_

#include <cstdint>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/update.h"

namespace onestep::cpu {

// c[m,n] = act(a b + bias), or c += a b, of each model with its own a and b.
struct InterleavedMatMulArgs {
  const float* a;        // [m,k]: element (i,p) is i * a_row + p * a_col
  int64_t a_row, a_col;  // one of them is 1
  const float* b;        // [k,n]: element (p,j) is p * b_row + j * b_col
  int64_t b_row, b_col;  // REQUIRES: b_col = 1 when models share a vector
  float* c;              // [m,n], dense
  int64_t m, n, k, models;
  const float* bias = nullptr;  // [n] or null
  bool accumulate = false;
  Activation act = Activation::kNone;  // REQUIRES: none with accumulate
};

// Rows [row_begin, row_end) of c. The bits do not depend on the split.
void InterleavedMatMul(const InterleavedMatMulArgs& args, int64_t row_begin,
                       int64_t row_end);

// Models so few that several columns of them share a vector.
bool ModelsShareVector(int64_t models);

// y[cols,rows] = x[rows,cols] transposed, both dense.
void InterleavedTranspose(const float* x, float* y, int64_t rows, int64_t cols,
                          int64_t models);

// Softmax cross-entropy with its gradient, as SoftmaxXentGradRows, SumRows and
// ReduceRows; labels and indices are shared by the models.
struct InterleavedXentGradArgs {
  const float* logits;     // [rows,cols]
  const int32_t* labels;   // of row r: labels[indices[r]], or labels[r] when
  const int32_t* indices;  // this is null
  const float* alpha;      // of the gradient
  float loss_alpha;
  float* dlogits;         // [rows,cols]; may be logits
  float *loss, *correct;  // sums over the rows
  // db[cols] = bias + sums of dlogits over the rows, unless it is null. bias
  // may be db, or null: zeros.
  float* db;
  const float* bias;
  // REQUIRES: cols <= kInterleavedCols; rows < 2^24, so that correct is exact.
  int64_t rows, cols, models;
};
inline constexpr int64_t kInterleavedCols = 32;
void InterleavedXentGrad(const InterleavedXentGradArgs& args,
                         int64_t model_begin, int64_t model_end);

// y[i] = x[i], of every model.
void InterleavedBroadcast(const float* x, float* y, int64_t n, int64_t models);
// y[i] = x[i] of model k, and back.
void TakeModel(const float* x, int64_t models, int64_t k, float* y, int64_t n);
void PutModel(const float* y, int64_t models, int64_t k, float* x, int64_t n);

// ---- updates ----------------------------------------------------------------

// What each model multiplies by, repeated so that a vector may begin at any
// model: y[i] = alpha * x[i % models], i < models + kRepeatPad.
inline constexpr int64_t kRepeatPad = 16;
void RepeatModels(float alpha, const float* x, int64_t models, float* y);

// Values [begin, end) of n * models. A result may lie on its old value.
struct InterleavedRange {
  int64_t models, begin, end;
};
void InterleavedScale(const float* alpha, const float* x, float* y,
                      const InterleavedRange& range);

// What the rule multiplies by in a step: that many floats for its coefficients,
// each repeated as above. `hypers` has arrays of the models.
int64_t CoefficientFloats(UpdateRule rule, int64_t models);
void PrepareCoefficients(UpdateRule rule, const UpdateHypers& hypers,
                         int64_t models, float* coefficients);
// The update with such coefficients; `flag` is that of the hyper-parameters.
void InterleavedUpdate(UpdateRule rule, const UpdateArrays& arrays,
                       const float* coefficients, bool flag,
                       const InterleavedRange& range);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_MODELS_INTERLEAVED_H_
