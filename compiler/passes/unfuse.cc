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

// The attributes of the same op without its update, and the result that was
// the new value; -1: there was none.
int TakeUpdateOut(Attrs& attrs) {
  const auto clear = [](bool& accumulate) {
    return std::exchange(accumulate, false) ? 0 : -1;
  };
  const auto lower = [](BiasGrad& bias, int result) {
    if (bias != BiasGrad::kUpdate) return -1;
    bias = BiasGrad::kGrad;
    return result;
  };
  if (auto* matmul = std::get_if<MatMulAttrs>(&attrs)) {
    return clear(matmul->accumulate);
  }
  if (auto* outer = std::get_if<SparseOuterAttrs>(&attrs)) {
    return clear(outer->accumulate);
  }
  if (auto* loss = std::get_if<LossGradAttrs>(&attrs)) {
    return lower(loss->bias, 3);
  }
  if (auto* activation = std::get_if<ActivationGradAttrs>(&attrs)) {
    return lower(activation->bias, 1);
  }
  return -1;
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
    Attrs attrs = node->attrs;
    const int sum = TakeUpdateOut(attrs);
    if (sum >= 0) SplitAddition(graph, node, sum, std::move(attrs));
  }
}

}  // namespace onestep
