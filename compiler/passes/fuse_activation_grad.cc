// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace onestep {
namespace {

bool FuseReduceRows(PassContext& context, Node* reduce) {
  if (reduce->kind != OpKind::kReduceRows) return false;
  Graph& graph = context.graph;
  // The gradient is the only result of loss_grad that has rows.
  Node* const grad = reduce->operands[0].node;
  Attrs attrs = grad->attrs;
  BiasGrad* const bias = BiasGradOf(attrs);
  if (bias == nullptr || *bias != BiasGrad::kNone) return false;
  *bias = BiasGrad::kGrad;
  Node* const fused = AddFused(graph, grad, grad->phase, grad->kind,
                               grad->operands, attrs, {grad, reduce});
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
