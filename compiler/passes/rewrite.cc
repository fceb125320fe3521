// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/rewrite.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

bool Contains(const std::vector<Node*>& nodes, const Node* node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

}  // namespace

bool IsConstant(Value value, float x) {
  return value.node->kind == OpKind::kConstant &&
         value.node->as<ConstantAttrs>().value == x;
}

Node* OnlyUser(const Graph& graph, Value value) {
  if (graph.CountUses(value) != 1 || graph.IsOutput(value)) return nullptr;
  return graph.Users(value)[0];
}

std::string SecondUse(const Graph& graph, Value value, const Node* user) {
  std::string by = "an output";
  for (const Node* other : graph.Users(value)) {
    if (other == user) continue;
    by = other->op();
    break;
  }
  return absl::StrCat("second use of ", graph.NameOf(value), " by ", by);
}

Node* UpdatedParam(const Graph& graph, Node* node) {
  for (const Output& out : graph.outputs()) {
    if (out.kind != Output::kUpdate || out.value != node->result()) continue;
    Node* const param = graph.FindLeaf(out.name);
    if (std::count(node->operands.begin(), node->operands.end(),
                   param->result()) > 0) {
      return param;
    }
  }
  return nullptr;
}

bool IsOnlyFor(PassContext& context, Value value, const Node* node) {
  const Graph& graph = context.graph;
  if (OnlyUser(graph, value) == node) return true;
  context.Refuse(absl::StrCat("fuse ", graph.NameOf(value), " into ",
                              node->op(), ": ", SecondUse(graph, value, node)));
  return false;
}

const Node* InPlaceWriter(const Graph& graph, Node* param) {
  const Value update = graph.UpdateOf(param);
  return update && MayOverwrite(update, param->result()) ? update.node
                                                         : nullptr;
}

std::string WhyNotAdded(const Graph& graph, const Node* update) {
  const std::string w = graph.NameOf(UpdateOp(*update).w);
  if (update->kind != OpKind::kSgdUpdate) {
    return absl::StrCat(update->op(), " of ", w,
                        " keeps a state that is not linear in lr");
  }
  if (HasWeightDecay(*update)) {
    return absl::StrCat("weight decay scales ", w,
                        " by 1 - lr * decay, read at run time");
  }
  return absl::StrCat("the gradient of ", w,
                      " is scaled by lr, read at run time");
}

Node* AddFused(Graph& graph, const Node* position, Phase phase, OpKind kind,
               std::vector<Value> operands, Attrs attrs,
               const std::vector<Node*>& parts) {
  const Phase phase_before = graph.phase();
  graph.set_phase(phase);
  graph.set_insertion_point(position);
  Node* const fused =
      graph.Add(kind, std::move(operands), std::move(attrs)).node;
  graph.set_insertion_point(nullptr);
  graph.set_phase(phase_before);
  for (const auto& node : graph.nodes()) {
    if (!Contains(parts, node.get())) continue;
    if (node->fused_from.empty()) {
      fused->fused_from.push_back(node->op());
    } else {
      fused->fused_from.insert(fused->fused_from.end(),
                               node->fused_from.begin(),
                               node->fused_from.end());
    }
    fused->origins.insert(fused->origins.end(), node->origins.begin(),
                          node->origins.end());
  }
  return fused;
}

void EraseParts(Graph& graph, const std::vector<Node*>& parts) {
  // In reverse order, so that users are erased before their operands.
  for (int i = graph.size() - 1; i >= 0; --i) {
    Node* const node = graph.nodes()[i].get();
    if (Contains(parts, node)) graph.Erase(node);
  }
}

Node* FuseChain(Graph& graph, OpKind kind, std::vector<Value> operands,
                Attrs attrs, const std::vector<Node*>& parts) {
  Node* const last = parts.back();
  Node* const fused = AddFused(graph, last, last->phase, kind,
                               std::move(operands), std::move(attrs), parts);
  graph.ReplaceUses(last->result(), fused->result());
  EraseParts(graph, parts);
  return fused;
}

bool RewriteAll(PassContext& context, bool (*rewrite)(PassContext&, Node*)) {
  bool changed = false;
  bool again = true;
  while (again) {
    again = false;
    context.refusals.clear();
    // By index, because a rewrite adds and erases nodes. The next round visits
    // the nodes that this one skips.
    for (int i = 0; i < context.graph.size(); ++i) {
      again |= rewrite(context, context.graph.nodes()[i].get());
    }
    changed |= again;
  }
  return changed;
}

}  // namespace onestep
