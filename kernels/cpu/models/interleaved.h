// SPDX-License-Identifier: Apache-2.0
// Kernels for several models of the same shape, with their tensors interleaved:
// element i of model k is at x[i * models + k], so that each lane of a vector
// belongs to one model. Shapes in comments are those of one model. For every
// number of models, each model's result is bit-identical to that of the kernel
// of the same name for one model, because sums run in the same order.
//
// Elementwise and columnwise ops need no kernel here: they call the kernel for
// one model with `models` times as many elements or columns.
#ifndef ONESTEP_KERNELS_CPU_MODELS_INTERLEAVED_H_
#define ONESTEP_KERNELS_CPU_MODELS_INTERLEAVED_H_

#include <cstdint>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/update.h"

namespace onestep::cpu {

// For each model c[m,n] = act(a b + bias), or c += a b with `accumulate`; every
// model has its own a, b and bias. Strides are in elements of one model.
struct InterleavedMatMulArgs {
  const float* a;        // [m,k]: element (i,p) has index i * a_row + p * a_col
  int64_t a_row, a_col;  // one of them is 1
  const float* b;        // [k,n]: element (p,j) has index p * b_row + j * b_col
  int64_t b_row, b_col;  // REQUIRES: b_col = 1 when ModelsShareVector(models)
  float* c;              // [m,n], dense
  int64_t m, n, k, models;
  const float* bias = nullptr;  // [n] or null
  bool accumulate = false;
  Activation act = Activation::kNone;  // REQUIRES: kNone with accumulate
};

// Computes rows [row_begin, row_end) of c; every split is bit-identical.
void InterleavedMatMul(const InterleavedMatMulArgs& args, int64_t row_begin,
                       int64_t row_end);

// Whether the models are so few that several columns of all models share a
// vector.
bool ModelsShareVector(int64_t models);

// y[cols,rows] = x[rows,cols]^T of each model, both dense.
void InterleavedTranspose(const float* x, float* y, int64_t rows, int64_t cols,
                          int64_t models);

// Softmax cross-entropy with its gradient: SoftmaxXentGradRows, SumRows and
// ReduceRows in one pass. All models share the labels and the indices.
struct InterleavedXentGradArgs {
  const float* logits;     // [rows,cols]
  const int32_t* labels;   // the label of row r is labels[indices[r]], or
  const int32_t* indices;  // labels[r] when indices is null
  const float* alpha;      // [models]: factor of dlogits
  float loss_alpha;        // factor of the loss
  float* dlogits;          // [rows,cols]; may alias logits
  float *loss, *correct;   // [models]: sums over the rows
  // Unless db is null, db[cols] = bias + the sum of dlogits over the rows. A
  // null bias stands for zeros; bias may alias db.
  float* db;
  const float* bias;
  // REQUIRES: cols <= kInterleavedCols; rows < 2^24, so that correct is exact.
  int64_t rows, cols, models;
};
inline constexpr int64_t kInterleavedCols = 32;
// Processes models [model_begin, model_end).
void InterleavedXentGrad(const InterleavedXentGradArgs& args,
                         int64_t model_begin, int64_t model_end);

// Copies x[n] to every model of y.
void InterleavedBroadcast(const float* x, float* y, int64_t n, int64_t models);
// TakeModel copies model k of the interleaved x to the dense y[n]; PutModel
// copies y back to model k of x.
void TakeModel(const float* x, int64_t models, int64_t k, float* y, int64_t n);
void PutModel(const float* y, int64_t models, int64_t k, float* x, int64_t n);

// ---- updates ----------------------------------------------------------------

// The kernels below read one factor per model from a "repeated" array, so that
// a vector may begin at any model: RepeatModels sets
// y[i] = alpha * x[i % models] for i < models + kRepeatPad.
inline constexpr int64_t kRepeatPad = 16;
void RepeatModels(float alpha, const float* x, int64_t models, float* y);

// The range [begin, end) of the n * models interleaved values that a call
// updates. A result may alias its old value.
struct InterleavedRange {
  int64_t models, begin, end;
};
void InterleavedScale(const float* alpha, const float* x, float* y,
                      const InterleavedRange& range);

// The factors of a step of the rule: PrepareCoefficients fills
// CoefficientFloats floats with its coefficients, each one a repeated array.
// `hypers` points to arrays of one value per model.
int64_t CoefficientFloats(UpdateRule rule, int64_t models);
void PrepareCoefficients(UpdateRule rule, const UpdateHypers& hypers,
                         int64_t models, float* coefficients);
// The update with these coefficients; `flag` is the rule's bool attribute.
void InterleavedUpdate(UpdateRule rule, const UpdateArrays& arrays,
                       const float* coefficients, bool flag,
                       const InterleavedRange& range);

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_MODELS_INTERLEAVED_H_
