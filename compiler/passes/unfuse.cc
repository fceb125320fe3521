// SPDX-License-Identifier: Apache-2.0
// The inverse of some fusions, where a partition has to come in between.
#include <utility>
#include <variant>
#include <vector>

#include "compiler/passes/partition.h"

namespace onestep {
namespace {

std::vector<Node*> NodesOf(const Graph& graph) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  return nodes;
}

// Replaces `node`, whose result `index` includes the addition of its last
// operand, by a node without this operand followed by an `add`.
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

// Sets `attrs` to the attributes of the op without its update. Returns the
// index of the result that is the new value; -1 when the op has no update.
int TakeUpdateOut(Node& node, Attrs& attrs) {
  attrs = node.attrs;
  if (bool* const accumulate = AccumulateOf(attrs)) {
    return std::exchange(*accumulate, false) ? 0 : -1;
  }
  BiasGrad* const bias = BiasGradOf(attrs);
  if (bias == nullptr || *bias != BiasGrad::kUpdate) return -1;
  *bias = BiasGrad::kGrad;
  return BiasGradResult(node).index;
}

}  // namespace

void UnfuseEpilogues(Graph& graph) {
  for (Node* const node : NodesOf(graph)) {
    if (node->kind != OpKind::kMatMul) continue;
    const MatMulOp op(*node);
    if (op.attrs.accumulate || !op.attrs.has_epilogue()) continue;
    graph.set_insertion_point(node);
    graph.set_phase(node->phase);
    MatMulAttrs attrs = op.attrs;
    attrs.activation = Activation::kNone;
    attrs.bias = false;
    Value y = graph.Add(OpKind::kMatMul, {op.a, op.b}, attrs);
    if (op.bias) y = graph.Add(OpKind::kAddBias, {y, op.bias});
    if (op.attrs.activation != Activation::kNone) {
      y = AddActivation(graph, op.attrs.activation, y);
    }
    graph.set_insertion_point(nullptr);
    graph.ReplaceUses(node->result(), y);
    graph.Erase(node);
  }
}

void UnfuseUpdates(Graph& graph) {
  for (Node* const node : NodesOf(graph)) {
    Attrs attrs;
    const int sum = TakeUpdateOut(*node, attrs);
    if (sum >= 0) SplitAddition(graph, node, sum, std::move(attrs));
  }
}

}  // namespace onestep
