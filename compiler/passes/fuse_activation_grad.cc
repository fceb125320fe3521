// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace onestep {
namespace {

bool FuseReduceRows(PassContext& context, Node* reduce) {
  if (reduce->kind != OpKind::kReduceRows) return false;
  Graph& graph = context.graph;
  // Of the results of loss_grad only the gradient has rows.
  Node* const grad = reduce->operands[0].node;
  const Activation activation = ActivationOfGrad(grad->kind);
  Node* fused = nullptr;
  if (activation != Activation::kNone) {
    fused = AddFused(
        graph, grad, grad->phase, OpKind::kActivationGrad, grad->operands,
        ActivationGradAttrs{activation, BiasGrad::kGrad}, {grad, reduce});
  } else if (grad->kind == OpKind::kLossGrad &&
             grad->as<LossGradAttrs>().bias == BiasGrad::kNone) {
    LossGradAttrs attrs = grad->as<LossGradAttrs>();
    attrs.bias = BiasGrad::kGrad;
    fused = AddFused(graph, grad, grad->phase, OpKind::kLossGrad,
                     grad->operands, attrs, {grad, reduce});
  } else {
    return false;
  }
  const int results = static_cast<int>(grad->types.size());
  for (int i = 0; i < results; ++i) {
    graph.ReplaceUses(grad->result(i), fused->result(i));
  }
  graph.ReplaceUses(reduce->result(), fused->result(results));
  EraseParts(graph, {grad, reduce});
  return true;
}

}  // namespace

absl::StatusOr<bool> FuseActivationGrad(PassContext& context) {
  return RewriteAll(context, FuseReduceRows);
}

}  // namespace onestep
