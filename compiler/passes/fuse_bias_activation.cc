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
  MatMulAttrs attrs = matmul->as<MatMulAttrs>();
  std::vector<Value> operands = matmul->operands;
  if (node->kind == OpKind::kAddBias) {
    if (attrs.has_epilogue()) return false;
    attrs.bias = true;
    operands.push_back(node->operands[1]);
  } else if (ActivationOf(node->kind) != Activation::kNone) {
    if (!attrs.bias || attrs.activation != Activation::kNone) return false;
    attrs.activation = ActivationOf(node->kind);
  } else {
    return false;
  }
  if (!IsOnlyFor(context, matmul->result(), node)) return false;
  FuseChain(context.graph, OpKind::kMatMul, operands, attrs, {matmul, node});
  return true;
}

}  // namespace

absl::StatusOr<bool> FuseBiasActivation(PassContext& context) {
  return RewriteAll(context, FuseNode);
}

}  // namespace onestep
