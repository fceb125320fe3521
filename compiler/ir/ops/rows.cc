// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/ops/rows.h"

#include "absl/strings/str_cat.h"
#include "compiler/ir/ops/rules.h"

namespace onestep {
namespace {

// ---- gather_rows, gather_convert --------------------------------------------

absl::StatusOr<Types> InferGatherRows(const Types& in, const Attrs&) {
  const TensorType& table = in[0];
  if ((table.rank() != 1 && table.rank() != 2) ||
      !IsVector(in[1], DType::kI32)) {
    return Wrong(OpKind::kGatherRows, "table [N] or [N,C], indices i32[B]", in);
  }
  TensorType rows = table;
  rows.dims[0] = in[1].dims[0];
  return Types{rows};
}

// y[r] = table[i[r]]:  dtable[v] = sum of the dy[r] with i[r] = v
absl::StatusOr<Values> GradGatherRows(const GradContext& ctx) {
  const GatherOp op(ctx.node);
  const TensorType& table = op.table.type();
  if (table.dtype != DType::kF32) {
    return NotDifferentiable(ctx, absl::StrCat("a table ", table.ToString()));
  }
  const Value zero = ctx.graph.AddConstant(0, table);
  return Values{
      ctx.graph.Add(OpKind::kScatterAdd, {zero, op.indices, ctx.dys[0]}),
      Value()};
}

// Only the gathered rows of the table are read.
OpCost CostGatherRows(const Node& node) {
  return {0, Bytes(GatherOp(node).indices.type()) + 2 * ResultBytes(node)};
}

absl::StatusOr<Types> InferGatherConvert(const Types& in, const Attrs&) {
  if (!IsMatrix(in[0], DType::kU8) || !IsVector(in[1], DType::kI32)) {
    return Wrong(OpKind::kGatherConvert, "table u8[N,C], indices i32[B]", in);
  }
  return Types{F32({in[1].dims[0], in[0].dims[1]})};
}

OpCost CostGatherConvert(const Node& node) {
  const GatherOp op(node);
  const double n = Elements(node.types[0]);
  const double rows_read =
      n * static_cast<double>(DTypeBytes(op.table.type().dtype));
  return {n, Bytes(op.indices.type()) + rows_read + ResultBytes(node)};
}

// ---- scatter_add ------------------------------------------------------------

absl::StatusOr<Types> InferScatterAdd(const Types& in, const Attrs&) {
  const TensorType& table = in[0];
  TensorType rows = table;
  if (IsVector(in[1], DType::kI32) && table.rank() > 0) {
    rows.dims[0] = in[1].dims[0];
  }
  if (!(IsVector(table, DType::kF32) || IsMatrix(table)) ||
      !IsVector(in[1], DType::kI32) || in[2] != rows) {
    return Wrong(OpKind::kScatterAdd,
                 "table f32[N] or f32[N,C], indices i32[B], x f32[B] or "
                 "f32[B,C]",
                 in);
  }
  return Types{table};
}

// y = table + rows at i:  dtable = dy, drows[r] = dy[i[r]]
absl::StatusOr<Values> GradScatterAdd(const GradContext& ctx) {
  Values dxs = {ctx.dys[0], Value(), Value()};
  if (ctx.wanted[2]) {
    const Value indices = ScatterAddOp(ctx.node).indices;
    dxs[2] = ctx.graph.Add(OpKind::kGatherRows, {ctx.dys[0], indices});
  }
  return dxs;
}

// Only the rows named are read and written.
OpCost CostScatterAdd(const Node& node) {
  const ScatterAddOp op(node);
  const TensorType& rows = op.rows.type();
  return {Elements(rows), Bytes(op.indices.type()) + 3 * Bytes(rows)};
}

// The columns; linear in table and rows together. Rows of a split table would
// have other numbers.
Strategies PartitionScatterAdd(const Node& node) {
  Strategies list = {AllAt(node, R), {{P, R, P}, {P}}};
  if (node.types[0].rank() == 2) list.push_back({{S1, R, S1}, {S1}});
  return list;
}

bool OverTable(const Node&, int, int operand) { return operand == 0; }

// ---- one_hot ----------------------------------------------------------------

absl::StatusOr<Types> InferOneHot(const Types& in, const Attrs& attrs) {
  const int64_t classes = std::get<OneHotAttrs>(attrs).classes;
  if (classes < 1) {
    return Wrong(OpKind::kOneHot, "classes >= 1",
                 absl::StrCat("classes=", classes));
  }
  if (!IsVector(in[0], DType::kI32)) {
    return Wrong(OpKind::kOneHot, "labels i32[B]", in);
  }
  return Types{F32({in[0].dims[0], classes})};
}

}  // namespace

// A table is data, or one model's: params whose rows are gathered, embeddings,
// are not batched over models. The rows of a batch are fetched once for all.
const OpRules kGatherRowsRules = {
    .infer = InferGatherRows,
    .grad = GradGatherRows,
    .cost = CostGatherRows,
    .batch = AllShared,
    .partition = ByIndicesOrColumns,
    .alias = NeverInPlace,
    .lookup = LooksUpRows,
};

const OpRules kGatherConvertRules = {
    .infer = InferGatherConvert,
    .grad = NotDifferentiated,
    .cost = CostGatherConvert,
    .batch = AllShared,
    .partition = ByIndicesOrColumns,
    .alias = NeverInPlace,
    .lookup = LooksUpRows,
};

// The indices are shared.
const OpRules kScatterAddRules = {
    .infer = InferScatterAdd,
    .grad = GradScatterAdd,
    .cost = CostScatterAdd,
    .batch = AllPerModelBut<1, ModelAxis::kShared>,
    .partition = PartitionScatterAdd,
    .alias = OverTable,
};

const OpRules kOneHotRules = {
    .infer = InferOneHot,
    .grad = NotDifferentiated,
    .cost = NoFlops,
    .batch = AllShared,
    .partition = ByRows,
    .alias = NeverInPlace,
};

GatherOp::GatherOp(const Node& node)
    : table(node.operands[0]), indices(node.operands[1]) {}

ScatterAddOp::ScatterAddOp(const Node& node)
    : table(node.operands[0]),
      indices(node.operands[1]),
      rows(node.operands[2]) {}

}  // namespace onestep
