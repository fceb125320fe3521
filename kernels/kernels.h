// SPDX-License-Identifier: Apache-2.0
// Launchers of the GPU kernels in kernels/cuda: each takes device addresses and
// sizes, chooses the instance, the grid and the shared memory, and returns the
// Launch. Two builds have these names: nvcc's, and the emulator's of the tests.
// All tensors are f32, row-major and dense unless said; labels and indices are
// i32. What may lie in the memory of what is as in compiler/ir/op_alias.cc.
// Deterministic: sums in a fixed order that depends on sizes only.
#ifndef ONESTEP_KERNELS_KERNELS_H_
#define ONESTEP_KERNELS_KERNELS_H_

#include <cstdint>

#include "kernels/activation.h"
#include "kernels/launch.h"
#include "kernels/update.h"

namespace onestep::cuda {

// An operand of a launch over models: who sets its grid.z to their number has
// block z compute with what lies z * stride_bytes after `first`. Stride 0: all
// models share it. Sizes are of one model, whose bits are those of a launch of
// its own.
template <typename T>
struct PerModel {
  PerModel(T* first = nullptr, int64_t stride_bytes = 0)
      : first(first), stride_bytes(stride_bytes) {}
  template <typename U>
  PerModel(const PerModel<U>& other)
      : first(other.first), stride_bytes(other.stride_bytes) {}

  T* first;
  int64_t stride_bytes;
};
inline constexpr int64_t kMaxModels = 65535;  // CUDA's limit of grid.z
using In = PerModel<const float>;
using Out = PerModel<float>;

// A hyper-parameter of an update: a value, or where it lies.
struct Hyper {
  Hyper(float value = 0) : value(value) {}
  Hyper(In at) : value(0), at(at) {}

  float value;
  In at;  // null: the value
};

// Sums over many rows are shared out to blocks, of which the last to arrive
// adds the parts up in order. So much device memory of its own must such an op
// have, 4-byte aligned, zeroed once; it may be null where it is 0 bytes, for
// few rows. A launch over models needs that of each, one after the other. Of an
// op that gives column sums:
int64_t ColumnSumsWorkspaceBytes(int64_t rows, int64_t cols);
// Of a loss, or count, of rows:
int64_t LossWorkspaceBytes(int64_t rows, int64_t cols);

// ---- data (gather.cu) ------------------------------------------------------
// y[r] = table[indices[r]], rows of row_bytes.
Launch GatherRows(const void* table, const int32_t* indices, void* y,
                  int64_t rows, int64_t row_bytes);
// y[rows,cols] = alpha * table u8[indices[r], c]
Launch GatherConvert(const uint8_t* table, const int32_t* indices, float alpha,
                     float* y, int64_t rows, int64_t cols);
Launch CastU8(PerModel<const uint8_t> x, Out y, int64_t n);
Launch CastI32(PerModel<const int32_t> x, Out y, int64_t n);
Launch OneHot(const int32_t* labels, float* y, int64_t rows, int64_t classes);
// y[rows] of row_bytes each = x from x + r * x_row_bytes (a part of x's rows).
Launch SliceRows(PerModel<const void> x, PerModel<void> y, int64_t rows,
                 int64_t row_bytes, int64_t x_row_bytes);
Launch Fill(float* y, float value, int64_t n);

// ---- elementwise (elementwise.cu) ------------------------------------------
Launch Scale(In x, float alpha, Out y, int64_t n);
// y = alpha * s * x
Launch MulScalar(In x, In s, float alpha, Out y, int64_t n);
Launch Add(In a, In b, Out y, int64_t n);
Launch Mul(In a, In b, Out y, int64_t n);
Launch AddBias(In x, In b, Out y, int64_t rows, int64_t cols);
Launch BroadcastRows(In x, Out y, int64_t rows, int64_t cols);
Launch Activate(Activation act, In x, Out y, int64_t n);
// (y or x, as the gradient reads, dy) -> dx
Launch ActivateGrad(Activation act, In y, In dy, Out dx, int64_t n);
// y[cols] = sum over the rows of x. Workspace: of column sums.
Launch ReduceRows(In x, Out y, int64_t rows, int64_t cols, void* workspace);
// As op activation_grad: dx, and where db is not null db = sum dx over the
// rows, plus b where b is not null (db may be b). Workspace: of column sums;
// none is needed where db is null.
Launch ActivationGrad(Activation act, In y, In dy, In b, Out dx, Out db,
                      int64_t rows, int64_t cols, void* workspace);

// ---- losses (loss.cu) ------------------------------------------------------
Launch Softmax(In x, Out y, int64_t rows, int64_t cols);
Launch SoftmaxGrad(In y, In dy, Out dx, int64_t rows, int64_t cols);
// *loss = 1/batch sum logsumexp(z) - z[label]; NaN when any logit is not
// finite, -inf included, so that divergence shows at once. Workspace: of a
// loss.
Launch NllLoss(In logits, const int32_t* labels, Out loss, int64_t rows,
               int64_t cols, int64_t batch, void* workspace);
Launch MinusOneHot(In p, const int32_t* labels, Out y, int64_t rows,
                   int64_t cols);
// *loss = 1/elements sum (y - t)^2. Workspace: of column sums of [n,1].
Launch MseLoss(In y, In t, Out loss, int64_t n, int64_t elements,
               void* workspace);
Launch MseGrad(In y, In t, Out dy, int64_t n, int64_t elements);
// Workspace: of a loss.
Launch CountCorrect(In logits, const int32_t* labels, Out correct, int64_t rows,
                    int64_t cols, void* workspace);
// Op loss_grad, softmax cross-entropy or mean squared error against one-hot
// labels: as in ops.def. Any cols.
struct LossGradParams {
  bool mse = false;
  In logits;               // [rows,cols]
  const int32_t* labels;   // [rows], or [N] and then
  const int32_t* indices;  // [rows]; null: labels are of the rows
  In lr;                   // dlogits times -*lr; null: not
  In bias;                 // [cols]; null: db is the plain sum
  Out loss;                // []
  Out dlogits;             // [rows,cols]; may be logits
  Out correct;             // []
  Out db;                  // [cols]; null: not wanted; may be bias
  int64_t rows, cols;
  int64_t batch;    // rows that the mean is over
  void* workspace;  // of a loss
};
Launch LossGrad(const LossGradParams& params);

// ---- updates (update.cu) ---------------------------------------------------
// As many states and hyper-parameters as the rule has; w_out may be w, and so
// on. `step` counts from 1 and is null where the rule does not read it.
struct UpdateParams {
  In w, dw, state[kMaxUpdateStates], lr, step;
  Hyper hyper[kMaxUpdateHypers];  // in the order of the rule
  Out w_out, state_out[kMaxUpdateStates];
  int64_t n;
  UpdateRule rule = UpdateRule::kSgd;
  bool flag = false;
};
Launch Update(const UpdateParams& params);

// ---- matmul (matmul.cu): fp32 FMAs -----------------------------------------
// y[m,n] = act(op(a) op(b) + bias), or c + op(a) op(b); a is [m,k] or, when
// trans_a, [k,m]; b [k,n] or [n,k]. y may be c. Any sizes.
struct MatMulParams {
  In a, b;
  In bias;  // [n] or null
  In c;     // [m,n] or null
  Out y;
  int64_t m, n, k;
  bool trans_a, trans_b;
  Activation act = Activation::kNone;
};
Launch MatMul(const MatMulParams& params);

// ---- between steps (boundary.cu) -------------------------------------------
// What a run of steps counts in device memory.
struct StepControl {
  int64_t step;  // of this run, from 0
};

// Moves what advances with the step. First publishes the results of step s =
// control->step: to + s * stride, from `from`; then, if `advance`, the step
// becomes s + 1; then it fetches that step's inputs: from + step * stride, to
// `to`. One block.
struct BoundaryMove {
  void* to;
  const void* from;
  int64_t stride_bytes;
  int64_t bytes;  // a multiple of 4, as are the addresses and the stride
};
inline constexpr int kMaxBoundaryMoves = 16;
struct BoundaryParams {
  StepControl* control;
  int32_t advance;  // 0 or 1
  int32_t publishes, fetches;
  BoundaryMove moves[kMaxBoundaryMoves];  // the publishes, then the fetches
};
Launch StepBoundary(const BoundaryParams& params);
// control->step += steps. One thread.
Launch Advance(StepControl* control, int64_t steps);

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_KERNELS_H_
