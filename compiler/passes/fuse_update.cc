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

// An update w + dw whose gradient is a matmul.
struct Update {
  Node* add;
  Node* w;
  Node* matmul;  // computes dw
};

bool IsMatMul(const Node* node) { return node->kind == OpKind::kMatMul; }

// The index after which the fused node may be placed: that of the add or of the
// last reader of the old w, whichever is later.
int LastBefore(const Graph& graph, const Update& update) {
  int last = graph.IndexOf(update.add);
  for (const Node* reader : graph.Users(update.w->result())) {
    last = std::max(last, graph.IndexOf(reader));
  }
  return last;
}

// The reason why the matmul cannot add to w in place; empty when it can.
std::string WhyNotInPlace(const Graph& graph, const Update& update) {
  const Value w = update.w->result(), dw = update.matmul->result();
  if (update.matmul->as<MatMulAttrs>().has_epilogue()) {
    return absl::StrCat(graph.NameOf(dw), " has an epilogue");
  }
  if (OnlyUser(graph, dw) != update.add) {
    return SecondUse(graph, dw, update.add);
  }
  if (graph.IsOutput(w)) {
    return absl::StrCat("the old ", graph.NameOf(w), " is an output");
  }
  const int last = LastBefore(graph, update);
  for (const Node* user : graph.Users(update.add->result())) {
    if (graph.IndexOf(user) > last) continue;
    return absl::StrCat("reader ", graph.NameOf(graph.nodes()[last]->result()),
                        " of the old ", graph.NameOf(w),
                        " runs after its update");
  }
  for (Value operand : update.matmul->operands) {
    if (operand == w) {
      return absl::StrCat(graph.NameOf(dw), " reads ", graph.NameOf(w),
                          " itself");
    }
    // At the new position of the matmul, a param that it reads may already have
    // its new value.
    if (operand.node->kind != OpKind::kParam) continue;
    const Node* const writer = InPlaceWriter(graph, operand.node);
    if (writer != nullptr && graph.IndexOf(writer) <= last) {
      return absl::StrCat("reader ", graph.NameOf(dw), " of the old ",
                          graph.NameOf(operand), " runs after its update");
    }
  }
  return "";
}

bool FuseAdd(PassContext& context, Node* add) {
  Graph& graph = context.graph;
  const auto refuse = [&](const std::string& why) {
    context.Refuse(
        absl::StrCat("fuse ", graph.NameOf(add->result()), ": ", why));
    return false;
  };
  if (add->def().Has(kUpdate)) {
    return IsMatMul(UpdateOp(*add).dw.node) ? refuse(WhyNotAdded(graph, add))
                                            : false;
  }
  if (add->kind != OpKind::kAdd) return false;
  Node* const w = UpdatedParam(graph, add);
  if (w == nullptr) return false;
  const Value dw = add->operands[add->operands[0] == w->result() ? 1 : 0];
  if (!IsMatMul(dw.node)) {
    // Updates of biases are left to fuse-bias-update.
    return w->types[0].rank() == 2
               ? refuse(absl::StrCat("its gradient is made by ", dw.node->op(),
                                     ", not by a matmul"))
               : false;
  }
  const Update update = {add, w, dw.node};
  const std::string why = WhyNotInPlace(graph, update);
  if (!why.empty()) return refuse(why);

  const int next = LastBefore(graph, update) + 1;
  const Node* const position =
      next < graph.size() ? graph.nodes()[next].get() : nullptr;
  MatMulOp op(*update.matmul);
  op.attrs.accumulate = true;
  op.c = w->result();
  Node* const fused = AddFused(graph, position, add->phase, OpKind::kMatMul,
                               op.Operands(), op.attrs, {update.matmul, add});
  graph.ReplaceUses(add->result(), fused->result());
  EraseParts(graph, {update.matmul, add});
  return true;
}

}  // namespace

absl::StatusOr<bool> FuseUpdate(PassContext& context) {
  return RewriteAll(context, FuseAdd);
}

}  // namespace onestep
