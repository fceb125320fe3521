// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/ops/sparse.h"

#include "absl/strings/str_cat.h"
#include "compiler/ir/ops/rules.h"

namespace onestep {
namespace {

// Of a sparse batch of rows of `cols` values: as many as the rows of the table
// have on average, for those of the batch are known only at run time. All
// where the table's are not known.
double Nonzeros(const Node& batch, int64_t cols) {
  const double rows = static_cast<double>(batch.types[0].dims[0]);
  if (batch.kind == OpKind::kGatherSparse) {
    const int64_t nonzeros = batch.as<GatherSparseAttrs>().nonzeros;
    const int64_t table_rows = GatherOp(batch).table.type().dims[0];
    if (nonzeros > 0) return rows * nonzeros / table_rows;
  }
  return rows * cols;
}

// A word for each nonzero of the sparse batch `x`, of the rest everything.
double BytesOfProduct(const Node& node, Value x, double nonzeros) {
  return AllBytes(node) - Bytes(x.type()) + 4 * nonzeros;
}

// The batch is shared by all models.
constexpr auto BatchIsShared = AllPerModelBut<0, ModelAxis::kShared>;

// ---- gather_sparse ----------------------------------------------------------

absl::StatusOr<Types> InferGatherSparse(const Types& in, const Attrs&) {
  if (!IsMatrix(in[0], DType::kU8) || !IsVector(in[1], DType::kI32) ||
      in[0].dims[1] > kMaxSparseCols) {
    return Wrong(
        OpKind::kGatherSparse,
        absl::StrCat("table u8[N,K], indices i32[B], K up to ", kMaxSparseCols),
        in);
  }
  return Types{I32({in[1].dims[0], SparseWidth(in[0].dims[1])})};
}

OpCost CostGatherSparse(const Node& node) {
  const GatherOp op(node);
  const double rows = Elements(op.indices.type());
  const int64_t cols = op.table.type().dims[1];
  return {0, 4 * rows + rows * cols + 4 * Nonzeros(node, cols)};
}

// The batch by its indices.
Strategies PartitionGatherSparse(const Node& node) {
  return {AllAt(node, R), {{R, S0}, {S0}}};
}

// ---- sparse_matmul ----------------------------------------------------------

absl::StatusOr<Types> InferSparseMatMul(const Types& in, const Attrs& attrs) {
  const bool bias = std::get<SparseMatMulAttrs>(attrs).bias;
  if (in[0].rank() == 2 && IsMatrix(in[1])) {
    Types types = {I32({in[0].dims[0], SparseWidth(in[1].dims[0])}), in[1]};
    if (bias) types.push_back(F32({in[1].dims[1]}));
    if (in == types) return Types{F32({in[0].dims[0], in[1].dims[1]})};
  }
  return Wrong(OpKind::kSparseMatMul,
               absl::StrCat("x i32[B,width of K], w f32[K,C]",
                            bias ? ", bias f32[C]" : ""),
               in);
}

OpCost CostSparseMatMul(const Node& node) {
  const SparseMatMulOp op(node);
  const double n = static_cast<double>(node.types[0].dims[1]);
  const double epilogue = op.attrs.bias + ActivationFlops(op.attrs.activation);
  const double nonzeros = Nonzeros(*op.x.node, op.w.type().dims[0]);
  return {2 * n * nonzeros + epilogue * Elements(node.types[0]),
          BytesOfProduct(node, op.x, nonzeros)};
}

// As matmul, but never by k: a worker's columns of x are all over its rows.
Strategies PartitionSparseMatMul(const Node& node) {
  Strategies list = {AllAt(node, R), {{S0, R}, {S0}}, {{R, S1}, {S1}}};
  if (node.as<SparseMatMulAttrs>().bias) {
    list[1].operands.push_back(R);
    list[2].operands.push_back(S0);
  }
  return list;
}

// ---- sparse_outer -----------------------------------------------------------

absl::StatusOr<Types> InferSparseOuter(const Types& in, const Attrs& attrs) {
  const auto& outer = std::get<SparseOuterAttrs>(attrs);
  if (outer.rows < 1) {
    return Wrong(OpKind::kSparseOuter, "rows >= 1",
                 absl::StrCat("rows=", outer.rows));
  }
  if (in[0].rank() == 2 && IsMatrix(in[1])) {
    const int64_t batch = in[0].dims[0], cols = in[1].dims[1];
    const TensorType dw = F32({outer.rows, cols});
    Types types = {I32({batch, SparseWidth(outer.rows)}), F32({batch, cols})};
    if (outer.accumulate) types.push_back(dw);
    if (in == types) return Types{dw};
  }
  return Wrong(
      OpKind::kSparseOuter,
      absl::StrCat(
          "x i32[B,", SparseWidth(outer.rows), "], dz f32[B,C]",
          outer.accumulate ? absl::StrCat(", c f32[", outer.rows, ",C]") : ""),
      in);
}

OpCost CostSparseOuter(const Node& node) {
  const Value x = SparseOuterOp(node).x;
  const double n = static_cast<double>(node.types[0].dims[1]);
  const double nonzeros = Nonzeros(*x.node, node.types[0].dims[0]);
  return {2 * n * nonzeros, BytesOfProduct(node, x, nonzeros)};
}

Strategies PartitionSparseOuter(const Node& node) {
  Strategies list = {AllAt(node, R), {{R, S1}, {S1}}, {{S0, S0}, {P}}};
  if (node.as<SparseOuterAttrs>().accumulate) {
    list[1].operands.push_back(S1);
    list[2].operands.push_back(P);
  }
  return list;
}

// dw over c, which it adds to.
bool AliasSparseOuter(const Node& node, int, int operand) {
  return node.as<SparseOuterAttrs>().accumulate && operand == 2;
}

}  // namespace

const OpRules kGatherSparseRules = {
    .infer = InferGatherSparse,
    .grad = NotDifferentiated,
    .cost = CostGatherSparse,
    .batch = AllShared,
    .partition = PartitionGatherSparse,
    .alias = NeverInPlace,
    .lookup = LooksUpRows,
};

const OpRules kSparseMatMulRules = {
    .infer = InferSparseMatMul,
    .grad = NotDifferentiated,
    .cost = CostSparseMatMul,
    .batch = BatchIsShared,
    .partition = PartitionSparseMatMul,
    .alias = NeverInPlace,
};

const OpRules kSparseOuterRules = {
    .infer = InferSparseOuter,
    .grad = NotDifferentiated,
    .cost = CostSparseOuter,
    .batch = BatchIsShared,
    .partition = PartitionSparseOuter,
    .alias = AliasSparseOuter,
};

SparseMatMulOp::SparseMatMulOp(const Node& node)
    : attrs(node.as<SparseMatMulAttrs>()),
      x(node.operands[0]),
      w(node.operands[1]) {
  if (attrs.bias) bias = node.operands[2];
}

SparseOuterOp::SparseOuterOp(const Node& node)
    : attrs(node.as<SparseOuterAttrs>()),
      x(node.operands[0]),
      dz(node.operands[1]) {
  if (attrs.accumulate) c = node.operands[2];
}

}  // namespace onestep
