// SPDX-License-Identifier: Apache-2.0
// The contracts of all passes, one file each; before and after in IR text
// (types and phases left out). The pipeline verifies, times, dumps and skips.
// A fused node takes the phase of the op whose result it keeps and lists the
// textbook ops it replaces in fused_from.
#ifndef ONESTEP_COMPILER_PASSES_PASSES_H_
#define ONESTEP_COMPILER_PASSES_PASSES_H_

#include "absl/status/statusor.h"
#include "compiler/passes/pipeline.h"

namespace onestep {

// The graph of one model becomes that of K: params, their updates and the named
// inputs get a model axis, and with them all that is computed from them; the
// batch stays shared and is fetched once.
//   %w = param f32[784,128]             %w = param 5xf32[784,128]
//   %y = matmul(%x, %w) : f32[32,128]   %y = matmul(%x, %w) : 5xf32[32,128]
// InvalidArgument when the graph has a model axis already or no such input;
// Unimplemented, naming the node, when its op does not allow it.
absl::StatusOr<bool> VectorizeModels(PassContext& context);

// Identities: scale by 1, mul_scalar by a constant 1 (its alpha stays, as a
// scale), add of a constant 0, mul by a constant 1, scale of scale, cast to the
// type it has. reduce_rows of one row is left alone: its rank changes. Dead
// nodes go to dce.
absl::StatusOr<bool> Simplify(PassContext& context);

// Two nodes of the same op, operands and attributes become one.
absl::StatusOr<bool> Cse(PassContext& context);

// Erases nodes whose results nothing uses. Leaves stay: they are the
// interface.
absl::StatusOr<bool> Dce(PassContext& context);

// Plain SGD: the gradients of all params are linear in the loss's gradient,
// so that it is scaled by -lr once and every update becomes an addition.
//   %g = scale(%d) {alpha=0.03125}            %g = scale(%d) {alpha=0.03125}
//   ...                                       %s = mul_scalar(%g, %lr)
//   {alpha=-1} %dw = matmul(%x, %g) {trans_a=true}       %dw = matmul(%x, %s)
//   {trans_a=true} %w1 = sgd_update(%w, %dw, %lr)            %w1 = add(%w, %dw)
// Preconditions: every update of the graph is an sgd_update without weight
// decay with the same lr; every gradient is linear in one seed value and uses
// nothing that is itself a function of it twice; the seed has no use outside
// the updates; lr is made before the seed is read. Refused otherwise with the
// reason (weight decay: "weight decay scales w by 1 - lr * decay, read at run
// time").
absl::StatusOr<bool> FoldLearningRate(PassContext& context);

// What is added to a 0 and then to a param is added to the param:
//   %0 = constant() : f32[9,7]
//   %dw = scatter_add(%0, %i, %x)
//   %w1 = add(%w, %dw); update w = %w1     ->  %w1 = scatter_add(%w, %i, %x)
// Refused when %dw has another use, %x is %w, an output wants the old %w or a
// reader of it comes after the addition (the update is in place), and, with
// the reason, for an sgd_update left by fold-learning-rate.
absl::StatusOr<bool> SparseUpdate(PassContext& context);

// The whole step of a window of words:
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
// Where a mean %h = block_matmul(%mean, %x) stands
// for %x, with a mask of 1, and %dx is spread, block_matmul(%spread, %dh)
// {trans_a=true}, it is cbow_window.
// Preconditions: products of one block; weights, and a mean, of one row; two
// params, each updated by the scatter_add of the rows that it was gathered by;
// no inner value has another use; no result is read before the last of the
// parts. Refused otherwise with the reason, that of an sgd_update left by
// fold-learning-rate too.
absl::StatusOr<bool> FuseSparseWindow(PassContext& context);

// softmax, nll_loss, minus_one_hot, scale by 1/B (, mul_scalar by -lr)
// (, count_correct) of the same logits and labels; or one_hot, mse_loss,
// mse_grad (...) likewise:
//   %9:3 = loss_grad(%logits, %labels[, %lr]) {scaled=true}
// Preconditions: softmax and the inner gradients have no other use; the scale
// is 1 / rows of the batch (one row needs none); loss and gradient take their
// mean over the same rows; an lr is made before a result is read; the target of
// mse is a one_hot that nothing else reads. A loss that is wanted without its
// gradient (evaluation) stays.
absl::StatusOr<bool> FuseLossGrad(PassContext& context);

// matmul + add_bias [+ activation] -> matmul {bias=true, activation=relu}.
// Precondition: the inner values have no other use. Gelu's gradient reads its
// operand: only the bias is fused, and the refusal says why.
absl::StatusOr<bool> FuseBiasActivation(PassContext& context);

// *_grad, and reduce_rows of its result (the bias gradient) when present:
//   %d = relu_grad(%a, %da)          %d:2 = activation_grad(%a, %da)
//   %db = reduce_rows(%d)                       {activation=relu, bias=grad}
// A *_grad without reduce_rows is left as it is. Likewise reduce_rows of the
// loss gradient joins loss_grad {bias=grad}.
absl::StatusOr<bool> FuseActivationGrad(PassContext& context);

// Bias gradient and its addition join the kernel that makes the gradient:
//   %d:2 = activation_grad(%a, %da) {bias=grad}
//   %b1 = add(%b, %d#1)                  ->  activation_grad(%a, %da, %b)
//   update b = %b1                             {bias=update}; update b = %d#1
// also for loss_grad. Preconditions: the gradient has no other use; no reader
// of the old %b is scheduled after the kernel (the update is in place), no
// output wants it, and %b is bound before the kernel.
absl::StatusOr<bool> FuseBiasUpdate(PassContext& context);

// dW and its addition to the param, in place:
//   %dw = matmul(%x, %d) {trans_a=true}     %w1 = matmul(%x, %d, %w)
//   %w1 = add(%w, %dw); update w = %w1          {trans_a=true, accumulate=true}
// The fused node stands where the addition stood or later: after every reader
// of the old %w (moved down when nothing that it makes is read before).
// Refused when %dw has another use or reads %w itself; when an output wants
// the old %w; and when the new %w is read before a reader of the old one, or a
// param that %dw reads is overwritten before the place it moves to: "reader %12
// of the old %w runs after its update". An sgd_update left by
// fold-learning-rate is refused with the reason (its scale of dW, or of w with
// weight decay, is read at run time).
absl::StatusOr<bool> FuseUpdate(PassContext& context);

// gather_rows + cast [+ scale] -> gather_convert {alpha=0.00392157};
// gather_rows of labels joins loss_grad {gather=true}.
// Precondition: the inner values have no other use.
absl::StatusOr<bool> FuseGather(PassContext& context);

// Where the options say that the table has zeros to skip: the batch's are left
// out of the products that read it.
//   %x = gather_convert(%images, %indices) {alpha=0.5}
//   %a = matmul(%x, %w, %b) {bias=true, activation=relu}
//   %w1 = matmul(%x, %d, %w) {trans_a=true, accumulate=true}
// becomes
//   %x = gather_sparse(%images, %indices) {alpha=0.5, nonzeros=8994156}
//   %a = sparse_matmul(%x, %w, %b) {bias=true, activation=relu}
//   %w1 = sparse_outer(%x, %d, %w) {rows=784, accumulate=true}
// Refused where %x is an output or read by anything but these two products,
// where its rows are longer than the format allows, and for a gather_rows that
// no fusion turned into a gather_convert.
absl::StatusOr<bool> SparsifyInput(PassContext& context);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_PASSES_PASSES_H_
