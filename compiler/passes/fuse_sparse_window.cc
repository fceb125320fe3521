// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace onestep {
namespace {

// The nodes of a window step, matched from the gradient of its logits.
class Window {
 public:
  Window(Graph& graph, Node* grad) : graph_(graph), grad_(grad) {}

  // Matches the step; returns the reason when it is not one, else "".
  std::string Match() {
    std::string why = MatchForward();
    if (why.empty()) why = MatchBackward();
    if (why.empty()) why = WhyNotAlone();
    return why;
  }

  void Fuse() {
    const bool cbow = mean_ != nullptr;
    const SigmoidBceOp pairs(*grad_);
    WindowOp window;
    window.in = GatherOp(*x_).table;
    window.contexts = GatherOp(*x_).indices;
    window.out = GatherOp(*o_).table;
    window.outputs = GatherOp(*o_).indices;
    if (cbow) {
      window.mean = mean_->operands[0];
      window.spread = dx_->operands[0];
    } else {
      window.mask = pairs.mask;
    }
    window.weights = pairs.weights;
    window.labels = pairs.labels;
    window.lr = scaled_->operands[1];
    Node* const last = Last();
    Node* const fused =
        AddFused(graph_, last, last->phase,
                 cbow ? OpKind::kCbowWindow : OpKind::kSgnsWindow,
                 window.Operands(), PositivesAttrs{pairs.positives}, parts_);
    graph_.ReplaceUses(loss_->result(), fused->result(WindowOp::kLoss));
    graph_.ReplaceUses(new_in_->result(), fused->result(WindowOp::kNewIn));
    graph_.ReplaceUses(new_out_->result(), fused->result(WindowOp::kNewOut));
    EraseParts(graph_, parts_);
    if (cbow && graph_.CountUses(pairs.mask) == 0) {
      graph_.Erase(pairs.mask.node);
    }
  }

 private:
  // Adds `node` to the parts and returns it if it is of `kind`, else nullptr.
  Node* Part(Node* node, OpKind kind) {
    if (node == nullptr || node->kind != kind) return nullptr;
    parts_.push_back(node);
    return node;
  }
  // As Part, for a block_matmul of one block with these attributes.
  Node* Product(Node* node, bool trans_a, bool trans_b) {
    if (node == nullptr || node->kind != OpKind::kBlockMatMul ||
        node->attrs != Attrs(BlockMatMulAttrs{1, trans_a, trans_b})) {
      return nullptr;
    }
    return Part(node, OpKind::kBlockMatMul);
  }
  // The user of `value` of this kind that is not `not_this`.
  Node* User(Value value, OpKind kind, const Node* not_this = nullptr) const {
    for (Node* user : graph_.Users(value)) {
      if (user->kind == kind && user != not_this) return user;
    }
    return nullptr;
  }
  std::string Name(const Node* node) const {
    return graph_.NameOf(const_cast<Node*>(node)->result());
  }

  std::string MatchForward() {
    parts_ = {grad_};
    const SigmoidBceOp pairs(*grad_);
    const Value z = pairs.z;
    Node* const dots = Product(z.node, false, true);
    if (dots == nullptr) {
      return absl::StrCat(graph_.NameOf(z),
                          " is no product of one block with rows");
    }
    h_ = dots->operands[0];
    mean_ = Product(h_.node, false, false);
    x_ = Part(mean_ == nullptr ? h_.node : mean_->operands[1].node,
              OpKind::kGatherRows);
    o_ = Part(dots->operands[1].node, OpKind::kGatherRows);
    if (x_ == nullptr || o_ == nullptr) {
      return absl::StrCat(Name(dots), " does not multiply gathered rows");
    }
    const Value table = GatherOp(*x_).table;
    if (table == GatherOp(*o_).table) {
      return absl::StrCat("both tables are ", graph_.NameOf(table));
    }
    if (pairs.weights.type().dims[0] != 1) {
      return absl::StrCat("the weights ", graph_.NameOf(pairs.weights),
                          " are not one row");
    }
    if (mean_ != nullptr && h_.type().dims[0] != 1) {
      return absl::StrCat("the mean ", Name(mean_), " is not one row");
    }
    if (mean_ != nullptr && !IsConstant(pairs.mask, 1)) {
      return absl::StrCat("the mask of the mean ", Name(mean_), " is not 1");
    }
    loss_ = Part(User(z, OpKind::kSigmoidBce), OpKind::kSigmoidBce);
    if (loss_ == nullptr || loss_->operands != grad_->operands ||
        loss_->attrs != grad_->attrs) {
      return absl::StrCat(graph_.NameOf(z), " has no loss of the same pairs");
    }
    return "";
  }

  std::string MatchBackward() {
    scaled_ = Part(OnlyUser(graph_, grad_->result()), OpKind::kMulScalar);
    if (scaled_ == nullptr || scaled_->attrs != Attrs(ScaleAttrs{-1})) {
      for (const auto& node : graph_.nodes()) {
        if (!node->def().Has(kUpdate)) continue;
        return absl::StrCat(Name(node.get()), ": ",
                            WhyNotAdded(graph_, node.get()));
      }
      return absl::StrCat(Name(grad_), " is not scaled by -lr");
    }
    Node *dh = nullptr, *d_out = nullptr;
    for (Node* user : graph_.Users(scaled_->result())) {
      if (user->operands.size() != 2) continue;
      if (user->operands[1] == o_->result()) dh = Product(user, false, false);
      if (user->operands[1] == h_) d_out = Product(user, true, false);
    }
    if (dh == nullptr || d_out == nullptr) {
      return absl::StrCat(Name(scaled_), " makes no gradient of both tables");
    }
    dx_ = dh;
    if (mean_ != nullptr) {
      dx_ = Product(OnlyUser(graph_, dh->result()), true, false);
      if (dx_ == nullptr || dx_->operands[1] != dh->result()) {
        return absl::StrCat(Name(dh), " is not spread over the contexts");
      }
    }
    new_in_ = Update(dx_, x_);
    new_out_ = Update(d_out, o_);
    for (const auto& [made, gather] :
         {std::pair(new_in_, x_), std::pair(new_out_, o_)}) {
      if (made != nullptr) continue;
      return absl::StrCat("the gradient of ",
                          graph_.NameOf(GatherOp(*gather).table),
                          " is not scattered into it");
    }
    return "";
  }

  // The scatter_add of `gradient` to the rows that `gather` read.
  Node* Update(Node* gradient, const Node* gather) {
    Node* const user = OnlyUser(graph_, gradient->result());
    const GatherOp rows(*gather);
    if (user == nullptr || user->kind != OpKind::kScatterAdd ||
        user->operands !=
            std::vector<Value>{rows.table, rows.indices, gradient->result()} ||
        UpdatedParam(graph_, user) != rows.table.node) {
      return nullptr;
    }
    return Part(user, OpKind::kScatterAdd);
  }

  bool IsPart(const Node* node) const {
    return std::find(parts_.begin(), parts_.end(), node) != parts_.end();
  }
  Node* Last() const {
    return *std::max_element(parts_.begin(), parts_.end(),
                             [&](const Node* a, const Node* b) {
                               return graph_.IndexOf(a) < graph_.IndexOf(b);
                             });
  }

  // The reason why the parts cannot be replaced by one node: a value inside the
  // pattern has another user, or a result is read before the last part. Empty
  // when they can.
  std::string WhyNotAlone() const {
    const int last = graph_.IndexOf(Last());
    for (Node* part : parts_) {
      const bool result = part == loss_ || part == new_in_ || part == new_out_;
      const Value value = part->result();
      for (const Node* user : graph_.Users(value)) {
        if (IsPart(user) || (result && graph_.IndexOf(user) > last)) continue;
        return absl::StrCat("second use of ", graph_.NameOf(value), " by ",
                            user->op());
      }
      if (!result && graph_.IsOutput(value)) {
        return absl::StrCat("second use of ", graph_.NameOf(value),
                            " by an output");
      }
    }
    return "";
  }

  Graph& graph_;
  Node* const grad_;
  std::vector<Node*> parts_;
  Value h_;
  Node *x_ = nullptr, *o_ = nullptr, *mean_ = nullptr, *loss_ = nullptr;
  Node *scaled_ = nullptr, *dx_ = nullptr;
  Node *new_in_ = nullptr, *new_out_ = nullptr;
};

bool FuseWindow(PassContext& context, Node* grad) {
  if (grad->kind != OpKind::kSigmoidBceGrad) return false;
  Graph& graph = context.graph;
  Window window(graph, grad);
  const std::string why = window.Match();
  if (!why.empty()) {
    context.Refuse(
        absl::StrCat("fuse ", graph.NameOf(grad->result()), ": ", why));
    return false;
  }
  window.Fuse();
  return true;
}

}  // namespace

absl::StatusOr<bool> FuseSparseWindow(PassContext& context) {
  return RewriteAll(context, FuseWindow);
}

}  // namespace onestep
