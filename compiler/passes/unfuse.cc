// SPDX-License-Identifier: Apache-2.0
// The inverse of some fusions, where a partition has to come in between.
#include <vector>

#include "compiler/passes/partition.h"

namespace onestep {
namespace {

std::vector<Node*> NodesOf(const Graph& graph) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  return nodes;
}

// A node with the operands but the last, and an `add` of that last one, in
// the place of `node`, whose result `index` was their sum.
void SplitAddition(Graph& graph, Node* node, int index, Attrs attrs) {
  graph.set_insertion_point(node);
  graph.set_phase(node->phase);
  std::vector<Value> operands = node->operands;
  const Value old = operands.back();
  operands.pop_back();
  Node* const gradient =
      graph.Add(node->kind, std::move(operands), std::move(attrs)).node;
  graph.set_phase(Phase::kUpdate);
  const Value sum = graph.Add(OpKind::kAdd, {old, gradient->result(index)});
  graph.set_insertion_point(nullptr);
  for (int r = 0; r < static_cast<int>(node->types.size()); ++r) {
    graph.ReplaceUses(node->result(r), r == index ? sum : gradient->result(r));
  }
  graph.Erase(node);
}

}  // namespace

void UnfuseEpilogues(Graph& graph) {
  for (Node* const node : NodesOf(graph)) {
    if (node->kind != OpKind::kMatMul) continue;
    MatMulAttrs attrs = node->as<MatMulAttrs>();
    if (attrs.accumulate || !attrs.has_epilogue()) continue;
    graph.set_insertion_point(node);
    graph.set_phase(node->phase);
    const Activation activation = attrs.activation;
    const bool bias = attrs.bias;
    attrs.activation = Activation::kNone;
    attrs.bias = false;
    Value y = graph.Add(OpKind::kMatMul, {node->operands[0], node->operands[1]},
                        attrs);
    if (bias) y = graph.Add(OpKind::kAddBias, {y, node->operands[2]});
    if (activation != Activation::kNone) {
      y = graph.Add(ActivationOp(activation), {y});
    }
    graph.set_insertion_point(nullptr);
    graph.ReplaceUses(node->result(), y);
    graph.Erase(node);
  }
}

void UnfuseUpdates(Graph& graph) {
  for (Node* const node : NodesOf(graph)) {
    if (node->kind == OpKind::kMatMul) {
      MatMulAttrs attrs = node->as<MatMulAttrs>();
      if (!attrs.accumulate) continue;
      attrs.accumulate = false;
      SplitAddition(graph, node, 0, attrs);
    } else if (node->kind == OpKind::kSparseOuter) {
      SparseOuterAttrs attrs = node->as<SparseOuterAttrs>();
      if (!attrs.accumulate) continue;
      attrs.accumulate = false;
      SplitAddition(graph, node, 0, attrs);
    } else if (node->kind == OpKind::kLossGrad) {
      LossGradAttrs attrs = node->as<LossGradAttrs>();
      if (attrs.bias != BiasGrad::kUpdate) continue;
      attrs.bias = BiasGrad::kGrad;
      SplitAddition(graph, node, 3, attrs);
    } else if (node->kind == OpKind::kActivationGrad) {
      ActivationGradAttrs attrs = node->as<ActivationGradAttrs>();
      if (attrs.bias != BiasGrad::kUpdate) continue;
      attrs.bias = BiasGrad::kGrad;
      SplitAddition(graph, node, 1, attrs);
    }
  }
}

}  // namespace onestep
