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
  // A second factor would be rounded together with the first.
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
  LossGradAttrs attrs = loss->as<LossGradAttrs>();
  if (attrs.gather) return false;
  Node* const gather = loss->operands[1].node;
  if (gather->kind != OpKind::kGatherRows ||
      !IsOnlyFor(context, gather->result(), loss)) {
    return false;
  }
  attrs.gather = true;
  std::vector<Value> operands = loss->operands;
  operands[1] = gather->operands[0];
  operands.insert(operands.begin() + 2, gather->operands[1]);
  Graph& graph = context.graph;
  Node* const fused = AddFused(graph, loss, loss->phase, OpKind::kLossGrad,
                               std::move(operands), attrs, {gather, loss});
  for (size_t i = 0; i < loss->types.size(); ++i) {
    const int index = static_cast<int>(i);
    graph.ReplaceUses(loss->result(index), fused->result(index));
  }
  EraseParts(graph, {gather, loss});
  return true;
}

bool FuseReader(PassContext& context, Node* node) {
  switch (node->kind) {
    case OpKind::kCast:
      return FuseCast(context, node);
    case OpKind::kScale:
      return FuseScale(context, node);
    case OpKind::kLossGrad:
      return FuseLabels(context, node);
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<bool> FuseGather(PassContext& context) {
  return RewriteAll(context, FuseReader);
}

}  // namespace onestep
