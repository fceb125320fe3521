// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace onestep {
namespace {

Value Scaled(Graph& graph, const Node* node, Value x, float alpha) {
  if (alpha == 1) return x;
  return AddFused(graph, node, node->phase, OpKind::kScale, {x},
                  ScaleAttrs{alpha}, {})
      ->result();
}

// What `node` is the same as, or no value.
Value SimplerForm(Graph& graph, const Node* node) {
  const auto operand = [node](int i) { return node->operands[i]; };
  switch (node->kind) {
    case OpKind::kScale: {
      const float alpha = node->as<ScaleAttrs>().alpha;
      if (alpha == 1) return operand(0);
      const Node* const inner = operand(0).node;
      if (inner->kind != OpKind::kScale) return {};
      const float product = alpha * inner->as<ScaleAttrs>().alpha;
      // Two factors may do what their product cannot hold.
      if (!std::isnormal(product)) return {};
      return Scaled(graph, node, inner->operands[0], product);
    }
    case OpKind::kMulScalar:
      if (!IsConstant(operand(1), 1)) return {};
      return Scaled(graph, node, operand(0), node->as<ScaleAttrs>().alpha);
    case OpKind::kAdd:
      if (IsConstant(operand(1), 0)) return operand(0);
      if (IsConstant(operand(0), 0)) return operand(1);
      return {};
    case OpKind::kMul:
      if (IsConstant(operand(1), 1)) return operand(0);
      if (IsConstant(operand(0), 1)) return operand(1);
      return {};
    case OpKind::kCast:
      if (operand(0).type() == node->types[0]) return operand(0);
      return {};
    default:
      return {};
  }
}

bool SimplifyNode(PassContext& context, Node* node) {
  Graph& graph = context.graph;
  // A node simplified before is still there, unused, until dce.
  if (graph.CountUses(node->result()) == 0) return false;
  const Value simpler = SimplerForm(graph, node);
  if (!simpler) return false;
  graph.ReplaceUses(node->result(), simpler);
  return true;
}

}  // namespace

absl::StatusOr<bool> Simplify(PassContext& context) {
  return RewriteAll(context, SimplifyNode);
}

}  // namespace onestep
