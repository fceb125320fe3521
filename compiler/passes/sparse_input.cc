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

bool IsForward(const MatMulAttrs& attrs) {
  return !attrs.trans_a && !attrs.trans_b && !attrs.accumulate;
}

bool IsWeightGradient(const MatMulAttrs& attrs) {
  return attrs.trans_a && !attrs.trans_b && !attrs.bias &&
         attrs.activation == Activation::kNone;
}

// The reason why `x` must stay dense; empty when it need not.
std::string WhyDense(const Graph& graph, Value x) {
  if (graph.IsOutput(x)) {
    return absl::StrCat(graph.NameOf(x), " is an output");
  }
  for (Node* user : graph.Users(x)) {
    const std::string reads =
        absl::StrCat(graph.NameOf(user->result()), " = ", user->op(), " reads ",
                     graph.NameOf(x));
    if (user->kind != OpKind::kMatMul) return reads;
    if (std::count(user->operands.begin(), user->operands.end(), x) != 1 ||
        MatMulOp(*user).a != x) {
      return absl::StrCat(reads, " as its second factor");
    }
    const auto& attrs = user->as<MatMulAttrs>();
    if (!IsForward(attrs) && !IsWeightGradient(attrs)) {
      return absl::StrCat(reads, ", and is neither x w nor x^T dz");
    }
  }
  return "";
}

void MakeSparse(Graph& graph, Node* matmul, Value x) {
  MatMulOp op(*matmul);
  const int64_t features = op.a.type().dims[1];
  op.a = x;
  if (IsForward(op.attrs)) {
    FuseChain(graph, OpKind::kSparseMatMul, op.Operands(),
              SparseMatMulAttrs{op.attrs.bias, op.attrs.activation}, {matmul});
  } else {
    FuseChain(graph, OpKind::kSparseOuter, op.Operands(),
              SparseOuterAttrs{features, op.attrs.accumulate}, {matmul});
  }
}

bool MakeSparse(PassContext& context, Node* gather) {
  Graph& graph = context.graph;
  const auto refuse = [&](const std::string& why) {
    context.Refuse(absl::StrCat("make ", graph.NameOf(gather->result()),
                                " sparse: ", why));
    return false;
  };
  const Value rows = gather->result();
  if (gather->kind == OpKind::kGatherRows && rows.type().dtype == DType::kU8 &&
      rows.type().rank() == 2) {
    return refuse("a gather_rows, want a gather_convert, which fusion makes");
  }
  if (gather->kind != OpKind::kGatherConvert) return false;
  if (rows.type().dims[1] > kMaxSparseCols) {
    return refuse(absl::StrCat("want rows of up to ", kMaxSparseCols,
                               " values, got ", rows.type().dims[1]));
  }
  const std::string why = WhyDense(graph, rows);
  if (!why.empty()) return refuse(why);
  const GatherSparseAttrs attrs = {gather->as<ScaleAttrs>().alpha,
                                   context.sparse.nonzeros};
  const Value x = AddFused(graph, gather, gather->phase, OpKind::kGatherSparse,
                           gather->operands, attrs, {gather})
                      ->result();
  for (Node* user : graph.Users(rows)) MakeSparse(graph, user, x);
  graph.Erase(gather);
  return true;
}

// Reports the updates that still read and write all of w, because they limit
// the speedup of a step.
void SayWhichUpdatesAreDense(PassContext& context) {
  for (const auto& node : context.graph.nodes()) {
    if (node->kind != OpKind::kSparseOuter) continue;
    for (Node* user : context.graph.Users(node->result())) {
      if (!user->def().Has(kUpdate)) continue;
      context.Refuse(absl::StrCat("skip zeros in the update: ", user->op(),
                                  " reads all of ",
                                  context.graph.NameOf(node->result())));
    }
  }
}

}  // namespace

absl::StatusOr<bool> SparsifyInput(PassContext& context) {
  if (context.sparse.nonzeros == 0) return false;
  const bool changed = RewriteAll(context, MakeSparse);
  SayWhichUpdatesAreDense(context);
  return changed;
}

}  // namespace onestep
