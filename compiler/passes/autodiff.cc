// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/autodiff.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

absl::StatusOr<std::vector<Value>> Sweep(Graph& graph, Value y,
                                         const std::vector<Value>& xs) {
  // The nodes up to y that depend on an x, in topological order.
  std::vector<Node*> path;
  std::unordered_set<const Node*> on_path;
  auto depends = [&](Value value) {
    return on_path.contains(value.node) ||
           std::find(xs.begin(), xs.end(), value) != xs.end();
  };
  for (const auto& node : graph.nodes()) {
    if (std::any_of(node->operands.begin(), node->operands.end(), depends)) {
      path.push_back(node.get());
      on_path.insert(node.get());
    }
    if (node.get() == y.node) break;
  }

  std::unordered_map<const Node*, std::vector<Value>> gradients;
  auto gradient_of = [&](Value value) -> Value& {
    std::vector<Value>& dys = gradients[value.node];
    dys.resize(value.node->types.size());
    return dys[value.index];
  };
  const Value one = graph.AddConstant(1, y.type());
  gradient_of(y) = one;
  for (auto it = path.rbegin(); it != path.rend(); ++it) {
    Node& node = **it;
    const auto dys = gradients.find(&node);
    if (dys == gradients.end()) continue;  // does not reach y
    std::vector<bool> wanted;
    for (Value operand : node.operands) wanted.push_back(depends(operand));
    ASSIGN_OR_RETURN(std::vector<Value> dxs,
                     node.def().rules.grad({graph, node, dys->second, wanted}));
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (!wanted[i] || !dxs[i]) continue;
      if (dxs[i].type() != node.operands[i].type()) {  // a sum over the models
        return absl::UnimplementedError(
            absl::StrCat("gradients: ", graph.NameOf(node.operands[i]),
                         " is shared by models that differ"));
      }
      Value& sum = gradient_of(node.operands[i]);
      sum = sum ? graph.Add(OpKind::kAdd, {sum, dxs[i]}) : dxs[i];
    }
  }

  std::vector<Value> dxs;
  for (Value x : xs) {
    Value dx = gradient_of(x);
    dxs.push_back(dx ? dx : graph.AddConstant(0, x.type()));
  }
  // The gradient rules of losses do not read the seed, which may be unused.
  if (graph.CountUses(one) == 0 &&
      std::find(dxs.begin(), dxs.end(), one) == dxs.end()) {
    graph.Erase(one.node);
  }
  return dxs;
}

}  // namespace

absl::StatusOr<std::vector<Value>> Gradients(Graph& graph, Value y,
                                             const std::vector<Value>& xs) {
  if (y.type().dtype != DType::kF32 || y.type().rank() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradients: want y f32[], got ", y.type().ToString()));
  }
  for (Value x : xs) {
    if (x.type().dtype != DType::kF32) {
      return absl::InvalidArgumentError(
          absl::StrCat("gradients: want x f32, got ", x.type().ToString()));
    }
  }
  const Phase phase = graph.phase();
  graph.set_phase(Phase::kBackward);
  absl::StatusOr<std::vector<Value>> dxs = Sweep(graph, y, xs);
  graph.set_phase(phase);
  return dxs;
}

}  // namespace onestep
