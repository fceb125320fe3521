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

Value SimplerScale(Graph& graph, const Node* node) {
  const Value x = node->operands[0];
  const float alpha = node->as<ScaleAttrs>().alpha;
  if (alpha == 1) return x;
  if (x.node->kind != OpKind::kScale) return {};
  const float product = alpha * x.node->as<ScaleAttrs>().alpha;
  // The product of two factors may overflow or be denormal although neither
  // factor is.
  if (!std::isnormal(product)) return {};
  return Scaled(graph, node, x.node->operands[0], product);
}

// The operand x of op(x, c) or op(c, x), where c is the constant `neutral`.
Value OtherThan(const Node* node, float neutral) {
  if (IsConstant(node->operands[1], neutral)) return node->operands[0];
  if (IsConstant(node->operands[0], neutral)) return node->operands[1];
  return {};
}

// A simpler value equal to the node's result, or no value.
Value SimplerForm(Graph& graph, const Node* node) {
  if (node->kind == OpKind::kScale) return SimplerScale(graph, node);
  if (node->kind == OpKind::kAdd) return OtherThan(node, 0);
  if (node->kind == OpKind::kMul) return OtherThan(node, 1);
  if (node->kind == OpKind::kMulScalar && IsConstant(node->operands[1], 1)) {
    return Scaled(graph, node, node->operands[0], node->as<ScaleAttrs>().alpha);
  }
  if (node->kind == OpKind::kCast &&
      node->operands[0].type() == node->types[0]) {
    return node->operands[0];
  }
  return {};
}

bool SimplifyNode(PassContext& context, Node* node) {
  Graph& graph = context.graph;
  // A simplified node stays in the graph, unused, until dce.
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
