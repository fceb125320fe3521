// SPDX-License-Identifier: Apache-2.0
// Launchers of the GPU kernels in kernels/cuda. Each takes device addresses and
// sizes, chooses the template instance, the grid and the shared memory, and
// returns the Launch without running it. nvcc's build and the emulator's build
// for the tests both define these functions.
// Tensors are f32, row-major and dense unless stated otherwise; labels and
// indices are i32. A result may alias an operand where
// the alias rules of compiler/ir/ops say so. Kernels are deterministic: they
// sum in a fixed order that depends only on the sizes.
#ifndef ONESTEP_KERNELS_KERNELS_H_
#define ONESTEP_KERNELS_KERNELS_H_

#include <cstdint>

#include "kernels/activation.h"
#include "kernels/launch.h"
#include "kernels/update.h"

namespace onestep::cuda {

// An operand of a kernel that may run for several models in one launch. When
// the caller sets grid.z to the number of models, block z uses the operand at
// `first` + z * stride_bytes; with stride 0 all models share it. All sizes are
// those of one model. Each model's result is bit-identical to that of a launch
// for this model alone.
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
inline constexpr int64_t kMaxModels = 65535;  // CUDA's limit on grid.z
using In = PerModel<const float>;
using Out = PerModel<float>;

// A hyper-parameter of an update: an immediate value, or the device address of
// one.
struct Hyper {
  Hyper(float value = 0) : value(value) {}
  Hyper(In at) : value(0), at(at) {}

  float value;
  In at;  // f32[]; null: `value` is used
};

// Workspaces. A sum over many rows is split over blocks, and the last block to
// finish adds the partial sums in order. Such a launch needs a private
// workspace in device memory, aligned to 4 bytes and zeroed once before its
// first use. For few rows the size is 0, and the workspace may then be null. A
// launch over several models needs one workspace per model, contiguous.
// The workspace of an op that computes column sums of [rows,cols]:
int64_t ColumnSumsWorkspaceBytes(int64_t rows, int64_t cols);
// The workspace of a loss or a count of correct rows over [rows,cols]:
int64_t LossWorkspaceBytes(int64_t rows, int64_t cols);

// ---- data (gather.cu) ------------------------------------------------------
// y[r] = table[indices[r]]; a row has row_bytes bytes.
Launch GatherRows(const void* table, const int32_t* indices, void* y,
                  int64_t rows, int64_t row_bytes);
// y[rows,cols] = alpha * table u8[indices[r], c]
Launch GatherConvert(const uint8_t* table, const int32_t* indices, float alpha,
                     float* y, int64_t rows, int64_t cols);
Launch CastU8(PerModel<const uint8_t> x, Out y, int64_t n);
Launch CastI32(PerModel<const int32_t> x, Out y, int64_t n);
Launch OneHot(const int32_t* labels, float* y, int64_t rows, int64_t classes);
// Row r of y is the row_bytes bytes at x + r * x_row_bytes: a slice of x.
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
// dx from dy and the activation's result y; y is the activation's operand where
// its gradient reads that (kernels/activation.h).
Launch ActivateGrad(Activation act, In y, In dy, Out dx, int64_t n);
// y[cols] = sum over the rows of x. The workspace is that of column sums.
Launch ReduceRows(In x, Out y, int64_t rows, int64_t cols, void* workspace);
// The op activation_grad: dx and, unless db is null, db[cols] = b + the sum of
// dx over the rows; a null b stands for zeros, and db may be b. The workspace
// is that of column sums; it may be null when db is null.
Launch ActivationGrad(Activation act, In y, In dy, In b, Out dx, Out db,
                      int64_t rows, int64_t cols, void* workspace);

// ---- losses (loss.cu) ------------------------------------------------------
Launch Softmax(In x, Out y, int64_t rows, int64_t cols);
Launch SoftmaxGrad(In y, In dy, Out dx, int64_t rows, int64_t cols);
// *loss = 1/batch times the sum over the rows of logsumexp(z) - z[label]. The
// loss is NaN when any logit is not finite, -inf included, so that divergence
// shows at once. The workspace is that of a loss.
Launch NllLoss(In logits, const int32_t* labels, Out loss, int64_t rows,
               int64_t cols, int64_t batch, void* workspace);
Launch MinusOneHot(In p, const int32_t* labels, Out y, int64_t rows,
                   int64_t cols);
// *loss = 1/elements sum (y - t)^2 over n values. The workspace is that of
// column sums of [n,1].
Launch MseLoss(In y, In t, Out loss, int64_t n, int64_t elements,
               void* workspace);
Launch MseGrad(In y, In t, Out dy, int64_t n, int64_t elements);
// The workspace is that of a loss.
Launch CountCorrect(In logits, const int32_t* labels, Out correct, int64_t rows,
                    int64_t cols, void* workspace);
// The op loss_grad of compiler/ir/ops.def: softmax cross-entropy, or mean
// squared error against one-hot labels, with its gradient. `cols` is not
// limited.
struct LossGradParams {
  bool mse = false;
  In logits;               // [rows,cols]
  const int32_t* labels;   // [rows]; [N] when indices are given
  const int32_t* indices;  // [rows]: row r has label labels[indices[r]]; or
                           // null: it has labels[r]
  In lr;                   // []: dlogits are multiplied by -lr; or null
  In bias;                 // [cols]: db = bias + column sums; null: sums only
  Out loss;                // []
  Out dlogits;             // [rows,cols]; may alias logits
  Out correct;             // []
  Out db;                  // [cols]; may alias bias; null: not computed
  int64_t rows, cols;
  int64_t batch;    // the number of rows that the mean is taken over
  void* workspace;  // that of a loss
};
Launch LossGrad(const LossGradParams& params);

// ---- updates (update.cu) ---------------------------------------------------
// The update ops of compiler/ir/ops.def, with as many states and
// hyper-parameters as the rule has. w_out may alias w, and each state_out may
// alias its state. `step` counts from 1; it is null where the rule does not
// read it.
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
// y[m,n] = act(op(a) op(b) + bias), or c + op(a) op(b). a is [m,k], or [k,m]
// with trans_a; b is [k,n], or [n,k] with trans_b. y may alias c. Sizes are not
// limited.
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
// The counter of the steps of a run, in device memory.
struct StepControl {
  int64_t step;  // the current step of this run, from 0
};

// StepBoundary copies the values that advance with each step. With s =
// control->step it first publishes the results of step s: it copies each
// `from` to `to` + s * stride_bytes. Then, if `advance` is set, it increments
// control->step. Finally it fetches the inputs of the step that is now current:
// it copies `from` + step * stride_bytes to `to`. The kernel runs one block.
struct BoundaryMove {
  void* to;
  const void* from;
  int64_t stride_bytes;
  int64_t bytes;  // addresses, stride and bytes are multiples of 4
};
inline constexpr int kMaxBoundaryMoves = 16;
struct BoundaryParams {
  StepControl* control;
  int32_t advance;  // 0 or 1
  int32_t publishes, fetches;
  BoundaryMove moves[kMaxBoundaryMoves];  // the publishes, then the fetches
};
Launch StepBoundary(const BoundaryParams& params);
// control->step += steps; the kernel runs one thread.
Launch Advance(StepControl* control, int64_t steps);

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_KERNELS_H_
