// SPDX-License-Identifier: Apache-2.0
// The contracts of all passes; each pass has one file. Examples show the IR
// text before and after, without types and phases. The pipeline verifies,
// times, dumps and skips passes. A fused node has the phase of the op whose
// result it keeps, and lists the ops that it replaces in fused_from. A pass
// returns whether it changed the graph; it records a rewrite that a
// precondition forbids as a refusal with the reason.
#ifndef ONESTEP_COMPILER_PASSES_PASSES_H_
#define ONESTEP_COMPILER_PASSES_PASSES_H_

#include "absl/status/statusor.h"
#include "compiler/passes/pipeline.h"

namespace onestep {

// Turns the graph of one model into that of K models (as vmap does). Params,
// the inputs that the options name and all values computed from them get a
// model axis. The models share the batch, which is fetched once.
//   %w = param f32[784,128]             %w = param 5xf32[784,128]
//   %y = matmul(%x, %w) : f32[32,128]   %y = matmul(%x, %w) : 5xf32[32,128]
// Returns InvalidArgument when the graph already has a model axis or has no
// input of such a name, and Unimplemented, with the node, when an op does not
// support a model axis.
absl::StatusOr<bool> VectorizeModels(PassContext& context);

// Replaces identities by their operand: scale by 1, mul_scalar by a constant 1
// (with an alpha it becomes a scale), add of a constant 0, mul by a constant 1,
// scale of scale, cast to the same type. reduce_rows of one row stays, because
// it changes the rank. Dead nodes are left to dce.
absl::StatusOr<bool> Simplify(PassContext& context);

// Merges nodes with the same op, operands and attributes. Dead nodes are left
// to dce.
absl::StatusOr<bool> Cse(PassContext& context);

// Erases nodes without users. Leaves stay, because they are the graph's
// interface.
absl::StatusOr<bool> Dce(PassContext& context);

// For plain SGD: the gradients of all params are linear in the gradient of the
// loss. The pass multiplies that by -lr once and replaces every update by an
// addition.
//   %g = scale(%d) {alpha=0.03125}            %g = scale(%d) {alpha=0.03125}
//   ...                                       %s = mul_scalar(%g, %lr)
//   {alpha=-1} %dw = matmul(%x, %g) {trans_a=true}       %dw = matmul(%x, %s)
//   {trans_a=true} %w1 = sgd_update(%w, %dw, %lr)            %w1 = add(%w, %dw)
// Preconditions: every update of the graph is an sgd_update without weight
// decay and with the same lr; every gradient is linear in one seed value; only
// the updates depend on the seed; lr is computed before the seed is read. The
// reason of a refusal is, for example, "weight decay scales w by 1 - lr *
// decay, read at run time".
absl::StatusOr<bool> FoldLearningRate(PassContext& context);

// Scatters a gradient directly into the param instead of into zeros that are
// then added to the param:
//   %0 = constant() : f32[9,7]
//   %dw = scatter_add(%0, %i, %x)
//   %w1 = add(%w, %dw); update w = %w1     ->  %w1 = scatter_add(%w, %i, %x)
// The update is in place. It is refused when %dw has another use, when %x is
// %w, when an output is the old %w or a node after the addition reads it, and
// for an sgd_update that fold-learning-rate did not replace.
absl::StatusOr<bool> SparseUpdate(PassContext& context);

// Fuses the whole train step of a window of words:
//   %x = gather_rows(%in, %contexts)
//   %o = gather_rows(%out, %outputs)
//   %z = block_matmul(%x, %o) {trans_b=true}
//   %loss = sigmoid_bce(%z, %mask, %weights) {positives=1}
//   %d = sigmoid_bce_grad(%z, %mask, %weights) {positives=1}
//   %s = mul_scalar(%d, %lr) {alpha=-1}
//   %dx = block_matmul(%s, %o)
//   %do = block_matmul(%s, %x) {trans_a=true}
//   %1 = scatter_add(%in, %contexts, %dx); update in = %1
//   %2 = scatter_add(%out, %outputs, %do); update out = %2
// becomes
//   %1:3 = sgns_window(%in, %out, %contexts, %mask, %outputs, %weights, %lr)
//          {positives=1}
// The result is cbow_window when a mean %h = block_matmul(%mean, %x) with a
// mask of 1 takes the place of %x, and %dx is block_matmul(%spread, %dh)
// {trans_a=true}.
// Preconditions: the block_matmuls have one block; the weights, and a mean,
// have one row; there are two params, each updated by a scatter_add with the
// indices of its gather_rows; no inner value has another use; no result is read
// before the last of the replaced nodes. An sgd_update that fold-learning-rate
// did not replace is refused.
absl::StatusOr<bool> FuseSparseWindow(PassContext& context);

// Fuses a loss with its gradient: softmax, nll_loss, minus_one_hot and the
// scale by 1/B of the same logits and labels, with an optional mul_scalar by
// -lr and an optional count_correct; or one_hot, mse_loss and mse_grad with the
// same options. They become
//   %9:3 = loss_grad(%logits, %labels[, %lr]) {scaled=true}
// Preconditions: softmax and the inner gradients have no other use; the scale
// is 1 / rows of the batch (no scale is needed for one row); loss and gradient
// take their mean over the same rows; lr is computed before a result is read;
// the target of mse is a one_hot without other users. A loss without a gradient
// (evaluation) is not changed.
absl::StatusOr<bool> FuseLossGrad(PassContext& context);

// Fuses the epilogue of a matmul:
// matmul + add_bias [+ activation] -> matmul {bias=true, activation=relu}.
// Precondition: the inner values have no other use. The gradient of gelu reads
// gelu's operand; therefore only the bias is fused there, with a refusal.
absl::StatusOr<bool> FuseBiasActivation(PassContext& context);

// Fuses a *_grad and the reduce_rows of its result, which is the bias gradient:
//   %d = relu_grad(%a, %da)          %d:2 = activation_grad(%a, %da)
//   %db = reduce_rows(%d)                       {activation=relu, bias=grad}
// A *_grad without a reduce_rows is not changed. A reduce_rows of the loss
// gradient is fused into loss_grad {bias=grad} in the same way.
absl::StatusOr<bool> FuseActivationGrad(PassContext& context);

// Fuses the addition of a bias gradient to the bias into the op that computes
// the gradient:
//   %d:2 = activation_grad(%a, %da) {bias=grad}
//   %b1 = add(%b, %d#1)                  ->  activation_grad(%a, %da, %b)
//   update b = %b1                             {bias=update}; update b = %d#1
// The same holds for loss_grad. The update is in place. Preconditions: the
// gradient has no other use; no node after the op reads the old %b and no
// output is the old %b; the param %b comes before the op.
absl::StatusOr<bool> FuseBiasUpdate(PassContext& context);

// Fuses dW and its addition to the param, in place:
//   %dw = matmul(%x, %d) {trans_a=true}     %w1 = matmul(%x, %d, %w)
//   %w1 = add(%w, %dw); update w = %w1          {trans_a=true, accumulate=true}
// The fused node is placed at the addition or, when the old %w has later
// readers, after the last of them. The fusion is refused when %dw has another
// use or reads %w; when an output is the old %w; when the new %w is read before
// the last reader of the old one ("reader %12 of the old %w runs after its
// update"); and when a param that %dw reads is overwritten before the new
// position. An sgd_update that fold-learning-rate did not replace is refused,
// because its factor of dW (or of w, with weight decay) is read at run time.
absl::StatusOr<bool> FuseUpdate(PassContext& context);

// Fuses gathers: gather_rows + cast [+ scale] becomes
// gather_convert {alpha=0.00392157}; gather_rows of labels is fused into
// loss_grad {gather=true}.
// Precondition: the inner values have no other use.
absl::StatusOr<bool> FuseGather(PassContext& context);

// Replaces the matmuls that read the batch by sparse ones that skip its zeros,
// when the options say that the table is sparse.
//   %x = gather_convert(%images, %indices) {alpha=0.5}
//   %a = matmul(%x, %w, %b) {bias=true, activation=relu}
//   %w1 = matmul(%x, %d, %w) {trans_a=true, accumulate=true}
// becomes
//   %x = gather_sparse(%images, %indices) {alpha=0.5, nonzeros=8994156}
//   %a = sparse_matmul(%x, %w, %b) {bias=true, activation=relu}
//   %w1 = sparse_outer(%x, %d, %w) {rows=784, accumulate=true}
// Refused when %x is an output or has other readers than these two matmuls,
// when its rows are longer than the format allows, and for a gather_rows that
// fuse-gather did not turn into a gather_convert.
absl::StatusOr<bool> SparsifyInput(PassContext& context);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_PASSES_PASSES_H_
