// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace onestep {
namespace {

// Sets `attrs` to those of db's node with {bias=update}; returns false when
// `db` is not the bias gradient of a fused op.
bool WithUpdate(Value db, Attrs& attrs) {
  attrs = db.node->attrs;
  BiasGrad* const bias = BiasGradOf(attrs);
  if (bias == nullptr || *bias != BiasGrad::kGrad ||
      db != BiasGradResult(*db.node)) {
    return false;
  }
  *bias = BiasGrad::kUpdate;
  return true;
}

// The reason why the kernel cannot overwrite the bias; empty when it can.
std::string WhyNotInPlace(const Graph& graph, Node* bias, Value db,
                          const Node* add) {
  const int at = graph.IndexOf(db.node);
  if (OnlyUser(graph, db) != add) return SecondUse(graph, db, add);
  if (graph.IndexOf(bias) > at) {
    return absl::StrCat(graph.NameOf(bias->result()), " is bound after ",
                        graph.NameOf(db));
  }
  if (graph.IsOutput(bias->result())) {
    return absl::StrCat("the old ", graph.NameOf(bias->result()),
                        " is an output");
  }
  for (Node* reader : graph.Users(bias->result())) {
    if (reader != add && graph.IndexOf(reader) > at) {
      return absl::StrCat("reader ", graph.NameOf(reader->result()),
                          " of the old ", graph.NameOf(bias->result()),
                          " runs after its update");
    }
  }
  return "";
}

bool FuseBiasAdd(PassContext& context, Node* add) {
  Graph& graph = context.graph;
  const auto refuse = [&](const std::string& why) {
    context.Refuse(
        absl::StrCat("fuse ", graph.NameOf(add->result()), ": ", why));
    return false;
  };
  Attrs attrs;
  if (add->def().Has(kUpdate)) {
    return WithUpdate(UpdateOp(*add).dw, attrs)
               ? refuse(WhyNotAdded(graph, add))
               : false;
  }
  if (add->kind != OpKind::kAdd) return false;
  Node* const bias = UpdatedParam(graph, add);
  if (bias == nullptr) return false;
  const Value db = add->operands[add->operands[0] == bias->result() ? 1 : 0];
  if (db.node->kind == OpKind::kReduceRows) {
    return refuse(absl::StrCat("its gradient ", graph.NameOf(db),
                               " is made by reduce_rows alone"));
  }
  if (!WithUpdate(db, attrs)) return false;
  const std::string why = WhyNotInPlace(graph, bias, db, add);
  if (!why.empty()) return refuse(why);

  Node* const grad = db.node;
  std::vector<Value> operands = grad->operands;
  operands.push_back(bias->result());
  Node* const fused = AddFused(graph, grad, grad->phase, grad->kind,
                               std::move(operands), attrs, {grad, add});
  graph.ReplaceUses(add->result(), fused->result(db.index));
  for (int i = 0; i < db.index; ++i) {
    graph.ReplaceUses(grad->result(i), fused->result(i));
  }
  EraseParts(graph, {grad, add});
  return true;
}

}  // namespace

absl::StatusOr<bool> FuseBiasUpdate(PassContext& context) {
  return RewriteAll(context, FuseBiasAdd);
}

}  // namespace onestep
