// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace onestep {
namespace {

// The nodes of a loss and its gradient in the graph.
struct Match {
  Loss loss;
  Value logits, labels, lr;
  int64_t rows = 0;           // attribute of the loss, or of the gradient
  Node* loss_node = nullptr;  // null when only the gradient is used
  Node* grad = nullptr;       // computes the gradient
  Node* correct = nullptr;    // the count_correct, or null
  std::vector<Node*> parts;
};

Node* FindNode(const Graph& graph, OpKind kind,
               const std::vector<Value>& operands) {
  for (Node* user : graph.Users(operands[0])) {
    if (user->kind == kind && user->operands == operands) return user;
  }
  return nullptr;
}

// Whether `value` has no user except `user`; else records a refusal.
bool UsedOnlyBy(PassContext& context, Node* root, Value value,
                const Node* user) {
  const Graph& graph = context.graph;
  if (OnlyUser(graph, value) == user) return true;
  context.Refuse(absl::StrCat("fuse ", graph.NameOf(root->result()), ": ",
                              SecondUse(graph, value, user)));
  return false;
}

// Matches softmax, minus_one_hot and, unless there is only one row, the scale
// by 1 / rows.
bool MatchSoftmaxXent(PassContext& context, Node* minus, Match& match) {
  const Graph& graph = context.graph;
  Node* const softmax = minus->operands[0].node;
  if (softmax->kind != OpKind::kSoftmax ||
      !UsedOnlyBy(context, minus, softmax->result(), minus)) {
    return false;
  }
  match.loss = Loss::kSoftmaxXent;
  match.logits = softmax->operands[0];
  match.labels = minus->operands[1];
  match.loss_node =
      FindNode(graph, OpKind::kNllLoss, {match.logits, match.labels});
  match.grad = minus;
  match.parts = {softmax, minus};
  int64_t batch = match.logits.type().dims[0];
  if (match.loss_node != nullptr) {
    match.rows = match.loss_node->as<MeanAttrs>().rows;
    batch = BatchRows(*match.loss_node);
  }
  const auto rows = static_cast<float>(batch);
  Node* const scale = OnlyUser(graph, minus->result());
  if (scale != nullptr && scale->kind == OpKind::kScale &&
      scale->as<ScaleAttrs>().alpha == 1 / rows) {
    match.grad = scale;
    match.parts.push_back(scale);
  } else if (rows != 1) {
    context.Refuse(absl::StrCat("fuse ", graph.NameOf(minus->result()),
                                ": want its only use to be a scale by 1 / ",
                                rows));
    return false;
  }
  return true;
}

bool MatchMse(PassContext& context, Node* grad, Match& match) {
  const Graph& graph = context.graph;
  const Value y = grad->operands[0], t = grad->operands[1];
  if (t.node->kind != OpKind::kOneHot) {
    context.Refuse(absl::StrCat("fuse ", graph.NameOf(grad->result()),
                                ": its target is no one_hot"));
    return false;
  }
  match.loss = Loss::kMse;
  match.logits = y;
  match.labels = t.node->operands[0];
  match.loss_node = FindNode(graph, OpKind::kMseLoss, {y, t});
  match.grad = grad;
  match.rows = grad->as<MeanAttrs>().rows;
  match.parts = {t.node, grad};
  if (match.loss_node != nullptr &&
      BatchRows(*match.loss_node) != BatchRows(*grad)) {
    context.Refuse(absl::StrCat("fuse ", graph.NameOf(grad->result()),
                                ": its mean is over ", BatchRows(*grad),
                                " rows, that of ",
                                graph.NameOf(match.loss_node->result()),
                                " over ", BatchRows(*match.loss_node)));
    return false;
  }
  std::string other = graph.IsOutput(t) ? "an output" : "";
  for (const Node* user : graph.Users(t)) {
    if (user != grad && user != match.loss_node) other = user->op();
  }
  if (other.empty()) return true;
  context.Refuse(absl::StrCat("fuse ", graph.NameOf(grad->result()),
                              ": second use of ", graph.NameOf(t), " by ",
                              other));
  return false;
}

bool IsPart(const Match& match, const Node* node) {
  return std::find(match.parts.begin(), match.parts.end(), node) !=
         match.parts.end();
}

// The position of the fused node: the first matched node that comes after all
// operands. nullptr when a result is read before that or is an operand.
const Node* FindPosition(const Graph& graph, const Match& match) {
  int ready = 0;
  for (Value v : {match.logits, match.labels, match.lr}) {
    if (!v) continue;
    // A learning rate may be computed from the loss.
    if (IsPart(match, v.node)) return nullptr;
    ready = std::max(ready, graph.IndexOf(v.node) + 1);
  }
  int position = graph.size();
  for (const Node* part : match.parts) {
    const int index = graph.IndexOf(part);
    if (index >= ready) position = std::min(position, index);
  }
  for (Node* made : {match.loss_node, match.grad, match.correct}) {
    if (made == nullptr) continue;
    for (const Node* user : graph.Users(made->result())) {
      if (!IsPart(match, user) && graph.IndexOf(user) < position) {
        return nullptr;
      }
    }
  }
  return graph.nodes()[position].get();
}

// Includes the multiplication of the gradient by -lr when that is its only use.
void MatchScaled(const Graph& graph, Match& match) {
  Node* const times_lr = OnlyUser(graph, match.grad->result());
  if (times_lr == nullptr || times_lr->kind != OpKind::kMulScalar ||
      times_lr->as<ScaleAttrs>().alpha != -1) {
    return;
  }
  Match scaled = match;
  scaled.lr = times_lr->operands[1];
  scaled.grad = times_lr;
  scaled.parts.push_back(times_lr);
  // An lr that is computed too late stays a separate node.
  if (FindPosition(graph, scaled) != nullptr) match = scaled;
}

bool FuseLoss(PassContext& context, Node* node) {
  Graph& graph = context.graph;
  Match match;
  if (node->kind == OpKind::kMinusOneHot) {
    if (!MatchSoftmaxXent(context, node, match)) return false;
  } else if (node->kind == OpKind::kMseGrad) {
    if (!MatchMse(context, node, match)) return false;
  } else {
    return false;
  }
  match.correct =
      FindNode(graph, OpKind::kCountCorrect, {match.logits, match.labels});
  if (match.loss_node != nullptr) match.parts.push_back(match.loss_node);
  if (match.correct != nullptr) match.parts.push_back(match.correct);
  if (FindPosition(graph, match) == nullptr) {
    context.Refuse(absl::StrCat("fuse ", graph.NameOf(node->result()),
                                ": its logits are made by a part of it"));
    return false;
  }
  MatchScaled(graph, match);

  std::vector<Value> operands = {match.logits, match.labels};
  if (match.lr) operands.push_back(match.lr);
  LossGradAttrs attrs;
  attrs.loss = match.loss;
  attrs.scaled = static_cast<bool>(match.lr);
  attrs.rows = match.rows;
  const Node* const kept =
      match.loss_node != nullptr ? match.loss_node : match.grad;
  Node* const fused = AddFused(graph, FindPosition(graph, match), kept->phase,
                               OpKind::kLossGrad, operands, attrs, match.parts);
  Node* const made[] = {match.loss_node, match.grad, match.correct};
  for (int i = 0; i < 3; ++i) {
    if (made[i] == nullptr) continue;
    graph.ReplaceUses(made[i]->result(), fused->result(i));
  }
  EraseParts(graph, match.parts);
  return true;
}

}  // namespace

absl::StatusOr<bool> FuseLossGrad(PassContext& context) {
  return RewriteAll(context, FuseLoss);
}

}  // namespace onestep
