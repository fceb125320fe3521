// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace onestep {
namespace {

bool FuseCast(PassContext& context, Node* cast) {
  Node* const gather = cast->operands[0].node;
  if (gather->kind != OpKind::kGatherRows ||
      gather->types[0].dtype != DType::kU8 || gather->types[0].rank() != 2 ||
      !IsOnlyFor(context, gather->result(), cast)) {
    return false;
  }
  FuseChain(context.graph, OpKind::kGatherConvert, gather->operands,
            ScaleAttrs{1}, {gather, cast});
  return true;
}

bool FuseScale(PassContext& context, Node* scale) {
  Node* const gather = scale->operands[0].node;
  // Combining two factors would change the rounding.
  if (gather->kind != OpKind::kGatherConvert ||
      gather->as<ScaleAttrs>().alpha != 1 ||
      !IsOnlyFor(context, gather->result(), scale)) {
    return false;
  }
  FuseChain(context.graph, OpKind::kGatherConvert, gather->operands,
            scale->attrs, {gather, scale});
  return true;
}

bool FuseLabels(PassContext& context, Node* loss) {
  LossGradOp op(*loss);
  Node* const gather = op.labels.node;
  if (op.attrs.gather || gather->kind != OpKind::kGatherRows ||
      !IsOnlyFor(context, gather->result(), loss)) {
    return false;
  }
  op.attrs.gather = true;
  op.labels = GatherOp(*gather).table;
  op.indices = GatherOp(*gather).indices;
  Graph& graph = context.graph;
  Node* const fused = AddFused(graph, loss, loss->phase, OpKind::kLossGrad,
                               op.Operands(), op.attrs, {gather, loss});
  for (size_t i = 0; i < loss->types.size(); ++i) {
    const int index = static_cast<int>(i);
    graph.ReplaceUses(loss->result(index), fused->result(index));
  }
  EraseParts(graph, {gather, loss});
  return true;
}

bool FuseReader(PassContext& context, Node* node) {
  if (node->kind == OpKind::kCast) return FuseCast(context, node);
  if (node->kind == OpKind::kScale) return FuseScale(context, node);
  return node->kind == OpKind::kLossGrad && FuseLabels(context, node);
}

}  // namespace

absl::StatusOr<bool> FuseGather(PassContext& context) {
  return RewriteAll(context, FuseReader);
}

}  // namespace onestep
