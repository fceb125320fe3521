// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace onestep {
namespace {

// The dependence of a value on the seed: none, linear, or nonlinear.
enum Degree { kIndependent, kLinear, kOther };

using Degrees = std::unordered_map<const Node*, Degree>;

// The partition rules tell whether an op is linear: it is linear in the
// operands that a strategy takes as partial sums while all other operands are
// replicated and the result is partial.
Degree DegreeOf(const Node& node, const Degrees& degrees) {
  const auto is_linear = [&](Value v) { return degrees.at(v.node) == kLinear; };
  for (const Value& v : node.operands) {
    if (degrees.at(v.node) == kOther) return kOther;
  }
  if (std::none_of(node.operands.begin(), node.operands.end(), is_linear)) {
    return kIndependent;
  }
  const auto fits = [&](const Strategy& strategy) {
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const Value v = node.operands[i];
      const bool partial = strategy.operands[i].kind == Placement::kPartial;
      if (partial != is_linear(v) && !IsConstant(v, 0)) return false;
    }
    return strategy.results[0].kind == Placement::kPartial;
  };
  const std::vector<Strategy> strategies = node.def().rules.partition(node);
  return std::any_of(strategies.begin(), strategies.end(), fits) ? kLinear
                                                                 : kOther;
}

// Whether only the updates depend on `seed`, and each of them linearly.
bool CarriesAllGradients(const Graph& graph, const Node* seed) {
  Degrees degrees;
  bool reaches_update = false;
  for (const auto& node : graph.nodes()) {
    Degree& degree = degrees[node.get()];
    degree = node.get() == seed ? kLinear : DegreeOf(*node, degrees);
    if (node->kind != OpKind::kSgdUpdate) {
      if (degree == kOther) return false;
      continue;
    }
    const UpdateOp op(*node);
    const Value w = op.w, dw = op.dw;
    if (degrees.at(w.node) != kIndependent) return false;
    // The gradient of a param that the loss does not depend on is a constant 0.
    if (degrees.at(dw.node) != kLinear && !IsConstant(dw, 0)) return false;
    reaches_update |= degrees.at(dw.node) == kLinear;
    degree = kIndependent;  // folding does not change the new w
  }
  const auto& outputs = graph.outputs();
  return reaches_update &&
         std::all_of(outputs.begin(), outputs.end(), [&](const Output& out) {
           return degrees.at(out.value.node) == kIndependent;
         });
}

// The seed, which is the gradient of the loss: the first node that carries all
// gradients, or the last of the scales that follow it. nullptr when there is no
// such node.
Node* FindSeed(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->operands.empty() || node->types.size() != 1 ||
        node->types[0].rank() == 0 || !CarriesAllGradients(graph, node.get())) {
      continue;
    }
    Node* seed = node.get();
    while (Node* const user = OnlyUser(graph, seed->result())) {
      if (user->kind != OpKind::kScale && user->kind != OpKind::kMulScalar) {
        break;
      }
      seed = user;
    }
    return seed;
  }
  return nullptr;
}

// The graph's updates; empty when they cannot be folded, which is then recorded
// as a refusal.
std::vector<Node*> FoldableUpdates(PassContext& context) {
  Graph& graph = context.graph;
  std::vector<Node*> updates;
  const size_t refusals_before = context.refusals.size();
  for (const auto& node : graph.nodes()) {
    if (!node->def().Has(kUpdate)) continue;
    const std::string fold =
        absl::StrCat("fold ", graph.NameOf(node->result()), ": ");
    if (node->kind != OpKind::kSgdUpdate || HasWeightDecay(*node)) {
      context.Refuse(fold + WhyNotAdded(graph, node.get()));
      continue;
    }
    const Value lr = UpdateOp(*node).lr;
    const Value first = updates.empty() ? lr : UpdateOp(*updates[0]).lr;
    if (lr != first) {
      context.Refuse(absl::StrCat(fold, "its lr is ", graph.NameOf(lr),
                                  ", not ", graph.NameOf(first)));
    }
    updates.push_back(node.get());
  }
  if (context.refusals.size() > refusals_before) updates.clear();
  return updates;
}

}  // namespace

absl::StatusOr<bool> FoldLearningRate(PassContext& context) {
  Graph& graph = context.graph;
  const std::vector<Node*> updates = FoldableUpdates(context);
  if (updates.empty()) return false;
  const Value lr = UpdateOp(*updates[0]).lr;
  const std::string fold =
      absl::StrCat("fold ", graph.NameOf(updates[0]->result()), ": ");
  Node* const seed = FindSeed(graph);
  if (seed == nullptr) {
    context.Refuse(fold +
                   "no value carries all gradients, linearly and to the "
                   "updates only");
    return false;
  }
  const Value gradient = seed->result();
  const Node* const first_user = graph.Users(gradient)[0];
  // Scaling a whole dW costs as much as the update itself.
  for (const Node* update : updates) {
    if (UpdateOp(*update).dw == gradient) {
      context.Refuse(absl::StrCat(fold, graph.NameOf(gradient),
                                  " is itself the gradient of ",
                                  graph.NameOf(UpdateOp(*update).w)));
      return false;
    }
  }
  if (graph.IndexOf(lr.node) > graph.IndexOf(first_user)) {
    context.Refuse(absl::StrCat(fold, "lr is made after ",
                                graph.NameOf(gradient), " is read"));
    return false;
  }

  Node* const scaled =
      AddFused(graph, first_user, seed->phase, OpKind::kMulScalar,
               {gradient, lr}, ScaleAttrs{-1}, {});
  graph.ReplaceUses(gradient, scaled->result());
  scaled->operands[0] = gradient;
  for (Node* update : updates) {
    FuseChain(graph, OpKind::kAdd, {UpdateOp(*update).w, UpdateOp(*update).dw},
              NoAttrs{}, {update});
  }
  return true;
}

}  // namespace onestep
