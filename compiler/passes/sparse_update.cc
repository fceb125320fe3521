// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace onestep {
namespace {

// The reason why `scatter`, whose result `add` adds to w, cannot add to w
// itself; empty when it can.
std::string WhyNotIntoParam(const Graph& graph, Node* scatter, Node* add,
                            Node* param) {
  const Value w = param->result(), dw = scatter->result();
  if (!IsConstant(ScatterAddOp(*scatter).table, 0)) {
    return absl::StrCat(graph.NameOf(dw), " adds to what is not 0");
  }
  if (OnlyUser(graph, dw) != add) return SecondUse(graph, dw, add);
  if (ScatterAddOp(*scatter).rows == w) {
    return absl::StrCat(graph.NameOf(dw), " reads ", graph.NameOf(w),
                        " itself");
  }
  if (graph.IsOutput(w)) {
    return absl::StrCat("the old ", graph.NameOf(w), " is an output");
  }
  Node* const last = graph.Users(w).back();
  if (last == add) return "";
  return absl::StrCat("reader ", graph.NameOf(last->result()), " of the old ",
                      graph.NameOf(w), " runs after its update");
}

bool ScatterIntoParam(PassContext& context, Node* add) {
  Graph& graph = context.graph;
  const auto refuse = [&](const std::string& why) {
    if (!why.empty()) {
      context.Refuse(absl::StrCat("scatter into ", graph.NameOf(add->result()),
                                  ": ", why));
    }
    return !why.empty();
  };
  if (add->def().Has(kUpdate)) {
    if (UpdateOp(*add).dw.node->kind == OpKind::kScatterAdd) {
      refuse(WhyNotAdded(graph, add));
    }
    return false;
  }
  if (add->kind != OpKind::kAdd) return false;
  Node* const w = UpdatedParam(graph, add);
  if (w == nullptr) return false;
  const int other = add->operands[0] == w->result() ? 1 : 0;
  Node* const scatter = add->operands[other].node;
  if (scatter->kind != OpKind::kScatterAdd ||
      refuse(WhyNotIntoParam(graph, scatter, add, w))) {
    return false;
  }
  const ScatterAddOp op(*scatter);
  FuseChain(graph, OpKind::kScatterAdd, {w->result(), op.indices, op.rows},
            NoAttrs{}, {scatter, add});
  if (graph.CountUses(op.table) == 0) graph.Erase(op.table.node);
  return true;
}

}  // namespace

absl::StatusOr<bool> SparseUpdate(PassContext& context) {
  return RewriteAll(context, ScatterIntoParam);
}

}  // namespace onestep
