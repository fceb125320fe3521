// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace onestep {
namespace {

bool FuseNode(PassContext& context, Node* node) {
  if (node->operands.empty()) return false;
  Node* const matmul = node->operands[0].node;
  if (matmul->kind != OpKind::kMatMul) return false;
  MatMulOp op(*matmul);
  if (node->kind == OpKind::kAddBias) {
    if (op.attrs.has_epilogue()) return false;
    op.attrs.bias = true;
    op.bias = node->operands[1];
  } else if (node->kind == OpKind::kActivation) {
    if (!op.bias || op.attrs.activation != Activation::kNone) return false;
    op.attrs.activation = node->as<ActivationAttrs>().activation;
  } else {
    return false;
  }
  if (!IsOnlyFor(context, matmul->result(), node)) return false;
  FuseChain(context.graph, OpKind::kMatMul, op.Operands(), op.attrs,
            {matmul, node});
  return true;
}

}  // namespace

absl::StatusOr<bool> FuseBiasActivation(PassContext& context) {
  return RewriteAll(context, FuseNode);
}

}  // namespace onestep
